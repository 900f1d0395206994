//! `log verify`: check the decision log offline, from its first line to its last. `log replay` stands beside it.

use super::paint::Tone;
use super::replay;
use super::shell::{Done, Shell, Stop, answered, usual_folders};
use crate::store::decision_log::{Outcome, Receipt, Verdict, verify_files};
use clap::Subcommand;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Check the decision log, or judge its decisions again
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  staled log verify --receipt 12:9f2c…
  staled log replay")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Verify(Verify),
    Replay(replay::Args),
}

/// Check every line of the decision log against the one before it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 verified, and the receipt is in the chain; 1 broken, or not readable, or the receipt is not in it;
2 only a torn last line, or a wrong command line; 3 verified, but without a receipt nobody can tell whether lines are missing at the end.

Example:
  staled log verify
  staled decide s-01 --json | jq -r '.receipt | \"\\(.seq):\\(.hash)\"'
  staled log verify --receipt 12:9f2c0b…  --log ~/.local/state/staled/decisions.jsonl")]
struct Verify {
    /// A receipt that `decide` gave, SEQ:HASH; may be given several times
    #[arg(long, value_name = "SEQ:HASH")]
    receipt: Vec<Receipt>,
    /// The log, with the files rotated away beside it [default: decisions.jsonl in the state folder]
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// These files alone, oldest first
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(super) fn run(args: Args, shell: &mut Shell) -> Done {
    match args.command {
        Command::Verify(args) => run_verify(&args, shell),
        Command::Replay(args) => replay::run(&args, shell),
    }
}

fn run_verify(args: &Verify, shell: &mut Shell) -> Done {
    let path = match &args.log {
        Some(path) => path.clone(),
        None => usual_folders()?.state.join("decisions.jsonl"),
    };
    let unreadable =
        |error| Stop::with_code(1, format!("the decision log {} cannot be read: {error}", path.display()));
    let verdict = verify_files(&path, &args.files, &args.receipt).map_err(unreadable)?;
    let judged = judge(&verdict);
    answered(judged.code, print(&verdict, &judged, shell))
}

fn print(verdict: &Verdict, judged: &Judged, shell: &mut Shell) -> Result<(), Stop> {
    if shell.json {
        return shell.out.line(to_json(verdict, judged));
    }
    let word = shell.out.paint.of(judged.tone, judged.word);
    shell.out.line(format!("{word}  {}", judged.sentence))?;
    let follows = verdict
        .follows
        .as_ref()
        .map(|end| format!("          it continues a file that is not here, which ends at {end}"));
    shell.out.lines(follows)
}

struct Judged {
    code: u8,
    word: &'static str,
    tone: Tone,
    sentence: String,
}

fn judge(verdict: &Verdict) -> Judged {
    let Verdict { lines, last, outcome, .. } = verdict;
    let end = last.as_ref().map(|last| format!(" and end at {last}")).unwrap_or_default();
    let judged = |code, word, tone, sentence| Judged { code, word, tone, sentence };
    match outcome {
        Outcome::Verified { anchored: true } => judged(
            0,
            "verified",
            Tone::Good,
            format!("{lines} lines follow one another{end}; the receipt is among them."),
        ),
        Outcome::Verified { anchored: false } => {
            let but = "no receipt was given, so lines missing at the end would not be noticed";
            judged(3, "verified", Tone::Doubt, format!("{lines} lines follow one another{end}; {but}."))
        }
        Outcome::Broken { line, at_byte, why } => {
            let good = format!("the {} lines before it are good", line.saturating_sub(1));
            judged(
                1,
                "broken",
                Tone::Bad,
                format!("Line {line} of {}, at byte {at_byte}: {why}; {good}.", verdict.file.display()),
            )
        }
        Outcome::TornTail { at_byte } => {
            let torn = format!(
                "{} ends inside another one, at byte {at_byte}, which the daemon's next start cuts off",
                verdict.file.display()
            );
            judged(2, "torn", Tone::Doubt, format!("{lines} lines follow one another{end}; {torn}."))
        }
    }
}

fn to_json(verdict: &Verdict, judged: &Judged) -> Value {
    let receipt = |receipt: &Option<Receipt>| receipt.as_ref().map(ToString::to_string);
    json!({
        "log": crate::protocol::path::WirePath(verdict.file.clone()),
        "files": verdict.files,
        "outcome": judged.word,
        "anchored": verdict.outcome == Outcome::Verified { anchored: true },
        "lines": verdict.lines,
        "last": receipt(&verdict.last),
        "follows": receipt(&verdict.follows),
        "sentence": judged.sentence,
    })
}
