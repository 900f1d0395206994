//! Worlds that do their worst to a guard: queues that overflow, folders that change places, limits.

use super::guard::Post;
use crate::harness::{skipped, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use staled::world::dart::Died;
use staled::world::guard::{Guard, Guarded, Seen};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::channel;
use std::time::Duration;

#[test]
fn a_folder_that_is_renamed_is_watched_under_its_new_name() {
    let post = Post::guarding();
    for round in 0..100 {
        let (from, to) = (post.at(&format!("n{round}")), post.at(&format!("n{}", round + 1)));
        if round == 0 {
            fs::create_dir_all(from.join("in/deep")).expect("folders");
        }
        fs::rename(&from, &to).expect("it moves");
        fs::write(to.join("in/deep/f"), round.to_string()).expect("a file");
        let changed = post.changed();
        assert!(
            [&from, &to, &to.join("in/deep/f")].iter().all(|path| changed.contains(*path)),
            "round {round}: {changed:?}"
        );
        fs::write(to.join("in/deep/f"), "again").expect("a file");
        assert_eq!(post.changed(), [to.join("in/deep/f")].into(), "round {round}");
    }
}

#[test]
fn folders_that_change_places_are_both_watched() {
    let post = Post::guarding();
    for name in ["a/in", "b/in"] {
        fs::create_dir_all(post.at(name)).expect("folders");
    }
    for round in 0..100 {
        let aside = post.at("aside");
        fs::rename(post.at("a"), &aside)
            .and_then(|()| fs::rename(post.at("b"), post.at("a")))
            .expect("they move");
        fs::rename(&aside, post.at("b")).expect("they move");
        if round % 2 == 0 {
            post.seen();
        }
        for name in ["a/in/f", "b/in/f"] {
            fs::write(post.at(name), round.to_string()).expect("a file");
        }
        let changed = post.changed();
        assert!(
            ["a/in/f", "b/in/f"].iter().all(|name| changed.contains(&post.at(name))),
            "round {round}: {changed:?}"
        );
    }
}

#[test]
fn a_folder_that_is_removed_and_made_again_is_watched() {
    let post = Post::guarding();
    let folder = post.at("again");
    for round in 0..200 {
        fs::create_dir_all(folder.join("in")).expect("folders");
        if round % 3 == 0 {
            post.seen();
        }
        let held = (round % 2 == 0).then(|| fs::File::open(folder.join("in")).expect("it opens"));
        fs::remove_dir_all(&folder).expect("it goes");
        fs::create_dir_all(folder.join("in")).expect("folders");
        fs::write(folder.join("in/f"), "x").expect("a file");
        assert!(post.changed().contains(&folder.join("in/f")), "round {round}");
        // The end of the old one comes late, under the name of the new one.
        drop(held);
        fs::write(folder.join("in/f"), "y").expect("a file");
        assert!(post.changed().contains(&folder.join("in/f")), "round {round}: after the end of the old one");
        fs::write(folder.join("in/f"), "z").expect("a file");
        assert_eq!(post.changed(), [folder.join("in/f")].into(), "round {round}");
    }
}

#[test]
fn a_folder_that_becomes_a_symlink_takes_no_watch_along() {
    let post = Post::guarding();
    let outside = post.base.join("outside");
    fs::create_dir(&outside).expect("a folder");
    for round in 0..200 {
        let (folder, aside) = (post.at("turns"), post.at("aside"));
        fs::create_dir(&folder).expect("a folder");
        let target = if round % 2 == 0 { &outside } else { &aside };
        fs::rename(&folder, &aside).and_then(|()| symlink(target, &folder)).expect("it turns");
        if round % 3 == 0 {
            post.seen();
        }
        fs::remove_file(&folder).expect("it goes");
        post.seen();
        fs::write(aside.join("f"), "x").expect("a file");
        fs::write(outside.join("f"), "x").expect("a file");
        assert_eq!(post.changed(), [aside.join("f")].into(), "round {round}");
        fs::remove_dir_all(&aside).expect("it goes");
        post.seen();
    }
}

#[test]
fn a_tree_that_is_replaced_itself_is_told_and_the_new_one_is_watched() {
    let post = Post::guarding();
    let (tree, aside) = (post.base.join("1/w"), post.base.join("1/aside"));
    fs::rename(&tree, &aside).expect("it moves");
    fs::create_dir_all(tree.join("src")).expect("folders");
    assert!(post.changed().contains(&tree));
    fs::write(tree.join("src/f"), "x").expect("a file");
    assert!(post.changed().contains(&tree.join("src/f")));
    fs::remove_dir_all(&tree).expect("it goes");
    assert!(post.changed().contains(&tree));
}

/// The guard is in a process of its own, where this test runs once more, and which stands still while too much happens.
#[test]
fn events_that_are_lost_are_told_to_be_and_what_changed_is_found_all_the_same() {
    const INSIDE: &str = "STALED_TEST_GUARDED";
    if let Some(base) = std::env::var_os(INSIDE) {
        return guard_and_say(Path::new(&base));
    }
    let post = Post::new();
    let name =
        "fork_isolation::twins::events_that_are_lost_are_told_to_be_and_what_changed_is_found_all_the_same";
    let mut inside = Command::new(std::env::current_exe().expect("it has a path"));
    let guarding = inside.args(["--exact", name]).env(INSIDE, &post.base).spawn().expect("it runs");
    let mut guarding = Ended(guarding);
    fs::write(post.at("src/kept"), "x").expect("a file");
    said(&post.base, "0");
    let pid = Pid::from_child(&guarding.0);
    kill_process(pid, Signal::STOP).expect("it is ours");
    let max = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").expect("inotify is there");
    let files = max.trim().parse::<usize>().expect("a number") / 3 + 100;
    let mut written: Vec<PathBuf> =
        (0..files).map(|number| post.at("src").join(number.to_string())).collect();
    fs::create_dir_all(post.at("made/in/it")).expect("folders");
    written.push(post.at("made/in/it/f"));
    written.iter().for_each(|path| fs::write(path, "x").expect("a file"));
    // Until it is time for a cookie that nobody asked for, which is then the first thing that is done.
    std::thread::sleep(Duration::from_millis(2_100));
    kill_process(pid, Signal::CONT).expect("it is ours");
    let seen = said(&post.base, "1");
    assert!(
        seen.contains("Gap") && seen.contains("max_queued_events"),
        "{}",
        &seen[..seen.len().min(10_000)]
    );
    let missed: Vec<_> = written.iter().filter(|path| !seen.contains(&format!("{path:?} "))).collect();
    assert!(missed.is_empty(), "{missed:?}");
    assert!(!seen.contains("src/kept"), "nothing happened there");
    fs::write(post.at("made/in/it/f"), "y").expect("a file");
    let seen = said(&post.base, "2");
    assert!(
        seen.contains("Changed") && seen.contains("made/in/it/f"),
        "what was made meanwhile is watched: {seen}"
    );
    said(&post.base, "end");
    assert!(guarding.0.wait().expect("it ran").success());
}

/// A process that ends with the test, however that ends.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // One that has ended by itself is no trouble.
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// Asks the other process what it has been told by now.
fn said(base: &Path, round: &str) -> String {
    fs::write(base.join(format!("ask-{round}")), "").expect("a file");
    let said = base.join(format!("said-{round}"));
    wait_until("it says what it was told", || said.exists());
    fs::read_to_string(said).expect("a file")
}

fn guard_and_say(base: &Path) {
    let (told, hear) = channel();
    let tell = Box::new(move |seen| drop(told.send(seen)));
    let guard = Guard::start(&base.join("cookies-too"), tell, &Died::default()).expect("it starts");
    let folders = vec![base.join("1/w"), base.join("1/s")];
    guard.guard(Guarded { no: 1, folders, apart_from: Vec::new() }, None).expect("it is watched");
    for round in ["0", "1", "2", "end"] {
        wait_until("it is asked", || base.join(format!("ask-{round}")).exists());
        let (done, passed) = channel::<()>();
        guard.barrier(Box::new(move |_| drop(done)));
        assert!(passed.recv().is_err());
        let seen: Vec<String> = hear.try_iter().map(|seen| format!("{seen:?}\n")).collect();
        fs::write(base.join("saying"), seen.concat()).expect("a file");
        fs::rename(base.join("saying"), base.join(format!("said-{round}"))).expect("it moves");
    }
}

#[test]
fn a_guard_whose_cookies_are_taken_away_goes_on() {
    let post = Post::guarding();
    fs::remove_dir_all(post.base.join("cookies")).expect("they go");
    fs::write(post.at("f"), "x").expect("a file");
    let seen = post.seen();
    let told = |path: &Path| {
        seen.iter().any(|seen| matches!(seen, Seen::Changed { path: told, .. } if told == path))
    };
    assert!(told(&post.at("f")), "{seen:?}");
    fs::write(post.at("g"), "x").expect("a file");
    assert!(post.changed().contains(&post.at("g")));
}

/// In a user namespace of its own, where this test runs once more with fewer watches.
#[test]
fn a_place_for_which_there_are_not_enough_watches_is_said_to_be_watched_in_part() {
    const INSIDE: &str = "STALED_TEST_WATCHES";
    if std::env::var_os(INSIDE).is_some() {
        let post = Post::new();
        (0..40).for_each(|number| fs::create_dir(post.at(&format!("d{number}"))).expect("a folder"));
        post.guard(1, None);
        let seen = post.seen();
        let limited = seen
            .iter()
            .filter(|seen| matches!(seen, Seen::Limit { no: 1, why } if why.contains("max_user_watches")));
        assert_eq!(limited.count(), 1, "{seen:?}");
        return;
    }
    let shell = r#"echo 20 > /proc/sys/user/max_inotify_watches && exec "$@""#;
    let may = Command::new("unshare").args(["-Ur", "sh", "-c", shell, "sh", "true"]).output();
    if !may.is_ok_and(|output| output.status.success()) {
        return skipped("no user namespace can be made");
    }
    let name =
        "fork_isolation::twins::a_place_for_which_there_are_not_enough_watches_is_said_to_be_watched_in_part";
    let mut inside = Command::new("unshare");
    inside.args(["-Ur", "sh", "-c", shell, "sh"]).arg(std::env::current_exe().expect("it has a path"));
    let output = inside.args(["--exact", name]).env(INSIDE, "1").output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
