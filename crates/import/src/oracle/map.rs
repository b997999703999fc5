//! What a report means: a run with one step, from its begin to its end snapshot.

use super::header::Header;
use super::table::{Report, ReportKind, Row, Table, plain};
use super::times::Rounded;
use super::{activity, cross_checks, events, files, header, snapshots, subjects, times};
use crate::draft::{step, whole};
use crate::{Draft, ImportError, Notes, Source};
use model::record::{ReportedFigure, TargetKind, Workload};

/// The run that a report reports on.
///
/// # Errors
/// If it reports no snapshots.
pub(super) fn drafts(report: &Report, source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut draft = Draft::new(Workload::Database, "Oracle Database", "");
    draft.target.kind = Some(TargetKind::Oracle);
    let mut header = header::read(report, source, &mut draft)?;
    if !refine_window(report, &mut header) && header.window_ns > 0 && !header.is_exact {
        draft
            .notes
            .push("The window is as long as the elapsed time of the report, in hundredths of a minute.".to_owned());
    }
    let report_kind = match report.kind {
        ReportKind::AwrSingle => "AWR",
        ReportKind::AwrGlobal => "AWR of all instances",
        ReportKind::Statspack => "Statspack",
    };
    draft.target.facts.other.insert("report".to_owned(), report_kind.to_owned());
    let label = draft.target.facts.database.snapshots.clone().unwrap_or_default();
    let mut step = step(0, format!("snapshots {label}"), header.window_ns);
    activity::read(report, &header, &mut step, &mut draft.notes);
    if let [instance] = step.instances.as_slice() {
        // The header rounds it.
        let exact = instance.own.get("PHYSICAL_MEMORY_BYTES").copied().filter(|bytes| *bytes > 0);
        draft.environment.memory_bytes = exact.or(draft.environment.memory_bytes);
    }
    step.reported.extend(files::figures(report, header.window_ns));
    events::read(report, &mut step, &mut draft.notes, notes);
    subjects::read(report, &header, &mut step);
    let began = draft.began.map(|began| began.timestamp().0.to_zoned(jiff::tz::TimeZone::UTC).datetime());
    snapshots::read(report, began, &mut step);
    draft.notes.extend(cross_checks::notes(report, &step));
    step.reported.sort_by_key(rank);
    draft.steps.push(step);
    Ok(vec![draft])
}

/// Where a figure stands: a short report shows the first of them.
fn rank(figure: &ReportedFigure) -> u8 {
    const LOAD: [&str; 9] = [
        "redo size",
        "logical read",
        "block changes",
        "physical",
        "read io",
        "write io",
        "executes",
        "transactions",
        "total (mb): ",
    ];
    let name = figure.name.to_lowercase();
    // Those of an instance have its name in front.
    let of_instance = name.ends_with("physical reads/s") || name.ends_with("physical writes/s");
    match () {
        () if matches!(name.as_str(), "db time" | "db cpu") => 0,
        () if of_instance || figure.layer == "host" && figure.unit == "%" => 1,
        () if name.starts_with("total requests") => 2,
        () if figure.unit.ends_with("/s") && LOAD.iter().any(|begin| name.starts_with(begin)) => 2,
        () => 3,
    }
}

// How long a report covers, more exactly than it says.
//
// Times of snapshots are whole seconds and the elapsed time is in hundredths of a minute, but the rates of a report are its totals
// over the true time. A total of many digits over its rate of many digits is that time to some milliseconds, and then the counts
// of a run over its window are the rates that the report prints.

/// The statistics of a cluster that report its time: its rates are sums of those of its instances, over times that differ by parts
/// of a second, so that each reports another mean of them. That of its reads is wanted.
const CLUSTER: [&str; 2] = ["physical read bytes", "physical reads"];
/// The relative error of a rate that is better than what the report prints.
const MAX_OFF: f64 = 5e-5;
/// How far the true time may be from what the report prints: two snapshots, each up to half a second off, and rounding.
const MAX_OFF_NS: u64 = 1_500_000_000;

