//! Rows of every table, from a seed: the same in whatever parts they are made, and by whomever.
//!
//! Each row, and each order with its items, has a random stream of its own. So an order's total is the sum of its items without
//! anything being kept, and whoever loads a part of a table needs to know nothing of the rest.

use std::ops::Range;

use super::tables::{MAX_CREDIT, ORDER_MODES, PRODUCT_STATUSES};
use super::{CATEGORIES, PRODUCTS, SALES_REPS, Sizes, Table, names};
use crate::workload::{Rng, mix64};

/// Takes rows, field by field, in the order of the columns.
pub trait Fields {
    /// A row begins.
    fn begin_row(&mut self);
    /// Nothing.
    fn null(&mut self);
    /// A whole number.
    fn whole(&mut self, number: i64);
    /// Money, in hundredths.
    fn money(&mut self, cents: i64);
    /// These, without anything between them.
    fn text(&mut self, parts: &[&str]);
    /// A day, by its number from 1970-01-01 on.
    fn day(&mut self, days: i32);
    /// An instant, in microseconds from 1970-01-01 00:00 UTC on.
    fn instant(&mut self, micros: i64);
    /// The row ends.
    fn end_row(&mut self);
}

/// 2026-01-01, before which all that was set up has happened.
pub const NOW_DAY: i32 = 20_454;
/// 2021-01-01, the first day of orders and logons.
pub const FIRST_DAY: i32 = 18_628;
/// Most items of an order.
pub const MAX_ITEMS: usize = 10;
/// Items of an order are 1 and as many more as this many throws come out right.
const THROWS: i32 = MAX_ITEMS as i32 - 1;
/// How often a throw comes out right, so that an order has 4.97 items in the mean.
const RIGHT: f64 = 0.441_42;
/// Items of an order, in the mean.
pub const MEAN_ITEMS: f64 = 1.0 + THROWS as f64 * RIGHT;
/// Their standard deviation.
pub(super) const ITEMS_DEVIATION: f64 = 1.489_7;
/// Of ten warehouses, those that a product is in at least.
const STOCKED_OF_TEN: u64 = 8;
/// Pieces of a product in a warehouse.
pub(super) const IN_STOCK: (u64, u64) = (1, 1_000);
/// Pieces of a product in an order.
pub(super) const QUANTITIES: (u64, u64) = (1, 10);
/// List prices, in hundredths.
pub(super) const PRICES: (u64, u64) = (100, 500_000);
/// Parts of a hundred that items come back.
pub(super) const RETURNED_PERCENT: u64 = 3;
/// Parts of a hundred of orders of which nobody knows how they were made.
pub(super) const NO_MODE_PERCENT: u64 = 20;
/// Codes on the back of cards.
pub(super) const CODES: (u64, u64) = (1_000, 9_999);
/// Places of warehouses.
pub(super) const LOCATIONS: (u64, u64) = (1, 9_999);
/// Suppliers.
pub(super) const SUPPLIERS: (u64, u64) = (1, 500);
/// Parts of ten of products that can be ordered.
pub(super) const ORDERABLE_OF_TEN: u64 = 7;

const DAY_MICROS: u64 = 86_400_000_000;
/// Parts that the random numbers of one seed are kept apart by, besides the tables.
const DATES: u64 = 101;
const CLASSES: u64 = 102;

/// Rows of all tables of one data set.
#[derive(Clone, Debug)]
pub struct Rows {
    seed: u64,
    sizes: Sizes,
    /// Price and supplier of each product.
    products: Vec<Product>,
    /// How likely an order has no more than 1, 2, … items, as parts of 2^64.
    up_to: [u64; MAX_ITEMS - 1],
}

#[derive(Clone, Copy, Debug)]
struct Product {
    cents: i64,
    supplier: i64,
}

/// An item of an order.
struct Item {
    product: usize,
    quantity: i64,
    /// What else is drawn for it.
    bits: u64,
}

/// A whole number in decimal digits, without memory of its own.
struct Digits {
    digits: [u8; 20],
    first: usize,
}

