//! `plimsoll probe --stalls`: why statements of a live server are held up, without load of ours.

use std::io::Write;
use std::time::{Duration, Instant, SystemTime};

use super::{Arguments, LOOK_EVERY, line, now};
use crate::cli::arguments::Format;
use crate::cli::exit::{Exit, Failure};
use crate::cli::live::Verbosity;
use crate::cli::{Interrupt, say};
use analysis::{WatchedEpisode, WatchedStalls, WatchedSum};
use measure::monotonic_ns;
use measure::os::Root;
use measure::os::moments::{MOMENT_NS, MomentWatch};
use measure::trace::devices_of;
use model::config::TargetAddress;
use model::record::Timestamp;
use model::units::Nanos;
use report::document::{ProbeEnd, ProbeLine};
use sql::statements::{Watched, WatchedServer};

/// Statements that take this long are what users notice.
pub(super) const SLOWER_THAN: Nanos = Nanos::millis(250);
/// Shorter ones are seen in too few looks.
const SHORTEST: Nanos = Nanos::millis(150);
const LONGEST: Nanos = Nanos::seconds(3_600);

pub(super) fn run(arguments: &Arguments, address: &TargetAddress) -> Result<Exit, Failure> {
    let slower_than = arguments.slower_than.map_or(SLOWER_THAN, |time| time.0);
    if !(SHORTEST..=LONGEST).contains(&slower_than) {
        let failure = Failure::new(format_args!("`--slower-than` cannot be {slower_than}"));
        return Err(failure.with_hint(format!("it may be from {SHORTEST} to {LONGEST}")));
    }
    let interrupt = Interrupt::listen()?;
    let server = WatchedServer::at(address, "plimsoll probe")?.ok_or_else(|| {
        let failure = Failure::new(format_args!("the sessions of `{address}` cannot be looked at"));
        failure.with_hint(
            "`--stalls` takes servers of PostgreSQL, MySQL and MariaDB: `postgres://…`, `mysql://…`, `pg:DIR`, `my:DIR`"
                .to_owned(),
        )
    })?;
    let process = server.process()?;
    let devices = process.map(devices_of).unwrap_or_default();
    let mut watch = Watch {
        stalls: WatchedStalls::new(slower_than, process.is_some()),
        moments: MomentWatch::new(Root::default(), devices.clone()),
        due_ns: monotonic_ns(),
        format: arguments.format.format(),
        failure: None,
    };
    let is_said = arguments.progress.verbosity() == Verbosity::Normal;
    let begun = Instant::now();
    // A time too far away to be one never comes.
    let last = arguments.duration.and_then(|time| begun.checked_add(time.0.as_duration()));
    let mut end = None;
    let mut lost_since: Option<Instant> = None;
    let mut refused: Option<String> = None;
    server.watch(&mut |happened| {
        if let (Some(since), Watched::Look(_)) = (lost_since, &happened) {
            lost_since = None;
            say::note(format_args!("connected again after {}: nothing was seen meanwhile", shown(since.elapsed())));
        }
        match happened {
            Watched::Open(notes) => {
                if is_said {
                    let where_it_is = match (process, devices.is_empty()) {
                        (Some(_), false) => format!("; devices below it: {}", devices.join(", ")),
                        (Some(_), true) => "; the devices below it cannot be seen from here".to_owned(),
                        (None, _) => "; not on this machine, so its storage cannot be seen from here".to_owned(),
                    };
                    say::line(format_args!("looking at the sessions of {}{where_it_is}", server.name()));
                }
                notes.iter().for_each(say::note);
            }
            Watched::Look(look) => {
                let found = watch.stalls.look(&look);
                watch.say(found);
            }
            Watched::Lost(error, asked_ns) => {
                watch.stalls.silence(asked_ns, monotonic_ns());
                say::note(format_args!("the connection broke: {error}"));
                lost_since = Some(Instant::now());
            }
            Watched::Refused(error) => {
                let words = error.to_string();
                if refused.as_ref() != Some(&words) {
                    say::note(format_args!("a look was refused: {words}"));
                    refused = Some(words);
                }
            }
            Watched::Time => watch.moment(),
        }
        end = if interrupt.exit().is_some() {
            Some(ProbeEnd::Signal)
        } else {
            last.filter(|last| Instant::now() >= *last).map(|_| ProbeEnd::Duration)
        };
        end.is_none() && watch.failure.is_none()
    })?;
    let found = watch.stalls.finish(monotonic_ns());
    watch.say(found);
    if let Some(failure) = watch.failure {
        return Err(failure);
    }
    if !watch.stalls.has_looked() {
        let failure = Failure::new(format_args!("the sessions of {} were not seen once", server.name()));
        return Err(failure.with_hint("let it run longer: `--duration`".to_owned()));
    }
    let end = end.unwrap_or(ProbeEnd::Signal);
    print_sum(watch.format, &watch.stalls.sum(), end)?;
    Ok(match end {
        // Without a duration, a signal is how it is meant to end.
        ProbeEnd::Signal if arguments.duration.is_some() => interrupt.exit().unwrap_or(Exit::Done),
        _ => Exit::Done,
    })
}

