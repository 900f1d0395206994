//! Reports about watching: what a watcher loses when names, folders and inodes come and go.

use super::{Scene, has, head, seen_either_way, sh};
use crate::daemon::{cause, commit_all, decide, git, register};
use crate::harness::{Daemon, Place, digest, file, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[test]
fn w3_a_folder_that_could_not_be_read_is_watched_when_it_can() {
    let scene = Scene::new();
    let mode = |mode| fs::set_permissions(scene.place.root.join("d"), fs::Permissions::from_mode(mode));
    // Another name for it, for whoever may not go through the folder.
    fs::hard_link(scene.f(), scene.place.root.join("other")).expect("a link");
    mode(0o000).expect("a mode");
    scene.place.write("other", "two\n");
    assert_ne!(scene.word("d/f"), "fresh");
    mode(0o755).expect("a mode");
    scene.is("content", "the mode is back");
    scene.place.write("d/f", "one\n");
    scene.is("fresh", "a write back");
}

/// The flag is easy to miss, and an event that carries it has neither a kind nor a path that anybody would look at.
#[test]
fn w4_whatever_takes_events_asks_first_whether_some_were_lost() {
    let sources = crate::daemon::files_below(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let mut takers = 0;
    for source in sources {
        let text = fs::read_to_string(&source).expect("a source");
        let code = text.split("#[cfg(test)]").next().expect("there is a first part");
        for taker in code.split("notify::Result<Event>) {").skip(1) {
            takers += 1;
            let first = taker.split("Ok(").nth(1).expect("it matches on the event");
            assert!(first.starts_with("event) if event.need_rescan()"), "{}: {first}", source.display());
        }
    }
    assert_eq!(takers, 2, "events come in at the world's marks, and at the watch over forks");
}

fn knows_of_nothing_at(daemon: &Daemon, place: &Place, path: &str) {
    let results = json!([{ "id": path, "source": { "kind": "absent", "path": path } }]);
    let context = json!({ "session": "s", "root": place.root, "replace": true, "results": results });
    let told = daemon.ask("context.register", &context);
    assert_eq!(told["results"][0]["status"], "fresh", "{told}");
}

#[test]
fn w9_folders_made_in_one_breath_are_all_heard() {
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    knows_of_nothing_at(&daemon, &place, "a/b/c/f");
    sh(&place, "mkdir -p a/b/c && echo 1 >a/b/c/f");
    assert_eq!(cause(&decide(&daemon, "s"), "a/b/c/f"), "appeared");
}

#[test]
fn w10_and_again_after_they_were_removed() {
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    knows_of_nothing_at(&daemon, &place, "a/b/c/f");
    for round in 0..200 {
        place.write("a/b/c/f", "1");
        assert_eq!(cause(&decide(&daemon, "s"), "a/b/c/f"), "appeared", "round {round}");
        fs::remove_dir_all(place.root.join("a")).expect("a folder");
        assert_eq!(cause(&decide(&daemon, "s"), "a/b/c/f"), "fresh", "round {round}");
    }
}

#[test]
fn w12_a_copied_folder_with_old_times_is_read() {
    seen_either_way(&[
        "mkdir bak; echo two >bak/f; echo one >bak/g; touch -r d/f bak/f; rm -rf d; cp -a bak d",
        "cp -a d bak; echo two >bak/f; touch -r d/f bak/f; rm -rf d; cp -a bak d",
    ]);
}

fn replace(scene: &Scene, text: &str) {
    scene.place.write("d/tmp", text);
    fs::rename(scene.place.root.join("d/tmp"), scene.f()).expect("a rename");
}

#[test]
fn w16_an_inode_that_was_replaced_while_it_was_held_is_let_go() {
    let scene = Scene::new();
    let _held = fs::File::open(scene.f()).expect("a file");
    for round in 0..3 {
        replace(&scene, "one\n");
        scene.is("fresh", &format!("replacement {round}"));
    }
    // By another name, in a folder that nobody watches: only who watches the new inode hears of it.
    let elsewhere = scene.place.home.join("h");
    fs::hard_link(scene.f(), &elsewhere).expect("a link");
    fs::write(&elsewhere, "two\n").expect("a file");
    scene.is("content", "a write in place");
}

#[test]
fn w17_writes_go_on_being_seen_after_an_editor_saved() {
    let scene = Scene::new();
    for round in 0..20 {
        replace(&scene, if round % 2 == 0 { "one\n" } else { "new\n" });
        let text = if round % 3 == 0 { "one\n" } else { "two\n" };
        scene.place.write("d/f", text);
        scene.is(if text == "one\n" { "fresh" } else { "content" }, &format!("save and write {round}"));
    }
}

#[test]
fn w20_no_write_slips_in_between_a_new_folder_and_its_watch() {
    let scene = Scene::new();
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    for round in 0..300 {
        fs::remove_dir_all(scene.place.root.join("d")).expect("a folder");
        fs::create_dir(scene.place.root.join("d")).expect("a folder");
        let same = random.bool();
        let mut file = fs::File::create(scene.f()).expect("a file");
        for part in [if same { "on" } else { "tw" }, if same { "e\n" } else { "o\n" }] {
            std::io::Write::write_all(&mut file, part.as_bytes()).expect("a write");
            std::thread::sleep(Duration::from_micros(random.u64(..400)));
        }
        drop(file);
        scene.is(if same { "fresh" } else { "content" }, &format!("round {round}, seed {seed}"));
    }
}

#[test]
fn w21_a_folder_or_root_that_comes_back_is_watched_however_soon() {
    let scene = Scene::new();
    for gap in [0, 1, 10, 100] {
        for below in [scene.place.root.join("d"), scene.place.root.clone()] {
            for (text, word) in [("two\n", "content"), ("one\n", "fresh")] {
                fs::remove_dir_all(&below).expect("a folder");
                std::thread::sleep(Duration::from_millis(gap));
                scene.place.write("d/f", text);
                scene.is(word, &format!("{} was away for {gap} ms", below.display()));
            }
        }
    }
}

#[test]
fn w23_a_root_that_was_cloned_again_is_watched() {
    let place = Place::new();
    place.write("f", "one\n");
    let commit = commit_all(&place);
    let origin = place.root.with_file_name("origin");
    fs::rename(&place.root, &origin).expect("a rename");
    let clone = || git(place.home.parent().expect("it has one"), &["clone", "-q", "origin", "root"]);
    clone();
    let daemon = Daemon::start(&place.home);
    let context = json!({ "session": "s", "root": place.root, "results": [file("f", "one\n")],
        "invariants": [head(".", "strict", &commit)] });
    daemon.ask("context.register", &context);
    for round in 0..3 {
        assert_eq!(decide(&daemon, "s")["transition"], "resume", "clone {round}");
        fs::remove_dir_all(&place.root).expect("a folder");
        let report = decide(&daemon, "s");
        let words = [cause(&report, "f"), cause(&report, "git_head")];
        assert_eq!(words, ["deleted", "repository_missing"], "round {round}");
        clone();
    }
    place.write("f", "two\n");
    assert_eq!(cause(&decide(&daemon, "s"), "f"), "content");
    commit_all(&place);
    assert_eq!(cause(&decide(&daemon, "s"), "git_head"), "head_moved");
}

#[test]
fn w26_a_write_through_a_name_that_was_made_later_is_seen() {
    let scene = Scene::new();
    let elsewhere = scene.place.home.join("h");
    fs::hard_link(scene.f(), &elsewhere).expect("a link");
    fs::write(&elsewhere, "two\n").expect("a file");
    scene.is("content", "a write through another name");
    fs::write(&elsewhere, "one\n").expect("a file");
    scene.is("fresh", "a write back");
}

#[test]
fn w27_behind_a_symlink_both_the_file_and_the_link_are_watched() {
    let place = Place::new();
    place.write("files/t", "one\n");
    place.write("files/u", "two\n");
    fs::create_dir(place.root.join("links")).expect("a folder");
    symlink("../files/t", place.root.join("links/t")).expect("a link");
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([file("links/t", "one\n")]));
    let is = |word: &str, deed: &str| assert_eq!(cause(&decide(&daemon, "s"), "links/t"), word, "{deed}");
    is("fresh", "nothing");
    place.write("files/t", "two\n");
    is("content", "a write to the file");
    place.write("files/t", "one\n");
    is("fresh", "a write back");
    sh(&place, "ln -sfn ../files/u links/t");
    is("content", "another target");
}

#[test]
fn w28_a_folder_that_is_a_symlink_may_turn() {
    let place = Place::new();
    place.write("here/f", "one\n");
    place.write("other/f", "two\n");
    symlink("here", place.root.join("dirlink")).expect("a link");
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([file("dirlink/f", "one\n")]));
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    sh(&place, "ln -sfn other dirlink");
    assert_eq!(cause(&decide(&daemon, "s"), "dirlink/f"), "content");
    place.write("other/f", "one\n");
    assert_eq!(cause(&decide(&daemon, "s"), "dirlink/f"), "fresh");
}

