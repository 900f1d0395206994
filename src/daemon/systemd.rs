//! What systemd is told. Without systemd nobody listens, and nothing happens: no message, and no wake-up.
//!
//! Promise: nobody ever waits for a systemd that does not read. What it has no room for is kept, and told when it has;
//! only the watchdog is not, for there is a next time.
//!
//! The watchdog is fed only by a cookie that came back, so systemd watches the eyes and not just the pulse. The variables
//! that systemd set stay in the environment: the one program that the daemon starts, git, gets an
//! environment of its own.

use super::Daemon;
use super::handle::Sight;
use super::journald::is_full;
use sd_notify::NotifyState;
use std::collections::VecDeque;
use std::fmt::Display;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How long after a message that found no room it is tried again.
const RETRY: Duration = Duration::from_millis(100);

/// The way to systemd, and what has not gone there yet.
#[derive(Debug, Default)]
pub(super) struct Systemd {
    socket: Option<UnixDatagram>,
    /// In the order in which it was to be told.
    unsent: Mutex<VecDeque<String>>,
    kept: Notify,
    /// Whether it was told that the daemon is ready. A reload that comes earlier must not say so in its place.
    ready: AtomicBool,
}

impl Systemd {
    /// The systemd that started this process, if one did.
    pub(super) fn usual() -> Self {
        let path = std::env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty());
        let socket = path.and_then(|path| {
            let connected = UnixDatagram::unbound().and_then(|socket| {
                socket.set_nonblocking(true)?;
                socket.connect(&path)?;
                Ok(socket)
            });
            connected.inspect_err(|error| tracing::warn!(%error, "systemd cannot be told anything")).ok()
        });
        Self { socket, ..Self::default() }
    }

    pub(super) fn ready(&self) {
        self.ready.store(true, Ordering::SeqCst);
        self.tell(&[NotifyState::Ready, NotifyState::Status("every watch is armed")]);
    }

    /// Tells of a reload around it. One that is refused leaves the daemon as ready as it was, and the status says why.
    pub(super) fn reload<T, E: Display>(&self, reload: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        if !self.ready.load(Ordering::SeqCst) {
            return reload();
        }
        // Of reloads that it has not heard of the last one is enough; of being ready it has to hear before that.
        self.lock().truncate(1);
        match NotifyState::monotonic_usec_now() {
            Ok(now) => self.tell(&[NotifyState::Reloading, now]),
            Err(error) => tracing::warn!(%error, "systemd was not told of the reload"),
        }
        let reloaded = reload();
        let status = match &reloaded {
            Ok(_) => "the configuration is reloaded".to_owned(),
            // A line break would end the status and begin another message.
            Err(error) => format!("the configuration was not reloaded: {error}").replace('\n', " "),
        };
        self.tell(&[NotifyState::Ready, NotifyState::Status(&status)]);
        reloaded
    }

    pub(super) fn stopping(&self) {
        self.tell(&[NotifyState::Stopping]);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.unsent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, state: &[NotifyState<'_>]) {
        let Some(socket) = &self.socket else { return };
        let mut unsent = self.lock();
        unsent.push_back(message(state));
        if !send(socket, &mut unsent) {
            self.kept.notify_one();
        }
    }

    fn feed_watchdog(&self) {
        let Some(socket) = &self.socket else { return };
        if let Err(error) = socket.send(message(&[NotifyState::Watchdog]).as_bytes())
            && !is_full(&error)
        {
            untold(&error);
        }
    }

    /// Tells what was kept, as long as the daemon lives.
    pub(super) async fn tell_later(&self) {
        let Some(socket) = &self.socket else { return };
        loop {
            self.kept.notified().await;
            while !send(socket, &mut self.lock()) {
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Sends in order for as long as there is room; whether nothing is left.
fn send(socket: &UnixDatagram, unsent: &mut VecDeque<String>) -> bool {
    while let Some(message) = unsent.front() {
        match socket.send(message.as_bytes()) {
            Err(error) if is_full(&error) => return false,
            sent => drop(sent.inspect_err(untold)),
        }
        unsent.pop_front();
    }
    true
}

fn untold(error: &io::Error) {
    tracing::warn!(%error, "systemd could not be told");
}

fn message(state: &[NotifyState<'_>]) -> String {
    let lines: Vec<String> = state.iter().map(ToString::to_string).collect();
    lines.join("\n") + "\n"
}

/// Feeds the watchdog, if there is one, as long as cookies come back: at a third of its interval, so that a cookie that
/// takes as long again is still in time.
pub(super) async fn feed(daemon: Arc<Daemon>) {
    let Some(interval) = sd_notify::watchdog_enabled().filter(|interval| !interval.is_zero()) else { return };
    let every = interval / 3;
    loop {
        let sight = daemon.engine.seen(Instant::now() + every).await;
        // The answer does not count, for a new process would not mend a disk; that there is one does: an appender that
        // hangs keeps the log's lock, and everything stands still here. A syncer that hangs keeps none; who waits for it
        // is refused after a while.
        let _ = daemon.log.failed();
        match sight {
            Ok(Sight::Clear) => daemon.systemd.feed_watchdog(),
            Ok(_) => tracing::warn!("no cookie came back in time, so the watchdog is not fed"),
            Err(_) if daemon.engine.has_ended() => return,
            Err(refusal) => tracing::warn!(why = refusal.message, "the watchdog is not fed"),
        }
        tokio::time::sleep(every).await;
    }
}
