//! Names as clouds write them and as people do.

use crate::units::edit_distance;

/// How many names are offered for one that is not known.
const MAX_OFFERED: usize = 6;

/// Why a name says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No entry is called so; these are called nearly so.
    #[error("no {what} is called `{name}`")]
    Unknown {
        /// `machine` or `volume`.
        what: &'static str,
        /// The name.
        name: String,
        /// The nearest names, the nearest first.
        near: Vec<String>,
    },
    /// It may be several.
    #[error("`{name}` may be any of {} {what}s", among.len())]
    Ambiguous {
        /// `machine` or `volume`.
        what: &'static str,
        /// The name.
        name: String,
        /// Which.
        among: Vec<String>,
    },
}

impl NameError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Unknown { near, .. } if near.is_empty() => {
                "`plimsoll platforms list` shows all that are known, and `--platforms-file` adds others".to_owned()
            }
            Self::Unknown { near, .. } => format!(
                "the nearest are {}; `plimsoll platforms list` shows all, and `--platforms-file` adds others",
                near.join(", ")
            ),
            Self::Ambiguous { among, .. } => format!("write one of {}", among.join(", ")),
        }
    }

    /// Whether the name is nearly one, so that it is probably meant as one.
    pub fn is_near(&self) -> bool {
        match self {
            Self::Ambiguous { .. } => true,
            Self::Unknown { name, near, .. } => {
                let name = key(name);
                let most = if name.len() < 5 { 1 } else { 2 };
                near.first().is_some_and(|near| name.len() > 2 && edit_distance(&key(near), &name) <= most)
            }
        }
    }
}

/// What is the same in all ways of writing a name: `Standard_D8s_v3`, `D8s-v3` and `d8sv3` are one.
pub(super) fn key(name: &str) -> String {
    let lower = name.trim().to_ascii_lowercase();
    let lower = lower.strip_prefix("standard_").unwrap_or(&lower);
    lower.chars().filter(|c| c.is_ascii_alphanumeric()).collect()
}

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    /// A machine.
    Machine,
    /// A volume.
    Volume,
}

impl Named {
    fn word(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Volume => "volume",
        }
    }

    /// Whether `D8s` may stand for `D8s_v3`. Of volumes the version is another product: Premium SSD is not Premium SSD v2.
    fn may_leave_out_version(self) -> bool {
        self == Self::Machine
    }
}

/// Which of `entries` is called `name`: each has its name and its aliases. The whole name counts first, then, of machines, a name of which
/// only the version is left out, if there is one such alone.
pub(super) fn find<'a, T>(
    named: Named,
    name: &str,
    entries: impl Iterator<Item = (&'a T, &'a str, &'a [String])>,
) -> Result<&'a T, NameError> {
    let what = named.word();
    let asked = key(name);
    let mut without_version: Vec<(&T, &str)> = Vec::new();
    let mut near: Vec<(usize, &str)> = Vec::new();
    for (entry, own, aliases) in entries {
        let keys = || [own].into_iter().chain(aliases.iter().map(String::as_str)).map(key);
        if !asked.is_empty() && keys().any(|key| key == asked) {
            return Ok(entry);
        }
        let is_version = |rest: &str| {
            let number = rest.strip_prefix('v');
            number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
        };
        let leaves_out = named.may_leave_out_version() && !asked.is_empty();
        if leaves_out && keys().any(|key| key.strip_prefix(&asked).is_some_and(is_version)) {
            without_version.push((entry, own));
        }
        let distance = keys().map(|key| edit_distance(&key, &asked)).min().unwrap_or(usize::MAX);
        near.push((distance, own));
    }
    if let [(entry, _)] = without_version.as_slice() {
        return Ok(entry);
    }
    if !without_version.is_empty() {
        let among = without_version.iter().map(|(_, name)| (*name).to_owned()).collect();
        return Err(NameError::Ambiguous { what, name: name.to_owned(), among });
    }
    near.sort();
    let is_near = |(distance, _): &&(usize, &str)| *distance <= 1 + asked.len() / 3;
    let near = near.iter().filter(is_near).take(MAX_OFFERED).map(|(_, name)| (*name).to_owned()).collect();
    Err(NameError::Unknown { what, name: name.to_owned(), near })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Result<&'static str, NameError> {
        const NAMES: [&str; 6] =
            ["Standard_D8s_v3", "Standard_M64s", "Standard_M64s_v2", "Standard_E2x_v4", "Standard_E2x_v5", "m5.large"];
        static NONE: [String; 0] = [];
        find(Named::Machine, name, NAMES.iter().map(|name| (name, *name, &NONE[..]))).copied()
    }

    #[test]
    fn a_name_is_found_in_any_way_of_writing_it() {
        for name in ["Standard_D8s_v3", "D8s_v3", "d8s", "d8sv3", " D8S-v3 ", "standard_d8s"] {
            assert_eq!(named(name).unwrap(), "Standard_D8s_v3", "{name}");
        }
        assert_eq!(named("M64s").unwrap(), "Standard_M64s", "the whole name counts first");
        assert_eq!(named("m5.large").unwrap(), named("M5 Large").unwrap());
    }

    #[test]
    fn of_a_volume_the_version_cannot_be_left_out() {
        let aliases = ["pv2".to_owned()];
        let volume = |name| find(Named::Volume, name, [(&2, "Premium SSD v2", &aliases[..])].into_iter()).copied();
        for name in ["Premium SSD v2", "premium-ssd-v2", "PV2"] {
            assert_eq!(volume(name), Ok(2), "{name}");
        }
        for name in ["premium-ssd", "Premium SSD", "p"] {
            assert!(matches!(volume(name), Err(NameError::Unknown { what: "volume", .. })), "{name}");
        }
        assert_eq!(volume("premium-ssd").unwrap_err().hint().split(';').next(), Some("the nearest are Premium SSD v2"));
    }

    #[test]
    fn a_name_that_says_nothing_brings_the_nearest() {
        let ambiguous = named("e2x").unwrap_err();
        assert!(matches!(&ambiguous, NameError::Ambiguous { among, .. } if among.len() == 2), "{ambiguous:?}");
        assert_eq!(ambiguous.hint(), "write one of Standard_E2x_v4, Standard_E2x_v5");
        let unknown = named("m46sv2").unwrap_err();
        assert!(matches!(&unknown, NameError::Unknown { near, .. } if near[0] == "Standard_M64s_v2"), "{unknown:?}");
        assert!(unknown.is_near() && ambiguous.is_near());
        for far in ["", "abacus", "db1", "ibm-z16-max"] {
            assert!(!named(far).unwrap_err().is_near(), "{far}");
        }
    }
}
