//! Why what was asked cannot be done on this target.

use std::path::PathBuf;

use miette::Diagnostic;
use model::config::{ConfigError, Origin};
use model::units::Bytes;

const PROCESSORS: &str =
    "name processors that this process may use; control groups and `taskset` may leave it fewer than there are";

/// Why no plan can be made. Nothing has been started or written.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum PlanError {
    /// The parameters do not go together, or not with the data set.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Config(#[from] ConfigError),
    /// Less load than parts, some of which would have none.
    #[error("{label} has {sessions} at once, which is less than one for each of {needed} threads of {parts} parts")]
    #[diagnostic(help("ask for {needed} or more, or start fewer parts"))]
    LessLoadThanParts {
        /// The step.
        label: String,
        /// Its sessions or requests.
        sessions: u32,
        /// Threads of all parts that need at least one.
        needed: u32,
        /// Parts.
        parts: u32,
    },
    /// Work that ends by count, which parts reach at different times.
    #[error(
        "a load that ends when its work is done cannot be shared out: each part would end when its own sessions are done"
    )]
    #[diagnostic(help("leave WORK_LOOP out, and say for how long: `RUN_TIME=60`"))]
    WorkLoopOfPart,
    /// Schemas that are not there.
    #[error("{asked} schemas are requested, but the data set has {set_up}")]
    #[diagnostic(help(
        "use `-s {set_up}` or fewer, or set up more: `plimsoll slob setup -s N --replace` makes the data again"
    ))]
    TooManySchemas {
        /// Schemas asked for.
        asked: u32,
        /// Schemas set up.
        set_up: u32,
    },
    /// Keys that are not there.
    #[error("`SCALE={value}` ({origin}) is {asked} blocks for each schema, but the data set has {set_up}")]
    #[diagnostic(help(
        "leave SCALE out to use all {set_up} blocks, or set up more: `plimsoll slob setup --replace` makes the data \
         again"
    ))]
    ScaleTooLarge {
        /// The value as it was given.
        value: String,
        /// Where it came from.
        origin: Origin,
        /// Its meaning in blocks of the data set.
        asked: u64,
        /// Blocks of each schema.
        set_up: u64,
    },
    /// A size that does not hold one block.
    #[error("`SCALE={value}` ({origin}) is less than one block of {block_bytes} bytes")]
    #[diagnostic(help("write a number of blocks, or a size such as `80M`"))]
    EmptyScale {
        /// The value as it was given.
        value: String,
        /// Where it came from.
        origin: Origin,
        /// Size of a block.
        block_bytes: u64,
    },
    /// Scans of a table that was not set up.
    #[error("`SCAN_PCT={scan_pct}` ({origin}) asks for scans, but the data set has no scan table")]
    #[diagnostic(help(
        "write `SCAN_PCT=0`, or set up with `SCAN_TABLE_SZ`: `plimsoll slob setup --replace` makes the data again"
    ))]
    NoScanTable {
        /// The percentage asked for.
        scan_pct: u8,
        /// Where it came from.
        origin: Origin,
    },
    /// More memory than there is. The kernel would kill this process, or another one.
    #[error(
        "a cache of {cache} and what {sessions} sessions need are {needed}, but only {available} of memory are available"
    )]
    #[diagnostic(help(
        "use a smaller `--cache`, free some memory, or raise the limit of the container; `free -m` and `plimsoll \
         doctor` show both"
    ))]
    CacheTooLarge {
        /// Cache asked for.
        cache: Bytes,
        /// Sessions of the largest step.
        sessions: u32,
        /// Memory needed in all.
        needed: Bytes,
        /// Memory that can be had.
        available: Bytes,
    },
    /// A request that this storage cannot take.
    #[error("requests of {block} cannot be sent: this storage takes multiples of {unit}")]
    #[diagnostic(help("use a `--block-size` that is a multiple of {unit}"))]
    BlockBelowUnit {
        /// Length of a request.
        block: Bytes,
        /// What it must be a multiple of.
        unit: Bytes,
    },
    /// A window that sees nothing.
    #[error("a window of no length measures nothing")]
    #[diagnostic(help("give `--duration` a time such as `30`, or `10m`"))]
    NoDuration,
    /// Requests that are longer than all there is.
    #[error("no request of {block} fits: there are only {capacity}")]
    #[diagnostic(help("use a smaller `--block-size`, or larger paths"))]
    VolumeBelowBlock {
        /// Length of a request.
        block: Bytes,
        /// What is there.
        capacity: Bytes,
    },
    /// More of the volume than there is.
    #[error("{asked} are to be used, but there are only {capacity}")]
    #[diagnostic(help("use a `--size` of at most {capacity}, or name more or larger paths"))]
    VolumeTooSmall {
        /// What requests should touch.
        asked: Bytes,
        /// What is there.
        capacity: Bytes,
    },
    /// More memory than there is.
    #[error("{slots} requests of {block} need {needed} of memory, but only {available} are available")]
    #[diagnostic(help("ask for fewer requests outstanding, or for smaller ones"))]
    BuffersTooLarge {
        /// Requests outstanding at most.
        slots: u32,
        /// Length of a request.
        block: Bytes,
        /// Memory needed in all.
        needed: Bytes,
        /// Memory that can be had.
        available: Bytes,
    },
    /// A processor that this process cannot run on.
    #[error("processor {number} is not there for this process, which may use {allowed}")]
    #[diagnostic(help("{PROCESSORS}"))]
    NoSuchProcessor {
        /// Its number.
        number: u32,
        /// Those that it may run on, as the kernel lists them.
        allowed: String,
    },
    /// More processors than there are.
    #[error("{asked} CPUs are requested, but this process may use {there}")]
    #[diagnostic(help("{PROCESSORS}"))]
    TooFewProcessors {
        /// How many are asked for.
        asked: u32,
        /// How many there are.
        there: u32,
    },
    /// More memory than there is for work on processors.
    #[error("{threads} threads that go through {size} each need {needed}, but only {available} are available")]
    #[diagnostic(help("lower `--size` or `--cache`, or use fewer processors"))]
    WorkTooLarge {
        /// Threads at once.
        threads: u64,
        /// Memory of each.
        size: Bytes,
        /// Memory needed in all.
        needed: Bytes,
        /// Memory that can be had.
        available: Bytes,
    },
    /// More requests on all volumes together than there may be.
    #[error("all volumes together would have {slots} requests outstanding; {most} is the most")]
    #[diagnostic(help("lower `--depth`: it counts for each volume"))]
    TooDeepTogether {
        /// Requests outstanding on all volumes.
        slots: u32,
        /// Requests that there can be.
        most: u32,
    },
    /// The trace has no latencies, so how deep its queue was is unknown.
    #[error("the trace has no latencies, so its depth is not known")]
    #[diagnostic(help("set it: `--depth N`"))]
    ReplayDepthUnknown,
    /// The trace has no latencies, so what waited for what is unknown.
    #[error("the trace has no latencies, so what waited for an answer is not known")]
    #[diagnostic(help("leave `--keep-order` out"))]
    ReplayOrderUnknown,
    /// More threads or outstanding requests of a replay than there may be.
    #[error("a replay with {jobs} threads and {depth} outstanding requests is too large")]
    #[diagnostic(help("at most {most_jobs} threads (`--jobs`) and {most} requests (`--depth`)"))]
    ReplayTooDeep {
        /// Threads of all parts.
        jobs: u32,
        /// Requests outstanding.
        depth: u32,
        /// Threads that there can be.
        most_jobs: u32,
        /// Requests that there can be.
        most: u32,
    },
    /// More requests at the same time than blocks, each of which can be written once at a time.
    #[error("{slots} requests cannot be outstanding on {blocks} blocks that are checked: each has one write at a time")]
    #[diagnostic(help("use a smaller `--depth` or a larger `--size`, or leave `--verify` out"))]
    FewerBlocksThanWrites {
        /// Requests outstanding at most.
        slots: u32,
        /// Blocks that requests can touch.
        blocks: u64,
    },
    /// One thing is called two names.
    #[error("the tag `{key}` is given twice")]
    #[diagnostic(help("give each tag once"))]
    TagTwice {
        /// Key of the tag.
        key: String,
    },
    /// Nothing to put load on.
    #[error("there is no device or file to load")]
    #[diagnostic(help("name at least one"))]
    NoLuns,
    /// A device that cannot hold one request.
    #[error("`{}` has {bytes}, less than one request of {request}", path.display())]
    #[diagnostic(help("make it larger, take it off the list, or ask for smaller requests"))]
    LunTooSmall {
        /// The device or file.
        path: PathBuf,
        /// Its size.
        bytes: Bytes,
        /// Size of the largest request.
        request: Bytes,
    },
    /// A commit that changes more than there is.
    #[error("that many writes for each commit change {blocks:.0} blocks at once, but there are only {scale_blocks}")]
    #[diagnostic(help("ask for more commits or fewer writes, or for a larger `--size`"))]
    CommitTooLarge {
        /// Blocks that each commit changes.
        blocks: f64,
        /// Blocks of a schema.
        scale_blocks: u64,
    },
    /// Blocks that are changed and not read.
    #[error(
        "{changed:.0} blocks are changed each second by {commits} commits/s, but only {reads} reads/s are requested: a database reads each block that it changes"
    )]
    #[diagnostic(help("raise `--reads`, or leave `--commits` out to put the writes on raw storage"))]
    MoreWritesThanReads {
        /// Blocks that are changed per second.
        changed: f64,
        /// Commits per second.
        commits: f64,
        /// Reads per second.
        reads: f64,
    },
    /// Scans of no table.
    #[error("a scan is requested, but the data has no scan table")]
    #[diagnostic(help("leave `--scan` out, or check a directory without data: they are made then"))]
    NothingToScan,
    /// A production of which nothing is known that a load could do.
    #[error("the reports on {database} contain no read, write or commit rates for that time")]
    #[diagnostic(help(
        "`plimsoll report RUN` shows what a run reports; name another one, or another moment with `--at`"
    ))]
    NothingAlike {
        /// The database.
        database: String,
    },
    /// A production whose redo is not known.
    #[error("what is reported of {database} does not have both its redo and the writes of its log per second")]
    #[diagnostic(help("give a size and a rate by themselves: `--pattern redo-sync --size 8k --rate 400`"))]
    NoRedoAlike {
        /// The database.
        database: String,
    },
    /// More requests at the same time than there may be sessions.
    #[error("the walk rises to {asked} requests outstanding, but there can be at most {most}")]
    #[diagnostic(help(
        "lower `-num_disks`, or `-num_small`, `-num_large` and `-num_streamIO`: they say how far the load rises"
    ))]
    TooManyOutstanding {
        /// Requests of the largest point.
        asked: u64,
        /// Requests that there can be.
        most: u32,
    },
}

impl PlanError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        model::hint(self)
    }
}
