//! What a user pays: a list of his own, in whatever money and for whatever time. The program brings none.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::Catalogue;
use super::combination::Combination;
use super::file::{FileError, line_of};
use super::rule::Rule;
use super::volumes::Volumes;

/// Prices of machines and volumes.
#[derive(Debug, Clone, PartialEq)]
pub struct Prices {
    /// What they are in, as `EUR a month`.
    pub unit: String,
    machines: BTreeMap<String, f64>,
    volumes: BTreeMap<String, VolumePrice>,
}

/// What one volume costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct VolumePrice {
    /// The volume as it is.
    #[serde(default)]
    each: f64,
    /// For each GiB.
    #[serde(default)]
    per_gib: f64,
    /// For each request per second beyond what is included.
    #[serde(default)]
    per_iops: f64,
    /// For each unit of throughput, as its cloud sells it, beyond what is included.
    #[serde(default)]
    per_throughput: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    unit: String,
    #[serde(default)]
    machines: BTreeMap<Spanned<String>, f64>,
    #[serde(default)]
    volumes: BTreeMap<Spanned<String>, VolumePrice>,
}

impl Prices {
    /// Reads `text`, which is the file `file`.
    ///
    /// # Errors
    /// If it is not of that form, a price is below 0, or a name is none of `catalogue`; with the line.
    pub fn read(file: &str, text: &str, catalogue: &Catalogue) -> Result<Self, FileError> {
        let fail = |at: usize, problem: String, hint: String| FileError {
            file: file.to_owned(),
            line: line_of(text, at),
            problem,
            hint,
        };
        let written: Written = toml::from_str(text).map_err(|problem| {
            let at = problem.span().map_or(0, |span| span.start);
            let hint = "docs/recipes/azure-rac.md shows a list of prices".to_owned();
            fail(at, problem.message().trim_end().replace('\n', "; "), hint)
        })?;
        let checked = |at: usize, name: &str, prices: &[f64]| {
            if prices.iter().all(|price| price.is_finite() && *price >= 0.0) {
                return Ok(());
            }
            Err(fail(at, format!("the price of `{name}` is below 0 or no number"), "write what it costs".to_owned()))
        };
        let mut prices = Self { unit: written.unit, machines: BTreeMap::new(), volumes: BTreeMap::new() };
        for (name, price) in &written.machines {
            let at = name.span().start;
            checked(at, name.get_ref(), &[*price])?;
            let machine = catalogue.machine(name.get_ref());
            let machine = machine.map_err(|problem| fail(at, problem.to_string(), problem.hint()))?;
            prices.machines.insert(machine.name.clone(), *price);
        }
        for (name, price) in &written.volumes {
            let at = name.span().start;
            checked(at, name.get_ref(), &[price.each, price.per_gib, price.per_iops, price.per_throughput])?;
            let kind = catalogue.volume(name.get_ref());
            let kind = kind.map_err(|problem| fail(at, problem.to_string(), problem.hint()))?;
            prices.volumes.insert(kind.name.clone(), *price);
        }
        Ok(prices)
    }

    /// What a platform costs; not known where the price of a part is not.
    pub fn of(&self, platform: &Combination) -> Option<f64> {
        let machines = self.machines.get(&platform.machine.name)? * f64::from(platform.nodes);
        let volumes = platform.volumes.as_ref().map_or(Some(0.0), |volumes| self.of_volumes(volumes))?;
        Some(machines + volumes)
    }

    /// What the volumes of a platform cost.
    pub(super) fn of_volumes(&self, volumes: &Volumes) -> Option<f64> {
        let price = self.volumes.get(&volumes.kind.name)?;
        let beyond = |rule: &Option<Rule>, rate: Option<f64>| {
            let included = rule.as_ref().and_then(|rule| rule.included).unwrap_or(0.0);
            (rate.unwrap_or(0.0) - included).max(0.0)
        };
        // A size that does not matter to the price need not be known.
        let of_size = if price.per_gib > 0.0 { price.per_gib * volumes.size_gib? } else { 0.0 };
        let iops = beyond(&volumes.kind.iops, volumes.each.iops);
        let throughput = volumes.each.mb_per_s.map(|mb| mb / volumes.kind.unit.in_megabytes(1.0));
        let throughput = beyond(&volumes.kind.throughput, throughput);
        let each = price.each + of_size + price.per_iops * iops + price.per_throughput * throughput;
        Some(each * f64::from(volumes.count))
    }
}
