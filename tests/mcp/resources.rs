//! The resources: the sessions that are known, and of each the last report.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test does")]

use super::Scene;
use serde_json::{Value, json};

#[test]
fn a_sessions_last_report_is_read_and_nothing_is_decided_by_it() {
    let mut scene = Scene::new();
    let uri = "staled://session/s-01/report";
    let listed = scene.server.ask("resources/list", &json!({}));
    assert_eq!(listed["resources"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&listed["resources"][0]["uri"], &listed["resources"][0]["name"]),
        (&json!(uri), &json!("s-01"))
    );
    let templates = scene.server.ask("resources/templates/list", &json!({}));
    assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "staled://session/{session}/report");
    let none = scene.server.answer("resources/read", &json!({ "uri": uri }));
    assert_eq!(none["error"]["code"], -32002, "{none}");
    assert!(none["error"]["message"].as_str().unwrap().contains("nothing was decided for session \"s-01\""));
    let first = scene.call("decide", &json!({ "session": "s-01" }));
    scene.place.write("a.txt", "changed\n");
    let read = read(&mut scene, uri);
    assert_eq!(read["decision"], first["decision"], "reading decides nothing");
    assert_eq!(read["transition"], "fork", "and the report says what was so then");
    let second = scene.call("decide", &json!({ "session": "s-01" }));
    // Another session's decision, and events, stand behind it.
    let other = json!({ "session": "s-02", "root": scene.place.root, "results": [crate::harness::file("b.txt", "two\n")] });
    scene.daemon.ask("context.register", &other);
    scene.call("decide", &json!({ "session": "s-02" }));
    assert_eq!(self::read(&mut scene, uri)["decision"], second["decision"]);
    let line = scene.daemon.ask("log.read", &json!({ "limit": 2, "tail": true }))["lines"][0].clone();
    assert_eq!(self::read(&mut scene, uri), line, "as it stands in the log, with what proves it");
}

fn read(scene: &mut Scene, uri: &str) -> Value {
    let read = scene.server.ask("resources/read", &json!({ "uri": uri }));
    let contents = &read["contents"][0];
    assert_eq!((&contents["uri"], &contents["mimeType"]), (&json!(uri), &json!("application/json")));
    serde_json::from_str(contents["text"].as_str().unwrap()).unwrap()
}

#[test]
fn a_session_of_any_name_has_an_address() {
    let mut scene = Scene::new();
    let name = "odd/ name%\u{202e}é";
    let other = json!({ "session": name, "root": scene.place.root, "results": [crate::harness::file("b.txt", "two\n")] });
    scene.daemon.ask("context.register", &other);
    scene.call("decide", &json!({ "session": name }));
    let listed = scene.server.ask("resources/list", &json!({}));
    let odd = listed["resources"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap();
    assert_eq!(odd["uri"], "staled://session/odd%2F%20name%25%E2%80%AE%C3%A9/report");
    assert_eq!(read(&mut scene, odd["uri"].as_str().unwrap())["session"], name);
    for odd in ["staled://session//report", "file:///etc/passwd", "staled://session/none/report", ""] {
        let answer = scene.server.answer("resources/read", &json!({ "uri": odd }));
        assert_eq!(answer["error"]["code"], -32002, "{odd}: {answer}");
    }
}

#[test]
fn many_sessions_are_listed_page_by_page() {
    let mut scene = Scene::new();
    let row = crate::harness::file("b.txt", "two\n");
    let mut client = scene.daemon.client();
    for index in 0..450 {
        let context =
            json!({ "session": format!("m-{index:03}"), "root": scene.place.root, "results": [row] });
        crate::harness::ask(&mut client, "context.register", &context);
    }
    let (mut names, mut pages, mut cursor) = (Vec::new(), 0, Value::Null);
    loop {
        let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
        let listed = scene.server.ask("resources/list", &params);
        let page = listed["resources"].as_array().unwrap();
        names.extend(page.iter().map(|one| one["name"].as_str().unwrap().to_owned()));
        pages += 1;
        cursor = listed["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    let mut expected: Vec<String> = (0..450).map(|index| format!("m-{index:03}")).collect();
    expected.push("s-01".to_owned());
    assert_eq!((names, pages), (expected, 3));
}
