//! The sessions of truth.json against a running daemon: at every later commit the stale files are exactly those whose
//! bytes differ there, as events arrive and again after a restart; put back, everything is fresh again.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a helper of a test may fail, and say that it was skipped"
)]

use super::FOLDER;
use crate::harness::{Daemon, Place, ask};
use serde_json::{Value, json};
use staled::agent;
use staled::agent::context::{context, known_files};
use staled::agent::rebase::Places;
use staled::client::Client;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};


#[test]
fn every_session_is_judged_as_its_later_commits_judge_it() {
    let folder = Path::new(FOLDER);
    if !folder.is_dir() {
        println!("skipped: {FOLDER} is missing");
        return;
    }
    let truth: Value = serde_json::from_slice(&std::fs::read(folder.join("truth.json")).unwrap()).unwrap();
    let sessions = truth.as_array().unwrap().iter().filter(|truth| truth["agent"] == "claude-code");
    let mut judged = (0, 0, 0);
    for truth in sessions {
        let session = Session::import(folder, truth);
        judged.0 += 1;
        for later in truth["Ys"].as_array().unwrap() {
            judged.1 += 1;
            judged.2 += session.check(later);
        }
    }
    println!("{} sessions, {} later commits, {} stale files", judged.0, judged.1, judged.2);
    assert_eq!(judged.0, 10);
}

struct Session {
    place: Place,
    name: String,
    /// Paths that may be asserted on, and the bytes that stand for commit X.
    tracked: BTreeMap<String, Vec<u8>>,
}

impl Session {
    fn import(folder: &Path, truth: &Value) -> Self {
        let place = Place::new();
        let name = truth["id"].as_str().unwrap().to_owned();
        let transcript = agent::open(&folder.join(truth["file"].as_str().unwrap())).unwrap();
        let cwd = transcript.first_cwd.clone();
        let places = Places {
            root: &place.root,
            first_cwd: cwd.as_deref(),
            cwds: &transcript.cwds,
            maps: &[],
            home: None,
        };
        let known: BTreeMap<PathBuf, &[u8]> = known_files(&transcript, &places).into_iter().collect();
        let disputed: BTreeSet<&str> =
            truth["not_asserted"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let mut tracked = BTreeMap::new();
        for (path, at_x) in truth["tracked"].as_object().unwrap() {
            let seen = known.get(Path::new(path)).map(|seen| seen.to_vec());
            let full = at_x["content_in_transcript"] == "full" && !disputed.contains(path.as_str());
            if let (Some(seen), true) = (&seen, full) {
                let digest = staled::world::digest::blake3(seen).to_hex();
                assert_eq!(digest, at_x["x_blake3"].as_str().unwrap(), "{name} {path}");
            }
            tracked.insert(path.clone(), seen.unwrap_or_else(|| b"known in part only\n".to_vec()));
        }
        for (path, seen) in &known {
            write(&place.root.join(path), seen);
        }
        for (path, bytes) in &tracked {
            write(&place.root.join(path), bytes);
        }
        let imported = context(&transcript, &places, Some(name.clone()), None);
        for path in imported.context.results.iter().filter(|told| told.source.kind == "file") {
            let path = place.root.join(&path.source.path.as_ref().unwrap().0);
            if !path.exists() {
                write(&path, b"known in part only\n");
            }
        }
        let daemon = Daemon::start(&place.home);
        let params = serde_json::to_value(&imported.context).unwrap();
        let registered = daemon.ask("context.register", &params);
        let told = registered["results"].as_array().unwrap();
        let doubtful: Vec<_> = told.iter().filter(|row| row["status"] != "fresh").collect();
        assert!(doubtful.is_empty(), "{name}: {doubtful:?}");
        assert_eq!(daemon.ask("decide", &json!({ "session": name }))["transition"], "resume", "{name}");
        for path in tracked.keys() {
            assert!(told.iter().any(|row| row["id"] == path.as_str()), "{name}: {path} was not imported");
        }
        daemon.stop();
        Self { place, name, tracked }
    }

    /// Returns how many files were stale.
    fn check(&self, later: &Value) -> usize {
        let stale = later["stale"].as_object().unwrap();
        let expected: BTreeSet<String> =
            stale.keys().filter(|path| self.tracked.contains_key(*path)).cloned().collect();
        let commit = later["Y"].as_str().unwrap();
        let daemon = Daemon::start(&self.place.home);
        let mut client = daemon.client();
        assert_eq!(self.stale(&mut client), BTreeSet::new(), "{} before {commit}", self.name);
        for path in &expected {
            let path_on_disk = self.place.root.join(path);
            match stale[path].as_str() {
                Some(digest) => write(&path_on_disk, format!("the bytes of {digest}\n").as_bytes()),
                None => std::fs::remove_file(path_on_disk).unwrap(),
            }
        }
        assert_eq!(self.stale(&mut client), expected, "{} at {commit}, as events arrive", self.name);
        self.check_decision(&mut client, &expected);
        drop(client);
        daemon.stop();
        let daemon = Daemon::start(&self.place.home);
        let mut client = daemon.client();
        assert_eq!(self.stale(&mut client), expected, "{} at {commit}, after a restart", self.name);
        for path in &expected {
            write(&self.place.root.join(path), &self.tracked[path]);
        }
        assert_eq!(self.stale(&mut client), BTreeSet::new(), "{} put back from {commit}", self.name);
        expected.len()
    }

    fn stale(&self, client: &mut Client) -> BTreeSet<String> {
        let report = self.decide(client);
        report["stale"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect()
    }

    fn decide(&self, client: &mut Client) -> Value {
        ask(client, "decide", &json!({ "session": self.name, "deadline_ms": 10_000 }))
    }

    /// A stale file that the agent wrote makes it start over; any other must be dropped.
    fn check_decision(&self, client: &mut Client, stale: &BTreeSet<String>) {
        let report = self.decide(client);
        let rows = report["staleness_results"].as_array().unwrap();
        let critical = rows.iter().any(|row| row["status"] == "stale" && row["critical"] == true);
        assert_eq!(report["transition"], if critical { "fresh" } else { "resume" }, "{}", self.name);
        let listed = if critical { &report["typed_summary"]["stale_dropped"] } else { &report["drop"] };
        let listed: BTreeSet<String> =
            listed.as_array().unwrap().iter().map(|path| path.as_str().unwrap().to_owned()).collect();
        assert_eq!(&listed, stale, "{}", self.name);
    }
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}
