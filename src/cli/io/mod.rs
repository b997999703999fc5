//! `plimsoll io`.

pub(super) mod arguments;
mod calibrate;
mod compare_nfs;
mod like;
mod map;
mod measure;
mod nfs;
mod orion;
mod replay;
mod run;
mod soak;
pub(super) mod volume;

use clap::{Args, Subcommand};

use super::exit::{Exit, Failure};
use super::second_look::Experiments;
use crate::plan::io::open_loop_depth;
use arguments::{OutputArgs, ShapeArgs, Storage, TimeArgs, VolumeArgs};
use measure::Job;
use model::config::io::{ConnectionList, Connections, DepthList, IoOptions, RateRange, Volumes};
use model::config::nfs::DEFAULT_OUTSTANDING;
use nfs::mounts;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll io run --path /u01/test.dat --size 16G --pattern randread \\
    --block-size 8k --depth 32
  plimsoll io run --path /dev/sdb --pattern randread --rate 5000
  plimsoll io sweep --path /u01/test.dat --pattern randread --depth 1,2,4,…,256
  plimsoll io sweep --path /u01/test.dat --pattern randread \\
    --rate 1000..60000 --limit p99=5ms
  plimsoll io sweep --path /dev/sdb --path /dev/sdc --together \\
    --pattern randread --depth 8,32,128
  plimsoll io sweep --path nfs://filer1/vol/test.dat --pattern randread \\
    --connections 1,2,4,8
  plimsoll io soak --path /dev/sdb --duration 2h
  plimsoll io replay monday.trace --path /dev/sdb --destroy sdb
  plimsoll io orion -run simple -testname san -num_disks 4
  plimsoll io calibrate --path /dev/sdb --max-latency 10ms
  plimsoll io map --path /dev/sdb --destroy sdb --limit p99=5ms";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Measure one load on files or block devices
    #[command(after_long_help = run::EXAMPLES)]
    Run(run::Arguments),
    /// Measure several loads in turn and find the largest that the storage sustains
    #[command(after_long_help = SWEEP_EXAMPLES)]
    Sweep(Box<SweepArguments>),
    /// Measure one load for a long time: burst credits, drift, steady state
    #[command(
        after_long_help = soak::EXAMPLES,
        mut_arg("pattern", soak::pattern),
        mut_arg("duration", soak::duration)
    )]
    Soak(soak::Arguments),
    /// Replay a recorded trace: its requests at its instants, and at multiples of its pace
    #[command(after_long_help = replay::EXAMPLES)]
    Replay(Box<replay::Arguments>),
    /// Measure ORION's matrix with ORION's own options, and write ORION's files
    #[command(after_long_help = orion::EXAMPLES)]
    Orion(orion::Arguments),
    /// Measure max_iops, latency and max_mbps as CALIBRATE_IO does, with a confidence range
    #[command(after_long_help = calibrate::EXAMPLES, mut_group("storage", calibrate::storage))]
    Calibrate(calibrate::Arguments),
    /// Find how many reads and writes together meet a latency limit
    #[command(after_long_help = map::EXAMPLES)]
    Map(Box<map::Arguments>),
    /// Compare the kernel's NFS client with direct NFS, alternating
    #[command(after_long_help = compare_nfs::EXAMPLES, mut_arg("pattern", compare_nfs::pattern))]
    CompareNfs(Box<compare_nfs::Arguments>),
}

impl Command {
    pub(super) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Run(arguments) => run::run(&arguments),
            Self::Sweep(arguments) => run_sweep(&arguments),
            Self::Soak(arguments) => soak::run(&arguments),
            Self::Replay(arguments) => replay::run(&arguments),
            Self::Orion(arguments) => orion::run(&arguments),
            Self::Calibrate(arguments) => calibrate::run(&arguments),
            Self::Map(arguments) => map::run(&arguments),
            Self::CompareNfs(arguments) => compare_nfs::run(&arguments),
        }
    }
}

const SWEEP_EXAMPLES: &str = "\
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
pub(super) struct SweepArguments {
    #[command(flatten)]
    volume: VolumeArgs,

    #[command(flatten)]
    shape: ShapeArgs,

    /// Outstanding requests of all jobs together, one step each: 1,2,4 or 1,2,4,…,256 or 1..256
    ///
    /// With --rate it is the maximum.
    #[arg(long, value_name = "N,N,...", help_heading = "Load")]
    depth: Option<DepthList>,

    /// Rates, one step each: 1000,2000,5000 or 1k,2k,…,64k
    ///
    /// With `..`, as in 1k..60k, a search finds the load line between the two. Each rate is an open loop.
    #[arg(long, value_name = "N,N,...", help_heading = "Load")]
    rate: Option<RateRange>,

    /// Connections of each thread to each path of an NFS server, one step each: 1,2,4,8 or 1..16
    ///
    /// Everything else stays the same, so the result shows whether one connection is the limit.
    ///
    /// --depth is outstanding over all of them [default: 64, or one for each job].
    #[arg(long, value_name = "N,N,...", conflicts_with = "rate", help_heading = "Load")]
    connections: Option<ConnectionList>,

    /// Treat each path as a volume, and measure each alone and all together at every --depth
    ///
    /// The result shows whether they share a limit, such as that of the machine.
    ///
    /// --depth and --size count for each volume.
    #[arg(long, help_heading = "Load")]
    together: bool,

    /// Times to measure every turn, in alternating order [default: 2; with --connections 1]
    ///
    /// The turns are each volume alone and all together, or each number of connections.
    #[arg(long, value_name = "N", requires = "turns", help_heading = "Load")]
    rounds: Option<u32>,

    /// Leave out the pulses after the last depth (about 7 s), which identify a rate limiter
    #[arg(long, help_heading = "Load")]
    no_pulse: bool,

