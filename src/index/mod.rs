//! What we know: one state machine that turns "something happened there" into "this belief is stale".
//!
//! Fed by `&mut self` steps with everything explicit (the moment, the epoch), over a small storage trait. The rules:
//! a touched source is suspect until a look *stamped after the touch* is applied; an overtaken look changes nothing;
//! losing sync makes everything suspect. What is settled lives in the storage. What is suspect lives in memory, for
//! after a restart everything is suspect by definition.

pub mod clock;
mod codec;
mod command;
mod doubts;
pub mod facts;
mod forks;
pub mod found;
pub mod freshness;
pub mod kept;
pub mod pack;
mod amend;
pub mod moved;
mod register;
pub mod row;
pub mod scrub;
mod shelf;
mod settle;
pub mod storage;
mod tally;
mod telling;
pub mod tree;
pub mod view;
mod wake;

#[cfg(test)]
mod tests;

pub use codec::FORMAT;
pub use register::{Refutation, RegisterError, Registered};

use crate::session::SessionId;
use crate::session::context::Seen;
use crate::session::digest::Algorithm;
use crate::session::source::{Filter, LineRange};
use clock::Clock;
use found::{FileFound, Found};
use freshness::Freshness;
use moved::HeadLook;
use row::{RowNo, SessionNo};
use shelf::{Shelf, source_key};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use storage::{SourceState, Storage, StorageError, Table};
use tally::Tally;
use tree::{Grove, Listing, Names, Order, Root};

/// Number of a source in the index; never used again for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub u64);

/// What a source is, whoever rests on it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceKey {
    /// How it is looked at.
    pub kind: KeyKind,
    /// Absolute; `..` and symlinks are left to the look.
    pub path: PathBuf,
}

/// How a source is looked at.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyKind {
    /// What stands at a path.
    Path,
    /// The commit that HEAD resolves to.
    Head,
    /// These lines of the file at a path.
    Lines(LineRange),
    /// The schema of the database at a path.
    Schema,
    /// What is below a path: made of folders.
    Tree(Filter),
    /// The entries of one folder, at its canonical path; only trees rest on it.
    Folder,
}

/// Marks one touch of one source; later touches have greater stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(pub u64);

/// How much of a source's surroundings an event may have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Nothing yet: somebody opened it, and may write where no event says so.
    Opened,
    /// Only the bytes: the watches in force are still the right ones.
    Bytes,
    /// Names too: resolve, arm and look again.
    Names,
}

/// A stamped order to look at a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Which source.
    pub source: SourceId,
    /// The touch that this answers.
    pub stamp: Stamp,
    /// Where and how to look.
    pub key: SourceKey,
    /// What must be renewed first.
    pub depth: Depth,
    /// Algorithms wanted beside BLAKE3.
    pub wanted: Vec<Algorithm>,
    /// What readers saw, where the look must know it: it tells where the same lines stand now, and what lies between two
    /// commits.
    pub sought: Vec<Seen>,
    /// A reading that an equal stat may confirm: one from before a restart, or, where somebody only opened the file,
    /// the one in force.
    pub known: Option<FileFound>,
    /// Where what stood here was last found to have gone.
    pub moved: Option<PathBuf>,
    /// What a look at a folder must know.
    pub order: Option<Box<Order>>,
}

/// The answer to a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// Which source.
    pub source: SourceId,
    /// The stamp of the check.
    pub stamp: Stamp,
    /// What the look found.
    pub found: Looked,
}

/// What a look found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Looked {
    /// What stands at the source.
    Found(Found),
    /// HEAD, compared with what readers saw.
    Head(Box<HeadLook>),
    /// Where a tree is rooted; what it holds, its folders say.
    Root(Root),
    /// What is in a folder.
    Listing(Listing),
}

