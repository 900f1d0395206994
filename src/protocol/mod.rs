//! What is said: JSON-RPC 2.0, one JSON object a line, over a Unix stream socket.
//!
//! Wire, disk and domain are three vocabularies. The types here are twins of what travels (and of what the journal
//! keeps); `convert` turns them inward once and checks everything there, so that nothing inside checks again. A field
//! is never renamed or given another meaning; new ones are optional.

pub mod admission;
pub mod answer;
pub mod context;
pub mod convert;
pub mod event;
pub mod exposition;
pub mod fork;
pub mod frame;
pub mod gate;
pub mod memory;
pub mod path;
pub mod recorded;
pub mod refusal;
pub mod report;
pub mod request;
pub mod time;

/// Version of the protocol, as `hello` tells it.
pub const VERSION: u32 = 1;

/// Longest request line, in bytes, unless configured otherwise.
pub const REQUEST_BYTES_MAX: usize = 16 * 1024 * 1024;
