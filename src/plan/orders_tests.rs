//! Whole steps of order entry on real servers, and what an audit says of them.

use std::sync::atomic::AtomicBool;

use crate::databases;
use load::{Pace, Share, StepPlan, Stop, Surroundings, run_step};
use model::config::TargetAddress;
use model::record::{self, Ending, Outcome, Step};
use model::units::{Bytes, Nanos};
use model::workload::orders::{Mix, OrdersShape, Pauses, Reconnect, TransactionKind};
use sql::{mysql, postgres};
use targets::block::safety::Permission;
use targets::database::{DatabaseOptions, Method, Replace};
use targets::orders::{
    Acknowledgements, Audit, Indexes, OpenOrders, OrdersDatabase, OrdersOpenRequest, OrdersRequest, OrdersSending,
};

static NOT_STOPPED: AtomicBool = AtomicBool::new(false);

fn options() -> DatabaseOptions {
    DatabaseOptions {
        io_engine: None,
        flash: None,
        cache: Bytes(0),
        redo_file: Bytes(0),
        redo_files: 0,
        data_dest: None,
        redo_dest: None,
        ledger: None,
        permission: Permission::default(),
        scrub: false,
        schema: "bench".to_owned(),
        db_cache: Bytes(0),
        host_memory: None,
        page_protection: true,
        keep_running: false,
        programs: None,
        sending: None,
        method: Method::default(),
        is_open_loop: false,
        per_node: false,
        trace: false,
        own_report: None,
        dry_run: false,
        say: |_| (),
    }
}

fn on_postgres(name: &str) -> Option<TargetAddress> {
    postgres::test_server::database(name).map(TargetAddress::Postgres)
}

fn on_mysql(name: &str) -> Option<TargetAddress> {
    mysql::test_server::server().map(|server| TargetAddress::Mysql(server.address(name)))
}

fn database(address: &TargetAddress) -> Box<dyn OrdersDatabase> {
    databases::orders(address, &options()).unwrap()
}

fn set_up(address: &TargetAddress) {
    let request = OrdersRequest {
        scale: 0.001,
        partitions: 0,
        indexes: Indexes::All,
        streams: 2,
        seed: 42,
        is_seed_asked: true,
        replace: Replace::Refuse,
    };
    let mut database = database(address);
    database.plan_setup(&request, &NOT_STOPPED).unwrap().run(&|_, _| (), &NOT_STOPPED).unwrap();
    database.close().unwrap();
}

/// A step that ends when a user has done so many transactions.
fn plan(mix: &str, users: u32, transactions: u64) -> StepPlan<OrdersShape> {
    StepPlan {
        index: 0,
        label: format!("u{users}"),
        load: record::Intensity { sessions: Some(users), ..record::Intensity::default() },
        level: None,
        like: None,
        shape: OrdersShape { mix: mix.parse::<Mix>().unwrap(), between: Pauses::None },
        seed: 7,
        work_loop: Some(transactions),
        warmup: Nanos(0),
        duration: Nanos::seconds(600),
        pace: Pace::Closed,
        lanes: 2.min(users),
        share: Share::WHOLE,
    }
}

/// Runs a step and audits what it left.
fn run(address: &TargetAddress, plan: &StepPlan<OrdersShape>, inside: Pauses) -> (Step, Acknowledgements, Audit) {
    run_by(address, plan, inside, Reconnect::Never, OrdersSending::Statement)
}

fn run_reconnecting(
    address: &TargetAddress,
    plan: &StepPlan<OrdersShape>,
    inside: Pauses,
    reconnect: Reconnect,
) -> (Step, Acknowledgements, Audit) {
    run_by(address, plan, inside, reconnect, OrdersSending::Statement)
}

fn run_by(
    address: &TargetAddress,
    plan: &StepPlan<OrdersShape>,
    inside: Pauses,
    reconnect: Reconnect,
    sending: OrdersSending,
) -> (Step, Acknowledgements, Audit) {
    let request = OrdersOpenRequest {
        users: plan.load.slots(),
        inside,
        max_retries: 10,
        reconnect,
        isolation: None,
        sending,
        stop: &NOT_STOPPED,
    };
    let OpenOrders { database: opened, auditor } = database(address).open(&request).unwrap();
    let clock = opened.clock();
    let outcome = run_step(opened.target(), plan, Surroundings::new(clock, &Stop::new()), &mut |_| {});
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    let acknowledged = auditor.take_acknowledged();
    let audit = auditor.audit(&acknowledged, &NOT_STOPPED).unwrap();
    drop(auditor);
    opened.close().unwrap();
    (outcome.step, acknowledged, audit)
}

