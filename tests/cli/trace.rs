//! The daemon's own log: a span a request and a span a batch, on stderr or in systemd's journal.

use super::journald::{Listening, socket, stream_of};
use super::serve::Serving;
use super::staled;
use crate::harness::{PATIENCE, Place, ask, file, wait_until};
use serde_json::{Value, json};
use staled::client::Client;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};

fn config(place: &Place, level: &str) -> PathBuf {
    let path = place.home.with_file_name("config.toml");
    std::fs::write(&path, format!("[log]\nanchor_lines = 0\nlevel = \"{level}\"\n")).expect("a file");
    path
}

fn start(place: &Place, level: &str, variables: &[(&str, &Path)]) -> Serving {
    let config = config(place, level);
    Serving::start_under(place, &["--config", config.to_str().expect("UTF-8")], variables)
}

/// Under a systemd whose journal listens at the place's socket.
fn start_under_systemd(place: &Place, level: &str) -> Serving {
    let (stream, socket) = (stream_of(place), socket(place));
    start(place, level, &[("JOURNAL_STREAM", &stream), ("STALED_JOURNAL_SOCKET", &socket)])
}

/// Says a line on a connection of its own, and takes the answer.
fn say(daemon: &Serving, line: &str) -> String {
    let mut stream = UnixStream::connect(&daemon.socket).expect("it serves");
    stream.set_read_timeout(Some(PATIENCE)).expect("a bound");
    writeln!(stream, "{line}").expect("it listens");
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).expect("an answer");
    answer
}

