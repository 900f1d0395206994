//! Who is known to have a reason to write where: the books behind the isolation of forks. Pure: what time it is, and
//! whether something still runs in a fork, is said by whoever asks.
//!
//! Promise: a change is accounted for by what was allowed or begun before it was told, and by nothing else. Nobody is
//! accused of it, for nobody knows whose it was.

use crate::protocol::fork::record::{Isolated, SEEN_MAX, breaks};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Leaves to write that one fork may hold at a time. The one that ends first goes for the next.
const GRANTS_MAX: usize = 65_536;

/// How long a command that was begun may take to hold its lock, which is the first that it does.
const LOCK_MS_MAX: Ms = 10_000;

/// A moment by a clock that nobody sets, in milliseconds.
pub(super) type Ms = u64;

/// What is wrong with something that was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Fault {
    /// Something changed, nobody had asked, and nothing ran there.
    UndeclaredWrite,
    /// The same, at some time when nobody watched.
    Unwatched,
    /// Something went from one fork to another.
    MovedAcross,
    /// A file is one with a file elsewhere.
    SharedByHardlink,
}

impl Fault {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::UndeclaredWrite => "undeclared_write",
            Self::Unwatched => "unwatched",
            Self::MovedAcross => "moved_across",
            Self::SharedByHardlink => "shared_by_hardlink",
        }
    }

    pub(super) fn state(self) -> Isolated {
        if breaks(self.word()) { Isolated::Broken } else { Isolated::Unknown }
    }
}

/// Leave to write at a path.
#[derive(Debug, Clone, Default)]
struct Grant {
    until: Ms,
    /// Folders on the way there that were not there yet.
    made: HashSet<PathBuf>,
}

#[derive(Debug)]
struct Exec {
    begun: Ms,
    /// It was seen to hold the lock.
    locked: bool,
}

/// What has ended without a word.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ended {
    execs: BTreeSet<u64>,
    lingering: Option<u64>,
}

impl Ended {
    pub(super) fn is_empty(&self) -> bool {
        self.execs.is_empty() && self.lingering.is_none()
    }
}

/// The account of one fork.
#[derive(Debug, Default)]
pub(super) struct Account {
    grants: HashMap<PathBuf, Grant>,
    /// How many grants have each folder made.
    made: HashMap<PathBuf, usize>,
    /// Commands that run there.
    execs: BTreeMap<u64, Exec>,
    /// Something that nobody will tell the end of may still run there. Each time that this is found has a number.
    lingers: Option<u64>,
    lingered: u64,
    /// Where the daemon itself writes, and how often at a time.
    excused: BTreeMap<PathBuf, usize>,
    denied: u64,
    /// What was told already, by kind and path.
    told: HashSet<(String, PathBuf)>,
}

impl Account {
    /// Of a fork of which this has been told, by kind and path.
    pub(super) fn new(told: impl IntoIterator<Item = (String, PathBuf)>) -> Self {
        Self { told: told.into_iter().collect(), ..Self::default() }
    }

    /// Leave to write at a path, and at the folders on the way to it that are to be made for that.
    pub(super) fn allow(&mut self, path: &Path, made: Vec<PathBuf>, until: Ms, now: Ms) {
        if self.grants.len() >= GRANTS_MAX && !self.grants.contains_key(path) {
            self.expire(now);
            if self.grants.len() >= GRANTS_MAX {
                let first =
                    self.grants.iter().min_by_key(|(_, grant)| grant.until).map(|(path, _)| path.clone());
                first.iter().for_each(|path| self.withdraw(path));
            }
        }
        let grant = self.grants.entry(path.to_owned()).or_default();
        grant.until = grant.until.max(until);
        for folder in made {
            // The same question adds nothing, however often it is asked.
            if grant.made.insert(folder.clone()) {
                *self.made.entry(folder).or_default() += 1;
            }
        }
    }

    fn withdraw(&mut self, path: &Path) {
        for folder in self.grants.remove(path).unwrap_or_default().made {
            if let Some(count) = self.made.get_mut(&folder) {
                *count -= 1;
                if *count == 0 {
                    self.made.remove(&folder);
                }
            }
        }
    }

    /// Forgets what ended before now.
    pub(super) fn expire(&mut self, now: Ms) {
        let ended: Vec<PathBuf> =
            self.grants.iter().filter(|(_, grant)| grant.until < now).map(|(path, _)| path.clone()).collect();
        ended.iter().for_each(|path| self.withdraw(path));
    }

    /// A command begins; whether it holds its lock already is said with it.
    pub(super) fn begin(&mut self, exec: u64, locked: bool, now: Ms) {
        self.execs.insert(exec, Exec { begun: now, locked });
    }

