//! `decide` that answers fork: a plan, or forks.

use super::Scene;
use serde_json::{Value, json};
use std::path::Path;

fn plan(report: &Value) -> Vec<(String, String)> {
    let text = |fork: &Value, key: &str| fork[key].as_str().unwrap().to_owned();
    let forks = report["forks"].as_array().unwrap();
    forks.iter().map(|fork| (text(fork, "branch"), text(fork, "workspace"))).collect()
}

#[test]
fn a_plan_names_what_a_provision_then_makes() {
    let scene = Scene::new();
    let planned = scene.daemon.ask("decide", &json!({ "session": "s", "deadline_ms": 10_000 }));
    assert_eq!(planned["transition"], "fork", "{planned}");
    assert!(
        plan(&planned).iter().all(|(_, workspace)| !Path::new(workspace).exists()),
        "a plan makes nothing"
    );
    let made =
        scene.daemon.ask("decide", &json!({ "session": "s", "deadline_ms": 10_000, "provision": true }));
    assert_eq!(plan(&made), plan(&planned));
    assert!(plan(&made).iter().all(|(_, workspace)| Path::new(workspace).join("README").is_file()));
    let listed = scene.daemon.ask("fork.list", &json!({}));
    assert_eq!(listed["forks"].as_array().unwrap().len(), 2);
    // The next plan says what the next provision makes.
    let planned = scene.daemon.ask("decide", &json!({ "session": "s", "deadline_ms": 10_000 }));
    assert_eq!(plan(&planned)[0].0, "staled/s/cache-it-2", "{planned}");
    let made =
        scene.daemon.ask("decide", &json!({ "session": "s", "deadline_ms": 10_000, "provision": true }));
    assert_eq!(plan(&made), plan(&planned));
}

#[test]
fn what_is_stale_is_not_forked() {
    let scene = Scene::new();
    std::fs::write(scene.root().join("src/token.rs"), "other\n").unwrap();
    let report =
        scene.daemon.ask("decide", &json!({ "session": "s", "deadline_ms": 10_000, "provision": true }));
    assert_eq!(report["transition"], "fresh");
    assert!(scene.daemon.ask("fork.list", &json!({}))["forks"].as_array().unwrap().is_empty());
}

#[test]
fn a_plan_goes_round_sessions_and_folders_that_stand_in_its_way_as_a_provision_does() {
    let scene = Scene::new();
    let taken = json!({ "session": "s/cache-it", "root": scene.root(), "results": [crate::harness::file("README", "readme\n")] });
    scene.daemon.ask("context.register", &taken);
    std::fs::create_dir_all(scene.place.home.join("state/forks/s/check-twice")).unwrap();
    let ask = json!({ "session": "s", "deadline_ms": 10_000 });
    let planned = plan(&scene.daemon.ask("decide", &ask));
    let branches: Vec<&str> = planned.iter().map(|(branch, _)| branch.as_str()).collect();
    assert_eq!(branches, ["staled/s/cache-it-2", "staled/s/check-twice-2"]);
    let made =
        scene.daemon.ask("decide", &json!({ "session": "s", "deadline_ms": 10_000, "provision": true }));
    assert_eq!(plan(&made), planned);
}
