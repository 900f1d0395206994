//! What an agent tells while it works: one hook event, one process, one answer.
//!
//! Promise: what the agent was shown or wrote is the baseline, never what the disk holds by the time its hook runs; what it
//! was not shown is never fresh by silence; and whatever happens here, the agent goes on. Absent: the deadline and the
//! streams (see `cli::hook`), any memory between two events but the daemon's, and contents: of files and outputs nothing
//! but digests leaves this room.
//!
//! An event is read by the agent's own file ([`claude_code`], [`codex`], [`gemini`]) into an [`event::Event`]; what its
//! calls showed becomes a sighting, by the same replay that reads whole transcripts; what the session knew
//! before decides what is recorded of it (`known`); and what has gone stale is told in [`facts`].

pub mod claude_code;
pub mod codex;
pub mod event;
pub mod facts;
mod gate;
pub mod gemini;
mod known;
mod lockfiles;
mod sight;
pub mod spool;
mod telling;
pub mod turn;
mod unpatch;

pub use event::{Agent, Event, Payload};
pub use turn::{Reply, Turn};
