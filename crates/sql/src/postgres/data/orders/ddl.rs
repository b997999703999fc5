//! Tables of order entry in PostgreSQL's words.

use crate::SqlText as _;
use crate::orders::ddl::{self, list, next_number};
use crate::orders::descriptor::{OrdersData, partition_name};
use crate::orders::{BuiltIndex, KeyStatements, OrdersDialect as _};
use crate::postgres::Connector;
use crate::postgres::sql::{identifier, literal};
use model::workload::orders::Table;
use model::workload::orders::tables::{Key, Sequence};

/// How full blocks of sparse tables are loaded, in percent: the least that PostgreSQL can.
const SPARSE_FILL: u32 = 10;
/// Numbers that a session takes from a sequence at a time. Each session has its own, so many more would leave large gaps.
const CACHED_NUMBERS: u32 = 100;

fn table_name(namespace: &str, table: Table) -> String {
    Connector::qualified(namespace, table.name())
}

/// Settings of a table's storage while it is loaded. Nobody else should look at it then: it is vacuumed at the end anyway.
fn storage(table: Table) -> String {
    let sparse = if table.is_sparse() { format!("fillfactor = {SPARSE_FILL}, ") } else { String::new() };
    format!("WITH ({sparse}autovacuum_enabled = off)")
}

/// Statements that make an empty table without keys.
pub(super) fn create_table(namespace: &str, data: &OrdersData, table: Table) -> Vec<String> {
    let name = table_name(namespace, table);
    let make = ddl::create_table::<Connector>(namespace, table);
    let (Some(by), Some(partitions)) = (table.partitioned_by(), data.partitions_of(table)) else {
        return vec![format!("{make} {}", storage(table))];
    };
    let partition = |number: u32| {
        format!(
            "CREATE TABLE {} PARTITION OF {name} FOR VALUES WITH (MODULUS {partitions}, REMAINDER {number}) {}",
            Connector::qualified(namespace, &partition_name(table, number)),
            storage(table)
        )
    };
    let parent = format!("{make} PARTITION BY HASH ({})", identifier(by));
    std::iter::once(parent).chain((0..partitions).map(partition)).collect()
}

/// How a table gets its key: one that is partitioned at once, since a key cannot be made of an index there.
pub(super) fn key_statements(namespace: &str, data: &OrdersData, table: Table, key: &Key) -> KeyStatements {
    let (columns, name) = (data.key_columns(table), identifier(key.name));
    let add = format!("ALTER TABLE {} ADD CONSTRAINT {name} PRIMARY KEY", table_name(namespace, table));
    if data.partitions_of(table).is_some() {
        let whole = format!("{add} ({})", list::<Connector>(&columns));
        return KeyStatements { index: Some(whole), key: None };
    }
    let index = Connector::create_index(namespace, data, &BuiltIndex::of_key(table, key.name, &columns));
    KeyStatements { index: Some(index), key: Some(format!("{add} USING INDEX {name}")) }
}

/// Has a sequence number the rows of its table.
pub(super) fn number_rows(namespace: &str, data: &OrdersData, sequence: &Sequence) -> String {
    let (name, own) = (table_name(namespace, sequence.table), Connector::qualified(namespace, sequence.name));
    let (column, next) = (identifier(sequence.column), next_number(sequence.table, &data.sizes));
    format!(
        "CREATE SEQUENCE {own} START {next} CACHE {CACHED_NUMBERS} OWNED BY {name}.{column}; \
         ALTER TABLE {name} ALTER COLUMN {column} SET DEFAULT nextval({}::regclass)",
        literal(&own)
    )
}

/// The statement that gives kind and name of everything whole in the schema.
pub(super) fn parts_there(namespace: &str) -> String {
    format!(
        "WITH here AS (SELECT oid FROM pg_namespace WHERE nspname = {}) \
         SELECT CASE WHEN relkind IN ('r', 'p') THEN 'table' WHEN relkind = 'S' THEN 'sequence' ELSE 'index' END, relname::text \
         FROM pg_class WHERE relnamespace IN (SELECT oid FROM here) AND (relkind IN ('r', 'p', 'S') \
         OR oid IN (SELECT indexrelid FROM pg_index WHERE indisvalid)) \
         UNION ALL SELECT CASE contype WHEN 'p' THEN 'key' WHEN 'f' THEN 'foreign_key' ELSE 'check' END, conname::text \
         FROM pg_constraint WHERE connamespace IN (SELECT oid FROM here) AND contype IN ('p', 'f', 'c') AND convalidated",
        literal(namespace)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orders::Parts;
    use crate::orders::descriptor::sample;
    use targets::orders::Indexes;

    fn all(data: &OrdersData) -> Vec<String> {
        let created = Table::ALL.into_iter().flat_map(|table| create_table("s", data, table));
        let later = Connector::steps("s", data, &Parts::new()).into_iter().flat_map(|step| step.jobs);
        created.chain(later.flat_map(|job| job.statements)).collect()
    }

    #[test]
    fn tables_are_worded_as_the_server_takes_them() {
        insta::assert_snapshot!(all(&sample()).join(";\n"));
    }

    #[test]
    fn partitioned_tables_have_the_column_that_decides_in_their_key() {
        let data = OrdersData { partitions: 2, ..sample() };
        let statements = all(&data);
        let has = |part: &str| assert!(statements.iter().any(|text| text.contains(part)), "{part} in {statements:#?}");
        has("PARTITION BY HASH (\"customer_id\")");
        has("CREATE TABLE \"s\".\"orders_p2\" PARTITION OF \"s\".\"orders\" FOR VALUES WITH (MODULUS 2, REMAINDER 1)");
        has("ADD CONSTRAINT \"card_details_pk\" PRIMARY KEY (\"card_id\", \"customer_id\")");
        let made = statements.iter().filter(|text| text.contains("CREATE TABLE")).count();
        assert_eq!(made, 11 + 5 * 2);
    }

    #[test]
    fn what_is_there_is_not_made_again_and_what_is_not_asked_for_never() {
        let whole = crate::orders::parts_of(&sample());
        assert!(Connector::steps("s", &sample(), &whole).iter().all(|step| step.jobs.is_empty()));
        let keys = OrdersData { indexes: Indexes::Keys, ..sample() };
        let built = &Connector::steps("s", &keys, &Parts::new())[0];
        assert_eq!(built.jobs.len(), 9, "one for each key");
        let none = OrdersData { indexes: Indexes::None, ..sample() };
        let [built, numbered] = &Connector::steps("s", &none, &Parts::new())[..] else { panic!() };
        assert_eq!((built.jobs.len(), numbered.jobs.len()), (0, 5), "sequences alone");
    }
}
