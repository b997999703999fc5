//! The device that iostat saw busiest: of what it saw of a machine, what says most about load.

use model::record::{Metric, ReportedFigure, Step};

/// The device that was busiest on average in any of some steps.
#[derive(Debug, Clone)]
pub struct BusiestDevice<'a> {
    step: &'a Step,
    /// Its name.
    pub name: &'a str,
    /// Percent of the time in which it had something to do.
    pub busy_pct: f64,
}

impl<'a> BusiestDevice<'a> {
    /// That of these steps; absent where nothing says how busy devices were.
    pub fn of(steps: impl IntoIterator<Item = &'a Step>) -> Option<Self> {
        let of_figure = |step: &'a Step, figure: &'a ReportedFigure| {
            let (name, busy_pct) = figure.part_of(Metric::DeviceBusy)?;
            Some(Self { step, name: name?, busy_pct })
        };
        let of_step = |step: &'a Step| step.reported.iter().filter_map(move |figure| of_figure(step, figure));
        let all = steps.into_iter().flat_map(of_step);
        all.reduce(|most, other| if other.busy_pct > most.busy_pct { other } else { most })
    }

    /// What is reported of it.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        let mut values = self.step.reported.iter().filter_map(|figure| figure.part_of(metric));
        values.find(|(name, _)| *name == Some(self.name)).map(|(_, value)| value)
    }

    /// Mean milliseconds of a request from when it was queued, reads and writes together.
    pub fn await_ms(&self) -> Option<f64> {
        let by_kind = || {
            let kinds =
                [(Metric::DeviceReads, Metric::DeviceReadAwait), (Metric::DeviceWrites, Metric::DeviceWriteAwait)];
            let [reads, writes] = kinds.map(|(rate, time)| {
                let per_s = self.value(rate)?;
                // Without requests there is no time, and some versions print a number that is none.
                let ms = if per_s > 0.0 { self.value(time)? } else { 0.0 };
                Some((per_s, per_s * ms))
            });
            let ((reads, read_ms), (writes, write_ms)) = (reads?, writes?);
            Some((read_ms + write_ms) / (reads + writes)).filter(|ms| ms.is_finite())
        };
        self.value(Metric::DeviceAwait).or_else(by_kind)
    }
}
