//! Whatever is appended, rolled, compacted and opened again, and behind whichever step it stops: the journal folds to what
//! was appended. The number of lives is `STALED_TRIALS`, 60 unless it says otherwise.

use super::*;

/// What was appended, and how far a snapshot may reach.
struct Life {
    dir: tempfile::TempDir,
    appended: Vec<String>,
    random: fastrand::Rng,
    again: String,
}

impl Life {
    /// Opens a copy of the folder as it stands now, as if the process had ended here.
    fn stop_here(&self, step: &str) {
        let twin = copy_of(self.dir.path());
        let (mut journal, opened, told) = open(twin.path()).unwrap();
        self.check(&opened, &told, step);
        assert_eq!(journal.append(b"k0=on").unwrap(), self.appended.len() as u64 + 1, "{step}");
        let left = names(twin.path());
        assert!(left.iter().all(|name| is(name, "seg") || is(name, "snap")), "{step}: {left:?}");
        let told_at = told.snapshot.map_or(0, |_| 1);
        assert_eq!(left.iter().filter(|name| is(name, "snap")).count(), told_at, "{step}: {left:?}");
        drop(journal);
        let twice = open(twin.path()).unwrap().2;
        assert_eq!((twice.snapshot, &twice.kept), (told.snapshot, &told.kept), "{step}, {}", self.again);
    }

    fn check(&self, opened: &Opened, told: &Told, step: &str) {
        let again = &self.again;
        assert_eq!(told.folded(), fold(&self.appended), "{step}, {again}");
        assert_eq!((opened.last_seq, &opened.damage), (self.appended.len() as u64, &None), "{step}, {again}");
        assert!(!opened.in_doubt && opened.torn.is_none(), "{step}, {again}: {opened:?}");
        let covered = usize::try_from(told.snapshot.unwrap_or(0)).unwrap();
        assert_eq!(told.kept, fold(&self.appended[..covered]), "{step}, {again}");
        let records: Vec<&String> = told.records.iter().map(|(_, text)| text).collect();
        assert_eq!(records, self.appended[covered..].iter().collect::<Vec<_>>(), "{step}, {again}");
    }

    fn append(&mut self, journal: &mut Journal) {
        let text = format!("k{}={}", self.random.u8(..6), "x".repeat(self.random.usize(..60)));
        journal.append(text.as_bytes()).unwrap();
        self.appended.push(text);
    }

    /// A compaction that stops behind any of its steps, while the journal goes on.
    fn compact(&mut self, journal: &mut Journal) {
        let Some(closed) = journal.closed() else { return };
        let told = read(&closed);
        assert_eq!(told.folded(), fold(&self.appended[..usize::try_from(closed.last_seq()).unwrap()]));
        self.go_on(journal);
        let path = snapshot(self.dir.path(), closed.last_seq());
        let twin = copy_of(self.dir.path());
        let written = closed.write(told.folded()).unwrap();
        self.stop_here("the snapshot is in place");
        let bytes = fs::read(&path).unwrap();
        for cut in [0, self.random.usize(..bytes.len()), bytes.len()] {
            let half = Self { dir: copy_of(twin.path()), appended: self.appended.clone(), ..self.twin() };
            fs::write(
                half.dir.path().join(format!("{}.new", path.file_name().unwrap().display())),
                &bytes[..cut],
            )
            .unwrap();
            half.stop_here("the snapshot is half made");
        }
        self.go_on(journal);
        if self.random.u8(..4) == 0 {
            // It is done again later, from the snapshot.
            return;
        }
        journal.compacted(written);
        let covered = closed.covered().unwrap();
        let removed = if self.random.bool() { covered.len() } else { self.random.usize(..=covered.len()) };
        for path in &covered[..removed] {
            fs::remove_file(path).unwrap();
            self.stop_here("one more was removed");
        }
        if removed == covered.len() {
            closed.remove_covered().unwrap();
        }
    }

    fn twin(&self) -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            appended: Vec::new(),
            random: fastrand::Rng::with_seed(1),
            again: self.again.clone(),
        }
    }

    /// The engine does not wait for a compaction.
    fn go_on(&mut self, journal: &mut Journal) {
        for _ in 0..self.random.usize(..3) {
            self.append(journal);
        }
        if self.random.u8(..4) == 0 {
            journal.roll().unwrap();
        }
    }
}

#[test]
fn whatever_is_done_and_wherever_it_stops_the_journal_folds_to_the_same() {
    let (trials, seed) = trials();
    let mut compactions = 0;
    for trial in 0..trials as u64 {
        let again = format!("trial {trial}, again with STALED_SEED={seed}");
        let random = fastrand::Rng::with_seed(seed ^ trial);
        let mut life = Life { dir: tempfile::tempdir().unwrap(), appended: Vec::new(), random, again };
        let mut journal = create(life.dir.path());
        for _ in 0..40 {
            match life.random.u8(..12) {
                0 => journal.roll().unwrap(),
                1 => {
                    compactions += usize::from(journal.closed().is_some());
                    life.compact(&mut journal);
                }
                2 => {
                    drop(journal);
                    let (opened, found, told) = open(life.dir.path()).unwrap();
                    life.check(&found, &told, "opened");
                    journal = opened;
                }
                3 => journal.start_over(life.random.u64(..=life.appended.len() as u64)).unwrap(),
                _ => life.append(&mut journal),
            }
        }
        life.stop_here("the end");
    }
    assert!(compactions >= trials / 2, "{compactions} in {trials} lives, seed {seed}");
}
