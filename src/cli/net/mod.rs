//! `plimsoll net`.

mod arguments;
mod measure;
mod oratcptest;
pub(super) mod run;

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::exit::{Exit, Failure};
use crate::cli::arguments::{KeepingArgs, Seconds, Taken};
use crate::cli::dry_run::{DryRun, DryRunArg};
use crate::cli::fleet::{Experiment, FleetArgs};
use crate::cli::io::arguments::OutputArgs;
use crate::cli::live::Steps;
use crate::cli::recording::{NextStep, Recorded, Recording};
use crate::cli::runner::{self, Beginning, Landing, Outline, Work};
use crate::cli::timed::Timed;
use crate::cli::token::TokenOf;
use crate::cli::{Interrupt, limits, processors, say, token};
use crate::plan::net::{NetPlanRequest, survey};
use crate::plan::{DEFAULT_FLOWS, MatrixStep, NetMatrix, RunHead, matrix};
use ::measure::Clock;
use ::measure::os::Resource;
use arguments::{LinkArgs, LinkOptions, ServerArgs, ShapeArgs, TimeArgs, redo_bytes_per_s, redo_write_bytes};
use load::StepPlan;
use measure::{Job, Planned, load_words};
use model::config::io::{DepthList, RateRange};
use model::config::net::{DEFAULT_PORT, NetOptions, NetPattern, NetServer, NetServers};
use model::record::{self, NetSurvey};
use model::units::{Bytes, Nanos};
use model::workload::Arrival;
use model::workload::net::NetShape;
use targets::network::server::{DEFAULT_MAX_CONNECTIONS, Event, ServeError, Server, ServerOptions, WriteTo};
use targets::network::wire::Token;
use targets::network::{ClientOptions, NetError, NetTarget, NetTargets, TestOptions};
use targets::{Target, TargetError};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll net serve --listen 0.0.0.0
  plimsoll net run --to db2
  plimsoll net run --to db2 --pattern bulk --flows 8 --direction both
  plimsoll net run --to db2 --pattern redo-sync --size 4k:70,64k:25,1m:5
  plimsoll net sweep --to db2 --pattern gc --rate 1000..60000 \\
    --limit p99=1ms
  plimsoll net matrix --to db2,db3,db4
  plimsoll net oratcptest db2 -mode=sync -length=8192 -duration=60s
  plimsoll net run --to self --pattern ping --duration 5";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Serve as the other end for `net run` on another host
    #[command(after_long_help = SERVE_EXAMPLES)]
    Serve(ServeArguments),
    /// Measure the network to a server: a survey of a minute, or one load
    #[command(after_long_help = run::EXAMPLES)]
    Run(Box<run::Arguments>),
    /// Measure several loads in turn and find the largest that the network sustains
    #[command(after_long_help = SWEEP_EXAMPLES)]
    Sweep(Box<SweepArguments>),
    /// Measure the network to several servers, each alone and all at once, to find the slow link
    #[command(after_long_help = MATRIX_EXAMPLES)]
    Matrix(Box<MatrixArguments>),
    /// Measure with oratcptest's own options, and write its layout
    #[command(after_long_help = oratcptest::EXAMPLES)]
    Oratcptest(Box<oratcptest::Arguments>),
}

impl Command {
    pub(super) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Serve(arguments) => run_serve(&arguments),
            Self::Run(arguments) => run::run(&arguments),
            Self::Sweep(arguments) => run_sweep(&arguments),
            Self::Matrix(arguments) => run_matrix(&arguments),
            Self::Oratcptest(arguments) => oratcptest::run(&arguments),
        }
    }
}

const SWEEP_EXAMPLES: &str = "\
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
pub(super) struct SweepArguments {
    #[command(flatten)]
    server: ServerArgs,

    /// What crosses the network: bulk, redo-sync, redo-async, gc, sqlnet or ping
    #[arg(long, value_name = "PATTERN", help_heading = "Load")]
    pattern: NetPattern,

    /// Connections, or flows in each direction, one step each: 1,2,4 or 1,2,4,…,64 or 1..64
    #[arg(long, visible_alias = "flows", value_name = "N,N,...", help_heading = "Load")]
    connections: Option<DepthList>,

    /// Outstanding operations on each connection, one step each
    ///
    /// With --rate it is the maximum.
    #[arg(long, value_name = "N,N,...", help_heading = "Load")]
    outstanding: Option<DepthList>,

