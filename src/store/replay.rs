//! Journal records back into the index: the same steps that the daemon took when they were told.

use super::kept::PutBackError;
use super::record::{Record, restored};
use super::remembered::ApplyError;
use crate::index::storage::{Storage, StorageError};
use crate::index::{Index, RegisterError};
use crate::protocol::convert;
use crate::protocol::refusal::Refusal;
use crate::session::SessionId;
use crate::session::moment::Moment;
use crate::world::digest;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A record cannot be applied.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReplayError {
    /// It is not a record that this version knows.
    #[error("it is none that this version knows: {0}")]
    Record(#[from] serde_json::Error),
    /// The journal no longer has what comes next.
    #[error(
        "it has applied record {applied}, and the journal has only what is left of the records up to {snapshot}"
    )]
    Behind {
        /// How far the index has come.
        applied: u64,
        /// The last record that a snapshot stands for.
        snapshot: u64,
    },
    /// It says what could not have been told.
    #[error("it says what cannot be: {0}")]
    Refused(#[from] Refusal),
    /// A session cannot be put back.
    #[error(transparent)]
    PutBack(#[from] PutBackError),
    /// The index did not take it.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// The index failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// What it says was not foreseen.
    #[error("it makes this version panic")]
    Panicked,
}

impl ReplayError {
    /// Whether no other index could take the record either. One that was there before may be wrong itself.
    pub(super) fn is_final(&self, new_index: bool) -> bool {
        match self {
            Self::Record(_) | Self::Refused(_) | Self::PutBack(PutBackError::Refused(_)) => true,
            Self::Register(RegisterError::Storage(_))
            | Self::Storage(_)
            | Self::PutBack(PutBackError::Storage(_))
            | Self::Behind { .. } => false,
            Self::Register(_) | Self::Panicked => new_index,
        }
    }
}

/// A record that nobody thought of must not end the process before it can be said which one it was. After a panic the index
/// is not used any more.
pub(super) fn unforeseen(apply: impl FnOnce() -> Result<(), ReplayError>) -> Result<(), ReplayError> {
    catch_unwind(AssertUnwindSafe(apply)).unwrap_or(Err(ReplayError::Panicked))
}

pub(super) fn apply(index: &mut Index<impl Storage>, record: Record) -> Result<(), ReplayError> {
    match record {
        Record::Told { at, context } => {
            let session = named(context.session.as_deref().unwrap_or_default())?;
            let update = convert::update(*context, digest::blake3, session)?;
            index.register(&update, usize::MAX, Moment::from_micros(at))?;
        }
        Record::Dropped { session } => {
            if let Some(session) = index.session(&named(&session)?) {
                index.drop_session(session)?;
            }
        }
        Record::Settled { session, adopted, fresh } => {
            if let Some(session) = index.session(&named(&session)?) {
                let (adopted, fresh) = restored(&adopted, &fresh)?;
                index.restore(session, &adopted, &fresh)?;
            }
        }
        Record::Acknowledged { session, path, digest, at } => {
            if let Some(session) = index.session(&named(&session)?) {
                index.acknowledge(session, &path.0, convert::digest(&digest)?, Moment::from_micros(at))?;
            }
        }
        Record::Kept(kept) => kept.put_back(index)?,
        Record::Remembered(remembered) | Record::Forgotten(remembered) => remembered.apply(index)?,
        Record::Forked(fork) => index.put_fork(&fork.fork, &fork.to_bytes())?,
        Record::Unforked { fork } => index.remove_fork(&fork)?,
        Record::Doubted => index.doubt_all()?,
        Record::Refuted { session, target, at } => {
            if let Some(session) = index.session(&named(&session)?) {
                index.refute(session, &target.0, Moment::from_micros(at))?;
            }
        }
    }
    Ok(())
}

pub(super) fn named(session: &str) -> Result<SessionId, Refusal> {
    match SessionId::stored(session) {
        Some(own) if own.is_own() => Ok(own),
        _ => convert::session(session),
    }
}

impl From<ApplyError> for ReplayError {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Refused(refusal) => Self::Refused(refusal),
            ApplyError::Register(error) => Self::Register(error),
        }
    }
}
