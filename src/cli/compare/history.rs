//! `plimsoll compare --history`.

use std::io::Write;

use serde_json::{Value, json};

use super::Arguments;
use super::document::measure;
use crate::cli::arguments::{Format, Taken};
use crate::cli::exit::{Exit, Failure};
use crate::cli::say;
use analysis::history::{Histories, History, LevelChange, Series, Today};
use analysis::joined;
use model::record::Run;
use report::html::{self, Kept, Picture};
use report::{Detail, Suite};

/// Version of this document's form. A field that is added does not raise it.
const FORMAT: u32 = 1;

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let loaded = Taken::default().load_all(&arguments.runs.store(), &arguments.names)?;
    let runs: Vec<Run> = loaded.into_iter().map(|(_, run)| joined(run)).collect();
    let histories = Histories::of(&runs.iter().collect::<Vec<_>>(), arguments.threshold.0);
    if histories.histories.iter().all(|history| history.series.is_empty()) {
        let failure = Failure::new("none of these runs has a load with a figure that can be followed");
        return Err(failure.with_hint("`plimsoll report RUN` shows what a run has".to_owned()));
    }
    let suites = Suite::of_histories(&histories);
    arguments.judged.write(&suites, |out| report::markdown::write_suites(&suites, out))?;
    let page = || {
        let mut page = Vec::new();
        html::history(&mut page, &histories, &Kept::File)?;
        Ok(page)
    };
    let picture = || Picture::of_histories(&histories).ok_or_else(nothing_to_draw);
    arguments.page.write(page, picture)?;
    match arguments.format.format() {
        Format::Json => say::json(&document(&histories))?,
        Format::Text if arguments.judged.is_github() => arguments.judged.annotate(&suites)?,
        Format::Text if !arguments.page.has_text() => {}
        Format::Text => {
            let detail = if arguments.full { Detail::Full } else { Detail::Brief };
            let mut out = say::output();
            report::history::history(&mut out, &histories, detail, say::width())?;
            out.flush()?;
        }
    }
    Ok(match histories.is_worse() {
        Some(true) => Exit::NotMet,
        Some(false) => Exit::Done,
        None => Exit::NoVerdict,
    })
}

fn nothing_to_draw() -> Failure {
    Failure::new("this history has one run, of which no chart is made")
        .with_hint("`plimsoll report RUN -o FILE.png` draws a run".to_owned())
}

fn document(histories: &Histories) -> Value {
    json!({
        "format": FORMAT,
        "threshold": histories.threshold,
        "runs_before": analysis::history::FEWEST_BEFORE,
        "runs_after": analysis::history::FEWEST_AFTER,
        "worse": histories.is_worse(),
        "too_short": histories.too_short,
        "histories": histories.histories.iter().map(|one| history(histories, one)).collect::<Vec<_>>(),
    })
}

fn history(histories: &Histories, history: &History) -> Value {
    let run =
        |run: &analysis::history::HistoryRun| json!({ "id": run.id, "name": run.name, "started_at": run.started_at });
    json!({
        "of": history.of,
        "simulated": history.is_simulated,
        "current": history.is_current,
        "missing_loads": history.missing,
        "runs": history.runs.iter().map(run).collect::<Vec<_>>(),
        "series": histories.series_of(history).map(|(one, today)| series(one, today)).collect::<Vec<_>>(),
    })
}

fn series(series: &Series, today: Today<'_>) -> Value {
    let mut object = measure(&series.measure);
    let (answer, change) = match today {
        Today::Missing => ("missing", None),
        Today::TooFew => ("too_few", None),
        Today::Level => ("same", None),
        Today::Changed(share) => ("not_worse", Some(share)),
        Today::Worse(share, _) => ("worse", Some(share)),
    };
    let since = match today {
        Today::Worse(_, since) => series.changes.iter().position(|change| std::ptr::eq(change, since)),
        _ => None,
    };
    object["load"] = json!(series.load);
    object["answer"] = json!(answer);
    object["change_from_best"] = json!(change);
    object["since_change"] = json!(since);
    object["points"] = series.points.iter().map(|(run, value)| json!({ "run": run, "value": value })).collect();
    object["changes"] = series.changes.iter().map(|one| level_change(series, one)).collect();
    object
}

