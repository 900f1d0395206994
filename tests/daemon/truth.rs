//! The first two promises: never a false fresh, no crying wolf. Each case is something that the world does.

use crate::daemon::{cause, commit_all, decide, git, register, row, write_each};
use crate::harness::{Daemon, Place, digest, file, skipped};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What happens to a folder that holds `f` with "one\n", reached as `d/f`.
type Deed = fn(&Path);

fn write(path: PathBuf, text: &str) {
    fs::write(path, text).expect("a file");
}

fn set_mtime(path: &Path, time: SystemTime) {
    fs::File::options().write(true).open(path).expect("a file").set_modified(time).expect("a time");
}

/// Same size, and its time set back: what a lazy watcher believes in.
fn change_in_disguise(dir: &Path) {
    let before = fs::metadata(dir.join("f")).expect("a file").modified().expect("a time");
    write(dir.join("f"), "two\n");
    set_mtime(&dir.join("f"), before);
}

fn mkfifo(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo runs").success());
}

const NOTHING_HAPPENED: &[(&str, Deed)] = &[
    ("touch", |dir| set_mtime(&dir.join("f"), SystemTime::now() + Duration::from_secs(5))),
    ("touch to the past", |dir| set_mtime(&dir.join("f"), SystemTime::UNIX_EPOCH)),
    ("chmod", |dir| fs::set_permissions(dir.join("f"), fs::Permissions::from_mode(0o600)).expect("a mode")),
    ("rewrite with the same bytes", |dir| write(dir.join("f"), "one\n")),
    ("rename-over with the same bytes", |dir| {
        write(dir.join("g"), "one\n");
        fs::rename(dir.join("g"), dir.join("f")).expect("a rename");
    }),
    ("away and back", |dir| {
        fs::rename(dir.join("f"), dir.join("g")).expect("a rename");
        fs::rename(dir.join("g"), dir.join("f")).expect("a rename");
    }),
    ("gone and made again", |dir| {
        fs::remove_file(dir.join("f")).expect("a file");
        write(dir.join("f"), "one\n");
    }),
    ("changed and changed back", |dir| {
        write(dir.join("f"), "two\n");
        write(dir.join("f"), "one\n");
    }),
    ("a hard link more", |dir| fs::hard_link(dir.join("f"), dir.join("g")).expect("a link")),
    ("a sibling", |dir| write(dir.join("g"), "x")),
    ("the folder away and back", |dir| {
        fs::rename(dir, dir.with_extension("away")).expect("a rename");
        fs::rename(dir.with_extension("away"), dir).expect("a rename");
    }),
    ("the folder replaced by a copy", |dir| {
        fs::rename(dir, dir.with_extension("away")).expect("a rename");
        fs::create_dir(dir).expect("a folder");
        write(dir.join("f"), "one\n");
    }),
    ("a symlink to the same bytes", |dir| {
        fs::rename(dir.join("f"), dir.join("g")).expect("a rename");
        symlink("g", dir.join("f")).expect("a link");
    }),
];

const SOMETHING_HAPPENED: &[(&str, Deed, &str)] = &[
    ("write", |dir| write(dir.join("f"), "two\n"), "content"),
    ("write of the same size with its time set back", change_in_disguise, "content"),
    ("truncate", |dir| write(dir.join("f"), ""), "content"),
    (
        "append",
        |dir| {
            use std::io::Write;
            let mut file = fs::File::options().append(true).open(dir.join("f")).expect("a file");
            file.write_all(b"x").expect("a write");
        },
        "content",
    ),
    (
        "rename-over",
        |dir| {
            write(dir.join("g"), "two\n");
            fs::rename(dir.join("g"), dir.join("f")).expect("a rename");
        },
        "content",
    ),
    ("remove", |dir| fs::remove_file(dir.join("f")).expect("a file"), "deleted"),
    ("rename", |dir| fs::rename(dir.join("f"), dir.join("g")).expect("a rename"), "renamed"),
    ("remove of the folder", |dir| fs::remove_dir_all(dir).expect("a folder"), "deleted"),
    ("rename of the folder", |dir| fs::rename(dir, dir.with_extension("away")).expect("a rename"), "renamed"),
    (
        "a file where the folder was",
        |dir| {
            fs::remove_dir_all(dir).expect("a folder");
            write(dir.to_owned(), "x");
        },
        "deleted",
    ),
    (
        "a folder",
        |dir| {
            fs::remove_file(dir.join("f")).expect("a file");
            fs::create_dir(dir.join("f")).expect("a folder");
        },
        "kind_changed",
    ),
    (
        "a FIFO",
        |dir| {
            fs::remove_file(dir.join("f")).expect("a file");
            mkfifo(&dir.join("f"));
        },
        "kind_changed",
    ),
    (
        "a socket",
        |dir| {
            fs::remove_file(dir.join("f")).expect("a file");
            drop(std::os::unix::net::UnixListener::bind(dir.join("f")).expect("a socket"));
        },
        "kind_changed",
    ),
    (
        "a symlink to a device",
        |dir| {
            fs::remove_file(dir.join("f")).expect("a file");
            symlink("/dev/null", dir.join("f")).expect("a link");
        },
        "kind_changed",
    ),
    (
        "a symlink to itself",
        |dir| {
            fs::remove_file(dir.join("f")).expect("a file");
            symlink("f", dir.join("f")).expect("a link");
        },
        "deleted",
    ),
    (
        "another folder in its place",
        |dir| {
            fs::rename(dir, dir.with_extension("away")).expect("a rename");
            fs::create_dir(dir).expect("a folder");
            write(dir.join("f"), "two\n");
        },
        "content",
    ),
    (
        "a symlink to another folder in its place",
        |dir| {
            let other = dir.with_extension("other");
            fs::create_dir(&other).expect("a folder");
            write(other.join("f"), "two\n");
            fs::rename(dir, dir.with_extension("away")).expect("a rename");
            symlink(&other, dir).expect("a link");
        },
        "content",
    ),
];

