//! What a git command's answer rests on: HEAD, the index, the tree; or on refs that nobody here watches.

use super::Input;
use crate::agent::shell::Word;
use crate::agent::spelling;

/// What a part of git reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// HEAD, the index and the tree.
    Tree,
    /// Commits, found from HEAD unless it is told others.
    Commits,
    /// Files of the tree, below the folder it runs in.
    Files,
    /// Refs and settings of which only HEAD is watched.
    Refs,
    /// Another machine.
    Network,
}

/// The parts of git that change nothing; all others are taken to write.
const PARTS: [(Part, &str); 5] = [
    (Part::Tree, "status diff blame"),
    (
        Part::Commits,
        "log show rev-parse rev-list merge-base shortlog ls-tree cat-file whatchanged range-diff diff-tree",
    ),
    (Part::Files, "grep ls-files check-ignore"),
    (
        Part::Refs,
        "branch tag remote config reflog show-ref for-each-ref worktree stash symbolic-ref version help describe \
         show-branch name-rev",
    ),
    (Part::Network, "ls-remote fetch"),
];

/// Words that make one of [`Part::Refs`] say rather than do.
const SAYING: [&str; 21] = [
    "-a",
    "-r",
    "-v",
    "-vv",
    "-l",
    "--all",
    "--list",
    "--show-current",
    "--remotes",
    "--contains",
    "--merged",
    "--no-merged",
    "list",
    "show",
    "get-url",
    "--get",
    "--get-all",
    "--verify",
    "--short",
    "--format",
    "--sort",
];

/// What git tells.
pub(super) enum Git {
    /// Something that rests on these.
    Reads(Vec<Input>),
    /// Something that nobody here watches.
    Volatile(&'static str),
    /// Nothing: it does something.
    Writes,
}

/// Judges the words after `git`, run in `folder`.
pub(super) fn judge(words: &[Word], folder: &str) -> Git {
    let (words, folder) = match words {
        [option, there, rest @ ..] if option.text == "-C" && there.literal => {
            let there = spelling::resolve(Some(folder), &there.text);
            return there.map_or(Git::Volatile("unknown"), |there| judge(rest, &there.to_string_lossy()));
        }
        [option, ..]
            if ["--git-dir", "--work-tree", "-C"].iter().any(|other| option.text.starts_with(other)) =>
        {
            return Git::Volatile("another repository");
        }
        [option, rest @ ..] if option.text.starts_with("--no-") => (rest, folder),
        words => (words, folder),
    };
    let Some((part, rest)) = words.split_first() else { return Git::Volatile("unknown") };
    let known = PARTS.iter().find(|(_, names)| names.split_whitespace().any(|name| name == part.text));
    let Some((kind, _)) = known else { return Git::Writes };
    match kind {
        Part::Network => Git::Volatile("network"),
        Part::Refs if says(&part.text, rest) => Git::Volatile("git refs"),
        Part::Refs => Git::Writes,
        Part::Files => Git::Reads(vec![Input::Tree(folder.into()), Input::Index(folder.into())]),
        Part::Tree | Part::Commits if names_other_refs(rest) => Git::Volatile("git refs"),
        Part::Commits => Git::Reads(vec![Input::Head(folder.into())]),
        Part::Tree => Git::Reads(vec![
            Input::Head(folder.into()),
            Input::Index(folder.into()),
            Input::Tree(folder.into()),
        ]),
    }
}

fn says(part: &str, rest: &[Word]) -> bool {
    let read_only = matches!(
        part,
        "reflog" | "show-ref" | "for-each-ref" | "version" | "help" | "describe" | "show-branch" | "name-rev"
    );
    // Alone, `git stash` puts changes away; all others list.
    let alone = rest.is_empty() && part != "stash";
    let first = rest.first().map(|word| word.text.split('=').next().unwrap_or_default());
    let asked = first.is_some_and(|first| SAYING.contains(&first));
    read_only || alone || asked || (part == "config" && rest.len() == 1)
}

/// Whether a revision is named that is not found from HEAD: its branch may move while HEAD stays.
fn names_other_refs(words: &[Word]) -> bool {
    let revisions = words.iter().take_while(|word| word.text != "--");
    revisions.into_iter().any(|word| match word.text.as_str() {
        "--all" | "--branches" | "--remotes" | "--tags" | "--glob" | "--abbrev-ref" | "--decorate" => true,
        option if option.starts_with('-') => false,
        revision => !word.literal || revision.split("..").any(|end| !is_fixed(end.trim_start_matches('.'))),
    })
}

/// Whether it is HEAD, a commit by its id, a number, or has the looks of a path.
fn is_fixed(revision: &str) -> bool {
    // A dot before letters begins the ending of a file's name; before digits it is part of a version.
    let ending = revision.rsplit_once('.').and_then(|(_, ending)| ending.chars().next());
    let is_path = ending.is_some_and(|letter| letter.is_ascii_alphabetic()) && !revision.contains(':');
    let named = revision.split([':', '~', '^', '@']).next().unwrap_or_default();
    let hex = named.len() >= 4 && named.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = named.bytes().all(|byte| byte.is_ascii_digit());
    revision.is_empty() || named == "HEAD" || hex || number || is_path || revision.ends_with('/')
}
