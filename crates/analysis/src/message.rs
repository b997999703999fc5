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

/// An enum of findings: what one of them has to say is what the type in it says. Serialized, it is that type.
macro_rules! one_of {
    ($(#[$about:meta])* $name:ident { $($(#[$about_one:meta])* $variant:ident($found:ty),)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize)]
        #[serde(untagged)]
        pub enum $name {
            $($(#[$about_one])* $variant($found),)+
        }

        impl $name {
            fn message(&self) -> &dyn $crate::Message {
                match self { $(Self::$variant(it) => it,)+ }
            }
        }

        impl $crate::Message for $name {
            fn rule(&self) -> $crate::Rule {
                self.message().rule()
            }

            fn severity(&self) -> $crate::Severity {
                self.message().severity()
            }

            fn sentence(&self) -> String {
                self.message().sentence()
            }

            fn advice(&self) -> Option<String> {
                self.message().advice()
            }

            fn steps(&self) -> Option<&[String]> {
                self.message().steps()
            }
        }
    };
}
pub(crate) use one_of;

/// How a finding bears on the rest of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
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
