//! `doctor`: everything that a truthful answer rests on, one line a check: `ok`, or what is wrong and what would help.
//!
//! It looks with its own eyes wherever it can, so it works without a daemon; what only the daemon knows it asks for. It
//! changes nothing, and what could not be looked at is said and never called well.

mod agents;
mod answers;
mod folders;
mod forks;
mod kernel;
mod state;
mod units;

#[cfg(test)]
mod tests;

use super::paint::Tone;
use super::shell::{Done, Shell, Stop, answered, usual_folders};
use super::words::harmless;
use crate::daemon::Folders;
use answers::Asked;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Check the machine, the folders and the daemon, each problem with its remedy
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 all is well, 1 there are problems, 2 it could not look.

Example:
  staled doctor
  staled doctor --json | jq '.checks[] | select(.ok | not) | .remedy'")]
pub(super) struct Args {
    /// Where journal, index and decision log are [default: what the daemon says, or the usual folder]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

/// Where to look.
#[derive(Debug, Clone)]
struct Places {
    proc: PathBuf,
    sys: PathBuf,
    /// Where systemd looks for units.
    units: Vec<PathBuf>,
    folders: Folders,
}

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    name: &'static str,
    /// What was found, or what is wrong with it.
    found: String,
    /// What would help; only where something is wrong.
    remedy: Option<String>,
}

impl Finding {
    fn well(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, found: found.into(), remedy: None }
    }

    fn wrong(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, found: found.into(), remedy: Some(remedy.into()) }
    }

    fn is_well(&self) -> bool {
        self.remedy.is_none()
    }
}

pub(super) fn run(args: &Args, shell: &mut Shell) -> Done {
    let mut asked = Asked::ask(&shell.socket()?);
    let places = places(args, shell.socket()?, &mut asked)?;
    let mut findings = examine(&places, &asked);
    findings.extend(forks::check(&places));
    findings.extend(agents::check(&places.folders.socket, &asked));
    let code = u8::from(!findings.iter().all(Finding::is_well));
    answered(code, print(&findings, shell))
}

/// All checks but those of programs and of the kernel itself, in the order in which they are told.
fn examine(places: &Places, asked: &Asked) -> Vec<Finding> {
    let mut findings = kernel::check(places, asked);
    findings.extend(folders::check(places, asked));
    findings.extend(answers::check(places, asked));
    findings.extend(units::check(places));
    findings.extend(state::check(places, asked));
    findings
}

fn places(args: &Args, socket: PathBuf, asked: &mut Asked) -> Result<Places, Stop> {
    let state = match (&args.state, asked.state()) {
        (Some(state), _) => state.clone(),
        (None, Some(state)) => state,
        (None, None) => usual_folders()?.state,
    };
    let runtime = socket.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folders = Folders { state, runtime: runtime.to_owned(), socket };
    Ok(Places { proc: "/proc".into(), sys: "/sys".into(), units: units::usual(), folders })
}

fn print(findings: &[Finding], shell: &mut Shell) -> Result<(), Stop> {
    if shell.json {
        return shell.out.line(to_json(findings));
    }
    let (paint, width) = (shell.out.paint, findings.iter().map(|finding| finding.name.len()).max());
    shell.out.lines(findings.iter().map(|finding| {
        let (word, tone) = if finding.is_well() { ("ok", Tone::Good) } else { ("!!", Tone::Bad) };
        let said = match &finding.remedy {
            Some(remedy) => harmless(&format!("{}; {remedy}", finding.found)),
            None => harmless(&finding.found),
        };
        format!(
            "{}  {:width$}  {said}",
            paint.of(tone, word),
            finding.name,
            width = width.unwrap_or_default()
        )
    }))
}

fn to_json(findings: &[Finding]) -> Value {
    let check = |finding: &Finding| {
        json!({
            "ok": finding.is_well(),
            "name": finding.name,
            "found": finding.found,
            "remedy": finding.remedy,
        })
    };
    json!({
        "ok": findings.iter().all(Finding::is_well),
        "checks": findings.iter().map(check).collect::<Vec<_>>(),
    })
}

/// A number of bytes, for people.
fn bytes(count: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(size, _)| count >= *size) {
        Some((size, unit)) => format!("{:.1} {unit}", count as f64 / *size as f64),
        None => format!("{count} B"),
    }
}
