//! What tables of order entry are made of, in a dialect's words.

use crate::SqlText;
use model::workload::orders::tables::{
    CHECKS, Check, Column, FOREIGN_KEYS, ForeignKey, INDEXES, Index, IndexPart, OnDelete, Rule, SEQUENCES, Sequence,
};
use model::workload::orders::{Sizes, Table};

/// Names in quotes, with commas between them.
pub fn list<W: SqlText>(names: &[&str]) -> String {
    names.iter().map(|name| W::quoted(name)).collect::<Vec<_>>().join(", ")
}

/// What an index is over, with commas between them.
pub fn parts<W: SqlText>(parts: &[IndexPart]) -> String {
    let part = |part: &IndexPart| match part {
        IndexPart::Column(name) => W::quoted(name),
        IndexPart::Lower(name) => W::lower(&W::quoted(name)),
    };
    parts.iter().map(part).collect::<Vec<_>>().join(", ")
}

/// `"customer_id" bigint NOT NULL`
pub fn column<W: SqlText>(column: &Column) -> String {
    let required = if column.is_required { " NOT NULL" } else { "" };
    format!("{} {}{required}", W::quoted(column.name), W::kind(column.kind))
}

/// Makes an empty table without keys.
pub fn create_table<W: SqlText>(namespace: &str, table: Table) -> String {
    let columns = table.columns().iter().map(column::<W>);
    let parts: Vec<String> = columns.chain(checks_of(table).map(check::<W>)).collect();
    format!("CREATE TABLE {} ({})", W::qualified(namespace, table.name()), parts.join(", "))
}

/// `CONSTRAINT "…" CHECK (…)`
pub fn check<W: SqlText>(check: &Check) -> String {
    let column = W::quoted(check.column);
    let rule = match check.rule {
        Rule::AtMost(most) => format!("{column} <= {most}"),
        Rule::AtLeast(least) => format!("{column} >= {least}"),
        Rule::OneOf(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
            format!("{column} IN ({})", words.join(", "))
        }
    };
    format!("CONSTRAINT {} CHECK ({rule})", W::quoted(check.name))
}

/// `CONSTRAINT "…" FOREIGN KEY (…) REFERENCES … (…)`
pub fn foreign_key<W: SqlText>(namespace: &str, key: &ForeignKey) -> String {
    let column = W::quoted(key.column);
    let then = match key.on_delete {
        OnDelete::Restrict => "",
        OnDelete::Cascade => " ON DELETE CASCADE",
    };
    let to = W::qualified(namespace, key.to.name());
    format!("CONSTRAINT {} FOREIGN KEY ({column}) REFERENCES {to} ({column}){then}", W::quoted(key.name))
}

/// Checks of a table.
pub fn checks_of(table: Table) -> impl Iterator<Item = &'static Check> {
    CHECKS.iter().filter(move |check| check.table == table)
}

/// Indexes of a table that are no key.
pub(crate) fn indexes_of(table: Table) -> impl Iterator<Item = &'static Index> {
    INDEXES.iter().filter(move |index| index.table == table)
}

/// Foreign keys of a table.
pub(crate) fn foreign_keys_of(table: Table) -> impl Iterator<Item = &'static ForeignKey> {
    FOREIGN_KEYS.iter().filter(move |key| key.table == table)
}

/// What numbers the rows of a table.
pub fn sequence_of(table: Table) -> Option<&'static Sequence> {
    SEQUENCES.iter().find(|sequence| sequence.table == table)
}

/// The number behind the last one that the rows of a table have at first.
pub fn next_number(table: Table, sizes: &Sizes) -> u64 {
    table.units(sizes) + 1
}
