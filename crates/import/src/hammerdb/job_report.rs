//! The report of a job of HammerDB 6, as `jobs summaryjson` writes it.

use serde_json::Value;

use super::{Row, draft as of_counter, procedure, target_kind, text};
use crate::draft::{self, reported_figure, whole};
use crate::{Began, Draft, ImportError, Notes, Source};
use model::record::{Ending, Environment, Metric, Step, Workload};

const SCHEMA: &str = "hammerdb-job-report-v1";
const MINUTE_NS: u64 = 60_000_000_000;

/// Whether it is a document that names this schema.
pub(crate) fn recognises(head: &str) -> bool {
    head.trim_start().starts_with('{') && head.contains("\"schema\"") && head.contains(SCHEMA)
}

/// The run in it.
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let report: Value = source.json(notes)?;
    let at = |path: &str| report.pointer(path);
    let number = |path: &str| at(path).and_then(Value::as_f64);
    let word = |path: &str| at(path).and_then(Value::as_str).unwrap_or_default();
    let rates = number("/result/nopm").zip(number("/result/tpm"));
    let geometric_mean_s = number("/result/geomean_seconds");
    if rates.is_none() && geometric_mean_s.is_none() {
        let benchmark = if word("/job/benchmark").is_empty() { "a benchmark" } else { word("/job/benchmark") };
        let what = format!("it is a report of a job on {benchmark} without NOPM and TPM, or times of queries");
        return Err(ImportError::no_result(source, what));
    }
    let database = word("/job/database");
    let mut draft = Draft::new(Workload::Transactions, "HammerDB", format!("{database} {}", word("/job/benchmark")));
    word("/job/hdb_version").trim_start_matches('v').clone_into(&mut draft.version);
    draft.target.kind = Some(target_kind(database));
    draft.began = time(word("/job/timestamp"));
    if let Some(release) = Some(word("/job/release")).filter(|release| !release.is_empty()) {
        draft.target.facts.other.insert("release".to_owned(), release.to_owned());
    }
    draft.environment = environment(&report);
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
    if let Some((nopm, tpm)) = rates {
        step.reported.push(reported_figure("client", "NOPM", "/min", nopm).is(Metric::NewOrders, 1.0));
        step.reported.push(reported_figure("server", "TPM", "/min", tpm).is(Metric::Transactions, 1.0 / 60.0));
    }
    let seconds = [
        ("geometric mean of query times", geometric_mean_s),
        ("query time", number("/result/total_query_time_seconds")),
    ];
    for (name, value) in seconds {
        step.reported.extend(value.map(|value| reported_figure("client", name, "s", value)));
    }
    for row in at("/query_times/rows").and_then(Value::as_array).into_iter().flatten() {
        let named = row.get("name").and_then(Value::as_str).zip(row.get("total_ms").and_then(Value::as_f64));
        step.reported.extend(named.map(|(name, ms)| reported_figure("client", format!("query {name}"), "ms", ms)));
    }
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
    of_machine(&report, draft.began, &mut step);
    draft.steps.push(step);
    Ok(vec![draft])
}

/// The machine, as far as the report says.
fn environment(report: &Value) -> Environment {
    let word = |name: &str| report.pointer(&format!("/system/{name}")).and_then(Value::as_str).map(str::to_owned);
    Environment {
        hostname: word("hostname"),
        os: word("os_name"),
        cpu_model: word("cpumodel"),
        cpus: word("cpucount").and_then(|cpus| cpus.parse().ok()),
        machine: word("system_vendor").zip(word("system_type")).map(|(vendor, product)| format!("{vendor} {product}")),
        ..Environment::default()
    }
}

