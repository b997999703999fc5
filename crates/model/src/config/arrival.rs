//! How operations arrive when a rate is asked for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::ConfigError;

/// How operations of an open loop (`--rate`) are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrival {
    /// Exponential gaps, as independent users make them. The default: queues form as they do in production.
    #[default]
    Poisson,
    /// Equal gaps.
    Fixed,
}

impl FromStr for Arrival {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.to_ascii_lowercase().as_str() {
            "poisson" => Ok(Self::Poisson),
            "fixed" => Ok(Self::Fixed),
            _ => Err(ConfigError::Arrival { text: text.to_owned() }),
        }
    }
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Poisson => "poisson",
            Self::Fixed => "fixed",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_back() {
        for arrival in [Arrival::Poisson, Arrival::Fixed] {
            assert_eq!(arrival.to_string().parse::<Arrival>().unwrap(), arrival);
        }
    }

    #[test]
    fn says_which_arrivals_there_are() {
        let error = "uniform".parse::<Arrival>().unwrap_err();
        assert_eq!(error.to_string(), "`uniform` is not a kind of arrival");
        assert_eq!(error.hint().as_deref(), Some("write `poisson` or `fixed`"));
    }
}
