//! `<private>`: not one byte of it is kept, logged or answered, wherever it stands and however it is written.

use super::{files_with, get, refused, save, save_under, scene, search};
use crate::cli::serve::{Serving, state};
use crate::harness::{Place, ask};
use rustix::process::Signal;
use serde_json::{Value, json};
use staled::client::{Client, ClientError};

/// Stands for what is private.
const SECRET: &str = "Zp9sEcReT";

/// How it is written, with `S` for the secret, and what is kept of it.
const WRITTEN: [(&str, &str); 20] = [
    ("a <private>S</private> z", "a [REDACTED] z"),
    ("a <PRIVATE>S</PrIvAtE> z", "a [REDACTED] z"),
    ("a <private why=\"S\" level=3>S</private> z", "a [REDACTED] z"),
    ("a <private why='>'>S</private> z", "a [REDACTED] z"),
    ("a <private >S</private > z", "a [REDACTED] z"),
    ("a <private\n\t>S</private\u{2003}> z", "a [REDACTED] z"),
    ("a < private>S< / private> z", "a [REDACTED] z"),
    ("a <private>S<private>S<private>S</private>S</private>S</private> z", "a [REDACTED] z"),
    ("a <private>S<Private x>S<PRIVATE >S</private>S</private>S</private>z", "a [REDACTED]z"),
    ("a <private>S", "a [REDACTED]"),
    ("a <private>S<private>S</private>S", "a [REDACTED]"),
    ("a <private S", "a [REDACTED]"),
    ("a <private/>S", "a [REDACTED]"),
    ("a <private>S</private", "a [REDACTED]"),
    ("a <private>S</privat>S", "a [REDACTED]"),
    ("a <private>S</ private>b<private>S</private>", "a [REDACTED]b[REDACTED]"),
    ("</private>a</private> <private>S</private></private> z", "a [REDACTED] z"),
    ("a</private S> z", "a z"),
    ("a <pri</private>vate>S</private> z", "a [REDACTED]"),
    ("<private>S</private>", "[REDACTED]"),
];

/// As it is said and as it is kept.
fn written() -> impl Iterator<Item = (String, String)> {
    WRITTEN.into_iter().map(|(said, kept)| (said.replace('S', SECRET), kept.to_owned()))
}

#[test]
fn what_is_private_is_redacted_in_every_field() {
    let (_place, daemon) = scene();
    let client = &mut daemon.client();
    for (number, (said, kept)) in written().enumerate() {
        let user = format!("u{number}");
        let params =
            json!({ "user_id": user, "type": "decision", "title": said, "content": said, "topic_key": said });
        let saved = ask(client, "mem_save", &params);
        assert_eq!(saved["topic_key"], kept, "{said}");
        let whole = get(client, &user, &saved["id"]);
        assert_eq!((&whole["content"], &whole["topic_key"]), (&json!(kept), &json!(kept)), "{said}");
        assert_eq!(whole["title"], kept.trim(), "{said}");
        let summed = ask(client, "mem_session_summary", &json!({ "user_id": user, "summary": said }));
        let whole = get(client, &user, &summed["id"]);
        assert_eq!((&whole["content"], &whole["title"]), (&json!(kept), &json!(kept.trim())), "{said}");
        let ended = ask(client, "mem_session_end", &json!({ "user_id": user, "summary": said }));
        assert_eq!(ended["summary"], kept, "{said}");
        // Redacted, two users would be one.
        let params = json!({ "user_id": format!("{user}{said}") });
        let (code, says) = refused(client, "mem_session_start", &params);
        assert!(code == "invalid_params" && says.contains("private") && !says.contains(SECRET), "{says}");
    }
}

