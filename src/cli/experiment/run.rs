//! `plimsoll experiment run`, and `plan`.

use crate::cli::dry_run::DryRun;
use std::path::Path;

use clap::Args;

use super::asked::{self, Asked, Checked, FileArgs};
use super::folder::{self, Folder};
use super::turns::{self, Came, Evening};
use super::{outcome, plan_text, surroundings};
use crate::cli::arguments::{FormatArgs, ProgressArgs, RunsArgs, Seconds};
use crate::cli::exit::{Exit, Failure};
use crate::cli::interrupt::Interrupt;
use crate::cli::page_file::PageArgs;
use crate::cli::say;
use analysis::LimitAnswer;
use model::record::store::Store;

/// Arguments of `plimsoll experiment run`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    file: FileArgs,

    /// Begin no step that would end later than this from now [default: the file's, if it has one]
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    budget: Option<Seconds>,

    /// Begin anew: what was measured before is kept under another name
    #[arg(long, help_heading = "Load")]
    fresh: bool,

    #[command(flatten)]
    runs: RunsArgs,

    #[command(flatten)]
    page: PageArgs,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    progress: ProgressArgs,

    /// Only say what would be done
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    dry_run: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let store = arguments.runs.store();
    if arguments.dry_run {
        return plan_with(&arguments.file, &store, |asked| take_budget(arguments, asked));
    }
    let format = arguments.format.format();
    arguments.page.check(format)?;
    if arguments.page.is_picture() {
        return Err(outcome::no_picture());
    }
    let mut asked = asked::read(&arguments.file.file)?;
    take_budget(arguments, &mut asked);
    let path = asked.folder(store.path());
    folder::check(&asked, &path, arguments.fresh)?;
    let loads = match asked.loads(&path)? {
        Checked::Loads(loads) => loads,
        Checked::Refused(exit) => return Ok(exit),
    };
    check_surroundings(&asked)?;
    let planned = asked.planned(&loads)?;
    let interrupt = Interrupt::listen()?;
    let folder = Folder::open(&asked, &path, arguments.fresh)?;
    let evening = Evening { asked: &asked, folder: &folder.path, loads: &loads, interrupt: &interrupt };
    let came = turns::run(&evening, planned, arguments.progress.verbosity());
    let written = outcome::write(&asked, &folder.path, &came, &arguments.page, format);
    finish(&asked, &came, written, &interrupt)
}

pub(super) fn plan(file: &FileArgs, store: &Store) -> Result<Exit, Failure> {
    plan_with(file, store, |_| {})
}

fn plan_with(file: &FileArgs, store: &Store, change: impl FnOnce(&mut Asked)) -> Result<Exit, Failure> {
    let mut asked = asked::read(&file.file)?;
    change(&mut asked);
    let path = asked.folder(store.path());
    let loads = match asked.loads(&path)? {
        Checked::Loads(loads) => loads,
        Checked::Refused(exit) => return Ok(exit),
    };
    check_surroundings(&asked)?;
    let planned = asked.planned(&loads)?;
    DryRun::default().with(|text| plan_text::write(text, &asked, &path, &planned)).print(None, false)
}

fn take_budget(arguments: &Arguments, asked: &mut Asked) {
    if let Some(Seconds(budget)) = arguments.budget {
        asked.plan.budget = Some(budget);
    }
}

fn check_surroundings(asked: &Asked) -> Result<(), Failure> {
    match asked.plan.steps.iter().find(|step| step.drop_caches) {
        Some(step) => surroundings::check_drop_caches().map_err(|failure| asked.of_step(step, failure)),
        None => Ok(()),
    }
}

/// Says how it ended, and how to go on.
fn finish(
    asked: &Asked,
    came: &Came,
    reported: Result<LimitAnswer, Failure>,
    interrupt: &Interrupt,
) -> Result<Exit, Failure> {
    let again = || format!("`plimsoll experiment run {}` goes on", shown(&asked.file));
    let unmeasured = came.unmeasured;
    if let Some(exit) = interrupt.exit() {
        say::note(format_args!("the experiment was cut short; what was measured is kept, and {}", again()));
        return Ok(exit);
    }
    let verdict = reported?;
    if came.is_out_of_time {
        let what = if unmeasured == 1 { "1 run is".to_owned() } else { format!("{unmeasured} runs are") };
        say::note(format_args!("{what} left out, since the next one would end after the budget; {}", again()));
    }
    match came.failed.len() {
        0 if came.is_end_failed => {
            Err(Failure::new("the script at the end failed; the reason is above, and all runs are kept"))
        }
        0 if verdict == LimitAnswer::No => Ok(Exit::NotMet),
        0 if verdict == LimitAnswer::NoVerdict => Ok(Exit::NoVerdict),
        0 => Ok(Exit::Done),
        _ if unmeasured == 0 => {
            Err(Failure::new("all runs are made, and what was to be done behind them was not; the reasons are above"))
        }
        count => {
            let what = if count == 1 { "1 run".to_owned() } else { format!("{count} runs") };
            let failure = Failure::new(format_args!("{what} could not be made; the reasons are above"));
            Err(failure.with_hint(format!("mend that, then {}", again())))
        }
    }
}

fn shown(file: &Path) -> String {
    model::units::shell_word(&file.display().to_string())
}
