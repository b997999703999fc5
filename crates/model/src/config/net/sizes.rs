//! Sizes of messages: one, or several with how often each comes.

use std::fmt;
use std::str::FromStr;

use super::NetProblem;
use crate::config::ConfigError;
use crate::config::slob::bytes_text;
use crate::units::Bytes;
use crate::workload::net::{Sizes, WeightedSize};

/// The smallest message: its header.
pub const MIN_MESSAGE_BYTES: u32 = 32;

/// The largest message.
pub const MAX_MESSAGE_BYTES: u32 = 16 << 20;

/// Sizes that a list may have.
const MAX_SIZES: usize = 64;

/// `8k`, or `4k:70,64k:25,1m:5`.
impl FromStr for Sizes {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        read(text).map_err(ConfigError::Net)
    }
}

fn read(text: &str) -> Result<Sizes, NetProblem> {
    if !text.contains([',', ':']) {
        return size(text).map(Sizes::Fixed);
    }
    let mut sizes: Vec<WeightedSize> = Vec::new();
    for item in text.split(',') {
        let Some((bytes, weight)) = item.split_once(':') else {
            return Err(NetProblem::NoWeight { text: item.trim().to_owned() });
        };
        let bytes = size(bytes)?;
        let weight = weight
            .trim()
            .trim_end_matches('%')
            .trim_end()
            .parse()
            .ok()
            .filter(|weight| (1..=1_000_000).contains(weight));
        let weight = weight.ok_or_else(|| NetProblem::NoWeight { text: item.trim().to_owned() })?;
        if sizes.iter().any(|known| known.bytes == bytes) {
            return Err(NetProblem::SizeTwice { bytes });
        }
        sizes.push(WeightedSize { bytes, weight });
    }
    if sizes.len() > MAX_SIZES {
        return Err(NetProblem::TooManySizes { sizes: sizes.len(), most: MAX_SIZES });
    }
    Ok(match sizes.as_slice() {
        [only] => Sizes::Fixed(only.bytes),
        _ => Sizes::Drawn(sizes),
    })
}

fn size(text: &str) -> Result<u32, NetProblem> {
    let wrong = || NetProblem::Size { text: text.trim().to_owned() };
    let Bytes(bytes) = text.trim().parse().map_err(|_| wrong())?;
    u32::try_from(bytes).ok().filter(|bytes| (MIN_MESSAGE_BYTES..=MAX_MESSAGE_BYTES).contains(bytes)).ok_or_else(wrong)
}

/// As on the command line.
impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |bytes: u32| bytes_text(Bytes(u64::from(bytes)));
        match self {
            Self::Fixed(bytes) => f.pad(&shown(*bytes)),
            Self::Drawn(sizes) => {
                let items: Vec<String> =
                    sizes.iter().map(|size| format!("{}:{}", shown(size.bytes), size.weight)).collect();
                f.pad(&items.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_size_and_several_are_read() {
        for (text, shown) in [
            ("8k", "8K"),
            ("200", "200B"),
            ("1m", "1M"),
            ("4k:70, 64k:25 ,1m:5", "4K:70,64K:25,1M:5"),
            ("4k:70%,8k:30%", "4K:70,8K:30"),
            ("8k:100", "8K"),
        ] {
            assert_eq!(text.parse::<Sizes>().unwrap().to_string(), shown, "{text}");
        }
    }

    #[test]
    fn others_are_refused_with_what_to_write() {
        for (text, message) in [
            ("", "`` is not the size of a message"),
            ("31", "`31` is not the size of a message"),
            ("17m", "`17m` is not the size of a message"),
            ("4k,8k", "`4k` does not say how often it comes"),
            ("4k:0,8k:1", "`4k:0` does not say how often it comes"),
            ("4k:1,4096:2", "the size of 4 KiB is there twice"),
        ] {
            let error = text.parse::<Sizes>().unwrap_err();
            assert_eq!(error.to_string(), message, "{text}");
            assert!(error.hint().is_some());
        }
        let many: Vec<String> = (0..65).map(|size| format!("{}:1", 100 + size)).collect();
        assert!(many.join(",").parse::<Sizes>().is_err());
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(sizes in prop::collection::btree_map(32..=MAX_MESSAGE_BYTES, 1..100_u32, 2..20)) {
            let drawn = Sizes::Drawn(sizes.into_iter().map(|(bytes, weight)| WeightedSize { bytes, weight }).collect());
            prop_assert_eq!(drawn.to_string().parse::<Sizes>().unwrap(), drawn);
        }

        #[test]
        fn never_panics_on_any_text(text in "[0-9kmKM:,%. ]*|.*") {
            let _ = text.parse::<Sizes>();
        }
    }
}
