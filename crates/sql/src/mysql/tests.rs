//! Sessions and faults, against a real server.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join;
use mysql_async::prelude::Queryable;

use super::data::Access;
use super::data::tests::{request, set_up};
use super::test_server::{TestServer, block_on, server, server_with};
use super::{MYSQL, *};
use crate::data::catalog::load;
use crate::{COLUMNS, ServerError, SlobSession, SlobTables, SqlOptions, SqlServers, SqlSession, batch_filling_bytes};
use model::config::ServerNode;
use model::config::mysql::{MysqlAddress, TlsMode, TlsOptions};
use model::record::{Activity, ServerFacts, ServerStats};
use model::workload::{OperationKind, RedoStress, SlobOperation};
use targets::database::Sending;
use targets::{Background, DatabaseError as _, Target as _};
use test_support::skip::skip;

const WIDTH: u32 = 128;

/// Looks, 20 ms apart, until what is over must be seen as over.
const PATIENCE_LOOKS: u32 = 500;

fn operation(kind: OperationKind, schema: u32, first_key: u64, keys: u32) -> SlobOperation {
    SlobOperation { kind, schema, first_key, keys, redo_stress: RedoStress::Heavy }
}

fn read(first_key: u64, keys: u32) -> SlobOperation {
    operation(OperationKind::Read, 0, first_key, keys)
}

fn update(first_key: u64, keys: u32) -> SlobOperation {
    operation(OperationKind::Update, 0, first_key, keys)
}

/// What a heavy update writes, another each time.
fn filling(number: u8) -> Vec<u8> {
    vec![number; (COLUMNS * WIDTH) as usize]
}

/// Fresh data in a database of this name, and the servers of a run on them.
fn loaded(server: &TestServer, database: &str) -> MysqlServers {
    let connector = server.connector();
    let access = Access::new(&connector, database);
    set_up(&access, &request()).unwrap();
    MysqlServers::new(connector.clone(), Sql::new(database, load(&access).unwrap().block_bytes))
}

fn fails(address: &MysqlAddress) -> String {
    let connector = Connector::new(address, "tests").unwrap();
    let error = block_on(connector.connect(0)).unwrap_err();
    format!("{error}; {}", error.hint().unwrap_or_default())
}

#[test]
fn statements_touch_what_they_are_asked_to_and_updates_always_change_something() {
    let Some(server) = server() else { return };
    let servers = loaded(server, "run_statements");
    block_on(async {
        let session = servers.open_session(0).await.unwrap();
        let light = SlobOperation { redo_stress: RedoStress::Lite, ..update(40, 8) };
        let scan = operation(OperationKind::Scan, 1, 0, 0);
        for rehearsed in [read(0, 8), update(0, 8), light, scan, read(0, 1), update(0, 1)] {
            session.rehearse(rehearsed).await.unwrap();
        }
        assert_eq!(session.execute(read(292, 8), &[]).await.unwrap(), 8);
        assert_eq!(session.execute(read(299, 1), &[]).await.unwrap(), 1);
        assert_eq!(session.execute(update(299, 1), &filling(1)).await.unwrap(), 1);
        assert_eq!(session.execute(scan, &[]).await.unwrap(), 20, "blocks, of which each has two rows");
        for number in [1, 2] {
            assert_eq!(session.execute(update(40, 8), &filling(number)).await.unwrap(), 8);
            assert_eq!(session.execute(light, &filling(number + 2)[..2 * WIDTH as usize]).await.unwrap(), 8);
        }
        assert_eq!(session.execute(light, &filling(4)[..2 * WIDTH as usize]).await.unwrap(), 0, "the same once more");
        assert_eq!(session.statement_timeout_ms(), None);
    });
    assert_eq!(servers.repeated(0).unwrap(), 0);
}

