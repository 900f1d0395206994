//! In a fork, and what is only printed.

use super::{ID, Scene};
use serde_json::{Value, json};

fn branchable() -> Value {
    json!({"goal": {"statement": "Fix expiry", "branchable": true, "hypotheses": ["Cache it", "Check twice"]}})
}

fn forks(scene: &Scene) -> Vec<Value> {
    let run = super::run_of(scene.command().args(["fork", "list", "--json"]).output().unwrap()).ok();
    run.json()["forks"].as_array().unwrap().clone()
}

#[test]
fn a_goal_with_several_ways_starts_in_a_branch() {
    let scene = Scene::new();
    scene.register(ID, "claude-code", "2026-11-30T10:00:00Z", &branchable());
    let run = scene.run(&["claude", "--", "-p", "x"]).ends(7);
    let made = forks(&scene);
    assert_eq!(made.len(), 2, "{made:?}");
    let at = |at: usize, field: &str| made[at][field].as_str().unwrap().to_owned();
    let wanted = |fork: usize| {
        format!(
            "cwd {}\nword --resume\nword {ID}\nword --fork-session\nword -p\nword x\nfork {}\n",
            at(fork, "workspace"),
            at(fork, "fork")
        )
    };
    assert_eq!(run.out, wanted(0), "{run:?}");
    assert!(run.err.starts_with(&format!("staled: fork  {ID}: ")), "{run:?}");
    assert!(
        run.err.contains(&format!("cd {} && STALED_FORK={} ", at(0, "workspace"), at(0, "fork"))),
        "{run:?}"
    );
    assert_eq!(scene.run(&["claude", "--branch", "check-twice", "--", "-p", "x"]).ends(7).out, wanted(1));
    assert_eq!(forks(&scene).len(), 2, "those that there are");
    let run = scene.run(&["claude", "--branch", "no-such"]).ends(7);
    assert!(run.err.contains("no branch is named so; there are staled/"), "{run:?}");
    // Claude Code looks for an id in the repository that it is started in, and finds a transcript by its path.
    let transcript = scene.place.home.join(format!(".claude/projects/-root/{ID}.jsonl"));
    std::fs::create_dir_all(transcript.parent().unwrap()).unwrap();
    std::fs::write(&transcript, "{}\n").unwrap();
    let words = scene.words(&["claude"]);
    assert_eq!(words, ["--resume", transcript.to_str().unwrap(), "--fork-session"]);
}

#[test]
fn the_branches_are_those_of_the_goal_in_its_order() {
    let scene = Scene::new();
    scene.register(ID, "claude-code", "2026-11-30T10:00:00Z", &branchable());
    scene.run(&["claude"]).ends(7);
    let goal = json!({"statement": "Fix it", "branchable": true, "hypotheses": ["Zip it", "Ask first"]});
    scene.register(ID, "claude-code", "2026-11-30T10:00:00Z", &json!({ "goal": goal }));
    for _ in 0..2 {
        let run = scene.run(&["claude"]).ends(7);
        assert!(run.out.ends_with("fork 0a0a0a0a-1b1b-4c2c-8d3d-4e4e4e4e4e4e/zip-it\n"), "{run:?}");
    }
    // Where there is none any more the agent is started all the same.
    let made =
        forks(&scene).into_iter().find(|fork| fork["fork"].as_str().unwrap().ends_with("/zip-it")).unwrap();
    std::fs::remove_dir_all(made["workspace"].as_str().unwrap()).unwrap();
    let run = scene.run(&["claude"]).ends(7);
    assert!(
        run.out.ends_with("fork none\n") && run.err.contains("is gone; claude is started plainly"),
        "{run:?}"
    );
}

#[test]
fn codex_forks_in_its_own_words() {
    let scene = Scene::new();
    let id = "0c0c0c0c-1b1b-4c2c-8d3d-4e4e4e4e4e4e";
    scene.register(id, "codex", "2026-11-30T10:00:00Z", &branchable());
    assert_eq!(scene.words(&["codex", "--", "-m", "x"]), ["fork", id, "-m", "x"]);
}

#[test]
fn print_says_what_it_would_be_and_does_nothing() {
    let scene = Scene::new();
    let printed = scene.run(&["claude", "--print", "--", "it's"]).ok();
    let agent = scene.place.home.join("agent");
    assert_eq!(printed.out, format!("{} --resume {ID} 'it'\\''s'\n", agent.display()));
    let json = scene.run(&["claude", "--print", "--json"]).ok().json();
    assert_eq!((&json["transition"], &json["session"]), (&json!("resume"), &json!(ID)));
    assert_eq!(json["command"], json!([agent, "--resume", ID]));
    scene.register(ID, "claude-code", "2026-11-30T10:00:00Z", &branchable());
    let json = scene.run(&["claude", "--print", "--json"]).ok().json();
    assert_eq!(json["transition"], "fork");
    assert!(json["folder"].as_str().unwrap().ends_with("/cache-it/workspace"), "{json}");
    assert!(forks(&scene).is_empty(), "none was made");
    scene.place.write("src/a.rs", "other\n");
    let json = scene.run(&["claude", "--print", "--json"]).ok().json();
    assert_eq!(json["environment"], json!({"STALED_BRIEF": "(a new file)"}));
    let alone = scene.run(&["codex", "--print", "--json"]).ok().json();
    assert_eq!((&alone["transition"], &alone["command"]), (&Value::Null, &json!([agent])));
}
