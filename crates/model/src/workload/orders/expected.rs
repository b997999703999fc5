//! What values of a data set come to, by how they are generated: means that a server is asked for once they are loaded.

use super::rows::{
    CODES, IN_STOCK, ITEMS_DEVIATION, LOCATIONS, MEAN_ITEMS, NO_MODE_PERCENT, ORDERABLE_OF_TEN, PRICES, QUANTITIES,
    RETURNED_PERCENT, stocked_in,
};
use super::tables::MAX_CREDIT;
use super::{CATEGORIES, PRODUCTS, SALES_REPS, Sizes, Table};

/// A mean that a data set has of its rows, as far as chance goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// What it is of.
    pub words: &'static str,
    /// It, as an aggregate that every dialect knows.
    pub expression: &'static str,
    /// What it comes to.
    pub mean: f64,
    /// How far each value is from the mean.
    pub deviation: f64,
    /// Values that it is the mean of.
    pub values: f64,
}

/// Standard deviations within which a mean has to be: chance alone leaves these once in 1.7 million means.
const ALLOWED_DEVIATIONS: f64 = 5.0;
/// Standard deviation of the mean of four numbers between 0 and 1, of which common numbers are made.
const COMMON_DEVIATION: f64 = 0.144_338;

impl Expected {
    /// How far from its mean it may be.
    pub fn allowed(&self) -> f64 {
        ALLOWED_DEVIATIONS * self.deviation / self.values.max(1.0).sqrt() + 1e-9 * self.mean.abs()
    }

    /// Whether a mean that was found is within that.
    pub fn allows(&self, found: f64) -> bool {
        (found - self.mean).abs() <= self.allowed()
    }
}

/// What is expected of a table.
pub fn expected_of(table: Table, sizes: &Sizes) -> Vec<Expected> {
    let rows = table.units(sizes) as f64;
    let items = sizes.orders as f64 * MEAN_ITEMS;
    let (fewest, most) = stocked_in(sizes);
    let stocks = f64::from(PRODUCTS) * (fewest + most) as f64 / 2.0;
    let of = |words, expression, (mean, deviation): (f64, f64), values| Expected {
        words,
        expression,
        mean,
        deviation,
        values,
    };
    match table {
        Table::Customers => vec![
            of("credit limits", "avg(credit_limit)", even((100, MAX_CREDIT as u64)), rows),
            of("account managers", "avg(account_mgr_id)", common(SALES_REPS), rows),
            of("part that wants mail", "avg(CASE WHEN mailshot = 'Y' THEN 1.0 ELSE 0.0 END)", part(0.5), rows),
        ],
        Table::Addresses => vec![of(
            "part that is the first of a customer",
            "avg(CASE WHEN customer_id = address_id THEN 1.0 ELSE 0.0 END)",
            (sizes.customers as f64 / rows, 1e-3 / rows.sqrt()),
            rows,
        )],
        Table::CardDetails => vec![
            of("part that is valid", "avg(CASE WHEN is_valid = 'Y' THEN 1.0 ELSE 0.0 END)", part(0.5), rows),
            of("security codes", "avg(security_code)", even(CODES), rows),
        ],
        Table::Warehouses => vec![of("locations", "avg(location_id)", even(LOCATIONS), rows)],
        Table::ProductInformation => {
            let (price, spread) = even(PRICES);
            let orderable = "avg(CASE WHEN product_status = 'orderable' THEN 1.0 ELSE 0.0 END)";
            vec![
                of("categories", "avg(category_id)", even((1, u64::from(CATEGORIES))), rows),
                of("list prices", "avg(list_price)", (price / 100.0, spread / 100.0), rows),
                of("part that can be ordered", orderable, part(ORDERABLE_OF_TEN as f64 / 10.0), rows),
            ]
        }
        Table::ProductDescriptions => {
            vec![of("products", "avg(product_id)", (f64::from(PRODUCTS + 1) / 2.0, 0.0), rows)]
        }
        Table::Inventories => vec![
            of("warehouses of a product", "count(*) / 1000.0", even((fewest, most)), f64::from(PRODUCTS)),
            of("pieces in stock", "avg(quantity_on_hand)", even(IN_STOCK), stocks),
        ],
        Table::Orders => vec![
            of(
                "part of unknown mode",
                "avg(CASE WHEN order_mode IS NULL THEN 1.0 ELSE 0.0 END)",
                part(NO_MODE_PERCENT as f64 / 100.0),
                rows,
            ),
            of("statuses", "avg(order_status)", common(10), rows),
            of("sales representatives", "avg(sales_rep_id)", common(SALES_REPS), rows),
            of("promotions", "avg(promotion_id)", common_from_0(SALES_REPS), rows),
            of("warehouses", "avg(warehouse_id)", even((1, sizes.warehouses)), rows),
            of(
                "part of standard delivery",
                "avg(CASE WHEN delivery_type = 'Standard' THEN 1.0 ELSE 0.0 END)",
                part(4.0 / 7.0),
                rows,
            ),
            of("customers", "avg(customer_id)", even((1, sizes.customers)), rows),
        ],
        Table::OrderItems => vec![
            of(
                "items of an order",
                "count(*) / (max(order_id) + 0.0)",
                (MEAN_ITEMS, ITEMS_DEVIATION),
                sizes.orders as f64,
            ),
            of("products", "avg(product_id)", common(PRODUCTS), items),
            of("quantities", "avg(quantity)", even(QUANTITIES), items),
            of(
                "part that came back",
                "avg(CASE WHEN return_date IS NULL THEN 0.0 ELSE 1.0 END)",
                part(RETURNED_PERCENT as f64 / 100.0),
                items,
            ),
        ],
        Table::Logon => vec![of("customers", "avg(customer_id)", even((1, sizes.customers)), rows)],
        Table::Metadata => Vec::new(),
    }
}

/// Mean and deviation where each number is as likely.
fn even((first, last): (u64, u64)) -> (f64, f64) {
    let count = (last - first + 1) as f64;
    ((first + last) as f64 / 2.0, ((count * count - 1.0) / 12.0).sqrt())
}

/// Those of 1 to `count` where the middle ones are the most common.
fn common(count: u32) -> (f64, f64) {
    let (mean, deviation) = common_from_0(count - 1);
    (mean + 1.0, deviation)
}

/// The same of 0 to `last`.
fn common_from_0(last: u32) -> (f64, f64) {
    let spread = f64::from(last + 1) * COMMON_DEVIATION;
    (f64::from(last) / 2.0, (spread * spread + 1.0 / 12.0).sqrt())
}

/// Those of a part of all.
fn part(of_all: f64) -> (f64, f64) {
    (of_all, (of_all * (1.0 - of_all)).sqrt())
}
