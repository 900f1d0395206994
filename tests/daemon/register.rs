//! `context.register`: what is taken, what is refused, and what is never written down.

use crate::daemon::{cause, decide, files_below, git, register, write_each};
use crate::harness::{Daemon, Place, ask, digest, file, refusal};
use base64::Engine as _;
use serde_json::{Value, json};
use sha2::Digest as _;
use staled::client::ClientError;
use staled::config::Config;

#[test]
fn every_spelling_of_what_was_seen_is_the_same_claim() {
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    place.write("a", "one\n");
    let blob = b"blob 4\0one\n";
    let hex = |bytes: &[u8]| bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    let sha1 = format!("git:{}", hex(&sha1::Sha1::digest(blob)));
    assert_eq!(sha1, format!("git:{}", git(&place.root, &["hash-object", "a"])));
    let claims = [
        json!({ "digest": digest("one\n") }),
        json!({ "digest": format!("sha256:{}", hex(&sha2::Sha256::digest(b"one\n"))) }),
        json!({ "digest": sha1 }),
        json!({ "digest": format!("git:{}", hex(&sha2::Sha256::digest(blob))) }),
        json!({ "digest": digest("one\n").to_uppercase().replace("BLAKE3", "blake3") }),
        json!({ "content": "one\n" }),
        json!({ "content": "one\n", "encoding": "utf-8" }),
        json!({ "content": base64::engine::general_purpose::STANDARD.encode("one\n"), "encoding": "base64" }),
    ];
    let mut results = Vec::new();
    for (number, claim) in claims.iter().enumerate() {
        let mut result = claim.clone();
        result["id"] = number.to_string().into();
        result["source"] = json!({ "kind": "file", "path": "a" });
        results.push(result);
    }
    let told = register(&daemon, &place, "s", &json!(results));
    for (text, expected, baseline) in
        [("one\n", "fresh", "client"), ("two\n", "content", ""), ("one\n", "fresh", "")]
    {
        place.write("a", text);
        let report = decide(&daemon, "s");
        for (number, claim) in claims.iter().enumerate() {
            assert_eq!(cause(&report, &number.to_string()), expected, "{claim} of {text:?}");
            assert!(baseline.is_empty() || told["results"][number]["baseline"] == baseline, "{told}");
        }
    }
    // Other bytes in every spelling: none is fresh.
    place.write("a", "two\n");
    let told = register(&daemon, &place, "t", &json!(results));
    for told in told["results"].as_array().expect("results") {
        assert_eq!((&told["status"], &told["cause"]), (&json!("stale"), &json!("born_stale")), "{told}");
    }
}

