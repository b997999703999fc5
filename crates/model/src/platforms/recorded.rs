//! A platform held against what a load did interval by interval, instead of against one rate.

use super::combination::{Asked, Combination};
use super::limits::{self, Limit, Whose};
use super::{Credit, VolumeKind, Volumes};

/// What a load did in one interval: rates of its reads and writes, each with their mean size.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct IntervalRates {
    /// Reads per second.
    pub reads_per_s: f64,
    /// Bytes of one.
    pub read_bytes: f64,
    /// Writes per second.
    pub writes_per_s: f64,
    /// Bytes of one.
    pub write_bytes: f64,
}

impl IntervalRates {
    /// Reads and writes per second.
    pub fn per_s(&self) -> f64 {
        self.reads_per_s + self.writes_per_s
    }

    /// Their bytes per second.
    pub fn bytes_per_s(&self) -> f64 {
        self.reads_per_s * self.read_bytes + self.writes_per_s * self.write_bytes
    }

    /// As a load of one size of requests.
    pub fn asked(&self, hit_share: f64) -> Asked {
        let per_s = self.per_s();
        let (read_share, block_bytes) =
            if per_s > 0.0 { (self.reads_per_s / per_s, self.bytes_per_s() / per_s) } else { (0.0, 0.0) };
        Asked { read_share, block_bytes, hit_share }
    }

    /// Whether it has at least as many requests of each kind, each at least as large. More bytes alone are not enough: volumes may count
    /// a request as several, by its size.
    fn covers(&self, other: &Self) -> bool {
        let of = |it: &Self| {
            let size = |per_s: f64, bytes: f64| if per_s > 0.0 { bytes } else { 0.0 };
            [
                it.reads_per_s,
                it.writes_per_s,
                size(it.reads_per_s, it.read_bytes),
                size(it.writes_per_s, it.write_bytes),
            ]
        };
        of(self).iter().zip(of(other)).all(|(mine, theirs)| *mine >= theirs)
    }
}

/// What a load did, interval by interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    interval_s: f64,
    intervals: Vec<IntervalRates>,
    /// Those that none of the largest covers: where no credit is spent, a limit that meets them is met throughout.
    extremes: Vec<IntervalRates>,
}

impl Recorded {
    /// Of intervals of that length, one after the other.
    pub fn new(interval_s: f64, intervals: Vec<IntervalRates>) -> Self {
        let busy = intervals.iter().copied().filter(|rates| rates.per_s() > 0.0).collect();
        let extremes = uncovered(uncovered(busy, IntervalRates::bytes_per_s), IntervalRates::per_s);
        Self { interval_s, intervals, extremes }
    }

    /// How long each interval is, in seconds.
    pub fn interval_s(&self) -> f64 {
        self.interval_s
    }

    /// How many there are.
    pub fn intervals(&self) -> usize {
        self.intervals.len()
    }

    /// The interval with most requests; absent where none has one.
    pub fn busiest(&self) -> Option<IntervalRates> {
        self.extremes.iter().copied().reduce(|most, other| if other.per_s() > most.per_s() { other } else { most })
    }

    /// Every limit of `platform` that the load touches, with what it takes of it. `hit_share` of the reads end in the host's cache, where
    /// there is one.
    pub fn held(&self, platform: &Combination, hit_share: f64) -> Vec<Held> {
        let mut held = uses(&self.intervals, hit_share, &|asked: &Asked| limits::of(platform, asked, 0.0));
        held.retain(|held| held.most() > 0.0);
        held
    }

    /// How many times the load the platform allows, full credits included, and what binds there; absent where no limit is known.
    pub fn times(&self, platform: &Combination, hit_share: f64) -> Option<(f64, Whose)> {
        let limits = |asked: &Asked| limits::of(platform, asked, 0.0);
        let extremes = uses(&self.extremes, hit_share, &limits);
        let touched = || extremes.iter().enumerate().filter(|(_, held)| held.most() > 0.0);
        let in_the_long_run = |held: &Held| (1.0 / held.most(), held.whose);
        let less = |least: (f64, Whose), other: (f64, Whose)| if other.0 < least.0 { other } else { least };
        let without_credit = touched().filter(|(_, held)| held.credit.is_none());
        let mut least = without_credit.map(|(_, held)| in_the_long_run(held)).reduce(less);
        // A credit matters where what it adds to would bind first: only then all intervals are looked at, one after the other.
        let mut whole: Option<Vec<Held>> = None;
        for (place, held) in touched().filter(|(_, held)| held.credit.is_some()) {
            let (long_run, whose) = in_the_long_run(held);
            let most = least.map_or(f64::INFINITY, |(times, _)| times);
            if long_run < most {
                let whole = whole.get_or_insert_with(|| uses(&self.intervals, hit_share, &limits));
                let allowed = whole.get(place).map_or(long_run, |held| held.times(self.interval_s, long_run, most));
                least = Some(least.map_or((allowed, whose), |least| less(least, (allowed, whose))));
            }
        }
        least
    }

