//! Every method with requests that are nearly right, against a living daemon.

use super::tree::Node;
use super::{corpus, rounds};
use crate::daemon::{cause, commit_all, decide, essence, register};
use crate::harness::{Daemon, PATIENCE, Place, file, say};
use fastrand::Rng;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use staled::protocol::refusal::Refusal;
use staled::protocol::request::{self, METHODS, Request};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

/// Longer lines end the connection, which is tested elsewhere.
const LINE_BYTES_MAX: usize = 900_000;

/// How often each id is answered; a line that has none that can be used is answered under `null`.
type Answers = BTreeMap<String, usize>;

#[test]
fn every_line_with_an_id_is_answered_once_and_nobody_else_is_harmed() {
    let (place, daemon) = scene();
    register(&daemon, &place, "kept", &json!([file("a", "1"), file("sub/b", "0"), file("c", "1")]));
    let before = essence(decide(&daemon, "kept"));
    // The report is of another session: a request put together from pieces of it must not speak of this one.
    register(&daemon, &place, "judged", &json!([file("a", "1"), file("sub/b", "0"), file("c", "1")]));
    let requests = corpus::requests(&place, &decide(&daemon, "judged"));
    for (method, params) in &requests {
        daemon.ask(method, params);
    }
    let (mut lines, mut taken) = (0, 0);
    let count = rounds("fuzz::methods", 1, |seed| {
        let sent = any_lines(&requests, &mut Rng::with_seed(seed));
        let (answers, results) = converse(&daemon, &sent);
        lines += sent.len();
        taken += results;
        assert_eq!(answers, expected(&sent), "answered, and expected, for {}", shown(&sent));
        if seed % 16 == 0 {
            forget_the_rest(&daemon);
        }
    });
    say(&format!("methods: {count} connections, {lines} lines, {taken} of them taken"));
    assert!(count == 1 || taken * 20 > lines, "too few get past the parser: {taken} of {lines}");
    daemon.ask("hello", &json!({}));
    assert_eq!(essence(decide(&daemon, "kept")), before);
    place.write("c", "2");
    assert_eq!(cause(&decide(&daemon, "kept"), "c"), "content");
    place.write("c", "1");
    assert_eq!(essence(decide(&daemon, "kept")), before);
    daemon.stop();
}

/// What each method must be told at least; those that are not named here need nothing.
fn least(method: &str) -> Value {
    match method {
        "context.release" => json!({ "session": "s", "holder": { "pid": 1 } }),
        "context.get" | "context.drop" | "decide" | "fact.refute" => json!({ "session": "s" }),
        "touch_ack" => json!({ "session": "s", "path": "a", "digest": "d" }),
        "subscribe" => json!({ "topics": ["gap"] }),
        "check" => json!({ "report": {} }),
        "fork.create" => json!({ "session": "s" }),
        "fork.access" => json!({ "fork": "s/a", "path": "a", "mode": "read" }),
        "fork.status" | "fork.exec" | "fork.merge" | "fork.discard" | "fork.reprovision" => {
            json!({ "fork": "s/a" })
        }
        "mem_save" => json!({ "user_id": "u", "type": "t", "title": "t", "content": "c" }),
        "mem_session_summary" | "mem_session_end" => json!({ "user_id": "u", "summary": "s" }),
        "mem_search" => json!({ "user_id": "u", "query": "q" }),
        "mem_get_observation" | "mem_timeline" => json!({ "user_id": "u", "observation_id": 1 }),
        "mem_forget" => json!({ "user_id": "u", "id": 1 }),
        "mem_session_start" | "mem_stats" | "mem_list_sessions" => json!({ "user_id": "u" }),
        _ => json!({}),
    }
}

