//! What has a reason is no finding, and what has none is, on real folders.

use super::Findings;
use super::isolation::{Before, Finding, Isolation};
use crate::protocol::fork::Fork;
use crate::protocol::fork::record::{Isolated, Isolation as Recorded, Mode, Parent, Stage};
use crate::protocol::path::WirePath;
use crate::world::dart::Died;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

pub(super) const LONG: Duration = Duration::from_secs(600);

/// Forks in a folder that vanishes, under one watch.
pub(super) struct Stage0 {
    pub(super) _temp: TempDir,
    pub(super) base: PathBuf,
    pub(super) isolation: Isolation,
    found: UnboundedReceiver<Finding>,
    /// Whether what is found is kept.
    all_kept: Arc<AtomicBool>,
}

pub(super) fn fork(base: &Path, no: u64, name: &str) -> Fork {
    let home = base.join("forks/s").join(name);
    let at = |name: &str| WirePath(home.join(name));
    for folder in ["workspace/.git/objects/info", "workspace/src/deep", "scratchpad"] {
        fs::create_dir_all(home.join(folder)).unwrap();
    }
    let parent = WirePath(base.join("parent"));
    fs::create_dir_all(&parent.0).unwrap();
    Fork {
        fork: format!("s/{name}"),
        no,
        session: "s".to_owned(),
        hypothesis: name.to_owned(),
        stage: Stage::Ready,
        mode: Mode::Git,
        branch: format!("staled/s/{name}"),
        home: WirePath(home.clone()),
        workspace: at("workspace"),
        scratchpad: at("scratchpad"),
        root: at("workspace"),
        parent: Parent { tree: parent.clone(), root: parent, repository: None, branch: None, head: None },
        base: None,
        baseline: no,
        made_at: 0,
        unsynced_boot: None,
        unmeasurable: false,
        independent: true,
        left_out: Vec::new(),
        copy: Vec::new(),
        differs: Vec::new(),
        missing: Vec::new(),
        shared_by_symlink: Vec::new(),
        isolation: Recorded::default(),
        kept: None,
    }
}

fn start(cookies: &Path, all_kept: &Arc<AtomicBool>) -> (Isolation, UnboundedReceiver<Finding>) {
    let (findings, found) = unbounded_channel();
    // Nobody listens any more when a test has ended.
    let told = Box::new(move |finding| drop(findings.send(finding)));
    let all_kept = Arc::clone(all_kept);
    let all_kept = Box::new(move || all_kept.load(Ordering::SeqCst));
    (Isolation::start(cookies, &Died::default(), told, all_kept).unwrap(), found)
}

impl Stage0 {
    pub(super) fn new() -> Self {
        let temp = tempfile::Builder::new().prefix("staled-").tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        let all_kept = Arc::new(AtomicBool::new(true));
        let (isolation, found) = start(&base.join("cookies"), &all_kept);
        Self { _temp: temp, base, isolation, found, all_kept }
    }

    /// As a daemon that was stopped, or that was killed, and its next one.
    async fn again(&mut self, stopped: bool) {
        if stopped {
            self.isolation.stop().await;
        }
        let (isolation, found) = start(&self.base.join("cookies"), &self.all_kept);
        (self.isolation, self.found) = (isolation, found);
    }

    async fn fork(&self, no: u64, name: &str) -> Fork {
        let fork = fork(&self.base, no, name);
        self.isolation.guard(&fork, Before::New).await.unwrap();
        fork
    }

    /// What has been found of all that happened by now.
    pub(super) async fn found(&mut self) -> Vec<Finding> {
        self.isolation.settled().await;
        std::iter::from_fn(|| self.found.try_recv().ok()).collect()
    }

    async fn paths(&mut self) -> BTreeSet<PathBuf> {
        self.found().await.into_iter().map(|finding| finding.violation.path.0).collect()
    }

    async fn is_quiet(&mut self) -> bool {
        let found = self.found().await;
        assert!(found.is_empty(), "{found:#?}");
        true
    }
}

pub(super) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The lock that whatever runs under `fork exec` holds.
pub(super) fn hold(fork: &Fork) -> File {
    let lock =
        File::options().create(true).truncate(false).write(true).open(fork.home.0.join("exec.lock")).unwrap();
    lock.lock_shared().unwrap();
    lock
}

