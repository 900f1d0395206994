//! A HEAD that moved: how many paths differ between the two commits, and which rows of the session are among them.
//!
//! A verifier compares the commits; here the paths meet the session's rows, once for each move, and only names and numbers
//! are kept. Nothing of it decides anything: under the relevant policy the digests of the sources do.

use super::found::Found;
use super::row::{Role, Row, RowNo, SessionNo};
use super::storage::{Storage, StorageError};
use super::{Index, KeyKind};
use crate::session::context::Seen;
use crate::session::digest::CommitId;
use crate::session::source::{Filter, Source, absolute};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// A look at HEAD, with what lies between it and the commits that readers saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadLook {
    /// HEAD itself.
    pub found: Found,
    /// The source's own path, symlinks resolved.
    pub here: PathBuf,
    /// The top of the work tree.
    pub top: PathBuf,
    /// One for each commit that a reader saw and that HEAD is no longer at.
    pub moves: Vec<HeadMove>,
}

/// What lies between a commit that a reader saw and HEAD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadMove {
    /// The commit that was seen; `None` where there was none.
    pub from: Option<CommitId>,
    /// The paths that differ; `None` when a commit or a tree is not here any more.
    pub differing: Option<Differing>,
}

/// Paths that differ between two commits, below the top of the work tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differing {
    /// Sorted.
    pub paths: Vec<PathBuf>,
    /// There are more of them.
    pub more: bool,
}

/// What a session is told about a HEAD that moved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeadMoved {
    /// The branch that HEAD is on now; `None` when detached.
    pub branch: Option<String>,
    /// How many paths differ; `None` when that is not known.
    pub number: Option<u64>,
    /// There are more than the number says: so many were compared.
    pub more: bool,
    /// How many rows of the session are about one of these paths.
    pub rows: u64,
    /// The first of them, by their ids.
    pub ids: Vec<String>,
}

impl HeadMoved {
    /// How many rows are named.
    pub const IDS_MAX: usize = 10;
}

/// Whether a look at HEAD would have to compare commits for a reader who saw this.
pub(super) fn seeks(found: &Found, seen: &Seen) -> bool {
    matches!((found, seen), (Found::Head { commit, .. }, Seen::Commit(seen)) if seen != commit)
}

impl<S: Storage> Index<S> {
    /// What there is to tell a row about a HEAD that moved, when the commits were compared in this step.
    pub(super) fn head_moved(
        &self,
        session: SessionNo,
        row: &Row,
        found: &Found,
    ) -> Result<Option<HeadMoved>, StorageError> {
        let (Found::Head { branch, .. }, Some(Seen::Commit(from)), Some((spelled, look))) =
            (found, row.baseline.seen(), &self.head_look)
        else {
            return Ok(None);
        };
        let Some(between) = look.moves.iter().find(|between| between.from == *from) else { return Ok(None) };
        let mut moved = HeadMoved { branch: branch.clone(), ..HeadMoved::default() };
        let Some(differing) = &between.differing else { return Ok(Some(moved)) };
        (moved.number, moved.more) = (Some(differing.paths.len() as u64), differing.more);
        let places = Places { root: self.head(session)?.root, spelled, look, differing };
        let rows = self.shelf.peek_rows(session)?;
        let touched = rows.iter().filter(|row| places.touch(&row.source));
        let touched: HashSet<RowNo> = touched.map(|row| row.input_of.unwrap_or(row.no)).collect();
        moved.rows = touched.len() as u64;
        let named = rows.iter().filter(|row| row.role != Role::Input && touched.contains(&row.no));
        moved.ids = named.take(HeadMoved::IDS_MAX).map(|row| row.id.clone()).collect();
        Ok(Some(moved))
    }

    /// Rows came to a session whose HEAD has moved: it has to be told which of them that concerns.
    pub(super) fn compare_again(&self, row: &Row) -> Result<bool, StorageError> {
        let Some(source) = row.source_id.filter(|source| !self.is_pending(*source)) else { return Ok(false) };
        let state = self.source_state(source)?;
        let seen = row.baseline.seen();
        Ok(state.key.kind == KeyKind::Head
            && matches!((&state.found, seen), (Some(found), Some(seen)) if seeks(found, seen)))
    }
}

/// Where a session's paths are in the work tree.
struct Places<'look> {
    root: PathBuf,
    spelled: &'look Path,
    look: &'look HeadLook,
    differing: &'look Differing,
}

impl Places<'_> {
    /// Whether a source is about one of the paths. Globs are not looked into: a tree that has some is not counted.
    fn touch(&self, source: &Source) -> bool {
        let Some(path) = source.path() else { return false };
        let path = absolute(&self.root, path);
        let path = match path.strip_prefix(self.spelled) {
            Ok(rest) => self.look.here.join(rest),
            Err(_) => path,
        };
        let Ok(path) = path.strip_prefix(&self.look.top) else { return false };
        let paths = &self.differing.paths;
        match source {
            Source::GitHead { .. } | Source::Command { .. } | Source::Volatile { .. } => false,
            Source::Tree { filter: Filter { include, exclude, .. }, .. } => {
                let from = paths.partition_point(|other| other.as_path() < path);
                include.is_empty()
                    && exclude.is_empty()
                    && paths[from..].first().is_some_and(|at| at.starts_with(path))
            }
            _ => paths.binary_search_by(|other| other.as_path().cmp(path)).is_ok(),
        }
    }
}
