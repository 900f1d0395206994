//! `fact.refute`: something believed failed when it was used. If the last decision was a resume, it is made again.

use super::decide::{Beside, ROWS_MAX, say, seen};
use super::register::on_disk;
use super::{Answer, Daemon, no_session, no_such_session};
use crate::daemon::blocking::blocking;
use crate::daemon::clock;
use crate::daemon::engine::Engine;
use crate::daemon::handle::Need;
use crate::decision;
use crate::index::Change;
use crate::index::view::Listed;
use crate::protocol::convert;
use crate::protocol::gate::is_blank;
use crate::protocol::path::Reference;
use crate::protocol::refusal::Refusal;
use crate::protocol::request::Refute;
use crate::session::moment::Moment;
use crate::session::privacy::strip;
use crate::session::{SessionId, Side};
use crate::store::decision_log::last_line_where;
use crate::store::record::Record;
use crate::store::syncer::Synced;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tokio::sync::oneshot;

pub(super) async fn refute(daemon: &Daemon, ask: Refute, began: Instant) -> Answer {
    let session = convert::session(&ask.session)?;
    let target = match (ask.fact, ask.source) {
        (Some(fact), None) if is_blank(&fact) => {
            return Err(Refusal::invalid_params("the fact that failed must not be blank"));
        }
        (Some(fact), None) => PathBuf::from(strip(&fact)),
        (None, Some(source)) => convert::reference(source)?,
        _ => return Err(Refusal::invalid_params("name the fact or the source that failed, one of them")),
    };
    let deadline = daemon.config().deadline(None);
    let name = session.clone();
    let hit = target.clone();
    let refuted =
        daemon.engine.when(Need::Barrier, began + deadline, move |engine, _| apply(engine, &name, hit));
    let (ids, synced) = refuted.await??;
    on_disk(synced).await?;
    let observed = strip(ask.observed.as_deref().unwrap_or_default());
    let source = target.to_string_lossy();
    let fields = [("session", session.as_str()), ("target", &source), ("observed", &observed)];
    let logged = daemon.log.event_answered("fact_refuted", &fields).await;
    logged.map_err(|error| Refusal::application("log_failed", error))?;
    let decision = match last_resume(daemon, &session).await? {
        None => "null".to_owned(),
        Some(superseded) => {
            let view = seen(daemon, &session, Listed::AllUpTo(ROWS_MAX), deadline).await?;
            let decided = decision::decide(&view, &daemon.policy()).map_err(|_| no_session(&session))?;
            say(
                daemon,
                &view,
                &decision::refuted(decided, &ids),
                Beside { supersedes: Some(&superseded), refuted: Some(&ids), ..Beside::default() },
                began,
            )
            .await?
        }
    };
    let refuted = serde_json::json!({ "session": session.as_str(), "refuted": ids }).to_string();
    Ok(format!("{},\"decision\":{decision}}}", refuted.trim_end_matches('}')))
}

fn apply(
    engine: &mut Engine,
    name: &SessionId,
    target: PathBuf,
) -> Result<(Vec<String>, oneshot::Receiver<Synced>), Refusal> {
    let Some(session) = engine.index.session(name) else { return Err(no_such_session(name)) };
    if !engine.index.knows(session, &target)? {
        let why = format!("session {name} has no fact, result, invariant or path {}", target.display());
        return Err(Refusal::application("not_found", why));
    }
    let at = clock::now();
    let record =
        Record::Refuted { session: name.to_string(), target: Reference(target.clone()), at: at.micros };
    let refuted = engine.journaled(&record, |engine| engine.index.refute(session, &target, at))?;
    engine.index.storage_mut().flush()?;
    let (ids, mut changed) = refuted.map(|refuted| (refuted.ids, refuted.changed)).unwrap_or_default();
    changed.extend(refute_bases(engine, name, &ids, at)?);
    engine.push_changes(&changed, at)?;
    Ok((ids, engine.synced()))
}

/// What failed in a session has failed for every fork that started from it.
fn refute_bases(
    engine: &mut Engine,
    name: &SessionId,
    ids: &[String],
    at: Moment,
) -> Result<Vec<Change>, Refusal> {
    let forks = engine.forks()?.into_iter().filter(|fork| fork.session == name.as_str());
    let bases: BTreeSet<u64> = forks.map(|fork| fork.baseline).collect();
    let mut changed = Vec::new();
    for base in bases.into_iter().map(|no| SessionId::of_fork(no, Side::Base)) {
        let Some(session) = engine.index.session(&base) else { continue };
        for id in ids {
            let target = PathBuf::from(format!("base/{id}"));
            let record = Record::Refuted {
                session: base.as_str().to_owned(),
                target: Reference(target.clone()),
                at: at.micros,
            };
            let refuted = engine.journaled(&record, |engine| engine.index.refute(session, &target, at))?;
            changed.extend(refuted.map(|refuted| refuted.changed).unwrap_or_default());
        }
    }
    Ok(changed)
}

/// The session's last decision, if it was a resume.
async fn last_resume(daemon: &Daemon, session: &SessionId) -> Result<Option<String>, Refusal> {
    let (path, session) = (daemon.log.path().to_owned(), session.clone());
    // A session that was never decided about has the whole log read for it: not on the thread that answers everybody.
    let found = blocking("a reading of the decision log", move || find_last_resume(&path, &session)).await;
    let found = found.map_err(|error| Refusal::application("log_failed", error))?;
    found.map_err(|error| Refusal::application("log_failed", error))
}

fn find_last_resume(path: &Path, session: &SessionId) -> std::io::Result<Option<String>> {
    let parse = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap_or_default();
    let of_session = |line: &str| {
        let line = parse(line);
        line["session"] == session.as_str() && line["decision"].is_string()
    };
    let line = last_line_where(path, of_session)?;
    let line = line.map(|line| parse(&line)).unwrap_or_default();
    Ok((line["transition"] == "resume").then(|| line["decision"].as_str().map(str::to_owned)).flatten())
}
