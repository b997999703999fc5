//! The nine kinds of transaction.

use crate::workload::Operation;

/// The kinds of transaction of order entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TransactionKind {
    /// Makes a customer with an address and a card, and reads the customer back.
    CustomerRegistration,
    /// Finds customers by name and gives the first a new address.
    UpdateCustomerDetails,
    /// Looks at products and their stock.
    BrowseProducts,
    /// Looks at products and orders some of them.
    OrderProducts,
    /// Takes an order of a warehouse that waits, and marks it as processed.
    ProcessOrders,
    /// Looks at a customer's orders and adds one piece to one of them.
    BrowseOrders,
    /// The largest orders of a sales representative.
    SalesRepQuery,
    /// Orders of a warehouse, summed by how they were made.
    WarehouseQuery,
    /// Orders of a warehouse in its last hour, in five-minute parts.
    WarehouseActivityQuery,
}

impl TransactionKind {
    /// Every kind, in the order of [`index`](Self::index).
    pub const ALL: [Self; 9] = [
        Self::CustomerRegistration,
        Self::UpdateCustomerDetails,
        Self::BrowseProducts,
        Self::OrderProducts,
        Self::ProcessOrders,
        Self::BrowseOrders,
        Self::SalesRepQuery,
        Self::WarehouseQuery,
        Self::WarehouseActivityQuery,
    ];

    /// The words for this kind in tables and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CustomerRegistration => "customer registration",
            Self::UpdateCustomerDetails => "update customer details",
            Self::BrowseProducts => "browse products",
            Self::OrderProducts => "order products",
            Self::ProcessOrders => "process orders",
            Self::BrowseOrders => "browse orders",
            Self::SalesRepQuery => "sales rep query",
            Self::WarehouseQuery => "warehouse query",
            Self::WarehouseActivityQuery => "warehouse activity query",
        }
    }

    /// Its abbreviation, as people know it and as `--mix` takes it.
    pub const fn short(self) -> &'static str {
        match self {
            Self::CustomerRegistration => "NCR",
            Self::UpdateCustomerDetails => "UCD",
            Self::BrowseProducts => "BP",
            Self::OrderProducts => "OP",
            Self::ProcessOrders => "PO",
            Self::BrowseOrders => "BO",
            Self::SalesRepQuery => "SQ",
            Self::WarehouseQuery => "WQ",
            Self::WarehouseActivityQuery => "WA",
        }
    }

    /// The place of this kind in [`ALL`](Self::ALL), for arrays with one entry for each kind.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether it may change anything.
    pub const fn changes_data(self) -> bool {
        !matches!(self, Self::SalesRepQuery | Self::WarehouseQuery | Self::WarehouseActivityQuery)
    }
}

/// One transaction to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderTransaction {
    /// Which.
    pub kind: TransactionKind,
    /// Seed of every choice inside it: who orders what, and how long is paused between its steps.
    pub seed: u64,
}

impl Operation for OrderTransaction {
    const KINDS: &'static [&'static str] = &{
        let mut names = [""; TransactionKind::ALL.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = TransactionKind::ALL[at].name();
            at += 1;
        }
        names
    };

    fn kind_index(&self) -> usize {
        self.kind.index()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_stands_in_the_list_at_its_own_index() {
        for (place, kind) in TransactionKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.index(), place);
            assert_eq!(OrderTransaction::KINDS[place], kind.name());
        }
    }
}
