//! The table `steps`: one row for each load level, or each window of a database that was reported.

use super::durations::{self, durations, waited};
use super::table::{Cell, Field, Kind, Table, columns, count, field, fill, number, small, text, time, word, words};
use analysis::trend::{database_of, measured};
use analysis::{SINGLE_BLOCK_READ, wait};
use model::record::{CpuTime, Generator, Histogram, Metric, Run, Step, WaitStats};

pub(super) const STEPS: Table = Table {
    name: "steps",
    words: "a load level of a run; of an imported report of a database its window",
    columns: || columns(&fields()),
    rows: |exported, out| {
        fill(&fields(), exported.run.steps.iter().map(|step| Row::new(exported.key, exported.run, step)), out)
    },
};

pub(crate) struct Row<'a> {
    pub(crate) key: &'a str,
    run: &'a Run,
    pub(crate) step: &'a Step,
    service: Option<Histogram>,
    response: Option<Histogram>,
    reads: Option<&'a WaitStats>,
}

impl<'a> Row<'a> {
    pub(crate) fn new(key: &'a str, run: &'a Run, step: &'a Step) -> Self {
        let all = |of: fn(&model::record::OperationStats) -> &Histogram| {
            let mut histograms = step.operations.iter().map(of);
            let first = histograms.next()?.clone();
            Some(histograms.fold(first, |mut sum, more| {
                sum.merge(more);
                sum
            }))
        };
        Self {
            key,
            run,
            step,
            service: all(|operation| &operation.service),
            response: all(|operation| &operation.response),
            reads: wait(step, SINGLE_BLOCK_READ),
        }
    }

    fn response(&self) -> Option<&Histogram> {
        self.response.as_ref()
    }

    fn service(&self) -> Option<&Histogram> {
        self.service.as_ref()
    }

    /// What it reports on a metric.
    pub(crate) fn metric(&self, metric: Metric) -> Cell {
        number(measured(metric, self.run, self.step))
    }

    fn host(&self, of: fn(&CpuTime) -> Option<u64>) -> Cell {
        count(self.step.host_cpu.as_ref().and_then(of))
    }

    fn generator(&self, of: fn(&Generator) -> Option<f64>) -> Cell {
        number(self.step.generator.as_ref().and_then(of))
    }
}

/// The first columns of each table whose rows are of a step.
macro_rules! of_step {
    ($row:ty) => {
        [
            field("run", Kind::Text, "", "the run, as in `runs`", |row: &$row| text(row.key)),
            field("step", Kind::Count, "", "place of the step in its run, from 0", |row: &$row| {
                count(u64::from(row.step.index))
            }),
        ]
    };
}
pub(super) use of_step;

/// The column of a metric.
macro_rules! metric {
    ($metric:ident) => {
        field(
            Metric::$metric.key(),
            Kind::Number,
            Metric::$metric.unit().symbol(),
            Metric::$metric.meaning(),
            |row: &Row<'_>| row.metric(Metric::$metric),
        )
    };
}
pub(crate) use metric;

/// Response and service times of all operations.
pub(crate) fn request_times<'a>() -> Vec<Field<Row<'a>>> {
    let mut fields: Vec<Field<Row<'a>>> = Vec::with_capacity(20);
    fields.extend(waited!("response_", "response times of operations, from due to finished", |row: &Row<'a>| {
        durations::of(row.response.as_ref())
    }));
    fields.extend(durations!("response_", "response times of operations", Row::response));
    fields.extend(waited!("service_", "service times of operations, from sent to finished", |row: &Row<'a>| {
        durations::of(row.service.as_ref())
    }));
    fields.extend(durations!("service_", "service times of operations", Row::service));
    fields
}

