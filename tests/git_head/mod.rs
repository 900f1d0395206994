//! `head()` against the real git: the same answer after every operation, and never a change that none of the files it
//! had named before would have shown.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops at the first surprise, and says its seed"
)]

mod damage;
mod race;
mod relevant;

use crate::harness::{say, skipped};
use staled::world::probe::git::{Head, Reading, head};
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const FILES: &str = "--ref-format=files";
const REFTABLE: &str = "--ref-format=reftable";
const FORMATS: [&[&str]; 4] =
    [&[FILES], &[FILES, "--object-format=sha256"], &[REFTABLE], &[REFTABLE, "--object-format=sha256"]];

fn command(dir: &Path, args: &[&str]) -> Command {
    let mut git = Command::new("git");
    git.current_dir(dir).args(["-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false"]);
    git.args(["-c", "protocol.file.allow=always", "-c", "gc.auto=0", "-c", "advice.detachedHead=false"])
        .args(args);
    for (key, _) in std::env::vars_os().filter(|(key, _)| key.to_string_lossy().starts_with("GIT_")) {
        git.env_remove(key);
    }
    git.envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1"), ("LC_ALL", "C")]);
    git.envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@b.c")]);
    git.envs([("GIT_COMMITTER_NAME", "a"), ("GIT_COMMITTER_EMAIL", "a@b.c")]);
    git
}

