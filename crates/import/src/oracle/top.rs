//! Top events, which stand in for the tables of all events where a report has none: those of clusters before release 12, and
//! those of which only the summary was kept.

use super::table::{Report, Row, Table, plain};

/// What stands among events and waits for nothing.
const PROCESSOR: [&str; 3] = ["CPU time", "DB CPU", "background cpu time"];

/// Tables of events made of those of the top events; none if the report has tables of all events.
pub(super) fn tables(report: &Report) -> Vec<Table> {
    let is_of_all = |table: &Table| {
        let title = plain(&table.title);
        let begins = ["foregroundwaitevents", "backgroundwaitevents", "waitevents"];
        begins.iter().any(|begin| title.starts_with(begin)) && !table.rows.is_empty()
    };
    if report.tables.iter().any(is_of_all) {
        return Vec::new();
    }
    of(report).map(|(table, _)| table).collect()
}

/// The tables of top events in the form and with the titles of those of all events, each with itself.
pub(super) fn of(report: &Report) -> impl Iterator<Item = (Table, &Table)> {
    report.tables.iter().filter_map(|table| Some((stands_in(table, title(&plain(&table.title))?), table)))
}

/// What the reader must know of waits that such tables report.
pub(super) fn remark(tables: &[Table]) -> Option<String> {
    let what = "The report has no tables of all events: waits are those of its top events alone.";
    tables.iter().any(|table| !table.rows.is_empty()).then(|| what.to_owned())
}

/// What the table of all events is called for which one of top events stands.
fn title(top: &str) -> Option<&'static str> {
    let rest = top.strip_prefix("top")?.trim_start_matches(|c: char| c.is_ascii_digit());
    match rest {
        "timedbackgroundevents" => Some("Background Wait Events"),
        // A cluster's are of the foreground and the background together, and both have tables of their own.
        "timedevents" if rest.len() < top.len() - "top".len() => Some("Wait Events"),
        "timedforegroundevents" | "foregroundeventsbytotalwaittime" => Some("Foreground Wait Events"),
        _ => None,
    }
}

/// The rows of waits that are of all instances: a cluster's have `*` in front, or nothing below such a row.
fn stands_in(table: &Table, title: &str) -> Table {
    let instance = table.column("I#");
    let event = table.columns.iter().position(|name| plain(name).ends_with("event"));
    let mut of_all = true;
    let is_wanted = |row: &&Row| {
        let number = instance.map_or("", |at| row.cell(at));
        if !number.is_empty() {
            of_all = number == "*";
        }
        of_all && !event.is_some_and(|at| PROCESSOR.contains(&row.cell(at)))
    };
    let columns = table.columns.iter().map(|name| if plain(name) == "times" { "Total Time(s)" } else { name });
    Table {
        title: title.to_owned(),
        line: table.line,
        columns: columns.map(str::to_owned).collect(),
        rows: table.rows.iter().filter(is_wanted).cloned().collect(),
        remarks: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::read_text;
    use crate::oracle::table::ReportKind;
    use crate::{Notes, Source};
    use model::record::Timestamp;

    fn report(tables: Vec<Table>) -> Report {
        Report { kind: ReportKind::AwrGlobal, is_on_pdb: false, tables, ended: true, last_line: 9 }
    }

    const COLUMNS: [&str; 5] = ["I#", "Wait: Class", "Wait: Event", "Event: Waits", "Wait Time: Total(s)"];

    #[test]
    fn rows_of_all_instances_stand_for_the_events_of_a_cluster() {
        let rows: [&[&str]; 5] = [
            &["*", "User I/O", "tape read", "500", "5.0"],
            &["", "", "DB CPU", "N/A", "7.0"],
            &["", "Commit", "log file sync", "40", "1.0"],
            &["1", "User I/O", "tape read", "300", "3.0"],
            &["", "Commit", "log file sync", "30", "0.5"],
        ];
        let top = Table::of("Top Timed Foreground Events", &COLUMNS, &rows);
        let found = tables(&report(vec![Table::of("Top Timed Events", &COLUMNS, &rows), top.clone()]));
        let events: Vec<(&str, &str)> = found[0].rows.iter().map(|row| (row.cell(2), row.cell(3))).collect();
        assert_eq!((found.len(), found[0].title.as_str()), (1, "Foreground Wait Events"));
        assert_eq!(events, [("tape read", "500"), ("log file sync", "40")]);
        let all = Table::of("Foreground Wait Events (Global)", &COLUMNS, &rows);
        assert!(tables(&report(vec![top, all])).is_empty(), "they are all there");
    }

    #[test]
    fn a_summary_alone_tells_its_top_events() {
        let text = "\
WORKLOAD REPOSITORY report for

DB Name         DB Id    Instance     Inst Num Startup Time    Release     RAC
------------ ----------- ------------ -------- --------------- ----------- ---
SHOP            77000111 shop1               1 01-Mar-21 08:00 11.2.0.4.0  NO

              Snap Id      Snap Time      Sessions Curs/Sess
            --------- ------------------- -------- ---------
Begin Snap:        11 01-Mar-21 10:00:01        40        .9
  End Snap:        12 01-Mar-21 11:00:02        41       1.1
   Elapsed:               60.02 (mins)
   DB Time:            1,234.50 (mins)

Top 5 Timed Foreground Events
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
                                                           Avg
                                                          wait   % DB
Event                                 Waits     Time(s)   (ms)   time Wait Class
------------------------------ ------------ ----------- ------ ------ ----------
made up tape wait                    10,000         250     25   77.5 User I/O
DB CPU                                               30           9.3
          -------------------------------------------------------------

End of Report
";
        let changed = Timestamp(jiff::Timestamp::UNIX_EPOCH);
        let source = Source::new("awr.txt", text.as_bytes().to_vec(), changed).unwrap();
        let mut notes = Notes::new(&source);
        let drafts = read_text(&source, &mut notes).unwrap_or_else(|error| panic!("{error}"));
        let waits = &drafts[0].steps[0].waits;
        assert_eq!(
            (waits.len(), waits[0].event.as_str(), waits[0].class.as_str()),
            (1, "made up tape wait", "User I/O")
        );
        assert_eq!((waits[0].waits.count(), waits[0].waits.total_ns()), (10_000, Some(250_000_000_000)));
        assert!(notes.is_empty() && drafts[0].notes.iter().any(|note| note.contains("top events alone")));
    }

    #[test]
    fn titles_and_columns_of_all_releases_are_known() {
        let titles = [
            "Top 5 Timed Events",
            "Top 10 Foreground Events by Total Wait Time",
            "Top 5 Timed Foreground Events",
            "Top Timed Background Events",
            "Top Timed Events",
            "Top User Events",
        ];
        let all = [Some("Wait Events"), Some("Foreground Wait Events"), Some("Foreground Wait Events")];
        assert_eq!(titles.map(|one| title(&plain(one)))[..3], all);
        assert_eq!(titles.map(|one| title(&plain(one)))[3..], [Some("Background Wait Events"), None, None]);
        let top = Table::of("Top 5 Timed Events", &["Event", "Waits", "Time (s)"], &[&["tape read", "5", "1"]]);
        assert_eq!(tables(&report(vec![top]))[0].columns, ["Event", "Waits", "Total Time(s)"]);
    }
}
