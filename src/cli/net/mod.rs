//! `plimsoll net`.

mod arguments;
mod link;
mod matrix;
mod measure;
mod oratcptest;
pub(super) mod run;
mod serve;
mod survey;
mod sweep;

use clap::Subcommand;

use super::exit::{Exit, Failure};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll net serve --listen 0.0.0.0
  plimsoll net run --to db2
  plimsoll net run --to db2 --pattern bulk --flows 8 --direction both
  plimsoll net run --to db2 --pattern redo-sync --size 4k:70,64k:25,1m:5
  plimsoll net sweep --to db2 --pattern gc --rate 1000..60000 \\
    --limit p99=1ms
  plimsoll net matrix --to db2,db3,db4
  plimsoll net oratcptest db2 -mode=sync -length=8192 -duration=60s
  plimsoll net run --to self --pattern ping --duration 5";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Be the other end of the network that `net run` on another host measures
    #[command(after_long_help = serve::EXAMPLES)]
    Serve(serve::Arguments),
    /// Measure the network to a server: a survey of a minute, or one load
    #[command(after_long_help = run::EXAMPLES)]
    Run(Box<run::Arguments>),
    /// Measure several loads in turn and find the largest that the network carries
    #[command(after_long_help = sweep::EXAMPLES)]
    Sweep(Box<sweep::Arguments>),
    /// Measure the network to several servers, each by itself and all at once: which link is slow?
    #[command(after_long_help = matrix::EXAMPLES)]
    Matrix(Box<matrix::Arguments>),
    /// Measure with oratcptest's own options, and write its layout
    #[command(after_long_help = oratcptest::EXAMPLES)]
    Oratcptest(Box<oratcptest::Arguments>),
}

impl Command {
    pub(super) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Serve(arguments) => serve::run(&arguments),
            Self::Run(arguments) => run::run(&arguments),
            Self::Sweep(arguments) => sweep::run(&arguments),
            Self::Matrix(arguments) => matrix::run(&arguments),
            Self::Oratcptest(arguments) => oratcptest::run(&arguments),
        }
    }
}
