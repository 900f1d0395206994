//! What can happen to the world: one variant a kind, chosen by seed, carried out in the second process.

use super::head::COMMITS;
use super::layout::{FILES, FOLDERS, LINKS, OTHER_PATHS, VERSIONS};
use super::trees::{RULE_FILES, RULES};
use fastrand::Rng;
use serde::{Deserialize, Serialize};

/// One operation. Paths are relative to the world.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Operation {
    /// `open(O_TRUNC)` and write.
    Truncate {
        path: String,
        version: u8,
    },
    /// `pwrite` over what is there, then cut to length.
    Overwrite {
        path: String,
        version: u8,
    },
    Append {
        path: String,
    },
    /// Two writes of the same size within one tick of the clock.
    WriteTwice {
        path: String,
        first: u8,
        second: u8,
    },
    SaveLocal {
        path: String,
        version: u8,
    },
    SaveForeign {
        path: String,
        version: u8,
    },
    /// The old inode stays open, and is written to by `HeldWrite`.
    SaveWhileHeld {
        path: String,
        version: u8,
    },
    HeldWrite {
        version: u8,
    },
    /// In place, then the old mtime is put back.
    WriteKeepingTime {
        path: String,
        version: u8,
    },
    /// By `cp -p`, `touch -r` or `rsync -t`.
    CopyKeepingTime {
        path: String,
        version: u8,
        tool: u8,
    },
    /// A store through a shared mapping, then munmap.
    Map {
        path: String,
        version: u8,
    },
    Unlink {
        path: String,
    },
    Recreate {
        path: String,
        version: u8,
    },
    Chmod {
        path: String,
        mode: u32,
    },
    Touch {
        path: String,
    },
    Fifo {
        path: String,
    },
    FileToFolder {
        path: String,
    },
    /// Another name, in a folder that nobody watches or in a watched one.
    Link {
        path: String,
        name: String,
    },
    /// A name that exists is made one of another file, by way of a rename.
    LinkOver {
        path: String,
        name: String,
    },
    Retarget {
        link: String,
        target: String,
        atomic: bool,
    },
    Rename {
        from: String,
        to: String,
    },
    RenameAway {
        path: String,
    },
    RenameBack {
        path: String,
    },
    ThereAndBack {
        path: String,
    },
    Exchange {
        one: String,
        other: String,
    },
    /// Three renames.
    Swap {
        one: String,
        other: String,
    },
    RemoveTree {
        folder: String,
    },
    Rebuild {
        folder: String,
        version: u8,
    },
    RenameAndRebuild {
        folder: String,
        version: u8,
    },
    FolderToLink {
        folder: String,
    },
    LinkToFolder {
        folder: String,
    },
    /// A chain of folders made and removed again from the end.
    MakeAndRemoveFolders {
        folder: String,
    },
    /// A rule file is written, or removed where it says nothing.
    Rules {
        path: String,
        text: usize,
        atomic: bool,
    },
    /// A chain of folders with files in it, in one breath.
    Chain {
        folder: String,
        version: u8,
    },
    /// `cp -a` of a folder over another.
    CopyOver {
        from: String,
        to: String,
    },
    Head(HeadMove),
    /// The whole world is removed and built again.
    Reset,
}

/// How HEAD moves.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum HeadMove {
    Branch { branch: String, commit: usize, atomic: bool },
    Symbolic { branch: String },
    Detach { commit: usize },
    Pack { commit: usize },
    Git { arguments: Vec<String> },
    Remove,
}

impl Operation {
    /// Its kind, for counting.
    pub(super) fn kind(&self) -> String {
        let text = format!("{self:?}");
        let end = if let Self::Head(_) = self { ['{', ')'] } else { [' ', ' '] };
        text.split(end).next().unwrap_or_default().trim().to_owned()
    }

    /// A random one.
    pub(crate) fn choose(chance: &mut Rng) -> Self {
        match chance.u8(..100) {
            0..40 => of_file(chance),
            40..60 => of_name(chance),
            60..68 => of_link(chance),
            68..92 => of_folder(chance),
            92..97 => Self::Head(head_move(chance)),
            97..99 => Self::Reset,
            _ => Self::Exchange { one: "r".into(), other: "twin".into() },
        }
    }

