//! What is to be carried, from flags and from runs that report what a database needs.

use clap::Args;

use crate::cli::arguments::RunsArgs;
use crate::cli::exit::Failure;
use crate::cli::like::one_database;
use crate::cli::say;
use crate::cli::trend::load;
use crate::plan::like::split;
use analysis::LatencyTarget;
use analysis::capacity::{Demand as Needs, Share};
use model::record::{Demand, Demands, Metric, Run, Throughput, Within};
use model::units::{Bytes, Nanos, group_thousands};

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

    /// Large reads one after the other: `800MB/s`; a bare number is megabytes
    #[arg(long, value_name = "MB/s", help_heading = "Demand")]
    scan: Option<Throughput>,

    /// Take the rates from runs that report what a database needs, such as imported AWR reports: their peaks, with p99 of reads within
    /// 5 ms and of commits within 10 ms; flags that are given stand instead. May be given many times
    #[arg(long, value_name = "RUN", help_heading = "Demand")]
    like: Vec<String>,
}

impl DemandArgs {
    /// All demands.
    pub(super) fn read(&self, runs: &RunsArgs, block_bytes: u32) -> Result<Demands, Failure> {
        let like = match self.like.as_slice() {
            [] => Demands::default(),
            names => needs(&load(names, runs)?, block_bytes)?,
        };
        let demands = Demands {
            reads: self.reads.or(like.reads),
            writes: self.writes.or(like.writes),
            commits: self.commits.or(like.commits),
            scan: self.scan.or(like.scan),
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

/// What the busiest windows of one database need, which is said with the windows.
fn needs(runs: &[Run], block_bytes: u32) -> Result<Demands, Failure> {
    let trend = &one_database(runs)?;
    let runs: Vec<&Run> = runs.iter().collect();
    let rates = Needs::of(trend, &runs, Share::Peak, &LatencyTarget::default()).rates;
    let demand = |per_s: Option<f64>, within| {
        let per_s = per_s.filter(|per_s| *per_s >= 1.0)?.ceil();
        Some(Demand { per_s, within })
    };
    let megabytes = trend.summary(Metric::ReadMegabytes).map(|summary| summary.peak);
    let (single, scan) = split(rates.reads, megabytes.map(|megabytes| megabytes * 1e6), block_bytes);
    let scan = scan.map(Throughput);
    let demands = Demands {
        reads: demand(single, Some(READS_WITHIN)),
        writes: demand(rates.writes, None),
        commits: demand(rates.commits, Some(COMMITS_WITHIN)),
        scan,
    };
    if demands.is_empty() {
        let failure = Failure::new("the runs of `--like` report neither reads, writes nor commits per second");
        return Err(failure.with_hint("say what is to be carried: `--reads 20000@5ms`".to_owned()));
    }
    let name = &trend.database.name;
    for (noun, measure) in [
        ("reads/s", Metric::Reads),
        ("MB/s read", Metric::ReadMegabytes),
        ("writes/s", Metric::Writes),
        ("commits/s", Metric::Commits),
    ] {
        if let Some(summary) = trend.summary(measure)
            && let Some(window) = trend.windows.get(summary.peak_at)
        {
            let (peak, run) = (group_thousands(summary.peak), &window.run);
            say::line(format_args!("{name}: {peak} {noun} at most, from {} to {} ({run})", window.from, window.to));
        }
    }
    match (scan, rates.reads, megabytes) {
        (Some(_), Some(reads), Some(megabytes)) => say::line(format_args!(
            "its reads are of {} in the mean: the large ones are asked for as a scan",
            Bytes((megabytes * 1e6 / reads) as u64)
        )),
        (None, Some(_), None) => {
            say::note("how large its reads are is not reported: each is asked for as one of a block");
        }
        _ => {}
    }
    Ok(demands)
}
