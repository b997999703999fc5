//! `oranfstab`: which servers Oracle's Direct NFS client reaches over which paths.
//!
//! Sources: Oracle Database Installation Guide for Linux, "Creating an oranfstab File for Direct NFS Client" and "Configurable
//! Attributes for oranfstab".

use std::fmt;

use super::super::{ServerAddressProblem, ServerNode, nodes};
use super::address::{MAX_PATHS, MAX_TIMEOUT_S, NfsAddress, NfsVersion, checked_path, is_below};

/// More than any such file has.
const MAX_FILE_BYTES: usize = 1 << 20;

/// The words that may stand before a colon.
const KEYS: [&str; 15] = [
    "server",
    "local",
    "path",
    "export",
    "mount",
    "nfs_version",
    "security_default",
    "security",
    "mnt_timeout",
    "dontroute",
    "management",
    "community",
    "uid",
    "gid",
    "nfs_port",
];

/// What an `oranfstab` says, line by line understood or refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oranfstab {
    servers: Vec<Server>,
    /// What was read and is not done here, in the order of the lines.
    pub notes: Vec<OranfstabNote>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Server {
    line: usize,
    name: String,
    local: Vec<ServerNode>,
    paths: Vec<ServerNode>,
    exports: Vec<Export>,
    mount_timeout_s: Option<u32>,
    version: NfsVersion,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Export {
    line: usize,
    export: String,
    mount: Option<String>,
}

/// Something in the file that has no effect here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OranfstabNote {
    /// Its line, from 1.
    pub line: usize,
    /// What it says, and why it has no effect.
    pub text: String,
}

impl fmt::Display for OranfstabNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.text)
    }
}

/// Why a file is no `oranfstab` that can be followed, or has nothing for a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct OranfstabProblem {
    line: Option<usize>,
    message: String,
    hint: String,
}

impl fmt::Display for OranfstabProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line} of the oranfstab: {}", self.message),
            None => write!(f, "the oranfstab {}", self.message),
        }
    }
}

impl OranfstabProblem {
    /// What to do about it.
    pub fn hint(&self) -> String {
        self.hint.clone()
    }

    fn at<T>(line: usize, message: impl Into<String>, hint: impl Into<String>) -> Result<T, Self> {
        Err(Self { line: Some(line), message: message.into(), hint: hint.into() })
    }

    fn whole<T>(message: impl Into<String>, hint: impl Into<String>) -> Result<T, Self> {
        Err(Self { line: None, message: message.into(), hint: hint.into() })
    }
}

