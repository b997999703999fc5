//! The types of SLOB's parameters, and how each is read from and written as text.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Nanos};

use super::super::Secret;

/// How much data: SLOB counts blocks where a number stands alone, bytes where it has a suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// A number of blocks, whatever their size.
    Blocks(u64),
    /// As many blocks as fit.
    Bytes(Bytes),
}

impl Scale {
    /// The number of whole blocks of `block_bytes` (at least 1).
    pub fn blocks(self, block_bytes: u64) -> u64 {
        match self {
            Self::Blocks(blocks) => blocks,
            Self::Bytes(Bytes(bytes)) => bytes / block_bytes.max(1),
        }
    }

    /// Whether it is nothing at all.
    pub fn is_zero(self) -> bool {
        matches!(self, Self::Blocks(0) | Self::Bytes(Bytes(0)))
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        if is_digits(text) {
            return text.parse().ok().map(Self::Blocks);
        }
        // `1.5` has no meaning as blocks, and as bytes it can only be a forgotten suffix.
        let bytes = text.parse().ok().filter(|_| text.ends_with(|c: char| c.is_ascii_alphabetic()))?;
        Some(Self::Bytes(bytes))
    }

    pub(super) fn text(self) -> String {
        match self {
            Self::Blocks(blocks) => blocks.to_string(),
            Self::Bytes(bytes) => bytes_text(bytes),
        }
    }
}

/// How much an update changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RedoStress {
    /// 2 columns of each row.
    Lite,
    /// All 19 filler columns of each row.
    Heavy,
}

impl RedoStress {
    /// Columns that an update changes in each row.
    pub const fn columns(self) -> u32 {
        match self {
            Self::Lite => 2,
            Self::Heavy => 19,
        }
    }
}

/// What rows are filled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Filler {
    /// Bytes that no storage can compress or deduplicate (`OBFUSCATE_COLUMNS=TRUE`).
    Incompressible,
    /// Text that compresses well (`OBFUSCATE_COLUMNS=FALSE`).
    Compressible,
}

/// A part of each schema to which more operations go than to the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotSpot {
    /// Its size; more than 0.
    pub size: Bytes,
    /// Where it begins in the schema.
    pub offset: Bytes,
    /// One operation in this many goes to it; at least 1.
    pub frequency: u32,
}

impl HotSpot {
    /// The keys it covers, counted from 0 in whole blocks of `block_bytes` (at least 1).
    pub fn blocks(&self, block_bytes: u64) -> Range<u64> {
        let block_bytes = block_bytes.max(1);
        let first = self.offset.0 / block_bytes;
        first..first.saturating_add(self.size.0 / block_bytes)
    }
}

/// Pauses between a session's operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Think {
    /// A session pauses before one operation in this many; at least 1.
    pub frequency: u32,
    /// Shortest pause.
    pub min: Nanos,
    /// Longest pause; not less than the shortest.
    pub max: Nanos,
}

/// Which report SLOB asks its database for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatisticsType {
    /// Statspack.
    Statspack,
    /// Automatic Workload Repository.
    Awr,
}

/// How SLOB reaches its database: only what was given is here. Kept for SQL targets; the embedded engine ignores it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Connection {
    /// `ADMIN_SQLNET_SERVICE`.
    pub admin_sqlnet_service: Option<String>,
    /// `SQLNET_SERVICE_BASE`.
    pub sqlnet_service_base: Option<String>,
    /// `SQLNET_SERVICE_MAX`, at least 1.
    pub sqlnet_service_max: Option<u32>,
    /// `DBA_PRIV_USER`.
    pub dba_priv_user: Option<String>,
    /// `SYSDBA_PASSWD`.
    pub sysdba_password: Option<Secret>,
    /// `DATABASE_STATISTICS_TYPE`.
    pub statistics_type: Option<StatisticsType>,
    /// `NO_OS_PERF_DATA`, whatever was given: SLOB asks only whether there is something.
    pub no_os_perf_data: Option<String>,
}

