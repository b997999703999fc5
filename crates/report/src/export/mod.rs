//! Runs as tidy tables for the engines that people query with: one row for one thing, columns with units in their names, and the
//! same columns in every file of a table.
//!
//! What a column is stands once, beside what fills it: the files, `docs/reference/tables.md` and the reader of a file all have it from there.
//! What is not known is `NULL` in Parquet and empty in CSV.

pub(crate) mod details;
pub(crate) mod durations;
mod existing;
mod runs;
pub(crate) mod seconds;
pub(crate) mod stalls;
pub(crate) mod steps;
pub(crate) mod table;

use std::io::{self, Write};

use crate::comma::{line, quoted};

pub use existing::{Known, is_ours, known};
pub use table::{Cell, Column, Exported, Form, Kind, Sink, Table};

/// All tables. `runs` comes last, since a file of it says that the others of its number are complete.
pub const TABLES: [Table; 9] = [
    steps::STEPS,
    seconds::INTERVALS,
    details::WAITS,
    details::BUCKETS,
    details::COUNTERS,
    stalls::EPISODES,
    runs::FINDINGS,
    runs::PARTS,
    runs::RUNS,
];

/// Begins a file of `table` on `out`.
///
/// # Errors
/// If `out` fails.
pub fn begin<W: Write + Send + 'static>(table: &Table, form: Form, out: W) -> io::Result<Box<dyn Sink>> {
    Ok(match form {
        Form::Parquet => Box::new(existing::ParquetFile::begin(table, out)?),
        Form::Csv => Box::new(File::begin(table, out)?),
    })
}

// Tables as comma-separated values.

struct File<W>(W);

impl<W: Write> File<W> {
    fn begin(table: &Table, mut out: W) -> io::Result<Self> {
        line(&mut out, table.columns().iter().map(|column| column.name))?;
        Ok(Self(out))
    }
}

impl<W: Write> Sink for File<W> {
    fn row(&mut self, cells: &[Cell]) -> io::Result<()> {
        line(&mut self.0, cells.iter().map(written))
    }

    fn end_of_run(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.0.flush()
    }
}

/// As a cell of comma-separated values.
pub(crate) fn written(cell: &Cell) -> String {
    match cell {
        Cell::Unknown => String::new(),
        Cell::Text(text) => quoted(text),
        Cell::Count(count) => count.to_string(),
        Cell::Number(number) => number.to_string(),
        Cell::Flag(flag) => flag.to_string(),
        // What programs take for a time unasked.
        Cell::Time(us) => jiff::Timestamp::from_microsecond(*us)
            .map_or_else(|_| String::new(), |at| at.strftime("%Y-%m-%d %H:%M:%S%.6f").to_string()),
    }
}

#[cfg(test)]
mod tests {
    //! Files are read back and held against the runs that they were made of.

    use std::fs::File;
    use std::path::Path;

    use parquet::file::reader::FileReader;
    use parquet::file::serialized_reader::SerializedFileReader;
    use parquet::record;

    use super::{Cell, Exported, Form, Kind, TABLES, Table, begin, existing};
    use analysis::analyse_asked;
    use model::record::{ClockOffset, FleetPart, Run, Step, sample};

    const HEAD: &str = "\
# Tables of an export

`plimsoll export` writes runs as tidy tables for query engines: DuckDB, Polars, Spark, pandas, or a spreadsheet. `UPDATE_DOCS=1 cargo test
docs_export` makes this page from the tables themselves.

```sh
plimsoll export -o tables
duckdb -init examples/queries/tables.sql
```

- Each table is a file: `runs-0001.parquet`, `steps-0001.parquet` and so on. `--append` writes the next number with the runs that the files lack;
  read `steps-*.parquet` to get all. A run that changed since stays as it was: export into another directory then.
- Files get their names when all are complete, `runs` last. A run that cannot be read is named and left out, and the exit code is 1.
- Unknown values are `NULL` (CSV: empty), never 0. Durations are nanoseconds, sizes bytes, megabytes 10^6 bytes. Times are UTC, or the wall clock
  of an imported report (`runs.clock`).
- Percentiles do not add up: to merge windows, add `buckets`. `run` joins all tables, `run` and `step` those of steps.
- Parquet uses Zstandard; the meaning and unit of each column are metadata `column.NAME`. In CSV (`--format csv`) a text that a spreadsheet would
  read as a formula begins with `'`.
- Tables of an imported report without a field in the run are not exported; `plimsoll report ID --csv DIR` has them.
";

    fn table(name: &str) -> Table {
        TABLES.into_iter().find(|table| table.name == name).unwrap()
    }

