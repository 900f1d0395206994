//! Where things stand: a line on top, the panes, and the keys. Pure.
//!
//! A low screen has room for one pane, the one that keys go to.

use super::super::model::{Model, Pane};
use super::keys_lines;
use ratatui::layout::Rect;

/// Below this three panes have nothing to say each.
const THREE_MIN: u16 = 9;
/// From here on panes stand apart.
const APART_MIN: u16 = 18;

/// Rectangles that do not overlap; one of no height is not shown.
pub(in super::super) struct Places {
    pub(super) top: Rect,
    /// In the order of [`Pane::ALL`], each with its title.
    pub(in super::super) panes: [Rect; 3],
    pub(super) keys: Rect,
}

pub(in super::super) fn places(area: Rect, model: &Model) -> Places {
    let slice = |from: u16, height: u16| {
        let from = from.min(area.height);
        Rect { x: area.x, y: area.y + from, width: area.width, height: height.min(area.height - from) }
    };
    let problems = u16::from(!model.health.problems.is_empty() && model.away.is_none() && area.height >= 8);
    let keys = u16::try_from(keys_lines(model.help, area.width).len()).unwrap_or(1).min(area.height / 2);
    let top = 1 + problems;
    let room = area.height.saturating_sub(top + keys);
    let mut heights = [0; 3];
    let apart = u16::from(room >= APART_MIN);
    if room < THREE_MIN {
        heights[model.pane as usize] = room;
    } else {
        heights = shared(room - 2 * apart, model);
    }
    let mut from = top;
    let panes = heights.map(|height| {
        let place = slice(from, height);
        from += height + if height > 0 { apart } else { 0 };
        place
    });
    Places { top: slice(0, top), panes, keys: slice(area.height.saturating_sub(keys), keys) }
}

/// As much as each has to say, and no more than a third for the sessions, and half of the rest for the rows.
fn shared(room: u16, model: &Model) -> [u16; 3] {
    let wanted = |pane: Pane| u16::try_from(model.len(pane).max(1)).unwrap_or(u16::MAX).saturating_add(1);
    let sessions = wanted(Pane::Sessions).min(room / 3);
    let rest = room - sessions;
    let rows = wanted(Pane::Rows).min((rest / 2).max(rest.saturating_sub(wanted(Pane::Decisions))));
    [sessions, rows, rest - rows]
}
