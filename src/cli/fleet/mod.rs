//! A process as a part of a fleet's experiment: its place, the seed that all parts have, and the start that they have agreed on.
//!
//! [`Fleet`] is what was asked, [`Joined`] what it means for a plan. A recording asks the latter when each step begins.

mod company;

use std::collections::BTreeMap;
use std::io;
use std::io::Write;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::cli::arguments::Seconds;
use crate::cli::exit::Failure;
use crate::cli::fresh_seed;
use crate::cli::supervisor::Supervisor;
use crate::plan::RunHead;
use company::{Appointment, MeetArgs};
use load::{Begin, Share, StepPlan, Stop};
use measure::os::wall_clock_bound_ns;
use measure::{Clock, monotonic_at_wall, wall_ns};
use model::config::ConfigError;
use model::config::fleet::{FleetProblem, PartChoice, PartNumber, StartTime, find_place};
use model::config::io::RateRange;
use model::record::{FORMAT, FleetPart, Intensity, Parameters, Workload};
use model::units::Nanos;

pub(super) use company::Company;

/// A part may be so late, and says how late it was; one that is later does not begin. Windows are cut to whole seconds that all
/// parts have, so this costs none of them more than one.
const MAX_LATE: Nanos = Nanos::millis(250);

/// When the steps of all parts begin.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CommonStart {
    /// The first.
    at: StartTime,
    /// Between the end of one and the beginning of the next.
    gap: Nanos,
}

/// Everything that decides the load of all parts. No host, path, tag or number of a part is in it.
#[derive(Debug, Clone)]
pub(super) struct Experiment {
    head: RunHead,
    steps: Vec<StepFacts>,
}

/// A step as all parts know it.
#[derive(Debug, Clone)]
struct StepFacts {
    label: String,
    parameters: Parameters,
    load: Intensity,
    warmup_ns: u64,
    duration_ns: u64,
    /// Threads, where they decide when something is due: hosts of other processors may have more otherwise.
    lanes: Option<u32>,
}

impl Experiment {
    /// Of the plan of a run.
    pub(super) fn new<'a, S: 'a>(head: &RunHead, steps: impl IntoIterator<Item = &'a StepPlan<S>>) -> Self {
        let facts = |step: &StepPlan<S>| StepFacts {
            label: step.label.clone(),
            parameters: step.parameters(&head.parameters),
            load: step.load.clone(),
            warmup_ns: step.warmup.0,
            duration_ns: step.duration.0,
            lanes: step.pace.is_open().then_some(step.lanes),
        };
        let steps = steps.into_iter().map(facts).collect();
        Self { head: head.clone(), steps }
    }

    /// Whether every host puts on the whole load, so that nothing is shared out.
    fn is_of_each_host(&self) -> bool {
        matches!(self.head.load.workload(), Workload::Host | Workload::Network)
    }

    /// Its digest: SHA-256, in hexadecimal digits.
    fn digest(&self) -> String {
        let Self { head: RunHead { load, parameters, seed, .. }, steps } = self;
        let steps: Vec<_> = steps
            .iter()
            .map(|StepFacts { label, parameters, load, warmup_ns, duration_ns, lanes }| {
                json!([label, parameters, load, warmup_ns, duration_ns, lanes])
            })
            .collect();
        let text = json!([FORMAT, env!("CARGO_PKG_VERSION"), load, parameters, seed, steps]).to_string();
        let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// A seed that every part finds by itself; 53 bits, which survive every format of JSON.
    fn derived_seed(&self) -> u64 {
        let head = RunHead { seed: 0, ..self.head.clone() };
        let digest = Self { head, steps: self.steps.clone() }.digest();
        digest.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or_default() >> 11
    }
}

/// Between the steps of a sweep, unless the user says otherwise: for sessions to leave and the next ones to connect.
const DEFAULT_STEP_GAP: Nanos = Nanos::seconds(10);

/// Which part a process is.
#[derive(Debug, Default, Args)]
pub(super) struct PartArgs {
    /// Part of an experiment on several hosts: 0/4 … 3/4, or `auto`
    ///
    /// `auto` takes it from MPI, Slurm or Kubernetes (`auto/4` if they do not give the total).
    ///
    /// docs/recipes/together.md has more.
    #[arg(long, value_name = "N/P|auto", help_heading = "Fleet")]
    part: Option<PartChoice>,

