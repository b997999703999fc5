//! What each of the nine transactions does.

use super::Condition::{Exceeds, Is};
use super::Local::*;
use super::Step::*;
use super::Whole::{Number, Of, Rows};
use super::{Bank, Local, Program, Step, Text, Value, Whole};
use crate::orders::load::statements::Statement;
use model::workload::orders::{CATEGORIES, PRODUCTS, TransactionKind};

impl Program {
    /// What transactions of this kind do.
    pub fn of(kind: TransactionKind) -> &'static Self {
        match kind {
            TransactionKind::CustomerRegistration => &REGISTER_CUSTOMER,
            TransactionKind::UpdateCustomerDetails => &UPDATE_CUSTOMER_DETAILS,
            TransactionKind::BrowseProducts => &BROWSE_PRODUCTS,
            TransactionKind::OrderProducts => &ORDER_PRODUCTS,
            TransactionKind::ProcessOrders => &PROCESS_ORDERS,
            TransactionKind::BrowseOrders => &BROWSE_ORDERS,
            TransactionKind::SalesRepQuery => &SALES_REP_QUERY,
            TransactionKind::WarehouseQuery => &WAREHOUSE_QUERY,
            TransactionKind::WarehouseActivityQuery => &WAREHOUSE_ACTIVITY_QUERY,
        }
    }
}

const fn of(local: Local) -> Value {
    Value::Whole(Of(local))
}

const fn word(text: &'static str) -> Value {
    Value::Word(text)
}

const fn chosen(text: Text) -> Value {
    Value::Chosen(text)
}

const fn draw(into: Local, least: i64, most: i64) -> Step {
    Draw { into, least, most: Number(most) }
}

/// The first column of row number `row` of the last query.
const fn key(row: Whole, into: Local) -> Step {
    Pick { from: Bank::Rows, row, column: 0, into }
}

/// One of the rows that the last query gave; it has no number where there are none.
const ANY_ROW: Step = Draw { into: Row, least: 1, most: Rows(Bank::Rows) };
/// One of the warehouses that there are.
const ANY_WAREHOUSE: Step = Draw { into: Warehouse, least: 1, most: Of(Warehouses) };
/// The customer, read by key.
const READ_CUSTOMER: Step = Query(Statement::Customer, &[of(Customer)], Bank::Rows);
/// How many times a customer looks at products.
const HOW_OFTEN: Step = draw(Browses, 1, 23);
/// A sales representative that transactions ask for.
const ANY_SALES_REP: Step = draw(SalesRep, 145, 171);

/// Notes with chance 1/3 that the customer came, in a transaction of its own.
const LOG_ON: Step = Do(&[
    draw(Chance, 1, 3),
    If(Is(Of(Chance), Number(1)), &[Begin, Change(Statement::AddLogon, &[of(Customer)]), Commit]),
]);

const ADD_ADDRESS: Step = Insert(
    Statement::AddAddress,
    &[
        of(Customer),
        chosen(Text::House),
        chosen(Text::Street),
        chosen(Text::Town),
        chosen(Text::County),
        chosen(Text::Country),
        chosen(Text::PostCode),
    ],
    Address,
);

const REGISTER_CUSTOMER: Program = Program {
    wholes: &[CardNumber, Credit],
    texts: &[
        Text::First,
        Text::Last,
        Text::Email,
        Text::CardType,
        Text::House,
        Text::Street,
        Text::Town,
        Text::County,
        Text::Country,
        Text::PostCode,
    ],
    steps: &[
        draw(Manager, 145, 171),
        draw(Born, -80 * 365, -18 * 365),
        Begin,
        Insert(
            Statement::AddCustomer,
            &[
                chosen(Text::First),
                chosen(Text::Last),
                word("us"),
                word("AMERICA"),
                of(Credit),
                chosen(Text::Email),
                of(Manager),
                word("Occasional"),
                word("Computing"),
                of(Born),
            ],
            Customer,
        ),
        ADD_ADDRESS,
        draw(Expiry, 365, 1_460),
        draw(SecurityCode, 1_111, 9_999),
        Insert(
            Statement::AddCard,
            &[of(Customer), chosen(Text::CardType), of(CardNumber), of(Expiry), of(SecurityCode)],
            Card,
        ),
        Change(Statement::SetPreferred, &[of(Address), of(Card), of(Customer)]),
        Commit,
        Pause,
        LOG_ON,
        READ_CUSTOMER,
    ],
};

const UPDATE_CUSTOMER_DETAILS: Program = Program {
    wholes: &[],
    texts: &[
        Text::LowerFirst,
        Text::LowerLast,
        Text::House,
        Text::Street,
        Text::Town,
        Text::County,
        Text::Country,
        Text::PostCode,
    ],
    steps: &[
        Begin,
        Query(Statement::CustomersByName, &[chosen(Text::LowerLast), chosen(Text::LowerFirst)], Bank::Rows),
        Pause,
        If(
            Exceeds(Rows(Bank::Rows), Number(1)),
            &[key(Number(1), Customer), ADD_ADDRESS, Change(Statement::SetAddress, &[of(Address), of(Customer)])],
        ),
        Commit,
    ],
};

const BROWSE_PRODUCTS: Program = Program {
    wholes: &[Customer],
    texts: &[],
    steps: &[
        READ_CUSTOMER,
        Pause,
        LOG_ON,
        HOW_OFTEN,
        Times(
            Of(Browses),
            &[draw(Product, 1, PRODUCTS as i64), Query(Statement::Product, &[of(Product)], Bank::Rows), Pause],
        ),
    ],
};

