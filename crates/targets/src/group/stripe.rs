//! Where an offset of a file lies in its extents.

use serde::{Deserialize, Serialize};

/// Length of a piece of fine striping.
pub const FINE_BYTES: u64 = 128 << 10;
/// Extents that the pieces of fine striping go round.
const FINE_WIDTH: u64 = 8;

/// How the data of a file go over its extents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Striping {
    /// Extent after extent, for data files: what is read together lies together.
    Coarse,
    /// Pieces of 128 KiB go round eight extents, for redo: a write of the log goes to several members at once.
    Fine,
}

/// The map from a file's offsets to places in its extents.
#[derive(Debug, Clone, Copy)]
pub struct Stripes {
    striping: Striping,
    /// Logarithm of the allocation unit.
    unit_shift: u32,
    extents: u64,
}

/// Where an offset lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    /// Number of the extent.
    pub extent: u32,
    /// Offset in the extent, in bytes.
    pub within: u32,
    /// Bytes from there on that lie in one piece.
    pub room: u32,
}

impl Stripes {
    /// Of a file with `extents` extents of `unit_bytes`, a power of two from 1 MiB on.
    pub fn new(striping: Striping, unit_bytes: u64, extents: u64) -> Self {
        Self { striping, unit_shift: unit_bytes.trailing_zeros(), extents }
    }

    /// Where `offset` lies, which must be below the length of all extents.
    #[inline]
    pub fn spot(&self, offset: u64) -> Spot {
        let shift = self.unit_shift;
        let unit_mask = (1u64 << shift) - 1;
        match self.striping {
            Striping::Coarse => {
                let within = offset & unit_mask;
                Spot {
                    extent: (offset >> shift) as u32,
                    within: within as u32,
                    room: ((1u64 << shift) - within) as u32,
                }
            }
            Striping::Fine => {
                let first = (offset >> shift) / FINE_WIDTH * FINE_WIDTH;
                // The last extents of a file may be fewer than eight.
                let width = FINE_WIDTH.min(self.extents - first);
                let inside = offset - (first << shift);
                let (piece, rest) = (inside / FINE_BYTES, inside % FINE_BYTES);
                let within = piece / width * FINE_BYTES + rest;
                let extent = (first + piece % width) as u32;
                Spot { extent, within: within as u32, room: (FINE_BYTES - rest) as u32 }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_place_of_every_extent_is_met_once(extents in 1..40u64, shift in 20..23u32, fine: bool) {
            let striping = if fine { Striping::Fine } else { Striping::Coarse };
            let stripes = Stripes::new(striping, 1 << shift, extents);
            let (mut met, mut offset) = (HashSet::new(), 0);
            while offset < extents << shift {
                let spot = stripes.spot(offset);
                prop_assert!(u64::from(spot.extent) < extents);
                prop_assert!(u64::from(spot.within) + u64::from(spot.room) <= 1 << shift);
                for piece in 0..u64::from(spot.room) / FINE_BYTES {
                    prop_assert!(met.insert((spot.extent, u64::from(spot.within) + piece * FINE_BYTES)));
                }
                // An offset inside of a piece lies behind the piece's beginning.
                let inner = stripes.spot(offset + 4096);
                prop_assert_eq!((inner.extent, inner.within, inner.room), (spot.extent, spot.within + 4096, spot.room - 4096));
                offset += u64::from(spot.room);
            }
            prop_assert_eq!(met.len() as u64, (extents << shift) / FINE_BYTES);
        }
    }

    #[test]
    fn redo_goes_round_eight_extents_in_small_pieces() {
        let stripes = Stripes::new(Striping::Fine, 1 << 20, 11);
        let extents: Vec<u32> = (0..10).map(|piece| stripes.spot(piece * FINE_BYTES).extent).collect();
        assert_eq!(extents, [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]);
        assert_eq!(stripes.spot(8 << 20).extent, 8);
        assert_eq!(
            stripes.spot((8 << 20) + 3 * FINE_BYTES),
            Spot { extent: 8, within: FINE_BYTES as u32, room: FINE_BYTES as u32 }
        );
    }
}
