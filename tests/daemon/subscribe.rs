//! `subscribe`: what happens is told as it is applied, in order, and nobody is held up by whoever does not read.

use crate::daemon::wire::Raw;
use crate::daemon::{commit_all, decide, register};
use crate::harness::{Daemon, Place, file, refusal, wait_until};
use serde_json::{Value, json};
use staled::config::Config;

fn line(id: u64, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// A connection that is told, with the answer to its subscription already read.
pub(crate) fn subscribe(daemon: &Daemon, params: &Value) -> Raw {
    let mut raw = Raw::connect(daemon);
    let answer = raw.say(line(1, "subscribe", params));
    assert_eq!((&answer["id"], &answer["result"]["subscribed"]), (&json!(1), &params["topics"]), "{answer}");
    assert_eq!(answer["result"]["session"], params["session"], "{answer}");
    raw
}

/// The next line, which must be a notification; its parameters.
pub(crate) fn told(raw: &mut Raw) -> Value {
    let mut line = raw.answer().expect("the connection is open");
    assert_eq!((&line["jsonrpc"], &line["method"], line.get("id")), (&json!("2.0"), &json!("event"), None));
    line["params"].take()
}

/// Session, id, what it was, what it is, and why.
fn move_of(event: &Value) -> [String; 5] {
    assert_eq!(event["topic"], "staleness", "{event}");
    assert!(event["since"].is_string() && event["clock"]["epoch"].is_string(), "{event}");
    ["session", "id", "from", "status", "cause"].map(|name| event[name].as_str().unwrap_or("-").to_owned())
}

fn subscribers(daemon: &Daemon) -> Value {
    daemon.ask("status", &json!({}))["subscribers"].clone()
}

fn scene(change: impl FnOnce(&mut Config)) -> (Place, Daemon) {
    let place = Place::new();
    for path in ["a", "b"] {
        place.write(path, "1");
    }
    let mut config = Config::default();
    config.decision.deadline_ms = config.decision.deadline_ms_max;
    change(&mut config);
    let daemon = Daemon::start_with(&place.home, config);
    (place, daemon)
}

#[test]
fn a_change_and_its_revert_are_told_and_the_same_bytes_are_not() {
    let (place, daemon) = scene(|_| ());
    let mut raw = subscribe(&daemon, &json!({ "topics": ["staleness", "decision", "fork", "gap"] }));
    register(&daemon, &place, "s", &json!([file("a", "1"), file("b", "0")]));
    assert_eq!(move_of(&told(&mut raw)), ["s", "b", "unknown", "stale", "born_stale"]);
    for (text, moved) in [
        ("2", Some(["s", "a", "fresh", "stale", "content"])),
        ("3", None),
        ("1", Some(["s", "a", "stale", "fresh", "-"])),
        ("1", None),
    ] {
        // In one step: a file that is being rewritten is empty for a moment, and that is a change.
        place.write("new", text);
        std::fs::rename(place.root.join("new"), place.root.join("a")).expect("it is renamed");
        let report = decide(&daemon, "s");
        if let Some(moved) = moved {
            let event = told(&mut raw);
            assert_eq!(move_of(&event), moved);
            assert_eq!(event["clock"]["epoch"], report["clock"]["epoch"]);
            assert!(event["clock"]["tick"].as_u64() <= report["clock"]["tick"].as_u64(), "{event} {report}");
        }
        assert_eq!(told(&mut raw)["decision"], report["decision"], "{text}");
    }
    std::fs::remove_file(place.root.join("a")).expect("it is there");
    assert_eq!(move_of(&told(&mut raw)), ["s", "a", "fresh", "stale", "deleted"]);
    place.write("a", "9");
    assert_eq!(move_of(&told(&mut raw)), ["s", "a", "stale", "stale", "content"]);
    // Told anew as they are: both hold again. What is fresh from its first moment is no news.
    place.write("c", "1");
    register(&daemon, &place, "s", &json!([file("c", "1"), file("a", "9"), file("b", "1")]));
    assert_eq!(move_of(&told(&mut raw)), ["s", "a", "stale", "fresh", "-"]);
    assert_eq!(move_of(&told(&mut raw)), ["s", "b", "stale", "fresh", "-"]);
    // Known already, and not what was seen: told at once.
    register(&daemon, &place, "t", &json!([file("a", "0")]));
    assert_eq!(move_of(&told(&mut raw)), ["t", "a", "unknown", "stale", "born_stale"]);
}

#[test]
fn an_own_write_a_refutation_and_a_lost_repository_are_told() {
    let (place, daemon) = scene(|_| ());
    commit_all(&place);
    let head = json!([{ "name": "head", "source": { "kind": "git_head", "path": "." } }]);
    let context =
        json!({ "session": "s", "root": place.root, "results": [file("a", "1")], "invariants": head });
    daemon.ask("context.register", &context);
    let mut raw = subscribe(&daemon, &json!({ "topics": ["staleness"] }));
    place.write("a", "2");
    assert_eq!(move_of(&told(&mut raw)), ["s", "a", "fresh", "stale", "content"]);
    let digest = crate::harness::digest("2");
    daemon.ask("touch_ack", &json!({ "session": "s", "path": "a", "digest": digest }));
    assert_eq!(move_of(&told(&mut raw)), ["s", "a", "stale", "fresh", "-"]);
    daemon.ask("fact.refute", &json!({ "session": "s", "source": "a" }));
    assert_eq!(move_of(&told(&mut raw)), ["s", "a", "fresh", "stale", "refuted"]);
    std::fs::rename(place.root.join(".git"), place.root.join("gone")).expect("it moves");
    assert_eq!(move_of(&told(&mut raw)), ["s", "head", "fresh", "unknown", "repository_missing"]);
}

/// Its inputs are rows of their own, and nobody asked for those.
#[test]
fn a_command_is_told_as_one() {
    let (place, daemon) = scene(|_| ());
    let inputs = json!([{ "kind": "file", "path": "a" }, { "kind": "file", "path": "b" }]);
    let command = json!({ "kind": "command", "command": "make", "inputs": inputs });
    let mut raw = subscribe(&daemon, &json!({ "topics": ["staleness"] }));
    register(&daemon, &place, "s", &json!([{ "id": "c", "source": command }]));
    place.write("a", "2");
    assert_eq!(move_of(&told(&mut raw)), ["s", "c", "fresh", "stale", "input"]);
    place.write("a", "1");
    assert_eq!(move_of(&told(&mut raw)), ["s", "c", "stale", "fresh", "-"]);
}

#[test]
fn a_decision_is_told_with_its_place_in_the_log() {
    let (place, daemon) = scene(|_| ());
    register(&daemon, &place, "s", &json!([file("a", "1")]));
    let mut raw = subscribe(&daemon, &json!({ "topics": ["decision"] }));
    let said = |event: &Value, report: &Value| {
        for name in ["decision", "session", "transition", "supersedes", "clock", "receipt"] {
            assert_eq!(event[name], report[name], "{name}: {event}");
        }
        assert_eq!(event["topic"], "decision");
        assert_eq!(event["reason"]["code"], report["reason"]["code"]);
        assert_eq!(event["reason"]["text"], report["reason"]["text"]);
    };
    let resumed = decide(&daemon, "s");
    said(&told(&mut raw), &resumed);
    let refuted = daemon.ask("fact.refute", &json!({ "session": "s", "source": "a" }));
    assert_eq!(refuted["decision"]["supersedes"], resumed["decision"]);
    said(&told(&mut raw), &refuted["decision"]);
}

#[test]
fn only_what_was_asked_for_is_told() {
    let (place, daemon) = scene(|_| ());
    register(&daemon, &place, "s", &json!([file("a", "1")]));
    register(&daemon, &place, "t", &json!([file("a", "1"), file("b", "1")]));
    let mut of_s = subscribe(&daemon, &json!({ "topics": ["staleness", "decision"], "session": "s" }));
    let mut stale = subscribe(&daemon, &json!({ "topics": ["staleness"] }));
    let mut early = subscribe(&daemon, &json!({ "topics": ["staleness"], "session": "later" }));
    place.write("b", "2");
    decide(&daemon, "t");
    place.write("a", "2");
    decide(&daemon, "t");
    decide(&daemon, "s");
    assert_eq!(move_of(&told(&mut of_s))[..2], ["s", "a"]);
    assert_eq!(told(&mut of_s)["session"], "s");
    let moves: Vec<_> = (0..3).map(|_| move_of(&told(&mut stale))[..2].concat()).collect();
    assert_eq!((&moves[0], moves.contains(&"ta".to_owned())), (&"tb".to_owned(), true), "{moves:?}");
    register(&daemon, &place, "later", &json!([file("b", "0")]));
    assert_eq!(move_of(&told(&mut early))[..2], ["later", "b"]);
    // One that goes takes nothing from the others.
    drop(of_s);
    wait_until("it is forgotten", || subscribers(&daemon) == 2);
    place.write("a", "1");
    while move_of(&told(&mut stale))[1..4] != ["a", "stale", "fresh"] {}
}

#[test]
fn what_is_no_subscription_is_refused_by_its_name() {
    let (_place, daemon) = scene(|_| ());
    for (params, named) in [
        (json!({ "topics": ["staleness", "wether"] }), "wether"),
        (json!({ "topics": ["lost"] }), "lost"),
        (json!({ "topics": [] }), "staleness, decision, fork, gap"),
        (json!({}), "topics"),
        (json!({ "topics": ["gap"], "session": "" }), "session"),
    ] {
        let mut raw = Raw::connect(&daemon);
        let answer = raw.say(line(1, "subscribe", &params));
        assert_eq!(answer["error"]["code"], -32602, "{params}: {answer}");
        assert!(answer["error"]["message"].as_str().expect("a sentence").contains(named), "{answer}");
    }
    assert_eq!(refusal(&mut daemon.client(), "subscribe", &json!({ "topics": ["x"] })), "-32602");
    assert_eq!(subscribers(&daemon), 0);
}

/// Whoever has read an answer has read every event that it knew of.
#[test]
fn requests_on_a_subscribed_connection_are_answered_behind_the_events_they_know_of() {
    let (place, daemon) = scene(|_| ());
    register(&daemon, &place, "s", &json!([file("a", "1")]));
    let mut raw = subscribe(&daemon, &json!({ "topics": ["staleness"] }));
    let mut known = "fresh".to_owned();
    let mut ticks = Vec::new();
    for round in 0..200_u64 {
        let (text, expected) = if round % 2 == 0 { ("2", "stale") } else { ("1", "fresh") };
        place.write("a", text);
        let ask = line(round, "decide", &json!({ "session": "s" }));
        let others = line(round + 1_000, "hello", &json!({}));
        raw.send(format!("{ask}\n{others}\n"));
        let mut awaited = 2;
        while awaited > 0 {
            let line = raw.answer().expect("a line");
            if line["method"] == "event" {
                known = line["params"]["status"].as_str().expect("a status").to_owned();
                ticks.push(line["params"]["clock"]["tick"].as_u64().expect("a tick"));
                continue;
            }
            awaited -= 1;
            if line["id"] == round {
                let stale = line["result"]["counts"]["stale"] == 1;
                assert_eq!(known, if stale { "stale" } else { "fresh" }, "round {round}: {line}");
                assert_eq!(known, expected, "round {round}: {line}");
            }
        }
    }
    assert!(ticks.len() == 200 && ticks.is_sorted(), "{ticks:?}");
    // Another subscription takes the place of the first.
    assert_eq!(
        raw.say(line(1, "subscribe", &json!({ "topics": ["fork"] })))["result"]["subscribed"],
        json!(["fork"])
    );
    place.write("a", "2");
    assert_eq!(raw.say(line(2, "decide", &json!({ "session": "s" })))["result"]["counts"]["stale"], 1);
    assert_eq!(subscribers(&daemon), 1);
}

#[test]
fn a_subscriber_is_not_idle_and_whoever_goes_is_forgotten() {
    let (place, daemon) = scene(|config| config.server.idle_timeout_ms = 300);
    register(&daemon, &place, "s", &json!([file("a", "1")]));
    let mut raw = subscribe(&daemon, &json!({ "topics": ["staleness"] }));
    assert_eq!(Raw::connect(&daemon).answer(), None, "somebody else who says nothing is closed");
    place.write("a", "2");
    assert_eq!(move_of(&told(&mut raw))[3], "stale");
    for round in 0..300 {
        let params = json!({ "topics": ["staleness", "gap"], "session": format!("s{round}") });
        drop(subscribe(&daemon, &params));
    }
    wait_until("only the one that stayed is known", || subscribers(&daemon) == 1);
    place.write("a", "1");
    assert_eq!(move_of(&told(&mut raw))[3], "fresh");
}

/// A session of so many rows that all rest on one file.
fn register_many(daemon: &Daemon, place: &Place, rows: usize) {
    let results = (0..rows).map(|n| {
        let mut result = file("a", "1");
        result["id"] = format!("r{n}").into();
        result
    });
    register(daemon, place, "many", &Value::Array(results.collect()));
}

/// Writes the file, and waits until every row has changed.
fn flip(daemon: &Daemon, place: &Place, round: usize) {
    place.write("a", if round.is_multiple_of(2) { "2" } else { "1" });
    daemon.ask("decide", &json!({ "session": "many", "rows": "stale" }));
}

#[test]
fn who_does_not_read_is_told_how_much_was_lost_and_holds_nobody_up() {
    const ROWS: usize = 1_000;
    const ROUNDS: usize = 100;
    let (place, daemon) = scene(|config| config.server.write_timeout_ms = 3_600_000);
    register_many(&daemon, &place, ROWS);
    let mut raw = subscribe(&daemon, &json!({ "topics": ["staleness"] }));
    let mut reading = subscribe(&daemon, &json!({ "topics": ["gap"] }));
    for round in 0..ROUNDS {
        flip(&daemon, &place, round);
    }
    assert_eq!(reading.say(line(7, "hello", &json!({})))["id"], 7, "the others are answered");
    let (mut delivered, mut lost, mut last) = (0, 0, (0, Value::Null));
    while delivered + lost < (ROWS * ROUNDS) as u64 {
        let event = told(&mut raw);
        if event["topic"] == "lost" {
            assert_eq!(event.as_object().map(serde_json::Map::len), Some(2), "{event}");
            lost += event["lost"].as_u64().expect("a number");
            continue;
        }
        delivered += 1;
        let tick = event["clock"]["tick"].as_u64().expect("a tick");
        assert!(tick >= last.0, "{event} behind {last:?}");
        last = (tick, event);
    }
    assert_eq!(delivered + lost, (ROWS * ROUNDS) as u64);
    assert!(lost > 50_000, "{lost} lost, {delivered} delivered");
    assert_eq!((&last.1["status"], &last.1["id"]), (&json!("fresh"), &json!("r999")), "the newest are kept");
    assert_eq!(raw.say(line(8, "hello", &json!({})))["id"], 8, "nothing else waits");
}

#[test]
fn who_reads_nothing_at_all_is_closed() {
    let (place, daemon) = scene(|config| config.server.write_timeout_ms = 200);
    register_many(&daemon, &place, 1_000);
    let raw = subscribe(&daemon, &json!({ "topics": ["staleness"] }));
    let mut round = 0;
    wait_until("it is forgotten", || {
        flip(&daemon, &place, round);
        round += 1;
        subscribers(&daemon) == 0
    });
    drop(raw);
}
