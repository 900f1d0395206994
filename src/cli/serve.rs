//! `serve`: the daemon, in the foreground. What it says goes to stderr; its log too, where that is not systemd's journal.

use super::shell::{Done, Shell, Stop, usual_folders};
use super::trace;
use super::words::quoted;
use crate::config::{Config, ConfigError};
use crate::daemon::{self, Activated, Command, Fatal, FolderError, Folders, Signals, Start, usual_runtime};
use crate::store::StoreError;
use crate::store::decision_log::LogError;
use crate::store::journal::JournalError;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tokio::sync::watch;

/// The exit code of what is the same at every start, such as a bad configuration; systemd is told not to try it again.
const NOT_AGAIN: u8 = 78;

/// Run the daemon, in the foreground
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 stopped as asked (SIGTERM, SIGINT, `staled stop`), 2 it cannot run or go on, and another
start may; 78 none ever will, for what the configuration says or the journal holds is not usable by this version, or the
configuration that was named is not there.
SIGHUP reloads the configuration (see `staled reload --help`), SIGUSR1 opens the decision log again.
Its own log goes to stderr; where systemd sends stderr to its journal, it goes there with a field for each thing that it
says. With log.level = \"debug\" each request and each batch of events is traced:
  journalctl -t staled STALED_SESSION=s-01

Example:
  staled serve
  staled serve --state ~/trial --config staled.toml
  staled --socket ~/trial/run/staled.sock status")]
pub(super) struct Args {
    /// The configuration [default: `$XDG_CONFIG_HOME/staled/config.toml`, or below ~/.config, or below /etc]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where journal, index and decision log are [default: `$XDG_STATE_HOME/staled`, or ~/.local/state/staled]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Where the socket is [default: the folder of --socket, or `$XDG_RUNTIME_DIR/staled`; with --state, or without that
    /// variable, `run` in the state folder]
    #[arg(long, value_name = "DIR")]
    runtime: Option<PathBuf>,
    /// Compare every decision with a rescan of the disk, whatever the configuration says
    #[arg(long)]
    paranoid: bool,
}

pub(super) fn run(args: &Args, shell: &mut Shell) -> Done {
    // Before there is any thread, for it changes the environment.
    let activated = Activated::take().map_err(|error| {
        Stop::failed(error)
            .remedy("the socket unit that `staled install systemd` writes hands over the right one")
    })?;
    // Before anything that takes a while: no signal ends the process while it starts.
    let signals =
        Signals::catch().map_err(|error| Stop::failed(format!("signals cannot be caught: {error}")))?;
    let folders = folders(args, shell.named_socket.as_deref(), activated.as_ref())?;
    let config_file = args.config.as_deref().map(absolute).transpose()?;
    let mut config = Config::load(config_file.as_deref()).map_err(|error| {
        activated.iter().filter(|_| error.is_final()).for_each(|activated| activated.turn_away(&error));
        bad_config(&error)
    })?;
    config.verify.paranoid |= args.paranoid;
    let on_level = trace::begin(config.log.level, &shell.out);
    log_panics();
    // Before any other thread is started: what is given up is given up by a thread and by those that it starts.
    let confined = daemon::confine(&folders, activated.as_ref(), config.server.confine)
        .map_err(|error| Stop::failed(format!("{error}; server.confine = \"auto\" does with less")))?;
    tracing::info!(confined, "confinement");
    let serving =
        format!("staled is serving at {} (state in {})", folders.socket.display(), folders.state.display());
    let (stop, _) = watch::channel(Command::Run);
    let start = Start { config, config_file, folders };
    let out = &shell.out;
    daemon::run_and_tell(start, activated, stop, Some(signals), on_level, || out.talk(&serving))
        .map_err(|fatal| cannot_run(&fatal))?;
    Ok(0)
}

fn folders(args: &Args, named: Option<&Path>, activated: Option<&Activated>) -> Result<Folders, Stop> {
    let state = match &args.state {
        Some(state) => absolute(state)?,
        None => usual_folders()?.state,
    };
    // Where the clients of a socket that was handed over look is decided already; its folder may be root's.
    let socket = named.filter(|_| activated.is_none()).map(absolute).transpose()?;
    let runtime = match (&args.runtime, socket.as_deref().and_then(Path::parent)) {
        (Some(runtime), _) => absolute(runtime)?,
        (None, Some(folder)) => folder.to_owned(),
        // A trial state must not meet the usual daemon at the usual socket.
        (None, None) if args.state.is_some() => state.join("run"),
        (None, None) => usual_runtime().unwrap_or_else(|| state.join("run")),
    };
    let socket = match activated {
        Some(activated) => activated.socket().to_owned(),
        None => socket.unwrap_or_else(|| runtime.join("staled.sock")),
    };
    Ok(Folders { state, runtime, socket })
}

fn absolute(path: &Path) -> Result<PathBuf, Stop> {
    std::path::absolute(path).map_err(|error| Stop::failed(format!("{}: {error}", path.display())))
}

fn bad_config(error: &ConfigError) -> Stop {
    let said = error.to_string();
    if !error.is_final() {
        return Stop::failed(said);
    }
    Stop::with_code(NOT_AGAIN, said.trim_end())
        .remedy("config/staled.toml in the repository shows every key with its default")
}

/// A message that was made when the panic came may quote what was being read: a slice of a text that is cut inside a
/// character quotes all of it. Only what stands in the program is said.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let why = panic.payload().downcast_ref::<&'static str>().copied().unwrap_or("(not told)");
        let at = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(thread = std::thread::current().name(), at, why, "panic");
    }));
}

fn cannot_run(fatal: &Fatal) -> Stop {
    let code = if matches!(fatal, Fatal::Store(error) if error.is_final()) { NOT_AGAIN } else { 2 };
    let stop = Stop::with_code(code, fatal);
    match remedy(fatal) {
        Some(remedy) => stop.remedy(remedy),
        None => stop,
    }
}

fn remedy(fatal: &Fatal) -> Option<String> {
    match fatal {
        Fatal::Folders(FolderError::Taken { .. }) => Some(
            "`staled status` shows how it is, `staled stop` ends it; --state DIR keeps another state"
                .to_owned(),
        ),
        Fatal::Folders(FolderError::Io { source, .. }) if source.kind() == ErrorKind::PermissionDenied => {
            Some("choose folders of your own with --state DIR and --runtime DIR".to_owned())
        }
        Fatal::Socket { path, .. } if path.as_os_str().len() > 107 => Some(
            "the path of a socket has at most 107 bytes; choose a shorter folder with --runtime DIR"
                .to_owned(),
        ),
        Fatal::Log(LogError::Damaged { path, .. }) => Some(format!(
            "`staled log verify --log {0}` says where; to begin a new log: mv {0} {0}.damaged",
            quoted(path)
        )),
        Fatal::Store(StoreError::Journal(error)) => beyond_us(error),
        _ => None,
    }
}

/// What a newer version wrote is for that version. What no version wrote can be given up.
fn beyond_us(error: &JournalError) -> Option<String> {
    match error {
        JournalError::Refused { segment, at_byte, .. } => Some(format!(
            "if a newer version wrote it, run that one; to give up this record and all behind it, copy {0} and then: \
             truncate -s {at_byte} {0}",
            quoted(segment)
        )),
        JournalError::OtherFormat { segment, .. } => Some(format!(
            "a newer version wrote it, run that one; to begin without any session: mv {0} {0}.newer",
            quoted(segment.parent().unwrap_or(segment))
        )),
        _ => None,
    }
}
