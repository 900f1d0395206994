//! Judging a context by one plain rescan: no daemon, no watches, no journal, no log.
//!
//! It goes through the same index, decision and report as the daemon, so its answer is the daemon's at the moment of
//! the look. Two things differ: there is no receipt, and what differs from the disk is said to have changed since the
//! agent saw it, for there was no registration before which it could already have differed.

use super::words::now_micros;
use crate::config::Config;
use crate::decision;
use crate::decision::policy::Policy;
use crate::index::storage::{Memory, StorageError};
use crate::index::view::{Listed, View};
use crate::index::{Index, RegisterError};
use crate::protocol::context::Context;
use crate::protocol::refusal::Refusal;
use crate::protocol::report::{Circumstances, report};
use crate::protocol::{convert, gate};
use crate::session::context::Update;
use crate::session::moment::Moment;
use crate::world;
use crate::world::look::LookOptions;
use crate::world::plain::settle_plainly;
use std::collections::HashMap;
use std::time::Instant;
use uuid::Uuid;

/// The report about a context, as JSON text, under the default policy.
pub fn rescan(context: Context, listed: Listed) -> Result<String, Refusal> {
    rescan_by(context, listed, &Policy::default())
}

/// The same under a policy of the caller's.
pub(super) fn rescan_by(context: Context, listed: Listed, policy: &Policy) -> Result<String, Refusal> {
    let began = Instant::now();
    let view = look(&update(context)?, listed)?;
    let decision = decision::decide(&view, policy).map_err(|_| empty())?;
    let made = Circumstances {
        decision: &format!("d-{}", Uuid::now_v7()),
        decided_at: now(),
        supersedes: None,
        refuted: None,
        merge: None,
        held_by: None,
        policy,
        took_us: u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX),
    };
    let report = serde_json::to_value(report(&view, &decision, &made)).map_err(internal)?;
    match gate::check(&report).first() {
        None => Ok(report.to_string()),
        Some(fault) => Err(internal(fault)),
    }
}

fn update(context: Context) -> Result<Update, Refusal> {
    let name = context.session.clone().unwrap_or_else(|| Uuid::now_v7().to_string());
    let update = convert::update(context, world::digest::blake3, convert::session(&name)?)?;
    if update.root.is_none() {
        return Err(Refusal::invalid_params("a context has a root, an absolute path"));
    }
    Ok(update)
}

/// Registers the context in an index of its own, and looks at everything once.
fn look(update: &Update, listed: Listed) -> Result<View, Refusal> {
    let mut index = Index::open(Memory::default(), &Uuid::now_v7().to_string()).map_err(storage)?;
    index.wake().map_err(storage)?;
    let rows_max = Config::default().context.results_max;
    let registered = index.register(update, rows_max, now()).map_err(refused)?;
    let rows = index.rows(registered.session).map_err(storage)?;
    let seen = rows.into_iter().map(|row| ((row.role, row.id), None)).collect();
    index.restore(registered.session, &HashMap::new(), &seen).map_err(storage)?;
    settle_plainly(&mut index, registered.checks, now(), &LookOptions::default()).map_err(storage)?;
    index.view(registered.session, listed, None).map_err(storage)?.ok_or_else(empty)
}

fn now() -> Moment {
    Moment::from_micros(now_micros())
}

fn empty() -> Refusal {
    let why = "the context has no results and no invariants, so there is nothing to decide about";
    Refusal::application("no_session_context", why)
}

fn refused(error: RegisterError) -> Refusal {
    match error {
        RegisterError::NoSession(_) => Refusal::application("no_session_context", error),
        RegisterError::TooManyRows { .. } => Refusal::application("too_large", error),
        RegisterError::TwoRoles(_) | RegisterError::OtherRoot { .. } => Refusal::invalid_params(error),
        RegisterError::Storage(error) => storage(error),
    }
}

fn storage(error: StorageError) -> Refusal {
    Refusal::application("store_failed", error)
}

fn internal(why: impl std::fmt::Display) -> Refusal {
    Refusal::application("log_failed", format!("the report did not pass our own gate: {why}"))
}
