//! Which names a tree is about: globs of the client's, and `.gitignore` files.
//!
//! Matching is text against text; nobody here reads a file. The rules of a `.gitignore` are kept in memory only, for the
//! text of a source is never stored. Whatever is left out is not watched, so in doubt a name is let in.

use crate::session::digest::Digest;
use crate::session::source::Filter;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The rules of one `.gitignore`.
#[derive(Debug)]
pub struct Rules {
    text: String,
    rules: Gitignore,
}

impl Rules {
    /// The rules that a text gives for what is below `folder`; a line that makes no sense leaves nothing out.
    #[must_use]
    pub fn new(folder: &Path, text: String) -> Self {
        let mut builder = GitignoreBuilder::new(folder);
        for line in text.lines() {
            // git passes over such lines too.
            let _ = builder.add_line(None, &without_alternatives(line));
        }
        let rules = builder.build().unwrap_or_else(|_| Gitignore::empty());
        Self { text, rules }
    }

    /// Whether they let in what others leave out.
    #[must_use]
    pub fn lets_in(&self) -> bool {
        self.rules.num_whitelists() > 0
    }

    /// The text they were made of.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// git knows no alternatives: braces in a `.gitignore` are letters like any other.
fn without_alternatives(line: &str) -> String {
    let mut literal = String::with_capacity(line.len());
    let mut escaped = false;
    for letter in line.chars() {
        if !escaped && matches!(letter, '{' | '}') {
            literal.push('\\');
        }
        escaped = letter == '\\' && !escaped;
        literal.push(letter);
    }
    literal
}

/// Why a glob cannot be used. One that can match nothing would leave everything out, and what is left out is not watched.
#[must_use]
pub fn refuse(glob: &str) -> Option<String> {
    if glob.starts_with(['#', '!']) {
        return Some(format!(
            "{glob:?} begins with a sign that is not part of a name; put a backslash before it"
        ));
    }
    let inner = glob.strip_prefix('/').unwrap_or(glob);
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    if inner.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Some(format!(
            "{glob:?} is no path below the tree: it may not hold \".\", \"..\" or nothing between slashes"
        ));
    }
    if glob.contains('[') && !glob.contains(']') {
        return Some(format!("{glob:?} opens a class of letters and does not close it"));
    }
    let mut builder = GitignoreBuilder::new("/");
    builder.add_line(None, glob).err().map(|error| error.to_string())
}

/// The filter of one tree, ready to be used.
#[derive(Debug)]
pub struct Sieve {
    include: Option<Gitignore>,
    exclude: Option<Gitignore>,
    /// Folders that anything included is in or below; `None` is anywhere.
    within: Option<Vec<PathBuf>>,
    gitignore: bool,
    /// The bytes of files count.
    pub contents: bool,
    outer: Vec<Rules>,
    /// Digest of the rules from above.
    pub outer_digest: Digest,
}

impl Sieve {
    /// The sieve of a filter; `outer` are the rules from above the tree, top down.
    #[must_use]
    pub fn new(filter: &Filter, outer: &[(PathBuf, String)]) -> Self {
        let outer_digest = digest_of(outer);
        let outer = outer.iter().map(|(folder, text)| Rules::new(folder, text.clone()));
        Self {
            outer_digest,
            include: globs(&filter.include),
            exclude: globs(&filter.exclude),
            within: within(&filter.include),
            gitignore: filter.gitignore,
            contents: filter.contents,
            outer: outer.collect(),
        }
    }

    /// Whether `.gitignore` files count.
    #[must_use]
    pub fn uses_rules(&self) -> bool {
        self.gitignore
    }

    /// Whether the rules from above are made of these texts, in these folders.
    #[must_use]
    pub fn has_outer(&self, outer: &[(PathBuf, String)]) -> bool {
        self.outer_digest == digest_of(outer)
    }

