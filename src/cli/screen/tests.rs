//! The screen as text, at several sizes; what keys do; and that nothing a daemon tells can break it.

use super::draw::{Look, draw};
use super::facts::{Away, Health, Line, Row, Rows, Session};
use super::model::{Deed, Model, Pane};
use crate::cli::paint::{Paint, Tone};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;
use serde_json::json;

/// 2026-11-29T10:07:12Z.
const NOW: i64 = 1_795_946_832_000_000;

fn session(name: &str, rows: u64, stale: u64, unknown: u64) -> Session {
    let (name, agent, root) = (name.to_owned(), "claude-code".to_owned(), "/home/alice/app".to_owned());
    Session { name, rows, stale, unknown, agent, root }
}

fn row(source: &str, cause: &str) -> Row {
    Row {
        state: ("stale", Tone::Bad),
        source: source.to_owned(),
        cause: cause.to_owned(),
        change: "blake3:3f2a9c01… → blake3:91bc22d0…".to_owned(),
        since: Some("2026-11-29T10:05:01.200000Z".to_owned()),
    }
}

fn line(at: &str, session: &str, transition: Option<&str>, said: &str) -> Line {
    let event = if transition.is_some() { String::new() } else { "epoch".to_owned() };
    Line {
        at: format!("2026-11-{at}.000000Z"),
        session: session.to_owned(),
        transition: transition.map(str::to_owned),
        event,
        said: said.to_owned(),
    }
}

/// Three sessions, one of which lost two rows.
fn scene() -> Model {
    let mut model = Model::new(Some("s-01".to_owned()));
    model.now = NOW;
    model.health = Health::of(
        &json!({ "health": "ok", "sessions": 3, "sources": 41, "suspects": 0, "gaps": 0, "uptime_s": 7_300 }),
    );
    model.list(vec![session("s-01", 15, 2, 0), session("s-02", 4, 0, 0), session("review", 22, 1, 3)]);
    let doubtful = vec![row("src/auth/token.rs", "content"), row("tests/auth.rs", "deleted")];
    model.show(Rows { session: "s-01".to_owned(), number: Some(15), doubtful });
    let lines = vec![
        line("28T23:59:00", "", None, "the daemon started"),
        line(
            "29T10:02:02",
            "s-01",
            Some("resume"),
            "All 15 results and invariants are what the session saw.",
        ),
        line(
            "29T10:06:30",
            "s-01",
            Some("fresh"),
            "src/auth/token.rs changed since it was read; 2 of 15 are stale.",
        ),
    ];
    model.log(lines, true);
    model
}

fn drawn(model: &mut Model, width: u16, height: u16, paint: bool) -> Buffer {
    model.area = Rect::new(0, 0, width, height);
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, model, Look::new(Paint::of_test(paint)))).unwrap();
    terminal.backend().buffer().clone()
}

fn text(model: &mut Model, width: u16, height: u16) -> String {
    let buffer = drawn(model, width, height, false);
    let rows = buffer.content.chunks(usize::from(width).max(1));
    let rows = rows
        .map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect::<String>().trim_end().to_owned());
    rows.collect::<Vec<_>>().join("\n")
}

#[test]
fn all_of_it_is_seen_on_a_usual_screen() {
    let seen = "\
staled  ok  3 sessions  41 sources  0 gaps  up 2 h
▌SESSIONS  and what was decided last ───────────────────────────────────────────────────────────────
› s-01    2 stale             fresh  42 s ago  of 15 rows  claude-code  /home/alice/app
  s-02    0 stale             –                of 4 rows   claude-code  /home/alice/app
  review  1 stale  3 unknown  –                of 22 rows  claude-code  /home/alice/app

 STALE  s-01 ───────────────────────────────────────────────────────────────────────────────────────
  stale  src/auth/token.rs  content  blake3:3f2a9c01… → blake3:91bc22d0…  2 min ago
  stale  tests/auth.rs      deleted  blake3:3f2a9c01… → blake3:91bc22d0…  2 min ago

 DECISIONS  newest first, UTC ──────────────────────────────────────────────────────────────────────
  10:06:30     fresh   s-01  src/auth/token.rs changed since it was read; 2 of 15 are stale.
  10:02:02     resume  s-01  All 15 results and invariants are what the session saw.
  11-28 23:59  epoch         the daemon started






 q quit  ? keys";
    assert_eq!(text(&mut scene(), 100, 21), seen);
}

#[test]
fn a_narrow_screen_leaves_out_what_matters_least_and_says_what_it_cut() {
    let seen = "\
staled  ok  3 sessions  41 sources  0 gaps  up 2 h
▌SESSIONS  and what was decided last ────────────── 1-2 of 3
› s-01  2 stale  fresh  42 s ago  of 15 rows  claude-code
  s-02  0 stale  –                of 4 rows   claude-code
 STALE  s-01 ───────────────────────────────────────────────
  stale  src/auth/token.rs  content  2 min ago
  stale  tests/auth.rs      deleted  2 min ago
 DECISIONS  newest first, UTC ──────────────────────────────
  10:06:30     fresh   s-01  src/auth/token.rs changed sinc…
  10:02:02     resume  s-01  All 15 results and invariants …
  11-28 23:59  epoch         the daemon started
 q quit  ? keys";
    assert_eq!(text(&mut scene(), 60, 12), seen);
}

