//! The real program, killed while many save at once: whatever was answered is there, found, and counted.
//!
//! `STALED_SAVES` is about how many are saved, 2,000 unless it says otherwise, over all kills.

use super::{audit, search};
use crate::cli::serve::Serving;
use crate::harness::{PATIENCE, Place, ask, say};
use rustix::process::Signal;
use serde_json::{Value, json};
use staled::client::Client;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

const KILLS: usize = 4;
const CONNECTIONS: usize = 4;
/// Requests under way on one connection; a daemon reads no more of it.
const PIPELINED: usize = 32;
/// One topic key in so many saves, each of which is said over several times.
const KEYED: usize = 7;

/// What one connection told, under words that nobody else says.
struct Teller {
    user: String,
    /// Content by the mark of the save, of those that were answered; with what was answered.
    answered: BTreeMap<usize, Value>,
    told: usize,
    /// Answered before this one, and there after an earlier kill.
    checked: usize,
}

impl Teller {
    fn content(&self, number: usize) -> String {
        format!("common mark{}x{number}y", self.user)
    }

    fn request(&self, number: usize) -> String {
        let mut params = json!({ "user_id": self.user, "type": "discovery", "title": format!("title {number}"),
            "content": self.content(number) });
        if number.is_multiple_of(KEYED) {
            params["topic_key"] = json!(format!("key {}", number / KEYED % 5));
        }
        json!({ "jsonrpc": "2.0", "id": number, "method": "mem_save", "params": params }).to_string() + "\n"
    }

    /// Saves, many at a time, until the daemon is gone or there is enough.
    fn talk(&mut self, socket: &Path, most: usize, answered: &AtomicUsize) {
        let Ok(stream) = UnixStream::connect(socket) else { return };
        stream.set_read_timeout(Some(PATIENCE)).expect("a bound");
        let mut reader = BufReader::new(stream.try_clone().expect("a handle"));
        let mut writer = stream;
        let (mut open, end) = (0, self.told + most);
        loop {
            let mut lines = String::new();
            while open < PIPELINED && self.told < end {
                lines.push_str(&self.request(self.told));
                (self.told, open) = (self.told + 1, open + 1);
            }
            if open == 0 {
                return;
            }
            if writer.write_all(lines.as_bytes()).is_err() {
                break;
            }
            let mut line = String::new();
            if !reader.read_line(&mut line).is_ok_and(|_| line.ends_with('\n')) {
                break;
            }
            open -= 1;
            self.take(&line);
            answered.fetch_add(1, Ordering::SeqCst);
        }
        // What was answered before the end and not read yet was answered too.
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|_| line.ends_with('\n')) {
            self.take(&line);
            line.clear();
        }
    }

    fn take(&mut self, line: &str) {
        let answer: Value = serde_json::from_str(line).expect("JSON");
        let number = answer["id"].as_u64().unwrap_or_else(|| panic!("{line}")) as usize;
        let result = answer["result"].clone();
        assert!(result.is_object(), "{line}");
        assert!(self.answered.insert(number, result).is_none(), "answered twice: {line}");
    }

    /// Everything that was answered, and no more than was told.
    fn assert_there(&mut self, client: &mut Client, story: &str) {
        let from = std::mem::replace(&mut self.checked, self.told);
        let user = &self.user;
        let stats = ask(client, "mem_stats", &json!({ "user_id": user }));
        let mut ids: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (number, answer) in &self.answered {
            ids.entry(answer["id"].as_u64().expect("a number")).or_default().push(*number);
        }
        let counted = stats["observations"].as_u64().expect("a count");
        assert_eq!(
            stats["by_type"]["discovery"], counted,
            "the count and what is searched, {story}: {stats}"
        );
        let unanswered = (self.told - self.answered.len()) as u64;
        assert!((ids.len() as u64..=ids.len() as u64 + unanswered).contains(&counted), "{story}: {stats}");
        // Of those that were there after an earlier kill, some.
        let is_due = |number: &&usize| **number >= from || number.is_multiple_of(11);
        for (id, numbers) in ids.iter().filter(|(_, numbers)| numbers.iter().any(|number| is_due(&number))) {
            let held = ask(
                client,
                "mem_get_observation",
                &json!({ "user_id": user, "observation_id": id, "history": true }),
            );
            let past = held["history"].as_array().unwrap_or_else(|| panic!("{user} {id} is lost, {story}"));
            let said: Vec<&str> =
                past.iter().chain([&held]).filter_map(|held| held["content"].as_str()).collect();
            for number in numbers {
                let revision = self.answered[number]["revision_count"].as_u64().expect("a number") as usize;
                let expected = self.content(*number);
                assert_eq!(said.get(revision - 1), Some(&expected.as_str()), "{user} {id}, {story}");
            }
        }
        // By a word that it alone has each of some is the first that is found.
        let unkeyed = self.answered.iter().filter(|(number, _)| !number.is_multiple_of(KEYED));
        for (number, answer) in unkeyed.step_by(self.answered.len().div_ceil(20).max(1)) {
            let query = format!("mark{user}x{number}y");
            let found = ask(client, "mem_search", &json!({ "user_id": user, "query": query, "limit": 1 }));
            assert_eq!(found["results"][0]["id"], answer["id"], "{query}, {story}");
        }
        let sessions = ask(client, "mem_list_sessions", &json!({ "user_id": user }));
        assert_eq!(sessions["results"].as_array().map(Vec::len), Some(1), "{story}: {sessions}");
    }
}

