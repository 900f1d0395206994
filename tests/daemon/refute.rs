//! `fact.refute`: what failed in use is stale until it is registered again, and a resume is taken back.

use crate::daemon::{cause, decide, register};
use crate::harness::{Daemon, Place, file, refusal};
use serde_json::{Value, json};

#[test]
fn a_resume_is_superseded_and_only_a_registration_heals() {
    let place = Place::new();
    place.write("a", "1");
    place.write("b", "1");
    let daemon = Daemon::start(&place.home);
    let tell = |session: &str| {
        let facts = json!([{ "id": "f", "statement": "s", "sources": ["a"] }]);
        let context = json!({ "session": session, "root": place.root, "replace": true,
            "results": [file("a", "1"), file("b", "1")], "facts": facts });
        daemon.ask("context.register", &context);
    };
    for (number, target) in [("fact", "f"), ("source", "a"), ("source", "./a")].iter().enumerate() {
        let session = format!("s{number}");
        tell(&session);
        let resumed = decide(&daemon, &session);
        assert_eq!(resumed["transition"], "resume");
        let mut ask = json!({ "session": session, "observed": "it was not so" });
        ask[target.0] = target.1.into();
        let refuted = daemon.ask("fact.refute", &ask);
        assert_eq!(refuted["refuted"], json!(["a"]), "{target:?}");
        assert_eq!(refuted["decision"]["supersedes"], resumed["decision"]);
        assert_eq!(refuted["decision"]["transition"], "fresh");
        assert_eq!(refuted["decision"]["reason"]["code"], "fact_refuted");
        assert!(staled::protocol::gate::check(&refuted["decision"]).is_empty());
        // Neither the same bytes again nor other bytes make it true.
        for text in ["1", "2", "1"] {
            place.write("a", text);
            assert_eq!(cause(&decide(&daemon, &session), "a"), "refuted");
        }
        let again = daemon.ask("fact.refute", &ask);
        assert_eq!(again["decision"], Value::Null, "the last decision was no resume");
        tell(&session);
        assert_eq!(decide(&daemon, &session)["transition"], "resume");
    }
    let events = daemon.ask("log.read", &json!({}));
    let refutations = events["lines"].as_array().expect("lines").iter();
    assert_eq!(refutations.filter(|line| line["event"] == "fact_refuted").count(), 6);
}

#[test]
fn what_nobody_knows_cannot_be_refuted() {
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([file("a", "1")]));
    let client = &mut daemon.client();
    for (ask, code) in [
        (json!({ "session": "none", "fact": "f" }), "no_session_context"),
        (json!({ "session": "s", "fact": "f" }), "not_found"),
        (json!({ "session": "s", "source": "b" }), "not_found"),
        (json!({ "session": "s" }), "-32602"),
        (json!({ "session": "s", "fact": "a", "source": "a" }), "-32602"),
    ] {
        assert_eq!(refusal(client, "fact.refute", &ask), code, "{ask}");
    }
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
}
