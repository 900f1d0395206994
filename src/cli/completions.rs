//! `completions`: tab completion for a shell, made from the same description of the command line as its help.

use super::Cli;
use super::shell::{Done, Shell};
use clap::{CommandFactory, ValueEnum};

/// Print tab completions for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  staled completions bash > ~/.local/share/bash-completion/completions/staled
  staled completions zsh > ~/.zfunc/_staled
  staled completions fish > ~/.config/fish/completions/staled.fish")]
pub(super) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Kind,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    Bash,
    Zsh,
    Fish,
}

pub(super) fn run(args: &Args, shell: &mut Shell) -> Done {
    let kind = match args.shell {
        Kind::Bash => clap_complete::Shell::Bash,
        Kind::Zsh => clap_complete::Shell::Zsh,
        Kind::Fish => clap_complete::Shell::Fish,
    };
    // Into memory first: the generator panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(kind, &mut Cli::command(), "staled", &mut script);
    shell.out.bytes(&script)?;
    Ok(0)
}
