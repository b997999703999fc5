//! The words that follow a command: schemas and parameters.

use std::str::FromStr;

use super::secret::MASK;
use super::slob::MAX_SESSIONS;
use super::slob_conf::is_plain_text;
use super::{ConfigError, Key, Origin, Setting};

/// One word of the command line that is not a flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Assignment {
    /// A bare number: how many schemas, as for SLOB's `runit.sh`. At least 1, at most [`MAX_SESSIONS`].
    Schemas(u32),
    /// `KEY=VALUE`: overrides the parameter file. The shell has taken the quotes off already.
    Set(Setting),
}

impl FromStr for Assignment {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some((name, value)) = text.split_once('=') {
            let setting = Setting::new(name, value, Origin::CommandLine)?;
            return if is_plain_text(&setting.value) {
                Ok(Self::Set(setting))
            } else {
                Err(ConfigError::Unprintable { key: setting.key })
            };
        }
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(ConfigError::Argument { text: text.to_owned() });
        }
        match text.parse() {
            Ok(schemas @ 1..=MAX_SESSIONS) => Ok(Self::Schemas(schemas)),
            _ => Err(ConfigError::Schemas { text: text.to_owned() }),
        }
    }
}

/// The same command-line word with `***` for a password: in `SYSDBA_PASSWD=…`, in an address that names a user and a
/// password before its host, and in `…password=…`. For the command that a run keeps. Where a word is no good address, rather
/// too much is hidden than too little.
pub fn without_secrets(argument: &str) -> String {
    if let Some((name, _)) = argument.split_once('=')
        && Key::from_name(name).is_some_and(Key::is_secret)
    {
        return format!("{name}={MASK}");
    }
    // The same length, so places in one are places in the other.
    let lowercase = argument.to_ascii_lowercase();
    let named = ["password=", "passwd="].iter().filter_map(|name| Some(lowercase.find(name)? + name.len())).min();
    let login = place_of_address(&lowercase).and_then(|start| password_of_login(argument, start));
    match (named, login) {
        (None, None) => argument.to_owned(),
        (None, Some((from, until))) => format!("{}{MASK}{}", &argument[..from], &argument[until..]),
        // What follows such a password may belong to it.
        (Some(from), None) => format!("{}{MASK}", &argument[..from]),
        (Some(from), Some((earlier, _))) => format!("{}{MASK}", &argument[..from.min(earlier)]),
    }
}

/// Where user, password and host begin.
fn place_of_address(lowercase: &str) -> Option<usize> {
    let kinds = ["://", "postgres:", "postgresql:"];
    let after_kind = kinds.iter().filter_map(|kind| Some(lowercase.find(kind)? + kind.len())).min()?;
    let slashes = lowercase[after_kind..].bytes().take_while(|byte| *byte == b'/').count();
    Some(after_kind + slashes)
}

/// From where to where a password, or what may be one, stands before the host of an address that begins at `start`.
fn password_of_login(argument: &str, start: usize) -> Option<(usize, usize)> {
    let address = &argument[start..];
    // A password may itself hold `/` or `@`, so the host begins after the last `@`.
    if let Some(at) = address.rfind('@') {
        let colon = address.find(':').filter(|colon| *colon < at)?;
        return Some((start + colon + 1, start + at));
    }
    // Without `@` there are hosts and ports only; what is no port may be a password that was put at the wrong place.
    let mut place = start;
    for node in address.split(['/', '?']).next().unwrap_or_default().split(',') {
        let name = node.find(']').unwrap_or(0);
        if let Some(colon) = node[name..].find(':').map(|colon| name + colon)
            && !node[colon + 1..].bytes().all(|byte| byte.is_ascii_digit())
        {
            return Some((place + colon + 1, argument.len()));
        }
        place += node.len() + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bare_number_is_schemas_and_key_value_is_a_setting() {
        assert_eq!("8".parse::<Assignment>().unwrap(), Assignment::Schemas(8));
        assert_eq!(
            "SCALE=1G".parse::<Assignment>().unwrap(),
            Assignment::Set(Setting::from_command_line(Key::Scale, "1G"))
        );
    }

    #[test]
    fn anything_else_is_refused_with_advice() {
        for (text, message, hint) in [
            (
                "IOPS",
                "`IOPS` is neither a number of schemas nor KEY=VALUE",
                "write a number such as `8`, or a parameter such as `UPDATE_PCT=20`",
            ),
            ("0", "`0` is not a number of schemas", "write a number from 1 to 4096"),
            ("5000", "`5000` is not a number of schemas", "write a number from 1 to 4096"),
            (
                "update_pct=20",
                "command line: unknown parameter `update_pct`",
                "did you mean `UPDATE_PCT`? Names are in capitals, as in a shell",
            ),
            (
                "vm=d8s",
                "command line: unknown parameter `vm`",
                "`--help` lists the parameters; a tag is given as `--tag KEY=VALUE`",
            ),
            (
                "DBA_PRIV_USER=a\nb",
                "the value of `DBA_PRIV_USER` holds a character that is not printable text",
                "type the value again; it may have been pasted with an invisible character",
            ),
        ] {
            let error = text.parse::<Assignment>().unwrap_err();
            assert_eq!((error.to_string().as_str(), error.hint().as_deref()), (message, Some(hint)));
        }
    }

    #[test]
    fn secrets_are_masked_in_any_argument() {
        for (argument, shown) in [
            ("SYSDBA_PASSWD=tiger", "SYSDBA_PASSWD=***"),
            ("postgres://scott:ti@g/er@db:5432/x", "postgres://scott:***@db:5432/x"),
            ("--target=mysql://scott:tiger@db/x", "--target=mysql://scott:***@db/x"),
            ("postgres://db:5432/x", "postgres://db:5432/x"),
            ("postgres://a:1,b:2,[::1]:3,c/x?sslmode=require", "postgres://a:1,b:2,[::1]:3,c/x?sslmode=require"),
            ("postgres://u@[::1]:5432/x", "postgres://u@[::1]:5432/x"),
            ("--target=postgres://h/d?user=u&password=ti&ger", "--target=postgres://h/d?user=u&password=***"),
            ("postgres://h/d?password=a://b@c", "postgres://h/d?password=***"),
            ("postgres://u:mypassword=x@h/d", "postgres://u:***"),
            ("postgres:u:tiger@h/d", "postgres:u:***@h/d"),
            ("--target=POSTGRES:/u:tiger@h/d", "--target=POSTGRES:/u:***@h/d"),
            ("postgresql://u:ti?ger@h", "postgresql://u:***@h"),
            ("postgres://u:tiger", "postgres://u:***"),
            ("postgres://h:1,u:tig/er", "postgres://h:1,u:***"),
            ("host=h PASSWORD=tiger user=u", "host=h PASSWORD=***"),
            ("dir:/u01/plimsoll", "dir:/u01/plimsoll"),
            ("UPDATE_PCT=5", "UPDATE_PCT=5"),
        ] {
            assert_eq!(without_secrets(argument), shown);
        }
    }

    proptest! {
        #[test]
        fn never_panics_on_any_text(text in ".*") {
            let _ = text.parse::<Assignment>();
            let _ = without_secrets(&text);
        }
    }
}
