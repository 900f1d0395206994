//! A disk that is full, and a sync that fails: who was answered is not lied to.

use super::{audit, busy, get, save, search};
use crate::crash::traced::Traced;
use crate::harness::{Daemon, Place, ask, wait_until};
use crate::store::recovery::FullDisk;
use serde_json::{Value, json};
use staled::client::{Client, ClientError};
use staled::daemon::Folders;

fn content(number: usize) -> String {
    format!("mark{number}x {}", "word ".repeat(100))
}

fn params(number: usize) -> Value {
    json!({ "user_id": "u", "type": "discovery", "title": format!("t{number}"), "content": content(number) })
}

/// What was answered is there as it was said, and what was not is either there or not, but counted as it is.
fn assert_there(client: &mut Client, answered: &[(usize, Value)], most: usize) {
    for (number, id) in answered {
        assert_eq!(get(client, "u", id)["content"], content(*number), "{number}");
        let found = search(client, "u", &format!("mark{number}x"));
        assert_eq!(found.first().map(|first| &first["id"]), Some(id), "{number}");
    }
    let stats = ask(client, "mem_stats", &json!({ "user_id": "u" }));
    let observations = stats["observations"].as_u64().expect("a count") as usize;
    assert!((answered.len()..=most).contains(&observations), "{stats}: {} of {most}", answered.len());
    assert_eq!(stats["by_type"]["discovery"], observations, "{stats}");
}

#[test]
fn a_full_disk_costs_no_save_that_was_answered() {
    let place = Place::new();
    let Some(disk) = FullDisk::mount(&place) else { return };
    let daemon = Daemon::start_with(&place.home, busy());
    let (mut answered, mut told) = (Vec::new(), 0);
    let mut tell = |client: &mut Client, answered: &mut Vec<(usize, Value)>| {
        told += 1;
        match client.ask("mem_save", &params(told)) {
            Ok(answer) => {
                let answer: Value = serde_json::from_str(&answer).expect("JSON");
                answered.push((told, answer["id"].clone()));
                (true, told)
            }
            Err(ClientError::Refused(refusal)) => {
                assert_eq!(refusal.word(), Some("store_failed"), "{refusal}");
                (false, told)
            }
            Err(error) => panic!("{error}"),
        }
    };
    let client = &mut daemon.client();
    for _ in 0..20 {
        assert!(tell(client, &mut answered).0);
    }
    for left in [0, 200_000, 400_000] {
        disk.fill_but(left);
        let begun = answered.len();
        while tell(client, &mut answered).0 {
            assert!(answered.len() < begun + 5_000, "5,000 saves fit on a full disk");
        }
        // What is full may be searched, or be refused; it is never answered wrongly.
        let (first, id) = answered[0].clone();
        if let Ok(found) =
            client.ask("mem_search", &json!({ "user_id": "u", "query": format!("mark{first}x") }))
        {
            let found: Value = serde_json::from_str(&found).expect("JSON");
            assert_eq!(found["results"][0]["id"], id);
        }
        disk.free();
        let mut most = 0;
        wait_until("it is saved again", || {
            let (taken, told) = tell(client, &mut answered);
            most = told;
            taken
        });
        assert_there(client, &answered, most);
    }
    daemon.stop();
    audit(&place);
    let daemon = Daemon::start(&place.home);
    assert_there(&mut daemon.client(), &answered, usize::MAX);
    daemon.stop();
}

#[test]
fn a_sync_that_fails_is_told_to_whoever_waited_for_it() {
    let place = Place::new();
    let folders = Folders::below(&place.home);
    let segment = folders.state.join("journal/00000000000000000001.seg");
    let trace =
        ["-etrace=fdatasync", "-P", segment.to_str().expect("UTF-8"), "-einject=fdatasync:error=EIO:when=3"];
    let Some(mut traced) = Traced::start(&place, "", &trace.map(str::to_owned)) else { return };
    let mut client = traced.client(&folders.socket).expect("it serves");
    let (mut answered, mut refused) = (Vec::new(), 0);
    for number in 0..8 {
        match client.ask("mem_save", &params(number)) {
            Ok(answer) => {
                let answer: Value = serde_json::from_str(&answer).expect("JSON");
                answered.push((number, answer["id"].clone()));
            }
            Err(ClientError::Refused(refusal)) => {
                assert_eq!(refusal.word(), Some("store_failed"), "{refusal}");
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
        wait_until("the journal takes again", || {
            client.ask("mem_session_start", &json!({ "user_id": "v" })).is_ok()
        });
    }
    assert!(answered.len() + refused == 8 && refused <= 1, "{answered:?}");
    assert_there(&mut client, &answered, 8);
    client.ask("shutdown", &json!({})).expect("an answer");
    wait_until("it is gone", || traced.has_ended());
    let segments = std::fs::read_dir(folders.state.join("journal")).expect("a folder").count();
    assert_eq!(segments, 2, "a sync failed, and the journal went on in a new segment");
    audit(&place);
    let daemon = Daemon::start(&place.home);
    assert_there(&mut daemon.client(), &answered, 8);
    // Said again, what was refused is there once.
    let client = &mut daemon.client();
    for number in 0..8 {
        save(client, "u", &format!("t{number}"), &content(number));
    }
    assert_eq!(ask(client, "mem_stats", &json!({ "user_id": "u" }))["observations"], 8);
    daemon.stop();
}