impl Looked {
    /// Whether it could not tell all that it should.
    #[must_use]
    pub fn is_unsure(&self) -> bool {
        match self {
            Self::Found(found) => matches!(found, Found::Unknown(_)),
            Self::Head(look) => matches!(look.found, Found::Unknown(_)),
            Self::Root(_) => false,
            Self::Listing(listing) => {
                listing.entries.iter().flat_map(|(_, entry)| entry).any(|entry| entry.doubt.is_some())
            }
        }
    }
}

impl From<Found> for Looked {
    fn from(found: Found) -> Self {
        Self::Found(found)
    }
}

/// What applying answers did.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Answers that a later touch had overtaken.
    pub overtaken: usize,
    /// Rows whose baseline became what the look found.
    pub adopted: Vec<(SessionNo, RowNo)>,
    /// Rows that changed between fresh, stale and unknown.
    pub changed: Vec<Change>,
}

/// One row that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Whose row.
    pub session: SessionNo,
    /// Its id.
    pub id: String,
    /// What it was.
    pub from: Freshness,
    /// What it is.
    pub to: Freshness,
}

#[derive(Debug, Clone, Copy)]
struct Pending {
    stamp: Stamp,
    depth: Depth,
}

/// The staleness index.
pub struct Index<S> {
    shelf: Shelf<S>,
    clock: Clock,
    stamp: u64,
    pending: HashMap<SourceId, Pending>,
    suspects: HashMap<SessionNo, u32>,
    grove: Grove,
    /// The look at HEAD that is being applied, under its source's own path.
    head_look: Option<(PathBuf, HeadLook)>,
    totals: Totals,
    tally: Tally,
    next: Next,
    /// Numbers of sources below this are taken on disk.
    reserved: u64,
    /// What [`Table::Names`] holds: few, and asked for by every request.
    names: HashMap<SessionId, SessionNo>,
    /// What [`Index::rested_on`] found, until a client tells something else.
    resting: HashMap<SessionNo, Arc<HashSet<SourceId>>>,
    /// Commands whose mark is not what their inputs' marks say, for the process ended between the two.
    half_judged: HashSet<(SessionNo, RowNo)>,
    /// Sessions whose heads say that they are in doubt: a checkout makes thousands of rows of one fresh.
    doubted: HashSet<SessionNo>,
    /// False until [`Index::wake`]: what the storage says of sources is then from before a restart.
    awake: bool,
}

/// How many numbers of sources are reserved at once.
const RESERVED: u64 = 256;

/// The numbers that the next new session and source get.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Next {
    session: u32,
    source: u64,
}

/// How much there must be. A store that lost keys without a word holds less. Folders of trees are not counted: one that
/// is missing is found again from its tree's root.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Totals {
    sessions: u64,
    rows: u64,
    sources: u64,
}

const TOTALS: &[u8] = b"totals";
const NEXT: &[u8] = b"next";

impl<S: Storage> Index<S> {
    /// An index over what the storage holds, in a new epoch. Nothing may be asked of it before [`Index::wake`].
    pub fn open(storage: S, epoch: &str) -> Result<Self, StorageError> {
        let shelf = Shelf::new(storage);
        let totals = shelf.get(Table::Meta, TOTALS)?.unwrap_or_default();
        let next: Next = shelf.get(Table::Meta, NEXT)?.unwrap_or_default();
        let mut names = HashMap::new();
        for (name, session) in shelf.list::<SessionNo>(Table::Names, &[])? {
            let name = std::str::from_utf8(&name).ok().and_then(SessionId::stored);
            names.extend(name.map(|name| (name, session)));
        }
        Ok(Self {
            shelf,
            names,
            totals,
            tally: Tally::default(),
            reserved: next.source,
            next,
            clock: Clock::start(epoch),
            stamp: 0,
            pending: HashMap::new(),
            suspects: HashMap::new(),
            grove: Grove::default(),
            resting: HashMap::new(),
            half_judged: HashSet::new(),
            doubted: HashSet::new(),
            head_look: None,
            awake: false,
        })
    }

