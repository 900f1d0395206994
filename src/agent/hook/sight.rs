//! What some calls showed and wrote, against the disk as it is now: digests and paths, ready to be told or put aside.
//!
//! Promise: what the agent was shown is told as it was shown. An edit is told by what it made of the file; where that cannot
//! be had, because somebody else wrote since, by the lines that it is known to have left there, so that a change of those
//! is never called fresh. Absent: what the session knew before; see [`super::known`].

use super::event::{Call, text};
use super::unpatch::{Hunk, befores};
use crate::agent::claude_code::live;
use crate::agent::context::{self, read_small, results};
use crate::agent::line_ends::lines;
use crate::agent::rebase::{Places, Rebased, rebase};
use crate::protocol::context::{Belief, Context, LineRange, Source};
use crate::protocol::path::WirePath;
use crate::world::digest::blake3;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What was seen and done by some calls of one session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sighting {
    /// What the paths are relative to.
    pub root: WirePath,
    /// What was shown, as results.
    pub told: Vec<Belief>,
    /// What the agent wrote.
    #[serde(default)]
    pub wrote: Vec<Wrote>,
    /// The digest that a file had as a whole when lines of it were shown, by the path in [`Sighting::told`].
    #[serde(default)]
    pub whole: BTreeMap<String, String>,
    /// Lockfiles that changed with a command of the agent's own, and that it was told of, as invariants.
    #[serde(default)]
    pub locked: Vec<Belief>,
}

impl Sighting {
    /// Nothing yet.
    #[must_use]
    pub fn at(root: &Path) -> Self {
        Self {
            root: root.into(),
            told: Vec::new(),
            wrote: Vec::new(),
            whole: BTreeMap::new(),
            locked: Vec::new(),
        }
    }
}

impl Sighting {
    /// The same, told late. The disk may have changed since, and must not stand in for what nothing is known of but that
    /// it was asked: that is never fresh.
    pub(super) fn late(mut self, held: &Context) -> Self {
        let known = |told: &Belief| held.results.iter().any(|known| known.source.path == told.source.path);
        self.told.retain(|told| told.source.kind != "file" || told.digest.is_some() || !known(told));
        let unknown = |told: &&mut Belief| {
            told.digest.is_none() && !matches!(told.source.kind.as_str(), "absent" | "volatile")
        };
        for told in self.told.iter_mut().filter(unknown) {
            let what = format!("{}, told late", told.id.as_deref().unwrap_or_default());
            told.source = Source { kind: "volatile".to_owned(), what: Some(what), ..Source::default() };
        }
        self
    }
}

/// A file that the agent wrote.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Wrote {
    /// Relative to the root where it is below it.
    pub path: WirePath,
    /// What it may have been before, in every spelling of its line ends; empty where the agent wrote all of it.
    pub before: Vec<String>,
    /// It was not there before, so names are others too.
    #[serde(default)]
    pub new: bool,
    /// The parts known of it that stood there as they were known when it was edited, by their ids.
    #[serde(default)]
    pub met: Vec<String>,
    /// The lines that the agent knows after an edit, whatever it knows of the rest: those, and those that it wrote.
    #[serde(default)]
    pub carried: Vec<Belief>,
}

/// Where the calls were made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scene<'a> {
    /// Of the session.
    pub root: &'a Path,
    /// Of the agent.
    pub cwd: &'a Path,
    /// Of the user.
    pub home: Option<&'a Path>,
    /// RFC 3339.
    pub at: &'a str,
}

/// What the calls showed and wrote.
///
/// `held` is what the session knew, where that is at hand; without it no part is known to have been met.
pub(super) fn sight(calls: &[Call], scene: Scene<'_>, held: Option<&Context>) -> Sighting {
    let places = Places { root: scene.root, first_cwd: None, cwds: &[], maps: &[], home: scene.home };
    let mut wrote: Vec<Wrote> = Vec::new();
    let calls: Vec<Call> = calls
        .iter()
        .filter(|call| !is_silent(call) || !is_known(call, &places, held))
        .flat_map(|call| {
            let completed = Edited::of(call).map(|edited| edited.completed(call));
            let (calls, before, original) =
                completed.unwrap_or_else(|| (vec![call.clone()], Vec::new(), None));
            wrote.extend(written(call, &places).map(|path| {
                let met = original.as_deref().map(|original| met(original, &path, held)).unwrap_or_default();
                let carried = original.map(|original| carried(&original, &path, scene.root, held, &met));
                let new =
                    call.response.as_ref().and_then(|response| text(response, "type")) == Some("create");
                Wrote { path: WirePath(path), before, new, met, carried: carried.unwrap_or_default() }
            }));
            calls
        })
        .collect();
    let transcript = live(&calls, &scene.cwd.to_string_lossy(), scene.at);
    let mut told = results(&transcript, &places);
    for wrote in &mut wrote {
        // What stands on the disk is the edit's only where nobody else has written since.
        let digest = read_small(&scene.root.join(&wrote.path.0)).map(|disk| blake3(&disk).to_string());
        let whole =
            |told: &Belief| told.source.path == Some(wrote.path.clone()) && told.source.range.is_none();
        if digest.is_none() || !told.iter().any(|told| whole(told) && told.digest == digest) {
            wrote.carried.clear();
        }
    }
    let parts = told.iter().filter(|belief| belief.source.range.is_some());
    let whole = parts.filter_map(|part| whole_of(part, scene.root)).collect();
    let wrote_it = |path: &WirePath| wrote.iter().any(|wrote| wrote.path.0 == path.0);
    for belief in &mut told {
        // Where an edit is known by its lines alone the replay takes them for a look.
        if belief.source.path.as_ref().is_some_and(wrote_it) && belief.source.kind == "file" {
            belief.critical = Some(true);
        }
    }
    Sighting { told, wrote, whole, ..Sighting::at(scene.root) }
}

