//! `reload`: have the daemon read its configuration again.

use super::shell::{Done, Shell};
use serde_json::json;

/// Have the daemon read its configuration again; a bad file is refused and the old one stays
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  staled reload")]
pub(super) struct Args {}

pub(super) fn run(_: &Args, shell: &mut Shell) -> Done {
    if !shell.ask("reload", &json!({}))?.printed {
        shell.out.line("the configuration is reloaded")?;
    }
    Ok(0)
}
