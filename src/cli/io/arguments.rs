//! Flags that the commands for raw storage share.

use crate::cli::arguments::SeedArg;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, ValueEnum};

use super::nfs;
use crate::cli::arguments::{KeepingArgs, PermissionArgs, Seconds};
use crate::cli::exit::Failure;
use crate::cli::fleet::FleetArgs;
use crate::cli::limits::LimitArgs;
use model::config::TargetAddress;
use model::config::group::GroupSpec;
use model::config::io::{
    BlockSize, Connections, DepthList, Durable, IoOptions, PageCache, Pattern, RateRange, Redundancy, Verify, Volumes,
};
use model::config::nfs::NfsAddress;
use model::units::Bytes;
use model::workload::Arrival;
use model::workload::io::Distribution;
use targets::block::safety::Permission;
use targets::io::IoEngine;

/// Which storage requests go to.
#[derive(Debug, Args)]
pub(super) struct PathArgs {
    /// File, block device, `nfs://server/export/file`, or `sim:` (repeatable)
    ///
    /// Plimsoll reaches an NFS server itself, without a mount. `sim:` is simulated storage.
    ///
    /// Several paths are one volume, one behind the other unless --stripe or --mirror is set.
    #[arg(long = "path", value_name = "PATH", conflicts_with = "group", help_heading = "Storage")]
    paths: Vec<String>,

    /// Use a file of this disk group: NAME=REDUNDANCY:MEMBER,MEMBER|MEMBER,MEMBER
    ///
    /// `|` separates failure groups: `data=normal,size=16G:/u01/a,/u01/b|/u02/c,/u02/d`.
    ///
    /// A missing group is created.
    #[arg(long, value_name = "SPEC", conflicts_with = "oranfstab", help_heading = "Storage")]
    group: Option<String>,

    /// Reach the database's paths over the networks in this file of Oracle's Direct NFS
    #[arg(long, value_name = "FILE", requires = "paths", help_heading = "Storage")]
    oranfstab: Option<PathBuf>,
}

impl PathArgs {
    /// What they mean; `None` where none are given.
    pub(super) fn storage(&self) -> Result<Option<Storage>, Failure> {
        if let Some(text) = &self.group {
            let spec: GroupSpec = text.parse()?;
            let paths = vec![PathBuf::from(format!("+{}/{GROUP_FILE}", spec.name))];
            return Ok(Some(Storage::Group { paths, spec: Box::new(spec) }));
        }
        if self.paths.is_empty() {
            return Ok(None);
        }
        Storage::of(&self.paths, self.oranfstab.as_deref()).map(Some)
    }
}

/// Where requests go.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("storage").args(["paths", "group"]).required(true))]
pub(super) struct VolumeArgs {
    #[command(flatten)]
    paths: PathArgs,

    /// Space to use, and size of missing files to create [default: all of it]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = "Storage")]
    pub(super) size: Option<Bytes>,

    /// Stripe the volume over all paths, in units of this size
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, conflicts_with = "group", help_heading = "Storage")]
    stripe: Option<Bytes>,

    /// Write to two paths and read from the first, as a disk group with normal redundancy does
    #[arg(long, conflicts_with = "group", help_heading = "Storage")]
    mirror: bool,

    /// Bypass this machine's page cache (O_DIRECT)
    #[arg(long, value_enum, default_value_t, help_heading = "Storage")]
    direct: Switch,

    #[command(flatten)]
    pub(super) handling: HandlingArgs,
}

/// How storage is opened, and what may be written there.
#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct HandlingArgs {
    /// How requests reach the kernel
    #[arg(long, value_enum, default_value_t, help_heading = "Storage")]
    engine: EngineChoice,

    /// Write everything once before the load, so that no read finds an unwritten block
    ///
    /// Everything is --size, or all of the volume.
    #[arg(long, help_heading = "Storage")]
    prefill: bool,

    #[command(flatten)]
    permission: PermissionArgs,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum EngineChoice {
    /// io_uring where it is allowed, else psync
    #[default]
    Auto,
    /// io_uring
    IoUring,
    /// pread and pwrite, one thread for each outstanding request
    Psync,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Switch {
    /// Yes
    #[default]
    #[value(alias = "1")]
    On,
    /// No
    #[value(alias = "0")]
    Off,
}

/// What addresses of files on NFS servers begin with.
const NFS: &str = "nfs://";
/// The file of a disk group that load goes to.
pub(in crate::cli) const GROUP_FILE: &str = "plimsoll.dat";

/// What the paths mean together.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::cli) enum Storage {
    /// Files and devices.
    Paths(Vec<PathBuf>),
    /// Files on NFS servers.
    Nfs {
        /// Their addresses as text.
        paths: Vec<PathBuf>,
        /// The same addresses.
        addresses: Vec<NfsAddress>,
    },
    /// A file of a disk group.
    Group {
        /// Its address as text.
        paths: Vec<PathBuf>,
        /// The group.
        spec: Box<GroupSpec>,
    },
    /// Nothing real.
    Simulated(Vec<(String, String)>),
}