/// Whether the answer shows nothing: the agent was referred to what it knows already, or the harness kept the answer to
/// itself, as it does in a batch. The disk must not stand in for what was seen then.
fn is_silent(call: &Call) -> bool {
    let response = call.response.as_ref().filter(|response| response.is_object());
    match call.tool.as_str() {
        _ if call.error.is_some() => false,
        "Read" => response.is_none_or(|response| text(response, "type") == Some("file_unchanged")),
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => response.is_none(),
        _ => false,
    }
}

/// Whether something is known of the file that a call names, or may be.
fn is_known(call: &Call, places: &Places<'_>, held: Option<&Context>) -> bool {
    let (Some(path), Some(held)) = (target(call), held) else { return true };
    let (Rebased::Inside(path) | Rebased::Outside(path)) = rebase(Path::new(path), places);
    held.results.iter().any(|known| known.source.path.as_ref().is_some_and(|known| known.0 == path))
}

/// The known parts of a file that stand in `original` as they are known.
fn met(original: &str, path: &Path, held: Option<&Context>) -> Vec<String> {
    let of_path = |part: &&Belief| part.source.path.as_ref().is_some_and(|known| known.0 == path);
    let stands = |part: &&Belief| {
        let Some(range) = part.source.range else { return false };
        let marked = format!("\u{feff}{original}");
        [original, &marked].iter().any(|text| {
            let there = lines(text.as_bytes(), range.start_line, range.lines);
            there.is_some_and(|there| part.digest == Some(blake3(&there).to_string()))
        })
    };
    let parts = held.into_iter().flat_map(|held| &held.results).filter(of_path).filter(stands);
    parts.filter_map(|part| part.id.clone()).collect()
}

/// The parts that stood before an edit, where they stand after it, and the lines that it wrote.
fn carried(before: &str, path: &Path, root: &Path, held: Option<&Context>, met: &[String]) -> Vec<Belief> {
    let disk = read_small(&root.join(path)).and_then(|disk| String::from_utf8(disk).ok());
    let Some(disk) = disk else { return Vec::new() };
    let known = held.into_iter().flat_map(|held| &held.results);
    let known = known.filter(|known| known.id.as_ref().is_some_and(|id| met.contains(id)));
    let seen: Vec<LineRange> = known.filter_map(|known| known.source.range).collect();
    let part = |(start, end): (usize, usize)| {
        let (start, count) = (start as u64 + 1, (end - start) as u64);
        let digest = lines(disk.as_bytes(), start, count).map(|there| blake3(&there).to_string());
        let belief = context::part(path, start, count, Some(digest?))?;
        Some(Belief { tool: Some("Edit".to_owned()), critical: Some(true), ..belief })
    };
    seen_after(before, &plain(&disk), &seen).into_iter().filter_map(part).collect()
}

/// The lines, counted from 0, that are known after an edit by whoever knew these of the text before it.
fn seen_after(before: &str, after: &str, seen: &[LineRange]) -> Vec<(usize, usize)> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.split('\n').collect(), after.split('\n').collect());
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let most = old.len().min(new.len()) - same;
    let tail = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(old, new)| old == new).count();
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    let moved = |at: usize| at - old_end + new_end;
    let mut known = vec![(same, new_end)];
    for range in seen {
        let start = usize::try_from(range.start_line).unwrap_or(usize::MAX).saturating_sub(1);
        let end = start.saturating_add(usize::try_from(range.lines).unwrap_or(usize::MAX)).min(old.len());
        if start < same {
            known.push((start, end.min(same)));
        }
        if end > old_end {
            known.push((moved(start.max(old_end)), moved(end)));
        }
    }
    known.retain(|(start, end)| start < end);
    known.sort_unstable();
    known.dedup_by(|next, last| {
        let touches = next.0 <= last.1;
        if touches {
            last.1 = last.1.max(next.1);
        }
        touches
    });
    known
}

