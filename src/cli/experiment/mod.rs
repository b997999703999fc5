//! `plimsoll experiment`.

mod asked;
mod document;
mod folder;
mod outcome;
mod plan_text;
mod run;
mod surroundings;
mod turns;

use clap::{Args, Subcommand};

use super::arguments::{FormatArgs, RunsArgs};
use super::exit::{Exit, Failure};
use super::page_file::PageArgs;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll experiment plan evening.toml          what it does, how long it takes
  plimsoll experiment run evening.toml           again, to go on after an end
  plimsoll experiment run evening.toml --budget 6h
  plimsoll experiment report evening.toml -o evening.html --text

A small file:
  [each]
  repeats = 3
  pause = \"30s\"

  [matrix]
  threads = [8, 32, 128]

  [[step]]
  run = \"slob run -s 4 -t {threads} RUN_TIME=60 --target dir:/u01/plimsoll\"

`examples/flashgrid.toml` is a larger one, and docs/experiment.md has every key. Runs are kept in a folder of the \
experiment's name below --runs, with the page.";

const RUN_EXAMPLES: &str = "\
Examples:
  plimsoll experiment run evening.toml
  plimsoll experiment run evening.toml --dry-run
  plimsoll experiment run evening.toml --budget 6h --quiet
  plimsoll experiment run evening.toml --fresh        from the beginning

Ended by Ctrl-C, by its budget or by an error, the same command goes on with what is missing. A step that cannot be done is \
said and passed over. The exit code is 1 if a load did not keep its own `--limit`, and 2 if a step could not be done.";

const PLAN_EXAMPLES: &str = "\
Examples:
  plimsoll experiment plan evening.toml

The same as `plimsoll experiment run evening.toml --dry-run`.";

const REPORT_EXAMPLES: &str = "\
Examples:
  plimsoll experiment report evening.toml
  plimsoll experiment report plimsoll-runs/evening --json
  plimsoll experiment report evening.toml -o evening.html";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Measure what a file describes; the same command again goes on where it ended
    #[command(after_long_help = RUN_EXAMPLES)]
    Run(run::Arguments),
    /// Say what would be done and how long it takes
    #[command(after_long_help = PLAN_EXAMPLES)]
    Plan(PlanArguments),
    /// Report again on what was measured
    #[command(after_long_help = REPORT_EXAMPLES)]
    Report(ReportArguments),
}

/// Arguments of `plimsoll experiment plan`.
#[derive(Debug, Args)]
pub(super) struct PlanArguments {
    #[command(flatten)]
    file: asked::FileArgs,

    #[command(flatten)]
    runs: RunsArgs,
}

/// Arguments of `plimsoll experiment report`.
#[derive(Debug, Args)]
pub(super) struct ReportArguments {
    #[command(flatten)]
    file: asked::FileArgs,

    #[command(flatten)]
    runs: RunsArgs,

    #[command(flatten)]
    page: PageArgs,

    #[command(flatten)]
    format: FormatArgs,
}

impl Command {
    pub(super) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Run(arguments) => run::run(&arguments),
            Self::Plan(PlanArguments { file, runs }) => run::plan(&file, &runs.store()),
            Self::Report(ReportArguments { file, runs, page, format }) => {
                outcome::report(&file, &runs.store(), &page, format.format())
            }
        }
    }
}
