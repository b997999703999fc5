//! Whether runs are the parts of one experiment.

use super::error::{MergeError, numbers_in_words};
use super::part::Part;
use model::record::{Outcome, Run, Step};

/// What is let pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MergeOptions {
    /// Parts that are missing, or did not come to their end.
    pub missing: Missing,
    /// Runs that do not belong together.
    pub differences: Differences,
}

/// What happens where parts are missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Missing {
    /// Nothing is merged.
    #[default]
    Refused,
    /// The rest is merged, and the run says what is missing.
    Noted,
}

/// What happens where runs do not belong together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Differences {
    /// Nothing is merged.
    #[default]
    Refused,
    /// They are merged, and the run is marked.
    Marked,
}

/// What belongs together.
#[derive(Debug)]
pub(super) struct Together {
    /// Parts that the experiment had.
    pub(super) parts: u32,
    /// Numbers of those that are not there.
    pub(super) missing: Vec<u32>,
    /// What was let pass although it does not belong together.
    pub(super) forced: Vec<String>,
    /// What the reader must know.
    pub(super) notes: Vec<String>,
    /// Each step, as it lies in the parts that have it.
    pub(super) steps: Vec<Taken>,
}

/// A step of the merged run: which parts have it, and where.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) label: String,
    /// Places among the parts, and of the step in the part.
    pub(super) from: Vec<(usize, usize)>,
}

/// Words for what a part has of something.
type Words = fn(&Part) -> String;

/// What has to be equal, in the order in which a difference is reported.
const EQUAL: [(&str, Words); 7] = [
    ("format", |part| part.run.format.to_string()),
    ("version", |part| format!("{} {}", part.run.tool.name, part.run.tool.version)),
    ("workload", |part| part.run.workload().to_string()),
    ("kind of target", |part| part.run.target.kind.clone()),
    ("number of parts", |part| part.place.parts.to_string()),
    ("seed", |part| part.run.seed.map_or_else(|| "none".to_owned(), |seed| seed.to_string())),
    ("configuration digest", |part| part.place.configuration.clone()),
];

/// Looks whether `parts`, sorted, belong together.
pub(super) fn check(parts: &[Part], wanted: &MergeOptions) -> Result<Together, MergeError> {
    let Some(first) = parts.first() else { return Err(MergeError::NoParts) };
    let mut forced = Vec::new();
    let mut let_pass = |error: MergeError| match wanted.differences {
        Differences::Refused => Err(error),
        Differences::Marked => {
            forced.push(error.to_string());
            Ok(())
        }
    };
    for part in parts {
        for (what, of) in EQUAL {
            let (left_value, right_value) = (of(first), of(part));
            if left_value != right_value {
                let (left, right) = (first.run.id.clone(), part.run.id.clone());
                let_pass(MergeError::Differ { what, left, left_value, right, right_value })?;
            }
        }
    }
    for pair in parts.windows(2) {
        if let [one, other] = pair
            && one.place.number == other.place.number
        {
            let (left, right) = (one.run.id.clone(), other.run.id.clone());
            let_pass(MergeError::Twice { number: one.place.number, left, right })?;
        }
    }
    let all = parts.iter().map(|part| part.place.parts).max().unwrap_or(0);
    // A damaged document may say any number: what is missing is not counted beyond what there is.
    let missing: Vec<u32> =
        (0..all).filter(|number| parts.binary_search_by_key(number, |part| part.place.number).is_err()).collect();
    if !missing.is_empty() && wanted.missing == Missing::Refused {
        return Err(MergeError::Missing { parts: all, numbers: missing, run: first.run.id.clone() });
    }
    let mut notes = Vec::new();
    if !missing.is_empty() {
        notes.push(format!("of {all} parts there is no run of {}", numbers_in_words(&missing)));
    }
    for part in parts {
        let Some(how) = death(&part.run) else { continue };
        if wanted.missing == Missing::Noted {
            notes.push(format!("part {} {how}: what it did not complete is left out", part.place.number));
            continue;
        }
        let living = parts.iter().find(|other| death(&other.run).is_none());
        let other = living.or_else(|| parts.iter().find(|other| other.run.id != part.run.id)).unwrap_or(part);
        let (run, other) = (part.run.id.clone(), other.run.id.clone());
        let_pass(MergeError::Dead { run, number: part.place.number, how, other })?;
    }
    let steps = steps(parts, wanted, &mut let_pass, &mut notes)?;
    if steps.is_empty() {
        let last = parts.last().unwrap_or(first);
        return Err(MergeError::NoSteps { left: first.run.id.clone(), right: last.run.id.clone() });
    }
    if !forced.is_empty() {
        notes.push("merged with --force although not all of it belongs together".to_owned());
    }
    Ok(Together { parts: all, missing, forced, notes, steps })
}

