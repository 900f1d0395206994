//! One look at one file: stat, digest, stat again, and whether somebody may still write. What did not hold still in
//! between was not seen, and what somebody holds open or mapped for writing cannot be told: such a writer stores without
//! a word. Not seen are writers of another user's file, unless we have `CAP_LEASE`, for the kernel does not tell us of
//! them; writers on a filesystem that has no leases; and those who open a member of a tree after the look, until they
//! close it.
//!
//! Opens without blocking and hashes regular files only, so that a FIFO or a device never holds a verifier up.

use super::digest;
use super::filesystem::{self, Kind};
use crate::index::found::{FileFound, Found, Inode, Stat};
use crate::index::freshness::Doubt;
use crate::session::digest::Algorithm;
use rustix::fs::{AtFlags, Mode, OFlags, Statx, StatxFlags};
use rustix::time::ClockId;
use staled_lease::{Writer, writer};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

/// How a look treats what it finds.
#[derive(Debug, Clone)]
pub struct LookOptions {
    /// Files above this size are hashed one at a time, in bytes.
    pub big_file_bytes: u64,
    /// A file time nearer to the look's start than this is racy on a local filesystem, in nanoseconds.
    pub racy_local_ns: i64,
    /// The same on any other filesystem, in nanoseconds.
    pub racy_other_ns: i64,
    /// What is said of a file whose filesystem does not report changes.
    pub unwatchable: Unwatchable,
}

/// What is said of a file whose filesystem does not report changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unwatchable {
    /// That it cannot be told.
    Unknown,
    /// What a look finds that is made for the question; never what an earlier one found.
    Verify,
}

impl Default for LookOptions {
    fn default() -> Self {
        Self {
            big_file_bytes: 256 * 1024 * 1024,
            racy_local_ns: 10_000_000,
            racy_other_ns: 2_000_000_000,
            unwatchable: Unwatchable::Unknown,
        }
    }
}

/// How often a file that changes under the look is read again before the look gives up.
const TRIES: usize = 3;

/// How long a look waits for a writer who has just written, each time. Whoever forks while he writes has a second holder
/// of the open file until the child's exec, a moment after he closed it himself.
const PAUSES_MS: [u64; 4] = [1, 2, 4, 8];
const LATELY_NS: u64 = 1_000_000_000;

static BIG_FILE: Mutex<()> = Mutex::new(());

/// Who must hear of our opens, to tell them from those of others.
pub trait Opens {
    /// A file is about to be opened. What is returned lives until the look is over.
    fn begin<'opens>(&'opens self, path: &'opens Path) -> Box<dyn Open + 'opens>;
}

/// One open of ours.
pub trait Open {
    /// Called between the open and the question for writers.
    fn divide(&mut self);
    /// Called when nobody was found to be writing after that.
    fn clear(&mut self);
}

/// Nobody hears of anything: this look is true of its moment and of no later one.
pub struct Unheard;

impl Opens for Unheard {
    fn begin<'opens>(&'opens self, _: &'opens Path) -> Box<dyn Open + 'opens> {
        Box::new(Self)
    }
}

impl Open for Unheard {
    fn divide(&mut self) {}
    fn clear(&mut self) {}
}

/// Looks at what stands at a canonical path. `known` is an earlier reading that an equal stat confirms.
#[must_use]
pub fn look(
    path: &Path,
    wanted: &[Algorithm],
    known: Option<&FileFound>,
    options: &LookOptions,
    opens: &dyn Opens,
) -> Found {
    look_beside(path, wanted, known, options, opens, &mut |_, _| Ok(()))
}

/// Reads something more from the open file of a given size, in the same look: what it reads held still if the look says so.
pub(super) type Beside<'look> = dyn FnMut(&File, u64) -> std::io::Result<()> + 'look;

/// The same, with something more read from the file.
pub(super) fn look_beside(
    path: &Path,
    wanted: &[Algorithm],
    known: Option<&FileFound>,
    options: &LookOptions,
    opens: &dyn Opens,
    beside: &mut Beside<'_>,
) -> Found {
    let mut pauses = PAUSES_MS.into_iter();
    let mut tries = 0;
    while tries < TRIES {
        let mut open = opens.begin(path);
        let looked = look_once(path, wanted, known, options, open.as_mut(), beside);
        drop(open);
        match looked {
            Ok(Some(Found::Unknown(Doubt::LiveWriter))) if written_lately(path) => match pauses.next() {
                Some(pause) => std::thread::sleep(Duration::from_millis(pause)),
                None => return Found::Unknown(Doubt::LiveWriter),
            },
            Ok(Some(found)) => return found,
            Ok(None) => tries += 1,
            Err(error) => return found_of(error, path),
        }
    }
    Found::Unknown(Doubt::Unsettled)
}

fn written_lately(path: &Path) -> bool {
    let stat = rustix::fs::statx(rustix::fs::CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS);
    // A time that was set says nothing; that it was set is a change too.
    let lately = |time_ns: i64| realtime_ns().abs_diff(time_ns) < LATELY_NS;
    stat.is_ok_and(|stat| lately(stat_of(&stat).mtime_ns) || lately(stat_of(&stat).ctime_ns))
}

