//! Why files and devices cannot be used as a volume.

use std::path::PathBuf;

use crate::units::Bytes;

/// Why files and devices cannot be used as a volume.
#[derive(Debug, thiserror::Error)]
pub enum BlockError {
    /// The number of paths does not fit the layout.
    #[error("a {layout} volume needs {needed}, and {found} were given")]
    Members {
        /// The layout asked for.
        layout: String,
        /// What it needs, such as `at least 2 paths`.
        needed: &'static str,
        /// Paths given.
        found: usize,
    },
    /// The unit of a stripe or mirror cannot be used.
    #[error("a unit of {unit} cannot be used: it must be a multiple of 4 KiB, more than 0 and at most 1 GiB")]
    Unit {
        /// The unit asked for.
        unit: Bytes,
    },
    /// Data are not what was written.
    #[error("bad data in `{}`: {why}", path.display())]
    BadData {
        /// The file or device.
        path: PathBuf,
        /// What is wrong, and where.
        why: String,
    },
    /// The smallest member does not hold a single unit.
    #[error("the smallest path has {smallest}, and each must hold at least {needed}")]
    TooSmall {
        /// Size of the smallest member.
        smallest: Bytes,
        /// What each member must hold.
        needed: Bytes,
    },
}

impl BlockError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let told = match self {
            Self::Members { .. } => "name other paths, or choose another layout",
            Self::Unit { .. } => "databases use 1M, which is also what disk groups use",
            Self::BadData { .. } => {
                "the storage or another program changed it; find out which before trusting this storage"
            }
            Self::TooSmall { .. } => "use a larger file or device, or a smaller unit",
        };
        Some(told.to_owned())
    }
}
