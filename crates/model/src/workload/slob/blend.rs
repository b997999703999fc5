//! Kinds of work of a database, each at a rate of its own.

use crate::workload::mix::Split;
use crate::workload::rng::{Choice, Rng};
use crate::workload::{Drawn, OperationKind, RedoStress, Shape, SlobOperation, Stream};

/// An open loop in which any session does whatever is due.
#[derive(Clone, Debug, PartialEq)]
pub struct SlobBlend {
    /// Schemas under load, over which sessions are spread; at least 1.
    pub schemas: u32,
    /// What is done, of which one has a rate above 0.
    pub parts: Vec<SlobPart>,
}

/// One kind of work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlobPart {
    /// What an operation does.
    pub kind: OperationKind,
    /// Operations per second.
    pub per_s: f64,
    /// Blocks that each touches, in the mean: each a whole number of them, one of the two next to it. From 1 to `region_blocks`; of a
    /// scan, which reads its own table, it does not count.
    pub blocks: f64,
    /// The first block of each schema's table that it may touch.
    pub from_block: u64,
    /// How many there are; at least 1.
    pub region_blocks: u64,
    /// Share of updates that change all columns of their rows rather than two, 0 to 1.
    pub heavy_share: f64,
}

impl SlobPart {
    /// Work on any of `scale_blocks` blocks, with little redo.
    pub fn on_all(kind: OperationKind, per_s: f64, blocks: f64, scale_blocks: u64) -> Self {
        Self { kind, per_s, blocks, from_block: 0, region_blocks: scale_blocks.max(1), heavy_share: 0.0 }
    }
}

impl SlobBlend {
    /// Operations of all kinds per second.
    pub fn per_s(&self) -> f64 {
        self.parts.iter().map(|part| part.per_s).sum()
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
        // Each session begins elsewhere between whole blocks: where many do little, none would come to the next one.
        let mut phases = Choice::HotSpot.rng(seed, stream);
        let part = |part: &SlobPart| {
            let region_blocks = part.region_blocks.max(1);
            let blocks = part.blocks.max(1.0).min(region_blocks as f64);
            let part = SlobPart { region_blocks, blocks, ..*part };
            Drawer { part, owed_blocks: phases.unit_f64(), owed_heavy: phases.unit_f64() }
        };
        SlobBlendSession {
            schema: stream % self.schemas.max(1),
            parts: self.parts.iter().map(part).collect(),
            split: Split::new(self.parts.iter().map(|part| part.per_s), Choice::MixPhase.rng(seed, stream)),
            keys: Choice::Key.rng(seed, stream),
        }
    }
}

/// The endless operations of one session.
#[derive(Clone, Debug)]
pub struct SlobBlendSession {
    schema: u32,
    parts: Vec<Drawer>,
    split: Split,
    keys: Rng,
}

/// A part and what it is behind with, so that means come out in every stretch.
#[derive(Clone, Debug)]
struct Drawer {
    part: SlobPart,
    /// What operations have touched too little so far, below one block.
    owed_blocks: f64,
    /// The same of heavy updates, below one update.
    owed_heavy: f64,
}

impl Drawer {
    #[inline]
    fn draw(&mut self, schema: u32, keys: &mut Rng) -> SlobOperation {
        let SlobPart { kind, blocks, from_block, region_blocks, heavy_share, .. } = self.part;
        if kind == OperationKind::Scan {
            return SlobOperation { kind, schema, first_key: 0, keys: 0, redo_stress: RedoStress::Lite };
        }
        let wanted = blocks + self.owed_blocks;
        self.owed_blocks = wanted.fract();
        let count = (wanted as u64).min(region_blocks) as u32;
        self.owed_heavy += heavy_share;
        let is_heavy = self.owed_heavy >= 1.0;
        if is_heavy {
            self.owed_heavy -= 1.0;
        }
        let first_key = from_block + keys.below(region_blocks - u64::from(count) + 1);
        let redo_stress = if is_heavy { RedoStress::Heavy } else { RedoStress::Lite };
        SlobOperation { kind, schema, first_key, keys: count, redo_stress }
    }
}

