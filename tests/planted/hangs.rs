//! Storage that hangs, fails or is slow at any instant of the window: all that was requested is in the record and in the verdict.

use crate::making::{Load, Plan, Storage, closed, open};
use crate::observer::{Account, Limit, Observed, Trouble, observe};
use plimsoll::analysis::{Finding, LatencyTarget, LimitAnswer, analyse, analyse_limits};
use plimsoll::config::TargetAddress;
use plimsoll::load::Pace;
use plimsoll::record::{Run, Step};
use plimsoll::targets::OperationResult;
use plimsoll::targets::simulated::{Model, SimulatedOptions};
use plimsoll::units::Nanos;
use plimsoll::workload::{Arrival, Rng};

const MS: u64 = 1_000_000;
/// Load begins so long after its clock.
const START_NS: u64 = 5_100_000;

/// One thing that is tried.
#[derive(Debug)]
struct Planting {
    seed: u64,
    load: Load,
    warmup_ms: u64,
    window_ms: u64,
    drain_ms: u64,
    /// What the device is, as an address says it.
    device: String,
    trouble: Vec<Trouble>,
    limit_ns: u64,
    /// Share of operations that may fail.
    errors: f64,
}

impl Planting {
    fn draw(seed: u64, is_open: bool) -> Self {
        let mut rng = Rng::new(seed, 71);
        let (warmup_ms, window_ms) = ([0, 40, 150][rng.below(3) as usize], 400 + 200 * rng.below(4));
        let rate_per_s = 50.0 + rng.below(500) as f64;
        let arrival = if rng.below(2) == 0 { Arrival::Fixed } else { Arrival::Poisson };
        let load = match is_open {
            false => closed(1 + rng.below(12) as u32),
            true => {
                let depth = [1, 4, 8, 64, 200][rng.below(5) as usize];
                Load { depth, pace: Pace::Open { rate_per_s, arrival } }
            }
        };
        let ends_ns = START_NS + (warmup_ms + window_ms) * MS;
        let edges = [START_NS + warmup_ms * MS, ends_ns];
        // The edges of the window most of all, and its end more than its beginning.
        let instant = |rng: &mut Rng| match rng.below(8) {
            0..4 => edges[1] - 150 * MS + rng.below(155 * MS),
            4 => edges[1] - rng.below(15 * MS),
            5 => edges[0].saturating_sub(20 * MS) + rng.below(40 * MS),
            _ => START_NS + rng.below(ends_ns - START_NS),
        };
        // From a millisecond to two minutes, each length as likely as its double.
        let length = |rng: &mut Rng| (MS as f64 * 2f64.powf(rng.unit_f64() * 17.0)) as u64;
        let stalls = (0..rng.below(3)).map(|_| format!("{}ns:{}ns", instant(&mut rng), length(&mut rng)));
        let stalls = stalls.collect::<Vec<_>>().join("+");
        let mut device = format!("service={}ms,servers=6,seed={seed}", 2 + rng.below(8));
        if !stalls.is_empty() {
            device.push_str(&format!(",stall={stalls}"));
        }
        let share = |rng: &mut Rng| 0.0005 * 2f64.powf(rng.unit_f64() * 9.0);
        if rng.below(4) == 0 {
            device.push_str(&format!(",errors={}", share(&mut rng)));
        }
        let trouble = (0..rng.below(3)).map(|_| {
            let begins_ns = instant(&mut rng);
            let lasts_ns = 1 + rng.below(60 * MS);
            let result = if rng.below(3) == 0 { OperationResult::Failed } else { OperationResult::Done };
            let later_ns = if rng.below(4) == 0 { 0 } else { length(&mut rng) };
            Trouble { sent_ns: begins_ns..begins_ns + lasts_ns, later_ns, result }
        });
        let trouble = trouble.collect();
        let drain_ms = [0, 20, 300, 30_000, 30_000, 30_000][rng.below(6) as usize];
        let limit_ns = (15 * MS) << rng.below(9);
        let errors = [0.0, 0.001, 0.01, 0.2][rng.below(4) as usize];
        Self { seed, load, warmup_ms, window_ms, drain_ms, device, trouble, limit_ns, errors }
    }

    fn plan(&self) -> Plan {
        let (warmup, duration) = (Nanos::millis(self.warmup_ms), Nanos::millis(self.window_ms));
        Plan { seed: self.seed, warmup, duration, ..Plan::default() }
    }

    fn observe(&self) -> Observed {
        let Ok(TargetAddress::Simulated(pairs)) = format!("sim:{}", self.device).parse() else {
            panic!("`{}` cannot be read", self.device);
        };
        let model = Model::new(SimulatedOptions::from_pairs(&pairs).unwrap());
        observe(model, self.trouble.clone(), self.load, &self.plan(), Nanos::millis(self.drain_ms))
    }
}

const PERCENTILES: [(&str, u64); 4] = [("p50", 500), ("p95", 950), ("p99", 990), ("p99.9", 999)];

/// How often each answer was given.
#[derive(Debug, Default)]
struct Answers {
    yes: u32,
    no: u32,
    none: u32,
    close: u32,
}

