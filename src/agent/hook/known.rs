//! What is recorded of a sighting, given what the session held before: the rules by which a whole transcript is read, for
//! one event and with digests in place of contents.
//!
//! - Shown or written whole: that is what is known, and the parts that were known before go.
//! - A part of a file whose whole is known: nothing new while the whole is as it was. Where it is not, the whole stays, as
//!   stale and as critical as it is, and the part stands beside it: which lines changed, nobody knows.
//! - An edit renews the whole, if what it met was what the session knew of it. Where it was not, the whole stays as it is,
//!   beside the lines that were read since and those that were written.
//! - What searches and commands read before the session's own edit is not what there is now, and goes.

use super::sight::{Sighting, Wrote};
use crate::agent::context::rests_on;
use crate::protocol::context::{Belief, Context, LineRange, Source};
use crate::protocol::path::WirePath;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What to tell the daemon: what to add, and what to forget.
pub(super) fn record(session: &str, mut sighting: Sighting, held: &Context) -> Context {
    if let Some(root) = held.root.as_ref().filter(|root| root.0 != sighting.root.0) {
        anchor(&mut sighting, &root.0);
    }
    let invariants = std::mem::take(&mut sighting.locked);
    let mut record = Context { session: Some(session.to_owned()), invariants, ..Context::default() };
    let mut removed = BTreeSet::new();
    let (parts, others): (Vec<Belief>, Vec<Belief>) =
        sighting.told.into_iter().partition(|told| told.source.range.is_some());
    for mut told in others {
        if let Some(path) = own_path(&told) {
            if !renews(&told, &path, &sighting.wrote, held) {
                carry(&path, &sighting.wrote, held, &mut record, &mut removed);
                continue;
            }
            keep_critical(&mut told, &path, held);
            removed.extend(forgotten(&path, &sighting.wrote, held).filter_map(|part| part.id.clone()));
        }
        record.results.push(told);
    }
    for part in parts {
        add_part(part, &sighting.whole, held, &mut record, &mut removed);
    }
    for wrote in &sighting.wrote {
        let asked =
            held.results.iter().filter(|held| own_path(held).is_none() && held.source.range.is_none());
        let overtaken = asked.filter(|held| rests_on(&named(&held.source, wrote), &wrote.path.0));
        removed.extend(overtaken.filter_map(|held| held.id.clone()));
    }
    let told: BTreeSet<&String> = record.results.iter().filter_map(|told| told.id.as_ref()).collect();
    record.remove = removed.into_iter().filter(|id| !told.contains(id)).collect();
    record
}

/// What a search or a command read, as far as the session's own writing may have changed its answer: with a new file the
/// names are others too.
fn named(source: &Source, wrote: &Wrote) -> Source {
    let mut source = source.clone();
    if wrote.new {
        source.inputs.iter_mut().flatten().for_each(|input| input.contents = None);
        source.contents = None;
    }
    source
}

/// Whether nothing is to be recorded.
pub(super) fn is_empty(record: &Context) -> bool {
    record.results.is_empty() && record.invariants.is_empty() && record.remove.is_empty()
}

/// Paths relative to another root than the session's are made absolute.
fn anchor(sighting: &mut Sighting, root: &Path) {
    let theirs = sighting.root.0.clone();
    let moved = |path: &Path| match theirs.join(path).strip_prefix(root) {
        Ok(inside) if inside.as_os_str().is_empty() => PathBuf::from("."),
        Ok(inside) => inside.to_owned(),
        Err(_) => theirs.join(path),
    };
    for told in &mut sighting.told {
        let inputs = told.source.inputs.iter_mut().flatten().map(|input| &mut input.path);
        for path in inputs.chain([&mut told.source.path]).flatten() {
            *path = WirePath(moved(&path.0));
        }
    }
    for wrote in &mut sighting.wrote {
        wrote.path = WirePath(moved(&wrote.path.0));
    }
    sighting.whole = std::mem::take(&mut sighting.whole)
        .into_iter()
        .map(|(path, digest)| (moved(Path::new(&path)).to_string_lossy().into_owned(), digest))
        .collect();
}

fn path_of(told: &Belief) -> Option<&Path> {
    told.source.path.as_ref().map(|path| path.0.as_path())
}

