//! Whose path it is, however it is spelled.

use crate::harness::{Place as Stage, skipped};
use staled::fork::access::{Apart, Place, Verdict, judge};
use staled::protocol::fork::ask::AccessMode;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Yard {
    stage: Stage,
    forks_folder: PathBuf,
    forks: Vec<Place>,
    parents: Vec<PathBuf>,
}

impl Yard {
    fn new() -> Self {
        let stage = Stage::new();
        stage.write("src/f", "parent's\n");
        let forks_folder = stage.home.join("forks");
        let forks = ["s/a", "s/b"].map(|id| {
            let at = |name: &str| forks_folder.join(id).join(name);
            for folder in ["workspace/src", "scratchpad"] {
                fs::create_dir_all(at(folder)).expect("folders");
            }
            fs::write(at("workspace/src/f"), id).expect("a file");
            fs::write(at("exec.lock"), "").expect("a file");
            Place { fork: id.to_owned(), workspace: at("workspace"), scratchpad: at("scratchpad") }
        });
        let parents = vec![stage.root.clone()];
        Self { stage, forks_folder, forks: forks.to_vec(), parents }
    }

    fn ask(&self, path: &Path, mode: AccessMode) -> Verdict {
        let (own, forks) = (&self.forks[0], &self.forks[1..]);
        judge(path, mode, &Apart { own, forks, parents: &self.parents, forks_folder: &self.forks_folder })
    }

    fn allows(&self, path: &Path) {
        for mode in [AccessMode::Read, AccessMode::Write, AccessMode::List] {
            let verdict = self.ask(path, mode);
            assert!(verdict.allow, "{} {mode:?}: {verdict:?}", path.display());
        }
    }

    fn denies(&self, path: &Path, why: &str) {
        for mode in [AccessMode::Read, AccessMode::Write, AccessMode::List] {
            let verdict = self.ask(path, mode);
            assert!(!verdict.allow && verdict.why.contains(why), "{} {mode:?}: {verdict:?}", path.display());
        }
    }

    fn own(&self, name: &str) -> PathBuf {
        self.forks[0].workspace.join(name)
    }

    fn other(&self, name: &str) -> PathBuf {
        self.forks[1].workspace.join(name)
    }
}

#[test]
fn what_is_its_own_is_allowed_and_what_is_anothers_or_the_parents_is_not() {
    let yard = Yard::new();
    let home = yard.forks_folder.join("s/a");
    for path in
        [yard.own("src/f"), yard.own("not/yet/there"), yard.own(""), yard.forks[0].scratchpad.join("n")]
    {
        yard.allows(&path);
    }
    for (path, why) in [
        (yard.other("src/f"), "the workspace of fork s/b"),
        (yard.other("not/yet/there"), "the workspace of fork s/b"),
        (yard.other(""), "the workspace of fork s/b"),
        (yard.forks[1].scratchpad.join("n"), "the scratchpad of fork s/b"),
        (home.join("exec.lock"), "holds all forks"),
        (home.join("workspace-not"), "holds all forks"),
        (yard.forks_folder.join("s/c/workspace"), "holds all forks"),
        (yard.forks_folder.clone(), "holds all forks"),
        (yard.stage.root.join("src/f"), "copied from"),
        (yard.stage.root.join("src/new"), "copied from"),
        (yard.own("../../b/workspace/src/f"), "the workspace of fork s/b"),
        (yard.own("src/../../exec.lock"), "holds all forks"),
        (yard.own("no/../../x"), "cannot be followed"),
        (PathBuf::from("src/f"), "cannot be followed"),
    ] {
        yard.denies(&path, why);
    }
}

#[test]
fn elsewhere_may_be_read_and_written_but_not_where_a_place_is_below() {
    let yard = Yard::new();
    let base = yard.stage.root.parent().expect("it has one").to_owned();
    yard.allows(&base.join("elsewhere"));
    assert!(yard.ask(&base.join("elsewhere"), AccessMode::Write).why.contains("fork exec"));
    for folder in [&base, Path::new("/")] {
        assert!(yard.ask(folder, AccessMode::List).allow);
        let verdict = yard.ask(folder, AccessMode::Write);
        assert!(!verdict.allow && verdict.why.contains("is below it"), "{verdict:?}");
    }
}

