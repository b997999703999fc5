//! What `run` and `sweep` share, and a run from its plan to its report.

use crate::cli::arguments::{KeepingArgs, Measured, Seconds, SeedArg, TargetArgs};
use crate::cli::dry_run::DryRun;
use files::How;
use model::record::{CONNECT, OrdersOptions, Run};
use std::cell::Cell;
use std::io::Write as _;
use std::path::Path;

use clap::{Args, ValueEnum};

use super::audit;
use crate::cli::database_load::{self, Moment};
use crate::cli::exit::{Exit, Failure};
use crate::cli::fleet::{Experiment, FleetArgs, Joined};
use crate::cli::limits::LimitArgs;
use crate::cli::live::Steps;
use crate::cli::recording::{Recorded, Recording};
use crate::cli::runner::{self, Beginning, Outline, Work};
use crate::cli::servers::{NodeArgs, ServerArgs, processors_for_sessions};
use crate::cli::{in_turn, limits};
use crate::databases;
use crate::plan::orders::{OrdersLoad, OrdersPlan, plan};
use crate::plan::share_out;
use crate::plan::slob::SlobPlanRequest;
use analysis::{Judgeable, LatencyTarget, Subject};
use load::Pace;
use model::units::Nanos;
use model::workload::Arrival;
use model::workload::orders::{Mix, Pauses, Reconnect, TransactionKind};
use report::swingbench;
use targets::database::DatabaseOptions;
use targets::orders::{OpenOrders, OrdersDatabase, OrdersOpenRequest, OrdersSending, procedure_name};

/// Length of a window where nobody says otherwise.
const DEFAULT_DURATION: Nanos = Nanos::seconds(60);
/// The shortest window.
const MIN_DURATION: Nanos = Nanos::seconds(1);

/// Said by a part of several.
const UNAUDITED: &str = "the data were not audited, since other parts may still load them; `plimsoll orders verify --run RUN` does it when all have ended";

/// How load is put on, and how it is reported.
#[derive(Debug, Args)]
pub(super) struct LoadArgs {
    /// Weight of each transaction: NCR=15,UCD=10,…, or the weights of Swingbench 2.6 or 2.7
    #[arg(long, value_name = "NAME=N,...", default_value = "2.6", help_heading = "Load")]
    mix: Mix,

    /// Pause of a user between two transactions: 5ms, 1ms..5ms or exp:5ms
    ///
    /// Within 1ms..5ms every pause is equally likely. exp:5ms is exponential, with this mean.
    #[arg(long, value_name = "TIME", default_value = "0", allow_hyphen_values = true, help_heading = "Load")]
    think: Pauses,

    /// Pause between the steps of a transaction, in the form of --think
    ///
    /// It does not count in the transaction's time.
    #[arg(long, value_name = "TIME", default_value = "0", allow_hyphen_values = true, help_heading = "Load")]
    think_inside: Pauses,

    /// Length of each measured window, in seconds or with a unit [default: 60 s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Load")]
    duration: Option<Seconds>,

    /// Load before each measured window, recorded and marked [default: a fifth of the window, up to 10 s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Load")]
    warmup: Option<Seconds>,

    /// Arrivals at a fixed rate (open loop): poisson or fixed
    #[arg(long, value_name = "HOW", default_value_t, help_heading = "Load")]
    arrival: Arrival,

    /// How operations reach the server
    #[arg(long, value_enum, value_name = "HOW", default_value_t, help_heading = "Load")]
    send: SendChoice,

    /// Retries of a transaction after a deadlock, a serialization failure or a lock timeout
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "Load")]
    max_retries: u32,

    /// Reconnect a user for `every` transaction, or after this many of them [default: never]
    #[arg(
        long,
        value_name = "every|N",
        default_value_t,
        hide_default_value = true,
        allow_hyphen_values = true,
        help_heading = "Load"
    )]
    reconnect: Reconnect,

    /// Isolation level of transactions [default: the server's own]
    #[arg(long, value_enum, value_name = "LEVEL", help_heading = "Load")]
    isolation: Option<IsolationChoice>,

    #[command(flatten)]
    seed: SeedArg,

    /// Threads that drive the sessions [default: one per CPU, with a private server a quarter of them]
    ///
    /// With several parts, this is the number in each part.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096), help_heading = "Load")]
    lanes: Option<u32>,

    #[command(flatten)]
    fleet: FleetArgs,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    server: ServerArgs,

    #[command(flatten)]
    nodes: NodeArgs,

    #[command(flatten)]
    limits: LimitArgs,

    /// Do not audit the data after the load
    ///
    /// The audit checks totals and stock, and that everything acknowledged is there.
    #[arg(long, help_heading = "Output")]
    no_audit: bool,

    #[command(flatten)]
    keeping: KeepingArgs,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum SendChoice {
    /// Each statement by itself, as applications do
    #[default]
    Statement,
    /// Each transaction as one call of a procedure, which is created next to the tables if missing
    Procedure,
}

