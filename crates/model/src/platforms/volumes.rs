//! How many volumes of which kind and size, and what each of them allows.

use super::rule::{NoRate, Rule};
use super::{Burst, Catalogue, Credit, NameError, VolumeKind};
use crate::units::{Bytes, group_thousands};

/// How many volumes may be asked for.
const MAX_COUNT: u32 = 10_000;
const MIB_IN_MB: f64 = 1.048_576;

/// Volumes of one kind and size.
#[derive(Debug, Clone, PartialEq)]
pub struct Volumes {
    /// What they are.
    pub kind: VolumeKind,
    /// How many there are, over all nodes.
    pub count: u32,
    /// How large each is, in GiB; absent where it was not said and does not follow.
    pub size_gib: Option<f64>,
    /// What each of them allows.
    pub each: OneVolume,
}

/// What one volume allows.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct OneVolume {
    /// Requests per second; absent where no limit is published.
    pub iops: Option<f64>,
    /// Megabytes (10^6) per second; absent where no limit is published.
    pub mb_per_s: Option<f64>,
    /// Requests on credit.
    pub iops_credit: Option<Credit>,
    /// Megabytes on credit.
    pub mb_credit: Option<Credit>,
    /// Megabytes per second of requests of [`super::Small::kib`], where that is published.
    pub small_mb_per_s: Option<f64>,
}

/// Why volumes are not known.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum VolumeError {
    /// Their name says nothing.
    #[error(transparent)]
    Name(#[from] NameError),
    /// What follows the name is not understood, or does not go together with it.
    #[error("`{written}` is not a possible volume: {problem}")]
    Written {
        /// What was written.
        written: String,
        /// What is wrong with it.
        problem: String,
        /// What to do about it.
        hint: String,
    },
}

impl VolumeError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Name(problem) => problem.hint(),
            Self::Written { hint, .. } => hint.clone(),
        }
    }
}

/// What stands after a name.
#[derive(Debug, Default)]
struct Options {
    size_gib: Option<f64>,
    iops: Option<f64>,
    throughput: Option<f64>,
}

const FORM: &str = "write NAME, NAMExCOUNT or NAME:SIZE,iops=N,throughput=NxCOUNT, as in `p30x32`, `gp2:500Gx4` or \
                    `gp3:1T,iops=16000,throughput=500x8`";

impl Volumes {
    /// Reads `p30x32` or `gp3:1T,iops=16000,throughput=500x8`: name, what was bought, and how many over all nodes.
    ///
    /// # Errors
    /// If the name says nothing, the rest is not understood, or such a volume cannot be had.
    pub fn parse(written: &str, catalogue: &Catalogue) -> Result<Self, VolumeError> {
        let fail = |problem: String, hint: &str| VolumeError::Written {
            written: written.to_owned(),
            problem,
            hint: hint.to_owned(),
        };
        let (rest, count) = match written.trim().rsplit_once(['x', 'X', '*']) {
            Some((rest, count)) if is_number(count.trim()) => {
                let count = count.trim().parse::<u32>().ok().filter(|count| (1..=MAX_COUNT).contains(count));
                let count = count.ok_or_else(|| fail(format!("there are 1 to {MAX_COUNT} of them"), FORM))?;
                (rest.trim_end(), count)
            }
            _ => (written.trim(), 1),
        };
        let (name, options) = rest.split_once(':').unwrap_or((rest, ""));
        let kind = catalogue.volume(name)?;
        let options = Options::parse(options).map_err(|problem| fail(problem, FORM))?;
        let size_gib = kind.size_gib.or(options.size_gib);
        if let (Some(own), Some(_)) = (kind.size_gib, options.size_gib) {
            let hint = format!("leave the size out: a {} has {own} GiB", kind.name);
            return Err(fail("it comes in one size".to_owned(), &hint));
        }
        if let (Some((least, largest)), Some(size)) = (kind.sizes_gib, options.size_gib)
            && !kind.has_size(size)
        {
            let hint = format!("{} comes in {least} to {largest} GiB", kind.name);
            return Err(fail(format!("{size} GiB is none of its sizes"), &hint));
        }
        let bought = (options.iops, options.throughput);
        Self::of(kind, count, size_gib, bought).map_err(|(problem, hint)| fail(problem, &hint))
    }

