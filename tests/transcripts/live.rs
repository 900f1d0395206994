//! Real sessions, imported and judged live against what their repositories became.
//!
//! No repository is at hand, so the files are made as the transcript shows them, and for each later commit exactly the
//! files that differ there are changed. What is known in part is made of the lines that were shown, between lines of
//! our own; the truth says of each later commit whether the lines that were read are still there. The daemon must agree
//! with a naive judge of the bytes: as events arrive, after a restart, and when the bytes are put back.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test does")]

use super::FOLDER;
use super::made::{self, write};
use super::oracle::{self, Disk, Must};
use crate::harness::{Daemon, Place, ask, say, skipped};
use serde_json::{Value, json};
use staled::agent;
use staled::agent::transcript::Range;
use staled::client::Client;
use staled::protocol::context::Belief;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What was judged.
#[derive(Debug, Default)]
struct Tally {
    commits: usize,
    stale_files: usize,
    /// Files known by some lines only that changed, and those whose lines are what they were.
    changed: usize,
    still_read: usize,
}

#[test]
fn every_session_is_judged_as_its_later_commits_judge_it() {
    let folder = Path::new(FOLDER);
    if !folder.is_dir() {
        return skipped(&format!("{FOLDER} is missing"));
    }
    let truth: Value = serde_json::from_slice(&std::fs::read(folder.join("truth.json")).unwrap()).unwrap();
    let (mut all, mut number) = (Tally::default(), 0);
    for truth in truth.as_array().unwrap() {
        let session = Session::import(folder, truth);
        session.check_beside();
        let mut own = Tally::default();
        truth["Ys"].as_array().unwrap().iter().for_each(|later| session.check(later, &mut own));
        let Tally { changed, still_read, .. } = own;
        say(&format!(
            "{}: {still_read} of {changed} changed files still show the lines that were read",
            session.name
        ));
        all.commits += own.commits;
        all.stale_files += own.stale_files;
        all.changed += changed;
        all.still_read += still_read;
        number += 1;
    }
    say(&format!("{number} sessions: {all:?}"));
    // Of 191 such files of 99 sessions a third still showed them; of the ten of Claude Code none does. Of the three of
    // Codex nothing is said of the lines that were read: there all stay but those of a file that is gone.
    assert_eq!((number, all.commits, all.changed, all.still_read), (13, 61, 36, 10));
}

struct Session {
    place: Place,
    name: String,
    results: Vec<Belief>,
    /// Paths that may be asserted on, and the bytes that stand for commit X.
    tracked: BTreeMap<String, Vec<u8>>,
    /// The lines that were shown of files that are known in part only.
    parts: BTreeMap<PathBuf, Vec<Range>>,
    /// What was on the disk when it was registered.
    then: Disk,
}

