//! The table of tools against what the daemon takes: names, parameters, and which of them may be left out.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test does")]

use super::Scene;
use serde_json::{Value, json};
use staled::mcp::parts::{GOAL, INPUT, RANGE, SEEN, SOURCE};
use staled::mcp::schema::{Field, Object, Without, complete, object};
use staled::mcp::tools::{Does, TOOLS, Tool, named};
use staled::protocol::context::{Goal, LineRange, Source};
use staled::protocol::fork::ask as fork;
use staled::protocol::fork::record::Mode;
use staled::protocol::memory;
use staled::protocol::path::WirePath;
use staled::protocol::request::{Decide, METHODS, Request, Status, line};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Parameters of the daemon that no tool has: a model waits as long as it takes, and holds no process.
const NOT_FOR_MODELS: [&str; 2] = ["deadline_ms", "holder"];

fn path() -> WirePath {
    WirePath(PathBuf::from("/p"))
}

fn text() -> String {
    "t".to_owned()
}

fn texts() -> Vec<String> {
    vec!["t".to_owned()]
}

/// A source that says all it may. The twins are written out whole, so a field that is added there fails to compile here.
fn source(inputs: Option<Vec<Source>>) -> Source {
    Source {
        kind: "file".to_owned(),
        path: Some(path()),
        policy: Some(text()),
        what: Some(text()),
        range: Some(LineRange { start_line: 1, lines: 1 }),
        include: texts(),
        exclude: texts(),
        contents: Some(true),
        gitignore: Some(true),
        command: Some(text()),
        cwd: Some(path()),
        inputs,
    }
}

fn goal() -> Goal {
    Goal { statement: "t".to_owned(), branchable: true, shares_mutable_state: false, hypotheses: texts() }
}

/// Everything that a forwarding tool's method takes.
fn everything(method: &str) -> Value {
    let user_id = || "u".to_owned();
    let value = match method {
        "decide" => serde_json::to_value(Decide {
            session: "s".to_owned(),
            goal: Some(goal()),
            rows: Some("all".to_owned()),
            deadline_ms: Some(1),
            provision: Some(false),
            memory: Some(false),
            holder: Some(staled::protocol::request::Holder { pid: 1 }),
        }),
        "mem_session_start" => {
            serde_json::to_value(memory::Start { user_id: user_id(), stale: Some(memory::Stale::Include) })
        }
        "mem_save" => serde_json::to_value(memory::Save {
            user_id: user_id(),
            content: "c".to_owned(),
            kind: "pattern".to_owned(),
            title: "t".to_owned(),
            topic_key: Some(text()),
            sources: Some(vec![memory::Ground::Path(path())]),
            if_revision: Some(0),
        }),
        "mem_session_summary" | "mem_session_end" => {
            serde_json::to_value(memory::Summary { user_id: user_id(), summary: "s".to_owned() })
        }
        "mem_search" => serde_json::to_value(memory::Search {
            user_id: user_id(),
            query: "q".to_owned(),
            limit: Some(1),
            types: Some(texts()),
            types_exclude: Some(texts()),
            stale: Some(memory::Stale::Demote),
        }),
        "mem_get_observation" => {
            serde_json::to_value(memory::Get { user_id: user_id(), observation_id: 1, history: true })
        }
        "mem_timeline" => serde_json::to_value(memory::Around { user_id: user_id(), observation_id: 1 }),
        "mem_stats" => serde_json::to_value(memory::OfUser { user_id: user_id() }),
        "fork.create" => serde_json::to_value(fork::Create {
            session: "s".to_owned(),
            hypotheses: Some(texts()),
            mode: Some(Mode::Copy),
            from: Some(text()),
            copy: vec![path()],
        }),
        "fork.status" => serde_json::to_value(fork::OfFork { fork: "f".to_owned() }),
        "fork.list" => serde_json::to_value(fork::List { session: Some(text()) }),
        "status" => serde_json::to_value(Status { session: Some(text()), ..Status::default() }),
        other => panic!("what does {other} take?"),
    };
    value.unwrap()
}

fn method(tool: &Tool) -> Option<&'static str> {
    match tool.does {
        Does::Forward(method) => Some(method),
        Does::Status => Some("status"),
        Does::StaleCheck | Does::Why => None,
    }
}

fn names(fields: &[Field]) -> BTreeSet<String> {
    fields.iter().map(|field| field.name.to_owned()).collect()
}

