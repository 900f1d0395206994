//! A decision as one page for a browser, which needs nothing but itself.
//!
//! It loads nothing and runs nothing: a policy in its head forbids both, what folds is `details`, and whatever the log
//! says goes in as text. What it shows is what the log says, so the same log makes the same page.

mod carried;
mod file;
mod sources;
mod timeline;
mod told;
mod tree;
mod verdict;

#[cfg(test)]
mod tests;

use crate::cli::html::Markup;
use crate::cli::shell::{Done, Shell, Stop};
use crate::cli::words::{number, path, text, to_the_second};
use serde_json::{Value, json};
use std::path::Path;
use told::Told;

const STYLE: &str = include_str!("style.css");
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// Writes the page of a decision; `-` is stdout.
pub(super) fn run(decision: &str, to: &Path, shell: &mut Shell) -> Done {
    let to_stdout = to == Path::new("-");
    if to_stdout && shell.json {
        return Err(Stop::failed("--html - and --json both want stdout").remedy("name a file: --html FILE"));
    }
    let told = told::find(decision, &mut shell.client()?)?;
    let page = page(&told);
    if to_stdout {
        shell.out.bytes(page.as_bytes())?;
        return Ok(0);
    }
    file::write(to, page.as_bytes())?;
    if shell.json {
        shell.out.line(json!({ "decision": told.decision["decision"], "file": to.to_string_lossy() }))?;
    } else {
        shell.out.talk(&format!("the page of {} is in {}", text(&told.decision, "decision"), to.display()));
    }
    Ok(0)
}

/// The whole page.
fn page(told: &Told) -> Markup {
    let decision = &told.decision;
    let title = format!("{}: {} · staled", text(decision, "session"), text(decision, "transition"));
    Markup::page(|page| head(&title, page), |page| body(told, page))
}

fn head(title: &str, page: &mut Markup) {
    page.void("meta", &[("charset", "utf-8")]);
    page.void("meta", &[("http-equiv", "Content-Security-Policy"), ("content", POLICY)]);
    page.void("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
    page.void("meta", &[("name", "color-scheme"), ("content", "light dark")]);
    page.void("meta", &[("name", "referrer"), ("content", "no-referrer")]);
    page.element("title", |inside| inside.text(title));
    page.style(STYLE);
}

fn body(told: &Told, page: &mut Markup) {
    page.with("a", &[("class", "skip"), ("href", "#sources")], |inside| inside.text("Skip to the sources"));
    page.element("header", |page| verdict::header(&told.decision, page));
    page.element("main", |page| {
        verdict::reason(&told.decision, page);
        sources::sources(&told.decision, page);
        carried::carried(&told.decision, page);
        timeline::timeline(told, page);
        receipt(&told.decision, page);
    });
    page.element("footer", |page| {
        page.element("p", |page| {
            page.text("Everything here stands in the decision log. ");
            page.element("code", |inside| inside.text("staled log replay"));
            page.text(" judges it again from what its own line recorded.");
        });
    });
}

/// A part of the page, with a heading that names it.
fn section(name: &'static str, heading: &str, page: &mut Markup, inside: impl FnOnce(&mut Markup)) {
    let label = format!("{name}-heading");
    page.with("section", &[("id", name), ("aria-labelledby", &label)], |page| {
        page.with("h2", &[("id", &label)], |page| page.text(heading));
        inside(page);
    });
}

/// A name and what it stands for, in a list of such pairs.
fn pair(name: &str, page: &mut Markup, inside: impl FnOnce(&mut Markup)) {
    page.element("div", |page| {
        page.element("dt", |page| page.text(name));
        page.element("dd", inside);
    });
}

/// A moment as it travels, the day less loud than the time.
fn moment(travels: &str, page: &mut Markup) {
    let read = to_the_second(travels);
    page.with("time", &[("datetime", travels)], |page| match read.trim_end_matches('Z').split_once('T') {
        Some((day, time)) => {
            page.say("span", "day", day);
            page.text(" ");
            page.say("span", "clock", time);
        }
        None => page.text(&read),
    });
}

/// A path that must stay apart from the text around it, whatever it is called.
fn name(value: &Value, page: &mut Markup) {
    page.element("bdi", |page| page.say("code", "path", &path(value)));
}

fn receipt(decision: &Value, page: &mut Markup) {
    let hash = text(decision, "hash");
    if hash.is_empty() {
        return;
    }
    let seq = number(decision, "seq").to_string();
    section("receipt", "Receipt", page, |page| {
        page.element("p", |page| page.text("Where this decision stands in the chain of the log. If a byte of it, or of any line before it, were another, this would fail:"));
        page.element("pre", |page| {
            page.element("code", |page| page.text(&format!("staled log verify --receipt {seq}:{hash}")));
        });
        page.with("dl", &[("class", "pairs")], |page| {
            pair("Line", page, |page| page.say("span", "number", &seq));
            pair("Hash", page, |page| page.say("code", "digest", &hash));
            pair("Before it", page, |page| page.say("code", "digest", &text(decision, "prev")));
        });
    });
}