    fn put_totals(&mut self) -> Result<(), StorageError> {
        self.put_next()?;
        self.shelf.put(Table::Meta, TOTALS, &self.totals)
    }

    fn put_next(&mut self) -> Result<(), StorageError> {
        let source = self.next.source.max(self.reserved);
        self.shelf.put(Table::Meta, NEXT, &Next { source, ..self.next })
    }

    /// The number of a new source. Numbers are reserved on disk by the dozen, so that a tree of many folders does not
    /// write the counter for each, and no number is ever used twice.
    fn new_source(&mut self) -> Result<SourceId, StorageError> {
        let number = self.next.source;
        self.next.source += 1;
        if self.next.source > self.reserved {
            self.reserved = self.next.source + RESERVED;
            self.put_next()?;
        }
        Ok(SourceId(number))
    }

    /// Where in the timeline of events the index stands.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The storage, for its owner's own bookkeeping.
    pub fn storage(&self) -> &S {
        &self.shelf.storage
    }

    /// The same, to be written to.
    pub fn storage_mut(&mut self) -> &mut S {
        &mut self.shelf.storage
    }

    /// The number of a session.
    #[must_use]
    pub fn session(&self, id: &SessionId) -> Option<SessionNo> {
        self.names.get(id).copied()
    }

    /// How many rows of a session rest on a source that is being verified.
    #[must_use]
    pub fn suspects(&self, session: SessionNo) -> u32 {
        self.suspects.get(&session).copied().unwrap_or(0)
    }

    /// How many sources are being verified, folders of trees among them.
    #[must_use]
    pub fn pending_len(&self) -> usize {
        self.pending.len() + self.grove.pending_len()
    }

    /// Whether a source is being verified.
    #[must_use]
    pub fn is_pending(&self, source: SourceId) -> bool {
        self.pending.contains_key(&source) || self.grove.waits(source)
    }

    /// Folders that no tree has any more, since the last time: nothing that happens in them matters.
    pub fn take_released(&mut self) -> Vec<SourceId> {
        self.grove.take_released()
    }

    /// Something happened at these sources: their readers are suspect until the returned checks are answered.
    /// Sources that nobody rests on any more are passed over.
    pub fn touch(
        &mut self,
        moved: impl IntoIterator<Item = (SourceId, Depth)>,
    ) -> Result<Vec<Check>, StorageError> {
        self.clock.tick += 1;
        let mut checks = Vec::new();
        for (source, depth) in moved {
            if let Some(state) = self.shelf.get::<SourceState>(Table::Sources, &source_key(source))? {
                checks.push(self.suspect(source, &state, depth)?);
                if self.grove.trees.contains_key(&source) {
                    self.stir_doubtful(source)?;
                }
            }
        }
        Ok(checks)
    }

    fn suspect(
        &mut self,
        source: SourceId,
        state: &SourceState,
        depth: Depth,
    ) -> Result<Check, StorageError> {
        self.stamp += 1;
        let stamp = Stamp(self.stamp);
        let depth = match self.pending.get(&source) {
            Some(earlier) => depth.max(earlier.depth),
            None => {
                if self.grove.unsettle(source) {
                    for (session, _) in &state.readers {
                        *self.suspects.entry(*session).or_insert(0) += 1;
                    }
                }
                depth
            }
        };
        self.pending.insert(source, Pending { stamp, depth });
        self.check(source, state, Pending { stamp, depth })
    }

    fn check(&self, source: SourceId, state: &SourceState, pending: Pending) -> Result<Check, StorageError> {
        let Pending { stamp, depth } = pending;
        let (key, wanted, sought) = (state.key.clone(), state.wanted.clone(), self.sought(state)?);
        let known = match &state.found {
            Some(Found::File(file)) if depth == Depth::Opened => {
                wanted.iter().all(|&algorithm| file.digest_in(algorithm).is_some()).then(|| file.clone())
            }
            _ => None,
        };
        let moved = match &state.found {
            Some(Found::Renamed { to, .. }) => Some(to.clone()),
            _ => None,
        };
        Ok(Check { source, stamp, key, depth, wanted, sought, known, moved, order: None })
    }

