//! Where each row and each block of a data set lies.

use model::workload::{Permutation, mix64};

use super::block::{BlockIdentity, BlockKind, BlockShape};

/// Largest size of one data file.
const FILE_BYTES: u64 = 16 << 30;

/// The shape of a data set: pure arithmetic, no files.
///
/// Blocks are numbered from 0: first the rows of all schemas, one schema after the other, then their scan tables. In a
/// schema, keys are scattered over its blocks by a permutation of its own.
#[derive(Debug, Clone)]
pub struct Layout {
    shape: BlockShape,
    database: u32,
    schemas: u32,
    scale_blocks: u64,
    scan_blocks: u64,
    file_shift: u32,
    permutations: Vec<Permutation>,
}

/// Where a block lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockAddress {
    /// Number of the data file, from 0.
    pub file: u32,
    /// Offset in it, in bytes.
    pub offset: u64,
}

impl Layout {
    /// A data set of `schemas` schemas with `scale_blocks` rows and `scan_blocks` scan blocks each.
    pub fn new(shape: BlockShape, database: u32, seed: u64, schemas: u32, scale_blocks: u64, scan_blocks: u64) -> Self {
        let permutations = (0..schemas)
            .map(|schema| Permutation::new(scale_blocks, mix64(seed ^ mix64(u64::from(schema) + 1))))
            .collect();
        let file_shift = (FILE_BYTES / shape.bytes() as u64).trailing_zeros();
        Self { shape, database, schemas, scale_blocks, scan_blocks, file_shift, permutations }
    }

    /// Shape of its blocks.
    pub fn shape(&self) -> BlockShape {
        self.shape
    }

    /// Number of schemas.
    pub fn schemas(&self) -> u32 {
        self.schemas
    }

    /// Rows, and so blocks, of one schema.
    pub fn scale_blocks(&self) -> u64 {
        self.scale_blocks
    }

    /// Blocks of one schema's scan table.
    pub fn scan_blocks(&self) -> u64 {
        self.scan_blocks
    }

    /// Blocks that hold rows.
    pub fn row_blocks(&self) -> u64 {
        self.scale_blocks * u64::from(self.schemas)
    }

    /// All blocks.
    pub fn blocks(&self) -> u64 {
        self.row_blocks() + self.scan_blocks * u64::from(self.schemas)
    }

    /// Number of data files.
    pub fn files(&self) -> u32 {
        self.blocks().div_ceil(1 << self.file_shift) as u32
    }

    /// Length of data file `file`.
    pub fn file_bytes(&self, file: u32) -> u64 {
        let first = u64::from(file) << self.file_shift;
        (self.blocks() - first).min(1 << self.file_shift) * self.shape.bytes() as u64
    }

    /// Name of data file `file`.
    pub fn file_name(file: u32) -> String {
        format!("data-{:04}.dbf", file + 1)
    }

    /// The block that holds the row `key` of `schema`.
    #[inline]
    pub fn row_block(&self, schema: u32, key: u64) -> u64 {
        u64::from(schema) * self.scale_blocks + self.permutations[schema as usize].map(key)
    }

    /// Block `index` of the scan table of `schema`.
    pub fn scan_block(&self, schema: u32, index: u64) -> u64 {
        self.row_blocks() + u64::from(schema) * self.scan_blocks + index
    }

    /// Where a block lies.
    #[inline]
    pub fn place(&self, block: u64) -> BlockAddress {
        let in_file = block & ((1 << self.file_shift) - 1);
        BlockAddress { file: (block >> self.file_shift) as u32, offset: in_file * self.shape.bytes() as u64 }
    }

    /// Blocks from `block` on that lie in the same file, at most `most`.
    pub fn contiguous(&self, block: u64, most: u64) -> u64 {
        let file_end = ((block >> self.file_shift) + 1) << self.file_shift;
        most.min(file_end - block).min(self.blocks() - block)
    }

    /// What the block of a known row must say about itself.
    #[inline]
    pub fn row_identity(&self, schema: u32, key: u64, block: u64) -> BlockIdentity {
        BlockIdentity { database: self.database, address: block, key, schema, kind: BlockKind::Row }
    }

    /// What a block must say about itself.
    #[inline]
    pub fn identity(&self, block: u64) -> BlockIdentity {
        let rows = self.row_blocks();
        if block < rows {
            let schema = (block / self.scale_blocks) as u32;
            let key = self.permutations[schema as usize].invert(block % self.scale_blocks);
            self.row_identity(schema, key, block)
        } else {
            let schema = ((block - rows) / self.scan_blocks) as u32;
            let key = (block - rows) % self.scan_blocks;
            BlockIdentity { database: self.database, address: block, key, schema, kind: BlockKind::Scan }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(schemas: u32, scale: u64, scan: u64) -> Layout {
        Layout::new(BlockShape::new(8192).unwrap(), 5, 42, schemas, scale, scan)
    }

    #[test]
    fn every_row_has_a_block_of_its_own_and_the_block_knows_its_row() {
        let layout = layout(3, 1003, 7);
        let mut seen = vec![false; layout.blocks() as usize];
        for schema in 0..3 {
            for key in 0..1003 {
                let block = layout.row_block(schema, key);
                let identity = layout.identity(block);
                assert_eq!((identity.schema, identity.key, identity.kind), (schema, key, BlockKind::Row));
                assert!(!std::mem::replace(&mut seen[block as usize], true));
            }
            for index in 0..7 {
                let block = layout.scan_block(schema, index);
                let identity = layout.identity(block);
                assert_eq!((identity.schema, identity.key, identity.kind), (schema, index, BlockKind::Scan));
                assert!(!std::mem::replace(&mut seen[block as usize], true));
            }
        }
        assert!(seen.into_iter().all(|used| used));
    }

    #[test]
    fn schemas_are_scattered_differently() {
        let layout = layout(2, 1000, 0);
        let same = (0..1000).filter(|key| layout.row_block(0, *key) + 1000 == layout.row_block(1, *key)).count();
        assert!(same < 20, "{same} of 1000 keys lie at the same place in both schemas");
    }

    #[test]
    fn files_are_cut_at_16_gib_and_cover_all_blocks() {
        let per_file = FILE_BYTES / 8192;
        let layout = layout(1, per_file * 2 + 10, 5);
        assert_eq!(layout.files(), 3);
        assert_eq!(layout.file_bytes(0), FILE_BYTES);
        assert_eq!(layout.file_bytes(2), 15 * 8192);
        assert_eq!(layout.place(per_file * 2 + 3), BlockAddress { file: 2, offset: 3 * 8192 });
        assert_eq!(layout.contiguous(per_file - 2, 100), 2);
        assert_eq!(layout.contiguous(per_file * 2 + 10, 100), 5);
    }
}
