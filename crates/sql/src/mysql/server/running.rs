//! The process of a private server, as its own file and the kernel report on it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::private::{PrivateError, Running, file_error, is_alive, works_in};
use model::config::mysql::MysqlAddress;

/// The file in the data that holds the number of the process.
pub(super) const PID_FILE: &str = "plimsoll.pid";

/// The server that runs on `data`; none after a crash, which leaves the file and no such process.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn of(data: &Path) -> Result<Option<Running<MysqlAddress>>, PrivateError> {
    let path = data.join(PID_FILE);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(file_error("read", &path))?,
    };
    let Ok(pid) = text.trim().parse() else { return Ok(None) };
    if !is_alive(pid) || !works_in(pid, data) {
        return Ok(None);
    }
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let socket = socket_of(&command, &path);
    Ok(Some(Running {
        pid,
        is_ours: socket.is_some(),
        sockets: socket.as_deref().and_then(Path::parent).map(Path::to_owned),
        address: socket.as_deref().map(super::address),
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
        assert_eq!(of(data.path()).unwrap(), None);
        // Our own process lives, and works elsewhere: as if the number had been given to another process.
        for pid in [std::process::id().to_string(), "4194999".to_owned(), "x".to_owned()] {
            fs::write(data.path().join(PID_FILE), pid).unwrap();
            assert_eq!(of(data.path()).unwrap(), None);
        }
    }

    #[test]
    fn a_server_is_ours_by_the_file_that_it_was_started_with() {
        let command = b"/usr/sbin/mariadbd\0--socket=/u01/my/run/sock\0--pid-file=/u01/my/data/plimsoll.pid\0";
        assert_eq!(socket_of(command, Path::new("/u01/my/data/plimsoll.pid")), Some("/u01/my/run/sock".into()));
        assert_eq!(socket_of(command, Path::new("/u02/my/data/plimsoll.pid")), None);
    }
}
