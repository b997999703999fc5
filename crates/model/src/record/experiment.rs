//! Which runs of a store belong to one experiment, and to which of its steps. Tags say it, so that lists and people see it too.

use std::collections::BTreeMap;

/// Tag: the experiment that a run belongs to.
pub const EXPERIMENT: &str = "experiment";
/// Tag: what its load is called in the experiment.
pub const LOAD: &str = "experiment.load";
/// Tag: which of its steps it is, from 1.
pub const STEP: &str = "experiment.step";
/// Tag: which of its repeats, from 1.
pub const ROUND: &str = "experiment.round";

/// The place of a run in an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExperimentMark {
    /// The experiment's name.
    pub experiment: String,
    /// What its load is called there.
    pub load: String,
    /// The step, from 1: one combination of values.
    pub step: u32,
    /// The repeat, from 1.
    pub round: u32,
}

impl ExperimentMark {
    /// The mark as tags.
    pub fn tags(&self) -> BTreeMap<String, String> {
        let pairs = [
            (EXPERIMENT, self.experiment.clone()),
            (LOAD, self.load.clone()),
            (STEP, self.step.to_string()),
            (ROUND, self.round.to_string()),
        ];
        pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// The mark that tags are; absent unless all of it is there.
    pub fn of_tags(tags: &BTreeMap<String, String>) -> Option<Self> {
        Some(Self {
            experiment: tags.get(EXPERIMENT)?.clone(),
            load: tags.get(LOAD)?.clone(),
            step: tags.get(STEP)?.parse().ok()?,
            round: tags.get(ROUND)?.parse().ok()?,
        })
    }
}

/// Whether a tag is a part of such a mark, and says nothing of the platform.
pub fn is_mark(name: &str) -> bool {
    [EXPERIMENT, LOAD, STEP, ROUND].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_back_and_a_part_of_one_is_none() {
        let mark = ExperimentMark { experiment: "e".to_owned(), load: "slob run".to_owned(), step: 3, round: 2 };
        assert_eq!(ExperimentMark::of_tags(&mark.tags()).as_ref(), Some(&mark));
        assert!(mark.tags().keys().all(|name| is_mark(name)) && !is_mark("vm"));
        for key in [EXPERIMENT, LOAD, STEP, ROUND] {
            let mut tags = mark.tags();
            tags.remove(key);
            assert_eq!(ExperimentMark::of_tags(&tags), None, "{key}");
        }
    }
}
