//! What the user asks of raw storage.
//!
//! Each option is a type that reads and prints its own text; [`IoOptions`] holds them together and finds what contradicts
//! each other. What needs the device, such as its sector size, is checked by whoever opens it.
//!
//! ```
//! use plimsoll_model::config::io::{DepthList, Pattern};
//! use plimsoll_model::workload::io::Distribution;
//!
//! let depths: DepthList = "1,2,4,…,256".parse()?;
//! assert_eq!(depths.0.len(), 9);
//! assert_eq!("hot:10%:90%".parse::<Distribution>()?, Distribution::Hot { space_pct: 10.0, access_pct: 90.0 });
//! assert!("randrw".parse::<Pattern>()?.is_mixed());
//! # Ok::<(), plimsoll_model::config::ConfigError>(())
//! ```

mod options;
mod problem;

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::config::slob::bytes_text;
use crate::config::{ConfigError, Gap, numbers, one_ellipsis};
use crate::units::Bytes;

pub use options::{ConnectionList, Connections, IoOptions, PageCache, Redundancy, Verify, Volumes};
pub use problem::IoProblem;

crate::text::as_text!(
    BlockSize,
    ConnectionList,
    DepthList,
    Durable,
    Pattern,
    RateRange,
    crate::workload::io::Distribution
);

/// Asserts what a text is refused with.
#[cfg(test)]
fn assert_refused<T: std::str::FromStr<Err = super::ConfigError> + std::fmt::Debug>(
    text: &str,
    message: &str,
    hint: &str,
) {
    let error = text.parse::<T>().unwrap_err();
    assert_eq!((error.to_string().as_str(), error.hint().as_deref()), (message, Some(hint)), "{text}");
}

/// Most requests outstanding that may be asked for.
pub const MAX_DEPTH: u32 = 4_096;

/// Requests outstanding of all jobs together, one step each: `1,2,4,8`, or with the doublings between left out as
/// `1,2,4,…,256`, `1,2,4,...,256` or `1..256`. A range ends with its last number even if that is no doubling.
///
/// What is read has at least one depth, each from 1 to [`MAX_DEPTH`] and there once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DepthList(pub Vec<u32>);

impl FromStr for DepthList {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        read(text).map(Self).map_err(ConfigError::Io)
    }
}

fn read(text: &str) -> Result<Vec<u32>, IoProblem> {
    numbers(text, read_depth, |gap| match gap {
        Gap::Twice(depth) => IoProblem::DepthTwice { depth },
        Gap::Down { first, last } => IoProblem::DepthOrder { first, last },
        Gap::NoDoubling { before, first } => {
            IoProblem::NoDoubling { before: f64::from(before), first: f64::from(first) }
        }
    })
}

fn read_depth(text: &str) -> Result<u32, IoProblem> {
    let depth = text.parse().ok().filter(|depth| (1..=MAX_DEPTH).contains(depth));
    depth.ok_or_else(|| IoProblem::Depth { text: text.to_owned() })
}

impl fmt::Display for DepthList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let depths: Vec<String> = self.0.iter().map(u32::to_string).collect();
        f.pad(&depths.join(","))
    }
}

// How writes are made to survive a power cut.

/// When a write counts as durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durable {
    /// `none`: nobody asks the device to empty its volatile cache.
    #[default]
    None,
    /// `dsync`: every write is durable when it has finished (O_DSYNC).
    Dsync,
    /// `fsync:N`: the file is synchronised after every so many writes.
    Fsync {
        /// Writes between two of them.
        every: NonZeroU32,
    },
}

impl FromStr for Durable {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let lower = text.to_ascii_lowercase();
        let every = lower.strip_prefix("fsync:").and_then(|count| count.parse().ok());
        match (lower.as_str(), every) {
            ("none", _) => Ok(Self::None),
            ("dsync", _) => Ok(Self::Dsync),
            (_, Some(every)) => Ok(Self::Fsync { every }),
            _ => Err(ConfigError::Io(IoProblem::Durable { text: text.to_owned() })),
        }
    }
}

impl fmt::Display for Durable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.pad("none"),
            Self::Dsync => f.pad("dsync"),
            Self::Fsync { every } => f.pad(&format!("fsync:{every}")),
        }
    }
}