impl Oranfstab {
    /// Reads the text of such a file.
    ///
    /// # Errors
    /// What is wrong, with its line. A word that is unknown is one: it may change where data go.
    pub fn parse(text: &str) -> Result<Self, OranfstabProblem> {
        if text.len() > MAX_FILE_BYTES {
            return OranfstabProblem::whole("is larger than 1 MiB", "give the file that Direct NFS reads");
        }
        let mut tab = Self { servers: Vec::new(), notes: Vec::new() };
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.split('#').next().unwrap_or_default();
            if text.chars().any(|sign| sign.is_control() && sign != '\t') {
                return OranfstabProblem::at(line, "holds a character that is not printable", "write plain text");
            }
            for (key, value) in pairs(line, text)? {
                tab.take_in(line, key, value)?;
            }
        }
        if tab.servers.is_empty() {
            return OranfstabProblem::whole("names no server", "begin each server with `server: NAME`");
        }
        for server in &tab.servers {
            server.check()?;
        }
        Ok(tab)
    }

    /// The address of a file by its path under the kernel's mount, as the database has it, such as `/u02/oradata/system01.dbf`.
    ///
    /// # Errors
    /// When no mount of the file is above the path, or two servers have the same.
    pub fn address(&self, file: &str) -> Result<NfsAddress, OranfstabProblem> {
        let file = match checked_path(file) {
            Ok(file) => file,
            Err(problem) => return of_address(None, &problem),
        };
        let mounts = self.servers.iter().flat_map(|server| server.exports.iter().map(move |export| (server, export)));
        let above = mounts.filter_map(|(server, export)| Some((server, export, export.mount.as_deref()?)));
        let mut above: Vec<_> = above.filter(|(_, _, mount)| is_below(&file, mount)).collect();
        above.sort_by_key(|(_, _, mount)| std::cmp::Reverse(mount.len()));
        let Some((server, export, mount)) = above.first() else {
            return OranfstabProblem::whole(
                format!("has no mount above `{file}`"),
                "give the path that the database uses, below a `mount:` of the file",
            );
        };
        if let Some((_, other, _)) = above.get(1).filter(|(_, _, other)| other == mount) {
            return OranfstabProblem::at(
                other.line,
                format!("`{mount}` is mounted a second time, after line {}", export.line),
                "leave one of the two lines",
            );
        }
        let below = if *mount == "/" { file.as_str() } else { &file[mount.len()..] };
        let root = if export.export == "/" { "" } else { export.export.as_str() };
        let node = ServerNode { host: server.name.clone(), port: None };
        let mut address = NfsAddress::plain(node, format!("{root}{below}"));
        address.paths.clone_from(&server.paths);
        address.local.clone_from(&server.local);
        address.export = Some(export.export.clone());
        address.connect_timeout_s = server.mount_timeout_s;
        address.version = server.version;
        if let Err(problem) = address.check() {
            return of_address(Some(server.line), &problem);
        }
        Ok(address)
    }

    fn note(&mut self, line: usize, text: impl Into<String>) {
        self.notes.push(OranfstabNote { line, text: text.into() });
    }

    fn take_in(&mut self, line: usize, key: &str, value: &str) -> Result<(), OranfstabProblem> {
        if key == "server" {
            if let Some(earlier) = self.servers.iter().find(|server| server.name == value) {
                let message = format!("the server `{value}` stands in line {} already", earlier.line);
                return OranfstabProblem::at(line, message, "put its lines together");
            }
            one_node(line, key, value)?;
            self.servers.push(Server { line, name: value.to_owned(), ..Server::default() });
            return Ok(());
        }
        let Some(server) = self.servers.last_mut() else {
            return OranfstabProblem::at(
                line,
                format!("`{key}` stands before any server"),
                "begin with `server: NAME`",
            );
        };
        let lower = value.to_ascii_lowercase();
        match key {
            "local" => server.local.push(one_node(line, key, value)?),
            "path" => server.paths.push(one_node(line, key, value)?),
            "export" => server.exports.push(Export { line, export: absolute(line, value)?, mount: None }),
            "mount" => match server.exports.last_mut() {
                Some(export) if export.mount.is_none() => export.mount = Some(absolute(line, value)?),
                _ => {
                    return OranfstabProblem::at(
                        line,
                        "a mount without its export",
                        "write `export: PATH mount: PATH`",
                    );
                }
            },
            "nfs_version" => match lower.trim_start_matches("nfs").trim_start_matches('v') {
                "3" => server.version = NfsVersion::V3,
                "4.1" => server.version = NfsVersion::V41,
                _ => {
                    let message = format!("`nfs_version: {value}` is not spoken here");
                    let hint = "`nfsv3` and `nfsv4.1` are, without pNFS: try one of them on a copy of the file";
                    return OranfstabProblem::at(line, message, hint);
                }
            },
            "security_default" | "security" => {
                if lower != "sys" {
                    let message = format!("`{key}: {value}` is not spoken here");
                    return OranfstabProblem::at(line, message, "only `sys` is; export to this machine with it");
                }
            }
            "mnt_timeout" => match value.parse::<u32>().ok().filter(|seconds| (1..=MAX_TIMEOUT_S).contains(seconds)) {
                None => {
                    let message =
                        format!("`mnt_timeout: {value}` is not a number of seconds from 1 to {MAX_TIMEOUT_S}");
                    return OranfstabProblem::at(line, message, "write seconds, such as `mnt_timeout: 600`");
                }
                some => server.mount_timeout_s = some,
            },
            "dontroute" => self.note(
                line,
                "`dontroute` has no effect: connections leave from their `local` address by the \
                                            kernel's routes",
            ),
            "management" | "community" => {
                self.note(line, format!("`{key}` has no effect: Plimsoll reads no statistics by SNMP"))
            }
            "uid" | "gid" => {
                self.note(line, format!("`{key}` has no effect: requests carry the user who runs this program"))
            }
            _ => {
                let message = format!("`{key}: {value}` cannot be followed");
                return OranfstabProblem::at(
                    line,
                    message,
                    "write the address as `nfs://SERVER:PORT/EXPORT/FILE` instead",
                );
            }
        }
        Ok(())
    }
}