/// The path of a result about a file itself, whole or missing; a search in a file has another id.
fn own_path(belief: &Belief) -> Option<PathBuf> {
    let path = path_of(belief)?;
    let own = matches!(belief.source.kind.as_str(), "file" | "absent")
        && belief.source.range.is_none()
        && belief.id.as_deref() == Some(path.to_string_lossy().as_ref());
    own.then(|| path.to_owned())
}

fn whole_of<'a>(path: &Path, held: &'a Context) -> Option<&'a Belief> {
    held.results.iter().find(|belief| own_path(belief).as_deref() == Some(path))
}

fn parts_of<'a>(path: &Path, held: &'a Context) -> impl Iterator<Item = &'a Belief> {
    held.results.iter().filter(move |belief| path_of(belief) == Some(path) && belief.source.range.is_some())
}

/// The parts that what was told of the whole takes the place of. An edit shows the agent nothing of the file but its own
/// lines: what somebody else changed in another part before stays as stale as it is.
fn forgotten<'a>(path: &Path, wrote: &'a [Wrote], held: &'a Context) -> impl Iterator<Item = &'a Belief> {
    let edit = wrote.iter().find(|wrote| wrote.path.0 == path && !wrote.before.is_empty());
    let stays = move |part: &Belief| {
        edit.is_some_and(|edit| !edit.met.iter().any(|met| part.id.as_ref() == Some(met)))
    };
    parts_of(path, held).filter(move |part| !stays(part))
}

/// What the session once had to hold for critical stays so.
fn keep_critical(told: &mut Belief, path: &Path, held: &Context) {
    let known = whole_of(path, held).into_iter().chain(parts_of(path, held));
    if known.into_iter().any(|known| known.critical == Some(true)) {
        told.critical = Some(true);
    }
}

/// Whether what was told of the whole file takes the place of what was known of it.
fn renews(told: &Belief, path: &Path, wrote: &[Wrote], held: &Context) -> bool {
    let looked = matches!(
        told.tool.as_deref(),
        Some("Read" | "Edit" | "MultiEdit" | "Write" | "NotebookEdit" | "InstructionsLoaded")
    );
    if told.digest.is_none() && told.source.kind == "file" && !looked {
        // A search named it, or a command showed we cannot tell what of it.
        return whole_of(path, held).is_none() && parts_of(path, held).next().is_none();
    }
    let Some(edit) = wrote.iter().rev().find(|wrote| wrote.path.0 == path && !wrote.before.is_empty()) else {
        return true;
    };
    let known = whole_of(path, held).and_then(|whole| whole.digest.as_ref());
    known.is_none_or(|known| edit.before.contains(known))
}

/// An edit of a file that is not known whole any more: the whole stays as stale as it is, beside the lines that were read
/// since and those that were written.
fn carry(path: &Path, wrote: &[Wrote], held: &Context, record: &mut Context, removed: &mut BTreeSet<String>) {
    let edit = wrote.iter().rev().find(|wrote| wrote.path.0 == path && !wrote.before.is_empty());
    let (Some(edit), true) = (edit, parts_of(path, held).next().is_some()) else { return };
    removed.extend(edit.met.iter().cloned());
    record.results.extend(edit.carried.iter().cloned());
}

fn add_part(
    mut part: Belief,
    whole_now: &BTreeMap<String, String>,
    held: &Context,
    record: &mut Context,
    removed: &mut BTreeSet<String>,
) {
    let Some(path) = path_of(&part).map(Path::to_owned) else { return };
    if let Some(whole) = whole_of(&path, held) {
        let now = whole_now.get(path.to_string_lossy().as_ref());
        if whole.baseline.is_some() || whole.digest.is_none() || whole.source.kind == "absent" {
            // That it is there was known, and not what is in it.
            removed.extend(whole.id.clone());
        } else if whole.digest.as_ref() == now {
            removed.extend(
                parts_of(&path, held)
                    .filter(|known| covers(&part, known))
                    .filter_map(|known| known.id.clone()),
            );
            return;
        }
    }
    keep_critical(&mut part, &path, held);
    let covered = parts_of(&path, held).filter(|known| covers(&part, known) && known.id != part.id);
    removed.extend(covered.filter_map(|known| known.id.clone()));
    record.results.push(part);
}

fn covers(part: &Belief, other: &Belief) -> bool {
    let (Some(part), Some(other)) = (part.source.range, other.source.range) else { return false };
    let end = |range: LineRange| range.start_line.saturating_add(range.lines);
    part.start_line <= other.start_line && end(other) <= end(part)
}
