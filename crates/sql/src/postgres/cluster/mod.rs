//! Private clusters: PostgreSQL servers that Plimsoll makes, starts, stops and removes, each in a directory of its own.

mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fmt, fs, io};

use rustix::process::Signal;

use self::settings::SettingOptions;
use super::connect::{Connected, Connector};
use super::meanings;
use super::sql::identifier;
use crate::ServerError;
use crate::ending::on_own_runtime;
use crate::postgres::error_of;
use crate::private::{
    Files, MAX_FILE, Owner, PrivateError, Programs, Running, ServerKind, Starting, damaged, file_error, is_alive,
    may_serve,
};
use model::config::postgres::{DEFAULT_PORT, PostgresAddress, PostgresNode, TlsOptions};
use model::plain::{self, Links};
use model::record::{ServerFacts, TargetFacts};
use model::units::Bytes;
use targets::TargetError;

/// What PostgreSQL's private servers are.
const CLUSTER: ServerKind = ServerKind {
    product: "PostgreSQL",
    noun: "cluster",
    user: "postgres",
    programs: PROGRAMS,
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
            page_protection: start.page_protection,
            max_connections: start.max_connections,
            socket_directory: start.sockets,
            port: DEFAULT_PORT,
            file_system: settings::file_system_bytes(start.files.directory())?,
        };
        let known = known_settings(start.owner, self)?;
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
                is_ours: was_started_by_us(data),
                address: reached.map(|(directory, port)| address(&directory.to_string_lossy(), *port)),
                sockets: socket.map(|(directory, _)| directory),
            }
        };
        Ok(Postmaster::running(data)?.map(running))
    }

    fn address(sockets: &str) -> PostgresAddress {
        address(sockets, DEFAULT_PORT)
    }

    fn facts(address: &PostgresAddress, is_new: bool) -> Result<TargetFacts, TargetError> {
        Ok(read_facts(address, is_new)?)
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
    let text = match plain::read_text(&path, Links::Refused, MAX_FILE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !files.data().exists() => return Ok(None),
        read => read.map_err(file_error("read", &path))?,
    };
    text.trim().parse().map(Some).map_err(|_| damaged(&path, "it holds no version of PostgreSQL"))
}

fn address(socket_directory: &str, port: u16) -> PostgresAddress {
    PostgresAddress {
        nodes: vec![PostgresNode { host: socket_directory.to_owned(), port: Some(port) }],
        user: Some(ROLE.to_owned()),
        database: Some(ROLE.to_owned()),
        tls: TlsOptions::default(),
        connect_timeout_s: None,
    }
}

/// The server, as the kernel shows it.
const PROGRAMS: &[&str] = &["postgres"];

/// Set on each server that we start, and so reported by `postmaster.opts` and in lists of processes.
const CLUSTER_NAME: &str = "plimsoll";

/// What `postmaster.pid` says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Postmaster {
    pid: u32,
    /// Directory and port of its first socket; none while it starts.
    socket: Option<(PathBuf, u16)>,
    /// Whether it takes connections.
    is_ready: bool,
}

impl Postmaster {
    /// The lines are those of `pidfile.h` in PostgreSQL's source: process, data directory, start time, port, socket
    /// directory, address, shared memory, status.
    fn parse(text: &str) -> Option<Self> {
        let line = |number: usize| text.lines().nth(number).map(str::trim).filter(|line| !line.is_empty());
        // A server in single-user mode writes its number as a negative one.
        let pid = u32::try_from(line(0)?.parse::<i64>().ok()?.unsigned_abs()).ok().filter(|pid| *pid > 0)?;
        let socket = line(4).zip(line(3).and_then(|port| port.parse().ok()));
        Some(Self {
            pid,
            socket: socket.map(|(directory, port)| (PathBuf::from(directory), port)),
            is_ready: line(7) == Some("ready"),
        })
    }

