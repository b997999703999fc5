//! What a report says of the database, its instances, its machine and the time it covers.

use jiff::civil::DateTime;

use super::table::{HEADER, Report, ReportKind, Row, SNAPSHOTS, Table, plain};
use super::times;
use crate::numbers::{number, whole_number};
use crate::{Began, Draft, ImportError, Source, columns};
use model::record::{Environment, Target};

/// More instances than a cluster may have.
const MAX_INSTANCES: usize = 256;

/// An instance in the report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Instance {
    /// Its number, as it is printed.
    pub number: String,
    /// Its name; empty where it is not reported.
    pub name: String,
    /// The time between its snapshots; 0 where it is not reported.
    pub elapsed_ns: u64,
}

impl Instance {
    /// What to call it.
    pub(super) fn node(&self) -> String {
        if self.name.is_empty() { format!("instance {}", self.number) } else { self.name.clone() }
    }
}

/// What the header reports beyond what goes into the draft.
#[derive(Debug, Clone, Default)]
pub(super) struct Header {
    /// From the begin to the end snapshot; 0 if that is not reported.
    pub window_ns: u64,
    /// Whether it is exact to the second.
    pub is_exact: bool,
    /// DB time in seconds as the snapshots' lines have it, rounded to hundredths of a minute.
    pub db_time_s: Option<f64>,
    /// The instances.
    pub instances: Vec<Instance>,
}

/// Fills in what the header reports.
///
/// # Errors
/// If there are no snapshots.
pub(super) fn read(report: &Report, source: &Source, draft: &mut Draft) -> Result<Header, ImportError> {
    let header = if report.kind == ReportKind::AwrGlobal { global(report, draft) } else { single(report, draft) };
    super::read_containers(report, draft);
    header.ok_or_else(|| {
        // A browser saves tables as text without the dashes above which names of columns stand.
        let head = source.head();
        let has_tables =
            head.contains("<table") || head.lines().any(|line| columns::of_rule(line).is_some_and(|of| of.len() > 2));
        if !has_tables {
            return ImportError::not_recognised(source);
        }
        ImportError::damaged(
            source,
            report.last_line,
            "the report reports no begin and end snapshots: its beginning is missing",
        )
    })
}

/// What a report says in a cell, unless it is blank or the rest of a tag: people blank out names before they show a report.
fn said(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty() && !text.contains(['<', '>']))
}

/// Puts text into the facts that are only shown.
fn fact(target: &mut Target, name: &str, text: Option<&str>) {
    target.facts.other.extend(said(text).map(|text| (name.to_owned(), text.to_owned())));
}

/// Which database it is: its number, and whether it is a cluster's.
fn database(target: &mut Target, id: Option<&str>, is_clustered: Option<&str>) {
    target.facts.database.id = said(id).and_then(|id| id.parse().ok());
    target.facts.database.is_clustered = said(is_clustered).and_then(|word| match word.to_ascii_uppercase().as_str() {
        "YES" => Some(true),
        "NO" => Some(false),
        _ => None,
    });
}

/// The first row that has a column of that name with something in it, in the tables before the first section.
fn header_cell<'a>(report: &'a Report, names: &[&str]) -> Option<&'a str> {
    let cells = |table: &'a Table| names.iter().find_map(|name| table.cell(table.rows.first()?, name));
    report.tables(HEADER).find_map(cells)
}

