//! What every row of a tree, a command or a file must say: known from a copy of what stood there at its registration.

use super::reference::{self, State};
use super::world::{TOP, World, text_digest};
use fastrand::Rng;
use staled::index::freshness::{Cause, Doubt, Freshness};
use staled::index::row::{Baseline, Changed, Row};
use staled::session::context::{Belief, Seen};
use staled::session::source::{Filter, Source};
use std::path::PathBuf;

/// What a row is compared with.
#[derive(Debug, Clone)]
pub(super) enum Saw {
    This(State),
    /// One of these stood there between its registration and the look that stands in; whether a look could also have
    /// seen something in between.
    OneOf {
        states: Vec<State>,
        mixed: bool,
    },
    /// What never stood there, or what stood there between two states.
    Unknown,
}

/// One row: of a result, or of an input of one.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) source: Source,
    pub(super) saw: Saw,
    /// Rules changed, or the index was cut off, since it was last fresh: what changed need not be told.
    pub(super) excused: bool,
}

pub(super) fn belief(rng: &mut Rng, world: &World) -> (Belief, Vec<Held>) {
    let source = match rng.u8(..8) {
        0 => any_file(rng),
        1 | 2 => {
            let inputs =
                (0..rng.usize(1..4)).map(|_| if rng.u8(..3) == 0 { any_file(rng) } else { any_tree(rng) });
            let inputs = inputs.collect();
            Source::Command { command: "make".to_owned(), cwd: None, inputs }
        }
        _ => any_tree(rng),
    };
    let now = |source: &Source| world.state(source);
    let mut seen = Seen::Unsaid;
    let saw = match &source {
        Source::Command { inputs, .. } => {
            let held = inputs.iter().map(|input| Held::new(input.clone(), unsaid(input, now(input))));
            let held = held.collect();
            return (told(rng, source, seen), held);
        }
        Source::Absent { .. } => {
            seen = Seen::Absence;
            Saw::This(State::Nothing)
        }
        source => match (now(source), rng.u8(..8)) {
            (State::Members(members), 0..=4) => {
                seen = Seen::Digest(reference::digest(&members));
                Saw::This(State::Members(members))
            }
            (State::Text(text), 0..=4) => {
                seen = Seen::Digest(text_digest(text));
                Saw::This(State::Text(text))
            }
            (_, 5) => {
                seen = Seen::Digest(text_digest(99));
                Saw::Unknown
            }
            (state, _) => unsaid(source, state),
        },
    };
    let held = Held::new(source.clone(), saw);
    (told(rng, source, seen), vec![held])
}

fn told(rng: &mut Rng, source: Source, seen: Seen) -> Belief {
    Belief {
        id: format!("r{}", rng.u8(..6)),
        tool: None,
        critical: rng.bool(),
        lf: None,
        captured_at: None,
        source,
        seen,
    }
}

fn unsaid(source: &Source, state: State) -> Saw {
    match source {
        Source::Absent { .. } => Saw::This(State::Nothing),
        _ => Saw::OneOf { states: vec![state], mixed: false },
    }
}

fn any_tree(rng: &mut Rng) -> Source {
    let path = ["", "", "d", "d/e", "l", "e"][rng.usize(..6)];
    let filters: [Filter; 8] = reference::filters();
    Source::Tree { path: PathBuf::from(TOP).join(path), filter: filters[rng.usize(..8)].clone() }
}

fn any_file(rng: &mut Rng) -> Source {
    let path = PathBuf::from(TOP).join(["a", "d/a", "d/e/b", "l/b", ".gitignore"][rng.usize(..5)]);
    if rng.u8(..3) == 0 { Source::Absent { path } } else { Source::File { path } }
}

impl Held {
    fn new(source: Source, saw: Saw) -> Self {
        Self { source, saw, excused: false }
    }

    /// Something happened in the world: `at_once` at one name alone, `rules` to what some `.gitignore` says.
    pub(super) fn world_changed(&mut self, world: &World, at_once: bool, rules: bool) {
        if let Source::Tree { filter, .. } = &self.source {
            self.excused |= rules && filter.gitignore;
        }
        if let Saw::OneOf { states, mixed } = &mut self.saw {
            *mixed |= !at_once || states.len() > 1;
            states.push(world.state(&self.source));
        }
    }

