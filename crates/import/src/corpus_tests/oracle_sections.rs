//! Sections of Oracle's reports that become tables, with the figures that stand in the files.

use super::read;
use crate::Draft;
use model::record::ReportedTable;

const AWR: &str = "flashgrid/asm-p60x2/awr_p60x2_e32s_s80_t1_wu4";

fn only(kind: &str, file: &str) -> Option<Draft> {
    let mut drafts = read(kind, file)?;
    assert_eq!((drafts.len(), drafts[0].steps.len()), (1, 1), "{file}");
    drafts.pop()
}

fn subject<'a>(draft: &'a Draft, name: &str) -> &'a ReportedTable {
    let found: Vec<&ReportedTable> = draft.steps[0].tables.iter().filter(|table| table.subject == name).collect();
    assert_eq!(found.len(), 1, "{name}");
    found[0]
}

/// A figure to nine digits, with its unit.
fn value(draft: &Draft, name: &str, row: &[&str], column: &str) -> (f64, String) {
    let table = subject(draft, name);
    let row = table.rows.iter().find(|found| found.names == row).unwrap_or_else(|| panic!("{row:?} of {table:?}"));
    let at = table.columns.iter().position(|found| found.name == column);
    let at = at.unwrap_or_else(|| panic!("{column} of {:?}", table.columns));
    let value = row.values[at].unwrap_or_else(|| panic!("{column} of {row:?}"));
    let value = if value < 1e6 { (value * 1e9).round() / 1e9 } else { value };
    (value, table.unit(row, at).to_owned())
}

fn of(value: f64, unit: &str) -> (f64, String) {
    (value, unit.to_owned())
}

#[test]
fn an_instance_of_a_cluster_tells_the_same_as_text_and_as_a_page() {
    for (kind, file) in [("awr-text", "awr.txt"), ("awr-html", "awr.html.gz")] {
        let Some(draft) = only(kind, &format!("{AWR}/{file}")) else { return };
        let value = |name: &str, row: &[&str], column: &str| value(&draft, name, row, column);
        assert_eq!(value("Instance efficiency", &["Buffer Hit %"], "value"), of(53.85, "%"), "{file}");
        assert_eq!(value("Instance efficiency", &["Library Hit %"], "value"), of(100.05, "%"));
        assert_eq!(subject(&draft, "Instance efficiency").rows.len(), 11, "{file}");
        assert_eq!(value("Wait classes", &["User I/O"], "waits"), of(5_481_057.0, ""));
        assert_eq!(value("Wait classes", &["User I/O"], "mean"), of(3.48, "ms"));
        assert_eq!(value("Wait classes", &["DB CPU"], "active sessions"), of(3.3, ""));
        assert_eq!(value("Foreground wait classes", &["Cluster"], "total"), of(2_621.0, "s"));
        assert_eq!(value("Memory", &["Host Mem"], "begin"), of((257_947.8_f64 * 1_048_576.0).round(), "B"));
        assert_eq!(value("Memory", &["PGA use"], "end"), of((1_513.9_f64 * 1_048_576.0).round(), "B"));
        assert_eq!(value("Caches", &["Shared Pool Size"], "end"), of(1_066.0 * 1_048_576.0, "B"));
        assert_eq!(value("SGA", &["Database Buffers"], "end"), of(8_388_608_000.0, "B"), "{file}");
        assert_eq!(value("Memory components", &["SGA Target"], "begin"), of(9_664.0 * 1_048_576.0, "B"));
        assert_eq!(value("Global cache load", &["Estd Interconnect traffic"], "value"), of(5_822.8, "KB/s"));
        assert_eq!(value("Global cache efficiency", &["Buffer access - disk %"], "value"), of(46.15, "%"));
        let times = "Global cache and enqueue times";
        assert_eq!(value(times, &["Avg global cache current block flush time"], "value"), of(6.315_8, "ms"));
        assert_eq!(value(times, &["Avg LMS process busy %"], "value"), of(24.7, "%"));
        assert_eq!(value("Interconnect ping", &["2"], "500 B mean"), of(0.811, "ms"), "{file}");
        assert_eq!(value("Interconnect ping", &["2"], "8 KB mean"), of(0.945, "ms"));
        assert_eq!(subject(&draft, "Interconnect ping").columns.len(), 4, "deviations have no certain unit");
        assert_eq!(value("Interconnect by client", &["DB Locks"], "received"), of(3.66, "MB/s"));
        assert_eq!(value("Interconnect devices", &["fg-priv:1", "169.254.22.248"], "frame errors"), of(0.0, ""));
        let transfers = value("Global cache transfer times", &["2", "others"], "CR Avg Time: Busy");
        assert_eq!(transfers, of(8.512, "ms"));
    }
}

