use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::tables::Kind;
use super::*;

/// A field as it was handed over.
#[derive(Clone, Debug, PartialEq)]
enum Field {
    Null,
    Whole(i64),
    Money(i64),
    Text(String),
    Day(i32),
    Instant(i64),
}

/// Rows as they were handed over.
#[derive(Debug, Default, PartialEq)]
struct Kept(Vec<Vec<Field>>);

impl Kept {
    fn add(&mut self, field: Field) {
        self.0.last_mut().unwrap().push(field);
    }
}

impl Fields for Kept {
    fn begin_row(&mut self) {
        self.0.push(Vec::new());
    }
    fn null(&mut self) {
        self.add(Field::Null);
    }
    fn whole(&mut self, number: i64) {
        self.add(Field::Whole(number));
    }
    fn money(&mut self, cents: i64) {
        self.add(Field::Money(cents));
    }
    fn text(&mut self, parts: &[&str]) {
        self.add(Field::Text(parts.concat()));
    }
    fn day(&mut self, days: i32) {
        self.add(Field::Day(days));
    }
    fn instant(&mut self, micros: i64) {
        self.add(Field::Instant(micros));
    }
    fn end_row(&mut self) {}
}

fn rows() -> Rows {
    Rows::new(42, Sizes::of(0.001))
}

fn kept(rows: &Rows, table: Table, units: Range<u64>) -> Vec<Vec<Field>> {
    let mut kept = Kept::default();
    let count = rows.each(table, units, &mut kept);
    assert_eq!(kept.0.len() as u64, count);
    kept.0
}

fn all(rows: &Rows, table: Table) -> Vec<Vec<Field>> {
    kept(rows, table, 0..table.units(rows.sizes()))
}

/// The numbers of a column, in hundredths where it is money; 0 where there is nothing.
fn numbers(table: Table, rows: &[Vec<Field>], column: &str) -> Vec<i64> {
    let at = table.columns().iter().position(|there| there.name == column).unwrap();
    let number = |field: &Field| match field {
        Field::Whole(number) | Field::Money(number) | Field::Instant(number) => *number,
        Field::Day(day) => i64::from(*day),
        Field::Null | Field::Text(_) => 0,
    };
    rows.iter().map(|row| number(&row[at])).collect()
}

#[test]
fn fields_fit_into_their_columns() {
    let rows = rows();
    for table in Table::ALL {
        for row in all(&rows, table) {
            assert_eq!(row.len(), table.columns().len(), "{table:?}");
            for (field, column) in row.iter().zip(table.columns()) {
                let fits = match (field, column.kind) {
                    (Field::Null, _) => !column.is_required,
                    (Field::Whole(number), Kind::Whole(digits)) => *number < 10_i64.pow(digits.into()),
                    (Field::Money(cents), Kind::Money(digits)) => *cents < 10_i64.pow(digits.into()),
                    (Field::Text(text), Kind::Text(chars)) => !text.is_empty() && text.len() <= usize::from(chars),
                    (Field::Day(_), Kind::Day) | (Field::Instant(_), Kind::Instant) => true,
                    _ => false,
                };
                assert!(fits, "{table:?}: {field:?} in {column:?}");
            }
        }
    }
}

#[test]
fn keys_run_from_1_without_gaps() {
    let rows = rows();
    for table in Table::ALL {
        let Some(key) = table.key().filter(|key| key.columns.len() == 1) else { continue };
        let there = all(&rows, table);
        let expected: Vec<i64> = (1..=there.len() as i64).collect();
        assert_eq!(numbers(table, &there, key.columns[0]), expected, "{table:?}");
    }
    for (table, of, within) in
        [(Table::OrderItems, "order_id", "line_item_id"), (Table::Inventories, "product_id", "warehouse_id")]
    {
        let there = all(&rows, table);
        let keys: Vec<(i64, i64)> =
            numbers(table, &there, of).into_iter().zip(numbers(table, &there, within)).collect();
        assert!(keys.is_sorted_by(|one, next| one < next), "{table:?}: in their order, and each once");
    }
}

#[test]
fn an_orders_total_is_the_sum_of_its_items() {
    let rows = rows();
    let (orders, items) = (all(&rows, Table::Orders), all(&rows, Table::OrderItems));
    let of = |column| numbers(Table::OrderItems, &items, column);
    let mut sums: BTreeMap<i64, i64> = BTreeMap::new();
    for ((order, price), quantity) in of("order_id").into_iter().zip(of("unit_price")).zip(of("quantity")) {
        *sums.entry(order).or_default() += price * quantity;
    }
    let of = |column| numbers(Table::Orders, &orders, column);
    assert_eq!(sums, of("order_id").into_iter().zip(of("order_total")).collect());
}

