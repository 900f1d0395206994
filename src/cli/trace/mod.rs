//! The daemon's own log: lines on stderr, or entries with fields where stderr is systemd's journal.
//!
//! Promise: a stderr that nobody reads, and a journal that takes nothing, end and hold up nobody. The level can be
//! changed while the daemon lives. Absent: what is said to people, which goes to stderr in any case.

mod entries;

use super::out::Out;
use crate::config::Level;
use crate::daemon::{Journald, OnLevel};
use entries::Entries;
use std::ffi::OsStr;
use std::io::{self, IsTerminal};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, Registry, fmt, reload};

/// By which systemd says that it connected stderr to its journal: the device and the inode of that connection.
const STREAM_VARIABLE: &str = "JOURNAL_STREAM";

/// Begins the log of this process. What is returned changes its level.
pub(super) fn begin(level: Level, out: &Out) -> OnLevel {
    let (filter, handle) = reload::Layer::new(filter(level));
    // The filter is the outermost: what it does not let through costs nobody more than a look at one number.
    let subscriber = Registry::default().with(writer(out)).with(filter);
    // Whoever set one before us keeps it, and its level.
    let _ = tracing::subscriber::set_global_default(subscriber);
    Box::new(move |level| {
        // It fails only where the log was never begun.
        let _ = handle.reload(self::filter(level));
    })
}

fn filter(level: Level) -> LevelFilter {
    match level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
        Level::Trace => LevelFilter::TRACE,
    }
}

fn writer(out: &Out) -> Box<dyn Layer<Registry> + Send + Sync> {
    if !is_the_journal(std::env::var_os(STREAM_VARIABLE).as_deref()) {
        return Box::new(to_stderr());
    }
    let journald = Journald::usual();
    match journald.listens() {
        Ok(()) => Box::new(Entries::to(journald)),
        Err(error) => {
            let path = journald.path().display();
            out.talk(&format!(
                "note: nothing can be told systemd's journal at {path} ({error}); the log goes to stderr"
            ));
            Box::new(to_stderr())
        }
    }
}

fn to_stderr() -> impl Layer<Registry> + Send + Sync {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal() && !unwanted)
        .with_target(false)
        .log_internal_errors(false)
}

/// Whether the variable is about our stderr, and not about that of whoever started us and sent it elsewhere.
fn is_the_journal(stream: Option<&OsStr>) -> bool {
    let named = || {
        let (device, inode) = stream?.to_str()?.split_once(':')?;
        Some((device.parse::<u64>().ok()?, inode.parse::<u64>().ok()?))
    };
    let ours = || {
        let stat = rustix::fs::fstat(io::stderr()).ok()?;
        Some((stat.st_dev, stat.st_ino))
    };
    named().is_some_and(|named| ours() == Some(named))
}
