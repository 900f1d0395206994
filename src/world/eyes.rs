//! One answer: resolve, arm, resolve again, and only then look.
//!
//! A change between arming and looking sends an event, and the event makes the source suspect again with a later
//! stamp; so whatever an answer says is either true or overtaken.

use super::cookie::Dividers;
use super::filesystem::{self, Kind};
use super::lines;
use super::listing::{self, Armed};
use super::look::{LookOptions, Opens, Unwatchable, look};
use super::marks::Bound;
use super::opening::Heard;
use super::probe::{between, git};
use super::roots;
use super::route::{End, Route, resolve, resolve_all};
use super::schema;
use super::stumbles::Stumbles;
use super::watch::{Arms, Board, Unarmed};
use crate::index::found::{FileFound, Found, Inode};
use crate::index::freshness::Doubt;
use crate::index::{Check, Depth, KeyKind, Looked};
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How often a path that will not hold still is resolved before its source counts as unsettled.
const TRIES: usize = 8;

/// What a verifier sees with.
pub(super) struct Eyes {
    pub(super) board: Arc<Board>,
    pub(super) arms: Arc<Arms>,
    pub(super) dividers: Arc<Dividers>,
    pub(super) stumbles: Arc<Stumbles>,
    pub(super) options: LookOptions,
}

impl Eyes {
    pub(super) fn answer(&self, check: &Check) -> Looked {
        if check.depth < Depth::Names {
            // An arm that failed or was lost is renewed below before anything is believed.
            let end = self.board.marks().armed_end(check.source);
            if let Some(path) = end {
                return self.look(check, &path, check.known.as_ref()).into();
            }
        }
        let mut moved = self.moved_to(check);
        for _ in 0..TRIES {
            let answered = match self.try_along_a_way(check, moved.as_deref()) {
                Ok(None) => self.try_answer(check, moved.as_deref()),
                Ok(Some(found)) => Ok(found.into()),
                Err(unarmed) => Err(unarmed),
            };
            match answered {
                Err(Unarmed::Moved) => {}
                // Where it went cannot be seen. That it is gone can.
                Ok(Looked::Found(Found::Unknown(_))) | Err(Unarmed::Never(_)) if moved.is_some() => {
                    moved = None;
                }
                Ok(found) => return found,
                Err(Unarmed::Never(doubt)) => return Found::Unknown(doubt).into(),
            }
        }
        Found::Unknown(Doubt::Unsettled).into()
    }

    /// Where an event told that the file went, now or before.
    pub(super) fn moved_to(&self, check: &Check) -> Option<PathBuf> {
        let moved = self.board.marks().renamed_to(check.source).or_else(|| check.moved.clone());
        // Of lines and of a schema it is not told where they went.
        moved.filter(|_| check.key.kind == KeyKind::Path)
    }

    /// `moved` is where an event told that the file went. That place is watched like any other of the source's, so that
    /// what is said of it stays true.
    fn try_answer(&self, check: &Check, moved: Option<&Path>) -> Result<Looked, Unarmed> {
        if let Some(order) = &check.order {
            let armed = Arming { eyes: self, check };
            let listed = listing::list(&check.key.path, order, &self.options, &armed)?;
            return Ok(listed.map_or_else(Looked::Found, Looked::Listing));
        }
        let (routes, _) = survey(check, moved);
        let bound = bound_by(&check.key.kind, &routes);
        let mut unused = Some(Vec::new());
        self.board.note(|marks| unused = marks.bind(check.source, bound.clone()));
        let Some(unused) = unused else { return Ok(Found::Unknown(Doubt::Unsettled).into()) };
        self.arms.disarm(&unused);
        self.arms.arm(&bound)?;
        let (again, read) = survey(check, moved);
        if again != routes {
            return Err(Unarmed::Moved);
        }
        // A symlink counts as much as the file: where it stands decides whether we hear of its turning elsewhere
        // (`/proc/<pid>/cwd` turns at every chdir, without an event).
        let folders = routes.iter().flat_map(|route| route.turns.iter().chain(route.folders.last()));
        let paths = folders.chain(&bound.end).collect::<HashSet<_>>();
        let ground = paths.into_iter().map(|path| filesystem::at(path)).max().unwrap_or(Kind::Local);
        if !self.is_believed(check, ground) {
            return Ok(Found::Unknown(Doubt::UnwatchableFs).into());
        }
        Ok(match read {
            Some(Looked::Found(found)) if check.key.kind == KeyKind::Head => {
                between::compared(&check.key.path, found, &check.sought)
            }
            Some(read) => read,
            None => self.look_along(check, &routes[0], moved.zip(routes.get(1))).into(),
        })
    }

    /// Notes what a source lies on; whether a look there says anything.
    pub(super) fn is_believed(&self, check: &Check, ground: Kind) -> bool {
        self.board.marks().ground(check.source, ground);
        ground != Kind::Unwatchable || self.options.unwatchable == Unwatchable::Verify
    }

    fn look_along(&self, check: &Check, route: &Route, moved: Option<(&Path, &Route)>) -> Found {
        match &route.end {
            End::Something(path) => self.look_anew(check, path),
            End::Nothing => {
                moved.and_then(|(to, route)| self.look_there(check, to, route)).unwrap_or(Found::Missing)
            }
            End::Denied => Found::Unknown(Doubt::Unreadable),
        }
    }

