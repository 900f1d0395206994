//! The simulated world: objects that hold a version of bytes, nothing, a folder or something unreadable, and a HEAD.
//!
//! Its physics are the real ones where they hurt. Stats move by a coarse clock, so two writes within one grain have
//! one stat. A writer may also keep the old stat on purpose; a look without an event before it sees that writer. A naming change ends the
//! watch in force until a look that renews names arms it again. There is no queue here: [`World::change`] says which
//! armed sources would be told, and the caller decides when, how often, or never.

use fastrand::Rng;
use staled::index::found::{FileFound, Found, Stat};
use staled::index::freshness::Doubt;
use staled::index::{Check, Depth, KeyKind, SourceId, SourceKey};
use staled::session::digest::{Algorithm, CommitId, Digest};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

pub(crate) const OBJECTS: usize = 6;
pub(crate) const VERSIONS: u32 = 4;
const GRAIN: u64 = 6;

/// What stands at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thing {
    Nothing,
    Bytes(u32),
    Folder,
    Unreadable,
    Commit(Option<u32>),
}

/// Where a source leads, however it is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Place {
    Object(usize),
    Head,
    Nowhere,
}

/// Word of a change, for one source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    pub(crate) source: SourceId,
    pub(crate) depth: Depth,
}

#[derive(Debug, Clone, Copy)]
struct Object {
    thing: Thing,
    inode: u64,
    written: u64,
    lagging: bool,
}

pub(crate) struct World {
    now: u64,
    objects: [Object; OBJECTS],
    head: Thing,
    inodes: u64,
    armed: HashSet<SourceId>,
    keys: HashMap<SourceId, SourceKey>,
}

impl World {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let object = |inode| Object { thing: Thing::Bytes(0), inode, written: 0, lagging: false };
        let mut objects: [Object; OBJECTS] = std::array::from_fn(|n| object(n as u64 + 1));
        for object in &mut objects {
            object.thing = any_thing(rng);
        }
        let (armed, keys) = (HashSet::new(), HashMap::new());
        Self { now: 100, objects, head: Thing::Commit(Some(1)), inodes: 100, armed, keys }
    }

    pub(crate) fn pass_time(&mut self) {
        self.now += 1;
    }

    pub(crate) fn at(&self, place: Place) -> Thing {
        match place {
            Place::Object(object) => self.objects[object].thing,
            Place::Head => self.head,
            Place::Nowhere => Thing::Nothing,
        }
    }

    /// Something happens somewhere; returns what the armed sources there would be told.
    pub(crate) fn change(&mut self, rng: &mut Rng) -> Vec<Event> {
        if rng.u8(..6) == 0 {
            let before = self.head;
            self.head = match rng.u8(..8) {
                0 => Thing::Nothing,
                1 => Thing::Commit(None),
                _ => Thing::Commit(Some(rng.u32(1..4))),
            };
            let naming = (before == Thing::Nothing) != (self.head == Thing::Nothing);
            return self.tell(Place::Head, if naming { Depth::Names } else { Depth::Bytes });
        }
        let place = rng.usize(..OBJECTS);
        let depth = self.change_object(place, rng);
        self.tell(Place::Object(place), depth)
    }

    fn change_object(&mut self, place: usize, rng: &mut Rng) -> Depth {
        self.inodes += 1;
        let (grain, inode) = (self.now / GRAIN, self.inodes);
        let object = &mut self.objects[place];
        match (object.thing, rng.u8(..8)) {
            (Thing::Bytes(_), 0..=2) => {
                object.thing = Thing::Bytes(rng.u32(..VERSIONS));
                (object.written, object.lagging) = (grain, false);
                Depth::Bytes
            }
            (Thing::Bytes(_), 3) => {
                object.thing = Thing::Bytes(rng.u32(..VERSIONS));
                object.lagging = true;
                Depth::Bytes
            }
            (Thing::Bytes(_), 4) => {
                object.written = grain;
                Depth::Bytes
            }
            _ => {
                *object = Object { thing: any_thing(rng), inode, written: grain, lagging: false };
                Depth::Names
            }
        }
    }

    fn tell(&mut self, place: Place, depth: Depth) -> Vec<Event> {
        let mut told: Vec<SourceId> = self.armed.iter().copied().collect();
        told.retain(|source| self.keys.get(source).is_some_and(|key| place_of_key(key) == place));
        told.sort_unstable();
        if depth == Depth::Names {
            self.armed.retain(|source| !told.contains(source));
        }
        told.into_iter().map(|source| Event { source, depth }).collect()
    }

    /// Arms if names are to be renewed, then looks. The second part is what truly stood there.
    pub(crate) fn look(&mut self, check: &Check) -> (Found, Thing) {
        self.keys.insert(check.source, check.key.clone());
        if check.depth == Depth::Names {
            self.armed.insert(check.source);
        }
        let place = place_of_key(&check.key);
        let thing = self.at(place);
        let found = match (thing, place) {
            (Thing::Bytes(version), Place::Object(object)) => self.read(object, version, check),
            (Thing::Folder, _) => Found::Other { kind: "folder".to_owned() },
            (Thing::Unreadable, _) => Found::Unknown(Doubt::Unreadable),
            (Thing::Commit(commit), _) => Found::Head { commit: commit.map(commit_id), branch: None },
            _ => Found::Missing,
        };
        (found, thing)
    }

    fn read(&self, place: usize, version: u32, check: &Check) -> Found {
        let object = self.objects[place];
        let time = object.written.cast_signed();
        let stat = Stat {
            dev: 1,
            ino: object.inode,
            size: 9,
            mode: 0o644,
            mtime_ns: time,
            ctime_ns: time,
            mount: 1,
        };
        if let Some(known) = check.known.as_ref().filter(|known| known.stat == stat && !object.lagging) {
            return Found::File(known.clone());
        }
        Found::File(FileFound {
            digest: digest(Algorithm::Blake3, version),
            also: check.wanted.iter().map(|&algorithm| digest(algorithm, version)).collect(),
            lf: None,
            stat,
            racy: object.written == self.now / GRAIN,
            canonical: PathBuf::from(format!("/w/p{place}")),
        })
    }

    pub(crate) fn forget(&mut self, source: SourceId) {
        self.armed.remove(&source);
        self.keys.remove(&source);
    }

    /// The daemon ends, and its watches with it.
    pub(crate) fn restart(&mut self) {
        self.armed.clear();
        self.keys.clear();
    }
}

