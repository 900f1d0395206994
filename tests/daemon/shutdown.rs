//! `shutdown`: answered, then true.

use crate::harness::{Daemon, Place, wait_until};
use serde_json::json;
use staled::client::Client;

#[test]
fn shutdown_is_answered_and_ends_the_daemon_and_its_socket() {
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    let socket = daemon.folders.socket.clone();
    assert_eq!(daemon.ask("shutdown", &json!({}))["stopping"], true);
    wait_until("the socket is gone", || !socket.exists());
    assert!(Client::connect(&socket).is_err());
    daemon.stop();
    let again = Daemon::start(&place.home);
    assert_eq!(again.ask("status", &json!({}))["health"], "ok");
}
