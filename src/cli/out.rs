//! Standard output and standard error, written so that nothing ever panics.
//!
//! `println!` panics when the reader has gone away; here that is [`Stop::Unread`], which ends the program quietly.

use super::paint::Paint;
use super::shell::Stop;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Stdout, Write};

const CLEAR: &str = "\x1b[2J";
const TOP: &str = "\x1b[H";
const REST_OF_LINE: &str = "\x1b[K";
const REST_OF_SCREEN: &str = "\x1b[J";

/// Where a command writes.
#[derive(Debug)]
pub(super) struct Out {
    data: BufWriter<Stdout>,
    /// How to colour what goes to stdout.
    pub(super) paint: Paint,
    /// A person reads along, so long lists may be cut.
    pub(super) on_terminal: bool,
    /// What is written takes the place of what stands on the screen.
    over: bool,
}

impl Out {
    pub(super) fn new() -> Self {
        let on_terminal = io::stdout().is_terminal();
        Self { data: BufWriter::new(io::stdout()), paint: Paint::new(on_terminal), on_terminal, over: false }
    }

    /// One line of data.
    pub(super) fn line(&mut self, text: impl Display) -> Result<(), Stop> {
        let rest = if self.over { REST_OF_LINE } else { "" };
        writeln!(self.data, "{text}{rest}").map_err(stop)
    }

    /// Several lines of data.
    pub(super) fn lines<T: Display>(&mut self, lines: impl IntoIterator<Item = T>) -> Result<(), Stop> {
        lines.into_iter().try_for_each(|line| self.line(line))
    }

    /// Bytes of data as they are.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        self.data.write_all(bytes).map_err(stop)
    }

    /// Hands everything to the reader now.
    pub(super) fn flush(&mut self) -> Result<(), Stop> {
        self.data.flush().map_err(stop)
    }

    /// Whether what is shown can be written over: on a terminal that knows how.
    pub(super) fn redraws(&self) -> bool {
        self.on_terminal && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
    }

    /// Goes back to the top of the screen. What stands there is written over line by line, which does not flicker.
    pub(super) fn begin_again(&mut self, clear: bool) -> Result<(), Stop> {
        self.over = true;
        write!(self.data, "{}{TOP}", if clear { CLEAR } else { "" }).map_err(stop)
    }

    /// Clears what is left below, of something longer that stood there.
    pub(super) fn end_here(&mut self) -> Result<(), Stop> {
        self.over = false;
        write!(self.data, "{REST_OF_SCREEN}").map_err(stop)
    }

    /// Whether anybody reads along still. Whoever waits has nothing to write that would tell.
    #[expect(clippy::unused_self, reason = "it is about the same stdout")]
    pub(super) fn still_read(&self) -> Result<(), Stop> {
        let stdout = io::stdout();
        let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
        let gone = poll(&mut polled, Some(&Timespec::default())).is_ok_and(|count| count > 0)
            && polled[0].revents().intersects(PollFlags::ERR | PollFlags::NVAL);
        if gone { Err(Stop::Unread) } else { Ok(()) }
    }

    /// Talk, on stderr. Nobody may be listening, and that is no failure.
    #[expect(clippy::unused_self, reason = "talk and data leave through the same door")]
    pub(super) fn talk(&self, text: &str) {
        let _ = writeln!(io::stderr(), "{text}");
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
fn stop(error: io::Error) -> Stop {
    match error.kind() {
        ErrorKind::BrokenPipe => Stop::Unread,
        _ => Stop::failed(format!("cannot write to stdout: {error}")),
    }
}
