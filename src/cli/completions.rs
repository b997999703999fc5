//! `plimsoll completions`.

use std::io::Write;

use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::Shell;

use super::exit::{Exit, Failure};
use super::{Cli, say};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll completions bash \\
    > ~/.local/share/bash-completion/completions/plimsoll
  plimsoll completions zsh > ~/.zfunc/_plimsoll
  plimsoll completions fish > ~/.config/fish/completions/plimsoll.fish

`make install` installs all three. For zsh the directory must be in `fpath` before `compinit` runs.";

/// Arguments of `plimsoll completions`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The shell
    shell: Supported,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Supported {
    Bash,
    Zsh,
    Fish,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let shell = match arguments.shell {
        Supported::Bash => Shell::Bash,
        Supported::Zsh => Shell::Zsh,
        Supported::Fish => Shell::Fish,
    };
    // Into memory first: the generator panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "plimsoll", &mut script);
    let mut out = say::output();
    out.write_all(&script)?;
    out.flush()?;
    Ok(Exit::Done)
}
