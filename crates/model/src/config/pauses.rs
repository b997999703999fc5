//! How [`Pauses`] are read from and written as text.

use std::fmt;
use std::str::FromStr;

use super::nanos_text;
use crate::units::Nanos;
use crate::workload::orders::Pauses;

/// Why text says nothing about pauses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PausesError(String);

/// `0`, `5ms` (always as long; a plain number is seconds), `1ms..5ms`, or `exp:5ms` for a mean.
impl FromStr for Pauses {
    type Err = PausesError;

    fn from_str(text: &str) -> Result<Self, PausesError> {
        let time = |text: &str| match text.trim() {
            "0" => Ok(0),
            text => text.parse::<Nanos>().map(|Nanos(ns)| ns).map_err(|error| PausesError(error.to_string())),
        };
        if let Some(mean) = text.trim().strip_prefix("exp:") {
            return Ok(Self::Exponential { mean_ns: time(mean)? });
        }
        let Some((min, max)) = text.split_once("..") else {
            let ns = time(text)?;
            return Ok(if ns == 0 { Self::None } else { Self::Fixed { ns } });
        };
        let (min_ns, max_ns) = (time(min)?, time(max)?);
        if min_ns > max_ns {
            return Err(PausesError(format!(
                "the shortest pause, {}, is longer than the longest, {}",
                Nanos(min_ns),
                Nanos(max_ns)
            )));
        }
        Ok(Self::Uniform { min_ns, max_ns })
    }
}

/// As they are typed; they read back exactly.
impl fmt::Display for Pauses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |ns: u64| nanos_text(Nanos(ns));
        match *self {
            Self::None => f.write_str("0"),
            Self::Fixed { ns } => f.write_str(&text(ns)),
            Self::Uniform { min_ns, max_ns } => write!(f, "{}..{}", text(min_ns), text(max_ns)),
            Self::Exponential { mean_ns } => write!(f, "exp:{}", text(mean_ns)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_read_in_all_forms() {
        let read = |text: &str| text.parse::<Pauses>().map_err(|error| error.to_string());
        assert_eq!(read("0"), Ok(Pauses::None));
        assert_eq!(read("5ms"), Ok(Pauses::Fixed { ns: 5_000_000 }));
        assert_eq!(read("5"), Ok(Pauses::Fixed { ns: 5_000_000_000 }), "seconds, as everywhere");
        assert_eq!(read("1ms..5ms"), Ok(Pauses::Uniform { min_ns: 1_000_000, max_ns: 5_000_000 }));
        assert_eq!(read("0..5ms"), Ok(Pauses::Uniform { min_ns: 0, max_ns: 5_000_000 }));
        assert_eq!(read("exp:2s"), Ok(Pauses::Exponential { mean_ns: 2_000_000_000 }));
        assert!(read("5ms..1ms").unwrap_err().contains("is longer than the longest"));
        for text in ["", "-1ms", "exp:", "1ms..", "..", "soon"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let odd = Pauses::Uniform { min_ns: 1_234_000_000, max_ns: 90_000_000_000 };
        assert_eq!(odd.to_string(), "1234ms..90", "no digit is lost");
        for text in ["0", "5ms", "1ms..5ms", "exp:2", "1234ms..90"] {
            assert_eq!(text.parse::<Pauses>().unwrap().to_string(), text);
        }
    }
}
