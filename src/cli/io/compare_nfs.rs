//! `plimsoll io compare-nfs`: the kernel's NFS client and direct NFS, in turns.

use crate::cli::dry_run::DryRun;
use crate::cli::limits::LimitArgs;
use std::path::Path;

use clap::{Arg, Args};

use super::arguments::{HandlingArgs, OutputArgs, ShapeArgs, Storage, TimeArgs, VolumeArgs};
use super::measure::{self, Job, Prepared};
use crate::cli::arguments::KeepingArgs;
use crate::cli::compare::{Threshold, report_sides};
use crate::cli::exit::{Exit, Failure};
use crate::cli::fleet::Fleet;
use crate::cli::page_file::PageArgs;
use crate::cli::runner::{self, Work as _};
use crate::cli::second_look::Experiments;
use crate::cli::{Interrupt, say};
use ::measure::environment;
use analysis::{Compared, Repeats};
use model::config::Tag;
use model::config::io::{DepthList, Volumes};
use model::record::KernelClient;
use model::record::{Outcome, Run};
use model::units::Bytes;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll io compare-nfs --kernel /mnt/vol/test.dat \\
    --direct 'nfs://filer1/vol/test.dat?connections=4' \\
    --pattern randread --threads 1,2,4,…,64
  plimsoll io compare-nfs --kernel /mnt/vol/a.dat \\
    --direct 'nfs://filer1/vol/b.dat?paths=10.0.1.9,10.0.2.9' --size 64G \\
    --pattern randrw --read-pct 75 --repeats 4 -o clients.html

Every other repeat begins with the other client (kernel, direct, direct, kernel), so that what changes with time does so for both. \
Both have requests of the same size at the same places. Each turn is a run of its own, kept as others are: \
`plimsoll compare client=kernel client=direct` holds them against each other once more.";

/// Turns of each client unless the user says otherwise: forth and back.
const DEFAULT_REPEATS: u32 = 2;
/// What their runs are told apart by.
const CLIENTS: [&str; 2] = ["client=kernel", "client=direct"];
const NAMES: [&str; 2] = ["the kernel's client", "direct NFS"];

/// Arguments of `plimsoll io compare-nfs`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// File on a mount of the kernel's NFS client
    #[arg(long, value_name = "PATH", help_heading = "Storage")]
    kernel: String,

    /// File that Plimsoll reaches itself, as `nfs://server/export/file` (it may be the same file)
    #[arg(long, value_name = "ADDRESS", help_heading = "Storage")]
    direct: String,

    /// Space to use, and size of missing files to create [default: all of it]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = "Storage")]
    size: Option<Bytes>,

    #[command(flatten)]
    handling: HandlingArgs,

    #[command(flatten)]
    shape: ShapeArgs,

    /// Database threads that wait for one request each, one step each: 1,2,4 or 1,2,4,…,64 or 1..64
    #[arg(long, alias = "depth", value_name = "N,N,...", default_value = "1,2,4,8,16,32", help_heading = "Load")]
    threads: DepthList,

    /// Turns of each client
    #[arg(long, value_name = "N", default_value_t = DEFAULT_REPEATS, help_heading = "Load")]
    repeats: u32,

    #[command(flatten)]
    time: TimeArgs,

    /// Smallest change that matters, in percent
    #[arg(long, value_name = "PERCENT", default_value = "5%", help_heading = "Output")]
    threshold: Threshold,

    #[command(flatten)]
    page: PageArgs,

    /// Also show every metric in a sentence, and incidental settings
    #[arg(long, help_heading = "Output")]
    full: bool,

    #[command(flatten)]
    keeping: KeepingArgs,
}

pub(super) fn pattern(flag: Arg) -> Arg {
    flag.required(false).default_value("randread")
}

