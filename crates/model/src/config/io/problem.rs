//! Everything that can be wrong with a load on raw storage, in words.

use std::path::PathBuf;

use crate::units::Bytes;
use crate::workload::io::{Distribution, MAX_ZIPF_THETA};

use super::{BlockSize, Durable, MAX_DEPTH, MAX_RATE, MIN_RATE, Pattern, Volumes};
use crate::config::nfs::MAX_CONNECTIONS;

/// Why a load on raw storage cannot be made, as far as it shows without the device.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum IoProblem {
    /// A text that is no pattern.
    #[error("`{text}` is not a pattern")]
    Pattern { text: String },
    /// A share of reads above 100.
    #[error("`--read-pct {read_pct}` is not a percentage")]
    ReadPct { read_pct: u8 },
    /// A share of reads with a pattern that has none or nothing else.
    #[error("`{pattern}` only {}, but `--read-pct {read_pct}` was asked", direction(*pattern))]
    OneWay { pattern: Pattern, read_pct: u8 },

    /// A text that is no distribution.
    #[error("`{text}` is not a distribution")]
    Distribution { text: String },
    /// A text that is no exponent.
    #[error("`{text}` is not an exponent of a zipf distribution")]
    Theta { text: String },
    /// A text that is no pair of shares.
    #[error("`{text}` is not a share of blocks and a share of accesses")]
    HotShares { text: String },
    /// Hot blocks that would get less than the others.
    #[error("{space_pct} % of the blocks with {access_pct} % of the accesses are not hot")]
    HotIsCold { space_pct: f64, access_pct: f64 },
    /// A distribution with a pattern that draws no places.
    #[error("`--distribution {distribution}` has no meaning for `{pattern}`, which goes from block to block")]
    NothingToDistribute { distribution: Distribution, pattern: Pattern },

    /// A text that says nothing about durability.
    #[error("`{text}` is not a way to make writes durable")]
    Durable { text: String },
    /// Durability of nothing.
    #[error("`--durable {durable}` has no meaning for a load that never writes (`{pattern}`)")]
    NothingToMakeDurable { durable: Durable, pattern: Pattern },

    /// A size that requests cannot have.
    #[error("`{text}` is not a size for requests")]
    BlockSize { text: String },
    /// Data that hold no request.
    #[error("`--size {}` is less than one request of {block}", shown(*size))]
    SizeBelowBlock { size: Bytes, block: BlockSize },

    /// A text that is no depth.
    #[error("`{text}` is not a number from 1 to {MAX_DEPTH}")]
    Depth { text: String },
    /// No depth at all.
    #[error("no depth was given")]
    NoDepth,
    /// A depth twice.
    #[error("depth {depth} is there twice")]
    DepthTwice { depth: u32 },
    /// A range of depths that goes down.
    #[error("the range from {first} to {last} has nothing in it")]
    DepthOrder { first: u32, last: u32 },
    /// A range after numbers that do not double.
    #[error("{first} is not the double of {before}, so it is not clear what `…` stands for")]
    NoDoubling { before: f64, first: f64 },
    /// A text that is no number of connections.
    #[error("`{text}` is not a number of connections from 1 to {MAX_CONNECTIONS}")]
    Connections { text: String },
    /// A number of connections twice.
    #[error("{connections} is there twice among the connections")]
    ConnectionsTwice { connections: u32 },
    /// Connections and depths that both vary.
    #[error("connections are compared at one depth, but {depths} were given")]
    ConnectionsAndDepths { depths: usize },
    /// Connections of a load that does not fill them.
    #[error("connections are compared by how much they carry, which a fixed `--rate` does not report")]
    ConnectionsAtRate,
    /// Connections to several volumes by themselves.
    #[error("`--connections` and `--together` each say what varies from step to step")]
    ConnectionsTogether,

    /// No jobs.
    #[error("`--jobs 0` would send nothing")]
    NoJobs,
    /// Jobs without a request of their own.
    #[error("{jobs} jobs cannot share a depth of {depth}: each needs a request of its own")]
    TooManyJobs { jobs: u32, depth: u32 },

    /// A text that is no rate.
    #[error("`{text}` is not a rate")]
    Rate { text: String },
    /// A rate twice.
    #[error("rate {rate} is there twice")]
    RateTwice { rate: f64 },
    /// A range of rates that goes down.
    #[error("the range from {lowest} to {highest} operations a second has nothing in it")]
    RateOrder { lowest: f64, highest: f64 },
    /// Depths and rates that both vary.
    #[error("a sweep over rates has one depth, but {depths} were given")]
    DepthsAndRates { depths: usize },
    /// Arrivals of a load that waits for its own requests.
    #[error("`--arrival` has no meaning without `--rate`")]
    ArrivalWithoutRate,

    /// A path twice.
    #[error("`--path {}` is there twice", path.display())]
    PathTwice { path: PathBuf },
    /// A mirror of nothing.
    #[error("`--mirror` keeps each block on two paths, but {} given", paths_were(*paths))]
    MirrorOfOne { paths: usize },
    /// Stripes over nothing.
    #[error("`--stripe` spreads blocks over several paths, but {} given", paths_were(*paths))]
    StripeOfOne { paths: usize },
    /// Stripes that no request fits.
    #[error("a stripe of {} is not a multiple of the request size {block}", shown(*stripe))]
    StripeAcrossBlocks { stripe: Bytes, block: BlockSize },
    /// Stripes below what devices transfer.
    #[error("a stripe of {} is less than {}", shown(*stripe), Self::MIN_STRIPE)]
    StripeTooSmall { stripe: Bytes },
    /// Checks of what lies in memory.
    #[error("`--verify` with `--direct off` would check blocks in the page cache instead of those on the storage")]
    VerifyInMemory,

    /// Volumes to compare, of which there is one.
    #[error("`--together` compares volumes with each other, but only one path was given")]
    TogetherAlone,
    /// More volumes than letters.
    #[error("`--together` compares at most {} volumes, but {paths} paths were given", Volumes::MAX)]
    TooManyVolumes { paths: usize },
    /// Paths that would be one volume and several.
    #[error("`--together` takes each path for a volume of its own, and `{flag}` makes one volume of all")]
    TogetherAsOneVolume { flag: &'static str },
    /// A load that does not look for a limit.
    #[error("`--together` looks how much the volumes carry, which a fixed `--rate` does not report")]
    TogetherAtRate,
    /// Checks of what is only compared.
    #[error("`--together` cannot check what it reads")]
    TogetherVerified,
    /// No rounds, or no end of them.
    #[error("`--rounds {rounds}` is not a number of rounds from 1 to {}", Volumes::MAX_ROUNDS)]
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

    pub(in crate::config) fn hint(&self) -> String {
        match self {
            Self::Pattern { .. } => "write `randread`, `randwrite`, `randrw`, `read`, `write` or `rw`".to_owned(),
            Self::ReadPct { .. } => "write a whole number from 0 to 100".to_owned(),
            Self::OneWay { pattern, .. } => format!("use `{}`", pattern.mixed()),
            Self::Distribution { .. } => "write `uniform`, `zipf:1.1` or `hot:10%:90%`".to_owned(),
            Self::Theta { .. } => format!("write a number above 0 and up to {MAX_ZIPF_THETA}, such as `zipf:1.1`"),
            Self::HotShares { .. } => {
                "write `hot:10%:90%` for a tenth of the blocks that takes nine tenths of the accesses".to_owned()
            }
            Self::HotIsCold { space_pct, access_pct } => {
                format!("the share of blocks comes first: write `hot:{access_pct}%:{space_pct}%`")
            }
            Self::NothingToDistribute { pattern, .. } => {
                format!("use `{}`, or leave `--distribution` out", pattern.random())
            }
            Self::Durable { .. } => {
                "write `none`, `dsync`, or `fsync:32` for an fsync after every 32 writes".to_owned()
            }
            Self::NothingToMakeDurable { .. } => "leave `--durable` out, or choose a pattern that writes".to_owned(),
            Self::BlockSize { .. } => "write a multiple of 512 bytes from 512 to 64M, such as `8K`".to_owned(),
            Self::SizeBelowBlock { .. } => "raise `--size` or lower `--block-size`".to_owned(),
            Self::Depth { .. } | Self::NoDepth => {
                "write such a number; a sweep takes several: `1,2,4,8`, or `1..256` for doublings".to_owned()
            }
            Self::DepthTwice { .. } => "give each depth once".to_owned(),
            Self::DepthOrder { first, last } => format!("write `{last}..{first}`"),
            Self::NoDoubling { .. } => "write every number, or double them as in `1,2,4,…,256`".to_owned(),
            Self::Connections { .. } => {
                "write how many connections each thread has to each path: `1,2,4,8`, or `1..16` for doublings"
                    .to_owned()
            }
            Self::ConnectionsTwice { .. } => "give each number once".to_owned(),
            Self::ConnectionsAndDepths { .. } => {
                "give one `--depth`, which is outstanding at every number of connections".to_owned()
            }
            Self::ConnectionsAtRate => "use `--depth` alone: it is what is outstanding at every number".to_owned(),
            Self::ConnectionsTogether => "leave one of the two out".to_owned(),
            Self::NoJobs => "give `--jobs` at least 1".to_owned(),
            Self::TooManyJobs { depth, .. } => format!("use `--jobs {depth}` or fewer, or raise `--depth`"),
            Self::Rate { .. } => {
                format!("write operations a second from {MIN_RATE} to {MAX_RATE}, such as `1000..60000` or `1k,2k,5k`")
            }
            Self::RateTwice { .. } => "give each rate once".to_owned(),
            Self::RateOrder { lowest, highest } if lowest == highest => format!("write `{lowest}` for a single rate"),
            Self::RateOrder { lowest, highest } => {
                format!("write the lower rate first, such as `{highest}..{lowest}`")
            }
            Self::DepthsAndRates { .. } => {
                "vary one of the two: with `--rate`, `--depth` is the most that may be outstanding".to_owned()
            }
            Self::ArrivalWithoutRate => "add `--rate`, or leave `--arrival` out".to_owned(),
            Self::PathTwice { .. } => "give each path once".to_owned(),
            Self::MirrorOfOne { .. } => "give a second `--path`, or leave `--mirror` out".to_owned(),
            Self::StripeOfOne { .. } => "give a second `--path`, or leave `--stripe` out".to_owned(),
            Self::StripeAcrossBlocks { block, .. } => {
                format!("use a multiple of {block}, such as `--stripe {}`", shown(fitting_stripe(*block)))
            }
            Self::StripeTooSmall { .. } => "use `--stripe 1M`, as disk groups and volume managers do".to_owned(),
            Self::VerifyInMemory | Self::TogetherAsOneVolume { .. } => "leave one of the two out".to_owned(),
            Self::TogetherAlone => "give each volume's `--path`, at least two".to_owned(),
            Self::TooManyVolumes { .. } => "give fewer paths".to_owned(),
            Self::TogetherAtRate => "use `--depth` alone: it is what is outstanding on each volume".to_owned(),
            Self::TogetherVerified => "leave `--verify` out, or verify each volume by itself".to_owned(),
            Self::Rounds { .. } => {
                "leave `--rounds` out, or use an even number, which may be large where the storage is noisy".to_owned()
            }
        }
    }
}

/// The stripe nearest to a mebibyte that requests of this size fit.
fn fitting_stripe(block: BlockSize) -> Bytes {
    let (block, usual) = (u64::from(block.bytes()), 1_u64 << 20);
    Bytes((usual / block).max(1) * block)
}
