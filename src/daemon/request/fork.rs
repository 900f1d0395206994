//! `fork.*`.

use super::{Answer, Daemon};
use crate::protocol::fork::Ask;
use crate::protocol::refusal::Refusal;

pub(super) async fn fork(_daemon: &Daemon, _ask: Ask) -> Answer {
    Err(Refusal::application("fork_unavailable", "not yet"))
}
