//! The place of a process in a fleet's experiment: which part it is, of how many, and when all begin.

mod place;

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use miette::Diagnostic;

use crate::config::ConfigError;
use crate::units::Nanos;

pub use place::{PartChoice, PartNumber, find_place};

/// Most parts of an experiment.
pub const MAX_PARTS: u32 = 65_536;

const BY_HAND: &str = "say it: `--part 0/4` … `--part 3/4`";
const NUMBER_AND_PARTS: &str =
    "write its number, from 0, and how many there are: `--part 0/4` … `--part 3/4`, or `--part auto`";
const EACH_HOST_ONCE: &str =
    "name each host once: `--hosts a,b,c`; several parts on one host need `--part 0/4` … `--part 3/4`";

/// Why the place of a process in a fleet, or the start of all, cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum FleetProblem {
    /// A text that says nothing about a part.
    #[error("`{text}` is not a part")]
    #[diagnostic(help("{NUMBER_AND_PARTS}"))]
    Part { text: String },
    /// A part without the number of parts.
    #[error("`{text}` does not say of how many parts")]
    #[diagnostic(help("{NUMBER_AND_PARTS}"))]
    NoNumberOfParts { text: String },
    /// A part that is not one of them.
    #[error("there is no part {number} of {parts}")]
    #[diagnostic(help("{}", numbers_of(*parts)))]
    NoSuchPart { number: u32, parts: u32 },
    /// More parts than there can be.
    #[error("{parts} parts are too many; {MAX_PARTS} is the most")]
    #[diagnostic(help("start fewer processes with more sessions each"))]
    TooManyParts { parts: u64 },
    /// Nobody says which part this is.
    #[error("nothing says which part this process is: none of {looked_for} is set")]
    #[diagnostic(help("{BY_HAND}, or name all hosts in one order everywhere: `--hosts a,b,c,d`"))]
    NoLauncher { looked_for: String },
    /// A launcher that says which part, and not of how many.
    #[error("`{variable}` says that this is part {number}, and nothing says of how many")]
    #[diagnostic(help("say how many there are: `--part auto/4`, or `--part {number}/4`"))]
    NoSize { variable: &'static str, number: u32 },
    /// A variable that is no number.
    #[error("`{variable}={value}` is not a number")]
    #[diagnostic(help("unset `{variable}`, or {BY_HAND}"))]
    Variable { variable: &'static str, value: String },
    /// A launcher with another number of parts.
    #[error("`{variable}` says that there are {found} parts, and `--part` says {asked}")]
    #[diagnostic(help("write `--part auto/{found}` or `--part auto`, or start as many as there are to be"))]
    OtherSize { variable: &'static str, found: u32, asked: u32 },
    /// An array whose indices are not one after the other.
    #[error(
        "the indices of the array have gaps: `SLURM_ARRAY_TASK_ID` is {id}, from {least}, and there are {count} of them"
    )]
    #[diagnostic(help(
        "number the array without gaps, as in `sbatch --array=0-3`, or say the part by hand: `--part 2/4`"
    ))]
    ArrayWithGaps { id: u32, least: u32, count: u32 },
    /// An array of jobs with several processes each.
    #[error(
        "which part this is can be read in two ways: it is task {id} of an array of {count}, and process {process} of {processes}"
    )]
    #[diagnostic(help(
        "give the array one process in each job, or one job without an array; or say the part by hand: `--part 2/4`"
    ))]
    ArrayOfMany { id: u32, count: u32, process: u32, processes: u32 },
    /// A host that is not among those named.
    #[error("this host, `{host}`, is none of `--hosts {hosts}`")]
    #[diagnostic(help("write the names as `hostname` prints them, in one order on every host"))]
    NotAmongHosts { host: String, hosts: String },
    /// A host that is there more than once.
    #[error("`{name}` stands for this host as `{other}` does: which part it is is not clear")]
    #[diagnostic(help("{EACH_HOST_ONCE}"))]
    HostTwice { name: String, other: String },
    /// A name that is no name.
    #[error("`--hosts {hosts}` has a name without letters")]
    #[diagnostic(help("{EACH_HOST_ONCE}"))]
    EmptyHost { hosts: String },
    /// A part beside a list of hosts.
    #[error("`--part {text}` says which part this is, and so does `--hosts`")]
    #[diagnostic(help("leave one of them out"))]
    PartAndHosts { text: String },
    /// A number of parts beside a list of hosts.
    #[error("`--hosts` names {hosts} hosts, and `--part` says that there are {asked} parts")]
    #[diagnostic(help("leave the number of parts out: it is that of the hosts"))]
    OtherHosts { hosts: u32, asked: u32 },
    /// A time that counts from now.
    #[error("`{text}` counts from now, which differs from host to host")]
    #[diagnostic(help(
        "work it out once for all parts: `--start-at $(date -u -d '+60 seconds' +%s)` where they are started"
    ))]
    RelativeTime { text: String },
    /// A time without a zone.
    #[error("`{text}` has no time zone, and hosts may be in several")]
    #[diagnostic(help("add it: `{text}Z` is UTC, `{text}+02:00` two hours ahead of it"))]
    NoZone { text: String },
    /// A text that is no time.
    #[error("`{text}` is not a time")]
    #[diagnostic(help("write it as `2026-11-24T03:00:00Z`, or in seconds since 1970 as `date +%s` has them"))]
    Time { text: String },
    /// A time that is over.
    #[error("the start, {start}, was {late} ago: this part is too late")]
    #[diagnostic(help("choose a later start: every part has to be up and its sessions connected by then"))]
    Late { start: String, late: String },
    /// Seconds that were meant from now.
    #[error("`{text}` is {start}: a number is seconds since 1970, and never seconds from now")]
    #[diagnostic(help("`date -u -d '+60 seconds' +%s` is a minute from now"))]
    LongPast { text: String, start: String },
    /// A time that nobody waits for.
    #[error("the start, {start}, is {ahead} ahead; {most} is the most")]
    #[diagnostic(help("is it in milliseconds? Seconds since 1970 have ten digits"))]
    FarAhead { start: String, ahead: String, most: String },
}

