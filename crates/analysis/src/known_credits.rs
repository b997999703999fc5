//! Burst credits of cloud volumes, as their vendors published them, and how long a run must last to see one end.
//!
//! A volume with credit gives its burst rate until the credit is spent, then its base rate. Credit drains by what is used
//! beyond the base rate, so a full one lasts `credit / (rate - base)` seconds. The figures are those of the catalogue; here they
//! serve to plan and to recognise, not to prove.

use std::sync::LazyLock;

use super::traffic::Counted;
use model::platforms::{Catalogue, Credit, VolumeKind, Volumes};
use model::record::Environment;

/// A rate this close to a published one is that one.
const SAME_RATE: f64 = 0.03;
/// A credit may be found smaller than published, because earlier load spent some, but not larger than this.
const SAME_CREDIT: f64 = 1.1;

/// Who sells a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vendor {
    Aws,
    Azure,
}

/// A kind of volume that bursts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct KnownCredit {
    /// As its users call it.
    pub name: String,
    vendor: Vendor,
    counted: Counted,
    base_per_s: f64,
    burst_per_s: f64,
    credit: f64,
}

/// Sizes that stand for all of a kind that comes in any, in GiB: the least that bursts, the usual ones, the largest.
const EXAMPLES: [(&str, &[&str]); 2] =
    [("gp2", &["33G", "100G", "334G", "500G", "750G"]), ("st1", &["500G", "1T", "2T", "4T"])];

static KNOWN: LazyLock<Vec<KnownCredit>> = LazyLock::new(|| {
    let catalogue = Catalogue::built_in();
    let mut known = Vec::new();
    for kind in catalogue.volumes().iter().filter(|kind| kind.burst.is_some()) {
        let vendor = match kind.cloud.as_str() {
            "AWS" => Vendor::Aws,
            "Azure" => Vendor::Azure,
            _ => continue,
        };
        let sizes = EXAMPLES.iter().find(|(name, _)| *name == kind.name).map_or(&[""][..], |(_, sizes)| sizes);
        for size in sizes {
            let written = if size.is_empty() { kind.name.clone() } else { format!("{}:{size}", kind.name) };
            let Ok(volumes) = Volumes::parse(&written, catalogue) else { continue };
            known.extend(credits(&name(kind, size), vendor, &volumes));
        }
    }
    // Of sizes with the same rates the largest stands for all.
    let same = |a: &KnownCredit, b: &KnownCredit| {
        (a.vendor, a.counted, a.base_per_s, a.burst_per_s) == (b.vendor, b.counted, b.base_per_s, b.burst_per_s)
    };
    let is_last = |index: usize| !known[index + 1..].iter().any(|later| same(&known[index], later));
    (0..known.len()).filter(|index| is_last(*index)).map(|index| known[index].clone()).collect()
});

/// `AWS gp2 of 33 GiB` or `Azure P10`.
fn name(kind: &VolumeKind, size: &str) -> String {
    let size = size.replace('G', " GiB").replace('T', " TiB");
    let of = if size.is_empty() { String::new() } else { format!(" of {size}") };
    format!("{} {}{of}", kind.cloud, kind.name)
}

fn credits(name: &str, vendor: Vendor, volumes: &Volumes) -> Vec<KnownCredit> {
    let of = |counted: Counted, base: Option<f64>, credit: Option<Credit>, scale: f64| {
        let (base, credit) = base.zip(credit)?;
        Some(KnownCredit {
            name: name.to_owned(),
            vendor,
            counted,
            base_per_s: base * scale,
            burst_per_s: credit.burst_per_s * scale,
            credit: credit.full * scale,
        })
    };
    let each = volumes.each;
    let requests = of(Counted::Requests, each.iops, each.iops_credit, 1.0);
    requests.into_iter().chain(of(Counted::Bytes, each.mb_per_s, each.mb_credit, 1e6)).collect()
}