impl Stream for SlobBlendSession {
    type Operation = SlobOperation;

    #[inline]
    fn draw(&mut self) -> Drawn<SlobOperation> {
        let part = &mut self.parts[self.split.draw()];
        Drawn { operation: part.draw(self.schema, &mut self.keys), think_ns: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blend() -> SlobBlend {
        SlobBlend {
            schemas: 2,
            parts: vec![
                SlobPart::on_all(OperationKind::Read, 19_000.0, 1.0, 1_000),
                SlobPart::on_all(OperationKind::Update, 200.0, 5.0, 1_000),
                SlobPart::on_all(OperationKind::Scan, 10.0, 0.0, 1),
            ],
        }
    }

    #[test]
    fn each_kind_comes_at_its_own_rate_with_its_own_blocks() {
        let mut counts = [0_f64; 3];
        let mut session = blend().stream(1, 1);
        for _ in 0..192_100 {
            let operation = session.draw().operation;
            counts[operation.kind.index()] += 1.0;
            assert_eq!(operation.keys, [1, 5, 0][operation.kind.index()]);
            assert!(operation.schema == 1 && operation.first_key + u64::from(operation.keys) <= 1_000);
        }
        for (count, expected) in counts.into_iter().zip([190_000.0_f64, 2_000.0, 100.0]) {
            assert!((count - expected).abs() <= 4.0 * expected.sqrt(), "{counts:?}");
        }
        assert_eq!(blend().per_s(), 19_210.0);
    }

    #[test]
    fn a_fraction_of_a_block_and_a_share_of_heavy_updates_come_out_in_the_mean() {
        let update = SlobPart::on_all(OperationKind::Update, 200.0, 1.52, 1_000);
        let mut session = SlobBlend { schemas: 1, parts: vec![SlobPart { heavy_share: 0.3, ..update }] }.stream(1, 0);
        let drawn: Vec<SlobOperation> = (0..1_000).map(|_| session.draw().operation).collect();
        assert!(drawn.iter().all(|operation| (1..=2).contains(&operation.keys)), "{drawn:?}");
        let changed: u32 = drawn.iter().map(|operation| operation.keys).sum();
        assert!((1_519..=1_521).contains(&changed), "{changed}");
        let heavy = drawn.iter().filter(|operation| operation.redo_stress == RedoStress::Heavy).count();
        assert!((299..=301).contains(&heavy), "{heavy}");
    }

    #[test]
    fn a_part_keeps_to_its_blocks() {
        let hot =
            SlobPart { from_block: 100, region_blocks: 64, ..SlobPart::on_all(OperationKind::Read, 1.0, 64.0, 1) };
        let cold =
            SlobPart { from_block: 164, region_blocks: 36, ..SlobPart::on_all(OperationKind::Update, 1.0, 1.0, 1) };
        let mut session = SlobBlend { schemas: 1, parts: vec![hot, cold] }.stream(5, 0);
        for _ in 0..1_000 {
            let SlobOperation { kind, first_key, keys, .. } = session.draw().operation;
            let range = first_key..first_key + u64::from(keys);
            match kind {
                OperationKind::Read => assert_eq!(range, 100..164),
                _ => assert!(range.start >= 164 && range.end <= 200, "{range:?}"),
            }
        }
    }

    #[test]
    fn no_blend_makes_a_generator_fail() {
        let part = |kind, region_blocks| SlobPart { blocks: 50.0, ..SlobPart::on_all(kind, 1.0, 1.0, region_blocks) };
        let nothing = SlobPart { region_blocks: 0, heavy_share: f64::NAN, ..part(OperationKind::Update, 1) };
        let tiny = SlobBlend { schemas: 0, parts: vec![part(OperationKind::Update, 3), nothing] };
        let mut session = tiny.stream(1, 4_000);
        for _ in 0..2_000 {
            let operation = session.draw().operation;
            assert!(operation.first_key + u64::from(operation.keys) <= 3 && operation.schema == 0);
        }
    }
}
