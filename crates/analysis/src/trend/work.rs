//! What a database did in one window, as far as a load can be made like it.

use super::measured;
use crate::Figures;
use model::config::net::NetOptions;
use model::record::{Load, Metric, Run, Step, Work, WorkFigure};

/// Bytes between an Oracle instance and its clients.
const CLIENT_BYTES: [&str; 2] = ["bytes sent via SQL*Net to client", "bytes received via SQL*Net from client"];

/// The work of a step. What it does not report is absent.
pub fn work(run: &Run, step: &Step) -> Work {
    let figures = Figures(step);
    let seconds = figures.seconds();
    let per_s = |count: Option<f64>| count.filter(|_| seconds > 0.0).map(|count| count / seconds);
    let counters = &step.counters;
    let reads = figures.physical_reads_per_s();
    let of_kind = |name: &str| step.operations.iter().find(|kind| kind.kind == name).map(|kind| kind.count as f64);
    // Scans of our own engine read past its cache; on raw storage large reads are operations of their own.
    let large = per_s(figures.reported(Metric::MultiBlockReads))
        .or_else(|| per_s(counters.direct_reads.map(|count| count as f64)))
        .or_else(|| per_s(of_kind("large read")))
        .map(|large| reads.map_or(large, |reads| large.min(reads)));
    // Each operation that sends redo is one write of it.
    let redo = redo_sent(run);
    let sent = figures.operations_per_s().filter(|_| redo.is_some());
    let of = |figure| match figure {
        WorkFigure::LogicalReads => figures.logical_reads_per_s(),
        WorkFigure::Reads => reads,
        WorkFigure::LargeReads => large,
        WorkFigure::ReadBytes => figures.read_megabytes_per_s().map(|megabytes| megabytes * 1e6),
        WorkFigure::Writes => figures.physical_writes_per_s(),
        WorkFigure::WriteBytes => figures.write_megabytes_per_s().map(|megabytes| megabytes * 1e6),
        WorkFigure::Commits => figures.commits_per_s(),
        WorkFigure::RedoBytes => match figures.redo_megabytes_per_s() {
            Some(megabytes) => Some(megabytes * 1e6),
            None => sent.zip(redo).map(|(per_s, options)| per_s * options.sizes_in_force().mean()),
        },
        WorkFigure::RedoWrites => per_s(counters.redo_writes.map(|count| count as f64)).or(sent),
        WorkFigure::ActiveSessions => measured(Metric::ActiveSessions, run, step),
        WorkFigure::ClientBytes => {
            per_s(CLIENT_BYTES.into_iter().map(|name| figures.own(name).map(|bytes| bytes as f64)).sum())
        }
    };
    let known = |figure: WorkFigure| Some((figure, of(figure).filter(|value| value.is_finite() && *value >= 0.0)?));
    WorkFigure::ALL.into_iter().filter_map(known).collect()
}

/// The load of a run that sends redo over a network.
fn redo_sent(run: &Run) -> Option<&NetOptions> {
    match &run.load {
        Load::Network(options) => Some(options).filter(|options| options.pattern.is_redo()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::ReportedFigure;
    use model::record::sample::windows::{Hour, QUICK, report};

    #[test]
    fn what_a_report_does_not_say_is_absent_and_multi_block_reads_are_no_more_than_reads() {
        let mut run = report(Hour { at: 1, minutes: 60, reads_per_s: 2_000, writes_per_s: 500, within_ms: QUICK });
        let known = work(&run, &run.steps[0]);
        assert_eq!((known[&WorkFigure::Reads], known[&WorkFigure::Commits]), (2_000.0, 50.0));
        assert_eq!((known[&WorkFigure::ReadBytes], known[&WorkFigure::RedoBytes]), (2_000.0 * 8_192.0, 500e3));
        assert!(!known.contains_key(&WorkFigure::LogicalReads) && !known.contains_key(&WorkFigure::LargeReads));
        let large = ReportedFigure::new("engine", "multi", "", 9_000.0 * 3_600.0);
        run.steps[0].reported.push(large.is(Metric::MultiBlockReads, 1.0));
        assert_eq!(work(&run, &run.steps[0])[&WorkFigure::LargeReads], 2_000.0);
    }
}
