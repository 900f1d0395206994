//! The storage's evil twin fails at its n-th operation: that error comes out of the step that met it, and a new index,
//! told the same again over an empty storage, says what is true.

use super::twin::Twin;
use super::world::{commit_id, digest};
use staled::index::found::{FileFound, Found, Stat};
use staled::index::freshness::{Cause, Freshness};
use staled::index::row::SessionNo;
use staled::index::storage::{Memory, Storage, StorageError};
use staled::index::view::Listed;
use staled::index::{Check, Depth, Index, KeyKind, RegisterError, Settled, SourceId};
use staled::session::SessionId;
use staled::session::context::{Belief, Fact, Seen, Update};
use staled::session::digest::Algorithm;
use staled::session::moment::Moment;
use staled::session::source::{HeadPolicy, Source};
use std::path::{Path, PathBuf};

const AT: Moment = Moment { micros: 7 };

fn file(path: &str) -> Source {
    Source::File { path: PathBuf::from(path) }
}

fn belief(id: &str, source: Source, seen: Seen) -> Belief {
    Belief { id: id.to_owned(), tool: None, critical: true, captured_at: None, source, seen, lf: None }
}

fn context() -> Update {
    let mut update = Update::of(SessionId::new("s").expect("a legal name"));
    update.root = Some(PathBuf::from("/w"));
    let seen = |version| Seen::Digest(digest(Algorithm::Blake3, version));
    update.results = vec![
        belief("kept", file("p0"), seen(0)),
        belief("other", file("p1"), Seen::Digest(digest(Algorithm::Sha256, 1))),
        belief("unsaid", file("p0"), Seen::Unsaid),
        belief("gone", file("p2"), seen(2)),
        belief("net", Source::Volatile { what: "network".to_owned() }, Seen::Unsaid),
    ];
    let head = Source::GitHead { path: PathBuf::from("."), policy: HeadPolicy::Strict };
    update.invariants = vec![belief("git_head", head, Seen::Commit(Some(commit_id(1))))];
    let [statement, evidence] = ["it holds", "seen"].map(str::to_owned);
    update.facts =
        vec![Fact { id: "f".to_owned(), statement, evidence, sources: vec!["kept".into(), "p3".into()] }];
    update
}

/// `p0`, `p1` and `p3` hold what was seen, `p2` is gone, HEAD is at commit 2.
fn look(check: &Check) -> Settled {
    let name = check.key.path.file_name().and_then(|name| name.to_str());
    let version = name.and_then(|name| name.strip_prefix('p')?.parse::<u32>().ok());
    let found = match (&check.key.kind, version) {
        (KeyKind::Head, _) => Found::Head { commit: Some(commit_id(2)), branch: None },
        (_, None | Some(2)) => Found::Missing,
        (_, Some(version)) => Found::File(FileFound {
            digest: digest(Algorithm::Blake3, version),
            also: check.wanted.iter().map(|&algorithm| digest(algorithm, version)).collect(),
            lf: None,
            stat: Stat { dev: 1, ino: 1, size: 1, mode: 1, mtime_ns: 1, ctime_ns: 1, mount: 1 },
            racy: false,
            canonical: check.key.path.clone(),
        }),
    };
    Settled { source: check.source, stamp: check.stamp, found: found.into() }
}

fn register<S: Storage>(index: &mut Index<S>, update: &Update) -> Result<Vec<Check>, StorageError> {
    match index.register(update, 100, AT) {
        Ok(registered) => Ok(registered.checks),
        Err(RegisterError::Storage(error)) => Err(error),
        Err(refusal) => panic!("{refusal}"),
    }
}

/// Operations that opening takes; an index that could not be opened is nobody's.
const OPENING: u32 = 3;

type Step<S> = fn(&mut Index<S>) -> Result<Vec<Check>, StorageError>;

