//! Links from one host to several servers against each other: which one is slow.

use super::survey::{Bulk, RoundTrip, count, round_trip};
use super::{NetworkStop, direction, end, rate, stops_of};
use crate::levels::median;
use crate::measured::measured;
use model::record::{Level, Load, NetworkEnd, NetworkSide, Run, Step};
use model::units::Nanos;

/// A link that carries less than this share of what the middle one of the others does is slow: links of one kind, one after the
/// other, differ by less, even where others use a host's processors for a while.
const SLOW: f64 = 0.7;
/// A round trip that is this many times as long as the middle one of the others, and longer by this much, which no thread that wakes
/// up makes of it.
const FAR: f64 = 2.0;
const FAR_NS: u64 = 100_000;

/// What one link carries.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MatrixLink {
    /// The server as the run calls it.
    pub server: String,
    /// A round trip while nothing else went.
    pub idle: Option<RoundTrip>,
    /// Bulk flows while no other server had any.
    pub alone: Bulk,
    /// Bulk flows while all servers had some.
    pub together: Bulk,
    /// What stopped flows of this server alone, in each direction.
    pub stops: Vec<NetworkStop>,
}

/// A link that stands out.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct SlowLink {
    /// The server.
    pub server: String,
    /// Label of the step that shows it.
    pub step: String,
    /// How it stands out.
    pub by: SlowBy,
}

/// By what a link is slower than the others.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SlowBy {
    /// It carries less.
    Rate {
        /// Who sent.
        from: NetworkSide,
        /// What it carries, in bits per second.
        bits_per_s: f64,
        /// What the middle one of the others does.
        others_bits_per_s: f64,
    },
    /// Its round trip is longer.
    RoundTrip {
        /// Median of an idle round trip.
        #[serde(rename = "median_ns")]
        median: Nanos,
        /// The middle one of the others'.
        #[serde(rename = "others_ns")]
        others: Nanos,
    },
}

/// All links.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NetworkMatrix {
    /// In the order in which servers were named.
    pub links: Vec<MatrixLink>,
    /// Those that are slower than the others, the slowest first.
    pub slow: Vec<SlowLink>,
}

impl NetworkMatrix {
    /// That of a run; absent where it is none, or nothing was measured.
    pub fn of(run: &Run) -> Option<Self> {
        let Load::NetworkMatrix(_) = run.load else { return None };
        let mut links: Vec<MatrixLink> = Vec::new();
        for step in measured(run) {
            match server_of(step) {
                Some(server) => {
                    let link = link_of(&mut links, server);
                    link.idle = link.idle.or_else(|| round_trip(step));
                    take_in(&mut link.alone, step, server);
                    link.stops.extend(stops_of(step));
                }
                None => {
                    for server in step.network.iter().filter_map(|end| end.server.as_ref()) {
                        take_in(&mut link_of(&mut links, server).together, step, server);
                    }
                }
            }
        }
        let slow = slow(run, &links);
        (!links.is_empty()).then_some(Self { links, slow })
    }

    /// Share of what the best link carries in the direction in which this one falls farther behind; `None` where nothing is known.
    pub fn share_of_best(&self, link: &MatrixLink) -> Option<f64> {
        let share = |of: fn(&Bulk) -> Option<f64>| {
            let best = self.links.iter().filter_map(|link| of(&link.alone)).reduce(f64::max)?;
            of(&link.alone).filter(|_| best > 0.0).map(|rate| rate / best)
        };
        [share(|bulk| bulk.up), share(|bulk| bulk.down)].into_iter().flatten().reduce(f64::min)
    }

    /// The answer in one sentence, without its full stop.
    pub fn phrase(&self) -> String {
        let mut parts: Vec<String> = self.slow.iter().map(SlowLink::words).collect();
        if parts.is_empty() {
            let ways = [("to", Bulk::up as fn(&Bulk) -> Option<f64>), ("from", Bulk::down)];
            let of_way = |(word, of): &(&str, fn(&Bulk) -> Option<f64>)| {
                Some(format!("{} {word} each", range(self.links.iter().filter_map(|link| of(&link.alone)))?))
            };
            let words: Vec<String> = ways.iter().filter_map(of_way).collect();
            parts.push(format!("no link of {} stands out: {}", count(self.links.len() as u32), words.join(", ")));
        }
        let sum = |of: fn(&Bulk) -> Option<f64>| {
            self.links.iter().filter_map(|link| of(&link.together)).reduce(|sum, more| sum + more)
        };
        if let (Some(up), Some(down)) = (sum(Bulk::up), sum(Bulk::down)) {
            parts.push(format!("all at once {} to them and {} from them", rate(up), rate(down)));
        }
        parts.join("; ")
    }
}

impl Bulk {
    fn up(&self) -> Option<f64> {
        self.up
    }

