//! A rate as its cloud publishes it: one figure, or how it follows from the size of the volume or from what is provisioned.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A rate of a volume, in requests per second or in its cloud's unit of throughput.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Rule {
    /// The same whatever the size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed: Option<f64>,
    /// For each GiB (each GB where the cloud counts in those).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_gib: Option<f64>,
    /// For each request per second that the volume allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_iops: Option<f64>,
    /// Sizes up to which a rate holds, in GiB, rising.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub up_to: Vec<(f64, f64)>,
    /// Never less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Never more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Whether it is what the buyer provisions.
    pub provisioned: bool,
    /// What a volume has for which nothing is provisioned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub included: Option<f64>,
    /// How much may be provisioned for each GiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_per_gib: Option<f64>,
    /// How much throughput may be provisioned for each request per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_per_iops: Option<f64>,
    /// How much throughput must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_per_iops: Option<f64>,
}

/// The long form in a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    per_gib: Option<f64>,
    per_iops: Option<f64>,
    #[serde(default)]
    up_to: Vec<(f64, f64)>,
    min: Option<f64>,
    max: Option<f64>,
    #[serde(default)]
    provisioned: bool,
    included: Option<f64>,
    max_per_gib: Option<f64>,
    max_per_iops: Option<f64>,
    min_per_iops: Option<f64>,
}

/// Why a rule gives no rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum NoRate {
    /// It depends on the size, which is not known.
    NoSize,
    /// It is provisioned, and nothing was said of how much.
    NotProvisioned,
    /// So much was provisioned, and no more than so much can be.
    TooMuch { asked: f64, most: f64 },
    /// It follows from the size alone, and something was provisioned.
    NotForSale,
}

impl Rule {
    /// The rate of a volume of `size_gib` that allows `iops` requests per second, for which `provisioned` was bought.
    pub(super) fn rate(
        &self,
        size_gib: Option<f64>,
        iops: Option<f64>,
        provisioned: Option<f64>,
    ) -> Result<f64, NoRate> {
        if !self.provisioned && provisioned.is_some() {
            return Err(NoRate::NotForSale);
        }
        let rate = if self.provisioned {
            provisioned.or(self.included).ok_or(NoRate::NotProvisioned)?
        } else if let Some(fixed) = self.fixed {
            fixed
        } else if let Some(per_gib) = self.per_gib {
            per_gib * size_gib.ok_or(NoRate::NoSize)?
        } else if let Some(per_iops) = self.per_iops {
            per_iops * iops.ok_or(NoRate::NotProvisioned)?
        } else {
            let size = size_gib.ok_or(NoRate::NoSize)?;
            let step = self.up_to.iter().find(|(up_to, _)| size <= *up_to).or(self.up_to.last());
            step.map(|(_, rate)| *rate).ok_or(NoRate::NoSize)?
        };
        if !self.provisioned {
            return Ok(rate.max(self.min.unwrap_or(0.0)).min(self.max.unwrap_or(f64::INFINITY)));
        }
        let of_size = self.max_per_gib.zip(size_gib).map(|(per_gib, size)| per_gib * size);
        let of_iops = self.max_per_iops.zip(iops).map(|(per_iops, iops)| per_iops * iops);
        let most = [self.max, of_size, of_iops].into_iter().flatten().fold(f64::INFINITY, f64::min);
        let most = most.max(self.included.unwrap_or(0.0));
        let least = self.min_per_iops.zip(iops).map_or(0.0, |(per_iops, iops)| per_iops * iops);
        let rate = rate.max(least);
        if rate > most { Err(NoRate::TooMuch { asked: rate, most }) } else { Ok(rate) }
    }

    /// Figures that it has, for one that must all be above zero.
    pub(super) fn figures(&self) -> impl Iterator<Item = f64> {
        let single = [
            self.fixed,
            self.per_gib,
            self.per_iops,
            self.min,
            self.max,
            self.included,
            self.max_per_gib,
            self.max_per_iops,
            self.min_per_iops,
        ];
        single.into_iter().flatten().chain(self.up_to.iter().flat_map(|(size, rate)| [*size, *rate]))
    }

    /// What cannot be of it though each of its figures can, and what to write instead.
    pub(super) fn contradiction(&self) -> Option<(String, &'static str)> {
        if self.ways() != 1 {
            let hint = "give one of: a figure, `per_gib`, `per_iops`, `up_to`, or `provisioned = true`";
            return Some((format!("says in {} ways what it is", self.ways()), hint));
        }
        // A size is looked up in the first step that holds it: steps out of order would never be reached.
        if let Some(pair) = self.up_to.windows(2).find(|pair| pair[1].0 <= pair[0].0) {
            let problem = format!("has `up_to` {} after {}: sizes do not rise", pair[1].0, pair[0].0);
            return Some((problem, "write each size once, the smallest first: `[[size, rate], ...]`"));
        }
        if let Some((min, max)) = self.min.zip(self.max).filter(|(min, max)| min > max) {
            return Some((format!("is at least {min} (`min`) and at most {max} (`max`)"), "`max` is not below `min`"));
        }
        let has_bounds_of_provision =
            [self.included, self.max_per_gib, self.max_per_iops, self.min_per_iops].iter().any(Option::is_some);
        if has_bounds_of_provision && !self.provisioned {
            let problem = "has `included`, `max_per_gib` or `max_per_iops`, and nothing is provisioned".to_owned();
            return Some((problem, "add `provisioned = true`, or use `min` and `max`"));
        }
        if self.provisioned && self.min.is_some() {
            let problem = "is provisioned and has a `min`".to_owned();
            return Some((problem, "what a volume has for which nothing was provisioned is `included`"));
        }
        if let Some((included, max)) = self.included.zip(self.max).filter(|(included, max)| included > max) {
            let problem = format!("has {included} `included` and at most {max} (`max`)");
            return Some((problem, "`max` is not below what is `included`"));
        }
        None
    }

    /// In how many ways it says what the rate is: one is right.
    fn ways(&self) -> usize {
        let ways = [
            self.fixed.is_some(),
            self.per_gib.is_some(),
            self.per_iops.is_some(),
            !self.up_to.is_empty(),
            self.provisioned,
        ];
        ways.into_iter().filter(|is_given| *is_given).count()
    }
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RuleVisitor)
    }
}

struct RuleVisitor;

impl<'de> Visitor<'de> for RuleVisitor {
    type Value = Rule;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a rate, such as `5000` or `{ per_gib = 3, min = 100, max = 16000 }`")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Rule, E> {
        self.visit_f64(value as f64)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Rule, E> {
        Ok(Rule { fixed: Some(value), ..Rule::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Rule, A::Error> {
        let written = Written::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Rule {
            fixed: None,
            per_gib: written.per_gib,
            per_iops: written.per_iops,
            up_to: written.up_to,
            min: written.min,
            max: written.max,
            provisioned: written.provisioned,
            included: written.included,
            max_per_gib: written.max_per_gib,
            max_per_iops: written.max_per_iops,
            min_per_iops: written.min_per_iops,
        })
    }
}
