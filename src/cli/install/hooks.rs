//! The hooks of an agent's settings: ours go in, ours come out, those of others are not touched.
//!
//! All agents keep them alike: `hooks` names events, an event has groups, a group has a matcher and hooks. Ours are groups of
//! their own.

use super::agent::Agent;
use super::json::{Doc, Fault, Step};
use super::program;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

const HOOKS: Step<'static> = Step::Key("hooks");

/// A hook of ours, where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct Own {
    pub(in crate::cli) event: String,
    group: usize,
    hook: usize,
    /// Nothing else is in its group.
    alone: bool,
    /// The program that it runs.
    pub(in crate::cli) program: PathBuf,
    /// The hook as it stands there.
    pub(in crate::cli) entry: Value,
}

/// Has every event of the agent run this program, and nothing else of ours.
pub(super) fn install(doc: &mut Doc, agent: &Agent, program: &str) {
    let wanted = |event: &str| agent.events.iter().find(|(name, _)| *name == event);
    for event in events(doc) {
        match wanted(&event) {
            Some((_, matcher)) => renew(doc, agent, &event, &group(agent, *matcher, program)),
            None => take_out(doc, agent, &event, None),
        }
    }
    for (event, matcher) in agent.events {
        if own(doc, agent).iter().any(|own| own.event == *event) {
            continue;
        }
        if doc.get(&[HOOKS]).is_none() {
            doc.put(&[], "hooks", &json!({}));
        }
        if doc.get(&[HOOKS, Step::Key(event)]).is_none() {
            doc.put(&[HOOKS], event, &json!([]));
        }
        doc.push(&[HOOKS, Step::Key(event)], &group(agent, *matcher, program));
    }
}

/// Takes our hooks out, and what was there for them alone. What the text before ours had already, empty, stays.
pub(super) fn uninstall(doc: &mut Doc, agent: &Agent, before: Option<&Doc>) {
    if own(doc, agent).is_empty() {
        return;
    }
    for event in events(doc) {
        take_out(doc, agent, &event, before);
    }
    leave(doc, &[HOOKS], before);
}

/// Our hooks, in the order of the text.
pub(in crate::cli) fn own(doc: &Doc, agent: &Agent) -> Vec<Own> {
    let Some(Value::Object(hooks)) = doc.get(&[HOOKS]) else { return Vec::new() };
    hooks.iter().flat_map(|(event, groups)| own_of(event, groups, agent)).collect()
}

fn own_of(event: &str, groups: &Value, agent: &Agent) -> Vec<Own> {
    let mut found = Vec::new();
    for (group, entry) in groups.as_array().into_iter().flatten().enumerate() {
        let hooks = entry["hooks"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (hook, entry) in hooks.iter().enumerate() {
            if let Some(program) = program::of_hook(entry, agent.name) {
                let (event, entry) = (event.to_owned(), entry.clone());
                found.push(Own { event, group, hook, alone: hooks.len() == 1, program, entry });
            }
        }
    }
    found
}

fn of_event(doc: &Doc, agent: &Agent, event: &str) -> Vec<Own> {
    let groups = doc.get(&[HOOKS, Step::Key(event)]).unwrap_or_default();
    own_of(event, &groups, agent)
}

fn events(doc: &Doc) -> Vec<String> {
    let hooks = doc.get(&[HOOKS]).unwrap_or_default();
    hooks.as_object().into_iter().flat_map(Map::keys).cloned().collect()
}

/// The first group of ours is brought up to date where it stands; others of ours go.
fn renew(doc: &mut Doc, agent: &Agent, event: &str, wanted: &Value) {
    let found = of_event(doc, agent, event);
    let kept = found.iter().find(|own| own.alone).map(|own| own.group);
    for own in found.iter().rev().filter(|own| Some(own.group) != kept) {
        drop_one(doc, own);
    }
    // Taking out a group that stood before it would have moved it.
    let found = of_event(doc, agent, event);
    if let Some(own) = found.first() {
        let place = [HOOKS, Step::Key(event), Step::At(own.group)];
        if doc.get(&place).as_ref() != Some(wanted) {
            doc.replace(&place, wanted);
        }
    }
}

fn take_out(doc: &mut Doc, agent: &Agent, event: &str, before: Option<&Doc>) {
    let found = of_event(doc, agent, event);
    found.iter().rev().for_each(|own| drop_one(doc, own));
    if !found.is_empty() {
        leave(doc, &[HOOKS, Step::Key(event)], before);
    }
}

/// Takes one hook out, with its group when that is empty then.
fn drop_one(doc: &mut Doc, own: &Own) {
    let group = [HOOKS, Step::Key(&own.event), Step::At(own.group)];
    doc.remove(&[&group[..], &[HOOKS, Step::At(own.hook)]].concat());
    let list = [&group[..], &[HOOKS]].concat();
    if doc.blank(&list).is_some() {
        doc.remove(&group);
    }
}

/// What is empty now goes, unless it stood there empty before.
pub(super) fn leave(doc: &mut Doc, path: &[Step<'_>], before: Option<&Doc>) {
    if doc.blank(path).is_none() {
        return;
    }
    match before.filter(|before| before.get(path).is_some()) {
        Some(before) => doc.set_blank(path, before.blank(path).unwrap_or_default()),
        None => doc.remove(path),
    }
}

/// Whether the hooks have the shape that they must have for ours to stand among them; to be asked before all else.
pub(super) fn check(doc: &Doc, agent: &Agent) -> Result<(), Fault> {
    twice(doc, &[])?;
    match doc.get(&[HOOKS]) {
        None => return Ok(()),
        Some(Value::Object(_)) => twice(doc, &[HOOKS])?,
        Some(_) => return Err(doc.fault_at(&[HOOKS], "`hooks` is no object of events")),
    }
    for event in events(doc) {
        let groups = doc.get(&[HOOKS, Step::Key(&event)]).unwrap_or_default();
        for group in 0..groups.as_array().map_or(0, Vec::len) {
            twice(doc, &[HOOKS, Step::Key(&event), Step::At(group)])?;
        }
    }
    for (event, _) in agent.events {
        let place = [HOOKS, Step::Key(event)];
        match doc.get(&place) {
            None => {}
            Some(Value::Array(groups)) => {
                let odd = groups.iter().position(|group| !group["hooks"].is_array());
                if let Some(odd) = odd {
                    let why = format!("this group of {event} has no list of `hooks`");
                    return Err(doc.fault_at(&[&place[..], &[Step::At(odd)]].concat(), why));
                }
            }
            Some(_) => return Err(doc.fault_at(&place, format!("{event} is no list of groups"))),
        }
    }
    Ok(())
}

fn twice(doc: &Doc, path: &[Step<'_>]) -> Result<(), Fault> {
    doc.twice(path).map_or(Ok(()), Err)
}

fn group(agent: &Agent, matcher: Option<&str>, program: &str) -> Value {
    let mut hook = json!({ "type": "command", "command": program::command(program, agent.name) });
    if agent.names_hooks {
        hook["name"] = json!("staled");
    }
    hook["timeout"] = json!(agent.timeout);
    match matcher {
        Some(matcher) => json!({ "matcher": matcher, "hooks": [hook] }),
        None => json!({ "hooks": [hook] }),
    }
}
