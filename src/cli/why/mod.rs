//! `why`: the story of one decision, or of one path across sessions and decisions.

mod decision;
mod path;

use super::shell::{Done, Shell};
use std::ffi::OsString;
use std::path::Path;

/// Explain a decision, or a path: who rests on it and which decisions named it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 explained, 1 no session rests on the path, 2 no such decision, or no daemon.

Example:
  staled why d-019acf3e-5b7a-7c11-8f0e-3d8c5b1f7a20
  staled why src/token.rs")]
pub(super) struct Args {
    /// A decision (`d-…`, or the beginning of one) or a path
    #[arg(value_name = "DECISION|PATH")]
    what: OsString,
}

pub(super) fn run(args: &Args, shell: &mut Shell) -> Done {
    match args.what.to_str().filter(|what| is_decision(what)) {
        Some(decision) => decision::run(decision, shell),
        None => path::run(Path::new(&args.what), shell),
    }
}

fn is_decision(what: &str) -> bool {
    let digits = what.strip_prefix("d-").is_some_and(|id| {
        id.len() >= 4 && id.chars().all(|symbol| symbol.is_ascii_hexdigit() || symbol == '-')
    });
    digits && !Path::new(what).exists()
}
