//! A command line taken apart as a shell would: its steps, their words, where their output goes.
//!
//! Only as far as needed to tell what a command read. What is beyond that is `None` rather than a guess: whoever asks
//! then knows nothing of the command, which is always safe to say.

#[cfg(test)]
mod tests;

use std::iter::Peekable;
use std::str::Chars;

/// One program that runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// The program and what it is given, quotes taken off; files it is fed from come last.
    pub(super) words: Vec<Word>,
    /// It reads what the step before it prints.
    pub(super) piped: bool,
    /// Its output goes into a file.
    pub(super) writes: bool,
    /// It runs in a shell of its own, which does not move the others.
    pub(super) nested: bool,
}

/// One word.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    /// Without its quotes.
    pub(super) text: String,
    /// It is what it says: no variable, no substitution, no wildcard.
    pub(super) literal: bool,
}

/// How deep substitutions may stand in each other.
const DEPTH_MAX: usize = 16;

/// The steps of a command line in the order in which they stand, those of substitutions among them.
pub(super) fn steps(text: &str) -> Option<Vec<Step>> {
    let mut parser =
        Parser { rest: text.chars().peekable(), steps: Vec::new(), depth: 0, documents: Vec::new() };
    parser.list(None)?;
    Some(parser.steps)
}

struct Parser<'text> {
    rest: Peekable<Chars<'text>>,
    steps: Vec<Step>,
    depth: usize,
    /// Ends of the here-documents that begin on the next line.
    documents: Vec<String>,
}

/// A step that is being read.
#[derive(Default)]
struct Open {
    step: Step,
    word: Option<Word>,
    /// The next word is where its output goes.
    into: bool,
    /// The next word is no operand: the text of a here-string, the end of a here-document.
    aside: bool,
    groups: usize,
    /// It is part of a substitution.
    inner: bool,
}

impl Open {
    fn push(&mut self, letter: char) {
        self.word.get_or_insert_with(|| Word { text: String::new(), literal: true }).text.push(letter);
    }

    /// What a variable or a wildcard stands for cannot be told.
    fn vague(&mut self, letter: char) {
        self.push(letter);
        if let Some(word) = &mut self.word {
            word.literal = false;
        }
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if self.into {
            self.step.writes |= !matches!(word.text.as_str(), "/dev/null" | "/dev/stdout" | "/dev/stderr");
        } else if !self.aside {
            self.step.words.push(word);
        }
        (self.into, self.aside) = (false, false);
    }

    fn end_step(&mut self, steps: &mut Vec<Step>, piped: bool) {
        self.end_word();
        self.step.nested = self.inner || self.groups > 0;
        let next = Step { piped, ..Step::default() };
        let step = std::mem::replace(&mut self.step, next);
        if step.writes || !step.words.is_empty() {
            steps.push(step);
        }
    }

    /// The number of a descriptor before a redirection is no word.
    fn drop_descriptor(&mut self) {
        match &self.word {
            Some(word) if word.text.chars().all(|letter| letter.is_ascii_digit()) => self.word = None,
            _ => self.end_word(),
        }
    }
}

