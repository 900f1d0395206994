//! How it is with a path: in one session, row by row, or in all of them and the decisions that listed it.

use super::call::{Failed, in_short, is_unknown};
use crate::client::Client;
use crate::client::story::{OfPath, Target, roots};
use crate::protocol::path::WirePath;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// What the rows of a session say about each path: of several rows, the worst.
pub(super) fn judged(paths: &[WirePath], root: &Path, rows: &[Value]) -> Vec<Value> {
    // Each row is looked up once, however many paths are asked about.
    let mut at: HashMap<PathBuf, Vec<&Value>> = HashMap::new();
    for row in rows {
        for place in Target::of_row(row, root).map(Target::places).unwrap_or_default() {
            at.entry(place).or_default().push(row);
        }
    }
    paths.iter().map(|path| judged_one(path, root, &at)).collect()
}

fn judged_one(path: &WirePath, root: &Path, at: &HashMap<PathBuf, Vec<&Value>>) -> Value {
    let mut about: Vec<&Value> = Vec::new();
    for row in Target::below(&path.0, root).places().iter().filter_map(|place| at.get(place)).flatten() {
        if !about.iter().any(|known| std::ptr::eq(*known, *row)) {
            about.push(row);
        }
    }
    let status = if about.is_empty() {
        // It may lie in a tree that the session rests on; what that tree says is not about this file alone.
        "unregistered"
    } else if about.iter().any(|row| row["status"] != "fresh" && !is_unknown(row)) {
        "stale"
    } else if about.iter().any(|row| row["status"] != "fresh") {
        "unknown"
    } else {
        "fresh"
    };
    json!({ "path": path, "status": status, "rows": about })
}

/// The story of a path.
pub(super) fn why(path: &WirePath, session: Option<&str>, client: &mut Client) -> Result<String, Failed> {
    let target = match session {
        Some(session) => {
            let roots = roots(client)?;
            let root = roots.get(session).ok_or_else(|| {
                Failed::new("no_session_context", format!("no session {session:?} is registered"))
            })?;
            Target::below(&path.0, root)
        }
        None => Target::from_here(&path.0)
            .map_err(|error| Failed::new("invalid_params", format!("{}: {error}", path.0.display())))?,
    };
    let story = OfPath::find(&target, session, client)?;
    let sessions: Vec<Value> =
        story.rows.iter().map(|(session, row)| json!({ "session": session, "row": row })).collect();
    let decisions = story.decisions.iter().map(|(entry, row)| {
        let mut short = in_short(&entry.line);
        short["row"] = row.clone();
        short
    });
    let answer = json!({
        "path": WirePath(target.plain.clone()),
        "sessions": sessions,
        "decisions": decisions.collect::<Vec<_>>(),
    });
    Ok(answer.to_string())
}
