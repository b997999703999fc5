//! PostgreSQL: SLOB's load through a real database server.
//!
//! The client draws the operations; the server executes them. They are sent one statement each, or in batches that a
//! procedure on the server loops over, timing each operation, so that the client costs next to nothing.

pub(super) mod cluster;
mod connect;
#[cfg(test)]
mod connect_tests;
mod data;
mod executor;
mod failure;
mod login;
mod meanings;
mod monitor;
mod session;
pub mod sql;
mod stream;
mod stream_limit;
#[cfg(any(test, feature = "test-servers"))]
pub mod test_server;
mod tls;
#[cfg(test)]
mod tls_tests;

use std::error::Error;
use std::fmt::Display;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio_postgres::Client;
use tokio_postgres::error::{DbError, Severity};

use crate::ending::on_own_runtime;
use crate::error::innermost;
use crate::{Meaning, Product, ServerError};
use executor::{Executor, Failure, Report};
use measure::RefusalClass;
use measure::os::{Root, proc, ticks_per_second};
use model::record::TargetKind;

pub use connect::{CancelToken, Connected, Connector};
pub use data::PostgresOrders;
pub(crate) use monitor::PostgresStatements;
pub use monitor::{Monitor, MonitorRequest};
pub use session::{Postgres, PostgresServers};

/// A connection that executes prepared statements at little cost to the client.
#[derive(Debug)]
struct Executing {
    /// Where statements are sent.
    executor: Mutex<Executor>,
    /// Process number of the server's side.
    server_pid: i32,
    cancel_token: CancelToken,
}

impl Executing {
    /// Goes on with a connection, of which nothing is under way.
    async fn on(connected: Connected) -> Self {
        let (stream, server_pid, cancel_token) = connected.into_stream().await;
        Self { executor: Mutex::new(Executor::new(stream)), server_pid, cancel_token }
    }

    /// What breaks off the statement under way.
    fn cancel_token(&self) -> &CancelToken {
        &self.cancel_token
    }

    /// What a failure means, where the connection was to do `doing`.
    fn error(&self, doing: &str, failure: Failure) -> ServerError {
        let node = self.cancel_token.node();
        let unfit = |what: String| ServerError::unfit(what, None);
        match failure {
            Failure::Refused(Report { code, message, .. }) => POSTGRES.refused(node, doing, code, message),
            Failure::Ended(Some(Report { code, message, .. })) => POSTGRES.lost(node, with_code(&message, &code)),
            Failure::Ended(None) => POSTGRES.lost(node, WITHOUT_A_WORD),
            Failure::System(error) if error.kind() == io::ErrorKind::TimedOut => silence(&node, doing),
            Failure::System(error) => POSTGRES.lost(node, error.to_string()),
            Failure::Protocol(what) => unfit(format!("cannot {doing} on `{node}`: it sent {what}")),
            Failure::Value(error) => unfit(format!("cannot {doing} on `{node}`: {error}")),
        }
    }
}

/// How far two clocks of one machine may distinguish the age of a process: a tick, and the way of the answer.
const AGE_TOLERANCE: Duration = Duration::from_secs(1);

/// A server whose processes run on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    /// The process whose children all others are.
    pub postmaster_pid: u32,
    /// Where its data are, if that is known.
    pub data_directory: Option<PathBuf>,
}

/// The server's side of a connection, as the server reports it.
#[derive(Debug, Clone)]
struct Backend {
    /// Its process number there.
    pid: u32,
    /// How old it is.
    age: Duration,
    /// Port of our side; `None` for a socket file.
    client_port: Option<u16>,
}

impl LocalServer {
    /// Server number `node`, if it runs here and its processes can be seen. Connects for that, on a runtime of its own.
    ///
    /// # Errors
    /// When the server cannot be connected to or asked.
    pub fn find(connector: &Connector, node: usize) -> Result<Option<Self>, ServerError> {
        on_own_runtime(async {
            let connected = connector.connect(node).await?;
            let found = Self::of_client(&connected.client).await;
            found.map_err(|error| connected.error("find the server's process", &error))
        })
    }

    /// The server that a connection leads to.
    ///
    /// # Errors
    /// When the server cannot be asked.
    async fn of_client(client: &Client) -> Result<Option<Self>, tokio_postgres::Error> {
        let row = client
            .query_one(
                "SELECT pg_backend_pid(), inet_client_port(), \
                 extract(epoch FROM clock_timestamp() - backend_start)::float8 \
                 FROM pg_catalog.pg_stat_get_activity(pg_backend_pid())",
                &[],
            )
            .await?;
        let age_s = row.get::<_, Option<f64>>(2).and_then(|age_s| Duration::try_from_secs_f64(age_s).ok());
        let pid = u32::try_from(row.get::<_, i32>(0)).ok();
        let Some((age, pid)) = age_s.zip(pid) else { return Ok(None) };
        let client_port = row.get::<_, Option<i32>>(1).and_then(|port| u16::try_from(port).ok());
        Ok(Self::of_backend(&Root::default(), &Backend { pid, age, client_port }, since_boot()))
    }