    /// Hosts of all parts, in the same order everywhere: the position of this host is its part number
    #[arg(long, value_name = "HOST,...", value_delimiter = ',', help_heading = "Fleet")]
    hosts: Vec<String>,
}

/// Which part a process is, and when all begin. As a part its exit code is 0 once data are recorded.
#[derive(Debug, Default, Args)]
pub(super) struct FleetArgs {
    #[command(flatten)]
    part: PartArgs,

    /// Common start time of all hosts: 2026-11-24T03:00:00Z, or seconds since 1970
    ///
    /// A part that records data ends with exit code 0: `merge` judges the limits.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Fleet")]
    start_at: Option<StartTime>,

    /// Pause between steps, with --start-at [default: 10s]
    #[arg(long, value_name = "TIME", requires = "start_at", allow_hyphen_values = true, help_heading = "Fleet")]
    step_gap: Option<Seconds>,

    #[command(flatten)]
    meet: MeetArgs,
}

/// What was asked about the fleet, with what the launcher says.
#[derive(Debug, Clone)]
pub(super) struct Fleet {
    /// The part that this is; `None` where it is the whole.
    place: Option<PartNumber>,
    start: Option<CommonStart>,
    appointment: Option<Appointment>,
}

impl PartArgs {
    /// Whether anything was said about parts.
    pub(super) fn is_asked(&self) -> bool {
        self.part.is_some() || !self.hosts.is_empty()
    }

    /// The part that this process is; `None` where nobody said anything about parts.
    ///
    /// # Errors
    /// If it is unknown.
    pub(super) fn place(&self) -> Result<Option<PartNumber>, Failure> {
        if !self.is_asked() {
            return Ok(None);
        }
        let text = |word: std::ffi::OsString| word.to_string_lossy().into_owned();
        let environment: BTreeMap<String, String> =
            std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect();
        // Nobody need have set the variable that shells have for it.
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Ok(Some(find_place(self.part, &self.hosts, &environment, host.trim()).map_err(ConfigError::Fleet)?))
    }
}

impl FleetArgs {
    /// What it comes to here and now.
    ///
    /// # Errors
    /// If the part is unknown, or the start is over.
    pub(super) fn join(&self) -> Result<Fleet, Failure> {
        let place = self.part.place()?;
        let gap = self.step_gap.map_or(DEFAULT_STEP_GAP, |Seconds(gap)| gap);
        let start = self.start_at.clone().map(|at| CommonStart { at, gap });
        if let Some(CommonStart { at, .. }) = &start {
            at.check(wall_ns(), MAX_LATE).map_err(ConfigError::Fleet)?;
        }
        let appointment = self.meet.appointment()?;
        if appointment.is_some() && place.is_none() {
            let failure = Failure::new("`--meet` is for parts of a fleet, and this process is none");
            return Err(failure.with_hint("say which part it is: `--part 0/4`, or `--part auto`".to_owned()));
        }
        if Supervisor::of_this_process().is_some() && (place.is_some() || start.is_some()) {
            let failure = Failure::new("loads that stand beside each other are no parts of a fleet");
            return Err(failure.with_hint("leave `--part`, `--hosts` and `--start-at` out below `beside`".to_owned()));
        }
        Ok(Fleet { place, start, appointment })
    }
}

impl Fleet {
    /// Whether this is one part of an experiment, be it the only one.
    pub(super) fn is_part(&self) -> bool {
        self.place.is_some()
    }

    /// Which part of each step this process carries out.
    pub(super) fn share(&self) -> Share {
        self.place.as_ref().map_or(Share::WHOLE, |place| Share { part: place.number, parts: place.parts })
    }

