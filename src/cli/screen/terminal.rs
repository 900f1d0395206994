//! The terminal: taken over whole, given back as it was however it ends, and what comes from it.

use super::keys;
use super::news::News;
use ratatui::DefaultTerminal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;
use std::io;
use std::mem::ManuallyDrop;
use std::sync::mpsc::Sender;

/// Between the bytes of one key.
const BETWEEN: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// The screen, ours until this is dropped.
pub(super) struct Screen {
    /// Its own end would speak on a terminal that may have gone; all that it does is done here.
    terminal: ManuallyDrop<DefaultTerminal>,
}

impl Screen {
    /// Takes the screen over. A panic gives it back before it says anything.
    pub(super) fn take() -> io::Result<Self> {
        let terminal = ratatui::try_init().inspect_err(|_| drop(ratatui::try_restore()))?;
        Ok(Self { terminal: ManuallyDrop::new(terminal) })
    }

    pub(super) fn terminal(&mut self) -> &mut DefaultTerminal {
        &mut self.terminal
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Where there is no terminal any more there is nothing to give back.
        let _ = self.terminal.show_cursor();
        let _ = ratatui::try_restore();
    }
}

/// Hears signals; all but a change of size end the program, once the screen is given back.
pub(super) fn hear_signals(mut signals: Signals, news: &Sender<News>) {
    for signal in signals.forever() {
        let told = if signal == SIGWINCH { News::Resized } else { News::Signal(signal) };
        if news.send(told).is_err() {
            return;
        }
    }
}

/// The signals that are heard, from now on.
pub(super) fn signals() -> io::Result<Signals> {
    Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH])
}

/// Reads keys until the terminal goes away.
pub(super) fn read_keys(news: &Sender<News>) {
    let stdin = io::stdin();
    let mut held = Vec::new();
    loop {
        // Of a key that has begun the rest follows at once.
        let patience = if held.is_empty() { None } else { Some(&BETWEEN) };
        let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
        let came = match poll(&mut polled, patience) {
            Ok(came) => came > 0,
            Err(Errno::INTR) => continue,
            Err(_) => break,
        };
        if came {
            // Unbuffered, for what lies in a buffer no poll tells of.
            let mut bytes = [0; 256];
            match rustix::io::read(&stdin, &mut bytes) {
                Ok(len @ 1..) => held.extend_from_slice(&bytes[..len]),
                Err(Errno::INTR | Errno::AGAIN) => continue,
                Ok(0) | Err(_) => break,
            }
        }
        let (deeds, len) = keys::read(&held, !came);
        held.drain(..len);
        if deeds.into_iter().any(|deed| news.send(News::Key(deed)).is_err()) {
            return;
        }
    }
    let _ = news.send(News::Gone);
}
