//! What forks need of the machine: git, a kernel that confines their commands, and a filesystem that shares blocks.

use super::{Finding, Places};
use crate::fork::confine;
use crate::fork::git::{Git, GitError};
use crate::fork::merge;
use std::path::Path;

/// Filesystems whose files can share blocks, by the number that statfs gives.
const SHARING: [(u64, &str); 4] =
    [(0x9123_683e, "btrfs"), (0x5846_5342, "xfs"), (0xca45_1a4e, "bcachefs"), (0x7461_636f, "ocfs2")];

pub(super) fn check(places: &Places) -> Vec<Finding> {
    let version = Git::find().and_then(|git| git.version());
    let confined = confine::available().map_err(|error| error.to_string());
    vec![git(version), confinement(confined), blocks(kind(&places.folders.state))]
}

fn git(version: Result<(u32, u32), GitError>) -> Finding {
    const NAME: &str = "git";
    let (least, more) = merge::OLDEST;
    match version {
        Ok(found) if found < merge::OLDEST => Finding::wrong(
            NAME,
            format!("{}.{} makes forks, and cannot merge them", found.0, found.1),
            format!("install git {least}.{more} or newer for `staled fork merge --apply`"),
        ),
        Ok((major, minor)) => Finding::well(NAME, format!("{major}.{minor}")),
        Err(error) => {
            let (said, install) = (error.to_string(), format!("install git {least}.{more} or newer"));
            // These two say what would help.
            let helped = matches!(error, GitError::Missing | GitError::TooOld { .. });
            let (found, remedy) =
                helped.then(|| said.split_once(": ")).flatten().unwrap_or((&said, &install));
            Finding::wrong(NAME, found, remedy)
        }
    }
}

fn confinement(available: Result<(), String>) -> Finding {
    const NAME: &str = "fork exec";
    match available {
        Ok(()) => Finding::well(NAME, "the kernel confines the commands of forks"),
        Err(why) => Finding::wrong(
            NAME,
            why.split(';').next().unwrap_or(&why),
            "Linux 6.2 or later, with landlock among the modules that `lsm=` starts",
        ),
    }
}

/// Nothing is wrong where they cannot: it takes longer and more room.
fn blocks(kind: Option<u64>) -> Finding {
    const NAME: &str = "fork copies";
    let sharing = SHARING.iter().find(|(number, _)| Some(*number) == kind);
    match (sharing, kind) {
        (Some((_, name)), _) => {
            Finding::well(NAME, format!("share blocks with their parent on the same {name}"))
        }
        (None, Some(_)) => Finding::well(
            NAME,
            "are made byte by byte; a state folder on btrfs or xfs, where the repositories are too, would share blocks",
        ),
        (None, None) => {
            Finding::wrong(NAME, "no folder for them can be looked at", "see the state folder above")
        }
    }
}

/// Of the folder, or of what it will be made in.
fn kind(state: &Path) -> Option<u64> {
    let there = state.ancestors().find(|folder| folder.exists())?;
    rustix::fs::statfs(there).ok().map(|found| u64::from(found.f_type as u32))
}

#[cfg(test)]
mod tests {
    use super::{blocks, confinement, git};
    use crate::fork::git::GitError;

    #[test]
    fn each_thing_that_is_missing_comes_with_what_would_help() {
        assert!(git(Ok((2, 38))).is_well() && !git(Ok((2, 37))).is_well());
        assert!(git(Ok((2, 37))).remedy.unwrap().contains("2.38"));
        let missing = git(Err(GitError::Missing));
        assert_eq!(missing.found, "git is not on the PATH of the daemon");
        assert!(missing.remedy.unwrap().starts_with("install git 2.31"));
        let old = git(Err(GitError::TooOld { found: "2.20".into() }));
        assert!(old.found.contains("2.20") && old.remedy.unwrap().contains("2.31"));
        let failed = GitError::Failed {
            what: "say its version",
            status: "exit status: 1".into(),
            said: "fatal: no".into(),
        };
        let failed = git(Err(failed));
        assert_eq!(failed.found, "git could not say its version (exit status: 1): fatal: no");
        assert_eq!(failed.remedy.unwrap(), "install git 2.38 or newer");
        assert!(confinement(Ok(())).is_well());
        let unconfined = confinement(Err("the kernel's landlock cannot confine (why); Linux".into()));
        assert_eq!(unconfined.found, "the kernel's landlock cannot confine (why)");
        assert!(unconfined.remedy.unwrap().contains("lsm="));
        assert!(blocks(Some(0x9123_683e)).found.contains("btrfs"));
        assert!(blocks(Some(0xef53)).is_well() && blocks(Some(0xef53)).found.contains("byte by byte"));
        assert!(!blocks(None).is_well());
    }
}
