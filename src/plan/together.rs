//! The order in which volumes, or loads, have their turns: each alone and all together.

use std::fmt;
use std::ops::Range;

use super::io::Level;
use model::record::facts::VOLUMES_JOIN;

/// Some of several volumes or loads, at least one.
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

/// The letter of volume or load number `volume`, counted from 0; there are at most
/// [`Volumes::MAX`](model::config::io::Volumes::MAX).
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

/// `all` in so many rounds, each with its number from 1. Every other round goes backwards: over two rounds each lies at the same mean
/// instant, so that a platform that drifts does so for all of them alike, and a credit that is used up shows as rounds that differ.
pub(super) fn alternating<T: Clone>(all: &[T], rounds: u32) -> Vec<(u32, T)> {
    let of_round = |round: u32| {
        let mut chosen = all.to_vec();
        if round.is_multiple_of(2) {
            chosen.reverse();
        }
        chosen.into_iter().map(move |chosen| (round, chosen))
    };
    (1..=rounds).flat_map(of_round).collect()
}

/// Each of `loads` alone and all together in turn, with the round of each turn, in rounds that go to and fro.
pub fn turns(loads: usize, rounds: u32) -> Vec<(u32, Chosen)> {
    let all: Vec<Chosen> = (0..loads).map(Chosen::One).chain([Chosen::All { volumes: loads }]).collect();
    alternating(&all, rounds)
}

/// Depth by depth, the turns of volumes.
pub(super) fn schedule(depths: &[u32], volumes: usize, rounds: u32) -> Vec<Level> {
    let of_depth = |depth: &u32| {
        let depth = *depth;
        turns(volumes, rounds).into_iter().map(move |(round, chosen)| Level::Volumes { depth, chosen, round })
    };
    depths.iter().flat_map(of_depth).collect()
}
