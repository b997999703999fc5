//! The main metrics: averages over a snapshot's interval, a column each.

use super::super::draft::{count_of, reported_figure};
use model::record::{Counters, Metric, ReportedFigure};

/// A rate with fewer digits before its one decimal makes no count: what is printed as 0.1 may be a half of it or the double.
const MIN_RATE: f64 = 10.0;

/// The layer at which a metric is measured, and its unit. The script divides bytes by 1024 twice and hundredths of seconds by
/// 100 where the name does not say `cs`. Two metrics are not of a second, whatever their names say: Oracle counts `Cell Physical
/// IO Interconnect Bytes` over each interval of a minute, and `Background Time Per Sec` is reported in active sessions.
fn unit(name: &str) -> (&'static str, &'static str) {
    let plain = name.strip_suffix("_max").or_else(|| name.strip_suffix("_sd")).unwrap_or(name);
    let unit = match plain {
        "os_cpu" => return ("host", "%"),
        "h_cpu_per_s" => return ("host", "s/s"),
        "db_wait_ratio" | "db_cpu_ratio" => "%",
        "cpu_per_s" | "bkgd_t_per_s" => "s/s",
        "db_time" => "cs/s",
        "s_blk_r_lat" => "ms",
        "cell_io_int_mb" => "MiB/min",
        "read_bks" | "write_bks" | "read_bks_direct" | "write_bks_direct" => "blocks/s",
        name if name.ends_with("_cs") => "cs",
        name if name.ends_with("_mb_s") => "MiB/s",
        name if name.ends_with("_iops") || name.ends_with("_s") => "/s",
        _ => "",
    };
    ("engine", unit)
}

/// A metric by its own name, or that with its instance.
pub(super) fn figure(metric: &str, name: String, value: f64) -> ReportedFigure {
    let (layer, unit) = unit(metric);
    let known = match metric {
        "aas" => Some(Metric::ActiveSessions),
        "os_cpu" => Some(Metric::HostBusy),
        _ => None,
    };
    reported_figure(layer, name, unit, value).is(known, 1.0)
}

/// Whether the metrics of several instances make one of the database when they are added up.
pub(super) fn adds_up(name: &str) -> bool {
    const SUMS: [&str; 9] = [
        "aas",
        "cpu_per_s",
        "logons_total",
        "read_bks",
        "read_bks_direct",
        "write_bks",
        "write_bks_direct",
        "px_sess",
        "se_sess",
    ];
    let is_rate = |name: &str| {
        (name.ends_with("_s") || name.ends_with("_iops") || name.ends_with("_mb_s")) && name != "h_cpu_per_s"
    };
    SUMS.contains(&name) || is_rate(name)
}

/// Counts that rates make over the interval, which is reported in whole minutes; only of rates with enough digits.
pub(super) fn counters(rate: impl Fn(&str) -> Option<f64>, duration_ns: u64) -> Counters {
    let count = |name: &str| {
        let per_s = rate(name).filter(|rate| *rate >= MIN_RATE)?;
        count_of(per_s, duration_ns).filter(|_| duration_ns > 0)
    };
    Counters {
        logical_reads: count("l_reads_s"),
        physical_reads: count("read_iops"),
        physical_read_blocks: count("read_bks"),
        physical_write_blocks: count("write_bks"),
        block_changes: count("db_block_changes_s"),
        commits: count("commits_s"),
        ..Counters::default()
    }
}

/// The counts of all instances, where each of them has one.
pub(super) fn sum(all: &[Counters]) -> Counters {
    let of = |pick: fn(&Counters) -> Option<u64>| {
        all.iter().map(pick).try_fold(0_u64, |sum, count| sum.checked_add(count?)).filter(|_| !all.is_empty())
    };
    Counters {
        logical_reads: of(|counters| counters.logical_reads),
        physical_reads: of(|counters| counters.physical_reads),
        physical_read_blocks: of(|counters| counters.physical_read_blocks),
        physical_write_blocks: of(|counters| counters.physical_write_blocks),
        block_changes: of(|counters| counters.block_changes),
        commits: of(|counters| counters.commits),
        ..Counters::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_the_units_of_oracle_and_not_those_of_their_names() {
        let units =
            ["db_time", "bkgd_t_per_s", "cell_io_int_mb_max", "read_mb_s", "h_cpu_per_s", "write_bks"].map(unit);
        let expected = [
            ("engine", "cs/s"),
            ("engine", "s/s"),
            ("engine", "MiB/min"),
            ("engine", "MiB/s"),
            ("host", "s/s"),
            ("engine", "blocks/s"),
        ];
        assert_eq!(units, expected);
    }
}
