//! How what was due in the window ended.

use std::io;

use crate::grid::Grid;
use crate::paper::Paper;
use crate::words::{NONE, UNKNOWN, duration, longest};
use model::record::{Histogram, Outstanding, Run, Step};
use model::units::group_thousands;

/// One row for each step in which not everything was done within the window; nothing where all was.
pub(crate) fn write(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let columns =
        ["step", "finished", "failed", "last after", "late", "longest", "never ended", "waited", "not sent", "since"];
    let mut grid = Grid::new(1, columns);
    for step in run.steps.iter().filter(|step| has_rest(step)) {
        let count = |count: Option<u64>| match count {
            Some(0) => NONE.to_owned(),
            Some(count) => group_thousands(count as f64),
            None => UNKNOWN.to_owned(),
        };
        let mut row = vec![step.label.clone(), count(step.counters.operations)];
        let late_errors: u64 = step.outstanding.iter().map(|late| late.errors).sum();
        row.push(count(step.counters.errors.map(|errors| errors.saturating_add(late_errors))));
        let mut failed = Histogram::default();
        step.operations.iter().for_each(|operations| failed.merge(&operations.failed));
        row.push(match step.counters.errors {
            Some(0) if late_errors == 0 => NONE.to_owned(),
            Some(errors) if errors == failed.count() && late_errors == 0 => longest(&failed),
            _ => UNKNOWN.to_owned(),
        });
        let late = together(step, |late| &late.response);
        row.extend([count(Some(late.count())), longest(&late)]);
        let never = together(step, |late| &late.unended);
        row.extend(match step.unended.filter(|_| never.count() == 0) {
            Some(unended) => [count(Some(unended.operations)), duration(Some(unended.waited_ns))],
            None => [count(Some(never.count())), longest(&never)],
        });
        let generator = step.generator.as_ref();
        let not_sent = generator.and_then(|generator| generator.backlog_operations).unwrap_or(0);
        let since = generator.and_then(|generator| generator.backlog_ages.as_ref());
        let since = if not_sent == 0 { NONE.to_owned() } else { since.map_or_else(|| UNKNOWN.to_owned(), longest) };
        row.extend([count(Some(not_sent)), since]);
        grid.push(row);
    }
    if grid.is_empty() {
        return Ok(());
    }
    paper.table("How operations ended (late: after the window; times from due)", &grid)
}

fn has_rest(step: &Step) -> bool {
    let has_backlog =
        step.generator.as_ref().is_some_and(|generator| generator.backlog_operations.is_some_and(|rest| rest > 0));
    step.counters.errors.is_some_and(|errors| errors > 0)
        || step.unended.is_some()
        || step.outstanding.iter().any(|late| late.count() > 0)
        || has_backlog
}

/// The times of all kinds.
fn together(step: &Step, times: impl Fn(&Outstanding) -> &Histogram) -> Histogram {
    let mut all = Histogram::default();
    step.outstanding.iter().for_each(|late| all.merge(times(late)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::sample;

    fn shown(run: &Run) -> String {
        let mut text = Vec::new();
        write(&mut crate::paper::Terminal { out: &mut text, width: 200 }, run).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn what_was_not_done_within_the_window_is_counted_with_its_age() {
        let mut run = sample::requests::sweep();
        run.steps.truncate(2);
        assert_eq!(shown(&run), "");
        let step = &mut run.steps[1];
        let mut late = Outstanding { kind: "read".to_owned(), errors: 1, ..Outstanding::default() };
        late.response.record_n(6_000_000_000, 3);
        late.unended.record_n(30_000_000_000, 2);
        step.outstanding = vec![late];
        step.counters.errors = Some(4);
        step.generator.as_mut().unwrap().backlog_operations = Some(17);
        let text = shown(&run);
        let row = text.lines().find(|line| line.trim_start().starts_with(&run.steps[1].label)).unwrap();
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells[2..], ["5", "3", "6.00", "s", "2", "30.0", "s", "17"], "{text}");
        assert!(!text.contains(&format!("{} ", run.steps[0].label)), "{text}");
        let step = &mut run.steps[1];
        step.outstanding.clear();
        [2_000_000, 30_000_000_000].iter().for_each(|ns| step.operations[0].failed.record(*ns));
        step.counters.errors = Some(2);
        let text = shown(&run);
        let row = text.lines().find(|line| line.trim_start().starts_with(&run.steps[1].label)).unwrap();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>()[2..5], ["2", "30.0", "s"], "{text}");
    }
}
