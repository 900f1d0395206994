//! `staled` knows what an agent session still knows.
//!
//! An agent reads files, runs commands, looks at HEAD, and goes on believing what it saw. Between two turns the world
//! changes. The daemon watches every source that a session rests on, marks results stale as events arrive, keeps the
//! answer in an index, and decides from that index alone: resume, fork or fresh, with the evidence.
//!
//! # The map
//!
//! The rooms stand below in reading order; **a room uses only rooms above it**, and each outside crate has its doors. A
//! test reads this file and holds everybody to it.
//!
//! | rooms | what they do |
//! |---|---|
//! | [`session`], [`index`], [`memory`], [`decision`], [`protocol`] | believe, know, remember, conclude, say: pure, no I/O, no clock, no async |
//! | [`world`], [`store`], [`fork`] | eyes, disk and hands: the only code that touches the outside |
//! | [`config`], [`daemon`] | the process: composition, order, shutdown |
//! | [`client`], [`agent`], [`mcp`], [`cli`] | doors: they speak the protocol; only `cli serve` enters the daemon |
//!
//! # What always holds
//!
//! 1. **A decision is read behind a barrier.** A cookie made after the request came back through the same watcher as
//!    every other event, so what happened before the request has been marked.
//! 2. **Events are hints, looks are truth, and an overtaken look changes nothing.** Every touch stamps the source; an
//!    answer counts only under the latest stamp.
//! 3. **Armed before looked at.** What a path leads through is watched before it is read, and resolved again after.
//! 4. **Doubt leads away from resume.** What was lost, could not be read or did not hold still is unknown, and unknown
//!    counts as stale where it is critical.
//! 5. **A tree waits for its folders.** Only a tree none of whose folders is suspect has a digest, and a command is as
//!    fresh as everything that it read.
//! 6. **The journal is the truth.** The index in sled, with the words beside it, can be set aside at any time and is made again from it; what is left
//!    of old records is told whole, from a replay of them alone, before they go.
//! 7. **A failed store answers nothing.** The engine is taken apart and made again from what is on disk, as a start makes
//!    it; a thread that dies of a panic ends the process.
//!
//! # The path of one event, and of one decision
//!
//! notify's thread marks the sources (`world::marks`), the engine takes marks and cookies in one step
//! (`daemon::engine`), the index makes the readers suspect and stamps a check ([`index::Index::touch`]), a verifier arms
//! and looks (`world::verify`), and the index applies the answer ([`index::Index::settle`]).
//!
//! What happens in a folder of a tree stirs the folder ([`index::Index::stir`]); what its listing says goes in and out of
//! the sums of the trees that have it ([`index::tree`]). What no event tells the scrub finds (`world::scrub`).
//!
//! A request is framed and parsed ([`protocol`]), waits for its cookie and for the session's suspects
//! (`daemon::engine`), becomes a [`index::view::View`], a [`decision::Decision`], a line of the decision log, and only
//! then an answer (`daemon::request::decide`).
//!
//! What is to be remembered is planned by a pure step ([`memory::step`]), journaled as one record with what it rests on, and
//! applied (`store::remembered`). Its sources are rows of a session of the index whose name no client can spell, so what is
//! known of them is a view like any other.
//!
//! A fork is made by [`fork::Hands`] and told by the daemon (`daemon::forks`): the world that it starts from is registered
//! before it is copied, so what moved since is rows of sessions of the daemon's own. A watch apart from all others
//! (`world::guard`) hears every change in its folders, and accounts (`daemon::forks::accounts`) say whether it had a reason.
//! What a command may do in it the kernel enforces ([`fork::confine`]), and what goes home goes by the user's own hand
//! ([`fork::merge`]).

pub mod session;
pub mod index;
pub mod memory;
pub mod decision;
pub mod protocol;
pub mod world;
pub mod store;
pub mod fork;
pub mod config;
pub mod daemon;
pub mod client;
pub mod agent;
pub mod mcp;
pub mod cli;
