//! Reports about HEAD and branches: the commit is what counts, the branch is what is said.

use super::head;
use crate::daemon::{cause, commit_all, decide, git, row};
use crate::harness::{Daemon, Place, skipped};
use serde_json::json;
use std::process::Command;

fn repository() -> (Daemon, Place, [String; 2]) {
    let place = Place::new();
    place.write("f", "one\n");
    let first = commit_all(&place);
    let second = commit_all(&place);
    let daemon = Daemon::start(&place.home);
    let context = json!({ "session": "s", "root": place.root, "invariants": [head(".", "strict", &second)] });
    daemon.ask("context.register", &context);
    (daemon, place, [first, second])
}

#[test]
fn r38_commits_are_compared_and_not_names_of_branches() {
    let (daemon, place, [first, second]) = repository();
    for (deed, word) in [
        (&["branch", "-m", "main", "trunk"][..], "fresh"),
        (&["checkout", "-q", "-b", "main"], "fresh"),
        (&["reset", "-q", "--soft", &first], "head_moved"),
        (&["checkout", "-q", "--detach", &second], "fresh"),
        (&["checkout", "-q", "main"], "head_moved"),
        (&["merge", "-q", "--ff-only", &second], "fresh"),
        (&["update-ref", "refs/heads/main", &first], "head_moved"),
    ] {
        git(&place.root, deed);
        let report = decide(&daemon, "s");
        assert_eq!(cause(&report, "git_head"), word, "{deed:?}");
        assert_eq!(report["transition"], if word == "fresh" { "resume" } else { "fresh" }, "{deed:?}");
        if word == "head_moved" {
            let row = row(&report, "git_head");
            assert_eq!((&row["was"], &row["now"]), (&json!(second), &json!(first)), "{deed:?}");
        }
    }
}

#[test]
fn r43_sessions_of_another_branch_are_still_listed_and_come_back_with_it() {
    let (daemon, place, [first, _]) = repository();
    git(&place.root, &["checkout", "-q", "-b", "other", &first]);
    let listed = || {
        // An answer behind which everything has been looked at.
        let transition = decide(&daemon, "s")["transition"].clone();
        let listed = daemon.ask("context.list", &json!({ "root": place.root }));
        (
            transition,
            listed["sessions"][0]["session"].clone(),
            listed["sessions"][0]["counts"]["stale"].clone(),
        )
    };
    assert_eq!(listed(), (json!("fresh"), json!("s"), json!(1)));
    assert_eq!(row(&decide(&daemon, "s"), "git_head")["branch"], "other");
    git(&place.root, &["checkout", "-q", "main"]);
    assert_eq!(listed(), (json!("resume"), json!("s"), json!(0)));
}

#[test]
fn w13_a_commit_moves_head_although_its_objects_are_in_new_folders() {
    let place = Place::new();
    place.write("a", "1");
    let first = commit_all(&place);
    let daemon = Daemon::start(&place.home);
    let context = json!({ "session": "s", "root": place.root, "invariants": [head(".", "strict", &first)] });
    daemon.ask("context.register", &context);
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    place.write("b", "1");
    commit_all(&place);
    assert_eq!(cause(&decide(&daemon, "s"), "git_head"), "head_moved");
}

#[test]
fn w54_a_commit_in_a_repository_whose_head_file_never_changes() {
    let place = Place::new();
    let mut init = Command::new("git");
    let init = init.args(["init", "-q", "-b", "main", "--ref-format=reftable"]).current_dir(&place.root);
    if !init.output().is_ok_and(|output| output.status.success()) {
        return skipped("this git knows no reftable");
    }
    let commit = commit_all(&place);
    let daemon = Daemon::start(&place.home);
    let context = json!({ "session": "s", "root": place.root, "invariants": [head(".", "strict", &commit)] });
    daemon.ask("context.register", &context);
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    commit_all(&place);
    assert_eq!(cause(&decide(&daemon, "s"), "git_head"), "head_moved");
    git(&place.root, &["reset", "-q", "--hard", &commit]);
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
}