#[test]
fn every_answered_save_survives_every_kill() {
    let many: usize = std::env::var("STALED_SAVES").map_or(2_000, |text| text.parse().expect("a number"));
    let place = Place::new();
    let (seed, begun) = (fastrand::u64(..), Instant::now());
    let mut random = fastrand::Rng::with_seed(seed);
    let file = place.home.with_file_name("config.toml");
    // A kill is as likely to hit a compaction as anything else.
    std::fs::write(&file, "[journal]\ncompact_bytes = 65536\n").expect("a file");
    let config = ["--config", file.to_str().expect("UTF-8")];
    let mut tellers: Vec<Teller> = (0..CONNECTIONS)
        .map(|number| Teller { user: format!("u{number}"), answered: BTreeMap::new(), told: 0, checked: 0 })
        .collect();
    let mut daemon = Serving::start(&place, &config);
    let mut story = format!("SEED={seed}");
    for kill in 0..=KILLS {
        let each = many / (KILLS + 1) / CONNECTIONS;
        let answered = AtomicUsize::new(0);
        let enough = random.usize(1..each * CONNECTIONS);
        std::thread::scope(|scope| {
            for teller in &mut tellers {
                let (socket, answered) = (&daemon.socket, &answered);
                scope.spawn(move || teller.talk(socket, each, answered));
            }
            if kill < KILLS {
                while answered.load(Ordering::SeqCst) < enough {
                    assert!(begun.elapsed() < 4 * PATIENCE, "too few are answered, {story}");
                    std::thread::yield_now();
                }
                daemon.signal(Signal::KILL);
            }
        });
        let _ = write!(story, ", kill {kill} behind {enough} of {} answers", answered.into_inner());
        if kill < KILLS {
            daemon.is_dead();
            if random.bool() {
                std::fs::remove_dir_all(place.home.join("state/index")).expect("an index");
                story.push_str(" (index deleted)");
            }
            daemon = Serving::start(&place, &config);
        }
        let client = &mut Client::connect(&daemon.socket).expect("it serves");
        tellers.iter_mut().for_each(|teller| teller.assert_there(client, &story));
        let health = ask(client, "status", &json!({}));
        assert_eq!(health["problems"], json!([]), "{story}: {health}");
    }
    let users: Vec<String> = tellers.iter().map(|teller| teller.user.clone()).collect();
    let all = |daemon: &Serving| -> Vec<Value> {
        let client = &mut Client::connect(&daemon.socket).expect("it serves");
        let told = |user: &String| {
            let ranks = search(client, user, "common 14").into_iter();
            let ranks: Vec<_> =
                ranks.map(|found| json!([found["id"], found["score_parts"]["rank"]])).collect();
            json!([ask(client, "mem_stats", &json!({ "user_id": user })), ranks])
        };
        users.iter().map(told).collect()
    };
    let before = all(&daemon);
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ends(), 0);
    audit(&place);
    std::fs::remove_dir_all(place.home.join("state/index")).expect("an index");
    assert!(all(&Serving::start(&place, &config)) == before, "made anew it is what it was: {story}");
    let answered: usize = tellers.iter().map(|teller| teller.answered.len()).sum();
    say(&format!(
        "{answered} saves answered over {KILLS} kills: nothing lost, in {:.1} s",
        begun.elapsed().as_secs_f64()
    ));
}
