//! What set-up and removal of order entry do on a server of any kind, with a real one of each.
//!
//! Each set-up takes its time: one tells as much as it can.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::setup::{State, Validation};
use super::*;
use super::{OrdersData, OrdersDialect, Source};
use crate::data::catalog::{self, Keeps};
use crate::data::found::{Existing, Loaded};
use crate::data::plan::{plan, run};
use crate::data::streams::Halt;
use crate::data::tests::{self as slob, Tested, refusal};
use crate::data::{Access, Content, DataSet, drop as slob_drop};
use crate::database::TablesToRemove;
use crate::mysql::Connector as Mysql;
use crate::postgres::Connector as Postgres;
use model::workload::orders::Table;
use targets::TargetError;
use targets::database::{Phase, Progress, Replace};
use targets::orders::{Indexes, OrdersRequest};

pub trait TestedOrders: Tested + OrdersDialect {
    /// Statements that make something which has a name of ours, and that name.
    const ORDERS_CLASHES: &'static [(&'static str, &'static str)];
    /// Whether tables may have both partitions and foreign keys.
    const HAS_BOTH: bool;
    /// A statement that has each new order keep the level of its transaction in a column `level`; none where no default can.
    const KEEPS_LEVEL: Option<&'static str>;

    /// The statement that says something of a procedure in the namespace.
    fn remark(procedure: &str, text: &str) -> String;
}

impl TestedOrders for Postgres {
    const ORDERS_CLASHES: &'static [(&'static str, &'static str)] = &[
        ("CREATE TABLE customers (id int)", "customers"),
        ("CREATE SEQUENCE orders_seq", "orders_seq"),
        ("CREATE VIEW order_items AS SELECT 1", "order_items"),
        ("CREATE TABLE plimsoll_orders (id int)", "plimsoll_orders"),
    ];
    const HAS_BOTH: bool = true;
    const KEEPS_LEVEL: Option<&'static str> =
        Some("ALTER TABLE orders ADD COLUMN level text DEFAULT current_setting('transaction_isolation')");

    fn remark(procedure: &str, text: &str) -> String {
        format!("COMMENT ON PROCEDURE {procedure} IS '{text}'")
    }
}

impl TestedOrders for Mysql {
    const ORDERS_CLASHES: &'static [(&'static str, &'static str)] = &[
        ("CREATE TABLE customers (id int)", "customers"),
        ("CREATE VIEW order_items AS SELECT 1", "order_items"),
        ("CREATE TABLE plimsoll_orders (id int)", "plimsoll_orders"),
    ];
    const HAS_BOTH: bool = false;
    const KEEPS_LEVEL: Option<&'static str> = None;

    fn remark(procedure: &str, text: &str) -> String {
        format!("ALTER PROCEDURE {procedure} COMMENT '{text}'")
    }
}

pub(super) fn request() -> OrdersRequest {
    OrdersRequest {
        scale: 0.001,
        partitions: 0,
        indexes: Indexes::All,
        streams: 2,
        seed: 42,
        is_seed_asked: true,
        replace: Replace::Refuse,
    }
}

/// Data whose rows take long enough to load that somebody can interrupt that.
fn large() -> OrdersRequest {
    OrdersRequest { scale: 0.02, ..request() }
}

/// Executes statements in the namespace.
pub(super) fn execute<D: Tested>(access: &Access<'_, D>, statements: &[&str]) {
    <D as Tested>::inside(access, statements);
}

fn load<D: OrdersDialect>(access: &Access<'_, D>) -> Result<OrdersData, TargetError> {
    catalog::whole(*access, catalog::find(access)?)
}

pub fn set_up<D: OrdersDialect>(
    access: &Access<'_, D>,
    request: &OrdersRequest,
) -> Result<(Loaded, Validation), TargetError> {
    let (loaded, validation) = run(plan(access, request)?, &|_, _| {}, &AtomicBool::new(false))?;
    Ok((loaded, validation.unwrap()))
}