/// Holds `times` plantings against what the observer says of them.
fn hold_against_the_observer(is_open: bool, times: u64) -> Answers {
    let mut answers = Answers::default();
    for seed in 0..times {
        let planting = Planting::draw(seed, is_open);
        let seen = planting.observe();
        assert_eq!(Account::of(&seen.step), seen.account(), "the record against the observer: {planting:#?}");
        let limits = PERCENTILES.map(|(name, _)| {
            let text = format!("{name}={}ns", planting.limit_ns);
            LatencyTarget { errors: Some(planting.errors), ..text.parse().unwrap() }
        });
        let given = answers_of(&run(&planting.plan(), seen.step.clone()), &limits);
        for ((name, per_mille), given) in PERCENTILES.into_iter().zip(given) {
            let limit = Limit { per_mille, ns: planting.limit_ns, errors: planting.errors };
            let Some(expected) = seen.answer(limit) else {
                answers.close += 1;
                continue;
            };
            assert_eq!(given, expected, "{name} against the observer: {planting:#?}\n{:#?}", seen.account());
            match expected {
                LimitAnswer::Yes => answers.yes += 1,
                LimitAnswer::No => answers.no += 1,
                LimitAnswer::NoVerdict => answers.none += 1,
            }
        }
    }
    answers
}

fn run(plan: &Plan, step: Step) -> Run {
    let storage = Storage::open("service=1ms", plan);
    storage.run(vec![step])
}

fn answers_of(run: &Run, limits: &[LatencyTarget]) -> Vec<LimitAnswer> {
    let verdict = analyse_limits(run, limits).into_iter().find_map(|finding| match finding {
        Finding::Verdict(verdict) => Some(verdict),
        _ => None,
    });
    verdict.unwrap().limits.into_iter().map(|limit| limit.answer).collect()
}

/// How often each loop is tried. Ten thousand take a minute where nothing is optimised.
fn times() -> u64 {
    if std::env::var_os("PLIMSOLL_TORTURE_SECONDS").is_some() { 10_000 } else { 1_000 }
}

#[test]
fn what_a_closed_loop_requested_is_all_there_and_judged_as_an_observer_judges_it() {
    let answers = hold_against_the_observer(false, times());
    let judged = u64::from(answers.yes.min(answers.no));
    assert!(judged > times() / 2 && u64::from(answers.none) > times() / 50, "{answers:?}");
    assert!(u64::from(answers.close) < times() / 10, "{answers:?}");
}

#[test]
fn what_fell_due_at_a_rate_is_all_there_and_judged_as_an_observer_judges_it() {
    let answers = hold_against_the_observer(true, times());
    let judged = u64::from(answers.yes.min(answers.no));
    assert!(judged > times() / 2 && u64::from(answers.none) > times() / 50, "{answers:?}");
    assert!(u64::from(answers.close) < times() / 10, "{answers:?}");
}

const WARMUP_MS: u64 = 200;
const WINDOW_MS: u64 = 2_000;
/// Nothing else takes so long.
const LIMIT_MS: u64 = 200;

fn plan(seed: u64) -> Plan {
    Plan { seed, warmup: Nanos::millis(WARMUP_MS), duration: Nanos::millis(WINDOW_MS), ..Plan::default() }
}

/// The step of a load on a device that stands still from `at_ms` of the window on.
fn stalled(seed: u64, load: Load, at_ms: u64, length_ms: u64) -> Run {
    let sim = format!("service=4ms,servers=8,stall={}ms:{length_ms}ms", WARMUP_MS + at_ms);
    let mut storage = Storage::open(&sim, &plan(seed));
    let step = storage.step(load);
    storage.run(vec![step])
}

fn answer(run: &Run, quantile: f64) -> LimitAnswer {
    let target = LatencyTarget { quantile, limit: Nanos::millis(LIMIT_MS), ..LatencyTarget::default() };
    let found = analyse_limits(run, &[target]).into_iter().find_map(|finding| match finding {
        Finding::Verdict(verdict) => Some(verdict.answer),
        _ => None,
    });
    found.unwrap()
}

/// Finished in the window, outstanding at its end, and due but not sent by then.
fn counted(step: &Step) -> [u64; 3] {
    let outstanding = step.outstanding.iter().map(|late| late.count()).sum();
    let backlog = step.generator.as_ref().and_then(|generator| generator.backlog_operations).unwrap_or(0);
    [step.counters.operations.unwrap() + step.counters.errors.unwrap_or(0), outstanding, backlog]
}

#[test]
fn what_a_hang_held_up_is_in_the_percentiles_with_its_own_time() {
    let run = stalled(1, closed(4), WINDOW_MS - 100, 6_000);
    let step = &run.steps[0];
    assert_eq!(counted(step)[1..], [4, 0]);
    let longest = step.outstanding[0].response.max_ns().unwrap();
    assert!((5_900_000_000..6_100_000_000).contains(&longest), "{longest}");
    let stalled = analyse(&run, &LatencyTarget::default()).into_iter().find_map(|finding| match finding {
        Finding::Stalled(stalled) => Some(stalled.longest),
        _ => None,
    });
    assert!(stalled.is_some_and(|stalled| stalled.0 > 5_900_000_000), "{stalled:?}");
}

#[test]
fn where_nothing_hangs_the_answer_is_yes() {
    for load in [closed(1), closed(16), open(300.0, 1_024)] {
        let run = stalled(3, load, 100 * WINDOW_MS, 1_000);
        assert_eq!(answer(&run, 0.999), LimitAnswer::Yes, "{load:?}");
        let [_, outstanding, backlog] = counted(&run.steps[0]);
        assert!(outstanding <= u64::from(load.depth) && backlog == 0, "{load:?}");
    }
}
