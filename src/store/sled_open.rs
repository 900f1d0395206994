//! sled opened on a thread that nobody depends on: it may panic or hang there.

use super::sled_index::{Doubt, trouble};
use crate::index::storage::{Table, Trouble};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// What sled may keep in memory. Decisions read a few hot values; a million files are looked at once and then left alone.
const CACHE_BYTES: u64 = 16 * 1024 * 1024;

/// How long to wait for sled's lock.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
const LOCK_PAUSE: Duration = Duration::from_millis(10);

pub(super) type Opened = (sled::Db, Vec<sled::Tree>);

/// sled may panic or hang in `open`; both happen on a thread that nobody depends on.
pub(super) fn open_apart(
    folder: &Path,
    tables: &'static [(Table, &'static str)],
    timeout: Duration,
) -> Result<Opened, Doubt> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let path = folder.to_owned();
    let open = move || {
        let opened = catch_unwind(AssertUnwindSafe(|| open_patiently(&path, tables)));
        // Nobody listens any more when it took too long.
        let _ = sender.send(opened);
    };
    let spawned = std::thread::Builder::new().name("sled-open".to_owned()).spawn(open);
    spawned.map_err(|error| Doubt {
        reason: format!("no thread to open it on: {error}"),
        trouble: Trouble::Disk,
        hangs: false,
    })?;
    match receiver.recv_timeout(timeout) {
        Ok(Ok(Ok(opened))) => Ok(opened),
        Ok(Ok(Err(error))) => {
            Err(Doubt { trouble: trouble(&error), reason: error.to_string(), hangs: false })
        }
        Ok(Err(_)) => Err(Doubt::contents("sled panicked while opening it")),
        Err(_) => {
            let reason = format!("sled did not open it within {} s", timeout.as_secs());
            Err(Doubt { hangs: true, ..Doubt::contents(reason) })
        }
    }
}

/// sled's own lock may outlive its owner a moment: in a thread that is flushing, or in a child that has not yet executed.
/// The state is claimed already, so whoever holds it is going away.
fn open_patiently(folder: &Path, tables: &[(Table, &str)]) -> sled::Result<Opened> {
    let begun = Instant::now();
    loop {
        match open_here(folder, tables) {
            Err(error) if is_locked(&error) && begun.elapsed() < LOCK_PATIENCE => {
                std::thread::sleep(LOCK_PAUSE);
            }
            opened => return opened,
        }
    }
}

/// sled tells a held lock by its text alone.
fn is_locked(error: &sled::Error) -> bool {
    matches!(error, sled::Error::Io(error) if error.to_string().contains("could not acquire lock"))
}

fn open_here(folder: &Path, tables: &[(Table, &str)]) -> sled::Result<Opened> {
    let db = sled::Config::new().path(folder).cache_capacity(CACHE_BYTES).flush_every_ms(Some(500)).open()?;
    let trees = tables.iter().map(|(_, name)| db.open_tree(name)).collect::<sled::Result<_>>()?;
    Ok((db, trees))
}

#[cfg(test)]
mod tests {
    use super::open_apart;
    use std::time::Duration;

    #[test]
    fn a_folder_in_which_sled_hangs_is_said_to_be_one() {
        let folder = tempfile::tempdir().unwrap();
        let mode = rustix::fs::Mode::from(0o600);
        let made = rustix::fs::mknodat(
            rustix::fs::CWD,
            folder.path().join("conf"),
            rustix::fs::FileType::Fifo,
            mode,
            0,
        );
        made.unwrap();
        let doubt =
            open_apart(folder.path(), &[], Duration::from_millis(200)).expect_err("nobody writes to it");
        assert!(doubt.hangs, "{doubt:?}");
        // What hangs goes on and ends, and may have closed its side before everything is written.
        let _ = std::fs::write(folder.path().join("conf"), "garbage");
    }
}
