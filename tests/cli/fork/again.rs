//! A merge takes its time: what it was let for is asked again when all is ready, and then it lands or nothing does.

use super::super::{Run, program, run_of};
use super::stub::{Everything, Scene, everything, serve_each};
use super::whole::{self, at};
use crate::fork::git;
use crate::harness::wait_until;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A git that does this first when its arguments have that word: where it is, for a `PATH`.
fn meddling(bin: &Path, word: &str, deed: &str) -> std::ffi::OsString {
    fs::create_dir_all(bin).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let real = std::env::split_paths(&path).map(|at| at.join("git")).find(|git| git.is_file()).unwrap();
    let script = format!(
        "#!/bin/sh\ncase \" $* \" in *\" {word} \"*) {deed};; esac\nexec {} \"$@\"\n",
        real.display()
    );
    fs::write(bin.join("git"), script).unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    std::env::join_paths([bin.to_owned()].into_iter().chain(std::env::split_paths(&path))).unwrap()
}

/// Bounded, for whoever waits at a daemon waits long.
fn within_a_minute(mut command: Command) -> Run {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("it has merged or not", || child.try_wait().unwrap().is_some());
    run_of(child.wait_with_output().unwrap())
}

/// A session of a real daemon, whose fork has a commit that touches nothing critical of the parent, and whose parent has one
/// more too, if they are to be merged.
fn worked_in(diverged: bool) -> (whole::Scene, PathBuf) {
    let scene = whole::Scene::new();
    scene.run(&["fork", "create", "s"]).ends(0);
    scene.exec("cache-it", "echo x > new && git add new && git commit -qm 'Cache it'").ends(0);
    let root = &scene.place.root;
    if diverged {
        scene.place.write("beside", "y\n");
        git(root, &["add", "beside"]);
        git(root, &["commit", "-qm", "beside"]);
    }
    // Nothing is copied in the background any more.
    wait_until("it is independent", || scene.json(&["fork", "status", "cache-it"])["independent"] == true);
    let workspace = at(&scene.json(&["fork", "status", "cache-it"])["workspace"]).to_owned();
    (scene, workspace)
}

fn merged_with(scene: &whole::Scene, path: &std::ffi::OsStr) -> Run {
    let mut command = program(&scene.place);
    command.env("PATH", path).env("STALED_SOCKET", &scene.daemon.socket);
    command.args(["fork", "merge", "cache-it", "--apply", "--deadline-ms", "10000"]);
    within_a_minute(command)
}

fn can_confine() -> bool {
    let available = staled::fork::confine::available();
    if let Err(error) = &available {
        let _ = writeln!(std::io::stderr(), "skipped: {error}");
    }
    available.is_ok()
}

#[test]
fn a_critical_file_that_changes_while_it_is_merged_is_noticed() {
    for (word, diverged) in [("pack-objects", false), ("pack-objects", true), ("merge-tree", true)] {
        if !can_confine() {
            return;
        }
        let (scene, workspace) = worked_in(diverged);
        let root = &scene.place.root;
        let edited = root.join("src/clock.rs");
        let deed = format!("echo edited > {}", edited.display());
        let path = meddling(&scene.place.home.with_file_name("bin"), word, &deed);
        let mut before = everything(&[root, &workspace]);
        let run = merged_with(&scene, &path).ends(11);
        assert!(run.out.starts_with("may not merge  s/cache-it"), "{word}: {run:?}");
        assert!(run.out.contains("changed in the parent: src/clock.rs"), "{word}: {run:?}");
        // No pack, no note, no lock: the edit and nothing else.
        before.get_mut(&edited).unwrap().1 = b"edited\n".to_vec();
        stands(&before, &everything(&[root, &workspace]), word);
        // Taken back, it is let again.
        fs::write(&edited, "skew\n").unwrap();
        scene.run(&["fork", "merge", "cache-it", "--apply", "--deadline-ms", "10000"]).ends(0);
        assert!(root.join("new").is_file());
    }
}

#[test]
fn what_is_committed_in_the_parent_while_it_is_merged_is_noticed() {
    if !can_confine() {
        return;
    }
    let (scene, workspace) = worked_in(false);
    let root = &scene.place.root;
    // By itself again, which does not meddle with a commit.
    let deed = format!(
        "(unset GIT_DIR GIT_WORK_TREE GIT_OBJECT_DIRECTORY; \"$0\" -C {} -c user.name=x -c user.email=x@example.org \
         commit -q --allow-empty -m meanwhile)",
        root.display()
    );
    let path = meddling(&scene.place.home.with_file_name("bin"), "pack-objects", &deed);
    let packs = everything(&[&root.join(".git/objects/pack")]);
    let before = everything(&[&workspace]);
    let run = merged_with(&scene, &path).ends(11);
    let said = format!("{} moved while it was merged", root.display());
    assert!(run.out.starts_with("may not merge  s/cache-it") && run.out.contains(&said), "{run:?}");
    assert_eq!(git(root, &["log", "-1", "--format=%s"]), "meanwhile");
    assert_eq!(git(root, &["status", "--porcelain"]), "");
    stands(&packs, &everything(&[&root.join(".git/objects/pack")]), "packs");
    stands(&before, &everything(&[&workspace]), "workspace");
    assert!(!root.join(".git/staled-merge").exists());
}

