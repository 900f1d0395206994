//! `check`: the report gate, offline. It needs no daemon and asks none.

use super::input;
use super::shell::{Done, Shell, Stop, answered};
use crate::protocol::gate::{self, Fault, Score};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const RUBRIC: &str = include_str!("../../config/quality-rubric.json");

/// Check reports against their contract, without a daemon
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 all pass, 1 some fail, 2 an input is not usable or holds no report.

Example:
  staled decide s-01 --json | staled check -
  staled check --rubric report.json ~/.local/state/staled/decisions.jsonl")]
pub(super) struct Args {
    /// Reports, or decision logs line by line; `-` reads standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Print the score by the quality rubric too; below its pass mark a report fails
    #[arg(long)]
    rubric: bool,
}

/// One report, judged.
struct Judged {
    name: String,
    faults: Vec<Fault>,
    score: Option<Score>,
}

impl Judged {
    fn passed(&self) -> bool {
        self.faults.is_empty() && self.score.as_ref().is_none_or(Score::passed)
    }
}

pub(super) fn run(args: &Args, shell: &mut Shell) -> Done {
    let (mut judged, mut unusable) = (Vec::new(), false);
    for file in &args.files {
        match judge(file, args.rubric) {
            Ok(reports) => judged.extend(reports),
            Err(Stop::Failed(failure)) => {
                shell.out.talk(&failure.to_string());
                unusable = true;
            }
            Err(stop) => return Err(stop),
        }
    }
    let code = if unusable { 2 } else { u8::from(!judged.iter().all(Judged::passed)) };
    answered(code, print(&judged, shell))
}

fn judge(file: &Path, rubric: bool) -> Result<Vec<Judged>, Stop> {
    let name = if file == Path::new("-") { "-".to_owned() } else { input::name(file) };
    let text = input::text(file)?;
    let checked = gate::check_text(&text).map_err(|why| Stop::failed(format!("{name}: {why}")))?;
    if checked.is_empty() {
        return Err(Stop::failed(format!("{name}: there is no report in it")));
    }
    let judged = |(suffix, faults): (String, Vec<Fault>)| {
        let score = rubric.then(|| score(&text, &suffix)).transpose()?;
        Ok(Judged { name: format!("{name}{suffix}"), faults, score })
    };
    checked.into_iter().map(judged).collect()
}

/// The score of the report that got this suffix from the gate: the whole text, or `:LINE` of it.
fn score(text: &str, suffix: &str) -> Result<Score, Stop> {
    let line = suffix.strip_prefix(':').and_then(|line| line.parse::<usize>().ok());
    let report = line.map_or(text, |line| text.lines().nth(line.saturating_sub(1)).unwrap_or_default());
    let report: Value = serde_json::from_str(report).map_err(Stop::failed)?;
    let rubric: Value = serde_json::from_str(RUBRIC).map_err(Stop::failed)?;
    gate::score(&report, &rubric).map_err(Stop::failed)
}

fn print(judged: &[Judged], shell: &mut Shell) -> Result<(), Stop> {
    if shell.json {
        let reports: Vec<Value> = judged.iter().map(to_json).collect();
        return shell.out.line(json!({ "reports": reports }));
    }
    for report in judged {
        let status = if report.faults.is_empty() { "pass" } else { "fail" };
        shell.out.line(format!("report={} status={status} errors={}", report.name, report.faults.len()))?;
        shell.out.lines(
            report.faults.iter().map(|fault| format!("  {}", super::words::harmless(&fault.to_string()))),
        )?;
        shell.out.lines(report.score.iter().flat_map(score_lines))?;
    }
    Ok(())
}

fn score_lines(score: &Score) -> Vec<String> {
    let verdict = if score.passed() { "pass" } else { "fail" };
    let first = format!("  score={} pass_mark={} verdict={verdict}", score.points, score.pass_mark);
    let marks = score.marks.iter().map(|mark| {
        let criterion = &mark.criterion;
        format!("  {:>3}/{:<3} {:<20} {}", mark.points, criterion.weight, criterion.id, criterion.sentence)
    });
    std::iter::once(first).chain(marks).collect()
}

fn to_json(judged: &Judged) -> Value {
    let errors = judged.faults.iter().map(|fault| json!({ "path": fault.path, "message": fault.message }));
    let mut report = json!({
        "report": judged.name,
        "status": if judged.faults.is_empty() { "pass" } else { "fail" },
        "errors": errors.collect::<Vec<Value>>(),
    });
    if let Some(score) = &judged.score {
        let marks = score.marks.iter().map(
            |mark| json!({ "id": mark.criterion.id, "points": mark.points, "weight": mark.criterion.weight }),
        );
        report["score"] = json!({
            "points": score.points,
            "pass_mark": score.pass_mark,
            "passed": score.passed(),
            "marks": marks.collect::<Vec<Value>>(),
        });
    }
    report
}
