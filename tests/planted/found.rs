//! The analysis finds what was planted, over many seeds, and nothing where nothing was planted.

use plimsoll::analysis::{
    BurstFound, Cause, Ceiling, Counted, Finding, LatencyTarget, Limit, ReadSource, Search, SearchPlan, Verdict,
    analyse, judge,
};
use plimsoll::record::{Run, Step};
use plimsoll::units::{Bytes, Nanos};
use plimsoll::workload::Rng;

use crate::making::{Load, Plan, Requests, Storage, closed, open, planted_as};

const SEEDS: std::ops::Range<u64> = 0..20;
const DEPTHS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Service times of a busy device that serves all at once: without a limit, the rate grows with the depth.
const WIDE: &str = "service=40ms,spread=lognormal:0.3,servers=1000";

fn plan(seed: u64, seconds: u64) -> Plan {
    let requests = Requests { data: Bytes::gib(64), ..Plan::default().requests };
    Plan { seed, warmup: Nanos::seconds(1), duration: Nanos::seconds(seconds), requests }
}

/// A number from a range, evenly in logarithms; another one for each seed and use.
fn drawn(seed: u64, number: u64, (low, high): (f64, f64)) -> f64 {
    low * (high / low).powf(Rng::new(seed, 1_000 + number).unit_f64())
}

fn sweep(sim: &str, plan: &Plan) -> Run {
    planted_as(sim, plan, &DEPTHS.map(closed))
}

fn reported(run: &Run) -> Vec<Finding> {
    analyse(run, &LatencyTarget::default())
}

fn only<T>(found: &[Finding], pick: impl Fn(&Finding) -> Option<T>) -> T {
    let mut picked = found.iter().filter_map(pick);
    let one = picked.next().unwrap_or_else(|| panic!("not in {found:#?}"));
    assert!(picked.next().is_none(), "more than once in {found:#?}");
    one
}

fn ceiling(found: &[Finding]) -> Option<&Ceiling> {
    found.iter().find_map(|finding| match finding {
        Finding::Ceiling(ceiling) => Some(ceiling),
        _ => None,
    })
}

fn is_cap(ceiling: &Ceiling) -> bool {
    matches!(ceiling.limit, Limit::Requests | Limit::Throughput | Limit::RequestsOrThroughput)
}

fn assert_near(what: &str, value: f64, planted: f64, tolerance: f64) {
    assert!((value / planted - 1.0).abs() <= tolerance, "{what} is {value}, planted was {planted}");
}

/// The kinds of findings, by name.
fn kinds(found: &[Finding]) -> Vec<String> {
    let name = |finding| format!("{finding:?}").split(|c: char| !c.is_alphanumeric()).next().unwrap().to_owned();
    found.iter().map(name).collect()
}

fn assert_nothing_but(found: &[Finding], allowed: &[&str]) {
    for (kind, finding) in kinds(found).iter().zip(found) {
        assert!(allowed.contains(&kind.as_str()), "{}", finding.sentence());
    }
}

#[test]
fn a_cap_on_requests_is_found_within_one_per_cent_and_none_where_there_is_none() {
    for seed in SEEDS {
        let cap = drawn(seed, 0, (100.0, 450.0)).round();
        let found = reported(&sweep(&format!("{WIDE},iops_cap={cap}"), &plan(seed, 6)));
        let capped = ceiling(&found).unwrap();
        assert!(is_cap(capped), "seed {seed}: {}", Finding::Ceiling(capped.clone()).sentence());
        assert_near("cap", capped.per_s, cap, 0.01);

        let found = reported(&sweep(WIDE, &plan(seed, 6)));
        assert!(!ceiling(&found).is_some_and(is_cap), "seed {seed}: {found:#?}");
    }
}

