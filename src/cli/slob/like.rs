//! A load like a production's: a run of it, or a search for the multiple that is carried.

use crate::cli::dry_run::DryRun;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use super::load::LoadArgs;
use super::script::Script;
use crate::cli::database_load::{self, Moment};
use crate::cli::exit::{Exit, Failure};
use crate::cli::fleet::{Experiment, Fleet, Joined};
use crate::cli::live::Steps;
use crate::cli::recording::{NextStep, Recorded, Recording};
use crate::cli::runner::{self, Beginning, Outline, Work};
use crate::cli::supervisor::Supervisor;
use crate::cli::timed::Timed;
use crate::cli::{Interrupt, in_turn, limits, say};
use crate::databases;
use crate::plan::like::{On, SlobLikePlan, Tried, plan, times_text};
use crate::plan::share_out;
use crate::plan::slob::{SlobPlanRequest, facts_as_asked};
use analysis::{LatencyTarget, SearchPlan, VerdictOutcome, judge_all};
use load::{Share, StepPlan};
use model::config::io::RateRange;
use model::config::{Key, Origin, Role, TargetAddress};
use model::record::{self, Like};
use model::units::Nanos;
use model::workload::{SlobBlend, SlobOperation};
use targets::TargetFor;
use targets::database::{Database, OpenRequest};

/// So many times the least multiple that was not carried shows what stops it.
const BEYOND: f64 = 1.5;

/// Plans and checks everything, runs it, keeps it and reports it.
pub(super) fn run(
    arguments: &LoadArgs,
    request: &SlobPlanRequest,
    production: Like,
    times: &RateRange,
) -> Result<Exit, Failure> {
    refuse_what_production_decides(request)?;
    let fleet = arguments.fleet.join()?;
    fleet.refuse_search(Some(times))?;
    let interrupt = Interrupt::listen()?;
    let stop = interrupt.flag();
    let address = arguments.put.address();
    let on = on(address);
    let mut database = databases::slob(address, &arguments.open_options()?)?;
    let asked = Asked { arguments, request, production: &production, times };
    let (planned, joined, script) = interrupt.judge(asked.plan(&fleet, &mut *database, stop))?;
    let Planned { plan, steps } = planned;
    let trials = plan.trials_time(lowest(times), on);
    let trials = Some(trials).filter(|_| joined.may_repeat() && plan.needs_trial(on));
    let work = LikeLoad { arguments, times, plan, steps, trials, joined, share: fleet.share(), script, database };
    runner::run_with(work, Some(&interrupt), Recorded::report)
}

/// A load like a production's that is planned and checked, on a database that is not open yet.
struct LikeLoad<'a> {
    arguments: &'a LoadArgs,
    times: &'a RateRange,
    plan: SlobLikePlan,
    /// Of a search, its bounds.
    steps: Vec<StepPlan<SlobBlend>>,
    /// How long trials before the first step take at most, where there are any.
    trials: Option<Nanos>,
    joined: Joined,
    share: Share,
    script: Option<Script>,
    database: Box<dyn Database>,
}