#[test]
fn what_does_not_fit_is_refused_by_its_name() {
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    let long = "x".repeat(2_049);
    let list: Vec<String> = (0..=1_000).map(|i| i.to_string()).collect();
    let result = |more: Value| {
        let mut result = json!({ "id": "r", "source": { "kind": "file", "path": "a" } });
        result.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        json!({ "results": [result] })
    };
    let client = &mut daemon.client();
    let cases = [
        (json!({ "facts": [{ "statement": "s" }] }), "fact_without_source"),
        (json!({ "facts": [{ "statement": "s", "sources": [] }] }), "fact_without_source"),
        (json!({ "facts": [{ "statement": long, "sources": ["a"] }] }), "too_large"),
        (json!({ "decisions": [long] }), "too_large"),
        (json!({ "decisions": list }), "too_large"),
        (json!({ "open_questions": list }), "too_large"),
        (
            json!({ "facts": list.iter().map(|i| json!({ "statement": i, "sources": ["a"] })).collect::<Vec<_>>() }),
            "too_large",
        ),
        (json!({ "facts": [{ "statement": "s", "sources": list }] }), "too_large"),
        (json!({ "goal": { "statement": long } }), "goal_invalid"),
        (json!({ "goal": { "hypotheses": list } }), "goal_invalid"),
        (json!({ "root": "relative" }), "-32602"),
        (json!({ "root": "" }), "-32602"),
        (json!({ "session": "" }), "-32602"),
        (json!({ "session": "x".repeat(201) }), "-32602"),
        (json!({ "session": "a\nb" }), "-32602"),
        (json!({ "captured_at": "yesterday" }), "-32602"),
        (result(json!({ "digest": "sha256:12" })), "-32602"),
        (result(json!({ "digest": digest("1"), "content": "1" })), "-32602"),
        (result(json!({ "content": "%", "encoding": "base64" })), "-32602"),
        (result(json!({ "content": "1", "encoding": "rot13" })), "-32602"),
        (result(json!({ "name": "n" })), "-32602"),
        (result(json!({ "id": "" })), "-32602"),
        (result(json!({ "source": { "kind": "tree", "path": ".", "policy": "strict" } })), "-32602"),
        (result(json!({ "source": { "kind": "forest", "path": "." } })), "-32602"),
        (result(json!({ "source": { "kind": "file" } })), "-32602"),
        (result(json!({ "source": { "kind": "file", "path": "a\u{0}b" } })), "-32602"),
        (
            result(json!({ "source": { "kind": "volatile", "what": "clock" }, "digest": digest("1") })),
            "-32602",
        ),
        (result(json!({ "source": { "kind": "git_head", "path": ".", "policy": "lax" } })), "-32602"),
        (json!({ "results": [file("a", "1"), file("a", "1")] }), "-32602"),
        (
            json!({ "results": [{ "id": "x", "source": { "kind": "file", "path": "a" } }],
            "invariants": [{ "name": "x", "source": { "kind": "file", "path": "a" } }] }),
            "-32602",
        ),
    ];
    for (more, code) in cases {
        let mut context = json!({ "session": "s", "root": place.root });
        context.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let shown: String = more.to_string().chars().take(120).collect();
        assert_eq!(refusal(client, "context.register", &context), code, "{shown}");
        assert_eq!(refusal(client, "decide", &json!({ "session": "s" })), "no_session_context", "{shown}");
    }
    assert_eq!(refusal(client, "context.register", &json!({ "session": "s" })), "-32602", "no root");
}