impl Storage {
    /// What paths mean together; with an `oranfstab` they are those of the database.
    pub(in crate::cli) fn of(paths: &[String], oranfstab: Option<&Path>) -> Result<Self, Failure> {
        if let Some(file) = oranfstab {
            return Self::on_nfs(nfs::by_oranfstab(file, paths)?);
        }
        match paths.iter().filter(|path| path.starts_with(NFS)).count() {
            0 => {}
            all if all == paths.len() => {
                return Self::on_nfs(paths.iter().map(|path| nfs::address(path)).collect::<Result<_, _>>()?);
            }
            _ => {
                let failure = Failure::new("files of this machine and files on NFS servers cannot be one volume");
                return Err(failure.with_hint("name files of one kind".to_owned()));
            }
        }
        let simulated = |path: &&String| path.starts_with("sim:");
        match paths.iter().find(simulated) {
            None => Ok(Self::Paths(paths.iter().map(PathBuf::from).collect())),
            Some(address) if paths.len() == 1 => match address.parse()? {
                TargetAddress::Simulated(pairs) => Ok(Self::Simulated(pairs)),
                _ => Ok(Self::Paths(vec![PathBuf::from(address)])),
            },
            Some(address) => {
                let failure = Failure::new(format_args!("`{address}` cannot be one path of several"));
                Err(failure.with_hint("simulated storage stands alone".to_owned()))
            }
        }
    }

    fn on_nfs(addresses: Vec<NfsAddress>) -> Result<Self, Failure> {
        let paths = addresses.iter().map(|address| PathBuf::from(address.to_string())).collect();
        Ok(Self::Nfs { paths, addresses })
    }

    /// The files and devices of this machine.
    pub(in crate::cli) fn local(&self) -> &[PathBuf] {
        match self {
            Self::Paths(paths) => paths,
            Self::Nfs { .. } | Self::Group { .. } | Self::Simulated(_) => &[],
        }
    }

    /// The files and devices, by path or address.
    pub(in crate::cli) fn paths(&self) -> &[PathBuf] {
        match self {
            Self::Paths(paths) | Self::Nfs { paths, .. } | Self::Group { paths, .. } => paths,
            Self::Simulated(_) => &[],
        }
    }
}

impl HandlingArgs {
    /// The engine asked for; `None` for the best that works.
    pub(in crate::cli) fn engine(&self) -> Option<IoEngine> {
        match self.engine {
            EngineChoice::Auto => None,
            EngineChoice::IoUring => Some(IoEngine::Uring),
            EngineChoice::Psync => Some(IoEngine::Psync),
        }
    }

    /// Whether everything is written once before the load.
    pub(in crate::cli) fn prefill(&self) -> bool {
        self.prefill
    }

    /// What the user has said about data that may be lost.
    pub(in crate::cli) fn permission(&self) -> Permission {
        self.permission.permission()
    }
}

impl VolumeArgs {
    /// One path, used past the page cache, for commands that name it by a flag of their own.
    pub(super) fn of_one(path: &str, size: Option<Bytes>, handling: HandlingArgs) -> Self {
        let paths = PathArgs { paths: vec![path.to_owned()], group: None, oranfstab: None };
        Self { paths, size, stripe: None, mirror: false, direct: Switch::On, handling }
    }

    /// What the paths mean.
    pub(super) fn storage(&self) -> Result<Storage, Failure> {
        // The command line has one or the other.
        Ok(self.paths.storage()?.unwrap_or(Storage::Paths(Vec::new())))
    }

    /// Whether the page cache is used.
    pub(super) fn page_cache(&self) -> PageCache {
        match self.direct {
            Switch::On => PageCache::Bypassed,
            Switch::Off => PageCache::Used,
        }
    }

