//! A world of folders, files, links and rule files, with the physics of a real one where they hurt.
//!
//! Stats move by a coarse clock. A writer may keep the old stat, if somebody hears it write. A folder is heard while
//! its own inode is watched, and whoever renames or removes something ends the watches below it; a look arms before it
//! reads. There is no queue here: a change says what the armed sources would be told, and the caller decides when.

use super::reference::{self, State, TEXTS};
use fastrand::Rng;
use staled::index::found::{FileFound, Found, Inode, Stat};
use staled::index::freshness::Doubt;
use staled::index::tree::{Entry, EntryKind, Listing, Names, Root};
use staled::index::{Check, Depth, KeyKind, Looked, SourceId};
use staled::session::digest::Digest;
use staled::session::source::Source;
use staled::world::digest::blake3;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(super) const TOP: &str = "/w";
const NAMES: [&str; 8] = ["a", "b", "x.log", "y.rs", "d", "e", ".gitignore", "l"];
const GRAIN: u64 = 5;

#[derive(Debug, Clone)]
pub(super) struct Node {
    inode: u64,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    File { text: usize, written: u64, lagging: bool },
    Folder(BTreeMap<&'static str, Node>),
    Link(&'static str),
    Other,
}

/// Word of a change, for one source.
#[derive(Debug, Clone)]
pub(super) enum Event {
    Touch(SourceId, Depth),
    Stir(SourceId, Names),
}

/// What a source is heard under.
#[derive(Debug, Default)]
struct Bound {
    asked: Vec<PathBuf>,
    folder: Option<PathBuf>,
    armed: Option<u64>,
}

/// What one change was.
pub(super) struct Deed {
    pub(super) told: Vec<Event>,
    /// It happened at one name: looks see all of it or nothing.
    pub(super) at_once: bool,
    pub(super) what: String,
}

pub(super) struct World {
    now: u64,
    inodes: u64,
    top: Node,
    bound: HashMap<SourceId, Bound>,
}

impl World {
    pub(super) fn new(rng: &mut Rng) -> Self {
        let top = Node { inode: 1, kind: Kind::Folder(BTreeMap::new()) };
        let mut world = Self { now: 100, inodes: 1, top, bound: HashMap::new() };
        world.top.kind = Kind::Folder(world.any_folder(rng, 3));
        world
    }

    pub(super) fn pass_time(&mut self) {
        self.now += 1;
    }

    pub(super) fn at(&self, path: &Path) -> Option<&Node> {
        let mut node = &self.top;
        for name in path.strip_prefix(TOP).ok()?.components() {
            let Kind::Folder(entries) = &node.kind else { return None };
            node = entries.get(name.as_os_str().to_str()?)?;
        }
        Some(node)
    }

    fn folder_mut(&mut self, path: &Path) -> &mut BTreeMap<&'static str, Node> {
        let mut node = &mut self.top;
        for name in path.strip_prefix(TOP).expect("all is below the top").components() {
            let Kind::Folder(entries) = &mut node.kind else { panic!("{} is no folder", path.display()) };
            node = entries.get_mut(name.as_os_str().to_str().expect("text")).expect("it was found before");
        }
        let Kind::Folder(entries) = &mut node.kind else { panic!("{} is no folder", path.display()) };
        entries
    }

    /// Where a path leads, links followed, and every path that was asked about on the way.
    pub(super) fn resolve(&self, path: &Path) -> (Vec<PathBuf>, Option<PathBuf>) {
        let (mut asked, mut here) = (Vec::new(), PathBuf::from(TOP));
        for name in path.strip_prefix(TOP).expect("all is below the top").components() {
            let mut next = here.join(name);
            asked.push(next.clone());
            for _ in 0..4 {
                let Some(Node { kind: Kind::Link(target), .. }) = self.at(&next) else { break };
                next.set_file_name(target);
                asked.push(next.clone());
            }
            match self.at(&next) {
                Some(Node { kind: Kind::Link(_), .. }) | None => return (asked, None),
                Some(_) => here = next,
            }
        }
        (asked, Some(here))
    }

    fn folders(&self) -> Vec<PathBuf> {
        let mut folders = vec![PathBuf::from(TOP)];
        let mut at = 0;
        while at < folders.len() {
            if let Some(Node { kind: Kind::Folder(entries), .. }) = self.at(&folders[at]) {
                let below: Vec<PathBuf> = entries
                    .iter()
                    .filter(|(_, node)| matches!(node.kind, Kind::Folder(_)))
                    .map(|(name, _)| folders[at].join(name))
                    .collect();
                folders.extend(below);
            }
            at += 1;
        }
        folders
    }

    /// The text of every rule file.
    pub(super) fn rules(&self) -> BTreeMap<PathBuf, &'static str> {
        let texts = self.folders().into_iter().map(|folder| (folder.clone(), self.rules_in(&folder)));
        texts.filter(|(_, text)| !text.is_empty()).collect()
    }

