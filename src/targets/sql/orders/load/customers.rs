//! Transactions in which customers register, change their details and look at products.

use super::statements::Statement;
use super::steps::Steps;
use super::{Argument, OrdersSession};
use crate::workload::orders::{PRODUCTS, names};

use Argument::{Int, Text};

/// Words of addresses.
const STREETS: [&str; 8] = ["High", "Station", "Church", "Mill", "Park", "Victoria", "Green", "Bridge"];
const TOWNS: [&str; 8] = ["Ashford", "Burnley", "Carlisle", "Dover", "Exeter", "Falmouth", "Guildford", "Hereford"];
const COUNTIES: [&str; 6] = ["Devon", "Essex", "Kent", "Norfolk", "Suffolk", "Surrey"];
const COUNTRIES: [&str; 5] = ["England", "France", "Germany", "Spain", "Sweden"];
const CARDS: [&str; 3] = ["Visa (Credit)", "Visa (Debit)", "MasterCard"];

impl<S: OrdersSession> Steps<'_, S> {
    pub(super) async fn register_customer(&mut self) -> Result<(), S::Error> {
        let (first, last) = (names::first(&mut self.rng), names::last(&mut self.rng));
        let email = format!("{first}.{last}@example.com").to_lowercase();
        let credit_cents = 100 * self.between(100, 5_000);
        let manager = self.between(145, 171);
        let age_days = self.between(18 * 365, 80 * 365);
        self.begin().await?;
        let customer = [
            Text(first),
            Text(last),
            Text("us"),
            Text("AMERICA"),
            Int(credit_cents),
            Text(&email),
            Int(manager),
            Text("Occasional"),
            Text("Computing"),
            Int(-age_days),
        ];
        let customer = self.insert(Statement::AddCustomer, &customer).await?;
        let address = self.add_address(customer).await?;
        let card = [
            Int(customer),
            Text(CARDS[self.below(CARDS.len())]),
            Int(self.between(1_111_111_111, 9_999_999_999)),
            Int(self.between(365, 1_460)),
            Int(self.between(1_111, 9_999)),
        ];
        let card = self.insert(Statement::AddCard, &card).await?;
        self.change(Statement::SetPreferred, &[Int(address), Int(card), Int(customer)]).await?;
        self.commit().await?;
        self.pause().await;
        self.log_on(customer).await?;
        self.query(Statement::Customer, &[Int(customer)]).await
    }

    pub(super) async fn update_customer_details(&mut self) -> Result<(), S::Error> {
        let first = names::first(&mut self.rng).to_lowercase();
        let last = names::last(&mut self.rng).to_lowercase();
        self.begin().await?;
        self.query(Statement::CustomersByName, &[Text(&last), Text(&first)]).await?;
        self.pause().await;
        let found = self.rows.len();
        let customer = self.rows.get(0, 0).filter(|_| found > 1);
        if let Some(customer) = customer {
            let address = self.add_address(customer).await?;
            self.change(Statement::SetAddress, &[Int(address), Int(customer)]).await?;
        }
        self.commit().await
    }

    pub(super) async fn browse_products(&mut self) -> Result<(), S::Error> {
        let customer = self.customer();
        self.query(Statement::Customer, &[Int(customer)]).await?;
        self.pause().await;
        self.log_on(customer).await?;
        for _ in 0..self.browses() {
            let product = self.between(1, PRODUCTS.into());
            self.query(Statement::Product, &[Int(product)]).await?;
            self.pause().await;
        }
        Ok(())
    }

    /// Notes with chance 1/3 that a customer came, in a transaction of its own.
    pub(super) async fn log_on(&mut self, customer: i64) -> Result<(), S::Error> {
        if self.below(3) > 0 {
            return Ok(());
        }
        self.begin().await?;
        self.change(Statement::AddLogon, &[Int(customer)]).await?;
        self.commit().await
    }

    async fn add_address(&mut self, customer: i64) -> Result<i64, S::Error> {
        let house = self.between(1, 200).to_string();
        let street = format!("{} Street", STREETS[self.below(STREETS.len())]);
        let post_code = format!("{:05}", self.below(100_000));
        let address = [
            Int(customer),
            Text(&house),
            Text(&street),
            Text(TOWNS[self.below(TOWNS.len())]),
            Text(COUNTIES[self.below(COUNTIES.len())]),
            Text(COUNTRIES[self.below(COUNTRIES.len())]),
            Text(&post_code),
        ];
        self.insert(Statement::AddAddress, &address).await
    }
}
