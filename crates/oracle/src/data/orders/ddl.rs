//! Tables of order entry in Oracle's words.
//!
//! Names stand without quotes, so they are in capitals in the data dictionary, as whoever works with the tables by hand expects.

use crate::Connector;
use crate::sql::quoted;
use ::sql::SqlText as _;
use ::sql::orders::ddl::{check, checks_of, column, foreign_key, list, next_number, sequence_of};
use ::sql::orders::descriptor::OrdersData;
use ::sql::orders::load::procedure;
use ::sql::orders::{Job, Lacking, PartKind, Parts, Step};
use model::workload::orders::Table;
use model::workload::orders::tables::{INDEXES, Index, IndexPart, SEQUENCES};
use targets::database::Phase;

/// How much of each block of sparse tables stays free, in percent, as in Swingbench.
const SPARSE_FREE: u32 = 90;
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

/// The statement that makes an empty table without keys.
pub(crate) fn create_table(namespace: &str, data: &OrdersData, table: Table) -> String {
    let columns = table.columns().iter().map(column::<Connector>);
    let parts: Vec<String> = columns.chain(checks_of(table).map(check::<Connector>)).collect();
    let free = if table.is_sparse() { format!(" PCTFREE {SPARSE_FREE}") } else { String::new() };
    let spread = table.partitioned_by().zip(data.partitions_of(table));
    let spread = spread.map(|(by, partitions)| format!(" PARTITION BY HASH ({by}) PARTITIONS {partitions}"));
    format!(
        "CREATE TABLE {} ({}){free} INITRANS {TRANSACTIONS_OF_A_BLOCK} NOCOMPRESS{} NOPARALLEL",
        table_name(namespace, table),
        parts.join(", "),
        spread.unwrap_or_default()
    )
}

/// What stands behind the columns of an index. One that has the column which decides on the partition has the same partitions.
fn layout(data: &OrdersData, table: Table, name: &str, columns: &[&str]) -> String {
    let is_local =
        data.partitions_of(table).is_some() && table.partitioned_by().is_some_and(|by| columns.contains(&by));
    let local = if is_local { " LOCAL" } else { "" };
    let reverse = if REVERSED.contains(&name) { " REVERSE" } else { "" };
    format!("{local}{reverse} NOPARALLEL")
}

fn create_index(namespace: &str, data: &OrdersData, index: &Index) -> String {
    let part = |part: &IndexPart| match part {
        IndexPart::Column(name) => (*name).to_owned(),
        IndexPart::Lower(name) => format!("LOWER({name})"),
    };
    let column = |part: &IndexPart| match part {
        IndexPart::Column(name) | IndexPart::Lower(name) => *name,
    };
    let parts: Vec<String> = index.parts.iter().map(part).collect();
    let columns: Vec<&str> = index.parts.iter().map(column).collect();
    format!(
        "CREATE INDEX {} ON {} ({}){}",
        Connector::qualified(namespace, index.name),
        table_name(namespace, index.table),
        parts.join(", "),
        layout(data, index.table, index.name, &columns)
    )
}

/// What is to be done once rows are loaded, but for what is there.
pub(crate) fn steps(namespace: &str, data: &OrdersData, there: &Parts) -> Vec<Step> {
    let lacking = Lacking { data, there };
    let job = |doing: String, table: Table, statement: String| Job { doing, statements: vec![statement], table };
    let (mut indexes, mut keys) = (Vec::new(), Vec::new());
    for table in Table::ALL {
        let name = table_name(namespace, table);
        if let Some(key) = lacking.key(table) {
            let (columns, own) = (list::<Connector>(key.columns), Connector::qualified(namespace, key.name));
            // An index is built beside others of its table, and a key is not.
            if lacking.lacks(PartKind::Index, key.name) {
                let layout = layout(data, table, key.name, key.columns);
                let build = format!("CREATE UNIQUE INDEX {own} ON {name} ({columns}){layout}");
                indexes.push(job(format!("build the key of {name}"), table, build));
            }
            let add =
                format!("ALTER TABLE {name} ADD CONSTRAINT {} PRIMARY KEY ({columns}) USING INDEX {own}", key.name);
            keys.push(job(format!("add the key of {name}"), table, add));
        }
        indexes.extend(
            lacking.indexes(table).map(|index| {
                job(format!("build the index {}", index.name), table, create_index(namespace, data, index))
            }),
        );
        if let Some(sequence) = sequence_of(table) {
            let own = Connector::qualified(namespace, sequence.name);
            let create = format!(
                "CREATE SEQUENCE {own} START WITH {} CACHE {CACHED_NUMBERS} NOORDER",
                next_number(table, &data.sizes)
            );
            // Whoever was interrupted may have left a sequence that numbers nothing yet.
            let number = format!("ALTER TABLE {name} MODIFY ({} DEFAULT {own}.NEXTVAL)", sequence.column);
            let create = lacking.sequence(table).map(|_| create);
            let statements = create.into_iter().chain([number]).collect();
            keys.push(Job { doing: format!("make the sequence {own}"), statements, table });
        }
    }
    keys.extend(Table::ALL.into_iter().flat_map(|table| lacking.foreign_keys(table)).map(|key| {
        let name = table_name(namespace, key.table);
        let deferrable = if key.is_deferrable { " DEFERRABLE" } else { "" };
        let add = format!("ALTER TABLE {name} ADD {}{deferrable}", foreign_key::<Connector>(namespace, key));
        job(format!("add the foreign key {}", key.name), key.table, add)
    }));
    vec![
        Step { phase: Phase::Index, is_parallel: true, jobs: indexes },
        // Foreign keys lock two tables each, so side by side they would wait for each other.
        Step { phase: Phase::Keys, is_parallel: false, jobs: keys },
    ]
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
    use sql::orders::descriptor::sample;
    use targets::orders::Indexes;

    fn all(data: &OrdersData) -> Vec<String> {
        let created = Table::ALL.into_iter().map(|table| create_table("S", data, table));
        let later = steps("S", data, &Parts::new()).into_iter().flat_map(|step| step.jobs);
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
            steps("S", data, there).into_iter().flat_map(|step| step.jobs).flat_map(|job| job.statements).collect()
        };
        let whole = sql::orders::parts_of(&sample());
        // Which column a sequence numbers is said again.
        assert!(statements(&sample(), &whole).iter().all(|text| text.contains(" MODIFY (")));
        let none = OrdersData { indexes: Indexes::None, ..sample() };
        assert_eq!(statements(&none, &Parts::new()).len(), 2 * SEQUENCES.len());
        let keys = OrdersData { indexes: Indexes::Keys, ..sample() };
        assert_eq!(steps("S", &keys, &Parts::new())[0].jobs.len(), 9, "one for each key");
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
