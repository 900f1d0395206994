//! Standard output and standard error, written so that nothing ever panics.
//!
//! `println!` panics when the reader has gone away; here that is [`Stop::Unread`], which ends the program quietly.

use super::paint::Paint;
use super::shell::Stop;
use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Stdout, Write};

/// Where a command writes.
#[derive(Debug)]
pub(super) struct Out {
    data: BufWriter<Stdout>,
    /// How to colour what goes to stdout.
    pub(super) paint: Paint,
    /// A person reads along, so long lists may be cut.
    pub(super) on_terminal: bool,
}

impl Out {
    pub(super) fn new() -> Self {
        let on_terminal = io::stdout().is_terminal();
        Self { data: BufWriter::new(io::stdout()), paint: Paint::new(on_terminal), on_terminal }
    }

    /// One line of data.
    pub(super) fn line(&mut self, text: impl Display) -> Result<(), Stop> {
        writeln!(self.data, "{text}").map_err(stop)
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
