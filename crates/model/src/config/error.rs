//! Everything that can be wrong with what the user asked for, in words.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{fmt, io};

use miette::Diagnostic;

use crate::units::Bytes;

use super::fleet::FleetProblem;
use super::group::GroupProblem;
use super::host::HostProblem;
use super::io::IoProblem;
use super::mysql::MysqlAddress;
use super::net::NetProblem;
use super::oracle::OracleAddress;
use super::orion::OrionProblem;
use super::parameter::{Meant, Role, meant_by};
use super::postgres::{AddressProblem, PostgresAddress};
use super::slob::MAX_SESSIONS;
use super::vary::MAX_STEPS;
use super::{Key, Origin, ServerAddressProblem};

/// What is wrong with what the user asked for. The message says what, where and why; [`Self::hint`] what to do next.
/// Neither ever holds a password.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum ConfigError {
    /// The parameter file cannot be opened or read.
    #[error("cannot read parameter file `{}`: {reason}", path.display())]
    #[diagnostic(help("give the path of a slob.conf, or leave `-c` out to use the defaults"))]
    Unreadable { path: PathBuf, reason: io::Error },

    /// The parameter file is too large to be one.
    #[error("`{}` is not a parameter file: it is larger than {limit}", path.display())]
    #[diagnostic(help("give the path of a slob.conf"))]
    TooLarge { path: PathBuf, limit: Bytes },

    /// A line of the parameter file cannot be understood without a shell, or not at all.
    #[error("{origin}: {problem}")]
    #[diagnostic(forward(problem))]
    Syntax { origin: Origin, problem: SyntaxProblem },

    /// No parameter has this name.
    #[error("{origin}: unknown parameter `{name}`")]
    #[diagnostic(help("{}", hint_for_unknown(name, origin)))]
    UnknownParameter { name: String, origin: Origin },

    /// A value that its parameter does not accept.
    #[error("{origin}: `{key}={value}` is not {}", key.parameter().accepted)]
    #[diagnostic(help("`{key}`: {}", key.parameter().meaning))]
    BadValue { key: Key, value: String, origin: Origin },

    /// A value on the command line that is not one printable line.
    #[error("the value of `{key}` holds a character that is not printable text")]
    #[diagnostic(help("type the value again; it may have been pasted with an invisible character"))]
    Unprintable { key: Key },

    /// Updates and scans leave less than nothing for reads.
    #[error(
        "`UPDATE_PCT={update_pct}` ({update_origin}) and `SCAN_PCT={scan_pct}` ({scan_origin}) are more than 100 together"
    )]
    #[diagnostic(help("{}", hint_for_percentages(*update_pct, *scan_pct)))]
    Percentages { update_pct: u8, update_origin: Origin, scan_pct: u8, scan_origin: Origin },

    /// Scans without a table to scan.
    #[error("`SCAN_PCT={scan_pct}` ({origin}) asks for scans, but `SCAN_TABLE_SZ` is 0 ({table_origin})")]
    #[diagnostic(help("give `SCAN_TABLE_SZ` a size, or set `SCAN_PCT=0`"))]
    NothingToScan { scan_pct: u8, origin: Origin, table_origin: Origin },

    /// The shortest think time is longer than the longest.
    #[error("`THINK_TM_MIN={min}` ({min_origin}) is more than `THINK_TM_MAX={max}` ({max_origin})")]
    #[diagnostic(help("exchange the two"))]
    ThinkTime { min: String, min_origin: Origin, max: String, max_origin: Origin },

    /// A hot spot to which no operation goes, or that has no blocks.
    #[error("`{key}=0` ({origin}) with `DO_HOTSPOT=TRUE` ({switch_origin}) makes no hot spot")]
    #[diagnostic(help("give it a value from 1 on, or set `DO_HOTSPOT=FALSE`"))]
    NoHotSpot { key: Key, origin: Origin, switch_origin: Origin },

    /// The hot spot lies partly outside the data.
    #[error("the hot spot ends at block {end_block}, but `SCALE` has {scale_blocks} blocks for each schema")]
    #[diagnostic(help("lower `HOTSPOT_OFFSET_MB` or `HOTSPOT_MB`"))]
    HotSpotOutside { end_block: u64, scale_blocks: u64 },

    /// The hot spot cannot hold one operation.
    #[error("the hot spot has {hot_blocks} blocks, but one operation touches {work_unit} (`WORK_UNIT`)")]
    #[diagnostic(help("raise `HOTSPOT_MB` or lower `WORK_UNIT`"))]
    HotSpotTooSmall { hot_blocks: u64, work_unit: u32 },

    /// A schema cannot hold one operation.
    #[error("one operation touches {work_unit} blocks (`WORK_UNIT`), but `SCALE` has {scale_blocks} for each schema")]
    #[diagnostic(help("lower `WORK_UNIT` or raise `SCALE`"))]
    WorkUnitTooLarge { work_unit: u32, scale_blocks: u64 },

    /// More sessions than there may be.
    #[error("{schemas} schemas with {threads} threads each are more than {MAX_SESSIONS} sessions")]
    #[diagnostic(help("{}", fewer_sessions(*threads)))]
    TooManySessions { schemas: u32, threads: u32 },

    /// A word on the command line that is neither a number nor KEY=VALUE.
    #[error("`{text}` is neither a number of schemas nor KEY=VALUE")]
    #[diagnostic(help("write a number such as `8`, or a parameter such as `UPDATE_PCT=20`"))]
    Argument { text: String },

    /// A number of schemas that is out of range.
    #[error("`{text}` is not a number of schemas")]
    #[diagnostic(help("write a number from 1 to {MAX_SESSIONS}"))]
    Schemas { text: String },

    /// A tag that is not KEY=VALUE.
    #[error("`{text}` is not a tag")]
    #[diagnostic(help("write KEY=VALUE such as `vm=d8s`, with a key of letters, digits, `_`, `.` and `-`"))]
    Tag { text: String },

    /// An arrival process that does not exist.
    #[error("`{text}` is not a kind of arrival")]
    #[diagnostic(help("write `poisson` or `fixed`"))]
    Arrival { text: String },

    /// An address that names no target.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Target(TargetProblem),

    /// A sweep that cannot be made.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Vary(VaryProblem),

    /// A load on raw storage that cannot be made.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(IoProblem),

    /// What is wrong with a load on processors.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Host(HostProblem),

    /// ORION's command line or its list of devices.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Orion(OrionProblem),

    /// A load on a network that cannot be made.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Net(NetProblem),

    /// A place in a fleet that cannot be used.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Fleet(FleetProblem),
    /// A disk group that cannot be.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Group(GroupProblem),
}

