//! Storage as it is opened for a run.

use crate::cli::dry_run::DryRun;
use std::path::PathBuf;
use std::sync::Arc;

use super::arguments::{GROUP_FILE, HandlingArgs, Storage};
use super::nfs;
use crate::cli::exit::Failure;
use crate::cli::live::{ByteProgress, Verbosity};
use crate::cli::runner::Landing;
use crate::cli::{Interrupt, say};
use crate::plan::io::Facts;
use measure::{Clock, environment};
use model::config::io::{Durable, IoOptions, PageCache, Redundancy, Verify, Volumes};
use model::record::TargetFacts;
use model::units::Bytes;
use model::workload::io::IoOperation;
use targets::block::{
    Block, BlockOptions, Checking, Member, Preparation, PrepareOptions, VirtualPlace, Volume, VolumeLayout, base_at,
};
use targets::io::{Caching, Durability, IoEngine};
use targets::places::GroupDirectory;
use targets::simulated::{Simulated, SimulatedOptions};
use targets::{Progress, TargetError, TargetFor};

/// Unit of a mirror unless the user says otherwise, as disk groups have it.
const DEFAULT_UNIT: Bytes = Bytes::mib(1);
/// Simulated storage is as large as it is asked to be, or this.
const SIMULATED_SIZE: Bytes = Bytes::gib(64);

/// Storage that has been looked at and not yet touched.
pub(in crate::cli) enum Prospect {
    Paths { preparation: Box<Preparation>, io_engine: IoEngine, facts: Box<TargetFacts> },
    Simulated { options: Box<SimulatedOptions>, size: Bytes },
}

/// What load will do with the storage.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct Intended {
    /// Bytes that requests touch.
    pub(in crate::cli) region_bytes: u64,
    /// The longest request.
    pub(in crate::cli) largest_bytes: u32,
    /// Seed of what is written.
    pub(in crate::cli) seed: u64,
}

/// Open storage.
pub(in crate::cli) enum OpenStorage {
    Block(Box<Block>),
    Simulated(Simulated),
}

impl Prospect {
    /// Looks at what the user named. Nothing is written.
    pub(in crate::cli) fn look(storage: &Storage, handling: &HandlingArgs, asked: &IoOptions) -> Result<Self, Failure> {
        match storage {
            Storage::Simulated(pairs) => {
                if handling.prefill() || asked.verify == Verify::Blocks {
                    let failure = Failure::new("simulated storage holds no data that could be laid out or checked");
                    return Err(failure.with_hint("leave `--prefill` and `--verify` out".to_owned()));
                }
                let mut options = Box::new(SimulatedOptions::from_pairs(pairs)?);
                let size = asked.size.unwrap_or(SIMULATED_SIZE).min(Bytes(u64::MAX / u64::from(options.volumes)));
                if asked.volumes != Volumes::One {
                    if options.volumes < 2 {
                        let failure = Failure::new("`--together` compares volumes, and this simulated storage is one");
                        return Err(failure.with_hint("say how many it is: `sim:volumes=2`".to_owned()));
                    }
                    options.volume_bytes = Some(size);
                }
                Ok(Self::Simulated { options, size })
            }
            Storage::Paths(paths) => Self::look_at(paths, Vec::new(), engine(handling.engine()), handling, asked),
            Storage::Group { paths, spec } => {
                if asked.page_cache == PageCache::Used {
                    let failure = Failure::new("the members of disk groups are used past the page cache");
                    return Err(failure.with_hint("leave `--direct off` out".to_owned()));
                }
                let io_engine = engine(handling.engine());
                let durability = durability(asked.durable);
                let group = GroupDirectory::look(spec, &handling.permission(), durability, io_engine)?;
                say::note(group.words());
                let place = VirtualPlace::new(Arc::new(group), GROUP_FILE.to_owned());
                Self::look_at(paths, vec![place], io_engine, handling, asked)
            }
            Storage::Nfs { paths, addresses } => {
                if asked.page_cache == PageCache::Used {
                    let failure = Failure::new("files on NFS servers have no page cache of this machine");
                    return Err(failure.with_hint("leave `--direct off` out, or name the path of a mount".to_owned()));
                }
                let elsewhere = nfs::connect(addresses)?;
                Self::look_at(paths, elsewhere, IoEngine::Psync, handling, asked)
            }
        }
    }

