//! Searches, listings and commands as trees, commands and looks at files.
//!
//! What `.gitignore` leaves out is watched below a folder that was named, except for Grep, which does not see it. It is
//! not watched where the whole root was meant, though `find .` sees it: there are tens of thousands of folders of what
//! was built or installed, and no agent asks for them.

use super::files::moment;
use super::globs::{grep_globs, usable};
use super::{Import, belief, source};
use crate::agent::asked::{Asked, Question};
use crate::agent::command::{Class, Input, classify};
use crate::agent::spelling;
use crate::agent::transcript::Transcript;
use crate::index::tree::sieve::{Place, Sieve};
use crate::protocol::context::{Belief, Source};
use crate::session::privacy::strip;
use crate::session::source::Filter;
use std::path::{Path, PathBuf};

/// The latest questions are kept, so many of them. The longest of 474 real sessions ran 271 commands and 60 searches.
const QUESTIONS_MAX: usize = 1_000;

/// How long an id or a command may be, in bytes; longer ones are cut. With the words around it, a text still fits into
/// the 2,048 bytes that the daemon takes.
const TEXT_BYTES_MAX: usize = 1_960;

/// Why a question is not registered.
enum Lost {
    Elsewhere,
    NoRepository,
    Private,
    Overtaken,
}

impl Import<'_> {
    /// Everything that the session asked.
    pub(super) fn questions(&mut self, transcript: &Transcript) {
        let unasked = transcript.unasked;
        self.notes.left_out.background += usize::try_from(unasked.background).unwrap_or(usize::MAX);
        self.notes.left_out.refused += usize::try_from(unasked.refused).unwrap_or(usize::MAX);
        let edited = transcript.entries.iter().filter(|entry| entry.edited);
        self.edited = edited.filter_map(|entry| Some((self.place(&entry.path)?, entry.line))).collect();
        let early = transcript.asked.len().saturating_sub(QUESTIONS_MAX);
        self.notes.left_out.early += early;
        for asked in &transcript.asked[early..] {
            let told = match &asked.question {
                Question::Command { text, shell } => self.command(asked, text, shell),
                search => self.search(asked, search),
            };
            match told {
                Ok(_) => {}
                Err(Lost::Elsewhere) => self.notes.left_out.elsewhere += 1,
                Err(Lost::NoRepository) => self.notes.left_out.no_repository += 1,
                Err(Lost::Private) => self.notes.left_out.private += 1,
                Err(Lost::Overtaken) => self.notes.left_out.overtaken += 1,
            }
        }
    }

    fn search(&mut self, asked: &Asked, search: &Question) -> Result<bool, Lost> {
        let (Question::Grep { path, .. } | Question::Glob { path, .. } | Question::List { path, .. }) =
            search
        else {
            return Ok(false);
        };
        let cwd = asked.cwd.as_deref();
        let path = path.as_deref().or(glob_folder(search));
        let path = path.map_or(cwd.map(PathBuf::from), |path| spelling::resolve(cwd, path));
        let place = self.here(&path.ok_or(Lost::Elsewhere)?)?;
        let found = self.searched(search, &place);
        if self.edited_since(&found, asked.line) {
            return Err(Lost::Overtaken);
        }
        let (pattern, filter) = match search {
            Question::Grep { pattern, glob, kind, .. } => (pattern.as_str(), glob.as_ref().or(kind.as_ref())),
            Question::Glob { pattern, .. } => (pattern.as_str(), None),
            _ => ("", None),
        };
        let within = filter.map(|filter| format!(" in {filter}")).unwrap_or_default();
        let pattern = if pattern.is_empty() { String::new() } else { format!(" {pattern}") };
        let id = self.cut(format!("{}:{pattern}{within} @ {}", search.tool(), place.display()));
        self.notes.searches += usize::from(!self.ids.contains_key(&id));
        self.put(told(asked, belief(id, found)));
        Ok(true)
    }

    /// What a search rests on: the file, or the tree with the names that it looked at.
    fn searched(&self, search: &Question, place: &Path) -> Source {
        let here = self.places.root.join(place);
        if here.is_file() || (!here.exists() && is_file_like(place)) {
            return source(place, "file");
        }
        let tree = tree(place);
        match search {
            Question::Grep { glob, kind, path, .. } => {
                let (include, exclude) = grep_globs(glob.as_deref(), kind.as_deref(), path.is_some());
                Source { include, exclude, gitignore: None, ..tree }
            }
            Question::Glob { pattern, .. } => {
                let below = glob_folder(search).map_or(pattern.as_str(), |folder| &pattern[folder.len()..]);
                Source { include: usable(vec![below.replace('\\', "/")]), contents: Some(false), ..tree }
            }
            Question::List { ignore, .. } => {
                Source { exclude: usable(ignore.clone()), contents: Some(false), ..tree }
            }
            Question::Command { .. } => tree,
        }
    }

    /// Whether the session itself edited what a question rests on after it was asked. What it read then is not what there
    /// is: registered now, it would be called fresh by a look that was made after the edit.
    fn edited_since(&self, source: &Source, line: u64) -> bool {
        self.edited.iter().any(|(place, edit)| *edit > line && rests_on(source, place))
    }

    fn command(&mut self, asked: &Asked, text: &str, shell: &str) -> Result<bool, Lost> {
        let class = if shell == "Bash" {
            classify(text, asked.cwd.as_deref())
        } else {
            Class::Volatile("a command of unknown reach")
        };
        match class {
            Class::Nothing => Ok(false),
            Class::Writes => {
                self.notes.left_out.writes += 1;
                Ok(false)
            }
            Class::Look { path, part, numbered } => {
                let path = self.here(&path)?;
                self.look(asked, &path, part, numbered);
                Ok(false)
            }
            Class::Volatile("git refs") if !self.repository => Err(Lost::NoRepository),
            Class::Volatile(what) => {
                let id = self.cut(text.to_owned());
                // With the reason alone a report would not say what is to be dropped.
                let what = Some(format!("{what}: {id}"));
                let source = Source { kind: "volatile".to_owned(), what, ..Source::default() };
                self.notes.volatile += usize::from(!self.ids.contains_key(&id));
                self.put(told(asked, belief(id, source)));
                Ok(false)
            }
            Class::Reads(inputs) => self.reads(asked, text, &inputs),
        }
    }

    fn reads(&mut self, asked: &Asked, text: &str, inputs: &[Input]) -> Result<bool, Lost> {
        let mut sources: Vec<Source> = Vec::new();
        for input in inputs {
            let found = self.input(input, asked.failed)?;
            sources.extend(found.filter(|found| !sources.iter().any(|known| same_source(known, found))));
        }
        if sources.iter().any(|source| self.edited_since(source, asked.line)) {
            return Err(Lost::Overtaken);
        }
        let only_root =
            matches!(sources.as_slice(), [tree] if same_source(tree, &source(Path::new("."), "tree")));
        // A folder that is not below the root was said to be elsewhere by the inputs, where it matters.
        let cwd = asked.cwd.as_deref().and_then(|cwd| self.place(Path::new(cwd)));
        let cwd = cwd.filter(|cwd| cwd != Path::new("."));
        let id = match &cwd {
            None => self.cut(text.to_owned()),
            Some(cwd) => self.cut(format!("{text} @ {}", cwd.display())),
        };
        let command = Source {
            kind: "command".to_owned(),
            command: Some(self.cut(text.to_owned())),
            cwd: cwd.as_deref().map(Into::into),
            inputs: (!only_root).then_some(sources),
            ..Source::default()
        };
        self.notes.commands += usize::from(!self.ids.contains_key(&id));
        self.put(told(asked, belief(id, command)));
        Ok(true)
    }

    /// An input on this machine; `None` when there is nothing to watch beside the others.
    fn input(&self, input: &Input, failed: bool) -> Result<Option<Source>, Lost> {
        let git =
            |folder: &PathBuf| if self.repository { self.here(folder) } else { Err(Lost::NoRepository) };
        Ok(Some(match input {
            Input::Tree(folder) => {
                self.here(folder)?;
                source(Path::new("."), "tree")
            }
            Input::Head(folder) => {
                git(folder)?;
                source(Path::new("."), "git_head")
            }
            Input::Index(folder) => {
                git(folder)?;
                let index = Path::new(".git/index");
                return Ok(self.places.root.join(index).is_file().then(|| source(index, "file")));
            }
            Input::Path(path) => self.operand(&self.here(path)?),
            Input::Names { path, deep, contents } => {
                let place = self.here(path)?;
                let here = self.places.root.join(&place);
                if here.is_file() {
                    return Ok(Some(source(&place, "file")));
                }
                // A listing that failed found nothing there, and still nothing is.
                if failed && !here.exists() {
                    return Ok(Some(source(&place, "absent")));
                }
                let exclude = if *deep { Vec::new() } else { vec!["/*/*".to_owned()] };
                let gitignore = if *deep { tree(&place).gitignore } else { Some(false) };
                Source { exclude, contents: Some(*contents), gitignore, ..tree(&place) }
            }
        }))
    }

    /// A path among a command's words. What is not there may be the value of an option, unless it looks like a file.
    fn operand(&self, place: &Path) -> Source {
        let here = self.places.root.join(place);
        if here.is_dir() {
            tree(place)
        } else if here.exists() || is_file_like(place) {
            source(place, "file")
        } else {
            source(Path::new("."), "tree")
        }
    }

    /// Where a path that a question names is here.
    fn here(&self, path: &Path) -> Result<PathBuf, Lost> {
        let place = self.place(path).ok_or(Lost::Elsewhere)?;
        let text = place.to_string_lossy();
        if strip(&text) == text { Ok(place) } else { Err(Lost::Private) }
    }

    /// A text that fits, cut on a character border where it does not.
    fn cut(&mut self, text: String) -> String {
        if text.len() <= TEXT_BYTES_MAX {
            return text;
        }
        self.notes.cut += 1;
        // Stripped first: a cut may take away the end of something private, or the begin of its end.
        let text = strip(&text);
        let end =
            (0..=TEXT_BYTES_MAX.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        format!("{}… ({} bytes)", &text[..end], text.len())
    }
}

