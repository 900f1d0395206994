//! Fresh, stale or unknown, and why: the judgement of one belief by one look.

use super::found::{FileFound, Found, LinesFound};
use super::row::{Baseline, Row};
use crate::session::context::Seen;
use crate::session::source::{HeadPolicy, Source};

/// What is known about a belief.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Freshness {
    /// Verified equal to what the agent saw.
    Fresh,
    /// Verified different, or gone.
    Stale(Cause),
    /// It cannot be told; for a critical source as good as stale.
    Unknown(Doubt),
}

impl Freshness {
    /// The word on the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Stale(_) => "stale",
            Self::Unknown(_) => "unknown",
        }
    }

    /// What the wire's word for a cause means; no cause of stale is one of unknown too.
    #[must_use]
    pub fn from_cause(word: &str) -> Option<Self> {
        let stale = Cause::ALL.into_iter().find(|cause| cause.word() == word).map(Self::Stale);
        stale.or_else(|| Doubt::ALL.into_iter().find(|doubt| doubt.word() == word).map(Self::Unknown))
    }

    /// Why it is not fresh, as the wire says it.
    #[must_use]
    pub fn cause(self) -> Option<&'static str> {
        match self {
            Self::Fresh => None,
            Self::Stale(cause) => Some(cause.word()),
            Self::Unknown(doubt) => Some(doubt.word()),
        }
    }
}

/// Why something is stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The bytes differ.
    Content,
    /// The file is gone.
    Deleted,
    /// The file is gone from here, and what the session saw stands where an event told that it went.
    Renamed,
    /// Something exists where nothing was.
    Appeared,
    /// A folder, FIFO or device stands where a file was.
    KindChanged,
    /// HEAD is at another commit.
    HeadMoved,
    /// Already different when it was registered.
    BornStale,
    /// Nothing that can be watched stands behind it.
    Volatile,
    /// A client said that it failed in use.
    Refuted,
    /// A name appeared or vanished.
    Names,
    /// An input of the command is stale.
    Input,
    /// The same lines stand elsewhere in the file.
    RangeMoved,
    /// The database has another schema.
    Schema,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 13] = [
        Self::Content,
        Self::Deleted,
        Self::Renamed,
        Self::Appeared,
        Self::KindChanged,
        Self::HeadMoved,
        Self::BornStale,
        Self::Volatile,
        Self::Refuted,
        Self::Names,
        Self::Input,
        Self::RangeMoved,
        Self::Schema,
    ];

    /// The word on the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::Deleted => "deleted",
            Self::Renamed => "renamed",
            Self::Appeared => "appeared",
            Self::KindChanged => "kind_changed",
            Self::HeadMoved => "head_moved",
            Self::BornStale => "born_stale",
            Self::Volatile => "volatile",
            Self::Refuted => "refuted",
            Self::Names => "names",
            Self::Input => "input",
            Self::RangeMoved => "range_moved",
            Self::Schema => "schema",
        }
    }
}

/// Why something cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Doubt {
    /// A network, FUSE or pseudo filesystem, which does not report changes truthfully.
    UnwatchableFs,
    /// The file, or a folder on the way, may not be read.
    Unreadable,
    /// The kernel's limit on inotify watches is reached.
    WatchLimit,
    /// It did not hold still, or was not verified before the deadline.
    Unsettled,
    /// There is no git repository.
    RepositoryMissing,
    /// The watcher no longer answers.
    WatcherDead,
    /// Somebody holds the file open or mapped for writing, and may change it without an event.
    LiveWriter,
    /// Records of the journal are lost that may have said otherwise.
    Gap,
}

impl Doubt {
    /// Every doubt.
    pub const ALL: [Self; 8] = [
        Self::UnwatchableFs,
        Self::Unreadable,
        Self::WatchLimit,
        Self::Unsettled,
        Self::RepositoryMissing,
        Self::WatcherDead,
        Self::LiveWriter,
        Self::Gap,
    ];

    /// The word on the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::UnwatchableFs => "unwatchable_fs",
            Self::Unreadable => "unreadable",
            Self::WatchLimit => "watch_limit",
            Self::Unsettled => "unsettled",
            Self::RepositoryMissing => "repository_missing",
            Self::WatcherDead => "watcher_dead",
            Self::LiveWriter => "live_writer",
            Self::Gap => "gap",
        }
    }

    /// The doubt of a word on the wire.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|doubt| doubt.word() == word)
    }

    /// What is the matter and what would help, as the rest of a sentence about several sources.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Self::UnwatchableFs => "lie on a filesystem that does not report changes (network, FUSE, pseudo)",
            Self::Unreadable => "may not be read, or a folder on their way may not be",
            Self::WatchLimit => "need more watches than the kernel allows: raise fs.inotify.max_user_watches",
            Self::Unsettled => "did not hold still while they were looked at",
            Self::RepositoryMissing => "name a git repository that is not there",
            Self::WatcherDead => "cannot be seen, for the watcher does not answer",
            Self::LiveWriter => "are held open or mapped for writing, and may change without a word",
            Self::Gap => {
                "are in doubt, for the journal was damaged: register the session again with replace: true"
            }
        }
    }
}

