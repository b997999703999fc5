//! Servers below which something is planted: started here, so that their processes can be moved into control groups.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use test_support::ports;
use test_support::skip::skip;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Postgres,
    MariaDb,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::MariaDb => "MariaDB",
        }
    }
}

/// A server with settings of its own, gone when it is dropped.
pub struct Server {
    kind: Kind,
    directory: PathBuf,
    port: u16,
    address: String,
    process: Child,
}

/// A directory that the user of a server may enter and write to.
pub fn make(directory: &Path) {
    fs::create_dir(directory).unwrap();
    open_to_all(directory);
}

pub fn open_to_all(directory: &Path) {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o777)).unwrap();
}

/// Where Debian puts the programs of the newest PostgreSQL.
fn postgres_programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    versions.map(|version| version.path().join("bin")).filter(|bin| bin.join("postgres").exists()).max()
}

fn as_user(user: &str, program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={user}"), &format!("--regid={user}"), "--clear-groups", "--"]).arg(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

impl Server {
    /// None, with a word about it, where its programs or its user are missing.
    ///
    /// Its log is in `log` if that is given.
    pub fn start(kind: Kind, below: &Path, settings: &[&str], log: Option<&Path>) -> Option<Self> {
        let directory = below.join("server");
        make(&directory);
        let data = directory.join("data");
        let port = ports::free();
        let missing = || skip(format_args!("{} is not installed, so nothing was planted below it", kind.name()));
        let (process, address) = match kind {
            Kind::Postgres => {
                let Some(bin) = postgres_programs() else {
                    missing();
                    return None;
                };
                let mut initdb = as_user("postgres", &bin.join("initdb"));
                initdb.args(["--auth=trust", "--username=postgres", "--no-sync", "--locale=C", "-D"]).arg(&data);
                initdb.args(log.map(|log| format!("--waldir={}", log.join("wal").display())));
                assert!(initdb.status().unwrap().success(), "initdb failed");
                let rules = "local all all trust\nhost all all 127.0.0.1/32 trust\nhost all all 10.78.0.0/24 trust\n";
                fs::write(data.join("pg_hba.conf"), rules).unwrap();
                let mut server = as_user("postgres", &bin.join("postgres"));
                server.arg("-D").arg(&data).args(["-p", &port.to_string(), "-k"]).arg(&directory);
                server.args(["-c", "listen_addresses=*", "-c", "shared_buffers=256MB"]);
                server.args(settings.iter().flat_map(|setting| ["-c", setting]));
                (server.spawn().unwrap(), format!("postgres://postgres@127.0.0.1:{port}/postgres"))
            }
            Kind::MariaDb => {
                let server = Path::new("/usr/sbin/mariadbd");
                if !server.exists() {
                    missing();
                    return None;
                }
                let mut install = Command::new("mariadb-install-db");
                install.args(["--no-defaults", "--user=mysql", "--auth-root-authentication-method=normal"]);
                install.args(log.map(|log| format!("--innodb-log-group-home-dir={}", log.display())));
                let made = install.arg(format!("--datadir={}", data.display())).output().unwrap();
                assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
                let socket = directory.join("socket");
                let mut server = as_user("mysql", server);
                server.arg("--no-defaults").arg(format!("--datadir={}", data.display()));
                server.arg(format!("--socket={}", socket.display())).arg(format!("--port={port}"));
                server.args(["--bind-address=0.0.0.0", "--innodb-buffer-pool-size=256M"]).args(settings);
                server.args(log.map(|log| format!("--innodb-log-group-home-dir={}", log.display())));
                (server.spawn().unwrap(), format!("mysql://bench@127.0.0.1:{port}/plimsoll"))
            }
        };
        let server = Self { kind, directory, port, address, process };
        let begun = Instant::now();
        while !server.does("SELECT 1") {
            assert!(begun.elapsed() < Duration::from_secs(60), "{} does not answer", kind.name());
            std::thread::sleep(Duration::from_millis(100));
        }
        if kind == Kind::MariaDb {
            assert!(server.does(
                "CREATE DATABASE plimsoll; CREATE USER bench@localhost, bench@'10.78.0.%'; \
                     GRANT ALL ON *.* TO bench@localhost, bench@'10.78.0.%'"
            ));
        }
        Some(server)
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// The same from another host's view.
    pub fn address_at(&self, host: &str) -> String {
        self.address.replace("127.0.0.1", host)
    }

    /// The server and its children; later children are where these are.
    pub fn pids(&self) -> Vec<u32> {
        let first = self.process.id();
        let children = fs::read_to_string(format!("/proc/{first}/task/{first}/children")).unwrap_or_default();
        [first].into_iter().chain(children.split_whitespace().map(|pid| pid.parse().unwrap())).collect()
    }

    /// Its own client with a script.
    fn client(&self, script: &str) -> Command {
        let mut client = match self.kind {
            Kind::Postgres => {
                let mut client = Command::new("psql");
                client.arg("-h").arg(&self.directory).args([
                    "-p",
                    &self.port.to_string(),
                    "-U",
                    "postgres",
                    "-qc",
                    script,
                ]);
                client
            }
            Kind::MariaDb => {
                let mut client = Command::new("mariadb");
                client.arg("--no-defaults").arg(format!("--socket={}", self.directory.join("socket").display()));
                client.args(["-uroot", "-e", script]);
                client
            }
        };
        client.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        client
    }

    /// Whether its own client does what a script says.
    pub fn does(&self, script: &str) -> bool {
        self.client(script).status().unwrap().success()
    }

    /// Has a session lock rows that all orders need, for so many seconds.
    pub fn locking(&self, seconds: f64) -> Command {
        self.client(&match self.kind {
            Kind::Postgres => format!(
                "BEGIN; LOCK TABLE plimsoll.inventories IN SHARE ROW EXCLUSIVE MODE; SELECT pg_sleep({seconds}); COMMIT"
            ),
            Kind::MariaDb => format!(
                "USE plimsoll; BEGIN; SELECT count(*) FROM (SELECT 1 FROM inventories WHERE warehouse_id < 500 FOR UPDATE) \
                 held; SELECT sleep({seconds}); COMMIT"
            ),
        })
    }

    /// A session that holds rows which all orders need, most of the time.
    pub fn hold_locks(&self) -> Holder {
        let client = self.locking(1.5);
        let mut words = vec![client.get_program().to_owned()];
        words.extend(client.get_args().map(ToOwned::to_owned));
        let mut shell = Command::new("sh");
        shell.args(["-c", "while \"$@\"; do :; done", "sh"]).args(words);
        Holder(shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // PostgreSQL ends its children on this one.
        let _ = Command::new("kill").args(["-QUIT", &self.process.id().to_string()]).status();
        std::thread::sleep(Duration::from_millis(300));
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Lets go when it is dropped.
pub struct Holder(Child);

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        // What it had begun ends by itself.
        std::thread::sleep(Duration::from_secs(3));
    }
}