impl Digits {
    fn of(mut number: u64) -> Self {
        let (mut digits, mut first) = ([b'0'; 20], 20);
        while first == 20 || number > 0 {
            first -= 1;
            digits[first] = b'0' + (number % 10) as u8;
            number /= 10;
        }
        Self { digits, first }
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.digits[self.first..]).unwrap_or_default()
    }
}

/// One of the numbers from the first to the last.
fn between(rng: &mut Rng, (first, last): (u64, u64)) -> u64 {
    first + rng.below(last - first + 1)
}

fn one_of<T: Copy>(rng: &mut Rng, list: &[T]) -> T {
    list[rng.below(list.len() as u64) as usize]
}

/// A part of `bits` as a number below `bound`, which is small.
fn part(bits: u64, at: u32, bound: u64) -> u64 {
    ((bits >> at & 0xffff) * bound) >> 16
}

/// 1 to `count`, the middle ones the most common.
fn common(rng: &mut Rng, count: u32) -> i64 {
    names::bell(rng, count as usize) as i64 + 1
}

impl Rows {
    /// Those of this seed, in tables of these sizes.
    pub fn new(seed: u64, sizes: Sizes) -> Self {
        let mut probability = (1.0 - RIGHT).powi(THROWS);
        let mut sum = 0.0;
        let up_to = std::array::from_fn(|right| {
            sum += probability;
            probability *= f64::from(THROWS - right as i32) / f64::from(right as i32 + 1) * RIGHT / (1.0 - RIGHT);
            (sum * 2_f64.powi(64)) as u64
        });
        let mut rows = Self { seed, sizes, products: Vec::new(), up_to };
        rows.products = (1..=u64::from(PRODUCTS)).map(|product| rows.product(product)).collect();
        rows
    }

    /// How many rows each table has.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// Hands over the rows of these units of a table, counted from 0, and says how many they were. A unit is a row, but for items
    /// an order, and for stocks a product.
    pub fn each(&self, table: Table, units: Range<u64>, fields: &mut impl Fields) -> u64 {
        let mut count = units.end.saturating_sub(units.start);
        match table {
            Table::OrderItems => count = units.map(|unit| self.order_items(unit + 1, fields)).sum(),
            Table::Inventories => count = units.map(|unit| self.inventories(unit + 1, fields)).sum(),
            _ => units.for_each(|unit| {
                fields.begin_row();
                self.row(table, unit + 1, fields);
                fields.end_row();
            }),
        }
        count
    }

    fn row(&self, table: Table, key: u64, fields: &mut impl Fields) {
        match table {
            Table::Customers => self.customer(key, fields),
            Table::Addresses => self.address(key, fields),
            Table::CardDetails => self.card(key, fields),
            Table::Warehouses => self.warehouse(key, fields),
            Table::ProductInformation => self.product_information(key, fields),
            Table::ProductDescriptions => self.product_description(key, fields),
            Table::Orders => self.order(key, fields),
            Table::Logon => self.logon(key, fields),
            Table::Metadata => self.metadata(key, fields),
            // They have several rows for each key.
            Table::OrderItems | Table::Inventories => {}
        }
    }

    fn rng(&self, table: Table, key: u64) -> Rng {
        Rng::new(mix64(self.seed ^ mix64(table as u64 + 1)), key)
    }

    /// A random number that belongs to a key, and can be had again wherever it is needed.
    fn number(&self, of: u64, key: u64) -> u64 {
        mix64(self.seed ^ mix64(of) ^ mix64(key).rotate_left(17))
    }

    /// Whose an address or a card is: each customer has one, and then every second one another.
    fn owner(&self, key: u64) -> u64 {
        match key.checked_sub(self.sizes.customers) {
            None | Some(0) => key,
            Some(second) => (2 * second - 1) % self.sizes.customers + 1,
        }
    }

