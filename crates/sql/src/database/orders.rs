//! Order entry on SQL servers: reached when something is asked of them, and left as they were found.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};

use super::durable::CommitData;
use super::setup::{NewServer, SetupWords, TablesPlan};
use super::{
    Dialect, LocalFiles, Place, Reached, ServerToRemove, SqlDatabase, TablesToRemove, Watched, state_words, trace,
    unfit,
};
use crate::data::catalog::{self, Keeps, NamespaceFacts};
use crate::data::found::{Estimate, Existing};
use crate::data::plan::Plan;
use crate::data::streams::Halt;
use crate::data::{Access, Content, DataSet, Found, Shape};
use crate::orders::load::{Ledger, OrdersSetting, Rules};
use crate::orders::setup::Validation;
use crate::orders::{OrdersData, OrdersDialect, Source, SqlAuditor, audit, partition_name, procedures};
use crate::private::inspect;
use crate::{
    CheckHealth, Monitor, Observers, ServerReader, SlobTables, SqlOptions, SqlServers, SqlTarget, TakeBackground,
};
use measure::{Clock, Counter, os};
use model::record::{self, SentAs, ServerFacts, TargetFacts};
use model::units::{Bytes, group_thousands};
use model::workload::Operation;
use model::workload::orders::{Pauses, Reconnect, Table};
use targets::database::{DatabaseOptions, DropPlan, OpenDatabase, Sending, SetupPlan, Sheet};
use targets::orders::{
    Acknowledgements, Audit, OpenOrders, OrdersDatabase, OrdersOpenRequest, OrdersRequest, OrdersSending, data_words,
};
use targets::{Target as _, TargetError, TargetFor};

impl<D: OrdersDialect> OrdersDatabase for SqlDatabase<D> {
    fn plan_setup(
        &mut self,
        request: &OrdersRequest,
        stop: &AtomicBool,
    ) -> Result<Box<dyn SetupPlan + '_>, TargetError> {
        request.check()?;
        // Before a server is made for data that it has no room for.
        if let Some(directory) = self.directory()
            && inspect::<D::Programs>(directory)?.is_none()
        {
            let data = OrdersData::wanted(request);
            let estimate = D::SIZING.estimate(&data, &Source::of(&data));
            refuse_without_room::<D>(directory, &estimate)?;
        }
        if self.planned()?.is_none() {
            self.reach(true, Some(request.streams), stop)?;
        }
        let Self { reached, options, place, .. } = self;
        Ok(match (reached, place) {
            (Some(reached), _) => Box::new(TablesPlan::new(reached, options, request)?),
            (None, Place::Private(directory)) => Box::new(NewServer::<D, _>::new(directory, options, request)),
            (None, Place::Servers(_)) => return Err(TargetError::NoData { address: self.address.clone() }),
        })
    }

    fn info(&mut self, stop: &AtomicBool) -> Result<Sheet, TargetError> {
        self.require_server()?;
        info(self.reach(false, None, stop)?.access())
    }

    fn plan_drop(&mut self, stop: &AtomicBool) -> Result<Box<dyn DropPlan + '_>, TargetError> {
        if let Some(directory) = self.directory().map(Path::to_owned) {
            let only_ours = {
                let access = self.reach(false, None, stop)?.access();
                let mut session = D::open(access)?;
                catalog::require::<D, OrdersData>(access, D::look(&mut session)?.found)?;
                marks_on_the_server::<D>(
                    &mut session,
                    &[OrdersData::DATA_TABLE, DataSet::DATA_TABLE, CommitData::DATA_TABLE],
                )? == 1
            };
            if only_ours {
                self.reached.take().map_or(Ok(()), Reached::leave)?;
                return Ok(Box::new(ServerToRemove::<D::Programs>::find(&directory, self.options.say)?));
            }
        }
        Ok(Box::new(TablesToRemove::<_, OrdersData>::find(self.reach(false, None, stop)?.access())?))
    }

    fn open(mut self: Box<Self>, request: &OrdersOpenRequest<'_>) -> Result<OpenOrders, TargetError> {
        self.require_server()?;
        // A server may still be closing the connection that a user has left when it takes the next one.
        let sessions = match request.reconnect {
            Reconnect::Never => request.users,
            Reconnect::After(_) => request.users.saturating_mul(2),
        };
        self.reach(false, Some(sessions), request.stop)?;
        let Self { reached, options, address, .. } = *self;
        let reached = reached.expect("it was reached just now");
        open_orders_load(reached, address, &options, request)
    }

    fn audit(&mut self, acknowledged: &Acknowledgements, stop: &AtomicBool) -> Result<Audit, TargetError> {
        self.require_server()?;
        audit(self.reach(false, None, stop)?.access(), acknowledged, stop)
    }

    fn notes(&self) -> Vec<String> {
        self.reached.as_ref().map(Reached::notes).unwrap_or_default()
    }

    fn close(self: Box<Self>) -> Result<(), TargetError> {
        self.reached.map_or(Ok(()), Reached::leave)
    }
}

