//! One file a verb; this one finds the verb of a line and gives its answer a line.

mod check;
mod decide;
mod fork;
mod hello;
mod memory;
mod log_read;
mod metrics;
mod refute;
mod register;
mod sessions;
mod span;
mod status;
mod subscribe;
mod touch_ack;

pub(super) use register::{DEADLINE, tell_own};
pub(super) use sessions::told_again;

use super::engine::Engine;
use super::subscribers::Wanted;
use super::{Command, Daemon};
use crate::index::RegisterError;
use crate::index::storage::StorageError;
use crate::protocol::answer::{refusal_line, result_line};
use crate::protocol::refusal::Refusal;
use crate::protocol::request::{Request, Verb};
use crate::session::SessionId;
use crate::store::journal::JournalError;
use crate::world::dart::fault;
use std::sync::Arc;
use std::time::Instant;
use tracing::Instrument;

/// A result, as JSON text.
type Answer = Result<String, Refusal>;

/// What a connection does about one request.
#[derive(Debug, Default)]
pub(super) struct Reply {
    /// The line to be written.
    pub(super) line: Option<String>,
    /// What the connection is told from there on.
    pub(super) wanted: Option<Wanted>,
}

/// Answers one line of a connection. A notification gets no answer, whatever became of it.
pub(super) async fn answer(daemon: Arc<Daemon>, line: Vec<u8>, connection: u64) -> Reply {
    let began = Instant::now();
    fault("handler");
    let request = match Request::parse(&line) {
        Ok(request) => request,
        Err(refusal) => {
            daemon.metrics.refused(&refusal);
            span::of_no_request(connection).in_scope(|| span::answered(refusal.outcome(), began));
            return Reply { line: Some(refusal_line(None, &refusal)), wanted: None };
        }
    };
    drop(line);
    let span = span::of(&request, connection);
    reply(&daemon, request, began).instrument(span).await
}

async fn reply(daemon: &Arc<Daemon>, request: Request, began: Instant) -> Reply {
    let mut wanted = None;
    let answer = match request.verb {
        Ok(verb) => {
            daemon.metrics.asked(verb.method());
            dispatch(daemon, verb, began, &mut wanted).await
        }
        Err(refusal) => Err(refusal),
    };
    if let Err(refusal) = &answer {
        daemon.metrics.refused(refusal);
    }
    span::answered(answer.as_ref().map_or_else(Refusal::outcome, |_| "ok"), began);
    let line = request.id.map(|id| match answer {
        Ok(result) => result_line(&id, &result),
        Err(refusal) => refusal_line(Some(&id), &refusal),
    });
    Reply { line, wanted }
}

async fn dispatch(daemon: &Arc<Daemon>, verb: Verb, began: Instant, wanted: &mut Option<Wanted>) -> Answer {
    match verb {
        Verb::Hello => hello::hello(daemon).await,
        Verb::Register(context) => register::register(daemon, *context).await,
        Verb::Record(context) => register::record(daemon, *context).await,
        Verb::Get(ask) => sessions::get(daemon, ask).await,
        Verb::List(ask) => sessions::list(daemon, ask).await,
        Verb::Drop(ask) => sessions::drop_session(daemon, ask).await,
        Verb::Release(ask) => sessions::release(daemon, &ask),
        Verb::Decide(ask) => decide::decide(daemon, *ask, began).await,
        Verb::Status(ask) => status::status(daemon, ask).await,
        Verb::TouchAck(ask) => touch_ack::touch_ack(daemon, ask).await,
        Verb::Refute(ask) => refute::refute(daemon, ask, began).await,
        Verb::Subscribe(ask) => {
            let (asked, answer) = subscribe::subscribe(&ask)?;
            *wanted = Some(asked);
            Ok(answer)
        }
        Verb::LogRead(ask) => log_read::log_read(daemon, &ask).await,
        Verb::Check(ask) => check::check(&ask),
        Verb::Fork(ask) => fork::fork(daemon, *ask).await,
        Verb::Memory(ask) => memory::memory(daemon, *ask).await,
        Verb::Metrics => metrics::metrics(daemon).await,
        Verb::Reload => match daemon.reload() {
            Ok(kept) => Ok(serde_json::json!({ "reloaded": true, "at_next_start": kept }).to_string()),
            Err(error) => Err(Refusal::invalid_params(error)),
        },
        Verb::Shutdown => {
            daemon.stop.send_replace(Command::Stop);
            Ok("{\"stopping\":true}".to_owned())
        }
    }
}

pub(super) fn no_session(session: &SessionId) -> Refusal {
    let why = format!(
        "there is no session {:?}, or it has no results and no invariants; register it first",
        session.as_str()
    );
    Refusal::application("no_session_context", why)
}

/// The same where an empty session would do.
fn no_such_session(session: &SessionId) -> Refusal {
    let why = format!("there is no session {:?}; context.list says which there are", session.as_str());
    Refusal::application("no_session_context", why)
}

/// What happened before the question was not seen within what `limit` allows.
pub(super) fn blind(engine: &Engine, limit: &str) -> Refusal {
    let why = if engine.is_blind() {
        "the watcher does not answer, so nothing can be said about the world; it is being made anew, ask again"
            .to_owned()
    } else {
        format!(
            "not all that happened before the question was seen within {limit}, so nothing can be said about the world; \
             make that longer and ask again"
        )
    };
    Refusal::application("store_failed", why)
}

impl From<StorageError> for Refusal {
    fn from(error: StorageError) -> Self {
        tracing::error!(%error, "the index failed");
        Self::application("store_failed", error)
    }
}

impl From<JournalError> for Refusal {
    fn from(error: JournalError) -> Self {
        tracing::error!(%error, "the journal failed");
        match error {
            JournalError::TooLarge { .. } => Self::application("too_large", error),
            _ => Self::application("store_failed", error),
        }
    }
}

impl From<RegisterError> for Refusal {
    fn from(error: RegisterError) -> Self {
        match error {
            RegisterError::NoSession(_) => Self::application("no_session_context", error),
            RegisterError::TooManyRows { .. } => Self::application("too_large", error),
            RegisterError::TwoRoles(_) | RegisterError::OtherRoot { .. } => Self::invalid_params(error),
            RegisterError::Storage(error) => error.into(),
        }
    }
}
