//! What becomes of an edit that meets something stale, as the user has configured it; forks; who holds a session.

use super::Agent;
use crate::harness::{Daemon, Place, file};
use serde_json::json;

#[test]
fn an_edit_meets_what_is_stale_as_it_is_configured() {
    let place = Place::new();
    place.write("target.rs", "1\n");
    place.write("other.rs", "1\n");
    let daemon = Daemon::start(&place.home);
    let agent = Agent::new(&place, &daemon.folders.socket, "gates");
    for (target, others, stale, decision, told) in [
        ("deny", "warn", "target.rs", Some("deny"), "target.rs"),
        ("ask", "warn", "target.rs", Some("ask"), "target.rs"),
        ("warn", "off", "target.rs", None, "target.rs"),
        ("off", "off", "target.rs", None, ""),
        ("deny", "deny", "other.rs", Some("deny"), "other.rs"),
        ("deny", "ask", "other.rs", Some("ask"), "other.rs"),
        ("deny", "warn", "other.rs", None, "other.rs"),
        ("deny", "off", "other.rs", None, ""),
    ] {
        let case = format!("{target} {others} {stale}");
        agent.configure(&format!("deadline_ms = 60_000\ntarget = \"{target}\"\nothers = \"{others}\""));
        place.write("target.rs", "1\n");
        place.write("other.rs", "1\n");
        let results = [file("target.rs", "1\n"), file("other.rs", "1\n")];
        let context = json!({ "session": "gates", "root": place.root, "results": results, "replace": true });
        daemon.ask("context.register", &context);
        place.write(stale, "2\n");
        let said = agent.edit("target.rs", if stale == "target.rs" { "2" } else { "1" }, "3");
        assert_eq!(said.decision.as_ref().map(|(decision, _)| decision.as_str()), decision, "{case}");
        let text = said.decision.map_or(said.context, |(_, reason)| reason);
        assert!(text.contains(told) && text.is_empty() == told.is_empty(), "{case}: {text:?}");
        assert_eq!(said.complaints, "", "{case}");
    }
}

#[test]
fn a_stale_result_that_is_not_critical_stops_no_edit_of_another_file() {
    let place = Place::new();
    place.write("target.rs", "1\n");
    place.write("other.rs", "1\n");
    let daemon = Daemon::start(&place.home);
    let agent = Agent::new(&place, &daemon.folders.socket, "lax");
    agent.configure("deadline_ms = 60_000\nothers = \"deny\"");
    let results = [file("target.rs", "1\n"), crate::harness::lax("other.rs", "1\n")];
    daemon.ask("context.register", &json!({ "session": "lax", "root": place.root, "results": results }));
    place.write("other.rs", "2\n");
    agent.edit("target.rs", "1", "2").nothing();
}

#[test]
fn a_stale_file_is_the_same_however_it_is_spelled() {
    let place = Place::new();
    place.write("a.rs", "1\n");
    place.write("sub/b.rs", "1\n");
    std::os::unix::fs::symlink("a.rs", place.root.join("link.rs")).unwrap();
    let daemon = Daemon::start(&place.home);
    let agent = Agent::new(&place, &daemon.folders.socket, "spelled");
    agent.start("startup").nothing();
    agent.read("a.rs").nothing();
    place.write("a.rs", "2\n");
    for path in ["a.rs", "./a.rs", "sub/../a.rs", "link.rs"] {
        assert_eq!(agent.edit(path, "2", "3").decision.expect("it is stale").0, "deny", "{path}");
    }
}

#[test]
fn an_edit_of_many_places_meets_each_of_them() {
    let place = Place::new();
    place.write("a.rs", "x\n2\n3\n4\nx\n");
    let daemon = Daemon::start(&place.home);
    let agent = Agent::new(&place, &daemon.folders.socket, "many");
    agent.start("startup").nothing();
    agent.read("a.rs").nothing();
    place.write("a.rs", "x\n2\n3\nfour\nx\n");
    agent.read_lines("a.rs", 1, 2).nothing();
    let input =
        json!({ "file_path": agent.path("a.rs"), "old_string": "x", "new_string": "y", "replace_all": true });
    let edit = json!({ "tool_name": "Edit", "tool_input": input });
    assert_eq!(agent.fire("PreToolUse", &edit).decision.expect("the last was not read again").0, "deny");
    agent.read_lines("a.rs", 4, 2).nothing();
    agent.fire("PreToolUse", &edit).nothing();
}

