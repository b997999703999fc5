//! Transactions that make, process, change and sum orders.

use super::statements::Statement;
use super::steps::Steps;
use super::{Argument, OrdersSession};
use crate::workload::orders::{CATEGORIES, WAREHOUSES};

use Argument::{Int, Text};

/// Sales representatives that transactions ask for.
const SALES_REPS: (i64, i64) = (145, 171);
/// Items of an order, where as many products were found.
const ITEMS: (i64, i64) = (2, 7);

/// An item that was put into an order: which product, of which warehouse, at which price in hundredths.
#[derive(Clone, Copy)]
struct Item {
    product: i64,
    warehouse: i64,
    cents: i64,
}

impl<S: OrdersSession> Steps<'_, S> {
    pub(super) async fn order_products(&mut self) -> Result<(), S::Error> {
        let customer = self.customer();
        self.query(Statement::Customer, &[Int(customer)]).await?;
        self.query(Statement::Addresses, &[Int(customer)]).await?;
        let address = self.any_row().unwrap_or(0);
        self.query(Statement::Cards, &[Int(customer)]).await?;
        let card = self.any_row().unwrap_or(0);
        self.pause().await;
        self.log_on(customer).await?;
        let mut found: Vec<(i64, i64)> = Vec::new();
        let mut warehouse = 0;
        for _ in 0..self.browses() {
            let category = self.between(1, CATEGORIES.into());
            warehouse = self.between(1, WAREHOUSES.into());
            self.query(Statement::Category, &[Int(category), Int(warehouse)]).await?;
            found.clear();
            let rows = &self.rows;
            found.extend((0..rows.len()).filter_map(|row| Some((rows.get(row, 0)?, rows.get(row, 1)?))));
            self.pause().await;
        }
        if found.is_empty() {
            return Ok(());
        }
        self.place_order(customer, (address, card), warehouse, &found).await
    }

    /// Makes an order of some of the products that were found, and takes them out of stock.
    async fn place_order(
        &mut self,
        customer: i64,
        (address, card): (i64, i64),
        warehouse: i64,
        found: &[(i64, i64)],
    ) -> Result<(), S::Error> {
        self.begin().await?;
        let order = [
            Int(customer),
            Int(self.between(SALES_REPS.0, SALES_REPS.1)),
            Int(self.between(0, 1_000)),
            Int(warehouse),
            Int(self.between(1, 5)),
            Int(address),
            Text("Occasional"),
            Int(card),
            Int(address),
        ];
        let order = self.insert(Statement::AddOrder, &order).await?;
        let wanted = self.between(ITEMS.0, ITEMS.1) as usize;
        let mut items: Vec<Item> = Vec::with_capacity(wanted);
        for (product, cents) in found.iter().copied().take(wanted) {
            let warehouse = self.between(1, WAREHOUSES.into());
            self.query(Statement::Stock, &[Int(product), Int(warehouse)]).await?;
            if self.rows.get(0, 0).is_none_or(|pieces| pieces <= 0) {
                continue;
            }
            let line = items.len() as i64 + 1;
            let supplier = self.between(1, 1_000);
            let item = [Int(order), Int(line), Int(product), Int(cents), Int(supplier)];
            self.change(Statement::AddItem, &item).await?;
            items.push(Item { product, warehouse, cents });
        }
        let total: i64 = items.iter().map(|item| item.cents).sum();
        let status = self.between(0, 3);
        self.change(Statement::SetTotal, &[Int(status), Int(total), Int(order)]).await?;
        // Always in the order of their keys, so that two orders of the same products do not wait for each other.
        items.sort_unstable_by_key(|item| (item.product, item.warehouse));
        for Item { product, warehouse, .. } in &items {
            if self.change(Statement::TakeStock, &[Int(*product), Int(*warehouse)]).await? == 0 {
                // Somebody took the last piece since the stock was read.
                return self.give_up().await;
            }
        }
        self.commit().await?;
        self.acknowledged.order = Some(order);
        Ok(())
    }

    pub(super) async fn process_orders(&mut self) -> Result<(), S::Error> {
        let warehouse = self.between(1, WAREHOUSES.into());
        self.begin().await?;
        self.query(Statement::WaitingOrders, &[Int(warehouse)]).await?;
        let order = self.rows.get(0, 0);
        self.pause().await;
        let Some(order) = order else { return self.commit().await };
        let status = self.between(5, 9);
        if self.change(Statement::Process, &[Int(status), Int(order)]).await? == 0 {
            // Somebody else processed it since it was read.
            return self.give_up().await;
        }
        self.commit().await?;
        self.acknowledged.processed = Some(order);
        Ok(())
    }

    pub(super) async fn browse_orders(&mut self) -> Result<(), S::Error> {
        let customer = self.customer();
        self.query(Statement::Customer, &[Int(customer)]).await?;
        self.query(Statement::Addresses, &[Int(customer)]).await?;
        self.pause().await;
        self.log_on(customer).await?;
        self.begin().await?;
        self.query(Statement::Orders, &[Int(customer)]).await?;
        self.pause().await;
        if self.rows.len() > 1
            && let Some(order) = self.any_row()
        {
            self.query(Statement::Items, &[Int(order)]).await?;
            let row = self.below(self.rows.len());
            if let (Some(line), Some(cents)) = (self.rows.get(row, 0), self.rows.get(row, 1)) {
                self.change(Statement::AddPiece, &[Int(order), Int(line)]).await?;
                self.change(Statement::AddToTotal, &[Int(cents), Int(order)]).await?;
            }
        }
        self.commit().await
    }

    pub(super) async fn ask_for_sales_rep(&mut self) -> Result<(), S::Error> {
        let sales_rep = self.between(SALES_REPS.0, SALES_REPS.1);
        self.query(Statement::SalesRep, &[Int(sales_rep)]).await
    }

    pub(super) async fn ask_for_warehouse(&mut self, statement: Statement) -> Result<(), S::Error> {
        let warehouse = self.between(1, WAREHOUSES.into());
        self.query(statement, &[Int(warehouse)]).await
    }
}
