//! What no agent reads and every agent relies on: HEAD, and the lockfiles in the root.

use super::{Import, invariant};
use crate::protocol::context::{Belief, Source};
use crate::protocol::path::WirePath;
use crate::session::digest::CommitId;
use crate::world::probe::git::{self, Head};
use std::path::PathBuf;

/// Dependency lockfiles that are registered as invariants when they stand in the root.
pub const LOCKFILES: [&str; 17] = [
    "Cargo.lock",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "bun.lock",
    "uv.lock",
    "poetry.lock",
    "Pipfile.lock",
    "go.sum",
    "Gemfile.lock",
    "composer.lock",
    "mix.lock",
    "flake.lock",
    "gradle.lockfile",
    "packages.lock.json",
    "deno.lock",
];

impl Import<'_> {
    /// HEAD, where there is a repository. `seen` is the commit that the session was told of.
    pub(super) fn head(&mut self, seen: Option<&str>) -> Option<Belief> {
        if !self.repository {
            self.notes.no_repository = true;
            return None;
        }
        let source = Source {
            kind: "git_head".to_owned(),
            path: Some(WirePath(PathBuf::from("."))),
            policy: Some("relevant".to_owned()),
            ..Source::default()
        };
        // Where the agent did not say, the daemon's own look stands in and the answer shows that it does.
        let digest = seen.filter(|seen| CommitId::parse(seen).is_some()).map(str::to_owned);
        Some(Belief { digest, ..invariant("git_head", source) })
    }

    /// The lockfiles that are there.
    pub(super) fn lockfiles(&self) -> Vec<Belief> {
        let here = LOCKFILES.iter().filter(|name| self.places.root.join(name).is_file());
        let lockfile = |name: &&str| {
            let path = Some(WirePath(PathBuf::from(name)));
            let source = Source { kind: "lockfile".to_owned(), path, ..Source::default() };
            invariant(&format!("lockfile:{name}"), source)
        };
        here.map(lockfile).collect()
    }
}

/// Whether the root is in a repository whose HEAD can be read.
pub(super) fn in_repository(root: &std::path::Path) -> bool {
    !matches!(git::head(root).head, Head::NoRepository | Head::Unreadable { .. })
}
