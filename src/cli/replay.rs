//! `log replay`: judge every decision of the log again, from what stands in its own line.
//!
//! Absent: the chain. A line that was edited and still follows from itself is `log verify`'s to find.

use super::paint::Tone;
use super::shell::{Done, Shell, Stop, answered, usual_folders};
use super::words::harmless;
use crate::protocol::path::WirePath;
use crate::protocol::recorded::{Difference, Name, Recorded, read};
use crate::store::decision_log::{Extent, Placed, each_line};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Judge every decision of the log again, from the view that its line recorded
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Compared are the transition, the code and evidence of the reason, and what is stale, dropped or forked; the chain is
not checked, `staled log verify` does that.
Exit codes: 0 every decision comes out as it was logged; 1 some do not; 2 a line or file is not usable, or there is no
line; 3 those that can be judged agree, and others are of a version that did not record enough.

Example:
  staled log replay
  staled log replay --json | jq -r '.differ[].decision'
  staled log replay ~/.local/state/staled/decisions.jsonl")]
pub(super) struct Args {
    /// The log, with the files rotated away beside it [default: decisions.jsonl in the state folder]
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// These files alone, oldest first
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(super) fn run(args: &Args, shell: &mut Shell) -> Done {
    let path = match &args.log {
        Some(path) => path.clone(),
        None if args.files.is_empty() => usual_folders()?.state.join("decisions.jsonl"),
        None => PathBuf::new(),
    };
    let mut tally = Tally::default();
    let extent = each_line(&path, &args.files, |placed| tally.take(&placed)).map_err(Stop::failed)?;
    for torn in &extent.torn {
        let file = harmless(&torn.to_string_lossy());
        shell.out.talk(&format!("staled: {file} ends inside a line, which was not judged"));
    }
    answered(tally.code(), tally.print(&extent, shell))
}

/// What came of all lines.
#[derive(Default)]
struct Tally {
    agree: u64,
    events: u64,
    partial: u64,
    differ: Vec<Differing>,
    unusable: Vec<Unusable>,
}

/// Where a line stands.
struct Place {
    file: PathBuf,
    line: u64,
}

struct Differing {
    place: Place,
    name: Name,
    differences: Vec<Difference>,
}

struct Unusable {
    place: Place,
    why: String,
}

impl Tally {
    fn take(&mut self, placed: &Placed<'_>) {
        let place = || Place { file: placed.file.to_owned(), line: placed.line };
        match placed.text.ok_or_else(|| "it is not UTF-8".to_owned()).and_then(read) {
            Ok(Recorded::Event) => self.events += 1,
            Ok(Recorded::Partial(_)) => self.partial += 1,
            Ok(Recorded::Whole(judgeable)) => match judgeable.differences() {
                differences if differences.is_empty() => self.agree += 1,
                differences => {
                    self.differ.push(Differing { place: place(), name: judgeable.name, differences });
                }
            },
            Err(why) => self.unusable.push(Unusable { place: place(), why }),
        }
    }

    /// A difference that was found is one whatever else cannot be read.
    fn code(&self) -> u8 {
        if !self.differ.is_empty() {
            1
        } else if !self.unusable.is_empty() || self.agree + self.partial + self.events == 0 {
            2
        } else if self.partial > 0 {
            3
        } else {
            0
        }
    }

    fn outcome(&self) -> (&'static str, Tone) {
        match self.code() {
            0 => ("agree", Tone::Good),
            1 => ("differ", Tone::Bad),
            2 => ("unusable", Tone::Bad),
            _ => ("partial", Tone::Doubt),
        }
    }

    fn print(&self, extent: &Extent, shell: &mut Shell) -> Result<(), Stop> {
        if shell.json {
            return shell.out.line(self.to_json(extent));
        }
        for Differing { place, name, differences } in &self.differ {
            let seq = name.seq.map_or_else(|| "without a number".to_owned(), |seq| format!("seq {seq}"));
            shell.out.line(format!("{}: {seq}, {}", place.words(), harmless(&name.decision)))?;
            shell.out.lines(differences.iter().map(|Difference { field, logged, judged }| {
                format!("  {field}: logged {}, judged {}", harmless(logged), harmless(judged))
            }))?;
        }
        let unusable = self.unusable.iter();
        shell
            .out
            .lines(unusable.map(|Unusable { place, why }| format!("{}: {}", place.words(), harmless(why))))?;
        let (word, tone) = self.outcome();
        shell.out.line(format!("{}  {}", shell.out.paint.of(tone, word), self.sentence()))
    }

    fn sentence(&self) -> String {
        let Self { agree, events, partial, .. } = self;
        let (differ, unusable) = (self.differ.len(), self.unusable.len());
        format!(
            "{agree} decisions come out as they were logged, {differ} do not, {partial} are not judgeable; \
             {unusable} lines are not usable, {events} events were skipped."
        )
    }

    fn to_json(&self, extent: &Extent) -> Value {
        let differ = self.differ.iter().map(|Differing { place, name, differences }| {
            let differences = differences.iter().map(|Difference { field, logged, judged }| {
                json!({ "field": field, "logged": logged, "judged": judged })
            });
            json!({
                "file": WirePath(place.file.clone()), "line": place.line, "seq": name.seq, "decision": name.decision,
                "differences": differences.collect::<Vec<Value>>(),
            })
        });
        let unusable = self.unusable.iter().map(|Unusable { place, why }| {
            json!({ "file": WirePath(place.file.clone()), "line": place.line, "why": why })
        });
        json!({
            "outcome": self.outcome().0,
            "files": extent.files,
            "agree": self.agree,
            "differ": differ.collect::<Vec<Value>>(),
            "not_judgeable": self.partial,
            "unusable": unusable.collect::<Vec<Value>>(),
            "events": self.events,
            "torn": extent.torn.iter().cloned().map(WirePath).collect::<Vec<_>>(),
            "sentence": self.sentence(),
        })
    }
}

impl Place {
    fn words(&self) -> String {
        format!("{}:{}", harmless(&self.file.to_string_lossy()), self.line)
    }
}
