//! What PostgreSQL servers report on themselves while load runs on them. Everything works as an ordinary role.

mod line;
mod processes;
mod query;
mod reading;
mod seen;
mod statements;

use std::time::Duration;

use self::line::{CounterLine, SampleLine};
use self::reading::{Difference, Reading};
use super::connect::Connector;
use super::{LocalServer, meanings};
use crate::{Readings, Sampled, ServerError, ServerReader};
use model::record::ServerStats;

pub use statements::PostgresStatements;

/// Watches all servers of an address, until it is dropped.
pub type Monitor = crate::Monitor<MonitorRequest>;

/// What to watch.
#[derive(Debug, Clone)]
pub struct MonitorRequest {
    /// Connects to the servers.
    pub connector: Connector,
    /// The schema of the database that holds the data, not quoted.
    pub schema: String,
    /// Schemas of SLOB's in it.
    pub schemas: u32,
    /// Size of the servers' blocks.
    pub block_bytes: u32,
    /// The name by which the servers know the load's sessions.
    pub application: String,
    /// For each server what is known of its processes on this machine. A server that is reached from here and runs here is
    /// found without it.
    pub local: Vec<Option<LocalServer>>,
    /// How often the sessions are looked at.
    pub sample_every: Duration,
}

impl ServerReader for MonitorRequest {
    type Reading = Reading;
    type CounterLine = CounterLine;
    type SampleLine = SampleLine;

    fn nodes(&self) -> Vec<String> {
        self.connector.nodes().iter().map(ToString::to_string).collect()
    }

    fn sample_every(&self) -> Duration {
        self.sample_every
    }

    async fn open_counters(&self, node: usize) -> Result<(CounterLine, Vec<String>), ServerError> {
        CounterLine::open(self, node).await
    }

    async fn read(&self, line: &mut CounterLine) -> Result<Readings<Reading>, ServerError> {
        line.read().await.map(|(at, reading)| (at, vec![reading.into()]))
    }

    async fn open_samples(&self, node: usize) -> Result<SampleLine, ServerError> {
        SampleLine::open(self, node).await
    }

    async fn sample(&self, line: &mut SampleLine, closely: bool) -> Result<Sampled, ServerError> {
        line.sample(closely).await
    }

    fn compare(&self, earlier: &Reading, later: &mut Reading, stats: &mut ServerStats) -> Vec<String> {
        let Difference { own, counters, cpu, run_delay_ns, throttled, reset } = later.since(earlier, self.block_bytes);
        later.remember_size(earlier);
        stats.activity = meanings::activity(&own);
        stats.session_states = meanings::states(&stats.session_samples);
        (stats.own, stats.counters, stats.cpu) = (own, counters, cpu);
        (stats.run_delay_ns, stats.throttled) = (run_delay_ns, throttled);
        reset
    }
}

#[cfg(test)]
mod tests;
