//! What instances of a cluster send each other: the global cache, the interconnect and its pings.

use super::{ColumnRule, Measure, Subject, columns_of, is_of_instance, row, subject, table_of, table_of_names, wanted};
use crate::oracle::header::last_part;
use crate::oracle::table::{Report, Row, Table, plain};
use model::record::{Covers, ReportedColumn, ReportedRow, ReportedTable};

const LOAD: Subject = subject("Global cache load", "engine", Covers::Window);
const EFFICIENCY: Subject = subject("Global cache efficiency", "engine", Covers::Window);
const TIMES: Subject = subject("Global cache and enqueue times", "engine", Covers::Window);
const MESSAGES: Subject = subject("Global messaging", "engine", Covers::Window);
const TRANSFERS: Subject = subject("Global cache transfers", "engine", Covers::Window);
const TRANSFER_TIMES: Subject = subject("Global cache transfer times", "engine", Covers::Window);
const PING: Subject = subject("Interconnect ping", "network", Covers::Window);
const CLIENTS: Subject = subject("Interconnect by client", "network", Covers::Window);
const DEVICES: Subject = subject("Interconnect devices", "network", Covers::Window);

/// The tables of a cluster that a report reports, of one instance or of all.
pub(super) fn tables(report: &Report) -> Vec<ReportedTable> {
    report.tables.iter().filter_map(of_table).collect()
}

fn of_table(table: &Table) -> Option<ReportedTable> {
    let title = plain(&table.title);
    let is_of_all = table.column("I#").is_some();
    let is_named = table.columns.first().is_some_and(String::is_empty);
    match title.as_str() {
        "globalcacheloadprofile" => load(table),
        _ if title.starts_with("globalcacheefficiency") && is_named => of_names(EFFICIENCY, "access", table),
        "globalcacheefficiencypercentages" if is_of_all => by_headings(EFFICIENCY, table),
        _ if title.starts_with("globalcacheandenqueueservicesw") => of_names(TIMES, "time", table),
        "globallatencycharacteristics" => by_headings(TIMES, table),
        _ if title.starts_with("globalcacheandenqueueservicesm") => of_names(MESSAGES, "message", table),
        "globalmessagingstatistics" if is_of_all => by_headings(MESSAGES, table),
        "globalcachetransferstats" | "globalcachetransferstatistics" => transfers(TRANSFERS, table),
        _ if title.starts_with("globalcachetransfertimes") => transfers(TRANSFER_TIMES, table),
        "pingstatistics" => ping(table),
        _ if title.starts_with("interconnectpinglatency") => ping(table),
        "interconnectthroughputbyclient" => clients(table),
        "interconnectclientstatisticspersecond" => clients_of_instances(table),
        "interconnectdevicestatistics" => devices(table),
        _ => None,
    }
}

/// Names with a rate each; traffic that is estimated in KB is one of KB a second.
fn load(table: &Table) -> Option<ReportedTable> {
    let at = table.column("Per Second")?;
    let of_row = |line: &Row| {
        let traffic = line.cell(0).contains("(KB)");
        let name = line.cell(0).replace("(KB)", "");
        row(name.trim(), if traffic { Measure::As("KB/s") } else { Measure::PerSecond }, &[line.cell(at)])
    };
    table_of_names(LOAD, &table.title, "load", &["value"], table.rows.iter().map(of_row).collect())
}

/// Names that report their units: `Avg global enqueue get time (ms)`, `% of direct sent messages`.
fn of_names(subject: Subject, key: &str, table: &Table) -> Option<ReportedTable> {
    let of_row = |line: &Row| {
        let measure = Measure::of_heading(line.cell(0))?;
        let name = line.cell(0).trim_end_matches("(ms)").trim_end_matches("(us)").trim_end();
        Some(row(name, measure, &[line.cell(1)]))
    };
    table_of_names(subject, &table.title, key, &["value"], table.rows.iter().filter_map(of_row).collect())
}

