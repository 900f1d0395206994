//! `status`: what is known about one session, row by row; without one, the health of the daemon. With `--watch` it goes
//! on: as a full screen ([`super::screen`]) where there is one, otherwise as a stream ([`super::watch`]).

use super::paint::Tone;
use super::shell::{Done, Shell, Stop};
use super::table::{Cell, Table};
use super::words::{ago, change, counted, end, list, now_micros, number, path, span, state, text};
use crate::protocol::request::Status;
use serde_json::Value;

/// Rows shown on a terminal.
const ROWS_MAX: usize = 18;
const PATH_CHARS_MAX: usize = 56;

/// Show what is known about a session, or how the daemon is
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  staled status
  staled status s-01
  staled status --watch
  staled status s-01 --watch
  staled status s-01 --json | jq '.rows[] | select(.status == \"stale\")'")]
pub(super) struct Args {
    /// The session; without it, the daemon's health
    session: Option<String>,
    /// Go on, and show every change as it happens; on a terminal as a full screen, whose keys `?` shows
    #[arg(short, long)]
    watch: bool,
}

pub(super) fn run(args: &Args, shell: &mut Shell) -> Done {
    if args.watch && super::screen::fits(shell) {
        return super::screen::watch(args.session.as_deref(), shell);
    }
    if args.watch {
        return super::watch::watch(args.session.as_deref(), shell);
    }
    let answer = shell.ask("status", &Status { session: args.session.clone(), ..Status::default() })?;
    if !answer.printed {
        print(&answer.value, args.session.is_some(), shell)?;
    }
    Ok(0)
}

/// A status for people.
pub(super) fn print(answer: &Value, of_session: bool, shell: &mut Shell) -> Result<(), Stop> {
    if of_session { print_session(answer, shell) } else { print_health(answer, shell) }
}

fn print_session(answer: &Value, shell: &mut Shell) -> Result<(), Stop> {
    let (counts, paint) = (&answer["counts"], shell.out.paint);
    let whose = [text(answer, "user"), text(answer, "agent"), path(&answer["root"])];
    let whose: Vec<String> = whose.into_iter().filter(|part| !part.is_empty()).collect();
    shell.out.line(format!("{}  {}", paint.of(Tone::Strong, &text(answer, "session")), whose.join("  ")))?;
    let [fresh, stale, unknown] = ["fresh", "stale", "unknown"].map(|field| number(counts, field));
    let total = counted(number(counts, "results"), "row");
    shell.out.line(format!("{total}: {fresh} fresh, {stale} stale, {unknown} unknown"))?;
    shell.out.line("")?;
    let shown = if shell.out.on_terminal { ROWS_MAX } else { usize::MAX };
    let rows = doubtful_first(list(answer, "rows"));
    shell.out.lines(table(&rows, shown).lines(paint, 2))?;
    if rows.len() > shown {
        shell.out.line(format!("  … and {} more (--json shows all)", rows.len() - shown))?;
    }
    Ok(())
}

fn doubtful_first(rows: &[Value]) -> Vec<&Value> {
    let (fresh, doubtful): (Vec<&Value>, Vec<&Value>) = rows.iter().partition(|row| row["status"] == "fresh");
    [doubtful, fresh].concat()
}

fn table(rows: &[&Value], shown: usize) -> Table {
    let now = now_micros();
    let mut table = Table::with_heading(&["STATE", "ID", "SOURCE", "CAUSE", "SEEN → NOW", "SINCE"]);
    rows.iter().take(shown).for_each(|row| table.push(cells(row, now)));
    table
}

/// One row of a status.
pub(super) fn cells(row: &Value, now_micros: i64) -> Vec<Cell> {
    let (word, tone) = state(row);
    let remark = if row["critical"] == false { "not critical" } else { "" };
    let cause = [text(row, "cause"), remark.to_owned()];
    let cause: Vec<String> = cause.into_iter().filter(|part| !part.is_empty()).collect();
    vec![
        Cell::new(tone, word),
        Cell::plain(end(&text(row, "result_id"), PATH_CHARS_MAX)),
        Cell::plain(end(&path(&row["source"]), PATH_CHARS_MAX)),
        Cell::plain(cause.join(", ")),
        Cell::plain(change(row)),
        Cell::new(Tone::Faint, row["since"].as_str().map(|since| ago(since, now_micros)).unwrap_or_default()),
    ]
}

fn print_health(answer: &Value, shell: &mut Shell) -> Result<(), Stop> {
    let paint = shell.out.paint;
    let health = text(answer, "health");
    let tone = if health == "ok" { Tone::Good } else { Tone::Bad };
    let about = format!(
        "staled {}, pid {}, up {}",
        text(answer, "version"),
        number(answer, "pid"),
        span(number(answer, "uptime_s"))
    );
    shell.out.line(format!("{}  {about}", paint.of(tone, &health)))?;
    let mut table = Table::default();
    for (name, value) in facts(answer) {
        table.push(vec![Cell::new(Tone::Faint, name), Cell::plain(value)]);
    }
    shell.out.lines(table.lines(paint, 2))?;
    let problems = list(answer, "problems").iter().filter_map(Value::as_str);
    let problems: Vec<String> = problems
        .map(|problem| format!("  {}  {}", paint.of(Tone::Bad, "problem"), super::words::harmless(problem)))
        .collect();
    shell.out.lines(problems)
}

fn facts(answer: &Value) -> [(&'static str, String); 10] {
    // Without a store there is none of these.
    let known =
        |field: &str| answer[field].as_u64().map_or("not known".to_owned(), |count| count.to_string());
    let verifying = match answer["suspects"].as_u64() {
        None => String::new(),
        Some(0) => ", all verified".to_owned(),
        Some(suspects) => format!(", {suspects} being verified"),
    };
    let gaps = match answer["last_gap"].as_str() {
        Some(why) => format!("{}, the last because {}", known("gaps"), super::words::harmless(why)),
        None => known("gaps"),
    };
    let compacted = match (answer["compactions"].as_u64(), &answer["compacting"]) {
        (None, _) => String::new(),
        (_, Value::Bool(true)) => ", being compacted".to_owned(),
        (Some(times), _) => format!(", compacted {}", super::words::counted(times, "time")),
    };
    let journal = answer["journal_bytes"].as_u64();
    let journal = journal.map_or("not known".to_owned(), |bytes| super::words::counted(bytes, "byte"));
    let anchored = match number(answer, "anchors_lost") {
        0 => text(answer, "anchored_in"),
        lost => format!("{}, {lost} anchors lost", text(answer, "anchored_in")),
    };
    [
        ("sessions", known("sessions")),
        ("sources", format!("{}{verifying}", known("sources"))),
        ("watches", known("watches")),
        ("memory", memory(&answer["memory"])),
        ("events", known("events")),
        ("gaps", gaps),
        ("journal", format!("{journal}{compacted}")),
        ("log sync", text(answer, "log_sync")),
        ("anchored in", anchored),
        ("state", path(&answer["state"])),
    ]
}

fn memory(held: &Value) -> String {
    if held.is_null() {
        return "not known".to_owned();
    }
    let [observations, users] = [("observations", "observation"), ("users", "user")]
        .map(|(field, thing)| super::words::counted(number(held, field), thing));
    format!("{observations} of {users}")
}