#[test]
fn what_changes_no_byte_cries_no_wolf_and_what_does_is_named() {
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    let same = NOTHING_HAPPENED.iter().map(|&(what, deed)| (what, deed, "fresh"));
    for (number, (what, deed, expected)) in same.chain(SOMETHING_HAPPENED.iter().copied()).enumerate() {
        let session = format!("s{number}");
        let path = format!("d{number}/f");
        place.write(&path, "one\n");
        register(&daemon, &place, &session, &json!([file(&path, "one\n")]));
        assert_eq!(decide(&daemon, &session)["transition"], "resume", "before: {what}");
        deed(&place.root.join(format!("d{number}")));
        let report = decide(&daemon, &session);
        assert_eq!(cause(&report, &path), expected, "{what}: {report}");
        let transition = if expected == "fresh" { "resume" } else { "fresh" };
        assert_eq!(report["transition"], transition, "{what}");
        if expected == "content" {
            let row = row(&report, &path);
            assert_eq!(row["was"], digest("one\n"));
            assert_ne!(row["now"], row["was"], "{what}: {row}");
            assert_eq!(report["typed_summary"]["reload"], json!([path]), "{what}");
        }
        if ["deleted", "renamed"].contains(&expected) {
            assert_eq!(report["typed_summary"]["reload"], json!([]), "{what}: what is gone cannot be read");
        }
        // A revert is a revert, whatever stands in the way.
        let dir = place.root.join(format!("d{number}"));
        if fs::symlink_metadata(&dir).is_ok_and(|found| found.is_dir()) {
            fs::remove_dir_all(&dir).expect("a folder");
        } else {
            let _ = fs::remove_file(&dir);
        }
        place.write(&path, "one\n");
        assert_eq!(cause(&decide(&daemon, &session), &path), "fresh", "after: {what}");
    }
}