/// A row for each instance; headings give their units.
fn by_headings(subject: Subject, table: &Table) -> Option<ReportedTable> {
    let columns = known_columns(table, 1);
    table_of(subject, table, &[("instance", 0)], &columns, is_of_instance)
}

/// The columns from one on of which headings say what they are.
fn known_columns(table: &Table, from: usize) -> Vec<(ReportedColumn, usize, Measure)> {
    let column = |(at, heading): (usize, &String)| {
        let measure = Measure::of_heading(heading)?;
        let name = heading.replace(" (us)", "").replace("(us)", "").replace(" (ms)", "").replace("(ms)", "");
        Some((ReportedColumn { name, unit: measure.unit().to_owned() }, at, measure))
    };
    table.columns.iter().enumerate().skip(from).filter_map(column).collect()
}

/// Blocks that came from other instances, by their class: numbers, percentages and times.
fn transfers(subject: Subject, table: &Table) -> Option<ReportedTable> {
    let class = table.columns.iter().position(|name| plain(last_part(name)).ends_with("class"))?;
    let mut keys: Vec<(&str, usize)> = Vec::new();
    match class {
        1 => keys.push(("from instance", 0)),
        2 => keys.extend([("to instance", 0), ("from instance", 1)]),
        _ => return None,
    }
    keys.push(("block class", class));
    let mut columns = known_columns(table, class + 1);
    for (at, heading) in table.columns.iter().enumerate().skip(class + 1) {
        if plain(last_part(heading)).ends_with("received") {
            let column = ReportedColumn { name: heading.replace("Blocks Received", "blocks"), unit: String::new() };
            columns.push((column, at, Measure::Count));
        }
    }
    columns.sort_by_key(|(_, at, _)| *at);
    table_of(subject, table, &keys, &columns, |_| true)
}

/// Round trips of messages of 500 bytes and 8 KB. The unit of their times stands in the headings or in a remark; that of their
/// standard deviation is reported rightly only where it is milliseconds: reports in microseconds print fractions of one.
fn ping(table: &Table) -> Option<ReportedTable> {
    let remarks = table.remarks.join(" ").to_lowercase();
    let remarked = match () {
        () if remarks.contains("microseconds") => Some(Measure::Time(1e3)),
        () if remarks.contains("miliseconds") || remarks.contains("milliseconds") => Some(Measure::Time(1e6)),
        () => None,
    };
    let mut columns = Vec::new();
    let mut left_out = Vec::new();
    for (at, heading) in table.columns.iter().enumerate() {
        let name = plain(heading);
        let size = match () {
            () if name.contains("500b") => "500 B",
            () if name.contains("8k") => "8 KB",
            () => continue,
        };
        let (what, measure) = match () {
            () if name.contains("count") => ("pings", Some(Measure::Count)),
            () if name.contains("std") => ("deviation", remarked.filter(|measure| *measure == Measure::Time(1e6))),
            () => ("mean", Measure::of_heading(heading).or(remarked)),
        };
        let name = format!("{size} {what}");
        match measure {
            Some(measure) => {
                columns.push((ReportedColumn { name, unit: measure.unit().to_owned() }, at, measure));
            }
            None => left_out.push(name),
        }
    }
    let source = table.columns.iter().position(|name| plain(last_part(name)) == "src");
    let target = table.columns.iter().position(|name| plain(last_part(name)).contains("target"))?;
    let keys: Vec<(&str, usize)> =
        source.map(|at| ("from instance", at)).into_iter().chain([("to instance", target)]).collect();
    let mut read = table_of(PING, table, &keys, &columns, |row| !row.cell(target).is_empty())?;
    if !left_out.is_empty() {
        read.remarks.push(format!("Left out, as the report does not give their unit: {}.", left_out.join(", ")));
    }
    Some(read)
}

