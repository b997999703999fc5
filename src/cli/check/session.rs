//! A check from its start to its last step: one run, of which each next step is chosen by the steps before.

use crate::cli::dry_run::DryRun;
use crate::plan::RunHead;
use model::record::{CheckRequest, Demands, Load};
use std::ffi::OsString;
use std::time::Instant;

use super::left_behind::{self, LeftBehind, Note};
use super::{Arguments, CheckTarget, database, storage};
use crate::cli::exit::Failure;
use crate::cli::live::Steps;
use crate::cli::recording::{NextStep, Recorded, Recording};
use crate::cli::runner::{Landing, Outline};
use crate::cli::{Interrupt, second_look};
use crate::plan::check::{self as plan, MIN_WINDOW, Multiple, Pacing, SCAN_REQUEST, SCAN_TABLE};
use analysis::check::{self, next_multiple};
use load::{Compiled, StepPlan};
use model::units::{Nanos, group_thousands};
use model::workload::mix64;
use targets::TargetFor;

/// Kept for writing down what the engine still has in its cache, and for removing what was made.
const TO_CLEAN_UP: Nanos = Nanos::seconds(5);
/// Arrivals come by chance: so many times the time that a percentile needs in the mean.
const MARGIN: f64 = 1.1;
/// Scans that a window must hold to say anything of their rate.
const SCANS: f64 = 10.0;

/// Measures; absent if nothing was to be done but to say what would be.
pub(super) fn measure(
    arguments: &Arguments,
    demands: &Demands,
    place: CheckTarget,
) -> Result<Option<(Recorded, Interrupt)>, Failure> {
    let begun = Instant::now();
    let session =
        Session { begun, arguments, demands, seed: arguments.seed.or_fresh(), interrupt: Interrupt::listen()? };
    session.pacing(session.time_left(), None)?;
    if !arguments.keeping.dry_run {
        left_behind::look(arguments.keeping.runs.store().path());
    }
    let recorded = match place {
        CheckTarget::Storage { path, size, made } => storage::on_paths(&session, path, size, made),
        CheckTarget::Simulated { pairs, size } => storage::simulated(&session, pairs, size),
        CheckTarget::Database(subject) => database::on(&session, &subject),
    };
    let recorded = session.interrupt.judge(recorded)?;
    Ok(recorded.map(|recorded| (recorded, session.interrupt)))
}

const MAX_STEPS: usize = plan::MAX_STEPS as usize;
/// What pulses after the last step take, kept where so much time is asked for that it is not missed.
const SECOND_LOOK: Nanos = Nanos::seconds(8);
const LONG_ENOUGH: Nanos = Nanos::seconds(60);

/// A time for `--for` that is long enough, in whole minutes.
fn long_enough(time: Nanos) -> String {
    format!("`--for {}m`", time.0.div_ceil(60_000_000_000).max(1))
}

/// `--for` as it was typed, or as it is by default.
fn typed_time(words: impl Iterator<Item = OsString>, time: Nanos) -> String {
    let mut words = words.map(|word| word.to_string_lossy().into_owned());
    let given = loop {
        match words.next() {
            Some(word) if word == "--for" => break words.next(),
            Some(word) if word.starts_with("--for=") => break Some(word.trim_start_matches("--for=").to_owned()),
            Some(_) => continue,
            None => break None,
        }
    };
    format!("--for {}", given.unwrap_or_else(|| time.to_string()))
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
    /// For the record.
    pub(super) load: Load,
    pub(super) target: &'t dyn TargetFor<O>,
    pub(super) landing: Landing,
    /// Reads per second that are timed by themselves, where others are parts of updates.
    pub(super) reads_alone_per_s: Option<f64>,
    /// Bytes of one scan, where it is one of a table.
    pub(super) scan_bytes: Option<u64>,
    /// Time to keep for what follows the last step.
    pub(super) second_look: Nanos,
}

