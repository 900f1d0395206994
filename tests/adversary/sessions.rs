//! Sessions over the places, each with baselines of its own.

use super::layout::{Place, VERSIONS, content};
use super::oracle::{Content, Rescan, lines_of};
use super::trees::{self, Wide};
use crate::harness::ask;
use fastrand::Rng;
use serde_json::{Value, json};
use staled::client::Client;
use staled::world::digest::blake3;
use std::path::Path;

/// One belief of one session.
pub(crate) struct Belief {
    pub(crate) place: Place,
    pub(crate) seen: Content,
    critical: bool,
}

pub(crate) struct Session {
    pub(crate) name: String,
    pub(crate) beliefs: Vec<Belief>,
}

impl Session {
    /// Beliefs in most of the places: most in what stands there now, the others in some version.
    pub(crate) fn imagine(
        name: &str,
        places: &[Place],
        rescan: &mut Rescan,
        commits: &[String],
        chance: &mut Rng,
    ) -> Self {
        let share = chance.u8(6..=10);
        let chosen: Vec<&Place> = places.iter().filter(|_| chance.u8(..10) < share).collect();
        let mut imagine = |place: &Place| {
            let now = rescan.content(place);
            let seen = imagined(place, now, commits, chance);
            Belief { place: place.clone(), seen, critical: chance.bool() }
        };
        let mut beliefs: Vec<Belief> = chosen.into_iter().map(&mut imagine).collect();
        if beliefs.is_empty() {
            beliefs.push(imagine(&places[0]));
        }
        Self { name: name.to_owned(), beliefs }
    }

    pub(super) fn register(&mut self, client: &mut Client, root: &Path) {
        let answer = ask(client, "context.register", &self.context(root));
        self.registered(&answer);
    }

    /// What is registered.
    pub(crate) fn context(&self, root: &Path) -> Value {
        let (heads, files): (Vec<_>, Vec<_>) =
            self.beliefs.iter().partition(|belief| belief.place.kind == "git_head");
        let results: Vec<Value> = files.into_iter().map(|belief| belief.told("id")).collect();
        let invariants: Vec<Value> = heads.into_iter().map(|belief| belief.told("name")).collect();
        json!({
            "session": self.name, "root": root, "results": results, "invariants": invariants, "replace": true
        })
    }

    /// What the daemon's own look stands in for is what its answer says it is.
    pub(crate) fn registered(&mut self, answer: &Value) {
        let unsaid = |id: &str| {
            answer["results"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|row| row["id"] == id && row["baseline"] != "registration")
        };
        for belief in &mut self.beliefs {
            if belief.place.is_taken_over() && unsaid(&belief.place.id()) {
                belief.seen = Content::Never;
            }
        }
    }
}

fn imagined(place: &Place, now: Content, commits: &[String], chance: &mut Rng) -> Content {
    let believes_now = chance.u8(..4) > 0;
    match (place.kind, now) {
        ("absent", _) => Content::Nothing,
        ("git_head", now @ Content::Commit(Some(_))) if believes_now => now,
        ("git_head", _) => Content::Commit(Some(commits[chance.usize(..commits.len())].clone())),
        ("tree", now @ Content::Bytes(_)) => now,
        ("tree", _) => Content::Never,
        ("command", now) => trees::seen_by_command(place, now),
        (_, now @ Content::Bytes(_)) if believes_now => now,
        _ if place.wide.is_some() => {
            let Some(Wide::Lines(first, lines)) = place.wide else { return Content::Never };
            lines_of(&content(chance.u8(..4)), first.min(2), lines)
        }
        _ => Content::Bytes(blake3(&content(chance.u8(..VERSIONS))).to_string()),
    }
}

impl Belief {
    /// As a client says it; what it goes by is an `id` or a `name`.
    pub(crate) fn told(&self, name: &str) -> Value {
        let Self { place, seen, critical } = self;
        let mut told = json!({ name: place.id(), "source": place.source(), "critical": critical });
        if let (false, Content::Bytes(digest) | Content::Commit(Some(digest))) = (place.is_taken_over(), seen)
        {
            told["digest"] = json!(digest);
        }
        told
    }
}
