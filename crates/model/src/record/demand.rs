//! What a platform was asked to carry: rates, each with the time in which its work must be done.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Parameters;
use crate::units::{Nanos, UnitError};

/// What is expected of the text of a rate.
const WANTED: &str = "a rate such as `20000@5ms`, `20k/s@p99.9=5ms` or `20000`";
/// What is expected of the text of a throughput.
const WANTED_THROUGHPUT: &str = "a throughput such as `800MB/s`";
/// Quantile of a limit that names none.
const DEFAULT_QUANTILE: f64 = 0.99;
/// Rates from a thousandth to a thousand million each second make sense.
const RATES: std::ops::RangeInclusive<f64> = 1e-3..=1e9;

/// So much work each second, and how soon each piece must be done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// Pieces of work per second; above 0.
    pub per_s: f64,
    /// How soon; absent where nobody asks.
    pub within: Option<Within>,
}

/// A share of the work that must be done in a time.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Within {
    /// The share, 0 to 1, both excluded.
    pub quantile: f64,
    /// The time.
    #[serde(rename = "limit_ns")]
    pub limit: Nanos,
}

/// Bytes per second that scans must bring; above 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Throughput(pub f64);

/// Everything that one platform must carry at the same time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Demands {
    /// Reads of one block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<Demand>,
    /// Writes of one block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes: Option<Demand>,
    /// Durable commits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commits: Option<Demand>,
    /// Large reads, one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan: Option<Throughput>,
}

/// Beginning of the labels of steps at exactly what is asked.
pub const ASKED: &str = "asked";

/// Pieces of work that should lie beyond a quantile before it means anything.
const BEYOND: f64 = 10.0;

impl Within {
    /// How many pieces of work the quantile needs to mean anything.
    pub fn count(&self) -> u64 {
        (BEYOND / (1.0 - self.quantile)).round() as u64
    }
}

/// What a run was asked whether the platform carries it, so that the answer can be given again from the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct CheckRequest {
    /// What it is to carry.
    pub demands: Demands,
    /// The storage or the database, as it was named.
    pub place: String,
    /// Bytes of one scan on a database; absent where a scan is made of large requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan_bytes: Option<u64>,
}

impl CheckRequest {
    /// The same for display.
    pub fn parameters(&self) -> Parameters {
        let Self { demands: Demands { reads, writes, commits, scan }, place, scan_bytes } = self;
        let rates = [("CHECK_READS", reads), ("CHECK_WRITES", writes), ("CHECK_COMMITS", commits)];
        let rates = rates.into_iter().filter_map(|(name, demand)| Some((name, demand.as_ref()?.to_string())));
        let scan = scan.map(|scan| ("CHECK_SCAN", scan.to_string()));
        let scan_bytes = scan_bytes.map(|bytes| ("CHECK_SCAN_BYTES", bytes.to_string()));
        let all = rates.chain(scan).chain(scan_bytes).chain([("CHECK_WHERE", place.clone())]);
        all.map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

impl Demands {
    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl FromStr for Demand {
    type Err = UnitError;

    fn from_str(input: &str) -> Result<Self, UnitError> {
        let fail = |reason| UnitError { input: input.to_owned(), wanted: WANTED, reason };
        let (rate, within) = match input.split_once('@') {
            Some((rate, within)) => (rate, Some(within.trim())),
            None => (input, None),
        };
        let per_s = number(rate.trim().strip_suffix("/s").unwrap_or(rate.trim()))
            .filter(|rate| RATES.contains(rate))
            .ok_or_else(|| fail("its rate is not a number from 0.001 to 1,000,000,000, with k or M at most"))?;
        let within = match within.map(|within| within.split_once('=').unwrap_or(("p99", within))) {
            None => None,
            Some((quantile, limit)) => {
                let percent = quantile.trim().strip_prefix(['p', 'P']).and_then(|text| text.parse::<f64>().ok());
                let quantile = percent
                    .map(|percent| (percent * 1e6).round() / 1e8)
                    .filter(|quantile| (0.5..1.0).contains(quantile));
                Some(Within {
                    quantile: quantile.ok_or_else(|| fail("its percentile is none from p50 to below p100"))?,
                    // Without a unit it would be seconds, which nobody means here.
                    limit: Some(limit.trim())
                        .filter(|limit| limit.ends_with(|c: char| c.is_ascii_alphabetic()))
                        .and_then(|limit| limit.parse().ok())
                        .filter(|limit| *limit > Nanos(0))
                        .ok_or_else(|| fail("what follows `@` is not a time such as `5ms`"))?,
                })
            }
        };
        Ok(Self { per_s, within })
    }
}

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.per_s)?;
        match self.within {
            None => Ok(()),
            Some(Within { quantile, limit }) if quantile == DEFAULT_QUANTILE => write!(f, "@{}", exact(limit)),
            Some(Within { quantile, limit }) => write!(f, "@p{}={}", (quantile * 1e6).round() / 1e4, exact(limit)),
        }
    }
}