impl Session<'_> {
    /// What stays behind if the program ends now, by a second signal or otherwise. It is known as long as what is returned lives.
    pub(super) fn leaves(&self, left: &LeftBehind) -> Option<Note> {
        self.interrupt.leaves(Some(left.words.clone()));
        Note::write(self.arguments.keeping.runs.store().path(), left)
    }

    /// Seed of data that are made.
    pub(super) fn data_seed(&self) -> u64 {
        mix64(self.seed) >> 11
    }

    /// Whether only what would be done is to be said: says it.
    pub(super) fn is_dry_run(&self, made: Option<&str>, load: &str, second_look: Nanos) -> Result<bool, Failure> {
        if self.arguments.keeping.dry_run {
            let time = self.arguments.time.0;
            let pacing = self.pacing(self.time_left(), None).map_or(Nanos(0), |pacing| pacing.asked);
            let made = made.map(|made| format!("{made}, and remove it at the end"));
            let measure = format!("the requested load {pacing}, then multiples of it, {time} in all");
            DryRun::default()
                .fact("ask", check::words(self.demands))
                .facts("make", made)
                .fact("load", load)
                .fact("measure", measure)
                .facts("pulses", (second_look > Nanos(0)).then(|| second_look::words(second_look)))
                .print(None, false)?;
        }
        Ok(self.arguments.keeping.dry_run)
    }

    /// Puts on what is asked, then multiples of it, until the answer is known or the time is over.
    pub(super) fn run<S: Compiled>(
        &self,
        opened: Opened<'_, S::Operation>,
        step: impl Fn(Multiple, &Pacing) -> StepPlan<S>,
    ) -> Result<Recording, Failure> {
        let time = Nanos(self.time_left().0.saturating_sub(opened.second_look.0));
        let pacing = self.pacing(time, opened.reads_alone_per_s)?;
        let Opened { load, target, landing, scan_bytes, .. } = opened;
        let is_simulated = landing.clock.is_simulated();
        let mut recording = self.begin(load, landing, scan_bytes)?;
        let mut used = Nanos(0);
        let began = Instant::now();
        let mut tried: Vec<f64> = Vec::new();
        while let Some(times) = next_multiple(recording.run()).filter(|_| tried.len() < MAX_STEPS) {
            let elapsed = if is_simulated { used } else { Nanos(began.elapsed().as_nanos() as u64) };
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
            if recording.step(target, &planned) == NextStep::Stop {
                break;
            }
        }
        recording.progress().end();
        Ok(recording)
    }

    /// The time to keep for pulses, if there may be any.
    pub(super) fn second_look(&self, may_be: bool) -> Nanos {
        let is_wanted = may_be && !self.arguments.no_experiments && self.arguments.time.0 >= LONG_ENOUGH;
        if is_wanted { SECOND_LOOK } else { Nanos(0) }
    }

    fn spent(&self) -> Nanos {
        Nanos(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// What is left of the time for measuring.
    pub(super) fn time_left(&self) -> Nanos {
        Nanos(self.arguments.time.0.0.saturating_sub(self.spent().0).saturating_sub(TO_CLEAN_UP.0))
    }

    /// What is left of the time for making data, if what is asked is then measured for as long as its percentiles need.
    pub(super) fn time_to_make(&self) -> Nanos {
        let (needed, _) = self.window_needed(None);
        Nanos(self.time_left().0.saturating_sub(Pacing::time_for(needed).0))
    }

    /// When steps begin and how long they last, so that there is enough work for each percentile. `reads_alone_per_s` are reads
    /// that are timed by themselves.
    ///
    /// # Errors
    /// If `time` is too little for that: it can be known before two minutes have gone.
    pub(super) fn pacing(&self, time: Nanos, reads_alone_per_s: Option<f64>) -> Result<Pacing, Failure> {
        let (needed, why) = self.window_needed(reads_alone_per_s);
        if let Some(pacing) = Pacing::with_window(time, needed) {
            return Ok(pacing);
        }
        let spent = self.spent();
        // Data are made again, which may take somewhat longer.
        let long = Nanos(Pacing::time_for(needed).0 + TO_CLEAN_UP.0 + spent.0 + spent.0 / 4);
        let making = if spent > TO_CLEAN_UP { format!("getting ready took {spent}, and ") } else { String::new() };
        let message = match why {
            Some(why) if Pacing::of(time).is_some() => format!("{making}{why}, and {time} are left for all"),
            _ => format!(
                "`{}` is too short: {making}a check needs about {} s in all",
                typed_time(std::env::args_os(), self.arguments.time.0),
                long.0.div_ceil(1_000_000_000)
            ),
        };
        let other = if needed > MIN_WINDOW { "ask for a lower percentile" } else { "use a smaller `--size`" };
        Err(Failure::new(message).with_hint(format!("give it more time: {}, or {other}", long_enough(long))))
    }

    /// Whether percentiles need more time than any check takes for what is asked.
    pub(super) fn needs_long_window(&self, reads_alone_per_s: f64) -> bool {
        let (needed, _) = self.window_needed(Some(reads_alone_per_s));
        Pacing::of(self.time_left()).is_none_or(|pacing| pacing.asked < needed)
    }

    /// How long exactly what is asked must run for its percentiles, and why.
    fn window_needed(&self, reads_alone_per_s: Option<f64>) -> (Nanos, Option<String>) {
        let Demands { reads, writes, commits, scan } = *self.demands;
        let mut longest = (MIN_WINDOW, None);
        for (noun, demand) in [("reads", reads), ("writes", writes), ("commits", commits)] {
            let Some((per_s, within)) = demand.and_then(|demand| Some((demand.per_s, demand.within?))) else {
                continue;
            };
            // Where all reads are parts of updates, they are timed there.
            let alone = reads_alone_per_s.filter(|alone| noun == "reads" && *alone > 0.0);
            let (timed, wanted) = (alone.unwrap_or(per_s), within.count() as f64);
            let needed = Nanos((wanted / timed * MARGIN * 1e9) as u64);
            if needed > longest.0 {
                let besides = match alone.filter(|alone| *alone < 0.95 * per_s) {
                    Some(alone) => {
                        format!(" (of {per_s}/s, {:.3}/s: the others belong to updates and are timed with them)", alone)
                    }
                    None => format!(" at {per_s}/s"),
                };
                let why = format!(
                    "too few {noun} for their percentile: it needs {} of them, which take {needed}{besides}",
                    group_thousands(wanted)
                );
                longest = (needed, Some(why));
            }
        }
        let bytes = if commits.is_some() { SCAN_TABLE } else { SCAN_REQUEST };
        if let Some(needed) = scan.map(|scan| Nanos((SCANS * bytes.0 as f64 / scan.0 * 1e9) as u64))
            && needed > longest.0
        {
            let why = format!("too few scans: {SCANS} of {bytes} take {needed} at that rate");
            longest = (needed, Some(why));
        }
        longest
    }

    fn begin(&self, load: Load, landing: Landing, scan_bytes: Option<u64>) -> Result<Recording, Failure> {
        let keeping = &self.arguments.keeping;
        let check = CheckRequest { demands: *self.demands, place: self.arguments.place.clone(), scan_bytes };
        let mut head = RunHead::new(&keeping.tags, [], self.seed, load, [])?;
        head.name = "check".to_owned();
        head.parameters.extend(check.parameters());
        let outline = Outline { check: Some(check), ..Outline::new(&head, keeping, Steps::UpTo(MAX_STEPS)) };
        outline.beginning(&self.interrupt).record(landing)
    }
}
