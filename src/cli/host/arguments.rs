//! Flags that the commands for processors share.

use crate::cli::arguments::SeedArg;
use clap::Args;

use crate::cli::arguments::{KeepingArgs, Seconds};
use crate::cli::fleet::FleetArgs;
use crate::plan::host::HostRequest;
use model::config::host::{ProcessorChoice, WorkList};
use model::record::HostLoad;
use model::units::Bytes;

/// How much memory work goes through, for how long, and how the run is kept.
#[derive(Debug, Args)]
pub(super) struct WorkArgs {
    /// Memory that each thread's copies, triads and chases go through [default: 64M; without --work several, of every cache
    /// and behind them]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = "Load")]
    size: Option<Bytes>,

    /// Buffer cache that logical reads are done in, shared by all threads [default: 256M]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = "Load")]
    cache: Option<Bytes>,

    /// Load before each measured window; recorded and marked [default: 1s; without --work 0.2s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Load")]
    pub(super) warmup: Option<Seconds>,

    #[command(flatten)]
    pub(super) seed: SeedArg,

    #[command(flatten)]
    pub(super) fleet: FleetArgs,

    #[command(flatten)]
    pub(super) keeping: KeepingArgs,
}

impl WorkArgs {
    /// What is asked for, on these processors.
    pub(super) fn request(&self, work: Option<&WorkList>, processors: ProcessorChoice) -> HostRequest {
        HostRequest {
            load: HostLoad {
                work: work.cloned(),
                processors,
                threads: None,
                size_bytes: self.size,
                cache_bytes: self.cache,
            },
            duration: None,
            warmup: self.warmup.map(|Seconds(warmup)| warmup),
            seed: self.seed.given().unwrap_or_default(),
            tags: self.keeping.tags.clone(),
        }
    }
}