    /// Rates, one step each: 1000,2000,5000 or 1k,2k,…,64k
    ///
    /// With `..`, as in 1k..60k, a search finds the load line between the two. Each rate is an open loop.
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

fn run_sweep(arguments: &SweepArguments) -> Result<Exit, Failure> {
    let SweepArguments { server, pattern, connections, outstanding, rate, shape, time, fleet, output } = arguments;
    let (connections, outstanding) = (connections.clone(), outstanding.clone());
    let asked = shape.asked(*pattern, connections, outstanding, rate.clone(), &output.keeping.runs)?;
    measure::run(Job { server, asked, time, fleet, output, like: None })
}

// `plimsoll net run` without a pattern: a look at a network from all sides, in about a minute.

/// Length of each step's window.
const DURATION: Nanos = Nanos::seconds(6);

/// A survey that is asked for.
struct SurveyJob<'a> {
    server: &'a ServerArgs,
    redo_rate: Option<Bytes>,
    size_from: Option<&'a str>,
    time: &'a TimeArgs,
    fleet: &'a FleetArgs,
    output: &'a OutputArgs,
}

/// Reads `20M`, `20MB/s`.
fn redo_rate(text: &str) -> Result<Bytes, String> {
    let text = text.trim();
    let rate = text.strip_suffix("/s").unwrap_or(text).parse::<Bytes>().map_err(|error| error.to_string())?;
    if rate == Bytes(0) { Err("a database without redo sends nothing to a standby".to_owned()) } else { Ok(rate) }
}

fn run_survey(job: &SurveyJob<'_>) -> Result<Exit, Failure> {
    let SurveyJob { server, time, fleet, output, .. } = job;
    let redo = redo(job)?;
    let asked = NetOptions::new(NetPattern::Ping);
    let (plan, joined) = fleet.join()?.plan(time.seed.given(), &mut |seed| {
        let request =
            NetPlanRequest { duration: time.duration(DURATION), ..measure::request(&asked, time, output, seed) };
        let plan = survey(&request, redo)?;
        let experiment = Experiment::new(&plan.head, &plan.steps);
        Ok((plan, experiment))
    })?;
    limits::check_planned(&output.limits.asked(), &Timed::of_net(&plan.steps))?;
    let described = DryRun::of(&plan.head, [("to", server.to.to_string())]);
    let described = described.gap().line("look for the largest packet of the path");
    runner::run(Planned {
        described: described.steps(&plan.steps, load_words),
        outline: Outline {
            joined: Some(joined),
            limits: output.limits.asked(),
            ..Outline::new(&plan.head, &output.keeping, Steps::of(&plan.steps))
        },
        server: server.to.clone(),
        link_options: server.link.link_options(),
        what: "survey",
        steps: plan.steps,
        plan: None,
        rates: None,
    })
}

/// The redo that is asked about: a rate that was given, or that of a run.
fn redo(job: &SurveyJob<'_>) -> Result<NetSurvey, Failure> {
    let Some(word) = job.size_from else {
        let redo_bytes_per_s = job.redo_rate.map(|Bytes(bytes)| bytes as f64);
        return Ok(NetSurvey { redo_bytes_per_s, redo_write_bytes: None });
    };
    let (_, run_survey) = Taken::default().load(&job.output.keeping.runs.store(), word)?;
    let write_bytes = Some(f64::from(redo_write_bytes(&run_survey, word)?));
    let bytes_per_s = job.redo_rate.map(|Bytes(bytes)| bytes as f64).or_else(|| redo_bytes_per_s(&run_survey));
    let Some(bytes_per_s) = bytes_per_s else {
        let failure = Failure::new(format_args!("run `{word}` does not say how much redo it makes each second"));
        return Err(failure.with_hint("give it by itself: `--redo-rate 20M`".to_owned()));
    };
    Ok(NetSurvey { redo_bytes_per_s: Some(bytes_per_s.round()), redo_write_bytes: write_bytes })
}

const MATRIX_EXAMPLES: &str = "\
Examples:
  plimsoll net matrix --to db2,db3,db4
  plimsoll net matrix --to db2,db3:7020 --flows 8 --duration 30
  plimsoll net matrix --to db2,db3 --token-file token --json

Each server runs `plimsoll net serve`, all of them with one token. Of each: round trips while nothing else goes, then flows \
to it, then from it. Then flows to all servers at once, and from all of them.";