#[test]
fn a_batch_is_executed_in_order_and_timed_with_its_commits_apart() {
    let Some(server) = server() else { return };
    let servers = loaded(server, "run_batches");
    // The same rows are changed again and again, which must not count as nothing changed.
    let mut operations =
        vec![read(0, 64), operation(OperationKind::Scan, 1, 0, 0), operation(OperationKind::Read, 1, 5, 3)];
    operations.extend((0..200).map(|number| SlobOperation {
        redo_stress: if number % 2 == 0 { RedoStress::Lite } else { RedoStress::Heavy },
        ..operation(OperationKind::Update, number % 2, 7, 4)
    }));
    let bytes = batch_filling_bytes(WIDTH) as usize;
    block_on(async {
        let session = servers.open_session(0).await.unwrap();
        let operations: Arc<[SlobOperation]> = operations.into();
        let times = session.execute_batch(&operations, &vec![7; bytes]).await.unwrap();
        assert_eq!(times.operations.len(), operations.len());
        let touched: Vec<u64> = times.operations.iter().map(|timed| timed.touched).collect();
        assert_eq!(
            (&touched[..3], touched[3..].iter().all(|rows| *rows == 4)),
            (&[64, 20, 3][..], true),
            "{touched:?}"
        );
        let mut before = times.began_us;
        for (operation, timed) in operations.iter().zip(&times.operations) {
            assert_eq!(timed.committing_us.is_some(), operation.kind == OperationKind::Update);
            assert!(timed.ended_us >= timed.committing_us.unwrap_or(before) && timed.ended_us >= before, "{timed:?}");
            before = timed.ended_us;
        }
        assert_eq!(session.execute_batch(&Arc::default(), &[]).await.unwrap().operations, []);
    });
}