    fn look_at(
        paths: &[PathBuf],
        elsewhere: Vec<VirtualPlace>,
        io_engine: IoEngine,
        handling: &HandlingArgs,
        asked: &IoOptions,
    ) -> Result<Self, Failure> {
        let directories = || elsewhere.iter().map(VirtualPlace::directory);
        directories().for_each(|directory| directory.notes().iter().for_each(say::note));
        let facts = Box::new(directories().next().map(|directory| directory.facts()).unwrap_or_default());
        let preparation = Preparation::look(wanted(paths.to_vec(), elsewhere, handling, asked, io_engine))?;
        preparation.notes.iter().for_each(say::note);
        Ok(Self::Paths { preparation: Box::new(preparation), io_engine, facts })
    }

    /// What a plan needs to know.
    pub(in crate::cli) fn facts(&self, asked: &IoOptions) -> Result<Facts, TargetError> {
        let (capacity_bytes, volumes) = match self {
            Self::Paths { preparation, .. } => {
                let volume = preparation.volume()?;
                (volume.capacity_bytes(), volume.spans())
            }
            Self::Simulated { size, options } => {
                let size = size.0.max(u64::from(asked.block.bytes()));
                (size, (0..u64::from(options.volumes)).map(|volume| volume * size..(volume + 1) * size).collect())
            }
        };
        // The unit is only known of what is open; what it is for files and devices that are not is reported then.
        Ok(Facts { capacity_bytes, volumes, unit_bytes: 512, available_memory: environment::available_memory() })
    }

    /// Every path and how much it will hold.
    pub(in crate::cli) fn members(&self) -> Vec<(PathBuf, Bytes)> {
        match self {
            Self::Paths { preparation, .. } => {
                preparation.members().map(|(path, bytes)| (path.to_owned(), bytes)).collect()
            }
            Self::Simulated { size, .. } => vec![(PathBuf::from("sim:"), *size)],
        }
    }

    /// Adds the files that will be laid out before the load, and their sizes.
    pub(in crate::cli) fn describe_fills(&self, described: DryRun) -> DryRun {
        match self {
            Self::Paths { preparation, .. } => {
                let fills = preparation.fills();
                described.facts("lay out", fills.map(|(path, bytes)| format!("{} with {bytes}", path.display())))
            }
            Self::Simulated { .. } => described,
        }
    }

    /// The clock on which load will run.
    pub(in crate::cli) fn clock(&self) -> Clock {
        match self {
            Self::Paths { .. } => Clock::start(),
            Self::Simulated { options, .. } => options.clock(),
        }
    }

    /// Lays out what is missing, and opens everything.
    pub(in crate::cli) fn open(
        self,
        asked: &IoOptions,
        intended: Intended,
        clock: Clock,
        interrupt: &Interrupt,
        verbosity: Verbosity,
    ) -> Result<OpenStorage, Failure> {
        match self {
            Self::Simulated { options, .. } => Ok(OpenStorage::Simulated(Simulated::open_volume(*options, clock))),
            Self::Paths { preparation, io_engine, facts } => {
                let (volume, members) = prepare(*preparation, interrupt, verbosity)?;
                check_unit(asked, intended.largest_bytes, &members)?;
                let options = BlockOptions {
                    io_engine,
                    block_bytes: asked.block.bytes(),
                    largest_bytes: intended.largest_bytes,
                    region_bytes: intended.region_bytes,
                    writes: asked.writes(),
                    durable: asked.durable,
                    checking: match asked.verify {
                        Verify::Nothing => Checking::Off,
                        Verify::Blocks => Checking::On { block_bytes: asked.block.bytes() },
                    },
                    seed: intended.seed,
                    facts: *facts,
                    generation_base: base_at(u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)),
                };
                Ok(OpenStorage::Block(Box::new(Block::new(volume, members, options))))
            }
        }
    }
}

impl OpenStorage {
    /// What the user should know about how the load went, once it has ended.
    pub(in crate::cli) fn note_of_the_load(&self) -> Option<String> {
        let Self::Block(block) = self else { return None };
        block.first_failure().map(|failure| format!("the first request that failed: {failure}"))
    }

    /// Says how long the longest request of the steps to come is, so that they take no more memory than they need.
    pub(in crate::cli) fn expect_largest(&mut self, bytes: u32) {
        match self {
            Self::Block(block) => block.set_largest_bytes(bytes),
            Self::Simulated(_) => {}
        }
    }

