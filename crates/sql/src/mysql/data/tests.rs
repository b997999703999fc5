use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use mysql_async::prelude::Queryable as _;

use super::info::info;
use super::proof::prove;
use super::{Session, *};
use crate::data::catalog::load;
use crate::data::streams::Halt;
use crate::data::tests::{self, Tested, interrupt, refusal};
use crate::data::{Stage, verify};
use crate::mysql::test_server::{TestServer, block_on, server, server_with};
use crate::mysql::{Connector, quoted};
use model::config::mysql::MysqlAddress;
use targets::database::{Phase, Replace, SetupRequest};

pub(in crate::mysql) use crate::data::tests::set_up;

pub(in crate::mysql) fn request() -> SetupRequest {
    tests::request::<Connector>()
}

impl Tested for Connector {
    const PHASES: &'static [Phase] =
        &[Phase::Create, Phase::Load, Phase::Rebuild, Phase::Index, Phase::Analyze, Phase::Checkpoint];
    const HOSTILE: [&'static str; 3] = ["x`; DROP TABLE data_names.slob_1; --", "it's \\ $procedure$ %s", "Ünï cödé"];
    const CLASHES: &'static [(&'static str, &'static str)] = &[
        ("CREATE TABLE slob_7 (id int)", "slob_7"),
        ("CREATE VIEW scan_1 AS SELECT 1", "scan_1"),
        ("CREATE PROCEDURE slob_batch_2() SELECT 1", "slob_batch_2"),
        ("CREATE TABLE plimsoll_data (id int)", "plimsoll_data"),
    ];

    fn place(name: &str) -> Option<Self> {
        let server = server()?;
        let user = quoted(name);
        server.execute(&[&format!("CREATE USER {user}@localhost"), &format!("GRANT ALL ON *.* TO {user}@localhost")]);
        Some(as_user(server, name))
    }

    fn as_clerk(place: &str, namespace: &str) -> Self {
        let (server, user) = (server().unwrap(), format!("{place}_clerk"));
        server.execute(&[
            &format!("CREATE USER {user}@localhost"),
            &format!("GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON {namespace}.* TO {user}@localhost"),
        ]);
        as_user(server, &user)
    }

    fn inside(access: &Access<'_>, statements: &[&str]) {
        let connecting = format!("USE {}", quoted(access.namespace));
        block_on(async {
            let mut connected = access.connector.connect(0).await.unwrap();
            let inside = Some(connecting.as_str()).filter(|_| !access.namespace.is_empty());
            for statement in inside.iter().chain(statements) {
                connected.execute("test", statement).await.unwrap();
            }
        });
    }

    fn kill_sessions(&self) {
        block_on(async {
            let mut connected = self.connect(0).await.unwrap();
            let ask = "SELECT id FROM information_schema.processlist \
                       WHERE user = SUBSTRING_INDEX(USER(), '@', 1) AND id <> CONNECTION_ID()";
            for id in connected.conn.query::<u64, _>(ask).await.unwrap() {
                // It may have ended by itself.
                let _ = connected.execute("test", &format!("KILL {id}")).await;
            }
        });
    }
}

fn assert_sound(access: &Access<'_>) {
    tests::assert_sound(access);
    let data = load(access).unwrap();
    let proof = prove(access, &data, data.schemas).unwrap();
    assert_eq!((proof.rows, proof.leaves), (600, Some(600)), "{proof:?}");
}

fn as_user(server: &TestServer, user: &str) -> Connector {
    Connector::new(&MysqlAddress { user: Some(user.to_owned()), ..server.address("mysql") }, "plimsoll tests").unwrap()
}

#[test]
fn each_addressed_row_has_a_leaf_of_its_own() {
    let Some(server) = server() else { return };
    let connector = server.connector();
    let access = Access::new(&connector, "data_fresh");
    set_up(&access, &request()).unwrap();
    assert_sound(&access);
    let proof = prove(&access, &load(&access).unwrap(), 2).unwrap();
    assert_eq!(proof.facts()["layout.pages"], "600");
    let info = info(&access).unwrap();
    assert_eq!((info.stage, info.tables.len(), info.in_use_by), (Stage::Ready, 4, None));
}

#[test]
fn a_set_up_that_was_ended_leaves_the_servers_settings_as_they_were() {
    let Some(server) = server_with(&[]) else { return };
    let connector = server.connector();
    let access = Access::new(&connector, "data_ended");
    interrupt(&access, &request(), |phase, _| phase == Phase::Rebuild);
    let mut session = Session::open(access).unwrap();
    let fill_factor = "SELECT @@innodb_fill_factor";
    assert_eq!(session.first::<u32>("test", fill_factor, ()).unwrap(), Some(100));
    set_up(&access, &request()).unwrap();
    assert_sound(&access);
    assert_eq!(session.first::<u32>("test", fill_factor, ()).unwrap(), Some(100));
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
        ("UPDATE slob_1 SET place = -5 WHERE custid = 7", "leads from key 7 to place -5 instead of"),
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
fn a_transaction_that_gives_way_to_another_is_begun_again() {
    let Some(connector) = Connector::place("data_gives_way") else { return };
    let outside = Access::new(&connector, "");
    Connector::inside(&outside, &["CREATE SCHEMA data_gives_way"]);
    let access = Access::new(&connector, "data_gives_way");
    let rows = (2..100).map(|id| format!("({id}, 0)")).collect::<Vec<_>>().join(", ");
    let fill = format!("INSERT INTO rows_of_two VALUES (1, 0), {rows}");
    Connector::inside(&access, &["CREATE TABLE rows_of_two (id int PRIMARY KEY, n int) ENGINE = InnoDB", &fill]);
    let change = &|ids: &str| format!("UPDATE data_gives_way.rows_of_two SET n = n + 1 WHERE id {ids}");
    let (holds_many, has_many) = mpsc::channel();
    let (holds_one, has_one) = mpsc::channel();
    let attempts = AtomicU32::new(0);
    std::thread::scope(|scope| {
        // It has changed more, so the server ends the other one.
        scope.spawn(move || {
            let mut other = Session::open(access).unwrap();
            for (statement, waits) in [
                ("START TRANSACTION".to_owned(), false),
                (change("> 1"), false),
                (change("= 1"), true),
                ("COMMIT".to_owned(), false),
            ] {
                if waits {
                    holds_many.send(()).unwrap();
                    has_one.recv().unwrap();
                }
                other.execute("test", &statement, Halt::NEVER).unwrap();
            }
        });
        let mut session = Session::open(access).unwrap();
        let done = session.transact("test", Halt::NEVER, Duration::ZERO, async |conn| {
            conn.query_drop(change("= 1")).await?;
            if attempts.fetch_add(1, Ordering::Relaxed) == 0 {
                has_many.recv().unwrap();
                holds_one.send(()).unwrap();
            }
            conn.query_drop(change("= 2")).await?;
            conn.query_drop("COMMIT").await
        });
        done.unwrap();
    });
    assert_eq!(attempts.into_inner(), 2);
    let mut session = Session::open(access).unwrap();
    let ask = "SELECT SUM(n), MAX(n) FROM data_gives_way.rows_of_two";
    assert_eq!(session.first::<(u64, u64)>("test", ask, ()).unwrap(), Some((101, 2)), "each change once");
}
