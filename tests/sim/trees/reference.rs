//! What trees are, written a second time: globs as plain conditions, members as a map, the digest as one long sum.

use super::world::{Kind, TOP, World, text_digest};
use staled::session::digest::Digest;
use staled::session::source::Filter;
use staled::world::digest::blake3;
use std::collections::BTreeMap;
use std::path::Path;

/// What files hold; as rules, when they are called `.gitignore`.
pub(super) const TEXTS: [&str; 6] = ["", "*.log\n", "d/\n", "/a\n", "!x.log\n*.rs\n", "e\n"];

/// Path below the tree → letter of its kind, digest where that counts.
pub(super) type Members = BTreeMap<String, (u8, Option<Digest>)>;

/// What stands at a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    Nothing,
    Other,
    Text(usize),
    Members(Members),
}

/// The filters that trees have here.
pub(super) fn filters() -> [Filter; 8] {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    let filter = |include: &[&str], exclude: &[&str], contents, gitignore| Filter {
        include: words(include),
        exclude: words(exclude),
        contents,
        gitignore,
    };
    [
        filter(&[], &[], true, true),
        filter(&[], &[], false, true),
        filter(&["*.log"], &[], true, true),
        filter(&["d/**"], &[], true, true),
        filter(&[], &["e/"], true, true),
        filter(&[], &[], true, false),
        filter(&["/d/e/*", "a"], &[], true, false),
        filter(&[], &["b", "*.rs"], false, true),
    ]
}

fn rule(text: &str, from_rules: &[&str], folder: bool) -> Option<bool> {
    let name = *from_rules.last()?;
    let when = |met: bool, ignored: bool| met.then_some(ignored);
    match text {
        "*.log\n" => when(ends_in(name, ".log"), true),
        "d/\n" => when(folder && name == "d", true),
        "/a\n" => when(from_rules == ["a"], true),
        "!x.log\n*.rs\n" => when(name == "x.log", false).or(when(ends_in(name, ".rs"), true)),
        "e\n" => when(name == "e", true),
        _ => None,
    }
}

fn included(glob: &str, path: &[&str]) -> bool {
    match glob {
        "*.log" => path.iter().any(|part| ends_in(part, ".log")),
        "d/**" => path.len() > 1 && path[0] == "d",
        "/d/e/*" => path.len() > 2 && path[..2] == ["d", "e"],
        "a" => path.contains(&"a"),
        glob => panic!("{glob} is unknown here"),
    }
}

fn excluded(glob: &str, name: &str, folder: bool) -> bool {
    match glob {
        "e/" => folder && name == "e",
        "b" => name == "b",
        "*.rs" => ends_in(name, ".rs"),
        glob => panic!("{glob} is unknown here"),
    }
}

struct Walk<'walk> {
    world: &'walk World,
    filter: &'walk Filter,
    root_len: usize,
    members: Members,
}

/// The members of a tree, by a walk of all that is there.
pub(super) fn members(world: &World, root: &Path, filter: &Filter) -> Members {
    let parts: Vec<&str> = root
        .strip_prefix(TOP)
        .expect("below the top")
        .iter()
        .map(|part| part.to_str().expect("text"))
        .collect();
    let mut walk = Walk { world, filter, root_len: parts.len(), members: Members::new() };
    walk.folder(&parts);
    walk.members
}

impl Walk<'_> {
    fn folder(&mut self, at: &[&str]) {
        let path = Path::new(TOP).join(at.join("/"));
        let Some(Kind::Folder(entries)) = self.world.at(&path).map(|node| &node.kind) else { return };
        for (name, node) in entries {
            let whole = [at, &[*name]].concat();
            let is_folder = matches!(node.kind, Kind::Folder(_));
            if self.left_out(&whole, is_folder) {
                continue;
            }
            let below = &whole[self.root_len..];
            if self.filter.include.is_empty() || self.filter.include.iter().any(|glob| included(glob, below))
            {
                let contents = self.filter.contents;
                let member = match &node.kind {
                    Kind::File { text, .. } => (b'f', contents.then(|| text_digest(*text))),
                    Kind::Folder(_) => (b'd', None),
                    Kind::Link(target) => (b'l', contents.then(|| blake3(target.as_bytes()))),
                    Kind::Other => (b'o', None),
                };
                self.members.insert(below.join("/"), member);
            }
            if is_folder {
                self.folder(&whole);
            }
        }
    }

    fn left_out(&self, whole: &[&str], is_folder: bool) -> bool {
        let name = *whole.last().expect("it has a name");
        if self.filter.exclude.iter().any(|glob| excluded(glob, name, is_folder)) {
            return true;
        }
        if !self.filter.gitignore {
            return false;
        }
        let nearest_first = (0..whole.len()).rev();
        let said = nearest_first.filter_map(|depth| {
            let folder = Path::new(TOP).join(whole[..depth].join("/"));
            rule(self.world.rules_in(&folder), &whole[depth..], is_folder)
        });
        said.into_iter().next().unwrap_or(false)
    }
}

/// The digest of a tree of these members.
pub(super) fn digest(members: &Members) -> Digest {
    let mut sum = [0_u8; 32];
    for (path, (letter, digest)) in members {
        let mut print = vec![*letter];
        print.extend((path.len() as u64).to_be_bytes());
        print.extend(path.as_bytes());
        print.extend(digest.iter().flat_map(|digest| digest.as_bytes().to_vec()));
        let print = blake3(&print);
        let mut carry = 0;
        for (byte, other) in sum.iter_mut().zip(print.as_bytes()).rev() {
            let both = u16::from(*byte) + u16::from(*other) + carry;
            (*byte, carry) = ((both & 0xff) as u8, both >> 8);
        }
    }
    let mut text = b"tree".to_vec();
    text.extend((members.len() as u64).to_be_bytes());
    text.extend(sum.rchunks(8).flatten());
    blake3(&text)
}

/// The paths at which two trees differ, in the order of their bytes, and whether a name is in one of them only.
pub(super) fn difference(one: &Members, other: &Members) -> (Vec<String>, bool) {
    let mut paths: Vec<String> = one.keys().chain(other.keys()).cloned().collect();
    paths.sort_unstable();
    paths.dedup();
    paths.retain(|path| one.get(path) != other.get(path));
    let names = paths.iter().any(|path| one.contains_key(path) != other.contains_key(path));
    (paths, names)
}

/// As a glob does it, letter by letter.
fn ends_in(name: &str, end: &str) -> bool {
    name.as_bytes().ends_with(end.as_bytes())
}