fn look_once(
    path: &Path,
    wanted: &[Algorithm],
    known: Option<&FileFound>,
    options: &LookOptions,
    open: &mut dyn Open,
    beside: &mut Beside<'_>,
) -> rustix::io::Result<Option<Found>> {
    let begun_ns = realtime_ns();
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let filesystem = filesystem::of_file(&file)?;
    let silent = filesystem == Kind::Unwatchable;
    if silent && options.unwatchable == Unwatchable::Unknown {
        return Ok(Some(Found::Unknown(Doubt::UnwatchableFs)));
    }
    let before = statx(&file)?;
    if let Some(kind) = not_regular(&before) {
        return Ok(Some(Found::Other { kind: kind.to_owned() }));
    }
    let stat = stat_of(&before);
    // Not before the file is open, although its stat can be had without: whoever keeps it mapped, across a restart of
    // ours too, stores without changing the stat.
    if let Some(known) = known.filter(|known| !silent && known.stat == stat && known.canonical == path) {
        return Ok(Some(unless_written(&file, Found::File(known.clone()), open)));
    }
    if writer(&file) == Writer::Somebody {
        // Asked before hashing too, or a log that is never closed would be hashed at every retry for nothing.
        return Ok(Some(Found::Unknown(Doubt::LiveWriter)));
    }
    let _turn = (stat.size > options.big_file_bytes).then(|| BIG_FILE.lock());
    // Not read to its end: a file that grew has another stat afterwards. Where nothing is reported sizes need not be true
    // either (all of /proc is empty by its stat), and one byte more says so.
    let bytes_max = stat.size.saturating_add(u64::from(silent));
    let Ok(digests) = digest::stream((&file).take(bytes_max), stat.size, wanted) else {
        return Ok(Some(Found::Unknown(Doubt::Unreadable)));
    };
    if beside(&file, stat.size).is_err() {
        return Ok(Some(Found::Unknown(Doubt::Unreadable)));
    }
    if stat_of(&statx(&file)?) != stat || digests.bytes_read != stat.size {
        return Ok(None);
    }
    let slack = match filesystem {
        Kind::Local | Kind::Overlay => options.racy_local_ns,
        Kind::Coarse | Kind::Unwatchable => options.racy_other_ns,
    };
    let racy = stat.mtime_ns.max(stat.ctime_ns) >= begun_ns - slack;
    let (digest, also, lf) = (digests.blake3, digests.also, digests.lf);
    let found = Found::File(FileFound { digest, also, lf, stat, racy, canonical: path.to_owned() });
    Ok(Some(unless_written(&file, found, open)))
}

/// What was found, if it stands. The last thing that a look does: a writer who is gone by now has sent an event when he
/// closed, and one who comes later opens the file, which is heard.
fn unless_written(file: &File, found: Found, open: &mut dyn Open) -> Found {
    open.divide();
    if writer(file) == Writer::Somebody {
        return Found::Unknown(Doubt::LiveWriter);
    }
    open.clear();
    found
}

fn found_of(error: rustix::io::Errno, path: &Path) -> Found {
    use rustix::io::Errno;
    match error {
        Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG => Found::Missing,
        // A symlink has taken the place of what the route led to: an event is on its way.
        Errno::LOOP => Found::Unknown(Doubt::Unsettled),
        // Sockets, and devices without a driver, cannot be opened; they are still something.
        Errno::NXIO | Errno::NODEV => Found::Other { kind: kind_at(path).to_owned() },
        _ => Found::Unknown(Doubt::Unreadable),
    }
}

fn kind_at(path: &Path) -> &'static str {
    let stat = rustix::fs::statx(rustix::fs::CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::TYPE);
    stat.ok().as_ref().and_then(not_regular).unwrap_or("device")
}

pub(super) fn statx(file: &File) -> rustix::io::Result<Statx> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, wanted)
}

/// The stat of what has a name in an open folder, symlinks not followed.
pub(super) fn statx_at(folder: &File, name: &OsStr) -> rustix::io::Result<Statx> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    rustix::fs::statx(folder, name, AtFlags::SYMLINK_NOFOLLOW, wanted)
}

/// Whether what stands at a path has this stat; if it has another, whoever asks must read to know more.
pub(super) fn has_stat(path: &Path, held: &Stat) -> bool {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    let stat = rustix::fs::statx(rustix::fs::CWD, path, AtFlags::SYMLINK_NOFOLLOW, wanted);
    stat.is_ok_and(|stat| stat_of(&stat) == *held)
}

/// Which inode a stat is of.
pub(super) fn inode_of(stat: &Statx) -> Inode {
    Inode { dev: rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor), ino: stat.stx_ino }
}

pub(super) fn stat_of(stat: &Statx) -> Stat {
    let ns = |time: &rustix::fs::StatxTimestamp| {
        time.tv_sec.saturating_mul(1_000_000_000).saturating_add(i64::from(time.tv_nsec))
    };
    Stat {
        dev: rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor),
        ino: stat.stx_ino,
        size: stat.stx_size,
        mode: u32::from(stat.stx_mode),
        mtime_ns: ns(&stat.stx_mtime),
        ctime_ns: ns(&stat.stx_ctime),
        mount: stat.stx_mnt_id,
    }
}

fn not_regular(stat: &Statx) -> Option<&'static str> {
    use rustix::fs::FileType;
    match FileType::from_raw_mode(u32::from(stat.stx_mode)) {
        FileType::RegularFile => None,
        FileType::Directory => Some("folder"),
        FileType::Fifo => Some("fifo"),
        FileType::Socket => Some("socket"),
        FileType::Symlink => Some("symlink"),
        _ => Some("device"),
    }
}

/// The clock that file times are taken from.
fn realtime_ns() -> i64 {
    let now = rustix::time::clock_gettime(ClockId::RealtimeCoarse);
    now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec)
}
