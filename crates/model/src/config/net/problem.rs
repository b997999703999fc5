//! Everything that can be wrong with a load on a network, in words.

use miette::Diagnostic;

use super::oratcptest::OratcptestProblem;
use super::{DEFAULT_PORT, MAX_MESSAGE_BYTES, MIN_MESSAGE_BYTES, NetPattern};
use crate::config::io::MAX_DEPTH;
use crate::units::Bytes;

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
    #[error("the size of {} is there twice", Bytes(u64::from(*bytes)))]
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
    #[error("one server is no matrix: {text}")]
    #[diagnostic(help("name two or more: `--to db2,db3`; `plimsoll net run` looks at one"))]
    OneServer { text: String },
    /// A server twice.
    #[error("the server `{server}` is there twice")]
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
    #[error("no flow carries nothing")]
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
