//! What the columns of iostat mean.

use model::record::Metric;

/// The unit of a column. kB and MB of iostat are 1024 and 1024 x 1024 bytes, sectors and blocks 512 bytes.
pub(super) fn unit(column: &str) -> &'static str {
    match column {
        _ if column.starts_with('%') => "%",
        "rkB/s" | "wkB/s" | "dkB/s" | "kB/s" => "KiB/s",
        "rMB/s" | "wMB/s" | "dMB/s" | "MB/s" => "MiB/s",
        "rsec/s" | "wsec/s" => "sectors/s",
        "avgrq-sz" => "sectors",
        "rareq-sz" | "wareq-sz" | "dareq-sz" | "areq-sz" => "KiB",
        "svctm" => "ms",
        _ if column.ends_with("await") => "ms",
        "aqu-sz" | "avgqu-sz" => "",
        "tps" => "1/s",
        _ => match (column.split('_').next(), column.ends_with("/s")) {
            (Some("kB" | "rkB" | "wkB" | "ops"), true) if !column.starts_with("ops") => "KiB/s",
            (Some("MB" | "rMB" | "wMB"), true) => "MiB/s",
            (Some("Blk" | "rBlk" | "wBlk"), true) => "blocks/s",
            (_, true) => "1/s",
            (Some("kB"), false) => "KiB",
            (Some("MB"), false) => "MiB",
            (Some("Blk"), false) => "blocks",
            _ => "",
        },
    }
}

/// What a column is of its device: the metric, and how many of its unit one of the column's is.
pub(super) fn metric(column: &str) -> Option<(Metric, f64)> {
    let megabytes = match unit(column) {
        "KiB/s" => 1_024.0 / 1e6,
        "MiB/s" => 1_048_576.0 / 1e6,
        _ => 512.0 / 1e6,
    };
    Some(match column {
        "r/s" => (Metric::DeviceReads, 1.0),
        "w/s" => (Metric::DeviceWrites, 1.0),
        "rkB/s" | "rMB/s" | "rsec/s" => (Metric::DeviceReadMegabytes, megabytes),
        "wkB/s" | "wMB/s" | "wsec/s" => (Metric::DeviceWriteMegabytes, megabytes),
        "await" => (Metric::DeviceAwait, 1.0),
        "r_await" => (Metric::DeviceReadAwait, 1.0),
        "w_await" => (Metric::DeviceWriteAwait, 1.0),
        "%util" => (Metric::DeviceBusy, 1.0),
        _ => return None,
    })
}

/// A size with its unit, as `--human` writes it, in the unit of its column.
pub(super) fn human(text: &str, column: &str) -> Option<f64> {
    let suffix = text.chars().last()?;
    let number = super::iostat::cell(text.strip_suffix(suffix)?)?;
    let bytes = match suffix {
        's' => 512.0,
        'B' => 1.0,
        'k' => 1_024.0,
        'M' => 1_048_576.0,
        'G' => 1_073_741_824.0,
        'T' => 1_099_511_627_776.0,
        'P' => 1_125_899_906_842_624.0,
        _ => return None,
    };
    let of_column = match unit(column) {
        "KiB" | "KiB/s" => 1_024.0,
        "MiB" | "MiB/s" => 1_048_576.0,
        "sectors" | "sectors/s" | "blocks" | "blocks/s" => 512.0,
        _ => return None,
    };
    Some(number * bytes / of_column)
}

/// How the figures of several samples become one.
pub(crate) enum Over {
    /// Averaged over time.
    Time,
    /// Averaged over what was counted in these columns.
    Counts(&'static [&'static str]),
    /// Added.
    Sum,
}

/// How the figures of this column become one.
pub(crate) fn over(column: &str) -> Over {
    match column {
        "r_await" | "rareq-sz" => Over::Counts(&["r/s"]),
        "w_await" | "wareq-sz" => Over::Counts(&["w/s"]),
        "d_await" | "dareq-sz" => Over::Counts(&["d/s"]),
        "f_await" => Over::Counts(&["f/s"]),
        "%rrqm" => Over::Counts(&["r/s", "rrqm/s"]),
        "%wrqm" => Over::Counts(&["w/s", "wrqm/s"]),
        "%drqm" => Over::Counts(&["d/s", "drqm/s"]),
        "await" | "areq-sz" | "avgrq-sz" | "svctm" => Over::Counts(&["r/s", "w/s", "d/s", "tps"]),
        _ if column.contains('_') && !column.contains('/') => Over::Sum,
        _ => Over::Time,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_units_are_reported_in_the_unit_of_their_column() {
        let read = [("1.0P", "kB_read"), ("2.0M", "MB_wrtn/s"), ("3s", "avgrq-sz"), ("4.0k", "r/s")];
        let petabyte_kib = 1_099_511_627_776.0;
        assert_eq!(read.map(|(text, column)| human(text, column)), [Some(petabyte_kib), Some(2.0), Some(3.0), None]);
    }
}
