//! What the screen is told, from wherever it comes.

use super::facts::{Away, Health, Line, Rows, Session};
use super::model::Deed;

/// Something that happened.
#[derive(Debug)]
pub(super) enum News {
    Health(Health),
    Sessions(Vec<Session>),
    Rows(Rows),
    /// Lines of the log, the oldest first; `anew` where they are all there is.
    Lines {
        lines: Vec<Line>,
        anew: bool,
    },
    /// Everything was asked for, and answered.
    Looked,
    /// The daemon does not answer.
    Away(Away),
    /// A key was pressed.
    Key(Deed),
    /// The screen has another size, or what it shows was written over.
    Resized,
    /// A signal that ends programs has come.
    Signal(i32),
    /// The terminal has gone.
    Gone,
    /// A thread died of a panic.
    Died,
}
