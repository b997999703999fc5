//! Private servers: MySQL or MariaDB servers that Plimsoll makes, starts, stops and removes, each in a directory of its own.

pub(in crate::mysql) mod binaries;
mod settings;

use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::process::Signal;

pub(crate) use self::binaries::Binaries;
use super::connect::Connector;
use crate::ending::on_own_runtime;
use crate::private::{
    DirectoryState, Files, MAX_FILE, PrivateError, Programs, Running, ServerKind, Starting, file_error, inspect,
    is_alive, may_serve,
};
use model::config::mysql::MysqlAddress;
use model::plain::{self, Links};
use model::record::TargetFacts;
use model::units::Bytes;
use targets::TargetError;

pub use self::settings::facts;
pub(super) use self::settings::free_pages_note;

/// What private servers of MySQL and MariaDB are.
const SERVER: ServerKind = ServerKind {
    product: "MySQL",
    noun: "server",
    user: "mysql",
    programs: &["mariadbd", "mysqld"],
    environment: &["MYSQL", "MARIADB"],
    data_file: "ibdata1",
    schemes: ["mysql://", "my:"],
    socket: SOCKET,
    buffers: "buffer pool",
    buffers_setting: "innodb_buffer_pool_size",
    // The least that InnoDB takes.
    min_db_cache: Bytes::mib(5),
    // There is no signal that has it drop everything and end at once; what a kill leaves the next start recovers.
    stop: [Signal::TERM, Signal::KILL],
};
const SOCKET: &str = "sock";
/// The user of a private server: that of its own administration, whom only the socket lets in.
const USER: &str = "root";
/// The database that holds the data.
const DATABASE: &str = "plimsoll";

impl Programs for Binaries {
    const KIND: &'static ServerKind = &SERVER;
    type Address = MysqlAddress;