fn numbers_of(parts: u32) -> String {
    match parts {
        0 => "an experiment has one part or more: `--part 0/1`".to_owned(),
        _ => format!("parts are counted from 0: `--part 0/{parts}` … `--part {}/{parts}`", parts - 1),
    }
}

/// Longest time that a start may be ahead: more is a slip, such as milliseconds for seconds.
const MAX_AHEAD: Nanos = Nanos::seconds(7 * 86_400);
/// A start that is longer ago was meant from now.
const LONG_PAST: Nanos = Nanos::seconds(10 * 365 * 86_400);

/// An instant that means the same on every host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartTime {
    /// Nanoseconds since 1970 in UTC.
    pub ns: u64,
    /// As it was written.
    text: String,
}

impl StartTime {
    /// The instant of so many nanoseconds since 1970.
    pub fn at(ns: u64) -> Self {
        Self { ns, text: format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000) }
    }

    /// By how much the instant is past at `now_ns`, in nanoseconds since 1970, or how far ahead: `Err` of how long to wait.
    ///
    /// # Errors
    /// If it is past by more than `grace`, or nobody would wait so long.
    pub fn check(&self, now_ns: u64, grace: Nanos) -> Result<(), FleetProblem> {
        let (late, ahead) = (now_ns.saturating_sub(self.ns), self.ns.saturating_sub(now_ns));
        if late > LONG_PAST.0 && self.text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return Err(FleetProblem::LongPast { text: self.text.clone(), start: self.to_string() });
        }
        if late > grace.0 {
            return Err(FleetProblem::Late { start: self.to_string(), late: rounded(late) });
        }
        if ahead > MAX_AHEAD.0 {
            let most = format!("{} days", MAX_AHEAD.0 / 86_400_000_000_000);
            return Err(FleetProblem::FarAhead { start: self.to_string(), ahead: rounded(ahead), most });
        }
        Ok(())
    }
}

/// A length of time with the digits that somebody reads.
fn rounded(ns: u64) -> String {
    match ns / 1_000_000_000 {
        0..10 => format!("{} ms", ns / 1_000_000),
        seconds @ 10..600 => format!("{seconds} s"),
        seconds @ 600..172_800 => format!("{} minutes", seconds / 60),
        seconds => format!("{} days", seconds / 86_400),
    }
}

