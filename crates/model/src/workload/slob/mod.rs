//! The operations of one session of the SLOB method.

use super::mix::Mix;
use super::{Choice, Drawn, Operation, Rng, Shape, Stream};
use crate::workload::mix::Split;

/// What a SLOB load looks like: the facts that decide its operations.
///
/// Values that contradict each other are for the configuration to refuse; here each has the nearest meaning that stays
/// inside the tables, so that no shape can make a generator fail.
#[derive(Clone, Debug, PartialEq)]
pub struct SlobShape {
    /// Schemas under load; at least 1.
    pub schemas: u32,
    /// Sessions that call each schema their home; at least 1.
    pub threads_per_schema: u32,
    /// Blocks, and so keys, of each schema's table; at least 1.
    pub scale_blocks: u64,
    /// Blocks that a read or update touches; at most `scale_blocks`.
    pub work_unit: u32,
    /// Updates in each hundred operations.
    pub update_pct: u8,
    /// Share of updates among all operations, 0 to 1, by chance: each kind then arrives at random where operations do. Absent where
    /// `update_pct` and `scan_pct` say what kinds there are.
    pub update_share: Option<f64>,
    /// Scans in each hundred operations; with `update_pct` at most 100, or else updates come first.
    pub scan_pct: u8,
    /// How much of a row an update changes.
    pub redo_stress: RedoStress,
    /// A part of each table that is touched more often.
    pub hot_spot: Option<HotSpot>,
    /// One operation in so many goes to schema 0 whatever its session's home; 0 is never.
    pub hot_schema_frequency: u32,
    /// Pauses between operations.
    pub think: Option<Think>,
}

/// A part of each table that is touched more often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotSpot {
    /// Its first block.
    pub offset_blocks: u64,
    /// Its blocks. Where they are fewer than the work unit, every hot operation begins at the first of them.
    pub blocks: u64,
    /// One operation in so many goes there; 0 is never.
    pub frequency: u32,
}

/// Pauses between operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Think {
    /// One operation in so many is followed by a pause; 0 is never.
    pub frequency: u32,
    /// The shortest pause.
    pub min_ns: u64,
    /// The longest pause; not shorter than `min_ns`.
    pub max_ns: u64,
}

/// The endless operations of one session.
///
/// Every choice is drawn for every operation, from its own stream, even where another choice overrules it. So the n-th
/// operation of two shapes differs only in what the shapes differ in.
#[derive(Clone, Debug)]
pub struct SlobSession {
    home_schema: u32,
    work_unit: u32,
    starts: u64,
    redo_stress: RedoStress,
    mix: Mix<OperationKind>,
    by_chance: Option<Split>,
    keys: Rng,
    hot_spot: Option<HotKeys>,
    hot_schema: Option<Chance>,
    think: Option<Pauses>,
}

impl SlobSession {
    /// Session number `session` of a load: sessions are counted schema by schema, so that sessions
    /// `0..threads_per_schema` have schema 0 as their home.
    pub fn new(shape: &SlobShape, seed: u64, session: u32) -> Self {
        let scale = shape.scale_blocks.max(1);
        let work_unit = u64::from(shape.work_unit).min(scale) as u32;
        let last_start = scale - u64::from(work_unit);
        let shares = [(OperationKind::Update, shape.update_pct), (OperationKind::Scan, shape.scan_pct)];
        let phase = Choice::MixPhase.rng(seed, session).next_u64();
        Self {
            home_schema: session / shape.threads_per_schema.max(1) % shape.schemas.max(1),
            work_unit,
            starts: last_start + 1,
            redo_stress: shape.redo_stress,
            mix: Mix::new(&shares, OperationKind::Read, phase),
            by_chance: shape.update_share.map(|share| {
                let share = share.clamp(0.0, 1.0);
                Split::new([1.0 - share, share].into_iter(), Choice::MixPhase.rng(seed, session))
            }),
            keys: Choice::Key.rng(seed, session),
            hot_spot: shape.hot_spot.and_then(|hot_spot| {
                let first = hot_spot.offset_blocks.min(last_start);
                let last = hot_spot.offset_blocks.saturating_add(hot_spot.blocks).min(scale);
                Some(HotKeys {
                    chance: Chance::new(hot_spot.frequency, Choice::HotSpot.rng(seed, session))?,
                    first,
                    starts: last.saturating_sub(u64::from(work_unit)).saturating_sub(first) + 1,
                })
            }),
            hot_schema: Chance::new(shape.hot_schema_frequency, Choice::HotSchema.rng(seed, session)),
            think: shape.think.and_then(|think| {
                Some(Pauses {
                    chance: Chance::new(think.frequency, Choice::Think.rng(seed, session))?,
                    min_ns: think.min_ns,
                    choices: think.max_ns.saturating_sub(think.min_ns).saturating_add(1),
                })
            }),
        }
    }

