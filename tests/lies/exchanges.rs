//! Whole worlds that change places, where one has a folder and the other a symlink under the same name: a tree over them
//! comes to rest, and no watch stays behind when nobody rests on them any more.

use crate::cli::serve::Serving;
use crate::daemon::{decide, register};
use crate::harness::{Daemon, Place};
use crate::harness::{ask, wait_until};
use crate::soak::gauge::Gauge;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;
use staled::client::Client;
use std::os::unix::fs::symlink;

const FOLDERS: usize = 8;
const EXCHANGES: usize = 12;

/// Of a session that is registered, sees folders change places, and is dropped in the middle of looking at them.
const TURNS: usize = 200;

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

#[test]
fn folders_that_change_places_leave_no_watch_behind() {
    let place = Place::new();
    std::fs::create_dir_all(&place.home).expect("a folder");
    let config = place.home.join("config.toml");
    // Of what is confined nobody but root may count the watches.
    std::fs::write(&config, "[server]\nconfine = \"off\"\n").expect("a file");
    for world in ["r", "twin"] {
        (0..FOLDERS).for_each(|number| place.write(&format!("{world}/{number}/deep/er/f"), world));
    }
    let daemon = Serving::start(&place, &["--config", config.to_str().expect("UTF-8")]);
    wait_until("every watch is armed", || daemon.said().contains("every watch is armed"));
    let empty = Gauge::of(daemon.pid()).watches;
    let mut client = Client::connect(&daemon.socket).expect("it serves");
    let mut random = fastrand::Rng::new();
    for _ in 0..TURNS {
        let tree = json!({ "id": "all", "source": { "kind": "tree", "path": "r" } });
        let file = json!({ "id": "f", "source": { "kind": "file", "path": "r/1/deep/er/f" } });
        ask(
            &mut client,
            "context.register",
            &json!({ "session": "s", "root": place.root, "results": [tree, file] }),
        );
        for _ in 0..random.usize(1..20) {
            let below = ["", "/1", "/1/deep", "/3/deep/er"][random.usize(..4)];
            let at = |world: &str| place.root.join(format!("{world}{below}"));
            renameat_with(CWD, at("r"), CWD, at("twin"), RenameFlags::EXCHANGE).expect("they change places");
            if random.u8(..3) == 0 {
                ask(&mut client, "decide", &json!({ "session": "s", "deadline_ms": random.u64(1..20) }));
            }
        }
        ask(&mut client, "context.drop", &json!({ "session": "s" }));
        wait_until("no watch is left", || Gauge::of(daemon.pid()).watches == empty);
    }
}