/// Whether data of other commands than SLOB's is anywhere on a server, as far as this user may see it.
pub(super) fn holds_others<D: Dialect>(access: &Access<'_, D>) -> Result<bool, TargetError> {
    let marks = [OrdersData::DATA_TABLE, CommitData::DATA_TABLE];
    Ok(marks_on_the_server::<D>(&mut D::open(*access)?, &marks)? > 0)
}

/// How many data sets with one of these marks are on the whole server, as far as this user may see them.
pub(super) fn marks_on_the_server<D: Dialect>(
    session: &mut D::Session<'_>,
    marks: &[&str],
) -> Result<usize, TargetError> {
    let names: Vec<String> = marks.iter().map(|mark| format!("'{mark}'")).collect();
    let marks = format!("SELECT table_name FROM information_schema.tables WHERE table_name IN ({})", names.join(", "));
    Ok(D::ask(session, "look for other data", &marks, Halt::NEVER)?.len())
}

impl<D: OrdersDialect> SqlDatabase<D> {
    /// Refuses a private server that was never made: its data are made by another command than SLOB's.
    fn require_server(&self) -> Result<(), TargetError> {
        let Some(directory) = self.directory() else { return Ok(()) };
        if inspect::<D::Programs>(directory)?.is_some() {
            return Ok(());
        }
        let hint = format!("make one, with data: `plimsoll orders setup --scale 0.1 --target {}`", self.address);
        Err(unfit(format!("there is no private server in `{}`", directory.display()), hint))
    }
}

/// Refuses data that do not fit into the file system of a private server.
fn refuse_without_room<D: OrdersDialect>(directory: &Path, estimate: &Estimate) -> Result<(), TargetError> {
    let there = directory.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
    let there = if there.as_os_str().is_empty() { Path::new(".") } else { there };
    let Some(space) = os::space(there) else { return Ok(()) };
    let (room, needed) = (Bytes(space.available_bytes), Bytes(estimate.total()));
    if needed <= room {
        return Ok(());
    }
    let what =
        format!("{room} are left in `{}`, and the data take about {}", there.display(), space_words::<D>(estimate));
    Err(unfit(what, "lower `--scale`, leave indexes out (`--indexes keys`), or use another file system".to_owned()))
}

/// Refuses data that do not fit into what room a server says that it has for tables and indexes.
fn refuse_without_room_there<D: OrdersDialect>(plan: &Plan<'_, D, OrdersRequest>) -> Result<(), TargetError> {
    let (room, needed) = (Bytes(plan.room.unwrap_or(u64::MAX)), Bytes(plan.estimate.tables + plan.estimate.indexes));
    if needed <= room {
        return Ok(());
    }
    let what = format!("{room} are left for {}, and tables and indexes take about {needed}", plan.access.place());
    let hint = "lower `--scale`, leave indexes out (`--indexes keys`), or have an administrator give more room";
    Err(plan.access.unfit(what, hint))
}