impl<'a> Work<'a> for LikeLoad<'a> {
    fn outline(&self) -> Outline<'a> {
        let Self { arguments, plan, .. } = self;
        let steps = match self.times {
            RateRange::Between { .. } => Steps::UpTo(SearchPlan::default().max_points),
            RateRange::Each(_) => Steps::of(&self.steps),
        };
        Outline {
            joined: Some(self.joined.clone()),
            limits: arguments.limits.asked(),
            like: Some(plan.like.clone()),
            is_simulated: arguments.put.address().has_simulated_time(),
            ..Outline::new(&plan.base.head, &arguments.keeping, steps)
        }
    }

    fn described(self) -> Result<DryRun, Failure> {
        self.database.close()?;
        let trials = self.trials.map(|time| format!("up to {time} before the first step, which correct its rates"));
        let address = self.arguments.put.address();
        Ok(described(&self.plan, &self.steps, self.times, address).facts("trials", trials))
    }

    fn carry_out(self, beginning: Beginning<'_>) -> Result<Recorded, Failure> {
        let Self { arguments, times, plan, steps, trials, share, script, database, .. } = self;
        let (progress, stop) = (&beginning.progress, beginning.interrupt.flag());
        let recovering = |redo_bytes| progress.recovering(redo_bytes);
        let opened = database.open(&OpenRequest { load: plan.load(), recovering: &recovering, stop });
        let opened = beginning.opened(opened)?;
        if let (true, false, Steps::Known(_, all), RateRange::Each(_)) =
            (plan.base.has_usual_time, opened.clock().is_simulated(), Steps::of(&steps), times)
        {
            let trials = trials.map_or_else(String::new, |time| format!(", and up to {time} of trials before"));
            progress
                .line(&format!("this run takes {all}{trials} (default RUN_TIME=300); to shorten it: `RUN_TIME=60`"));
        }
        let on = on(arguments.put.address());
        let asked_limits = arguments.limits.asked();
        let line_limits = limits::of_lines(&asked_limits);
        let mut run_steps = |recording: &mut Recording, target: &dyn TargetFor<SlobOperation>| {
            // Parts would each see something else, and loads beside each other begin once.
            let may_try = trials.is_some() && Supervisor::of_this_process().is_none();
            let corrected = may_try.then(|| tried(&plan, on, times, recording, target)).flatten();
            let (plan, steps) = match corrected {
                Some(corrected) => {
                    let steps = corrected.steps(&times.named());
                    (corrected, steps)
                }
                None => (plan.clone(), steps.clone()),
            };
            match times {
                RateRange::Each(each) => {
                    let limits = if each.len() > 1 { &line_limits } else { &asked_limits };
                    in_turn::run(recording, target, &steps, limits)
                }
                RateRange::Between { lowest, highest } => {
                    let once = plan.per_s(0);
                    let rates = (lowest * once, highest * once);
                    let steps = in_turn::search(recording, rates, &line_limits, &mut |recording, index, per_s| {
                        let step = plan.step(index, 0, per_s / once);
                        let step = step.and_then(|step| share_out(vec![step], share).ok()?.pop());
                        step.map_or(NextStep::Stop, |step| recording.step(target, &step))
                    });
                    steps + beyond(recording, target, &plan, once, &line_limits)
                }
            }
        };
        let mut call = |moment: Moment, _: &mut Recording| script.as_ref().map_or(Ok(()), |script| script.call(moment));
        database_load::record(beginning, opened, plan.base.notes.clone(), &mut call, &mut run_steps)
    }
}

/// The least multiple that is asked for.
fn lowest(times: &RateRange) -> f64 {
    times.named().into_iter().fold(f64::INFINITY, f64::min)
}

/// The plan as trials of the least multiple have corrected it; absent where they showed nothing.
fn tried(
    plan: &SlobLikePlan,
    on: On,
    times: &RateRange,
    recording: &mut Recording,
    target: &dyn TargetFor<SlobOperation>,
) -> Option<SlobLikePlan> {
    let lowest = lowest(times);
    let mut last: Option<Tried> = None;
    while last.as_ref().is_none_or(|tried| !tried.is_last) {
        let plan = last.as_ref().map_or(plan, |tried| &tried.plan);
        let Some(trial) = plan.trial(lowest, on) else { break };
        // One that was cut short shows nothing.
        let (NextStep::Go, Some(seen)) = recording.tried(target, &trial) else { break };
        let Some(tried) = plan.after_trial(&seen) else {
            recording.note(
                "the trial before the first step showed nothing: the target does not count what it reads or writes"
                    .to_owned(),
            );
            break;
        };
        last = Some(tried);
    }
    let Tried { plan, note, .. } = last?;
    recording.note(note);
    recording.be_like(plan.like.clone());
    Some(plan)
}

/// One more step, well above the least multiple that was not carried: where the rate stays flat there, it is a limit that stops it. Returns
/// how many steps that were.
fn beyond(
    recording: &mut Recording,
    target: &dyn TargetFor<SlobOperation>,
    plan: &SlobLikePlan,
    once: f64,
    limits: &[LatencyTarget],
) -> usize {
    let workload = recording.run().workload();
    let rated = |step: &record::Step| Some((step.load.rate_operations_per_s?, judge_all(workload, step, limits)?));
    let tried: Vec<(f64, VerdictOutcome)> = recording.steps().iter().filter_map(rated).collect();
    let least_failing =
        tried.iter().filter(|(_, outcome)| *outcome == VerdictOutcome::Failed).map(|(rate, _)| *rate).reduce(f64::min);
    let most = tried.iter().map(|(rate, _)| *rate).fold(0.0, f64::max);
    let Some(wanted) = least_failing.map(|rate| rate * BEYOND).filter(|wanted| *wanted > most) else { return 0 };
    let Some(step) = plan.step(recording.steps().len() as u32, 0, wanted / once) else { return 0 };
    if !recording.is_going_well() {
        return 0;
    }
    recording.one_more(&step);
    recording.step(target, &step);
    1
}

