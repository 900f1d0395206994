//! `install`: puts what belongs to other programs where they look for it: the units of systemd, and the hooks of agents.
//!
//! What lies there already is somebody's own work. A unit that differs is replaced only with `--force`; settings of an agent
//! are edited where they stand, a backup beside them, and nothing in them is touched but entries of ours. Before the first
//! file is written everything has been looked at.

pub(super) mod agent;
mod between;
mod claude_code;
mod codex;
mod file;
mod gemini;
pub(super) mod hooks;
pub(super) mod json;
mod lines;
pub(super) mod program;
mod servers;
mod systemd;
#[cfg(test)]
mod tests;

use super::shell::{Done, Shell};

/// Put what belongs to other programs where they look for it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  staled install claude-code
  staled install systemd")]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    ClaudeCode(claude_code::Args),
    Codex(codex::Args),
    Gemini(gemini::Args),
    Systemd(systemd::SystemdArgs),
}

pub(super) fn run(args: &Args, shell: &mut Shell) -> Done {
    match &args.what {
        What::ClaudeCode(args) => agent::run(&claude_code::AGENT, &args.options, shell),
        What::Codex(args) => agent::run(&codex::AGENT, &args.options, shell),
        What::Gemini(args) => agent::run(&gemini::AGENT, &args.options, shell),
        What::Systemd(args) => systemd::run(args, shell),
    }
}

/// Every agent whose hooks can be installed.
pub(super) const AGENTS: [&agent::Agent; 3] = [&claude_code::AGENT, &codex::AGENT, &gemini::AGENT];