    /// What the file in `data` says; none without one that can be understood.
    ///
    /// # Errors
    /// When it cannot be read.
    fn read(data: &Path) -> Result<Option<Self>, PrivateError> {
        let path = data.join("postmaster.pid");
        match plain::read_text(&path, Links::Refused, MAX_FILE) {
            Ok(text) => Ok(Self::parse(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(file_error("read", &path)(error)),
        }
    }

    /// The server that runs on `data`; none after a crash, which leaves the file and no such process.
    ///
    /// # Errors
    /// When that cannot be found out.
    fn running(data: &Path) -> Result<Option<Self>, PrivateError> {
        Ok(Self::read(data)?.filter(|found| is_alive(found.pid) && may_serve(PROGRAMS, found.pid, data)))
    }
}

/// Whether the server that was started last on `data` was started by us.
fn was_started_by_us(data: &Path) -> bool {
    let options = plain::read_text(&data.join("postmaster.opts"), Links::Refused, MAX_FILE).unwrap_or_default();
    options.contains(&format!("\"cluster_name={CLUSTER_NAME}\""))
}

/// Application name of the connection.
const APPLICATION: &str = "plimsoll";
/// Exists in every cluster.
const FIRST_DATABASE: &str = "postgres";

/// Names of the settings that this version knows.
///
/// # Errors
/// When the program fails.
fn known_settings(owner: &Owner, binaries: &Binaries) -> Result<BTreeSet<String>, PrivateError> {
    let program = binaries.program("postgres");
    let failed = |reason: String| {
        let hint = Binaries::hint(&reason);
        PrivateError::Program { program: program.clone(), reason, hint }
    };
    let reported =
        owner.command(&program).arg("--describe-config").output().map_err(|error| failed(error.to_string()))?;
    if !reported.status.success() {
        return Err(failed(String::from_utf8_lossy(&reported.stderr).trim().to_owned()));
    }
    let text = String::from_utf8_lossy(&reported.stdout);
    Ok(text.lines().filter_map(|line| line.split('\t').next()).map(str::to_owned).collect())
}

/// Makes our database if it is not there and `may_make` it, and reads what there is to know of the server.
///
/// # Errors
/// When the server cannot be connected to, or refuses.
fn read_facts(address: &PostgresAddress, may_make: bool) -> Result<TargetFacts, ServerError> {
    on_own_runtime(async {
        let node = &address.nodes[0];
        let of = |doing: &'static str| move |error: tokio_postgres::Error| error_of(node, doing, &error);
        if may_make {
            let first = PostgresAddress { database: Some(FIRST_DATABASE.to_owned()), ..address.clone() };
            let Connected { client, .. } = Connector::new(&first, APPLICATION)?.connect(0).await?;
            let there = client.query_opt("SELECT FROM pg_database WHERE datname = $1", &[&ROLE]).await;
            if there.map_err(of("look for the database"))?.is_none() {
                let made = client.batch_execute(&format!("CREATE DATABASE {}", identifier(ROLE))).await;
                made.map_err(of("create the database"))?;
            }
        }
        ask(&Connector::new(address, APPLICATION)?, 0).await
    })
}

/// What is worth knowing of any server: `server_version`, and the settings that matter to results.
///
/// # Errors
/// When the server cannot be connected to, or refuses.
pub fn facts_of(connector: &Connector, node: usize) -> Result<TargetFacts, ServerError> {
    on_own_runtime(async {
        let mut facts = ask(connector, node).await?;
        facts.server.is_private = Some(false);
        Ok(facts)
    })
}

async fn ask(connector: &Connector, node: usize) -> Result<TargetFacts, ServerError> {
    let connected = connector.connect(node).await?;
    let of = |doing: &'static str| {
        let connected = &connected;
        move |error: tokio_postgres::Error| connected.error(doing, &error)
    };
    let (shown, hidden) = settings::shown();
    let rows =
        connected.client.query(settings::SHOWN_SQL, &[&shown, &hidden]).await.map_err(of("read its settings"))?;
    let settings = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let version = connected.client.query_one("SHOW server_version", &[]).await.map_err(of("read its version"))?;
    let mut server = ServerFacts { settings, ..ServerFacts::default() };
    meanings::describe(&mut server);
    connector.describe(&connected, &mut server);
    let other = [("server_version".to_owned(), version.get(0))].into();
    Ok(TargetFacts { server, other, ..TargetFacts::default() })
}

/// Oldest version that the load runs on.
const OLDEST_MAJOR: u32 = 13;
/// Names the directory of the programs to use.
const VARIABLE: &str = "PLIMSOLL_PG_BIN";
/// Without these two there is no cluster.
const NEEDED: [&str; 2] = ["postgres", "initdb"];

/// A directory with the server's programs, all of one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    /// The directory.
    pub(super) directory: PathBuf,
    /// Their version.
    version: Version,
}

/// Version of a server: `15.20`, and that of the data's format is its first number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    major: u32,
    /// 0 for a version that is not released yet.
    minor: u32,
}

