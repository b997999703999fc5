//! libpq's password file: lines of `host:port:database:user:password` ("The Password File" in PostgreSQL's manual).

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::login::is_usual_socket_directory;
use model::config::Secret;
use model::config::postgres::{DEFAULT_PORT, PostgresNode};

/// A line of the file. The first four fields may be `*`, for anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Host, port, database, user; `None` for any.
    fields: [Option<String>; 4],
    password: Secret,
}

/// The entries of the file at `path`. A file that others could read is not used, and `notes` say so; that there is none is
/// no news.
pub(super) fn read(path: &Path, notes: &mut Vec<String>) -> Vec<Entry> {
    let mut ignored = |why: String| notes.push(format!("the password file `{}` is not used: {why}", path.display()));
    match contents(path) {
        Ok(Ok(text)) => text.split(|byte| *byte == b'\n').filter_map(entry).collect(),
        Ok(Err(why)) => {
            ignored(why.to_owned());
            Vec::new()
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Vec::new(),
        Err(error) => {
            ignored(error.to_string());
            Vec::new()
        }
    }
}

/// What stands in the file, or why nobody should trust it.
fn contents(path: &Path) -> io::Result<Result<Vec<u8>, &'static str>> {
    // Looked at before it is opened: opening a pipe would wait for a writer.
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Ok(Err("it is not a plain file"));
    }
    if metadata.mode() & 0o077 != 0 {
        return Ok(Err("group or others may read it; `chmod 600` it"));
    }
    let mut text = Vec::new();
    File::open(path)?.read_to_end(&mut text)?;
    Ok(Ok(text))
}

/// The password for this server, database and user: that of the first line that fits.
pub(super) fn find(entries: &[Entry], node: &PostgresNode, database: &str, user: &str) -> Option<Secret> {
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
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn found(text: &str, host: &str, port: u16, database: &str, user: &str) -> Option<String> {
        let entries: Vec<Entry> = text.lines().filter_map(|line| entry(line.as_bytes())).collect();
        let node = PostgresNode { host: host.to_owned(), port: Some(port) };
        find(&entries, &node, database, user).map(|password| password.expose().to_owned())
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
        assert!(read(&path, &mut notes).is_empty() && notes.is_empty(), "a file that is not there is no news");
        fs::write(&path, "*:*:*:*:Tiger7\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!((read(&path, &mut notes).len(), notes.len()), (1, 0));
        for mode in [0o640, 0o604, 0o620] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(read(&path, &mut notes).is_empty(), "{mode:o}");
        }
        assert_eq!(notes.len(), 3);
        assert!(notes[0].ends_with("is not used: group or others may read it; `chmod 600` it"), "{notes:?}");
        assert!(read(folder.path(), &mut notes).is_empty());
        assert!(notes[3].ends_with("it is not a plain file"), "{notes:?}");
    }
}