    fn class(&self, customer: u64) -> &'static str {
        WORDS_CLASSES[(self.number(CLASSES, customer) % WORDS_CLASSES.len() as u64) as usize]
    }

    /// When an order was made, in microseconds.
    fn ordered_at(&self, order: u64) -> i64 {
        instant_in_past(self.number(DATES, order))
    }

    fn customer(&self, key: u64, fields: &mut impl Fields) {
        let rng = &mut self.rng(Table::Customers, key);
        let (first, last) = (names::first(rng), names::last(rng));
        let (_, language, territory) = one_of(rng, &COUNTRIES);
        fields.whole(key as i64);
        fields.text(&[first]);
        fields.text(&[last]);
        fields.text(&[language]);
        fields.text(&[territory]);
        fields.money(between(rng, (100, MAX_CREDIT as u64)) as i64 * 100);
        fields.text(&[first, ".", last, Digits::of(key).as_str(), one_of(rng, &MAIL_DOMAINS)]);
        fields.whole(common(rng, SALES_REPS));
        fields.day(FIRST_DAY - 1 - rng.below(3_650) as i32);
        fields.text(&[self.class(key)]);
        fields.text(&[one_of(rng, &INTERESTS)]);
        // 18 to 90 years old.
        fields.day(NOW_DAY - between(rng, (6_575, 32_871)) as i32);
        let bits = rng.next_u64();
        fields.text(&[yes(bits)]);
        fields.text(&[yes(bits >> 1)]);
        // Both have the number of their first owner.
        fields.whole(key as i64);
        fields.whole(key as i64);
    }

    fn address(&self, key: u64, fields: &mut impl Fields) {
        let rng = &mut self.rng(Table::Addresses, key);
        fields.whole(key as i64);
        fields.whole(self.owner(key) as i64);
        fields.day(FIRST_DAY - 1 - rng.below(3_650) as i32);
        fields.text(&[Digits::of(between(rng, (1, 200))).as_str()]);
        fields.text(&[one_of(rng, &STREETS), one_of(rng, &STREET_KINDS)]);
        fields.text(&[one_of(rng, &TOWNS)]);
        fields.text(&[one_of(rng, &COUNTIES)]);
        fields.text(&[one_of(rng, &COUNTRIES).0]);
        let bits = rng.next_u64();
        let letters = [b'A' + part(bits, 0, 26) as u8, b'A' + part(bits, 16, 26) as u8];
        let letters = std::str::from_utf8(&letters).unwrap_or_default();
        fields.text(&[letters, Digits::of(1 + part(bits, 32, 99)).as_str()]);
        fields.text(&[Digits::of(10_000 + rng.below(90_000)).as_str()]);
    }

    fn card(&self, key: u64, fields: &mut impl Fields) {
        let rng = &mut self.rng(Table::CardDetails, key);
        fields.whole(key as i64);
        fields.whole(self.owner(key) as i64);
        fields.text(&[one_of(rng, &CARD_TYPES)]);
        fields.whole(between(rng, (1_000_000_000, 9_999_999_999)) as i64);
        fields.day(NOW_DAY + between(rng, (365, 1_460)) as i32);
        fields.text(&[yes(rng.next_u64())]);
        fields.whole(between(rng, CODES) as i64);
    }

    fn warehouse(&self, key: u64, fields: &mut impl Fields) {
        let rng = &mut self.rng(Table::Warehouses, key);
        fields.whole(key as i64);
        fields.text(&[one_of(rng, &TOWNS), " ", Digits::of(key).as_str()]);
        fields.whole(between(rng, LOCATIONS) as i64);
    }

    fn product(&self, key: u64) -> Product {
        let rng = &mut self.rng(Table::ProductInformation, key);
        Product { cents: between(rng, PRICES) as i64, supplier: between(rng, SUPPLIERS) as i64 }
    }

    /// What a product is called.
    fn product_name(&self, key: u64) -> [&'static str; 2] {
        let number = self.number(Table::ProductInformation as u64, key) as usize;
        [QUALITIES[number % QUALITIES.len()], THINGS[number / 64 % THINGS.len()]]
    }

    fn product_information(&self, key: u64, fields: &mut impl Fields) {
        let rng = &mut self.rng(Table::ProductInformation, key);
        let (Product { cents, supplier }, [quality, thing]) = (self.product(key), self.product_name(key));
        // What made price and supplier.
        let _ = (rng.next_u64(), rng.next_u64());
        let (number, phrase) = (Digits::of(key), |rng: &mut Rng| one_of(rng, &PHRASES));
        fields.whole(key as i64);
        fields.text(&[quality, " ", thing, " ", number.as_str()]);
        fields.text(&[
            quality,
            " ",
            thing,
            ",",
            phrase(rng),
            phrase(rng),
            phrase(rng),
            phrase(rng),
            " number ",
            number.as_str(),
        ]);
        fields.whole(between(rng, (1, u64::from(CATEGORIES))) as i64);
        fields.whole(between(rng, (1, 5)) as i64);
        fields.whole(between(rng, (0, 60)) as i64);
        fields.whole(supplier);
        let status = match rng.below(10) {
            at if at < ORDERABLE_OF_TEN => PRODUCT_STATUSES[0],
            at => PRODUCT_STATUSES[(at - ORDERABLE_OF_TEN) as usize + 1],
        };
        fields.text(&[status]);
        fields.money(cents);
        fields.money(cents * 8 / 10);
        fields.text(&["https://shop.example/", number.as_str()]);
    }

    fn product_description(&self, key: u64, fields: &mut impl Fields) {
        let rng = &mut self.rng(Table::ProductDescriptions, key);
        let [quality, thing] = self.product_name(key);
        let phrase = |rng: &mut Rng| one_of(rng, &PHRASES);
        fields.whole(key as i64);
        fields.text(&["us"]);
        fields.text(&[quality, " ", thing, " ", Digits::of(key).as_str()]);
        fields.text(&[quality, " ", thing, ",", phrase(rng), phrase(rng), phrase(rng), " and more"]);
    }

    /// In each warehouse but for some that follow each other, in the order of warehouses.
    fn inventories(&self, product: u64, fields: &mut impl Fields) -> u64 {
        let rng = &mut self.rng(Table::Inventories, product);
        let all = self.sizes.warehouses;
        let absent = all - between(rng, stocked_in(&self.sizes));
        let first_absent = rng.below(all);
        for warehouse in (0..all).filter(|warehouse| (warehouse + all - first_absent) % all >= absent) {
            fields.begin_row();
            fields.whole(product as i64);
            fields.whole(warehouse as i64 + 1);
            fields.whole(between(rng, IN_STOCK) as i64);
            fields.end_row();
        }
        all - absent
    }

    /// How many items an order has, and what draws them.
    fn items(&self, order: u64) -> (usize, Rng) {
        let mut rng = self.rng(Table::OrderItems, order);
        let drawn = rng.next_u64();
        (1 + self.up_to.iter().filter(|up_to| drawn >= **up_to).count(), rng)
    }

    fn item(&self, rng: &mut Rng) -> Item {
        let product = names::bell(rng, PRODUCTS as usize);
        let bits = rng.next_u64();
        let (first, last) = QUANTITIES;
        Item { product, quantity: (first + part(bits, 0, last - first + 1)) as i64, bits }
    }

    fn order(&self, key: u64, fields: &mut impl Fields) {
        let (count, mut items) = self.items(key);
        let total: i64 = (0..count)
            .map(|_| {
                let Item { product, quantity, .. } = self.item(&mut items);
                self.products[product].cents * quantity
            })
            .sum();
        let rng = &mut self.rng(Table::Orders, key);
        let customer = between(rng, (1, self.sizes.customers));
        fields.whole(key as i64);
        fields.instant(self.ordered_at(key));
        match rng.below(100) {
            at if at < NO_MODE_PERCENT => fields.null(),
            at => fields.text(&[ORDER_MODES[(at % 2) as usize]]),
        }
        fields.whole(customer as i64);
        fields.whole(common(rng, 10));
        fields.money(total);
        fields.whole(common(rng, SALES_REPS));
        fields.whole(common(rng, SALES_REPS + 1) - 1);
        fields.whole(between(rng, (1, self.sizes.warehouses)) as i64);
        let bits = rng.next_u64();
        fields.text(&[DELIVERIES[part(bits, 0, DELIVERIES.len() as u64) as usize]]);
        fields.whole(1 + part(bits, 16, 5) as i64);
        fields.text(&[WAITS[part(bits, 32, WAITS.len() as u64) as usize]]);
        fields.whole(customer as i64);
        fields.text(&[self.class(customer)]);
        fields.whole(customer as i64);
        fields.whole(customer as i64);
    }

    fn order_items(&self, order: u64, fields: &mut impl Fields) -> u64 {
        let (count, mut rng) = self.items(order);
        let day = (self.ordered_at(order) as u64 / DAY_MICROS) as i32;
        for line in 1..=count {
            let Item { product, quantity, bits } = self.item(&mut rng);
            let Product { cents, supplier } = self.products[product];
            let dispatched = day + 1 + part(bits, 16, 5) as i32;
            fields.begin_row();
            fields.whole(order as i64);
            fields.whole(line as i64);
            fields.whole(product as i64 + 1);
            fields.money(cents);
            fields.whole(quantity);
            fields.day(dispatched);
            match part(bits, 32, 100) {
                at if at < RETURNED_PERCENT => fields.day(dispatched + 7 + part(bits, 8, 21) as i32),
                _ => fields.null(),
            }
            fields.text(&[WRAPS[(bits >> 48 & 3) as usize]]);
            fields.text(&[CONDITIONS[(bits >> 50 & 3) as usize]]);
            fields.whole(supplier);
            fields.day(day + 3 + (bits >> 52 & 7) as i32);
            fields.end_row();
        }
        count as u64
    }

    fn logon(&self, key: u64, fields: &mut impl Fields) {
        let rng = &mut self.rng(Table::Logon, key);
        fields.whole(key as i64);
        fields.whole(between(rng, (1, self.sizes.customers)) as i64);
        fields.instant(instant_in_past(rng.next_u64()));
    }

    fn metadata(&self, key: u64, fields: &mut impl Fields) {
        let (name, value) = key_ranges(&self.sizes)[(key as usize - 1).min(3)];
        fields.text(&[name]);
        fields.text(&[Digits::of(value).as_str()]);
    }
}

