//! Reports about HEAD and branches. No answer speaks of branches yet; what counts is the commit.

use super::head;
use crate::daemon::{cause, commit_all, decide, git, row};
use crate::harness::{Daemon, Place};
use serde_json::json;

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
    git(&place.root, &["checkout", "-q", "main"]);
    assert_eq!(listed(), (json!("resume"), json!("s"), json!(0)));
}
