//! How [`Distribution`] is read from and written as text.

use std::fmt;
use std::str::FromStr;

use crate::config::ConfigError;
use crate::workload::io::{Distribution, MAX_ZIPF_THETA};

use super::IoProblem;

/// Reads `uniform`, `zipf:1.1` and `hot:10%:90%` (10 % of the blocks take 90 % of the accesses).
impl FromStr for Distribution {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let read = match (name.to_ascii_lowercase().as_str(), rest) {
            ("uniform", None) => Ok(Self::Uniform),
            ("zipf", rest) => read_zipf(rest.unwrap_or_default()),
            ("hot", rest) => read_hot(rest.unwrap_or_default()),
            _ => Err(IoProblem::Distribution { text: text.to_owned() }),
        };
        read.map_err(ConfigError::Io)
    }
}

fn read_zipf(text: &str) -> Result<Distribution, IoProblem> {
    match text.parse() {
        Ok(theta) if theta > 0.0 && theta <= MAX_ZIPF_THETA => Ok(Distribution::Zipf { theta }),
        _ => Err(IoProblem::Theta { text: text.to_owned() }),
    }
}

fn read_hot(text: &str) -> Result<Distribution, IoProblem> {
    let share = |text: &str| -> Option<f64> {
        let pct = text.strip_suffix('%').unwrap_or(text).trim().parse().ok()?;
        (pct > 0.0 && pct <= 100.0).then_some(pct)
    };
    let shares = text.split_once(':').and_then(|(space, access)| Some((share(space)?, share(access)?)));
    match shares {
        Some((space_pct, access_pct)) if access_pct < space_pct => Err(IoProblem::HotIsCold { space_pct, access_pct }),
        Some((space_pct, access_pct)) => Ok(Distribution::Hot { space_pct, access_pct }),
        None => Err(IoProblem::HotShares { text: text.to_owned() }),
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.pad("uniform"),
            Self::Zipf { theta } => f.pad(&format!("zipf:{theta}")),
            Self::Hot { space_pct, access_pct } => f.pad(&format!("hot:{space_pct}%:{access_pct}%")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::assert_refused;
    use super::Distribution;

    #[test]
    fn reads_every_kind() {
        for (text, distribution) in [
            ("uniform", Distribution::Uniform),
            ("Zipf:1.1", Distribution::Zipf { theta: 1.1 }),
            ("zipf:1", Distribution::Zipf { theta: 1.0 }),
            ("hot:10%:90%", Distribution::Hot { space_pct: 10.0, access_pct: 90.0 }),
            ("hot:0.5:50", Distribution::Hot { space_pct: 0.5, access_pct: 50.0 }),
        ] {
            assert_eq!(text.parse::<Distribution>().unwrap(), distribution, "{text}");
        }
    }

    #[test]
    fn refuses_others_and_says_what_to_write() {
        for text in ["pareto:0.2", "", "uniform:1"] {
            assert_refused::<Distribution>(
                text,
                &format!("`{text}` is not a distribution"),
                "write `uniform`, `zipf:1.1` or `hot:10%:90%`",
            );
        }
        for theta in ["", "0", "-1", "nan", "inf", "101", "x"] {
            assert_refused::<Distribution>(
                &format!("zipf:{theta}"),
                &format!("`{theta}` is not an exponent of a zipf distribution"),
                "write a number above 0 and up to 100, such as `zipf:1.1`",
            );
        }
        for shares in ["", "10%", "0%:90%", "10%:101%", "10%:nan", "10%:90%:1%"] {
            assert_refused::<Distribution>(
                &format!("hot:{shares}"),
                &format!("`{shares}` is not a share of blocks and a share of accesses"),
                "write `hot:10%:90%` for a tenth of the blocks that takes nine tenths of the accesses",
            );
        }
        assert_refused::<Distribution>(
            "hot:90%:10%",
            "90 % of the blocks with 10 % of the accesses are not hot",
            "the share of blocks comes first: write `hot:10%:90%`",
        );
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(theta in 1e-6..100.0_f64, space_pct in 1e-6..50.0_f64, access_pct in 50.0..100.0_f64) {
            for distribution in [Distribution::Zipf { theta }, Distribution::Hot { space_pct, access_pct }] {
                prop_assert_eq!(distribution.to_string().parse::<Distribution>().unwrap(), distribution);
            }
        }

        #[test]
        fn never_panics_on_any_text(text in "(zipf|hot|uniform)?:?.*") {
            let _ = text.parse::<Distribution>();
        }
    }
}
