//! What subscribers are told: one notification a line, `{"jsonrpc":"2.0","method":"event","params":{…}}`.
//!
//! Each carries the clock at which it became true, so that a client can say whether an answer knew of it already. A row
//! that is told for the first time is no event when it is fresh, for its registration said so; nor is a row that is
//! removed, or a session that is dropped.

use super::answer::to_json;
use super::report::ClockOut;
use super::time;
use crate::decision::Decision;
use crate::index::Change;
use crate::index::clock::Clock;
use crate::session::SessionId;
use crate::session::moment::Moment;
use serde::Serialize;
use std::collections::BTreeMap;

/// What a client may subscribe to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// Rows that became fresh, stale or unknown.
    Staleness,
    /// Decisions, as they are logged.
    Decision,
    /// What becomes of forks.
    Fork,
    /// Events were, or may have been, lost, and a new epoch has begun.
    Gap,
}

impl Topic {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Staleness, Self::Decision, Self::Fork, Self::Gap];

    /// The word on the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Staleness => "staleness",
            Self::Decision => "decision",
            Self::Fork => "fork",
            Self::Gap => "gap",
        }
    }

    /// The topic of a word.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|topic| topic.word() == word)
    }
}

#[derive(Serialize)]
struct Notification<P> {
    jsonrpc: &'static str,
    method: &'static str,
    params: P,
}

fn line(params: impl Serialize) -> String {
    let mut line = to_json(&Notification { jsonrpc: "2.0", method: "event", params });
    line.push('\n');
    line
}

#[derive(Serialize)]
struct Staleness<'event> {
    topic: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'event str>,
    /// Whose source it is, where it is none of a session's rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    observation: Option<u64>,
    id: &'event str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
    from: &'static str,
    clock: ClockOut<'event>,
    since: String,
}

/// A row became something else; of an observation of the memory, the source with this number became so.
#[must_use]
pub fn staleness(session: &SessionId, change: &Change, clock: &Clock, since: Moment) -> String {
    line(Staleness {
        topic: Topic::Staleness.word(),
        session: session.observation().is_none().then_some(session.as_str()),
        observation: session.observation(),
        id: &change.id,
        status: change.to.word(),
        cause: change.to.cause(),
        from: change.from.word(),
        clock: clock.into(),
        since: time::to_text(since),
    })
}

/// Where a decision stands in the log.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ReceiptOut<'event> {
    /// Number of its line.
    pub seq: u64,
    /// Hash of its line.
    pub hash: &'event str,
}

#[derive(Serialize)]
struct Reason<'event> {
    code: &'static str,
    text: &'event str,
}

#[derive(Serialize)]
struct Decided<'event> {
    topic: &'static str,
    decision: &'event str,
    session: &'event str,
    transition: &'static str,
    reason: Reason<'event>,
    supersedes: Option<&'event str>,
    clock: ClockOut<'event>,
    receipt: ReceiptOut<'event>,
}

/// A decision was logged under this name.
#[must_use]
pub fn decided(
    name: &str,
    session: &SessionId,
    decision: &Decision,
    supersedes: Option<&str>,
    clock: &Clock,
    receipt: ReceiptOut<'_>,
) -> String {
    line(Decided {
        topic: Topic::Decision.word(),
        decision: name,
        session: session.as_str(),
        transition: decision.transition.word(),
        reason: Reason { code: decision.reason.code.word(), text: &decision.reason.text },
        supersedes,
        clock: clock.into(),
        receipt,
    })
}

#[derive(Serialize)]
struct OfFork<'event> {
    topic: &'static str,
    event: &'event str,
    session: &'event str,
    #[serde(flatten)]
    more: BTreeMap<&'event str, &'event str>,
}

/// Something became of a fork of this session, in a word: `created`, `discarded`, `base_moved`, `isolation_broken`, …
#[must_use]
pub fn fork(event: &str, session: &str, more: &[(&str, &str)]) -> String {
    line(OfFork { topic: Topic::Fork.word(), event, session, more: more.iter().copied().collect() })
}

#[derive(Serialize)]
struct Gap<'event> {
    topic: &'static str,
    epoch: &'event str,
    why: &'event str,
}

/// A new epoch has begun.
#[must_use]
pub fn gap(epoch: &str, why: &str) -> String {
    line(Gap { topic: Topic::Gap.word(), epoch, why })
}

#[derive(Serialize)]
struct Lost {
    topic: &'static str,
    lost: u64,
}

/// So many notifications were dropped here, because the reader was slow.
#[must_use]
pub fn lost(count: u64) -> String {
    line(Lost { topic: "lost", lost: count })
}
