//! What is said of a limit, and what can be done about it.

use super::{Ceiling, Confidence, Grounds, Limit, PulseVerdict};
use crate::Message;
use crate::Rule;
use crate::message::{list, of_series};
use crate::seconds::LeftOut;
use model::units::{Bytes, group_thousands, percent};

impl Ceiling {
    fn rates(&self) -> String {
        let megabytes = self.megabytes_per_s.map_or(String::new(), |mb| format!(" ({} MB/s)", group_thousands(mb)));
        format!("{} {}/s{megabytes}", group_thousands(self.per_s), self.what)
    }

    fn verdict(&self) -> String {
        let kind = match self.limit {
            Limit::Requests => "a limit on requests",
            Limit::Throughput => "a limit on throughput",
            Limit::RequestsOrThroughput => "a limit",
            Limit::Server => return "the server, or what it reads from, has no more to give".to_owned(),
            Limit::FileServer => {
                return "the way to the server, it itself, or what it reads from has no more to give".to_owned();
            }
            Limit::CallsInFlight { bound } => {
                return format!("each connection has all {bound} calls in flight, which take no longer than with room");
            }
            Limit::ServerStorage => {
                return "the storage that the server reads from has no more to give, or a limit on it".to_owned();
            }
            _ if self.is_said_by_pulses() => {
                return format!("the device, or what is behind it, has no more to give: {}", self.pulses());
            }
            _ => return "the device, or its queue, has no more to give".to_owned(),
        };
        let like = self.like.map_or(String::new(), |like| format!(", as published for {like}"));
        match self.pulsed.map(|pulsed| pulsed.verdict) {
            Some(PulseVerdict::Burst) => format!("{kind} set by software{like}: {}", self.pulses()),
            Some(PulseVerdict::NoMore) => {
                format!("{kind} that saves no credit, or a device whose service is as even{like}: {}", self.pulses())
            }
            Some(PulseVerdict::Unknown) | None => format!("{kind}, set for it or its own{like}"),
        }
    }

    /// What came through after a pause, as a clause or, where that is not clear, as a sentence of its own; empty without pulses.
    fn pulses(&self) -> String {
        let Some(pulsed) = self.pulsed else { return String::new() };
        let ((agree, all), pause_s) = (pulsed.agree, pulsed.pause.as_seconds());
        let times = pulsed.median_ratio.unwrap_or(0.0);
        match pulsed.verdict {
            PulseVerdict::Burst => {
                format!(
                    "after a pause of {pause_s} s it lets {times:.1} times its rate through ({agree} of {all} pulses)"
                )
            }
            PulseVerdict::NoMore => {
                format!(
                    "after a pause of {pause_s} s it lets no more through than before ({times:.1} times, {agree} of {all} pulses)"
                )
            }
            PulseVerdict::Unknown if all == 0 => {
                " It is unknown whether software sets it: no pulse after a pause was whole.".to_owned()
            }
            PulseVerdict::Unknown => format!(
                " Pulses after a pause of {pause_s} s do not show whether software sets it: they let {times:.1} times its rate through."
            ),
        }
    }

    /// That pulses leave it open, as a sentence of its own; empty where they do not.
    fn left_open(&self) -> String {
        let is_open = self.pulsed.is_some_and(|pulsed| pulsed.verdict == PulseVerdict::Unknown);
        if is_open { self.pulses() } else { String::new() }
    }
}

impl Ceiling {
    /// What requests of another size showed, as a sentence of its own; empty where they showed nothing.
    fn by_size(&self) -> String {
        let Some(test) = self.other_size else { return String::new() };
        let (same, counts) = match self.limit {
            Limit::Throughput => (", which is as many bytes", "bytes"),
            _ => (" as well", "requests"),
        };
        let (size, per_s) = (Bytes(test.request_bytes.into()), group_thousands(test.requests_per_s()));
        format!(" Requests of {size} came at {per_s}/s{same}: it counts {counts}.")
    }
}

impl LeftOut {
    /// What was left out, as the end of a sentence; empty if nothing was.
    fn words(&self) -> String {
        let Self { seconds, disturbed, by_others } = self;
        match by_others {
            _ if *disturbed == 0 => String::new(),
            0 => format!("; {disturbed} of {seconds} seconds were disturbed and are left out"),
            by_others => format!(
                "; {disturbed} of {seconds} seconds were disturbed and are left out, in {by_others} of them others used the device"
            ),
        }
    }
}

impl Confidence {
    /// As the beginning of a sentence.
    fn words(self) -> &'static str {
        match self {
            Self::Uncertain => "Uncertain",
            Self::Likely => "Likely",
            Self::AlmostCertain => "Almost certain",
        }
    }
}

/// How seldom something happens by chance.
fn seldom(chance: f64) -> String {
    match chance {
        chance if chance < 1e-6 => "fewer than one run in a million".to_owned(),
        chance => format!("fewer than one run in {}", group_thousands(10_f64.powf((1.0 / chance).log10().floor()))),
    }
}

