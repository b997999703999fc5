//! `plimsoll report`.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use super::arguments::{Format, FormatArgs, RunsArgs, Taken};
use super::exit::{Exit, Failure};
use super::judged_files::JudgedArgs;
use super::limits::LimitArgs;
use super::page_file::PageArgs;
use super::{limits, results, say};
use ::report::document::RunReport;
use ::report::html::{Kept, MAX_BYTES, Picture, Reported};
use ::report::{self, Detail, Suite};
use analysis::{self, Finding, Judgeable, LatencyTarget, LimitAnswer, RunVerdict};
use model::record::Run;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll report                               the last run in brief
  plimsoll report 20261120-103000-slob --full   every event, kind and device
  plimsoll report last --limit p99.9=20ms       yes or no, by this limit
  plimsoll report last -o report.html           one file for a browser
  plimsoll report last -o report.png            the chart, for a mail
  plimsoll report last --csv steps.csv          a row for each step
  plimsoll report last --csv ./figures          eight files for a spreadsheet
  plimsoll report last --hlog run.hlog          seconds, for HdrHistogram
  plimsoll report last --fio steps.json         for what reads fio's output
  plimsoll report last --junit result.xml       a check or limits, for CI
  plimsoll report last --github                 the same as annotations
  plimsoll report last --json                   the run and the findings";

/// Columns of the line between two reports.
const LONGEST_RULE: usize = 120;

/// Arguments of `plimsoll report`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Runs: id, beginning of ids, name, tag as in `vm=d8s`, directory, or `last` (all that match)
    #[arg(value_name = "RUN", default_value = "last")]
    names: Vec<String>,

    #[command(flatten)]
    page: PageArgs,

    /// Also show every wait event, operation type and device
    #[arg(long, conflicts_with = "github", help_heading = "Output")]
    full: bool,

    /// Also write CSV files to this directory, or one `.csv` file of rows
    ///
    /// The one file has a row for each step.
    #[arg(long, value_name = "DIR|FILE.csv", help_heading = "Output")]
    csv: Option<PathBuf>,

    /// Also write the times of each second as an HdrHistogram log, in nanoseconds
    ///
    /// It has response times and wait events of the window.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    hlog: Option<PathBuf>,

    /// Also write raw requests as fio's JSON: a job for each step
    ///
    /// Latencies are from sent to finished, in fio's own bins (`json+`).
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    fio: Option<PathBuf>,

    #[command(flatten)]
    judged: JudgedArgs,

    #[command(flatten)]
    limits: LimitArgs,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    runs: RunsArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    arguments.page.check(arguments.format.format())?;
    let (places, runs) = load(arguments)?;
    let limits = arguments.limits.asked();
    if let Some(map) = runs.iter().find(|run| run.load.map().is_some() && !limits.is_empty()) {
        let failure =
            Failure::new(format_args!("--limit: run `{}` is a map, which has the limit that it was made by", map.id));
        return Err(
            failure.with_hint("make another by that limit: `plimsoll io map` or `plimsoll slob map`".to_owned())
        );
    }
    runs.iter().try_for_each(|run| limits::check(&limits, &Judgeable::of_run(run)))?;
    // Who names no limit reads the verdict that the run gave by its own.
    let found: Vec<Vec<Finding>> = match limits.as_slice() {
        [] => runs.iter().map(analysis::analyse_as_requested).collect(),
        limits => runs.iter().map(|run| findings(run, limits)).collect(),
    };
    let reported: Vec<Reported<'_>> =
        runs.iter().zip(&found).map(|(run, findings)| Reported::new(run, findings)).collect();
    if let Some(directory) = &arguments.csv.as_ref().filter(|path| !results::is_one_table(path)) {
        let folders = csv_folders(directory, &places);
        for (run, folder) in runs.iter().zip(folders) {
            results::write_tables(&folder, &report::csv::FILES, report::csv::BEGINNING, run)?;
        }
    }
    if let Some(file) = &arguments.csv.as_ref().filter(|path| results::is_one_table(path)) {
        let steps = steps(&runs)?;
        results::write_table(file, report::csv::BEGINNING, |out| out.write_all(&steps))?;
    }
    if let Some(file) = &arguments.hlog {
        write_hlog(file, &runs)?;
    }
    if let Some(file) = &arguments.fio {
        write_fio(file, &runs)?;
    }
    let suites: Vec<Suite> = reported.iter().map(Suite::of_run).collect();
    arguments.judged.write(&suites, |out| report::markdown::write(&reported, out))?;
    arguments.page.write(|| page(&reported), || picture(&reported))?;
    match arguments.format.format() {
        Format::Json => write_json(&reported)?,
        Format::Text if arguments.judged.is_github() => arguments.judged.annotate(&suites)?,
        Format::Text if !arguments.page.has_text() => {}
        Format::Text => {
            let detail = if arguments.full { Detail::Full } else { Detail::Brief };
            for (number, Reported { run, findings, .. }) in reported.iter().enumerate() {
                if number > 0 {
                    let mut out = say::output();
                    writeln!(out, "\n{}\n", "=".repeat(say::width().min(LONGEST_RULE)))?;
                    out.flush()?;
                }
                write_text(run, findings, detail)?;
            }
        }
    }
    if limits.is_empty() {
        return Ok(Exit::Done);
    }
    let exits: Vec<Exit> = found.iter().map(|findings| exit_for_limits(findings)).collect();
    let worst = [Exit::NotMet, Exit::NoVerdict].into_iter().find(|worst| exits.contains(worst));
    Ok(worst.unwrap_or(Exit::Done))
}

