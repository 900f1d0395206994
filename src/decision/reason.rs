//! Why: one code, one plain sentence that names the evidence, and the rows that triggered it, most decisive first.

use crate::index::freshness::{Cause, Doubt, Freshness};
use crate::index::row::Role;
use crate::index::view::{Counts, Line, View};
use crate::session::source::Source;

/// The reason of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// What kind of reason.
    pub code: Code,
    /// One sentence for people.
    pub text: String,
    /// Ids of the rows that triggered it.
    pub evidence: Vec<String>,
}

/// What kind of reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Nothing critical is in doubt.
    Valid,
    /// A critical result is stale.
    CriticalStale,
    /// A critical invariant is stale.
    WorldChanged,
    /// Something critical cannot be told.
    UnknownCritical,
    /// The scratchpad is larger than the policy allows.
    ScratchpadOverBudget,
    /// Several hypotheses, nothing shared.
    Branchable,
    /// Several hypotheses, but they would write to the same thing.
    ForkBlockedSharedState,
    /// A client said that a fact failed in use.
    FactRefuted,
    /// Something critical is stale that a fork rests on, or its parent.
    MergeStale,
}

impl Code {
    /// Every one of them.
    pub const ALL: [Self; 9] = [
        Self::Valid,
        Self::CriticalStale,
        Self::WorldChanged,
        Self::UnknownCritical,
        Self::ScratchpadOverBudget,
        Self::Branchable,
        Self::ForkBlockedSharedState,
        Self::FactRefuted,
        Self::MergeStale,
    ];

    /// The word on the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::CriticalStale => "critical_stale",
            Self::WorldChanged => "world_changed",
            Self::UnknownCritical => "unknown_critical",
            Self::ScratchpadOverBudget => "scratchpad_over_budget",
            Self::Branchable => "branchable",
            Self::ForkBlockedSharedState => "fork_blocked_shared_state",
            Self::FactRefuted => "fact_refuted",
            Self::MergeStale => "merge_stale",
        }
    }
}

/// The most decisive row first: a verified change before a doubt, a result before an invariant, then by id.
fn weight(line: &Line) -> (u8, bool, &str) {
    let rank = match line.freshness {
        Freshness::Stale(Cause::Refuted) => 0,
        Freshness::Stale(_) => 1,
        Freshness::Unknown(_) => 2,
        Freshness::Fresh => 3,
    };
    (rank, line.role == Role::Invariant, &line.id)
}

pub(super) fn world_changed(doubtful: &[&Line], counts: Counts) -> Reason {
    let mut critical: Vec<&Line> = doubtful.iter().copied().filter(|line| line.critical).collect();
    critical.sort_by(|a, b| weight(a).cmp(&weight(b)));
    let first = critical[0];
    let code = match first.freshness {
        Freshness::Stale(Cause::Refuted) => Code::FactRefuted,
        Freshness::Unknown(_) => Code::UnknownCritical,
        _ if first.role == Role::Invariant => Code::WorldChanged,
        _ => Code::CriticalStale,
    };
    let text = format!("{}; {}.", sentence(first), tally(counts));
    Reason { code, text, evidence: critical.into_iter().map(|line| line.id.clone()).collect() }
}

pub(super) fn over_budget(bytes: u64, max: u64) -> Reason {
    let text = format!("The scratchpad holds {bytes} bytes; the policy allows {max}.");
    Reason { code: Code::ScratchpadOverBudget, text, evidence: Vec::new() }
}

pub(super) fn branchable(branches: usize) -> Reason {
    let text = format!("The goal has {branches} independent hypotheses and no shared mutable state.");
    Reason { code: Code::Branchable, text, evidence: Vec::new() }
}

pub(super) fn valid(view: &View, fork_blocked: bool) -> Reason {
    let counts = view.counts;
    let mut held = match counts.stale + counts.unknown {
        0 => format!("All {} results and invariants are what the session saw", counts.rows),
        doubtful => {
            let (rows, are) = (counts.rows, are(doubtful));
            format!("Nothing critical changed; {doubtful} of {rows} {are} stale and must be dropped")
        }
    };
    for line in view.lines.iter().filter(|line| line.freshness == Freshness::Fresh && line.now.is_some()) {
        let (was, now) = (short(line.was.as_deref()), short(line.now.as_deref()));
        held = format!("{held}; {} moved ({was} → {now}){}", line.id, between(line));
    }
    if fork_blocked {
        let text = format!("{held}; the hypotheses share mutable state, so they are not run in parallel.");
        return Reason { code: Code::ForkBlockedSharedState, text, evidence: Vec::new() };
    }
    Reason { code: Code::Valid, text: format!("{held}."), evidence: Vec::new() }
}

fn are(number: u32) -> &'static str {
    if number == 1 { "is" } else { "are" }
}

fn tally(counts: Counts) -> String {
    let stale = format!("{} of {} {} stale", counts.stale, counts.rows, are(counts.stale));
    match counts.unknown {
        0 => stale,
        unknown => format!("{stale}, {unknown} unknown"),
    }
}

