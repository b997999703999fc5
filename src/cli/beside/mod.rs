//! `plimsoll beside`.

mod group;
pub(super) mod loads;
mod turns;

use std::ffi::OsString;
use std::io::Write;

use clap::Args;
use serde_json::{Value, json};

use super::arguments::{Format, KeepingArgs, Seconds};
use super::compare::Threshold;
use super::exit::{Exit, Failure};
use super::page_file::PageArgs;
use super::{Interrupt, say};
use crate::cli::compare::document::figure;
use analysis::{ERROR_RATE, Interference, LoadBeside};
use loads::Read;
use model::record::Run;
use report::html::Kept;
use report::{self, html};
use turns::{Measurement, Turned};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll beside --duration 30 --warmup 5 -- slob run -s 8 -- \\
    io run --path /u01/backup.dat --pattern read --block-size 1M
  plimsoll beside --rounds 9 --duration 60 --warmup 10 -- \\
    slob run -s 4 --rate 500 --target pg:/u01/pg -- \\
    io run --path /dev/sdb --pattern randread --depth 32
  plimsoll beside --duration 60 --warmup 10 -- \\
    orders run --users 16 --target postgres://bench@db1/bench -- \\
    io run --path /u01/backup.dat --pattern read --block-size 1M
  plimsoll beside --dry-run -- slob run 4 RUN_TIME=30 --warmup 5s -- \\
    io run --path /dev/sdb --pattern randread
  plimsoll beside --report last                       the last one again
  plimsoll beside --report 20261120-103000 -o beside.html

Plimsoll measures every load alone, then all of them together, in --rounds rounds. Every other round goes backwards. \
Loads that run together begin at the same time, once all of them are ready. Each is a run of its own, with tags for \
its load, round and turn.

Commands that can take part: `host run`, `io run`, `net run`, `orders run`, `slob run`.

The exit code is 1 if a load exceeded its own `--limit`, and 2 if no round is complete.";

/// Arguments of `plimsoll beside`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Two or more loads, each typed as a command of its own, behind `--`
    #[arg(value_name = "COMMAND", last = true, required_unless_present = "report")]
    words: Vec<OsString>,

    /// Times to measure every turn, in alternating order
    ///
    /// The turns are each load alone, and all together.
    ///
    /// From three rounds on, the evidence is how rounds differ.
    #[arg(
        long,
        value_name = "N",
        default_value = "5",
        value_parser = clap::value_parser!(u32).range(1..=99),
        conflicts_with = "report",
        help_heading = "Load"
    )]
    rounds: u32,

    /// Length of each measured window, in seconds or with a unit [default: that of the loads, if equal]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, conflicts_with = "report", help_heading = "Load")]
    duration: Option<Seconds>,

    /// Load before each measured window, recorded and marked [default: that of the loads, if equal]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, conflicts_with = "report", help_heading = "Load")]
    warmup: Option<Seconds>,

    /// Report on earlier measurements: `last`, or the tag `beside` of their runs
    #[arg(long, value_name = "GROUP", conflicts_with_all = ["words", "tags", "dry_run"], help_heading = "Output")]
    report: Option<String>,

    /// Smallest change that matters, in percent
    #[arg(long, value_name = "PERCENT", default_value = "5%", help_heading = "Output")]
    threshold: Threshold,

    #[command(flatten)]
    page: PageArgs,

    #[command(flatten)]
    keeping: KeepingArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let format = arguments.keeping.format.format();
    arguments.page.check(format)?;
    if arguments.page.is_picture() {
        let failure = Failure::new("what loads cost each other is written as a page, not as one picture");
        return Err(failure.with_hint("name it `-o FILE.html`".to_owned()));
    }
    arguments.keeping.push.check()?;
    let store = arguments.keeping.runs.store();
    if let Some(word) = &arguments.report {
        let (group, runs) = group::find(&store, word)?;
        return report(arguments, &group, runs).map(|()| Exit::Done);
    }
    let given = loads::Given {
        command: "beside",
        duration: arguments.duration.map(|Seconds(duration)| duration),
        warmup: arguments.warmup.map(|Seconds(warmup)| warmup),
        tags: &arguments.keeping.tags,
        push: arguments.keeping.push.flags(),
        runs: store.path(),
    };
    let (loads, measured) = match loads::read(&arguments.words, &given)? {
        Read::Loads(loads, measured) => (loads, measured),
        Read::Refused(exit) => return Ok(exit),
    };
    let group = group::fresh(&store);
    let measurement = Measurement { group, loads, measured, rounds: arguments.rounds };
    if arguments.keeping.dry_run {
        return measurement.described().print(Some(measurement.time()), false);
    }
    let interrupt = Interrupt::listen()?;
    let turned = turns::run(&measurement, &interrupt, arguments.keeping.progress.verbosity());
    finish(arguments, &measurement, turned, &interrupt)
}

