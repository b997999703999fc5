//! `plimsoll trend`.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};

use super::arguments::{Format, FormatArgs, RunsArgs, Taken};
use super::exit::{Exit, Failure};
use super::page_file::PageArgs;
use super::{results, say};
use analysis::trend::{Gap, LikeDays, QUANTILES, SetAside, Summary, Trend, Trends, Why};
use model::record::{Metric, Run, store};
use report::html::Kept;
use report::{self, Detail};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll trend 202611                   all runs whose id begins so
  plimsoll trend --runs ./october         all runs in that directory
  plimsoll trend 202610 202611 --full     every measure by hour and by day
  plimsoll trend 202611 -o trend.html     charts and a calendar, for a browser
  plimsoll trend 202611 --csv ./trend     four files for a spreadsheet
  plimsoll trend 202611 --json            for a program

Any run will do that says when it was and for how long. Different databases are kept apart, the same time is counted once, \
and what is not covered is named.";

/// Arguments of `plimsoll trend`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Runs: id, beginning of ids, name, tag as in `db=prod`, directory, or `last` [default: all]
    ///
    /// All matching runs are used.
    #[arg(value_name = "RUN")]
    names: Vec<String>,

    #[command(flatten)]
    page: PageArgs,

    /// Also show every metric by hour and day, every gap, and every window that does not count
    #[arg(long, help_heading = "Output")]
    full: bool,

    /// Also write CSV files to this directory, or one `.csv` file of rows
    ///
    /// The directory gets windows, metrics, hours and days. The one file has a row for each window.
    #[arg(long, value_name = "DIR|FILE.csv", help_heading = "Output")]
    csv: Option<PathBuf>,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    runs: RunsArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    arguments.page.check(arguments.format.format())?;
    if arguments.page.is_picture() {
        return Err(no_picture());
    }
    let runs = load(&arguments.names, &arguments.runs)?;
    let runs: Vec<&Run> = runs.iter().collect();
    let trends = Trends::of(&runs);
    match &arguments.csv {
        Some(file) if results::is_one_table(file) => {
            results::write_table(file, report::trend::BEGINNING, |out| report::trend::windows(out, &trends))?;
        }
        Some(directory) => results::write_tables(directory, &report::trend::FILES, report::trend::BEGINNING, &trends)?,
        None => {}
    }
    let page = || {
        let mut page = Vec::new();
        report::html::trend(&mut page, &trends, &Kept::File)?;
        Ok(page)
    };
    arguments.page.write(page, || Err(no_picture()))?;
    match arguments.format.format() {
        Format::Json => say::json(&self::document(&trends))?,
        Format::Text if !arguments.page.has_text() => {}
        Format::Text => {
            let detail = if arguments.full { Detail::Full } else { Detail::Brief };
            let mut out = say::output();
            report::trend::trend(&mut out, &trends, detail, say::width())?;
            out.flush()?;
        }
    }
    if trends.trends.is_empty() {
        let failure = Failure::new("none of these runs reports both when it was and for how long");
        return Err(failure
            .with_hint("why each is left out is reported above; `plimsoll report RUN` shows what it has".to_owned()));
    }
    Ok(Exit::Done)
}

fn no_picture() -> Failure {
    Failure::new("a trend is many charts, and no picture is made of one")
        .with_hint("`-o FILE.html` has them all; `plimsoll report RUN -o FILE.png` draws one run".to_owned())
}

/// The runs that words mean: of a database over time, all that answer to any of them.
pub(super) fn load(words: &[String], runs: &RunsArgs) -> Result<Vec<Run>, Failure> {
    match Taken::default().load_all(&runs.store(), words) {
        Ok(loaded) => Ok(loaded.into_iter().map(|(_, run)| run).collect()),
        Err(failure) => of_databases(words, runs).ok_or(failure),
    }
}

