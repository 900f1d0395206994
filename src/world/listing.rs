//! One look at one folder of a tree: its names, and what stands under those that somebody counts.
//!
//! The folder is armed before it is opened; a file with other names, or mounted here from elsewhere, before its bytes are
//! read. A stat may confirm what is known of a file unless an event named it; whatever does not hold still is in doubt.

use super::digest;
use super::filesystem::{self, Kind};
use super::look::{self, LookOptions};
use super::watch::Unarmed;
use crate::index::found::{Found, Inode};
use crate::index::freshness::Doubt;
use crate::index::tree::{Entry, EntryKind, Listing, Order, Views};
use rustix::fs::{Dir, FileType, Mode, OFlags, Statx};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Larger rule files leave nothing out, in bytes.
const RULES_BYTES_MAX: u64 = 1024 * 1024;

/// Watches what must be watched before it is looked at.
pub(super) trait Armed {
    /// Watches the folder. Files in it stay watched as they are, whether they are still there or not.
    fn arm_folder(&self) -> Result<(), Unarmed>;
    /// Watches those files of the folder that have several names; `looked_at` are the names that could be among them, or
    /// none when that is all.
    fn arm_linked(&self, linked: &[PathBuf], looked_at: Option<&BTreeSet<OsString>>) -> Result<(), Unarmed>;
    /// The folder that is watched, where that can be told.
    fn inode(&self) -> Option<Inode>;
}

/// Looks at a folder.
pub(super) fn list(
    folder: &Path,
    order: &Order,
    options: &LookOptions,
    armed: &dyn Armed,
) -> Result<Result<Listing, Found>, Unarmed> {
    armed.arm_folder()?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let opened = match rustix::fs::open(folder, flags, Mode::empty()) {
        Ok(opened) => File::from(opened),
        Err(error) => return Ok(Err(instead(error))),
    };
    if filesystem::at(folder) == Kind::Unwatchable {
        return Ok(Err(Found::Unknown(Doubt::UnwatchableFs)));
    }
    let Ok(stat) = look::statx(&opened) else { return Ok(Err(Found::Unknown(Doubt::Unreadable))) };
    let inode = look::inode_of(&stat);
    if armed.inode().is_some_and(|held| held != inode) {
        return Err(Unarmed::Moved);
    }
    let listing = Looking { folder, order, options, dir: &opened, mount: stat.stx_mnt_id };
    let mut names = if order.names.all {
        match listing.names() {
            Ok(names) => names,
            Err(_) => return Ok(Err(Found::Unknown(Doubt::Unreadable))),
        }
    } else {
        order.names.these.clone()
    };
    let rules = order.names.all || names.contains(OsStr::new(".gitignore"));
    names.retain(|name| order.views.care_for(name));
    let linked: Vec<PathBuf> =
        names.iter().filter(|name| listing.is_linked(name)).map(|name| folder.join(name)).collect();
    armed.arm_linked(&linked, (!order.names.all).then_some(&order.names.these))?;
    let gitignore = rules.then(|| read_rules(&folder.join(".gitignore")));
    let entries = names.into_iter().map(|name| (listing.entry(&name), name));
    let entries = entries.map(|(entry, name)| (name, entry)).collect();
    Ok(Ok(Listing { inode, entries, known: order.known.clone(), whole: order.names.all, gitignore }))
}

/// What stands where the folder was.
fn instead(error: Errno) -> Found {
    match error {
        Errno::NOENT => Found::Missing,
        Errno::NOTDIR | Errno::LOOP => Found::Other { kind: "file".to_owned() },
        _ => Found::Unknown(Doubt::Unreadable),
    }
}

struct Looking<'look> {
    folder: &'look Path,
    order: &'look Order,
    options: &'look LookOptions,
    dir: &'look File,
    /// The mount that the folder is on.
    mount: u64,
}

