//! The server's programs on this machine.

use std::env;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::private::PrivateError;

/// Names the directory of the programs to use.
const VARIABLE: &str = "PLIMSOLL_MYSQL_BIN";
/// What the server is called, the newer name first.
const SERVERS: [&str; 2] = ["mariadbd", "mysqld"];
/// What makes MariaDB's data; MySQL's server does that itself.
const INSTALLERS: [&str; 2] = ["mariadb-install-db", "mysql_install_db"];
/// Where distributions put them besides the PATH.
const PLACES: [&str; 5] = ["/usr/sbin", "/usr/libexec", "/usr/bin", "/usr/local/mysql/bin", "/opt/mysql/bin"];

/// The programs of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    /// The server.
    pub(in crate::mysql) server: PathBuf,
    /// What makes its data, where the server does not do that itself.
    installer: Option<PathBuf>,
    /// Its version in its own words, such as `10.11.19-MariaDB-0+deb12u1`.
    pub(in crate::mysql) version: String,
}

impl Binaries {
    /// The programs in `chosen` or in the directory that `PLIMSOLL_MYSQL_BIN` names, else the first in the usual places.
    ///
    /// # Errors
    /// When there are none, with the package to install.
    pub(in crate::mysql) fn find(chosen: Option<&Path>) -> Result<Self, PrivateError> {
        let named = chosen.map(Path::to_owned).or_else(|| env::var_os(VARIABLE).map(PathBuf::from));
        let Some(directory) = named else {
            let path = env::var_os("PATH").unwrap_or_default();
            let places: Vec<PathBuf> = PLACES.iter().map(PathBuf::from).chain(env::split_paths(&path)).collect();
            return places.iter().find_map(|place| Self::at(place)).ok_or_else(|| PrivateError::Unfit {
                what: "no MySQL or MariaDB server is installed here: neither `mariadbd` nor `mysqld` was found".to_owned(),
                hint: Some(format!(
                    "install it: `apt-get install mariadb-server` (Debian, Ubuntu) or `dnf install mariadb-server` (Fedora, \
                     RHEL); or name the directory of its programs: {VARIABLE}=DIR"
                )),
            });
        };
        let inner = ["", "bin", "sbin", "libexec"].map(|inner| directory.join(inner));
        inner.iter().find_map(|place| Self::at(place)).ok_or_else(|| PrivateError::Unfit {
            what: format!("`{}` holds no `mariadbd` and no `mysqld` that reports its version", directory.display()),
            hint: Some("name the directory that holds the server's program".to_owned()),
        })
    }

    fn at(place: &Path) -> Option<Self> {
        let server = SERVERS.iter().map(|name| place.join(name)).find(|path| path.is_file())?;
        // Ctrl-C is for us: a server that it ended would seem to have no version.
        let mut asking = Command::new(&server);
        asking.args(["--no-defaults", "--version"]).stdin(Stdio::null()).process_group(0);
        let said = asking.output().ok()?;
        let version = version(&String::from_utf8_lossy(&said.stdout))?;
        let path = env::var_os("PATH").unwrap_or_default();
        let mut beside = vec![place.to_owned()];
        beside.extend(["../bin", "../scripts"].map(|inner| place.join(inner)));
        beside.extend(env::split_paths(&path));
        let installers = beside.iter().flat_map(|place| INSTALLERS.iter().map(move |name| place.join(name)));
        let installer = installers.into_iter().find(|path| path.is_file()).filter(|_| version.contains("MariaDB"));
        Some(Self { server, installer, version })
    }

    /// The program and its parameters that make data in an empty directory: with a user `root` without a password, whom only the
    /// socket lets in.
    pub(in crate::mysql) fn initializing(&self, data: &Path) -> (PathBuf, Vec<String>) {
        let data = format!("--datadir={}", data.display());
        match &self.installer {
            Some(installer) => {
                let mut arguments = vec!["--no-defaults".to_owned(), data];
                arguments.extend(["--auth-root-authentication-method=normal", "--skip-test-db"].map(str::to_owned));
                // Packages of distributions know where their files are; others stand in a directory of their own.
                if let Some(base) =
                    self.server.parent().and_then(Path::parent).filter(|base| *base != Path::new("/usr"))
                {
                    arguments.push(format!("--basedir={}", base.display()));
                }
                (installer.clone(), arguments)
            }
            None => (self.server.clone(), vec!["--no-defaults".to_owned(), "--initialize-insecure".to_owned(), data]),
        }
    }

    /// Whether it is MariaDB.
    pub(in crate::mysql) fn is_mariadb(&self) -> bool {
        self.version.contains("MariaDB")
    }
}

/// From `mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)`.
fn version(text: &str) -> Option<String> {
    text.split_once("Ver ")?.1.split_whitespace().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use targets::DatabaseError as _;

    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn versions_are_read_from_what_servers_print() {
        let debian = "mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)\n";
        assert_eq!(version(debian).as_deref(), Some("10.11.19-MariaDB-0+deb12u1"));
        let mysql = "/opt/bin/mysqld  Ver 8.0.15 for linux-glibc2.12 on x86_64 (MySQL Community Server - GPL)";
        assert_eq!(version(mysql).as_deref(), Some("8.0.15"));
        assert_eq!(version("Segmentation fault"), None);
    }

    #[test]
    fn a_named_directory_is_taken_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = Binaries::find(Some(folder.path())).unwrap_err();
        assert!(error.to_string().contains("holds no `mariadbd`") && error.hint().is_some(), "{error}");
        let program = folder.path().join("bin/mysqld");
        fs::create_dir(program.parent().unwrap()).unwrap();
        fs::write(&program, "#!/bin/sh\necho 'mysqld  Ver 8.0.15 for linux'\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let found = Binaries::find(Some(folder.path())).unwrap();
        assert_eq!((found.version.as_str(), found.is_mariadb()), ("8.0.15", false));
        let (initializer, arguments) = found.initializing(Path::new("/d"));
        assert_eq!((initializer, arguments[1].as_str()), (program, "--initialize-insecure"));
    }
}
