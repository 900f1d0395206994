//! A daemon that is not there, goes away, comes back, or never answers: the error of a call, never the end of the server.

use super::Server;
use crate::harness::{Daemon, Place, wait_until};
use serde_json::json;
use staled::daemon::Folders;
use std::os::unix::net::UnixListener;

#[test]
fn calls_fail_while_there_is_no_daemon_and_go_on_when_there_is() {
    let place = Place::new();
    let socket = Folders::below(&place.home).socket;
    let mut server = Server::start(&place, &socket);
    for round in 0..2 {
        let (code, sentence) = server.refused("status", &json!({}));
        assert_eq!(code, "no_daemon");
        assert!(
            sentence.contains("`staled serve`") && sentence.contains(socket.to_str().unwrap()),
            "{sentence}"
        );
        for (method, params) in
            [("resources/list", json!({})), ("resources/read", json!({ "uri": "staled://session/s/report" }))]
        {
            let answer = server.answer(method, &params);
            assert_eq!(
                (&answer["error"]["code"], &answer["error"]["data"]["code"]),
                (&json!(-32603), &json!("no_daemon"))
            );
        }
        assert_eq!(server.ask("tools/list", &json!({}))["tools"].as_array().unwrap().len(), 15);
        let daemon = Daemon::start(&place.home);
        assert_eq!(server.call("status", &json!({}))["health"], "ok", "round {round}");
        daemon.stop();
    }
    let (ended, said) = server.end();
    assert!(ended.success(), "{said}");
    assert_eq!(said, "");
}

#[test]
fn a_daemon_that_never_answers_holds_up_nobody() {
    let place = Place::new();
    std::fs::create_dir_all(&place.home).unwrap();
    let socket = place.home.join("deaf.sock");
    let deaf = UnixListener::bind(&socket).unwrap();
    let mut server = Server::start(&place, &socket);
    // More than may be at the daemon at once.
    for _ in 0..40 {
        server.send("tools/call", &json!({ "name": "status", "arguments": {} }));
    }
    let _asked: Vec<_> = (0..16).map(|_| deaf.accept().unwrap()).collect();
    server.ask("ping", &json!({}));
    server.ask("tools/list", &json!({}));
    deaf.set_nonblocking(true).unwrap();
    assert!(deaf.accept().is_err(), "the others wait");
    let (ended, said) = server.end();
    assert!(ended.success(), "{said}");
}

#[test]
fn a_daemon_that_talks_nonsense_is_said_to() {
    let place = Place::new();
    std::fs::create_dir_all(&place.home).unwrap();
    let socket = place.home.join("odd.sock");
    let odd = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        for answer in ["nonsense\n", ""] {
            let (mut stream, _) = odd.accept().unwrap();
            let mut line = String::new();
            std::io::BufRead::read_line(&mut std::io::BufReader::new(&stream), &mut line).unwrap();
            std::io::Write::write_all(&mut stream, answer.as_bytes()).unwrap();
        }
    });
    let mut server = Server::start(&place, &socket);
    assert_eq!(server.refused("status", &json!({})).0, "nonsense");
    let (code, sentence) = server.refused("status", &json!({}));
    assert_eq!(code, "connection_broken", "{sentence}");
    wait_until("it is refused again", || server.refused("status", &json!({})).0 == "no_daemon");
}