impl Looking<'_> {
    fn names(&self) -> rustix::io::Result<BTreeSet<OsString>> {
        let mut names = BTreeSet::new();
        for entry in Dir::read_from(self.dir)? {
            let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
            if name != "." && name != ".." && name != ".git" {
                names.insert(name);
            }
        }
        Ok(names)
    }

    fn stat(&self, name: &OsStr) -> rustix::io::Result<Statx> {
        look::statx_at(self.dir, name)
    }

    /// Whether a file may be written without its folder hearing of it: through another name, or because it is mounted here
    /// from elsewhere, and then even under its own name.
    fn has_other_names(&self, stat: &Statx) -> bool {
        let regular = FileType::from_raw_mode(u32::from(stat.stx_mode)) == FileType::RegularFile;
        regular && (stat.stx_nlink > 1 || stat.stx_mnt_id != self.mount)
    }

    fn is_linked(&self, name: &OsStr) -> bool {
        self.stat(name).is_ok_and(|stat| self.has_other_names(&stat))
    }

    /// What stands under a name; `None` when nothing does.
    fn entry(&self, name: &OsStr) -> Option<Entry> {
        let stat = match self.stat(name) {
            Ok(stat) => stat,
            Err(Errno::NOENT | Errno::NOTDIR) => return None,
            Err(_) => return Some(doubtful(Inode { dev: 0, ino: 0 }, Doubt::Unreadable)),
        };
        let inode = look::inode_of(&stat);
        let plain =
            |kind| Entry { kind, inode, stat: None, racy: false, linked: false, digest: None, doubt: None };
        match FileType::from_raw_mode(u32::from(stat.stx_mode)) {
            FileType::RegularFile => Some(self.file(name, &stat)),
            FileType::Directory => Some(plain(EntryKind::Folder)),
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(self.dir, name, Vec::new());
                Some(link(plain(EntryKind::Link), target.as_ref().map(std::ffi::CString::as_bytes)))
            }
            _ => Some(plain(EntryKind::Other)),
        }
    }

    fn file(&self, name: &OsStr, stat: &Statx) -> Entry {
        let (inode, linked) = (look::inode_of(stat), self.has_other_names(stat));
        let bare = Entry {
            kind: EntryKind::File,
            inode,
            stat: None,
            racy: false,
            linked,
            digest: None,
            doubt: None,
        };
        if !self.order.views.want_bytes(name) {
            return bare;
        }
        let names = &self.order.names;
        if let Some(known) = self.order.known.get(name)
            && !names.bytes
            && !names.these.contains(name)
            && !known.racy
            && known.digest.is_some()
            && known.stat == Some(look::stat_of(stat))
        {
            return Entry { linked, ..known.clone() };
        }
        match look::look(&self.folder.join(name), &[], None, self.options, &look::Unheard) {
            Found::File(file) => Entry {
                inode: Inode { dev: file.stat.dev, ino: file.stat.ino },
                stat: Some(file.stat),
                racy: file.racy,
                digest: Some(file.digest),
                ..bare
            },
            // Whoever of our uid could not read it either knows nothing of its bytes.
            Found::Unknown(Doubt::Unreadable) => bare,
            Found::Unknown(doubt) => doubtful(inode, doubt),
            // It was a file a moment ago: an event is on its way, or its path is too long to be followed.
            _ => doubtful(inode, Doubt::Unsettled),
        }
    }

    fn is_as_held(&self, name: &OsStr, held: &Entry, bytes: bool) -> bool {
        // What could not be told then need not be told now.
        if held.doubt.is_some() {
            return true;
        }
        let Ok(stat) = self.stat(name) else { return false };
        let path = self.folder.join(name);
        let read = || match look::look(&path, &[], None, self.options, &look::Unheard) {
            Found::File(file) => held.digest == Some(file.digest),
            Found::Unknown(_) => true,
            _ => false,
        };
        match (held.kind, &held.stat) {
            (EntryKind::File, Some(known)) => (!bytes && *known == look::stat_of(&stat)) || read(),
            (EntryKind::Link, _) => self.entry(name).is_some_and(|now| now.digest == held.digest),
            // Which file has the name does not matter to those who count names only.
            (EntryKind::File, None) => {
                FileType::from_raw_mode(u32::from(stat.stx_mode)) == FileType::RegularFile
            }
            _ => look::inode_of(&stat) == held.inode,
        }
    }
}

/// A link that was there a moment ago and cannot be read now: something else may have its name by now.
fn link(plain: Entry, target: Result<&[u8], &Errno>) -> Entry {
    match target {
        Ok(target) => Entry { digest: Some(digest::blake3(target)), ..plain },
        Err(_) => doubtful(plain.inode, Doubt::Unsettled),
    }
}

fn doubtful(inode: Inode, doubt: Doubt) -> Entry {
    let kind = EntryKind::File;
    Entry { kind, inode, stat: None, racy: false, linked: false, digest: None, doubt: Some(doubt) }
}

