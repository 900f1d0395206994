//! What every command works with: the global options, the output, the way to the daemon, and how a command ends.

use super::out::Out;
use crate::client::{Client, ClientError};
use crate::daemon::Folders;
use clap::ArgAction;
use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;

/// The exit code of a command that came to its end.
pub(super) type Done = Result<u8, Stop>;

/// A command that did not come to its end.
#[derive(Debug)]
pub(super) enum Stop {
    /// Whoever read our output went away, so there is nothing left to do.
    Unread,
    /// It could not be done.
    Failed(Failure),
}

/// Why it could not be done, and what would help.
#[derive(Debug)]
pub(super) struct Failure {
    /// The exit code.
    pub(super) code: u8,
    message: String,
    remedy: Option<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "staled: {}", self.message)?;
        self.remedy.as_ref().map_or(Ok(()), |remedy| write!(f, "\n  {remedy}"))
    }
}

impl Stop {
    /// It could not be done: exit code 2.
    pub(super) fn failed(message: impl fmt::Display) -> Self {
        Self::with_code(2, message)
    }

    pub(super) fn with_code(code: u8, message: impl fmt::Display) -> Self {
        Self::Failed(Failure { code, message: message.to_string(), remedy: None })
    }

    /// Adds what would help.
    pub(super) fn remedy(self, text: impl Into<String>) -> Self {
        match self {
            Self::Failed(failure) => Self::Failed(Failure { remedy: Some(text.into()), ..failure }),
            Self::Unread => Self::Unread,
        }
    }
}

impl From<ClientError> for Stop {
    fn from(error: ClientError) -> Self {
        let word = if let ClientError::Refused(refusal) = &error { refusal.word() } else { None };
        let remedy = match word {
            Some("no_session_context") => {
                Some("`staled list` shows the sessions, `staled register FILE` adds one")
            }
            Some("overloaded") => Some("`staled status` shows the daemon's health"),
            _ => None,
        };
        let stop = Self::failed(&error);
        match remedy {
            Some(remedy) => stop.remedy(remedy),
            None => stop,
        }
    }
}

/// Options that every command takes.
#[derive(Debug, clap::Args)]
pub(super) struct Globals {
    /// The daemon's socket [env: `STALED_SOCKET`] [default: `$XDG_RUNTIME_DIR/staled/staled.sock`]
    #[arg(long, global = true, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Print one line of JSON, for programs
    #[arg(long, global = true, action = ArgAction::SetTrue)]
    json: bool,
}

/// What a command works with.
#[derive(Debug)]
pub(super) struct Shell {
    /// Where to write.
    pub(super) out: Out,
    /// JSON is wanted.
    pub(super) json: bool,
    /// The socket that was named, on the command line or in the environment.
    pub(super) named_socket: Option<PathBuf>,
}

impl Shell {
    pub(super) fn new(globals: Globals) -> Self {
        let from_environment = || std::env::var_os("STALED_SOCKET").filter(|path| !path.is_empty());
        let named_socket = globals.socket.or_else(|| from_environment().map(PathBuf::from));
        Self { out: Out::new(), json: globals.json, named_socket }
    }

    /// A connection to the daemon.
    pub(super) fn client(&self) -> Result<Client, Stop> {
        Ok(Client::connect(&self.socket()?)?)
    }

    pub(super) fn socket(&self) -> Result<PathBuf, Stop> {
        match &self.named_socket {
            Some(path) => Ok(path.clone()),
            None => Ok(usual_folders()?.socket),
        }
    }

    /// Asks the daemon once. With `--json` the answer is printed as it came, and there is nothing left to print.
    pub(super) fn ask(&mut self, method: &str, params: &impl Serialize) -> Result<Asked, Stop> {
        let text = self.client()?.ask(method, params)?;
        if self.json {
            self.out.line(&text)?;
        }
        Ok(Asked { value: parse(&text)?, printed: self.json })
    }
}

/// The daemon's answer.
pub(super) struct Asked {
    /// The answer itself.
    pub(super) value: Value,
    /// It was printed already, as JSON.
    pub(super) printed: bool,
}

/// The exit code is the answer, whether or not anybody read what was printed.
pub(super) fn answered(code: u8, printed: Result<(), Stop>) -> Done {
    match printed {
        Ok(()) | Err(Stop::Unread) => Ok(code),
        Err(stop) => Err(stop),
    }
}

/// JSON that the daemon, or its log, wrote.
pub(super) fn parse(text: &str) -> Result<Value, Stop> {
    serde_json::from_str(text)
        .map_err(|error| Stop::failed(format!("the daemon answered what is not JSON: {error}")))
}

/// The usual folders.
pub(super) fn usual_folders() -> Result<Folders, Stop> {
    Folders::usual().map_err(Stop::failed)
}
