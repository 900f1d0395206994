//! What a tool says of itself is so: those that say that they only read leave nothing behind.

use super::Scene;
use serde_json::{Value, json};
use staled::mcp::tools::{Effect, TOOLS};
use staled::world::login_name;

/// What could be left behind. A fork is written of by itself once it is there, so then the journal's length says nothing.
fn kept(scene: &Scene) -> [Value; 3] {
    let status = scene.daemon.ask("status", &json!({}));
    let last = scene.daemon.ask("log.read", &json!({ "limit": 1, "tail": true }));
    let memory = scene.daemon.ask("mem_list_sessions", &json!({ "user_id": login_name() }));
    [status["journal_bytes"].clone(), last, memory]
}

#[test]
fn a_tool_that_only_reads_leaves_nothing_behind() {
    let mut scene = Scene::new();
    scene.call("mem_save", &json!({ "content": "c", "type": "pattern", "title": "t" }));
    let decision = scene.call("decide", &json!({ "session": "s-01" }))["decision"].clone();
    let before = kept(&scene);
    let readers = TOOLS.iter().filter(|tool| tool.effect == Effect::Reads);
    let (of_forks, others): (Vec<_>, Vec<_>) = readers.partition(|tool| tool.name.starts_with("fork_"));
    for tool in &others {
        let told = match tool.name {
            "stale_check" => json!({ "session": "s-01", "paths": ["a.txt"] }),
            "status" => json!({ "session": "s-01" }),
            "why" => json!({ "decision": decision }),
            "mem_search" => json!({ "query": "c" }),
            "mem_get_observation" | "mem_timeline" => json!({ "observation_id": 1 }),
            "mem_stats" => json!({}),
            other => panic!("how is {other} asked?"),
        };
        scene.call(tool.name, &told);
        assert_eq!(kept(&scene), before, "{}", tool.name);
    }
    // The measure sees what is left behind.
    scene.call("mem_session_summary", &json!({ "summary": "s" }));
    assert_ne!(kept(&scene), before);
    scene.call("fork_create", &json!({ "session": "s-01", "mode": "copy", "hypotheses": ["A way"] }));
    let [_, before @ ..] = kept(&scene);
    for tool in &of_forks {
        let told = if tool.name == "fork_list" { json!({}) } else { json!({ "fork": "s-01/a-way" }) };
        scene.call(tool.name, &told);
        let [_, after @ ..] = kept(&scene);
        assert_eq!(after, before, "{}", tool.name);
    }
    assert_eq!((others.len(), of_forks.len()), (7, 2));
}