/// `2.1 GB: 1.3 GB of tables, …`
fn space_words<D: OrdersDialect>(estimate: &Estimate) -> String {
    let Estimate { tables, indexes, sorting, log } = *estimate;
    format!(
        "{}: {} of tables, {} of indexes, {} to sort and up to {} of {}",
        Bytes(estimate.total()),
        Bytes(tables),
        Bytes(indexes),
        Bytes(sorting),
        Bytes(log),
        D::LOG.0
    )
}

impl<D: OrdersDialect> SetupWords<D> for OrdersRequest {
    fn words(&self) -> String {
        OrdersRequest::words(self)
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn amount(plan: &Plan<'_, D, Self>) -> String {
        let source = Source::of(&plan.data);
        let rows: f64 = Table::ALL.into_iter().map(|table| source.rows_of(table)).sum();
        format!("about {} rows, {} of them to go", group_thousands(rows), Bytes(plan.missing_bytes()))
    }

    fn space(plan: &Plan<'_, D, Self>) -> String {
        space_words::<D>(&plan.estimate)
    }

    fn notes(plan: &Plan<'_, D, Self>, room: Option<(PathBuf, Bytes)>) -> Result<Vec<String>, TargetError> {
        let mut notes = D::remarks_on(&plan.data);
        // What was loaded before has its room already.
        if plan.makes_data() && plan.existing == Existing::Nothing {
            match room {
                Some((directory, _)) => refuse_without_room::<D>(&directory, &plan.estimate)?,
                None if plan.room.is_some() => refuse_without_room_there(plan)?,
                None => notes.push(format!(
                    "how much room the server has is not known; it needs about {}",
                    space_words::<D>(&plan.estimate)
                )),
            }
        }
        Ok(notes)
    }

    fn of_new_server(&self, _: &DatabaseOptions, sheet: &mut Sheet) -> Vec<String> {
        let data = OrdersData::wanted(self);
        sheet.add("data", OrdersRequest::words(self));
        sheet.add("space", space_words::<D>(&D::SIZING.estimate(&data, &Source::of(&data))));
        D::remarks_on(&data)
    }

    fn mean_row_bytes(data: &OrdersData) -> Option<f64> {
        Some(Source::of(data).mean_row_bytes())
    }

    fn document_of(validation: Option<&Validation>) -> Option<(&'static str, Value)> {
        Some(("validation", json!(validation)))
    }
}

/// What is known of the data without reading them.
fn info<D: OrdersDialect>(access: Access<'_, D>) -> Result<Sheet, TargetError> {
    let mut session = D::open(access)?;
    let facts = D::look(&mut session)?;
    let Found { data, stage, made_namespace }: Found<OrdersData> = catalog::require(access, facts.found)?;
    let there = <D as Keeps<OrdersData>>::objects(&mut session)?;
    let in_use_by = D::lock_holder(&mut session)?;
    let mut tables = BTreeMap::new();
    for table in Table::ALL {
        let parts = (0..data.partitions_of(table).unwrap_or(0)).map(|number| partition_name(table, number));
        let names = std::iter::once(table.name().to_owned()).chain(parts);
        let found: Vec<u64> = names.filter_map(|name| there.get(&name).copied()).collect();
        if !found.is_empty() {
            tables.insert(table.name(), found.iter().sum::<u64>());
        }
    }
    let bytes: u64 = tables.values().sum();
    let procedures = procedures::names_of_ours::<D>(&mut session, access.namespace)?;
    let mut sheet = Sheet::of(json!({
        "server": access.node_name(),
        "server_version": facts.version,
        (D::HOLDER_FIELD): access.namespace,
        "descriptor": data,
        "stage": stage,
        "in_use_by": in_use_by,
        "made_namespace": made_namespace,
        "table_bytes": tables,
        "bytes": bytes,
        "procedures": procedures,
    }));
    sheet.add("server", format!("{}, {}", access.node_name(), facts.version));
    sheet.add("database", facts.database);
    sheet.add("state", state_words::<OrdersData>(stage, in_use_by.as_deref()));
    sheet.add("made", format!("{}, format {}", data.created_at, data.format_version));
    sheet.add("data", format!("{}, seed {}", data_words(data.scale, data.partitions, data.indexes), data.seed));
    sheet.add("tables", format!("{}, {} with their indexes", tables.len(), Bytes(bytes)));
    for (name, bytes) in &tables {
        sheet.add("", format!("{:>10}  {name}", Bytes(*bytes).to_string()));
    }
    if !procedures.is_empty() {
        sheet.add("procedures", procedures.join(", "));
    }
    Ok(sheet)
}

/// What the sessions of order entry count.
const COUNTED: &[Counter] = &[Counter::Operations, Counter::Errors, Counter::Commits];

/// Begins to watch, and opens the servers. `address` is as it is shown.
fn open_orders_load<D: OrdersDialect>(
    reached: Reached<D>,
    address: String,
    options: &DatabaseOptions,
    request: &OrdersOpenRequest<'_>,
) -> Result<OpenOrders, TargetError> {
    let nodes = reached.connector.node_names().len();
    if nodes > 1 {
        // Each server numbers orders by itself, so what one acknowledged could not be looked for on the others.
        let what = format!("order entry is run on one server at a time, and the address leads to {nodes}");
        return Err(reached.access().unfit(
            what,
            "leave `--per-node` out, or load each by a command of its own beside the others: `plimsoll beside`",
        ));
    }
    let NamespaceFacts { found, block_bytes, .. } = D::look(&mut D::open(reached.access())?)?;
    let data: OrdersData = catalog::whole(reached.access(), found)?;
    if let Some(level) = request.isolation {
        reached.connector.check_isolation(level)?;
    }
    let mut notes = reached.notes();
    if request.sending == OrdersSending::Procedure {
        if request.inside != Pauses::None {
            notes.extend(D::check_pauses(reached.access())?.map(str::to_owned));
        }
        let made = procedures::install(reached.access(), request.stop)?;
        if !made.is_empty() {
            notes
                .push(format!("{} procedures were made beside the tables; `orders drop` removes them too", made.len()));
        }
    }
    let mut facts = reached.facts()?;
    let watching = watch(&reached, options, block_bytes, 0, &facts.server)?;
    notes.extend(watching.notes);
    let observers = Arc::new(watching.observers);
    let own = [
        ("timed_by", "client".to_owned()),
        ("orders.scale", data.scale.to_string()),
        ("orders.customers", data.sizes.customers.to_string()),
        ("orders.warehouses", data.sizes.warehouses.to_string()),
        ("orders.partitions", data.partitions.to_string()),
        ("orders.indexes", data.indexes.word().to_owned()),
        ("orders.seed", data.seed.to_string()),
    ];
    facts.other.extend(own.map(|(name, value)| (name.to_owned(), value)));
    facts.server.sent_as = Some(match request.sending {
        OrdersSending::Statement => SentAs::Statement,
        OrdersSending::Procedure => SentAs::Procedure,
    });
    let rules = Rules {
        sizes: data.sizes,
        inside: request.inside,
        max_retries: request.max_retries,
        reconnect: request.reconnect,
        sending: request.sending,
    };
    let ledger = Arc::new(Ledger::default());
    let isolation = request.isolation.map(str::to_owned);
    let setting = OrdersSetting { rules, isolation, ledger: Arc::clone(&ledger) };
    let target = SqlTarget::open(SqlOptions {
        product: D::PRODUCT,
        nodes: reached.connector.node_names(),
        servers: reached.connector.orders_servers(&reached.namespace, setting.clone()),
        work: setting,
        sending: Sending::Statement,
        description: describe(&reached, address, (block_bytes, None), watching.servers, facts),
        notes,
        background: Some(background(&observers)),
        health: Some(health(&observers)),
    })
    .counting(COUNTED)
    .with_why_gone(reached.why_gone());
    let (connector, namespace) = (reached.connector.clone(), reached.namespace.clone());
    let database = Box::new(OpenServers {
        target,
        observers,
        reached,
        before: None,
        files: watching.files,
        clock: Clock::start(),
    });
    Ok(OpenOrders { database, auditor: Box::new(SqlAuditor { connector, namespace, ledger }) })
}

/// Servers that are watched and open for load.
// The target and who watches are dropped first: monitor and tracer use the server.
struct OpenServers<D: Dialect, S: SqlServers, W> {
    pub(super) target: SqlTarget<S, W>,
    pub(super) observers: Arc<Observers<D::Reader>>,
    pub(super) reached: Reached<D>,
    /// SLOB's data, where that is what they hold.
    pub(super) before: Option<Before>,
    /// Files of the only server, if it runs on this machine.
    files: Vec<PathBuf>,
    pub(super) clock: Clock,
}

/// SLOB's data before the load.
struct Before {
    data: DataSet,
    /// Those of the first schemas are under load.
    schemas: u32,
    /// How the tables of each server lay.
    shapes: Vec<Option<Shape>>,
}

/// Proves how the data of so many schemas lie, begins to watch, and opens the servers. `address` is as it is shown.
pub(super) fn open_load<D: Dialect>(
    reached: Reached<D>,
    address: String,
    options: &DatabaseOptions,
    sending: Sending,
    data: DataSet,
    schemas: Option<u32>,
) -> Result<Box<dyn OpenDatabase>, TargetError> {
    let (connector, schemas) = (&reached.connector, schemas.unwrap_or(data.schemas));
    let nodes = connector.node_names().len();
    let mut notes = reached.notes();
    let mut facts = reached.facts()?;
    if sending == Sending::Statement {
        // A statement of its own ends with its commit, and waits for it.
        facts.server.commits_unwaited = None;
    }
    let mut databases = BTreeSet::new();
    for access in reached.nodes() {
        if nodes > 1 && D::database_of(&access)?.is_some_and(|database| !databases.insert(database)) {
            continue;
        }
        let proven = D::prove(&access, &data, schemas)?;
        notes.extend(proven.notes);
        facts.other.extend(proven.facts);
    }
    notes.extend(D::doubts(&facts.server, &data));
    let shapes = reached.nodes().map(|access| D::shape(&access, &data, schemas)).collect::<Result<_, _>>()?;
    let watching = watch(&reached, options, data.block_bytes, schemas, &facts.server)?;
    notes.extend(watching.notes);
    let observers = Arc::new(watching.observers);
    let own_reporter = options.own_report.map(|kind| connector.own_reporter(kind)).transpose()?;
    let (sent_as, timed_by) = match sending {
        Sending::Statement => (SentAs::Statement, "client"),
        Sending::Batch => (SentAs::Batch, "server"),
    };
    facts.server.sent_as = Some(sent_as);
    facts.other.insert("timed_by".to_owned(), timed_by.to_owned());
    let target = SqlTarget::open(SqlOptions {
        product: D::PRODUCT,
        nodes: connector.node_names(),
        servers: connector.servers(&reached.namespace, &data),
        work: SlobTables::of(connector, &reached.namespace, data.column_bytes),
        sending,
        description: describe(&reached, address, (data.block_bytes, Some(data.bytes())), watching.servers, facts),
        notes,
        background: Some(background(&observers)),
        health: Some(health(&observers)),
    })
    .with_own_reporter(own_reporter)
    .with_why_gone(reached.why_gone());
    let before = Some(Before { data, schemas, shapes });
    Ok(Box::new(OpenServers { target, observers, reached, before, files: watching.files, clock: Clock::start() }))
}

/// Who watches servers while load runs.
struct Watching<D: Dialect> {
    pub(crate) observers: Observers<D::Reader>,
    /// What the user should know about it.
    pub(crate) notes: Vec<String>,
    /// How many servers there are: a cluster that was named by one address has several.
    pub(crate) servers: usize,
    /// Files of the only server, if it runs on this machine.
    files: Vec<PathBuf>,
}

/// Begins to watch servers with blocks of so many bytes, of which `server` is known.
///
/// # Errors
/// When they cannot be asked.
fn watch<D: Dialect>(
    reached: &Reached<D>,
    options: &DatabaseOptions,
    block_bytes: u32,
    schemas: u32,
    server: &ServerFacts,
) -> Result<Watching<D>, TargetError> {
    let connector = &reached.connector;
    let nodes = connector.node_names().len();
    let watched = Watched { namespace: &reached.namespace, block_bytes, schemas, server, process: reached.process() };
    let monitor = Monitor::start(connector.reader(&watched))?;
    let mut notes = monitor.notes();
    let servers = nodes.max(monitor.servers());
    let process = match reached.process() {
        Some((pid, directory)) => Some((pid, Some(directory))),
        None if nodes == 1 => connector.process()?,
        None => None,
    };
    let local = process.map(LocalFiles::of);
    let tracer = options.trace.then(|| trace(nodes, local.as_ref(), &mut notes)).flatten();
    let files = local.map(|local| local.files).unwrap_or_default();
    Ok(Watching { observers: Observers::new(monitor, tracer), notes, servers, files })
}

/// What a target asks the observers for.
fn background<R: ServerReader>(observers: &Arc<Observers<R>>) -> TakeBackground {
    let watching = Arc::clone(observers);
    Box::new(move || watching.take())
}

/// How a target looks whether the servers are still there.
fn health<R: ServerReader>(observers: &Arc<Observers<R>>) -> CheckHealth {
    let watching = Arc::clone(observers);
    Box::new(move || watching.check())
}

impl<O: Operation, D: Dialect, S: SqlServers, W: Send + Sync> OpenDatabase<O> for OpenServers<D, S, W>
where
    SqlTarget<S, W>: TargetFor<O>,
{
    fn target(&self) -> &dyn TargetFor<O> {
        &self.target
    }

    fn clock(&self) -> Clock {
        self.clock
    }

    fn paths(&self) -> Vec<PathBuf> {
        self.files.clone()
    }

    fn notes_of_the_load(&self) -> Vec<String> {
        let mut notes = self.target.notes_of_the_load();
        let known = self.target.notes();
        notes.extend(self.observers.notes().into_iter().filter(|note| !known.contains(note)));
        let Some(Before { data, schemas, shapes }) = &self.before else { return notes };
        for (access, before) in self.reached.nodes().zip(shapes) {
            match D::shape(&access, data, *schemas) {
                Ok(now) => notes.extend(now.zip(before.as_ref()).and_then(|(now, before)| now.changed_since(before))),
                // A server that is gone has been reported already.
                Err(_) => {
                    notes.push(format!("whether the tables of `{}` kept their shape is not known", access.node_name()));
                }
            }
        }
        notes
    }

    fn have_commits_wait(&self, wait: bool) -> Result<Option<&'static str>, TargetError> {
        let Some([setting, lift, put_back]) = D::UNWAITED.filter(|_| self.reached.server.is_some()) else {
            return Ok(None);
        };
        let mut session = D::open(self.reached.access())?;
        let doing = "change whether commits wait for the log";
        D::execute(&mut session, doing, if wait { put_back } else { lift }, Halt::NEVER)?;
        Ok(Some(setting))
    }

    fn close(self: Box<Self>) -> Result<(), TargetError> {
        let Self { target, observers, reached, .. } = *self;
        drop((target, observers));
        reached.leave()
    }
}

/// Servers as a target, for the record: `address` is as it is shown; `block_bytes` and the bytes of all data as far as they are known.
fn describe<D: Dialect>(
    reached: &Reached<D>,
    address: String,
    (block_bytes, data_bytes): (u32, Option<u64>),
    servers: usize,
    mut facts: TargetFacts,
) -> record::Target {
    let own = [("schema", reached.namespace.clone()), ("nodes", servers.to_string())];
    facts.other.extend(own.map(|(name, value)| (name.to_owned(), value)));
    record::Target {
        kind: Some(D::PRODUCT.kind.clone()),
        address,
        block_bytes: Some(u64::from(block_bytes)),
        data_bytes,
        cache_bytes: None,
        cache_blocks: None,
        facts,
    }
}
