use std::sync::atomic::AtomicBool;

use super::*;
use crate::data::catalog::load;
use crate::data::pieces::{Marks, missing};
use crate::data::plan::plan;
use crate::data::{drop, verify};
use crate::postgres::data::descriptor::sample;
use crate::postgres::data::tests::{
    NAMESPACE, assert_sound, connector, connector_as, execute, interrupt, number, refusal, request, set_up,
};
use crate::postgres::test_server::database;
use targets::database::{Filling, Progress, Replace, SetupRequest};

/// Large enough for many pieces.
fn large() -> SetupRequest {
    SetupRequest { schemas: 2, scale_blocks: 20_000, scan_blocks: 0, ..request() }
}

#[test]
fn rows_lie_where_the_permutation_of_their_schema_puts_them() {
    let Some(address) = database("setup_placed") else { return };
    let connector = connector(&address);
    let access = Access::new(&connector, NAMESPACE);
    for filling in [Filling::Incompressible, Filling::Compressible] {
        let request = SetupRequest { filling, streams: 1, replace: Replace::Replace, ..request() };
        set_up(&access, &request).unwrap();
        let data = load(&access).unwrap();
        let session = Session::open(access).unwrap();
        for schema in [0, 2] {
            let ask = format!("SELECT custid FROM {} ORDER BY ctid", access.sql(8192).table(schema));
            let keys = session.query("test", &ask, &[], Halt::NEVER).unwrap();
            let placed = data.permutation(schema);
            assert!((0..).zip(&keys).all(|(place, row)| row.get::<_, i64>(0) as u64 == placed.invert(place)));
        }
        assert_sound(&access);
    }
    let off = "SELECT count(*) FROM pg_class WHERE reloptions::text LIKE '%autovacuum%'";
    assert_eq!(number(&access, off), 0, "autovacuum is as the server has it");
}

#[test]
fn one_table_that_several_streams_load_is_loaded_once_however_often_it_is_interrupted() {
    let Some(address) = database("setup_streams") else { return };
    let connector = connector(&address);
    let access = Access::new(&connector, NAMESPACE);
    let request = SetupRequest { schemas: 1, scale_blocks: 40_000, streams: 4, ..large() };
    let mut loaded = 0;
    for quarter in [1, 2, 3] {
        let enough = |phase, reported: Progress| {
            phase == Phase::Load && reported.done_bytes * 4 > reported.total_bytes * quarter
        };
        let now = interrupt(&access, &request, enough);
        assert!(now > loaded && now < 40_000 * 8192, "{now} after {loaded}");
        loaded = now;
    }
    let report = set_up(&access, &request).unwrap();
    assert_eq!((report.bytes_found, report.bytes_written), (loaded, 40_000 * 8192 - loaded));
    assert_sound(&access);
    let rows = "SELECT count(*) + count(DISTINCT custid) + count(DISTINCT (ctid::text::point)[0]) FROM plimsoll.slob_1";
    assert_eq!(number(&access, rows), 3 * 40_000);
}

#[test]
fn blocks_are_vacuumed_as_they_are_loaded() {
    let Some(address) = database("setup_vacuumed") else { return };
    let connector = connector(&address);
    let access = Access::new(&connector, NAMESPACE);
    let request = SetupRequest { schemas: 1, streams: 1, ..large() };
    interrupt(&access, &request, |phase, _| phase == Phase::Index);
    let visible = "SELECT relallvisible::bigint FROM pg_class WHERE oid = 'plimsoll.slob_1'::regclass";
    let visible = number(&access, visible);
    assert!(visible > 10_000, "{visible} of 20000 blocks");
    set_up(&access, &request).unwrap();
    assert_sound(&access);
}

/// Leaves what a piece leaves whose transaction never came to its end.
fn leave_empty_blocks(access: &Access<'_>) {
    let columns: Vec<String> = (2..=20).map(|column| format!("c{column}")).collect();
    let columns = columns.join(", ");
    let insert = format!("INSERT INTO slob_1 (custid, {columns}) SELECT custid + 1000, {columns} FROM slob_2");
    execute(access, &format!("{insert}; DELETE FROM slob_1 WHERE custid >= 1000"));
}

#[test]
fn rows_that_an_older_transaction_still_sees_are_waited_for() {
    let Some(address) = database("setup_older") else { return };
    let connector = connector(&address);
    let access = Access::new(&connector, NAMESPACE);
    interrupt(&access, &request(), |phase, _| phase == Phase::Index);
    let older = Session::open(access).unwrap();
    older.execute("test", "BEGIN ISOLATION LEVEL REPEATABLE READ", Halt::NEVER).unwrap();
    older.execute("test", "SELECT count(*) FROM pg_class", Halt::NEVER).unwrap();
    leave_empty_blocks(&access);
    let file = || number(&access, "SELECT relfilenode::bigint FROM pg_class WHERE oid = 'plimsoll.slob_1'::regclass");
    let mut files = BTreeSet::from([file()]);
    std::thread::scope(|scope| {
        let set_up = scope.spawn(|| set_up(&access, &request()));
        // The second rewriting shows that the first was not taken for the end.
        while files.len() < 3 && !set_up.is_finished() {
            files.insert(file());
        }
        assert!(!set_up.is_finished(), "it did not wait");
        older.execute("test", "COMMIT", Halt::NEVER).unwrap();
        set_up.join().unwrap().unwrap();
    });
    assert_sound(&access);
}

