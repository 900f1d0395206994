//! What the decision rests on: files in their folders, and what is no file beside them.

use super::section;
use super::tree::{Folder, Tally};
use super::verdict::{before, class};
use crate::cli::html::Markup;
use crate::cli::words::{change, counted, list, number, path, state, text};
use crate::decision::reason::short;
use serde_json::Value;

/// Rows on the page. A browser that is given many more is slow to answer.
const ROWS_MAX: usize = 5_000;
/// Marks a row whose claim is the weaker one.
const WEAK: &str = "°";

pub(super) fn sources(decision: &Value, page: &mut Markup) {
    let rows = list(decision, "staleness_results");
    let counts = &decision["counts"];
    section("sources", "Sources", page, |page| {
        bar(counts, page);
        let (files, others) = parted(rows);
        let folder = Folder::of(files);
        page.with("div", &[("class", "tree")], |page| inside(&folder, decision, page));
        group("Commands, HEAD and what cannot be watched", &others, decision, page);
        if rows.iter().any(is_weak) {
            page.say(
                "p",
                "note faint",
                &format!("{WEAK} as it was on disk when it was registered, not as the agent saw it"),
            );
        }
        let left_out = number(counts, "results").saturating_sub(rows.len().min(ROWS_MAX) as u64);
        if left_out > 0 {
            page.say("p", "faint", &format!("{} more, not listed here.", counted(left_out, "row")));
        }
    });
}

/// Files and folders, and everything else. What decided comes first, so that it is never what is left out.
fn parted(rows: &[Value]) -> (Vec<&Value>, Vec<&Value>) {
    let (fresh, doubtful): (Vec<&Value>, Vec<&Value>) = rows.iter().partition(|row| row["status"] == "fresh");
    let shown = doubtful.into_iter().chain(fresh).take(ROWS_MAX);
    shown.partition(|row| {
        row["signal_type"] != "head"
            && row["evidence_tag"] != "[MÉTRICA]"
            && row["evidence_tag"] != "[INFERENCIA]"
    })
}

/// The counts in words, and as a bar whose parts are as wide as they are many.
fn bar(counts: &Value, page: &mut Markup) {
    let parts = [("bad", "stale"), ("doubt", "unknown"), ("good", "fresh")];
    let parts: Vec<_> = parts.iter().map(|(class, word)| (*class, *word, number(counts, word))).collect();
    page.with("p", &[("class", "counts")], |page| {
        page.text(&counted(number(counts, "results"), "row"));
        page.text(": ");
        for (number, (class, word, count)) in parts.iter().rev().enumerate() {
            page.text(if number > 0 { ", " } else { "" });
            page.say("span", if *count > 0 { class } else { "faint" }, &format!("{count} {word}"));
        }
    });
    page.with("div", &[("class", "bar"), ("aria-hidden", "true")], |page| {
        for (class, _, count) in parts.iter().filter(|(.., count)| *count > 0) {
            page.with("i", &[("class", class), ("style", &format!("flex-grow:{count}"))], |_| {});
        }
    });
}

fn inside(folder: &Folder<'_>, decision: &Value, page: &mut Markup) {
    page.with("ul", &[("class", "rows")], |page| {
        for (name, row) in &folder.rows {
            one(name, row, decision, page);
        }
        for (name, folder) in folder.steps() {
            page.with("li", &[("class", "folder")], |page| {
                fold(&format!("{name}/").replace("//", "/"), folder, decision, page);
            });
        }
    });
}

/// A folder that folds. One where everything is fresh begins folded.
fn fold(name: &str, folder: &Folder<'_>, decision: &Value, page: &mut Markup) {
    let open: &[_] = if folder.tally.is_fresh() { &[] } else { &[("open", "")] };
    page.with("details", open, |page| {
        page.element("summary", |page| {
            page.element("bdi", |page| page.say("code", "path", name));
            page.text(" ");
            tally(folder.tally, page);
        });
        inside(folder, decision, page);
    });
}

fn tally(tally: Tally, page: &mut Markup) {
    page.say("span", if tally.is_fresh() { "tally faint" } else { "tally bad" }, &tally.words());
}

fn group(heading: &str, rows: &[&Value], decision: &Value, page: &mut Markup) {
    if rows.is_empty() {
        return;
    }
    page.element("h3", |page| page.text(heading));
    page.with("ul", &[("class", "rows")], |page| {
        for row in rows {
            one(&path(&row["source"]), row, decision, page);
        }
    });
}

/// One row: what it is called, its state and cause, old and new, and since when.
fn one(name: &str, row: &Value, decision: &Value, page: &mut Markup) {
    let (word, _) = state(row);
    let cause = text(row, "cause");
    page.with("li", &[("class", "row")], |page| {
        page.with("span", &[("class", "name")], |page| {
            page.with("i", &[("class", class(word)), ("aria-hidden", "true")], |_| {});
            page.element("bdi", |page| page.say("code", "path", name));
            if is_weak(row) {
                page.text(WEAK);
            }
            let remarks = remarks(row);
            if !remarks.is_empty() {
                page.text(" ");
                page.say("span", "faint", &remarks.join(", "));
            }
        });
        page.with("span", &[("class", "state")], |page| {
            page.say("span", class(word), word);
            if !cause.is_empty() {
                page.text(&format!(" {cause}"));
            }
        });
        page.with("span", &[("class", "change")], |page| digests(row, page));
        page.say("span", "since", &before(row, decision).unwrap_or_default());
    });
}

fn digests(row: &Value, page: &mut Markup) {
    let [was, now] = ["was", "now"].map(|field| row[field].as_str());
    match (was, now) {
        (Some(was), Some(now)) if row["changed"].is_null() && row["input"].is_null() => {
            page.with("code", &[("class", "digest"), ("title", was)], |page| page.text(&short(Some(was))));
            page.text(" → ");
            page.with("code", &[("class", "digest"), ("title", now)], |page| page.text(&short(Some(now))));
        }
        _ => page.say("code", "digest", &change(row)),
    }
}

/// Nobody said what the agent saw, so the row holds against a later look.
fn is_weak(row: &Value) -> bool {
    row["baseline"] == "registration"
}

fn remarks(row: &Value) -> Vec<String> {
    let mut remarks = Vec::new();
    if row["result_id"] != row["source"] {
        remarks.push(text(row, "result_id"));
    }
    remarks.extend(row["role"].as_str().map(|_| text(row, "role")));
    if row["critical"] == false {
        remarks.push("not critical".to_owned());
    }
    if row["eol_only"] == true {
        remarks.push("line ends only".to_owned());
    }
    if !row["renamed_to"].is_null() {
        remarks.push(format!("now {}", path(&row["renamed_to"])));
    }
    if row["branch"].is_string() {
        remarks.push(format!("on {}", text(row, "branch")));
    }
    remarks
}
