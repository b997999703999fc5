//! One line of figures of iperf3.

use super::Side;
use crate::numbers::number;

/// One line of figures.
#[derive(Debug, Clone, Default)]
pub(super) struct Row {
    pub(super) sum: bool,
    /// The number of its stream, unless it is the sum of all.
    pub(super) stream: Option<u64>,
    /// Whether it is of the way back, with `--bidir`; absent without.
    pub(super) role: Option<bool>,
    pub(super) from_s: f64,
    pub(super) to_s: f64,
    /// Digits after the point of the interval.
    pub(super) decimals: usize,
    pub(super) bytes: f64,
    pub(super) bits_per_s: f64,
    pub(super) retransmits: Option<f64>,
    pub(super) cwnd_bytes: Option<f64>,
    pub(super) jitter_ms: Option<f64>,
    /// Lost, and all.
    pub(super) datagrams: Option<(Option<f64>, f64)>,
    pub(super) side: Option<Side>,
    pub(super) omitted: bool,
    /// A number alone: retransmits or datagrams, which the header reports.
    pub(super) alone: Option<f64>,
}

impl Row {
    /// `[  5]   0.00-1.00   sec  6.06 GBytes  52.1 Gbits/sec    0    595 KBytes`, also behind a time.
    pub(super) fn of(line: &str) -> Option<Self> {
        let (id, rest) = bracket(line)?;
        let mut row = Self { sum: id == "SUM", stream: id.parse().ok(), ..Self::default() };
        let rest = match rest.trim_start().strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            // TX and RX of the client or the server: data goes from the client to the server in TX-C and RX-S.
            Some((role, rest)) => {
                row.role = Some(matches!(role, "RX-C" | "TX-S"));
                rest
            }
            None => rest,
        };
        let mut words = rest.split_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        row.decimals = from.split_once('.').map_or(0, |(_, digits)| digits.len());
        (row.from_s, row.to_s) = (number(from)?, number(to)?);
        if words.next()? != "sec" {
            return None;
        }
        row.bytes = (number(words.next()?)? * bytes_of(words.next()?)?).round();
        row.bits_per_s = (number(words.next()?)? * bits_of(words.next()?)?).round();
        let mut last = None;
        for word in words.take(16) {
            match (word, last) {
                ("sender", _) => row.side = Some(Side::Sent),
                ("receiver", _) => row.side = Some(Side::Received),
                ("(omitted)", _) => row.omitted = true,
                ("ms", Some(ms)) => row.jitter_ms = Some(ms),
                (word, Some(size)) if bytes_of(word).is_some() => {
                    row.cwnd_bytes = bytes_of(word).map(|unit| (size * unit).round())
                }
                (word, _) if word.contains('/') => {
                    let (lost, all) = word.split_once('/')?;
                    row.datagrams = number(lost).zip(number(all)).map(|(lost, all)| (Some(lost), all));
                }
                (word, Some(alone)) if number(word).is_some() => row.alone = row.alone.or(Some(alone)),
                _ => {}
            }
            let before = last;
            last = number(word);
            if last.is_none()
                && before.is_some()
                && row.alone.is_none()
                && matches!(word, "sender" | "receiver" | "(omitted)")
            {
                row.alone = before;
            }
        }
        row.alone = row.alone.or(last);
        (row.to_s >= row.from_s).then_some(row)
    }

    pub(super) fn seconds(&self) -> f64 {
        self.to_s - self.from_s
    }
}

/// What stands in the first brackets that hold the number of a stream or `SUM`, and what follows.
fn bracket(line: &str) -> Option<(&str, &str)> {
    let mut rest = line;
    for _ in 0..3 {
        let (id, after) = rest.split_once('[')?.1.split_once(']')?;
        let id = id.trim();
        if id == "SUM" || (!id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit())) {
            return Some((id, after));
        }
        rest = after;
    }
    None
}

/// Bytes are counted in powers of 1024.
fn bytes_of(unit: &str) -> Option<f64> {
    Some(match unit {
        "Bytes" => 1.0,
        "KBytes" => 1_024.0,
        "MBytes" => 1_048_576.0,
        "GBytes" => 1_073_741_824.0,
        "TBytes" => 1_099_511_627_776.0,
        _ => return None,
    })
}

/// Bits are counted in powers of 1000, unless `-f` asked for bytes.
fn bits_of(unit: &str) -> Option<f64> {
    Some(match unit.strip_suffix("/sec")? {
        "bits" => 1.0,
        "Kbits" => 1e3,
        "Mbits" => 1e6,
        "Gbits" => 1e9,
        "Tbits" => 1e12,
        bytes => bytes_of(bytes)? * 8.0,
    })
}
