//! How many connections to an NFS server, step by step.

use std::fmt;
use std::str::FromStr;

use crate::config::ConfigError;
use crate::config::list::{Gap, numbers};
use crate::config::nfs::MAX_CONNECTIONS;

use super::IoProblem;

/// Connections of each thread to each path of an NFS server, one step each, written as depths are: `1,2,4,8` or `1..16`.
///
/// What is read has at least one number, each from 1 to [`MAX_CONNECTIONS`] and there once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionList(pub Vec<u32>);

/// Whether the connections to an NFS server are varied.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Connections {
    /// They are as many as the address says.
    #[default]
    Addressed,
    /// Each number in turn, everything else the same (`--connections`).
    Each {
        /// The numbers.
        list: ConnectionList,
        /// How often each of them is measured, forth and back.
        rounds: u32,
    },
}

impl Connections {
    /// Each number is one step.
    pub const DEFAULT_ROUNDS: u32 = 1;
}

impl FromStr for ConnectionList {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let list = numbers(text, read, |gap| match gap {
            Gap::Twice(connections) => IoProblem::ConnectionsTwice { connections },
            Gap::Down { first, last } => IoProblem::DepthOrder { first, last },
            Gap::NoDoubling { before, first } => {
                IoProblem::NoDoubling { before: f64::from(before), first: f64::from(first) }
            }
        });
        list.map(Self).map_err(ConfigError::Io)
    }
}

fn read(text: &str) -> Result<u32, IoProblem> {
    let number = text.parse().ok().filter(|number| (1..=MAX_CONNECTIONS).contains(number));
    number.ok_or_else(|| IoProblem::Connections { text: text.to_owned() })
}

impl fmt::Display for ConnectionList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(u32::to_string).collect();
        f.pad(&numbers.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::super::assert_refused;
    use super::ConnectionList;

    #[test]
    fn lists_are_written_as_others_are() {
        for text in ["1,2,4,8,16", "1,2,…,16", "1..16"] {
            assert_eq!(text.parse::<ConnectionList>().unwrap().to_string(), "1,2,4,8,16", "{text}");
        }
        assert_eq!("8,1".parse::<ConnectionList>().unwrap().0, [8, 1]);
    }

    #[test]
    fn refuses_others_and_says_what_to_write() {
        let hint = "write how many connections each thread has to each path: `1,2,4,8`, or `1..16` for doublings";
        for (text, item) in [("", ""), ("0", "0"), ("1,,2", ""), ("1025", "1025"), ("-1", "-1"), ("4.5", "4.5")] {
            let message = format!("`{item}` is not a number of connections from 1 to 1024");
            assert_refused::<ConnectionList>(text, &message, hint);
        }
        assert_refused::<ConnectionList>("1,2,1", "1 is there twice among the connections", "give each number once");
        assert_refused::<ConnectionList>("8..1", "the range from 8 to 1 has nothing in it", "write `1..8`");
    }
}
