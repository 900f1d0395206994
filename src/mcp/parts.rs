//! What arguments are made of: paths, goals, and the sources that a memory rests on.

use super::schema::{Field, Kind, may, must};

/// Any number of texts.
pub const TEXTS: Kind = Kind::List(&Kind::Text);

/// A path: text, or base64 of a name that is not UTF-8.
pub const PATH: Kind = Kind::Any(&[Kind::Text, Kind::Object(BYTES)]);

const BYTES: &[Field] = &[must("bytes", Kind::Text, "Base64 of a path that is not UTF-8.")];

/// A session's goal.
pub const GOAL: &[Field] = &[
    may("statement", Kind::Text, "One sentence."),
    may("branchable", Kind::Flag, "Several ways may be tried side by side."),
    may("shares_mutable_state", Kind::Flag, "The ways would write to the same thing."),
    may("hypotheses", TEXTS, "One line for each way."),
];

/// Consecutive lines of a file.
pub const RANGE: &[Field] = &[
    must("start_line", Kind::Number(1, i64::MAX), "The first line, counted from 1."),
    must("lines", Kind::Number(1, i64::MAX), "How many lines."),
];

/// A source, and what was seen there.
pub const SEEN: &[Field] = &[
    must("source", Kind::Object(SOURCE), "The source."),
    must("digest", Kind::Text, "What was seen there: blake3:<hex>, sha256:<hex> or git:<hex>."),
];

/// What a memory rests on.
pub const SOURCE: &[Field] = &[
    must("kind", Kind::Word(KINDS), "What kind of source it is."),
    AT,
    POLICY,
    WHAT,
    LINES,
    INCLUDE,
    EXCLUDE,
    CONTENTS,
    GITIGNORE,
    may("command", Kind::Text, "Of command: its text."),
    may("cwd", PATH, "Of command: the absolute path where it ran."),
    may("inputs", Kind::List(&Kind::Object(INPUT)), "Of command: the sources that it read."),
];

/// What a command read. Schemas that contain themselves are more than many clients read, and a command among the inputs of a
/// command is more than anybody needs.
pub const INPUT: &[Field] = &[
    must("kind", Kind::Word(INPUT_KINDS), "What kind of source it is."),
    AT,
    POLICY,
    WHAT,
    LINES,
    INCLUDE,
    EXCLUDE,
    CONTENTS,
    GITIGNORE,
];

const KINDS: &[&str] =
    &["file", "absent", "tree", "command", "git_head", "lockfile", "sqlite_schema", "volatile"];
const INPUT_KINDS: &[&str] = &["file", "absent", "tree", "git_head", "lockfile", "sqlite_schema", "volatile"];
const AT: Field = may("path", PATH, "Absolute path; of every kind but command and volatile.");
const POLICY: Field = may(
    "policy",
    Kind::Word(&["strict", "relevant"]),
    "Of git_head: strict (another commit alone is stale, the default) or relevant (it is not).",
);
const WHAT: Field = may("what", Kind::Text, "Of volatile: network, clock, random or text.");
const LINES: Field = may("range", Kind::Object(RANGE), "Of file: these lines alone.");
const INCLUDE: Field = may("include", TEXTS, "Of tree: globs of names that count.");
const EXCLUDE: Field = may("exclude", TEXTS, "Of tree: globs of names that do not.");
const CONTENTS: Field =
    may("contents", Kind::Flag, "Of tree: whether bytes count, or names alone. True when left out.");
const GITIGNORE: Field =
    may("gitignore", Kind::Flag, "Of tree: whether .gitignore files count. True when left out.");