    /// Whether volumes alone allow so many times the load, whatever machine they are attached to.
    pub(super) fn is_met_by(&self, volumes: &Volumes, copies: f64, hit_share: f64, times: f64) -> bool {
        let limits = |asked: &Asked| {
            let past_cache = asked.read_share * (1.0 - asked.hit_share) + (1.0 - asked.read_share) * copies;
            limits::of_volumes(volumes, None, asked, past_cache)
        };
        let extremes = uses(&self.extremes, hit_share, &limits);
        let is_beyond = |held: &Held, burst: f64| held.most() * times > burst * ROUNDED;
        if extremes.iter().any(|held| is_beyond(held, held.credit.map_or(1.0, |it| it.burst_per_s / held.per_s))) {
            return false;
        }
        extremes.iter().all(|held| !is_beyond(held, 1.0))
            || uses(&self.intervals, hit_share, &limits).iter().all(|held| held.is_met(self.interval_s, times))
    }

    /// The most requests as a kind of volume counts them, and the most bytes as it does, in one interval, per second.
    pub(super) fn most_for(&self, kind: &VolumeKind, copies: f64) -> (f64, f64) {
        let of = |each: fn(&VolumeKind, f64) -> f64| {
            let all = self.extremes.iter().map(|rates| {
                rates.reads_per_s * each(kind, rates.read_bytes)
                    + rates.writes_per_s * copies * each(kind, rates.write_bytes)
            });
            all.fold(0.0, f64::max)
        };
        (of(VolumeKind::counted_as), of(VolumeKind::costs))
    }
}

/// Each interval is compared with at most so many others: comparing all with all takes minutes where none covers another.
const MAX_COMPARED: usize = 256;

/// The intervals that none of those with most of `of` covers.
fn uncovered(mut intervals: Vec<IntervalRates>, of: fn(&IntervalRates) -> f64) -> Vec<IntervalRates> {
    intervals.sort_by(|a, b| of(b).total_cmp(&of(a)));
    let mut kept: Vec<IntervalRates> = Vec::new();
    for rates in intervals {
        if !kept.iter().take(MAX_COMPARED).any(|larger| larger.covers(&rates)) {
            kept.push(rates);
        }
    }
    kept
}

/// What each limit of a platform or of volumes is used, in each of `intervals`.
fn uses(intervals: &[IntervalRates], hit_share: f64, limits: &dyn Fn(&Asked) -> Vec<Limit>) -> Vec<Held> {
    let alone = |read_share: f64, block_bytes: f64| limits(&Asked { read_share, block_bytes, hit_share });
    let unused = |Limit { whose, per_s, credit, .. }: Limit| {
        (Held { whose, per_s, credit, uses: vec![0.0; intervals.len()] }, 0.0)
    };
    let mut held: Vec<(Held, f64)> = alone(1.0, 0.0).into_iter().map(unused).collect();
    for (at, rates) in intervals.iter().enumerate() {
        let both = [(rates.reads_per_s, 1.0, rates.read_bytes), (rates.writes_per_s, 0.0, rates.write_bytes)];
        for (per_s, read_share, block_bytes) in both.into_iter().filter(|(per_s, ..)| *per_s > 0.0) {
            // A platform has the same limits in the same order, whatever the requests.
            for ((held, most), limit) in held.iter_mut().zip(alone(read_share, block_bytes)) {
                let part = per_s * limit.use_of_one / limit.per_s;
                if let Some(of) = held.uses.get_mut(at) {
                    *of += part;
                }
                // What small requests are allowed may differ from what large ones are, and may have no credit.
                if part > 0.0 {
                    let has_credit = limit.credit.is_some() && (*most <= 0.0 || held.credit.is_some());
                    if part > *most {
                        (held.per_s, held.credit, *most) = (limit.per_s, limit.credit, part);
                    }
                    held.credit = held.credit.filter(|_| has_credit);
                }
            }
        }
    }
    held.into_iter().map(|(held, _)| held).collect()
}

/// A limit, and what a load takes of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    /// Whose.
    pub whose: Whose,
    /// What it allows in the long run: requests, or megabytes (10^6), per second. Where that depends on the size of requests, it is of
    /// those that take most of it.
    pub per_s: f64,
    /// What there is on credit beyond it; absent where some of the requests have none.
    pub credit: Option<Credit>,
    /// What the load takes of `per_s` in each interval: 1 is all of it.
    pub uses: Vec<f64>,
}

impl Held {
    /// What the load takes in the interval with most of it.
    fn most(&self) -> f64 {
        self.uses.iter().copied().fold(0.0, f64::max)
    }

