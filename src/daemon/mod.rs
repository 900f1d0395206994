//! The process: composition, order, shutdown.
//!
//! Everything that can fail is constructed before anything is started. What a crash left behind is healed by the
//! ordinary start. The socket is served at once, and a decision asks for its own session's looks first; systemd is told
//! that the daemon is ready only when every watch is armed and every source has been looked at once.

mod activation;
mod anchor;
mod blocking;
mod clock;
mod confine;
mod connection;
mod deaths;
mod engine;
mod folders;
mod forks;
mod handle;
mod holders;
mod journald;
mod log;
mod metrics;
mod paranoid;
mod patience;
mod post;
mod request;
mod server;
mod signal;
mod subscribers;
mod synced;
mod systemd;

pub use activation::{Activated, ActivationError};
pub use confine::{Unconfined, confine};
pub use folders::{FolderError, Folders, usual_runtime};
pub use journald::Journald;
pub use signal::Signals;

use crate::config::{Config, Level};
use crate::decision::policy::Policy;
use crate::index::storage::StorageError;
use crate::store::StoreError;
use crate::store::decision_log::LogError;
use crate::world::WorldError;
use crate::world::dart::Died;
use blocking::Undone;
use deaths::Deaths;
use engine::keeping::{Making, STARTED, keep};
use engine::{Health, Parts};
use handle::EngineHandle;
use holders::Holders;
use log::Log;
use metrics::Metrics;
use post::Post;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};
use subscribers::Subscribers;
use systemd::Systemd;
use tokio::net::UnixListener;
use tokio::sync::{Notify, mpsc, watch};

/// What the engine gets beyond the bound of a drain.
const ENGINE_GRACE: Duration = Duration::from_secs(1);

/// Ends the process.
#[derive(Debug, thiserror::Error)]
pub enum Fatal {
    /// A folder cannot be used.
    #[error(transparent)]
    Folders(#[from] FolderError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The decision log cannot be used.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The world cannot be watched.
    #[error(transparent)]
    World(#[from] WorldError),
    /// The index failed.
    #[error(transparent)]
    Index(#[from] StorageError),
    /// The socket cannot be served.
    #[error("cannot serve {}: {source}", path.display())]
    Socket {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A thread or the runtime cannot be started.
    #[error("cannot start {what}: {source}")]
    Start {
        /// What.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A thread died of a panic, so nothing that it should have told may be believed.
    #[error("the {0} thread died of a panic, so nothing more can be answered truly; start again")]
    Died(String),
    /// The engine ended although nobody asked it to.
    #[error("the engine stopped: {0}")]
    Engine(String),
}

/// What a running daemon is asked to do from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Serve on.
    Run,
    /// Drain and end.
    Stop,
}

/// What requests share.
pub(crate) struct Daemon {
    engine: EngineHandle,
    log: Log,
    config: RwLock<Arc<Config>>,
    started_with: Arc<Config>,
    folders: Folders,
    config_file: Option<PathBuf>,
    started: Instant,
    died: Died,
    holders: Holders,
    forks: forks::Forks,
    cross_checks: paranoid::CrossChecks,
    subscribers: Arc<Subscribers>,
    metrics: Arc<Metrics>,
    systemd: Systemd,
    on_level: OnLevel,
    stop: watch::Sender<Command>,
}

/// Is told the level of the daemon's own log whenever the configuration was read again.
pub type OnLevel = Box<dyn Fn(Level) + Send + Sync>;

impl Daemon {
    fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.read().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn policy(&self) -> Policy {
        Policy { forks: self.forks.folder.clone(), ..self.config().policy(&self.folders.state) }
    }

    /// Reads the configuration again. A bad file is refused and the old one stays. Returns the keys that differ from
    /// those the daemon was started with and count from the next start only.
    fn reload(&self) -> Result<Vec<&'static str>, crate::config::ConfigError> {
        self.systemd.reload(|| self.read_again())
    }

    fn read_again(&self) -> Result<Vec<&'static str>, crate::config::ConfigError> {
        let mut config = Config::load(self.config_file.as_deref())?;
        let kept = self.started_with.kept_until_restart(&config);
        self.log.configure(&config.log);
        (self.on_level)(config.log.level);
        // It may have been asked for on the command line.
        config.verify.paranoid = self.started_with.verify.paranoid;
        *self.config.write().unwrap_or_else(std::sync::PoisonError::into_inner) = Arc::new(config);
        tracing::info!(at_next_start = ?kept, "configuration reloaded");
        Ok(kept)
    }
}

/// How a daemon is started.
#[derive(Debug, Clone)]
pub struct Start {
    /// The configuration, already read.
    pub config: Config,
    /// The file that it came from when one was named; read again on reload.
    pub config_file: Option<PathBuf>,
    /// Where state and socket are.
    pub folders: Folders,
}

/// Runs a daemon until it is told to stop, by a signal or over `stop`. Blocks the calling thread, which becomes the
/// engine's.
pub fn run(start: Start, stop: watch::Sender<Command>, signals: Option<Signals>) -> Result<(), Fatal> {
    run_and_tell(start, None, stop, signals, Box::new(|_| {}), || {})
}

/// Runs a daemon as [`run`] does, on a socket that was handed over if there is one, in a process whose log listens to
/// `on_level`, and calls `serving` once, when its socket is being served.
pub fn run_and_tell(
    start: Start,
    activated: Option<Activated>,
    stop: watch::Sender<Command>,
    signals: Option<Signals>,
    on_level: OnLevel,
    serving: impl FnOnce(),
) -> Result<(), Fatal> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Fatal::Start { what: "the runtime", source })?;
    let claim = start.folders.claim()?;
    let ended = runtime.block_on(live(start, activated, stop, signals, on_level, serving));
    // What hangs on a disk is not waited for: the bound of the drain has passed.
    runtime.shutdown_timeout(ENGINE_GRACE);
    // Not before: threads that still write belong to this daemon.
    drop(claim);
    ended
}

