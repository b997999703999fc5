//! What is asked of a load on processors: which work, on which of them.

use std::fmt;
use std::str::FromStr;

use miette::Diagnostic;

use super::{ConfigError, one_ellipsis};
use crate::units::Bytes;
use crate::workload::HostKind;

/// Most processors that a load can be on: those that the kernel's own lists of this length hold.
pub const MAX_PROCESSORS: u32 = 1_024;

/// Kinds of work: `checksum,sort`, or a word for several: `processor` or `memory`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkList(pub Vec<HostKind>);

/// Which processors a load is on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ProcessorChoice {
    /// All that this process may use, at once.
    #[default]
    All,
    /// One after the other, a step each.
    Each,
    /// One hardware thread of each core, at once.
    Cores,
    /// So many, at once: threads of other cores before second threads of the same ones.
    Count(u32),
    /// These, at once.
    List(Vec<u32>),
}

/// What is wrong with a load on processors, as far as it shows without the machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum HostProblem {
    /// No kind of work has this name.
    #[error("`{text}` is not a kind of work")]
    #[diagnostic(help("write some of {}; or `processor` for the first five, or `memory`", HostKind::NAMES.join(", ")))]
    Work { text: String },
    /// A kind of work twice.
    #[error("`{}` is listed twice", kind.name())]
    #[diagnostic(help("name each kind once"))]
    WorkTwice { kind: HostKind },
    /// A text that says nothing about processors.
    #[error("`{text}` does not say which processors")]
    #[diagnostic(help(
        "write `all`, `each`, `cores`, a number of processors such as `4`, or a list of them such as `0,2-3` (of a \
         single one: `2-2`)"
    ))]
    Processors { text: String },
    /// Memory or a cache that nothing of what is asked for goes through.
    #[error("`{flag}` has no meaning for {}", WorkList(kinds.clone()))]
    #[diagnostic(help("{}", who_has(flag)))]
    NotFor { flag: &'static str, kinds: Vec<HostKind> },
    /// Memory or a cache that is too small for what goes through it.
    #[error("`{flag} {size}` is too small: {least} is the least")]
    #[diagnostic(help("give a larger one, or leave it out"))]
    TooSmall { flag: &'static str, size: Bytes, least: Bytes },
    /// A processor twice.
    #[error("CPU {number} is listed twice")]
    #[diagnostic(help("name each processor once"))]
    ProcessorTwice { number: u32 },
}

fn who_has(flag: &str) -> &'static str {
    match flag {
        "--size" => {
            "leave it out, or use `--work memory-copy`, `memory-triad` or `memory-latency`: the others go through a fixed \
             amount of memory"
        }
        _ => "leave it out, or use `--work logical-read`",
    }
}

impl FromStr for WorkList {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let mut kinds = Vec::new();
        for word in text.split(',').map(str::trim) {
            let named = match word {
                "processor" => HostKind::PROCESSOR.to_vec(),
                "memory" => vec![HostKind::MemoryCopy, HostKind::MemoryTriad, HostKind::MemoryLatency],
                word => {
                    let kind = HostKind::named(word).ok_or_else(|| HostProblem::Work { text: word.to_owned() });
                    vec![kind.map_err(ConfigError::Host)?]
                }
            };
            for kind in named {
                if kinds.contains(&kind) {
                    return Err(ConfigError::Host(HostProblem::WorkTwice { kind }));
                }
                kinds.push(kind);
            }
        }
        Ok(Self(kinds))
    }
}

impl fmt::Display for WorkList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|kind| kind.name()).collect();
        f.pad(&names.join(","))
    }
}

impl fmt::Display for ProcessorChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.pad("all"),
            Self::Each => f.pad("each"),
            Self::Cores => f.pad("cores"),
            Self::Count(count) => f.pad(&count.to_string()),
            // A bare number would be how many.
            Self::List(numbers) => match numbers.as_slice() {
                [only] => f.pad(&format!("{only}-{only}")),
                numbers => f.pad(&ranges(numbers)),
            },
        }
    }
}

crate::text::as_text!(ProcessorChoice, WorkList);

/// Numbers as the kernel writes them: `0-3,8`.
pub fn ranges(numbers: &[u32]) -> String {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let runs = sorted.chunk_by(|a, b| a + 1 == *b).filter_map(|run| Some((run.first()?, run.last()?)));
    let words = runs.map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") });
    words.collect::<Vec<_>>().join(",")
}

impl FromStr for ProcessorChoice {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let wrong = || ConfigError::Host(HostProblem::Processors { text: text.to_owned() });
        match text.trim() {
            "all" => return Ok(Self::All),
            "each" => return Ok(Self::Each),
            "cores" => return Ok(Self::Cores),
            _ => {}
        }
        let number = |word: &str| word.parse::<u32>().ok().filter(|number| *number < MAX_PROCESSORS);
        // A bare number is how many, never which one.
        if let Ok(count) = text.trim().parse::<u32>() {
            return if (1..=MAX_PROCESSORS).contains(&count) { Ok(Self::Count(count)) } else { Err(wrong()) };
        }
        let text = one_ellipsis(text).replace('…', "-");
        let mut found = Vec::new();
        for word in text.split(',') {
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            let (first, last) =
                number(first).zip(number(last)).filter(|(first, last)| first <= last).ok_or_else(wrong)?;
            for processor in first..=last {
                if found.contains(&processor) {
                    return Err(ConfigError::Host(HostProblem::ProcessorTwice { number: processor }));
                }
                found.push(processor);
            }
        }
        Ok(Self::List(found))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn work_is_named_by_kind_or_by_group() {
        let read =
            |text: &str| text.parse::<WorkList>().map(|list| list.to_string()).map_err(|error| error.to_string());
        assert_eq!(read("checksum, sort").as_deref(), Ok("checksum,sort"));
        assert_eq!(read("processor").as_deref(), Ok("logical-read,checksum,compare,sort,hash-join"));
        assert_eq!(read("memory,timer").as_deref(), Ok("memory-copy,memory-triad,memory-latency,timer"));
        assert_eq!(read("sort,processor").unwrap_err(), "`sort` is listed twice");
        assert_eq!(read("").unwrap_err(), "`` is not a kind of work");
        let hint = "fast".parse::<WorkList>().unwrap_err().hint().unwrap();
        assert!(hint.contains("memory-triad"), "{hint}");
    }

    #[test]
    fn processors_are_counted_or_listed() {
        let read = |text: &str| text.parse::<ProcessorChoice>();
        assert_eq!(read("all").unwrap(), ProcessorChoice::All);
        assert_eq!(read("each").unwrap(), ProcessorChoice::Each);
        assert_eq!(read("cores").unwrap(), ProcessorChoice::Cores);
        assert_eq!(read("4").unwrap(), ProcessorChoice::Count(4));
        for (text, list) in [("0,2-3", vec![0, 2, 3]), ("2-2", vec![2]), ("0..2, 7", vec![0, 1, 2, 7])] {
            let choice = read(text).unwrap();
            assert_eq!(choice, ProcessorChoice::List(list), "{text}");
            assert_eq!(read(&choice.to_string()).unwrap(), choice, "{choice}");
        }
        for text in ["0", "", "3-1", "1,x", "1,,2", "1,1", "99999", "0-4294967295", "-1"] {
            assert!(read(text).is_err_and(|error| error.hint().is_some()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics_on_any_text(text in "[0-9,.…-]*|.*") {
            let _ = (text.parse::<ProcessorChoice>(), text.parse::<WorkList>());
        }
    }
}
