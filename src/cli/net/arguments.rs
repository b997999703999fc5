//! Flags that the commands for networks share.

use crate::cli::arguments::SeedArg;
use std::path::PathBuf;

use clap::Args;

use crate::cli::arguments::{Rate, RunsArgs, Seconds, Taken};
use crate::cli::exit::Failure;
use crate::plan::like::message_bytes;
use model::config::io::{DepthList, RateRange};
use model::config::net::{FlowDirection, NetOptions, NetPattern, NetServer};
use model::record::Run;
use model::units::{Bytes, Nanos};
use model::workload::Arrival;
use model::workload::net::Sizes;
use targets::network::wire::SocketOptions;

/// The other end.
#[derive(Debug, Args)]
pub(super) struct ServerArgs {
    /// Address of `plimsoll net serve`: HOST, HOST:PORT, or `self` for a server in this process
    #[arg(long, value_name = "HOST[:PORT]", help_heading = "Network")]
    pub(super) to: NetServer,

    #[command(flatten)]
    pub(super) link: LinkArgs,
}

/// How the other end is talked to.
#[derive(Debug, Args)]
pub(super) struct LinkArgs {
    /// File with the token of `net serve` [default: the variable PLIMSOLL_NET_TOKEN]
    #[arg(long, value_name = "FILE", help_heading = "Network")]
    token_file: Option<PathBuf>,

    /// Silence after which a connection counts as lost
    #[arg(long, value_name = "TIME", default_value = "10", allow_hyphen_values = true, help_heading = "Network")]
    timeout: Seconds,

    /// Size of the socket buffers of both ends [default: that of the systems]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = "Network")]
    buffer: Option<Bytes>,

    /// Congestion control of both ends, such as cubic [default: that of the systems]
    #[arg(long, value_name = "NAME", help_heading = "Network")]
    congestion: Option<String>,
}

/// The same as it is used.
#[derive(Debug, Clone)]
pub(super) struct LinkOptions {
    pub(super) token_file: Option<PathBuf>,
    pub(super) timeout: Nanos,
    pub(super) sockets: SocketOptions,
    pub(super) is_udp: bool,
    /// Whether the server is to write durably.
    pub(super) is_durable: bool,
}

impl LinkArgs {
    pub(super) fn link_options(&self) -> LinkOptions {
        let bytes = self.buffer.map(|Bytes(bytes)| bytes);
        LinkOptions {
            token_file: self.token_file.clone(),
            timeout: self.timeout.0,
            sockets: SocketOptions {
                send_buffer_bytes: bytes,
                receive_buffer_bytes: bytes,
                congestion: self.congestion.clone(),
            },
            is_udp: false,
            is_durable: false,
        }
    }
}

/// What crosses the network.
#[derive(Debug, Args)]
pub(super) struct ShapeArgs {
    /// Direction of bulk data, as this host sees it: up, down or both [default: up]
    #[arg(long, value_name = "WHERE", help_heading = "Load")]
    direction: Option<FlowDirection>,

    /// Size of a redo write, a block, a ping or a chunk [default: 8k; a chunk 128k, a ping 64]
    ///
    /// For redo, several sizes with their shares are possible: 4k:70,64k:25,1m:5.
    #[arg(long, value_name = "SIZE", help_heading = "Load")]
    size: Option<Sizes>,

    /// Take the size of redo writes from this run: its redo per redo write
    ///
    /// It may be one that was imported from AWR.
    #[arg(long, value_name = "RUN", conflicts_with = "size", help_heading = "Load")]
    size_from: Option<String>,

    /// Size of a request for a block or for rows [default: 200]
    #[arg(long, value_name = "SIZE", help_heading = "Load")]
    request: Option<Bytes>,

    /// Rows of each answer [default: 15]
    #[arg(long, value_name = "N", help_heading = "Load")]
    rows: Option<u32>,

    /// Size of a row [default: 100]
    #[arg(long, value_name = "SIZE", help_heading = "Load")]
    row_size: Option<Bytes>,

    /// Let the server write redo durably before it acknowledges (needs its `--write DIR`)
    #[arg(long, help_heading = "Load")]
    durable: bool,

    /// Request and send blocks as datagrams, as the interconnect of a cluster does
    #[arg(long, help_heading = "Load")]
    udp: bool,

    /// Arrivals at a fixed rate (open loop): poisson or fixed [default: poisson]
    #[arg(long, value_name = "HOW", help_heading = "Load")]
    arrival: Option<Arrival>,
}

