//! `plimsoll io`.

pub(super) mod arguments;
mod calibrate;
mod calibrate_database;
mod compare_nfs;
mod connections;
mod like;
mod measure;
mod nfs;
mod orion;
mod read_back;
mod run;
mod soak;
mod sweep;
mod together;
pub(super) mod volume;

use clap::Subcommand;

use super::exit::{Exit, Failure};

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
  plimsoll io orion -run simple -testname san -num_disks 4
  plimsoll io calibrate --path /dev/sdb --max-latency 10ms";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Measure one load on files or block devices
    #[command(after_long_help = run::EXAMPLES)]
    Run(run::Arguments),
    /// Measure several loads in turn and find the largest that the storage carries
    #[command(after_long_help = sweep::EXAMPLES)]
    Sweep(Box<sweep::Arguments>),
    /// Measure one load for a long time: burst credits, drift, steady state
    #[command(
        after_long_help = soak::EXAMPLES,
        mut_arg("pattern", soak::pattern),
        mut_arg("duration", soak::duration),
        mut_arg("warmup", soak::warmup)
    )]
    Soak(soak::Arguments),
    /// Walk ORION's matrix with ORION's own options, and write ORION's files
    #[command(after_long_help = orion::EXAMPLES)]
    Orion(orion::Arguments),
    /// Answer what CALIBRATE_IO asks: max_iops, latency and max_mbps, and how sure they are
    #[command(after_long_help = calibrate::EXAMPLES, mut_group("storage", calibrate::storage))]
    Calibrate(calibrate::Arguments),
    /// Hold the kernel's NFS client and direct NFS against each other, in turns
    #[command(after_long_help = compare_nfs::EXAMPLES, mut_arg("pattern", compare_nfs::pattern))]
    CompareNfs(Box<compare_nfs::Arguments>),
}

impl Command {
    pub(super) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Run(arguments) => run::run(&arguments),
            Self::Sweep(arguments) => sweep::run(&arguments),
            Self::Soak(arguments) => soak::run(&arguments),
            Self::Orion(arguments) => orion::run(&arguments),
            Self::Calibrate(arguments) => calibrate::run(&arguments),
            Self::CompareNfs(arguments) => compare_nfs::run(&arguments),
        }
    }
}