    /// So many of a kind, with requests and throughput that were bought for each; or what is wrong with that, and what to do.
    pub(super) fn of(
        kind: &VolumeKind,
        count: u32,
        size_gib: Option<f64>,
        bought: (Option<f64>, Option<f64>),
    ) -> Result<Self, (String, String)> {
        let size_gib = kind.size_gib.or(size_gib);
        let each =
            OneVolume::of(kind, size_gib, bought).map_err(|(what, problem)| problem_words(kind, what, problem))?;
        Ok(Self { kind: kind.clone(), count, size_gib, each })
    }

    /// The throughput of each that binds requests of `bytes`, in megabytes per second, and how many bytes of it one of them takes.
    pub fn throughput_for(&self, bytes: f64) -> (Option<f64>, f64) {
        let (mb, costs) = (self.each.mb_per_s, self.kind.costs(bytes));
        let Some((small, small_mb)) = self.kind.small.as_ref().zip(self.each.small_mb_per_s) else {
            return (mb, costs);
        };
        let counted = bytes.min(small.kib * 1024.0);
        match mb {
            Some(mb) if mb / costs <= small_mb / counted => (Some(mb), costs),
            _ => (Some(small_mb), counted),
        }
    }

    /// As the user writes them: `P30 x 32`.
    pub fn name(&self) -> String {
        let sold = self.kind.size_gib.is_none();
        let size = self.size_gib.filter(|_| sold).map_or_else(String::new, |size| {
            format!(
                " of {}",
                if size >= 1024.0 && size % 1024.0 == 0.0 {
                    format!("{} TiB", size / 1024.0)
                } else {
                    format!("{size} GiB")
                }
            )
        });
        format!("{}{size} x {}", self.kind.name, self.count)
    }

    /// As [`parse`](Self::parse) reads them: `gp3:1024G,iops=16000x8`.
    pub fn typed(&self) -> String {
        let is_bought = |rule: &Option<Rule>| rule.as_ref().is_some_and(|rule| rule.provisioned);
        let size = self.size_gib.filter(|_| self.kind.size_gib.is_none()).map(|size| format!("{size}G"));
        let iops = self.each.iops.filter(|_| is_bought(&self.kind.iops)).map(|iops| format!("iops={iops}"));
        let throughput = self.each.mb_per_s.filter(|_| is_bought(&self.kind.throughput));
        // Rounded, since the unit is no power of ten.
        let in_unit = |mb: f64| (mb / self.kind.unit.in_megabytes(1.0) * 1e6).round() / 1e6;
        let throughput = throughput.map(|mb| format!("throughput={}", in_unit(mb)));
        let options: Vec<String> = [size, iops, throughput].into_iter().flatten().collect();
        let between = if options.is_empty() { "" } else { ":" };
        let name = self.kind.name.to_lowercase().replace(' ', "-");
        format!("{name}{between}{}x{}", options.join(","), self.count)
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl Options {
    fn parse(text: &str) -> Result<Self, String> {
        let mut options = Self::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let figure = |value: &str| {
                let value: f64 = value.parse().map_err(|_| format!("`{word}` has no number"))?;
                if value.is_finite() && value > 0.0 { Ok(Some(value)) } else { Err(format!("`{word}` is not above 0")) }
            };
            match word.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
                Some(("iops", value)) => options.iops = figure(value)?,
                Some(("throughput", value)) => options.throughput = figure(value)?,
                Some(("size", value)) => options.size_gib = Some(gib(value)?),
                Some((key, _)) => return Err(format!("`{key}` is none of size, iops and throughput")),
                None => options.size_gib = Some(gib(word)?),
            }
        }
        Ok(options)
    }
}

