//! Why runs are not merged.

use miette::Diagnostic;
use model::record::store::StoreError;

const FORCE: &str = "`--force` merges them all the same, and marks the result";

/// Why parts did not become one run. Each says which runs it is about.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum MergeError {
    /// There is nothing to merge.
    #[error("there is no part of a fleet to merge")]
    #[diagnostic(help(
        "name the run directories of the parts, or directories that hold them: `plimsoll merge host*/plimsoll-runs`"
    ))]
    NoParts,
    /// A run that was the whole experiment.
    #[error("`{run}` is no part of a fleet: it says no part number")]
    #[diagnostic(help(
        "only runs that were made with `--part` are merged; `plimsoll compare` holds any runs against each other"
    ))]
    NotAPart {
        /// Its id.
        run: String,
    },
    /// A part number that cannot be.
    #[error("`{run}` cannot be part {number} of {parts}")]
    #[diagnostic(help("parts count from 0: `--part 0/4` to `--part 3/4`; look into its `run.json`"))]
    BadPlace {
        /// Its id.
        run: String,
        /// The number that it says.
        number: u32,
        /// The parts that it says.
        parts: u32,
    },
    /// Two runs are not of one experiment.
    #[error(
        "`{left}` and `{right}` do not belong together: {what} is `{left_value}` in one and `{right_value}` in the other"
    )]
    #[diagnostic(help("{}; {FORCE}", match *what {
        "format" | "version" => "run the same version of the program on all hosts",
        _ => "name the runs of one experiment alone",
    }))]
    Differ {
        /// What differs.
        what: &'static str,
        /// Id of one run.
        left: String,
        /// What it has.
        left_value: String,
        /// Id of the other.
        right: String,
        /// What that has.
        right_value: String,
    },
    /// Two runs are the same part.
    #[error("`{left}` and `{right}` are both part {number}")]
    #[diagnostic(help("give each part a number of its own, and name each run once; {FORCE}"))]
    Twice {
        /// The number.
        number: u32,
        /// Id of one run.
        left: String,
        /// Id of the other.
        right: String,
    },
    /// There is no run of some parts.
    #[error("of {parts} parts {} missing: {}; there is `{run}`", if numbers.len() == 1 { "one is" } else { "some are" }, numbers_in_words(numbers))]
    #[diagnostic(help("name the missing runs too; `--partial` merges what there is, and says what is missing"))]
    Missing {
        /// Parts that there should be.
        parts: u32,
        /// Numbers of those that are not there.
        numbers: Vec<u32>,
        /// Id of a run that is there.
        run: String,
    },
    /// A part did not come to its end.
    #[error("`{run}`, part {number} beside `{other}`, {how}")]
    #[diagnostic(help(
        "`--partial` leaves out what it did not complete; `--force` takes the time that all parts share"
    ))]
    Dead {
        /// Its id.
        run: String,
        /// Its number.
        number: u32,
        /// How it ended, as a predicate.
        how: String,
        /// Id of another part; of one that came to its end, if there is one.
        other: String,
    },
    /// A part ended before a step that others have.
    #[error("`{run}` ended before step `{step}`, which `{other}` has")]
    #[diagnostic(help("`--partial` merges the step without it, and says what is missing"))]
    EndedBefore {
        /// Id of the part.
        run: String,
        /// Label of the step.
        step: String,
        /// Id of a part that has it.
        other: String,
    },
    /// The parts were never under load at the same time.
    #[error("in step `{step}` the windows of `{left}` and `{right}` have no whole interval in common: one ends {} s before the other begins", seconds(*gap_ns))]
    #[diagnostic(help("start the parts together with `--start-at` or `--meet`, and see that the hosts' clocks agree"))]
    NoCommonTime {
        /// Label of the step.
        step: String,
        /// Id of the part whose window ends first.
        left: String,
        /// Id of the part whose window begins last.
        right: String,
        /// From the one to the other, by the clock of part 0; 0 where they overlap by less than an interval.
        gap_ns: u64,
    },
    /// No step is in all parts.
    #[error("no step was measured by all parts, from `{left}` to `{right}`")]
    #[diagnostic(help("look how each of them ended: `plimsoll runs show RUN`"))]
    NoSteps {
        /// Id of the first part.
        left: String,
        /// Id of the last.
        right: String,
    },
    /// A run could not be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Store(#[from] StoreError),
    /// There is no thread to read with.
    #[error("cannot start a thread: {0}")]
    #[diagnostic(help("raise the limit of processes: `ulimit -u`"))]
    Thread(#[source] std::io::Error),
    /// The user wanted an end.
    #[error("the merge was ended early; nothing is kept")]
    Stopped,
}

fn seconds(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1e9)
}

/// Numbers in a sentence, runs of them as `3 to 7`.
pub(super) fn numbers_in_words(numbers: &[u32]) -> String {
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match spans.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
            _ => spans.push((*number, *number)),
        }
    }
    let words = |(first, last): &(u32, u32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first} to {last}"),
    };
    spans.iter().map(words).collect::<Vec<_>>().join(", ")
}

impl MergeError {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        model::hint(self)
    }
}