    /// The server of `backend`, if its processes can be seen below `root`. `since_boot` is the time since this machine was
    /// booted.
    ///
    /// A server in a container has numbers of its own, and one elsewhere has too: another process has its number here, or
    /// none has. So the process must be as old and, by its title, serve this very connection.
    fn of_backend(root: &Root, backend: &Backend, since_boot: Duration) -> Option<Self> {
        let Backend { pid, age, client_port } = backend;
        let title = root.text(format!("/proc/{pid}/cmdline"))?;
        let stat = proc::process_stat(&root.text(format!("/proc/{pid}/stat"))?)?;
        let began = Duration::from_secs_f64(stat.start_ticks as f64 / ticks_per_second()? as f64);
        let age_here = since_boot.checked_sub(began)?;
        let client = client_port.map_or("[local]".to_owned(), |port| format!("({port})"));
        if !title.starts_with("postgres:") || !title.contains(&client) || age_here.abs_diff(*age) > AGE_TOLERANCE {
            return None;
        }
        // Readable by the server's own user and by root alone.
        let data_directory = std::fs::read_link(root.path(format!("/proc/{pid}/cwd"))).ok();
        Some(Self { postmaster_pid: stat.parent, data_directory })
    }
}

/// Time since this machine was booted, as the kernel counts the ages of processes.
fn since_boot() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    // Neither is ever negative, and nanoseconds are below a second.
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// How long the network may swallow what is sent before the connection counts as lost.
const SILENCE: Duration = Duration::from_secs(10);

/// Why a connection ended that nobody said anything about.
const WITHOUT_A_WORD: &str = "it closed the connection without a word";

/// PostgreSQL, whose codes have five characters.
const POSTGRES: &Product = &Product { name: "PostgreSQL", kind: TargetKind::Postgres, code: "SQLSTATE", meaning };

fn meaning(code: &str) -> Meaning {
    Meaning {
        is_lasting: is_lasting(code),
        // data_corrupted and index_corrupted: the server found it out itself.
        is_corruption: matches!(code, "XX001" | "XX002"),
        lacks_procedure: code == "42883",
        class: match code {
            "40P01" => RefusalClass::Deadlock,
            "40001" => RefusalClass::Serialization,
            "55P03" => RefusalClass::LockTimeout,
            "57014" => RefusalClass::Cancelled,
            code if code.starts_with("23") => RefusalClass::Constraint,
            _ => RefusalClass::Other,
        },
        hint: refusal_hint(code),
    }
}

/// What an error of the client means: `node` was asked to do `doing`, such as `create the tables`.
///
/// Where the connection had ended before, the client knows no more than that it is closed;
/// [`Connected::error`](Connected::error) knows why.
fn error_of(node: &dyn Display, doing: &str, error: &tokio_postgres::Error) -> ServerError {
    let node = node.to_string();
    if let Some(refusal) = error.as_db_error() {
        return if ends_the_connection(refusal) {
            POSTGRES.lost(node, with_state(refusal))
        } else {
            POSTGRES.refused(node, doing, refusal.code().code(), refusal.message())
        };
    }
    match system_error(error) {
        Some(system) if system.kind() == io::ErrorKind::TimedOut => silence(&node, doing),
        Some(_) => POSTGRES.lost(node, reason_of(error)),
        None if error.is_closed() => POSTGRES.lost(node, reason_of(error)),
        // Neither the server nor the network: a value that cannot be sent or read as what it should be.
        None => {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            ServerError::unfit(format!("cannot {doing} on `{node}`: {error}{cause}"), None)
        }
    }
}

/// The network swallowed what was sent.
fn silence(node: &str, doing: &str) -> ServerError {
    POSTGRES.timed_out(node, doing, SILENCE.as_secs())
}

/// Why a connection ended.
fn reason_of(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(last_words) => with_state(last_words),
        None if error.is_closed() => WITHOUT_A_WORD.to_owned(),
        None => innermost(error),
    }
}

/// Whether the next operation would be refused as well, by SQLSTATE.
fn is_lasting(code: &str) -> bool {
    /// Connection; feature not there, as when a table changed under a prepared statement; statement not there, as behind a
    /// pooler; login; database not there; schema not there; name or right wrong; resources used up; system; its settings;
    /// internal error and damaged data.
    const LASTING_CLASSES: [&str; 11] = ["08", "0A", "26", "28", "3D", "3F", "42", "53", "58", "F0", "XX"];
    // Ended by an operator, and a server that only reads.
    let is_lasting = code.starts_with("57P") || code == "25006";
    is_lasting || LASTING_CLASSES.iter().any(|class| code.starts_with(class))
}