impl Ceiling {
    /// What the verdict rests on, with how sure it is, as a sentence of its own; empty where the rates say it all.
    fn reason(&self) -> String {
        let (Some(confidence), Some(grounds)) = (self.confidence(), self.grounds) else { return String::new() };
        if self.is_said_by_pulses() {
            return " A limiter that saves credit would let several times as much through.".to_owned();
        }
        let confidence = confidence.words();
        let reason = match grounds {
            Grounds::Exact { seconds, within, chance, left_out } => format!(
                "{seconds} of {} seconds are the same to within {}, which chance shows in {}{}",
                left_out.seconds,
                match within.ceil() {
                    requests if requests <= 1.0 => "one request".to_owned(),
                    requests => format!("{} requests", group_thousands(requests)),
                },
                seldom(chance),
                left_out.words()
            ),
            Grounds::Scatter { deviation: None, .. } => "there are too few seconds to judge them one by one".to_owned(),
            Grounds::Scatter { deviation: Some(deviation), left_out } => format!(
                "from second to second it strays by {} %{}{}",
                percent(deviation),
                match (self.is_cap(), confidence) {
                    (true, _) => ", as something that counts, or a device whose service is even",
                    (false, "Uncertain") => ", as at a limit that counts, whose other signs are missing",
                    _ => ", more than at a limit that counts",
                },
                left_out.words()
            ),
        };
        format!(" {confidence}: {reason}.")
    }
}

impl Message for Ceiling {
    fn rule(&self) -> Rule {
        match self.limit {
            Limit::Requests | Limit::Throughput | Limit::RequestsOrThroughput => Rule::CeilingLimit,
            Limit::Device => Rule::CeilingDevice,
            Limit::Server | Limit::ServerStorage | Limit::FileServer | Limit::CallsInFlight { .. } => {
                Rule::CeilingServer
            }
            Limit::Generator { .. } => Rule::CeilingGenerator,
            Limit::Neighbour { .. } => Rule::CeilingNeighbour,
            Limit::Unclear => Rule::CeilingUnclear,
            Limit::NotReached { .. } => Rule::CeilingNone,
        }
    }

    fn sentence(&self) -> String {
        let (from, to) = &self.loads;
        let series = of_series(&self.series);
        let spread = percent(self.spread);
        if let Some(named) = &self.named {
            return format!("Throughput{series} stops at {} at {to}: {}.", self.rates(), named.words());
        }
        match self.limit {
            Limit::Generator { ceiling_per_s, .. } => format!(
                "Throughput{series} reached {} at {to}; the load generator alone reaches {} {}/s: this is its limit, not that of storage.",
                self.rates(),
                group_thousands(ceiling_per_s),
                if self.what == "requests" { self.what } else { "operations" }
            ),
            Limit::NotReached { growth } => format!(
                "No limit was reached{series}: throughput still grew by {} % from {from} to {to}, to {}.",
                percent(growth),
                self.rates()
            ),
            Limit::Neighbour { seconds: (with_others, all), is_part } => format!(
                "What storage gives{series} is unknown: {} used the device in {with_others} of {all} seconds of {}; beside them we reached {}.",
                if is_part { "other parts of the fleet, or others," } else { "others" },
                list(&self.steps),
                self.rates()
            ),
            Limit::Unclear => {
                let (exact, seconds) = match self.grounds {
                    Some(Grounds::Exact { seconds, left_out, .. }) => (seconds, left_out.seconds),
                    _ => (0, 0),
                };
                format!(
                    "Too few undisturbed seconds tell what limits throughput{series}. {exact} of {seconds} seconds \
                     of {} are the same, as at a limit of {}, which may be chance.",
                    list(&self.steps),
                    self.rates()
                )
            }
            _ if self.steps.len() == 1 => format!(
                "Throughput{series} sits at {} at {to} (within {spread} % from second to second): {}.{}{}{}",
                self.rates(),
                self.verdict(),
                self.reason(),
                self.left_open(),
                self.by_size()
            ),
            _ => {
                let slower = self.slower.map_or(String::new(), |slower| {
                    let what = match self.what {
                        "requests" | "reads" | "writes" => "requests",
                        "buffer misses" => "operations",
                        _ => "reads",
                    };
                    format!(" while {what} take {slower:.1} times as long")
                });
                format!(
                    "Throughput{series} stays at {} from {from} to {to} (within {spread} %){slower}: {}.{}{}{}",
                    self.rates(),
                    self.verdict(),
                    self.reason(),
                    self.left_open(),
                    self.by_size()
                )
            }
        }
    }

    fn advice(&self) -> Option<String> {
        if self.named.is_some() {
            return Some("To measure the device, raise the limit or start Plimsoll outside of the group.".to_owned());
        }
        let advice = match self.limit {
            Limit::RequestsOrThroughput if matches!(self.what, "reads" | "writes") => {
                "Compare with the limits of the volume and of the machine; repeat with reads or writes alone, and with another block size."
            }
            Limit::RequestsOrThroughput => {
                "Compare with the limits of the volume and of the machine. Another block size distinguishes a limit \
                 on requests from one on throughput."
            }
            Limit::Requests | Limit::Throughput => {
                "Compare with the limits of the volume and of the machine; a larger or faster volume moves the first only."
            }
            Limit::Device => {
                "Compare with another device; if both stop here, look at what lies between them and the machine."
            }
            Limit::Neighbour { is_part: true, .. } => "Merge the parts, and judge the whole: `plimsoll merge`.",
            Limit::Neighbour { is_part: false, .. } => "Repeat when the device is quiet.",
            Limit::Unclear => "Repeat with longer steps (`--duration`), or when the device is quiet.",
            Limit::ServerStorage => {
                "Load that storage by itself, which tells a limit on it from a device: `plimsoll io sweep --path` with a file on it."
            }
            Limit::FileServer => {
                "Measure the way by itself (`plimsoll net run`), and there the storage (`plimsoll io sweep`); look at the server's processors."
            }
            Limit::CallsInFlight { .. } => {
                "Use more connections, or a larger `outstanding=` in the address, if the server allows it."
            }
            Limit::Server => "Look at what its sessions were doing, and at its processors and its storage.",
            Limit::Generator { threads, .. } => return Some(threads.for_generator()),
            Limit::NotReached { .. } => "Raise the load until throughput stops growing.",
        };
        Some(advice.to_owned())
    }
}
