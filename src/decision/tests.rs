//! Decisions in single cases: the order of the rules, the sentences, what is dropped and what is carried on.

use super::plan::plan;
use super::policy::Policy;
use super::reason::{Code, listed, short};
use super::{Decision, Empty, Transition, decide, refuted};
use crate::index::clock::Clock;
use crate::index::freshness::{Cause, Doubt, Freshness};
use crate::index::row::{Detail, Role};
use crate::index::storage::StoredHead;
use crate::index::view::{Counts, Coverage, FactLine, Line, View};
use crate::session::SessionId;
use crate::session::context::Goal;
use crate::session::source::{HeadPolicy, Source};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

const WAS: &str = "blake3:3f2a9c01aaaa";
const NOW: &str = "blake3:91bc0000bbbb";

fn file(path: &str) -> Source {
    Source::File { path: path.into() }
}

fn line(id: &str, critical: bool, source: Source, freshness: Freshness) -> Line {
    let doubtful = freshness != Freshness::Fresh;
    Line {
        id: id.to_owned(),
        role: if matches!(source, Source::GitHead { .. }) { Role::Invariant } else { Role::Result },
        source,
        critical,
        by_registration: false,
        freshness,
        was: Some(WAS.to_owned()),
        now: doubtful.then(|| NOW.to_owned()),
        renamed_to: None,
        since: None,
        exists: doubtful && freshness != Freshness::Stale(Cause::Deleted),
        identity: None,
        detail: Detail::default(),
        coverage: Coverage::default(),
    }
}

fn stale(id: &str, critical: bool, cause: Cause) -> Line {
    line(id, critical, file(&format!("{id}.rs")), Freshness::Stale(cause))
}

fn unknown(id: &str, critical: bool) -> Line {
    line(id, critical, file(&format!("{id}.rs")), Freshness::Unknown(Doubt::Unsettled))
}

fn fresh(id: &str) -> Line {
    line(id, true, file(&format!("{id}.rs")), Freshness::Fresh)
}

fn git_head(cause: Cause) -> Line {
    let source = Source::GitHead { path: ".".into(), policy: HeadPolicy::Strict };
    line("git_head", true, source, Freshness::Stale(cause))
}

fn goal(branchable: bool, shares_mutable_state: bool, ways: usize) -> Goal {
    let hypotheses = (0..ways).map(|n| format!("way {n}")).collect();
    Goal { statement: "find out".to_owned(), branchable, shares_mutable_state, hypotheses }
}

fn view(lines: Vec<Line>, goal: Goal, scratchpad_bytes: u64) -> View {
    let mut counts = Counts::default();
    for line in &lines {
        counts.rows += 1;
        *match line.freshness {
            Freshness::Fresh => &mut counts.fresh,
            Freshness::Stale(_) => &mut counts.stale,
            Freshness::Unknown(_) => &mut counts.unknown,
        } += 1;
    }
    let head = StoredHead {
        session: SessionId::new("s").expect("a legal name"),
        user: String::new(),
        agent: String::new(),
        root: "/w".into(),
        captured_at: None,
        goal,
        facts: Vec::new(),
        decisions: vec!["decided".to_owned()],
        open_questions: vec!["open".to_owned()],
        scratchpad_bytes,
        doubted: false,
    };
    View { clock: Clock { epoch: "e".to_owned(), tick: 3 }, head, counts, lines, facts: Vec::new() }
}

fn decided(lines: Vec<Line>) -> Decision {
    decide(&view(lines, Goal::default(), 0), &Policy::default()).expect("there are rows")
}

#[test]
fn the_rules_come_in_their_order() {
    let budget = Policy { scratchpad_bytes_max: 10, ..Policy::default() };
    let off = Policy::default();
    let fork = goal(true, false, 2);
    let shared = goal(true, true, 2);
    let critical = || vec![fresh("a"), stale("b", true, Cause::Content)];
    let minor = || vec![fresh("a"), stale("b", false, Cause::Content)];
    for (lines, goal, scratchpad, policy, transition, code) in [
        (critical(), fork.clone(), 11, &budget, Transition::Fresh, Code::CriticalStale),
        (vec![unknown("a", true)], fork.clone(), 11, &budget, Transition::Fresh, Code::UnknownCritical),
        (minor(), fork.clone(), 11, &budget, Transition::Fresh, Code::ScratchpadOverBudget),
        (minor(), fork.clone(), 10, &budget, Transition::Fork, Code::Branchable),
        (minor(), fork.clone(), u64::MAX, &off, Transition::Fork, Code::Branchable),
        (minor(), shared.clone(), 0, &off, Transition::Resume, Code::ForkBlockedSharedState),
        (minor(), goal(true, false, 1), 0, &off, Transition::Resume, Code::Valid),
        (minor(), goal(false, false, 3), 0, &off, Transition::Resume, Code::Valid),
        (vec![unknown("a", false)], goal(false, true, 3), 0, &off, Transition::Resume, Code::Valid),
        (vec![git_head(Cause::HeadMoved)], shared, 0, &off, Transition::Fresh, Code::WorldChanged),
    ] {
        let view = view(lines, goal, scratchpad);
        let decision = decide(&view, policy).expect("there are rows");
        assert_eq!((decision.transition, decision.reason.code), (transition, code), "{view:?}");
        assert_eq!(decision.summary.is_some(), transition == Transition::Fresh);
        assert_eq!(decision.branches.len(), if transition == Transition::Fork { 2 } else { 0 });
        assert_eq!(Ok(decision), decide(&view, policy), "the same view decides the same");
    }
    assert_eq!(decide(&view(Vec::new(), fork, 11), &budget), Err(Empty));
}