#[tokio::test]
async fn a_write_that_nobody_asked_for_is_found_once_and_one_that_was_allowed_is_not() {
    let mut stage = Stage0::new();
    let fork = stage.fork(1, "a").await;
    let (asked, other) = (fork.workspace.0.join("src/asked"), fork.workspace.0.join("src/other"));
    stage.isolation.allow(1, &asked, LONG).await;
    fs::write(&asked, "one").unwrap();
    assert!(stage.is_quiet().await);
    for text in ["one", "two"] {
        fs::write(&other, text).unwrap();
        stage.isolation.settled().await;
    }
    let found = stage.found().await;
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((found[0].no, found[0].state), (1, Isolated::Broken));
    assert_eq!((found[0].violation.kind.as_str(), &found[0].violation.path.0), ("undeclared_write", &other));
    fs::write(fork.scratchpad.0.join("note"), "n").unwrap();
    assert_eq!(stage.paths().await, [fork.scratchpad.0.join("note")].into());
}

#[tokio::test]
async fn what_happened_before_it_was_allowed_is_not_excused_by_that() {
    let mut stage = Stage0::new();
    let fork = stage.fork(1, "a").await;
    for number in 0..50 {
        let path = fork.workspace.0.join(format!("f{number}"));
        fs::write(&path, "before").unwrap();
        stage.isolation.allow(1, &path, LONG).await;
        fs::write(&path, "after").unwrap();
        assert_eq!(stage.paths().await, [path].into());
    }
}

#[tokio::test]
async fn what_happened_before_a_command_or_after_it_is_not_its_own() {
    let mut stage = Stage0::new();
    let fork = stage.fork(1, "a").await;
    let at = |name: String| fork.workspace.0.join(name);
    for number in 0..25 {
        fs::write(at(format!("before{number}")), "x").unwrap();
        let lock = hold(&fork);
        let exec = stage.isolation.begin(1).await;
        assert_eq!(stage.isolation.running(1), 1);
        fs::create_dir_all(at(format!("made{number}/a/b"))).unwrap();
        fs::write(at(format!("made{number}/a/b/c")), "x").unwrap();
        drop(lock);
        stage.isolation.end(1, exec).await;
        assert_eq!(stage.isolation.running(1), 0);
        fs::write(at(format!("made{number}/a/b/after")), "x").unwrap();
        let expected = [at(format!("before{number}")), at(format!("made{number}/a/b/after"))].into();
        assert_eq!(stage.paths().await, expected);
    }
}

#[tokio::test]
async fn what_a_command_left_running_counts_until_its_lock_is_free() {
    let mut stage = Stage0::new();
    let fork = stage.fork(1, "a").await;
    let lock = hold(&fork);
    let exec = stage.isolation.begin(1).await;
    stage.isolation.end(1, exec).await;
    assert_eq!(stage.isolation.running(1), 1);
    fs::write(fork.workspace.0.join("child"), "x").unwrap();
    assert!(stage.is_quiet().await);
    drop(lock);
    wait_until("nothing runs", || stage.isolation.running(1) == 0);
    fs::write(fork.workspace.0.join("late"), "x").unwrap();
    assert_eq!(stage.paths().await, [fork.workspace.0.join("late")].into());
}

#[tokio::test]
async fn a_client_that_died_leaves_nothing_that_excuses_others() {
    let mut stage = Stage0::new();
    let fork = stage.fork(1, "a").await;
    let lock = hold(&fork);
    stage.isolation.begin(1).await;
    fs::write(fork.workspace.0.join("own"), "x").unwrap();
    drop(lock);
    wait_until("nothing runs", || stage.isolation.running(1) == 0);
    assert!(stage.is_quiet().await);
    fs::write(fork.workspace.0.join("late"), "x").unwrap();
    assert_eq!(stage.paths().await, [fork.workspace.0.join("late")].into());
}

#[tokio::test]
async fn folders_on_the_way_are_accounted_for_only_if_they_had_to_be_made() {
    let mut stage = Stage0::new();
    let fork = stage.fork(1, "a").await;
    let path = fork.workspace.0.join("src/new/er/f");
    stage.isolation.allow(1, &path, LONG).await;
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "x").unwrap();
    assert!(stage.is_quiet().await);
    let (there, beside) = (fork.workspace.0.join("src"), path.with_file_name("beside"));
    fs::set_permissions(&there, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(&beside, "x").unwrap();
    assert_eq!(stage.paths().await, [there, beside].into());
}

#[tokio::test]
async fn a_leave_ends() {
    let mut stage = Stage0::new();
    let fork = stage.fork(1, "a").await;
    let path = fork.workspace.0.join("f");
    stage.isolation.allow(1, &path, Duration::ZERO).await;
    std::thread::sleep(Duration::from_millis(5));
    fs::write(&path, "x").unwrap();
    assert_eq!(stage.paths().await, [path].into());
}

