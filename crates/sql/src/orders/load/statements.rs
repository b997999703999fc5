//! The statements of order entry: each once, with the words that servers differ in as marks.
//!
//! A transaction as one call of its procedure is a statement too.
//!
//! In a text, `{table}` is a table by its bare name, `{1}` the first value, and `{word:…}` what a dialect's [`SqlText`] makes of it.
//! Values stand in the order of their numbers, each once, since not every server can name them twice.

use crate::SqlText;
use model::workload::orders::TransactionKind;

/// Numbers that a procedure answers.
pub const ANSWERS: usize = 8;

/// The statements of order entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statement {
    /// A customer by key.
    Customer,
    /// A new customer.
    AddCustomer,
    /// A new address.
    AddAddress,
    /// A new card.
    AddCard,
    /// Which address and which card a customer prefers.
    SetPreferred,
    /// A logon.
    AddLogon,
    /// Customers by their names.
    CustomersByName,
    /// Which address a customer prefers.
    SetAddress,
    /// A product with its stock.
    Product,
    /// A customer's addresses.
    Addresses,
    /// A customer's cards.
    Cards,
    /// The products of a category with their stock in a warehouse.
    Category,
    /// A new order.
    AddOrder,
    /// The stock of a product in a warehouse.
    Stock,
    /// A new item of an order.
    AddItem,
    /// An order's status and total.
    SetTotal,
    /// Takes one piece out of a warehouse, if there is one.
    TakeStock,
    /// Orders of a warehouse that wait.
    WaitingOrders,
    /// Marks an order as processed, if it still waits.
    Process,
    /// A customer's orders.
    Orders,
    /// The items of an order.
    Items,
    /// Adds one piece to an item.
    AddPiece,
    /// Adds to an order's total.
    AddToTotal,
    /// The largest orders of a sales representative.
    SalesRep,
    /// Orders of a warehouse by how they were made.
    Warehouse,
    /// Orders of a warehouse in the last hour, by five minutes.
    WarehouseActivity,
    /// The procedure of [`TransactionKind::CustomerRegistration`].
    CallCustomerRegistration,
    /// The procedure of [`TransactionKind::UpdateCustomerDetails`].
    CallUpdateCustomerDetails,
    /// The procedure of [`TransactionKind::BrowseProducts`].
    CallBrowseProducts,
    /// The procedure of [`TransactionKind::OrderProducts`].
    CallOrderProducts,
    /// The procedure of [`TransactionKind::ProcessOrders`].
    CallProcessOrders,
    /// The procedure of [`TransactionKind::BrowseOrders`].
    CallBrowseOrders,
    /// The procedure of [`TransactionKind::SalesRepQuery`].
    CallSalesRepQuery,
    /// The procedure of [`TransactionKind::WarehouseQuery`].
    CallWarehouseQuery,
    /// The procedure of [`TransactionKind::WarehouseActivityQuery`].
    CallWarehouseActivityQuery,
}

/// What a statement gives back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gives {
    /// Rows, of which this many leading columns are whole numbers that transactions need.
    Rows(usize),
    /// The number of rows that it changed.
    Changes,
    /// The key of the row that it inserted.
    Key,
}

impl Statement {
    /// Every statement, in the order of [`index`](Self::index).
    pub const ALL: [Self; 26 + TransactionKind::ALL.len()] = [
        Self::Customer,
        Self::AddCustomer,
        Self::AddAddress,
        Self::AddCard,
        Self::SetPreferred,
        Self::AddLogon,
        Self::CustomersByName,
        Self::SetAddress,
        Self::Product,
        Self::Addresses,
        Self::Cards,
        Self::Category,
        Self::AddOrder,
        Self::Stock,
        Self::AddItem,
        Self::SetTotal,
        Self::TakeStock,
        Self::WaitingOrders,
        Self::Process,
        Self::Orders,
        Self::Items,
        Self::AddPiece,
        Self::AddToTotal,
        Self::SalesRep,
        Self::Warehouse,
        Self::WarehouseActivity,
        Self::CallCustomerRegistration,
        Self::CallUpdateCustomerDetails,
        Self::CallBrowseProducts,
        Self::CallOrderProducts,
        Self::CallProcessOrders,
        Self::CallBrowseOrders,
        Self::CallSalesRepQuery,
        Self::CallWarehouseQuery,
        Self::CallWarehouseActivityQuery,
    ];

