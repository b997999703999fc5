//! Parts of a fleet's experiment become one run, added up exactly.
//!
//! The way of a merge:
//!
//! ```text
//! run directories ─▶ Part… ─▶ belong ─▶ align ─▶ sum ─▶ Run, and its intervals one by one
//!                    documents  refuses  windows  series
//! ```
//!
//! What is added and what is not is in `sum`, who saw the same thing twice in `identity`, and how windows are laid over each other in
//! `align`. Documents of all parts are held, packed; of their intervals only those of one instant.

mod align;
mod belong;
mod error;
mod identity;
mod part;
mod rows;
mod series;
mod step;
mod sum;
#[cfg(test)]
mod tests;

use std::sync::atomic::AtomicBool;

use model::record::{FORMAT, Interval, Merged, Outcome, Run};

pub use belong::{Differences, MergeOptions, Missing};
pub use error::MergeError;
pub use part::{MAX_PARTS, Part};

/// Flags that say which part of a fleet a process is and when it begins, each with a value, and nothing of the load.
const PLACE_FLAGS: [&str; 8] =
    ["--part", "--hosts", "--start-at", "--step-gap", "--meet", "--meet-token-file", "--meet-wait", "--on-part-end"];

/// Parts that belong together, ready to be added up.
#[derive(Debug)]
pub struct Merging {
    parts: Vec<Part>,
    together: belong::Together,
    run: Run,
}

impl Merging {
    /// Looks whether the parts belong together. `id` is the merged run's.
    ///
    /// # Errors
    /// If they do not, or one of them is missing; `wanted` says which of that is let pass.
    pub fn new(mut parts: Vec<Part>, wanted: &MergeOptions, id: impl Into<String>) -> Result<Self, MergeError> {
        parts.sort_by(|one, other| one.order().cmp(&other.order()));
        let together = belong::check(&parts, wanted)?;
        let run = header(&parts, &together, id.into());
        Ok(Self { parts, together, run })
    }

    /// The same under another id.
    #[must_use]
    pub fn with_id(mut self, id: &str) -> Self {
        id.clone_into(&mut self.run.id);
        self
    }

    /// The merged run before its first step.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Adds everything up. Each merged interval is handed over as soon as it is whole, and not kept.
    ///
    /// # Errors
    /// If parts have no time in common, intervals cannot be read, `each` fails, or `stop` was set.
    pub fn merge<E: From<MergeError>>(
        self,
        stop: &AtomicBool,
        mut each: impl FnMut(&Interval) -> Result<(), E>,
    ) -> Result<Run, E> {
        let Self { parts, together, mut run } = self;
        let mut rows = rows::begin(&parts);
        let mut merged = Merged {
            parts: together.parts,
            configuration: parts.first().map(|part| part.place.configuration.clone()).unwrap_or_default(),
            missing: together.missing,
            forced: together.forced,
            steps: Vec::new(),
        };
        for (index, taken) in (0..).zip(&together.steps) {
            let added = step::add(&parts, taken, index, &run, stop, &mut each)?;
            rows::add(&mut rows, &parts, taken, &added);
            merged.steps.push(added.merged);
            run.notes.extend(added.notes);
            run.steps.push(added.step);
        }
        run.merged = Some(merged);
        run.parts = rows;
        Ok(run)
    }
}

/// What all parts have in common, and of the first one what a run has only one of.
fn header(parts: &[Part], together: &belong::Together, id: String) -> Run {
    let runs = || parts.iter().map(|part| &part.run);
    // `check` refuses nothing at all, so there is a first one.
    let first = parts.first().expect("there are parts");
    let Run { name, tool, load, command, tags, seed, target, environment, like, .. } = first.run.clone();
    let shared = |of: fn(&Run) -> &std::collections::BTreeMap<String, String>| {
        let in_all = |(key, value): &(&String, &String)| runs().all(|run| of(run).get(*key) == Some(value));
        of(&first.run).iter().filter(in_all).map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    let mut target = target;
    target.facts = shared(|run| &run.target.facts);
    let mut notes = together.notes.clone();
    if runs().any(|run| run.target.address != target.address) {
        notes.push(format!(
            "the parts loaded several targets; `{}` is that of part {}",
            target.address, first.place.number
        ));
    }
    for (note, number) in runs_notes(parts) {
        notes.push(format!("part {number}: {note}"));
    }
    let is_alike =
        |of: fn(&Run) -> &std::collections::BTreeMap<String, String>| shared(of).len() == of(&first.run).len();
    if !is_alike(|run| &run.tags) {
        notes.push("tags that differ between parts are left out".to_owned());
    }
    Run {
        format: FORMAT,
        id,
        name,
        tool,
        load,
        check: None,
        command: without_place(&command),
        started_at: first.run.started_at,
        ended_at: runs().map(|run| run.ended_at).max().flatten(),
        outcome: runs().map(|run| &run.outcome).fold(Outcome::Completed, Outcome::worse),
        tags: if is_alike(|run| &run.tags) { tags } else { shared(|run| &run.tags) },
        seed,
        parameters: shared(|run| &run.parameters),
        target,
        environment,
        notes,
        imported: None,
        part: None,
        like,
        merged: None,
        parts: Vec::new(),
        steps: Vec::new(),
    }
}

/// Each note once, with the number of the first part that has it.
fn runs_notes(parts: &[Part]) -> Vec<(String, u32)> {
    let mut notes: Vec<(String, u32)> = Vec::new();
    for part in parts {
        for note in &part.run.notes {
            if !notes.iter().any(|(known, _)| known == note) {
                notes.push((note.clone(), part.place.number));
            }
        }
    }
    notes
}

/// A command line without the words that only say which part it was.
fn without_place(command: &[String]) -> Vec<String> {
    let mut words = Vec::new();
    let mut is_value = false;
    for word in command {
        if std::mem::take(&mut is_value) {
            continue;
        }
        let (flag, value) = word.split_once('=').map_or((word.as_str(), None), |(flag, value)| (flag, Some(value)));
        match PLACE_FLAGS.contains(&flag) {
            true => is_value = value.is_none(),
            false => words.push(word.clone()),
        }
    }
    words
}
