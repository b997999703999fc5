//! What the user said about a flash cache.

use std::path::PathBuf;

use super::map::{MAX_SLOTS, SlotMap};
use crate::block::safety::Permission;
use crate::embedded::layout::Layout;
use crate::error::TargetError;
use model::units::Bytes;

/// Memory for copies on their way, of each ring.
pub(super) const PENDING_BYTES: u64 = 2 << 20;
/// Fewest slots.
const MIN_SLOTS: u64 = 64;
/// Schemas that are kept leave the others at least one slot in so many.
const LEAST_SHARE: u64 = 8;

/// What the user said about a flash cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlashOptions {
    /// File that is made, or file or device that may be written to.
    pub path: PathBuf,
    /// Bytes of blocks that it holds.
    pub size: Bytes,
    /// Schemas, from 0, whose blocks others do not displace.
    pub keep: Vec<u32>,
    /// Schemas, from 0, whose blocks are not written to flash.
    pub none: Vec<u32>,
    /// What may be overwritten.
    pub permission: Permission,
}

impl FlashOptions {
    /// A cache for the blocks of all schemas alike, in a new file.
    pub fn new(path: PathBuf, size: Bytes) -> Self {
        Self { path, size, keep: Vec::new(), none: Vec::new(), permission: Permission::default() }
    }

    /// Whether it makes sense for data of this layout. Nothing is looked at on storage.
    ///
    /// # Errors
    /// When a schema does not exist, or the size makes no sense.
    pub(super) fn check_words(&self, layout: &Layout) -> Result<(), TargetError> {
        let slots = self.slots(layout);
        if slots < MIN_SLOTS {
            let least = Bytes(MIN_SLOTS * layout.shape().bytes() as u64);
            return Err(self.refused(
                format!("is too small with {}: it needs at least {least}", self.size),
                "write a larger size: `--flash-cache PATH:SIZE`",
            ));
        }
        if slots > MAX_SLOTS {
            return Err(self.refused(
                format!("is too large: it can hold at most {MAX_SLOTS} blocks"),
                "write a smaller size: `--flash-cache PATH:SIZE`",
            ));
        }
        let schemas = layout.schemas();
        if let Some(unknown) = self.keep.iter().chain(&self.none).find(|schema| **schema >= schemas) {
            return Err(self.refused(
                format!("names schema {}, but the data has {schemas}", unknown + 1),
                "schemas are counted from 1; `plimsoll slob info` says how many there are",
            ));
        }
        if let Some(both) = self.keep.iter().find(|schema| self.none.contains(schema)) {
            return Err(self.refused(
                format!("both keeps schema {} and leaves it out", both + 1),
                "name it with one of `--flash-cache-keep` and `--flash-cache-none`",
            ));
        }
        if (0..schemas).all(|schema| self.none.contains(&schema)) {
            return Err(self.refused(
                "would hold nothing: every schema is left out".to_owned(),
                "name fewer with `--flash-cache-none`, or leave out `--flash-cache`",
            ));
        }
        Ok(())
    }

    pub(super) fn slots(&self, layout: &Layout) -> u64 {
        self.size.0 / layout.shape().bytes() as u64
    }

    /// Rings, each as many slots, and which of them each schema has.
    pub(super) fn rings(&self, layout: &Layout) -> (Vec<u64>, Vec<Option<usize>>) {
        let (slots, schemas) = (self.slots(layout), layout.schemas());
        let kept = self.keep.len() as u64 * layout.scale_blocks();
        let is_other = |schema: &u32| !self.keep.contains(schema) && !self.none.contains(schema);
        let has_others = (0..schemas).any(|schema| is_other(&schema));
        let rings = if self.keep.is_empty() || !has_others {
            vec![slots]
        } else {
            // A copy that is written again before its slot comes round takes a second slot for a while.
            let kept = (kept + kept / LEAST_SHARE).min(slots - slots / LEAST_SHARE).max(1);
            vec![slots - kept, kept]
        };
        let ring = |schema| match () {
            () if self.none.contains(&schema) => None,
            () if self.keep.contains(&schema) => Some(rings.len() - 1),
            () => Some(0),
        };
        let of = (0..schemas).map(ring).collect();
        (rings, of)
    }

    /// Memory that it takes from the buffer cache.
    pub(in super::super) fn memory_bytes(&self, layout: &Layout) -> u64 {
        SlotMap::bytes(self.slots(layout)) + self.rings(layout).0.len() as u64 * PENDING_BYTES
    }

    pub(super) fn refused(&self, what: String, hint: &'static str) -> TargetError {
        TargetError::FlashCache { path: self.path.clone(), what, hint }
    }
}