/// Interrupts a set-up when `when` says so, and gives the bytes that are loaded then.
fn interrupt<D: OrdersDialect>(
    access: &Access<'_, D>,
    request: &OrdersRequest,
    when: impl Fn(Phase, Progress) -> bool,
) -> u64 {
    let stop = AtomicBool::new(false);
    let notify = |phase, now| {
        if when(phase, now) {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let outcome = run(plan(access, request).unwrap(), &notify, &stop);
    assert!(matches!(outcome, Err(TargetError::Interrupted)), "{outcome:?}");
    match plan(access, request).unwrap().existing {
        Existing::Unfinished { loaded_bytes } => loaded_bytes,
        other => panic!("{other:?}"),
    }
}

fn number<D: OrdersDialect>(access: &Access<'_, D>, table: &str, expression: &str) -> f64 {
    let name = D::qualified(access.namespace, table);
    let mut session = D::open(*access).unwrap();
    let rows = D::ask(&mut session, "test", &format!("SELECT {expression} FROM {name}"), Halt::NEVER).unwrap();
    rows[0][0].as_ref().unwrap().parse().unwrap()
}

pub fn drop_all<D: OrdersDialect>(access: Access<'_, D>) -> Option<String> {
    use targets::database::DropPlan as _;
    Box::new(TablesToRemove::<D, OrdersData>::find(access).unwrap()).run(&AtomicBool::new(false)).unwrap()
}

/// From nothing, over every kind of interruption, to whole data beside SLOB's, and away again.
fn lives<D: TestedOrders>() {
    let Some(connector) = D::place("orders_lives") else { return };
    let access = Access::new(&connector, "orders_lives");
    let (missing, hint) = refusal(load(&access));
    assert!(missing.contains("no order entry data") && hint.contains("plimsoll orders setup"), "{missing}; {hint}");
    let slob_request = slob::request::<D>();
    slob::set_up(&access, &slob_request).unwrap();
    execute::<D>(&access, &["CREATE TABLE mine (id int)"]);

    let all = Source::new(42, plan(&access, &large()).unwrap().data.sizes).bytes();
    // Pieces that are under way come to their end, and two of them are nearly all.
    let slow = OrdersRequest { streams: 1, ..large() };
    let loaded = interrupt(&access, &slow, |phase, now| phase == Phase::Load && now.done_bytes > 0);
    assert!(loaded < all, "{loaded} of {all}");
    let (what, hint) = refusal(load(&access));
    assert!(what.contains("never finished") && hint.contains("plimsoll orders setup"), "{what}; {hint}");
    let other = OrdersRequest { seed: 1, scale: 0.03, ..large() };
    let (what, hint) = refusal(plan(&access, &other));
    assert!(what.ends_with("the scale is 0.02 there and 0.03 here; the seed is 42 there and 1 here"), "{what}");
    assert!(hint.contains("--replace"), "{hint}");
    // All sessions are killed in the middle of the load.
    let killed = Mutex::new(false);
    let notify = |phase, now: Progress| {
        if phase == Phase::Load && now.done_bytes > all / 2 && !std::mem::replace(&mut *killed.lock().unwrap(), true) {
            connector.kill_sessions();
        }
    };
    let outcome = run(plan(&access, &large()).unwrap(), &notify, &AtomicBool::new(false));
    if *killed.lock().unwrap() {
        assert!(outcome.is_err(), "{outcome:?}");
    }
    // A table that somebody dropped meanwhile is loaded again; nobody refers to this one.
    interrupt(&access, &large(), |phase, _| phase == Phase::Index);
    execute::<D>(&access, &["DROP TABLE logon"]);
    for phase in [Phase::Keys, D::SETTLING, Phase::Checkpoint, Phase::Validate] {
        interrupt(&access, &large(), |now, _| now == phase);
    }
    let (done, validation) = set_up(&access, &large()).unwrap();
    assert!(validation.is_valid, "{validation:#?}");
    assert_eq!((done.rows_written, done.bytes_written), (0, 0), "all was loaded before");
    let data = load(&access).unwrap();
    assert_eq!((data.scale, data.seed, data.indexes), (0.02, 42, Indexes::All));

    let again = plan(&access, &large()).unwrap();
    assert_eq!((again.existing, again.makes_data(), again.missing_bytes()), (Existing::SameData, false, 0));
    assert!(!run(again, &|_, _| {}, &AtomicBool::new(false)).unwrap().0.created);
    // Both kinds of data are side by side, and each has its own marks.
    crate::data::verify(&access, &|_| {}, &AtomicBool::new(false)).unwrap();
    assert_eq!(catalog::load(&access).unwrap().seed, 42);
    let next = number(&access, "orders", "max(order_id)") + 1.0;
    execute::<D>(
        &access,
        &[
            "INSERT INTO orders (order_date, customer_id) VALUES (CURRENT_TIMESTAMP, 1)",
            "INSERT INTO logon (customer_id) VALUES (1)",
        ],
    );
    assert_eq!(number(&access, "orders", "max(order_id)"), next, "new orders are numbered behind the last");

    assert!(drop_all(access).is_none(), "the rest keeps what holds it");
    assert!(refusal(load(&access)).0.contains("no order entry data"));
    slob::assert_sound(&access);
    execute::<D>(&access, &["SELECT id FROM mine"]);
    let there = <D as Keeps<OrdersData>>::objects(&mut D::open(access).unwrap()).unwrap();
    assert!(there.is_empty(), "{there:?}");
    slob_drop::run(slob_drop::plan::<D, DataSet>(&access).unwrap(), &AtomicBool::new(false)).unwrap();
}

#[test]
fn data_are_made_over_all_interruptions_beside_others_and_go_without_a_trace_on_postgres() {
    lives::<Postgres>();
}

#[test]
fn data_are_made_over_all_interruptions_beside_others_and_go_without_a_trace_on_mysql() {
    lives::<Mysql>();
}

fn leaves_others_alone<D: TestedOrders>() {
    let Some(connector) = D::place("orders_others") else { return };
    let access = Access::new(&connector, "orders_others");
    execute::<D>(&Access::new(&connector, ""), &["CREATE SCHEMA orders_others"]);
    for (statement, clash) in D::ORDERS_CLASHES {
        execute::<D>(&access, &[statement]);
        let (what, hint) = refusal(plan(&access, &request()));
        assert!(what.contains(&format!("holds `{clash}`")) && hint.contains(D::HOLDER_OPTION), "{what}; {hint}");
        assert!(TablesToRemove::<D, OrdersData>::find(access).is_err(), "what is not marked is not removed");
        let [_, kind, ..] = statement.split(' ').collect::<Vec<_>>()[..] else { panic!("{statement}") };
        execute::<D>(&access, &[&format!("DROP {kind} {clash}")]);
    }
    plan(&access, &request()).unwrap();
}

#[test]
fn tables_of_others_keep_set_up_away_and_are_never_removed() {
    leaves_others_alone::<Postgres>();
    leaves_others_alone::<Mysql>();
}

/// Partitions, few indexes and none, each in the place of what was there.
fn has_other_shapes<D: TestedOrders>() {
    let Some(connector) = D::place("orders_shapes") else { return };
    let access = Access::new(&connector, "orders_shapes");
    let partitioned = OrdersRequest { partitions: 3, ..request() };
    let (made, validation) = set_up(&access, &partitioned).unwrap();
    assert!(validation.is_valid && made.rows_written > 20_000, "{validation:#?}");
    assert_eq!(validation.checks.iter().any(|check| check.what == "foreign_key"), D::HAS_BOTH);
    assert_eq!(made.notes.iter().any(|note| note.contains("no foreign keys")), !D::HAS_BOTH);
    assert_eq!(plan(&access, &partitioned).unwrap().existing, Existing::SameData);
    for indexes in [Indexes::Keys, Indexes::None] {
        let request = OrdersRequest { indexes, replace: Replace::Replace, ..request() };
        assert_eq!(plan(&access, &request).unwrap().existing, Existing::OtherData);
        let (made, validation) = set_up(&access, &request).unwrap();
        assert_eq!(made.phases[0].0, Phase::Remove);
        assert!(validation.is_valid, "{validation:#?}");
        let count = |what| validation.checks.iter().filter(|check| check.what == what).count();
        let keys = if indexes == Indexes::Keys || !D::HAS_BOTH { 9 } else { 0 };
        assert_eq!((count("index"), count("key")), (0, keys), "{indexes:?}");
    }
    assert!(drop_all(access).is_some(), "what set-up made goes too");
}

#[test]
fn partitions_and_fewer_indexes_are_made_as_asked_on_postgres() {
    has_other_shapes::<Postgres>();
}

#[test]
fn partitions_and_fewer_indexes_are_made_as_asked_on_mysql() {
    has_other_shapes::<Mysql>();
}

fn finds_damage<D: TestedOrders>() {
    let Some(connector) = D::place("orders_damage") else { return };
    let access = Access::new(&connector, "orders_damage");
    let request = OrdersRequest { indexes: Indexes::None, ..request() };
    interrupt(&access, &request, |phase, _| phase == Phase::Validate);
    execute::<D>(
        &access,
        &[
            "DELETE FROM customers WHERE customer_id = 500",
            "UPDATE orders SET order_total = order_total + 1, order_mode = 'direct'",
        ],
    );
    let (_, validation) = set_up(&access, &request).unwrap();
    let wrong: Vec<&str> = validation
        .checks
        .iter()
        .filter(|check| check.state == State::Invalid)
        .map(|check| check.name.as_str())
        .collect();
    assert!(!validation.is_valid);
    let expected = [
        "customers",
        "customers: customer_id without gaps",
        "orders: part of unknown mode",
        "orders: all totals are all items",
    ];
    assert_eq!(wrong, expected, "{validation:#?}");
    assert_eq!(OrdersData::DATA_TABLE, "plimsoll_orders");
    assert_eq!(number(&access, Table::Metadata.name(), "count(*)"), 4.0);
}

#[test]
fn validation_finds_missing_rows_and_changed_values() {
    finds_damage::<Postgres>();
    finds_damage::<Mysql>();
}

#[test]
fn an_order_that_was_processed_twice_is_found() {
    assert_eq!(twice(&[1, 2, 3]).violations, 0);
    let found = twice(&[4, 2, 4, 4]);
    assert_eq!((found.violations, found.rows), (1, vec!["order 4, 3 times".to_owned()]));
}
