//! Our own opens, told to the marks so that they are not taken for somebody else's.
//!
//! Whatever becomes of a look, its open is ended: one that stayed open in the marks would keep them from noting whoever
//! comes later.

use super::cookie::Dividers;
use super::look::{Open, Opens};
use super::marks::Opening;
use super::watch::Board;
use crate::index::SourceId;
use std::path::Path;
use std::time::Duration;

/// How often a look waits for a divider, and how long each time.
const WAITS: u32 = 25;
const WAIT: Duration = Duration::from_micros(200);

/// Looks on behalf of one source, whose opens are heard by the watcher.
pub(super) struct Heard<'eyes> {
    pub(super) board: &'eyes Board,
    pub(super) dividers: &'eyes Dividers,
    pub(super) source: SourceId,
}

struct OurOpen<'opens> {
    heard: &'opens Heard<'opens>,
    path: &'opens Path,
    opening: Opening,
    divided: bool,
    clear: bool,
}

impl Opens for Heard<'_> {
    fn begin<'opens>(&'opens self, path: &'opens Path) -> Box<dyn Open + 'opens> {
        // The watcher is given a moment to hand dividers back. One that is dead does not, and holds no look up for long.
        for _ in 0..WAITS {
            if self.board.marks().has_divider() {
                break;
            }
            std::thread::sleep(WAIT);
        }
        let opening = self.board.marks().begin_opening(path);
        Box::new(OurOpen { heard: self, path, opening, divided: false, clear: false })
    }
}

impl Open for OurOpen<'_> {
    fn divide(&mut self) {
        let Some(divider) = self.opening.divider.filter(|_| !self.divided) else { return };
        self.divided = true;
        if self.heard.dividers.touch(divider).is_err() {
            // It will not come back. Ended here, our own open is noted, and asked about once more.
            self.heard.board.marks().divided(divider);
        }
    }

    fn clear(&mut self) {
        self.clear = true;
    }
}

impl Drop for OurOpen<'_> {
    fn drop(&mut self) {
        self.divide();
        self.heard.board.marks().end_opening(self.path, &self.opening, self.heard.source, self.clear);
    }
}