#[test]
fn a_title_is_cut_behind_the_stripping() {
    let (_place, daemon) = scene();
    let client = &mut daemon.client();
    for before in 60..=84 {
        for (number, tag) in ["<private>", "<PRIVATE\n>", "<private a=b>"].into_iter().enumerate() {
            let title = format!("{}{tag}{SECRET}</private> and what follows", "t".repeat(before));
            let saved = save(client, "u", &title, &format!("content {before} {number}"));
            let kept = get(client, "u", &saved["id"])["title"].as_str().expect("a title").to_owned();
            let mut expected = format!("{}[REDACTED] and what follows", "t".repeat(before));
            expected.truncate(80);
            assert_eq!(kept, expected, "{title}");
            let open = format!("{}{tag}{SECRET}", "t".repeat(before));
            let saved = save(client, "u", &open, &format!("content {before} {number} open"));
            let mut expected = format!("{}[REDACTED]", "t".repeat(before));
            expected.truncate(80);
            assert_eq!(get(client, "u", &saved["id"])["title"], expected);
            // The first line of a summary is its title.
            let summed = ask(
                client,
                "mem_session_summary",
                &json!({ "user_id": "u", "summary": format!("{title}\nmore") }),
            );
            let kept = get(client, "u", &summed["id"])["title"].as_str().expect("a title").to_owned();
            assert!(kept.len() <= 80 && !kept.contains(SECRET) && kept.starts_with("ttt"), "{kept}");
        }
    }
}

#[test]
fn what_differs_only_in_private_is_the_same() {
    let (_place, daemon) = scene();
    let client = &mut daemon.client();
    let first = save(client, "u", "t", "the code is <private>1111</private>");
    for content in ["the code is <private>2222</private>", "the code is <PRIVATE >", "the code is [REDACTED]"]
    {
        let again = save(client, "u", "t", content);
        assert_eq!((&again["outcome"], &again["id"]), (&json!("deduped"), &first["id"]), "{content}");
        assert_eq!(again["revision_count"], 1);
    }
    let keyed = save_under(client, "u", "k<private>1</private>", "t", "c <private>1</private>");
    let same = save_under(client, "u", "k<private>2", "t", "c <private>2</private>");
    assert_eq!((&same["outcome"], &same["id"]), (&json!("deduped"), &keyed["id"]));
    let over = save_under(client, "u", "k<private>3</private>", "t", "d");
    assert_eq!((&over["outcome"], &over["id"]), (&json!("updated"), &keyed["id"]));
    for blank in ["<private>x</private>", " <private>"] {
        assert_eq!(
            save(client, "u", blank, &format!("{blank} b"))["topic_key"],
            Value::Null,
            "it is something"
        );
    }
    for nothing in ["</private>", " </private> </PRIVATE >"] {
        let params = json!({ "user_id": "u", "type": "decision", "title": "t", "content": nothing });
        assert_eq!(refused(client, "mem_save", &params).0, "invalid_params", "{nothing}");
    }
}

/// Everything that may be said, with what is private in every string of it.
fn requests(place: &Place, said: &str, number: usize) -> Vec<(&'static str, Value)> {
    let user = "keeper";
    vec![
        ("mem_session_start", json!({ "user_id": said })),
        ("mem_session_start", json!({ "user_id": user, "stale": said })),
        (
            "mem_save",
            json!({ "user_id": user, "type": "decision", "title": said, "content": format!("{number} {said}"), "topic_key": format!("{} {said}", number % 4) }),
        ),
        (
            "mem_save",
            json!({ "user_id": user, "type": "decision", "title": "over", "content": format!("{number} over it {said}"), "topic_key": format!("{} {said}", number % 4) }),
        ),
        ("mem_save", json!({ "user_id": user, "type": said, "title": said, "content": said })),
        (
            "mem_save",
            json!({ "user_id": user, "type": "decision", "title": said, "content": said, "colour": said }),
        ),
        (
            "mem_save",
            json!({ "user_id": user, "type": "decision", "title": said, "content": said, "if_revision": said }),
        ),
        (
            "mem_save",
            json!({ "user_id": user, "type": "decision", "title": "t", "content": format!("{number} on {said}"), "sources": [place.root.join(said)] }),
        ),
        (
            "mem_save",
            json!({ "user_id": user, "type": "decision", "title": "t", "content": format!("{number} of {said}"), "sources": [{ "kind": said, "path": "/a" }] }),
        ),
        (
            "mem_save",
            json!({ "user_id": user, "type": "decision", "title": "t", "content": format!("{number} at {said}"), "sources": [place.root.join("a")] }),
        ),
        (
            "mem_save",
            json!({ "user_id": user, "type": "decision", "title": "t", "content": format!("{number} by {said}"), "sources": [{ "source": { "kind": "file", "path": "/a" }, "digest": said }] }),
        ),
        (
            "mem_save",
            json!({ "user_id": user, "type": "decision", "title": said, "content": said, "topic_key": format!("{said}{}", "k".repeat(300)) }),
        ),
        ("mem_session_summary", json!({ "user_id": user, "summary": format!("{said}\n{number}") })),
        ("mem_session_end", json!({ "user_id": user, "summary": said })),
        ("mem_session_end", json!({ "user_id": format!("nobody {said}"), "summary": said })),
        ("mem_search", json!({ "user_id": user, "query": said })),
        ("mem_search", json!({ "user_id": said, "query": said, "types": [said] })),
        ("mem_search", json!({ "user_id": user, "query": said, "limit": said })),
        ("mem_get_observation", json!({ "user_id": said, "observation_id": 1 })),
        ("mem_get_observation", json!({ "user_id": user, "observation_id": said })),
        ("mem_timeline", json!({ "user_id": said, "observation_id": 1 })),
        ("mem_stats", json!({ "user_id": said })),
        ("mem_list_sessions", json!({ "user_id": said })),
        ("mem_forget", json!({ "user_id": said, "id": 1 })),
        (
            if number.is_multiple_of(2) { "mem_forget" } else { "mem_stats" },
            json!({ "user_id": said, "id": 100_000 }),
        ),
    ]
}

