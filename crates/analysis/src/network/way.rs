//! One direction of bulk data in one step: who sent, who received, and what both saw.

use crate::levels::{median, spread};
use crate::traffic::inside;
use model::record::{Interval, NetworkEnd, NetworkSide, Step, TcpStats};

/// Kinds of operation that are bulk data, and who sends it.
const BULK: [(&str, NetworkSide); 2] = [("send", NetworkSide::Client), ("receive", NetworkSide::Server)];

/// One direction of bulk data.
pub(super) struct Way<'a> {
    pub(super) step: &'a Step,
    /// The server, where the run has several.
    pub(super) server: Option<&'a str>,
    pub(super) from: NetworkSide,
    pub(super) sender: &'a NetworkEnd,
    pub(super) receiver: &'a NetworkEnd,
    /// The sender's connections.
    pub(super) tcp: &'a TcpStats,
}

/// One of `side`, if it was watched; `server` is which of several.
pub(super) fn end<'a>(ends: &'a [NetworkEnd], side: NetworkSide, server: Option<&str>) -> Option<&'a NetworkEnd> {
    ends.iter().find(|end| end.side == side && end.server.as_deref() == server)
}

impl<'a> Way<'a> {
    /// Those of a step; none where no bulk data was sent over TCP, or an end was not watched.
    pub(super) fn all(step: &'a Step) -> Vec<Self> {
        let is_asked = |kind: &str| step.operations.iter().any(|operation| operation.kind == kind);
        let mut servers: Vec<Option<&str>> = step.network.iter().map(|end| end.server.as_deref()).collect();
        servers.sort_unstable();
        servers.dedup();
        let way = |server: Option<&'a str>, from: NetworkSide| {
            let to = if from == NetworkSide::Client { NetworkSide::Server } else { NetworkSide::Client };
            let (sender, receiver) = (end(&step.network, from, server)?, end(&step.network, to, server)?);
            let tcp = sender.tcp.as_ref()?;
            Some(Self { step, server, from, sender, receiver, tcp })
        };
        let asked = BULK.iter().filter(|(kind, _)| is_asked(kind));
        asked.flat_map(|(_, from)| servers.iter().filter_map(move |server| way(*server, *from))).collect()
    }

    /// Connections that carry it: all of the step, or half of them where the step measures both directions. At least 1.
    pub(super) fn flows(&self) -> u32 {
        let ways = if self.step.operations.iter().filter(|it| BULK.iter().any(|(kind, _)| it.kind == *kind)).count() > 1
        {
            2
        } else {
            1
        };
        (self.tcp.flows / ways).max(1)
    }

    /// What was received; where the receiver did not count, what it acknowledged.
    pub(super) fn bits_per_s(&self) -> Option<f64> {
        let acknowledged = || self.sender.per_s(self.tcp.bytes_acked).map(|bytes| bytes * 8.0);
        self.receiver.received_bits_per_s().or_else(acknowledged)
    }

    /// The same of each whole second of the window.
    pub(super) fn seconds(&self) -> Vec<f64> {
        inside(self.step).filter_map(|interval| self.of_interval(interval)).collect()
    }

    /// The same of each second under load, warm-up included.
    pub(super) fn seconds_from_the_start(&self) -> Vec<f64> {
        let longest = self.step.intervals.iter().map(|interval| interval.duration_ns).max().unwrap_or(0);
        let whole = self.step.intervals.iter().filter(|interval| interval.duration_ns > longest / 2);
        whole.filter_map(|interval| self.of_interval(interval)).collect()
    }

    fn of_interval(&self, interval: &Interval) -> Option<f64> {
        let (sender, receiver) =
            (end(&interval.network, self.from, self.server), end(&interval.network, self.receiver.side, self.server));
        let received = receiver.and_then(NetworkEnd::received_bits_per_s);
        received.or_else(|| {
            let sender = sender?;
            sender.per_s(sender.tcp.as_ref()?.bytes_acked).map(|bytes| bytes * 8.0)
        })
    }

    /// How far its seconds stray from their middle.
    pub(super) fn stray(&self) -> Option<f64> {
        stray(&self.seconds())
    }

    /// Share of the time in which its connections had something to send.
    pub(super) fn busy_share(&self) -> f64 {
        let possible = self.sender.elapsed_ns as f64 * f64::from(self.flows());
        if possible > 0.0 { (self.tcp.busy_ns as f64 / possible).min(1.0) } else { 0.0 }
    }

    /// Mean round trip and the least one.
    pub(super) fn round_trip_ns(&self) -> Option<(f64, u64)> {
        Some((self.tcp.rtt_ns.mean()?, self.tcp.min_rtt_ns?))
    }

    /// Share of its bytes that were sent again.
    pub(super) fn resent(&self) -> f64 {
        self.tcp.resent_share().unwrap_or(0.0)
    }
}

/// How far values stray from their middle, as a share of it, by their median distance: some that were disturbed leave it as it is.
/// Unknown of fewer than three.
pub(super) fn stray(values: &[f64]) -> Option<f64> {
    let middle = median(values);
    (values.len() >= 3 && middle > 0.0).then(|| spread(values) / middle)
}
