//! Checkpoints that a server began because its log had grown to its limit, and not because it was time.
//!
//! After each of them a page is logged in full when it changes next, so that they make the log grow faster, and they write and sync what
//! they would else have written once. Where throughput is lower while they run, they hold the load back.

use super::figures::Served;
use crate::traffic;
use model::record::{Activity, Interval, Run, Step, Term};
use model::units::{Bytes, Nanos, percent};

/// More of them than one in so long are too many.
const TOO_OFTEN_NS: f64 = 60e9;
/// A server begins one when the log has grown to about half of its limit, and no log is smaller than a few of its files. Where less than
/// this share of the limit was written for each, something else requested them.
const BY_VOLUME: f64 = 0.2;
/// Seconds with and without a checkpoint that a comparison needs at least.
const ENOUGH_SECONDS: usize = 5;
/// Throughput that is lower by less than this share says nothing.
const SLOWER: f64 = 0.15;
/// The difference of the means is to be at least so many of its standard errors.
const STANDARD_ERRORS: f64 = 3.0;
/// How far a checkpoint is spread over the time between two, where the server does not report it.
const COMPLETION: f64 = 0.9;

/// Checkpoints of one step that the limit of the log requested.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct LogCheckpoints {
    /// How many.
    pub requested: u64,
    /// One in so long.
    #[serde(rename = "every_ns")]
    pub every: Nanos,
    /// Bytes of log per second.
    pub log_bytes_per_s: f64,
    /// The setting that limits the log, and its value.
    pub setting: String,
    /// Its value.
    pub limit: Bytes,
    /// The limit at which this log needs one checkpoint in the time between two that are due; absent where that time is not known.
    #[serde(rename = "needed_bytes")]
    pub needed: Option<Bytes>,
    /// Share by which throughput was lower while they ran, 0 to 1, where that is certain: then they hold the load back.
    pub slower: Option<f64>,
}

impl LogCheckpoints {
    /// Of one step; `None` where they were few, or where the limit of the log is not known to have requested them.
    pub(crate) fn of(run: &Run, step: &Step) -> Option<Self> {
        let served = Served::of(run, step);
        let requested = served.activity(Activity::CheckpointsRequested).filter(|count| *count > 0)?;
        let every_ns = step.window.duration_ns as f64 / requested as f64;
        let server = &run.target.facts.server;
        let setting = server.terms.get(&Term::LogCapacity)?;
        let limit: Bytes = server.settings.get(setting)?.parse().ok()?;
        let bytes_per_s = served.log_bytes_per_s()?;
        let of_each = bytes_per_s * every_ns / 1e9;
        if every_ns >= TOO_OFTEN_NS || of_each < BY_VOLUME * limit.0 as f64 {
            return None;
        }
        let interval = server.terms.get(&Term::CheckpointInterval).and_then(|name| server.settings.get(name));
        let interval: Option<Nanos> = interval.and_then(|text| text.replace("min", "m").parse().ok());
        let completion = server.settings.get("checkpoint_completion_target").and_then(|text| text.parse().ok());
        let completion: f64 = completion.unwrap_or(COMPLETION);
        // Two checkpoints share the limit as far as the second has come when the first one's log is removed.
        let needed = interval.map(|interval| bytes_per_s * interval.0 as f64 / 1e9 * (1.0 + completion));
        Some(Self {
            requested,
            every: Nanos(every_ns as u64),
            log_bytes_per_s: bytes_per_s,
            setting: setting.clone(),
            limit,
            needed: needed.map(round_up).filter(|needed| *needed > limit),
            slower: slower(step),
        })
    }

    /// `checkpoints that max_wal_size=64 MiB requested began every 9.10 s`, or that the load was held back by them.
    pub(crate) fn words(&self) -> String {
        let Self { setting, limit, every, slower, .. } = self;
        let what = format!("checkpoints that {setting}={limit} requested");
        match slower {
            Some(share) => format!(
                "held back by {what}, one every {every}: throughput was {} % lower while they ran",
                percent(*share)
            ),
            None => format!("{what} began every {every}"),
        }
    }
}

/// To a number that people write into a setting.
fn round_up(bytes: f64) -> Bytes {
    let unit = if bytes > (4_u64 << 30) as f64 { 1_u64 << 30 } else { 128 << 20 };
    Bytes((bytes / unit as f64).ceil() as u64 * unit)
}

/// By which share throughput was lower in seconds of a checkpoint than in others, if there were enough of both and chance hardly does
/// that.
fn slower(step: &Step) -> Option<f64> {
    let seconds: Vec<&Interval> = traffic::inside(step).collect();
    let during = running(&seconds);
    let rate = |second: &Interval| crate::rate(second.counters.operations, second.duration_ns);
    let of = |wanted: bool| -> Vec<f64> {
        seconds.iter().zip(&during).filter(|(_, is)| **is == wanted).filter_map(|(second, _)| rate(second)).collect()
    };
    let (with, without) = (of(true), of(false));
    if with.len().min(without.len()) < ENOUGH_SECONDS {
        return None;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (low, high) = (mean(&with), mean(&without));
    let variance = |values: &[f64], mean: f64| {
        values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64 / values.len() as f64
    };
    let error = (variance(&with, low) + variance(&without, high)).sqrt();
    let share = 1.0 - low / high;
    (high > 0.0 && share >= SLOWER && high - low >= STANDARD_ERRORS * error).then_some(share)
}

/// In which seconds a checkpoint ran: from the one in which it began to the last in which blocks of it were written before the next
/// began, and one more, in which they are synced.
fn running(seconds: &[&Interval]) -> Vec<bool> {
    let count = |second: &Interval, activity: Activity| -> u64 {
        second.servers.iter().filter_map(|server| server.activity.get(&activity)).sum()
    };
    let began = |second: &Interval| {
        count(second, Activity::CheckpointsRequested) + count(second, Activity::CheckpointsTimed) > 0
    };
    let mut during = vec![false; seconds.len()];
    let mut since = None;
    for (at, second) in seconds.iter().enumerate() {
        if began(second) {
            (since, during[at]) = (Some(at), true);
        }
        if count(second, Activity::BlocksWrittenByCheckpoints) > 0 {
            during[since.unwrap_or(at)..=at].fill(true);
            if let Some(next) = during.get_mut(at + 1) {
                *next = true;
            }
        }
    }
    during
}