/// Means of what HammerDB saw of the machine, over the measured window where the report has one.
fn of_machine(report: &Value, began: Option<Began>, step: &mut Step) {
    const SERIES: [(&str, &str, &str); 6] = [
        ("cpu_percent", "usr_pct", "%"),
        ("cpu_percent", "sys_pct", "%"),
        ("cpu_percent", "irq_pct", "%"),
        ("cpu_percent", "idle_pct", "%"),
        ("iops", "value", "1/s"),
        ("mbps", "value", "MB/s"),
    ];
    let offset_ns = |point: &Value| {
        let at = point.get("timestamp").and_then(Value::as_str).and_then(time)?.timestamp().0;
        u64::try_from(at.duration_since(began?.timestamp().0).as_nanos()).ok()
    };
    let window = step.window.warmup_ns..step.window.warmup_ns.saturating_add(step.window.duration_ns);
    let is_in = |point: &&Value| window.is_empty() || offset_ns(point).is_some_and(|at_ns| window.contains(&at_ns));
    for (series, key, unit) in SERIES {
        let points = report.pointer(&format!("/metrics/{series}")).and_then(Value::as_array).into_iter().flatten();
        let values = points.filter(is_in).filter_map(|point| point.get(key)?.as_f64());
        let (count, sum) = values.fold((0_u32, 0.0), |(count, sum), value| (count + 1, sum + value));
        let name = if key == "value" { series } else { key };
        step.reported.extend((count > 0).then(|| reported_figure("host", name, unit, sum / f64::from(count))));
    }
}

/// `2026-06-04 18:19:36`, by the clock there.
fn time(text: &str) -> Option<Began> {
    Began::wall(jiff::civil::DateTime::strptime("%Y-%m-%d %H:%M:%S", text).ok()?)
}

#[cfg(test)]
mod tests {
    use crate::read;
    use crate::specimens::{only, source};

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
    fn the_machine_is_known_and_has_its_means_over_the_window() {
        // As public reports have it, of Db2 on Windows.
        let system = r#""system": { "hostname": "db7", "cpumodel": "Example 9", "cpucount": "32", "os_name": "Windows" },
            "metrics": { "available": true, "iops": [ { "timestamp": "2026-06-04 18:19:46", "value": 9.0 },
            { "timestamp": "2026-06-04 18:21:46", "value": 100.0 }, { "timestamp": "2026-06-04 18:21:56", "value": 300.0 } ] },
            "response_times": "#;
        let draft = only("hammerdb-job-report", &REPORT.replace("\"response_times\": ", system));
        let iops = draft.steps[0].reported.iter().find(|figure| figure.name == "iops").map(|figure| figure.value);
        assert_eq!(
            (draft.environment.cpus, draft.environment.hostname.as_deref(), iops),
            (Some(32), Some("db7"), Some(200.0))
        );
    }

    #[test]
    fn a_report_on_queries_has_their_times() {
        let queries = r#"{"schema":"hammerdb-job-report-v1","job":{"hdb_version":"v6.0","database":"MSSQLServer","benchmark":"TPROC-H",
            "timestamp":"2026-06-18 14:18:00"},"benchmark_config":{"scale_factor":30},"result":{"type":"tproc_h_result","queries":22,
            "geomean_seconds":2.01436,"total_query_time_seconds":89},"query_times":{"unit":"milliseconds","rows":[
            {"name":"14","total_ms":1006.0,"seconds":1.006},{"name":"2","total_ms":198.0,"seconds":0.198}]}}"#;
        let draft = only("hammerdb-job-report", queries);
        let value =
            |name: &str| draft.steps[0].reported.iter().find(|figure| figure.name == name).map(|figure| figure.value);
        assert_eq!(
            ["geometric mean of query times", "query 14", "query 2"].map(value),
            [2.014_36, 1_006.0, 198.0].map(Some)
        );
        assert_eq!(draft.parameters["scale_factor"], "30");
        let refused = read(&source(&queries.replace("geomean_seconds", "qphh"))).unwrap_err().to_string();
        assert!(refused.contains("a report of a job on TPROC-H"), "{refused}");
    }
}
