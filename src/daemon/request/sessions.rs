//! `context.get`, `context.list`, `context.drop`, `context.release`.

use super::register::on_disk;
use super::{Answer, Daemon, no_such_session};
use crate::daemon::engine::Engine;
use crate::daemon::handle::{Need, Sight};
use crate::index::row::{Role, Row};
use crate::index::storage::StoredHead;
use crate::index::view::{Counts, Listed};
use crate::protocol::answer::{Listed as ListedOut, ListedSession, to_json};
use crate::protocol::convert;
use crate::protocol::path::WirePath;
use crate::protocol::refusal::Refusal;
use crate::protocol::request::{List, OfSession, Release};
use crate::protocol::time;
use crate::session::SessionId;
use crate::session::context::{Belief, Fact, Seen, Update};
use crate::store::record::Record;
use crate::store::syncer::Synced;
use std::collections::HashSet;
use std::time::Instant;
use tokio::sync::oneshot;

pub(super) async fn get(daemon: &Daemon, ask: OfSession) -> Answer {
    let name = convert::session(&ask.session)?;
    let got = daemon.engine.when(Need::Nothing, Instant::now(), move |engine, _| {
        let Some(session) = engine.index.session(&name) else { return Err(no_such_session(&name)) };
        let rows = engine.index.rows(session)?;
        let weak: HashSet<String> =
            rows.iter().filter(|row| row.is_by_registration()).map(|row| row.id.clone()).collect();
        let mut context = convert::context(&told_again(engine.index.head(session)?, rows));
        let told = context.results.iter_mut().chain(&mut context.invariants);
        for told in told {
            let id = told.id.as_ref().or(told.name.as_ref());
            let weak = id.is_some_and(|id| weak.contains(id));
            told.baseline = weak.then(|| "registration".to_owned());
        }
        Ok(to_json(&context))
    });
    got.await?
}

/// The context that was told, as far as it stands.
pub(in crate::daemon) fn told_again(head: StoredHead, rows: Vec<Row>) -> Update {
    let of = |role: Role| rows.iter().filter(move |row| row.role == role).map(belief).collect();
    let fact = |fact: crate::index::storage::StoredFact| {
        let crate::index::storage::StoredFact { id, statement, evidence, sources, .. } = fact;
        Fact { id, statement, evidence, sources }
    };
    Update {
        user: Some(head.user),
        agent: Some(head.agent),
        root: Some(head.root),
        captured_at: head.captured_at,
        goal: Some(head.goal),
        results: of(Role::Result),
        invariants: of(Role::Invariant),
        facts: head.facts.into_iter().map(fact).collect(),
        decisions: head.decisions,
        open_questions: head.open_questions,
        scratchpad_bytes: Some(head.scratchpad_bytes),
        ..Update::of(head.session)
    }
}

fn belief(row: &Row) -> Belief {
    Belief {
        id: row.id.clone(),
        tool: row.tool.clone(),
        critical: row.critical,
        captured_at: row.captured_at,
        source: row.source.clone(),
        seen: row.baseline.seen().cloned().unwrap_or(Seen::Unsaid),
        // What the daemon has learned beside is its own.
        lf: None,
    }
}

pub(super) async fn list(daemon: &Daemon, ask: List) -> Answer {
    let deadline = Instant::now() + daemon.config().deadline(None);
    let listed = daemon.engine.when(Need::Barrier, deadline, move |engine, sight| {
        let mut held: Vec<(StoredHead, Counts)> = Vec::new();
        for session in engine.index.sessions()? {
            let head = engine.index.head(session)?;
            if head.session.is_own() {
                continue;
            }
            let of_root = ask.root.as_ref().is_none_or(|root| root.0 == head.root);
            if of_root && ask.user.as_ref().is_none_or(|user| *user == head.user) {
                let counts = counts(engine, &head.session, sight)?;
                held.push((head, counts));
            }
        }
        Ok::<_, Refusal>(listed(&held))
    });
    listed.await?
}

fn counts(engine: &mut Engine, session: &SessionId, sight: Sight) -> Result<Counts, Refusal> {
    Ok(engine.view(session, Listed::Doubtful, sight)?.map(|view| view.counts).unwrap_or_default())
}

fn listed(held: &[(StoredHead, Counts)]) -> String {
    let sessions = held.iter().map(|(head, counts)| ListedSession {
        session: head.session.as_str(),
        user: &head.user,
        agent: &head.agent,
        root: WirePath(head.root.clone()),
        captured_at: head.captured_at.map(time::to_text),
        counts: (*counts).into(),
    });
    to_json(&ListedOut { sessions: sessions.collect() })
}

pub(super) async fn drop_session(daemon: &Daemon, ask: OfSession) -> Answer {
    let name = convert::session(&ask.session)?;
    // Behind a barrier like a registration, so that the two keep the order in which one connection sent them.
    let deadline = Instant::now() + daemon.config().deadline(None);
    let ending = name.clone();
    let dropped = daemon.engine.when(Need::Barrier, deadline, move |engine, _| end(engine, &ending));
    let (answer, synced) = dropped.await??;
    daemon.holders.forget(name.as_str());
    on_disk(synced).await?;
    Ok(answer)
}

/// The process ends its hold on a session; of one that it does not hold that is no error, for it may be told twice.
pub(super) fn release(daemon: &Daemon, ask: &Release) -> Answer {
    let name = convert::session(&ask.session)?;
    let released = daemon.holders.release(name.as_str(), ask.holder.pid);
    Ok(serde_json::json!({ "session": name.as_str(), "released": released }).to_string())
}

fn end(engine: &mut Engine, name: &SessionId) -> Result<(String, oneshot::Receiver<Synced>), Refusal> {
    let Some(session) = engine.index.session(name) else { return Err(no_such_session(name)) };
    if engine.index.fork(name.as_str())?.is_some() {
        let why = format!("{name} is the session of a fork, and ends with it: staled fork discard {name}");
        return Err(Refusal::application("fork_in_use", why));
    }
    let record = Record::Dropped { session: name.to_string() };
    let released = engine.journaled(&record, |engine| engine.index.drop_session(session))?;
    engine.follow(Vec::new(), &released);
    engine.index.storage_mut().flush()?;
    Ok((serde_json::json!({ "session": name.as_str(), "dropped": true }).to_string(), engine.synced()))
}
