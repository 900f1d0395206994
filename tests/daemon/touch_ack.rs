//! `touch_ack`: the agent's own write is what it knows.

use crate::daemon::{cause, decide, register};
use crate::harness::{Daemon, Place, digest, file, refusal};
use serde_json::json;

#[test]
fn an_own_write_is_known_in_its_session_only() {
    let place = Place::new();
    place.write("src/a", "1");
    let daemon = Daemon::start(&place.home);
    for session in ["mine", "theirs"] {
        register(&daemon, &place, session, &json!([file("src/a", "1")]));
    }
    let spellings = [json!("src/a"), json!("./src//a"), json!(place.root.join("src/a"))];
    for (round, path) in spellings.iter().enumerate() {
        let text = format!("own {round}");
        place.write("src/a", &text);
        assert_eq!(cause(&decide(&daemon, "mine"), "src/a"), "content");
        daemon.ask("touch_ack", &json!({ "session": "mine", "path": path, "digest": digest(&text) }));
        assert_eq!(decide(&daemon, "mine")["transition"], "resume", "{path}");
        assert_eq!(decide(&daemon, "theirs")["transition"], "fresh", "{path}");
    }
    // Acknowledging what is not there is no way to freshness.
    daemon.ask("touch_ack", &json!({ "session": "mine", "path": "src/a", "digest": digest("never") }));
    assert_eq!(decide(&daemon, "mine")["transition"], "fresh");
    // Whoever writes after the acknowledged write is seen.
    daemon.ask("touch_ack", &json!({ "session": "mine", "path": "src/a", "digest": digest("own 2") }));
    assert_eq!(decide(&daemon, "mine")["transition"], "resume");
    place.write("src/a", "theirs");
    assert_eq!(cause(&decide(&daemon, "mine"), "src/a"), "content");
    let client = &mut daemon.client();
    for (session, path, text, code) in [
        ("none", "src/a", digest("x"), "no_session_context"),
        ("mine", "src/b", digest("x"), "not_found"),
        ("mine", "src/a", "md5:00".to_owned(), "-32602"),
        ("mine", "src/a", "blake3:00".to_owned(), "-32602"),
    ] {
        let ask = json!({ "session": session, "path": path, "digest": text });
        assert_eq!(refusal(client, "touch_ack", &ask), code, "{ask}");
    }
}
