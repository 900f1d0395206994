//! `hello`: who answers, and what it can do.

use crate::harness::{Daemon, Place};
use serde_json::json;

#[test]
fn hello_says_who_answers_and_every_capability_is_a_method() {
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    let hello = daemon.ask("hello", &json!({}));
    assert_eq!(hello["name"], "staled");
    assert_eq!(hello["protocol"], 1);
    assert_eq!(hello["pid"], std::process::id());
    assert_eq!(hello["version"], env!("CARGO_PKG_VERSION"));
    let status = daemon.ask("status", &json!({}));
    assert_eq!(status["clock"]["epoch"], hello["epoch"]);
    let epoch = hello["epoch"].as_str().expect("an epoch").to_owned();
    let client = &mut daemon.client();
    for method in hello["capabilities"].as_array().expect("a list") {
        let method = method.as_str().expect("a name");
        if matches!(method, "shutdown" | "reload") {
            continue;
        }
        // An unknown method is -32601; anything else was at least understood.
        if let Err(staled::client::ClientError::Refused(refusal)) = client.ask(method, &json!({})) {
            assert_ne!(refusal.code, -32601, "{method}");
        }
    }
    daemon.stop();
    let daemon = Daemon::start(&place.home);
    assert_ne!(daemon.ask("hello", &json!({}))["epoch"], epoch, "a start begins a new epoch");
}
