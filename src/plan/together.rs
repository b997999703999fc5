//! The order in which volumes, or loads, have their turns: each alone and all together.

use std::ops::Range;

use model::config::io::{Chosen, IoLevel};

/// Theirs of what each volume has one of.
pub(super) fn of_chosen(chosen: Chosen, regions: &[Range<u64>]) -> Vec<Range<u64>> {
    match chosen {
        Chosen::One(volume) => vec![regions[volume].clone()],
        Chosen::All { .. } => regions.to_vec(),
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
pub(super) fn schedule(depths: &[u32], volumes: usize, rounds: u32) -> Vec<IoLevel> {
    let of_depth = |depth: &u32| {
        let depth = *depth;
        turns(volumes, rounds).into_iter().map(move |(round, chosen)| IoLevel::Volumes { depth, chosen, round })
    };
    depths.iter().flat_map(of_depth).collect()
}
