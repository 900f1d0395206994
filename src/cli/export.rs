//! `export` and `import-state`: everything that the journal knows as lines of JSON, and back into an empty state.

use super::input;
use super::shell::{Done, Shell, Stop, usual_folders};
use super::words::counted;
use crate::daemon::{FolderError, Folders};
use crate::store::export::{self, ExportError, ImportError, Moved};
use crate::store::told;
use serde_json::json;
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// Print everything that the daemon was told, as lines of JSON
#[derive(Debug, clap::Args)]
#[command(after_help = "\
It reads the journal, and neither needs a daemon nor disturbs one. What the disk was found to be is not in it: that is
looked at again wherever it is imported. The decision log is not in it either; copy decisions*.jsonl for that.

Example:
  staled export > state.jsonl
  staled export --state ~/trial | zstd > trial.jsonl.zst")]
pub(super) struct Args {
    /// The state folder [default: `$XDG_STATE_HOME/staled`, or ~/.local/state/staled]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

/// Take in what `export` printed, into a state without sessions
#[derive(Debug, clap::Args)]
#[command(after_help = "\
No daemon may be running on that state; under systemd, stop the socket too, or the next request starts one. It is all or
nothing: lines that were changed, cut or left out are refused. A journal without sessions that is there already is kept
beside the new one.

Example:
  systemctl --user stop staled.socket staled.service
  staled import-state state.jsonl
  zstdcat trial.jsonl.zst | staled import-state - --state ~/trial")]
pub(super) struct ImportArgs {
    /// What `export` printed, or - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The state folder [default: `$XDG_STATE_HOME/staled`, or ~/.local/state/staled]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

pub(super) fn run(args: &Args, shell: &mut Shell) -> Done {
    let state = state_folder(args.state.as_deref())?;
    if !state.join("journal").is_dir() {
        return Err(Stop::failed(format!("there is no journal in {}", state.display()))
            .remedy("--state names the folder that `staled serve` says it has its state in"));
    }
    let told = told::settled(&state, &mut |rows| {
        let (rows, most) = (counted(rows, "row"), told::ANSWERED_WITHIN.as_secs());
        shell.out.talk(&format!("waiting for a registration of {rows} to be answered, {most} s at the most"));
    })
    .map_err(|error| cannot_export(&error))?;
    let mut lines = Lines { shell, failed: None };
    let exported = export::export(&told, &mut lines);
    let failed = lines.failed.take();
    let moved = exported.map_err(|error| failed.unwrap_or_else(|| cannot_export(&error)))?;
    shell.out.talk(&sentence("exported", moved, &state));
    if moved.forks_left > 0 {
        let forks = counted(moved.forks_left, "fork");
        shell.out.talk(&format!("  {forks} stay here, for they are folders; their sessions go along"));
    }
    if moved.unanswered > 0 {
        let rows = counted(moved.unanswered, "row");
        shell.out.talk(&format!(
            "  {rows} came without a digest, and their registration was not answered: once imported they are stale; if \
             it still goes on, export again when it is answered"
        ));
    }
    Ok(0)
}

pub(super) fn import(args: &ImportArgs, shell: &mut Shell) -> Done {
    let state = state_folder(args.state.as_deref())?;
    let folders = Folders { state: state.clone(), ..Folders::below(&state) };
    let _claim = folders.claim_state().map_err(|error| match error {
        FolderError::Taken { .. } => Stop::failed(error).remedy(
            "`staled stop` ends it, and under systemd `systemctl --user stop staled.socket staled.service`",
        ),
        error => Stop::failed(error),
    })?;
    let id = *Uuid::now_v7().as_bytes();
    let moved = match args.file.to_str() {
        Some("-") => export::import(&state, &mut io::stdin().lock(), id),
        _ => match File::open(&args.file) {
            Ok(file) => export::import(&state, &mut BufReader::new(file), id),
            Err(error) => Err(ImportError::Read(error)),
        },
    };
    let moved = moved.map_err(|error| cannot_import(&error, &args.file))?;
    if shell.json {
        shell.out.line(json!({
            "sessions": moved.sessions,
            "rows": moved.rows,
            "observations": moved.observations,
            "state": state,
        }))?;
    } else {
        shell.out.line(sentence("imported", moved, &state))?;
    }
    Ok(0)
}

fn state_folder(named: Option<&Path>) -> Result<PathBuf, Stop> {
    match named {
        Some(state) => std::path::absolute(state).map_err(Stop::failed),
        None => Ok(usual_folders()?.state),
    }
}

fn sentence(done: &str, moved: Moved, state: &Path) -> String {
    let (sessions, rows) = (counted(moved.sessions, "session"), counted(moved.rows, "row"));
    let memory = match moved.observations {
        0 => String::new(),
        some => format!(" and {}", counted(some, "observation")),
    };
    let way = if done == "exported" { "from" } else { "into" };
    format!("{done} {sessions} with {rows}{memory} {way} {}", state.display())
}

fn cannot_export(error: &ExportError) -> Stop {
    match error {
        ExportError::Journal(journal) if journal.is_damage() => Stop::failed(journal)
            .remedy("`staled serve` sets the damage aside, and keeps what stands before it"),
        error => Stop::failed(error),
    }
}

fn cannot_import(error: &ImportError, file: &Path) -> Stop {
    let name = input::name(file);
    match error {
        ImportError::Refused { .. } | ImportError::Read(_) => Stop::failed(format!("{name}: {error}")),
        ImportError::NotEmpty { .. } => {
            Stop::failed(error).remedy("--state names another folder; `staled drop` forgets a session")
        }
        error => Stop::failed(error),
    }
}

/// The data that a command prints, as a writer.
struct Lines<'shell> {
    shell: &'shell mut Shell,
    /// How the command ends, once something could not be written.
    failed: Option<Stop>,
}

impl Lines<'_> {
    fn done(&mut self, done: Result<(), Stop>) -> io::Result<()> {
        done.map_err(|stop| {
            self.failed = Some(stop);
            io::Error::other("nobody takes it")
        })
    }
}

impl Write for Lines<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.shell.out.bytes(bytes);
        self.done(done).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.shell.out.flush();
        self.done(done)
    }
}
