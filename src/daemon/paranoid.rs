//! The paranoid mode: whatever a decision is about to claim is compared with a plain rescan of the disk.
//!
//! The index is asked before and after the rescan, behind a barrier each time. Only where both times it claims the same
//! and nothing at all has happened in between can a difference be its fault. One that is counts, is logged with both
//! sides, and everything is verified anew before the decision is made.

use super::Daemon;
use super::blocking::blocking;
use super::clock;
use super::handle::{Need, Sight};
use crate::index::freshness::Freshness;
use crate::index::scrub::Claim;
use crate::index::storage::{Memory, StorageError};
use crate::index::{Index, RegisterError};
use crate::protocol::refusal::Refusal;
use crate::session::SessionId;
use crate::session::context::{Belief, Update};
use crate::world::look::LookOptions;
use crate::world::plain::settle_plainly;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often a world that moves meanwhile is asked again.
const TRIES: usize = 3;

/// What the cross-checks found so far.
#[derive(Debug, Default)]
pub(super) struct CrossChecks {
    /// Decisions that were compared with the disk.
    pub(super) made: AtomicU64,
    /// Those where the world moved every time.
    pub(super) inconclusive: AtomicU64,
    /// Rows of which index and disk said different things.
    pub(super) differences: AtomicU64,
}

struct Asked {
    root: PathBuf,
    moment: (String, u64),
    claims: Vec<Claim>,
}

/// Compares what is claimed of a session with the disk.
pub(super) async fn cross_check(
    daemon: &Daemon,
    session: &SessionId,
    deadline: Duration,
) -> Result<(), Refusal> {
    let checks = &daemon.cross_checks;
    for _ in 0..TRIES {
        let Some(before) = ask(daemon, session, deadline).await? else { return Ok(()) };
        let (root, claims) = (before.root.clone(), before.claims.clone());
        let look = daemon.config().world_options().look;
        let disk = blocking("a plain rescan", move || rescan(root, &claims, &look)).await;
        let disk = disk.map_err(|error| Refusal::application("store_failed", error))?;
        let disk = disk.map_err(|error| Refusal::application("store_failed", error))?;
        let Some(after) = ask(daemon, session, deadline).await? else { return Ok(()) };
        if before.moment != after.moment {
            continue;
        }
        checks.made.fetch_add(1, Ordering::Relaxed);
        let differences = compare(&before.claims, &disk);
        return if differences.is_empty() { Ok(()) } else { tell(daemon, session, differences).await };
    }
    checks.inconclusive.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// What is claimed now, with everything seen that happened before; nothing when it could not be seen in time.
async fn ask(daemon: &Daemon, session: &SessionId, deadline: Duration) -> Result<Option<Asked>, Refusal> {
    let name = session.clone();
    let need = Need::Settled(session.clone());
    let asked = daemon.engine.when(need, Instant::now() + deadline, move |engine, sight| {
        let Some(session) = engine.index.session(&name).filter(|_| sight == Sight::Clear) else {
            return Ok(None);
        };
        let clock = engine.index.clock();
        // Not what there is by now: an event that the index has not been told of yet would seem to be in what it claims.
        let moment = (clock.epoch.clone(), engine.events_taken);
        let (root, claims) = (engine.index.head(session)?.root, engine.index.claims(session)?);
        Ok::<_, StorageError>(Some(Asked { root, moment, claims }))
    });
    Ok(asked.await??)
}

/// What the disk says of each row, by its number.
fn rescan(
    root: PathBuf,
    claims: &[Claim],
    look: &LookOptions,
) -> Result<HashMap<u32, Freshness>, RegisterError> {
    let name = SessionId::new("disk").expect("because it is a legal name");
    let results = claims.iter().filter_map(|claim| {
        let seen = claim.row.baseline.seen().filter(|_| !claim.row.refuted)?.clone();
        let (id, source) = (claim.row.no.0.to_string(), claim.row.source.clone());
        Some(Belief { id, tool: None, critical: false, captured_at: None, source, seen, lf: None })
    });
    let update = Update { root: Some(root), results: results.collect(), ..Update::of(name) };
    let mut index = Index::open(Memory::default(), "disk")?;
    index.wake()?;
    let registered = index.register(&update, usize::MAX, clock::now())?;
    settle_plainly(&mut index, registered.checks, clock::now(), look)?;
    let said = index.claims(registered.session)?.into_iter();
    Ok(said.filter_map(|claim| Some((claim.row.id.parse().ok()?, claim.freshness?))).collect())
}

/// Rows that are claimed fresh and are not, or stale and are not. What either side cannot tell is no difference.
fn compare(claims: &[Claim], disk: &HashMap<u32, Freshness>) -> Vec<(String, Freshness, Freshness)> {
    let differs = |claim: &Claim| {
        let (claimed, found) = (claim.freshness?, *disk.get(&claim.row.no.0)?);
        let wrong = matches!(
            (claimed, found),
            (Freshness::Fresh, Freshness::Stale(_)) | (Freshness::Stale(_), Freshness::Fresh)
        );
        wrong.then(|| (claim.row.id.clone(), claimed, found))
    };
    claims.iter().filter_map(differs).collect()
}

async fn tell(
    daemon: &Daemon,
    session: &SessionId,
    differences: Vec<(String, Freshness, Freshness)>,
) -> Result<(), Refusal> {
    daemon.cross_checks.differences.fetch_add(differences.len() as u64, Ordering::Relaxed);
    for (id, index, disk) in &differences {
        let (index, disk) = (format!("{index:?}"), format!("{disk:?}"));
        tracing::error!(%session, id, index, disk, "the index and the disk differ");
        let fields = [("session", session.as_str()), ("id", id), ("index", &index), ("disk", &disk)];
        daemon
            .log
            .event("paranoid_difference", &fields)
            .map_err(|error| Refusal::application("log_failed", error))?;
    }
    let anew = daemon.engine.when(Need::Nothing, Instant::now(), |engine, _| {
        engine.begin_epoch("the paranoid rescan found the index to be wrong")
    });
    Ok(anew.await??)
}
