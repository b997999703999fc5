//! As whom to connect and how: what the address leaves open comes from the environment, as libpq takes it.

use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) use crate::Environment;
use crate::ServerError;
use model::config::postgres::{DEFAULT_PORT, PostgresAddress, PostgresNode, TlsMode, TlsOptions};
use model::config::{Secret, SecretFile, SecretFileProblem};

/// Longest wait for a connection where nobody says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Where servers put their sockets: Debian and Red Hat, their older releases, and PostgreSQL's own sources.
const SOCKET_DIRECTORIES: [&str; 3] = ["/run/postgresql", "/var/run/postgresql", "/tmp"];

/// Where a password came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PasswordSource {
    /// `PGPASSWORD`.
    Variable,
    File(PathBuf),
}

/// One server with the password for it, if there is one.
#[derive(Debug, Clone)]
pub(super) struct Server {
    /// Host and port are named.
    pub(super) node: PostgresNode,
    pub(super) password: Option<(Secret, PasswordSource)>,
}

/// All that is needed to connect, with nothing left open.
#[derive(Debug, Clone)]
pub(super) struct Login {
    pub(super) servers: Vec<Server>,
    pub(super) user: String,
    pub(super) database: String,
    pub(super) connect_timeout: Duration,
    pub(super) tls: TlsOptions,
    /// The directory in which certificates and keys are looked for where none are named: `~/.postgresql`.
    pub(super) certificates: Option<PathBuf>,
    pub(super) notes: Vec<String>,
}

impl Login {
    /// What `address` asks for, in `environment`.
    ///
    /// # Errors
    /// When a variable cannot be understood, or nobody says who the user is.
    pub(super) fn of(address: &PostgresAddress, environment: &Environment<'_>) -> Result<Self, ServerError> {
        let user = address.user.clone().or_else(|| environment.text("PGUSER")).or_else(environment.os_user);
        let user = user.ok_or_else(|| ServerError::Unfit {
            what: "the address names no role, and the name of the user who runs this is not known".to_owned(),
            hint: Some("name the role: `postgres://USER@HOST/DATABASE`, or set PGUSER".to_owned()),
        })?;
        let database = address.database.clone().or_else(|| environment.text("PGDATABASE"));
        let database = database.unwrap_or_else(|| user.clone());
        let mut notes = Vec::new();
        let password_file =
            environment.text("PGPASSFILE").map(PathBuf::from).or_else(|| environment.at_home(".pgpass"));
        let in_variable = environment.text("PGPASSWORD");
        let password = in_variable.map(|password| (Secret::new(password), PasswordSource::Variable));
        let entries = match &password_file {
            Some(path) if password.is_none() => read_password_file(path, &mut notes),
            _ => Vec::new(),
        };
        let server = |node: PostgresNode| {
            let of_file = || {
                let found = find_password_file(&entries, &node, &database, &user)?;
                Some((found, PasswordSource::File(password_file.clone()?)))
            };
            Server { password: password.clone().or_else(of_file), node }
        };
        Ok(Self {
            servers: nodes(address, environment)?.into_iter().map(server).collect(),
            connect_timeout: connect_timeout(address, environment)?,
            tls: tls(&address.tls, environment)?,
            certificates: environment.at_home(".postgresql"),
            user,
            database,
            notes,
        })
    }
}

fn bad_variable(name: &str, accepted: &str) -> ServerError {
    ServerError::Unfit {
        what: format!("the value of {name} in the environment is not {accepted}"),
        hint: Some("correct or unset it; what the address names counts before it".to_owned()),
    }
}

/// The servers of the address, completed: `PGHOST` and `PGPORT` count only where it names no host and no port at all.
fn nodes(address: &PostgresAddress, environment: &Environment<'_>) -> Result<Vec<PostgresNode>, ServerError> {
    let mut nodes = address.nodes.clone();
    if nodes.iter().all(|node| node.host.is_empty())
        && let Some(hosts) = environment.text("PGHOST")
    {
        let port = nodes.first().and_then(|node| node.port);
        nodes = PostgresNode::list(&hosts, "").map_err(|_| bad_variable("PGHOST", "a list of hosts"))?;
        nodes.iter_mut().for_each(|node| node.port = port);
    }
    if nodes.iter().all(|node| node.port.is_none())
        && let Some(ports) = environment.text("PGPORT")
    {
        let hosts: Vec<&str> = nodes.iter().map(|node| node.host.as_str()).collect();
        nodes = PostgresNode::list(&hosts.join(","), &ports)
            .map_err(|_| bad_variable("PGPORT", "a port, or one for each host"))?;
    }
    for node in &mut nodes {
        let port = *node.port.get_or_insert(DEFAULT_PORT);
        if node.host.is_empty() {
            node.host = default_socket_directory(port).to_owned();
        }
    }
    Ok(nodes)
}

