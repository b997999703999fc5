//! Order entry under load: servers found with whole data, watched and opened.

use std::sync::Arc;

use super::load::{OpenServers, background, describe, health, watch};
use super::reached::Reached;
use crate::data::catalog::{self, NamespaceFacts};
use crate::orders::OrdersDialect;
use crate::orders::audit::SqlAuditor;
use crate::orders::descriptor::OrdersData;
use crate::orders::load::{Ledger, OrdersSetting, Rules};
use crate::orders::procedures;
use crate::{SqlOptions, SqlTarget};
use measure::{Clock, Counter};
use targets::TargetError;
use targets::database::{DatabaseOptions, Sending};
use targets::orders::{OpenOrders, OrdersOpenRequest, OrdersSending};

/// What the sessions of order entry count.
const COUNTED: &[Counter] = &[Counter::Operations, Counter::Errors, Counter::Commits];

/// Begins to watch, and opens the servers. `address` is as it is shown.
pub(super) fn open<D: OrdersDialect>(
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
        let made = procedures::install(reached.access(), request.stop)?;
        if !made.is_empty() {
            notes
                .push(format!("{} procedures were made beside the tables; `orders drop` removes them too", made.len()));
        }
    }
    let mut facts = reached.facts()?;
    let watching = watch(&reached, options, block_bytes, 0, &facts)?;
    notes.extend(watching.notes);
    let observers = Arc::new(watching.observers);
    let own = [
        ("send", request.sending.word().to_owned()),
        ("timed_by", "client".to_owned()),
        ("orders.scale", data.scale.to_string()),
        ("orders.customers", data.sizes.customers.to_string()),
        ("orders.warehouses", data.sizes.warehouses.to_string()),
        ("orders.partitions", data.partitions.to_string()),
        ("orders.indexes", data.indexes.word().to_owned()),
        ("orders.seed", data.seed.to_string()),
    ];
    facts.extend(own.map(|(name, value)| (name.to_owned(), value)));
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
    .counting(COUNTED);
    let (connector, namespace) = (reached.connector.clone(), reached.namespace.clone());
    let database = Box::new(OpenServers { target, observers, reached, before: None, clock: Clock::start() });
    Ok(OpenOrders { database, auditor: Box::new(SqlAuditor { connector, namespace, ledger }) })
}