/// Steps of one depth that differ in the size of requests.
fn over_sizes(sim: &str, seed: u64) -> Run {
    let kib = [4, 16, 64, 128, 256, 1_024];
    let mut steps: Vec<Step> = Vec::new();
    let mut last = None;
    for (size, index) in kib.into_iter().zip(0..) {
        let requests = Requests { bytes: size << 10, ..plan(seed, 8).requests };
        let run = planted_as(sim, &Plan { requests, ..plan(seed, 8) }, &[closed(16)]);
        let mut step = run.steps[0].clone();
        step.index = index;
        step.label = format!("{size}K");
        step.parameters.insert("BLOCK_SIZE".to_owned(), format!("{size}K"));
        step.intervals.iter_mut().for_each(|interval| interval.step = index);
        steps.push(step);
        last = Some(run);
    }
    Run { steps, ..last.unwrap() }
}

#[test]
fn caps_on_requests_and_on_bytes_are_distinguished_by_the_sizes_of_requests() {
    for seed in SEEDS {
        let (iops, mbps) = (drawn(seed, 0, (200.0, 600.0)).round(), drawn(seed, 1, (20.0, 40.0)).round());
        let fast = "service=2ms,servers=64";
        let both = reported(&over_sizes(&format!("{fast},iops_cap={iops},mbps_cap={mbps}"), seed));
        let limits = only(&both, |finding| match finding {
            Finding::SizeLimits(limits) => Some(limits.clone()),
            _ => None,
        });
        assert_near("IOPS cap", limits.requests_per_s.unwrap(), iops, 0.01);
        assert_near("throughput cap", limits.bytes_per_s.unwrap(), mbps * 1e6, 0.01);

        let none = reported(&over_sizes("service=20ms,spread=lognormal:0.3,servers=64,bandwidth=10M", seed));
        assert!(!kinds(&none).contains(&"SizeLimits".to_owned()), "seed {seed}: {none:#?}");
    }
}

fn burst(found: &[Finding]) -> BurstFound {
    only(found, |finding| match finding {
        Finding::Burst(burst) => Some(burst.clone()),
        _ => None,
    })
}

#[test]
fn a_bucket_is_found_with_both_rates_its_moment_and_its_credit() {
    for seed in SEEDS {
        let base = drawn(seed, 0, (50.0, 150.0)).round();
        let rate = (base * drawn(seed, 1, (1.5, 5.0))).round();
        let lasts = drawn(seed, 2, (10.0, 40.0)).round();
        let long = Plan { warmup: Nanos(0), ..plan(seed, 70) };
        let sim = format!("service=10ms,spread=lognormal:0.3,servers=64,iops_cap={base},burst={rate}:{lasts}s");
        let found = reported(&planted_as(&sim, &long, &[closed(32)]));
        let burst = burst(&found);
        assert_eq!(burst.counted, Counted::Requests);
        assert_near("burst rate", burst.burst_per_s, rate, 0.01);
        assert_near("base rate", burst.base_per_s, base, 0.01);
        assert!((burst.after.as_seconds() - lasts).abs() <= 1.0, "seed {seed}: {} of {lasts} s", burst.after);
        assert_near("credit", burst.credit, (rate - base) * lasts, 0.05);
        assert!(!kinds(&found).contains(&"NotSteady".to_owned()), "the burst says why: {found:#?}");

        let flat = reported(&planted_as(
            &format!("service=10ms,spread=lognormal:0.3,servers=64,iops_cap={rate}"),
            &long,
            &[closed(32)],
        ));
        assert!(!kinds(&flat).contains(&"Burst".to_owned()), "seed {seed}: {flat:#?}");
    }
}

#[test]
fn a_bucket_of_bytes_is_found_in_bytes() {
    for seed in SEEDS {
        let requests = Requests { bytes: 256 << 10, ..plan(seed, 45).requests };
        let long = Plan { requests, ..plan(seed, 45) };
        let found =
            reported(&planted_as("service=10ms,servers=64,mbps_cap=20,burst_mbps=60:15s", &long, &[closed(16)]));
        let burst = burst(&found);
        assert_eq!(burst.counted, Counted::Bytes);
        assert_near("burst rate", burst.burst_per_s, 60e6, 0.01);
        assert_near("base rate", burst.base_per_s, 20e6, 0.01);
        assert_near("credit", burst.credit, 40e6 * 15.0, 0.08);
    }
}

