//! The steps of a command, judged one by one: what one of them does, all of it does.

use super::git::{self, Git};
use super::look::{filter, look, numbers};
use super::programs::{self, Kind};
use super::{Class, Input, Part, is_assignment};
use crate::agent::shell::{Step, Word};
use crate::agent::spelling;
use std::path::PathBuf;

/// What the steps so far come to.
#[derive(Default)]
pub(super) struct Judged {
    pub(super) writes: bool,
    volatile: Option<&'static str>,
    inputs: Vec<Input>,
    look: Option<(PathBuf, Part)>,
    /// The look shows a number before each line.
    numbered: bool,
    pub(super) steps: usize,
}

impl Judged {
    /// The class of all of them together.
    pub(super) fn class(self) -> Class {
        match self {
            Self { writes: true, .. } => Class::Writes,
            Self { volatile: Some(what), .. } => Class::Volatile(what),
            Self { look: Some((path, part)), numbered, steps: 1, .. } => Class::Look { path, part, numbered },
            Self { inputs, .. } if inputs.is_empty() => Class::Nothing,
            Self { inputs, .. } => Class::Reads(inputs),
        }
    }

    /// Takes in a step that runs in `folder`.
    pub(super) fn step(&mut self, step: &Step, words: &[Word], folder: Option<&str>) {
        let Some((program, rest)) = words.split_first() else { return };
        self.steps += 1;
        if !program.literal {
            return self.volatile("a command of unknown reach");
        }
        let name = program.text.rsplit(['/', '\\']).next().unwrap_or_default();
        if name == "git" {
            return self.git(rest, folder);
        }
        let (kind, rest) = kind(name, rest);
        let writes = rest.iter().any(|word| programs::writes(&word.text));
        match kind {
            _ if writes => self.writes = true,
            Kind::Says => {}
            Kind::Writes => self.writes = true,
            Kind::Network => self.volatile("network"),
            Kind::Clock => self.volatile("clock"),
            Kind::Unknown => self.volatile("a command of unknown reach"),
            Kind::Wraps => {
                // Which files it will name is for the step before it to say.
                if name == "xargs" {
                    self.tree(folder);
                }
                self.step(step, wrapped(rest), folder);
            }
            Kind::Scripts => self.script(name, rest, folder),
            Kind::Formats if rest.iter().any(|word| word.text == "-w") => self.writes = true,
            Kind::Checks => self.tree(folder),
            Kind::Reads | Kind::Seeks | Kind::Formats => self.reads(step, name, kind, rest, folder),
            Kind::Lists | Kind::Finds => self.lists(name, kind, rest, folder),
        }
    }

    fn volatile(&mut self, what: &'static str) {
        // The network says more than that we do not know.
        if self.volatile != Some("network") {
            self.volatile = Some(what);
        }
    }

    fn git(&mut self, words: &[Word], folder: Option<&str>) {
        let Some(folder) = folder else { return self.volatile("a command of unknown reach") };
        match git::judge(words, folder) {
            Git::Writes => self.writes = true,
            Git::Volatile(what) => self.volatile(what),
            Git::Reads(inputs) => inputs.into_iter().for_each(|input| self.input(input)),
        }
    }

    fn script(&mut self, name: &str, words: &[Word], folder: Option<&str>) {
        let script = operands(words).next();
        // Built by its rules, whatever they are named.
        let plain_make = script.is_none() && matches!(name, "make" | "gmake" | "ninja");
        match script.map_or(Kind::Unknown, |script| programs::script(&script.text)) {
            Kind::Writes => self.writes = true,
            Kind::Checks => self.tree(folder),
            _ if plain_make => self.tree(folder),
            _ => self.volatile("a command of unknown reach"),
        }
    }

    fn tree(&mut self, folder: Option<&str>) {
        match folder {
            Some(folder) => self.input(Input::Tree(folder.into())),
            None => self.volatile("a command of unknown reach"),
        }
    }

    fn reads(&mut self, step: &Step, name: &str, kind: Kind, words: &[Word], folder: Option<&str>) {
        if kind == Kind::Seeks && words.iter().any(|word| name == "sed" && word.text.starts_with("-i")) {
            self.writes = true;
            return;
        }
        if let Some((file, part)) = look(name, words) {
            let path = spelling::resolve(folder, &file.text);
            self.look = path.filter(|_| !step.piped).map(|path| (path, part));
            self.numbered = numbers(name, words);
        }
        if step.piped && self.steps == 2 && self.narrowed(name, words) {
            self.steps = 1;
            return;
        }
        let given =
            words.iter().any(|word| matches!(word.text.as_str(), "-e" | "-f" | "--regexp" | "--file"));
        let skipped = usize::from(kind == Kind::Seeks && !given);
        let files: Vec<&Word> = operands(words).skip(skipped).collect();
        if files.is_empty() && !step.piped {
            return self.tree(folder);
        }
        for file in files {
            self.path(file, folder, Input::Path);
        }
    }