    /// Leave out the experiments after the last step, which identify the limit
    ///
    /// They are the pulses, and 2.5 s of requests of another size.
    ///
    /// The other size distinguishes a limit on requests from one on bytes.
    #[arg(long, help_heading = "Load")]
    no_experiments: bool,

    #[command(flatten)]
    time: TimeArgs,

    #[command(flatten)]
    output: OutputArgs,
}

fn run_sweep(arguments: &SweepArguments) -> Result<Exit, Failure> {
    let SweepArguments {
        volume,
        shape,
        depth,
        rate,
        connections,
        together,
        rounds,
        no_pulse,
        no_experiments,
        time,
        output,
    } = arguments;
    let (storage, fleet) = (volume.storage()?, time.fleet.join()?);
    fleet.refuse(*together, "what volumes share", "measure the volumes of each host by itself, without `--part`")?;
    let usual = match connections {
        Some(_) => DEFAULT_DEPTH.max(shape.jobs.get().saturating_mul(fleet.share().parts)),
        None => open_loop_depth(shape.block_size.bytes()),
    };
    let depths = depth.clone().unwrap_or_else(|| DepthList(vec![usual]));
    let (seed, kernel_client) = (time.seed.given(), None);
    let mut asked = shape.asked(volume, &storage, depths, rate.clone());
    if *together {
        asked.volumes = Volumes::Each { rounds: rounds.unwrap_or(Volumes::DEFAULT_ROUNDS) };
    }
    if let Some(list) = connections {
        let rounds = rounds.unwrap_or(Connections::DEFAULT_ROUNDS);
        asked.connections = Connections::Each { list: list.clone(), rounds };
    }
    measure::run(Job {
        round: None,
        volume,
        storage: &storage,
        asked,
        time,
        seed,
        kernel_client,
        fleet: &fleet,
        experiments: match (no_experiments, no_pulse) {
            (true, _) => Experiments::Never,
            (false, true) => Experiments::WithoutPulses,
            (false, false) => Experiments::WhereNeeded,
        },
        output,
    })
}

/// Requests outstanding unless the user says otherwise: what one connection takes, so that its bound is not what is measured.
const DEFAULT_DEPTH: u32 = 64;

/// Refuses to vary connections of what has none, or what the address says already.
fn check_connections(storage: &Storage, asked: &Connections) -> Result<(), Failure> {
    if *asked == Connections::Addressed {
        return Ok(());
    }
    let fail = |message: String, hint: &str| Err(Failure::new(message).with_hint(hint.to_owned()));
    match storage {
        Storage::Nfs { addresses, .. } => match addresses.iter().find(|address| address.connections.is_some()) {
            Some(address) => {
                fail(format!("`{address}` says how many connections, and `--connections` varies them"), "leave one out")
            }
            None => Ok(()),
        },
        Storage::Paths(paths) => {
            let path = paths.first().map_or_else(String::new, |path| path.display().to_string());
            fail(
                format!(
                    "`--connections` varies connections to an NFS server, and `{path}` is reached through the kernel"
                ),
                "name the file as `nfs://SERVER/EXPORT/FILE`; the kernel's own client has as many connections as its mount's \
                 `nconnect` says",
            )
        }
        Storage::Group { .. } => fail(
            "`--connections` varies connections to an NFS server, and a disk group is its members'".to_owned(),
            "name a file as `nfs://SERVER/EXPORT/FILE`, or write `connections=N` into the members' addresses",
        ),
        Storage::Simulated(_) => fail(
            "`--connections` varies connections to an NFS server, and simulated storage has none".to_owned(),
            "name a file as `nfs://SERVER/EXPORT/FILE`",
        ),
    }
}

/// What is known of the numbers before the load.
#[derive(Default)]
struct Varied {
    /// For the record: which numbers these are.
    connections: Vec<u32>,
    /// Which of them cannot all be used, or cannot hold the load.
    notes: Vec<String>,
}

/// Looks what the numbers come to, with so many threads over all parts; nothing where they are not varied.
fn look_connections(asked: &IoOptions, storage: &Storage, threads: u32) -> Varied {
    let mut varied = Varied::default();
    let (Connections::Each { list, .. }, Storage::Nfs { addresses, .. }) = (&asked.connections, storage) else {
        return varied;
    };
    let ConnectionList(numbers) = list;
    let depth = asked.depths.0.first().copied().unwrap_or(1);
    // Files of one directory share connections, others have their own.
    let paths = mounts(addresses).map(|address| address.routes().count() as u32).sum::<u32>().max(1);
    let outstanding = addresses.iter().map(|address| address.outstanding.unwrap_or(DEFAULT_OUTSTANDING));
    let outstanding = outstanding.min().unwrap_or(1);
    let all = |each: u32| each.saturating_mul(paths).saturating_mul(threads);
    let (least, most) = (numbers.iter().copied().min().unwrap_or(1), numbers.iter().copied().max().unwrap_or(1));
    let idle: Vec<String> = numbers
        .iter()
        .filter(|each| all(**each) > depth)
        .map(|each| format!("{each} ({} in all)", all(*each)))
        .collect();
    if !idle.is_empty() {
        varied.notes.push(format!(
            "with {depth} outstanding some connections of {} have nothing to do: use `--depth {}` or more",
            idle.join(", "),
            all(most)
        ));
    }
    let room = all(least).saturating_mul(outstanding);
    if room < depth {
        varied.notes.push(format!(
            "with {least} the connections take {room} of the {depth} outstanding, and the others wait here. The \
             comparison includes that wait: use `--depth {room}`, or a larger `outstanding=` in the address"
        ));
    }
    varied.connections.clone_from(numbers);
    varied
}
