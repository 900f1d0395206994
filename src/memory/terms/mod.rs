//! A text, or a query, as the terms that it is found by. Both go the same way, so what was written is found as written.
//!
//! Everything is a text: there is no syntax, so nothing can be wrong with a query. A term is a word (`token_store`), a part
//! of a name (`token`, `store`; by case, underscore and digits), a thing whole with its symbols (`c++`, `-rf`, `.env`,
//! `memory:safe`, `src/a/token.rs` and in it `token.rs`), or, where a script puts no spaces and for emoji, one character and
//! each pair of neighbours. Any text costs time in proportion to its length.
//!
//! Deliberately absent: stemming, stop words and everything else that takes one language for granted.

mod fold;

#[cfg(test)]
mod tests;

use fold::{folded, plain, push_folded};
use unicode_normalization::char::is_combining_mark;

/// A query means its first terms; it cannot be told from its first ones by what it says after so many.
const QUERY_TERMS_MAX: usize = 64;

/// Terms are cut here, in texts and queries alike: whatever is longer is told apart by its beginning or not at all.
const TERM_BYTES_MAX: usize = 96;

/// A longer word is data rather than a name, and has no parts: a megabyte of base64 would be half a million terms.
const NAME_BYTES_MAX: usize = 64;

/// A query of fewer characters is too short for terms.
const SHORT: usize = 3;

/// Tells every term of a text, in order, as often as it stands there.
pub(super) fn each(text: &str, found: &mut dyn FnMut(&str)) {
    let plain = plain(text);
    let mut teller = Teller { folded: String::new(), found };
    let mut rest = plain.as_ref();
    while let Some(first) = rest.chars().next() {
        let run = Run::of(first);
        let end = rest.find(|symbol| Run::of(symbol) != run).unwrap_or(rest.len());
        let (this, after) = rest.split_at(end);
        match run {
            Run::Border => {}
            Run::Glyphs => teller.glyphs(this),
            Run::Words => teller.words(this),
        }
        rest = after;
    }
}

/// The distinct terms of a query in order, the first [`QUERY_TERMS_MAX`] of them.
pub(super) fn of_query(query: &str) -> Vec<String> {
    let mut terms: Vec<String> = Vec::new();
    each(query, &mut |term| {
        if terms.len() < QUERY_TERMS_MAX && !terms.iter().any(|known| known == term) {
            terms.push(term.to_owned());
        }
    });
    terms
}

/// Whether a query has fewer than three characters or no term at all (`---`): then it is looked for as it is.
#[must_use]
pub fn is_short(query: &str) -> bool {
    query.trim().chars().take(SHORT).count() < SHORT || of_query(query).is_empty()
}

/// What a short query looks for: itself, folded once for any number of observations.
#[derive(Debug, Clone)]
pub struct Needle {
    folded: String,
    /// Nothing of it is left when it is folded (a lone accent, a joiner), so it is looked for as it was written.
    raw: Option<String>,
}

impl Needle {
    /// Of a query.
    #[must_use]
    pub fn new(query: &str) -> Self {
        let query = query.trim();
        let folded = folded(query);
        let raw = folded.trim().is_empty().then(|| query.to_owned());
        Self { folded, raw }
    }

    /// The rank of an observation: 1.0 if it stands in the title, 0.5 if in the content. An empty one stands nowhere.
    #[must_use]
    pub fn rank(&self, title: &str, content: &str) -> Option<f64> {
        if self.is_in(title) { Some(1.0) } else { self.is_in(content).then_some(0.5) }
    }

    fn is_in(&self, text: &str) -> bool {
        match &self.raw {
            Some(raw) => !raw.is_empty() && text.contains(raw.as_str()),
            None => folded(text).contains(&self.folded),
        }
    }
}

/// What characters run together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Run {
    /// Letters, digits, and the symbols that names are made with.
    Words,
    /// Emoji, and scripts that put no spaces between words.
    Glyphs,
    /// What ends both.
    Border,
}

impl Run {
    fn of(symbol: char) -> Self {
        if is_letter(symbol) {
            if is_unspaced(symbol) { Self::Glyphs } else { Self::Words }
        } else if is_joint(symbol) {
            Self::Words
        } else if is_emoji(symbol) {
            Self::Glyphs
        } else {
            Self::Border
        }
    }
}

struct Teller<'found> {
    folded: String,
    found: &'found mut dyn FnMut(&str),
}