fn assert_nowhere(place: &Place, daemon: &Serving, when: &str) {
    assert_eq!(files_with(&state(place), &[SECRET]), [], "{when}");
    let said = daemon.said();
    let line = said.lines().find(|line| line.contains(SECRET));
    assert_eq!(line, None, "{when}");
    assert!(said.contains("TRACE") || said.contains("DEBUG"), "nothing is traced");
}

#[test]
fn nothing_private_is_in_any_file_log_or_answer() {
    let place = Place::new();
    ["a", "b"].iter().for_each(|name| place.write(name, "1"));
    let file = place.home.with_file_name("config.toml");
    let config = "[log]\nlevel = \"trace\"\nsync = \"always\"\nfile_bytes_max = 65536\n[journal]\ncompact_bytes = 4096\n";
    std::fs::write(&file, config).expect("a file");
    let config = ["--config", file.to_str().expect("UTF-8")];
    let mut daemon = Serving::start(&place, &config);
    let (mut answered, mut refusals) = (0, 0);
    for round in 0..2 {
        let client = &mut Client::connect(&daemon.socket).expect("it serves");
        let said: Vec<String> = written().map(|(said, _)| said).collect();
        for (number, said) in said.iter().enumerate() {
            for (method, params) in requests(&place, said, number + round) {
                match client.ask(method, &params) {
                    Ok(answer) => {
                        assert!(!answer.contains(SECRET), "{method} {params}: {answer}");
                        answered += 1;
                    }
                    Err(ClientError::Refused(refusal)) => {
                        let told = serde_json::to_string(&refusal).expect("JSON");
                        assert!(!told.contains(SECRET), "{method} {params}: {told}");
                        refusals += 1;
                    }
                    Err(error) => panic!("{method} {params}: {error}"),
                }
            }
        }
        let result = json!([{ "id": "b", "source": { "kind": "file", "path": "b" }, "digest": crate::harness::digest("2") }]);
        let context = json!({ "session": "s", "user": "keeper", "root": place.root, "results": result });
        ask(client, "context.register", &context);
        let report = ask(client, "decide", &json!({ "session": "s", "memory": true, "deadline_ms": 10_000 }));
        assert!(report.to_string().contains("[REDACTED]"), "what is remembered is in a decision: {report}");
        assert!(search(client, "keeper", "over").len() > 2);
        assert_nowhere(&place, &daemon, "as it runs");
        daemon.signal(Signal::TERM);
        assert_eq!(daemon.ends(), 0);
        assert_nowhere(&place, &daemon, "as it has ended");
        if round == 0 {
            daemon = Serving::start(&place, &config);
        }
    }
    assert!(answered > 200 && refusals > 200, "{answered} {refusals}");
    assert!(!files_with(&state(&place), &["[REDACTED]"]).is_empty(), "what is kept is found");
}
