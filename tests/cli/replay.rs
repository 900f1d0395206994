//! `log replay`: what a live daemon decided is judged again, and what was edited is found and named.
//!
//! The lines in `tests/cli/decided/` were logged once and are kept for good: they hold the rules to what they were, which
//! a log that the same program has just written cannot. `UPDATE=1` writes `whole.jsonl` anew.

use super::{Run, staled};
use crate::harness::{Daemon, Place, digest, file};
use fastrand::Rng;
use serde_json::{Value, json};
use staled::config::Config;
use staled::world::digest::blake3;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

const SEED: u64 = 4;
const CODES: [&str; 8] = [
    "valid",
    "critical_stale",
    "world_changed",
    "unknown_critical",
    "scratchpad_over_budget",
    "branchable",
    "fork_blocked_shared_state",
    "fact_refuted",
];

fn replay(place: &Place, args: &[&str]) -> Run {
    staled(place, Path::new("/nowhere"), &[&["log", "replay"], args].concat())
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// One seeded client: contexts of every kind, some true and some not, and now and then a fact that failed.
struct Deciding<'place> {
    place: &'place Place,
    daemon: Daemon,
    rng: Rng,
    reports: Vec<(&'static str, Value)>,
}

impl<'place> Deciding<'place> {
    fn start(place: &'place Place, file_bytes_max: u64) -> Self {
        let mut config = Config::default();
        config.decision.deadline_ms = config.decision.deadline_ms_max;
        config.decision.scratchpad_bytes_max = 1_000;
        config.log.file_bytes_max = file_bytes_max;
        for n in 0..8 {
            place.write(&format!("f{n}"), &content(n));
        }
        let daemon = Daemon::start_with(&place.home, config);
        Self { place, daemon, rng: Rng::with_seed(SEED), reports: Vec::new() }
    }

    fn results(&mut self, honest: bool) -> Vec<Value> {
        let mut results: Vec<Value> = Vec::new();
        for n in 0..8 {
            if n > 0 && self.rng.bool() {
                continue;
            }
            let lies = self.rng.u8(..4) == 0;
            let seen = if lies { "something else".to_owned() } else { content(n) };
            let mut result = file(&format!("f{n}"), &seen);
            result["critical"] = (if honest { !lies } else { self.rng.bool() }).into();
            results.push(result);
        }
        let odd = json!({ "bytes": "Zv8=" });
        for source in [
            json!({ "kind": "volatile", "what": "the \"network\"\0" }),
            json!({ "kind": "absent", "path": "f1" }),
            json!({ "kind": "file", "path": odd }),
            json!({ "kind": "command", "command": "make\n-j \u{202e}\0", "inputs": [{ "kind": "file", "path": "f2" }] }),
            json!({ "kind": "tree", "path": "." }),
        ] {
            if self.rng.u8(..3) == 0 {
                let id = format!("{} é", source["kind"].as_str().expect("a kind"));
                results.retain(|result| result["id"] != id);
                results.push(json!({ "id": id, "source": source, "critical": false, "digest": null }));
            }
        }
        for result in &mut results {
            if result["digest"].is_null() {
                result.as_object_mut().expect("an object").remove("digest");
            }
        }
        results
    }

    fn invariants(&mut self) -> Vec<Value> {
        let lockfile = json!({ "kind": "lockfile", "path": "f3" });
        let head = json!({ "kind": "git_head", "path": "." });
        let mut invariants = Vec::new();
        if self.rng.u8(..3) == 0 {
            let seen = if self.rng.bool() { content(3) } else { "older".to_owned() };
            invariants.push(json!({ "name": "lock", "source": lockfile, "digest": digest(&seen) }));
        }
        if self.rng.u8(..5) == 0 {
            let critical = self.rng.bool();
            invariants.push(json!({ "name": "git\0head", "source": head, "critical": critical }));
        }
        invariants
    }

    /// Registers a context of chance, and decides about it; a resume may be taken back.
    fn round(&mut self, number: usize) {
        let session = format!("s {}", number % 7);
        let honest = self.rng.u8(..3) > 0;
        let (results, branchable) = (self.results(honest), self.rng.u8(..3) == 0);
        let invariants = if honest && self.rng.bool() { Vec::new() } else { self.invariants() };
        let hypotheses = &["one way", "One way!", "<private>x</private>"][..self.rng.usize(..=3)];
        let goal = json!({ "statement": "g", "branchable": branchable,
            "shares_mutable_state": self.rng.bool(), "hypotheses": hypotheses });
        let facts = json!([{ "id": "f", "statement": "s", "sources": ["f0", "f4"] }]);
        let scratchpad_bytes = if self.rng.u8(..5) == 0 { 1_001 } else { self.rng.u64(..=1_000) };
        self.daemon.ask(
            "context.register",
            &json!({ "session": session, "root": self.place.root, "replace": true, "goal": goal,
                "results": results, "invariants": invariants, "facts": facts,
                "scratchpad_bytes": scratchpad_bytes }),
        );
        if self.rng.u8(..6) == 0 {
            self.refuted(&json!({ "session": session, "source": "f0" }));
        }
        let rows = if self.rng.bool() { "all" } else { "stale" };
        let report = self.daemon.ask("decide", &json!({ "session": session, "rows": rows }));
        let resumed = report["transition"] == "resume";
        self.reports.push((rows, report));
        if resumed && self.rng.bool() {
            self.refute(&session);
        }
    }

    /// Something failed in use; what is critical may have changed at the same time.
    fn refute(&mut self, session: &str) {
        let changed = self.rng.bool();
        if changed {
            self.place.write("f0", "changed meanwhile");
        }
        let ask = match self.rng.u8(..3) {
            0 => json!({ "session": session, "fact": "f" }),
            1 => json!({ "session": session, "source": "f0" }),
            _ => json!({ "session": session, "source": "f4" }),
        };
        self.refuted(&ask);
        self.place.write("f0", &content(0));
    }

    /// The session's last decision may have been a resume, which is then taken back.
    fn refuted(&mut self, ask: &Value) {
        let decision = self.daemon.ask("fact.refute", ask)["decision"].clone();
        if !decision.is_null() {
            self.reports.push(("superseding", decision));
        }
    }

    /// What was decided in which way, and how often.
    fn reached(&self) -> BTreeMap<(&'static str, String), usize> {
        let mut reached = BTreeMap::new();
        for (rows, report) in &self.reports {
            let code = report["reason"]["code"].as_str().expect("a code").to_owned();
            *reached.entry((*rows, code)).or_default() += 1;
        }
        reached
    }
}

fn content(n: usize) -> String {
    format!("content {n}\n")
}

#[test]
fn everything_that_a_daemon_decides_is_decided_again() {
    let place = Place::new();
    let mut deciding = Deciding::start(&place, 64 * 1024);
    (0..400).for_each(|number| deciding.round(number));
    let reached = deciding.reached();
    for code in CODES {
        for rows in ["all", "stale"] {
            assert!(reached.contains_key(&(rows, code.to_owned())), "{code} with {rows} rows: {reached:?}");
        }
    }
    assert!(reached.contains_key(&("superseding", "fact_refuted".to_owned())), "{reached:?}");
    let mut reports = deciding.reports.iter().map(|(_, report)| report);
    assert!(reports.any(overruled), "what was refuted never stood beside something else that is stale");
    let decided = deciding.reports.len();
    let log = deciding.daemon.folders.state.join("decisions.jsonl");
    let told = replay(&place, &["--log", text(&log), "--json"]).ok().json();
    assert_eq!((&told["agree"], &told["outcome"]), (&json!(decided), &json!("agree")), "{told}");
    assert!(told["files"].as_u64() > Some(3) && told["events"].as_u64() > Some(3), "{told}");
    deciding.daemon.stop();
    let words = replay(&place, &["--log", text(&log)]).ok();
    assert!(words.out.starts_with(&format!("agree  {decided} decisions come out")), "{words:?}");
    // Some of the files alone.
    let folder = std::fs::read_dir(log.parent().expect("a folder")).expect("a folder");
    let files = folder.map(|entry| entry.expect("an entry").path());
    let mut rotated = files.filter(|file| text(file).contains("/decisions-")).take(2);
    let two = [rotated.next().expect("a file"), rotated.next().expect("another")];
    let alone = replay(&place, &["--json", text(&two[0]), text(&two[1])]).ok().json();
    assert!(alone["files"] == 2 && alone["agree"].as_u64() < told["agree"].as_u64(), "{alone}");
    assert!(alone["agree"].as_u64() > Some(0), "{alone}");
}

/// The lines of a log, and the same with one of them edited and the chain made to follow from it again.
struct Lines(Vec<String>);

impl Lines {
    fn find(&self, fits: impl Fn(&Value) -> bool) -> usize {
        let fits = |line: &String| {
            let line: Value = serde_json::from_str(line).expect("JSON");
            line["decision"].is_string() && fits(&line)
        };
        self.0.iter().position(fits).expect("such a decision")
    }

    fn edited(&self, at: usize, edit: impl Fn(&mut Value)) -> String {
        let mut prev = "0".repeat(64);
        let mut whole = String::new();
        for (number, line) in self.0.iter().enumerate() {
            let (mut object, _) = line.rsplit_once(",\"seq\":").expect("a chained line");
            let edited;
            if number == at {
                let mut value = serde_json::from_str(&format!("{object}}}")).expect("JSON");
                edit(&mut value);
                edited = value.to_string();
                object = edited.strip_suffix('}').expect("an object");
            }
            let body = format!("{object},\"seq\":{},\"prev\":\"{prev}\"", number + 1);
            prev = blake3(body.as_bytes()).to_hex();
            whole.push_str(&body);
            whole.extend([",\"hash\":\"", &prev, "\"}\n"]);
        }
        whole
    }
}

fn rows(line: &Value) -> &[Value] {
    line["staleness_results"].as_array().map_or(&[], Vec::as_slice)
}

fn has(line: &Value, code: &str) -> bool {
    line["reason"]["code"] == code
}

fn doubtful(line: &Value, critical: bool) -> Option<usize> {
    rows(line).iter().position(|row| row["status"] == "stale" && row["critical"] == critical)
}

/// What failed in use is the reason, though other critical rows are stale as well.
fn overruled(line: &Value) -> bool {
    let other =
        |row: &Value| row["status"] == "stale" && row["critical"] == true && row["cause"] != "refuted";
    line["refuted"].is_array() && has(line, "fact_refuted") && rows(line).iter().any(other)
}

/// What differs after an edit, of which line, and the edit.
type Edit = (&'static str, fn(&Value) -> bool, fn(&mut Value));

const EDITS: [Edit; 13] = [
    ("transition", |line| has(line, "critical_stale"), |line| line["transition"] = "resume".into()),
    ("transition", |line| has(line, "valid"), |line| line["transition"] = "fresh".into()),
    (
        "reason.code",
        |line| has(line, "unknown_critical"),
        |line| {
            line["reason"]["code"] = "critical_stale".into();
        },
    ),
    (
        "reason.evidence",
        |line| has(line, "critical_stale"),
        |line| {
            line["reason"]["evidence"] = json!([]);
        },
    ),
    (
        "transition",
        |line| has(line, "valid") && doubtful(line, false).is_some(),
        |line| {
            let row = doubtful(line, false).expect("such a row");
            line["staleness_results"][row]["critical"] = true.into();
        },
    ),
    (
        "reason.evidence",
        |line| has(line, "critical_stale"),
        |line| {
            let row = doubtful(line, true).expect("such a row");
            line["staleness_results"][row]["critical"] = false.into();
        },
    ),
    (
        "reason.code",
        |line| has(line, "world_changed"),
        |line| {
            for row in line["staleness_results"].as_array_mut().expect("rows") {
                row.as_object_mut().expect("a row").remove("role");
            }
        },
    ),
    (
        "counts",
        |line| has(line, "critical_stale"),
        |line| {
            let row = doubtful(line, true).expect("such a row");
            line["staleness_results"].as_array_mut().expect("rows").remove(row);
        },
    ),
    ("transition", |line| has(line, "valid"), |line| line["context"]["scratchpad_bytes"] = 1_001.into()),
    (
        "transition",
        |line| has(line, "scratchpad_over_budget"),
        |line| {
            line["policy"]["scratchpad_bytes_max"] = 0.into();
        },
    ),
    (
        "forks",
        |line| has(line, "branchable"),
        |line| {
            line["context"]["hypotheses"][0] = "another".into();
        },
    ),
    (
        "transition",
        |line| has(line, "fork_blocked_shared_state"),
        |line| {
            line["context"]["hypotheses"] = json!(["one", "two"]);
            line["context"]["shares_mutable_state"] = false.into();
        },
    ),
    ("reason.evidence", overruled, |line| {
        line.as_object_mut().expect("a line").remove("refuted");
    }),
];

#[test]
fn a_line_that_was_edited_is_named_even_where_the_chain_holds() {
    let place = Place::new();
    let mut deciding = Deciding::start(&place, 64 * 1024 * 1024);
    (0..120).for_each(|number| deciding.round(number));
    let log = deciding.daemon.folders.state.join("decisions.jsonl");
    deciding.daemon.stop();
    let lines = Lines(std::fs::read_to_string(&log).expect("a log").lines().map(str::to_owned).collect());
    update(&lines);
    let other = log.with_file_name("other.jsonl");
    for (number, (field, fits, edit)) in EDITS.into_iter().enumerate() {
        let at = lines.find(fits);
        std::fs::write(&other, lines.edited(at, edit)).expect("a log");
        let verify = ["log", "verify", text(&other)];
        assert!(staled(&place, Path::new("/nowhere"), &verify).ends(3).out.starts_with("verified"));
        let told = replay(&place, &["--json", text(&other)]);
        assert_eq!(told.code, 1, "case {number}: {told:?}");
        let told = told.json();
        let differ = told["differ"].as_array().expect("a list");
        let line: Value = serde_json::from_str(&lines.0[at]).expect("JSON");
        assert_eq!(differ.len(), 1, "case {number}: {told}");
        let named =
            json!({ "file": text(&other), "line": at + 1, "seq": at + 1, "decision": line["decision"] });
        for (name, value) in named.as_object().expect("an object") {
            assert_eq!(&differ[0][name], value, "case {number}: {told}");
        }
        let fields = differ[0]["differences"].as_array().expect("a list");
        assert!(fields.iter().any(|differs| differs["field"] == field), "case {number}: {told}");
        let words = replay(&place, &[text(&other)]).ends(1);
        let decision = line["decision"].as_str().expect("an id");
        let first = format!("{}:{}: seq {}, {decision}\n  ", text(&other), at + 1, at + 1);
        assert!(
            words.out.starts_with(&first) && words.out.contains("\ndiffer  "),
            "case {number}: {words:?}"
        );
    }
}

fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/decided").join(name)
}

/// The first decision of each kind.
fn update(lines: &Lines) {
    if std::env::var_os("UPDATE").is_none() {
        return;
    }
    let mut kinds = HashSet::new();
    let mut kept_lines = String::new();
    for line in &lines.0 {
        let value: Value = serde_json::from_str(line).expect("JSON");
        let shown_fresh = rows(&value).iter().any(|row| row["status"] == "fresh");
        let what = if value["event"].is_null() { &value["reason"]["code"] } else { &value["event"] };
        let kind = (what.to_string(), overruled(&value), shown_fresh);
        if kinds.insert(kind) {
            kept_lines.extend([line, "\n"]);
        }
    }
    std::fs::write(kept("whole.jsonl"), kept_lines).expect("written");
}

#[test]
fn what_was_decided_once_is_decided_so_for_good() {
    let place = Place::new();
    let whole = kept("whole.jsonl");
    let lines = std::fs::read_to_string(&whole).expect("kept lines");
    let codes: HashSet<String> = lines
        .lines()
        .filter_map(|line| {
            let line: Value = serde_json::from_str(line).expect("JSON");
            line["reason"]["code"].as_str().map(str::to_owned)
        })
        .collect();
    assert!(CODES.iter().all(|code| codes.contains(*code)), "{codes:?}");
    let told = replay(&place, &["--json", text(&whole)]).ok().json();
    let events = lines.lines().filter(|line| line.starts_with("{\"event\"")).count();
    assert_eq!(told["agree"], lines.lines().count() - events, "{told}");
    assert_eq!((&told["events"], &told["not_judgeable"]), (&json!(events), &json!(0)), "{told}");
}

#[test]
fn what_cannot_be_judged_never_agrees() {
    let place = Place::new();
    let older = kept("older.jsonl");
    let told = replay(&place, &["--json", text(&older)]).ends(3).json();
    assert_eq!((&told["agree"], &told["not_judgeable"]), (&json!(0), &json!(2)), "{told}");
    let whole = std::fs::read_to_string(kept("whole.jsonl")).expect("kept lines");
    let decision = whole.lines().find(|line| line.contains("\"critical_stale\"")).expect("such a line");
    let event = whole.lines().find(|line| line.starts_with("{\"event\"")).expect("an event");
    let other = place.home.with_file_name("other.jsonl");
    let judged = |text_of_log: &str| {
        std::fs::write(&other, text_of_log).expect("a file");
        replay(&place, &[text(&other)])
    };
    for (unusable, why) in [
        ("{}", "neither a decision nor an event"),
        ("nonsense", "not a line of a decision log"),
        (&decision.replacen("\"cause\":\"", "\"cause\":\"un", 1), "which nobody writes"),
        (&decision.replacen("\"status\":\"stale\"", "\"status\":\"fresh\"", 1), "which nobody writes"),
        (&decision.replacen("\"counts\":", "\"count\":", 1), "missing field `counts`"),
        (&decision.replacen("\"counts\":", "\"transition\":\"resume\",\"counts\":", 1), "duplicate field"),
    ] {
        let run = judged(&format!("{decision}\n{unusable}\n")).ends(2);
        let named = format!("{}:2: ", text(&other));
        assert!(run.out.starts_with(&named) && run.out.contains(why), "{why}: {run:?}");
    }
    assert!(judged(&format!("{event}\n")).ends(0).out.contains("  0 decisions"));
    assert!(judged("").ends(2).out.starts_with("unusable"));
    let torn = judged(&format!("{decision}\n{}", &decision[..100])).ends(0);
    assert!(torn.err.contains("ends inside a line") && torn.out.contains(" 1 decisions"), "{torn:?}");
    replay(&place, &["/nowhere/decisions.jsonl"]).fails(2, "cannot be read");
    replay(&place, &["--log", "/nowhere/decisions.jsonl"]).fails(2, "cannot be read");
}
