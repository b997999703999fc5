//! What the user calls the things that vary between runs.

use std::fmt;
use std::str::FromStr;

use super::ConfigError;

/// A tag of a run, such as `vm=d8s`: a key of letters, digits, `_`, `.` and `-`, and any printable value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag {
    /// What varies, such as `vm`.
    pub key: String,
    /// What it was in this run, such as `d8s`.
    pub value: String,
}

impl FromStr for Tag {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let key_is_plain = |key: &str| {
            !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
        };
        match text.split_once('=') {
            Some((key, value)) if key_is_plain(key) && !value.is_empty() && !value.chars().any(char::is_control) => {
                Ok(Self { key: key.to_owned(), value: value.to_owned() })
            }
            _ => Err(ConfigError::Tag { text: text.to_owned() }),
        }
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_value_may_hold_spaces_and_equal_signs() {
        let tag: Tag = "disk=p30 x 2, cache=read".parse().unwrap();
        assert_eq!((tag.key.as_str(), tag.value.as_str()), ("disk", "p30 x 2, cache=read"));
    }

    #[test]
    fn refuses_what_is_not_key_and_value() {
        for text in ["", "vm", "=d8s", "vm=", "v m=d8s", "vm=d8s\n", "größe=1"] {
            assert!(text.parse::<Tag>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(text in "[a-z_.-]{1,8}=[ -~]{1,20}") {
            let tag: Tag = text.parse().unwrap();
            prop_assert_eq!(tag.to_string(), text);
        }
    }
}