/// A size in a parameter whose plain number means MiB.
pub(super) fn read_mebibytes(text: &str) -> Option<Bytes> {
    if is_digits(text) {
        return text.parse::<u64>().ok()?.checked_mul(1 << 20).map(Bytes);
    }
    text.parse().ok().filter(|_| text.ends_with(|c: char| c.is_ascii_alphabetic()))
}

/// A size as text that [`Scale::read`] and [`read_mebibytes`] read back exactly: `80M`, `1536K`, `1000B`.
pub(in crate::config) fn bytes_text(Bytes(bytes): Bytes) -> String {
    let unit = [("T", 40), ("G", 30), ("M", 20), ("K", 10)]
        .into_iter()
        .find(|(_, shift)| bytes > 0 && bytes.trailing_zeros() >= *shift);
    match unit {
        Some((suffix, shift)) => format!("{}{suffix}", bytes >> shift),
        None => format!("{bytes}B"),
    }
}

/// A duration as text that reads back exactly; whole seconds are a plain number, as SLOB writes them.
pub fn nanos_text(Nanos(nanos): Nanos) -> String {
    let (suffix, scale) = [("", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)]
        .into_iter()
        .find(|(_, scale)| nanos.is_multiple_of(*scale))
        .unwrap_or(("ns", 1));
    format!("{}{suffix}", nanos / scale)
}

/// `TRUE` or `FALSE`, in any case.
pub(super) fn read_switch(text: &str) -> Option<bool> {
    match text.to_ascii_uppercase().as_str() {
        "TRUE" => Some(true),
        "FALSE" => Some(false),
        _ => None,
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_plain_number_is_blocks_and_a_suffix_makes_it_bytes() {
        assert_eq!(Scale::read("10000"), Some(Scale::Blocks(10_000)));
        assert_eq!(Scale::read("80M"), Some(Scale::Bytes(Bytes::mib(80))));
        assert_eq!(Scale::read("80 m"), Some(Scale::Bytes(Bytes::mib(80))));
        assert_eq!(Scale::read("1.5"), None);
        assert_eq!(Scale::Bytes(Bytes::mib(80)).blocks(8192), 10_240);
        assert_eq!(Scale::Bytes(Bytes(8191)).blocks(8192), 0);
    }

    #[test]
    fn a_plain_number_is_mebibytes_where_slob_says_so() {
        assert_eq!(read_mebibytes("8"), Some(Bytes::mib(8)));
        assert_eq!(read_mebibytes("512K"), Some(Bytes::kib(512)));
        assert_eq!(read_mebibytes("18446744073709551615"), None);
        assert_eq!(read_mebibytes("0.5"), None);
    }

    #[test]
    fn the_hot_spot_covers_whole_blocks_of_any_size() {
        let hot_spot = HotSpot { size: Bytes::mib(8), offset: Bytes::mib(16), frequency: 3 };
        assert_eq!(hot_spot.blocks(8192), 2_048..3_072);
        assert_eq!(hot_spot.blocks(32_768), 512..768);
    }

    proptest! {
        #[test]
        fn sizes_are_read_back_exactly(bytes in any::<u64>(), shift in 0u32..50) {
            let bytes = Bytes(bytes >> shift << shift);
            prop_assert_eq!(Scale::read(&bytes_text(bytes)), Some(Scale::Bytes(bytes)));
            prop_assert_eq!(read_mebibytes(&bytes_text(bytes)), Some(bytes));
        }

        #[test]
        fn durations_are_read_back_exactly(nanos in any::<u64>(), thousands in 0u32..4) {
            let scale = 1000u64.pow(thousands);
            let nanos = Nanos(nanos / scale * scale);
            prop_assert_eq!(nanos_text(nanos).parse(), Ok(nanos));
        }
    }
}
