//! Real PostgreSQL servers for the tests of this crate, started once in a test process and gone with it.

#![allow(missing_docs, clippy::disallowed_methods, clippy::unwrap_used, reason = "only tests use it")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::cluster::Binaries;
use super::connect::{Connected, Connector};
pub use model::config::postgres::{DEFAULT_PORT, PostgresAddress};
use model::config::postgres::{PostgresNode, TlsOptions};
use test_support::ports;
use test_support::skip::skip;

const NOT_INSTALLED: &str = "PostgreSQL's server is not installed";

/// The server. A shell waits beside it for the end of this process, which closes the shell's input, and then ends it.
pub struct TestServer {
    socket: PathBuf,
    port: u16,
    _supervisor: Child,
}

/// What a server is started with besides the usual.
#[derive(Default)]
struct Extras {
    port: Option<u16>,
    settings: Vec<String>,
    /// Instead of letting everybody in.
    pg_hba: Option<&'static str>,
    makes_certificates: bool,
}

/// Whether there are programs of a server here; if not, says so.
pub fn is_installed() -> bool {
    let found = binaries().is_some();
    if !found {
        skip(NOT_INSTALLED);
    }
    found
}

/// The server of this test process; `None`, with a word about it, where PostgreSQL is not installed.
pub fn server() -> Option<&'static TestServer> {
    static SERVER: OnceLock<Option<TestServer>> = OnceLock::new();
    let start = || Some(TestServer::start(&binaries()?, &Extras::default()));
    let server = SERVER.get_or_init(start).as_ref();
    if server.is_none() {
        skip(NOT_INSTALLED);
    }
    server
}

/// A server that a test may break; gone when it is dropped.
pub fn server_to_break() -> Option<TestServer> {
    server()?;
    binaries().map(|binaries| TestServer::start(&binaries, &Extras::default()))
}

/// A fresh database of this name on the test server.
pub fn database(name: &str) -> Option<PostgresAddress> {
    Some(server()?.fresh_database(name))
}

/// Runs `work` to its end, on a runtime as a lane has one.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Who gets in over the network, and how. `scram` and `limited` have the password [`PASSWORD`].
const PG_HBA: &str = "\
local all all trust
hostssl all tls_only 127.0.0.1/32 trust
hostnossl all plain_only 127.0.0.1/32 trust
hostssl all certified 127.0.0.1/32 cert
host all limited 127.0.0.1/32 trust
host all clear 127.0.0.1/32 password
host all scram 127.0.0.1/32 scram-sha-256
";

/// The password of all roles that have one.
pub const PASSWORD: &str = "Tiger7 with : / @ %";

/// A server that listens on 127.0.0.1 and is not as trusting.
pub struct NetworkServer {
    pub port: u16,
    pub server: TestServer,
}

/// The one with encryption, for `localhost`, or the one without. `None`, with a word about it, where a program is missing.
pub fn network_server(encrypted: bool) -> Option<&'static NetworkServer> {
    static PLAIN: OnceLock<Option<NetworkServer>> = OnceLock::new();
    static ENCRYPTED: OnceLock<Option<NetworkServer>> = OnceLock::new();
    let server = if encrypted { &ENCRYPTED } else { &PLAIN };
    let server = server.get_or_init(|| NetworkServer::start(encrypted)).as_ref();
    if server.is_none() {
        skip("PostgreSQL's server or openssl is not installed");
    }
    server
}

impl NetworkServer {
    fn start(encrypted: bool) -> Option<Self> {
        let binaries = binaries()?;
        Command::new("openssl").arg("version").stdout(Stdio::null()).status().ok()?;
        let port = ports::free();
        let settings = ["listen_addresses=127.0.0.1", "password_encryption=scram-sha-256"].map(str::to_owned).to_vec();
        let extras = Extras { port: Some(port), settings, pg_hba: Some(PG_HBA), makes_certificates: encrypted };
        let server = TestServer::start(&binaries, &extras);
        block_on(async {
            let Connected { client, .. } = server.connector("postgres").connect(0).await.unwrap();
            let roles = ["tls_only", "plain_only", "certified"].map(|role| format!("CREATE ROLE {role} LOGIN"));
            let secret = ["clear", "scram"].map(|role| format!("CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'"));
            let limited = "CREATE ROLE limited LOGIN CONNECTION LIMIT 1".to_owned();
            let all: Vec<String> = roles.into_iter().chain(secret).chain([limited]).collect();
            client.batch_execute(&all.join("; ")).await.unwrap();
        });
        Some(Self { port, server })
    }

    /// A certificate or key that was made for the server with encryption: `ca.crt`, `client.crt`, `client.key`.
    pub fn certificate(&self, name: &str) -> PathBuf {
        self.server.socket.join(name)
    }
}