/// Where a server listens, or else where one would.
fn default_socket_directory(port: u16) -> &'static str {
    let has_socket = |directory: &&&str| socket_path(directory, port).exists();
    let exists = |directory: &&&str| Path::new(directory).is_dir();
    let found = SOCKET_DIRECTORIES.iter().find(has_socket).or_else(|| SOCKET_DIRECTORIES.iter().find(exists));
    found.unwrap_or(&SOCKET_DIRECTORIES[0])
}

/// The socket of the server with this port.
pub(super) fn socket_path(directory: &str, port: u16) -> PathBuf {
    Path::new(directory).join(format!(".s.PGSQL.{port}"))
}

/// Whether sockets are usually in this directory, so that libpq takes it for `localhost` in password files.
pub(super) fn is_usual_socket_directory(directory: &str) -> bool {
    SOCKET_DIRECTORIES.contains(&directory)
}

fn connect_timeout(address: &PostgresAddress, environment: &Environment<'_>) -> Result<Duration, ServerError> {
    let seconds = match (address.connect_timeout_s, environment.text("PGCONNECT_TIMEOUT")) {
        (Some(seconds), _) => i64::from(seconds),
        (None, Some(text)) => {
            let seconds: Result<i32, _> = text.trim().parse();
            i64::from(seconds.map_err(|_| bad_variable("PGCONNECT_TIMEOUT", "a whole number of seconds"))?)
        }
        (None, None) => 0,
    };
    // To libpq nought and less mean to wait for ever; that nobody should.
    Ok(u64::try_from(seconds).ok().filter(|s| *s > 0).map_or(CONNECT_TIMEOUT, Duration::from_secs))
}

fn tls(asked: &TlsOptions, environment: &Environment<'_>) -> Result<TlsOptions, ServerError> {
    let mode_of_variable = || match environment.text("PGSSLMODE") {
        None => Ok(None),
        Some(name) => match TlsMode::from_name(&name) {
            None => Err(bad_variable("PGSSLMODE", "one of disable, allow, prefer, require, verify-ca and verify-full")),
            mode => Ok(mode),
        },
    };
    let file =
        |named: &Option<PathBuf>, variable| named.clone().or_else(|| environment.text(variable).map(PathBuf::from));
    Ok(TlsOptions {
        mode: asked.mode.map_or_else(mode_of_variable, |mode| Ok(Some(mode)))?,
        root_certificates: asked
            .root_certificates
            .clone()
            .or_else(|| environment.text("PGSSLROOTCERT").map(|roots| roots.as_str().into())),
        certificate: file(&asked.certificate, "PGSSLCERT"),
        key: file(&asked.key, "PGSSLKEY"),
    })
}

/// A line of the file. The first four fields may be `*`, for anything.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    /// Host, port, database, user; `None` for any.
    fields: [Option<String>; 4],
    password: Secret,
}

/// The entries of the file at `path`. A file that others could read is not used, and `notes` say so; that there is none is
/// no news.
fn read_password_file(path: &Path, notes: &mut Vec<String>) -> Vec<Entry> {
    let read = SecretFile::read(path)
        .and_then(|file| Ok(file.secrets()?.split(|byte| *byte == b'\n').filter_map(entry).collect()));
    read.unwrap_or_else(|why: SecretFileProblem| {
        if !why.is_missing() {
            notes.push(format!("the password file `{}` is not used: {why}", path.display()));
        }
        Vec::new()
    })
}

/// The password for this server, database and user: that of the first line that fits.
fn find_password_file(entries: &[Entry], node: &PostgresNode, database: &str, user: &str) -> Option<Secret> {
    let port = node.port.unwrap_or(DEFAULT_PORT).to_string();
    let hosts: &[&str] = if is_usual_socket_directory(&node.host) { &[&node.host, "localhost"] } else { &[&node.host] };
    let fits = |entry: &&Entry| {
        let accepts = |field: &Option<String>, value: &str| field.as_ref().is_none_or(|field| field == value);
        let [host, its_port, its_database, its_user] = &entry.fields;
        hosts.iter().any(|name| accepts(host, name))
            && accepts(its_port, &port)
            && accepts(its_database, database)
            && accepts(its_user, user)
    };
    // An empty password is none, as for libpq.
    entries.iter().find(fits).map(|entry| entry.password.clone()).filter(|password| !password.expose().is_empty())
}

