//! What the daemon gives up before it starts: writing outside its own folders, running programs but git, TCP, core dumps.
//!
//! It binds the calling thread and those that it starts later, so it is called while there is no other. Reading stays
//! free everywhere: what agents rest on may be anywhere. Files that are open already stay as they are.

use super::activation::Activated;
use super::folders::{FolderError, Folders};
use crate::config::Confine;
use crate::fork::git::Git;
use landlock::{
    ABI, Access, AccessFs, AccessNet, LandlockStatus, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus,
};
use rustix::process::{DumpableBehavior, Resource, Rlimit, setrlimit};
use std::sync::OnceLock;

/// The newest rules that we ask for. A kernel that knows fewer enforces those.
const ASKED: ABI = ABI::V5;

/// The daemon would have more rights than it may have.
#[derive(Debug, thiserror::Error)]
pub enum Unconfined {
    /// The folders that it keeps cannot be used.
    #[error(transparent)]
    Folders(#[from] FolderError),
    /// The kernel did not do it.
    #[error("the daemon cannot confine itself: {0}")]
    Refused(String),
}

/// What became of it: true of the process, however many daemons a test runs in it.
static CONFINED: OnceLock<&str> = OnceLock::new();

/// How far this process is confined; `off` when nobody asked for it.
pub(super) fn confinement() -> &'static str {
    CONFINED.get().copied().unwrap_or("off")
}

/// Makes the folders and gives up everything but them. Says how much of it the kernel enforces: `enforced`, `partly`,
/// `not`, or `off`. A socket that was handed over is bound already, so its folder is given up too.
pub fn confine(
    folders: &Folders,
    activated: Option<&Activated>,
    how: Confine,
) -> Result<&'static str, Unconfined> {
    folders.make()?;
    if how == Confine::Off {
        return Ok("off");
    }
    let word = match (restrict(folders, activated), how) {
        (Ok(word), Confine::Auto) | (Ok(word @ "enforced"), _) => Ok(word),
        (Ok(word), _) => Err(Unconfined::Refused(format!("the kernel's landlock enforces it {word}"))),
        (Err(why), Confine::Auto) => {
            tracing::warn!(why, "the daemon could not confine itself");
            Ok("not")
        }
        (Err(why), _) => Err(Unconfined::Refused(why)),
    }?;
    Ok(CONFINED.get_or_init(|| word))
}

fn restrict(folders: &Folders, activated: Option<&Activated>) -> Result<&'static str, String> {
    // A core would hold what clients said in private.
    let nothing = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, nothing).map_err(|error| error.to_string())?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|error| error.to_string())?;
    let status = enforce(folders, activated).map_err(|error| error.to_string())?;
    tracing::debug!(landlock = ?status.landlock, "restricted");
    Ok(match (status.ruleset, status.landlock) {
        (RulesetStatus::FullyEnforced, LandlockStatus::Available { .. }) => "enforced",
        (RulesetStatus::PartiallyEnforced, _) => "partly",
        _ => "not",
    })
}

fn reading_and_writing() -> landlock::BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::WriteFile
}

fn enforce(
    folders: &Folders,
    activated: Option<&Activated>,
) -> Result<landlock::RestrictionStatus, Box<dyn std::error::Error>> {
    let rules = Ruleset::default()
        .handle_access(AccessFs::from_all(ASKED))?
        .handle_access(AccessNet::from_all(ASKED))?
        .create()?;
    let reading = AccessFs::ReadFile | AccessFs::ReadDir;
    let ours = AccessFs::from_all(ASKED) & !AccessFs::Execute;
    let rules = rules
        .add_rule(PathBeneath::new(PathFd::new("/")?, reading))?
        .add_rule(PathBeneath::new(PathFd::new(&folders.state)?, ours))?
        .add_rule(PathBeneath::new(PathFd::new(&folders.runtime)?, ours))?;
    // What forks need: git's own programs, which a repository can tell to run nothing that is not among these.
    let mut rules = rules.add_rule(PathBeneath::new(PathFd::new("/dev/null")?, reading_and_writing()))?;
    for program in Git::find().map(|git| git.executables()).unwrap_or_default() {
        let Ok(opened) = PathFd::new(&program) else { continue };
        let running = if program.is_dir() {
            reading | AccessFs::Execute
        } else {
            AccessFs::ReadFile | AccessFs::Execute
        };
        rules = rules.add_rule(PathBeneath::new(opened, running))?;
    }
    // The socket may have been asked for in a folder of its own, where nothing else is written.
    let folder = folders.socket.parent().filter(|folder| *folder != folders.runtime && folder.is_dir());
    let rules = match folder.filter(|_| activated.is_none()) {
        Some(folder) => {
            let binding = AccessFs::MakeSock | AccessFs::RemoveFile;
            rules.add_rule(PathBeneath::new(PathFd::new(folder)?, binding))?
        }
        None => rules,
    };
    Ok(rules.restrict_self()?)
}