impl SendChoice {
    fn sending(self) -> OrdersSending {
        match self {
            Self::Statement => OrdersSending::Statement,
            Self::Procedure => OrdersSending::Procedure,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum IsolationChoice {
    /// READ COMMITTED
    ReadCommitted,
    /// REPEATABLE READ
    RepeatableRead,
    /// SERIALIZABLE
    Serializable,
}

impl IsolationChoice {
    fn words(self) -> &'static str {
        match self {
            Self::ReadCommitted => "READ COMMITTED",
            Self::RepeatableRead => "REPEATABLE READ",
            Self::Serializable => "SERIALIZABLE",
        }
    }
}

impl LoadArgs {
    /// Runs it with so many users in each step, at each rate where there is one.
    pub(super) fn run(&self, users: Vec<u32>, rates: Vec<f64>, results: Option<&Path>) -> Result<Exit, Failure> {
        if let Some(path) = results {
            check_results(path)?;
        }
        let fleet = self.fleet.join()?;
        fleet.refuse(results.is_some(), "Swingbench's results", "leave `--results` out: it is of a whole run")?;
        let load = self.load(users, rates)?;
        let (plan, joined) = fleet.plan(self.seed.given(), &mut |seed| {
            let mut plan = plan(&OrdersLoad { seed, ..load.clone() })?;
            plan.steps = share_out(plan.steps, fleet.share())?;
            let experiment = Experiment::new(&plan.head, &plan.steps);
            Ok((plan, experiment))
        })?;
        let limits: Vec<LatencyTarget> = self.limits.asked().iter().map(LatencyTarget::of_transactions).collect();
        check(&limits, &load)?;
        let database = databases::orders(self.target.address(), &self.options()?)?;
        let is_sound = Cell::new(true);
        let is_alone = fleet.share().parts == 1;
        let work = Planned { arguments: self, load, plan, joined, limits, is_alone, is_sound: &is_sound, database };
        runner::run_with(work, None, |recorded, outline, interrupt| {
            let written = results.map_or(Ok(()), |path| write_results(path, recorded.run()));
            let exit = recorded.report(outline, interrupt)?;
            written?;
            Ok(if is_sound.get() || exit != Exit::Done { exit } else { Exit::NotMet })
        })
    }

    pub(super) fn directory(&self) -> Option<&Path> {
        self.target.address().directory()
    }

    pub(super) fn measured(&self) -> Measured {
        let duration = self.duration.map_or(DEFAULT_DURATION, |Seconds(duration)| duration);
        let warmup = self.warmup.map_or_else(|| SlobPlanRequest::default_warmup(duration), |Seconds(warmup)| warmup);
        Measured { warmup, duration }
    }

    fn options(&self) -> Result<DatabaseOptions, Failure> {
        let options = self.server.options(self.target.address())?;
        Ok(DatabaseOptions { dry_run: self.keeping.dry_run, ..self.nodes.add_to(options) })
    }

    fn load(&self, users: Vec<u32>, rates: Vec<f64>) -> Result<OrdersLoad, Failure> {
        let duration = self.duration.map_or(DEFAULT_DURATION, |Seconds(duration)| duration);
        if duration < MIN_DURATION {
            let failure = Failure::new(format_args!("`--duration`: {duration} is shorter than one second"));
            return Err(failure.with_hint("write one second or more: `--duration 1`".to_owned()));
        }
        let (mix, between, inside) = (self.mix, self.think, self.think_inside);
        if !rates.is_empty() && !between.is_none() {
            let failure = Failure::new(
                "`--think` and `--rate` exclude each other: at a rate, pauses do not decide when the next \
                 transaction starts",
            );
            return Err(failure.with_hint("leave one of them out; `--think-inside` goes with both".to_owned()));
        }
        let arrival = self.arrival;
        Ok(OrdersLoad {
            users,
            options: OrdersOptions {
                mix,
                between,
                inside,
                duration_ns: duration,
                max_retries: self.max_retries,
                reconnect: self.reconnect,
                isolation: self.isolation.map(|level| level.words().to_owned()),
            },
            paces: rates.into_iter().map(|rate_per_s| Pace::Open { rate_per_s, arrival }).collect(),
            warmup: self.warmup.map(|Seconds(warmup)| warmup),
            lanes: self.lanes,
            seed: self.seed.given().unwrap_or_default(),
            tags: self.keeping.tags.clone(),
            processors: processors_for_sessions(self.target.address()),
        })
    }
}

/// Order entry that is planned and checked, on a database that is not open yet.
struct Planned<'a> {
    arguments: &'a LoadArgs,
    load: OrdersLoad,
    plan: OrdersPlan,
    joined: Joined,
    limits: Vec<LatencyTarget>,
    /// Whether no other part loads the same data.
    is_alone: bool,
    /// What the audit after the load says.
    is_sound: &'a Cell<bool>,
    database: Box<dyn OrdersDatabase>,
}

impl<'a> Work<'a> for Planned<'a> {
    fn outline(&self) -> Outline<'a> {
        let Self { arguments, plan, .. } = self;
        Outline {
            joined: Some(self.joined.clone()),
            limits: self.limits.clone(),
            is_simulated: arguments.target.address().has_simulated_time(),
            ..Outline::new(&plan.head, &arguments.keeping, Steps::of(&plan.steps))
        }
    }

    fn described(self) -> Result<DryRun, Failure> {
        self.database.close()?;
        let (plan, arguments) = (self.plan, self.arguments);
        let address = arguments.target.address().to_string();
        let mut described = DryRun::of(&plan.head, [("target", address), ("load for", plan.duration().to_string())]);
        if arguments.send.sending() == OrdersSending::Procedure {
            let names = TransactionKind::ALL.map(procedure_name).join(", ");
            described = described
                .line(
                    "sent as one call for each transaction; of these procedures, those that are missing would be made:",
                )
                .line(format_args!("  {names}"));
        }
        Ok(described.steps(&plan.steps, |step| {
            let rate = step.load.rate_operations_per_s.map(|rate| format!(" at {rate} transactions/s"));
            format!("{} users{} on {} threads", step.load.slots(), rate.unwrap_or_default(), step.lanes)
        }))
    }

    fn carry_out(self, beginning: Beginning<'_>) -> Result<Recorded, Failure> {
        let Self { arguments, load, plan, limits, is_alone, is_sound, database, .. } = self;
        let stop = beginning.interrupt.flag();
        let request = OrdersOpenRequest {
            users: plan.max_users(),
            inside: load.options.inside,
            max_retries: load.options.max_retries,
            reconnect: load.options.reconnect,
            isolation: load.options.isolation.as_deref(),
            sending: arguments.send.sending(),
            stop,
        };
        let OpenOrders { database, auditor } = beginning.opened(database.open(&request))?;
        if arguments.duration.is_none() {
            let takes = plan.duration();
            let words = format!("this run takes {takes} (the default duration); to shorten it: `--duration 10`");
            beginning.progress.line(&words);
        }
        let mut audit = |moment: Moment, recording: &mut Recording| {
            if moment == Moment::Post {
                if !is_alone && !arguments.no_audit {
                    recording.note(UNAUDITED.to_owned());
                }
                let audits = is_alone && !arguments.no_audit;
                is_sound.set(audit::after_load(&*auditor, recording, audits, stop));
            }
            Ok(())
        };
        database_load::record(beginning, database, Vec::new(), &mut audit, &mut |recording, target| {
            in_turn::run(recording, target, &plan.steps, &limits)
        })
    }
}

