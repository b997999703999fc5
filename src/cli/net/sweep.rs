//! `plimsoll net sweep`.

use clap::Args;

use super::arguments::{ServerArgs, ShapeArgs, TimeArgs};
use super::measure::{self, Job};
use crate::cli::exit::{Exit, Failure};
use crate::cli::fleet::FleetArgs;
use crate::cli::io::arguments::OutputArgs;
use model::config::io::{DepthList, RateRange};
use model::config::net::NetPattern;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll net sweep --to db2 --pattern bulk --flows 1,2,4,8
  plimsoll net sweep --to db2 --pattern redo-sync --connections 1..64 \\
    --limit p99=2ms
  plimsoll net sweep --to db2 --pattern redo-async --outstanding 1..64
  plimsoll net sweep --to db2 --pattern gc --rate 1000..60000 \\
    --limit p99=1ms
  plimsoll net sweep --to self --pattern ping --connections 1,2,4 \\
    --duration 2";

/// clap's own is one line that does not fit a terminal.
const USAGE: &str = "\
plimsoll net sweep [OPTIONS] --to <HOST[:PORT]> --pattern <PATTERN>
         <--connections <N,N,...>|--outstanding <N,N,...>|--rate <N,N,...>>";

/// Arguments of `plimsoll net sweep`.
#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("axis").args(["connections", "outstanding", "rate"]).required(true).multiple(true),
    override_usage = USAGE
)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    server: ServerArgs,

    /// What crosses the network: bulk, redo-sync, redo-async, gc, sqlnet or ping
    #[arg(long, value_name = "PATTERN", help_heading = "Load")]
    pattern: NetPattern,

    /// Connections, or flows in each direction, one step each: 1,2,4 or 1,2,4,…,64 or 1..64
    #[arg(long, visible_alias = "flows", value_name = "N,N,...", help_heading = "Load")]
    connections: Option<DepthList>,

    /// Operations under way on each connection, one step each; with --rate, the most that may be
    #[arg(long, value_name = "N,N,...", help_heading = "Load")]
    outstanding: Option<DepthList>,

    /// Rates of an open loop: 1000,2000,5000 or 1k,2k,…,64k is one step each, 1k..60k finds the load line between the two
    #[arg(long, value_name = "N,N,...", help_heading = "Load")]
    rate: Option<RateRange>,

    #[command(flatten)]
    shape: ShapeArgs,

    #[command(flatten)]
    time: TimeArgs,

    #[command(flatten)]
    fleet: FleetArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Arguments { server, pattern, connections, outstanding, rate, shape, time, fleet, output } = arguments;
    let (connections, outstanding) = (connections.clone(), outstanding.clone());
    let asked = shape.asked(*pattern, connections, outstanding, rate.clone(), &output.keeping.runs)?;
    measure::run(&Job { server, asked, time, fleet, output, like: None })
}
