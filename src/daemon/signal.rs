//! Signals become messages: stop, reload, reopen the log.

use super::{Command, Daemon};
use crate::world::dart::fault;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::{Handle, Signals as Stream};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// The process's signals, caught from the moment this exists, so that none ends the process while it starts.
#[derive(Debug)]
pub struct Signals {
    stream: Stream,
}

/// Ends the signal thread when it goes.
pub(super) struct Listening {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Signals {
    /// Catches SIGTERM, SIGINT, SIGHUP and SIGUSR1.
    pub fn catch() -> io::Result<Self> {
        Stream::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1]).map(|stream| Self { stream })
    }

    pub(super) fn listen(mut self, daemon: &Arc<Daemon>) -> io::Result<Listening> {
        let handle = self.stream.handle();
        let daemon = Arc::clone(daemon);
        let listen = move || {
            let dart = daemon.died.dart("signals");
            for signal in self.stream.forever() {
                fault(dart.thread());
                act(&daemon, signal);
            }
        };
        let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(listen)?;
        Ok(Listening { handle, thread: Some(thread) })
    }
}

fn act(daemon: &Daemon, signal: i32) {
    match signal {
        SIGHUP => {
            if let Err(error) = daemon.reload() {
                tracing::warn!(%error, "the configuration was not reloaded");
            }
        }
        SIGUSR1 => match daemon.log.reopen() {
            Ok(()) => tracing::info!("decision log reopened"),
            Err(error) => tracing::warn!(%error, "the decision log was not reopened"),
        },
        _ => {
            daemon.stop.send_replace(Command::Stop);
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            // The thread only passes signals on; if it panicked there is nothing left to pass.
            let _ = thread.join();
        }
    }
}
