//! What went wrong for people who watch files, each report one test named by its id: `w9_…`, `r26_…`.
//!
//! No report is forgotten: an id without a test here stands in [`ELSEWHERE`], with the test that is that report already
//! or with the reason why there is none.

mod builds;
mod changes;
mod context;
mod forks;
mod heads;
mod limits;
mod watching;

use crate::daemon::{cause, decide, register};
use crate::harness::{Daemon, Place, file, lax, skipped};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A daemon with one session, `s`, that saw "one\n" in `d/f` and in `d/g`.
struct Scene {
    daemon: Daemon,
    place: Place,
}

impl Scene {
    fn new() -> Self {
        let place = Place::new();
        place.write("d/f", "one\n");
        place.write("d/g", "one\n");
        let scene = Self { daemon: Daemon::start(&place.home), place };
        register(&scene.daemon, &scene.place, "s", &json!([file("d/f", "one\n"), file("d/g", "one\n")]));
        scene.is("fresh", "nothing");
        scene
    }

    /// Another daemon on the same state, after this has happened with none.
    fn restarted(self, meanwhile: impl FnOnce(&Place)) -> Self {
        self.daemon.stop();
        meanwhile(&self.place);
        Self { daemon: Daemon::start(&self.place.home), place: self.place }
    }

    fn f(&self) -> PathBuf {
        self.place.root.join("d/f")
    }

    fn word(&self, id: &str) -> String {
        cause(&decide(&self.daemon, "s"), id)
    }

    /// What the next answer says of `d/f`.
    fn is(&self, word: &str, deed: &str) {
        assert_eq!(self.word("d/f"), word, "after: {deed}");
    }
}

/// Another process does this in the root.
fn sh(place: &Place, script: &str) {
    let output = Command::new("sh").args(["-ec", script]).current_dir(&place.root).output().expect("sh runs");
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        skipped(&format!("{program} cannot be run"));
    }
    found
}

/// What each script does to `d/f` is seen while a daemon watches, and by the next one when none did.
fn seen_either_way(scripts: &[&str]) {
    let begin = || {
        let scene = Scene::new();
        register(&scene.daemon, &scene.place, "s", &json!([lax("d/f", "one\n"), lax("d/g", "one\n")]));
        scene.is("fresh", "nothing");
        scene
    };
    for script in scripts {
        let scene = begin();
        sh(&scene.place, script);
        scene.is("content", script);
        assert_eq!(scene.word("d/g"), "fresh", "beside it: {script}");
        let scene = begin().restarted(|place| sh(place, script));
        scene.is("content", &format!("{script}, unwatched"));
        assert_eq!(scene.word("d/g"), "fresh", "beside it, unwatched: {script}");
    }
}

/// HEAD as an invariant that must stay at a commit.
fn head(path: &str, policy: &str, commit: &str) -> Value {
    let source = json!({ "kind": "git_head", "path": path, "policy": policy });
    json!({ "name": "git_head", "source": source, "digest": commit })
}