impl Session {
    fn import(folder: &Path, truth: &Value) -> Self {
        let place = Place::new();
        let name = truth["id"].as_str().unwrap().to_owned();
        let transcript = agent::open(&folder.join(truth["file"].as_str().unwrap())).unwrap();
        let places = made::places(&transcript, &place);
        let (files, parts) = (made::files(&transcript, &places), made::parts(&transcript, &places));
        let disputed: BTreeSet<&str> =
            truth["not_asserted"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let mut tracked = BTreeMap::new();
        let gone = made::gone(&transcript, &places);
        for (path, at_x) in truth["tracked"].as_object().unwrap() {
            // What the agent took away itself is to it as every later commit has it.
            if gone.contains(Path::new(path)) {
                assert!(
                    truth["Ys"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .skip(1)
                        .all(|later| later["stale"][path].is_null())
                );
                continue;
            }
            let seen = files.get(Path::new(path));
            let full = at_x["content_in_transcript"] == "full" && !disputed.contains(path.as_str());
            if let (Some(seen), true) = (seen, full) {
                let digest = staled::world::digest::blake3(seen).to_hex();
                assert_eq!(digest, at_x["x_blake3"].as_str().unwrap(), "{name} {path}");
            }
            tracked.insert(path.clone(), seen.cloned().unwrap_or_else(|| b"known by name only\n".to_vec()));
        }
        files.iter().for_each(|(path, bytes)| write(&place.root.join(path), bytes));
        tracked.iter().for_each(|(path, bytes)| write(&place.root.join(path), bytes));
        let context = made::furnish(&transcript, &place, &name).context;
        let then = oracle::disk(&place);
        let daemon = Daemon::start(&place.home);
        let registered = daemon.ask("context.register", &serde_json::to_value(&context).unwrap());
        let session = Self { place, name, results: context.results, tracked, parts, then };
        assert_eq!(registered["results"].as_array().unwrap().len(), session.results.len());
        session.agree(&mut daemon.client(), "as registered");
        session.check_imported();
        daemon.stop();
        session
    }

    /// Every tracked path is judged, whole or by its parts; at first all of them are what the agent saw.
    fn check_imported(&self) {
        for path in self.tracked.keys() {
            let own: Vec<&Belief> = self.own(path).map(|(_, told)| told).collect();
            assert!(!own.is_empty(), "{}: {path} was not imported", self.name);
            let in_part = self.parts.contains_key(Path::new(path));
            for told in own {
                assert_eq!(is_whole(told), !in_part, "{}: {:?}", self.name, told.id);
                let at_first = oracle::judge(told, &self.then, &self.then);
                assert_eq!(at_first, Must::Fresh, "{}: {:?}", self.name, told.id);
            }
        }
    }

    /// The daemon says what the bytes say; returns the ids of what is stale.
    fn agree(&self, client: &mut Client, when: &str) -> BTreeSet<String> {
        let report = ask(client, "decide", &json!({ "session": self.name, "deadline_ms": 10_000 }));
        let rows: BTreeMap<&str, &str> = report["staleness_results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (row["result_id"].as_str().unwrap(), row["status"].as_str().unwrap()))
            .collect();
        let now = oracle::disk(&self.place);
        for told in &self.results {
            let id = told.id.as_deref().unwrap();
            let allowed: &[&str] = match oracle::judge(told, &self.then, &now) {
                Must::Fresh => &["fresh"],
                Must::Stale => &["stale"],
                Must::Either => &["fresh", "stale"],
            };
            let status = rows.get(id).copied().unwrap_or("missing");
            assert!(allowed.contains(&status), "{} {when}: {id} is {status}, not {allowed:?}", self.name);
        }
        self.check_decision(&report, when);
        rows.into_iter().filter(|(_, status)| *status == "stale").map(|(id, _)| id.to_owned()).collect()
    }

    /// A stale file that the agent wrote makes it start over; anything else that is stale must be dropped.
    fn check_decision(&self, report: &Value, when: &str) {
        let rows = report["staleness_results"].as_array().unwrap();
        let stale: Vec<&Value> = rows.iter().filter(|row| row["status"] == "stale").collect();
        let critical = stale.iter().any(|row| row["critical"] == true);
        let transition = if critical { "fresh" } else { "resume" };
        assert_eq!(report["transition"], transition, "{} {when}", self.name);
        let listed = if critical { &report["typed_summary"]["stale_dropped"] } else { &report["drop"] };
        let listed: BTreeSet<&str> = listed.as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let labels: BTreeSet<&str> = stale.iter().map(|row| row["source"].as_str().unwrap()).collect();
        assert_eq!(listed, labels, "{} {when}", self.name);
    }

    /// Lines that nobody was shown change in every file that is known in part: not one of its parts is stale.
    fn check_beside(&self) {
        let daemon = Daemon::start(&self.place.home);
        let mut client = daemon.client();
        let before = self.agree(&mut client, "before a change beside");
        for (path, ranges) in &self.parts {
            let text = String::from_utf8(self.then[path].clone()).unwrap();
            let shown = |number: u64| {
                ranges.iter().any(|range| range.start <= number && number < range.start + range.lines)
            };
            let line = |(number, line): (u64, &str)| {
                if shown(number) { line.to_owned() } else { format!("{line}!") }
            };
            let lines: Vec<String> = (1..).zip(text.split('\n')).map(line).collect();
            write(&self.place.root.join(path), lines.join("\n").as_bytes());
        }
        let after = self.agree(&mut client, "after a change beside");
        let part =
            |id: &&String| self.results.iter().any(|told| told.id.as_ref() == Some(id) && !is_whole(told));
        assert_eq!(after.difference(&before).find(part), None, "{}", self.name);
        for path in self.parts.keys() {
            write(&self.place.root.join(path), &self.then[path]);
        }
        assert_eq!(self.agree(&mut client, "with the lines beside put back"), before);
        drop(client);
        daemon.stop();
    }

    fn check(&self, later: &Value, tally: &mut Tally) {
        let stale = later["stale"].as_object().unwrap();
        let expected: BTreeSet<&String> =
            stale.keys().filter(|path| self.tracked.contains_key(*path)).collect();
        let commit = later["Y"].as_str().unwrap();
        let daemon = Daemon::start(&self.place.home);
        let mut client = daemon.client();
        let before = self.agree(&mut client, commit);
        for path in &expected {
            let path_on_disk = self.place.root.join(path);
            match stale[*path].as_str() {
                Some(digest) => write(&path_on_disk, &self.changed(path, digest, later)),
                None => std::fs::remove_file(path_on_disk).unwrap(),
            }
        }
        let found = self.agree(&mut client, commit);
        self.check_files(&found, &before, &expected, later, tally);
        drop(client);
        daemon.stop();
        let daemon = Daemon::start(&self.place.home);
        let mut client = daemon.client();
        assert_eq!(self.agree(&mut client, commit), found, "{} after a restart", self.name);
        for path in &expected {
            write(&self.place.root.join(path), &self.tracked[*path]);
        }
        assert_eq!(self.agree(&mut client, commit), before, "{} put back", self.name);
        drop(client);
        daemon.stop();
        tally.commits += 1;
        tally.stale_files += expected.len();
    }

    /// The bytes of a file that differs at a commit, and in it the lines that were read as the truth says.
    fn changed(&self, path: &str, digest: &str, later: &Value) -> Vec<u8> {
        let Some(ranges) = self.parts.get(Path::new(path)) else {
            return format!("the bytes of {digest}\n").into_bytes();
        };
        let text = String::from_utf8(self.tracked[path].clone()).unwrap();
        if later["range_level"][path] != "read lines changed or moved" {
            return format!("{text}\nthe bytes of {digest}").into_bytes();
        }
        // It does not say which of the two: half of them move, the others change in one line.
        if digest.as_bytes()[0].is_multiple_of(2) {
            return format!("the bytes of {digest}\n{text}").into_bytes();
        }
        let read = usize::try_from(ranges[0].start).unwrap() - 1;
        let line =
            |(number, line): (usize, &str)| if number == read { format!("{line}!") } else { line.to_owned() };
        text.split('\n').enumerate().map(line).collect::<Vec<_>>().join("\n").into_bytes()
    }

    /// The stale files are those of the truth, and a file that is known in part is as stale as the lines that were read.
    fn check_files(
        &self,
        found: &BTreeSet<String>,
        before: &BTreeSet<String>,
        expected: &BTreeSet<&String>,
        later: &Value,
        tally: &mut Tally,
    ) {
        for (path, id, told) in
            self.tracked.keys().flat_map(|path| self.own(path).map(move |(id, told)| (path, id, told)))
        {
            let stale = found.contains(id) && !before.contains(id);
            assert!(!stale || expected.contains(path), "{}: {id} is stale, {path} is not", self.name);
            assert!(!is_whole(told) || stale == expected.contains(path), "{}: {id}", self.name);
        }
        for path in expected.iter().filter(|path| self.parts.contains_key(Path::new(path.as_str()))) {
            let still_read = self.own(path).all(|(id, _)| !found.contains(id));
            let said = later["range_level"][path.as_str()].as_str();
            // Of a file that is gone nothing is said of its lines.
            let stays = said.is_none() && !later["stale"][path.as_str()].is_null();
            assert_eq!(still_read, stays, "{}: {path} at {}", self.name, later["Y"]);
            tally.changed += 1;
            tally.still_read += usize::from(still_read);
        }
    }

    /// The results of a file itself.
    fn own<'a>(&'a self, path: &'a str) -> impl Iterator<Item = (&'a str, &'a Belief)> {
        let own = move |told: &&Belief| {
            let id = told.id.as_deref().unwrap();
            told.source.kind == "file"
                && id.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        };
        self.results.iter().filter(own).map(|told| (told.id.as_deref().unwrap(), told))
    }
}

fn is_whole(told: &Belief) -> bool {
    told.source.range.is_none()
}
