//! Applying answers: rows are judged, marked and counted.

use super::found::Found;
use super::freshness::{self, Doubt, Freshness, adopt, judge};
use super::moved::HeadMoved;
use super::row::{Baseline, Detail, Mark, Role, Row, RowNo, SessionNo};
use super::shelf::{mark_key, source_key};
use super::storage::{SourceState, Storage, StorageError, Summary, Table};
use super::{Change, Index, Looked, Outcome, Settled, view};
use crate::session::context::Seen;
use crate::session::digest::Digest;
use crate::session::moment::Moment;

impl<S: Storage> Index<S> {
    /// Applies answers. One whose stamp is not the source's latest was overtaken and changes nothing.
    pub fn settle(&mut self, answers: Vec<Settled>, at: Moment) -> Result<Outcome, StorageError> {
        let mut outcome = Outcome::default();
        for answer in answers {
            if let Some(folder) = self.grove.folders.get(&answer.source) {
                if folder.answers(answer.stamp) {
                    self.listed(answer.source, answer.found, at, &mut outcome)?;
                } else {
                    outcome.overtaken += 1;
                }
                continue;
            }
            if self.pending.get(&answer.source).is_none_or(|pending| pending.stamp != answer.stamp) {
                outcome.overtaken += 1;
                continue;
            }
            self.apply(answer, at, &mut outcome)?;
        }
        if !outcome.changed.is_empty() {
            self.clock.tick += 1;
        }
        self.shelf.flush()?;
        Ok(outcome)
    }

    fn apply(&mut self, answer: Settled, at: Moment, outcome: &mut Outcome) -> Result<(), StorageError> {
        if self.grove.trees.contains_key(&answer.source) {
            return self.rooted(answer.source, answer.found, at, outcome);
        }
        let key = source_key(answer.source);
        let mut state: SourceState = self.shelf.must(Table::Sources, &key)?;
        self.head_look = None;
        let found = match answer.found {
            Looked::Found(found) => found,
            Looked::Head(look) => {
                let found = look.found.clone();
                self.head_look = Some((state.key.path.clone(), *look));
                found
            }
            Looked::Root(_) | Looked::Listing(_) => return Ok(()),
        };
        for &(session, row) in &state.readers {
            self.judge_row(session, row, &found, at, outcome)?;
        }
        self.head_look = None;
        if state.found.as_ref() != Some(&found) {
            state.found = Some(found);
            self.shelf.put(Table::Sources, &key, &state)?;
        }
        // Last, so that a step which failed half-way leaves the source suspect.
        self.pending.remove(&answer.source);
        for (session, _) in &state.readers {
            self.forget_suspect(*session);
        }
        Ok(())
    }

    pub(super) fn forget_suspect(&mut self, session: SessionNo) {
        if let Some(count) = self.suspects.get_mut(&session) {
            *count -= 1;
            if *count == 0 {
                self.suspects.remove(&session);
            }
        }
    }

    pub(super) fn judge_row(
        &mut self,
        session: SessionNo,
        no: RowNo,
        found: &Found,
        at: Moment,
        outcome: &mut Outcome,
    ) -> Result<(), StorageError> {
        let row = self.shelf.must_hold(session, no)?;
        let awaited = row.baseline == Baseline::Awaited;
        let mut freshness = judge(row, found);
        let lf = lf_of(found).filter(|_| row.lf.is_none());
        if awaited || (freshness == Freshness::Fresh && (!row.ever_fresh || lf.is_some())) {
            let mut row = row.clone();
            if awaited {
                row.baseline = adopt(&row.source, found);
                freshness = judge(&row, found);
                outcome.adopted.push((session, no));
            }
            if freshness == Freshness::Fresh {
                row.ever_fresh = true;
                row.lf = row.lf.or(lf);
            }
            if let (Freshness::Fresh, Found::Tree(tree)) = (freshness, found) {
                row.as_of = Some(tree.version);
                self.grove.speak(row.source_id, tree.version);
            }
            self.shelf.put_row(session, row)?;
        }
        let row = self.shelf.must_hold(session, no)?.clone();
        let (freshness, mut detail) = self.detail(&row, freshness, Some(found));
        detail.moved = self.head_moved(session, &row, found)?;
        self.mark(session, no, (freshness, detail), Some(found), at, outcome)
    }

