//! The tables of order entry as data: columns, keys, rules and indexes, for whoever words them in a dialect.
//!
//! Names are those that Swingbench's schema has, in small letters; `docs/workloads/orders.md` says what differs from it, and why.

use super::rows::{
    CODES, IN_STOCK, ITEMS_DEVIATION, LOCATIONS, MEAN_ITEMS, NO_MODE_PERCENT, ORDERABLE_OF_TEN, PRICES, QUANTITIES,
    RETURNED_PERCENT, stocked_in,
};
use super::{CATEGORIES, PRODUCTS, SALES_REPS, Sizes};

/// A table of order entry, in an order in which each comes after those that it refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Who orders.
    Customers,
    /// Where customers live.
    Addresses,
    /// How customers pay.
    CardDetails,
    /// Where products are stored.
    Warehouses,
    /// What is sold.
    ProductInformation,
    /// What it is called in a language.
    ProductDescriptions,
    /// How much of each product lies in a warehouse.
    Inventories,
    /// What was ordered.
    Orders,
    /// The products of an order.
    OrderItems,
    /// Who has come. It has no key and no index, so that it is only ever appended to.
    Logon,
    /// The ranges of keys, for whoever draws from them.
    Metadata,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number of at most so many decimal digits.
    Whole(u8),
    /// An amount of money: so many digits in all, two of them behind the point.
    Money(u8),
    /// At most so many characters.
    Text(u16),
    /// A day.
    Day,
    /// An instant, to the microsecond.
    Instant,
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether it always holds something.
    pub is_required: bool,
}

/// A primary key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Its columns.
    pub columns: &'static [&'static str],
}

/// What an index is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexPart {
    /// A column.
    Column(&'static str),
    /// The text of a column in small letters.
    Lower(&'static str),
}

/// An index that is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: &'static str,
    /// The table.
    pub table: Table,
    /// What it is on.
    pub parts: &'static [IndexPart],
}

/// What becomes of rows whose owner goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDelete {
    /// The owner has to stay.
    Restrict,
    /// They go too.
    Cascade,
}

/// A column that refers to the key of another table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    /// Its name.
    pub name: &'static str,
    /// The table that refers.
    pub table: Table,
    /// The column that refers; the one that is referred to has the same name.
    pub column: &'static str,
    /// The table that is referred to.
    pub to: Table,
    /// What becomes of rows whose owner goes.
    pub on_delete: OnDelete,
    /// Whether it can be left until the transaction ends, where the server knows such keys.
    pub is_deferrable: bool,
}

/// What a value has to be, unless it is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// No more than this.
    AtMost(i64),
    /// No less than this.
    AtLeast(i64),
    /// One of these.
    OneOf(&'static [&'static str]),
}

/// A rule that a column of each row keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// The table.
    pub table: Table,
    /// The column.
    pub column: &'static str,
    /// The rule.
    pub rule: Rule,
}

/// What gives a column of new rows its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// Its name.
    pub name: &'static str,
    /// The table.
    pub table: Table,
    /// The column.
    pub column: &'static str,
}

/// Statuses of products.
pub const PRODUCT_STATUSES: [&str; 4] = ["orderable", "planned", "under development", "obsolete"];
/// Ways in which orders are made.
pub const ORDER_MODES: [&str; 2] = ["direct", "online"];
/// Largest credit limit of a customer.
pub const MAX_CREDIT: i64 = 50_000;

const fn may(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, is_required: false }
}

const fn must(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, is_required: true }
}

use Kind::{Day, Instant, Money, Text, Whole};

const CUSTOMERS: &[Column] = &[
    must("customer_id", Whole(12)),
    must("cust_first_name", Text(40)),
    must("cust_last_name", Text(40)),
    may("nls_language", Text(3)),
    may("nls_territory", Text(30)),
    may("credit_limit", Money(9)),
    may("cust_email", Text(100)),
    may("account_mgr_id", Whole(12)),
    may("customer_since", Day),
    may("customer_class", Text(40)),
    may("suggestions", Text(40)),
    may("dob", Day),
    may("mailshot", Text(1)),
    may("partner_mailshot", Text(1)),
    may("preferred_address", Whole(12)),
    may("preferred_card", Whole(12)),
];

