//! What the user asks of a network.
//!
//! ```
//! use plimsoll_model::config::net::{DEFAULT_PORT, NetServer};
//!
//! assert_eq!("db2".parse::<NetServer>()?.to_string(), format!("db2:{DEFAULT_PORT}"));
//! assert_eq!("self".parse::<NetServer>()?, NetServer::Own);
//! # Ok::<(), plimsoll_model::config::ConfigError>(())
//! ```

mod options;
pub mod oratcptest;

use std::fmt;
use std::str::FromStr;

use miette::Diagnostic;

use crate::config::ConfigError;
use crate::config::io::MAX_DEPTH;
use crate::config::slob::bytes_text;
use crate::units::Bytes;
use crate::workload::net::{Sizes, WeightedSize};
use oratcptest::OratcptestProblem;

pub use options::{FlowDirection, MAX_CONNECTIONS, NetOptions, NetPattern, Outstanding};
pub use oratcptest::{DEFAULT_PORT, NetServer, NetServers};

crate::text::as_text!(FlowDirection, NetPattern, crate::workload::net::Sizes);

/// The smallest message: its header.
pub const MIN_MESSAGE_BYTES: u32 = 32;

/// The largest message.
pub const MAX_MESSAGE_BYTES: u32 = 16 << 20;

/// Sizes that a list may have.
const MAX_SIZES: usize = 64;

/// `8k`, or `4k:70,64k:25,1m:5`.
impl FromStr for Sizes {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        read(text).map_err(ConfigError::Net)
    }
}

fn read(text: &str) -> Result<Sizes, NetProblem> {
    if !text.contains([',', ':']) {
        return size(text).map(Sizes::Fixed);
    }
    let mut sizes: Vec<WeightedSize> = Vec::new();
    for item in text.split(',') {
        let Some((bytes, weight)) = item.split_once(':') else {
            return Err(NetProblem::NoWeight { text: item.trim().to_owned() });
        };
        let bytes = size(bytes)?;
        let weight = weight
            .trim()
            .trim_end_matches('%')
            .trim_end()
            .parse()
            .ok()
            .filter(|weight| (1..=1_000_000).contains(weight));
        let weight = weight.ok_or_else(|| NetProblem::NoWeight { text: item.trim().to_owned() })?;
        if sizes.iter().any(|known| known.bytes == bytes) {
            return Err(NetProblem::SizeTwice { bytes });
        }
        sizes.push(WeightedSize { bytes, weight });
    }
    if sizes.len() > MAX_SIZES {
        return Err(NetProblem::TooManySizes { sizes: sizes.len(), most: MAX_SIZES });
    }
    Ok(match sizes.as_slice() {
        [only] => Sizes::Fixed(only.bytes),
        _ => Sizes::Drawn(sizes),
    })
}

fn size(text: &str) -> Result<u32, NetProblem> {
    let wrong = || NetProblem::Size { text: text.trim().to_owned() };
    let Bytes(bytes) = text.trim().parse().map_err(|_| wrong())?;
    u32::try_from(bytes).ok().filter(|bytes| (MIN_MESSAGE_BYTES..=MAX_MESSAGE_BYTES).contains(bytes)).ok_or_else(wrong)
}

/// As on the command line.
impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |bytes: u32| bytes_text(Bytes(u64::from(bytes)));
        match self {
            Self::Fixed(bytes) => f.pad(&shown(*bytes)),
            Self::Drawn(sizes) => {
                let items: Vec<String> =
                    sizes.iter().map(|size| format!("{}:{}", shown(size.bytes), size.weight)).collect();
                f.pad(&items.join(","))
            }
        }
    }
}

// Everything that can be wrong with a load on a network, in words.