/// How many warehouses a product is in, at least and at most.
pub(super) fn stocked_in(sizes: &Sizes) -> (u64, u64) {
    (sizes.warehouses * STOCKED_OF_TEN / 10, sizes.warehouses)
}

/// What the table of the ranges of keys says.
pub fn key_ranges(sizes: &Sizes) -> [(&'static str, u64); 4] {
    [
        ("SOE_MIN_ORDER_ID", 1),
        ("SOE_MAX_ORDER_ID", sizes.orders),
        ("SOE_MIN_CUSTOMER_ID", 1),
        ("SOE_MAX_CUSTOMER_ID", sizes.customers),
    ]
}

fn yes(bits: u64) -> &'static str {
    if bits & 1 == 1 { "Y" } else { "N" }
}

/// An instant between the first day and now, by a random number.
fn instant_in_past(number: u64) -> i64 {
    let span = (NOW_DAY - FIRST_DAY) as u64 * DAY_MICROS;
    let after = (u128::from(number) * u128::from(span)) >> 64;
    (FIRST_DAY as u64 * DAY_MICROS + after as u64) as i64
}

// Words that rows of order entry are made of.

/// Countries where customers live, with the language and the territory by which they are known.
const COUNTRIES: [(&str, &str, &str); 8] = [
    ("United States", "us", "AMERICA"),
    ("United Kingdom", "gb", "UNITED KINGDOM"),
    ("Germany", "d", "GERMANY"),
    ("France", "f", "FRANCE"),
    ("Italy", "i", "ITALY"),
    ("Spain", "e", "SPAIN"),
    ("Netherlands", "nl", "THE NETHERLANDS"),
    ("Japan", "ja", "JAPAN"),
];