/// Where a report is tested that has no test of its own here, or why it cannot be.
enum Standing {
    Covered(&'static str),
    Untested(&'static str),
}

use Standing::{Covered, Untested};

const ELSEWHERE: &[(&str, Standing)] = &[
    ("W29", Covered("lies::writers::a_writer_who_comes_after_the_look_makes_it_unknown_until_he_is_gone")),
    ("W30", Covered("lies::writers::a_second_store_into_a_page_that_was_hashed_is_never_missed")),
    (
        "W32",
        Covered("lies::silent::what_lies_behind_fuse_is_unknown_unless_it_is_looked_at_for_the_question"),
    ),
    (
        "W33",
        Untested("a second machine, or an NFS server in the kernel; by its type it is judged as FUSE is"),
    ),
    (
        "W34",
        Covered("lies::silent::what_lies_behind_fuse_is_unknown_unless_it_is_looked_at_for_the_question"),
    ),
    ("W36", Covered("lies::limits::what_needs_more_watches_than_there_are_is_unknown_and_nothing_else_is")),
    ("W37", Covered("lies::limits::without_a_watcher_everything_is_unknown_until_there_is_one")),
    ("W49", Covered("lies::clocks::no_file_time_is_believed_over_the_bytes_whether_we_watch_or_not")),
    ("W50", Covered("lies::clocks::no_file_time_is_believed_over_the_bytes_whether_we_watch_or_not")),
    ("W53", Covered("daemon::schema::a_log_that_was_left_behind_is_read_and_nothing_in_the_folder_changes")),
    (
        "W58",
        Untested(
            "notify's thread cannot be ended from outside; a daemon without a watcher is tested in lies::limits",
        ),
    ),
    ("W59", Untested("a share of the processor is measured, never asserted")),
    (
        "W65",
        Untested(
            "a share of the processor is measured, never asserted; that what was refused comes back by itself is lies::limits",
        ),
    ),
    ("R3", Untested("where a transcript ends is known to the hook that resumes it")),
    (
        "R66",
        Untested(
            "a fork is made without a checkout in the parent; that a HEAD which moves breaks at the event is r38",
        ),
    ),
    ("R74", Untested("a fork's session goes by its id wherever it is asked from, and there are no projects")),
    (
        "R81",
        Untested(
            "a merge is made by the command line, in one step that cannot be half taken back: cli::fork",
        ),
    ),
    ("R15", Untested("hooks do not exist yet")),
    ("R17", Untested("hooks do not exist yet")),
    ("R21", Covered("daemon::eol::a_stale_file_says_whether_only_its_line_ends_differ")),
    ("R31", Covered("lies::clocks::no_file_time_is_believed_over_the_bytes_whether_we_watch_or_not")),
    (
        "R32",
        Covered("lies::silent::what_lies_behind_fuse_is_unknown_unless_it_is_looked_at_for_the_question"),
    ),
    ("R39", Untested("no answer speaks of the upstream branch; HEAD is the only ref that is watched")),
    ("R40", Untested("hooks do not exist yet; that HEAD elsewhere is never a resume is r38")),
    ("R42", Untested("hooks do not exist yet")),
];

/// The kinds of report that concern what there is so far.
const KINDS: [&str; 8] = [
    "watching",
    "stale context",
    "false alarm",
    "missed change",
    "HEAD and branch",
    "lockfile, build, database",
    "fork isolation",
    "merge-back",
];

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// The names of all test functions of a source text.
fn tests_in(text: &str) -> impl Iterator<Item = &str> {
    let behind = text.split("#[test]\n").skip(1);
    behind.filter_map(|rest| rest.trim_start().strip_prefix("fn ")?.split('(').next())
}

/// Ids that a test is named by, as the reports spell them.
fn tested() -> BTreeSet<String> {
    let files = crate::daemon::files_below(&tests());
    let texts = files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "rs"));
    let texts = texts.map(|file| std::fs::read_to_string(file).expect("a source"));
    let mut ids = BTreeSet::new();
    for text in texts {
        let prefixes = tests_in(&text).filter_map(|name| name.split('_').next());
        let is_id = |word: &&str| word.starts_with(['w', 'r']) && word[1..].parse::<u32>().is_ok();
        ids.extend(prefixes.filter(is_id).map(str::to_uppercase));
    }
    ids
}

#[test]
fn every_report_is_a_test_or_says_why_not() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/facts/REPORTS.md");
    let Ok(reports) = std::fs::read_to_string(&file) else {
        return skipped("the reports are not beside this repository");
    };
    let rows = reports.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let (id, kind) = (cells.next()?, cells.next()?);
        KINDS.contains(&kind).then(|| id.to_owned())
    });
    let wanted: BTreeSet<String> = rows.collect();
    assert!(wanted.len() > 70, "the reports were not found: {wanted:?}");
    let mut found: BTreeMap<String, u32> = BTreeMap::new();
    for id in tested().into_iter().chain(ELSEWHERE.iter().map(|(id, _)| (*id).to_owned())) {
        *found.entry(id).or_default() += 1;
    }
    let missing: Vec<_> = wanted.iter().filter(|id| !found.contains_key(*id)).collect();
    assert!(missing.is_empty(), "neither tested nor excused: {missing:?}");
    let odd: Vec<_> = found.iter().filter(|(id, count)| **count > 1 || !wanted.contains(*id)).collect();
    assert!(odd.is_empty(), "twice, or no report: {odd:?}");
}

#[test]
fn every_test_that_is_pointed_to_exists() {
    for (id, standing) in ELSEWHERE {
        let (rooms, name) = match standing {
            Covered(path) => path.rsplit_once("::").expect("a module and a function"),
            Untested(why) => {
                assert!(!why.is_empty(), "{id}: why?");
                continue;
            }
        };
        let base = tests().join(rooms.replace("::", "/"));
        let text = [base.with_extension("rs"), base.join("mod.rs")].into_iter().find_map(|file| {
            let text = std::fs::read_to_string(file);
            text.ok()
        });
        let text = text.unwrap_or_else(|| panic!("{id}: there is no module {rooms}"));
        assert!(tests_in(&text).any(|test| test == name), "{id}: {rooms} has no test {name}");
    }
}