fn gib(size: &str) -> Result<f64, String> {
    let bytes: Bytes = size.parse().map_err(|problem: crate::units::UnitError| problem.to_string())?;
    let gib = bytes.0 as f64 / f64::from(1 << 30);
    if gib > 0.0 { Ok(gib) } else { Err(format!("`{size}` is not above 0")) }
}

impl OneVolume {
    fn of(
        kind: &VolumeKind,
        size: Option<f64>,
        (iops, throughput): (Option<f64>, Option<f64>),
    ) -> Result<Self, (&'static str, NoRate)> {
        let rate = |what, rule: &Option<Rule>, iops, bought: Option<f64>| match rule {
            None if bought.is_some() => Err((what, NoRate::NotForSale)),
            None => Ok(None),
            Some(rule) => rule.rate(size, iops, bought).map(Some).map_err(|problem| (what, problem)),
        };
        let iops = rate("iops", &kind.iops, None, iops)?;
        let throughput = rate("throughput", &kind.throughput, iops, throughput)?;
        let burst = |what, rule: &Option<Rule>| rate(what, rule, iops, None);
        let none = Burst { iops: None, throughput: None, minutes: None, credit_ios: None, credit_mib_per_gib: None };
        let bursts = kind.burst.as_ref().unwrap_or(&none);
        let burst_iops = burst("iops", &bursts.iops)?;
        let burst_throughput = burst("throughput", &bursts.throughput)?;
        let small = rate("throughput", &kind.small.as_ref().map(|small| small.throughput.clone()), iops, None)?;
        let mb_per_s = throughput.map(|throughput| kind.unit.in_megabytes(throughput));
        let burst_mb = burst_throughput.map(|throughput| kind.unit.in_megabytes(throughput));
        let credit_mb = bursts.credit_mib_per_gib.zip(size).map(|(mib, size)| mib * size * MIB_IN_MB);
        Ok(Self {
            iops,
            mb_per_s,
            iops_credit: credit(iops, burst_iops, bursts.minutes, bursts.credit_ios),
            mb_credit: credit(mb_per_s, burst_mb, bursts.minutes, credit_mb),
            small_mb_per_s: small.map(|small| kind.unit.in_megabytes(small)),
        })
    }
}

/// None where the base is not less than the burst: then there is nothing to spend a credit on.
fn credit(base: Option<f64>, burst: Option<f64>, minutes: Option<f64>, full: Option<f64>) -> Option<Credit> {
    let (base, burst_per_s) = base.zip(burst).filter(|(base, burst)| base < burst)?;
    let full = full.or(minutes.map(|minutes| minutes * 60.0 * (burst_per_s - base)))?;
    Some(Credit { burst_per_s, full, refill_s: Some(full / base) })
}

fn problem_words(kind: &VolumeKind, what: &str, problem: NoRate) -> (String, String) {
    let unit = if what == "iops" { "requests/s" } else { kind.unit.name() };
    match problem {
        NoRate::NoSize => (
            format!("what a {} allows follows from its size", kind.name),
            format!("say how large each is, as in `{}:500G`", kind.name),
        ),
        NoRate::NotProvisioned => (
            format!("what a {} allows is what was bought for it", kind.name),
            format!("say how much, as in `{}:1T,{what}=10000` ({unit})", kind.name),
        ),
        NoRate::TooMuch { asked, most } => (
            format!("`{what}={asked}` cannot be had"),
            format!(
                "there is at most {} {unit} for it, by its size and by what else was bought",
                group_thousands(most)
            ),
        ),
        NoRate::NotForSale => (
            format!("`{what}` of a {} cannot be bought by itself", kind.name),
            format!("leave `{what}=` out: it follows from the size or from what else was bought"),
        ),
    }
}
