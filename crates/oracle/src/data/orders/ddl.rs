//! Tables of order entry in Oracle's words.
//!
//! Names stand without quotes, so they are in capitals in the data dictionary, as whoever works with the tables by hand expects.

use crate::Connector;
use crate::sql::quoted;
use ::sql::SqlText as _;
use ::sql::orders::ddl::{self, list, next_number};
use ::sql::orders::load::procedure;
use ::sql::orders::{BuiltIndex, KeyStatements, OrdersData};
use model::workload::orders::Table;
use model::workload::orders::tables::{INDEXES, IndexPart, Key, SEQUENCES, Sequence};

/// How much of each block of sparse tables stays free, in percent, as in Swingbench.
const SPARSE_FREE: u32 = 90;
/// What would let rows into a block again where segment space is managed by hand; both together are 100 percent at most.
const SPARSE_USED: u32 = 10;
/// Transactions that may change a block at the same time without waiting for room to say so, as in Swingbench.
const TRANSACTIONS_OF_A_BLOCK: u32 = 16;
/// Numbers that an instance takes from a sequence at a time, as in Swingbench.
const CACHED_NUMBERS: u32 = 100_000;
/// Indexes whose keys have their bytes reversed, as in Swingbench, so that rows which come one after the other go to different
/// blocks of them.
const REVERSED: [&str; 12] = [
    "customers_pk",
    "addresses_pk",
    "card_details_pk",
    "orders_pk",
    "order_items_pk",
    "address_cust_ix",
    "item_order_ix",
    "item_product_ix",
    "ord_sales_rep_ix",
    "ord_customer_ix",
    "ord_order_date_ix",
    "ord_warehouse_ix",
];

fn table_name(namespace: &str, table: Table) -> String {
    Connector::qualified(namespace, table.name())
}

/// What stands behind the statement that makes a table.
pub(super) fn storage(data: &OrdersData, table: Table) -> String {
    let free = if table.is_sparse() { format!(" PCTFREE {SPARSE_FREE} PCTUSED {SPARSE_USED}") } else { String::new() };
    let spread = table.partitioned_by().zip(data.partitions_of(table));
    let spread = spread.map(|(by, partitions)| format!(" PARTITION BY HASH ({by}) PARTITIONS {partitions}"));
    let spread = spread.unwrap_or_default();
    format!("{free} INITRANS {TRANSACTIONS_OF_A_BLOCK} NOCOMPRESS{spread} NOPARALLEL")
}

/// What stands behind the columns of an index. One that has the column which decides on the partition has the same partitions.
fn layout(data: &OrdersData, table: Table, name: &str, columns: &[&str]) -> String {
    let is_local =
        data.partitions_of(table).is_some() && table.partitioned_by().is_some_and(|by| columns.contains(&by));
    let local = if is_local { " LOCAL" } else { "" };
    let reverse = if REVERSED.contains(&name) { " REVERSE" } else { "" };
    format!("{local}{reverse} NOPARALLEL")
}

/// The statement that builds an index.
pub(super) fn create_index(namespace: &str, data: &OrdersData, index: &BuiltIndex) -> String {
    let BuiltIndex { table, name, parts, is_unique } = index;
    let columns: Vec<&str> = parts
        .iter()
        .map(|part| match part {
            IndexPart::Column(name) | IndexPart::Lower(name) => *name,
        })
        .collect();
    format!(
        "CREATE {}INDEX {} ON {} ({}){}",
        if *is_unique { "UNIQUE " } else { "" },
        Connector::qualified(namespace, name),
        table_name(namespace, *table),
        ddl::parts::<Connector>(parts),
        layout(data, *table, name, &columns)
    )
}

/// How a table gets its key: an index is built beside others of its table, and a key is not.
pub(super) fn key_statements(namespace: &str, data: &OrdersData, table: Table, key: &Key) -> KeyStatements {
    let (columns, own) = (list::<Connector>(key.columns), Connector::qualified(namespace, key.name));
    let name = table_name(namespace, table);
    let add = format!("ALTER TABLE {name} ADD CONSTRAINT {} PRIMARY KEY ({columns}) USING INDEX {own}", key.name);
    let index = create_index(namespace, data, &BuiltIndex::of_key(table, key.name, key.columns));
    KeyStatements { index: Some(index), key: Some(add) }
}

/// Has a sequence number the rows of its table. Whoever was interrupted may have left one that numbers nothing yet.
pub(super) fn number_rows(namespace: &str, data: &OrdersData, sequence: &Sequence, is_there: bool) -> Vec<String> {
    let (name, own) = (table_name(namespace, sequence.table), Connector::qualified(namespace, sequence.name));
    let next = next_number(sequence.table, &data.sizes);
    let create = format!("CREATE SEQUENCE {own} START WITH {next} CACHE {CACHED_NUMBERS} NOORDER");
    let number = format!("ALTER TABLE {name} MODIFY ({} DEFAULT {own}.NEXTVAL)", sequence.column);
    (!is_there).then_some(create).into_iter().chain([number]).collect()
}

/// Gathers statistics of a table with its indexes.
pub(crate) fn gather_statistics(namespace: &str, table: Table) -> String {
    let owner = quoted(namespace).replace('\'', "''");
    format!(
        "BEGIN\n  DBMS_STATS.GATHER_TABLE_STATS(\n    ownname => '{owner}',\n    tabname => '{}',\n    degree => 1,\n    \
         no_invalidate => FALSE);\nEND;",
        table.name().to_uppercase()
    )
}

