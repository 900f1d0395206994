//! What a fresh start carries on, in a file that the first hook of the new session reads and removes.
//!
//! Facts only, in plain sentences, under the size that every agent takes. The file is nobody else's to read, and one that was
//! never read goes when its process is gone.

use super::super::shell::Stop;
use super::super::words::{harmless, list, path, text};
use serde_json::Value;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The least that any agent takes is 10,000.
const CHARS_MAX: usize = 8_000;
const PREFIX: &str = "brief-";

/// Writes what the report's summary says, and says where.
pub(super) fn write(runtime: &Path, report: &Value) -> Result<PathBuf, Stop> {
    sweep(runtime);
    let file = runtime.join(format!("{PREFIX}{}-{}", std::process::id(), uuid::Uuid::now_v7().simple()));
    let written = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&file)
        .and_then(|mut new| new.write_all(told(report).as_bytes()));
    match written {
        Ok(()) => Ok(file),
        Err(error) => {
            let _ = fs::remove_file(&file);
            Err(Stop::failed(format!("cannot write {}: {error}", file.display())))
        }
    }
}

/// Those of processes that are gone.
fn sweep(runtime: &Path) {
    for entry in fs::read_dir(runtime).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.to_str().and_then(pid).is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whose brief a file of this name is. The folder may be anybody's who named a socket, and so may its other files.
fn pid(name: &str) -> Option<&str> {
    let (pid, id) = name.strip_prefix(PREFIX)?.split_once('-')?;
    let ours =
        pid.parse::<u32>().is_ok() && id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    ours.then_some(pid)
}

/// The summary as sentences.
fn told(report: &Value) -> String {
    let summary = &report["typed_summary"];
    let session = text(report, "session");
    let mut brief = Brief::default();
    brief.line(&format!(
        "An earlier session ({session}) worked here. staled checked on {} what it knew.",
        text(report, "decided_at")
    ));
    brief.line(&format!("Why it does not go on: {}", text(&report["reason"], "text")));
    brief.section(
        "Its goal:",
        summary["goal"].as_str().into_iter().filter(|goal| !goal.is_empty()).map(str::to_owned),
    );
    brief.section("Checked just now, and still so:", list(summary, "verified_facts").iter().map(fact));
    let texts = |field| list(summary, field).iter().filter_map(Value::as_str).map(str::to_owned);
    brief.section("It decided:", texts("decisions"));
    brief.section("It had not answered:", texts("open_questions"));
    brief.section(
        "Changed since it read them, and to be read before they are relied on:",
        list(summary, "reload").iter().map(path),
    );
    brief.section("Not known any more:", list(summary, "stale_dropped").iter().map(path));
    brief.text
}

fn fact(fact: &Value) -> String {
    let (statement, evidence) = (text(fact, "statement"), text(fact, "evidence"));
    if evidence.is_empty() { statement } else { format!("{statement} ({evidence})") }
}

/// Lines up to the size; what does not fit is counted.
#[derive(Default)]
struct Brief {
    text: String,
    chars: usize,
}

impl Brief {
    fn line(&mut self, line: &str) -> bool {
        let line = harmless(line);
        let chars = line.chars().count() + 1;
        // Room for a line that says how many are left out stays at the end of every section.
        let fits = self.chars + chars + 64 <= CHARS_MAX;
        if fits {
            self.add(&line, chars);
        }
        fits
    }

    fn section(&mut self, head: &str, items: impl Iterator<Item = String>) {
        let items: Vec<String> = items.collect();
        if items.is_empty() || !self.line(head) {
            return;
        }
        let mut left = 0;
        for item in &items {
            left += usize::from(!self.line(&format!("- {item}")));
        }
        let more = format!("- and {left} more");
        if left > 0 && self.chars + more.len() < CHARS_MAX {
            self.add(&more, more.len() + 1);
        }
    }

    fn add(&mut self, line: &str, chars: usize) {
        self.text.push_str(line);
        self.text.push('\n');
        self.chars += chars;
    }
}

#[cfg(test)]
mod tests {
    use super::{CHARS_MAX, pid, told};
    use serde_json::json;

    #[test]
    fn what_holds_is_told_as_facts() {
        let report = json!({
            "session": "s", "decided_at": "2026-11-30T10:00:00Z", "reason": {"text": "Cargo.lock changed."},
            "typed_summary": {
                "goal": "Fix it", "decisions": ["Here"], "open_questions": [], "stale_dropped": ["Cargo.lock"],
                "verified_facts": [{"statement": "A is B", "evidence": "a.rs:1"}], "reload": ["Cargo.lock"],
            },
        });
        let wanted = "An earlier session (s) worked here. staled checked on 2026-11-30T10:00:00Z what it knew.\n\
            Why it does not go on: Cargo.lock changed.\nIts goal:\n- Fix it\nChecked just now, and still so:\n- A is B (a.rs:1)\n\
            It decided:\n- Here\nChanged since it read them, and to be read before they are relied on:\n- Cargo.lock\n\
            Not known any more:\n- Cargo.lock\n";
        assert_eq!(told(&report), wanted);
    }

    #[test]
    fn only_a_brief_is_swept() {
        assert_eq!(pid("brief-17-01a22e214bb87546b268c7e8a53b9a55"), Some("17"));
        for other in [
            "brief-17",
            "brief-2026-notes.md",
            "brief-17-01a22e21",
            "brief-x-01a22e214bb87546b268c7e8a53b9a55",
        ] {
            assert_eq!(pid(other), None, "{other}");
        }
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let facts: Vec<_> =
            (0..1_000).map(|at| json!({"statement": format!("{at} is é{}", "x".repeat(at % 90))})).collect();
        let report = json!({"session": "s", "typed_summary": {"verified_facts": facts, "reload": ["a"]}});
        let told = told(&report);
        assert!(told.chars().count() <= CHARS_MAX, "{}", told.chars().count());
        let kept = told.lines().filter(|line| line.contains(" is é")).count();
        assert!(told.contains(&format!("- and {} more\n", 1_000 - kept)), "{told}");
    }
}
