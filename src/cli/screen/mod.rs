//! `status --watch` on a terminal: a full screen that is calm, and says what changed when it does.
//!
//! It is drawn from a model and nothing else, and only when something happened or an age is a second older. What it shows
//! is asked for by a thread of its own ([`told`]), so a daemon that is slow or away never holds up a key. However it ends,
//! the terminal is given back as it was.

mod draw;
mod facts;
mod keys;
mod model;
mod news;
mod terminal;
mod told;

#[cfg(test)]
mod tests;

use super::shell::{Done, Shell, Stop};
use super::words::now_micros;
use crate::protocol::request::Status;
use draw::{Look, draw};
use model::Model;
use news::News;
use ratatui::layout::Rect;
use std::io::{self, ErrorKind, IsTerminal};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use terminal::Screen;
use told::Asked;

/// Whether somebody looks at the output and can press a key.
pub(super) fn fits(shell: &Shell) -> bool {
    shell.out.redraws() && !shell.json && io::stdin().is_terminal()
}

pub(super) fn watch(session: Option<&str>, shell: &mut Shell) -> Done {
    // What cannot be watched is said on the screen as it was.
    shell.client()?.ask("status", &Status { session: session.map(str::to_owned), ..Status::default() })?;
    let (told, news) = channel();
    let (asker, asked) = told::asker(shell.socket()?, session.map(str::to_owned), told.clone());
    let signals =
        terminal::signals().map_err(|error| Stop::failed(format!("cannot hear signals: {error}")))?;
    let mut screen = Screen::take().map_err(stop)?;
    let socket = shell.socket()?;
    let listener = asked.clone();
    start(&told, move |_| asker.run());
    start(&told, move |_| listener.listen(&socket));
    start(&told, move |told| terminal::hear_signals(signals, &told));
    start(&told, |told| terminal::read_keys(&told));
    drop(told);
    let ended = show(&mut screen, &news, &asked, session, Look::new(shell.out.paint));
    drop(screen);
    match ended? {
        Ended::Quit => Ok(0),
        Ended::Signal(signal) => {
            // As it would have ended, had nobody heard it.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
            Ok(128_u8.saturating_add(u8::try_from(signal).unwrap_or(0)))
        }
    }
}

/// Why the screen is no longer shown.
enum Ended {
    Quit,
    Signal(i32),
}

fn show(
    screen: &mut Screen,
    news: &Receiver<News>,
    asked: &Asked,
    session: Option<&str>,
    look: Look,
) -> Result<Ended, Stop> {
    let mut model = Model::new(session.map(str::to_owned));
    loop {
        model.now = now_micros();
        let terminal = screen.terminal();
        terminal.autoresize().map_err(stop)?;
        let size = terminal.size().map_err(stop)?;
        model.area = Rect::new(0, 0, size.width, size.height);
        terminal.draw(|frame| draw(frame, &model, look)).map_err(stop)?;
        let first = match news.recv_timeout(model.calm()) {
            Ok(told) => told,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return Err(died()),
        };
        // What has come meanwhile is shown at once, and not one after the other.
        for told in std::iter::once(first).chain(news.try_iter()) {
            let selected = model.selected.clone();
            if let Some(ended) = take(told, &mut model)? {
                return Ok(ended);
            }
            if model.selected != selected {
                asked.select(model.selected.as_deref());
            }
        }
    }
}

fn take(told: News, model: &mut Model) -> Result<Option<Ended>, Stop> {
    match told {
        News::Health(health) => model.health = health,
        News::Sessions(sessions) => model.list(sessions),
        News::Rows(rows) => model.show(rows),
        News::Lines { lines, anew } => model.log(lines, anew),
        News::Looked => model.away = None,
        News::Away(away) => model.away = Some(away),
        News::Key(deed) if !model.press(deed) => return Ok(Some(Ended::Quit)),
        News::Key(_) | News::Resized => {}
        News::Signal(signal) => return Ok(Some(Ended::Signal(signal))),
        News::Gone => return Err(Stop::Unread),
        News::Died => return Err(died()),
    }
    Ok(None)
}

fn died() -> Stop {
    Stop::failed("a thread of the screen died of a panic, which is said above")
}

/// Starts a thread whose panic is told.
fn start(told: &Sender<News>, work: impl FnOnce(Sender<News>) + Send + 'static) {
    struct Dart(Sender<News>);
    impl Drop for Dart {
        fn drop(&mut self) {
            if std::thread::panicking() {
                let _ = self.0.send(News::Died);
            }
        }
    }
    let told = told.clone();
    std::thread::spawn(move || {
        let dart = Dart(told);
        work(dart.0.clone());
    });
}

/// A terminal that has gone is a reader that has gone.
#[expect(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
fn stop(error: io::Error) -> Stop {
    match error.kind() {
        ErrorKind::BrokenPipe => Stop::Unread,
        _ if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => Stop::Unread,
        _ => Stop::failed(format!("cannot show the screen: {error}")),
    }
}
