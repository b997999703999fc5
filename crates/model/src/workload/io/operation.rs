//! One request to a volume.

use crate::workload::Operation;

/// The kinds of request. Small and large ones are distinguished where a load has both, as ORION's has; a load of one size
/// is small, whatever its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoKind {
    /// A read.
    Read,
    /// A write.
    Write,
    /// A read of the large size.
    LargeRead,
    /// A write of the large size.
    LargeWrite,
}

impl IoKind {
    /// Whether it changes the volume.
    pub const fn is_write(self) -> bool {
        matches!(self, Self::Write | Self::LargeWrite)
    }
}

/// One request to a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoOperation {
    /// What is done.
    pub kind: IoKind,
    /// Where in the volume it begins.
    pub offset_bytes: u64,
    /// Its length; more than 0.
    pub bytes: u32,
}

impl Operation for IoOperation {
    const KINDS: &'static [&'static str] = &["read", "write", "large read", "large write"];

    fn kind_index(&self) -> usize {
        self.kind as usize
    }
}
