//! `fork.merge`: whether a fork may go home. The daemon judges, from the index, what the fork rests on and what its parent
//! rests on; the merge itself is made by the command line, in the user's process.

use super::super::decide::{Beside, ROWS_MAX, say};
use super::super::{Answer, Daemon, blind, no_session};
use super::access::broken;
use crate::daemon::blocking::blocking;
use crate::daemon::forks::ending::{uncommitted, work};
use crate::daemon::forks::{self, by_hand, isolation};
use crate::daemon::handle::{Need, Sight};
use crate::decision;
use crate::fork::access::leads_to;
use crate::index::freshness::{Cause, Freshness};
use crate::index::view::{Line, Listed, View};
use crate::protocol::fork::ask::Merge;
use crate::protocol::fork::record::Isolated;
use crate::protocol::fork::{Fork, answer::Moved};
use crate::protocol::path::WirePath;
use crate::protocol::refusal::Refusal;
use crate::session::source::{Source, absolute};
use crate::session::{SessionId, Side};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

pub(super) async fn merge(daemon: &Daemon, ask: Merge) -> Answer {
    let began = Instant::now();
    let fork = forks::find(daemon, &ask.fork).await?;
    daemon.forks.measured(fork.no).await;
    // As it stands in the workspace before it is judged: what is committed later is not what was judged.
    let work = work(daemon, &fork).await?;
    let root = fork.parent.root.0.clone();
    let dirty = by_hand(daemon, "a look at the parent's tree", move |hands| Ok(hands.parent_dirty(&root)));
    // A parent that is gone, or is no repository any more, is told by what rests on it.
    let dirty = dirty.await?.ok().map(|dirty| dirty.into_iter().map(WirePath).collect::<Vec<_>>());
    let (view, moved) = seen(daemon, &fork, ask.deadline_ms).await?;
    // After the view: whatever is stale in it that somebody else wrote has been found by now.
    isolation(daemon).await?.settled().await;
    let fork = forks::find(daemon, &fork.fork).await?;
    let view = without_own_work(view, &fork).await?;
    let name = SessionId::new(&fork.fork).expect("because slugs are short and plain");
    let decision = decision::merge(&view).map_err(|_| no_session(&name))?;
    let beside = Beside { merge: Some(&fork.fork), ..Beside::default() };
    let report = say(daemon, &view, &decision, beside, began).await?;
    let report: Value = serde_json::from_str(&report).expect("because the daemon made it");
    let open = uncommitted(&fork, &work, &moved);
    let may_merge = report["transition"] == "resume" && !broken(&fork);
    let mut answer = json!({
        "fork": fork.fork, "session": fork.session, "hypothesis": fork.hypothesis, "mode": fork.mode,
        "may_merge": may_merge, "transition": report["transition"], "reason": report["reason"],
        "decision": report["decision"], "typed_summary": report["typed_summary"],
        "commits": work.commits, "tip": work.tip, "merged": work.merged, "uncommitted": open,
        "isolation_broken": broken(&fork), "isolation": fork.isolation,
        "parent": fork.parent.tree, "parent_branch": fork.parent.branch,
        "parent_dirty": dirty, "parent_head": parent_head(&fork, &moved), "base": fork.base,
        "workspace": fork.workspace, "branch": fork.branch, "receipt": report["receipt"],
    });
    let moved = serde_json::to_value(&moved).expect("because it is made of strings and paths");
    if let (Value::Object(answer), Value::Object(moved)) = (&mut answer, moved) {
        answer.extend(moved);
    }
    Ok(answer.to_string())
}

/// The commit that the parent's HEAD is now.
fn parent_head(fork: &Fork, moved: &Moved) -> Option<String> {
    let head = moved.base_moved.as_ref().and_then(|moved| moved.head.as_ref());
    head.map_or_else(|| fork.parent.head.clone(), |head| head.now.clone())
}

/// What the fork rests on and what its parent rests on, in one view; rows of the parent go by `base/` and their ids.
async fn seen(daemon: &Daemon, fork: &Fork, deadline_ms: Option<u64>) -> Result<(View, Moved), Refusal> {
    let own = SessionId::new(&fork.fork).expect("because slugs are short and plain");
    let base = SessionId::of_fork(fork.baseline, Side::Base);
    let need = Need::AllSettled(vec![own.clone(), base.clone(), SessionId::of_fork(fork.no, Side::Work)]);
    let deadline = Instant::now() + daemon.config().deadline(deadline_ms);
    let fork = fork.clone();
    let seen = daemon.engine.when(need, deadline, move |engine, sight| {
        if sight == Sight::Blind {
            return Err(blind(engine, "deadline_ms"));
        }
        let listed = Listed::AllUpTo(ROWS_MAX);
        let mut view = engine.view(&own, listed, sight)?.ok_or_else(|| no_session(&own))?;
        let parent = engine.view(&base, listed, sight)?.ok_or_else(|| no_session(&own))?;
        let is_told = |line: &Line| line.id.starts_with("base/");
        let (lines, measures): (Vec<Line>, Vec<Line>) = parent.lines.into_iter().partition(is_told);
        let doubtful =
            |lines: &[Line], is: fn(&Line) -> bool| lines.iter().filter(|line| is(line)).count() as u32;
        let stale: fn(&Line) -> bool = |line| line.freshness.word() == "stale";
        let unknown: fn(&Line) -> bool = |line| line.freshness.word() == "unknown";
        let measured = engine.index.session(&base).map_or(Ok(0), |session| engine.measures(session))?;
        view.counts.rows += parent.counts.rows - measured;
        view.counts.stale += parent.counts.stale - doubtful(&measures, stale);
        view.counts.unknown += parent.counts.unknown - doubtful(&measures, unknown);
        view.counts.fresh = view.counts.rows - view.counts.stale - view.counts.unknown;
        view.lines.extend(lines);
        let moved = engine.moved(&fork, sight)?;
        Ok((view, moved))
    });
    seen.await?
}

/// The same view, in which what the fork itself did is not critical. Paths are followed, which may take long.
async fn without_own_work(mut view: View, fork: &Fork) -> Result<View, Refusal> {
    let fork = fork.clone();
    let told = blocking("a look at what a fork did", move || {
        let root = view.head.root.clone();
        let own = view.lines.iter_mut().filter(|line| is_own_work(&fork, &root, line));
        own.for_each(|line| line.critical = false);
        view
    });
    told.await.map_err(|undone| Refusal::application("fork_failed", undone))
}

/// Whether a row is stale for nothing but what the fork itself did: it stands in the workspace, where nobody else wrote. Its
/// agent must read it again, and it is no reason to keep the fork from home: it is what goes home.
fn is_own_work(fork: &Fork, root: &Path, line: &Line) -> bool {
    let by_work = match line.freshness {
        Freshness::Stale(cause) => !matches!(cause, Cause::BornStale | Cause::Refuted | Cause::Volatile),
        Freshness::Fresh | Freshness::Unknown(_) => false,
    };
    by_work && fork.isolation.state == Isolated::Intact && is_within(fork, root, &line.source)
}

fn is_within(fork: &Fork, root: &Path, source: &Source) -> bool {
    if let Source::Command { inputs, .. } = source {
        return inputs.iter().all(|input| is_within(fork, root, input));
    }
    let there = source.path().and_then(|path| leads_to(&absolute(root, path)));
    let workspace = leads_to(&fork.workspace.0);
    there.zip(workspace).is_some_and(|(there, workspace)| there.starts_with(workspace))
}
