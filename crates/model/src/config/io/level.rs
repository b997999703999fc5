//! How much load one step puts on storage.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What stands between the letters of volumes that are loaded together.
pub const VOLUMES_JOIN: &str = "+";

/// How much load one step puts on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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

/// The letter of volume or load number `volume`, counted from 0; there are at most [`Volumes::MAX`](super::Volumes::MAX).
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
