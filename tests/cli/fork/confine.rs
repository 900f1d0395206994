//! A hostile branch: whatever a confined command tries at another's files, the kernel refuses and the bytes stay.

use crate::harness::{Place, wait_until};
use staled::fork::confine;
use staled::protocol::fork::answer::Confinement;
use staled::protocol::path::WirePath;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A parent and two forks of it, A and B.
struct Scene {
    place: Place,
}

/// What one confined run came to.
#[derive(Debug)]
struct Ran {
    good: bool,
    out: String,
    #[expect(dead_code, reason = "it is shown when a test fails")]
    err: String,
}

/// A process that ends with the test.
struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Scene {
    /// None, and said so, where the kernel has no landlock.
    fn new() -> Option<Self> {
        if let Err(error) = confine::available() {
            let _ = writeln!(std::io::stderr(), "skipped: {error}");
            return None;
        }
        let scene = Self { place: Place::new() };
        for tree in [scene.parent(), scene.workspace("b"), scene.workspace("a")] {
            fs::create_dir_all(tree.join("src")).unwrap();
            fs::write(tree.join("secret"), "secret\n").unwrap();
            fs::write(tree.join("src/lib.c"), "int main(void) { return 0; }\n").unwrap();
            git(&tree, &["init", "-q", "-b", "main"]);
            git(&tree, &["add", "."]);
            git(&tree, &["commit", "-q", "-m", "one"]);
        }
        for fork in ["a", "b"] {
            fs::create_dir_all(scene.scratchpad(fork)).unwrap();
            fs::write(scene.scratchpad(fork).join("notes"), "private\n").unwrap();
        }
        Some(scene)
    }

    fn parent(&self) -> PathBuf {
        self.place.root.join("parent")
    }

    fn home(&self, fork: &str) -> PathBuf {
        self.place.home.join("forks/s").join(fork)
    }

    fn workspace(&self, fork: &str) -> PathBuf {
        self.home(fork).join("workspace")
    }

    fn scratchpad(&self, fork: &str) -> PathBuf {
        self.home(fork).join("scratchpad")
    }

    fn confinement(&self) -> Confinement {
        Confinement {
            fork: "s/a".into(),
            exec: 1,
            workspace: WirePath(self.workspace("a")),
            scratchpad: WirePath(self.scratchpad("a")),
            root: WirePath(self.workspace("a")),
            lock: WirePath(self.home("a").join("exec.lock")),
            hidden: vec![
                WirePath(self.parent()),
                WirePath(self.home("b")),
                WirePath("/nowhere/at/all".into()),
            ],
            readable: vec![WirePath(self.parent().join(".git/objects"))],
            isolation_broken: false,
        }
    }

    /// Runs it in A, confined, with the paths in its environment.
    fn run(&self, script: &str) -> Ran {
        self.run_with(script, &[])
    }

    fn run_with(&self, script: &str, variables: &[(&str, &OsStr)]) -> Ran {
        let of = self.confinement();
        let mut shell = confine::command(&of, OsStr::new("sh"));
        shell.args(["-c", script]).env("HOME", self.place.root.join("me"));
        shell.env("PARENT", self.parent()).env("B", self.workspace("b")).env("PAD", self.scratchpad("b"));
        shell.envs(variables.iter().copied()).stdin(Stdio::null());
        // The thread is bound for ever, and ends.
        let ran = std::thread::spawn(move || {
            confine::refuse_leaks(&of).unwrap();
            confine::enter(&of).unwrap();
            shell.output().unwrap()
        });
        let output = ran.join().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ran { good: output.status.success(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// The name, kind, size and bytes of everything that is not A's.
    fn others(&self) -> Vec<(PathBuf, u32, Vec<u8>)> {
        let mut seen = Vec::new();
        let mut folders = vec![self.parent(), self.home("b")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let found = fs::symlink_metadata(&path).unwrap();
                let bytes = if found.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
                folders.extend(found.is_dir().then(|| path.clone()));
                seen.push((path, found.mode(), bytes));
            }
        }
        seen.sort();
        seen
    }
}

fn git(tree: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.current_dir(tree).args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(args);
    let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().expect("git runs");
    assert!(output.status.success(), "git {args:?}: {output:?}");
}

/// Each would print `secret` or change something if it were let.
const ATTACKS: [&str; 34] = [
    "cat $PARENT/secret",
    "cat $B/secret",
    "cat $PAD/notes",
    "cat ../../b/workspace/secret",
    "ls $PARENT",
    "ls $B/src",
    "ls $PAD",
    "ls ../..",
    "ls $PAD/..",
    "ls $PARENT/..",
    "echo x > $PARENT/secret",
    "echo x >> $B/secret",
    "echo x > $PARENT/.git/HEAD",
    "echo x > $B/../new",
    "echo x > ../new",
    "mkdir $PARENT/new",
    "mknod $B/pipe p",
    "ln -s /etc $B/link",
    "ln $B/secret stolen",
    "ln secret $B/planted",
    "mv $B/secret stolen",
    "mv secret $B/planted",
    "mv $PARENT/src $PARENT/dst",
    "rm $B/secret",
    "rm -r $PARENT/src",
    "truncate -s 0 $B/secret",
    "cp $B/secret stolen",
    "ln -s $B out && cat out/secret",
    "ln -s $B/secret out2 && echo x > out2",
    "cat /proc/self/root$PARENT/secret",
    "cat /proc/self/cwd/../../b/workspace/secret",
    "sh -c 'sh -c \"cat $PARENT/secret\"'",
    "git -C $PARENT log",
    "git --git-dir=$B/.git --work-tree=. commit --allow-empty -m x",
];

#[test]
fn what_is_not_its_own_is_refused_by_the_kernel_whatever_a_command_tries() {
    let Some(scene) = Scene::new() else { return };
    let before = scene.others();
    for attack in ATTACKS {
        let ran = scene.run(attack);
        assert!(!ran.good, "{attack}: {ran:?}");
        assert!(!ran.out.contains("secret") && !ran.out.contains("private"), "{attack}: {ran:?}");
        assert_eq!(scene.others(), before, "{attack}");
    }
    // The same without confinement does what it says, so it is the confinement that refused it.
    for attack in
        ["cat $PARENT/secret", "ls ../..", "cat /proc/self/root$PARENT/secret", "git -C $PARENT log"]
    {
        let mut shell = confine::command(&scene.confinement(), OsStr::new("sh"));
        let output = shell.args(["-c", attack]).env("PARENT", scene.parent()).output().unwrap();
        assert!(output.status.success(), "{attack}: {output:?}");
    }
}

#[test]
fn a_process_that_is_not_confined_lends_nothing() {
    let Some(scene) = Scene::new() else { return };
    let secret = File::open(scene.parent().join("secret")).unwrap();
    let free = Command::new("sleep").arg("600").current_dir(scene.parent()).stdin(secret).spawn();
    let mut free = Ended(free.unwrap());
    let process = format!("/proc/{}", free.0.id());
    for attack in [
        "cat $FREE/root$PARENT/secret",
        "cat $FREE/cwd/secret",
        "cat $FREE/fd/0",
        "ls $FREE/cwd/",
        "kill -TERM ${FREE#/proc/}",
    ] {
        let ran = scene.run_with(attack, &[("FREE", OsStr::new(&process))]);
        assert!(!ran.good && ran.out.is_empty(), "{attack}: {ran:?}");
    }
    assert!(free.0.try_wait().unwrap().is_none(), "nobody could end it");
}

#[test]
fn what_outlives_the_command_is_confined_still_and_holds_the_lock() {
    let Some(scene) = Scene::new() else { return };
    let lock = scene.confinement().lock.0;
    let held = confine::hold(&lock).unwrap();
    assert_eq!(fs::metadata(&lock).unwrap().mode() & 0o777, 0o600);
    let go = scene.workspace("a").join("go");
    let late = "(while [ ! -e go ]; do sleep 0.05; done; echo x > $B/secret; cat $PARENT/secret > got; echo > done) \
                </dev/null >/dev/null 2>&1 &";
    assert!(scene.run(late).good);
    drop(held);
    let other = File::open(&lock).unwrap();
    assert!(other.try_lock().is_err(), "it runs still");
    let before = scene.others();
    fs::write(go, "").unwrap();
    wait_until("it has tried", || scene.workspace("a").join("done").exists());
    assert_eq!(fs::read(scene.workspace("a").join("got")).unwrap(), b"");
    assert_eq!(scene.others(), before);
    wait_until("nothing runs any more", || other.try_lock().is_ok());
}

#[test]
fn a_file_with_two_names_and_an_open_file_are_refused_by_name() {
    let Some(scene) = Scene::new() else { return };
    let refused = |what: &[&str]| {
        let said = confine::refuse_leaks(&scene.confinement()).unwrap_err().to_string();
        assert!(what.iter().all(|what| said.contains(what)), "{said}");
    };
    let own = scene.workspace("a").join("src/own");
    // Two names of its own are nobody else's business.
    fs::hard_link(scene.workspace("a").join("secret"), &own).unwrap();
    confine::refuse_leaks(&scene.confinement()).unwrap();
    fs::remove_file(&own).unwrap();
    for other in [scene.workspace("b").join("src/lib.c"), scene.parent().join(".git/HEAD")] {
        fs::hard_link(&other, &own).unwrap();
        refused(&[own.to_str().unwrap(), other.to_str().unwrap(), "cp -p"]);
        fs::remove_file(&own).unwrap();
    }
    let opened = File::open(scene.parent().join("secret")).unwrap();
    refused(&["/parent/secret", ">&-"]);
    drop(opened);
    confine::refuse_leaks(&scene.confinement()).unwrap();
}

#[test]
fn the_lock_of_the_fork_is_no_leak_as_long_as_nothing_passes_through_it() {
    let Some(scene) = Scene::new() else { return };
    let mut of = scene.confinement();
    of.hidden.push(WirePath(scene.place.home.join("forks")));
    let said = || confine::refuse_leaks(&of).map_err(|error| error.to_string());
    let held = confine::hold(&of.lock.0).unwrap();
    assert_eq!(said(), Ok(()));
    let opened = File::options().write(true).open(&of.lock.0).unwrap();
    assert!(said().unwrap_err().contains("exec.lock"), "it can be written");
    drop(opened);
    fs::write(&of.lock.0, "x").unwrap();
    assert!(said().unwrap_err().contains("exec.lock"), "there is something to read");
    drop(held);
}

/// Each a shell can do in a folder of its own, and must be able to.
const WORK: [&str; 14] = [
    "cat secret && ls && ls -a src",
    "echo x > new && mv new src/new && ln src/new linked && rm linked && ln -s new sym && rm sym",
    "mkdir -p deep/er && truncate -s 9 deep/er/f && chmod 600 deep/er/f && rm -r deep",
    "echo x > \"$STALED_SCRATCHPAD/mine\" && cat \"$STALED_SCRATCHPAD/notes\"",
    "test \"$(pwd)\" = \"$STALED_WORKSPACE\" && test \"$PWD\" = \"$STALED_WORKSPACE\" && test \"$STALED_FORK\" = s/a",
    "test -d \"$TMPDIR\" && mktemp && test \"$TMPDIR\" = \"$STALED_SCRATCHPAD/tmp\"",
    "echo x > /dev/null && head -c 9 /dev/urandom | wc -c && head -c 9 /dev/zero > z && rm z",
    "git add -A && git -c user.name=t -c user.email=t@t commit -q -m two && git log --oneline && git gc -q",
    "test \"$(git config user.nickname)\" = me",
    "test -z \"$GIT_DIR$GIT_INDEX_FILE\"",
    "ls /usr/bin | head -1 && cat /etc/passwd && cat /proc/self/status",
    "for f in $PARENT/.git/objects/??/*; do cat \"$f\" && break; done && ls $PARENT/.git/objects",
    "true & wait && kill -0 $$",
    "cat $BESIDE",
];

#[test]
fn its_own_work_goes_on_as_ever() {
    let Some(scene) = Scene::new() else { return };
    let me = scene.place.root.join("me");
    fs::create_dir_all(&me).unwrap();
    fs::write(me.join(".gitconfig"), "[user]\n\tnickname = me\n").unwrap();
    let beside = scene.place.root.join("beside");
    fs::write(&beside, "x").unwrap();
    for work in WORK {
        let ran = scene.run_with(work, &[("BESIDE", beside.as_os_str())]);
        assert!(ran.good, "{work}: {ran:?}");
    }
    if Command::new("cc").arg("--version").output().is_ok_and(|output| output.status.success()) {
        let ran = scene.run("cc -o built src/lib.c && ./built");
        assert!(ran.good, "{ran:?}");
    } else {
        let _ = writeln!(std::io::stderr(), "skipped: there is no compiler");
    }
}

/// A link beside the trees must not open them: its target has a rule of its own, or none.
#[test]
fn another_name_of_a_hidden_tree_is_hidden_too() {
    let Some(scene) = Scene::new() else { return };
    symlink(scene.parent(), scene.place.root.join("alias")).unwrap();
    symlink(scene.parent().join("src"), scene.place.root.join("inner")).unwrap();
    for attack in ["cat $PARENT/../alias/secret", "ls $PARENT/../alias/", "cat $PARENT/../inner/lib.c"] {
        let ran = scene.run(attack);
        assert!(!ran.good && ran.out.is_empty(), "{attack}: {ran:?}");
    }
    let (bound, parent) = (scene.place.root.join("mounted/here"), scene.parent());
    fs::create_dir_all(&bound).unwrap();
    let mount =
        |args: &[&OsStr]| Command::new("mount").args(args).output().is_ok_and(|run| run.status.success());
    if !mount(&[OsStr::new("--bind"), parent.join("src").as_os_str(), bound.as_os_str()]) {
        let _ = writeln!(std::io::stderr(), "skipped: nothing can be mounted here");
        return;
    }
    let ran = scene.run("cat $PARENT/../mounted/here/lib.c");
    let unmounted = Command::new("umount").arg(&bound).status().unwrap();
    assert!(unmounted.success());
    assert!(!ran.good && ran.out.is_empty(), "{ran:?}");
}

/// A rule for a file beside the trees would hold under its other names too.
#[test]
fn a_file_beside_that_is_one_with_a_hidden_file_opens_nothing() {
    let Some(scene) = Scene::new() else { return };
    fs::hard_link(scene.parent().join("secret"), scene.place.root.join("twin")).unwrap();
    for attack in ["cat $PARENT/secret", "cat $PARENT/../twin"] {
        let ran = scene.run(attack);
        assert!(!ran.good && ran.out.is_empty(), "{attack}: {ran:?}");
    }
}