    /// Refuses what a part of several cannot do.
    ///
    /// # Errors
    /// If there are several parts and `is_asked`.
    pub(super) fn refuse(&self, is_asked: bool, what: &str, hint: &str) -> Result<(), Failure> {
        if is_asked && self.share().parts > 1 {
            return Err(
                Failure::new(format_args!("{what} cannot be shared out among parts")).with_hint(hint.to_owned())
            );
        }
        Ok(())
    }

    /// Refuses a search, which chooses each step by what it has seen: others would see something else, and do not know when.
    ///
    /// # Errors
    /// If this is a part, or begins at a common time, and searches.
    pub(super) fn refuse_search(&self, rates: Option<&RateRange>) -> Result<(), Failure> {
        let is_alone = self.place.is_none() && self.start.is_none();
        // Where parts meet, the verdict on each rate is that of all.
        if !matches!(rates, Some(RateRange::Between { .. })) || is_alone || self.appointment.is_some() {
            return Ok(());
        }
        let failure = Failure::new(
            "a search for the load line chooses each rate by what this part alone has seen, and the others would choose another",
        );
        Err(failure.with_hint(
            "let parts meet (`--meet`), or name the rates: `--rate 1000,2000,4000,8000` is the same for all parts"
                .to_owned(),
        ))
    }

    /// Has a plan made from the seed that was given, or a fresh one. Parts derive one from their configuration, which all of them
    /// share.
    ///
    /// # Errors
    /// Those of `make`.
    pub(super) fn plan<P>(
        &self,
        given: Option<u64>,
        make: &mut dyn FnMut(u64) -> Result<(P, Experiment), Failure>,
    ) -> Result<(P, Joined), Failure> {
        let is_derived = given.is_none() && self.is_part();
        let seed = match given {
            Some(seed) => seed,
            None if is_derived => make(0)?.1.derived_seed(),
            None => fresh_seed(),
        };
        let (plan, experiment) = make(seed)?;
        Ok((
            plan,
            Joined::new(self.place.clone(), self.start.clone(), self.appointment.clone(), experiment, is_derived),
        ))
    }
}

impl From<FleetProblem> for Failure {
    fn from(problem: FleetProblem) -> Self {
        Self::from(ConfigError::Fleet(problem))
    }
}

/// The wall clock is looked at again until so shortly before the start: it may be set while a part waits.
const LAST_LOOK: Duration = Duration::from_millis(50);
/// How often a request to end is looked for.
const LOOK_AROUND: Duration = Duration::from_millis(20);
/// A start that was missed by more is noted of each step.
const NOTED_LATE: Nanos = Nanos::millis(5);

/// What a fleet means for a run that is planned.
#[derive(Debug, Clone)]
pub(super) struct Joined {
    place: Option<PartNumber>,
    start: Option<CommonStart>,
    appointment: Option<Appointment>,
    experiment: Experiment,
    /// Whether the seed comes from the configuration.
    is_seed_derived: bool,
}

/// How a step begins.
#[derive(Debug)]
pub(super) enum StepStart {
    /// Like this.
    Begins(Begin),
    /// Too late for its place among the others.
    TooLate(String),
}

impl Joined {
    fn new(
        place: Option<PartNumber>,
        start: Option<CommonStart>,
        appointment: Option<Appointment>,
        experiment: Experiment,
        is_seed_derived: bool,
    ) -> Self {
        Self { place, start, appointment, experiment, is_seed_derived }
    }

    /// Meets the other parts where that was asked for. None where it was not, or where the user has ended it before that.
    ///
    /// # Errors
    /// When they cannot be met.
    pub(super) fn meet(&self, stop: &Stop) -> Result<Option<Company>, Failure> {
        match (&self.appointment, &self.place) {
            (Some(appointment), Some(place)) => Company::meet(appointment, place, &self.experiment.digest(), stop),
            _ => Ok(None),
        }
    }

