//! How operations arrive when a rate is asked for.

use std::str::FromStr;

use super::ConfigError;
use crate::workload::Arrival;

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
