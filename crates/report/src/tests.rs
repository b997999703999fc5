use std::path::Path;

use super::*;
use analysis::{LatencyTarget, analyse};
use model::record::sample::windows::{self, Hour, QUICK};
use model::record::{
    Covers, Histogram, ReportedBucket, ReportedColumn, ReportedRow, ReportedTable, Run, Target, WaitStats, sample,
    store,
};

fn golden(kind: &str) -> Run {
    let path = format!("{}/../../tests/data/runs/format-1-{kind}", env!("CARGO_MANIFEST_DIR"));
    store::load(Path::new(&path)).unwrap()
}

pub(super) fn report(run: &Run, detail: Detail, width: usize) -> String {
    let mut out = Vec::new();
    text(&mut out, run, &analyse(run, &LatencyTarget::default()), detail, width).unwrap();
    String::from_utf8(out).unwrap()
}

pub(super) fn tabulate(runs: &[Run], style: Style, format: Format) -> String {
    let mut out = Vec::new();
    table(&mut out, runs, style, format).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_sweep_in_brief() {
    insta::assert_snapshot!(report(&golden("sweep"), Detail::Brief, 120));
}

#[test]
fn a_run_with_updates_in_full() {
    insta::assert_snapshot!(report(&golden("updates"), Detail::Full, 140));
}

#[test]
fn an_interrupted_sweep_in_a_narrow_terminal() {
    insta::assert_snapshot!(report(&golden("interrupted"), Detail::Full, 80));
}

#[test]
fn an_import_with_much_unknown() {
    insta::assert_snapshot!(report(&golden("imported"), Detail::Full, 120));
}

#[test]
fn tables_of_every_golden_run() {
    let runs = ["sweep", "updates", "interrupted", "imported"].map(golden);
    insta::assert_snapshot!("awr_info", tabulate(&runs, Style::AwrInfo, Format::Text));
    insta::assert_snapshot!("matrix", tabulate(&runs, Style::Matrix, Format::Text));
    insta::assert_snapshot!("awr_info_markdown", tabulate(&runs[1..2], Style::AwrInfo, Format::Markdown));
    insta::assert_snapshot!("matrix_csv", tabulate(&runs[3..], Style::Matrix, Format::Csv));
    insta::assert_snapshot!("awr_info_json", tabulate(&runs[3..], Style::AwrInfo, Format::Json));
}

/// Runs of two disks; of the second not everything is known.
fn two_tagged_runs() -> Vec<Run> {
    let mut runs = vec![golden("updates"), golden("imported")];
    for (run, disk) in runs.iter_mut().zip(["p30x2", "p30x32"]) {
        run.tags =
            [("vm", "m64s"), ("disk", disk), ("cache", "read")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    }
    runs[1].tags.remove("cache");
    runs[1].steps[0].counters.physical_reads = None;
    runs
}

#[test]
fn a_matrix_as_a_page_shades_shares_and_names_what_is_not_known() {
    let page = tabulate(&two_tagged_runs(), Style::Matrix, Format::Html);
    assert!(!page.contains("http:") && !page.contains("https:"), "{page}");
    let table = &page[page.find("<div class=\"sheet\"").unwrap()..page.find("</main>").unwrap()];
    assert_eq!(table.matches("aria-label=\"not known\"").count(), 4, "{table}");
    insta::assert_snapshot!("matrix_html", table.replace("<t", "\n<t").replace("</div>", "</div>\n"));
}

#[test]
fn tables_of_every_style_are_pages_with_as_many_cells_in_each_row() {
    let runs = two_tagged_runs();
    for style in [Style::AwrInfo, Style::Matrix, Style::Requests] {
        let page = tabulate(&runs, style, Format::Html);
        let columns = tabulate(&runs, style, Format::Csv).lines().next().unwrap().split(',').count();
        let body = page.split("<tbody>").nth(1).unwrap().split("</tbody>").next().unwrap();
        for row in body.split("<tr>").skip(1) {
            assert_eq!(row.matches("<td").count() + row.matches("<th scope=\"row\"").count(), columns, "{row}");
        }
    }
}

#[test]
fn tags_in_a_page_stay_text() {
    let mut runs = two_tagged_runs();
    runs[0].tags.insert("vm".to_owned(), "<script>alert(1)</script>\u{1b}".to_owned());
    runs[0].tags.insert("</style><img onerror=x>".to_owned(), "\" style=\"x".to_owned());
    let page = tabulate(&runs, Style::Matrix, Format::Html);
    assert_eq!(page.matches("<script>").count(), 1, "only the page's own script");
    assert!(page.contains("&lt;script&gt;alert(1)"), "{page}");
    assert!(!page.contains("<img") && !page.contains("<IMG") && !page.contains('\u{1b}'), "{page}");
    assert!(page.contains("&quot; style=&quot;x"), "{page}");
}

#[test]
fn tags_stand_in_the_order_in_which_platforms_are_compared() {
    let mut runs = two_tagged_runs();
    runs[0].tags.extend([("iops", "5K"), ("qty", "2"), ("adg", "no")].map(|(k, v)| (k.to_owned(), v.to_owned())));
    let table = tabulate(&runs, Style::Matrix, Format::Csv);
    assert!(
        table.starts_with("VM,DISK,IOPS,QTY,CACHE,ADG,SESSIONS,MAX_IOPS,RAC_IOPS,EXPECTED,IOPS_RESULT,"),
        "{table}"
    );
}

#[test]
fn what_a_platform_allows_stands_in_a_matrix_unless_tags_say_it() {
    let mut runs = two_tagged_runs();
    let first = |runs: &[Run]| tabulate(runs, Style::Matrix, Format::Csv).lines().next().unwrap().to_owned();
    assert!(first(&runs).contains("MAX_IOPS,RAC_IOPS,EXPECTED,IOPS_RESULT"));
    runs[0].tags.insert("rac_iops".to_owned(), "10K".to_owned());
    assert!(
        first(&runs).starts_with("VM,DISK,RAC_IOPS,CACHE,SESSIONS,MAX_IOPS,EXPECTED,IOPS_RESULT"),
        "{}",
        first(&runs)
    );
    runs.iter_mut().for_each(|run| drop(run.tags.insert("vm".to_owned(), "rack seven".to_owned())));
    assert!(!first(&runs).contains("EXPECTED"), "{}", first(&runs));
}

#[test]
fn comma_separated_files() {
    let run = golden("updates");
    for (name, write) in csv::FILES {
        let mut out = Vec::new();
        write(&mut out, &run).unwrap();
        let out = String::from_utf8(out).unwrap();
        let columns = out.lines().next().unwrap().split(',').count();
        assert!(out.lines().all(|line| line.split(',').count() == columns), "{name}: {out}");
        let head: String = out.lines().take(5).map(|line| format!("{line}\n")).collect();
        insta::assert_snapshot!(name, head);
    }
}

#[test]
fn no_line_of_a_report_is_wider_than_the_terminal() {
    for kind in ["sweep", "updates", "interrupted", "imported"] {
        for width in [80, 100, 132, 200] {
            for line in report(&golden(kind), Detail::Full, width).lines() {
                // Titles and words that cannot be broken are whole by choice.
                assert!(line.len() <= width.max(112), "{kind} at {width}: {line}");
            }
        }
    }
}

#[test]
fn reports_are_plain_ascii_without_trailing_blanks_when_the_run_is() {
    let text = report(&golden("updates"), Detail::Full, 120);
    assert!(text.is_ascii());
    assert!(text.lines().all(|line| line == line.trim_end()), "{text}");
}

#[test]
fn control_characters_of_tags_do_not_reach_the_terminal() {
    let mut run = sample::updates(30);
    run.tags.insert("vm".to_owned(), "\u{1b}[2J\nx|y".to_owned());
    run.steps[0].label = "\u{1b}[31m".to_owned();
    let shown = report(&run, Detail::Full, 120) + &tabulate(&[run.clone()], Style::Matrix, Format::Text);
    assert!(!shown.contains('\u{1b}'));
    let piped = tabulate(&[run], Style::Matrix, Format::Markdown);
    assert!(piped.contains("x\\|y"), "{piped}");
    assert_eq!(piped.lines().count(), 3);
}

#[test]
fn the_first_line_says_that_the_client_was_saturated() {
    let mut run = sample::sweep(60);
    run.steps[5].generator.as_mut().unwrap().busiest_share = 1.0;
    let report = report(&run, Detail::Brief, 200);
    assert!(
        report
            .lines()
            .next()
            .unwrap()
            .contains("not reliable (the load generator had no processor time left in s32_t1): "),
        "{report}"
    );
}

#[test]
fn a_run_of_nothing_is_reported_as_such() {
    let mut run = sample::updates(30);
    run.steps.clear();
    run.tags.clear();
    run.parameters.clear();
    run.target = Target::default();
    let report = report(&run, Detail::Full, 100);
    assert!(report.starts_with("RESULT    nothing was measured\n"), "{report}");
    assert_eq!(tabulate(&[run], Style::Matrix, Format::Csv).lines().count(), 1);
}

#[test]
fn one_second_in_one_line() {
    let run = golden("updates");
    let lines: Vec<_> = run.steps[0].intervals[1..4].iter().map(interval_line).collect();
    insta::assert_snapshot!("interval_lines", lines.join("\n"));
    assert!(lines.iter().skip(1).all(|line| line.find("LIO/s") == lines[0].find("LIO/s")));
    let empty = interval_line(&model::record::Interval::default());
    assert_eq!(empty, "    0 s  read p99       -", "what is not counted is left out");
}

#[test]
fn a_matrix_of_imported_runs_has_columns_that_tell_its_rows_apart() {
    let hour = |at| Hour { at, minutes: 60, reads_per_s: 100, writes_per_s: 10, within_ms: QUICK };
    let mut runs = [9, 10, 11].map(|at| windows::report(hour(at)));
    let head = |runs: &[Run]| -> Vec<String> {
        let table = tabulate(runs, Style::Matrix, Format::Csv);
        table.lines().map(|line| line.split(",").take(4).collect::<Vec<_>>().join(",")).collect()
    };
    for (run, work_unit) in runs.iter_mut().zip(["12", "16", "20"]) {
        run.tags.insert("disk".to_owned(), "p80".to_owned());
        run.parameters.extend([("SCALE", "1G"), ("WORK_UNIT", work_unit)].map(|(k, v)| (k.to_owned(), v.to_owned())));
    }
    assert_eq!(head(&runs)[0], "DISK,WORK_UNIT,IOPS_RESULT,DB_S_R_WAIT");
    assert!(head(&runs)[2].starts_with("p80,16,"), "{:?}", head(&runs));
    runs.iter_mut().for_each(|run| run.parameters.clear());
    assert_eq!(head(&runs)[0], "RUN,DISK,IOPS_RESULT,DB_S_R_WAIT");
    assert!(head(&runs)[1].starts_with("PROD snapshots 109 to 110,p80,"), "{:?}", head(&runs));
    // Readings of one file have one name, and may be steps of one run.
    runs.iter_mut().for_each(|run| {
        run.name = "spool".to_owned();
        run.tags.clear();
    });
    let mut second = runs[2].steps[0].clone();
    second.label = "second".to_owned();
    runs[2].steps.push(second);
    let labels: Vec<String> = head(&runs)[1..].iter().map(|line| line.split(',').next().unwrap().to_owned()).collect();
    let [first, second, third] = runs.each_ref().map(|run| run.id.clone());
    assert_eq!(labels, [first, second, format!("{third}/snapshots 111 to 112"), format!("{third}/second")]);
    // Repeats of a run of our own are rows that only the user can name.
    runs.iter_mut().for_each(|run| run.imported = None);
    assert!(head(&runs)[1].starts_with("spool,"), "{:?}", head(&runs));
}

/// A report of an hour with a table of tablespaces, and one of memory that has a unit a row.
fn with_tables() -> Run {
    let mut run = windows::report(Hour { at: 9, minutes: 60, reads_per_s: 100, writes_per_s: 10, within_ms: QUICK });
    let column = |name: &str, unit: &str| ReportedColumn { name: name.to_owned(), unit: unit.to_owned() };
    let row = |name: &str, unit: &str, values: &[Option<f64>]| ReportedRow {
        names: vec![name.to_owned()],
        unit: unit.to_owned(),
        values: values.to_vec(),
    };
    let tablespaces = ReportedTable {
        subject: "Tablespace I/O".to_owned(),
        source: "Tablespace IO Stats".to_owned(),
        node: Some("shop1".to_owned()),
        layer: "engine".to_owned(),
        covers: Covers::Window,
        keys: vec!["tablespace".to_owned()],
        columns: vec![column("reads/s", "/s"), column("read mean", "ms"), column("writes", ""), column("hit", "%")],
        rows: vec![
            row("ORDERS", "", &[Some(100.0), Some(2.5), Some(6_000.0), None]),
            row("a,b", "", &[Some(0.0), None, Some(1.0), None]),
        ],
        remarks: vec!["Left out: buffer waits.".to_owned()],
    };
    let memory = ReportedTable {
        subject: "Memory".to_owned(),
        source: "Memory Statistics".to_owned(),
        covers: Covers::Edges,
        keys: vec!["memory".to_owned()],
        columns: vec![column("begin", ""), column("end", "")],
        rows: vec![
            row("Host Mem", "B", &[Some(68_719_476_736.0), Some(68_719_476_736.0)]),
            row("% used", "%", &[Some(17.25), None]),
        ],
        remarks: Vec::new(),
        ..tablespaces.clone()
    };
    run.steps[0].tables = vec![tablespaces, memory];
    run
}

#[test]
fn tables_of_a_source_have_their_layer_their_window_and_their_units() {
    let mut run = with_tables();
    let full = report(&run, Detail::Full, 120);
    let at = full.find("\nTablespace I/O").unwrap();
    insta::assert_snapshot!(
        full[at..full.find("\nAs Oracle").or(full.find("\nAs awr")).unwrap_or(full.len())].trim_start()
    );
    let brief = report(&run, Detail::Brief, 120);
    assert!(
        brief.contains("`--full` also shows: Tablespace I/O, Memory.") || brief.contains("--full also shows"),
        "{brief}"
    );
    // The same of another instance stands in the same table.
    let mut other = run.steps[0].tables[0].clone();
    other.node = Some("shop2".to_owned());
    run.steps[0].tables.push(other);
    let full = report(&run, Detail::Full, 120);
    assert_eq!((full.matches("\nTablespace I/O (").count(), full.matches("shop2 ").count()), (1, 2), "{full}");
}

#[test]
fn shares_that_cannot_be_known_are_not_printed() {
    let mut run = golden("imported");
    let style = |run: &Run| tabulate(std::slice::from_ref(run), Style::AwrInfo, Format::Text);
    assert!(style(&run).contains("db file sequential read 100.0% of waiting"));
    let mut other = run.steps[0].waits[0].clone();
    other.event = "log file sync".to_owned();
    other.waits = model::record::Histogram::counted(27, None);
    run.steps[0].waits.push(other);
    assert!(style(&run).ends_with("|db file sequential read\n"), "the time of one event is not known: {}", style(&run));
    // Oracle's MB are not those of our own figures.
    let legend = "MB are 1,048,576 bytes.";
    assert!(!report(&run, Detail::Full, 200).contains(legend));
    run.steps[0].reported.push(model::record::ReportedFigure::new("engine", "Total (MB): Reads/s", "MB/s", 7.5));
    assert!(report(&run, Detail::Full, 200).contains(legend));
}

#[test]
fn processor_time_beyond_db_time_has_no_share() {
    let mut run = golden("imported");
    let mut instance = model::record::ServerStats { node: "db1".to_owned(), ..Default::default() };
    let top = |run: &Run| tabulate(std::slice::from_ref(run), Style::AwrInfo, Format::Text);
    for (processors_s, shown) in [(900, true), (1_200, false)] {
        instance.own =
            [("DB time_ns".to_owned(), 1_000_000_000_000), ("DB CPU_ns".to_owned(), processors_s * 1_000_000_000)]
                .into();
        run.steps[0].instances = vec![instance.clone()];
        run.steps[0]
            .waits
            .iter_mut()
            .for_each(|wait| wait.waits = model::record::Histogram::counted(60, Some(1_000_000_000)));
        assert_eq!(top(&run).contains("|DB CPU 90.0%,"), shown, "{}", top(&run));
    }
}

#[test]
fn figures_of_a_source_are_rows_of_a_file() {
    let mut out = Vec::new();
    csv::figures(&mut out, &with_tables()).unwrap();
    let out = String::from_utf8(out).unwrap();
    let lines: Vec<&str> = out.lines().filter(|line| line.contains("Tablespace") || line.contains("Memory")).collect();
    assert!(lines[0].ends_with(",,Tablespace I/O,shop1,ORDERS,reads/s,engine,/s,100,,,"), "{out}");
    assert!(lines.iter().any(|line| line.ends_with(",Tablespace I/O,shop1,\"a,b\",writes,engine,,1,,,")), "{out}");
    assert!(lines.iter().any(|line| line.ends_with(",Memory,shop1,% used,begin,engine,%,17.25,,,")), "{out}");
    assert!(out.lines().nth(1).unwrap().ends_with(",,,,,DB Time,engine,min,12,db_time_s,,720"), "{out}");
}

#[test]
fn a_matrix_names_the_events_of_cells() {
    let hour = |at| Hour { at, minutes: 60, reads_per_s: 100, writes_per_s: 10, within_ms: QUICK };
    let mut runs = [9, 10].map(|at| windows::report(hour(at)));
    let reads = runs[1].steps[0].waits[0].clone();
    let named = |event: &str| WaitStats { event: event.to_owned(), ..reads.clone() };
    let mut fewer = named("cell single block physical read");
    fewer.waits =
        Histogram::reported([ReportedBucket { from_ns: 0, to_ns: Some(1_024_000), count: 5 }], None, None, None);
    let other = named("cell single block physical readahead");
    runs[1].steps[0].waits = vec![fewer, named("cell single block physical read: flash cache"), other];
    let table = tabulate(&runs, Style::Matrix, Format::Csv);
    let cells: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').take(4).collect()).collect();
    assert_eq!(cells[0], ["RUN", "IOPS_RESULT", "READ_EVENT", "READ_WAITS"], "{table}");
    assert_eq!((cells.len(), cells[1][2]), (4, "db file sequential read"), "{table}");
    assert_eq!(cells[2][2..], ["cell single block physical read: flash cache", "360000"], "{table}");
    assert_eq!(cells[3][2..], ["cell single block physical read", "5"], "the fewer come later: {table}");
}

#[test]
fn where_reads_and_writes_have_percentiles_of_their_own_a_table_has_both() {
    let mixed = sample::requests::mixed();
    let text = |runs: &[Run]| {
        let mut out = Vec::new();
        table(&mut out, runs, Style::Requests, Format::Csv).unwrap();
        String::from_utf8(out).unwrap()
    };
    let csv = text(std::slice::from_ref(&mixed));
    let mut rows = csv.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let (header, first) = (rows.next().unwrap(), rows.next().unwrap());
    for (name, kind) in [("READ_P99_US", "read"), ("WRITE_P99_US", "write")] {
        let at = header.iter().position(|column| column == name).unwrap();
        let operation = mixed.steps[0].operations.iter().find(|operation| operation.kind == kind).unwrap();
        let us = operation.response.quantile_ns(0.99).unwrap() as f64 / 1e3;
        assert_eq!(first[at], us.to_string());
    }
    assert!(!text(&[sample::requests::sweep()]).contains("READ_P99_US"));
}
