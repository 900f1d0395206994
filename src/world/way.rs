//! Answers along a way: most sources share their folder with others, and need their own name looked up and no more.
//!
//! The order is the same as for a whole path: the name is heard, what stands there is armed, the name is looked up again,
//! and only then is it looked at. Everything above it was proven when the way was, and the source is marked by whatever
//! happened there since. A name that is a symlink, one that is not there while it is known where it went, and one whose
//! folder is not there, cannot be watched or does not report, takes the whole path.

use super::dart::fault;
use super::eyes::Eyes;
use super::filesystem::{self, Kind};
use super::marks::{Bound, Lead, Unbound, WayId};
use super::route::{End, Route, end_of, resolve};
use super::watch::Unarmed;
use crate::index::found::Found;
use crate::index::freshness::Doubt;
use crate::index::{Check, Depth, KeyKind, Looked};
use std::fs::Metadata;
use std::path::{Path, PathBuf};

/// A source that is heard along a way, and not yet looked at.
pub(super) struct Placed {
    lead: Lead,
    /// The way was begun here, and ends unless somebody is bound along it.
    begun: bool,
    at: PathBuf,
    end: Stands,
    pub(super) bound: Bound,
    pub(super) bytes: u64,
}

impl Eyes {
    /// `None` when the check is answered by itself.
    pub(super) fn place_ahead(&self, check: &Check) -> Option<Placed> {
        if check.depth < Depth::Names {
            return None;
        }
        let placed = self.place(check, self.moved_to(check).as_deref()).ok()??;
        self.end_building(&placed);
        Some(placed)
    }

    pub(super) fn answer_ahead(&self, check: &Check, placed: Option<Placed>) -> Looked {
        let answered = placed.map(|placed| self.look_in_place(check, &placed));
        match answered {
            Some(Ok(found)) => found.into(),
            _ => self.answer(check),
        }
    }

    /// `None` when the check must be answered by its whole path.
    pub(super) fn try_along_a_way(
        &self,
        check: &Check,
        moved: Option<&Path>,
    ) -> Result<Option<Found>, Unarmed> {
        let Some(placed) = self.place(check, moved)? else { return Ok(None) };
        self.end_building(&placed);
        self.look_in_place(check, &placed).map(Some)
    }

    /// Hears a source along the way to its folder.
    fn place(&self, check: &Check, moved: Option<&Path>) -> Result<Option<Placed>, Unarmed> {
        fault("place");
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
        // Where it went must be heard too.
        let went = end == Stands::Nothing && moved.is_some();
        if end == Stands::Link || went {
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
        // Something else may be mounted on the name itself.
        let own = if *end == Stands::Something { filesystem::at(at) } else { Kind::Local };
        if !self.is_believed(check, lead.ground.max(own)) {
            return Ok(Found::Unknown(Doubt::UnwatchableFs));
        }
        Ok(match end {
            Stands::Something => self.look_anew(check, at),
            Stands::Nothing => Found::Missing,
            Stands::Link | Stands::Denied => Found::Unknown(Doubt::Unreadable),
        })
    }

    /// The way to a folder, proven now unless one is known that holds, and whether it was begun here. `None` when there
    /// is no such folder, or none that leads anybody.
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
        let proven = self.arms.arm_way(way, &folders).and_then(|()| self.prove(way, folder, &route, end));
        if !matches!(proven, Ok(Some(_))) {
            self.end_way(way);
        }
        match proven {
            Ok(lead) => Ok(lead.map(|lead| (lead, true))),
            // By its whole path the source is heard wherever the kernel lets it be, and is told why it cannot be elsewhere.
            Err(Unarmed::Never(_)) => Ok(None),
            Err(Unarmed::Moved) => Err(Unarmed::Moved),
        }
    }

    /// `None` when what leads there may turn elsewhere without a word: then each source asks anew.
    fn prove(
        &self,
        way: WayId,
        folder: &Path,
        route: &Route,
        end: &PathBuf,
    ) -> Result<Option<Lead>, Unarmed> {
        if resolve(folder) != *route {
            return Err(Unarmed::Moved);
        }
        let paths = route.turns.iter().chain([end]);
        let ground = paths.map(|path| filesystem::at(path)).max().unwrap_or(Kind::Local);
        if ground == Kind::Unwatchable {
            return Ok(None);
        }
        self.board.marks().prove_way(way, ground).map(Some).ok_or(Unarmed::Moved)
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
