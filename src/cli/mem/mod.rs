//! `mem`: what is remembered of a user's sessions, and whether it still holds.
//!
//! Whose memory it is says `--user`, and else the login name, as for the sessions that an agent registers. A path is meant
//! from here: it is sent as an absolute one, and what lies below here is shown as from here.

mod get;
mod look;
mod rows;
mod save;
mod session;

use super::input;
use super::shell::{Done, Shell, Stop};
use crate::world::login_name;
use clap::Subcommand;
use std::path::Path;

/// Remember, search, and see what of it has gone stale
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  staled mem save --type decision --title 'Where expiry lives' --source src/token.rs 'In Token::is_valid'
  staled mem search 'token expiry'")]
pub(super) struct Args {
    /// Whose memory [default: the login name]
    #[arg(long, global = true, value_name = "NAME")]
    user: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Start(session::StartArgs),
    Save(save::SaveArgs),
    Summary(save::SummaryArgs),
    End(session::EndArgs),
    Search(look::SearchArgs),
    Get(get::Args),
    Timeline(look::TimelineArgs),
    Stats(look::StatsArgs),
    Sessions(session::SessionsArgs),
    Forget(save::ForgetArgs),
}

pub(super) fn run(args: Args, shell: &mut Shell) -> Done {
    let user = args.user.unwrap_or_else(login_name);
    match args.command {
        Command::Start(args) => session::start(&args, user, shell),
        Command::Save(args) => save::save(args, user, shell),
        Command::Summary(args) => save::summary(&args, user, shell),
        Command::End(args) => session::end(&args, user, shell),
        Command::Search(args) => look::search(args, user, shell),
        Command::Get(args) => get::run(&args, user, shell),
        Command::Timeline(args) => look::timeline(&args, user, shell),
        Command::Stats(_) => look::stats(user, shell),
        Command::Sessions(args) => session::sessions(&args, user, shell),
        Command::Forget(args) => save::forget(&args, user, shell),
    }
}

/// A text as it was given, or standard input for `-`: without the line feed that a shell's commands end with.
fn text(given: &str) -> Result<String, Stop> {
    if given != "-" {
        return Ok(given.to_owned());
    }
    let text = input::text(Path::new("-"))?;
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

fn no_observation(id: i64) -> Stop {
    Stop::failed(format!("there is no observation {id} in this memory"))
        .remedy("`staled mem search QUERY` shows the numbers of what fits")
}
