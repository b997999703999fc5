//! Options that `run`, `sweep` and `map` share.

use std::path::PathBuf;
use std::str::FromStr;

use crate::cli::arguments::{IoArgs, KeepingArgs, ParameterArgs, Rate, Seconds, SeedArg, SlobSettings, TargetArgs};
use clap::Args;

use super::arguments::{LedgerArgs, SendArgs};
use crate::cli::exit::Failure;
use crate::cli::fleet::FleetArgs;
use crate::cli::like::refuse;
use crate::cli::limits::LimitArgs;
use crate::cli::servers::{DEFAULT_CACHE, ServerArgs, processors_for_sessions};
use crate::plan::slob::SlobPlanRequest;
use load::Pace;
use model::config::{Axes, Key, Origin, TargetAddress};
use model::units::{Bytes, Nanos};
use model::workload::Arrival;
use targets::OwnReportKind;
use targets::block::safety::Permission;
use targets::database::{Commits, DatabaseOptions, Sending};
use targets::embedded::FlashOptions;

/// How load is put on, and how it is reported.
#[derive(Debug, Args)]
pub(super) struct LoadArgs {
    #[command(flatten)]
    pub(super) put: PutArgs,

    /// Start operations at this rate, whether or not earlier ones are done (open loop)
    ///
    /// The rate is that of all sessions together.
    #[arg(long, value_name = "N[/s]", allow_hyphen_values = true, help_heading = "Load")]
    rate: Option<Rate>,

    /// Arrivals at a fixed rate (open loop): poisson or fixed
    #[arg(long, value_name = "HOW", default_value_t, requires = "rate", help_heading = "Load")]
    arrival: Arrival,

    #[command(flatten)]
    pub(super) fleet: FleetArgs,

    #[command(flatten)]
    own_report: OwnReportArgs,

    #[command(flatten)]
    pub(super) limits: LimitArgs,

    #[command(flatten)]
    pub(super) keeping: KeepingArgs,
}

/// What operations are, and how they reach the target.
#[derive(Debug, Args)]
pub(super) struct PutArgs {
    #[command(flatten)]
    parameters: ParameterArgs,

    /// Length of each measured window, in seconds or with a unit
    ///
    /// It is the same as RUN_TIME.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Load")]
    duration: Option<Seconds>,

    /// Load before each measured window, recorded and marked [default: a fifth of RUN_TIME, up to 10 s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Load")]
    warmup: Option<Nanos>,

    #[command(flatten)]
    pub(super) seed: SeedArg,

    /// Threads that drive the sessions [default: one per CPU, with a private server a quarter of them]
    ///
    /// With several parts, this is the number in each part.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096), help_heading = "Load")]
    lanes: Option<u32>,

    #[command(flatten)]
    target: TargetArgs,

    /// Buffer cache size of the embedded engine [default: 64M]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = "Target")]
    cache: Option<Bytes>,

    #[command(flatten)]
    flash: FlashArgs,

    #[command(flatten)]
    ledger: LedgerArgs,

    #[command(flatten)]
    io: IoArgs,

    #[command(flatten)]
    server: ServerArgs,

    #[command(flatten)]
    sending: SendArgs,
}

impl LoadArgs {
    /// How the target is reached and used.
    ///
    /// # Errors
    /// When something was said that means nothing for the target: whoever said it expects an effect.
    pub(super) fn options(&self) -> Result<DatabaseOptions, Failure> {
        let options = self.put.options(self.rate.is_some())?;
        self.own_report.add_to(options, self.put.address())
    }

    /// The same for a load at rates of its own.
    pub(super) fn open_options(&self) -> Result<DatabaseOptions, Failure> {
        refuse(self.rate.map(|_| "--rate"))?;
        Ok(DatabaseOptions { is_open_loop: true, ..self.options()? })
    }

    /// What is asked for. `threads` is what a flag of its own says about `THREADS_PER_SCHEMA`.
    pub(super) fn request(&self, threads: Option<u32>, axes: Axes) -> Result<SlobPlanRequest, Failure> {
        let arrival = self.arrival;
        let pace = self.rate.map_or(Pace::Closed, |Rate(rate_per_s)| Pace::Open { rate_per_s, arrival });
        let request = self.put.request(threads, axes, pace)?;
        Ok(SlobPlanRequest { tags: self.keeping.tags.clone(), ..request })
    }
}

impl PutArgs {
    pub(super) fn address(&self) -> &TargetAddress {
        self.target.address()
    }