/// One client, and what it is asked for.
struct Side {
    volume: VolumeArgs,
    storage: Storage,
    kernel_client: Option<KernelClient>,
    output: OutputArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Arguments { time, repeats, page, keeping, .. } = arguments;
    if *repeats == 0 || *repeats > Volumes::MAX_ROUNDS {
        let failure =
            Failure::new(format_args!("`--repeats {repeats}` is not a number from 1 to {}", Volumes::MAX_ROUNDS));
        return Err(failure.with_hint(format!("leave it out for {DEFAULT_REPEATS}")));
    }
    page.check(keeping.format.format())?;
    keeping.push.check()?;
    let fleet = time.fleet.join()?;
    fleet.refuse(true, "two clients in turns", "compare them on each host by itself, without `--part`")?;
    let sides = [kernel_side(arguments)?, direct_side(arguments)?];
    let kernel = measure::prepare(job(arguments, &sides[0], time.seed.given(), &fleet))?;
    // Both ask for the same places.
    let seed = kernel.plan.head.seed;
    let direct = measure::prepare(job(arguments, &sides[1], Some(seed), &fleet))?;
    check_alike(&kernel, &direct)?;
    let turns = turns(*repeats);
    if keeping.dry_run {
        return dry_run([kernel, direct], &turns);
    }
    let interrupt = Interrupt::listen()?;
    let mut prepared = [Some(kernel), Some(direct)];
    let mut runs: [Vec<Run>; 2] = Default::default();
    for (number, Turn { round, side }) in turns.iter().copied().enumerate() {
        say::line(format_args!("turn {} of {}: {}", number + 1, turns.len(), NAMES[side]));
        let ready = match prepared[side].take() {
            Some(ready) if round == 0 => ready,
            _ => measure::prepare(job(arguments, &sides[side], Some(seed.wrapping_add(round.into())), &fleet))?,
        };
        let (run, directory) = runner::record(ready, &interrupt)?.kept()?;
        say::line(format_args!("kept in `{}`", directory.display()));
        let is_whole = run.outcome == Outcome::Completed;
        runs[side].push(run);
        if !is_whole {
            break;
        }
    }
    compare(arguments, runs, &interrupt)
}

/// Who has its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turn {
    /// From 0. In each round both ask for the same places, and each round for others: whoever comes second may find them in a cache of
    /// the server, and that is each of them in turn.
    round: u32,
    /// 0 is the kernel's client.
    side: usize,
}

/// Every other round goes backwards.
fn turns(repeats: u32) -> Vec<Turn> {
    let order = |round: u32| if round.is_multiple_of(2) { [0, 1] } else { [1, 0] };
    (0..repeats).flat_map(|round| order(round).map(|side| Turn { round, side })).collect()
}

fn kernel_side(arguments: &Arguments) -> Result<Side, Failure> {
    let path = &arguments.kernel;
    let volume = VolumeArgs::of_one(path, arguments.size, arguments.handling.clone());
    let storage = volume.storage()?;
    if !matches!(storage, Storage::Paths(_)) {
        let failure = Failure::new(format_args!("`--kernel {path}` is not a path of this machine"));
        return Err(failure
            .with_hint("name a file on a mount of the kernel's NFS client, such as `/mnt/vol/test.dat`".to_owned()));
    }
    let client = kernel_client(Path::new(path));
    if let KernelClient::Instead(instead) = &client {
        say::note(format_args!(
            "`{path}` is not on NFS ({instead}): the kernel's half is a local file, and says nothing of the kernel's client"
        ));
    }
    side(arguments, volume, storage, 0, Some(client))
}

fn direct_side(arguments: &Arguments) -> Result<Side, Failure> {
    let address = &arguments.direct;
    let volume = VolumeArgs::of_one(address, arguments.size, arguments.handling.clone());
    let storage = volume.storage()?;
    if !matches!(storage, Storage::Nfs { .. }) {
        let failure = Failure::new(format_args!("`--direct {address}` is not an address of a file on an NFS server"));
        return Err(failure.with_hint("write it as `nfs://SERVER/EXPORT/FILE`".to_owned()));
    }
    side(arguments, volume, storage, 1, None)
}

