//! Where the requests of a trace go on the target.

use std::collections::HashMap;
use std::fmt;

use super::{CHUNK_BYTES, Survey};
use model::record::ReplayPlacement;

/// A part of the target, and the devices of the trace that go there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Where it begins on the target, in bytes.
    pub begin_bytes: u64,
    /// Its length in bytes.
    pub length_bytes: u64,
    /// Whether flushes of its devices are of it alone.
    pub is_part: bool,
    /// The devices, by their places in the trace's header.
    pub devices: Vec<u16>,
}

/// A region is too small for any of its devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooSmall {
    /// Which one.
    pub region: usize,
    /// Its length in bytes.
    pub length_bytes: u64,
}

/// Where requests go.
#[derive(Clone, PartialEq, Eq)]
pub struct Placement {
    parts: Vec<Part>,
    /// The part of each device.
    part_of: HashMap<u16, usize>,
    copies: u64,
}

#[derive(Clone, PartialEq, Eq)]
struct Part {
    begin_bytes: u64,
    is_part: bool,
    laying: Laying,
}

#[derive(Clone, PartialEq, Eq)]
enum Laying {
    /// Each device at an address of its own, everything in it where it was; copies one behind the other.
    AsRecorded { bases_bytes: HashMap<u16, u64>, span_bytes: u64, end_bytes: u64 },
    /// The parts that are touched side by side, in their order: what is never touched takes no space.
    Compact { chunks: HashMap<(u16, u64), u64> },
    /// As recorded, modulo the size of the region: places that were apart become one.
    Folded { bases_bytes: HashMap<u16, u64>, span_bytes: u64, size_bytes: u64 },
}

impl fmt::Debug for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind().name())
    }
}

impl Placement {
    /// In each region the first of these that fits: as recorded, compact, folded. Each device has so many copies, 1 at least.
    ///
    /// # Errors
    /// If a region is shorter than a chunk, or than the longest request.
    pub fn choose(survey: &Survey, regions: &[Region], copies: u32) -> Result<Self, TooSmall> {
        let copies = u64::from(copies.max(1));
        let of = |(number, region): (usize, &Region)| {
            let too_small = TooSmall { region: number, length_bytes: region.length_bytes };
            let laying = Laying::choose(survey, region, copies).ok_or(too_small)?;
            Ok(Part { begin_bytes: region.begin_bytes, is_part: region.is_part, laying })
        };
        let parts = regions.iter().enumerate().map(of).collect::<Result<_, _>>()?;
        let devices = |(number, region): (usize, &Region)| {
            let devices = region.devices.clone();
            devices.into_iter().map(move |device| (device, number))
        };
        Ok(Self { parts, part_of: regions.iter().enumerate().flat_map(devices).collect(), copies })
    }

    /// Which of them it is, for the record: the one that changes most.
    pub fn kind(&self) -> ReplayPlacement {
        let is_any = |of: fn(&Laying) -> bool| self.parts.iter().any(|part| of(&part.laying));
        if is_any(|laying| matches!(laying, Laying::Folded { .. })) {
            ReplayPlacement::Folded
        } else if is_any(|laying| matches!(laying, Laying::Compact { .. })) {
            ReplayPlacement::Compact
        } else {
            ReplayPlacement::AsRecorded
        }
    }

    /// How many copies there is room for.
    pub fn copies(&self) -> u32 {
        u32::try_from(self.copies).unwrap_or(u32::MAX)
    }

    /// Bytes of the target up to the end of what requests can touch.
    pub fn size_bytes(&self) -> u64 {
        let end = |part: &Part| part.begin_bytes + part.laying.size_bytes(self.copies);
        self.parts.iter().map(end).max().unwrap_or(0)
    }

    /// Touched chunks that share their place with another, in each hundred: what folding loses. Absent where that is not known.
    pub fn shared_pct(&self, survey: &Survey) -> Option<f64> {
        if self.kind() != ReplayPlacement::Folded {
            return Some(0.0);
        }
        let chunks = survey.chunks.as_ref()?;
        let mut places: HashMap<u64, u64> = HashMap::new();
        for copy in 0..self.copies {
            for (device, chunk) in chunks {
                *places.entry(self.place(copy, *device, chunk * CHUNK_BYTES, 0)).or_default() += 1;
            }
        }
        let shared: u64 = places.values().filter(|count| **count > 1).sum();
        Some(shared as f64 * 100.0 / (chunks.len() as u64 * self.copies).max(1) as f64)
    }

