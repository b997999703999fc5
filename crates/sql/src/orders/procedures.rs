//! Procedures that do transactions: made beside the data that they work on, marked as ours, and removed with these.

use std::sync::atomic::AtomicBool;

use super::load::procedure::{MARK, Procedure};
use super::{OrdersData, OrdersDialect};
use crate::data::streams::Halt;
use crate::data::{Access, catalog};
use targets::TargetError;

/// Something that has the name of one of our procedures.
#[derive(Debug, Clone, PartialEq, Eq)]
struct There {
    /// Its bare name.
    name: String,
    /// How it is named where it is dropped.
    reference: String,
    /// What is said of it.
    mark: Option<String>,
}

impl There {
    /// Whether it is ours.
    fn is_ours(&self) -> bool {
        self.mark.as_ref().is_some_and(|mark| mark.starts_with(MARK))
    }
}

/// What there is by the names of our procedures.
fn all<D: OrdersDialect>(session: &mut D::Session<'_>, namespace: &str) -> Result<Vec<There>, TargetError> {
    let rows = D::ask(session, "look for procedures", &D::procedures_there(namespace), Halt::NEVER)?;
    let there = |row: Vec<Option<String>>| {
        let mut row = row.into_iter();
        let (name, reference) = (row.next()??, row.next()??);
        Some(There { name, reference, mark: row.next().flatten() })
    };
    Ok(rows.into_iter().filter_map(there).collect())
}

fn ours<D: OrdersDialect>(session: &mut D::Session<'_>, namespace: &str) -> Result<Vec<There>, TargetError> {
    Ok(all::<D>(session, namespace)?.into_iter().filter(There::is_ours).collect())
}

/// Bare names of those of our procedures that are there.
///
/// # Errors
/// When the server cannot be asked.
pub fn names_of_ours<D: OrdersDialect>(
    session: &mut D::Session<'_>,
    namespace: &str,
) -> Result<Vec<String>, TargetError> {
    Ok(ours::<D>(session, namespace)?.into_iter().map(|there| there.name).collect())
}

/// Statements that drop those of our procedures that are there.
///
/// # Errors
/// When the server cannot be asked.
pub fn drops<D: OrdersDialect>(session: &mut D::Session<'_>, namespace: &str) -> Result<Vec<String>, TargetError> {
    Ok(ours::<D>(session, namespace)?.iter().map(|there| drop_of(&there.reference)).collect())
}

fn drop_of(reference: &str) -> String {
    format!("DROP PROCEDURE {reference}")
}

/// Makes the procedures that are missing or of another version, beside data that are whole. Says which.
///
/// # Errors
/// When something of the same name is not ours, or the right to make procedures is missing.
pub fn install<D: OrdersDialect>(access: Access<'_, D>, stop: &AtomicBool) -> Result<Vec<String>, TargetError> {
    let mut session = D::open(access)?;
    if missing(access, &mut session)?.is_empty() {
        refuse_broken(access, &mut session)?;
        return Ok(Vec::new());
    }
    catalog::lock(access, &mut session)?;
    // Somebody else may have made them just now, or have begun to remove the data.
    catalog::whole(access, catalog::find::<D, OrdersData>(&access)?)?;
    let mut made = Vec::new();
    for (procedure, old) in missing(access, &mut session)? {
        let doing = format!("make the procedure `{}`", procedure.name);
        for statement in old.iter().map(|old| drop_of(&old.reference)).chain([procedure.text]) {
            D::execute(&mut session, &doing, &statement, Halt::on(stop))?;
        }
        made.push(procedure.name);
    }
    refuse_broken(access, &mut session)?;
    Ok(made)
}

/// Refuses procedures that are there and that the server cannot execute.
fn refuse_broken<D: OrdersDialect>(access: Access<'_, D>, session: &mut D::Session<'_>) -> Result<(), TargetError> {
    let Some(question) = D::broken_procedures() else { return Ok(()) };
    let rows = D::ask(session, "look at the procedures", &question, Halt::NEVER)?;
    let Some(row) = rows.into_iter().next() else { return Ok(()) };
    let mut words = row.into_iter().map(Option::unwrap_or_default);
    let (name, why) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let what = format!("the procedure `{name}` cannot be executed on `{}`: {}", access.node_name(), why.trim());
    Err(access.unfit(what, "send each statement by itself: `--send statement`"))
}

