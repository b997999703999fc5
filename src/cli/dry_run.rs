//! What `--dry-run` says, in one form for every command.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, Write};

use clap::Args;

use super::exit::{Exit, Failure};
use super::fleet::Joined;
use super::like;
use super::live::warmup_words;
use super::say;
use super::supervisor::say_planned;
use crate::plan::RunHead;
use analysis::SearchPlan;
use load::StepPlan;
use model::config::io::RateRange;
use model::record::Like;
use model::units::Nanos;

/// Whether only what would be done is to be said, for commands that have no other flags of a run.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct DryRunArg {
    /// Print what would be done, and exit
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    dry_run: bool,
}

impl DryRunArg {
    /// Whether that is so.
    pub(super) fn is_set(self) -> bool {
        self.dry_run
    }
}

/// What a command would do: facts, a line each, then its steps.
#[derive(Default)]
pub(super) struct DryRun {
    text: Vec<u8>,
    steps: u32,
    has_gap: bool,
}

impl DryRun {
    /// Of a run of this name.
    pub(super) fn named(name: &str) -> Self {
        Self::default().fact("name", name)
    }

    /// Of a planned run: its name, these facts, its seed, its tags and its parameters.
    pub(super) fn of<'a>(head: &RunHead, facts: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        let described = facts.into_iter().fold(Self::named(&head.name), |it, (what, value)| it.fact(what, value));
        described.fact("seed", head.seed).settings(&head.tags, &head.parameters)
    }

    /// A line `what       value`.
    pub(super) fn fact(self, what: &str, value: impl Display) -> Self {
        self.line(format_args!("{what:<10} {value}"))
    }

    /// Such a line for each value.
    pub(super) fn facts(self, what: &str, values: impl IntoIterator<Item = impl Display>) -> Self {
        values.into_iter().fold(self, |this, value| this.fact(what, value))
    }

    /// Tags and parameters of the run.
    pub(super) fn settings(self, tags: &BTreeMap<String, String>, parameters: &BTreeMap<String, String>) -> Self {
        let this = self.facts("tag", tags.iter().map(|(key, value)| format!("{key}={value}")));
        parameters.iter().fold(this, |this, (key, value)| this.line(format_args!("{key}={value}")))
    }

    /// A line of its own.
    pub(super) fn line(self, line: impl Display) -> Self {
        self.with(|text| writeln!(text, "{line}"))
    }

    /// An empty line.
    pub(super) fn gap(mut self) -> Self {
        self.has_gap = true;
        self.line("")
    }

    /// Which production it is like, and by what.
    pub(super) fn like(mut self, like: &Like) -> Self {
        self.has_gap = true;
        self.with(|text| like::write(text, like))
    }

    /// What `write` writes. It has to end its last line.
    pub(super) fn with(mut self, write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Self {
        // Memory takes all that is written.
        let _ = write(&mut self.text);
        self
    }

    /// The next step: its label, its load in words if the label does not say all, and how long it takes.
    pub(super) fn step(mut self, label: &str, load: &str, warmup: Nanos, duration: Nanos) -> Self {
        if !self.has_gap {
            self = self.gap();
        }
        self.steps += 1;
        let number = self.steps;
        let load = if load.is_empty() { String::new() } else { format!("{load}, ") };
        self.line(format_args!("step {number:<3} {label}: {load}{}, {duration} measured", warmup_words(warmup)))
    }

    /// A line for each step, with its load in words; of a search for a rate, what is searched. `what` is what a rate counts.
    pub(super) fn rates<S>(
        self,
        rates: Option<&RateRange>,
        what: &str,
        each: Nanos,
        steps: &[StepPlan<S>],
        words: impl Fn(&StepPlan<S>) -> String,
    ) -> Self {
        if let Some(RateRange::Between { lowest, highest }) = rates {
            let most = SearchPlan::default().max_points;
            return self.gap().line(format_args!(
                "search from {lowest} to {highest} {what}/s in at most {most} steps of {each} each"
            ));
        }
        self.steps(steps, words)
    }

    /// A line for each step, with its load in words.
    pub(super) fn steps<S>(self, steps: &[StepPlan<S>], words: impl Fn(&StepPlan<S>) -> String) -> Self {
        steps.iter().fold(self, |it, step| it.step(&step.label, &words(step), step.warmup, step.duration))
    }

    /// What the run has to do with other processes.
    pub(super) fn part(self, joined: &Joined) -> Self {
        self.with(|text| joined.write(text))
    }

    /// All of another one.
    pub(super) fn append(self, other: Self) -> Self {
        self.with(|text| text.write_all(&other.text))
    }

    /// Prints it. A supervisor of several loads learns how long load is on: in all, or `None` where that follows from what is
    /// measured.
    pub(super) fn print(self, time: Option<Nanos>, is_simulated: bool) -> Result<Exit, Failure> {
        let mut out = say::output();
        out.write_all(&self.text)?;
        out.flush()?;
        drop(out);
        say_planned(time, is_simulated);
        Ok(Exit::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands that put no load on anything and write nothing but a file that the user names as the output, and why.
    const READ_ONLY: &[(&str, &str)] = &[
        ("compare", "it reads runs"),
        ("completions", "it prints"),
        ("durable layers", "it reads answers"),
        ("expect", "it reads the catalogue"),
        ("experiment plan", "it is itself a dry run"),
        ("experiment report", "it reads runs"),
        ("fit", "it reads runs"),
        ("orders info", "it looks at data"),
        ("orders verify", "it reads data"),
        ("platforms check", "it reads the catalogue"),
        ("platforms list", "it reads the catalogue"),
        ("platforms show", "it reads the catalogue"),
        ("probe", "it watches what others do"),
        ("record", "it watches what others do"),
        ("report", "it reads a run"),
        ("runs list", "it reads runs"),
        ("runs show", "it reads a run"),
        ("serve", "it shows runs, and nothing can be changed through it"),
        ("slob info", "it looks at data"),
        ("slob script", "it prints"),
        ("table", "it reads runs"),
        ("trace convert", "it reads a trace"),
        ("trace formats", "it prints"),
        ("trace show", "it reads a trace"),
        ("trend", "it reads runs"),
    ];

    #[test]
    fn every_command_that_writes_or_loads_has_a_dry_run() {
        fn leaves(command: &clap::Command, path: &str, found: &mut BTreeMap<String, bool>) {
            for inner in command.get_subcommands() {
                leaves(inner, format!("{path} {}", inner.get_name()).trim(), found);
            }
            if !command.has_subcommands() {
                let has = command.get_arguments().any(|argument| argument.get_long() == Some("dry-run"));
                found.insert(path.to_owned(), has);
            }
        }
        let mut found = BTreeMap::new();
        leaves(&super::super::help::command(), "", &mut found);
        assert!(found.len() > 40, "{found:?}");
        let without: Vec<&str> = found.iter().filter(|(_, has)| !**has).map(|(path, _)| path.as_str()).collect();
        let read_only: Vec<&str> = READ_ONLY.iter().map(|(path, _)| *path).collect();
        assert_eq!(without, read_only);
    }

    #[test]
    fn steps_are_numbered_below_the_facts() {
        let tags = BTreeMap::from([("vm".to_owned(), "d8s".to_owned())]);
        let parameters = BTreeMap::from([("SCALE".to_owned(), "1G".to_owned())]);
        let (warmup, window) = (Nanos(0), Nanos::seconds(60));
        let plan = DryRun::named("d8s")
            .facts("path", ["a", "b"])
            .settings(&tags, &parameters)
            .step("s1", "1 session", warmup, window)
            .step("s2", "", warmup, window);
        let text = String::from_utf8(plan.text).unwrap();
        let facts = "name       d8s\npath       a\npath       b\ntag        vm=d8s\nSCALE=1G\n\n";
        let steps = text.strip_prefix(facts).unwrap_or_else(|| panic!("{text}"));
        assert!(steps.starts_with("step 1   s1: 1 session, no warm-up, "), "{steps}");
        assert!(steps.ends_with("measured\n") && steps.contains("\nstep 2   s2: no warm-up, "), "{steps}");
    }
}