    /// The call of the procedure that does a transaction of this kind.
    pub const fn call(kind: TransactionKind) -> Self {
        Self::ALL[Self::ALL.len() - TransactionKind::ALL.len() + kind.index()]
    }

    /// Which kind of transaction it does as a whole; none if it is only one of its statements.
    pub fn called(self) -> Option<TransactionKind> {
        let place = (self.index() + TransactionKind::ALL.len()).checked_sub(Self::ALL.len())?;
        Some(TransactionKind::ALL[place])
    }

    /// Its place in [`ALL`](Self::ALL).
    pub const fn index(self) -> usize {
        self as usize
    }

    /// What it gives back.
    pub const fn gives(self) -> Gives {
        match self {
            Self::AddCustomer | Self::AddAddress | Self::AddCard | Self::AddOrder => Gives::Key,
            Self::SetPreferred
            | Self::AddLogon
            | Self::SetAddress
            | Self::AddItem
            | Self::SetTotal
            | Self::TakeStock
            | Self::Process
            | Self::AddPiece
            | Self::AddToTotal => Gives::Changes,
            _ => Gives::Rows(if self.index() + TransactionKind::ALL.len() < Self::ALL.len() {
                self.columns().len()
            } else {
                ANSWERS
            }),
        }
    }

    /// The leading columns of its rows that are whole numbers and that transactions need.
    pub const fn columns(self) -> &'static [&'static str] {
        match self {
            Self::CustomersByName => &["customer_id"],
            Self::Addresses => &["address_id"],
            Self::Cards => &["card_id"],
            Self::Category => &["product_id", "cents"],
            Self::Stock => &["quantity_on_hand"],
            Self::WaitingOrders | Self::Orders => &["order_id"],
            Self::Items => &["line_item_id", "cents"],
            _ => &[],
        }
    }

    /// Its text where it is no call, with these words for its values and for what has it give a key.
    pub(super) fn written<W: SqlText>(
        self,
        namespace: &str,
        value: &dyn Fn(usize) -> String,
        returning: &dyn Fn(&str) -> String,
    ) -> String {
        let (mut text, mut rest) = (String::new(), self.marked());
        while let Some((before, from_mark)) = rest.split_once('{') {
            let (mark, after) = from_mark.split_once('}').unwrap_or((from_mark, ""));
            text.push_str(before);
            text.push_str(&replaced::<W>(mark, namespace, value, returning));
            rest = after;
        }
        text.push_str(rest);
        text
    }

    fn marked(self) -> &'static str {
        match self {
            Self::Customer => {
                "SELECT customer_id, preferred_address, preferred_card, cust_first_name, cust_last_name, nls_language, \
                 nls_territory, credit_limit, cust_email, account_mgr_id, customer_since, customer_class, suggestions, dob, \
                 mailshot, partner_mailshot FROM {customers} WHERE customer_id = {1}"
            }
            Self::AddCustomer => {
                "INSERT INTO {customers} (cust_first_name, cust_last_name, nls_language, nls_territory, credit_limit, \
                 cust_email, account_mgr_id, customer_since, customer_class, suggestions, dob, mailshot, partner_mailshot) \
                 VALUES ({1}, {2}, {3}, {4}, {amount:5}, {6}, {7}, {days_ahead:+0}, {8}, {9}, {days_ahead:10}, 'Y', 'N'){returning:customer_id}"
            }
            Self::AddAddress => {
                "INSERT INTO {addresses} (customer_id, date_created, house_no_or_name, street_name, town, county, country, \
                 post_code, zip_code) VALUES ({1}, {days_ahead:+0}, {2}, {3}, {4}, {5}, {6}, {7}, NULL){returning:address_id}"
            }
            Self::AddCard => {
                "INSERT INTO {card_details} (customer_id, card_type, card_number, expiry_date, is_valid, security_code) \
                 VALUES ({1}, {2}, {3}, {days_ahead:4}, 'Y', {5}){returning:card_id}"
            }
            Self::SetPreferred => {
                "UPDATE {customers} SET preferred_address = {1}, preferred_card = {2} WHERE customer_id = {3}"
            }
            Self::AddLogon => {
                "INSERT INTO {logon} (logon_id, customer_id, logon_date) VALUES ({next_logon:}, {1}, {days_ahead:+0})"
            }
            Self::CustomersByName => {
                "SELECT customer_id, cust_first_name, cust_last_name, nls_language, nls_territory, credit_limit, cust_email, \
                 account_mgr_id FROM {customers} WHERE {lower:cust_last_name} = {1} AND {lower:cust_first_name} = {2}{capped:}"
            }
            Self::SetAddress => "UPDATE {customers} SET preferred_address = {1} WHERE customer_id = {2}",
            Self::Product => {
                "SELECT p.product_id, p.product_name, p.product_description, p.category_id, p.weight_class, \
                 p.warranty_period, p.supplier_id, p.product_status, p.list_price, p.min_price, p.catalog_url, \
                 i.warehouse_id, i.quantity_on_hand FROM {product_information} p JOIN {inventories} i \
                 ON i.product_id = p.product_id WHERE p.product_id = {1}{capped:}"
            }
            Self::Addresses => {
                "SELECT address_id, date_created, house_no_or_name, street_name, town, county, country, post_code, zip_code \
                 FROM {addresses} WHERE customer_id = {1}{capped:}"
            }
            Self::Cards => {
                "SELECT card_id, card_type, card_number, expiry_date, is_valid, security_code FROM {card_details} \
                 WHERE customer_id = {1}{capped:}"
            }
            Self::Category => {
                "SELECT p.product_id, {cents:p.list_price} AS cents, d.translated_name, d.translated_description, p.product_status, \
                 p.min_price, p.catalog_url, i.quantity_on_hand FROM {product_information} p LEFT JOIN \
                 {product_descriptions} d ON d.product_id = p.product_id JOIN {inventories} i ON i.product_id = p.product_id \
                 WHERE p.category_id = {1} AND i.warehouse_id = {2} ORDER BY p.product_id{capped:}"
            }
            Self::AddOrder => {
                "INSERT INTO {orders} (order_date, order_mode, customer_id, order_status, order_total, sales_rep_id, \
                 promotion_id, warehouse_id, delivery_type, cost_of_delivery, wait_till_all_available, delivery_address_id, \
                 customer_class, card_id, invoice_address_id) VALUES ({now:}, 'online', {1}, 1, 0, {2}, {3}, {4}, 'Standard', \
                 {5}, 'ship_asap', {6}, {7}, {8}, {9}){returning:order_id}"
            }
            Self::Stock => "SELECT quantity_on_hand FROM {inventories} WHERE product_id = {1} AND warehouse_id = {2}",
            Self::AddItem => {
                "INSERT INTO {order_items} (order_id, line_item_id, product_id, unit_price, quantity, gift_wrap, {column:condition}, \
                 supplier_id, estimated_delivery) VALUES ({1}, {2}, {3}, {amount:4}, 1, 'None', 'New', {5}, {days_ahead:+3})"
            }
            Self::SetTotal => "UPDATE {orders} SET order_status = {1}, order_total = {amount:2} WHERE order_id = {3}",
            Self::TakeStock => {
                "UPDATE {inventories} SET quantity_on_hand = quantity_on_hand - 1 WHERE product_id = {1} AND \
                 warehouse_id = {2} AND quantity_on_hand > 0"
            }
            Self::WaitingOrders => {
                "SELECT o.order_id, o.order_status, i.line_item_id, i.product_id, i.unit_price, i.quantity, o.order_mode, \
                 o.order_total, o.sales_rep_id, o.promotion_id, c.customer_id, c.cust_first_name, c.cust_last_name, \
                 c.credit_limit, c.cust_email, o.order_date FROM {orders} o JOIN {customers} c ON c.customer_id = \
                 o.customer_id LEFT JOIN {order_items} i ON i.order_id = o.order_id WHERE o.warehouse_id = {1} AND \
                 o.order_status <= 4{capped:}"
            }
            Self::Process => "UPDATE {orders} SET order_status = {1} WHERE order_id = {2} AND order_status <= 4",
            Self::Orders => {
                "SELECT order_id, order_status, order_total, order_date, order_mode, sales_rep_id, promotion_id \
                 FROM {orders} WHERE customer_id = {1}{capped:}"
            }
            Self::Items => {
                "SELECT line_item_id, {cents:unit_price} AS cents, quantity, product_id, dispatch_date, return_date, gift_wrap, \
                 {column:condition}, supplier_id, estimated_delivery FROM {order_items} WHERE order_id = {1}{capped:}"
            }
            Self::AddPiece => {
                "UPDATE {order_items} SET quantity = quantity + 1 WHERE order_id = {1} AND line_item_id = {2}"
            }
            Self::AddToTotal => "UPDATE {orders} SET order_total = order_total + {amount:1} WHERE order_id = {2}",
            Self::SalesRep => {
                "SELECT o.order_id, o.customer_id, o.order_total, o.order_date, o.order_mode, o.order_status, \
                 c.cust_first_name, c.cust_last_name FROM {orders} o JOIN {customers} c ON c.customer_id = o.customer_id \
                 WHERE o.sales_rep_id = {1} ORDER BY o.order_total DESC{largest:}"
            }
            Self::Warehouse => {
                "SELECT order_mode, warehouse_id, SUM(order_total), COUNT(*) FROM {orders} WHERE warehouse_id = {1} \
                 {cube:order_mode,warehouse_id}"
            }
            Self::WarehouseActivity => {
                "SELECT {five_minutes:order_date}, COUNT(*), SUM(order_total) FROM {orders} WHERE warehouse_id = {1} AND \
                 order_date >= {hour_ago:} GROUP BY {five_minutes:order_date}"
            }
            _ => unreachable!("a call is made of its program"),
        }
    }
}

