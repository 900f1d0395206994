//! Lines of a file: stale when, and only when, they are no longer the same text at the same place.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test does")]

use crate::daemon::{cause, decide, register, row};
use crate::harness::{Daemon, Place, digest, refusal, wait_until};
use serde_json::{Value, json};
use staled::config::Config;
use std::fs;
use std::path::Path;

fn lines(id: &str, start_line: u64, lines: u64) -> Value {
    let range = json!({ "start_line": start_line, "lines": lines });
    json!({ "id": id, "source": { "kind": "file", "path": "a.txt", "range": range } })
}

fn with(mut result: Value, field: &str, value: &str) -> Value {
    result[field] = json!(value);
    result
}

fn numbered(from: u32, to: u32) -> String {
    (from..=to).fold(String::new(), |text, number| text + &format!("line {number}\n"))
}

fn put(root: &Path, text: &str) {
    fs::write(root.join("a.txt"), text).unwrap();
}

/// What happens to a file of ten numbered lines, and what then is the case with lines 4 to 6: the cause, and where the
/// same text stands now.
type Case = (&'static str, fn(&Path), &'static str, Option<u64>);

const CASES: &[Case] = &[
    ("nothing", |_| {}, "fresh", None),
    ("the same bytes again", |r| put(r, &numbered(1, 10)), "fresh", None),
    ("a line above is edited", |r| put(r, &numbered(1, 10).replace("line 3\n", "LINE 3\n")), "fresh", None),
    ("the line below is edited", |r| put(r, &numbered(1, 10).replace("line 7\n", "LINE 7\n")), "fresh", None),
    ("more lines at the end", |r| put(r, &numbered(1, 20)), "fresh", None),
    ("the end is cut off behind it", |r| put(r, numbered(1, 6).trim_end()), "fresh", None),
    ("all line ends", |r| put(r, &numbered(1, 10).replace('\n', "\r\n")), "fresh", None),
    ("its first line is edited", |r| put(r, &numbered(1, 10).replace("line 4", "line IV")), "content", None),
    ("its last line is edited", |r| put(r, &numbered(1, 10).replace("line 6", "line VI")), "content", None),
    ("a carriage return within", |r| put(r, &numbered(1, 10).replace("line 5", "line\r5")), "content", None),
    ("a line is added above", |r| put(r, &format!("new\n{}", numbered(1, 10))), "range_moved", Some(5)),
    ("lines are removed above", |r| put(r, &numbered(3, 10)), "range_moved", Some(2)),
    (
        "the file becomes shorter than the place",
        |r| put(r, numbered(4, 6).trim_end()),
        "range_moved",
        Some(1),
    ),
    (
        "with other line ends, elsewhere",
        |r| put(r, &numbered(2, 10).replace('\n', "\r\n")),
        "range_moved",
        Some(3),
    ),
    (
        "it stands in two places",
        |r| put(r, &format!("{0}x\nx\nx\nx\nx\n{0}", numbered(4, 6))),
        "range_moved",
        Some(1),
    ),
    ("it is torn apart", |r| put(r, &numbered(1, 10).replace("line 5\n", "line 5\n\n")), "content", None),
    ("an empty file", |r| put(r, ""), "content", None),
    ("too short, and gone", |r| put(r, "x\n"), "content", None),
    ("deleted", |r| fs::remove_file(r.join("a.txt")).unwrap(), "deleted", None),
    (
        "a folder",
        |r| {
            fs::remove_file(r.join("a.txt")).unwrap();
            fs::create_dir(r.join("a.txt")).unwrap();
        },
        "kind_changed",
        None,
    ),
    (
        "renamed over",
        |r| {
            fs::write(r.join("b"), numbered(0, 10)).unwrap();
            fs::rename(r.join("b"), r.join("a.txt")).unwrap();
        },
        "range_moved",
        Some(5),
    ),
];

#[test]
fn lines_are_stale_when_and_only_when_their_text_is_not_at_its_place() {
    for (what, deed, expected, start_line) in CASES {
        let place = Place::new();
        put(&place.root, &numbered(1, 10));
        let daemon = Daemon::start(&place.home);
        let seen = numbered(4, 6);
        let results = json!([
            lines("unsaid", 4, 3),
            with(lines("digest", 4, 3), "digest", &digest(seen.trim_end())),
            with(lines("content", 4, 3), "content", &seen.replace('\n', "\r\n")),
        ]);
        let told = register(&daemon, &place, "s", &results);
        assert_eq!(told["results"][0]["baseline"], "registration", "{told}");
        assert_eq!(decide(&daemon, "s")["transition"], "resume", "before {what}");
        deed(&place.root);
        let judged = |daemon: &Daemon, when: &str| {
            let report = decide(daemon, "s");
            for id in ["unsaid", "digest", "content"] {
                assert_eq!(cause(&report, id), *expected, "{what}, {when}: {report:#}");
                assert_eq!(
                    row(&report, id)["start_line"].as_u64(),
                    *start_line,
                    "{what}, {when}: {report:#}"
                );
            }
        };
        judged(&daemon, "at once");
        daemon.stop();
        let daemon = Daemon::start(&place.home);
        judged(&daemon, "after a restart");
        let _ = fs::remove_dir(place.root.join("a.txt"));
        put(&place.root, &numbered(1, 10));
        assert_eq!(decide(&daemon, "s")["transition"], "resume", "{what}, and back");
    }
}

