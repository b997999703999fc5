//! `plimsoll fit`.

use std::io::Write;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::arguments::{FormatArgs, Reader, RunsArgs, Taken};
use super::exit::{Exit, Failure};
use super::say;
use super::trend::load;
use crate::analysis::capacity::{Answer, Demand, Fit, Platform, Respect, Share};
use crate::analysis::trend::{Trend, Trends};
use crate::analysis::{LatencyTarget, QuantileValue};
use crate::record::Run;
use crate::report;
use crate::report::fit::{doubt_advice, doubt_sentence, headrooms, sentence, verdict, word};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll fit --demand 20261103-100000-awr --capacity last
  plimsoll fit --demand 202610 --capacity 20261120-120502 --at p95
  plimsoll fit --demand 202610 --capacity p30x2 --limit p99=10ms
  plimsoll fit --demand 202610 --capacity p30x2 --json      for a program

The first holds one AWR report against the last run, the second October's reports, and what was enough for 95 % of the \
time. The exit code is 0 if the platform carries the database, 1 if it does not, and 2 if that cannot be known. Nothing is \
extrapolated: beyond the largest level that was measured capacity is `at least`, and between a level that met the target \
and one that missed it nobody knows.";

/// Arguments of `plimsoll fit`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Runs that tell what a database needs, such as imported AWR reports: id, beginning of ids, name, tag as in `db=prod`, directory, or `last`; all that answer to it
    #[arg(long, value_name = "RUN", required = true, num_args = 1.., help_heading = "Question")]
    demand: Vec<String>,

    /// Run that tells what a platform carries: a sweep, or any imported result with a latency; one id, beginning of an id, name, tag, directory, or `last`
    #[arg(long, value_name = "RUN", help_heading = "Question")]
    capacity: String,

    /// How much of the demand is to be carried
    #[arg(long, value_name = "SHARE", value_enum, default_value_t, help_heading = "Question")]
    at: At,

    /// Latency that the platform must keep, such as `p99=5ms` or `db file sequential read:p99=10ms` [default: p99=5ms]
    #[arg(long, value_name = "[EVENT:]pQ=TIME", help_heading = "Question")]
    limit: Option<LatencyTarget>,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    runs: RunsArgs,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum At {
    /// The busiest window
    #[default]
    Peak,
    /// What was not exceeded in 99 % of the time
    P99,
    /// What was not exceeded in 95 % of the time
    P95,
    /// What was not exceeded in 90 % of the time
    P90,
}

impl At {
    fn share(self) -> Share {
        match self {
            Self::Peak => Share::Peak,
            Self::P99 => Share::Quantile(0.99),
            Self::P95 => Share::Quantile(0.95),
            Self::P90 => Share::Quantile(0.9),
        }
    }
}

pub(super) fn carry_out(arguments: &Arguments) -> Result<Exit, Failure> {
    let given = load(&arguments.demand, &arguments.runs)?;
    let given: Vec<&Run> = given.iter().collect();
    let (_, run) = Taken::default().load(&arguments.runs.store(), &arguments.capacity)?;
    let trend = one_database(&Trends::of(&given))?;
    let target = arguments.limit.clone().unwrap_or_default();
    let demand = Demand::of(&trend, &given, arguments.at.share(), &target);
    let platform = Platform::of(&run, &target);
    if platform.levels.is_empty() {
        let failure = Failure::new(format_args!("run `{}` has no level that was measured to its end", run.id));
        return Err(failure.with_hint("name a run with load levels: `--capacity RUN`".to_owned()));
    }
    let fit = Fit::of(&demand, &platform, &run, &target);
    match arguments.format.reader() {
        Reader::Program => say::json(&document(&fit, &demand, &platform))?,
        Reader::Person => {
            let mut out = say::output();
            report::fit::fit(&mut out, &fit, &demand, &platform, say::width())?;
            out.flush()?;
        }
    }
    Ok(match fit.answer {
        Answer::Carries => Exit::Done,
        Answer::DoesNot => Exit::NotMet,
        Answer::Unknown(_) => Exit::CouldNot,
    })
}

/// The demand of several databases is no demand of one: what they need at once nobody knows from their peaks.
pub(super) fn one_database(trends: &Trends) -> Result<Trend, Failure> {
    match trends.trends.as_slice() {
        [one] => Ok(one.clone()),
        [] => {
            let failure = Failure::new("none of the runs of `--demand` tells both when it was and for how long");
            Err(failure.with_hint("`plimsoll trend RUN...` says why each is left out".to_owned()))
        }
        several => {
            let names: Vec<String> = several.iter().map(|trend| format!("`{}`", trend.database.name)).collect();
            let failure = Failure::new(format_args!(
                "the runs of `--demand` are of more than one database: {}",
                names.join(", ")
            ));
            let hint = "name runs of one database, and of one instance or of all instances together";
            Err(failure.with_hint(hint.to_owned()))
        }
    }
}

