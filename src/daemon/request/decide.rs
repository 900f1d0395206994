//! `decide`: barrier, view, decision, log, answer.

use super::memory::seen_with_memory;
use super::{Answer, Daemon, no_session};
use crate::daemon::handle::Need;
use crate::daemon::paranoid::cross_check;
use crate::daemon::{clock, forks};
use crate::decision::plan::{Branch, branches};
use crate::decision::policy::Policy;
use crate::decision::{self, Decision};
use crate::index::view::{Listed, View};
use crate::protocol::admission::Refused;
use crate::protocol::answer::to_json;
use crate::protocol::convert;
use crate::protocol::event::{self, ReceiptOut, Topic};
use crate::protocol::fork::Fork;
use crate::protocol::fork::ask::Create;
use crate::protocol::refusal::Refusal;
use crate::protocol::report::{Circumstances, report};
use crate::protocol::request::Decide;
use crate::session::SessionId;
use crate::store::decision_log::Receipt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rows above which only those that are not fresh are listed.
pub(super) const ROWS_MAX: u32 = 1_000;

pub(super) async fn decide(daemon: &Arc<Daemon>, ask: Decide, began: Instant) -> Answer {
    let listed = match ask.rows.as_deref() {
        None | Some("all") => Listed::AllUpTo(ROWS_MAX),
        Some("stale") => Listed::Doubtful,
        Some(other) => {
            return Err(Refusal::invalid_params(format!("rows is \"all\" or \"stale\", not {other:?}")));
        }
    };
    let session = convert::session(&ask.session)?;
    let goal = ask.goal.map(convert::goal).transpose()?;
    let deadline = daemon.config().deadline(ask.deadline_ms);
    if daemon.config().verify.paranoid {
        cross_check(daemon, &session, deadline).await?;
    }
    let mut view = if ask.memory == Some(true) {
        seen_with_memory(daemon, &session, listed, deadline).await?
    } else {
        seen(daemon, &session, listed, deadline).await?
    };
    if let Some(goal) = goal {
        view.head.goal = goal;
    }
    let policy = daemon.policy();
    let mut decision = decision::decide(&view, &policy).map_err(|_| no_session(&session))?;
    if ask.memory == Some(true) && !is_sound(&view, &decision, &policy) {
        // Only what the session itself told is owed an answer.
        tracing::warn!(
            session = session.as_str(),
            "facts of the memory are left out: the gate takes no report with them"
        );
        view.facts.retain(|fact| fact.observation.is_none());
        decision = decision::decide(&view, &policy).map_err(|_| no_session(&session))?;
    }
    let made = branch_out(daemon, &view, &mut decision, ask.provision == Some(true)).await?;
    // Only now is it known that there is a session to hold.
    let held_by = daemon.holders.other(session.as_str(), ask.holder.map(|holder| holder.pid));
    let said = say(daemon, &view, &decision, Beside { held_by, ..Beside::default() }, began).await;
    if said.is_err() {
        // Nobody was told of them, and nobody has worked in them.
        for fork in made {
            let id = fork.fork.clone();
            if let Err(refusal) = forks::end(daemon, fork, true).await {
                tracing::error!(why = %refusal, fork = id, "a fork that nobody was told of could not be ended");
            }
        }
    }
    said
}

/// Gives the branches of a fork the names that they have or will have, and makes them if that was asked for.
async fn branch_out(
    daemon: &Arc<Daemon>,
    view: &View,
    decision: &mut Decision,
    provision: bool,
) -> Result<Vec<Fork>, Refusal> {
    if decision.branches.is_empty() {
        return Ok(Vec::new());
    }
    let session = view.head.session.as_str();
    let hypotheses = &view.head.goal.hypotheses;
    if !provision {
        let taken = forks::taken(daemon).await?;
        decision.branches = branches(session, hypotheses, &daemon.forks.folder, taken);
        return Ok(Vec::new());
    }
    let ask =
        Create { session: session.to_owned(), hypotheses: Some(hypotheses.clone()), ..Create::default() };
    let made = forks::make(daemon, ask).await?;
    let branch = |fork: &Fork| Branch {
        branch: fork.branch.clone(),
        workspace: fork.workspace.0.clone(),
        scratchpad: fork.scratchpad.0.clone(),
    };
    decision.branches = made.iter().map(branch).collect();
    Ok(made)
}

