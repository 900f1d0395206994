//! What the daemon answers: one result or one refusal a line, under the request's own id.

use super::path::WirePath;
use super::refusal::Refusal;
use super::report::{ClockOut, Row};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// An answer line that carries a result; `result` is JSON text already.
#[must_use]
pub fn result_line(id: &RawValue, result: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}\n", id.get())
}

/// An answer line that carries a refusal. Without an id that could be read, it is `null`.
#[must_use]
pub fn refusal_line(id: Option<&RawValue>, refusal: &Refusal) -> String {
    let error = serde_json::to_string(refusal).expect("because a refusal is made of strings and a number");
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{error}}}\n", id.map_or("null", RawValue::get))
}

/// An answer as a client reads it.
#[derive(Debug, Deserialize)]
pub struct Answer {
    /// The request's id.
    pub id: Option<u64>,
    /// What was asked for, which may be `null`.
    #[serde(default, deserialize_with = "told")]
    pub result: Option<Box<RawValue>>,
    /// Why there is none.
    #[serde(default)]
    pub error: Option<Refusal>,
}

/// An option would read a result that is `null` as none.
fn told<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

/// `hello`
#[derive(Debug, Serialize)]
pub struct Hello<'answer> {
    /// The program's name.
    pub name: &'static str,
    /// The program's version.
    pub version: &'static str,
    /// Version of the protocol.
    pub protocol: u32,
    /// The current epoch; the last one while the store is down, and empty if it was never up.
    pub epoch: &'answer str,
    /// The daemon's process id.
    pub pid: u32,
    /// Verbs that it knows.
    pub capabilities: &'static [&'static str],
}

/// `context.register` and `context.record`
#[derive(Debug, Serialize)]
pub struct Registered<'answer> {
    /// The session's name.
    pub session: &'answer str,
    /// The clock of the answer.
    pub clock: ClockOut<'answer>,
    /// The results that were told.
    pub results: Vec<Told<'answer>>,
    /// The invariants that were told.
    pub invariants: Vec<Told<'answer>>,
    /// What the client may want to know.
    pub warnings: Vec<String>,
}

/// One result or invariant that was told.
#[derive(Debug, Serialize)]
pub struct Told<'answer> {
    /// A result's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'answer str>,
    /// An invariant's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'answer str>,
    /// `fresh`, `stale` or `unknown`.
    pub status: &'static str,
    /// Why it is not fresh.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<&'static str>,
    /// `client`, or `registration` where the daemon's own look stands in.
    pub baseline: &'static str,
}

/// `context.list`
#[derive(Debug, Serialize)]
pub struct Listed<'answer> {
    /// By name.
    pub sessions: Vec<ListedSession<'answer>>,
}

/// One session of `context.list`.
#[derive(Debug, Serialize)]
pub struct ListedSession<'answer> {
    /// Its name.
    pub session: &'answer str,
    /// Whose it is.
    pub user: &'answer str,
    /// Which agent speaks.
    pub agent: &'answer str,
    /// Its root.
    pub root: WirePath,
    /// When it was captured.
    pub captured_at: Option<String>,
    /// How many rows are in which state.
    pub counts: Counts,
}

/// How many rows are in which state.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Counts {
    /// Results, invariants and tracked paths.
    pub results: u32,
    /// Verified equal.
    pub fresh: u32,
    /// Verified different or gone.
    pub stale: u32,
    /// Cannot be told.
    pub unknown: u32,
}

impl From<crate::index::view::Counts> for Counts {
    fn from(counts: crate::index::view::Counts) -> Self {
        Self { results: counts.rows, fresh: counts.fresh, stale: counts.stale, unknown: counts.unknown }
    }
}

/// `status` of a session.
#[derive(Debug, Serialize)]
pub struct SessionStatus<'answer> {
    /// The session's name.
    pub session: &'answer str,
    /// Whose it is.
    pub user: &'answer str,
    /// Which agent speaks.
    pub agent: &'answer str,
    /// Its root.
    pub root: WirePath,
    /// The clock of the answer.
    pub clock: ClockOut<'answer>,
    /// How many rows are in which state.
    pub counts: Counts,
    /// Every row, by its number; those that are not fresh say why.
    pub rows: Vec<Row<'answer>>,
    /// How the rows are watched; those that are volatile or unknown are not counted.
    pub coverage: Coverage,
}

/// How sources are watched.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Coverage {
    /// By their own inode and every folder on the way.
    pub inode: u64,
    /// By their folder alone.
    pub directory: u64,
    /// Of all of them, those on overlayfs: what is done to its layers behind its back is not reported.
    pub overlay: u64,
}