#[test]
fn a_symlink_is_followed_to_its_end() {
    let yard = Yard::new();
    for (name, target) in [
        ("to-file", yard.other("src/f")),
        ("to-folder", yard.other("src")),
        ("to-nothing", yard.other("nothing")),
        ("by-two", PathBuf::from("to-folder")),
        ("relative", PathBuf::from("../../b/workspace")),
    ] {
        symlink(&target, yard.own(name)).expect("a link");
    }
    for name in ["to-file", "to-folder/f", "to-nothing", "by-two/new", "relative/src/f", "to-folder/../src"] {
        yard.denies(&yard.own(name), "the workspace of fork s/b");
    }
    symlink("loop", yard.own("loop")).expect("a link");
    yard.denies(&yard.own("loop"), "too many symlinks");
    symlink(yard.own("src/f"), yard.own("own")).expect("a link");
    let verdict = yard.ask(&yard.own("own"), AccessMode::Write);
    assert!(verdict.allow, "{verdict:?}");
    assert_eq!((verdict.path, verdict.entry), (yard.own("src/f"), yard.own("own")));
    // From outside the other way round: the link is the other's, what it leads to is ours.
    symlink(yard.own("src/f"), yard.other("leads-here")).expect("a link");
    assert!(!yard.ask(&yard.other("leads-here"), AccessMode::Write).allow);
}

#[test]
fn proc_is_no_way_round() {
    let yard = Yard::new();
    let behind =
        |link: &str, path: &Path| PathBuf::from(link).join(path.strip_prefix("/").expect("absolute"));
    let pid = std::process::id();
    for link in ["/proc/self/root", &format!("/proc/{pid}/root"), &format!("/proc/{pid}/task/{pid}/root")] {
        yard.denies(&behind(link, &yard.other("src/f")), "the workspace of fork s/b");
        yard.allows(&behind(link, &yard.own("src/f")));
    }
    for path in [
        "/proc/self/cwd/f",
        "/proc/thread-self/root/etc",
        "/proc/self/fd/0",
        "/proc/self/task/1/cwd",
        "/dev/fd/0",
    ] {
        yard.denies(Path::new(path), "cannot be followed");
    }
    assert!(yard.ask(Path::new("/proc/self/status"), AccessMode::Read).allow);
    let mut child = Command::new("sleep").arg("600").current_dir(yard.other("src")).spawn().expect("it runs");
    yard.denies(&PathBuf::from(format!("/proc/{}/cwd/f", child.id())), "the workspace of fork s/b");
    child.kill().and_then(|()| child.wait()).expect("it ends");
}

#[test]
fn a_file_is_known_by_its_other_names() {
    let yard = Yard::new();
    let store = yard.stage.home.join("store");
    fs::write(&store, "x").expect("a file");
    for (source, name) in
        [(yard.other("src/f"), "others"), (yard.stage.root.join("src/f"), "parents"), (store, "stored")]
    {
        fs::hard_link(source, yard.own(name)).expect("a link");
    }
    for name in ["others", "parents"] {
        yard.denies(&yard.own(name), "it is one file with");
    }
    yard.allows(&yard.own("stored"));
    fs::hard_link(yard.own("src/f"), yard.own("twice")).expect("a link");
    yard.allows(&yard.own("twice"));
}

#[test]
fn what_may_not_be_searched_cannot_be_followed() {
    use std::os::unix::fs::PermissionsExt;
    let yard = Yard::new();
    let shut = yard.own("shut");
    fs::create_dir_all(shut.join("in")).expect("folders");
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o000)).expect("rights");
    if fs::symlink_metadata(shut.join("in")).is_ok() {
        skipped("root may search every folder");
    } else {
        yard.denies(&shut.join("in/f"), "cannot be followed");
    }
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o700)).expect("rights");
}

/// In a mount namespace of its own, where this test runs once more.
#[test]
fn a_bind_mount_is_no_way_round() {
    const INSIDE: &str = "STALED_TEST_BIND";
    let yard = Yard::new();
    if std::env::var_os(INSIDE).is_some() {
        let alias = yard.own("alias");
        fs::create_dir(&alias).expect("a folder");
        let mounted = Command::new("mount").arg("--bind").arg(yard.other("src")).arg(&alias).status();
        assert!(mounted.expect("it runs").success());
        yard.denies(&alias.join("f"), "the workspace of fork s/b");
        yard.denies(&alias.join("new"), "the workspace of fork s/b");
        return;
    }
    let may = Command::new("unshare").args(["-Urm", "true"]).output();
    if !may.is_ok_and(|output| output.status.success()) {
        return skipped("no mount namespace can be made");
    }
    let name = "fork_isolation::access::a_bind_mount_is_no_way_round";
    let mut inside = Command::new("unshare");
    inside
        .arg("-Urm")
        .arg(std::env::current_exe().expect("it has a path"))
        .args(["--exact", name])
        .env(INSIDE, "1");
    let output = inside.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