const ADDRESSES: &[Column] = &[
    must("address_id", Whole(12)),
    must("customer_id", Whole(12)),
    must("date_created", Day),
    may("house_no_or_name", Text(60)),
    may("street_name", Text(60)),
    may("town", Text(60)),
    may("county", Text(60)),
    may("country", Text(60)),
    may("post_code", Text(12)),
    may("zip_code", Text(12)),
];

const CARD_DETAILS: &[Column] = &[
    must("card_id", Whole(12)),
    must("customer_id", Whole(12)),
    must("card_type", Text(30)),
    must("card_number", Whole(12)),
    must("expiry_date", Day),
    must("is_valid", Text(1)),
    may("security_code", Whole(6)),
];

const WAREHOUSES: &[Column] =
    &[must("warehouse_id", Whole(6)), may("warehouse_name", Text(35)), may("location_id", Whole(4))];

const PRODUCT_INFORMATION: &[Column] = &[
    must("product_id", Whole(6)),
    must("product_name", Text(50)),
    may("product_description", Text(2000)),
    must("category_id", Whole(4)),
    may("weight_class", Whole(1)),
    // In months: the servers have different types for intervals, or none.
    may("warranty_period", Whole(3)),
    may("supplier_id", Whole(6)),
    may("product_status", Text(20)),
    may("list_price", Money(8)),
    may("min_price", Money(8)),
    may("catalog_url", Text(50)),
];

const PRODUCT_DESCRIPTIONS: &[Column] = &[
    must("product_id", Whole(6)),
    must("language_id", Text(3)),
    must("translated_name", Text(50)),
    must("translated_description", Text(2000)),
];

const INVENTORIES: &[Column] =
    &[must("product_id", Whole(6)), must("warehouse_id", Whole(6)), must("quantity_on_hand", Whole(8))];

const ORDERS: &[Column] = &[
    must("order_id", Whole(12)),
    must("order_date", Instant),
    may("order_mode", Text(8)),
    must("customer_id", Whole(12)),
    may("order_status", Whole(2)),
    // Four digits more than an order has room for at first: each piece that is added later counts.
    may("order_total", Money(12)),
    may("sales_rep_id", Whole(6)),
    may("promotion_id", Whole(6)),
    may("warehouse_id", Whole(6)),
    may("delivery_type", Text(15)),
    may("cost_of_delivery", Whole(6)),
    may("wait_till_all_available", Text(15)),
    may("delivery_address_id", Whole(12)),
    may("customer_class", Text(30)),
    may("card_id", Whole(12)),
    may("invoice_address_id", Whole(12)),
];

const ORDER_ITEMS: &[Column] = &[
    must("order_id", Whole(12)),
    must("line_item_id", Whole(3)),
    must("product_id", Whole(6)),
    may("unit_price", Money(8)),
    may("quantity", Whole(8)),
    may("dispatch_date", Day),
    may("return_date", Day),
    may("gift_wrap", Text(20)),
    may("condition", Text(20)),
    may("supplier_id", Whole(6)),
    may("estimated_delivery", Day),
];

const LOGON: &[Column] = &[must("logon_id", Whole(12)), must("customer_id", Whole(12)), may("logon_date", Instant)];

const METADATA: &[Column] = &[may("metadata_key", Text(30)), may("metadata_value", Text(30))];

