//! Whole steps on a real PostgreSQL, sent both ways.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use tokio_postgres::Client;

use super::tests::turn;
use super::*;
use measure::Clock;
use model::record::{Ending, Outcome, Step};
use model::workload::{OperationKind, RedoStress, SlobOperation, SlobShape, Stream as _};
use sql::data::catalog::SqlData as _;
use sql::postgres::sql::Sql;
use sql::postgres::test_server::{DEFAULT_PORT, PostgresAddress, block_on, database};
use sql::postgres::{Connected, Connector, Postgres, PostgresServers};
use sql::{SlobTables, SqlOptions};
use targets::database::Sending;

const BOTH_WAYS: [Sending; 2] = [Sending::Statement, Sending::Batch];
const ROWS: u64 = 400;
const SCHEMA: &str = "a \"load";

/// A database with the data of two schemas, and a way of its own to look at them.
struct Bench {
    address: PostgresAddress,
    sql: Sql,
    application: String,
    _turn: MutexGuard<'static, ()>,
}

impl Bench {
    fn new(name: &str) -> Option<Self> {
        let turn = turn();
        let address = database(name)?;
        let sql = Sql::new(SCHEMA, 8192);
        let bench = Self { address, sql, application: format!("load of {name}"), _turn: turn };
        let Self { sql, .. } = &bench;
        bench.execute(&format!("CREATE SCHEMA {}", sql.schema()));
        let columns = vec![format!("decode(repeat('ab', {}), 'hex')", sql.column_bytes()); 19].join(", ");
        for schema in [0, 1] {
            for (table, rows) in [(sql.table(schema), ROWS), (sql.scan_table(schema), 50)] {
                bench.execute(&sql.create_table(&table));
                bench.execute(&format!(
                    "INSERT INTO {table} SELECT key, {columns} FROM generate_series(0, {}) key",
                    rows - 1
                ));
            }
            bench.execute(&sql.create_index(schema));
            bench.execute(&sql.create_procedure(schema));
        }
        bench.execute("VACUUM ANALYZE");
        Some(bench)
    }

    async fn client(&self) -> Client {
        let Connected { client, .. } = Connector::new(&self.address, "looking on").unwrap().connect(0).await.unwrap();
        client
    }

    fn execute(&self, statements: &str) {
        block_on(async { self.client().await.batch_execute(statements).await.unwrap() });
    }

    fn number(&self, query: &str) -> i64 {
        block_on(async { self.client().await.query_one(query, &[]).await.unwrap().get(0) })
    }

    fn target(&self, sending: Sending) -> Postgres {
        self.target_at(&self.address, sending)
    }

    fn target_at(&self, address: &PostgresAddress, sending: Sending) -> Postgres {
        let connector = Connector::new(address, &self.application).unwrap();
        Postgres::open(SqlOptions {
            product: Connector::PRODUCT,
            nodes: connector.node_names(),
            work: SlobTables::of(&connector, SCHEMA, self.sql.column_bytes()),
            servers: PostgresServers::new(connector, self.sql.clone()),
            sending,
            description: record::Target::default(),
            notes: Vec::new(),
            background: None,
            health: None,
        })
    }

    fn sessions(&self, condition: &str) -> i64 {
        let named = format!("application_name = '{}'", self.application);
        self.number(&format!("SELECT count(*) FROM pg_stat_activity WHERE {named} AND {condition}"))
    }

