//! `plimsoll net run`.

use clap::Args;

use super::arguments::{DURATION, ServerArgs, ShapeArgs, TimeArgs, one};
use super::measure::{self, Job};
use crate::cli::arguments::{Measured, Rate};
use crate::cli::exit::{Exit, Failure};
use crate::cli::fleet::FleetArgs;
use crate::cli::io::arguments::OutputArgs;
use crate::cli::like::{LikeArgs, read_times, refuse};
use crate::plan::like::{RedoLike, redo};
use model::config::io::{DepthList, RateRange};
use model::config::net::{NetOptions, NetPattern};
use model::units::Bytes;
use model::workload::net::Sizes;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll net run --to db2
  plimsoll net run --to db2 --redo-rate 20M
  plimsoll net run --to db2 --pattern bulk --flows 8 --direction down
  plimsoll net run --to db2 --pattern redo-sync --size 8k --durable
  plimsoll net run --to db2:7020 --pattern redo-async --outstanding 64 \\
    --size 4k:70,64k:25,1m:5
  plimsoll net run --to db2 --pattern gc --udp --rate 20000 \\
    --limit p99=1ms
  plimsoll net run --to db2 --pattern sqlnet --rows 100 --connections 16
  plimsoll net run --to db2 --like 202610 --times 2
  plimsoll net run --to self --duration 1

Without --pattern it is a survey of about a minute. It measures round trips, one flow and eight in both directions, \
round trips during flows, and the largest packet of the path.";

/// Arguments of `plimsoll net run`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    server: ServerArgs,

    /// What crosses the network: bulk, redo-sync, redo-async, gc, sqlnet or ping [default: a survey]
    #[arg(long, value_name = "PATTERN", help_heading = "Load")]
    pattern: Option<NetPattern>,

    /// Connections, or flows in each direction [default: 1; at a rate what fits the pattern]
    #[arg(long, visible_alias = "flows", value_name = "N", help_heading = "Load")]
    connections: Option<u32>,

    /// Outstanding operations on each connection [default: 1; redo-async 32]
    ///
    /// With --rate it is the maximum [default: 64 where the pattern allows it].
    #[arg(long, value_name = "N", help_heading = "Load")]
    outstanding: Option<u32>,

    /// Start operations at this rate, whether or not earlier ones are done (open loop)
    #[arg(long, value_name = "N[/s]", allow_hyphen_values = true, help_heading = "Load")]
    rate: Option<Rate>,

    #[command(flatten)]
    shape: ShapeArgs,

    /// Redo per second of the database that a survey judges, such as 20M
    #[arg(long, value_name = "SIZE[/s]", value_parser = super::redo_rate, conflicts_with = "pattern", help_heading = "Load")]
    redo_rate: Option<Bytes>,

    #[command(flatten)]
    like: LikeArgs,

    /// Multiple of production's load [default: 1]
    #[arg(long, value_name = "N", requires = "like", value_parser = read_times, help_heading = "Like production")]
    times: Option<f64>,

    #[command(flatten)]
    time: TimeArgs,

    #[command(flatten)]
    fleet: FleetArgs,

    #[command(flatten)]
    output: OutputArgs,
}

impl Arguments {
    /// When the only load is measured.
    pub(in crate::cli) fn measured(&self) -> Result<Measured, Failure> {
        if self.pattern.is_none() && !self.like.is_asked() {
            let failure = Failure::new(
                "`net run` without `--pattern` is a survey of several loads, and one is to run beside others",
            );
            return Err(failure.with_hint("say which: `net run --to db2 --pattern redo-sync`".to_owned()));
        }
        Ok(Measured { warmup: self.time.warmup.0, duration: self.time.duration(DURATION) })
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Arguments {
        server,
        pattern,
        connections,
        outstanding,
        rate,
        shape,
        redo_rate,
        like,
        times,
        time,
        fleet,
        output,
    } = arguments;
    if like.is_asked() {
        return run_like(arguments, times.unwrap_or(1.0));
    }
    let Some(pattern) = *pattern else {
        let flags = [
            connections.map(|_| "--connections"),
            outstanding.map(|_| "--outstanding"),
            rate.map(|_| "--rate"),
            shape.flag_of_patterns(),
        ];
        if let Some(flag) = flags.into_iter().flatten().next() {
            let failure = Failure::new(format_args!("`{flag}` belongs to a pattern, and none was named"));
            let hint = "add `--pattern bulk`, `redo-sync`, `redo-async`, `gc`, `sqlnet` or `ping`, or leave it out for a survey";
            return Err(failure.with_hint(hint.to_owned()));
        }
        return super::run_survey(&super::SurveyJob {
            server,
            redo_rate: *redo_rate,
            size_from: shape.size_from(),
            time,
            fleet,
            output,
        });
    };
    let (connections, outstanding) = (list(*connections)?, list(*outstanding)?);
    let asked = shape.asked(pattern, connections, outstanding, rate.map(one), &output.keeping.runs)?;
    measure::run(Job { server, asked, time, fleet, output, like: None })
}

fn list(number: Option<u32>) -> Result<Option<DepthList>, Failure> {
    Ok(number.map(|number| number.to_string().parse::<DepthList>()).transpose()?)
}

/// The redo of a production.
fn run_like(arguments: &Arguments, times: f64) -> Result<Exit, Failure> {
    let Arguments {
        server, pattern, connections, outstanding, rate, shape, redo_rate, like, time, fleet, output, ..
    } = arguments;
    let given = rate.map(|_| "--rate").or(redo_rate.map(|_| "--redo-rate")).or(shape.flag_of_redo());
    refuse(given)?;
    let pattern = pattern.unwrap_or(NetPattern::RedoSync);
    if !pattern.is_redo() {
        let failure =
            Failure::new(format_args!("`--like` asks a network for a production's redo, and not for `{pattern}`"));
        return Err(failure.with_hint("use `--pattern redo-sync` or `redo-async`, or leave it out".to_owned()));
    }
    let runs = &output.keeping.runs;
    let RedoLike { per_s, write_bytes, like } = redo(&like.production(None, runs)?)?;
    let rates = Some(RateRange::Each(vec![per_s * times]));
    let asked = shape.asked(pattern, list(*connections)?, list(*outstanding)?, rates, runs)?;
    let asked = NetOptions { sizes: Some(Sizes::Fixed(write_bytes)), ..asked };
    measure::run(Job { server, asked, time, fleet, output, like: Some((like, times)) })
}
