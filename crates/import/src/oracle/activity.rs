//! What a report counted: statistics of instances, time model, load and I/O profile, and its machine's processors.

use std::collections::BTreeMap;

use super::header::{Header, last_part};
use super::table::{Report, ReportKind, Row, Table, is_same, plain};
use crate::draft::{count_of, reported_figure, whole};
use crate::numbers::{number, whole_number};
use model::record::{Counters, CpuTime, Metric, ReportedFigure, ServerStats, Step};

/// Totals of statistics that are of all I/O of the instance (control files, redo and archives too) and have no counter.
const TOTALS: [(&str, Option<Metric>); 7] = [
    ("physical read total IO requests", None),
    ("physical read total bytes", Some(Metric::AllReadBytes)),
    ("physical read total multi block requests", Some(Metric::MultiBlockReads)),
    ("physical write total IO requests", None),
    ("physical write total bytes", Some(Metric::AllWrittenBytes)),
    ("physical write total multi block requests", None),
    ("physical reads direct", None),
];

/// Statistics by name.
pub(super) type Statistics = BTreeMap<String, u64>;

/// Fills in the counters, the instances and the figures that the report says by its own names.
pub(super) fn read(report: &Report, header: &Header, step: &mut Step, notes: &mut Vec<String>) {
    let statistics = statistics(report);
    step.counters = counters(&statistics, report);
    if statistics.is_empty() {
        by_rates(report, header.window_ns, &mut step.counters, notes);
    }
    // What is looked at first stands first.
    let times = time_model(report, header);
    for name in ["DB time", "DB CPU", "background elapsed time", "background cpu time"] {
        if let Some(ns) = times.get(name) {
            let metric = (name == "DB time").then_some(Metric::DbTime);
            step.reported.push(reported_figure("engine", name, "s", *ns as f64 / 1e9).is(metric, 1.0));
        }
    }
    profiles(report, step);
    for (name, metric) in TOTALS {
        if let Some(total) = statistics.get(name) {
            step.reported.push(reported_figure("engine", name, unit_of(name), *total as f64).is(metric, 1.0));
        }
    }
    if report.kind == ReportKind::AwrGlobal {
        step.instances = instances(report, header, step);
    } else {
        let mut own = statistics;
        own.extend(times.iter().map(|(name, ns)| (format!("{name}_ns"), *ns)));
        step.host_cpu = processors(report, &mut own);
        let instance = header.instances.first().cloned().unwrap_or_default();
        step.instances = vec![ServerStats {
            node: instance.node(),
            elapsed_ns: header.window_ns,
            counters: step.counters.clone(),
            own,
            ..ServerStats::default()
        }];
    }
}

fn unit_of(name: &str) -> &'static str {
    if name.ends_with("bytes") { "B" } else { "" }
}

/// All statistics with their totals. Where two have one name, because text reports cut it, nobody knows which is which.
pub(super) fn statistics(report: &Report) -> Statistics {
    let mut all: BTreeMap<String, Option<u64>> = BTreeMap::new();
    for table in &report.tables {
        let title = plain(&table.title);
        let activity = title.contains("instanceactivity") || title == "systemstatisticsglobal";
        let other = title.contains("absolute") || title.contains("thread");
        let Some(total) = table.column("Total").filter(|_| activity && !other) else { continue };
        for row in &table.rows {
            let Some(count) = whole_number(row.cell(total)) else { continue };
            // The table of key statistics has some a second time.
            all.entry(row.cell(0).to_owned())
                .and_modify(|known| *known = known.filter(|known| *known == count))
                .or_insert(Some(count));
        }
    }
    all.into_iter().filter_map(|(name, count)| Some((name, count?))).collect()
}

fn counters(statistics: &Statistics, report: &Report) -> Counters {
    let thread = report.tables.iter().find(|table| plain(&table.title).contains("threadactivity"));
    let log_switches = || {
        let row = thread?.row("log switches (derived)")?;
        whole_number(thread?.cell(row, "Total")?)
    };
    // Statspack has it among the others.
    let log_switches = log_switches().or_else(|| statistics.get("log switches (derived)").copied());
    Counters { log_switches, ..model::record::counters(statistics) }
}

/// Counters of a report without statistics: its rates times its window.
fn by_rates(report: &Report, window_ns: u64, counters: &mut Counters, notes: &mut Vec<String>) {
    let Some(profile) = report.table("Load Profile").filter(|_| window_ns > 0) else { return };
    let count = |names: &[&str]| {
        let row = names.iter().find_map(|name| profile.row(name))?;
        count_of(number(profile.cell(row, "Per Second")?)?, window_ns)
    };
    counters.logical_reads = count(&["Logical read (blocks)", "Logical reads"]);
    counters.block_changes = count(&["Block changes"]);
    counters.physical_reads = count(&["Read IO requests"]);
    counters.physical_read_blocks = count(&["Physical read (blocks)", "Physical reads"]);
    counters.physical_writes = count(&["Write IO requests"]);
    counters.physical_write_blocks = count(&["Physical write (blocks)", "Physical writes"]);
    counters.redo_bytes = count(&["Redo size (bytes)", "Redo size"]);
    if *counters != Counters::default() {
        notes.push(
            "The report has no statistics with totals: its counts here are the rates of its load profile times its window, \
             rounded as these are."
                .to_owned(),
        );
    }
}

