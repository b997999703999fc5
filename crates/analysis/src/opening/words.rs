//! The words of the opening sentence.

use super::{Carried, Claim, FromCache, Latency, Opening, StoppedBy, Unit};
use crate::message::{list, of_series};
use crate::{
    Calibrated, Calibration, Ceiling, ConnectionSweep, Limit, LimitAnswer, Multiple, RunVerdict, SizeLimits, Stopped,
    Together,
};
use model::units::{Bytes, Nanos, group_thousands};

impl Opening {
    /// One sentence. What makes the answer doubtful is said instead of it, for a figure that is void is repeated all the
    /// same if it is reported.
    pub fn sentence(&self) -> String {
        format!("{}{}", self.before.as_deref().unwrap_or_default(), self.answer())
    }

    fn answer(&self) -> String {
        if let Some(verdict) = &self.verdict {
            return self.judged(verdict);
        }
        if let Some(check) = &self.check {
            return check.lines().join(" ");
        }
        if let (Some(reported), None) = (&self.reported, &self.doubt) {
            return format!("{reported}.");
        }
        if !self.is_measured {
            let why = self.doubt.as_ref().map_or(String::new(), |doubt| format!(": {}", doubt.phrase));
            return format!("Nothing was measured{why}.");
        }
        if let Some(doubt) = &self.doubt {
            // Where the time went is why, or of use to whoever looks for it.
            let parts = [Some(doubt.phrase.clone()), self.of_sessions(), self.log_checkpoints.clone()];
            return format!("May be invalid: {}.", parts.into_iter().flatten().collect::<Vec<_>>().join("; "));
        }
        if let Some(host) = &self.host {
            return host.sentence();
        }
        let answer = match (&self.carries, &self.calibration) {
            (Some(carried), _) => carried.words(),
            (None, Some(calibration)) => calibrated(calibration),
            (None, None) => match (&self.survey, &self.matrix, &self.bulk) {
                (Some(survey), _, _) => survey.phrase(),
                (None, Some(matrix), _) => matrix.phrase(),
                (None, None, Some(bulk)) => bulk.phrase(),
                (None, None, None) => "The sustained load is not known".to_owned(),
            },
        };
        let rises = self.rises_from.as_ref().map(|from| format!("latency rises faster than load from about {from} on"));
        let stopped = self.stopped();
        let together = self.together.as_ref().map(Together::phrase);
        let connections = self.connections.as_ref().map(ConnectionSweep::phrase);
        let from_cache = self.from_cache.as_ref().map(FromCache::words).filter(|_| self.likeness.is_none());
        let checkpoints = self.log_checkpoints.clone();
        let parts =
            [Some(answer), stopped, checkpoints, together, connections, rises, from_cache, self.likeness.clone()];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ") + "."
    }

    /// What users, or sessions on a server, spent their time on: what stands before a doubt, whose cause it may be.
    pub fn of_sessions(&self) -> Option<String> {
        let is_of_sessions = |by: &&StoppedBy| matches!(by, StoppedBy::Sessions(..) | StoppedBy::MostOfTime(..));
        self.stopped_by.as_ref().filter(is_of_sessions).map(StoppedBy::words)
    }

    /// Why it was not more.
    fn stopped(&self) -> Option<String> {
        let stopped = self.stopped_by.as_ref().map(StoppedBy::words)?;
        let beyond = self.beyond.as_ref().map_or_else(String::new, |found| format!(", then by {}", at_ceiling(found)));
        let next = match self.processors_next {
            Some(times) if times < 1.05 => "; processors are at their end as well".to_owned(),
            Some(times) => format!("; processors come next, at {times:.1} times that at most"),
            None => String::new(),
        };
        Some(stopped + &self.and_spent() + &beyond + &next)
    }

    /// Where the time of what was too much went, behind what ended the load.
    pub(super) fn and_spent(&self) -> String {
        self.spent.map_or_else(String::new, |spent| format!("; there {}", spent.words()))
    }

