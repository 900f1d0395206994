//! What each pane lists, in columns: what must be seen is never left out, however narrow the screen.

use super::grid::{Column, Keep};
use crate::cli::paint::Tone;
use crate::cli::screen::facts::{Line, Row, Session};
use crate::cli::screen::model::Model;
use crate::cli::words::{ago, counted, harmless, to_the_second, transition_tone};
use crate::protocol::time;
use crate::session::moment::Moment;

/// Name, what is doubtful, of how many, what was decided last and when, whose it is.
pub(super) fn sessions<'shown>(model: &Model, shown: impl Iterator<Item = &'shown Session>) -> Vec<Column> {
    let mut columns = vec![
        Column::new(Keep::Head, 8, 0),
        Column::new(Keep::Head, 10, 0),
        Column::new(Keep::Head, 13, 2),
        Column::new(Keep::Head, 6, 1),
        Column::new(Keep::Head, 12, 3),
        Column::new(Keep::Head, 12, 4),
        Column::new(Keep::Head, 12, 5),
        Column::new(Keep::End, 12, 6),
    ];
    for session in shown {
        let here = Some(&session.name) == model.selected.as_ref();
        let (mark, tone) = if here { ("›", Tone::Strong) } else { (" ", Tone::Plain) };
        let last = model.last.get(&session.name);
        let (word, word_tone) =
            last.map_or(("–", Tone::Faint), |last| (&*last.word, transition_tone(&last.word)));
        let [(doubt, doubt_tone), more] = doubtful(session);
        columns[0].push(tone, format!("{mark} {}", harmless(&session.name)));
        columns[1].push(doubt_tone, doubt);
        columns[2].push(more.1, more.0);
        columns[3].push(word_tone, word);
        columns[4].push(Tone::Faint, last.map(|last| ago(&last.at, model.now)).unwrap_or_default());
        columns[5].push(Tone::Faint, format!("of {}", counted(session.rows, "row")));
        columns[6].push(Tone::Faint, &*session.agent);
        columns[7].push(Tone::Faint, &*session.root);
    }
    columns
}

/// What is stale, and what is unknown beside it. Where nothing is stale, what is unknown takes its place, so that on a
/// narrow screen no session in doubt looks like one without. (`fresh` is not said here: beside it stands a transition.)
fn doubtful(session: &Session) -> [(String, Tone); 2] {
    let none = (String::new(), Tone::Plain);
    let stale = (format!("{} stale", session.stale), Tone::Bad);
    let unknown = (format!("{} unknown", session.unknown), Tone::Doubt);
    match (session.stale, session.unknown) {
        (0, 0) => [("0 stale".to_owned(), Tone::Faint), none],
        (0, _) => [unknown, none],
        (_, 0) => [stale, none],
        _ => [stale, unknown],
    }
}

/// State, source, cause, old and new, since when.
pub(super) fn rows<'shown>(model: &Model, shown: impl Iterator<Item = &'shown Row>) -> Vec<Column> {
    let mut columns = vec![
        Column::new(Keep::Head, 9, 0),
        Column::new(Keep::End, 24, 0),
        Column::new(Keep::Head, 8, 2),
        Column::new(Keep::Head, 16, 3),
        Column::new(Keep::Head, 12, 1),
    ];
    for row in shown {
        let since = row.since.as_deref().map(|since| ago(since, model.now)).unwrap_or_default();
        columns[0].push(row.state.1, format!("  {}", row.state.0));
        columns[1].push(Tone::Plain, &*row.source);
        columns[2].push(Tone::Plain, &*row.cause);
        columns[3].push(Tone::Faint, &*row.change);
        columns[4].push(Tone::Faint, since);
    }
    columns
}

/// When, what, for which session, and why.
pub(super) fn decisions<'shown>(model: &Model, shown: impl Iterator<Item = &'shown Line>) -> Vec<Column> {
    let mut columns = vec![
        Column::new(Keep::Head, 10, 2),
        Column::new(Keep::Head, 6, 0),
        Column::new(Keep::Head, 8, 1),
        Column::new(Keep::Head, 10, 3),
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

/// The time of a moment today, otherwise its day and as much of its time as helps.
fn clock(at: &str, today: &str) -> String {
    let read = to_the_second(at);
    match (read.trim_end_matches('Z').split_once('T'), today.split_once('T')) {
        (Some((day, time)), Some((now, _))) if day == now => time.to_owned(),
        (Some((day, time)), _) => match (day.get(5..), time.get(..5)) {
            (Some(date), Some(time)) if day.get(..5) == today.get(..5) => format!("{date} {time}"),
            _ => day.to_owned(),
        },
        (None, _) => read,
    }
}