async fn live(
    start: Start,
    activated: Option<Activated>,
    stop: watch::Sender<Command>,
    signals: Option<Signals>,
    on_level: OnLevel,
    serving: impl FnOnce(),
) -> Result<(), Fatal> {
    let Start { config, config_file, folders } = start;
    let wake = Arc::new(Notify::new());
    let deaths = Deaths::new(&wake);
    let died = deaths.listener();
    let log = Log::open(&folders.state, &config.log, &died)?;
    let waker = Arc::clone(&wake);
    let config = Arc::new(config);
    let making = Making {
        folders: folders.clone(),
        config: Arc::clone(&config),
        wake: Arc::new(move || waker.notify_one()),
        died: died.clone(),
        log: log.clone(),
    };
    let (handle, inbox) = EngineHandle::new();
    let made = match making.make(STARTED) {
        Ok(made) => Some(made),
        // A full disk gets space again, and who asks meanwhile is told.
        Err(error) if error.passes() => {
            tracing::error!(%error, "the store cannot be opened; tried again");
            handle.down().say(&error);
            None
        }
        Err(error) => {
            if let Some(activated) = activated.as_ref().filter(|_| error.is_final()) {
                activated.turn_away(&error);
            }
            return Err(error.into());
        }
    };
    let (listener, handed) = match activated {
        Some(activated) => {
            let socket = activated.socket().to_owned();
            (activated.listener, Some(socket))
        }
        None => (server::bind(&folders)?, None),
    };
    let socket = handed.as_deref().unwrap_or(&folders.socket);
    let listener = UnixListener::from_std(listener)
        .map_err(|source| Fatal::Socket { path: socket.to_owned(), source })?;
    let post = Post::take(&folders, handed.as_deref());
    let subscribers = Arc::<Subscribers>::default();
    let told = Arc::clone(&subscribers);
    let metrics = Arc::new(Metrics::new());
    let counted = Arc::clone(&metrics);
    let health = Health::default();
    let parts = Parts { log: log.clone(), subscribers: told, metrics: counted, wake, deaths, inbox, health };
    let engine = tokio::spawn(keep(making, parts, handle.down(), made));
    let forks = forks::Forks::new(&folders.state, &config, died.clone());
    let daemon = Arc::new(Daemon {
        engine: handle,
        forks,
        log,
        config: RwLock::new(Arc::clone(&config)),
        started_with: config,
        folders,
        config_file,
        started: Instant::now(),
        died,
        holders: Holders::default(),
        cross_checks: paranoid::CrossChecks::default(),
        subscribers,
        metrics,
        systemd: Systemd::usual(),
        on_level,
        stop: stop.clone(),
    });
    let ended = serve(&daemon, (listener, &post), engine, stop.subscribe(), signals, serving).await;
    if ended.is_ok() {
        // Nobody appends any more. A disk that hangs does not hold up the end.
        drop(tokio::time::timeout(ENGINE_GRACE, daemon.log.anchor()).await);
    }
    daemon.systemd.stopping();
    post.leave();
    daemon.folders.remove_pid();
    ended
}