impl Server {
    fn check(&self) -> Result<(), OranfstabProblem> {
        let Self { line, name, local, paths, exports, .. } = self;
        if paths.len() > MAX_PATHS || local.len() > MAX_PATHS {
            let message = format!("the server `{name}` has more than {MAX_PATHS} paths");
            return OranfstabProblem::at(*line, message, format!("Direct NFS uses {MAX_PATHS}; leave out the others"));
        }
        if !local.is_empty() && local.len() != paths.len().max(1) {
            let message = format!("the server `{name}` has not as many `local` lines as `path` lines");
            return OranfstabProblem::at(
                *line,
                message,
                "write `local: ADDRESS path: ADDRESS` for each path, or no `local`",
            );
        }
        if exports.is_empty() {
            return OranfstabProblem::at(
                *line,
                format!("the server `{name}` has no export"),
                "add `export: PATH mount: PATH`",
            );
        }
        match exports.iter().find(|export| export.mount.is_none()) {
            Some(export) => {
                OranfstabProblem::at(export.line, "an export without a mount", "write `export: PATH mount: PATH`")
            }
            None => Ok(()),
        }
    }
}

/// `KEY: VALUE` of a line, as many as stand in it.
fn pairs(line: usize, text: &str) -> Result<Vec<(&'static str, &str)>, OranfstabProblem> {
    let mut words = text.split_whitespace().peekable();
    let mut pairs = Vec::new();
    while let Some(word) = words.next() {
        // Words of the file are in any case, and the colon may stand apart or before the value without a blank.
        let (name, after) = word.split_once(':').map_or((word, None), |(name, after)| (name, Some(after)));
        let lower = name.to_ascii_lowercase();
        let Some(key) = KEYS.into_iter().find(|key| *key == lower) else {
            let message = format!("`{word}` is not one of its words");
            return OranfstabProblem::at(line, message, format!("the words are {}", KEYS.join(", ")));
        };
        let after = after.or_else(|| words.next_if_eq(&":").map(|_| ""));
        let value = match after.filter(|after| !after.is_empty()) {
            Some(value) => Some(value),
            // The only word that stands alone.
            None if key == "dontroute" => Some(""),
            None if after.is_some() => words.next(),
            None => None,
        };
        match value {
            Some(value) => pairs.push((key, value)),
            None => {
                return OranfstabProblem::at(line, format!("`{key}` has no value"), format!("write `{key}: VALUE`"));
            }
        }
    }
    Ok(pairs)
}

fn one_node(line: usize, key: &str, value: &str) -> Result<ServerNode, OranfstabProblem> {
    // An IPv6 address stands without brackets here.
    if value.parse::<std::net::Ipv6Addr>().is_ok() {
        return Ok(ServerNode { host: value.to_owned(), port: None });
    }
    match nodes(value).map(|mut nodes| (nodes.pop(), nodes.pop())) {
        Ok((Some(node), None)) if node.port.is_none() => Ok(node),
        _ => OranfstabProblem::at(
            line,
            format!("`{key}: {value}` is neither a host name nor an IP address"),
            "name one host",
        ),
    }
}

fn absolute(line: usize, value: &str) -> Result<String, OranfstabProblem> {
    let trimmed = value.trim_end_matches('/');
    if trimmed.is_empty() && value.starts_with('/') {
        return Ok("/".to_owned());
    }
    checked_path(trimmed).or_else(|problem| of_address(Some(line), &problem))
}

