//! The table of tools: name, what it asks, what it takes, and what a model is told about it.
//!
//! What is told states facts and asks nothing of the model: it is read as part of the model's own context.

use super::parts::{GOAL, PATH, SEEN, SOURCE, TEXTS};
use super::schema::{Field, Kind, Without, may, must};

/// One tool.
#[derive(Debug)]
pub struct Tool {
    /// What clients call it.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// What it does.
    pub does: Does,
    /// What it leaves behind.
    pub effect: Effect,
    /// What it takes.
    pub fields: &'static [Field],
    /// What it answers.
    pub about: &'static str,
}

/// How a tool finds its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    /// Its arguments go to this method, and the answer comes back as it is.
    Forward(&'static str),
    /// The same; of a session with very many rows the fresh ones are left out.
    Status,
    /// What of a session is not fresh, and how it is with some paths.
    StaleCheck,
    /// The story of a decision or a path.
    Why,
}

/// What a tool leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Reads,
    /// Something more, each time.
    Adds,
    /// Something; once more, nothing more.
    Settles,
}

/// The tool of this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

const SESSION: Field = must("session", Kind::Text, "The session's id, as it was registered.");
const USER: Field = Field {
    name: "user_id",
    kind: Kind::Text,
    without: Without::Login,
    about: "Whose memory. Left out, the login name of whoever runs this server.",
};
const OBSERVATION: Field = must("observation_id", Kind::Number(1, i64::MAX), "The observation's number.");
const SUMMARY: Field = must("summary", Kind::Text, "What was done. Text in <private> tags is redacted.");
const STALE: Field = may(
    "stale",
    Kind::Word(&["include", "demote", "exclude"]),
    "What becomes of memories whose sources changed: include labels them (the default), demote puts them last, exclude \
     leaves them out.",
);
/// Every tool, in the order in which clients list them.
pub const TOOLS: &[Tool] = &[
    Tool {
        name: "decide",
        title: "Decide how to go on",
        does: Does::Forward("decide"),
        effect: Effect::Adds,
        fields: &[
            SESSION,
            may("goal", Kind::Object(GOAL), "Takes the place of the session's goal for this decision."),
            Field {
                name: "rows",
                kind: Kind::Word(&["all", "stale"]),
                without: Without::Word("stale"),
                about: "Which sources the report lists: all of them, or those that are not fresh.",
            },
            may("provision", Kind::Flag, "Whether the branches of a fork are made, or only named."),
            may(
                "memory",
                Kind::Flag,
                "Whether a fresh start carries remembered facts whose sources are fresh.",
            ),
        ],
        about: "Answers whether what a session believes is still true, with the evidence: transition resume (everything it \
                builds on is as it was seen), fork (several independent ways) or fresh (something changed; typed_summary \
                holds what still stands). Changes made before the call are in the answer. Every decision is logged.",
    },
    Tool {
        name: "stale_check",
        title: "Check what is stale",
        does: Does::StaleCheck,
        effect: Effect::Reads,
        fields: &[
            SESSION,
            may(
                "paths",
                Kind::List(&PATH),
                "Paths to be judged one by one; a relative one is below the session's root.",
            ),
        ],
        about: "Lists what a session rests on that is no longer as it was seen, with old and new digest, since when, and the \
                cause. Of each path in paths it says how what the session saw there is: fresh, stale, unknown (cannot be \
                told) or unregistered (the session rests on no such path by itself). Where it saw some lines alone, so does \
                the answer. Decides nothing and logs nothing.",
    },
    Tool {
        name: "status",
        title: "Status of a session, or of the daemon",
        does: Does::Status,
        effect: Effect::Reads,
        fields: &[may("session", Kind::Text, "The session's id. Left out, the daemon's own health.")],
        about: "Every source of a session with its state and how it is watched (above 1,000 rows those that are not fresh), \
                or, without a session, the daemon's health.",
    },
    Tool {
        name: "why",
        title: "Explain a decision or a path",
        does: Does::Why,
        effect: Effect::Reads,
        fields: &[
            may("decision", Kind::Text, "A decision's id (d-…), or its beginning. Either this or a path."),
            may(
                "path",
                PATH,
                "A path; a relative one is below the session's root, or the working directory.",
            ),
            may("session", Kind::Text, "Only this session."),
        ],
        about: "Of a decision: its report, and what the session was told before and after. Of a path: which sessions rest on \
                it, what is known there, and the last decisions that listed it.",
    },
    Tool {
        name: "mem_session_start",
        title: "Start a memory session",
        does: Does::Forward("mem_session_start"),
        effect: Effect::Settles,
        fields: &[USER, STALE],
        about: "Begins a memory session, or goes on with the active one. Answers the summaries of the last sessions and what \
                was remembered in them; evidence says whether what a memory rests on is still as it was.",
    },
    Tool {
        name: "mem_save",
        title: "Remember something",
        does: Does::Forward("mem_save"),
        effect: Effect::Adds,
        fields: &[
            USER,
            must("content", Kind::Text, "What is to be remembered. Text in <private> tags is redacted."),
            must(
                "type",
                Kind::Text,
                "profile, preference, decision, pattern or discovery, where the daemon is not configured otherwise.",
            ),
            must("title", Kind::Text, "Cut at 80 bytes."),
            may("topic_key", Kind::Text, "A save under the same key takes the place of the one before."),
            may(
                "sources",
                Kind::List(&Kind::Any(&[PATH, Kind::Object(SOURCE), Kind::Object(SEEN)])),
                "What it rests on: absolute paths of files, or sources. They are watched, and the memory is labelled stale \
                 when they change. Left out, it rests on what it did before; empty, on nothing.",
            ),
            may(
                "if_revision",
                Kind::Number(0, i64::MAX),
                "The revision that it follows, 0 where there is none; otherwise nothing changes.",
            ),
        ],
        about: "Saves an observation that outlives the session: created, updated (same topic_key) or deduped (same text).",
    },
    Tool {
        name: "mem_session_summary",
        title: "Summarise the memory session",
        does: Does::Forward("mem_session_summary"),
        effect: Effect::Adds,
        fields: &[USER, SUMMARY],
        about: "Saves a summary of the memory session so far, which stays open.",
    },
    Tool {
        name: "mem_session_end",
        title: "End the memory session",
        does: Does::Forward("mem_session_end"),
        effect: Effect::Adds,
        fields: &[USER, SUMMARY],
        about: "Ends the active memory session with a summary, which the next sessions are told at their start.",
    },
    Tool {
        name: "mem_search",
        title: "Search the memory",
        does: Does::Forward("mem_search"),
        effect: Effect::Reads,
        fields: &[
            USER,
            must("query", Kind::Text, "Any words; no text is a syntax error."),
            may("limit", Kind::Number(1, 100), "At most so many; 10 when left out."),
            may("types", TEXTS, "Only these types."),
            may("types_exclude", TEXTS, "All but these types. Not together with types."),
            STALE,
        ],
        about: "Finds observations, best first, with score. evidence says whether what each rests on is still as it was: \
                fresh, stale (changed names the sources), unknown, or none (it rests on nothing).",
    },
    Tool {
        name: "mem_get_observation",
        title: "Read an observation",
        does: Does::Forward("mem_get_observation"),
        effect: Effect::Reads,
        fields: &[USER, OBSERVATION, may("history", Kind::Flag, "With its earlier revisions.")],
        about: "The whole of one observation, or null where this user has none of that number.",
    },
    Tool {
        name: "mem_timeline",
        title: "What was remembered around an observation",
        does: Does::Forward("mem_timeline"),
        effect: Effect::Reads,
        fields: &[USER, OBSERVATION],
        about: "Up to five observations before and five after one of them, which is marked is_anchor.",
    },
    Tool {
        name: "mem_stats",
        title: "How much is remembered",
        does: Does::Forward("mem_stats"),
        effect: Effect::Reads,
        fields: &[USER],
        about: "How many observations and sessions there are, by type, and how many rest on what changed.",
    },
    Tool {
        name: "fork_create",
        title: "Create forks",
        does: Does::Forward("fork.create"),
        effect: Effect::Adds,
        fields: &[
            SESSION,
            may("hypotheses", TEXTS, "One branch for each; those of the session's goal when left out."),
            may(
                "mode",
                Kind::Word(&["git", "copy"]),
                "A repository of its own, or a copy; what fits when left out.",
            ),
            may(
                "from",
                Kind::Text,
                "A commit id to begin at instead of HEAD; nothing uncommitted comes along then.",
            ),
            may(
                "copy",
                Kind::List(&PATH),
                "Ignored files that are copied too, relative to the session's root.",
            ),
        ],
        about: "Makes one isolated workspace and scratchpad for each hypothesis, with what was not committed carried over. The \
                session's own tree is only read.",
    },
    Tool {
        name: "fork_status",
        title: "Status of a fork",
        does: Does::Forward("fork.status"),
        effect: Effect::Reads,
        fields: &[must("fork", Kind::Text, "The fork's id, or its branch.")],
        about: "One fork: its workspace, what changed in it, what changed where it came from, and whether its isolation held.",
    },
    Tool {
        name: "fork_list",
        title: "List forks",
        does: Does::Forward("fork.list"),
        effect: Effect::Reads,
        fields: &[may("session", Kind::Text, "Only forks of this session.")],
        about: "Every fork, by id.",
    },
];
