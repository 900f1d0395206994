//! A naive memory, word for word from the specification: lists that are searched from the front, and nothing else.

use super::TIMEOUT;
use crate::memory::observation::{Marks, Observation};
use crate::memory::session::{Session, Span};
use crate::memory::step::Save;
use crate::session::moment::Moment;

/// What a user has. A made summary is the list that it was made of.
#[derive(Debug, Clone, Default)]
pub(super) struct Person {
    sessions: Vec<(Session, Option<Vec<(u64, String)>>)>,
    /// Every observation with all its revisions, the latest last.
    observations: Vec<Vec<Observation>>,
}

/// Everybody's.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    people: Vec<(String, Person)>,
    forgotten_or_kept: u64,
}

/// What became of a save: outcome, observation, session, whether it began with it.
pub(super) type Became = (&'static str, Observation, String, bool);

impl Model {
    pub(super) fn next_observation(&self) -> u64 {
        self.forgotten_or_kept + 1
    }

    pub(super) fn person(&self, name: &str) -> Option<&Person> {
        self.people.iter().find(|(known, _)| known == name).map(|(_, person)| person)
    }

    fn person_mut(&mut self, name: &str) -> &mut Person {
        if self.person(name).is_none() {
            self.people.push((name.to_owned(), Person::default()));
        }
        &mut self.people.iter_mut().find(|(known, _)| known == name).unwrap().1
    }

    pub(super) fn start(&mut self, name: &str, now: i64, called: &str) -> (Session, bool) {
        self.person_mut(name).touch(now, called)
    }

    pub(super) fn expire(&mut self, name: &str, now: i64) -> Option<Session> {
        self.person(name)?;
        self.person_mut(name).expire(now)
    }

    pub(super) fn end(&mut self, name: &str, summary: &str, now: i64) -> Option<Session> {
        self.person(name)?;
        let active = self.person_mut(name).active().filter(|active| !has_expired(active, now))?;
        active.span.ended_at = Some(Moment::from_micros(now.max(active.span.last_activity_at.micros)));
        active.summary = Some(summary.to_owned());
        Some(active.clone())
    }

    /// The revision that is held, where it is not the one that was told.
    pub(super) fn save(&mut self, name: &str, save: &Save, now: i64, called: &str) -> Result<Became, u32> {
        let found = self.person(name).and_then(|person| person.about(save));
        let held = found.map_or(0, |(at, _)| self.person(name).unwrap().observations[at].len() as u32);
        if save.if_revision.is_some_and(|told| told != held) {
            return Err(held);
        }
        let next = self.next_observation();
        let person = self.person_mut(name);
        let (session, opened) = person.touch(now, called);
        let (outcome, at) = match found {
            Some((at, true)) => ("deduped", at),
            Some((at, false)) => {
                let before = person.observations[at].last().unwrap().clone();
                person.observations[at].push(revision(before.id, Some(&before), save, &session, now));
                ("updated", at)
            }
            None => {
                person.observations.push(vec![revision(next, None, save, &session, now)]);
                ("created", person.observations.len() - 1)
            }
        };
        let latest = person.observations[at].last_mut().unwrap();
        if let Some(has_sources) = save.has_sources {
            latest.marks.has_sources = has_sources;
        }
        let latest = latest.clone();
        let session = person.sessions[latest.marks.session as usize].0.span.id.clone();
        if outcome == "created" {
            self.forgotten_or_kept = next;
        }
        Ok((outcome, latest, session, opened))
    }

    pub(super) fn forget(&mut self, name: &str, id: u64) -> bool {
        let Some((_, person)) = self.people.iter_mut().find(|(known, _)| known == name) else { return false };
        let before = person.observations.len();
        person.observations.retain(|revisions| revisions[0].id != id);
        for (_, made_of) in &mut person.sessions {
            made_of.iter_mut().for_each(|items| items.retain(|(of, _)| *of != id));
        }
        person.observations.len() != before
    }
}

impl Person {
    pub(super) fn sessions(&self) -> Vec<Session> {
        self.sessions.iter().map(told).collect()
    }

    /// The latest revisions, by number.
    pub(super) fn observations(&self) -> Vec<Observation> {
        self.observations.iter().map(|revisions| revisions.last().unwrap().clone()).collect()
    }

    pub(super) fn history(&self, id: u64) -> Vec<Observation> {
        let revisions = self.observations.iter().find(|revisions| revisions[0].id == id).unwrap();
        revisions[..revisions.len() - 1].to_vec()
    }

    pub(super) fn worded(&self, kind: &str, content: &str) -> Vec<u64> {
        let says = |said: &&Observation| said.marks.kind == kind && said.words.content == content;
        self.observations().iter().filter(says).map(|said| said.id).collect()
    }

    pub(super) fn under(&self, topic_key: &str) -> Option<u64> {
        let under = |said: &&Observation| said.words.topic_key.as_deref() == Some(topic_key);
        self.observations().iter().find(under).map(|said| said.id)
    }

    fn active(&mut self) -> Option<&mut Session> {
        self.sessions.last_mut().map(|(session, _)| session).filter(|session| session.span.ended_at.is_none())
    }

    fn touch(&mut self, now: i64, called: &str) -> (Session, bool) {
        self.expire(now);
        let now = Moment::from_micros(now);
        if let Some(active) = self.active() {
            active.span.last_activity_at = active.span.last_activity_at.max(now);
            return (active.clone(), false);
        }
        let no = self.sessions.len() as u32;
        let span = Span {
            id: called.to_owned(),
            started_at: now,
            last_activity_at: now,
            ended_at: None,
            is_auto_generated: false,
        };
        self.sessions.push((Session { no, span, summary: None }, None));
        (self.sessions[no as usize].0.clone(), true)
    }

    fn expire(&mut self, now: i64) -> Option<Session> {
        let no = self.active().filter(|active| has_expired(active, now))?.no;
        let mut saved = self.observations();
        saved.retain(|saved| saved.marks.session == no);
        saved.sort_by_key(|saved| (saved.marks.updated_at, saved.id));
        let item = |saved: &Observation| (saved.id, format!("[{}] {}", saved.marks.kind, saved.words.title));
        let (session, made_of) = self.sessions.last_mut().unwrap();
        *made_of = Some(saved.iter().map(item).collect());
        session.span.is_auto_generated = true;
        session.span.ended_at = Some(Moment::from_micros(session.span.last_activity_at.micros + TIMEOUT));
        self.sessions.last().map(told)
    }

    /// Which observation a save is about, and whether it says the same.
    fn about(&self, save: &Save) -> Option<(usize, bool)> {
        let latest = self.observations();
        let equal =
            |said: &Observation| said.marks.kind == save.kind && said.words.content == save.words.content;
        let Some(topic_key) = &save.words.topic_key else {
            return latest.iter().position(equal).map(|at| (at, true));
        };
        if let Some(at) = latest.iter().position(|said| said.words.topic_key.as_ref() == Some(topic_key)) {
            return Some((at, latest[at].words.content == save.words.content));
        }
        let unkeyed = |said: &Observation| said.words.topic_key.is_none() && equal(said);
        latest.iter().position(unkeyed).map(|at| (at, false))
    }
}

fn revision(id: u64, before: Option<&Observation>, save: &Save, session: &Session, now: i64) -> Observation {
    let now = Moment::from_micros(now);
    let marks = Marks {
        kind: save.kind.clone(),
        revision: before.map_or(1, |before| before.marks.revision + 1),
        created_at: before.map_or(now, |before| before.marks.created_at),
        updated_at: now,
        session: session.no,
        is_keyed: save.words.topic_key.is_some(),
        has_sources: before.is_some_and(|before| before.marks.has_sources),
    };
    Observation { id, marks, words: save.words.clone() }
}

fn has_expired(session: &Session, now: i64) -> bool {
    now - session.span.last_activity_at.micros >= TIMEOUT
}

fn told((session, made_of): &(Session, Option<Vec<(u64, String)>>)) -> Session {
    let Some(items) = made_of else { return session.clone() };
    let items: Vec<&str> = items.iter().map(|(_, item)| item.as_str()).collect();
    let summary = match items.is_empty() {
        true => "Nenhuma memoria registrada.".to_owned(),
        false => format!("Memorias registradas: {}", items.join(", ")),
    };
    Session { summary: Some(summary), ..session.clone() }
}
