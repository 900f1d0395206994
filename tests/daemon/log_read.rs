//! `log.read`: the lines as they stand in the file, and receipts that anchor them.

use crate::daemon::{decide, register};
use crate::harness::{Daemon, Place, file, refusal};
use serde_json::{Value, json};
use staled::store::decision_log::{Outcome, verify};

#[test]
fn what_was_decided_is_read_back_and_the_chain_holds() {
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([file("a", "1")]));
    let reports: Vec<Value> = (0..5).map(|_| decide(&daemon, "s")).collect();
    let path = daemon.folders.state.join("decisions.jsonl");
    for report in &reports {
        let receipt =
            format!("{}:{}", report["receipt"]["seq"], report["receipt"]["hash"].as_str().expect("a hash"));
        let verdict = verify(&path, Some(&receipt.parse().expect("a receipt"))).expect("a log");
        assert_eq!(verdict.outcome, Outcome::Verified { anchored: true });
        let seq = report["receipt"]["seq"].as_u64().expect("a number");
        let read = daemon.ask("log.read", &json!({ "after": seq - 1, "limit": 1 }));
        let line = &read["lines"][0];
        assert_eq!(line["hash"], report["receipt"]["hash"]);
        let mut line = line.clone();
        let mut said = report.clone();
        for name in ["seq", "prev", "hash"] {
            line.as_object_mut().expect("a line").remove(name);
        }
        said.as_object_mut().expect("a report").remove("receipt");
        assert_eq!(line, said, "the answer is the line");
    }
    let tail = daemon.ask("log.read", &json!({ "tail": true, "limit": 2 }));
    let hashes: Vec<_> = tail["lines"].as_array().expect("lines").iter().map(|line| &line["hash"]).collect();
    assert_eq!(hashes, [&reports[3]["receipt"]["hash"], &reports[4]["receipt"]["hash"]]);
    let last = reports[4]["receipt"]["seq"].as_u64().expect("a number");
    for after in [last, last + 1, u64::MAX] {
        assert_eq!(daemon.ask("log.read", &json!({ "after": after }))["lines"], json!([]), "{after}");
    }
    for limit in [0, 1_001] {
        assert_eq!(refusal(&mut daemon.client(), "log.read", &json!({ "limit": limit })), "-32602");
    }
}
