//! `status`: of one session, or of the daemon itself.

use super::{Answer, Daemon, no_session};
use crate::daemon::engine::Engine;
use crate::daemon::handle::{Need, Sight};
use crate::index;
use crate::index::freshness::Freshness;
use crate::index::view::{Line, Listed, View};
use crate::protocol::answer::{Coverage, Health, Known, Paranoid, SessionStatus, to_json};
use crate::protocol::convert;
use crate::protocol::path::WirePath;
use crate::protocol::refusal::Refusal;
use crate::protocol::report::{ClockOut, row};
use crate::protocol::request::Status;
use crate::session::SessionId;
use std::sync::atomic::Ordering;
use std::time::Instant;

pub(super) async fn status(daemon: &Daemon, ask: Status) -> Answer {
    match ask.session {
        Some(session) => of_session(daemon, &session, listed(ask.rows.as_deref())?).await,
        None => of_daemon(daemon).await,
    }
}

async fn of_session(daemon: &Daemon, session: &str, listed: Listed) -> Answer {
    let session = convert::session(session)?;
    let deadline = daemon.config().deadline(None);
    let view = super::decide::seen(daemon, &session, listed, deadline).await?;
    let overlay = on_overlay(daemon, &session).await?;
    let known = !view.lines.is_empty() || view.counts.rows > 0;
    if !known {
        return Err(no_session(&session));
    }
    Ok(to_json(&SessionStatus {
        session: view.head.session.as_str(),
        user: &view.head.user,
        agent: &view.head.agent,
        root: WirePath(view.head.root.clone()),
        clock: ClockOut::from(&view.clock),
        counts: view.counts.into(),
        rows: view.lines.iter().map(row).collect(),
        coverage: coverage(&view, overlay),
    }))
}

fn listed(rows: Option<&str>) -> Result<Listed, Refusal> {
    match rows {
        None | Some("all") => Ok(Listed::AllUpTo(u32::MAX)),
        Some("stale") => Ok(Listed::Doubtful),
        Some(other) => Err(Refusal::invalid_params(format!("rows is \"all\" or \"stale\", not {other:?}"))),
    }
}

/// How the session's sources are watched, members of its trees one by one. What cannot be told is not watched.
fn coverage(view: &View, overlay: usize) -> Coverage {
    let doubtful = |line: &Line| matches!(line.freshness, Freshness::Unknown(_));
    let covered: index::view::Coverage =
        view.lines.iter().filter(|line| !doubtful(line)).map(|line| line.coverage).sum();
    Coverage { inode: covered.inode, directory: covered.directory, overlay: overlay as u64 }
}

async fn on_overlay(daemon: &Daemon, session: &SessionId) -> Result<usize, Refusal> {
    let name = session.clone();
    let counted = daemon.engine.when(Need::Nothing, Instant::now(), move |engine, _| {
        let session = engine.index.session(&name);
        let sources = session.map(|session| engine.index.rested_on(session)).transpose()?;
        Ok::<_, Refusal>(engine.world.on_overlay(&sources.unwrap_or_default()))
    });
    counted.await?
}

async fn of_daemon(daemon: &Daemon) -> Answer {
    let deadline = Instant::now() + daemon.config().deadline(None);
    let frame = Frame::of(daemon);
    let told = frame.clone();
    let health = daemon.engine.when(Need::Barrier, deadline, move |engine, sight| {
        let mut problems = engine.problems();
        if sight == Sight::Blind {
            problems.push("the watcher does not answer".to_owned());
        }
        Ok(to_json(&told.health(known(engine)?, problems)))
    });
    match health.await.flatten() {
        // How it is must be told above all when it is not well.
        Err(refusal) if refusal.word() == Some("store_failed") => {
            let mut problems = vec![refusal.message];
            problems.extend(daemon.log.failed());
            Ok(to_json(&frame.health(Known::default(), problems)))
        }
        health => health,
    }
}

fn known(engine: &Engine) -> Result<Known<'_>, Refusal> {
    let counted = engine.counted();
    Ok(Known {
        clock: Some(ClockOut::from(engine.index.clock())),
        sessions: Some(counted.sessions),
        sources: Some(counted.sources),
        suspects: Some(counted.suspects),
        watches: Some(counted.watches),
        events: Some(counted.events),
        gaps: Some(counted.gaps),
        missed_events: Some(counted.missed_events),
        scrub_passes: Some(counted.scrub_passes),
        journal_bytes: Some(engine.ledger.bytes()),
        compactions: Some(counted.compactions),
        compacting: Some(engine.ledger.is_compacting()),
        last_gap: engine.health.last_gap.as_deref(),
        memory: Some(engine.memory_size()?),
    })
}

/// What can be said without the engine.
#[derive(Clone)]
struct Frame {
    uptime_s: u64,
    subscribers: usize,
    paranoid: Option<Paranoid>,
    log_sync: &'static str,
    anchored_in: &'static str,
    anchors_lost: u64,
    state: WirePath,
}

impl Frame {
    fn of(daemon: &Daemon) -> Self {
        let (anchored_in, anchors_lost) = daemon.log.anchored();
        Self {
            uptime_s: daemon.started.elapsed().as_secs(),
            subscribers: daemon.subscribers.len(),
            paranoid: daemon.config().verify.paranoid.then(|| paranoid(daemon)),
            log_sync: daemon.log.mode().word(),
            anchored_in,
            anchors_lost,
            state: WirePath(daemon.folders.state.clone()),
        }
    }

    fn health(self, known: Known<'_>, problems: Vec<String>) -> Health<'_> {
        let Self { uptime_s, subscribers, paranoid, log_sync, anchored_in, anchors_lost, state } = self;
        Health {
            health: if problems.is_empty() { "ok" } else { "degraded" },
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            uptime_s,
            known,
            subscribers,
            paranoid,
            log_sync,
            anchored_in,
            anchors_lost,
            confinement: crate::daemon::confine::confinement(),
            state,
            problems,
        }
    }
}

fn paranoid(daemon: &Daemon) -> Paranoid {
    let checks = &daemon.cross_checks;
    Paranoid {
        made: checks.made.load(Ordering::Relaxed),
        inconclusive: checks.inconclusive.load(Ordering::Relaxed),
        differences: checks.differences.load(Ordering::Relaxed),
    }
}