#[test]
fn w41_what_was_moved_to_the_trash_is_gone_and_a_copy_in_its_place_is_looked_at() {
    let scene = Scene::new();
    sh(&scene.place, "mkdir -p ../trash; mv d ../trash/");
    scene.is("deleted", "in the trash");
    sh(&scene.place, "echo two >../trash/d/f");
    scene.is("deleted", "a write in the trash");
    sh(&scene.place, "cp -r ../trash/d d");
    scene.is("content", "another copy");
    sh(&scene.place, "rm -rf d; mkdir d; echo one >d/f; echo one >d/g");
    scene.is("fresh", "made again");
}

#[test]
fn w44_a_checkout_of_five_thousand_files_is_known_at_once() {
    let place = Place::new();
    let names: Vec<String> = (0..5_000).map(|number| format!("d{}/f{number}", number % 50)).collect();
    names.iter().for_each(|name| place.write(name, "one\n"));
    commit_all(&place);
    // Another commit, which has other bytes in every file, made without writing any of them.
    sh(
        &place,
        "blob=$(echo two | git hash-object -w --stdin); export GIT_INDEX_FILE=.git/other
        git ls-tree -r HEAD | sed \"s/[0-9a-f]\\{40\\}/$blob/\" | git update-index --index-info
        export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a
        git branch other $(git commit-tree -m c -p HEAD $(git write-tree))",
    );
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!(names.iter().map(|name| file(name, "one\n")).collect::<Vec<_>>()));
    let ask = || daemon.ask("decide", &json!({ "session": "s", "rows": "stale", "deadline_ms": 10_000 }));
    let counts = |report: &Value| [&report["counts"]["fresh"], &report["counts"]["stale"]].map(Value::as_u64);
    assert_eq!(counts(&ask()), [Some(5_000), Some(0)]);
    git(&place.root, &["checkout", "-q", "other"]);
    let report = ask();
    assert_eq!(report["counts"]["fresh"], 0, "{}", report["counts"]);
    wait_until("all are verified", || counts(&ask()) == [Some(0), Some(5_000)]);
}

