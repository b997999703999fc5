//! One logical volume over several files or devices.

use std::ops::Range;

use super::BlockError;
use crate::io::Direction;
use model::units::Bytes;

/// Members are used in multiples of this, so that no request is cut where a device cannot begin one: no logical sector
/// is larger.
const GRAIN_BYTES: u64 = 4096;
const LARGEST_UNIT_BYTES: u64 = 1 << 30;

pub use model::record::VolumeLayout;

/// A part of a request that lies in one piece on one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Number of the member, from 0.
    pub member: u32,
    /// Where in the member, in bytes.
    pub offset_bytes: u64,
    /// Length in bytes, more than 0.
    pub bytes: u32,
    /// Offset inside the request, in bytes.
    pub at: u32,
}

/// The map from a logical volume to its members.
#[derive(Debug, Clone)]
pub struct Volume {
    layout: VolumeLayout,
    map: Map,
    capacity_bytes: u64,
}

#[derive(Debug, Clone)]
enum Map {
    /// Where each member ends in the volume.
    Rows(Box<[u64]>),
    /// Units that go round.
    Round {
        members: u64,
        unit_bytes: u64,
        /// Where second copies begin in each member; none without redundancy.
        copies_from: Option<u64>,
    },
}

impl Volume {
    /// A volume over members of the given sizes, in bytes. Only whole units, and otherwise whole 4 KiB, are used; the
    /// smallest member decides how much of each is used by a stripe or mirror.
    ///
    /// # Errors
    /// When the number of members, the unit or the smallest member does not fit the layout.
    pub fn new(layout: VolumeLayout, member_bytes: &[u64]) -> Result<Self, BlockError> {
        let found = member_bytes.len();
        let (fits, needed) = match layout {
            VolumeLayout::Single => (found == 1, "exactly 1 path"),
            VolumeLayout::Concat | VolumeLayout::Stripe { .. } => (found >= 1, "at least 1 path"),
            VolumeLayout::Separate | VolumeLayout::Mirror { .. } => (found >= 2, "at least 2 paths"),
        };
        if !fits {
            return Err(BlockError::Members { layout: layout.name().to_owned(), needed, found });
        }
        if let Some(unit) = layout.unit_bytes()
            && (unit == 0 || unit > LARGEST_UNIT_BYTES || !unit.is_multiple_of(GRAIN_BYTES))
        {
            return Err(BlockError::Unit { unit: Bytes(unit) });
        }
        let smallest = member_bytes.iter().copied().min().unwrap_or_default();
        let needed = match layout {
            VolumeLayout::Single | VolumeLayout::Concat | VolumeLayout::Separate => GRAIN_BYTES,
            VolumeLayout::Stripe { unit_bytes } => unit_bytes,
            VolumeLayout::Mirror { unit_bytes } => 2 * unit_bytes,
        };
        if smallest < needed {
            return Err(BlockError::TooSmall { smallest: Bytes(smallest), needed: Bytes(needed) });
        }
        let members = found as u64;
        let (map, capacity_bytes) = match layout {
            VolumeLayout::Single | VolumeLayout::Concat | VolumeLayout::Separate => rows(member_bytes),
            // All units of a single member follow each other: one long unit, so that no request is cut for nothing.
            VolumeLayout::Stripe { unit_bytes } if members == 1 => rows(&[smallest - smallest % unit_bytes]),
            VolumeLayout::Stripe { unit_bytes } => {
                let each = smallest - smallest % unit_bytes;
                (Map::Round { members, unit_bytes, copies_from: None }, each * members)
            }
            VolumeLayout::Mirror { unit_bytes } => {
                let half = smallest / 2 / unit_bytes * unit_bytes;
                (Map::Round { members, unit_bytes, copies_from: Some(half) }, half * members)
            }
        };
        Ok(Self { layout, map, capacity_bytes })
    }

    /// The layout that it was made with.
    pub fn layout(&self) -> VolumeLayout {
        self.layout
    }

    /// Copies of each byte.
    pub fn copies(&self) -> u32 {
        if matches!(self.map, Map::Round { copies_from: Some(_), .. }) { 2 } else { 1 }
    }

