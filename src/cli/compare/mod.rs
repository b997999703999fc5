//! `plimsoll compare`.

pub(super) mod document;
mod history;

use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use super::arguments::{Format, FormatArgs, RunsArgs, Taken};
use super::exit::{Exit, Failure};
use super::judged_files::JudgedArgs;
use super::page_file::PageArgs;
use super::say;
use analysis::{Compared, Repeats, joined};
use model::record::Run;
use model::record::store::Store;
use report::html::{Kept, Picture};
use report::{self, Detail, Suite};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll compare 20261120-10 20261120-11      the second against the first
  plimsoll compare before after --threshold 10%    only a tenth matters
  plimsoll compare p20 p30 p40 --baseline p30   many against one
  plimsoll compare a1,a2,a3 b1,b2,b3            three repeats of each
  plimsoll compare vm=d8s vm=d16s               all runs with each tag
  plimsoll compare before after -o comparison.html   charts, for a browser
  plimsoll compare before after -o comparison.png    one chart, for a mail
  plimsoll compare before after --full          every metric in a sentence
  plimsoll compare before after --json          for a program
  plimsoll compare before after --github        annotations of a workflow
  plimsoll compare --history db=prod            is tonight worse than before?
  plimsoll compare --history -o history.html    all runs, with charts

The exit code is 1 if a metric of any run is worse than the baseline's by more than the threshold. The difference \
must be real. It is 2 if nothing could be compared. To learn how one run differs from the next, make three or more \
alternating runs of each. Join those that repeat each other with commas.

With `--history`, runs of the same work, address and tags are followed over time. A change takes 12 runs before it and 4 \
after it. The exit code is 1 if a level is worse than the best before by more than the threshold. It is 2 if the \
latest run's loads have fewer than 16 runs, or the latest run lacks a load that the one before has. Once a loss is accepted, name only the runs since, such as by a tag.";

/// Arguments of `plimsoll compare`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Two or more runs: id, beginning of id, name, tag as in `vm=d8s`, directory, or `last`
    ///
    /// Join the repeats of a run with commas, or give one word that all of them match.
    #[arg(value_name = "RUN", required_unless_present = "history")]
    names: Vec<String>,

    /// Run to compare the others with [default: the first]
    #[arg(long, value_name = "RUN", conflicts_with = "history", help_heading = "Comparison")]
    baseline: Option<String>,

    /// Judge the latest runs against all earlier ones of the same load
    ///
    /// All matching runs are used [default: all].
    #[arg(long, help_heading = "Comparison")]
    history: bool,

    /// Smallest change that matters, in percent
    #[arg(long, value_name = "PERCENT", default_value = "5%", help_heading = "Comparison")]
    threshold: Threshold,

    #[command(flatten)]
    page: PageArgs,

    /// Also show every metric in a sentence, and incidental settings
    #[arg(long, conflicts_with = "github", help_heading = "Output")]
    full: bool,

    #[command(flatten)]
    judged: JudgedArgs,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    runs: RunsArgs,
}

/// A share of one, written in percent: `5%` or `5`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Threshold(pub(super) f64);

const MAX_PERCENT: f64 = 1_000.0;

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.trim();
        match number.strip_suffix('%').unwrap_or(number).trim_end().parse::<f64>() {
            Ok(percent) if (0.0..=MAX_PERCENT).contains(&percent) => Ok(Self(percent / 100.0)),
            _ => Err(ThresholdError { text: text.to_owned() }),
        }
    }
}

/// A text that is no threshold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a threshold in percent such as `5%` or `2.5`, from 0 to 1000")]
pub(super) struct ThresholdError {
    text: String,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    arguments.page.check(arguments.format.format())?;
    if arguments.history {
        return history::run(arguments);
    }
    let (sides, baseline) = load(arguments)?;
    let compared = Compared::of_repeats(&sides, baseline, arguments.threshold.0).ok_or_else(too_few)?;
    let runs: Vec<&Run> = sides.iter().map(|side| &side.run).collect();
    let suites = Suite::of_comparison(&compared, &runs);
    let is_compared = suites.iter().any(|suite| suite.count() > 0);
    if is_compared {
        arguments.judged.write(&suites, |out| report::markdown::write_suites(&suites, out))?;
    }
    if arguments.judged.is_github() && is_compared {
        write_page(&compared, &runs, &arguments.page)?;
        arguments.judged.annotate(&suites)?;
    } else {
        report_sides(&compared, &sides, &arguments.page, arguments.full, arguments.format.format())?;
    }
    // A pipeline that compared nothing must not go on as if nothing had become worse.
    if !is_compared {
        let failure = Failure::new("nothing was compared: no run has a load and a figure in common with the baseline");
        let are_maps = runs.iter().all(|run| run.load.map().is_some());
        let hint = match are_maps {
            true => "maps have no load in common; `plimsoll report RUN -o FILE.png` draws each",
            false => "run the same loads on both sides; what each has is reported above",
        };
        return Err(failure.with_hint(hint.to_owned()));
    }
    Ok(if compared.has_regression() { Exit::NotMet } else { Exit::Done })
}

