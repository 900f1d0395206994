//! What is about to be forked: what its session believes when everything was seen, and whether it may be.

use crate::daemon::Daemon;
use crate::daemon::handle::{Need, Sight};
use crate::daemon::request::{DEADLINE, blind, no_session, told_again};
use crate::fork::ForkError;
use crate::index::freshness::Doubt;
use crate::index::row::{Baseline, Row};
use crate::protocol::convert;
use crate::protocol::fork::Fork;
use crate::protocol::fork::ask::Create;
use crate::protocol::refusal::Refusal;
use crate::session::SessionId;
use crate::session::context::Update;
use crate::session::source::Source;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What a session believes that is about to be forked.
pub(super) struct Ground {
    pub(super) told: Update,
    pub(super) root: PathBuf,
    /// Every fork that there is.
    pub(super) forks: Vec<Fork>,
}

/// What there is to be forked, with everything seen that happened before the question.
pub(super) async fn ground(daemon: &Daemon, session: &SessionId) -> Result<Ground, Refusal> {
    let deadline = Instant::now() + register_deadline(daemon);
    let name = session.clone();
    let ground = daemon.engine.when(Need::Settled(session.clone()), deadline, move |engine, sight| {
        if sight == Sight::Blind {
            return Err(blind(engine, DEADLINE));
        }
        let held = engine.index.session(&name).ok_or_else(|| no_session(&name))?;
        if !engine.index.believes(held)? {
            return Err(no_session(&name));
        }
        if engine.index.is_doubted(held) {
            // What failed in use may be among what is lost, and under another name nobody would ask.
            let why = format!("all results of {name} {}", Doubt::Gap.remedy());
            return Err(Refusal::application("fork_unsettled", why));
        }
        let (head, rows) = (engine.index.head(held)?, engine.index.rows(held)?);
        refuse_unlooked(&name, &rows)?;
        let forks = engine.forks()?;
        Ok(Ground { root: head.root.clone(), told: told_again(head, rows), forks })
    });
    ground.await?
}

/// What was never looked at after it was told would be taken for true in a fork.
fn refuse_unlooked(name: &SessionId, rows: &[Row]) -> Result<(), Refusal> {
    let looks = |row: &&Row| !matches!(row.source, Source::Command { .. } | Source::Volatile { .. });
    let missed = rows.iter().filter(looks).filter(|row| row.baseline == Baseline::Missed).count();
    if missed == 0 {
        return Ok(());
    }
    let why = format!(
        "{missed} results of {name} were never looked at, for their registration was cut short; register them again"
    );
    Err(Refusal::application("fork_unsettled", why))
}

pub(super) fn hypotheses(daemon: &Daemon, ask: &Create, ground: &Ground) -> Result<Vec<String>, Refusal> {
    let goal = ground.told.goal.clone().unwrap_or_default();
    let hypotheses = match &ask.hypotheses {
        Some(told) => convert::hypotheses(told)?,
        None if goal.shares_mutable_state => {
            let why = "the hypotheses of the goal share mutable state, so they cannot be tried apart; name those that can";
            return Err(Refusal::application("fork_blocked_shared_state", why));
        }
        None => goal.hypotheses,
    };
    if hypotheses.is_empty() {
        let why = "there is no hypothesis to be tried: name some, or register a goal that has some";
        return Err(Refusal::application("fork_no_hypotheses", why));
    }
    let max = daemon.config().fork.branches_max;
    let there = ground.forks.iter().filter(|fork| fork.session == ask.session).count();
    if there + hypotheses.len() > max {
        let why = format!(
            "{} forks of {} would be {}; fork.branches_max is {max}: discard some",
            hypotheses.len(),
            ask.session,
            there + hypotheses.len()
        );
        return Err(Refusal::application("too_large", why));
    }
    Ok(hypotheses)
}

/// A fork of what is itself in a fork would not survive its end.
pub(super) fn refuse_nested(root: &Path, folder: &Path) -> Result<(), ForkError> {
    let followed = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (root, folder) = (followed(root), followed(folder));
    if !root.starts_with(&folder) {
        return Ok(());
    }
    let why = format!(
        "{} lies in the folder of forks, {}, and forks do not nest: fork the session that it came from",
        root.display(),
        folder.display()
    );
    Err(ForkError::refused("fork_nested", why))
}

fn register_deadline(daemon: &Daemon) -> Duration {
    Duration::from_millis(daemon.config().context.register_deadline_ms)
}
