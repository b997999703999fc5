//! As whom to connect, with what password: from the address, the environment and an option file.

use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) use crate::Environment;
use crate::ServerError;
use model::config::mysql::{MysqlAddress, ServerKey, TlsMode, TlsOptions};
use model::config::{Secret, SecretFile, ServerNode};
use mysql_seam::crypto::ServerKey as TrustedKey;

/// Longest wait for a connection where nobody says.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Where servers of distributions put their sockets.
const SOCKETS: [&str; 4] =
    ["/run/mysqld/mysqld.sock", "/var/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock"];
/// Sections of an option file that any client reads.
const SECTIONS: [&str; 3] = ["client", "client-server", "client-mariadb"];

/// Where a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Endpoint {
    Network(ServerNode),
    Socket(PathBuf),
}

/// All that is needed to connect, with nothing left open.
#[derive(Debug, Clone)]
pub(super) struct Login {
    /// At least one.
    pub(super) places: Vec<Endpoint>,
    pub(super) user: String,
    pub(super) password: Option<Secret>,
    /// Where the password came from, or why there is none, for whoever was refused.
    pub(super) password_source: String,
    pub(super) tls: TlsOptions,
    /// Under which key the password may go where a connection is not encrypted.
    pub(super) server_key: TrustedKey,
    pub(super) connect_timeout: Duration,
    /// What the user should know about the option file.
    pub(super) notes: Vec<String>,
}

impl Login {
    /// What `address` asks for, in `environment`.
    ///
    /// # Errors
    /// When an option file that was named cannot be read or asks for an unknown encryption, or nobody says who the user is.
    pub(super) fn of(address: &MysqlAddress, environment: &Environment<'_>) -> Result<Self, ServerError> {
        let mut notes = Vec::new();
        let named = address.defaults_file.as_deref();
        let usual = || environment.at_home(".my.cnf").filter(|path| path.exists());
        let file = named.map(Path::to_owned).or_else(usual);
        let options = match &file {
            Some(path) => Options::read(path, named.is_some(), &mut notes)?,
            None => Options::default(),
        };
        let of_file = |name: &str| options.value(name);
        let user = address.user.clone().or_else(|| of_file("user")).or_else(environment.os_user);
        let user = user.ok_or_else(|| ServerError::Unfit {
            what: "the address names no user, and the name of the user who runs this is not known".to_owned(),
            hint: Some("name the user: `mysql://USER@HOST/DATABASE`".to_owned()),
        })?;
        // A file that was named is meant, so it counts before the variable.
        let in_file = of_file("password").filter(|_| !options.is_open).map(Secret::new);
        let in_variable = environment.text("MYSQL_PWD").map(Secret::new);
        let shown = file.as_ref().map(|path| format!("`{}`", path.display())).unwrap_or_default();
        let (password, password_source) = match (in_file, in_variable) {
            (Some(password), variable) if named.is_some() || variable.is_none() => {
                (Some(password), format!("check the password in {shown}"))
            }
            (_, Some(password)) => (Some(password), "check the password in MYSQL_PWD".to_owned()),
            _ => (
                None,
                "give the password in the environment (MYSQL_PWD) or in `~/.my.cnf` (`chmod 600`: a line [client], a line \
                 password=…)"
                    .to_owned(),
            ),
        };
        // A mode that is not understood may ask for more than the usual one gives.
        let mode_of_file = of_file("ssl-mode").map(|word| {
            TlsMode::named(&word).ok_or_else(|| ServerError::Unfit {
                what: format!("`ssl-mode={word}` in {shown} is none of its modes"),
                hint: Some(TlsMode::NAMES.to_owned()),
            })
        });
        let mode_of_file = mode_of_file.transpose()?;
        let file_path = |name: &str| of_file(name).map(PathBuf::from);
        let tls = TlsOptions {
            mode: address.tls.mode.or(mode_of_file),
            ca: address.tls.ca.clone().or_else(|| file_path("ssl-ca")),
            certificate: address.tls.certificate.clone().or_else(|| file_path("ssl-cert")),
            key: address.tls.key.clone().or_else(|| file_path("ssl-key")),
            server_key: address
                .tls
                .server_key
                .clone()
                .or_else(|| file_path("server-public-key-path").map(ServerKey::File)),
        };
        let server_key = match &tls.server_key {
            None => TrustedKey::Untrusted,
            Some(ServerKey::Accept) => TrustedKey::AsSent,
            Some(ServerKey::File(path)) => key_in(path)?,
        };
        let timeout = address.connect_timeout_s.map(|seconds| Duration::from_secs(seconds.into()));
        Ok(Self {
            places: places(address, &of_file),
            user,
            password,
            password_source,
            tls,
            server_key,
            connect_timeout: timeout.unwrap_or(CONNECT_TIMEOUT),
            notes,
        })
    }
}

