//! Which block of a region comes next.

use crate::workload::rng::Choice;
use crate::workload::{Permutation, Rng};

use super::zipf::Zipf;
use super::{Access, Distribution};

/// The blocks that one stream visits, one after the other.
#[derive(Clone, Debug)]
pub(super) enum Places {
    Uniform { blocks: u64, rng: Rng },
    Zipf { ranks: Zipf, scatter: Permutation, rng: Rng },
    Hot { hot_blocks: u64, hot_share: f64, scatter: Permutation, is_hot: Rng, rng: Rng },
    Sequential { next: u64, blocks: u64 },
}

/// Whose blocks are drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamPosition {
    /// The class among the classes of its shape. All streams of a class agree about which blocks are popular.
    pub(super) class: u32,
    /// The stream among the streams of its class, and how many there are.
    pub(super) stream_of_class: u32,
    pub(super) streams_of_class: u32,
    /// The stream among all streams.
    pub(super) stream: u32,
}

impl Places {
    /// The places of one stream in a region of `blocks`, from 1 to [`Permutation::MAX_SIZE`].
    pub(super) fn new(access: Access, blocks: u64, seed: u64, place: StreamPosition) -> Self {
        let rng = Choice::Key.rng(seed, place.stream);
        let scatter = || Permutation::new(blocks, Choice::Scatter.rng(seed, place.class).next_u64());
        match access {
            Access::Random(Distribution::Uniform) => Self::Uniform { blocks, rng },
            Access::Random(Distribution::Zipf { theta }) => {
                Self::Zipf { ranks: Zipf::new(blocks, theta), scatter: scatter(), rng }
            }
            Access::Random(Distribution::Hot { space_pct, access_pct }) => Self::Hot {
                hot_blocks: ((blocks as f64 * space_pct / 100.0).round() as u64).clamp(1, blocks),
                hot_share: access_pct / 100.0,
                scatter: scatter(),
                is_hot: Choice::HotSpot.rng(seed, place.stream),
                rng,
            },
            Access::Sequential => {
                let streams = u128::from(place.streams_of_class.max(1));
                let first = u128::from(blocks) * u128::from(place.stream_of_class) / streams;
                Self::Sequential { next: first as u64, blocks }
            }
        }
    }

    /// The number of the next block.
    #[inline]
    pub(super) fn draw(&mut self) -> u64 {
        match self {
            Self::Uniform { blocks, rng } => rng.below(*blocks),
            Self::Zipf { ranks, scatter, rng } => scatter.map(ranks.draw(rng) - 1),
            Self::Hot { hot_blocks, hot_share, scatter, is_hot, rng } => {
                let (hot, all) = (*hot_blocks, scatter.size());
                let is_hot = is_hot.unit_f64() < *hot_share || hot == all;
                scatter.map(if is_hot { rng.below(hot) } else { hot + rng.below(all - hot) })
            }
            Self::Sequential { next, blocks } => {
                let block = *next;
                *next = if block + 1 == *blocks { 0 } else { block + 1 };
                block
            }
        }
    }
}
