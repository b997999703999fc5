//! From words to [`OrionOptions`].

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::option::{OPTIONS, Opt, RunName};
use super::problem::OrionProblem;
use super::{ArrayCache, ArrayLayout, LargePattern, Matrix, OrionCommand, OrionOptions, OrionVerbosity, RunType};
use crate::config::slob::MAX_SESSIONS;
use crate::config::slob_conf::is_plain_text;
use crate::config::{ConfigError, Origin};
use crate::units::{Bytes, Nanos};

const STORAX: [&str; 4] = ["skgfr", "oss", "asmlib", "odmlib"];

/// 32 MiB: more than any database asks for at once.
const LARGEST_REQUEST_KB: u64 = 32 << 10;
const LONGEST_POINT_SECONDS: u64 = 7 * 24 * 3_600;

/// Reads ORION's command line, without the name of the program. Values that are words may be in any case.
///
/// # Errors
///
/// [`ConfigError::Orion`] for a word that is no option, a value that is missing or out of range, an option that is there
/// twice, one that does not go with this `-run` or `-matrix`, and if there is no `-run`.
pub fn parse(words: &[String]) -> Result<OrionCommand, ConfigError> {
    Ok(command(words)?)
}

impl From<OrionProblem> for ConfigError {
    fn from(problem: OrionProblem) -> Self {
        Self::Orion(problem)
    }
}

fn command(words: &[String]) -> Result<OrionCommand, OrionProblem> {
    if words.iter().any(|word| word == "-help") {
        return Ok(OrionCommand::Help);
    }
    let given = Given::collect(words)?;
    let run = given.run()?;
    if let Some(row) = OPTIONS.iter().find(|row| given.values.contains_key(&row.option) && !row.goes_with(run)) {
        return Err(OrionProblem::NotForRun { option: row.name, run: run.name() });
    }
    let options = OrionOptions {
        run: match run {
            RunName::Simple => RunType::Simple,
            RunName::Normal => RunType::Normal,
            RunName::Oltp => RunType::Oltp,
            RunName::Dss => RunType::Dss,
            RunName::Advanced => RunType::Advanced(given.matrix()?),
        },
        testname: given.testname()?,
        num_disks: given.number(Opt::NumDisks, 1..=u64::from(MAX_SESSIONS), "a number of disks")?.map(narrow),
        size_small: given.kilobytes(Opt::SizeSmall)?.unwrap_or(Bytes::kib(8)),
        size_large: given.kilobytes(Opt::SizeLarge)?.unwrap_or(Bytes::kib(1_024)),
        pattern: given.pattern()?,
        write_pct: given.number(Opt::Write, 0..=100, "a percentage")?.map_or(0, |percent| percent as u8),
        layout: given.layout()?,
        cache: given.cache()?,
        duration: Nanos::seconds(
            given.number(Opt::Duration, 1..=LONGEST_POINT_SECONDS, "a number of seconds")?.unwrap_or(60),
        ),
        verbosity: if given.values.contains_key(&Opt::Verbose) {
            OrionVerbosity::EachPoint
        } else {
            OrionVerbosity::Usual
        },
        notes: given.notes()?,
    };
    Ok(OrionCommand::Run(options))
}

/// Every number of sessions, disks and streams is checked to be small.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).expect("the range that was checked lies within 32 bits")
}

/// The options as they were written.
struct Given<'a> {
    /// Options that take no value have an empty one.
    values: BTreeMap<Opt, &'a str>,
}

impl<'a> Given<'a> {
    fn collect(words: &'a [String]) -> Result<Self, OrionProblem> {
        let mut values = BTreeMap::new();
        let mut words = words.iter().map(String::as_str).peekable();
        while let Some(word) = words.next() {
            let row = row_of(word).ok_or_else(|| OrionProblem::UnknownOption { word: word.to_owned() })?;
            let value = match row.value {
                None => "",
                Some(_) => {
                    words.next_if(|next| row_of(next).is_none()).ok_or(OrionProblem::NoValue { option: row.name })?
                }
            };
            if values.insert(row.option, value).is_some() {
                return Err(OrionProblem::Twice { option: row.name });
            }
        }
        Ok(Self { values })
    }

    fn run(&self) -> Result<RunName, OrionProblem> {
        let word = self.values.get(&Opt::Run).ok_or(OrionProblem::NoRun)?;
        RunName::from_word(word)
            .ok_or_else(|| bad(Opt::Run, word, "one of `simple`, `normal`, `advanced`, `oltp` and `dss`"))
    }

    fn testname(&self) -> Result<String, OrionProblem> {
        let Some(name) = self.values.get(&Opt::Testname) else { return Ok("orion".to_owned()) };
        let is_name = !name.is_empty() && !name.ends_with('/') && is_plain_text(name);
        if is_name { Ok((*name).to_owned()) } else { Err(bad(Opt::Testname, name, "a name for files")) }
    }