    /// Runs a step. When more than ten operations are known to be done, `meanwhile` is.
    fn run_while(&self, target: &Postgres, plan: &StepPlan<SlobShape>, meanwhile: impl FnOnce() + Send) -> StepOutcome {
        let outcome = std::thread::scope(|scope| {
            let (mut done, mut meanwhile) = (0, Some(meanwhile));
            // What never answers is not waited for for long.
            let stop = Stop::new();
            let surroundings = Surroundings { drain: Nanos::seconds(2), ..Surroundings::new(Clock::start(), &stop) };
            run_step(target, plan, surroundings, &mut |interval| {
                done += if interval.warmup { 0 } else { interval.counters.operations.unwrap_or(0) };
                if let Some(meanwhile) = meanwhile.take_if(|_| done > 10) {
                    scope.spawn(meanwhile);
                }
            })
        });
        assert_eq!(self.sessions("state = 'active'"), 0, "nothing is left at work");
        let begun = Instant::now();
        while self.sessions("true") > 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "a session is left");
        }
        outcome
    }

    fn run(&self, sending: Sending, plan: &StepPlan<SlobShape>) -> Step {
        let target = self.target(sending);
        let outcome = self.run_while(&target, plan, || {});
        assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
        assert_eq!(target.notes_of_the_load(), Vec::<String>::new());
        outcome.step
    }

    /// The same for longer and longer windows, until enough has happened in one.
    fn run_until(&self, sending: Sending, plan: &mut StepPlan<SlobShape>, is_enough: impl Fn(&Step) -> bool) -> Step {
        loop {
            let step = self.run(sending, plan);
            if is_enough(&step) {
                return step;
            }
            assert!(plan.duration < Nanos::seconds(120), "{sending:?}: too little in {}", plan.duration);
            plan.duration = Nanos(plan.duration.0 * 4);
        }
    }
}

fn plan(schemas: u32, threads_per_schema: u32) -> StepPlan<SlobShape> {
    let sessions = schemas * threads_per_schema;
    StepPlan {
        index: 0,
        label: "test".to_owned(),
        load: record::Intensity { sessions: Some(sessions), ..record::Intensity::default() },
        level: None,
        like: None,
        shape: SlobShape {
            schemas,
            threads_per_schema,
            scale_blocks: ROWS,
            work_unit: 3,
            update_pct: 0,
            update_share: None,
            scan_pct: 0,
            redo_stress: RedoStress::Lite,
            hot_spot: None,
            hot_schema_frequency: 0,
            think: None,
        },
        seed: 7,
        work_loop: None,
        warmup: Nanos::millis(200),
        duration: Nanos::millis(1_300),
        pace: Pace::Closed,
        lanes: 2,
        share: Share::WHOLE,
    }
}

fn operations(step: &Step) -> u64 {
    step.counters.operations.unwrap()
}

/// Its number, and the tables and keys of the rows that it changed.
type Transaction = (String, Vec<(String, i64)>);