/// Every kind of step once, each followed by its answers.
fn script<S: Storage>() -> Vec<Step<S>> {
    const S0: SessionNo = SessionNo(0);
    vec![
        |index| index.wake(),
        |index| register(index, &context()),
        |index| index.touch([(SourceId(0), Depth::Bytes), (SourceId(2), Depth::Names)]),
        |index| index.ask_again(SourceId(0)).map(|check| check.into_iter().collect()),
        |index| index.lose_sync("epoch-2"),
        |index| {
            let digest = digest(Algorithm::GitSha1, 1);
            Ok(index.acknowledge(S0, Path::new("p1"), digest, AT)?.unwrap_or_default())
        },
        |index| index.refute(S0, Path::new("kept"), AT).map(|_| Vec::new()),
        |index| index.give_up_awaiting(S0).map(|()| Vec::new()),
        |index| index.view(S0, Listed::AllUpTo(100), None).map(|_| Vec::new()),
        |index| index.view(S0, Listed::Doubtful, None).map(|_| Vec::new()),
        |index| index.awaited(S0).map(|_| Vec::new()),
        |index| index.undecided().map(|_| Vec::new()),
        |index| index.doubts().map(|_| Vec::new()),
        |index| register(index, &Update { replace: true, ..context() }),
        |index| {
            let session = SessionId::new("t").expect("a legal name");
            register(index, &Update { session, ..context() })
        },
        |index| index.drop_session(SessionNo(1)).map(|_| Vec::new()),
    ]
}

fn play<S: Storage>(
    index: &mut Index<S>,
    mut after: impl FnMut(&mut Index<S>, bool),
) -> Result<(), StorageError> {
    for step in script() {
        let checks = step(index);
        after(index, checks.is_err());
        let settled = index.settle(checks?.iter().map(look).collect(), AT);
        after(index, settled.is_err());
        settled?;
    }
    Ok(())
}

#[test]
fn a_storage_error_is_never_swallowed_and_the_next_life_tells_the_truth() {
    let mut operations = OPENING;
    loop {
        operations += 1;
        let mut index = Index::open(Twin::failing_at(operations), "epoch-1").unwrap();
        let played = play(&mut index, |index, said| {
            let failed = index.storage_mut().take_failure();
            assert_eq!(failed, said, "operation {operations} failed and nobody said so");
        });
        if played.is_ok() {
            break;
        }
        tell_again();
    }
    assert!(operations > 250, "the script has {operations} operations");
}

/// What the journal does after the index was lost.
fn tell_again() {
    let mut index = Index::open(Memory::default(), "epoch-3").unwrap();
    let mut checks = index.wake().unwrap();
    checks.extend(register(&mut index, &context()).unwrap());
    index.settle(checks.iter().map(look).collect(), AT).unwrap();
    let view = index.view(SessionNo(0), Listed::AllUpTo(100), None).unwrap().expect("it was registered");
    let said: Vec<(&str, Freshness)> =
        view.lines.iter().map(|line| (line.id.as_str(), line.freshness)).collect();
    let stale = Freshness::Stale;
    let fresh = ["kept", "other", "unsaid"].map(|id| (id, Freshness::Fresh));
    let stale = [
        ("gone", stale(Cause::Deleted)),
        ("net", stale(Cause::Volatile)),
        ("git_head", stale(Cause::BornStale)),
        ("p3", Freshness::Fresh),
    ];
    assert_eq!(said, [fresh.as_slice(), stale.as_slice()].concat());
    assert_eq!(index.suspects(SessionNo(0)), 0);
    assert!(view.facts.iter().all(|fact| fact.fresh));
}

/// A process that ends between two writes leaves half a step. The journal tells that step again; what comes of it is an
/// error or the truth, never a row that nobody looks at.
#[test]
fn half_a_step_is_never_fresh_by_silence() {
    for operations in OPENING + 1.. {
        let mut index = Index::open(Twin::failing_at(operations), "epoch-1").unwrap();
        if play(&mut index, |_, _| {}).is_ok() {
            break;
        }
        let mut index = Index::open(index.storage_mut().after_the_end(), "epoch-2").unwrap();
        let Ok(checks) = index.wake() else { continue };
        index.settle(checks.iter().map(look).collect(), AT).unwrap();
        for session in index.sessions().unwrap() {
            let Ok(Some(view)) = index.view(session, Listed::AllUpTo(100), None) else { continue };
            for line in view.lines.iter().filter(|line| !line.is_doubtful()) {
                let held = ["kept", "other", "unsaid", "p3"].contains(&line.id.as_str());
                assert!(held, "half of operation {operations} left {line:?}");
            }
            let counted =
                index.view(session, Listed::AllUpTo(0), None).unwrap().expect("it was just seen").counts;
            let fresh = view.lines.iter().filter(|line| !line.is_doubtful()).count();
            assert_eq!(counted.fresh as usize, fresh, "half of operation {operations} left wrong counts");
        }
    }
}