struct Watch {
    stalls: WatchedStalls,
    moments: MomentWatch,
    /// When the next moment begins.
    due_ns: u64,
    format: Format,
    failure: Option<Failure>,
}

impl Watch {
    /// Looks at the system, if a moment has passed.
    fn moment(&mut self) {
        let now_ns = monotonic_ns();
        if now_ns < self.due_ns {
            return;
        }
        let begun_ns = self.moments.looked_at_ns();
        // It is called at least as often as moments pass, and late by no more than one, unless this program did not run.
        let late_ns = now_ns.saturating_sub(self.due_ns.saturating_add(nanos(LOOK_EVERY)));
        let moment = self.moments.look(now_ns, &[], late_ns);
        if let Some((begun_ns, moment)) = begun_ns.zip(moment) {
            self.stalls.moment(begun_ns, moment);
        }
        self.due_ns = now_ns.saturating_add(MOMENT_NS);
    }

    fn say(&mut self, episodes: Vec<WatchedEpisode>) {
        for episode in episodes {
            // The first thing that goes wrong ends the probe.
            if let Err(failure) = print_episode(self.format, &episode) {
                self.failure.get_or_insert(failure);
            }
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn shown(time: Duration) -> Nanos {
    Nanos(nanos(time))
}

/// When an instant of the monotonic clock was, by the wall clock of now.
fn wall(at_ns: u64) -> Timestamp {
    let ago = Duration::from_nanos(monotonic_ns().saturating_sub(at_ns));
    let then = SystemTime::now().checked_sub(ago).and_then(|then| jiff::Timestamp::try_from(then).ok());
    then.map_or_else(now, Timestamp)
}

fn print_episode(format: Format, episode: &WatchedEpisode) -> Result<(), Failure> {
    let at = wall(episode.from_ns);
    if format == Format::Json {
        return line(&ProbeLine::Episode { at, episode });
    }
    let mut out = say::output();
    let local = at.0.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M:%S%.3f").to_string();
    writeln!(out, "{local}  {}", episode.phrase())?;
    if let Some(evidence) = episode.evidence() {
        writeln!(out, "{:14}{evidence}", "")?;
    }
    out.flush()?;
    Ok(())
}

fn print_sum(format: Format, sum: &WatchedSum, ended_by: ProbeEnd) -> Result<(), Failure> {
    if format == Format::Json {
        return line(&ProbeLine::Stalls { at: now(), ended_by, stalls: sum });
    }
    let mut out = say::output();
    writeln!(out, "{}", sum.phrase())?;
    for cause in sum.causes() {
        writeln!(out, "  {cause}")?;
    }
    if let Some(advice) = sum.advice() {
        writeln!(out, "{advice}")?;
    }
    if let Some(long) = sum.long() {
        writeln!(out, "{long}")?;
    }
    out.flush()?;
    Ok(())
}
