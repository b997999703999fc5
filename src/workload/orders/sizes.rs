//! How many rows each table has.

use serde::{Deserialize, Serialize};

/// Smallest scale: about a thousand customers.
pub const MIN_SCALE: f64 = 0.001;
/// Largest scale: keys of customers and orders then still have twelve digits.
pub const MAX_SCALE: f64 = 10_000.0;

/// Products, whatever the scale; their keys are 1 to this.
pub const PRODUCTS: u32 = 1_000;
/// Warehouses, whatever the scale; their keys are 1 to this.
pub const WAREHOUSES: u32 = 1_000;
/// Categories of products; their keys are 1 to this.
pub const CATEGORIES: u32 = 199;
/// Sales representatives; their keys are 1 to this.
pub const SALES_REPS: u32 = 1_000;

/// Rows of each table that grows with the scale. Keys are 1 to the number of rows.
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
        }
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
}