/// Whether what `source` read changes with the file at `place`, which like its own path is relative to the root.
pub(in crate::agent) fn rests_on(source: &Source, place: &Path) -> bool {
    if source.kind == "command" {
        let whole = [tree(Path::new("."))];
        return source.inputs.as_deref().unwrap_or(&whole).iter().any(|input| rests_on(input, place));
    }
    let Some(path) = source.path.as_ref().map(|path| path.0.as_path()) else { return false };
    let path = if path == Path::new(".") { Path::new("") } else { path };
    let Ok(below) = place.strip_prefix(path) else { return false };
    match source.kind.as_str() {
        "file" => below.as_os_str().is_empty(),
        "tree" if source.contents != Some(false) => {
            let (include, exclude) = (source.include.clone(), source.exclude.clone());
            let filter = Filter { include, exclude, contents: true, gitignore: false };
            let (folder, name) = (below.parent().unwrap_or(Path::new("")), below.file_name());
            let place = Place { folder, below: folder, rules: &[] };
            name.is_some_and(|name| Sieve::new(&filter, &[]).takes(&place, Path::new(name), false))
        }
        _ => false,
    }
}

/// Everything below a folder; below the root without what `.gitignore` leaves out.
fn tree(place: &Path) -> Source {
    Source { gitignore: (place != Path::new(".")).then_some(false), ..source(place, "tree") }
}

/// Whether a path that is not there was a file, by the looks of its name.
fn is_file_like(place: &Path) -> bool {
    place.file_name().is_some_and(|name| name.to_string_lossy().trim_start_matches('.').contains('.'))
}

/// The folder that a pattern hangs from when it is absolute.
fn glob_folder(search: &Question) -> Option<&str> {
    let Question::Glob { pattern, path: None } = search else { return None };
    let absolute = spelling::resolve(None, pattern).is_some();
    let fixed = pattern.find(['*', '?', '[', '{']).unwrap_or(pattern.len());
    let end = pattern[..fixed].rfind(['/', '\\']).filter(|&end| absolute && end > 0)?;
    Some(&pattern[..end])
}

fn same_source(one: &Source, other: &Source) -> bool {
    format!("{one:?}") == format!("{other:?}")
}

fn told(asked: &Asked, belief: Belief) -> Belief {
    Belief {
        tool: Some(asked.question.tool().to_owned()),
        critical: Some(false),
        captured_at: moment(asked.captured_at.as_ref()),
        ..belief
    }
}
