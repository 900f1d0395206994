//! Answers along a way: most sources share their folder with others, and need their own name looked up and no more.
//!
//! The order is the same as for a whole path: the name is heard, what stands there is armed, the name is looked up again,
//! and only then is it looked at. Everything above it was proven when the way was, and the source is marked by whatever
//! happened there since. A name that is a symlink, or whose folder is not there, takes the whole path.
//!
//! Several checks at once go through these steps together, because arming takes one lock that all verifiers want. One
//! that stumbles is answered by itself.

use super::look::{is_unwatchable, look};
use super::marks::{Bound, Lead, Unbound, WayId};
use super::route::{End, end_of, resolve};
use super::verify::Shared;
use super::watch::Unarmed;
use crate::index::found::Found;
use crate::index::freshness::Doubt;
use crate::index::{Check, Depth, KeyKind, Looked};
use std::fs::Metadata;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// A file above this size is not digested while others wait behind it.
const QUICK_BYTES_MAX: u64 = 1024 * 1024;

/// A source that is heard along a way, and not yet looked at.
struct Placed {
    lead: Lead,
    /// The way was begun here, and ends unless somebody is bound along it.
    begun: bool,
    at: PathBuf,
    end: Stands,
    bound: Bound,
    bytes: u64,
}

impl Shared {
    pub(super) fn answer_all(&self, checks: Vec<Check>) {
        if let [check] = checks.as_slice() {
            return self.conclude(check, || self.answer(check));
        }
        let place = |check: Check| {
            let placed = catch_unwind(AssertUnwindSafe(|| self.place_ahead(&check))).unwrap_or_default();
            (bytes_at(&check, placed.as_ref()), check, placed)
        };
        let mut placed: Vec<(u64, Check, Option<Placed>)> = checks.into_iter().map(place).collect();
        self.arms.arm_ahead(placed.iter().filter_map(|(_, _, placed)| Some(&placed.as_ref()?.bound)));
        placed.sort_by_key(|(bytes, ..)| *bytes);
        let mut placed = placed.into_iter();
        while let Some((bytes, check, place)) = placed.next() {
            if bytes > QUICK_BYTES_MAX {
                self.give_back(placed.by_ref().map(|(_, check, _)| check));
            }
            self.conclude(&check, || self.answer_ahead(&check, place));
        }
    }

    fn place_ahead(&self, check: &Check) -> Option<Placed> {
        if check.depth == Depth::Bytes {
            return None;
        }
        let placed = self.place(check).ok()??;
        self.end_building(&placed);
        Some(placed)
    }

    fn answer_ahead(&self, check: &Check, placed: Option<Placed>) -> Looked {
        let answered = placed.map(|placed| self.look_in_place(check, &placed));
        match answered {
            Some(Ok(found)) => found.into(),
            _ => self.answer(check),
        }
    }

    /// `None` when the check must be answered by its whole path.
    pub(super) fn try_along_a_way(&self, check: &Check) -> Result<Option<Found>, Unarmed> {
        let Some(placed) = self.place(check)? else { return Ok(None) };
        self.end_building(&placed);
        self.look_in_place(check, &placed).map(Some)
    }

    /// Hears a source along the way to its folder.
    fn place(&self, check: &Check) -> Result<Option<Placed>, Unarmed> {
        let key = &check.key;
        let (KeyKind::Path, Some(parent), Some(name)) = (&key.kind, key.path.parent(), key.path.file_name())
        else {
            return Ok(None);
        };
        let Some((lead, begun)) = self.lead_to(parent)? else { return Ok(None) };
        let at = lead.folder.join(name);
        let (end, bytes) = stands_at(&at);
        let there = end == Stands::Something;
        let arms = if there { vec![at.clone()] } else { Vec::new() };
        let bound = Bound { lookups: vec![at.clone()], arms, end: there.then(|| at.clone()), folder: None };
        let placed = Placed { lead, begun, at, end, bound, bytes };
        if end == Stands::Link {
            self.end_building(&placed);
            return Ok(None);
        }
        let unused = self.board.marks().bind_along(check.source, Some(placed.lead.way), &placed.bound);
        match unused {
            Ok(unused) => self.arms.disarm(&unused),
            // Nobody wants the answer any more, whatever it is.
            Err(Unbound::Unfollowed) => {
                self.end_building(&placed);
                return Err(Unarmed::Never(Doubt::Unsettled));
            }
            Err(Unbound::Moved) => {
                self.end_building(&placed);
                return Err(Unarmed::Moved);
            }
        }
        Ok(Some(placed))
    }

    fn look_in_place(&self, check: &Check, placed: &Placed) -> Result<Found, Unarmed> {
        let Placed { lead, at, end, bound, .. } = placed;
        self.arms.arm(bound)?;
        if stands_at(at).0 != *end {
            return Err(Unarmed::Moved);
        }
        if lead.unwatchable {
            return Ok(Found::Unknown(Doubt::UnwatchableFs));
        }
        Ok(match end {
            Stands::Something => look(at, &check.wanted, check.known.as_ref(), &self.options),
            Stands::Nothing => Found::Missing,
            Stands::Link | Stands::Denied => Found::Unknown(Doubt::Unreadable),
        })
    }

    /// The way to a folder, proven now unless one is known that holds, and whether it was begun here. `None` when there
    /// is no such folder.
    fn lead_to(&self, folder: &Path) -> Result<Option<(Lead, bool)>, Unarmed> {
        if let Some(lead) = self.board.marks().way(folder) {
            return Ok(Some((lead, false)));
        }
        let route = resolve(folder);
        let End::Something(end) = &route.end else { return Ok(None) };
        if !end.is_dir() {
            return Ok(None);
        }
        let mut folders = route.folders.clone();
        folders.retain(|above| above != end);
        folders.push(end.clone());
        let way = self.board.marks().begin_way(folder, &route.lookups, &folders);
        let proven = self.arms.arm_way(way, &folders).and_then(|()| {
            if resolve(folder) != route {
                return Err(Unarmed::Moved);
            }
            let unwatchable = route.turns.iter().chain([end]).any(|folder| is_unwatchable(folder));
            self.board.marks().prove_way(way, unwatchable).ok_or(Unarmed::Moved)
        });
        if proven.is_err() {
            self.end_way(way);
        }
        proven.map(|lead| Some((lead, true)))
    }

    fn end_building(&self, placed: &Placed) {
        if placed.begun {
            self.end_way(placed.lead.way);
        }
    }

    fn end_way(&self, way: WayId) {
        let unused = self.board.marks().end_building(way);
        self.arms.disarm(&unused);
    }
}

/// How much may have to be digested.
fn bytes_at(check: &Check, placed: Option<&Placed>) -> u64 {
    placed.map_or_else(
        || std::fs::metadata(&check.key.path).map_or(0, |found| found.len()),
        |placed| placed.bytes,
    )
}

/// What stands under a name in a folder that is resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stands {
    Something,
    Nothing,
    Link,
    Denied,
}

/// And its size.
fn stands_at(at: &Path) -> (Stands, u64) {
    match std::fs::symlink_metadata(at) {
        Ok(found) if found.is_symlink() => (Stands::Link, 0),
        Ok(found) => (Stands::Something, Metadata::len(&found)),
        Err(error) => match end_of(&error) {
            End::Nothing => (Stands::Nothing, 0),
            _ => (Stands::Denied, 0),
        },
    }
}
