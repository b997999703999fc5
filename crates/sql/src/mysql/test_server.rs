//! Real MySQL or MariaDB servers for the tests of this crate, started once in a test process and gone with it.

#![allow(missing_docs, clippy::disallowed_methods, clippy::unwrap_used, reason = "only tests use it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::Connector;
use super::server::binaries::Binaries;
use model::config::ServerNode;
use model::config::mysql::MysqlAddress;
use test_support::ports;
use test_support::skip::skip;

const NOT_INSTALLED: &str = "no MySQL or MariaDB server is installed";

/// The server. A shell waits beside it for the end of this process, which closes the shell's input, and then ends it.
pub struct TestServer {
    folder: PathBuf,
    pub port: u16,
    supervisor: Child,
}

/// Ends the server and removes its files when its input ends.
const SCRIPT: &str = r#"
folder=$1; shift
"$@" </dev/null >"$folder/log" 2>&1 &
server=$!
echo "$server" >"$folder/pid"
read -r word
kill -KILL "$server"
wait "$server"
rm -rf "$folder"
"#;

/// Whether there are programs of a server here; if not, says so.
pub fn is_installed() -> bool {
    let found = Binaries::find(None).is_ok();
    if !found {
        skip(NOT_INSTALLED);
    }
    found
}

/// The server of this test process; `None`, with a word about it, where none is installed.
pub fn server() -> Option<&'static TestServer> {
    static SERVER: OnceLock<Option<TestServer>> = OnceLock::new();
    let server = SERVER.get_or_init(|| TestServer::start(&[])).as_ref();
    if server.is_none() {
        skip(NOT_INSTALLED);
    }
    server
}

/// A server with these settings that a test may break; gone when it is dropped.
pub fn server_with(settings: &[&str]) -> Option<TestServer> {
    server()?;
    TestServer::start(settings)
}

/// Runs `work` to its end, on a runtime as a lane has one.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

impl TestServer {
    fn start(settings: &[&str]) -> Option<Self> {
        let binaries = Binaries::find(None).ok()?;
        let folder = tempfile::Builder::new().prefix("plimsoll-my-").tempdir().unwrap().keep();
        let data = folder.join("data");
        fs::create_dir(&data).unwrap();
        let (program, arguments) = binaries.initializing(&data);
        let as_root = rustix::process::geteuid().is_root().then_some("--user=root");
        let made = Command::new(&program)
            .args(&arguments)
            .args(as_root)
            .env("TMPDIR", &folder)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let port = ports::free();
        let at = |name: &str| folder.join(name).display().to_string();
        let kind: &[&str] = if binaries.is_mariadb() { &[] } else { &["--mysqlx=OFF", "--skip-log-bin"] };
        let supervisor = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "plimsoll-test"])
            .arg(&folder)
            .arg(&binaries.server)
            .arg("--no-defaults")
            .arg(format!("--datadir={}", at("data")))
            .arg(format!("--socket={}", at("sock")))
            .arg(format!("--tmpdir={}", folder.display()))
            .arg(format!("--pid-file={}", at("server.pid")))
            .args([format!("--port={port}").as_str(), "--bind-address=127.0.0.1", "--local-infile=1"])
            .args(["--innodb-buffer-pool-size=24M", "--innodb-flush-log-at-trx-commit=2", "--max-connections=60"])
            .args(kind)
            .args(settings)
            .args(as_root)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let server = Self { folder, port, supervisor };
        server.await_ready();
        Some(server)
    }

    fn await_ready(&self) {
        let begun = Instant::now();
        let address = self.address("mysql");
        loop {
            let connector = Connector::new(&address, "tests").unwrap();
            match block_on(async { connector.connect(0).await.map(drop) }) {
                Ok(()) => return,
                Err(error) => {
                    let log = || fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                    assert!(begun.elapsed() < Duration::from_secs(120), "{error}: {}", log());
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        }
    }

    /// Over its socket, as its administrator.
    pub fn address(&self, database: &str) -> MysqlAddress {
        MysqlAddress {
            user: Some("root".to_owned()),
            database: Some(database.to_owned()),
            socket: Some(self.folder.join("sock")),
            ..MysqlAddress::default()
        }
    }

    /// Over the network.
    pub fn network(&self, user: &str) -> MysqlAddress {
        let node = ServerNode { host: "127.0.0.1".to_owned(), port: Some(self.port) };
        MysqlAddress { nodes: vec![node], user: Some(user.to_owned()), ..MysqlAddress::default() }
    }

    pub fn connector(&self) -> Connector {
        Connector::new(&self.address("mysql"), "plimsoll tests").unwrap()
    }

    /// Executes statements as the administrator.
    pub fn execute(&self, statements: &[&str]) {
        block_on(async {
            let mut connected = self.connector().connect(0).await.unwrap();
            for statement in statements {
                connected.execute("test", statement).await.unwrap();
            }
        });
    }

    /// Ends it as a crash would.
    pub fn kill(&mut self) {
        let pid = fs::read_to_string(self.folder.join("pid")).unwrap();
        let killed = Command::new("kill").args(["-KILL", pid.trim()]).status().unwrap();
        assert!(killed.success());
    }

    /// Its files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        drop(self.supervisor.stdin.take());
        let _ = self.supervisor.wait();
    }
}
