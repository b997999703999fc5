//! `plimsoll host`.

mod arguments;
mod measure;
pub(super) mod run;
mod sweep;

use clap::Subcommand;

use super::exit::{Exit, Failure};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll host run                  a look at everything, in a minute
  plimsoll host run --duration 10m   does it keep its speed?
  plimsoll host run --work checksum --processors each --duration 5
  plimsoll host sweep --work memory-triad --threads 1..8
  plimsoll beside --duration 30 --warmup 5 -- host run --work processor \\
    -- io run --path /u01/test.dat --pattern randread";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Measure what processors and memory do, or keep them busy for a time
    #[command(after_long_help = run::EXAMPLES)]
    Run(run::Arguments),
    /// Measure work by numbers of threads: how it scales, and where memory is saturated
    #[command(after_long_help = sweep::EXAMPLES)]
    Sweep(sweep::Arguments),
}

impl Command {
    pub(super) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Run(arguments) => run::run(&arguments),
            Self::Sweep(arguments) => sweep::run(&arguments),
        }
    }
}
