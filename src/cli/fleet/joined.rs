//! A part that has a plan: what its record says of the fleet, and when each of its steps begins.

use std::io::{self, Write};
use std::time::Duration;

use super::company::{Appointment, Company};
use super::experiment::{Experiment, StepFacts};
use super::start::{CommonStart, MAX_LATE};
use crate::cli::exit::Failure;
use crate::load::{Begin, Share, Stop};
use measure::os::wall_clock_bound_ns;
use measure::{Clock, monotonic_at_wall, wall_ns};
use model::config::fleet::{PartNumber, StartTime};
use model::record::FleetPart;
use model::units::Nanos;

/// The wall clock is looked at again until so shortly before the start: it may be set while a part waits.
const LAST_LOOK: Duration = Duration::from_millis(50);
/// How often a request to end is looked for.
const LOOK_AROUND: Duration = Duration::from_millis(20);
/// A start that was missed by more is noted of each step.
const NOTED_LATE: Nanos = Nanos::millis(5);

/// What a fleet means for a run that is planned.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Joined {
    place: Option<PartNumber>,
    start: Option<CommonStart>,
    appointment: Option<Appointment>,
    experiment: Experiment,
    /// Whether the seed comes from the configuration.
    is_seed_derived: bool,
}

/// How a step begins.
#[derive(Debug)]
pub(in crate::cli) enum StepStart {
    /// Like this.
    Begins(Begin),
    /// Too late for its place among the others.
    TooLate(String),
}

impl Joined {
    pub(super) fn new(
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
    pub(in crate::cli) fn meet(&self, stop: &Stop) -> Result<Option<Company>, Failure> {
        match (&self.appointment, &self.place) {
            (Some(appointment), Some(place)) => Company::meet(appointment, place, &self.experiment.digest(), stop),
            _ => Ok(None),
        }
    }

    /// Whether it may measure a step again by what it saw itself. Others could not know, and were somewhere else in time.
    pub(in crate::cli) fn may_repeat(&self) -> bool {
        self.place.is_none() && self.start.is_none()
    }

    /// What the record says of it.
    pub(in crate::cli) fn part(&self) -> Option<FleetPart> {
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
    pub(in crate::cli) fn notes(&self) -> Vec<String> {
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
    pub(in crate::cli) fn check(&self, clock: Clock) -> Result<(), Failure> {
        if self.start.is_some() && clock.is_simulated() {
            let failure = Failure::new("`--start-at` is a time of the world, and time is only simulated here");
            return Err(failure.with_hint("leave it out, or `clock=simulated`".to_owned()));
        }
        Ok(())
    }

    /// Waits until step `index` begins. Asked when all of its sessions are ready; `None` where nothing was agreed on.
    pub(in crate::cli) fn wait_for_start(&self, index: u32, clock: Clock, stop: &Stop) -> Option<StepStart> {
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
    pub(in crate::cli) fn note_on_start(&self, label: &str, late_ns: u64) -> Option<String> {
        let was_agreed = self.start.is_some() || self.appointment.is_some();
        let is_late = was_agreed && late_ns > NOTED_LATE.0;
        is_late.then(|| format!("{label} began {} ms after its time", late_ns / 1_000_000))
    }

    /// Writes what a plan says of it.
    pub(in crate::cli) fn write(&self, out: &mut impl Write) -> io::Result<()> {
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
    use crate::plan::RunHead;
    use model::record::Load;
    use model::record::Workload;

    use super::*;
    use crate::load::{Pace, StepPlan};
    use model::record::Intensity;

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
