//! `plimsoll slob map`.

use std::sync::atomic::AtomicBool;

use clap::Args;

use super::load::PutArgs;
use super::script::Script;
use crate::cli::arguments::{KeepingArgs, Rate};
use crate::cli::database_load::{self, Moment};
use crate::cli::dry_run::DryRun;
use crate::cli::exit::{Exit, Failure};
use crate::cli::live::Steps;
use crate::cli::map::{self, SearchArgs, rate_or_zero};
use crate::cli::recording::{Recorded, Recording};
use crate::cli::runner::{Beginning, Outline, Work};
use crate::cli::timed::Timed;
use crate::cli::{Interrupt, limits, say};
use crate::databases;
use crate::plan::PlanError;
use crate::plan::map::SlobMapPlan;
use crate::plan::slob::{SlobPlanRequest, facts_as_asked};
use analysis::LatencyTarget;
use load::Pace;
use model::config::{Axes, Key, MAX_SESSIONS, Origin, Setting, SlobParameters};
use model::record::{MapLevel, MapOf};
use model::workload::Arrival;
use targets::database::{Database, DatabaseOptions, OpenRequest};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll slob map -s 4 --target pg:/u01/pgdata
  plimsoll slob map -s 4 -t 16 WORK_UNIT=8 --limit p99=5ms
  plimsoll slob map -s 4 --read-pct 50..95 --rate 100..20k --duration 30
  plimsoll slob map -s 4 --demand-reads 40 --demand-updates 10
  plimsoll slob map -s 64 --rate 10..20k --points 25 \\
    --target sim:service=200us,servers=8,clock=simulated

The line is the rates of reads and updates at which both still meet the limit, as whole operations: \
each touches WORK_UNIT blocks. With a demand, the exit code is 0 inside of the line, 1 outside, and 2 where \
that is not known. Without one it is 1 if no mix meets the limit at any rate.";

/// Sessions, unless they are given: enough for the rates of most servers, and fewer than their connections.
const SESSIONS: u32 = 32;
/// Length of each measured window in seconds, unless it is given: that of `io map`.
const RUN_TIME: &str = "10";

/// Arguments of `plimsoll slob map`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// Sessions for each schema, which do what is due [default: 32 in all, at least one each]
    #[arg(
        short,
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SESSIONS)),
        help_heading = "Load"
    )]
    threads: Option<u32>,

    /// Latency limit that both kinds of operations must each meet
    #[arg(long, value_name = "pQ=TIME", default_value = "p99=50ms", help_heading = "Load")]
    limit: LatencyTarget,

    #[command(flatten)]
    search: SearchArgs,

    #[command(flatten)]
    put: PutArgs,

    /// Reads per second of a demand: is it inside of the line?
    #[arg(long, value_name = "N[/s]", requires = "demand_updates", value_parser = rate_or_zero, help_heading = "Output")]
    demand_reads: Option<Rate>,

    /// Updates per second of that demand
    #[arg(long, value_name = "N[/s]", requires = "demand_reads", value_parser = rate_or_zero, help_heading = "Output")]
    demand_updates: Option<Rate>,

    #[command(flatten)]
    keeping: KeepingArgs,
}

impl Arguments {
    fn options(&self) -> Result<DatabaseOptions, Failure> {
        self.put.options(true)
    }

    /// The request on data of so many schemas, and what of a file is not used.
    fn request(&self, schemas: u32) -> Result<(SlobPlanRequest, Option<String>), Failure> {
        let pace = Pace::Open { rate_per_s: 1.0, arrival: Arrival::Poisson };
        let asked = self.put.request(self.threads, Axes::default(), pace)?;
        let each = SESSIONS.div_ceil(asked.schemas.unwrap_or(schemas).max(1));
        let usual = [(Key::RunTime, RUN_TIME.to_owned()), (Key::ThreadsPerSchema, each.to_string())];
        let usual = usual.map(|(key, value)| Setting { key, value, origin: Origin::Default });
        let (own, given): (Vec<Setting>, Vec<Setting>) =
            asked.settings.into_iter().partition(|setting| OWN.iter().any(|(key, _)| *key == setting.key));
        // Those of a file are of other loads; what is reset is the usual again.
        let (typed, of_file): (Vec<Setting>, Vec<Setting>) =
            own.into_iter().filter(|it| !it.value.is_empty()).partition(|it| it.origin == Origin::CommandLine);
        let settings = usual.into_iter().chain(given).chain(typed).collect();
        let request =
            SlobPlanRequest { settings, seed: self.put.seed.or_fresh(), tags: self.keeping.tags.clone(), ..asked };
        refuse_other_kinds(&request)?;
        Ok((request, unused(&of_file)))
    }
}

/// What a map has of its own, whatever a parameter file says, and how it is given instead.
const OWN: [(Key, &str); 4] = [
    (Key::RunTime, "`--duration`"),
    (Key::ThreadsPerSchema, "`-t`"),
    (Key::UpdatePct, "`--read-pct`"),
    (Key::ThinkTmFrequency, "arrivals at random"),
];