/// The runs that were named, each once, and where they are kept.
fn load(arguments: &Arguments) -> Result<(Vec<PathBuf>, Vec<Run>), Failure> {
    let loaded = Taken::default().load_all(&arguments.runs.store(), &arguments.names)?;
    Ok(loaded.into_iter().unzip())
}

/// A folder of its own for each of several runs, called as the directory that the run is kept in. The id in its document is no
/// name for a folder: whoever made the document may have written anything there.
fn csv_folders(directory: &Path, places: &[PathBuf]) -> Vec<PathBuf> {
    if places.len() == 1 {
        return vec![directory.to_owned()];
    }
    let name =
        |place: &PathBuf| place.file_name().map_or_else(|| "run".into(), |name| name.to_string_lossy().into_owned());
    let names: Vec<String> = places.iter().map(name).collect();
    let folder = |(at, name): (usize, &String)| match names[..at].iter().filter(|earlier| *earlier == name).count() {
        0 => directory.join(name),
        earlier => directory.join(format!("{name}-{}", earlier + 1)),
    };
    names.iter().enumerate().map(folder).collect()
}

/// The HdrHistogram log of one run.
fn write_hlog(file: &Path, runs: &[Run]) -> Result<(), Failure> {
    let [run] = runs else {
        let failure = Failure::new(format_args!("an HdrHistogram log has one run, and these are {}", runs.len()));
        return Err(failure.with_hint("write one for each: `plimsoll report RUN --hlog FILE`".to_owned()));
    };
    if !report::hlog::has_intervals(run) {
        let failure = Failure::new(format_args!("`{}` has no histograms of single seconds to be logged", run.id));
        return Err(
            failure.with_hint("runs of other programs mostly have none; `--csv DIR` has their figures".to_owned())
        );
    }
    results::write_file(file, report::hlog::BEGINNING, "name another file: `--hlog FILE`", |out| {
        report::hlog::write(out, run)
    })
}

/// The jobs of one run.
fn write_fio(file: &Path, runs: &[Run]) -> Result<(), Failure> {
    let [run] = runs else {
        let failure = Failure::new(format_args!("a file of fio has one run, and these are {}", runs.len()));
        return Err(failure.with_hint("write one for each: `plimsoll report RUN --fio FILE`".to_owned()));
    };
    if !report::fio_json::is_of_requests(run) {
        let failure = Failure::new(format_args!(
            "`{}` has no counted requests of raw storage, which are all that fio has",
            run.id
        ));
        return Err(failure.with_hint("`--csv DIR` has its figures".to_owned()));
    }
    results::write_file(file, report::fio_json::BEGINNING, "name another file: `--fio FILE`", |out| {
        report::fio_json::write(run, out)
    })
}

/// One row for each step of all runs.
fn steps(runs: &[Run]) -> Result<Vec<u8>, Failure> {
    let mut all = Vec::new();
    for run in runs {
        let mut own = Vec::new();
        report::csv::steps(&mut own, run)?;
        let heading = own.iter().position(|byte| *byte == b'\n').map_or(own.len(), |end| end + 1);
        if all.is_empty() {
            all = own;
        } else if all.starts_with(&own[..heading]) {
            all.extend_from_slice(&own[heading..]);
        } else {
            let failure =
                Failure::new(format_args!("steps of `{}` and `{}` have not the same columns", runs[0].id, run.id));
            return Err(failure.with_hint("write each into a folder of its own: `--csv DIR`".to_owned()));
        }
    }
    Ok(all)
}

