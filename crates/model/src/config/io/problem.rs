//! Everything that can be wrong with a load on raw storage, in words.

use std::path::PathBuf;

use miette::Diagnostic;

use crate::units::Bytes;
use crate::workload::io::{Distribution, MAX_ZIPF_THETA};

use super::{BlockSize, Durable, MAX_DEPTH, MAX_RATE, MIN_RATE, Pattern, Volumes};
use crate::config::nfs::MAX_CONNECTIONS;

const DEPTHS: &str = "write such a number; a sweep takes several: `1,2,4,8`, or `1..256` for doublings";

/// Why a load on raw storage cannot be made, as far as it shows without the device.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Diagnostic)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum IoProblem {
    /// A text that is no pattern.
    #[error("`{text}` is not a pattern")]
    #[diagnostic(help("write `randread`, `randwrite`, `randrw`, `read`, `write` or `rw`"))]
    Pattern { text: String },
    /// A share of reads above 100.
    #[error("`--read-pct {read_pct}` is not a percentage")]
    #[diagnostic(help("write a whole number from 0 to 100"))]
    ReadPct { read_pct: u8 },
    /// A share of reads with a pattern that has none or nothing else.
    #[error("`{pattern}` only {}, but `--read-pct {read_pct}` was asked", direction(*pattern))]
    #[diagnostic(help("use `{}`", pattern.mixed()))]
    OneWay { pattern: Pattern, read_pct: u8 },

    /// A text that is no distribution.
    #[error("`{text}` is not a distribution")]
    #[diagnostic(help("write `uniform`, `zipf:1.1` or `hot:10%:90%`"))]
    Distribution { text: String },
    /// A text that is no exponent.
    #[error("`{text}` is not an exponent of a zipf distribution")]
    #[diagnostic(help("write a number above 0 and up to {MAX_ZIPF_THETA}, such as `zipf:1.1`"))]
    Theta { text: String },
    /// A text that is no pair of shares.
    #[error("`{text}` is not a share of blocks and a share of accesses")]
    #[diagnostic(help("write `hot:10%:90%` for a tenth of the blocks that takes nine tenths of the accesses"))]
    HotShares { text: String },
    /// Hot blocks that would get less than the others.
    #[error("{space_pct} % of the blocks with {access_pct} % of the accesses are not hot")]
    #[diagnostic(help("the share of blocks comes first: write `hot:{access_pct}%:{space_pct}%`"))]
    HotIsCold { space_pct: f64, access_pct: f64 },
    /// A distribution with a pattern that draws no places.
    #[error("`--distribution {distribution}` has no meaning for `{pattern}`, which goes from block to block")]
    #[diagnostic(help("use `{}`, or leave `--distribution` out", pattern.random()))]
    NothingToDistribute { distribution: Distribution, pattern: Pattern },

    /// A text that says nothing about durability.
    #[error("`{text}` is not a way to make writes durable")]
    #[diagnostic(help("write `none`, `dsync`, or `fsync:32` for an fsync after every 32 writes"))]
    Durable { text: String },
    /// Durability of nothing.
    #[error("`--durable {durable}` has no meaning for a load that never writes (`{pattern}`)")]
    #[diagnostic(help("leave `--durable` out, or choose a pattern that writes"))]
    NothingToMakeDurable { durable: Durable, pattern: Pattern },

    /// A size that requests cannot have.
    #[error("`{text}` is not a size for requests")]
    #[diagnostic(help("write a multiple of 512 bytes from 512 to 64M, such as `8K`"))]
    BlockSize { text: String },
    /// Data that hold no request.
    #[error("`--size {}` is less than one request of {block}", shown(*size))]
    #[diagnostic(help("raise `--size` or lower `--block-size`"))]
    SizeBelowBlock { size: Bytes, block: BlockSize },

    /// A text that is no depth.
    #[error("`{text}` is not a number from 1 to {MAX_DEPTH}")]
    #[diagnostic(help("{DEPTHS}"))]
    Depth { text: String },
    /// No depth at all.
    #[error("no depth was given")]
    #[diagnostic(help("{DEPTHS}"))]
    NoDepth,
    /// A depth twice.
    #[error("depth {depth} is there twice")]
    #[diagnostic(help("give each depth once"))]
    DepthTwice { depth: u32 },
    /// A range of depths that goes down.
    #[error("the range from {first} to {last} has nothing in it")]
    #[diagnostic(help("write `{last}..{first}`"))]
    DepthOrder { first: u32, last: u32 },
    /// A range after numbers that do not double.
    #[error("{first} is not the double of {before}, so it is not clear what `…` stands for")]
    #[diagnostic(help("write every number, or double them as in `1,2,4,…,256`"))]
    NoDoubling { before: f64, first: f64 },
    /// A text that is no number of connections.
    #[error("`{text}` is not a number of connections from 1 to {MAX_CONNECTIONS}")]
    #[diagnostic(help("write how many connections each thread has to each path: `1,2,4,8`, or `1..16` for doublings"))]
    Connections { text: String },
    /// A number of connections twice.
    #[error("{connections} is there twice among the connections")]
    #[diagnostic(help("give each number once"))]
    ConnectionsTwice { connections: u32 },
    /// Connections and depths that both vary.
    #[error("connections are compared at one depth, but {depths} were given")]
    #[diagnostic(help("give one `--depth`, which is outstanding at every number of connections"))]
    ConnectionsAndDepths { depths: usize },
    /// Connections of a load that does not fill them.
    #[error("connections are compared by how much they carry, which a fixed `--rate` does not report")]
    #[diagnostic(help("use `--depth` alone: it is what is outstanding at every number"))]
    ConnectionsAtRate,
    /// Connections to several volumes by themselves.
    #[error("`--connections` and `--together` each say what varies from step to step")]
    #[diagnostic(help("leave one of the two out"))]
    ConnectionsTogether,

    /// No jobs.
    #[error("`--jobs 0` would send nothing")]
    #[diagnostic(help("give `--jobs` at least 1"))]
    NoJobs,
    /// Jobs without a request of their own.
    #[error("{jobs} jobs cannot share a depth of {depth}: each needs a request of its own")]
    #[diagnostic(help("use `--jobs {depth}` or fewer, or raise `--depth`"))]
    TooManyJobs { jobs: u32, depth: u32 },

    /// A text that is no rate.
    #[error("`{text}` is not a rate")]
    #[diagnostic(help("write operations a second from {MIN_RATE} to {MAX_RATE}, such as `1000..60000` or `1k,2k,5k`"))]
    Rate { text: String },
    /// A rate twice.
    #[error("rate {rate} is there twice")]
    #[diagnostic(help("give each rate once"))]
    RateTwice { rate: f64 },
    /// A range of rates that goes down.
    #[error("the range from {lowest} to {highest} operations a second has nothing in it")]
    #[diagnostic(help("{}", rates_in_order(*lowest, *highest)))]
    RateOrder { lowest: f64, highest: f64 },
    /// Depths and rates that both vary.
    #[error("a sweep over rates has one depth, but {depths} were given")]
    #[diagnostic(help("vary one of the two: with `--rate`, `--depth` is the most that may be outstanding"))]
    DepthsAndRates { depths: usize },
    /// Arrivals of a load that waits for its own requests.
    #[error("`--arrival` has no meaning without `--rate`")]
    #[diagnostic(help("add `--rate`, or leave `--arrival` out"))]
    ArrivalWithoutRate,

    /// A path twice.
    #[error("`--path {}` is there twice", path.display())]
    #[diagnostic(help("give each path once"))]
    PathTwice { path: PathBuf },
    /// A mirror of nothing.
    #[error("`--mirror` keeps each block on two paths, but {} given", paths_were(*paths))]
    #[diagnostic(help("give a second `--path`, or leave `--mirror` out"))]
    MirrorOfOne { paths: usize },
    /// Stripes over nothing.
    #[error("`--stripe` spreads blocks over several paths, but {} given", paths_were(*paths))]
    #[diagnostic(help("give a second `--path`, or leave `--stripe` out"))]
    StripeOfOne { paths: usize },
    /// Stripes that no request fits.
    #[error("a stripe of {} is not a multiple of the request size {block}", shown(*stripe))]
    #[diagnostic(help("use a multiple of {block}, such as `--stripe {}`", shown(fitting_stripe(*block))))]
    StripeAcrossBlocks { stripe: Bytes, block: BlockSize },
    /// Stripes below what devices transfer.
    #[error("a stripe of {} is less than {}", shown(*stripe), Self::MIN_STRIPE)]
    #[diagnostic(help("use `--stripe 1M`, as disk groups and volume managers do"))]
    StripeTooSmall { stripe: Bytes },
    /// Checks of what lies in memory.
    #[error("`--verify` with `--direct off` would check blocks in the page cache instead of those on the storage")]
    #[diagnostic(help("leave one of the two out"))]
    VerifyInMemory,

    /// Volumes to compare, of which there is one.
    #[error("`--together` compares volumes with each other, but only one path was given")]
    #[diagnostic(help("give each volume's `--path`, at least two"))]
    TogetherAlone,
    /// More volumes than letters.
    #[error("`--together` compares at most {} volumes, but {paths} paths were given", Volumes::MAX)]
    #[diagnostic(help("give fewer paths"))]
    TooManyVolumes { paths: usize },
    /// Paths that would be one volume and several.
    #[error("`--together` takes each path for a volume of its own, and `{flag}` makes one volume of all")]
    #[diagnostic(help("leave one of the two out"))]
    TogetherAsOneVolume { flag: &'static str },
    /// A load that does not look for a limit.
    #[error("`--together` looks how much the volumes carry, which a fixed `--rate` does not report")]
    #[diagnostic(help("use `--depth` alone: it is what is outstanding on each volume"))]
    TogetherAtRate,
    /// Checks of what is only compared.
    #[error("`--together` cannot check what it reads")]
    #[diagnostic(help("leave `--verify` out, or verify each volume by itself"))]
    TogetherVerified,
    /// No rounds, or no end of them.
    #[error("`--rounds {rounds}` is not a number of rounds from 1 to {}", Volumes::MAX_ROUNDS)]
    #[diagnostic(help("leave `--rounds` out, or use an even number, which may be large where the storage is noisy"))]
    Rounds { rounds: u32 },
}

fn direction(pattern: Pattern) -> &'static str {
    if pattern.own_read_pct() == 0 { "writes" } else { "reads" }
}

fn paths_were(paths: usize) -> String {
    match paths {
        0 => "none was".to_owned(),
        1 => "only one was".to_owned(),
        _ => format!("{paths} were"),
    }
}

/// A size that is not rounded, so that the message shows why it does not fit.
fn shown(Bytes(bytes): Bytes) -> String {
    crate::config::slob::bytes_text(Bytes(bytes))
}

impl IoProblem {
    /// The smallest stripe.
    pub const MIN_STRIPE: Bytes = Bytes::kib(4);
}

fn rates_in_order(lowest: f64, highest: f64) -> String {
    if lowest == highest {
        return format!("write `{lowest}` for a single rate");
    }
    format!("write the lower rate first, such as `{highest}..{lowest}`")
}

/// The stripe nearest to a mebibyte that requests of this size fit.
fn fitting_stripe(block: BlockSize) -> Bytes {
    let (block, usual) = (u64::from(block.bytes()), 1_u64 << 20);
    Bytes((usual / block).max(1) * block)
}
