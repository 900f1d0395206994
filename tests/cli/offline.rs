//! What needs no daemon: `check` and `log verify`.

use super::{Run, feed, json_file, program, staled};
use crate::harness::{Daemon, Place, file};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

pub(super) const NOWHERE: &str = "/nowhere/staled.sock";

/// A report and the log that it stands in.
pub(super) fn decided(place: &Place) -> (Value, PathBuf) {
    place.write("a", "one");
    let daemon = Daemon::start(&place.home);
    daemon.ask(
        "context.register",
        &json!({ "session": "s", "root": place.root, "results": [file("a", "one")] }),
    );
    daemon.ask("decide", &json!({ "session": "s" }));
    let report = daemon.ask("decide", &json!({ "session": "s" }));
    let log = daemon.folders.state.join("decisions.jsonl");
    daemon.stop();
    (report, log)
}

#[test]
fn check_judges_reports_and_logs() {
    let place = Place::new();
    let (report, log) = decided(&place);
    let good = json_file(&place, "good.json", &report);
    let check = |args: &[&str]| staled(&place, Path::new(NOWHERE), &[&["check"], args].concat());
    assert_eq!(check(&[&good]).ok().out, format!("report={good} status=pass errors=0\n"));
    let log = log.to_str().expect("UTF-8");
    assert_eq!(
        check(&[log]).ok().out,
        format!("report={log}:2 status=pass errors=0\nreport={log}:3 status=pass errors=0\n")
    );
    let mut wrong = report.clone();
    wrong["transition"] = "maybe".into();
    let bad = json_file(&place, "bad.json", &wrong);
    let run = check(&[&good, &bad]).ends(1);
    let lines: Vec<&str> = run.out.lines().collect();
    assert!(
        lines[1].starts_with(&format!("report={bad} status=fail errors="))
            && lines[2].starts_with("  $.transition: "),
        "{run:?}"
    );
    assert_eq!(check(&[&bad, "--json"]).ends(1).json()["reports"][0]["errors"][0]["path"], "$.transition");
    check(&["/nowhere/report.json"]).fails(2, "cannot read /nowhere/report.json");
    let stdin = |text: &str| feed(&place, Path::new(NOWHERE), &["check", "-"], text);
    assert_eq!(stdin(&report.to_string()).ok().out, "report=- status=pass errors=0\n");
    stdin("{").fails(2, "-: not JSON at line 1");
    stdin("{\"event\": \"epoch\"}").fails(2, "there is no report in it");
}

#[test]
fn check_scores_by_the_rubric() {
    let place = Place::new();
    let (mut report, log) = decided(&place);
    let run = staled(&place, Path::new(NOWHERE), &["check", "--rubric", log.to_str().expect("UTF-8")]).ok();
    assert_eq!(run.out.matches("  score=100 pass_mark=70 verdict=pass\n").count(), 2, "{run:?}");
    assert!(run.out.contains("   30/30  well_formed "), "{run:?}");
    report.as_object_mut().expect("an object").remove("validation");
    let run =
        feed(&place, Path::new(NOWHERE), &["check", "--rubric", "--json", "-"], &report.to_string()).ends(1);
    assert_eq!(
        (&run.json()["reports"][0]["score"]["passed"], &run.json()["reports"][0]["score"]["points"]),
        (&json!(false), &json!(90))
    );
}

#[test]
fn log_verify_tells_whole_broken_torn_and_unanchored_apart() {
    let place = Place::new();
    let (report, log) = decided(&place);
    let receipt =
        format!("{}:{}", report["receipt"]["seq"], report["receipt"]["hash"].as_str().expect("a hash"));
    let verify = |path: &Path, more: &[&str]| -> Run {
        let path = path.to_str().expect("UTF-8");
        staled(&place, Path::new(NOWHERE), &[&["log", "verify", "--log", path], more].concat())
    };
    let whole = verify(&log, &["--receipt", &receipt]).ends(0);
    assert!(
        whole.out.starts_with("verified  3 lines follow one another")
            && whole.out.ends_with("the receipt is among them.\n"),
        "{whole:?}"
    );
    assert!(verify(&log, &[]).ends(3).out.contains("no receipt was given"));
    assert_eq!(verify(&log, &["--json"]).ends(3).json()["anchored"], false);
    let text = std::fs::read_to_string(&log).expect("a log");
    let other = log.with_file_name("other.jsonl");
    let lines: Vec<&str> = text.lines().collect();
    for (content, code, says) in [
        (text.replacen("resume", "rezume", 1), 1, "broken  Line 2 of "),
        (format!("{}\n{}\n", lines[0], lines[2]), 1, "broken  Line 2"),
        (text[..text.len() - 5].to_owned(), 2, "torn  2 lines follow one another"),
    ] {
        std::fs::write(&other, content).expect("a file");
        let run = verify(&other, &[]).ends(code);
        assert!(run.out.starts_with(says) && run.out.lines().count() == 1, "{run:?}");
    }
    std::fs::write(&other, format!("{}\n{}\n", lines[0], lines[1])).expect("a file");
    assert!(
        verify(&other, &["--receipt", &receipt]).ends(1).out.contains("for which there is a receipt"),
        "a cut tail is seen"
    );
    verify(Path::new("/nowhere/decisions.jsonl"), &[]).fails(1, "cannot be read");
}

#[test]
fn files_of_a_log_that_are_named_are_named_when_they_cannot_be_read_and_need_no_home() {
    let place = Place::new();
    let (_, log) = decided(&place);
    let folder = place.root.to_str().expect("UTF-8");
    let log = log.to_str().expect("UTF-8");
    let run = |args: &[&str]| {
        super::run_of(program(&place).env_remove("HOME").args(args).output().expect("it runs"))
    };
    for (command, whole, unreadable) in [("verify", 3, 1), ("replay", 0, 2)] {
        run(&["log", command, log]).ends(whole);
        for (file, why) in [("/nowhere/1.jsonl", "No such file"), (folder, "Is a directory")] {
            let said = format!("the decision log {file} cannot be read: {why}");
            run(&["log", command, log, file]).fails(unreadable, &said);
        }
        let said = "the decision log /nowhere/1.jsonl cannot be read: ";
        run(&["log", command, "--log", "/nowhere/1.jsonl"]).fails(unreadable, said);
    }
}

#[test]
fn log_verify_finds_the_usual_log_by_itself() {
    let place = Place::new();
    let (_, log) = decided(&place);
    let usual = place.home.join(".local/state/staled");
    std::fs::create_dir_all(&usual).expect("a folder");
    std::fs::copy(log, usual.join("decisions.jsonl")).expect("a copy");
    staled(&place, Path::new(NOWHERE), &["log", "verify"]).ends(3);
}
