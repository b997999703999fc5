//! What sessions waited for, by class.

use super::{
    ColumnRule, Measure, Subject, columns_of, is_of_instance, row, subject, table_of, table_of_names, time, wanted,
};
use crate::oracle::classes::WAIT_CLASSES;
use crate::oracle::table::{Report, Table, plain};
use model::record::{Covers, ReportedRow, ReportedTable};

const ALL: Subject = subject("Wait classes", "engine", Covers::Window);
const FOREGROUND: Subject = subject("Foreground wait classes", "engine", Covers::Window);

const COLUMNS: [ColumnRule; 5] = [
    wanted(|name| name == "waits", "waits", Measure::Count),
    wanted(|name| name.starts_with("totalwaittimes"), "total", Measure::Seconds),
    time(|name| name.starts_with("avgwait"), "mean"),
    wanted(|name| name == "%dbtime", "DB time", Measure::Percent),
    wanted(|name| name == "avgactivesessions", "active sessions", Measure::Count),
];

/// The tables of wait classes of a report.
pub(super) fn tables(report: &Report) -> Vec<ReportedTable> {
    let mut all = Vec::new();
    for table in &report.tables {
        let subject = match plain(&table.title).as_str() {
            "waitclassesbytotalwaittime" => ALL,
            "foregroundwaitclass" => FOREGROUND,
            "foregroundwaitclasses" => {
                all.extend(of_cluster(table));
                continue;
            }
            _ => continue,
        };
        let Some(class) = table.column("Wait Class") else { continue };
        all.extend(table_of(subject, table, &[("wait class", class)], &columns_of(table, &COLUMNS), |_| true));
    }
    all
}

/// A cluster's table has a column for each class and a row for each instance: turned, so that classes stand below each other.
fn of_cluster(table: &Table) -> Option<ReportedTable> {
    let instances: Vec<usize> = (0..table.rows.len())
        .filter(|at| {
            table.rows.get(*at).is_some_and(|row| is_of_instance(row) || row.cell(0).eq_ignore_ascii_case("sum"))
        })
        .collect();
    let name = |at: &usize| match table.rows.get(*at).map(|row| row.cell(0)) {
        Some(number) if number.eq_ignore_ascii_case("sum") => "all instances".to_owned(),
        Some(number) => format!("instance {number}"),
        None => String::new(),
    };
    let names: Vec<String> = instances.iter().map(name).collect();
    let of_class = |(at, heading): (usize, &String)| -> Option<ReportedRow> {
        let class = heading.split("(s)").next().unwrap_or_default().trim();
        // DB time stands in the last column, in the same unit.
        if !heading.contains("(s)") && class != "DB time" {
            return None;
        }
        let cells: Vec<&str> =
            instances.iter().filter_map(|row| table.rows.get(*row)).map(|row| row.cell(at)).collect();
        Some(row(whole_class(class), Measure::Seconds, &cells))
    };
    let rows = table.columns.iter().enumerate().skip(1).filter_map(of_class).collect();
    let columns: Vec<&str> = names.iter().map(String::as_str).collect();
    table_of_names(FOREGROUND, &table.title, "wait class", &columns, rows)
}

/// The class whose name a heading has no room for: `Concurcy`, `Applic`, `Sys I/O`.
fn whole_class(heading: &str) -> &str {
    match heading {
        "Sys I/O" => "System I/O",
        "Concurcy" => "Concurrency",
        cut => WAIT_CLASSES.iter().find(|class| cut.len() >= 5 && class.starts_with(cut)).copied().unwrap_or(cut),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_their_whole_names() {
        let whole = ["Applic", "Config", "Admin", "Concurcy", "Sys I/O", "User I/O", "DB CPU"].map(whole_class);
        let expected =
            ["Application", "Configuration", "Administrative", "Concurrency", "System I/O", "User I/O", "DB CPU"];
        assert_eq!(whole, expected);
    }
}
