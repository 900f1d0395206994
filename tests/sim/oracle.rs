//! The oracle: what every session saw, kept as plainly as possible, and compared with the world by looking at it.
//!
//! It knows which looks are outstanding (the latest stamp of each source) and nothing else of the index. A row whose
//! source is outstanding may only be unsettled; every other row must be exactly what a rescan would say.

use super::world::{Place, Thing, World, place_of};
use staled::index::freshness::{Cause, Doubt, Freshness};
use staled::index::row::{Baseline, Role, Row};
use staled::index::{Check, SourceId, Stamp};
use staled::session::context::{Belief, Fact, Seen};
use staled::session::source::{HeadPolicy, Source, absolute};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

pub(crate) const ROOT: &str = "/w";

/// What a session saw at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Saw {
    This(Thing),
    /// The next applied look says.
    NextLook,
    /// Nobody knows: equal to nothing.
    Unknown,
}

#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) role: Role,
    pub(crate) id: String,
    pub(crate) source: Source,
    pub(crate) critical: bool,
    pub(crate) saw: Saw,
    pub(crate) refuted: bool,
    pub(crate) once_equal: bool,
    pub(crate) source_id: Option<SourceId>,
}

impl Held {
    pub(crate) fn place(&self) -> Place {
        match &self.source {
            Source::Volatile { .. } => Place::Nowhere,
            Source::GitHead { .. } => Place::Head,
            other => other.path().map_or(Place::Nowhere, place_of),
        }
    }

    /// The path as the session spelled it, absolute; HEAD has none of its own.
    fn at(&self) -> Option<PathBuf> {
        let has_path = !matches!(self.source, Source::GitHead { .. });
        self.source.path().filter(|_| has_path).map(|path| absolute(Path::new(ROOT), path))
    }

    fn applied(&mut self, thing: Thing) {
        if self.saw == Saw::NextLook {
            let readable = matches!(
                (&self.source, thing),
                (Source::GitHead { .. }, Thing::Commit(_))
                    | (Source::File { .. } | Source::Lockfile { .. }, Thing::Bytes(_))
            );
            self.saw = if readable { Saw::This(thing) } else { Saw::Unknown };
        }
        self.once_equal |= !self.refuted && self.saw == Saw::This(thing);
    }

    /// What a rescan says.
    pub(crate) fn truth(&self, world: &World) -> Freshness {
        let differs = |cause| Freshness::Stale(if self.once_equal { cause } else { Cause::BornStale });
        let thing = world.at(self.place());
        match (&self.source, thing) {
            _ if self.refuted => Freshness::Stale(Cause::Refuted),
            (Source::Volatile { .. }, _) => Freshness::Stale(Cause::Volatile),
            (_, Thing::Unreadable) => Freshness::Unknown(Doubt::Unreadable),
            (Source::Absent { .. }, Thing::Nothing) => Freshness::Fresh,
            (Source::Absent { .. }, _) => Freshness::Stale(Cause::Appeared),
            (Source::GitHead { .. }, Thing::Nothing) => Freshness::Unknown(Doubt::RepositoryMissing),
            (Source::GitHead { policy: HeadPolicy::Relevant, .. }, _) => Freshness::Fresh,
            _ if self.saw == Saw::This(thing) => Freshness::Fresh,
            (_, Thing::Commit(_)) => differs(Cause::HeadMoved),
            (_, Thing::Bytes(_)) => differs(Cause::Content),
            (_, Thing::Folder) => Freshness::Stale(Cause::KindChanged),
            (_, Thing::Nothing) => Freshness::Stale(Cause::Deleted),
        }
    }
}

#[derive(Debug, Default, Clone)]
pub(crate) struct Session {
    pub(crate) rows: BTreeMap<u32, Held>,
    pub(crate) facts: Vec<Fact>,
    /// Until it starts over.
    pub(crate) doubted: bool,
}

/// Everything that all sessions saw, and the looks that are outstanding.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    pub(crate) sessions: BTreeMap<u32, Session>,
    outstanding: HashMap<SourceId, Stamp>,
}

impl Oracle {
    pub(crate) fn ordered(&mut self, check: &Check) {
        let earlier = self.outstanding.insert(check.source, check.stamp);
        assert!(earlier.is_none_or(|earlier| earlier < check.stamp), "stamps of one source rise");
    }

    pub(crate) fn released(&mut self, source: SourceId) {
        self.outstanding.remove(&source);
        assert!(
            !self.rows().any(|row| row.source_id == Some(source)),
            "{source:?} was released under a reader"
        );
    }

    pub(crate) fn restarted(&mut self) {
        self.outstanding.clear();
    }

    pub(crate) fn is_latest(&self, source: SourceId, stamp: Stamp) -> bool {
        self.outstanding.get(&source) == Some(&stamp)
    }

    pub(crate) fn outstanding(&self) -> Vec<SourceId> {
        let mut sources: Vec<SourceId> = self.outstanding.keys().copied().collect();
        sources.sort_unstable();
        sources
    }