#[test]
fn what_rows_refer_to_is_there() {
    let rows = rows();
    let customers = rows.sizes().customers as i64;
    for table in [Table::Addresses, Table::CardDetails, Table::Orders, Table::Logon] {
        let owners = numbers(table, &all(&rows, table), "customer_id");
        assert!(owners.iter().all(|owner| (1..=customers).contains(owner)), "{table:?}");
    }
    let warehouses = rows.sizes().warehouses as i64;
    for table in [Table::Orders, Table::Inventories] {
        let there = numbers(table, &all(&rows, table), "warehouse_id");
        let (least, most) = (there.iter().min(), there.iter().max());
        assert_eq!((least, most), (Some(&1), Some(&warehouses)), "{table:?}: in each warehouse");
    }
    let owners = numbers(Table::Addresses, &all(&rows, Table::Addresses), "customer_id");
    let mut counts = BTreeMap::<i64, u32>::new();
    owners.into_iter().for_each(|owner| *counts.entry(owner).or_default() += 1);
    assert_eq!(counts.len() as i64, customers, "everybody lives somewhere");
    assert!(counts.values().all(|count| *count <= 2));
}

/// Mean and standard deviation.
fn moments(values: &[i64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().map(|value| *value as f64).sum::<f64>() / count;
    let variance = values.iter().map(|value| (*value as f64 - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

#[test]
fn items_of_an_order_and_stocks_of_a_product_are_as_many_as_they_should_be() {
    let rows = Rows::new(7, Sizes::of(0.05));
    let mut counts = vec![0; rows.sizes().orders as usize];
    let items = all(&rows, Table::OrderItems);
    numbers(Table::OrderItems, &items, "order_id").into_iter().for_each(|order| counts[order as usize - 1] += 1);
    let (mean, deviation) = moments(&counts);
    assert!((mean - 4.973).abs() < 0.03 && (MEAN_ITEMS - 4.972_8).abs() < 1e-4, "{mean}");
    assert!((deviation - ITEMS_DEVIATION).abs() < 0.02, "{deviation}");
    assert!(counts.iter().all(|count| (1..=10).contains(count)) && counts.contains(&10));
    let stocks = all(&rows, Table::Inventories);
    assert!((445_000..455_000).contains(&stocks.len()), "{}", stocks.len());
}

#[test]
fn columns_have_the_shapes_that_the_validation_expects() {
    let rows = Rows::new(11, Sizes::of(0.02));
    let (orders, items) = (all(&rows, Table::Orders), all(&rows, Table::OrderItems));
    let near = |values: &[i64], mean: f64, deviation: f64| {
        let (there, spread) = moments(values);
        let allowed = 5.0 * deviation / (values.len() as f64).sqrt();
        assert!((there - mean).abs() < allowed, "{there} instead of {mean}");
        assert!((spread / deviation - 1.0).abs() < 0.05, "{spread} instead of {deviation}");
    };
    near(&numbers(Table::Orders, &orders, "order_status"), 5.5, 1.47);
    near(&numbers(Table::Orders, &orders, "sales_rep_id"), 500.5, 144.3);
    near(&numbers(Table::Orders, &orders, "promotion_id"), 500.0, 144.5);
    near(&numbers(Table::Orders, &orders, "warehouse_id"), 100.5, 57.73);
    near(&numbers(Table::OrderItems, &items, "product_id"), 500.5, 144.3);
    near(&numbers(Table::OrderItems, &items, "quantity"), 5.5, 2.872);
    let part = |rows: &[Vec<Field>], at: usize, field: &Field| {
        rows.iter().filter(|row| row[at] == *field).count() as f64 / rows.len() as f64
    };
    assert!((part(&orders, 2, &Field::Null) - 0.2).abs() < 0.012);
    assert!((part(&items, 6, &Field::Null) - 0.97).abs() < 0.003);
    assert!((part(&orders, 9, &Field::Text("Standard".to_owned())) - 4.0 / 7.0).abs() < 0.015);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn rows_are_the_same_in_whatever_parts_they_are_made(
        seed: u64, at in 0..11_usize, first in 0..900_u64, one in 1..40_u64, other in 1..40_u64,
    ) {
        let rows = Rows::new(seed, Sizes::of(0.001));
        let table = Table::ALL[at];
        let units = table.units(rows.sizes());
        let first = first % units;
        let (middle, end) = ((first + one).min(units), (first + one + other).min(units));
        let parts = [kept(&rows, table, first..middle), kept(&Rows::new(seed, Sizes::of(0.001)), table, middle..end)];
        prop_assert_eq!(parts.concat(), kept(&rows, table, first..end));
    }
}

#[test]
fn another_seed_gives_other_rows() {
    let other = Rows::new(43, Sizes::of(0.001));
    for table in Table::ALL {
        // Ranges of keys follow from the scale alone.
        assert_eq!(all(&rows(), table) == all(&other, table), table == Table::Metadata, "{table:?}");
    }
}
