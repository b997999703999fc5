use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use targets::DatabaseError as _;

use super::connect::{Connected, Connector};
use super::login::Environment;
use super::test_server::{PASSWORD, block_on, database, network_server};
use crate::ServerError;
use model::config::postgres::{PostgresAddress, PostgresNode};
use test_support::ports;

const NO_VARIABLES: Environment<'static> = Environment { variable: &|_| None, os_user: &|| Some("os".to_owned()) };

pub(super) fn connector(address: &str) -> Connector {
    Connector::in_environment(&address.parse().unwrap(), "plimsoll tests", &NO_VARIABLES).unwrap()
}

/// The same where PGPASSWORD holds `password`.
pub(super) fn connector_with(address: &str, password: &str) -> Connector {
    let variable = |name: &str| (name == "PGPASSWORD").then(|| password.to_owned());
    let environment = Environment { variable: &variable, ..NO_VARIABLES };
    Connector::in_environment(&address.parse().unwrap(), "plimsoll tests", &environment).unwrap()
}

/// What comes of connecting to the address without a password.
pub(super) fn outcome(address: &str) -> Result<Connected, ServerError> {
    let connector = connector(address);
    block_on(connector.connect(0))
}

pub(super) fn refusal(address: &str) -> (String, String) {
    let error = outcome(address).unwrap_err();
    (error.to_string(), error.hint().unwrap_or_default())
}

#[test]
fn a_password_is_accepted_and_a_wrong_one_is_reported_with_where_it_came_from() {
    let Some(server) = network_server(false) else { return };
    let at = format!("127.0.0.1:{}/postgres", server.port);
    for role in ["scram", "clear"] {
        let address = format!("postgres://{role}@{at}");
        block_on(connector_with(&address, PASSWORD).connect(0)).unwrap();
        let error = block_on(connector_with(&address, "wrong").connect(0)).unwrap_err();
        let (reported, hint) = (error.to_string(), error.hint().unwrap_or_default());
        assert!(
            reported.ends_with(&format!("password authentication failed for user \"{role}\" (SQLSTATE 28P01)")),
            "{reported}"
        );
        assert!(hint.starts_with("check the password in PGPASSWORD"), "{hint}");
        let (reported, hint) = refusal(&format!("postgres://{role}@{at}"));
        assert!(
            reported.ends_with(&format!("the server asks for the password of role `{role}`, and there is none")),
            "{reported}"
        );
        assert!(hint.contains("PGPASSWORD") && hint.contains(".pgpass"), "{hint}");
    }
}

#[test]
fn the_password_file_lets_in() {
    let Some(server) = network_server(false) else { return };
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(".pgpass");
    let escaped = PASSWORD.replace(':', "\\:");
    fs::write(&file, format!("127.0.0.1:{}:postgres:scram:{escaped}\n*:*:*:clear:wrong\n", server.port)).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let variable = |name: &str| (name == "PGPASSFILE").then(|| file.display().to_string());
    let environment = Environment { variable: &variable, os_user: &|| None };
    let connect = |role: &str| {
        let address: PostgresAddress = format!("postgres://{role}@127.0.0.1:{}/postgres", server.port).parse().unwrap();
        block_on(Connector::in_environment(&address, "test", &environment).unwrap().connect(0))
    };
    connect("scram").unwrap();
    let hint = connect("clear").unwrap_err().hint().unwrap();
    assert!(hint.contains(&file.display().to_string()), "{hint}");
}

#[test]
fn what_is_not_there_is_named() {
    let Some(address) = database("connect_unknown") else { return };
    let other = PostgresAddress { database: Some("no such \"thing".to_owned()), ..address.clone() };
    let error = block_on(Connector::new(&other, "test").unwrap().connect(0)).unwrap_err();
    assert!(error.to_string().ends_with("(SQLSTATE 3D000)"), "{error}");
    assert!(error.hint().unwrap().contains("CREATE DATABASE \"no such \"\"thing\""), "{:?}", error.hint());
    let other = PostgresAddress { user: Some("nobody at all".to_owned()), ..address };
    let error = block_on(Connector::new(&other, "test").unwrap().connect(0)).unwrap_err();
    assert!(error.hint().unwrap().contains("nobody at all"), "{error} {:?}", error.hint());
}