/// An authority, a server named `localhost` and a client named `certified`.
fn make_certificates(folder: &Path) {
    let openssl = |arguments: &[&str]| {
        let done = command(Path::new("openssl")).args(arguments).current_dir(folder).stderr(Stdio::null()).status();
        assert!(done.unwrap().success(), "openssl {arguments:?}");
    };
    let new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout"];
    openssl(
        &[&["req", "-x509", "-days", "2", "-subj", "/CN=Test", "-out", "ca.crt"], &new_key[..], &["ca.key"]].concat(),
    );
    for (name, subject, extension) in [
        ("server", "/CN=whoever", "subjectAltName=DNS:localhost"),
        ("client", "/CN=certified", "basicConstraints=CA:FALSE"),
    ] {
        let file = |ending: &str| format!("{name}.{ending}");
        fs::write(folder.join(file("ext")), extension).unwrap();
        openssl(&[&["req", "-subj", subject, "-out", &file("csr")], &new_key[..], &[&file("key")]].concat());
        openssl(&[
            "x509",
            "-req",
            "-days",
            "2",
            "-CA",
            "ca.crt",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-in",
            &file("csr"),
            "-out",
            &file("crt"),
            "-extfile",
            &file("ext"),
        ]);
    }
}

/// The programs that a private server would use too.
fn binaries() -> Option<PathBuf> {
    Binaries::find(None, None).ok().map(|binaries| binaries.directory)
}

/// PostgreSQL does not run as root.
fn command(program: &Path) -> Command {
    if fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0) {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    }
}

impl TestServer {
    fn start(binaries: &Path, extras: &Extras) -> Self {
        let folder = tempfile::Builder::new().prefix("plimsoll-test-").tempdir().unwrap().keep();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        let data = folder.join("data");
        let made = command(&binaries.join("initdb"))
            .args(["--auth=trust", "--username=tester", "--no-sync", "--encoding=UTF8", "--locale=C", "-D"])
            .arg(&data)
            .stdout(Stdio::null())
            .status();
        assert!(made.unwrap().success(), "initdb failed");
        if let Some(rules) = extras.pg_hba {
            fs::write(data.join("pg_hba.conf"), rules).unwrap();
        }
        let mut settings = ["listen_addresses=", "fsync=off", "max_connections=200"].map(str::to_owned).to_vec();
        // Its snapshots keep what tests delete.
        settings.push("autovacuum_naptime=1d".to_owned());
        settings.extend(extras.settings.iter().cloned());
        if extras.makes_certificates {
            make_certificates(&folder);
            settings.push("ssl=on".to_owned());
            for (setting, file) in
                [("ssl_ca_file", "ca.crt"), ("ssl_cert_file", "server.crt"), ("ssl_key_file", "server.key")]
            {
                settings.push(format!("{setting}={}", folder.join(file).display()));
            }
        }
        let port = extras.port.unwrap_or(DEFAULT_PORT);
        let server = command(&binaries.join("postgres"));
        let mut supervisor = Command::new("sh");
        supervisor
            .args(["-c", r#"folder=$1; shift; "$@" 2>"$folder/log" & server=$!; read -r _; kill -INT $server; wait $server; rm -rf "$folder""#, "sh"])
            .arg(&folder)
            .arg(server.get_program())
            .args(server.get_args())
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(&folder)
            .args(["-p", &port.to_string()])
            .args(settings.iter().flat_map(|setting| ["-c", setting]))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .process_group(0);
        let this = Self { socket: folder, port, _supervisor: supervisor.spawn().unwrap() };
        let begun = Instant::now();
        while block_on(this.connector("postgres").connect(0)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "the test server does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        this
    }

    /// The server's own process.
    pub fn postmaster(&self) -> u32 {
        let file = fs::read_to_string(self.socket.join("data/postmaster.pid")).unwrap();
        file.lines().next().unwrap().parse().unwrap()
    }

    pub fn address(&self, database: &str) -> PostgresAddress {
        PostgresAddress {
            nodes: vec![PostgresNode { host: self.socket.display().to_string(), port: Some(self.port) }],
            user: Some("tester".to_owned()),
            database: Some(database.to_owned()),
            tls: TlsOptions::default(),
            connect_timeout_s: None,
        }
    }

    fn connector(&self, database: &str) -> Connector {
        Connector::new(&self.address(database), "plimsoll tests").unwrap()
    }

    fn fresh_database(&self, name: &str) -> PostgresAddress {
        block_on(async {
            let Connected { client, .. } = self.connector("postgres").connect(0).await.unwrap();
            client.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await.unwrap();
            client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        });
        self.address(name)
    }
}
