//! HammerDB: logs of its command line and of its windows, time profiles, and the log of its transaction counter.

pub(super) mod job_report;
pub(super) mod log;
mod profile;
mod test;

use serde_json::{Map, Value};

use crate::console::plain;
use crate::draft::{reported_figure, whole};
use crate::numbers::{duration_ns, number};
use crate::osstat::without_jumps;
use crate::percentiles::ms;
use crate::{Began, Draft, ImportError, Notes, Source, draft, interval, unix_date};
use model::record::{ReportedFigure, TargetKind, Workload};
use profile::Extended;

fn target_kind(database: &str) -> TargetKind {
    match database.to_ascii_lowercase().as_str() {
        "postgresql" => TargetKind::Postgres,
        other => other.into(),
    }
}

/// Names in JSON and in the report, and the unit that the former imply.
const NAMES: [(&str, &str, &str); 12] = [
    ("calls", "CALLS", ""),
    ("min_ms", "MIN", "ms"),
    ("avg_ms", "AVG", "ms"),
    ("max_ms", "MAX", "ms"),
    ("total_ms", "TOTAL", "ms"),
    ("p99_ms", "P99", "ms"),
    ("p95_ms", "P95", "ms"),
    ("p75_ms", "P75", "ms"),
    ("p50_ms", "P50", "ms"),
    ("p25_ms", "P25", "ms"),
    ("sd", "SD", ""),
    ("ratio_pct", "RATIO", "%"),
];

/// Whether it begins as JSON and has the names that only these profiles have.
pub(crate) fn recognises_timing(head: &str) -> bool {
    head.trim_start().starts_with('{')
        && ["\"elapsed_ms\"", "\"calls\"", "\"p99_ms\"", "\"ratio_pct\""].iter().all(|name| head.contains(name))
}

/// The run in it.
pub(crate) fn read_timing(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let value: Value = source.json(notes)?;
    let procedures = value.as_object().into_iter().flatten();
    let mut draft = Draft::new(Workload::Transactions, "HammerDB", "time profile");
    draft.notes.push("Calls of the ramp-up are among those of the time profile.".to_owned());
    let mut step = draft::step(0, "all", 0);
    for (name, figures) in procedures {
        let Some(figures) = figures.as_object().filter(|figures| figures.contains_key("calls")) else {
            notes.not_understood(None, format!("{name} has no calls"));
            continue;
        };
        let procedure = procedure(name, figures);
        let elapsed_ns = text(figures, "elapsed_ms").as_deref().and_then(number).and_then(ms);
        step.window.duration_ns = step.window.duration_ns.max(elapsed_ns.unwrap_or(0));
        if let Some(response) = procedure.histogram() {
            step.reported.extend(procedure.figures());
            step.operations.push(draft::operations(name, response.clone(), response));
        }
    }
    if step.operations.is_empty() {
        return Err(ImportError::damaged(source, None, "the time profile has no procedures"));
    }
    draft.steps.push(step);
    Ok(vec![draft])
}

/// A procedure by its figures in JSON.
fn procedure(name: &str, figures: &Map<String, Value>) -> Extended {
    let mut procedure = Extended::of(name);
    for (known, in_report, unit) in NAMES {
        if let Some(value) = text(figures, known) {
            procedure.set(in_report, format!("{value}{unit}"));
        }
    }
    procedure
}