/// What git prints, or `None` when it fails.
fn ask(dir: &Path, args: &[&str]) -> Option<String> {
    let output = command(dir, args).output().expect("git runs");
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn git(dir: &Path, args: &[&str]) -> String {
    let output = command(dir, args).output().expect("git runs");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn has_reftable() -> bool {
    let dir = tempfile::tempdir().unwrap();
    ask(dir.path(), &["init", "-q", REFTABLE]).is_some()
}

/// Makes a repository `r` of the given format; `None`, with a word, when this git cannot.
fn init(format: &[&str]) -> Option<(TempDir, PathBuf)> {
    if format.contains(&REFTABLE) && !has_reftable() {
        skipped("this git has no reftable");
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    git(&root, &[&["init", "-q", "r"], format].concat());
    Some((dir, root.join("r")))
}

/// What git says HEAD is, in the words of [`said`].
fn oracle(path: &Path) -> String {
    let dir = path.ancestors().find(|dir| dir.is_dir()).unwrap();
    if ask(dir, &["rev-parse", "--git-dir"]).is_none() {
        return "no repository".into();
    }
    let branch = ask(dir, &["symbolic-ref", "-q", "HEAD"]);
    let branch = branch.as_ref().map(|name| name.strip_prefix("refs/heads/").unwrap_or(name));
    match (ask(dir, &["rev-parse", "-q", "--verify", "HEAD"]), branch) {
        (Some(commit), branch) => format!("{commit} on {branch:?}"),
        (None, Some(branch)) => format!("unborn {branch}"),
        (None, None) => "broken".into(),
    }
}

fn said(head: &Head) -> String {
    match head {
        Head::Commit { commit, branch } => format!("{commit} on {branch:?}"),
        Head::Unborn { branch } => format!("unborn {branch}"),
        Head::NoRepository => "no repository".into(),
        Head::Unreadable { path, error } => format!("unreadable {}: {error}", path.display()),
    }
}

/// Everything an event on a path could have been about.
type Trace = (Option<(u64, u64)>, Option<(u64, u64)>, Option<PathBuf>, Option<Vec<u8>>);

fn trace(path: &Path) -> Trace {
    let inode = |metadata: std::io::Result<fs::Metadata>| metadata.ok().map(|m| (m.dev(), m.ino()));
    let bytes = path.is_file().then(|| fs::read(path).unwrap_or_default());
    (inode(fs::symlink_metadata(path)), inode(fs::metadata(path)), fs::read_link(path).ok(), bytes)
}

/// Follows some paths and compares them with git after each step.
#[derive(Default)]
struct Witness {
    seen: HashMap<PathBuf, (Reading, Vec<Trace>)>,
    moves: usize,
}

impl Witness {
    fn follow(&mut self, path: &Path) {
        self.check(path, "at first");
    }

    fn check_all(&mut self, step: &str) {
        for path in self.seen.keys().cloned().collect::<Vec<_>>() {
            self.check(&path, step);
        }
    }

    fn check(&mut self, path: &Path, step: &str) {
        let reading = head(path);
        let (ours, theirs) = (said(&reading.head), oracle(path));
        let both_refuse =
            matches!(theirs.as_str(), "no repository" | "broken") && ours.starts_with("unreadable");
        assert!(ours == theirs || both_refuse, "{step}, at {}: {ours}, but git: {theirs}", path.display());
        if let Some((earlier, traces)) = self.seen.get(path)
            && earlier.head != reading.head
        {
            self.moves += 1;
            let shown = earlier.files.iter().zip(traces).any(|(file, before)| trace(file) != *before);
            assert!(shown, "{step}, at {}: HEAD moved, and none of {:?} did", path.display(), earlier.files);
        }
        let traces = reading.files.iter().map(|file| trace(file)).collect();
        self.seen.insert(path.to_owned(), (reading, traces));
    }
}

#[test]
fn every_operation_in_every_format() {
    const STEPS: &[&str] = &[
        "commit --allow-empty -qm 1",
        "branch other",
        "checkout -q -b feature/x",
        "commit --allow-empty -qm 2",
        "pack-refs --all",
        "commit --allow-empty -qm 3",
        "tag -a -m t v1",
        "pack-refs --all",
        "gc -q",
        "checkout -q --detach",
        "commit --allow-empty -qm 4",
        "checkout -q other",
        "worktree add -q ../w -b in-w",
        "-C ../w commit --allow-empty -qm in-w",
        "commit --allow-empty -qm 5",
        "-C ../w pack-refs --all",
        "-C ../w checkout -q --detach",
        "-C ../w update-ref refs/worktree/own HEAD",
        "-C ../w symbolic-ref HEAD refs/worktree/own",
        "update-ref refs/worktree/own v1^{}",
        "symbolic-ref HEAD refs/worktree/own",
        "pack-refs --all",
        "checkout -q other",
        "symbolic-ref refs/heads/alias refs/heads/feature/x",
        "symbolic-ref HEAD refs/heads/alias",
        "symbolic-ref refs/heads/a1 refs/heads/alias",
        "symbolic-ref refs/heads/a2 refs/heads/a1",
        "symbolic-ref HEAD refs/heads/a2",
        "symbolic-ref refs/heads/a3 refs/heads/a2",
        "symbolic-ref HEAD refs/heads/a3",
        "symbolic-ref HEAD refs/heads/a1",
        "update-ref -d refs/heads/feature/x",
        "checkout -q -B main v1",
        "-c core.preferSymlinkRefs=true symbolic-ref HEAD refs/heads/other",
        "commit --allow-empty -qm 6",
        "pack-refs --all",
        "checkout -q --orphan fresh",
        "commit --allow-empty -qm 7",
        "branch -m renamed/deep/er",
        "branch -M main",
        "reset -q --hard v1",
        "worktree remove --force ../w",
        "branch -D other",
        "reflog expire --expire=all --all",
        "gc -q --prune=now",
    ];
    for format in FORMATS {
        let Some((_dir, repo)) = init(format) else { continue };
        fs::create_dir_all(repo.join("deep/down")).unwrap();
        fs::write(repo.join("deep/file"), "").unwrap();
        symlink(repo.join("deep"), repo.join("../link")).unwrap();
        let mut witness = Witness::default();
        for place in
            ["", "deep/down", "deep/file", "deep/gone/file", ".git", ".git/objects", "../link/down", "../w"]
        {
            witness.follow(&repo.join(place));
        }
        for step in STEPS {
            git(&repo, &step.split(' ').collect::<Vec<_>>());
            witness.check_all(step);
        }
        fs::rename(repo.join(".git"), repo.join("away")).unwrap();
        witness.check_all("git dir renamed away");
        assert_eq!(head(&repo).head, Head::NoRepository);
        fs::rename(repo.join("away"), repo.join(".git")).unwrap();
        witness.check_all("git dir renamed back");
        git(&repo, &["init", "-q", "deep"]);
        witness.check_all("a nearer repository appeared");
        git(repo.parent().unwrap(), &["init", "-q", "--bare", "r/deep/down"]);
        witness.check_all("a nearer bare repository appeared");
        fs::remove_file(repo.join("../link")).unwrap();
        symlink(&repo, repo.join("../link")).unwrap();
        fs::create_dir(repo.join("down")).unwrap();
        witness.check_all("the symlink on the way leads elsewhere");
        assert!(witness.moves > 100, "only {} moves", witness.moves);
    }
}

#[test]
fn every_layout() {
    for format in FORMATS {
        let Some((dir, repo)) = init(format) else { continue };
        let root = dir.path();
        git(&repo, &["commit", "--allow-empty", "-qm", "1"]);
        let mut witness = Witness::default();
        let places = [
            "apart",
            "apart.git",
            "super",
            "super/sub",
            "super/.git/modules/sub",
            "bare.git",
            "bare.git/refs",
        ];
        for place in places {
            witness.follow(&root.join(place));
        }
        let mut step = |args: &[&str]| {
            git(root, args);
            witness.check_all(&args.join(" "));
        };
        step(&[&["init", "-q", "--separate-git-dir=apart.git", "apart"], format].concat());
        step(&["-C", "apart", "commit", "--allow-empty", "-qm", "2"]);
        step(&[&["init", "-q", "super"], format].concat());
        step(&["-C", "super", "submodule", "--quiet", "add", "../r", "sub"]);
        step(&["-C", "super", "commit", "-qm", "with sub"]);
        step(&["-C", "super/sub", "commit", "--allow-empty", "-qm", "3"]);
        step(&["-C", "super/sub", "checkout", "-q", "--detach"]);
        step(&["-C", "super", "submodule", "--quiet", "update"]);
        step(&["-C", "super", "submodule", "--quiet", "deinit", "sub"]);
        step(&["clone", "-q", "--bare", "r", "bare.git"]);
        step(&["-C", "r", "commit", "--allow-empty", "-qm", "4"]);
        step(&["-C", "r", "push", "-q", "../bare.git", "HEAD:main"]);
        step(&["-C", "bare.git", "symbolic-ref", "HEAD", "refs/heads/none"]);
        assert!(witness.moves >= 12, "only {} moves", witness.moves);
    }
}

#[test]
fn migration_between_the_formats() {
    let Some((_dir, repo)) = init(&[REFTABLE]) else { return };
    // Older versions of git cannot migrate reflogs.
    git(&repo, &["config", "core.logAllRefUpdates", "false"]);
    git(&repo, &["commit", "--allow-empty", "-qm", "1"]);
    if ask(&repo, &["refs", "migrate", "--dry-run", FILES]).is_none() {
        return skipped("this git cannot migrate refs");
    }
    let mut witness = Witness::default();
    witness.follow(&repo);
    for step in [FILES, REFTABLE, FILES] {
        git(&repo, &["refs", "migrate", step]);
        witness.check_all(step);
        git(&repo, &["commit", "--allow-empty", "-qm", "more"]);
        witness.check_all("commit");
    }
}

#[test]
fn tables_of_many_blocks_and_stacks_of_many_tables() {
    let Some((_dir, repo)) = init(&[REFTABLE]) else { return };
    git(&repo, &["commit", "--allow-empty", "-qm", "1"]);
    for block_size in ["256", "4096", "65536"] {
        for n in 0..300 {
            let name = format!("refs/heads/many/{block_size}-{n:03}");
            let id = git(&repo, &["commit-tree", "-m", &n.to_string(), "HEAD^{tree}"]);
            fs::write(repo.join("input"), format!("create {name} {id}\n")).unwrap();
            if n % 50 == 0 {
                let setting = format!("reftable.blockSize={block_size}");
                git(&repo, &["-c", &setting, "pack-refs", "--all"]);
            }
            let mut quiet = command(&repo, &["update-ref", &name, &id]);
            assert!(quiet.env("GIT_TEST_REFTABLE_AUTOCOMPACTION", "false").status().unwrap().success());
        }
        let setting = format!("reftable.blockSize={block_size}");
        let tables = fs::read_to_string(repo.join(".git/reftable/tables.list")).unwrap().lines().count();
        assert!(tables > 40, "only {tables} tables");
        for compacted in [false, true] {
            if compacted {
                git(&repo, &["-c", &setting, "pack-refs", "--all"]);
            }
            for n in (0..300).step_by(23) {
                git(&repo, &["symbolic-ref", "HEAD", &format!("refs/heads/many/{block_size}-{n:03}")]);
                assert_eq!(
                    said(&head(&repo).head),
                    oracle(&repo),
                    "{block_size}, {n}, compacted: {compacted}"
                );
            }
        }
    }
}

/// Any operation at all, some of which git refuses.
fn random_step(random: &mut fastrand::Rng) -> String {
    let trees = ["r", "r", "r", "w1", "w2"];
    let names = ["main", "a", "a/b", "feature/x", "z", "sym"];
    let (tree, one, two) =
        (random.choice(trees).unwrap(), random.choice(names).unwrap(), random.choice(names).unwrap());
    let step = match random.u8(0..28) {
        0..5 => "commit --allow-empty -qm c".to_owned(),
        5 => "commit --amend --allow-empty -qm amended".into(),
        6 => format!("checkout -q -B {one}"),
        7..9 => format!("checkout -q {one}"),
        9 => "checkout -q --detach".into(),
        10 => "checkout -q HEAD~1".into(),
        11..14 => "pack-refs --all".into(),
        14 => format!("checkout -q --orphan {one}"),
        15 => "reset -q --hard HEAD~1".into(),
        16 => format!("branch -M {one}"),
        17 => format!("branch -f {one} HEAD"),
        18 => format!("branch -D {one}"),
        19 => format!("symbolic-ref refs/heads/sym refs/heads/{one}"),
        20 => format!("symbolic-ref HEAD refs/heads/{one}"),
        21 => format!("-c core.preferSymlinkRefs=true symbolic-ref HEAD refs/heads/{one}"),
        22 => format!("update-ref refs/heads/{one} refs/heads/{two}"),
        23 => format!("update-ref -d refs/heads/{one}"),
        24 => format!("worktree add -q -f ../{}", random.choice(["w1", "w2"]).unwrap()),
        25 => format!("worktree remove --force ../{}", random.choice(["w1", "w2"]).unwrap()),
        26 => "gc -q".into(),
        _ => return "move the git dir away, or back".into(),
    };
    format!("-C {tree} {step}")
}

#[test]
fn random_walk() {
    let seed =
        std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    println!("run again with SEED={seed}");
    for format in [FILES, REFTABLE] {
        let mut random = fastrand::Rng::with_seed(seed);
        let Some((dir, repo)) = init(&[format]) else { continue };
        let root = dir.path();
        let mut witness = Witness::default();
        for place in ["r", "w1", "w2"] {
            witness.follow(&root.join(place));
        }
        let (mut done, mut refused) = (0, 0);
        while done < 200 {
            let step = random_step(&mut random);
            if step.starts_with("move") {
                let (here, away) = (repo.join(".git"), repo.join("away"));
                let (from, to) = if here.exists() { (here, away) } else { (away, here) };
                fs::rename(from, to).unwrap();
                done += 1;
            } else if ask(root, &step.split(' ').collect::<Vec<_>>()).is_some() {
                done += 1;
            } else {
                refused += 1;
                if !repo.join(".git").exists() {
                    fs::rename(repo.join("away"), repo.join(".git")).unwrap();
                }
            }
            witness.check_all(&format!("SEED={seed} {format} step {done}: {step}"));
        }
        say(&format!("{format}: {done} steps, {refused} refused, {} moves of HEAD", witness.moves));
        assert!(witness.moves > 50, "SEED={seed}: only {} moves", witness.moves);
    }
}

#[test]
fn a_head_alone_makes_no_repository() {
    let (Some((dir, _)), mut witness) = (init(&[FILES]), Witness::default()) else { return };
    for place in ["r", "r/.git"] {
        witness.follow(&dir.path().join(place));
        for needed in ["objects", "refs", "HEAD"] {
            let (here, away) = (dir.path().join("r/.git").join(needed), dir.path().join("away"));
            fs::rename(&here, &away).unwrap();
            witness.check_all(&format!("{needed} away"));
            fs::rename(&away, &here).unwrap();
            witness.check_all(&format!("{needed} back"));
        }
    }
    assert!(witness.moves >= 12, "only {} moves", witness.moves);
}
