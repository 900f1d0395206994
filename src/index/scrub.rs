//! What is held to be true, handed out piece by piece for somebody who looks whether it is.
//!
//! A difference proves a missed event only if nothing was applied to the source, and nothing has touched it, between the
//! handing out and a barrier after the look: [`Index::still_holds`] says so.

use super::found::Found;
use super::row::{Row, SessionNo};
use super::shelf::{mark_key, source_key};
use super::storage::{SourceState, Storage, StorageError, Table};
use super::tree::{Entry, Views};
use super::{Index, KeyKind, SourceId, SourceKey, id_of, pack};
use crate::index::freshness::Freshness;
use crate::index::row::Mark;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// What is held to be true of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Which source.
    pub source: SourceId,
    /// What it is.
    pub key: SourceKey,
    /// What the last look found.
    pub found: Found,
    /// What is in it, where it is a folder of trees.
    pub entries: BTreeMap<OsString, Entry>,
    /// Which of its names matter.
    pub views: Views,
}

/// What is held to be true of one row.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The row; inputs of commands are rows of their own here.
    pub row: Row,
    /// What is known of it; `None` while it is being verified.
    pub freshness: Option<Freshness>,
}

impl<S: Storage> Index<S> {
    /// What is held of up to `max` settled sources behind `after`, and where to go on; `None` when that was the end.
    pub fn held_after(
        &self,
        after: Option<SourceId>,
        max: usize,
    ) -> Result<(Vec<Held>, Option<SourceId>), StorageError> {
        let from = after.map_or(SourceId(0), |SourceId(number)| SourceId(number + 1));
        let (mut states, mut bad) = (Vec::new(), false);
        self.shelf.storage.scan_from(Table::Sources, &source_key(from), &mut |key, bytes| {
            match (id_of(key), pack::from_bytes::<SourceState>(bytes)) {
                (Some(source), Some(state)) => states.push((source, state)),
                _ => bad = true,
            }
            states.len() < max
        })?;
        if bad {
            return Err(self.shelf.unreadable(Table::Sources));
        }
        let last = states.last().map(|(source, _)| *source).filter(|_| states.len() == max);
        let mut held = Vec::with_capacity(states.len());
        for (source, state) in states {
            held.extend(self.held(source, state)?);
        }
        Ok((held, last))
    }

    fn held(&self, source: SourceId, state: SourceState) -> Result<Option<Held>, StorageError> {
        let (found, entries) = if state.key.kind == KeyKind::Folder {
            let Some(inode) = self.grove.settled_folder(source) else { return Ok(None) };
            (Found::Folder(inode), self.entries(source)?)
        } else {
            match state.found {
                // A tree is what its folders are.
                Some(Found::Unknown(_) | Found::Tree(_)) | None => return Ok(None),
                Some(found) if !self.is_pending(source) => (found, BTreeMap::new()),
                Some(_) => return Ok(None),
            }
        };
        let views = self.views(source);
        Ok(Some(Held { source, key: state.key, found, entries, views }))
    }

    /// Whether that is still held, with nothing known to have happened since.
    pub fn still_holds(&self, held: &Held) -> Result<bool, StorageError> {
        let state = self.shelf.get::<SourceState>(Table::Sources, &source_key(held.source))?;
        let now = state.map(|state| self.held(held.source, state)).transpose()?.flatten();
        Ok(now.as_ref() == Some(held))
    }

    /// What is held to be true of every row of a session that rests on a source.
    pub fn claims(&self, session: SessionNo) -> Result<Vec<Claim>, StorageError> {
        let mut claims = Vec::new();
        for row in self.shelf.rows(session)? {
            let Some(source) = row.source_id else { continue };
            let mark: Option<Mark> = self.shelf.get(Table::Marks, &mark_key(session, row.no))?;
            let freshness = mark.map_or(Freshness::Fresh, |mark| mark.freshness);
            let freshness = (!self.is_pending(source)).then_some(freshness);
            claims.push(Claim { row, freshness });
        }
        Ok(claims)
    }
}
