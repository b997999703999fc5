//! Limiters and devices that others disturb: seconds measured on a real disk below the kernel's throttle, and thousands
//! of made-up ones.

use serde::Deserialize;

use super::*;
use model::record::{DeviceStats, Generator, TargetKind};

/// Seconds of sweeps on a virtual disk, as `plimsoll io sweep` recorded them on 22 November 2026 in a control group of which
/// the kernel limited the requests or bytes. The competing reader had 128 requests of 8 KiB outstanding, for one to three
/// seconds at a time, a fifth of the time.
const MEASURED: &str = include_str!("throttled.json");

#[derive(Deserialize)]
struct Sweep {
    limit: String,
    requests_per_s: Option<f64>,
    megabytes_per_s: Option<f64>,
    request_bytes: u64,
    steps: Vec<Measured>,
}

#[derive(Deserialize)]
struct Measured {
    sessions: u32,
    rate: Option<f64>,
    warmup: Vec<u64>,
    reads: Vec<u64>,
    #[serde(default)]
    writes: Vec<u64>,
    others_mb: Vec<u64>,
    p50_us: u64,
    p99_us: u64,
    mean_us: u64,
}

impl Sweep {
    fn run(&self) -> Run {
        let steps = self.steps.iter().zip(0..).map(|(step, index)| step.step(index, self.request_bytes));
        let mut run = io_run(steps.collect());
        run.target.kind = Some(TargetKind::Block);
        run
    }
}

impl Measured {
    fn step(&self, index: u32, bytes: u64) -> Step {
        let writes = |second: usize| self.writes.get(second).copied();
        let all: Vec<f64> =
            (0..self.reads.len()).map(|second| (self.reads[second] + writes(second).unwrap_or(0)) as f64).collect();
        let mut step = io_step(index, self.sessions, bytes, &all, self.warmup.len());
        step.load.rate_operations_per_s = self.rate;
        for (interval, count) in step.intervals.iter_mut().zip(&self.warmup) {
            interval.counters = reads(*count, bytes);
        }
        let measured = step.intervals.iter_mut().filter(|interval| !interval.warmup);
        for (second, interval) in measured.enumerate() {
            let counters = &mut interval.counters;
            counters.physical_reads = Some(self.reads[second]);
            counters.physical_read_bytes = Some(self.reads[second] * bytes);
            counters.physical_writes = writes(second);
            counters.physical_write_bytes = writes(second).map(|count| count * bytes);
            let ours = all[second] as u64 * bytes;
            interval.devices = vec![device(ours + self.others_mb[second] * 1_000_000)];
        }
        step.counters = Counters::default();
        for interval in step.intervals.iter().filter(|interval| !interval.warmup) {
            step.counters.add(&interval.counters);
        }
        step.devices = vec![device(0)];
        // The shape in three durations whose mean is the one that was measured.
        let (middle, tail) = (all.iter().sum::<f64>() * 0.97, all.iter().sum::<f64>() * 0.03);
        let rest = (self.mean_us as f64 * (middle + tail) - self.p50_us as f64 * middle) / tail;
        let times = &mut step.operations[0].service;
        times.clear();
        times.record_n(self.p50_us * 1_000, middle as u64);
        times.record_n((rest.max(self.p50_us as f64) as u64).min(self.p99_us * 3) * 1_000, tail as u64);
        step
    }
}

fn device(read_bytes: u64) -> DeviceStats {
    DeviceStats { name: "vda".to_owned(), elapsed_ns: SECOND, read_bytes, ..DeviceStats::default() }
}

fn measured() -> Vec<Sweep> {
    serde_json::from_str(MEASURED).unwrap()
}

fn ceiling(run: &Run) -> Option<Ceiling> {
    analyse(run, &LatencyTarget::default()).into_iter().find_map(|finding| match finding {
        Finding::Ceiling(ceiling) => Some(ceiling),
        _ => None,
    })
}

/// Runs with something to say.
pub(super) fn runs_with_findings() -> Vec<Run> {
    measured().iter().map(Sweep::run).collect()
}

