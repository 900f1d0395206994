//! What observations rest on is kept as sessions are, and nobody can see those sessions, name them or count them.

use super::{USER, evidence, save, scene, word};
use crate::cli::staled;
use crate::daemon::subscribe::{subscribe, told};
use crate::daemon::{cause, decide, register};
use crate::harness::{Daemon, Place, digest, file, refusal};
use serde_json::{Value, json};

fn observed_scene() -> (Place, Daemon, u64) {
    let (place, daemon) = scene();
    place.write("f", "one\n");
    let id = save(&daemon, "own", &json!([place.root.join("f")]));
    (place, daemon, id)
}

#[test]
fn no_client_can_name_what_an_observation_rests_on() {
    let (place, daemon, id) = observed_scene();
    let client = &mut daemon.client();
    let name = format!("\u{1}observation {id}");
    let context = json!({ "session": name, "root": place.root, "results": [file("f", "two\n")] });
    let questions = [
        ("decide", json!({ "session": name })),
        ("decide", json!({ "session": name, "memory": true })),
        ("status", json!({ "session": name })),
        ("context.get", json!({ "session": name })),
        ("context.drop", json!({ "session": name })),
        ("context.record", json!({ "session": name, "results": [file("f", "two\n")] })),
        ("context.record", json!({ "session": name, "remove": ["0"] })),
        ("context.register", context.clone()),
        ("context.register", {
            let mut anew = context;
            anew["replace"] = json!(true);
            anew
        }),
        ("fact.refute", json!({ "session": name, "source": place.root.join("f") })),
        ("fact.refute", json!({ "session": name, "fact": "0" })),
        ("touch_ack", json!({ "session": name, "path": place.root.join("f"), "digest": digest("two\n") })),
        ("subscribe", json!({ "topics": ["staleness"], "session": name })),
    ];
    for (method, params) in questions {
        assert_eq!(refusal(client, method, &params), "-32602", "{method} {params}");
    }
    // The same without its first character is anybody's name, and has nothing to do with it.
    let plain = format!("observation {id}");
    assert_eq!(refusal(client, "decide", &json!({ "session": plain })), "no_session_context");
    register(&daemon, &place, &plain, &json!([file("f", "two\n")]));
    assert_eq!(cause(&decide(&daemon, &plain), "f"), "born_stale");
    daemon.ask("context.drop", &json!({ "session": plain }));
    assert_eq!(word(&evidence(&daemon, id)), "fresh");
}

#[test]
fn nothing_lists_or_counts_what_observations_rest_on() {
    let (place, daemon, _) = observed_scene();
    let sees = |sessions: u64, when: &str| {
        assert_eq!(
            daemon.ask("context.list", &json!({}))["sessions"].as_array().map(Vec::len),
            Some(sessions as usize),
            "{when}"
        );
        assert_eq!(daemon.ask("context.list", &json!({ "user": USER }))["sessions"], json!([]), "{when}");
        assert_eq!(daemon.ask("context.list", &json!({ "root": "/" }))["sessions"], json!([]), "{when}");
        assert_eq!(daemon.ask("status", &json!({}))["sessions"], sessions, "{when}");
        let metrics = daemon.ask("metrics", &json!({}));
        let metrics = metrics.as_str().expect("text");
        assert!(metrics.contains(&format!("staled_sessions {sessions}\n")), "{when}: {metrics}");
        let why = staled(&place, &daemon.folders.socket, &["why", "f", "--json"]);
        assert!(!format!("{why:?}").contains("observation"), "{when}: {why:?}");
        for args in [&["status"][..], &["status", "--json"], &["tail", "--json"], &["why", "f"], &["metrics"]]
        {
            let run = format!("{:?}", staled(&place, &daemon.folders.socket, args));
            assert!(
                !run.contains("observation 1") && !run.contains("\\u{1}") && !run.contains("\\u0001"),
                "{when}, {args:?}: {run}"
            );
        }
    };
    sees(0, "without a session");
    register(&daemon, &place, "s", &json!([file("f", "one\n")]));
    sees(1, "beside a session");
    place.write("f", "two\n");
    sees(1, "stale");
    daemon.stop();
    let state = place.home.join("state");
    let export = ["export", "--state", state.to_str().expect("UTF-8")];
    let run = format!("{:?}", staled(&place, std::path::Path::new("/nowhere"), &export));
    // The rows are all of them: an export moves what the observation rests on too.
    assert!(run.contains("exported 1 session with 2 rows and 1 observation"), "{run}");
}

#[test]
fn subscribers_are_told_the_observation_and_not_a_session() {
    let (place, daemon, id) = observed_scene();
    let mut of_all = subscribe(&daemon, &json!({ "topics": ["staleness"] }));
    let mut of_one = subscribe(&daemon, &json!({ "topics": ["staleness"], "session": "s" }));
    let mut is_told = |word: &str, cause: Value| {
        let event = told(&mut of_all);
        let said =
            ["topic", "session", "observation", "id", "status", "cause"].map(|name| event[name].clone());
        assert_eq!(
            said,
            [json!("staleness"), Value::Null, json!(id), json!("0"), json!(word), cause],
            "{event}"
        );
        assert!(event["since"].is_string() && event["clock"]["epoch"].is_string(), "{event}");
    };
    over(&place, "two\n");
    is_told("stale", json!("content"));
    over(&place, "one\n");
    is_told("fresh", Value::Null);
    over(&place, "six\n");
    is_told("stale", json!("content"));
    // Saved anew it starts over. For whoever was told that it is stale, it is news that it is not.
    save(&daemon, "own", &json!([place.root.join("f")]));
    is_told("fresh", Value::Null);
    // Only what the session rests on is told to whoever asked for it.
    register(&daemon, &place, "s", &json!([file("f", "two\n")]));
    assert_eq!(told(&mut of_one)["session"], "s");
}

/// In one step: a file that is being rewritten is empty for a moment, and that is a change.
fn over(place: &Place, text: &str) {
    place.write("beside", text);
    std::fs::rename(place.root.join("beside"), place.root.join("f")).expect("ours");
}