#[test]
fn the_knee_is_found_at_as_many_sessions_as_there_are_servers() {
    for seed in SEEDS {
        let servers = drawn(seed, 0, (3.0, 12.0)).round();
        for (spread, tolerance) in [("fixed", 0.03), ("lognormal:0.5", 0.1)] {
            let found = reported(&sweep(&format!("service=20ms,spread={spread},servers={servers}"), &plan(seed, 12)));
            let bound = only(&found, |finding| match finding {
                Finding::Knee(knee) => Some(knee.bound),
                _ => None,
            });
            assert_near(&format!("seed {seed}, {spread}: knee"), bound, servers, tolerance);
        }
        let found = reported(&sweep(WIDE, &plan(seed, 6)));
        assert!(!kinds(&found).contains(&"Knee".to_owned()), "seed {seed}: {found:#?}");
    }
}

#[test]
fn tiers_are_found_with_their_shares_and_names() {
    let places = [
        (10.0, ReadSource::Memory),
        (110.0, ReadSource::LocalFlash),
        (700.0, ReadSource::RemoteFlash),
        (6_000.0, ReadSource::Disk),
    ];
    for seed in SEEDS {
        let fast = (drawn(seed, 0, (1.0, 3.0)) as usize).min(2);
        let slow = if drawn(seed, 1, (1.0, 3.0)) < 2.0 { fast + 1 } else { 3 };
        let share = (drawn(seed, 2, (0.15, 0.8)) * 100.0).round() / 100.0;
        let ((fast_us, fast_place), (slow_us, slow_place)) = (places[fast], places[slow]);
        let tiers = format!("tiers={share}:{fast_us}us+{}:{slow_us}us,spread=lognormal:0.2,servers=64", 1.0 - share);
        let run = planted_as(&tiers, &plan(seed, 10), &[closed(1)]);
        let found = reported(&run);
        let tiers = only(&found, |finding| match finding {
            Finding::Tiers(tiers) => Some(tiers.clone()),
            _ => None,
        });
        assert_eq!((tiers.modes.len(), tiers.cause), (2, Cause::Places), "seed {seed}: {tiers:?}");
        // Four standard deviations of what so many requests happen to draw, and what two spreads have in common.
        let chance = 4.0 * (share * (1.0 - share) / run.steps[0].operations[0].count as f64).sqrt();
        assert!((tiers.modes[0].share - share).abs() < chance + 0.005, "seed {seed}: {share} of {tiers:?}");
        let named = [0, 1].map(|mode| ReadSource::of(Nanos(tiers.modes[mode].median_ns)));
        assert_eq!(named, [fast_place, slow_place], "seed {seed}: {tiers:?}");

        let one =
            reported(&planted_as(&format!("service={slow_us}us,spread=lognormal:0.4"), &plan(seed, 10), &[closed(1)]));
        assert!(!kinds(&one).contains(&"Tiers".to_owned()), "seed {seed}: {one:#?}");
    }
}

#[test]
fn a_stall_is_found_with_its_length() {
    for seed in SEEDS {
        let lasts = drawn(seed, 0, (2.2, 4.8));
        let at = drawn(seed, 1, (4.0, 12.0));
        let sim = format!("{WIDE},stall={}ms:{}ms", (at * 1e3) as u64, (lasts * 1e3) as u64);
        let found = reported(&planted_as(&sim, &plan(seed, 20), &[closed(8)]));
        let longest = only(&found, |finding| match finding {
            Finding::Stalled(stalled) => Some(stalled.longest),
            _ => None,
        });
        // Whole seconds are seen: up to two of its edges are not.
        assert!((lasts - 2.0..=lasts + 0.1).contains(&longest.as_seconds()), "seed {seed}: {longest} of {lasts} s");
    }
}