/// Times of single-block reads.
pub(crate) fn read_times<'a>() -> Vec<Field<Row<'a>>> {
    let mut fields: Vec<Field<Row<'a>>> = Vec::with_capacity(10);
    fields.extend(waited!("read_", "single-block reads", |row: &Row<'a>| row.reads.map(WaitStats::sum)));
    fields.extend(durations!("read_", "single-block reads", |row: &'_ Row<'a>| row.reads.map(|reads| &reads.waits)));
    fields
}

fn fields<'a>() -> Vec<Field<Row<'a>>> {
    let mut fields: Vec<Field<Row<'a>>> = Vec::with_capacity(96);
    fields.extend(of_step!(Row<'a>));
    fields.extend([
        field("label", Kind::Text, "", "what distinguishes it, such as `s8_t4`", |row: &Row<'a>| text(&row.step.label)),
        field("database", Kind::Text, "", "name of the database, or address of the target", |row| {
            text(&database_of(row.run, row.step).name)
        }),
        field(
            "database_id",
            Kind::Text,
            "",
            "what makes it that database: its number, else its name or address",
            |row| text(&database_of(row.run, row.step).scope.identity),
        ),
        field("instance", Kind::Text, "", "the instance, where the figures are of one alone", |row| {
            words(database_of(row.run, row.step).scope.instance.as_ref())
        }),
        field("sessions", Kind::Count, "", "sessions at work, or requests outstanding", |row| {
            small(row.step.load.sessions)
        }),
        field("schemas", Kind::Count, "", "schemas they worked on", |row| small(row.step.load.schemas)),
        field("threads_per_schema", Kind::Count, "", "sessions for each schema", |row| {
            small(row.step.load.threads_per_schema)
        }),
        metric!(Asked),
        field("arrival", Kind::Text, "", "`poisson`, `fixed` or `recorded`, of an open loop", |row| {
            words(row.step.load.arrival.map(|arrival| arrival.to_string()).as_ref())
        }),
        field("outcome", Kind::Text, "", "`completed`, `interrupted`, `failed` or `unfinished`", |row| {
            word(&row.step.outcome)
        }),
        field(
            "ending",
            Kind::Text,
            "",
            "what ended the window: `time`, `work_loop`, `interrupt`, `failure`, `unknown`",
            |row| word(&row.step.window.ending),
        ),
        field("started_at", Kind::Time, "", "beginning of the window", |row| {
            time(row.run.started_at, row.step.window.offset_ns)
        }),
        field("warmup_ns", Kind::Count, "ns", "load before the window", |row| count(row.step.window.warmup_ns)),
        field("window_ns", Kind::Count, "ns", "length of the window", |row| {
            count(Some(row.step.window.duration_ns).filter(|ns| *ns > 0))
        }),
        metric!(Io),
        metric!(Reads),
        metric!(Writes),
        metric!(Megabytes),
        metric!(ReadMegabytes),
        metric!(WriteMegabytes),
        metric!(RedoMegabytes),
        metric!(Commits),
        metric!(ReadTimeP99),
        metric!(HostBusy),
        metric!(ActiveSessions),
        field("operations", Kind::Count, "", "operations finished", |row| count(row.step.counters.operations)),
        field("errors", Kind::Count, "", "operations that failed", |row| count(row.step.counters.errors)),
        metric!(Operations),
        metric!(LogicalReads),
        metric!(Hits),
    ]);
    fields.extend(request_times());
    fields.extend(read_times());
    fields.extend([
        field(
            "process_user_ns",
            Kind::Count,
            "ns",
            "processor time of the load's process in user code",
            |row: &Row<'a>| count(row.step.process_cpu.as_ref().map(|cpu| cpu.user_ns)),
        ),
        field("process_system_ns", Kind::Count, "ns", "the same in the kernel", |row| {
            count(row.step.process_cpu.as_ref().map(|cpu| cpu.system_ns))
        }),
        field("host_user_ns", Kind::Count, "ns", "processor time of the whole machine in user code", |row| {
            row.host(|cpu| Some(cpu.user_ns))
        }),
        field("host_system_ns", Kind::Count, "ns", "the same in the kernel", |row| row.host(|cpu| Some(cpu.system_ns))),
        field("host_iowait_ns", Kind::Count, "ns", "the same, idle with I/O outstanding", |row| {
            row.host(|cpu| cpu.iowait_ns)
        }),
        field("host_steal_ns", Kind::Count, "ns", "the same, taken by the hypervisor for others", |row| {
            row.host(|cpu| cpu.steal_ns)
        }),
        field("host_idle_ns", Kind::Count, "ns", "the same, idle", |row| row.host(|cpu| cpu.idle_ns)),
        field("peak_memory_bytes", Kind::Count, "B", "largest resident memory of the load's process so far", |row| {
            count(row.step.peak_memory_bytes)
        }),
        field(
            "generator_busiest_share",
            Kind::Number,
            "0 to 1",
            "processor time of the load's busiest thread",
            |row| row.generator(|generator| Some(generator.busiest_share)),
        ),
        field(
            "generator_ceiling_per_s",
            Kind::Number,
            "1/s",
            "operations that the load's threads reach without a device",
            |row| row.generator(|generator| generator.ceiling_operations_per_s),
        ),
        field("due_operations", Kind::Count, "", "operations that fell due, of an open loop", |row| {
            count(row.step.generator.as_ref().and_then(|generator| generator.due_operations))
        }),
        field("backlog_operations", Kind::Count, "", "of these, not yet sent at the end", |row| {
            count(row.step.generator.as_ref().and_then(|generator| generator.backlog_operations))
        }),
    ]);
    fields
}