impl ShapeArgs {
    /// The load that is asked for; runs are looked up in `runs`.
    pub(super) fn asked(
        &self,
        pattern: NetPattern,
        connections: Option<DepthList>,
        outstanding: Option<DepthList>,
        rates: Option<RateRange>,
        runs: &RunsArgs,
    ) -> Result<NetOptions, Failure> {
        let sizes = match &self.size_from {
            None => self.size.clone(),
            Some(word) if pattern.is_redo() => {
                let (_, run) = Taken::default().load(&runs.store(), word)?;
                Some(Sizes::Fixed(redo_write_bytes(&run, word)?))
            }
            Some(_) => {
                let failure = Failure::new("`--size-from` takes the size of redo writes");
                return Err(failure.with_hint("use `--pattern redo-sync` or `redo-async`, or `--size`".to_owned()));
            }
        };
        Ok(NetOptions {
            pattern,
            connections,
            outstanding,
            direction: self.direction,
            sizes,
            request: self.request,
            rows: self.rows,
            row_size: self.row_size,
            is_durable: self.durable,
            is_udp: self.udp,
            rates,
            arrival: self.arrival,
        })
    }

    /// The first flag that only a pattern has, if one was given.
    pub(super) fn flag_of_patterns(&self) -> Option<&'static str> {
        let given = [
            ("--direction", self.direction.is_some()),
            ("--size", self.size.is_some()),
            ("--request", self.request.is_some()),
            ("--rows", self.rows.is_some()),
            ("--row-size", self.row_size.is_some()),
            ("--durable", self.durable),
            ("--udp", self.udp),
            ("--arrival", self.arrival.is_some()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(flag, _)| flag)
    }

    /// The first flag that says of redo writes what a production says.
    pub(super) fn flag_of_redo(&self) -> Option<&'static str> {
        self.size.as_ref().map(|_| "--size").or(self.size_from.as_ref().map(|_| "--size-from"))
    }

    /// The run that sizes of redo writes are taken from.
    pub(super) fn size_from(&self) -> Option<&str> {
        self.size_from.as_deref()
    }
}

/// Mean size of the redo writes of a run.
pub(super) fn redo_write_bytes(run: &Run, word: &str) -> Result<u32, Failure> {
    let mut missing: Vec<&str> = Vec::new();
    let known = run.steps.iter().find_map(|step| {
        let counters = &step.counters;
        let bytes = counters.redo_write_bytes.or(counters.redo_bytes).filter(|bytes| *bytes > 0);
        let writes = counters.redo_writes.filter(|writes| *writes > 0);
        missing = [("redo bytes", bytes.is_none()), ("redo writes", writes.is_none())]
            .into_iter()
            .filter(|(_, is_missing)| *is_missing)
            .map(|(what, _)| what)
            .collect();
        Some(bytes? as f64 / writes? as f64)
    });
    let Some(bytes) = known else {
        if missing.is_empty() {
            missing = vec!["any measured step"];
        }
        let failure = Failure::new(format_args!("run `{word}` does not have {}", missing.join(" and ")));
        let hint =
            "take one that was imported from AWR or Statspack, or of an engine that writes redo; or give `--size`";
        return Err(failure.with_hint(hint.to_owned()));
    };
    Ok(message_bytes(bytes))
}

/// Redo per second of the first step of a run that has it.
pub(super) fn redo_bytes_per_s(run: &Run) -> Option<f64> {
    run.steps.iter().find_map(|step| {
        let seconds = Some(step.window.duration_ns).filter(|ns| *ns > 0)? as f64 / 1e9;
        Some(step.counters.redo_bytes? as f64 / seconds)
    })
}

/// How long, and from which seed.
#[derive(Debug, Args)]
pub(super) struct TimeArgs {
    /// Length of each measured window, in seconds or with a unit [default: 10; in a survey or matrix 6]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Load")]
    duration: Option<Seconds>,

    /// Load before each measured window, recorded and marked
    #[arg(long, value_name = "TIME", default_value = "1", allow_hyphen_values = true, help_heading = "Load")]
    pub(super) warmup: Seconds,

    #[command(flatten)]
    pub(super) seed: SeedArg,
}

impl TimeArgs {
    /// The length of a window, or `usual`.
    pub(super) fn duration(&self, usual: Nanos) -> Nanos {
        self.duration.map_or(usual, |Seconds(duration)| duration)
    }
}

/// The length of a window of one load.
pub(super) const DURATION: Nanos = Nanos::seconds(10);

/// One rate as a range of one.
pub(super) fn one(rate: Rate) -> RateRange {
    RateRange::Each(vec![rate.0])
}
