//! What is answered about forks.

use super::record::{Fork, Isolation, LeftOut, Mode, Stage};
use crate::protocol::path::WirePath;
use crate::protocol::time;
use crate::session::moment::Moment;
use serde::{Deserialize, Serialize};

/// Answer to `fork.create`, and what `decide` adds when it provisions.
#[derive(Debug, Serialize)]
pub struct Created {
    /// One a hypothesis.
    pub forks: Vec<Told>,
    /// What was asked to be copied and is not there, by name.
    pub missing: Vec<WirePath>,
}

/// One fork, told to a client.
#[derive(Debug, Serialize)]
pub struct Told {
    /// Its id, and the name of its session.
    pub fork: String,
    /// The session that it branched off.
    pub session: String,
    /// What it tries.
    pub hypothesis: String,
    /// `making`, `ready` or `ending`.
    pub stage: Stage,
    /// `git` or `copy`.
    pub mode: Mode,
    /// Its branch.
    pub branch: String,
    /// Its tree.
    pub workspace: WirePath,
    /// Its private notes.
    pub scratchpad: WirePath,
    /// What corresponds to the session's root.
    pub root: WirePath,
    /// The commit that it began at.
    pub base: Option<String>,
    /// The tree that it came from.
    pub parent: WirePath,
    /// The branch that was checked out there.
    pub parent_branch: Option<String>,
    /// When it was made.
    pub made_at: String,
    /// Whether it needs nothing of the parent's repository any more.
    pub independent: bool,
    /// Whether its tree was what the session had seen when it began.
    pub workspace_matches: bool,
    /// What of the session's rows it did not match.
    pub differs: Vec<String>,
    /// What of the parent's tree is not in it.
    pub left_out: Vec<LeftOut>,
    /// What was asked to be copied and is not there, by name.
    pub missing: Vec<WirePath>,
    /// Symlinks that lead into the parent's tree or another fork's.
    pub shared_by_symlink: Vec<WirePath>,
    /// Whether somebody else wrote in it.
    pub isolation_broken: bool,
    /// What is known of that.
    pub isolation: Isolation,
}

impl From<Fork> for Told {
    fn from(fork: Fork) -> Self {
        Self {
            isolation_broken: fork.isolation.state == super::record::Isolated::Broken,
            made_at: time::to_text(Moment::from_micros(fork.made_at)),
            fork: fork.fork,
            session: fork.session,
            hypothesis: fork.hypothesis,
            stage: fork.stage,
            mode: fork.mode,
            branch: fork.branch,
            workspace: fork.workspace,
            scratchpad: fork.scratchpad,
            root: fork.root,
            base: fork.base,
            parent: fork.parent.tree,
            parent_branch: fork.parent.branch,
            independent: fork.independent,
            workspace_matches: fork.differs.is_empty(),
            differs: fork.differs,
            left_out: fork.left_out,
            missing: fork.missing,
            shared_by_symlink: fork.shared_by_symlink,
            isolation: fork.isolation,
        }
    }
}

/// Answer to `fork.list`.
#[derive(Debug, Serialize)]
pub struct Listed {
    /// By id.
    pub forks: Vec<Status>,
}

/// Answer to `fork.status`: the fork, and what happened since it was made.
#[derive(Debug, Serialize)]
pub struct Status {
    /// The fork.
    #[serde(flatten)]
    pub fork: Told,
    /// What moved since.
    #[serde(flatten)]
    pub moved: Moved,
    /// Commands that run under `fork exec` now.
    pub running: usize,
    /// How often an access was denied since the daemon started.
    pub denied: u64,
}

/// What moved since a fork was made.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// What the parent did; none when it stands where it stood.
    pub base_moved: Option<BaseMoved>,
    /// What differs in the fork from what it began with.
    pub changed: Paths,
    /// What both changed.
    pub both_changed: Paths,
}

/// What the parent did since.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct BaseMoved {
    /// HEAD, where it is another commit or branch now.
    pub head: Option<HeadMoved>,
    /// What differs in its tree.
    pub changed: Paths,
}

/// From which commit to which.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct HeadMoved {
    /// The commit then.
    pub was: Option<String>,
    /// The commit now.
    pub now: Option<String>,
}

/// Paths below the tree, sorted; none where they cannot be told.
pub type Paths = Option<Vec<WirePath>>;

/// Answer to `fork.access`.
#[derive(Debug, Serialize)]
pub struct Access {
    /// `allow` or `deny`.
    pub access: &'static str,
    /// One sentence.
    pub reason: String,
    /// Whether somebody else wrote in the fork that asks.
    pub isolation_broken: bool,
}

/// Answer to `fork.exec`, when a command begins: what whoever runs it confines it by.
#[derive(Debug, Serialize, Deserialize)]
pub struct Confinement {
    /// The fork's id.
    pub fork: String,
    /// Its number, to be told when it has ended.
    pub exec: u64,
    /// Where it runs, and may write.
    pub workspace: WirePath,
    /// Where it may write too.
    pub scratchpad: WirePath,
    /// What corresponds to the session's root.
    pub root: WirePath,
    /// Held, shared, for as long as anything of it runs.
    pub lock: WirePath,
    /// What it may neither read nor list: the parent's tree, and everything of other forks.
    pub hidden: Vec<WirePath>,
    /// What it may read although it is hidden: objects that it shares.
    pub readable: Vec<WirePath>,
    /// Whether somebody else wrote in it.
    pub isolation_broken: bool,
}

/// Answer to `fork.discard`.
#[derive(Debug, Serialize)]
pub struct Discarded {
    /// The fork's id.
    pub fork: String,
    /// True.
    pub discarded: bool,
    /// What is kept of it; none when there was nothing that is not in the parent.
    pub kept: Option<Kept>,
}

/// Where the work of a discarded fork is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// A repository, or outside git a folder.
    pub path: WirePath,
    /// The last commit of its branch.
    pub commit: Option<String>,
    /// A commit of what was not committed.
    pub uncommitted: Option<String>,
    /// A command that brings it back.
    pub fetch: Option<String>,
}