fn does_every_kind_and_stays_sound(address: &TargetAddress) {
    set_up(address);
    let plan = plan("NCR=1,UCD=1,BP=1,OP=2,PO=1,BO=1,SQ=1,WQ=1,WA=1", 6, 60);
    let (step, acknowledged, audit) = run(address, &plan, Pauses::None);
    assert_eq!((&step.outcome, step.window.ending), (&Outcome::Completed, Ending::WorkLoop));
    let kinds: Vec<&str> = step.operations.iter().map(|operation| operation.kind.as_str()).collect();
    assert_eq!(kinds, TransactionKind::ALL.map(TransactionKind::name));
    for operation in &step.operations {
        let stats = operation.transactions.as_ref().unwrap();
        assert_eq!(operation.errors, 0, "{operation:?}");
        assert!(stats.statements >= operation.count && stats.round_trips >= stats.statements, "{operation:?}");
        assert_eq!(stats.paused_ns, 0);
        let changes = ["customer registration", "order products", "process orders"].contains(&operation.kind.as_str());
        assert!(!changes || (stats.commits > 0 && stats.rows_changed > 0), "{operation:?}");
        let asks_alone = operation.kind.ends_with("query");
        assert!(!asks_alone || (stats.commits, stats.rows_changed) == (0, 0), "{operation:?}");
    }
    let registered = step.operations[0].transactions.as_ref().unwrap();
    assert!(registered.rows_changed >= 4 * step.operations[0].count, "three rows are inserted and one is changed");
    let commits: u64 = step.operations.iter().filter_map(|done| done.transactions.as_ref()).map(|t| t.commits).sum();
    assert_eq!(step.counters.commits, Some(commits));
    assert!(!acknowledged.orders.is_empty() && !acknowledged.processed.is_empty());
    assert!(audit.is_sound(), "{audit:?}");
    // An order that nobody made is missed.
    let invented = Acknowledgements { orders: vec![acknowledged.orders[0], 999_999_999], processed: vec![1, 1] };
    let mut again = database(address);
    let audit = again.audit(&invented, &NOT_STOPPED).unwrap();
    again.close().unwrap();
    let broken: Vec<(&str, u64, &[String])> = audit
        .rules
        .iter()
        .filter(|rule| rule.violations > 0 && !rule.rule.contains("processing"))
        .map(|rule| (rule.rule.as_str(), rule.violations, rule.rows.as_slice()))
        .collect();
    assert_eq!(
        broken,
        [
            ("each order that was acknowledged is there", 1, ["order 999999999".to_owned()].as_slice()),
            ("no order was acknowledged as processed twice", 1, &["order 1, 2 times".to_owned()]),
        ]
    );
}