impl KnownCredit {
    /// Seconds that a full credit lasts at `per_s`; `None` where such a volume cannot give that rate, or needs no credit
    /// for it.
    pub fn lasts_s(&self, per_s: f64) -> Option<f64> {
        let possible = per_s > self.base_per_s * (1.0 + SAME_RATE) && per_s <= self.burst_per_s * (1.0 + SAME_RATE);
        possible.then(|| self.credit / (per_s - self.base_per_s))
    }
}

/// Models by which disks of the two vendors' networks are known.
const CLOUD_MODELS: [&str; 4] = ["amazon elastic block store", "virtual disk", "msft nvme accelerator", "msft virtual"];
/// Where data lie in memory, or on somebody else's storage.
const NO_VOLUMES: [&str; 4] = ["tmpfs", "ramfs", "nfs", "cifs"];

/// Kinds that the storage can be: those of its vendor where the machine reports one, none where machine, disk or file system are reported
/// and can be neither vendor's, and all where nothing is known.
fn possible(environment: &Environment) -> impl Iterator<Item = &'static KnownCredit> {
    let says = |word: &str| {
        let texts = [&environment.machine, &environment.virtualization];
        texts.into_iter().flatten().any(|text| text.to_ascii_lowercase().contains(word))
    };
    let vendors: &[Vendor] = match (says("amazon"), says("microsoft")) {
        _ if is_elsewhere(environment) => &[],
        (true, false) => &[Vendor::Aws],
        (false, true) => &[Vendor::Azure],
        // Both vendors' machines report their names, so another name is another machine.
        (false, false) if environment.machine.is_some() => &[],
        _ => &[Vendor::Aws, Vendor::Azure],
    };
    KNOWN.iter().filter(move |kind| vendors.contains(&kind.vendor))
}

/// Whether the data certainly lie on no volume of a vendor: disks that report a model of their own are built into the machine.
fn is_elsewhere(environment: &Environment) -> bool {
    let is_of_cloud = |model: &String| {
        let model = model.to_ascii_lowercase();
        CLOUD_MODELS.iter().any(|known| model.contains(known))
    };
    let mut models = environment.devices.iter().filter_map(|device| device.model.as_ref()).peekable();
    let is_built_in = models.peek().is_some() && !models.any(is_of_cloud);
    let kind = environment.file_system.as_ref().map(|file_system| file_system.kind.as_str());
    is_built_in || kind.is_some_and(|kind| NO_VOLUMES.iter().any(|known| kind.starts_with(known)))
}