#[test]
fn a_reason_says_what_happened_and_to_what() {
    let (was, now) = ("blake3:3f2a9c01…", "blake3:91bc0000…");
    let stale_row = |cause| vec![fresh("a"), stale("b", true, cause)];
    let head = |freshness| {
        let source = Source::GitHead { path: ".".into(), policy: HeadPolicy::Strict };
        vec![line("git_head", true, source, freshness)]
    };
    for (lines, text) in [
        (
            stale_row(Cause::Content),
            format!("b.rs changed since it was read ({was} → {now}); 1 of 2 is stale."),
        ),
        (
            stale_row(Cause::BornStale),
            format!("b.rs already differed when it was registered ({was} → {now}); 1 of 2 is stale."),
        ),
        (stale_row(Cause::Deleted), format!("b.rs is gone ({was}); 1 of 2 is stale.")),
        (stale_row(Cause::Appeared), "b.rs exists now; 1 of 2 is stale.".to_owned()),
        (stale_row(Cause::KindChanged), format!("b.rs is no longer a file ({now}); 1 of 2 is stale.")),
        (stale_row(Cause::Volatile), "b.rs cannot be verified; 1 of 2 is stale.".to_owned()),
        (stale_row(Cause::Refuted), "b.rs failed when it was used; 1 of 2 is stale.".to_owned()),
        (head(Freshness::Stale(Cause::HeadMoved)), format!("HEAD moved ({was} → {now}); 1 of 1 is stale.")),
        (
            head(Freshness::Unknown(Doubt::RepositoryMissing)),
            "HEAD cannot be verified (repository_missing); 0 of 1 are stale, 1 unknown.".to_owned(),
        ),
        (
            vec![unknown("a", true), stale("b", false, Cause::Content), stale("c", false, Cause::Content)],
            "a.rs cannot be verified (unsettled); 2 of 3 are stale, 1 unknown.".to_owned(),
        ),
        (vec![fresh("a")], "All 1 results and invariants are what the session saw.".to_owned()),
        (
            vec![fresh("a"), unknown("b", false)],
            "Nothing critical changed; 1 of 2 is stale and must be dropped.".to_owned(),
        ),
    ] {
        assert_eq!(decided(lines).reason.text, text);
    }
    assert_eq!(
        ["", "abc", "git:0123456789", "ééééééééé"].map(|text| short(Some(text))).join("|"),
        "|abc|git:01234567…|éééééééé…"
    );
    assert_eq!(short(None), "nothing");
    let ids = ["a", "b", "c"].map(str::to_owned);
    assert_eq!([0, 1, 2, 3].map(|n| listed(&ids[..n])), ["", "a", "a and b", "a, b and c"]);
}

#[test]
fn evidence_names_the_most_decisive_row_first() {
    let lines = vec![
        unknown("u", true),
        git_head(Cause::HeadMoved),
        stale("z", true, Cause::Content),
        stale("minor", false, Cause::Refuted),
        stale("b", true, Cause::Deleted),
    ];
    let decision = decided(lines.clone());
    assert_eq!(decision.reason.evidence, ["b", "z", "git_head", "u"]);
    assert_eq!(decision.stale, ["u", "git_head", "z", "minor", "b"]);
    let decision = decided([lines, vec![stale("r", true, Cause::Refuted)]].concat());
    assert_eq!((decision.reason.code, decision.reason.evidence[0].as_str()), (Code::FactRefuted, "r"));
}

#[test]
fn what_is_not_critical_is_dropped_by_label() {
    let volatile = Source::Volatile { what: "network".to_owned() };
    let lines = vec![
        stale("z", false, Cause::Content),
        line("n", false, volatile, Freshness::Stale(Cause::Volatile)),
        fresh("a"),
        line("z2", false, file("z.rs"), Freshness::Unknown(Doubt::Unreadable)),
        line("dot", false, file("./z.rs"), Freshness::Stale(Cause::Content)),
    ];
    let decision = decided(lines);
    assert_eq!(decision.transition, Transition::Resume);
    assert_eq!(decision.drop, ["./z.rs", "network", "z.rs"].map(PathBuf::from));
    assert_eq!(decision.reason.evidence, [""; 0]);
}

