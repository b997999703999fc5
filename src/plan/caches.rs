//! What a cache will make of a data set, said before anything is loaded or measured.

use super::slob::size_text;
use model::units::{Bytes, Nanos, percent};
use targets::database::Cache;

/// Data of so many times a cache leave it little to answer.
const TIMES: u64 = 4;

/// The buffer cache of the embedded engine.
pub(super) fn cache_of_engine(bytes: Bytes) -> Cache {
    Cache { bytes, what: "the buffer cache".to_owned(), cure: Some("use a smaller `--cache`") }
}

/// Data that operations choose from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data {
    /// Schemas.
    pub schemas: u32,
    /// Blocks of each.
    pub scale_blocks: u64,
    /// Size of a block.
    pub block_bytes: u32,
}

impl Data {
    fn bytes(self) -> Bytes {
        let blocks = self.scale_blocks.saturating_mul(u64::from(self.schemas));
        Bytes(blocks.saturating_mul(u64::from(self.block_bytes)))
    }

    /// Whether `cache` holds them all.
    pub(super) fn fit_into(self, cache: &Cache) -> bool {
        self.bytes() <= cache.bytes
    }
}

/// `SCALE=256M` for data of four times `cache`, in whole MiB.
pub fn ample_scale(schemas: u32, cache: Bytes) -> String {
    let each = cache.0.saturating_mul(TIMES).div_ceil(u64::from(schemas.max(1)));
    format!("SCALE={}", size_text(each.div_ceil(1 << 20), 1 << 20))
}

/// Why reads of `data` may not reach storage, and what to do; nothing where they are four times `cache` or more. `unasked` is how
/// long a window is that nobody asked for.
pub fn note(data: Data, cache: &Cache, unasked: Option<Nanos>) -> Option<String> {
    let (bytes, Cache { bytes: cached, what, cure }) = (data.bytes(), cache);
    if cached.0.saturating_mul(TIMES) <= bytes.0 {
        return None;
    }
    let held = if data.fit_into(cache) {
        let long = unasked.map_or_else(String::new, |time| format!(", for the {time} that RUN_TIME is by default"));
        format!("fit into {what} ({cached}): once it is warm, reads measure memory{long}")
    } else {
        let share = percent(cached.0 as f64 / bytes.0.max(1) as f64);
        format!("are less than four times {what} ({cached}), which may answer {share} % of reads")
    };
    let each = if data.schemas == 1 { String::new() } else { format!(" for each of the {} schemas", data.schemas) };
    let cure = cure.map_or_else(String::new, |cure| format!(", or {cure}"));
    let scale = ample_scale(data.schemas, *cached);
    Some(format!("the data ({bytes}) {held}; to measure storage, set up `{scale}` or more{each}{cure}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note_of(schemas: u32, mebibytes: u64, unasked: Option<Nanos>) -> Option<String> {
        let data = Data { schemas, scale_blocks: mebibytes * 128, block_bytes: 8_192 };
        note(data, &cache_of_engine(Bytes::mib(64)), unasked)
    }

    #[test]
    fn data_below_four_caches_are_reported_of_with_the_scale_that_is_enough() {
        assert_eq!(note_of(1, 256, None), None);
        assert_eq!(
            note_of(2, 80, None).unwrap(),
            "the data (160 MiB) are less than four times the buffer cache (64 MiB), which may answer 40.0 % of reads; to \
             measure storage, set up `SCALE=128M` or more for each of the 2 schemas, or use a smaller `--cache`"
        );
        assert_eq!(
            note_of(1, 64, Some(Nanos::seconds(300))).unwrap(),
            "the data (64 MiB) fit into the buffer cache (64 MiB): once it is warm, reads measure memory, for the 5m00s that \
             RUN_TIME is by default; to measure storage, set up `SCALE=256M` or more, or use a smaller `--cache`"
        );
    }

    #[test]
    fn the_scale_is_whole_and_never_too_small() {
        assert_eq!(ample_scale(3, Bytes::mib(64)), "SCALE=86M");
        assert_eq!(ample_scale(1, Bytes::gib(1)), "SCALE=4G");
        assert_eq!(ample_scale(0, Bytes(1)), "SCALE=1M");
        let data = Data { schemas: u32::MAX, scale_blocks: u64::MAX, block_bytes: 8_192 };
        assert_eq!(note(data, &cache_of_engine(Bytes(1)), None), None);
    }
}
