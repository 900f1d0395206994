//! The terminal: taken over whole, given back as it was however it ends, and what comes from it.

use super::model::Deed;
use super::news::News;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;
use std::io;
use std::mem::ManuallyDrop;
use std::sync::mpsc::Sender;
use std::time::Duration;

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

/// Reads keys. It waits for them itself: a terminal that hangs up would be read from for ever.
pub(super) fn read_keys(news: &Sender<News>) {
    let stdin = io::stdin();
    loop {
        let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut polled, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => break,
        }
        if polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            break;
        }
        while let Ok(true) = event::poll(Duration::ZERO) {
            let Ok(read) = event::read() else { break };
            if let Some(told) = told(&read)
                && news.send(told).is_err()
            {
                return;
            }
        }
    }
    let _ = news.send(News::Gone);
}

fn told(read: &Event) -> Option<News> {
    match read {
        Event::Key(key) if key.kind != KeyEventKind::Release => deed(key).map(News::Key),
        Event::Resize(..) => Some(News::Resized),
        _ => None,
    }
}

fn deed(key: &KeyEvent) -> Option<Deed> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Char('c') if control => Deed::Quit,
        // Nothing else is said with Ctrl or Alt held.
        KeyCode::Char(_) if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {
            return None;
        }
        KeyCode::Char('q') | KeyCode::Esc => Deed::Quit,
        KeyCode::Char('k') | KeyCode::Up => Deed::Up,
        KeyCode::Char('j') | KeyCode::Down => Deed::Down,
        KeyCode::Tab => Deed::NextPane,
        KeyCode::BackTab => Deed::LastPane,
        KeyCode::PageUp => Deed::PageUp,
        KeyCode::PageDown => Deed::PageDown,
        KeyCode::Char('?') => Deed::Help,
        _ => return None,
    })
}