#[test]
fn too_many_connections_are_reported() {
    let Some(server) = network_server(false) else { return };
    let connector = connector(&format!("postgres://limited@127.0.0.1:{}/postgres", server.port));
    block_on(async {
        let first = connector.connect(0).await.unwrap();
        let error = connector.connect(0).await.unwrap_err();
        assert!(error.to_string().contains("SQLSTATE 53300"), "{error}");
        assert!(error.hint().unwrap().contains("use fewer sessions"), "{:?}", error.hint());
        drop(first);
    });
}

#[test]
fn nobody_there_is_reported_at_once() {
    let port = ports::closed();
    let (reported, _) = refusal(&format!("postgres://u@127.0.0.1:{port}/d"));
    assert_eq!(
        reported,
        format!("cannot connect to PostgreSQL at `127.0.0.1:{port}`: no server listens on port {port}")
    );
    let folder = tempfile::tempdir().unwrap();
    let (reported, _) = refusal(&format!("postgres:///d?host={}&port=7", folder.path().display()));
    assert!(reported.ends_with(&format!("there is no socket `{}/.s.PGSQL.7`", folder.path().display())), "{reported}");
    let (reported, _) = refusal("postgres://no-such-host.invalid/d");
    assert!(reported.contains("the host's name cannot be resolved"), "{reported}");
}

