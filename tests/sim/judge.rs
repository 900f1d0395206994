//! What every view and every decision must be, written a second time and without looking at how the first is written.

use super::oracle::{Held, Oracle};
use super::world::World;
use staled::decision::policy::Policy;
use staled::decision::reason::Code;
use staled::decision::{Decision, Transition, decide};
use staled::index::Index;
use staled::index::freshness::{Cause, Doubt, Freshness};
use staled::index::pack;
use staled::index::row::{Mark, Role, Row, SessionNo};
use staled::index::storage::{Memory, Storage, Summary, Table};
use staled::index::view::{Coverage, Line, Listed, View};
use staled::session::source::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Compares everything that the index says of all sessions with the oracle.
pub(crate) fn judge(index: &Index<Memory>, oracle: &Oracle, world: &World, policy: &Policy) {
    let keys: BTreeSet<_> = oracle.rows().filter_map(|row| row.source_id).collect();
    assert_eq!(index.sources_len(), keys.len(), "sources are those that somebody rests on");
    assert_eq!(index.pending_len(), oracle.outstanding().len(), "outstanding looks");
    let numbers: Vec<u32> = oracle.sessions.keys().copied().collect();
    let mut held: Vec<u32> = index.sessions().unwrap().iter().map(|session| session.0).collect();
    held.sort_unstable();
    assert_eq!(held, numbers, "sessions");
    let mut undecided = BTreeSet::new();
    for &no in &numbers {
        judge_session(index, oracle, world, no, policy);
        undecided.extend(oracle.sessions[&no].rows.values().filter_map(|row| {
            let unknown = matches!(row.truth(world), Freshness::Unknown(_)) && !oracle.is_outstanding(row);
            row.source_id.filter(|_| unknown)
        }));
    }
    assert_eq!(index.undecided().unwrap(), undecided.into_iter().collect::<Vec<_>>(), "undecided sources");
    judge_tally(index);
}

/// What is counted over all sessions as it changes is what a count of all rows gives.
pub(crate) fn judge_tally(index: &Index<impl Storage>) {
    let (mut doubtful, mut covered) = (BTreeMap::new(), Coverage::default());
    for session in index.sessions().unwrap() {
        let view = index.view(session, Listed::AllUpTo(1000), None).unwrap().expect("the session is held");
        let known = if view.head.doubted { doubted(index, session, &view) } else { marked(index, session) };
        let known: Vec<Freshness> = known.into_iter().flatten().collect();
        for (freshness, cause) in known.iter().filter_map(|known| Some((known, known.cause()?))) {
            *doubtful.entry((freshness.word(), cause)).or_insert(0) += 1;
        }
        for line in &view.lines {
            covered.inode += line.coverage.inode;
            covered.directory += line.coverage.directory;
        }
    }
    assert_eq!(index.doubtful_by_cause().unwrap(), doubtful, "rows by cause");
    assert_eq!(index.covered().unwrap(), covered, "how rows are watched");
}

/// What the rows of a session are marked, inputs left out. What one look has not yet settled counts as it was before.
fn marked(index: &Index<impl Storage>, session: SessionNo) -> Vec<Option<Freshness>> {
    let mark = |row: &Row| {
        let key = [session.0.to_be_bytes(), row.no.0.to_be_bytes()].concat();
        let bytes = index.storage().get(Table::Marks, &key).unwrap()?;
        Some(pack::from_bytes::<Mark>(&bytes).expect("a mark").freshness)
    };
    shown(index, session).iter().map(mark).collect()
}

/// What the rows of a session in doubt count as: what one look has not yet settled as it was before, if it was more than
/// in doubt, and all others as they are shown.
fn doubted(index: &Index<impl Storage>, session: SessionNo, view: &View) -> Vec<Option<Freshness>> {
    let awaited = index.awaited(session).unwrap();
    let (rows, marks) = (shown(index, session), marked(index, session));
    assert_eq!(rows.len(), view.lines.len());
    let count = |((row, mark), line): ((&Row, Option<Freshness>), &Line)| {
        let before = mark.filter(|mark| {
            matches!(mark, Freshness::Stale(Cause::Refuted | Cause::Volatile))
                && row.source_id.is_some_and(|source| awaited.contains(&source))
        });
        before.or(Some(line.freshness))
    };
    rows.iter().zip(marks).zip(&view.lines).map(count).collect()
}

fn shown(index: &Index<impl Storage>, session: SessionNo) -> Vec<Row> {
    let rows = index.rows(session).unwrap();
    rows.into_iter().filter(|row| row.role != Role::Input).collect()
}

