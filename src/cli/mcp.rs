//! `mcp`: a server of the Model Context Protocol at stdin and stdout, for agents that speak it.

use super::shell::{Done, Shell, Stop};
use super::trace;
use crate::config::Level;
use crate::mcp;
use std::io::IsTerminal;
use std::path::PathBuf;

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
    let sockets = sockets(shell)?;
    drop(trace::begin(Level::Error, &shell.out));
    if std::io::stdin().is_terminal() {
        shell
            .out
            .talk("staled mcp waits for an agent that speaks MCP on its standard input; end it with Ctrl-D");
    }
    mcp::serve(sockets).map_err(Stop::failed)?;
    Ok(0)
}

/// Where the daemon may be. Agents hand their servers few of their variables, so where none says, the folder that a login has is
/// looked in too.
fn sockets(shell: &Shell) -> Result<Vec<PathBuf>, Stop> {
    let mut sockets = vec![shell.socket()?];
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if shell.named_socket.is_none() && !is_set("XDG_RUNTIME_DIR") && !is_set("RUNTIME_DIRECTORY") {
        let uid = rustix::process::geteuid().as_raw();
        sockets.push(PathBuf::from(format!("/run/user/{uid}/staled/staled.sock")));
    }
    Ok(sockets)
}
