//! Aligned columns. A column is as wide as its widest cell; the last one is not padded.

use super::paint::{Paint, Tone};

/// One cell.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    pub(super) fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self { text: text.into(), tone }
    }

    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self::new(Tone::Plain, text)
    }
}

/// Rows under an optional heading.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table whose columns have names.
    pub(super) fn with_heading(names: &[&str]) -> Self {
        Self { rows: vec![names.iter().map(|name| Cell::new(Tone::Strong, *name)).collect()] }
    }

    pub(super) fn push(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    /// The lines, each indented by this many spaces.
    pub(super) fn lines(&self, paint: Paint, indent: usize) -> Vec<String> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(|column| self.width(column)).collect();
        self.rows.iter().map(|row| line(row, &widths, paint, indent)).collect()
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.text.chars().count()).max().unwrap_or(0)
    }
}

fn line(row: &[Cell], widths: &[usize], paint: Paint, indent: usize) -> String {
    let mut line = " ".repeat(indent);
    let last = row.iter().rposition(|cell| !cell.text.is_empty()).unwrap_or(0);
    for (cell, width) in row.iter().zip(widths).take(last + 1).filter(|(_, width)| **width > 0) {
        line.push_str(&paint.of(cell.tone, &cell.text));
        let len = cell.text.chars().count();
        line.push_str(&" ".repeat(width - len + 2));
    }
    line.truncate(line.trim_end_matches(' ').len());
    line
}

#[cfg(test)]
mod tests {
    use super::{Cell, Table};
    use crate::cli::paint::Paint;

    #[test]
    fn columns_line_up_and_empty_ones_vanish() {
        let mut table = Table::with_heading(&["ID", "", "STATE"]);
        table.push(["ää", "", "fresh"].map(Cell::plain).into());
        table.push(["longer", "", ""].map(Cell::plain).into());
        assert_eq!(table.lines(Paint::new(false), 1), [" ID      STATE", " ää      fresh", " longer"]);
    }
}