/// Load profile, I/O profile and the processors, as they are printed.
fn profiles(report: &Report, step: &mut Step) {
    if let Some(table) = report.table("Load Profile") {
        for row in &table.rows {
            if let Some(value) = table.cell(row, "Per Second").and_then(number) {
                // `DB Time(s)` of a second.
                let name = row.cell(0);
                let is_sessions = name.contains("(s)") && plain(name).starts_with("dbtime");
                let metric = is_sessions.then_some(Metric::ActiveSessions);
                step.reported.push(reported_figure("engine", name, "/s", value).is(metric, 1.0));
            }
        }
    }
    let io = report.tables.iter().filter(|table| plain(&table.title).starts_with("ioprofile"));
    for table in io {
        cells(table, 1, &mut step.reported, |row, column| {
            let name = row.cell(0);
            (format!("{name}: {column}"), if name.contains("(MB)") { "MB/s" } else { "/s" }, "engine")
        });
    }
    for title in ["Host CPU", "Instance CPU"] {
        let layer = if title == "Host CPU" { "host" } else { "engine" };
        let Some(table) = report.table(title) else { continue };
        let times = table.columns.iter().position(|column| is_same(column, "Time (seconds)"));
        if times.is_some() {
            // Statspack's, with names of rows, and percentages beside times.
            cells(table, 1, &mut step.reported, |row, column| {
                let name = row.cell(0).strip_suffix("(s)").unwrap_or(row.cell(0)).trim_end();
                (name.to_owned(), if column.contains('%') { "%" } else { "s" }, layer)
            });
        } else if table.column("Value").is_some() {
            cells(table, 1, &mut step.reported, |row, _| (row.cell(0).to_owned(), unit_by_name(row.cell(0)), layer));
        } else {
            cells(table, 0, &mut step.reported, |_, column| (column.to_owned(), unit_by_name(column), layer));
        }
    }
}

fn unit_by_name(name: &str) -> &'static str {
    if name.contains('%') { "%" } else { "" }
}

/// What a share of a machine's processors in percent is. Idle time holds what `%WIO` is.
pub(super) fn host_share(name: &str) -> Option<Metric> {
    Some(match plain(name).trim_start_matches('%') {
        "user" | "usr" | "nice" => Metric::HostUser,
        "system" | "sys" => Metric::HostSystem,
        "idle" => Metric::HostIdle,
        "busy" => Metric::HostBusy,
        _ => return None,
    })
}

/// Every number from column `from` on as a figure, named by `name` from its row and column, which gives unit and layer too.
fn cells(
    table: &Table,
    from: usize,
    figures: &mut Vec<ReportedFigure>,
    name: impl Fn(&Row, &str) -> (String, &'static str, &'static str),
) {
    for row in &table.rows {
        for (column, cell) in table.columns.iter().zip(&row.cells).skip(from) {
            if let Some(value) = number(cell) {
                let (name, unit, layer) = name(row, column);
                let metric = host_share(&name).filter(|_| layer == "host" && unit == "%");
                figures.push(reported_figure(layer, name, unit, value).is(metric, 1.0));
            }
        }
    }
}

/// Times in nanoseconds by the names of the time model, of one instance or the sum of a cluster.
fn time_model(report: &Report, header: &Header) -> BTreeMap<String, u64> {
    let mut times = BTreeMap::new();
    if let Some(ns) = header.db_time_s.and_then(|seconds| whole(seconds * 1e9)) {
        times.insert("DB time".to_owned(), ns);
    }
    for table in &report.tables {
        let title = plain(&table.title);
        if report.kind == ReportKind::AwrGlobal && title == "timemodel" {
            for row in table.rows.iter().filter(|row| row.cell(0).eq_ignore_ascii_case("sum")) {
                times.extend(times_of_row(table, row));
            }
            if let [only] = table.rows.as_slice() {
                times.extend(times_of_row(table, only));
            }
        } else if title.starts_with("timemodelsys") || title == "timemodelstatistics" {
            let at = table.columns.iter().position(|name| plain(name).starts_with("time"));
            for row in &table.rows {
                let seconds = at.and_then(|at| number(row.cell(at)));
                if let Some(ns) = seconds.and_then(|seconds| whole(seconds * 1e9)) {
                    // The footnote of some names is none of theirs.
                    let name = row.cell(0).split('[').next().unwrap_or_default().trim();
                    times.insert(name.to_owned(), ns);
                }
            }
        }
    }
    times
}

