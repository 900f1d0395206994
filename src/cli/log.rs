//! `log verify`: check the decision log offline, from its first line to its last. `log replay` stands beside it.

use super::journal::{self, Anchor, Held};
use super::paint::Tone;
use super::replay;
use super::shell::{Done, Shell, Stop, answered, usual_folders};
use crate::store::decision_log::{Outcome, Receipt, Unreadable, Verdict, id_at, verify_files};
use clap::Subcommand;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

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
Exit codes: 0 verified, and a receipt or an anchor is in the chain; 1 broken, or not readable, or one is not in it;
2 only a torn last line, or a wrong command line, or no journal to ask; 3 verified, but without a receipt or an anchor
nobody can tell whether lines are missing at the end.

Example:
  staled log verify
  staled log verify --journal
  staled decide s-01 --json | jq -r '.receipt | \"\\(.seq):\\(.hash)\"'
  staled log verify --receipt 12:9f2c0b…  --log ~/.local/state/staled/decisions.jsonl")]
struct Verify {
    /// A receipt that `decide` gave, SEQ:HASH; may be given several times
    #[arg(long, value_name = "SEQ:HASH")]
    receipt: Vec<Receipt>,
    /// Compare the log with every anchor that the daemon left in the journal of systemd
    #[arg(long, conflicts_with = "files")]
    journal: bool,
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
        None if args.files.is_empty() => usual_folders()?.state.join("decisions.jsonl"),
        None => PathBuf::new(),
    };
    let unreadable = |error: Unreadable| Stop::with_code(1, error);
    // Before the log is read: what is anchored meanwhile has to be in it.
    let anchors = if args.journal { Some(anchors(&path, unreadable)?) } else { None };
    let mut receipts = args.receipt.clone();
    receipts.extend(anchors.iter().flatten().map(|anchor| anchor.receipt.clone()));
    let verdict = verify_files(&path, &args.files, &receipts).map_err(unreadable)?;
    let held = anchors.map(|anchors| Held::of(&anchors, &verdict));
    let judged = judge(&verdict, &args.receipt, held.as_ref());
    answered(judged.code, print(&verdict, &judged, held.as_ref(), shell))
}

fn anchors(path: &Path, unreadable: impl Fn(Unreadable) -> Stop) -> Result<Vec<Anchor>, Stop> {
    // A log without a line that can be taken apart has no id, and is found broken without the journal.
    let Some(id) = id_at(path).map_err(unreadable)? else { return Ok(Vec::new()) };
    journal::anchors_of(&id).map_err(|why| Stop::failed(format!("the journal cannot be asked: {why}")))
}

fn print(verdict: &Verdict, judged: &Judged, held: Option<&Held>, shell: &mut Shell) -> Result<(), Stop> {
    if shell.json {
        return shell.out.line(to_json(verdict, judged, held));
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

fn judge(verdict: &Verdict, receipts: &[Receipt], held: Option<&Held>) -> Judged {
    let Verdict { lines, last, outcome, .. } = verdict;
    let end = last.as_ref().map(|last| format!(" and end at {last}")).unwrap_or_default();
    let judged = |code, word, tone, sentence| Judged { code, word, tone, sentence };
    let older = held.and_then(Held::older).unwrap_or_default();
    match outcome {
        Outcome::Verified { anchored } => {
            let (code, tone) = if *anchored { (0, Tone::Good) } else { (3, Tone::Doubt) };
            let witnesses = witnesses(verdict, receipts, held);
            let sentence = format!("{lines} lines follow one another{end}; {witnesses}.{older}");
            judged(code, "verified", tone, sentence)
        }
        Outcome::Broken { line, at_byte, why, .. } => {
            let good = format!("the {} lines before it are good", line.saturating_sub(1));
            let missed = held.and_then(Held::missed).unwrap_or_default();
            judged(
                1,
                "broken",
                Tone::Bad,
                format!(
                    "Line {line} of {}, at byte {at_byte}: {why}; {good}.{missed}",
                    verdict.file.display()
                ),
            )
        }
        Outcome::TornTail { at_byte } => {
            let torn = format!(
                "{} ends inside another one, at byte {at_byte}, which the daemon's next start cuts off",
                verdict.file.display()
            );
            judged(2, "torn", Tone::Doubt, format!("{lines} lines follow one another{end}; {torn}.{older}"))
        }
    }
}

/// What speaks for the end of a chain that holds, or what does not.
fn witnesses(verdict: &Verdict, receipts: &[Receipt], held: Option<&Held>) -> String {
    let first = verdict.follows.as_ref().map_or(0, |follows| follows.seq);
    let receipt = receipts.iter().any(|receipt| receipt.seq >= first).then_some("the receipt is among them");
    let anchors = held.and_then(Held::among_them);
    let found: Vec<String> = receipt.map(str::to_owned).into_iter().chain(anchors).collect();
    if !found.is_empty() {
        return found.join(", and ");
    }
    let none = match (held, receipts) {
        (Some(_), _) => "the journal has no anchor of them",
        (None, []) => "no receipt was given",
        (None, _) => "the receipt is older than they are",
    };
    format!("{none}, so lines missing at the end would not be noticed")
}

fn to_json(verdict: &Verdict, judged: &Judged, held: Option<&Held>) -> Value {
    let receipt = |receipt: &Option<Receipt>| receipt.as_ref().map(ToString::to_string);
    json!({
        "log": crate::protocol::path::WirePath(verdict.file.clone()),
        "files": verdict.files,
        "outcome": judged.word,
        "anchored": verdict.outcome == Outcome::Verified { anchored: true },
        "lines": verdict.lines,
        "last": receipt(&verdict.last),
        "follows": receipt(&verdict.follows),
        "journal": held.map(Held::to_json),
        "sentence": judged.sentence,
    })
}