/// The picture of one run.
pub(super) fn picture(reported: &[Reported<'_>]) -> Result<Picture, Failure> {
    let [one] = reported else {
        let failure = Failure::new(format_args!("a picture shows one run, and these are {}", reported.len()));
        return Err(failure.with_hint("`plimsoll compare A B -o FILE.png` lays runs over each other".to_owned()));
    };
    Picture::of_run(one).ok_or_else(|| {
        let failure = Failure::new(format_args!(
            "`{}` has nothing to draw: neither two steps with a rate and a latency, nor a histogram",
            one.run.id
        ));
        failure.with_hint("`-o FILE.html` has all that it has".to_owned())
    })
}

/// The page of these runs.
pub(super) fn page(reported: &[Reported<'_>]) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    report::html::report(&mut page, reported, &Kept::File)?;
    if page.len() > MAX_BYTES && reported.len() > 1 {
        let megabytes = |bytes: usize| bytes as f64 / 1e6;
        let failure = Failure::new(format_args!(
            "{} runs make a page of {:.1} MB, and no page is larger than {:.1} MB",
            reported.len(),
            megabytes(page.len()),
            megabytes(MAX_BYTES)
        ));
        return Err(failure.with_hint("report fewer at once; `plimsoll serve` shows any number of them".to_owned()));
    }
    Ok(page)
}

/// One run is a document; several are a list of them.
fn write_json(reported: &[Reported<'_>]) -> Result<(), Failure> {
    let documents: Vec<_> =
        reported.iter().map(|Reported { run, findings, .. }| RunReport::new(run, findings)).collect();
    match documents.as_slice() {
        [one] => say::json(one),
        several => say::json(&several),
    }
}

/// What is to be said about a run, judged by `limits` or else by the usual one.
pub(super) fn findings(run: &Run, limits: &[LatencyTarget]) -> Vec<Finding> {
    analysis::analyse_limits(run, limits)
}

/// Whether limits that were asked for were kept.
pub(super) fn verdict(findings: &[Finding]) -> Option<&RunVerdict> {
    findings.iter().find_map(|finding| match finding {
        Finding::Verdict(verdict) => Some(verdict),
        _ => None,
    })
}

/// Writes the report to standard output.
pub(super) fn write_text(run: &Run, findings: &[Finding], detail: Detail) -> Result<(), Failure> {
    let mut out = say::output();
    report::text(&mut out, run, findings, detail, say::width())?;
    out.flush()?;
    Ok(())
}

/// Limits that were asked for fail the command unless they are all kept.
pub(super) fn exit_for_limits(findings: &[Finding]) -> Exit {
    match verdict(findings).map(|verdict| verdict.answer) {
        None | Some(LimitAnswer::Yes) => Exit::Done,
        Some(LimitAnswer::No) => Exit::NotMet,
        Some(LimitAnswer::NoVerdict) => Exit::NoVerdict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::sample::requests;

    #[test]
    fn a_rate_that_is_not_carried_keeps_no_limit_however_long() {
        let mut run = requests::open_loop();
        let met = |run: &Run, limit: &str| exit_for_limits(&findings(run, &[limit.parse().unwrap()]));
        assert_eq!(met(&run, "p99=5ms"), Exit::Done);
        // The last rate answers within a minute, and falls behind.
        run.steps.drain(..2);
        assert_eq!(met(&run, "p99=1m"), Exit::NotMet);
        run.steps[0].load.rate_operations_per_s = None;
        assert_eq!(met(&run, "p99=1m"), Exit::Done, "a closed loop has nothing to fall behind");
        assert_eq!(exit_for_limits(&findings(&run, &[])), Exit::Done);
    }

    #[test]
    fn of_several_limits_all_are_to_be_kept() {
        let run = requests::sweep();
        let met = |limits: &[&str]| {
            let limits: Vec<LatencyTarget> = limits.iter().map(|limit| limit.parse().unwrap()).collect();
            exit_for_limits(&findings(&run, &limits))
        };
        assert_eq!(met(&["p99=5ms", "p50=5ms"]), Exit::Done);
        assert_eq!(met(&["p99=5ms", "p50=1us"]), Exit::NotMet);
        assert_eq!(met(&["p99=5ms", "log file sync:p99=5ms"]), Exit::NoVerdict);
    }
}
