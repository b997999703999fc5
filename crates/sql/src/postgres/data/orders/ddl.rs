//! Tables of order entry in PostgreSQL's words.

use crate::SqlText as _;
use crate::orders::ddl::{check, checks_of, column, foreign_key, list, next_number};
use crate::orders::descriptor::{OrdersData, partition_name};
use crate::orders::{Job, Lacking, PartKind, Parts, Step};
use crate::postgres::Connector;
use crate::postgres::sql::{identifier, literal};
use model::workload::orders::Table;
use model::workload::orders::tables::{Index, IndexPart};
use targets::database::Phase;

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
    let columns = table.columns().iter().map(column::<Connector>);
    let parts: Vec<String> = columns.chain(checks_of(table).map(check::<Connector>)).collect();
    let make = format!("CREATE TABLE {name} ({})", parts.join(", "));
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

fn create_index(namespace: &str, index: &Index) -> String {
    let part = |part: &IndexPart| match part {
        IndexPart::Column(name) => identifier(name),
        IndexPart::Lower(name) => format!("lower({})", identifier(name)),
    };
    let parts: Vec<String> = index.parts.iter().map(part).collect();
    format!("CREATE INDEX {} ON {} ({})", identifier(index.name), table_name(namespace, index.table), parts.join(", "))
}

/// What is to be done once rows are loaded, but for what is there.
pub(super) fn steps(namespace: &str, data: &OrdersData, there: &Parts) -> Vec<Step> {
    let lacking = Lacking { data, there };
    let job = |doing: String, table: Table, statement: String| Job { doing, statements: vec![statement], table };
    let (mut indexes, mut keys) = (Vec::new(), Vec::new());
    for table in Table::ALL {
        let name = table_name(namespace, table);
        if let Some(key) = lacking.key(table) {
            let columns = list::<Connector>(&data.key_columns(table));
            let (key_name, doing) = (identifier(key.name), format!("build the key of {name}"));
            let add = format!("ALTER TABLE {name} ADD CONSTRAINT {key_name} PRIMARY KEY");
            if data.partitions_of(table).is_some() {
                indexes.push(job(doing, table, format!("{add} ({columns})")));
            } else {
                // An index is built beside others of its table, and a key is not.
                if lacking.lacks(PartKind::Index, key.name) {
                    indexes.push(job(doing, table, format!("CREATE UNIQUE INDEX {key_name} ON {name} ({columns})")));
                }
                keys.push(job(format!("add the key of {name}"), table, format!("{add} USING INDEX {key_name}")));
            }
        }
        indexes.extend(lacking.indexes(table).map(|index| {
            job(format!("build the index {}", identifier(index.name)), table, create_index(namespace, index))
        }));
        if let Some(sequence) = lacking.sequence(table) {
            let (column, own) = (identifier(sequence.column), Connector::qualified(namespace, sequence.name));
            let next = next_number(table, &data.sizes);
            let statement = format!(
                "CREATE SEQUENCE {own} START {next} CACHE {CACHED_NUMBERS} OWNED BY {name}.{column}; \
                 ALTER TABLE {name} ALTER COLUMN {column} SET DEFAULT nextval({}::regclass)",
                literal(&own)
            );
            keys.push(job(format!("make the sequence {own}"), table, statement));
        }
    }
    keys.extend(Table::ALL.into_iter().flat_map(|table| lacking.foreign_keys(table)).map(|key| {
        let name = table_name(namespace, key.table);
        let deferrable = if key.is_deferrable { " DEFERRABLE" } else { "" };
        let add = format!("ALTER TABLE {name} ADD {}{deferrable}", foreign_key::<Connector>(namespace, key));
        job(format!("add the foreign key {}", identifier(key.name)), key.table, add)
    }));
    vec![
        Step { phase: Phase::Index, is_parallel: true, jobs: indexes },
        // Foreign keys lock two tables each, so side by side they would wait for each other.
        Step { phase: Phase::Keys, is_parallel: false, jobs: keys },
    ]
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
    use crate::orders::descriptor::sample;
    use targets::orders::Indexes;

    fn all(data: &OrdersData) -> Vec<String> {
        let created = Table::ALL.into_iter().flat_map(|table| create_table("s", data, table));
        let later = steps("s", data, &Parts::new()).into_iter().flat_map(|step| step.jobs);
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
        assert!(steps("s", &sample(), &whole).iter().all(|step| step.jobs.is_empty()));
        let keys = OrdersData { indexes: Indexes::Keys, ..sample() };
        let built = &steps("s", &keys, &Parts::new())[0];
        assert_eq!(built.jobs.len(), 9, "one for each key");
        let none = OrdersData { indexes: Indexes::None, ..sample() };
        let [built, numbered] = &steps("s", &none, &Parts::new())[..] else { panic!() };
        assert_eq!((built.jobs.len(), numbered.jobs.len()), (0, 5), "sequences alone");
    }
}
