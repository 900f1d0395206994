//! How each value of the index is packed. The order of fields and the bytes of variants are the format on disk;
//! whoever changes them raises [`FORMAT`], and older indexes are rebuilt.

use super::clock::Clock;
use super::found::{FileFound, Found, Inode, LinesFound, Stat, TreeFound};
use super::freshness::{Cause, Doubt, Freshness};
use super::moved::HeadMoved;
use super::pack::{Pack, pack_bytes, pack_enum, pack_struct, take, unpack_bytes};
use super::row::{Baseline, Changed, Detail, Mark, Role, Row, RowNo, SessionNo};
use super::storage::{SourceState, StoredFact, StoredHead, Summary};
use super::tree::{Entry, EntryKind, Past, Print, Rooted};
use super::{KeyKind, Next, SourceId, SourceKey, Totals};
use crate::session::SessionId;
use crate::session::context::{Goal, Seen};
use crate::session::digest::{Algorithm, CommitId, Digest};
use crate::session::moment::Moment;
use crate::session::source::{Filter, HeadPolicy, LineRange, Source};

/// Raised whenever the meaning of the bytes changes.
pub const FORMAT: u32 = 7;

pack_enum!(Algorithm { 0 => Blake3, 1 => Sha256, 2 => GitSha1, 3 => GitSha256 });
pack_enum!(HeadPolicy { 0 => Strict, 1 => Relevant });
pack_enum!(Role { 0 => Result, 1 => Invariant, 2 => Tracked, 3 => Input });
pack_enum!(KeyKind {
    0 => Path, 1 => Head, 2 => Lines(range), 3 => Schema, 4 => Tree(filter), 5 => Folder,
});
pack_struct!(LineRange { start_line, lines });
pack_struct!(Filter { include, exclude, contents, gitignore });
pack_enum!(Source {
    0 => File { path },
    1 => Absent { path },
    2 => GitHead { path, policy },
    3 => Lockfile { path },
    4 => Volatile { what },
    5 => Lines { path, range },
    6 => Tree { path, filter },
    7 => Command { command, cwd, inputs },
    8 => SqliteSchema { path },
});
pack_enum!(Seen { 0 => Digest(digest), 1 => Commit(commit), 2 => Absence, 3 => Unsaid });
pack_enum!(Baseline { 0 => Client(seen), 1 => Awaited, 2 => Registration(seen), 3 => Missed });
pack_enum!(Cause {
    0 => Content, 1 => Deleted, 2 => Appeared, 3 => KindChanged, 4 => HeadMoved, 5 => BornStale, 6 => Volatile,
    7 => Refuted, 8 => Names, 9 => Input, 10 => RangeMoved, 11 => Schema, 12 => Renamed,
});
pack_enum!(Doubt {
    0 => UnwatchableFs, 1 => Unreadable, 2 => WatchLimit, 3 => Unsettled, 4 => RepositoryMissing, 5 => WatcherDead,
    6 => LiveWriter, 7 => Gap,
});
pack_enum!(Freshness { 0 => Fresh, 1 => Stale(cause), 2 => Unknown(doubt) });
pack_enum!(Found {
    0 => File(file), 1 => Missing, 2 => Other { kind }, 3 => Head { commit, branch }, 4 => Unknown(doubt),
    5 => Lines(lines), 6 => Schema(digest), 7 => Tree(tree), 8 => Folder(inode), 9 => Renamed { to, file },
});
pack_struct!(Stat { dev, ino, size, mode, mtime_ns, ctime_ns, mount });
pack_struct!(Inode { dev, ino });
pack_struct!(FileFound { digest, also, lf, stat, racy, canonical });
pack_struct!(LinesFound { digest, elsewhere, sought, canonical });
pack_struct!(TreeFound { digest, members, version });
pack_struct!(SourceKey { kind, path });
pack_struct!(SourceState { key, found, readers, wanted, version, rooted });
pack_struct!(Rooted { folder, outer });
pack_enum!(EntryKind { 0 => File, 1 => Folder, 2 => Link, 3 => Other });
pack_struct!(Entry { kind, inode, stat, racy, linked, digest, doubt });
pack_struct!(Past { until, now });
pack_struct!(Row {
    no,
    role,
    id,
    tool,
    critical,
    captured_at,
    source,
    source_id,
    baseline,
    lf,
    ever_fresh,
    refuted,
    as_of,
    inputs,
    input_of,
});
pack_struct!(Mark { freshness, now, since, detail });
pack_struct!(Detail { changed, input, start_line, eol_only, moved });
pack_struct!(HeadMoved { branch, number, more, rows, ids });
pack_struct!(Changed { number, paths });
pack_struct!(Goal { statement, branchable, shares_mutable_state, hypotheses });
pack_struct!(StoredFact { id, statement, evidence, sources, rows });
pack_struct!(StoredHead {
    session,
    user,
    agent,
    root,
    captured_at,
    goal,
    facts,
    decisions,
    open_questions,
    scratchpad_bytes,
    doubted,
});
pack_struct!(Summary { rows, tracked, next_row, stale, unknown, noted, critical });
pack_struct!(Next { session, source });
pack_struct!(Totals { sessions, rows, sources });
pack_struct!(Clock { epoch, tick });

macro_rules! pack_number {
    ($($type:ty: $number:ty, $field:tt);+ $(;)?) => {
        $(impl Pack for $type {
            fn pack(&self, out: &mut Vec<u8>) {
                self.$field.pack(out);
            }

            fn unpack(input: &mut &[u8]) -> Option<Self> {
                Some(Self { $field: <$number>::unpack(input)? })
            }
        })+
    };
}

pack_number!(SourceId: u64, 0; SessionNo: u32, 0; RowNo: u32, 0; Moment: i64, micros);

impl Pack for Digest {
    fn pack(&self, out: &mut Vec<u8>) {
        self.algorithm().pack(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn unpack(input: &mut &[u8]) -> Option<Self> {
        let algorithm = Algorithm::unpack(input)?;
        Digest::new(algorithm, take(input, algorithm.bytes_len())?)
    }
}

impl Pack for CommitId {
    fn pack(&self, out: &mut Vec<u8>) {
        pack_bytes(self.as_bytes(), out);
    }

    fn unpack(input: &mut &[u8]) -> Option<Self> {
        CommitId::from_bytes(unpack_bytes(input)?)
    }
}

impl Pack for SessionId {
    fn pack(&self, out: &mut Vec<u8>) {
        pack_bytes(self.as_str().as_bytes(), out);
    }

    fn unpack(input: &mut &[u8]) -> Option<Self> {
        SessionId::stored(std::str::from_utf8(unpack_bytes(input)?).ok()?)
    }
}

impl Pack for Print {
    fn pack(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn unpack(input: &mut &[u8]) -> Option<Self> {
        Some(Self(take(input, 32)?.try_into().ok()?))
    }
}