fn single(report: &Report, draft: &mut Draft) -> Option<Header> {
    let cell = |names: &[&str]| header_cell(report, names);
    let snapshots = report.table(SNAPSHOTS)?;
    let (begin, end) = (snapshots.row("Begin Snap")?, snapshots.row("End Snap")?);
    let at = |row| snapshots.cell(row, "Snap Time").and_then(times::time);
    let (from, to) = (at(begin), at(end));
    let minutes = |name: &str| {
        let row = snapshots.row(name)?;
        snapshots
            .cell(row, "Snap Time")
            .into_iter()
            .chain(row.cells.iter().skip(1).map(String::as_str))
            .find_map(times::minutes_ns)
    };
    let window_ns = window(from, to, minutes("Elapsed"));
    times_of(draft, from, to, window_ns);
    for (row, time) in [(begin, from), (end, to)] {
        let written = snapshots.cell(row, "Snap Time").filter(|written| time.is_none() && !written.trim().is_empty());
        draft.notes.extend(
            written.map(|written| format!("The time of a snapshot, `{}`, was not understood.", written.trim())),
        );
    }

    let db = cell(&["DB Name"]).filter(|name| !name.contains(['<', '>'])).unwrap_or_default();
    let instance = cell(&["Instance"]).unwrap_or_default();
    draft.version = cell(&["Release"]).unwrap_or_default().to_owned();
    let target = &mut draft.target;
    database(target, cell(&["DB Id"]), cell(&["RAC", "Cluster", "OPS"]));
    let facts: [(&str, &[&str]); 12] = [
        ("unique_name", &["Unique Name"]),
        ("role", &["Role"]),
        ("edition", &["Edition"]),
        ("cdb", &["CDB"]),
        ("instance", &["Instance"]),
        ("instance_number", &["Inst Num"]),
        ("startup", &["Startup Time", "Startup"]),
        ("platform", &["Platform"]),
        ("cpus", &["CPUs"]),
        ("cores", &["Cores"]),
        ("sockets", &["Sockets", "Sckts"]),
        ("user", &["User Name"]),
    ];
    for (name, columns) in facts {
        fact(target, name, cell(columns));
    }
    let snapshots = snapshot_facts(target, snapshots, begin, end);
    name(draft, &[db, instance], &snapshots);

    draft.environment = Environment {
        hostname: cell(&["Host Name", "Host"]).map(str::to_owned),
        os: cell(&["Platform"]).map(str::to_owned),
        cpus: cell(&["CPUs"]).and_then(whole_number).and_then(|cpus| u32::try_from(cpus).ok()),
        memory_bytes: memory(report).or_else(|| giga(cell(&["Memory (GB)", "Memory(GB)"])?)),
        ..Environment::default()
    };
    // The second is release 9's.
    if let Some(sizes) = report.table("Cache Sizes").or_else(|| report.table("Cache Sizes (end)")) {
        let size = |name: &str| {
            let row = sizes.row(name)?;
            row.cells.iter().skip(1).find_map(|cell| bytes(cell))
        };
        draft.target.cache_bytes = size("Buffer Cache");
        draft.target.block_bytes = size("Std Block Size");
    }
    let instance = Instance {
        number: cell(&["Inst Num"]).unwrap_or_default().to_owned(),
        name: instance.to_owned(),
        elapsed_ns: window_ns,
    };
    Some(Header {
        window_ns,
        is_exact: are_exact(from, to),
        db_time_s: minutes("DB Time").map(|ns| ns as f64 / 1e9),
        instances: vec![instance],
    })
}

