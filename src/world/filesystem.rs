//! Filesystems: which of them report what happens, and how fine their clocks are.
//!
//! A list of those that are known to report, for the others are many: network, FUSE and pseudo filesystems change without
//! an event here, and one that nobody thought of must not be believed by silence.

use rustix::fs::StatFs;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// How far a filesystem can be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Reports everything, with a fine clock.
    Local,
    /// Reports everything; its times are coarse.
    Coarse,
    /// Reports what is done through it, and not what is done to the layers below.
    Overlay,
    /// Not known to report.
    Unwatchable,
}

/// By the number that statfs gives. Those that cannot be written are as good as any.
const KNOWN: [(u32, Kind, &str); 14] = [
    (0xef53, Kind::Local, "ext4"), // ext2 and ext3 too
    (0x5846_5342, Kind::Local, "xfs"),
    (0x9123_683e, Kind::Local, "btrfs"),
    (0x0102_1994, Kind::Local, "tmpfs"), // devtmpfs too
    (0xf2f5_2010, Kind::Local, "f2fs"),
    (0xca45_1a4e, Kind::Local, "bcachefs"),
    (0x2fc1_2fc1, Kind::Local, "zfs"),
    (0x7371_7368, Kind::Local, "squashfs"),
    (0xe0f5_e1e2, Kind::Local, "erofs"),
    (0x9660, Kind::Local, "iso9660"),
    (0x794c_7630, Kind::Overlay, "overlayfs"),
    (0x4d44, Kind::Coarse, "vfat"),
    (0x2011_bab0, Kind::Coarse, "exfat"),
    (0x7366_746e, Kind::Coarse, "ntfs3"),
];

/// Names of those that do not report, or not everything.
const SILENT: [(u32, &str); 7] = [
    (0x6969, "nfs"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "fuse"),
    (0x9fa0, "proc"),
    (0x6265_6572, "sysfs"),
];

/// The filesystem of an open file.
pub(super) fn of_file(file: impl AsFd) -> rustix::io::Result<Kind> {
    Ok(kind_of(&rustix::fs::fstatfs(file)?))
}

/// The filesystem at a path. One that is gone by now has sent an event, or its mount has moved.
pub(super) fn at(path: &Path) -> Kind {
    rustix::fs::statfs(path).map_or(Kind::Local, |found| kind_of(&found))
}

/// The filesystem at a path, with its name, for people. What cannot be looked at is an error, and no kind.
pub fn named_at(path: &Path) -> io::Result<(Kind, String)> {
    let found = rustix::fs::statfs(path)?;
    let magic = found.f_type as u32;
    let names = KNOWN.iter().map(|(known, _, name)| (*known, *name)).chain(SILENT);
    let name = names.into_iter().find(|(known, _)| *known == magic).map(|(_, name)| name.to_owned());
    Ok((kind_of(&found), name.unwrap_or_else(|| format!("filesystem {magic:#x}"))))
}

fn kind_of(found: &StatFs) -> Kind {
    kind_of_magic(found.f_type as u32)
}

fn kind_of_magic(magic: u32) -> Kind {
    KNOWN.iter().find(|(known, ..)| *known == magic).map_or(Kind::Unwatchable, |(_, kind, _)| *kind)
}

#[cfg(test)]
mod tests {
    use super::{Kind, kind_of_magic};

    #[test]
    fn a_filesystem_that_nobody_knows_is_not_believed() {
        for (magic, kind) in [
            (0xef53, Kind::Local),
            (0x4d44, Kind::Coarse),
            (0x794c_7630, Kind::Overlay),
            (0x6969, Kind::Unwatchable),      // NFS
            (0x0102_1997, Kind::Unwatchable), // 9p
            (0x6573_5546, Kind::Unwatchable), // FUSE
            (0x6462_6720, Kind::Unwatchable), // debugfs
            (0x1234_5678, Kind::Unwatchable), // whatever comes next
        ] {
            assert_eq!(kind_of_magic(magic), kind, "{magic:x}");
        }
    }
}
