//! What systemd is told. Without systemd nobody listens, and nothing happens: no message, and no wake-up.
//!
//! The watchdog is fed only by a cookie that came back, so systemd watches the eyes and not just the pulse. The variables
//! that systemd set stay in the environment: the daemon starts no program that could inherit them.

use super::Daemon;
use super::handle::Sight;
use sd_notify::NotifyState;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Whether systemd was told that the daemon is ready. A reload that comes earlier must not say so in its place.
#[derive(Debug, Default)]
pub(super) struct Announced(AtomicBool);

impl Announced {
    pub(super) fn ready(&self) {
        self.0.store(true, Ordering::SeqCst);
        tell(&[NotifyState::Ready, NotifyState::Status("every watch is armed")]);
    }

    /// Tells of a reload around it. One that is refused leaves the daemon as ready as it was, and the status says why.
    pub(super) fn reload<T, E: Display>(&self, reload: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        if !self.0.load(Ordering::SeqCst) {
            return reload();
        }
        match NotifyState::monotonic_usec_now() {
            Ok(now) => tell(&[NotifyState::Reloading, now]),
            Err(error) => tracing::warn!(%error, "systemd was not told of the reload"),
        }
        let reloaded = reload();
        let status = match &reloaded {
            Ok(_) => "the configuration is reloaded".to_owned(),
            // A line break would end the status and begin another message.
            Err(error) => format!("the configuration was not reloaded: {error}").replace('\n', " "),
        };
        tell(&[NotifyState::Ready, NotifyState::Status(&status)]);
        reloaded
    }
}

pub(super) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Feeds the watchdog, if there is one, as long as cookies come back: at a third of its interval, so that a cookie that
/// takes as long again is still in time.
pub(super) async fn feed(daemon: Arc<Daemon>) {
    let Some(interval) = sd_notify::watchdog_enabled().filter(|interval| !interval.is_zero()) else { return };
    let every = interval / 3;
    loop {
        let sight = daemon.engine.seen(Instant::now() + every).await;
        // The answer does not count, for a new process would not mend a disk; that there is one does: an appender or a
        // syncer that hangs keeps its lock, and everything stands still here.
        let _ = daemon.log.failed();
        match sight {
            // A systemd that does not read makes whoever tells it wait. It shall be nobody else.
            Ok(Sight::Clear) => {
                let _ = tokio::task::spawn_blocking(|| tell(&[NotifyState::Watchdog])).await;
            }
            Ok(_) => tracing::warn!("no cookie came back in time, so the watchdog is not fed"),
            Err(_) if daemon.engine.has_ended() => return,
            Err(refusal) => tracing::warn!(why = refusal.message, "the watchdog is not fed"),
        }
        tokio::time::sleep(every).await;
    }
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "systemd could not be told");
    }
}
