//! The anchors of a decision log that systemd's journal holds, as `journalctl` prints them.
//!
//! Promise: only what the journal itself says our own user wrote counts; a program in between is not asked. No shell is
//! started, and what `journalctl` says when it fails is passed on.

use super::words::counted;
use crate::protocol::time;
use crate::session::moment::Moment;
use crate::store::decision_log::{Outcome, Receipt, Verdict};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

/// The variable that names another program than `journalctl`.
const PROGRAM_VARIABLE: &str = "STALED_JOURNALCTL";

/// How much of what it complains of is kept.
const COMPLAINT_BYTES_MAX: u64 = 4_096;

/// A line of the log as the journal knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Anchor {
    pub(super) receipt: Receipt,
    /// When the journal got it.
    pub(super) written_at: String,
}

/// Every anchor of the log that goes by this id.
pub(super) fn anchors_of(log: &str) -> Result<Vec<Anchor>, String> {
    let program = std::env::var_os(PROGRAM_VARIABLE).filter(|program| !program.is_empty());
    let program = program.unwrap_or_else(|| OsString::from("journalctl"));
    let mut child = Command::new(&program)
        .args(["--output=json", "--no-pager", "SYSLOG_IDENTIFIER=staled"])
        .arg(format!("STALED_LOG={log}"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{} cannot be run: {error}", program.display()))?;
    let read = read(&mut child, log);
    let ended = child.wait().map_err(|error| error.to_string())?;
    let (anchors, complaint) = read.map_err(|why| format!("{}: {why}", program.display()))?;
    if !ended.success() {
        return Err(format!("{} failed ({ended}): {}", program.display(), complaint.trim()));
    }
    Ok(anchors)
}

/// What it prints, and what it complains of. Both pipes are read at once, or it could wait for us on one for ever.
fn read(child: &mut Child, log: &str) -> Result<(Vec<Anchor>, String), String> {
    let complaint = child.stderr.take().map(|stderr| std::thread::spawn(move || complaint(stderr)));
    let ours = rustix::process::geteuid().as_raw().to_string();
    let mut anchors = Vec::new();
    let entries = child.stdout.take().map(|stdout| BufReader::new(stdout).split(b'\n'));
    for line in entries.into_iter().flatten() {
        let line = line.map_err(|error| error.to_string())?;
        // Where it found none it says so between dashes.
        if line.first() == Some(&b'{') {
            let entry =
                serde_json::from_slice(&line).map_err(|error| format!("it printed no JSON: {error}"))?;
            anchors.extend(anchor(&entry, &ours, log));
        }
    }
    let complaint = complaint.and_then(|thread| thread.join().ok()).unwrap_or_default();
    Ok((anchors, complaint))
}

fn complaint(mut stderr: impl Read) -> String {
    let mut kept = Vec::new();
    // The rest is read too, and thrown away.
    let _ = stderr.by_ref().take(COMPLAINT_BYTES_MAX).read_to_end(&mut kept);
    let _ = std::io::copy(&mut stderr, &mut std::io::sink());
    String::from_utf8_lossy(&kept).into_owned()
}

/// The anchor in an entry, if that is what our user wrote there. Fields with a leading underscore are the journal's own
/// and cannot be claimed.
fn anchor(entry: &Value, ours: &str, log: &str) -> Option<Anchor> {
    let field = |name: &str| entry[name].as_str();
    if field("_UID") != Some(ours) || field("STALED_LOG") != Some(log) {
        return None;
    }
    let text = format!("{}:{}", field("STALED_ANCHOR_SEQ")?, field("STALED_ANCHOR_HASH")?);
    let micros: i64 = field("__REALTIME_TIMESTAMP")?.parse().ok()?;
    Some(Anchor { receipt: text.parse().ok()?, written_at: time::to_text(Moment::from_micros(micros)) })
}

/// What the journal holds of a log that was checked against it.
pub(super) struct Held {
    found: u64,
    /// Of lines before the oldest file that is here.
    older: u64,
    newest: Option<String>,
    /// The anchor that is not in the chain.
    missed: Option<Anchor>,
}

impl Held {
    pub(super) fn of(anchors: &[Anchor], verdict: &Verdict) -> Self {
        let first = verdict.follows.as_ref().map_or(0, |follows| follows.seq);
        let older = anchors.iter().filter(|anchor| anchor.receipt.seq < first).count();
        let missed = match &verdict.outcome {
            Outcome::Broken { receipt, .. } => receipt.as_ref(),
            _ => None,
        };
        Self {
            found: (anchors.len() - older) as u64,
            older: older as u64,
            newest: anchors.iter().map(|anchor| anchor.written_at.clone()).max(),
            missed: anchors.iter().find(|anchor| Some(&anchor.receipt) == missed).cloned(),
        }
    }

    /// The part of a sentence for a chain that holds; none where there is no anchor in it.
    pub(super) fn among_them(&self) -> Option<String> {
        let verb = if self.found == 1 { "is" } else { "are" };
        let newest = self.newest.as_deref().filter(|_| self.found > 0)?;
        let found = counted(self.found, "anchor");
        Some(format!("{found} in the journal {verb} among them, the newest of {newest}"))
    }

    /// A sentence more, where the files of some anchors were removed.
    pub(super) fn older(&self) -> Option<String> {
        let older = counted(self.older, "anchor");
        (self.older > 0)
            .then(|| format!(" {older} in the journal: of lines before the oldest file that is here."))
    }

    /// A sentence more, where the chain lacks an anchored line.
    pub(super) fn missed(&self) -> Option<String> {
        let Anchor { receipt, written_at } = self.missed.as_ref()?;
        Some(format!(" The journal has held the anchor of seq {} since {written_at}.", receipt.seq))
    }

    pub(super) fn to_json(&self) -> Value {
        let missed = self.missed.as_ref();
        json!({
            "anchors": self.found + self.older,
            "older": self.older,
            "newest": self.newest,
            "missed": missed.map(|anchor| json!({
                "seq": anchor.receipt.seq,
                "hash": anchor.receipt.hash,
                "written_at": anchor.written_at,
            })),
        })
    }
}
