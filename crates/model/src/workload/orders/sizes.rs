//! How many rows each table has.

use serde::{Deserialize, Serialize};

/// Smallest scale: about a thousand customers.
pub const MIN_SCALE: f64 = 0.001;
/// Largest scale: keys of customers and orders then still have twelve digits.
pub const MAX_SCALE: f64 = 10_000.0;

/// Products, whatever the scale; their keys are 1 to this.
pub const PRODUCTS: u32 = 1_000;
/// Warehouses from [`FULL_STOCK_SCALE`] on.
pub const WAREHOUSES: u32 = 1_000;
/// The scale below which there are fewer warehouses, and so fewer stocks, which would be nearly all rows otherwise.
pub const FULL_STOCK_SCALE: f64 = 0.1;
/// Categories of products; their keys are 1 to this.
pub const CATEGORIES: u32 = 199;
/// Sales representatives; their keys are 1 to this.
pub const SALES_REPS: u32 = 1_000;

/// Rows of each table that differs with the scale. Keys are 1 to the number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// Customers.
    pub customers: u64,
    /// Addresses: one of each customer, and a second one of half of them.
    pub addresses: u64,
    /// Cards, shared out as addresses are.
    pub cards: u64,
    /// Orders. Each has 1 to 10 items.
    pub orders: u64,
    /// Logons.
    pub logons: u64,
    /// Warehouses. Data that do not say how many have as many as the largest.
    #[serde(default = "all_warehouses")]
    pub warehouses: u64,
}

fn all_warehouses() -> u64 {
    u64::from(WAREHOUSES)
}

impl Sizes {
    /// At this scale, which is between [`MIN_SCALE`] and [`MAX_SCALE`]. Scale 1 is Swingbench's: a million customers.
    pub fn of(scale: f64) -> Self {
        let of = |rows: f64| (rows * scale).round().max(1.0) as u64;
        Self {
            customers: of(1_000_000.0),
            addresses: of(1_500_000.0),
            cards: of(1_500_000.0),
            orders: of(1_429_790.0),
            logons: of(2_382_984.0),
            warehouses: of(f64::from(WAREHOUSES) / FULL_STOCK_SCALE).min(all_warehouses()),
        }
    }

    /// Whether these are data of this scale. Those of versions before had all warehouses at each.
    pub fn are_of(&self, scale: f64) -> bool {
        let now = Self::of(scale);
        *self == now || *self == Self { warehouses: all_warehouses(), ..now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_follow_the_scale() {
        assert_eq!(Sizes::of(1.0).orders, 1_429_790);
        assert_eq!((Sizes::of(0.02).customers, Sizes::of(0.02).logons), (20_000, 47_660));
        assert_eq!(Sizes::of(MIN_SCALE).customers, 1_000);
        assert!(Sizes::of(MAX_SCALE).logons < 1_000_000_000_000);
    }

    #[test]
    fn warehouses_are_fewer_below_a_tenth_and_never_more_than_a_thousand() {
        let at = |scale: f64| Sizes::of(scale).warehouses;
        assert_eq!([at(MIN_SCALE), at(0.02), at(0.099_9)], [10, 200, 999]);
        assert_eq!([at(0.1), at(1.0), at(MAX_SCALE)], [1_000; 3]);
    }

    #[test]
    fn data_that_do_not_say_how_many_warehouses_they_have_are_those_of_versions_before() {
        let text = r#"{"customers":1000,"addresses":1500,"cards":1500,"orders":1430,"logons":2383}"#;
        let before: Sizes = serde_json::from_str(text).unwrap();
        assert_eq!(before.warehouses, 1_000);
        assert!(before.are_of(0.001) && Sizes::of(0.001).are_of(0.001) && !before.are_of(0.002));
        assert!(!Sizes { warehouses: 20, ..before }.are_of(0.001));
    }
}
