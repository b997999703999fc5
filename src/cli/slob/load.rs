//! Options that `run` and `sweep` share.

use crate::cli::arguments::SeedArg;
use clap::Args;

use super::arguments::SendArgs;
use super::flash::FlashArgs;
use super::own_report::OwnReportArgs;
use crate::cli::arguments::{IoArgs, KeepingArgs, ParameterArgs, Rate, Seconds, SlobSettings, TargetArgs};
use crate::cli::exit::Failure;
use crate::cli::fleet::FleetArgs;
use crate::cli::like::refuse;
use crate::cli::servers::{DEFAULT_CACHE, ServerArgs, processors_for_sessions};
use crate::load::Pace;
use crate::plan::slob::SlobPlanRequest;
use analysis::LatencyTarget;
use model::config::{Axes, Key, Origin};
use model::units::{Bytes, Nanos};
use model::workload::Arrival;
use targets::database::{Commits, DatabaseOptions, Sending};

/// How load is put on, and how it is reported.
#[derive(Debug, Args)]
pub(super) struct LoadArgs {
    #[command(flatten)]
    parameters: ParameterArgs,

    /// Length of each measured window, in seconds or with a unit; the same as RUN_TIME
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Load")]
    duration: Option<Seconds>,

    /// Load before each measured window; recorded and marked [default: a fifth of RUN_TIME, 10 s at most]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Load")]
    warmup: Option<Nanos>,

    /// Start operations at this rate over all sessions, whether or not earlier ones are done (open loop)
    #[arg(long, value_name = "N[/s]", allow_hyphen_values = true, help_heading = "Load")]
    rate: Option<Rate>,

    /// How the operations of an open loop arrive: poisson or fixed
    #[arg(long, value_name = "HOW", default_value_t, requires = "rate", help_heading = "Load")]
    arrival: Arrival,

    #[command(flatten)]
    pub(super) seed: SeedArg,

    /// Threads that drive the sessions, of each part where there are several [default: one for each processor, beside a private server a quarter of them]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096), help_heading = "Load")]
    lanes: Option<u32>,

    #[command(flatten)]
    pub(super) fleet: FleetArgs,

    #[command(flatten)]
    pub(super) target: TargetArgs,

    /// Size of the embedded engine's buffer cache [default: 64M]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = "Target")]
    cache: Option<Bytes>,

    #[command(flatten)]
    pub(super) flash: FlashArgs,

    #[command(flatten)]
    io: IoArgs,

    #[command(flatten)]
    server: ServerArgs,

    #[command(flatten)]
    sending: SendArgs,

    #[command(flatten)]
    own_report: OwnReportArgs,

    /// Latency that the load must keep, such as `p99=5ms` (single-block reads; with --rate or on a server the response time
    /// of operations) or `log file sync:p99.9=20ms`; several are all to be kept. Exit code 1 if it is not kept, 2 if that
    /// is not known
    #[arg(long = "limit", value_name = "[WHAT:]pQ=TIME", help_heading = "Output")]
    pub(super) limits: Vec<LatencyTarget>,

    #[command(flatten)]
    pub(super) keeping: KeepingArgs,
}

impl LoadArgs {
    /// How the target is reached and used.
    ///
    /// # Errors
    /// When something was said that means nothing for the target: whoever said it expects an effect.
    pub(super) fn options(&self) -> Result<DatabaseOptions, Failure> {
        let address = self.target.address();
        let given = [("--cache", self.cache.is_some()), ("--io-engine", self.io.engine().is_some())];
        let misplaced = given.into_iter().find(|(_, given)| *given && address.is_server());
        let flash = self.flash.options(address)?;
        let options = self.sending.add_to(self.server.options(address)?, address)?;
        let options = self.own_report.add_to(options, address)?;
        if let Some((flag, _)) = misplaced {
            let failure = Failure::new(format_args!("`{flag}` is for the embedded engine, not for `{address}`"));
            return Err(failure.with_hint("leave it out; the cache of a private server is `--db-cache`".to_owned()));
        }
        Ok(DatabaseOptions {
            io_engine: self.io.engine(),
            cache: self.cache.unwrap_or(DEFAULT_CACHE),
            flash,
            is_open_loop: self.rate.is_some(),
            ..options
        })
    }

    /// The same for a load at rates of its own.
    pub(super) fn open_options(&self) -> Result<DatabaseOptions, Failure> {
        refuse(self.rate.map(|_| "--rate"))?;
        Ok(DatabaseOptions { is_open_loop: true, ..self.options()? })
    }

    /// Whether the engine's buffer cache is to have a second level.
    pub(super) fn has_flash(&self) -> bool {
        self.flash.is_asked()
    }

    /// What is asked for. `threads` is what a flag of its own says about `THREADS_PER_SCHEMA`.
    pub(super) fn request(&self, threads: Option<u32>, axes: Axes) -> Result<SlobPlanRequest, Failure> {
        let mut asked = self.parameters.read()?;
        if let Some(threads) = threads {
            asked.set(Key::ThreadsPerSchema, threads);
        }
        if let Some(Seconds(duration)) = self.duration {
            set_duration(&mut asked, duration)?;
        }
        let arrival = self.arrival;
        let options = self.options()?;
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
            pace: self.rate.map_or(Pace::Closed, |Rate(rate_per_s)| Pace::Open { rate_per_s, arrival }),
            commits,
            lanes: self.lanes,
            seed: self.seed.given().unwrap_or_default(),
            tags: self.keeping.tags.clone(),
            processors: processors_for_sessions(self.target.address()),
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
