//! What a fork will do, complete before anything is done: one branch, workspace and scratchpad for each hypothesis.

use super::policy::Policy;
use crate::index::storage::StoredHead;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// One branch of a fork.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// Branch name, `staled/<session>/<slug>`.
    pub branch: String,
    /// Its tree.
    pub workspace: PathBuf,
    /// Its private notes.
    pub scratchpad: PathBuf,
}

const SLUG_CHARS_MAX: usize = 40;

impl Branch {
    /// The id of the fork that it becomes: its branch without the `staled/` before it.
    #[must_use]
    pub fn id(&self) -> &str {
        self.branch.strip_prefix(PREFIX).unwrap_or(&self.branch)
    }
}

const PREFIX: &str = "staled/";

/// A fork's id, given that or the name of its branch.
#[must_use]
pub fn id_of(named: &str) -> &str {
    named.strip_prefix(PREFIX).unwrap_or(named)
}

pub(super) fn plan(head: &StoredHead, policy: &Policy) -> Vec<Branch> {
    branches(head.session.as_str(), &head.goal.hypotheses, &policy.forks, BTreeSet::new())
}

/// One branch for each hypothesis of a session, below the folder of all forks; `taken` are ids that others have.
#[must_use]
pub fn branches(
    session: &str,
    hypotheses: &[String],
    forks: &Path,
    mut taken: BTreeSet<String>,
) -> Vec<Branch> {
    let session = session_slug(session);
    let home = forks.join(&session);
    let mut branch = |hypothesis: &String| {
        let slug = unused(&session, &slug(hypothesis), &mut taken);
        Branch {
            branch: format!("{PREFIX}{session}/{slug}"),
            workspace: home.join(&slug).join("workspace"),
            scratchpad: home.join(&slug).join("scratchpad"),
        }
    };
    hypotheses.iter().map(&mut branch).collect()
}

/// Two sessions never share a slug: where it does not say the whole name, a hash of the name does.
pub(super) fn session_slug(name: &str) -> String {
    let slug = slug(name);
    if slug == name { slug } else { format!("{slug}-{:016x}", fnv1a(name)) }
}

/// FNV-1a, 64 bits: stable for ever, which the standard library's hashers do not promise.
fn fnv1a(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// A name that is safe as a path component and in a git reference: lower-case letters, digits and single dashes.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    for symbol in text.chars().flat_map(char::to_lowercase) {
        if slug.len() >= SLUG_CHARS_MAX {
            break;
        }
        if symbol.is_ascii_alphanumeric() {
            slug.push(symbol);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let trimmed = slug.trim_end_matches('-');
    if trimmed.is_empty() { "branch".to_owned() } else { trimmed.to_owned() }
}

fn unused(session: &str, slug: &str, taken: &mut BTreeSet<String>) -> String {
    let mut name = slug.to_owned();
    let mut next = 2;
    while !taken.insert(format!("{session}/{name}")) {
        name = format!("{slug}-{next}");
        next += 1;
    }
    name
}
