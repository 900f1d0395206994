//! What the screen shows, and what a key does to it. Pure: the moment and the size come from outside.

use super::draw::places::{Places, places};
use super::facts::{Away, Health, Line, Rows, Session, Transition};
use crate::protocol::time;
use ratatui::layout::Rect;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// Lines of the log that can be looked back at.
const LINES_MAX: usize = 1_000;

/// A part of the screen.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pane {
    /// Every session, and how it is.
    #[default]
    Sessions,
    /// What is stale or unknown of the session that is selected.
    Rows,
    /// The decision log, the newest line first.
    Decisions,
}

impl Pane {
    pub(super) const ALL: [Self; 3] = [Self::Sessions, Self::Rows, Self::Decisions];

    fn moved(self, by: usize) -> Self {
        Self::ALL[(self as usize + by) % Self::ALL.len()]
    }
}

/// What somebody wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    Quit,
    /// The session above.
    Up,
    /// The session below.
    Down,
    NextPane,
    LastPane,
    PageUp,
    PageDown,
    /// The keys are told, or no longer.
    Help,
}

/// Everything that is shown.
#[derive(Debug, Default)]
pub(super) struct Model {
    /// Microseconds since the epoch.
    pub(super) now: i64,
    /// Where it is shown.
    pub(super) area: Rect,
    /// How the daemon is.
    pub(super) health: Health,
    /// Why the daemon does not answer.
    pub(super) away: Option<Away>,
    /// As they are listed.
    pub(super) sessions: Vec<Session>,
    /// The session whose rows are shown.
    pub(super) selected: Option<String>,
    /// Its rows.
    pub(super) rows: Rows,
    /// The log, newest first.
    pub(super) lines: VecDeque<Line>,
    /// What was decided last for each session, as far as the log was read.
    pub(super) last: HashMap<String, Transition>,
    /// Where keys go.
    pub(super) pane: Pane,
    /// The keys are told.
    pub(super) help: bool,
    /// How far each pane was scrolled.
    scrolled: [usize; 3],
}

impl Model {
    pub(super) fn new(selected: Option<String>) -> Self {
        Self { selected, ..Self::default() }
    }

    /// The sessions as they are now. One that is gone is no longer selected: the one that took its place is.
    pub(super) fn list(&mut self, sessions: Vec<Session>) {
        let at = self.selected_at().unwrap_or(0);
        self.sessions = sessions;
        if self.selected_at().is_none() {
            self.selected =
                self.sessions.get(at).or(self.sessions.last()).map(|session| session.name.clone());
        }
    }

    /// Rows of a session, unless another was selected meanwhile.
    pub(super) fn show(&mut self, rows: Rows) {
        if self.selected.as_deref() == Some(rows.session.as_str()) {
            self.rows = rows;
        }
    }

    /// What the log says, the oldest first; of another log it is all there is.
    pub(super) fn log(&mut self, lines: Vec<Line>, anew: bool) {
        if anew {
            self.lines.clear();
            self.last.clear();
        }
        for line in lines {
            if let Some(transition) = &line.transition {
                self.last.insert(
                    line.session.clone(),
                    Transition { word: transition.clone(), at: line.at.clone() },
                );
            }
            // Whoever reads an older line goes on reading it.
            if self.scrolled[Pane::Decisions as usize] > 0 {
                self.scrolled[Pane::Decisions as usize] += 1;
            }
            self.lines.push_front(line);
        }
        self.lines.truncate(LINES_MAX);
        self.keep_in_sight();
    }

    /// Does what a key wants; whether to go on.
    pub(super) fn press(&mut self, deed: Deed) -> bool {
        match deed {
            Deed::Quit => return false,
            Deed::Help => self.help = !self.help,
            Deed::NextPane => self.pane = self.pane.moved(1),
            Deed::LastPane => self.pane = self.pane.moved(Pane::ALL.len() - 1),
            Deed::Up => self.select(-1),
            Deed::Down => self.select(1),
            Deed::PageUp => self.turn(-1),
            Deed::PageDown => self.turn(1),
        }
        self.keep_in_sight();
        true
    }

    /// Where the screen was scrolled to, and for the sessions to where the selected one is in sight.
    pub(super) fn first(&self, pane: Pane, height: usize) -> usize {
        let last = self.len(pane).saturating_sub(height);
        match pane {
            Pane::Sessions => self.selected_at().map_or(0, |at| (at + 1).saturating_sub(height)).min(last),
            Pane::Rows | Pane::Decisions => self.scrolled[pane as usize].min(last),
        }
    }

    pub(super) fn len(&self, pane: Pane) -> usize {
        match pane {
            Pane::Sessions => self.sessions.len(),
            Pane::Rows => self.rows.doubtful.len(),
            Pane::Decisions => self.lines.len(),
        }
    }

    pub(super) fn selected_at(&self) -> Option<usize> {
        self.sessions.iter().position(|session| Some(&session.name) == self.selected.as_ref())
    }

    /// How long what is shown stays true by itself. Ages below a minute move every second, others seldom.
    pub(super) fn calm(&self) -> Duration {
        let rows = self.rows.doubtful.iter().filter_map(|row| row.since.as_deref());
        let told = rows.chain(self.last.values().map(|transition| transition.at.as_str()));
        let moments = told.filter_map(|at| time::from_text(at).ok()).map(|moment| moment.micros);
        let young = moments.max().is_some_and(|then| self.now - then < 60_000_000);
        Duration::from_secs(if young { 1 } else { 10 })
    }

    fn select(&mut self, by: isize) {
        let Some(at) = self.selected_at() else { return };
        let at = at.saturating_add_signed(by).min(self.sessions.len() - 1);
        let name = self.sessions[at].name.clone();
        if self.selected.as_ref() != Some(&name) {
            self.rows = Rows { session: name.clone(), ..Rows::default() };
            self.selected = Some(name);
            self.scrolled[Pane::Rows as usize] = 0;
        }
    }

    fn turn(&mut self, by: isize) {
        let page = by * isize::try_from(self.height(self.pane).max(1)).unwrap_or(1);
        match self.pane {
            Pane::Sessions => self.select(page),
            pane => self.scrolled[pane as usize] = self.scrolled[pane as usize].saturating_add_signed(page),
        }
    }

    /// What is scrolled beyond the end would have to be scrolled back before anything moves.
    fn keep_in_sight(&mut self) {
        for pane in Pane::ALL {
            let last = self.len(pane).saturating_sub(self.height(pane));
            self.scrolled[pane as usize] = self.scrolled[pane as usize].min(last);
        }
    }

    fn height(&self, pane: Pane) -> usize {
        let Places { panes, .. } = places(self.area, self);
        usize::from(panes[pane as usize].height.saturating_sub(1))
    }
}