#[test]
fn both_ways_do_the_operations_of_the_seed_in_their_order_and_each_update_commits_by_itself() {
    let Some(bench) = Bench::new("load_same") else { return };
    let Bench { sql, .. } = &bench;
    let schema = sql.schema();
    bench.execute(&format!(
        "CREATE TABLE {schema}.log (id bigserial, pid integer DEFAULT pg_backend_pid(), xact xid8 DEFAULT pg_current_xact_id(), \
         name text, key bigint); \
         CREATE FUNCTION {schema}.note() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN INSERT INTO {schema}.log (name, key) VALUES (TG_TABLE_NAME, NEW.custid); RETURN NEW; END $$"
    ));
    for number in [0, 1] {
        let table = sql.table(number);
        bench.execute(&format!(
            "CREATE TRIGGER note AFTER UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION {schema}.note()"
        ));
    }
    for redo_stress in [RedoStress::Lite, RedoStress::Heavy] {
        let mut plan = plan(2, 1);
        plan.shape = SlobShape { update_pct: 30, scan_pct: 5, hot_schema_frequency: 4, redo_stress, ..plan.shape };
        (plan.work_loop, plan.warmup, plan.duration) = (Some(150), Nanos(0), Nanos::seconds(60));
        let rows = |operation: SlobOperation| -> Vec<(String, i64)> {
            let keys = operation.first_key as i64..operation.first_key as i64 + i64::from(operation.keys);
            keys.map(|key| (Sql::table_name(operation.schema), key)).collect()
        };
        let updates = |session| {
            let mut stream = plan.shape.stream(plan.seed, session);
            let drawn = (0..150).map(|_| stream.draw().operation);
            drawn.filter(|operation| operation.kind == OperationKind::Update).map(rows).collect::<Vec<_>>()
        };
        let drawn = [0, 1].map(updates).to_vec();
        for sending in BOTH_WAYS {
            bench.execute(&format!("TRUNCATE {schema}.log"));
            let step = bench.run(sending, &plan);
            assert_eq!(step.window.ending, Ending::WorkLoop);
            let logged = block_on(async {
                let query = format!("SELECT pid, xact::text, name, key FROM {schema}.log ORDER BY id");
                bench.client().await.query(&query, &[]).await.unwrap()
            });
            // What each session did, one transaction after the other.
            let mut sessions = BTreeMap::<i32, Vec<Transaction>>::new();
            for row in logged {
                let done = sessions.entry(row.get(0)).or_default();
                let (transaction, touched): (String, (String, i64)) = (row.get(1), (row.get(2), row.get(3)));
                match done.last_mut().filter(|(last, _)| *last == transaction) {
                    Some((_, all)) => all.push(touched),
                    None => done.push((transaction, vec![touched])),
                }
            }
            // One of them ends the window with its work loop; the other may not have begun by then.
            let (mut left, mut completed) = (drawn.clone(), false);
            for done in sessions.values() {
                let begins_with =
                    |expected: &Vec<_>| done.iter().map(|(_, touched)| touched).eq(expected.iter().take(done.len()));
                let at = left.iter().position(begins_with);
                let expected = left.swap_remove(at.unwrap_or_else(|| panic!("{sending:?}: {done:?} was not drawn")));
                completed |= done.len() == expected.len();
            }
            assert!(completed, "{sending:?}: the session that ends the window has done everything");
            assert!(operations(&step) >= 150, "{sending:?}: {} operations", operations(&step));
        }
    }
}

#[test]
fn operations_blocks_and_commits_are_counted_the_same_both_ways() {
    let Some(bench) = Bench::new("load_counts") else { return };
    for sending in BOTH_WAYS {
        let mut plan = plan(2, 2);
        (plan.shape.update_pct, plan.shape.scan_pct) = (40, 10);
        let scans = |step: &Step| step.operations.iter().find(|of| of.kind == "scan").map_or(0, |of| of.count);
        let step = bench.run_until(sending, &mut plan, |step| scans(step) > 5);
        assert_eq!((&step.outcome, step.window.ending), (&Outcome::Completed, Ending::Time));
        let of = |kind: &str| step.operations.iter().find(|operations| operations.kind == kind).unwrap();
        let (reads, updates, scans) = (of("read"), of("update"), of("scan"));
        assert_eq!(reads.count + updates.count + scans.count, operations(&step));
        assert_eq!((reads.block_touches, scans.block_touches), (3 * reads.count, 50 * scans.count));
        assert_eq!(step.counters.errors, Some(0));
        assert!(step.counters.block_changes.unwrap().abs_diff(3 * updates.count) <= 3 * 4, "{sending:?}");
        assert!(step.counters.commits.unwrap().abs_diff(updates.count) <= 4, "{sending:?}");
        let commits = step.waits.iter().find(|waits| waits.event == "commit");
        match sending {
            Sending::Statement => assert!(commits.is_none(), "nobody timed commits"),
            Sending::Batch => {
                let commits = commits.unwrap();
                assert_eq!((commits.waits.count(), commits.layer.as_str()), (updates.count, "server"));
                assert!(commits.waits.total_ns() < updates.service.total_ns());
            }
        }
        assert_eq!(step.counters.logical_reads, None, "that is for the server to tell");
    }
}

