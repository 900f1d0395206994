//! What sources may be told: absolute paths, and not too many of them. What is refused leaves nothing behind.

use super::{USER, observed, scene, word};
use crate::harness::refusal;
use serde_json::{Value, json};

#[test]
fn sources_without_a_root_to_be_relative_to_are_refused() {
    let (place, daemon) = scene();
    place.write("f", "one\n");
    let client = &mut daemon.client();
    let relative = [
        json!(["f"]),
        json!(["./f"]),
        json!([""]),
        json!([place.root.join("f"), "f"]),
        json!([{ "kind": "file", "path": "f" }]),
        json!([{ "kind": "file", "path": "f", "range": { "start_line": 1, "lines": 1 } }]),
        json!([{ "kind": "absent", "path": "f" }]),
        json!([{ "kind": "tree", "path": "." }]),
        json!([{ "kind": "tree" }]),
        json!([{ "kind": "git_head", "path": "." }]),
        json!([{ "kind": "git_head" }]),
        json!([{ "kind": "command", "command": "make", "cwd": "sub", "inputs": [{ "kind": "file", "path": place.root.join("f") }] }]),
        json!([{ "kind": "command", "command": "make", "inputs": [{ "kind": "file", "path": "f" }] }]),
        // Its inputs would be everything.
        json!([{ "kind": "command", "command": "make" }]),
        json!([{ "source": { "kind": "file", "path": "f" }, "digest": crate::harness::digest("one\n") }]),
        json!([{ "bytes": "Zg==" }]),
        // Neither a path nor a source.
        json!([7]),
        json!([{ "kind": "nothing", "path": "/f" }]),
        json!([{ "source": { "kind": "file", "path": "/f" }, "digest": "blake3:0" }]),
        json!([{ "kind": "file", "path": "/f", "digest": crate::harness::digest("one\n") }]),
    ];
    for sources in &relative {
        assert_eq!(refusal(client, "mem_save", &observed("t", sources)), "-32602", "{sources}");
    }
    let stats = daemon.ask("mem_stats", &json!({ "user_id": USER }));
    assert_eq!((&stats["observations"], &stats["sessions"]), (&json!(0), &json!(0)), "{stats}");
}

#[test]
fn a_hundred_sources_are_the_most_however_they_are_told() {
    let (place, daemon) = scene();
    let client = &mut daemon.client();
    let path = |n: usize| json!(place.root.join(format!("f{n}")));
    let input = |n: usize| json!({ "kind": "file", "path": path(n) });
    let paths = |many: usize| (0..many).map(path).collect::<Vec<Value>>();
    let reads = |many: usize| json!({ "kind": "command", "command": "make", "inputs": (0..many).map(input).collect::<Vec<_>>() });
    for sources in [json!(paths(101)), json!([reads(101)]), json!([reads(50), reads(51)])] {
        assert_eq!(refusal(client, "mem_save", &observed("t", &sources)), "too_large", "{sources}");
    }
    (0..100).for_each(|n| place.write(&format!("f{n}"), "one\n"));
    for (title, sources) in [("paths", json!(paths(100))), ("inputs", json!([reads(100)]))] {
        let saved = super::calmly(
            || daemon.ask("mem_save", &observed(title, &sources)),
            |saved| word(saved).ends_with("live_writer"),
        );
        assert_eq!(word(&saved), "fresh", "{title}");
    }
}

/// They come back as they were told, so that they can be told again.
#[test]
fn the_sources_of_an_observation_are_told_as_they_were_told() {
    let (place, daemon) = scene();
    place.write("f", "one\n");
    let path = place.root.join("f");
    let sources = json!([
        path,
        { "kind": "file", "path": path, "range": { "start_line": 1, "lines": 1 } },
        { "kind": "absent", "path": place.root.join("none") },
        { "kind": "command", "command": "make", "inputs": [{ "kind": "file", "path": path }] },
        { "bytes": "L25vdGhpbmcv/w==" },
    ]);
    let id = super::save(&daemon, "all", &sources);
    let get = || {
        daemon.ask("mem_get_observation", &json!({ "user_id": USER, "observation_id": id }))["sources"]
            .clone()
    };
    let told = get();
    assert_eq!(told.as_array().map(Vec::len), Some(5), "{told}");
    assert_eq!((&told[0], &told[4]), (&sources[0], &sources[4]), "{told}");
    for at in 1..4 {
        for (name, value) in sources[at].as_object().expect("a source") {
            assert_eq!(&told[at][name], value, "{told}");
        }
    }
    assert_eq!(super::save(&daemon, "all", &told), id);
    assert_eq!(get(), told, "told again as they came back");
}
