//! One logical volume over several files or devices.

use std::fmt;
use std::ops::Range;

use super::BlockError;
use crate::io::Direction;
use model::units::Bytes;

/// Members are used in multiples of this, so that no request is cut where a device cannot begin one: no logical sector
/// is larger.
const GRAIN_BYTES: u64 = 4096;
const LARGEST_UNIT_BYTES: u64 = 1 << 30;

/// How a volume lies on its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeLayout {
    /// One member, as it is.
    Single,
    /// One member after the other.
    Concat,
    /// The same, but each member is a volume of its own that nothing but the address has to do with the others.
    Separate,
    /// Units go round the members.
    Stripe {
        /// Length of a unit, in bytes.
        unit_bytes: u64,
    },
    /// As a disk group with normal redundancy: units go round the members, and each has a copy on the member that
    /// follows. First copies lie in the lower half of each member, second copies in the upper half.
    Mirror {
        /// Length of a unit, in bytes.
        unit_bytes: u64,
    },
}

impl VolumeLayout {
    fn unit_bytes(self) -> Option<u64> {
        match self {
            Self::Single | Self::Concat | Self::Separate => None,
            Self::Stripe { unit_bytes } | Self::Mirror { unit_bytes } => Some(unit_bytes),
        }
    }

    /// The layout's name without its unit.
    const fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Concat => "concat",
            Self::Separate => "separate",
            Self::Stripe { .. } => "stripe",
            Self::Mirror { .. } => "mirror",
        }
    }
}

impl fmt::Display for VolumeLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self.unit_bytes() {
            Some(unit_bytes) => write!(f, " {}", Bytes(unit_bytes)),
            None => Ok(()),
        }
    }
}

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
#[path = "volume_tests.rs"]
mod tests;