/// Arguments of `plimsoll net matrix`.
#[derive(Debug, Args)]
pub(super) struct MatrixArguments {
    /// Address of each `plimsoll net serve`, two or more: HOST or HOST:PORT
    #[arg(long, value_name = "HOST[:PORT],...", help_heading = "Network")]
    to: NetServers,

    #[command(flatten)]
    link: LinkArgs,

    /// Bulk flows to and from each server
    #[arg(long, value_name = "N", default_value_t = DEFAULT_FLOWS, help_heading = "Load")]
    flows: u32,

    #[command(flatten)]
    time: TimeArgs,

    #[command(flatten)]
    keeping: KeepingArgs,
}

fn run_matrix(arguments: &MatrixArguments) -> Result<Exit, Failure> {
    let MatrixArguments { to: NetServers(servers), link, flows, time, keeping } = arguments;
    let request = NetPlanRequest {
        asked: NetOptions::new(NetPattern::Ping),
        duration: time.duration(DURATION),
        warmup: time.warmup.0,
        arrival: Arrival::Poisson,
        times: None,
        seed: time.seed.or_fresh(),
        tags: keeping.tags.clone(),
        processors: processors(),
    };
    let NetMatrix { head, steps } = matrix(&request, servers, *flows)?;
    let names = servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    runner::run(PlannedMatrix { keeping, servers, link_options: link.link_options(), names, head, steps })
}

/// A look at several servers, planned and checked.
struct PlannedMatrix<'a> {
    keeping: &'a KeepingArgs,
    servers: &'a [NetServer],
    link_options: LinkOptions,
    /// Of the servers.
    names: String,
    head: RunHead,
    steps: Vec<MatrixStep>,
}

impl PlannedMatrix<'_> {
    fn plans(&self) -> Vec<StepPlan<NetShape>> {
        self.steps.iter().map(|step| step.plan.clone()).collect()
    }
}

impl<'a> Work<'a> for PlannedMatrix<'a> {
    fn outline(&self) -> Outline<'a> {
        Outline { time: None, ..Outline::new(&self.head, self.keeping, Steps::of(&self.plans())) }
    }

    fn described(self) -> Result<DryRun, Failure> {
        Ok(DryRun::of(&self.head, [("to", self.names.clone())]).steps(&self.plans(), load_words))
    }

    fn carry_out(self, beginning: Beginning<'_>) -> Result<Recorded, Failure> {
        let clock = Clock::start();
        let doors = Doors { servers: self.servers, link_options: self.link_options, clock };
        // All of them answer, or nothing runs.
        drop(doors.open(0..self.servers.len())?);
        let target = record::Target {
            kind: Some(record::TargetKind::Network),
            address: self.names,
            ..record::Target::default()
        };
        let landing = Landing { target, clock, paths: Vec::new(), said: Vec::new(), notes: Vec::new() };
        let mut recording = beginning.record(landing)?;
        let mut notes = Vec::new();
        for step in &self.steps {
            if doors.step(&mut recording, step, &mut notes) == NextStep::Stop {
                break;
            }
        }
        Ok(recording.end(self.steps.len()))
    }
}

/// How servers are reached: anew for each step, since one that waited for the others' steps would take its client for gone.
struct Doors<'a> {
    servers: &'a [NetServer],
    link_options: LinkOptions,
    clock: Clock,
}

impl Doors<'_> {
    fn open(&self, places: std::ops::Range<usize>) -> Result<Vec<NetTarget>, Failure> {
        let servers = self.servers[places].iter();
        servers.map(|server| Link::open(server, &self.link_options, self.clock).map(Link::into_target)).collect()
    }

    /// Carries out one step: a test of its own on each of its servers. What is to be known of them is noted once.
    fn step(&self, recording: &mut Recording, step: &MatrixStep, notes: &mut Vec<String>) -> NextStep {
        if !recording.is_going_well() {
            return NextStep::Stop;
        }
        let plan = &step.plan;
        let time = plan.time();
        let wanted = TestOptions { what: format!("matrix {}", plan.label), duration: time };
        let begun = self
            .open(step.servers.clone())
            .and_then(|targets| NetTargets::begin(targets, &step.each, &wanted).map_err(Failure::from));
        let target = match begun {
            Ok(target) => target,
            Err(failure) => {
                recording.fail(failure);
                return NextStep::Stop;
            }
        };
        let next = recording.step(&target, plan);
        let ended = target.end();
        for note in target.notes().into_iter().chain(target.take_trouble()) {
            if !notes.contains(&note) {
                recording.note(note.clone());
                notes.push(note);
            }
        }
        match ended {
            Ok(()) => next,
            // Only the first error counts: of a step that failed it says why.
            Err(error) => {
                recording.fail(error);
                NextStep::Stop
            }
        }
    }
}