fn of_address<T>(line: Option<usize>, problem: &ServerAddressProblem) -> Result<T, OranfstabProblem> {
    let message = match line {
        Some(_) => problem.to_string(),
        None => format!("cannot serve this file: {problem}"),
    };
    Err(OranfstabProblem { line, message, hint: problem.hint() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TWO_PATHS: &str = "# of the database's home\n\
        server: filer1\nlocal: 10.0.1.5\npath: 10.0.1.9\nLOCAL: 10.0.2.5 path:10.0.2.9\ndontroute\n\
        nfs_version: nfsv3\nsecurity_default: sys\nmnt_timeout: 60\ncommunity: public\n\
        export: /vol/ora/ mount: /u02/oradata\nexport: /vol/arch mount: /u02/oradata/arch security: sys\n\n\
        server: filer2\npath: fd00::9\nexport: / mount: /u03\n";

    #[test]
    fn gives_the_address_of_a_file_below_its_mounts() {
        let tab = Oranfstab::parse(TWO_PATHS).unwrap();
        let address = |file: &str| tab.address(file).unwrap().to_string();
        let paths = "paths=10.0.1.9,10.0.2.9&local=10.0.1.5,10.0.2.5";
        let expected = format!("nfs://filer1/vol/ora/a.dbf?{paths}&export=/vol/ora&connect-timeout=60");
        assert_eq!(address("/u02/oradata/a.dbf"), expected);
        let expected = format!("nfs://filer1/vol/arch/1.arc?{paths}&export=/vol/arch&connect-timeout=60");
        assert_eq!(address("/u02/oradata/arch/1.arc"), expected);
        assert_eq!(address("/u03/x/y"), "nfs://filer2/x/y?paths=[fd00::9]&export=/");
        let newer = Oranfstab::parse(&TWO_PATHS.replace("nfsv3", "nfsv4.1")).unwrap();
        assert!(newer.address("/u02/oradata/a.dbf").unwrap().to_string().contains("&version=4.1&"));
        let again: NfsAddress = address("/u03/x/y").parse().unwrap();
        assert_eq!(again, tab.address("/u03/x/y").unwrap());
    }

    #[test]
    fn what_has_no_effect_is_noted_with_its_line() {
        let notes = Oranfstab::parse(TWO_PATHS).unwrap().notes;
        let lines: Vec<usize> = notes.iter().map(|note| note.line).collect();
        assert_eq!(lines, [6, 10]);
        assert!(notes[1].to_string().starts_with("line 10: `community` has no effect"), "{}", notes[1]);
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        for (text, message) in [
            ("", "names no server"),
            ("path: a", "line 1 of the oranfstab: `path` stands before"),
            ("server: a\nserver: a", "line 2 of the oranfstab: the server `a`"),
            ("server: a\nexport: /x mount: /y\nnfs_version: nfsv4", "line 3"),
            ("server: a\nexport: /x mount: /y\nnfs_version: pNFS", "`nfs_version: pNFS`"),
            ("server: a\nexport: /x mount: /y\nsecurity_default: krb5p", "`security_default: krb5p`"),
            ("server: a\nexport: /x mount: /y security: krb5", "`security: krb5`"),
            ("server: a\nexport: /x mount: /y\npath: 1.1.1.1\nlocal: a\nlocal: b", "as many `local`"),
            ("server: a\nexport: /x", "without a mount"),
            ("server: a\nmount: /x", "without its export"),
            ("server: a", "has no export"),
            ("server: a\nfrobnicate: 3", "`frobnicate:`"),
            ("server:", "`server` has no value"),
            ("server: a b", "`b` is not one of its words"),
            ("server: a\nexport: x mount: /y", "names no file"),
            ("server: a\nmnt_timeout: soon", "`mnt_timeout: soon`"),
            ("server: a\nnfs_port: 3", "cannot be followed"),
            ("server: a:3\nexport: /x mount: /y", "neither a host name"),
            ("server: a\npath: 1\npath: 2\npath: 3\npath: 4\npath: 5\nexport: /x mount: /y", "more than 4"),
        ] {
            let error = Oranfstab::parse(text).expect_err(text);
            assert!(error.to_string().contains(message), "{text}: {error}");
            assert!(!error.hint().is_empty());
        }
        let tab = Oranfstab::parse("server: a\nexport: /x mount: /y\nserver: b\nexport: /z mount: /y").unwrap();
        for (file, message) in [
            ("/elsewhere/f", "no mount above"),
            ("/y", "no mount above"),
            ("/y/f", "a second time"),
            ("y/f", "cannot serve"),
        ] {
            let error = tab.address(file).expect_err(file);
            assert!(error.to_string().contains(message), "{file}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(server|local|path|export|mount|nfs_version|dontroute|[a-z/.:# \n0-9]{0,6}|: ?|/[a-z]{1,3}| |\n){0,30}", file in "/[a-z/]{0,8}") {
            if let Ok(tab) = Oranfstab::parse(&text) {
                let _ = tab.address(&file);
            }
        }
    }
}
