//! Connect, ask, answer: a plain blocking client.
//!
//! An answer enters a model's context, so it is believed only from a daemon of our own user (or of root, when systemd
//! holds the socket), behind a folder that nobody else can write to.

pub mod log;
pub mod story;

use crate::protocol::answer::Answer;
use crate::protocol::refusal::Refusal;
use crate::protocol::request::{self, Subscribe};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long to wait for an answer, or until anything more of a question is taken. A registration of many files is the
/// slowest thing that can be asked.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(90);

/// No answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens.
    #[error("no daemon answers at {} ({source}); start one with `staled serve`", socket.display())]
    NoDaemon {
        /// Where it was looked for.
        socket: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Whoever listens may be somebody else.
    #[error("{} is not trusted: {why}", socket.display())]
    NotTrusted {
        /// Where.
        socket: PathBuf,
        /// Why.
        why: String,
    },
    /// The connection broke.
    #[error("the daemon at {} went away: {source}", socket.display())]
    Broken {
        /// Where.
        socket: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It takes longer than anything should.
    #[error("the daemon at {} did not answer in time; `staled status` shows how it is", socket.display())]
    Late {
        /// Where.
        socket: PathBuf,
    },
    /// The daemon answered what cannot be an answer.
    #[error("the daemon answered what is not an answer: {0}")]
    Nonsense(String),
    /// The daemon refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// A connection to the daemon.
#[derive(Debug)]
pub struct Client {
    socket: PathBuf,
    reader: BufReader<UnixStream>,
    writer: UnixStream,
    next_id: u64,
    /// The beginning of a line that has not come whole yet.
    begun: Vec<u8>,
}

impl Client {
    /// Connects to the daemon behind a socket.
    pub fn connect(socket: &Path) -> Result<Self, ClientError> {
        Self::connect_for(socket, ANSWER_TIMEOUT)
    }

    /// The same, for whoever has better to do than to wait as long as the slowest question may take.
    pub fn connect_for(socket: &Path, patience: Duration) -> Result<Self, ClientError> {
        let no_daemon = |source| ClientError::NoDaemon { socket: socket.to_owned(), source };
        let stream = connect_within(socket, patience).map_err(|source| {
            if is_late(&source) { ClientError::Late { socket: socket.to_owned() } } else { no_daemon(source) }
        })?;
        trust(socket, &stream).map_err(|why| ClientError::NotTrusted { socket: socket.to_owned(), why })?;
        stream.set_read_timeout(Some(patience)).map_err(no_daemon)?;
        let writer = stream.try_clone().map_err(no_daemon)?;
        Ok(Self {
            socket: socket.to_owned(),
            reader: BufReader::new(stream),
            writer,
            next_id: 1,
            begun: Vec::new(),
        })
    }

    /// Asks, and waits for the answer: JSON text.
    pub fn ask(&mut self, method: &str, params: &impl Serialize) -> Result<String, ClientError> {
        let id = self.next_id;
        self.next_id += 1;
        let mut line = request::line(id, method, params);
        line.push('\n');
        let socket = self.socket.clone();
        let broken = |source: io::Error| {
            if is_late(&source) {
                ClientError::Late { socket: socket.clone() }
            } else {
                ClientError::Broken { socket: socket.clone(), source }
            }
        };
        // A line or a connection that is refused is closed while we may still be writing; why stands in the answer.
        let sent = self.writer.write_all(line.as_bytes());
        if let Err(source) = sent.as_ref()
            && is_late(source)
        {
            // Who reads nothing answers nothing.
            return Err(ClientError::Late { socket });
        }
        let mut answer = String::new();
        match (sent, self.reader.read_line(&mut answer)) {
            (_, Ok(len)) if len > 0 => {}
            (Err(source), _) | (Ok(()), Err(source)) => return Err(broken(source)),
            (Ok(()), Ok(_)) => return Err(broken(io::ErrorKind::UnexpectedEof.into())),
        }
        let parsed: Answer = parse(&answer)?;
        match (parsed.id, parsed.result, parsed.error) {
            (_, _, Some(refusal)) => Err(refusal.into()),
            (Some(answered), Some(result), None) if answered == id => Ok(result.get().to_owned()),
            _ => Err(ClientError::Nonsense("it carries no result for this request".to_owned())),
        }
    }
}

/// What the daemon answered, taken apart.
pub(crate) fn parse<T: DeserializeOwned>(answer: &str) -> Result<T, ClientError> {
    serde_json::from_str(answer).map_err(|error| ClientError::Nonsense(error.to_string()))
}

/// A connection that is told what happens.
#[derive(Debug)]
pub struct Subscription {
    client: Client,
}

impl Client {
    /// Has this connection told what happens from now on.
    pub fn subscribe(mut self, wanted: &Subscribe) -> Result<Subscription, ClientError> {
        self.ask("subscribe", wanted)?;
        Ok(Subscription { client: self })
    }
}

impl Subscription {
    /// The next notification, as JSON text; `None` when nothing happens for so long.
    pub fn next(&mut self, patience: Duration) -> Result<Option<String>, ClientError> {
        let Client { socket, reader, begun, .. } = &mut self.client;
        let broken = |source| ClientError::Broken { socket: socket.clone(), source };
        // A timeout of nothing would be none at all.
        let patience = patience.max(Duration::from_millis(1));
        reader.get_ref().set_read_timeout(Some(patience)).map_err(broken)?;
        match reader.read_until(b'\n', begun) {
            Ok(_) if begun.ends_with(b"\n") => {
                let line = String::from_utf8(std::mem::take(begun));
                line.map(Some).map_err(|error| ClientError::Nonsense(error.to_string()))
            }
            Ok(_) => Err(broken(io::ErrorKind::UnexpectedEof.into())),
            Err(error) if is_late(&error) => Ok(None),
            Err(error) => Err(broken(error)),
        }
    }
}

/// Bounded from before it connects: where as many wait already as may, the kernel would have us wait for ever. What is
/// written later has the same bound.
fn connect_within(socket: &Path, patience: Duration) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(socket)?;
    let stream = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&stream, Timeout::Send, Some(patience))?;
    net::connect(&stream, &address)?;
    Ok(stream.into())
}