#[test]
fn every_limit_that_was_measured_is_found_and_nothing_where_there_was_none() {
    for sweep in measured() {
        let found = ceiling(&sweep.run());
        let sentence = found.as_ref().map(Message::sentence);
        let Some(planted) = sweep.requests_per_s.or(sweep.megabytes_per_s) else {
            assert!(!found.is_some_and(|found| found.is_cap()), "{}: {sentence:?}", sweep.limit);
            continue;
        };
        let found = found.filter(Ceiling::is_cap).unwrap_or_else(|| panic!("{}: {sentence:?}", sweep.limit));
        assert!(found.confidence() >= Some(Confidence::Likely), "{}: {sentence:?}", sweep.limit);
        let by_bytes =
            sweep.megabytes_per_s.filter(|_| sweep.request_bytes >= 1 << 18 || sweep.requests_per_s.is_none());
        let (value, planted) = match by_bytes {
            Some(planted) => (found.megabytes_per_s.unwrap(), planted),
            None => (found.per_s, planted),
        };
        assert!((value / planted - 1.0).abs() < 0.005, "{}: {sentence:?}", sweep.limit);
    }
}

#[test]
fn who_disturbed_is_measured_where_the_device_counts() {
    let sweep = measured().into_iter().find(|sweep| sweep.limit.starts_with("16000 requests/s, with")).unwrap();
    let Some(Grounds::Exact { left_out, .. }) = ceiling(&sweep.run()).unwrap().grounds else {
        panic!("{}", sweep.limit)
    };
    assert!(left_out.disturbed > 0 && left_out.by_others > 0, "{left_out:?}");
}

#[test]
fn others_are_not_blamed_for_a_rate_that_does_not_follow_them() {
    // One load of large requests, others in each second, taking more in some than in others.
    let beside_others = |counts: &[f64], slots: u32| {
        let mut step = io_step(0, 16, 1 << 20, counts, 0);
        step.devices = vec![device(0)];
        for (second, interval) in step.intervals.iter_mut().enumerate() {
            interval.devices = vec![device((counts[second] as u64 + [20, 45][second % 2]) << 20)];
        }
        // Slots beyond the 16 that are in the device wait for a thread.
        step.load.sessions = Some(slots);
        let idle_session_ns = u64::from(slots - 16) * step.window.duration_ns;
        step.generator = Some(Generator { idle_session_ns, ..Generator::default() });
        let mut run = io_run(vec![step]);
        run.target.kind = Some(TargetKind::Block);
        ceiling(&run).map(|found| found.limit)
    };
    let held = beside_others(&[48.0, 48.0, 47.0, 48.0, 48.0, 48.0, 47.0, 48.0], 16);
    assert!(!matches!(held, Some(Limit::Neighbour { .. })), "{held:?}");
    let uneven = [80.0, 48.0, 78.0, 51.0, 82.0, 47.0, 79.0, 50.0];
    let follows = beside_others(&uneven, 16);
    assert!(matches!(follows, Some(Limit::Neighbour { .. })), "{follows:?}");
    let ours = beside_others(&uneven, 160);
    assert!(!matches!(ours, Some(Limit::Neighbour { .. })), "the load generator kept most slots: {ours:?}");
}

/// How much of each second somebody else takes who comes for one to three seconds, a fifth of the time.
fn visits(noise: &mut Noise, seconds: usize) -> Vec<f64> {
    let mut taken = vec![0.0; seconds];
    let strength = noise.between(0.15, 0.75);
    let mut from = -12.0 * noise.uniform();
    while from < seconds as f64 {
        let length = noise.between(1.0, 3.0);
        for (second, taken) in taken.iter_mut().enumerate() {
            let overlap = (from + length).min(second as f64 + 1.0) - from.max(second as f64);
            *taken += strength * overlap.max(0.0);
        }
        from += length + noise.between(4.0, 12.0);
    }
    taken
}

const SETS: [&[u32]; 4] = [&[4, 16, 64], &[8, 32, 128], &[1, 4, 16, 64], &[1, 2, 4, 8, 16, 32, 64]];

