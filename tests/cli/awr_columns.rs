//! The columns of SLOB's `awr_info`, as its script prints them of the same reports.

use plimsoll::import::{read_file, runs};
use plimsoll::report::{Format, Style, table};

use crate::import::corpus;

/// A report, and what the script prints of it, by column.
type Printed = (&'static str, &'static [(&'static str, f64)], &'static str);

const PRINTED: [Printed; 3] = [
    (
        "flashgrid/asm-p30x2/cache-on/awr_p30x2_d8s_s40_t1_wu4/awr.txt",
        &[
            ("ELAPSED", 604.0),
            ("DB CPU", 1.5),
            ("DB Tm", 17.9),
            ("EXECUTES", 1_349.0),
            ("LIO", 9_405.0),
            ("PREADS", 3_888.0),
            ("READ_MBS", 31.6),
            ("PWRITES", 537.0),
            ("WRITE_MBS", 5.0),
            ("REDO_MBS", 0.5),
            ("DFSR_LAT", 4_025.0),
            ("DFPW_LAT", 2_836.0),
            ("LFPW_LAT", 5_563.0),
        ],
        "db file sequential read 87.2% of DB time",
    ),
    (
        "flashgrid/asm-p80x2/awr_p80x2_e32s_s128_t1_wu12/awr.txt",
        &[
            ("DB CPU", 4.4),
            ("DB Tm", 59.6),
            ("PREADS", 14_257.0),
            ("READ_MBS", 113.7),
            ("PWRITES", 2_126.0),
            ("WRITE_MBS", 19.3),
            ("DFSR_LAT", 7_198.0),
            ("DFPR_LAT", 9_950.0),
            ("DFPW_LAT", 3_923.0),
            ("LFPW_LAT", 9_888.0),
        ],
        "db file sequential read 54.3% of DB time",
    ),
    ("awr/awr_11204_rac_inst1.txt", &[("ELAPSED", 3_613.0), ("LIO", 5.0)], "DB CPU 5"),
];

#[test]
fn the_columns_of_slobs_script_have_its_values() {
    let Some(folder) = corpus() else { return };
    for (file, columns, top) in PRINTED {
        let all = runs(vec![read_file(&folder.join(file)).unwrap_or_else(|error| panic!("{error}"))]);
        let mut out = Vec::new();
        table(&mut out, &all, Style::AwrInfo, Format::Json).unwrap();
        let rows: serde_json::Value = serde_json::from_slice(&out).unwrap();
        for (column, printed) in columns {
            let found = rows[0][column].as_f64().unwrap_or_else(|| panic!("{file}: {column} {rows}"));
            // The script cuts digits off, and divides times that are rounded to seconds, by half a percent at most here.
            let off = if printed.fract() == 0.0 { 1.0 } else { 0.1 };
            let rounded = if column.ends_with("_LAT") { printed * 0.01 } else { 0.0 };
            assert!((found - printed).abs() <= off + rounded, "{file}: {column} is {found}, not {printed}");
        }
        let found = rows[0]["TOP WAIT"].as_str().unwrap();
        assert!(found.starts_with(top), "{file}: {found}");
    }
}
