//! The first step after a start: what the storage holds is counted, and everything is suspect.

use super::found::Found;
use super::pack;
use super::row::{Mark, Role, Row, RowNo, SessionNo};
use super::shelf::mark_key;
use super::storage::{SourceState, Storage, StorageError, Summary, Table};
use super::tally::Tally;
use super::{Check, Depth, Index, KeyKind, Totals, id_of};
use crate::session::source::Source;
use std::collections::HashSet;

impl<S: Storage> Index<S> {
    /// First step after a start: everything is suspect, and counts are made again from rows and marks, for the
    /// process may have ended between two writes. Readings that an equal stat may confirm go with their checks:
    /// not racy, of no critical row, and in every algorithm that is wanted by now. A row that no source would wake was left
    /// by half a step; it would be fresh by silence, so this storage cannot be believed.
    pub fn wake(&mut self) -> Result<Vec<Check>, StorageError> {
        self.awake = true;
        let (mut critical, mut resting) = (HashSet::new(), HashSet::new());
        let mut found = Totals::default();
        self.tally = Tally::default();
        for session in self.sessions()? {
            found.sessions += 1;
            for row in self.recount(session)? {
                found.rows += 1;
                critical.extend(row.source_id.filter(|_| row.critical));
                resting.extend(row.source_id.map(|source| (source, session, row.no)));
            }
        }
        let (mut checks, mut last) = (Vec::new(), None);
        for (key, state) in self.shelf.list::<SourceState>(Table::Sources, &[])? {
            let Some(source) = id_of(&key) else { continue };
            last = last.max(Some(source.0));
            for &(session, row) in &state.readers {
                resting.remove(&(source, session, row));
            }
            if state.key.kind == KeyKind::Folder {
                self.find_folder(source, &state.key.path);
                continue;
            }
            found.sources += 1;
            if !matches!(state.key.kind, KeyKind::Tree(_)) {
                self.tally.watched += state.readers.len() as u64;
            }
            self.plant(source, &state);
            self.speak_of(source, &state, critical.contains(&source))?;
            let mut check = self.suspect(source, &state, Depth::Names)?;
            check.known = match state.found {
                Some(Found::File(file)) if !file.racy && !critical.contains(&source) => {
                    state.wanted.iter().all(|&algorithm| file.digest_in(algorithm).is_some()).then_some(file)
                }
                _ => None,
            };
            checks.push(check);
        }
        self.refuse_used_numbers(last)?;
        let keys = self.count_keys()?;
        if found != self.totals || keys != found.sources {
            let reason = format!(
                "keys are missing: {found:?} and {keys} names of sources where {:?} must be",
                self.totals
            );
            return Err(StorageError::contents("count", Table::Meta, reason));
        }
        if resting.is_empty() { Ok(checks) } else { Err(half_a_step()) }
    }

    /// How many names of sources there are, folders not counted.
    fn count_keys(&self) -> Result<u64, StorageError> {
        let folder = pack::to_bytes(&KeyKind::Folder);
        let mut keys = 0;
        self.shelf
            .storage
            .scan(Table::Keys, &[], &mut |key, _| keys += u64::from(!key.starts_with(&folder)))?;
        Ok(keys)
    }

    /// A counter that was lost would hand out numbers that are taken: one source would overwrite another.
    fn refuse_used_numbers(&self, source: Option<u64>) -> Result<(), StorageError> {
        let session = self.sessions()?.into_iter().map(|SessionNo(number)| u64::from(number)).max();
        let counters = [(self.next.source, source), (u64::from(self.next.session), session)];
        for (next, used) in counters {
            if used.is_some_and(|used| used >= next) {
                let reason = format!("a counter stands at {next}, and {used:?} is taken");
                return Err(StorageError::contents("count", Table::Meta, reason));
            }
        }
        Ok(())
    }

    fn recount(&mut self, session: SessionNo) -> Result<Vec<Row>, StorageError> {
        let key = session.0.to_be_bytes();
        let held: Summary = self.shelf.must(Table::Summaries, &key)?;
        // Read to be sure that it can be: a head that cannot would only be found by the session's next decision.
        let head = self.head(session)?;
        self.note_doubt(session, &head);
        let rows = self.shelf.rows(session)?;
        let tracked = rows.iter().filter(|row| row.role == Role::Tracked).count() as u32;
        let shown = rows.iter().filter(|row| row.role != Role::Input);
        let (rows_len, next_row) = (shown.count() as u32, held.next_row);
        // What a command read and is not there would never make it stale.
        let numbers: HashSet<RowNo> = rows.iter().map(|row| row.no).collect();
        let mut summary = Summary { rows: rows_len, tracked, next_row, ..Summary::default() };
        for row in &rows {
            let mark: Option<Mark> = self.shelf.get(Table::Marks, &mark_key(session, row.no))?;
            let is_command = matches!(row.source, Source::Command { .. });
            if is_command && row.inputs.is_empty() || !is_command && row.source_id.is_none() && mark.is_none()
            {
                return Err(half_a_step());
            }
            if row.inputs.iter().any(|input| !numbers.contains(input)) {
                return Err(half_a_step());
            }
            summary.count(row, mark.as_ref(), true);
            self.tally_row(session, row, mark.as_ref(), true);
            if is_command && !self.says_what_inputs_say(session, row, mark.as_ref())? {
                self.half_judged.insert((session, row.no));
            }
        }
        self.shelf.put(Table::Summaries, &key, &summary)?;
        Ok(rows)
    }
}

fn half_a_step() -> StorageError {
    let reason = "a row is there that nothing would ever judge again".to_owned();
    StorageError::contents("wake", Table::Rows, reason)
}