const BY_CLIENT: [ColumnRule; 2] = [
    wanted(|name| name.starts_with("sendmbytes"), "sent", Measure::As("MB/s")),
    wanted(|name| name.starts_with("receivembytes"), "received", Measure::As("MB/s")),
];

fn clients(table: &Table) -> Option<ReportedTable> {
    table_of(CLIENTS, table, &[("client", 0)], &columns_of(table, &BY_CLIENT), |_| true)
}

/// A cluster's has a row for each instance, with what it sent and received for each client in columns.
fn clients_of_instances(table: &Table) -> Option<ReportedTable> {
    let measure = Measure::As("MB/s");
    let at = |group: &str, client: &str| {
        table
            .columns
            .iter()
            .position(|name| name.starts_with(group) && name.contains("MB/s") && last_part(name) == client)
    };
    let clients = || table.columns.iter().filter(|name| name.starts_with("Sent")).map(|name| last_part(name));
    let mut rows = Vec::new();
    for line in table.rows.iter().filter(|row| is_of_instance(row)) {
        for client in clients() {
            let value = |group: &str| at(group, client).and_then(|at| measure.value(line.cell(at)));
            let values = vec![value("Sent"), value("Received")];
            if values.iter().any(Option::is_some) {
                let names = vec![line.cell(0).to_owned(), client.to_owned()];
                rows.push(ReportedRow { names, unit: String::new(), values });
            }
        }
    }
    let column = |name: &str| ReportedColumn { name: name.to_owned(), unit: measure.unit().to_owned() };
    (!rows.is_empty()).then(|| ReportedTable {
        keys: ["instance", "client"].map(str::to_owned).to_vec(),
        columns: ["sent", "received"].map(column).to_vec(),
        ..super::empty(CLIENTS, &table.title, rows)
    })
}

/// Those of one instance are per second; a cluster's are sums.
const BY_DEVICE: [ColumnRule; 14] = [
    wanted(|name| name == "sendmbytessec", "sent", Measure::As("MB/s")),
    wanted(|name| name == "sentmbytes", "sent", Measure::As("MB")),
    wanted(|name| name == "sentpackets", "sent packets", Measure::Count),
    wanted(|name| ["senderrors", "senterrors"].contains(&name), "send errors", Measure::Count),
    wanted(|name| ["senddropped", "sentpacketsdropped"].contains(&name), "send drops", Measure::Count),
    wanted(|name| ["sendbufferoverrun", "sentbufferovrrun"].contains(&name), "send overruns", Measure::Count),
    wanted(|name| ["sendcarrierlost", "sentcarrierlost"].contains(&name), "carrier losses", Measure::Count),
    wanted(|name| name == "receivembytessec", "received", Measure::As("MB/s")),
    wanted(|name| name == "receivedmbytes", "received", Measure::As("MB")),
    wanted(|name| name == "receivedpackets", "received packets", Measure::Count),
    wanted(|name| ["receiveerrors", "receivederrors"].contains(&name), "receive errors", Measure::Count),
    wanted(|name| ["receivedropped", "receivedpacketsdropped"].contains(&name), "receive drops", Measure::Count),
    wanted(|name| ["receivebufferoverrun", "receivedbufferovrrun"].contains(&name), "receive overruns", Measure::Count),
    wanted(|name| ["receiveframeerrors", "receivedframeerrors"].contains(&name), "frame errors", Measure::Count),
];

fn devices(table: &Table) -> Option<ReportedTable> {
    let instance = table.column("I#").map(|at| ("instance", at));
    let device =
        table.columns.iter().position(|name| ["devicename", "interfacename"].contains(&plain(name).as_str()))?;
    let address = table.columns.iter().position(|name| plain(name).ends_with("ipaddress"));
    let keys: Vec<(&str, usize)> =
        instance.into_iter().chain([("device", device)]).chain(address.map(|at| ("address", at))).collect();
    table_of(DEVICES, table, &keys, &columns_of(table, &BY_DEVICE), |row| {
        is_of_instance(row) && !row.cell(device).is_empty()
    })
}
