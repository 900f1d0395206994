//! Why a round of a command that goes on came to its end: the daemon went away, or the command itself is at its end.

use super::shell::Stop;
use crate::client::ClientError;

/// The end of a round.
pub(super) enum Ended {
    /// The daemon did not answer, or said no.
    Client(ClientError),
    /// The command ends.
    Stop(Stop),
}

impl From<ClientError> for Ended {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

impl From<Stop> for Ended {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl From<Ended> for Stop {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Client(error) => error.into(),
            Ended::Stop(stop) => stop,
        }
    }
}

/// Whether a daemon that went away may come back.
pub(super) fn is_away(error: &ClientError) -> bool {
    match error {
        ClientError::NoDaemon { .. } | ClientError::Broken { .. } => true,
        ClientError::Refused(refusal) => refusal.word() == Some("shutting_down"),
        _ => false,
    }
}