    /// A random one for a world of trees: no name is made outside of them for a file that is in them.
    pub(super) fn choose_for_trees(chance: &mut Rng) -> Self {
        match chance.u8(..10) {
            0 => {
                let file = RULE_FILES[chance.usize(..RULE_FILES.len())];
                let (text, atomic) = (chance.usize(..RULES.len()), chance.bool());
                return Self::Rules { path: format!("{}/{file}", root(chance)), text, atomic };
            }
            1 => {
                let name = ["new", "x", "deep", "3"][chance.usize(..4)];
                return Self::Chain {
                    folder: format!("{}/{name}/b/c", folder(chance)),
                    version: version(chance),
                };
            }
            2 => return Self::CopyOver { from: folder(chance), to: folder(chance) },
            _ => {}
        }
        loop {
            let operation = Self::choose(chance);
            if !operation.is_by_another_name() {
                return operation;
            }
        }
    }

    /// Whether it makes another name for a file, writes by one that may be nobody's, or keeps a file open that has another
    /// name: what a live writer may do to that one cannot be told.
    pub(super) fn is_by_another_name(&self) -> bool {
        let links = matches!(
            self,
            Self::Link { .. } | Self::LinkOver { .. } | Self::HeldWrite { .. } | Self::SaveWhileHeld { .. }
        );
        links || format!("{self:?}").contains("foreign/link")
    }

    /// A random one that changes bytes and no name.
    pub(super) fn choose_write(chance: &mut Rng) -> Self {
        let path = if chance.bool() { other_name(chance) } else { file(chance) };
        match chance.u8(..4) {
            0 => Self::Truncate { path, version: version(chance) },
            1 => Self::HeldWrite { version: version(chance) },
            _ => Self::Overwrite { path, version: version(chance) },
        }
    }

    /// A random one that a careless comparison of stats would miss.
    pub(super) fn choose_sly(chance: &mut Rng) -> Self {
        let path = format!("r/{}", FILES[chance.usize(..FILES.len())]);
        let version = chance.u8(..4);
        match chance.u8(..8) {
            0 => Self::CopyKeepingTime { path, version, tool: chance.u8(..3) },
            1 => Self::Map { path, version },
            2 => Self::Overwrite { path, version },
            _ => Self::WriteKeepingTime { path, version },
        }
    }
}

fn of_file(chance: &mut Rng) -> Operation {
    let (path, version) = (file(chance), version(chance));
    match chance.u8(..26) {
        0..3 => Operation::Truncate { path, version },
        3..6 => Operation::Overwrite { path, version },
        6 => Operation::Append { path },
        7..9 => Operation::WriteTwice { path, first: chance.u8(..4), second: chance.u8(..4) },
        9..12 => Operation::SaveLocal { path, version },
        12..14 => Operation::SaveForeign { path, version },
        14..16 => Operation::SaveWhileHeld { path, version },
        16..18 => Operation::HeldWrite { version },
        18..20 => Operation::WriteKeepingTime { path, version },
        20 if chance.u8(..4) == 0 => Operation::CopyKeepingTime { path, version, tool: chance.u8(..3) },
        20..23 => Operation::Map { path, version: chance.u8(..4) },
        23 => Operation::Chmod { path, mode: if chance.bool() { 0o600 } else { 0o644 } },
        _ => Operation::Touch { path },
    }
}

fn of_name(chance: &mut Rng) -> Operation {
    let path = file(chance);
    match chance.u8(..20) {
        0..2 => Operation::Unlink { path },
        2..5 => Operation::Recreate { path, version: version(chance) },
        5..8 => Operation::Link { path, name: other_name(chance) },
        8..11 => Operation::LinkOver { path, name: file(chance) },
        11..13 => Operation::Rename { from: path, to: file(chance) },
        13 => Operation::RenameAway { path },
        14 => Operation::RenameBack { path },
        15..17 => Operation::ThereAndBack { path },
        17 => Operation::Exchange { one: path, other: file(chance) },
        18 => Operation::FileToFolder { path },
        _ => Operation::Fifo { path },
    }
}

