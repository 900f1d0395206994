//! `mcp`: a server of the Model Context Protocol at stdin and stdout, for agents that speak it.

use super::shell::{Done, Shell, Stop};
use super::trace;
use crate::config::Level;
use crate::mcp;

/// Serve what the daemon knows to an agent that speaks MCP, over stdin and stdout
#[derive(Debug, clap::Args)]
#[command(after_help = "\
An agent starts it, and ends it by closing its input. Standard output carries the protocol alone; what there is to say goes to
stderr. The daemon need not run yet: each call asks it anew, and says when it is not there.

Example:
  claude mcp add staled -- staled mcp
  npx @modelcontextprotocol/inspector --cli staled mcp --method tools/list")]
pub(super) struct Args {}

pub(super) fn run(_: &Args, shell: &mut Shell) -> Done {
    let socket = shell.socket()?;
    drop(trace::begin(Level::Error, &shell.out));
    mcp::serve(socket).map_err(Stop::failed)?;
    Ok(0)
}
