use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use futures_util::future::join;
use rustix::process::{Pid, Signal, kill_process};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

use super::super::connect::Connected;
use super::super::sql::Sql;
use super::super::test_server::{block_on, database, server_to_break};
use super::*;
use crate::monitor::tests::{next, next_of};
use crate::{Reported, TAKE_LIMIT, batch_filling_bytes};
use model::config::postgres::PostgresAddress;
use model::record::{Counters, Look};
use test_support::scratch::is_in_memory;
use test_support::skip::skip;

const LOAD: &str = "plimsoll load";
/// A name that is only a name.
const SCHEMA: &str = "it's \"odd\"";
const KEYS: u64 = 2_000;

fn sql() -> Sql {
    Sql::new(SCHEMA, 8192)
}

fn request(address: &PostgresAddress) -> MonitorRequest {
    MonitorRequest {
        connector: Connector::new(address, "plimsoll looks").unwrap(),
        schema: SCHEMA.to_owned(),
        schemas: 1,
        block_bytes: 8192,
        application: LOAD.to_owned(),
        local: Vec::new(),
        sample_every: Duration::from_millis(20),
    }
}

async fn session(address: &PostgresAddress) -> Client {
    Connector::new(address, LOAD).unwrap().connect_session(0).await.unwrap().client
}

/// The server's version.
async fn major(client: &Client) -> i32 {
    let asked = "SELECT current_setting('server_version_num')::int / 10000";
    client.query_one(asked, &[]).await.unwrap().get(0)
}

/// Whether the server has `pg_stat_wal`.
async fn counts_redo(client: &Client) -> bool {
    major(client).await >= 14
}

/// Makes the data of one schema.
async fn fill(address: &PostgresAddress) {
    let sql = sql();
    let Connected { client, .. } = Connector::new(address, "filling").unwrap().connect(0).await.unwrap();
    client.batch_execute(&format!("CREATE SCHEMA {}", sql.schema())).await.unwrap();
    client.batch_execute(&sql.create_table(&sql.table(0))).await.unwrap();
    let columns = vec![format!("decode(repeat('ab', {}), 'hex')", sql.column_bytes()); 19].join(", ");
    let rows = format!("INSERT INTO {} SELECT key, {columns} FROM generate_series(0, {}) key", sql.table(0), KEYS - 1);
    client.batch_execute(&rows).await.unwrap();
    client.batch_execute(&sql.create_index(0)).await.unwrap();
    client.batch_execute(&format!("VACUUM ANALYZE {}", sql.table(0))).await.unwrap();
    client.batch_execute("CHECKPOINT").await.unwrap();
}