/// Whatever a client leaves blank is refused at once, or said some way: a report is never lost to it.
#[test]
fn blank_words_are_refused_or_make_a_report_nonetheless() {
    let place = Place::new();
    place.write("a", "1");
    place.write(" ", "1");
    let daemon = Daemon::start(&place.home);
    let mut taken = 0;
    for (number, blank) in ["", " ", "\t", "\u{200b}", "</private>"].iter().enumerate() {
        for field in [
            "id",
            "name",
            "what",
            "path",
            "statement",
            "evidence",
            "source",
            "fact",
            "decision",
            "question",
            "goal",
            "hypothesis",
            "agent",
            "user",
            "tool",
        ] {
            let text = |name: &str| if name == field { (*blank).to_owned() } else { format!("some {name}") };
            let session = format!("{number}{field}");
            let path = if field == "path" { *blank } else { "a" };
            let context = json!({ "session": session, "root": place.root, "agent": text("agent"), "user": text("user"),
                "goal": { "statement": text("goal"), "branchable": true, "shares_mutable_state": true,
                    "hypotheses": [text("hypothesis"), "other"] },
                "results": [{ "id": text("id"), "tool": text("tool"), "source": { "kind": "file", "path": path }, "digest": digest("0") },
                    { "id": "w", "source": { "kind": "volatile", "what": text("what") } }],
                "invariants": [{ "name": text("name"), "source": { "kind": "file", "path": "a" }, "digest": digest("1") }],
                "facts": [{ "id": text("fact"), "statement": text("statement"), "evidence": text("evidence"), "sources": ["w"] },
                    { "id": "other", "statement": "holds", "evidence": text("evidence"), "sources": ["other"] },
                    { "id": "third", "statement": "third", "sources": [text("source")] }],
                "decisions": [text("decision")], "open_questions": [text("question")] });
            match daemon.client().ask("context.register", &context) {
                Ok(_) => {
                    taken += 1;
                    assert_eq!(decide(&daemon, &session)["transition"], "fresh", "{context}");
                    daemon.ask("decide", &json!({ "session": session, "goal": { "statement": blank } }));
                }
                Err(staled::client::ClientError::Refused(refusal)) => {
                    assert!(matches!(refusal.code, -32602 | -32000), "{refusal}");
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(taken > 20, "{taken}");
}

/// The longest text there may be, which redaction makes longer: what was taken must be taken again at a restart.
#[test]
fn what_is_taken_once_is_taken_at_every_restart() {
    let place = Place::new();
    place.write("a", "1");
    let texts = [
        format!("{}<private", "x".repeat(2_040)),
        format!("{}<private>s</private>", "<private></private>".repeat(105)),
        "<pri</private>vate>hidden".to_owned(),
        "<</private>private>hidden</private>".to_owned(),
    ];
    for text in texts {
        let daemon = Daemon::start(&place.home);
        let client = &mut daemon.client();
        let context = json!({ "session": "s", "root": place.root, "replace": true,
            "results": [{ "id": text, "source": { "kind": "file", "path": "a" } }], "decisions": [text] });
        match client.ask("context.register", &context) {
            Ok(_) => {}
            Err(staled::client::ClientError::Refused(refusal)) => {
                assert_eq!(refusal.word(), Some("too_large"));
                continue;
            }
            Err(error) => panic!("{error}"),
        }
        let got = daemon.ask("context.get", &json!({ "session": "s" }));
        assert!(!got.to_string().contains("hidden"), "{got}");
        daemon.stop();
        std::fs::remove_dir_all(place.home.join("state/index")).expect("an index");
        let daemon = Daemon::start(&place.home);
        assert_eq!(daemon.ask("context.get", &json!({ "session": "s" })), got);
        daemon.stop();
    }
}

#[test]
fn the_bound_on_results_is_named_and_the_session_stays_as_it_was() {
    let place = Place::new();
    (0..6).for_each(|i| place.write(&format!("f{i}"), "1"));
    let mut config = Config::default();
    config.context.results_max = 5;
    let daemon = Daemon::start_with(&place.home, config);
    let client = &mut daemon.client();
    let results =
        |range: std::ops::Range<u32>| -> Vec<Value> { range.map(|i| file(&format!("f{i}"), "1")).collect() };
    let context = |results: Vec<Value>| json!({ "session": "s", "root": place.root, "results": results });
    match client.ask("context.register", &context(results(0..6))) {
        Err(staled::client::ClientError::Refused(refusal)) => {
            assert_eq!(refusal.word(), Some("too_large"));
            assert!(refusal.message.contains('5') && refusal.message.contains('6'), "{refusal}");
        }
        other => panic!("{other:?}"),
    }
    ask(client, "context.register", &context(results(0..5)));
    ask(client, "context.register", &context(results(0..5)));
    assert_eq!(
        refusal(client, "context.record", &json!({ "session": "s", "results": results(5..6) })),
        "too_large"
    );
    let report = decide(&daemon, "s");
    assert_eq!((&report["transition"], &report["counts"]["results"]), (&json!("resume"), &json!(5)));
    ask(client, "context.record", &json!({ "session": "s", "remove": ["f0"], "results": results(5..6) }));
    let mut whole = context(results(1..6));
    whole["replace"] = true.into();
    ask(client, "context.register", &whole);
}

#[test]
fn without_a_claim_the_look_at_registration_stands_in_and_says_so() {
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    let told = register(
        &daemon,
        &place,
        "s",
        &json!([
            { "id": "a", "source": { "kind": "file", "path": "a" } },
            { "id": "none", "critical": false, "source": { "kind": "file", "path": "none" } },
        ]),
    );
    assert_eq!(told["results"][0], json!({ "id": "a", "status": "fresh", "baseline": "registration" }));
    assert_ne!(told["results"][1]["status"], "fresh", "nothing was seen there: {told}");
    assert!(!told["warnings"].as_array().expect("warnings").is_empty());
    for (text, expected) in [("2", "content"), ("1", "fresh")] {
        place.write("a", text);
        assert_eq!(cause(&decide(&daemon, "s"), "a"), expected);
    }
    // What appears where nothing was cannot be what the agent saw.
    place.write("none", "x");
    assert_ne!(cause(&decide(&daemon, "s"), "none"), "fresh");
}

/// What stands in for the client is what is there now, not what somebody else's session last heard of it.
#[test]
fn a_baseline_is_taken_behind_everything_that_happened_before() {
    let place = Place::new();
    place.write("a", "0");
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "other", &json!([file("a", "0")]));
    for round in 0..200 {
        place.write("a", &format!("text {round}"));
        let result = json!([{ "id": "a", "source": { "kind": "file", "path": "a" } }]);
        let told = register(&daemon, &place, "s", &result);
        assert_eq!(told["results"][0]["status"], "fresh", "round {round}: {told}");
        assert_eq!(decide(&daemon, "s")["transition"], "resume", "round {round}");
    }
}

#[test]
fn a_name_is_made_and_the_user_is_known_when_nobody_says() {
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    let told = daemon.ask("context.register", &json!({ "root": place.root, "results": [file("a", "1")] }));
    let session = told["session"].as_str().expect("a name");
    assert_eq!(session.len(), 36);
    let got = daemon.ask("context.get", &json!({ "session": session }));
    assert!(!got["user"].as_str().expect("a user").is_empty());
    assert_eq!(decide(&daemon, session)["transition"], "resume");
}

/// Registering again keeps other results; `replace` starts over.
#[test]
fn registering_again_adds_and_replace_starts_over() {
    let place = Place::new();
    write_each(&place, &["a", "b"], "1");
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([file("a", "0")]));
    register(&daemon, &place, "s", &json!([file("b", "1")]));
    assert_eq!(decide(&daemon, "s")["counts"]["results"], 2);
    register(&daemon, &place, "s", &json!([file("a", "1")]));
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    let context = json!({ "session": "s", "root": place.root, "replace": true, "results": [file("b", "1")] });
    daemon.ask("context.register", &context);
    assert_eq!(decide(&daemon, "s")["counts"]["results"], 1);
}

#[test]
fn not_one_byte_of_private_text_is_kept() {
    const SECRET: &str = "Zq7-do-not-keep";
    let place = Place::new();
    place.write("a", SECRET);
    let daemon = Daemon::start(&place.home);
    let hide = |text: &str| format!("{text} <private>{SECRET}</private>");
    let context = json!({
        "session": hide("s"), "user": hide("u"), "agent": hide("ag"), "root": place.root,
        "goal": { "statement": hide("g"), "branchable": true, "hypotheses": [hide("h1"), hide("h2")] },
        "results": [
            { "id": hide("r"), "tool": hide("t"), "source": { "kind": "file", "path": "a" }, "content": SECRET },
            { "id": "v", "source": { "kind": "volatile", "what": hide("w") } },
        ],
        "facts": [
            { "id": hide("f"), "statement": hide("st"), "evidence": hide("ev"), "sources": [hide("r")] },
            { "statement": hide("nameless"), "sources": ["a"] },
        ],
        "decisions": [hide("d"), format!("<PRIVATE kind='x'>{SECRET}")], "open_questions": [hide("q")],
        "remove": [hide("gone")],
    });
    daemon.ask("context.register", &context);
    let session = hide("s");
    let decide = || {
        daemon.ask(
            "decide",
            &json!({ "session": session, "deadline_ms": 10_000,
        "goal": { "statement": hide("other") } }),
        )
    };
    assert_eq!(decide()["transition"], "resume");
    // A fact goes by its id as the client spelled it, though it is kept without its private part.
    for fact in [hide("f"), hide("nameless")] {
        let refuted =
            daemon.ask("fact.refute", &json!({ "session": session, "fact": fact, "observed": hide("o") }));
        assert_eq!(refuted["refuted"], json!(["r [REDACTED]"]), "{refuted}");
    }
    assert_eq!(decide()["transition"], "fresh");
    daemon.ask("touch_ack", &json!({ "session": session, "path": "a", "digest": digest(SECRET) }));
    let removed = json!({ "session": session, "remove": [hide("f")], "results": [file("a", SECRET)] });
    daemon.ask("context.record", &removed);
    let client = &mut daemon.client();
    let odd = json!({ "session": "odd", "root": place.root,
        "results": [{ "id": "x", "source": { "kind": "file", "path": hide("p") } }] });
    assert_eq!(refusal(client, "context.register", &odd), "-32602", "a path is not a place for private text");
    let folders = daemon.folders.clone();
    daemon.stop();
    for file in files_below(&folders.state).into_iter().chain(files_below(&folders.runtime)) {
        let bytes = std::fs::read(&file).expect("a file");
        let found = bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
        assert!(!found, "{} holds the secret", file.display());
    }
    let daemon = Daemon::start(&place.home);
    assert!(!daemon.ask("context.get", &json!({ "session": session })).to_string().contains(SECRET));
}

/// A context that starts over takes nothing along: an old goal would go on forking.
#[test]
fn starting_over_forgets_the_goal_and_the_scratchpad() {
    let place = Place::new();
    let config = Config {
        decision: staled::config::Decision { scratchpad_bytes_max: 10, ..Default::default() },
        ..Config::default()
    };
    let daemon = Daemon::start_with(&place.home, config);
    place.write("a", "one\n");
    let goal = json!({ "statement": "old", "branchable": true, "hypotheses": ["one way", "another way"] });
    let told = json!({ "session": "s", "root": place.root, "results": [file("a", "one\n")], "goal": goal,
                       "agent": "old", "captured_at": "2026-11-29T10:00:00Z", "scratchpad_bytes": 11 });
    daemon.ask("context.register", &told);
    assert_eq!(decide(&daemon, "s")["reason"]["code"], "scratchpad_over_budget");
    let anew =
        json!({ "session": "s", "root": place.root, "results": [file("a", "one\n")], "replace": true });
    daemon.ask("context.register", &anew);
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    let held = daemon.ask("context.get", &json!({ "session": "s" }));
    assert_eq!(held["goal"]["statement"], "", "{held}");
    assert_eq!(held["captured_at"], Value::Null, "{held}");
}

/// A path that only a fact names is a row like any other.
#[test]
fn paths_that_facts_name_count_against_the_bound() {
    let place = Place::new();
    let config = Config {
        context: staled::config::Context { results_max: 4, ..Default::default() },
        ..Config::default()
    };
    let daemon = Daemon::start_with(&place.home, config);
    place.write("a", "one\n");
    let context = |sources: Value| {
        let facts = json!([{ "id": "f", "statement": "s", "sources": sources }]);
        json!({ "session": "s", "root": place.root, "results": [file("a", "one\n")], "facts": facts })
    };
    let over = context(json!(["b", "c", "d", "e"]));
    assert_eq!(refusal(&mut daemon.client(), "context.register", &over), "too_large");
    // One path under two spellings is one row; a result's id, and its path, are no rows of their own.
    daemon.ask("context.register", &context(json!(["a", "./a", "b", "./b", "c", "d"])));
    daemon.ask("context.record", &json!({ "session": "s", "decisions": ["still taken"] }));
}

/// Its own deadline is over when it asks for the second time whether everything was seen, so nobody knows what has become
/// of the files since they were looked at.
#[test]
fn a_registration_that_saw_nothing_at_its_end_says_nothing() {
    let place = Place::new();
    place.write("a", "1");
    let mut config = Config::default();
    config.context.register_deadline_ms = 100;
    let daemon = Daemon::start_with(&place.home, config);
    let client = &mut daemon.client();
    // However fast the machine, so many rows take longer to be taken in than that.
    let is_refused = |rows: usize| {
        let session = format!("s{rows}");
        let result = |row: usize| json!({ "id": row.to_string(), "source": { "kind": "file", "path": "a" }, "digest": digest("1") });
        let results: Vec<Value> = (0..rows).map(result).collect();
        let context = json!({ "session": session, "root": place.root, "results": results });
        let answer = client.ask("context.register", &context);
        let is_taken_in = client.ask("context.get", &json!({ "session": session })).is_ok();
        match answer {
            Err(ClientError::Refused(refusal)) => {
                assert_eq!(refusal.word(), Some("store_failed"));
                is_taken_in
            }
            answer => {
                assert!(answer.is_ok(), "{answer:?}");
                false
            }
        }
    };
    let sizes = std::iter::successors(Some(1_000), |rows| Some(rows * 2));
    assert!(sizes.take(5).any(is_refused), "it was always answered");
}