#[test]
fn the_times_of_a_batch_fill_the_window() {
    let Some(bench) = Bench::new("load_times") else { return };
    // Batches that are under way at its edges belong to it in part: on a busy machine they are long, and a short window has too few.
    let unfilled = [2, 8, 32].into_iter().map_while(|seconds| {
        let mut plan = plan(1, 4);
        (plan.shape.work_unit, plan.duration) = (100, Nanos::seconds(seconds));
        let step = bench.run(Sending::Batch, &plan);
        let served = step.operations[0].service.total_ns().unwrap() as f64;
        let idle = step.generator.as_ref().unwrap().idle_session_ns as f64;
        let window = 4.0 * step.window.duration_ns as f64;
        let done: Vec<u64> = step.intervals.iter().map(|interval| interval.counters.operations.unwrap()).collect();
        assert_eq!(done[1..].iter().sum::<u64>(), operations(&step));
        let is_filled = (0.95..1.05).contains(&((served + idle) / window)) && served / window > 0.5;
        let is_even = done[1] > 0 && done[2] > 0;
        (!is_filled || !is_even).then(|| format!("{served} ns served, {idle} idle, of {window}; done {done:?}"))
    });
    let unfilled: Vec<String> = unfilled.collect();
    assert!(unfilled.len() < 3, "{unfilled:?}");
}

#[test]
fn overlapping_updates_of_many_sessions_neither_fail_nor_lock_each_other_out() {
    let Some(bench) = Bench::new("load_overlap") else { return };
    for sending in BOTH_WAYS {
        let mut plan = plan(1, 12);
        plan.shape = SlobShape { scale_blocks: 30, work_unit: 10, update_pct: 100, ..plan.shape };
        let step = bench.run_until(sending, &mut plan, |step| operations(step) > 100);
        assert_eq!(step.counters.errors, Some(0), "{sending:?}");
    }
}

#[test]
fn statements_that_fall_due_at_a_rate_are_sent_when_they_are_due() {
    let Some(bench) = Bench::new("load_rate") else { return };
    let sessions = 16;
    let mut plan = plan(1, sessions);
    plan.pace = Pace::Open { rate_per_s: 400.0, arrival: Arrival::Fixed };
    let step = bench.run(Sending::Statement, &plan);
    let generator = step.generator.as_ref().unwrap();
    assert_eq!(generator.due_operations, Some(520));
    // A server that stalls leaves operations to be done after the window; none is forgotten, and none is sent before its time.
    let (done, backlog) = (operations(&step), generator.backlog_operations.unwrap());
    let sessions = u64::from(sessions);
    assert!(done <= 520 + sessions && done + backlog + sessions >= 520, "{done} done and {backlog} left of 520");
    // What was sent before the window began may end in it.
    assert!(generator.schedule_lag.as_ref().unwrap().count() + sessions >= done);
    let refused =
        run_step(&bench.target(Sending::Batch), &plan, Surroundings::new(Clock::start(), &Stop::new()), &mut |_| {});
    assert!(refused.failure.unwrap().hint().unwrap().contains("--send statement"));
}

/// The server says why it ends a session and closes the socket. A client that was about to send at that instant is reported by its
/// own kernel that nobody listens, and the server's words are lost with the connection: then only that it is gone is known.
#[test]
fn a_session_that_is_terminated_ends_the_load_with_the_reason_and_keeps_what_was_measured() {
    let Some(bench) = Bench::new("load_killed") else { return };
    for sending in BOTH_WAYS {
        let mut plan = plan(1, 4);
        plan.duration = Nanos::seconds(30);
        let ended = || {
            let target = bench.target(sending);
            let outcome = bench.run_while(&target, &plan, || {
                let kill = format!(
                    "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity WHERE application_name = '{}' LIMIT 1) one",
                    bench.application
                );
                assert_eq!(bench.number(&kill), 1);
            });
            assert!(matches!(outcome.step.outcome, Outcome::Failed { .. }));
            assert!(operations(&outcome.step) > 10 && outcome.step.window.duration_ns < plan.duration.0);
            outcome.failure.unwrap().to_string()
        };
        let reason = "terminating connection due to administrator command";
        let unexplained = (0..3).map(|_| ended()).inspect(|reported| {
            assert!(reported.contains("is gone: "), "{sending:?}: {reported}");
        });
        let unexplained: Vec<String> = unexplained.take_while(|reported| !reported.contains(reason)).collect();
        assert!(unexplained.len() < 3, "the reason was never reported: {unexplained:?}");
    }
}