/// The size of a request: a multiple of 512 bytes from 512 bytes to 64 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockSize(u32);

impl BlockSize {
    const UNIT: u32 = 512;
    const MAX: u32 = 64 << 20;

    /// The size of that many bytes, if requests may have it.
    pub fn new(Bytes(bytes): Bytes) -> Option<Self> {
        let bytes = u32::try_from(bytes).ok()?;
        let fits = (Self::UNIT..=Self::MAX).contains(&bytes) && bytes.is_multiple_of(Self::UNIT);
        fits.then_some(Self(bytes))
    }

    /// The size in bytes.
    pub const fn bytes(self) -> u32 {
        self.0
    }
}

impl From<BlockSize> for Bytes {
    fn from(BlockSize(bytes): BlockSize) -> Self {
        Self(u64::from(bytes))
    }
}

impl FromStr for BlockSize {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let size = text.parse().ok().and_then(Self::new);
        size.ok_or_else(|| ConfigError::Io(IoProblem::BlockSize { text: text.to_owned() }))
    }
}

/// Prints it as on the command line: `8K`.
impl fmt::Display for BlockSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&bytes_text((*self).into()))
    }
}

/// The lowest rate that may be asked for, in operations a second.
pub const MIN_RATE: f64 = 0.001;

/// The highest rate that may be asked for, in operations a second.
pub const MAX_RATE: f64 = 1e9;

/// Rates to run at, in operations a second, each from [`MIN_RATE`] to [`MAX_RATE`].
#[derive(Debug, Clone, PartialEq)]
pub enum RateRange {
    /// `1000..60000`: whichever rates between the two show the load line.
    Between {
        /// The lowest rate; less than the highest.
        lowest: f64,
        /// The highest rate.
        highest: f64,
    },
    /// `1000,2000,5000`, or `1000,2000,…,64000` with the doublings between left out: one step each, every rate there once.
    Each(Vec<f64>),
}

impl RateRange {
    /// The rates that the user named.
    pub fn named(&self) -> Vec<f64> {
        match self {
            Self::Between { lowest, highest } => vec![*lowest, *highest],
            Self::Each(rates) => rates.clone(),
        }
    }
}

impl FromStr for RateRange {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        read_rates(text).map_err(ConfigError::Io)
    }
}

fn read_rates(text: &str) -> Result<RateRange, IoProblem> {
    let order = |lowest, highest| IoProblem::RateOrder { lowest, highest };
    let text = one_ellipsis(text);
    // With a comma it is a list, whatever is left out of it.
    if let Some((lowest, highest)) = text.split_once('…').filter(|_| !text.contains(',')) {
        let (lowest, highest) = (rate_or_problem(lowest)?, rate_or_problem(highest)?);
        return if lowest < highest { Ok(RateRange::Between { lowest, highest }) } else { Err(order(lowest, highest)) };
    }
    let rates = numbers(&text, rate_or_problem, |gap| match gap {
        Gap::Twice(rate) => IoProblem::RateTwice { rate },
        Gap::Down { first, last } => order(first, last),
        Gap::NoDoubling { before, first } => IoProblem::NoDoubling { before, first },
    })?;
    Ok(RateRange::Each(rates))
}

fn rate_or_problem(text: &str) -> Result<f64, IoProblem> {
    read_rate(text).ok_or_else(|| IoProblem::Rate { text: text.to_owned() })
}

/// Units of thousands, which are decimal as everywhere where something is counted: only sizes are binary.
const THOUSANDS: [(&str, &str); 3] = [("k", "e3"), ("M", "e6"), ("G", "e9")];

/// Reads one rate: `5000`, `5k`, `2.5k/s` or `1M`, from [`MIN_RATE`] to [`MAX_RATE`]. `None` for anything else.
pub fn read_rate(text: &str) -> Option<f64> {
    let number = text.trim();
    let number = number.strip_suffix("/s").unwrap_or(number).trim_end();
    let scaled = THOUSANDS.iter().find_map(|(unit, exponent)| {
        // A capital K, since nobody asks for a rate of kelvins; but no small m, which is a thousandth.
        let bare = number.strip_suffix(unit).or_else(|| number.strip_suffix('K').filter(|_| *unit == "k"))?;
        Some(format!("{}{exponent}", bare.trim_end()))
    });
    scaled.as_deref().unwrap_or(number).parse().ok().filter(|rate| is_rate(*rate))
}