/// Rows that a query of many gives at most: fewer than fifteen, as order entry has it.
const MAX_ROWS: usize = 14;
/// Largest orders of a sales representative.
const LARGEST: usize = 10;

/// What stands in the place of a mark.
fn replaced<W: SqlText>(
    mark: &str,
    namespace: &str,
    numbered: &dyn Fn(usize) -> String,
    returning: &dyn Fn(&str) -> String,
) -> String {
    // A number alone is a value; after a plus sign it is that number.
    let value = |text: &str| match text.strip_prefix('+') {
        Some(number) => number.to_owned(),
        None => text.parse().map_or_else(|_| text.to_owned(), numbered),
    };
    let Some((word, of)) = mark.split_once(':') else {
        return if mark.starts_with(|first: char| first.is_ascii_digit()) {
            value(mark)
        } else {
            W::table(namespace, mark)
        };
    };
    match word {
        "column" => W::column(of),
        "cents" => W::cents(of),
        "amount" => W::amount(&value(of)),
        "days_ahead" => W::days_ahead(&value(of)),
        "now" => W::now().to_owned(),
        "hour_ago" => W::hour_ago(),
        "five_minutes" => W::five_minutes(of),
        "lower" => W::lower(of),
        "next_logon" => W::next_logon(namespace),
        "cube" => {
            let (one, other) = of.split_once(',').unwrap_or((of, of));
            W::cube(one, other)
        }
        "returning" => returning(of),
        "capped" => W::limit(MAX_ROWS),
        "largest" => W::limit(LARGEST),
        _ => unreachable!("`{word}` is not a word of a statement"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::procedure::Parts;
    use super::*;
    use model::workload::orders::tables::Kind;

    /// Shows what was asked of it.
    struct Shown;

    impl SqlText for Shown {
        fn table(_: &str, name: &str) -> String {
            format!("<{name}>")
        }

        fn column(name: &str) -> String {
            name.to_owned()
        }

        fn kind(_: Kind) -> String {
            unreachable!("a statement makes no table")
        }

        fn value(number: usize) -> String {
            format!("${number};")
        }

        fn cents(amount: &str) -> String {
            format!("100*{amount}")
        }

        fn amount(cents: &str) -> String {
            format!("0.01*{cents}")
        }

        fn days_ahead(days: &str) -> String {
            format!("today+{days}")
        }

        fn now() -> &'static str {
            "now"
        }

        fn hour_ago() -> String {
            "hour ago".to_owned()
        }

        fn five_minutes(instant: &str) -> String {
            format!("five({instant})")
        }

        fn lower(column: &str) -> String {
            format!("lower({column})")
        }

        fn next_logon(_: &str) -> String {
            "next".to_owned()
        }

        fn cube(one: &str, other: &str) -> String {
            format!("cube {one} {other}")
        }

        fn limit(rows: usize) -> String {
            format!(" limit {rows}")
        }

        fn returning(key: &str) -> String {
            format!(" returning {key}")
        }

        fn call(_: &str, procedure: &str, values: &[String]) -> String {
            format!("call {procedure}({})", values.join(", "))
        }

        fn frame(_: &str, _: &Parts, _: &str) -> String {
            unreachable!("a statement makes no procedure")
        }

        fn sleep() -> Vec<String> {
            unreachable!("a statement does not sleep")
        }
    }

    #[test]
    fn no_mark_is_left_and_values_stand_in_their_order_each_once() {
        for (place, statement) in Statement::ALL.into_iter().enumerate() {
            assert_eq!(statement.index(), place);
            let text = statement.text::<Shown>("s");
            assert!(!text.contains(['{', '}']), "{text}");
            let values: Vec<usize> =
                text.split('$').skip(1).map(|part| part.split_once(';').unwrap().0.parse().unwrap()).collect();
            assert_eq!(values, (1..=values.len()).collect::<Vec<_>>(), "{text}");
            assert_eq!(text.contains(" returning "), statement.gives() == Gives::Key, "{text}");
            assert!(statement.columns().iter().all(|column| text.contains(column)), "{text}");
        }
        for kind in TransactionKind::ALL {
            assert_eq!(Statement::call(kind).called(), Some(kind));
            assert_eq!(Statement::call(kind).gives(), Gives::Rows(ANSWERS));
        }
        assert_eq!(Statement::WarehouseActivity.called(), None);
        assert_eq!(Statement::CallSalesRepQuery.text::<Shown>("s"), "call plimsoll_sales_rep_query($1;)");
    }

    #[test]
    fn marks_become_what_the_server_says() {
        assert_eq!(
            Statement::SetTotal.text::<Shown>("s"),
            "UPDATE <orders> SET order_status = $1;, order_total = 0.01*$2; WHERE order_id = $3;"
        );
        assert!(Statement::AddCard.text::<Shown>("s").contains("$3;, today+$4;, 'Y', $5;) returning card_id"));
        assert!(Statement::AddItem.text::<Shown>("s").ends_with("$5;, today+3)"));
        assert!(Statement::SalesRep.text::<Shown>("s").ends_with(" limit 10"));
    }
}