/// Refuses limits on what the run does not time.
fn check(limits: &[LatencyTarget], load: &OrdersLoad) -> Result<(), Failure> {
    let done = TransactionKind::ALL.into_iter().filter(|kind| load.options.mix.weight(*kind) > 0);
    let kinds: Vec<&str> = done.map(TransactionKind::name).collect();
    let is_of_connects = |limit: &LatencyTarget| limit.subject == Some(Subject::Event(CONNECT.to_owned()));
    if load.options.reconnect == Reconnect::Never && limits.iter().any(is_of_connects) {
        let failure = Failure::new("no connection is made while load runs, so a limit on `connect` judges nothing");
        return Err(failure.with_hint("have them made anew: `--reconnect every`".to_owned()));
    }
    limits::check(limits, &Judgeable::new(&kinds, &[CONNECT]))
}

/// Refuses, before there is any load, a file that could not be written after it.
fn check_results(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let why = if path.exists() {
        format!("`{}` is there already", path.display())
    } else if !folder.is_dir() {
        format!("there is no folder `{}`", folder.display())
    } else {
        return Ok(());
    };
    Err(Failure::new(why)
        .with_hint("name a file that is not there yet, in a folder that is: `--results FILE`".to_owned()))
}

/// Writes the only step of a run as Swingbench writes its results.
fn write_results(path: &Path, run: &Run) -> Result<(), Failure> {
    let Some(step) = run.steps.first() else { return Ok(()) };
    let mut text = Vec::new();
    let written = swingbench::write(run, step, &mut text).and_then(|()| {
        let mut file = files::make_new(path, How::default())?;
        file.write_all(&text)?;
        file.sync_all()
    });
    written.map_err(|error| {
        Failure::new(format_args!("the results cannot be written to `{}`: {error}", path.display()))
            .with_hint("the run itself is kept; name another file with `--results` the next time".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_name_transactions_as_people_do() {
        let read = |text: &str| text.parse::<LatencyTarget>().unwrap().of_transactions().to_string();
        let limit = "p99 of order products response time within 20.0 ms";
        for text in
            ["OP:p99=20ms", "op response:p99=20ms", "Order Products:p99=20ms", "order products response:p99=20ms"]
        {
            assert_eq!(read(text), limit, "{text}");
        }
        assert_eq!(read("OP service:p99=20ms"), limit.replace("response", "service"));
        assert_eq!(read("p99=20ms"), "p99 within 20.0 ms");
        assert_eq!(read("connect:p99=20ms"), "p99 of `connect` within 20.0 ms");
    }
}
