//! Order entry on SQL servers: reached when something is asked of them, and left as they were found.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};

use super::dialect::Dialect;
use super::reached::{Reached, unfit};
use super::removal::{ServerToRemove, TablesToRemove};
use super::setup::{NewServer, SetupWords, TablesPlan};
use super::{Place, SqlDatabase, orders_load, state_words};
use crate::data::access::Access;
use crate::data::catalog::{self, Keeps};
use crate::data::content::Content;
use crate::data::descriptor::{DataSet, Found};
use crate::data::found::{Estimate, Existing};
use crate::data::plan::Plan;
use crate::data::streams::Halt;
use crate::orders::OrdersDialect;
use crate::orders::audit::audit;
use crate::orders::descriptor::{OrdersData, partition_name};
use crate::orders::procedures;
use crate::orders::source::Source;
use crate::orders::validation::Validation;
use crate::private::inspect;
use measure::os;
use model::units::{Bytes, group_thousands};
use model::workload::orders::{Reconnect, Table};
use targets::TargetError;
use targets::database::{DatabaseOptions, DropPlan, SetupPlan, Sheet};
use targets::orders::{
    Acknowledgements, Audit, OpenOrders, OrdersDatabase, OrdersOpenRequest, OrdersRequest, data_words,
};

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
                marks_on_the_server::<D>(&mut session, &[OrdersData::DATA_TABLE, DataSet::DATA_TABLE])? == 1
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

/// Whether order entry is anywhere on a server, as far as this user may see it.
pub(super) fn holds_orders<D: Dialect>(access: &Access<'_, D>) -> Result<bool, TargetError> {
    Ok(marks_on_the_server::<D>(&mut D::open(*access)?, &[OrdersData::DATA_TABLE])? > 0)
}

/// How many data sets with one of these marks are on the whole server, as far as this user may see them.
fn marks_on_the_server<D: Dialect>(session: &mut D::Session<'_>, marks: &[&str]) -> Result<usize, TargetError> {
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