#[test]
fn every_verb_is_asked_for_by_its_own_method() {
    for method in METHODS {
        let line = request::line(1, method, &least(method));
        let verb = Request::parse(line.as_bytes()).expect("a request").verb.expect("a verb");
        assert_eq!(verb.method(), method);
    }
    assert_eq!(METHODS.iter().collect::<BTreeSet<_>>().len(), METHODS.len(), "a method is named twice");
    // Each of them is another verb, so it is enough that there are no more.
    let verbs = variants(include_str!("../../src/protocol/request.rs"), "pub enum Verb {\n");
    let memory = variants(include_str!("../../src/protocol/memory/mod.rs"), "pub enum Ask {\n");
    let forks = variants(include_str!("../../src/protocol/fork/ask.rs"), "pub enum Ask {\n");
    // One verb stands for all that is asked of the memory, and one for all that is asked of forks.
    assert_eq!(verbs - 2 + memory + forks, METHODS.len(), "a verb has no method in the list");
}

fn variants(source: &str, begin: &str) -> usize {
    let (_, variants) = source.split_once(begin).expect("the enum");
    let (variants, _) = variants.split_once("\n}").expect("its end");
    variants.lines().filter(|line| line.ends_with(',')).count()
}

/// A world with one of everything that a source can be, and some things that none can.
fn scene() -> (Place, Daemon) {
    let place = Place::new();
    for path in ["a", "c", "sub/b", "sub/deep/d", "dir/x", "Cargo.lock"] {
        place.write(path, "1");
    }
    commit_all(&place);
    let database = rusqlite::Connection::open(place.root.join("d.db")).expect("a database");
    database.execute_batch("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)").expect("SQL");
    std::os::unix::fs::symlink("loop", place.root.join("loop")).expect("a link");
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, place.root.join("fifo"), kind, mode, 0).expect("a pipe");
    let daemon = Daemon::start(&place.home);
    (place, daemon)
}

/// What one connection sends: a few requests, most of them spoiled.
fn any_lines(requests: &[(&str, Value)], rng: &mut Rng) -> Vec<Vec<u8>> {
    let lines = (0..rng.usize(1..40)).map(|number| any_line(requests, number, rng));
    lines.filter(|line| line.len() <= LINE_BYTES_MAX).collect()
}

fn any_line(requests: &[(&str, Value)], number: usize, rng: &mut Rng) -> Vec<u8> {
    let (method, params) = &requests[rng.usize(..requests.len())];
    let mut params = Node::from(params);
    let mut other = Node::from(&requests[rng.usize(..requests.len())].1);
    for _ in 0..[0, 1, 1, 1, 2, 3, 6][rng.usize(..7)] {
        params.mutate(&mut other, rng);
    }
    let envelope = json!({ "jsonrpc": "2.0", "id": number, "method": method });
    let Node::Fields(mut fields) = Node::from(&envelope) else { unreachable!("it was an object") };
    fields.push(("\"params\"".to_owned(), params));
    rng.shuffle(&mut fields);
    let mut line = Node::Fields(fields);
    if rng.u8(..12) == 0 {
        line.mutate(&mut other, rng);
    }
    let mut text = String::new();
    line.write(&mut text, rng);
    let mut bytes = text.into_bytes();
    // A root that is cut short would have a tree walk all of this machine.
    let walks = [&b"tree"[..], b"command"].iter().any(|kind| bytes.windows(kind.len()).any(|at| at == *kind));
    if !walks && rng.u8(..10) == 0 {
        spoil(&mut bytes, rng);
    }
    bytes.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
    bytes
}

/// Some bytes are lost, doubled or other ones.
fn spoil(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let from = rng.usize(..=bytes.len());
    let to = (from + rng.usize(..20)).min(bytes.len());
    match rng.u8(..5) {
        0 => drop(bytes.drain(from..to)),
        1 => bytes.extend_from_within(from..to),
        2 => bytes.truncate(from),
        3 => bytes.insert(from, [0, 0xff, 0xc3, b'"', b'}', b'\\'][rng.usize(..6)]),
        _ => bytes[from..to].iter_mut().for_each(|byte| *byte ^= 1 << rng.u8(..8)),
    }
}

