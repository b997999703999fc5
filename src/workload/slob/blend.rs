//! Reads, commits and scans of a database, each at a rate of its own.

use crate::workload::mix::Split;
use crate::workload::rng::{Choice, Rng};
use crate::workload::{Drawn, OperationKind, RedoStress, Shape, SlobOperation, Stream};

/// An open loop in which any session does whatever is due.
#[derive(Clone, Debug, PartialEq)]
pub struct SlobBlend {
    /// Schemas under load, over which sessions are spread; at least 1.
    pub schemas: u32,
    /// Blocks of each schema's table; at least 1.
    pub scale_blocks: u64,
    /// Reads of one block per second.
    pub reads_per_s: f64,
    /// Updates per second, each with a commit.
    pub updates_per_s: f64,
    /// Blocks that an update reads and changes, in the mean: each changes a whole number of them, one of the two next to it.
    /// From 1 to `scale_blocks`.
    pub update_blocks: f64,
    /// Scans of a schema's scan table per second.
    pub scans_per_s: f64,
}

impl SlobBlend {
    /// Operations of all kinds per second.
    pub fn per_s(&self) -> f64 {
        self.reads_per_s + self.updates_per_s + self.scans_per_s
    }
}

/// Each session has a stream of its own.
impl Shape for SlobBlend {
    type Operation = SlobOperation;
    type Stream = SlobBlendSession;

    fn stream_of(&self, session: u32) -> u32 {
        session
    }

    fn stream(&self, seed: u64, stream: u32) -> SlobBlendSession {
        let rates = [self.reads_per_s, self.updates_per_s, self.scans_per_s];
        SlobBlendSession {
            schema: stream % self.schemas.max(1),
            scale_blocks: self.scale_blocks.max(1),
            update_blocks: self.update_blocks.max(1.0).min(self.scale_blocks.max(1) as f64),
            owed_blocks: 0.0,
            split: Split::new(rates.into_iter(), Choice::MixPhase.rng(seed, stream)),
            keys: Choice::Key.rng(seed, stream),
        }
    }
}

/// The endless operations of one session.
#[derive(Clone, Debug)]
pub struct SlobBlendSession {
    schema: u32,
    scale_blocks: u64,
    update_blocks: f64,
    /// What updates have changed too little so far, below one block.
    owed_blocks: f64,
    split: Split,
    keys: Rng,
}

impl Stream for SlobBlendSession {
    type Operation = SlobOperation;

    #[inline]
    fn draw(&mut self) -> Drawn<SlobOperation> {
        let kind = OperationKind::ALL[self.split.draw()];
        let keys = match kind {
            OperationKind::Read => 1,
            OperationKind::Update => {
                let wanted = self.update_blocks + self.owed_blocks;
                self.owed_blocks = wanted.fract();
                (wanted as u64).min(self.scale_blocks) as u32
            }
            OperationKind::Scan => 0,
        };
        let first_key = match kind {
            OperationKind::Scan => 0,
            _ => self.keys.below(self.scale_blocks - u64::from(keys) + 1),
        };
        let operation = SlobOperation { kind, schema: self.schema, first_key, keys, redo_stress: RedoStress::Lite };
        Drawn { operation, think_ns: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLEND: SlobBlend = SlobBlend {
        schemas: 2,
        scale_blocks: 1_000,
        reads_per_s: 19_000.0,
        updates_per_s: 200.0,
        update_blocks: 5.0,
        scans_per_s: 10.0,
    };

    #[test]
    fn each_kind_comes_at_its_own_rate_with_its_own_blocks() {
        let mut counts = [0_f64; 3];
        let mut session = BLEND.stream(1, 1);
        for _ in 0..192_100 {
            let operation = session.draw().operation;
            counts[operation.kind.index()] += 1.0;
            assert_eq!(operation.keys, [1, 5, 0][operation.kind.index()]);
            assert!(operation.schema == 1 && operation.first_key + u64::from(operation.keys) <= 1_000);
        }
        for (count, expected) in counts.into_iter().zip([190_000.0_f64, 2_000.0, 100.0]) {
            assert!((count - expected).abs() <= 4.0 * expected.sqrt(), "{counts:?}");
        }
        assert_eq!(BLEND.per_s(), 19_210.0);
    }

    #[test]
    fn a_fraction_of_a_block_for_each_update_is_a_mix_of_updates() {
        let mixed = SlobBlend { reads_per_s: 0.0, scans_per_s: 0.0, update_blocks: 1.52, ..BLEND };
        let mut session = mixed.stream(1, 0);
        let keys: Vec<u32> = (0..1_000).map(|_| session.draw().operation.keys).collect();
        assert!(keys.iter().all(|keys| (1..=2).contains(keys)), "{keys:?}");
        let changed: u32 = keys.iter().sum();
        assert!((1_519..=1_520).contains(&changed), "{changed}");
    }

    #[test]
    fn no_blend_makes_a_generator_fail() {
        let tiny = SlobBlend { scale_blocks: 3, update_blocks: 50.0, schemas: 0, ..BLEND };
        let mut session = tiny.stream(1, 4_000);
        for _ in 0..2_000 {
            let operation = session.draw().operation;
            assert!(operation.first_key + u64::from(operation.keys) <= 3 && operation.schema == 0);
        }
    }
}