#[test]
fn a_summary_carries_what_is_fresh_and_names_the_rest_once() {
    let fact = |statement: &str, fresh| FactLine {
        statement: statement.to_owned(),
        evidence: String::new(),
        sources: vec!["a.rs".into()],
        digest: None,
        fresh,
        observation: None,
    };
    let absent = Source::Absent { path: "new.rs".into() };
    let lines = vec![
        stale("z", false, Cause::Content),
        stale("m", true, Cause::Content),
        line("m2", false, file("m.rs"), Freshness::Stale(Cause::Content)),
        stale("gone", true, Cause::Deleted),
        git_head(Cause::HeadMoved),
        line("looked", true, absent, Freshness::Stale(Cause::Appeared)),
        stale("b", false, Cause::Content),
        fresh("kept"),
    ];
    let mut view = view(lines, goal(true, false, 2), 0);
    view.facts = vec![fact("holds", true), fact("falls", false)];
    let decision = decide(&view, &Policy::default()).expect("there are rows");
    let summary = decision.summary.expect("it starts over");
    let dropped = ["b.rs", "git_head", "gone.rs", "m.rs", "new.rs", "z.rs"].map(PathBuf::from);
    assert_eq!(summary.stale_dropped, dropped);
    assert_eq!(summary.reload, ["m.rs", "new.rs", "b.rs", "z.rs"].map(PathBuf::from));
    assert_eq!(summary.verified_facts, [fact("holds", true)]);
    assert_eq!((summary.goal.as_str(), summary.as_of), ("find out", view.clock));
    assert_eq!((summary.decisions, summary.open_questions), (view.head.decisions, view.head.open_questions));
    assert!(decision.drop.is_empty() && decision.branches.is_empty());
}

#[test]
fn a_refutation_takes_over_the_reason_of_a_fresh_start_only() {
    let ids = ["r1".to_owned(), "r2".to_owned()];
    let decision = refuted(decided(vec![stale("r1", true, Cause::Content)]), &ids);
    assert_eq!(decision.reason.code, Code::FactRefuted);
    assert_eq!(decision.reason.text, "r1 and r2 failed when they were used.");
    assert_eq!(decision.reason.evidence, ids);
    let resumed = decided(vec![stale("r1", false, Cause::Refuted)]);
    assert_eq!(refuted(resumed.clone(), &ids), resumed);
}

#[test]
fn branches_have_safe_names_of_their_own() {
    for (session, hypotheses, slugs) in [
        ("s-01", vec!["Use a cache", "use a  CACHE!"], vec!["use-a-cache", "use-a-cache-2"]),
        ("s", vec!["a", "a", "a-2", "a"], vec!["a", "a-2", "a-2-2", "a-3"]),
        ("s", vec!["", "…", "日本"], vec!["branch", "branch-2", "branch-3"]),
        ("s", vec!["../../etc", "-x-", ".lock", "a@{b}~^:"], vec!["etc", "x", "lock", "a-b"]),
        ("../..", vec!["x"], vec!["x"]),
    ] {
        let mut head = view(Vec::new(), Goal::default(), 0).head;
        head.session = SessionId::new(session).expect("a legal name");
        head.goal.hypotheses = hypotheses.into_iter().map(str::to_owned).collect();
        let branches = plan(&head, &Policy { forks: "/forks".into(), ..Policy::default() });
        let named: Vec<&str> =
            branches.iter().filter_map(|branch| branch.branch.rsplit('/').next()).collect();
        assert_eq!(named, slugs);
        let paths: Vec<&Path> =
            branches.iter().flat_map(|branch| [&*branch.workspace, &*branch.scratchpad]).collect();
        assert_eq!(paths.iter().collect::<HashSet<_>>().len(), paths.len());
        for (n, path) in paths.iter().enumerate() {
            assert!(path.starts_with("/forks") && path.components().count() == 5, "{path:?}");
            assert!(paths.iter().enumerate().all(|(m, other)| m == n || !other.starts_with(path)));
        }
    }
    let mut head = view(Vec::new(), Goal::default(), 0).head;
    head.goal.hypotheses = vec!["x".repeat(300), format!("{}-y", "x".repeat(300))];
    let branches = plan(&head, &Policy::default());
    assert!(branches.iter().all(|branch| branch.branch.len() < 60), "{branches:?}");
    assert_ne!(branches[0], branches[1]);
}

#[test]
fn two_sessions_never_plan_the_same_paths() {
    let long = "a".repeat(60);
    let names = ["s-1", "s 1", "S-1", "s_1", &long, &format!("{long}b"), "é", "ü"];
    let sessions: std::collections::HashSet<String> =
        names.iter().map(|name| super::plan::session_slug(name)).collect();
    assert_eq!(sessions.len(), names.len(), "{sessions:?}");
    assert_eq!(super::plan::session_slug("s-1"), "s-1");
}
