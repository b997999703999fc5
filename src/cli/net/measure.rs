//! A run of one load on a network, or of several one after the other, from its plan to its report.

use super::Link;
use super::arguments::{DURATION, LinkOptions, ServerArgs, TimeArgs};
use crate::cli::dry_run::DryRun;
use crate::cli::exit::{Exit, Failure};
use crate::cli::fleet::{Experiment, FleetArgs};
use crate::cli::io::arguments::OutputArgs;
use crate::cli::recording::Recorded;
use crate::cli::runner::{self, Beginning, Landing, Outline, Work};
use crate::cli::timed::Timed;
use crate::cli::{in_turn, limits, processors};
use crate::plan::net::{NetPlan, NetPlanRequest, NetRate, plan, words};
use ::measure::Clock;
use load::StepPlan;
use model::config::io::RateRange;
use model::config::net::{NetOptions, NetServer};
use model::record::Like;
use model::workload::net::NetShape;

/// A run that is asked for.
pub(super) struct Job<'a> {
    pub(super) server: &'a ServerArgs,
    pub(super) asked: NetOptions,
    pub(super) time: &'a TimeArgs,
    pub(super) fleet: &'a FleetArgs,
    pub(super) output: &'a OutputArgs,
    /// The production that it is like, and how many times it.
    pub(super) like: Option<(Like, f64)>,
}

/// Plans and checks everything, carries it out, keeps it and reports it.
pub(super) fn run(job: Job<'_>) -> Result<Exit, Failure> {
    let Job { server, asked, time, fleet, output, like } = job;
    let fleet = fleet.join()?;
    fleet.refuse_search(asked.rates.as_ref())?;
    // A server serves one test at a time: a part is all of the load between its two hosts.
    let (plan, joined) = fleet.plan(time.seed.given(), &mut |seed| {
        let times = like.as_ref().map(|(_, times)| *times);
        let plan = plan(&NetPlanRequest { times, ..request(&asked, time, output, seed) })?;
        let experiment = Experiment::new(&plan.head, &plan.steps());
        Ok((plan, experiment))
    })?;
    let steps = plan.steps();
    limits::check_planned(&output.limits.asked(), &Timed::of_net(&steps))?;
    let described = DryRun::of(&plan.head, [("to", server.to.to_string())]);
    let described = like.iter().fold(described, |it, (like, _)| it.like(like));
    let (rates, each) = (asked.rates.as_ref(), plan.step_time());
    runner::run(Planned {
        described: described.rates(rates, "operations", each, &steps, load_words),
        outline: Outline {
            joined: Some(joined),
            limits: output.limits.asked(),
            like: like.map(|(like, _)| like),
            ..Outline::of_rates(&plan.head, &output.keeping, rates, plan.levels.len(), each)
        },
        server: server.to.clone(),
        link_options: LinkOptions { is_udp: asked.is_udp, is_durable: asked.is_durable, ..server.link.link_options() },
        what: asked.pattern.name(),
        steps,
        plan: Some(plan),
        rates: asked.rates,
    })
}

/// Load on one link, planned and checked.
pub(super) struct Planned<'a> {
    pub(super) outline: Outline<'a>,
    pub(super) described: DryRun,
    pub(super) server: NetServer,
    pub(super) link_options: LinkOptions,
    /// What the server's log calls the tests.
    pub(super) what: &'static str,
    /// What steps are made from; a survey has none, looks at the path before its steps, and repeats none.
    pub(super) plan: Option<NetPlan>,
    pub(super) steps: Vec<StepPlan<NetShape>>,
    pub(super) rates: Option<RateRange>,
}

impl<'a> Work<'a> for Planned<'a> {
    fn outline(&self) -> Outline<'a> {
        self.outline.clone()
    }

    fn described(self) -> Result<DryRun, Failure> {
        Ok(self.described)
    }

    fn carry_out(self, beginning: Beginning<'_>) -> Result<Recorded, Failure> {
        let clock = Clock::start();
        let link = Link::open(&self.server, &self.link_options, clock)?;
        let is_survey = self.plan.is_none();
        let path = if is_survey { Some(link.target().look_at_path()?) } else { None };
        let mut landing = Landing::on(link.target(), clock);
        landing.notes.splice(0..0, link.notes());
        let mut recording = beginning.record(landing)?;
        if path.is_some_and(|path| path.up_bytes.is_none()) {
            recording.note(
                "no datagram came back, so the largest packet of the path is not known: UDP may be filtered".to_owned(),
            );
        }
        let limits: &[_] = if is_survey { &[] } else { &self.outline.limits };
        let mut step_at = |index, per_s| {
            let (plan, level) = self.plan.as_ref().and_then(|plan| Some((plan, *plan.levels.first()?)))?;
            Some(plan.step(index, NetRate { per_s: Some(per_s), ..level }))
        };
        let wanted = in_turn::run_rates(
            &mut recording,
            self.rates.as_ref(),
            &self.steps,
            limits,
            &mut step_at,
            &mut |recording, step| link.step(recording, step, self.what),
        );
        drop(link);
        Ok(recording.end(wanted))
    }
}

/// What is asked of the plan.
pub(super) fn request(asked: &NetOptions, time: &TimeArgs, output: &OutputArgs, seed: u64) -> NetPlanRequest {
    NetPlanRequest {
        asked: asked.clone(),
        duration: time.duration(DURATION),
        warmup: time.warmup.0,
        arrival: asked.arrival.unwrap_or_default(),
        times: None,
        seed,
        tags: output.keeping.tags.clone(),
        processors: processors(),
    }
}

/// The load of a step, for a dry run.
pub(super) fn load_words(step: &StepPlan<NetShape>) -> String {
    let rate = step.load.rate_operations_per_s.map(|per_s| format!("{per_s} operations/s, at most "));
    format!("{}{}", rate.unwrap_or_default(), words(&step.shape))
}