/// One clause that says what happened to a row: facts only, never who did it or what for.
#[must_use]
pub fn sentence(line: &Line) -> String {
    let label = line.label().to_string_lossy().into_owned();
    let (was, now) = (short(line.was.as_deref()), short(line.now.as_deref()));
    match line.freshness {
        Freshness::Fresh => format!("{label} is what the session saw"),
        Freshness::Stale(cause) => match cause {
            Cause::Content | Cause::Names if matches!(line.source, Source::Tree { .. }) => {
                in_tree(&label, line)
            }
            Cause::Content => format!("{label} changed since it was read ({was} → {now})"),
            Cause::Names => format!("{label} holds other names than it did"),
            Cause::Input => format!("{label} rests on {}", input(line)),
            Cause::RangeMoved => match line.detail.start_line {
                Some(start_line) => {
                    format!("the lines of {label} that were read stand at line {start_line} now")
                }
                None => format!("the lines of {label} that were read stand elsewhere now"),
            },
            Cause::Schema => format!("the schema of {label} changed ({was} → {now})"),
            Cause::BornStale if line.was.is_none() => {
                format!(
                    "{label} could not be told when it was registered, so what was seen there is not known"
                )
            }
            Cause::BornStale => format!("{label} already differed when it was registered ({was} → {now})"),
            Cause::Deleted => format!("{label} is gone ({was})"),
            Cause::Renamed => match &line.renamed_to {
                Some(to) => format!("{label} was renamed to {}", to.display()),
                None => format!("{label} was renamed"),
            },
            Cause::Appeared => format!("{label} exists now"),
            Cause::KindChanged if matches!(line.source, Source::SqliteSchema { .. }) => {
                format!("{label} is no longer a database ({now})")
            }
            Cause::KindChanged => format!(
                "{label} is no longer a {} ({now})",
                if matches!(line.source, Source::Tree { .. }) { "folder" } else { "file" }
            ),
            Cause::HeadMoved => format!("HEAD moved ({was} → {now}){}", between(line)),
            Cause::Volatile => format!("{label} cannot be verified"),
            Cause::Refuted => format!("{label} failed when it was used"),
        },
        Freshness::Unknown(doubt) => {
            let what = if matches!(line.source, Source::GitHead { .. }) { "HEAD" } else { label.as_str() };
            let help = match doubt {
                Doubt::WatchLimit => ": raise fs.inotify.max_user_watches",
                Doubt::Gap => ": the journal was damaged; register the session again with replace: true",
                _ => "",
            };
            format!("{what} cannot be verified ({}{help})", doubt.word())
        }
    }
}

/// What lies between two commits, as the end of a clause.
fn between(line: &Line) -> String {
    let Some(moved) = &line.detail.moved else { return String::new() };
    let Some(number) = moved.number else {
        return ", and which paths differ is not known, for a commit is not in the repository".to_owned();
    };
    let least = if moved.more { "at least " } else { "" };
    let paths = if number == 1 { "path differs" } else { "paths differ" };
    let among = match (moved.rows, moved.ids.first()) {
        (1, Some(id)) => format!("{id} of this session among them"),
        (rows, Some(id)) => format!("{id} and {} more of this session among them", rows - 1),
        _ => "none of this session's sources among them".to_owned(),
    };
    format!(", where {least}{number} {paths}, {among}")
}

/// What changed below a folder: its first path, and how many there are.
fn in_tree(label: &str, line: &Line) -> String {
    match line.detail.changed.as_ref().map(|changed| (changed.number, changed.paths.first())) {
        Some((1, Some(path))) => format!("{} changed below {label}", path.display()),
        Some((number, Some(path))) => {
            format!("{} and {} more changed below {label}", path.display(), number - 1)
        }
        _ => format!("something changed below {label}"),
    }
}

fn input(line: &Line) -> String {
    let input = line.detail.input.as_deref().unwrap_or("something");
    match line.detail.changed.as_ref().and_then(|changed| Some((changed.number, changed.paths.first()?))) {
        Some((1, path)) => format!("{input}, where {} changed", path.display()),
        Some((number, path)) => format!("{input}, where {} and {} more changed", path.display(), number - 1),
        None => format!("{input}, which is not what it was"),
    }
}

/// `blake3:3f2a9c01…` of a digest or id as the wire writes it.
#[must_use]
pub fn short(text: Option<&str>) -> String {
    let Some(text) = text else { return "nothing".to_owned() };
    let (prefix, digits) = text.split_once(':').map_or(("", text), |(prefix, digits)| (prefix, digits));
    let separator = if prefix.is_empty() { "" } else { ":" };
    match digits.char_indices().nth(8) {
        Some((end, _)) => format!("{prefix}{separator}{}…", &digits[..end]),
        None => text.to_owned(),
    }
}

/// `a, b and c`.
#[must_use]
pub fn listed(ids: &[String]) -> String {
    match ids {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}
