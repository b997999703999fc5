//! Flags that several commands share, and what they mean together.

use super::fresh_seed;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, ValueEnum};

use super::exit::Failure;
use super::live::Verbosity;
use super::say;
use model::config::io::read_rate;
use model::config::{
    Assignment, ConfigError, Key, MAX_SESSIONS, Setting, SlobParameters, Tag, TargetAddress, slob_conf,
};
use model::record::Run;
use model::record::store::{self, Store};
use model::units::{Nanos, UnitError};
use push::{Destinations, Push, PushError};
use targets::block::safety::Permission;
use targets::io::IoEngine;

/// The seed of a load.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct SeedArg {
    /// Seed of every random choice [default: a new one, which is printed]
    ///
    /// The same seed gives the same load.
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Load")]
    seed: Option<u64>,
}

impl SeedArg {
    /// The one on the command line.
    pub(super) fn given(self) -> Option<u64> {
        self.seed
    }

    /// The same, or else a fresh one.
    pub(super) fn or_fresh(self) -> u64 {
        self.seed.unwrap_or_else(fresh_seed)
    }
}

/// Where load lands.
#[derive(Debug, Args)]
pub(super) struct TargetArgs {
    /// Where the data is: `dir:PATH`, private PostgreSQL `pg:DIR`, or `postgres://USER@HOST/DATABASE`
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "PLIMSOLL_TARGET",
        hide_env_values = true,
        default_value = "dir:./plimsoll-data",
        help_heading = "Target"
    )]
    target: TargetAddress,
}

impl TargetArgs {
    pub(super) fn address(&self) -> &TargetAddress {
        &self.target
    }
}

/// Where runs are kept.
#[derive(Debug, Clone, Args)]
pub(super) struct RunsArgs {
    /// Directory where runs are stored
    #[arg(
        long,
        value_name = "DIR",
        env = "PLIMSOLL_RUNS",
        hide_env_values = true,
        default_value = "./plimsoll-runs",
        help_heading = "Output"
    )]
    runs: PathBuf,
}

impl RunsArgs {
    pub(super) fn store(&self) -> Store {
        Store::new(&self.runs)
    }
}

/// Runs that were chosen so far. Each can be taken once; that its directory is another one is what makes it another run, since
/// two machines may give one id in the same second.
#[derive(Debug, Default)]
pub(super) struct Taken(Vec<PathBuf>);

impl Taken {
    /// Reads the one run that a word means, and says where it is kept.
    pub(super) fn load(&mut self, store: &Store, word: &str) -> Result<(PathBuf, Run), Failure> {
        self.take(word, &store.find(word)?)
    }

    /// Reads every run that a word means. None of them may have been taken.
    pub(super) fn load_each(&mut self, store: &Store, word: &str) -> Result<Vec<(PathBuf, Run)>, Failure> {
        store.find_all(word)?.iter().map(|found| self.take(word, found)).collect()
    }

    /// Reads every run that any of the words means, or all that are kept where there is no word. What is one of several that a
    /// word means may have been taken already.
    pub(super) fn load_all(&mut self, store: &Store, words: &[String]) -> Result<Vec<(PathBuf, Run)>, Failure> {
        let mut loaded = Vec::new();
        for word in words {
            let found = store.find_all(word)?;
            let fresh = found.iter().filter(|found| !self.0.contains(&place(found)));
            let fresh: Vec<_> = if found.len() == 1 { found.iter().collect() } else { fresh.collect() };
            for found in fresh {
                loaded.push(self.take(word, found)?);
            }
        }
        if !words.is_empty() {
            return Ok(loaded);
        }
        let (runs, problems) = store.list();
        problems.iter().for_each(say::note);
        if runs.is_empty() {
            let failure = Failure::new(format_args!("there are no runs in `{}`", store.path().display()));
            return Err(failure.with_hint("name the directory that they are kept in: `--runs DIR`".to_owned()));
        }
        runs.iter().map(|run| self.take(&run.id, &run.path)).collect()
    }

    fn take(&mut self, word: &str, found: &Path) -> Result<(PathBuf, Run), Failure> {
        let run = store::load(found)?;
        let place = place(found);
        if self.0.contains(&place) {
            let failure = Failure::new(format_args!("run `{}` is named twice: `{word}` is it again", run.id));
            return Err(failure.with_hint("name each run once".to_owned()));
        }
        self.0.push(place.clone());
        Ok((place, run))
    }
}

/// Where a run is kept, by whatever path it was found.
fn place(found: &Path) -> PathBuf {
    found.canonicalize().unwrap_or_else(|_| found.to_owned())
}

/// SLOB's parameters and schemas.
#[derive(Debug, Args)]
pub(super) struct ParameterArgs {
    /// Number of schemas, and parameters as KEY=VALUE, which override the file
    #[arg(value_name = "N | KEY=VALUE")]
    words: Vec<Assignment>,

