//! The device that iostat saw busiest: of what it saw of a machine, what says most about load.

use model::record::{ReportedFigure, Step};

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
            Some(Self { step, name: figure.name.strip_suffix(" %util")?, busy_pct: figure.value })
        };
        let of_step = |step: &'a Step| step.reported.iter().filter_map(move |figure| of_figure(step, figure));
        let all = steps.into_iter().flat_map(of_step);
        all.reduce(|most, other| if other.busy_pct > most.busy_pct { other } else { most })
    }

    /// Its figure in a column of iostat.
    pub fn column(&self, column: &str) -> Option<f64> {
        let is_it = |figure: &&ReportedFigure| figure.name.strip_prefix(self.name) == Some(&format!(" {column}"));
        self.step.reported.iter().find(is_it).map(|figure| figure.value)
    }

    /// Megabytes (10^6) per second read (`r`) or written (`w`).
    pub fn megabytes_per_s(&self, way: char) -> Option<f64> {
        let scaled = |(unit, bytes): (&str, f64)| Some(self.column(&format!("{way}{unit}/s"))? * bytes / 1e6);
        [("kB", 1_024.0), ("MB", 1_048_576.0), ("sec", 512.0)].into_iter().find_map(scaled)
    }

    /// Mean milliseconds of a request from when it was queued, reads and writes together.
    pub fn await_ms(&self) -> Option<f64> {
        let by_kind = || {
            let [reads, writes] = ["r", "w"].map(|way| {
                let per_s = self.column(&format!("{way}/s"))?;
                // Without requests there is no time, and some versions print a number that is none.
                let ms = if per_s > 0.0 { self.column(&format!("{way}_await"))? } else { 0.0 };
                Some((per_s, per_s * ms))
            });
            let ((reads, read_ms), (writes, write_ms)) = (reads?, writes?);
            Some((read_ms + write_ms) / (reads + writes)).filter(|ms| ms.is_finite())
        };
        self.column("await").or_else(by_kind)
    }
}