impl Table {
    /// Every table, in an order in which each comes after those that it refers to.
    pub const ALL: [Self; 11] = [
        Self::Customers,
        Self::Addresses,
        Self::CardDetails,
        Self::Warehouses,
        Self::ProductInformation,
        Self::ProductDescriptions,
        Self::Inventories,
        Self::Orders,
        Self::OrderItems,
        Self::Logon,
        Self::Metadata,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Customers => "customers",
            Self::Addresses => "addresses",
            Self::CardDetails => "card_details",
            Self::Warehouses => "warehouses",
            Self::ProductInformation => "product_information",
            Self::ProductDescriptions => "product_descriptions",
            Self::Inventories => "inventories",
            Self::Orders => "orders",
            Self::OrderItems => "order_items",
            Self::Logon => "logon",
            Self::Metadata => "orderentry_metadata",
        }
    }

    /// The table of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name() == name)
    }

    /// Its columns, in their order.
    pub const fn columns(self) -> &'static [Column] {
        match self {
            Self::Customers => CUSTOMERS,
            Self::Addresses => ADDRESSES,
            Self::CardDetails => CARD_DETAILS,
            Self::Warehouses => WAREHOUSES,
            Self::ProductInformation => PRODUCT_INFORMATION,
            Self::ProductDescriptions => PRODUCT_DESCRIPTIONS,
            Self::Inventories => INVENTORIES,
            Self::Orders => ORDERS,
            Self::OrderItems => ORDER_ITEMS,
            Self::Logon => LOGON,
            Self::Metadata => METADATA,
        }
    }

    /// Its column of this name.
    pub fn column(self, name: &str) -> Option<Column> {
        self.columns().iter().copied().find(|column| column.name == name)
    }

    /// Its primary key, if it has one.
    pub const fn key(self) -> Option<Key> {
        let (name, columns): (_, &[&str]) = match self {
            Self::Customers => ("customers_pk", &["customer_id"]),
            Self::Addresses => ("addresses_pk", &["address_id"]),
            Self::CardDetails => ("card_details_pk", &["card_id"]),
            Self::Warehouses => ("warehouses_pk", &["warehouse_id"]),
            Self::ProductInformation => ("product_information_pk", &["product_id"]),
            Self::ProductDescriptions => ("product_descriptions_pk", &["product_id", "language_id"]),
            Self::Inventories => ("inventories_pk", &["product_id", "warehouse_id"]),
            Self::Orders => ("orders_pk", &["order_id"]),
            Self::OrderItems => ("order_items_pk", &["order_id", "line_item_id"]),
            Self::Logon | Self::Metadata => return None,
        };
        Some(Key { name, columns })
    }

    /// The column by which rows are spread over partitions, of tables that can have any.
    pub const fn partitioned_by(self) -> Option<&'static str> {
        match self {
            Self::Customers | Self::CardDetails => Some("customer_id"),
            Self::Addresses => Some("address_id"),
            Self::Orders | Self::OrderItems => Some("order_id"),
            _ => None,
        }
    }

    /// Whether its rows are to be thin on the ground, so that sessions that change them seldom want the same block.
    pub const fn is_sparse(self) -> bool {
        matches!(self, Self::Inventories)
    }

    /// What its rows are numbered and generated by, from 1 to this: rows, but for items the orders, and for stocks the products.
    pub fn units(self, sizes: &Sizes) -> u64 {
        match self {
            Self::Customers => sizes.customers,
            Self::Addresses => sizes.addresses,
            Self::CardDetails => sizes.cards,
            Self::Warehouses => sizes.warehouses,
            Self::ProductInformation | Self::ProductDescriptions | Self::Inventories => u64::from(super::PRODUCTS),
            Self::Orders | Self::OrderItems => sizes.orders,
            Self::Logon => sizes.logons,
            Self::Metadata => 4,
        }
    }
}

/// Every index that is no key.
pub const INDEXES: &[Index] = &{
    use IndexPart::{Column, Lower};
    use Table::{
        Addresses, CardDetails, Customers, Inventories, OrderItems, Orders, ProductDescriptions, ProductInformation,
        Warehouses,
    };
    const fn on(name: &'static str, table: Table, parts: &'static [IndexPart]) -> Index {
        Index { name, table, parts }
    }
    [
        on("cust_account_manager_ix", Customers, &[Column("account_mgr_id")]),
        on("cust_dob_ix", Customers, &[Column("dob")]),
        on("cust_email_ix", Customers, &[Column("cust_email")]),
        on("cust_func_lower_name_ix", Customers, &[Lower("cust_last_name"), Lower("cust_first_name")]),
        on("address_cust_ix", Addresses, &[Column("customer_id")]),
        on("carddetails_cust_ix", CardDetails, &[Column("customer_id")]),
        on("whs_location_ix", Warehouses, &[Column("location_id")]),
        on("prod_category_ix", ProductInformation, &[Column("category_id")]),
        on("prod_supplier_ix", ProductInformation, &[Column("supplier_id")]),
        on("prod_name_ix", ProductDescriptions, &[Column("translated_name")]),
        on("inv_product_ix", Inventories, &[Column("product_id")]),
        on("inv_warehouse_ix", Inventories, &[Column("warehouse_id")]),
        on("ord_customer_ix", Orders, &[Column("customer_id")]),
        on("ord_order_date_ix", Orders, &[Column("order_date")]),
        on("ord_sales_rep_ix", Orders, &[Column("sales_rep_id")]),
        on("ord_warehouse_ix", Orders, &[Column("warehouse_id"), Column("order_status")]),
        on("item_order_ix", OrderItems, &[Column("order_id")]),
        on("item_product_ix", OrderItems, &[Column("product_id")]),
    ]
};