/// The kinds that could have given `per_s` from credit and would outlast `seconds`: the one that ends first, and the one
/// that lasts longest, each with its seconds.
pub(super) fn unseen(
    environment: &Environment,
    counted: Counted,
    per_s: f64,
    seconds: f64,
) -> Option<[(&'static str, f64); 2]> {
    let mut lasting: Vec<(&str, f64)> = possible(environment)
        .filter(|kind| kind.counted == counted)
        .filter_map(|kind| Some((kind.name.as_str(), kind.lasts_s(per_s)?)))
        .filter(|(_, lasts)| *lasts > seconds)
        .collect();
    lasting.sort_by(|left, right| left.1.total_cmp(&right.1));
    Some([*lasting.first()?, *lasting.last()?])
}

/// The kind whose published rates and credit are these.
pub(super) fn recognise(counted: Counted, burst_per_s: f64, base_per_s: f64, credit: f64) -> Option<String> {
    let same = |seen: f64, published: f64| (seen / published - 1.0).abs() <= SAME_RATE;
    // gp2 comes in every size, so its base reports the size.
    if counted == Counted::Requests && same(burst_per_s, 3_000.0) && credit <= SAME_CREDIT * 5.4e6 && base_per_s > 97.0
    {
        return Some(if base_per_s < 103.0 {
            "AWS gp2 of up to 33 GiB".to_owned()
        } else {
            format!("AWS gp2 of about {:.0} GiB", base_per_s / 3.0)
        });
    }
    KNOWN
        .iter()
        .find(|kind| {
            kind.counted == counted
                && same(burst_per_s, kind.burst_per_s)
                && same(base_per_s, kind.base_per_s)
                && credit <= SAME_CREDIT * kind.credit
        })
        .map(|kind| kind.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_last_as_long_as_their_vendors_say() {
        let lasts = |name: &str, per_s: f64| {
            KNOWN.iter().filter(|kind| kind.name == name).find_map(|kind| kind.lasts_s(per_s)).unwrap()
        };
        assert!((lasts("AWS gp2 of 33 GiB", 3_000.0) - 1_862.0).abs() < 1.0);
        assert!((lasts("AWS gp2 of 100 GiB", 3_000.0) - 2_000.0).abs() < 1.0);
        assert!((lasts("AWS gp2 of 750 GiB", 3_000.0) - 7_200.0).abs() < 1.0);
        assert!((lasts("Azure P10", 3_500.0) - 1_800.0).abs() < 1.0);
        assert!((lasts("Azure P10", 170e6) - 1_800.0).abs() < 1.0);
    }

    #[test]
    fn only_kinds_that_can_give_the_rate_are_considered() {
        let any = Environment::default();
        let unseen = |per_s, seconds| unseen(&any, Counted::Requests, per_s, seconds);
        assert_eq!(unseen(80_000.0, 60.0), None, "faster than any burst");
        assert_eq!(unseen(50.0, 60.0), None, "slower than any base rate");
        let [first, last] = unseen(3_000.0, 60.0).unwrap();
        assert_eq!((first.0, last.0), ("AWS gp2 of 33 GiB", "AWS gp2 of 750 GiB"));
        assert_eq!(unseen(3_000.0, 8_000.0), None, "all of them would have ended");
    }

    #[test]
    fn a_machine_that_tells_its_vendor_has_that_vendors_volumes() {
        let azure = Environment { virtualization: Some("microsoft".to_owned()), ..Environment::default() };
        let [first, last] = unseen(&azure, Counted::Requests, 3_000.0, 60.0).unwrap();
        assert_eq!((first.0, last.0), ("Azure P4", "Azure P20"));
        let aws = Environment { machine: Some("Amazon EC2 m7i.large".to_owned()), ..Environment::default() };
        assert!(
            unseen(&aws, Counted::Requests, 3_000.0, 60.0).unwrap().iter().all(|(name, _)| name.starts_with("AWS"))
        );
    }

    #[test]
    fn a_disk_that_is_in_the_machine_has_no_credit() {
        use model::record::{BlockDevice, FileSystem};
        let unseen = |environment: &Environment| unseen(environment, Counted::Requests, 3_000.0, 60.0).is_some();
        let with_model = |model: &str| Environment {
            virtualization: Some("amazon nitro".to_owned()),
            devices: vec![BlockDevice { model: Some(model.to_owned()), ..BlockDevice::default() }],
            ..Environment::default()
        };
        assert!(unseen(&with_model("Amazon Elastic Block Store")));
        assert!(
            !unseen(&with_model("Amazon EC2 NVMe Instance Storage")) && !unseen(&with_model("Samsung SSD 990 PRO"))
        );
        let dell = Environment { machine: Some("Dell Inc. PowerEdge R740".to_owned()), ..Environment::default() };
        assert!(!unseen(&dell));
        let bare = Environment { devices: vec![BlockDevice::default()], ..Environment::default() };
        assert!(unseen(&bare), "nothing is known of it");
        let memory = FileSystem { kind: "tmpfs".to_owned(), ..FileSystem::default() };
        assert!(!unseen(&Environment { file_system: Some(memory), ..Environment::default() }));
    }

    #[test]
    fn a_found_credit_is_recognised_by_its_rates() {
        let kind = |burst, base, credit| recognise(Counted::Requests, burst, base, credit);
        assert_eq!(kind(2_990.0, 301.0, 5.3e6).as_deref(), Some("AWS gp2 of about 100 GiB"));
        assert_eq!(kind(3_510.0, 498.0, 5.0e6).as_deref(), Some("Azure P10"));
        assert_eq!(kind(3_510.0, 498.0, 9.0e6), None, "more than a P10 can have");
        assert_eq!(kind(9_000.0, 300.0, 1.0e5), None);
    }
}
