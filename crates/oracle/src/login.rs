//! With what password to log in: from a file, the environment, or the person at the terminal.

use std::fs;
use std::io::IsTerminal as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use ::sql::Environment;
use ::sql::ServerError;
use model::config::Secret;
use model::config::oracle::OracleAddress;

/// Longest wait for a connection where nobody says.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Variables of the environment that hold the password, and that of the wallet.
const PASSWORD: &str = "PLIMSOLL_ORACLE_PASSWORD";
const WALLET_PASSWORD: &str = "PLIMSOLL_ORACLE_WALLET_PASSWORD";

/// All that is needed to log in, with nothing left open.
#[derive(Debug, Clone)]
pub(super) struct Login {
    pub(super) user: String,
    pub(super) password: Secret,
    pub(super) wallet_password: Option<Secret>,
    /// Where the password came from, for whoever was refused.
    pub(super) password_source: String,
    /// Directory of `tnsnames.ora`.
    pub(super) tns_admin: Option<String>,
    pub(super) connect_timeout: Duration,
}

impl Login {
    /// What `address` asks for, in `environment`. A person is asked for the password by `ask`, where there is one.
    ///
    /// # Errors
    /// When there is no password, or its file cannot be read or may be read by others.
    pub(super) fn of(
        address: &OracleAddress,
        environment: &Environment<'_>,
        ask: &dyn Fn(&str) -> Option<Secret>,
    ) -> Result<Self, ServerError> {
        let user = address.user.clone();
        let (password, password_source) = match &address.password_file {
            Some(path) => (of_file(path)?, format!("check the password in `{}`", path.display())),
            None => match environment.text(PASSWORD) {
                Some(password) => (Secret::new(password), format!("check the password in {PASSWORD}")),
                None => match ask(&format!("Password of `{user}` in Oracle: ")) {
                    Some(password) => (password, "check the password".to_owned()),
                    None => {
                        return Err(ServerError::Unfit {
                            what: format!("there is no password for the user `{user}`"),
                            hint: Some(format!(
                                "give it in the environment ({PASSWORD}), or in a file that only you may read: `?password-file=PATH`"
                            )),
                        });
                    }
                },
            },
        };
        let timeout = address.connect_timeout_s.map(|seconds| Duration::from_secs(seconds.into()));
        Ok(Self {
            user,
            password,
            wallet_password: environment.text(WALLET_PASSWORD).map(Secret::new),
            password_source,
            tns_admin: environment.text("TNS_ADMIN"),
            connect_timeout: timeout.unwrap_or(CONNECT_TIMEOUT),
        })
    }
}

/// Asks the person at the terminal, without showing what is typed; none where there is no terminal.
pub(super) fn ask_person(prompt: &str) -> Option<Secret> {
    if !std::io::stdin().is_terminal() {
        return None;
    }
    rpassword::prompt_password(prompt).ok().filter(|typed| !typed.is_empty()).map(Secret::new)
}

fn of_file(path: &Path) -> Result<Secret, ServerError> {
    let shown = path.display();
    let unfit = |what: String, hint: &str| ServerError::Unfit { what, hint: Some(hint.to_owned()) };
    let correct = "correct `password-file` in the address, or let this user read the file";
    // Looked at before it is opened: opening a pipe would wait for a writer.
    let metadata = fs::metadata(path).map_err(|error| unfit(format!("cannot read `{shown}`: {error}"), correct))?;
    if !metadata.is_file() {
        return Err(unfit(format!("`{shown}` is not a file"), correct));
    }
    if metadata.mode() & 0o077 != 0 {
        let what = format!("the password in `{shown}` is not used: group or others may read the file");
        return Err(unfit(what, &format!("`chmod 600 {shown}`")));
    }
    let text = fs::read_to_string(path).map_err(|error| unfit(format!("cannot read `{shown}`: {error}"), correct))?;
    match text.lines().next().filter(|line| !line.is_empty()) {
        Some(line) => Ok(Secret::new(line)),
        None => Err(unfit(format!("the first line of `{shown}` is empty"), "write the password into its first line")),
    }
}

#[cfg(test)]
mod tests {
    use targets::DatabaseError as _;

    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn login(address: &str, variables: &[(&str, &str)], typed: Option<&str>) -> Result<Login, ServerError> {
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let environment = Environment { variable: &variable, os_user: &|| None };
        Login::of(&address.parse().unwrap(), &environment, &|_| typed.map(Secret::new))
    }

    #[test]
    fn a_file_counts_before_the_variable_and_that_before_the_person() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        fs::write(&file, "in a file\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let address = format!("oracle://slob@h/s?password-file={}", file.display());
        let variables = [(PASSWORD, "in a variable"), ("TNS_ADMIN", "/tns")];
        let found = login(&address, &variables, Some("typed")).unwrap();
        assert_eq!((found.password.expose(), found.tns_admin.as_deref()), ("in a file", Some("/tns")));
        assert_eq!(login("oracle://slob@h/s", &variables, Some("typed")).unwrap().password.expose(), "in a variable");
        assert_eq!(login("oracle://slob@h/s", &[], Some("typed")).unwrap().password.expose(), "typed");
        let error = login("oracle://slob@h/s", &[], None).unwrap_err();
        assert!(error.hint().is_some_and(|hint| hint.contains(PASSWORD)), "{error}");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let error = login(&address, &variables, None).unwrap_err();
        assert!(error.hint().is_some_and(|hint| hint.contains("chmod 600")), "{error}");
    }

    #[test]
    fn nothing_that_is_printed_shows_a_password() {
        let found = login("oracle://slob@h/s", &[(PASSWORD, "tiger"), (WALLET_PASSWORD, "tiger")], None).unwrap();
        assert!(!format!("{found:?}").contains("tiger"));
    }
}
