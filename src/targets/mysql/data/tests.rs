use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::info::info;
use super::proof::prove;
use super::*;
use crate::config::mysql::MysqlAddress;
use crate::targets::TargetError;
use crate::targets::database::{Filling, Phase, Replace, SetupRequest};
use crate::targets::mysql::Connector;
use crate::targets::mysql::test_server::{TestServer, server, server_with};
use crate::targets::sql::data::catalog::{self, load};
use crate::targets::sql::data::descriptor::Stage;
use crate::targets::sql::data::drop;
use crate::targets::sql::data::setup::{self, Existing, Loaded};
use crate::targets::sql::data::verify::verify;

pub(in crate::targets::mysql) fn request() -> SetupRequest {
    SetupRequest {
        schemas: 2,
        scale_blocks: 300,
        scan_blocks: 20,
        block_bytes: 16_384,
        filling: Filling::Incompressible,
        streams: 2,
        seed: 42,
        is_seed_asked: true,
        replace: Replace::Refuse,
    }
}

pub(in crate::targets::mysql) fn set_up(access: &Access<'_>, request: &SetupRequest) -> Result<Loaded, TargetError> {
    setup::run(setup::plan(access, request)?, &|_, _| {}, &AtomicBool::new(false))
}

fn assert_sound(access: &Access<'_>) {
    let report = verify(access, &|_| {}, &AtomicBool::new(false)).unwrap();
    assert!(report.is_sound(), "{report:?}");
    let data = load(access).unwrap();
    let proof = prove(access, &data, data.schemas).unwrap();
    assert_eq!((proof.rows, proof.leaves), (600, Some(600)), "{proof:?}");
}

/// The message and the hint of a refusal.
fn refusal<T: std::fmt::Debug>(result: Result<T, TargetError>) -> (String, String) {
    let error = result.unwrap_err();
    (error.to_string(), error.hint().unwrap_or_default())
}

fn as_user(server: &TestServer, user: &str) -> Connector {
    Connector::new(&MysqlAddress { user: Some(user.to_owned()), ..server.address("mysql") }, "plimsoll tests").unwrap()
}

#[test]
fn data_are_made_lie_as_they_must_and_go_without_a_trace() {
    let Some(server) = server() else { return };
    let connector = server.connector();
    let access = Access::new(&connector, "data_fresh");
    assert!(refusal(load(&access)).0.contains("no SLOB data in the database `data_fresh`"));
    let report = set_up(&access, &request()).unwrap();
    assert_eq!((report.bytes_written, report.bytes_found, report.created), (640 * 16_384, 0, true));
    assert_sound(&access);
    let data = load(&access).unwrap();
    let proof = prove(&access, &data, 2).unwrap();
    assert_eq!(proof.to_string(), "2 tables, 600 rows in as many leaves, read by index range scan");
    assert_eq!(proof.facts()["layout.pages"], "600");
    assert!(!set_up(&access, &request()).unwrap().created, "what is there is left alone");
    let info = info(&access).unwrap();
    assert_eq!((info.stage, info.tables.len(), info.in_use_by), (Stage::Ready, 4, None));
    let other = SetupRequest { scale_blocks: 200, ..request() };
    let (what, hint) = refusal(setup::plan(&access, &other));
    assert!(what.contains("is 300 there and 200 here") && hint.contains("--replace"), "{what}");
    let plan = drop::plan(&access).unwrap();
    assert_eq!(plan.objects.len(), 2 + 2 + 2 + 1);
    assert!(plan.bytes > 640 * 16_384);
    assert!(drop::run(plan, &AtomicBool::new(false)).unwrap(), "the database went too");
    assert!(refusal(drop::plan(&access)).0.contains("no SLOB data"));
}

