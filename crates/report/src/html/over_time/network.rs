//! Charts of what both ends of a network saw.

use super::{Line, OverTime, Quantity, in_words};
use crate::html::chart::{Drawn, First, Frame};
use model::record::{NetworkEnd, NetworkSide, TcpStats};

/// What one end counted, of a second.
type Seen = fn(&NetworkEnd) -> Option<f64>;

const ENDS: [NetworkSide; 2] = [NetworkSide::Client, NetworkSide::Server];

impl OverTime<'_> {
    /// Rates, round trips and what was sent again, second by second.
    pub(in crate::html) fn both_ends(&self) -> Vec<Drawn> {
        [self.network_rates(), self.round_trips(), self.sent_again()].into_iter().flatten().collect()
    }

    fn sum(&self, name: &str, side: NetworkSide, scale: f64, seen: Seen) -> Line {
        self.timeline.line(name, |interval| Some(NetworkEnd::sum_of(&interval.network, side, seen)? / scale))
    }

    fn network_rates(&self) -> Option<Drawn> {
        let ways: [(&str, NetworkSide, Seen); 4] = [
            ("up, sent by the client", NetworkSide::Client, NetworkEnd::sent_bits_per_s),
            ("up, received by the server", NetworkSide::Server, NetworkEnd::received_bits_per_s),
            ("down, sent by the server", NetworkSide::Server, NetworkEnd::sent_bits_per_s),
            ("down, received by the client", NetworkSide::Client, NetworkEnd::received_bits_per_s),
        ];
        let ends = || self.run.steps.iter().flat_map(|step| &step.intervals).map(|interval| &interval.network);
        let rates =
            ends().flat_map(|ends| ways.iter().filter_map(|(_, side, of)| NetworkEnd::sum_of(ends, *side, *of)));
        let (unit, scale) = if rates.fold(0.0, f64::max) < 1e9 { ("Mbit/s", 1e6) } else { ("Gbit/s", 1e9) };
        let lines = ways.map(|(name, side, seen)| self.sum(name, side, scale, seen));
        // A direction in which nothing was sent would be a line on the axis.
        let lines: Vec<Line> = lines.into_iter().filter(is_above_zero).collect();
        let words = in_words(&lines, |rate| format!("{} {unit}", Quantity::PerSecond.tick(rate)));
        let note = "Layer: the programs at both ends. What one end has sent and the other has not yet received is on its way or in \
                    buffers.";
        let y = (unit, Quantity::PerSecond);
        self.lines(self.frame("network-rates", "Network: rate", note, y, words), lines)
    }

    fn round_trips(&self) -> Option<Drawn> {
        let of = |side: NetworkSide| {
            self.timeline.line(side.name(), |interval| {
                let mut all = TcpStats::default();
                let ends = interval.network.iter().filter(|end| end.side == side);
                ends.filter_map(|end| end.tcp.as_ref()).for_each(|tcp| all.add(tcp));
                Some(all.rtt_ns.mean()? / 1e3)
            })
        };
        let lines = ENDS.map(of).to_vec();
        let words = in_words(&lines, |us| Quantity::Microseconds.tick(us));
        let note = "Layer: TCP of each end, which smooths it; mean over connections and looks of a second. Where the other end answers \
                    late, it is longer than the network's.";
        let y = ("time", Quantity::Microseconds);
        let frame = self.frame("network-round-trip", "Network: round trip", note, y, words);
        self.lines(Frame { first: First::Logarithmic, ..frame }, lines)
    }

    fn sent_again(&self) -> Option<Drawn> {
        let resent: Seen = |end| end.per_s(end.tcp.as_ref()?.segments_resent);
        let lines: Vec<Line> =
            ENDS.map(|side| self.sum(side.name(), side, 1.0, resent)).into_iter().filter(is_above_zero).collect();
        let words = in_words(&lines, |segments| format!("{}/s", Quantity::PerSecond.tick(segments)));
        let note = "Layer: TCP of each end. Segments that were sent again in each second.";
        let y = ("segments per second", Quantity::PerSecond);
        self.lines(self.frame("network-resent", "Network: sent again", note, y, words), lines)
    }
}

fn is_above_zero(line: &Line) -> bool {
    line.pieces.iter().flatten().any(|(_, y)| *y > 0.0)
}
