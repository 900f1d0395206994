//! The whole way with a real daemon: branched, worked in, judged, merged, discarded.

use super::super::serve::Serving;
use super::super::{Run, program, run_of};
use crate::fork::git;
use crate::harness::{Place, file, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

pub(super) struct Scene {
    pub(super) daemon: Serving,
    pub(super) place: Place,
}

impl Scene {
    pub(super) fn new() -> Self {
        let place = Place::new();
        place.write("src/token.rs", "ttl\n");
        place.write("src/clock.rs", "skew\n");
        place.write(".gitignore", ".env\n");
        place.write(".env", "KEY=1\n");
        git(&place.root, &["init", "-q"]);
        git(&place.root, &["add", "."]);
        git(&place.root, &["commit", "-q", "-m", "first"]);
        fs::create_dir_all(&place.home).unwrap();
        let me = "[user]\n\tname = Me\n\temail = me@example.org\n";
        fs::write(place.home.join(".gitconfig"), me).unwrap();
        let path = PathBuf::from(std::env::var_os("PATH").unwrap());
        let daemon = Serving::start_under(&place, &[], &[("PATH", &path)]);
        let scene = Self { daemon, place };
        let goal = json!({ "statement": "Fix expiry", "branchable": true, "hypotheses": ["Cache it", "Check twice"] });
        let results = [file("src/token.rs", "ttl\n"), file("src/clock.rs", "skew\n")];
        let context = json!({ "session": "s", "root": scene.place.root, "goal": goal, "results": results });
        let context = super::super::json_file(&scene.place, "context.json", &context);
        scene.run(&["register", &context]).ends(0);
        scene
    }

    pub(super) fn run(&self, args: &[&str]) -> Run {
        let mut command = program(&self.place);
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("STALED_SOCKET", &self.daemon.socket);
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        run_of(command.output().unwrap())
    }

    pub(super) fn json(&self, args: &[&str]) -> Value {
        self.run(&[args, &["--json"]].concat()).ends(0).json()
    }

    pub(super) fn exec(&self, fork: &str, script: &str) -> Run {
        self.run(&["fork", "exec", fork, "--", "sh", "-c", script])
    }
}

pub(super) fn at(value: &Value) -> &Path {
    Path::new(value.as_str().unwrap())
}

#[test]
fn two_ways_are_tried_and_the_better_one_comes_home() {
    if let Err(error) = staled::fork::confine::available() {
        let _ = writeln!(std::io::stderr(), "skipped: {error}");
        return;
    }
    let scene = Scene::new();
    let made = scene.run(&["fork", "create", "s", "--copy", ".env", "--copy", "no.env"]).ends(0);
    assert!(made.out.starts_with("s/cache-it\n  branch     staled/s/cache-it\n  workspace  /"), "{made:?}");
    assert!(made.err.contains("not there") && made.err.contains("no.env"), "{made:?}");
    let listed = scene.run(&["fork", "list"]).ends(0);
    assert!(
        listed.out.contains("s/check-twice  Check twice  0") && listed.out.contains("intact"),
        "{listed:?}"
    );
    let deed = "echo cached > src/token.rs && cat .env && git commit -qam 'Cache it'";
    assert_eq!(scene.exec("cache-it", deed).ends(0).out, "KEY=1\n");
    let other = scene.json(&["fork", "status", "twice"]);
    // The other fork, and the parent, are out of reach; and of the state only what is its own can be written.
    for path in [at(&other["workspace"]), at(&other["scratchpad"]), &scene.place.root.join("src")] {
        let ran = scene.exec("cache-it", &format!("ls {0}; cat {0}/*; echo x > {0}/new", path.display()));
        assert!(ran.out.is_empty() && !path.join("new").exists(), "{ran:?}");
    }
    scene.exec("check-twice", "echo twice > src/token.rs").ends(0);
    for (path, mode, code) in [
        ("src/token.rs", "write", 0),
        (other["workspace"].as_str().unwrap(), "list", 1),
        (scene.place.root.to_str().unwrap(), "read", 1),
    ] {
        let run = scene.run(&["fork", "access", "cache-it", path, "--mode", mode]).ends(code);
        assert!(run.out.starts_with(if code == 0 { "allow: " } else { "deny: " }), "{run:?}");
    }
    let status = scene.run(&["fork", "status", "cache-it"]).ends(0);
    assert!(status.out.contains("changed here: src/token.rs") && status.out.contains("intact"), "{status:?}");
    let judged = scene.run(&["fork", "merge", "cache-it"]).ends(0);
    assert!(judged.out.starts_with("may merge  s/cache-it"), "{judged:?}");
    scene.run(&["fork", "discard", "check-twice"]).fails(2, "src/token.rs is not committed");
    let merged = scene.run(&["fork", "merge", "cache-it", "--apply", "--discard-others"]).ends(0);
    assert!(merged.out.contains("s/check-twice is discarded\n  kept in "), "{merged:?}");
    assert_eq!(fs::read_to_string(scene.place.root.join("src/token.rs")).unwrap(), "cached\n");
    assert_eq!(git(&scene.place.root, &["status", "--porcelain"]), "");
    // What is in the parent is not lost with the fork.
    // `git commit` may leave something behind that tidies up, and while that runs the fork stays.
    wait_until("it is discarded", || {
        scene.run(&["fork", "discard", "cache-it"]).out == "s/cache-it is discarded\n"
    });
    assert_eq!(git(&scene.place.root, &["log", "-1", "--format=%s"]), "Cache it");
    let none = scene.run(&["fork", "list"]).ends(0);
    assert!(none.out.is_empty() && none.err.contains("fork create"), "{none:?}");
}

#[test]
fn a_decision_makes_the_branches_when_it_is_asked_to() {
    let scene = Scene::new();
    let decided = scene.run(&["decide", "s", "--provision", "--deadline-ms", "10000"]).ends(10);
    for id in ["cache-it", "check-twice"] {
        let told = scene.json(&["fork", "status", id]);
        assert!(at(&told["workspace"]).join("src/token.rs").is_file());
        let line = format!("staled/s/{id}  in {}", at(&told["workspace"]).display());
        assert!(decided.out.contains(&line), "{line}: {decided:?}");
    }
}

#[test]
fn a_fork_that_is_stale_is_judged_so_and_not_merged() {
    let scene = Scene::new();
    scene.run(&["fork", "create", "s"]).ends(0);
    scene.place.write("src/clock.rs", "moved\n");
    let before = git(&scene.place.root, &["rev-parse", "HEAD"]);
    let run = scene.run(&["fork", "merge", "cache-it", "--apply", "--deadline-ms", "10000"]).ends(11);
    assert!(run.out.starts_with("may not merge  s/cache-it"), "{run:?}");
    assert!(run.out.contains("changed in the parent: src/clock.rs"), "{run:?}");
    assert_eq!(git(&scene.place.root, &["rev-parse", "HEAD"]), before);
}

/// What a fork's own repository names is no reason to let its commands read it.
#[test]
fn a_fork_that_names_more_objects_is_let_read_no_more() {
    let scene = Scene::new();
    scene.run(&["fork", "create", "s"]).ends(0);
    if scene.exec("cache-it", "true").code == 126 {
        let _ = writeln!(std::io::stderr(), "skipped: nothing can be confined here");
        return;
    }
    let parent = scene.place.root.display().to_string();
    let named = format!("mkdir -p .git/objects/info && echo {parent} > .git/objects/info/alternates");
    scene.exec("cache-it", &named).ends(0);
    let read = scene.exec("cache-it", &format!("cat {parent}/.env"));
    assert!(read.code != 0 && read.out.is_empty(), "{read:?}");
}

/// What is kept finds no place, so ends that were begun are not finished: nothing is known against one, and yet it is not intact.
#[test]
fn a_fork_whose_end_was_begun_is_listed_as_such() {
    let scene = Scene::new();
    scene.run(&["fork", "create", "s"]).ends(0);
    let made = ["cache-it", "check-twice"].map(|fork| scene.json(&["fork", "status", fork]));
    let [asked, unasked] = made.each_ref().map(|fork| at(&fork["workspace"]));
    let kept = asked.ancestors().nth(3).unwrap().join(".kept");
    fs::write(&kept, "in the way").unwrap();
    let list = || scene.run(&["fork", "list"]).ends(0).out;
    let is =
        |word: &str, fork: &str| list().lines().any(|line| line.starts_with(fork) && line.contains(word));
    scene.run(&["fork", "access", "cache-it", "mine", "--mode", "write"]).ends(0);
    fs::write(asked.join("mine"), "x").unwrap();
    fs::write(unasked.join("mine"), "x").unwrap();
    assert!(is("  intact  ", "s/cache-it") && is("  broken  ", "s/check-twice"), "{}", list());
    for fork in ["cache-it", "check-twice"] {
        scene.run(&["fork", "discard", fork, "--force"]).ends(2);
    }
    assert!(is("  ending  ", "s/cache-it") && is("  ending, broken  ", "s/check-twice"), "{}", list());
    fs::remove_file(&kept).unwrap();
    for fork in ["cache-it", "check-twice"] {
        scene.run(&["fork", "discard", fork]).ends(0);
    }
    assert_eq!(list(), "");
}
