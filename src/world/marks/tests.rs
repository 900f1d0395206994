//! Races between arming and the events that take watches away, one by one.

use super::{Bound, DIVIDERS, Marks, Spot};
use crate::index::found::Inode;
use crate::index::{Depth, SourceId};
use std::path::{Path, PathBuf};

const KEPT: SourceId = SourceId(1);
const REPLACED: SourceId = SourceId(2);

pub(super) fn spot(ino: u64) -> Spot {
    Spot { inode: Some(Inode { dev: 1, ino }), through_link: false }
}

fn bind(marks: &mut Marks, source: SourceId, path: &str) {
    let path = PathBuf::from(path);
    marks.follow(source);
    let bound =
        Bound { lookups: vec![path.clone()], arms: vec![path.clone()], end: Some(path), folder: None };
    marks.bind(source, bound).expect("it is followed");
}

pub(super) fn arm(marks: &mut Marks, path: &str, ino: u64) {
    assert!(marks.begin_arming(Path::new(path)));
    assert!(marks.end_arming(Path::new(path), spot(ino), spot(ino), true));
}

/// `/kept` is inode 7, and `/replaced`, which was inode 8, has just become a second name of it.
fn replaced_by_a_link() -> Marks {
    let mut marks = Marks::default();
    bind(&mut marks, KEPT, "/kept");
    bind(&mut marks, REPLACED, "/replaced");
    arm(&mut marks, "/kept", 7);
    arm(&mut marks, "/replaced", 8);
    marks.strike(Path::new("/replaced"), Depth::Names, false);
    let _ = marks.take();
    marks
}

#[test]
fn an_event_about_the_old_inode_takes_the_new_watch_from_every_name() {
    let mut marks = replaced_by_a_link();
    assert!(marks.begin_arming(Path::new("/replaced")));
    // The old inode's end is heard after the kernel gave `/replaced` the watch that `/kept` has.
    marks.strike(Path::new("/replaced"), Depth::Names, true);
    assert!(!marks.end_arming(Path::new("/replaced"), spot(7), spot(7), true));
    assert_eq!(marks.take().moved.get(&KEPT), Some(&Depth::Names), "/kept may have lost its watch");
    assert_eq!(marks.armed_end(KEPT), None);
}

#[test]
fn what_the_kernel_is_only_being_asked_for_is_no_watch_yet() {
    let mut marks = Marks::default();
    bind(&mut marks, KEPT, "/kept");
    bind(&mut marks, REPLACED, "/kept");
    // Asked for by a verifier of the one while somebody writes, which has the other looked at by its bytes alone.
    assert!(marks.begin_arming(Path::new("/kept")));
    assert_eq!(marks.armed_end(REPLACED), None);
    assert!(!marks.end_arming(Path::new("/kept"), spot(7), spot(7), false), "refused: there is no room");
    assert_eq!(marks.armed_end(REPLACED), None);
    arm(&mut marks, "/kept", 7);
    assert!(marks.armed_end(REPLACED).is_some());
}

#[test]
fn a_write_is_heard_for_every_name_of_the_inode() {
    let mut marks = replaced_by_a_link();
    arm(&mut marks, "/replaced", 7);
    let _ = marks.take();
    marks.strike(Path::new("/replaced"), Depth::Bytes, false);
    assert_eq!(marks.take().moved.get(&KEPT), Some(&Depth::Bytes));
    assert!(marks.armed_end(KEPT).is_some());
}

#[test]
fn a_name_that_goes_takes_the_watch_of_the_others() {
    let mut marks = replaced_by_a_link();
    arm(&mut marks, "/replaced", 7);
    let _ = marks.take();
    marks.strike(Path::new("/replaced"), Depth::Names, true);
    assert_eq!(marks.take().moved.get(&KEPT), Some(&Depth::Names));
    assert_eq!(marks.armed_end(KEPT), None);
}

#[test]
fn a_folder_that_goes_takes_the_watches_below_it() {
    let mut marks = Marks::default();
    bind(&mut marks, KEPT, "/kept");
    bind(&mut marks, REPLACED, "/d/e/f");
    arm(&mut marks, "/kept", 7);
    arm(&mut marks, "/d/e/f", 7);
    bind(&mut marks, SourceId(3), "/d");
    arm(&mut marks, "/d", 9);
    let _ = marks.take();
    marks.strike(Path::new("/d"), Depth::Names, true);
    let moved = marks.take().moved;
    assert_eq!((moved.get(&KEPT), moved.get(&REPLACED)), (Some(&Depth::Names), Some(&Depth::Names)));
}

/// Follows a source that waits for `name` to appear in `folder`.
fn wait_in(marks: &mut Marks, source: u64, folder: &str, inode: u64) {
    let source = SourceId(source);
    let place = PathBuf::from(folder);
    let lookups = vec![place.clone(), place.join("name")];
    marks.follow(source);
    assert!(marks.bind(source, Bound { lookups, arms: vec![place], end: None, folder: None }).is_some());
    arm(marks, folder, inode);
}