    fn down(&self) -> Option<f64> {
        self.down
    }
}

impl SlowLink {
    /// `to db3:7018 1.20 Gbit/s, others 9.41 Gbit/s`.
    pub fn words(&self) -> String {
        match self.by {
            SlowBy::Rate { from, bits_per_s, others_bits_per_s } => format!(
                "{} {}, others {}",
                direction(from, Some(&self.server)),
                rate(bits_per_s),
                rate(others_bits_per_s)
            ),
            SlowBy::RoundTrip { median, others } => {
                format!("a round trip to {} takes {median}, to others {others}", self.server)
            }
        }
    }

    /// How far it is behind, as a share of the others.
    fn share(&self) -> f64 {
        match self.by {
            SlowBy::Rate { bits_per_s, others_bits_per_s, .. } => bits_per_s / others_bits_per_s,
            SlowBy::RoundTrip { median, others } => others.0 as f64 / median.0 as f64,
        }
    }
}

/// `9.40 to 9.41 Gbit/s`, or one rate where they are the same in words.
fn range(rates: impl Iterator<Item = f64>) -> Option<String> {
    let rates: Vec<f64> = rates.collect();
    let least = rate(rates.iter().copied().reduce(f64::min)?);
    let most = rate(rates.iter().copied().reduce(f64::max)?);
    Some(if least == most { least } else { format!("{least} to {most}") })
}

fn link_of<'a>(links: &'a mut Vec<MatrixLink>, server: &str) -> &'a mut MatrixLink {
    let place = links.iter().position(|link| link.server == server).unwrap_or_else(|| {
        links.push(MatrixLink { server: server.to_owned(), ..MatrixLink::default() });
        links.len() - 1
    });
    &mut links[place]
}

/// What went to and from one server in a step of bulk flows.
fn take_in(bulk: &mut Bulk, step: &Step, server: &str) {
    let has = |kind: &str| step.operations.iter().any(|operations| operations.kind == kind);
    let received = |side| end(&step.network, side, Some(server)).and_then(NetworkEnd::received_bits_per_s);
    if has("send") {
        bulk.up = received(NetworkSide::Server);
    }
    if has("receive") {
        bulk.down = received(NetworkSide::Client);
    }
}

/// The only server of a step, where it has not all of them.
fn server_of(step: &Step) -> Option<&str> {
    match &step.level {
        Some(Level::Network(level)) => level.server.as_deref(),
        _ => None,
    }
}