    /// What readers saw, each once.
    fn sought(&self, state: &SourceState) -> Result<Vec<Seen>, StorageError> {
        let mut sought = Vec::new();
        if !matches!(state.key.kind, KeyKind::Lines(_) | KeyKind::Head) {
            return Ok(sought);
        }
        for &(session, no) in &state.readers {
            let row = self.shelf.peek(session, no)?;
            let seen = row.and_then(|row| row.baseline.seen().cloned());
            sought.extend(seen.filter(|seen| !sought.contains(seen)));
        }
        Ok(sought)
    }

    /// Events were, or may have been, lost: a new epoch begins and everything is suspect.
    pub fn lose_sync(&mut self, epoch: &str) -> Result<Vec<Check>, StorageError> {
        self.clock = Clock::start(epoch);
        let sources = self.shelf.list::<SourceState>(Table::Sources, &[])?;
        let mut checks = Vec::new();
        for (key, state) in sources {
            let Some(source) = id_of(&key).filter(|_| state.key.kind != KeyKind::Folder) else { continue };
            checks.push(self.suspect(source, &state, Depth::Names)?);
        }
        for folder in self.grove.all_folders() {
            self.stir_folder(folder, Names::all(true))?;
        }
        Ok(checks)
    }

    /// Every session, in the order of their names.
    pub fn sessions(&self) -> Result<Vec<SessionNo>, StorageError> {
        Ok(self.shelf.list(Table::Names, &[])?.into_iter().map(|(_, session)| session).collect())
    }

    /// The names of all sessions, in no order.
    pub fn names(&self) -> impl Iterator<Item = &SessionId> {
        self.names.keys()
    }

    /// How many sessions clients have told. What observations of the memory rest on are sessions of our own.
    #[must_use]
    pub fn told_sessions(&self) -> usize {
        self.names.keys().filter(|name| !name.is_own()).count()
    }

    /// The check of a source that is being verified, to be asked again (sooner, say).
    pub fn ask_again(&self, source: SourceId) -> Result<Option<Check>, StorageError> {
        let Some(pending) = self.pending.get(&source) else { return Ok(None) };
        let Some(state) = self.shelf.get::<SourceState>(Table::Sources, &source_key(source))? else {
            return Ok(None);
        };
        self.check(source, &state, *pending).map(Some)
    }

    /// The sources that a session rests on; kept at hand, for every question may ask.
    pub fn rested_on(&mut self, session: SessionNo) -> Result<Arc<HashSet<SourceId>>, StorageError> {
        if let Some(resting) = self.resting.get(&session) {
            return Ok(Arc::clone(resting));
        }
        let rows = self.shelf.rows(session)?;
        let resting = Arc::new(rows.iter().filter_map(|row| row.source_id).collect::<HashSet<_>>());
        self.resting.insert(session, Arc::clone(&resting));
        Ok(resting)
    }

    /// The sources that a session is still waiting for.
    pub fn awaited(&self, session: SessionNo) -> Result<Vec<SourceId>, StorageError> {
        let rows = self.shelf.rows(session)?;
        let sources = rows.iter().filter_map(|row| row.source_id);
        Ok(sources.filter(|source| self.pending.contains_key(source)).collect())
    }

    fn source_state(&self, source: SourceId) -> Result<SourceState, StorageError> {
        self.shelf.must(Table::Sources, &source_key(source))
    }

    /// How many sources somebody rests on, folders of trees among them.
    #[must_use]
    pub fn sources_len(&self) -> usize {
        self.totals.sources as usize + self.grove.folders.len()
    }
}

fn id_of(key: &[u8]) -> Option<SourceId> {
    Some(SourceId(u64::from_be_bytes(key.try_into().ok()?)))
}