impl Version {
    /// From what `postgres --version` prints: `postgres (PostgreSQL) 15.20 (Debian …)`, `… 19beta1`.
    fn parse(text: &str) -> Option<Self> {
        let number = text.split_once("(PostgreSQL)")?.1.split_whitespace().next()?;
        let digits = |text: &str| -> Option<u32> {
            text.split(|c: char| !c.is_ascii_digit()).next().filter(|digits| !digits.is_empty())?.parse().ok()
        };
        let minor = number.split_once('.').and_then(|(_, minor)| digits(minor));
        Some(Self { major: digits(number)?, minor: minor.unwrap_or(0) })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Binaries {
    /// The programs to use: those in `chosen` (or in the directory that `PLIMSOLL_PG_BIN` names), else the newest that are
    /// found in the usual places. Data that exist need programs of their own major version.
    ///
    /// # Errors
    /// When there are none, with the package to install.
    pub(super) fn find(chosen: Option<&Path>, data_major: Option<u32>) -> Result<Self, PrivateError> {
        let named = chosen.map(Path::to_owned).or_else(|| env::var_os(VARIABLE).map(PathBuf::from));
        match named {
            Some(directory) => Self::named(&directory, data_major),
            None => Self::newest(&default_places(), data_major),
        }
    }

    fn named(directory: &Path, data_major: Option<u32>) -> Result<Self, PrivateError> {
        let hint = || {
            Some(format!("name the directory that holds `postgres` and `initdb` of version {OLDEST_MAJOR} or newer"))
        };
        if let Some(missing) = NEEDED.iter().find(|program| !directory.join(program).is_file()) {
            let what = format!("`{}` holds no `{missing}`", directory.display());
            return Err(PrivateError::Unfit { what, hint: hint() });
        }
        let found = Self::at(directory).ok_or_else(|| PrivateError::Program {
            program: directory.join("postgres"),
            reason: "it does not report its version".to_owned(),
            hint: hint(),
        })?;
        let major = found.version.major;
        if major < OLDEST_MAJOR {
            return Err(too_old(&found));
        }
        match data_major {
            Some(wanted) if wanted != major => Err(PrivateError::Unfit {
                what: format!(
                    "the cluster is of PostgreSQL {wanted}, and the programs in `{}` are of version {major}",
                    directory.display()
                ),
                hint: Some(format!("name those of version {wanted}, or another directory for the cluster")),
            }),
            _ => Ok(found),
        }
    }

    fn newest(places: &[PathBuf], data_major: Option<u32>) -> Result<Self, PrivateError> {
        let mut seen = BTreeSet::new();
        let mut found: Vec<Self> = places
            .iter()
            .filter(|place| NEEDED.iter().all(|program| place.join(program).is_file()))
            .filter(|place| seen.insert(place.canonicalize().unwrap_or_else(|_| place.to_path_buf())))
            .filter_map(|place| Self::at(place))
            .collect();
        found.sort_by_key(|binaries| binaries.version);
        let Some(newest) = found.last().cloned() else { return Err(none_installed()) };
        let Some(wanted) = data_major else {
            return if newest.version.major < OLDEST_MAJOR { Err(too_old(&newest)) } else { Ok(newest) };
        };
        found.into_iter().rfind(|binaries| binaries.version.major == wanted).ok_or_else(|| PrivateError::Unfit {
            what: format!(
                "the cluster is of PostgreSQL {wanted}, which is not installed; the newest here is {}",
                newest.version
            ),
            hint: Some(format!(
                "install it (Debian and Ubuntu: `apt-get install postgresql-{wanted}`), name the directory of its \
                 programs with {VARIABLE}, or name another directory for the cluster"
            )),
        })
    }

    fn at(directory: &Path) -> Option<Self> {
        // Ctrl-C is for us: a server that it ended would seem to have no version.
        let mut asking = Command::new(directory.join("postgres"));
        let reported = asking.arg("--version").stdin(Stdio::null()).process_group(0).output().ok()?;
        let version = Version::parse(&String::from_utf8_lossy(&reported.stdout))?;
        Some(Self { directory: directory.to_owned(), version })
    }

    /// Path of one of the programs.
    fn program(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

fn none_installed() -> PrivateError {
    PrivateError::Unfit {
        what: "no PostgreSQL server is installed here: neither `postgres` nor `initdb` was found".to_owned(),
        hint: Some(format!(
            "install it: `apt-get install postgresql` (Debian, Ubuntu) or `dnf install postgresql-server` (Fedora, RHEL); \
             or name the directory of its programs: {VARIABLE}=DIR"
        )),
    }
}

fn too_old(found: &Binaries) -> PrivateError {
    PrivateError::Unfit {
        what: format!(
            "PostgreSQL {} in `{}` is too old: version {OLDEST_MAJOR} is the oldest that works",
            found.version,
            found.directory.display()
        ),
        hint: Some(format!("install a newer one, or name the directory of its programs: {VARIABLE}=DIR")),
    }
}

/// Where distributions and the server's own build put the programs; any of them may not exist.
fn default_places() -> Vec<PathBuf> {
    let mut places = Vec::new();
    let reported = Command::new("pg_config").arg("--bindir").stdin(Stdio::null()).stderr(Stdio::null()).output();
    if let Ok(reported) = reported
        && reported.status.success()
    {
        places.push(PathBuf::from(String::from_utf8_lossy(&reported.stdout).trim_end()));
    }
    // Debian and Ubuntu; the PostgreSQL project's own RPM packages.
    places.extend(entries("/usr/lib/postgresql", "").map(|version| version.join("bin")));
    places.extend(entries("/usr", "pgsql-").map(|version| version.join("bin")));
    places.push(PathBuf::from("/usr/local/pgsql/bin"));
    places.extend(env::var_os("PATH").iter().flat_map(env::split_paths));
    places
}

fn entries(directory: &str, prefix: &'static str) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(move |entry| entry.file_name().to_string_lossy().starts_with(prefix)).map(|entry| entry.path())
}

#[cfg(test)]
mod postmaster_tests {
    use super::*;

    #[test]
    fn the_servers_own_file_is_read_as_far_as_it_goes() {
        let whole = "4711\n/u01/pg/data\n1700000000\n5432\n/u01/pg/run\n\n  1234567  42\nready   \n";
        let socket = Some((PathBuf::from("/u01/pg/run"), 5432));
        assert_eq!(Postmaster::parse(whole), Some(Postmaster { pid: 4711, socket, is_ready: true }));
        let begun = Postmaster { pid: 4711, socket: None, is_ready: false };
        assert_eq!(Postmaster::parse("4711\n/u01/pg/data\n"), Some(begun.clone()));
        assert_eq!(Postmaster::parse("-4711\n"), Some(begun));
        assert_eq!((Postmaster::parse(""), Postmaster::parse("0\n"), Postmaster::parse("x\n")), (None, None, None));
    }

    #[test]
    fn a_file_that_a_crash_left_is_not_taken_for_a_server() {
        let data = tempfile::tempdir().unwrap();
        let pid_file = data.path().join("postmaster.pid");
        // Our own process lives, and works elsewhere: as if the number had been given to another process.
        for pid in [std::process::id(), 4_194_999] {
            fs::write(&pid_file, format!("{pid}\n")).unwrap();
            assert_eq!(Postmaster::running(data.path()).unwrap(), None, "{pid}");
        }
    }
}

#[cfg(test)]
mod binaries_tests {
    use targets::DatabaseError as _;

    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn installed(version: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for program in NEEDED {
            let path = directory.path().join(program);
            fs::write(&path, format!("#!/bin/sh\necho '{program} (PostgreSQL) {version}'\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        directory
    }

    fn text(error: &PrivateError) -> String {
        format!("{error}; {}", error.hint().unwrap())
    }

    #[test]
    fn versions_are_read_from_what_servers_print() {
        let version = |number| Version::parse(&format!("postgres (PostgreSQL) {number}\n"));
        assert_eq!(version("15.20 (Debian 15.20-0+deb12u1)"), Some(Version { major: 15, minor: 20 }));
        assert_eq!(version("19beta1"), Some(Version { major: 19, minor: 0 }));
        assert_eq!(version("devel"), None);
        assert_eq!(Version::parse("mysqld 8.0"), None);
    }

    #[test]
    fn without_a_server_the_packages_are_named() {
        let empty = tempfile::tempdir().unwrap();
        let reported = text(&Binaries::newest(&[empty.path().to_owned()], None).unwrap_err());
        assert!(
            reported.contains("apt-get install postgresql") && reported.contains("dnf install postgresql-server"),
            "{reported}"
        );
    }

    #[test]
    fn the_newest_is_taken_unless_data_need_another() {
        let (old, new) = (installed("14.2"), installed("16.1"));
        let places = [new.path().to_owned(), old.path().to_owned()];
        assert_eq!(Binaries::newest(&places, None).unwrap().directory, new.path());
        assert_eq!(Binaries::newest(&places, Some(14)).unwrap().directory, old.path());
        let reported = text(&Binaries::newest(&places, Some(15)).unwrap_err());
        assert!(
            reported.contains("PostgreSQL 15, which is not installed") && reported.contains("postgresql-15"),
            "{reported}"
        );
    }

    #[test]
    fn a_named_directory_is_taken_or_refused_and_never_replaced_by_another() {
        let right = installed("13.0");
        assert_eq!(Binaries::named(right.path(), None).unwrap().version.major, 13);
        let reported = text(&Binaries::named(right.path(), Some(15)).unwrap_err());
        assert!(reported.contains("of PostgreSQL 15") && reported.contains("version 13"), "{reported}");
        let old = installed("12.9");
        assert!(text(&Binaries::named(old.path(), None).unwrap_err()).contains("too old"));
        let empty = tempfile::tempdir().unwrap();
        assert!(text(&Binaries::named(empty.path(), None).unwrap_err()).contains("holds no `postgres`"));
    }
}
