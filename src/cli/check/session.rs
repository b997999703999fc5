//! A check from its start to its last step: one run, of which each next step is chosen by the steps before.

use std::time::Instant;

use super::Arguments;
use super::place::Place;
use super::{database, storage};
use crate::analysis::check::{PLACE, next_multiple};
use crate::cli::exit::Failure;
use crate::cli::interrupt::Interrupt;
use crate::cli::live::{RunProgress, Steps};
use crate::cli::recording::{Header, NextStep, Recorded, Recording};
use crate::cli::{fresh_seed, say};
use crate::load::StepPlan;
use crate::measure::Clock;
use crate::plan::check::{MIN_WINDOW, Multiple, Pacing};
use crate::record::{self, Demands};
use crate::targets::{Target, TargetFor};
use crate::units::{Nanos, group_thousands};
use crate::workload::{Shape, mix64};

/// Kept for writing down what the engine still has in its cache, and for removing what was made.
const TO_CLEAN_UP: Nanos = Nanos::seconds(5);
/// More steps than any check takes.
const MAX_STEPS: usize = 12;

/// Measures; absent if nothing was to be done but to say what would be.
pub(super) fn measure(
    arguments: &Arguments,
    demands: &Demands,
    place: Place,
) -> Result<Option<(Recorded, Interrupt)>, Failure> {
    let begun = Instant::now();
    let Some(pacing) = Pacing::of(arguments.time.0) else { return Err(too_little_time("", arguments.time.0)) };
    let session = Session {
        begun,
        arguments,
        demands,
        seed: arguments.seed.unwrap_or_else(fresh_seed),
        interrupt: Interrupt::listen()?,
    };
    session.check_counts(pacing.asked)?;
    let recorded = match place {
        Place::Storage { path, size, made } => storage::on_paths(&session, path, size, made)?,
        Place::Simulated { pairs, size } => storage::simulated(&session, pairs, size)?,
        Place::Database(subject) => database::on(&session, &subject)?,
    };
    Ok(recorded.map(|recorded| (recorded, session.interrupt)))
}

fn too_little_time(what: &str, left: Nanos) -> Failure {
    let failure = Failure::new(format_args!("{what}{left} are too little time for a check"));
    failure.with_hint("give it more: `--for 2m`, or a smaller `--size`".to_owned())
}

/// What all checks have in common.
pub(super) struct Session<'a> {
    begun: Instant,
    pub(super) arguments: &'a Arguments,
    pub(super) demands: &'a Demands,
    pub(super) seed: u64,
    pub(super) interrupt: Interrupt,
}

/// A target that is open for a check.
pub(super) struct Opened<'t, O> {
    /// The workload's name in the record.
    pub(super) workload: &'static str,
    pub(super) target: &'t dyn TargetFor<O>,
    /// As the record has it.
    pub(super) described: record::Target,
    pub(super) clock: Clock,
    /// Files and directories whose devices are watched.
    pub(super) paths: Vec<std::path::PathBuf>,
    /// Parameters besides what is asked.
    pub(super) parameters: Vec<(&'static str, String)>,
}