#[test]
fn a_black_hole_ends_with_the_time_for_connecting() {
    // The kernel accepts for it, but nobody ever answers.
    let hole = TcpListener::bind("127.0.0.1:0").unwrap();
    let begun = Instant::now();
    let address = format!("postgres://u@{}/d?connect_timeout=1", hole.local_addr().unwrap());
    let (reported, hint) = refusal(&address);
    assert!(reported.ends_with("there was no answer for 1 s") && hint.contains("firewall"), "{reported} {hint}");
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[test]
fn a_server_that_is_starting_is_waited_for_until_the_time_is_over() {
    let starting = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("postgres://u@{}/d?connect_timeout=1&sslmode=disable", starting.local_addr().unwrap());
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    std::thread::spawn(move || {
        let fields = b"SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0";
        while let Ok((mut client, _)) = starting.accept() {
            count.fetch_add(1, Ordering::Relaxed);
            let _ = client.read(&mut [0; 512]);
            let length = (fields.len() as u32 + 4).to_be_bytes();
            let _ = client.write_all(&[b"E", &length[..], fields].concat());
        }
    });
    let (reported, hint) = refusal(&address);
    assert!(reported.ends_with("the database system is starting up (SQLSTATE 57P03)"), "{reported}");
    assert!(hint.contains("connect_timeout") && asked.load(Ordering::Relaxed) > 3, "{hint} {asked:?}");
}

#[test]
fn what_is_no_postgresql_is_not_taken_for_one() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("postgres://u@{}/d?sslmode=disable", other.local_addr().unwrap());
    std::thread::spawn(move || {
        while let Ok((mut client, _)) = other.accept() {
            let _ = client.read(&mut [0; 512]);
            let _ = client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let error = outcome(&address).unwrap_err();
    assert!(error.hint().unwrap().contains("listen"), "{error} {:?}", error.hint());
}

#[test]
fn the_first_server_that_accepts_is_kept_for_all_connections() {
    let Some(address) = database("connect_any") else { return };
    let gone = PostgresNode { host: "127.0.0.1".to_owned(), port: Some(ports::closed()) };
    let real = address.nodes[0].clone();
    let all = PostgresAddress { nodes: vec![gone.clone(), real.clone(), gone.clone()], ..address.clone() };
    block_on(async {
        let each = Connector::new(&all, "test").unwrap();
        assert_eq!(each.nodes(), all.nodes);
        let one = each.first_that_accepts().await.unwrap();
        assert_eq!(one.nodes(), [real]);
        one.connect_session(0).await.unwrap();
        let none = PostgresAddress { nodes: vec![gone.clone(), gone], ..all };
        let error = Connector::new(&none, "test").unwrap().first_that_accepts().await.unwrap_err();
        assert!(error.to_string().contains("no server listens"), "{error}");
    });
}

#[test]
fn a_server_that_refuses_the_login_ends_the_search_for_one() {
    let (Some(server), Some(address)) = (network_server(false), database("connect_refused")) else { return };
    let refusing = PostgresNode { host: "127.0.0.1".to_owned(), port: Some(server.port) };
    let both = PostgresAddress { nodes: vec![refusing, address.nodes[0].clone()], ..address };
    let error = block_on(Connector::new(&both, "test").unwrap().first_that_accepts()).unwrap_err();
    assert!(error.to_string().contains("SQLSTATE 28000"), "{error}");
}

#[test]
fn a_connection_that_was_ended_tells_why() {
    let Some(address) = database("connect_ended") else { return };
    let connector = Connector::new(&address, "test").unwrap();
    let why = "terminating connection due to administrator command (SQLSTATE 57P01)";
    block_on(async {
        let operator = connector.connect(0).await.unwrap();
        let idle = connector.connect_session(0).await.unwrap();
        operator.client.execute("SELECT pg_terminate_backend($1)", &[&idle.server_pid]).await.unwrap();
        while !idle.client.is_closed() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let error = idle.client.batch_execute("SELECT 1").await.unwrap_err();
        let lost = idle.error("execute operations", &error);
        assert!(matches!(&lost, ServerError::Lost { reason, .. } if reason == why), "{lost}");
        assert!(lost.ends_the_load());

        let busy = connector.connect(0).await.unwrap();
        let pid = busy.server_pid;
        let ended = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(300)).await;
            operator.client.execute("SELECT pg_terminate_backend($1)", &[&pid]).await.unwrap()
        });
        let outcome = busy.client.batch_execute("SELECT pg_sleep(60)").await;
        ended.await.unwrap();
        let lost = busy.error("execute operations", &outcome.unwrap_err());
        assert!(matches!(&lost, ServerError::Lost { reason, .. } if reason == why), "{lost}");
    });
}

/// Sends a long statement and breaks it off.
pub(super) async fn broken_off(connected: &Connected) -> tokio_postgres::Error {
    let token = connected.cancel_token();
    let asked = tokio::spawn(async move {
        // A cancellation that comes before the statement is forgotten.
        tokio::time::sleep(Duration::from_secs(1)).await;
        token.cancel().await
    });
    let outcome = connected.client.batch_execute("SELECT pg_sleep(60)").await;
    asked.await.unwrap().unwrap();
    outcome.unwrap_err()
}

#[test]
fn a_statement_is_broken_off_and_the_connection_stays() {
    let Some(address) = database("connect_cancel") else { return };
    let connector = Connector::new(&address, "test").unwrap();
    block_on(async {
        let connected = connector.connect(0).await.unwrap();
        let error = broken_off(&connected).await;
        let error = connected.error("wait", &error);
        assert!(matches!(&error, ServerError::Refused { code, .. } if code == "57014"), "{error}");
        assert!(!error.ends_the_load());
        connected.client.batch_execute("SELECT 1").await.unwrap();
    });
}

#[test]
fn a_role_keeps_its_own_search_path() {
    let Some(address) = database("connect_path") else { return };
    let connector = Connector::new(&address, "test").unwrap();
    block_on(async {
        let first = connector.connect(0).await.unwrap();
        first.client.batch_execute("ALTER DATABASE connect_path SET search_path = mine, public").await.unwrap();
        let session = connector.connect_session(0).await.unwrap();
        let path: String = session.client.query_one("SHOW search_path", &[]).await.unwrap().get(0);
        assert_eq!(path, "mine, public");
    });
}

