//! What the results of Swingbench mean.

use model::record::{Ending, Metric, OperationStats, ReportedBucket, Step, TargetKind, Timestamp, Workload};
use std::collections::BTreeMap;

use super::{Fields, Section};
use crate::draft::{self, reported_figure, whole};
use crate::numbers::{number, whole_number};
use crate::percentiles::{self, ms};
use crate::{Began, Draft, ImportError, Notes, Source, interval};

/// Both spellings of each decile: two of them were misspelt once and are still written so.
const DECILES: [(&[&str], f64); 9] = [
    (&["TenthPrecentile", "TenthPercentile"], 0.1),
    (&["TwentiethPercentile", "TwentiethPrecentile"], 0.2),
    (&["ThirtiethPercentile", "ThirtiethPrecentile"], 0.3),
    (&["FortiethPrecentile", "FortiethPercentile", "FourtiethPercentile"], 0.4),
    (&["FiftythPercentile", "FiftiethPercentile", "FiftythPrecentile", "FiftiethPrecentile"], 0.5),
    (&["SixtiethPercentile", "SixtiethPrecentile"], 0.6),
    (&["SeventiethPercentile", "SeventiethPrecentile"], 0.7),
    (&["EightiethPercentile", "EightiethPrecentile"], 0.8),
    (&["NinetiethPercentile", "NinetiethPrecentile"], 0.9),
];
/// Figures of a transaction that a histogram does not hold.
const PER_TRANSACTION: [(&str, &str); 6] = [
    ("GeometricMean", "ms"),
    ("StdDeviation", "ms"),
    ("Variance", "ms^2"),
    ("Kurtosis", ""),
    ("Skewness", ""),
    ("RollbackCount", ""),
];
/// Figures of the whole run. The highest rate counts a minute, the mean one a second.
const OVERALL: [(&str, &str); 5] = [
    ("AverageTransactionsPerSecond", "/s"),
    ("MaximumTransactionRate", "/min"),
    ("TotalCompletedTransactions", ""),
    ("TotalFailedTransactions", ""),
    ("TotalRollbacks", ""),
];
const MS_PER_S: i64 = 1_000;
/// The driver of a file that we wrote ourselves, before its version.
const OURS: &str = "plimsoll";
/// How the addresses of our own targets begin, and what kind of target each is.
const ADDRESSES: [(&str, TargetKind); 8] = [
    ("postgres:", TargetKind::Postgres),
    ("postgresql:", TargetKind::Postgres),
    ("mysql:", TargetKind::Mysql),
    ("mariadb:", TargetKind::Mysql),
    ("oracle:", TargetKind::Oracle),
    ("pg:", TargetKind::Postgres),
    ("my:", TargetKind::Mysql),
    ("sim:", TargetKind::Simulated),
];
/// Those of them that go on with a directory, in which nobody logs in.
const DIRECTORIES: [&str; 2] = ["pg:", "my:"];

/// A run of `fields`; `line` is where they end.
pub(super) fn draft(
    source: &Source,
    notes: &mut Notes,
    line: impl Into<Option<u64>>,
    fields: &Fields,
) -> Result<Draft, ImportError> {
    let line = line.into();
    let overall = |name: &str| fields.get("Overview", name);
    if fields.section("Overview").is_none() {
        return Err(ImportError::damaged(source, line, "these results have no overview"));
    }
    let title = overall("BenchmarkName").unwrap_or_default().trim_matches('"').trim();
    let ours = fields.get("Configuration", "Driver").and_then(|driver| driver.strip_prefix(OURS)?.strip_prefix(' '));
    let mut draft = Draft::new(Workload::Transactions, if ours.is_some() { OURS } else { "Swingbench" }, title);
    if let Some(version) = ours.or(overall("Version")).or(overall("SwingbenchVersion")) {
        draft.version = version.to_owned();
    }
    let duration_ns = overall("TotalRunTime").and_then(clock_ns);
    let mut step = draft::step(0, "", duration_ns.unwrap_or(0));
    step.window.ending = Ending::Unknown;
    step.load.sessions =
        fields.get("Configuration", "NumberOfUsers").and_then(whole_number).and_then(|users| u32::try_from(users).ok());
    step.label = step.load.sessions.map_or_else(|| "all".to_owned(), |users| format!("u{users}"));
    for (name, unit) in OVERALL {
        let metric = (name == "AverageTransactionsPerSecond").then_some(Metric::Transactions);
        let figure = |value| reported_figure("client", name, unit, value).is(metric, 1.0);
        step.reported.extend(overall(name).and_then(decimal).map(figure));
    }
    if let Some(ns) = overall("TotalLogonTime").and_then(clock_ns) {
        step.reported.push(reported_figure("client", "TotalLogonTime", "s", ns as f64 / 1e9));
    }
    for (name, value) in fields.section("DMLResults").into_iter().flat_map(|section| &section.fields) {
        step.reported.extend(number(value).map(|value| reported_figure("client", name, "", value)));
    }
    let factor = timings_in_ms(fields.get("Configuration", "TimingsIn"));
    if factor.is_none() {
        notes.not_understood(line, "the timings are in a unit that is not known; milliseconds were expected");
    }
    let mut odd = Vec::new();
    for transaction in &fields.transactions {
        operation(&mut step, &mut draft.notes, transaction, factor, &mut odd);
    }
    step.counters.operations = overall("TotalCompletedTransactions").and_then(whole_number);
    step.counters.errors = overall("TotalFailedTransactions").and_then(whole_number);
    if step.operations.is_empty() && step.counters.operations.is_none() {
        return Err(ImportError::damaged(source, line, "these results count no transactions"));
    }
    intervals(&mut step, notes, line, fields);
    configuration(&mut draft, fields);
    times(&mut draft, notes, line, overall("TimeOfRun"), &step, first_reading_ms(fields));
    explain(&mut draft.notes, &step, odd, ours.is_some());
    draft.steps.push(step);
    Ok(draft)
}