#[test]
fn a_table_that_is_dropped_ends_the_load_and_a_row_that_is_missing_is_a_fault_of_the_data() {
    let Some(bench) = Bench::new("load_dropped") else { return };
    for sending in BOTH_WAYS {
        let mut plan = plan(1, 4);
        plan.duration = Nanos::seconds(30);
        let table = bench.sql.table(0);
        let target = bench.target(sending);
        let outcome = bench.run_while(&target, &plan, || bench.execute(&format!("ALTER TABLE {table} RENAME TO gone")));
        let failure = outcome.failure.unwrap();
        assert!(failure.to_string().contains("slob_1\" does not exist"), "{sending:?}: {failure}");
        assert!(failure.hint().unwrap().contains("slob setup"));
        assert!(!failure.is_data_fault() && operations(&outcome.step) > 10);
        bench.execute(&format!("ALTER TABLE {}.gone RENAME TO slob_1", bench.sql.schema()));

        let outcome =
            bench.run_while(&target, &plan, || bench.execute(&format!("DELETE FROM {table} WHERE custid = 200")));
        let failure = outcome.failure.unwrap();
        assert!(failure.is_data_fault() && failure.to_string().contains("a read found 2 rows of the 3"), "{failure}");
        let row = format!(
            "INSERT INTO {table} SELECT 200, {} FROM {table} WHERE custid = 0",
            (2..=20).map(|c| format!("c{c}")).collect::<Vec<_>>().join(", ")
        );
        bench.execute(&row);
    }
}

#[test]
fn a_statement_timeout_costs_operations_and_not_the_load() {
    let Some(bench) = Bench::new("load_timeout") else { return };
    bench.execute("ALTER DATABASE load_timeout SET statement_timeout = '1500ms'");
    for sending in BOTH_WAYS {
        let mut plan = plan(1, 3);
        (plan.shape.update_pct, plan.duration) = (50, Nanos::seconds(3));
        // Batches are short enough for the limit.
        bench.run(sending, &plan);
        // Longer than the lock is held, so that there is time before it and after it.
        plan.duration = Nanos::seconds(8);
        let target = bench.target(sending);
        let outcome = bench.run_while(&target, &plan, || {
            bench.execute(&format!(
                "SET statement_timeout = 0; BEGIN; LOCK TABLE {} IN EXCLUSIVE MODE; SELECT pg_sleep(5); COMMIT",
                bench.sql.table(0)
            ));
        });
        assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
        let (done, errors) = (operations(&outcome.step), outcome.step.counters.errors.unwrap());
        assert!(errors >= 3 && done > 100, "{sending:?}: {errors} errors, {done} done");
        assert!(target.first_error().unwrap().contains("statement timeout"));
        assert!(target.notes_of_the_load()[0].contains("raise that for this role"), "{:?}", target.notes_of_the_load());
        let service: u64 = outcome.step.operations.iter().map(|operations| operations.service.count()).sum();
        assert_eq!(service, done, "what failed has no latency");
    }
}

/// Makes scans of the first schema take so many seconds.
fn slow_scans(bench: &Bench, seconds: f64) {
    bench.execute(&format!("ALTER TABLE {} RENAME TO fast", bench.sql.scan_table(0)));
    sleep_in_scans(bench, seconds);
}