impl Session<'_> {
    /// Seed of data that are made.
    pub(super) fn data_seed(&self) -> u64 {
        mix64(self.seed) >> 11
    }

    /// Whether only what would be done is to be said: says it.
    pub(super) fn is_dry_run(&self, made: Option<&str>, load: &str) -> bool {
        if self.arguments.keeping.dry_run {
            let time = self.arguments.time.0;
            let pacing = Pacing::of(time).map_or(Nanos(0), |pacing| pacing.asked);
            made.iter().for_each(|made| say::line(format_args!("make     {made}, and remove it at the end")));
            say::line(format_args!("load     {load}"));
            say::line(format_args!("measure  what is asked for {pacing}, then multiples of it, {time} in all"));
        }
        self.arguments.keeping.dry_run
    }

    /// Puts on what is asked, then multiples of it, until the answer is known or the time is over.
    pub(super) fn run<S: Shape + Clone>(
        &self,
        opened: &Opened<'_, S::Operation>,
        step: impl Fn(Multiple, &Pacing) -> StepPlan<S>,
    ) -> Result<Recording, Failure> {
        let spent = Nanos(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
        let time = Nanos(self.arguments.time.0.0.saturating_sub(spent.0).saturating_sub(TO_CLEAN_UP.0));
        let Some(pacing) = Pacing::of(time) else {
            return Err(too_little_time(&format!("making the data took {spent}: the remaining "), time));
        };
        self.check_counts(pacing.asked)?;
        let mut recording = self.begin(opened)?;
        let mut used = Nanos(0);
        let began = Instant::now();
        let mut tried: Vec<f64> = Vec::new();
        while let Some(times) = next_multiple(recording.run()).filter(|_| tried.len() < MAX_STEPS) {
            let elapsed = if opened.clock.is_simulated() { used } else { Nanos(began.elapsed().as_nanos() as u64) };
            let left = Nanos(time.0.saturating_sub(elapsed.0));
            // What is asked for is measured again for as long as there is time, if that is long enough to say anything.
            let pacing = match times {
                1.0 => Pacing {
                    asked: pacing.asked.min(Nanos::seconds(left.0.saturating_sub(pacing.warmup.0) / 1_000_000_000)),
                    ..pacing
                },
                _ => pacing,
            };
            if pacing.step(times) > left || (times == 1.0 && pacing.asked < MIN_WINDOW) {
                break;
            }
            let repeat = tried.iter().filter(|known| **known == times).count();
            let (index, repeat) = (tried.len() as u32, repeat as u32);
            let planned = step(Multiple { times, index, repeat }, &pacing);
            tried.push(times);
            used.0 += pacing.step(times).0;
            if recording.step(opened.target, &planned) == NextStep::Stop {
                break;
            }
        }
        recording.progress().end();
        Ok(recording)
    }

    /// Refuses a percentile for which there will be too little work: that can be known before two minutes have gone.
    fn check_counts(&self, window: Nanos) -> Result<(), Failure> {
        let Demands { reads, writes, commits, scan: _ } = *self.demands;
        for (noun, demand) in [("reads", reads), ("writes", writes), ("commits", commits)] {
            let Some((per_s, within)) = demand.and_then(|demand| Some((demand.per_s, demand.within?))) else {
                continue;
            };
            let wanted = within.count();
            let (seconds, needed) = (window.0 as f64 / 1e9, wanted as f64 / per_s);
            if needed > seconds {
                let failure = Failure::new(format_args!(
                    "too few {noun} for their percentile: it needs {} of them, which take {} at {per_s}/s, and there are {window}",
                    group_thousands(wanted as f64),
                    Nanos((needed * 1e9) as u64)
                ));
                let minutes = (needed * 3.5 / 60.0).ceil().max(1.0);
                return Err(
                    failure.with_hint(format!("take more time: `--for {minutes}m`, or ask for a lower percentile"))
                );
            }
        }
        Ok(())
    }

    fn begin<O>(&self, opened: &Opened<'_, O>) -> Result<Recording, Failure> {
        let keeping = &self.arguments.keeping;
        let progress = RunProgress::new(Steps::UpTo(MAX_STEPS), keeping.progress.verbosity());
        let target: &dyn Target = opened.target;
        let notes = target.notes();
        notes.iter().for_each(|note| progress.note(note));
        let mut parameters = self.demands.parameters();
        parameters.insert(PLACE.to_owned(), self.arguments.place.clone());
        parameters.extend(opened.parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        let header = Header {
            workload: opened.workload,
            name: "check".to_owned(),
            tags: crate::plan::slob::tags_by_key(&keeping.tags)?,
            seed: self.seed,
            parameters,
            target: opened.described.clone(),
            paths: &opened.paths,
            notes,
        };
        Recording::begin(&keeping.runs.store(), header, opened.clock, &self.interrupt, progress)
    }
}
