//! What a belief rests on, and how the client spelled it.

use std::path::{Component, Path, PathBuf};

/// A thing that can be looked at again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Source {
    /// The bytes of a file.
    File {
        /// As spelled by the client; relative to the session's root.
        path: PathBuf,
    },
    /// Some lines of a file: what else the file holds does not matter.
    Lines {
        /// As spelled by the client; relative to the session's root.
        path: PathBuf,
        /// Which lines.
        range: LineRange,
    },
    /// The absence of anything at a path: a failed read, a negative lookup.
    Absent {
        /// As spelled by the client; relative to the session's root.
        path: PathBuf,
    },
    /// The commit that HEAD resolves to.
    GitHead {
        /// Any folder of the repository.
        path: PathBuf,
        /// Whether another commit makes it stale.
        policy: HeadPolicy,
    },
    /// The bytes of a dependency lockfile.
    Lockfile {
        /// As spelled by the client; relative to the session's root.
        path: PathBuf,
    },
    /// The names below a folder, and what stands in the files.
    Tree {
        /// As spelled by the client; relative to the session's root.
        path: PathBuf,
        /// Which names, and whether their bytes matter.
        filter: Filter,
    },
    /// What a command printed, as long as its inputs are what they were.
    Command {
        /// Its text.
        command: String,
        /// Where it ran, as spelled by the client; relative to the session's root.
        cwd: Option<PathBuf>,
        /// What it read; none of them is a command.
        inputs: Vec<Source>,
    },
    /// The schema of an SQLite database; its data do not matter.
    SqliteSchema {
        /// As spelled by the client; relative to the session's root.
        path: PathBuf,
    },
    /// Something that nobody can watch: the network, the clock, chance.
    Volatile {
        /// `network`, `clock`, `random` or the client's own word.
        what: String,
    },
}

/// Consecutive lines of a file. A line ends with a line feed, and a carriage return before it is part of the end: the
/// text of a line is the same whichever way it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LineRange {
    /// The first line, counted from 1.
    pub start_line: u64,
    /// How many lines.
    pub lines: u64,
}

/// Which names below a folder a tree is about. `.git` never is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Filter {
    /// Globs as gitignore writes them; a name counts if one of them matches, or when there are none.
    pub include: Vec<String>,
    /// Globs as gitignore writes them; a name does not count, nor what is below it, if one of them matches.
    pub exclude: Vec<String>,
    /// The bytes of files count too.
    pub contents: bool,
    /// What `.gitignore` files leave out does not count.
    pub gitignore: bool,
}

impl Default for Filter {
    fn default() -> Self {
        Self { include: Vec::new(), exclude: Vec::new(), contents: true, gitignore: true }
    }
}

/// What a moved HEAD means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum HeadPolicy {
    /// Any other commit is stale.
    #[default]
    Strict,
    /// HEAD never makes anything stale by itself: the digests of the sources decide, and the row says from where to
    /// where it moved. (Measured: one commit later, 40 % of real sessions have no stale file at all.)
    Relevant,
}

impl Source {
    /// The wire's word for this kind of source.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::File { .. } | Self::Lines { .. } => "file",
            Self::Absent { .. } => "absent",
            Self::GitHead { .. } => "git_head",
            Self::Lockfile { .. } => "lockfile",
            Self::Tree { .. } => "tree",
            Self::Command { .. } => "command",
            Self::SqliteSchema { .. } => "sqlite_schema",
            Self::Volatile { .. } => "volatile",
        }
    }

    /// The path it names, as spelled; a command and a volatile source have none.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File { path }
            | Self::Lines { path, .. }
            | Self::Absent { path }
            | Self::GitHead { path, .. }
            | Self::Lockfile { path }
            | Self::Tree { path, .. }
            | Self::SqliteSchema { path } => Some(path),
            Self::Command { .. } | Self::Volatile { .. } => None,
        }
    }

    /// Whether a mistake about it should block a resume when the client did not say.
    #[must_use]
    pub fn critical_by_default(&self) -> bool {
        !matches!(self, Self::Volatile { .. })
    }
}

/// The path without `.`, and without what a `..` takes back: what its spelling alone tells. Two spellings of one place that
/// differ by a symlink are still two.
#[must_use]
pub fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(normal.components().next_back(), Some(Component::Normal(_))) => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}

/// `path` below `root`, absolute, without `.` and doubled slashes. `..` stays: across a symlink it does not mean the
/// lexical parent, so only a real lookup may resolve it.
#[must_use]
pub fn absolute(root: &Path, path: &Path) -> PathBuf {
    root.join(path).components().filter(|part| *part != Component::CurDir).collect()
}