/// Tells a comparison: as a page or a picture where one is asked for, as text, or for a program.
pub(super) fn report_sides(
    compared: &Compared,
    sides: &[Repeats],
    place: &PageArgs,
    full: bool,
    format: Format,
) -> Result<(), Failure> {
    let runs: Vec<&Run> = sides.iter().map(|side| &side.run).collect();
    write_page(compared, &runs, place)?;
    match format {
        Format::Json => say::json(&document::document(compared, sides))?,
        Format::Text if !place.has_text() => {}
        Format::Text => {
            let detail = if full { Detail::Full } else { Detail::Brief };
            let mut out = say::output();
            report::comparison(&mut out, compared, &runs, detail, say::width())?;
            out.flush()?;
        }
    }
    Ok(())
}

fn write_page(compared: &Compared, runs: &[&Run], place: &PageArgs) -> Result<(), Failure> {
    let page = || {
        let mut page = Vec::new();
        report::html::comparison(&mut page, compared, runs, &[], &Kept::File)?;
        Ok(page)
    };
    let picture = || Picture::of_comparison(compared, runs).ok_or_else(nothing_to_draw);
    place.write(page, picture)
}

fn nothing_to_draw() -> Failure {
    Failure::new("these runs have nothing to draw: neither two steps with a rate and a latency, nor a load in common")
        .with_hint("`-o FILE.html` has all that was compared".to_owned())
}

fn too_few() -> Failure {
    Failure::new("a comparison takes two runs or more")
        .with_hint("name another one: `plimsoll runs list` shows what is kept".to_owned())
}

/// The sides in the order in which they were named, and the index of the baseline.
fn load(arguments: &Arguments) -> Result<(Vec<Repeats>, usize), Failure> {
    let store = arguments.runs.store();
    let mut taken = Taken::default();
    let mut sides: Vec<(Vec<PathBuf>, Repeats)> = Vec::new();
    for name in &arguments.names {
        sides.push(side(&store, name, &mut taken)?);
    }
    let mut baseline = 0;
    if let Some(name) = &arguments.baseline {
        let (places, side) = side(&store, name, &mut Taken::default())?;
        let known = sides.iter().position(|(known, _)| known.iter().any(|place| places.contains(place)));
        baseline = known.unwrap_or_else(|| {
            sides.insert(0, (places, side));
            0
        });
    }
    if sides.len() < 2 {
        return Err(too_few());
    }
    Ok((sides.into_iter().map(|(_, side)| side).collect(), baseline))
}

/// One run, or several joined with commas, and where they are kept. A run whose own name holds a comma is found first.
fn side(store: &Store, name: &str, taken: &mut Taken) -> Result<(Vec<PathBuf>, Repeats), Failure> {
    let names: Vec<&str> = if name.contains(',') && store.find_all(name).is_err() {
        name.split(',').map(str::trim).filter(|name| !name.is_empty()).collect()
    } else {
        vec![name]
    };
    let (mut places, mut runs) = (Vec::new(), Vec::new());
    for name in names {
        for (place, run) in taken.load_each(store, name)? {
            places.push(place);
            runs.push(joined(run));
        }
    }
    let side = Repeats::of(runs).ok_or_else(too_few)?;
    let side = side
        .map_err(|error| Failure::new(error).with_hint("name runs that are compared one by one: `A B`".to_owned()))?;
    Ok((places, side))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_in_percent_with_or_without_the_sign() {
        for (text, share) in [("5%", 0.05), ("5", 0.05), (" 2.5 % ", 0.025), ("0", 0.0), ("1000%", 10.0)] {
            assert_eq!(text.parse(), Ok(Threshold(share)), "{text}");
        }
        for text in ["", "%", "five", "-1%", "1001", "nan", "inf", "5%%"] {
            let error = text.parse::<Threshold>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}` is not a threshold in percent such as")), "{error}");
        }
    }
}
