//! A journal whose sync fails while it is opened: the next start does not rest on what may be in memory only.

use super::traced::Traced;
use crate::harness::{Daemon, Place, file, wait_until};
use serde_json::json;
use staled::daemon::Folders;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What this start's first sync of the segment fails with is its end; the next one reads everything back into a new file.
fn fails_once_at_opening(prepare: Option<fn(&Path)>, story: &str) -> bool {
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    daemon
        .ask("context.register", &json!({ "session": "s", "root": place.root, "results": [file("a", "1")] }));
    daemon.stop();
    let folders = Folders::below(&place.home);
    let (journal, name) = (folders.state.join("journal"), "00000000000000000001.seg");
    let segment = journal.join(name);
    prepare.iter().for_each(|prepare| prepare(&segment));
    let inode = || std::fs::metadata(&segment).expect("a segment").ino();
    let before = inode();
    let inject = ["-etrace=fdatasync", "-P", segment.to_str().expect("UTF-8")];
    let inject = [&inject[..], &["-einject=fdatasync:error=EIO:when=1"]].concat();
    let inject: Vec<String> = inject.into_iter().map(ToOwned::to_owned).collect();
    let Some(mut traced) = Traced::start(&place, "", &inject) else { return false };
    assert!(traced.client(&folders.socket).is_none(), "{story}: it does not serve");
    wait_until("it is gone", || traced.has_ended());
    assert_eq!(traced.ended().and_then(|status| status.code()), Some(2), "{story}");
    assert_eq!(inode(), before, "{story}");
    let mark = journal.join("sync-failed");
    assert!(mark.exists(), "{story}: the failure is said to the next start");

    let daemon = Daemon::start(&place.home);
    assert_eq!(daemon.ask("decide", &json!({ "session": "s" }))["transition"], "resume", "{story}");
    assert!(inode() != before && !mark.exists(), "{story}: a second segment, in the place of the first");
    daemon.stop();
    true
}

#[test]
fn a_sync_that_failed_at_opening_is_final() {
    let torn: fn(&Path) = |segment| {
        let bytes = std::fs::read(segment).expect("a segment");
        std::fs::write(segment, [&bytes[..], &[9, 0, 0]].concat()).expect("a torn end");
    };
    for (prepare, story) in [(None, "what was replayed"), (Some(torn), "a torn end")] {
        if !fails_once_at_opening(prepare, story) {
            return;
        }
    }
}
