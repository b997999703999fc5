//! What a report means: a run with one step, from its begin to its end snapshot.

use super::table::{Report, ReportKind};
use super::{activity, cross_checks, events, files, header, snapshots, subjects, window};
use crate::draft::step;
use crate::{Draft, ImportError, Notes, Source};
use model::record::ReportedFigure;
use model::record::Workload;

/// The run that a report reports on.
///
/// # Errors
/// If it reports no snapshots.
pub(super) fn drafts(report: &Report, source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut draft = Draft::new(Workload::Database, "Oracle Database", "");
    draft.target.kind = "oracle".to_owned();
    let mut header = header::read(report, source, &mut draft)?;
    if !window::refine(report, &mut header) && header.window_ns > 0 && !header.is_exact {
        draft
            .notes
            .push("The window is as long as the elapsed time of the report, in hundredths of a minute.".to_owned());
    }
    let report_kind = match report.kind {
        ReportKind::AwrSingle => "AWR",
        ReportKind::AwrGlobal => "AWR of all instances",
        ReportKind::Statspack => "Statspack",
    };
    draft.target.facts.insert("report".to_owned(), report_kind.to_owned());
    let label = draft.target.facts.get("snapshots").cloned().unwrap_or_default();
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
}
