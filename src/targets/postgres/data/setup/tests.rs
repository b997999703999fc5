use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::targets::database::{Filling, Progress, Replace, SetupRequest};
use crate::targets::postgres::data::info;
use crate::targets::postgres::data::tests::{
    NAMESPACE, assert_sound, connector, connector_as, execute, number, refusal, request, set_up,
};
use crate::targets::postgres::test_server::database;
use crate::targets::sql::data::catalog::{find, load};
use crate::targets::sql::data::drop;
use crate::targets::sql::data::setup::{Existing, plan, run};
use crate::targets::sql::data::verify::verify;

/// Large enough for many pieces.
fn large() -> SetupRequest {
    SetupRequest { schemas: 2, scale_blocks: 20_000, scan_blocks: 0, ..request() }
}

#[test]
fn data_are_sound_of_the_size_planned_and_reported_of_to_the_end() {
    let Some(address) = database("setup_sound") else { return };
    let connector = connector(&address);
    let access = Access::new(&connector, NAMESPACE);
    let planned = plan(&access, &request()).unwrap();
    assert_eq!(
        (planned.existing, planned.data.bytes(), planned.data.tables().count()),
        (Existing::Nothing, 960 * 8192, 6)
    );
    assert_eq!((planned.makes_data(), planned.missing_bytes()), (true, 960 * 8192));
    assert!(find(&access).unwrap().is_none(), "planning writes nothing");
    let seen = Mutex::new(Vec::new());
    let tell = |phase, reported| seen.lock().unwrap().push((phase, reported));
    let report = run(planned, &tell, &AtomicBool::new(false)).unwrap();
    assert!(report.created);
    assert_eq!((report.bytes_written, report.bytes_found), (960 * 8192, 0));
    let phases: Vec<Phase> = report.phases.iter().map(|(phase, _)| *phase).collect();
    assert_eq!(phases, [Phase::Create, Phase::Load, Phase::Index, Phase::Vacuum, Phase::Checkpoint]);
    let seen = seen.into_inner().unwrap();
    for phase in [Phase::Load, Phase::Index, Phase::Vacuum] {
        let last = seen.iter().rev().find(|(reported, _)| *reported == phase).unwrap().1;
        assert!(last.done_bytes == last.total_bytes && last.total_bytes > 0, "{phase}: {last:?}");
    }
    assert_sound(&access);
    assert_eq!(number(&access, "SELECT count(*) FROM pg_class WHERE relname = 'plimsoll_load'"), 0);
    let off = "SELECT count(*) FROM pg_class WHERE reloptions::text LIKE '%autovacuum%'";
    assert_eq!(number(&access, off), 0, "autovacuum is as the server has it");
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
}

#[test]
fn a_hostile_name_is_only_a_name() {
    let Some(address) = database("setup_hostile") else { return };
    let connector = connector(&address);
    execute(&Access::new(&connector, "public"), "CREATE TABLE victim (id int)");
    for name in ["x\"; DROP TABLE public.victim; --", "it's \\ $procedure$ %s", "Ünï cödé"] {
        let access = Access::new(&connector, name);
        set_up(&access, &request()).unwrap();
        assert_sound(&access);
        assert_eq!(info::info(&access).unwrap().namespace, name);
        drop::run(drop::plan(&access).unwrap(), &AtomicBool::new(false)).unwrap();
        assert!(find(&access).unwrap().is_none());
    }
    assert_eq!(number(&Access::new(&connector, "public"), "SELECT count(*) FROM public.victim"), 0);
    for name in ["", "a\0b", &"x".repeat(64)] {
        assert!(refusal(plan(&Access::new(&connector, name), &request())).0.contains("cannot be named"));
    }
}