const SERVE_EXAMPLES: &str = "\
Examples:
  plimsoll net serve                   for this machine alone; shows a token
  plimsoll net serve --listen 10.0.2.2 --token-file /root/net-token
  plimsoll net serve --listen 0.0.0.0 --once --idle 5m
  plimsoll net serve --listen 0.0.0.0:5201 --write /u01 --write-max 1G
  plimsoll net serve --listen 0.0.0.0 --max-rate 125M --max-duration 2m

Clients must know the token: the one in PLIMSOLL_NET_TOKEN or --token-file, or
a new one that is shown here once. It is never sent. Nothing is encrypted: what
is sent is filling. One test is served at a time. This command never connects
to anybody, and writes nothing unless --write says where.";

/// Arguments of `plimsoll net serve`.
#[derive(Debug, Args)]
pub(super) struct ServeArguments {
    /// Address to listen on, with or without a port
    ///
    /// 127.0.0.1 serves this machine alone, 0.0.0.0 every machine that can reach it.
    #[arg(long, value_name = "ADDR[:PORT]", default_value = "127.0.0.1", help_heading = "Network")]
    listen: At,

    /// File with the token of `net serve` [default: the variable PLIMSOLL_NET_TOKEN, else a new token]
    #[arg(long, value_name = "FILE", help_heading = "Network")]
    token_file: Option<PathBuf>,

    /// Maximum number of data connections of a test
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_CONNECTIONS, help_heading = "Limits",
        value_parser = clap::value_parser!(u32).range(1..=65_536))]
    max_connections: u32,

    /// Maximum bytes per second, each way, of all connections together [default: no limit]
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    max_rate: Option<Bytes>,

    /// Maximum length of a test
    #[arg(long, value_name = "TIME", default_value = "1h", help_heading = "Limits")]
    max_duration: Seconds,

    /// Directory for redo when a client requests durable writes [default: refuse such tests]
    #[arg(long, value_name = "DIR", help_heading = "Writing")]
    write: Option<PathBuf>,

    /// Total size of the files that are written to, which are reused in a circle
    #[arg(long, value_name = "SIZE", default_value = "256M", requires = "write", help_heading = "Writing")]
    write_max: Bytes,

    /// End after this long without a test (0 waits forever)
    #[arg(long, value_name = "TIME", default_value = "10m", help_heading = "End")]
    idle: Seconds,

    /// End after one test
    #[arg(long, short = '1', help_heading = "End")]
    once: bool,

    /// Print JSON instead of text
    ///
    /// Each event is one JSON document on a line.
    #[arg(long, help_heading = "Output")]
    json: bool,

    #[command(flatten)]
    dry_run: DryRunArg,
}

/// An address with or without a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct At(pub(super) SocketAddr);

/// Text that is no address.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not an address of this machine: write 127.0.0.1, 10.0.2.2:7018, [::1]:7018 or 0.0.0.0")]
pub(super) struct NoAddress(String);

impl FromStr for At {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Self, NoAddress> {
        let named = match text.strip_prefix("localhost") {
            Some(rest) => format!("{}{rest}", Ipv4Addr::LOCALHOST),
            None => text.to_owned(),
        };
        let bare = named.trim_start_matches('[').trim_end_matches(']');
        let with_port = |ip: IpAddr| SocketAddr::new(ip, DEFAULT_PORT);
        let found = named.parse().ok().or_else(|| bare.parse().ok().map(with_port));
        found.map(Self).ok_or_else(|| NoAddress(text.to_owned()))
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        Self::new(&error).with_hint(error.hint().map(str::to_owned))
    }
}

/// The first line of `--json`.
#[derive(Serialize)]
struct Listening {
    event: &'static str,
    address: SocketAddr,
}

