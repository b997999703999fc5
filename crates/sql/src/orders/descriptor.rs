//! What a data set of order entry on a SQL server is.

use serde::{Deserialize, Serialize};

use crate::data::content::Content;
use model::workload::orders::tables::{INDEXES, SEQUENCES};
use model::workload::orders::{MAX_SCALE, MIN_SCALE, Sizes, Table};
use targets::orders::{Indexes, OrdersRequest};

/// Version of everything that set-up makes.
pub(crate) const FORMAT_VERSION: u32 = 1;

/// Bare name of a partition, from 0.
pub(crate) fn partition_name(table: Table, number: u32) -> String {
    format!("{}_p{}", table.name(), number + 1)
}

/// A data set of order entry, as its descriptor says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OrdersData {
    /// Version of the format of everything in the namespace.
    pub format_version: u32,
    /// Version of Plimsoll that began to make it.
    pub plimsoll_version: String,
    /// When it was begun, RFC 3339 in UTC.
    pub created_at: String,
    /// Seed of all rows.
    pub seed: u64,
    /// Scale: 1 is a million customers.
    pub scale: f64,
    /// Hash partitions of each table that has any; 0 without.
    pub partitions: u32,
    /// Which indexes it has.
    pub indexes: Indexes,
    /// Rows that it began with.
    pub sizes: Sizes,
}

impl Content for OrdersData {
    const NOUN: &'static str = "order entry data";
    const COMMAND: &'static str = "plimsoll orders";
    const DATA_TABLE: &'static str = "plimsoll_orders";
    const LOAD_TABLE: &'static str = "plimsoll_orders_load";
    const LOAD_COLUMNS: &'static [(&'static str, &'static str)] =
        &[("table_name", "varchar(40)"), ("first_unit", "bigint"), ("units", "bigint"), ("rows_loaded", "bigint")];
    const LOAD_KEY: usize = 2;
    const TABLES: &'static str = "`customers`, `orders`, …";
    const DROPPED: &'static str = "tables of order entry";
    const FORMAT_VERSION: u32 = FORMAT_VERSION;

    fn names() -> String {
        let tables = Table::ALL.map(|table| match table.partitioned_by() {
            Some(_) => format!("{}(_p[0-9]+)?", table.name()),
            None => table.name().to_owned(),
        });
        let keys = Table::ALL.into_iter().filter_map(|table| table.key().map(|key| key.name));
        let indexes = INDEXES.iter().map(|index| index.name);
        let sequences = SEQUENCES.iter().map(|sequence| sequence.name);
        let others: Vec<&str> = keys.chain(indexes).chain(sequences).collect();
        format!("^(plimsoll_orders(_load)?(_pkey)?|{}|{})$", tables.join("|"), others.join("|"))
    }

    fn objects(&self) -> Vec<String> {
        let partitions =
            |table: Table| (0..self.partitions_of(table).unwrap_or(0)).map(move |number| partition_name(table, number));
        Table::ALL
            .into_iter()
            .flat_map(|table| std::iter::once(table.name().to_owned()).chain(partitions(table)))
            .collect()
    }

    fn is_sensible(&self) -> bool {
        (MIN_SCALE..=MAX_SCALE).contains(&self.scale) && self.sizes.are_of(self.scale)
    }
}

impl OrdersData {
    /// The data that a request asks for.
    pub fn wanted(request: &OrdersRequest) -> Self {
        // To the second: fractions would only make the descriptor harder to read.
        let now = jiff::Timestamp::now().round(jiff::Unit::Second).unwrap_or_else(|_| jiff::Timestamp::now());
        Self {
            format_version: FORMAT_VERSION,
            plimsoll_version: env!("CARGO_PKG_VERSION").to_owned(),
            created_at: now.to_string(),
            seed: request.seed,
            scale: request.scale,
            partitions: request.partitions,
            indexes: request.indexes,
            sizes: Sizes::of(request.scale),
        }
    }

    /// How these data differ from what is asked for, in words; none if they do not.
    pub(crate) fn difference(&self, asked: &OrdersRequest) -> Option<String> {
        // Another scale says it all; alone, their number is that of data by a version before.
        let warehouses = match Sizes::of(asked.scale).warehouses {
            _ if asked.scale != self.scale => self.sizes.warehouses,
            warehouses => warehouses,
        };
        let figures = [
            ("the scale", self.scale.to_string(), asked.scale.to_string()),
            ("the number of warehouses", self.sizes.warehouses.to_string(), warehouses.to_string()),
            ("the number of partitions", self.partitions.to_string(), asked.partitions.to_string()),
            ("what is asked of indexes", self.indexes.word().to_owned(), asked.indexes.word().to_owned()),
            ("the seed", self.seed.to_string(), asked.seed.to_string()),
        ];
        let differ = figures.iter().filter(|(_, there, asked)| there != asked);
        let words: Vec<String> =
            differ.map(|(what, there, asked)| format!("{what} is {there} there and {asked} here")).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }

    /// The partitions of a table; none where it has no parts.
    pub fn partitions_of(&self, table: Table) -> Option<u32> {
        (self.partitions > 0 && table.partitioned_by().is_some()).then_some(self.partitions)
    }

    /// The columns of the key of a table: with partitions, the column that decides on the partition is always among them.
    pub(crate) fn key_columns(&self, table: Table) -> Vec<&'static str> {
        let mut columns = table.key().map_or_else(Vec::new, |key| key.columns.to_vec());
        if let Some(by) = table.partitioned_by().filter(|by| self.partitions > 0 && !columns.contains(by)) {
            columns.push(by);
        }
        columns
    }
}

/// A small data set, for tests.
#[cfg(any(test, feature = "test-servers"))]
pub fn sample() -> OrdersData {
    OrdersData {
        format_version: 1,
        plimsoll_version: "0".to_owned(),
        created_at: "2026-01-01T00:00:00Z".to_owned(),
        seed: 42,
        scale: 0.001,
        partitions: 0,
        indexes: Indexes::All,
        sizes: Sizes::of(0.001),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use targets::database::Replace;

    #[test]
    fn small_data_of_versions_before_are_loaded_as_they_are_and_never_gone_on_with() {
        let now = sample();
        let mut document = serde_json::to_value(&now).unwrap();
        document["sizes"].as_object_mut().unwrap().remove("warehouses");
        let before: OrdersData = serde_json::from_value(document).unwrap();
        assert!(before.is_sensible() && before.sizes.warehouses == 1_000);
        let OrdersData { scale, partitions, indexes, seed, .. } = now;
        let same = OrdersRequest {
            scale,
            partitions,
            indexes,
            seed,
            streams: 1,
            is_seed_asked: true,
            replace: Replace::Refuse,
        };
        assert_eq!(now.difference(&same), None);
        assert_eq!(before.difference(&same).unwrap(), "the number of warehouses is 1000 there and 10 here");
        let other = OrdersRequest { scale: 0.002, ..same };
        assert_eq!(now.difference(&other).unwrap(), "the scale is 0.001 there and 0.002 here");
    }
}
