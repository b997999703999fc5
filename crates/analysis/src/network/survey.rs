//! The answers of a survey: what a network carries, how long a round trip takes, and what that means for redo.

use super::rate;
use crate::measured::measured;
use model::config::net::{FlowDirection, NetPattern};
use model::record::{Histogram, Level, Load, NetworkEnd, NetworkSide, PathMtu, Run, Step};
use model::units::{Bytes, Nanos, group_thousands};

/// A redo write where nobody says how large they are.
const REDO_WRITE_BYTES: f64 = 8_192.0;
/// Networks for redo are sized so that it takes this share of them, which leaves room for the peaks within a second (Oracle's
/// rule for Data Guard: required bandwidth = redo rate / 0.7).
const REDO_SHARE: f64 = 0.7;
/// Figures that differ by less are one in a sentence.
const SAME: f64 = 0.1;
/// Packets that Ethernet carries everywhere; larger ones are jumbo frames.
const DEFAULT_MTU: u64 = 1_500;

/// A round trip, as many were timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip {
    /// The median.
    pub median: Nanos,
    /// What 99 of 100 do not exceed.
    pub p99: Nanos,
}

/// What bulk flows came to, in bits per second that their receivers received.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bulk {
    /// From this host.
    pub up: Option<f64>,
    /// To it.
    pub down: Option<f64>,
}

/// The answers of a survey; what was not measured is absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NetworkSurvey {
    /// A round trip of an idle network.
    pub idle: Option<RoundTrip>,
    /// One flow.
    pub one: Bulk,
    /// Several flows, in one direction at a time.
    pub several: Bulk,
    /// How many these are.
    pub flows: u32,
    /// Several flows in both directions at once.
    pub both: Bulk,
    /// A round trip while several flows go, in the direction in which it is longer.
    pub loaded: Option<RoundTrip>,
    /// The largest packet that came through in both directions, and that of the interface, in bytes.
    pub path_mtu: Option<(u64, u64)>,
    /// The redo that was asked about: bytes per second, and of each write.
    pub redo: Option<(f64, f64)>,
}

impl NetworkSurvey {
    /// That of a run; absent where it is none, or nothing was measured.
    pub fn of(run: &Run) -> Option<Self> {
        let Load::NetworkSurvey(asked) = &run.load else { return None };
        let redo = asked.redo_bytes_per_s.map(|bytes| (bytes, asked.redo_write_bytes.unwrap_or(REDO_WRITE_BYTES)));
        let mut found = Self { path_mtu: path_mtu(run), redo, ..Self::default() };
        for step in measured(run) {
            found.take_in(step);
        }
        let is_any = found.idle.is_some() || found.one.up.is_some() || found.several.up.is_some();
        is_any.then_some(found)
    }

    fn take_in(&mut self, step: &Step) {
        let Some(Level::Network(level)) = &step.level else { return };
        let Some(options) = &level.options else { return };
        match (options.pattern, level.beside) {
            (NetPattern::Ping, None) => self.idle = round_trip(step),
            (NetPattern::Ping, Some(_)) => {
                let longer = |known: &RoundTrip, new: &RoundTrip| known.median >= new.median;
                let new = round_trip(step);
                self.loaded = match (self.loaded, new) {
                    (Some(known), Some(new)) if longer(&known, &new) => Some(known),
                    (known, new) => new.or(known),
                };
            }
            (NetPattern::Bulk, _) => {
                let connections = level.outstanding.connections;
                let bulk = if connections == 1 { &mut self.one } else { &mut self.several };
                match options.direction.unwrap_or_default() {
                    FlowDirection::Both => self.both = Bulk { up: up(step), down: down(step) },
                    direction => {
                        if connections > 1 {
                            self.flows = connections;
                        }
                        match direction {
                            FlowDirection::Up => bulk.up = up(step),
                            _ => bulk.down = down(step),
                        }
                    }
                }
            }
            _ => {}
        }
    }