    /// Bytes that requests can touch.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Where each member lies in the volume, in bytes; empty where units go round the members.
    pub fn spans(&self) -> Vec<Range<u64>> {
        let Map::Rows(ends) = &self.map else { return Vec::new() };
        let starts = std::iter::once(0).chain(ends.iter().copied());
        starts.zip(ends).map(|(start, end)| start..*end).collect()
    }

    /// Most segments that a request of `bytes` bytes can have, wherever it begins.
    pub fn max_segments(&self, bytes: u32) -> usize {
        let bytes = u64::from(bytes);
        match &self.map {
            Map::Rows(ends) => ends.len().min(bytes as usize),
            Map::Round { unit_bytes, copies_from, .. } => {
                // A first byte may be the last of its unit.
                let units = 1 + bytes.saturating_sub(1).div_ceil(*unit_bytes);
                units as usize * if copies_from.is_some() { 2 } else { 1 }
            }
        }
    }

    /// Where the bytes of a request lie, in the order of the request. A read goes to first copies only; a write of a
    /// mirrored unit gives the first copy and then the second.
    ///
    /// # Panics
    /// When the request reaches beyond the capacity: a bug in the caller.
    #[inline]
    pub fn segments(&self, offset_bytes: u64, bytes: u32, direction: Direction) -> Segments<'_> {
        let end = offset_bytes.checked_add(u64::from(bytes));
        assert!(end.is_some_and(|end| end <= self.capacity_bytes), "request lies outside the volume");
        let copies = direction == Direction::Write;
        Segments { map: &self.map, copies, position: offset_bytes, left: bytes, at: 0, copy: None }
    }
}

fn rows(member_bytes: &[u64]) -> (Map, u64) {
    let mut end = 0;
    let ends: Box<[u64]> = member_bytes
        .iter()
        .map(|bytes| {
            end += bytes - bytes % GRAIN_BYTES;
            end
        })
        .collect();
    (Map::Rows(ends), end)
}

/// The segments of one request; see [`Volume::segments`].
#[derive(Debug, Clone)]
pub struct Segments<'a> {
    map: &'a Map,
    copies: bool,
    position: u64,
    left: u32,
    at: u32,
    /// Second copy of the segment given last.
    copy: Option<Segment>,
}

