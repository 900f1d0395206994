//! Whether an edit may meet what the session does not know to be out of date.
//!
//! Promise: where the target is stale, the edit goes on only as the user has configured, unless what it replaces was read
//! again since. Doubt is told and refuses nothing: a file on a filesystem that tells no changes would never be edited.

use super::event::{Call, text};
use super::facts::{Part, Rows, is_doubtful, sentence};
use super::turn::{Options, Reply, Verdict};
use crate::agent::rebase::{Places, Rebased, rebase};
use crate::config::Gate;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// What becomes of an edit of `path`, by the session's status.
pub(super) fn judge(status: &Value, call: &Call, path: &Path, options: &Options) -> Reply {
    let root = Path::new(status["root"].as_str().unwrap_or("/"));
    let rows = Rows::of(status);
    let (mut stale, mut parts) = (Vec::new(), Vec::new());
    for place in spellings(path, root) {
        let (more_stale, more_parts) = rows.of_path(&place);
        stale.extend(more_stale);
        parts.extend(more_parts);
    }
    let (doubtful, stale): (Vec<&Value>, Vec<&Value>) = stale.into_iter().partition(|row| is_doubtful(row));
    if !stale.is_empty() && !was_read_again(call, path, &parts) {
        return reply(options.target, &stale, "This file is not what this session read:");
    }
    let critical: Vec<&Value> =
        rows.news().filter(|row| row["critical"] == true && !is_doubtful(row)).collect();
    let others: Vec<&Value> = critical.into_iter().filter(|row| !stale.contains(row)).collect();
    if !others.is_empty() {
        return reply(options.others, &others, "This session rests on what has changed since it was read:");
    }
    reply(Gate::Warn, &doubtful, "This file cannot be verified:")
}

/// The file as it may have been told: as it is spelled, without `..`, and as the disk resolves it; relative to the root
/// where it is below it.
fn spellings(path: &Path, root: &Path) -> BTreeSet<String> {
    let places = Places { root, first_cwd: None, cwds: &[], maps: &[], home: None };
    let (Rebased::Inside(plain) | Rebased::Outside(plain)) = rebase(path, &places);
    let real = std::fs::canonicalize(path).ok();
    let here = std::fs::canonicalize(root).ok();
    let below = |path: &Path| {
        let inside =
            [Some(root), here.as_deref()].into_iter().flatten().find_map(|root| path.strip_prefix(root).ok());
        inside.unwrap_or(path).to_string_lossy().into_owned()
    };
    [Some(path.to_owned()), Some(plain), real].iter().flatten().map(|path| below(path)).collect()
}

fn reply(gate: Gate, rows: &[&Value], head: &str) -> Reply {
    if rows.is_empty() || gate == Gate::Off {
        return Reply::default();
    }
    let shown: Vec<String> = rows.iter().take(10).map(|row| format!("\n- {}", sentence(row))).collect();
    let shown = shown.concat();
    let more = rows.len().saturating_sub(10);
    let more = if more > 0 { format!("\n- … and {more} more") } else { String::new() };
    let verdict = match gate {
        Gate::Deny => Some(Verdict::Deny),
        Gate::Ask => Some(Verdict::Ask),
        Gate::Warn | Gate::Off => None,
    };
    Reply { text: format!("{head}{shown}{more}"), verdict }
}

/// Whether every line that the edit replaces stands in a part that was read again and is fresh.
fn was_read_again(call: &Call, path: &Path, parts: &[Part<'_>]) -> bool {
    if parts.is_empty() {
        return false;
    }
    let Ok(disk) = std::fs::read_to_string(path) else { return false };
    let disk = disk.replace("\r\n", "\n");
    let one = std::slice::from_ref(&call.input);
    let edits = call.input.get("edits").and_then(Value::as_array).map_or(one, Vec::as_slice);
    // What is replaced or taken away whole says nothing of its lines.
    !edits.is_empty()
        && edits.iter().all(|edit| {
            let Some(old) = text(edit, "old_string") else { return false };
            let all = edit.get("replace_all").and_then(Value::as_bool) == Some(true);
            let mut places = disk.match_indices(old).take(if all { usize::MAX } else { 1 }).peekable();
            places.peek().is_some()
                && places.all(|(at, _)| {
                    let first = disk[..at].matches('\n').count() + 1;
                    let last = first + old.trim_end_matches('\n').matches('\n').count();
                    parts.iter().any(|part| part.first <= first && last <= part.last)
                })
        })
}