/// Why a line of a parameter file cannot be read as text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum SyntaxProblem {
    /// The line is nothing that may stand in a parameter file.
    #[error("the line that begins with `{word}` is neither KEY=VALUE nor a comment")]
    #[diagnostic(help("the file is read as text and never executed: keep settings and comments only"))]
    NotASetting { word: String },
    /// Blanks beside the equal sign, which a shell takes for a command.
    #[error("there is a space beside the `=` of `{name}`")]
    #[diagnostic(help("write KEY=VALUE without spaces"))]
    SpaceAroundEquals { name: String },
    /// The line ends within quotes.
    #[error("the quotes of `{name}` are not closed on this line")]
    #[diagnostic(help("close the quotes, or escape a quote that belongs to the value with `\\`"))]
    OpenQuote { name: String },
    /// The line ends in a backslash.
    #[error("the value of `{name}` goes on after the end of the line")]
    #[diagnostic(help("write the whole value on one line"))]
    Continued { name: String },
    /// Something that only a shell replaces: a command, a variable, a home directory.
    #[error("the value of `{name}` holds `{sign}`, which only a shell could replace")]
    #[diagnostic(help(
        "write the value itself, since the file is never executed; if the character is meant, use single quotes"
    ))]
    Substitution { name: String, sign: String },
    /// A character that makes a shell do something else than assign.
    #[error("the value of `{name}` holds `{operator}` outside quotes, which means something else to a shell")]
    #[diagnostic(help("put the value in single quotes"))]
    ShellOperator { name: String, operator: char },
    /// A second word after the value.
    #[error("something that is not a comment follows the value of `{name}`")]
    #[diagnostic(help("put a value with spaces in quotes, and one setting on a line"))]
    TextAfterValue { name: String },
    /// A control character, or bytes that are not UTF-8.
    #[error("the value of `{name}` holds a character that is not printable text")]
    #[diagnostic(help("save the file as UTF-8 and type the value again"))]
    Unprintable { name: String },
}

