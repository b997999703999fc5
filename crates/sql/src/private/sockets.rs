//! The directory of a private server's socket. Only the server's user, and root, may enter it.

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::ServerKind;
use super::error::PrivateError;
use super::files::{Files, file_error, private_directory};
use super::owner::Owner;

/// Longest path of a socket: `sun_path` of unix(7) without the zero at its end.
const LONGEST_PATH_BYTES: usize = 107;
const PREFIX: &str = "plimsoll-sockets-";

/// The directory of a private server's socket.
#[derive(Debug)]
pub(crate) struct Sockets {
    /// Its path, which has nothing in it that a server's list of directories could misread.
    pub(crate) path: String,
    /// Whether it is not in the server's own directory and goes when the server ends.
    passing: bool,
}

impl Sockets {
    /// Makes the directory: `run` in the server's own, or one in a place with a short name if that has too long a path or
    /// one with odd characters.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn make(files: &Files, owner: &Owner) -> Result<Self, PrivateError> {
        let (run, kind) = (files.run(), files.kind());
        if let Some(path) = run.to_str().filter(|path| is_fit(kind, path)) {
            private_directory(&run, owner)?;
            return Ok(Self { path: path.to_owned(), passing: false });
        }
        let own_place = env::var("XDG_RUNTIME_DIR")
            .ok()
            .filter(|place| !owner.is_other() && is_fit(kind, &format!("{place}/{PREFIX}{}", u32::MAX)));
        let place = own_place.unwrap_or_else(|| "/tmp".to_owned());
        let mut number = std::process::id();
        loop {
            let path = format!("{place}/{PREFIX}{number}");
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number = number.wrapping_add(1),
                made => {
                    made.map_err(file_error("create", Path::new(&path)))?;
                    owner.adopt(Path::new(&path))?;
                    return Ok(Self { path, passing: true });
                }
            }
        }
    }

    /// The directory of a server that runs.
    pub(crate) fn of_running(directory: &Path) -> Self {
        let name = directory.file_name().unwrap_or_default();
        let passing = name.to_string_lossy().starts_with(PREFIX);
        Self { path: directory.to_string_lossy().into_owned(), passing }
    }

    /// The directory, if it is to be removed when the server ends.
    pub(crate) fn passing(&self) -> Option<PathBuf> {
        self.passing.then(|| PathBuf::from(&self.path))
    }

    /// Leaves the directory to a server that goes on running.
    pub(crate) fn keep(&mut self) {
        self.passing = false;
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        if let Some(directory) = self.passing() {
            // A server that was killed leaves its socket. The supervisor may have been here before.
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let _ = fs::remove_file(entry.path());
            }
            let _ = fs::remove_dir(&directory);
        }
    }
}

fn is_fit(kind: &ServerKind, directory: &str) -> bool {
    let socket_bytes = format!("{directory}/{}", kind.socket).len();
    // Quotation marks and backslashes mean something in a list of directories.
    socket_bytes <= LONGEST_PATH_BYTES && !directory.contains(['"', '\\'])
}

#[cfg(test)]
mod tests {
    use super::super::TESTED;
    use super::*;

    #[test]
    fn only_paths_that_a_socket_can_have_are_fit() {
        assert!(is_fit(&TESTED, "/u01/my pg, really/run"));
        assert!(!is_fit(&TESTED, "/u01/a\"b/run"));
        let longest = LONGEST_PATH_BYTES - "/.s.PGSQL.5432".len();
        assert!(is_fit(&TESTED, &"a".repeat(longest)) && !is_fit(&TESTED, &"a".repeat(longest + 1)));
    }

    #[test]
    fn only_a_directory_of_its_own_goes_with_the_server() {
        assert_eq!(Sockets::of_running(Path::new("/u01/pg/run")).passing(), None);
        let mut own = Sockets::of_running(Path::new("/tmp/plimsoll-sockets-12"));
        assert_eq!(own.passing(), Some(PathBuf::from("/tmp/plimsoll-sockets-12")));
        own.keep();
        assert_eq!(own.passing(), None);
    }
}
