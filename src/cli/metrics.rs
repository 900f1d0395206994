//! `metrics`: the daemon's counts, as OpenMetrics text for whoever collects them.

use super::shell::{Done, Shell, Stop};
use serde_json::json;

/// Print the daemon's counts, gauges and latencies as OpenMetrics text
#[derive(Debug, clap::Args)]
#[command(after_help = "\
With --json the same text comes as one JSON string.

Example:
  staled metrics
  staled metrics > /var/lib/node_exporter/staled.prom")]
pub(super) struct Args {}

pub(super) fn run(_: &Args, shell: &mut Shell) -> Done {
    let answer = shell.ask("metrics", &json!({}))?;
    if !answer.printed {
        let text =
            answer.value.as_str().ok_or_else(|| Stop::failed("the daemon answered what is no text"))?;
        shell.out.bytes(text.as_bytes())?;
    }
    Ok(0)
}
