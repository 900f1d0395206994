//! The verifiers: threads that answer checks. Resolve, arm, resolve again, and only then look.
//!
//! A change between arming and looking sends an event, and the event makes the source suspect again with a later
//! stamp; so whatever an answer says is either true or overtaken.

use super::listing::{self, Armed};
use super::look::{LookOptions, is_unwatchable, look};
use super::marks::Bound;
use super::probe::git;
use super::queue::{Queue, is_quick};
use super::roots;
use super::route::{End, Route, resolve_all};
use super::watch::{Arms, Board, Unarmed};
use crate::index::found::{Found, Inode};
use crate::index::freshness::Doubt;
use crate::index::{Check, Depth, KeyKind, Looked, Settled, SourceId};
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// How often a path that will not hold still is resolved before its source counts as unsettled.
const TRIES: usize = 8;

/// How many checks one verifier takes beside the first.
const TOGETHER_MAX: usize = 63;

pub(super) struct Verifiers {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    queue: Mutex<Queue>,
    ready: Condvar,
    pub(super) board: Arc<Board>,
    pub(super) arms: Arc<Arms>,
    pub(super) options: LookOptions,
    threads: usize,
}

impl Verifiers {
    pub(super) fn start(
        threads: usize,
        board: &Arc<Board>,
        arms: &Arc<Arms>,
        options: &LookOptions,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            ready: Condvar::new(),
            board: Arc::clone(board),
            arms: Arc::clone(arms),
            options: options.clone(),
            threads: threads.max(1),
        });
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

    pub(super) fn hurry(&self, sources: &[SourceId]) {
        let mut queue = self.shared.lock();
        sources.iter().for_each(|&source| queue.hurry(source));
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
        while let Some(checks) = self.next() {
            self.answer_all(checks);
        }
    }

    /// Answers one check, in whichever way, and is done with it.
    pub(super) fn conclude(&self, check: &Check, answer: impl FnOnce() -> Looked) {
        let answered = catch_unwind(AssertUnwindSafe(answer));
        let found = answered.unwrap_or_else(|_| {
            tracing::error!(path = %check.key.path.display(), "a verifier failed on this source");
            Found::Unknown(Doubt::Unsettled).into()
        });
        let answer = Settled { source: check.source, stamp: check.stamp, found };
        self.board.note(|marks| marks.answer(answer));
        self.lock().end(check.source);
    }

    /// Others may answer these.
    pub(super) fn give_back(&self, checks: impl Iterator<Item = Check>) {
        let mut queue = self.lock();
        checks.for_each(|check| queue.give_back(check));
        drop(queue);
        self.ready.notify_all();
    }

    fn next(&self) -> Option<Vec<Check>> {
        let mut queue = self.lock();
        loop {
            if queue.closed {
                return None;
            }
            let urgent = !queue.urgent.is_empty();
            if let Some(check) = queue.begin() {
                // A fair share: the others are not to stand idle while one of them has all the work.
                let share = (queue.latest.len() / self.threads).min(TOGETHER_MAX);
                let share = if is_quick(&check) { share } else { 0 };
                let mut checks = vec![check];
                checks.extend(std::iter::from_fn(|| queue.begin_beside(urgent)).take(share));
                return Some(checks);
            }
            queue = self.ready.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn answer(&self, check: &Check) -> Looked {
        if check.depth == Depth::Bytes && check.key.kind == KeyKind::Path {
            // An arm that failed or was lost is renewed below before anything is believed.
            let end = self.board.marks().armed_end(check.source);
            if let Some(path) = end {
                return look(&path, &check.wanted, None, &self.options).into();
            }
        }
        for _ in 0..TRIES {
            let answered = match self.try_along_a_way(check) {
                Ok(None) => self.try_answer(check),
                Ok(Some(found)) => Ok(found.into()),
                Err(unarmed) => Err(unarmed),
            };
            match answered {
                Ok(found) => return found,
                Err(Unarmed::Never(doubt)) => return Found::Unknown(doubt).into(),
                Err(Unarmed::Moved) => {}
            }
        }
        Found::Unknown(Doubt::Unsettled).into()
    }

    fn try_answer(&self, check: &Check) -> Result<Looked, Unarmed> {
        if let Some(order) = &check.order {
            let armed = Arming { shared: self, check };
            let listed = listing::list(&check.key.path, order, &self.options, &armed)?;
            return Ok(listed.map_or_else(Looked::Found, Looked::Listing));
        }
        let (routes, _) = survey(check);
        let bound = bound_by(&check.key.kind, &routes);
        let mut unused = Some(Vec::new());
        self.board.note(|marks| unused = marks.bind(check.source, bound.clone()));
        let Some(unused) = unused else { return Ok(Found::Unknown(Doubt::Unsettled).into()) };
        self.arms.disarm(&unused);
        self.arms.arm(&bound)?;
        let (again, read) = survey(check);
        if again != routes {
            return Err(Unarmed::Moved);
        }
        // A symlink counts as much as the file: where it stands decides whether we hear of its turning elsewhere
        // (`/proc/<pid>/cwd` turns at every chdir, without an event).
        let folders = routes.iter().flat_map(|route| route.turns.iter().chain(route.folders.last()));
        let folders = folders.collect::<HashSet<_>>();
        if folders.into_iter().any(|folder| is_unwatchable(folder)) {
            return Ok(Found::Unknown(Doubt::UnwatchableFs).into());
        }
        Ok(match read {
            Some(read) => read,
            None => self.look_along(check, &routes[0]).into(),
        })
    }

    fn look_along(&self, check: &Check, route: &Route) -> Found {
        match &route.end {
            End::Something(path) => look(path, &check.wanted, check.known.as_ref(), &self.options),
            End::Nothing => Found::Missing,
            End::Denied => Found::Unknown(Doubt::Unreadable),
        }
    }
}

/// Arms a folder of a tree, and its files with several names.
struct Arming<'check> {
    shared: &'check Shared,
    check: &'check Check,
}

impl Armed for Arming<'_> {
    fn arm(&self, linked: &[PathBuf], whole: bool) -> Result<(), Unarmed> {
        let Self { shared, check } = self;
        let folder = check.key.path.clone();
        let mut arms = if whole { Vec::new() } else { shared.board.marks().arms_of(check.source) };
        for path in std::iter::once(&folder).chain(linked) {
            if !arms.contains(path) {
                arms.push(path.clone());
            }
        }
        let bound = Bound { arms, folder: Some(folder), ..Bound::default() };
        let mut unused = None;
        shared.board.note(|marks| unused = marks.bind(check.source, bound.clone()));
        // Nobody follows it any more, and nobody will hear the answer.
        let Some(unused) = unused else { return Err(Unarmed::Never(Doubt::Unsettled)) };
        shared.arms.disarm(&unused);
        shared.arms.arm(&bound)
    }

    fn inode(&self) -> Option<Inode> {
        self.shared.board.marks().watched(&self.check.key.path)
    }
}

/// The routes that decide a check, and, for HEAD and for a tree's root, what was read along them.
fn survey(check: &Check) -> (Vec<Route>, Option<Looked>) {
    match &check.key.kind {
        KeyKind::Tree(filter) => {
            let (routes, looked) = roots::survey(&check.key.path, filter);
            (routes, Some(looked))
        }
        KeyKind::Path | KeyKind::Lines(_) | KeyKind::Schema | KeyKind::Folder => {
            (resolve_all(std::slice::from_ref(&check.key.path)), None)
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
    if let (KeyKind::Path, [Route { end: End::Something(path), .. }]) = (kind, routes) {
        bound.end = Some(path.clone());
    }
    bound
}