/// How a run ended that did not come to its end; a user's request is an end.
fn death(run: &Run) -> Option<String> {
    match &run.outcome {
        Outcome::Completed | Outcome::Interrupted => None,
        Outcome::Unfinished => Some("was killed, or has not finished".to_owned()),
        Outcome::Failed { error } => Some(format!("failed ({error})")),
    }
}

/// Whether a step can be added to those of others.
fn is_measured(step: &Step, wanted: &MergeOptions) -> bool {
    // Without its end nobody knows when a window began.
    let has_window = step.window.duration_ns > 0 && step.outcome != Outcome::Unfinished;
    let is_whole = step.outcome == Outcome::Completed || step.outcome == Outcome::Interrupted;
    has_window && (is_whole || wanted.missing == Missing::Refused)
}

/// The steps of the merged run, by their places and labels.
fn steps(
    parts: &[Part],
    wanted: &MergeOptions,
    let_pass: &mut impl FnMut(MergeError) -> Result<(), MergeError>,
    notes: &mut Vec<String>,
) -> Result<Vec<Taken>, MergeError> {
    let longest = super::part::widest(parts, |part| part.run.steps.len() as u64);
    let Some(longest) = longest else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for (at, wanted_step) in longest.run.steps.iter().enumerate() {
        let label = &wanted_step.label;
        let mut taken = Taken { label: label.clone(), from: Vec::new() };
        let mut without: Vec<&Part> = Vec::new();
        for (place, part) in parts.iter().enumerate() {
            match part.run.steps.get(at) {
                Some(step) if step.label != *label => let_pass(MergeError::Differ {
                    what: "label of a step",
                    left: longest.run.id.clone(),
                    left_value: label.clone(),
                    right: part.run.id.clone(),
                    right_value: step.label.clone(),
                })?,
                Some(step) if is_measured(step, wanted) => taken.from.push((place, at)),
                None if part.run.outcome == Outcome::Completed => let_pass(MergeError::Differ {
                    what: "number of steps",
                    left: longest.run.id.clone(),
                    left_value: longest.run.steps.len().to_string(),
                    right: part.run.id.clone(),
                    right_value: part.run.steps.len().to_string(),
                })?,
                _ => without.push(part),
            }
        }
        if let Some(part) = without.first()
            && wanted.missing == Missing::Refused
        {
            let is_whole = |(place, at): &&(usize, usize)| {
                parts
                    .get(*place)
                    .and_then(|part| part.run.steps.get(*at))
                    .is_some_and(|step| step.outcome == Outcome::Completed)
            };
            let whole = taken.from.iter().find(is_whole).and_then(|(place, _)| parts.get(*place));
            if let Some(other) = whole {
                let (run, other) = (part.run.id.clone(), other.run.id.clone());
                let_pass(MergeError::EndedBefore { run, step: label.clone(), other })?;
            } else {
                notes.push(format!("{label} is left out: part {} ended before it was measured", part.place.number));
                continue;
            }
        }
        if !taken.from.is_empty() {
            all.push(taken);
        }
    }
    Ok(all)
}
