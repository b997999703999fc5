//! Everything that can be wrong with a load on raw storage, in words.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use miette::Diagnostic;

use crate::units::Bytes;
use crate::workload::io::{Distribution, MAX_ZIPF_THETA};

use super::{BlockSize, Durable, MAX_DEPTH, MAX_RATE, MIN_RATE, Pattern, Volumes};
use crate::config::ConfigError;
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
    #[error("`{pattern}` only {}, which excludes `--read-pct {read_pct}`", direction(*pattern))]
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
    #[error("depth {depth} is listed twice")]
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
    #[error("{connections} is listed twice among the connections")]
    #[diagnostic(help("give each number once"))]
    ConnectionsTwice { connections: u32 },
    /// Connections and depths that both vary.
    #[error("connections are compared at one depth, but {depths} were given")]
    #[diagnostic(help("give one `--depth`, which is outstanding at every number of connections"))]
    ConnectionsAndDepths { depths: usize },
    /// Connections of a load that does not fill them.
    #[error("a fixed `--rate` hides how much connections sustain")]
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
    #[error("rate {rate} is listed twice")]
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
    #[error("`--path {}` is listed twice", path.display())]
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
    #[error("`--together` measures how much the volumes sustain, which a fixed `--rate` hides")]
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

/// Reads `uniform`, `zipf:1.1` and `hot:10%:90%` (10 % of the blocks take 90 % of the accesses).
impl FromStr for Distribution {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let read = match (name.to_ascii_lowercase().as_str(), rest) {
            ("uniform", None) => Ok(Self::Uniform),
            ("zipf", rest) => read_zipf(rest.unwrap_or_default()),
            ("hot", rest) => read_hot(rest.unwrap_or_default()),
            _ => Err(IoProblem::Distribution { text: text.to_owned() }),
        };
        read.map_err(ConfigError::Io)
    }
}

fn read_zipf(text: &str) -> Result<Distribution, IoProblem> {
    match text.parse() {
        Ok(theta) if theta > 0.0 && theta <= MAX_ZIPF_THETA => Ok(Distribution::Zipf { theta }),
        _ => Err(IoProblem::Theta { text: text.to_owned() }),
    }
}

fn read_hot(text: &str) -> Result<Distribution, IoProblem> {
    let share = |text: &str| -> Option<f64> {
        let pct = text.strip_suffix('%').unwrap_or(text).trim().parse().ok()?;
        (pct > 0.0 && pct <= 100.0).then_some(pct)
    };
    let shares = text.split_once(':').and_then(|(space, access)| Some((share(space)?, share(access)?)));
    match shares {
        Some((space_pct, access_pct)) if access_pct < space_pct => Err(IoProblem::HotIsCold { space_pct, access_pct }),
        Some((space_pct, access_pct)) => Ok(Distribution::Hot { space_pct, access_pct }),
        None => Err(IoProblem::HotShares { text: text.to_owned() }),
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.pad("uniform"),
            Self::Zipf { theta } => f.pad(&format!("zipf:{theta}")),
            Self::Hot { space_pct, access_pct } => f.pad(&format!("hot:{space_pct}%:{access_pct}%")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::assert_refused;
    use super::Distribution;

    #[test]
    fn reads_every_kind() {
        for (text, distribution) in [
            ("uniform", Distribution::Uniform),
            ("Zipf:1.1", Distribution::Zipf { theta: 1.1 }),
            ("zipf:1", Distribution::Zipf { theta: 1.0 }),
            ("hot:10%:90%", Distribution::Hot { space_pct: 10.0, access_pct: 90.0 }),
            ("hot:0.5:50", Distribution::Hot { space_pct: 0.5, access_pct: 50.0 }),
        ] {
            assert_eq!(text.parse::<Distribution>().unwrap(), distribution, "{text}");
        }
    }

    #[test]
    fn refuses_others_and_says_what_to_write() {
        for text in ["pareto:0.2", "", "uniform:1"] {
            assert_refused::<Distribution>(
                text,
                &format!("`{text}` is not a distribution"),
                "write `uniform`, `zipf:1.1` or `hot:10%:90%`",
            );
        }
        for theta in ["", "0", "-1", "nan", "inf", "101", "x"] {
            assert_refused::<Distribution>(
                &format!("zipf:{theta}"),
                &format!("`{theta}` is not an exponent of a zipf distribution"),
                "write a number above 0 and up to 100, such as `zipf:1.1`",
            );
        }
        for shares in ["", "10%", "0%:90%", "10%:101%", "10%:nan", "10%:90%:1%"] {
            assert_refused::<Distribution>(
                &format!("hot:{shares}"),
                &format!("`{shares}` is not a share of blocks and a share of accesses"),
                "write `hot:10%:90%` for a tenth of the blocks that takes nine tenths of the accesses",
            );
        }
        assert_refused::<Distribution>(
            "hot:90%:10%",
            "90 % of the blocks with 10 % of the accesses are not hot",
            "the share of blocks comes first: write `hot:10%:90%`",
        );
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(theta in 1e-6..100.0_f64, space_pct in 1e-6..50.0_f64, access_pct in 50.0..100.0_f64) {
            for distribution in [Distribution::Zipf { theta }, Distribution::Hot { space_pct, access_pct }] {
                prop_assert_eq!(distribution.to_string().parse::<Distribution>().unwrap(), distribution);
            }
        }

        #[test]
        fn never_panics_on_any_text(text in "(zipf|hot|uniform)?:?.*") {
            let _ = text.parse::<Distribution>();
        }
    }
}
