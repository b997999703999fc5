//! The order in which volumes are loaded, each alone and all together.

use std::fmt;
use std::ops::Range;

use super::io::Level;
use crate::record::facts::VOLUMES_JOIN;

/// Some of several volumes, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chosen {
    /// One of them, counted from 0.
    One(usize),
    /// All of them.
    All {
        /// How many there are.
        volumes: usize,
    },
}

/// The letter of volume number `volume`, counted from 0; there are at most [`Volumes::MAX`](crate::config::io::Volumes::MAX).
pub fn letter(volume: usize) -> char {
    ('A'..='Z').nth(volume).unwrap_or('?')
}

impl Chosen {
    /// How many volumes these are.
    pub fn count(self) -> u32 {
        match self {
            Self::One(_) => 1,
            Self::All { volumes } => volumes as u32,
        }
    }

    /// Theirs of what each volume has one of.
    pub(super) fn of(self, regions: &[Range<u64>]) -> Vec<Range<u64>> {
        match self {
            Self::One(volume) => vec![regions[volume].clone()],
            Self::All { .. } => regions.to_vec(),
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

/// Depth by depth, each volume alone and all together in turn. Every other round goes backwards: over two rounds each load
/// lies at the same mean instant, so that a platform that drifts does so for all of them alike, and a credit that is used up
/// shows as rounds that differ.
pub(super) fn schedule(depths: &[u32], volumes: usize, rounds: u32) -> Vec<Level> {
    let loads: Vec<Chosen> = (0..volumes).map(Chosen::One).chain([Chosen::All { volumes }]).collect();
    let mut levels = Vec::new();
    for depth in depths {
        for round in 1..=rounds {
            let level = |chosen: &Chosen| Level::Volumes { depth: *depth, chosen: *chosen, round };
            match round % 2 {
                1 => levels.extend(loads.iter().map(level)),
                _ => levels.extend(loads.iter().rev().map(level)),
            }
        }
    }
    levels
}
