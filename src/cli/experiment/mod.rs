//! `plimsoll experiment`.

mod asked;
mod folder;
mod outcome;
mod surroundings;
mod turns;

use std::io;
use std::io::Write;
use std::path::Path;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::arguments::{FormatArgs, RunsArgs};
use super::exit::{Exit, Failure};
use super::judged_files::JudgedArgs;
use super::page_file::PageArgs;
use crate::cli::arguments::{ProgressArgs, Seconds};
use crate::cli::children::Planned;
use crate::cli::dry_run::DryRun;
use crate::cli::{Interrupt, say};
use crate::plan::experiment::Step;
use analysis::{Case, CaseRate, CaseReading, ExperimentFound, LimitAnswer};
use asked::{Asked, Checked, FileArgs, shown};
use folder::Folder;
use model::record::store::Store;
use model::units::Nanos;
use report::NotMeasured;
use turns::{Came, Evening};

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

`examples/flashgrid.toml` is a larger one, `examples/failures.toml` causes failures, and docs/recipes/compare.md has every key. Runs are kept in a folder of the \
experiment's name below --runs, with the page.";

const RUN_EXAMPLES: &str = "\
Examples:
  plimsoll experiment run evening.toml
  plimsoll experiment run evening.toml --dry-run
  plimsoll experiment run evening.toml --budget 6h --quiet
  plimsoll experiment run evening.toml --fresh        from the beginning

Ended by Ctrl-C, by its budget or by an error, the same command goes on with what is missing. A step that cannot be done is \
said and passed over. After a failure that could not be caused or ended, nothing more is measured.

Exit code 1: a load missed its own `--limit`, or a failure missed a demand. 2: a step could not be done.";

const PLAN_EXAMPLES: &str = "\
Examples:
  plimsoll experiment plan evening.toml

The same as `plimsoll experiment run evening.toml --dry-run`.";

const REPORT_EXAMPLES: &str = "\
Examples:
  plimsoll experiment report evening.toml
  plimsoll experiment report plimsoll-runs/evening --json
  plimsoll experiment report evening.toml -o evening.html
  plimsoll experiment report evening.toml --junit evening.xml";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Measure what a file describes, or resume it
    #[command(after_long_help = RUN_EXAMPLES)]
    Run(RunArguments),
    /// Print what would be done and how long it takes
    #[command(after_long_help = PLAN_EXAMPLES)]
    Plan(PlanArguments),
    /// Report again on earlier measurements
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
    judged: JudgedArgs,

    #[command(flatten)]
    format: FormatArgs,
}

impl Command {
    pub(super) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Run(arguments) => self::run(&arguments),
            Self::Plan(PlanArguments { file, runs }) => plan_run(&file, &runs.store()),
            Self::Report(ReportArguments { file, runs, page, judged, format }) => {
                outcome::report(&file, &runs.store(), (&page, &judged), format.format())
            }
        }
    }
}

/// Version of this document's form. A field that is added does not raise it.
const FORMAT: u32 = 1;

fn document(found: &ExperimentFound, missing: &[NotMeasured]) -> Value {
    let missing =
        missing.iter().map(|NotMeasured { step, round, why }| json!({ "step": step, "round": round, "why": why }));
    let verdicts = found.compared.iter().flat_map(|compared| compared.pairs.iter().map(|pair| compared.verdict(pair)));
    json!({
        "format": FORMAT,
        "title": found.title,
        "runs_asked": found.asked,
        "runs": found.runs(),
        "summary": found.summary(),
        "varied": found.varied,
        "cases": found.cases.iter().map(case).collect::<Vec<_>>(),
        "comparisons": verdicts.collect::<Vec<_>>(),
        "not_compared": found.not_compared,
        "not_measured": missing.collect::<Vec<_>>(),
    })
}

fn case(case: &Case) -> Value {
    let rate = case.rate();
    let expected = case.against.as_ref().map(|against| {
        json!({
            "requests_per_s": against.per_s,
            "allowed_requests_per_s": against.allowed_per_s,
            "burst_requests_per_s": against.burst_per_s,
            "limit": against.whose,
            "share": against.share(),
            "has_host_cache": against.has_cache,
            "sentence": against.words,
        })
    });
    json!({
        "step": case.step,
        "load": case.load,
        "tags": case.tags,
        "carries_per_s": rate.and_then(CaseRate::carried_per_s),
        "carries": rate.map(CaseRate::words),
        "unit": rate.map(|rate| rate.unit.words()),
        "spread": case.spread(),
        "expected": expected,
        "runs": case.readings.iter().map(reading).collect::<Vec<_>>(),
    })
}

fn reading(reading: &CaseReading) -> Value {
    json!({
        "run": reading.id,
        "round": reading.round,
        "carries_per_s": reading.rate.and_then(CaseRate::carried_per_s),
        "carries": reading.rate.map(CaseRate::words),
        "stopped_by": reading.stopped_by,
        "sentence": reading.sentence,
        "failure": reading.failure.as_ref().map(|failure| json!({ "demands": failure.demands, "cost": failure.cost })),
        "is_doubtful": reading.is_doubtful,
    })
}

