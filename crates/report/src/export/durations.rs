//! Columns of durations, which several tables have.

use super::table::{Cell, count};
use model::record::Histogram;

/// Columns of a histogram. `$of` gives an `Option<&Histogram>` from a row.
macro_rules! durations {
    ($prefix:literal, $what:literal, $of:expr) => {
        [
            field(concat!($prefix, "p50_ns"), Kind::Count, "ns", concat!("median of ", $what), |row| {
                durations::quantile(($of)(row), 0.5)
            }),
            field(concat!($prefix, "p90_ns"), Kind::Count, "ns", concat!("90th percentile of ", $what), |row| {
                durations::quantile(($of)(row), 0.9)
            }),
            field(concat!($prefix, "p95_ns"), Kind::Count, "ns", concat!("95th percentile of ", $what), |row| {
                durations::quantile(($of)(row), 0.95)
            }),
            field(concat!($prefix, "p99_ns"), Kind::Count, "ns", concat!("99th percentile of ", $what), |row| {
                durations::quantile(($of)(row), 0.99)
            }),
            field(concat!($prefix, "p99_9_ns"), Kind::Count, "ns", concat!("99.9th percentile of ", $what), |row| {
                durations::quantile(($of)(row), 0.999)
            }),
            field(concat!($prefix, "p99_99_ns"), Kind::Count, "ns", concat!("99.99th percentile of ", $what), |row| {
                durations::quantile(($of)(row), 0.9999)
            }),
            field(concat!($prefix, "max_ns"), Kind::Count, "ns", concat!("longest of ", $what), |row| {
                durations::longest(($of)(row))
            }),
        ]
    };
}

/// Columns of the number of durations, their sum and mean. `$of` gives an `Option<Waited>` from a row.
macro_rules! waited {
    ($prefix:literal, $what:literal, $of:expr) => {
        [
            field(concat!($prefix, "count"), Kind::Count, "", concat!("number of ", $what), |row| {
                count(($of)(row).map(|waited: model::record::Waited| waited.count))
            }),
            field(concat!($prefix, "total_ns"), Kind::Count, "ns", concat!("sum of ", $what), |row| {
                count(($of)(row).and_then(|waited: model::record::Waited| waited.total_ns))
            }),
            field(concat!($prefix, "mean_ns"), Kind::Number, "ns", concat!("mean of ", $what), |row| {
                number(($of)(row).and_then(|waited: model::record::Waited| waited.mean_ns()))
            }),
        ]
    };
}

pub(crate) use {durations, waited};

/// Not known where it is only the edge of a wide bucket of another program.
pub(crate) fn quantile(histogram: Option<&Histogram>, quantile: f64) -> Cell {
    let known = histogram.filter(|histogram| histogram.knows_quantile(quantile));
    count(known.and_then(|histogram| histogram.quantile_ns(quantile)))
}

pub(crate) fn longest(histogram: Option<&Histogram>) -> Cell {
    count(histogram.and_then(Histogram::max_ns))
}

/// What a histogram has in itself, in the form that sums of tables have.
pub(crate) fn of(histogram: Option<&Histogram>) -> Option<model::record::Waited> {
    histogram.map(|it| model::record::Waited { count: it.count(), total_ns: it.total_ns() })
}
