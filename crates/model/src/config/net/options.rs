//! A load on a network, as it was asked for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{MAX_MESSAGE_BYTES, MIN_MESSAGE_BYTES, NetProblem};
use crate::config::ConfigError;
use crate::config::io::{DepthList, MAX_DEPTH, RateRange};
use crate::units::Bytes;
use crate::workload::Arrival;
use crate::workload::net::{NetClass, NetKind, NetShape, Sizes};

/// Most connections of a load.
pub const MAX_CONNECTIONS: u32 = 4_096;

/// A chunk of a bulk flow.
const CHUNK: Sizes = Sizes::Fixed(128 << 10);
/// A redo write, and a block.
const BLOCK_BYTES: u32 = 8 << 10;
/// A message that asks for a block: the estimate of Oracle's own reports.
const MESSAGE_BYTES: u32 = 200;
/// A round trip.
const PING_BYTES: u32 = 64;
/// Rows of an answer: what SQL*Plus fetches at a time; and bytes of each.
const ROWS: u32 = 15;
const ROW_BYTES: u32 = 100;
/// An acknowledgement: its header.
const ACKNOWLEDGEMENT_BYTES: u32 = MIN_MESSAGE_BYTES;

/// Operations under way on each connection where they need not be one by one: in a closed loop, and at a rate.
const OUTSTANDING_ASYNC: u32 = 32;
const OUTSTANDING_AT_RATE: u32 = 64;
/// Connections at a rate where each asks one by one.
const CONNECTIONS_AT_RATE: u32 = 32;

/// A load on a network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct NetOptions {
    /// What crosses it.
    pub pattern: NetPattern,
    /// Connections; a sweep may have several numbers. `None` for what fits the pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<DepthList>,
    /// Operations under way on each connection; a sweep may have several numbers. `None` for what fits the pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outstanding: Option<DepthList>,
    /// Where bulk data flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<FlowDirection>,
    /// Sizes of what is sent, of blocks, or of chunks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Sizes>,
    /// Size of a request for a block or for rows.
    #[serde(default, rename = "request_bytes", skip_serializing_if = "Option::is_none")]
    pub request: Option<Bytes>,
    /// Rows of each answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u32>,
    /// Bytes of each row.
    #[serde(default, rename = "row_bytes", skip_serializing_if = "Option::is_none")]
    pub row_size: Option<Bytes>,
    /// Whether redo is written durably before it is acknowledged.
    #[serde(default, skip_serializing_if = "crate::text::is_default")]
    pub is_durable: bool,
    /// Whether blocks are asked for and sent as datagrams.
    #[serde(default, skip_serializing_if = "crate::text::is_default")]
    pub is_udp: bool,
    /// Rates of an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<RateRange>,
    /// How its operations arrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival: Option<Arrival>,
}

/// Connections and what is under way on each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Outstanding {
    /// Connections, or flows in each direction.
    pub connections: u32,
    /// Operations under way on each.
    pub each: u32,
}

impl NetOptions {
    /// A load of one pattern, with all else as fits it.
    pub fn new(pattern: NetPattern) -> Self {
        Self {
            pattern,
            connections: None,
            outstanding: None,
            direction: None,
            sizes: None,
            request: None,
            rows: None,
            row_size: None,
            is_durable: false,
            is_udp: false,
            rates: None,
            arrival: None,
        }
    }

