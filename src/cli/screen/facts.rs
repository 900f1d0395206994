//! What the daemon told, taken apart into what is shown of it. Everything here is harmless to show, but for the names by
//! which sessions are asked for.

use crate::cli::paint::Tone;
use crate::cli::tail::said_by;
use crate::cli::words::{change, counted, harmless, list, number, path, span, state, text};
use serde_json::Value;

/// How the daemon is.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Health {
    /// `ok` or `degraded`; empty until it has answered.
    pub(super) word: String,
    /// A few facts, the most important first.
    pub(super) facts: Vec<String>,
    pub(super) problems: Vec<String>,
}

/// Why nothing new is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Away {
    /// There is no daemon; otherwise there is, and it cannot answer.
    pub(super) gone: bool,
    pub(super) why: String,
}

/// A session in the list.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Session {
    /// As the client spelled it.
    pub(super) name: String,
    pub(super) rows: u64,
    pub(super) stale: u64,
    pub(super) unknown: u64,
    pub(super) agent: String,
    pub(super) root: String,
}

/// What was decided last, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Transition {
    pub(super) word: String,
    pub(super) at: String,
}

/// What is not fresh of a session.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Rows {
    /// As the client spelled it.
    pub(super) session: String,
    /// All rows, the fresh ones too; not known until the daemon has answered.
    pub(super) number: Option<u64>,
    pub(super) doubtful: Vec<Row>,
}

/// A row that is not fresh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) state: (&'static str, Tone),
    pub(super) source: String,
    pub(super) cause: String,
    pub(super) change: String,
    /// The moment, as it travels.
    pub(super) since: Option<String>,
}

/// A line of the decision log.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// The moment, as it travels.
    pub(super) at: String,
    /// As the client spelled it; empty where it concerns none.
    pub(super) session: String,
    /// Of a decision: what was decided.
    pub(super) transition: Option<String>,
    /// Of anything else: what it is.
    pub(super) event: String,
    pub(super) said: String,
}

impl Health {
    pub(super) fn of(answer: &Value) -> Self {
        let verified = match answer["suspects"].as_u64() {
            None | Some(0) => String::new(),
            Some(suspects) => format!(", {suspects} being verified"),
        };
        let known = |field: &str, thing: &str| answer[field].as_u64().map(|count| counted(count, thing));
        let facts = [
            known("sessions", "session"),
            known("sources", "source").map(|sources| format!("{sources}{verified}")),
            known("gaps", "gap"),
            answer["uptime_s"].as_u64().map(|seconds| format!("up {}", span(seconds))),
        ];
        let problems = list(answer, "problems").iter().filter_map(Value::as_str).map(harmless);
        Self {
            word: text(answer, "health"),
            facts: facts.into_iter().flatten().collect(),
            problems: problems.collect(),
        }
    }
}

impl Session {
    pub(super) fn of(listed: &Value) -> Self {
        let count = |field: &str| number(&listed["counts"], field);
        Self {
            name: listed["session"].as_str().unwrap_or_default().to_owned(),
            rows: count("results"),
            stale: count("stale"),
            unknown: count("unknown"),
            agent: text(listed, "agent"),
            root: path(&listed["root"]),
        }
    }
}

impl Rows {
    pub(super) fn of(session: &str, answer: &Value) -> Self {
        let doubtful = list(answer, "rows").iter().filter(|row| row["status"] != "fresh");
        let mut doubtful: Vec<Row> = doubtful.map(Row::of).collect();
        // The last that turned is what somebody looks for.
        doubtful.sort_by(|one, other| other.since.cmp(&one.since));
        Self { session: session.to_owned(), number: Some(number(&answer["counts"], "results")), doubtful }
    }
}

impl Row {
    fn of(row: &Value) -> Self {
        let remark = if row["critical"] == false { " (not critical)" } else { "" };
        Self {
            state: state(row),
            source: path(&row["source"]),
            cause: format!("{}{remark}", text(row, "cause")),
            change: change(row),
            since: row["since"].as_str().map(str::to_owned),
        }
    }
}

impl Line {
    pub(super) fn of(line: &Value) -> Self {
        let event = line["event"].as_str();
        let at = if event.is_some() { &line["at"] } else { &line["decided_at"] };
        Self {
            at: at.as_str().unwrap_or_default().to_owned(),
            session: line["session"].as_str().unwrap_or_default().to_owned(),
            transition: event.is_none().then(|| text(line, "transition")),
            event: harmless(event.unwrap_or_default()),
            said: if event.is_some() { said_by(line) } else { text(&line["reason"], "text") },
        }
    }
}