impl fmt::Display for StartTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stamp = i64::try_from(self.ns / 1_000_000).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
        match stamp {
            Some(stamp) => write!(f, "{stamp}"),
            None => f.write_str(&self.text),
        }
    }
}

impl FromStr for StartTime {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        read(text.trim()).map(|ns| Self { ns, text: text.trim().to_owned() }).map_err(ConfigError::Fleet)
    }
}

fn read(text: &str) -> Result<u64, FleetProblem> {
    let none = || FleetProblem::Time { text: text.to_owned() };
    if let Ok(stamp) = text.parse::<Timestamp>() {
        return u64::try_from(stamp.as_nanosecond()).map_err(|_| none());
    }
    if let Some(ns) = seconds(text) {
        return Ok(ns);
    }
    let begins_relative = text.starts_with('+') || text.starts_with("now") || text.starts_with("in ");
    if begins_relative || text.parse::<Nanos>().is_ok() {
        return Err(FleetProblem::RelativeTime { text: text.to_owned() });
    }
    if text.parse::<DateTime>().is_ok() {
        return Err(FleetProblem::NoZone { text: text.to_owned() });
    }
    Err(none())
}

/// Seconds, exactly, with up to nine digits behind the point; at most what nanoseconds can count.
fn seconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let are_digits = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(whole) || !are_digits(part) || part.len() > 9 {
        return None;
    }
    let part_ns: u64 = format!("{part:0<9}").parse().ok()?;
    Some(whole.parse::<u64>().ok()?.saturating_mul(1_000_000_000).saturating_add(part_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-11-24T03:00:00Z";

    fn start(text: &str) -> StartTime {
        text.parse().unwrap()
    }

    #[test]
    fn one_instant_can_be_written_in_several_ways() {
        let ns = start(NOW).ns;
        assert_eq!(ns, 1_795_489_200_000_000_000);
        for text in ["1795489200", "1795489200.000", "2026-11-24T05:00:00+02:00", "2026-11-24 03:00:00Z"] {
            assert_eq!(start(text).ns, ns, "{text}");
        }
        assert_eq!(start("1795489200.25").ns, ns + 250_000_000);
        assert_eq!(start("2026-11-24T03:00:00.5Z").ns, ns + 500_000_000);
        assert_eq!(start("1795489200").to_string(), NOW);
    }

    #[test]
    fn what_means_another_instant_on_another_host_is_refused() {
        for text in ["+60", "+60s", "60s", "2m", "now", "now+60", "in 30s"] {
            assert!(matches!(read(text), Err(FleetProblem::RelativeTime { .. })), "{text}");
        }
        for text in ["2026-11-24T03:00:00", "2026-11-24 03:00"] {
            assert!(matches!(read(text), Err(FleetProblem::NoZone { .. })), "{text}");
        }
        for text in
            ["", "soon", "03:00", "-5", "1e9", "2026-13-01T00:00:00Z", "1969-12-31T23:59:59Z", "99999999999999999999"]
        {
            let read = read(text);
            assert!(
                matches!(read, Err(FleetProblem::Time { .. } | FleetProblem::RelativeTime { .. })),
                "{text}: {read:?}"
            );
        }
    }

    #[test]
    fn a_start_that_is_over_says_by_how_much() {
        let (at, second) = (start(NOW), 1_000_000_000);
        let check = |now_ns| at.check(now_ns, Nanos::millis(250));
        assert_eq!(check(at.ns - 30 * second), Ok(()));
        assert_eq!(check(at.ns + 250_000_000), Ok(()));
        let problem = check(at.ns + 2_500_000_000).unwrap_err();
        assert_eq!(problem.to_string(), "the start, 2026-11-24T03:00:00Z, was 2500 ms ago: this part is too late");
        let ahead = check(at.ns - 30 * 86_400 * second).unwrap_err();
        assert_eq!(ahead.to_string(), "the start, 2026-11-24T03:00:00Z, is 30 days ahead; 7 days is the most");
        let from_now = start("60").check(at.ns, Nanos(0)).unwrap_err();
        assert!(matches!(from_now, FleetProblem::LongPast { .. }), "{from_now}");
        assert!(matches!(start("1795489200000").check(at.ns, Nanos(0)), Err(FleetProblem::FarAhead { .. })));
    }
}