#[test]
fn head_is_strict_or_relevant_and_a_checkout_away_and_back_is_nothing() {
    let place = Place::new();
    place.write("a", "one\n");
    place.write("Cargo.lock", "1");
    let first = commit_all(&place);
    let daemon = Daemon::start(&place.home);
    let tell = |session: &str, policy: &str, digest: Option<&str>| {
        let mut head =
            json!({ "name": "git_head", "source": { "kind": "git_head", "path": ".", "policy": policy } });
        if let Some(digest) = digest {
            head["digest"] = digest.into();
        }
        let context = json!({ "session": session, "root": place.root, "results": [file("a", "one\n")], "invariants": [head] });
        daemon.ask("context.register", &context);
    };
    tell("strict", "strict", Some(&first));
    tell("relevant", "relevant", Some(&first));
    tell("unsaid", "strict", None);
    let transitions = || {
        ["strict", "relevant", "unsaid"]
            .map(|session| decide(&daemon, session)["transition"].as_str().expect("one").to_owned())
    };
    assert_eq!(transitions(), ["resume"; 3]);
    git(&place.root, &["checkout", "-q", "-b", "other"]);
    assert_eq!(transitions(), ["resume"; 3], "another branch at the same commit");
    place.write("unrelated", "x");
    let second = commit_all(&place);
    assert_eq!(transitions(), ["fresh", "resume", "fresh"]);
    let report = decide(&daemon, "strict");
    assert_eq!(cause(&report, "git_head"), "head_moved");
    assert_eq!(report["reason"]["code"], "world_changed");
    let report = decide(&daemon, "relevant");
    let head = row(&report, "git_head");
    assert_eq!(
        (&head["status"], &head["was"], &head["now"]),
        (&json!("fresh"), &json!(first), &json!(second)),
        "{head}"
    );
    place.write("a", "two\n");
    commit_all(&place);
    assert_eq!(transitions(), ["fresh"; 3], "its own file was among the changes");
    git(&place.root, &["checkout", "-q", "main"]);
    assert_eq!(transitions(), ["resume"; 3], "away and back");
    git(&place.root, &["checkout", "-q", "--detach"]);
    assert_eq!(transitions(), ["resume"; 3], "detached at the same commit");
    git(&place.root, &["pack-refs", "--all"]);
    git(&place.root, &["gc", "-q", "--prune=now"]);
    assert_eq!(transitions(), ["resume"; 3], "packed");
    fs::rename(place.root.join(".git"), place.root.join("git-away")).expect("a rename");
    for session in ["strict", "relevant", "unsaid"] {
        let report = decide(&daemon, session);
        assert_eq!(cause(&report, "git_head"), "repository_missing", "{report}");
        assert_eq!(
            (&report["transition"], &report["reason"]["code"]),
            (&json!("fresh"), &json!("unknown_critical"))
        );
        assert_eq!(report["counts"]["unknown"], 1);
    }
    fs::rename(place.root.join("git-away"), place.root.join(".git")).expect("a rename");
    assert_eq!(transitions(), ["resume"; 3]);
}

#[test]
fn a_lockfile_alone_is_enough() {
    let place = Place::new();
    place.write("a", "1");
    place.write("Cargo.lock", "1");
    let daemon = Daemon::start(&place.home);
    let lock = json!({ "name": "lock", "source": { "kind": "lockfile", "path": "Cargo.lock" }, "digest": digest("1") });
    let context =
        json!({ "session": "s", "root": place.root, "results": [file("a", "1")], "invariants": [lock] });
    daemon.ask("context.register", &context);
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    place.write("Cargo.lock", "2");
    let report = decide(&daemon, "s");
    assert_eq!(
        (&report["transition"], &report["reason"]["code"]),
        (&json!("fresh"), &json!("world_changed"))
    );
    assert_eq!(report["reason"]["evidence"], json!(["lock"]));
    assert_eq!(report["typed_summary"]["stale_dropped"], json!(["Cargo.lock"]));
}

#[test]
fn volatile_absent_and_what_cannot_be_watched() {
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    place.write("a", "1");
    let told = register(
        &daemon,
        &place,
        "s",
        &json!([
            file("a", "1"),
            { "id": "clock", "source": { "kind": "volatile", "what": "clock" } },
            { "id": "none", "source": { "kind": "absent", "path": "none" } },
            { "id": "under a file", "source": { "kind": "absent", "path": "a/b" } },
            { "id": "long", "source": { "kind": "absent", "path": "x".repeat(300) } },
            { "id": "proc", "critical": false, "source": { "kind": "file", "path": "/proc/self/status" } },
            { "id": "folder", "critical": false, "source": { "kind": "file", "path": "." }, "digest": digest("1") },
            { "id": "late", "critical": false, "source": { "kind": "absent", "path": "a" } },
        ]),
    );
    let causes =
        |report: &Value, ids: &[&str]| -> Vec<String> { ids.iter().map(|id| cause(report, id)).collect() };
    let report = decide(&daemon, "s");
    assert_eq!(report["transition"], "resume", "{told} {report}");
    let ids = ["a", "clock", "none", "under a file", "long", "proc", "folder", "late"];
    assert_eq!(
        causes(&report, &ids),
        ["fresh", "volatile", "fresh", "fresh", "fresh", "unwatchable_fs", "kind_changed", "appeared"],
        "{report}"
    );
    place.write("none", "");
    let report = decide(&daemon, "s");
    assert_eq!((cause(&report, "none").as_str(), &report["transition"]), ("appeared", &json!("fresh")));
    fs::remove_file(place.root.join("none")).expect("a file");
    symlink("nowhere", place.root.join("none")).expect("a link");
    // A symlink to nothing: a lookup still fails, as the agent's did.
    assert_eq!(cause(&decide(&daemon, "s"), "none"), "fresh");
    place.write("nowhere", "x");
    assert_eq!(cause(&decide(&daemon, "s"), "none"), "appeared");
    if rustix::process::geteuid().is_root() {
        skipped("permissions mean nothing to root");
    }
}