#[test]
fn no_error_and_no_debugging_shows_a_password() {
    let (Some(plain), Some(encrypted)) = (network_server(false), network_server(true)) else { return };
    let hole = TcpListener::bind("127.0.0.1:0").unwrap();
    let secret = "Tiger7Secret";
    let (all_roles, all_modes) =
        (&["scram", "clear", "tls_only", "plain_only", "nobody"][..], &["disable", "allow", "prefer", "require"][..]);
    let mut seen = String::new();
    for (place, roles, modes) in [
        (format!("127.0.0.1:{}", plain.port), all_roles, all_modes),
        (format!("127.0.0.1:{}", encrypted.port), all_roles, all_modes),
        (format!("127.0.0.1:{}", ports::closed()), &["u"], all_modes),
        ("%2Fnowhere".to_owned(), &["u"], all_modes),
        (hole.local_addr().unwrap().to_string(), &["u"], &["prefer"]),
        ("no-such-host.invalid".to_owned(), &["u"], &["prefer"]),
    ] {
        for (role, mode) in roles.iter().flat_map(|role| modes.iter().map(move |mode| (role, mode))) {
            let text = format!("postgres://{role}@{place}/postgres?sslmode={mode}&connect_timeout=1");
            let address: PostgresAddress = text.parse().unwrap();
            let connector = connector_with(&text, secret);
            seen += &format!("{address} {address:?} {connector:?} {connector:#?}");
            match block_on(connector.connect(0)) {
                Ok(connected) => seen += &format!("{connected:?}"),
                Err(error) => seen += &format!("{error} {error:?} {:?}\n", error.hint()),
            }
        }
    }
    assert!(seen.contains("28P01") && seen.contains("no answer"), "the errors were not those that were meant");
    assert!(!seen.contains(secret), "{}", seen.lines().find(|line| line.contains(secret)).unwrap());
}

/// A server that lets in whoever comes, answers its first statement with `answer` over and over until that is not read any more.
fn endless(before_it_lets_in: bool, answer: Vec<u8>) -> (u16, std::thread::JoinHandle<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut came = [0; 4096];
        assert!(stream.read(&mut came).unwrap() > 8, "a client says who it is");
        stream.write_all(b"R\0\0\0\x08\0\0\0\0").unwrap();
        if !before_it_lets_in {
            stream.write_all(b"Z\0\0\0\x05I").unwrap();
            assert!(stream.read(&mut came).unwrap() > 5, "a client asks something");
        }
        let mut sent = 0;
        while stream.write_all(&answer).is_ok() {
            sent += answer.len();
        }
        sent
    });
    (port, serving)
}

#[test]
fn a_server_that_never_ends_is_not_listened_to_for_long() {
    let message = |kind: u8, body: &[u8]| [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat();
    let notice = [&b"SNOTICE\0VNOTICE\0C00000\0M"[..], &[b'x'; 5_000], b"\0\0"].concat();
    let notice = message(b'N', &notice);
    let column = b"\0\x01a\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0";
    let row = [&b"\0\x01\0\0\x13\x88"[..], &[b'x'; 5_000]].concat();
    let row = [message(b'T', column), message(b'D', &row)].concat();
    for (before, answer) in [(true, notice.clone()), (false, notice), (true, message(b'S', b"k\0v\0")), (false, row)] {
        let (port, serving) = endless(before, answer.repeat(100));
        let (reported, _) = refusal(&format!("postgres://u@127.0.0.1:{port}/d?sslmode=disable&connect_timeout=100"));
        assert!(reported.contains("more than 67108864 bytes in one answer"), "{reported}");
        // What is in the buffers of sockets comes on top.
        let sent = serving.join().unwrap();
        assert!(sent < 128 << 20, "{sent} bytes were taken");
    }
}