#[test]
fn what_happens_in_a_folder_is_heard_at_all_its_paths() {
    let mut marks = Marks::default();
    wait_in(&mut marks, 1, "/a", 7);
    wait_in(&mut marks, 2, "/bound/a", 7);
    wait_in(&mut marks, 3, "/other", 8);
    marks.strike(Path::new("/bound/a/name"), Depth::Names, false);
    let moved = marks.take().moved;
    assert!(moved.contains_key(&SourceId(1)) && moved.contains_key(&SourceId(2)), "{moved:?}");
    assert!(!moved.contains_key(&SourceId(3)), "{moved:?}");
}

#[test]
fn a_mount_moves_everything_at_it_and_below() {
    let mut marks = Marks::default();
    wait_in(&mut marks, 1, "/m", 7);
    wait_in(&mut marks, 2, "/m/deeper", 8);
    wait_in(&mut marks, 3, "/mm", 9);
    marks.remount(Path::new("/m"));
    let moved = marks.take().moved;
    assert!(moved.contains_key(&SourceId(1)) && moved.contains_key(&SourceId(2)), "{moved:?}");
    assert!(!moved.contains_key(&SourceId(3)), "{moved:?}");
    for (folder, must_be_armed) in [("/m", true), ("/m/deeper", true), ("/mm", false)] {
        assert_eq!(marks.begin_arming(Path::new(folder)), must_be_armed, "{folder}");
    }
}

/// `/kept` and `/other` are two names of inode 7, and nobody writes it.
fn two_names() -> Marks {
    let mut marks = Marks::default();
    bind(&mut marks, KEPT, "/kept");
    bind(&mut marks, REPLACED, "/other");
    arm(&mut marks, "/kept", 7);
    arm(&mut marks, "/other", 7);
    marks
}

fn noted(marks: &mut Marks) -> Vec<SourceId> {
    marks.take_doubtful(&[KEPT, REPLACED].into()).into_iter().map(|(source, _)| source).collect()
}

#[test]
fn an_open_is_noted_for_every_name_unless_it_may_be_our_own() {
    let (mut marks, kept) = (two_names(), Path::new("/kept"));
    marks.opened(kept);
    assert_eq!(noted(&mut marks), [KEPT, REPLACED]);
    assert_eq!(noted(&mut marks), [], "told once");
    let open = marks.begin_opening(kept);
    marks.opened(Path::new("/other"));
    marks.end_opening(kept, &open, KEPT, true);
    marks.opened(kept);
    assert_eq!(noted(&mut marks), [], "heard before the divider: answered by the question after it");
    marks.divided(open.divider.expect("one is free"));
    marks.opened(kept);
    assert_eq!(noted(&mut marks), [KEPT, REPLACED], "heard after the divider");
}

#[test]
fn what_a_look_with_a_doubt_kept_from_others_they_ask_for_themselves() {
    let (mut marks, kept) = (two_names(), Path::new("/kept"));
    marks.opened(kept);
    let open = marks.begin_opening(kept);
    marks.opened(kept);
    marks.end_opening(kept, &open, KEPT, false);
    assert_eq!(noted(&mut marks), [REPLACED], "the look's own source has its answer");
}

#[test]
fn an_open_of_ours_ends_with_its_divider_or_without_and_with_every_gap() {
    let (mut marks, kept) = (two_names(), Path::new("/kept"));
    let opens: Vec<_> = (0..=DIVIDERS).map(|_| marks.begin_opening(kept)).collect();
    assert_eq!(opens[DIVIDERS].divider, None, "all are on their way");
    opens.iter().for_each(|open| marks.end_opening(kept, open, KEPT, true));
    opens.iter().filter_map(|open| open.divider).for_each(|divider| marks.divided(divider));
    marks.opened(kept);
    assert_eq!(noted(&mut marks).len(), 2, "none is left open");
    let open = marks.begin_opening(kept);
    marks.gap("lost".to_owned());
    marks.opened(kept);
    assert_eq!(noted(&mut marks).len(), 2, "its divider may have been lost");
    marks.end_opening(kept, &open, KEPT, true);
    let (one, two) = (marks.begin_opening(kept), marks.begin_opening(kept));
    // That of before the gap comes back after all: fewer of our own opens are known than there are, never more.
    marks.divided(open.divider.expect("one was free"));
    marks.divided(one.divider.expect("one is free"));
    marks.divided(two.divider.expect("one is free"));
    marks.opened(kept);
    assert_eq!(noted(&mut marks).len(), 2);
}

#[test]
fn a_folder_that_is_opened_on_the_way_is_nobodys_doubt() {
    let mut marks = Marks::default();
    marks.follow(KEPT);
    let (folder, file) = (PathBuf::from("/d"), PathBuf::from("/d/f"));
    let (lookups, arms) = (vec![folder.clone(), file.clone()], vec![folder.clone(), file.clone()]);
    marks
        .bind(KEPT, Bound { lookups, arms, end: Some(file.clone()), ..Bound::default() })
        .expect("it is followed");
    marks.opened(&folder);
    assert_eq!(noted(&mut marks), []);
    marks.opened(&file);
    assert_eq!(noted(&mut marks), [KEPT]);
}