    pub(super) fn rules_in(&self, folder: &Path) -> &'static str {
        match self.at(&folder.join(".gitignore")) {
            Some(Node { kind: Kind::File { text, .. }, .. }) => TEXTS[*text],
            _ => "",
        }
    }

    fn node(&mut self, kind: Kind) -> Node {
        self.inodes += 1;
        Node { inode: self.inodes, kind }
    }

    fn any_folder(&mut self, rng: &mut Rng, depth: usize) -> BTreeMap<&'static str, Node> {
        let names: Vec<&'static str> = NAMES.into_iter().filter(|_| rng.u8(..3) == 0).collect();
        names.into_iter().map(|name| (name, self.any_node(name, rng, depth))).collect()
    }

    fn any_node(&mut self, name: &str, rng: &mut Rng, depth: usize) -> Node {
        let usual = match name {
            "d" | "e" => depth > 0 && rng.u8(..6) > 0,
            _ => depth > 0 && rng.u8(..12) == 0,
        };
        let kind = if usual {
            Kind::Folder(self.any_folder(rng, depth - 1))
        } else {
            match rng.u8(..10) {
                0 => Kind::Other,
                1 | 2 => Kind::Link(if rng.bool() { "d" } else { "e" }),
                _ if name == "l" => Kind::Link(if rng.bool() { "d" } else { "e" }),
                _ => self.file(rng),
            }
        };
        self.node(kind)
    }

    fn file(&self, rng: &mut Rng) -> Kind {
        Kind::File { text: rng.usize(..TEXTS.len()), written: self.now / GRAIN, lagging: false }
    }

    /// Something happens somewhere.
    pub(super) fn change(&mut self, rng: &mut Rng) -> Deed {
        let folders = self.folders();
        let folder = folders[rng.usize(..folders.len())].clone();
        let depth = 4_usize.saturating_sub(folder.components().count()).min(2);
        let name = NAMES[rng.usize(..NAMES.len())];
        let path = folder.join(name);
        let held = self.at(&path).cloned();
        let grain = self.now / GRAIN;
        match (held.map(|held| held.kind), rng.u8(..12)) {
            (Some(Kind::File { text, written, lagging }), 0..=6) => {
                let other = rng.usize(..TEXTS.len());
                let kind = match rng.u8(..4) {
                    0 => Kind::File { text, written: grain, lagging: false },
                    1 if self.hears(&folder) => Kind::File { text: other, written, lagging: true },
                    _ => Kind::File { text: other, written: grain, lagging },
                };
                let what = format!("write {} {kind:?}", path.display());
                self.folder_mut(&folder).get_mut(name).expect("it was found").kind = kind;
                Deed { told: self.strike(&path, Depth::Bytes, false), at_once: true, what }
            }
            (Some(_), 7) => {
                let what = format!("remove {}", path.display());
                let told = self.strike(&path, Depth::Names, true);
                self.folder_mut(&folder).remove(name);
                Deed { told, at_once: false, what }
            }
            (Some(_), 8..=10) => self.rename(&folder, name, rng),
            (held, _) => {
                let node = self.any_node(name, rng, depth);
                let what = format!("put {} {:?}", path.display(), node.kind);
                let told = self.strike(&path, Depth::Names, held.is_some());
                self.folder_mut(&folder).insert(name, node);
                Deed { told, at_once: held.is_none(), what }
            }
        }
    }

    /// To another place, or there and back, or exchanged with what stands there.
    fn rename(&mut self, folder: &Path, name: &'static str, rng: &mut Rng) -> Deed {
        let from = folder.join(name);
        let mut told = self.strike(&from, Depth::Names, true);
        let node = self.folder_mut(folder).remove(name).expect("it was found");
        let folders = self.folders();
        let target = folders[rng.usize(..folders.len())].clone();
        let there = if rng.bool() { name } else { NAMES[rng.usize(..NAMES.len())] };
        let to = target.join(there);
        told.extend(self.strike(&to, Depth::Names, true));
        let replaced = self.folder_mut(&target).insert(there, node);
        let mut what = format!("rename {} to {}", from.display(), to.display());
        match rng.u8(..3) {
            0 => {
                what += " and back";
                told.extend(self.strike(&to, Depth::Names, true));
                let node = self.folder_mut(&target).remove(there).expect("it was just put there");
                if let Some(replaced) = replaced {
                    told.extend(self.strike(&to, Depth::Names, false));
                    self.folder_mut(&target).insert(there, replaced);
                }
                // What stood at the target may have been the way here.
                if matches!(self.at(folder), Some(Node { kind: Kind::Folder(_), .. })) {
                    told.extend(self.strike(&from, Depth::Names, false));
                    self.folder_mut(folder).insert(name, node);
                }
            }
            1 if matches!(self.at(folder), Some(Node { kind: Kind::Folder(_), .. })) && from != to => {
                what += " exchanged";
                if let Some(replaced) = replaced {
                    told.extend(self.strike(&from, Depth::Names, true));
                    self.folder_mut(folder).insert(name, replaced);
                }
            }
            _ => {}
        }
        Deed { told, at_once: false, what }
    }

    fn hears(&self, folder: &Path) -> bool {
        let inode = self.at(folder).map(|node| node.inode);
        self.bound.values().any(|bound| bound.folder.as_deref() == Some(folder) && bound.armed == inode)
    }

    /// What the armed sources are told of something that happens at a path, before it happens.
    fn strike(&mut self, path: &Path, depth: Depth, killing: bool) -> Vec<Event> {
        let (folder, name) = (path.parent().expect("below the top"), path.file_name().expect("a name"));
        let heard = self.hears(folder);
        let mut told = Vec::new();
        for (&source, bound) in &mut self.bound {
            let asked = |asked: &PathBuf| if killing { asked.starts_with(path) } else { asked == path };
            if bound.asked.iter().any(asked) {
                told.push(Event::Touch(source, depth));
            }
            let Some(at) = bound.folder.as_deref() else { continue };
            if at == folder && heard {
                let these = [OsString::from(name)].into();
                told.push(Event::Stir(source, Names { these, ..Names::default() }));
            }
            let at_it = if killing { at.starts_with(path) } else { at == path };
            if at_it && (heard || bound.armed.is_some()) {
                told.push(Event::Stir(source, Names::all(false)));
                bound.armed = bound.armed.filter(|_| !killing);
            }
        }
        // Hash maps have no order, and a seed must tell the same tale twice.
        told.sort_by_key(|event| match event {
            Event::Touch(source, _) => (0, source.0, false),
            Event::Stir(source, names) => (1, source.0, names.all),
        });
        told
    }

    /// Looks now. `unlucky` looks cannot tell everything.
    pub(super) fn look(&mut self, check: &Check, unlucky: &mut dyn FnMut() -> bool) -> Looked {
        let (asked, end) = self.resolve(&check.key.path);
        match &check.key.kind {
            KeyKind::Folder => self.list(check, unlucky),
            KeyKind::Tree(filter) => {
                let mut bound = Bound { asked, ..Bound::default() };
                let looked = match &end {
                    Some(folder) if matches!(self.at(folder).unwrap().kind, Kind::Folder(_)) => {
                        let above: Vec<PathBuf> = folder
                            .ancestors()
                            .skip(1)
                            .take_while(|above| above.starts_with(TOP))
                            .map(Into::into)
                            .collect();
                        let above = if filter.gitignore { above } else { Vec::new() };
                        bound.asked.extend(above.iter().map(|above| above.join(".gitignore")));
                        let outer =
                            above.iter().rev().map(|above| (above.clone(), self.rules_in(above).to_owned()));
                        let outer = outer.filter(|(_, text)| !text.is_empty()).collect();
                        Looked::Root(Root { folder: folder.clone(), outer })
                    }
                    Some(_) => Found::Other { kind: "file".to_owned() }.into(),
                    None => Found::Missing.into(),
                };
                self.bound.insert(check.source, bound);
                if unlucky() { Found::Unknown(Doubt::Unsettled).into() } else { looked }
            }
            _ => {
                self.bound.insert(check.source, Bound { asked, ..Bound::default() });
                match end.and_then(|end| Some((self.at(&end)?, end.clone()))) {
                    Some((Node { inode, kind: Kind::File { text, written, .. } }, canonical)) => {
                        let stat = Self::stat(*inode, *written);
                        let digest = text_digest(*text);
                        Found::File(FileFound {
                            digest,
                            also: Vec::new(),
                            lf: None,
                            stat,
                            racy: true,
                            canonical,
                        })
                        .into()
                    }
                    Some(_) => Found::Other { kind: "folder".to_owned() }.into(),
                    None => Found::Missing.into(),
                }
            }
        }
    }

    fn list(&mut self, check: &Check, unlucky: &mut dyn FnMut() -> bool) -> Looked {
        let (path, order) = (&check.key.path, check.order.as_ref().expect("folders have orders"));
        let Some(Node { inode, kind: Kind::Folder(entries) }) = self.at(path) else {
            return if unlucky() { Found::Unknown(Doubt::Unsettled).into() } else { Found::Missing.into() };
        };
        let inode = *inode;
        let names: Vec<String> = if order.names.all {
            entries.keys().map(|name| (*name).to_owned()).collect()
        } else {
            order.names.these.iter().map(|name| name.to_string_lossy().into_owned()).collect()
        };
        let rules = order.names.all || names.iter().any(|name| name == ".gitignore");
        let names: Vec<String> =
            names.into_iter().filter(|name| order.views.care_for(name.as_ref())).collect();
        let gitignore = rules.then(|| self.rules_in(path).to_owned());
        let entry = |name: &String| {
            let node = entries.get(name.as_str())?;
            let inode = Inode { dev: 1, ino: node.inode };
            let plain = Entry {
                kind: EntryKind::File,
                inode,
                stat: None,
                racy: false,
                linked: false,
                digest: None,
                doubt: None,
            };
            Some(match &node.kind {
                Kind::Folder(_) => Entry { kind: EntryKind::Folder, ..plain },
                Kind::Link(target) => {
                    Entry { kind: EntryKind::Link, digest: Some(blake3(target.as_bytes())), ..plain }
                }
                Kind::Other => Entry { kind: EntryKind::Other, ..plain },
                Kind::File { .. } if !order.views.want_bytes(name.as_ref()) => plain,
                Kind::File { text, written, .. } => {
                    let (stat, racy) = (Self::stat(node.inode, *written), *written == self.now / GRAIN);
                    let forced = order.names.bytes || order.names.these.contains(std::ffi::OsStr::new(name));
                    let known = order.known.get(std::ffi::OsStr::new(name));
                    match known.filter(|known| !forced && !known.racy && known.stat == Some(stat)) {
                        Some(known) if known.digest.is_some() => known.clone(),
                        _ => Entry { stat: Some(stat), racy, digest: Some(text_digest(*text)), ..plain },
                    }
                }
            })
        };
        let mut entries: Vec<(OsString, Option<Entry>)> =
            names.iter().map(|name| (OsString::from(name), entry(name))).collect();
        for (_, entry) in &mut entries {
            if let Some(entry) = entry.as_mut().filter(|entry| entry.stat.is_some() && unlucky()) {
                (entry.stat, entry.digest, entry.doubt) = (None, None, Some(Doubt::Unsettled));
            }
        }
        let whole = order.names.all;
        let folder = Some(path.clone());
        self.bound.insert(check.source, Bound { asked: Vec::new(), folder, armed: Some(inode) });
        if unlucky() {
            return Found::Unknown(Doubt::Unreadable).into();
        }
        let known = order.known.clone();
        Looked::Listing(Listing { inode: Inode { dev: 1, ino: inode }, entries, known, whole, gitignore })
    }

    fn stat(ino: u64, written: u64) -> Stat {
        let time = written.cast_signed();
        Stat { dev: 1, ino, size: 9, mode: 0o644, mtime_ns: time, ctime_ns: time, mount: 1 }
    }

    pub(super) fn forget(&mut self, source: SourceId) {
        self.bound.remove(&source);
    }

    /// The daemon ends, and its watches with it. What kept its stat so far is told apart by it from now on.
    pub(super) fn restart(&mut self) {
        self.bound.clear();
        let now = self.now / GRAIN;
        settle_stats(&mut self.top, now);
    }

    /// What truly stands at a source.
    pub(super) fn state(&self, source: &Source) -> State {
        let path = Path::new(TOP).join(source.path().expect("no command"));
        let Some(end) = self.resolve(&path).1 else { return State::Nothing };
        match (&self.at(&end).expect("it was resolved").kind, source) {
            (Kind::Folder(_), Source::Tree { filter, .. }) => {
                State::Members(reference::members(self, &end, filter))
            }
            (Kind::File { text, .. }, Source::File { .. } | Source::Absent { .. }) => State::Text(*text),
            _ => State::Other,
        }
    }
}

fn settle_stats(node: &mut Node, now: u64) {
    match &mut node.kind {
        Kind::File { written, lagging, .. } if *lagging => (*written, *lagging) = (now, false),
        Kind::Folder(entries) => entries.values_mut().for_each(|node| settle_stats(node, now)),
        _ => {}
    }
}

pub(super) fn text_digest(text: usize) -> Digest {
    blake3(TEXTS.get(text).copied().unwrap_or("what no file ever says").as_bytes())
}
