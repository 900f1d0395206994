//! Component-by-component path resolution: which lookups decide where a path leads.
//!
//! Each lookup is a pair of a canonical folder and a name in it, kept as their joined path. Whoever watches every such
//! folder, and what the path leads to, hears of everything that can change the answer: a rename on the way, a symlink
//! turned elsewhere, a missing name that appears.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Symlinks followed on the way before it is called a loop; the kernel's own number.
const LINKS_MAX: usize = 40;

/// How a path resolves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// `canonical folder/name` of every lookup, in order.
    pub lookups: Vec<PathBuf>,
    /// The canonical folders that were looked into, top down.
    pub folders: Vec<PathBuf>,
    /// Those of them in which a symlink was followed.
    pub turns: Vec<PathBuf>,
    /// Where it leads.
    pub end: End,
}

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// To something, at this canonical path.
    Something(PathBuf),
    /// To nothing: a name is missing, or a file stands where a folder was needed.
    Nothing,
    /// It cannot be told: a folder may not be searched, or the disk failed.
    Denied,
}

/// Resolves an absolute path.
#[must_use]
pub fn resolve(path: &Path) -> Route {
    let mut walk = Walk { route: Route::start(), here: PathBuf::from("/"), ahead: VecDeque::new(), links: 0 };
    walk.push_front(path);
    walk.run();
    walk.route
}

/// Resolves several paths that together decide one answer.
#[must_use]
pub fn resolve_all(paths: &[PathBuf]) -> Vec<Route> {
    paths.iter().map(|path| resolve(path)).collect()
}

impl Route {
    fn start() -> Self {
        Self { lookups: Vec::new(), folders: Vec::new(), turns: Vec::new(), end: End::Nothing }
    }
}

struct Walk {
    route: Route,
    here: PathBuf,
    ahead: VecDeque<OsString>,
    links: usize,
}

impl Walk {
    fn push_front(&mut self, path: &Path) {
        if path.is_absolute() {
            self.here = PathBuf::from("/");
        }
        for part in path.components().rev() {
            match part {
                Component::Normal(name) => self.ahead.push_front(name.to_owned()),
                Component::ParentDir => self.ahead.push_front("..".into()),
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
    }

    fn run(&mut self) {
        while let Some(name) = self.ahead.pop_front() {
            if name == ".." {
                self.here.pop();
                continue;
            }
            if let Some(end) = self.step(&name) {
                self.route.end = end;
                return;
            }
        }
        self.route.end = End::Something(self.here.clone());
    }

    /// One lookup; `Some` when the way ends here.
    fn step(&mut self, name: &OsString) -> Option<End> {
        let at = self.here.join(name);
        if !self.route.folders.contains(&self.here) {
            self.route.folders.push(self.here.clone());
        }
        self.route.lookups.push(at.clone());
        let kind = match std::fs::symlink_metadata(&at) {
            Ok(found) => found.file_type(),
            Err(error) => return Some(end_of(&error)),
        };
        if kind.is_symlink() {
            return self.follow(&at);
        }
        if !kind.is_dir() && !self.ahead.is_empty() {
            return Some(End::Nothing);
        }
        self.here = at;
        None
    }

    fn follow(&mut self, link: &Path) -> Option<End> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Some(End::Nothing);
        }
        match std::fs::read_link(link) {
            Ok(target) => {
                if !self.route.turns.contains(&self.here) {
                    self.route.turns.push(self.here.clone());
                }
                self.push_front(&target);
                None
            }
            // It was a link a moment ago: whatever replaced it has sent an event, and this is looked at again.
            Err(error) => Some(end_of(&error)),
        }
    }
}

/// Where a lookup that failed leads.
pub(super) fn end_of(error: &io::Error) -> End {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidInput => End::Nothing,
        io::ErrorKind::InvalidFilename => End::Nothing,
        _ => End::Denied,
    }
}
