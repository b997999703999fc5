//! The file `steps.csv`. Of raw storage, where an operation is one request, it has other columns than of a database.

use std::io::{self, Write};

use super::{of_step, own, own_ns, write};
use crate::export::steps::{Row, metric, read_times, request_times};
use crate::export::table::{Cell, Field, Kind, count, field, number, text};
use analysis::{GeneratorVerdict, operations_are_requests};
use model::record::{Metric, Run};

/// One row a step: rates, and single-block reads; of raw storage rates, response and service time of requests, and the load
/// generator's verdict on itself.
///
/// # Errors
/// If `out` fails.
pub fn steps(out: &mut dyn Write, run: &Run) -> io::Result<()> {
    let fields = if operations_are_requests(run) { of_requests() } else { of_database() };
    write(out, &fields, run.steps.iter().map(|step| Row::new(&run.id, run, step)))
}

fn of_database<'a>() -> Vec<Field<Row<'a>>> {
    let mut fields = Vec::from(of_step!(Row<'a>));
    fields.extend([
        metric!(Sessions),
        metric!(Window),
        metric!(Operations),
        metric!(LogicalReads),
        metric!(Reads),
        metric!(Writes),
        metric!(ReadMegabytes),
        metric!(WriteMegabytes),
        metric!(RedoMegabytes),
        metric!(Commits),
        metric!(Hits),
        metric!(UserProcessors),
        metric!(SystemProcessors),
        metric!(IoPerCpuSecond),
        metric!(BusySessions),
        metric!(BufferMisses),
        metric!(PageCacheHits),
    ]);
    fields.extend(read_times());
    fields
}

fn of_requests<'a>() -> Vec<Field<Row<'a>>> {
    let mut fields = Vec::from(of_step!(Row<'a>));
    fields.extend([
        metric!(Sessions),
        metric!(Asked),
        metric!(Window),
        metric!(Operations),
        metric!(Reads),
        metric!(Writes),
        metric!(ReadMegabytes),
        metric!(WriteMegabytes),
        metric!(Queued),
        metric!(BusySessions),
        metric!(UserProcessors),
        metric!(SystemProcessors),
        metric!(IoPerCpuSecond),
    ]);
    fields.extend(request_times());
    fields.extend([
        own("generator_limited_by", |row: &Row<'a>| verdict(row, |of| text(of.limited_by.word()))),
        own("generator_busiest_share", |row| verdict(row, |of| number(of.busiest_share))),
        own("slots_in_generator", |row| verdict(row, |of| number(of.slots_in_generator))),
        own_ns("lag_p50_ns", |row| verdict(row, |of| count(of.lag_p50_ns))),
        own_ns("lag_p99_ns", |row| verdict(row, |of| count(of.lag_p99_ns))),
        own_ns("lag_max_ns", |row| verdict(row, |of| count(of.lag_max_ns))),
        own("ceiling_per_s", |row| verdict(row, |of| number(of.ceiling_operations_per_s))),
        own("headroom", |row| verdict(row, |of| number(of.headroom))),
    ]);
    fields
}

fn verdict(row: &Row<'_>, of: fn(&GeneratorVerdict) -> Cell) -> Cell {
    GeneratorVerdict::of(row.step).map_or(Cell::Unknown, |verdict| of(&verdict))
}
