use std::fs;
use std::path::PathBuf;
use targets::DatabaseError as _;

use super::Connector;
use super::connect_tests::{broken_off, connector, outcome, refusal};
use super::login::Environment;
use super::test_server::{NetworkServer, block_on, network_server};
use crate::ServerError;
use model::config::postgres::PostgresAddress;
use model::record::ServerFacts;

/// Whether a connection as `role`, with these parameters, came to be, and if so whether it is encrypted.
fn encrypted(server: &NetworkServer, host: &str, role: &str, parameters: &str) -> Result<bool, ServerError> {
    let address = format!("postgres://{role}@{host}:{}/postgres?{parameters}", server.port);
    let connector = connector(&address);
    block_on(async {
        let connected = connector.connect(0).await?;
        let ssl = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        let is_encrypted: bool = connected.client.query_one(ssl, &[]).await.unwrap().get(0);
        let mut facts = ServerFacts::default();
        connector.describe(&connected, &mut facts);
        assert_eq!(facts.is_encrypted, Some(is_encrypted), "{address}");
        assert_eq!(facts.is_verified, is_encrypted.then(|| parameters.contains("verify-full")), "{address}");
        let mode = parameters.split('&').find_map(|pair| pair.strip_prefix("sslmode="));
        assert_eq!(facts.tls_mode.as_deref(), Some(mode.unwrap_or("prefer")), "{address}");
        Ok(is_encrypted)
    })
}

fn roots(server: &NetworkServer) -> String {
    format!("sslrootcert={}", server.certificate("ca.crt").display())
}

#[test]
fn modes_that_do_not_verify_do_as_libpq_does() {
    let (Some(with), Some(without)) = (network_server(true), network_server(false)) else { return };
    // `limited` may come in either way; `None` is a refusal.
    for (server, role, mode, expected) in [
        (with, "tls_only", "disable", None),
        (with, "tls_only", "allow", Some(true)),
        (with, "tls_only", "prefer", Some(true)),
        (with, "tls_only", "require", Some(true)),
        (with, "plain_only", "disable", Some(false)),
        (with, "plain_only", "allow", Some(false)),
        (with, "plain_only", "prefer", Some(false)),
        (with, "plain_only", "require", None),
        (without, "plain_only", "disable", Some(false)),
        (without, "plain_only", "allow", Some(false)),
        (without, "plain_only", "prefer", Some(false)),
        (without, "plain_only", "require", None),
    ] {
        let got = encrypted(server, "127.0.0.1", role, &format!("sslmode={mode}"));
        assert_eq!(got.as_ref().ok().copied(), expected, "{role} {mode}: {got:?}");
    }
    assert!(encrypted(with, "127.0.0.1", "tls_only", "").unwrap(), "what nobody says is `prefer`");
}

#[test]
fn a_certificate_is_verified_as_far_as_the_mode_says() {
    let Some(server) = network_server(true) else { return };
    let ca = roots(server);
    let other = format!("sslrootcert={}", server.certificate("client.crt").display());
    for (host, parameters, expected) in [
        ("127.0.0.1", format!("sslmode=verify-ca&{ca}"), Ok(())),
        ("localhost", format!("sslmode=verify-full&{ca}"), Ok(())),
        (
            "127.0.0.1",
            format!("sslmode=verify-full&{ca}"),
            Err("the server's certificate is not for the host `127.0.0.1`"),
        ),
        ("127.0.0.1", format!("sslmode=verify-ca&{other}"), Err("not signed by any of the root certificates")),
        // A file of root certificates makes `require` verify.
        ("127.0.0.1", format!("sslmode=require&{ca}"), Ok(())),
        ("127.0.0.1", format!("sslmode=require&{other}"), Err("not signed by any of the root certificates")),
        ("localhost", "sslrootcert=system".to_owned(), Err("not signed by any of the root certificates")),
    ] {
        let got = encrypted(server, host, "tls_only", &parameters);
        match (got, expected) {
            (Ok(encrypted), Ok(())) => assert!(encrypted, "{parameters}"),
            (Err(error), Err(words)) => {
                assert!(error.to_string().contains(words) && error.hint().is_some(), "{parameters}: {error}");
            }
            (got, expected) => panic!("{host} {parameters}: {got:?} instead of {expected:?}"),
        }
    }
}

#[test]
fn prefer_does_without_encryption_when_the_certificate_is_not_good() {
    let Some(server) = network_server(true) else { return };
    let other = format!("sslrootcert={}", server.certificate("client.crt").display());
    assert!(!encrypted(server, "127.0.0.1", "plain_only", &other).unwrap());
    let error = encrypted(server, "127.0.0.1", "tls_only", &other).unwrap_err().to_string();
    assert!(
        error.contains("could not be encrypted") && error.contains("without encryption: no pg_hba.conf entry"),
        "{error}"
    );
}