#[test]
fn born_stale_is_said_at_registration_and_again() {
    let place = Place::new();
    place.write("a", "2");
    let daemon = Daemon::start(&place.home);
    let told = register(&daemon, &place, "s", &json!([file("a", "1"), file("b", "1")]));
    assert_eq!(
        told["results"][0],
        json!({ "id": "a", "status": "stale", "cause": "born_stale", "baseline": "client" })
    );
    assert_eq!(told["results"][1]["status"], "stale", "{told}");
    assert_eq!(cause(&decide(&daemon, "s"), "a"), "born_stale");
    place.write("a", "1");
    place.write("b", "1");
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    place.write("a", "2");
    assert_eq!(cause(&decide(&daemon, "s"), "a"), "content");
}

#[test]
fn two_sessions_may_have_seen_different_things() {
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    place.write("a", "1");
    let texts = ["1", "2", "3"];
    for text in texts {
        register(&daemon, &place, text, &json!([file("a", text)]));
    }
    for now in ["2", "1", "3", "x"] {
        place.write("a", now);
        for text in texts {
            let expected = if text == now { "resume" } else { "fresh" };
            assert_eq!(decide(&daemon, text)["transition"], expected, "saw {text}, now {now}");
        }
    }
}

#[test]
fn hard_links_and_symlinks_are_one_file() {
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    for name in ["x", "y"] {
        place.write(&format!("{name}/f"), name);
    }
    fs::hard_link(place.root.join("x/f"), place.root.join("hard")).expect("a link");
    symlink("x/f", place.root.join("soft")).expect("a link");
    symlink("x", place.root.join("dir")).expect("a link");
    let paths = ["x/f", "hard", "soft", "dir/f", "dir/../x/f"];
    register(&daemon, &place, "s", &json!(paths.map(|path| file(path, "x"))));
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    for (through, text, expected) in
        [("hard", "1", "content"), ("x/f", "x", "fresh"), ("soft", "2", "content"), ("dir/f", "x", "fresh")]
    {
        write(place.root.join(through), text);
        let report = decide(&daemon, "s");
        for path in paths {
            assert_eq!(cause(&report, path), expected, "{path} after a write through {through}");
        }
    }
    // The links turn elsewhere; the files stay as they are.
    let turn = |link: &str, target: &str| {
        symlink(target, place.root.join("new")).expect("a link");
        fs::rename(place.root.join("new"), place.root.join(link)).expect("a rename");
    };
    turn("soft", "y/f");
    turn("dir", "y");
    let report = decide(&daemon, "s");
    let causes = paths.map(|path| cause(&report, path));
    assert_eq!(causes, ["fresh", "fresh", "content", "content", "fresh"], "{report}");
    // What the link left behind is watched no longer, what it leads to is.
    write(place.root.join("y/f"), "x");
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    turn("soft", "x/f");
    turn("dir", "x");
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    write(place.root.join("hard"), "z");
    let report = decide(&daemon, "s");
    assert!(paths.iter().all(|path| cause(&report, path) == "content"), "{report}");
}

/// `mkdir -p` and a write right behind it, where no folder was before: every folder must be met by a watch or a look.
#[test]
fn what_appears_below_missing_folders_is_seen_every_time() {
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    for round in 0..200 {
        let deep = format!("n{round}/a/b/c/f");
        let results = if round % 2 == 0 {
            json!([{ "id": "deep", "source": { "kind": "absent", "path": deep } }])
        } else {
            json!([{ "id": "deep", "source": { "kind": "file", "path": deep }, "digest": digest("x") }])
        };
        let context = json!({ "session": "s", "root": place.root, "replace": true, "results": results });
        daemon.ask("context.register", &context);
        let (before, after) = if round % 2 == 0 { ("fresh", "appeared") } else { ("deleted", "fresh") };
        assert_eq!(cause(&decide(&daemon, "s"), "deep"), before, "round {round}");
        place.write(&deep, "x");
        assert_eq!(cause(&decide(&daemon, "s"), "deep"), after, "round {round}");
    }
}

