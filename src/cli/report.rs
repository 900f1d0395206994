//! A report for people: what, why, on what evidence, and what to do now. Never more than one screen.

use super::paint::{Paint, Tone};
use super::table::{Cell, Table};
use super::words::{ago, change, end, head, list, now_micros, number, path, state, text, transition_tone};
use serde_json::Value;

const ROWS_MAX: usize = 5;
const ITEMS_MAX: usize = 3;
/// Where each branch is must be seen: as many as a session may have unless it is told otherwise.
const BRANCHES_MAX: usize = 16;
const PATH_CHARS_MAX: usize = 56;
const FACT_CHARS_MAX: usize = 100;

/// The whole report.
pub(super) fn lines(report: &Value, paint: Paint) -> Vec<String> {
    let mut lines = vec![headline(report, paint)];
    let rows = evidence(report);
    if !rows.is_empty() {
        lines.push(String::new());
        lines.extend(table(&rows, paint));
    }
    lines.push(String::new());
    lines.extend(sections(report, paint));
    lines
}

/// Transition and reason.
pub(super) fn headline(report: &Value, paint: Paint) -> String {
    let transition = text(report, "transition");
    format!("{}  {}", paint.of(transition_tone(&transition), &transition), text(&report["reason"], "text"))
}

/// Rows that are not fresh: those that decided first, in the order of the reason, then the others.
fn evidence(report: &Value) -> Vec<&Value> {
    let rows = || list(report, "staleness_results").iter().filter(|row| row["status"] != "fresh");
    let decisive = list(&report["reason"], "evidence");
    let mut found: Vec<&Value> =
        decisive.iter().filter_map(|id| rows().find(|row| row["result_id"] == *id)).collect();
    found.extend(rows().filter(|row| !decisive.contains(&row["result_id"])));
    found
}

fn table(rows: &[&Value], paint: Paint) -> Vec<String> {
    let now = now_micros();
    let mut table = Table::default();
    rows.iter().take(ROWS_MAX).for_each(|row| table.push(cells(row, now)));
    let mut lines = table.lines(paint, 2);
    lines.extend(more(rows.len(), ROWS_MAX).map(|text| format!("  {text}")));
    lines
}

/// One row: state, id, source when it is another text, cause, was → now, since.
fn cells(row: &Value, now_micros: i64) -> Vec<Cell> {
    let (word, tone) = state(row);
    let (id, source) = (text(row, "result_id"), path(&row["source"]));
    let source = if source == id { String::new() } else { end(&source, PATH_CHARS_MAX) };
    let since = row["since"].as_str().map(|since| ago(since, now_micros)).unwrap_or_default();
    vec![
        Cell::new(tone, word),
        Cell::new(Tone::Strong, end(&id, PATH_CHARS_MAX)),
        Cell::plain(source),
        Cell::plain(text(row, "cause")),
        Cell::plain(change(row)),
        Cell::new(Tone::Faint, since),
    ]
}

fn sections(report: &Value, paint: Paint) -> Vec<String> {
    let summary = &report["typed_summary"];
    let paths = |field: &Value| -> Vec<String> {
        field.as_array().into_iter().flatten().map(|value| end(&path(value), PATH_CHARS_MAX)).collect()
    };
    let one = |text: String| if text.is_empty() { Vec::new() } else { vec![text] };
    let goal = text(&report["context"], "goal");
    let dropped = if summary.is_null() { &report["drop"] } else { &summary["stale_dropped"] };
    let told = |from_memory: bool| {
        let facts = list(summary, "verified_facts").iter();
        facts.filter(move |fact| (fact["from"] == "memory") == from_memory).map(fact).collect()
    };
    let sections = [
        ("goal", one(head(&goal, FACT_CHARS_MAX))),
        ("still true", told(false)),
        ("remembered", told(true)),
        ("dropped", paths(dropped)),
        ("read again", paths(&summary["reload"])),
        ("branches", list(report, "forks").iter().map(branch).collect()),
        ("decision", one(text(report, "decision"))),
        ("replaces", one(text(report, "supersedes"))),
        ("receipt", one(receipt(report))),
    ];
    let max = |name| if name == "branches" { BRANCHES_MAX } else { ITEMS_MAX };
    sections.into_iter().flat_map(|(name, items)| section(name, &items, max(name), paint)).collect()
}

/// A name, and beside it one item a line.
fn section(name: &str, items: &[String], max: usize, paint: Paint) -> Vec<String> {
    let names = std::iter::once(name).chain(std::iter::repeat(""));
    let shown = items.iter().take(max).cloned().chain(more(items.len(), max));
    names
        .zip(shown)
        .map(|(name, item)| format!("  {}  {item}", paint.of(Tone::Faint, &format!("{name:<10}"))))
        .collect()
}

fn fact(fact: &Value) -> String {
    let (statement, evidence) =
        (head(&text(fact, "statement"), FACT_CHARS_MAX), head(&text(fact, "evidence"), 40));
    if evidence.is_empty() { statement } else { format!("{statement} ({evidence})") }
}

fn branch(fork: &Value) -> String {
    format!("{}  in {}", text(fork, "branch"), path(&fork["workspace"]))
}

/// Where the decision stands in the log: in the answer's receipt, or on the line itself.
fn receipt(report: &Value) -> String {
    let place = if report["receipt"].is_null() { report } else { &report["receipt"] };
    match place["hash"].as_str() {
        Some(_) => format!("{}:{}", number(place, "seq"), text(place, "hash")),
        None => String::new(),
    }
}

fn more(len: usize, max: usize) -> Option<String> {
    (len > max).then(|| format!("… and {} more (--json shows all)", len - max))
}