#[test]
fn a_low_screen_shows_the_pane_that_keys_go_to() {
    let mut model = scene();
    model.list(vec![session("s-01", 15, 2, 0), session("review", 22, 0, 3)]);
    let seen = "\
staled  ok  3 sessi…
▌SESSIONS  and wh… ─
› s-01    2 stale
  review  3 unknown



 q quit  ? keys";
    assert_eq!(text(&mut model, 20, 8), seen);
    model.press(Deed::NextPane);
    assert!(
        text(&mut model, 20, 8).contains("▌STALE  s-01 ───────\n  stale  …h/token.rs\n"),
        "{}",
        text(&mut model, 20, 8)
    );
    model.press(Deed::NextPane);
    assert!(text(&mut model, 20, 8).contains("▌DECISIONS"));
    model.press(Deed::LastPane);
    assert!(text(&mut model, 20, 8).contains("▌STALE"));
}

#[test]
fn problems_and_a_daemon_that_is_away_are_said_on_top() {
    let mut model = scene();
    model.health.word = "degraded".to_owned();
    model.health.problems = vec!["the watcher does not answer".to_owned(), "the disk is full".to_owned()];
    let seen = text(&mut model, 60, 16);
    assert!(
        seen.starts_with("staled  degraded  3 sessions")
            && seen.contains("\n2 problems  the watcher does not answer\n"),
        "{seen}"
    );
    let reds = |buffer: &Buffer| buffer.content.iter().filter(|cell| cell.fg == Color::Red).count();
    assert!(reds(&drawn(&mut model, 60, 16, true)) >= "degraded2 problems".len());
    // What was known before must not look as if it were known.
    model.away = Some(Away { gone: true, why: "no daemon answers at /run/\u{1b}x".to_owned() });
    let seen = text(&mut model, 100, 16);
    assert!(
        seen.starts_with(
            "staled  away  no daemon answers at /run/\\u{1b}x; what stands below was so before\n"
        ),
        "{seen}"
    );
    let below = |buffer: &Buffer| buffer.content[100..].iter().any(|cell| cell.fg != Color::Reset);
    assert!(!below(&drawn(&mut model, 100, 16, true)));
    model.away = None;
    assert!(below(&drawn(&mut model, 100, 16, true)));
}