    /// Read parameters from a slob.conf, without executing it
    #[arg(short, long, value_name = "FILE", help_heading = "Load")]
    conf: Option<PathBuf>,

    /// Number of schemas, the same as a bare number
    #[arg(
        short,
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SESSIONS)),
        help_heading = "Load"
    )]
    schemas: Option<u32>,
}

/// What the parameters came to.
#[derive(Debug)]
pub(super) struct SlobSettings {
    /// Settings in rising order of precedence.
    pub(super) settings: Vec<Setting>,
    /// Schemas, if a number was given.
    pub(super) schemas: Option<u32>,
}

impl ParameterArgs {
    /// Reads the file, if one is named, and puts the words after it.
    pub(super) fn read(&self) -> Result<SlobSettings, Failure> {
        let mut settings = match &self.conf {
            Some(path) => slob_conf::read(path)?,
            None => Vec::new(),
        };
        let mut schemas = self.schemas.map(|schemas| (schemas, format!("-s {schemas}")));
        for word in &self.words {
            match word {
                Assignment::Set(setting) => settings.push(setting.clone()),
                Assignment::Schemas(number) => {
                    if let Some((_, earlier)) = &schemas {
                        let failure = Failure::new(format_args!(
                            "the number of schemas is given twice: `{earlier}` and `{number}`"
                        ));
                        return Err(failure.with_hint("`-t N` gives threads for each schema".to_owned()));
                    }
                    schemas = Some((*number, number.to_string()));
                }
            }
        }
        Ok(SlobSettings { settings, schemas: schemas.map(|(number, _)| number) })
    }
}

impl SlobSettings {
    /// Adds what a flag of its own says about a parameter.
    pub(super) fn set(&mut self, key: Key, value: impl fmt::Display) {
        self.settings.push(Setting::from_command_line(key, value.to_string()));
    }

    /// All of them, typed and checked.
    pub(super) fn parameters(&self) -> Result<SlobParameters, ConfigError> {
        SlobParameters::from_settings(&self.settings)
    }
}

/// How progress is shown.
#[derive(Debug, Clone, Args)]
pub(super) struct ProgressArgs {
    /// Show no progress
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
}

impl ProgressArgs {
    pub(super) fn verbosity(&self) -> Verbosity {
        if self.quiet { Verbosity::Quiet } else { Verbosity::Normal }
    }
}

/// How data are reported.
#[derive(Debug, Clone, Args)]
pub(super) struct FormatArgs {
    /// Write JSON instead of text
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// What the output is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// Words and tables, for a person.
    Text,
    /// One JSON document, for another program.
    Json,
}

impl FormatArgs {
    pub(super) fn format(&self) -> Format {
        if self.json { Format::Json } else { Format::Text }
    }
}

/// What may be overwritten.
#[derive(Debug, Clone, Args)]
pub(super) struct PermissionArgs {
    /// Allow overwriting this device or file, which Plimsoll did not create: type its name to confirm
    #[arg(long, value_name = "NAME", help_heading = "Storage")]
    destroy: Vec<String>,

    /// Also allow overwriting an unused file system, partition table, database, image or archive
    #[arg(long, requires = "destroy", help_heading = "Storage")]
    destroy_signature: bool,
}

impl PermissionArgs {
    pub(super) fn permission(&self) -> Permission {
        Permission { destroy: self.destroy.clone(), destroy_signature: self.destroy_signature }
    }
}

/// How requests reach the kernel.
#[derive(Debug, Args)]
pub(super) struct IoArgs {
    /// How requests reach the kernel
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t, help_heading = "Target")]
    io_engine: IoChoice,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum IoChoice {
    /// io_uring where it is allowed, else psync
    #[default]
    Auto,
    /// io_uring
    IoUring,
    /// pread and pwrite, one thread for each outstanding request
    Psync,
}

impl IoArgs {
    /// The engine asked for; `None` for the best that works.
    pub(super) fn engine(&self) -> Option<IoEngine> {
        match self.io_engine {
            IoChoice::Auto => None,
            IoChoice::IoUring => Some(IoEngine::Uring),
            IoChoice::Psync => Some(IoEngine::Psync),
        }
    }
}

/// How the run is kept and reported.
#[derive(Debug, Clone, Args)]
pub(super) struct KeepingArgs {
    /// Tag that says what varies between runs, such as `vm=d8s` (repeatable)
    #[arg(long = "tag", value_name = "KEY=VALUE", help_heading = "Output")]
    pub(super) tags: Vec<Tag>,

    #[command(flatten)]
    pub(super) runs: RunsArgs,

    #[command(flatten)]
    pub(super) format: FormatArgs,