#[test]
fn a_cluster_has_its_instances_in_rows() {
    for (kind, file) in [("awr-text", "awr_rac.txt"), ("awr-html", "awr_rac.html.gz")] {
        let Some(draft) = only(kind, &format!("{AWR}/{file}")) else { return };
        let value = |name: &str, row: &[&str], column: &str| value(&draft, name, row, column);
        assert_eq!(value("Interconnect ping", &["1", "2"], "500 B mean"), of(0.811, "ms"), "{file}");
        assert_eq!(value("Interconnect ping", &["2", "1"], "8 KB mean"), of(1.077, "ms"));
        assert_eq!(value("Global cache efficiency", &["2"], "Buffer Access: Local %"), of(76.26, "%"));
        assert_eq!(value("Global cache and enqueue times", &["1"], "GE Get Time"), of(0.206, "ms"));
        assert_eq!(value("Caches", &["2", "DB Cache"], "end"), of(7_872.0 * 1_048_576.0, "B"));
        // The page has a digit more than the text.
        let memory = value("Host memory", &["1", "Host Mem"], "end");
        assert!((memory.0 / 1_048_576.0 - 257_947.8).abs() < 0.05, "{file}: {memory:?}");
        let user_io = value("Foreground wait classes", &["User I/O"], "all instances");
        assert!((user_io.0 - 38_263.6).abs() < 0.01, "{user_io:?}");
        let devices = value("Interconnect devices", &["1", "fg-priv", "192.168.2.1"], "sent packets");
        assert_eq!(devices, of(9_769_560.0, ""), "{file}");
        assert!((value("Interconnect by client", &["2", "DLM"], "sent").0 - 3.66).abs() < 0.05, "{file}");
    }
}

#[test]
fn release_11_prints_tablespaces_below_other_headings() {
    for (kind, file, mean) in
        [("awr-text", "awr_11204_rac_inst1.txt", 3.6), ("awr-html", "awr_11204_rac_inst1.html", 3.59)]
    {
        let Some(draft) = only(kind, &format!("awr/{file}")) else { return };
        let spaces = subject(&draft, "Tablespace I/O");
        assert!(spaces.columns.iter().all(|column| column.name != "writes" && !column.name.starts_with('1')), "{file}");
        assert!(spaces.remarks[0].contains("1-block reads/s, 1-block read mean, writes"), "{spaces:?}");
        let row = &["SYSAUX", "+DATA/orcl/datafile/sysaux.257.852362089"][..];
        assert_eq!(value(&draft, "File I/O", row, "writes"), of(348.0, ""));
        assert_eq!(value(&draft, "File I/O", row, "1-block read mean"), of(mean, "ms"));
        assert_eq!(value(&draft, "Interconnect ping", &["2"], "8 KB deviation"), of(1.63, "ms"));
        assert_eq!(value(&draft, "Interconnect ping", &["1"], "500 B mean"), of(1.69, "ms"));
    }
}

#[test]
fn containers_have_tablespaces_of_one_name() {
    let Some(draft) = only("awr-html", "awr/oci_free_23ai_sprint15.html") else { return };
    let value = |row: &[&str], column: &str| value(&draft, "Tablespace I/O", row, column);
    assert_eq!(value(&["USERS", "FREEPDB1"], "reads"), of(358_446.0, ""));
    assert_eq!(value(&["USERS", "FREEPDB1"], "write mean"), of(0.52, "ms"));
    assert_eq!(value(&["UNDOTBS1", "CDB$ROOT"], "writes"), of(1_162.0, ""));
    assert_eq!(value(&["UNDOTBS1", ""], "blocks per read"), of(125.5, ""));
    assert!(subject(&draft, "Tablespace I/O").remarks.is_empty());
    assert!(draft.steps[0].tables.iter().all(|table| !table.subject.contains("Exadata")), "it has no cells");
}

#[test]
fn a_day_of_statspack_has_an_interval_an_hour() {
    let Some(draft) = only("statspack", "statspack/igt_11204_24h_interval.txt") else { return };
    let intervals = &draft.steps[0].intervals;
    assert_eq!(intervals.len(), 24);
    assert_eq!((intervals[0].offset_ns, intervals[0].duration_ns), (0, 3_601_000_000_000));
    assert_eq!((intervals[7].reported["%Busy"], intervals[7].reported["%User"]), (2.1, 1.6));
    let last = &intervals[23];
    assert_eq!(
        (last.offset_ns, last.reported["%System"]),
        (82_798_000_000_000, 0.5),
        "from 23:00:01 on the first of February"
    );
    assert_eq!(value(&draft, "Instance efficiency", &["Optimal W/A Exec %"], "value"), of(100.0, "%"));
    assert_eq!(value(&draft, "Tablespace I/O", &["IGT_TABLE"], "reads"), of(183_162.0, ""));
    assert_eq!(
        value(&draft, "File I/O", &["UNDOTBS", "/oracle_db/db1/db_igt/ora_undotbs_01.dbf"], "read mean"),
        of(1.4, "ms")
    );
    assert_eq!(value(&draft, "SGA", &["sum"], "end"), of(1_068_937_216.0, "B"));
    assert_eq!(value(&draft, "Memory components", &["SGA Target"], "end"), of(668.0 * 1_048_576.0, "B"));
    assert_eq!(value(&draft, "Memory", &["PGA use"], "end"), of((435.7_f64 * 1_048_576.0).round(), "B"));
}
