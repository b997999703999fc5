//! One second of a network.

use crate::words::{NONE, UNKNOWN};
use analysis::rate;
use model::record::{Interval, NetworkEnd, NetworkSide};
use model::units::{Nanos, short_count};

/// Whether the interval is of a network.
pub(super) fn is_seen(interval: &Interval) -> bool {
    !interval.network.is_empty()
}

pub(super) fn line(interval: &Interval) -> String {
    let ended_s = (interval.offset_ns + interval.duration_ns) as f64 / 1e9;
    let Seen { sent, received, operations, p99, resent } = Seen::of(interval);
    let resent = resent.map_or_else(String::new, |resent| format!("  {resent}"));
    let warmup = if interval.warmup { "  warm-up" } else { "" };
    format!(
        "{ended_s:>5.0} s {sent:>7} Gbit/s up {received:>7} down {operations:>7} ops/s  p99 {p99:>7}{resent}{warmup}"
    )
}

/// In the order in which they are shown, and how soon they are left out.
pub(super) fn parts(interval: &Interval) -> Vec<(Option<String>, u8)> {
    let Seen { sent, received, operations, p99, resent } = Seen::of(interval);
    vec![
        (interval.warmup.then(|| "warm-up".to_owned()), 0),
        (Some(format!("{sent} Gbit/s up")), 0),
        (Some(format!("{received} down")), 0),
        (Some(format!("p99 {p99}")), 1),
        (Some(format!("{operations} ops/s")), 2),
        (resent, 3),
    ]
}

/// The figures of one interval in words.
struct Seen {
    sent: String,
    received: String,
    operations: String,
    p99: String,
    /// Segments sent again, where there are any.
    resent: Option<String>,
}

impl Seen {
    fn of(interval: &Interval) -> Self {
        let gigabits = |of: fn(&NetworkEnd) -> Option<f64>| {
            let client = NetworkEnd::sum_of(&interval.network, NetworkSide::Client, of);
            client.map_or_else(|| UNKNOWN.to_owned(), |bits| format!("{:.2}", bits / 1e9))
        };
        let of_ends = interval.network.iter().filter_map(|end| end.tcp.as_ref());
        let resent: u64 = of_ends.map(|tcp| tcp.segments_resent).sum();
        Self {
            sent: gigabits(NetworkEnd::sent_bits_per_s),
            received: gigabits(NetworkEnd::received_bits_per_s),
            operations: rate(interval.counters.operations, interval.duration_ns)
                .map_or_else(|| UNKNOWN.to_owned(), short_count),
            p99: interval.response.quantile_ns(0.99).map_or_else(|| NONE.to_owned(), |ns| Nanos(ns).to_string()),
            resent: (resent > 0).then(|| format!("resent {}", short_count(resent as f64))),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{interval_line, interval_words};
    use model::record::{Counters, Interval, NetworkEnd, NetworkSide, TcpStats, sample};

    #[test]
    fn a_second_of_a_network_is_shown_in_gigabits() {
        let end = |side, segments_resent| NetworkEnd {
            side,
            elapsed_ns: 1_000_000_000,
            sent_bytes: Some(1_176_250_000),
            received_bytes: Some(1_000_000),
            tcp: Some(TcpStats { segments_resent, ..TcpStats::default() }),
            ..NetworkEnd::default()
        };
        let mut interval = Interval {
            duration_ns: 1_000_000_000,
            counters: Counters { operations: Some(8_975), ..Counters::default() },
            response: sample::latencies(100, 120_000),
            network: vec![end(NetworkSide::Client, 3), end(NetworkSide::Server, 4)],
            ..Interval::default()
        };
        let line = interval_line(&interval);
        assert!(line.contains("9.41 Gbit/s up") && line.contains("0.01 down") && line.contains("resent 7"), "{line}");
        assert!(line.contains("ops/s  p99") && line.chars().count() < 100, "{line}");
        let words = interval_words(&interval, 30);
        assert!(words.starts_with("9.41 Gbit/s up, 0.01 down") && !words.contains("resent"), "{words}");
        interval.network.clear();
        assert!(!interval_line(&interval).contains("Gbit/s"));
    }
}
