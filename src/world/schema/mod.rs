//! A look at the schema of an SQLite database, read from its files alone.
//!
//! Promise: the schema is that of the last transaction that was committed, as whoever opens the database now would see
//! it: what is only in the write-ahead log counts, what a transaction in progress or a crash left in the file does not.
//! Nothing is locked, created or written, so no writer ever waits for us and no `-shm` appears. That is why SQLite itself
//! is not used: it cannot read a log without shared memory beside the database, and not around a writer's lock.

mod btree;
mod journal;
mod pages;
mod sql;
mod wal;

use super::digest;
use super::filesystem;
use super::look::{LookOptions, Unwatchable};
use super::route::{End, Route, resolve, resolve_all};
use crate::index::found::Found;
use crate::index::freshness::Doubt;
use crate::session::digest::Digest;
use btree::Object;
use pages::{Damage, Pages};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a database that changes under the look is read again before the look gives up.
const TRIES: u32 = 8;

/// Between two tries: a commit takes about as long.
const PAUSE: Duration = Duration::from_millis(2);

/// The routes that decide a look: to the database, and to what lies beside it. `-shm` is not among them: it only tells
/// processes where in the log they are.
pub(super) fn routes(path: &Path) -> Vec<Route> {
    let mut routes = vec![resolve(path)];
    if let End::Something(database) = &routes[0].end {
        let beside = [beside(database, "-wal"), beside(database, "-journal")];
        routes.extend(resolve_all(&beside));
    }
    routes
}

fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(database);
    name.push(suffix);
    name.into()
}

/// Looks at the database at a canonical path.
#[must_use]
pub(super) fn look(path: &Path, options: &LookOptions) -> Found {
    if options.unwatchable == Unwatchable::Unknown && filesystem::at(path) == filesystem::Kind::Unwatchable {
        return Found::Unknown(Doubt::UnwatchableFs);
    }
    let mut doubt = Doubt::Unsettled;
    for number in 0..TRIES {
        if number > 0 {
            std::thread::sleep(PAUSE);
        }
        match look_once(path) {
            Ok(Some(found)) => return found,
            Ok(None) | Err(Damage::Unsettled) => doubt = Doubt::Unsettled,
            // A writer without a journal leaves it so for a moment; one that stays so cannot be read.
            Err(Damage::Broken) => doubt = Doubt::Unreadable,
            Err(Damage::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Found::Missing,
            Err(Damage::Io(_)) => return Found::Unknown(Doubt::Unreadable),
        }
    }
    Found::Unknown(doubt)
}

/// `None` when the files did not hold still.
fn look_once(path: &Path) -> Result<Option<Found>, Damage> {
    let metadata = std::fs::symlink_metadata(path)?;
    if !metadata.is_file() {
        let kind = if metadata.is_dir() { "folder" } else { "device" };
        return Ok(Some(Found::Other { kind: kind.to_owned() }));
    }
    let pages = Pages::open(path, &beside(path, "-wal"), &beside(path, "-journal"))?;
    let read = match &pages {
        Some(pages) => btree::objects(pages),
        None => Ok(Vec::new()),
    };
    match &pages {
        Some(pages) if !pages.held_still()? => return Ok(None),
        None if std::fs::metadata(path)?.len() > 0 => {
            return Ok(Some(Found::Other { kind: "file that is no database".to_owned() }));
        }
        _ => {}
    }
    Ok(Some(Found::Schema(digest_of(&read?))))
}

/// Digest of the objects in the order of their names; what SQLite makes for itself is left out, for data make it too.
fn digest_of(objects: &[Object]) -> Digest {
    let own = |object: &&Object| !object.name.to_ascii_lowercase().starts_with("sqlite_");
    let mut told: Vec<[String; 4]> = objects
        .iter()
        .filter(own)
        .map(|Object { kind, name, table, sql }| {
            [kind.clone(), name.clone(), table.clone(), sql::normalised(sql)]
        })
        .collect();
    told.sort();
    digest::blake3_of(told.iter().flatten().map(String::as_bytes))
}