fn judge_session(index: &Index<Memory>, oracle: &Oracle, world: &World, no: u32, policy: &Policy) {
    let (session, rows) = (SessionNo(no), &oracle.sessions[&no].rows);
    let doubted = oracle.sessions[&no].doubted;
    let view = index.view(session, Listed::AllUpTo(1000), None).unwrap().expect("the session is held");
    let stored = index.rows(session).unwrap();
    let numbers: Vec<u32> = stored.iter().map(|row| row.no.0).collect();
    assert_eq!(numbers, rows.keys().copied().collect::<Vec<_>>(), "rows of session {no}");
    for (line, (row_no, held)) in view.lines.iter().zip(rows) {
        let critical = held.critical || doubted;
        assert_eq!((&line.id, line.role, line.critical), (&held.id, held.role, critical));
        let said = oracle.said(no, held, world);
        assert_eq!(line.freshness, said, "session {no}, row {row_no}: {held:?}");
        assert!(line.freshness != Freshness::Fresh || held.truth(world) == Freshness::Fresh, "a false fresh");
    }
    assert_eq!(view.lines.len(), rows.len());
    let suspects = rows.values().filter(|row| oracle.is_outstanding(row));
    assert_eq!(index.suspects(session) as usize, suspects.count(), "suspects of session {no}");
    let awaited: BTreeSet<_> = index.awaited(session).unwrap().into_iter().collect();
    let outstanding = rows.values().filter(|row| oracle.is_outstanding(row)).filter_map(|row| row.source_id);
    assert_eq!(awaited, outstanding.collect(), "awaited of session {no}");
    judge_counts(&view, rows.len());
    if index.suspects(session) == 0 && !doubted {
        judge_summary(&index.summary(session).unwrap(), &view);
    }
    judge_facts(&view, oracle, world, no);
    let short = index.view(session, Listed::Doubtful, None).unwrap().expect("the session is held");
    assert_eq!(short.counts, view.counts, "counts do not depend on what is listed");
    let listed =
        |view: &View| view.lines.iter().filter(|line| line.is_doubtful()).cloned().collect::<Vec<_>>();
    assert_eq!(listed(&short), listed(&view), "every doubtful row is listed");
    judge_decision(&view, policy);
    assert_eq!(decide(&short, policy), decide(&view, policy), "a decision does not depend on what is listed");
    let blind = index.view(session, Listed::Doubtful, Some(Doubt::WatcherDead)).unwrap();
    let blind = blind.expect("the session is held");
    assert_eq!(blind.counts.fresh, 0, "blind, yet fresh");
    assert!(blind.facts.iter().all(|fact| !fact.fresh), "blind, yet a fact is fresh");
}

fn judge_counts(view: &View, rows: usize) {
    let (mut fresh, mut stale, mut unknown) = (0, 0, 0);
    for line in &view.lines {
        *match line.freshness {
            Freshness::Fresh => &mut fresh,
            Freshness::Stale(_) => &mut stale,
            Freshness::Unknown(_) => &mut unknown,
        } += 1;
    }
    let counts = view.counts;
    assert_eq!(
        (counts.rows as usize, counts.fresh, counts.stale, counts.unknown),
        (rows, fresh, stale, unknown)
    );
}

fn judge_summary(summary: &Summary, view: &View) {
    let count = |which: &dyn Fn(&Line) -> bool| view.lines.iter().filter(|line| which(line)).count() as u32;
    let stale = count(&|line| matches!(line.freshness, Freshness::Stale(_)));
    let unknown = count(&|line| matches!(line.freshness, Freshness::Unknown(_)));
    let noted = count(&|line| line.freshness == Freshness::Fresh && line.now.is_some());
    let critical = count(&|line| line.critical && line.freshness != Freshness::Fresh);
    let held = (summary.rows, summary.stale, summary.unknown, summary.noted, summary.critical);
    assert_eq!(
        held,
        (view.lines.len() as u32, stale, unknown, noted, critical),
        "counts kept and counts made"
    );
}

fn judge_facts(view: &View, oracle: &Oracle, world: &World, no: u32) {
    let facts = &oracle.sessions[&no].facts;
    if view.facts.is_empty() {
        let doubtful = view.lines.iter().any(Line::is_doubtful) || view.head.scratchpad_bytes > 0;
        assert!(facts.is_empty() || !doubtful, "facts of session {no} are missing");
        return;
    }
    assert_eq!(view.facts.len(), facts.len(), "facts of session {no}");
    for fact in facts {
        let statement = &fact.statement;
        let line = view.facts.iter().find(|line| line.statement == *statement).expect("every fact is judged");
        let under = oracle.rows_under(no, fact, world);
        let fresh = |rows: &[&Held]| rows.iter().all(|row| oracle.said(no, row, world) == Freshness::Fresh);
        let same = |row: &&Held| under.iter().any(|held| held.place() == row.place() || held.id == row.id);
        let touched: Vec<&Held> = oracle.sessions[&no].rows.values().filter(same).collect();
        assert!(!line.fresh || fresh(&under), "session {no} carries on {fact:?}, resting on {under:?}");
        assert!(line.fresh || !fresh(&touched), "session {no} drops {fact:?} though all of it is fresh");
    }
}