/// The procedures that are not there as they should be, each with what is there of another version.
fn missing<D: OrdersDialect>(
    access: Access<'_, D>,
    session: &mut D::Session<'_>,
) -> Result<Vec<(Procedure, Option<There>)>, TargetError> {
    let mut there = all::<D>(session, access.namespace)?;
    if let Some(foreign) = there.iter().find(|there| !there.is_ours()) {
        let what = format!("{} holds `{}`, which Plimsoll did not make", access.place(), foreign.name);
        let hint = "rename it, or send each statement by itself: `--send statement`";
        return Err(access.unfit(what, hint));
    }
    let mut missing = Vec::new();
    for procedure in Procedure::all::<D>(access.namespace) {
        let place = there.iter().position(|there| there.name == procedure.name);
        let old = place.map(|place| there.swap_remove(place));
        if old.as_ref().is_none_or(|old| old.mark.as_ref() != Some(&procedure.mark)) {
            missing.push((procedure, old));
        }
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    //! Procedures on real servers: that they do what statements do, and whose they are.

    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::super::load::{
        Alarm, Ledger, OrdersSession as _, OrdersSetting, Performed, Room, Rules, perform, statements_of,
    };
    use super::super::tests::{TestedOrders, drop_all, execute, request, set_up};
    use super::*;
    use crate::data::tests::refusal;
    use crate::mysql::Connector as Mysql;
    use crate::postgres::Connector as Postgres;
    use crate::{ServerError, SqlServers};
    use measure::Tally;
    use model::workload::orders::{OrderTransaction, Pauses, Reconnect, Sizes, TransactionKind};
    use targets::DatabaseError as _;
    use targets::orders::{OrdersRequest, OrdersSending};

    static NOT_STOPPED: AtomicBool = AtomicBool::new(false);

    type Server<D> = <D as OrdersDialect>::Orders;
    type Connection<D> = <Server<D> as SqlServers>::Session;

    /// A session, and what drives it.
    struct Driven<D: OrdersDialect> {
        runtime: tokio::runtime::Runtime,
        session: Connection<D>,
        rules: Rules,
        room: Room,
    }

    impl<D: OrdersDialect> Driven<D> {
        fn open(access: Access<'_, D>, sending: OrdersSending, inside: Pauses, isolation: Option<&str>) -> Self {
            let rules = Rules {
                sizes: Sizes::of(request().scale),
                inside,
                max_retries: 0,
                reconnect: Reconnect::Never,
                sending,
            };
            let isolation = isolation.map(str::to_owned);
            let setting = OrdersSetting { rules, isolation, ledger: Arc::new(Ledger::default()) };
            let servers = access.connector.orders_servers(access.namespace, setting);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let session = runtime.block_on(servers.open_session(0)).unwrap();
            runtime.block_on(async {
                for kind in TransactionKind::ALL {
                    for statement in statements_of(kind, sending) {
                        session.prepare(statement).await.unwrap();
                    }
                }
                session.take_preparing();
            });
            Self { runtime, session, rules, room: Room::default() }
        }

        fn try_perform(&mut self, kind: TransactionKind, seed: u64) -> Result<Performed, ServerError> {
            let Self { runtime, session, rules, room } = self;
            runtime.block_on(perform(session, OrderTransaction { kind, seed }, rules, room, &Alarm::default()))
        }

        fn perform(&mut self, kind: TransactionKind, seed: u64) -> Performed {
            self.try_perform(kind, seed).unwrap()
        }
    }

    fn rows<D: OrdersDialect>(access: Access<'_, D>, statement: &str) -> Vec<Vec<Option<String>>> {
        D::ask(&mut D::open(access).unwrap(), "test", statement, Halt::NEVER).unwrap()
    }

    /// What transactions may have changed, but for dates and for keys that are drawn by the server.
    fn contents<D: OrdersDialect>(access: Access<'_, D>) -> Vec<Vec<Vec<Option<String>>>> {
        let table = |name: &str| D::qualified(access.namespace, name);
        let of = |columns: &str, name: &str, key: &str| {
            rows(access, &format!("SELECT {columns} FROM {} ORDER BY {key}", table(name)))
        };
        vec![
            of(
                "customer_id, cust_first_name, cust_last_name, nls_language, nls_territory, credit_limit, cust_email, \
             account_mgr_id, customer_class, suggestions, dob, mailshot, preferred_address, preferred_card",
                "customers",
                "customer_id",
            ),
            of(
                "address_id, customer_id, house_no_or_name, street_name, town, county, country, post_code, zip_code",
                "addresses",
                "address_id",
            ),
            of(
                "card_id, customer_id, card_type, card_number, expiry_date, is_valid, security_code",
                "card_details",
                "card_id",
            ),
            of(
                "order_id, order_mode, customer_id, order_status, order_total, sales_rep_id, promotion_id, warehouse_id, \
             delivery_type, cost_of_delivery, delivery_address_id, customer_class, card_id, invoice_address_id",
                "orders",
                "order_id",
            ),
            of(
                "order_id, line_item_id, product_id, unit_price, quantity, supplier_id, estimated_delivery",
                "order_items",
                "order_id, line_item_id",
            ),
            rows(
                access,
                &format!(
                    "SELECT customer_id, count(*) FROM {} GROUP BY customer_id ORDER BY customer_id",
                    table("logon")
                ),
            ),
            rows(
                access,
                &format!(
                    "SELECT count(*), sum(quantity_on_hand), sum(product_id * quantity_on_hand), \
                 sum(warehouse_id * quantity_on_hand) FROM {}",
                    table("inventories")
                ),
            ),
        ]
    }

    /// The same transactions, statement by statement and as calls, on two copies of the same data.
    fn does_the_same_both_ways<D: TestedOrders>() {
        let Some(connector) = D::place("orders_ways") else { return };
        let (statements, calls) = (Access::new(&connector, "orders_ways"), Access::new(&connector, "orders_calls"));
        // Rows of one stream lie alike in both.
        let request = OrdersRequest { streams: 1, ..request() };
        for access in [statements, calls] {
            set_up(&access, &request).unwrap();
        }
        assert_eq!(contents(statements), contents(calls));
        assert_eq!(install(calls, &NOT_STOPPED).unwrap().len(), TransactionKind::ALL.len());
        let mut one = Driven::open(statements, OrdersSending::Statement, Pauses::None, None);
        let mut other = Driven::open(calls, OrdersSending::Procedure, Pauses::None, None);
        let (mut made, mut processed, mut rolled_back) = (0, 0, 0);
        for seed in 0..60 {
            for kind in TransactionKind::ALL {
                let (sent, called) = (one.perform(kind, seed), other.perform(kind, seed));
                assert_eq!(called.tally.round_trips, 1);
                let sent_tally = Tally { round_trips: 1, ..sent.tally };
                assert_eq!(called.tally, sent_tally, "{kind:?} {seed}");
                let (sent, called) = (sent.result.unwrap(), called.result.unwrap());
                assert_eq!(called, sent, "{kind:?} {seed}");
                made += usize::from(sent.order.is_some());
                processed += usize::from(sent.processed.is_some());
                rolled_back += sent_tally.rollbacks;
            }
            if seed == 40 {
                // From now on most stocks are gone or nearly so.
                for access in [statements, calls] {
                    execute::<D>(&access, &["UPDATE inventories SET quantity_on_hand = 0 WHERE product_id % 3 <> 0"]);
                }
            }
        }
        assert!(made > 20 && processed > 5, "{made} {processed}");
        assert_eq!(rolled_back, 0, "nobody else takes stock");
        for (sent, called) in contents(statements).into_iter().zip(contents(calls)) {
            assert_eq!(sent, called);
        }
        // Levels hold inside procedures too, and nothing is left open.
        D::KEEPS_LEVEL.inspect(|keep| execute::<D>(&calls, &[keep]));
        for level in ["REPEATABLE READ", "SERIALIZABLE"] {
            let mut strict = Driven::open(calls, OrdersSending::Procedure, Pauses::None, Some(level));
            let mut orders = Vec::new();
            for (kind, seed) in TransactionKind::ALL.into_iter().flat_map(|kind| [(kind, 99), (kind, 100), (kind, 101)])
            {
                let done = strict.perform(kind, seed).result;
                orders.extend(done.unwrap_or_else(|error| panic!("{level} {kind:?}: {error}")).order);
            }
            if D::KEEPS_LEVEL.is_some() {
                let (first, name) = (orders[0], D::qualified(calls.namespace, "orders"));
                let kept = rows(calls, &format!("SELECT level FROM {name} WHERE order_id >= {first}"));
                assert_eq!(kept, vec![vec![Some(level.to_lowercase())]; orders.len()], "{level}");
            }
        }
        D::KEEPS_LEVEL.inspect(|_| execute::<D>(&calls, &["ALTER TABLE orders DROP COLUMN level"]));
        pauses::<D>(calls);
        who_may_call_and_who_may_make::<D>(calls);
        whose_procedures_are_they::<D>(calls);
        assert!(drop_all(calls).is_some(), "procedures go with their data, and then nothing is left");
        drop_all(statements);
    }

    /// Pauses are slept in the server, which says how long.
    fn pauses<D: OrdersDialect>(access: Access<'_, D>) {
        const PAUSE_NS: u64 = 20_000_000;
        let mut slow = Driven::open(access, OrdersSending::Procedure, Pauses::Fixed { ns: PAUSE_NS }, None);
        let began = std::time::Instant::now();
        let paused_ns = slow.perform(TransactionKind::ProcessOrders, 1_000).tally.paused_ns;
        let took_ns = began.elapsed().as_nanos() as u64;
        assert!((PAUSE_NS..=took_ns).contains(&paused_ns), "{paused_ns} of {took_ns}");
        let mut exponential =
            Driven::open(access, OrdersSending::Procedure, Pauses::Exponential { mean_ns: 1_000_000 }, None);
        let paused_ns = exponential.perform(TransactionKind::BrowseProducts, 5).tally.paused_ns;
        assert!((100_000..10_000_000_000).contains(&paused_ns), "{paused_ns}");
    }

    /// Whoever may work on the rows may call procedures that are there; to make one takes more.
    fn who_may_call_and_who_may_make<D: TestedOrders>(access: Access<'_, D>) {
        let connector = D::as_clerk("orders_ways", access.namespace);
        let as_clerk = Access::new(&connector, access.namespace);
        assert_eq!(install(as_clerk, &NOT_STOPPED).unwrap(), Vec::<String>::new());
        let mut driven = Driven::open(as_clerk, OrdersSending::Procedure, Pauses::None, None);
        for kind in TransactionKind::ALL {
            assert!(driven.perform(kind, 7).result.is_ok(), "{kind:?}");
        }
        execute::<D>(&access, &["DROP PROCEDURE plimsoll_browse_orders"]);
        let (what, hint) = refusal(install(as_clerk, &NOT_STOPPED));
        assert!(what.contains("denied"), "{what}");
        assert!(hint.contains("granted") || hint.contains("GRANT ALL"), "{hint}");
        assert_eq!(install(access, &NOT_STOPPED).unwrap(), ["plimsoll_browse_orders"]);
    }

    /// Only what carries our mark is replaced or dropped, and what is dropped under a load ends it.
    fn whose_procedures_are_they<D: TestedOrders>(access: Access<'_, D>) {
        let ours = || ours::<D>(&mut D::open(access).unwrap(), access.namespace).unwrap();
        assert_eq!(ours().len(), TransactionKind::ALL.len());
        assert_eq!(install(access, &NOT_STOPPED).unwrap(), Vec::<String>::new(), "they are there");
        let name = "plimsoll_order_products";
        execute::<D>(&access, &[&D::remark(name, &format!("{MARK}0"))]);
        assert_eq!(install(access, &NOT_STOPPED).unwrap(), [name], "another version is replaced");
        execute::<D>(&access, &[&D::remark(name, "mine")]);
        let (what, hint) = refusal(install(access, &NOT_STOPPED));
        assert!(what.contains(&format!("holds `{name}`, which Plimsoll did not make")), "{what}");
        assert!(hint.contains("--send statement"), "{hint}");
        assert_eq!(ours().len(), TransactionKind::ALL.len() - 1, "{:?}", ours());
        let dropped = drops::<D>(&mut D::open(access).unwrap(), access.namespace).unwrap();
        assert!(!dropped.iter().any(|statement| statement.contains(name)), "{dropped:?}");

        let mut driven = Driven::open(access, OrdersSending::Procedure, Pauses::None, None);
        assert!(driven.perform(TransactionKind::OrderProducts, 1).result.is_ok());
        execute::<D>(&access, &[&format!("DROP PROCEDURE {name}")]);
        let gone = driven.try_perform(TransactionKind::OrderProducts, 2).unwrap_err();
        assert!(gone.ends_the_load() && gone.to_string().contains(&format!("`{name}` is gone")), "{gone}");
        assert!(gone.hint().unwrap().contains("made anew"));
    }

    #[test]
    fn a_transaction_does_the_same_statement_by_statement_and_as_a_call_on_postgres() {
        does_the_same_both_ways::<Postgres>();
    }

    #[test]
    fn a_transaction_does_the_same_statement_by_statement_and_as_a_call_on_mysql() {
        does_the_same_both_ways::<Mysql>();
    }
}