    /// Looks at what stands where the source leads, which was armed for it just now.
    pub(super) fn look_anew(&self, check: &Check, path: &Path) -> Found {
        self.board.marks().forget_rename(check.source);
        // Where a watch was lost, so may an event have been that the reading in force does not know of.
        let known = check.known.as_ref().filter(|_| check.depth != Depth::Opened);
        self.look(check, path, known)
    }

    /// What stands where the file went, if it is a file that can be told.
    fn look_there(&self, check: &Check, to: &Path, route: &Route) -> Option<Found> {
        let End::Something(path) = &route.end else { return None };
        match self.look(check, path, None) {
            Found::File(file) => Some(Found::Renamed { to: to.to_owned(), file }),
            doubt @ Found::Unknown(_) => Some(doubt),
            _ => None,
        }
    }

    fn look(&self, check: &Check, path: &Path, known: Option<&FileFound>) -> Found {
        let heard = Heard { board: &self.board, dividers: &self.dividers, source: check.source };
        look_at(path, check, known, &self.options, &heard)
    }
}

/// Arms a folder of a tree, and its files with several names.
struct Arming<'check> {
    eyes: &'check Eyes,
    check: &'check Check,
}

impl Arming<'_> {
    /// Watches the folder and these files. Files that are `kept` were watched before and are not looked at now: one that is
    /// gone by now cannot be watched again, and whatever became of it has been marked.
    fn arm(&self, mut kept: Vec<PathBuf>, linked: &[PathBuf]) -> Result<(), Unarmed> {
        let Self { eyes, check } = self;
        let folder = check.key.path.clone();
        let arms: Vec<PathBuf> = std::iter::once(&folder).chain(linked).cloned().collect();
        kept.retain(|path| !arms.contains(path));
        let bound = Bound { arms: [arms.clone(), kept].concat(), folder: Some(folder), ..Bound::default() };
        let mut unused = None;
        eyes.board.note(|marks| unused = marks.bind(check.source, bound));
        // Nobody follows it any more, and nobody will hear the answer.
        let Some(unused) = unused else { return Err(Unarmed::Never(Doubt::Unsettled)) };
        eyes.arms.disarm(&unused);
        eyes.arms.arm(&Bound { arms, ..Bound::default() })
    }
}

impl Armed for Arming<'_> {
    fn arm_folder(&self) -> Result<(), Unarmed> {
        let kept = self.eyes.board.marks().arms_of(self.check.source);
        self.arm(kept, &[])
    }

    fn arm_linked(&self, linked: &[PathBuf], looked_at: Option<&BTreeSet<OsString>>) -> Result<(), Unarmed> {
        let mut kept = self.eyes.board.marks().arms_of(self.check.source);
        kept.retain(|path| {
            path.file_name().is_some_and(|name| looked_at.is_some_and(|looked_at| !looked_at.contains(name)))
        });
        self.arm(kept, linked)
    }

    fn inode(&self) -> Option<Inode> {
        self.eyes.board.marks().watched(&self.check.key.path)
    }
}

/// Looks at what a check is about, where its path led.
pub(super) fn look_at(
    path: &Path,
    check: &Check,
    known: Option<&FileFound>,
    options: &LookOptions,
    opens: &dyn Opens,
) -> Found {
    match &check.key.kind {
        KeyKind::Lines(range) => lines::look(path, *range, &check.sought, options, opens),
        KeyKind::Schema => schema::look(path, options),
        _ => look(path, &check.wanted, known, options, opens),
    }
}

/// The routes that decide a check, and, for HEAD and for a tree's root, what was read along them.
fn survey(check: &Check, moved: Option<&Path>) -> (Vec<Route>, Option<Looked>) {
    match &check.key.kind {
        KeyKind::Tree(filter) => {
            let (routes, looked) = roots::survey(&check.key.path, filter);
            (routes, Some(looked))
        }
        KeyKind::Schema => (schema::routes(&check.key.path), None),
        KeyKind::Path | KeyKind::Lines(_) | KeyKind::Folder => {
            let paths = [Some(check.key.path.as_path()), moved];
            (paths.into_iter().flatten().map(resolve).collect(), None)
        }
        KeyKind::Head => {
            let reading = git::head(&check.key.path);
            (resolve_all(&reading.files), Some(head_found(reading.head).into()))
        }
    }
}

/// What a reading of HEAD found.
#[must_use]
pub fn head_found(head: git::Head) -> Found {
    match head {
        git::Head::Commit { commit, branch } => Found::Head { commit: Some(commit), branch },
        git::Head::Unborn { branch } => Found::Head { commit: None, branch: Some(branch) },
        git::Head::NoRepository => Found::Unknown(Doubt::RepositoryMissing),
        git::Head::Unreadable { .. } => Found::Unknown(Doubt::Unreadable),
    }
}

fn bound_by(kind: &KeyKind, routes: &[Route]) -> Bound {
    let mut bound = Bound::default();
    let mut seen = HashSet::new();
    let mut arm = |path: &PathBuf| {
        if seen.insert(path.clone()) {
            bound.arms.push(path.clone());
        }
    };
    routes.iter().flat_map(|route| &route.folders).for_each(&mut arm);
    for route in routes {
        if let End::Something(path) = &route.end {
            arm(path);
        }
    }
    let lookups: HashSet<&PathBuf> = routes.iter().flat_map(|route| &route.lookups).collect();
    bound.lookups = lookups.into_iter().cloned().collect();
    if let (KeyKind::Path | KeyKind::Lines(_), Some(Route { end: End::Something(path), .. })) =
        (kind, routes.first())
    {
        bound.end = Some(path.clone());
    }
    bound
}