fn of_link(chance: &mut Rng) -> Operation {
    let root = root(chance);
    let (link, first) = LINKS[chance.usize(..LINKS.len())];
    let below = if link.starts_with("links/") { "../" } else { "" };
    let folders = ["real", "turn", "swap/left", "nowhere"];
    let files = ["targets/t1", "targets/t2", "targets/t3", "plain/a", "hard/one", "late/m", "nowhere"];
    let choices: &[&str] = if below.is_empty() { &folders } else { &files };
    let chosen = choices[chance.usize(..choices.len())];
    let target = match chance.u8(..4) {
        0 => first.to_owned(),
        1 => format!("/r/{chosen}"),
        _ => format!("{below}{chosen}"),
    };
    Operation::Retarget { link: format!("{root}/{link}"), target, atomic: chance.bool() }
}

fn of_folder(chance: &mut Rng) -> Operation {
    let (path, version) = (folder(chance), version(chance));
    let turn =
        format!("{}/{}", root(chance), ["turn", "turn-other", "real", "deep/1", "plain"][chance.usize(..5)]);
    match chance.u8(..26) {
        0..3 => Operation::Exchange { one: path, other: folder(chance) },
        3..5 => Operation::Swap { one: path, other: folder(chance) },
        5..7 => Operation::RemoveTree { folder: path },
        7..12 => Operation::Rebuild { folder: path, version },
        12..14 => Operation::RenameAndRebuild { folder: path, version },
        14..17 => Operation::FolderToLink { folder: turn },
        17..20 => Operation::LinkToFolder { folder: turn },
        20 => Operation::RenameAway { path },
        21..23 => Operation::RenameBack { path },
        23..25 => Operation::ThereAndBack { path },
        _ => Operation::MakeAndRemoveFolders { folder: format!("{}/gone/dir/more", root(chance)) },
    }
}

fn head_move(chance: &mut Rng) -> HeadMove {
    let branch = if chance.bool() { "main" } else { "other" }.to_owned();
    let commit = chance.usize(..COMMITS);
    match chance.u8(..40) {
        0..16 => HeadMove::Branch { branch, commit, atomic: chance.u8(..4) > 0 },
        16..22 => HeadMove::Symbolic { branch },
        22..28 => HeadMove::Detach { commit },
        28..35 => HeadMove::Pack { commit },
        35 => HeadMove::Remove,
        _ => HeadMove::Git { arguments: git_arguments(chance, branch) },
    }
}

fn git_arguments(chance: &mut Rng, branch: String) -> Vec<String> {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    match chance.u8(..5) {
        0 => words("pack-refs --all"),
        1 => words("commit -q --allow-empty -m more"),
        2 => words("checkout -q --detach HEAD"),
        3 => words("update-ref HEAD HEAD~1"),
        _ => vec!["checkout".to_owned(), "-q".to_owned(), branch],
    }
}

fn root(chance: &mut Rng) -> &'static str {
    if chance.u8(..12) == 0 { "twin" } else { "r" }
}

fn version(chance: &mut Rng) -> u8 {
    if chance.u8(..3) > 0 { chance.u8(..4) } else { chance.u8(..VERSIONS) }
}

fn folder(chance: &mut Rng) -> String {
    format!("{}/{}", root(chance), FOLDERS[chance.usize(..FOLDERS.len())])
}

fn other_name(chance: &mut Rng) -> String {
    format!("foreign/link-{}", chance.u8(..6))
}

/// Mostly a registered file or what leads to one, now and then a link made to one.
fn file(chance: &mut Rng) -> String {
    match chance.u8(..12) {
        0..2 => other_name(chance),
        2..5 => format!("{}/{}", root(chance), OTHER_PATHS[chance.usize(..OTHER_PATHS.len())]),
        _ => format!("{}/{}", root(chance), FILES[chance.usize(..FILES.len())]),
    }
}