/// Every foreign key.
pub const FOREIGN_KEYS: &[ForeignKey] = &{
    use OnDelete::{Cascade, Restrict};
    use Table::{
        Addresses, Customers, Inventories, OrderItems, Orders, ProductDescriptions, ProductInformation, Warehouses,
    };
    const fn from(
        name: &'static str,
        table: Table,
        column: &'static str,
        to: Table,
        on_delete: OnDelete,
    ) -> ForeignKey {
        ForeignKey { name, table, column, to, on_delete, is_deferrable: matches!(table, Addresses) }
    }
    [
        from("addresses_customer_fk", Addresses, "customer_id", Customers, Restrict),
        from("descriptions_product_fk", ProductDescriptions, "product_id", ProductInformation, Restrict),
        from("inventories_product_fk", Inventories, "product_id", ProductInformation, Restrict),
        from("inventories_warehouse_fk", Inventories, "warehouse_id", Warehouses, Restrict),
        from("orders_customer_fk", Orders, "customer_id", Customers, Restrict),
        from("order_items_order_fk", OrderItems, "order_id", Orders, Cascade),
        from("order_items_product_fk", OrderItems, "product_id", ProductInformation, Restrict),
    ]
};

/// Every check.
pub const CHECKS: &[Check] = &{
    const fn of(name: &'static str, table: Table, column: &'static str, rule: Rule) -> Check {
        Check { name, table, column, rule }
    }
    [
        of("customers_credit_limit_ck", Table::Customers, "credit_limit", Rule::AtMost(MAX_CREDIT)),
        of("customers_customer_id_ck", Table::Customers, "customer_id", Rule::AtLeast(1)),
        of(
            "product_information_status_ck",
            Table::ProductInformation,
            "product_status",
            Rule::OneOf(&PRODUCT_STATUSES),
        ),
        of("orders_mode_ck", Table::Orders, "order_mode", Rule::OneOf(&ORDER_MODES)),
        of("orders_total_ck", Table::Orders, "order_total", Rule::AtLeast(0)),
    ]
};

/// Every sequence. Each begins behind the largest number that is there.
pub const SEQUENCES: &[Sequence] = &{
    const fn of(name: &'static str, table: Table, column: &'static str) -> Sequence {
        Sequence { name, table, column }
    }
    [
        of("customer_seq", Table::Customers, "customer_id"),
        of("address_seq", Table::Addresses, "address_id"),
        of("card_details_seq", Table::CardDetails, "card_id"),
        of("orders_seq", Table::Orders, "order_id"),
        of("logon_seq", Table::Logon, "logon_id"),
    ]
};

// What values of a data set come to, by how they are generated: means that a server is asked for once they are loaded.

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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn there_are_twenty_seven_indexes_with_those_of_the_keys() {
        let keys = Table::ALL.into_iter().filter_map(Table::key);
        let names: BTreeSet<&str> = keys.map(|key| key.name).chain(INDEXES.iter().map(|index| index.name)).collect();
        assert_eq!(names.len(), 27, "{names:?}");
        assert_eq!(Table::ALL.len(), 10 + 1, "ten tables, and that of the ranges of keys");
    }

    #[test]
    fn what_is_said_of_columns_is_said_of_columns_that_are_there() {
        let there = |table: Table, column: &str| assert!(table.column(column).is_some(), "{table:?} has no {column}");
        for table in Table::ALL {
            assert_eq!(Table::named(table.name()), Some(table));
            let columns = table.key().map_or(&[][..], |key| key.columns);
            columns.iter().copied().chain(table.partitioned_by()).for_each(|column| there(table, column));
            let required = |name: &&str| table.column(name).is_some_and(|column| column.is_required);
            assert!(columns.iter().all(required), "a key has always a value: {table:?}");
        }
        for index in INDEXES {
            for part in index.parts {
                let (IndexPart::Column(name) | IndexPart::Lower(name)) = part;
                there(index.table, name);
            }
        }
        for ForeignKey { table, column, to, .. } in FOREIGN_KEYS {
            there(*table, column);
            assert_eq!(to.key().map(|key| key.columns), Some(&[*column][..]), "it is the whole key there");
            assert!(to < table, "tables come after those that they refer to");
        }
        CHECKS.iter().for_each(|check| there(check.table, check.column));
        SEQUENCES.iter().for_each(|sequence| there(sequence.table, sequence.column));
    }
}
