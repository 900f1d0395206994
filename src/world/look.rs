//! One look at one file: stat, digest, stat again. What did not hold still in between was not seen.
//!
//! Opens without blocking and hashes regular files only, so that a FIFO or a device never holds a verifier up.

use super::digest;
use crate::index::found::{FileFound, Found, Inode, Stat};
use crate::index::freshness::Doubt;
use crate::session::digest::Algorithm;
use rustix::fs::{AtFlags, Mode, OFlags, Statx, StatxFlags};
use rustix::time::ClockId;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Mutex;

/// How a look treats what it finds.
#[derive(Debug, Clone)]
pub struct LookOptions {
    /// Files above this size are hashed one at a time, in bytes.
    pub big_file_bytes: u64,
    /// A file time nearer to the look's start than this is racy on a local filesystem, in nanoseconds.
    pub racy_local_ns: i64,
    /// The same on any other filesystem, in nanoseconds.
    pub racy_other_ns: i64,
}

impl Default for LookOptions {
    fn default() -> Self {
        Self { big_file_bytes: 256 * 1024 * 1024, racy_local_ns: 10_000_000, racy_other_ns: 2_000_000_000 }
    }
}

/// How often a file that changes under the look is read again before the look gives up.
const TRIES: usize = 3;

static BIG_FILE: Mutex<()> = Mutex::new(());

/// Looks at what stands at a canonical path. `known` is an earlier reading that an equal stat confirms.
#[must_use]
pub fn look(path: &Path, wanted: &[Algorithm], known: Option<&FileFound>, options: &LookOptions) -> Found {
    for _ in 0..TRIES {
        match look_once(path, wanted, known, options) {
            Ok(Some(found)) => return found,
            Ok(None) => {}
            Err(error) => return found_of(error, path),
        }
    }
    Found::Unknown(Doubt::Unsettled)
}

fn look_once(
    path: &Path,
    wanted: &[Algorithm],
    known: Option<&FileFound>,
    options: &LookOptions,
) -> rustix::io::Result<Option<Found>> {
    // The mount is part of a stat, so the filesystem is still one that can be watched. Opening the file would tell no
    // more, and would be heard by everybody who watches it, ourselves first.
    if let Some(known) = known.filter(|known| known.canonical == path && has_stat(path, &known.stat)) {
        return Ok(Some(Found::File(known.clone())));
    }
    let begun_ns = realtime_ns();
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let kind = fs_kind(&file)?;
    if kind == FsKind::Unwatchable {
        return Ok(Some(Found::Unknown(Doubt::UnwatchableFs)));
    }
    let before = statx(&file)?;
    if let Some(kind) = not_regular(&before) {
        return Ok(Some(Found::Other { kind: kind.to_owned() }));
    }
    let stat = stat_of(&before);
    let _turn = (stat.size > options.big_file_bytes).then(|| BIG_FILE.lock());
    // Not read to its end: a file that grew has another stat afterwards.
    let Ok(digests) = digest::stream((&file).take(stat.size), stat.size, wanted) else {
        return Ok(Some(Found::Unknown(Doubt::Unreadable)));
    };
    if stat_of(&statx(&file)?) != stat || digests.bytes_read != stat.size {
        return Ok(None);
    }
    let slack = if kind == FsKind::Local { options.racy_local_ns } else { options.racy_other_ns };
    let racy = stat.mtime_ns.max(stat.ctime_ns) >= begun_ns - slack;
    let (digest, also) = (digests.blake3, digests.also);
    Ok(Some(Found::File(FileFound { digest, also, stat, racy, canonical: path.to_owned() })))
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FsKind {
    Local,
    Other,
    Unwatchable,
}

/// Network, FUSE and pseudo filesystems: changes made elsewhere send no event here.
const UNWATCHABLE: [u32; 15] = [
    0x6969,      // NFS
    0x517b,      // SMB
    0xff53_4d42, // CIFS
    0xfe53_4d42, // SMB2
    0x5346_414f, // AFS
    0x6b41_4653, // kAFS
    0x7375_7245, // CODA
    0x00c3_6400, // CEPH
    0x6573_5546, // FUSE
    0x0102_1997, // 9P
    0x786f_4256, // VirtualBox shared folders
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
];

const LOCAL: [u32; 5] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683e, // btrfs
    0x0102_1994, // tmpfs
    0x794c_7630, // overlayfs
];

fn fs_kind(file: impl AsFd) -> rustix::io::Result<FsKind> {
    Ok(kind_of(rustix::fs::fstatfs(file)?.f_type as u32))
}

/// Whether changes below a folder can go unreported because of its filesystem.
#[must_use]
pub fn is_unwatchable(folder: &Path) -> bool {
    rustix::fs::statfs(folder).is_ok_and(|fs| kind_of(fs.f_type as u32) == FsKind::Unwatchable)
}

fn kind_of(magic: u32) -> FsKind {
    if UNWATCHABLE.contains(&magic) {
        FsKind::Unwatchable
    } else if LOCAL.contains(&magic) {
        FsKind::Local
    } else {
        FsKind::Other
    }
}