    /// Whether all of it takes discards. None is sent.
    pub(in crate::cli) fn check_discards(&self) -> Result<(), Failure> {
        match self {
            Self::Block(block) => block.check_discards().map_err(Failure::from),
            Self::Simulated(_) => Ok(()),
        }
    }

    /// Has the steps to come make so many connections to each path of an NFS server.
    pub(in crate::cli) fn use_connections(&self, each: u32) {
        match self {
            Self::Block(block) => block.use_connections(each),
            Self::Simulated(_) => {}
        }
    }

    /// What the record says of it, where a run touches `region_bytes` by blocks of `block`.
    pub(in crate::cli) fn landing(&self, clock: Clock, block: Bytes, region_bytes: u64, paths: &[PathBuf]) -> Landing {
        let mut landing = Landing::on(self.target(), clock);
        landing.target.block_bytes = Some(block.0);
        landing.target.data_bytes = Some(region_bytes);
        Landing { paths: paths.to_vec(), ..landing }
    }

    pub(in crate::cli) fn target(&self) -> &dyn TargetFor<IoOperation> {
        match self {
            Self::Block(block) => block.as_ref(),
            Self::Simulated(simulated) => simulated,
        }
    }
}

fn engine(asked: Option<IoEngine>) -> IoEngine {
    asked.unwrap_or_else(|| {
        let (engine, refused) = IoEngine::best_available();
        if let Some(why) = refused {
            say::note(format_args!("io_uring is refused ({why}); requests are sent by psync"));
        }
        engine
    })
}

fn wanted(
    paths: Vec<PathBuf>,
    elsewhere: Vec<VirtualPlace>,
    handling: &HandlingArgs,
    asked: &IoOptions,
    io_engine: IoEngine,
) -> PrepareOptions {
    let unit_bytes = asked.stripe.unwrap_or(DEFAULT_UNIT).0;
    let layout = match (paths.len(), asked.redundancy, asked.stripe) {
        _ if asked.volumes != Volumes::One => VolumeLayout::Separate,
        (_, Redundancy::Mirror, _) => VolumeLayout::Mirror { unit_bytes },
        (_, Redundancy::None, Some(_)) => VolumeLayout::Stripe { unit_bytes },
        (1, Redundancy::None, None) => VolumeLayout::Single,
        (_, Redundancy::None, None) => VolumeLayout::Concat,
    };
    PrepareOptions {
        paths,
        elsewhere,
        layout,
        size: asked.size,
        reads: asked.read_pct_in_force() > 0,
        permission: (asked.writes() || handling.prefill()).then(|| handling.permission()),
        checked: asked.verify == Verify::Blocks,
        prefill: handling.prefill(),
        caching: match asked.page_cache {
            PageCache::Bypassed => Caching::Direct,
            PageCache::Used => Caching::PageCache,
        },
        durability: durability(asked.durable),
        io_engine,
    }
}

fn durability(durable: Durable) -> Durability {
    match durable {
        Durable::Dsync => Durability::EachWrite,
        Durable::None | Durable::Fsync { .. } => Durability::OnSync,
    }
}

fn prepare(
    preparation: Preparation,
    interrupt: &Interrupt,
    verbosity: Verbosity,
) -> Result<(Volume, Vec<Member>), Failure> {
    let progress = ByteProgress::new("laying out", verbosity);
    let show = |now: Progress| progress.update(now.done_bytes, now.total_bytes);
    let prepared = preparation.run(&show, interrupt.flag());
    progress.end();
    prepared.map_err(|error| match (error, interrupt.exit()) {
        (TargetError::Interrupted, Some(exit)) => {
            Failure::new("interrupted while laying out; files that were not complete have been removed").with_exit(exit)
        }
        (error, _) => Failure::from(error),
    })
}

/// Refuses requests that the kernel could only send by reading or writing more.
fn check_unit(asked: &IoOptions, largest_bytes: u32, members: &[Member]) -> Result<(), Failure> {
    let unit = members.iter().map(Member::request_unit_bytes).max().unwrap_or(512);
    for bytes in [asked.block.bytes(), largest_bytes] {
        if asked.page_cache == PageCache::Bypassed && !bytes.is_multiple_of(unit) {
            let (block, unit) = (Bytes(u64::from(bytes)), Bytes(u64::from(unit)));
            return Err(crate::plan::PlanError::BlockBelowUnit { block, unit }.into());
        }
    }
    Ok(())
}