#[test]
fn a_fork_edits_nothing_outside_of_its_workspace() {
    let place = Place::new();
    place.write("a.rs", "1\n");
    let daemon = Daemon::start(&place.home);
    let results = [file("a.rs", "1\n")];
    daemon.ask("context.register", &json!({ "session": "s", "root": place.root, "results": results }));
    let made = daemon.ask("fork.create", &json!({ "session": "s", "hypotheses": ["one"], "mode": "copy" }));
    let fork = &made["forks"][0];
    let mut agent = Agent::new(&place, &daemon.folders.socket, "in-a-fork");
    agent.environment.push(("STALED_FORK".to_owned(), fork["fork"].as_str().unwrap().to_owned()));
    let said = agent.edit("a.rs", "1", "2");
    let (decision, reason) = said.decision.expect("the parent's tree is no place of a fork's");
    assert_eq!(decision, "deny", "{reason}");
    assert_eq!(std::fs::read_to_string(agent.path("a.rs")).unwrap(), "1\n");
    let inside = format!("{}/a.rs", fork["workspace"].as_str().unwrap());
    agent.edit(&inside, "1", "2").nothing();
    assert_eq!(std::fs::read_to_string(&inside).unwrap(), "2\n");
}

#[test]
fn an_agent_that_goes_on_in_a_fork_knows_what_its_parent_knew() {
    let place = Place::new();
    place.write("a.rs", "1\n");
    place.write("b.rs", "1\n");
    let daemon = Daemon::start(&place.home);
    let results = [file("a.rs", "1\n"), file("b.rs", "1\n")];
    daemon.ask("context.register", &json!({ "session": "s", "root": place.root, "results": results }));
    let made = daemon.ask("fork.create", &json!({ "session": "s", "hypotheses": ["one"], "mode": "copy" }));
    let fork = &made["forks"][0];
    let workspace = std::path::PathBuf::from(fork["workspace"].as_str().unwrap());
    let environment = ("STALED_FORK".to_owned(), fork["fork"].as_str().unwrap().to_owned());
    // As Claude Code does: the first event has the name of the session that is left, the next ones a new one.
    let mut left = Agent::new(&place, &daemon.folders.socket, "s");
    left.environment.push(environment.clone());
    left.start("resume").nothing();
    assert_eq!(daemon.ask("decide", &json!({ "session": "s" }))["held_by"], json!(null));
    let mut agent = Agent::new(&place, &daemon.folders.socket, "new-name");
    agent.environment.push(environment);
    agent.prompt().nothing();
    std::fs::write(workspace.join("b.rs"), "2\n").unwrap();
    agent.prompt().tells(&["- b.rs: its content differs"]);
    assert!(!agent.prompt().context.contains("a.rs"));
    place.write("a.rs", "3\n");
    assert!(!agent.prompt().context.contains("a.rs"), "the parent's tree is not the fork's");
}

#[test]
fn who_else_works_in_a_session_is_named_until_they_stop() {
    let place = Place::new();
    place.write("a.rs", "1\n");
    let daemon = Daemon::start(&place.home);
    let agent = Agent::new(&place, &daemon.folders.socket, "held");
    agent.start("startup").nothing();
    agent.read("a.rs").nothing();
    agent.fire("Stop", &json!({})).nothing();
    let mut other = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let holder = json!({ "pid": other.id() });
    daemon.ask("decide", &json!({ "session": "held", "holder": holder }));
    agent.prompt().tells(&[&format!("Another process works in this session too (pid {}).", other.id())]);
    let released = daemon.ask("context.release", &json!({ "session": "held", "holder": holder }));
    assert_eq!(released["released"], true);
    assert_eq!(
        daemon.ask("context.release", &json!({ "session": "held", "holder": holder }))["released"],
        false
    );
    agent.prompt().nothing();
    // Now the agent holds it, and a process that ends holds nothing.
    let report = daemon.ask("decide", &json!({ "session": "held", "holder": holder }));
    assert_eq!(report["held_by"], json!({ "pid": std::process::id() }));
    agent.fire("SessionEnd", &json!({ "reason": "other" })).nothing();
    let report = daemon.ask("decide", &json!({ "session": "held", "holder": holder }));
    assert_eq!(report["held_by"], json!(null), "a session that ended is held by nobody");
    other.kill().unwrap();
    other.wait().unwrap();
    agent.prompt().nothing();
}
