//! Flags by which a process takes its place in a fleet.

use std::collections::BTreeMap;

use clap::Args;

use super::company::{Appointment, MeetArgs};
use super::experiment::Experiment;
use super::joined::Joined;
use super::start::{CommonStart, MAX_LATE};
use crate::cli::arguments::Seconds;
use crate::cli::exit::Failure;
use crate::cli::fresh_seed;
use crate::cli::supervisor::Supervisor;
use crate::load::Share;
use measure::wall_ns;
use model::config::ConfigError;
use model::config::fleet::{FleetProblem, PartChoice, PartNumber, StartTime, find_place};
use model::config::io::RateRange;
use model::units::Nanos;

/// Between the steps of a sweep, unless the user says otherwise: for sessions to leave and the next ones to connect.
const DEFAULT_STEP_GAP: Nanos = Nanos::seconds(10);

/// Which part a process is.
#[derive(Debug, Default, Args)]
pub(in crate::cli) struct PartArgs {
    /// Be one part of an experiment on several hosts: 0/4 … 3/4; `auto` asks MPI, Slurm or Kubernetes (`auto/4`, if it does not
    /// say of how many). docs/fleet.md has more
    #[arg(long, value_name = "N/P|auto", help_heading = "Fleet")]
    part: Option<PartChoice>,

    /// The hosts of all parts, in one order everywhere: this host is the part at the place of its name
    #[arg(long, value_name = "HOST,...", value_delimiter = ',', help_heading = "Fleet")]
    hosts: Vec<String>,
}

/// Which part a process is, and when all begin. As a part its exit code is 0 once data are recorded.
#[derive(Debug, Default, Args)]
pub(in crate::cli) struct FleetArgs {
    #[command(flatten)]
    part: PartArgs,

    /// Begin at this time, on every host at once: 2026-11-24T03:00:00Z, or seconds since 1970. A part that records data ends with
    /// exit code 0: limits are judged when parts are merged
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Fleet")]
    start_at: Option<StartTime>,

    /// Between the end of a step and the beginning of the next one, with --start-at [default: 10s]
    #[arg(long, value_name = "TIME", requires = "start_at", allow_hyphen_values = true, help_heading = "Fleet")]
    step_gap: Option<Seconds>,

    #[command(flatten)]
    meet: MeetArgs,
}

/// What was asked about the fleet, with what the launcher says.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Fleet {
    /// The part that this is; `None` where it is the whole.
    place: Option<PartNumber>,
    start: Option<CommonStart>,
    appointment: Option<Appointment>,
}

impl PartArgs {
    /// Whether anything was said about parts.
    pub(in crate::cli) fn is_asked(&self) -> bool {
        self.part.is_some() || !self.hosts.is_empty()
    }

    /// The part that this process is; `None` where nobody said anything about parts.
    ///
    /// # Errors
    /// If it is unknown.
    pub(in crate::cli) fn place(&self) -> Result<Option<PartNumber>, Failure> {
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
    pub(in crate::cli) fn join(&self) -> Result<Fleet, Failure> {
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
    pub(in crate::cli) fn is_part(&self) -> bool {
        self.place.is_some()
    }

    /// Which part of each step this process carries out.
    pub(in crate::cli) fn share(&self) -> Share {
        self.place.as_ref().map_or(Share::WHOLE, |place| Share { part: place.number, parts: place.parts })
    }

    /// Refuses what a part of several cannot do.
    ///
    /// # Errors
    /// If there are several parts and `is_asked`.
    pub(in crate::cli) fn refuse(&self, is_asked: bool, what: &str, hint: &str) -> Result<(), Failure> {
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
    pub(in crate::cli) fn refuse_search(&self, rates: Option<&RateRange>) -> Result<(), Failure> {
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
    pub(in crate::cli) fn plan<P>(
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