/// A sweep in which the device gives `rate(depth, second)` requests in a second that nobody else takes a share of, and
/// `limiter` makes of that what comes through.
fn sweep(
    noise: &mut Noise,
    rate: &mut dyn FnMut(&mut Noise, f64, usize) -> f64,
    limiter: &dyn Fn(&mut Noise, Vec<f64>) -> Vec<f64>,
) -> Run {
    let depths = SETS[noise.between(0.0, 4.0) as usize];
    let seconds = noise.between(8.0, 25.0) as usize;
    let is_counted = noise.uniform() < 0.5;
    let mut start = 0;
    let steps = depths.iter().zip(0..).map(|(depth, index)| {
        let taken = visits(noise, seconds + 1);
        let given = (0..=seconds).map(|second| {
            let rate = rate(noise, f64::from(*depth), start + second);
            rate * (1.0 - taken[second])
        });
        let given: Vec<f64> = given.collect();
        start += seconds + 1;
        let counts = limiter(noise, given);
        let mut step = io_step(index, *depth, 8_192, &counts[1..], 0);
        let mut warmup = step.intervals[0].clone();
        (warmup.warmup, warmup.counters) = (true, reads(counts[0] as u64, 8_192));
        step.intervals.insert(0, warmup);
        if is_counted {
            step.devices = vec![device(0)];
            for (second, interval) in step.intervals.iter_mut().enumerate() {
                let ours = counts[second] * 8_192.0;
                interval.devices = vec![device((ours * (1.0 + 2.0 * taken[second])) as u64)];
            }
        }
        step
    });
    let mut run = io_run(steps.collect());
    run.target.kind = Some(TargetKind::Block);
    run
}

/// No limiter: what the device gives, in whole requests.
fn free(_: &mut Noise, given: Vec<f64>) -> Vec<f64> {
    given.iter().map(|rate| rate.max(0.0).round()).collect()
}