/// Whether a load can be asked for at this rate.
fn is_rate(rate: f64) -> bool {
    (MIN_RATE..=MAX_RATE).contains(&rate)
}

impl fmt::Display for RateRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Between { lowest, highest } => f.pad(&format!("{lowest}..{highest}")),
            Self::Each(rates) => f.pad(&rates.iter().map(f64::to_string).collect::<Vec<_>>().join(",")),
        }
    }
}

/// The order and direction of requests, by fio's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// `randread`: reads at random places.
    RandRead,
    /// `randwrite`: writes at random places.
    RandWrite,
    /// `randrw`: both at random places.
    RandRw,
    /// `read`: reads from block to block.
    Read,
    /// `write`: writes from block to block.
    Write,
    /// `rw`: both from block to block, at one cursor.
    Rw,
}

/// Reads in each hundred requests of a mixed pattern unless the user says otherwise; fio's default.
const DEFAULT_READ_PCT: u8 = 50;

impl Pattern {
    /// Every pattern.
    pub const ALL: [Self; 6] = [Self::RandRead, Self::RandWrite, Self::RandRw, Self::Read, Self::Write, Self::Rw];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RandRead => "randread",
            Self::RandWrite => "randwrite",
            Self::RandRw => "randrw",
            Self::Read => "read",
            Self::Write => "write",
            Self::Rw => "rw",
        }
    }

    /// Whether requests go from block to block.
    pub const fn is_sequential(self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::Rw)
    }

    /// Whether it is made of reads and writes, so that the share of reads can be chosen.
    pub const fn is_mixed(self) -> bool {
        matches!(self, Self::RandRw | Self::Rw)
    }

    /// Reads in each hundred requests, from 0 to 100: what was asked, or the pattern's own.
    ///
    /// # Errors
    /// [`ConfigError::Io`] for what is no percentage, or contradicts a pattern of one direction.
    pub fn read_pct(self, asked: Option<u8>) -> Result<u8, ConfigError> {
        let own = self.own_read_pct();
        match asked {
            Some(read_pct) if read_pct > 100 => Err(ConfigError::Io(IoProblem::ReadPct { read_pct })),
            Some(read_pct) if !self.is_mixed() && read_pct != own => {
                Err(ConfigError::Io(IoProblem::OneWay { pattern: self, read_pct }))
            }
            asked => Ok(asked.unwrap_or(own)),
        }
    }

    /// Reads in each hundred requests where nothing is asked.
    const fn own_read_pct(self) -> u8 {
        match self {
            Self::RandRead | Self::Read => 100,
            Self::RandWrite | Self::Write => 0,
            Self::RandRw | Self::Rw => DEFAULT_READ_PCT,
        }
    }

    /// The pattern of the same order that reads and writes.
    const fn mixed(self) -> Self {
        if self.is_sequential() { Self::Rw } else { Self::RandRw }
    }

    /// The pattern of the same directions that goes to random places.
    const fn random(self) -> Self {
        match self {
            Self::RandRead | Self::Read => Self::RandRead,
            Self::RandWrite | Self::Write => Self::RandWrite,
            Self::RandRw | Self::Rw => Self::RandRw,
        }
    }
}

impl FromStr for Pattern {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|pattern| pattern.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| ConfigError::Io(IoProblem::Pattern { text: text.to_owned() }))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What stands between the letters of volumes that are loaded together.
pub const VOLUMES_JOIN: &str = "+";

/// How much load one step puts on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum IoLevel {
    /// Closed loop: so many requests outstanding.
    Depth(u32),
    /// Open loop: so many requests a second, of which so many may be outstanding.
    Rate {
        /// Requests per second.
        per_s: f64,
        /// Most that may be outstanding.
        most: u32,
    },
    /// Closed loop on some of several volumes.
    Volumes {
        /// Requests outstanding on each of them.
        depth: u32,
        /// Which.
        chosen: Chosen,
        /// Number of the measurement of this load, from 1.
        round: u32,
    },
    /// Closed loop over so many connections to an NFS server.
    Connections {
        /// Requests outstanding.
        depth: u32,
        /// Connections of each thread to each path.
        each: u32,
        /// Number of the measurement of this load, from 1; absent where each is measured once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        round: Option<u32>,
    },
}