    /// The answer in one sentence, without its full stop.
    pub fn phrase(&self) -> String {
        let mut parts = Vec::new();
        let one = both_ways(&self.one).map(|words| format!("one flow {words}"));
        match (both_ways(&self.several), one) {
            (Some(several), Some(one)) => parts.push(format!("{several} with {} flows ({one})", count(self.flows))),
            (Some(several), None) => parts.push(format!("{several} with {} flows", count(self.flows))),
            (None, Some(one)) => parts.push(one),
            (None, None) => {}
        }
        parts.extend(self.idle.map(|idle| format!("{} round trip", idle.median)));
        parts.extend(self.loaded.map(|loaded| format!("{} while bulk data flow", loaded.median)));
        parts.join(", ")
    }

    /// What else there is to say, one sentence each: both directions, packets, and redo.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let (Some(up), Some(down)) = (self.both.up, self.both.down) {
            lines.push(format!(
                "Both directions at once, {} flows each: {} up and {} down.",
                count(self.flows),
                rate(up),
                rate(down)
            ));
        }
        lines.extend(self.path_mtu.map(|(path, interface)| packets(path, interface)));
        lines.extend(self.redo_lines());
        lines
    }

    /// What it means for redo that a standby has to acknowledge.
    fn redo_lines(&self) -> Vec<String> {
        let Some(idle) = self.idle else { return Vec::new() };
        let (rate_bytes, write_bytes) = self.redo.unwrap_or((0.0, REDO_WRITE_BYTES));
        let one_flow = self.one.up.or(self.several.up);
        let transfer_ns = one_flow.map_or(0.0, |bits| write_bytes * 8e9 / bits);
        let added = |round_trip: Nanos| Nanos((round_trip.0 as f64 + transfer_ns).round() as u64);
        let size = Bytes(write_bytes.round() as u64);
        let mut lines = vec![format!(
            "A synchronous standby there adds about {} to each commit with a redo write of {size} ({} in the slowest \
             of a hundred){}. Its disk write there comes on top.",
            added(idle.median),
            added(idle.p99),
            self.loaded.map_or_else(String::new, |loaded| format!(
                ", and {} ({}) while bulk data such as a backup flow",
                added(loaded.median),
                added(loaded.p99)
            ))
        )];
        if let (true, Some(one_flow)) = (rate_bytes > 0.0, one_flow) {
            lines.push(redo_share(rate_bytes, write_bytes, one_flow, idle.median));
        }
        lines
    }
}

/// What bulk flows came to at most, and with how many.
#[derive(Debug, Clone, PartialEq)]
pub struct BulkAnswer {
    /// What went in each direction.
    pub bulk: Bulk,
    /// Flows in each direction.
    pub flows: u32,
    /// What one flow came to, where another step had one.
    pub one: Option<Bulk>,
    /// Label of the step.
    pub step: String,
}

impl BulkAnswer {
    /// That of a run of bulk flows alone.
    pub fn of(run: &Run) -> Option<Self> {
        let Load::Network(options) = &run.load else { return None };
        if options.pattern != NetPattern::Bulk {
            return None;
        }
        let direction = options.direction.unwrap_or_default();
        let of = |step: &Step| Bulk {
            up: up(step).filter(|_| direction != FlowDirection::Down),
            down: down(step).filter(|_| direction != FlowDirection::Up),
        };
        let total = |bulk: &Bulk| bulk.up.unwrap_or(0.0) + bulk.down.unwrap_or(0.0);
        let steps: Vec<(&Step, Bulk, u32)> =
            measured(run).filter_map(|step| Some((step, of(step), connections_of(step)?))).collect();
        let (step, bulk, flows) = steps.iter().max_by(|left, right| total(&left.1).total_cmp(&total(&right.1)))?;
        let one = steps.iter().find(|(_, _, flows)| *flows == 1).map(|(_, bulk, _)| *bulk).filter(|_| *flows > 1);
        (total(bulk) > 0.0).then(|| Self { bulk: *bulk, flows: *flows, one, step: step.label.clone() })
    }

