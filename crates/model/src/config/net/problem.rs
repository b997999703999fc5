//! Everything that can be wrong with a load on a network, in words.

use super::oratcptest::OratcptestProblem;
use super::{DEFAULT_PORT, MAX_MESSAGE_BYTES, MIN_MESSAGE_BYTES, NetPattern};
use crate::config::io::MAX_DEPTH;
use crate::units::Bytes;

/// Why a load on a network cannot be made, as far as that can be said without the server.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum NetProblem {
    /// A text that is no server.
    #[error("`{text}` is not a server")]
    Server { text: String },
    /// A text that is no pattern.
    #[error("`{text}` is not a pattern of a network")]
    Pattern { text: String },
    /// A text that is no direction.
    #[error("`{text}` is not a direction")]
    Direction { text: String },
    /// A text that is no size.
    #[error("`{text}` is not the size of a message")]
    Size { text: String },
    /// A size of several without a weight.
    #[error("`{text}` does not say how often it comes")]
    NoWeight { text: String },
    /// A size twice.
    #[error("the size of {} is there twice", Bytes(u64::from(*bytes)))]
    SizeTwice { bytes: u32 },
    /// More sizes than anybody reads.
    #[error("{sizes} sizes are too many; {most} is the most")]
    TooManySizes { sizes: usize, most: usize },
    /// An option that another pattern has.
    #[error("`{flag}` has no meaning for the pattern `{pattern}`")]
    NotFor { flag: &'static str, pattern: NetPattern },
    /// Drawn sizes where answers have one.
    #[error("sizes that are drawn are for redo, not for the pattern `{pattern}`")]
    DrawnSizes { pattern: NetPattern },
    /// More under way than the pattern has.
    #[error("a connection of the pattern `{pattern}` has one operation under way")]
    OneByOne { pattern: NetPattern },
    /// Two things that vary.
    #[error("a sweep varies connections or what is outstanding on each, not both")]
    TwoAxes,
    /// Rates and something else that vary.
    #[error("a sweep over rates has one number of connections, and one of what is outstanding")]
    AxisAndRates,
    /// A rate of what the server sends.
    #[error("`--rate` sends chunks when they are due, and what flows down is sent by the server")]
    RateOfServer,
    /// Arrivals of a load that waits for its own answers.
    #[error("`--arrival` has no meaning without `--rate`")]
    ArrivalWithoutRate,
    /// More operations than there may be sessions.
    #[error("{operations} operations would be under way at once; {MAX_DEPTH} is the most")]
    TooMany { operations: u64 },
    /// An answer that is too large.
    #[error("an answer of {bytes} is larger than {}", Bytes(u64::from(MAX_MESSAGE_BYTES)))]
    Answer { bytes: Bytes },
    /// A datagram that is too large.
    #[error("no datagram holds {}", Bytes(u64::from(*bytes)))]
    Datagram { bytes: u32 },
    /// A matrix of one server.
    #[error("one server is no matrix: {text}")]
    OneServer { text: String },
    /// A server twice.
    #[error("the server `{server}` is there twice")]
    ServerTwice { server: String },
    /// A list of servers that has one in this process.
    #[error("`self` is a server in this process, and a matrix looks at other hosts")]
    OwnAmongSeveral,
    /// More flows at once than have a thread each.
    #[error("{flows} flows to each of {servers} servers are more than {most} at once")]
    TooManyFlows { flows: u32, servers: usize, most: u32 },
    /// No flow at all.
    #[error("no flow carries nothing")]
    NoFlows,
    /// oratcptest's own options.
    #[error(transparent)]
    Oratcptest(#[from] OratcptestProblem),
}

impl NetProblem {
    pub(in crate::config) fn hint(&self) -> String {
        match self {
            Self::Server { .. } => format!(
                "write HOST or HOST:PORT of `plimsoll net serve` (its port is {DEFAULT_PORT} unless it says otherwise), or `self`"
            ),
            Self::Pattern { .. } => "write `bulk`, `redo-sync`, `redo-async`, `gc`, `sqlnet` or `ping`".to_owned(),
            Self::Direction { .. } => "write `up`, `down` or `both`, as this host sees it".to_owned(),
            Self::Size { .. } => format!(
                "write a size from {MIN_MESSAGE_BYTES} (its header alone) to {}M, such as `8k`",
                MAX_MESSAGE_BYTES >> 20
            ),
            Self::NoWeight { .. } => "write each size with its share: `4k:70,64k:25,1m:5`".to_owned(),
            Self::SizeTwice { .. } => "give each size once".to_owned(),
            Self::TooManySizes { .. } => "give fewer of them, those that come most often".to_owned(),
            Self::NotFor { flag, .. } => match *flag {
                "--direction" => "leave it out, or use `--pattern bulk`",
                "--durable" => "leave it out, or use `--pattern redo-sync` or `redo-async`",
                "--udp" => "leave it out, or use `--pattern gc`",
                "--request" => "leave it out, or use `--pattern gc` or `sqlnet`",
                "--size" => "an answer has `--rows` rows of `--row-size` bytes each",
                _ => "leave it out, or use `--pattern sqlnet`",
            }
            .to_owned(),
            Self::DrawnSizes { .. } => "give one size, or use `--pattern redo-sync` or `redo-async`".to_owned(),
            Self::OneByOne { .. } => "use more `--connections`, or `--pattern redo-async`".to_owned(),
            Self::TwoAxes => "give one of `--connections` and `--outstanding` a single number".to_owned(),
            Self::AxisAndRates => {
                "give `--connections` and `--outstanding` a single number each, or leave `--rate` out".to_owned()
            }
            Self::RateOfServer => "use `--direction up`, or leave `--rate` out".to_owned(),
            Self::ArrivalWithoutRate => "add `--rate`, or leave `--arrival` out".to_owned(),
            Self::TooMany { .. } => "ask for fewer `--connections`, or for less `--outstanding` on each".to_owned(),
            Self::Answer { .. } => "ask for fewer `--rows` or a smaller `--row-size`".to_owned(),
            Self::Datagram { .. } => "use blocks of at most 32 KiB, or leave `--udp` out".to_owned(),
            Self::OneServer { .. } => "name two or more: `--to db2,db3`; `plimsoll net run` looks at one".to_owned(),
            Self::ServerTwice { .. } => "name each server once".to_owned(),
            Self::OwnAmongSeveral => "start `plimsoll net serve` on the hosts, and name those".to_owned(),
            Self::TooManyFlows { servers, most, .. } => match most / u32::try_from(*servers).unwrap_or(u32::MAX) {
                0 => "name fewer servers".to_owned(),
                fits => format!("`--flows {fits}` fits, or name fewer servers"),
            },
            Self::NoFlows => "`--flows 1` is the least".to_owned(),
            Self::Oratcptest(problem) => problem.hint(),
        }
    }
}
