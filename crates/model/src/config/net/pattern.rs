//! What crosses the network, and in which direction.

use std::fmt;
use std::str::FromStr;

use super::NetProblem;
use crate::config::ConfigError;

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