impl Teller<'_> {
    /// `src/a/token.rs`: itself, `token.rs`, and every word.
    fn words(&mut self, run: &str) {
        let whole = trimmed(run);
        if whole.contains(is_joint) && whole.contains(is_name) {
            self.tell(whole);
            for segment in whole.split(['/', '\\', ':', '@', '&', '~']).map(trimmed) {
                if segment.len() < whole.len() && segment.contains(is_joint) && segment.contains(is_name) {
                    self.tell(segment);
                }
            }
        }
        whole.split(is_joint).for_each(|word| self.word(word));
    }

    /// `HTTPServer_v2`: itself, `HTTP`, `Server`, `v` and `2`.
    fn word(&mut self, word: &str) {
        let word = word.trim_matches('_');
        if word.is_empty() {
            return;
        }
        self.tell(word);
        if word.len() > NAME_BYTES_MAX || is_hex(word) {
            return;
        }
        let mut rest = word;
        while let Some(end) = part_end(rest).filter(|end| *end < word.len()) {
            let (part, after) = rest.split_at(end);
            self.tell(part);
            rest = after.trim_start_matches('_');
        }
    }

    /// `東京都`: `東`, `東京`, `京`, `京都` and `都`.
    fn glyphs(&mut self, run: &str) {
        let mut starts = run.char_indices().map(|(at, _)| at).chain([run.len()]);
        let Some(mut first) = starts.next() else { return };
        let Some(mut second) = starts.next() else { return };
        self.tell(&run[first..second]);
        for third in starts {
            self.tell(&run[first..third]);
            self.tell(&run[second..third]);
            (first, second) = (second, third);
        }
    }

    fn tell(&mut self, term: &str) {
        let as_it_is = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase();
        if term.len() <= TERM_BYTES_MAX && term.bytes().all(as_it_is) {
            return (self.found)(term);
        }
        self.folded.clear();
        cut(term).chars().for_each(|symbol| push_folded(symbol, &mut self.folded));
        (self.found)(&self.folded);
    }
}

/// The beginning of a term that is too long, on a character border.
fn cut(term: &str) -> &str {
    let mut end = term.len().min(TERM_BYTES_MAX);
    while !term.is_char_boundary(end) {
        end -= 1;
    }
    &term[..end]
}

/// Where the first part of a name ends; nothing is left of an empty one.
fn part_end(name: &str) -> Option<usize> {
    let mut symbols = name.char_indices().peekable();
    let (_, mut last) = symbols.next()?;
    while let Some((at, symbol)) = symbols.next() {
        let next = symbols.peek().map(|(_, next)| *next);
        let rises = symbol.is_uppercase()
            && (last.is_lowercase() || last.is_uppercase() && next.is_some_and(char::is_lowercase));
        if symbol == '_' || rises || last.is_numeric() != symbol.is_numeric() {
            return Some(at);
        }
        last = symbol;
    }
    Some(name.len())
}

/// A digest or a commit is one thing: the digits and letters in it are no parts.
fn is_hex(word: &str) -> bool {
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    word.len() >= 7 && word.bytes().all(hex) && word.bytes().any(|byte| byte.is_ascii_digit())
}

/// Without what a sentence put there: `C++.` is `C++`, `src/` is `src`; `.env`, `-rf` and `C#` are themselves.
fn trimmed(run: &str) -> &str {
    run.trim_start_matches(':').trim_end_matches(['.', ':', '/', '\\', '-', '@', '$', '&', '~'])
}

/// Symbols that names and commands are made with.
fn is_joint(symbol: char) -> bool {
    matches!(symbol, '-' | '+' | '#' | '.' | ':' | '/' | '\\' | '@' | '$' | '%' | '&' | '~')
}

/// Something that makes a word, so that `--` and `_` alone are no terms.
fn is_name(symbol: char) -> bool {
    symbol != '_' && is_letter(symbol)
}

fn is_letter(symbol: char) -> bool {
    symbol == '_' || symbol.is_alphanumeric() || !symbol.is_ascii() && is_combining_mark(symbol)
}

/// Letters of scripts without spaces between words: Thai, Lao, Burmese, Khmer, and all of Chinese, Japanese and Korean
/// (which has spaces, but glues its particles to the words).
fn is_unspaced(symbol: char) -> bool {
    matches!(symbol,
        '\u{e00}'..='\u{eff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{2e80}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7ff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

/// Clocks and keys, shapes and dingbats, and the planes of emoji. Two regional indicators are a flag, and a pair.
fn is_emoji(symbol: char) -> bool {
    matches!(symbol,
        '\u{2300}'..='\u{23ff}' | '\u{25a0}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}
