//! `hello`: who answers here.

use super::{Answer, Daemon};
use crate::daemon::handle::Need;
use crate::protocol::answer::{Hello, to_json};
use std::time::Instant;

const CAPABILITIES: &[&str] = &[
    "context.register",
    "context.record",
    "context.get",
    "context.list",
    "context.drop",
    "decide",
    "status",
    "touch_ack",
    "fact.refute",
    "subscribe",
    "log.read",
    "check",
    "metrics",
    "reload",
    "shutdown",
];

pub(super) async fn hello(daemon: &Daemon) -> Answer {
    let epoch =
        daemon.engine.when(Need::Nothing, Instant::now(), |engine, _| engine.index.clock().epoch.clone());
    let epoch = match epoch.await {
        // The next epoch begins with the next store; who answers can be said without one.
        Err(refusal) if refusal.word() == Some("store_failed") => daemon.engine.down().epoch(),
        epoch => epoch?,
    };
    Ok(to_json(&Hello {
        name: env!("CARGO_PKG_NAME"),
        version: env!("CARGO_PKG_VERSION"),
        protocol: crate::protocol::VERSION,
        epoch: &epoch,
        pid: std::process::id(),
        capabilities: CAPABILITIES,
    }))
}