/// Links that fall behind the middle one of all others.
fn slow(run: &Run, links: &[MatrixLink]) -> Vec<SlowLink> {
    let step_with = |server: &str, kind: &str| {
        let found = measured(run).find(|step| {
            server_of(step) == Some(server) && step.operations.iter().any(|operations| operations.kind == kind)
        });
        found.map(|step| step.label.clone())
    };
    let mut slow = Vec::new();
    for (place, link) in links.iter().enumerate() {
        let others = |of: &dyn Fn(&MatrixLink) -> Option<f64>| {
            let others = links.iter().enumerate().filter(|(other, _)| *other != place);
            let known: Vec<f64> = others.filter_map(|(_, link)| of(link)).collect();
            (!known.is_empty()).then(|| median(&known))
        };
        let mut say = |kind: &str, by: SlowBy| {
            let step = step_with(&link.server, kind).unwrap_or_default();
            slow.push(SlowLink { server: link.server.clone(), step, by });
        };
        let ways = [
            ("send", NetworkSide::Client, Bulk::up as fn(&Bulk) -> Option<f64>),
            ("receive", NetworkSide::Server, Bulk::down),
        ];
        for (kind, from, of) in ways {
            if let (Some(bits_per_s), Some(others_bits_per_s)) = (of(&link.alone), others(&|link| of(&link.alone)))
                && bits_per_s < SLOW * others_bits_per_s
            {
                say(kind, SlowBy::Rate { from, bits_per_s, others_bits_per_s });
            }
        }
        let median_ns = |link: &MatrixLink| link.idle.map(|idle| idle.median.0 as f64);
        if let (Some(idle), Some(others_ns)) = (link.idle, others(&median_ns))
            && idle.median.0 as f64 > FAR * others_ns
            && idle.median.0 > others_ns as u64 + FAR_NS
        {
            say("ping", SlowBy::RoundTrip { median: idle.median, others: Nanos(others_ns.round() as u64) });
        }
    }
    slow.sort_by(|left, right| left.share().total_cmp(&right.share()));
    slow
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{NetworkFinding, find};
    use crate::{Finding, Message};
    use model::record::{OperationStats, Outcome, sample};

    fn operations(kind: &str, median_ns: u64) -> OperationStats {
        let times = sample::latencies(100, median_ns);
        OperationStats {
            kind: kind.to_owned(),
            count: 100,
            errors: 0,
            block_touches: 0,
            service: times.clone(),
            response: times,
            transactions: None,
            failed: Default::default(),
        }
    }

    fn ends(server: &str, mbit: u64, kind: &str) -> Vec<NetworkEnd> {
        let end = |side, received_bytes| NetworkEnd {
            side,
            node: "same".to_owned(),
            server: Some(server.to_owned()),
            elapsed_ns: 1_000_000_000,
            received_bytes: Some(received_bytes),
            ..NetworkEnd::default()
        };
        let (up, down) = if kind == "send" { (mbit, 0) } else { (0, mbit) };
        vec![end(NetworkSide::Client, down * 125_000), end(NetworkSide::Server, up * 125_000)]
    }

    /// A run on servers that carry so many megabits per second to them and from them, with round trips of so many microseconds.
    fn run(links: &[(&str, u64, u64, u64)]) -> Run {
        let mut run = sample::sweep(5);
        run.load = Load::NetworkMatrix(model::record::NetMatrix { servers: links.len() as u32, flows: 1 });
        run.steps.clear();
        let mut add = |label: String, kind: &str, time_us: u64, network: Vec<NetworkEnd>, server: Option<&str>| {
            let mut step = Step::new(run.steps.len() as u32, &label);
            step.outcome = Outcome::Completed;
            step.window.duration_ns = 1_000_000_000;
            step.operations = vec![operations(kind, time_us * 1_000)];
            step.network = network;
            step.level = Some(Level::Network(model::record::NetLevel {
                options: None,
                outstanding: model::config::net::Outstanding { connections: 1, each: 1 },
                rate_per_s: None,
                beside: None,
                server: server.map(str::to_owned),
            }));
            run.steps.push(step);
        };
        for (server, up, down, round_trip_us) in links.iter().copied() {
            add(format!("{server}_idle"), "ping", round_trip_us, ends(server, 0, "ping"), Some(server));
            add(format!("{server}_up"), "send", 10, ends(server, up, "send"), Some(server));
            add(format!("{server}_down"), "receive", 10, ends(server, down, "receive"), Some(server));
        }
        for kind in ["send", "receive"] {
            let all = links.iter().flat_map(|(server, ..)| ends(server, 1_000, kind)).collect();
            add(format!("all_{kind}"), kind, 10, all, None);
        }
        run
    }

    #[test]
    fn the_slow_link_is_named_with_what_the_others_carry() {
        let run = run(&[("a", 9_400, 9_400, 120), ("b", 1_200, 9_300, 130), ("c", 9_410, 9_410, 110)]);
        let matrix = NetworkMatrix::of(&run).unwrap();
        let words: Vec<String> = matrix.slow.iter().map(SlowLink::words).collect();
        assert_eq!(words, ["to b 1.20 Gbit/s, others 9.40 Gbit/s"]);
        let all = "all at once 3.00 Gbit/s to them and 3.00 Gbit/s from them";
        assert_eq!(matrix.phrase(), format!("{}; {all}", words[0]));
        assert!(matrix.share_of_best(&matrix.links[1]).is_some_and(|share| (share - 0.1275).abs() < 0.001));
        let found = find(&run).into_iter().find_map(|finding| match finding {
            Finding::Network(NetworkFinding::SlowLink(link)) => Some(NetworkFinding::SlowLink(link).sentence()),
            _ => None,
        });
        assert_eq!(found.as_deref(), Some("A slow link: to b 1.20 Gbit/s, others 9.40 Gbit/s (in b_up)."));
    }

    #[test]
    fn links_that_are_alike_have_no_slow_one() {
        let matrix = NetworkMatrix::of(&run(&[("a", 9_400, 9_000, 120), ("b", 8_000, 8_800, 190)])).unwrap();
        assert_eq!(matrix.slow, []);
        let phrase = matrix.phrase();
        let expected =
            "no link of two stands out: 8.00 Gbit/s to 9.40 Gbit/s to each, 8.80 Gbit/s to 9.00 Gbit/s from each; all";
        assert!(phrase.starts_with(expected), "{phrase}");
        assert_eq!(matrix.links[0].together, Bulk { up: Some(1e9), down: Some(1e9) });
    }

    #[test]
    fn a_link_that_is_far_away_is_named() {
        let run = run(&[("a", 900, 900, 120), ("b", 900, 900, 1_300), ("c", 900, 900, 140)]);
        let matrix = NetworkMatrix::of(&run).unwrap();
        let words: Vec<String> = matrix.slow.iter().map(SlowLink::words).collect();
        assert!(words.len() == 1 && words[0].starts_with("a round trip to b takes 1.3"), "{words:?}");
        assert_eq!(NetworkMatrix::of(&sample::sweep(5)), None, "no matrix");
    }
}
