//! What nobody publishes of a platform though a load needs it: a ceiling without it may be too high.

use super::combination::{Asked, Combination};
use super::entry::{Local, Machine, VolumeKind};
use super::rule::Rule;

/// What is not published of a platform and a load.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Unpublished {
    /// Of what no limit is known, in words that stand after "no limit is known of".
    pub limits: Vec<String>,
    /// Whether nothing limits the bytes of the load, so that none can be said of it.
    pub has_no_bytes: bool,
    /// Of what size, in KiB, the requests are whose rates are published, where those of the load are larger.
    pub smaller_kib: Option<f64>,
}

impl Unpublished {
    /// Of `platform` under a load of `asked`.
    pub fn of(platform: &Combination, asked: &Asked) -> Self {
        let machine = &platform.machine;
        let mut found = Self::default();
        match (&platform.volumes, machine.local) {
            (Some(volumes), _) => {
                if volumes.each.iops.is_none() {
                    found.limits.push(format!("requests of {}", volumes.kind.name));
                }
                if volumes.each.mb_per_s.is_none() {
                    found.limits.push(format!("throughput of {}", volumes.kind.name));
                }
                found.limits.extend(without_a_most(&volumes.kind));
                if volumes.kind.over_network && machine.network_mbit.is_none() {
                    found.limits.push(format!("the network of {}", machine.name));
                }
                if !volumes.kind.over_network && machine.uncached.is_none() {
                    found.limits.push(format!("what {} sends to volumes", machine.name));
                }
            }
            (None, Some(local)) => found.of_local(machine, local, asked),
            (None, None) => {}
        }
        found
    }

    /// Rates of requests say nothing of larger ones: of those bytes may be the limit.
    fn of_local(&mut self, machine: &Machine, local: Local, asked: &Asked) {
        let name = &machine.name;
        let is_larger = local.block_kib.is_none_or(|kib| asked.block_bytes > kib * 1024.0);
        let (reads, writes) = (asked.read_share > 0.0, asked.read_share < 1.0);
        if reads && is_larger && local.read_throughput.is_none() {
            self.limits.push(format!("bytes read from the storage in {name}"));
            self.has_no_bytes = true;
        }
        if writes && local.write_iops.is_none() {
            self.limits.push(format!("writes of the storage in {name}"));
        } else if writes && is_larger && local.write_throughput.is_none() {
            self.limits.push(format!("bytes written to the storage in {name}"));
            self.has_no_bytes = true;
        }
        self.smaller_kib = local.block_kib.filter(|_| self.has_no_bytes);
    }

    /// Whether all that the load needs is published.
    pub fn is_empty(&self) -> bool {
        self.limits.is_empty()
    }

    /// In words that stand after "no limit is known of".
    pub fn words(&self) -> String {
        self.limits.join(", ")
    }
}

/// What can be bought of a kind in any number, as far as anybody says: what is provisioned with no most.
pub(super) fn without_a_most(kind: &VolumeKind) -> impl Iterator<Item = String> {
    let bought = |rule: &Option<Rule>, what: &str| {
        let has_none = rule.as_ref().is_some_and(|rule| rule.provisioned && rule.max.is_none());
        has_none.then(|| format!("the most {what} that can be bought of {}", kind.name))
    };
    [bought(&kind.iops, "requests"), bought(&kind.throughput, "throughput")].into_iter().flatten()
}