fn entry(line: &[u8]) -> Option<Entry> {
    let line = std::str::from_utf8(line).ok()?;
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.starts_with('#') {
        return None;
    }
    let mut fields = fields(line).into_iter();
    let mut field = || {
        let (raw, text) = fields.next()?;
        // An escaped asterisk is one.
        Some(if raw == "*" { None } else { Some(text) })
    };
    let places = [field()?, field()?, field()?, field()?];
    let (_, password) = fields.next()?;
    Some(Entry { fields: places, password: Secret::new(password) })
}

/// The fields of a line: as they stand there, and without their `\`.
fn fields(line: &str) -> Vec<(String, String)> {
    let mut fields = vec![(String::new(), String::new())];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let last = fields.len() - 1;
        let (raw, text) = &mut fields[last];
        match character {
            ':' => fields.push((String::new(), String::new())),
            '\\' => {
                raw.push(character);
                if let Some(escaped) = characters.next() {
                    raw.push(escaped);
                    text.push(escaped);
                }
            }
            _ => {
                raw.push(character);
                text.push(character);
            }
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn found(text: &str, host: &str, port: u16, database: &str, user: &str) -> Option<String> {
        let entries: Vec<Entry> = text.lines().filter_map(|line| entry(line.as_bytes())).collect();
        let node = PostgresNode { host: host.to_owned(), port: Some(port) };
        find_password_file(&entries, &node, database, user).map(|password| password.expose().to_owned())
    }

    #[test]
    fn the_first_line_that_fits_counts() {
        let text = "# a comment:*:*:*:no\n\nbroken line\ndb1:5432:bench:scott:one\n*:*:*:scott:two\ndb\\:2:*:*:*:three";
        assert_eq!(found(text, "db1", 5432, "bench", "scott").as_deref(), Some("one"));
        assert_eq!(found(text, "db1", 5433, "bench", "scott").as_deref(), Some("two"));
        assert_eq!(found(text, "db:2", 1, "x", "y").as_deref(), Some("three"));
        assert_eq!(found(text, "db1", 5432, "bench", "mary"), None);
    }

    #[test]
    fn a_password_may_hold_colons_and_backslashes_if_escaped() {
        assert_eq!(found("*:*:*:*:a\\:b\\\\c", "h", 1, "d", "u").as_deref(), Some("a:b\\c"));
        assert_eq!(found("*:*:*:*:a:b", "h", 1, "d", "u").as_deref(), Some("a"));
        assert_eq!(found("\\*:*:*:*:a", "h", 1, "d", "u"), None);
        assert_eq!(found("*:*:*:*:", "h", 1, "d", "u"), None);
        assert_eq!(found("*:*:*:*:windows\r", "h", 1, "d", "u").as_deref(), Some("windows"));
    }

    #[test]
    fn a_usual_socket_is_localhost_and_another_is_its_directory() {
        let text = "localhost:*:*:*:local\n/u01/run:*:*:*:other";
        assert_eq!(found(text, "/run/postgresql", 5432, "d", "u").as_deref(), Some("local"));
        assert_eq!(found(text, "/u01/run", 5432, "d", "u").as_deref(), Some("other"));
    }

    #[test]
    fn a_file_that_others_may_read_is_not_used_and_a_note_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pgpass");
        let mut notes = Vec::new();
        assert!(
            read_password_file(&path, &mut notes).is_empty() && notes.is_empty(),
            "a file that is not there is no news"
        );
        fs::write(&path, "*:*:*:*:Tiger7\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!((read_password_file(&path, &mut notes).len(), notes.len()), (1, 0));
        for mode in [0o640, 0o604, 0o620] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(read_password_file(&path, &mut notes).is_empty(), "{mode:o}");
        }
        assert_eq!(notes.len(), 3);
        assert!(notes[0].ends_with("is not used: group or others may read it; `chmod 600` it"), "{notes:?}");
        assert!(read_password_file(folder.path(), &mut notes).is_empty());
        assert!(notes[3].ends_with("it is not a plain file"), "{notes:?}");
    }
}