/// Why a load on a network cannot be made, as far as that can be said without the server.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Diagnostic)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum NetProblem {
    /// A text that is no server.
    #[error("`{text}` is not a server")]
    #[diagnostic(help(
        "write HOST or HOST:PORT of `plimsoll net serve` (its port is {DEFAULT_PORT} unless it says otherwise), or \
         `self`"
    ))]
    Server { text: String },
    /// A text that is no pattern.
    #[error("`{text}` is not a pattern of a network")]
    #[diagnostic(help("write `bulk`, `redo-sync`, `redo-async`, `gc`, `sqlnet` or `ping`"))]
    Pattern { text: String },
    /// A text that is no direction.
    #[error("`{text}` is not a direction")]
    #[diagnostic(help("write `up`, `down` or `both`, as this host sees it"))]
    Direction { text: String },
    /// A text that is no size.
    #[error("`{text}` is not the size of a message")]
    #[diagnostic(help(
        "write a size from {MIN_MESSAGE_BYTES} (its header alone) to {}M, such as `8k`",
        MAX_MESSAGE_BYTES >> 20
    ))]
    Size { text: String },
    /// A size of several without a weight.
    #[error("`{text}` does not say how often it comes")]
    #[diagnostic(help("write each size with its share: `4k:70,64k:25,1m:5`"))]
    NoWeight { text: String },
    /// A size twice.
    #[error("the size of {} is listed twice", Bytes(u64::from(*bytes)))]
    #[diagnostic(help("give each size once"))]
    SizeTwice { bytes: u32 },
    /// More sizes than anybody reads.
    #[error("{sizes} sizes are too many; {most} is the most")]
    #[diagnostic(help("give fewer of them, those that come most often"))]
    TooManySizes { sizes: usize, most: usize },
    /// An option that another pattern has.
    #[error("`{flag}` has no meaning for the pattern `{pattern}`")]
    #[diagnostic(help("{}", who_has(flag)))]
    NotFor { flag: &'static str, pattern: NetPattern },
    /// Drawn sizes where answers have one.
    #[error("sizes that are drawn are for redo, not for the pattern `{pattern}`")]
    #[diagnostic(help("give one size, or use `--pattern redo-sync` or `redo-async`"))]
    DrawnSizes { pattern: NetPattern },
    /// More under way than the pattern has.
    #[error("a connection of the pattern `{pattern}` has one operation under way")]
    #[diagnostic(help("use more `--connections`, or `--pattern redo-async`"))]
    OneByOne { pattern: NetPattern },
    /// Two things that vary.
    #[error("a sweep varies connections or what is outstanding on each, not both")]
    #[diagnostic(help("give one of `--connections` and `--outstanding` a single number"))]
    TwoAxes,
    /// Rates and something else that vary.
    #[error("a sweep over rates has one number of connections, and one of what is outstanding")]
    #[diagnostic(help("give `--connections` and `--outstanding` a single number each, or leave `--rate` out"))]
    AxisAndRates,
    /// A rate of what the server sends.
    #[error("`--rate` sends chunks when they are due, and what flows down is sent by the server")]
    #[diagnostic(help("use `--direction up`, or leave `--rate` out"))]
    RateOfServer,
    /// Arrivals of a load that waits for its own answers.
    #[error("`--arrival` has no meaning without `--rate`")]
    #[diagnostic(help("add `--rate`, or leave `--arrival` out"))]
    ArrivalWithoutRate,
    /// More operations than there may be sessions.
    #[error("{operations} operations would be under way at once; {MAX_DEPTH} is the most")]
    #[diagnostic(help("ask for fewer `--connections`, or for less `--outstanding` on each"))]
    TooMany { operations: u64 },
    /// An answer that is too large.
    #[error("an answer of {bytes} is larger than {}", Bytes(u64::from(MAX_MESSAGE_BYTES)))]
    #[diagnostic(help("ask for fewer `--rows` or a smaller `--row-size`"))]
    Answer { bytes: Bytes },
    /// A datagram that is too large.
    #[error("no datagram holds {}", Bytes(u64::from(*bytes)))]
    #[diagnostic(help("use blocks of at most 32 KiB, or leave `--udp` out"))]
    Datagram { bytes: u32 },
    /// A matrix of one server.
    #[error("a matrix needs at least two servers: {text}")]
    #[diagnostic(help("name two or more: `--to db2,db3`; `plimsoll net run` looks at one"))]
    OneServer { text: String },
    /// A server twice.
    #[error("the server `{server}` is listed twice")]
    #[diagnostic(help("name each server once"))]
    ServerTwice { server: String },
    /// A list of servers that has one in this process.
    #[error("`self` is a server in this process, and a matrix looks at other hosts")]
    #[diagnostic(help("start `plimsoll net serve` on the hosts, and name those"))]
    OwnAmongSeveral,
    /// More flows at once than have a thread each.
    #[error("{flows} flows to each of {servers} servers are more than {most} at once")]
    #[diagnostic(help("{}", fewer_flows(*servers, *most)))]
    TooManyFlows { flows: u32, servers: usize, most: u32 },
    /// No flow at all.
    #[error("`--flows` must be at least 1")]
    #[diagnostic(help("`--flows 1` is the least"))]
    NoFlows,
    /// oratcptest's own options.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Oratcptest(#[from] OratcptestProblem),
}

