//! What every finding has, and words that several of them need.

use super::Rule;

/// What every finding has.
pub trait Message {
    /// The rule that made it.
    fn rule(&self) -> Rule;

    /// How it bears on the rest of the report: one of the rule's [`severities`](Rule::severities).
    fn severity(&self) -> Severity {
        self.rule().severities()[0]
    }

    /// What was seen, in one or two sentences.
    fn sentence(&self) -> String;

    /// What the user can do about it.
    fn advice(&self) -> Option<String> {
        None
    }

    /// The steps that a doubt is about; `None` if it is about the whole run, or if it is no doubt.
    fn steps(&self) -> Option<&[String]> {
        None
    }
}

/// How a finding bears on the rest of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The figures do not mean what they seem to mean.
    Doubt,
    /// How much load is carried, and what limits it.
    Answer,
    /// Worth knowing.
    Note,
}

/// In a sentence, the series that it is of; nothing where the run has one alone.
pub(crate) fn of_series(series: &str) -> String {
    if series.is_empty() { String::new() } else { format!(" of {series}") }
}

/// Labels in a sentence; many are reported by their number.
pub(crate) fn list(labels: &[String]) -> String {
    // Repeats of a step bear one label.
    let mut labels = labels.to_vec();
    labels.dedup();
    match labels.as_slice() {
        [] => "no step".to_owned(),
        [one] => one.clone(),
        [first @ .., last] if labels.len() <= 4 => format!("{} and {last}", first.join(", ")),
        [first, .., last] => format!("{} steps ({first} to {last})", labels.len()),
    }
}