/// A socket's timeout has passed.
fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn trust(socket: &Path, stream: &UnixStream) -> Result<(), String> {
    let own = rustix::process::geteuid().as_raw();
    let peer = rustix::net::sockopt::socket_peercred(stream).map_err(|error| error.to_string())?;
    let peer = peer.uid.as_raw();
    if peer != own && peer != 0 {
        return Err(format!("its server runs as uid {peer}, and we as {own}"));
    }
    let folder = socket.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let found = std::fs::metadata(folder).map_err(|error| error.to_string())?;
    if found.uid() != own && found.uid() != 0 {
        return Err(format!("its folder belongs to uid {}", found.uid()));
    }
    if found.mode() & 0o022 != 0 {
        return Err(format!(
            "others may write to its folder (mode {:o}); chmod 700 it",
            found.mode() & 0o7777
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Client, ClientError};
    use std::os::unix::net::UnixListener;
    use std::path::Path;
    use std::time::Duration;

    #[test]
    fn a_daemon_that_reads_nothing_is_given_up() {
        late(|socket| {
            let mut client = Client::connect_for(socket, PATIENCE)?;
            // More than the kernel holds for a socket.
            client.ask("check", &"?".repeat(4_000_000))
        });
    }

    #[test]
    fn a_daemon_at_which_too_many_wait_is_given_up() {
        late(|socket| {
            let _waiting = [Client::connect_for(socket, PATIENCE)?, Client::connect_for(socket, PATIENCE)?];
            Client::connect_for(socket, PATIENCE).map(|_| "connected".to_owned())
        });
    }

    const PATIENCE: Duration = Duration::from_millis(50);

    /// What does not end at a daemon that accepts nobody, and lets two wait for that.
    fn late(ask: fn(&Path) -> Result<String, ClientError>) {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("socket");
        let deaf = UnixListener::bind(&socket).expect("a socket");
        rustix::net::listen(&deaf, 1).expect("it listens");
        let (told, outcome) = std::sync::mpsc::channel();
        std::thread::spawn(move || told.send(ask(&socket)));
        let outcome = outcome.recv_timeout(Duration::from_secs(60)).expect("it does not wait for ever");
        assert!(matches!(outcome, Err(ClientError::Late { .. })), "{outcome:?}");
    }
}
