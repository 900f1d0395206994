//! A server of the Model Context Protocol over stdin and stdout: what the daemon knows, as tools and resources for a model.
//!
//! Promise: standard output carries the protocol and nothing else; a daemon that is down, refuses or hangs is the error of
//! one call, and the server lives until its input ends. What comes from the user's tree leaves as JSON data, never as prose.
//! Absent: any knowledge of its own. Every call asks the daemon anew, over a connection of its own.
//!
//! A new tool that only forwards is one entry of [`tools::TOOLS`].

mod call;
pub mod parts;
mod path;
mod report;
pub mod schema;
mod server;
mod stdio;
pub mod tools;

pub use server::{McpError, serve};