/// `status` of the daemon.
#[derive(Debug, Serialize)]
pub struct Health<'answer> {
    /// `ok`, or `degraded` when there are problems.
    pub health: &'answer str,
    /// The program's version.
    pub version: &'static str,
    /// The daemon's process id.
    pub pid: u32,
    /// Seconds since it was started.
    pub uptime_s: u64,
    /// What the store and the eyes know; nothing of it while the store is down.
    #[serde(flatten)]
    pub known: Known<'answer>,
    /// Connections that are told what happens.
    pub subscribers: usize,
    /// Decisions compared with the disk; only in paranoid mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paranoid: Option<Paranoid>,
    /// How the decision log reaches the disk.
    pub log_sync: &'static str,
    /// Who keeps anchors of the decision log: `journald`, or `nothing`.
    pub anchored_in: &'static str,
    /// Anchors that were lost since start, for the journal did not take them.
    pub anchors_lost: u64,
    /// How far the daemon has confined itself: `enforced`, `partly`, `not` or `off`.
    pub confinement: &'static str,
    /// State folder.
    pub state: WirePath,
    /// What went wrong and is not mended yet, one sentence each.
    pub problems: Vec<String>,
}

/// The part of [`Health`] that needs a store. Each is `null` without one.
#[derive(Debug, Default, Serialize)]
pub struct Known<'answer> {
    /// The clock of the answer.
    pub clock: Option<ClockOut<'answer>>,
    /// Sessions that are registered.
    pub sessions: Option<usize>,
    /// Sources that somebody rests on.
    pub sources: Option<usize>,
    /// Sources being verified.
    pub suspects: Option<usize>,
    /// Watches held in the kernel.
    pub watches: Option<usize>,
    /// Events seen since the eyes were opened, opens and reads not counted.
    pub events: Option<u64>,
    /// Gaps since start.
    pub gaps: Option<u64>,
    /// Changes that the scrub found and no event had announced.
    pub missed_events: Option<u64>,
    /// How often the scrub has gone through everything since start.
    pub scrub_passes: Option<u64>,
    /// How long the journal is.
    pub journal_bytes: Option<u64>,
    /// How often it was compacted since start.
    pub compactions: Option<u64>,
    /// Whether it is being compacted.
    pub compacting: Option<bool>,
    /// Why the last gap began.
    pub last_gap: Option<&'answer str>,
    /// How much is remembered.
    pub memory: Option<MemorySize>,
}

/// How much the memory holds, of all users together.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct MemorySize {
    /// Users of whom anything was ever kept.
    pub users: u64,
    /// Their sessions.
    pub sessions: u64,
    /// Their observations.
    pub observations: u64,
}

/// `subscribe`
#[derive(Debug, Serialize)]
pub struct Subscribed<'answer> {
    /// The topics, each once.
    pub subscribed: Vec<&'static str>,
    /// The only session that is told of, where one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<&'answer str>,
}

/// What the paranoid mode found.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Paranoid {
    /// Decisions that were compared with the disk.
    pub made: u64,
    /// Those where the world moved meanwhile.
    pub inconclusive: u64,
    /// Rows of which index and disk said different things.
    pub differences: u64,
}

/// `log.read`
#[derive(Debug, Serialize)]
pub struct LogLines<'answer> {
    /// Whole lines of the decision log, oldest first.
    pub lines: Vec<&'answer RawValue>,
}

/// `check`
#[derive(Debug, Serialize)]
pub struct Checked {
    /// `pass` or `fail`.
    pub status: &'static str,
    /// What is wrong, with JSON paths.
    pub errors: Vec<Fault>,
}

/// One thing that is wrong with a report.
#[derive(Debug, Serialize)]
pub struct Fault {
    /// JSON path.
    pub path: String,
    /// One sentence.
    pub message: String,
}

/// Anything that is known to be serialisable, as JSON text.
#[must_use]
pub fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("because answers are made of strings, numbers and paths")
}

/// JSON text as a tree, for those who print or judge it.
pub fn to_value(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text)
}

#[cfg(test)]
mod tests {
    use super::Answer;

    #[test]
    fn a_result_of_nothing_is_a_result() {
        let read = |line: &str| serde_json::from_str::<Answer>(line).expect("an answer");
        let null = read("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}");
        assert_eq!(null.result.expect("a result").get(), "null");
        assert!(read("{\"jsonrpc\":\"2.0\",\"id\":1}").result.is_none());
    }
}
