//! The model on a screen of any size: what it shows is a function of the model alone.

mod grid;
pub(super) mod places;

use super::facts::{Line as Told, Row, Session};
use super::model::{Model, Pane};
use crate::cli::paint::{Paint, Tone};
use crate::cli::words::{ago, counted, harmless, to_the_second, transition_tone};
use crate::protocol::time;
use crate::session::moment::Moment;
use grid::{Column, Keep, cut, lines, width};
use places::places;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};

const KEYS: [(&str, &str); 6] = [
    ("q", "quit"),
    ("↑↓ j k", "session"),
    ("Tab", "pane"),
    ("PgUp PgDn", "scroll"),
    ("?", "fewer keys"),
    ("Ctrl-C", "quit too"),
];

/// How tones look.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    paint: Paint,
}

impl Look {
    pub(super) fn new(paint: Paint) -> Self {
        Self { paint }
    }

    /// Nothing is said by colour alone, so without it all is there.
    fn of(self, tone: Tone) -> Style {
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
    for (pane, place) in Pane::ALL.into_iter().zip(places.panes) {
        let mut text = vec![title(pane, model, place, look)];
        text.extend(content(pane, model, place, look));
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
        (Some(_), _) => (Tone::Bad, "away"),
        (None, "") => (Tone::Faint, "…"),
        (None, "ok") => (Tone::Good, "ok"),
        (None, word) => (Tone::Bad, word),
    };
    let said = match &model.away {
        Some(why) => harmless(why),
        None => health.facts.join("  "),
    };
    let mut spans =
        vec![Span::styled("staled  ", look.of(Tone::Strong)), Span::styled(word.to_owned(), look.of(tone))];
    let room = usize::from(place.width).saturating_sub(width(word) + 10);
    let said_tone = if model.away.is_some() { Tone::Bad } else { Tone::Faint };
    spans.push(Span::raw("  "));
    spans.push(Span::styled(cut(&said, room, Keep::Head), look.of(said_tone)));
    let more = match health.problems.len() {
        0 | 1 => String::new(),
        number => format!("{} more  ", number - 1),
    };
    let problem = health.problems.first().map(|problem| {
        let text = format!("problem  {more}{problem}");
        Line::styled(cut(&text, usize::from(place.width), Keep::Head), look.of(Tone::Bad))
    });
    std::iter::once(Line::from(spans)).chain(problem).collect()
}

/// A name and a rule; the pane that keys go to is marked.
fn title(pane: Pane, model: &Model, place: Rect, look: Look) -> Line<'static> {
    let (name, said) = match pane {
        Pane::Sessions => ("SESSIONS", String::new()),
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
        Pane::Sessions => sessions(model, model.sessions.iter().skip(first).take(height)),
        Pane::Rows => rows(model, model.rows.doubtful.iter().skip(first).take(height)),
        Pane::Decisions => decisions(model, model.lines.iter().skip(first).take(height)),
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

fn sessions<'shown>(model: &Model, shown: impl Iterator<Item = &'shown Session>) -> Vec<Column> {
    let mut columns = vec![
        Column::new(Keep::Head, 12, 0),
        Column::new(Keep::Head, 9, 0),
        Column::new(Keep::Head, 12, 2),
        Column::new(Keep::Head, 6, 1),
        Column::new(Keep::Head, 12, 3),
        Column::new(Keep::Head, 12, 5),
        Column::new(Keep::End, 12, 6),
    ];
    for session in shown {
        let here = Some(&session.name) == model.selected.as_ref();
        let (mark, tone) = if here { ("›", Tone::Strong) } else { (" ", Tone::Plain) };
        let bad = |count: u64, bad: Tone| if count > 0 { bad } else { Tone::Faint };
        let last = model.last.get(&session.name);
        let (word, word_tone) =
            last.map_or(("–", Tone::Faint), |last| (&last.word, transition_tone(&last.word)));
        columns[0].push(tone, format!("{mark} {}", harmless(&session.name)));
        let count = if session.stale > 0 || session.unknown == 0 {
            (bad(session.stale, Tone::Bad), format!("{} stale", session.stale))
        } else {
            (Tone::Doubt, format!("{} unknown", session.unknown))
        };
        columns[1].push(count.0, count.1);
        let unknown = if session.stale > 0 && session.unknown > 0 {
            format!("+ {} unknown", session.unknown)
        } else {
            String::new()
        };
        columns[2].push(Tone::Doubt, format!("{}{unknown}", counted_of(session.rows, &unknown)));
        columns[3].push(word_tone, word);
        columns[4].push(Tone::Faint, last.map(|last| ago(&last.at, model.now)).unwrap_or_default());
        columns[5].push(Tone::Faint, &*session.agent);
        columns[6].push(Tone::Faint, &*session.root);
    }
    columns
}

/// `of 12 rows`, where nothing else has to be said.
fn counted_of(rows: u64, instead: &str) -> String {
    if instead.is_empty() { format!("of {}", counted(rows, "row")) } else { String::new() }
}

fn rows<'shown>(model: &Model, shown: impl Iterator<Item = &'shown Row>) -> Vec<Column> {
    let mut columns = vec![
        Column::new(Keep::Head, 9, 0),
        Column::new(Keep::End, 8, 0),
        Column::new(Keep::Head, 8, 2),
        Column::new(Keep::Head, 12, 3),
        Column::new(Keep::Head, 12, 1),
    ];
    for row in shown {
        columns[0].push(row.state.1, format!("  {}", row.state.0));
        columns[1].push(Tone::Plain, &*row.source);
        columns[2].push(Tone::Plain, &*row.cause);
        columns[3].push(Tone::Faint, &*row.change);
        columns[4]
            .push(Tone::Faint, row.since.as_deref().map(|since| ago(since, model.now)).unwrap_or_default());
    }
    columns
}

fn decisions<'shown>(model: &Model, shown: impl Iterator<Item = &'shown Told>) -> Vec<Column> {
    let mut columns = vec![
        Column::new(Keep::Head, 10, 1),
        Column::new(Keep::Head, 6, 0),
        Column::new(Keep::Head, 8, 0),
        Column::new(Keep::Head, 10, 2),
    ];
    let today = to_the_second(&time::to_text(Moment { micros: model.now }));
    for line in shown {
        let (word, tone) = match &line.transition {
            Some(transition) => (transition, transition_tone(transition)),
            None => (&line.event, Tone::Faint),
        };
        columns[0].push(Tone::Faint, format!("  {}", clock(&line.at, &today)));
        columns[1].push(tone, &**word);
        columns[2].push(Tone::Plain, harmless(&line.session));
        columns[3].push(if line.transition.is_some() { Tone::Plain } else { Tone::Faint }, &*line.said);
    }
    columns
}

/// The time of a moment, and the day before it unless that is today.
fn clock(at: &str, today: &str) -> String {
    let read = to_the_second(at);
    match (read.trim_end_matches('Z').split_once('T'), today.split_once('T')) {
        (Some((day, time)), Some((now, _))) if day == now => time.to_owned(),
        (Some((day, time)), _) => format!("{day} {time}"),
        (None, _) => read,
    }
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
                line.push_str(&told)
            }
            _ => lines.push(told),
        }
    }
    lines.iter().map(|line| cut(line, usize::from(room), Keep::Head)).collect()
}