impl Parser<'_> {
    /// Everything up to `end`, or to the end of the text.
    fn list(&mut self, end: Option<char>) -> Option<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let mut open = Open { inner: end.is_some(), ..Open::default() };
        loop {
            let letter = self.rest.next();
            match letter {
                None if end.is_none() && open.groups == 0 => break,
                None => return None,
                letter if letter == end && open.groups == 0 => break,
                Some('(') if open.word.is_none() && open.step.words.is_empty() => open.groups += 1,
                Some(')') if open.groups > 0 => {
                    open.end_step(&mut self.steps, false);
                    open.groups -= 1;
                }
                Some('(' | ')') => return None,
                Some(letter) => self.letter(letter, &mut open)?,
            }
        }
        open.end_step(&mut self.steps, false);
        self.depth -= 1;
        Some(())
    }

    fn letter(&mut self, letter: char, open: &mut Open) -> Option<()> {
        match letter {
            ' ' | '\t' | '\r' => open.end_word(),
            '\n' => {
                open.end_step(&mut self.steps, false);
                self.skip_documents()?;
            }
            ';' if self.rest.peek() == Some(&';') => return None,
            ';' => open.end_step(&mut self.steps, false),
            '#' if open.word.is_none() => while self.rest.next_if(|&letter| letter != '\n').is_some() {},
            '|' if self.take('|') => open.end_step(&mut self.steps, false),
            '|' => {
                self.take('&');
                open.end_step(&mut self.steps, true);
            }
            '&' if self.take('&') => open.end_step(&mut self.steps, false),
            '&' if self.take('>') => {
                self.take('>');
                open.end_word();
                open.into = true;
            }
            // What runs in the background prints when it likes.
            '&' => return None,
            '>' => self.output(open)?,
            '<' => self.input(open)?,
            '\\' => match self.rest.next() {
                Some('\n') | None => {}
                Some(letter) => open.push(letter),
            },
            '\'' => self.single(open)?,
            '"' => self.double(open)?,
            '$' => self.dollar(open)?,
            '`' => self.backtick(open)?,
            '*' | '?' | '[' | '{' => open.vague(letter),
            letter => open.push(letter),
        }
        Some(())
    }

    fn take(&mut self, letter: char) -> bool {
        self.rest.next_if_eq(&letter).is_some()
    }

    fn output(&mut self, open: &mut Open) -> Option<()> {
        open.drop_descriptor();
        if self.take('(') {
            return None;
        }
        let _ = self.take('>') || self.take('|');
        if self.take('&') {
            if self.take('-') {
                return Some(());
            }
            let mut copied = false;
            while self.rest.next_if(char::is_ascii_digit).is_some() {
                copied = true;
            }
            open.into = !copied;
            return Some(());
        }
        open.into = true;
        Some(())
    }

    fn input(&mut self, open: &mut Open) -> Option<()> {
        open.drop_descriptor();
        if self.take('(') {
            open.vague('<');
            return self.list(Some(')'));
        }
        if !self.take('<') {
            // A file that a step is fed from is one that it reads.
            return (!self.take('&')).then_some(());
        }
        if self.take('<') {
            open.aside = true;
            return Some(());
        }
        self.take('-');
        while self.take(' ') {}
        let mut end = String::new();
        while let Some(letter) =
            self.rest.next_if(|&letter| !letter.is_whitespace() && !";|&<>()".contains(letter))
        {
            if !matches!(letter, '\'' | '"' | '\\') {
                end.push(letter);
            }
        }
        self.documents.push(end);
        Some(())
    }

    /// Passes over the here-documents that begin here, and whatever their text may look like.
    fn skip_documents(&mut self) -> Option<()> {
        for end in std::mem::take(&mut self.documents) {
            loop {
                let mut line = String::new();
                while let Some(letter) = self.rest.next_if(|&letter| letter != '\n') {
                    line.push(letter);
                }
                let more = self.rest.next().is_some();
                if line.trim() == end {
                    break;
                }
                if !more {
                    return None;
                }
            }
        }
        Some(())
    }

    fn single(&mut self, open: &mut Open) -> Option<()> {
        open.word.get_or_insert_with(|| Word { text: String::new(), literal: true });
        loop {
            match self.rest.next()? {
                '\'' => return Some(()),
                letter => open.push(letter),
            }
        }
    }

    fn double(&mut self, open: &mut Open) -> Option<()> {
        open.word.get_or_insert_with(|| Word { text: String::new(), literal: true });
        loop {
            match self.rest.next()? {
                '"' => return Some(()),
                '\\' => match self.rest.next()? {
                    '\n' => {}
                    letter @ ('$' | '`' | '"' | '\\') => open.push(letter),
                    letter => {
                        open.push('\\');
                        open.push(letter);
                    }
                },
                '$' => self.dollar(open)?,
                '`' => self.backtick(open)?,
                letter => open.push(letter),
            }
        }
    }

    fn dollar(&mut self, open: &mut Open) -> Option<()> {
        match self.rest.peek() {
            Some('(') => {
                self.rest.next();
                open.vague('$');
                // Arithmetic runs nothing, but is too rare to be told from two subshells.
                if self.rest.peek() == Some(&'(') { None } else { self.list(Some(')')) }
            }
            Some('{') => {
                open.vague('$');
                loop {
                    match self.rest.next()? {
                        '}' => return Some(()),
                        '`' | '(' => return None,
                        letter => open.push(letter),
                    }
                }
            }
            Some('\'') if open.word.is_none() => {
                self.rest.next();
                self.single(open)
            }
            Some(letter) if letter.is_alphanumeric() || "_?!#@*$-".contains(*letter) => {
                open.vague('$');
                Some(())
            }
            _ => {
                open.push('$');
                Some(())
            }
        }
    }

    fn backtick(&mut self, open: &mut Open) -> Option<()> {
        open.vague('$');
        self.list(Some('`'))
    }
}