/// On data that are there.
fn reconnects_and_stays_sound(address: &TargetAddress) {
    let all = "NCR=1,UCD=1,BP=1,OP=2,PO=1,BO=1,SQ=1,WQ=1,WA=1";
    let ended = |step: &Step| step.operations.iter().map(|operation| operation.count).sum::<u64>();
    let connects = |step: &Step| {
        step.waits.iter().find(|wait| wait.event == record::CONNECT).map_or(0, |connects| connects.waits.count())
    };
    let (step, acknowledged, audit) =
        run_reconnecting(address, &plan(all, 4, 40), Pauses::None, "every".parse().unwrap());
    assert_eq!((&step.outcome, step.window.ending), (&Outcome::Completed, Ending::WorkLoop));
    assert_eq!(step.operations.iter().map(|operation| operation.errors).sum::<u64>(), 0);
    // Each user had a connection when the load began. What ended with the window, or after it, may have made one in it.
    let late: u64 = step.outstanding.iter().map(record::Outstanding::count).sum();
    let wanted = ended(&step) - 4;
    assert!((wanted..=wanted + late).contains(&connects(&step)), "{} {wanted} {late}", connects(&step));
    assert!(step.failed_connects.is_empty() && !acknowledged.orders.is_empty());
    assert!(audit.is_sound(), "{audit:?}");
    let connecting = step.waits.iter().find(|wait| wait.event == record::CONNECT).unwrap();
    assert_eq!((connecting.layer.as_str(), connecting.foreground), ("client", true));
    // Whoever waits for a connection waits for an answer, and the server has not been asked yet.
    let ended = step.operations.iter().map(|it| [&it.response, &it.service]);
    let times = ended.chain(step.outstanding.iter().map(|it| [&it.response, &it.service]));
    let before_ns: u64 = times
        .map(|pair| pair.map(|times| times.total_ns().unwrap_or(0)))
        .map(|[response, service]| response - service)
        .sum();
    assert!(before_ns >= connecting.waits.total_ns().unwrap(), "{before_ns}");
    let seconds: u64 =
        step.intervals.iter().filter_map(|second| second.waits.get(record::CONNECT)).map(|c| c.count()).sum();
    assert_eq!(seconds, connects(&step));

    // What is asked once in a connection is not prepared in it; in one that lasts longer it is, once.
    let trips = |reconnect: &str| {
        let (step, ..) = run_reconnecting(address, &plan("SQ=1", 2, 40), Pauses::None, reconnect.parse().unwrap());
        let [queries] = step.operations.as_slice() else { panic!("{:?}", step.operations) };
        let stats = queries.transactions.as_ref().unwrap();
        let late: u64 = step.outstanding.iter().map(record::Outstanding::count).sum();
        assert!((queries.count..=queries.count + late).contains(&stats.statements), "{} {late}", stats.statements);
        (stats.round_trips - stats.statements, connects(&step), queries.count)
    };
    let (preparing, made, _) = trips("every");
    assert!(preparing == 0 && made > 0, "{preparing} {made}");
    let (preparing, made, queries) = trips("10");
    assert_eq!(preparing, made);
    assert!((queries / 10 - 2..=queries / 10 + 2).contains(&made), "{made} connections of {queries}");
    let (preparing, made, _) = trips("never");
    assert_eq!((preparing, made), (0, 0));
}

#[test]
fn every_kind_of_transaction_is_done_and_the_data_stay_sound_on_postgres() {
    let Some(address) = on_postgres("orders_load") else { return };
    does_every_kind_and_stays_sound(&address);
    reconnects_and_stays_sound(&address);
}

#[test]
fn every_kind_of_transaction_is_done_and_the_data_stay_sound_on_mysql() {
    let Some(address) = on_mysql("orders_load") else { return };
    does_every_kind_and_stays_sound(&address);
    reconnects_and_stays_sound(&address);
}

#[test]
fn pauses_inside_transactions_are_no_part_of_their_times_and_end_with_the_load() {
    let Some(address) = on_postgres("orders_pauses") else { return };
    set_up(&address);
    let (step, ..) = run(&address, &plan("PO=1", 2, 5), Pauses::Fixed { ns: 40_000_000 });
    let [processed] = step.operations.as_slice() else { panic!("{:?}", step.operations) };
    let stats = processed.transactions.as_ref().unwrap();
    assert!(stats.paused_ns >= processed.count * 40_000_000, "{stats:?}");
    // Each took 40 ms at least; what is counted is what was left of it.
    let took_ns = processed.response.total_ns().unwrap() + stats.paused_ns;
    let sessions_ns = 2 * step.window.duration_ns;
    assert!(took_ns <= sessions_ns + sessions_ns / 10, "{took_ns} of {sessions_ns}");
    // A user who thinks for an hour does not hold up the end.
    let mut endless = plan("PO=1", 2, 5);
    (endless.work_loop, endless.duration) = (None, Nanos::seconds(1));
    let begun = std::time::Instant::now();
    let (step, ..) = run(&address, &endless, Pauses::Fixed { ns: 3_600_000_000_000 });
    assert!(step.operations.is_empty() && begun.elapsed() < std::time::Duration::from_secs(300), "{step:?}");
}