    /// The schema that this session works on when it is not sent to the hot one.
    pub fn home_schema(&self) -> u32 {
        self.home_schema
    }
}

/// Kinds that are drawn by chance.
const BY_CHANCE: [OperationKind; 2] = [OperationKind::Read, OperationKind::Update];

/// Each session has a stream of its own.
impl Shape for SlobShape {
    type Operation = SlobOperation;
    type Stream = SlobSession;

    fn stream_of(&self, session: u32) -> u32 {
        session
    }

    fn stream(&self, seed: u64, stream: u32) -> SlobSession {
        SlobSession::new(self, seed, stream)
    }
}

impl Stream for SlobSession {
    type Operation = SlobOperation;

    #[inline]
    fn draw(&mut self) -> Drawn<SlobOperation> {
        let kind = match &mut self.by_chance {
            Some(split) => BY_CHANCE[split.draw()],
            None => self.mix.draw(),
        };
        let cold_key = self.keys.below(self.starts);
        let key = self.hot_spot.as_mut().and_then(HotKeys::draw).unwrap_or(cold_key);
        let is_hot_schema = self.hot_schema.as_mut().is_some_and(Chance::hits);
        let (first_key, keys) = match kind {
            OperationKind::Read | OperationKind::Update => (key, self.work_unit),
            OperationKind::Scan => (0, 0),
        };
        let schema = if is_hot_schema { 0 } else { self.home_schema };
        Drawn {
            operation: SlobOperation { kind, schema, first_key, keys, redo_stress: self.redo_stress },
            think_ns: self.think.as_mut().map_or(0, Pauses::draw),
        }
    }
}

/// Something that happens once in so many times, at random.
#[derive(Clone, Debug)]
struct Chance {
    frequency: u64,
    rng: Rng,
}

impl Chance {
    fn new(frequency: u32, rng: Rng) -> Option<Self> {
        (frequency > 0).then_some(Self { frequency: u64::from(frequency), rng })
    }

    #[inline]
    fn hits(&mut self) -> bool {
        self.rng.below(self.frequency) == 0
    }
}

#[derive(Clone, Debug)]
struct HotKeys {
    chance: Chance,
    first: u64,
    starts: u64,
}

impl HotKeys {
    #[inline]
    fn draw(&mut self) -> Option<u64> {
        self.chance.hits().then(|| self.first + self.chance.rng.below(self.starts))
    }
}

#[derive(Clone, Debug)]
struct Pauses {
    chance: Chance,
    min_ns: u64,
    choices: u64,
}

impl Pauses {
    #[inline]
    fn draw(&mut self) -> u64 {
        if self.chance.hits() { self.min_ns + self.chance.rng.below(self.choices) } else { 0 }
    }
}

/// The kinds of operation that the SLOB method knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OperationKind {
    /// Reads a range of keys, one block for each.
    Read,
    /// Changes and commits the rows of a range of keys.
    Update,
    /// Reads a whole scan table with large reads.
    Scan,
}

impl OperationKind {
    /// Every kind, in the order of [`index`](Self::index).
    pub const ALL: [Self; 3] = [Self::Read, Self::Update, Self::Scan];

    /// The word for this kind in tables and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Update => "update",
            Self::Scan => "scan",
        }
    }

    /// The place of this kind in [`ALL`](Self::ALL), for arrays with one entry for each kind.
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// How much of a row an update changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedoStress {
    /// Two columns, the first and the last.
    Lite,
    /// Every column.
    Heavy,
}

/// One unit that the SLOB method asks a target for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlobOperation {
    /// What is done.
    pub kind: OperationKind,
    /// The schema that it is done to, counted from 0.
    pub schema: u32,
    /// The first logical key touched; 0 for a scan.
    pub first_key: u64,
    /// Keys touched from `first_key` on, one block for each; 0 for a scan, which touches its whole table.
    pub keys: u32,
    /// What an update changes in each row; without meaning for the other kinds.
    pub redo_stress: RedoStress,
}

impl Operation for SlobOperation {
    const KINDS: &'static [&'static str] =
        &[OperationKind::Read.name(), OperationKind::Update.name(), OperationKind::Scan.name()];

    fn kind_index(&self) -> usize {
        self.kind.index()
    }
}

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
mod tests;

#[cfg(test)]
mod operation_tests {
    use super::OperationKind;

    #[test]
    fn each_kind_stands_in_the_list_at_its_own_index() {
        for (place, kind) in OperationKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.index(), place);
        }
        assert_eq!(OperationKind::ALL.map(OperationKind::name), ["read", "update", "scan"]);
    }
}

#[cfg(test)]
mod blend_tests {
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
