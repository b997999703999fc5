//! `plimsoll io sweep`.

use clap::Args;

use super::arguments::{OutputArgs, ShapeArgs, TimeArgs, VolumeArgs};
use super::connections;
use super::measure::{self, Job};
use crate::cli::exit::{Exit, Failure};
use crate::plan::io::open_loop_depth;
use model::config::io::{ConnectionList, Connections, DepthList, RateRange, Volumes};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll io sweep --path /u01/test.dat --pattern randread --depth 1,2,4,…,256
  plimsoll io sweep --path /u01/test.dat --pattern read --block-size 1M \\
    --depth 1..16 --duration 20
  plimsoll io sweep --path /u01/test.dat --pattern randread \\
    --rate 1000..60000 --limit p99=5ms
  plimsoll io sweep --path /dev/sdb --path /dev/sdc --together \\
    --pattern randread --depth 8,32,128
  plimsoll io sweep --path nfs://filer1/vol/test.dat --pattern randread \\
    --connections 1,2,4,8 --depth 64 --rounds 2
  plimsoll io sweep --path sim:service=200us,servers=8 --pattern randread \\
    --depth 1..64 --duration 3 --warmup 1";

/// clap's own is one line that does not fit a terminal.
const USAGE: &str = "\
plimsoll io sweep [OPTIONS] --path <PATH> --pattern <PATTERN>
        <--depth <N,N,...>|--rate <N,N,...>|--connections <N,N,...>>";

/// Arguments of `plimsoll io sweep`.
#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("axis").args(["depth", "rate", "connections"]).required(true).multiple(true),
    group = clap::ArgGroup::new("turns").args(["together", "connections"]),
    override_usage = USAGE
)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    volume: VolumeArgs,

    #[command(flatten)]
    shape: ShapeArgs,

    /// Requests outstanding of all jobs together, one step each: 1,2,4 or 1,2,4,…,256 or 1..256; with --rate, the most
    /// that may be
    #[arg(long, value_name = "N,N,...", help_heading = "Load")]
    depth: Option<DepthList>,

    /// Rates of an open loop: 1000,2000,5000 or 1k,2k,…,64k is one step each, 1k..60k finds the load line between the two
    #[arg(long, value_name = "N,N,...", help_heading = "Load")]
    rate: Option<RateRange>,

    /// Connections of each thread to each path of an NFS server, one step each: 1,2,4,8 or 1..16. Everything else is the same, so
    /// that it shows whether one connection is the limit; --depth [default: 64, or one for each job] is outstanding over all of them
    #[arg(long, value_name = "N,N,...", conflicts_with = "rate", help_heading = "Load")]
    connections: Option<ConnectionList>,

    /// Take each path for a volume, and measure each alone and all together at every --depth, which then counts for each
    /// volume, as --size does: whether they share a limit, such as that of the machine
    #[arg(long, help_heading = "Load")]
    together: bool,

    /// How often each volume alone and all together, or each number of connections, are measured in turn, forth and back
    /// [default: 2; with --connections 1]
    #[arg(long, value_name = "N", requires = "turns", help_heading = "Load")]
    rounds: Option<u32>,

    #[command(flatten)]
    time: TimeArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Arguments { volume, shape, depth, rate, connections, together, rounds, time, output } = arguments;
    let (storage, fleet) = (volume.storage()?, time.fleet.join()?);
    fleet.refuse(*together, "what volumes share", "measure the volumes of each host by itself, without `--part`")?;
    let usual = match connections {
        Some(_) => connections::DEFAULT_DEPTH.max(shape.jobs.get().saturating_mul(fleet.share().parts)),
        None => open_loop_depth(shape.block_size.bytes()),
    };
    let depths = depth.clone().unwrap_or_else(|| DepthList(vec![usual]));
    let (seed, facts) = (time.seed.given(), Vec::new());
    let mut asked = shape.asked(volume, &storage, depths, rate.clone());
    if *together {
        asked.volumes = Volumes::Each { rounds: rounds.unwrap_or(Volumes::DEFAULT_ROUNDS) };
    }
    if let Some(list) = connections {
        let rounds = rounds.unwrap_or(Connections::DEFAULT_ROUNDS);
        asked.connections = Connections::Each { list: list.clone(), rounds };
    }
    measure::run(&Job { round: None, volume, storage: &storage, asked, time, seed, facts, fleet: &fleet, output })
}
