//! Sources at which a look panicked: the next start must not die of the same one, and the one after that neither.
//!
//! Promise: a path is on disk before anybody is told that its verifier died. For a day nobody looks there again, and what
//! rests on it cannot be told; then it is tried once more, for what failed may have been the moment and not the source.
//!
//! Each note is the second of its making, a space, the path's bytes, and a NUL.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// How long a source is left alone.
const KEPT_S: u64 = 24 * 60 * 60;

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
        let held = file.as_deref().map_or_else(BTreeMap::new, read);
        if let (Some(file), true) = (&file, held.is_empty()) {
            // Whatever is in it is over. If it stays it is read again, and no more.
            let _ = std::fs::remove_file(file);
        }
        for path in held.keys() {
            tracing::warn!(path = %path.display(), "not looked at, for a look at it ended an earlier process");
        }
        Self { file, held }
    }

    /// Whether nobody is to look there.
    pub(super) fn holds(&self, path: &Path) -> bool {
        !self.held.is_empty() && self.held.contains_key(path)
    }

    /// All of them, sorted.
    pub(super) fn all(&self) -> impl Iterator<Item = &Path> {
        self.held.keys().map(PathBuf::as_path)
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

fn read(file: &Path) -> BTreeMap<PathBuf, u64> {
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return BTreeMap::new(),
        Err(error) => {
            tracing::warn!(%error, file = %file.display(), "what ended earlier processes cannot be read");
            return BTreeMap::new();
        }
    };
    let now = now_s();
    // A clock that went back makes a note young, which is the careful side.
    let young = |at: u64| now.saturating_sub(at) < KEPT_S;
    // What does not end in a NUL was cut short.
    let whole = bytes.iter().rposition(|&byte| byte == 0).map_or(0, |end| end);
    bytes[..whole].split(|&byte| byte == 0).filter_map(noted).filter(|(_, at)| young(*at)).collect()
}

fn noted(note: &[u8]) -> Option<(PathBuf, u64)> {
    let space = note.iter().position(|&byte| byte == b' ')?;
    let at = std::str::from_utf8(&note[..space]).ok()?.parse().ok()?;
    Some((OsStr::from_bytes(&note[space + 1..]).into(), at))
}

fn write(file: &Path, path: &Path) -> io::Result<()> {
    let mut note = format!("{} ", now_s()).into_bytes();
    note.extend_from_slice(path.as_os_str().as_bytes());
    note.push(0);
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(file)?;
    file.write_all(&note)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::{KEPT_S, Stumbles, now_s};
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
        let old = format!("{} /old\0{} /young\0{} /torn", now_s() - KEPT_S, now_s() + 60, now_s());
        std::fs::write(&file, old).unwrap();
        assert_eq!(Stumbles::open(Some(file.clone())).all().collect::<Vec<_>>(), [Path::new("/young")]);
        std::fs::write(&file, "1 /old\0").unwrap();
        assert_eq!(Stumbles::open(Some(file.clone())).all().count(), 0);
        assert!(!file.exists(), "what is over goes");
    }
}