fn side(
    arguments: &Arguments,
    volume: VolumeArgs,
    storage: Storage,
    number: usize,
    kernel_client: Option<KernelClient>,
) -> Result<Side, Failure> {
    let mut keeping = arguments.keeping.clone();
    keeping.tags.push(CLIENTS[number].parse::<Tag>()?);
    Ok(Side { volume, storage, kernel_client, output: OutputArgs { limits: LimitArgs::default(), keeping } })
}

/// What stands between a file and its server.
fn kernel_client(path: &Path) -> KernelClient {
    match environment::capture(Some(path)).file_system {
        Some(mount) if matches!(mount.kind.as_str(), "nfs" | "nfs4") => {
            KernelClient::Mount(format!("{} {}", mount.kind, mount.options))
        }
        Some(mount) => KernelClient::Instead(format!("{} at `{}`", mount.kind, mount.mount_point)),
        None => KernelClient::Instead("no file system is known there".to_owned()),
    }
}

fn job<'a>(arguments: &'a Arguments, side: &'a Side, seed: Option<u64>, fleet: &'a Fleet) -> Job<'a> {
    let Side { volume, storage, kernel_client, output } = side;
    let Arguments { shape, threads, time, .. } = arguments;
    let asked = shape.asked(volume, storage, threads.clone(), None);
    let (kernel_client, experiments) = (kernel_client.clone(), Experiments::Never);
    Job { round: None, volume, storage, asked, time, seed, kernel_client, fleet, experiments, output }
}

/// Refuses files of which different parts would be used.
fn check_alike(kernel: &Prepared<'_>, direct: &Prepared<'_>) -> Result<(), Failure> {
    let [kernel, direct] = [kernel, direct].map(|side| Bytes(side.plan.region_bytes));
    if kernel == direct {
        return Ok(());
    }
    let failure = Failure::new(format_args!(
        "the two files are not used alike: {} bytes by the kernel's client, {} bytes directly",
        kernel.0, direct.0
    ));
    Err(failure.with_hint("say how much of each is used, such as `--size 64G`".to_owned()))
}

fn dry_run(prepared: [Prepared<'_>; 2], turns: &[Turn]) -> Result<Exit, Failure> {
    let described = prepared.into_iter().zip(NAMES).try_fold(DryRun::default(), |it, (ready, name)| {
        Ok::<_, Failure>(it.line(format_args!("-- {name}")).append(ready.described()?).gap())
    })?;
    let turns = turns.iter().enumerate();
    turns
        .fold(described, |it, (number, turn)| it.line(format_args!("turn {:<3} {}", number + 1, NAMES[turn.side])))
        .print(None, false)
}

/// Holds what both did against each other.
fn compare(arguments: &Arguments, [kernel, direct]: [Vec<Run>; 2], interrupt: &Interrupt) -> Result<Exit, Failure> {
    let Arguments { threshold, page, full, keeping, .. } = arguments;
    let side = |runs: Vec<Run>| match Repeats::of(runs) {
        Some(Ok(side)) => Ok(Some(side)),
        Some(Err(error)) => Err(Failure::new(error)),
        None => Ok(None),
    };
    let exit = interrupt.exit();
    if let (Some(kernel), Some(direct)) = (side(kernel)?, side(direct)?) {
        let sides = [kernel, direct];
        let compared = Compared::of_repeats(&sides, 0, threshold.0);
        if let Some(compared) = compared {
            report_sides(&compared, &sides, page, *full, keeping.format.format())?;
        }
    } else if exit.is_none() {
        return Err(Failure::new("one of the clients has no run, so that nothing is compared"));
    }
    if let Some(exit) = exit {
        say::note("cut short: what was measured is kept, and compared as far as both have it");
        return Ok(exit);
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_begins_every_other_round() {
        let sides: Vec<usize> = turns(3).iter().map(|turn| turn.side).collect();
        assert_eq!(sides, [0, 1, 1, 0, 0, 1]);
        assert_eq!(turns(3)[2], Turn { round: 1, side: 1 });
    }

    #[test]
    fn a_file_that_is_not_on_nfs_is_called_so() {
        let directory = tempfile::tempdir().unwrap();
        assert!(matches!(kernel_client(&directory.path().join("new.dat")), KernelClient::Instead(_)));
    }
}
