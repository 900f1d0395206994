//! `why`: the story of one decision, or of one path across sessions and decisions.

mod decision;
mod page;
mod path;

use super::shell::{Done, Shell, Stop};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Explain a decision, or a path: who rests on it and which decisions named it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 explained, 1 no session rests on the path, 2 no such decision, or no daemon.

Example:
  staled why d-019acf3e-5b7a-7c11-8f0e-3d8c5b1f7a20
  staled why d-019acf3e --html why.html && xdg-open why.html
  staled why src/token.rs")]
pub(super) struct Args {
    /// A decision (`d-…`, or the beginning of one) or a path
    #[arg(value_name = "DECISION|PATH")]
    what: OsString,
    /// Write the decision as one self-contained page; `-` is stdout
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(super) fn run(args: &Args, shell: &mut Shell) -> Done {
    match (args.what.to_str().filter(|what| is_decision(what)), &args.html) {
        (Some(decision), None) => decision::run(decision, shell),
        (Some(decision), Some(file)) => page::run(decision, file, shell),
        (None, None) => path::run(Path::new(&args.what), shell),
        (None, Some(_)) => Err(Stop::failed("--html shows a decision, and this is a path")
            .remedy("`staled why PATH` lists the decisions that named it")),
    }
}

fn is_decision(what: &str) -> bool {
    let digits = what.strip_prefix("d-").is_some_and(|id| {
        id.len() >= 4 && id.chars().all(|symbol| symbol.is_ascii_hexdigit() || symbol == '-')
    });
    digits && !Path::new(what).exists()
}
