//! Sources at which a look panicked: the next start must not die of the same one, and the one after that neither.
//!
//! Promise: a path is on disk before anybody is told that its verifier died. For a day nobody looks there again, and what
//! rests on it cannot be told; then it is tried once more, for what failed may have been the moment and not the source.
//!
//! Each note is a NUL, a checksum of what follows, the second of its making, the path's bytes, and a NUL, with a space
//! between each two. It begins with a NUL so that one that a full disk cut short does not swallow the next, and the checksum
//! tells what was cut short from what is whole.

use super::digest::blake3;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// How long a source is left alone.
const KEPT_S: u64 = 24 * 60 * 60;

/// How much of the digest is written.
const CHECKSUM_LEN: usize = 16;

/// What is left alone, and where more of it is noted.
#[derive(Debug)]
pub(super) struct Stumbles {
    file: Option<PathBuf>,
    /// By path, when it was noted. Those of this process come on top only after the next start: it is ending.
    held: BTreeMap<PathBuf, u64>,
}

impl Stumbles {
    /// Reads what earlier processes noted. Without a file nothing is kept.
    pub(super) fn open(file: Option<PathBuf>) -> Self {
        let held = match file.as_deref().map(read) {
            Some(Ok(held)) => held,
            Some(Err(error)) => {
                // Another process may be let to read them, or this one at its next start: they stay.
                tracing::warn!(%error, file = ?file, "what ended earlier processes cannot be read, and may end this one");
                return Self { file, held: BTreeMap::new() };
            }
            None => BTreeMap::new(),
        };
        if let (Some(file), true) = (&file, held.is_empty()) {
            // Whatever is in it is over. If it stays it is read again, and no more.
            let _ = std::fs::remove_file(file);
        }
        for path in held.keys() {
            tracing::warn!(path = %path.display(), "not looked at, for a look at it ended an earlier process");
        }
        Self { file, held }
    }

    /// Whether nobody is to look there now.
    pub(super) fn holds(&self, path: &Path) -> bool {
        self.held.get(path).is_some_and(|&at| is_young(at, now_s()))
    }

    /// All of them, sorted.
    pub(super) fn all(&self) -> impl Iterator<Item = &Path> {
        let now = now_s();
        self.held.iter().filter(move |(_, at)| is_young(**at, now)).map(|(path, _)| path.as_path())
    }

    /// A look at this path panicked.
    pub(super) fn note(&self, path: &Path) {
        let Some(file) = &self.file else { return };
        if let Err(error) = write(file, path) {
            tracing::error!(%error, "it could not be noted, so the next process may end at the same source");
        }
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn read(file: &Path) -> io::Result<BTreeMap<PathBuf, u64>> {
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error),
    };
    let now = now_s();
    Ok(bytes.split(|&byte| byte == 0).filter_map(noted).filter(|(_, at)| is_young(*at, now)).collect())
}

/// A clock that went back makes a note young, which is the careful side.
fn is_young(at: u64, now: u64) -> bool {
    now.saturating_sub(at) < KEPT_S
}

fn noted(note: &[u8]) -> Option<(PathBuf, u64)> {
    let (sum, said) = note.split_at_checked(CHECKSUM_LEN)?;
    let said = said.strip_prefix(b" ")?;
    if checksum(said).as_bytes() != sum {
        return None;
    }
    let space = said.iter().position(|&byte| byte == b' ')?;
    let at = std::str::from_utf8(&said[..space]).ok()?.parse().ok()?;
    Some((OsStr::from_bytes(&said[space + 1..]).into(), at))
}

fn note_of(path: &Path, at: u64) -> Vec<u8> {
    let said = [at.to_string().as_bytes(), b" ", path.as_os_str().as_bytes()].concat();
    [b"\0", checksum(&said).as_bytes(), b" ", &said, b"\0"].concat()
}

fn checksum(said: &[u8]) -> String {
    let mut sum = blake3(said).to_hex();
    sum.truncate(CHECKSUM_LEN);
    sum
}

fn write(file: &Path, path: &Path) -> io::Result<()> {
    let mut notes = OpenOptions::new().append(true).create(true).mode(0o600).open(file)?;
    notes.write_all(&note_of(path, now_s()))?;
    notes.sync_all()?;
    // It may be new, and who is told next ends the process.
    file.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::{KEPT_S, Stumbles, is_young, note_of, now_s};
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    #[test]
    fn what_was_noted_is_held_for_a_day_by_the_next_process() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("stumbled");
        let odd = Path::new(std::ffi::OsStr::from_bytes(b"/a b\n\xff"));
        let first = Stumbles::open(Some(file.clone()));
        first.note(odd);
        first.note(Path::new("/c"));
        let next = Stumbles::open(Some(file.clone()));
        assert_eq!(next.all().collect::<Vec<_>>(), [odd, Path::new("/c")]);
        assert!(next.holds(odd) && !next.holds(Path::new("/a")));
        let (old, young) = (Path::new("/old"), Path::new("/young"));
        std::fs::write(&file, [note_of(old, now_s() - KEPT_S), note_of(young, now_s() + 60)].concat())
            .unwrap();
        assert_eq!(Stumbles::open(Some(file.clone())).all().collect::<Vec<_>>(), [young]);
        std::fs::write(&file, note_of(old, 1)).unwrap();
        assert_eq!(Stumbles::open(Some(file.clone())).all().count(), 0);
        assert!(!file.exists(), "what is over goes");
    }

    #[test]
    fn notes_that_cannot_be_read_stay_for_who_can() {
        let folder = tempfile::tempdir().unwrap();
        let (file, kept) = (folder.path().join("stumbled"), folder.path().join("kept"));
        std::fs::write(&kept, note_of(Path::new("/a"), now_s())).unwrap();
        // A link to itself opens for nobody, root neither.
        std::os::unix::fs::symlink(&file, &file).unwrap();
        assert_eq!(Stumbles::open(Some(file.clone())).all().count(), 0);
        assert!(file.symlink_metadata().is_ok(), "it was taken away unread");
        std::fs::rename(&kept, &file).unwrap();
        assert!(Stumbles::open(Some(file)).holds(Path::new("/a")));
    }

    #[test]
    fn a_process_that_lives_on_tries_again_after_a_day() {
        assert!(is_young(100, 99 + KEPT_S) && !is_young(100, 100 + KEPT_S) && is_young(100, 3));
        let (young, old) = (Path::new("/young"), Path::new("/old"));
        let held = [(young.to_owned(), now_s()), (old.to_owned(), now_s() - KEPT_S)].into();
        let lives_on = Stumbles { file: None, held };
        assert!(lives_on.holds(young) && !lives_on.holds(old));
        assert_eq!(lives_on.all().collect::<Vec<_>>(), [young]);
    }

    #[test]
    fn a_note_that_was_cut_short_costs_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("stumbled");
        let (first, torn, second) = (Path::new("/first"), Path::new("/torn"), Path::new("/second"));
        let whole = note_of(torn, now_s());
        for len in 0..=whole.len() {
            let before = [note_of(first, now_s()), whole[..len].to_owned()].concat();
            std::fs::write(&file, before).unwrap();
            Stumbles::open(Some(file.clone())).note(second);
            let held = Stumbles::open(Some(file.clone()));
            // Without its last NUL it is whole all the same.
            let expected =
                if len + 1 < whole.len() { vec![first, second] } else { vec![first, second, torn] };
            assert_eq!(held.all().collect::<Vec<_>>(), expected, "{len}");
        }
    }
}