/// Whether a report of it would pass the gate.
fn is_sound(view: &View, decision: &Decision, policy: &Policy) -> bool {
    let made = Circumstances {
        decision: "d",
        decided_at: clock::now(),
        supersedes: None,
        refuted: None,
        merge: None,
        held_by: None,
        policy,
        took_us: 0,
    };
    report(view, decision, &made).admit().is_ok()
}

/// The view of a session, with everything seen that happened before the request.
pub(super) async fn seen(
    daemon: &Daemon,
    session: &SessionId,
    listed: Listed,
    deadline: Duration,
) -> Result<View, Refusal> {
    let name = session.clone();
    let view = daemon.engine.when(
        Need::Settled(session.clone()),
        Instant::now() + deadline,
        move |engine, sight| engine.view(&name, listed, sight),
    );
    view.await??.ok_or_else(|| no_session(session))
}

/// What a report says that is neither view nor decision.
#[derive(Default)]
pub(super) struct Beside<'report> {
    /// The decision that it replaces.
    pub(super) supersedes: Option<&'report str>,
    /// What failed in use, where that is why it is made.
    pub(super) refuted: Option<&'report [String]>,
    /// The fork that it says may be merged or not.
    pub(super) merge: Option<&'report str>,
    /// Another live process that holds the session.
    pub(super) held_by: Option<u32>,
}

/// Gates a decision's report, logs it, and only then speaks it.
pub(super) async fn say(
    daemon: &Daemon,
    view: &View,
    decision: &Decision,
    beside: Beside<'_>,
    began: Instant,
) -> Answer {
    let made = Circumstances {
        decision: &clock::new_decision(),
        decided_at: clock::now(),
        supersedes: beside.supersedes,
        refuted: beside.refuted,
        merge: beside.merge,
        held_by: beside.held_by,
        policy: &daemon.policy(),
        took_us: u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX),
    };
    let report = report(view, decision, &made);
    if let Err(Refused(why)) = report.admit() {
        tracing::error!(
            why,
            session = view.head.session.as_str(),
            "the daemon's own report did not pass its gate"
        );
        return Err(Refusal::application(
            "log_failed",
            format!("the daemon's own report is not sound, so it is not logged: {why}"),
        ));
    }
    let report = to_json(&report);
    let forgettable = forgettable(view, decision, &made);
    let line = forgettable.as_deref().unwrap_or(&report);
    let receipt = daemon.log.append(line).await.map_err(|error| {
        tracing::error!(%error, "a decision could not be logged");
        Refusal::application("log_failed", error)
    })?;
    daemon.metrics.decided(decision.transition, decision.reason.code, began.elapsed());
    let session = &view.head.session;
    if daemon.subscribers.want(Topic::Decision, Some(session)) {
        let logged = ReceiptOut { seq: receipt.seq, hash: &receipt.hash };
        let line = event::decided(made.decision, session, decision, beside.supersedes, &view.clock, logged);
        daemon.subscribers.tell(Topic::Decision, Some(session), line);
    }
    Ok(with_receipt(report, &receipt))
}

/// The report as it is logged where it says what may be forgotten later: a line of the log stands for ever, so it names the
/// observations that it carried on, and what they say is in the answer alone.
fn forgettable(view: &View, decision: &Decision, made: &Circumstances<'_>) -> Option<String> {
    let mut named = decision.clone();
    let facts = named.summary.iter_mut().flat_map(|summary| &mut summary.verified_facts);
    let mut any = false;
    for (fact, observation) in
        facts.filter_map(|fact| fact.observation.map(|observation| (fact, observation)))
    {
        fact.statement = format!("(observation {observation} of the memory)");
        any = true;
    }
    any.then(|| to_json(&report(view, &named, made)))
}

fn with_receipt(mut report: String, receipt: &Receipt) -> String {
    report.pop();
    report.push_str(",\"receipt\":{\"seq\":");
    report.push_str(&receipt.seq.to_string());
    report.push_str(",\"hash\":\"");
    report.push_str(&receipt.hash);
    report.push_str("\"}}");
    report
}