fn unused(of_file: &[Setting]) -> Option<String> {
    let is_in_file = |key: Key| of_file.iter().any(|setting| setting.key == key);
    let (keys, instead): (Vec<String>, Vec<&str>) =
        OWN.into_iter().filter(|(key, _)| is_in_file(*key)).map(|(key, instead)| (format!("`{key}`"), instead)).unzip();
    let verb = if keys.len() == 1 { "is" } else { "are" };
    (!keys.is_empty())
        .then(|| format!("{} of the parameter file {verb} not used: a map has {}", keys.join(", "), instead.join(", ")))
}

/// Points are reads and updates at rates of their own.
fn refuse_other_kinds(request: &SlobPlanRequest) -> Result<(), Failure> {
    let parameters = SlobParameters::from_settings(&request.settings)?;
    let refused = |key: Key, why: &str| {
        let failure = Failure::new(format_args!("`{key}` ({}): {why}", parameters.origin(key)));
        Err(failure.with_hint(format!("leave it out, or set `{key}=0`")))
    };
    if parameters.was_set(Key::UpdatePct) {
        let failure = Failure::new("`UPDATE_PCT` on the command line: a map tries shares of its own");
        return Err(failure.with_hint("name their range instead: `--read-pct 50..95`".to_owned()));
    }
    match () {
        () if parameters.scan_pct > 0 => refused(Key::ScanPct, "a map is of reads and updates, without scans"),
        () if parameters.work_loop > 0 => refused(Key::WorkLoop, "each point of a map is measured for the same time"),
        () if parameters.think.is_some() => {
            refused(Key::ThinkTmFrequency, "operations of a map arrive at rates of their own, without pauses")
        }
        () => Ok(()),
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen()?;
    let stop = interrupt.flag();
    let mut database = databases::slob(arguments.put.address(), &arguments.options()?)?;
    let (plan, script) = interrupt.judge(planned(arguments, &mut *database, stop))?;
    map::run(Planned { arguments, plan, script, database }, Some(&interrupt))
}

/// The plan, and the script that it calls.
fn planned(
    arguments: &Arguments,
    database: &mut dyn Database,
    stop: &AtomicBool,
) -> Result<(SlobMapPlan, Option<Script>), Failure> {
    let Arguments { limit, search, demand_reads, demand_updates, put, .. } = arguments;
    let search = search.search(MapOf::Operations, limit, demand_reads.zip(*demand_updates))?;
    let timing = database.timing()?;
    let facts = database.facts(stop)?;
    let (request, notes) = arguments.request(facts.as_ref().map_or(1, |facts| facts.schemas))?;
    let facts = match facts {
        Some(facts) => facts,
        None => facts_as_asked(&request)?,
    };
    let mut plan = SlobMapPlan::new(&request, search, &facts)?;
    plan.base.notes.extend(notes);
    plan.base.notes.extend(database.check_load(&plan.base.load(), stop)?);
    limits::check_planned(std::slice::from_ref(limit), &Timed::of_slob(&plan.base, timing, put.has_flash()))?;
    let script = plan.base.script.as_ref().map(|(path, origin)| Script::check(path, origin)).transpose()?;
    plan.base.notes.iter().for_each(say::note);
    Ok((plan, script))
}

/// A map that is planned and checked, on a database that is not open yet.
struct Planned<'a> {
    arguments: &'a Arguments,
    plan: SlobMapPlan,
    script: Option<Script>,
    database: Box<dyn Database>,
}

impl<'a> Work<'a> for Planned<'a> {
    fn outline(&self) -> Outline<'a> {
        let Self { arguments, plan, .. } = self;
        let points = arguments.search.points();
        let is_simulated = arguments.put.address().has_simulated_time();
        let outline = Outline::new(&plan.head, &arguments.keeping, Steps::UpTo(points));
        Outline { time: Some(plan.time(points)), is_simulated, ..outline }
    }

    fn described(self) -> Result<DryRun, Failure> {
        let Self { arguments, plan, database, .. } = self;
        database.close()?;
        let (warmup, duration) = plan.window();
        let described = DryRun::named(&plan.head.name)
            .fact("target", arguments.put.address())
            .fact("cache", plan.base.cache)
            .fact("sessions", plan.base.max_sessions())
            .fact("seed", plan.head.seed)
            .settings(&plan.head.tags, &plan.head.parameters)
            .gap();
        Ok(arguments.search.described(described, warmup, duration))
    }

    fn carry_out(self, beginning: Beginning<'_>) -> Result<Recorded, Failure> {
        let Self { arguments, plan, script, database } = self;
        let (progress, stop) = (&beginning.progress, beginning.interrupt.flag());
        let recovering = |redo_bytes| progress.recovering(redo_bytes);
        let opened = database.open(&OpenRequest { load: plan.base.load(), recovering: &recovering, stop });
        let opened = beginning.opened(opened)?;
        let points = arguments.search.points();
        let mut step_of = |index, level: MapLevel, reading| Ok::<_, PlanError>(plan.step(index, level, reading));
        let mut call = |moment: Moment, _: &mut Recording| script.as_ref().map_or(Ok(()), |script| script.call(moment));
        database_load::record(beginning, opened, plan.base.notes.clone(), &mut call, &mut |recording, target| {
            map::measure(recording, target, points, &mut step_of)
        })
    }
}
