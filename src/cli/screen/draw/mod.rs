//! The model on a screen of any size: what it shows is a function of the model alone.

mod grid;
mod lists;
pub(super) mod places;

use super::model::{Model, Pane};
use crate::cli::paint::{Paint, Tone};
use crate::cli::words::{counted, harmless};
use grid::{Keep, cut, lines, width};
use places::places;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};

const KEYS: [(&str, &str); 5] =
    [("q", "quit"), ("↑↓ j k", "session"), ("Tab", "pane"), ("PgUp PgDn", "scroll"), ("?", "fewer keys")];

/// How tones look.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    paint: Paint,
    /// What is shown may no longer be so, and must not look as if it were.
    faded: bool,
}

impl Look {
    pub(super) fn new(paint: Paint) -> Self {
        Self { paint, faded: false }
    }

    /// Nothing is said by colour alone, so without it all is there.
    fn of(self, tone: Tone) -> Style {
        let tone = if self.faded { Tone::Faint } else { tone };
        let colour = |colour: Color| {
            if self.paint.is_on() { Style::new().fg(colour) } else { Style::new() }
        };
        match tone {
            Tone::Plain => Style::new(),
            Tone::Good => colour(Color::Green),
            Tone::Bad => colour(Color::Red),
            Tone::Doubt => colour(Color::Yellow),
            Tone::Apart => colour(Color::Cyan),
            Tone::Strong => Style::new().add_modifier(Modifier::BOLD),
            Tone::Faint => Style::new().add_modifier(Modifier::DIM),
        }
    }
}

pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, look: Look) {
    let area = frame.area();
    let places = places(area, model);
    write(frame, places.top, top(model, places.top, look));
    let faded = Look { faded: model.away.is_some(), ..look };
    for (pane, place) in Pane::ALL.into_iter().zip(places.panes) {
        let mut text = vec![title(pane, model, place, look)];
        text.extend(content(pane, model, place, faded));
        write(frame, place, text);
    }
    let keys = keys_lines(model.help, area.width).into_iter();
    write(frame, places.keys, keys.map(|line| Line::styled(line, look.of(Tone::Faint))).collect());
}

fn write(frame: &mut Frame<'_>, place: Rect, mut lines: Vec<Line<'static>>) {
    lines.truncate(usize::from(place.height));
    frame.render_widget(Text::from(lines), place);
}

/// How the daemon is, in a line; its first problem in another.
fn top(model: &Model, place: Rect, look: Look) -> Vec<Line<'static>> {
    let health = &model.health;
    let (tone, word) = match (&model.away, health.word.as_str()) {
        (Some(away), _) => (Tone::Bad, if away.gone { "away" } else { "trouble" }),
        (None, "") => (Tone::Faint, "…"),
        (None, "ok") => (Tone::Good, "ok"),
        (None, word) => (Tone::Bad, word),
    };
    let said = match &model.away {
        Some(away) => format!("{}; what stands below was so before", harmless(&away.why)),
        None => health.facts.join("  "),
    };
    let mut spans =
        vec![Span::styled("staled  ", look.of(Tone::Strong)), Span::styled(word.to_owned(), look.of(tone))];
    let room = usize::from(place.width).saturating_sub(width(word) + 10);
    let said_tone = if model.away.is_some() { Tone::Bad } else { Tone::Faint };
    spans.push(Span::raw("  "));
    spans.push(Span::styled(cut(&said, room, Keep::Head), look.of(said_tone)));
    let problem = health.problems.first().map(|problem| {
        let text = format!("{}  {problem}", counted(health.problems.len() as u64, "problem"));
        Line::styled(cut(&text, usize::from(place.width), Keep::Head), look.of(Tone::Bad))
    });
    std::iter::once(Line::from(spans)).chain(problem).collect()
}

/// A name and a rule; the pane that keys go to is marked.
fn title(pane: Pane, model: &Model, place: Rect, look: Look) -> Line<'static> {
    let (name, said) = match pane {
        Pane::Sessions => ("SESSIONS", "and what was decided last".to_owned()),
        Pane::Rows => ("STALE", model.selected.as_deref().map(harmless).unwrap_or_default()),
        Pane::Decisions => ("DECISIONS", "newest first, UTC".to_owned()),
    };
    let here = model.pane == pane;
    let (mark, tone) = if here { ("▌", Tone::Strong) } else { (" ", Tone::Faint) };
    let room = usize::from(place.width);
    let height = usize::from(place.height.saturating_sub(1));
    let (first, len) = (model.first(pane, height), model.len(pane));
    let sight = if len > height && height > 0 {
        format!(" {}-{} of {len}", first + 1, first + height)
    } else {
        String::new()
    };
    let head = cut(&format!("{mark}{name}"), room, Keep::Head);
    let said = if said.is_empty() { said } else { format!("  {said}") };
    let said = cut(&said, room.saturating_sub(width(&head) + width(&sight) + 2), Keep::Head);
    let rule = room.saturating_sub(width(&head) + width(&said) + width(&sight) + 1);
    Line::from(vec![
        Span::styled(head, look.of(tone)),
        Span::raw(said),
        Span::styled(format!(" {}{sight}", "─".repeat(rule)), look.of(Tone::Faint)),
    ])
}

fn content(pane: Pane, model: &Model, place: Rect, look: Look) -> Vec<Line<'static>> {
    let height = usize::from(place.height.saturating_sub(1));
    let room = usize::from(place.width);
    let first = model.first(pane, height);
    let shown = match pane {
        Pane::Sessions => lists::sessions(model, model.sessions.iter().skip(first).take(height)),
        Pane::Rows => lists::rows(model, model.rows.doubtful.iter().skip(first).take(height)),
        Pane::Decisions => lists::decisions(model, model.lines.iter().skip(first).take(height)),
    };
    let lines = lines(shown, room, look);
    if lines.is_empty() { nothing(pane, model, room, look) } else { lines }
}

/// What stands where there is nothing to list.
fn nothing(pane: Pane, model: &Model, room: usize, look: Look) -> Vec<Line<'static>> {
    let (tone, text) = match (pane, model.rows.number) {
        _ if model.health.word.is_empty() => (Tone::Faint, String::new()),
        (Pane::Sessions, _) => {
            (Tone::Faint, "no sessions are registered; `staled register FILE` adds one".to_owned())
        }
        (Pane::Rows, None) => (Tone::Faint, String::new()),
        (Pane::Rows, Some(1)) => (Tone::Good, "its one row is what the session saw".to_owned()),
        (Pane::Rows, Some(number)) => (Tone::Good, format!("all {number} rows are what the session saw")),
        (Pane::Decisions, _) => (Tone::Faint, "nothing was decided yet".to_owned()),
    };
    vec![Line::styled(cut(&format!("  {text}"), room, Keep::Head), look.of(tone))]
}

/// The keys; all of them in as many lines as they take, or where to find them.
fn keys_lines(all: bool, room: u16) -> Vec<String> {
    if !all {
        return vec![cut(" q quit  ? keys", usize::from(room), Keep::Head)];
    }
    let mut lines = vec![String::new()];
    for (key, does) in KEYS {
        let told = format!(" {key} {does} ");
        match lines.last_mut() {
            Some(line) if width(line) + width(&told) <= usize::from(room) || line.is_empty() => {
                line.push_str(&told);
            }
            _ => lines.push(told),
        }
    }
    lines.iter().map(|line| cut(line, usize::from(room), Keep::Head)).collect()
}
