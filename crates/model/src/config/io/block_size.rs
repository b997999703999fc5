//! The size of a request.

use std::fmt;
use std::str::FromStr;

use crate::config::ConfigError;
use crate::config::slob::bytes_text;
use crate::units::Bytes;

use super::IoProblem;

/// The size of a request: a multiple of 512 bytes from 512 bytes to 64 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockSize(u32);

impl BlockSize {
    const UNIT: u32 = 512;
    const MAX: u32 = 64 << 20;

    /// The size of that many bytes, if requests may have it.
    pub fn new(Bytes(bytes): Bytes) -> Option<Self> {
        let bytes = u32::try_from(bytes).ok()?;
        let fits = (Self::UNIT..=Self::MAX).contains(&bytes) && bytes.is_multiple_of(Self::UNIT);
        fits.then_some(Self(bytes))
    }

    /// The size in bytes.
    pub const fn bytes(self) -> u32 {
        self.0
    }
}

impl From<BlockSize> for Bytes {
    fn from(BlockSize(bytes): BlockSize) -> Self {
        Self(u64::from(bytes))
    }
}

impl FromStr for BlockSize {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let size = text.parse().ok().and_then(Self::new);
        size.ok_or_else(|| ConfigError::Io(IoProblem::BlockSize { text: text.to_owned() }))
    }
}

/// Prints it as on the command line: `8K`.
impl fmt::Display for BlockSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&bytes_text((*self).into()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::assert_refused;
    use super::*;

    #[test]
    fn reads_sizes_and_prints_them_short() {
        for (text, bytes, shown) in
            [("512", 512, "512B"), ("8k", 8192, "8K"), ("1.5K", 1536, "1536B"), ("64MiB", 64 << 20, "64M")]
        {
            let size: BlockSize = text.parse().unwrap();
            assert_eq!((size.bytes(), size.to_string().as_str()), (bytes, shown), "{text}");
        }
    }

    #[test]
    fn refuses_others_and_says_what_to_write() {
        for text in ["", "0", "256", "1000", "8191", "65M", "4G", "8Q", "-8K"] {
            assert_refused::<BlockSize>(
                text,
                &format!("`{text}` is not a size for requests"),
                "write a multiple of 512 bytes from 512 to 64M, such as `8K`",
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(units in 1..=131_072_u32) {
            let size = BlockSize::new(Bytes(u64::from(units) * 512)).unwrap();
            prop_assert_eq!(size.to_string().parse::<BlockSize>().unwrap(), size);
        }
    }
}