fn stands(before: &Everything, after: &Everything, story: &str) {
    let new = after.keys().filter(|path| !before.contains_key(*path));
    let moved = before.iter().filter(|(path, what)| after.get(*path) != Some(what)).map(|(path, _)| path);
    let odd: Vec<_> = moved.chain(new).collect();
    assert!(odd.is_empty(), "{story}: {odd:?}");
}

/// Merges with a daemon that says this at first and that afterwards; what it was asked.
fn judged_twice(scene: &Scene, answers: usize, second: &Value, more: &[&str]) -> (Run, usize) {
    let socket = tempfile::Builder::new().prefix("again").tempdir_in(&scene.place.home).unwrap().keep();
    let socket = socket.join("socket");
    let (first, second, asked) = (scene.judgement(), second.clone(), AtomicUsize::new(0));
    let heard = serve_each(&socket, answers, move |_, _| {
        if asked.fetch_add(1, Ordering::Relaxed) == 0 { first.clone() } else { second.clone() }
    });
    let command = scene.command(&socket, &[&["fork", "merge", "s/try", "--apply"], more].concat());
    let run = within_a_minute(command);
    let asked = heard.lock().unwrap().iter().filter(|(method, _)| method == "fork.merge").count();
    (run, asked)
}

#[test]
fn what_is_judged_another_way_or_of_something_else_does_not_land() {
    let cases: [(&str, Value, u8, &str); 9] = [
        ("may_merge", json!(false), 11, "nothing moved"),
        ("isolation_broken", json!(true), 11, ""),
        ("tip", json!("0123"), 11, "moved while it was merged"),
        ("base", json!("0123"), 11, "made again"),
        ("parent_head", json!("0123"), 11, "moved while it was merged"),
        ("parent_branch", json!("side"), 11, "moved while it was merged"),
        ("uncommitted", json!(["left"]), 2, "not committed: left"),
        ("uncommitted", json!(["inner/"]), 2, "a repository of its own"),
        ("tip", Value::Null, 2, "no commit"),
    ];
    for (field, value, code, says) in cases {
        for diverged in [false, true] {
            let scene = Scene::forked();
            if diverged {
                scene.moves("b", "moved\n");
            }
            let (before, mut second) = (scene.everything(), scene.judgement());
            second[field] = value.clone();
            if field == "isolation_broken" {
                second["may_merge"] = json!(false);
            }
            let (run, asked) = judged_twice(&scene, usize::MAX, &second, &[]);
            let run = run.ends(code.into());
            assert!(run.out.contains(says) || run.err.contains(says), "{field}: {run:?}");
            assert_eq!(
                (run.out.starts_with("may not merge  s/try  "), asked),
                (code == 11, 2),
                "{field}: {run:?}"
            );
            stands(&before, &scene.everything(), field);
            assert!(scene.is_at_rest(), "{field}: {:?}", scene.leftovers());
        }
    }
}

#[test]
fn a_program_is_told_that_it_may_not_be_merged_any_more() {
    let scene = Scene::forked();
    let mut second = scene.judgement();
    second["tip"] = json!("0123");
    let told = judged_twice(&scene, usize::MAX, &second, &["--json"]).0.ends(11).json();
    assert_eq!(
        (&told["may_merge"], &told["reason"]["code"]),
        (&json!(false), &json!("merge_stale")),
        "{told}"
    );
    assert!(told["applied"].is_null(), "{told}");
}

#[test]
fn a_daemon_that_let_go_of_the_connection_meanwhile_is_asked_on_another() {
    let scene = Scene::forked();
    let (run, asked) = judged_twice(&scene, 1, &scene.judgement(), &[]);
    run.ends(0);
    assert_eq!((scene.head(), asked, scene.is_at_rest()), (scene.tip(), 2, true));
}

/// It has landed by then, so neither a connection that is closed nor a daemon that is gone takes that back.
#[test]
fn who_is_to_discard_the_others_when_it_is_merged_is_asked_on_another_connection_too() {
    for stopped in [false, true] {
        let scene = Scene::forked();
        let socket = tempfile::Builder::new().prefix("again").tempdir_in(&scene.place.home).unwrap().keep();
        let socket = socket.join("socket");
        let (judged, asked, there) = (scene.judgement(), AtomicUsize::new(0), socket.clone());
        serve_each(&socket, 2, move |method, asking| {
            if asked.fetch_add(1, Ordering::Relaxed) == 1 && stopped {
                fs::remove_file(&there).unwrap();
            }
            match method {
                "fork.merge" => judged.clone(),
                "fork.list" => json!({ "forks": [{ "fork": "s/other" }] }),
                _ => json!({ "fork": asking["fork"], "discarded": true, "kept": null }),
            }
        });
        let merge = ["fork", "merge", "s/try", "--apply", "--discard-others"];
        let run = within_a_minute(scene.command(&socket, &merge)).ends(0);
        assert!(run.out.contains(&scene.tip()[..12]), "what it is now is said: {run:?}");
        assert_eq!(
            (scene.head(), run.out.contains("s/other is discarded")),
            (scene.tip(), !stopped),
            "{run:?}"
        );
        assert_eq!(run.err.contains("it is merged; the others stay: no daemon answers"), stopped, "{run:?}");
    }
}
