//! `plimsoll slob`.

mod arguments;
mod doctor;
mod drop;
mod flash;
mod info;
mod like;
mod load;
mod measure;
mod own_report;
mod run;
mod script;
mod setup;
#[cfg(feature = "oracle")]
mod sql_script;
mod sweep;
mod verify;

use clap::Subcommand;

use super::exit::{Exit, Failure};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll slob setup -s 8 SCALE=1G --target dir:/u01/plimsoll
  plimsoll slob run -s 8 -t 4 RUN_TIME=60 UPDATE_PCT=20 \\
    --target dir:/u01/plimsoll
  plimsoll slob run -c slob.conf 8
  plimsoll slob sweep -s 8 --threads 1,2,4,8,16,32
  plimsoll slob verify
  plimsoll slob drop --dry-run";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make the data that load works on
    #[command(after_long_help = super::arguments::with_parameters(setup::EXAMPLES))]
    Setup(setup::Arguments),
    /// Measure one load
    #[command(after_long_help = super::arguments::with_parameters(run::EXAMPLES))]
    Run(run::Arguments),
    /// Measure several loads in turn and find the largest that the target carries
    #[command(after_long_help = super::arguments::with_parameters(sweep::EXAMPLES))]
    Sweep(sweep::Arguments),
    /// Read all data and prove that they are whole and that no commit is missing
    #[command(after_long_help = verify::EXAMPLES)]
    Verify(verify::Arguments),
    /// Show what data are there
    #[command(after_long_help = info::EXAMPLES)]
    Info(info::Arguments),
    /// Check whether an Oracle database is fit for measuring, and write what was seen into a file
    #[command(after_long_help = doctor::EXAMPLES)]
    Doctor(doctor::Arguments),
    /// Remove the data
    #[command(after_long_help = drop::EXAMPLES)]
    Drop(drop::Arguments),
    /// Print every statement that would be sent, to be read first
    #[cfg(feature = "oracle")]
    #[command(after_long_help = super::arguments::with_parameters(sql_script::EXAMPLES))]
    Script(sql_script::Arguments),
}

impl Command {
    pub(super) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Setup(arguments) => setup::run(&arguments),
            Self::Run(arguments) => run::run(&arguments),
            Self::Sweep(arguments) => sweep::run(&arguments),
            Self::Verify(arguments) => verify::run(&arguments),
            Self::Info(arguments) => info::run(&arguments),
            Self::Doctor(arguments) => doctor::run(&arguments),
            Self::Drop(arguments) => drop::run(&arguments),
            #[cfg(feature = "oracle")]
            Self::Script(arguments) => sql_script::run(&arguments),
        }
    }
}