fn keys(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

/// Whether the daemon would take these parameters, as far as their form goes.
fn takes(method: &str, params: &Object) -> bool {
    Request::parse(line(1, method, params).as_bytes()).unwrap().verb.is_ok()
}

#[test]
fn a_tool_takes_what_its_method_takes() {
    for (tool, method) in TOOLS.iter().filter_map(|tool| Some((tool, method(tool)?))) {
        assert!(METHODS.contains(&method), "{method}");
        let mut all = everything(method);
        NOT_FOR_MODELS.iter().for_each(|name| drop(all.as_object_mut().unwrap().remove(*name)));
        assert_eq!(names(tool.fields), keys(&all), "{}", tool.name);
        let all = all.as_object().unwrap();
        assert!(takes(method, all), "{}", tool.name);
        for field in tool.fields {
            let mut without = all.clone();
            without.remove(field.name);
            let needed = !takes(method, &without);
            let told_so = matches!(field.without, Without::Refused | Without::Login);
            assert_eq!(needed, told_so, "{} without {}", tool.name, field.name);
        }
    }
}

#[test]
fn the_eight_methods_of_the_memory_are_tools_by_their_own_names() {
    let eight = METHODS.iter().filter(|method| method.starts_with("mem_"));
    let eight: Vec<&str> =
        eight.copied().filter(|method| !["mem_list_sessions", "mem_forget"].contains(method)).collect();
    assert_eq!(eight.len(), 8);
    for method in eight {
        assert_eq!(named(method).expect(method).does, Does::Forward(method));
    }
}

#[test]
fn what_arguments_are_made_of_is_what_the_daemon_reads() {
    let whole = serde_json::to_value(source(Some(vec![source(None)]))).unwrap();
    assert_eq!(names(SOURCE), keys(&whole));
    let kinds = ["command", "cwd", "inputs"].map(str::to_owned);
    assert_eq!(&names(INPUT) | &BTreeSet::from(kinds), names(SOURCE));
    let seen = memory::Seen { source: source(None), digest: "d".to_owned() };
    assert_eq!(names(SEEN), keys(&serde_json::to_value(seen).unwrap()));
    assert_eq!(names(GOAL), keys(&serde_json::to_value(goal()).unwrap()));
    assert_eq!(names(RANGE), keys(&serde_json::to_value(LineRange { start_line: 1, lines: 1 }).unwrap()));
}

#[test]
fn what_is_left_out_is_put_in_and_what_nobody_knows_is_refused() {
    let decide = named("decide").unwrap().fields;
    let told = |value: Value| value.as_object().unwrap().clone();
    let done =
        |fields: &[Field], value: Value| complete(fields, told(value), || "me".to_owned()).map(Value::from);
    assert_eq!(done(decide, json!({ "session": "s" })), Ok(json!({ "session": "s", "rows": "stale" })));
    assert_eq!(
        done(decide, json!({ "session": "s", "rows": "all", "goal": null })),
        Ok(json!({ "session": "s", "rows": "all" }))
    );
    let stats = named("mem_stats").unwrap().fields;
    assert_eq!(done(stats, json!({})), Ok(json!({ "user_id": "me" })));
    assert_eq!(done(stats, json!({ "user_id": "you" })), Ok(json!({ "user_id": "you" })));
    assert_eq!(done(decide, json!({})), Err("the argument session is missing".to_owned()));
    assert_eq!(done(decide, json!({ "session": null })), Err("the argument session is missing".to_owned()));
    let unknown = done(decide, json!({ "session": "s", "deadline_ms": 1 }));
    assert_eq!(
        unknown,
        Err("there is no argument \"deadline_ms\"; there are: session, goal, rows, provision, memory"
            .to_owned())
    );
}

#[test]
fn clients_are_shown_the_table() {
    let mut scene = Scene::new();
    let listed = scene.server.ask("tools/list", &json!({}));
    let listed = listed["tools"].as_array().unwrap();
    assert_eq!(listed.len(), TOOLS.len());
    for (shown, tool) in listed.iter().zip(TOOLS) {
        assert_eq!((&shown["name"], &shown["title"]), (&json!(tool.name), &json!(tool.title)));
        assert_eq!(shown["description"], tool.about);
        assert_eq!(shown["inputSchema"], Value::from(object(tool.fields)));
        assert_eq!(shown["annotations"]["destructiveHint"], false);
        assert_eq!(shown["annotations"]["openWorldHint"], false);
        is_closed(tool.name, &shown["inputSchema"]);
        for (name, property) in shown["inputSchema"]["properties"].as_object().unwrap() {
            assert!(property["description"].as_str().is_some_and(|text| text.ends_with('.')), "{name}");
        }
    }
    let readers: Vec<&Value> =
        listed.iter().filter(|tool| tool["annotations"]["readOnlyHint"] == true).collect();
    let readers: Vec<&str> = readers.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        readers,
        [
            "stale_check",
            "status",
            "why",
            "mem_search",
            "mem_get_observation",
            "mem_timeline",
            "mem_stats",
            "fork_status",
            "fork_list"
        ]
    );
}

/// No object in it takes what it does not name.
fn is_closed(tool: &str, schema: &Value) {
    match schema {
        Value::Object(object) => {
            if object.get("type").is_some_and(|kind| kind == "object") {
                assert_eq!(schema["additionalProperties"], false, "{tool}: {schema}");
            }
            object.values().for_each(|inner| is_closed(tool, inner));
        }
        Value::Array(inner) => inner.iter().for_each(|inner| is_closed(tool, inner)),
        _ => {}
    }
}