    /// Finds what contradicts each other.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.find_problem().map_or(Ok(()), |problem| Err(ConfigError::Net(problem)))
    }

    fn find_problem(&self) -> Option<NetProblem> {
        let pattern = self.pattern;
        let only =
            |flag, is_there: bool, fits: bool| (is_there && !fits).then_some(NetProblem::NotFor { flag, pattern });
        let of_other_patterns = [
            only("--direction", self.direction.is_some(), pattern == NetPattern::Bulk),
            only("--durable", self.is_durable, pattern.is_redo()),
            only("--udp", self.is_udp, pattern == NetPattern::Gc),
            only("--request", self.request.is_some(), matches!(pattern, NetPattern::Gc | NetPattern::SqlNet)),
            only("--rows", self.rows.is_some(), pattern == NetPattern::SqlNet),
            only("--row-size", self.row_size.is_some(), pattern == NetPattern::SqlNet),
            only("--size", self.sizes.is_some(), pattern != NetPattern::SqlNet),
        ];
        let drawn = matches!(self.sizes, Some(Sizes::Drawn(_))) && !pattern.is_redo();
        let most =
            self.levels().into_iter().map(|it| u64::from(it.connections) * u64::from(it.each)).max().unwrap_or(0);
        let varying = |list: &Option<DepthList>| list.as_ref().is_some_and(|DepthList(list)| list.len() > 1);
        let is_deep = |DepthList(list): &DepthList| list.iter().any(|depth| *depth > 1);
        of_other_patterns.into_iter().flatten().next().or(match self {
            _ if drawn => Some(NetProblem::DrawnSizes { pattern }),
            Self { outstanding: Some(depths), .. } if pattern.is_one_by_one() && is_deep(depths) => {
                Some(NetProblem::OneByOne { pattern })
            }
            _ if varying(&self.connections) && varying(&self.outstanding) => Some(NetProblem::TwoAxes),
            Self { rates: Some(_), .. } if varying(&self.connections) || varying(&self.outstanding) => {
                Some(NetProblem::AxisAndRates)
            }
            Self { rates: Some(_), direction: Some(FlowDirection::Down | FlowDirection::Both), .. } => {
                Some(NetProblem::RateOfServer)
            }
            Self { arrival: Some(_), rates: None, .. } => Some(NetProblem::ArrivalWithoutRate),
            _ if most > u64::from(MAX_DEPTH) => Some(NetProblem::TooMany { operations: most }),
            _ => self.message_problem(),
        })
    }

    fn message_problem(&self) -> Option<NetProblem> {
        let request = self.request.map_or(u64::from(MESSAGE_BYTES), |Bytes(bytes)| bytes);
        let sizes = u64::from(MIN_MESSAGE_BYTES)..=u64::from(MAX_MESSAGE_BYTES);
        if !sizes.contains(&request) {
            return Some(NetProblem::Size { text: request.to_string() });
        }
        let rows = u64::from(self.rows.unwrap_or(ROWS));
        let row = self.row_size.map_or(u64::from(ROW_BYTES), |Bytes(bytes)| bytes);
        let answer = rows.saturating_mul(row).saturating_add(u64::from(MIN_MESSAGE_BYTES));
        if !sizes.contains(&answer) {
            return Some(NetProblem::Answer { bytes: Bytes(answer) });
        }
        let largest = self.sizes.as_ref().map_or(BLOCK_BYTES, Sizes::largest);
        (self.is_udp && largest > MAX_DATAGRAM_BYTES).then_some(NetProblem::Datagram { bytes: largest })
    }

    /// How many connections, and how much on each, step by step. With rates there is one.
    pub fn levels(&self) -> Vec<Outstanding> {
        let one =
            |list: &Option<DepthList>, usual: u32| list.as_ref().map_or(vec![usual], |DepthList(list)| list.clone());
        let is_open = self.rates.is_some();
        let (usual_connections, usual_each) = match self.pattern {
            NetPattern::Bulk => (1, 1),
            NetPattern::RedoSync | NetPattern::SqlNet => (if is_open { CONNECTIONS_AT_RATE } else { 1 }, 1),
            NetPattern::RedoAsync => (1, if is_open { OUTSTANDING_AT_RATE } else { OUTSTANDING_ASYNC }),
            NetPattern::Gc | NetPattern::Ping => (1, if is_open { OUTSTANDING_AT_RATE } else { 1 }),
        };
        let (connections, each) = (one(&self.connections, usual_connections), one(&self.outstanding, usual_each));
        let pair = |connections: u32| each.iter().map(move |each| Outstanding { connections, each: *each });
        connections.iter().copied().flat_map(pair).collect()
    }

    /// The sizes that are sent, or of chunks.
    pub fn sizes_in_force(&self) -> Sizes {
        let fixed = |bytes| Sizes::Fixed(bytes);
        match self.pattern {
            NetPattern::Bulk => self.sizes.clone().unwrap_or(CHUNK),
            NetPattern::RedoSync | NetPattern::RedoAsync => self.sizes.clone().unwrap_or(fixed(BLOCK_BYTES)),
            NetPattern::Gc | NetPattern::SqlNet => {
                fixed(self.request.map_or(MESSAGE_BYTES, |Bytes(bytes)| bytes as u32))
            }
            NetPattern::Ping => self.sizes.clone().unwrap_or(fixed(PING_BYTES)),
        }
    }

    /// Bytes of an answer; 0 where nothing is answered.
    pub fn answer_bytes(&self) -> u32 {
        match self.pattern {
            NetPattern::Bulk => 0,
            NetPattern::RedoSync | NetPattern::RedoAsync => ACKNOWLEDGEMENT_BYTES,
            NetPattern::Gc => self.sizes.as_ref().map_or(BLOCK_BYTES, Sizes::largest),
            NetPattern::Ping => self.sizes_in_force().largest(),
            NetPattern::SqlNet => {
                let row = self.row_size.map_or(ROW_BYTES, |Bytes(bytes)| bytes as u32);
                MIN_MESSAGE_BYTES.saturating_add(self.rows.unwrap_or(ROWS).saturating_mul(row))
            }
        }
    }

    /// The load at one level.
    pub fn shape(&self, level: Outstanding) -> NetShape {
        let class = |kind| NetClass {
            kind,
            connections: level.connections,
            outstanding: level.each,
            sizes: self.sizes_in_force(),
            answer_bytes: self.answer_bytes(),
            is_durable: self.is_durable,
        };
        let classes = match (self.pattern, self.direction.unwrap_or_default()) {
            (NetPattern::Bulk, FlowDirection::Up) => vec![class(NetKind::Send)],
            (NetPattern::Bulk, FlowDirection::Down) => vec![class(NetKind::Receive)],
            (NetPattern::Bulk, FlowDirection::Both) => vec![class(NetKind::Send), class(NetKind::Receive)],
            (NetPattern::RedoSync | NetPattern::RedoAsync, _) => vec![class(NetKind::Redo)],
            (NetPattern::Gc, _) => vec![class(NetKind::Block)],
            (NetPattern::SqlNet, _) => vec![class(NetKind::Rows)],
            (NetPattern::Ping, _) => vec![class(NetKind::Ping)],
        };
        NetShape { classes }
    }
}

