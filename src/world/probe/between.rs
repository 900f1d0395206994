//! Which paths differ between two commits: their trees compared entry by entry, and equal ones not entered.
//!
//! Bounded in paths and in time: what was not reached is said to be more, never left out in silence. A commit or tree that
//! is not here (shallow, fetched in part, collected as garbage) makes the answer unknown.

use super::look::Look;
use super::objects::{Kind, Objects};
use super::repository;
use crate::index::Looked;
use crate::index::found::Found;
use crate::index::moved::{Differing, HeadLook, HeadMove};
use crate::session::context::Seen;
use crate::session::digest::CommitId;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Paths that are told at most.
const PATHS_MAX: usize = 100_000;

/// Commits that HEAD is compared with in one look; sessions that saw still others are told no number.
const COMPARED_MAX: usize = 8;

/// A decision may be waiting for HEAD: after this no more trees are read.
const TIME_MAX: Duration = Duration::from_millis(100);

/// What lies between HEAD as it was found and what readers saw.
#[must_use]
pub fn compared(path: &Path, found: Found, sought: &[Seen]) -> Looked {
    let Found::Head { commit: to, .. } = &found else { return found.into() };
    let from = sought.iter().filter_map(|seen| match seen {
        Seen::Commit(from) if from != to => Some(*from),
        _ => None,
    });
    let from: Vec<Option<CommitId>> = from.take(COMPARED_MAX).collect();
    let Ok(here) = std::fs::canonicalize(path) else { return found.into() };
    let top = here.ancestors().find(|folder| folder.join(".git").exists()).map(Path::to_owned);
    let Some(top) = top.filter(|_| !from.is_empty()) else { return found.into() };
    let moves = from.into_iter().map(|from| HeadMove { from, differing: between(path, from, *to) }).collect();
    Looked::Head(Box::new(HeadLook { found, here, top, moves }))
}

/// What differs between two commits of the repository that `path` belongs to; no commit has no paths. `None` when that
/// cannot be known.
#[must_use]
pub fn between(path: &Path, from: Option<CommitId>, to: Option<CommitId>) -> Option<Differing> {
    let repository = repository::discover(&mut Look::default(), path).ok()??;
    let objects = Objects::open(&repository.commondir, repository.format.id_len);
    let ends = [from, to].map(|commit| commit.map(|commit| tree_of(&objects, commit.as_bytes())));
    let tree = |end: &Option<Option<Vec<u8>>>| match end {
        None => Some(None),
        Some(tree) => tree.clone().map(Some),
    };
    let (from, to) = (tree(&ends[0])?, tree(&ends[1])?);
    let id_len = repository.format.id_len;
    let mut compare =
        Compare { objects, id_len, until: Instant::now() + TIME_MAX, found: Differing::default() };
    compare.trees(Path::new(""), from.as_deref(), to.as_deref())?;
    compare.found.paths.sort();
    Some(compare.found)
}

fn tree_of(objects: &Objects, commit: &[u8]) -> Option<Vec<u8>> {
    let (Kind::Commit, bytes) = objects.get(commit)? else { return None };
    let line = bytes.strip_prefix(b"tree ")?.split(|&byte| byte == b'\n').next()?;
    Some(CommitId::parse(std::str::from_utf8(line).ok()?)?.as_bytes().to_vec())
}

struct Compare {
    objects: Objects,
    id_len: usize,
    until: Instant,
    found: Differing,
}

/// The tree without entries, which git knows without having it, as SHA-1 and as SHA-256 name it.
const EMPTY: [&[u8]; 2] = [
    b"\x4b\x82\x5d\xc6\x42\xcb\x6e\xb9\xa0\x60\xe5\x4b\xf8\xd6\x92\x88\xfb\xee\x49\x04",
    b"\x6e\xf1\x9b\x41\x22\x5c\x53\x69\xf1\xc1\x04\xd4\x5d\x8d\x85\xef\xa9\xb0\x57\xb5\x3b\x14\xb4\xb9\xb9\x39\xdd\x74\xde\xcc\x53\x21",
];

/// The mode and id of each name.
type Tree = BTreeMap<Vec<u8>, (Vec<u8>, Vec<u8>)>;

impl Compare {
    /// Adds what differs below two trees, either of which may not be there.
    fn trees(&mut self, below: &Path, from: Option<&[u8]>, to: Option<&[u8]>) -> Option<()> {
        if from == to {
            return Some(());
        }
        let (from, mut to) = (self.read(from)?, self.read(to)?);
        for (name, old) in from {
            let new = to.remove(&name);
            self.entries(&below.join(OsStr::from_bytes(&name)), Some(old), new)?;
        }
        for (name, new) in to {
            self.entries(&below.join(OsStr::from_bytes(&name)), None, Some(new))?;
        }
        Some(())
    }

    fn entries(
        &mut self,
        path: &Path,
        from: Option<(Vec<u8>, Vec<u8>)>,
        to: Option<(Vec<u8>, Vec<u8>)>,
    ) -> Option<()> {
        if from == to || self.is_over() {
            return Some(());
        }
        let is_tree = |entry: &&(Vec<u8>, Vec<u8>)| entry.0 == b"40000";
        let trees =
            [from.as_ref(), to.as_ref()].map(|entry| entry.filter(is_tree).map(|(_, id)| id.as_slice()));
        let leaf = from.iter().chain(&to).any(|entry| !is_tree(&entry));
        if leaf {
            self.found.paths.push(path.to_owned());
        }
        self.trees(path, trees[0], trees[1])
    }

    fn is_over(&mut self) -> bool {
        self.found.more |= self.found.paths.len() >= PATHS_MAX || Instant::now() >= self.until;
        self.found.more
    }

    fn read(&self, id: Option<&[u8]>) -> Option<Tree> {
        let Some(id) = id.filter(|id| !EMPTY.contains(id)) else { return Some(Tree::new()) };
        let (Kind::Tree, bytes) = self.objects.get(id)? else { return None };
        let mut tree = Tree::new();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let space = rest.iter().position(|&byte| byte == b' ')?;
            let end = space + rest[space..].iter().position(|&byte| byte == 0)?;
            let (mode, name) = (rest[..space].to_vec(), rest[space + 1..end].to_vec());
            let id = rest.get(end + 1..end + 1 + self.id_len)?.to_vec();
            rest = &rest[end + 1 + self.id_len..];
            tree.insert(name, (mode, id));
        }
        Some(tree)
    }
}
