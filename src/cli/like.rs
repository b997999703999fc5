//! `--like`: a load that is made like what runs report of a production.

use std::io::{self, Write};

use clap::{Args, ValueEnum};

use super::arguments::RunsArgs;
use super::exit::Failure;
use super::say;
use super::trend::load;
use analysis::capacity::is_one_of_cluster;
use analysis::production::{self, Moment};
use analysis::trend::{Trend, Trends};
use model::config::io::read_rate;
use model::record::{Like, Run};
use model::units::group_thousands;

/// Which production, and which moment of it.
#[derive(Debug, Args)]
pub(super) struct LikeArgs {
    /// Take the rates from this run, such as an imported AWR report (repeatable)
    ///
    /// The rates are those of reads, writes, commits and redo.
    ///
    /// The run is an id, the beginning of ids, a name, a tag or a directory. All matching runs are used.
    #[arg(long, value_name = "RUN", help_heading = "Like production")]
    like: Vec<String>,

    /// Moment to take: `peak`, `p95`, `mean`, or an hour of the day from 0 to 23 [default: peak]
    ///
    /// `peak` is the busiest window, `p95` the load that was not exceeded in 95 % of the time.
    #[arg(long, value_name = "MOMENT", requires = "like", help_heading = "Like production")]
    at: Option<Moment>,
}

/// What of a day is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Shape {
    /// Each known hour of the day, one step each
    Day,
}

/// Multiples that make sense.
pub(super) fn read_times(text: &str) -> Result<f64, String> {
    read_rate(text.trim().trim_end_matches(['x', 'X', '×']))
        .ok_or_else(|| "write a multiple such as `2` or `1.5`".to_owned())
}

/// A flag that says what production says.
pub(super) fn refuse(flag: Option<&str>) -> Result<(), Failure> {
    let Some(flag) = flag else { return Ok(()) };
    let failure = Failure::new(format_args!("`{flag}` beside `--like`, which takes that from a run"));
    Err(failure.with_hint("leave it out; `--dry-run` says by what the load is made like production".to_owned()))
}

impl LikeArgs {
    /// Whether it is asked for.
    pub(super) fn is_asked(&self) -> bool {
        !self.like.is_empty()
    }

    /// What the database did.
    pub(super) fn production(&self, shape: Option<Shape>, runs: &RunsArgs) -> Result<Like, Failure> {
        let found = load(&self.like, runs).map_err(|failure| with_import_hint(failure, &self.like))?;
        let trend = one_database(&found)?;
        let made = match shape {
            None => production::at(&trend, self.at.unwrap_or(Moment::Peak)),
            Some(Shape::Day) => production::day(&trend),
        };
        made.map_err(|why| {
            Failure::new(why).with_hint(format!("`plimsoll trend {}` shows when they are of", self.like.join(" ")))
        })
    }
}

/// A file that was meant to be imported first is often named.
fn with_import_hint(failure: Failure, words: &[String]) -> Failure {
    match words.iter().find(|word| std::path::Path::new(word).is_file()) {
        Some(file) => {
            failure.with_hint(format!("import it first: `plimsoll import {file}`, which says what it is called then"))
        }
        None => failure,
    }
}

/// The windows of the one database that runs are of.
///
/// # Errors
/// If they are of none, or of several.
pub(super) fn one_database(runs: &[Run]) -> Result<Trend, Failure> {
    let runs: Vec<&Run> = runs.iter().collect();
    let mut trends = Trends::of(&runs).trends;
    match (trends.pop(), trends.is_empty()) {
        (Some(trend), true) => {
            if is_one_of_cluster(&trend, &runs) {
                let name = &trend.database.name;
                say::note(format_args!("`{name}` is one instance of a cluster: the load of the others is not in it"));
            }
            Ok(trend)
        }
        (found, _) => {
            let failure = match found {
                None => Failure::new("none of the runs of `--like` says both when it was and for how long"),
                Some(_) => Failure::new("the runs of `--like` are of more than one database"),
            };
            let hint = "name runs of one database; `plimsoll trend RUN...` says which each is of";
            Err(failure.with_hint(hint.to_owned()))
        }
    }
}

/// Writes what is reproduced of production, by what, and what is not.
pub(super) fn write(out: &mut impl Write, like: &Like) -> io::Result<()> {
    let busiest = like.moments.iter().max_by_key(|moment| moment.asked.len());
    for moment in &like.moments {
        let name = if like.moments.len() > 1 { format!("hour {}, ", moment.name) } else { String::new() };
        writeln!(out, "like       {}: {name}{}", like.database, moment.words)?;
    }
    let Some(moment) = busiest else { return Ok(()) };
    let value = |figure: model::record::WorkFigure, of: &model::record::Work| {
        of.get(&figure).map_or_else(|| "-".to_owned(), |value| number(value / figure.scale()))
    };
    let (asked, not): (Vec<_>, Vec<_>) = like.aspects.iter().partition(|aspect| aspect.by.is_some());
    writeln!(out, "\nreproduced, once: production, asked, by what")?;
    for aspect in asked {
        let (figure, by) = (aspect.figure, aspect.by.as_deref().unwrap_or_default());
        let (of_production, of_load) = (value(figure, &moment.work), value(figure, &moment.asked));
        writeln!(out, "  {:<20} {of_production:>10} {of_load:>10}  {by}", figure.name())?;
        if let Some(gap) = &aspect.gap {
            writeln!(out, "  {:<20} {:>10} {:>10}  but: {gap}", "", "", "")?;
        }
    }
    if !not.is_empty() {
        writeln!(out, "\nnot reproduced: production, why")?;
    }
    for aspect in not {
        let (figure, why) = (aspect.figure, aspect.gap.as_deref().unwrap_or_default());
        writeln!(out, "  {:<20} {:>10}  {why}", figure.name(), value(figure, &moment.work))?;
    }
    writeln!(out)
}

fn number(value: f64) -> String {
    if value < 99.95 && value.fract() != 0.0 { format!("{value:.2}") } else { group_thousands(value) }
}
