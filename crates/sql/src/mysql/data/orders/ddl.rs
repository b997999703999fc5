//! Tables of order entry in the words of MySQL and MariaDB.

use crate::SqlText as _;
use crate::mysql::Connector;
use crate::mysql::sql::{literal, quoted};
use crate::orders::ddl::{check, checks_of, column, foreign_key, indexes_of, list, next_number, sequence_of};
use crate::orders::{Job, Lacking, OrdersData, PartKind, Parts, Step, parts_of as parts_of_all};
use model::workload::orders::Table;
use model::workload::orders::tables::{Column, Index, IndexPart};
use targets::database::Phase;
use targets::orders::Indexes;

fn table_name(namespace: &str, table: Table) -> String {
    Connector::qualified(namespace, table.name())
}

/// The column that holds a text in small letters: not every server can have an index on an expression.
fn lower_column(name: &str) -> String {
    format!("{name}_lower")
}

/// The columns of a table that the server fills.
fn generated(table: Table) -> impl Iterator<Item = String> {
    let lower = |part: &IndexPart| match part {
        IndexPart::Lower(name) => Some(*name),
        IndexPart::Column(_) => None,
    };
    let names = indexes_of(table).flat_map(move |index| index.parts.iter().filter_map(lower));
    names.filter_map(move |name| {
        let kind = Connector::kind(table.column(name)?.kind);
        Some(format!("{} {kind} GENERATED ALWAYS AS (LOWER({})) STORED", quoted(&lower_column(name)), quoted(name)))
    })
}

/// The column that the server numbers: it has to be the key.
fn numbered(table: Table) -> Option<&'static str> {
    let sequence = sequence_of(table)?;
    table.key().filter(|key| key.columns[0] == sequence.column).map(|_| sequence.column)
}

/// Whether a rule can be kept: the server lets none be on a column that it numbers.
fn is_kept(table: Table, column: &str) -> bool {
    numbered(table) != Some(column)
}

/// The statement that makes an empty table. It has its key at once, since rows lie in the order of it.
pub(super) fn create_table(namespace: &str, data: &OrdersData, table: Table) -> Vec<String> {
    let word = |of: &Column| {
        let rest = match numbered(table) {
            Some(name) if name == of.name => " AUTO_INCREMENT",
            // What no session numbers, since there is no key to number it by.
            _ if sequence_of(table).is_some_and(|sequence| sequence.column == of.name) => " DEFAULT 0",
            _ => "",
        };
        format!("{}{rest}", column::<Connector>(of))
    };
    let rules = checks_of(table).filter(|check| is_kept(table, check.column)).map(check::<Connector>);
    let key = table.key().map(|_| format!("PRIMARY KEY ({})", list::<Connector>(&data.key_columns(table))));
    let parts: Vec<String> = table.columns().iter().map(word).chain(generated(table)).chain(rules).chain(key).collect();
    let first = numbered(table).map(|_| format!(" AUTO_INCREMENT={}", next_number(table, &data.sizes)));
    let spread = table.partitioned_by().zip(data.partitions_of(table));
    let spread = spread.map(|(by, partitions)| format!(" PARTITION BY HASH ({}) PARTITIONS {partitions}", quoted(by)));
    vec![format!(
        "CREATE TABLE {} ({}) ENGINE=InnoDB{} DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin{}",
        table_name(namespace, table),
        parts.join(", "),
        first.unwrap_or_default(),
        spread.unwrap_or_default()
    )]
}

fn add_index(index: &Index) -> String {
    let part = |part: &IndexPart| match part {
        IndexPart::Column(name) => quoted(name),
        IndexPart::Lower(name) => quoted(&lower_column(name)),
    };
    let parts: Vec<String> = index.parts.iter().map(part).collect();
    format!("ADD INDEX {} ({})", quoted(index.name), parts.join(", "))
}

/// Whether there are foreign keys: the server has none on partitioned tables.
fn has_foreign_keys(data: &OrdersData) -> bool {
    data.indexes != Indexes::None && data.partitions == 0
}