    fn find(chosen: Option<&Path>, files: &Files) -> Result<Self, PrivateError> {
        let found = Self::find(chosen)?;
        match files.look()? {
            DirectoryState::Ours(marker) if files.data().exists() => {
                check_version(files, &marker.server_version, &found)?;
            }
            _ => {}
        }
        Ok(found)
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn initializing(&self, data: &Path) -> (PathBuf, Vec<String>) {
        self.initializing(data)
    }

    fn starting(&self, start: &Starting<'_>) -> Result<(PathBuf, Vec<String>), PrivateError> {
        Ok((self.server(), settings::arguments(start, self)?))
    }

    fn server(&self) -> PathBuf {
        self.server.clone()
    }

    fn running(data: &Path) -> Result<Option<Running<MysqlAddress>>, PrivateError> {
        running_of(data)
    }

    fn address(sockets: &str) -> MysqlAddress {
        address(&Path::new(sockets).join(SOCKET))
    }

    fn answers(address: &MysqlAddress) -> bool {
        let connector = Connector::new(address, "plimsoll");
        connector.is_ok_and(|connector| on_own_runtime(async { connector.connect(0).await.map(drop) }).is_ok())
    }

    fn facts(address: &MysqlAddress, _is_new: bool) -> Result<TargetFacts, TargetError> {
        Ok(facts(&Connector::new(address, "plimsoll")?, 0)?)
    }

    fn needed_memory(db_cache: Bytes, sessions: u32) -> Bytes {
        settings::needed_memory(db_cache, sessions)
    }

    fn more_memory(&self) -> Bytes {
        if self.is_mariadb() { Bytes(0) } else { settings::MORE_OF_MYSQL }
    }

    fn hint(said: &str) -> Option<String> {
        let hint = match said {
            _ if said.contains("Cannot allocate memory") => {
                "lower `--db-cache`: the machine has no room for such a buffer pool"
            }
            _ if said.contains("Permission denied") => {
                "let the server's user read and write there, or use another directory"
            }
            _ if said.contains("upgrade") || said.contains("redo log") => {
                "the data may be of another version: name the programs that made them with PLIMSOLL_MYSQL_BIN"
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

/// Data of one product, or of a later version, are not for the programs of another.
fn check_version(files: &Files, made_by: &str, binaries: &Binaries) -> Result<(), PrivateError> {
    let major = |version: &str| version.split('.').next().and_then(|number| number.parse::<u32>().ok());
    let is_mariadb = |version: &str| version.contains("MariaDB");
    if is_mariadb(made_by) == binaries.is_mariadb() && major(made_by) <= major(&binaries.version) {
        return Ok(());
    }
    let what = format!(
        "the server in `{}` was made by version {made_by}, and the programs here are of version {}",
        files.directory().display(),
        binaries.version
    );
    let hint = "name the directory of the right programs with PLIMSOLL_MYSQL_BIN, or another directory";
    Err(PrivateError::unfit(what, hint))
}

/// Whether there is a private server in `directory`, and the number of its process, if it runs.
///
/// # Errors
/// When the directory holds anything that Plimsoll did not make, or belongs to somebody else.
pub fn process(directory: &Path) -> Result<Option<Option<u32>>, TargetError> {
    Ok(inspect::<Binaries>(directory)?.map(|found| found.running.map(|running| running.pid)))
}

fn address(socket: &Path) -> MysqlAddress {
    MysqlAddress {
        user: Some(USER.to_owned()),
        database: Some(DATABASE.to_owned()),
        socket: Some(socket.to_owned()),
        ..MysqlAddress::default()
    }
}

/// The first field of the first row that a private server gives.
#[cfg(test)]
pub(crate) fn ask(address: &MysqlAddress, sql: &str) -> String {
    use mysql_async::prelude::Queryable as _;
    let connector = Connector::new(address, "test").unwrap();
    let asked = on_own_runtime(async {
        let mut connected = connector.connect(0).await?;
        Ok(connected.conn.query_first::<String, _>(sql).await.unwrap())
    });
    asked.unwrap().unwrap_or_default()
}

/// The file in the data that holds the number of the process.
const PID_FILE: &str = "plimsoll.pid";

/// The server that runs on `data`; none after a crash, which leaves the file and no such process.
///
/// # Errors
/// When the file cannot be read.
fn running_of(data: &Path) -> Result<Option<Running<MysqlAddress>>, PrivateError> {
    let path = data.join(PID_FILE);
    let text = match plain::read_text(&path, Links::Refused, MAX_FILE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(file_error("read", &path))?,
    };
    let Ok(pid) = text.trim().parse() else { return Ok(None) };
    if !is_alive(pid) || !may_serve(SERVER.programs, pid, data) {
        return Ok(None);
    }
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let socket = socket_of(&command, &path);
    Ok(Some(Running {
        pid,
        is_ours: socket.is_some(),
        sockets: socket.as_deref().and_then(Path::parent).map(Path::to_owned),
        address: socket.as_deref().map(self::address),
    }))
}

/// The socket among the words of a server's command, if its file of the process number is ours.
fn socket_of(command: &[u8], pid_file: &Path) -> Option<PathBuf> {
    let text = String::from_utf8_lossy(command);
    let mut words = text.split('\0');
    let is_ours = words.clone().any(|word| word.strip_prefix("--pid-file=").map(Path::new) == Some(pid_file));
    words.find_map(|word| word.strip_prefix("--socket=")).filter(|_| is_ours).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_a_crash_left_is_not_taken_for_a_server() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(running_of(data.path()).unwrap(), None);
        // Our own process lives, and works elsewhere: as if the number had been given to another process.
        for pid in [std::process::id().to_string(), "4194999".to_owned(), "x".to_owned()] {
            fs::write(data.path().join(PID_FILE), pid).unwrap();
            assert_eq!(running_of(data.path()).unwrap(), None);
        }
    }

    #[test]
    fn a_server_is_ours_by_the_file_that_it_was_started_with() {
        let command = b"/usr/sbin/mariadbd\0--socket=/u01/my/run/sock\0--pid-file=/u01/my/data/plimsoll.pid\0";
        assert_eq!(socket_of(command, Path::new("/u01/my/data/plimsoll.pid")), Some("/u01/my/run/sock".into()));
        assert_eq!(socket_of(command, Path::new("/u02/my/data/plimsoll.pid")), None);
    }
}
