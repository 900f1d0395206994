//! Whether a file with several names has one of them where it must not: in another place, or in a tree that its place is to
//! be apart from. Looked for in the background, once for all that were suspected meanwhile.

use super::Seen;
use super::keeper::{Message, inode};
use crate::world::dart::Died;
use std::collections::{BTreeMap, HashMap};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Default)]
struct Trees {
    own: Vec<PathBuf>,
    apart_from: Vec<PathBuf>,
}

type Places = Arc<Mutex<BTreeMap<u64, Trees>>>;

struct Suspect {
    no: u64,
    path: PathBuf,
    inode: (u64, u64),
}

/// The thread that looks.
pub(super) struct Links {
    places: Places,
    suspects: Sender<Suspect>,
}

impl Links {
    pub(super) fn start(told: Sender<Message>, died: &Died) -> io::Result<Self> {
        let (suspects, inbox) = channel();
        let places = Places::default();
        let (theirs, died) = (Arc::clone(&places), died.clone());
        let look = move || {
            let _dart = died.dart("guard's links");
            run(&inbox, &theirs, &told);
        };
        std::thread::Builder::new().name("guard-links".to_owned()).spawn(look)?;
        Ok(Self { places, suspects })
    }

    pub(super) fn know(&self, no: u64, own: &[PathBuf], apart_from: Vec<PathBuf>) {
        let trees = Trees { own: own.to_vec(), apart_from };
        self.places.lock().unwrap_or_else(PoisonError::into_inner).insert(no, trees);
    }

    pub(super) fn forget(&self, no: u64) {
        self.places.lock().unwrap_or_else(PoisonError::into_inner).remove(&no);
    }

    /// Has it looked for if it has another name at all.
    pub(super) fn suspect(&self, no: u64, path: &Path, found: &Metadata) {
        if found.nlink() > 1 && !found.is_dir() {
            // A reader that is gone has told of its end.
            let _ = self.suspects.send(Suspect { no, path: path.to_owned(), inode: inode(found) });
        }
    }
}

fn run(inbox: &Receiver<Suspect>, places: &Places, told: &Sender<Message>) {
    while let Ok(first) = inbox.recv() {
        let wanted = by_inode(std::iter::once(first).chain(inbox.try_iter()));
        let trees = trees(places);
        for (tree, concerns) in &trees {
            find(tree, &wanted, &mut |suspect, other| {
                let own = trees
                    .iter()
                    .any(|(own, whose)| whose.owner == Some(suspect.no) && other.starts_with(own));
                if concerns.is_apart_from(suspect.no) && !own {
                    let (no, path) = (suspect.no, suspect.path.clone());
                    // A keeper that is gone needs no news.
                    let _ = told.send(Message::Linked(Seen::Linked { no, path, other: other.to_owned() }));
                }
            });
        }
    }
}

/// One name of a file is enough for each place: what it is one with is the same for all of them.
fn by_inode(suspects: impl Iterator<Item = Suspect>) -> HashMap<u64, Vec<Suspect>> {
    let mut wanted: HashMap<u64, Vec<Suspect>> = HashMap::new();
    for suspect in suspects {
        let same = wanted.entry(suspect.inode.1).or_default();
        if !same.iter().any(|other| (other.no, other.inode) == (suspect.no, suspect.inode)) {
            same.push(suspect);
        }
    }
    wanted
}

/// Whose tree it is, and who is to be apart from it.
#[derive(Default)]
struct Whose {
    owner: Option<u64>,
    apart: Vec<u64>,
}

impl Whose {
    fn is_apart_from(&self, no: u64) -> bool {
        self.owner.map_or_else(|| self.apart.contains(&no), |owner| owner != no)
    }
}

fn trees(places: &Places) -> BTreeMap<PathBuf, Whose> {
    let places = places.lock().unwrap_or_else(PoisonError::into_inner);
    let mut trees: BTreeMap<PathBuf, Whose> = BTreeMap::new();
    for (no, place) in &*places {
        place.own.iter().for_each(|tree| trees.entry(tree.clone()).or_default().owner = Some(*no));
        place.apart_from.iter().for_each(|tree| trees.entry(tree.clone()).or_default().apart.push(*no));
    }
    trees
}

/// Tells every file of a tree that is one of these. A folder says the inodes of its entries without a look at them.
fn find(tree: &Path, wanted: &HashMap<u64, Vec<Suspect>>, found: &mut dyn FnMut(&Suspect, &Path)) {
    let mut ahead = vec![tree.to_owned()];
    while let Some(folder) = ahead.pop() {
        // What cannot be listed has gone, or is not ours to read.
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                ahead.push(entry.path());
            }
            let Some(suspects) = wanted.get(&entry.ino()) else { continue };
            let path = entry.path();
            let Ok(metadata) = std::fs::symlink_metadata(&path) else { continue };
            suspects
                .iter()
                .filter(|suspect| suspect.inode == inode(&metadata))
                .for_each(|suspect| found(suspect, &path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Suspect, by_inode};
    use std::path::PathBuf;

    #[test]
    fn a_file_with_many_names_is_sought_once_for_each_place() {
        let inodes = [(1, (7, 1)), (2, (7, 1)), (1, (8, 1)), (1, (7, 2))];
        let names = (0..100).flat_map(|name| inodes.map(|(no, inode)| (no, inode, name)));
        let suspects = names.map(|(no, inode, name)| {
            let path = PathBuf::from(format!("/{no}/{name}"));
            Suspect { no, path, inode }
        });
        let wanted = by_inode(suspects);
        assert_eq!((wanted[&1].len(), wanted[&2].len(), wanted.len()), (3, 1, 2));
    }
}