/// Reports on what was measured, however it ended.
fn finish(
    arguments: &Arguments,
    measurement: &Measurement,
    turned: Turned,
    interrupt: &Interrupt,
) -> Result<Exit, Failure> {
    let Turned { runs, failure, limits } = turned;
    let (has_runs, group) = (!runs.is_empty(), &measurement.group);
    let reported = report(arguments, group, runs);
    if has_runs {
        say::line(format_args!("\nKept as `{group}`. Again: `plimsoll beside --report {group}`"));
    }
    if let Some(failure) = failure {
        // What ended it is what there is to say; that nothing was measured as a whole follows from it.
        return interrupt.judge(Err(failure));
    }
    if let Some(exit) = interrupt.exit() {
        say::note("the measurement was cut short; what was measured is kept");
        return Ok(exit);
    }
    match reported {
        Ok(()) | Err(Failure::PipeClosed) => {}
        Err(failure) => return Err(failure),
    }
    limits.words(&measurement.letters()).iter().for_each(say::note);
    Ok(limits.exit())
}

/// Writes the report, the page, or both.
fn report(arguments: &Arguments, group: &str, runs: Vec<Run>) -> Result<(), Failure> {
    let found = Interference::of(group, runs, arguments.threshold.0).map_err(|error| {
        Failure::new(error)
            .with_hint("measure it again, or with more `--rounds`: rounds that are whole count".to_owned())
    })?;
    let page = || {
        let mut page = Vec::new();
        html::interference(&mut page, &found, &Kept::File)?;
        Ok(page)
    };
    arguments.page.write(page, || Err(Failure::new("there is no picture of this")))?;
    match arguments.keeping.format.format() {
        Format::Json => say::json(&self::document(&found)),
        Format::Text if !arguments.page.has_text() => Ok(()),
        Format::Text => {
            let mut out = say::output();
            report::interference(&mut out, &found, say::width())?;
            out.flush()?;
            Ok(())
        }
    }
}

/// Version of this document's form. A field that is added does not raise it.
const FORMAT: u32 = 1;

fn document(found: &Interference) -> Value {
    json!({
        "format": FORMAT,
        "group": found.group,
        "rounds": found.rounds,
        "rounds_left_out": found.left_out,
        "threshold": found.threshold,
        "confidence": 1.0 - ERROR_RATE,
        "loads": found.loads.iter().map(load).collect::<Vec<_>>(),
        "sentence": found.sentence(),
    })
}

fn load(load: &LoadBeside) -> Value {
    let names: [&str; 2] = [0, 1].map(|side: usize| load.compared.names[side].as_str());
    let figures = load.figures().map(|one| {
        // Beside the change, what it is as a ratio: that is how people say what one load costs another.
        let mut object = figure(one, &load.letter, names);
        if let Some(comparison) = &one.comparison {
            let ratio = |change: f64| 1.0 + change;
            object["ratio"] = json!(ratio(comparison.change));
            object["ratio_low"] = json!(comparison.interval.map(|(low, _)| ratio(low)));
            object["ratio_high"] = json!(comparison.interval.map(|(_, high)| ratio(high)));
        }
        object
    });
    let side = |side: usize| {
        json!({
            "runs": load.ids[side],
            "operations_per_s": load.rates_per_s(side).collect::<Vec<_>>(),
            "p99_ns": load.p99s_ns(side).collect::<Vec<_>>(),
        })
    };
    let doubts =
        load.doubts_in_words().into_iter().map(|(sentence, advice)| json!({ "sentence": sentence, "advice": advice }));
    json!({
        "load": load.letter,
        "command": load.command,
        "target": load.target,
        "asked_operations_per_s": load.asked_per_s(),
        "alone": side(0),
        "together": side(1),
        "figures": figures.collect::<Vec<_>>(),
        "notes": load.notes,
        "doubts": doubts.collect::<Vec<_>>(),
    })
}
