//! `metrics`: what the daemon has counted, what the index holds, and what it costs, as OpenMetrics text.
//!
//! What is counted as it happens is read as it stands, and every session's head once for each question; behind no barrier,
//! for a scrape speaks of what is known, not of the world. A store that has failed leaves out what only it knows, and
//! `staled_store_up` says so.

use super::{Answer, Daemon};
use crate::daemon::blocking::blocking;
use crate::daemon::engine::{Counted, Engine};
use crate::daemon::handle::Need;
use crate::index::storage::StorageError;
use crate::index::view::Coverage;
use crate::protocol::answer::{MemorySize, to_json};
use crate::protocol::exposition::Exposition;
use crate::protocol::refusal::Refusal;
use crate::store::{bytes_below, bytes_of_log};
use std::collections::BTreeMap;
use std::time::Instant;

pub(super) async fn metrics(daemon: &Daemon) -> Answer {
    let known = daemon.engine.when(Need::Nothing, Instant::now(), |engine, _| Known::read(engine)).await;
    let known = known.ok().and_then(Result::ok);
    let mut out = Exposition::default();
    daemon.metrics.tell(&mut out);
    out.gauge("staled_subscribers", "Connections that are told what happens.", daemon.subscribers.len());
    out.gauge("staled_store_up", "Whether the store can be asked.", u8::from(known.is_some()));
    if let Some(known) = known {
        known.tell(&mut out);
    }
    let (lines, syncs) = daemon.log.counts();
    out.count("staled_log_lines", "Lines of the decision log, from its first file on.", lines);
    out.count("staled_log_syncs", "Syncs of the decision log since the daemon was started.", syncs);
    on_disk(daemon, &mut out).await?;
    process(daemon, &mut out);
    Ok(to_json(&out.end()))
}

/// What the engine knows.
struct Known {
    counted: Counted,
    journal_seq: u64,
    snapshot_bytes: u64,
    doubtful: BTreeMap<(&'static str, &'static str), u64>,
    coverage: Coverage,
    memory: MemorySize,
}

impl Known {
    fn read(engine: &Engine) -> Result<Self, StorageError> {
        Ok(Self {
            counted: engine.counted(),
            journal_seq: engine.ledger.last_seq(),
            snapshot_bytes: engine.ledger.snapshot_bytes(),
            doubtful: engine.index.doubtful_by_cause()?,
            coverage: engine.index.covered()?,
            memory: engine.memory_size()?,
        })
    }

    fn tell(&self, out: &mut Exposition) {
        let counted = &self.counted;
        out.gauge("staled_sessions", "Sessions that are registered.", counted.sessions);
        out.gauge("staled_sources", "Sources that somebody rests on.", counted.sources);
        out.gauge("staled_suspects", "Sources that are being verified.", counted.suspects);
        out.gauge("staled_watches", "Watches held in the kernel.", counted.watches);
        out.count("staled_events", "Events seen since the eyes were opened.", counted.events);
        out.count("staled_gaps", "Times at which events were, or may have been, lost.", counted.gaps);
        out.count("staled_missed_events", "Changes that only the scrub has found.", counted.missed_events);
        out.count(
            "staled_scrub_passes",
            "Times that the scrub went through everything.",
            counted.scrub_passes,
        );
        let doubtful = self.doubtful.iter();
        let doubtful =
            doubtful.map(|((word, cause), rows)| (vec![("status", *word), ("cause", *cause)], *rows));
        out.gauges("staled_rows_doubtful", "Rows that are not fresh.", doubtful);
        let Coverage { inode, directory } = self.coverage;
        let covered = [("inode", inode), ("directory", directory)];
        let covered = covered.map(|(by, members)| (vec![("by", by)], members));
        out.gauges("staled_covered", "What rows rest on, by how it is watched.", covered);
        let MemorySize { users, sessions, observations } = self.memory;
        out.gauge("staled_memory_users", "Users of whom anything was ever remembered.", users);
        out.gauge("staled_memory_sessions", "Their sessions.", sessions);
        out.gauge("staled_memory_observations", "What is remembered of them.", observations);
        out.gauge("staled_journal_seq", "The last record of the journal.", self.journal_seq);
        let snapshot =
            "What the journal begins with, on disk: what was left of it when it was compacted last.";
        out.gauge("staled_journal_snapshot_bytes", snapshot, self.snapshot_bytes);
        out.count("staled_journal_compactions", "Times that the journal was compacted.", counted.compactions);
    }
}

async fn on_disk(daemon: &Daemon, out: &mut Exposition) -> Result<(), Refusal> {
    let state = daemon.folders.state.clone();
    // Listing folders may wait for a disk, and nobody else shall.
    let sizes = blocking("a count of bytes", move || {
        [bytes_of_log(&state), bytes_below(&state.join("journal")), bytes_below(&state.join("index"))]
    });
    let [log, journal, index] = sizes.await.map_err(|error| Refusal::application("store_failed", error))?;
    out.gauge("staled_log_bytes", "The decision log on disk, rotated files too.", log);
    out.gauge("staled_journal_bytes", "The journal on disk.", journal);
    out.gauge("staled_index_bytes", "The index on disk.", index);
    Ok(())
}

/// What the kernel says of us, under the names that every program uses. What it does not say is left out.
fn process(daemon: &Daemon, out: &mut Exposition) {
    let started = daemon.metrics.started.micros as f64 / 1e6;
    out.gauge("process_start_time_seconds", "When the daemon was started, since the epoch.", started);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.strip_suffix("kB"));
    if let Some(kib) = resident.and_then(|kib| kib.trim().parse::<u64>().ok()) {
        out.gauge("process_resident_memory_bytes", "Memory that is in use.", kib * 1024);
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        // One of them is the listing itself.
        out.gauge("process_open_fds", "File descriptors that are open.", open.count().saturating_sub(1));
    }
}