#[test]
fn a_server_without_encryption_is_reported_by_its_mode() {
    let Some(server) = network_server(false) else { return };
    let address = format!("postgres://plain_only@127.0.0.1:{}/postgres?sslmode=require", server.port);
    let (reported, hint) = refusal(&address);
    assert!(reported.ends_with("the server offers no encryption, which `sslmode=require` asks for"), "{reported}");
    assert!(hint.contains("sslmode=prefer"), "{hint}");
}

#[test]
fn a_refusal_without_encryption_asks_for_it() {
    let Some(server) = network_server(true) else { return };
    let (reported, hint) = refusal(&format!("postgres://tls_only@127.0.0.1:{}/postgres?sslmode=disable", server.port));
    assert!(reported.contains("SQLSTATE 28000") && hint.contains("sslmode=require"), "{reported} {hint}");
}

#[test]
fn our_own_certificate_lets_in() {
    let Some(server) = network_server(true) else { return };
    let file = |name: &str| server.certificate(name).display().to_string();
    let own = format!("sslmode=require&sslcert={}&sslkey={}", file("client.crt"), file("client.key"));
    assert!(encrypted(server, "127.0.0.1", "certified", &own).unwrap());
    let error = encrypted(server, "127.0.0.1", "certified", "sslmode=require").unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    let mismatched = format!("sslmode=require&sslcert={}&sslkey={}", file("client.crt"), file("server.key"));
    let address: PostgresAddress = format!("postgres://certified@h/?{mismatched}").parse().unwrap();
    let environment = Environment { variable: &|_| None, os_user: &|| None };
    let error = Connector::in_environment(&address, "test", &environment).unwrap_err();
    assert!(error.to_string().contains("cannot be used: with its key"), "{error}");
}

#[test]
fn a_statement_is_broken_off_over_an_encrypted_connection() {
    let Some(server) = network_server(true) else { return };
    let connector = connector(&format!(
        "postgres://tls_only@localhost:{}/postgres?sslmode=verify-full&{}",
        server.port,
        roots(server)
    ));
    block_on(async {
        let connected = connector.connect(0).await.unwrap();
        assert_eq!(broken_off(&connected).await.code().unwrap().code(), "57014");
    });
}

#[test]
fn certificates_in_the_users_home_are_found() {
    let Some(server) = network_server(true) else { return };
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".postgresql");
    fs::create_dir(&folder).unwrap();
    for (from, to) in [("ca.crt", "root.crt"), ("client.crt", "postgresql.crt"), ("client.key", "postgresql.key")] {
        fs::copy(server.certificate(from), folder.join(to)).unwrap();
    }
    let home = home.path().display().to_string();
    let variable = |name: &str| (name == "HOME").then(|| home.clone());
    let environment = Environment { variable: &variable, os_user: &|| None };
    for (host, is_good) in [("localhost", true), ("127.0.0.1", false)] {
        let address = format!("postgres://certified@{host}:{}/postgres?sslmode=verify-full", server.port);
        let connector = Connector::in_environment(&address.parse().unwrap(), "test", &environment).unwrap();
        let outcome = block_on(connector.connect(0));
        assert_eq!(outcome.is_ok(), is_good, "{host}: {outcome:?}");
    }
}

#[test]
fn what_a_mode_needs_and_is_not_there_is_reported_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty");
    fs::write(&empty, "").unwrap();
    let nowhere: PathBuf = folder.path().join("nowhere");
    for (parameters, words) in [
        ("sslmode=verify-full".to_owned(), "needs root certificates"),
        ("sslmode=verify-ca".to_owned(), "needs root certificates"),
        ("sslmode=require&sslrootcert=system".to_owned(), "`sslmode=require` is too weak for `sslrootcert=system`"),
        (format!("sslrootcert={}", nowhere.display()), "cannot be used: No such file"),
        (format!("sslrootcert={}", empty.display()), "there is no certificate in it"),
        (format!("sslcert={}", nowhere.display()), "cannot be used: No such file"),
    ] {
        let address: PostgresAddress = format!("postgres://u@h/?{parameters}").parse().unwrap();
        let environment = Environment { variable: &|_| None, os_user: &|| None };
        let error = Connector::in_environment(&address, "test", &environment).unwrap_err().to_string();
        assert!(error.contains(words), "{parameters}: {error}");
    }
}

#[test]
fn sockets_are_never_encrypted_and_need_no_certificates() {
    let error = outcome("postgres://u@%2Fnowhere/d?sslmode=verify-full&sslrootcert=/nowhere").unwrap_err().to_string();
    assert!(error.contains("there is no socket"), "{error}");
}
