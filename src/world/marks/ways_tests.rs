//! What a way must not survive, and whom it marks.

use super::tests::{arm, spot};
use super::{Bound, Lead, Marks, Unbound};
use crate::index::{Depth, SourceId};
use crate::world::filesystem::Kind;
use std::path::{Path, PathBuf};

const READER: SourceId = SourceId(1);
const LATER: SourceId = SourceId(2);
const FOLDER: &str = "/home/link";

/// `/home/link` leads to `/data/there`, proven and armed.
fn lead() -> (Marks, Lead) {
    let mut marks = Marks::default();
    let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
    let lookups = paths(&["/home", "/home/link", "/data", "/data/there"]);
    let folders = paths(&["/", "/home", "/data", "/data/there"]);
    let way = marks.begin_way(Path::new(FOLDER), &lookups, &folders);
    for (inode, folder) in (2..).zip(["/", "/home", "/data", "/data/there"]) {
        arm(&mut marks, folder, inode);
    }
    marks.way_is_armed(way);
    let lead = marks.prove_way(way, Kind::Local).expect("nothing moved");
    (marks, lead)
}

fn bind(marks: &mut Marks, lead: &Lead, source: SourceId) -> Result<Vec<PathBuf>, Unbound> {
    let at = lead.folder.join(source.0.to_string());
    marks.follow(source);
    let bound = Bound { lookups: vec![at.clone()], arms: vec![at.clone()], end: Some(at), folder: None };
    marks.bind_along(source, Some(lead.way), &bound)
}

/// One source bound and armed along the way.
fn led() -> (Marks, Lead) {
    let (mut marks, lead) = lead();
    assert_eq!(bind(&mut marks, &lead, READER), Ok(Vec::new()));
    marks.end_building(lead.way);
    arm(&mut marks, "/data/there/1", 9);
    assert!(marks.armed_end(READER).is_some());
    (marks, lead)
}

#[test]
fn what_is_named_anew_on_a_way_marks_its_readers_and_ends_it() {
    for (path, killing) in [
        ("/home", true),
        ("/home/link", true),
        ("/data", false),
        ("/data/there", false),
        ("/data/there", true),
    ] {
        let (mut marks, lead) = led();
        marks.strike(Path::new(path), Depth::Names, killing);
        assert_eq!(marks.take().moved.get(&READER), Some(&Depth::Names), "{path}");
        assert!(marks.way(Path::new(FOLDER)).is_none(), "{path}");
        assert_eq!(marks.armed_end(READER), None, "{path}");
        assert_eq!(bind(&mut marks, &lead, LATER), Err(Unbound::Moved), "{path}");
    }
}

#[test]
fn what_happens_beside_a_way_leaves_it_alone() {
    let (mut marks, lead) = led();
    for path in ["/data/there/other", "/home/other", "/other"] {
        marks.strike(Path::new(path), Depth::Names, true);
    }
    marks.strike(Path::new("/data/there/1"), Depth::Names, true);
    assert_eq!(marks.take().moved.len(), 1);
    assert_eq!(bind(&mut marks, &lead, LATER), Ok(Vec::new()));
}

#[test]
fn a_way_that_lost_a_watch_never_holds_again() {
    type Loss = fn(&mut Marks);
    let losses: [(&str, Loss); 4] = [
        ("gap", |marks| marks.gap("for once".to_owned())),
        ("mount", |marks| marks.remount(Path::new("/data"))),
        ("inode", |marks| marks.lose(spot(4).inode.unwrap())),
        ("root", |marks| marks.strike(Path::new("/"), Depth::Names, false)),
    ];
    for (what, lose) in losses {
        let (mut marks, lead) = led();
        lose(&mut marks);
        // Somebody asks the kernel for all of them again: they count as armed from then on, and are not yet.
        for folder in ["/", "/home", "/data", "/data/there"] {
            marks.begin_arming(Path::new(folder));
        }
        assert!(marks.way(Path::new(FOLDER)).is_none(), "{what}");
        assert_eq!(bind(&mut marks, &lead, LATER), Err(Unbound::Moved), "{what}");
    }
}

#[test]
fn a_way_is_not_proven_when_something_moved_meanwhile() {
    for armed_first in [true, false] {
        let (mut marks, lead) = lead();
        let way = marks.begin_way(Path::new(FOLDER), &[PathBuf::from("/home")], &[PathBuf::from("/home")]);
        if armed_first {
            marks.way_is_armed(way);
        }
        marks.strike(Path::new("/home"), Depth::Names, false);
        if !armed_first {
            marks.way_is_armed(way);
        }
        assert!(marks.prove_way(way, Kind::Local).is_none());
        assert!(marks.way(Path::new(FOLDER)).is_none());
        drop(lead);
    }
}

#[test]
fn the_last_reader_gives_up_what_only_the_way_used() {
    let (mut marks, lead) = led();
    assert_eq!(bind(&mut marks, &lead, LATER), Ok(Vec::new()));
    assert_eq!(marks.unfollow(READER), [PathBuf::from("/data/there/1")]);
    let mut unused = marks.unfollow(LATER);
    unused.sort();
    assert_eq!(unused, ["/", "/data", "/data/there", "/data/there/2", "/home"].map(PathBuf::from));
    assert!(marks.way(Path::new(FOLDER)).is_none());
    assert!(marks.interests.is_empty() && marks.ways.is_empty());
}

#[test]
fn a_folder_on_a_way_that_is_renamed_tells_its_readers_where_to() {
    for (from, to, there) in [("/data/there", "/data/new", "/data/new/1"), ("/data", "/old", "/old/there/1")]
    {
        let (mut marks, _lead) = led();
        marks.renamed(Path::new(from), Path::new(to));
        assert_eq!(marks.renamed_to(READER), Some(PathBuf::from(there)), "{from}");
    }
}

#[test]
fn an_open_is_noted_for_who_ends_there_and_not_for_who_is_led_over_it() {
    let (mut marks, lead) = led();
    let end = Path::new("/data/there/1");
    for (path, doubtful) in [(end, true), (Path::new("/data/there"), false)] {
        marks.opened(path);
        let noted = marks.take_doubtful(&[READER].into());
        assert_eq!(!noted.is_empty(), doubtful, "{path:?}");
    }
    // The same file and name bound again, and then nothing: its end is counted once each time.
    assert_eq!(bind(&mut marks, &lead, READER), Ok(Vec::new()));
    let gone = Bound { lookups: vec![end.to_owned()], ..Bound::default() };
    assert_eq!(marks.bind(READER, gone).map(|unused| unused.contains(&end.to_owned())), Some(true));
    assert_eq!(marks.armed.get(end.as_os_str().as_encoded_bytes()).map(|armed| armed.ends), Some(0));
}

#[test]
fn a_watch_that_is_refused_is_no_loss_and_carries_no_way() {
    let (mut marks, _lead) = led();
    let way = marks.begin_way(Path::new("/more"), &[], &[PathBuf::from("/more")]);
    let (more, losses) = (Path::new("/more"), marks.losses);
    assert!(marks.begin_arming(more));
    assert!(!marks.end_arming(more, spot(20), spot(20), false));
    assert_eq!((marks.losses, marks.take().moved.len()), (losses, 0), "refused again, for ever");
    marks.way_is_armed(way);
    assert!(marks.prove_way(way, Kind::Local).is_none());
    assert!(marks.way(Path::new(FOLDER)).is_some(), "the other one has all its watches");
}