    /// Brings a row's mark and its session's counts to what was judged.
    pub(super) fn mark(
        &mut self,
        session: SessionNo,
        no: RowNo,
        (freshness, detail): (Freshness, Detail),
        found: Option<&Found>,
        at: Moment,
        outcome: &mut Outcome,
    ) -> Result<(), StorageError> {
        let key = mark_key(session, no);
        let old: Option<Mark> = self.shelf.get(Table::Marks, &key)?;
        let row = self.shelf.must_hold(session, no)?.clone();
        let now = found.and_then(|found| now_text(&row, found));
        let news = freshness != Freshness::Fresh || now.is_some();
        let new = news.then_some(Mark { freshness, now, since: at, detail });
        let new = match (new, &old) {
            // The same finding again is no news: `since` stays.
            (Some(new), Some(old)) if new.freshness == old.freshness && new.now == old.now => {
                // Commits are compared by a look, and this may be a judgement without one, or a look that came when a
                // commit was gone: two commits that were compared once differ in the same paths for ever.
                let told = |moved: &HeadMoved| moved.number.is_some() || old.detail.moved.is_none();
                let moved = new.detail.moved.filter(told).or_else(|| old.detail.moved.clone());
                Some(Mark { since: old.since, detail: Detail { moved, ..new.detail }, ..new })
            }
            (new, _) => new,
        };
        let half_judged = row.input_of.is_some_and(|command| self.half_judged.contains(&(session, command)));
        if new == old && !half_judged {
            return Ok(());
        }
        match &new {
            Some(mark) => self.shelf.put(Table::Marks, &key, mark)?,
            None => self.shelf.remove(Table::Marks, &key)?,
        }
        if let Some(command) = row.input_of {
            return self.judge_command(session, command, at, outcome);
        }
        self.tally_row(session, &row, old.as_ref(), false);
        self.tally_row(session, &row, new.as_ref(), true);
        let counts = self.shelf.counts(session)?;
        counts.count(&row, old.as_ref(), false);
        counts.count(&row, new.as_ref(), true);
        let from = match old {
            Some(mark) => mark.freshness,
            None if self.was_fresh(session, &row)? => Freshness::Fresh,
            // No mark yet, because nobody had looked: nothing was fresh that could have ceased to be so.
            None => Freshness::Unknown(Doubt::Unsettled),
        };
        // Nobody is told that something is fresh again whose session is in doubt.
        if from != freshness && !(freshness == Freshness::Fresh && self.doubted.contains(&session)) {
            outcome.changed.push(Change { session, id: row.id, from, to: freshness });
        }
        Ok(())
    }
}

impl<S: Storage> Index<S> {
    /// Whether a row that has no mark was looked at before: of a command, whether all that it read was.
    fn was_fresh(&mut self, session: SessionNo, row: &Row) -> Result<bool, StorageError> {
        let mut was = row.ever_fresh || !row.inputs.is_empty();
        for &input in &row.inputs {
            was &= self.shelf.held_row(session, input)?.is_some_and(|input| input.ever_fresh);
        }
        Ok(was)
    }
}

impl Summary {
    /// Counts a row's mark in or out. An input counts through its command.
    pub(super) fn count(&mut self, row: &Row, mark: Option<&Mark>, present: bool) {
        let Some(mark) = mark.filter(|_| row.role != Role::Input) else { return };
        let step =
            |counter: &mut u32| *counter = if present { *counter + 1 } else { counter.saturating_sub(1) };
        match mark.freshness {
            Freshness::Fresh => step(&mut self.noted),
            Freshness::Stale(_) => step(&mut self.stale),
            Freshness::Unknown(_) => step(&mut self.unknown),
        }
        if row.critical && mark.freshness != Freshness::Fresh {
            step(&mut self.critical);
        }
    }
}

/// The digest of a file's text whichever way its lines end.
fn lf_of(found: &Found) -> Option<Digest> {
    match found {
        Found::File(file) => Some(file.lf_digest()),
        _ => None,
    }
}

/// What stands there now, in the reader's own algorithm, unless it is what the reader saw.
fn now_text(row: &Row, found: &Found) -> Option<String> {
    let seen = row.baseline.seen();
    if seen.is_some_and(|seen| freshness::same(seen, found)) {
        return None;
    }
    match (seen, found) {
        (Some(Seen::Digest(seen)), Found::File(file)) => {
            Some(file.digest_in(seen.algorithm()).unwrap_or(file.digest).to_string())
        }
        _ => view::found_text(found),
    }
}
