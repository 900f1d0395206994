//! What goes on from here: the summary of a fresh start, what a resumed session drops, the branches of a fork.

use super::{name, pair, section};
use crate::cli::html::Markup;
use crate::cli::words::{harmless, list, number, text};
use serde_json::Value;

pub(super) fn carried(decision: &Value, page: &mut Markup) {
    let summary = &decision["typed_summary"];
    if !summary.is_null() {
        section("carried", "What a fresh start begins with", page, |page| typed(summary, page));
    }
    let dropped = list(decision, "drop");
    if summary.is_null() && !dropped.is_empty() {
        section("dropped", "Not to be carried on", page, |page| paths(dropped, page));
    }
    let forks = list(decision, "forks");
    if !forks.is_empty() {
        section("forks", "Branches", page, |page| forks.iter().for_each(|fork| branch(fork, page)));
    }
}

fn typed(summary: &Value, page: &mut Markup) {
    part("Still true", list(summary, "verified_facts"), page, fact);
    part("Decided", list(summary, "decisions"), page, prose);
    part("Open", list(summary, "open_questions"), page, prose);
    let reload = list(summary, "reload");
    part("Read again first", reload, page, name);
    part("No longer to be relied on", list(summary, "stale_dropped"), page, name);
}

/// A list under a heading. Where there is nothing, it is said: that nothing is left is an answer too.
fn part(heading: &str, items: &[Value], page: &mut Markup, one: fn(&Value, &mut Markup)) {
    page.element("h3", |page| page.text(heading));
    if items.is_empty() {
        return page.say("p", "faint", "Nothing.");
    }
    page.with("ul", &[("class", "items")], |page| {
        items.iter().for_each(|item| page.element("li", |page| one(item, page)));
    });
}

fn prose(item: &Value, page: &mut Markup) {
    page.prose(item.as_str().unwrap_or_default());
}

fn fact(fact: &Value, page: &mut Markup) {
    page.prose(fact["statement"].as_str().unwrap_or_default());
    page.with("p", &[("class", "faint")], |page| {
        page.text(&text(fact, "evidence"));
        if fact["from"] == "memory" {
            page.text(&format!(" · remembered, observation {}", number(fact, "observation")));
        }
        for source in list(fact, "sources") {
            page.text(" · ");
            name(source, page);
        }
    });
}

fn paths(dropped: &[Value], page: &mut Markup) {
    page.say("p", "faint", "These are stale or cannot be verified, and are not critical.");
    page.with("ul", &[("class", "items")], |page| {
        dropped.iter().for_each(|path| page.element("li", |page| name(path, page)));
    });
}

fn branch(fork: &Value, page: &mut Markup) {
    page.element("h3", |page| page.say("code", "path", &harmless(&text(fork, "branch"))));
    page.with("dl", &[("class", "pairs")], |page| {
        pair("Workspace", page, |page| name(&fork["workspace"], page));
        pair("Scratchpad", page, |page| name(&fork["scratchpad"], page));
    });
}
