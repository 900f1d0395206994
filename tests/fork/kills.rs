//! A daemon that is killed while it makes, frees and ends forks: what is there afterwards is whole, what is not there has left
//! nothing, and no commit is lost.

use super::{at, git};
use crate::cli::serve::{Serving, state};
use crate::harness::{Place, ask, file, say, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use staled::client::Client;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const ROUNDS: usize = 12;

struct Yard {
    place: Place,
    daemon: Option<Serving>,
}

impl Yard {
    fn new() -> Self {
        let place = Place::new();
        for number in 0..300 {
            place.write(&format!("d{}/f{number}", number % 10), &format!("{number}\n"));
        }
        git(&place.root, &["init", "-q"]);
        git(&place.root, &["add", "."]);
        git(&place.root, &["commit", "-qm", "first"]);
        place.write("d0/f0", "changed\n");
        let mut yard = Self { place, daemon: None };
        yard.start();
        let context = json!({ "session": "s", "root": yard.place.root, "results": [file("d1/f1", "1\n")] });
        yard.ask("context.register", &context);
        yard
    }

    fn start(&mut self) {
        // A daemon that runs git must find it.
        let path = PathBuf::from(std::env::var_os("PATH").unwrap());
        self.daemon = Some(Serving::start_under(&self.place, &[], &[("PATH", &path)]));
    }

    fn client(&self) -> Client {
        Client::connect(&self.daemon.as_ref().unwrap().socket).unwrap()
    }

    fn ask(&self, method: &str, params: &Value) -> Value {
        ask(&mut self.client(), method, params)
    }

    /// Asks, and kills the daemon a while later; what was answered by then.
    fn killed(&mut self, method: &str, params: &Value, after: Duration) -> Option<Value> {
        let (mut client, method, params) = (self.client(), method.to_owned(), params.clone());
        let asking = std::thread::spawn(move || client.ask(&method, &params).ok());
        std::thread::sleep(after);
        let mut daemon = self.daemon.take().unwrap();
        daemon.signal(Signal::KILL);
        daemon.is_dead();
        let answer = asking.join().unwrap();
        self.start();
        answer.map(|answer| serde_json::from_str(&answer).unwrap())
    }

    fn forks(&self) -> Vec<Value> {
        self.ask("fork.list", &json!({}))["forks"].as_array().unwrap().clone()
    }

    /// Every fork is whole, and there is nothing beside them.
    fn check(&self, seed: &str) {
        // A git that reads where objects are shared while that ends is confused by it.
        wait_until("all are independent", || self.forks().iter().all(|fork| fork["independent"] == true));
        let forks = self.forks();
        let homes: BTreeSet<PathBuf> =
            forks.iter().map(|fork| at(&fork["workspace"]).parent().unwrap().to_owned()).collect();
        let there: BTreeSet<PathBuf> =
            folders(&state(&self.place).join("forks/s")).into_iter().filter(|path| path.is_dir()).collect();
        assert_eq!(there, homes, "{seed}");
        for fork in &forks {
            assert_eq!(fork["stage"], "ready", "{seed}");
            let workspace = at(&fork["workspace"]);
            git(&workspace, &["fsck", "--full"]);
            git(&workspace, &["status"]);
            assert_eq!(std::fs::read_to_string(workspace.join("d0/f0")).unwrap(), "changed\n", "{seed}");
            assert_eq!(std::fs::read_dir(workspace.join("d9")).unwrap().count(), 30, "{seed}");
            let locks = ["index.lock", "HEAD.lock", "config.lock"];
            assert!(locks.iter().all(|lock| !workspace.join(".git").join(lock).exists()), "{seed}");
        }
    }

    /// Whether a commit is in some repository of the state.
    fn has(&self, commit: &str) -> bool {
        let forks = state(&self.place).join("forks");
        let kept = folders(&forks.join(".kept"));
        let alive = folders(&forks.join("s")).into_iter().map(|home| home.join("workspace/.git"));
        kept.into_iter().chain(alive).any(|repository| {
            let mut git = std::process::Command::new("git");
            git.arg("--git-dir").arg(repository).args(["cat-file", "-e", &format!("{commit}^{{commit}}")]);
            git.stderr(std::process::Stdio::null()).status().unwrap().success()
        })
    }
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_kill_leaves_no_half_fork_and_loses_no_commit() {
    let mut yard = Yard::new();
    let parent = git(&yard.place.root, &["status", "--porcelain=v2", "--branch"]);
    let seed = fastrand::u64(..);
    let mut rng = fastrand::Rng::with_seed(seed);
    let (mut answered, mut commits) = (0, 0);
    // Kills come while it is at it, however fast the machine is.
    let begun = Instant::now();
    yard.ask("fork.create", &json!({ "session": "s", "hypotheses": ["x", "y"] }));
    let makes = begun.elapsed().as_micros() as u64;
    let begun = Instant::now();
    for fork in ["s/x", "s/y"] {
        yard.ask("fork.discard", &json!({ "fork": fork, "force": true }));
    }
    let ends = begun.elapsed().as_micros() as u64;
    for round in 0..ROUNDS {
        let seed = format!("seed {seed}, round {round}");
        let ways = json!({ "session": "s", "hypotheses": [format!("a{round}"), format!("b{round}")] });
        // Now and then there must be something to be ended.
        let made = if round % 3 == 2 {
            Some(yard.ask("fork.create", &ways))
        } else {
            yard.killed("fork.create", &ways, Duration::from_micros(rng.u64(..makes * 3 / 2)))
        };
        answered += usize::from(made.is_some());
        yard.check(&seed);
        if made.is_some() {
            assert!(yard.forks().len() >= 2, "{seed}: what was answered is there");
        }
        let Some(fork) = yard.forks().first().cloned() else { continue };
        let id = fork["fork"].clone();
        let begun = yard.ask("fork.exec", &json!({ "fork": id }));
        let workspace = at(&begun["workspace"]);
        std::fs::write(workspace.join("work"), format!("{round}")).unwrap();
        git(&workspace, &["add", "work"]);
        git(&workspace, &["commit", "-qm", "work"]);
        std::fs::write(workspace.join("more"), format!("{round}")).unwrap();
        let commit = git(&workspace, &["rev-parse", "HEAD"]);
        yard.ask("fork.exec", &json!({ "fork": id, "ended": begun["exec"] }));
        commits += 1;
        let ending = json!({ "fork": id, "force": true });
        let ended = yard.killed("fork.discard", &ending, Duration::from_micros(rng.u64(..ends)));
        yard.check(&seed);
        assert!(yard.has(&commit), "{seed}: {commit} is lost");
        let gone = !yard.forks().iter().any(|fork| fork["fork"] == id);
        assert!(gone || ended.is_none(), "{seed}: what was answered is so");
        if gone {
            let kept = folders(&state(&yard.place).join("forks/.kept"));
            let uncommitted = kept.iter().any(|kept| {
                let shown = std::process::Command::new("git")
                    .arg("--git-dir")
                    .arg(kept)
                    .args(["show", "refs/staled/uncommitted:more"])
                    .output()
                    .unwrap();
                shown.stdout == round.to_string().into_bytes()
            });
            assert!(uncommitted, "{seed}: what was not committed is lost");
        }
        for fork in yard.forks() {
            yard.ask("fork.discard", &json!({ "fork": fork["fork"], "force": true }));
        }
    }
    assert_eq!(git(&yard.place.root, &["status", "--porcelain=v2", "--branch"]), parent);
    assert!(
        folders(&state(&yard.place).join("forks"))
            .iter()
            .all(|left| !left.to_string_lossy().contains(".survey"))
    );
    assert!(answered < ROUNDS, "no kill came in time");
    assert!(commits > 0, "no fork was ever there to be discarded");
    say(&format!(
        "forks under kills: {ROUNDS} rounds, {answered} creations answered, {commits} commits kept"
    ));
    wait_until("it still serves", || yard.forks().is_empty());
}
