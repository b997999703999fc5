//! `plimsoll net run` without a pattern: a look at a network from all sides, in about a minute.

use super::measure::with_steps;
use crate::cli::dry_run::DryRun;
use model::record::NetSurvey;

use super::arguments::{ServerArgs, TimeArgs, redo_bytes_per_s, redo_write_bytes};
use super::link::Link;
use super::measure::{self, begin, each};
use crate::cli::arguments::Taken;
use crate::cli::exit::{Exit, Failure};
use crate::cli::fleet::Experiment;
use crate::cli::fleet::FleetArgs;
use crate::cli::interrupt::Interrupt;
use crate::cli::io::arguments::OutputArgs;
use crate::cli::limits;
use crate::cli::live::Steps;
use crate::cli::timed::Timed;
use crate::plan::net::{NetPlanRequest, survey};
use ::measure::Clock;
use model::config::net::{NetOptions, NetPattern};
use model::units::{Bytes, Nanos};

/// Length of each step's window.
pub(super) const DURATION: Nanos = Nanos::seconds(6);

/// A survey that is asked for.
pub(super) struct Job<'a> {
    pub(super) server: &'a ServerArgs,
    pub(super) redo_rate: Option<Bytes>,
    pub(super) size_from: Option<&'a str>,
    pub(super) time: &'a TimeArgs,
    pub(super) fleet: &'a FleetArgs,
    pub(super) output: &'a OutputArgs,
}

/// Reads `20M`, `20MB/s`.
pub(super) fn redo_rate(text: &str) -> Result<Bytes, String> {
    let text = text.trim();
    let rate = text.strip_suffix("/s").unwrap_or(text).parse::<Bytes>().map_err(|error| error.to_string())?;
    if rate == Bytes(0) { Err("a database without redo sends nothing to a standby".to_owned()) } else { Ok(rate) }
}

pub(super) fn run(job: &Job<'_>) -> Result<Exit, Failure> {
    let Job { server, time, fleet, output, .. } = job;
    let redo = redo(job)?;
    let asked = NetOptions::new(NetPattern::Ping);
    let (plan, joined) = fleet.join()?.plan(time.seed.given(), &mut |seed| {
        let request =
            NetPlanRequest { duration: time.duration(DURATION), ..measure::request(&asked, time, output, seed) };
        let plan = survey(&request, redo)?;
        let experiment = Experiment::new(&plan.head, &plan.steps);
        Ok((plan, experiment))
    })?;
    limits::check_planned(&output.limits, &Timed::of_net(&plan.steps))?;
    let load = Nanos(plan.steps.iter().map(|step| step.warmup.0.saturating_add(step.duration.0)).sum());
    if output.keeping.dry_run {
        let described = DryRun::of(&plan.head, [("to", server.to.to_string())])
            .gap()
            .line("look for the largest packet of the path");
        return with_steps(described, &plan.steps).part(&joined).print(Some(load), false);
    }
    let interrupt = Interrupt::listen()?;
    let clock = Clock::start();
    let link = Link::open(&server.to, &server.link.link_options(), clock)?;
    let path = link.target().look_at_path()?;
    let steps = Steps::Known(plan.steps.len(), load);
    let mut recording = begin((&plan.head, Some(&joined)), &link, steps, &output.keeping, clock, &interrupt)?;
    if path.up_bytes.is_none() {
        recording.note(
            "no datagram came back, so the largest packet of the path is not known: UDP may be filtered".to_owned(),
        );
    }
    let wanted = each(&mut recording, &link, &plan.steps, &[], "survey");
    drop(link);
    recording.end(wanted).report(output.keeping.format.format(), &output.limits, &interrupt)
}

/// The redo that is asked about: a rate that was given, or that of a run.
fn redo(job: &Job<'_>) -> Result<NetSurvey, Failure> {
    let Some(word) = job.size_from else {
        let redo_bytes_per_s = job.redo_rate.map(|Bytes(bytes)| bytes as f64);
        return Ok(NetSurvey { redo_bytes_per_s, redo_write_bytes: None });
    };
    let (_, run) = Taken::default().load(&job.output.keeping.runs.store(), word)?;
    let write_bytes = Some(f64::from(redo_write_bytes(&run, word)?));
    let bytes_per_s = job.redo_rate.map(|Bytes(bytes)| bytes as f64).or_else(|| redo_bytes_per_s(&run));
    let Some(bytes_per_s) = bytes_per_s else {
        let failure = Failure::new(format_args!("run `{word}` does not say how much redo it makes each second"));
        return Err(failure.with_hint("give it by itself: `--redo-rate 20M`".to_owned()));
    };
    Ok(NetSurvey { redo_bytes_per_s: Some(bytes_per_s.round()), redo_write_bytes: write_bytes })
}