    /// Runs of several kinds: of the engine with seconds, of requests, of several servers, and a part of a fleet.
    fn runs() -> Vec<Run> {
        let mut part = sample::sweep(10);
        part.part = Some(FleetPart {
            number: 3,
            parts: 16,
            source: "--part".to_owned(),
            configuration: "c0ffee".to_owned(),
            start_at_ns: Some(1_790_000_000_000_000_000),
            start_error_ns: Some(-120_000),
            clock: Some(ClockOffset { before_ns: -4_000, after_ns: None, bound_ns: 9_000 }),
        });
        part.notes = vec!["a \"quoted\", note".to_owned(), "of two lines".to_owned()];
        vec![
            sample::sweep(20),
            part,
            sample::servers::two_nodes(),
            sample::requests::mixed(),
            sample::imported(),
            sample::stalls::stalled(),
        ]
    }

    fn cells(table: &Table, run: &Run) -> Vec<Vec<Cell>> {
        let findings = analyse_asked(run, None);
        let exported = Exported { key: &run.id, directory: "/runs", run, findings: &findings };
        let mut rows = Vec::new();
        let mut keep = |cells: &[Cell]| {
            rows.push(cells.to_vec());
            Ok(())
        };
        table.rows(&exported, &mut keep).unwrap();
        rows
    }

    fn write(path: &Path, table: &Table, form: Form, runs: &[Run]) {
        let mut sink = begin(table, form, File::create(path).unwrap()).unwrap();
        for run in runs {
            cells(table, run).iter().for_each(|row| sink.row(row).unwrap());
            sink.end_of_run().unwrap();
        }
        sink.finish().unwrap();
    }

    fn read(path: &Path) -> Vec<Vec<Cell>> {
        let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        let cell = |field: &record::Field| match field {
            record::Field::Null => Cell::Unknown,
            record::Field::Str(text) => Cell::Text(text.clone()),
            record::Field::Long(count) => Cell::Count(*count),
            record::Field::Double(number) => Cell::Number(*number),
            record::Field::Bool(flag) => Cell::Flag(*flag),
            record::Field::TimestampMicros(us) => Cell::Time(*us),
            other => panic!("{other:?}"),
        };
        let rows = reader.get_row_iter(None).unwrap();
        rows.map(|row| row.unwrap().get_column_iter().map(|(_, field)| cell(field)).collect()).collect()
    }

    #[test]
    fn every_table_is_read_back_from_parquet_as_it_was_written() {
        let (directory, runs) = (tempfile::tempdir().unwrap(), runs());
        for table in &TABLES {
            let path = directory.path().join(table.name);
            write(&path, table, Form::Parquet, &runs);
            let expected: Vec<Vec<Cell>> = runs.iter().flat_map(|run| cells(table, run)).collect();
            assert!(!expected.is_empty(), "{}", table.name);
            assert_eq!(read(&path), expected, "{}", table.name);
            assert!(existing::is_ours(&path, table, Form::Parquet), "{}", table.name);
        }
    }