    #[command(flatten)]
    pub(super) progress: ProgressArgs,

    #[command(flatten)]
    pub(super) push: PushArgs,

    /// Time to wait after the window for outstanding operations, whose times still count
    #[arg(long, value_name = "TIME", default_value = "30s", allow_hyphen_values = true, help_heading = "Load")]
    pub(super) drain: Seconds,

    /// Print what would be done, and exit
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    pub(super) dry_run: bool,
}

/// Where the run is sent while it goes on.
#[derive(Debug, Clone, Args)]
pub(super) struct PushArgs {
    /// Send metrics and spans by OTLP over HTTP [default URL: as OTEL_EXPORTER_OTLP_* say]
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "", help_heading = "Output")]
    otlp: Option<String>,

    /// Send metrics to a receiver of Prometheus remote write
    #[arg(long, value_name = "URL", help_heading = "Output")]
    remote_write: Option<String>,
}

impl PushArgs {
    /// What they and the environment say. Text that is not UTF-8 is not lost, so that it is refused.
    fn destinations(&self) -> Result<Destinations, PushError> {
        let variable = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        Destinations::of(self.otlp.as_deref(), self.remote_write.as_deref(), &variable)
    }

    /// The addresses, if all that they name can be used. To be asked before anything is opened or made.
    pub(super) fn check(&self) -> Result<Vec<String>, PushError> {
        self.destinations()?.check()
    }

    /// Begins to send a run, if it is to be sent anywhere.
    pub(super) fn begin(&self, run: &Run, is_simulated: bool) -> Result<Option<Push>, PushError> {
        let to = self.destinations()?;
        (!to.is_empty()).then(|| Push::begin(&to, run, is_simulated)).transpose()
    }

    /// The same flags for another process.
    pub(super) fn flags(&self) -> Vec<String> {
        let otlp =
            self.otlp.as_ref().map(|url| if url.is_empty() { "--otlp".to_owned() } else { format!("--otlp={url}") });
        otlp.into_iter().chain(self.remote_write.iter().map(|url| format!("--remote-write={url}"))).collect()
    }
}

/// Operations per second over all sessions: `5000`, `5k` or `5000/s`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rate(pub(super) f64);

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        read_rate(text).map(Self).ok_or_else(|| RateError { text: text.to_owned() })
    }
}

/// A text that is no rate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a rate such as `5000`, `20k` or `2.5k/s`, from 0.001 to 1000000000")]
pub(super) struct RateError {
    text: String,
}

/// A duration in seconds, or with a unit: `30`, `2h`, `500ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seconds(pub(super) Nanos);

impl FromStr for Seconds {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let bare = text.trim().chars().all(|c| c.is_ascii_digit() || c == '.');
        if bare { format!("{}s", text.trim()).parse().map(Self) } else { text.parse().map(Self) }
    }
}

/// When a load is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Measured {
    /// Load before the measured window.
    pub(super) warmup: Nanos,
    /// Length of the measured window.
    pub(super) duration: Nanos,
}

/// What follows the flags in the help of a command that takes parameters.
pub(super) fn with_parameters(examples: &str) -> String {
    format!(
        "{examples}\n\nParameters (KEY=VALUE, with their defaults):\n{}\n\nSizes take K, M, G and T; durations ms, s, m and h. In \
         a run, a SCALE that is not given is all that was set up. SLOB's connection parameters are accepted and have \
         no effect here.",
        super::help::hanging(&model::config::help_text())
    )
}

/// The arguments of a command as these words give them.
#[cfg(test)]
pub(super) fn parsed<A: Args>(words: &[&str]) -> A {
    #[derive(clap::Parser)]
    struct Line<A: Args> {
        #[command(flatten)]
        arguments: A,
    }
    <Line<A> as clap::Parser>::try_parse_from(std::iter::once(&"plimsoll").chain(words)).unwrap().arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_number_is_seconds() {
        for (text, ns) in
            [("30", 30_000_000_000), ("0.5", 500_000_000), ("2h", 7_200_000_000_000), ("20 ms", 20_000_000)]
        {
            assert_eq!(text.parse(), Ok(Seconds(Nanos(ns))), "{text}");
        }
        for text in ["", "-1", "fast", "1.2.3"] {
            assert!(text.parse::<Seconds>().is_err(), "{text}");
        }
    }

    #[test]
    fn rates_are_read_with_and_without_their_unit() {
        assert_eq!("5000".parse(), Ok(Rate(5_000.0)));
        assert_eq!("2.5 /s".parse(), Ok(Rate(2.5)));
        assert_eq!("2.5k/s".parse(), Ok(Rate(2_500.0)));
        for text in ["", "/s", "0", "-1", "inf", "NaN", "5/m", "1e-300", "1e12"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }
}
