//! The server's programs on this machine.

use std::collections::BTreeSet;
use std::env;
use std::fmt;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::private::PrivateError;

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
    pub(in crate::postgres) directory: PathBuf,
    /// Their version.
    pub(super) version: Version,
}

/// Version of a server: `15.20`, and that of the data's format is its first number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    pub(super) major: u32,
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
    pub(in crate::postgres) fn find(chosen: Option<&Path>, data_major: Option<u32>) -> Result<Self, PrivateError> {
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
    pub(super) fn program(&self, name: &str) -> PathBuf {
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
mod tests {
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
