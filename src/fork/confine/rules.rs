//! The rules, as the kernel takes them.

use super::super::ForkError;
use crate::protocol::fork::answer::Confinement;
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Without what the third version refuses, a hidden file could be emptied, or linked into the open.
const NEEDED: ABI = ABI::V3;

/// Of the devices a command gets these, and no disk: whoever may read that reads every tree on it.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// An empty set of rules, if the kernel refuses all that must be refused.
pub(super) fn asked() -> Result<Ruleset, ForkError> {
    let with = |error: RulesetError| unavailable(&error.to_string());
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))
        .map_err(with)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::IoctlDev)
        .and_then(|rules| rules.scope(Scope::AbstractUnixSocket | Scope::Signal))
        .map_err(with)
}

/// Binds the calling thread.
pub(super) fn enforce(of: &Confinement, hidden: &[PathBuf]) -> Result<(), ForkError> {
    let with = |error: RulesetError| unavailable(&error.to_string());
    let mut rules = asked()?.create().map_err(with)?;
    rules = allow_what_is_open(rules, hidden)?;
    for device in DEVICES {
        rules = allow(rules, Path::new(device), device_access(), &BTreeSet::new())?;
    }
    for tree in &of.readable {
        rules = allow(rules, &tree.0, AccessFs::ReadFile | AccessFs::ReadDir, &BTreeSet::new())?;
    }
    for tree in [&of.workspace, &of.scratchpad] {
        let opened = open(&tree.0).map_err(ForkError::io("open", &tree.0))?;
        rules = rules.add_rule(PathBeneath::new(opened, own())).map_err(with)?;
    }
    let status = rules.restrict_self().map_err(with)?;
    if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
        return Err(unavailable("it was asked and did not do it"));
    }
    Ok(())
}

/// Everything but making devices, through which every other tree could be read.
fn own() -> BitFlags<AccessFs> {
    AccessFs::from_all(NEEDED) & !(AccessFs::MakeBlock | AccessFs::MakeChar)
}

fn device_access() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev
}

/// Allows what lies beside the hidden trees. Links are passed over: what they lead to has, or has not, a rule of its own.
fn allow_what_is_open(mut rules: RulesetCreated, hidden: &[PathBuf]) -> Result<RulesetCreated, ForkError> {
    let around: BTreeSet<PathBuf> =
        hidden.iter().flat_map(|tree| tree.ancestors().skip(1)).map(Path::to_owned).collect();
    // A tree that is mounted twice is one: its other name must not be allowed by mistake.
    let closed: BTreeSet<(u64, u64)> = around
        .iter()
        .map(PathBuf::as_path)
        .chain(hidden.iter().map(PathBuf::as_path))
        .filter_map(identity)
        .collect();
    let root = BTreeSet::from([PathBuf::from("/")]);
    for folder in around.union(&root) {
        // One that may not be listed has nothing in it that we could allow.
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path != Path::new("/dev") && !around.contains(&path) && !hidden.contains(&path) {
                rules =
                    allow(rules, &path, AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::Execute, &closed)?;
            }
        }
    }
    Ok(rules)
}

/// Allows one file, or one tree. One that is gone meanwhile, is a link, or is closed by another name, is not allowed.
fn allow(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
    closed: &BTreeSet<(u64, u64)>,
) -> Result<RulesetCreated, ForkError> {
    let Ok(opened) = open(path) else { return Ok(rules) };
    let Ok(found) = fstat(&opened) else { return Ok(rules) };
    let access = match FileType::from_raw_mode(found.st_mode) {
        FileType::Symlink => return Ok(rules),
        _ if closed.contains(&identity_of(&found)) => return Ok(rules),
        FileType::Directory => access,
        // A rule holds for a file by all of its names, and one of them may be in what is hidden.
        FileType::RegularFile if found.st_nlink > 1 => return Ok(rules),
        _ => access & AccessFs::from_file(ABI::V5),
    };
    let added = rules.add_rule(PathBeneath::new(opened, access));
    added.map_err(|error: RulesetError| unavailable(&format!("{}: {error}", path.display())))
}

/// By what it is and not by what it leads to.
fn open(path: &Path) -> std::io::Result<OwnedFd> {
    Ok(openat(CWD, path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?)
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fstat(open(path).ok()?).ok().map(|found| identity_of(&found))
}

#[allow(clippy::useless_conversion, reason = "their width differs between machines")]
fn identity_of(found: &Stat) -> (u64, u64) {
    (found.st_dev.into(), found.st_ino.into())
}

fn unavailable(why: &str) -> ForkError {
    let why = format!(
        "the kernel's landlock cannot confine a command ({why}); Linux 6.2 or later can, with landlock among the modules \
         that `lsm=` starts. Nothing was run; without confinement run it in the fork's workspace yourself"
    );
    ForkError::refused("fork_unavailable", why)
}