/// The statement that gives kind and name of everything whole that is the user's.
pub(crate) fn parts_there() -> String {
    "SELECT 'table' AS kind, LOWER(table_name) AS name FROM user_tables \
     UNION ALL SELECT 'sequence', LOWER(sequence_name) FROM user_sequences \
     UNION ALL SELECT 'index', LOWER(index_name) FROM user_indexes WHERE status IN ('VALID', 'N/A') \
     UNION ALL SELECT CASE constraint_type WHEN 'P' THEN 'key' WHEN 'R' THEN 'foreign_key' ELSE 'check' END, \
     LOWER(constraint_name) FROM user_constraints WHERE constraint_type IN ('P', 'R', 'C') AND status = 'ENABLED' \
     AND validated = 'VALIDATED'"
        .to_owned()
}

/// The statement that gives, of whatever has the name of a procedure of ours: its name, how it is named where it is dropped, and the
/// comment in the third line of its source, if it is a procedure.
pub(crate) fn procedures_there(namespace: &str) -> String {
    let owner = quoted(namespace).replace('\'', "''");
    format!(
        "SELECT LOWER(o.object_name) AS name, '{owner}.' || LOWER(o.object_name) AS reference, (SELECT \
         RTRIM(LTRIM(s.text, ' -'), CHR(10)) FROM user_source s WHERE s.name = o.object_name AND s.type = 'PROCEDURE' AND s.line = 3) AS mark \
         FROM user_objects o WHERE o.subobject_name IS NULL AND LOWER(o.object_name) IN ({}) ORDER BY name",
        procedure::names()
    )
}

/// The statement that gives names of procedures of ours that could not be compiled, and why.
pub(crate) fn broken_procedures() -> String {
    format!(
        "SELECT LOWER(e.name) AS name, e.text FROM user_errors e WHERE e.type = 'PROCEDURE' AND e.attribute = 'ERROR' \
         AND LOWER(e.name) IN ({}) ORDER BY name, e.sequence",
        procedure::names()
    )
}

/// Names of all that set-up makes, in capitals, as a list of texts.
pub(super) fn names() -> String {
    let tables = Table::ALL.into_iter().map(Table::name);
    let keys = Table::ALL.into_iter().filter_map(|table| table.key().map(|key| key.name));
    let indexes = INDEXES.iter().map(|index| index.name);
    let sequences = SEQUENCES.iter().map(|sequence| sequence.name);
    let names = tables.chain(keys).chain(indexes).chain(sequences);
    names.map(|name| format!("'{}'", name.to_uppercase())).collect::<Vec<_>>().join(", ")
}

/// Drops tables with their indexes and keys, and what numbers their rows.
pub(crate) fn drops(namespace: &str) -> Vec<String> {
    let tables = Table::ALL.into_iter().rev();
    let tables = tables.map(|table| format!("DROP TABLE {} CASCADE CONSTRAINTS PURGE", table_name(namespace, table)));
    let sequences = SEQUENCES.iter();
    let sequences =
        sequences.map(|sequence| format!("DROP SEQUENCE {}", Connector::qualified(namespace, sequence.name)));
    tables.chain(sequences).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sql::orders::ddl::checks_of;
    use sql::orders::{OrdersDialect as _, Parts, sample};
    use targets::orders::Indexes;

    fn all(data: &OrdersData) -> Vec<String> {
        let made = |table| Connector::create_orders_table("S", data, table, String::new()).remove(1);
        let created = Table::ALL.into_iter().map(made);
        let later = Connector::steps("S", data, &Parts::new()).into_iter().flat_map(|step| step.jobs);
        created.chain(later.flat_map(|job| job.statements)).collect()
    }

    #[test]
    fn tables_are_worded_as_the_server_takes_them() {
        insta::assert_snapshot!(all(&sample()).join(";\n"));
    }

    #[test]
    fn partitions_have_indexes_of_their_own_where_these_lead_to_one_of_them() {
        let data = OrdersData { partitions: 8, ..sample() };
        let statements = all(&data).join(";\n");
        for part in [
            "PARTITION BY HASH (order_id) PARTITIONS 8",
            "customers_pk ON \"S\".customers (customer_id) LOCAL REVERSE",
            "carddetails_cust_ix ON \"S\".card_details (customer_id) LOCAL NOPARALLEL",
            "card_details_pk ON \"S\".card_details (card_id) REVERSE",
        ] {
            assert!(statements.contains(part), "{part} in {statements}");
        }
    }

    #[test]
    fn what_is_there_is_not_made_again_and_what_is_not_asked_for_never() {
        let statements = |data: &OrdersData, there: &Parts| -> Vec<String> {
            Connector::steps("S", data, there)
                .into_iter()
                .flat_map(|step| step.jobs)
                .flat_map(|job| job.statements)
                .collect()
        };
        let whole = sql::orders::parts_of(&sample());
        // Which column a sequence numbers is said again.
        assert!(statements(&sample(), &whole).iter().all(|text| text.contains(" MODIFY (")));
        let none = OrdersData { indexes: Indexes::None, ..sample() };
        assert_eq!(statements(&none, &Parts::new()).len(), 2 * SEQUENCES.len());
        let keys = OrdersData { indexes: Indexes::Keys, ..sample() };
        assert_eq!(Connector::steps("S", &keys, &Parts::new())[0].jobs.len(), 9, "one for each key");
    }

    #[test]
    fn names_are_those_of_all_parts() {
        let names = names();
        for (_, name) in sql::orders::parts_of(&sample()) {
            let is_rule = checks_of_all().any(|rule| rule == name) || name.ends_with("_fk");
            assert!(is_rule || names.contains(&format!("'{}'", name.to_uppercase())), "{name}");
        }
    }

    fn checks_of_all() -> impl Iterator<Item = &'static str> {
        Table::ALL.into_iter().flat_map(checks_of).map(|check| check.name)
    }
}
