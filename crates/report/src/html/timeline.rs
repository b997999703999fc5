//! Where steps and their seconds lie along the time of a run.

use super::chart::{Across, Band, Line, Quantity, thin, time_ticks};
use model::record::{Interval, Run, Step};

/// Labels along a time axis.
const LABELS: usize = 8;

/// The steps of a run along its time, in seconds since the first load began.
pub(super) struct Timeline<'a> {
    steps: Vec<(f64, &'a Step)>,
    /// Most values of a line, all pieces together.
    max_values: usize,
}

impl<'a> Timeline<'a> {
    /// Places each step where the run says, or after the one before where it does not say, as imported runs may not.
    pub(super) fn of(run: &'a Run, max_values: usize) -> Self {
        let mut end = f64::NEG_INFINITY;
        let mut steps: Vec<(f64, &Step)> = Vec::new();
        for step in &run.steps {
            let began = step.window.offset_ns.saturating_sub(step.window.warmup_ns) as f64 / 1e9;
            let began = began.max(end);
            end = began + length_s(step);
            steps.push((began, step));
        }
        let first = steps.first().map_or(0.0, |(began, _)| *began);
        steps.iter_mut().for_each(|(began, _)| *began -= first);
        Self { steps, max_values }
    }

    /// Whether any second was recorded.
    pub(super) fn has_seconds(&self) -> bool {
        self.steps.iter().any(|(_, step)| !step.intervals.is_empty())
    }

    /// Whether there are more seconds than values of a line.
    pub(super) fn is_thinned(&self) -> bool {
        self.steps.iter().map(|(_, step)| step.intervals.len()).sum::<usize>() > self.max_values
    }

    fn end(&self) -> f64 {
        self.steps.last().map_or(0.0, |(began, step)| began + length_s(step)).max(1.0)
    }

    /// The axis.
    pub(super) fn across(&self) -> Across {
        let end = self.end();
        Across {
            title: "time since the load began".to_owned(),
            quantity: Quantity::Elapsed,
            range: (0.0, end),
            ticks: time_ticks(0.0, end, LABELS),
        }
    }

    /// The steps, with their warm-up shaded.
    pub(super) fn bands(&self) -> Vec<Band> {
        let band = |(began, step): &(f64, &Step)| {
            let warm = step.intervals.iter().filter(|interval| interval.warmup);
            let warm_s: f64 = warm.map(|interval| interval.duration_ns as f64 / 1e9).sum();
            Band { range: (*began, began + length_s(step)), shaded_to: began + warm_s, name: step.label.clone() }
        };
        self.steps.iter().map(band).collect()
    }

    /// A line of one value a second; seconds without it are gaps.
    pub(super) fn line(&self, name: &str, value: impl Fn(&Interval) -> Option<f64>) -> Line {
        let middle = |interval: &Interval| (interval.offset_ns + interval.duration_ns / 2) as f64 / 1e9;
        let mut pieces: Vec<Vec<(f64, f64)>> = Vec::new();
        for (began, step) in &self.steps {
            pieces.push(Vec::new());
            for interval in step.intervals.iter().filter(|interval| interval.duration_ns > 0) {
                match (value(interval).filter(|value| value.is_finite()), pieces.last_mut()) {
                    (Some(value), Some(piece)) => piece.push((began + middle(interval), value)),
                    (None, Some(piece)) if !piece.is_empty() => pieces.push(Vec::new()),
                    _ => {}
                }
            }
        }
        pieces.retain(|piece| !piece.is_empty());
        let all: usize = pieces.iter().map(Vec::len).sum();
        let share = |piece: &Vec<(f64, f64)>| (piece.len() * self.max_values).div_ceil(all.max(1));
        let pieces = pieces.iter().map(|piece| thin(piece, share(piece))).collect();
        Line { name: name.to_owned(), pieces, dots: false }
    }

    /// Neighbouring seconds of a step together, in at most about `most` groups over all steps, with when each begins and ends.
    pub(super) fn groups(&self, most: usize) -> Vec<((f64, f64), Vec<&'a Interval>)> {
        let all: usize = self.steps.iter().map(|(_, step)| step.intervals.len()).sum();
        let length = all.div_ceil(most).max(1);
        let mut groups = Vec::new();
        for (began, step) in &self.steps {
            for chunk in step.intervals.chunks(length) {
                let (Some(first), Some(last)) = (chunk.first(), chunk.last()) else { continue };
                let from = began + first.offset_ns as f64 / 1e9;
                let to = began + (last.offset_ns + last.duration_ns) as f64 / 1e9;
                groups.push(((from, to), chunk.iter().collect()));
            }
        }
        groups
    }
}

fn length_s(step: &Step) -> f64 {
    let last = step.intervals.iter().map(|interval| interval.offset_ns + interval.duration_ns).max().unwrap_or(0);
    last.max(step.window.warmup_ns + step.window.duration_ns) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::sample;

    #[test]
    fn steps_follow_each_other_even_where_nobody_says_when() {
        let mut run = sample::sweep(10);
        run.steps.iter_mut().for_each(|step| step.window.offset_ns = 0);
        let bands = Timeline::of(&run, 100).bands();
        assert_eq!(bands.len(), run.steps.len());
        assert!(bands.windows(2).all(|pair| pair[0].range.1 <= pair[1].range.0 + 1e-9), "{bands:?}");
        assert_eq!(bands[0].range.0, 0.0);
    }

    #[test]
    fn a_second_without_a_value_is_a_gap_and_no_line_across() {
        let run = sample::sweep(20);
        let timeline = Timeline::of(&run, 1_000);
        let stalled =
            |interval: &Interval| interval.step == 1 && (5_000_000_000..9_000_000_000).contains(&interval.offset_ns);
        let line = timeline.line("p99", |interval| (!stalled(interval)).then_some(1.0));
        assert_eq!(line.pieces.len(), run.steps.len() + 1);
        let whole = timeline.line("p99", |_| Some(1.0));
        let count = |line: &Line| line.pieces.iter().map(Vec::len).sum::<usize>();
        assert_eq!(count(&whole) - count(&line), 4);
    }

    #[test]
    fn a_line_has_one_piece_a_step_and_no_more_values_than_asked_for() {
        let run = sample::sweep(60);
        let timeline = Timeline::of(&run, 40);
        let line = timeline.line("operations/s", |interval| interval.counters.operations.map(|count| count as f64));
        assert_eq!(line.pieces.len(), run.steps.len());
        let count: usize = line.pieces.iter().map(Vec::len).sum();
        assert!((run.steps.len()..=40 + run.steps.len()).contains(&count), "{count}");
        let groups = timeline.groups(50);
        assert!(groups.len() <= 50 + run.steps.len() && groups.len() > 25, "{}", groups.len());
    }
}