    #[test]
    fn a_cell_is_of_the_kind_of_its_column_and_each_column_has_a_name_of_its_own() {
        for table in &TABLES {
            let columns = table.columns();
            let mut names: Vec<&str> = columns.iter().map(|column| column.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), columns.len(), "{}", table.name);
            for row in runs().iter().flat_map(|run| cells(table, run)) {
                assert_eq!(row.len(), columns.len(), "{}", table.name);
                for (column, cell) in columns.iter().zip(&row) {
                    let is_of_kind = match cell {
                        Cell::Unknown => true,
                        Cell::Text(_) => column.kind == Kind::Text,
                        Cell::Count(_) => column.kind == Kind::Count,
                        Cell::Number(number) => column.kind == Kind::Number && number.is_finite(),
                        Cell::Flag(_) => column.kind == Kind::Flag,
                        Cell::Time(_) => column.kind == Kind::Time,
                    };
                    assert!(is_of_kind, "{}.{}: {cell:?}", table.name, column.name);
                }
            }
        }
    }

    /// The values of a column, by name.
    fn column(table: &Table, rows: &[Vec<Cell>], name: &str) -> Vec<Cell> {
        let at = table.columns().iter().position(|column| column.name == name).unwrap();
        rows.iter().map(|row| row[at].clone()).collect()
    }

    fn of_steps(run: &Run, value: impl Fn(&Step) -> Option<u64>) -> Vec<Cell> {
        let cell = |value: Option<u64>| value.map_or(Cell::Unknown, |value| Cell::Count(value as i64));
        run.steps.iter().map(|step| cell(value(step))).collect()
    }

    #[test]
    fn steps_have_the_figures_of_the_record_and_what_it_does_not_know_is_unknown() {
        let table = table("steps");
        for run in runs() {
            let rows = cells(&table, &run);
            let is = |name: &str, value: &dyn Fn(&Step) -> Option<u64>| {
                assert_eq!(column(&table, &rows, name), of_steps(&run, value), "{} {name}", run.workload());
            };
            is("step", &|step| Some(u64::from(step.index)));
            is("sessions", &|step| step.load.sessions.map(u64::from));
            is("window_ns", &|step| Some(step.window.duration_ns));
            is("operations", &|step| step.counters.operations);
            is("errors", &|step| step.counters.errors);
            is("peak_memory_bytes", &|step| step.peak_memory_bytes);
            is("response_count", &|step| {
                (!step.operations.is_empty()).then(|| step.operations.iter().map(|kind| kind.response.count()).sum())
            });
            is("process_user_ns", &|step| step.process_cpu.as_ref().map(|cpu| cpu.user_ns));
        }
    }

    #[test]
    fn buckets_and_counters_add_up_to_what_the_record_counted() {
        let (buckets, counters, waits, intervals) =
            (table("buckets"), table("counters"), table("waits"), table("intervals"));
        let sum = |cells: &[Cell]| -> i64 {
            cells.iter().map(|cell| if let Cell::Count(count) = cell { *count } else { 0 }).sum()
        };
        for run in runs() {
            let events = run.steps.iter().flat_map(|step| {
                let instances = step.instances_with_waits().flat_map(|it| &it.waits);
                step.waits.iter().chain(instances).map(|wait| wait.waits.count())
            });
            let events: Vec<u64> = events.collect();
            let operations = run.steps.iter().flat_map(|step| &step.operations);
            let timed = operations.map(|kind| kind.response.count() + kind.service.count());
            let expected: u64 = events.iter().copied().chain(timed).sum();
            assert_eq!(sum(&column(&buckets, &cells(&buckets, &run), "count")), expected as i64, "{}", run.workload());
            assert_eq!(cells(&waits, &run).len(), events.len());
            assert_eq!(cells(&intervals, &run).len(), run.steps.iter().map(|step| step.intervals.len()).sum::<usize>());

            let rows = cells(&counters, &run);
            let names = column(&counters, &rows, "name");
            let reads = run.steps.iter().filter_map(|step| step.counters.physical_reads);
            let engine = rows.iter().zip(names).filter(|(row, name)| {
                row[2] == Cell::Text("engine".to_owned()) && *name == Cell::Text("physical_reads".to_owned())
            });
            let found: Vec<Cell> = engine.map(|(row, _)| row[6].clone()).collect();
            assert_eq!(found, reads.map(|reads| Cell::Number(reads as f64)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_long_run_has_row_groups_of_its_own_and_short_ones_share_theirs() {
        let (directory, table) = (tempfile::tempdir().unwrap(), table("steps"));
        let path = directory.path().join("steps");
        let mut sink = begin(&table, Form::Parquet, File::create(&path).unwrap()).unwrap();
        let row = cells(&table, &sample::sweep(10)).remove(0);
        for rows in [40_000, 20, 20, 140_000] {
            (0..rows).for_each(|_| sink.row(&row).unwrap());
            sink.end_of_run().unwrap();
        }
        sink.finish().unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let groups: Vec<i64> = reader.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
        assert_eq!(groups, [40_000, 131_072, 140_040 - 131_072]);
    }

    #[test]
    fn runs_that_a_file_has_are_found_in_either_form_and_files_of_others_are_told() {
        let (directory, runs) = (tempfile::tempdir().unwrap(), runs());
        let table = table("runs");
        for form in [Form::Parquet, Form::Csv] {
            let path = directory.path().join(form.ending());
            write(&path, &table, form, &runs);
            let known = existing::known(&path, form).unwrap();
            let found: Vec<_> = known.iter().map(|it| (it.key.clone(), it.started_us, it.host.clone())).collect();
            let expected: Vec<_> = runs
                .iter()
                .map(|run| (run.id.clone(), Some(run.started_at.0.as_microsecond()), run.environment.hostname.clone()))
                .collect();
            assert_eq!(found, expected);
            assert!(existing::is_ours(&path, &table, form));
            assert!(!existing::is_ours(&path, &self::table("waits"), form));
            std::fs::write(&path, "somebody's own").unwrap();
            assert!(!existing::is_ours(&path, &table, form) && existing::known(&path, form).is_err());
        }
    }

    /// The page `docs/reference/tables.md`, made from the tables themselves.
    fn render() -> String {
        let mut page = HEAD.to_owned();
        for table in TABLES.iter().rev() {
            page.push_str(&format!("\n## `{}`\n\nA row is {}.\n\n", table.name, table.words));
            page.push_str("| column | type | unit | what it is |\n| --- | --- | --- | --- |\n");
            for column in table.columns() {
                let kind = match column.kind {
                    Kind::Text => "text",
                    Kind::Count => "integer",
                    Kind::Number => "double",
                    Kind::Flag => "boolean",
                    Kind::Time => "timestamp",
                };
                page.push_str(&format!("| `{}` | {kind} | {} | {} |\n", column.name, column.unit, column.words));
            }
        }
        page
    }

    #[test]
    fn docs_export_has_the_columns_that_are_written() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/tables.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, render()).unwrap();
        }
        let documented = std::fs::read_to_string(path).unwrap_or_default();
        assert!(documented == render(), "docs/reference/tables.md is stale: UPDATE_DOCS=1 cargo test docs_export");
    }
}