/// Places are indices of runs.
fn level_change(series: &Series, change: &LevelChange) -> Value {
    let run = |point: usize| series.points.get(point).map(|(run, _)| *run);
    let [from, end] = change.stretch;
    json!({
        "kind": if change.is_drift { "drift" } else { "step" },
        "from_run": run(from),
        "run": run(change.at),
        "certain_at_run": run(change.seen_at),
        "last_run": run(end.saturating_sub(1)),
        "before": change.levels[0],
        "after": change.levels[1],
        "change": change.share(),
        "surroundings": change.surroundings.iter().map(super::document::setting).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use jiff::ToSpan;

    use super::*;
    use crate::cli::arguments::parsed;
    use model::record::store::Store;
    use model::record::{Timestamp, sample};

    /// As many nights of one load, the last `slow` of which finish a tenth less.
    fn nights(place: &std::path::Path, count: u64, slow: u64) {
        let store = Store::new(place);
        for night in 0..count {
            let mut run = sample::sweep(5);
            run.id = format!("night-{night}");
            run.started_at = Timestamp(run.started_at.0.checked_add((24 * night as i64).hours()).unwrap());
            for step in &mut run.steps {
                let operations = step.counters.operations.unwrap() + night % 3;
                step.counters.operations = Some(if night + slow < count { operations } else { operations * 9 / 10 });
            }
            store.save(&run).unwrap();
        }
    }

    #[test]
    fn a_load_that_became_slower_fails_the_pipeline_with_its_evidence() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name).display().to_string();
        nights(&directory.path().join("runs"), 30, 6);
        let files = [place("junit.xml"), place("summary.md"), place("history.html"), place("history.svg")];
        let runs = place("runs");
        let words = ["--history", "--runs", &runs, "--junit", &files[0], "--markdown", &files[1], "-o"];
        for output in &files[2..] {
            let arguments = parsed(&[&words[..], &[output]].concat());
            assert_eq!(super::super::run(&arguments).unwrap(), Exit::NotMet);
        }
        let [junit, summary, page, picture] = files.map(|file| fs::read_to_string(file).unwrap());
        assert!(junit.contains("<failure message=\"It is -10") && junit.contains("`night-24`"), "{junit}");
        assert!(summary.contains("**Worse: ") && summary.lines().count() <= 21, "{summary}");
        for drawn in [page, picture] {
            assert!(drawn.contains("Worse: ") && drawn.contains("night-24"), "{drawn}");
        }
        let tolerant = parsed(&["--history", "--threshold", "20%", "--json", "--runs", &runs]);
        assert_eq!(super::super::run(&tolerant).unwrap(), Exit::Done);
        let few = parsed(&["--history", "night-1", "--runs", &runs]);
        assert_eq!(super::super::run(&few).unwrap(), Exit::NoVerdict);
    }

    #[test]
    fn a_document_has_every_point_and_change() {
        let directory = tempfile::tempdir().unwrap();
        nights(directory.path(), 30, 6);
        let runs: Vec<Run> = Store::new(directory.path())
            .list()
            .0
            .iter()
            .map(|run| model::record::store::load(&run.path).unwrap())
            .collect();
        let document = document(&Histories::of(&runs.iter().collect::<Vec<_>>(), 0.05));
        assert_eq!(document["worse"], true);
        let series = &document["histories"][0]["series"][0];
        assert_eq!((series["answer"].as_str(), series["since_change"].as_u64()), (Some("worse"), Some(0)));
        assert_eq!(series["points"].as_array().unwrap().len(), 30);
        let change = &series["changes"][0];
        assert_eq!((change["kind"].as_str(), change["run"].as_u64()), (Some("step"), Some(24)), "{change}");
    }
}