/// A number that a Java of any locale may have written: a comma that does not part thousands is a decimal one.
fn decimal(text: &str) -> Option<f64> {
    match text.rsplit_once(',') {
        Some((whole, part)) if part.len() != 3 && !part.contains('.') => {
            number(&format!("{}.{part}", whole.replace(['.', ','], "")))
        }
        _ => number(text),
    }
}

fn timings_in_ms(unit: Option<&str>) -> Option<f64> {
    match unit.map(str::to_ascii_lowercase).as_deref() {
        None | Some("milliseconds" | "millisecond" | "ms") => Some(1.0),
        Some("microseconds" | "microsecond" | "us") => Some(1e-3),
        Some("nanoseconds" | "ns") => Some(1e-6),
        Some("seconds" | "s") => Some(1e3),
        Some(_) => None,
    }
}

fn operation(
    step: &mut Step,
    remarks: &mut Vec<String>,
    transaction: &Section,
    factor: Option<f64>,
    odd: &mut Vec<String>,
) {
    let value = |name: &str| transaction.get(name).and_then(decimal);
    let time_ns = |name: &str| ms(value(name)? * factor?);
    let Some(count) = transaction.get("TransactionCount").and_then(whole_number) else { return };
    let failed = transaction.get("FailedTransactionCount").and_then(whole_number).unwrap_or(0);
    for (name, unit) in PER_TRANSACTION {
        step.reported.extend(
            value(name).map(|value| reported_figure("client", format!("{} {name}", transaction.name), unit, value)),
        );
    }
    let (min_ns, max_ns) = (time_ns("MinimumResponse"), time_ns("MaximumResponse"));
    let mean_ns = value("AverageResponse").zip(factor).map(|(mean, factor)| mean * factor * 1e6);
    let total_ns = mean_ns.and_then(|mean| percentiles::sum_of_mean(mean, count));
    let deciles: Vec<(f64, u64)> = DECILES
        .iter()
        .filter_map(|(names, share)| Some((*share, names.iter().find_map(|name| time_ns(name))?)))
        .collect();
    if mean_ns.is_some_and(|mean_ns| count > 0 && contradicts(mean_ns, &deciles, max_ns)) {
        odd.push(transaction.name.clone());
    }
    // A transaction that never ran has a least response of nothing.
    let (min_ns, max_ns) = if count == 0 { (None, None) } else { (min_ns, max_ns) };
    let bins = transaction.get("ResultsHistogram").and_then(|bins| histogram(bins, count, min_ns?, max_ns?));
    if bins.is_none() && transaction.get("ResultsHistogram").is_some() {
        remarks.push(format!(
            "The histogram of {} does not hold {count} transactions; its deciles are kept instead.",
            transaction.name
        ));
    }
    let response = match bins {
        Some(buckets) => model::record::Histogram::reported(buckets, total_ns, min_ns, max_ns),
        None => percentiles::histogram(count, total_ns, min_ns, max_ns, if count == 0 { &[] } else { &deciles }),
    };
    // Those that failed are not among those that are counted as completed.
    let count = count.saturating_add(failed);
    let timed = draft::operations(&transaction.name, response.clone(), response);
    step.operations.push(OperationStats { count, errors: failed, ..timed });
}

/// Whether the mean lies above the ninth decile, or outside of what deciles and maximum allow. A millisecond more or less is
/// rounding.
fn contradicts(mean_ns: f64, deciles: &[(f64, u64)], max_ns: Option<u64>) -> bool {
    let (Some((_, ninth)), 9, Some(max_ns)) = (deciles.last(), deciles.len(), max_ns) else { return false };
    let most = deciles.iter().map(|(_, ns)| *ns as f64).sum::<f64>() + max_ns as f64;
    mean_ns > *ninth as f64 || mean_ns > most / 10.0 + 1e6
}