fn any_thing(rng: &mut Rng) -> Thing {
    match rng.u8(..12) {
        0 => Thing::Folder,
        1 => Thing::Unreadable,
        2..=4 => Thing::Nothing,
        _ => Thing::Bytes(rng.u32(..VERSIONS)),
    }
}

fn place_of_key(key: &SourceKey) -> Place {
    if key.kind == KeyKind::Head { Place::Head } else { place_of(&key.path) }
}

/// The object that a path leads to: `p0`, `./p0`, `/w/p0`, `d/../p0` and the symlink `l0` are one.
pub(crate) fn place_of(path: &Path) -> Place {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let object = name.strip_prefix(['p', 'l']).and_then(|digits| digits.parse().ok());
    object.filter(|&object| object < OBJECTS).map_or(Place::Nowhere, Place::Object)
}

/// One of the ways to spell an object's path.
pub(crate) fn spelling(object: usize, rng: &mut Rng) -> PathBuf {
    PathBuf::from(match rng.u8(..8) {
        0 => format!("./p{object}"),
        1 => format!("/w/p{object}"),
        2 => format!("d/../p{object}"),
        3 => format!("l{object}"),
        _ => format!("p{object}"),
    })
}

pub(crate) fn digest(algorithm: Algorithm, version: u32) -> Digest {
    let mut bytes = [algorithm as u8; 32];
    bytes[..4].copy_from_slice(&version.to_be_bytes());
    match algorithm {
        Algorithm::Blake3 => Digest::blake3(bytes),
        other => Digest::new(other, &bytes[..other.bytes_len()]).expect("the length is the algorithm's own"),
    }
}

pub(crate) fn commit_id(commit: u32) -> CommitId {
    CommitId::from_bytes(&[commit as u8; 20]).expect("twenty bytes are a commit id")
}
