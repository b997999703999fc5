//! How far chance takes the rate of random arrivals from what was asked.

use model::workload::Arrival;
use std::io;

use crate::paper::Paper;
use crate::words::number;
use analysis::Figures;
use model::record::{Run, Step};

/// Arrivals that are drawn at random, by their name in the record.
/// A rate that is off by this share of what was asked is noticed.
const NOTICED: f64 = 0.01;
/// Standard deviations within which 95 % of draws lie, and beyond which it was hardly chance.
const DEFAULT: f64 = 1.96;
const CHANCE: f64 = 3.0;

/// A remark below the table of rates; nothing where no rate is off, or where chance alone does not take it so far.
pub(super) fn write(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let off = run.steps.iter().filter_map(|step| Some((step, noticed(step)?)));
    let Some((step, (asked, deviation))) = off.max_by(|one, other| one.1.1.total_cmp(&other.1.1)) else {
        return Ok(());
    };
    let of_step = if run.steps.len() > 1 { format!(" ({})", step.label) } else { String::new() };
    paper.remark(&format!(
        "Arrivals are random (Poisson), so a rate may end somewhat above or below its target. In {} s, 95 of 100 runs are within \
         {}/s +- {}/s{of_step}.",
        number(Some(Figures(step).seconds())),
        number(Some(asked)),
        number(Some(DEFAULT * deviation)),
    ))
}

/// The rate that was asked for and its standard deviation over the window, where the rate that came is off by chance.
fn noticed(step: &Step) -> Option<(f64, f64)> {
    let asked = step.load.rate_operations_per_s.filter(|_| step.load.arrival == Some(Arrival::Poisson))?;
    let reached = Figures(step).operations_per_s()?;
    let deviation = (asked / Figures(step).seconds()).sqrt();
    let off = (reached - asked).abs();
    (off >= NOTICED * asked && off <= CHANCE * deviation).then_some((asked, deviation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::Terminal;
    use model::record::sample::requests;

    fn rendered(run: &Run) -> String {
        let mut out = Vec::new();
        write(&mut Terminal { out: &mut out, width: 300 }, run).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Ten seconds of the first rate, at which `operations` came.
    fn open(asked: f64, operations: u64, arrival: Arrival) -> Run {
        let mut run = requests::open_loop();
        run.steps.truncate(1);
        let step = &mut run.steps[0];
        (step.load.rate_operations_per_s, step.load.arrival) = (Some(asked), Some(arrival));
        step.window.duration_ns = 10_000_000_000;
        step.counters.operations = Some(operations);
        run
    }

    #[test]
    fn a_rate_that_is_off_by_chance_is_explained() {
        let remark = rendered(&open(200.0, 1_940, Arrival::Poisson));
        assert!(remark.contains("In 10.0 s, 95 of 100 runs are within 200/s +- 8.8/s"), "{remark}");
    }

    #[test]
    fn nothing_is_excused_that_chance_does_not_do() {
        assert_eq!(rendered(&open(200.0, 1_800, Arrival::Poisson)), "", "a rate that was not reached");
        assert_eq!(rendered(&open(200.0, 1_940, Arrival::Fixed)), "", "a fixed schedule");
        assert_eq!(rendered(&open(200.0, 1_999, Arrival::Poisson)), "", "nobody notices");
    }
}
