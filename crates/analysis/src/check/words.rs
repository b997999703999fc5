//! The answer in a few lines that can be read aloud.

use super::{Carries, Check, KeptFrom, Kind, Reached, Relief, Room, Shortfall, Stopped, Unmeasured};
use crate::load_line::open_line::NOT_SHARED;
use crate::opening::at_ceiling;
use crate::sending::OUT_OF_QUOTA;
use crate::{Crowd, HowKnown, Message};
use model::record::{Demand, Demands, Unended};
use model::units::{Nanos, group_thousands, percent};

/// A limit that lies between two multiples which differ by no more than this is known: as finely as it is sought.
const KNOWN: f64 = 1.25;
/// Seconds of a long check that do not go to what is asked.
const OTHER_STEPS_S: f64 = 210.0;
/// Of two times of which one is at least this share of the other, both need not be said.
const SAME: f64 = 0.9;
/// A check that looked at the requested load for so long has seen most burst credits end.
const LONG: Nanos = Nanos::seconds(20 * 60);

impl Check {
    /// The answer, the room that is left or what is carried instead, and what was not seen or what to do: two or three lines.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.sentence()];
        lines.extend(self.met_words());
        lines.extend(self.room_words());
        lines.extend(self.relief.as_ref().map(Relief::words));
        lines.extend(self.hung_beside.map(|(longest, times)| {
            format!(
                "Nothing was answered for {longest} at {} times the requested load: look at the kernel log.",
                factor(times)
            )
        }));
        lines.extend(self.advice());
        lines
    }

    /// The first line.
    pub fn sentence(&self) -> String {
        let place = &self.place;
        let at_once = if self.kinds.len() > 1 { " at the same time" } else { "" };
        match &self.answer {
            Carries::Yes => format!("Yes. {place} sustains {}{at_once}.", together(&self.kinds, Reached::with_value)),
            Carries::No(why) => {
                let cause = self.cause().map_or_else(String::new, |cause| format!("{}: ", cause.words()));
                format!(
                    "No. {place} does not sustain {}{at_once}, because {cause}{}.",
                    together(&self.kinds, Reached::with_limit),
                    why.words()
                )
            }
            Carries::Unknown(why) => format!("Not measurable: {}.", why.words()),
        }
    }

    /// What stops what is asked itself, and not only more of it.
    fn cause(&self) -> Option<&Stopped> {
        let room = self.room.as_ref().filter(|room| room.above.is_some_and(|above| above <= 1.0))?;
        room.stopped_by.as_ref().filter(|stopped| matches!(stopped, Stopped::Ceiling(_) | Stopped::Server(_)))
    }

    /// What stops more than what is asked, in few words.
    pub(crate) fn stopped_words(&self) -> String {
        match self.room.as_ref().map(|room| room.stopped_by.as_ref()) {
            None => "not known".to_owned(),
            Some(None) => "none reached".to_owned(),
            Some(Some(stopped)) => stopped.words().trim_start_matches("it is stopped by ").to_owned(),
        }
    }

    /// How many measurements came out otherwise than the answer.
    fn met_words(&self) -> Option<String> {
        let (met, all) = self.met;
        match &self.answer {
            Carries::Yes => {
                let why = self.missed.as_ref().filter(|_| met < all)?.words();
                Some(format!("{} of {all} measurements did not show it: {why}.", all - met))
            }
            Carries::No(_) | Carries::Unknown(Unmeasured::Generator { .. } | Unmeasured::Slots { .. }) if met > 0 => {
                Some(format!("{met} of {all} measurements met it."))
            }
            Carries::No(_) | Carries::Unknown(_) => None,
        }
    }

    fn room_words(&self) -> Option<String> {
        let Room { carried, kinds, above, stopped_by } = self.room.as_ref()?;
        let rates = |times: f64| together(&asked(&self.demands, times), Reached::with_rate);
        // What comes next is said with its rates: nobody multiplies in his head.
        let at = |times: f64| match times {
            1.0 => "at the requested load".to_owned(),
            _ => format!("at {} times ({})", factor(times), rates(times)),
        };
        let is_said = matches!(self.answer, Carries::No(_)) && self.cause().is_some();
        let then = above
            .zip(stopped_by.as_ref())
            .filter(|_| !is_said)
            .map(|(times, stopped)| format!("{}, {}", at(times), stopped.words()));
        let range = |carried: f64| match above.filter(|above| *above > carried * KNOWN) {
            Some(above) => format!("between {} and {} times", factor(carried), factor(above)),
            None => format!("{} times", factor(carried)),
        };
        Some(match (&self.answer, carried) {
            (Carries::Yes, Some(times)) if *times > 1.0 => match then {
                Some(then) => format!("Room to spare: {} that ({}); {then}.", range(*times), rates(*times)),
                None => {
                    let times = *times;
                    format!(
                        "Room to spare: at least {} times that ({}); no limit was seen.",
                        factor(times),
                        rates(times)
                    )
                }
            },
            (Carries::Yes, _) => match then {
                Some(then) => format!("Room to spare: none was found; {then}."),
                None => {
                    "Room to spare: not measured, there was no time left for more than the requested load.".to_owned()
                }
            },
            (_, Some(times)) => {
                let then = then.map_or(String::new(), |then| format!("; {then}"));
                let carried = together(kinds, Reached::with_value);
                format!("It sustains {} that: {carried}{then}.", range(*times))
            }
            (_, None) => match then.filter(|_| *above < Some(1.0)) {
                Some(then) => format!("Its maximum was not found: {then}."),
                None => "Its maximum was not measured.".to_owned(),
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
                Stopped::Ceiling(ceiling) => Some(format!("To change it: {}", uncapitalised(&ceiling.advice()?))),
                Stopped::Server(stops) => Some(format!("To change it: {}", uncapitalised(&stops.advice()))),
                Stopped::Missed(_)
                | Stopped::Generator
                | Stopped::Schedule
                | Stopped::Slots(_)
                | Stopped::GivenUp(_) => None,
            },
            Carries::Unknown(why) => Some(format!("To measure it: {}.", why.remedy())),
        }
    }
}

