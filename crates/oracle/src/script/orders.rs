//! What is sent for order entry, for whoever reads it without a server: parsers do.

use crate::Connector;
use crate::data::orders::{ROOM, ddl, load};
use crate::orders::texts;
use crate::sql::{DESCRIBED, ORDERS, Sql};
use ::sql::orders::load::procedure::Procedure;
use ::sql::orders::{OrdersData, OrdersDialect as _, Parts};
use model::workload::orders::Table;
use targets::database::Replace;
use targets::orders::{Indexes, OrdersRequest};

/// Each statement and block of set-up, load and removal for data of this user, as it is sent; what is no block ends without a
/// semicolon.
pub fn order_entry(user: &str) -> Vec<String> {
    let sql = Sql::new(user, 0);
    let mut all: Vec<String> = sql.create_own_tables(&ORDERS).into_iter().map(|(_, statement)| statement).collect();
    all.extend([
        DESCRIBED.to_owned(),
        ROOM.to_owned(),
        ORDERS.own_columns(),
        ORDERS.descriptor_columns(),
        sql.insert_descriptor(&ORDERS),
        sql.read_descriptor(&ORDERS),
        sql.insert_mark(&ORDERS),
        sql.set_stage(&ORDERS),
        ddl::parts_there(),
        ddl::procedures_there(user),
        ddl::broken_procedures(),
    ]);
    for partitions in [0, 32] {
        let data = OrdersData::wanted(&OrdersRequest {
            scale: 1.0,
            partitions,
            indexes: Indexes::All,
            streams: 1,
            seed: 42,
            is_seed_asked: true,
            replace: Replace::Refuse,
        });
        let made = |table| Connector::create_orders_table(user, &data, table, String::new()).remove(1);
        all.extend(Table::ALL.map(made));
        let jobs = Connector::steps(user, &data, &Parts::new()).into_iter().flat_map(|step| step.jobs);
        all.extend(jobs.flat_map(|job| job.statements));
    }
    all.extend(Table::ALL.map(|table| load::insert_rows(user, table)));
    all.extend(Table::ALL.map(|table| ddl::gather_statistics(user, table)));
    all.extend(texts(user));
    all.extend(Procedure::all::<Connector>(user).into_iter().map(|procedure| procedure.text));
    all.extend(ddl::drops(user));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_it_names_the_user_and_binds_each_value_once() {
        let all = order_entry("PLIMSOLL");
        assert!(all.len() > 150, "{}", all.len());
        for text in &all {
            assert!(text.contains("\"PLIMSOLL\"") || text.contains(" user_") || text.contains("dba_"), "{text}");
            let mut bound: Vec<&str> = text
                .split(':')
                .skip(1)
                .map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default())
                .filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
                .collect();
            let count = bound.len();
            bound.sort_unstable();
            bound.dedup();
            assert_eq!(bound.len(), count, "{text}");
        }
    }
}
