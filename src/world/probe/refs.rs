//! Names of refs, and the store that keeps them as files: one file a ref (loose), or one line a ref (`packed-refs`).
//!
//! Promise: a value comes from the place that git would take it from, and a name never leads out of the git dir.

use super::look::{Fault, Look};
use super::repository::Repository;
use crate::session::digest::CommitId;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const LOOSE_BYTES_MAX: u64 = 1 << 20;
const PACKED_BYTES_MAX: u64 = 256 << 20;

/// What a ref holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// The id of an object.
    Id(CommitId),
    /// The name of another ref, not yet checked.
    Symbolic(Vec<u8>),
}

/// A name that git would accept for a ref; so it has no `..`, is relative, and joins safely to a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RefName(Vec<u8>);

impl RefName {
    pub(super) fn head() -> Self {
        Self(b"HEAD".to_vec())
    }

    /// The rules of `git check-ref-format`, with one level allowed.
    pub(super) fn parse(name: &[u8]) -> Option<Self> {
        let parts_hold = name.split(|&byte| byte == b'/').all(part_holds);
        let whole_holds = !name.ends_with(b".") && name != b"@" && !has(name, *b"..") && !has(name, *b"@{");
        (parts_hold && whole_holds).then(|| Self(name.to_vec()))
    }

    pub(super) fn is_head(&self) -> bool {
        self.0 == b"HEAD"
    }

    /// For people: without `refs/heads/`. Bytes that are not UTF-8 are replaced, as two branches that differ only
    /// in those still differ by commit.
    pub(super) fn branch(&self) -> String {
        String::from_utf8_lossy(self.0.strip_prefix(b"refs/heads/").unwrap_or(&self.0)).into_owned()
    }
}

fn part_holds(part: &[u8]) -> bool {
    let byte_holds = |&byte: &u8| byte > b' ' && byte != 0x7f && !b"~^:?*[\\".contains(&byte);
    !part.is_empty() && !part.starts_with(b".") && !part.ends_with(b".lock") && part.iter().all(byte_holds)
}

fn has(name: &[u8], pair: [u8; 2]) -> bool {
    name.windows(2).any(|window| window == pair)
}

/// The git dir that keeps a ref, and its name there: HEAD, bisect and the like are each worktree's own, the rest is
/// shared by all of them.
pub(super) fn place<'a>(repository: &Repository, name: &'a RefName) -> (PathBuf, &'a [u8]) {
    let name = name.0.as_slice();
    let (dir, bare) = match other_worktree(repository, name) {
        Some(other) => other,
        None => (repository.gitdir.clone(), name),
    };
    if is_per_worktree(bare) { (dir, bare) } else { (repository.commondir.clone(), bare) }
}

/// `main-worktree/…` and `worktrees/<id>/…` are spellings of another worktree's refs.
fn other_worktree<'a>(repository: &Repository, name: &'a [u8]) -> Option<(PathBuf, &'a [u8])> {
    if let Some(bare) = name.strip_prefix(b"main-worktree/") {
        return Some((repository.commondir.clone(), bare));
    }
    let rest = name.strip_prefix(b"worktrees/")?;
    let slash = rest.iter().position(|&byte| byte == b'/')?;
    let dir = repository.commondir.join("worktrees").join(OsStr::from_bytes(&rest[..slash]));
    Some((dir, &rest[slash + 1..]))
}

fn is_per_worktree(name: &[u8]) -> bool {
    let own: [&[u8]; 3] = [b"refs/bisect/", b"refs/worktree/", b"refs/rewritten/"];
    !name.starts_with(b"refs/") || own.iter().any(|prefix| name.starts_with(prefix))
}

/// The value of a ref in a store of files.
///
/// Git packs in this order: the new `packed-refs` is in place, then the loose file goes; so loose is read before packed,
/// and a ref that is only moved is never missed. One that is created loose after we missed its loose file is missed
/// by both reads, and found when the caller looks again.
pub(super) fn find(look: &mut Look, repository: &Repository, name: &RefName) -> Result<Option<Value>, Fault> {
    let (dir, bare) = place(repository, name);
    let id_len = repository.format.id_len;
    if let Some(value) = loose(look, &dir.join(OsStr::from_bytes(bare)), id_len)? {
        return Ok(Some(value));
    }
    let commit = packed(look, &repository.commondir.join("packed-refs"), &name.0, id_len)?;
    Ok(commit.map(Value::Id))
}

fn loose(look: &mut Look, path: &Path, id_len: usize) -> Result<Option<Value>, Fault> {
    let Some(metadata) = look.lstat(path)? else { return Ok(None) };
    if metadata.is_dir() {
        // A folder of other refs, or an empty one that git left behind.
        return Ok(None);
    }
    if metadata.is_symlink()
        && let Some(target) = look.link(path)?
        && target.as_os_str().as_bytes().starts_with(b"refs/")
        && let Some(name) = RefName::parse(target.as_os_str().as_bytes())
    {
        return Ok(Some(Value::Symbolic(name.0)));
    }
    let Some(bytes) = look.read(path, LOOSE_BYTES_MAX)? else { return Ok(None) };
    match loose_value(&bytes, id_len) {
        Some(value) => Ok(Some(value)),
        None => Err(Fault::new(path, "neither the id of a commit nor the name of a ref")),
    }
}

fn loose_value(bytes: &[u8], id_len: usize) -> Option<Value> {
    if let Some(target) = bytes.strip_prefix(b"ref:") {
        return Some(Value::Symbolic(target.trim_ascii().to_vec()));
    }
    let (digits, rest) = bytes.split_at_checked(2 * id_len)?;
    let ends = rest.first().is_none_or(u8::is_ascii_whitespace);
    ends.then(|| id(digits)).flatten().map(Value::Id)
}

/// Scans the whole file, as it may be unsorted; git replaces it by rename, so one opened file is one state.
fn packed(look: &mut Look, path: &Path, name: &[u8], id_len: usize) -> Result<Option<CommitId>, Fault> {
    let Some(file) = look.open(path, PACKED_BYTES_MAX)? else { return Ok(None) };
    let mut reader = BufReader::with_capacity(64 * 1024, file.take(PACKED_BYTES_MAX));
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(|error| Fault::new(path, error))? == 0 {
            return Ok(None);
        }
        let text =
            line.strip_suffix(b"\n").ok_or_else(|| Fault::new(path, "ends in the middle of a line"))?;
        if text.starts_with(b"#") || text.starts_with(b"^") {
            continue;
        }
        let (digits, rest) = text.split_at_checked(2 * id_len).unwrap_or_default();
        match rest.strip_prefix(b" ") {
            Some(found) if found == name => {
                return id(digits).map(Some).ok_or_else(|| Fault::new(path, "an id that is not one"));
            }
            Some(_) => {}
            None => return Err(Fault::new(path, "a line that is not an id and a name")),
        }
    }
}

fn id(digits: &[u8]) -> Option<CommitId> {
    let written = digits.iter().all(u8::is_ascii_hexdigit) && digits.iter().any(|&digit| digit != b'0');
    CommitId::parse(str::from_utf8(digits).ok().filter(|_| written)?)
}
