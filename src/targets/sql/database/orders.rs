//! Order entry on SQL servers: reached when something is asked of them, and left as they were found.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde_json::{Map, json};

use super::reached::{Reached, planned_cache, unfit};
use super::removal::ServerToRemove;
use super::{Place, SqlDatabase, orders_load};
use crate::measure::os;
use crate::targets::TargetError;
use crate::targets::database::{Cache, DatabaseOptions, DropPlan, Phase, Progress, SetupPlan, SetupReport, Sheet};
use crate::targets::orders::{
    Acknowledgements, Audit, OpenOrders, OrdersDatabase, OrdersOpenRequest, OrdersRequest, data_words,
};
use crate::targets::sql::data::access::Access;
use crate::targets::sql::data::catalog;
use crate::targets::sql::data::content::Content;
use crate::targets::sql::data::descriptor::{DataSet, Found, Stage};
use crate::targets::sql::data::found::Existing;
use crate::targets::sql::data::streams::Halt;
use crate::targets::sql::orders::audit::audit;
use crate::targets::sql::orders::ddl::{partition_name, partition_names};
use crate::targets::sql::orders::descriptor::OrdersData;
use crate::targets::sql::orders::procedures;
use crate::targets::sql::orders::setup::{self, OrdersPlan};
use crate::targets::sql::orders::source::Source;
use crate::targets::sql::orders::{Estimate, OrdersDialect, drops};
use crate::targets::sql::private::{Programs as _, inspect};
use crate::units::{Bytes, group_thousands};
use crate::workload::orders::Table;

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
            let estimate = D::estimate(&data, &Source::new(data.seed, data.sizes));
            refuse_without_room::<D>(directory, &estimate)?;
        }
        if self.planned()?.is_none() {
            self.reach(true, Some(request.streams), stop)?;
        }
        let Self { reached, options, place, .. } = self;
        Ok(match (reached, place) {
            (Some(reached), _) => Box::new(TablesPlan::new(reached, options, request)?),
            (None, Place::Private(directory)) => Box::new(NewServer::<D>::new(directory, options, request)),
            (None, Place::Servers(_)) => return Err(TargetError::NoData { address: self.address.clone() }),
        })
    }

    fn info(&mut self, stop: &AtomicBool) -> Result<Sheet, TargetError> {
        self.require_server()?;
        info(self.reach(false, None, stop)?.access())
    }

    fn plan_drop(&mut self, stop: &AtomicBool) -> Result<Box<dyn DropPlan + '_>, TargetError> {
        let only_ours = {
            let access = self.reach(false, None, stop)?.access();
            let mut session = D::open(access)?;
            catalog::require(access, D::look_for_orders(&mut session)?.found)?;
            marks_on_the_server::<D>(&mut session)? == 1
        };
        if let Some(directory) = self.directory().map(Path::to_owned).filter(|_| only_ours) {
            self.reached.take().map_or(Ok(()), Reached::leave)?;
            return Ok(Box::new(ServerToRemove::<D::Programs>::find(&directory, self.options.say)?));
        }
        Ok(Box::new(TablesToRemove::find(self.reach(false, None, stop)?.access())?))
    }

    fn open(mut self: Box<Self>, request: &OrdersOpenRequest<'_>) -> Result<OpenOrders, TargetError> {
        self.require_server()?;
        self.reach(false, Some(request.users), request.stop)?;
        let Self { reached, options, address, .. } = *self;
        let reached = reached.expect("it was reached just now");
        orders_load::open(reached, address, &options, request)
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

/// How many data sets of either kind are on the whole server, as far as this user may see them.
fn marks_on_the_server<D: OrdersDialect>(session: &mut D::Session<'_>) -> Result<usize, TargetError> {
    let marks = format!(
        "SELECT table_name FROM information_schema.tables WHERE table_name IN ('{}', '{}')",
        OrdersData::DATA_TABLE,
        DataSet::DATA_TABLE
    );
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
        Err(unfit::<D>(format!("there is no private server in `{}`", directory.display()), hint))
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
    Err(unfit::<D>(
        what,
        "lower `--scale`, leave indexes out (`--indexes keys`), or use another file system".to_owned(),
    ))
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

/// Tables that are to be made on a server that answers.
struct TablesPlan<'a, D> {
    plan: OrdersPlan<'a, D>,
    cache: Option<Cache>,
    notes: Vec<String>,
}

impl<'a, D: OrdersDialect> TablesPlan<'a, D> {
    fn new(reached: &'a Reached<D>, options: &DatabaseOptions, request: &OrdersRequest) -> Result<Self, TargetError> {
        let plan = setup::plan(&reached.access(), request)?;
        let mut notes = D::remarks_on(&plan.data);
        // What was loaded before has its room already.
        if plan.makes_data() && plan.existing == Existing::Nothing {
            match reached.room() {
                Some((directory, _)) => refuse_without_room::<D>(&directory, &plan.estimate)?,
                None => notes.push(format!(
                    "how much room the server has is not known; it needs about {}",
                    space_words::<D>(&plan.estimate)
                )),
            }
        }
        Ok(Self { cache: reached.cache(options.host_memory)?, plan, notes })
    }
}

impl<D: OrdersDialect> SetupPlan for TablesPlan<'_, D> {
    fn sheet(&self) -> Sheet {
        let (plan, request) = (&self.plan, &self.plan.request);
        let mut sheet = Sheet::default();
        sheet.add("server", format!("{}, {}", plan.access.node_name(), plan.version));
        sheet.add("database", plan.database.clone());
        sheet.add("there now", plan.existing.words(plan.makes_data()));
        sheet.add("data", request.words());
        sheet.add("seed", request.seed.to_string());
        if plan.makes_data() {
            let streams =
                if request.streams == 1 { "1 stream".to_owned() } else { format!("{} streams", request.streams) };
            let rows: f64 = Table::ALL.into_iter().map(|table| plan.source.rows_of(table)).sum();
            let rows = group_thousands(rows);
            sheet.add(
                "loaded by",
                format!("{streams}, about {rows} rows, {} of them to go", Bytes(plan.missing_bytes())),
            );
            sheet.add("space", space_words::<D>(&plan.estimate));
        }
        sheet
    }

    fn makes_data(&self) -> bool {
        self.plan.makes_data()
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn cache(&self) -> Option<Cache> {
        self.cache.clone()
    }

    fn mean_row_bytes(&self) -> Option<f64> {
        Some(self.plan.source.mean_row_bytes())
    }

    fn run(
        self: Box<Self>,
        progress: &(dyn Fn(Option<Phase>, Progress) + Sync),
        stop: &AtomicBool,
    ) -> Result<SetupReport, TargetError> {
        let (access, seed) = (self.plan.access, self.plan.request.seed);
        let done = setup::run(self.plan, &|phase, now| progress(Some(phase), now), stop)?;
        let loaded = done.loaded;
        let own = [
            ("server", json!(access.node_name())),
            (D::HOLDER_FIELD, json!(access.namespace)),
            ("bytes_found", json!(loaded.bytes_found)),
            ("phases_ns", json!(loaded.phases.iter().copied().collect::<BTreeMap<_, _>>())),
            ("validation", json!(done.validation)),
        ];
        Ok(SetupReport {
            place: access.place(),
            bytes_written: loaded.bytes_written,
            rows: Some(done.rows_written),
            elapsed_ns: loaded.elapsed_ns,
            phases: loaded.phases,
            seed,
            created: loaded.created,
            notes: loaded.notes,
            document: Map::from_iter(own.map(|(name, value)| (name.to_owned(), value))),
        })
    }

    fn after_interrupt(&self) -> &'static str {
        "the same command goes on from here"
    }
}