#[test]
fn a_file_that_ends_in_a_line_feed_has_one_more_line() {
    let place = Place::new();
    put(&place.root, "a\nb\n");
    let daemon = Daemon::start(&place.home);
    let results = json!([
        with(lines("empty", 3, 1), "content", ""),
        with(lines("to the end", 2, 9), "content", "b\n"),
        with(lines("behind the end", 4, 1), "content", ""),
        lines("unsaid behind the end", 4, 1),
    ]);
    register(&daemon, &place, "s", &results);
    let report = decide(&daemon, "s");
    let causes = |report: &Value| {
        ["empty", "to the end", "behind the end", "unsaid behind the end"].map(|id| cause(report, id))
    };
    // An empty line is not no line; where nothing was said, that there was none is what was seen.
    assert_eq!(causes(&report), ["fresh", "fresh", "born_stale", "fresh"], "{report:#}");
    // An index that is made again knows it too, without having looked then.
    let state = daemon.folders.state.clone();
    daemon.stop();
    fs::remove_dir_all(state.join("index")).unwrap();
    let daemon = Daemon::start(&place.home);
    let report = decide(&daemon, "s");
    assert_eq!(causes(&report), ["fresh", "fresh", "born_stale", "fresh"], "{report:#}");
    put(&place.root, "a\nb");
    let report = decide(&daemon, "s");
    assert_eq!(causes(&report)[..2], ["content", "content"], "{report:#}");
}

#[test]
fn lines_that_were_already_elsewhere_are_born_stale_and_found() {
    let place = Place::new();
    put(&place.root, &numbered(1, 10));
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([with(lines("here", 2, 2), "content", &numbered(2, 3))]));
    // The source is settled by now, and nobody has looked for this text yet.
    register(&daemon, &place, "t", &json!([with(lines("there", 2, 2), "content", &numbered(7, 8))]));
    let report = decide(&daemon, "t");
    assert_eq!(cause(&report, "there"), "born_stale", "{report:#}");
    assert_eq!(row(&report, "there")["start_line"], 7, "{report:#}");
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
}

#[test]
fn the_nearest_place_is_named_and_a_far_one_in_a_large_file_counts_as_gone() {
    let place = Place::new();
    let filler = |bytes: usize| "0123456789abcde\n".repeat(bytes / 16);
    let block = "the text\nthat was read\n";
    put(&place.root, &format!("{}{block}{}", filler(6 << 20), filler(1 << 20)));
    let first = (6 << 20) / 16 + 1;
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([with(lines("r", first, 2), "content", block)]));
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    put(&place.root, &format!("{block}{}x\n{block}{}{block}", filler(6 << 20), filler(1 << 20)));
    let report = decide(&daemon, "s");
    assert_eq!(row(&report, "r")["start_line"].as_u64(), Some(first + 3), "{report:#}");
    assert!(
        report["reason"]["text"].as_str().unwrap().contains(&format!("line {}", first + 3)),
        "{report:#}"
    );
    put(&place.root, &format!("{block}{}", filler(12 << 20)));
    let report = decide(&daemon, "s");
    assert_eq!(cause(&report, "r"), "content", "out of reach: {report:#}");
}

#[test]
fn long_lines_and_line_ends_across_reads_make_the_same_text() {
    let place = Place::new();
    // Line ends at every offset around the size of a read.
    let text: String = (0..40).map(|number| "x".repeat(65_520 + number) + "\r\n").collect();
    put(&place.root, &text);
    let daemon = Daemon::start(&place.home);
    let seen: String = text.lines().skip(1).take(38).collect::<Vec<_>>().join("\n");
    register(&daemon, &place, "s", &json!([with(lines("r", 2, 38), "digest", &digest(&seen))]));
    let report = decide(&daemon, "s");
    assert_eq!(report["transition"], "resume", "{}", report["reason"]);
    put(&place.root, &text.replace("\r\n", "\n"));
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
}

#[test]
fn content_with_more_lines_than_its_range_is_refused() {
    let place = Place::new();
    put(&place.root, "a\nb\nc\n");
    let daemon = Daemon::start(&place.home);
    let results = json!([with(lines("r", 1, 2), "content", "a\nb\nc\n")]);
    let context = json!({ "session": "s", "root": place.root, "results": results });
    assert_eq!(refusal(&mut daemon.client(), "context.register", &context), "-32602");
}

#[test]
fn a_scrub_takes_no_known_finding_for_a_missed_event() {
    let place = Place::new();
    put(&place.root, &numbered(1, 10));
    let mut config = Config::default();
    config.decision.deadline_ms = config.decision.deadline_ms_max;
    config.verify.scrub_pass_s = 1;
    let daemon = Daemon::start_with(&place.home, config);
    register(&daemon, &place, "s", &json!([lines("r", 4, 3)]));
    put(&place.root, &numbered(0, 10));
    assert_eq!(cause(&decide(&daemon, "s"), "r"), "range_moved");
    let status = || daemon.ask("status", &json!({}));
    let then = status()["scrub_passes"].as_u64().unwrap();
    wait_until("the scrub has gone round", || status()["scrub_passes"].as_u64().unwrap() > then + 2);
    assert_eq!(status()["missed_events"], 0, "{}", status());
    assert_eq!(row(&decide(&daemon, "s"), "r")["start_line"], 5);
}

#[test]
fn lines_behind_the_end_are_nothing_as_long_as_they_are() {
    let place = Place::new();
    place.write("f", "1\n2\n");
    let daemon = Daemon::start(&place.home);
    let range = json!({ "kind": "file", "path": "f", "range": { "start_line": 10, "lines": 2 } });
    register(&daemon, &place, "s", &json!([{ "id": "r", "source": range }]));
    assert_eq!(cause(&decide(&daemon, "s"), "r"), "fresh");
    place.write("f", "1\n2\n3\n");
    assert_eq!(cause(&decide(&daemon, "s"), "r"), "fresh");
    place.write("f", &"x\n".repeat(20));
    assert_eq!(cause(&decide(&daemon, "s"), "r"), "content");
}