/// Writes every step with how long it takes, and what that comes to.
fn write_plan_text(out: &mut impl Write, asked: &Asked, folder: &Path, planned: &[Option<Planned>]) -> io::Result<()> {
    let plan = &asked.plan;
    writeln!(out, "experiment {}", plan.title.as_ref().unwrap_or(&asked.name))?;
    writeln!(out, "folder     {}", folder.display())?;
    let [steps, runs] = [(plan.steps.len(), "step"), (plan.turns.len(), "run")]
        .map(|(count, one)| format!("{count} {one}{}", if count == 1 { "" } else { "s" }));
    writeln!(out, "in all     {steps}, {runs}")?;
    if let Some(budget) = plan.budget {
        writeln!(out, "budget     {budget}")?;
    }
    plan.before.iter().try_for_each(|script| writeln!(out, "before     {}", script.trim()))?;
    plan.after.iter().try_for_each(|script| writeln!(out, "after      {}", script.trim()))?;
    writeln!(out)?;
    for (step, planned) in plan.steps.iter().zip(planned) {
        let times = if step.repeats == 1 { String::new() } else { format!(", {} times", step.repeats) };
        writeln!(out, "step {:<5} {}: {}{times}", step.number, step.name(), time_words(*planned))?;
        writeln!(out, "           plimsoll {}", shown(step))?;
        around(out, step)?;
    }
    writeln!(out)?;
    writeln!(out, "{}", sum(asked, planned))
}

fn around(out: &mut impl Write, step: &Step) -> io::Result<()> {
    let mut before: Vec<String> = Vec::new();
    if step.pause > Nanos(0) {
        before.push(format!("a pause of {}", step.pause));
    }
    before.extend(step.before.iter().map(|script| format!("`{}`", script.trim())));
    if step.drop_caches {
        before.push("the kernel's caches dropped".to_owned());
    }
    if !before.is_empty() {
        writeln!(out, "           before it: {}", before.join(", then "))?;
    }
    step.after.iter().try_for_each(|script| writeln!(out, "           after it: `{}`", script.trim()))
}

fn time_words(planned: Option<Planned>) -> String {
    match planned {
        Some(Planned { time: Some(time), is_simulated: true }) => format!("{time} of simulated time"),
        Some(Planned { time: Some(time), is_simulated: false }) => time.to_string(),
        Some(Planned { time: None, .. }) => "as long as it takes".to_owned(),
        None => "not known before its script has run".to_owned(),
    }
}

/// How long everything takes, in a sentence.
fn sum(asked: &Asked, planned: &[Option<Planned>]) -> String {
    let turns = || asked.plan.turns.iter();
    let total = |of: &dyn Fn(usize) -> u64| Nanos(turns().map(|turn| of(turn.step)).fold(0, u64::saturating_add));
    let load = |wanted: bool| {
        total(&|step| match planned[step] {
            Some(Planned { time: Some(time), is_simulated }) if is_simulated == wanted => time.0,
            _ => 0,
        })
    };
    let (real, simulated) = (load(false), load(true));
    // Before the first one nothing is waited for.
    let first = turns().next().map_or(0, |turn| asked.plan.steps[turn.step].pause.0);
    let pauses = Nanos(total(&|step| asked.plan.steps[step].pause.0).0.saturating_sub(first));
    let unknown = turns().filter(|turn| planned[turn.step].is_none_or(|planned| planned.time.is_none())).count();
    let mut parts = Vec::new();
    if real > Nanos(0) || simulated == Nanos(0) {
        parts.push(format!("{real} of load"));
    }
    if pauses > Nanos(0) {
        parts.push(format!("{pauses} of pauses"));
    }
    if simulated > Nanos(0) {
        parts.push(format!("{simulated} of simulated time, which passes in a moment"));
    }
    match unknown {
        0 => {}
        1 => parts.push("1 run whose time is not known".to_owned()),
        count => parts.push(format!("{count} runs whose time is not known")),
    }
    let all = Nanos(real.0.saturating_add(pauses.0));
    let all = if pauses > Nanos(0) && real > Nanos(0) { format!("{all}: ") } else { String::new() };
    format!("takes      {all}{}, and what it takes to make each load ready", parts.join(", "))
}

/// Arguments of `plimsoll experiment run`.
#[derive(Debug, Args)]
pub(super) struct RunArguments {
    #[command(flatten)]
    file: FileArgs,

    /// Start no step that would end later than this from now [default: that of the file, if any]
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    budget: Option<Seconds>,

    /// Start over, and keep earlier measurements under another name
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

    /// Print what would be done, and exit
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    dry_run: bool,
}

fn run(arguments: &RunArguments) -> Result<Exit, Failure> {
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

fn plan_run(file: &FileArgs, store: &Store) -> Result<Exit, Failure> {
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
    DryRun::default().with(|text| write_plan_text(text, &asked, &path, &planned)).print(None, false)
}

fn take_budget(arguments: &RunArguments, asked: &mut Asked) {
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
    let again = || format!("`plimsoll experiment run {}` goes on", run_shown(&asked.file));
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

fn run_shown(file: &Path) -> String {
    model::units::shell_word(&file.display().to_string())
}