/// What operations are comes from production; whoever says it too expects an effect.
fn refuse_what_production_decides(request: &SlobPlanRequest) -> Result<(), Failure> {
    let is_decided = |key: Key| key.parameter().role == Role::Load || key == Key::WorkLoop;
    let mut decided = request.settings.iter().filter(|setting| is_decided(setting.key));
    let given = decided.clone().find(|setting| setting.origin == Origin::CommandLine);
    if let Some(setting) = given {
        let failure =
            Failure::new(format_args!("`{setting}` beside `--like`, which takes what operations are from a run"));
        return Err(
            failure.with_hint("leave it out; `--dry-run` says by what the load is made like production".to_owned())
        );
    }
    if let Some(setting) = decided.next() {
        say::note(format_args!(
            "`{}` ({}) and what else says what operations are is not used beside `--like`",
            setting.key, setting.origin
        ));
    }
    Ok(())
}

fn on(address: &TargetAddress) -> On {
    match address {
        TargetAddress::Simulated(_) => On::Simulation,
        _ if address.is_server() => On::Server,
        _ => On::Engine,
    }
}

/// What the user asked for.
struct Asked<'a> {
    arguments: &'a LoadArgs,
    request: &'a SlobPlanRequest,
    production: &'a Like,
    times: &'a RateRange,
}

/// What will be done.
struct Planned {
    plan: SlobLikePlan,
    /// Of a search, its bounds.
    steps: Vec<StepPlan<SlobBlend>>,
}

impl Asked<'_> {
    /// The plan, and the script that it calls.
    fn plan(
        &self,
        fleet: &Fleet,
        database: &mut dyn Database,
        stop: &AtomicBool,
    ) -> Result<(Planned, Joined, Option<Script>), Failure> {
        let Self { arguments, request, production, times } = self;
        let on = on(arguments.put.address());
        let timing = database.timing()?;
        let facts = match database.facts(stop)? {
            Some(facts) => facts,
            None => facts_as_asked(request)?,
        };
        let times = times.named();
        let (mut planned, joined) = fleet.plan(arguments.put.seed.given(), &mut |seed| {
            let plan = plan(&SlobPlanRequest { seed, ..(*request).clone() }, production, &times, &facts, on)?;
            let steps = share_out(plan.steps(&times), fleet.share())?;
            let experiment = Experiment::new(&plan.base.head, &steps);
            Ok((Planned { plan, steps }, experiment))
        })?;
        let Planned { plan, steps } = &mut planned;
        plan.base.notes.extend(plan.note_on_warmup(steps, &times));
        plan.base.notes.extend(database.check_load(&plan.load(), stop)?);
        let timed = Timed::of_blend(&plan.all_parts(), timing, arguments.put.has_flash());
        limits::check_planned(&arguments.limits.asked(), &timed)?;
        let script = plan.base.script.as_ref().map(|(path, origin)| Script::check(path, origin)).transpose()?;
        plan.base.notes.iter().for_each(say::note);
        Ok((planned, joined, script))
    }
}

fn described(plan: &SlobLikePlan, steps: &[StepPlan<SlobBlend>], times: &RateRange, target: &TargetAddress) -> DryRun {
    let described = DryRun::named(&plan.base.head.name)
        .fact("target", target)
        .fact("seed", plan.base.head.seed)
        .settings(&plan.base.head.tags, &BTreeMap::new())
        .like(&plan.like);
    if let RateRange::Between { lowest, highest } = times {
        let most = SearchPlan::default().max_points;
        let (lowest, highest) = (times_text(*lowest), times_text(*highest));
        return described
            .line(format_args!("search from {lowest} to {highest} times production in at most {most} steps"));
    }
    described.steps(steps, |step| {
        let rate = step.load.rate_operations_per_s.unwrap_or(0.0);
        let sessions = step.load.slots();
        format!("{rate:.1} operations/s, at most {sessions} sessions on {} threads", step.lanes)
    })
}