fn whole_of(part: &Belief, root: &Path) -> Option<(String, String)> {
    let path = &part.source.path.as_ref()?.0;
    let digest = blake3(&read_small(&root.join(path))?);
    Some((path.to_string_lossy().into_owned(), digest.to_string()))
}

/// The file that a call has written, where it is on this machine.
fn written(call: &Call, places: &Places<'_>) -> Option<PathBuf> {
    let writes = matches!(call.tool.as_str(), "Edit" | "MultiEdit" | "Write" | "NotebookEdit");
    if !writes || call.error.is_some() {
        return None;
    }
    let path =
        call.response.as_ref().and_then(|response| text(response, "filePath")).or_else(|| target(call))?;
    match rebase(Path::new(path), places) {
        Rebased::Inside(path) | Rebased::Outside(path) => Some(path),
    }
}

/// The file that a call names.
pub(super) fn target(call: &Call) -> Option<&str> {
    text(&call.input, "file_path").or_else(|| text(&call.input, "notebook_path"))
}

/// An edit that was made, with what its answer tells of the file.
struct Edited<'a> {
    path: &'a str,
    response: &'a Value,
    /// The field that holds the text before.
    original: &'static str,
}

impl<'a> Edited<'a> {
    fn of(call: &'a Call) -> Option<Self> {
        let original = match call.tool.as_str() {
            "Edit" => "originalFile",
            "MultiEdit" => "originalFileContents",
            _ => return None,
        };
        let response =
            call.response.as_ref().filter(|response| response.is_object() && call.error.is_none())?;
        Some(Self { path: text(response, "filePath").or_else(|| target(call))?, response, original })
    }

    /// The call with the text before the edit, which the harness leaves out of longer files, and what that digests to.
    /// Last comes that text, where it is known.
    fn completed(&self, call: &Call) -> (Vec<Call>, Vec<String>, Option<String>) {
        if let Some(before) = self.response.get(self.original).and_then(Value::as_str) {
            return (vec![call.clone()], spellings(before), Some(before.to_owned()));
        }
        let hunks = Hunk::all(self.response).unwrap_or_default();
        let disk = read_small(Path::new(self.path)).and_then(|disk| String::from_utf8(disk).ok());
        let befores = disk.map(|disk| befores(&plain(&disk), &hunks, self.response)).unwrap_or_default();
        let Some(before) = befores.first() else {
            let new = text(self.response, "newString").map(|new| look(self.path, new, 1));
            let looks = hunks
                .iter()
                .map(|hunk| look(self.path, &hunk.after().collect::<Vec<_>>().join("\n"), hunk.start));
            let looks = looks.chain(new.filter(|_| hunks.is_empty())).collect();
            return (looks, vec![NOTHING.to_owned()], None);
        };
        let mut completed = call.clone();
        if let Some(response) = &mut completed.response {
            response[self.original] = json!(before);
        }
        let original = Some(before.clone());
        (vec![completed], befores.iter().flat_map(|before| spellings(before)).collect(), original)
    }
}

/// Lines that an edit left, as if they had been read there. Where they are is told by the patch; without one they are
/// looked for where they hardly are, which calls the file stale until it is read.
pub(super) fn look(path: &str, lines: &str, start: usize) -> Call {
    let count = lines.split('\n').count();
    let file = json!({
        "filePath": path, "content": lines, "startLine": start, "numLines": count,
        // How long the file was then is not told; long enough that the part is never taken for the whole.
        "totalLines": start + count + 1,
    });
    Call {
        id: start.to_string(),
        tool: "Read".to_owned(),
        input: json!({ "file_path": path }),
        response: Some(json!({ "type": "text", "file": file })),
        error: None,
        duration_ms: None,
    }
}

/// What no file digests to: the text before an edit that could not be had.
const NOTHING: &str = "unknown";

/// As agents are shown it: no byte order mark, lines ended by line feeds.
pub(super) fn plain(text: &str) -> String {
    text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n")
}

/// The digests of a text with every line end and mark that the disk may have spelled it with. A patch of Codex gives a file
/// the last line feed that it lacked, so it may have been without.
fn spellings(text: &str) -> Vec<String> {
    let ended = [Some(text), text.strip_suffix('\n')].into_iter().flatten();
    let lines = ended.flat_map(|text| [text.to_owned(), text.replace('\n', "\r\n")]);
    let all = lines.flat_map(|text| [format!("\u{feff}{text}"), text]);
    all.map(|text| blake3(text.as_bytes()).to_string()).collect()
}