impl Iterator for Segments<'_> {
    type Item = Segment;

    #[inline]
    fn next(&mut self) -> Option<Segment> {
        if let Some(copy) = self.copy.take() {
            return Some(copy);
        }
        if self.left == 0 {
            return None;
        }
        let (member, offset_bytes, room) = match self.map {
            Map::Rows(ends) => {
                let member = ends.partition_point(|end| *end <= self.position);
                let start = member.checked_sub(1).map_or(0, |before| ends[before]);
                (member as u64, self.position - start, ends[member] - self.position)
            }
            Map::Round { members, unit_bytes, .. } => {
                let (unit, within) = (self.position / unit_bytes, self.position % unit_bytes);
                (unit % members, unit / members * unit_bytes + within, unit_bytes - within)
            }
        };
        let bytes = u64::from(self.left).min(room) as u32;
        let segment = Segment { member: member as u32, offset_bytes, bytes, at: self.at };
        if let Map::Round { members, copies_from: Some(copies_from), .. } = self.map
            && self.copies
        {
            let member = ((member + 1) % members) as u32;
            self.copy = Some(Segment { member, offset_bytes: copies_from + offset_bytes, ..segment });
        }
        self.position += u64::from(bytes);
        self.left -= bytes;
        self.at += bytes;
        Some(segment)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    const KIB: u64 = 1024;

    fn layouts() -> impl Strategy<Value = (VolumeLayout, Vec<u64>)> {
        let sizes = |least: usize| prop::collection::vec(64 * KIB..200 * KIB, least..6);
        let unit_bytes = (1u64..=8).prop_map(|grains| grains * GRAIN_BYTES);
        prop_oneof![
            sizes(1).prop_map(|sizes| (VolumeLayout::Single, vec![sizes[0]])),
            sizes(1).prop_map(|sizes| (VolumeLayout::Concat, sizes)),
            (unit_bytes.clone(), sizes(1)).prop_map(|(unit_bytes, sizes)| (VolumeLayout::Stripe { unit_bytes }, sizes)),
            (unit_bytes, sizes(2)).prop_map(|(unit_bytes, sizes)| (VolumeLayout::Mirror { unit_bytes }, sizes)),
        ]
    }

    /// A volume with a request inside it.
    fn requests() -> impl Strategy<Value = (Volume, Vec<u64>, u64, u32)> {
        layouts().prop_flat_map(|(layout, sizes)| {
            let volume = Volume::new(layout, &sizes).unwrap();
            let capacity = volume.capacity_bytes();
            (0..capacity, 1..=capacity).prop_map(move |(offset, bytes)| {
                let bytes = bytes.min(capacity - offset) as u32;
                (volume.clone(), sizes.clone(), offset, bytes)
            })
        })
    }

    #[test]
    fn separate_members_lie_one_behind_the_other_and_say_where() {
        let volume = Volume::new(VolumeLayout::Separate, &[10_000, 8_192, 4_096]).unwrap();
        assert_eq!(volume.spans(), [0..8_192, 8_192..16_384, 16_384..20_480]);
        assert_eq!((volume.layout().to_string().as_str(), volume.capacity_bytes()), ("separate", 20_480));
        assert!(Volume::new(VolumeLayout::Separate, &[8_192]).is_err());
        let striped = Volume::new(VolumeLayout::Stripe { unit_bytes: 4_096 }, &[8_192, 8_192]).unwrap();
        assert_eq!(striped.spans(), []);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn each_byte_of_a_request_has_its_places((volume, sizes, offset, bytes) in requests()) {
            let mirrored = matches!(volume.layout(), VolumeLayout::Mirror { .. });
            for direction in [Direction::Read, Direction::Write] {
                let wanted = if mirrored && direction == Direction::Write { 2 } else { 1 };
                let segments: Vec<_> = volume.segments(offset, bytes, direction).collect();
                prop_assert!(segments.len() <= volume.max_segments(bytes));
                let mut places = vec![Vec::new(); bytes as usize];
                for segment in &segments {
                    prop_assert!(segment.bytes > 0);
                    let end = segment.offset_bytes + u64::from(segment.bytes);
                    prop_assert!(end <= sizes[segment.member as usize], "{segment:?} lies outside its member");
                    for at in segment.at..segment.at + segment.bytes {
                        places[at as usize].push(segment.member);
                    }
                }
                for members in places {
                    prop_assert_eq!(members.len(), wanted);
                    prop_assert!(wanted == 1 || members[0] != members[1], "both copies lie on one member");
                }
            }
        }

        #[test]
        fn no_two_bytes_of_a_volume_share_a_place((layout, sizes) in layouts()) {
            let volume = Volume::new(layout, &sizes).unwrap();
            let mut owners = HashMap::new();
            for grain in 0..volume.capacity_bytes() / GRAIN_BYTES {
                let at = grain * GRAIN_BYTES;
                for segment in volume.segments(at, GRAIN_BYTES as u32, Direction::Write) {
                    prop_assert_eq!(u64::from(segment.bytes), GRAIN_BYTES, "a grain is never cut");
                    let place = (segment.member, segment.offset_bytes);
                    prop_assert_eq!(owners.insert(place, at), None, "{:?} is used twice", place);
                }
            }
        }

        #[test]
        fn reads_go_where_writes_went((volume, sizes, offset, bytes) in requests()) {
            let mut members: Vec<Vec<u8>> = sizes.iter().map(|size| vec![0; *size as usize]).collect();
            let sent: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8 + 1).collect();
            for Segment { member, offset_bytes, bytes, at } in volume.segments(offset, bytes, Direction::Write) {
                let (from, to) = (at as usize, offset_bytes as usize);
                let bytes = bytes as usize;
                members[member as usize][to..to + bytes].copy_from_slice(&sent[from..from + bytes]);
            }
            // A read of any part, here of the later half, finds the same bytes whatever way the write was cut.
            let half = bytes / 2;
            let mut back = vec![0; (bytes - half) as usize];
            for segment in volume.segments(offset + u64::from(half), bytes - half, Direction::Read) {
                let (from, to, bytes) = (segment.offset_bytes as usize, segment.at as usize, segment.bytes as usize);
                back[to..to + bytes].copy_from_slice(&members[segment.member as usize][from..from + bytes]);
            }
            prop_assert_eq!(&back[..], &sent[half as usize..]);
        }
    }

    #[test]
    fn capacity_is_that_of_whole_units() {
        let mib = KIB * KIB;
        let unit_bytes = mib;
        for (layout, sizes, capacity) in [
            (VolumeLayout::Single, vec![10 * mib + 5000], 10 * mib + 4096),
            (VolumeLayout::Concat, vec![mib + 1, 2 * mib + 4095], 3 * mib),
            (VolumeLayout::Stripe { unit_bytes }, vec![7 * mib, 3 * mib + 9, 5 * mib], 9 * mib),
            (VolumeLayout::Stripe { unit_bytes }, vec![3 * mib + 4096], 3 * mib),
            (VolumeLayout::Mirror { unit_bytes }, vec![5 * mib, 9 * mib], 4 * mib),
        ] {
            assert_eq!(Volume::new(layout, &sizes).unwrap().capacity_bytes(), capacity, "{layout}");
        }
    }

    #[test]
    fn a_request_is_cut_only_where_units_end() {
        let volume = Volume::new(VolumeLayout::Stripe { unit_bytes: 8192 }, &[1 << 20, 1 << 20]).unwrap();
        let segments: Vec<_> = volume.segments(4096, 16_384, Direction::Read).collect();
        let segment = |member, offset_bytes, bytes, at| Segment { member, offset_bytes, bytes, at };
        assert_eq!(segments, [segment(0, 4096, 4096, 0), segment(1, 0, 8192, 4096), segment(0, 8192, 4096, 12_288)]);

        let alone = Volume::new(VolumeLayout::Stripe { unit_bytes: 8192 }, &[1 << 20]).unwrap();
        assert_eq!(alone.segments(4096, 16_384, Direction::Write).count(), 1);
    }

    #[test]
    fn a_mirror_keeps_the_second_copy_on_the_next_member() {
        let volume = Volume::new(VolumeLayout::Mirror { unit_bytes: 4096 }, &[16_384; 3]).unwrap();
        assert_eq!(volume.capacity_bytes(), 24_576);
        let places: Vec<_> =
            volume.segments(8192, 8192, Direction::Write).map(|s| (s.member, s.offset_bytes, s.at)).collect();
        assert_eq!(places, [(2, 0, 0), (0, 8192, 0), (0, 4096, 4096), (1, 12_288, 4096)]);
    }

    #[test]
    fn what_cannot_be_a_volume_is_refused_with_its_numbers() {
        let refused = |layout, sizes: &[u64]| Volume::new(layout, sizes).unwrap_err().to_string();
        assert_eq!(refused(VolumeLayout::Single, &[]), "a single volume needs exactly 1 path, and 0 were given");
        assert_eq!(
            refused(VolumeLayout::Mirror { unit_bytes: 4096 }, &[8192]),
            "a mirror volume needs at least 2 paths, and 1 were given"
        );
        assert!(refused(VolumeLayout::Stripe { unit_bytes: 5000 }, &[1 << 20]).contains("multiple of 4 KiB"));
        assert!(refused(VolumeLayout::Stripe { unit_bytes: 0 }, &[1 << 20]).contains("more than 0"));
        let small = refused(VolumeLayout::Mirror { unit_bytes: 1 << 20 }, &[1 << 20, 4 << 20]);
        assert_eq!(small, "the smallest path has 1 MiB, and each must hold at least 2 MiB");
    }

    #[test]
    fn layouts_are_named_as_the_record_has_them() {
        assert_eq!(VolumeLayout::Stripe { unit_bytes: 1 << 20 }.to_string(), "stripe 1 MiB");
        assert_eq!(VolumeLayout::Concat.to_string(), "concat");
    }

    #[test]
    #[should_panic(expected = "outside the volume")]
    fn a_request_beyond_the_end_is_a_bug() {
        let volume = Volume::new(VolumeLayout::Single, &[8192]).unwrap();
        let _ = volume.segments(4096, 8192, Direction::Read);
    }
}
