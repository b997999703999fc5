//! The report of a job of HammerDB 6, as `jobs summaryjson` writes it.

use serde_json::Value;

use super::{Row, draft as of_counter, procedure, target_kind, text};
use crate::draft::{self, reported_figure, whole};
use crate::{Began, Draft, ImportError, Notes, Source};
use model::record::{Ending, Metric, Workload};

const SCHEMA: &str = "hammerdb-job-report-v1";
const MINUTE_NS: u64 = 60_000_000_000;

/// Whether it is a document that names this schema.
pub(crate) fn recognises(head: &str) -> bool {
    head.trim_start().starts_with('{') && head.contains("\"schema\"") && head.contains(SCHEMA)
}

/// The run in it.
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let report: Value = serde_json::from_str(source.text()).map_err(|error| {
        let line = u64::try_from(error.line()).ok().filter(|line| *line > 0);
        ImportError::damaged(source, line, error.to_string())
    })?;
    let at = |path: &str| report.pointer(path);
    let number = |path: &str| at(path).and_then(Value::as_f64);
    let word = |path: &str| at(path).and_then(Value::as_str).unwrap_or_default();
    let (Some(nopm), Some(tpm)) = (number("/result/nopm"), number("/result/tpm")) else {
        let benchmark = if word("/job/benchmark").is_empty() { "a benchmark" } else { word("/job/benchmark") };
        let what =
            format!("it is a report of a job on {benchmark} without NOPM and TPM; only those of TPROC-C are read");
        return Err(ImportError::no_result(source, what));
    };
    let database = word("/job/database");
    let mut draft = Draft::new(Workload::Transactions, "HammerDB", format!("{database} {}", word("/job/benchmark")));
    word("/job/hdb_version").trim_start_matches('v').clone_into(&mut draft.version);
    draft.target.kind = Some(target_kind(database));
    draft.began = time(word("/job/timestamp"));
    if let Some(release) = Some(word("/job/release")).filter(|release| !release.is_empty()) {
        draft.target.facts.other.insert("release".to_owned(), release.to_owned());
    }
    for (name, value) in at("/benchmark_config").and_then(Value::as_object).into_iter().flatten() {
        draft.parameters.insert(name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    }
    let users = number("/result/active_virtual_users").or_else(|| number("/benchmark_config/virtual_users"));
    let users = users.and_then(whole).and_then(|users| u32::try_from(users).ok());
    let minutes_ns = |path: &str| number(path).and_then(|minutes| whole(minutes * MINUTE_NS as f64)).unwrap_or(0);
    let label = users.map_or_else(|| "all".to_owned(), |users| format!("vu{users}"));
    let mut step = draft::step(0, label, minutes_ns("/benchmark_config/duration_minutes"));
    step.load.sessions = users;
    step.window.warmup_ns = minutes_ns("/benchmark_config/rampup_minutes");
    step.window.ending = Ending::Time;
    step.reported.push(reported_figure("client", "NOPM", "/min", nopm).is(Metric::NewOrders, 1.0));
    step.reported.push(reported_figure("server", "TPM", "/min", tpm).is(Metric::Transactions, 1.0 / 60.0));
    for row in at("/response_times/rows").and_then(Value::as_array).into_iter().flatten() {
        let procedure = row.as_object().and_then(|row| Some(procedure(&text(row, "name")?, row)));
        let Some((procedure, response)) = procedure.and_then(|one| one.histogram().map(|response| (one, response)))
        else {
            notes.not_understood(None, "a row of response times without its name or calls");
            continue;
        };
        step.reported.extend(procedure.figures());
        step.operations.push(draft::operations(&procedure.procedure, response.clone(), response));
    }
    if !step.operations.is_empty() {
        draft.notes.push("Calls of the ramp-up are among those of the time profile.".to_owned());
    }
    let series = at("/transaction_count/series").and_then(Value::as_array);
    let counted =
        series.and_then(|series| series.iter().find(|one| one.get("metric").and_then(Value::as_str) == Some("tpm")));
    let points = counted.and_then(|one| one.get("points")).and_then(Value::as_array);
    let rows: Vec<Row> = points
        .into_iter()
        .flatten()
        .filter_map(|point| {
            let at = point.get("timestamp").and_then(Value::as_str).and_then(time);
            Some(Row { rate: point.get("value")?.as_f64()?, of: 0, database: database.to_owned(), at })
        })
        .collect();
    if let Some(counter) = of_counter(&rows).steps.pop().filter(|_| !rows.is_empty()) {
        step.intervals = counter.intervals;
        for interval in &mut step.intervals {
            interval.warmup = interval.offset_ns < step.window.warmup_ns;
        }
    }
    draft.steps.push(step);
    Ok(vec![draft])
}

/// `2026-06-04 18:19:36`, by the clock there.
fn time(text: &str) -> Option<Began> {
    Began::wall(jiff::civil::DateTime::strptime("%Y-%m-%d %H:%M:%S", text).ok()?)
}

#[cfg(test)]
mod tests {
    use crate::specimens::{only, source};
    use crate::{read, recognise};

    const REPORT: &str = include_str!("../specimens/hammerdb6_job_report.json");

    #[test]
    fn the_report_of_a_job_gives_its_result_its_times_and_its_course() {
        let draft = only("hammerdb-job-report", REPORT);
        let step = &draft.steps[0];
        let value = |name: &str| step.reported.iter().find(|figure| figure.name == name).map(|figure| figure.value);
        assert_eq!(["NOPM", "TPM", "NEWORD SD"].map(value), [776_679.0, 1_787_531.0, 0.635].map(Some));
        assert_eq!((step.load.sessions, step.window.duration_ns / 1_000_000_000), (Some(24), 300));
        let order = &step.operations[0];
        assert_eq!((order.kind.as_str(), order.count), ("NEWORD", 5_505_692));
        assert_eq!(order.response.quantiles_ns(&[0.5, 0.99]), [689_000, 3_145_000].map(Some));
        let course: Vec<(u64, f64, bool)> =
            step.intervals.iter().map(|one| (one.offset_ns / 1_000_000_000, one.reported["TPM"], one.warmup)).collect();
        assert_eq!(course, [(0, 1_054_500.0, true), (10, 2_140_260.0, true)]);
        assert_eq!((draft.version.as_str(), draft.title.as_str()), ("6.0", "PostgreSQL TPROC-C"));
    }

    #[test]
    fn a_report_on_queries_is_refused_by_its_name() {
        let queries = REPORT.replace("TPROC-C", "TPROC-H").replace("\"nopm\"", "\"qphh\"");
        assert!(recognise(&queries).is_some());
        let refused = read(&source(&queries)).unwrap_err().to_string();
        assert!(refused.contains("a report of a job on TPROC-H"), "{refused}");
    }
}