fn who_has(flag: &str) -> &'static str {
    match flag {
        "--direction" => "leave it out, or use `--pattern bulk`",
        "--durable" => "leave it out, or use `--pattern redo-sync` or `redo-async`",
        "--udp" => "leave it out, or use `--pattern gc`",
        "--request" => "leave it out, or use `--pattern gc` or `sqlnet`",
        "--size" => "an answer has `--rows` rows of `--row-size` bytes each",
        _ => "leave it out, or use `--pattern sqlnet`",
    }
}

fn fewer_flows(servers: usize, most: u32) -> String {
    match most / u32::try_from(servers).unwrap_or(u32::MAX) {
        0 => "name fewer servers".to_owned(),
        fits => format!("`--flows {fits}` fits, or name fewer servers"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_size_and_several_are_read() {
        for (text, shown) in [
            ("8k", "8K"),
            ("200", "200B"),
            ("1m", "1M"),
            ("4k:70, 64k:25 ,1m:5", "4K:70,64K:25,1M:5"),
            ("4k:70%,8k:30%", "4K:70,8K:30"),
            ("8k:100", "8K"),
        ] {
            assert_eq!(text.parse::<Sizes>().unwrap().to_string(), shown, "{text}");
        }
    }

    #[test]
    fn others_are_refused_with_what_to_write() {
        for (text, message) in [
            ("", "`` is not the size of a message"),
            ("31", "`31` is not the size of a message"),
            ("17m", "`17m` is not the size of a message"),
            ("4k,8k", "`4k` does not say how often it comes"),
            ("4k:0,8k:1", "`4k:0` does not say how often it comes"),
            ("4k:1,4096:2", "the size of 4 KiB is listed twice"),
        ] {
            let error = text.parse::<Sizes>().unwrap_err();
            assert_eq!(error.to_string(), message, "{text}");
            assert!(error.hint().is_some());
        }
        let many: Vec<String> = (0..65).map(|size| format!("{}:1", 100 + size)).collect();
        assert!(many.join(",").parse::<Sizes>().is_err());
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(sizes in prop::collection::btree_map(32..=MAX_MESSAGE_BYTES, 1..100_u32, 2..20)) {
            let drawn = Sizes::Drawn(sizes.into_iter().map(|(bytes, weight)| WeightedSize { bytes, weight }).collect());
            prop_assert_eq!(drawn.to_string().parse::<Sizes>().unwrap(), drawn);
        }

        #[test]
        fn never_panics_on_any_text(text in "[0-9kmKM:,%. ]*|.*") {
            let _ = text.parse::<Sizes>();
        }
    }
}
