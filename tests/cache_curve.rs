//! What a run says of caches of other sizes is what runs with such caches see.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

mod common;

use std::path::Path;

use common::{open, run, scratch, set_up, small, step};
use plimsoll::load::StepPlan;
use plimsoll::record::Step;
use plimsoll::units::{Bytes, Nanos};
use plimsoll::workload::{HotSpot, SlobShape};

/// Points of a hundred by which a curve and a run may differ.
const WITHIN: f64 = 0.03;
/// Of 4,000 blocks of 8 KiB, which are 31 MiB. The curve is that of the run with the first.
const SIZES: [Bytes; 3] = [Bytes::mib(4), Bytes::mib(8), Bytes::mib(16)];

/// Loops that touch every block several times.
const WARM: u64 = 400;
/// Loops whose curve has about 12,000 samples: a hit ratio of a half is then known to 0.5 points of a hundred (one standard error).
const SAMPLED: u64 = 3_400;

/// Warms a new cache by the shape of a step, and returns that step.
fn warm(data: &Path, cache: Bytes, plan: &StepPlan<SlobShape>) -> Step {
    let (engine, clock) = open(data, cache);
    let mut warm_up = plan.clone();
    warm_up.seed += 1;
    warm_up.work_loop = plan.work_loop.map(|loops| loops.min(WARM));
    for plan in [&warm_up, plan] {
        let outcome = run(&engine, clock, plan);
        assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
        if plan.seed != warm_up.seed {
            engine.close().unwrap();
            return outcome.step;
        }
    }
    unreachable!("the second plan has another seed")
}

fn hit_ratio(step: &Step) -> f64 {
    step.counters.cache_hits.unwrap() as f64 / step.counters.logical_reads.unwrap() as f64
}

/// Shapes of load: each block as often as any other, a tenth that half of the operations go to, and schemas and parts of them that are
/// touched more and more often, which is as near as the method comes to a law of Zipf.
fn shapes(plan: &StepPlan<SlobShape>) -> [(&'static str, SlobShape); 3] {
    let hot_spot = Some(HotSpot { offset_blocks: 100, blocks: 200, frequency: 2 });
    [
        ("uniform", plan.shape.clone()),
        ("a hot part", SlobShape { hot_spot, ..plan.shape.clone() }),
        ("hot parts of a hot schema", SlobShape { hot_spot, hot_schema_frequency: 2, ..plan.shape.clone() }),
    ]
}

#[test]
fn a_run_says_what_caches_of_other_sizes_would_answer() {
    let dir = scratch();
    let request = small();
    set_up(dir.path(), &request);
    let mut plan = step(&request);
    (plan.warmup, plan.shape.work_unit) = (Nanos(0), 8);
    // Of two threads one may have the processor alone for as many touches as a cache holds, and then blocks of its schema are touched
    // again sooner than in the other run.
    plan.lanes = 1;
    for (name, shape) in shapes(&plan) {
        plan.shape = shape;
        plan.work_loop = Some(SAMPLED);
        let small = warm(dir.path(), SIZES[0], &plan);
        let curve = small.cache_curve.as_ref().unwrap();
        assert!(curve.samples > 10_000, "{name}: {} samples", curve.samples);
        plan.work_loop = Some(WARM);
        for size in SIZES {
            let seen = if size == SIZES[0] { small.clone() } else { warm(dir.path(), size, &plan) };
            let point = curve.points.iter().find(|point| point.cache_bytes == size.0).unwrap();
            let (expected, hits) = (point.hit_ratio, hit_ratio(&seen));
            assert!((expected - hits).abs() < WITHIN, "{name}, {size}: {hits} where the curve has {expected}");
        }
    }
}

#[test]
fn changes_and_many_sessions_make_no_difference() {
    let dir = scratch();
    let mut request = small();
    request.redo_file_bytes = 64 << 20;
    set_up(dir.path(), &request);
    let mut plan = step(&request);
    (plan.warmup, plan.work_loop, plan.shape.work_unit) = (Nanos(0), Some(60), 4);
    (plan.load.sessions, plan.shape.threads_per_schema, plan.shape.update_pct) = (Some(60), 30, 50);
    let seen = warm(dir.path(), Bytes::mib(8), &plan);
    let curve = seen.cache_curve.as_ref().unwrap();
    let (own, hits) = (curve.points.iter().find(|point| point.cache_bytes == 8 << 20).unwrap(), hit_ratio(&seen));
    assert!((own.hit_ratio - hits).abs() < 2.0 * WITHIN, "{hits} where the curve has {}", own.hit_ratio);
}
