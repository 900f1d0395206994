//! Not one byte of what is private, or of what sources hold, is in anything that the daemon leaves behind.

use super::journald::{self, Listening, stream_of};
use super::serve::{Serving, state};
use crate::daemon::files_below;
use crate::fuzz::corpus;
use crate::harness::Place;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::Signal;
use serde_json::{Value, json};
use staled::client::Client;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// Said in `<private>`, in every string that any request has.
const PRIVATE: &str = "Xq7pRiVaTeQz";
/// What sources hold, and what clients say that they held.
const CONTENT: &str = "Xq7cOnTeNtQz";

#[test]
fn nothing_private_and_no_content_is_left_anywhere() {
    let place = Place::new();
    std::fs::create_dir_all(&place.home).expect("a folder");
    let config = place.home.join("config.toml");
    std::fs::write(&config, "[log]\nlevel = \"trace\"\nsync = \"always\"\n").expect("a file");
    let config = config.to_str().expect("UTF-8").to_owned();
    for path in ["a", "c", "sub/b", "sub/deep/d", "Cargo.lock"] {
        place.write(path, &format!("{CONTENT}\nsecond {CONTENT}\n"));
    }
    let database = rusqlite::Connection::open(place.root.join("d.db")).expect("a database");
    database.execute_batch(&format!("CREATE TABLE {CONTENT} (a)")).expect("SQL");
    super::git(&place, &["init", "-q"]);

    let mut daemon = Serving::start(&place, &["--config", &config]);
    let report = tell_everything(&place, &daemon);
    nothing_is_left(&place, &daemon);
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ends(), 0);
    nothing_is_left(&place, &daemon);
    assert!(daemon.said().contains("TRACE") || daemon.said().contains("DEBUG"), "nothing is traced");
    nothing_is_told_the_journal(&place, &config, &report);
}

/// The same of a daemon whose log systemd keeps.
fn nothing_is_told_the_journal(place: &Place, config: &str, report: &Value) {
    let journal = Listening::start(place);
    let (stream, socket) = (stream_of(place), journald::socket(place));
    let variables = [("JOURNAL_STREAM", &*stream), ("STALED_JOURNAL_SOCKET", &*socket)];
    let again = Serving::start_under(place, &["--config", config], &variables);
    for (method, params) in corpus::requests(place, report) {
        let _ = ask(&again, method, &params);
        for private in private_ids() {
            say_privately(&again, method, &params, &private);
        }
    }
    say(&again, "{\"jsonrpc\":\"2.0\",\"id\":\"last\",\"method\":\"hello\"}\n");
    journal.entry(&[("STALED_ID", "last")]);
    nothing_is_left(place, &again);
    nothing_is_in("the journal", &journal.told());
}

/// Ids of requests with something private in them: as it is, and as JSON may write it.
fn private_ids() -> [String; 3] {
    [
        format!("\"<private>{PRIVATE}</private>\""),
        format!("\"a\\u003cPrivate>{PRIVATE}\""),
        format!("\"{}<private >{PRIVATE}\"", "long".repeat(8)),
    ]
}

fn say_privately(daemon: &Serving, method: &str, params: &Value, id: &str) {
    say(
        daemon,
        &format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n"),
    );
    let mut params = params.clone();
    if let Some(session) = params.get_mut("session") {
        *session = format!("s<private>{PRIVATE}").into();
    }
    say(daemon, &format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{params}}}\n"));
}

/// Asks everything as it is meant to be, then once for each string that it has, with something private in its place.
fn tell_everything(place: &Place, daemon: &Serving) -> Value {
    let mut report = Value::Null;
    for (method, mut params) in corpus::requests(place, &Value::Null) {
        hide_content(&mut params);
        let answer = ask(daemon, method, &params);
        if method == "decide" {
            report = answer.unwrap_or_else(|| panic!("{params}"));
        }
    }
    let mut spoiled = 0;
    for (method, params) in corpus::requests(place, &report) {
        for private in private_ids() {
            say_privately(daemon, method, &params, &private);
        }
        let mut strings = Vec::new();
        find_strings(&params, String::new(), &mut strings);
        for pointer in strings {
            for private in in_place_of(params.pointer(&pointer).and_then(Value::as_str).expect("a string")) {
                let mut params = params.clone();
                *params.pointer_mut(&pointer).expect("it was found") = private;
                hide_content(&mut params);
                let _ = ask(daemon, method, &params);
                spoiled += 1;
            }
        }
        say(
            daemon,
            &format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{{\"{PRIVATE}\":1}}}}\n"
            ),
        );
        say(daemon, &format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}{PRIVATE}\"}}\n"));
        say(
            daemon,
            &format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":[\"{PRIVATE}\"\n"),
        );
        say(
            daemon,
            &format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":\"{PRIVATE}\",\"method\":\"{method}\",\"params\":\"{PRIVATE}"
            ),
        );
    }
    assert!(spoiled > 300, "{spoiled}");
    say(daemon, &PRIVATE.repeat(1_000_000));
    // What follows from all of it is written by then, or is at the end of the daemon.
    let _ = ask(daemon, "decide", &json!({ "session": "f0", "deadline_ms": 1_000 }));
    report
}

