//! The socket: bound so that nobody else can ever connect, and an accept loop that never spins.
//!
//! A permit is taken before accept. When the bound on connections is reached one more is accepted, told so, and closed;
//! when the process is out of descriptors the loop sleeps.

use super::connection::converse;
use super::{Command, Daemon, Fatal, Folders};
use crate::protocol::answer::refusal_line;
use crate::protocol::refusal::Refusal;
use crate::world::dart::fault;
use rustix::fs::{CWD, Mode, RenameFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::os::unix::net::UnixListener as StdListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::JoinSet;

/// Connections that may wait for the kernel.
const BACKLOG: i32 = 128;
/// How long to sleep when accepting fails.
const PAUSE: Duration = Duration::from_millis(100);
/// How long nothing must fail until accepting counts as going on. With every descriptor taken, one that is closed and
/// taken again would otherwise end the trouble and begin it anew, and each would be said.
const CALM: Duration = Duration::from_secs(1);
/// Connections beyond the bound that are told so at the same time.
const REFUSED_AT_ONCE: usize = 8;
/// Folders that are renamed out of the socket's way. Whoever makes more has to remove them.
const ASIDES_MAX: u32 = 16;

/// Binds the socket, mode 0600 from its first moment. The state is claimed already, so whatever lies there is a leftover.
pub(super) fn bind(folders: &Folders) -> Result<StdListener, Fatal> {
    let path = &folders.socket;
    let bound = || -> rustix::io::Result<StdListener> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::fs::fchmod(&socket, Mode::from(0o600))?;
        match rustix::fs::unlink(path) {
            Ok(()) | Err(Errno::NOENT) => {}
            // Where it stays, its being a folder says more than why it could not be renamed.
            Err(Errno::ISDIR) => set_aside(path).map_err(|_| Errno::ISDIR)?,
            Err(error) => return Err(error),
        }
        rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
        rustix::net::listen(&socket, BACKLOG)?;
        Ok(StdListener::from(socket))
    };
    bound().map_err(|error| Fatal::Socket { path: path.clone(), source: error.into() })
}

/// Renames the folder that stands at the socket's name. It may hold something, so it is not removed.
fn set_aside(path: &Path) -> rustix::io::Result<()> {
    for number in 1..=ASIDES_MAX {
        let mut aside = path.as_os_str().to_owned();
        aside.push(format!(".aside-{number}"));
        match rustix::fs::renameat_with(CWD, path, CWD, &aside, RenameFlags::NOREPLACE) {
            Ok(()) => {
                let aside = aside.display();
                tracing::error!(%aside, "a folder stood in the socket's place; it was renamed");
                return Ok(());
            }
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Errno::EXIST)
}

/// Accepts until told to stop, then waits for the connections to finish what they have begun. A listener that comes later
/// takes the place of the one before it.
pub(super) async fn serve(
    daemon: Arc<Daemon>,
    mut listener: UnixListener,
    mut later: mpsc::Receiver<UnixListener>,
    mut stop: watch::Receiver<Command>,
) {
    let dart = daemon.died.dart("server");
    let mut hall = Hall::new(&daemon, &stop);
    let mut trouble = None;
    loop {
        fault(dart.thread());
        while hall.connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(|command| *command == Command::Stop) => break,
            Some(later) = later.recv() => {
                hall.let_in_queued(std::mem::replace(&mut listener, later));
                continue;
            }
            accepted = accept(&listener, &hall.refusals, &mut trouble) => accepted,
        };
        if let Some((stream, refusal)) = accepted {
            hall.let_in(stream, refusal);
        }
    }
    drop(listener);
    while hall.connections.join_next().await.is_some() {}
}

/// Those who are connected, and the places there are for them.
struct Hall {
    daemon: Arc<Daemon>,
    stop: watch::Receiver<Command>,
    max: usize,
    places: Arc<Semaphore>,
    refusals: Arc<Semaphore>,
    connections: JoinSet<()>,
    /// How many were let in so far: the number of the last of them.
    number: u64,
}