fn global(report: &Report, draft: &mut Draft) -> Option<Header> {
    let summary = report.table("Database Summary")?;
    let row = summary.rows.first()?;
    let cell = |column: &str| {
        // `Database: Name` and `Snapshot Ids: Begin`; without the spanning headings where these could not be read.
        let wanted = plain(column);
        let found = summary.columns.iter().position(|name| plain(name) == wanted).or_else(|| {
            let last = plain(last_part(column));
            summary.columns.iter().position(|name| plain(last_part(name)) == last)
        })?;
        Some(row.cell(found)).filter(|text| !text.is_empty())
    };
    let (begin, end) = (cell("Snapshot Ids: Begin")?, cell("Snapshot Ids: End")?);
    let snapshots = format!("{begin}-{end}");
    let database_name = cell("Database: Name").unwrap_or_default();
    database(&mut draft.target, cell("Database: Id"), cell("Database: RAC"));
    for (fact_name, column) in [
        ("unique_name", "Database: Unique Name"),
        ("role", "Database: Role"),
        ("edition", "Database: Edition"),
        ("cdb", "Database: CDB"),
        ("instances_total", "Number of Instances: Total"),
        ("hosts_total", "Number of Hosts: Total"),
    ] {
        fact(&mut draft.target, fact_name, cell(column));
    }
    draft.target.facts.database.snapshots = Some(snapshots.clone());
    draft.target.block_bytes = cell("Database: Block Size").and_then(bytes);

    let table = report.tables.iter().find(|table| plain(&table.title).starts_with("databaseinstances"));
    let rows: &[Row] = table.map_or(&[], |table| &table.rows);
    let column = |names: &[&str]| {
        let at = names.iter().find_map(|name| table.and_then(|table| table.column(name)));
        rows.iter().map(|row| at.map_or("", |at| row.cell(at)).trim()).collect::<Vec<&str>>()
    };
    let listed = |all: &[&str]| once(all.iter().copied().filter(|text| !text.is_empty()).collect()).join(", ");
    let same =
        |all: &[&str]| all.first().copied().filter(|first| all.iter().all(|text| text == first)).map(str::to_owned);
    let (names, hosts, platforms) = (column(&["Instance"]), column(&["Host"]), column(&["Platform"]));
    let elapsed = column(&["Elapsed Time(min)", "Elapsed Time (min)"]);
    let numbers = column(&["I#", "Inst Num"]);
    let instances: Vec<Instance> = names
        .iter()
        .zip(&numbers)
        .zip(&elapsed)
        .take(MAX_INSTANCES)
        .map(|((name, number), elapsed)| Instance {
            number: (*number).to_owned(),
            name: (*name).to_owned(),
            elapsed_ns: times::minutes_ns(elapsed).unwrap_or(0),
        })
        .collect();
    for (name, all) in [("instances", &names), ("hosts", &hosts), ("startup", &column(&["Startup"]))] {
        fact(&mut draft.target, name, Some(&listed(all)));
    }
    fact(&mut draft.target, "platform", same(&platforms).as_deref());
    draft.version = same(&column(&["Release"])).unwrap_or_default();
    draft.environment.os = same(&platforms).filter(|text| !text.is_empty());
    draft.environment.hostname = same(&hosts).filter(|text| !text.is_empty());

    let times_in = |names: &[&str]| column(names).into_iter().filter_map(times::time).collect::<Vec<_>>();
    let from = times_in(&["Begin Snap Time"]).into_iter().min_by_key(|(time, _)| *time);
    let to = times_in(&["End Snap Time"]).into_iter().max_by_key(|(time, _)| *time);
    let reported = cell("Report Total (minutes): Elapsed time").and_then(times::minutes_ns);
    let window_ns = window(from, to, reported);
    times_of(draft, from, to, window_ns);
    cluster_memory(report, draft, instances.len());
    let sessions = report.table("System Statistics (Absolute Values)");
    if let Some((table, sum)) = sessions.and_then(|table| Some((table, table.row("Sum").or(table.rows.first())?))) {
        fact(&mut draft.target, "sessions_begin", table.cell(sum, "Sessions: Begin"));
        fact(&mut draft.target, "sessions_end", table.cell(sum, "Sessions: End"));
    }
    name(draft, &[database_name], &snapshots);
    let db_time_s = cell("Report Total (minutes): DB time").and_then(times::minutes_ns).map(|ns| ns as f64 / 1e9);
    Some(Header { window_ns, is_exact: are_exact(from, to), db_time_s, instances })
}

/// Buffer caches and machines of all instances: the sum of the caches where all report it, the machine where there is one.
fn cluster_memory(report: &Report, draft: &mut Draft, instances: usize) {
    let sizes = |title: &str, column: &str| -> Option<Vec<f64>> {
        let table = report.table(title)?;
        let at = table.columns.iter().position(|name| plain(name) == plain(column))?;
        let rows = table.rows.iter().filter(|row| row.cell(0).parse::<u32>().is_ok());
        let all: Vec<f64> = rows.filter_map(|row| number(row.cell(at))).collect();
        (all.len() == instances && instances > 0).then_some(all)
    };
    draft.target.cache_bytes = sizes("Cache Sizes", "DB Cache: Begin")
        .and_then(|all| crate::draft::whole(all.iter().sum::<f64>() * 1_048_576.0));
    let cpus = sizes("OS Statistics By Instance", "CPU: #CPUs");
    let text = |all: &[f64]| once(all.iter().map(f64::to_string).collect()).join(", ");
    fact(&mut draft.target, "cpus", cpus.as_deref().map(text).as_deref());
    if instances == 1 {
        draft.environment.cpus = cpus.and_then(|all| all.first().map(|cpus| *cpus as u32));
        let memory = sizes("OS Statistics By Instance", "Memory: MB").and_then(|all| all.first().copied());
        draft.environment.memory_bytes = memory.and_then(|mb| crate::draft::whole(mb * 1_048_576.0));
    }
}