    /// The same for who asked for a limit: yes or no, the figure and the limit, and only then why it should not be repeated.
    fn judged(&self, verdict: &RunVerdict) -> String {
        let word = verdict.answer.word();
        if !self.is_measured {
            let why = self.doubt.as_ref().map_or(String::new(), |doubt| format!(": {}", doubt.phrase));
            return format!("{word}: nothing was measured{why}.");
        }
        let answer = verdict.words(self.carries.as_ref());
        let of_line = |reported: Option<String>| {
            reported.filter(|_| verdict.load.is_none() && verdict.answer == LimitAnswer::Yes)
        };
        // What users waited for is of use to whoever reads no as well.
        let of_sessions = self.of_sessions();
        let stopped = of_line(self.stopped()).or(of_sessions);
        let together = self.together.as_ref().map(Together::phrase);
        let doubt = self.doubt.as_ref().map(|doubt| format!("not to be relied on as it stands: {}", doubt.phrase));
        let connections = self.connections.as_ref().map(ConnectionSweep::phrase);
        let from_cache = self.from_cache.as_ref().map(FromCache::words).filter(|_| self.likeness.is_none());
        let checkpoints = self.log_checkpoints.clone();
        let likeness = self.likeness.clone();
        let parts = [Some(answer), stopped, checkpoints, together, connections, from_cache, likeness, doubt];
        format!("{word}: {}.", parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
    }
}

/// Below ten, one decimal says more.
pub(crate) fn number(value: f64) -> String {
    if value.abs() < 9.95 && value.fract() != 0.0 { format!("{value:.1}") } else { group_thousands(value) }
}

/// A multiple with as many digits as anyone repeats.
pub(super) fn multiple(times: f64) -> String {
    ((times * 100.0).round() / 100.0).to_string()
}

/// A share in whole percents, which is as much as anyone repeats.
fn whole_percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

impl Unit {
    /// As it stands behind a rate: `reads/s`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Requests => "requests/s",
            Self::Reads => "reads/s",
            Self::BufferMisses => "buffer misses/s",
            Self::Operations => "operations/s",
            Self::Transactions => "transactions/s",
            Self::Megabytes => "MB/s",
        }
    }
}

impl Latency {
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Within { what, limit } => format!(" at {what} within {limit}"),
            Self::WithinAll(limits) => {
                let limits: Vec<String> = limits.iter().map(|(what, limit)| format!("{what} within {limit}")).collect();
                format!(" at {}", limits.join(" and "))
            }
            Self::OfFew { event } => format!(", most of them {event}"),
            Self::Seen { what, value, missed } => {
                let bound = if value.is_bound { "of " } else { "" };
                let limit = missed.map_or_else(String::new, |limit| format!(" (limit {limit})"));
                format!(" at {what} {bound}{value}{limit}")
            }
        }
    }
}

impl Carried {
    /// The same in the middle of a sentence.
    pub(crate) fn judged_words(&self) -> String {
        let words = self.words();
        words[..1].to_lowercase() + &words[1..]
    }

    /// Its rate, and what else says how much that is.
    fn rates(&self) -> (String, Option<String>) {
        let beside = match (self.megabytes_per_s, self.misses_per_s) {
            (Some(rate), _) => Some(format!("{} MB/s", number(rate))),
            (None, Some(rate)) => Some(format!("{} buffer misses/s", number(rate))),
            (None, None) => None,
        };
        (format!("{} {}", number(self.per_s), self.unit.words()), beside)
    }

    fn rate(&self) -> String {
        let (rate, beside) = self.rates();
        beside.map_or(rate.clone(), |beside| format!("{rate} ({beside})"))
    }

    /// The same within brackets.
    fn rate_beside(&self) -> String {
        let (rate, beside) = self.rates();
        [Some(rate), beside].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// The same as a multiple of a production's, where it is like one.
    pub(super) fn rate_of_production(&self) -> String {
        let rate = self.rate_beside();
        match &self.multiple {
            Some(Multiple { of, times: 1.0, .. }) => format!("{of} ({rate})"),
            Some(Multiple { of, times, .. }) => format!("{} times {of} ({rate})", multiple(*times)),
            None => self.rate(),
        }
    }

    fn words(&self) -> String {
        let unit = self.unit.words();
        let series = of_series(&self.series);
        let rate = self.rate();
        let latency = self.latency.as_ref().map_or(String::new(), Latency::words);
        let load = self.load.as_ref().map_or(String::new(), |load| format!(" with {load}"));
        match &self.claim {
            Claim::Most { not_per_s: Some(not), .. } => match &self.multiple {
                Some(Multiple { of, times, not_times: Some(not_times) }) => {
                    let (times, not_times) = (multiple(*times), multiple(*not_times));
                    let rate = self.rate_beside();
                    format!("Sustains {times} but not {not_times} times {of} ({rate}){latency}{series}")
                }
                _ => format!("Sustains {} but not {} {unit}{latency}{series}", number(self.per_s), number(*not)),
            },
            Claim::Most { not_per_s: None, missed_below } if missed_below.is_empty() => {
                format!("Sustains {rate}{latency}{load}{series}")
            }
            Claim::Most { missed_below, .. } => {
                format!(
                    "Sustains {rate}{latency}{load}{series}, although {} with less load did not",
                    list(missed_below)
                )
            }
            Claim::AtLeast => format!("Sustains at least {}{latency}{load}{series}", self.rate_of_production()),
            Claim::LessThan { value, why } => {
                let value = value.map(|value| format!("it is {value}")).or_else(|| why.clone());
                let why = value.map_or(String::new(), |value| format!(": {value}{load} already"));
                format!("Sustains less than {}{latency}{series}{why}", self.rate_of_production())
            }
            Claim::Unclear => {
                format!("The sustained load is not clear: {rate}{load}{series} ran{latency}, smaller loads did not")
            }
            Claim::Sustained { burst, lasted, may_be_write_cache } => {
                let cache = if *may_be_write_cache { " or a write cache" } else { "" };
                format!(
                    "Sustains {rate}; {burst} before that, for {lasted}, look like a burst credit{cache} that ran out"
                )
            }
            Claim::Steady { from: Nanos(0) } => format!("Holds {rate}{latency}{load}, steady from the start"),
            Claim::Steady { from } => format!("Holds {rate}{latency}{load}, steady after {from}"),
            Claim::Seen => format!("Did {}{latency}{load}{series}", self.rate_of_production()),
        }
    }
}

impl StoppedBy {
    /// A ceiling that stops a load; absent where it names nothing.
    pub(super) fn at(found: &Ceiling) -> Option<Self> {
        match found.limit {
            Limit::Generator { .. } => Some(Self::LoadGenerator),
            Limit::NotReached { .. } | Limit::Unclear => None,
            _ => Some(Self::Ceiling(found.clone())),
        }
    }