/// A time as people write it, without rounding: `10ms`.
fn exact(time: Nanos) -> String {
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
    let unit = units.into_iter().find(|(_, ns)| time.0 > 0 && time.0.is_multiple_of(*ns));
    unit.map_or_else(|| format!("{}ns", time.0), |(name, ns)| format!("{}{name}", time.0 / ns))
}

impl FromStr for Throughput {
    type Err = UnitError;

    fn from_str(input: &str) -> Result<Self, UnitError> {
        let fail = |reason| UnitError { input: input.to_owned(), wanted: WANTED_THROUGHPUT, reason };
        let text = input.trim().trim_end_matches("/s").trim_end_matches("/S").trim_end();
        let text = text.strip_suffix(['b', 'B']).unwrap_or(text).trim_end();
        // A bare number is megabytes, as help has it: nobody asks for bytes.
        let scale =
            if input.contains(|c: char| c.is_ascii_alphabetic() && !matches!(c, 's' | 'S')) { 1.0 } else { 1e6 };
        let binary = [(["Ki", "ki"], 1_024.0), (["Mi", "mi"], 1_048_576.0), (["Gi", "gi"], 1_073_741_824.0)];
        let binary = binary
            .into_iter()
            .find_map(|(names, bytes)| names.iter().find_map(|name| Some((text.strip_suffix(name)?, bytes))));
        let (text, scale) = binary.unwrap_or((text, scale));
        number(text)
            .map(|rate| rate * scale)
            .filter(|rate| *rate >= 1.0 && *rate <= 1e15)
            .map(Self)
            .ok_or_else(|| fail("it is not a number with kB, MB or GB (powers of ten), or KiB, MiB or GiB"))
    }
}

impl fmt::Display for Throughput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}B/s", self.0)
    }
}

/// A number with a decimal suffix: `20k` is 20,000.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let scales = [(['k', 'K'], 1e3), (['m', 'M'], 1e6), (['g', 'G'], 1e9)];
    let scaled = scales.into_iter().find_map(|(letters, scale)| Some((text.strip_suffix(letters)?, scale)));
    let (digits, scale) = scaled.unwrap_or((text, 1.0));
    let digits = digits.trim_end();
    let is_plain = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    digits.parse::<f64>().ok().filter(|_| is_plain).map(|number| number * scale)
}

crate::text::as_text!(Demand, Throughput);

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(text: &str) -> Demand {
        text.parse().unwrap()
    }

    #[test]
    fn a_rate_has_a_limit_of_its_99th_percentile_unless_another_is_named() {
        let within = |quantile, millis| Some(Within { quantile, limit: Nanos::millis(millis) });
        assert_eq!(demand("20000@5ms"), Demand { per_s: 20_000.0, within: within(0.99, 5) });
        assert_eq!(demand("1.5k/s @ p99.9=20ms"), Demand { per_s: 1_500.0, within: within(0.999, 20) });
        assert_eq!(demand("1M"), Demand { per_s: 1e6, within: None });
    }

    #[test]
    fn what_is_no_rate_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "rate"),
            ("fast@5ms", "rate"),
            ("-5@5ms", "rate"),
            ("0@5ms", "rate"),
            ("1e3@5ms", "rate"),
            ("inf", "rate"),
            ("20k@5", "not a time"),
            ("20k@0ms", "not a time"),
            ("20k@p100=5ms", "percentile"),
            ("20k@q99=5ms", "percentile"),
        ] {
            let error = text.parse::<Demand>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn a_limit_is_written_as_people_write_it_and_read_back() {
        for text in ["50@10ms", "50@1500us", "50@2s", "50@p99.9=1234567ns", "0.5"] {
            assert_eq!(demand(text).to_string(), text);
        }
    }

    #[test]
    fn throughput_is_in_powers_of_ten_and_a_bare_number_is_megabytes() {
        for (text, bytes) in
            [("800MB/s", 8e8), ("1.5 GB/s", 1.5e9), ("64k", 64e3), ("12B/s", 12.0), ("2MiB/s", 2_097_152.0)]
        {
            assert_eq!(text.parse(), Ok(Throughput(bytes)), "{text}");
        }
        for text in ["800", "800/s", "800 M"] {
            assert_eq!(text.parse(), Ok(Throughput(8e8)), "{text}");
        }
        assert_eq!(Throughput(8e8).to_string().parse(), Ok(Throughput(8e8)));
        for text in ["", "MB/s", "fast", "0MB/s", "800iB/s"] {
            assert!(text.parse::<Throughput>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_record_keeps_what_was_asked() {
        let asked = CheckRequest {
            demands: Demands {
                reads: Some(demand("20000@p99.9=5ms")),
                commits: Some(demand("0.5@10ms")),
                scan: Some(Throughput(8e8)),
                ..Demands::default()
            },
            place: "dir:/u01".to_owned(),
            scan_bytes: None,
        };
        let text = serde_json::to_string(&asked).unwrap();
        assert!(text.contains(r#""reads":"20000@p99.9=5ms""#), "{text}");
        assert_eq!(serde_json::from_str::<CheckRequest>(&text).unwrap(), asked);
    }
}