const COUNTIES: [&str; 24] = [
    "Adams",
    "Benton",
    "Clark",
    "Douglas",
    "Essex",
    "Franklin",
    "Grant",
    "Hampshire",
    "Jefferson",
    "Kent",
    "Lancaster",
    "Lincoln",
    "Madison",
    "Monroe",
    "Norfolk",
    "Oxford",
    "Pierce",
    "Somerset",
    "Suffolk",
    "Surrey",
    "Union",
    "Warren",
    "Wayne",
    "York",
];

const TOWNS: [&str; 32] = [
    "Ashford",
    "Bedford",
    "Bristol",
    "Burlington",
    "Cambridge",
    "Chester",
    "Clayton",
    "Dayton",
    "Dover",
    "Fairview",
    "Georgetown",
    "Greenville",
    "Hudson",
    "Kingston",
    "Lebanon",
    "Lexington",
    "Manchester",
    "Marion",
    "Milford",
    "Milton",
    "Newport",
    "Oakland",
    "Oxford",
    "Riverside",
    "Salem",
    "Springfield",
    "Stafford",
    "Trenton",
    "Washington",
    "Wellington",
    "Winchester",
    "Windsor",
];

const STREETS: [&str; 24] = [
    "Bridge", "Cedar", "Chapel", "Church", "Elm", "Forest", "Garden", "Hill", "King", "Lake", "Main", "Maple",
    "Market", "Meadow", "Mill", "North", "Oak", "Orchard", "Park", "River", "School", "South", "Station", "Willow",
];