fn hide_content(params: &mut Value) {
    for result in params.get_mut("results").and_then(Value::as_array_mut).into_iter().flatten() {
        if result.get("content").is_some() {
            let based = result.get("encoding") == Some(&json!("base64"));
            result["content"] = if based { STANDARD.encode(CONTENT).into() } else { CONTENT.into() };
        }
    }
}

fn find_strings(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(at),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(nth, item)| find_strings(item, format!("{at}/{nth}"), found));
        }
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            let key = key.replace('~', "~0").replace('/', "~1");
            find_strings(value, format!("{at}/{key}"), found);
        }),
        _ => {}
    }
}

/// What is said instead of a string, with something private in it.
fn in_place_of(text: &str) -> Vec<Value> {
    let hidden = format!("<Private why=\"x\">{PRIVATE}</private >");
    let odd: Vec<u8> = [b"\xff", hidden.as_bytes(), b"\xff"].concat();
    vec![
        format!("{text}{hidden}").into(),
        format!("{hidden}{text}<private>{PRIVATE}").into(),
        json!({ "bytes": STANDARD.encode(odd) }),
        json!({ "bytes": STANDARD.encode(&hidden) }),
    ]
}

fn ask(daemon: &Serving, method: &str, params: &Value) -> Option<Value> {
    let answer = Client::connect(&daemon.socket).expect("it serves").ask(method, params).ok()?;
    Some(serde_json::from_str(&answer).expect("JSON"))
}

/// Says what is no request, and waits until the daemon is done with it.
fn say(daemon: &Serving, text: &str) {
    let mut stream = UnixStream::connect(&daemon.socket).expect("it serves");
    // A line that is too long is closed upon.
    let _ = stream.write_all(text.as_bytes());
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let _ = stream.read_to_end(&mut Vec::new());
}

fn nothing_is_left(place: &Place, daemon: &Serving) {
    let state = state(place);
    let mut places: Vec<(String, Vec<u8>)> = vec![("stderr".to_owned(), daemon.said().into_bytes())];
    for file in files_below(&state) {
        // One that went away meanwhile is not left.
        let bytes = std::fs::read(&file).unwrap_or_default();
        places.push((file.display().to_string(), bytes));
    }
    let holds = |bytes: &[u8], text: &[u8]| bytes.windows(text.len()).any(|part| part == text);
    assert!(places.iter().any(|(_, bytes)| holds(bytes, b"claude-code")), "what is kept is found");
    for (name, bytes) in &places {
        nothing_is_in(name, bytes);
    }
}

fn nothing_is_in(name: &str, bytes: &[u8]) {
    for form in [PRIVATE, CONTENT].into_iter().flat_map(forms) {
        let at = bytes.windows(form.len()).position(|part| part == form.as_bytes());
        let around = at.map(|at| {
            let (from, to) = (at.saturating_sub(200), (at + 100).min(bytes.len()));
            bytes[from..to].escape_ascii().to_string()
        });
        assert_eq!(around, None, "{form:?} is in {name}");
    }
}

/// As it is, and as base64 shows it wherever it begins.
fn forms(secret: &str) -> Vec<String> {
    let based = (0..3).map(|shift| {
        let padded = format!("{}{secret}", "-".repeat(shift));
        let based = STANDARD.encode(&padded);
        // The first and the last quartet depend on what stands beside the secret.
        based[4..padded.len() / 3 * 4].to_owned()
    });
    std::iter::once(secret.to_owned()).chain(based).collect()
}