#[test]
fn a_batch_is_cancelled_and_its_session_goes_on() {
    let Some(server) = server() else { return };
    let servers = loaded(server, "run_cancelled");
    block_on(async {
        let session = servers.open_session(0).await.unwrap();
        session.rehearse(read(0, 8)).await.unwrap();
        // Or the end of this statement would be taken for the batch, and cancelled in its place.
        while !servers.at_work(0, vec![session.id()]).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let long = vec![read(0, 200); 100_000];
        let cancel = async {
            while servers.at_work(0, vec![session.id()]).await.unwrap() != [session.id()] {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            // The server forgets a cancel that comes just as the statement begins.
            for _ in 0..3 {
                session.cancel().await;
                for _ in 0..PATIENCE_LOOKS {
                    if servers.at_work(0, vec![session.id()]).await.unwrap().is_empty() {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        };
        let (outcome, ()) = join(session.execute_batch(&long.into(), &[]), cancel).await;
        let error = outcome.unwrap_err();
        assert!(error.to_string().contains("(error 1317)") && !error.ends_the_load(), "{error}");
        assert_eq!(session.execute(read(0, 8), &[]).await.unwrap(), 8);
        // The list of processes may still show the end of the last statement.
        for _ in 0..PATIENCE_LOOKS {
            if servers.at_work(0, vec![session.id()]).await.unwrap().is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the session stays at work");
    });
}

#[test]
fn a_lock_that_is_held_too_long_costs_the_operation_after_other_attempts() {
    let Some(server) = server_with(&["--innodb-lock-wait-timeout=1"]) else { return };
    let servers = loaded(&server, "run_locked");
    let connector = server.connector();
    block_on(async {
        let mut holder = connector.connect(0).await.unwrap();
        for statement in ["START TRANSACTION", "UPDATE run_locked.slob_1 SET c3 = 'x' WHERE custid = 9"] {
            holder.execute("hold a lock", statement).await.unwrap();
        }
        let session = servers.open_session(0).await.unwrap();
        let error = session.execute(update(8, 4), &filling(1)).await.unwrap_err();
        assert!(error.to_string().contains("(error 1205)") && !error.ends_the_load(), "{error}");
        assert!(error.hint().unwrap().contains("innodb_lock_wait_timeout"));
        assert_eq!(servers.repeated(0).unwrap(), 3);
        let bytes = batch_filling_bytes(WIDTH) as usize;
        let error = session.execute_batch(&[update(8, 4)].into(), &vec![1; bytes]).await.unwrap_err();
        assert!(error.to_string().contains("(error 1205)"), "{error}");
        assert_eq!(servers.repeated(0).unwrap(), 6);
        holder.execute("let go", "ROLLBACK").await.unwrap();
        assert_eq!(session.execute(update(8, 4), &filling(1)).await.unwrap(), 4, "nothing is left locked");
    });
}

#[test]
fn an_update_that_lost_a_deadlock_is_done_again() {
    let Some(server) = server() else { return };
    let servers = loaded(server, "run_deadlock");
    let connector = server.connector();
    let bytes = batch_filling_bytes(WIDTH) as usize;
    block_on(async {
        for as_batch in [false, true] {
            let before = servers.repeated(0).unwrap();
            let mut other = connector.connect(0).await.unwrap();
            // Whoever has changed more is spared.
            for statement in
                ["START TRANSACTION", "UPDATE run_deadlock.slob_1 SET c3 = NOW(6) WHERE custid BETWEEN 100 AND 200"]
            {
                other.execute("change rows", statement).await.unwrap();
            }
            other.execute("change a row", "UPDATE run_deadlock.slob_1 SET c3 = NOW(6) WHERE custid = 9").await.unwrap();
            let session = servers.open_session(0).await.unwrap();
            let losing = async {
                if as_batch {
                    let times = session.execute_batch(&[update(8, 2)].into(), &vec![3; bytes]).await.unwrap();
                    times.operations[0].touched
                } else {
                    session.execute(update(8, 2), &filling(3)).await.unwrap()
                }
            };
            let winning = async {
                let waiting = format!(
                    "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT' \
                     AND trx_mysql_thread_id = {}",
                    session.id().number
                );
                while other.conn.query_first::<u64, _>(&waiting).await.unwrap() != Some(1) {
                    // Whoever asks more often is shown the same again and again.
                    tokio::time::sleep(Duration::from_millis(300)).await;
                }
                other.execute("meet", "UPDATE run_deadlock.slob_1 SET c3 = NOW(6) WHERE custid = 8").await.unwrap();
                other.execute("end", "COMMIT").await.unwrap();
            };
            assert_eq!(join(losing, winning).await.0, 2);
            assert_eq!(servers.repeated(0).unwrap() - before, 1, "as a batch: {as_batch}");
        }
    });
    // Whoever reads the run learns of them, by interval and in words.
    let nodes = connector.nodes();
    let node = nodes[0].clone();
    let reported = move || Background {
        servers: vec![ServerStats { node: node.clone(), ..ServerStats::default() }],
        ..Background::default()
    };
    let target = Mysql::open(SqlOptions {
        product: MYSQL,
        nodes,
        work: SlobTables::of(&connector, "run_deadlock", WIDTH),
        servers,
        sending: Sending::Batch,
        description: model::record::Target::default(),
        notes: Vec::new(),
        background: Some(Box::new(reported)),
        health: None,
    });
    let counted = || target.take_background().servers[0].activity[&Activity::UpdatesRepeated];
    assert_eq!([counted(), counted()], [2, 0]);
    let notes = target.notes_of_the_load();
    assert!(notes[0].starts_with("2 updates were done again after a deadlock"), "{notes:?}");
}

#[test]
fn a_right_that_is_taken_away_ends_the_load() {
    let Some(server) = server() else { return };
    let _ours = loaded(server, "run_rights");
    server.execute(&["CREATE USER loader@localhost", "GRANT ALL ON run_rights.* TO loader@localhost"]);
    let address = MysqlAddress { user: Some("loader".to_owned()), ..server.address("x") };
    let connector = Connector::new(&address, "tests").unwrap();
    let servers = MysqlServers::new(connector, Sql::new("run_rights", 16_384));
    let bytes = batch_filling_bytes(WIDTH) as usize;
    block_on(async {
        let session = servers.open_session(0).await.unwrap();
        assert_eq!(session.execute(update(0, 8), &filling(1)).await.unwrap(), 8);
        assert_eq!(session.execute_batch(&[update(0, 8)].into(), &vec![2; bytes]).await.unwrap().operations.len(), 1);
        server
            .connector()
            .connect(0)
            .await
            .unwrap()
            .execute("revoke", "REVOKE UPDATE ON run_rights.* FROM loader@localhost")
            .await
            .unwrap();
        for error in [
            session.execute(update(0, 8), &filling(3)).await.unwrap_err(),
            session.execute_batch(&[update(0, 8)].into(), &vec![4; bytes]).await.unwrap_err(),
        ] {
            assert!(error.to_string().contains("denied") && error.ends_the_load(), "{error}");
            assert!(error.hint().unwrap().contains("GRANT ALL"), "{error}");
        }
        assert_eq!(session.execute(read(0, 8), &[]).await.unwrap(), 8, "what is still allowed goes on");
    });
}

#[test]
fn a_killed_session_a_changed_table_and_a_killed_server_end_the_load() {
    let Some(mut server) = server_with(&[]) else { return };
    let servers = loaded(&server, "run_ended");
    let connector = server.connector();
    block_on(async {
        let session = servers.open_session(0).await.unwrap();
        let mut other = connector.connect(0).await.unwrap();
        other.execute("kill a session", &format!("KILL {}", session.id().number)).await.unwrap();
        let error = session.execute(read(0, 8), &[]).await.unwrap_err();
        assert!(error.to_string().contains("is gone") && error.ends_the_load(), "{error}");

        let session = servers.open_session(0).await.unwrap();
        other.execute("delete a row", "DELETE FROM run_ended.slob_1 WHERE custid = 3").await.unwrap();
        assert_eq!(session.execute(read(0, 8), &[]).await.unwrap(), 7, "whoever asked finds the damage");
        other.execute("drop the index", "ALTER TABLE run_ended.slob_1 DROP INDEX slob_1_key").await.unwrap();
        let error = session.execute(read(0, 8), &[]).await.unwrap_err();
        assert!(error.ends_the_load() && error.hint().unwrap().contains("slob setup"), "{error}");
        other.execute("drop a table", "DROP TABLE run_ended.slob_2").await.unwrap();
        let error = session.execute(operation(OperationKind::Read, 1, 0, 8), &[]).await.unwrap_err();
        assert!(error.to_string().contains("doesn't exist") && error.ends_the_load(), "{error}");

        server.kill();
        let error = session.execute(operation(OperationKind::Scan, 0, 0, 0), &[]).await.unwrap_err();
        assert!(matches!(error, ServerError::Lost { .. }), "{error}");
        assert!(servers.at_work(0, vec![1_u64.into()]).await.is_none());
    });
    let error = fails(&server.address("x"));
    assert!(error.contains("no server listens there"), "{error}");
}

#[test]
fn a_server_that_only_reads_ends_updates_and_refuses_set_up() {
    let Some(server) = server_with(&[]) else { return };
    let servers = loaded(&server, "run_read_only");
    server.execute(&[
        "CREATE USER reader@localhost",
        "GRANT ALL ON run_read_only.* TO reader@localhost",
        "SET GLOBAL read_only = 1",
    ]);
    let address = MysqlAddress { user: Some("reader".to_owned()), ..server.address("x") };
    let connector = Connector::new(&address, "tests").unwrap();
    let reading = MysqlServers::new(connector, Sql::new("run_read_only", 16_384));
    block_on(async {
        let session = reading.open_session(0).await.unwrap();
        assert_eq!(session.execute(read(0, 8), &[]).await.unwrap(), 8);
        let error = session.execute(update(0, 8), &filling(1)).await.unwrap_err();
        assert!(error.ends_the_load() && error.hint().unwrap().contains("name the primary"), "{error}");
    });
    let connector = server.connector();
    let error = set_up(&Access::new(&connector, "run_other"), &request()).unwrap_err();
    assert!(error.to_string().contains("only reads"), "{error}");
    drop(servers);
}

#[test]
fn whoever_cannot_log_in_is_told_why() {
    let Some(server) = server() else { return };
    server.execute(&[
        "CREATE USER secret@'127.0.0.1' IDENTIFIED BY 'tiger'",
        "CREATE USER single@'127.0.0.1' WITH MAX_USER_CONNECTIONS 1",
    ]);
    let error = fails(&server.network("secret"));
    assert!(error.contains("(error 1045)") && error.contains("MYSQL_PWD"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("client.cnf");
    for (password, is_right) in [("lion", false), ("tiger", true)] {
        fs::write(&file, format!("[client]\npassword={password}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let address = MysqlAddress { defaults_file: Some(file.clone()), ..server.network("secret") };
        if is_right {
            let connector = Connector::new(&address, "tests").unwrap();
            let connected = block_on(connector.connect(0)).unwrap();
            assert!(!format!("{connector:?} {connected:?}").contains("tiger"));
        } else {
            let error = fails(&address);
            assert!(error.contains("check the password in") && error.contains("client.cnf"), "{error}");
            assert!(!error.contains("lion"), "{error}");
        }
    }
    let single = Connector::new(&server.network("single"), "tests").unwrap();
    block_on(async {
        let _first = single.connect(0).await.unwrap();
        let error = single.connect(0).await.unwrap_err();
        assert!(
            error.to_string().contains("max_user_connections") && error.hint().unwrap().contains("fewer sessions"),
            "{error}"
        );
    });
    let nobody =
        MysqlAddress { nodes: vec![ServerNode { host: "127.0.0.1".to_owned(), port: Some(1) }], ..server.network("x") };
    assert!(fails(&nobody).contains("no server listens there"));
    let no_socket = MysqlAddress { socket: Some(server.folder().join("none")), ..server.address("x") };
    assert!(fails(&no_socket).contains("there is no socket"));
    let two = MysqlAddress { nodes: [nobody.nodes, server.network("x").nodes].concat(), ..server.network("single") };
    // The server may still count the connection that has just been closed.
    let is_counted = |error: &ServerError| error.to_string().contains("max_user_connections");
    let mut found = Connector::new(&two, "tests").unwrap().single();
    for _ in 0..PATIENCE_LOOKS {
        if !found.as_ref().is_err_and(is_counted) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
        found = Connector::new(&two, "tests").unwrap().single();
    }
    let connector = found.unwrap();
    assert_eq!(connector.nodes(), [format!("127.0.0.1:{}", server.port)]);
}

#[test]
fn too_many_connections_are_reported_as_such() {
    let Some(server) = server_with(&["--max-connections=10"]) else { return };
    // One more is kept for an administrator.
    server.execute(&["CREATE USER many@localhost"]);
    let address = MysqlAddress { user: Some("many".to_owned()), ..server.address("x") };
    let connector = Connector::new(&address, "tests").unwrap();
    block_on(async {
        let mut held = Vec::new();
        let error = loop {
            match connector.connect(0).await {
                Ok(connected) => held.push(connected),
                Err(error) => break error,
            }
            assert!(held.len() < 12);
        };
        assert!(
            error.to_string().contains("(error 1040)") && error.hint().unwrap().contains("max_connections"),
            "{error}"
        );
    });
}

#[test]
fn encryption_is_what_was_asked_for() {
    let certificates = tempfile::tempdir().unwrap();
    let made = Command::new("openssl")
        .args(["req", "-x509", "-days", "2", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(certificates.path())
        .stderr(Stdio::null())
        .status();
    if !made.is_ok_and(|status| status.success()) {
        return skip("openssl is not installed");
    }
    let file = |name: &str| certificates.path().join(name);
    let settings =
        [format!("--ssl-cert={}", file("cert.pem").display()), format!("--ssl-key={}", file("key.pem").display())];
    let Some(server) = server_with(&settings.each_ref().map(String::as_str)) else { return };
    server.execute(&["CREATE USER wired@'127.0.0.1'"]);
    let over = |host: &str, mode, ca: Option<&str>| {
        let nodes = vec![ServerNode { host: host.to_owned(), port: Some(server.port) }];
        let tls = TlsOptions { mode: Some(mode), ca: ca.map(file), ..TlsOptions::default() };
        MysqlAddress { nodes, tls, ..server.network("wired") }
    };
    let cipher = |address: MysqlAddress| {
        let connector = Connector::new(&address, "tests").unwrap();
        block_on(async {
            let mut connected = connector.connect(0).await.unwrap();
            let shown: Option<(String, String)> =
                connected.conn.query_first("SHOW STATUS LIKE 'Ssl_cipher'").await.unwrap();
            let cipher = shown.unwrap().1;
            let mut facts = ServerFacts::default();
            connector.describe(&connected, &mut facts);
            let mode = address.tls.mode.unwrap();
            assert_eq!(facts.tls_mode.as_deref(), Some(mode.name()));
            assert_eq!(facts.is_encrypted, Some(!cipher.is_empty()));
            let verifies = mode == TlsMode::VerifyIdentity;
            assert_eq!(facts.is_verified, (!cipher.is_empty()).then_some(verifies));
            cipher
        })
    };
    assert_eq!(cipher(over("127.0.0.1", TlsMode::Disabled, None)), "");
    let versions = block_on(async {
        let mut connected = server.connector().connect(0).await.unwrap();
        connected.conn.query_first::<String, _>("SELECT @@tls_version").await.unwrap().unwrap()
    });
    if !versions.contains("TLSv1.3") {
        let error = fails(&over("127.0.0.1", TlsMode::Required, None));
        assert!(error.contains("could not be encrypted") && error.contains("no cipher in common"), "{error}");
        return skip("the server's TLS has no cipher in common with ours");
    }
    for (host, mode, ca) in [
        ("127.0.0.1", TlsMode::Preferred, None),
        ("127.0.0.1", TlsMode::Required, None),
        ("localhost", TlsMode::VerifyCa, Some("cert.pem")),
        ("localhost", TlsMode::VerifyIdentity, Some("cert.pem")),
    ] {
        assert_ne!(cipher(over(host, mode, ca)), "", "{host} {mode:?}");
    }
    let error = fails(&over("127.0.0.1", TlsMode::VerifyIdentity, Some("cert.pem")));
    assert!(error.contains("could not be encrypted (`ssl-mode=verify_identity`)"), "{error}");
    let error = fails(&over("localhost", TlsMode::VerifyCa, None));
    assert!(error.contains("`ssl-ca=PATH`"), "{error}");
}

#[test]
fn a_server_without_encryption_is_used_plainly_unless_it_was_asked_for() {
    let Some(server) = server() else { return };
    if Command::new("mariadbd").arg("--version").output().is_err() {
        return skip("only MariaDB before 11.4 has no encryption of its own");
    }
    server.execute(&["CREATE USER bare@'127.0.0.1'"]);
    let with =
        |mode| MysqlAddress { tls: TlsOptions { mode: Some(mode), ..TlsOptions::default() }, ..server.network("bare") };
    let connector = Connector::new(&with(TlsMode::Preferred), "tests").unwrap();
    assert!(!block_on(connector.connect(0)).unwrap().version.text.is_empty());
    if !connector.nodes().is_empty() && block_on(connector.connect(0)).unwrap().version.text.starts_with("10.") {
        let error = fails(&with(TlsMode::Required));
        assert!(error.contains("the server does not encrypt"), "{error}");
    }
}