/// Judges one belief by what a look at its source found.
#[must_use]
pub fn judge(row: &Row, found: &Found) -> Freshness {
    if row.refuted {
        return Freshness::Stale(Cause::Refuted);
    }
    match (&row.source, found) {
        (Source::Volatile { .. }, _) => Freshness::Stale(Cause::Volatile),
        (_, Found::Unknown(doubt)) => Freshness::Unknown(*doubt),
        (Source::Absent { .. }, Found::Missing | Found::Renamed { .. }) => Freshness::Fresh,
        (Source::Absent { .. }, _) => Freshness::Stale(Cause::Appeared),
        (Source::GitHead { policy: HeadPolicy::Relevant, .. }, Found::Head { .. }) => Freshness::Fresh,
        (Source::GitHead { .. }, Found::Head { .. }) => differs(row, found, Cause::HeadMoved),
        (Source::GitHead { .. }, _) => Freshness::Unknown(Doubt::RepositoryMissing),
        (_, Found::Renamed { file, .. }) if saw(row, file) => Freshness::Stale(Cause::Renamed),
        (_, Found::Missing | Found::Renamed { .. }) => Freshness::Stale(Cause::Deleted),
        (Source::File { .. } | Source::Lockfile { .. }, Found::File(_)) => {
            differs(row, found, Cause::Content)
        }
        (Source::Lines { .. }, Found::Lines(lines)) => differs(row, found, moved_or_gone(row, lines)),
        (Source::SqliteSchema { .. }, Found::Schema(_)) => differs(row, found, Cause::Schema),
        (Source::Tree { .. }, Found::Tree(_)) => differs(row, found, Cause::Content),
        _ => Freshness::Stale(Cause::KindChanged),
    }
}

/// Whether the bytes of a file are those that the session saw elsewhere.
fn saw(row: &Row, file: &FileFound) -> bool {
    let digest =
        |seen: &Seen| matches!(seen, Seen::Digest(seen) if file.digest_in(seen.algorithm()) == Some(*seen));
    row.baseline.seen().is_some_and(digest)
}

fn moved_or_gone(row: &Row, lines: &LinesFound) -> Cause {
    if lines_start(row, lines).is_some() { Cause::RangeMoved } else { Cause::Content }
}

/// Where the lines that a row saw stand now, if they stand elsewhere.
#[must_use]
pub fn lines_start(row: &Row, lines: &LinesFound) -> Option<u64> {
    let Some(Seen::Digest(seen)) = row.baseline.seen() else { return None };
    lines.elsewhere.iter().find(|(digest, _)| digest == seen).map(|(_, start_line)| *start_line)
}

fn differs(row: &Row, found: &Found, cause: Cause) -> Freshness {
    if row.baseline.seen().is_some_and(|seen| same(seen, found)) {
        Freshness::Fresh
    } else if row.ever_fresh {
        Freshness::Stale(cause)
    } else {
        Freshness::Stale(Cause::BornStale)
    }
}

/// Whether what was found is what was seen. A digest in an algorithm that nobody computed equals nothing.
#[must_use]
pub fn same(seen: &Seen, found: &Found) -> bool {
    match (seen, found) {
        (Seen::Digest(seen), Found::File(file)) => file.digest_in(seen.algorithm()) == Some(*seen),
        (Seen::Digest(seen), Found::Lines(lines)) => lines.digest == Some(*seen),
        // The file ended before these lines.
        (Seen::Absence, Found::Lines(lines)) => lines.digest.is_none(),
        (Seen::Digest(seen), Found::Schema(digest)) => digest == seen,
        (Seen::Digest(seen), Found::Tree(tree)) => tree.digest == *seen,
        (Seen::Commit(seen), Found::Head { commit, .. }) => seen == commit,
        (Seen::Absence, Found::Missing | Found::Renamed { .. }) => true,
        _ => false,
    }
}

/// What the daemon's own look says in place of a client that did not: `None` when the look cannot stand in.
#[must_use]
pub fn adopt(source: &Source, found: &Found) -> Baseline {
    let seen = match (source, found) {
        (Source::File { .. } | Source::Lockfile { .. }, Found::File(file)) => Seen::Digest(file.digest),
        (Source::GitHead { .. }, Found::Head { commit, .. }) => Seen::Commit(*commit),
        (Source::Lines { .. }, Found::Lines(LinesFound { digest: Some(digest), .. })) => {
            Seen::Digest(*digest)
        }
        (Source::Lines { .. }, Found::Lines(_)) => Seen::Absence,
        (Source::SqliteSchema { .. }, Found::Schema(digest)) => Seen::Digest(*digest),
        (Source::Tree { .. }, Found::Tree(tree)) => Seen::Digest(tree.digest),
        _ => return Baseline::Missed,
    };
    Baseline::Registration(seen)
}