/// The public key in a file.
fn key_in(path: &Path) -> Result<TrustedKey, ServerError> {
    let unfit = |why: String| ServerError::Unfit {
        what: format!("the server's public key in `{}` is not used: {why}", path.display()),
        hint: Some(
            "copy `public_key.pem` from the server's data directory, and name it: `server-public-key=PATH`".to_owned(),
        ),
    };
    let file = SecretFile::read(path).map_err(|error| unfit(error.to_string()))?;
    let key = TrustedKey::known(file.text().map_err(|error| unfit(error.to_string()))?.as_bytes());
    key.ok_or_else(|| unfit("it is not an RSA public key in PEM".to_owned()))
}

fn places(address: &MysqlAddress, of_file: &dyn Fn(&str) -> Option<String>) -> Vec<Endpoint> {
    if !address.nodes.is_empty() {
        return address.nodes.iter().cloned().map(Endpoint::Network).collect();
    }
    let host = of_file("host").filter(|host| host != "localhost" && address.socket.is_none());
    if let Some(host) = host {
        let port = of_file("port").and_then(|port| port.parse().ok());
        return vec![Endpoint::Network(ServerNode { host, port })];
    }
    let usual = || SOCKETS.iter().map(PathBuf::from).find(|path| path.exists()).unwrap_or_else(|| SOCKETS[0].into());
    vec![Endpoint::Socket(
        address.socket.clone().or_else(|| of_file("socket").map(PathBuf::from)).unwrap_or_else(usual),
    )]
}

/// The options of all clients in an option file ("Using Option Files" in MySQL's manual).
#[derive(Default)]
struct Options {
    /// Name, with `-` for `_`, and value; of several the last counts.
    values: Vec<(String, String)>,
    /// Whether others may read the file: then no password is taken from it.
    is_open: bool,
}

impl Options {
    /// Those of the file at `path`. One that cannot be read is an error only if it `must_be_there`.
    fn read(path: &Path, must_be_there: bool, notes: &mut Vec<String>) -> Result<Self, ServerError> {
        let found =
            SecretFile::read(path).and_then(|file| Ok(Self { values: values(file.text()?), is_open: file.is_open() }));
        match found {
            Ok(options) => {
                if options.is_open && options.value("password").is_some() {
                    let shown = path.display();
                    notes.push(format!(
                        "the password in `{shown}` is not used: group or others may read it; `chmod 600` it"
                    ));
                }
                Ok(options)
            }
            Err(error) if must_be_there => Err(ServerError::Unfit {
                what: format!("the option file `{}` cannot be read: {error}", path.display()),
                hint: Some("correct `defaults-file` in the address, or let this user read the file".to_owned()),
            }),
            Err(error) => {
                notes.push(format!("the option file `{}` is not used: {error}", path.display()));
                Ok(Self::default())
            }
        }
    }

    fn value(&self, name: &str) -> Option<String> {
        let found = self.values.iter().rfind(|(given, _)| given == name);
        found.map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
    }
}

fn values(text: &str) -> Vec<(String, String)> {
    let mut is_ours = false;
    let mut values = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';', '!'])) {
        if let Some(section) = line.strip_prefix('[') {
            is_ours = SECTIONS.contains(&section.trim_end_matches(']'));
        } else if is_ours && let Some((name, value)) = line.split_once('=') {
            values.push((name.trim().replace('_', "-"), unquoted(value.trim())));
        }
    }
    values
}

