//! `plimsoll trend`.

mod document;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::arguments::{Format, FormatArgs, RunsArgs, Taken};
use super::exit::{Exit, Failure};
use super::page_file::PageArgs;
use super::{files, say};
use analysis::trend::Trends;
use model::record::{Run, store};
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
    /// Runs: id, beginning of ids, name, tag as in `db=prod`, directory, or `last`; all that answer to it [default: all that
    /// are kept]
    #[arg(value_name = "RUN")]
    names: Vec<String>,

    #[command(flatten)]
    page: PageArgs,

    /// Also show every measure by hour and day, every gap, and every window that does not count
    #[arg(long, help_heading = "Output")]
    full: bool,

    /// Also write windows, measures, hours and days as CSV files into this directory, or a row for each window into this `.csv` file
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
        Some(file) if files::is_one_table(file) => {
            files::write_table(file, report::trend::BEGINNING, |out| report::trend::windows(out, &trends))?;
        }
        Some(directory) => files::write_tables(directory, &report::trend::FILES, report::trend::BEGINNING, &trends)?,
        None => {}
    }
    let page = || {
        let mut page = Vec::new();
        report::html::trend(&mut page, &trends, &Kept::File)?;
        Ok(page)
    };
    arguments.page.write(page, || Err(no_picture()))?;
    match arguments.format.format() {
        Format::Json => say::json(&document::document(&trends))?,
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

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser;

    use super::*;
    use model::record::sample::windows::history;
    use model::record::store::Store;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn parsed(words: &[&str]) -> Arguments {
        Line::try_parse_from(std::iter::once(&"trend").chain(words)).unwrap().arguments
    }

    #[test]
    fn a_beginning_of_ids_takes_all_runs_and_files_of_others_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("runs");
        let store = Store::new(&place);
        history().iter().for_each(|run| drop(store.save(run).unwrap()));
        let runs = place.to_str().unwrap();
        let all = parsed(&["202611", "--runs", runs]);
        assert_eq!(load(&all.names, &all.runs).unwrap().len(), 238);
        let day = parsed(&["20261103", "--runs", runs]);
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
        let named = parsed(&[&name, "--runs", place]);
        assert_eq!(load(&named.names, &named.runs).unwrap().len(), 3);
        let unknown = parsed(&["nosuchdb", "--runs", place]);
        assert!(load(&unknown.names, &unknown.runs).is_err());
    }

    #[test]
    fn a_document_has_every_measure_with_its_growth_and_hours() {
        let runs = history();
        let document = document::document(&Trends::of(&runs.iter().collect::<Vec<_>>()));
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