    /// Whether it may measure a step again by what it saw itself. Others could not know, and were somewhere else in time.
    pub(super) fn may_repeat(&self) -> bool {
        self.place.is_none() && self.start.is_none()
    }

    /// What the record says of it.
    pub(super) fn part(&self) -> Option<FleetPart> {
        let PartNumber { number, parts, source, .. } = self.place.as_ref()?;
        Some(FleetPart {
            number: *number,
            parts: *parts,
            source: source.clone(),
            configuration: self.experiment.digest(),
            start_at_ns: self.start.as_ref().map(|start| start.at.ns),
            start_error_ns: None,
            clock: None,
        })
    }

    /// What the user should know, and a reader of the record.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.place.iter().filter_map(|place| place.note.clone()).collect();
        let is_one_of_many = self.place.as_ref().is_some_and(|place| place.parts > 1);
        match &self.start {
            Some(start) => {
                notes.push(format!("the load was to begin at {}", start.at));
                notes.push(clock_words());
            }
            None if is_one_of_many && self.appointment.is_none() => notes.push(
                "no start was agreed on: each part began when it was ready, and only what they did at the same time can be merged"
                    .to_owned(),
            ),
            None => {}
        }
        notes
    }

    /// Refuses a start at a time of the world where time is only simulated.
    pub(super) fn check(&self, clock: Clock) -> Result<(), Failure> {
        if self.start.is_some() && clock.is_simulated() {
            let failure = Failure::new("`--start-at` is a time of the world, and time is only simulated here");
            return Err(failure.with_hint("leave it out, or `clock=simulated`".to_owned()));
        }
        Ok(())
    }

    /// Waits until step `index` begins. Asked when all of its sessions are ready; `None` where nothing was agreed on.
    pub(super) fn wait_for_start(&self, index: u32, clock: Clock, stop: &Stop) -> Option<StepStart> {
        let at_ns = self.step_start_ns(index)?;
        loop {
            if stop.is_asked() {
                return Some(StepStart::Begins(Begin::NotAtAll));
            }
            let now_ns = wall_ns();
            let late_ns = now_ns.saturating_sub(at_ns);
            if late_ns > MAX_LATE.0 {
                let label = self.experiment.steps.get(index as usize).map_or("a step", |step| step.label.as_str());
                return Some(StepStart::TooLate(format!(
                    "{label} was to begin at {} and was not ready until {} ms later",
                    stamp(at_ns),
                    late_ns / 1_000_000
                )));
            }
            let left = Duration::from_nanos(at_ns.saturating_sub(now_ns));
            if left <= LAST_LOOK {
                return Some(StepStart::Begins(Begin::At(clock.instant_of(monotonic_at_wall(at_ns)))));
            }
            std::thread::sleep(LOOK_AROUND.min(left - LAST_LOOK));
        }
    }

    /// A note on a step that began so long after its time, if that is worth one.
    pub(super) fn note_on_start(&self, label: &str, late_ns: u64) -> Option<String> {
        let was_agreed = self.start.is_some() || self.appointment.is_some();
        let is_late = was_agreed && late_ns > NOTED_LATE.0;
        is_late.then(|| format!("{label} began {} ms after its time", late_ns / 1_000_000))
    }

