//! `status`: of a session and of the daemon.

use crate::daemon::{register, write_each};
use crate::harness::{Daemon, Place, file, refusal, wait_until};
use serde_json::json;

#[test]
fn a_session_tells_its_counts_and_the_daemon_its_health() {
    let place = Place::new();
    write_each(&place, &["a", "b", "c"], "1");
    let daemon = Daemon::start(&place.home);
    let before = daemon.ask("status", &json!({}));
    assert_eq!((&before["sessions"], &before["sources"]), (&json!(0), &json!(0)));
    register(&daemon, &place, "s", &json!([file("a", "1"), file("b", "0"), file("c", "1")]));
    let status = daemon.ask("status", &json!({ "session": "s" }));
    assert_eq!(status["counts"], json!({ "results": 3, "fresh": 2, "stale": 1, "unknown": 0 }), "{status}");
    assert_eq!(status["rows"].as_array().expect("rows").len(), 3);
    place.write("a", "2");
    let status = daemon.ask("status", &json!({ "session": "s" }));
    assert_eq!(status["counts"]["stale"], 2, "{status}");
    let health = daemon.ask("status", &json!({}));
    assert_eq!(
        (&health["health"], &health["sessions"], &health["sources"]),
        (&json!("ok"), &json!(1), &json!(3))
    );
    assert!(health["watches"].as_u64() > Some(3), "{health}");
    daemon.ask("context.drop", &json!({ "session": "s" }));
    let health = daemon.ask("status", &json!({}));
    assert_eq!((&health["sessions"], &health["sources"]), (&json!(0), &json!(0)));
    wait_until("the watches have gone", || daemon.ask("status", &json!({}))["watches"] == before["watches"]);
    assert_eq!(refusal(&mut daemon.client(), "status", &json!({ "session": "s" })), "no_session_context");
}