#[tokio::test]
async fn what_the_daemon_does_itself_is_excused_below_the_path_and_while_it_does_it() {
    let mut stage = Stage0::new();
    let fork = stage.fork(1, "a").await;
    let at = |name: &str| fork.workspace.0.join(name);
    let excused = stage.isolation.excuse(1, &at(".git")).await;
    fs::write(at(".git/packed-refs"), "x").unwrap();
    fs::write(at("src/f"), "x").unwrap();
    drop(excused);
    stage.isolation.settled().await;
    fs::write(at(".git/HEAD"), "x").unwrap();
    assert_eq!(stage.paths().await, [at("src/f"), at(".git/HEAD")].into());
}

#[tokio::test]
async fn reading_is_no_violation() {
    let mut stage = Stage0::new();
    let fork = stage.fork(1, "a").await;
    let path = fork.workspace.0.join("src/f");
    stage.isolation.allow(1, &path, LONG).await;
    fs::write(&path, "x").unwrap();
    stage.isolation.settled().await;
    stage.isolation.forget(1);
    let again = Fork { no: 2, ..fork.clone() };
    stage.isolation.guard(&again, Before::New).await.unwrap();
    for _ in 0..20 {
        fs::read(&path).unwrap();
        assert_eq!(fs::read_dir(fork.workspace.0.join("src")).unwrap().count(), 2);
        File::open(&path).unwrap().metadata().unwrap();
        let _ = crate::world::digest::blake3(&fs::read(&path).unwrap());
    }
    assert!(stage.is_quiet().await);
}

#[tokio::test]
async fn what_goes_from_one_fork_to_another_is_found_at_both() {
    let mut stage = Stage0::new();
    let (a, b) = (stage.fork(1, "a").await, stage.fork(2, "b").await);
    let (from, to) = (a.workspace.0.join("f"), b.workspace.0.join("f"));
    for (no, path) in [(1, &from), (2, &to)] {
        stage.isolation.allow(no, path, LONG).await;
    }
    fs::write(&from, "x").unwrap();
    fs::rename(&from, &to).unwrap();
    let found = stage.found().await;
    let told: BTreeSet<_> = found
        .iter()
        .map(|found| (found.no, found.violation.kind.as_str(), &found.violation.path.0))
        .collect();
    assert_eq!(told, [(1, "moved_across", &from), (2, "moved_across", &to)].into());
    assert!(found.iter().all(|found| found.violation.other.is_some()));
}

#[tokio::test]
async fn a_file_that_is_one_with_another_forks_or_the_parents_is_found_and_no_other() {
    let mut stage = Stage0::new();
    let (a, b) = (stage.fork(1, "a").await, stage.fork(2, "b").await);
    let parents = a.parent.tree.0.join("sub/p");
    fs::create_dir_all(parents.parent().unwrap()).unwrap();
    let (store, others) = (stage.base.join("store"), b.workspace.0.join("src/deep/o"));
    stage.isolation.allow(2, &others, LONG).await;
    for file in [&parents, &store, &others] {
        fs::write(file, "x").unwrap();
    }
    for (source, name) in [(&parents, "p"), (&store, "s"), (&others, "o")] {
        let path = a.workspace.0.join("src").join(name);
        stage.isolation.allow(1, &path, LONG).await;
        fs::hard_link(source, &path).unwrap();
    }
    let mut found = Vec::new();
    let begun = Instant::now();
    while found.len() < 3 && begun.elapsed() < Duration::from_secs(60) {
        found.extend(stage.found().await);
    }
    let told: BTreeSet<_> = found
        .iter()
        .map(|found| (found.no, found.violation.path.0.clone(), found.violation.other.clone()))
        .collect();
    let at = |name: &str| a.workspace.0.join("src").join(name);
    let expected = [
        (1, at("p"), Some(WirePath(parents))),
        (1, at("o"), Some(WirePath(others.clone()))),
        (2, others, Some(WirePath(at("o")))),
    ];
    assert_eq!(told, expected.into());
    assert!(found.iter().all(|found| found.violation.kind == "shared_by_hardlink"));
}

#[tokio::test]
async fn what_changes_while_no_daemon_watches_is_doubt_and_what_did_not_is_none() {
    let mut stage = Stage0::new();
    let fork = stage.fork(1, "a").await;
    let path = fork.workspace.0.join("src/f");
    stage.isolation.allow(1, &path, LONG).await;
    fs::write(&path, "x").unwrap();
    for _ in 0..3 {
        stage.again(true).await;
        stage.isolation.guard(&fork, Before::Watched).await.unwrap();
        assert!(stage.is_quiet().await);
    }
    stage.isolation.stop().await;
    let (gone, ungone) = (start(&stage.base.join("other"), &stage.all_kept), &path);
    stage.isolation = gone.0;
    stage.found = gone.1;
    fs::write(ungone, "y").unwrap();
    stage.isolation.guard(&fork, Before::Watched).await.unwrap();
    let found = stage.found().await;
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((found[0].state, found[0].violation.kind.as_str()), (Isolated::Unknown, "unwatched"));
    assert_eq!(found[0].violation.path.0, path);
    // Something that went shows in the folder that it was in.
    stage.again(true).await;
    fs::remove_file(&path).unwrap();
    stage.isolation.guard(&fork, Before::Watched).await.unwrap();
    assert_eq!(stage.paths().await, [fork.workspace.0.join("src")].into());
}