/// Full statistics: counts in bins of equal width from the least to the longest response.
fn histogram(bins: &str, count: u64, min_ns: u64, max_ns: u64) -> Option<Vec<ReportedBucket>> {
    let counts: Vec<u64> =
        bins.split(',').map(str::trim).filter(|bin| !bin.is_empty()).map(whole_number).collect::<Option<_>>()?;
    let sum = counts.iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
    if sum != count || counts.is_empty() || max_ns < min_ns {
        return None;
    }
    let width = (max_ns - min_ns) as f64 / counts.len() as f64;
    let edge = |bin: usize| min_ns.saturating_add(whole(width * bin as f64).unwrap_or(0)).min(max_ns);
    let bucket = |(bin, count): (usize, u64)| ReportedBucket { from_ns: edge(bin), to_ns: Some(edge(bin + 1)), count };
    Some(counts.into_iter().enumerate().map(bucket).collect())
}

/// `h:mm:ss`, also with fractions.
fn clock_ns(text: &str) -> Option<u64> {
    let mut seconds = 0.0;
    let parts: Vec<&str> = text.split(':').collect();
    if !(2..=3).contains(&parts.len()) {
        return None;
    }
    for part in parts {
        seconds = seconds * 60.0 + number(part).filter(|part| *part >= 0.0)?;
    }
    whole(seconds * 1e9)
}

/// Pairs of a time since 1970 in milliseconds and a value.
fn readings(text: &str) -> Option<Vec<(i64, f64)>> {
    let values: Vec<f64> =
        text.split(',').map(str::trim).filter(|value| !value.is_empty()).map(number).collect::<Option<_>>()?;
    let pairs = values.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    let time = |ms: f64| (1e11..1e14).contains(&ms).then_some(ms as i64);
    pairs.map(|pair| Some((time(*pair.first()?)?, *pair.get(1)?))).collect()
}

fn first_reading_ms(fields: &Fields) -> Option<i64> {
    Some(readings(fields.get("BenchmarkMetrics", "TPSReadings")?)?.first()?.0)
}

/// Each reading counts the transactions since the one before, and the first those of one second.
fn intervals(step: &mut Step, notes: &mut Notes, line: Option<u64>, fields: &Fields) {
    let Some(section) = fields.section("BenchmarkMetrics") else { return };
    let mut seconds: BTreeMap<i64, BTreeMap<String, f64>> = BTreeMap::new();
    let is_known = |(name, _): &&(String, String)| name.ends_with("Readings");
    // Transactions first: other readings that come from elsewhere only join the seconds that they have.
    let mut fields: Vec<&(String, String)> = section.fields.iter().filter(is_known).collect();
    fields.sort_by_key(|(name, _)| name != "TPSReadings");
    for (name, text) in fields {
        let Some(readings) = readings(text) else {
            notes.not_understood(line, format!("{name} are not pairs of a time and a value"));
            continue;
        };
        let short = name.trim_end_matches("Readings");
        for (at_ms, value) in readings {
            let at_ms = match name.as_str() {
                "TPSReadings" => at_ms,
                _ => seconds.range(at_ms - MS_PER_S / 2..).next().map_or(at_ms, |(known, _)| *known),
            };
            seconds.entry(at_ms).or_default().insert(short.to_owned(), value);
        }
    }
    let Some(first_ms) = seconds.keys().next().copied() else { return };
    let began_ms = first_ms - MS_PER_S;
    let mut before_ms = began_ms;
    for (at_ms, reported) in seconds {
        let ns = |ms: i64| u64::try_from(ms).unwrap_or(0).saturating_mul(1_000_000);
        let mut interval = interval::of(step, ns(before_ms - began_ms), ns(at_ms - before_ms));
        interval.counters.operations = reported.get("TPS").copied().and_then(whole);
        interval.reported = reported;
        step.intervals.push(interval);
        before_ms = at_ms;
    }
}

/// What was set, without what could be a secret.
fn configuration(draft: &mut Draft, fields: &Fields) {
    let secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["pass", "pwd", "secret", "token", "wallet"].iter().any(|word| name.contains(word))
    };
    for (name, value) in fields.section("Configuration").into_iter().flat_map(|section| &section.fields) {
        let value = value.trim();
        if value.is_empty() || secret(name) {
            continue;
        }
        if name == "ConnectString" {
            let known = ADDRESSES.iter().find(|(begins, _)| value.starts_with(begins));
            draft.target.kind = Some(known.map_or(TargetKind::Oracle, |(_, kind)| kind.clone()));
            draft.target.address = without_secrets(value, known.is_some());
        } else {
            draft.parameters.insert(name.clone(), value.to_owned());
        }
    }
    if let Some(comment) = fields.get("Overview", "Comment") {
        draft.parameters.insert("Comment".to_owned(), comment.to_owned());
    }
}