impl Hall {
    fn new(daemon: &Arc<Daemon>, stop: &watch::Receiver<Command>) -> Self {
        let max = daemon.config().server.connections_max;
        let (places, refusals) = (Semaphore::new(max), Semaphore::new(REFUSED_AT_ONCE));
        let (daemon, stop) = (Arc::clone(daemon), stop.clone());
        let connections = JoinSet::new();
        let (places, refusals) = (Arc::new(places), Arc::new(refusals));
        Self { daemon, stop, max, places, refusals, connections, number: 0 }
    }

    /// `refusal` is the permit under which it is refused where there is no place.
    fn let_in(&mut self, stream: UnixStream, refusal: OwnedSemaphorePermit) {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            self.daemon.metrics.connections_refused.fetch_add(1, Ordering::Relaxed);
            let max = self.max;
            self.connections.spawn(async move {
                refuse(stream, max).await;
                drop(refusal);
            });
            return;
        };
        drop(refusal);
        let (daemon, stop) = (Arc::clone(&self.daemon), self.stop.clone());
        let present = daemon.metrics.connections.enter();
        self.number += 1;
        let number = self.number;
        self.connections.spawn(async move {
            converse(daemon, stream, stop, number).await;
            drop(present);
            drop(place);
        });
    }

    /// Whoever had found the socket before it was taken away is let in too: with its listener their connection would go.
    fn let_in_queued(&mut self, old: UnixListener) {
        let Ok(old) = old.into_std() else { return };
        while let Ok((stream, _)) = old.accept() {
            let Ok(refusal) = Arc::clone(&self.refusals).try_acquire_owned() else { return };
            let stream = stream.set_nonblocking(true).and_then(|()| UnixStream::from_std(stream));
            if let Some(stream) = stream.ok().filter(is_ours) {
                self.let_in(stream, refusal);
            }
        }
    }
}

/// One connection of our own user, with the permit under which it may be refused.
async fn accept(
    listener: &UnixListener,
    refusals: &Arc<Semaphore>,
    trouble: &mut Option<Trouble>,
) -> Option<(UnixStream, OwnedSemaphorePermit)> {
    let permit = Arc::clone(refusals).acquire_owned().await.ok()?;
    let accepted = match trouble {
        Some(Trouble { last, .. }) => tokio::time::timeout_at((*last + CALM).into(), listener.accept()).await,
        None => Ok(listener.accept().await),
    };
    let stream = match accepted {
        Ok(Ok((stream, _))) => Some(stream),
        Ok(Err(error)) => {
            Trouble::goes_on(trouble, &error);
            tokio::time::sleep(PAUSE).await;
            return None;
        }
        Err(_) => None,
    };
    if let Some(over) = trouble.take_if(|trouble| trouble.last.elapsed() >= CALM) {
        let ms = over.last.duration_since(over.since).as_millis() as u64;
        tracing::warn!(ms, failed = over.failed, "accepting goes on");
    }
    stream.filter(is_ours).map(|stream| (stream, permit))
}

/// Accepting fails, again and again. Said when it begins and when it is over: a client that keeps the descriptors must
/// not fill the journal too.
struct Trouble {
    since: Instant,
    last: Instant,
    failed: u64,
}

impl Trouble {
    fn goes_on(trouble: &mut Option<Self>, error: &std::io::Error) {
        let now = Instant::now();
        if trouble.is_none() {
            tracing::warn!(%error, "accepting paused");
        }
        let known = trouble.get_or_insert(Self { since: now, last: now, failed: 0 });
        (known.last, known.failed) = (now, known.failed + 1);
    }
}

/// The kernel says who connects. Nobody else is answered, root included: in a user namespace every other uid looks alike.
fn is_ours(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    match stream.peer_cred() {
        Ok(peer) if peer.uid() == own => true,
        Ok(peer) => {
            tracing::warn!(uid = peer.uid(), "a connection of another user was closed");
            false
        }
        Err(error) => {
            tracing::warn!(%error, "a connection without credentials was closed");
            false
        }
    }
}

async fn refuse(mut stream: UnixStream, max: usize) {
    let why = format!("{max} connections are open, which is server.connections_max; try again later");
    let line = refusal_line(None, &Refusal::application("overloaded", why));
    // A client that does not read its refusal loses nothing else.
    let _ = tokio::time::timeout(PAUSE, stream.write_all(line.as_bytes())).await;
}
