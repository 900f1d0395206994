//! The world before anything happens to it: what stands where, and which paths are registered.
//!
//! Everything is below `r`, which the sessions have as their root; `twin` is the same once more, to take its place.

use super::trees::{self, Wide};
use serde_json::Value;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Different contents; the first four have the same size.
pub(crate) const VERSIONS: u8 = 7;

/// Regular files, below `r` and below `twin`.
pub(super) const FILES: [&str; 24] = [
    "plain/a",
    "plain/b",
    "plain/c",
    "plain/d",
    "deep/1/top",
    "deep/1/2/side",
    "deep/1/2/3/4/leaf",
    "swap/left/x",
    "swap/left/y/z",
    "swap/right/x",
    "swap/right/y/z",
    "real/p",
    "real/q/r",
    "targets/t1",
    "targets/t2",
    "targets/t3",
    "hard/one",
    "late/m",
    "late/n",
    "turn/f",
    "turn/g/h",
    "turn-other/f",
    "turn-other/g/h",
    "lock/Cargo.lock",
];

/// Paths that also lead to files, or to nothing.
pub(super) const OTHER_PATHS: [&str; 12] = [
    "hard/two",
    "link/p",
    "link/q/r",
    "abs/q/r",
    "links/rel",
    "links/abs",
    "links/chain",
    "gone/never",
    "gone/dir/never",
    "plain/missing",
    "deep/1/2/3/new",
    "elsewhere/kept",
];

/// Folders that are moved, removed, exchanged and built anew.
pub(super) const FOLDERS: [&str; 16] = [
    "plain",
    "deep",
    "deep/1",
    "deep/1/2",
    "deep/1/2/3",
    "deep/1/2/3/4",
    "swap/left",
    "swap/right",
    "swap/left/y",
    "swap/right/y",
    "real",
    "real/q",
    "targets",
    "hard",
    "turn",
    "turn-other",
];

/// Symlinks and what they lead to at first; a target that begins with `/` is below the world's own root.
pub(super) const LINKS: [(&str, &str); 5] = [
    ("link", "real"),
    ("abs", "/r/real"),
    ("links/rel", "../targets/t1"),
    ("links/abs", "/r/targets/t2"),
    ("links/chain", "rel"),
];

/// What a version of a file contains.
pub(crate) fn content(version: u8) -> Vec<u8> {
    match version {
        4 => b"longer than the others, and not by a little\n".to_vec(),
        5 => Vec::new(),
        6 => b"seventy thousand bytes\n".repeat(3_044),
        small => format!("version {small} of it\n").into_bytes(),
    }
}

/// Builds the whole world, from whatever is there.
pub(crate) fn build(world: &Path) -> io::Result<()> {
    for root in ["r", "twin"] {
        let root = world.join(root);
        remove(&root)?;
        std::fs::create_dir_all(&root)?;
        for (file, version) in FILES.iter().zip((0..VERSIONS).cycle()) {
            write(&root.join(file), version)?;
        }
        std::fs::hard_link(root.join("hard/one"), root.join("hard/two"))?;
        for (link, target) in LINKS {
            std::fs::create_dir_all(root.join(link).parent().expect("links are in folders"))?;
            symlink(target_path(world, target), root.join(link))?;
        }
        copy_tree(&world.join("seed"), &root.join("repo"))?;
    }
    std::fs::create_dir_all(world.join("r/elsewhere"))?;
    std::fs::create_dir_all(world.join("foreign"))
}

/// Builds what belongs below one folder, `r/deep/1` say.
pub(super) fn rebuild(world: &Path, folder: &str, version: u8) -> io::Result<()> {
    let (root, inside) = folder.split_once('/').unwrap_or((folder, ""));
    std::fs::create_dir_all(world.join(folder))?;
    for file in FILES.iter().filter(|file| Path::new(file).starts_with(inside)) {
        write(&world.join(root).join(file), version)?;
    }
    Ok(())
}

/// A link's target as the link must contain it.
pub(super) fn target_path(world: &Path, target: &str) -> std::path::PathBuf {
    target.strip_prefix('/').map_or_else(|| target.into(), |below| world.join(below))
}

fn write(path: &Path, version: u8) -> io::Result<()> {
    std::fs::create_dir_all(path.parent().expect("files are in folders"))?;
    std::fs::write(path, content(version))
}

/// Removes whatever stands at a path.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(_) => Ok(()),
    }
}

fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// One thing that sessions believe something about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) kind: &'static str,
    /// As registered.
    pub(crate) path: String,
    /// It is more than one path.
    pub(crate) wide: Option<Wide>,
}

impl Place {
    pub(crate) fn id(&self) -> String {
        match &self.wide {
            Some(Wide::Tree(filter)) => format!("tree {filter} {}", self.path),
            Some(Wide::Lines(first, lines)) => format!("lines {first}+{lines} {}", self.path),
            _ => format!("{} {}", self.kind, self.path),
        }
    }

    /// What the daemon's own look at registration says was seen: nobody knows the digest of a tree.
    pub(crate) fn is_taken_over(&self) -> bool {
        matches!(self.wide, Some(Wide::Tree(_) | Wide::Command(_)))
    }

    pub(super) fn source(&self) -> Value {
        trees::source(self)
    }
}

/// Everything that is registered; HEAD last.
pub(crate) fn places(world: &Path) -> Vec<Place> {
    let place = |kind, path: &str| Place { kind, path: path.to_owned(), wide: None };
    let absolute = |path: &str| world.join("r").join(path).to_string_lossy().into_owned();
    let skipped = ["targets/t3", "late/n", "turn-other/g/h", "lock/Cargo.lock"];
    let mut places: Vec<Place> =
        FILES.iter().filter(|file| !skipped.contains(file)).map(|file| place("file", file)).collect();
    places.extend(OTHER_PATHS[..7].iter().map(|path| place("file", path)));
    places.extend(OTHER_PATHS[7..11].iter().map(|path| place("absent", path)));
    places.push(place("lockfile", "lock/Cargo.lock"));
    places.push(place("file", "plain/../plain/a"));
    places.push(place("file", "link/../plain/b"));
    places.push(place("file", &absolute("plain/c")));
    places.push(place("file", &absolute("swap/left/../right/x")));
    places.push(place("absent", "plain/d"));
    for (path, first, lines) in [
        ("plain/a", 1, 1),
        ("plain/a", 2, 3),
        ("deep/1/2/3/4/leaf", 1, 1),
        ("swap/left/x", 2, 1),
        ("link/p", 1, 2),
        ("links/chain", 1, 1),
        ("hard/two", 2, 1),
        ("late/m", 40, 5),
    ] {
        let wide = Some(Wide::Lines(first, lines));
        places.push(Place { kind: "file", path: path.to_owned(), wide });
    }
    places.push(place("git_head", "repo"));
    places.push(place("git_head", "repo/sub"));
    places
}