    fn leaves_out(&self, place: &Place<'_>, name: &Path, folder: bool) -> bool {
        if name.file_name().is_some_and(|name| name == ".git") {
            return true;
        }
        let path = place.below.join(name);
        if self.exclude.as_ref().is_some_and(|globs| globs.matched(&path, folder).is_ignore()) {
            return true;
        }
        if !self.gitignore {
            return false;
        }
        let at = place.folder.join(name);
        let inner = place.rules.iter().rev().map(AsRef::as_ref);
        for rules in inner.chain(self.outer.iter().rev()) {
            match rules.rules.matched(&at, folder) {
                Match::None => {}
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
            }
        }
        false
    }

    /// Whether a name of a folder counts.
    #[must_use]
    pub fn takes(&self, place: &Place<'_>, name: &Path, folder: bool) -> bool {
        if self.leaves_out(place, name, folder) {
            return false;
        }
        let path = place.below.join(name);
        self.include.as_ref().is_none_or(|globs| globs.matched_path_or_any_parents(&path, folder).is_ignore())
    }

    /// Whether something that counts may be below a folder of a folder.
    #[must_use]
    pub fn enters(&self, place: &Place<'_>, name: &Path) -> bool {
        let path = place.below.join(name);
        let within = self.within.as_ref();
        let on_the_way = |within: &PathBuf| within.starts_with(&path) || path.starts_with(within);
        !self.leaves_out(place, name, true) && within.is_none_or(|within| within.iter().any(on_the_way))
    }
}

fn digest_of(outer: &[(PathBuf, String)]) -> Digest {
    let mut hasher = blake3::Hasher::new();
    for (folder, text) in outer {
        for part in [folder.as_os_str().as_bytes(), text.as_bytes()] {
            hasher.update(&(part.len() as u64).to_be_bytes()).update(part);
        }
    }
    Digest::blake3(*hasher.finalize().as_bytes())
}

/// A folder of a tree, as its sieve needs to know it.
#[derive(Debug, Clone)]
pub struct Place<'place> {
    /// Its canonical path.
    pub folder: &'place Path,
    /// Its path below the tree; empty for the root.
    pub below: &'place Path,
    /// The rules of the folders from the root down to it.
    pub rules: &'place [Arc<Rules>],
}

fn globs(globs: &[String]) -> Option<Gitignore> {
    if globs.is_empty() {
        return None;
    }
    let mut builder = GitignoreBuilder::new("");
    for glob in globs {
        // Checked at the door.
        let _ = builder.add_line(None, glob);
    }
    builder.build().ok()
}

/// The folders in which all that these globs can match is found: the parts of each before its first wildcard.
fn within(globs: &[String]) -> Option<Vec<PathBuf>> {
    let within = globs.iter().map(|glob| fixed_part(glob)).collect::<Option<Vec<_>>>()?;
    (!within.is_empty()).then_some(within)
}

fn fixed_part(glob: &str) -> Option<PathBuf> {
    let glob = glob.trim_end_matches('/');
    // Without a slash before its end it matches at any depth; a negated or escaped one is not worth the thought.
    if !glob.contains('/') || glob.starts_with('!') || glob.contains('\\') {
        return None;
    }
    let fixed: PathBuf = Path::new(glob.trim_start_matches('/'))
        .components()
        .take_while(|part| matches!(part, Component::Normal(name) if !has_wildcard(&name.to_string_lossy())))
        .collect();
    (!fixed.as_os_str().is_empty()).then_some(fixed)
}

fn has_wildcard(name: &str) -> bool {
    name.contains(['*', '?', '[', '{'])
}

#[cfg(test)]
mod tests {
    use super::{Place, Rules, Sieve};
    use crate::session::source::Filter;
    use std::path::Path;
    use std::sync::Arc;

    fn filter(include: &[&str], exclude: &[&str]) -> Filter {
        let owned = |globs: &[&str]| globs.iter().map(|&glob| glob.to_owned()).collect();
        Filter { include: owned(include), exclude: owned(exclude), ..Filter::default() }
    }

