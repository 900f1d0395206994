//! The memory through the real socket: what is answered, what is refused, and what is still so after everything that
//! happens to a daemon.

mod clock;
mod crowd;
mod failing;
mod forgetting;
mod kills;
mod methods;
mod moving;
mod privacy;
mod restart;
mod searching;
mod sessions;

use crate::harness::{Daemon, Place, ask};
use serde_json::{Value, json};
use staled::client::{Client, ClientError};
use staled::config::Config;
use staled::daemon::Folders;
use staled::memory::audit::audit_words;
use staled::store::{self, Opening};
use staled::world::dart::Died;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Everything of which more is asked than there is.
const LIMIT: i64 = 100;

/// What a search is told.
fn search(client: &mut Client, user: &str, query: &str) -> Vec<Value> {
    let params = json!({ "user_id": user, "query": query, "limit": LIMIT });
    results(&ask(client, "mem_search", &params))
}

fn results(answer: &Value) -> Vec<Value> {
    answer["results"].as_array().unwrap_or_else(|| panic!("no results in {answer}")).clone()
}

/// Saves what says only this.
fn save(client: &mut Client, user: &str, title: &str, content: &str) -> Value {
    let params = json!({ "user_id": user, "type": "discovery", "title": title, "content": content });
    ask(client, "mem_save", &params)
}

/// The same under a topic key.
fn save_under(client: &mut Client, user: &str, topic_key: &str, title: &str, content: &str) -> Value {
    let params = json!({ "user_id": user, "type": "decision", "title": title, "content": content, "topic_key": topic_key });
    ask(client, "mem_save", &params)
}

/// Without the moments since when something is not as it was: an index that is made anew does not know them.
fn without_since(mut observation: Value) -> Value {
    for changed in observation["changed"].as_array_mut().into_iter().flatten() {
        changed.as_object_mut().expect("an object").remove("since");
    }
    observation
}

fn get(client: &mut Client, user: &str, id: &Value) -> Value {
    let params = json!({ "user_id": user, "observation_id": id, "history": true });
    ask(client, "mem_get_observation", &params)
}

/// The code of a refusal, or the protocol's word for it, and what it says.
fn refused(client: &mut Client, method: &str, params: &Value) -> (String, String) {
    match client.ask(method, params) {
        Err(ClientError::Refused(refusal)) => (refusal.outcome().to_owned(), refusal.message.clone()),
        other => panic!("{method} {params} should have been refused, and gave {other:?}"),
    }
}

/// A configuration that compacts as often as it may.
fn busy() -> Config {
    let mut config = Config::default();
    config.decision.deadline_ms = config.decision.deadline_ms_max;
    config.journal.compact_bytes = 4_096;
    config
}

/// Everything that a user can be told of the memory, but for what moves with time.
fn all_of(client: &mut Client, user: &str, queries: &[&str]) -> Value {
    let sessions = ask(client, "mem_list_sessions", &json!({ "user_id": user, "limit": LIMIT }));
    let stats = ask(client, "mem_stats", &json!({ "user_id": user }));
    let mut observations = BTreeMap::new();
    let mut found = Vec::new();
    for query in queries {
        let ranks: Vec<(Value, Value)> = search(client, user, query)
            .into_iter()
            .map(|result| (result["id"].clone(), result["score_parts"]["rank"].clone()))
            .collect();
        for (id, _) in &ranks {
            let around = json!({ "user_id": user, "observation_id": id });
            let around = results(&ask(client, "mem_timeline", &around));
            let around: Vec<(Value, Value)> =
                around.into_iter().map(|entry| (entry["id"].clone(), entry["is_anchor"].clone())).collect();
            observations.insert(id.to_string(), json!([without_since(get(client, user, id)), around]));
        }
        found.push(json!([query, ranks]));
    }
    json!([sessions, stats, observations, found])
}

/// The memory of a state that no daemon has, with all that is found by its words: nothing is missing, nothing too much.
fn audit(place: &Place) {
    let state = Folders::below(&place.home).state;
    let opening = Opening {
        state: &state,
        new_id: [7; 16],
        epoch: "epoch",
        stamp: "audit",
        distrust: None,
        compact_bytes: u64::MAX,
    };
    let opened = store::open(&opening, &Died::default()).expect("a store");
    audit_words(opened.index.storage()).expect("everything is there");
}

/// The files below a folder that have any of these texts, while somebody may be writing there. All begin with the same byte.
fn files_with(folder: &Path, texts: &[&str]) -> Vec<(String, PathBuf)> {
    let first = texts[0].as_bytes()[0];
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            // What is gone has nothing, and a socket neither.
            let bytes = fs::read(&path).unwrap_or_default();
            let begins = || bytes.iter().enumerate().filter(|(_, byte)| **byte == first).map(|(at, _)| at);
            let has = |text: &&&str| begins().any(|at| bytes[at..].starts_with(text.as_bytes()));
            found.extend(texts.iter().filter(has).map(|text| ((*text).to_owned(), path.clone())));
        }
    }
    found
}

/// A place and its daemon.
fn scene() -> (Place, Daemon) {
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    (place, daemon)
}
