//! What a load on raw storage looks like, and the requests of one of its streams.

use crate::workload::mix::Mix;
use crate::workload::{Choice, Drawn, Permutation, Shape, Stream};

use super::{Access, IoKind, IoOperation, Places, StreamPosition};

/// A load on raw storage: classes of requests that run side by side.
///
/// A stream is one place from which requests are drawn; a session is one slot for a request outstanding. Both are
/// numbered class by class, and sessions stream by stream within their class.
#[derive(Clone, Debug, PartialEq)]
pub struct IoShape {
    /// The classes, at least one of which has a slot.
    pub classes: Vec<IoClass>,
}

/// Requests of one size, one order and one mix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IoClass {
    /// As what its requests count.
    pub size: RequestSize,
    /// The length of each request, and what its offset in the visited part is a multiple of; at least 1.
    pub block_bytes: u32,
    /// Where in the volume the part begins that is visited.
    pub from_bytes: u64,
    /// Length of that part; at least one block, or else all requests go to its beginning. A tail that is shorter than a
    /// block is never touched.
    pub region_bytes: u64,
    /// In which order blocks are visited.
    pub access: Access,
    /// Reads in each hundred requests, at most 100; the others are writes.
    pub read_pct: u8,
    /// Places from which requests are drawn; at least 1.
    pub streams: u32,
    /// Requests outstanding at most, of all streams together. Where they do not divide evenly, the first streams have
    /// one more than the last.
    pub slots: u32,
}

/// Which of two sizes of request a class has; see [`IoKind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestSize {
    /// The small size, or the only one.
    Small,
    /// The large size.
    Large,
}

impl IoClass {
    /// Whole blocks of the region.
    pub fn blocks(&self) -> u64 {
        (self.region_bytes / u64::from(self.block_bytes.max(1))).clamp(1, Permutation::MAX_SIZE)
    }

    fn kinds(&self) -> (IoKind, IoKind) {
        match self.size {
            RequestSize::Small => (IoKind::Read, IoKind::Write),
            RequestSize::Large => (IoKind::LargeRead, IoKind::LargeWrite),
        }
    }
}

/// The stream, counted from 0, that slot number `slot` of so many belongs to. Slots are shared out among streams as the
/// sessions of a step are among lanes, so that each of as many lanes has a stream to itself.
pub(in crate::workload) fn stream_of_slot(slot: u32, streams: u32, slots: u32) -> u32 {
    let (streams, slots) = (u64::from(streams.max(1)), u64::from(slots.max(1)));
    // The last stream that does not begin behind the slot.
    ((u64::from(slot) + 1) * streams).div_ceil(slots).saturating_sub(1) as u32
}

impl IoShape {
    /// A load of one class.
    pub fn of(class: IoClass) -> Self {
        Self { classes: vec![class] }
    }

    /// Requests outstanding at most: the slots of all classes.
    pub fn sessions(&self) -> u32 {
        self.classes.iter().map(|class| class.slots).sum()
    }

    /// The streams of all classes.
    pub fn streams(&self) -> u32 {
        self.classes.iter().map(|class| class.streams.max(1)).sum()
    }
}

/// Each stream has one or more sessions.
///
/// # Panics
/// Both functions where the shape has no such session or stream.
impl Shape for IoShape {
    type Operation = IoOperation;
    type Stream = IoStream;

    fn stream_of(&self, session: u32) -> u32 {
        let (mut slot, mut first_stream) = (session, 0);
        for class in &self.classes {
            if slot < class.slots {
                return first_stream + stream_of_slot(slot, class.streams, class.slots);
            }
            slot -= class.slots;
            first_stream += class.streams.max(1);
        }
        panic!("session {session} of a load with {} sessions", self.sessions());
    }

    fn stream(&self, seed: u64, stream: u32) -> IoStream {
        let mut stream_of_class = stream;
        for (number, class) in (0..).zip(&self.classes) {
            let streams_of_class = class.streams.max(1);
            if stream_of_class < streams_of_class {
                return IoStream::new(
                    class,
                    seed,
                    StreamPosition { class: number, stream_of_class, streams_of_class, stream },
                );
            }
            stream_of_class -= streams_of_class;
        }
        panic!("stream {stream} of a load with {} streams", self.streams());
    }
}

/// The endless requests of one stream.
///
/// Kinds and places are drawn from random streams of their own, so that loads that differ in their mix alone visit the
/// same blocks.
#[derive(Clone, Debug)]
pub struct IoStream {
    mix: Mix<IoKind>,
    places: Places,
    from_bytes: u64,
    block_bytes: u32,
}

impl IoStream {
    fn new(class: &IoClass, seed: u64, place: StreamPosition) -> Self {
        let (read, write) = class.kinds();
        let phase = Choice::MixPhase.rng(seed, place.stream).next_u64();
        Self {
            mix: Mix::new(&[(read, class.read_pct)], write, phase),
            places: Places::new(class.access, class.blocks(), seed, place),
            from_bytes: class.from_bytes,
            block_bytes: class.block_bytes.max(1),
        }
    }
}

impl Stream for IoStream {
    type Operation = IoOperation;

    #[inline]
    fn draw(&mut self) -> Drawn<IoOperation> {
        let operation = IoOperation {
            kind: self.mix.draw(),
            offset_bytes: self.from_bytes + self.places.draw() * u64::from(self.block_bytes),
            bytes: self.block_bytes,
            is_durable: false,
        };
        Drawn { operation, think_ns: 0 }
    }
}

#[cfg(test)]
mod tests;