    /// Whether it says nothing of the target.
    pub(super) fn is_of_this_machine(&self) -> bool {
        matches!(self, Self::LoadGenerator | Self::SentLate(_) | Self::Crowded(_))
    }

    pub(crate) fn words(&self) -> String {
        match self {
            Self::Ceiling(ceiling) => format!("stopped by {}", at_ceiling(ceiling)),
            Self::Caps(limits) => format!("stopped by {}", caps(limits)),
            Self::Sessions(stops, words) => format!("stopped by {}", stops.words_of(words.work())),
            Self::MostOfTime(stops, words) => stops.went_to(words.work()),
            Self::MostOfRequests(spent) => spent.words(),
            Self::Network(stop) => format!("stopped by {}", stop.words()),
            Self::OneHost => {
                "both ends are on this host, so that this is what its processors and kernel do, and not a network"
                    .to_owned()
            }
            Self::LoadGenerator => "stopped by the load generator, not by the target".to_owned(),
            Self::SentLate(lag_p99) => {
                format!("stopped by this machine, which sent late (p99 {lag_p99}): the target may carry more")
            }
            Self::Crowded(by) => {
                format!("stopped by {}, which took this machine's CPUs: the target may carry more", by.who())
            }
            Self::Latency { what, value, load } => {
                let of = what.as_ref().map_or_else(String::new, |what| format!("{what} of "));
                let value = value.map_or_else(|| "more than that".to_owned(), |value| value.to_string());
                let load = load.as_ref().map_or(String::new(), |load| format!(" with {load}"));
                format!("stopped by latency, {of}{value}{load}")
            }
            Self::Queue => "a queue grew there".to_owned(),
            Self::Errors => "too many failed there".to_owned(),
            Self::Missed(why) => format!("beyond that {why}"),
            Self::Hung(longest) => format!("nothing was answered for {longest} there"),
            Self::Unsteady => "that was not steady".to_owned(),
            Self::Nothing => "no limit was reached".to_owned(),
        }
    }