/// What follows the spanning heading in the name of a column.
pub(super) fn last_part(column: &str) -> &str {
    column.rsplit_once(": ").map_or(column, |(_, last)| last)
}

type Time = Option<(DateTime, bool)>;

/// The length of the window: the difference of the snapshots' times where they are exact to the second and fit what is reported,
/// or else the minutes that are reported.
fn window(from: Time, to: Time, reported_ns: Option<u64>) -> u64 {
    let between = || {
        let ((from, true), (to, true)) = (from?, to?) else { return None };
        let seconds = to.duration_since(from).as_secs();
        u64::try_from(seconds).ok().filter(|seconds| *seconds > 0)?.checked_mul(1_000_000_000)
    };
    match (between(), reported_ns) {
        // A clock that was put forward or back between them shows in the difference, not in what the database counted.
        (Some(ns), Some(reported)) if ns.abs_diff(reported) > 2_000_000_000 => reported,
        (Some(ns), _) => ns,
        (None, reported) => reported.unwrap_or(0),
    }
}

fn are_exact(from: Time, to: Time) -> bool {
    [from, to].into_iter().all(|time| time.is_some_and(|(_, seconds)| seconds))
}

fn times_of(draft: &mut Draft, from: Time, to: Time, window_ns: u64) {
    draft.began = from.and_then(|(time, _)| Began::wall(time));
    draft.ended = to.and_then(|(time, _)| Began::wall(time)).map(Began::timestamp);
    if window_ns == 0 {
        draft.notes.push("The report does not report how long it covers, so that nothing has a rate.".to_owned());
    }
}

fn snapshot_facts(target: &mut Target, table: &Table, begin: &Row, end: &Row) -> String {
    let id = |row| table.cell(row, "Snap Id").unwrap_or_default();
    let snapshots = format!("{}-{}", id(begin), id(end));
    target.facts.database.snapshots = Some(snapshots.clone());
    // All sessions that the instance had, most of them idle: no load.
    fact(target, "sessions_begin", table.cell(begin, "Sessions"));
    fact(target, "sessions_end", table.cell(end, "Sessions"));
    snapshots
}

/// Names target and draft by what is reported on database and instance.
fn name(draft: &mut Draft, parts: &[&str], snapshots: &str) {
    let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    draft.target.address = parts.join("/");
    let what = if parts.is_empty() { "Oracle Database".to_owned() } else { parts.join("/") };
    draft.title = format!("{what} snapshots {snapshots}");
}

/// Memory of the machine by the report's memory statistics, which have more digits than its header.
fn memory(report: &Report) -> Option<u64> {
    let row = report.table("Memory Statistics")?.row("Host Mem (MB)")?;
    let mb = row.cells.iter().skip(1).find_map(|cell| number(cell)).filter(|mb| *mb > 0.0)?;
    crate::draft::whole(mb * 1_048_576.0)
}

fn giga(text: &str) -> Option<u64> {
    number(text).filter(|gb| *gb > 0.0).and_then(|gb| crate::draft::whole(gb * 1_073_741_824.0))
}

/// A size such as `7,680M`, `8K` or `8192`, in bytes.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let factor = match text.chars().last()? {
        'K' | 'k' => 1_024.0,
        'M' | 'm' => 1_048_576.0,
        'G' | 'g' => 1_073_741_824.0,
        'T' | 't' => 1_099_511_627_776.0,
        'P' | 'p' => 1_125_899_906_842_624.0,
        _ => 1.0,
    };
    crate::draft::whole(number(text.trim_end_matches(|c: char| c.is_alphabetic()))? * factor)
}

/// What is the same of all is said once.
fn once<T: PartialEq>(mut all: Vec<T>) -> Vec<T> {
    if all.windows(2).all(|pair| pair[0] == pair[1]) {
        all.truncate(1);
    }
    all
}