    /// How the target is reached and used.
    ///
    /// # Errors
    /// When something was said that means nothing for the target.
    pub(super) fn options(&self, is_open_loop: bool) -> Result<DatabaseOptions, Failure> {
        let address = self.address();
        let given = [("--cache", self.cache.is_some()), ("--io-engine", self.io.engine().is_some())];
        let misplaced = given.into_iter().find(|(_, given)| *given && address.is_server());
        let flash = self.flash.options(address)?;
        let options = self.sending.add_to(self.server.options(address)?, address)?;
        if let Some((flag, _)) = misplaced {
            let failure = Failure::new(format_args!("`{flag}` is for the embedded engine, not for `{address}`"));
            return Err(failure.with_hint("leave it out; the cache of a private server is `--db-cache`".to_owned()));
        }
        Ok(DatabaseOptions {
            io_engine: self.io.engine(),
            cache: self.cache.unwrap_or(DEFAULT_CACHE),
            flash,
            ledger: self.ledger.directory(address)?,
            is_open_loop,
            ..options
        })
    }

    /// Whether the engine's buffer cache is to have a second level.
    pub(super) fn has_flash(&self) -> bool {
        self.flash.is_asked()
    }

    /// The request, without tags. `threads` is what a flag of its own says about `THREADS_PER_SCHEMA`.
    pub(super) fn request(&self, threads: Option<u32>, axes: Axes, pace: Pace) -> Result<SlobPlanRequest, Failure> {
        let mut asked = self.parameters.read()?;
        if let Some(threads) = threads {
            asked.set(Key::ThreadsPerSchema, threads);
        }
        if let Some(Seconds(duration)) = self.duration {
            set_duration(&mut asked, duration)?;
        }
        let options = self.options(matches!(pace, Pace::Open { .. }))?;
        // A block of one update ends with its commit, and waits for that in any case.
        let commits = match options.sending()? {
            Sending::Batch => options.method.commits,
            Sending::Statement => Commits::Wait,
        };
        Ok(SlobPlanRequest {
            settings: asked.settings,
            schemas: asked.schemas,
            axes,
            cache: self.cache.unwrap_or(DEFAULT_CACHE),
            warmup: self.warmup,
            pace,
            commits,
            lanes: self.lanes,
            seed: self.seed.given().unwrap_or_default(),
            tags: Vec::new(),
            processors: processors_for_sessions(self.address()),
        })
    }
}

/// The shortest window, as RUN_TIME has it.
const MIN_DURATION: Nanos = Nanos::seconds(1);

/// Takes `--duration` for RUN_TIME. It wins over a file, as all on the command line does, but not over RUN_TIME beside it.
fn set_duration(asked: &mut SlobSettings, duration: Nanos) -> Result<(), Failure> {
    if duration < MIN_DURATION {
        let failure = Failure::new(format_args!("`--duration`: {duration} is shorter than one second"));
        return Err(failure.with_hint("write one second or more: `--duration 1`".to_owned()));
    }
    let beside = asked.settings.iter().rfind(|setting| setting.key == Key::RunTime);
    if let Some(run_time) = beside.filter(|setting| setting.origin == Origin::CommandLine)
        && run_time.value.parse() != Ok(duration)
    {
        let failure = Failure::new(format_args!(
            "the length of a window is given twice: `--duration` {duration} and `{run_time}`"
        ));
        return Err(failure.with_hint("leave one of them out: they mean the same".to_owned()));
    }
    asked.set(Key::RunTime, format_args!("{}ns", duration.0));
    Ok(())
}

/// What somebody writes who has the licence that AWR needs. Nothing shorter: it is not to be written by habit.
const CONSENT: &str = "yes, the Diagnostics Pack is licensed";

/// Which report of its own a database is asked for.
#[derive(Debug, Args)]
struct OwnReportArgs {
    /// Let Oracle report on each window by AWR too, and show that report's metrics next to Plimsoll's
    ///
    /// AWR needs a licence. The value confirms it: "yes, the Diagnostics Pack is licensed".
    #[arg(long, value_name = "CONSENT", conflicts_with = "statspack", help_heading = "Database servers")]
    awr: Option<String>,

    /// Let Oracle report on each window by Statspack too, which needs no licence
    ///
    /// Plimsoll shows that report's metrics next to its own.
    #[arg(long, help_heading = "Database servers")]
    statspack: bool,
}