    fn matrix(&self) -> Result<Matrix, OrionProblem> {
        let word = self.values.get(&Opt::Matrix).copied().unwrap_or("basic");
        let number = |option| self.number(option, 0..=u64::from(MAX_SESSIONS), "a number of requests");
        let (small, large) = (number(Opt::NumSmall)?.map(narrow), number(Opt::NumLarge)?.map(narrow));
        let word = word.to_ascii_lowercase();
        let (name, uses_small, uses_large) = match word.as_str() {
            "basic" => ("basic", false, false),
            "detailed" => ("detailed", false, false),
            "point" => ("point", true, true),
            "col" => ("col", true, false),
            "row" => ("row", false, true),
            "max" => ("max", true, true),
            _ => {
                let wanted = "one of `basic`, `detailed`, `point`, `col`, `row` and `max`";
                return Err(bad(Opt::Matrix, &word, wanted));
            }
        };
        for (option, uses, number) in [(Opt::NumSmall, uses_small, small), (Opt::NumLarge, uses_large, large)] {
            let option = option.name();
            match (uses, number) {
                (true, None) => return Err(OrionProblem::MatrixNeeds { matrix: name, option }),
                (false, Some(_)) => return Err(OrionProblem::MatrixVaries { matrix: name, option }),
                _ => {}
            }
        }
        Ok(match (name, small, large) {
            ("point" | "max", Some(0), Some(0)) => return Err(OrionProblem::NothingToDo { matrix: name }),
            ("point", Some(small), Some(large)) => Matrix::Point { small, large },
            ("max", Some(small), Some(large)) => Matrix::Max { small, large },
            ("col", Some(small), _) => Matrix::Col { small },
            ("row", _, Some(large)) => Matrix::Row { large },
            ("detailed", ..) => Matrix::Detailed,
            _ => Matrix::Basic,
        })
    }

    fn pattern(&self) -> Result<LargePattern, OrionProblem> {
        let requests_per_stream =
            self.number(Opt::NumStreamIo, 1..=u64::from(MAX_SESSIONS), "a number of requests")?.map_or(4, narrow);
        match self.word(Opt::Type).as_deref() {
            None | Some("rand") => Ok(LargePattern::Random),
            Some("seq") => Ok(LargePattern::Sequential { requests_per_stream }),
            Some(word) => Err(bad(Opt::Type, word, "`rand` or `seq`")),
        }
    }

    fn layout(&self) -> Result<ArrayLayout, OrionProblem> {
        let stripe = self.kilobytes(Opt::Stripe)?.unwrap_or(Bytes::kib(1_024));
        match self.word(Opt::Simulate).as_deref() {
            None | Some("concat") => Ok(ArrayLayout::Concat),
            Some("raid0") => Ok(ArrayLayout::Raid0 { stripe }),
            Some(word) => Err(bad(Opt::Simulate, word, "`concat` or `raid0`")),
        }
    }

    fn cache(&self) -> Result<ArrayCache, OrionProblem> {
        Ok(match self.number(Opt::CacheSize, 0..=u64::from(u32::MAX), "a number of megabytes")? {
            None => ArrayCache::NotEntered,
            Some(0) => ArrayCache::Absent,
            Some(megabytes) => ArrayCache::Size(Bytes::mib(megabytes)),
        })
    }

    fn notes(&self) -> Result<Vec<String>, OrionProblem> {
        let mut notes = Vec::new();
        if self.values.contains_key(&Opt::HugeNotNeeded) {
            notes.push("`-hugenotneeded` changes nothing: huge pages are never needed here".to_owned());
        }
        if let Some(word) = self.word(Opt::Storax) {
            if !STORAX.contains(&word.as_str()) {
                return Err(bad(Opt::Storax, &word, "one of `skgfr`, `oss`, `asmlib` and `odmlib`"));
            }
            notes.push(format!(
                "`-storax {word}` changes nothing: it names an I/O layer of Oracle's, none of which is used"
            ));
        }
        if self.values.contains_key(&Opt::Stripe) && self.word(Opt::Simulate).as_deref() != Some("raid0") {
            notes.push("`-stripe` changes nothing without `-simulate raid0`".to_owned());
        }
        if self.values.contains_key(&Opt::NumStreamIo) && self.word(Opt::Type).as_deref() != Some("seq") {
            notes.push("`-num_streamIO` changes nothing without `-type seq`".to_owned());
        }
        Ok(notes)
    }

    fn word(&self, option: Opt) -> Option<String> {
        self.values.get(&option).map(|word| word.to_ascii_lowercase())
    }

    fn kilobytes(&self, option: Opt) -> Result<Option<Bytes>, OrionProblem> {
        Ok(self.number(option, 1..=LARGEST_REQUEST_KB, "a number of kilobytes")?.map(Bytes::kib))
    }

    fn number(&self, option: Opt, range: RangeInclusive<u64>, what: &'static str) -> Result<Option<u64>, OrionProblem> {
        let Some(text) = self.values.get(&option) else { return Ok(None) };
        let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match text.parse() {
            Ok(number) if is_number && range.contains(&number) => Ok(Some(number)),
            _ => Err(bad(option, text, &format!("{what} from {} to {}", range.start(), range.end()))),
        }
    }
}

fn row_of(word: &str) -> Option<&'static super::option::Row> {
    let name = word.strip_prefix('-')?;
    OPTIONS.iter().find(|row| row.name == name)
}

fn bad(option: Opt, value: &str, wanted: &str) -> OrionProblem {
    OrionProblem::BadValue { option: option.name(), value: value.to_owned(), wanted: wanted.to_owned() }
}

/// Where a line of the list stands.
pub(super) fn line_of(file: &str, index: usize) -> Origin {
    Origin::File { file: file.to_owned(), line: index + 1 }
}