/// Serves until told to stop, then drains within the bound.
async fn serve(
    daemon: &Arc<Daemon>,
    (listener, post): (UnixListener, &Post),
    mut engine: tokio::task::JoinHandle<Result<(), Fatal>>,
    mut stop: watch::Receiver<Command>,
    signals: Option<Signals>,
    serving: impl FnOnce(),
) -> Result<(), Fatal> {
    let signals = signals.map(|signals| signals.listen(daemon)).transpose();
    let signals = signals.map_err(|source| Fatal::Start { what: "the signal thread", source })?;
    let ready = daemon.engine.settled_all();
    // One at a time: the next is bound when this one is taken away too.
    let (bound, later) = mpsc::channel(1);
    let server = server::serve(Arc::clone(daemon), listener, later, stop.clone());
    let mut server = tokio::spawn(server);
    serving();
    let fed = tokio::spawn(systemd::feed(Arc::clone(daemon)));
    let teller = Arc::clone(daemon);
    // To the very end: who reads late is told late.
    tokio::spawn(async move { teller.systemd.tell_later().await });
    let tended = tokio::spawn(forks::tend(Arc::clone(daemon)));
    let announcer = Arc::clone(daemon);
    let announce = tokio::spawn(async move {
        ready.await;
        announcer.systemd.ready();
        tracing::info!("every watch is armed");
    });
    let ended = tokio::select! {
        ended = &mut engine => Some(flatten(ended)),
        lost = post.keep(bound) => Some(Err(lost)),
        _ = stop.wait_for(|command| *command == Command::Stop) => None,
    };
    announce.abort();
    tended.abort();
    fed.abort();
    if let Some(ended) = ended {
        return ended.and(Err(Fatal::Engine("it ended by itself".to_owned())));
    }
    daemon.systemd.stopping();
    tracing::info!("stopping");
    // One bound for both: the connections first, the engine with what is left.
    let bound = Duration::from_millis(daemon.config().server.drain_timeout_ms);
    let by = tokio::time::Instant::now() + bound;
    if tokio::time::timeout_at(by, &mut server).await.is_err() {
        tracing::warn!(bound_ms = bound.as_millis() as u64, "requests were still unanswered at the bound");
        server.abort();
    }
    // Before the engine, which keeps what was seen of forks.
    drop(tokio::time::timeout(ENGINE_GRACE, daemon.forks.stop(&daemon.engine)).await);
    daemon.engine.stop();
    // Even with nothing left of the bound the engine gets a moment: it has only its index to flush.
    let ended = tokio::time::timeout_at(by.max(tokio::time::Instant::now()) + ENGINE_GRACE, engine).await;
    drop(signals);
    ended.map_or(Ok(()), flatten)
}

fn flatten(ended: Result<Result<(), Fatal>, tokio::task::JoinError>) -> Result<(), Fatal> {
    ended.unwrap_or_else(|error| match Undone::of("it", &error) {
        Undone::Panicked(_) => Err(Fatal::Died("engine".to_owned())),
        undone @ Undone::CutShort(_) => Err(Fatal::Engine(undone.to_string())),
    })
}
