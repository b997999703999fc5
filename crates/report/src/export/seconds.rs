//! The table `intervals`: one row for each second of each step.

use super::durations::{self, durations, waited};
use super::steps::of_step;
use super::table::{Cell, Field, Kind, Table, columns, count, field, fill, number, text, time};
use analysis::{SINGLE_BLOCK_READ, counted_per_s};
use model::record::{Histogram, Interval, Metric, Run, Step};

pub(super) const INTERVALS: Table = Table {
    name: "intervals",
    words: "a second of a step, warm-up included and marked; of imported results whatever intervals they report",
    columns: || columns(&fields()),
    rows: |exported, out| {
        let rows = exported.run.steps.iter().flat_map(|step| step.intervals.iter().map(move |it| (step, it)));
        fill(&fields(), rows.map(|(step, interval)| Row::new(exported.key, exported.run, step, interval)), out)
    },
};

pub(crate) struct Row<'a> {
    pub(crate) key: &'a str,
    run: &'a Run,
    pub(crate) step: &'a Step,
    pub(crate) interval: &'a Interval,
    reads: Option<&'a Histogram>,
    /// What ended well in the sixty seconds up to its end, where somebody counts that.
    pub(crate) in_last_minute: Option<u64>,
}

impl<'a> Row<'a> {
    pub(crate) fn new(key: &'a str, run: &'a Run, step: &'a Step, interval: &'a Interval) -> Self {
        let reads = interval.waits.get(SINGLE_BLOCK_READ);
        Self { key, run, step, interval, reads, in_last_minute: None }
    }

    /// A rate of what a metric counts.
    pub(crate) fn per_s(&self, metric: Metric) -> Cell {
        let it = self.interval;
        number(counted_per_s(&it.counters, &it.servers, it.duration_ns, |counters| metric.count(counters)))
    }

    /// Nothing was timed by response where no operation of ours was sent.
    fn response(&self) -> Option<&'a Histogram> {
        Some(&self.interval.response).filter(|response| response.count() > 0)
    }
}

/// The column of what a metric is a rate of; of megabytes the bytes.
macro_rules! counted {
    ($metric:ident) => {
        counted!($metric, Metric::$metric.key(), Metric::$metric.unit().symbol())
    };
    ($metric:ident, $name:literal) => {
        counted!($metric, $name, "B/s")
    };
    ($metric:ident, $name:expr, $unit:expr) => {
        field($name, Kind::Number, $unit, Metric::$metric.meaning(), |row: &crate::export::seconds::Row<'_>| {
            row.per_s(Metric::$metric)
        })
    };
}
pub(crate) use counted;

pub(crate) fn fields<'a>() -> Vec<Field<Row<'a>>> {
    let mut fields: Vec<Field<Row<'a>>> = Vec::with_capacity(48);
    fields.extend(of_step!(Row<'a>));
    fields.extend([
        field("offset_ns", Kind::Count, "ns", "from the start of the step's load", |row: &Row<'a>| {
            count(row.interval.offset_ns)
        }),
        field("duration_ns", Kind::Count, "ns", "its length", |row| count(row.interval.duration_ns)),
        field("started_at", Kind::Time, "", "when it began", |row| {
            let load = row.step.window.offset_ns.saturating_sub(row.step.window.warmup_ns);
            time(row.run.started_at, load.saturating_add(row.interval.offset_ns))
        }),
        field("warmup", Kind::Flag, "", "whether it lies before the window", |row| Cell::Flag(row.interval.warmup)),
        counted!(Operations),
        counted!(Errors),
        counted!(LogicalReads),
        counted!(Reads),
        counted!(Writes),
        counted!(ReadMegabytes, "read_bytes_per_s"),
        counted!(WriteMegabytes, "write_bytes_per_s"),
        counted!(RedoMegabytes, "redo_bytes_per_s"),
        counted!(Commits),
    ]);
    fields.extend(waited!("response_", "response times of operations", |row: &Row<'a>| durations::of(row.response())));
    fields.extend(durations!("response_", "response times of operations", |row: &'_ Row<'a>| row.response()));
    fields.extend(waited!("read_", "single-block reads", |row: &Row<'a>| durations::of(row.reads)));
    fields.extend(durations!("read_", "single-block reads", |row: &'_ Row<'a>| row.reads));
    fields.extend([
        field(
            "process_user_ns",
            Kind::Count,
            "ns",
            "processor time of the load's process in user code",
            |row: &Row<'a>| count(row.interval.process_cpu.as_ref().map(|cpu| cpu.user_ns)),
        ),
        field("process_system_ns", Kind::Count, "ns", "the same in the kernel", |row| {
            count(row.interval.process_cpu.as_ref().map(|cpu| cpu.system_ns))
        }),
    ]);
    fields
}