/// A private server that is not there yet, in words.
struct NewServer<'a, D> {
    directory: &'a Path,
    options: &'a DatabaseOptions,
    request: OrdersRequest,
    dialect: std::marker::PhantomData<D>,
}

impl<'a, D> NewServer<'a, D> {
    fn new(directory: &'a Path, options: &'a DatabaseOptions, request: &OrdersRequest) -> Self {
        Self { directory, options, request: request.clone(), dialect: std::marker::PhantomData }
    }
}

impl<D: OrdersDialect> SetupPlan for NewServer<'_, D> {
    fn sheet(&self) -> Sheet {
        let kind = D::Programs::KIND;
        let data = OrdersData::wanted(&self.request);
        let mut sheet = Sheet::default();
        sheet.add("directory", self.directory.display().to_string());
        sheet.add("there now", format!("nothing; a private {} would be made", kind.noun));
        sheet.add("cache", format!("{} of {}", self.options.db_cache, kind.buffers));
        sheet.add("data", self.request.words());
        sheet.add("space", space_words::<D>(&D::estimate(&data, &Source::new(data.seed, data.sizes))));
        sheet
    }

    fn makes_data(&self) -> bool {
        true
    }

    fn notes(&self) -> Vec<String> {
        D::remarks_on(&OrdersData::wanted(&self.request))
    }

    fn cache(&self) -> Option<Cache> {
        planned_cache::<D>(self.options)
    }

    /// # Errors
    /// Always: it was planned for its words alone.
    fn run(
        self: Box<Self>,
        _progress: &(dyn Fn(Option<Phase>, Progress) + Sync),
        _stop: &AtomicBool,
    ) -> Result<SetupReport, TargetError> {
        let what = format!("`{}` was only looked at", self.directory.display());
        Err(unfit::<D>(what, "leave out `--dry-run`".to_owned()))
    }

    fn after_interrupt(&self) -> &'static str {
        "nothing was made"
    }
}