fn expected(sent: &[Vec<u8>]) -> Answers {
    let mut expected = Answers::new();
    for line in sent {
        let id = match Request::parse(line) {
            Ok(Request { id: None, .. }) => continue,
            Ok(Request { id: Some(id), .. }) => id.get().to_owned(),
            Err(_) => "null".to_owned(),
        };
        *expected.entry(id).or_default() += 1;
    }
    expected
}

/// Says it all at once, and hears everything until the daemon closes. Also how many were no refusals.
fn converse(daemon: &Daemon, sent: &[Vec<u8>]) -> (Answers, usize) {
    let stream = UnixStream::connect(&daemon.folders.socket).expect("a socket");
    stream.set_read_timeout(Some(PATIENCE)).expect("a bound");
    let mut writer = stream.try_clone().expect("a handle");
    let all = sent.join(&b'\n');
    let (mut answers, mut results) = (Answers::new(), 0);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // Who is closed upon is not heard to the end, and the answers that are missing show it.
            let _ = writer.write_all(&all).and_then(|()| writer.write_all(b"\n"));
            let _ = writer.shutdown(Shutdown::Write);
        });
        for line in BufReader::new(&stream).lines() {
            let line = line.unwrap_or_else(|error| panic!("{error}, after {}", shown(sent)));
            if let Some((id, taken)) = judge(&line) {
                *answers.entry(id).or_default() += 1;
                results += usize::from(taken);
            }
        }
    });
    (answers, results)
}

/// A line of the daemon's. The id may be a number that nobody can hold, and comes back as it was spelled.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Said<'line> {
    jsonrpc: &'line str,
    #[serde(borrow, default)]
    id: Option<&'line RawValue>,
    /// A result of `null` is a result.
    #[serde(borrow, default, deserialize_with = "stands_there")]
    result: Option<&'line RawValue>,
    #[serde(default)]
    error: Option<Refusal>,
    #[serde(default)]
    method: Option<&'line str>,
    #[serde(borrow, default)]
    params: Option<&'line RawValue>,
}

fn stands_there<'de: 'line, 'line, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'line RawValue>, D::Error> {
    serde::Deserialize::deserialize(deserializer).map(Some)
}

/// The id of an answer, and whether it is a result; none of an event.
fn judge(line: &str) -> Option<(String, bool)> {
    let said: Said<'_> = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    assert_eq!(said.jsonrpc, "2.0", "{line}");
    if said.method == Some("event") {
        assert!(said.params.is_some() && said.id.is_none(), "{line}");
        return None;
    }
    assert_ne!(said.result.is_some(), said.error.is_some(), "{line}");
    // `null` is an id too, and to serde none.
    let id = said.id.map_or("null", RawValue::get);
    Some((id.to_owned(), said.result.is_some()))
}

/// There is a bound on sessions, and who reaches it is refused whatever is asked.
fn forget_the_rest(daemon: &Daemon) {
    let forks = daemon.ask("fork.list", &json!({}));
    for fork in forks["forks"].as_array().expect("forks") {
        // One in which something was said to run is in use for a while, and goes the next time.
        drop(daemon.client().ask("fork.discard", &json!({ "fork": fork["fork"], "force": true })));
    }
    let forks = daemon.ask("fork.list", &json!({}));
    let forks = forks["forks"].as_array().expect("forks");
    let list = daemon.ask("context.list", &json!({}));
    for session in list["sessions"].as_array().expect("sessions") {
        if session["session"] != "kept" && !forks.iter().any(|fork| fork["fork"] == session["session"]) {
            daemon.ask("context.drop", &json!({ "session": session["session"] }));
        }
    }
}

fn shown(sent: &[Vec<u8>]) -> String {
    let cut = |line: &Vec<u8>| String::from_utf8_lossy(&line[..line.len().min(4_000)]).into_owned();
    format!("\n  {}", sent.iter().map(cut).collect::<Vec<_>>().join("\n  "))
}
