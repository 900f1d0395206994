//! A daemon that is killed right behind the answer to a save: what the observation rests on is known when it is back, from
//! the journal alone where the index is gone, and what changed meanwhile is stale.

use super::{USER, observed, word};
use crate::crash::Victim;
use crate::daemon::files_below;
use crate::harness::{Place, ask, wait_until};
use serde_json::json;
use staled::client::Client;
use staled::daemon::Folders;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;

const FILES: usize = 6;
const KILLS: usize = 9;

/// What each observation rests on: the file, and its bytes when it was saved.
type Model = BTreeMap<u64, (usize, &'static str)>;

fn client(place: &Place) -> Client {
    Client::connect(&Folders::below(&place.home).socket).expect("the daemon answers")
}

fn path(place: &Place, file: usize) -> std::path::PathBuf {
    place.root.join(format!("f{file}"))
}

/// What is said of it once it can be told.
fn said(client: &mut Client, id: u64) -> String {
    let mut told = String::new();
    wait_until("it can be told", || {
        told = word(&ask(client, "mem_get_observation", &json!({ "user_id": USER, "observation_id": id })));
        !told.starts_with("unknown")
    });
    told
}

#[test]
fn evidence_survives_every_kill_and_knows_what_changed_meanwhile() {
    let place = Place::new();
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut model = Model::new();
    let mut texts = ["one\n"; FILES];
    (0..FILES).for_each(|file| place.write(&format!("f{file}"), "one\n"));
    let (mut killed, mut compactions) = (Victim::start(&place.home), 0);
    for kill in 0..KILLS {
        let story = format!("seed {seed}, kill {kill}");
        let daemon = &mut client(&place);
        for _ in 0..random.usize(1..12) {
            let file = random.usize(..FILES);
            if random.u8(..5) == 0
                && let Some(id) = model.keys().next().copied()
            {
                ask(daemon, "mem_forget", &json!({ "user_id": USER, "id": id }));
                model.remove(&id);
                continue;
            }
            let title = format!("obs{}", random.u8(..8));
            let saved = ask(daemon, "mem_save", &observed(&title, &json!([path(&place, file)])));
            let id = saved["id"].as_u64().expect("a number");
            // One that was held open when it was looked at has no baseline.
            if word(&saved) == "fresh" {
                model.insert(id, (file, texts[file]))
            } else {
                model.remove(&id)
            };
        }
        compactions += ask(daemon, "status", &json!({}))["compactions"].as_u64().expect("a number");
        killed.kill();
        for (file, text) in texts.iter_mut().enumerate() {
            if random.bool() {
                *text = ["one\n", "two\n", "six\n"][random.usize(..3)];
                place.write(&format!("f{file}"), text);
            }
        }
        if kill % 3 == 1 {
            fs::remove_dir_all(place.home.join("state/index")).expect("it is made again");
        }
        killed = Victim::start(&place.home);
        let daemon = &mut client(&place);
        for (id, (file, text)) in &model {
            let expected = if texts[*file] == *text { "fresh" } else { "stale content" };
            assert_eq!(said(daemon, *id), expected, "observation {id} on f{file}, {story}");
        }
        // And goes on to hear.
        if let Some((id, (file, text))) = model.iter().next() {
            texts[*file] = if *text == "two\n" { "six\n" } else { "two\n" };
            place.write(&format!("f{file}"), texts[*file]);
            assert_eq!(said(daemon, *id), "stale content", "{story}");
        }
    }
    assert!(compactions > 0, "the journal was never compacted, {seed}");
}

/// So long that no machine has read it before the kill.
const LONG: u64 = 1 << 36;

#[test]
fn a_save_that_was_killed_before_it_was_looked_at_is_not_fresh_by_silence() {
    let place = Place::new();
    let long = place.root.join("long");
    fs::File::create(&long).and_then(|file| file.set_len(LONG)).expect("a hole");
    let mut killed = Victim::start(&place.home);
    let socket = Folders::below(&place.home).socket;
    let mut asking = UnixStream::connect(&socket).expect("the daemon answers");
    let save = json!({ "jsonrpc": "2.0", "id": 1, "method": "mem_save", "params": observed("unanswered", &json!([long])) });
    writeln!(asking, "{save}").expect("it is taken");
    let journal = place.home.join("state/journal");
    wait_until("the save is in the journal", || {
        let holds = |path: &std::path::PathBuf| {
            fs::read(path).is_ok_and(|bytes| bytes.windows(10).any(|text| text == b"unanswered"))
        };
        files_below(&journal).iter().any(holds)
    });
    killed.kill();
    // To its end it would be read for minutes.
    fs::write(&long, "short").expect("a file");
    for deed in ["as it was", "without its index", "once more"] {
        let mut again = Victim::start(&place.home);
        assert_eq!(said(&mut client(&place), 1), "stale born_stale", "{deed}");
        again.kill();
        if deed == "as it was" {
            fs::remove_dir_all(place.home.join("state/index")).expect("it is made again");
        }
    }
    // Saved anew, it is what it says.
    let _again = Victim::start(&place.home);
    let daemon = &mut client(&place);
    let saved = ask(daemon, "mem_save", &observed("unanswered", &json!([long])));
    assert_eq!((&saved["id"], said(daemon, 1).as_str()), (&json!(1), "fresh"));
}
