//! Lines of a file that an agent was shown, held against what was known of the file.

/// The lines of a file that a read or an attachment shows.
pub(super) struct Shown<'a> {
    pub(super) path: &'a str,
    pub(super) content: &'a str,
    pub(super) start: u64,
    pub(super) lines: u64,
    /// How many there are, where that was told.
    pub(super) total: Option<u64>,
}

impl Shown<'_> {
    /// Whether that is all of the file.
    pub(super) fn is_whole(&self) -> bool {
        self.start <= 1 && self.total.is_some_and(|total| self.lines >= total)
    }

    /// Whether `whole`, if it still were the content, would have shown the same.
    pub(super) fn agrees_with(&self, whole: &str) -> bool {
        let first = usize::try_from(self.start.max(1) - 1).unwrap_or(usize::MAX);
        let count = usize::try_from(self.lines).unwrap_or(usize::MAX);
        let same_length = self.total.is_none_or(|total| whole.split('\n').count() as u64 == total);
        let mut there = whole.split('\n').skip(first).take(count);
        same_length && (count == 0 || (self.content.split('\n').all(|line| there.next() == Some(line))))
    }
}

/// Whether every line of a numbered snippet stands in `whole` under its number. An empty snippet proves nothing.
pub(super) fn snippet_agrees(snippet: &str, whole: &str) -> bool {
    let lines: Vec<&str> = whole.split('\n').collect();
    !snippet.is_empty()
        && snippet.split('\n').all(|line| {
            let numbered = line.split_once(['\t', '→']);
            let place =
                numbered.and_then(|(number, text)| Some((number.trim().parse::<usize>().ok()?, text)));
            place.is_some_and(|(number, text)| lines.get(number.wrapping_sub(1)) == Some(&text))
        })
}
