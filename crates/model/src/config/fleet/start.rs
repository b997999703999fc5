//! When all parts begin.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::DateTime;

use super::FleetProblem;
use crate::config::ConfigError;
use crate::units::Nanos;

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