/// A connect string without the user and password that may stand before `@`; nothing of it where it names a password. An address
/// of ours keeps a user who stands there alone.
fn without_secrets(connect: &str, is_ours: bool) -> String {
    if connect.to_ascii_lowercase().contains("password") {
        return String::new();
    }
    if DIRECTORIES.iter().any(|begins| connect.starts_with(begins)) {
        return connect.to_owned();
    }
    let Some((before, address)) = connect.rsplit_once('@') else { return connect.to_owned() };
    match before.split_once("//") {
        Some((_, user)) if is_ours && !user.contains([':', '/', '@']) => connect.to_owned(),
        Some((scheme, _)) if is_ours => format!("{scheme}//{address}"),
        _ => address.to_owned(),
    }
}

/// The readings know universal time and the overview reports the time on the wall: together they report the zone.
fn times(
    draft: &mut Draft,
    notes: &mut Notes,
    line: Option<u64>,
    time_of_run: Option<&str>,
    step: &Step,
    first_ms: Option<i64>,
) {
    let wall = time_of_run.and_then(date);
    if wall.is_none() && time_of_run.is_some() {
        notes.not_understood(line, "TimeOfRun is in a form of date that is not known, or could be read in two ways");
    }
    let first = first_ms.and_then(|first_ms| first_ms.checked_sub(MS_PER_S));
    let wall = wall.and_then(Began::wall);
    draft.began = match (first, wall) {
        (Some(first_ms), Some(wall)) => {
            let apart_ms = wall.timestamp().0.as_millisecond() - first_ms;
            // Zones differ from universal time by quarters of an hour.
            let quarter = 15 * 60 * MS_PER_S;
            let zone_ms = (apart_ms as f64 / quarter as f64).round() as i64 * quarter;
            let near = (apart_ms - zone_ms).abs() < 60 * MS_PER_S && zone_ms.abs() <= 14 * 4 * quarter;
            let utc_ms = if near { first_ms + (apart_ms - zone_ms) } else { first_ms };
            epoch_ms(utc_ms)
        }
        (Some(first_ms), None) => epoch_ms(first_ms),
        (None, wall) => wall,
    };
    let began_ns = draft.began.map(|began| began.timestamp().0);
    let duration =
        i64::try_from(step.window.duration_ns).ok().filter(|ns| *ns > 0).map(jiff::SignedDuration::from_nanos);
    draft.ended = began_ns.zip(duration).and_then(|(began, ran)| began.checked_add(ran).ok()).map(Timestamp);
}

fn epoch_ms(ms: i64) -> Option<Began> {
    jiff::Timestamp::from_millisecond(ms).ok().map(|time| Began::Utc(Timestamp(time)))
}

/// The forms that Java gives a date in an English locale, and those that say which number is which.
fn date(text: &str) -> Option<jiff::civil::DateTime> {
    // Since Java 20 a narrow no-break space stands before AM and PM.
    let text = text.replace(['\u{202f}', '\u{a0}'], " ");
    let forms = [
        "%b %d, %Y, %I:%M:%S %p",
        "%b %d, %Y %I:%M:%S %p",
        "%B %d, %Y, %I:%M:%S %p",
        "%d %b %Y, %H:%M:%S",
        "%d %b %Y %H:%M:%S",
        "%d-%b-%Y %H:%M:%S",
        "%Y-%m-%d %H:%M:%S",
        "%Y-%m-%dT%H:%M:%S",
    ];
    let parse = |form: &&str| jiff::civil::DateTime::strptime(form, text.trim()).ok();
    forms.iter().find_map(parse)
}

fn explain(remarks: &mut Vec<String>, step: &Step, odd: Vec<String>, is_ours: bool) {
    let full = step.reported.iter().any(|figure| figure.name.ends_with(" StdDeviation"));
    remarks.push("Response times are whole milliseconds: anything faster counts as 1 ms or 0.".to_owned());
    if !full && !is_ours {
        remarks.push("Deciles come from simple statistics, in which Swingbench estimates them.".to_owned());
    }
    if !odd.is_empty() {
        let names = odd.join(", ");
        remarks
            .push(format!("The mean response lies above the 90th percentile of {names}; both are kept as reported."));
    }
    let sum = step.operations.iter().fold(0_u64, |sum, operation| sum.saturating_add(operation.response.count()));
    if let Some(all) = step.counters.operations.filter(|all| !step.operations.is_empty() && *all != sum) {
        remarks.push(format!(
            "The overview counts {all} completed transactions, the transactions by name add up to {sum}."
        ));
    }
}