/// Makes the windows of the report and its instances exact, as far as its rates allow. Whether that of the report is now.
fn refine_window(report: &Report, header: &mut Header) -> bool {
    let all = report.tables.iter().filter(|table| {
        let title = plain(&table.title);
        let other = title.contains("absolute") || title.contains("thread");
        (title.contains("instanceactivity") || title == "systemstatisticsglobal") && !other
    });
    let rates = all.flat_map(|table| {
        let columns = table.column("Total").zip(table.column("per Second"));
        let cluster = plain(&table.title) == "systemstatisticsglobal";
        let pair = move |row: &Row| {
            let (total, per_s) = columns.filter(|_| !cluster || CLUSTER.contains(&row.cell(0)))?;
            Some((times::rounded(row.cell(total))?, times::rounded(row.cell(per_s))?))
        };
        table.rows.iter().filter_map(pair)
    });
    let exact_ns = elapsed_ns(rates, header.window_ns);
    header.window_ns = exact_ns.unwrap_or(header.window_ns);
    if report.kind == ReportKind::AwrGlobal {
        for instance in &mut header.instances {
            let exact_ns = elapsed_ns(rates_of(report, &instance.number), instance.elapsed_ns);
            instance.elapsed_ns = exact_ns.unwrap_or(instance.elapsed_ns);
        }
    } else if let [only] = header.instances.as_mut_slice() {
        only.elapsed_ns = header.window_ns;
    }
    exact_ns.is_some()
}

/// Totals and rates of an instance in a cluster's report: the same columns in two tables, but for `/s`.
fn rates_of<'a>(report: &'a Report, number: &'a str) -> impl Iterator<Item = (Rounded, Rounded)> + 'a {
    let row = |title: &str| {
        let table = report.table(title)?;
        Some((table, table.rows.iter().find(|row| row.cell(0) == number)?))
    };
    let both = row("System Statistics").zip(row("System Statistics - Per Second"));
    both.into_iter().flat_map(|((totals, total), (rates, rate)): ((&Table, &Row), (&Table, &Row))| {
        totals.columns.iter().zip(&total.cells).skip(1).filter_map(move |(name, cell)| {
            let per_s = rates.cell(rate, &format!("{name}/s"))?;
            Some((times::rounded(cell)?, times::rounded(per_s)?))
        })
    })
}

/// The time by the pair of total and rate with the most digits, of those that agree with what is printed as elapsed.
fn elapsed_ns(rates: impl Iterator<Item = (Rounded, Rounded)>, reported_ns: u64) -> Option<u64> {
    let candidate = |(total, per_s): (Rounded, Rounded)| {
        // A total in whole units may be one of thousands; then half of one is its rounding.
        let off = total.off / total.value + per_s.off / per_s.value;
        let exact_ns = whole(total.value / per_s.value * 1e9)?;
        (off < MAX_OFF && exact_ns.abs_diff(reported_ns) <= MAX_OFF_NS).then_some((exact_ns, off))
    };
    let best = rates.filter_map(candidate).min_by(|(_, one), (_, other)| one.total_cmp(other));
    best.map(|(exact_ns, _)| exact_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::reported_figure;

    #[test]
    fn load_stands_before_details() {
        let mut figures = [
            reported_figure("engine", "function LGWR: Waits: Count", "", 1.0),
            reported_figure("engine", "Read IO requests", "/s", 1.0),
            reported_figure("host", "CPUs", "", 1.0),
            reported_figure("host", "%User", "%", 1.0),
            reported_figure("engine", "left1: Physical Reads/s", "/s", 1.0),
            reported_figure("engine", "DB time", "s", 1.0),
        ];
        figures.sort_by_key(rank);
        let names = figures.map(|figure| figure.name);
        assert_eq!(names[..4], ["DB time", "%User", "left1: Physical Reads/s", "Read IO requests"]);
    }

    fn exact(rates: &[(&str, &str)], reported_ns: u64) -> Option<u64> {
        let rates = rates.iter().map(|(total, per_s)| (times::rounded(total).unwrap(), times::rounded(per_s).unwrap()));
        elapsed_ns(rates, reported_ns)
    }

    #[test]
    fn the_rate_with_the_most_digits_tells_the_time() {
        let rates = [("60,430", "100.02"), ("6,043,000,000", "10,000,000.00"), ("0", "0.00"), ("7", "0.01")];
        assert_eq!(exact(&rates, 605_000_000_000), Some(604_300_000_000));
        assert_eq!(
            exact(&rates[..1], 605_000_000_000),
            None,
            "to a twentieth of a second, it is no better than what is reported"
        );
    }

    #[test]
    fn rates_over_another_time_tell_nothing() {
        assert_eq!(exact(&[("6,043,000,000", "10,000,000.00")], 610_000_000_000), None);
        assert_eq!(exact(&[], 610_000_000_000), None);
        assert_eq!(exact(&[("5", "0")], 0), None);
    }
}
