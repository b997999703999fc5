//! From words to [`OrionOptions`].

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io;
use std::io::ErrorKind;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use miette::Diagnostic;

use super::{ArrayCache, ArrayLayout, LargePattern, Matrix, OrionCommand, OrionOptions, OrionVerbosity, RunType};
use crate::config::slob::MAX_SESSIONS;
use crate::config::slob_conf::is_plain_text;
use crate::config::{ConfigError, Origin};
use crate::plain::{self, Links};
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

fn row_of(word: &str) -> Option<&'static OptionRow> {
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

/// An option of ORION.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Opt {
    Run,
    Testname,
    NumDisks,
    SizeSmall,
    SizeLarge,
    Type,
    NumStreamIo,
    Write,
    Simulate,
    Stripe,
    CacheSize,
    Duration,
    Matrix,
    NumSmall,
    NumLarge,
    Verbose,
    HugeNotNeeded,
    Storax,
    Help,
}

/// A kind of run as it was named, still without its matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunName {
    Simple,
    Normal,
    Oltp,
    Dss,
    Advanced,
}

/// What the option table says of one option.
pub(super) struct OptionRow {
    pub(super) option: Opt,
    /// Name without the dash.
    pub(super) name: &'static str,
    /// What stands for the value in the help; absent if the option takes none.
    pub(super) value: Option<&'static str>,
    pub(super) meaning: &'static str,
    /// Runs that take it; an advanced run takes everything.
    runs: &'static [RunName],
}

const EVERY_RUN: &[RunName] = &[RunName::Simple, RunName::Normal, RunName::Oltp, RunName::Dss];

const fn row(
    option: Opt,
    name: &'static str,
    value: Option<&'static str>,
    runs: &'static [RunName],
    meaning: &'static str,
) -> OptionRow {
    OptionRow { option, name, value, meaning, runs }
}

/// All options, in the order of ORION's own help. `-duration` is one that ORION keeps for advanced runs; a shorter or a
/// longer point changes nothing in what is walked, so every run may have it here.
pub(super) const OPTIONS: [OptionRow; 19] = [
    row(
        Opt::Run,
        "run",
        Some("simple|normal|advanced|oltp|dss"),
        EVERY_RUN,
        "what to measure, required. simple: small random requests alone, then large ones alone. normal: all \
        combinations. oltp: small alone, up to the most IOPS. dss: large alone, up to the most MBPS. advanced: by \
        the other options",
    ),
    row(
        Opt::Testname,
        "testname",
        Some("NAME"),
        EVERY_RUN,
        "devices or files stand one a line in NAME.lun; output begins with NAME (orion)",
    ),
    row(Opt::NumDisks, "num_disks", Some("N"), EVERY_RUN, "spindles: how far the load rises (devices in NAME.lun)"),
    row(Opt::SizeSmall, "size_small", Some("KB"), &[RunName::Oltp], "size of a small request (8)"),
    row(Opt::SizeLarge, "size_large", Some("KB"), &[RunName::Dss], "size of a large request (1024)"),
    row(Opt::Type, "type", Some("rand|seq"), &[], "large requests at random, or in sequential streams (rand)"),
    row(Opt::NumStreamIo, "num_streamIO", Some("N"), &[], "requests outstanding in each sequential stream (4)"),
    row(
        Opt::Write,
        "write",
        Some("PERCENT"),
        &[RunName::Oltp, RunName::Dss],
        "requests that write (0); destroys what the devices hold",
    ),
    row(Opt::Simulate, "simulate", Some("concat|raid0"), &[], "how devices make one volume (concat)"),
    row(Opt::Stripe, "stripe", Some("KB"), &[], "stripe of `-simulate raid0` (1024)"),
    row(
        Opt::CacheSize,
        "cache_size",
        Some("MB"),
        EVERY_RUN,
        "cache of the array, filled with unmeasured requests before each large sequential point; 0: not at all \
         (two minutes of them)",
    ),
    row(Opt::Duration, "duration", Some("SECONDS"), EVERY_RUN, "length of each point (60)"),
    row(
        Opt::Matrix,
        "matrix",
        Some("basic|detailed|point|col|row|max"),
        &[],
        "basic: small alone and large alone. detailed: all combinations. point: one. col: rising large load with \
        `-num_small`. row: rising small load with `-num_large`. max: all up to both (basic)",
    ),
    row(Opt::NumSmall, "num_small", Some("N"), &[], "small requests outstanding, for point, col and max"),
    row(
        Opt::NumLarge,
        "num_large",
        Some("N"),
        &[],
        "large requests outstanding, or streams with `-type seq`, for point, row and max",
    ),
    row(Opt::Verbose, "verbose", None, EVERY_RUN, "show each point's result as it ends"),
    row(
        Opt::HugeNotNeeded,
        "hugenotneeded",
        None,
        EVERY_RUN,
        "accepted; ORION wants huge pages unless it is given, Plimsoll never does",
    ),
    row(
        Opt::Storax,
        "storax",
        Some("skgfr|oss|asmlib|odmlib"),
        EVERY_RUN,
        "accepted; names one of Oracle's I/O layers, in whose place Plimsoll has its own",
    ),
    row(Opt::Help, "help", None, EVERY_RUN, "this text"),
];

