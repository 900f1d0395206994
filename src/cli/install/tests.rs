//! Seeded texts of every shape: ours go in, ours come out, and nothing else has moved.

use super::AGENTS;
use super::agent::Agent;
use super::hooks::{check, install, own, uninstall};
use super::json::{Dialect, Doc};
use super::servers;
use fastrand::Rng;

const SEEDS: u64 = 400;

/// `STALED_INSTALL_SEEDS` has more of them tried.
fn seeds() -> u64 {
    std::env::var("STALED_INSTALL_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS)
}

/// A text with blanks, and comments where they are allowed, wherever JSON lets them stand.
struct Writer {
    random: Rng,
    comments: bool,
    /// On one line, or not.
    flat: bool,
}

impl Writer {
    fn text(&mut self) -> String {
        let count = self.random.usize(0..4);
        let mut properties: Vec<String> = (0..count).map(|at| self.property(&format!("k{at}"))).collect();
        if self.random.bool() {
            let hooks = self.hooks();
            let at = self.random.usize(0..=properties.len());
            properties.insert(at, hooks);
        }
        // One at least: what is empty looks like what was made for us.
        properties.push(self.property("last"));
        let text = format!("{}{}{}", self.gap(), self.list("{", properties, "}"), self.gap());
        if self.random.bool() && !self.flat { text.replace('\n', "\r\n") } else { text }
    }

    fn hooks(&mut self) -> String {
        let events = ["Stop", "AfterTool", "Other", "SessionStart"];
        let count = self.random.usize(1..=events.len());
        let events = events.iter().take(count).map(|event| {
            let groups = (0..self.random.usize(1..3)).map(|_| self.group()).collect();
            let groups = self.list("[", groups, "]");
            format!("\"{event}\"{}:{}{groups}", self.gap(), self.gap())
        });
        let events: Vec<String> = events.collect();
        let (before, after) = (self.gap(), self.gap());
        format!("\"hooks\"{before}:{after}{}", self.list("{", events, "}"))
    }

    fn group(&mut self) -> String {
        let hooks =
            (0..self.random.usize(0..3)).map(|_| "{\"type\":\"command\",\"command\":\"x\"}".to_owned());
        let hooks = hooks.collect();
        let mut fields = vec![format!("\"hooks\":{}", self.list("[", hooks, "]"))];
        if self.random.bool() {
            fields.insert(0, "\"matcher\": \"Bash\"".to_owned());
        }
        self.list("{", fields, "}")
    }

    fn property(&mut self, name: &str) -> String {
        let value = match self.random.usize(0..6) {
            0 => "1e3".to_owned(),
            1 => "\"\\u0041, // \\\" /* no comment */\"".to_owned(),
            2 => "null".to_owned(),
            3 => "{}".to_owned(),
            4 => self.list("[", vec!["1".to_owned(), "\"]\"".to_owned()], "]"),
            _ => self.list("{", vec!["\"hooks\":1".to_owned(), "\"é\" : false".to_owned()], "}"),
        };
        format!("\"{name}\"{}:{}{value}", self.gap(), self.gap())
    }

    fn list(&mut self, open: &str, items: Vec<String>, close: &str) -> String {
        let items: Vec<String> =
            items.into_iter().map(|item| format!("{}{item}{}", self.gap(), self.gap())).collect();
        let empty = if items.is_empty() { self.gap() } else { String::new() };
        format!("{open}{}{empty}{close}", items.join(","))
    }

    fn gap(&mut self) -> String {
        let gaps: &[&str] = match (self.comments, self.flat) {
            (false, true) => &["", "", " "],
            (true, true) => &["", " ", "/* c, */"],
            (false, false) => &["", "", " ", "\n", "\n  ", "\n\t\t", "  \n\n"],
            (true, false) => &["", " ", "\n", "\n  ", " // a, b\n", "/* c, */", "\n  /* d\n } */\n"],
        };
        gaps[self.random.usize(0..gaps.len())].to_owned()
    }
}

fn writer(seed: u64, comments: bool) -> Writer {
    let mut random = Rng::with_seed(seed);
    let flat = random.usize(0..4) == 0;
    Writer { random, comments, flat }
}

fn parse(text: &str, dialect: Dialect, seed: u64) -> Doc {
    Doc::parse(text, dialect).unwrap_or_else(|fault| panic!("seed {seed}: {fault:?}: {text}"))
}

/// In, in again, another program, and out: what it is each time.
fn in_and_out(agent: &Agent, text: &str, dialect: Dialect, seed: u64) -> (String, String) {
    let mut doc = parse(text, dialect, seed);
    check(&doc, agent).unwrap_or_else(|fault| panic!("seed {seed}: {fault:?}: {text}"));
    install(&mut doc, agent, "/old/place/staled");
    install(&mut doc, agent, "/opt/it's/staled");
    servers::install(&mut doc, "/opt/it's/staled").unwrap();
    let installed = doc.into_text();
    let mut doc = parse(&installed, dialect, seed);
    assert_eq!(own(&doc, agent).len(), agent.wanted().count(), "seed {seed}: {installed}");
    install(&mut doc, agent, "/opt/it's/staled");
    assert_eq!(doc.clone().into_text(), installed, "seed {seed}: a second time changes nothing");
    uninstall(&mut doc, agent, None);
    servers::uninstall(&mut doc, None).unwrap();
    (installed, doc.into_text())
}

#[test]
fn every_byte_of_json_is_back() {
    for seed in 0..seeds() {
        let agent = AGENTS[seed as usize % AGENTS.len()];
        let text = writer(seed, false).text();
        let (installed, left) = in_and_out(agent, &text, Dialect::Strict, seed);
        assert_eq!(left, text, "seed {seed}, from {installed}");
    }
}

#[test]
fn every_word_and_every_comment_is_back() {
    for seed in 0..seeds() {
        let agent = AGENTS[seed as usize % AGENTS.len()];
        let text = writer(seed, true).text();
        let (installed, left) = in_and_out(agent, &text, Dialect::Comments, seed);
        let value = |text: &str| parse(text, Dialect::Comments, seed).value().to_string();
        assert_eq!(value(&left), value(&text), "seed {seed}, from {installed}");
        for text in [&text, &installed, &left] {
            // None is swallowed by another, and none swallows what is no comment.
            parse(text, Dialect::Comments, seed);
        }
        for comment in ["// a, b", "/* c, */", "/* d"] {
            let count = |text: &str| text.matches(comment).count();
            assert_eq!(
                (count(&installed), count(&left)),
                (count(&text), count(&text)),
                "seed {seed}: {installed}"
            );
        }
    }
}