    /// An answer was applied: every reader of that source now knows what stood there. How many took it as baseline?
    pub(crate) fn applied(&mut self, source: SourceId, thing: Thing) -> usize {
        self.outstanding.remove(&source);
        let mut adopted = 0;
        for row in self.sessions.values_mut().flat_map(|session| session.rows.values_mut()) {
            if row.source_id == Some(source) {
                adopted += usize::from(row.saw == Saw::NextLook);
                row.applied(thing);
            }
        }
        adopted
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &Held> {
        self.sessions.values().flat_map(|session| session.rows.values())
    }

    pub(crate) fn is_outstanding(&self, row: &Held) -> bool {
        row.source_id.is_some_and(|source| self.outstanding.contains_key(&source))
    }

    /// What a view must say of a row.
    pub(crate) fn said(&self, session: u32, row: &Held, world: &World) -> Freshness {
        let certain = matches!(row.source, Source::Volatile { .. }) || row.refuted;
        if self.sessions[&session].doubted && !certain {
            return Freshness::Unknown(Doubt::Gap);
        }
        if self.is_outstanding(row) && !certain {
            return Freshness::Unknown(Doubt::Unsettled);
        }
        row.truth(world)
    }

    /// Takes over the rows as they are numbered now. Rows told just now start over; rows gone are forgotten.
    pub(crate) fn renumber(&mut self, session: u32, rows: &[Row], told: &[(Role, Belief)], world: &World) {
        let now: HashSet<u32> = rows.iter().map(|row| row.no.0).collect();
        let pending = self.outstanding.clone();
        let held = &mut self.sessions.entry(session).or_default().rows;
        held.retain(|no, _| now.contains(no));
        for row in rows {
            let belief = told.iter().rev().find(|(role, belief)| *role == row.role && belief.id == row.id);
            let (critical, source, saw) = match (belief, held.contains_key(&row.no.0)) {
                (None, true) => continue,
                (Some((_, belief)), _) => (belief.critical, belief.source.clone(), saw(belief)),
                (None, false) => {
                    assert_eq!(row.role, Role::Tracked, "nobody told {:?}", row.id);
                    (false, Source::File { path: PathBuf::from(&row.id) }, Saw::NextLook)
                }
            };
            assert_eq!((row.critical, &row.source), (critical, &source));
            let (id, role, source_id) = (row.id.clone(), row.role, row.source_id);
            let mut new =
                Held { role, id, source, critical, saw, refuted: false, once_equal: false, source_id };
            // A later row of the same update may have made a settled source suspect again.
            let judged_before = row.ever_fresh || (saw == Saw::NextLook && row.baseline != Baseline::Awaited);
            if source_id.is_some_and(|source| judged_before || !pending.contains_key(&source)) {
                new.applied(world.at(new.place()));
            }
            held.insert(row.no.0, new);
        }
    }

    pub(crate) fn tell_facts(&mut self, session: u32, removed: &[String], told: &[Fact]) {
        let facts = &mut self.sessions.entry(session).or_default().facts;
        facts.retain(|held| !removed.contains(&held.id) && !told.iter().any(|fact| fact.id == held.id));
        let last = told
            .iter()
            .enumerate()
            .filter(|(n, fact)| !told[n + 1..].iter().any(|later| later.id == fact.id));
        facts.extend(last.map(|(_, fact)| fact.clone()));
    }

    /// The rows that a fact rests on: those with an id that it names, or else at a path that it names, and those that
    /// are known to lead to the same bytes.
    pub(crate) fn rows_under<'a>(&'a self, session: u32, fact: &Fact, world: &World) -> Vec<&'a Held> {
        let rows = || self.sessions[&session].rows.values();
        let mut under = Vec::new();
        for name in &fact.sources {
            let by_id = |row: &&Held| row.role != Role::Tracked && Path::new(&row.id) == name;
            let mut named: Vec<&Held> = rows().filter(by_id).collect();
            if named.is_empty() {
                let at = absolute(Path::new(ROOT), name);
                named.extend(rows().filter(|row| row.at().is_some_and(|path| path == at)));
            }
            assert!(!named.is_empty(), "a name of {fact:?} is covered by no row");
            let bytes =
                |row: &Held| matches!(world.at(row.place()), Thing::Bytes(_)) && !self.is_outstanding(row);
            let same = |row: &&Held| {
                named.iter().any(|held| {
                    let spelled_same = held.at().is_some() && held.at() == row.at();
                    spelled_same || (held.place() == row.place() && bytes(row))
                })
            };
            under.extend(rows().filter(same));
            under.extend(named);
        }
        under
    }
}

fn saw(belief: &Belief) -> Saw {
    match (&belief.source, &belief.seen) {
        (Source::Absent { .. }, _) => Saw::This(Thing::Nothing),
        (Source::Volatile { .. }, _) => Saw::Unknown,
        (_, Seen::Unsaid) => Saw::NextLook,
        (_, Seen::Digest(digest)) => {
            let version = digest.as_bytes()[..4].try_into().map(u32::from_be_bytes);
            Saw::This(Thing::Bytes(version.expect("digests are longer than four bytes")))
        }
        (_, Seen::Commit(commit)) => {
            Saw::This(Thing::Commit(commit.map(|commit| u32::from(commit.as_bytes()[0]))))
        }
        (_, Seen::Absence) => Saw::This(Thing::Nothing),
    }
}
