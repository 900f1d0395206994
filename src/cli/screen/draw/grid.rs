//! Columns that fit: first what matters least is left out, then what is long is cut.
//!
//! Widths are those of a terminal, in which some letters take two cells and others none.

use super::Look;
use crate::cli::paint::Tone;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

const GAP: usize = 2;

/// One cell.
pub(super) struct Cell {
    text: String,
    tone: Tone,
}

/// What is kept of a text that is too long.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// Its beginning.
    Head,
    /// Its end, which of a path says most.
    End,
}

/// A column, from the top.
pub(super) struct Column {
    cells: Vec<Cell>,
    keep: Keep,
    /// It is never narrower than this, unless all of it is.
    min: usize,
    /// It is left out before those with a lower number; 0 is never left out.
    leaves: u8,
}

impl Column {
    pub(super) fn new(keep: Keep, min: usize, leaves: u8) -> Self {
        Self { cells: Vec::new(), keep, min, leaves }
    }

    pub(super) fn push(&mut self, tone: Tone, text: impl Into<String>) {
        self.cells.push(Cell { text: text.into(), tone });
    }

    fn width(&self) -> usize {
        self.cells.iter().map(|cell| width(&cell.text)).max().unwrap_or(0)
    }
}

/// The lines of these columns in so much width.
pub(super) fn lines(mut columns: Vec<Column>, room: usize, look: Look) -> Vec<Line<'static>> {
    columns.retain(|column| column.width() > 0);
    while all(&least(&columns)) > room {
        let leaves = columns.iter().enumerate().max_by_key(|(_, column)| column.leaves);
        match leaves {
            Some((at, column)) if column.leaves > 0 => drop(columns.remove(at)),
            _ => break,
        }
    }
    let mut widths = least(&columns);
    narrow(&mut widths, room);
    let mut spare = room.saturating_sub(all(&widths));
    for (column, width) in columns.iter().zip(&mut widths) {
        let more = spare.min(column.width() - *width);
        spare -= more;
        *width += more;
    }
    let height = columns.iter().map(|column| column.cells.len()).max().unwrap_or(0);
    (0..height).map(|row| line(&columns, &widths, row, look)).collect()
}

/// How narrow each of them may be.
fn least(columns: &[Column]) -> Vec<usize> {
    columns.iter().map(|column| column.width().min(column.min)).collect()
}

/// How wide these are together.
fn all(widths: &[usize]) -> usize {
    (widths.iter().sum::<usize>() + widths.len() * GAP).saturating_sub(GAP)
}

/// What does not fit however little is shown is taken from the widest.
fn narrow(widths: &mut [usize], room: usize) {
    let over = all(widths).saturating_sub(room);
    if let Some(widest) = widths.iter_mut().max() {
        *widest = widest.saturating_sub(over).max(1);
    }
}

fn line(columns: &[Column], widths: &[usize], row: usize, look: Look) -> Line<'static> {
    let mut spans = Vec::new();
    for (column, room) in columns.iter().zip(widths) {
        let Some(cell) = column.cells.get(row) else { continue };
        let text = cut(&cell.text, *room, column.keep);
        let blank = room.saturating_sub(width(&text)) + GAP;
        spans.push(Span::styled(text, look.of(cell.tone)));
        spans.push(Span::raw(" ".repeat(blank)));
    }
    Line::from(spans)
}

/// The text in so many cells; where it is cut, it says so.
pub(super) fn cut(text: &str, room: usize, keep: Keep) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let span = Span::raw(text);
    let mut letters: Vec<&str> =
        span.styled_graphemes(Style::default()).map(|letter| letter.symbol).collect();
    if keep == Keep::End {
        letters.reverse();
    }
    let mut left = room.saturating_sub(1);
    let mut kept: Vec<&str> = letters
        .into_iter()
        .take_while(|letter| {
            let fits = width(letter) <= left;
            left = left.saturating_sub(width(letter));
            fits
        })
        .collect();
    let mark = if room == 0 { "" } else { "…" };
    if keep == Keep::End {
        kept.reverse();
        format!("{mark}{}", kept.concat())
    } else {
        format!("{}{mark}", kept.concat())
    }
}

/// How many cells of a terminal it takes.
pub(super) fn width(text: &str) -> usize {
    Span::raw(text).width()
}
