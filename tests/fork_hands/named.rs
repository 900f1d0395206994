//! What a fork's repository names is read without git, and as git reads it; what cannot be read so counts as work.

use super::*;
use crate::harness::say;
use staled::fork::keep::KeptWork;

fn count(tree: &Path, base: &str) -> u64 {
    let base = format!("^{base}");
    git(tree, &["rev-list", "--count", "--branches", "HEAD", &base]).parse().unwrap()
}

/// One thing that somebody does with names. Git may refuse it.
fn step(tree: &Path, random: &mut fastrand::Rng) {
    let name = ["one", "two", "deep/three", "deep/four"][random.usize(..4)];
    let branch = format!("refs/heads/{name}");
    let deed: &[&str] = match random.usize(..11) {
        0..3 => &["commit", "-qm", "work", "--allow-empty"],
        3 => &["branch", "-f", name],
        4 => &["checkout", "-q", name],
        5 => &["checkout", "-q", "--detach"],
        6 => &["pack-refs", "--all"],
        7 => &["branch", "-D", name],
        8 => &["tag", "-f", "-a", "-m", "t", name],
        9 => &["symbolic-ref", "refs/heads/symbolic", &branch],
        _ => &["reset", "-q", "--soft", "HEAD~1"],
    };
    drop(run(tree, deed));
}

#[test]
fn names_are_read_as_git_reads_them() {
    let seed = std::env::var("STALED_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    say(&format!("again: STALED_SEED={seed} cargo test --test staled -- fork_hands::named"));
    let mut random = fastrand::Rng::with_seed(seed);
    let rig = Rig::new();
    let (place, made) = rig.fork("a");
    let (tree, base, parent) = (&place.workspace, made.base.unwrap(), rig.parent.join(".git"));
    for _ in 0..60 {
        step(tree, &mut random);
        let work = rig.hands.work(tree, Mode::Git, Some(&base), Some(&parent)).unwrap();
        assert_eq!((work.tip, work.commits), (ask(tree, &["rev-parse", "HEAD"]), count(tree, &base)));
        let not = format!("^{base}");
        let all = git(tree, &["rev-list", "--count", "--all", "HEAD", &not]);
        assert_eq!(work.merged, all == "0");
    }
}

#[test]
fn a_stash_that_is_packed_and_an_index_that_is_split_are_seen() {
    let rig = Rig::new();
    let (place, made) = rig.fork("a");
    let tree = &place.workspace;
    fs::write(tree.join("tracked"), "stashed\n").unwrap();
    git(tree, &["stash", "-q"]);
    git(tree, &["pack-refs", "--all"]);
    git(tree, &["update-index", "--split-index"]);
    fs::write(tree.join("tracked"), "changed\n").unwrap();
    git(tree, &["add", "tracked"]);
    let before = snapshot(&tree.join(".git"));
    let work = rig.hands.work(tree, Mode::Git, made.base.as_deref(), Some(&rig.parent.join(".git"))).unwrap();
    assert_eq!((work.stash, work.dirty), (true, vec![PathBuf::from("tracked")]));
    unchanged(&before, &tree.join(".git"));
    let left: Vec<_> =
        fs::read_dir(rig.top().join("state/forks")).unwrap().map(|left| left.unwrap().file_name()).collect();
    assert_eq!(left, ["s"], "what it was looked at with is gone");
}

/// A deed that leaves in doubt what a repository names.
type Doubt = fn(&Path, &Path);

const DOUBTS: [(&str, Doubt); 9] = [
    ("another store", |tree, gitdir| {
        // An older git has none.
        if !run(tree, &["refs", "migrate", "--ref-format=reftable"]).status.success() {
            fs::create_dir(gitdir.join("reftable")).unwrap();
        }
    }),
    ("HEAD is damaged", |_, gitdir| fs::write(gitdir.join("HEAD"), "ref: ../x\n").unwrap()),
    ("HEAD is empty", |_, gitdir| fs::write(gitdir.join("HEAD"), "").unwrap()),
    ("a ref is damaged", |_, gitdir| fs::write(gitdir.join("refs/heads/x"), "0123\n").unwrap()),
    ("a ref is empty", |_, gitdir| fs::write(gitdir.join("refs/heads/x"), "").unwrap()),
    ("a ref has no name", |_, gitdir| {
        fs::copy(gitdir.join("refs/heads/staled/s/a"), gitdir.join("refs/heads/a b")).map(drop).unwrap();
    }),
    ("packed refs are damaged", |_, gitdir| fs::write(gitdir.join("packed-refs"), "x\n").unwrap()),
    ("a pipe", |_, gitdir| {
        let kind = rustix::fs::FileType::Fifo;
        let mode = rustix::fs::Mode::from(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, gitdir.join("refs/heads/x"), kind, mode, 0).unwrap();
    }),
    ("nothing to look with", |tree, _| fs::remove_file(tree.with_file_name("look").join("config")).unwrap()),
];

#[test]
fn what_cannot_be_told_is_no_answer_and_is_kept_whole() {
    for (doubt, deed) in DOUBTS {
        let rig = Rig::new();
        let (place, made) = rig.fork("a");
        let tree = &place.workspace;
        rig.hands.make_independent(tree).unwrap();
        fs::write(tree.join("tracked"), "committed\n").unwrap();
        git(tree, &["commit", "-qam", "work"]);
        fs::write(tree.join("tracked"), "not committed\n").unwrap();
        deed(tree, &tree.join(".git"));
        let untold = rig.hands.work(tree, Mode::Git, made.base.as_deref(), Some(&rig.parent.join(".git")));
        assert_eq!(untold.unwrap_err().code(), "fork_untold", "{doubt}");
        let to = rig.top().join("state/kept/a");
        for _ in 0..2 {
            let kept = rig.hands.keep(tree, Mode::Git, &to).unwrap();
            assert_eq!(kept.uncommitted, None, "{doubt}");
            assert!(kept == KeptWork::default() || doubt == "nothing to look with", "{doubt}: {kept:?}");
            assert_eq!(fs::read_to_string(to.join("tracked")).unwrap(), "not committed\n", "{doubt}");
            assert!(to.join(".git/objects").is_dir(), "{doubt}");
        }
    }
}

/// What was set in the fork is not what is kept is read with.
#[test]
fn what_is_kept_has_a_configuration_of_ours_and_the_other_beside_it() {
    let rig = Rig::new();
    let (place, _) = rig.fork("a");
    git(&place.workspace, &["config", "core.fsmonitor", "evil"]);
    fs::write(place.workspace.join("new"), "n").unwrap();
    let to = rig.top().join("state/kept/a");
    for _ in 0..2 {
        rig.hands.keep(&place.workspace, Mode::Git, &to).unwrap();
        assert!(!fs::read_to_string(to.join("config")).unwrap().contains("evil"));
        assert!(fs::read_to_string(to.join("staled.config")).unwrap().contains("evil"));
        assert_eq!(git(&to, &["rev-parse", "--is-bare-repository"]), "true");
    }
}
