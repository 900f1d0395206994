//! Which filesystems carry our folders and the roots that agents work in, and how much room there is.

use super::answers::Asked;
use super::{Finding, Places, bytes};
use crate::world::{FilesystemKind, filesystem_at};
use std::io::ErrorKind;
use std::path::Path;

/// Room for one full decision log, and as much again for the index that follows a compaction.
const FREE_MIN: u64 = 128 * 1024 * 1024;

pub(super) fn check(places: &Places, asked: &Asked) -> Vec<Finding> {
    let mut findings = vec![ours("state", &places.folders.state), ours("runtime", &places.folders.runtime)];
    match &asked.roots {
        Ok(roots) if roots.is_empty() => findings.push(Finding::well("root", "no session has one yet")),
        Ok(roots) => findings.extend(roots.iter().map(|path| root(path))),
        // That nobody answers is said where the socket is looked at.
        Err(_) if asked.hello.is_err() => {
            findings.push(Finding::well("root", "not known without a daemon"));
        }
        Err(why) => {
            let found = format!("the daemon does not tell its roots: {why}");
            findings.push(Finding::wrong("root", found, "`staled list` asks again"));
        }
    }
    findings.push(room(&places.folders.state));
    findings
}

/// A folder of ours that is missing is made by the daemon.
fn ours(name: &'static str, path: &Path) -> Finding {
    let shown = path.display();
    match filesystem_at(path) {
        Ok((FilesystemKind::Unwatchable, word)) => Finding::wrong(
            name,
            format!("{shown} is on {word}, which is not known to report changes"),
            "put it on a local filesystem, with --state and --runtime of `staled serve`",
        ),
        Ok((_, word)) => Finding::well(name, format!("{shown} is on {word}")),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Finding::well(name, format!("{shown} is not there yet, `staled serve` makes it"))
        }
        Err(error) => Finding::wrong(
            name,
            format!("{shown} cannot be looked at: {error}"),
            "ask as the user of the daemon",
        ),
    }
}

fn root(path: &Path) -> Finding {
    const NAME: &str = "root";
    let shown = path.display();
    match filesystem_at(path) {
        Ok((FilesystemKind::Unwatchable, word)) => Finding::wrong(
            NAME,
            format!(
                "{shown} is on {word}, which is not known to report changes, so what it holds is unknown"
            ),
            "move it, or set verify.unwatchable = \"verify\", which looks for every question",
        ),
        Ok((FilesystemKind::Overlay, word)) => Finding::well(
            NAME,
            format!("{shown} is on {word}; what is done to its layers behind its back is not reported"),
        ),
        Ok((FilesystemKind::Coarse, word)) => {
            Finding::well(NAME, format!("{shown} is on {word}, whose times are coarse"))
        }
        Ok((FilesystemKind::Local, word)) => Finding::well(NAME, format!("{shown} is on {word}")),
        Err(error) if error.kind() == ErrorKind::NotFound => Finding::wrong(
            NAME,
            format!("{shown} is not there"),
            "mount it, or forget its sessions: `staled list`, `staled drop SESSION`",
        ),
        Err(error) => Finding::wrong(
            NAME,
            format!("{shown} cannot be looked at: {error}"),
            "let the daemon's user enter every folder on the way",
        ),
    }
}

fn room(state: &Path) -> Finding {
    // A folder that is not there yet will be where its nearest ancestor is.
    let there = state.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    match rustix::fs::statvfs(there) {
        Ok(found) => enough(state, found.f_bavail.saturating_mul(found.f_frsize)),
        Err(error) => {
            let found = format!("the space for {} cannot be told: {error}", state.display());
            Finding::wrong("space", found, "ask as the user of the daemon")
        }
    }
}

pub(super) fn enough(state: &Path, free: u64) -> Finding {
    let found = format!("{} free for {}", bytes(free), state.display());
    if free < FREE_MIN {
        return Finding::wrong("space", found, format!("make room for {} at least", bytes(FREE_MIN)));
    }
    Finding::well("space", found)
}