    /// What it is, and what belongs to it.
    pub(super) fn in_tile(&self) -> (String, String) {
        let of = |what: &str, note: String| (what.to_owned(), note);
        match self {
            Self::Ceiling(ceiling) => {
                let sure = ceiling.confidence().map_or_else(String::new, |it| it.in_brackets().to_owned());
                of(
                    &number(ceiling.per_s),
                    format!("{}, {sure}", ceiling_kind(ceiling)).trim_end_matches(", ").to_owned(),
                )
            }
            Self::Caps(limits) => of("two limits", caps(limits)),
            Self::Sessions(..) | Self::Network(_) => {
                let words = self.words();
                let words = words.trim_start_matches("stopped by ");
                let (value, note) = words.split_once(" (").unwrap_or((words, ""));
                (value.to_owned(), note.trim_end_matches(')').to_owned())
            }
            Self::MostOfTime(..) | Self::MostOfRequests(_) => of("not known", self.words()),
            Self::LoadGenerator => of("load generator", "not the target".to_owned()),
            Self::SentLate(lag_p99) => of("this machine", format!("sent late (p99 {lag_p99})")),
            Self::Crowded(by) => of("this machine", format!("{} took its CPUs", by.who())),
            Self::OneHost => of("this host", "there was no network".to_owned()),
            Self::Latency { .. } => of("latency", self.words().trim_start_matches("stopped by latency, ").to_owned()),
            Self::Queue => of("queue", "a queue grew at the next rate".to_owned()),
            Self::Errors => of("errors", "too many operations failed at the next rate".to_owned()),
            Self::Missed(why) => of("other", why.clone()),
            Self::Hung(longest) => of("stall", format!("nothing was answered for {longest}")),
            Self::Unsteady => of("not steady", "at the next rate".to_owned()),
            Self::Nothing => of("none reached", "the rate still grew".to_owned()),
        }
    }
}

fn ceiling_kind(ceiling: &crate::Ceiling) -> String {
    let words = at_ceiling(ceiling);
    let kind = words.split(" at ").next().unwrap_or_default();
    format!("{}/s: {}", ceiling.what, kind.trim_end_matches(','))
}

pub(crate) fn at_ceiling(ceiling: &Ceiling) -> String {
    let rate = format!("{} {}/s", number(ceiling.per_s), ceiling.what.trim_start_matches("physical "));
    let bytes = ceiling.megabytes_per_s.map(|rate| format!("{} MB/s", number(rate)));
    let both = bytes.as_ref().map_or(rate.clone(), |bytes| format!("{rate} ({bytes})"));
    let like = ceiling.like.map_or(String::new(), |like| format!(", as published for {like}"));
    let set = if ceiling.is_set_by_software() { " set by software" } else { "" };
    if let Some(named) = &ceiling.named {
        return format!("{}, which {}", named.name(), named.does());
    }
    match ceiling.limit {
        // Its seconds are the same to the request, and no burst came through after a pause.
        _ if ceiling.may_be_device() => format!("a limit or the device itself, at {both}{like}"),
        Limit::Requests => format!("an IOPS limit{set} at {rate}{like}"),
        Limit::Throughput => format!("a throughput limit{set} at {}{like}", bytes.unwrap_or(rate)),
        Limit::RequestsOrThroughput => format!("a limit{set} at {both}{like}"),
        Limit::FileServer => format!("the way to the server, it itself, or what it reads from, at {both}"),
        Limit::CallsInFlight { bound } => {
            format!("the {bound} calls in flight that each connection may have, at {both}")
        }
        Limit::Server => format!("the server, or what it reads from, at {rate}"),
        Limit::ServerStorage => format!("the storage that the server reads from, at {rate}"),
        Limit::Neighbour { is_part: true, .. } => {
            format!("other parts of the fleet, or others, who used the device, at {both}")
        }
        Limit::Neighbour { is_part: false, .. } => format!("others who used the device, at {both}"),
        Limit::Device | Limit::Generator { .. } | Limit::Unclear | Limit::NotReached { .. } => {
            format!("the device, at {both}")
        }
    }
}

pub(super) fn caps(limits: &SizeLimits) -> String {
    let requests = limits.requests_per_s.map(|limit| format!("an IOPS limit at {} requests/s", number(limit)));
    let bytes = limits.bytes_per_s.map(|limit| format!("a throughput limit at {} MB/s", number(limit / 1e6)));
    requests.into_iter().chain(bytes).collect::<Vec<_>>().join(" and ")
}

impl FromCache {
    pub(super) fn words(&self) -> String {
        match self {
            Self::FasterTier { share, load } => {
                format!("{} of reads came from a cache or a faster tier (at {load})", whole_percent(*share))
            }
            Self::PageCache { share } => format!("{} of buffer misses came from the page cache", whole_percent(*share)),
            Self::PageCacheUnknown => "whether misses reached storage or the page cache is not known".to_owned(),
            Self::BufferCache { hit_ratio } => {
                format!("the buffer cache answered {} of logical reads", whole_percent(*hit_ratio))
            }
        }
    }
}

pub(super) fn calibrated(calibration: &Calibration) -> String {
    let least = |found: &Calibrated| match found.stopped {
        Stopped::MostOutstanding | Stopped::CutShort => "at least ",
        Stopped::RateFlat | Stopped::LatencyLimit { .. } => "",
    };
    let limit = format!("{} latency within {}", calibration.cap.name(), calibration.cap.limit);
    let requests = match &calibration.max_iops {
        Some(found) => {
            let (rate, size) = (number(found.rate.value), Bytes(found.request.0));
            format!("Sustains {}{rate} reads/s of {size} at {limit}", least(found))
        }
        None => format!("Sustains no small reads at {limit}"),
    };
    let bytes = calibration.max_bytes.as_ref().map(|found| {
        let (rate, size) = (number(found.rate.value / 1e6), Bytes(found.request.0));
        format!(", and {}{rate} MB/s in reads of {size}", least(found))
    });
    requests + &bytes.unwrap_or_default()
}