impl Relief {
    fn words(&self) -> String {
        let Self { setting, before_per_s, after_per_s, is_at_least } = self;
        let (before, after) = (group_thousands(*before_per_s), group_thousands(*after_per_s));
        if !self.is_proven() {
            return format!(
                "Not confirmed: with `{setting}` the same server did {after} operations/s, and {before} without, so commits are not all \
                 that stops it."
            );
        }
        let (times, least) = (factor(after_per_s / before_per_s), if *is_at_least { "at least " } else { "" });
        format!(
            "Proven by relief: with `{setting}` commits do not wait for the log. The same server then did {after} \
             operations/s instead of {before}, {least}{times} times as many."
        )
    }
}

/// Several kinds of work, each in words.
fn together(kinds: &[Reached], words: impl Fn(&Reached) -> String) -> String {
    let words: Vec<String> = kinds.iter().map(words).collect();
    match words.as_slice() {
        [] => "it".to_owned(),
        [one] => one.clone(),
        [first, second] => format!("{first} with {second}"),
        [first, middle @ .., last] => format!("{first} with {} and {last}", middle.join(", ")),
    }
}

/// What is asked, in words.
pub fn words(demands: &Demands) -> String {
    together(&asked(demands, 1.0), Reached::with_limit)
}

/// What is asked at a multiple.
fn asked(demands: &Demands, times: f64) -> Vec<Reached> {
    let of = |(kind, demand): (Kind, Demand)| Reached {
        kind,
        asked_per_s: demand.per_s * times,
        per_s: None,
        value: None,
        service: None,
        within: demand.within,
    };
    super::kinds::asked(demands).map(of).collect()
}

fn all_busy(slots: u32) -> String {
    format!("all {} slots were busy", group_thousands(f64::from(slots)))
}

fn given_up(late: &Unended) -> String {
    let were = if late.operations == 1 { " was" } else { "s were" };
    let (count, waited) = (group_thousands(late.operations as f64), Nanos(late.waited_ns));
    format!("{count} operation{were} given up after {waited}, before the limit had passed")
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
    /// The percentile that is asked for, `p99` where none is.
    pub fn quantile_name(&self) -> String {
        self.within.map_or_else(|| "p99".to_owned(), |within| quantile_name(within.quantile))
    }

    /// `20,000 reads/s`.
    fn with_rate(&self) -> String {
        rate(self.kind, self.asked_per_s)
    }

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
    pub fn with_limit(&self) -> String {
        let rate = rate(self.kind, self.asked_per_s);
        let within =
            |within: model::record::Within| format!(" ({} within {})", quantile_name(within.quantile), within.limit);
        rate + &self.within.map_or(String::new(), within)
    }
}

impl Reached {
    /// What follows a value that was too late, where work was sent later than it was due.
    fn once_sent(&self) -> String {
        let (Some(value), Some(service), Some(within)) = (self.value, self.service, self.within) else {
            return String::new();
        };
        let why = match () {
            () if service.ns <= within.limit => ": they waited behind work that stalled",
            () if service.ns.0 as f64 > SAME * value.ns.0 as f64 => return String::new(),
            () => "",
        };
        format!(" from when they were due ({service} once sent{why})")
    }
}

impl Shortfall {
    /// As it stands after "because".
    fn words(&self) -> String {
        match self {
            Self::Late(kinds) => {
                let late = |kind: &Reached| {
                    let quantile = kind.within.map_or("p99".to_owned(), |within| quantile_name(within.quantile));
                    let value = kind.value.unwrap_or_default();
                    format!("{quantile} of {} is {value}{}", kind.kind.noun(), kind.once_sent())
                };
                kinds.iter().map(late).collect::<Vec<_>>().join(" and ")
            }
            Self::FellBehind { share: Some(share) } => {
                format!("only {:.0} % of it was finished and a queue grew", (share * 100.0).floor())
            }
            Self::FellBehind { share: None } => "a queue grew".to_owned(),
            Self::Errors { count: 1 } => "1 operation failed".to_owned(),
            Self::Errors { count } => format!("{} operations failed", group_thousands(*count as f64)),
            Self::Hung(longest) => format!("nothing was answered for {longest}"),
            Self::NotSteady => "it was not steady".to_owned(),
        }
    }
}

