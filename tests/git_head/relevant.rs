//! What lies between two commits: the same paths that git names, in every layout; and what a session is told of it.

use super::{FORMATS, ask, command, git, init};
use crate::daemon::{decide, row};
use crate::harness::{Daemon, Place};
use serde_json::{Value, json};
use staled::session::digest::CommitId;
use staled::world::probe::between::between;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn commit(dir: &Path, name: &str) -> CommitId {
    CommitId::parse(&git(dir, &["rev-parse", name])).unwrap()
}

/// What git says: renames are a path less and a path more.
fn told_by_git(dir: &Path, from: CommitId, to: CommitId) -> BTreeSet<PathBuf> {
    let (from, to) = (from.to_string(), to.to_string());
    let args = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", &from, &to];
    let output = command(dir, &args).output().unwrap();
    assert!(output.status.success());
    let names = output.stdout.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    names.map(|name| PathBuf::from(String::from_utf8(name.to_vec()).unwrap())).collect()
}

fn check(dir: &Path, path: &Path, commits: &[CommitId], when: &str) {
    for &from in commits {
        for &to in commits {
            let ours = between(path, Some(from), Some(to))
                .unwrap_or_else(|| panic!("{when}: {from} or {to} is here"));
            assert!(!ours.more);
            let ours: BTreeSet<PathBuf> = ours.paths.into_iter().collect();
            assert_eq!(ours, told_by_git(dir, from, to), "{when}: {from} → {to}");
        }
    }
}

/// A history of edits, renames, folders that become files, modes, links, and a merge.
fn history(repo: &Path) -> Vec<CommitId> {
    let put = |path: &str, text: &str| {
        fs::create_dir_all(repo.join(path).parent().unwrap()).unwrap();
        fs::write(repo.join(path), text).unwrap();
    };
    let long: String = (0..4000).fold(String::new(), |text, number| text + &format!("{number}\n"));
    let mut commits = Vec::new();
    let mut keep = |message: &str| {
        git(repo, &["add", "-A"]);
        git(repo, &["commit", "-q", "--allow-empty", "-m", message]);
        commits.push(commit(repo, "HEAD"));
    };
    keep("nothing");
    for number in 0..60 {
        put(&format!("deep/{}/f{number}", number % 7), &long);
    }
    put("a", "a");
    put("folder/x", "x");
    put("é ü", "x");
    keep("many");
    for step in 0..12 {
        put(&format!("deep/{}/f{}", step % 7, step * 7 % 60), &format!("{long}{step}"));
        put("a", &step.to_string());
        keep("edit");
    }
    fs::rename(repo.join("deep/3"), repo.join("moved")).unwrap();
    fs::remove_dir_all(repo.join("folder")).unwrap();
    put("folder", "a file now");
    keep("moves");
    git(repo, &["checkout", "-q", "-b", "side"]);
    put("side", "s");
    std::os::unix::fs::symlink("a", repo.join("link")).unwrap();
    keep("side");
    git(repo, &["checkout", "-q", "-"]);
    put("main", "m");
    keep("main");
    git(repo, &["merge", "-q", "--no-edit", "side"]);
    commits.push(commit(repo, "HEAD"));
    commits
}

#[test]
fn the_paths_are_those_that_git_names_loose_packed_borrowed_and_linked() {
    for format in FORMATS {
        let Some((_dir, repo)) = init(format) else { continue };
        let commits = history(&repo);
        let chosen: Vec<CommitId> =
            [0, 1, 5, 13, 14, 15, 16, 17].map(|at: usize| commits[at.min(commits.len() - 1)]).to_vec();
        check(&repo, &repo, &chosen, "loose");
        git(&repo, &["worktree", "add", "-q", "--detach", "../w", &chosen[1].to_string()]);
        check(&repo, &repo.join("../w/deep"), &chosen[..3], "from a linked work tree");
        git(&repo, &["clone", "-q", "--shared", ".", "../borrower"]);
        check(&repo, &repo.join("../borrower"), &chosen[..3], "borrowed");
        git(&repo, &["repack", "-adq", "--depth=50", "--window=50"]);
        check(&repo, &repo, &chosen, "packed");
        git(
            &repo,
            &["-c", "pack.indexVersion=2", "-c", "repack.useDeltaBaseOffset=false", "repack", "-adfq"],
        );
        check(&repo, &repo, &chosen, "packed, bases by id");
        let from_nothing = between(&repo, None, Some(chosen[1])).unwrap();
        assert_eq!(from_nothing.paths.len(), 63, "everything is new after no commit");
    }
}

#[test]
fn what_is_not_here_is_not_known() {
    let Some((_dir, repo)) = init(FORMATS[0]) else { return };
    let commits = history(&repo);
    let url = format!("file://{}", repo.display());
    git(&repo, &["clone", "-q", "--depth=1", &url, "../shallow"]);
    let shallow = repo.join("../shallow");
    let last = *commits.last().unwrap();
    assert!(between(&shallow, Some(last), Some(last)).is_some());
    assert_eq!(
        between(&shallow, Some(commits[3]), Some(last)),
        None,
        "an earlier commit is not in a shallow clone"
    );
    if ask(&repo, &["clone", "-q", "--filter=tree:0", "--no-checkout", &url, "../partial"]).is_some() {
        // Git would fetch, and run what the repository configures for that.
        let partial = repo.join("../partial");
        git(&partial, &["config", "remote.origin.url", "ext::sh -c 'touch ran'"]);
        let _ = between(&partial, Some(commits[3]), Some(last));
        assert!(!partial.join("ran").exists());
    }
}

