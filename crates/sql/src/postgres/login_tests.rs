use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::login::{Environment, Login, PasswordSource};
use crate::ServerError;
use model::config::postgres::{PostgresAddress, RootCertificates, TlsMode};

/// What is left open in `address`, filled from these variables; the user of the machine is `os`.
fn login(address: &str, variables: &[(&str, &str)]) -> Result<Login, ServerError> {
    let address: PostgresAddress = address.parse().unwrap();
    let variables: BTreeMap<&str, &str> = variables.iter().copied().collect();
    let variable = |name: &str| variables.get(name).map(|value| (*value).to_owned());
    Login::of(&address, &Environment { variable: &variable, os_user: &|| Some("os".to_owned()) })
}

fn nodes(address: &str, variables: &[(&str, &str)]) -> Vec<String> {
    login(address, variables).unwrap().servers.iter().map(|server| server.node.to_string()).collect()
}

#[test]
fn role_and_database_come_from_the_address_the_environment_or_the_user() {
    for (address, variables, user, database) in [
        ("postgres://u@h/d", &[("PGUSER", "v"), ("PGDATABASE", "e")][..], "u", "d"),
        ("postgres://h", &[("PGUSER", "v"), ("PGDATABASE", "e")], "v", "e"),
        ("postgres://h", &[("PGUSER", "v")], "v", "v"),
        ("postgres://h", &[("PGUSER", "")], "os", "os"),
        ("postgres://u@h", &[], "u", "u"),
    ] {
        let login = login(address, variables).unwrap();
        assert_eq!((login.user.as_str(), login.database.as_str()), (user, database), "{address} {variables:?}");
    }
}

#[test]
fn host_and_port_of_the_environment_count_only_where_the_address_names_none() {
    let both = [("PGHOST", "e,/f"), ("PGPORT", "1,2")];
    assert_eq!(nodes("postgres://", &both), ["e:1", "/f:2"]);
    assert_eq!(nodes("postgres://:7", &both), ["e:7", "/f:7"]);
    assert_eq!(nodes("postgres://a", &[("PGHOST", "e"), ("PGPORT", "9")]), ["a:9"]);
    assert_eq!(nodes("postgres://a:3,b", &[("PGPORT", "9")]), ["a:3", "b:5432"]);
    let socket = &login("postgres://", &[]).unwrap().servers[0].node;
    assert!(socket.is_socket() && socket.port == Some(5432), "{socket:?}");
}

#[test]
fn a_bad_variable_is_reported_by_its_name() {
    for (name, value) in [("PGPORT", "0"), ("PGPORT", "1,2"), ("PGSSLMODE", "maybe"), ("PGCONNECT_TIMEOUT", "soon")] {
        let error = login("postgres://", &[("PGHOST", "h"), (name, value)]).unwrap_err();
        assert!(error.to_string().contains(name) && !error.to_string().contains(value), "{error}");
    }
}

#[test]
fn the_time_for_connecting_is_bounded_whatever_is_asked() {
    for (address, variables, seconds) in [
        ("postgres://h", &[][..], 10),
        ("postgres://h/?connect_timeout=3", &[("PGCONNECT_TIMEOUT", "7")], 3),
        ("postgres://h", &[("PGCONNECT_TIMEOUT", "7")], 7),
        ("postgres://h", &[("PGCONNECT_TIMEOUT", "0")], 10),
        ("postgres://h", &[("PGCONNECT_TIMEOUT", "-1")], 10),
    ] {
        assert_eq!(login(address, variables).unwrap().connect_timeout.as_secs(), seconds, "{address} {variables:?}");
    }
}

#[test]
fn encryption_comes_from_the_address_before_the_environment() {
    let variables = [
        ("PGSSLMODE", "require"),
        ("PGSSLROOTCERT", "system"),
        ("PGSSLCERT", "c"),
        ("PGSSLKEY", "k"),
        ("HOME", "/home/u"),
    ];
    let of_variables = login("postgres://h", &variables).unwrap();
    assert_eq!(
        (of_variables.tls.mode, of_variables.tls.root_certificates),
        (Some(TlsMode::Require), Some(RootCertificates::System))
    );
    assert_eq!((of_variables.tls.certificate, of_variables.tls.key), (Some("c".into()), Some("k".into())));
    assert_eq!(of_variables.certificates, Some("/home/u/.postgresql".into()));
    let of_address = login("postgres://h/?sslmode=disable&sslrootcert=/ca&sslcert=x&sslkey=y", &variables).unwrap().tls;
    assert_eq!(of_address.mode, Some(TlsMode::Disable));
    assert_eq!(of_address.root_certificates, Some(RootCertificates::File("/ca".into())));
    assert_eq!((of_address.certificate, of_address.key), (Some("x".into()), Some("y".into())));
}

#[test]
fn passwords_are_looked_for_in_the_address_the_environment_and_the_file_of_each_server() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(".pgpass");
    fs::write(&file, "a:*:d:u:of a\nb:*:d:u:of b\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let home_text = home.path().to_str().unwrap();
    let passwords = |address: &str, variables: &[(&str, &str)]| -> Vec<Option<(String, PasswordSource)>> {
        let login = login(address, variables).unwrap();
        assert!(login.notes.is_empty(), "{:?}", login.notes);
        login.servers.into_iter().map(|s| s.password.map(|(secret, from)| (secret.expose().to_owned(), from))).collect()
    };
    let of_file = |text: &str| Some((text.to_owned(), PasswordSource::File(file.clone())));
    let (home, variable) = (("HOME", home_text), ("PGPASSWORD", "of variable"));
    assert_eq!(passwords("postgres://u@a,b,c/d", &[home]), [of_file("of a"), of_file("of b"), None]);
    assert_eq!(passwords("postgres://v@a/d", &[home]), [None]);
    assert_eq!(passwords("postgres://u@a/d", &[("PGPASSFILE", file.to_str().unwrap())]), [of_file("of a")]);
    assert_eq!(passwords("postgres://u@a/d", &[home, ("PGPASSFILE", "/nowhere")]), [None]);
    let of_variable = Some(("of variable".to_owned(), PasswordSource::Variable));
    assert_eq!(passwords("postgres://u@a/d", &[home, variable]), [of_variable]);
    let of_address = Some(("of address".to_owned(), PasswordSource::Address));
    assert_eq!(passwords("postgres://u:of%20address@a/d", &[home, variable]), [of_address]);
}

#[test]
fn a_password_file_that_is_not_used_is_noted() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join(".pgpass"), "*:*:*:*:Tiger7\n").unwrap();
    fs::set_permissions(home.path().join(".pgpass"), fs::Permissions::from_mode(0o644)).unwrap();
    let login = login("postgres://u@a/d", &[("HOME", home.path().to_str().unwrap())]).unwrap();
    assert!(login.servers[0].password.is_none());
    assert!(login.notes[0].contains("chmod 600"), "{:?}", login.notes);
}