    /// `9.41 Gbit/s with four flows (one flow 4.90 Gbit/s)`.
    pub fn phrase(&self) -> String {
        let each = if self.bulk.up.is_some() && self.bulk.down.is_some() { " each way" } else { "" };
        let flows = if self.flows == 1 { "one flow".to_owned() } else { format!("{} flows", count(self.flows)) };
        let words = match (self.bulk.up, self.bulk.down) {
            (Some(up), Some(down)) => format!("{} up and {} down", rate(up), rate(down)),
            (up, down) => up.or(down).map(rate).unwrap_or_default(),
        };
        let one = self.one.as_ref().and_then(both_ways).map_or_else(String::new, |one| format!(" (one flow {one})"));
        format!("{words} with {flows}{each}{one}")
    }
}

/// What a rate of redo takes of one flow.
fn redo_share(rate_bytes: f64, write_bytes: f64, one_flow_bits: f64, round_trip: Nanos) -> String {
    let needed = rate_bytes * 8.0 / REDO_SHARE;
    let asked = format!("{:.1} MB/s of redo", rate_bytes / 1e6);
    if needed > one_flow_bits {
        return format!(
            "{asked} needs {} with room for its peaks, and one flow reaches {}: it would fall behind.",
            rate(needed),
            rate(one_flow_bits)
        );
    }
    // A log writer waits for each of its writes.
    let each_ns = round_trip.0 as f64 + write_bytes * 8e9 / one_flow_bits;
    let (writes, most) = (rate_bytes / write_bytes, 1e9 / each_ns);
    let busy = writes / most;
    let one_by_one = if busy > 1.0 {
        format!(
            "one by one, {} redo writes/s of that size go there and back, and {} are needed: redo waits and is sent in larger writes",
            group_thousands(most),
            group_thousands(writes)
        )
    } else {
        format!(
            "its {} redo writes/s keep the way there and back busy for {:.0} % of the time",
            group_thousands(writes),
            busy * 100.0
        )
    };
    format!(
        "{asked} needs {} with room for its peaks, and one flow reaches {}; {one_by_one}.",
        rate(needed),
        rate(one_flow_bits)
    )
}

fn packets(path: u64, interface: u64) -> String {
    let end = "uncut, in both directions";
    match (path < interface, path > DEFAULT_MTU) {
        (true, _) => format!(
            "Packets of {path} bytes reach the other end {end}, but not those of this host's interface \
             ({interface}). Set the same MTU on the whole way, or large packets are cut or lost."
        ),
        (false, true) => format!("Jumbo frames reach the other end {end}: packets of {path} bytes."),
        (false, false) => format!("Packets of {path} bytes reach the other end {end}: no jumbo frames."),
    }
}

/// `9.41 Gbit/s`, or of two directions that differ `9.41 Gbit/s up and 4.10 Gbit/s down`.
fn both_ways(bulk: &Bulk) -> Option<String> {
    match (bulk.up, bulk.down) {
        (Some(up), Some(down)) if (up - down).abs() > SAME * up.max(down) => {
            Some(format!("{} up and {} down", rate(up), rate(down)))
        }
        (Some(up), Some(down)) => Some(rate(up.min(down))),
        (up, down) => up.or(down).map(rate),
    }
}

pub(super) fn count(flows: u32) -> String {
    const WORDS: [&str; 9] = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight"];
    WORDS.get(flows as usize).map_or_else(|| flows.to_string(), |word| (*word).to_owned())
}

fn of_side(step: &Step, side: NetworkSide) -> Option<&NetworkEnd> {
    step.network.iter().find(|end| end.side == side)
}

fn up(step: &Step) -> Option<f64> {
    let received = of_side(step, NetworkSide::Server).and_then(NetworkEnd::received_bits_per_s);
    received.or_else(|| of_side(step, NetworkSide::Client)?.sent_bits_per_s())
}

fn down(step: &Step) -> Option<f64> {
    of_side(step, NetworkSide::Client)?.received_bits_per_s()
}

