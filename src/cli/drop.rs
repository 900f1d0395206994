//! `drop`: forget a session.

use super::shell::{Done, Shell};
use super::words::harmless;
use crate::protocol::request::OfSession;

/// Forget a session, and end the watches that nobody else needs
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  staled drop s-01")]
pub(super) struct Args {
    /// The session
    session: String,
}

pub(super) fn run(args: &Args, shell: &mut Shell) -> Done {
    let answer = shell.ask("context.drop", &OfSession { session: args.session.clone() })?;
    if !answer.printed {
        shell.out.line(format!("{} is forgotten", harmless(&args.session)))?;
    }
    Ok(0)
}
