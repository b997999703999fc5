//! Several kinds of request to one volume, each at a rate of its own.

use crate::workload::mix::Split;
use crate::workload::rng::Choice;
use crate::workload::{Drawn, Permutation, Shape, Stream};

use super::places::{Places, StreamPosition};
use super::shape::stream_of_slot;
use super::{Access, IoKind, IoOperation};

/// An open loop in which any slot sends whatever kind is due, so that the kinds wait for each other only in the volume.
#[derive(Clone, Debug, PartialEq)]
pub struct IoBlend {
    /// The kinds; at least one.
    pub parts: Vec<IoPart>,
    /// Places from which requests are drawn, of each part; at least 1.
    pub streams: u32,
    /// Requests outstanding at most.
    pub slots: u32,
}

/// Requests of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IoPart {
    /// As what its requests count.
    pub kind: IoKind,
    /// Requests per second, in proportion to those of the other parts; above 0.
    pub per_s: f64,
    /// The length of each request, and what its offset is a multiple of; at least 1.
    pub block_bytes: u32,
    /// Length of the part of the volume that is visited, from its beginning.
    pub region_bytes: u64,
    /// In which order blocks are visited.
    pub access: Access,
}

/// Each stream has one or more sessions.
impl Shape for IoBlend {
    type Operation = IoOperation;
    type Stream = IoBlendStream;

    fn stream_of(&self, session: u32) -> u32 {
        stream_of_slot(session, self.streams, self.slots)
    }

    fn stream(&self, seed: u64, stream: u32) -> IoBlendStream {
        let streams = self.streams.max(1);
        let part = |(number, part): (u32, &IoPart)| {
            let blocks = (part.region_bytes / u64::from(part.block_bytes.max(1))).clamp(1, Permutation::MAX_SIZE);
            // Numbered through all parts: two that drew from one random stream would visit the same places.
            let of_all = number * streams + stream;
            let place =
                StreamPosition { class: number, stream_of_class: stream, streams_of_class: streams, stream: of_all };
            (part.kind, part.block_bytes.max(1), Places::new(part.access, blocks, seed, place))
        };
        IoBlendStream {
            split: Split::new(self.parts.iter().map(|part| part.per_s), Choice::MixPhase.rng(seed, stream)),
            parts: (0..).zip(&self.parts).map(part).collect(),
        }
    }
}

/// The endless requests of one stream.
#[derive(Clone, Debug)]
pub struct IoBlendStream {
    split: Split,
    parts: Vec<(IoKind, u32, Places)>,
}

impl Stream for IoBlendStream {
    type Operation = IoOperation;

    #[inline]
    fn draw(&mut self) -> Drawn<IoOperation> {
        let (kind, bytes, places) = &mut self.parts[self.split.draw()];
        let offset_bytes = places.draw() * u64::from(*bytes);
        Drawn { operation: IoOperation { kind: *kind, offset_bytes, bytes: *bytes }, think_ns: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::io::Distribution;

    fn blend() -> IoBlend {
        let part =
            |kind, per_s, block_bytes, access| IoPart { kind, per_s, block_bytes, region_bytes: 1 << 30, access };
        let random = Access::Random(Distribution::Uniform);
        IoBlend {
            parts: vec![
                part(IoKind::Read, 20_000.0, 8_192, random),
                part(IoKind::Write, 130.0, 8_192, random),
                part(IoKind::LargeRead, 870.0, 1 << 20, Access::Sequential),
            ],
            streams: 2,
            slots: 64,
        }
    }

    #[test]
    fn each_kind_comes_at_its_own_rate() {
        let mut stream = blend().stream(3, 0);
        let mut counts = [0_f64; 4];
        for _ in 0..210_000 {
            counts[stream.draw().operation.kind as usize] += 1.0;
        }
        for (kind, expected) in [(0, 200_000.0_f64), (1, 1_300.0), (3, 0.0), (2, 8_700.0)] {
            assert!((counts[kind] - expected).abs() <= 4.0 * expected.sqrt(), "{counts:?}");
        }
    }

    #[test]
    fn kinds_visit_places_of_their_own_inside_the_volume() {
        let mut stream = blend().stream(3, 1);
        let (mut reads, mut writes, mut scans) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..100_000 {
            let IoOperation { kind, offset_bytes, bytes } = stream.draw().operation;
            assert!(offset_bytes + u64::from(bytes) <= 1 << 30 && offset_bytes % u64::from(bytes) == 0);
            match kind {
                IoKind::Read => reads.push(offset_bytes),
                IoKind::Write => writes.push(offset_bytes),
                _ => scans.push(offset_bytes >> 20),
            }
        }
        assert!(scans.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 1_024), "{scans:?}");
        assert_eq!(scans[0], 512, "the second of two streams begins in the middle");
        let same = reads.iter().zip(&writes).filter(|(read, write)| read == write).count();
        assert!(same < 5, "{same} of {} writes go where a read went", writes.len());
    }

    #[test]
    fn the_same_seed_gives_the_same_requests_and_another_stream_others() {
        let draws = |stream| {
            let mut stream = blend().stream(9, stream);
            (0..200).map(|_| stream.draw().operation).collect::<Vec<_>>()
        };
        assert_eq!(draws(0), draws(0));
        assert_ne!(draws(0), draws(1));
    }
}