impl Stopped {
    /// As it stands after "beyond,".
    fn words(&self) -> String {
        match self {
            Self::Ceiling(ceiling) => {
                let tested = if ceiling.how_known() == HowKnown::Tested { " (tested)" } else { "" };
                format!("it is stopped by {}{tested}", at_ceiling(ceiling))
            }
            Self::Server(stops) => format!("it is stopped by {}", stops.words_of("its operations")),
            Self::Missed(why) => why.words(),
            Self::Generator => "the load generator is the limit".to_owned(),
            Self::Schedule => "this machine was too busy to send in time".to_owned(),
            Self::Slots(slots) => all_busy(*slots),
            Self::GivenUp(late) => given_up(late),
        }
    }
}

impl Unmeasured {
    fn words(&self) -> String {
        let number = group_thousands;
        match self {
            Self::Ended(why) => uncapitalised(why),
            Self::Generator { late: Some(late), processors: Some(processors), .. } => format!(
                "{} left too little time to send the load (p99 of its lateness is {late})",
                processors.words_of("its operations")
            ),
            Self::Generator { late: Some(late), once_sent, kept_by, .. } => {
                let once_sent =
                    once_sent.and_then(|kind| Some((kind, kind.service?))).map_or(String::new(), |(kind, value)| {
                        let quantile = kind.within.map_or("p99".to_owned(), |within| quantile_name(within.quantile));
                        format!("; even once sent, {quantile} of {} is {value}", kind.kind.noun())
                    });
                let why = match kept_by {
                    Some(KeptFrom::Quota) => {
                        "a quota of its control group kept the load generator from sending in time".to_owned()
                    }
                    Some(KeptFrom::Crowd(by)) => format!("{} took the CPUs of this machine, which sent late", by.who()),
                    None => "this machine was too busy to send the load in time".to_owned(),
                };
                format!("{why} (p99 of its lateness is {late}{once_sent})")
            }
            Self::Slots { slots } => all_busy(*slots),
            Self::Generator { late: None, .. } => "the load generator was the limit, not what it loads".to_owned(),
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
            Self::TooFew { kind, count, wanted, of_updates, .. } => {
                let (count, wanted) = (number(*count as f64), number(*wanted as f64));
                let besides = if *of_updates { " besides those of updates" } else { "" };
                format!(
                    "there were {count} {}{besides}, too few for their percentile, which needs {wanted}",
                    kind.noun()
                )
            }
            Self::Contradictory => "repeats disagree".to_owned(),
            Self::GivenUp(late) => given_up(late),
            Self::Doubt { sentence, .. } => match sentence.trim_end_matches('.') {
                // Names keep their capitals.
                words if words.starts_with("The ") => uncapitalised(words),
                words => words.to_owned(),
            },
        }
    }

    /// What would make it measurable, as it stands after a colon.
    fn remedy(&self) -> String {
        match self {
            Self::Ended(_) => "let it run to its end".to_owned(),
            Self::Generator { processors: Some(processors), .. } => {
                let advice = uncapitalised(&processors.advice());
                format!("{}, or ask from another machine", advice.trim_end_matches('.'))
            }
            Self::Generator { kept_by: Some(KeptFrom::Quota), .. } => uncapitalised(OUT_OF_QUOTA.trim_end_matches('.')),
            Self::Generator { kept_by: Some(KeptFrom::Crowd(Crowd::Hypervisor)), .. } => {
                uncapitalised(NOT_SHARED.trim_end_matches('.'))
            }
            Self::Generator { .. } => {
                "end what else is working on this machine, or ask from one with more or faster processors".to_owned()
            }
            Self::Slots { .. } => {
                "ask for a lower rate: no more than that can be under way at once; what had a slot was done in time"
                    .to_owned()
            }
            Self::Cached { .. } => "use a larger `--size`".to_owned(),
            Self::WrittenLater { .. } => "take more time (`--for 10m`), or a larger `--size`".to_owned(),
            Self::TooFew { needs, .. } => {
                // A third of a short check goes to what is asked, and of a long one all but three minutes.
                let seconds = needs.0 as f64 / 1e9;
                let minutes = ((seconds * 3.0).min(seconds + OTHER_STEPS_S) / 60.0).ceil().max(1.0);
                format!("take more time (`--for {minutes}m`), or a lower percentile")
            }
            Self::GivenUp(_) => "wait longer for them after the window (`--drain`)".to_owned(),
            Self::Contradictory => "take more time (`--for 10m`), so that noise decides less".to_owned(),
            Self::Doubt { advice, .. } => advice
                .as_ref()
                .map_or_else(|| "see the page".to_owned(), |advice| advice.trim_end_matches('.').to_owned()),
        }
    }
}

/// A sentence as it stands within another.
fn uncapitalised(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}
