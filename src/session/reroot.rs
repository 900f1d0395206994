//! The same beliefs about the same tree in another place.
//!
//! What is spelled relative to the root means the other place by itself; what leads out of the tree goes on meaning what it
//! meant, by its absolute path.

use super::context::{Belief, Fact, Update};
use super::source::{Source, absolute, normal};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// A tree, and where it stands elsewhere.
#[derive(Debug, Clone)]
pub struct Move {
    /// The root that relative paths were told against.
    pub root: PathBuf,
    /// Every spelling of the top of the tree that was left.
    pub trees: Vec<PathBuf>,
    /// The top of the other.
    pub to: PathBuf,
}

impl Move {
    /// Where a path leads now. `None` when it leads there by itself, being spelled relative to the root.
    fn moved(&self, path: &Path) -> Option<PathBuf> {
        let full = normal(&absolute(&self.root, path));
        match self.trees.iter().find_map(|tree| full.strip_prefix(tree).ok()) {
            Some(_) if path.is_relative() => None,
            Some(below) if below.as_os_str().is_empty() => Some(self.to.clone()),
            Some(below) => Some(self.to.join(below)),
            None => Some(absolute(&self.root, path)),
        }
    }

    fn path(&self, path: &mut PathBuf) {
        if let Some(moved) = self.moved(path) {
            *path = moved;
        }
    }

    fn source(&self, source: &mut Source) {
        match source {
            Source::File { path }
            | Source::Lines { path, .. }
            | Source::Absent { path }
            | Source::GitHead { path, .. }
            | Source::Lockfile { path }
            | Source::Tree { path, .. }
            | Source::SqliteSchema { path } => self.path(path),
            Source::Command { cwd, inputs, .. } => {
                cwd.iter_mut().for_each(|cwd| self.path(cwd));
                inputs.iter_mut().for_each(|input| self.source(input));
            }
            Source::Volatile { .. } => {}
        }
    }

    fn beliefs(&self, beliefs: Vec<Belief>) -> Vec<Belief> {
        let moved = |mut belief: Belief| {
            self.source(&mut belief.source);
            belief
        };
        beliefs.into_iter().map(moved).collect()
    }

    /// What was told about the tree, told about the other. Its root is left to whoever knows where it stands.
    #[must_use]
    pub fn apply(&self, told: Update) -> Update {
        let ids = told.results.iter().chain(&told.invariants).map(|belief| belief.id.clone());
        let ids: HashSet<String> = ids.collect();
        let fact = |mut fact: Fact| {
            let named = |source: &&mut PathBuf| source.to_str().is_none_or(|id| !ids.contains(id));
            fact.sources.iter_mut().filter(named).for_each(|source| self.path(source));
            fact
        };
        Update {
            facts: told.facts.into_iter().map(fact).collect(),
            results: self.beliefs(told.results),
            invariants: self.beliefs(told.invariants),
            ..told
        }
    }
}

/// What was told with every path spelled in full, and every id behind a prefix: to be held against the same places by
/// somebody with another root.
#[must_use]
pub fn in_full(told: Update, root: &Path, prefix: &str) -> Update {
    // No tree to be moved: everything leads out of it, and is spelled in full.
    let stay = Move { root: root.to_owned(), trees: Vec::new(), to: PathBuf::new() };
    let told = stay.apply(told);
    let named = |mut belief: Belief| {
        belief.id = format!("{prefix}{}", belief.id);
        belief
    };
    Update {
        results: told.results.into_iter().map(named).collect(),
        invariants: told.invariants.into_iter().map(named).collect(),
        facts: Vec::new(),
        ..told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::SessionId;
    use crate::session::context::Seen;

    fn there() -> Move {
        Move {
            root: "/w/app/sub".into(),
            trees: vec!["/w/app".into(), "/link/app".into()],
            to: "/f/ws".into(),
        }
    }

    #[test]
    fn a_path_means_the_same_place_of_the_other_tree() {
        for (told, means) in [
            ("a.rs", "a.rs"),
            ("../a.rs", "../a.rs"),
            ("../../other/a", "/w/app/sub/../../other/a"),
            ("/w/app/sub/a.rs", "/f/ws/sub/a.rs"),
            ("/w/app/./sub/../a.rs", "/f/ws/a.rs"),
            ("/link/app/a.rs", "/f/ws/a.rs"),
            ("/w/app", "/f/ws"),
            ("/w/application/a.rs", "/w/application/a.rs"),
            ("/etc/hosts", "/etc/hosts"),
        ] {
            let mut path = PathBuf::from(told);
            there().path(&mut path);
            assert_eq!(path, PathBuf::from(means), "{told}");
        }
    }

    #[test]
    fn commands_and_facts_go_along_and_ids_stay_what_they_are() {
        let belief = |id: &str, source| Belief {
            id: id.to_owned(),
            tool: None,
            critical: true,
            captured_at: None,
            source,
            seen: Seen::Unsaid,
            lf: None,
        };
        let inputs = vec![Source::File { path: "/w/app/b".into() }, Source::File { path: "c".into() }];
        let command = Source::Command { command: "make".to_owned(), cwd: Some("/w/app".into()), inputs };
        let sources = ["/w/app/a.rs", "/w/app/b.rs", "r1"].map(PathBuf::from).to_vec();
        let fact = Fact { id: "f".to_owned(), statement: "s".to_owned(), evidence: String::new(), sources };
        let told = Update {
            results: vec![
                belief("/w/app/a.rs", Source::File { path: "/w/app/a.rs".into() }),
                belief("r1", command),
            ],
            facts: vec![fact],
            ..Update::of(SessionId::new("s").unwrap())
        };
        let moved = there().apply(told.clone());
        assert_eq!(moved.results[0].id, "/w/app/a.rs");
        assert_eq!(moved.results[0].source.path(), Some(Path::new("/f/ws/a.rs")));
        let Source::Command { cwd, inputs, .. } = &moved.results[1].source else { panic!("a command") };
        assert_eq!(cwd.as_deref(), Some(Path::new("/f/ws")));
        assert_eq!(inputs[0].path(), Some(Path::new("/f/ws/b")));
        assert_eq!(inputs[1].path(), Some(Path::new("c")));
        let sources = ["/w/app/a.rs", "/f/ws/b.rs", "r1"].map(PathBuf::from);
        assert_eq!(moved.facts[0].sources, sources);
        let full = in_full(told, Path::new("/w/app/sub"), "base/");
        let Source::Command { inputs, .. } = &full.results[1].source else { panic!("a command") };
        assert_eq!(
            (full.results[1].id.as_str(), inputs[1].path()),
            ("base/r1", Some(Path::new("/w/app/sub/c")))
        );
    }
}