#[test]
fn setting_up_the_same_data_again_writes_nothing() {
    let Some(address) = database("setup_again") else { return };
    let connector = connector(&address);
    let access = Access::new(&connector, NAMESPACE);
    set_up(&access, &request()).unwrap();
    let written = "SELECT sum(n_tup_ins + n_tup_upd + n_tup_del)::bigint FROM pg_stat_user_tables";
    let files = "SELECT sum(relfilenode::bigint)::bigint FROM pg_class";
    let before = (number(&access, written), number(&access, files));
    let planned = plan(&access, &request()).unwrap();
    assert_eq!((planned.existing, planned.makes_data(), planned.missing_bytes()), (Existing::SameData, false, 0));
    assert!(!run(planned, &|_, _| {}, &AtomicBool::new(false)).unwrap().created);
    assert_eq!((number(&access, written), number(&access, files)), before);
    // Without one of its tables it is not the same any more.
    execute(&access, "DROP TABLE slob_2");
    let (what, hint) = refusal(plan(&access, &request()));
    assert!(what.contains("`slob_2` is missing") && hint.contains("--replace"), "{what}; {hint}");
    set_up(&access, &SetupRequest { replace: Replace::Replace, ..request() }).unwrap();
    assert_sound(&access);
}

#[test]
fn other_data_are_refused_with_every_difference_and_replaced_when_reported_so() {
    let Some(address) = database("setup_other") else { return };
    let connector = connector(&address);
    let access = Access::new(&connector, NAMESPACE);
    set_up(&access, &request()).unwrap();
    let other = SetupRequest { schemas: 1, seed: 1, scan_blocks: 0, ..request() };
    let (what, hint) = refusal(plan(&access, &other));
    assert!(
        what.ends_with(
            "the number of schemas is 3 there and 1 here; the number of blocks of a scan table is 20 there and 0 here; \
             the seed is 42 there and 1 here"
        ),
        "{what}"
    );
    assert!(hint.contains("--replace"));
    let other = SetupRequest { replace: Replace::Replace, ..other };
    assert_eq!(plan(&access, &other).unwrap().existing, Existing::OtherData);
    let report = set_up(&access, &other).unwrap();
    assert_eq!(report.phases[0].0, Phase::Remove);
    assert_sound(&access);
    let tables = "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'plimsoll'::regnamespace";
    assert_eq!(number(&access, tables), 2, "the one table and its descriptor");
}