fn run_serve(arguments: &ServeArguments) -> Result<Exit, Failure> {
    let At(listen) = arguments.listen;
    let given = token::given(TokenOf::Net, arguments.token_file.as_deref())?;
    let is_made = given.is_none();
    let token = given.map_or_else(token::made, Ok)?;
    let duration = |Seconds(time): Seconds| Duration::from_nanos(time.0);
    let max_duration = duration(arguments.max_duration);
    if max_duration.is_zero() || arguments.max_rate == Some(Bytes(0)) || arguments.write_max == Bytes(0) {
        let failure = Failure::new("a limit of 0 lets nothing through");
        return Err(
            failure.with_hint("leave it out for what is usual: `plimsoll net serve --help` says what".to_owned())
        );
    }
    if arguments.dry_run.is_set() {
        let from = if is_made { "a new one, shown once" } else { "the given one" };
        let max_bytes = arguments.write_max;
        let words = |directory: &PathBuf| format!("up to {max_bytes} in `{}`, and remove it", directory.display());
        return DryRun::default()
            .fact("listen", listen)
            .fact("token", from)
            .facts("write", arguments.write.as_ref().map(words))
            .print(None, false);
    }
    let write = arguments.write.clone().map(|directory| WriteTo { directory, max_bytes: arguments.write_max.0 });
    let server = Server::bind(ServerOptions {
        listen,
        token,
        max_connections: arguments.max_connections,
        max_bytes_per_s: arguments.max_rate.map(|Bytes(bytes)| bytes),
        max_duration,
        write,
        idle: Some(duration(arguments.idle)).filter(|idle| !idle.is_zero()),
        once: arguments.once,
    })?;
    let interrupt = Interrupt::listen()?;
    let address = server.address();
    greet(&server, is_made);
    let is_json = arguments.json;
    // Nobody need read the address: whoever has closed standard output is served still.
    let _ = if is_json { json_line(&Listening { event: "listening", address }) } else { line(&address) };
    server.serve(interrupt.flag(), &|event| print(event, is_json))?;
    Ok(Exit::Done)
}

fn greet(server: &Server, is_made: bool) {
    let address = server.address();
    say::line(format_args!("Listening on {address} (Ctrl-C ends it)"));
    if is_made {
        say::line(format_args!("Token, shown this once: {}", server.token().expose()));
        say::line(format_args!(
            "On the other host: PLIMSOLL_NET_TOKEN={} plimsoll net run --to {}",
            server.token().expose(),
            if address.ip().is_unspecified() { format!("HOST:{}", address.port()) } else { address.to_string() }
        ));
    }
    if address.ip().is_loopback() {
        say::note("only this machine can reach it; `--listen 0.0.0.0` lets others, who must know the token");
    }
}

fn print(event: &Event, is_json: bool) {
    if is_json {
        let _ = json_line(event);
    } else {
        say::line(format_args!("{} {event}", jiff::Zoned::now().strftime("%H:%M:%S")));
    }
}

fn json_line(document: &impl Serialize) -> Result<(), Failure> {
    line(&serde_json::to_string(document)?)
}

fn line(text: &impl std::fmt::Display) -> Result<(), Failure> {
    let mut out = say::output();
    writeln!(out, "{text}")?;
    out.flush()?;
    Ok(())
}

/// A server that was reached.
struct Link {
    target: NetTarget,
    /// Whether blocks are sent as datagrams: all of them through one socket of each end.
    is_udp: bool,
    /// Ends with the link.
    own: Option<OwnServer>,
}

impl Link {
    /// Reaches a server.
    fn open(server: &NetServer, link_options: &LinkOptions, clock: Clock) -> Result<Self, Failure> {
        let Nanos(timeout_ns) = link_options.timeout;
        if timeout_ns < 1_000_000 {
            let failure = Failure::new("`--timeout` of less than a millisecond leaves no time for an answer");
            return Err(failure.with_hint("give it a time such as `10`, or `500ms`".to_owned()));
        }
        if *server == NetServer::Own && link_options.is_durable {
            let failure = Failure::new("the server of `self` writes nothing, but durable writes are requested");
            let hint = "start `plimsoll net serve --write DIR` in another terminal, and name that: `--to 127.0.0.1`";
            return Err(failure.with_hint(hint.to_owned()));
        }
        let options = ClientOptions {
            timeout: Duration::from_nanos(timeout_ns),
            sockets: link_options.sockets.clone(),
            is_udp: link_options.is_udp,
            drains: true,
        };
        let (own, addresses, token) = match server {
            NetServer::Own => {
                let (own, address, token) = OwnServer::start()?;
                (Some(own), vec![address], token)
            }
            NetServer::At { host, port } => (None, addresses(server, host, *port)?, token(server, link_options)?),
        };
        let shown = server.to_string();
        let target = NetTarget::open(&shown, &addresses, &token.key(), options, clock)?;
        Ok(Self { target, is_udp: link_options.is_udp, own })
    }

