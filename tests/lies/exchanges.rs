//! Whole worlds that change places, where one has a folder and the other a symlink under the same name: a tree over them
//! comes to rest.

use crate::daemon::{decide, register};
use crate::harness::{Daemon, Place};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;
use std::os::unix::fs::symlink;

const FOLDERS: usize = 8;
const EXCHANGES: usize = 12;

/// An exchange makes each folder suspect a few times, by what happened to it, to its name and to its watch. Two looks that
/// overtake each other do so some thousand times a second, and never end.
const TICKS_MAX: u64 = 2_000;

#[test]
fn a_tree_in_which_folders_and_symlinks_change_places_comes_to_rest() {
    let place = Place::new();
    for number in 0..FOLDERS {
        for (world, links) in [("r", false), ("twin", true)] {
            let folder = format!("{world}/{number}");
            let aside = format!("{folder}.aside");
            place.write(&format!("{aside}/deep/er/f"), world);
            if links == (number % 2 == 0) {
                symlink(format!("{number}.aside"), place.root.join(folder)).expect("a symlink");
            } else {
                place.write(&format!("{folder}/deep/er/f"), world);
            }
        }
    }
    let daemon = Daemon::start(&place.home);
    for session in ["s", "t"] {
        let tree = json!({ "kind": "tree", "path": "r" });
        register(&daemon, &place, session, &json!([{ "id": "all", "source": tree }]));
    }
    let tick = |session: &str, turn: usize| {
        let report = decide(&daemon, session);
        let expected = if turn.is_multiple_of(2) { "resume" } else { "fresh" };
        assert_eq!(report["transition"], expected, "after {turn} exchanges: {report}");
        report["clock"]["tick"].as_u64().expect("a tick")
    };
    let before = tick("s", 0);
    for turn in 1..=EXCHANGES {
        let (one, other) = (place.root.join("r"), place.root.join("twin"));
        renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).expect("they change places");
        tick("s", turn);
        tick("t", turn);
    }
    let ticks = tick("s", 0) - before;
    assert!(ticks < TICKS_MAX, "{ticks} ticks for {EXCHANGES} exchanges");
}
