//! What a hook saw and could not tell, kept for the next hook of its session that reaches the daemon.
//!
//! Promise: an event that was seen is told once the daemon is there again, before anything later of its session. Without
//! this a read that no daemon heard of would never go stale. One event is one file, put there by a rename, so nobody who
//! writes has to wait for anybody who reads, and a killed hook leaves all of an event or none. Paths and digests only,
//! nobody else may read it, and private text is redacted before it is written.

use super::sight::Sighting;
use crate::session::privacy::strip;
use crate::world::digest::blake3;
use serde_json::Value;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Events of one session that may wait. A session that is never asked about again must not fill the disk.
const WAITING_MAX: usize = 10_000;

/// Where what was not told waits.
#[derive(Debug, Clone)]
pub struct Spool {
    folder: PathBuf,
}

/// One event that waited.
#[derive(Debug)]
pub struct Waiting {
    /// What was seen; `None` when it cannot be read any more.
    pub sighting: Option<Sighting>,
    file: PathBuf,
}

impl Spool {
    /// That of one session, in the user's state folder. A session's name may say anything, a folder's may not.
    #[must_use]
    pub fn of(state: &Path, session: &str) -> Self {
        Self { folder: state.join("hooks").join(&blake3(session.as_bytes()).to_hex()[..32]) }
    }

    /// Keeps an event behind those that wait already.
    pub fn keep(&self, line: &str) -> io::Result<()> {
        if self.names()?.len() >= WAITING_MAX {
            return Err(io::Error::other(format!("{WAITING_MAX} events of this session wait already")));
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = self.folder.join(format!("{:024}-{}.json", since.as_nanos(), std::process::id()));
        // Whoever told the last event takes the folder away with it.
        match self.put(&name, line) {
            Err(error) if error.kind() == ErrorKind::NotFound => self.put(&name, line),
            put => put,
        }
    }

    fn put(&self, name: &Path, line: &str) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let new = name.with_extension("new");
        let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&new)?;
        file.write_all(line.as_bytes())?;
        std::fs::rename(&new, name)
    }

    /// What waits, in the order in which it was seen.
    pub fn waiting(&self) -> io::Result<Vec<Waiting>> {
        let mut names = self.names()?;
        names.sort();
        let read = |file: PathBuf| {
            let sighting = std::fs::read(&file).ok().and_then(|line| serde_json::from_slice(&line).ok());
            Waiting { sighting, file }
        };
        Ok(names.into_iter().map(read).collect())
    }

    fn names(&self) -> io::Result<Vec<PathBuf>> {
        let listed = match std::fs::read_dir(&self.folder) {
            Ok(listed) => listed,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let names = listed.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
        Ok(names.into_iter().filter(|name| name.extension().is_some_and(|kind| kind == "json")).collect())
    }

    /// Takes the folder away where nothing waits in it any more.
    pub fn tidy(&self) {
        let _ = std::fs::remove_dir(&self.folder);
    }
}

impl Waiting {
    /// It was told.
    pub fn done(&self) -> io::Result<()> {
        match std::fs::remove_file(&self.file) {
            // Another hook of the session told it too, which changes nothing.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

/// A sighting as it is kept.
#[must_use]
pub fn line(sighting: &Sighting) -> String {
    let mut value = serde_json::to_value(sighting).unwrap_or_default();
    redact(&mut value);
    value.to_string()
}

fn redact(value: &mut Value) {
    match value {
        Value::String(text) => *text = strip(text),
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::Object(fields) => fields.values_mut().for_each(redact),
        _ => {}
    }
}