/// The largest message of one datagram: what the length in its own header allows (65,535) without those of IP and UDP.
const MAX_DATAGRAM_BYTES: u32 = 65_507;

/// A pattern in which databases use a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetPattern {
    /// As much as goes through: backups, copies, data files.
    Bulk,
    /// Redo writes, one under way on each connection: synchronous transport.
    RedoSync,
    /// Redo writes, many under way on each connection: asynchronous transport.
    RedoAsync,
    /// Small messages that are answered by a block: the interconnect of a cluster.
    Gc,
    /// Small requests that are answered by rows: sessions of applications.
    SqlNet,
    /// A few bytes there and back.
    Ping,
}

impl NetPattern {
    /// Every pattern.
    pub const ALL: [Self; 6] = [Self::Bulk, Self::RedoSync, Self::RedoAsync, Self::Gc, Self::SqlNet, Self::Ping];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bulk => "bulk",
            Self::RedoSync => "redo-sync",
            Self::RedoAsync => "redo-async",
            Self::Gc => "gc",
            Self::SqlNet => "sqlnet",
            Self::Ping => "ping",
        }
    }

    /// Whether redo is sent.
    pub const fn is_redo(self) -> bool {
        matches!(self, Self::RedoSync | Self::RedoAsync)
    }

    /// Whether a connection waits for its answer before it asks again, by what the pattern is.
    pub const fn is_one_by_one(self) -> bool {
        matches!(self, Self::Bulk | Self::RedoSync | Self::SqlNet)
    }
}

impl FromStr for NetPattern {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|pattern| pattern.name() == text);
        found.ok_or_else(|| ConfigError::Net(NetProblem::Pattern { text: text.to_owned() }))
    }
}

impl fmt::Display for NetPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// In which direction bulk data flow, as this host sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlowDirection {
    /// From here to the server.
    #[default]
    Up,
    /// From the server to here.
    Down,
    /// Both, each with as many flows.
    Both,
}

impl FlowDirection {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Both => "both",
        }
    }
}

impl FromStr for FlowDirection {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = [Self::Up, Self::Down, Self::Both].into_iter().find(|direction| direction.name() == text);
        found.ok_or_else(|| ConfigError::Net(NetProblem::Direction { text: text.to_owned() }))
    }
}

