//! How many requests are outstanding, step by step.

use std::fmt;
use std::str::FromStr;

use crate::config::ConfigError;
use crate::config::list::{Gap, numbers};

use super::IoProblem;

/// Most requests outstanding that may be asked for.
pub const MAX_DEPTH: u32 = 4_096;

/// Requests outstanding of all jobs together, one step each: `1,2,4,8`, or with the doublings between left out as
/// `1,2,4,…,256`, `1,2,4,...,256` or `1..256`. A range ends with its last number even if that is no doubling.
///
/// What is read has at least one depth, each from 1 to [`MAX_DEPTH`] and there once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DepthList(pub Vec<u32>);

impl FromStr for DepthList {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        read(text).map(Self).map_err(ConfigError::Io)
    }
}

fn read(text: &str) -> Result<Vec<u32>, IoProblem> {
    numbers(text, read_depth, |gap| match gap {
        Gap::Twice(depth) => IoProblem::DepthTwice { depth },
        Gap::Down { first, last } => IoProblem::DepthOrder { first, last },
        Gap::NoDoubling { before, first } => {
            IoProblem::NoDoubling { before: f64::from(before), first: f64::from(first) }
        }
    })
}

fn read_depth(text: &str) -> Result<u32, IoProblem> {
    let depth = text.parse().ok().filter(|depth| (1..=MAX_DEPTH).contains(depth));
    depth.ok_or_else(|| IoProblem::Depth { text: text.to_owned() })
}

impl fmt::Display for DepthList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let depths: Vec<String> = self.0.iter().map(u32::to_string).collect();
        f.pad(&depths.join(","))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::assert_refused;
    use super::{DepthList, MAX_DEPTH};

    #[test]
    fn every_way_to_leave_doublings_out_is_read() {
        for text in
            ["1,2,4,8,16,32", "1,2,4,…,32", "1,2,4,...,32", "1, 2, ..., 32", "1,…,32", "1..32", "1...32", "1…32"]
        {
            assert_eq!(text.parse::<DepthList>().unwrap().0, [1, 2, 4, 8, 16, 32], "{text}");
        }
        assert_eq!("1..4,8..32".parse::<DepthList>().unwrap().0, [1, 2, 4, 8, 16, 32]);
    }

    #[test]
    fn a_range_ends_with_its_last_number() {
        assert_eq!("1..48".parse::<DepthList>().unwrap().to_string(), "1,2,4,8,16,32,48");
        assert_eq!("3,6,…,24,25".parse::<DepthList>().unwrap().to_string(), "3,6,12,24,25");
        assert_eq!("4..4".parse::<DepthList>().unwrap().0, [4]);
        assert_eq!("8,4,1".parse::<DepthList>().unwrap().0, [8, 4, 1]);
    }

    #[test]
    fn refuses_others_and_says_what_to_write() {
        let hint = "write such a number; a sweep takes several: `1,2,4,8`, or `1..256` for doublings";
        for (text, item) in [
            ("", ""),
            ("0", "0"),
            ("1,,2", ""),
            ("4097", "4097"),
            ("1..x", "x"),
            ("…,4", ""),
            ("1,…", ""),
            ("1-4", "1-4"),
        ] {
            assert_refused::<DepthList>(text, &format!("`{item}` is not a number from 1 to 4096"), hint);
        }
        assert_refused::<DepthList>("1,2,1", "depth 1 is there twice", "give each depth once");
        assert_refused::<DepthList>("1..8,8", "depth 8 is there twice", "give each depth once");
        assert_refused::<DepthList>("8..1", "the range from 8 to 1 has nothing in it", "write `1..8`");
        assert_refused::<DepthList>(
            "1,3,…,9",
            "3 is not the double of 1, so it is not clear what `…` stands for",
            "write every number, or double them as in `1,2,4,…,256`",
        );
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(depths in prop::collection::hash_set(1..=MAX_DEPTH, 1..20)) {
            let list = DepthList(depths.into_iter().collect());
            prop_assert_eq!(list.to_string().parse::<DepthList>().unwrap(), list);
        }

        #[test]
        fn a_range_doubles_from_end_to_end(first in 1..=MAX_DEPTH, more in 0..=MAX_DEPTH) {
            let last = (first + more).min(MAX_DEPTH);
            let DepthList(depths) = format!("{first}..{last}").parse().unwrap();
            prop_assert_eq!((depths.first(), depths.last()), (Some(&first), Some(&last)));
            prop_assert!(depths.windows(2).all(|pair| pair[0] < pair[1] && pair[1] <= 2 * pair[0]));
        }

        #[test]
        fn never_panics_on_any_text(text in "[0-9.,… ]*|.*") {
            let _ = text.parse::<DepthList>();
        }
    }
}