/// Where words are no runs: the runs of databases that are called so, as trends call them. Absent where one of them is none.
fn of_databases(words: &[String], runs: &RunsArgs) -> Option<Vec<Run>> {
    let (kept, _) = runs.store().list_of(words).is_err().then(|| runs.store().list())?;
    let all: Vec<Run> = kept.iter().filter_map(|run| store::load(&run.path).ok()).collect();
    let trends = Trends::of(&all.iter().collect::<Vec<_>>()).trends;
    let mut ids = BTreeSet::new();
    for word in words {
        let trend = trends.iter().find(|trend| trend.database.name.eq_ignore_ascii_case(word))?;
        ids.extend(trend.windows.iter().map(|window| window.run.clone()));
        ids.extend(trend.set_aside.iter().map(|aside| aside.run.clone()));
    }
    Some(all.into_iter().filter(|run| ids.contains(&run.id)).collect())
}

/// Version of this document's form. A field that is added does not raise it.
const FORMAT: u32 = 1;

fn document(trends: &Trends) -> Value {
    json!({
        "format": FORMAT,
        "databases": trends.trends.iter().map(trend).collect::<Vec<_>>(),
        "left_out": trends.left_out.iter().map(set_aside).collect::<Vec<_>>(),
    })
}

fn trend(trend: &Trend) -> Value {
    let measures = trend.measures();
    let gap = |gap: &Gap| json!({ "from": gap.from.to_string(), "to": gap.to.to_string(), "seconds": gap.seconds() });
    let (from, to) = trend.span().unzip();
    json!({
        "name": trend.database.name,
        "kind": trend.database.scope.kind,
        "identity": trend.database.scope.identity,
        "instance": trend.database.scope.instance,
        "clock": if trend.is_wall_clock { "wall" } else { "utc" },
        "from": from.map(|at| at.to_string()),
        "to": to.map(|at| at.to_string()),
        "covered_share": trend.covered_share(),
        "gaps": trend.gaps.iter().map(gap).collect::<Vec<_>>(),
        "not_counted": trend.set_aside.iter().map(set_aside).collect::<Vec<_>>(),
        "measures": measures.iter().filter_map(|it| trend.summary(*it)).map(|it| summary(trend, &it)).collect::<Vec<_>>(),
        "windows": windows(trend, &measures),
    })
}

fn summary(trend: &Trend, reported: &Summary) -> Value {
    let name = |quantile: &f64| format!("p{}", quantile * 100.0);
    let quantiles: Map<String, Value> =
        QUANTILES.iter().map(name).zip(reported.quantiles).map(|(name, value)| (name, json!(value))).collect();
    let peak = trend.windows.get(reported.peak_at);
    let growth = reported.growth.map(|growth| {
        json!({
            "per_day": growth.per_day,
            "low": growth.interval.map(|(low, _)| low),
            "high": growth.interval.map(|(_, high)| high),
            "days": growth.days,
            "compared": match growth.like {
                LikeDays::All => "all_days",
                LikeDays::OfWeek => "days_of_week",
            },
        })
    });
    let hours = trend.hours(reported.measure);
    let days = trend.days(reported.measure);
    let hour = |row: &analysis::trend::HourRow| {
        json!({
            "hour": row.hour, "days": row.days, "mean": row.mean, "p95": row.p95, "peak": row.peak,
            "peak_from": row.peak_from.to_string(),
        })
    };
    let day = |row: &analysis::trend::DayRow| {
        json!({
            "day": ::report::trend::date(row.day), "covered_share": row.covered_share, "mean": row.mean,
            "p95": row.p95, "peak": row.peak, "peak_from": row.peak_from.to_string(),
        })
    };
    json!({
        "measure": reported.measure.key(),
        "windows": reported.windows,
        "covered_s": reported.covered_s,
        "mean": reported.mean,
        "quantiles": quantiles,
        "peak": reported.peak,
        "peak_from": peak.map(|window| window.from.to_string()),
        "peak_to": peak.map(|window| window.to.to_string()),
        "peak_run": peak.map(|window| window.run.clone()),
        "growth": growth,
        "hours": hours.iter().map(hour).collect::<Vec<_>>(),
        "days": days.iter().map(day).collect::<Vec<_>>(),
    })
}