    /// The target alone, of a server that is not of this process.
    fn into_target(self) -> NetTarget {
        self.target
    }

    /// The target.
    fn target(&self) -> &NetTarget {
        &self.target
    }

    /// What the user should know.
    fn notes(&self) -> Vec<String> {
        let own = self.own.iter().map(|_| {
            "the server is in this process, on loopback: this measures no network, only what this machine can do"
                .to_owned()
        });
        own.collect()
    }

    /// Whether both ends of all connections can be open in this process. Its server could not say so itself: with no descriptor left
    /// it cannot take the connection on which it would.
    fn has_files_for(&self, shape: &NetShape) -> Result<(), TargetError> {
        let limit = ::measure::os::limit(Resource::OpenFiles).filter(|_| self.own.is_some() && !self.is_udp);
        let asked = u64::from(shape.connections()).saturating_mul(2);
        match limit {
            Some(limit) if asked > limit => {
                let source = rustix::io::Errno::MFILE.into();
                Err(NetError::Socket { action: "hold both ends of all connections", source }.into())
            }
            _ => Ok(()),
        }
    }

    /// Carries out one step: a test of its own.
    fn step(&self, recording: &mut Recording, plan: &StepPlan<NetShape>, what: &str) -> NextStep {
        if !recording.is_going_well() {
            return NextStep::Stop;
        }
        let time = plan.time();
        let wanted = TestOptions { what: format!("{what} {}", plan.label), duration: time };
        let begun = self.has_files_for(&plan.shape).and_then(|()| self.target.begin(&plan.shape, &wanted));
        if let Err(error) = begun {
            recording.fail(error);
            return NextStep::Stop;
        }
        let next = recording.step(&self.target, plan);
        let ended = self.target.end();
        for trouble in self.target.take_trouble() {
            recording.note(trouble);
        }
        match ended {
            Ok(_) => next,
            // Only the first error counts: of a step that failed it says why.
            Err(error) => {
                recording.fail(error);
                NextStep::Stop
            }
        }
    }
}

/// Every address of a host.
fn addresses(server: &NetServer, host: &str, port: u16) -> Result<Vec<SocketAddr>, Failure> {
    let none = |source| TargetError::from(NetError::NoAddress { server: server.to_string(), source });
    let found: Vec<SocketAddr> = (host, port).to_socket_addrs().map_err(none)?.collect();
    if found.is_empty() {
        return Err(none(std::io::Error::from(std::io::ErrorKind::NotFound)).into());
    }
    Ok(found)
}

/// The token that the user has for a server.
fn token(server: &NetServer, link_options: &LinkOptions) -> Result<Token, Failure> {
    let given = token::given(TokenOf::Net, link_options.token_file.as_deref())?;
    given.ok_or_else(|| TargetError::from(NetError::NoToken { server: server.to_string() }).into())
}

/// A server in this process. It ends when it is dropped.
struct OwnServer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl OwnServer {
    fn start() -> Result<(Self, SocketAddr, Token), Failure> {
        let cannot = |error: &dyn std::fmt::Display| -> Failure {
            TargetError::from(NetError::Own { why: error.to_string() }).into()
        };
        let token = Token::random().map_err(|error| cannot(&error))?;
        let server = Server::bind(ServerOptions::own(token.clone())).map_err(|error| cannot(&error))?;
        let address = server.address();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("own server".to_owned());
        // What goes wrong there, its client hears.
        let serve = move || drop(server.serve(&stopped, &|_| ()));
        let thread = Some(thread.spawn(serve).map_err(|error| cannot(&error))?);
        Ok((Self { stop, thread }, address, token))
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_needs_no_port() {
        for (text, shown) in [
            ("127.0.0.1", "127.0.0.1:7018"),
            ("0.0.0.0:0", "0.0.0.0:0"),
            ("localhost", "127.0.0.1:7018"),
            ("localhost:99", "127.0.0.1:99"),
            ("::1", "[::1]:7018"),
            ("[::1]", "[::1]:7018"),
            ("[::1]:80", "[::1]:80"),
        ] {
            assert_eq!(text.parse::<At>().unwrap().0.to_string(), shown, "{text}");
        }
        for text in ["", "db2", "1.2.3", "127.0.0.1:", "127.0.0.1:70000", ":7018", "localhosts"] {
            assert!(text.parse::<At>().is_err(), "{text}");
        }
    }
}