    /// How blocks lie on the paths.
    pub(super) fn redundancy(&self) -> Redundancy {
        if self.mirror { Redundancy::Mirror } else { Redundancy::None }
    }

    /// A load of reads at random places of this storage, for others to build on.
    pub(super) fn asked(&self, storage: &Storage, pattern: Pattern, block: BlockSize, depths: DepthList) -> IoOptions {
        IoOptions {
            paths: storage.paths().to_vec(),
            pattern,
            block,
            read_pct: None,
            distribution: None,
            depths,
            jobs: 1,
            rates: None,
            arrival: None,
            volumes: Volumes::One,
            connections: Connections::Addressed,
            size: self.size,
            durable: Durable::None,
            page_cache: self.page_cache(),
            stripe: self.stripe,
            redundancy: self.redundancy(),
            verify: Verify::Nothing,
        }
    }
}

/// What requests look like.
#[derive(Debug, Args)]
pub(super) struct ShapeArgs {
    /// Order and direction: randread, randwrite, randrw, read, write or rw
    #[arg(long, value_name = "PATTERN", required = true, help_heading = "Load")]
    pub(super) pattern: Option<Pattern>,

    /// Size of a request
    #[arg(long, value_name = "SIZE", default_value = "8K", help_heading = "Load")]
    pub(super) block_size: BlockSize,

    /// Threads that share the depth
    ///
    /// With several parts, this is the number in each part. Sequential jobs begin at different places.
    #[arg(long, value_name = "N", default_value = "1", help_heading = "Load")]
    pub(super) jobs: NonZeroU32,

    /// Reads, in percent of the requests [default: 50]
    ///
    /// It applies to mixed patterns.
    #[arg(long, value_name = "PCT", help_heading = "Load")]
    pub(super) read_pct: Option<u8>,

    /// How often each block is drawn: uniform, zipf:1.1 or hot:10%:90% [default: uniform]
    ///
    /// `hot:10%:90%` sends 90 % of the requests to 10 % of the blocks.
    #[arg(long, value_name = "HOW", help_heading = "Load")]
    pub(super) distribution: Option<Distribution>,

    /// Arrivals at a fixed rate (open loop): poisson or fixed [default: poisson]
    #[arg(long, value_name = "HOW", help_heading = "Load")]
    pub(super) arrival: Option<Arrival>,

    /// When a write counts as durable: none, dsync (each) or fsync:N (after every N of a job)
    #[arg(long, value_name = "WHEN", default_value = "none", help_heading = "Load")]
    pub(super) durable: Durable,

    /// Check every block read against what was last written there
    #[arg(long, help_heading = "Load")]
    pub(super) verify: bool,
}

impl ShapeArgs {
    /// The load that is asked for.
    pub(super) fn asked(
        &self,
        volume: &VolumeArgs,
        storage: &Storage,
        depths: DepthList,
        rates: Option<RateRange>,
    ) -> IoOptions {
        IoOptions {
            read_pct: self.read_pct,
            distribution: self.distribution,
            jobs: self.jobs.get(),
            rates,
            arrival: self.arrival,
            durable: self.durable,
            verify: if self.verify { Verify::Blocks } else { Verify::Nothing },
            // Required wherever it is used.
            ..volume.asked(storage, self.pattern.unwrap_or(Pattern::RandRead), self.block_size, depths)
        }
    }
}

/// How long, and from which seed.
#[derive(Debug, Args)]
pub(super) struct TimeArgs {
    /// Length of each measured window, in seconds or with a unit
    #[arg(long, value_name = "TIME", default_value = "30", allow_hyphen_values = true, help_heading = "Load")]
    pub(super) duration: Seconds,

    /// Load before each measured window, recorded and marked
    #[arg(long, value_name = "TIME", default_value = "5", allow_hyphen_values = true, help_heading = "Load")]
    pub(super) warmup: Seconds,

    #[command(flatten)]
    pub(super) seed: SeedArg,

    #[command(flatten)]
    pub(super) fleet: FleetArgs,
}

/// How the run is kept and reported, and what it must keep to.
#[derive(Debug, Args)]
pub(in crate::cli) struct OutputArgs {
    #[command(flatten)]
    pub(in crate::cli) limits: LimitArgs,

    #[command(flatten)]
    pub(in crate::cli) keeping: KeepingArgs,
}