impl OwnReportArgs {
    /// Adds it to how the database at an address is used.
    ///
    /// # Errors
    /// When nobody has agreed to AWR, or the database has no such reports.
    pub(super) fn add_to(&self, options: DatabaseOptions, address: &TargetAddress) -> Result<DatabaseOptions, Failure> {
        let (flag, kind) = match (&self.awr, self.statspack) {
            (None, false) => return Ok(options),
            (None, true) => ("--statspack", OwnReportKind::Statspack),
            (Some(_), _) => ("--awr", OwnReportKind::Awr),
        };
        if !matches!(address, TargetAddress::Oracle(_)) {
            let failure = Failure::new(format_args!("`{flag}` is for Oracle, not for `{address}`"));
            return Err(failure.with_hint("leave it out".to_owned()));
        }
        if let Some(given) = self.awr.as_ref().filter(|given| *given != CONSENT) {
            let failure = Failure::new(format_args!(
                "`--awr {given}` does not confirm the licence. AWR belongs to Oracle's Diagnostics Pack, which needs \
                 its own licence, and the database counts each use of it"
            ));
            return Err(failure.with_hint(format!(
                "if this database is licensed for it, write exactly: --awr \"{CONSENT}\"; if not, Statspack needs no licence: \
                 `--statspack`"
            )));
        }
        Ok(DatabaseOptions { own_report: Some(kind), ..options })
    }
}

/// A second level of the buffer cache.
#[derive(Debug, Args)]
pub(super) struct FlashArgs {
    /// Second level of the embedded engine's buffer cache: a temporary file on flash, and its size
    ///
    /// The size is that of the cached blocks. The memory of its map is taken from --cache.
    #[arg(long, value_name = "PATH:SIZE", help_heading = "Target")]
    flash_cache: Option<PlaceAndSize>,

    /// Schemas, from 1, whose blocks the others do not displace from the flash cache
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..),
        requires = "flash_cache",
        help_heading = "Target"
    )]
    flash_cache_keep: Vec<u32>,

    /// Schemas, from 1, whose blocks stay out of the flash cache
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..),
        requires = "flash_cache",
        help_heading = "Target"
    )]
    flash_cache_none: Vec<u32>,

    /// Allow the flash cache to overwrite this device or file: type its name to confirm
    ///
    /// Plimsoll did not create what is there.
    #[arg(long, value_name = "NAME", requires = "flash_cache", help_heading = "Target")]
    flash_cache_destroy: Vec<String>,
}

impl FlashArgs {
    /// Whether there is to be one.
    pub(super) fn is_asked(&self) -> bool {
        self.flash_cache.is_some()
    }

    /// What was asked for.
    ///
    /// # Errors
    /// When the target has no buffer cache of ours.
    pub(super) fn options(&self, address: &TargetAddress) -> Result<Option<FlashOptions>, Failure> {
        let Some(PlaceAndSize { path, size }) = &self.flash_cache else { return Ok(None) };
        if !matches!(address, TargetAddress::Directory(_)) {
            let failure = Failure::new(format_args!("`--flash-cache` is for the embedded engine, not for `{address}`"));
            return Err(failure.with_hint("leave it out, or name a directory: `--target dir:PATH`".to_owned()));
        }
        let from_zero = |schemas: &[u32]| schemas.iter().map(|schema| schema - 1).collect();
        Ok(Some(FlashOptions {
            path: path.clone(),
            size: *size,
            keep: from_zero(&self.flash_cache_keep),
            none: from_zero(&self.flash_cache_none),
            permission: Permission { destroy: self.flash_cache_destroy.clone(), destroy_signature: false },
        }))
    }
}

/// `PATH:SIZE`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PlaceAndSize {
    path: PathBuf,
    size: Bytes,
}

impl FromStr for PlaceAndSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const WANTED: &str = "write a path and a size, such as `/flash/cache:64G`";
        // A path may have colons of its own.
        let (path, size) = text.rsplit_once(':').ok_or_else(|| format!("it has no size; {WANTED}"))?;
        if path.is_empty() {
            return Err(format!("it has no path; {WANTED}"));
        }
        let size = size.parse().map_err(|error| format!("{error}; {WANTED}"))?;
        Ok(Self { path: PathBuf::from(path), size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_and_a_size_are_read_from_the_last_colon() {
        let read = |text: &str| text.parse::<PlaceAndSize>();
        let expected = PlaceAndSize { path: PathBuf::from("/flash/a:b"), size: Bytes::mib(512) };
        assert_eq!(read("/flash/a:b:512M"), Ok(expected));
        for (text, why) in
            [("/flash/cache", "no size"), (":4G", "no path"), ("/flash:much", "number"), ("/flash:", "number")]
        {
            let refused = read(text).unwrap_err();
            assert!(refused.contains(why) && refused.contains("/flash/cache:64G"), "{refused}");
        }
    }
}
