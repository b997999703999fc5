//! Which steps of a run were jobs at the same time, by the fact that says so. Analysis sums them up; a list of runs does with less.

use super::facts::TOGETHER_UNREPORTED;

/// Jobs that were there together for less than this share of the time from the first one's begin to the last one's end were not
/// one load.
pub const TOGETHER: f64 = 0.9;

/// Places of steps by what they ran with, and whether that is reported on them. `fact` is
/// [`JOBS_AT_ONCE`](super::facts::JOBS_AT_ONCE); without it each of the `steps` ran by itself.
pub fn groups(fact: Option<&str>, steps: usize) -> Vec<(Vec<usize>, bool)> {
    let each = || (0..steps).map(|place| (vec![place], true)).collect();
    let Some(fact) = fact else { return each() };
    let words: Vec<&str> = fact.split_whitespace().collect();
    match words.as_slice() {
        // One step has one word too, and is alone either way.
        [count] if *count != TOGETHER_UNREPORTED => return vec![((0..steps).collect(), true)],
        words if words.len() != steps => return each(),
        _ => {}
    }
    let mut groups: Vec<(Vec<usize>, bool)> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for (step, word) in words.into_iter().enumerate() {
        let place = *places.entry(word).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((steps, _)) => steps.push(step),
            None => groups.push((vec![step], word != TOGETHER_UNREPORTED)),
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