#[test]
fn without_colour_all_of_it_is_said() {
    let (mut plain, mut painted) = (scene(), scene());
    let (plain, painted) = (drawn(&mut plain, 100, 21, false), drawn(&mut painted, 100, 21, true));
    assert!(plain.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    assert!(painted.content.iter().any(|cell| cell.fg == Color::Red));
    let symbols =
        |buffer: &Buffer| buffer.content.iter().map(|cell| cell.symbol().to_owned()).collect::<Vec<_>>();
    assert_eq!(symbols(&plain), symbols(&painted));
}

#[test]
fn the_keys_are_told_when_somebody_asks() {
    let mut model = scene();
    assert!(!text(&mut model, 60, 16).contains("PgDn"));
    model.press(Deed::Help);
    let seen = text(&mut model, 50, 16);
    assert!(seen.ends_with("\n q quit  ↑↓ j k session  Tab pane\n PgUp PgDn scroll  ? fewer keys"), "{seen}");
    model.press(Deed::Help);
    assert!(text(&mut model, 60, 16).ends_with("\n q quit  ? keys"));
    assert!(!model.press(Deed::Quit));
}

#[test]
fn another_session_is_selected_and_its_rows_are_waited_for() {
    let mut model = scene();
    text(&mut model, 100, 21);
    model.press(Deed::Up);
    assert_eq!(model.selected.as_deref(), Some("s-01"));
    model.press(Deed::Down);
    assert_eq!(model.selected.as_deref(), Some("s-02"));
    // Until they are told, nothing is: not the rows of another session, and not that all is well.
    let seen = text(&mut model, 100, 21);
    assert!(
        seen.contains("› s-02")
            && !seen.contains("token.rs  content")
            && !seen.contains("what the session saw\n"),
        "{seen}"
    );
    model.show(Rows { session: "s-01".to_owned(), number: Some(15), doubtful: vec![row("late", "content")] });
    assert!(!text(&mut model, 100, 21).contains("late"), "it was asked for before");
    model.show(Rows { session: "s-02".to_owned(), number: Some(4), doubtful: Vec::new() });
    assert!(text(&mut model, 100, 21).contains(" STALE  s-02 ─"));
    assert!(text(&mut model, 100, 21).contains("\n  all 4 rows are what the session saw\n"));
    (0..9).for_each(|_| assert!(model.press(Deed::Down)));
    assert_eq!(model.selected.as_deref(), Some("review"));
}

#[test]
fn a_session_that_is_gone_is_not_selected_any_more() {
    let mut model = scene();
    model.press(Deed::Down);
    model.list(vec![session("s-01", 15, 2, 0), session("review", 22, 1, 3)]);
    assert_eq!(model.selected.as_deref(), Some("review"), "the one that took its place");
    model.list(vec![session("s-01", 15, 2, 0)]);
    assert_eq!(model.selected.as_deref(), Some("s-01"));
    model.list(Vec::new());
    assert_eq!(model.selected, None);
    assert!(text(&mut model, 100, 21).contains("no sessions are registered"));
    assert!(!text(&mut model, 100, 21).contains("token.rs  content"), "nobody's rows");
}

#[test]
fn a_long_log_is_scrolled_and_stays_where_somebody_reads() {
    let mut model = scene();
    model.log(
        (0..50)
            .map(|number| line("29T10:07:00", "s-01", Some("resume"), &format!("said {number}.")))
            .collect(),
        true,
    );
    model.press(Deed::LastPane);
    assert_eq!(model.pane, Pane::Decisions);
    let seen = text(&mut model, 100, 21);
    assert!(seen.contains("said 49.") && seen.contains(" 1-9 of 50"), "{seen}");
    model.press(Deed::PageDown);
    let seen = text(&mut model, 100, 21);
    assert!(
        seen.contains("said 40.") && !seen.contains("said 41.") && seen.contains(" 10-18 of 50"),
        "{seen}"
    );
    model.log(vec![line("29T10:07:01", "s-01", Some("fresh"), "new.")], false);
    let seen = text(&mut model, 100, 21);
    assert!(
        seen.contains("said 40.") && !seen.contains("said 41.") && seen.contains(" 11-19 of 51"),
        "{seen}"
    );
    // Beyond the end there is nothing, and one page up is one page up.
    (0..20).for_each(|_| assert!(model.press(Deed::PageDown)));
    assert!(text(&mut model, 100, 21).contains("said 0."));
    model.press(Deed::PageUp);
    assert!(!text(&mut model, 100, 21).contains("said 8."));
    (0..20).for_each(|_| assert!(model.press(Deed::PageUp)));
    assert!(text(&mut model, 100, 21).contains("new."));
    // Of another log it is all there is.
    model.log(vec![line("29T10:07:02", "s-02", Some("fork"), "another.")], true);
    let seen = text(&mut model, 100, 21);
    assert!(seen.contains("another.") && !seen.contains("new."), "{seen}");
    assert!(
        seen.contains("› s-01    2 stale             –")
            && seen.contains("  s-02    0 stale             fork"),
        "{seen}"
    );
}

#[test]
fn ages_move_every_second_while_they_are_seconds() {
    let mut model = scene();
    assert_eq!(model.calm().as_secs(), 1);
    assert!(text(&mut model, 100, 21).contains("42 s ago"));
    model.now += 30_000_000;
    assert!(text(&mut model, 100, 21).contains("1 min ago"));
    assert_eq!(model.calm().as_secs(), 10);
}

#[test]
fn nothing_that_is_told_breaks_a_screen_of_any_size() {
    let hostile = "\u{1b}[2J\u{202e}a\n\t名前🧑\u{200d}🚀e\u{301}\u{0}".repeat(9);
    let mut model = scene();
    model.list(
        (0..30)
            .map(|number| Session {
                agent: hostile.clone(),
                root: hostile.clone(),
                ..session(&format!("{number}{hostile}"), 9, 1, 1)
            })
            .collect(),
    );
    let name = model.selected.clone().expect("the first");
    model.show(Rows {
        session: name.clone(),
        number: Some(9),
        doubtful: (0..30)
            .map(|_| row("x", "content"))
            .map(|row| Row { source: crate::cli::words::harmless(&hostile), ..row })
            .collect(),
    });
    model.log((0..30).map(|_| line("29T10:00:00", &hostile, Some("fresh"), "said")).collect(), false);
    model.log(vec![Line { at: hostile.clone(), ..Line::default() }], false);
    model.health.problems = vec!["p".repeat(300)];
    for away in [None, Some(Away { gone: true, why: hostile.clone() })] {
        model.away = away;
        let widths = (0..12).chain([20, 33, 47]);
        for (width, height) in
            widths.flat_map(|width| (0..26).step_by(2).chain([1, 7]).map(move |height| (width, height)))
        {
            for deed in [Deed::NextPane, Deed::PageDown, Deed::Down, Deed::Help] {
                model.press(deed);
                let buffer = drawn(&mut model, width, height, true);
                let odd = buffer
                    .content
                    .iter()
                    .find(|cell| crate::cli::words::harmless(cell.symbol()) != cell.symbol());
                assert!(
                    odd.is_none_or(|cell| cell.symbol().contains('\u{200d}')),
                    "{odd:?} at {width} x {height}"
                );
            }
        }
    }
}