const STREET_KINDS: [&str; 4] = [" Street", " Road", " Lane", " Avenue"];

/// Where mail is sent to: names that nobody can own.
const MAIL_DOMAINS: [&str; 4] = ["@example.com", "@example.net", "@example.org", "@mail.example"];

const WORDS_CLASSES: [&str; 4] = ["Occasional", "Regular", "Business", "Prime"];

const INTERESTS: [&str; 8] = ["Books", "Music", "Garden", "Kitchen", "Sports", "Toys", "Computers", "Photography"];

const CARD_TYPES: [&str; 5] = ["Debit", "Credit", "Prepaid", "Charge", "Business Credit"];

/// How orders are delivered: each as often as it stands here.
const DELIVERIES: [&str; 7] = ["Standard", "Standard", "Standard", "Standard", "Express", "Collection", "Courier"];

const WAITS: [&str; 2] = ["ship_asap", "wait_for_all"];

const WRAPS: [&str; 4] = ["None", "Plain", "Birthday", "Festive"];

const CONDITIONS: [&str; 4] = ["New", "New", "New", "Used"];

const QUALITIES: [&str; 16] = [
    "Compact", "Classic", "Deluxe", "Light", "Heavy", "Portable", "Folding", "Wireless", "Solid", "Quiet", "Bright",
    "Slim", "Robust", "Smart", "Simple", "Modern",
];

const THINGS: [&str; 24] = [
    "Lamp", "Chair", "Table", "Printer", "Monitor", "Keyboard", "Camera", "Speaker", "Clock", "Radio", "Drill",
    "Ladder", "Kettle", "Toaster", "Mixer", "Tent", "Rucksack", "Bicycle", "Helmet", "Racket", "Puzzle", "Notebook",
    "Lens", "Tripod",
];

const PHRASES: [&str; 12] = [
    " made for daily use,",
    " with a warranty of its own,",
    " tested for a thousand hours,",
    " easy to clean and to store,",
    " delivered with all that it needs,",
    " in a box that can be used again,",
    " with spare parts for ten years,",
    " good at home and on the road,",
    " lighter than the one before,",
    " for the left and the right hand,",
    " with a manual in six languages,",
    " as strong as it looks,",
];

#[cfg(test)]
mod tests;