/// What is to be done once rows are loaded, but for what is there.
pub(super) fn steps(namespace: &str, data: &OrdersData, there: &Parts) -> Vec<Step> {
    let lacking = Lacking { data, there };
    let (mut indexes, mut keys) = (Vec::new(), Vec::new());
    for table in Table::ALL {
        let name = table_name(namespace, table);
        let missing: Vec<String> = lacking.indexes(table).map(add_index).collect();
        if !missing.is_empty() {
            // All at once: the server goes through the table for them all together.
            let statements = vec![format!("ALTER TABLE {name} {}", missing.join(", "))];
            indexes.push(Job { doing: format!("build the indexes of {name}"), statements, table });
        }
        let missing = lacking.foreign_keys(table).filter(|_| has_foreign_keys(data));
        let missing: Vec<String> =
            missing.map(|key| format!("ADD {}", foreign_key::<Connector>(namespace, key))).collect();
        if !missing.is_empty() {
            // With checks, the server would copy the whole table; rows are as they were generated.
            let statements = vec![
                "SET SESSION foreign_key_checks = 0".to_owned(),
                format!("ALTER TABLE {name} {}", missing.join(", ")),
                "SET SESSION foreign_key_checks = 1".to_owned(),
            ];
            keys.push(Job { doing: format!("add the foreign keys of {name}"), statements, table });
        }
    }
    vec![
        Step { phase: Phase::Index, is_parallel: true, jobs: indexes },
        Step { phase: Phase::Keys, is_parallel: false, jobs: keys },
    ]
}

/// What a data set consists of here, where the server keeps rules or reads over them.
pub(super) fn parts_of(keeps_checks: bool, data: &OrdersData) -> Parts {
    let mut parts = parts_of_all(data);
    // Tables have their keys however few indexes there are, and number rows by them.
    parts.extend(Table::ALL.into_iter().filter_map(Table::key).map(|key| (PartKind::Key, key.name.to_owned())));
    parts.retain(|(kind, name)| match kind {
        PartKind::Sequence => false,
        PartKind::ForeignKey => has_foreign_keys(data),
        PartKind::Check => {
            let mut checks = Table::ALL.into_iter().flat_map(checks_of);
            keeps_checks && checks.any(|check| check.name == name && is_kept(check.table, check.column))
        }
        PartKind::Table | PartKind::Key | PartKind::Index => true,
    });
    parts
}

/// What differs from what was asked for.
pub(super) fn remarks(data: &OrdersData) -> Vec<String> {
    let mut remarks = Vec::new();
    if data.partitions > 0 && data.indexes != Indexes::None {
        remarks.push("there are no foreign keys: the server has none on partitioned tables".to_owned());
    }
    if data.indexes == Indexes::None {
        remarks.push("tables keep their primary keys: the server lays rows out and numbers them by these".to_owned());
    }
    remarks
}

/// The statement that gives kind and name of everything in the database. Keys have no names of their own here.
pub(super) fn parts_there(namespace: &str) -> String {
    let database = literal(namespace);
    let key_of = Table::ALL
        .into_iter()
        .filter_map(|table| table.key().map(|key| format!("WHEN '{}' THEN '{}'", table.name(), key.name)));
    let key_of = key_of.collect::<Vec<_>>().join(" ");
    format!(
        "SELECT 'table', table_name FROM information_schema.tables WHERE table_schema = {database} \
         UNION ALL SELECT DISTINCT IF(index_name = 'PRIMARY', 'key', 'index'), \
         IF(index_name = 'PRIMARY', CASE table_name {key_of} ELSE table_name END, index_name) \
         FROM information_schema.statistics WHERE table_schema = {database} \
         UNION ALL SELECT CASE constraint_type WHEN 'CHECK' THEN 'check' ELSE 'foreign_key' END, constraint_name \
         FROM information_schema.table_constraints \
         WHERE table_schema = {database} AND constraint_type IN ('CHECK', 'FOREIGN KEY')"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orders::sample;

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
    fn partitions_and_foreign_keys_exclude_each_other() {
        let data = OrdersData { partitions: 4, ..sample() };
        let statements = all(&data).join(";\n");
        assert!(statements.contains("PARTITION BY HASH (`order_id`) PARTITIONS 4") && !statements.contains("FOREIGN"));
        assert!(!parts_of(true, &data).iter().any(|(kind, _)| *kind == PartKind::ForeignKey));
        assert_eq!((remarks(&data).len(), remarks(&sample()).len()), (1, 0));
    }

    #[test]
    fn rules_are_only_expected_where_the_server_keeps_them() {
        let rules = |keeps_checks| {
            let parts = parts_of(keeps_checks, &sample());
            parts.iter().filter(|(kind, _)| *kind == PartKind::Check).count()
        };
        assert!(rules(true) > 0 && rules(false) == 0);
    }

    #[test]
    fn what_is_there_is_not_made_again() {
        assert!(steps("s", &sample(), &parts_of(true, &sample())).iter().all(|step| step.jobs.is_empty()));
    }
}