/// Numbers stand there as text, in some versions.
fn text(figures: &Map<String, Value>, name: &str) -> Option<String> {
    match figures.get(name)? {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

const HEADER: &str = "Hammerdb Transaction Counter Log";

/// Whether it begins with the heading of such a log, or with its lines.
pub(crate) fn recognises_counter(head: &str) -> bool {
    let is_row = |line: &str| row(plain(line)).is_some_and(|row| row.at.is_some());
    let is_one = |line: &str| line.trim_start().starts_with(HEADER) || is_row(line);
    head.lines().find(|line| !line.trim().is_empty()).is_some_and(is_one)
}

/// What is counted, for how many seconds, and what that counts.
const RATES: [(&str, u64, &str); 2] = [
    ("TPM", 60, "TPM counts commits and rollbacks of the whole database, a minute."),
    ("QPH", 3_600, "QPH counts queries of the whole database, an hour."),
];

/// One line.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    rate: f64,
    /// Where in [`RATES`] it stands.
    of: usize,
    database: String,
    at: Option<Began>,
}

/// `324540 PostgreSQL tpm @ Thu Jun 30 22:43:41 UTC 2022`: the rate, the database, and when, unless timestamps were switched off.
fn row(line: &str) -> Option<Row> {
    let (left, time) = match line.split_once(" @ ") {
        Some((left, time)) => (left, Some(unix_date::parse(time)?)),
        None => (line, None),
    };
    let (left, unit) = left.trim().rsplit_once(' ')?;
    let of = RATES.iter().position(|(name, ..)| name.eq_ignore_ascii_case(unit))?;
    let (rate, database) = left.split_once(' ')?;
    Some(Row { rate: number(rate)?, of, database: database.trim().to_owned(), at: time })
}

/// The runs in it, one for each heading.
pub(crate) fn read_counter(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut runs: Vec<Vec<Row>> = vec![Vec::new()];
    for (number, line) in source.lines() {
        let line = plain(line);
        if line.trim_start().starts_with(HEADER) {
            runs.push(Vec::new());
        } else if let Some(row) = row(line) {
            if let Some(run) = runs.last_mut() {
                run.push(row);
            }
        } else if line.contains(|char: char| char.is_ascii_digit()) {
            notes.not_understood(number, "a rate, `tpm @` and a time were expected");
        }
    }
    let drafts: Vec<Draft> = runs.iter().filter(|rows| !rows.is_empty()).map(|rows| draft(rows)).collect();
    if drafts.is_empty() {
        return Err(ImportError::damaged(source, None, "a transaction counter that counted nothing"));
    }
    Ok(drafts)
}

/// Each line reports the rate since the line before; the first says nothing that can be placed.
fn draft(rows: &[Row]) -> Draft {
    let (database, of) = rows.first().map_or(("", 0), |row| (row.database.as_str(), row.of));
    let (name, rate_s, note) = RATES.get(of).copied().unwrap_or(RATES[0]);
    let mut draft = Draft::new(Workload::Transactions, "HammerDB", format!("{database} transaction counter"));
    draft.target.kind = Some(target_kind(database));
    draft.began = rows.first().and_then(|row| row.at);
    draft.ended = rows.last().and_then(|row| row.at).map(Began::timestamp);
    draft.notes.push(note.to_owned());
    let times: Vec<i64> = rows.iter().filter_map(|row| Some(row.at?.timestamp().0.as_second())).collect();
    if times.len() < rows.len() {
        draft.notes.push("Lines without a time are not shown: it is not reported how far they lie apart.".to_owned());
    }
    // The rate is what was counted, times how often a refresh fits into a minute as it was asked for, however long it took.
    let between = |pair: &[i64]| Some(pair.get(1)?.checked_sub(*pair.first()?)? as f64);
    let mut lengths_s: Vec<f64> = times.windows(2).filter_map(between).collect();
    without_jumps(&mut lengths_s);
    let lengths_s: Vec<Option<u64>> =
        lengths_s.into_iter().map(|length_s| whole(length_s).filter(|_| length_s >= 0.0)).collect();
    let refresh_s = lengths_s.iter().flatten().copied().filter(|s| *s > 0).min();
    let factor = refresh_s.and_then(|refresh_s| rate_s.checked_div(refresh_s)).filter(|factor| *factor > 0);
    let mut step = draft::step(0, "all", 0);
    let mut offset_ns = 0_u64;
    let timed: Vec<&Row> = rows.iter().filter(|row| row.at.is_some()).collect();
    for (row, length_s) in timed.iter().skip(1).zip(lengths_s) {
        let Some(length_s) = length_s else { continue };
        let length_ns = length_s.saturating_mul(1_000_000_000);
        let mut interval = interval::of(&step, offset_ns, length_ns);
        interval.reported.insert(name.to_owned(), row.rate);
        interval.counters.operations =
            factor.filter(|_| length_s > 0).and_then(|factor| whole(row.rate / factor as f64));
        offset_ns = offset_ns.saturating_add(length_ns);
        step.intervals.push(interval);
    }
    step.window.duration_ns = offset_ns;
    let highest = rows.iter().map(|row| row.rate).max_by(f64::total_cmp);
    let unit = if rate_s == 60 { "/min" } else { "/h" };
    step.reported.extend(highest.map(|rate| reported_figure("server", format!("highest {name}"), unit, rate)));
    draft.steps.push(step);
    draft
}

const TITLE: &str = "Hammerdb Time Profile Report";

/// Whether its first line is the title of such a report.
pub(crate) fn recognises_report(head: &str) -> bool {
    head.lines().find(|line| !line.trim().is_empty()).is_some_and(|line| line.contains(TITLE))
}

/// One report: what the summary over all virtual users says.
#[derive(Debug, Default)]
struct Report {
    database: String,
    at: Option<Began>,
    users: Option<u32>,
    elapsed_ns: Option<f64>,
    procedures: Vec<Extended>,
    in_summary: bool,
    /// The virtual user that is reported on, before the summary.
    user: Option<u32>,
    of_users: Vec<ReportedFigure>,
}

/// The reports in it: the summary as operations, and what each virtual user did by the names of the report.
pub(crate) fn read_report(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut reports: Vec<Report> = Vec::new();
    for (line, text) in source.lines() {
        let text = plain(text);
        let text = text.trim();
        if let Some((database, time)) = text.split_once(TITLE) {
            let at = unix_date::parse(time.trim().trim_start_matches('@'));
            reports.push(Report { database: database.trim().to_owned(), at, ..Report::default() });
            continue;
        }
        let Some(report) = reports.last_mut() else {
            notes.unknown(line, text);
            continue;
        };
        if let Some(rest) = text.strip_prefix(">>>>>") {
            report.heading(rest.trim());
        } else if !text.is_empty() && !text.starts_with('+') {
            let understood = report.procedures.last_mut().is_some_and(|procedure| procedure.line(text));
            if report.in_summary && !understood {
                notes.not_understood(line, "figures of a procedure were expected");
            } else if !understood {
                notes.unknown(line, text);
            }
        }
    }
    if reports.is_empty() {
        return Err(ImportError::no_result(source, "it holds no time profile"));
    }
    reports.into_iter().map(|report| report.draft(source)).collect()
}

impl Report {
    fn heading(&mut self, text: &str) {
        if let Some(procedure) = text.strip_prefix("PROC:") {
            self.procedures.push(Extended::of(procedure));
            return;
        }
        self.end_user();
        self.in_summary = text.starts_with("SUMMARY OF");
        if let Some(rest) = text.strip_prefix("VIRTUAL USER ") {
            self.user = rest.split_whitespace().next().and_then(|user| user.parse().ok());
            let elapsed_ms = text.rsplit(':').next().and_then(duration_ns).map(|ns| ns / 1e6);
            let elapsed = self.user.zip(elapsed_ms);
            self.of_users.extend(
                elapsed.map(|(user, ms)| draft::reported_figure("client", format!("vu{user} elapsed"), "ms", ms)),
            );
        }
        if self.in_summary {
            self.users = text.split_whitespace().nth(2).and_then(|users| users.parse().ok());
            self.elapsed_ns = text.rsplit(':').next().and_then(duration_ns);
        }
    }

    /// Keeps the figures of the virtual user that was reported on.
    fn end_user(&mut self) {
        let procedures = std::mem::take(&mut self.procedures);
        let Some(user) = self.user.take() else { return };
        self.of_users.extend(procedures.iter().flat_map(|procedure| procedure.of_user(user)));
    }

    fn draft(self, source: &Source) -> Result<Draft, ImportError> {
        if !self.in_summary {
            return Err(ImportError::damaged(source, None, "the time profile ends before its summary"));
        }
        let mut draft = Draft::new(Workload::Transactions, "HammerDB", format!("{} time profile", self.database));
        draft.target.kind = Some(target_kind(&self.database));
        draft.ended = self.at.map(Began::timestamp);
        draft.notes.push("Calls of the ramp-up are among those of the time profile.".to_owned());
        let elapsed_ns = self.elapsed_ns.and_then(draft::whole).unwrap_or(0);
        let before = jiff::SignedDuration::from_nanos(i64::try_from(elapsed_ns).unwrap_or(0));
        draft.began = self.at.and_then(|at| {
            let began = model::record::Timestamp(at.timestamp().0.checked_sub(before).ok()?);
            Some(if matches!(at, Began::Utc(_)) { Began::Utc(began) } else { Began::Wall(began) })
        });
        let label = self.users.map_or_else(|| "all".to_owned(), |users| format!("vu{users}"));
        let mut step = draft::step(0, label, elapsed_ns);
        step.load.sessions = self.users;
        for procedure in &self.procedures {
            let Some(response) = procedure.histogram() else { continue };
            step.reported.extend(procedure.figures());
            step.operations.push(draft::operations(&procedure.procedure, response.clone(), response));
        }
        step.reported.extend(self.of_users);
        if step.operations.is_empty() {
            return Err(ImportError::damaged(source, None, "the summary of the time profile has no procedures"));
        }
        draft.steps.push(step);
        Ok(draft)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::log;
    use crate::specimens::{damaged, source, survives};
    use crate::{Began, Draft, ImportError, Notes};
    use model::record::{Outcome, Step};

    const LOG: &str = "HammerDB CLI v5.0\nDatabase set to PostgreSQL\nBenchmark set to TPC-C for PostgreSQL\n\
Changed tpcc:pg_superuserpass from postgres to hush for PostgreSQL\nChanged tpcc:pg_rampup from 2 to 1 for PostgreSQL\n\
Value 20 for tpcc:pg_count_ware is the same as existing value 20, no change made\n3 Virtual Users Created with Monitor VU\n\
Vuser 1:Beginning rampup time of 1 minutes\nVuser 2:|PERCENTILES 2024-02-03 10:00:00 to 2024-02-03 10:00:10\n\
Vuser 2:|neword|MIN-100|P50%-200.5|P95%-400|P99%-700|MAX-900|SAMPLES-50\nVuser 2:|gettimestamp|MIN-1|P50%-2|P95%-3|P99%-4|MAX-5|SAMPLES-99\n\
Vuser 1:Rampup complete, Taking start Transaction Count.\nVuser 1:Timing test period of 3 in minutes\n\
Vuser 1:2 Active Virtual Users configured\nVuser 1:TEST RESULT : System achieved 1,500 NOPM from 3500 PostgreSQL TPM\n\
Vuser 2:|PROCNAME | EXCLUSIVETOT| %| CALLNUM| AVGPERCALL| CUMULTOT|\nVuser 2:|neword | 10000|90.00%| 50| 200| 11000|\n\
Vuser 2:|gettimestamp | 99|1.00%| 99| 1| 99|\nVuser 3:FINISHED FAILED\nVuser 1:FINISHED SUCCESS\n3 Virtual Users Created with Monitor VU\r\n\
Vuser 1:Beginning rampup time of 1 minutes\nVuser 1:2 Active Virtual Users configured\nVuser 1:TEST RESULT : System achieved 1600 NOPM from 3600 PostgreSQL TPM\n\
5 Virtual Users Created with Monitor VU\nVuser 1:Beginning rampup time of 1 minutes\n";

    const QUERIES: &str = "Vuser 1 created - WAIT IDLE\n2 Virtual Users Created\nVuser 1:RUNNING\nVuser 2:RUNNING\nVuser 1:Executing Query 14 (1 of 22)\n\
Vuser 1:query 14 completed in 1.5 seconds\nVuser 2:query 2 completed in 0.25 seconds\nVuser 2:query 14 completed in 2.5 seconds\n\
Vuser 1:Completed 1 query set(s) in 4 seconds\nVuser 2:Completed 1 query set(s) in 5 seconds\n\
Vuser 2:Geometric mean of query times returning rows (21) is 0.79057\n";

    const REPORT: &str = "Oracle Hammerdb Time Profile Report @ Sat Feb 03 10:05:00 GMT 2024\n+-+-+\n>>>>> VIRTUAL USER 2 : ELAPSED TIME : 60000ms\n\
>>>>> PROC: NEWORD\nCALLS: 5MIN: 1.000msAVG: 2.000msMAX: 4.000msTOTAL: 10.000ms\nP99: 4.000msP95: 3.000msP50: 1.500msSD: 800.250RATIO: 60.000%\n\
+-+-+\n>>>>> SUMMARY OF 2 ACTIVE VIRTUAL USERS : MEDIAN ELAPSED TIME : 61000ms\n>>>>> PROC: NEWORD\n\
CALLS: 100\tMIN: 1.000ms\tAVG: 2.000ms\tMAX: 9.000ms\tTOTAL: 201.000ms\t\nP99: 8.000ms\tP95: 3.000ms\tP50: 1.500ms\tSD: 810.500\tRATIO: 61.000%\t\n";

    const COUNTER: &str = "Hammerdb Transaction Counter Log @ Sat Feb 03 10:00:00 GMT 2024\n+-+-+\n0 Oracle tpm @ Sat Feb 03 10:00:00 GMT 2024\n\
6000 Oracle tpm @ Sat Feb 03 10:00:10 GMT 2024\n12000 Oracle tpm @ Sat Feb 03 10:00:20 GMT 2024\n";

    fn read(text: &str) -> Result<Vec<Draft>, ImportError> {
        assert!(log::recognises(text), "{text}");
        log::read(&source(text), &mut Notes::default())
    }

    fn figure_value(step: &Step, name: &str) -> Option<f64> {
        step.reported.iter().find(|figure| figure.name == name).map(|figure| figure.value)
    }

    #[test]
    fn each_result_is_a_step_with_its_users() {
        let draft = read(LOG).unwrap().remove(0);
        assert_eq!((draft.version.as_str(), draft.title.as_str()), ("5.0", "PostgreSQL TPROC-C"));
        assert_eq!((draft.parameters["pg_rampup"].as_str(), draft.parameters["pg_count_ware"].as_str()), ("1", "20"));
        let steps: Vec<_> = draft
            .steps
            .iter()
            .map(|step| (step.label.as_str(), figure_value(step, "NOPM"), figure_value(step, "TPM")))
            .collect();
        assert_eq!(steps, [("vu2", Some(1_500.0), Some(3_500.0)), ("vu2_2", Some(1_600.0), Some(3_600.0))]);
        let step = &draft.steps[0];
        assert_eq!(
            (step.window.duration_ns, step.window.warmup_ns, step.load.sessions),
            (180_000_000_000, 60_000_000_000, Some(2))
        );
        let error = "1 virtual users finished with an error: 3".to_owned();
        assert_eq!(step.outcome, Outcome::Failed { error });
        assert!(draft.notes.iter().any(|note| note.starts_with("1 tests were begun")), "{:?}", draft.notes);
        assert!(!format!("{draft:?}").contains("hush"));
    }

    #[test]
    fn procedures_of_a_profile_are_operations_without_those_inside() {
        let step = read(LOG).unwrap().remove(0).steps.remove(0);
        assert_eq!(step.operations.len(), 1);
        assert_eq!((step.operations[0].count, step.operations[0].response.total_ns()), (50, Some(10_000_000)));
        let interval = &step.intervals[0];
        assert_eq!(
            (interval.warmup, interval.response.count(), interval.reported["gettimestamp MAX"]),
            (true, 50, 5.0)
        );
        assert_eq!(interval.response.quantiles_ns(&[0.5, 0.95]), [Some(200_500), Some(400_000)]);
    }

    #[test]
    fn results_of_version_3_and_of_jobs_are_read() {
        let old = "Vuser 1:TEST RESULT : System achieved 21410 Oracle TPM at 7075 NOPM\n";
        let step = read(old).unwrap().remove(0).steps.remove(0);
        assert_eq!(
            (figure_value(&step, "NOPM"), figure_value(&step, "TPM"), step.load.sessions),
            (Some(7_075.0), Some(21_410.0), None)
        );
        let job = "[\n  \"6A0\",\n  \"3 Active Virtual Users configured\",\n  \"TEST RESULT : System achieved 70 NOPM from 210 MariaDB TPM\"\n]\n";
        let draft = read(job).unwrap().remove(0);
        assert_eq!((draft.steps[0].load.sessions, draft.target.kind_name()), (Some(3), "mariadb"));
    }

    #[test]
    fn jobs_tell_of_their_times() {
        let job = "[\n  \"1\",\n  \"Beginning rampup time of 2 minutes\",\n  \"1\",\n  \"Timing test period of 7 in minutes\",\n  \"1\",\n\
  \"5 Active Virtual Users configured\",\n  \"1\",\n  \"TEST RESULT : System achieved 900 SQL Server TPM at 400 NOPM\",\n  \"0\"\n]\n";
        let step = read(job).unwrap().remove(0).steps.remove(0);
        assert_eq!((step.window.duration_ns, step.window.warmup_ns), (420_000_000_000, 120_000_000_000));
        assert_eq!(
            (figure_value(&step, "NOPM"), figure_value(&step, "TPM"), step.load.sessions),
            (Some(400.0), Some(900.0), Some(5))
        );
    }

    #[test]
    fn quartiles_of_version_6_leave_the_other_percentiles_as_they_are() {
        let newer =
            REPORT.replace("P95: 3.000ms\tP50: 1.500ms\t", "P95: 3.000ms\tP75: 2.500ms\tP50: 1.500ms\tP25: 1.250ms\t");
        let step = super::read_report(&source(&newer), &mut Notes::default()).unwrap().remove(0).steps.remove(0);
        let quantiles = step.operations[0].response.quantiles_ns(&[0.25, 0.5, 0.75, 0.95, 0.99]);
        assert_eq!(quantiles, [1_250_000, 1_500_000, 2_500_000, 3_000_000, 8_000_000].map(Some));
        let text = r#"{ "NEWORD": { "elapsed_ms": "6.5", "calls": "8", "p99_ms": "8.0", "p75_ms": "2.5", "p25_ms": "1.25", "ratio_pct": "61.0" } }"#;
        let step = super::read_timing(&source(text), &mut Notes::default()).unwrap().remove(0).steps.remove(0);
        assert_eq!(step.operations[0].response.quantiles_ns(&[0.25, 0.75]), [Some(1_250_000), Some(2_500_000)]);
    }

    #[test]
    fn query_times_are_operations() {
        let draft = read(QUERIES).unwrap().remove(0);
        let step = &draft.steps[0];
        let seen: Vec<_> =
            step.operations.iter().map(|one| (one.kind.as_str(), one.count, one.response.total_ns())).collect();
        assert_eq!(seen, [("query 2", 1, Some(250_000_000)), ("query 14", 2, Some(4_000_000_000))]);
        assert_eq!((step.load.sessions, step.window.duration_ns), (Some(2), 5_000_000_000));
        assert_eq!(figure_value(step, "vu2 geometric mean of query times"), Some(0.79057));
        let of_users =
            ["vu1 1 query set(s)", "vu2 1 query set(s)", "vu1 query 14 mean", "vu2 query 14 mean", "vu1 query 2 mean"];
        assert_eq!(of_users.map(|name| figure_value(step, name)), [Some(4.0), Some(5.0), Some(1.5), Some(2.5), None]);
        let alone = QUERIES.replace("Vuser 2", "Vuser 1");
        let step = read(&alone).unwrap().remove(0).steps.remove(0);
        assert_eq!(
            (figure_value(&step, "geometric mean of query times"), figure_value(&step, "query 14 mean")),
            (Some(0.79057), None)
        );
    }

    #[test]
    fn refreshes_of_a_power_test_are_figures() {
        let refresh = "Vuser 1:New Sales refresh\nVuser 1:New Sales refresh complete in 4.25 seconds\nVuser 1:query 2";
        let step = read(&QUERIES.replacen("Vuser 2:query 2", refresh, 1)).unwrap().remove(0).steps.remove(0);
        assert_eq!(figure_value(&step, "New Sales refresh"), Some(4.25));
    }

    #[test]
    fn building_a_schema_and_ending_too_early_are_no_results() {
        let build = "HammerDB CLI v4.9\nSETTING CONFIGURATION\nDatabase set to Oracle\nVuser 1:CREATING TPCC SCHEMA\nVuser 1:TPCC SCHEMA COMPLETE\n";
        assert!(read(build).unwrap_err().to_string().contains("built or set up a schema"));
        let early = &LOG[..LOG.find("Vuser 1:TEST RESULT").unwrap()];
        assert!(read(early).unwrap_err().to_string().contains("ends before"));
    }

    #[test]
    fn the_report_of_a_profile_is_its_summary() {
        assert!(super::recognises_report(REPORT) && !log::recognises(REPORT) && !super::recognises_counter(REPORT));
        let mut notes = Notes::default();
        let draft = super::read_report(&source(REPORT), &mut notes).unwrap().remove(0);
        assert!(notes.is_empty(), "{:?}", notes.into_list());
        let step = &draft.steps[0];
        let response = &step.operations[0].response;
        assert_eq!((step.load.sessions, step.window.duration_ns, response.count()), (Some(2), 61_000_000_000, 100));
        assert_eq!(
            response.quantiles_ns(&[0.5, 0.95, 0.99, 1.0]),
            [1_500_000, 3_000_000, 8_000_000, 9_000_000].map(Some)
        );
        assert_eq!(
            (response.total_ns(), figure_value(step, "NEWORD SD"), figure_value(step, "NEWORD RATIO")),
            (Some(201_000_000), Some(810.5), Some(61.0))
        );
        let of_user = [
            "vu2 elapsed",
            "vu2 NEWORD CALLS",
            "vu2 NEWORD AVG",
            "vu2 NEWORD P99",
            "vu2 NEWORD TOTAL",
            "vu2 NEWORD SD",
        ];
        let values = [60_000.0, 5.0, 2.0, 4.0, 10.0, 800.25];
        assert_eq!(of_user.map(|name| figure_value(step, name)), values.map(Some), "{:?}", step.reported);
        assert_eq!(
            draft.began.map(Began::timestamp).map(|at| at.0.to_string()).as_deref(),
            Some("2024-02-03T10:03:59Z")
        );
        let cut = &REPORT[..REPORT.find(">>>>> SUMMARY").unwrap()];
        assert!(super::read_report(&source(cut), &mut Notes::default()).is_err());
        // Figures run together must be distinguished as well.
        let together = REPORT.replace('\t', "");
        assert_eq!(
            super::read_report(&source(&together), &mut notes).unwrap()[0].steps[0].operations[0].response,
            *response
        );
    }

    #[test]
    fn the_timing_of_a_job_is_a_profile_too() {
        let text = r#"{ "NEWORD": { "elapsed_ms": "60000.5", "calls": "100", "min_ms": "1.000", "avg_ms": "2.0", "max_ms": "9.0",
        "total_ms": "201.0", "p99_ms": "8.0", "p95_ms": "3.0", "p50_ms": "1.5", "sd": "810.5", "ratio_pct": "61.0" } }"#;
        assert!(super::recognises_timing(text) && !log::recognises(text) && !super::recognises_report(text));
        let step = super::read_timing(&source(text), &mut Notes::default()).unwrap().remove(0).steps.remove(0);
        let of_report = super::read_report(&source(REPORT), &mut Notes::default()).unwrap().remove(0).steps.remove(0);
        assert_eq!(step.operations, of_report.operations);
        assert_eq!((step.window.duration_ns, step.load.sessions), (60_000_500_000, None));
        assert_eq!((figure_value(&step, "NEWORD SD"), figure_value(&step, "NEWORD RATIO")), (Some(810.5), Some(61.0)));
        assert!(super::read_timing(&source(&text[..150]), &mut Notes::default()).is_err());
    }

    #[test]
    fn the_counter_gives_intervals() {
        assert!(super::recognises_counter(COUNTER) && !log::recognises(COUNTER));
        let draft = super::read_counter(&source(COUNTER), &mut Notes::default()).unwrap().remove(0);
        let step = &draft.steps[0];
        let seen: Vec<_> =
            step.intervals.iter().map(|one| (one.offset_ns, one.counters.operations, one.reported["TPM"])).collect();
        assert_eq!(seen, [(0, Some(1_000), 6_000.0), (10_000_000_000, Some(2_000), 12_000.0)]);
        assert_eq!((step.window.duration_ns, figure_value(step, "highest TPM")), (20_000_000_000, Some(12_000.0)));
        assert!(
            super::read_counter(&source("Hammerdb Transaction Counter Log @ now\n"), &mut Notes::default()).is_err()
        );
    }

    #[test]
    fn a_refresh_that_came_late_counted_no_more_than_its_rate_says() {
        let late = COUNTER.replace("10:00:20", "10:00:21") + "6000 Oracle tpm @ Sat Feb 03 10:00:31 GMT 2024\n";
        let draft = super::read_counter(&source(&late), &mut Notes::default()).unwrap().remove(0);
        let seen: Vec<_> = draft.steps[0]
            .intervals
            .iter()
            .map(|one| (one.duration_ns / 1_000_000_000, one.counters.operations))
            .collect();
        assert_eq!(seen, [(10, Some(1_000)), (11, Some(2_000)), (10, Some(1_000))]);
    }

    #[test]
    fn counters_of_queries_and_those_without_times_are_read() {
        let queries = COUNTER.replace(" tpm @", " qph @");
        assert!(super::recognises_counter(&queries));
        let step = super::read_counter(&source(&queries), &mut Notes::default()).unwrap().remove(0).steps.remove(0);
        assert_eq!(
            (step.intervals[1].counters.operations, step.intervals[1].reported["QPH"]),
            (Some(12_000 / 360), 12_000.0)
        );
        let bare = "Hammerdb Transaction Counter Log @ Sat Feb 03 10:00:00 GMT 2024\n+-+-+\n0 SQL Server tpm\n700 SQL Server tpm\n";
        let mut notes = Notes::default();
        let draft = super::read_counter(&source(bare), &mut notes).unwrap().remove(0);
        assert!(notes.is_empty());
        let step = &draft.steps[0];
        assert_eq!(
            (figure_value(step, "highest TPM"), step.intervals.len(), step.window.duration_ns),
            (Some(700.0), 0, 0)
        );
        assert!(!super::recognises_counter("we measured 3000 Oracle tpm\n"));
    }

    proptest! {
        #[test]
        fn damaged_files_give_runs_or_errors(file in damaged(&[LOG, QUERIES, REPORT, COUNTER])) {
            survives(file);
        }
    }
}