#[test]
fn errors_are_found_and_counted() {
    for seed in SEEDS {
        let share = drawn(seed, 0, (0.002, 0.1));
        let run = planted_as(&format!("{WIDE},errors={share}"), &plan(seed, 20), &[closed(8)]);
        let errors = only(&reported(&run), |finding| match finding {
            Finding::OperationErrors(failed) => Some(failed.errors as f64),
            _ => None,
        });
        let count = run.steps[0].operations[0].count as f64;
        let expected = share * count;
        assert!((errors - expected).abs() < 5.0 * expected.sqrt() + 1.0, "seed {seed}: {errors} of {expected}");
    }
}

#[test]
fn a_device_that_slows_down_is_not_steady_and_one_that_does_not_is() {
    for seed in SEEDS {
        let per_minute = drawn(seed, 0, (60.0, 300.0)).round();
        let found = reported(&planted_as(&format!("{WIDE},drift={per_minute}%/m"), &plan(seed, 30), &[closed(16)]));
        let drift = only(&found, |finding| match finding {
            Finding::NotSteady(unsteady) => Some(unsteady.most.drift),
            _ => None,
        });
        assert!(drift < -0.1, "seed {seed}: {drift} at {per_minute} % a minute");
        let found = reported(&planted_as(WIDE, &plan(seed, 30), &[closed(16)]));
        assert!(!kinds(&found).contains(&"NotSteady".to_owned()), "seed {seed}: {found:#?}");
    }
}

/// Searches as `--rate LOW..HIGH` does, and says in which interval the load line lies.
fn load_line(
    sim: &str,
    plan: &Plan,
    (low, high): (f64, f64),
    target: &LatencyTarget,
    load: fn(f64) -> Load,
) -> (f64, f64) {
    let mut storage = Storage::open(sim, plan);
    let mut search = Search::new(SearchPlan { low, high, ..SearchPlan::default() });
    let mut steps = Vec::new();
    while let Some(rate) = search.next() {
        let step = storage.step(load(rate));
        search.record(Verdict { rate, outcome: judge(&step, target).unwrap() });
        steps.push(step);
    }
    let run = storage.run(steps);
    only(&analyse(&run, target), |finding| match finding {
        Finding::OpenLoadLine(line) => {
            let asked = |point: &Option<plimsoll::analysis::RatePoint>| point.as_ref().unwrap().asked_operations_per_s;
            Some((asked(&line.passing), asked(&line.failing)))
        }
        _ => None,
    })
}

#[test]
fn the_load_line_of_a_cap_lies_in_the_interval_that_bisection_finds() {
    for seed in SEEDS {
        let cap = drawn(seed, 0, (100.0, 400.0));
        let target = LatencyTarget { limit: Nanos::millis(120), ..LatencyTarget::default() };
        let sim = format!("{WIDE},iops_cap={cap:.1}");
        let (passing, failing) = load_line(&sim, &plan(seed, 15), (50.0, 1_000.0), &target, |rate| open(rate, 1_000));
        // A rate this little above the cap makes a queue that 15 s do not show: it has not reached 80 ms by then.
        assert!(passing <= cap * 1.005 && cap <= failing, "seed {seed}: {cap} is not between {passing} and {failing}");
        assert!(failing <= passing * 1.021, "seed {seed}: {passing} to {failing}");
    }
}

#[test]
fn nothing_is_found_where_nothing_is_planted() {
    for seed in SEEDS {
        let answers = ["StepLine", "Ceiling", "Scales"];
        // What every short run on a device is reported, whatever the device.
        let notes = ["CreditNotSeen", "FewWaits", "TopWait"];
        let found = reported(&sweep(WIDE, &plan(seed, 10)));
        assert_nothing_but(&found, &[&answers[..], &notes].concat());
        assert!(matches!(ceiling(&found).unwrap().limit, Limit::NotReached { .. }), "seed {seed}: {found:#?}");

        let wide = "service=1ms,spread=exponential,servers=1000";
        let found = reported(&planted_as(wide, &plan(seed, 40), &[open(200.0, 100)]));
        assert_nothing_but(&found, &[&["StepLine"], &notes[..]].concat());
    }
}