/// Writes and decisions in turn, as fast as they go: each decision must know of the write before it.
#[test]
fn every_write_is_known_to_the_decision_behind_it() {
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    place.write("a", "0");
    register(&daemon, &place, "s", &json!([file("a", "0")]));
    for round in 1..=500 {
        let text = if round % 3 == 0 { "0".to_owned() } else { format!("{}", round % 10 + 1) };
        if round % 5 == 0 {
            place.write("b", &text);
            fs::rename(place.root.join("b"), place.root.join("a")).expect("a rename");
        } else {
            place.write("a", &text);
        }
        let expected = if text == "0" { "resume" } else { "fresh" };
        assert_eq!(decide(&daemon, "s")["transition"], expected, "round {round}: {text}");
    }
}

/// A fact lives only as long as everything it rests on, whatever each source is called.
#[test]
fn a_fact_falls_with_any_of_its_sources_under_any_name() {
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    write_each(&place, &["src/a", "src/b", "src/c"], "1");
    symlink("src/a", place.root.join("link")).expect("a link");
    symlink("src", place.root.join("dir")).expect("a link");
    let absolute = place.root.join("src/a");
    let names: Vec<Value> = vec![
        json!("r"),
        json!("src/a"),
        json!("./src/a"),
        json!("src//a"),
        json!("src/../src/a"),
        json!(absolute),
        json!("link"),
        json!("dir/a"),
        json!("dir/../src/a"),
    ];
    let mut facts: Vec<Value> = names.iter().enumerate()
        .map(|(i, name)| json!({ "id": format!("a{i}"), "statement": format!("on {name}"), "sources": [name] })).collect();
    facts.push(json!({ "id": "both", "statement": "both", "sources": ["src/b", "link"] }));
    facts.push(json!({ "id": "b", "statement": "b", "evidence": "src/b:1", "sources": ["src/b"] }));
    facts.push(json!({ "id": "head", "statement": "lock", "sources": ["lock"] }));
    let tell = |session: &str, saw: &str| {
        let mut result = file("r", saw);
        result["source"]["path"] = "src/a".into();
        let lock = json!({ "name": "lock", "source": { "kind": "lockfile", "path": "src/c" }, "digest": digest("1") });
        let context = json!({ "session": session, "root": place.root, "results": [result], "invariants": [lock], "facts": facts });
        daemon.ask("context.register", &context);
    };
    let verified = |session: &str| -> Vec<String> {
        let report = decide(&daemon, session);
        assert_eq!(report["transition"], "fresh", "{report}");
        let facts = report["typed_summary"]["verified_facts"].as_array().expect("facts");
        facts.iter().map(|fact| fact["statement"].as_str().expect("one").to_owned()).collect()
    };
    // Born stale: the disk has other bytes than the agent saw, and only the result knows.
    tell("born", "0");
    assert_eq!(verified("born"), ["b", "lock"]);
    tell("changed", "1");
    assert_eq!(decide(&daemon, "changed")["transition"], "resume");
    place.write("src/a", "2");
    assert_eq!(verified("changed"), ["b", "lock"]);
    place.write("src/c", "2");
    assert_eq!(verified("changed"), ["b"]);
    let report = decide(&daemon, "changed");
    let fact = &report["typed_summary"]["verified_facts"][0];
    assert_eq!(
        (&fact["sources"], &fact["digest"], &fact["evidence"]),
        (&json!(["src/b"]), &json!(digest("1")), &json!("src/b:1"))
    );
    fs::remove_file(place.root.join("src/a")).expect("a file");
    assert_eq!(verified("changed"), ["b"]);
    fs::remove_file(place.root.join("src/b")).expect("a file");
    assert_eq!(verified("changed"), [""; 0]);
}

/// The same view twice: the same bytes, but for names and times.
#[test]
fn the_same_world_is_told_in_the_same_words() {
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    let results: Vec<Value> = (0..30)
        .map(|i| {
            place.write(&format!("f{i}"), "1");
            file(&format!("f{i}"), if i % 3 == 0 { "0" } else { "1" })
        })
        .collect();
    register(&daemon, &place, "s", &json!(results));
    let one = crate::daemon::essence(decide(&daemon, "s")).to_string();
    for _ in 0..5 {
        assert_eq!(crate::daemon::essence(decide(&daemon, "s")).to_string(), one);
    }
}

/// `/proc/self/cwd` leads elsewhere after every chdir, and no event says so.
#[test]
fn a_symlink_that_turns_without_a_word_is_never_fresh() {
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    let path = format!("/proc/{}/cwd/Cargo.toml", std::process::id());
    let content = fs::read_to_string("Cargo.toml").expect("tests run in the crate's folder");
    register(&daemon, &place, "s", &json!([file(&path, &content)]));
    assert_eq!(cause(&decide(&daemon, "s"), &path), "unwatchable_fs");
}