#[test]
fn blocks_that_a_killed_load_left_empty_do_not_stay() {
    let Some(address) = database("setup_empty_blocks") else { return };
    let connector = connector(&address);
    let access = Access::new(&connector, NAMESPACE);
    interrupt(&access, &request(), |phase, _| phase == Phase::Index);
    leave_empty_blocks(&access);
    let report = set_up(&access, &request()).unwrap();
    assert!(report.phases.iter().any(|(phase, _)| *phase == Phase::Compact), "{report:?}");
    assert_sound(&access);
    assert_eq!(number(&access, "SELECT pg_relation_size('plimsoll.slob_1') / 8192"), 300);
}

#[test]
fn an_ordinary_role_needs_no_more_than_a_place_of_its_own() {
    let Some(address) = database("setup_role") else { return };
    let owner = connector(&address);
    let public = Access::new(&owner, "public");
    execute(&public, "CREATE ROLE ordinary LOGIN");
    let connector = connector_as(&address, "ordinary");
    let access = Access::new(&connector, NAMESPACE);
    let (what, hint) = refusal(plan(&access, &request()));
    assert!(what.contains("may not make a schema in the database `setup_role`"), "{what}");
    assert!(hint.contains("GRANT CREATE ON DATABASE \"setup_role\" TO \"ordinary\""), "{hint}");

    execute(&public, "CREATE SCHEMA plimsoll");
    assert!(refusal(plan(&access, &request())).0.contains("has not the right USAGE on the schema"));
    execute(&public, "GRANT USAGE ON SCHEMA plimsoll TO ordinary");
    assert!(refusal(plan(&access, &request())).0.contains("has not the right CREATE on the schema"));
    execute(&public, "GRANT CREATE ON SCHEMA plimsoll TO ordinary");
    let report = set_up(&access, &request()).unwrap();
    assert!(report.notes.iter().any(|note| note.contains("setup wrote no checkpoint")), "{report:?}");
    assert_sound(&access);
    assert!(!drop::run(drop::plan::<_, DataSet>(&access).unwrap(), &AtomicBool::new(false)).unwrap());

    execute(&public, "GRANT CREATE ON DATABASE setup_role TO ordinary");
    let access = Access::new(&connector, "its own");
    set_up(&access, &request()).unwrap();
    assert_sound(&access);
    assert!(drop::run(drop::plan::<_, DataSet>(&access).unwrap(), &AtomicBool::new(false)).unwrap());
}

#[test]
fn time_limits_of_the_server_do_not_end_a_set_up() {
    let Some(address) = database("setup_limits") else { return };
    let owner = connector(&address);
    execute(
        &Access::new(&owner, "public"),
        "CREATE ROLE hasty LOGIN; GRANT CREATE ON DATABASE setup_limits TO hasty; \
         ALTER ROLE hasty SET statement_timeout = '500ms'; \
         ALTER ROLE hasty SET idle_in_transaction_session_timeout = '500ms'; \
         ALTER ROLE hasty SET default_transaction_read_only = on; ALTER ROLE hasty SET search_path = nowhere",
    );
    let connector = connector_as(&address, "hasty");
    let access = Access::new(&connector, NAMESPACE);
    let session = Session::open(access).unwrap();
    session.execute("test", "SELECT pg_sleep(1)", Halt::NEVER).unwrap();
    session.execute("test", "BEGIN", Halt::NEVER).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(1));
    session.execute("test", "COMMIT", Halt::NEVER).unwrap();
    set_up(&access, &request()).unwrap();
    let report = verify(&access, &|_| {}, &AtomicBool::new(false)).unwrap();
    assert!(report.is_sound(), "{report:?}");
}

const PIECE: u64 = PIECE_BYTES / 8192;

fn data(schemas: u32, scale_blocks: u64) -> DataSet {
    DataSet { schemas, scale_blocks, scan_blocks: 0, ..sample() }
}

#[test]
fn a_table_is_vacuumed_while_its_blocks_are_in_memory_and_not_too_often() {
    let due = |scale_blocks, vacuum_bytes| -> Vec<usize> {
        let work = missing(&data(1, scale_blocks), &Marks::new(), vacuum_bytes);
        let pieces = work[0].1.iter().enumerate();
        pieces.filter(|(_, piece)| piece.then_vacuum).map(|(place, _)| place).collect()
    };
    assert_eq!(due(10 * PIECE, vacuum_bytes(128 << 20, 1)), [1, 3, 5, 7, 9]);
    assert_eq!(due(10 * PIECE, vacuum_bytes(128 << 20, 2)), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(due(10 * PIECE + 1, vacuum_bytes(8 << 30, 4)), [3, 7]);
    assert_eq!(due(1000 * PIECE, vacuum_bytes(16 << 20, 16)).len(), 62, "each 16th piece");
    assert!(due(PIECE - 1, MAX_VACUUM_BYTES).is_empty());
}