#[test]
fn w47_older_is_different_too() {
    let older = "echo two >old; touch -d 2001-01-01 old; cp -p old d/f";
    seen_either_way(&[older, "echo two >d/f; touch -d 2001-01-01 d/f"]);
}

#[test]
fn w48_a_copy_that_keeps_times_is_seen() {
    if has("rsync") {
        let new = "mkdir new; echo two >new/f; touch -d 2001-01-01 new/f";
        let plain = format!("{new}; rsync -t new/f d/f");
        let in_place = format!("{new}; rsync -t --inplace new/f d/f");
        seen_either_way(&[&plain, &in_place]);
    }
}

#[test]
fn w57_folders_may_vanish_while_they_are_being_watched() {
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                place.write("a/b/c/f", "one\n");
                fs::remove_dir_all(place.root.join("a")).expect("a folder");
            }
        });
        for _ in 0..100 {
            // A refusal fails the test; what was found is whatever was there.
            let told = register(&daemon, &place, "s", &json!([file("a/b/c/f", "one\n")]));
            assert_eq!(told["results"].as_array().map(Vec::len), Some(1), "{told}");
        }
        stop.store(true, Ordering::Relaxed);
    });
    for (text, word) in [("one\n", "fresh"), ("two\n", "content")] {
        place.write("a/b/c/f", text);
        assert_eq!(cause(&decide(&daemon, "s"), "a/b/c/f"), word);
    }
}

#[test]
fn w62_what_was_only_read_is_watched() {
    let place = Place::new();
    place.write("f", "one\n");
    let daemon = Daemon::start(&place.home);
    let told = register(
        &daemon,
        &place,
        "s",
        &json!([{ "id": "f", "tool": "Read", "source": { "kind": "file", "path": "f" } }]),
    );
    assert_eq!(told["results"][0]["baseline"], "registration", "{told}");
    place.write("f", "two\n");
    let report = decide(&daemon, "s");
    assert_eq!(cause(&report, "f"), "content");
    assert_eq!(crate::daemon::row(&report, "f")["was"], digest("one\n"));
}

#[test]
fn w64_a_folder_that_is_made_again_and_again_is_watched_each_time() {
    let scene = Scene::new();
    for round in 0..50 {
        fs::remove_dir_all(scene.place.root.join("d")).expect("a folder");
        fs::create_dir(scene.place.root.join("d")).expect("a folder");
        scene.is("deleted", &format!("gone, {round}"));
        let (text, word) = if round % 2 == 0 { ("two\n", "content") } else { ("one\n", "fresh") };
        scene.place.write("d/f", text);
        scene.is(word, &format!("again, {round}"));
    }
}