fn sleep_in_scans(bench: &Bench, seconds: f64) {
    let scan_table = bench.sql.scan_table(0);
    bench.execute(&format!(
        "CREATE OR REPLACE VIEW {scan_table} AS SELECT '\\x00'::bytea AS c2 FROM pg_sleep({seconds})"
    ));
}

#[test]
fn what_is_under_way_at_the_end_is_cancelled_on_the_server() {
    let Some(bench) = Bench::new("load_cancel") else { return };
    slow_scans(&bench, 60.0);
    for sending in BOTH_WAYS {
        let mut plan = plan(1, 3);
        plan.shape.scan_pct = 100;
        let begun = Instant::now();
        let step = bench.run(sending, &plan);
        assert!(begun.elapsed() < Duration::from_secs(40), "{sending:?}: {:?}", begun.elapsed());
        assert_eq!((operations(&step), step.counters.errors), (0, Some(0)));
    }
}

#[test]
fn silence_of_a_server_that_works_is_waited_for() {
    let Some(bench) = Bench::new("load_patient") else { return };
    slow_scans(&bench, 1.0);
    for sending in BOTH_WAYS {
        // A server whose machine is busy may not even say within so long that it works; a session is silent for five times that.
        let waited_for = [200, 1_000, 5_000].into_iter().any(|patience_ms| {
            let seconds = 5.0 * patience_ms as f64 / 1e3;
            sleep_in_scans(&bench, seconds);
            let mut plan = plan(1, 2);
            (plan.shape.scan_pct, plan.duration) = (100, Nanos::millis(15 * patience_ms));
            let target = bench.target(sending).with_patience(Duration::from_millis(patience_ms));
            let outcome = bench.run_while(&target, &plan, || {});
            outcome.failure.is_none() && operations(&outcome.step) >= 4
        });
        assert!(waited_for, "{sending:?}: the session was given up, or did nothing");
    }
}

/// Makes scans of the first schema take so many seconds, although they are cancelled: also between two sleeps, on a busy machine.
fn stubborn_scans(bench: &Bench, seconds: u32) {
    slow_scans(bench, 0.0);
    let (scan_table, schema) = (bench.sql.scan_table(0), bench.sql.schema());
    bench.execute(&format!(
        "CREATE FUNCTION {schema}.stubborn() RETURNS bytea LANGUAGE plpgsql AS $$ \
         DECLARE until timestamptz := clock_timestamp() + interval '{seconds} s'; \
         BEGIN WHILE clock_timestamp() < until LOOP \
         BEGIN WHILE clock_timestamp() < until LOOP \
         BEGIN PERFORM pg_sleep(0.1); EXCEPTION WHEN query_canceled THEN NULL; END; \
         END LOOP; EXCEPTION WHEN query_canceled THEN NULL; END; \
         END LOOP; RETURN '\\x00'; END $$; \
         CREATE OR REPLACE VIEW {scan_table} AS SELECT {schema}.stubborn() AS c2"
    ));
}

#[test]
fn a_server_that_works_on_although_it_is_asked_to_cancel_makes_a_late_step_and_the_next_one_runs() {
    let Some(bench) = Bench::new("load_late") else { return };
    stubborn_scans(&bench, 25);
    for sending in BOTH_WAYS {
        let target = bench.target(sending);
        let step = |scan_pct| {
            let mut plan = plan(1, 2);
            plan.shape.scan_pct = scan_pct;
            let drain = Nanos::seconds(1);
            run_step(
                &target,
                &plan,
                Surroundings { drain, ..Surroundings::new(Clock::start(), &Stop::new()) },
                &mut |_| {},
            )
        };
        let late = step(100);
        assert!(late.failure.is_none(), "{sending:?}: {:?}", late.failure);
        let unended = late.step.unended.unwrap();
        assert_eq!((unended.operations, unended.sessions), (2, 2), "{sending:?}");
        assert!(unended.waited_ns >= 10_000_000_000, "{sending:?}: {unended:?}");
        assert_eq!((late.step.outcome, late.step.window.ending), (Outcome::Completed, Ending::Time));
        assert!(bench.sessions("state = 'active'") > 0, "{sending:?}: it has ended all the same");
        let next = step(0);
        assert!(next.failure.is_none() && next.step.unended.is_none(), "{sending:?}: {:?}", next.failure);
        assert!(operations(&next.step) > 10, "{sending:?}");
    }
}