fn judge_decision(view: &View, policy: &Policy) {
    let decision = decide(view, policy);
    assert_eq!(
        format!("{decision:?}"),
        format!("{:?}", decide(view, policy)),
        "the same view decides the same"
    );
    let Ok(decision) = decision else {
        assert!(view.lines.is_empty(), "an error without a cause");
        return;
    };
    let doubtful: Vec<&Line> = view.lines.iter().filter(|line| line.freshness != Freshness::Fresh).collect();
    let mut critical: Vec<&Line> = doubtful.iter().copied().filter(|line| line.critical).collect();
    critical.sort_by_key(|line| (rank(line), line.role == Role::Invariant, line.id.clone()));
    let (transition, code) = expected(view, critical.first().copied(), policy);
    assert_eq!((decision.transition, decision.reason.code), (transition, code));
    assert_eq!(decision.stale, doubtful.iter().map(|line| line.id.clone()).collect::<Vec<_>>());
    let world_changed = !critical.is_empty();
    let evidence = critical.iter().map(|line| line.id.clone()).collect::<Vec<_>>();
    assert_eq!(decision.reason.evidence, if world_changed { evidence } else { Vec::new() });
    let branches = if transition == Transition::Fork { view.head.goal.hypotheses.len() } else { 0 };
    assert_eq!(decision.branches.len(), branches);
    let labels: BTreeSet<PathBuf> = doubtful.iter().map(|line| label(line)).collect();
    judge_lists(&decision, view, &labels.into_iter().collect::<Vec<_>>());
}

fn judge_lists(decision: &Decision, view: &View, labels: &[PathBuf]) {
    let Some(summary) = &decision.summary else {
        assert_ne!(decision.transition, Transition::Fresh, "fresh without a summary");
        assert_eq!(decision.drop, labels);
        return;
    };
    assert_eq!(decision.transition, Transition::Fresh);
    assert!(decision.drop.is_empty());
    assert_eq!(summary.stale_dropped, labels);
    assert_eq!(summary.as_of, view.clock);
    assert_eq!(summary.decisions, view.head.decisions);
    assert_eq!(summary.open_questions, view.head.open_questions);
    let kept: Vec<_> = view.facts.iter().filter(|fact| fact.fresh).cloned().collect();
    assert_eq!(summary.verified_facts, kept);
    let place = |path: &PathBuf| {
        let lines =
            view.lines.iter().filter(|line| line.is_doubtful() && line.exists && label(line) == *path);
        lines.map(|line| (!line.critical, path.clone())).min().expect("only doubtful paths are reloaded")
    };
    let places: Vec<_> = summary.reload.iter().map(place).collect();
    assert!(places.is_sorted() && BTreeSet::from_iter(&places).len() == places.len(), "{places:?}");
}

fn expected(view: &View, first: Option<&Line>, policy: &Policy) -> (Transition, Code) {
    let goal = &view.head.goal;
    match first.map(|line| (line.freshness, line.role)) {
        Some((Freshness::Stale(Cause::Refuted), _)) => return (Transition::Fresh, Code::FactRefuted),
        Some((Freshness::Unknown(_), _)) => return (Transition::Fresh, Code::UnknownCritical),
        Some((_, Role::Invariant)) => return (Transition::Fresh, Code::WorldChanged),
        Some(_) => return (Transition::Fresh, Code::CriticalStale),
        None => {}
    }
    if policy.scratchpad_bytes_max != 0 && view.head.scratchpad_bytes > policy.scratchpad_bytes_max {
        return (Transition::Fresh, Code::ScratchpadOverBudget);
    }
    match (goal.branchable, goal.shares_mutable_state, goal.hypotheses.len()) {
        (true, false, 2..) => (Transition::Fork, Code::Branchable),
        (true, true, _) => (Transition::Resume, Code::ForkBlockedSharedState),
        _ => (Transition::Resume, Code::Valid),
    }
}

fn rank(line: &Line) -> u8 {
    match line.freshness {
        Freshness::Stale(Cause::Refuted) => 0,
        Freshness::Stale(_) => 1,
        _ => 2,
    }
}

fn label(line: &Line) -> PathBuf {
    match &line.source {
        Source::Volatile { what } => PathBuf::from(what),
        Source::GitHead { .. } => PathBuf::from(&line.id),
        other => other.path().expect("all others have a path").to_owned(),
    }
}