/// Why a text is not the address of a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum TargetProblem {
    /// The text does not begin with a kind and a colon. The path is absent where the text may hold a password.
    #[error("{} does not say what kind {}", shown_path(path), if path.is_some() { "of target it is" } else { "it is" })]
    #[diagnostic(help("for a directory write `dir:{}`", path.as_deref().unwrap_or("PATH")))]
    NoKind { path: Option<String> },
    /// A kind of target that nobody knows.
    #[error("there is no target of kind `{kind}`")]
    #[diagnostic(help(
        "write `dir:PATH`, `pg:PATH`, `postgres://HOST/DATABASE`, `my:PATH`, `mysql://HOST/DATABASE`, \
         `oracle://USER@HOST/SERVICE`, or `sim:` for a simulated target"
    ))]
    UnknownKind { kind: String },
    /// A directory without a path.
    #[error("the target `{kind}:` names no path")]
    #[diagnostic(help("write `{kind}:PATH`"))]
    NoPath { kind: String },
    /// An address of NFS where a directory of this machine is wanted: it would be taken for a relative path.
    #[error("the target `{kind}:` is a directory of this machine, and `nfs://` is none")]
    #[diagnostic(help("{}", if kind == "dir" { DIRECTORY_AND_SERVER } else { MOUNTED }))]
    NfsDirectory { kind: String },
    /// Not the address of PostgreSQL servers.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Postgres(AddressProblem),
    /// Not the address of MySQL, MariaDB or Oracle servers.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Servers(ServerAddressProblem),
    /// An option of the simulated target that is not KEY=VALUE, or that is there twice.
    #[error("`{option}` is not an option of a simulated target")]
    #[diagnostic(help("write options as `sim:KEY=VALUE,KEY=VALUE`, each key once"))]
    Option { option: String },
    /// A control character in the address.
    #[error("the target's address holds a character that is not printable text")]
    Unprintable,
}

/// Why a sweep cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum VaryProblem {
    /// Not KEY=VALUE,VALUE.
    #[error("`{text}` is not a parameter with values")]
    #[diagnostic(help("write KEY=VALUE,VALUE such as `WORK_UNIT=4,16,64`"))]
    NotAList { text: String },
    /// A parameter that must stay the same through a sweep.
    #[error("`{key}` cannot vary within a sweep")]
    #[diagnostic(help("{}", why_fixed(*key)))]
    Fixed { key: Key },
    /// A value that stands twice in its list.
    #[error("`{value}` is listed twice")]
    #[diagnostic(help("give each value once"))]
    Twice { value: String },
    /// A range that goes down.
    #[error("the range from {first} to {last} has nothing in it")]
    #[diagnostic(help("write `{last}..{first}`"))]
    Down { first: String, last: String },
    /// A range after numbers that do not double.
    #[error("{first} is not the double of {before}, so it is not clear what `…` stands for")]
    #[diagnostic(help("write every number, or double them as in `1,2,…,64`"))]
    NoDoubling { before: String, first: String },
    /// An end of a range that cannot be doubled.
    #[error("`{text}` cannot begin or end a range")]
    #[diagnostic(help(
        "a range doubles from whole number to whole number, from 1 on: `1..64`; write other values one by one"
    ))]
    NotWhole { text: String },
    /// An item of a thread list that is not a number of threads.
    #[error("`{text}` is not a number of threads")]
    #[diagnostic(help("write numbers from 1 to {MAX_SESSIONS} such as `1,2,4,8`, or `1..64` for doublings"))]
    Threads { text: String },
    /// A parameter that is given two lists.
    #[error("`{key}` varies twice")]
    #[diagnostic(help("put all its values into one list"))]
    AxisTwice { key: Key },
    /// The product of all lists is too large.
    #[error("the sweep would have more than {MAX_STEPS} steps")]
    #[diagnostic(help("vary less at a time"))]
    TooManySteps,
}

