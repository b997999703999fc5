//! Which steps of a run were jobs at the same time. Analysis sums them up; a list of runs does with less.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Which steps of a run were jobs at the same time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum JobsAtOnce {
    /// All of them, so many.
    All(u32),
    /// For each step, in their order, a number that those which ran together have in common; absent of a step that ran beside others
    /// for a time that is not reported.
    Each(Vec<Option<u32>>),
}

impl fmt::Display for JobsAtOnce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(count) => count.fmt(f),
            Self::Each(groups) => {
                let word = |group: &Option<u32>| group.map_or_else(|| "?".to_owned(), |group| group.to_string());
                f.write_str(&groups.iter().map(word).collect::<Vec<_>>().join(" "))
            }
        }
    }
}

/// Jobs that were there together for less than this share of the time from the first one's begin to the last one's end were not
/// one load.
pub const TOGETHER: f64 = 0.9;

/// Places of steps by what they ran with, and whether that is reported on them. Without `jobs` each of the `steps` ran by itself.
pub fn groups(jobs: Option<&JobsAtOnce>, steps: usize) -> Vec<(Vec<usize>, bool)> {
    let numbers = match jobs {
        Some(JobsAtOnce::All(_)) => return vec![((0..steps).collect(), true)],
        // Of another number of steps it is of another run.
        Some(JobsAtOnce::Each(numbers)) if numbers.len() == steps => numbers,
        _ => return (0..steps).map(|place| (vec![place], true)).collect(),
    };
    let mut groups: Vec<(Vec<usize>, bool)> = Vec::new();
    let mut places = HashMap::new();
    for (step, number) in numbers.iter().enumerate() {
        let place = *places.entry(number).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((steps, _)) => steps.push(step),
            None => groups.push((vec![step], number.is_some())),
        }
    }
    groups
}

/// Begin and end, in nanoseconds, of windows (offset and length) that were there together nearly all the time; absent of others.
pub fn together(windows: &[(u64, u64)]) -> Option<(u64, u64)> {
    if windows.iter().any(|(_, length_ns)| *length_ns == 0) {
        return None;
    }
    let begins = || windows.iter().map(|(offset_ns, _)| *offset_ns);
    let ends = || windows.iter().map(|(offset_ns, length_ns)| offset_ns.saturating_add(*length_ns));
    let (from_ns, to_ns) = (begins().min()?, ends().max()?);
    let shared_ns = ends().min()?.saturating_sub(begins().max()?);
    (shared_ns as f64 >= TOGETHER * to_ns.saturating_sub(from_ns) as f64).then_some((from_ns, to_ns))
}
