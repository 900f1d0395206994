//! `hello`: who answers here.

use super::{Answer, Daemon};
use crate::daemon::handle::Need;
use crate::protocol::answer::{Hello, to_json};
use crate::protocol::request::METHODS;
use std::time::Instant;

/// All but this one: who is answered knows it.
const CAPABILITIES: &[&str] = METHODS.split_at(1).1;

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