const MOUNTED: &str = "mount the export, and name the directory of this machine";
const DIRECTORY_AND_SERVER: &str = "name a directory of this machine for control files, and have data and redo laid on the \
    server: `plimsoll slob setup --target dir:PATH --data-dest nfs://SERVER/EXPORT/DIR --redo-dest nfs://SERVER/EXPORT/DIR`";

fn shown_path(path: &Option<String>) -> String {
    path.as_ref().map_or_else(|| "the target".to_owned(), |path| format!("`{path}`"))
}

impl ConfigError {
    /// What to do next, if there is something to say that the message does not.
    pub fn hint(&self) -> Option<String> {
        crate::hint(self)
    }
}

fn hint_for_unknown(name: &str, origin: &Origin) -> String {
    match (meant_by(name), origin) {
        (Some(Meant::OtherCase(key)), _) => format!("did you mean `{key}`? Names are in capitals, as in a shell"),
        (Some(Meant::Retired(key)), _) => format!("SLOB 2.5 has `{key}` in its place; values may mean something else"),
        (Some(Meant::Misspelt(key)), _) => format!("did you mean `{key}`?"),
        (None, Origin::CommandLine) => "`--help` lists the parameters; a tag is given as `--tag KEY=VALUE`".to_owned(),
        (None, _) => "`--help` lists the parameters; put a `#` before the line if it is not meant for this".to_owned(),
    }
}

fn fewer_sessions(threads: u32) -> String {
    let most = MAX_SESSIONS / threads.max(1);
    let schemas = if most == 1 { "schema" } else { "schemas" };
    format!("use at most {most} {schemas}, or fewer threads")
}

fn hint_for_percentages(update_pct: u8, scan_pct: u8) -> String {
    if update_pct > 100 || scan_pct > 100 {
        return "write percentages from 0 to 100".to_owned();
    }
    let share = u32::from(100 - update_pct) * u32::from(scan_pct) / 100;
    format!(
        "SLOB counts SCAN_PCT in the operations that are not updates, here it counts in all: for SLOB's load write \
         `SCAN_PCT={share}`"
    )
}

fn why_fixed(key: Key) -> &'static str {
    match key.parameter().role {
        Role::Threads => "use `--threads 1,2,4,8`",
        Role::Length => "steps are compared, so they have the same length",
        Role::DataSet => "it belongs to the data set: set up another one and run again",
        Role::Load | Role::Script | Role::Connection => "only what shapes the load can vary",
    }
}

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
        let address = "postgres://u@a,b/d".parse::<TargetAddress>().unwrap();
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
            ("pg:", "the target `pg:` names no path", "write `pg:PATH`"),
            (
                "disk:/dev/sdb",
                "there is no target of kind `disk`",
                "write `dir:PATH`, `pg:PATH`, `postgres://HOST/DATABASE`, `my:PATH`, `mysql://HOST/DATABASE`, \
                 `oracle://USER@HOST/SERVICE`, or `sim:` for a simulated target",
            ),
            ("dir:", "the target `dir:` names no path", "write `dir:PATH`"),
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
                prop_assert_eq!(address.to_string().parse::<TargetAddress>().unwrap(), address);
            }
        }

        #[test]
        fn never_panics_on_any_text(text in ".*") {
            let _ = text.parse::<TargetAddress>();
        }
    }
}
