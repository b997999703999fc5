//! The answer in a few lines that can be read aloud.

use super::{Carries, Check, Kind, Reached, Room, Shortfall, Stopped, Unmeasured};
use crate::analysis::Message;
use crate::analysis::opening::at_ceiling;
use crate::units::{Nanos, group_thousands, percent};

/// A check that looked at what is asked for so long has seen most burst credits end.
const LONG: Nanos = Nanos::seconds(20 * 60);

impl Check {
    /// The answer, the room that is left or what is carried instead, and what was not seen or what to do: two or three lines.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.sentence()];
        lines.extend(self.room_words());
        lines.extend(self.advice());
        lines
    }

    /// The first line.
    pub fn sentence(&self) -> String {
        let place = &self.place;
        match &self.answer {
            Carries::Yes => format!("Yes. {place} carries {}.", together(&self.kinds, Reached::with_value)),
            Carries::No(why) => {
                format!(
                    "No. {place} does not carry {}, because {}.",
                    together(&self.kinds, Reached::with_limit),
                    why.words()
                )
            }
            Carries::Unknown(why) => format!("Not measurable: {}.", why.words()),
        }
    }

    fn room_words(&self) -> Option<String> {
        let Room { carried, kinds, stopped_by } = self.room.as_ref()?;
        let then = stopped_by.as_ref().map(Stopped::words);
        Some(match (&self.answer, carried) {
            (Carries::Yes, Some(times)) if *times > 1.0 => match then {
                Some(then) => format!("Room to spare: {} times that; beyond, {then}.", factor(*times)),
                None => format!("Room to spare: at least {} times that; no limit was seen.", factor(*times)),
            },
            (Carries::Yes, _) => match then {
                Some(then) => format!("Room to spare: none was found; at the next larger rate that was tried, {then}."),
                None => "Room to spare: not measured.".to_owned(),
            },
            (_, Some(times)) => {
                let then = then.map_or(String::new(), |then| format!("; beyond, {then}"));
                format!("It carries {} times that: {}{then}.", factor(*times), together(kinds, Reached::with_value))
            }
            (_, None) => match then {
                Some(then) => format!("How much it carries was not found: at the least rate that was tried, {then}."),
                None => "How much it carries was not measured.".to_owned(),
            },
        })
    }

    fn advice(&self) -> Option<String> {
        match &self.answer {
            Carries::Yes if self.may_be_memory => Some(format!(
                "Not seen: whether reads reached storage or the server's page cache, and what sets in after {}.",
                self.window
            )),
            Carries::Yes if self.window < LONG => Some(format!(
                "Not seen: anything that sets in after {} at these rates, such as the end of burst credits. For that: `--for 30m`.",
                self.window
            )),
            Carries::Yes => None,
            Carries::No(_) if self.others.is_some() => Some(format!(
                "Others used the device meanwhile: {} % of what it read was not for this check. Repeat when it is quiet to know it alone.",
                percent(self.others.unwrap_or_default())
            )),
            Carries::No(_) => match self.room.as_ref()?.stopped_by.as_ref()? {
                Stopped::Ceiling(ceiling) => Some(format!("To change it: {}", ceiling.advice()?)),
                Stopped::Missed(_) | Stopped::Generator => None,
            },
            Carries::Unknown(why) => Some(format!("To measure it: {}.", why.remedy())),
        }
    }
}

/// Kinds of work at the same time, each in words.
fn together(kinds: &[Reached], words: impl Fn(&Reached) -> String) -> String {
    let words: Vec<String> = kinds.iter().map(words).collect();
    match words.as_slice() {
        [] => "it".to_owned(),
        [one] => one.clone(),
        [first, second] => format!("{first} with {second} at the same time"),
        [first, middle @ .., last] => format!("{first} with {} and {last} at the same time", middle.join(", ")),
    }
}

/// A multiple to two digits.
fn factor(times: f64) -> String {
    if times >= 10.0 { group_thousands(times.floor()) } else { format!("{}", (times * 100.0).floor() / 100.0) }
}

/// A rate as people say it; a scan's in megabytes (10^6).
fn rate(kind: Kind, per_s: f64) -> String {
    let (value, unit) = if kind == Kind::Scan { (per_s / 1e6, "MB") } else { (per_s, "") };
    let number = if value < 9.95 && value.fract() != 0.0 { format!("{value:.1}") } else { group_thousands(value) };
    if unit.is_empty() {
        format!("{number} {}/s", kind.noun())
    } else {
        format!("{number} {unit}/s of {}", kind.noun())
    }
}

fn quantile_name(quantile: f64) -> String {
    format!("p{}", (quantile * 1e6).round() / 1e4)
}

