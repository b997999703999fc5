//! Private clusters: PostgreSQL servers that Plimsoll makes, starts, stops and removes, each in a directory of its own.

mod binaries;
mod facts;
mod postmaster;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

pub(crate) use self::binaries::Binaries;
use self::postmaster::Postmaster;
use self::settings::SettingOptions;
use crate::private::{Files, PrivateError, Programs, Running, ServerKind, Starting, damaged, file_error};
use model::config::postgres::{DEFAULT_PORT, PostgresAddress, PostgresNode, TlsOptions};
use model::units::Bytes;
use targets::TargetError;

pub use self::facts::facts_of;

/// What PostgreSQL's private servers are.
const CLUSTER: ServerKind = ServerKind {
    product: "PostgreSQL",
    noun: "cluster",
    user: "postgres",
    environment: &["PG"],
    data_file: "PG_VERSION",
    schemes: ["postgres://", "pg:"],
    socket: ".s.PGSQL.5432",
    buffers: "shared buffers",
    buffers_setting: "shared_buffers",
    // 16 of its blocks.
    min_db_cache: Bytes::kib(128),
    stop: [Signal::INT, Signal::QUIT],
};

/// The role that owns a private cluster, and the database in it.
const ROLE: &str = "plimsoll";

/// What initdb is given besides role and directory. Only the socket lets anybody in, and only the server's user and root
/// reach that. Text compares by bytes, everywhere the same. Checksums find pages that storage has torn or changed; version
/// 18 has them by default too. The files are synced at the end, for the cluster stays.
const INITDB_OPTIONS: [&str; 5] =
    ["--auth-local=trust", "--auth-host=reject", "--encoding=UTF8", "--locale=C", "--data-checksums"];

impl Programs for Binaries {
    const KIND: &'static ServerKind = &CLUSTER;
    type Address = PostgresAddress;

    fn find(chosen: Option<&Path>, files: &Files) -> Result<Self, PrivateError> {
        Self::find(chosen, data_major(files)?)
    }

    fn version(&self) -> String {
        self.version.to_string()
    }

    fn initializing(&self, data: &Path) -> (PathBuf, Vec<String>) {
        let own = [format!("--username={ROLE}"), format!("--pgdata={}", data.display())];
        (self.program("initdb"), INITDB_OPTIONS.map(str::to_owned).into_iter().chain(own).collect())
    }

    fn starting(&self, start: &Starting<'_>) -> Result<(PathBuf, Vec<String>), PrivateError> {
        let options = SettingOptions {
            shared_buffers: start.db_cache,
            max_connections: start.max_connections,
            socket_directory: start.sockets,
            port: DEFAULT_PORT,
            file_system: settings::file_system_bytes(start.files.directory())?,
        };
        let known = facts::known_settings(start.owner, self)?;
        let chosen = settings::chosen(&options, |name| known.contains(name));
        let mut arguments = vec!["-D".to_owned(), start.files.data().to_string_lossy().into_owned()];
        arguments.extend(chosen.iter().flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")]));
        Ok((self.server(), arguments))
    }

    fn server(&self) -> PathBuf {
        self.program("postgres")
    }

    fn running(data: &Path) -> Result<Option<Running<PostgresAddress>>, PrivateError> {
        let running = |Postmaster { pid, socket, is_ready }| {
            let reached = socket.as_ref().filter(|_| is_ready);
            Running {
                pid,
                is_ours: postmaster::was_started_by_us(data),
                address: reached.map(|(directory, port)| address(&directory.to_string_lossy(), *port)),
                sockets: socket.map(|(directory, _)| directory),
            }
        };
        Ok(Postmaster::running(data)?.map(running))
    }

    fn address(sockets: &str) -> PostgresAddress {
        address(sockets, DEFAULT_PORT)
    }

    fn facts(address: &PostgresAddress, is_new: bool) -> Result<BTreeMap<String, String>, TargetError> {
        Ok(facts::read(address, is_new)?)
    }

    fn needed_memory(db_cache: Bytes, sessions: u32) -> Bytes {
        settings::needed_memory(db_cache, sessions)
    }

    fn hint(said: &str) -> Option<String> {
        let reported = match said {
            _ if said.contains("shared memory") || said.contains("Cannot allocate memory") => {
                "lower `--db-cache`: the machine has no room for shared buffers of this size"
            }
            _ if said.contains("Permission denied") => {
                "let the server's user read and write there, or use another directory"
            }
            _ => return None,
        };
        Some(reported.to_owned())
    }
}

/// Major version of the cluster's data; none before they are whole.
///
/// # Errors
/// When the version cannot be read.
fn data_major(files: &Files) -> Result<Option<u32>, PrivateError> {
    let path = files.data().join("PG_VERSION");
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !files.data().exists() => return Ok(None),
        read => read.map_err(file_error("read", &path))?,
    };
    text.trim().parse().map(Some).map_err(|_| damaged(&path, "it holds no version of PostgreSQL"))
}

fn address(socket_directory: &str, port: u16) -> PostgresAddress {
    PostgresAddress {
        nodes: vec![PostgresNode { host: socket_directory.to_owned(), port: Some(port) }],
        user: Some(ROLE.to_owned()),
        password: None,
        database: Some(ROLE.to_owned()),
        tls: TlsOptions::default(),
        connect_timeout_s: None,
    }
}