/// Some of several volumes or loads, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Chosen {
    /// One of them, counted from 0.
    One(usize),
    /// All of them.
    All {
        /// How many there are.
        volumes: usize,
    },
}

/// The letter of volume or load number `volume`, counted from 0; there are at most [`Volumes::MAX`](Volumes::MAX).
pub fn letter(volume: usize) -> char {
    ('A'..='Z').nth(volume).unwrap_or('?')
}

/// A rate to a thousandth: one that was computed has digits that nothing asked for.
pub fn rate_text(per_s: f64) -> String {
    ((per_s * 1e3).round() / 1e3).to_string()
}

impl IoLevel {
    /// Requests outstanding at most.
    pub fn slots(self) -> u32 {
        match self {
            Self::Volumes { depth, chosen, .. } => depth * chosen.count(),
            _ => self.depth(),
        }
    }

    /// Requests outstanding at most, of several volumes on each.
    pub fn depth(self) -> u32 {
        match self {
            Self::Depth(depth) | Self::Volumes { depth, .. } | Self::Connections { depth, .. } => depth,
            Self::Rate { most, .. } => most,
        }
    }

    /// The name of a step at it, such as `d8`.
    pub fn label(self) -> String {
        match self {
            Self::Depth(depth) => format!("d{depth}"),
            Self::Rate { per_s, .. } => format!("r{}", rate_text(per_s)),
            Self::Volumes { depth, chosen, round } => format!("d{depth}_{chosen}_{round}"),
            Self::Connections { each, round: None, .. } => format!("c{each}"),
            Self::Connections { each, round: Some(round), .. } => format!("c{each}_{round}"),
        }
    }
}

impl Chosen {
    /// How many volumes these are.
    pub fn count(self) -> u32 {
        match self {
            Self::One(_) => 1,
            Self::All { volumes } => volumes as u32,
        }
    }
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(volume) => write!(f, "{}", letter(*volume)),
            Self::All { volumes } => {
                let letters: Vec<String> = (0..*volumes).map(|volume| letter(volume).to_string()).collect();
                f.write_str(&letters.join(VOLUMES_JOIN))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{DepthList, MAX_DEPTH, assert_refused};

    #[test]
    fn every_way_to_leave_doublings_out_is_read() {
        for text in
            ["1,2,4,8,16,32", "1,2,4,…,32", "1,2,4,...,32", "1, 2, ..., 32", "1,…,32", "1..32", "1...32", "1…32"]
        {
            assert_eq!(text.parse::<DepthList>().unwrap().0, [1, 2, 4, 8, 16, 32], "{text}");
        }
        assert_eq!("1..4,8..32".parse::<DepthList>().unwrap().0, [1, 2, 4, 8, 16, 32]);
    }

    #[test]
    fn a_range_ends_with_its_last_number() {
        assert_eq!("1..48".parse::<DepthList>().unwrap().to_string(), "1,2,4,8,16,32,48");
        assert_eq!("3,6,…,24,25".parse::<DepthList>().unwrap().to_string(), "3,6,12,24,25");
        assert_eq!("4..4".parse::<DepthList>().unwrap().0, [4]);
        assert_eq!("8,4,1".parse::<DepthList>().unwrap().0, [8, 4, 1]);
    }

    #[test]
    fn refuses_others_and_says_what_to_write() {
        let hint = "write such a number; a sweep takes several: `1,2,4,8`, or `1..256` for doublings";
        for (text, item) in [
            ("", ""),
            ("0", "0"),
            ("1,,2", ""),
            ("4097", "4097"),
            ("1..x", "x"),
            ("…,4", ""),
            ("1,…", ""),
            ("1-4", "1-4"),
        ] {
            assert_refused::<DepthList>(text, &format!("`{item}` is not a number from 1 to 4096"), hint);
        }
        assert_refused::<DepthList>("1,2,1", "depth 1 is listed twice", "give each depth once");
        assert_refused::<DepthList>("1..8,8", "depth 8 is listed twice", "give each depth once");
        assert_refused::<DepthList>("8..1", "the range from 8 to 1 has nothing in it", "write `1..8`");
        assert_refused::<DepthList>(
            "1,3,…,9",
            "3 is not the double of 1, so it is not clear what `…` stands for",
            "write every number, or double them as in `1,2,4,…,256`",
        );
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(depths in prop::collection::hash_set(1..=MAX_DEPTH, 1..20)) {
            let list = DepthList(depths.into_iter().collect());
            prop_assert_eq!(list.to_string().parse::<DepthList>().unwrap(), list);
        }

        #[test]
        fn a_range_doubles_from_end_to_end(first in 1..=MAX_DEPTH, more in 0..=MAX_DEPTH) {
            let last = (first + more).min(MAX_DEPTH);
            let DepthList(depths) = format!("{first}..{last}").parse().unwrap();
            prop_assert_eq!((depths.first(), depths.last()), (Some(&first), Some(&last)));
            prop_assert!(depths.windows(2).all(|pair| pair[0] < pair[1] && pair[1] <= 2 * pair[0]));
        }

        #[test]
        fn never_panics_on_any_text(text in "[0-9.,… ]*|.*") {
            let _ = text.parse::<DepthList>();
        }
    }
}

#[cfg(test)]
mod durable_tests {
    use super::{Durable, assert_refused};