    /// Lines of a numbered file that are let through are a look at these.
    fn narrowed(&mut self, name: &str, words: &[Word]) -> bool {
        let whole = self.look.as_mut().filter(|(_, part)| self.numbered && *part == Part::Whole);
        match whole.zip(filter(name, words)) {
            Some(((_, part), lines)) => {
                *part = lines;
                true
            }
            None => false,
        }
    }

    fn lists(&mut self, name: &str, kind: Kind, words: &[Word], folder: Option<&str>) {
        let tests =
            |word: &&Word| kind != Kind::Finds || name == "tree" || !word.text.starts_with(['-', '(', '!']);
        let told: Vec<&Word> = match name {
            "fd" => Vec::new(),
            "tree" => operands(words).take(1).collect(),
            "find" => words.iter().take_while(tests).collect(),
            _ => operands(words).collect(),
        };
        let has = |letter: char| {
            words.iter().any(|word| {
                word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains(letter)
            })
        };
        let deep = kind == Kind::Finds || has('R');
        // Sizes, moments and what `grep` below finds change with the bytes.
        let by_bytes = ["-size", "-newer", "-mtime", "-mmin", "-empty", "-ls", "-printf"];
        let contents = if kind == Kind::Finds {
            words.iter().any(|word| by_bytes.contains(&word.text.as_str()))
        } else {
            has('l') || has('s') || has('t')
        };
        let names = |path: PathBuf| Input::Names { path, deep, contents };
        if told.is_empty() {
            match folder {
                Some(folder) => self.input(names(folder.into())),
                None => self.volatile("a command of unknown reach"),
            }
        }
        for word in told {
            self.path(word, folder, names);
        }
    }

    /// A path that a step names; with a wildcard, the folder that it looks in.
    fn path(&mut self, word: &Word, folder: Option<&str>, input: impl Fn(PathBuf) -> Input) {
        let fixed = if word.literal { word.text.as_str() } else { before_wildcard(&word.text) };
        let variable = !word.literal && word.text.contains('$');
        let path =
            if fixed.is_empty() { folder.map(PathBuf::from) } else { spelling::resolve(folder, fixed) };
        match path.filter(|_| !variable) {
            // A wildcard may match folders as well, whose contents then count.
            Some(path) if !word.literal => self.input(Input::Path(path)),
            Some(path) => self.input(input(path)),
            None => self.volatile("a command of unknown reach"),
        }
    }

    fn input(&mut self, input: Input) {
        if !self.inputs.contains(&input) {
            self.inputs.push(input);
        }
    }
}

/// The kind of a program, and the words that are its operands.
fn kind<'words>(name: &str, words: &'words [Word]) -> (Kind, &'words [Word]) {
    let Some(at) = words.iter().position(|word| !word.text.starts_with('-')) else {
        let bare = programs::tool(name, "").map(|_| Kind::Unknown);
        return (bare.unwrap_or_else(|| programs::program(name)), words);
    };
    // `pnpm --filter web test`: the option's value comes before the part.
    let valued = ["--filter", "-F", "--prefix", "-C", "--dir", "--cwd", "-w", "--workspace"];
    let at = if at > 0 && valued.contains(&words[at - 1].text.as_str()) { at + 1 } else { at };
    if name.starts_with("python") || name == "node" {
        return module(words);
    }
    let operand = words.get(at).map_or("", |word| word.text.as_str());
    match programs::tool(name, operand) {
        // `pnpm lint` runs the script of that name, so its name is still an operand.
        Some(Kind::Scripts) if programs::script(operand) != Kind::Unknown => (Kind::Scripts, &words[at..]),
        Some(kind) => (kind, words.get(at + 1..).unwrap_or_default()),
        None => (programs::program(name), words),
    }
}

/// `python -m pytest` is pytest; any other program in an interpreter may do anything.
fn module(words: &[Word]) -> (Kind, &[Word]) {
    match words {
        [option, module, ..] if option.text == "-m" && module.text == "unittest" => (Kind::Checks, words),
        [option, rest @ ..] if option.text == "-m" => (Kind::Wraps, rest),
        [option, ..] if option.text == "--test" => (Kind::Checks, words),
        _ => (Kind::Unknown, words),
    }
}

/// What a wrapper runs: its words from the first on that is no option, number or assignment.
fn wrapped(words: &[Word]) -> &[Word] {
    let own = |word: &Word| {
        let text = word.text.as_str();
        text.starts_with('-')
            || is_assignment(text)
            || text.starts_with(|letter: char| letter.is_ascii_digit())
    };
    let at = words.iter().position(|word| !own(word)).unwrap_or(words.len());
    &words[at..]
}

/// The words that are neither options nor plain numbers, which are the values of options.
fn operands(words: &[Word]) -> impl Iterator<Item = &Word> {
    let number = |word: &Word| !word.text.is_empty() && word.text.bytes().all(|byte| byte.is_ascii_digit());
    words.iter().filter(move |word| !word.text.starts_with('-') && !number(word))
}

fn before_wildcard(path: &str) -> &str {
    let end = path.find(['*', '?', '[', '{']).unwrap_or(path.len());
    path[..end].rsplit_once('/').map_or("", |(folder, _)| if folder.is_empty() { "/" } else { folder })
}
