//! A small world: ten names in two folders that anything may happen to, three that are mostly not there, and a tree.

use fastrand::Rng;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const TEXTS: [&str; 4] = ["one\n", "two\n", "six\n", "longer than any other\n"];
const FILES: usize = 10;
const ABSENT: usize = 3;
const MEMBERS: usize = 5;

/// A source, by its path below the root.
#[derive(Debug, Clone)]
pub(super) enum Source {
    File(String),
    Absent(String),
    Tree(String),
    /// A command that reads these.
    Command(Vec<String>),
    /// The first line of it.
    Line(String),
}

/// What a plain reading finds there.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Seen {
    Bytes(Vec<u8>),
    Nothing,
    /// A folder, or what leads nowhere.
    Else,
    Members(BTreeMap<String, Seen>),
}

pub(super) struct World {
    root: PathBuf,
}

impl World {
    pub(super) fn build(root: &Path) -> Self {
        let world = Self { root: root.to_owned() };
        for folder in ["a", "b", "t/s"] {
            fs::create_dir_all(root.join(folder)).expect("a folder");
        }
        (0..FILES).for_each(|n| world.put(&file(n), TEXTS[0]));
        (0..3).for_each(|n| world.put(&member(n), TEXTS[0]));
        world
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn put(&self, path: &str, text: &str) {
        fs::write(self.at(path), text).expect("a file");
    }

    /// Any source.
    pub(super) fn source(chance: &mut Rng) -> Source {
        let one = |chance: &mut Rng| file(chance.usize(..FILES));
        match chance.u8(..10) {
            0 => Source::Absent(absent(chance.usize(..ABSENT))),
            1 => Source::Tree("t".to_owned()),
            2 => Source::Command((0..chance.usize(1..3)).map(|_| one(chance)).collect()),
            3 => Source::Line(one(chance)),
            _ => Source::File(one(chance)),
        }
    }

    /// As a save tells it.
    pub(super) fn told(&self, source: &Source) -> Value {
        let of = |kind: &str, path: &str| json!({ "kind": kind, "path": self.at(path) });
        match source {
            Source::File(path) => json!(self.at(path)),
            Source::Absent(path) => of("absent", path),
            Source::Tree(path) => of("tree", path),
            Source::Command(paths) => {
                let inputs: Vec<Value> = paths.iter().map(|path| of("file", path)).collect();
                json!({ "kind": "command", "command": "make", "inputs": inputs })
            }
            Source::Line(path) => {
                let mut source = of("file", path);
                source["range"] = json!({ "start_line": 1, "lines": 1 });
                source
            }
        }
    }

    /// What is there now.
    pub(super) fn seen(&self, source: &Source) -> Seen {
        match source {
            Source::File(path) | Source::Absent(path) => seen(&self.at(path)),
            Source::Tree(path) => {
                let mut found = BTreeMap::new();
                members(&self.at(path), "", &mut found);
                Seen::Members(found)
            }
            Source::Command(paths) => {
                Seen::Members(paths.iter().map(|path| (path.clone(), seen(&self.at(path)))).collect())
            }
            Source::Line(path) => match seen(&self.at(path)) {
                Seen::Bytes(bytes) => Seen::Bytes(
                    bytes.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default().to_owned(),
                ),
                other => other,
            },
        }
    }

    /// Whether what was there when it was saved is there now. What was no file then is nothing to compare with.
    pub(super) fn is_fresh(source: &Source, then: &Seen, now: &Seen) -> bool {
        match (source, then) {
            (Source::Absent(_), _) => *now == Seen::Nothing,
            (Source::Command(_), Seen::Members(read)) => {
                then == now && read.values().all(|seen| matches!(seen, Seen::Bytes(_)))
            }
            (Source::Tree(_), _) => then == now,
            (_, Seen::Bytes(_)) => then == now,
            _ => false,
        }
    }

    /// One deed, and what it was. What cannot be done is no deed.
    pub(super) fn change(&self, chance: &mut Rng) -> String {
        let (one, other) = (file(chance.usize(..FILES)), file(chance.usize(..FILES)));
        let text = TEXTS[chance.usize(..TEXTS.len())];
        let (from, to) = (self.at(&one), self.at(&other));
        let kind = fs::symlink_metadata(&from).ok().map(|found| found.file_type());
        match chance.u8(..16) {
            0..4 => done(fs::write(&from, text), format!("{text:?} is written to {one}")),
            4 => {
                let beside = self.root.join("beside");
                done(
                    fs::write(&beside, text).and_then(|()| fs::rename(&beside, &from)),
                    format!("{text:?} is renamed over {one}"),
                )
            }
            5 => done(fs::rename(&from, &to), format!("{one} is renamed to {other}")),
            6 => done(
                renameat_with(CWD, &from, CWD, &to, RenameFlags::EXCHANGE).map_err(Into::into),
                format!("{one} and {other} change places"),
            ),
            7 => {
                let gone = if kind.is_some_and(|kind| kind.is_dir()) {
                    fs::remove_dir(&from)
                } else {
                    fs::remove_file(&from)
                };
                done(gone, format!("{one} is removed"))
            }
            8 => done(fs::hard_link(&from, &to), format!("{other} is another name of {one}")),
            9 => done(symlink(&from, &to), format!("{other} is a symlink to {one}")),
            10 => {
                let touched = fs::File::options()
                    .append(true)
                    .open(&from)
                    .and_then(|file| file.set_modified(SystemTime::now()));
                done(touched, format!("{one} is touched"))
            }
            11 => {
                let mode = [0o600, 0o644][chance.usize(..2)];
                done(
                    fs::set_permissions(&from, fs::Permissions::from_mode(mode)),
                    format!("{one} gets the mode {mode:o}"),
                )
            }
            12 => done(fs::create_dir(&from), format!("{one} is a folder")),
            13 => {
                let path = self.at(&absent(chance.usize(..ABSENT)));
                let turned = if path.exists() { fs::remove_file(&path) } else { fs::write(&path, text) };
                done(turned, format!("{} comes or goes", path.display()))
            }
            14 => {
                let path = self.at(&member(chance.usize(..MEMBERS)));
                let turned = if chance.bool() { fs::remove_file(&path) } else { fs::write(&path, text) };
                done(turned, format!("{} of the tree is {text:?} or gone", path.display()))
            }
            // All of it as it was at first.
            _ => {
                let (a, b) = (self.root.join("a"), self.root.join("aside"));
                done(
                    fs::rename(&a, &b).and_then(|()| fs::rename(&b, &a)),
                    "a folder is renamed and back".to_owned(),
                )
            }
        }
    }
}

fn done(deed: std::io::Result<()>, what: String) -> String {
    match deed {
        Ok(()) => what,
        Err(error) => format!("not done, {error}: {what}"),
    }
}

fn file(n: usize) -> String {
    format!("{}/f{n}", if n.is_multiple_of(2) { "a" } else { "b" })
}

fn absent(n: usize) -> String {
    format!("b/none{n}")
}

fn member(n: usize) -> String {
    if n.is_multiple_of(2) { format!("t/m{n}") } else { format!("t/s/m{n}") }
}

fn seen(path: &Path) -> Seen {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => Seen::Bytes(fs::read(path).expect("ours")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Seen::Nothing,
        _ => Seen::Else,
    }
}

fn members(folder: &Path, below: &str, found: &mut BTreeMap<String, Seen>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = format!("{below}/{}", path.file_name().expect("a name").display());
        if path.is_dir() {
            members(&path, &name, found);
        }
        found.insert(name, seen(&path));
    }
}