/// The time model of an instance in a cluster's report, by the names of its columns, which end in `(s)`.
fn times_of_row(table: &Table, row: &Row) -> Vec<(String, u64)> {
    let time = |(column, cell): (&String, &String)| {
        let name = column.strip_suffix("(s)").unwrap_or(column).trim();
        let name = match name {
            "bg time" => "background elapsed time",
            "bg CPU" => "background cpu time",
            name => name,
        };
        Some((name.to_owned(), whole(number(cell)? * 1e9)?))
    };
    table.columns.iter().zip(&row.cells).skip(1).filter_map(time).collect()
}

/// The machine's processor time; everything else of the operating system goes to `own`.
fn processors(report: &Report, own: &mut Statistics) -> Option<CpuTime> {
    // Statspack calls it so too, but shorter.
    let table = report.table("Operating System Statistics").or_else(|| report.table("OS Statistics"))?;
    let at = table.column("Value").or_else(|| table.column("Total"))?;
    let mut ns = BTreeMap::new();
    for row in &table.rows {
        let name = row.cell(0);
        let Some(value) = whole_number(row.cell(at)) else { continue };
        if name.ends_with("_TIME") {
            // In hundredths of a second.
            let time = value.saturating_mul(10_000_000);
            ns.insert(name, time);
            own.insert(format!("{name}_ns"), time);
        } else if name != "LOAD" {
            own.insert(name.to_owned(), value);
        }
    }
    let iowait_ns = ns.get("IOWAIT_TIME").copied();
    // Oracle counts waiting for I/O as idle, too.
    let idle = ns.get("IDLE_TIME").copied();
    let idle_ns = idle.map(|idle| iowait_ns.map_or(idle, |waiting| idle.saturating_sub(waiting)));
    let (user_ns, system_ns) = (*ns.get("USER_TIME")?, *ns.get("SYS_TIME")?);
    Some(CpuTime { user_ns, system_ns, iowait_ns, steal_ns: None, idle_ns })
}

/// The instances of a cluster's report.
fn instances(report: &Report, header: &Header, step: &mut Step) -> Vec<ServerStats> {
    let row_of = |table: &'_ Table, number: &str| table.rows.iter().position(|row| row.cell(0) == number);
    let mut all = Vec::new();
    for instance in &header.instances {
        let mut stats =
            ServerStats { node: instance.node(), elapsed_ns: instance.elapsed_ns, ..ServerStats::default() };
        for table in &report.tables {
            let Some(row) = row_of(table, &instance.number).and_then(|at| table.rows.get(at)) else { continue };
            match plain(&table.title).as_str() {
                "systemstatistics" => {
                    let counters = cluster_counters(table, row);
                    stats.counters.add(&counters);
                    let own = table.columns.iter().zip(&row.cells).skip(1);
                    stats.own.extend(own.filter_map(|(name, cell)| Some((name.clone(), whole_number(cell)?))));
                }
                "systemstatisticspersecond" => figures_of(table, row, &format!("{}: ", stats.node), step),
                "timemodel" => {
                    stats.own.extend(times_of_row(table, row).into_iter().map(|(name, ns)| (format!("{name}_ns"), ns)))
                }
                "osstatisticsbyinstance" => machine(table, row, &mut stats, step),
                _ => {}
            }
        }
        all.push(stats);
    }
    for table in report.tables("System Statistics - Per Second") {
        for row in table.rows.iter().filter(|row| row.cell(0).eq_ignore_ascii_case("sum")) {
            figures_of(table, row, "", step);
        }
    }
    all
}

/// Rates of an instance, as they are printed.
fn figures_of(table: &Table, row: &Row, before: &str, step: &mut Step) {
    for (column, cell) in table.columns.iter().zip(&row.cells).skip(1) {
        // The rest follows from the instance's own counts.
        let wanted = before.is_empty() || plain(column).starts_with("physical");
        if let Some(value) = number(cell).filter(|_| wanted) {
            step.reported.push(reported_figure("engine", format!("{before}{column}"), "/s", value));
        }
    }
}

fn cluster_counters(table: &Table, row: &Row) -> Counters {
    let get = |name: &str| whole_number(table.cell(row, name)?);
    Counters {
        logical_reads: get("Logical Reads"),
        physical_read_blocks: get("Physical Reads"),
        physical_write_blocks: get("Physical Writes"),
        block_changes: get("Block Changes"),
        // In units of 1,024 bytes, as the total in the same report shows.
        redo_bytes: get("Redo Size (k)").and_then(|kilo| kilo.checked_mul(1_024)),
        ..Counters::default()
    }
}

/// The machine of an instance.
fn machine(table: &Table, row: &Row, stats: &mut ServerStats, step: &mut Step) {
    for (column, cell) in table.columns.iter().zip(&row.cells).skip(1) {
        let Some(value) = number(cell) else { continue };
        if column.starts_with("Time (s): ") {
            let name = format!("{}_TIME_ns", last_part(column).to_uppercase());
            stats.own.extend(whole(value * 1e9).map(|ns| (name, ns)));
        } else if column.contains('%') {
            let (node, name) = (&stats.node, last_part(column));
            let figure = reported_figure("host", format!("{node}: {name}"), "%", value);
            step.reported.push(figure.is(host_share(name), 1.0).of(node));
        }
    }
}
