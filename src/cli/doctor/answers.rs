//! What the daemon says of itself, and whether what answers is the daemon at all.

use super::{Finding, Places};
use crate::cli::words::{list, number, quoted, text};
use crate::client::{Client, ClientError};
use crate::protocol::path::WirePath;
use crate::protocol::request::{List, Status};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What a daemon answered, as far as one did.
#[derive(Debug)]
pub(super) struct Asked {
    /// `hello`, or why there is none.
    pub(super) hello: Result<Value, ClientError>,
    /// `status`, or why there is none.
    pub(super) status: Result<Value, String>,
    /// The roots of its sessions, or why they are not known.
    pub(super) roots: Result<BTreeSet<PathBuf>, String>,
}

impl Asked {
    /// Asks whoever answers at this socket.
    pub(super) fn ask(socket: &Path) -> Self {
        let connected = Client::connect(socket).and_then(|mut client| {
            let hello = value(client.ask("hello", &Status::default())?)?;
            Ok((hello, client))
        });
        match connected {
            Ok((hello, mut client)) => Self {
                hello: Ok(hello),
                status: client
                    .ask("status", &Status::default())
                    .and_then(value)
                    .map_err(|error| error.to_string()),
                roots: client
                    .ask("context.list", &List::default())
                    .and_then(value)
                    .map(|listed| roots(&listed))
                    .map_err(|error| error.to_string()),
            },
            Err(error) => Self {
                hello: Err(error),
                status: Err("no daemon was asked".to_owned()),
                roots: Err("no daemon was asked".to_owned()),
            },
        }
    }

    /// The daemon's own word for where its state is.
    pub(super) fn state(&self) -> Option<PathBuf> {
        self.status.as_ref().ok().and_then(|status| wire_path(&status["state"]))
    }

    /// A number of the daemon's status.
    pub(super) fn number(&self, field: &str) -> Option<u64> {
        self.status.as_ref().ok().and_then(|status| status[field].as_u64())
    }
}

fn value(text: String) -> Result<Value, ClientError> {
    serde_json::from_str(&text).map_err(|error| ClientError::Nonsense(error.to_string()))
}

fn roots(listed: &Value) -> BTreeSet<PathBuf> {
    list(listed, "sessions").iter().filter_map(|session| wire_path(&session["root"])).collect()
}

fn wire_path(value: &Value) -> Option<PathBuf> {
    WirePath::deserialize(value).ok().map(|path| path.0)
}

pub(super) fn check(places: &Places, asked: &Asked) -> Vec<Finding> {
    let mut findings = vec![folder(places), who(places, asked), confinement(places, asked)];
    findings.extend(problems(asked));
    findings
}

/// Whoever may write to the folder of a socket can put another socket there.
fn folder(places: &Places) -> Finding {
    const NAME: &str = "socket folder";
    let folder = &places.folders.runtime;
    let own = rustix::process::geteuid().as_raw();
    match std::fs::metadata(folder) {
        Ok(found) if found.uid() != own && found.uid() != 0 => Finding::wrong(
            NAME,
            format!("{} belongs to uid {}, and we are uid {own}", folder.display(), found.uid()),
            "set XDG_RUNTIME_DIR to a folder of your own",
        ),
        // Our own has to be closed, or the daemon refuses it. One of root's, which systemd made, has to let us pass.
        Ok(found) if found.mode() & (if found.uid() == own { 0o077 } else { 0o022 }) != 0 => Finding::wrong(
            NAME,
            format!("others may enter {} (mode {:o})", folder.display(), found.mode() & 0o7777),
            format!("chmod 700 {}", quoted(folder)),
        ),
        Ok(found) => {
            let (uid, mode) = (found.uid(), found.mode() & 0o7777);
            Finding::well(NAME, format!("{} of uid {uid}, mode {mode:o}", folder.display()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Finding::well(NAME, format!("{} is not there yet, `staled serve` makes it", folder.display()))
        }
        Err(error) => Finding::wrong(
            NAME,
            format!("{} cannot be looked at: {error}", folder.display()),
            "ask as the user whose daemon it is",
        ),
    }
}

fn who(places: &Places, asked: &Asked) -> Finding {
    const NAME: &str = "daemon";
    let ours = env!("CARGO_PKG_VERSION");
    let socket = places.folders.socket.display();
    match &asked.hello {
        Ok(hello) if text(hello, "name") != env!("CARGO_PKG_NAME") => Finding::wrong(
            NAME,
            format!("what answers at {socket} is no staled but {:?}", text(hello, "name")),
            "give its own --socket",
        ),
        Ok(hello) if text(hello, "version") != ours => Finding::wrong(
            NAME,
            format!("staled {} answers at {socket}, and this is {ours}", text(hello, "version")),
            "`staled stop`, then `staled serve`",
        ),
        Ok(hello) => {
            let pid = number(hello, "pid");
            Finding::well(NAME, format!("staled {ours} answers at {socket}, pid {pid}"))
        }
        Err(ClientError::NoDaemon { source, .. }) => {
            Finding::wrong(NAME, format!("nobody answers at {socket} ({source})"), "start it: `staled serve`")
        }
        Err(error) => Finding::wrong(NAME, error.to_string(), "`staled stop`, then `staled serve`"),
    }
}

/// The daemon says how far it has confined itself; without one, only the kernel's ability can be told.
fn confinement(places: &Places, asked: &Asked) -> Finding {
    const NAME: &str = "confinement";
    let kernel = "boot the kernel with landlock among the modules of `lsm=`";
    if let Ok(status) = &asked.status {
        return match text(status, "confinement").as_str() {
            "enforced" => Finding::well(NAME, "enforced"),
            "partly" => Finding::well(NAME, "partly: this kernel's landlock knows fewer rules"),
            "off" => Finding::well(NAME, "off, as server.confine of the daemon says"),
            "" => Finding::wrong(NAME, "the daemon does not say", "`staled stop`, then `staled serve`"),
            other => Finding::wrong(NAME, format!("the kernel enforces it {other}"), kernel),
        };
    }
    match std::fs::read_to_string(places.sys.join("kernel/security/lsm")) {
        Ok(modules) if modules.trim().split(',').any(|module| module == "landlock") => {
            Finding::well(NAME, "the kernel has landlock")
        }
        Ok(_) => Finding::wrong(NAME, "the kernel runs without landlock", kernel),
        Err(error) => Finding::wrong(
            NAME,
            format!("whether the kernel has landlock cannot be told ({error})"),
            "start the daemon, which tries it: `staled serve`",
        ),
    }
}

/// What the daemon itself says is wrong: each of its sentences has its remedy in it.
fn problems(asked: &Asked) -> Vec<Finding> {
    const NAME: &str = "health";
    match (&asked.hello, &asked.status) {
        (Err(_), _) => Vec::new(),
        (Ok(_), Err(why)) => {
            vec![Finding::wrong(
                NAME,
                format!("the daemon does not tell: {why}"),
                "`staled status` asks again",
            )]
        }
        (Ok(_), Ok(status)) => {
            let problems: Vec<&str> = list(status, "problems").iter().filter_map(Value::as_str).collect();
            if problems.is_empty() {
                return vec![Finding::well(NAME, "the daemon has no problems")];
            }
            let told =
                |problem: &&str| Finding::wrong(NAME, *problem, "`staled status` shows when it is over");
            problems.iter().map(told).collect()
        }
    }
}