type Device = (&'static str, fn(&mut Noise) -> Run);

/// Devices without a limit, each noisy in its own way.
const DEVICES: &[Device] = &[
    ("servers with lognormal times and one queue", |noise| {
        let (servers, service_s) = (noise.between(2.0, 32.0).round(), noise.between(100e-6, 4e-3));
        let sigma = noise.between(0.3, 1.2_f64);
        let (cv, deviation) = (((sigma * sigma).exp() - 1.0).sqrt(), noise.between(0.005, 0.08));
        let mut rate = |noise: &mut Noise, depth: f64, _: usize| {
            let mean = depth.min(servers) / service_s;
            mean * (1.0 + deviation * noise.normal()) + cv * mean.sqrt() * noise.normal()
        };
        sweep(noise, &mut rate, &free)
    }),
    ("a knee that is gradual", |noise| {
        let (contention, alone, deviation) =
            (noise.between(0.02, 0.5), noise.between(500.0, 20_000.0), noise.between(0.002, 0.08));
        let mut rate = |noise: &mut Noise, depth: f64, _: usize| {
            alone * depth / (1.0 + contention * (depth - 1.0)) * (1.0 + deviation * noise.normal())
        };
        sweep(noise, &mut rate, &free)
    }),
    ("a capacity that drifts", |noise| {
        let (capacity, latency_s) = (noise.between(1_000.0, 60_000.0), noise.between(80e-6, 1e-3));
        let (deviation, memory_s) = (noise.between(0.02, 0.15), noise.between(3.0, 60.0));
        let drift = noise.slow(400, deviation, memory_s);
        let mut rate = |noise: &mut Noise, depth: f64, second: usize| {
            f64::min(depth / latency_s, capacity * (1.0 + drift[second])) * (1.0 + 0.005 * noise.normal())
        };
        sweep(noise, &mut rate, &free)
    }),
    ("stalls that come again and again", |noise| {
        let (servers, service_s) = (noise.between(2.0, 32.0).round(), noise.between(100e-6, 4e-3));
        let (period, stall_s, deviation) =
            (noise.between(3.0, 15.0) as usize, noise.between(0.1, 0.9), noise.between(0.01, 0.05));
        let mut rate = |noise: &mut Noise, depth: f64, second: usize| {
            let alive = if second.is_multiple_of(period) { 1.0 - stall_s } else { 1.0 };
            depth.min(servers) / service_s * alive * (1.0 + deviation * noise.normal())
        };
        sweep(noise, &mut rate, &free)
    }),
    ("a constant latency", |noise| {
        let (latency_s, deviation) = (noise.between(50e-6, 5e-3), noise.between(0.0, 0.01));
        // Half of them repeat the same count in every second.
        let deviation = if noise.uniform() < 0.5 { 0.0 } else { deviation };
        let mut rate = |noise: &mut Noise, depth: f64, _: usize| depth / latency_s * (1.0 + deviation * noise.normal());
        sweep(noise, &mut rate, &free)
    }),
];

#[test]
fn of_a_thousand_noisy_devices_hardly_any_is_called_capped() {
    let mut all = 0.0;
    for (name, device) in DEVICES {
        let capped = share(|noise| {
            let found = ceiling(&device(noise)).filter(Ceiling::is_cap);
            let certain = found.as_ref().is_some_and(|found| found.confidence() == Some(Confidence::AlmostCertain));
            assert!(!certain, "{name}: {found:?}");
            found.is_some()
        });
        assert!(capped <= 0.05, "{name}: {capped}");
        all += capped / DEVICES.len() as f64;
    }
    assert!(all <= 0.01, "{all} of all");
}

/// A limiter as the kernel's: it counts in slices of a tenth of a second, gives later what it owes, up to a part of a second,
/// and now and then the requests of a slice fall into the next second.
fn limiter(cap: f64) -> impl Fn(&mut Noise, Vec<f64>) -> Vec<f64> {
    move |noise, given| {
        let slice = (cap / 10.0).floor();
        let (mut owed, mut late): (f64, f64) = (0.0, 0.0);
        given
            .into_iter()
            .map(|able| {
                let through = able.min(10.0 * slice + owed);
                owed = (owed + 10.0 * slice - through).min(0.4 * cap);
                let falls_later = if noise.uniform() < 0.03 { slice } else { 0.0 };
                let count = through + late - falls_later;
                late = falls_later;
                count.max(0.0).round()
            })
            .collect()
    }
}

#[test]
fn of_a_thousand_disturbed_caps_nearly_all_are_found_with_their_value() {
    let found = (0..5 * SEEDS).filter(|seed| {
        let noise = &mut Noise::new(*seed);
        let cap = noise.between(2_000.0, 20_000.0).round();
        let (ability, latency_s, deviation) =
            (noise.between(1.5, 4.0) * cap, noise.between(80e-6, 400e-6), noise.between(0.02, 0.1));
        let mut rate = |noise: &mut Noise, depth: f64, _: usize| {
            f64::min(depth / latency_s, ability) * (1.0 + deviation * noise.normal())
        };
        let run = sweep(noise, &mut rate, &limiter(cap));
        ceiling(&run).is_some_and(|found| found.is_cap() && (found.per_s / cap - 1.0).abs() < 0.01)
    });
    let share = found.count() as f64 / (5 * SEEDS) as f64;
    assert!(share >= 0.98, "{share}");
}

/// One load below a limiter whose cap falls from `burst` to `base` at second `change`, on a device that others use.
fn credit(noise: &mut Noise, seconds: usize, change: usize, (burst, base): (f64, f64)) -> Run {
    let (ability, deviation) = (noise.between(1.5, 4.0) * burst, noise.between(0.02, 0.1));
    let taken = visits(noise, seconds);
    let given: Vec<f64> =
        taken.iter().map(|taken| ability * (1.0 + deviation * noise.normal()) * (1.0 - taken)).collect();
    let mut counts = limiter(burst)(noise, given[..change].to_vec());
    counts.extend(limiter(base)(noise, given[change..].to_vec()));
    io_run(vec![io_step(0, 32, 8_192, &counts, 0)])
}

#[test]
fn a_credit_that_runs_out_is_found_between_disturbed_seconds() {
    let found = share(|noise| {
        let seconds = noise.between(60.0, 240.0) as usize;
        let change = noise.between(20.0, seconds as f64 - 20.0) as usize;
        // A slice holds whole requests.
        let burst = (noise.between(200.0, 2_000.0)).round() * 10.0;
        let base = (burst * noise.between(0.005, 0.06)).round() * 10.0;
        let found = crate::burst::bursts(&credit(noise, seconds, change, (burst, base)));
        matches!(found.as_slice(), [found] if (found.burst_per_s / burst - 1.0).abs() < 0.01
            && (found.base_per_s / base - 1.0).abs() < 0.01
            && (found.after.as_seconds() - change as f64).abs() <= 2.0)
    });
    assert!(found >= 0.98, "{found}");
}

/// A step of so many slots, in whose seconds the device moved so many requests more.
fn beside(index: u32, slots: u32, counts: &[f64], others: &[f64]) -> Step {
    let mut step = io_step(index, slots, 8_192, counts, 0);
    step.devices = vec![device(0)];
    for ((interval, ours), others) in step.intervals.iter_mut().zip(counts).zip(others) {
        interval.devices = vec![device(((ours + others) * 8_192.0) as u64)];
    }
    step
}

fn on_block(steps: Vec<Step>) -> Run {
    let mut run = io_run(steps);
    run.target.kind = Some(TargetKind::Block);
    run
}

#[test]
fn others_are_not_blamed_for_a_rate_that_was_reached_or_grows_as_its_load_does() {
    let uneven = |mean: f64| [1.03, 0.96, 1.02, 0.98, 1.04, 0.97, 1.0, 1.0].map(|factor| factor * mean);
    let limit = |steps| ceiling(&on_block(steps)).map(|found| found.limit);
    let step = |(index, slots, mean)| beside(index, slots, &uneven(mean), &[1_000.0; 8]);
    let grows = limit([(0, 1, 1_000.0), (1, 2, 2_000.0), (2, 4, 4_000.0), (3, 8, 7_900.0)].map(step).to_vec());
    assert!(matches!(grows, Some(Limit::NotReached { .. })), "{grows:?}");
    let open = |asked: f64| {
        let mut step = step((0, 64, 5_000.0));
        step.load.rate_operations_per_s = Some(asked);
        limit(vec![step])
    };
    assert!(matches!(open(8_000.0), Some(Limit::Neighbour { .. })), "{:?}", open(8_000.0));
    assert!(!matches!(open(5_000.0), Some(Limit::Neighbour { .. })), "{:?}", open(5_000.0));
}

#[test]
fn others_who_come_are_no_credit_that_ended() {
    let ends = |others_after: f64| {
        let even = |second: usize| if second.is_multiple_of(2) { 1.01 } else { 0.99 };
        let level = |second: usize, after: f64, before: f64| if second < 40 { before } else { after };
        let counts: Vec<f64> = (0..120).map(|second| level(second, 5_500.0, 10_000.0) * even(second)).collect();
        let others: Vec<f64> = (0..120).map(|second| level(second, others_after, 0.0)).collect();
        let run = on_block(vec![beside(0, 16, &counts, &others)]);
        analyse(&run, &LatencyTarget::default()).iter().any(|finding| matches!(finding, Finding::Burst(_)))
    };
    assert!(ends(0.0) && ends(600.0), "what others took explains none or little of the fall");
    assert!(!ends(4_500.0));
}

#[test]
fn slots_that_are_all_busy_are_no_limit_of_the_device() {
    let found = |least_ns: u64| {
        let step = |(index, asked, reached): (u32, f64, f64)| {
            let mut step = io_step(index, 4, 8_192, &[reached; 8], 0);
            let mean_ns = if reached < 4_000.0 { least_ns } else { 1_000_000 };
            step.load.rate_operations_per_s = Some(asked);
            step.operations = vec![operation(8 * reached as u64, mean_ns)];
            step.waits[0].waits = sample::latencies(8 * reached as u64, mean_ns);
            step
        };
        let steps = [(0, 1_000.0, 1_000.0), (1, 2_000.0, 2_000.0), (2, 5_000.0, 4_000.0), (3, 8_000.0, 4_000.0)];
        ceiling(&on_block(steps.map(step).to_vec())).map(|found| found.limit)
    };
    // Requests take 1 ms with less load as well: four at a time are 4,000/s.
    assert_eq!(found(1_000_000), None);
    assert!(found(100_000).is_some(), "there they wait for something");
}