impl fmt::Display for FlowDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut NetOptions), pattern: &str) -> String {
        let mut options = NetOptions::new(pattern.parse().unwrap());
        change(&mut options);
        let error = options.check().unwrap_err();
        assert!(error.hint().is_some(), "{error}");
        error.to_string()
    }

    #[test]
    fn what_a_pattern_has_not_is_refused() {
        assert_eq!(refused(|it| it.is_udp = true, "redo-sync"), "`--udp` has no meaning for the pattern `redo-sync`");
        assert_eq!(refused(|it| it.is_durable = true, "gc"), "`--durable` has no meaning for the pattern `gc`");
        assert_eq!(refused(|it| it.rows = Some(1), "bulk"), "`--rows` has no meaning for the pattern `bulk`");
        assert_eq!(
            refused(|it| it.sizes = Some("4k:1,8k:1".parse().unwrap()), "gc"),
            "sizes that are drawn are for redo, not for the pattern `gc`"
        );
        assert_eq!(
            refused(|it| it.outstanding = Some("8".parse().unwrap()), "redo-sync"),
            "a connection of the pattern `redo-sync` has one operation under way"
        );
        let both = |it: &mut NetOptions| (it.connections, it.outstanding) = ("1,2".parse().ok(), "1,2".parse().ok());
        assert_eq!(refused(both, "gc"), "a sweep varies connections or what is outstanding on each, not both");
        assert_eq!(
            refused(|it| it.arrival = Some(Arrival::Fixed), "gc"),
            "`--arrival` has no meaning without `--rate`"
        );
        let deep = |it: &mut NetOptions| (it.connections, it.outstanding) = ("100".parse().ok(), "100".parse().ok());
        assert_eq!(refused(deep, "gc"), "10000 operations would be under way at once; 4096 is the most");
        let large = |it: &mut NetOptions| (it.is_udp, it.sizes) = (true, "64k".parse().ok());
        assert_eq!(refused(large, "gc"), "no datagram holds 64 KiB");
        let rows = |it: &mut NetOptions| (it.rows, it.row_size) = (Some(u32::MAX), Some(Bytes(1 << 40)));
        assert!(refused(rows, "sqlnet").starts_with("an answer of "));
    }

    #[test]
    fn every_pattern_has_a_load_that_fits_it() {
        for pattern in NetPattern::ALL {
            let options = NetOptions::new(pattern);
            options.check().unwrap();
            let shape = options.shape(options.levels()[0]);
            assert!(shape.sessions() > 0, "{pattern}");
            let open = NetOptions { rates: "1000".parse().ok(), ..options };
            open.check().unwrap();
            assert!(pattern == NetPattern::Bulk || open.shape(open.levels()[0]).sessions() >= 32, "{pattern}");
        }
    }

    #[test]
    fn both_directions_have_as_many_flows_each() {
        let both = NetOptions {
            direction: Some(FlowDirection::Both),
            connections: "8".parse().ok(),
            ..NetOptions::new(NetPattern::Bulk)
        };
        let shape = both.shape(both.levels()[0]);
        assert_eq!((shape.connections(), shape.classes.len()), (16, 2));
    }

    #[test]
    fn messages_are_as_large_as_was_asked() {
        let of = |pattern: &str| NetOptions::new(pattern.parse().unwrap());
        assert_eq!((of("gc").sizes_in_force(), of("gc").answer_bytes()), (Sizes::Fixed(200), 8_192));
        assert_eq!((of("redo-sync").sizes_in_force(), of("redo-sync").answer_bytes()), (Sizes::Fixed(8_192), 32));
        assert_eq!(of("sqlnet").answer_bytes(), 32 + 15 * 100);
        assert_eq!((of("ping").sizes_in_force(), of("ping").answer_bytes()), (Sizes::Fixed(64), 64));
    }

    #[test]
    fn what_is_printed_is_read_back_and_else_nothing() {
        for pattern in NetPattern::ALL {
            assert_eq!(pattern.to_string().parse::<NetPattern>().unwrap(), pattern);
        }
        for direction in [FlowDirection::Up, FlowDirection::Down, FlowDirection::Both] {
            assert_eq!(direction.to_string().parse::<FlowDirection>().unwrap(), direction);
        }
        let error = "redo".parse::<NetPattern>().unwrap_err();
        assert_eq!(error.to_string(), "`redo` is not a pattern of a network");
        assert_eq!(error.hint().unwrap(), "write `bulk`, `redo-sync`, `redo-async`, `gc`, `sqlnet` or `ping`");
        assert!("sideways".parse::<FlowDirection>().is_err());
    }
}
