//! Every option of ORION in one table: the parser and the help read it.

use std::fmt::Write as _;

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
pub(super) struct Row {
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
) -> Row {
    Row { option, name, value, meaning, runs }
}

/// All options, in the order of ORION's own help. `-duration` is one that ORION keeps for advanced runs; a shorter or a
/// longer point changes nothing in what is walked, so every run may have it here.
pub(super) const OPTIONS: [Row; 19] = [
    row(
        Opt::Run,
        "run",
        Some("simple|normal|advanced|oltp|dss"),
        EVERY_RUN,
        "what to walk; the only option that must be there. simple: small random requests alone, then large ones alone; \
         normal: all combinations; oltp: small alone, to the most IOPS; dss: large alone, to the most MBPS; \
         advanced: by the other options",
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
        "basic: small alone and large alone; detailed: all combinations; point: one; col: rising large load beside \
         `-num_small`; row: rising small load beside `-num_large`; max: all up to both (basic)",
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

impl Row {
    /// Whether a run of this kind takes the option.
    pub(super) fn goes_with(&self, run: RunName) -> bool {
        run == RunName::Advanced || self.runs.contains(&run)
    }
}

impl Opt {
    pub(super) fn row(self) -> &'static Row {
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