    /// Where a request of a copy begins.
    pub(super) fn place(&self, copy: u64, device: u16, offset_bytes: u64, bytes: u64) -> u64 {
        let Some(part) = self.part_of.get(&device).and_then(|part| self.parts.get(*part)) else { return 0 };
        part.begin_bytes + part.laying.place(copy, device, offset_bytes, bytes)
    }

    /// A byte of the part of the target that a flush of a device is of; absent where it is of all.
    pub(super) fn flushed(&self, device: u16) -> Option<u64> {
        let part = self.part_of.get(&device).and_then(|part| self.parts.get(*part));
        part.filter(|part| part.is_part).map(|part| part.begin_bytes)
    }
}

impl Laying {
    fn choose(survey: &Survey, region: &Region, copies: u64) -> Option<Self> {
        let mut next = 0_u64;
        let (mut bases_bytes, mut end_bytes) = (HashMap::new(), 0_u64);
        for device in &region.devices {
            let extent = survey.replayed.extents_bytes.get(usize::from(*device)).copied().unwrap_or(0);
            bases_bytes.insert(*device, next);
            end_bytes = end_bytes.max(next.saturating_add(extent));
            // Far beyond any device, and still a multiple of a chunk.
            next = next.saturating_add(extent.checked_next_multiple_of(CHUNK_BYTES).unwrap_or(1 << 63)).min(1 << 63);
        }
        let span_bytes = next;
        let end_bytes = span_bytes.checked_mul(copies - 1).and_then(|before| before.checked_add(end_bytes));
        if let Some(end_bytes) = end_bytes.filter(|end| *end <= region.length_bytes) {
            return Some(Self::AsRecorded { bases_bytes, span_bytes, end_bytes });
        }
        let room = region.length_bytes / CHUNK_BYTES;
        let chunks = survey.chunks.as_ref().map(|chunks| {
            chunks.iter().copied().filter(|(device, _)| bases_bytes.contains_key(device)).zip(0..).collect()
        });
        match chunks {
            Some(chunks) if HashMap::len(&chunks) as u64 * copies <= room => Some(Self::Compact { chunks }),
            _ => (room > 0 && survey.longest_bytes <= room * CHUNK_BYTES).then_some(Self::Folded {
                bases_bytes,
                span_bytes,
                size_bytes: room * CHUNK_BYTES,
            }),
        }
    }

    fn size_bytes(&self, copies: u64) -> u64 {
        match self {
            Self::AsRecorded { end_bytes, .. } => *end_bytes,
            Self::Compact { chunks } => chunks.len() as u64 * copies * CHUNK_BYTES,
            Self::Folded { size_bytes, .. } => *size_bytes,
        }
    }

    fn place(&self, copy: u64, device: u16, offset_bytes: u64, bytes: u64) -> u64 {
        let base = |bases: &HashMap<u16, u64>, span_bytes: u64| {
            bases.get(&device).copied().unwrap_or(0).wrapping_add(span_bytes.wrapping_mul(copy))
        };
        match self {
            Self::AsRecorded { bases_bytes, span_bytes, .. } => base(bases_bytes, *span_bytes) + offset_bytes,
            Self::Compact { chunks } => {
                // A request of several chunks touches them all, so that they are neighbours here as well.
                let chunk = chunks.get(&(device, offset_bytes / CHUNK_BYTES)).copied().unwrap_or(0);
                (chunk + copy * chunks.len() as u64) * CHUNK_BYTES + offset_bytes % CHUNK_BYTES
            }
            Self::Folded { bases_bytes, span_bytes, size_bytes } => {
                let at = base(bases_bytes, *span_bytes).wrapping_add(offset_bytes) % size_bytes;
                // One that would go beyond the end ends there.
                at.min(size_bytes - bytes)
            }
        }
    }
}