/// Interrupts a set-up when `when` says so, and gives what the plan says is loaded afterwards.
fn interrupt(access: &Access<'_>, request: &SetupRequest, when: impl Fn(Phase, Progress) -> bool) -> u64 {
    let stop = AtomicBool::new(false);
    let tell = |phase, reported| {
        if when(phase, reported) {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let outcome = run(plan(access, request).unwrap(), &tell, &stop);
    assert!(matches!(outcome, Err(TargetError::Interrupted)), "{outcome:?}");
    match plan(access, request).unwrap().existing {
        Existing::Unfinished { loaded_bytes } => loaded_bytes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_interrupted_set_up_goes_on_where_it_was() {
    let Some(address) = database("setup_interrupted") else { return };
    let connector = connector(&address);
    let access = Access::new(&connector, NAMESPACE);
    let request = large();
    let half = |phase, reported: Progress| phase == Phase::Load && reported.done_bytes > reported.total_bytes / 2;
    let loaded = interrupt(&access, &request, half);
    assert!(loaded > 0 && loaded < 40_000 * 8192, "{loaded}");
    assert!(refusal(load(&access)).0.contains("never finished"));
    assert_eq!(info::info(&access).unwrap().stage, Stage::Loading);
    // Other data are refused, but may replace it.
    assert!(refusal(plan(&access, &SetupRequest { seed: 1, ..request.clone() })).0.contains("the seed is 42"));
    let began = load_started(&access);
    for phase in [Phase::Index, Phase::Vacuum, Phase::Checkpoint] {
        assert_eq!(interrupt(&access, &request, |now, _| now == phase), 40_000 * 8192, "{phase}");
    }
    let report = set_up(&access, &request).unwrap();
    assert_eq!((report.bytes_written, report.bytes_found), (0, 40_000 * 8192));
    assert_sound(&access);
    assert_eq!(load(&access).unwrap().created_at, began);
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

fn load_started(access: &Access<'_>) -> String {
    find(access).unwrap().unwrap().data.created_at
}

#[test]
fn what_was_loaded_before_the_sessions_were_killed_is_not_loaded_twice() {
    let Some(address) = database("setup_killed") else { return };
    let connector = connector(&address);
    let access = Access::new(&connector, NAMESPACE);
    let request = SetupRequest { streams: 3, ..large() };
    let outcome = run(
        plan(&access, &request).unwrap(),
        &|phase, reported| {
            if phase == Phase::Load && reported.done_bytes > reported.total_bytes / 3 {
                let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                            WHERE datname = current_database() AND pid <> pg_backend_pid()";
                number(&Access::new(&connector, "public"), kill);
            }
        },
        &AtomicBool::new(false),
    );
    let (what, _) = refusal(outcome);
    assert!(what.contains("gone") || what.contains("57P01"), "{what}");
    let report = set_up(&access, &request).unwrap();
    assert!(report.bytes_found > 0, "{report:?}");
    assert_eq!(report.bytes_written + report.bytes_found, 40_000 * 8192);
    assert_sound(&access);
}

#[test]
fn blocks_that_a_killed_load_left_empty_do_not_stay() {
    let Some(address) = database("setup_empty_blocks") else { return };
    let connector = connector(&address);
    let access = Access::new(&connector, NAMESPACE);
    interrupt(&access, &request(), |phase, _| phase == Phase::Index);
    // As a piece whose transaction never came to its end.
    let columns: Vec<String> = (2..=20).map(|column| format!("c{column}")).collect();
    let columns = columns.join(", ");
    execute(
        &access,
        &format!(
            "INSERT INTO slob_1 (custid, {columns}) SELECT custid + 1000, {columns} FROM slob_2; \
             DELETE FROM slob_1 WHERE custid >= 1000"
        ),
    );
    let report = set_up(&access, &request()).unwrap();
    assert!(report.phases.iter().any(|(phase, _)| *phase == Phase::Compact), "{report:?}");
    assert_sound(&access);
    assert_eq!(number(&access, "SELECT pg_relation_size('plimsoll.slob_1') / 8192"), 300);
}

#[test]
fn a_table_that_was_dropped_in_between_is_loaded_again() {
    let Some(address) = database("setup_lost_table") else { return };
    let connector = connector(&address);
    let access = Access::new(&connector, NAMESPACE);
    interrupt(&access, &request(), |phase, _| phase == Phase::Index);
    execute(&access, "DROP TABLE slob_2; DROP TABLE scan_1");
    assert_eq!(set_up(&access, &request()).unwrap().bytes_written, 320 * 8192);
    assert_sound(&access);
}

#[test]
fn two_set_ups_do_not_work_on_the_same_data() {
    let Some(address) = database("setup_twice") else { return };
    let connector = connector(&address);
    let access = Access::new(&connector, NAMESPACE);
    let second = Mutex::new(None);
    let tell = |phase, _| {
        if phase == Phase::Load {
            let reported = || (refusal(set_up(&access, &request())).0, info::info(&access).unwrap().in_use_by);
            second.lock().unwrap().get_or_insert_with(reported);
        }
    };
    run(plan(&access, &request()).unwrap(), &tell, &AtomicBool::new(false)).unwrap();
    let (reported, holder) = second.into_inner().unwrap().unwrap();
    assert!(reported.contains("another process makes or removes the data"), "{reported}");
    assert!(reported.contains("session ") && holder.unwrap().contains("plimsoll tests"), "{reported}");
    assert_sound(&access);
}

#[test]
fn a_schema_with_something_of_ours_by_name_is_left_alone() {
    let Some(address) = database("setup_clash") else { return };
    let connector = connector(&address);
    let clashes = [
        ("a", "CREATE TABLE slob_7 (id int)", "slob_7"),
        ("b", "CREATE VIEW scan_1 AS SELECT 1", "scan_1"),
        ("c", "CREATE PROCEDURE slob_batch_2() LANGUAGE sql AS ''", "slob_batch_2"),
        ("d", "CREATE TYPE slob_1 AS (id int)", "slob_1"),
        ("e", "CREATE TABLE plimsoll_data (id int)", "plimsoll_data"),
    ];
    for (name, statement, clash) in clashes {
        let access = Access::new(&connector, name);
        execute(&Access::new(&connector, "public"), &format!("CREATE SCHEMA {name}"));
        execute(&access, statement);
        let (what, hint) = refusal(plan(&access, &request()));
        assert!(what.contains(&format!("it holds `{clash}`")) && hint.contains("--db-schema"), "{what}");
    }
    // Anything else may be there.
    execute(&Access::new(&connector, "public"), "CREATE SCHEMA f");
    let access = Access::new(&connector, "f");
    execute(&access, "CREATE TABLE slob (id int)");
    set_up(&access, &request()).unwrap();
    assert_sound(&access);
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
    assert!(report.notes.iter().any(|note| note.contains("no checkpoint was written")), "{report:?}");
    assert_sound(&access);
    assert!(!drop::run(drop::plan(&access).unwrap(), &AtomicBool::new(false)).unwrap());

    execute(&public, "GRANT CREATE ON DATABASE setup_role TO ordinary");
    let access = Access::new(&connector, "its own");
    set_up(&access, &request()).unwrap();
    assert_sound(&access);
    assert!(drop::run(drop::plan(&access).unwrap(), &AtomicBool::new(false)).unwrap());
}

#[test]
fn time_limits_of_the_server_do_not_end_a_set_up() {
    let Some(address) = database("setup_limits") else { return };
    let owner = connector(&address);
    execute(
        &Access::new(&owner, "public"),
        "CREATE ROLE hasty LOGIN; GRANT CREATE ON DATABASE setup_limits TO hasty; \
         ALTER ROLE hasty SET statement_timeout = '20ms'; \
         ALTER ROLE hasty SET idle_in_transaction_session_timeout = '20ms'; \
         ALTER ROLE hasty SET default_transaction_read_only = on; ALTER ROLE hasty SET search_path = nowhere",
    );
    let connector = connector_as(&address, "hasty");
    let access = Access::new(&connector, NAMESPACE);
    set_up(&access, &large()).unwrap();
    let report = verify(&access, &|_| {}, &AtomicBool::new(false)).unwrap();
    assert!(report.is_sound(), "{report:?}");
}

#[test]
fn what_cannot_be_a_data_set_is_refused() {
    let Some(address) = database("setup_shapes") else { return };
    let connector = connector(&address);
    let access = Access::new(&connector, NAMESPACE);
    let good = request();
    let cases = [
        (SetupRequest { schemas: 0, ..good.clone() }, "1 to 4096"),
        (SetupRequest { schemas: 4097, ..good.clone() }, "1 to 4096"),
        (SetupRequest { scale_blocks: 0, ..good.clone() }, "at least 1 block"),
        (SetupRequest { scale_blocks: 1 << 32, ..good.clone() }, "at most 4294967294 blocks"),
        (SetupRequest { scan_blocks: 1 << 32, ..good.clone() }, "at most 4294967294 blocks"),
        (SetupRequest { streams: 0, ..good.clone() }, "1 stream"),
        (SetupRequest { block_bytes: 16384, ..good }, "blocks of 16 KiB were asked for"),
    ];
    for (request, word) in cases {
        let (what, _) = refusal(plan(&access, &request));
        assert!(what.contains(word), "{what}");
    }
}