fn windows(trend: &Trend, measures: &[Metric]) -> Vec<Value> {
    let of_window = |window: &analysis::trend::TrendWindow| {
        let values = measures
            .iter()
            .map(|measure| (measure.key().to_owned(), json!(window.reading(*measure).map(|reading| reading.value))));
        let mut object: Map<String, Value> = values.collect();
        object.extend([
            ("from".to_owned(), json!(window.from.to_string())),
            ("to".to_owned(), json!(window.to.to_string())),
            ("seconds".to_owned(), json!(window.seconds)),
            ("run".to_owned(), json!(window.run)),
            ("step".to_owned(), json!(window.step)),
        ]);
        Value::Object(object)
    };
    trend.windows.iter().map(of_window).collect()
}

fn set_aside(aside: &SetAside) -> Value {
    let (why, of) = match &aside.why {
        Why::Again { of } => ("same_time", Some(of)),
        Why::Overlaps { of } => ("overlaps", Some(of)),
        Why::InWhole { of } => ("instance_of_whole", Some(of)),
        Why::NoLength => ("no_length", None),
        Why::NoTime => ("no_time", None),
        Why::Part => ("part", None),
        Why::NotFinished => ("not_finished", None),
    };
    json!({ "run": aside.run, "step": aside.step, "why": why, "of": of })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::cli::arguments::parsed;
    use model::record::sample::windows::history;
    use model::record::store::Store;

    #[test]
    fn a_beginning_of_ids_takes_all_runs_and_files_of_others_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("runs");
        let store = Store::new(&place);
        history().iter().for_each(|run| drop(store.save(run).unwrap()));
        let runs = place.to_str().unwrap();
        let all: Arguments = parsed(&["202611", "--runs", runs]);
        assert_eq!(load(&all.names, &all.runs).unwrap().len(), 238);
        let day: Arguments = parsed(&["20261103", "--runs", runs]);
        assert_eq!(load(&day.names, &day.runs).unwrap().len(), 24);

        let csv = directory.path().join("csv");
        let with_files = parsed(&["20261103", "--runs", runs, "--csv", csv.to_str().unwrap(), "--json"]);
        assert_eq!(run(&with_files).unwrap(), Exit::Done);
        let windows = fs::read_to_string(csv.join("windows.csv")).unwrap();
        assert_eq!(windows.lines().count(), 25);
        assert_eq!(run(&with_files).unwrap(), Exit::Done, "its own files may be written again");
        fs::write(csv.join("days.csv"), "my own notes on days\n").unwrap();
        assert!(
            matches!(run(&with_files), Err(Failure::Reported(reported)) if reported.message.contains("is not overwritten"))
        );
    }

    #[test]
    fn a_database_is_taken_by_the_name_that_trends_call_it() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        history().iter().take(3).for_each(|run| drop(store.save(run).unwrap()));
        store.save(&model::record::sample::sweep(5)).unwrap();
        let runs = history();
        let trends = Trends::of(&runs.iter().collect::<Vec<_>>());
        let name = trends.trends[0].database.name.to_lowercase();
        let place = directory.path().to_str().unwrap();
        let named: Arguments = parsed(&[&name, "--runs", place]);
        assert_eq!(load(&named.names, &named.runs).unwrap().len(), 3);
        let unknown: Arguments = parsed(&["nosuchdb", "--runs", place]);
        assert!(load(&unknown.names, &unknown.runs).is_err());
    }

    #[test]
    fn a_document_has_every_measure_with_its_growth_and_hours() {
        let runs = history();
        let document = self::document(&Trends::of(&runs.iter().collect::<Vec<_>>()));
        let database = &document["databases"][0];
        assert_eq!((&database["clock"], &database["instance"]), (&"wall".into(), &"PROD1".into()));
        let reads = &database["measures"][1];
        assert_eq!(reads["measure"], "reads_per_s");
        assert_eq!((&reads["peak"], &reads["peak_from"]), (&6_000.0.into(), &"2026-11-07T02:00:00Z".into()));
        assert_eq!((reads["hours"].as_array().unwrap().len(), reads["days"].as_array().unwrap().len()), (24, 10));
        assert!((reads["growth"]["per_day"].as_f64().unwrap() - 100.0).abs() < 1.0);
        assert_eq!(database["windows"].as_array().unwrap().len(), 237);
        assert_eq!(database["not_counted"][0]["why"], "same_time");
    }
}