/// A value may stand in quotes, and holds the escapes of option files. A `#` after a blank begins a comment.
fn unquoted(value: &str) -> String {
    let quoted =
        ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.rsplit_once(*quote).map(|(inside, _)| inside));
    let value = quoted.unwrap_or_else(|| value.split_once(" #").map_or(value, |(before, _)| before.trim_end()));
    let mut text = String::new();
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match (character, characters.clone().next()) {
            ('\\', Some(escaped)) if "btnrs\\\"'".contains(escaped) => {
                characters.next();
                text.push(match escaped {
                    'b' => '\u{8}',
                    't' => '\t',
                    'n' => '\n',
                    'r' => '\r',
                    's' => ' ',
                    itself => itself,
                });
            }
            _ => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use targets::DatabaseError as _;

    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn login(address: &str, variables: &[(&str, &str)]) -> Result<Login, ServerError> {
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Login::of(&address.parse().unwrap(), &Environment { variable: &variable, os_user: &|| Some("ann".to_owned()) })
    }

    fn password(login: &Login) -> Option<&str> {
        login.password.as_ref().map(Secret::expose)
    }

    #[test]
    fn what_the_address_leaves_open_comes_from_the_option_file_and_the_system() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(".my.cnf");
        fs::write(
            &file,
            "[mysqld]\nuser=no\n[client]\nuser = bench\nssl_mode=VERIFY_CA\npassword=\"a #\\\"b\"\nsocket=/s # here\n",
        )
        .unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let of = |address: &str| login(address, &[("HOME", home.path().to_str().unwrap())]).unwrap();
        let found = of("mysql:///slob");
        assert_eq!((found.user.as_str(), password(&found)), ("bench", Some("a #\"b")));
        assert_eq!(found.places, [Endpoint::Socket("/s".into())]);
        assert!(found.password_source.contains(".my.cnf") && found.notes.is_empty());
        let found = of("mysql://ann@db1/slob");
        assert_eq!((found.user.as_str(), found.places.len(), found.tls.mode), ("ann", 1, Some(TlsMode::VerifyCa)));
        assert_eq!(of("mysql://db1/slob?ssl-mode=disabled").tls.mode, Some(TlsMode::Disabled));
        fs::write(&file, "[client]\nssl-mode=verify\n").unwrap();
        let error = login("mysql:///slob", &[("HOME", home.path().to_str().unwrap())]).unwrap_err();
        assert!(error.to_string().starts_with("`ssl-mode=verify` in `") && error.hint().is_some(), "{error}");
        fs::write(&file, "[client]\nuser = bench\npassword=x\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let found = of("mysql:///slob");
        assert_eq!((found.user.as_str(), password(&found)), ("bench", None));
        assert!(found.notes[0].contains("chmod 600"), "{:?}", found.notes);
        assert_eq!(login("mysql:///slob", &[]).unwrap().user, "ann");
    }

    #[test]
    fn the_variable_counts_before_the_usual_file_and_a_named_file_before_both() {
        let home = tempfile::tempdir().unwrap();
        for (name, word) in [(".my.cnf", "usual"), ("named.cnf", "named")] {
            let file = home.path().join(name);
            fs::write(&file, format!("[client]\npassword={word}\n")).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        }
        let variables = [("HOME", home.path().to_str().unwrap()), ("MYSQL_PWD", "variable")];
        assert_eq!(password(&login("mysql://h/d", &variables).unwrap()), Some("variable"));
        assert_eq!(password(&login("mysql://h/d", &variables[..1]).unwrap()), Some("usual"));
        let named = format!("mysql://h/d?defaults-file={}", home.path().join("named.cnf").display());
        assert_eq!(password(&login(&named, &variables).unwrap()), Some("named"));
        let error = login("mysql://h/d?defaults-file=/nowhere/x.cnf", &variables).unwrap_err();
        assert!(error.to_string().contains("/nowhere/x.cnf"), "{error}");
    }

    #[test]
    fn a_key_file_that_holds_no_key_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("public_key.pem");
        let address = format!("mysql://h/d?server-public-key={}", file.display());
        let refused = |words: &str| {
            let error = login(&address, &[]).unwrap_err();
            assert!(error.to_string().contains(words) && error.hint().is_some(), "{error}");
        };
        refused("No such file");
        for text in ["", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "no key"] {
            fs::write(&file, text).unwrap();
            refused("it is not an RSA public key in PEM");
        }
        assert_eq!(login("mysql://h/d", &[]).unwrap().server_key, TrustedKey::Untrusted);
        assert_eq!(login("mysql://h/d?server-public-key=accept", &[]).unwrap().server_key, TrustedKey::AsSent);
    }

    #[test]
    fn nothing_that_is_printed_shows_a_password() {
        let found = login("mysql://h/d", &[("MYSQL_PWD", "tiger")]).unwrap();
        assert!(!format!("{found:?}").contains("tiger"));
    }
}