/// What is known of the data without reading them.
fn info<D: OrdersDialect>(access: Access<'_, D>) -> Result<Sheet, TargetError> {
    let mut session = D::open(access)?;
    let facts = D::look_for_orders(&mut session)?;
    let Found { data, stage, made_namespace } = catalog::require(access, facts.found)?;
    let there = D::orders_objects(&mut session)?;
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
    let procedures: Vec<String> =
        procedures::ours::<D>(&mut session, access.namespace)?.into_iter().map(|there| there.name).collect();
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
    sheet.add("state", state_words(stage, in_use_by.as_deref()));
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

fn state_words(stage: Stage, in_use_by: Option<&str>) -> String {
    match (stage, in_use_by) {
        (Stage::Ready, _) => "whole".to_owned(),
        (Stage::Loading, Some(by)) => format!("being set up by {by}"),
        (Stage::Loading, None) => "its set-up was never finished; the same `orders setup` goes on".to_owned(),
        (Stage::Dropping, Some(by)) => format!("being removed by {by}"),
        (Stage::Dropping, None) => "half removed; `orders drop` removes the rest".to_owned(),
    }
}

/// Tables of order entry that are to be removed.
pub(in crate::targets) struct TablesToRemove<'a, D> {
    access: Access<'a, D>,
    /// Bare names and bytes of tables, the largest first.
    objects: Vec<(String, u64)>,
    /// Bare names of procedures.
    procedures: Vec<String>,
}

impl<'a, D: OrdersDialect> TablesToRemove<'a, D> {
    pub(in crate::targets) fn find(access: Access<'a, D>) -> Result<Self, TargetError> {
        let mut session = D::open(access)?;
        let found = catalog::require(access, D::look_for_orders(&mut session)?.found)?;
        let mut there = D::orders_objects(&mut session)?;
        let own = [OrdersData::DATA_TABLE, OrdersData::LOAD_TABLE].map(str::to_owned);
        let names = Table::ALL.into_iter().map(|table| table.name().to_owned());
        let names = names.chain(partition_names(&found.data)).chain(own);
        let mut objects: Vec<(String, u64)> = names.filter_map(|name| there.remove_entry(&name)).collect();
        objects.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        let procedures = procedures::ours::<D>(&mut session, access.namespace)?;
        Ok(Self { access, objects, procedures: procedures.into_iter().map(|there| there.name).collect() })
    }
}

impl<D: OrdersDialect> DropPlan for TablesToRemove<'_, D> {
    fn what(&self) -> String {
        let bytes = Bytes(self.objects.iter().map(|(_, bytes)| bytes).sum());
        let procedures = match self.procedures.len() {
            0 => String::new(),
            count => format!(" and {count} procedures"),
        };
        format!("{} tables{procedures} of order entry, {bytes}, in {}", self.objects.len(), self.access.place())
    }

    fn items(&self) -> Vec<(u64, String)> {
        let procedures = self.procedures.iter().map(|name| (0, name.clone()));
        self.objects.iter().map(|(name, bytes)| (*bytes, name.clone())).chain(procedures).collect()
    }

    fn run(self: Box<Self>, stop: &AtomicBool) -> Result<Option<String>, TargetError> {
        let access = self.access;
        let mut session = D::open(access)?;
        catalog::lock(access, &mut session)?;
        let found = catalog::require(access, D::look_for_orders(&mut session)?.found)?;
        let mut statements = procedures::drops::<D>(&mut session, access.namespace)?;
        statements.extend(drops::<D>(access.namespace));
        D::remove_orders(&mut session, &found, &statements, Halt::on(stop))?;
        Ok((!D::has_namespace(&mut session)?).then(|| format!("the {} itself", D::HOLDER)))
    }
}