fn in_ms(value: QuantileValue) -> f64 {
    value.ns.0 as f64 / 1e6
}

fn document(fit: &Fit, demand: &Demand, platform: &Platform) -> Value {
    let compared = headrooms(fit).map(|(compared, headroom)| {
        json!({
            "figure": compared.respect.key(),
            "demand": compared.demand,
            "capacity": compared.capacity,
            "headroom": headroom,
            "decisive": compared.is_decisive,
        })
    });
    let level = |level: &crate::analysis::capacity::Level| {
        json!({
            "level": level.label,
            "seconds": level.seconds,
            "reads_per_s": level.rates.reads,
            "writes_per_s": level.rates.writes,
            "megabytes_per_s": level.rates.megabytes,
            "mean_ms": level.mean_ms,
            "quantile_ms": level.quantile.map(in_ms),
            "quantile_is_bound": level.quantile.map(|value| value.is_bound),
            "target": verdict(level.verdict),
        })
    };
    let there = fit.latency.as_ref().map(|there| {
        json!({
            "mean_ms": there.mean_ms,
            "quantile_ms": there.quantile.map(in_ms),
            "quantile_is_bound": there.quantile.map(|value| value.is_bound),
            "levels": there.levels,
            "below_least_level": there.is_below,
        })
    });
    let own = demand.window.as_ref().map(|window| {
        json!({
            "run": window.run,
            "from": window.from.to_string(),
            "to": window.to.to_string(),
            "judged": window.subject,
            "mean_ms": window.mean_ms,
            "quantile_at_most_ms": window.quantile.map(in_ms),
        })
    });
    let doubts =
        fit.doubts.iter().map(|doubt| json!({ "sentence": doubt_sentence(doubt), "advice": doubt_advice(doubt) }));
    json!({
        "format": 1,
        "answer": word(fit.answer),
        "sentence": sentence(fit, demand, platform),
        "database": demand.database,
        "at": demand.share.name(),
        "windows": demand.windows,
        "covered_share": demand.covered_share,
        "target": platform.target.to_string(),
        "compared": compared.collect::<Vec<_>>(),
        "binding": fit.binding.map(Respect::key),
        "headroom": fit.headroom(),
        "at_least": fit.is_at_least,
        "level": fit.level,
        "levels": platform.levels.iter().map(level).collect::<Vec<_>>(),
        "latency": { "platform": there, "database": own },
        "doubts": doubts.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::record::sample;
    use crate::record::sample::windows::{Hour, QUICK, report};
    use crate::record::store::Store;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn exit_of(store: &Store, words: &[&str]) -> Result<Exit, Failure> {
        let runs = store.path().to_str().unwrap();
        let words = ["fit"].iter().chain(words).copied().chain(["--json", "--runs", runs]);
        carry_out(&Line::try_parse_from(words).unwrap().arguments)
    }

    #[test]
    fn the_exit_code_is_the_answer() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        let sweep = sample::sweep(3);
        store.save(&sweep).unwrap();
        let demand = |at, reads_per_s, writes_per_s| {
            let run = report(Hour { at, minutes: 60, reads_per_s, writes_per_s, within_ms: QUICK });
            store.save(&run).unwrap();
            run.id
        };
        let (carried, beyond, mixed) = (demand(1, 20_000, 0), demand(2, 50_000, 0), demand(3, 20_000, 5_000));
        for (id, exit) in [(&carried, Exit::Done), (&beyond, Exit::NotMet), (&mixed, Exit::CouldNot)] {
            assert_eq!(exit_of(&store, &["--demand", id, "--capacity", &sweep.id]).unwrap(), exit, "{id}");
        }
        let strict = ["--demand", &carried, "--capacity", &sweep.id, "--limit", "p99=1us", "--at", "p95"];
        assert_eq!(exit_of(&store, &strict).unwrap(), Exit::NotMet);
        let two = ["--demand", &carried, &sweep.id, "--capacity", &sweep.id];
        assert!(
            matches!(exit_of(&store, &two), Err(Failure::Told(told)) if told.message.contains("more than one database"))
        );
    }
}