    /// Writes what a plan says of it.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        if let Some(PartNumber { number, parts, source, .. }) = &self.place {
            writeln!(out, "part       {number} of {parts}, counted from 0; by {source}")?;
            writeln!(out, "digest     {}", self.experiment.digest())?;
        }
        if self.is_seed_derived {
            writeln!(out, "           the seed comes from the configuration, and every part finds the same")?;
        }
        if let Some(appointment) = &self.appointment {
            writeln!(out, "meets      at {}", appointment.point())?;
        }
        if self.start.is_some() {
            writeln!(out, "clock      {}", clock_words())?;
        }
        for (index, step) in (0..).zip(&self.experiment.steps) {
            let at = self.step_start_ns(index).map(|at_ns| format!("begins {}", stamp(at_ns)));
            let own = self.own_sessions(step);
            let words: Vec<String> = own.into_iter().chain(at).collect();
            if !words.is_empty() {
                writeln!(out, "           {}: {}", step.label, words.join(", "))?;
            }
        }
        self.notes().iter().filter(|_| self.start.is_none()).try_for_each(|note| writeln!(out, "note       {note}"))
    }

    fn own_sessions(&self, step: &StepFacts) -> Option<String> {
        let PartNumber { number, parts, .. } = self.place.as_ref()?;
        let all = step.load.slots();
        if *parts <= 1 || self.experiment.is_of_each_host() {
            return None;
        }
        let own = Share { part: *number, parts: *parts }.of(all);
        Some(format!("sessions {} to {} of {all}", own.start, own.end.saturating_sub(1)))
    }

    /// When a step begins: after the warm-ups, windows and gaps of all before it.
    fn step_start_ns(&self, index: u32) -> Option<u64> {
        let CommonStart { at, gap } = self.start.as_ref()?;
        let slot = |step: &StepFacts| step.warmup_ns.saturating_add(step.duration_ns).saturating_add(gap.0);
        let before = self.experiment.steps.iter().take(index as usize).map(slot);
        Some(before.fold(at.ns, u64::saturating_add))
    }
}

fn stamp(ns: u64) -> StartTime {
    StartTime::at(ns)
}