fn request(id: &Value, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

fn register(place: &Place, daemon: &Serving) {
    place.write("a", "1");
    let mut client = Client::connect(&daemon.socket).expect("it serves");
    let context = json!({ "session": "s", "root": place.root, "results": [file("a", "1")] });
    ask(&mut client, "context.register", &context);
}

/// The number behind a name.
fn number(line: &str, name: &str) -> Option<u64> {
    let (_, after) = line
        .split_once(format!(" {name}=").as_str())
        .or_else(|| line.split_once(format!("{{{name}=").as_str()))?;
    after.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

/// The first line with all of these, once it is there.
fn line(daemon: &Serving, parts: &[&str]) -> String {
    let mut found = None;
    wait_until(&format!("{parts:?} is said"), || {
        let said = daemon.said();
        found = said.lines().find(|line| parts.iter().all(|part| line.contains(part))).map(str::to_owned);
        found.is_some()
    });
    found.expect("it was waited for")
}

#[test]
fn each_request_has_a_span_that_says_what_became_of_it() {
    let place = Place::new();
    let daemon = start(&place, "debug", &[]);
    register(&place, &daemon);
    say(&daemon, &request(&json!("turn-7"), "decide", &json!({ "session": "s" })));
    let decided = line(
        &daemon,
        &["request{method=\"decide\" ", "id=\"turn-7\" session=\"s\"}: ", "answered outcome=\"ok\" "],
    );
    assert!(number(&decided, "micros").is_some_and(|micros| micros > 0), "{decided}");
    let registered =
        line(&daemon, &["method=\"context.register\"", "session=\"s\"", "answered outcome=\"ok\""]);
    let [first, second] = [&registered, &decided].map(|line| number(line, "connection").expect("a number"));
    assert!(first < second, "each connection has its own: {registered}{decided}");

    say(&daemon, &request(&json!(9), "decide", &json!({ "session": "nobody" })));
    line(&daemon, &["id=\"9\" session=\"nobody\"}: ", "answered outcome=\"no_session_context\" "]);
    say(&daemon, &request(&json!(null), "fly", &json!({})));
    let unknown = line(&daemon, &["id=\"null\"", "answered outcome=\"method_not_found\" "]);
    assert!(!unknown.contains("method=") && !unknown.contains("fly"), "{unknown}");
    say(&daemon, "{\"jsonrpc\":\"2.0\",");
    line(&daemon, &["request{connection=", "answered outcome=\"parse_error\" "]);
    say(&daemon, &request(&json!("x".repeat(1_000)), "decide", &json!({ "session": "t".repeat(201) })));
    let long = line(&daemon, &["id=\"xxx", "answered outcome=\"invalid_params\" "]);
    assert!(long.len() < 300 && !long.contains("tttt"), "{long}");
    let spoiled = json!("\u{1b}[31mred\nDEBUG forged");
    say(&daemon, &request(&spoiled, "hello", &json!({})));
    line(&daemon, &["method=\"hello\"", "id=\"?[31mred?DEBUG?forged\"", "outcome=\"ok\""]);
    // What is no request for an answer is a request all the same.
    let mut stream = UnixStream::connect(&daemon.socket).expect("it serves");
    writeln!(stream, "{}", json!({ "jsonrpc": "2.0", "method": "metrics" })).expect("it listens");
    let told = line(&daemon, &["request{method=\"metrics\" ", "answered outcome=\"ok\""]);
    assert!(!told.contains("id="), "{told}");
}

#[test]
fn each_batch_of_events_has_a_span_that_counts_it() {
    let place = Place::new();
    let daemon = start(&place, "debug", &[]);
    register(&place, &daemon);
    place.write("a", "2");
    let answer =
        say(&daemon, &request(&json!(1), "decide", &json!({ "session": "s", "deadline_ms": 10_000 })));
    assert!(answer.contains("\"fresh\""), "{answer}");
    // Where the change was taken, one source became suspect; where its look was, the row changed.
    let taken = line(&daemon, &["batch{marks=1 ", "taken touched=1 "]);
    assert!(number(&taken, "micros").is_some(), "{taken}");
    line(&daemon, &["batch{marks=", "changed id=a "]);
    line(&daemon, &["batch{", " cookies=1 gap=false}: ", "taken touched="]);
    for said in daemon.said().lines().filter(|said| said.contains("batch{")) {
        let counts = ["marks", "answers", "cookies"].map(|name| number(said, name).expect("a number"));
        assert!(counts.iter().sum::<u64>() > 0 || said.contains("gap=true"), "nothing was taken: {said}");
    }
}

#[test]
fn the_level_is_the_configurations_and_a_reload_changes_it() {
    let place = Place::new();
    let daemon = start(&place, "info", &[]);
    register(&place, &daemon);
    let decide = |id: &str| say(&daemon, &request(&json!(id), "decide", &json!({ "session": "s" })));
    decide("at-info");
    config(&place, "debug");
    let reloaded = staled(&place, &daemon.socket, &["reload"]).ok();
    assert!(!reloaded.err.contains("log.level"), "{reloaded:?}");
    decide("at-debug");
    line(&daemon, &["id=\"at-debug\"", "answered"]);
    assert!(!daemon.said().contains("at-info") && daemon.said().contains("confinement"), "{}", daemon.said());
    config(&place, "error");
    staled(&place, &daemon.socket, &["reload"]).ok();
    decide("at-error");
    config(&place, "debug");
    staled(&place, &daemon.socket, &["reload"]).ok();
    decide("again");
    line(&daemon, &["id=\"again\"", "answered"]);
    assert!(!daemon.said().contains("at-error"), "{}", daemon.said());
}

#[test]
fn under_systemd_the_journal_is_told_each_field_by_a_confined_daemon() {
    let place = Place::new();
    let journal = Listening::start(&place);
    let daemon = start_under_systemd(&place, "debug");
    register(&place, &daemon);
    say(&daemon, &request(&json!("turn-7"), "decide", &json!({ "session": "s" })));
    let decided = journal.entry(&[("STALED_ID", "turn-7")]);
    for (name, value) in [
        ("SYSLOG_IDENTIFIER", "staled"),
        ("PRIORITY", "7"),
        ("STALED_SPAN", "request"),
        ("STALED_METHOD", "decide"),
        ("STALED_SESSION", "s"),
        ("STALED_OUTCOME", "ok"),
    ] {
        assert_eq!(decided[name], value, "{decided:?}");
    }
    assert!(decided["STALED_MICROS"].parse::<u64>().is_ok_and(|micros| micros > 0), "{decided:?}");
    let (message, connection) = (&decided["MESSAGE"], &decided["STALED_CONNECTION"]);
    assert!(
        message.starts_with("answered outcome=ok micros=") && message.contains(" session=s"),
        "{message}"
    );
    assert!(connection.parse::<u64>().is_ok(), "{decided:?}");
    place.write("a", "2");
    let batch = journal.entry(&[("STALED_SPAN", "batch"), ("STALED_MARKS", "1"), ("STALED_TOUCHED", "1")]);
    assert_eq!(batch["STALED_GAP"], "false", "{batch:?}");
    // What is said at other levels, by other threads, and of what went wrong.
    let confined = journal.entry(&[("PRIORITY", "6"), ("MESSAGE", "confinement confined=")]);
    assert_ne!(confined["STALED_CONFINED"], "off", "{confined:?}");
    config(&place, "loud");
    daemon.signal(rustix::process::Signal::HUP);
    let refused =
        journal.entry(&[("PRIORITY", "4"), ("MESSAGE", "the configuration was not reloaded error=")]);
    assert!(refused["STALED_ERROR"].contains('\n'), "{refused:?}");
    assert!(!refused["MESSAGE"].contains('\n') && refused["MESSAGE"].contains("loud"), "{refused:?}");
    let said = daemon.said();
    assert_eq!(said.lines().count(), 1, "stderr has what is said to people: {said}");
}

#[test]
fn a_stderr_that_is_not_the_journal_has_the_log_itself() {
    let place = Place::new();
    let journal = Listening::start(&place);
    // Set for whoever started us, who then sent our stderr elsewhere; or no such thing.
    for stream in ["1:2", "", "x"] {
        let socket = socket(&place);
        let variables = [("JOURNAL_STREAM", Path::new(stream)), ("STALED_JOURNAL_SOCKET", &*socket)];
        let daemon = start(&place, "debug", &variables);
        line(&daemon, &["INFO", "confinement"]);
        say(&daemon, &request(&json!(1), "hello", &json!({})));
        line(&daemon, &["method=\"hello\"", "answered"]);
    }
    assert_eq!(journal.told(), b"", "nothing is told to a journal that is not ours");
}

#[test]
fn without_a_journal_that_listens_the_log_goes_to_stderr_and_that_is_said() {
    let place = Place::new();
    let daemon = start_under_systemd(&place, "debug");
    let said = line(&daemon, &["note: ", socket(&place).to_str().expect("UTF-8"), "the log goes to stderr"]);
    assert!(daemon.said().starts_with(&said), "before anything else: {}", daemon.said());
    say(&daemon, &request(&json!(1), "hello", &json!({})));
    line(&daemon, &["method=\"hello\"", "answered"]);
}

#[test]
fn a_journal_that_takes_nothing_holds_nobody_up_and_is_told_how_much_it_lost() {
    let place = Place::new();
    let deaf = UnixDatagram::bind(socket(&place)).expect("a datagram socket");
    let daemon = start_under_systemd(&place, "debug");
    register(&place, &daemon);
    let full = std::fs::read_to_string("/proc/sys/net/unix/max_dgram_qlen").expect("a number");
    for _ in 0..full.trim().parse::<u64>().expect("a number") + 50 {
        let answer = say(&daemon, &request(&json!(1), "decide", &json!({ "session": "s" })));
        assert!(answer.contains("\"resume\""), "{answer}");
    }
    let journal = Listening::on(deaf, socket(&place));
    wait_until("it takes entries again", || {
        say(&daemon, &request(&json!("late"), "hello", &json!({})));
        journal.find(&[("STALED_ID", "late")]).is_some()
    });
    let told = String::from_utf8_lossy(&journal.told()).into_owned();
    let lost: Vec<u64> =
        told.lines().filter_map(|line| line.strip_prefix("STALED_LOST=")?.parse().ok()).collect();
    assert!(lost.iter().sum::<u64>() >= 50, "{lost:?}");
}