/// The text of a rule file; empty when there is none that git would read.
pub(super) fn read_rules(path: &Path) -> String {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let Ok(file) = rustix::fs::open(path, flags, Mode::empty()).map(File::from) else { return String::new() };
    let small = |found: &std::fs::Metadata| found.is_file() && found.len() <= RULES_BYTES_MAX;
    if !file.metadata().is_ok_and(|found| small(&found)) {
        return String::new();
    }
    let mut text = Vec::new();
    match file.take(RULES_BYTES_MAX).read_to_end(&mut text) {
        // A rule that is no text may let in what another leaves out: then all is let in.
        Ok(_) => String::from_utf8(text).unwrap_or_default(),
        Err(_) => String::new(),
    }
}

/// Whether a folder looks as it is held to be: the same names, kinds and inodes, and the same stats where bytes count. With
/// `bytes`, files are read as well.
pub(super) fn glance_at(
    folder: &Path,
    held: &std::collections::BTreeMap<OsString, Entry>,
    views: &Views,
    bytes: bool,
    options: &LookOptions,
) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(dir) = rustix::fs::open(folder, flags, Mode::empty()).map(File::from) else { return false };
    let order = Order::default();
    let looking = Looking { folder, order: &order, options, dir: &dir, mount: 0 };
    let Ok(names) = looking.names() else { return false };
    let cared_for = |name: &&OsString| views.care_for(name);
    let same_names = names.iter().filter(cared_for).eq(held.keys().filter(cared_for));
    same_names
        && held
            .iter()
            .filter(|(name, _)| cared_for(name))
            .all(|(name, entry)| looking.is_as_held(name, entry, bytes))
}

#[cfg(test)]
mod tests {
    use super::{Armed, doubtful, link, list};
    use crate::index::found::Inode;
    use crate::index::freshness::Doubt;
    use crate::index::tree::{Entry, EntryKind, Order};
    use crate::world::look::{LookOptions, inode_of, statx};
    use crate::world::watch::Unarmed;
    use rustix::io::Errno;
    use std::collections::BTreeSet;
    use std::ffi::OsString;
    use std::fs;
    use std::path::{Path, PathBuf};

    /// Puts another folder in the place of the one that it has just watched.
    struct Swapped<'test> {
        folder: &'test Path,
        held: Option<Inode>,
    }

    impl Armed for Swapped<'_> {
        fn arm_folder(&self) -> Result<(), Unarmed> {
            fs::rename(self.folder, self.folder.with_extension("old")).unwrap();
            fs::create_dir(self.folder).unwrap();
            Ok(())
        }

        fn arm_linked(&self, _: &[PathBuf], _: Option<&BTreeSet<OsString>>) -> Result<(), Unarmed> {
            Ok(())
        }

        fn inode(&self) -> Option<Inode> {
            self.held
        }
    }

    fn inode(folder: &Path) -> Inode {
        inode_of(&statx(&fs::File::open(folder).unwrap()).unwrap())
    }

    #[test]
    fn a_link_that_cannot_be_read_any_more_is_not_called_gone() {
        let temp = tempfile::tempdir().unwrap();
        let plain = Entry { kind: EntryKind::Link, ..doubtful(inode(temp.path()), Doubt::Gap) };
        for error in [Errno::NOENT, Errno::INVAL, Errno::ACCESS] {
            assert_eq!(link(plain.clone(), Err(&error)).doubt, Some(Doubt::Unsettled), "{error}");
        }
    }

    #[test]
    fn a_folder_other_than_the_watched_one_is_not_listed() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("folder");
        fs::create_dir(&folder).unwrap();
        let armed = Swapped { folder: &folder, held: Some(inode(&folder)) };
        let listed = list(&folder, &Order::default(), &LookOptions::default(), &armed);
        assert!(matches!(listed, Err(Unarmed::Moved)));
    }

    #[test]
    fn a_folder_is_opened_after_it_was_armed() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("folder");
        fs::create_dir(&folder).unwrap();
        let armed = Swapped { folder: &folder, held: None };
        let listed = list(&folder, &Order::default(), &LookOptions::default(), &armed);
        assert!(listed.is_ok_and(|listed| listed.is_ok_and(|listing| listing.inode == inode(&folder))));
    }
}
