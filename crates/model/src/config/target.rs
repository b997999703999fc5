//! Where load shall land.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::mysql::MysqlAddress;
use super::oracle::OracleAddress;
use super::postgres::PostgresAddress;
use super::{ConfigError, TargetProblem};

/// Address of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetAddress {
    /// `dir:PATH`: the embedded engine, its files in this directory. A relative path stays relative.
    Directory(PathBuf),
    /// `sim:KEY=VALUE,…`: the simulated target with these options, in the order in which they were given.
    Simulated(Vec<(String, String)>),
    /// `pg:DIR`: a PostgreSQL server of our own, its files in this directory. A relative path stays relative.
    PrivateCluster(PathBuf),
    /// `postgres://…`: PostgreSQL servers that somebody else runs.
    Postgres(PostgresAddress),
    /// `my:DIR`: a MySQL or MariaDB server of our own, its files in this directory. A relative path stays relative.
    PrivateMysql(PathBuf),
    /// `mysql://…`: MySQL or MariaDB servers that somebody else runs.
    Mysql(MysqlAddress),
    /// `oracle://…`: Oracle databases that somebody else runs.
    Oracle(OracleAddress),
}

impl TargetAddress {
    /// The directory that is named.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::Directory(path) | Self::PrivateCluster(path) | Self::PrivateMysql(path) => Some(path),
            Self::Simulated(_) | Self::Postgres(_) | Self::Mysql(_) | Self::Oracle(_) => None,
        }
    }

    /// Whether time passes there only in the simulation.
    pub fn has_simulated_time(&self) -> bool {
        matches!(self, Self::Simulated(pairs) if pairs.iter().any(|(key, value)| key == "clock" && value == "simulated"))
    }

    /// Whether load there lands on a database server.
    pub fn is_server(&self) -> bool {
        !matches!(self, Self::Directory(_) | Self::Simulated(_))
    }

    /// Whether that server is PostgreSQL.
    pub fn is_postgres(&self) -> bool {
        matches!(self, Self::PrivateCluster(_) | Self::Postgres(_))
    }

    /// Whether that server is Oracle.
    pub fn is_oracle(&self) -> bool {
        matches!(self, Self::Oracle(_))
    }

    /// Whether that server is one of our own.
    pub fn is_private_server(&self) -> bool {
        matches!(self, Self::PrivateCluster(_) | Self::PrivateMysql(_))
    }
}

impl FromStr for TargetAddress {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = |problem| Err(ConfigError::Target(problem));
        let servers = |problem| ConfigError::Target(TargetProblem::Servers(problem));
        if text.chars().any(char::is_control) {
            return fail(TargetProblem::Unprintable);
        }
        let Some((kind, rest)) = text.split_once(':') else {
            // What has one of these may be `user/password@service` or `host=db password=…`, so it is not repeated.
            let path = (!text.contains(['@', '='])).then(|| text.to_owned());
            return fail(TargetProblem::NoKind { path });
        };
        match kind {
            "dir" | "pg" | "my" if rest.is_empty() => fail(TargetProblem::NoPath { kind: kind.to_owned() }),
            "dir" | "pg" | "my" if rest.starts_with("nfs:") => {
                fail(TargetProblem::NfsDirectory { kind: kind.to_owned() })
            }
            "dir" => Ok(Self::Directory(PathBuf::from(rest))),
            "pg" => Ok(Self::PrivateCluster(PathBuf::from(rest))),
            "postgres" | "postgresql" => {
                let address = text.parse().map_err(|problem| ConfigError::Target(TargetProblem::Postgres(problem)))?;
                Ok(Self::Postgres(address))
            }
            "my" => Ok(Self::PrivateMysql(PathBuf::from(rest))),
            "mysql" | "mariadb" => {
                let address = format!("mysql:{rest}");
                let address = address.parse().map_err(servers)?;
                Ok(Self::Mysql(address))
            }
            "oracle" => Ok(Self::Oracle(text.parse().map_err(servers)?)),
            "sim" => simulated_options(rest).map(Self::Simulated),
            _ if kind.contains(['/', '@', '=']) => fail(TargetProblem::NoKind { path: None }),
            _ => fail(TargetProblem::UnknownKind { kind: kind.to_owned() }),
        }
    }
}

fn simulated_options(text: &str) -> Result<Vec<(String, String)>, ConfigError> {
    let mut options: Vec<(String, String)> = Vec::new();
    for option in text.split(',').map(str::trim).filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            Some((key, value)) if !key.is_empty() && options.iter().all(|(known, _)| known != key) => {
                options.push((key.to_owned(), value.to_owned()));
            }
            _ => return Err(ConfigError::Target(TargetProblem::Option { option: option.to_owned() })),
        }
    }
    Ok(options)
}