    /// Whether some interval takes more than a credit gives at once.
    pub fn is_beyond_burst(&self) -> bool {
        self.credit.is_some_and(|credit| self.most() > credit.burst_per_s / self.per_s * ROUNDED)
    }

    /// How many times the load its credit allows: at least `met`, which needs none, and no more than `most`.
    fn times(&self, interval_s: f64, mut met: f64, most: f64) -> f64 {
        let burst = self.credit.map_or(1.0, |credit| credit.burst_per_s / self.per_s);
        let mut missed = (burst * met).min(most);
        if self.is_met(interval_s, missed) {
            return missed;
        }
        // Each turn halves what is not known: 16 of them leave less than a row shows.
        for _ in 0..16 {
            let middle = f64::midpoint(met, missed);
            if self.is_met(interval_s, middle) { met = middle } else { missed = middle }
        }
        met
    }

    fn is_met(&self, interval_s: f64, times: f64) -> bool {
        let mut left = Left::full(self);
        self.uses.iter().all(|of| left.take(of * times, interval_s))
    }

    /// After how many intervals a credit that is full at the beginning is used up first; absent where there is none, or it lasts.
    pub fn credit_ends_after(&self, interval_s: f64) -> Option<usize> {
        self.credit?;
        let mut left = Left::full(self);
        let is_used_up = |of: &f64| {
            left.take(*of, interval_s);
            left.seconds <= 0.0
        };
        self.uses.iter().position(is_used_up).map(|at| at + 1)
    }
}

/// What is left of a credit, in seconds of what the limit allows in the long run.
struct Left {
    seconds: f64,
    full: f64,
    burst: f64,
    refill: f64,
}

impl Left {
    /// Nothing of what has no credit.
    fn full(held: &Held) -> Self {
        let of = |credit: Credit| {
            let full = credit.full / held.per_s;
            let refill = credit.refill_s.map_or(1.0, |refill_s| full / refill_s);
            Self { seconds: full, full, burst: credit.burst_per_s / held.per_s, refill }
        };
        held.credit.map_or(Self { seconds: 0.0, full: 0.0, burst: 1.0, refill: 0.0 }, of)
    }

    /// Takes what an interval uses; whether there was enough for it.
    fn take(&mut self, of: f64, interval_s: f64) -> bool {
        let given = self.burst.min(1.0 + self.seconds / interval_s);
        // What is beyond the burst is not given, so it costs nothing.
        let spent = of.min(self.burst) - 1.0;
        self.seconds -= spent * interval_s * if spent > 0.0 { 1.0 } else { self.refill };
        self.seconds = self.seconds.clamp(0.0, self.full);
        of <= given * ROUNDED
    }
}

/// What rounding adds to a use.
const ROUNDED: f64 = 1.0 + 1e-9;

#[cfg(test)]
mod tests {
    use super::super::{Cache, Catalogue, Redundancy};
    use super::*;

    fn platform(machine: &str, volume: &str, cache: Cache) -> Combination {
        Combination::parse(Catalogue::built_in(), (machine, 1), volume, cache, Redundancy::External).unwrap()
    }

    fn reads(per_s: f64) -> IntervalRates {
        IntervalRates { reads_per_s: per_s, read_bytes: 4_096.0, ..IntervalRates::default() }
    }

    #[test]
    fn the_busiest_second_binds_where_there_is_no_credit() {
        // P30: 5,000 requests/s each; a D8s_v3 has 12,800.
        let platform = platform("D8s_v3", "p30x2", Cache::None);
        let recorded =
            Recorded::new(1.0, vec![reads(1_000.0), reads(20_000.0), IntervalRates::default(), reads(5_000.0)]);
        assert_eq!(recorded.times(&platform, 0.0), Some((0.5, Whose::VolumesIops)));
        let held = recorded.held(&platform, 0.0);
        let volumes = held.iter().find(|held| held.whose == Whose::VolumesIops).unwrap();
        assert_eq!(volumes.uses, [0.1, 2.0, 0.0, 0.5]);
        assert_eq!(recorded.busiest(), Some(reads(20_000.0)));
        // Reads that the cache answers do not reach the volumes: what the cache serves binds then.
        let cached = self::platform("D8s_v3", "p30x2", Cache::Read);
        assert_eq!(recorded.times(&cached, 0.75), Some((0.8, Whose::CacheIops)));
    }

    #[test]
    fn reads_and_writes_each_count_with_their_own_size() {
        let platform = platform("D8s_v3", "p30x2", Cache::None);
        // 100 writes of 1 MB take 100 MB/s. With their mean size, 1,000 reads would hide that.
        let mixed = IntervalRates { writes_per_s: 100.0, write_bytes: 1e6, ..reads(1_000.0) };
        let held = Recorded::new(1.0, vec![mixed]).held(&platform, 0.0);
        let bytes = held.iter().find(|held| held.whose == Whose::MachineBytes).unwrap();
        assert!((bytes.uses[0] - (100.0 + 4.096) / bytes.per_s).abs() < 1e-9, "{bytes:?}");
    }