    #[test]
    fn what_is_printed_is_read_back() {
        for text in ["none", "dsync", "fsync:1", "fsync:32"] {
            assert_eq!(text.parse::<Durable>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn refuses_others_and_says_what_to_write() {
        for text in ["", "fsync", "fsync:", "fsync:0", "fsync:-1", "osync"] {
            assert_refused::<Durable>(
                text,
                &format!("`{text}` is not a way to make writes durable"),
                "write `none`, `dsync`, or `fsync:32` for an fsync after every 32 writes",
            );
        }
    }
}

#[cfg(test)]
mod block_size_tests {
    use proptest::prelude::*;

    use super::assert_refused;
    use super::*;

    #[test]
    fn reads_sizes_and_prints_them_short() {
        for (text, bytes, shown) in
            [("512", 512, "512B"), ("8k", 8192, "8K"), ("1.5K", 1536, "1536B"), ("64MiB", 64 << 20, "64M")]
        {
            let size: BlockSize = text.parse().unwrap();
            assert_eq!((size.bytes(), size.to_string().as_str()), (bytes, shown), "{text}");
        }
    }

    #[test]
    fn refuses_others_and_says_what_to_write() {
        for text in ["", "0", "256", "1000", "8191", "65M", "4G", "8Q", "-8K"] {
            assert_refused::<BlockSize>(
                text,
                &format!("`{text}` is not a size for requests"),
                "write a multiple of 512 bytes from 512 to 64M, such as `8K`",
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(units in 1..=131_072_u32) {
            let size = BlockSize::new(Bytes(u64::from(units) * 512)).unwrap();
            prop_assert_eq!(size.to_string().parse::<BlockSize>().unwrap(), size);
        }
    }
}

#[cfg(test)]
mod rates_tests {
    use proptest::prelude::*;

    use super::{RateRange, assert_refused, read_rate};

    #[test]
    fn reads_ranges_and_lists() {
        let range = RateRange::Between { lowest: 1_000.0, highest: 60_000.0 };
        for text in ["1000..60000", "1000…60000", "1000 ... 60000", "1000/s..60000/s"] {
            assert_eq!(text.parse::<RateRange>().unwrap(), range, "{text}");
        }
        assert_eq!(range.named(), [1_000.0, 60_000.0]);
        let list = "1000, 2500.5,5000".parse::<RateRange>().unwrap();
        assert_eq!(list.named(), [1_000.0, 2_500.5, 5_000.0]);
        assert_eq!("5000".parse::<RateRange>().unwrap(), RateRange::Each(vec![5_000.0]));
        for text in ["1000,2000,…,8000", "1k,2k,...,8k", "1k,2k..8k/s"] {
            assert_eq!(text.parse::<RateRange>().unwrap().named(), [1_000.0, 2_000.0, 4_000.0, 8_000.0], "{text}");
        }
    }

    #[test]
    fn thousands_are_decimal_and_exact() {
        for (text, rate) in [
            ("20k", 20_000.0),
            ("20K", 20_000.0),
            ("1M", 1e6),
            ("2.5k/s", 2_500.0),
            ("2.5 k /s", 2_500.0),
            ("1.001k", 1_001.0),
            ("1G", 1e9),
            ("0.5", 0.5),
        ] {
            assert_eq!(read_rate(text), Some(rate), "{text}");
        }
        for text in ["k", "2m", "2KiB", "1e3k", "2kk", "2G", "/s", "-1k", "infk", "2k/m"] {
            assert_eq!(read_rate(text), None, "{text}");
        }
    }

    #[test]
    fn refuses_others_and_says_what_to_write() {
        let hint = "write operations a second from 0.001 to 1000000000, such as `1000..60000` or `1k,2k,5k`";
        for (text, item) in
            [("", ""), ("0", "0"), ("-5", "-5"), ("nan", "nan"), ("1e10", "1e10"), ("1,,2", ""), ("9q", "9q")]
        {
            assert_refused::<RateRange>(text, &format!("`{item}` is not a rate"), hint);
        }
        for (text, item) in [("1..", ""), ("0..5", "0"), ("1..5..9", "5…9"), ("1,2..", "")] {
            assert_refused::<RateRange>(text, &format!("`{item}` is not a rate"), hint);
        }
        assert_refused::<RateRange>("5,5", "rate 5 is listed twice", "give each rate once");
        let message = "the range from 60000 to 1000 operations a second has nothing in it";
        assert_refused::<RateRange>("60000..1000", message, "write the lower rate first, such as `1000..60000`");
        assert!("7..7".parse::<RateRange>().is_err());
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(lowest in 0.001..1e4_f64, highest in 1e5..1e9_f64) {
            for rates in [RateRange::Between { lowest, highest }, RateRange::Each(vec![highest, lowest])] {
                prop_assert_eq!(rates.to_string().parse::<RateRange>().unwrap(), rates);
            }
        }

        #[test]
        fn never_panics_on_any_text(text in "[0-9.,…/s]*|.*") {
            let _ = text.parse::<RateRange>();
        }
    }
}

#[cfg(test)]
mod pattern_tests {
    use super::assert_refused;
    use super::*;

    #[test]
    fn what_is_printed_is_read_back() {
        for pattern in Pattern::ALL {
            assert_eq!(pattern.to_string().parse::<Pattern>().unwrap(), pattern);
        }
    }

    #[test]
    fn says_which_patterns_there_are() {
        assert_refused::<Pattern>(
            "randtrim",
            "`randtrim` is not a pattern",
            "write `randread`, `randwrite`, `randrw`, `read`, `write` or `rw`",
        );
    }

    #[test]
    fn a_mixed_pattern_takes_the_share_of_reads_and_defaults_to_half() {
        for pattern in [Pattern::RandRw, Pattern::Rw] {
            assert_eq!(pattern.read_pct(None).unwrap(), 50);
            for read_pct in [0, 70, 100] {
                assert_eq!(pattern.read_pct(Some(read_pct)).unwrap(), read_pct);
            }
        }
    }

    #[test]
    fn a_pattern_of_one_direction_takes_only_its_own_share() {
        assert_eq!(Pattern::RandRead.read_pct(None).unwrap(), 100);
        assert_eq!(Pattern::Read.read_pct(Some(100)).unwrap(), 100);
        assert_eq!(Pattern::Write.read_pct(Some(0)).unwrap(), 0);
        let cases = [
            (Pattern::RandRead, 70, "`randread` only reads, which excludes `--read-pct 70`", "use `randrw`"),
            (Pattern::Write, 100, "`write` only writes, which excludes `--read-pct 100`", "use `rw`"),
            (Pattern::Rw, 101, "`--read-pct 101` is not a percentage", "write a whole number from 0 to 100"),
        ];
        for (pattern, read_pct, message, hint) in cases {
            let error = pattern.read_pct(Some(read_pct)).unwrap_err();
            assert_eq!((error.to_string().as_str(), error.hint().unwrap().as_str()), (message, hint));
        }
    }
}