/// Whether nothing follows on the same connection.
fn ends_the_connection(refusal: &DbError) -> bool {
    matches!(refusal.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
}

/// A server's own words with their code.
fn with_state(words: &DbError) -> String {
    with_code(words.message(), words.code().code())
}

/// The same of words that somebody else read.
fn with_code(message: &str, code: &str) -> String {
    format!("{message} (SQLSTATE {code})")
}

/// The error of the system that an error of the client wraps.
fn system_error(error: &tokio_postgres::Error) -> Option<&io::Error> {
    error.source()?.downcast_ref::<io::Error>()
}

/// What a refusal asks for, by SQLSTATE ("PostgreSQL Error Codes", appendix A of its manual).
fn refusal_hint(code: &str) -> Option<&'static str> {
    match code {
        "53100" => Some("the server's disk is full; free some space there"),
        "53300" => Some("the server takes no more connections; raise its max_connections, or use fewer sessions"),
        "42501" => Some(
            "the role has not the right to; name a schema that it owns with `--db-schema`, or have the right granted",
        ),
        "42P01" | "42883" | "3F000" => Some(
            "the data is missing or incomplete; create it: `plimsoll slob setup`, for order entry `plimsoll orders setup`",
        ),
        "57014" => Some("the server cancelled it, most likely for its statement_timeout; raise that for this role"),
        "25006" => Some("the server is a standby or read-only; name the primary"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use targets::DatabaseError as _;

    const BOOTED: Duration = Duration::from_secs(1_000);

    /// A machine whose process 50 is `title` and began 900 s after it was booted.
    fn machine(title: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let process = directory.path().join("proc/50");
        fs::create_dir_all(&process).unwrap();
        let start = 900 * ticks_per_second().unwrap();
        let stat = format!("50 (postgres) S 41 41 41 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 {start} 0 0");
        fs::write(process.join("stat"), stat).unwrap();
        fs::write(process.join("cmdline"), title).unwrap();
        std::os::unix::fs::symlink("/srv/pg", process.join("cwd")).unwrap();
        directory
    }

    fn found(machine: &tempfile::TempDir, pid: u32, age_s: u64, client_port: Option<u16>) -> Option<LocalServer> {
        let backend = Backend { pid, age: Duration::from_secs(age_s), client_port };
        LocalServer::of_backend(&Root::at(machine.path()), &backend, BOOTED)
    }

    #[test]
    fn a_backend_leads_to_its_server() {
        let server = LocalServer { postmaster_pid: 41, data_directory: Some("/srv/pg".into()) };
        assert_eq!(found(&machine("postgres: bench db [local] SELECT\0"), 50, 100, None), Some(server.clone()));
        assert_eq!(found(&machine("postgres: main: bench db ::1(4711) idle\0"), 50, 100, Some(4711)), Some(server));
    }

    #[test]
    fn a_stranger_with_the_same_number_is_not_taken_for_the_backend() {
        let backend = machine("postgres: bench db 10.0.0.7(4711) SELECT\0");
        assert_eq!(found(&backend, 50, 3, Some(4711)), None);
        assert_eq!(found(&backend, 51, 100, Some(4711)), None);
        assert_eq!(found(&backend, 50, 100, Some(471)), None);
        assert_eq!(found(&backend, 50, 100, None), None);
        assert_eq!(found(&machine("nginx: worker process [local]\0"), 50, 100, None), None);
    }

    #[test]
    fn damage_names_the_table_its_server_and_what_is_wrong() {
        let damaged = ServerError::damaged("db1:5432".into(), "\"plimsoll\".\"slob_3\"".into(), "it is empty".into());
        assert!(damaged.is_data_fault());
        assert_eq!(damaged.to_string(), "\"plimsoll\".\"slob_3\" on `db1:5432` is damaged: it is empty");
    }

    #[test]
    fn only_what_stands_against_every_operation_ends_the_load() {
        let refused = |code: &str| POSTGRES.refused("db1:5432", "execute operations", code, "");
        for code in
            ["53100", "53300", "42P01", "42501", "57P01", "57P02", "57P03", "08006", "58030", "XX001", "XX002", "25006"]
        {
            assert!(refused(code).ends_the_load(), "{code}");
        }
        for code in ["40001", "40P01", "55P03", "57014", "23505", "22001", "25P02"] {
            assert!(!refused(code).ends_the_load(), "{code}");
        }
        assert!(silence("db1", "execute operations").ends_the_load());
    }
}

#[cfg(test)]
mod login_tests {
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
        for (name, value) in [("PGPORT", "0"), ("PGPORT", "1,2"), ("PGSSLMODE", "maybe"), ("PGCONNECT_TIMEOUT", "soon")]
        {
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
            assert_eq!(
                login(address, variables).unwrap().connect_timeout.as_secs(),
                seconds,
                "{address} {variables:?}"
            );
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
        let of_address =
            login("postgres://h/?sslmode=disable&sslrootcert=/ca&sslcert=x&sslkey=y", &variables).unwrap().tls;
        assert_eq!(of_address.mode, Some(TlsMode::Disable));
        assert_eq!(of_address.root_certificates, Some(RootCertificates::File("/ca".into())));
        assert_eq!((of_address.certificate, of_address.key), (Some("x".into()), Some("y".into())));
    }

    #[test]
    fn passwords_are_looked_for_in_the_environment_and_the_file_of_each_server() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(".pgpass");
        fs::write(&file, "a:*:d:u:of a\nb:*:d:u:of b\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let home_text = home.path().to_str().unwrap();
        let passwords = |address: &str, variables: &[(&str, &str)]| -> Vec<Option<(String, PasswordSource)>> {
            let login = login(address, variables).unwrap();
            assert!(login.notes.is_empty(), "{:?}", login.notes);
            login
                .servers
                .into_iter()
                .map(|s| s.password.map(|(secret, from)| (secret.expose().to_owned(), from)))
                .collect()
        };
        let of_file = |text: &str| Some((text.to_owned(), PasswordSource::File(file.clone())));
        let (home, variable) = (("HOME", home_text), ("PGPASSWORD", "of variable"));
        assert_eq!(passwords("postgres://u@a,b,c/d", &[home]), [of_file("of a"), of_file("of b"), None]);
        assert_eq!(passwords("postgres://v@a/d", &[home]), [None]);
        assert_eq!(passwords("postgres://u@a/d", &[("PGPASSFILE", file.to_str().unwrap())]), [of_file("of a")]);
        assert_eq!(passwords("postgres://u@a/d", &[home, ("PGPASSFILE", "/nowhere")]), [None]);
        let of_variable = Some(("of variable".to_owned(), PasswordSource::Variable));
        assert_eq!(passwords("postgres://u@a/d", &[home, variable]), [of_variable]);
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
}

#[cfg(test)]
mod sql_tests {
    use std::time::SystemTime;

    use super::connect::{Connected, Connector};
    use super::sql::Sql;
    use super::test_server::{block_on, database};
    use crate::{StatementKind, batch_filling_bytes};

    #[test]
    fn a_batch_reads_updates_commits_and_times_each_operation() {
        let Some(address) = database("sql_batch") else { return };
        let sql = Sql::new("odd \"name", 8192);
        block_on(async {
            let Connected { client, .. } = Connector::new(&address, "test").unwrap().connect_session(0).await.unwrap();
            client.batch_execute(&format!("CREATE SCHEMA {}", sql.schema())).await.unwrap();
            for schema in [0, 1] {
                client.batch_execute(&sql.create_table(&sql.table(schema))).await.unwrap();
                let columns: Vec<String> =
                    (0..19).map(|_| format!("decode(repeat('ab', {}), 'hex')", sql.column_bytes())).collect();
                let rows = format!(
                    "INSERT INTO {} SELECT key, {} FROM generate_series(0, 99) key",
                    sql.table(schema),
                    columns.join(", ")
                );
                client.batch_execute(&rows).await.unwrap();
                client.batch_execute(&sql.create_index(schema)).await.unwrap();
                client.batch_execute(&sql.create_procedure(schema)).await.unwrap();
            }
            let call = client.prepare(&sql.call_procedure(1)).await.unwrap();
            let kinds =
                [StatementKind::Read, StatementKind::UpdateLite, StatementKind::UpdateHeavy, StatementKind::Read]
                    .map(|kind| kind as i16);
            let filling = vec![7_u8; batch_filling_bytes(sql.column_bytes()) as usize];
            let row = client
                .query_one(
                    &call,
                    &[
                        &kinds.as_slice(),
                        &[false, false, true, true].as_slice(),
                        &[0_i64, 10, 20, 95].as_slice(),
                        &[64_i32, 3, 2, 64].as_slice(),
                        &filling,
                    ],
                )
                .await
                .unwrap();
            let (began, ended): (SystemTime, Vec<SystemTime>) = (row.get(0), row.get(2));
            assert!(ended[0] >= began && ended.is_sorted());
            assert_eq!(row.get::<_, Vec<i64>>(3), [64, 3, 2, 5]);
            let changed = |schema| {
                let (client, table) = (&client, sql.table(schema));
                async move {
                    let seven = format!("SELECT count(*) FROM {table} WHERE c2 = decode(repeat('07', 48), 'hex')");
                    client.query_one(&seven, &[]).await.unwrap().get::<_, i64>(0)
                }
            };
            assert_eq!((changed(0).await, changed(1).await), (2, 3));
        });
    }
}
