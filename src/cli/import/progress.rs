//! How far the reading of a large file is, on a terminal alone.
//!
//! Said by the bytes that were read and never by the clock: a small file is read without a word.

use crate::agent;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// Said again after so many more bytes of the file.
const STEP_BYTES: u64 = 1 << 20;

/// What is said of the reading of one file.
pub(super) struct Progress {
    name: String,
    /// Said when so many bytes were read; `None` where nobody is told.
    next: Option<u64>,
    said: bool,
}

impl Progress {
    pub(super) fn new(file: &Path) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let next = (io::stderr().is_terminal() && !dumb).then_some(STEP_BYTES);
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Self { name: crate::cli::words::harmless(&name), next, said: false }
    }

    /// So much was read.
    pub(super) fn tell(&mut self, at: agent::Progress) {
        if self.next.is_none_or(|next| at.bytes < next) {
            return;
        }
        self.next = Some(at.bytes + STEP_BYTES);
        self.said = true;
        let share = 100 * at.bytes.min(at.size) / at.size.max(1);
        let size = at.size.div_ceil(STEP_BYTES);
        self.write(&format!("{}: {} lines, {share} % of {size} MiB", self.name, at.lines));
    }

    /// Takes away what was said.
    pub(super) fn end(&mut self) {
        if std::mem::take(&mut self.said) {
            self.write("");
        }
    }

    #[expect(clippy::unused_self, reason = "it is about the same line of the terminal")]
    fn write(&self, text: &str) {
        // Nobody may be listening, and that is no failure.
        let _ = write!(io::stderr(), "\r{text}\x1b[K");
    }
}
