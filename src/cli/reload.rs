//! `reload`: have the daemon read its configuration again.

use super::shell::{Done, Shell};
use super::words::list;
use serde_json::{Value, json};

/// Have the daemon read its configuration again; a bad file is refused and the old one stays
#[derive(Debug, clap::Args)]
#[command(after_help = "\
What stands under [verify] and [journal], server.connections_max and server.confine count from the next start; the
other keys of [server], save drain_timeout_ms, for new connections; everything else, log.level too, at once.

Example:
  staled reload")]
pub(super) struct Args {}

pub(super) fn run(_: &Args, shell: &mut Shell) -> Done {
    let answer = shell.ask("reload", &json!({}))?;
    if !answer.printed {
        shell.out.line("the configuration is reloaded")?;
        shell.out.flush()?;
        let kept = list(&answer.value, "at_next_start").iter().filter_map(Value::as_str);
        kept.for_each(|key| shell.out.talk(&format!("note: {key} counts from the next start")));
    }
    Ok(0)
}
