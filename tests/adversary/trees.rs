//! Trees and commands in the adversarial world: which there are, and what a naive walk says stands there.
//!
//! No file is registered beside them, for a file's own watch would hear what a folder's must. Hard links are made when the
//! world is built or inside of folders that are watched; whoever links a file from elsewhere later and writes there is
//! only found by the scrub, as documented, and does not live here.

use super::layout::Place;
use super::oracle::Content;
use serde_json::{Value, json};
use staled::world::digest::blake3;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What rule files say here.
pub(super) const RULES: [&str; 7] = ["", "leaf\n", "3/\n", "/a\n", "*.aside\n", "x\n", "!x\n"];

/// Where rule files are written, below `r`.
pub(super) const RULE_FILES: [&str; 6] = [
    ".gitignore",
    "deep/.gitignore",
    "deep/1/.gitignore",
    "swap/.gitignore",
    "swap/left/.gitignore",
    "plain/.gitignore",
];

/// Filters: include, exclude, contents, gitignore.
type Filter = (&'static [&'static str], &'static [&'static str], bool, bool);

const FILTERS: [Filter; 5] = [
    (&[], &[], true, true),
    (&[], &[], false, false),
    (&["leaf", "x"], &[], true, false),
    (&[], &["y/", "*.aside"], true, true),
    (&["/left/**"], &[], true, true),
];

/// A place that is a tree, or a command over some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wide {
    Tree(usize),
    Command(Vec<Place>),
    /// Of one file only these: the first, and how many.
    Lines(usize, usize),
}

/// A tree with one of the filters.
pub(crate) fn tree(path: &str, filter: usize) -> Place {
    Place { kind: "tree", path: path.to_owned(), wide: Some(Wide::Tree(filter)) }
}

/// Every tree and command that is registered.
pub(super) fn places() -> Vec<Place> {
    let mut places: Vec<Place> = (0..4).map(|filter| tree(".", filter)).collect();
    places.extend(
        [("swap", 4), ("swap", 3), ("deep", 0), ("deep", 1), ("deep/1/2", 0), ("link", 0)]
            .map(|(p, f)| tree(p, f)),
    );
    places.extend(
        [("hard", 0), ("turn", 0), ("turn/g", 1), ("plain", 3), ("swap/left", 0)].map(|(p, f)| tree(p, f)),
    );
    let absent = Place { kind: "absent", path: "gone/never".to_owned(), wide: None };
    for (path, inputs) in [
        ("make deep", vec![tree("deep", 0), absent.clone()]),
        ("make all", vec![tree("targets", 0), tree(".", 2), tree("late", 1)]),
    ] {
        places.push(Place { kind: "command", path: path.to_owned(), wide: Some(Wide::Command(inputs)) });
    }
    places.push(absent);
    places
}

pub(super) fn source(place: &Place) -> Value {
    match &place.wide {
        Some(Wide::Tree(filter)) => {
            let (include, exclude, contents, gitignore) = FILTERS[*filter];
            json!({ "kind": "tree", "path": place.path, "include": include, "exclude": exclude,
                    "contents": contents, "gitignore": gitignore })
        }
        Some(Wide::Command(inputs)) => {
            let inputs: Vec<Value> = inputs.iter().map(Place::source).collect();
            json!({ "kind": "command", "command": place.path, "inputs": inputs })
        }
        Some(Wide::Lines(start_line, lines)) => {
            let range = json!({ "start_line": start_line, "lines": lines });
            json!({ "kind": "file", "path": place.path, "range": range })
        }
        None => json!({ "kind": place.kind, "path": place.path }),
    }
}

/// What stands at a tree's path.
pub(super) fn read(path: &Path, filter: usize) -> Content {
    match (fs::metadata(path), fs::canonicalize(path)) {
        (Ok(found), Ok(root)) if found.is_dir() => {
            let mut walk = Walk { root: &root, filter: FILTERS[filter], listing: Vec::new() };
            walk.folder(&[]);
            walk.listing.sort_unstable();
            Content::Bytes(blake3(walk.listing.join("\n").as_bytes()).to_string())
        }
        (Ok(_), _) => Content::Other,
        _ => Content::Nothing,
    }
}

struct Walk<'walk> {
    root: &'walk Path,
    filter: Filter,
    listing: Vec<String>,
}

impl Walk<'_> {
    fn folder(&mut self, at: &[String]) {
        let folder = self.root.join(at.join("/"));
        for entry in fs::read_dir(&folder).expect("a folder can be read") {
            let name = entry.expect("it can be listed").file_name().into_string().expect("names are text");
            let path = folder.join(&name);
            let found = fs::symlink_metadata(&path).expect("nobody is at work");
            let whole: Vec<String> = [at, &[name]].concat();
            if self.left_out(&whole, found.is_dir()) {
                continue;
            }
            if self.filter.0.is_empty() || self.filter.0.iter().any(|glob| included(glob, &whole)) {
                let (letter, bytes) = if found.is_file() {
                    ("f", fs::read(&path).expect("it can be read"))
                } else if found.is_symlink() {
                    ("l", fs::read_link(&path).expect("a link").as_os_str().as_bytes().to_vec())
                } else {
                    (if found.is_dir() { "d" } else { "o" }, Vec::new())
                };
                let bytes = if self.filter.2 { blake3(&bytes).to_string() } else { String::new() };
                self.listing.push(format!("{} {letter} {bytes}", whole.join("/")));
            }
            if found.is_dir() {
                self.folder(&whole);
            }
        }
    }

    fn left_out(&self, whole: &[String], folder: bool) -> bool {
        let name = whole.last().expect("it has a name").as_str();
        if name == ".git"
            || self.filter.1.iter().any(|glob| rule(glob, &[name.to_owned()], folder) == Some(true))
        {
            return true;
        }
        if !self.filter.3 {
            return false;
        }
        let said = (0..whole.len()).rev().find_map(|depth| {
            let file = self.root.join(whole[..depth].join("/")).join(".gitignore");
            let rules = fs::symlink_metadata(&file).is_ok_and(|found| found.is_file());
            let text = if rules { fs::read_to_string(&file).expect("it is text") } else { String::new() };
            rule(text.trim_end(), &whole[depth..], folder)
        });
        said.unwrap_or(false)
    }
}

fn rule(text: &str, below: &[String], folder: bool) -> Option<bool> {
    let name = below.last().expect("it has a name").as_str();
    match text {
        "leaf" | "x" => (name == text).then_some(true),
        "!x" => (name == "x").then_some(false),
        "3/" | "y/" => (folder && text.trim_end_matches('/') == name).then_some(true),
        "/a" => (below.len() == 1 && name == "a").then_some(true),
        "*.aside" => name.as_bytes().ends_with(b".aside").then_some(true),
        _ => None,
    }
}

fn included(glob: &str, whole: &[String]) -> bool {
    match glob {
        "/left/**" => whole.len() > 1 && whole[0] == "left",
        name => whole.iter().any(|part| part == name),
    }
}

/// What a command is compared with: nothing can stand in for a tree that is not there.
pub(super) fn seen_by_command(place: &Place, now: Content) -> Content {
    let (Some(Wide::Command(inputs)), Content::All(parts)) = (&place.wide, now) else {
        return Content::Never;
    };
    let seen = inputs.iter().zip(parts).map(|(input, now)| match (input.kind, now) {
        ("absent", _) => Content::Nothing,
        (_, now @ Content::Bytes(_)) => now,
        _ => Content::Never,
    });
    Content::All(seen.collect())
}
