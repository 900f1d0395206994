//! `mem_session_start`, `mem_session_end` and `mem_list_sessions`.

use super::super::register::on_disk;
use super::super::{Answer, Daemon};
use super::pick::{Ranked, picked};
use super::{bounds, durable};
use crate::daemon::engine::Engine;
use crate::daemon::handle::Need;
use crate::index::storage::StorageError;
use crate::memory::{recent, step};
use crate::protocol::answer::to_json;
use crate::protocol::memory::answer::{Compact, Ended, Results, SessionOut, Started};
use crate::protocol::memory::{ListSessions, Start, Summary, inward};
use crate::protocol::refusal::Refusal;
use std::time::Instant;

/// How many memories a session begins with.
const MEMORIES: usize = 10;

pub(super) async fn start(daemon: &Daemon, ask: Start) -> Answer {
    let user = inward::user(&ask.user_id)?;
    let begun = daemon.engine.when(Need::Nothing, Instant::now(), {
        let user = user.clone();
        move |engine, _| {
            let (change, session, is_new) = step::start(engine.book(), &user, &engine.circumstances())?;
            engine.remember(&change, None)?;
            let ended = ended(engine, &user)?;
            let started = (session.span.id, is_new, ended);
            Ok::<_, Refusal>((started, engine.synced()))
        }
    });
    let ((session_id, is_new, sessions_context), synced) = begun.await??;
    let ranked = daemon.engine.when(Need::Nothing, Instant::now(), move |engine, _| {
        Ok::<_, Refusal>(recent_memories(engine, &user)?)
    });
    let ranked = ranked.await??;
    let memories: Vec<Compact> = picked(daemon, MEMORIES, ask.stale.unwrap_or_default(), ranked).await?;
    on_disk(synced).await?;
    Ok(to_json(&Started { session_id, is_new, sessions_context, memories }))
}

fn ended(engine: &Engine, user: &str) -> Result<Vec<Ended>, StorageError> {
    let book = engine.book();
    let Some(held) = book.user(user)? else { return Ok(Vec::new()) };
    Ok(recent::ended(book, &held)?.into_iter().map(Ended::from).collect())
}

fn recent_memories(engine: &Engine, user: &str) -> Result<Ranked, StorageError> {
    let book = engine.book();
    let Some(held) = book.user(user)? else { return Ok(Ranked::default()) };
    let memories = recent::memories(book, &held, engine.recall_at_hand(user), engine.circumstances().now)?;
    Ok(Ranked { user: held.no, entries: memories.into_iter().map(Into::into).collect() })
}

pub(super) async fn end(daemon: &Daemon, ask: Summary) -> Answer {
    let user = inward::user(&ask.user_id)?;
    let summary = inward::summary_text(&ask.summary, bounds(&daemon.config().memory))?;
    let ended = daemon.engine.when(Need::Nothing, Instant::now(), move |engine, _| {
        let ended = step::end(engine.book(), &user, summary, &engine.circumstances())?;
        let Some((change, session)) = ended else { return Err(not_active(&user)) };
        engine.remember(&change, None)?;
        Ok::<_, Refusal>(durable(engine, to_json(&SessionOut::new(&user, session))))
    });
    let (answer, synced) = ended.await??;
    on_disk(synced).await?;
    Ok(answer)
}

fn not_active(user: &str) -> Refusal {
    let why = format!("user {user:?} has no active session; mem_session_start begins one");
    Refusal::application("not_found", why)
}

pub(super) async fn list(daemon: &Daemon, ask: ListSessions) -> Answer {
    let user = inward::user(&ask.user_id)?;
    let limit = inward::limit(ask.limit)?;
    let listed = daemon.engine.when(Need::Nothing, Instant::now(), move |engine, _| {
        engine.trust_journal()?;
        let book = engine.book();
        let sessions = match book.user(&user)? {
            Some(held) => recent::sessions(book, &held, limit, |_| true)?,
            None => Vec::new(),
        };
        let results = sessions.into_iter().map(|session| SessionOut::new(&user, session)).collect();
        Ok::<_, Refusal>(to_json(&Results { results }))
    });
    listed.await?
}