    /// A command has ended; whether something that it started still runs, its lock says.
    pub(super) fn end(&mut self, exec: u64, still_locked: bool) {
        self.execs.remove(&exec);
        if still_locked {
            self.found_locked();
        }
    }

    /// Whether there may be something that has ended without a word.
    pub(super) fn may_have_ended(&self) -> bool {
        self.lingers.is_some() || !self.execs.is_empty()
    }

    /// Whether something that nobody will tell the end of may still run there.
    pub(super) fn lingers(&self) -> bool {
        self.lingers.is_some()
    }

    /// Somebody holds the lock: whoever was begun may be that, and so may something that nobody will tell the end of.
    pub(super) fn found_locked(&mut self) {
        self.execs.values_mut().for_each(|exec| exec.locked = true);
        if self.execs.is_empty() && self.lingers.is_none() {
            self.lingered += 1;
            self.lingers = Some(self.lingered);
        }
    }

    /// Nobody holds the lock: these have ended. They count until everything has been told that happened before.
    pub(super) fn found_free(&self, now: Ms) -> Ended {
        let ended = |exec: &&Exec| exec.locked || exec.begun + LOCK_MS_MAX < now;
        let execs = self.execs.iter().filter(|(_, exec)| ended(exec)).map(|(no, _)| *no).collect();
        Ended { execs, lingering: self.lingers }
    }

    /// What these wrote has been told.
    pub(super) fn settle(&mut self, ended: &Ended) {
        self.execs.retain(|exec, _| !ended.execs.contains(exec));
        if self.lingers == ended.lingering {
            self.lingers = None;
        }
    }

    /// How many run, as far as is known.
    pub(super) fn running(&self) -> usize {
        self.execs.len().max(usize::from(self.lingers.is_some()))
    }

    /// The daemon begins to write below a path.
    pub(super) fn excuse(&mut self, below: &Path) {
        *self.excused.entry(below.to_owned()).or_default() += 1;
    }

    /// It has ended that.
    pub(super) fn end_excuse(&mut self, below: &Path) {
        if let Some(count) = self.excused.get_mut(below) {
            *count -= 1;
            if *count == 0 {
                self.excused.remove(below);
            }
        }
    }

    /// Somebody asked, and was told no.
    pub(super) fn deny(&mut self) {
        self.denied += 1;
    }

    /// How often.
    pub(super) fn denied(&self) -> u64 {
        self.denied
    }

    /// Whether a change at this path has a reason.
    pub(super) fn accounts_for(&self, path: &Path, now: Ms) -> bool {
        self.may_have_ended()
            || self.made.contains_key(path)
            || path.ancestors().any(|above| self.excused.contains_key(above) || self.is_granted(above, now))
            || path.ancestors().any(|above| meant(above).any(|meant| self.is_granted(&meant, now)))
    }

    fn is_granted(&self, path: &Path, now: Ms) -> bool {
        self.grants.get(path).is_some_and(|grant| grant.until >= now)
    }

    /// Whether this is news. What is more than a record keeps is not told any more, but for the first break: no number of
    /// doubts hides that.
    pub(super) fn is_news(&mut self, fault: Fault, path: &Path) -> bool {
        let first_break =
            || fault.state() == Isolated::Broken && !self.told.iter().any(|(kind, _)| breaks(kind));
        (self.told.len() < SEEN_MAX || first_break())
            && self.told.insert((fault.word().to_owned(), path.to_owned()))
    }
}

/// The files that a name may be a passing stand-in for, as editors and those who write in one step make them: `.f.swp`,
/// `.f.AbC123`, `#f#`, `.#f`, `f~`, `f.tmp`, `f.tmp.1.2`, `f.lock`.
fn meant(path: &Path) -> impl Iterator<Item = PathBuf> {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let mut names: Vec<&[u8]> = Vec::new();
    names.extend(name.strip_suffix(b"~"));
    names.extend(name.strip_suffix(b".lock"));
    names.extend(name.strip_prefix(b".#"));
    names.extend(name.strip_prefix(b"#").and_then(|name| name.strip_suffix(b"#")));
    names.extend(find(name, b".tmp").map(|at| &name[..at]));
    if let Some(hidden) = name.strip_prefix(b".") {
        names.extend(hidden.iter().rposition(|&byte| byte == b'.').map(|at| &hidden[..at]));
        names.extend(find(hidden, b".tmp").map(|at| &hidden[..at]));
    }
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    names.retain(|name| !name.is_empty());
    let meant: Vec<PathBuf> = names.into_iter().map(|name| folder.join(OsStr::from_bytes(name))).collect();
    meant.into_iter()
}

/// Where the last one of these begins.
fn find(name: &[u8], sought: &[u8]) -> Option<usize> {
    name.windows(sought.len()).rposition(|window| window == sought)
}