/// Passes on what comes and goes until it is asked to swallow it all, without a word.
fn black_hole(bench: &Bench, folder: &std::path::Path) -> (PostgresAddress, Arc<AtomicBool>) {
    let swallow = Arc::new(AtomicBool::new(false));
    let socket = format!(".s.PGSQL.{DEFAULT_PORT}");
    let listener = UnixListener::bind(folder.join(&socket)).unwrap();
    let server = std::path::Path::new(&bench.address.nodes[0].host).join(&socket);
    let swallowing = Arc::clone(&swallow);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (client, server) = (client.unwrap(), UnixStream::connect(&server).unwrap());
            let ways = [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)];
            for (mut from, mut to) in ways {
                let swallowing = Arc::clone(&swallowing);
                std::thread::spawn(move || {
                    let mut bytes = [0; 65_536];
                    while let Ok(read @ 1..) = from.read(&mut bytes) {
                        if !swallowing.load(Ordering::Relaxed) && to.write_all(&bytes[..read]).is_err() {
                            break;
                        }
                    }
                    let _ = to.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    let mut address = bench.address.clone();
    address.nodes[0].host = folder.display().to_string();
    (address, swallow)
}

#[test]
fn a_server_that_is_gone_without_a_word_ends_the_load_and_keeps_what_was_measured() {
    let Some(bench) = Bench::new("load_black_hole") else { return };
    for sending in BOTH_WAYS {
        let folder = tempfile::tempdir().unwrap();
        let (address, swallow) = black_hole(&bench, folder.path());
        let target = bench.target_at(&address, sending).with_patience(Duration::from_secs(1));
        let mut plan = plan(1, 3);
        plan.duration = Nanos::seconds(60);
        let begun = Instant::now();
        let outcome = bench.run_while(&target, &plan, || swallow.store(true, Ordering::Relaxed));
        let failure = outcome.failure.unwrap();
        assert!(failure.to_string().contains("did not answer"), "{sending:?}: {failure}");
        assert!(begun.elapsed() < Duration::from_secs(40), "{sending:?}: {:?}", begun.elapsed());
        assert!(operations(&outcome.step) > 10);
    }
}

#[test]
fn a_server_that_says_nothing_when_it_is_asked_to_cancel_is_gone_and_no_late_step() {
    let Some(bench) = Bench::new("load_gone_at_the_end") else { return };
    // A busy machine may come to ten operations when a short window has ended.
    let gone_within = |seconds| {
        let folder = tempfile::tempdir().unwrap();
        let (address, swallow) = black_hole(&bench, folder.path());
        let target = bench.target_at(&address, Sending::Statement);
        let mut plan = plan(1, 3);
        plan.duration = Nanos::seconds(seconds);
        let (begun, gone_after) = (Instant::now(), OnceLock::new());
        let outcome = bench.run_while(&target, &plan, || {
            swallow.store(true, Ordering::Relaxed);
            gone_after.set(begun.elapsed()).unwrap();
        });
        gone_after.get().is_some_and(|after| *after < Duration::from_secs(seconds)).then_some(outcome)
    };
    let outcome = gone_within(3).or_else(|| gone_within(15)).expect("ten operations took 15 s");
    assert!(matches!(outcome.failure, Some(TargetError::Silent { .. })), "{:?}", outcome.failure);
    assert!(operations(&outcome.step) > 10 && outcome.step.unended.is_none());
}
