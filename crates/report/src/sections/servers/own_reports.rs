//! What a database's own report says of a window, laid beside what was counted in it.

use std::io;

use super::count;
use crate::grid::Grid;
use crate::paper::Paper;
use crate::text::Detail;
use crate::words::{UNKNOWN, duration, number};
use analysis::{Beside, BesideUnit, MAX_AGREEING, signed_percent};
use model::record::{OwnReport, Run};
use model::units::{Nanos, group_thousands, percent};

/// A table for each report; in a brief one, how many lines agree.
pub(crate) fn own_reports(paper: &mut dyn Paper, run: &Run, detail: Detail) -> io::Result<()> {
    let all = run.steps.iter().flat_map(|step| Beside::of(step).into_iter().map(move |beside| (step, beside)));
    if detail == Detail::Full {
        return all.into_iter().try_for_each(|(step, beside)| table(paper, &beside, &step.label));
    }
    let mut grid = Grid::new(2, ["step", "report", "figures that both have", "agree or are explained", "differ"]);
    for (step, beside) in all {
        let (agreeing, known) = beside.agreeing();
        if known == 0 {
            continue;
        }
        let counts = [known, agreeing, known - agreeing].map(|lines| count(Some(lines as u64)));
        grid.push([step.label.clone(), beside.report.kind.clone()].into_iter().chain(counts).collect());
    }
    let within = percent(MAX_AGREEING);
    paper.table(
        &format!(
            "The database's own report beside what was counted here ({within} % apart at most, or of a longer time)"
        ),
        &grid,
    )
}

fn table(paper: &mut dyn Paper, beside: &Beside<'_>, label: &str) -> io::Result<()> {
    let kind = beside.report.kind.as_str();
    let mut grid = Grid::new(1, ["figure", kind, "counted here", "difference", "why"]);
    for line in &beside.lines {
        let values = [line.reported, line.counted].map(|value| show(value, line.unit));
        let difference = line.difference().map_or_else(|| UNKNOWN.to_owned(), signed_percent);
        let why = line.why.map_or("", |why| why.words()).to_owned();
        grid.push([line.what.clone()].into_iter().chain(values).chain([difference, why]).collect());
    }
    let title = format!(
        "{kind} beside what was counted here, in {label} (snapshots {} to {}, instance {})",
        beside.report.begin_snapshot, beside.report.end_snapshot, beside.report.instance
    );
    paper.table(&title, &grid)?;
    paper.remark(&times(beside))?;
    for remark in &beside.report.remarks {
        paper.remark(remark)?;
    }
    Ok(())
}

/// How the times of both lie.
fn times(beside: &Beside<'_>) -> String {
    let OwnReport { kind, lead_ns, overlap_ns, lag_ns, file, .. } = beside.report;
    let (reported, ours) = beside.elapsed_ns;
    let of = |ns: u64| if ns == 0 { "an unknown time".to_owned() } else { duration(Some(ns)) };
    let file = file.as_ref().map(|file| format!(" The report is `{file}` beside the run.")).unwrap_or_default();
    let late = match *overlap_ns {
        0 => String::new(),
        late => format!(", and was there only {} into it", Nanos(late)),
    };
    format!(
        "{kind} is of {}, and what was counted here of {}: its first snapshot was asked for {} before the window{late}, its second \
         was there {} after it.{file}",
        of(reported),
        of(ours),
        Nanos(*lead_ns),
        Nanos(*lag_ns),
    )
}

fn show(value: Option<f64>, unit: BesideUnit) -> String {
    match (value, unit) {
        (None, _) => UNKNOWN.to_owned(),
        (Some(count), BesideUnit::Count) => group_thousands(count),
        (Some(bytes), BesideUnit::Bytes) => format!("{} MB", number(Some(bytes / 1e6))),
        (Some(ns), BesideUnit::Time) => duration(Some(ns.round() as u64)),
    }
}