/// A database with data, none of them in the server's cache.
fn filled(name: &str) -> Option<PostgresAddress> {
    static TEMPLATES: AtomicU32 = AtomicU32::new(0);
    let template = format!("monitor_template_{}", TEMPLATES.fetch_add(1, Ordering::Relaxed));
    let mut address = database(&template)?;
    block_on(fill(&address));
    let server = PostgresAddress { database: Some("postgres".to_owned()), ..address.clone() };
    block_on(async {
        let client = session(&server).await;
        client.batch_execute(&format!("DROP DATABASE IF EXISTS {name}")).await.unwrap();
        // Before there was a choice, files were copied.
        let strategy = if major(&client).await < 15 { "" } else { "STRATEGY file_copy" };
        let copy = format!("CREATE DATABASE {name} TEMPLATE {template} {strategy}");
        while let Err(error) = client.batch_execute(&copy).await {
            assert_eq!(
                error.code(),
                Some(&SqlState::OBJECT_IN_USE),
                "not only that a session is still leaving: {error}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    address.database = Some(name.to_owned());
    Some(address)
}

/// Touches the keys from `first` on, 64 an operation, and has the server count it.
async fn read(client: &Client, operations: u64) {
    for operation in 0..operations {
        let first = (operation * 64 % (KEYS - 64)) as i64;
        let row = client.query_one(sql().read(0).as_str(), &[&first, &(first + 64)]).await.unwrap();
        assert_eq!(row.get::<_, i64>(0), 64);
    }
    flush(client).await;
}

async fn flush(client: &Client) {
    if major(client).await < 15 {
        // A session hands its counters over half a second after the last time, and they are read half a second after they were.
        let pause = Duration::from_millis(600);
        tokio::time::sleep(pause).await;
        client.batch_execute("SELECT 1").await.unwrap();
        return tokio::time::sleep(pause).await;
    }
    client.batch_execute("SELECT pg_stat_force_next_flush()").await.unwrap();
    // The statement's answer comes before the counters are handed over; that of the next one does not.
    client.batch_execute("SELECT 1").await.unwrap();
}

fn assert_nothing_counted(reported: &Reported) {
    assert_eq!((&reported.counters, &reported.servers), (&Counters::default(), &Vec::new()));
}

fn only(reported: Reported) -> ServerStats {
    assert_eq!(reported.servers.len(), 1);
    assert_eq!(reported.counters, reported.servers[0].counters);
    reported.servers.into_iter().next().unwrap()
}

#[test]
fn what_is_reported_is_what_the_sessions_did() {
    let Some(address) = filled("monitor_reads") else { return };
    let monitor = Monitor::start(request(&address)).unwrap();
    block_on(async {
        let client = session(&address).await;
        read(&client, 1).await;
        next(&monitor);
        read(&client, 50).await;
        let reported = only(next(&monitor));
        let heap =
            reported.own["pg_statio_user_tables.heap_blks_hit"] + reported.own["pg_statio_user_tables.heap_blks_read"];
        assert_eq!(heap, 50 * 64);
        let index =
            reported.own["pg_statio_user_tables.idx_blks_hit"] + reported.own["pg_statio_user_tables.idx_blks_read"];
        let counters = &reported.counters;
        let touched = counters.logical_reads.unwrap();
        assert_eq!(touched, counters.cache_hits.unwrap() + counters.buffer_misses.unwrap());
        // The rest is the catalog: to plan each statement, and a few blocks for each look of the monitor.
        let rest = if major(&client).await < 15 { 5_000 } else { 1_000 };
        assert!((heap + index..heap + index + rest).contains(&touched), "{touched} for {heap} and {index}");
        assert_eq!(reported.own["pg_stat_user_tables.idx_scan"], 50);
        assert_eq!(reported.own["relation.main_pages_grown"], 0);
        assert_eq!(reported.own.get("pg_stat_database.blk_read_time_ns"), None);
        assert!(reported.elapsed_ns > 0);
        // Looking costs next to nothing, once the server's own workers leave the tables alone; nothing is reported twice.
        let reported = seen(&monitor, |reported| reported.counters.logical_reads.unwrap() < 50).await;
        assert_eq!(reported.own["pg_stat_user_tables.idx_scan"], 0);
    });
    assert!(monitor.notes().iter().any(|note| note.contains("track_io_timing")), "{:?}", monitor.notes());
}

#[test]
fn updates_are_reported_with_their_redo_and_the_images_after_a_checkpoint() {
    let Some(address) = filled("monitor_updates") else { return };
    let monitor = Monitor::start(request(&address)).unwrap();
    block_on(async {
        let client = session(&address).await;
        client.batch_execute("CHECKPOINT").await.unwrap();
        next(&monitor);
        client.batch_execute("CHECKPOINT").await.unwrap();
        let filling = vec![7_u8; batch_filling_bytes(sql().column_bytes()) as usize];
        let update = client.prepare_typed(&sql().update_lite(0), &[Type::INT8, Type::INT8, Type::BYTEA]).await.unwrap();
        let rows = client.execute(&update, &[&0_i64, &500_i64, &filling]).await.unwrap();
        assert_eq!(rows, 500);
        flush(&client).await;
        let reported = only(next(&monitor));
        assert_eq!(reported.own["pg_stat_user_tables.n_tup_upd"], 500);
        assert_eq!(reported.own["pg_stat_user_tables.n_tup_hot_upd"], 500);
        if counts_redo(&client).await {
            assert!(reported.own["pg_stat_wal.wal_fpi"] >= 500, "{:?}", reported.own);
            let redo = reported.counters.redo_bytes.unwrap();
            assert!(redo > 500 * 100, "{redo}");
        }
        assert!(reported.counters.checkpoints.unwrap() >= 1);
        assert!(reported.counters.physical_writes.is_some());
    });
}

const SLEEP: &str = "SELECT pg_sleep(300)";

/// Ends the sleep of all sessions of the database.
async fn wake(client: &Client) {
    let asleep = format!("datname = current_database() AND query = '{SLEEP}'");
    client.batch_execute(&format!("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE {asleep}")).await.unwrap();
}

/// Takes longer and longer parts until one has enough in it, however slow the machine is.
async fn seen(monitor: &Monitor, is_enough: impl Fn(&ServerStats) -> bool) -> ServerStats {
    let begun = Instant::now();
    let mut part = Duration::from_millis(200);
    loop {
        tokio::time::sleep(part).await;
        let reported = only(next(monitor));
        if is_enough(&reported) {
            return reported;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "{reported:?}");
        part *= 2;
    }
}

#[test]
fn samples_show_what_our_sessions_at_work_wait_for() {
    let Some(address) = filled("monitor_samples") else { return };
    let monitor = Monitor::start(request(&address)).unwrap();
    block_on(async {
        let (sleeper, holder, waiter, idle) =
            (session(&address).await, session(&address).await, session(&address).await, session(&address).await);
        let Connected { client: stranger, .. } = Connector::new(&address, "other").unwrap().connect(0).await.unwrap();
        idle.batch_execute("SELECT 1").await.unwrap();
        let lock = format!("UPDATE {} SET c2 = c2 WHERE custid = 0", sql().table(0));
        holder.batch_execute(&format!("BEGIN; {lock}")).await.unwrap();
        tokio::spawn(async move { sleeper.batch_execute(SLEEP).await });
        tokio::spawn(async move { stranger.batch_execute(SLEEP).await });
        let waiting = tokio::spawn(async move { waiter.batch_execute(&lock).await.unwrap() });
        let of = |reported: &ServerStats| {
            ["Timeout:PgSleep", "Lock:transactionid"]
                .map(|event| reported.session_samples.get(event).copied().unwrap_or(0))
        };
        // One session each, and in nearly every sample once both have begun.
        let is_enough = |reported: &ServerStats| {
            reported.sampled_times >= 5 && of(reported).iter().all(|samples| samples * 2 > reported.sampled_times)
        };
        let reported = seen(&monitor, is_enough).await;
        holder.batch_execute("ROLLBACK").await.unwrap();
        waiting.await.unwrap();
        wake(&idle).await;
        let most = 2 + reported.elapsed_ns / 20_000_000;
        assert!(reported.sampled_times <= most, "{} of {most}", reported.sampled_times);
        assert!(of(&reported).iter().all(|samples| *samples <= reported.sampled_times), "{reported:?}");
        assert_eq!(reported.session_samples.keys().filter(|event| event.starts_with("Client")).count(), 0);
    });
}

#[test]
fn counters_that_were_reset_are_unknown_once_and_a_note_tells() {
    let Some(address) = filled("monitor_reset") else { return };
    let monitor = Monitor::start(request(&address)).unwrap();
    block_on(async {
        let client = session(&address).await;
        read(&client, 10).await;
        next(&monitor);
        client.batch_execute("SELECT pg_stat_reset()").await.unwrap();
        read(&client, 30).await;
        let reported = only(next(&monitor));
        assert_eq!((reported.counters.logical_reads, reported.counters.buffer_misses), (None, None));
        assert!(!reported.own.keys().any(|name| name.starts_with("pg_stat_database.")), "{:?}", reported.own);
        assert_eq!(reported.counters.redo_bytes.is_some(), counts_redo(&client).await);
        assert!(monitor.notes().iter().any(|note| note.contains("`pg_stat_database` were set back")));
        read(&client, 10).await;
        assert!(only(next(&monitor)).counters.logical_reads.is_some_and(|reads| reads >= 640));
    });
}

#[test]
fn an_ordinary_role_is_reported_as_much() {
    let Some(address) = filled("monitor_role") else { return };
    let role = r#"od"d role"#;
    block_on(async {
        let client = session(&address).await;
        let quoted = super::super::sql::identifier(role);
        let _ = client.batch_execute(&format!("CREATE ROLE {quoted} LOGIN")).await;
        let grants = format!(
            "GRANT USAGE ON SCHEMA {schema} TO {quoted}; GRANT SELECT ON {table} TO {quoted}",
            schema = sql().schema(),
            table = sql().table(0)
        );
        client.batch_execute(&grants).await.unwrap();
    });
    let address = PostgresAddress { user: Some(role.to_owned()), ..address };
    let monitor = Monitor::start(request(&address)).unwrap();
    block_on(async {
        let client = session(&address).await;
        next(&monitor);
        read(&client, 20).await;
        let reported = only(next(&monitor));
        assert!(reported.counters.logical_reads.unwrap() >= 1_280);
        assert_eq!(reported.counters.redo_bytes.is_some(), counts_redo(&client).await);
        assert!(reported.counters.checkpoints.is_some());
        // Unknown in a stretch in which a process came or went between two looks.
        seen(&monitor, |reported| reported.cpu.is_some()).await;
        tokio::spawn(async move { client.batch_execute(SLEEP).await });
        seen(&monitor, |reported| reported.session_samples.contains_key("Timeout:PgSleep")).await;
        wake(&session(&address).await).await;
    });
    assert!(!monitor.notes().iter().any(|note| note.contains("cannot be read")), "{:?}", monitor.notes());
}

/// Empties the page cache of the table's file. False where files live in memory alone.
async fn make_cold(client: &Client) -> bool {
    let row = client
        .query_one(
            "SELECT current_setting('data_directory') || '/' || pg_relation_filepath($1::text::regclass)",
            &[&sql().table(0)],
        )
        .await
        .unwrap();
    let name: String = row.get(0);
    let file = File::open(&name).unwrap();
    rustix::fs::fsync(&file).unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    !is_in_memory(Path::new(&name))
}

/// Looks at a server that is not at rest, one of which must report everything.
const TRIES: usize = 10;

#[test]
fn reads_from_storage_are_reported_from_hits_in_the_page_cache() {
    let split = |name: &str, cold: bool| {
        let address = filled(name)?;
        let monitor = Monitor::start(request(&address)).unwrap();
        block_on(async {
            let client = session(&address).await;
            client.batch_execute("SET enable_seqscan = on").await.unwrap();
            if cold && !make_cold(&client).await {
                skip("a cold file: the server's files are on tmpfs, which is memory");
                return None;
            }
            next(&monitor);
            let count = format!("SELECT count(c2) FROM {}", sql().table(0));
            assert_eq!(client.query_one(count.as_str(), &[]).await.unwrap().get::<_, i64>(0), KEYS as i64);
            flush(&client).await;
            // The session ends before it is looked at: what it read must not be lost.
            let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
            drop(client);
            while Path::new(&format!("/proc/{pid}")).exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let reported = only(next(&monitor));
            let counters = &reported.counters;
            let misses = counters.buffer_misses.unwrap();
            // Unknown while so much of the server ends and begins that its processes cannot be added up.
            let Some(reads) = counters.physical_reads else {
                assert_eq!((counters.page_cache_hits, counters.physical_read_bytes), (None, None));
                return Some(None);
            };
            // What reaches storage for other reasons, such as a file's own metadata on a busy machine, is in the reads alone.
            let sum = counters.page_cache_hits.unwrap() + reads;
            assert!((misses..=misses + misses / 100).contains(&sum), "{counters:?}");
            assert!(misses >= KEYS, "{counters:?}");
            assert_eq!(reported.own["proc_io.read_bytes"], counters.physical_read_bytes.unwrap());
            assert!(reported.own["proc_io.rchar"] >= KEYS * 8192);
            Some(Some(reads))
        })
    };
    let split = |name: &str, cold: bool| {
        let mut tries = (0..TRIES).map(|_| split(name, cold));
        tries.find(|reported| *reported != Some(None)).expect("what reached storage stays unknown").flatten()
    };
    // Another server's children that end meanwhile, such as an autovacuum worker, may add a few blocks.
    if let Some(reads) = split("monitor_warm", false) {
        assert!(reads < KEYS / 10, "{reads} reads of a warm file");
    }
    if let Some(reads) = split("monitor_cold", true) {
        assert!((KEYS * 9 / 10..=KEYS * 11 / 10).contains(&reads), "{reads} reads of a cold file");
    }
}

#[test]
fn processor_time_of_the_server_is_that_of_its_processes() {
    let Some(address) = database("monitor_cpu") else { return };
    let monitor = Monitor::start(request(&address)).unwrap();
    block_on(async {
        let client = session(&address).await;
        next(&monitor);
        let (begun, mut used) = (Instant::now(), Duration::ZERO);
        while used < Duration::from_millis(50) {
            client.batch_execute("SELECT count(md5(n::text)) FROM generate_series(1, 400000) n").await.unwrap();
            // Unknown in a stretch in which a process came or went between two looks.
            if let Some(cpu) = only(next(&monitor)).cpu {
                used += Duration::from_nanos(cpu.user_ns + cpu.system_ns);
            }
            assert!(begun.elapsed() < Duration::from_secs(120), "only {used:?} of work in {:?}", begun.elapsed());
        }
    });
}

fn signal(pids: &[i32], signal: Signal) {
    for pid in pids {
        kill_process(Pid::from_raw(*pid).unwrap(), signal).unwrap();
    }
}

/// The monitor's own sessions.
async fn watchers(client: &Client) -> Vec<i32> {
    let own = "SELECT pid FROM pg_stat_activity WHERE application_name = 'plimsoll monitor' \
               AND datname = current_database()";
    client.query(own, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[test]
fn a_server_that_hangs_is_unknown_soon_and_reported_when_it_is_back() {
    let Some(address) = filled("monitor_hang") else { return };
    let monitor = Monitor::start(request(&address)).unwrap();
    block_on(async {
        let client = session(&address).await;
        read(&client, 1).await;
        next(&monitor);
        let pids = watchers(&client).await;
        assert_eq!(pids.len(), 2);
        signal(&pids, Signal::STOP);
        read(&client, 10).await;
        let begun = Instant::now();
        assert_nothing_counted(&monitor.take());
        assert_nothing_counted(&monitor.take());
        assert!(begun.elapsed() < TAKE_LIMIT + Duration::from_secs(20), "{:?}", begun.elapsed());
        assert!(monitor.silent_for().unwrap() > TAKE_LIMIT / 2);
        signal(&pids, Signal::CONT);
        let reported = only(next(&monitor));
        assert_eq!(reported.own["pg_stat_user_tables.idx_scan"], 10);
        assert!(reported.elapsed_ns > TAKE_LIMIT.as_nanos() as u64);
    });
}

#[test]
fn what_was_counted_while_the_connection_was_lost_is_unknown() {
    let Some(address) = filled("monitor_lost") else { return };
    let monitor = Monitor::start(request(&address)).unwrap();
    block_on(async {
        let client = session(&address).await;
        for pid in watchers(&client).await {
            client.query("SELECT pg_terminate_backend($1)", &[&pid]).await.unwrap();
        }
        let begun = Instant::now();
        // Once to notice, once for a new beginning.
        while monitor.take().servers.is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(120), "never reported again");
        }
        assert!(monitor.notes().iter().any(|note| note.contains("broke")), "{:?}", monitor.notes());
        read(&client, 7).await;
        let reported = only(next(&monitor));
        assert_eq!(reported.own["pg_stat_user_tables.idx_scan"], 7);
    });
}

#[test]
fn a_server_that_was_killed_is_unknown_and_keeps_nobody_waiting() {
    let Some(server) = server_to_break() else { return };
    let monitor = Monitor::start(request(&server.address("postgres"))).unwrap();
    next(&monitor);
    signal(&[server.postmaster() as i32], Signal::QUIT);
    std::thread::sleep(Duration::from_secs(1));
    let begun = Instant::now();
    assert_nothing_counted(&monitor.take());
    assert_nothing_counted(&monitor.take());
    assert!(monitor.silent_for().unwrap() > Duration::from_millis(100));
    drop(monitor);
    assert!(begun.elapsed() < 2 * TAKE_LIMIT + Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn a_locked_table_delays_no_counters() {
    let Some(address) = filled("monitor_locked") else { return };
    let monitor = Monitor::start(request(&address)).unwrap();
    block_on(async {
        let client = session(&address).await;
        client.batch_execute(&format!("BEGIN; LOCK TABLE {}", sql().table(0))).await.unwrap();
        let reported = only(next(&monitor));
        assert_eq!(reported.own.get("relation.main_pages_grown"), None);
        assert!(reported.counters.logical_reads.is_some());
        client.batch_execute("ROLLBACK").await.unwrap();
    });
}

#[test]
fn nothing_stays_behind() {
    let Some(address) = database("monitor_gone") else { return };
    let monitor = Monitor::start(request(&address)).unwrap();
    block_on(async {
        let client = session(&address).await;
        assert_eq!(watchers(&client).await.len(), 2);
        drop(monitor);
        let begun = Instant::now();
        while !watchers(&client).await.is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(60), "sessions of the monitor stay");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
}

#[test]
fn a_server_that_cannot_be_reached_is_an_error_at_the_start() {
    let Some(mut address) = database("monitor_unreached") else { return };
    address.database = Some("no such database".to_owned());
    let error = Monitor::start(request(&address)).unwrap_err();
    assert!(error.to_string().contains("cannot connect"), "{error}");
}

#[test]
fn several_servers_are_distinguished() {
    let (Some(mut address), Some(other)) = (database("monitor_pair"), server_to_break()) else { return };
    address.nodes.extend(other.address("postgres").nodes);
    address.database = Some("postgres".to_owned());
    let monitor = Monitor::start(request(&address)).unwrap();
    let reported = next_of(&monitor, 2);
    assert_eq!(reported.servers[1].node, address.nodes[1].to_string());
    assert!(reported.counters.logical_reads.is_some());
    assert!(
        monitor.notes().iter().any(|note| note.starts_with(&format!("{}, {}:", address.nodes[0], address.nodes[1])))
    );
    signal(&[other.postmaster() as i32], Signal::QUIT);
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(next_of(&monitor, 1).counters, Counters::default());
}

type Looks = Vec<(u64, Look)>;

/// Adds the looks at the only server until they are enough, however long its machine takes for that.
async fn look_until(monitor: &Monitor, looks: &mut Looks, is_enough: impl Fn(&Looks) -> bool) {
    let begun = Instant::now();
    while !is_enough(looks) {
        assert!(begun.elapsed() < Duration::from_secs(120), "{looks:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
        let seen = next(monitor).looks;
        assert!(seen.len() <= 1, "{seen:?}");
        looks.extend(seen.into_iter().flat_map(|server| server.looks));
    }
}

#[test]
fn who_holds_up_a_session_and_what_the_server_does_is_seen_in_looks() {
    let Some(address) = filled("monitor_looks") else { return };
    let monitor = Monitor::start(request(&address)).unwrap();
    let held = |looks: &Looks| -> Vec<Look> {
        let waits = |look: &&Look| look.sessions.get("Lock:relation") == Some(&1);
        looks.iter().map(|(_, look)| look).filter(waits).cloned().collect()
    };
    let seen = block_on(async {
        let mut looks = Looks::new();
        let client = session(&address).await;
        let holder = Connector::new(&address, "somebody").unwrap().connect_session(0).await.unwrap().client;
        // What is usual is known after some looks.
        look_until(&monitor, &mut looks, |looks| looks.len() >= 8).await;
        holder.batch_execute(&format!("BEGIN; LOCK TABLE {}", sql().table(0))).await.unwrap();
        let release = async {
            let is_enough = |looks: &Looks| {
                let held = held(looks);
                held.len() > 3 && held.iter().any(|look| !look.blockers.is_empty())
            };
            look_until(&monitor, &mut looks, is_enough).await;
            holder.batch_execute("COMMIT").await.unwrap();
        };
        join(read(&client, 1), release).await;
        looks
    });
    let held = held(&seen);
    let by = held.iter().find_map(|look| look.blockers.first_key_value()).expect("somebody is named");
    assert_eq!((by.0.as_str(), *by.1), ("somebody, idle in transaction", 1));
    assert!(seen.iter().all(|(_, look)| look.is_late() || look.work.is_some()), "a superuser sees all");
    assert!(seen.is_sorted_by_key(|(at_ns, _)| *at_ns));
}