impl Kind {
    /// The work, such as `reads`.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Writes => "writes",
            Self::Commits => "commits",
            Self::Scan => "scans",
        }
    }
}

impl Reached {
    /// `20,000 reads/s (p99 2.10 ms of 5.00 ms)`.
    fn with_value(&self) -> String {
        let rate = rate(self.kind, self.asked_per_s);
        match (self.value, self.within) {
            (Some(value), Some(within)) => {
                format!("{rate} ({} {value} of {})", quantile_name(within.quantile), within.limit)
            }
            (Some(value), None) => format!("{rate} (p99 {value})"),
            (None, _) => rate,
        }
    }

    /// `20,000 reads/s (p99 within 5.00 ms)`.
    fn with_limit(&self) -> String {
        let rate = rate(self.kind, self.asked_per_s);
        let within =
            |within: crate::record::Within| format!(" ({} within {})", quantile_name(within.quantile), within.limit);
        rate + &self.within.map_or(String::new(), within)
    }
}

impl Shortfall {
    /// As it stands after "because".
    fn words(&self) -> String {
        match self {
            Self::Late(kinds) => {
                let late = |kind: &Reached| {
                    let quantile = kind.within.map_or("p99".to_owned(), |within| quantile_name(within.quantile));
                    let service = kind.service.zip(kind.within).filter(|(service, within)| service.ns <= within.limit);
                    let service = service.map_or(String::new(), |(service, _)| {
                        format!(" from when they were due ({service} once sent: they waited behind work that stalled)")
                    });
                    format!("{quantile} of {} is {}{service}", kind.kind.noun(), kind.value.unwrap_or_default())
                };
                kinds.iter().map(late).collect::<Vec<_>>().join(" and ")
            }
            Self::FellBehind { share: Some(share) } => {
                format!("only {:.0} % of it was finished and a queue grew", (share * 100.0).floor())
            }
            Self::FellBehind { share: None } => "a queue grew".to_owned(),
            Self::Errors => "too much of it failed".to_owned(),
            Self::NotSteady => "it was not steady".to_owned(),
        }
    }
}

impl Stopped {
    /// As it stands after "beyond,".
    fn words(&self) -> String {
        match self {
            Self::Ceiling(ceiling) => format!("it is stopped by {}", at_ceiling(ceiling)),
            Self::Missed(why) => why.words(),
            Self::Generator => "the load generator is the limit".to_owned(),
        }
    }
}

impl Unmeasured {
    fn words(&self) -> String {
        let number = group_thousands;
        match self {
            Self::Ended(why) => {
                let mut letters = why.chars();
                letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
            }
            Self::Generator { late: Some(late) } => {
                format!("this machine was too busy to send the load in time (p99 of its lateness is {late})")
            }
            Self::Generator { late: None } => "the load generator was the limit, not what it loads".to_owned(),
            Self::Cached { reads_per_s, asked_per_s } => format!(
                "only {} of {} reads/s reached storage, a cache before it answered the others",
                number(*reads_per_s),
                number(*asked_per_s)
            ),
            Self::WrittenLater { writes_per_s, asked_per_s } => format!(
                "only {} of {} writes/s reached storage within the window",
                number(*writes_per_s),
                number(*asked_per_s)
            ),
            Self::TooFew { kind, count, wanted, .. } => {
                let (count, wanted) = (number(*count as f64), number(*wanted as f64));
                format!("there were {count} {}, too few for their percentile, which needs {wanted}", kind.noun())
            }
            Self::Contradictory => "one time it was carried and one time not".to_owned(),
            Self::Doubt { sentence, .. } => sentence.trim_end_matches('.').to_owned(),
        }
    }

    /// What would make it measurable, as it stands after a colon.
    fn remedy(&self) -> String {
        match self {
            Self::Ended(_) => "let it run to its end".to_owned(),
            Self::Generator { .. } => {
                "end what else is working on this machine, or ask from one with more or faster processors".to_owned()
            }
            Self::Cached { .. } => "use a larger `--size`".to_owned(),
            Self::WrittenLater { .. } => "take more time (`--for 10m`), or a larger `--size`".to_owned(),
            Self::TooFew { needs, .. } => {
                let minutes = (needs.0 as f64 * 3.0 / 60e9).ceil().max(1.0);
                format!("take more time (`--for {minutes}m`), or a lower percentile")
            }
            Self::Contradictory => "take more time (`--for 10m`), so that noise decides less".to_owned(),
            Self::Doubt { advice, .. } => advice
                .as_ref()
                .map_or_else(|| "see the page".to_owned(), |advice| advice.trim_end_matches('.').to_owned()),
        }
    }
}