#[test]
fn a_set_up_that_was_ended_goes_on_where_it_was() {
    let Some(server) = server_with(&[]) else { return };
    let connector = server.connector();
    let access = Access::new(&connector, "data_resumed");
    for last in [Phase::Load, Phase::Rebuild, Phase::Index, Phase::Analyze] {
        let stop = AtomicBool::new(false);
        let seen = Mutex::new(Vec::new());
        let tell = |phase, _| {
            seen.lock().unwrap().push(phase);
            if phase == last {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let ended = setup::run(setup::plan(&access, &request()).unwrap(), &tell, &stop);
        assert!(matches!(ended, Err(TargetError::Interrupted)), "{last:?}: {ended:?}");
        assert!(refusal(load(&access)).0.contains("was never finished"));
    }
    let plan = setup::plan(&access, &request()).unwrap();
    assert_eq!(plan.existing, Existing::Unfinished { loaded_bytes: 640 * 16_384 });
    assert_eq!(plan.missing_bytes(), 0);
    assert_eq!(set_up(&access, &request()).unwrap().bytes_written, 0);
    assert_sound(&access);
    let fill_factor = "SELECT @@innodb_fill_factor";
    let mut session = session::Session::open(access).unwrap();
    assert_eq!(session.first::<u32>("test", fill_factor, ()).unwrap(), Some(100), "the server's setting is put back");
}

#[test]
fn without_files_rows_are_sent_as_statements_and_are_the_same() {
    let Some(server) = server_with(&["--local-infile=0"]) else { return };
    let connector = server.connector();
    let access = Access::new(&connector, "data_statements");
    let report = set_up(&access, &request()).unwrap();
    assert!(report.notes.iter().any(|note| note.contains("`local_infile` is off")), "{:?}", report.notes);
    assert_sound(&access);
}

#[test]
fn what_lies_otherwise_is_refused_with_reason_and_cure() {
    // Other tests' set-ups change the server's fill factor, with which a table would be rebuilt just as it was.
    let Some(server) = server_with(&[]) else { return };
    let connector = server.connector();
    let access = Access::new(&connector, "data_spoiled");
    let cases = [
        ("ALTER TABLE slob_2 DROP INDEX slob_2_key", "the index `slob_2_key` of", "setup --replace"),
        ("CREATE INDEX mine ON slob_1 (c2)", "has another index, `mine`", "DROP INDEX `mine`"),
        ("ALTER TABLE slob_1 FORCE", "some share a leaf", "setup --replace"),
        ("ALTER TABLE slob_1 ROW_FORMAT=COMPACT", "is not stored as set-up made it", "setup --replace"),
        ("ALTER TABLE slob_1 MODIFY c5 VARBINARY(200)", "has other columns", "setup --replace"),
        ("ALTER TABLE slob_1 ENGINE=MyISAM", "is not a table of InnoDB", "setup --replace"),
        // Missing rows are found by their keys, or by their leaf once the server has purged them and merged it with another.
        ("DELETE FROM slob_1 WHERE custid = 599", "`data_spoiled`.`slob_1`", "setup --replace"),
        ("DELETE FROM slob_2 WHERE custid % 30 = 7", "`data_spoiled`.`slob_2`", "setup --replace"),
        ("UPDATE slob_1 SET c2 = NULL", "some share a leaf", "setup --replace"),
        ("DROP TABLE slob_2", "is missing", "setup --replace"),
        (
            "CREATE TRIGGER mine BEFORE UPDATE ON slob_1 FOR EACH ROW SET NEW.c3 = NEW.c2",
            "has a trigger, `mine`",
            "drop the trigger",
        ),
    ];
    for (statement, reason, cure) in cases {
        set_up(&access, &SetupRequest { replace: Replace::Replace, ..request() }).unwrap();
        server.execute(&["USE data_spoiled", statement]);
        let proof = prove(&access, &load(&access).unwrap(), 2);
        assert!(proof.is_err(), "`{statement}` went unnoticed");
        let (what, hint) = refusal(proof);
        assert!(what.contains(reason), "`{statement}` gave: {what}");
        assert!(hint.contains(cure), "`{statement}` gave: {what}: {hint}");
    }
}

#[test]
fn verify_finds_what_is_missing_moved_or_changed() {
    let Some(server) = server() else { return };
    let connector = server.connector();
    let access = Access::new(&connector, "data_verified");
    let cases = [
        ("DELETE FROM slob_1 WHERE custid = 7", "where key 7 belongs"),
        ("UPDATE slob_1 SET custid = 9999 WHERE custid = 7", "has key 9999 instead of 7"),
        ("UPDATE slob_2 SET c9 = NULL WHERE custid = 7", "the row with key 7 has 0 bytes of filling"),
        ("INSERT INTO slob_1 (place, custid) VALUES (5000, 5000)", "has 1 rows that set-up did not put there"),
        ("DELETE FROM scan_1 WHERE place = 3", "`scan_1`: no row is at place 3"),
        ("DROP TABLE slob_2", "slob_2' doesn't exist (error 1146)"),
    ];
    for (statement, fault) in cases {
        set_up(&access, &SetupRequest { replace: Replace::Replace, ..request() }).unwrap();
        server.execute(&["USE data_verified", statement]);
        let report = verify(&access, &|_| {}, &AtomicBool::new(false)).unwrap();
        assert!(report.faults.iter().any(|found| found.contains(fault)), "`{statement}` gave: {:?}", report.faults);
    }
}

#[test]
fn what_others_put_there_stays_and_keeps_set_up_away() {
    let Some(server) = server() else { return };
    let connector = server.connector();
    let access = Access::new(&connector, "data_others");
    server.execute(&["CREATE DATABASE data_others", "CREATE TABLE data_others.slob_1 (a INT)"]);
    assert!(refusal(setup::plan(&access, &request())).0.contains("holds `slob_1`, which Plimsoll did not make"));
    server.execute(&["DROP TABLE data_others.slob_1", "CREATE TABLE data_others.mine (a INT)"]);
    set_up(&access, &request()).unwrap();
    assert!(!drop::run(drop::plan(&access).unwrap(), &AtomicBool::new(false)).unwrap(), "the database stays");
    server.execute(&["SELECT a FROM data_others.mine"]);
}

#[test]
fn an_ordinary_user_is_told_which_rights_are_missing() {
    let Some(server) = server() else { return };
    server.execute(&[
        "CREATE USER plain@localhost",
        "CREATE USER owner@localhost",
        "GRANT ALL ON data_rights.* TO owner@localhost",
    ]);
    let plain = as_user(server, "plain");
    let (what, hint) = refusal(set_up(&Access::new(&plain, "data_rights"), &request()));
    assert!(what.contains("denied") && hint.contains("GRANT ALL ON `data_rights`.*"), "{what}: {hint}");
    let owner = as_user(server, "owner");
    let access = Access::new(&owner, "data_rights");
    let (what, hint) = refusal(set_up(&access, &request()));
    assert!(what.contains("denied") && hint.contains("SYSTEM_VARIABLES_ADMIN"), "{what}: {hint}");
    // What an administrator finishes, an ordinary user loads, proves and verifies.
    let connector = server.connector();
    set_up(&Access::new(&connector, "data_rights"), &request()).unwrap();
    let proof = prove(&access, &load(&access).unwrap(), 2).unwrap();
    assert!(proof.leaves.is_none() && proof.notes[0].contains("innodb_index_stats"), "{proof:?}");
    assert!(verify(&access, &|_| {}, &AtomicBool::new(false)).unwrap().is_sound());
}

#[test]
fn one_set_up_at_a_time_works_on_a_database() {
    let Some(server) = server() else { return };
    let connector = server.connector();
    let access = Access::new(&connector, "data_locked");
    let mut other = session::Session::open(access).unwrap();
    catalog::lock(access, &mut other).unwrap();
    let (what, _) = refusal(set_up(&access, &request()));
    assert!(what.contains("another process makes or removes the data") && what.contains("session "), "{what}");
    std::mem::drop(other);
    set_up(&access, &request()).unwrap();
}
