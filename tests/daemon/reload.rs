//! `reload`: a good file counts from now on; a bad one is refused by name, and the old one stays.

use crate::harness::{Place, ask, wait_until};
use serde_json::json;
use staled::client::{Client, ClientError};
use staled::config::Config;
use staled::daemon::{self, Command, Folders, Start};

#[test]
fn a_good_file_counts_and_a_bad_one_is_refused() {
    let place = Place::new();
    std::fs::create_dir_all(&place.home).expect("a home");
    let file = place.home.join("config.toml");
    // No test writes in the journal of the machine.
    std::fs::write(&file, "[log]\nanchor_lines = 0\n").expect("a file");
    let folders = Folders::below(&place.home);
    let config = Config::load(Some(&file)).expect("it is a configuration");
    let start = Start { config, config_file: Some(file.clone()), folders: folders.clone() };
    let (stop, _) = tokio::sync::watch::channel(Command::Run);
    let theirs = stop.clone();
    let thread = std::thread::spawn(move || daemon::run(start, theirs, None));
    wait_until("the daemon answers", || Client::connect(&folders.socket).is_ok());
    let client = &mut Client::connect(&folders.socket).expect("a client");
    place.write("a", "1");
    let context = json!({ "session": "s", "root": place.root, "scratchpad_bytes": 10,
        "results": [{ "id": "a", "source": { "kind": "file", "path": "a" } }] });
    ask(client, "context.register", &context);
    let decide = |client: &mut Client| {
        ask(client, "decide", &json!({ "session": "s", "deadline_ms": 10_000 }))["reason"]["code"].clone()
    };
    assert_eq!(decide(client), "valid");
    let text = "[decision]\nscratchpad_bytes_max = 5\n[log]\nanchor_lines = 0\nsync = \"always\"\nlevel = \"debug\"\n[verify]\nthreads = 3\n";
    std::fs::write(&file, text).expect("a file");
    // Asked twice: what is compared is what the daemon was started with, not what it read last.
    for _ in 0..2 {
        let kept = json!(["verify.threads"]);
        assert_eq!(ask(client, "reload", &json!({})), json!({ "reloaded": true, "at_next_start": kept }));
    }
    assert_eq!(decide(client), "scratchpad_over_budget");
    assert_eq!(ask(client, "status", &json!({}))["log_sync"], "always");
    for (bad, named) in [
        ("[decision]\nscratchpad_bytes_maxx = 5\n", "scratchpad_bytes_maxx"),
        ("[", "config.toml"),
        ("[server]\npending_max = 0\n", "server.pending_max"),
    ] {
        std::fs::write(&file, bad).expect("a file");
        match client.ask("reload", &json!({})) {
            Err(ClientError::Refused(refusal)) => assert!(refusal.message.contains(named), "{refusal}"),
            other => panic!("{bad:?} was taken: {other:?}"),
        }
        assert_eq!(decide(client), "scratchpad_over_budget");
    }
    stop.send_replace(Command::Stop);
    thread.join().expect("no panic").expect("a good end");
}