/// Prints the address as it is written on the command line, without a password.
impl fmt::Display for TargetAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => write!(f, "dir:{}", path.display()),
            Self::PrivateCluster(path) => write!(f, "pg:{}", path.display()),
            Self::Postgres(address) => address.fmt(f),
            Self::PrivateMysql(path) => write!(f, "my:{}", path.display()),
            Self::Mysql(address) => address.fmt(f),
            Self::Oracle(address) => address.fmt(f),
            Self::Simulated(options) => {
                f.write_str("sim:")?;
                for (index, (key, value)) in options.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma}{key}={value}")?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_targets_of_every_kind() {
        assert_eq!("dir:./data".parse::<TargetAddress>().unwrap(), TargetAddress::Directory("./data".into()));
        assert_eq!("pg:/u01/pg".parse::<TargetAddress>().unwrap(), TargetAddress::PrivateCluster("/u01/pg".into()));
        let address = "postgres://u:p@a,b/d".parse::<TargetAddress>().unwrap();
        assert!(matches!(&address, TargetAddress::Postgres(postgres) if postgres.nodes.len() == 2));
        assert_eq!(address.to_string(), "postgres://u@a,b/d");
        assert_eq!("my:/u01/my".parse::<TargetAddress>().unwrap(), TargetAddress::PrivateMysql("/u01/my".into()));
        let address = "mariadb://u@a:3307,b/d".parse::<TargetAddress>().unwrap();
        assert!(matches!(&address, TargetAddress::Mysql(mysql) if mysql.nodes.len() == 2));
        assert_eq!(address.to_string(), "mysql://u@a:3307,b/d");
        assert!(
            "mysql://u:secret@a/d".parse::<TargetAddress>().is_err_and(|error| !error.to_string().contains("secret"))
        );
        let address = "oracle://slob@scan/orcl?services=2".parse::<TargetAddress>().unwrap();
        assert!(matches!(&address, TargetAddress::Oracle(oracle) if oracle.user == "slob"));
        assert_eq!(address.to_string(), "oracle://slob@scan/orcl?services=2");
        assert_eq!("sim:".parse::<TargetAddress>().unwrap(), TargetAddress::Simulated(Vec::new()));
        assert_eq!("sim:knee=32, cap=5000".parse::<TargetAddress>().unwrap().to_string(), "sim:knee=32,cap=5000");
    }

    #[test]
    fn says_what_to_write_instead() {
        let cases = [
            (
                "/u01/data",
                "`/u01/data` does not say what kind of target it is",
                "for a directory write `dir:/u01/data`",
            ),
            ("scott/tiger@db", "the target does not say what kind it is", "for a directory write `dir:PATH`"),
            ("/u01/a:b", "the target does not say what kind it is", "for a directory write `dir:PATH`"),
            ("host=h password=x", "the target does not say what kind it is", "for a directory write `dir:PATH`"),
            ("password=a:b", "the target does not say what kind it is", "for a directory write `dir:PATH`"),
            (
                "postgres:h",
                "the address of a PostgreSQL server begins with `postgres://`",
                "write `postgres://USER@HOST:PORT/DATABASE`",
            ),
            ("pg:", "the target `pg:` names no directory", "write `pg:PATH`"),
            (
                "disk:/dev/sdb",
                "there is no target of kind `disk`",
                "write `dir:PATH`, `pg:PATH`, `postgres://HOST/DATABASE`, `my:PATH`, `mysql://HOST/DATABASE`, \
                 `oracle://USER@HOST/SERVICE`, or `sim:` for a simulated target",
            ),
            ("dir:", "the target `dir:` names no directory", "write `dir:PATH`"),
            (
                "dir:nfs://filer1/vol",
                "the target `dir:` is a directory of this machine, and `nfs://` is none",
                "name a directory of this machine for control files, and have data and redo laid on the server: `plimsoll slob \
                 setup --target dir:PATH --data-dest nfs://SERVER/EXPORT/DIR --redo-dest nfs://SERVER/EXPORT/DIR`",
            ),
            (
                "my:nfs://filer1/vol",
                "the target `my:` is a directory of this machine, and `nfs://` is none",
                "mount the export, and name the directory of this machine",
            ),
            (
                "sim:knee",
                "`knee` is not an option of a simulated target",
                "write options as `sim:KEY=VALUE,KEY=VALUE`, each key once",
            ),
            (
                "sim:a=1,a=2",
                "`a=2` is not an option of a simulated target",
                "write options as `sim:KEY=VALUE,KEY=VALUE`, each key once",
            ),
        ];
        for (text, message, hint) in cases {
            let error = text.parse::<TargetAddress>().unwrap_err();
            assert_eq!((error.to_string().as_str(), error.hint().as_deref()), (message, Some(hint)));
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(text in "(dir|sim|pg|postgres|):?(//)?[ -~]{0,30}") {
            if let Ok(address) = text.parse::<TargetAddress>() {
                let mut expected = address.clone();
                if let TargetAddress::Postgres(postgres) = &mut expected {
                    postgres.password = None;
                }
                prop_assert_eq!(address.to_string().parse::<TargetAddress>().unwrap(), expected);
            }
        }

        #[test]
        fn never_panics_on_any_text(text in ".*") {
            let _ = text.parse::<TargetAddress>();
        }
    }
}
