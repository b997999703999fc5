//! `plimsoll net oratcptest`.

use super::measure::{Planned, load_words};
use crate::cli::arguments::{Format, KeepingArgs, SeedArg};
use crate::cli::dry_run::DryRun;
use std::io::Write;

use clap::Args;

use super::arguments::{LinkArgs, LinkOptions};
use crate::cli::exit::{Exit, Failure};
use crate::cli::help::hanging;
use crate::cli::live::Steps;
use crate::cli::runner::{self, Outline};
use crate::cli::{processors, say};
use crate::plan::net::{NetPlanRequest, plan};
use model::config::net::oratcptest::{OratcptestCommand, OratcptestOptions, help_text, parse};
use model::config::net::{NetOptions, NetPattern};
use model::units::{Bytes, Nanos};
use model::workload::Arrival;
use model::workload::net::Sizes;
use report::oratcptest as layout;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll net oratcptest db2 -mode=sync -length=8192 -duration=60s \\
    -interval=1s -write
  plimsoll net oratcptest db2 -port=7018 -mode=async -duration=10s \\
    -interval=2s
  plimsoll net oratcptest -help

The other end is `plimsoll net serve`. Plimsoll's own options stand before the host; `plimsoll net oratcptest -help` lists \
oratcptest's.";

/// Arguments of `plimsoll net oratcptest`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    link: LinkArgs,

    #[command(flatten)]
    seed: SeedArg,

    #[command(flatten)]
    keeping: KeepingArgs,

    /// Host, then oratcptest's own options (`-help` lists them)
    #[arg(value_name = "HOST -OPTION=VALUE", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let options = match parse(&arguments.words)? {
        OratcptestCommand::Help => {
            let mut out = say::output();
            writeln!(out, "{}", hanging(&help_text()))?;
            out.flush()?;
            return Ok(Exit::Done);
        }
        OratcptestCommand::Run(options) => options,
    };
    let mut plan = plan(&NetPlanRequest {
        asked: asked(&options)?,
        duration: options.duration,
        warmup: Nanos(0),
        arrival: Arrival::Poisson,
        times: None,
        seed: arguments.seed.or_fresh(),
        tags: arguments.keeping.tags.clone(),
        processors: processors(),
    })?;
    plan.head.parameters.extend(parameters(&options));
    let mut link_options: LinkOptions = arguments.link.link_options();
    link_options.timeout = options.timeout.unwrap_or(link_options.timeout);
    link_options.is_durable = options.is_written;
    if let Some(Bytes(bytes)) = options.socket_buffer {
        (link_options.sockets.send_buffer_bytes, link_options.sockets.receive_buffer_bytes) =
            (Some(bytes), Some(bytes));
    }
    let steps = plan.steps();
    let described = DryRun::named(&plan.head.name).fact("to", &options.server).fact("seed", plan.head.seed);
    let work = Planned {
        described: described.steps(&steps, load_words),
        outline: Outline::new(&plan.head, &arguments.keeping, Steps::of(&steps)),
        server: options.server,
        link_options,
        what: "oratcptest",
        steps,
        plan: Some(plan),
        rates: None,
    };
    runner::run_with(work, None, |recorded, outline, interrupt| match outline.keeping.format.format() {
        Format::Json => recorded.report(outline, interrupt),
        Format::Text => recorded.report_with(&[], interrupt, |run, _| {
            let mut out = say::output();
            write!(out, "{}", layout::text(run, &jiff::tz::TimeZone::system()))?;
            Ok(out.flush()?)
        }),
    })
}

/// The load in our words.
fn asked(options: &OratcptestOptions) -> Result<NetOptions, Failure> {
    let pattern = if options.is_sync { NetPattern::RedoSync } else { NetPattern::RedoAsync };
    Ok(NetOptions {
        connections: Some(options.connections.to_string().parse()?),
        sizes: Some(Sizes::Fixed(options.message_bytes())),
        is_durable: options.is_written,
        ..NetOptions::new(pattern)
    })
}

/// What its layout shows besides.
fn parameters(options: &OratcptestOptions) -> Vec<(String, String)> {
    let seconds = |Nanos(ns): Nanos| ns.div_ceil(1_000_000_000).to_string();
    let known = [
        (layout::LENGTH, Some(options.length.0.to_string())),
        (layout::INTERVAL, Some(seconds(options.interval))),
        (layout::DURATION, Some(seconds(options.duration))),
        (layout::SOCKET_BUFFER, options.socket_buffer.map(|Bytes(bytes)| bytes.to_string())),
        (layout::TIMEOUT, options.timeout.map(seconds)),
    ];
    known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}
