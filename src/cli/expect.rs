//! `plimsoll expect`.

use std::io::Write;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::arguments::{Format, FormatArgs};
use super::exit::{Exit, Failure};
use super::platforms::{PlatformsArgs, today};
use super::say;
use model::platforms::{self, Asked, Catalogue, Combination, Expectation, Phase, Unpublished, sentences};
use model::units::Bytes;
use report;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll expect --machine M64s --volume p30x32 --nodes 2
  plimsoll expect --machine M64s --volume p30x32 --nodes 2 --cache read \\
                  --cache-hit 30 --redundancy normal --read-pct 90
  plimsoll expect --machine m5.large --volume gp2:100Gx4 --block-size 16K
  plimsoll expect --machine r5b.4xlarge --volume io2bx:1T,iops=40000 --json
  plimsoll expect --machine i3.2xlarge --volume local

A volume is NAME, then what was bought for each after a colon, then how many there are on all nodes together after `x`. \
`plimsoll platforms list` shows the names. Nothing is measured: these are limits that clouds publish, each with where.";

/// Arguments of `plimsoll expect`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Machine type of each node, such as `Standard_D8s_v3` or `d8s`
    #[arg(long, value_name = "NAME", help_heading = "Platform")]
    machine: String,

    /// Volumes of all nodes together: `p30x32`, `gp2:500Gx4`, or `local`
    ///
    /// Settings follow a comma, as in `gp3:1T,iops=16000,throughput=500x8`.
    ///
    /// Throughput is in the unit in which the cloud sells it. `local` is storage built into the machine.
    #[arg(long, value_name = "VOLUMES", help_heading = "Platform")]
    volume: String,

    /// Number of nodes that share the load
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000), help_heading = "Platform")]
    nodes: u32,

    /// Host cache in front of the volumes
    #[arg(long, value_enum, default_value_t, help_heading = "Platform")]
    cache: CacheChoice,

    /// Copies of each write: one, two or three
    #[arg(long, value_enum, default_value_t, help_heading = "Platform")]
    redundancy: RedundancyChoice,

    /// Reads, in percent of the requests
    #[arg(long, value_name = "PCT", default_value_t = 100, value_parser = clap::value_parser!(u8).range(0..=100), help_heading = "Load")]
    read_pct: u8,

    /// Size of a request
    #[arg(long, value_name = "SIZE", default_value = "8K", help_heading = "Load")]
    block_size: Bytes,

    /// Reads that the host cache serves, in percent of all reads (with `--cache read`)
    #[arg(long, value_name = "PCT", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=100), help_heading = "Load")]
    cache_hit: u8,

    #[command(flatten)]
    files: PlatformsArgs,

    #[command(flatten)]
    format: FormatArgs,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum CacheChoice {
    /// No cache
    #[default]
    None,
    /// A cache for reads
    Read,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(super) enum RedundancyChoice {
    /// One copy
    #[default]
    External,
    /// Two copies
    Normal,
    /// Three copies
    High,
}

impl From<CacheChoice> for platforms::Cache {
    fn from(choice: CacheChoice) -> Self {
        match choice {
            CacheChoice::None => Self::None,
            CacheChoice::Read => Self::Read,
        }
    }
}

impl From<RedundancyChoice> for platforms::Redundancy {
    fn from(choice: RedundancyChoice) -> Self {
        match choice {
            RedundancyChoice::External => Self::External,
            RedundancyChoice::Normal => Self::Normal,
            RedundancyChoice::High => Self::High,
        }
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if arguments.block_size.0 == 0 {
        let failure = Failure::new("`--block-size 0` is not a size of a request");
        return Err(failure.with_hint("leave it out for 8K, or name one, as in `--block-size 64K`".to_owned()));
    }
    if arguments.cache_hit > 0 && arguments.cache == CacheChoice::None {
        let failure = Failure::new("`--cache-hit` without the host's cache");
        return Err(failure.with_hint("add `--cache read`".to_owned()));
    }
    let catalogue = arguments.files.catalogue()?;
    let machine = (arguments.machine.as_str(), arguments.nodes);
    let (cache, redundancy) = (arguments.cache.into(), arguments.redundancy.into());
    let platform = Combination::parse(&catalogue, machine, &arguments.volume, cache, redundancy)
        .map_err(|problem| Failure::new(&problem).with_hint(problem.hint()))?;
    let asked = Asked {
        read_share: f64::from(arguments.read_pct) / 100.0,
        block_bytes: arguments.block_size.0 as f64,
        hit_share: f64::from(arguments.cache_hit) / 100.0,
    };
    let expectation = Expectation::of(&platform, asked);
    match arguments.format.format() {
        Format::Json => say::json(&document(&platform, &expectation, &catalogue))?,
        Format::Text => {
            let mut out = say::output();
            report::platforms::expectation(&mut out, &platform, &expectation, (&catalogue, today()), say::width())?;
            out.flush()?;
        }
    }
    Ok(Exit::Done)
}

/// The volumes of a platform as documents have them; none where it has none.
pub(super) fn volumes_of(platform: &Combination) -> Option<Value> {
    platform.volumes.as_ref().map(|volumes| {
        json!({
            "name": volumes.kind.name,
            "count": volumes.count,
            "size_gib": volumes.size_gib,
            "iops_each": volumes.each.iops,
            "megabytes_per_s_each": volumes.each.mb_per_s,
        })
    })
}

fn document(platform: &Combination, expectation: &Expectation, catalogue: &Catalogue) -> Value {
    let limits = expectation.limits.iter().map(|limit| {
        json!({
            "limit": limit.whose,
            "unit": if limit.whose.is_of_requests() { "requests/s" } else { "MB/s" },
            "per_s": limit.per_s,
            "use_of_one_request": limit.use_of_one,
            "binds_at_requests_per_s": limit.binds_at(false),
            "credit": limit.credit,
            "credit_lasts_s": report::platforms::credit_length(limit),
        })
    });
    let others = report::platforms::other_loads(platform, &expectation.asked).into_iter().flatten();
    let volumes = volumes_of(platform);
    let unpublished = Unpublished::of(platform, &expectation.asked);
    let phase = |it: Phase| phase(it, &expectation.asked, &unpublished);
    json!({
        "format": 1,
        "platform": {
            "machine": platform.machine.name,
            "nodes": platform.nodes,
            "volumes": volumes,
            "host_cache": platform.cache == platforms::Cache::Read,
            "redundancy": platform.redundancy.name(),
            "network_mbit_per_s_each": platform.machine.network_mbit,
            "network_burst_mbit_per_s_each": platform.machine.network_burst_mbit,
        },
        "load": load(&expectation.asked),
        "sustained": expectation.sustained().map(phase),
        "phases": expectation.phases.iter().copied().map(phase).collect::<Vec<_>>(),
        "seconds_to_sustained": expectation.seconds_to_sustained(),
        "limits": limits.collect::<Vec<_>>(),
        "no_limit_is_known_of": unpublished.limits,
        "other_loads": others.map(|asked| other(platform, asked)).collect::<Vec<_>>(),
        "sentences": sentences(platform, expectation),
        "cautions": platform.cautions(today()),
        "sources": report::platforms::sources_of(platform, catalogue),
    })
}

fn load(asked: &Asked) -> Value {
    json!({ "read_share": asked.read_share, "block_bytes": asked.block_bytes, "cache_hit_share": asked.hit_share })
}

fn phase(phase: Phase, asked: &Asked, unpublished: &Unpublished) -> Value {
    let megabytes = (!unpublished.has_no_bytes).then_some(phase.per_s * asked.block_bytes / 1e6);
    json!({
        "requests_per_s": phase.per_s,
        "megabytes_per_s": megabytes,
        "binds": phase.whose,
        "seconds": phase.seconds,
        "ends_with_credit_of": phase.ends,
    })
}

fn other(platform: &Combination, asked: Asked) -> Value {
    let expectation = Expectation::of(platform, asked);
    let unpublished = Unpublished::of(platform, &asked);
    let phase = |it: Phase| phase(it, &asked, &unpublished);
    json!({
        "load": load(&asked),
        "sustained": expectation.sustained().map(phase),
        "burst": expectation.burst().map(phase),
        "no_limit_is_known_of": unpublished.limits,
    })
}