impl OptionRow {
    /// Whether a run of this kind takes the option.
    pub(super) fn goes_with(&self, run: RunName) -> bool {
        run == RunName::Advanced || self.runs.contains(&run)
    }
}

impl Opt {
    pub(super) fn row(self) -> &'static OptionRow {
        OPTIONS.iter().find(|row| row.option == self).expect("every option has its row, which a test holds")
    }

    pub(super) fn name(self) -> &'static str {
        self.row().name
    }
}

impl RunName {
    pub(super) fn from_word(word: &str) -> Option<Self> {
        [Self::Simple, Self::Normal, Self::Oltp, Self::Dss, Self::Advanced]
            .into_iter()
            .find(|run| run.name().eq_ignore_ascii_case(word))
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Normal => "normal",
            Self::Oltp => "oltp",
            Self::Dss => "dss",
            Self::Advanced => "advanced",
        }
    }
}

/// The options as `-help` lists them: one paragraph each, defaults in parentheses.
pub fn help_text() -> String {
    let mut text = String::new();
    for row in &OPTIONS {
        let value = row.value.map(|value| format!(" {value}")).unwrap_or_default();
        writeln!(text, "-{}{value}\n    {}", row.name, row.meaning).expect("memory takes every write");
    }
    text
}

/// Why ORION's words cannot be followed.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum OrionProblem {
    /// A word where an option should stand.
    #[error("ORION has no option `{word}`")]
    #[diagnostic(help("{}", hint_for_unknown(word)))]
    UnknownOption { word: String },
    /// An option at the end, or before another one, that should have a value.
    #[error("`-{option}` has no value")]
    #[diagnostic(help("{}", meaning_of(option)))]
    NoValue { option: &'static str },
    /// An option that is there twice.
    #[error("`-{option}` is given twice")]
    #[diagnostic(help("{}", meaning_of(option)))]
    Twice { option: &'static str },
    /// A value that its option does not accept.
    #[error("`-{option} {value}` is not {wanted}")]
    #[diagnostic(help("{}", meaning_of(option)))]
    BadValue { option: &'static str, value: String, wanted: String },
    /// No `-run`.
    #[error("`-run` is missing, so there is nothing to walk")]
    #[diagnostic(help("write `-run simple` for a first look, or `-help` for all that there is"))]
    NoRun,
    /// An option that belongs to another kind of run.
    #[error("`-{option}` does not go with `-run {run}`, which sets it by itself")]
    #[diagnostic(help("leave it out, or write `-run advanced {}` and every option is free", same_as(run)))]
    NotForRun { option: &'static str, run: &'static str },
    /// A number that this part of the matrix needs.
    #[error("`-matrix {matrix}` needs `-{option}`")]
    #[diagnostic(help("{}", meaning_of(option)))]
    MatrixNeeds { matrix: &'static str, option: &'static str },
    /// A number that this part of the matrix has no use for.
    #[error("`-{option}` does not go with `-matrix {matrix}`, which varies it")]
    #[diagnostic(help("leave it out, or write `-matrix max` for all up to both numbers"))]
    MatrixVaries { matrix: &'static str, option: &'static str },
    /// A matrix of the one point at which nothing happens.
    #[error("`-matrix {matrix}` with `-num_small 0` and `-num_large 0` asks for no load at all")]
    #[diagnostic(help("give one of them a number from 1 on"))]
    NothingToDo { matrix: &'static str },
    /// The list of devices is not there.
    #[error("there is no `{}`, which lists the devices to load", path.display())]
    #[diagnostic(help("{}", hint_for_missing(path)))]
    NoLunFile { path: PathBuf },
    /// The list of devices cannot be read.
    #[error("cannot read the list of devices `{}`: {reason}", path.display())]
    #[diagnostic(help("look at its permissions; it is a text file"))]
    LunFileUnreadable { path: PathBuf, reason: io::Error },
    /// The list of devices is far too long to be one.
    #[error("`{}` is not a list of devices: it is larger than {limit}", path.display())]
    #[diagnostic(help("{WHAT_A_LIST_HOLDS}"))]
    LunFileTooLarge { path: PathBuf, limit: crate::units::Bytes },
    /// A list without a device.
    #[error("`{}` lists no device", path.display())]
    #[diagnostic(help("{WHAT_A_LIST_HOLDS}"))]
    NoLuns { path: PathBuf },
    /// A device that is listed twice, and would be loaded twice.
    #[error("{origin}: `{lun}` is listed twice, first in line {first_line}")]
    #[diagnostic(help("list each device once: it would get twice the load of the others"))]
    LunTwice { origin: Origin, lun: String, first_line: usize },
    /// Bytes that are no text.
    #[error("{origin}: the line holds a character that is not printable text")]
    #[diagnostic(help("save the list as UTF-8 text and type the line again"))]
    LunUnprintable { origin: Origin },
}

const WHAT_A_LIST_HOLDS: &str =
    "write into it one device or file a line, with its full path such as `/dev/mapper/data1`";

fn same_as(run: &str) -> &'static str {
    match run {
        "normal" => "-matrix detailed",
        "oltp" => "-matrix row -num_large 0",
        "dss" => "-matrix col -num_small 0",
        _ => "-matrix basic",
    }
}

fn hint_for_missing(list: &Path) -> String {
    match list.to_string_lossy().strip_suffix(".lun.lun") {
        Some(name) => format!("`-testname` is the name without its ending: write `-testname {name}`"),
        None => WHAT_A_LIST_HOLDS.to_owned(),
    }
}

fn meaning_of(option: &str) -> String {
    OPTIONS
        .iter()
        .find(|row| row.name == option)
        .map(|row| match row.value {
            Some(value) => format!("`-{option} {value}`: {}", row.meaning),
            None => format!("`-{option}`: {}", row.meaning),
        })
        .expect("only names of the table are reported")
}

fn hint_for_unknown(word: &str) -> String {
    // Pages on the web print a dash longer than the one that is typed.
    if let Some(bare) = word.strip_prefix(['\u{2010}', '\u{2011}', '\u{2012}', '\u{2013}', '\u{2014}', '\u{2212}']) {
        return format!("it begins with a long dash: type `-{bare}`");
    }
    let bare = word.trim_start_matches('-');
    let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
    if let Some(row) = OPTIONS.iter().find(|row| plain(row.name) == plain(bare)) {
        return format!("did you mean `-{}`? ORION's options have one dash and these very letters", row.name);
    }
    if word.starts_with("--") {
        return "ORION's options have one dash; options of Plimsoll's own stand before the first of them".to_owned();
    }
    "`-help` lists the options".to_owned()
}

/// Such lists have some lines; what is far larger is something else, such as the device itself.
const LARGEST_FILE: Bytes = Bytes::mib(1);

/// The devices and files of one test, in the order of its list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LunFile {
    /// The list.
    pub path: PathBuf,
    /// Devices and files: at least one, none twice. Whether they exist is not looked at.
    pub luns: Vec<PathBuf>,
    /// What the user should know: lines that ORION itself would not tolerate.
    pub notes: Vec<String>,
}

/// The list of the test that `testname` means: `TESTNAME.lun`.
pub fn lun_file(testname: &str) -> PathBuf {
    PathBuf::from(format!("{testname}.lun"))
}

/// Reads the list of the test that `testname` means.
///
/// # Errors
///
/// [`ConfigError::Orion`] if it is not there, cannot be read, or as [`LunFile::parse`].
pub fn read_luns(testname: &str) -> Result<LunFile, ConfigError> {
    let path = lun_file(testname);
    let unreadable = |reason: std::io::Error| match reason.kind() {
        ErrorKind::NotFound => OrionProblem::NoLunFile { path: path.clone() },
        ErrorKind::FileTooLarge => OrionProblem::LunFileTooLarge { path: path.clone(), limit: LARGEST_FILE },
        _ => OrionProblem::LunFileUnreadable { path: path.clone(), reason },
    };
    let bytes = plain::read(&path, Links::Followed, LARGEST_FILE).map_err(unreadable)?;
    LunFile::parse(&String::from_utf8_lossy(&bytes), &path)
}

impl LunFile {
    /// Reads the text of a list: one path a line, blanks around it taken off. Blank lines and lines that begin with `#` are
    /// passed over with a note, since ORION takes every line for a path.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Orion`] if a path is there twice or is not printable text, or if there is none.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut luns = Vec::new();
        let mut lines: HashMap<&str, usize> = HashMap::new();
        let (mut blank, mut comments) = (0_usize, 0_usize);
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() {
                blank += 1;
            } else if line.starts_with('#') {
                comments += 1;
            } else if !is_plain_text(line) {
                return Err(OrionProblem::LunUnprintable { origin: line_of(&file, index) }.into());
            } else if let Some(first) = lines.insert(line, index) {
                let (origin, first_line) = (line_of(&file, index), first + 1);
                return Err(OrionProblem::LunTwice { origin, lun: line.to_owned(), first_line }.into());
            } else {
                luns.push(PathBuf::from(line));
            }
        }
        if luns.is_empty() {
            return Err(OrionProblem::NoLuns { path: path.to_owned() }.into());
        }
        let mut notes = Vec::new();
        for (count, kind) in [(blank, "blank"), (comments, "comment")] {
            if count > 0 {
                let lines = if count == 1 { "line" } else { "lines" };
                notes.push(format!("`{file}`: {count} {kind} {lines} passed over; ORION itself wants paths only"));
            }
        }
        Ok(Self { path: path.to_owned(), luns, notes })
    }
}