#[tokio::test]
async fn a_daemon_that_was_killed_knows_until_when_all_was_watched() {
    let mut stage = Stage0::new();
    let fork = stage.fork(1, "a").await;
    wait_until("it was noted", || fork.home.0.join("watched").exists());
    stage.again(false).await;
    stage.isolation.guard(&fork, Before::Watched).await.unwrap();
    assert!(stage.is_quiet().await);
    stage.again(false).await;
    let path = fork.scratchpad.0.join("meanwhile");
    fs::write(&path, "x").unwrap();
    stage.isolation.guard(&fork, Before::Watched).await.unwrap();
    assert_eq!(stage.paths().await, [path, fork.scratchpad.0.clone()].into());
    stage.again(false).await;
    fs::remove_file(fork.home.0.join("watched")).unwrap();
    stage.isolation.guard(&fork, Before::Watched).await.unwrap();
    assert_eq!(stage.paths().await, [fork.workspace.0.clone()].into(), "nothing is known, and that is said");
}

#[tokio::test]
async fn a_violation_that_was_seen_and_not_kept_is_doubt_for_the_next_daemon() {
    let mut stage = Stage0::new();
    let fork = stage.fork(1, "a").await;
    stage.isolation.stop().await;
    let path = fork.workspace.0.join("f");
    stage.all_kept.store(false, Ordering::SeqCst);
    fs::write(&path, "x").unwrap();
    assert_eq!(stage.found().await[0].violation.kind, "undeclared_write");
    stage.again(true).await;
    stage.isolation.guard(&fork, Before::Watched).await.unwrap();
    let found = stage.found().await;
    assert!(found.iter().all(|found| found.state == Isolated::Unknown), "{found:#?}");
    let paths: BTreeSet<_> = found.into_iter().map(|found| found.violation.path.0).collect();
    assert_eq!(paths, [path, fork.workspace.0.clone()].into());
    // That was not kept either, until now.
    stage.isolation.stop().await;
    stage.all_kept.store(true, Ordering::SeqCst);
    stage.again(true).await;
    stage.isolation.guard(&fork, Before::Watched).await.unwrap();
    assert!(stage.is_quiet().await, "what was put off was noted in the end");
}

#[test]
fn what_waits_to_be_kept_or_is_just_being_kept_is_not_kept() {
    let findings = Findings::default();
    assert!(findings.are_kept());
    let keeping = findings.lock();
    assert!(!findings.are_kept());
    drop(keeping);
    let violation = super::violation("unwatched", PathBuf::from("/f"), None);
    findings.lock().push(Finding { no: 1, state: Isolated::Unknown, violation });
    assert!(!findings.are_kept());
}

#[tokio::test]
async fn what_runs_on_while_the_daemon_starts_again_goes_on_to_count() {
    let mut stage = Stage0::new();
    let fork = stage.fork(1, "a").await;
    let lock = hold(&fork);
    stage.isolation.begin(1).await;
    stage.again(true).await;
    fs::write(fork.workspace.0.join("while"), "x").unwrap();
    stage.isolation.guard(&fork, Before::Watched).await.unwrap();
    fs::write(fork.workspace.0.join("after"), "x").unwrap();
    assert!(stage.is_quiet().await);
    assert_eq!(stage.isolation.running(1), 1);
    drop(lock);
    wait_until("nothing runs", || stage.isolation.running(1) == 0);
    fs::write(fork.workspace.0.join("late"), "x").unwrap();
    assert_eq!(stage.paths().await, [fork.workspace.0.join("late")].into());
}

#[tokio::test]
async fn a_fork_that_is_forgotten_is_not_spoken_of() {
    let mut stage = Stage0::new();
    let fork = stage.fork(1, "a").await;
    stage.isolation.forget(1);
    fs::write(fork.workspace.0.join("f"), "x").unwrap();
    assert!(stage.is_quiet().await);
    stage.isolation.deny(1);
    assert_eq!(stage.isolation.denied(1), 0);
    let new = Fork { no: 2, ..fork };
    stage.isolation.guard(&new, Before::New).await.unwrap();
    stage.isolation.deny(2);
    assert_eq!(stage.isolation.denied(2), 1);
    fs::write(new.workspace.0.join("g"), "x").unwrap();
    let found = stage.found().await;
    assert_eq!(found.iter().map(|found| found.no).collect::<Vec<_>>(), [2]);
}