pub(super) fn round_trip(step: &Step) -> Option<RoundTrip> {
    let timed: &Histogram = &step.operations.iter().find(|operations| operations.kind == "ping")?.service;
    Some(RoundTrip { median: Nanos(timed.quantile_ns(0.5)?), p99: Nanos(timed.quantile_ns(0.99)?) })
}

fn path_mtu(run: &Run) -> Option<(u64, u64)> {
    let PathMtu { interface_bytes, up_bytes, down_bytes, .. } = run.target.facts.path_mtu;
    Some((up_bytes?.min(down_bytes?).into(), interface_bytes?.into()))
}

/// Connections of a step on a network, or flows in each direction.
fn connections_of(step: &Step) -> Option<u32> {
    match &step.level {
        Some(Level::Network(level)) => Some(level.outstanding.connections),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey() -> NetworkSurvey {
        let trip = |median, p99| Some(RoundTrip { median: Nanos(median), p99: Nanos(p99) });
        NetworkSurvey {
            idle: trip(120_000, 180_000),
            one: Bulk { up: Some(4.9e9), down: Some(4.8e9) },
            several: Bulk { up: Some(9.41e9), down: Some(9.4e9) },
            flows: 8,
            both: Bulk { up: Some(9.3e9), down: Some(9.2e9) },
            loaded: trip(41_000_000, 60_000_000),
            path_mtu: Some((1_500, 9_000)),
            redo: Some((20e6, 8_192.0)),
        }
    }

    #[test]
    fn the_answer_is_one_sentence() {
        assert_eq!(
            survey().phrase(),
            "9.40 Gbit/s with eight flows (one flow 4.80 Gbit/s), 120 us round trip, 41.0 ms while bulk data flow"
        );
        let lopsided = NetworkSurvey { several: Bulk { up: Some(1e9), down: Some(2e9) }, ..survey() };
        assert!(lopsided.phrase().starts_with("1.00 Gbit/s up and 2.00 Gbit/s down with eight flows"));
    }

    #[test]
    fn redo_is_said_in_the_words_of_who_runs_a_standby() {
        let lines = survey().lines();
        assert_eq!(lines.len(), 4, "{lines:#?}");
        assert!(lines[1].contains("but not those of this host's interface (9000)"), "{}", lines[1]);
        // 8 KiB at 4.9 Gbit/s are 13 us.
        assert!(lines[2].starts_with("A synchronous standby there adds about 133 us to each commit"), "{}", lines[2]);
        assert!(lines[3].starts_with("20.0 MB/s of redo needs 229 Mbit/s with room"), "{}", lines[3]);
        assert!(lines[3].contains("2,441 redo writes/s keep the way there and back busy for 33 %"), "{}", lines[3]);
        let far = NetworkSurvey { redo: Some((900e6, 8_192.0)), ..survey() };
        assert!(far.lines()[3].contains("it would fall behind"), "{}", far.lines()[3]);
        let slow =
            NetworkSurvey { idle: Some(RoundTrip { median: Nanos(5_000_000), p99: Nanos(6_000_000) }), ..survey() };
        assert!(slow.lines()[3].contains("redo waits and is sent in larger writes"), "{}", slow.lines()[3]);
    }

    #[test]
    fn bulk_flows_are_said_with_what_one_of_them_does() {
        let bulk = Bulk { up: Some(9.41e9), down: None };
        let one = Some(Bulk { up: Some(4.9e9), down: None });
        let mut answer = BulkAnswer { bulk, flows: 4, one, step: "c4".to_owned() };
        assert_eq!(answer.phrase(), "9.41 Gbit/s with four flows (one flow 4.90 Gbit/s)");
        (answer.one, answer.flows, answer.bulk.down) = (None, 1, Some(9.0e9));
        assert_eq!(answer.phrase(), "9.41 Gbit/s up and 9.00 Gbit/s down with one flow each way");
    }

    #[test]
    fn packets_are_distinguished() {
        assert!(packets(9_000, 9_000).starts_with("Jumbo frames reach"));
        assert!(packets(1_500, 1_500).contains("no jumbo frames"));
    }
}
