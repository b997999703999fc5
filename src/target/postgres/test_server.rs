//! A real PostgreSQL for the tests of this room, started once in a test process and gone with it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::connect::{Connected, Connector};
use crate::config::postgres::{PostgresAddress, PostgresNode, TlsOptions, USUAL_PORT};

/// The server. A shell waits beside it for the end of this process, which closes the shell's input, and then ends it.
pub(super) struct TestServer {
    socket: PathBuf,
    _supervisor: Child,
}

/// The server of this test process; `None`, with a word about it, where PostgreSQL is not installed.
pub(super) fn server() -> Option<&'static TestServer> {
    static SERVER: OnceLock<Option<TestServer>> = OnceLock::new();
    let server = SERVER.get_or_init(|| binaries().map(|binaries| TestServer::start(&binaries))).as_ref();
    if server.is_none() {
        let _ = std::io::Write::write_all(&mut std::io::stderr(), b"skipped: PostgreSQL's server is not installed\n");
    }
    server
}

/// A fresh database of this name on the test server.
pub(crate) fn database(name: &str) -> Option<PostgresAddress> {
    Some(server()?.fresh_database(name))
}

/// Runs `work` to its end, on a runtime as a lane has one.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn binaries() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut found: Vec<PathBuf> =
        versions.flatten().map(|entry| entry.path().join("bin")).filter(|bin| bin.join("initdb").exists()).collect();
    found.sort();
    found.pop()
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
    fn start(binaries: &Path) -> Self {
        let folder = tempfile::Builder::new().prefix("plimsoll-test-").tempdir().unwrap().keep();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        let data = folder.join("data");
        let made = command(&binaries.join("initdb"))
            .args(["--auth=trust", "--username=tester", "--no-sync", "--encoding=UTF8", "--locale=C", "-D"])
            .arg(&data)
            .stdout(Stdio::null())
            .status();
        assert!(made.unwrap().success(), "initdb failed");
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
            .args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=200"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .process_group(0);
        let this = Self { socket: folder, _supervisor: supervisor.spawn().unwrap() };
        let begun = Instant::now();
        while block_on(this.connector("postgres").connect(0)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "the test server does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        this
    }

    fn address(&self, database: &str) -> PostgresAddress {
        PostgresAddress {
            nodes: vec![PostgresNode { host: self.socket.display().to_string(), port: USUAL_PORT }],
            user: Some("tester".to_owned()),
            password: None,
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