    /// Some look could not tell all: nothing may stand in for what was not said.
    pub(super) fn look_failed(&mut self) {
        if let Saw::OneOf { mixed, .. } = &mut self.saw {
            *mixed = true;
        }
    }

    /// What the row is compared with from now on, once a look has stood in for what was not said.
    pub(super) fn learn(&mut self, row: &Row) {
        let Saw::OneOf { states, mixed } = &self.saw else { return };
        let same = |state: &&State, digest| match state {
            State::Members(members) => reference::digest(members) == digest,
            State::Text(text) => text_digest(*text) == digest,
            _ => false,
        };
        self.saw = match &row.baseline {
            Baseline::Awaited => return,
            Baseline::Registration(Seen::Digest(digest)) => {
                let state = states.iter().find(|state| same(state, *digest));
                assert!(
                    state.is_some() || *mixed,
                    "{:?} took over what never stood there: {states:#?}",
                    self.source
                );
                state.map_or(Saw::Unknown, |state| Saw::This(state.clone()))
            }
            Baseline::Missed => {
                let nothing = |state: &State| !matches!(state, State::Members(_) | State::Text(_));
                assert!(states.iter().any(nothing) || *mixed, "{:?} was there: {states:#?}", self.source);
                Saw::Unknown
            }
            other => panic!("nobody told {other:?}"),
        };
    }

    /// Whether it is fresh by the copy; `None` for what only a mixture knows.
    pub(super) fn is_true(&self, row: &Row, world: &World) -> Option<bool> {
        match (&self.saw, &row.baseline) {
            (Saw::This(state), _) => Some(*state == world.state(&self.source)),
            (Saw::Unknown, Baseline::Missed | Baseline::Client(_)) => Some(false),
            _ => None,
        }
    }

    /// Judges what is said of the row when all is verified.
    pub(super) fn judge(
        &mut self,
        row: &Row,
        freshness: Freshness,
        changed: Option<&Changed>,
        world: &World,
    ) {
        let now = world.state(&self.source);
        let Some(fresh) = self.is_true(row, world) else { return };
        let why =
            || format!("{:?} is {freshness:?}, {changed:?}\nsaw {:#?}\nnow {now:#?}", self.source, self.saw);
        assert_eq!(freshness == Freshness::Fresh, fresh, "{}", why());
        if fresh {
            assert_eq!(changed, None, "{}", why());
            self.excused = false;
            return;
        }
        let absent = matches!(self.source, Source::Absent { .. });
        let cause = match (&now, freshness) {
            (_, Freshness::Stale(cause)) if absent => return assert_eq!(cause, Cause::Appeared),
            (State::Nothing, Freshness::Stale(cause)) => {
                return assert_eq!(cause, Cause::Deleted, "{}", why());
            }
            (State::Other, Freshness::Stale(cause)) => {
                return assert_eq!(cause, Cause::KindChanged, "{}", why());
            }
            (_, Freshness::Stale(cause)) => cause,
            _ => panic!("{}", why()),
        };
        let (State::Members(now), Saw::This(State::Members(saw))) = (&now, &self.saw) else {
            return assert!(matches!(cause, Cause::Content | Cause::BornStale | Cause::Names), "{}", why());
        };
        let (paths, names) = reference::difference(saw, now);
        match (cause, changed) {
            (Cause::BornStale, None) => {}
            (Cause::Content | Cause::Names, None) => assert!(self.excused, "{}", why()),
            (_, Some(changed)) => {
                assert_eq!(changed.number, paths.len() as u64, "{}\n{paths:?}", why());
                let first: Vec<PathBuf> = paths.iter().take(Changed::PATHS_MAX).map(PathBuf::from).collect();
                assert_eq!(changed.paths, first, "{}", why());
                assert_eq!(cause, if names { Cause::Names } else { Cause::Content }, "{}", why());
            }
            _ => panic!("{}", why()),
        }
    }
}

/// What a view says of a command whose inputs are judged so.
pub(super) fn of_inputs(inputs: &[Option<bool>]) -> Option<Freshness> {
    match inputs {
        inputs if inputs.contains(&Some(false)) => Some(Freshness::Stale(Cause::Input)),
        inputs if inputs.contains(&None) => None,
        _ => Some(Freshness::Fresh),
    }
}

pub(super) const VERIFYING: Freshness = Freshness::Unknown(Doubt::Unsettled);