/// How far the clock of this host may be off, as far as the kernel knows.
fn clock_words() -> String {
    match wall_clock_bound_ns() {
        Some(bound_ns) => {
            format!("this host's clock is synchronised within {:.3} ms, as the kernel has it", bound_ns as f64 / 1e6)
        }
        None => "nothing synchronises this host's clock: how far it is off is not known".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::{Pace, Share};
    use model::record::{IoMix, Load};
    use model::units::Nanos;
    use model::workload::Arrival;

    fn step() -> StepPlan<()> {
        StepPlan {
            index: 0,
            label: "d8".to_owned(),
            load: Intensity { sessions: Some(8), ..Intensity::default() },
            level: None,
            like: None,
            shape: (),
            seed: 7,
            work_loop: None,
            warmup: Nanos::seconds(1),
            duration: Nanos::seconds(5),
            pace: Pace::Closed,
            lanes: 4,
            share: Share::WHOLE,
        }
    }

    fn head(block: &str, seed: u64) -> RunHead {
        RunHead::new(&[], [], seed, Load::IoMix(IoMix { block: format!("{block}K").parse().unwrap() }), []).unwrap()
    }

    fn digest(parameter: &str, seed: u64, step: &StepPlan<()>) -> String {
        Experiment::new(&head(parameter, seed), [step]).digest()
    }

    #[test]
    fn whatever_decides_the_load_is_in_the_digest_and_the_part_is_not() {
        let whole = digest("8", 7, &step());
        assert_eq!(whole.len(), 64);
        assert_eq!(digest("8", 7, &StepPlan { share: Share { part: 1, parts: 2 }, ..step() }), whole);
        assert_eq!(digest("8", 7, &StepPlan { lanes: 8, ..step() }), whole, "sessions are the same on any threads");
        let others = [
            digest("9", 7, &step()),
            digest("8", 8, &step()),
            digest("8", 7, &StepPlan { label: "d9".to_owned(), ..step() }),
            digest("8", 7, &StepPlan { warmup: Nanos::seconds(2), ..step() }),
            digest("8", 7, &StepPlan { duration: Nanos::seconds(6), ..step() }),
            digest("8", 7, &StepPlan { load: Intensity { sessions: Some(9), ..Intensity::default() }, ..step() }),
        ];
        others.iter().for_each(|other| assert_ne!(*other, whole));
        let pace = Pace::Open { rate_per_s: 5.0, arrival: Arrival::Poisson };
        let open = |lanes| digest("8", 7, &StepPlan { pace, lanes, ..step() });
        assert_ne!(open(4), open(8), "threads decide when something is due");
    }

    #[test]
    fn a_derived_seed_depends_on_the_configuration_alone() {
        let seed = |parameter: &str, seed| Experiment::new(&head(parameter, seed), [&step()]).derived_seed();
        assert_eq!(seed("8", 0), seed("8", 99));
        assert_ne!(seed("8", 0), seed("9", 0));
        assert!(seed("8", 0) < 1 << 53);
    }
}

#[cfg(test)]
mod joined_tests {
    use crate::plan::RunHead;
    use model::record::{Intensity, Load, Workload};

    use super::*;
    use load::{Pace, StepPlan};

    fn joined(start_ns: u64) -> Joined {
        let step = |label: &str| StepPlan {
            index: 0,
            label: label.to_owned(),
            load: Intensity { sessions: Some(10), ..Intensity::default() },
            level: None,
            like: None,
            shape: (),
            seed: 7,
            work_loop: None,
            warmup: Nanos::seconds(2),
            duration: Nanos::seconds(5),
            pace: Pace::Closed,
            lanes: 4,
            share: Share::WHOLE,
        };
        let steps = [step("d1"), step("d2"), step("d4")];
        let head = RunHead::new(&[], [], 7, Load::foreign(Workload::Io), []).unwrap();
        let experiment = Experiment::new(&head, &steps);
        let place = PartNumber { number: 1, parts: 4, source: "--part".to_owned(), note: None };
        let start = CommonStart { at: StartTime::at(start_ns), gap: Nanos::seconds(3) };
        Joined::new(Some(place), Some(start), None, experiment, true)
    }

    #[test]
    fn each_step_begins_a_warm_up_a_window_and_a_gap_after_the_one_before() {
        let joined = joined(1_000_000_000_000);
        let starts: Vec<_> = (0..3).filter_map(|index| joined.step_start_ns(index)).collect();
        assert_eq!(starts, [1_000_000_000_000, 1_010_000_000_000, 1_020_000_000_000]);
    }

    #[test]
    fn a_step_waits_for_its_time_and_begins_at_that_instant() {
        let clock = Clock::start();
        let at_ns = wall_ns() + 120_000_000;
        let Some(StepStart::Begins(Begin::At(instant_ns))) = joined(at_ns).wait_for_start(0, clock, &Stop::new())
        else {
            panic!("it was in time")
        };
        let (wall, mono) = (wall_ns(), clock.now_ns());
        let expected = (mono + at_ns).saturating_sub(wall);
        assert!(instant_ns.abs_diff(expected) < 50_000_000, "{instant_ns} is not {expected}");
    }

    #[test]
    fn a_step_that_is_not_ready_in_time_is_named() {
        let start = joined(wall_ns() - 9_000_000_000).wait_for_start(0, Clock::start(), &Stop::new());
        let Some(StepStart::TooLate(why)) = start else { panic!("{start:?}") };
        assert!(why.starts_with("d1 was to begin at ") && why.contains(" and was not ready until 9"), "{why}");
        let second = joined(wall_ns() - 10_050_000_000).wait_for_start(1, Clock::start(), &Stop::new());
        assert!(
            matches!(second, Some(StepStart::Begins(Begin::At(_)))),
            "50 ms late is reported, and no error: {second:?}"
        );
    }

    #[test]
    fn a_wish_to_end_ends_the_wait() {
        let stop = Stop::new();
        stop.ask();
        let start = joined(wall_ns() + 60_000_000_000).wait_for_start(0, Clock::start(), &stop);
        assert!(matches!(start, Some(StepStart::Begins(Begin::NotAtAll))));
    }

    #[test]
    fn the_plan_says_which_sessions_and_when() {
        let mut out = Vec::new();
        joined(1_795_489_200_000_000_000).write(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("part       1 of 4, counted from 0; by --part\n"), "{text}");
        assert!(text.contains("d2: sessions 2 to 4 of 10, begins 2026-11-24T03:00:10Z\n"), "{text}");
        assert!(text.contains("the seed comes from the configuration"), "{text}");
    }
}
