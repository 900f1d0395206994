//! `touch_ack`: the agent wrote a file itself; what it wrote is what it knows.

use super::fork::{Word, crossing};
use super::register::{DEADLINE, on_disk};
use super::{Answer, Daemon, blind, no_such_session};
use crate::daemon::clock;
use crate::daemon::engine::Engine;
use crate::daemon::handle::{Need, Sight};
use crate::protocol::convert;
use crate::protocol::path::WirePath;
use crate::protocol::refusal::Refusal;
use crate::protocol::request::TouchAck;
use crate::session::SessionId;
use crate::session::digest::Digest;
use crate::store::record::Record;
use crate::store::syncer::Synced;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

pub(super) async fn touch_ack(daemon: &Daemon, ask: TouchAck) -> Answer {
    let session = convert::session(&ask.session)?;
    let digest = convert::digest(&ask.digest)?;
    let deadline = Instant::now() + Duration::from_millis(daemon.config().context.register_deadline_ms);
    let name = session.clone();
    let path = ask.path.0;
    let word = Word { kind: "foreign_write", paths: vec![path.clone()], ..Word::default() };
    let crossing = crossing(daemon, &session, None, word).await?;
    let acknowledged = daemon.engine.when(Need::Barrier, deadline, move |engine, sight| {
        if sight == Sight::Blind {
            return Err(blind(engine, DEADLINE));
        }
        let synced = apply(engine, &name, path, digest)?;
        crossing.mark(engine)?;
        Ok(synced)
    });
    on_disk(acknowledged.await??).await?;
    let name = session.clone();
    let flushed = daemon.engine.when(Need::Settled(session), deadline, move |engine, _| {
        engine.index.storage_mut().flush()?;
        Ok::<_, Refusal>(serde_json::json!({ "session": name.as_str(), "acknowledged": true }).to_string())
    });
    flushed.await?
}

fn apply(
    engine: &mut Engine,
    name: &SessionId,
    path: PathBuf,
    digest: Digest,
) -> Result<oneshot::Receiver<Synced>, Refusal> {
    let Some(session) = engine.index.session(name) else { return Err(no_such_session(name)) };
    let at = clock::now();
    if !engine.index.rests_on(session, &path)? {
        let why = format!("session {name} does not rest on the bytes of {}", path.display());
        return Err(Refusal::application("not_found", why));
    }
    let (told, text) = (WirePath(path.clone()), digest.to_string());
    let record = Record::Acknowledged { session: name.to_string(), path: told, digest: text, at: at.micros };
    let checks = engine.journaled(&record, |engine| engine.index.acknowledge(session, &path, digest, at))?;
    engine.follow(checks.unwrap_or_default(), &[]);
    Ok(engine.synced())
}
