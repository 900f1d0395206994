//! What stands under one name of a folder, and what one look at a folder finds.

use crate::index::found::{Inode, Stat};
use crate::index::freshness::Doubt;
use crate::session::digest::Digest;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// What stands under a name. Symlinks are not followed: what one says is its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// File, folder, or what else.
    pub kind: EntryKind,
    /// Which inode.
    pub inode: Inode,
    /// Its stat, where its bytes were looked at.
    pub stat: Option<Stat>,
    /// The stat proves nothing later.
    pub racy: bool,
    /// It has several names, and is watched by its inode.
    pub linked: bool,
    /// BLAKE3 of a file's bytes, where some tree counts them, and of a symlink's target.
    pub digest: Option<Digest>,
    /// Why its bytes cannot be told. One that may not be read is no doubt: nobody of our uid has read it.
    pub doubt: Option<Doubt>,
}

impl Entry {
    /// Which rules it says, if it is a `.gitignore` that says any.
    pub(super) fn rules(&self) -> Option<Digest> {
        let nothing = Digest::blake3(*blake3::hash(b"").as_bytes());
        self.digest.filter(|digest| self.kind == EntryKind::File && *digest != nothing)
    }
}

/// Kinds of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symlink.
    Link,
    /// A FIFO, socket or device.
    Other,
}

/// What a look at a folder found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Which folder stands there.
    pub inode: Inode,
    /// The names that were looked at, with what stands there, if anything does.
    pub entries: Vec<(OsString, Option<Entry>)>,
    /// What was known of these names when the look was ordered: still what is stored, or the look was overtaken.
    pub known: BTreeMap<OsString, Entry>,
    /// All names were looked at: what is not listed is not there.
    pub whole: bool,
    /// The text of its `.gitignore`, where that name was looked at; empty when there is none.
    pub gitignore: Option<String>,
}

/// Where a tree was rooted when it was last whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rooted {
    /// The canonical path of its folder.
    pub folder: PathBuf,
    /// Digest of the rules that counted from above.
    pub outer: Digest,
}

/// Where a tree is rooted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// The canonical path of its folder.
    pub folder: PathBuf,
    /// `.gitignore` texts (and the repository's own excludes) that count from above, with the folders they speak of, top
    /// down.
    pub outer: Vec<(PathBuf, String)>,
}
