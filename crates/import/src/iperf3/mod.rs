//! What iperf3 measured of a network.

pub(super) mod json;
pub(super) mod text;

#[cfg(test)]
mod tests;

use super::draft::{reported_figure, whole};
use model::record::{Ending, Metric, Outcome, ReportedFigure};

/// Which way data went: iperf3 says what one side sent and what the other one received, and with `--bidir` both of these for
/// the way back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Sent,
    Received,
    /// The row does not report.
    Unreported,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Received => "received",
            Self::Unreported => "transferred",
        }
    }
}

/// How a figure is called: `sent bits/s`, `reverse received bits/s`.
fn name(reverse: bool, side: Side, figure: &str) -> String {
    format!("{}{} {figure}", if reverse { "reverse " } else { "" }, side.name())
}

/// How a figure of one stream is called: `stream 5 sent bits/s`.
fn of_stream(stream: u64, name: &str) -> String {
    format!("stream {stream} {name}")
}

/// A figure at the network's layer.
fn figure(name: impl Into<String>, unit: &str, value: f64) -> ReportedFigure {
    reported_figure("network", name, unit, value)
}

/// The rate of one way, as one side has it.
fn rate(reverse: bool, side: Side, bits_per_s: f64) -> ReportedFigure {
    let name = name(reverse, side, "bits/s");
    let way = name.trim_end_matches(" bits/s").to_owned();
    figure(name, "bits/s", bits_per_s).is(Metric::NetworkMegabytes, 1.0 / 8e6).of(&way)
}

/// How a test ended of which iperf3 reports this error: both sides say if somebody stopped one of them.
fn ended_by(error: &str) -> (Outcome, Ending) {
    if error.starts_with("interrupt") || ["the client has terminated", "the server has terminated"].contains(&error) {
        (Outcome::Interrupted, Ending::Interrupt)
    } else {
        (Outcome::Failed { error: error.to_owned() }, Ending::Failure)
    }
}

/// Seconds as nanoseconds; 0 if that is no length.
fn ns(seconds: f64) -> u64 {
    whole(seconds * 1e9).unwrap_or(0)
}