const ORDER_PRODUCTS: Program = Program {
    wholes: &[Customer, Warehouses],
    texts: &[],
    steps: &[
        READ_CUSTOMER,
        Query(Statement::Addresses, &[of(Customer)], Bank::Rows),
        ANY_ROW,
        key(Of(Row), Address),
        Query(Statement::Cards, &[of(Customer)], Bank::Rows),
        ANY_ROW,
        key(Of(Row), Card),
        Pause,
        LOG_ON,
        HOW_OFTEN,
        Times(
            Of(Browses),
            &[
                draw(Category, 1, CATEGORIES as i64),
                ANY_WAREHOUSE,
                Query(Statement::Category, &[of(Category), of(Warehouse)], Bank::Found),
                Pause,
            ],
        ),
        If(Exceeds(Rows(Bank::Found), Number(0)), PLACE_ORDER),
    ],
};

/// Makes an order of some of the products that were found, and takes them out of stock.
const PLACE_ORDER: &[Step] = &[
    Begin,
    ANY_SALES_REP,
    draw(Promotion, 0, 1_000),
    draw(Delivery, 1, 5),
    Insert(
        Statement::AddOrder,
        &[
            of(Customer),
            of(SalesRep),
            of(Promotion),
            of(Warehouse),
            of(Delivery),
            of(Address),
            word("Occasional"),
            of(Card),
            of(Address),
        ],
        Order,
    ),
    draw(Wanted, 2, 7),
    If(Exceeds(Of(Wanted), Rows(Bank::Found)), &[Set(Wanted, Rows(Bank::Found))]),
    Times(
        Of(Wanted),
        &[
            Pick { from: Bank::Found, row: Of(Counter), column: 0, into: Product },
            Pick { from: Bank::Found, row: Of(Counter), column: 1, into: Cents },
            ANY_WAREHOUSE,
            Query(Statement::Stock, &[of(Product), of(Warehouse)], Bank::Rows),
            key(Number(1), Stock),
            If(
                Exceeds(Of(Stock), Number(0)),
                &[
                    Keep(Bank::Items, [Product, Warehouse]),
                    draw(Supplier, 1, 1_000),
                    Change(
                        Statement::AddItem,
                        &[of(Order), Value::Whole(Rows(Bank::Items)), of(Product), of(Cents), of(Supplier)],
                    ),
                    Add(Total, Of(Cents)),
                ],
            ),
        ],
    ),
    draw(Status, 0, 3),
    Change(Statement::SetTotal, &[of(Status), of(Total), of(Order)]),
    // In the order of their keys, as they were found, so that two orders of the same products do not wait for each other.
    Times(
        Rows(Bank::Items),
        &[
            Pick { from: Bank::Items, row: Of(Counter), column: 0, into: Product },
            Pick { from: Bank::Items, row: Of(Counter), column: 1, into: Warehouse },
            Change(Statement::TakeStock, &[of(Product), of(Warehouse)]),
            // Somebody took the last piece since the stock was read.
            If(Is(Of(Changed), Number(0)), &[GiveUp]),
        ],
    ),
    Commit,
    Set(Made, Of(Order)),
];

const PROCESS_ORDERS: Program = Program {
    wholes: &[Warehouses],
    texts: &[],
    steps: &[
        ANY_WAREHOUSE,
        Begin,
        Query(Statement::WaitingOrders, &[of(Warehouse)], Bank::Rows),
        key(Number(1), Order),
        Pause,
        If(
            Exceeds(Of(Order), Number(0)),
            &[
                draw(Status, 5, 9),
                Change(Statement::Process, &[of(Status), of(Order)]),
                // Somebody else processed it since it was read.
                If(Is(Of(Changed), Number(0)), &[GiveUp]),
            ],
        ),
        Commit,
        Set(Processed, Of(Order)),
    ],
};

const BROWSE_ORDERS: Program = Program {
    wholes: &[Customer],
    texts: &[],
    steps: &[
        READ_CUSTOMER,
        Query(Statement::Addresses, &[of(Customer)], Bank::Rows),
        Pause,
        LOG_ON,
        Begin,
        Query(Statement::Orders, &[of(Customer)], Bank::Rows),
        Pause,
        If(
            Exceeds(Rows(Bank::Rows), Number(1)),
            &[
                ANY_ROW,
                key(Of(Row), Order),
                Query(Statement::Items, &[of(Order)], Bank::Rows),
                ANY_ROW,
                key(Of(Row), Line),
                Pick { from: Bank::Rows, row: Of(Row), column: 1, into: Cents },
                If(
                    Exceeds(Of(Line), Number(0)),
                    &[
                        Change(Statement::AddPiece, &[of(Order), of(Line)]),
                        Change(Statement::AddToTotal, &[of(Cents), of(Order)]),
                    ],
                ),
            ],
        ),
        Commit,
    ],
};

const SALES_REP_QUERY: Program = Program {
    wholes: &[],
    texts: &[],
    steps: &[ANY_SALES_REP, Query(Statement::SalesRep, &[of(SalesRep)], Bank::Rows)],
};

const WAREHOUSE_QUERY: Program = Program {
    wholes: &[Warehouses],
    texts: &[],
    steps: &[ANY_WAREHOUSE, Query(Statement::Warehouse, &[of(Warehouse)], Bank::Rows)],
};

const WAREHOUSE_ACTIVITY_QUERY: Program = Program {
    wholes: &[Warehouses],
    texts: &[],
    steps: &[ANY_WAREHOUSE, Query(Statement::WarehouseActivity, &[of(Warehouse)], Bank::Rows)],
};