    #[test]
    fn a_credit_lasts_as_long_as_it_is_full_enough() {
        // A gp2 of 100 GiB: 300 requests/s, 3,000 in a burst, and 5.4 million on credit: 2,000 s at 3,000.
        let platform = platform("m5.4xlarge", "gp2:100G", Cache::None);
        let short = Recorded::new(1.0, vec![reads(2_700.0); 2_000]);
        let held = short.held(&platform, 0.0);
        let iops = held.iter().find(|held| held.whose == Whose::VolumesIops).unwrap();
        assert!(iops.is_met(1.0, 1.0));
        let long = Recorded::new(1.0, vec![reads(2_700.0); 3_000]);
        let held = long.held(&platform, 0.0);
        let iops = held.iter().find(|held| held.whose == Whose::VolumesIops).unwrap();
        assert_eq!((iops.is_met(1.0, 1.0), iops.credit_ends_after(1.0)), (false, Some(2_250)));
        // 5.4 million over 3,000 s are 1,800/s beyond the 300.
        let (times, whose) = long.times(&platform, 0.0).unwrap();
        assert!((times - 2_100.0 / 2_700.0).abs() < 1e-4, "{times}");
        assert_eq!(whose, Whose::VolumesIops);
        // No credit gives more than its burst.
        let (times, _) = Recorded::new(1.0, vec![reads(6_000.0)]).times(&platform, 0.0).unwrap();
        assert_eq!(times, 0.5);
    }

    #[test]
    fn fewer_bytes_of_larger_requests_bind_where_volumes_count_by_size() {
        // A gp3 counts a request for each 256 KiB: 700 of 257 KiB are 1,400, and 1,000 of 255 KiB are 1,000.
        let platform = platform("m5.4xlarge", "gp3:1000G,iops=4000,throughput=1000", Cache::None);
        let of = |per_s: f64, kib: f64| IntervalRates { read_bytes: kib * 1024.0, ..reads(per_s) };
        let recorded = Recorded::new(1.0, vec![of(1_000.0, 255.0), of(700.0, 257.0)]);
        assert_eq!(recorded.extremes.len(), 2);
        let held = recorded.held(&platform, 0.0);
        let iops = held.iter().find(|held| held.whose == Whose::VolumesIops).unwrap();
        assert!(iops.uses[1] > iops.uses[0], "{iops:?}");
    }

    #[test]
    fn intervals_that_do_not_cover_each_other_are_all_kept() {
        // The more requests, the smaller they are.
        let falling = |at: u32| IntervalRates { read_bytes: 1e9 / f64::from(at), ..reads(f64::from(at)) };
        let recorded = Recorded::new(1.0, (1..=2_000).map(falling).collect());
        assert_eq!(recorded.extremes.len(), 2_000);
        assert_eq!(recorded.busiest(), Some(falling(2_000)));
    }

    #[test]
    fn small_requests_are_held_against_what_small_ones_are_allowed() {
        let volume = Volumes::parse("vpu120:1000Gx1", Catalogue::built_in()).unwrap();
        let (allowed, _) = volume.throughput_for(8_192.0);
        assert!(allowed < volume.throughput_for(1e6).0, "{volume:?}");
        let platform = platform("VM.Standard.E5.Flex-32", "vpu120:1000Gx1", Cache::None);
        let small = IntervalRates { read_bytes: 8_192.0, ..reads(1_000.0) };
        let held = Recorded::new(1.0, vec![small]).held(&platform, 0.0);
        let bytes = held.iter().find(|held| held.whose == Whose::VolumesBytes).unwrap();
        assert_eq!(Some(bytes.per_s), allowed);
    }

    #[test]
    fn what_is_beyond_a_burst_is_told_from_what_a_credit_lasts_for() {
        let platform = platform("m5.4xlarge", "gp2:100G", Cache::None);
        for (per_s, is_beyond) in [(2_900.0, false), (3_100.0, true)] {
            let held = Recorded::new(1.0, vec![reads(per_s)]).held(&platform, 0.0);
            let iops = held.iter().find(|held| held.whose == Whose::VolumesIops).unwrap();
            assert_eq!((iops.is_beyond_burst(), iops.credit_ends_after(1.0)), (is_beyond, None));
        }
    }

    #[test]
    fn seconds_that_others_cover_change_nothing() {
        let recorded = Recorded::new(1.0, (0..1_000).map(|at| reads(f64::from(at))).collect());
        assert_eq!((recorded.extremes.len(), recorded.intervals()), (1, 1_000));
        assert_eq!(Recorded::new(1.0, vec![IntervalRates::default(); 3]).busiest(), None);
    }
}