    #[test]
    fn globs_mean_what_gitignore_makes_of_them() {
        let cases: [(&[&str], &[&str], &str, bool, bool); 14] = [
            (&[], &[], "a.rs", false, true),
            (&[], &[], ".git", true, false),
            (&["*.rs"], &[], "a.rs", false, true),
            (&["*.rs"], &[], "deep/down/a.rs", false, true),
            (&["*.rs"], &[], "a.toml", false, false),
            (&["/*.rs"], &[], "deep/a.rs", false, false),
            (&["src/**/*.ts"], &[], "src/a/b.ts", false, true),
            (&["src/**/*.ts"], &[], "src/b.ts", false, true),
            (&["src/**/*.ts"], &[], "lib/b.ts", false, false),
            (&["src"], &[], "src/any/thing", false, true),
            (&["*.{ts,tsx}"], &[], "a.tsx", false, true),
            (&[], &["*.log"], "a.log", false, false),
            (&[], &["target/"], "target", true, false),
            (&[], &["target/"], "target", false, true),
        ];
        for (include, exclude, path, folder, taken) in cases {
            let sieve = Sieve::new(&filter(include, exclude), &[]);
            let (path, root) = (Path::new(path), Path::new("/r"));
            let below = path.parent().unwrap_or(Path::new(""));
            let place = Place { folder: &root.join(below), below, rules: &[] };
            let name = Path::new(path.file_name().unwrap());
            assert_eq!(
                sieve.takes(&place, name, folder),
                taken,
                "{include:?} {exclude:?} {}",
                path.display()
            );
        }
    }

    #[test]
    fn braces_are_letters_in_a_gitignore() {
        let rules = [Arc::new(Rules::new(Path::new("/r"), "*.{rs,ts}\n/{src,lib}/\n\\{a}\n".to_owned()))];
        let sieve = Sieve::new(&Filter::default(), &[]);
        let place = Place { folder: Path::new("/r"), below: Path::new(""), rules: &rules };
        for (name, folder, taken) in
            [("a.rs", false, true), ("a.{rs,ts}", false, false), ("src", true, true), ("{a}", false, false)]
        {
            assert_eq!(sieve.takes(&place, Path::new(name), folder), taken, "{name}");
        }
    }

    #[test]
    fn a_glob_that_can_match_nothing_is_refused() {
        for glob in ["./src/*.rs", "../a", "a//b", "a/./b", "", "#a", "!*.md", "[a"] {
            assert!(super::refuse(glob).is_some(), "{glob}");
        }
        for glob in ["*.rs", "/src/*.rs", "src/", "**/a", "a/{b,c}/*", "[ab].c", "\\#a"] {
            assert_eq!(super::refuse(glob), None, "{glob}");
        }
    }

    #[test]
    fn the_nearest_rules_decide_and_those_from_above_count_too() {
        let outer = [("/r".into(), "*.log\n/build\n".to_owned())];
        let sieve = Sieve::new(&Filter::default(), &outer);
        let rules = [Arc::new(Rules::new(Path::new("/r/t"), "!keep.log\n*.tmp\n# a word\n".to_owned()))];
        for (below, name, taken) in [
            ("", "a.log", false),
            ("", "keep.log", true),
            ("sub", "a.tmp", false),
            ("sub", "keep.log", true),
            ("", "build", true),
            ("", "a.rs", true),
        ] {
            let folder = Path::new("/r/t").join(below);
            let place = Place { folder: &folder, below: Path::new(below), rules: &rules };
            assert_eq!(sieve.takes(&place, Path::new(name), false), taken, "{below}/{name}");
        }
    }

    #[test]
    fn a_folder_is_entered_only_if_something_in_it_could_count() {
        for (include, path, entered) in [
            (&["src/**/*.ts"][..], "src", true),
            (&["src/**/*.ts"], "src/a", true),
            (&["src/**/*.ts"], "docs", false),
            (&["src/lib/*.ts", "docs/*.md"], "docs", true),
            (&["src/lib/*.ts"], "src", true),
            (&["*.ts"], "docs", true),
            (&["src/*.ts", "*.md"], "docs", true),
            (&["src/"], "docs", true),
        ] {
            let sieve = Sieve::new(&filter(include, &[]), &[]);
            let path = Path::new(path);
            let below = path.parent().unwrap();
            let place = Place { folder: &Path::new("/r").join(below), below, rules: &[] };
            let name = Path::new(path.file_name().unwrap());
            assert_eq!(sieve.enters(&place, name), entered, "{include:?} {}", path.display());
        }
    }
}