fn head(id: &str, policy: &str) -> Value {
    json!({ "name": id, "source": { "kind": "git_head", "path": ".", "policy": policy } })
}

fn file(path: &str) -> Value {
    json!({ "id": path, "critical": false, "source": { "kind": "file", "path": path } })
}

fn commit_all(place: &Place) {
    if !place.root.join(".git").exists() {
        git(&place.root, &["init", "-q"]);
    }
    git(&place.root, &["add", "-A"]);
    git(&place.root, &["commit", "-q", "-m", "c"]);
}

#[test]
fn a_moved_head_says_how_many_paths_differ_and_which_of_them_are_the_sessions() {
    let place = Place::new();
    for path in ["a", "b", "src/c", "src/d", "e"] {
        place.write(path, "1");
    }
    commit_all(&place);
    let first = git(&place.root, &["rev-parse", "HEAD"]);
    let daemon = Daemon::start(&place.home);
    let results = json!([
        file("a"), file("b"), file("./src/c"),
        { "id": "tree", "critical": false, "source": { "kind": "tree", "path": "src" } },
        { "id": "make", "critical": false, "source": { "kind": "command", "command": "make",
          "inputs": [{ "kind": "file", "path": "src/d" }] } },
    ]);
    let context = json!({ "session": "s", "root": place.root, "results": results,
                          "invariants": [head("relevant", "relevant")] });
    daemon.ask("context.register", &context);
    let strict = json!({ "session": "t", "root": place.root, "invariants": [head("strict", "strict")] });
    daemon.ask("context.register", &strict);
    assert_eq!(row(&decide(&daemon, "s"), "relevant")["paths_changed"], Value::Null);

    for path in ["a", "src/c", "e"] {
        place.write(path, "2");
    }
    commit_all(&place);
    let told = |daemon: &Daemon| {
        let report = decide(daemon, "s");
        let row = row(&report, "relevant");
        assert_eq!((&row["status"], &row["branch"]), (&json!("fresh"), &json!("main")), "{report:#}");
        let text = report["reason"]["text"].as_str().unwrap().to_owned();
        (row["paths_changed"].clone(), text)
    };
    let expected = json!({ "number": 3, "sources_number": 3, "sources": ["a", "./src/c", "tree"] });
    let (paths, text) = told(&daemon);
    assert_eq!(paths, expected);
    assert!(text.contains("where 3 paths differ, a and 2 more of this session among them"), "{text}");
    let report = decide(&daemon, "t");
    assert_eq!(row(&report, "strict")["paths_changed"]["number"], 3);
    assert!(report["reason"]["text"].as_str().unwrap().contains("none of this session's"), "{report:#}");

    // A session that came later and one that learned more are told as well.
    let late = json!({ "session": "u", "root": place.root, "results": [file("b")],
        "invariants": [{ "name": "late", "digest": first, "source": { "kind": "git_head", "path": ".", "policy": "relevant" } }] });
    daemon.ask("context.register", &late);
    let paths = row(&decide(&daemon, "u"), "late")["paths_changed"].clone();
    assert_eq!(paths, json!({ "number": 3, "sources_number": 0, "sources": [] }));
    daemon.ask("context.record", &json!({ "session": "u", "results": [file("e")] }));
    let paths = row(&decide(&daemon, "u"), "late")["paths_changed"].clone();
    assert_eq!(paths, json!({ "number": 3, "sources_number": 1, "sources": ["e"] }));

    daemon.stop();
    let daemon = Daemon::start(&place.home);
    assert_eq!(told(&daemon).0, expected, "after a restart");
    place.write("src/d", "2");
    commit_all(&place);
    let (paths, _) = told(&daemon);
    assert_eq!(paths["sources"], json!(["a", "./src/c", "tree", "make"]));
    git(&place.root, &["checkout", "-q", "-B", "main", &first]);
    let report = decide(&daemon, "s");
    assert_eq!(
        (&row(&report, "relevant")["paths_changed"], &report["transition"]),
        (&Value::Null, &json!("resume"))
    );
}

#[test]
fn a_commit_that_is_gone_leaves_the_number_unknown_and_says_so() {
    let place = Place::new();
    place.write("a", "1");
    commit_all(&place);
    let daemon = Daemon::start(&place.home);
    let context = json!({ "session": "s", "root": place.root, "results": [file("b")],
                          "invariants": [head("head", "relevant")] });
    place.write("b", "1");
    daemon.ask("context.register", &context);
    daemon.stop();
    git(&place.root, &["commit", "-q", "--amend", "--allow-empty", "-m", "other"]);
    git(&place.root, &["reflog", "expire", "--expire=all", "--all"]);
    git(&place.root, &["gc", "-q", "--prune=now"]);
    let daemon = Daemon::start(&place.home);
    let report = decide(&daemon, "s");
    let told = &row(&report, "head")["paths_changed"];
    assert_eq!(told, &json!({ "number": null, "sources_number": 0, "sources": [] }), "{report:#}");
    assert!(report["reason"]["text"].as_str().unwrap().contains("not known"), "{report:#}");
}
