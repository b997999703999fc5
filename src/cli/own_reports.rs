//! Reports that databases made of themselves: kept beside the run, and read by the importers.

use import::{self, ImportError, Source};
use model::record::store::{RunWriter, StoreError};
use model::record::{OwnReport, ServerStats, Step, Timestamp};
use targets::OwnReports;

/// Keeps the reports on a step, and writes what they say into it. Gives what the user should know, and why a file could not be kept.
pub(super) fn keep(own: OwnReports, step: &mut Step, writer: &RunWriter) -> (Vec<String>, Option<StoreError>) {
    let OwnReports { reports, mut notes } = own;
    let mut unwritten = None;
    for (mut report, text) in reports {
        match text {
            Some(text) => {
                match writer.keep_own_report(&report.kind, step.index, step.own_reports.len(), &text) {
                    Ok(file) => report.file = Some(file),
                    Err(error) => drop(unwritten.get_or_insert(error)),
                }
                if report.counted.is_none()
                    && let Err(error) = read(&mut report, text)
                {
                    notes.push(format!("the {} report on {} could not be read: {error}", report.kind, step.label));
                }
            }
            None => notes.push(format!(
                "{} has snapshots {} and {} around {}, of instance {}: SQL*Plus makes the report by `@?/rdbms/admin/spreport`, and \
                 `plimsoll import` reads it",
                report.kind, report.begin_snapshot, report.end_snapshot, step.label, report.instance
            )),
        }
        step.own_reports.push(report);
    }
    (notes, unwritten)
}

/// What a report says was counted.
fn read(report: &mut OwnReport, text: String) -> Result<(), ImportError> {
    let name = report.file.clone().unwrap_or_else(|| report.kind.clone());
    let source = Source::new(name, text.into_bytes(), Timestamp(jiff::Timestamp::now()))?;
    let (_, drafts, notes) = import::read(&source)?;
    let remarks = notes.into_list().into_iter().map(|note| match note.line {
        Some(line) => format!("line {line}: {}", note.what),
        None => note.what,
    });
    report.remarks.extend(remarks);
    // A report is of one window of one instance.
    let Some(draft) = drafts.into_iter().next() else { return Ok(()) };
    report.remarks.extend(draft.notes);
    if let Some(Step { window, counters, instances, waits, .. }) = draft.steps.into_iter().next() {
        let instance = instances.into_iter().next().unwrap_or(ServerStats { counters, ..ServerStats::default() });
        report.counted = Some(ServerStats { elapsed_ns: window.duration_ns, waits, ..instance });
    }
    Ok(())
}
