//! The operations of one session of the SLOB method.

mod blend;

pub use blend::{SlobBlend, SlobBlendSession, SlobPart};

use super::mix::Mix;
use super::operation::{OperationKind, RedoStress, SlobOperation};
use super::rng::{Choice, Rng};
use super::shape::{Drawn, Shape, Stream};

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
        let kind = self.mix.draw();
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

#[cfg(test)]
mod tests;
