//! The verifiers: threads that answer checks. Resolve, arm, resolve again, and only then look.
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
use super::watch::{Arms, Board, Unarmed};
use crate::index::found::{FileFound, Found, Inode};
use crate::index::freshness::Doubt;
use crate::index::{Check, Depth, KeyKind, Looked, Settled, SourceId, Stamp};
use std::collections::{HashMap, HashSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// How often a path that will not hold still is resolved before its source counts as unsettled.
const TRIES: usize = 8;

/// Checks wait here, those that somebody is waiting for first. A source waits with its latest check only, and never
/// has two verifiers at it: the slower one would bind the source to where its path led a while ago, and what then
/// happened where it leads now would mark nobody.
#[derive(Default)]
struct Queue {
    latest: HashMap<SourceId, Check>,
    urgent: VecDeque<SourceId>,
    later: VecDeque<SourceId>,
    busy: HashMap<SourceId, Stamp>,
    closed: bool,
}

impl Queue {
    fn add(&mut self, check: Check, urgent: bool) {
        let source = check.source;
        if self.busy.get(&source).is_some_and(|&stamp| stamp >= check.stamp) {
            return;
        }
        let waits = self.latest.contains_key(&source);
        if self.latest.get(&source).is_none_or(|held| held.stamp < check.stamp) {
            self.latest.insert(source, check);
        }
        if urgent {
            self.urgent.push_back(source);
        } else if !waits {
            self.later.push_back(source);
        }
    }

    fn begin(&mut self) -> Option<Check> {
        loop {
            let source = self.urgent.pop_front().or_else(|| self.later.pop_front())?;
            if self.busy.contains_key(&source) {
                continue;
            }
            if let Some(check) = self.latest.remove(&source) {
                self.busy.insert(source, check.stamp);
                return Some(check);
            }
        }
    }

    /// A check that came while its source was busy is the next.
    fn end(&mut self, source: SourceId) {
        self.busy.remove(&source);
        if self.latest.contains_key(&source) {
            self.urgent.push_front(source);
        }
    }
}

pub(super) struct Verifiers {
    shared: Arc<Shared>,
}

/// What a verifier sees with.
pub(super) struct Eyes {
    pub(super) board: Arc<Board>,
    pub(super) arms: Arc<Arms>,
    pub(super) dividers: Arc<Dividers>,
    pub(super) options: LookOptions,
}

struct Shared {
    queue: Mutex<Queue>,
    ready: Condvar,
    eyes: Eyes,
}

impl Verifiers {
    pub(super) fn start(threads: usize, eyes: Eyes) -> std::io::Result<Self> {
        let shared = Arc::new(Shared { queue: Mutex::default(), ready: Condvar::new(), eyes });
        for number in 0..threads.max(1) {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().name(format!("verify-{number}")).spawn(move || shared.run())?;
        }
        Ok(Self { shared })
    }

    pub(super) fn submit(&self, checks: Vec<Check>, urgent: bool) {
        let mut queue = self.shared.lock();
        for check in checks {
            queue.add(check, urgent);
        }
        drop(queue);
        self.shared.ready.notify_all();
    }
}

impl Drop for Verifiers {
    fn drop(&mut self) {
        // Not joined: one that is in the middle of a large file would hold up the end of the process.
        self.shared.lock().closed = true;
        self.shared.ready.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        while let Some(check) = self.next() {
            let answered = catch_unwind(AssertUnwindSafe(|| self.eyes.answer(&check)));
            let found = answered.unwrap_or_else(|_| {
                tracing::error!(path = %check.key.path.display(), "a verifier failed on this source");
                Found::Unknown(Doubt::Unsettled).into()
            });
            let answer = Settled { source: check.source, stamp: check.stamp, found };
            self.eyes.board.note(|marks| marks.answer(answer));
            self.lock().end(check.source);
        }
    }

    fn next(&self) -> Option<Check> {
        let mut queue = self.lock();
        loop {
            if queue.closed {
                return None;
            }
            let next = queue.begin();
            if next.is_some() {
                return next;
            }
            queue = self.ready.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Eyes {
    fn answer(&self, check: &Check) -> Looked {
        if check.depth < Depth::Names {
            // An arm that failed or was lost is renewed below before anything is believed.
            let end = self.board.marks().armed_end(check.source);
            if let Some(path) = end {
                return self.look(check, &path, check.known.as_ref()).into();
            }
        }
        let mut moved = self.board.marks().renamed_to(check.source).or_else(|| check.moved.clone());
        for _ in 0..TRIES {
            match self.try_answer(check, moved.as_deref()) {
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
        self.board.marks().ground(check.source, ground);
        if ground == Kind::Unwatchable && self.options.unwatchable == Unwatchable::Unknown {
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

    fn look_along(&self, check: &Check, route: &Route, moved: Option<(&Path, &Route)>) -> Found {
        if let End::Something(_) = route.end {
            self.board.marks().forget_rename(check.source);
        }
        match &route.end {
            // Where a watch was lost, so may an event have been that the reading in force does not know of.
            End::Something(path) => {
                let known = check.known.as_ref().filter(|_| check.depth != Depth::Opened);
                self.look(check, path, known)
            }
            End::Nothing => {
                moved.and_then(|(to, route)| self.look_there(check, to, route)).unwrap_or(Found::Missing)
            }
            End::Denied => Found::Unknown(Doubt::Unreadable),
        }
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

impl Armed for Arming<'_> {
    fn arm(&self, linked: &[PathBuf], whole: bool) -> Result<(), Unarmed> {
        let Self { eyes, check } = self;
        let folder = check.key.path.clone();
        let mut arms = if whole { Vec::new() } else { eyes.board.marks().arms_of(check.source) };
        for path in std::iter::once(&folder).chain(linked) {
            if !arms.contains(path) {
                arms.push(path.clone());
            }
        }
        let bound = Bound { arms, folder: Some(folder), ..Bound::default() };
        let mut unused = None;
        eyes.board.note(|marks| unused = marks.bind(check.source, bound.clone()));
        // Nobody follows it any more, and nobody will hear the answer.
        let Some(unused) = unused else { return Err(Unarmed::Never(Doubt::Unsettled)) };
        eyes.arms.disarm(&unused);
        eyes.arms.arm(&bound)
    }

    fn inode(&self) -> Option<Inode> {
        self.eyes.board.marks().watched(&self.check.key.path)
    }
}

/// Looks at what a check is about, where its path led. `known` is an earlier reading that an equal stat confirms.
pub(super) fn look_at(
    path: &Path,
    check: &Check,
    known: Option<&FileFound>,
    options: &LookOptions,
    opens: &dyn Opens,
) -> Found {
    match &check.key.kind {
        KeyKind::Lines(range) => lines::look(path, *range, &check.sought, options, opens),
        KeyKind::Schema => schema::look(path),
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
