//! What is to be carried, from flags and from runs that report what a database needs.

use clap::Args;

use crate::analysis::LatencyTarget;
use crate::analysis::capacity::{Demand as Needs, Share};
use crate::analysis::trend::Trends;
use crate::cli::arguments::RunsArgs;
use crate::cli::exit::Failure;
use crate::cli::trend::load;
use crate::record::{Demand, Demands, Run, Throughput, Within};
use crate::units::Nanos;

/// How soon reads and commits that come from `--like` must be done: 99 of 100 within what databases are usually judged by.
const READS_WITHIN: Within = Within { quantile: 0.99, limit: Nanos::millis(5) };
const COMMITS_WITHIN: Within = Within { quantile: 0.99, limit: Nanos::millis(10) };

/// Flags that say what is to be carried.
#[derive(Debug, Args)]
pub(super) struct DemandArgs {
    /// Reads of one block per second at random places, and how soon: `20000@5ms` means p99 within 5 ms, `@p99.9=5ms` another
    /// percentile
    #[arg(long, value_name = "N@TIME", help_heading = "Demand")]
    reads: Option<Demand>,

    /// Writes of one block per second. On raw storage each is durable by itself; with --commits they are what commits have changed,
    /// and a time is not judged
    #[arg(long, value_name = "N@TIME", help_heading = "Demand")]
    writes: Option<Demand>,

    /// Durable commits per second, and how soon
    #[arg(long, value_name = "N@TIME", help_heading = "Demand")]
    commits: Option<Demand>,

    /// Large reads one after the other, in bytes per second
    #[arg(long, value_name = "MB/s", help_heading = "Demand")]
    scan: Option<Throughput>,

    /// Take the rates from runs that report what a database needs, such as imported AWR reports: their peaks, with p99 of reads within
    /// 5 ms and of commits within 10 ms; flags that are given stand instead. May be given many times
    #[arg(long, value_name = "RUN", help_heading = "Demand")]
    like: Vec<String>,
}

impl DemandArgs {
    /// All demands.
    pub(super) fn read(&self, runs: &RunsArgs) -> Result<Demands, Failure> {
        let like = if self.like.is_empty() { Demands::default() } else { needs(&load(&self.like, runs)?)? };
        let demands = Demands {
            reads: self.reads.or(like.reads),
            writes: self.writes.or(like.writes),
            commits: self.commits.or(like.commits),
            scan: self.scan,
        };
        if demands.is_empty() {
            let failure = Failure::new("nothing is asked for");
            return Err(
                failure.with_hint("say what is to be carried: `--reads 20000@5ms --commits 200@10ms`".to_owned())
            );
        }
        if demands.commits.is_some() && self.writes.is_some_and(|writes| writes.within.is_some()) {
            let failure = Failure::new("beside commits, writes cannot be asked to be done in a time");
            let hint = "a database writes in the background, where nobody waits: give `--writes` a rate alone";
            return Err(failure.with_hint(hint.to_owned()));
        }
        Ok(demands)
    }
}

/// What the busiest windows of one database need.
fn needs(runs: &[Run]) -> Result<Demands, Failure> {
    let runs: Vec<&Run> = runs.iter().collect();
    let trends = Trends::of(&runs).trends;
    let [trend] = trends.as_slice() else {
        let failure = match trends.as_slice() {
            [] => Failure::new("none of the runs of `--like` says both when it was and for how long"),
            _ => Failure::new("the runs of `--like` are of more than one database"),
        };
        return Err(
            failure.with_hint("name runs of one database; `plimsoll trend RUN...` says which each is of".to_owned())
        );
    };
    let rates = Needs::of(trend, &runs, Share::Peak, &LatencyTarget::default()).rates;
    let demand = |per_s: Option<f64>, within| {
        let per_s = per_s.filter(|per_s| *per_s >= 1.0)?.ceil();
        Some(Demand { per_s, within })
    };
    let commits = demand(rates.commits, Some(COMMITS_WITHIN));
    let demands = Demands {
        reads: demand(rates.reads, Some(READS_WITHIN)),
        writes: demand(rates.writes, None),
        commits,
        scan: None,
    };
    if demands.is_empty() {
        let failure = Failure::new("the runs of `--like` report neither reads, writes nor commits per second");
        return Err(failure.with_hint("say what is to be carried: `--reads 20000@5ms`".to_owned()));
    }
    Ok(demands)
}
