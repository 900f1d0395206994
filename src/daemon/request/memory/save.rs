//! `mem_save`, `mem_session_summary` and `mem_forget`.

use super::super::register::{Begun, DEADLINE, doubtful, on_disk, settle};
use super::super::{Answer, Daemon, blind};
use super::{Durable, bounds, durable};
use crate::daemon::engine::Engine;
use crate::daemon::handle::{Need, Sight};
use crate::memory::change::Change;
use crate::memory::step;
use crate::protocol::answer::to_json;
use crate::protocol::memory::answer::{Forgotten, Saved};
use crate::protocol::memory::{Forget, Save, Summary, inward};
use crate::protocol::refusal::Refusal;
use crate::session::SessionId;
use crate::session::context::Update;
use crate::world::digest;
use std::collections::HashMap;
use std::time::{Duration, Instant};

pub(super) async fn save(daemon: &Daemon, ask: Save) -> Answer {
    let user = inward::user(&ask.user_id)?;
    let (save, sources) = inward::save(ask, bounds(&daemon.config().memory), digest::blake3)?;
    match sources {
        Some(sources) if !sources.results.is_empty() => save_with_sources(daemon, user, save, sources).await,
        sources => save_words(daemon, user, save, sources).await,
    }
}

pub(super) async fn summary(daemon: &Daemon, ask: Summary) -> Answer {
    let user = inward::user(&ask.user_id)?;
    let save = inward::summary(&ask.summary, bounds(&daemon.config().memory))?;
    save_words(daemon, user, save, None).await
}

/// What rests on nothing waits for no look, but behind a barrier all the same: so saves keep the order in which one connection
/// sent them. It need not be seen.
async fn save_words(daemon: &Daemon, user: String, save: step::Save, sources: Option<Update>) -> Answer {
    let deadline = Instant::now() + daemon.config().deadline(None);
    let saved = daemon.engine.when(Need::Barrier, deadline, move |engine, _| {
        let (saved, _) = keep(engine, &user, save, sources, usize::MAX)?;
        Ok::<_, Refusal>(durable(engine, to_json(&saved)))
    });
    let (answer, synced) = saved.await??;
    on_disk(synced).await?;
    Ok(answer)
}

/// As a registration: what is on the disk when the request was sent is what the observation rests on.
async fn save_with_sources(daemon: &Daemon, user: String, save: step::Save, sources: Update) -> Answer {
    let deadline = Instant::now() + Duration::from_millis(daemon.config().context.register_deadline_ms);
    let rows_max = daemon.config().context.results_max;
    let begun = daemon.engine.when(Need::Barrier, deadline, move |engine, sight| {
        if sight == Sight::Blind {
            return Err(blind(engine, DEADLINE));
        }
        keep(engine, &user, save, Some(sources), rows_max)
    });
    let (saved, begun) = begun.await??;
    let begun = begun.expect("because sources were told, and what has some is registered");
    let name = SessionId::of_observation(saved.id);
    let finished = daemon
        .engine
        .when(Need::Settled(name), deadline, move |engine, sight| finish(engine, saved, &begun, sight));
    let (answer, synced) = finished.await??;
    on_disk(synced).await?;
    Ok(answer)
}

fn keep(
    engine: &mut Engine,
    user: &str,
    save: step::Save,
    sources: Option<Update>,
    rows_max: usize,
) -> Result<(Saved, Option<Begun>), Refusal> {
    let (change, saved) = step::save(engine.book(), user, save, &engine.circumstances())?;
    let id = saved.observation.id;
    let session = SessionId::of_observation(id);
    let had_sources = engine.index.session(&session).is_some();
    let doubtful = if sources.is_some() { doubtful(engine, &session)? } else { HashMap::new() };
    let sources = sources.map(|sources| Update { session, user: Some(user.to_owned()), ..sources });
    // Nothing to be taken from what has none.
    let sources = sources.filter(|sources| had_sources || !sources.results.is_empty());
    if let Some(sources) = &sources {
        // What is journaled must be taken, now and by every replay.
        engine.index.admits(sources, rows_max)?;
    }
    let registered = engine.remember(&change, sources.as_ref())?;
    let begun =
        registered.map(|registered| Begun { session: registered.session, told: registered.told, doubtful });
    let marks = saved.observation.marks;
    let saved = Saved {
        id,
        outcome: saved.outcome.word(),
        session_id: saved.session,
        topic_key: saved.observation.words.topic_key,
        revision_count: marks.revision,
        session_opened: saved.opened.then_some("implicit"),
        evidence: None,
    };
    Ok((saved, begun))
}

fn finish(engine: &mut Engine, saved: Saved, begun: &Begun, sight: Sight) -> Result<Durable, Refusal> {
    let name = SessionId::of_observation(saved.id);
    // Forgotten while it was looked at, or rested on something else by somebody who saved later: that one answers for it.
    if engine.index.session(&name) != Some(begun.session) {
        return Ok(durable(engine, to_json(&saved)));
    }
    if sight != Sight::Clear {
        engine.index.give_up_awaiting(begun.session)?;
    }
    settle(engine, &name, begun)?;
    let evidence = Some(engine.evidence(saved.id, sight)?);
    Ok(durable(engine, to_json(&Saved { evidence, ..saved })))
}

pub(super) async fn forget(daemon: &Daemon, ask: Forget) -> Answer {
    let user = inward::user(&ask.user_id)?;
    let id = inward::observation("id", ask.id)?;
    let deadline = Instant::now() + daemon.config().deadline(None);
    let forgotten = daemon.engine.when(Need::Barrier, deadline, move |engine, _| {
        let change = step::forget(engine.book(), &user, id)?.ok_or_else(|| not_found(id))?;
        forget_all(engine, change)?;
        Ok::<_, Refusal>(durable(engine, to_json(&Forgotten { id, forgotten: true })))
    });
    let (answer, synced) = forgotten.await??;
    on_disk(synced).await?;
    Ok(answer)
}

/// How many sessions one record tells: each has a summary of up to 64 KiB.
const SESSIONS_MAX: usize = 64;

/// What is said without the observation first, and then that it is gone: a record may be only so long.
fn forget_all(engine: &mut Engine, mut change: Change) -> Result<(), Refusal> {
    while change.sessions.len() > SESSIONS_MAX {
        let sessions = change.sessions.split_off(change.sessions.len() - SESSIONS_MAX);
        engine.remember(&Change { sessions, user: change.user.clone(), ..Change::default() }, None)?;
    }
    engine.remember(&change, None)?;
    Ok(())
}

fn not_found(id: u64) -> Refusal {
    Refusal::application(
        "not_found",
        format!("the user has no observation {id}; mem_search says which there are"),
    )
}
