//! One value that was given to one parameter, and where it came from.

use std::fmt;

use super::secret::MASK;
use super::{ConfigError, Key};

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Origin {
    /// Nobody gave it.
    #[default]
    Default,
    /// A line of a parameter file.
    File {
        /// The file, as the user named it.
        file: String,
        /// The line, counted from 1.
        line: usize,
    },
    /// `KEY=VALUE`, `-t` or `--vary` on the command line.
    CommandLine,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { file, line } => write!(f, "{file}:{line}"),
            Self::CommandLine => f.write_str("command line"),
        }
    }
}

/// One value given to one parameter. Settings form an ordered list in which a later one wins.
///
/// An empty value takes the parameter back to its default, as it does in SLOB.
#[derive(Clone, PartialEq, Eq)]
pub struct Setting {
    /// The parameter.
    pub key: Key,
    /// The value as text, quotes and comments removed. One printable line.
    pub value: String,
    /// Where it came from.
    pub origin: Origin,
}

impl Setting {
    /// A setting from a name and a value that are still plain text.
    ///
    /// # Errors
    ///
    /// [`ConfigError::UnknownParameter`] if no parameter has this name.
    pub fn new(name: &str, value: impl Into<String>, origin: Origin) -> Result<Self, ConfigError> {
        match Key::from_name(name) {
            Some(key) => Ok(Self { key, value: value.into(), origin }),
            None => Err(ConfigError::UnknownParameter { name: name.to_owned(), origin }),
        }
    }

    /// A setting made from the command line.
    pub fn from_command_line(key: Key, value: impl Into<String>) -> Self {
        Self { key, value: value.into(), origin: Origin::CommandLine }
    }

    /// The value, unless it is a secret.
    pub(super) fn shown_value(&self) -> &str {
        if self.key.is_secret() { MASK } else { &self.value }
    }
}

/// Prints `KEY=VALUE`, with `***` for a secret.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.shown_value())
    }
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} ({})", self.origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_printed() {
        let setting = Setting::from_command_line(Key::SysdbaPasswd, "tiger");
        assert_eq!(format!("{setting} | {setting:?}"), "SYSDBA_PASSWD=*** | SYSDBA_PASSWD=*** (command line)");
    }

    #[test]
    fn an_unknown_name_is_refused_with_its_origin() {
        let origin = Origin::File { file: "slob.conf".to_owned(), line: 3 };
        let error = Setting::new("UPDATE_PTC", "5", origin).unwrap_err();
        assert_eq!(error.to_string(), "slob.conf:3: unknown parameter `UPDATE_PTC`");
        assert_eq!(error.hint().as_deref(), Some("did you mean `UPDATE_PCT`?"));
    }
}
