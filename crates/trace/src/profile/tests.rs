//! Profiles of whole traces, and curves against caches that were simulated.

use std::collections::{HashSet, VecDeque};

use model::trace::{TraceDevice, TraceEnd, TraceHeader, TraceKind, TraceRequest};
use model::workload::Rng;
use proptest::prelude::*;

use super::*;

const MS: u64 = 1_000_000;

fn request(at_ns: u64, kind: TraceKind, offset_bytes: u64, bytes: u64) -> TraceRequest {
    TraceRequest { at_ns, device: 0, kind, is_fua: false, offset_bytes, bytes, latency_ns: None }
}

fn header() -> TraceHeader {
    let device = |name: &str| TraceDevice { name: name.to_owned(), bytes: Some(1 << 40) };
    TraceHeader { source: "test".to_owned(), devices: vec![device("sda"), device("sdb")], ..TraceHeader::default() }
}

fn profile_with(options: ProfileOptions, requests: impl IntoIterator<Item = TraceRequest>) -> Profile {
    let mut profiler = Profiler::new(options);
    requests.into_iter().for_each(|request| profiler.add(&request));
    profiler.finish(&header(), &TraceEnd::default())
}

fn profile(requests: impl IntoIterator<Item = TraceRequest>) -> Profile {
    profile_with(ProfileOptions::default(), requests)
}

/// The hit ratio of reads of a cache that replaces what was used least recently.
fn simulated(touches: &[(u64, bool)], cache_blocks: usize) -> f64 {
    // When each cached block was last used, and all uses: those that are not the last of their block are passed over.
    let highest = touches.iter().map(|touch| touch.0).max().unwrap_or_default();
    let (mut last, mut uses) = (vec![0; highest as usize + 1], VecDeque::new());
    let (mut cached, mut reads, mut hits) = (0, 0_u64, 0_u64);
    for (before, &(block, is_write)) in touches.iter().enumerate() {
        let now = before + 1;
        let is_cached = std::mem::replace(&mut last[block as usize], now) > 0;
        uses.push_back((block, now));
        cached += usize::from(!is_cached);
        reads += u64::from(!is_write);
        hits += u64::from(!is_write && is_cached);
        while cached > cache_blocks
            && let Some((block, used)) = uses.pop_front()
        {
            if last[block as usize] == used {
                last[block as usize] = 0;
                cached -= 1;
            }
        }
    }
    hits as f64 / reads as f64
}

/// Compares the curve of a sample with simulated caches, and gives the largest difference.
fn largest_error(name: &str, touches: &[(u64, bool)], cache_mib: &[u64]) -> f64 {
    let options = ProfileOptions { sampled_blocks: 1 << 14, ..ProfileOptions::default() };
    let requests = touches.iter().enumerate().map(|(number, &(block, is_write))| {
        request(number as u64 * MS, if is_write { TraceKind::Write } else { TraceKind::Read }, block * 4_096, 4_096)
    });
    let found = profile_with(options, requests);
    assert!(found.curve.sampled_share < 0.2, "{name} is sampled: {}", found.curve.sampled_share);
    let blocks = touches.iter().map(|touch| touch.0).collect::<HashSet<_>>().len() as f64;
    let footprint = found.footprint.expect("blocks were touched");
    assert!((footprint.blocks as f64 / blocks - 1.0).abs() < 0.03, "{name}: {footprint:?} of {blocks}");
    let mut largest = 0.0_f64;
    for mib in cache_mib {
        let (sampled, exact) =
            (found.curve.hit_ratio(mib << 20).expect("a point"), simulated(touches, (mib << 20 >> 12) as usize));
        assert!((sampled - exact).abs() < 0.02, "{name} with {mib} MiB: {sampled} and not {exact}");
        largest = largest.max((sampled - exact).abs());
    }
    largest
}

/// Of `blocks`, the frequent ones scattered; the share of the first k is about (k / blocks)^(1 - skew).
fn zipf(rng: &mut Rng, blocks: u64, skew: f64) -> u64 {
    let rank = (rng.unit_f64().powf(1.0 / (1.0 - skew)) * blocks as f64) as u64;
    (rank.min(blocks - 1) * 7_919) % blocks
}

const TOUCHES: u64 = 500_000;
const BLOCKS: u64 = 200_000;

#[test]
fn the_curve_of_uniform_touches_is_that_of_a_simulated_cache() {
    let mut rng = Rng::new(11, 1);
    let touches: Vec<_> = (0..TOUCHES).map(|_| (rng.below(BLOCKS), rng.below(4) == 0)).collect();
    let error = largest_error("uniform", &touches, &[16, 128, 512]);
    println!("uniform: {error:.4}");
}

#[test]
fn the_curve_of_skewed_touches_is_that_of_a_simulated_cache() {
    let mut rng = Rng::new(12, 1);
    let touches: Vec<_> = (0..TOUCHES).map(|_| (zipf(&mut rng, 2 * BLOCKS, 0.8), rng.below(4) == 0)).collect();
    let error = largest_error("zipf", &touches, &[1, 16, 128, 512]);
    println!("zipf: {error:.4}");
}

#[test]
fn the_curve_of_a_loop_is_that_of_a_simulated_cache() {
    let touches: Vec<_> = (0..TOUCHES).map(|number| (number % BLOCKS, false)).collect();
    let error = largest_error("loop", &touches, &[128, 512, 1024]);
    println!("loop: {error:.4}");
}

#[test]
fn the_curve_of_a_hot_set_and_a_scan_is_that_of_a_simulated_cache() {
    let (mut rng, mut scan) = (Rng::new(13, 1), 0);
    let touches: Vec<_> = (0..TOUCHES)
        .map(|number| {
            if number % 2 == 0 {
                (rng.below(6_000), false)
            } else {
                scan += 1;
                (10_000 + scan % BLOCKS, false)
            }
        })
        .collect();
    let error = largest_error("mixture", &touches, &[8, 16, 64, 256, 1024]);
    println!("mixture: {error:.4}");
}

#[test]
fn the_curve_of_few_hot_blocks_among_many_is_that_of_a_simulated_cache() {
    // Some sixty of the hot ones are in the sample of blocks, which alone would be about 6 points off.
    let mut rng = Rng::new(14, 1);
    let draw = |rng: &mut Rng| if rng.below(2) == 0 { rng.below(1_000) } else { 1_000 + rng.below(10 * BLOCKS) };
    let touches: Vec<_> = (0..TOUCHES).map(|_| (draw(&mut rng), rng.below(8) == 0)).collect();
    let error = largest_error("hot", &touches, &[1, 2, 4, 8, 16, 64, 1024]);
    println!("hot: {error:.4}");
}

#[test]
fn the_curve_of_phases_is_that_of_a_simulated_cache() {
    // Each fifth of the trace has a set of its own, and the last one scans that of the first.
    let mut rng = Rng::new(15, 1);
    let touches: Vec<_> = (0..TOUCHES)
        .map(|number| match number / (TOUCHES / 5) {
            4 => (number % (BLOCKS / 4), false),
            phase => (phase * BLOCKS / 4 + rng.below((BLOCKS / 4) >> phase), false),
        })
        .collect();
    let error = largest_error("phases", &touches, &[16, 32, 64, 128, 512]);
    println!("phases: {error:.4}");
}

#[test]
fn a_small_trace_is_exact() {
    // 512 blocks (2 MiB) read twice around, then 256 of them written and read.
    let blocks = (0..1_024).map(|number| (number % 512, false));
    let touches: Vec<(u64, bool)> = blocks.chain((0..256).flat_map(|block| [(block, true), (block, false)])).collect();
    let found = profile(touches.iter().enumerate().map(|(number, &(block, is_write))| {
        request(number as u64, if is_write { TraceKind::Write } else { TraceKind::Read }, block << 12, 4_096)
    }));
    assert_eq!(found.footprint, Some(Footprint { blocks: 512, bytes: 2 << 20, standard_error: 0.0 }));
    let points: Vec<_> = found.curve.points.iter().map(|point| (point.cache_bytes, point.hit_ratio)).collect();
    assert_eq!(points, [(1 << 20, simulated(&touches, 256)), (2 << 20, simulated(&touches, 512))]);
    assert_eq!((found.curve.sampled_share, found.curve.read_blocks), (1.0, 1_280));
    let between = found.curve.hit_ratio(3 << 19).expect("between two points");
    assert!(points[0].1 < between && between < points[1].1);
    assert_eq!(found.curve.hit_ratio(1 << 40), Some(points[1].1));
    assert_eq!((found.curve.hit_ratio(0), found.curve.hit_ratio(4_096)), (Some(0.0), None));
    assert_eq!(found.writes.overwritten_share, Some(0.0));
}

#[test]
fn a_request_of_several_blocks_touches_each() {
    let read = |number| request(number, TraceKind::Read, 6_000, 8_192);
    let found =
        profile([read(0), read(1), request(2, TraceKind::Write, 8_192, 1), request(3, TraceKind::Write, 8_193, 1)]);
    assert_eq!((found.curve.read_blocks, found.footprint.map(|footprint| footprint.blocks)), (6, Some(3)));
    assert_eq!(found.curve.hit_ratio(1 << 20), Some(0.5));
    assert_eq!(found.writes.overwritten_share, Some(0.5));
}

#[test]
fn an_empty_trace_has_nothing_and_says_so() {
    let found = profile([]);
    assert_eq!((found.requests, found.duration_ns, found.mean_rates), (0, 0, None));
    assert_eq!((found.footprint, found.read_requests_share, found.hot_spots.clone()), (None, None, None));
    assert_eq!((found.depth.clone(), found.inter_arrival.clone(), found.busiest_second), (None, None, None));
    assert!(found.curve.points.is_empty() && found.curve.hit_ratio(1 << 30).is_none() && found.logs.is_empty());
    assert_eq!(found.devices.len(), 2, "those of the header");
    assert_eq!(found.over(Some(1.0), Some(1.0)).of, 0);
    assert!(serde_json::to_string(&found).is_ok());
}

#[test]
fn a_trace_of_one_request_is_that_request() {
    let end = TraceEnd { duration_ns: Some(2_000 * MS), lost: Some(3), ..TraceEnd::default() };
    let mut profiler = Profiler::new(ProfileOptions::default());
    profiler.add(&TraceRequest { latency_ns: Some(500 * MS), ..request(MS, TraceKind::Read, 4_096, 4_096) });
    let found = profiler.finish(&header(), &end);
    assert_eq!((found.requests, found.lost_requests, found.read_requests_share), (1, Some(3), Some(1.0)));
    assert_eq!(found.mean_rates.map(|rates| (rates.requests_per_s, rates.read_bytes_per_s)), Some((0.5, 2_048.0)));
    assert_eq!(found.series.points.len(), 2);
    assert_eq!(found.depth.map(|depth| (depth.mean, depth.max, depth.p50)), Some((0.25, 1, 0)));
    assert_eq!((found.inter_arrival, found.latency.write), (None, None));
    assert_eq!(found.latency.read.and_then(|latency| latency.max_ns()), Some(500 * MS));
    assert_eq!(found.devices[0].extent, Some(Extent { begin_bytes: 4_096, end_bytes: 8_192 }));
    assert_eq!(found.sequential_reads.map(|reads| reads.requests_share), Some(0.0));
    assert_eq!((found.sequential_writes, found.write_runs), (None, None));
}

#[test]
fn the_median_run_is_as_long_as_requests_of_round_sizes() {
    let mut profiler = Profiler::new(ProfileOptions::default());
    for (at, (offset, bytes)) in (0..).zip([(0, 8_192), (1 << 30, 8_192), (1 << 31, 1 << 20)]) {
        profiler.add(&request(at * MS, TraceKind::Read, offset, bytes));
    }
    let found = profiler.finish(&header(), &TraceEnd::default());
    assert_eq!(found.read_runs.map(|runs| runs.median_bytes), Some(8_192));
}

#[test]
fn devices_and_flushes_are_told_apart() {
    let mut requests = Vec::new();
    for round in 0..10_u64 {
        for number in 0..=round {
            let write = request(round * 100 + number, TraceKind::Write, 0, 4_096);
            requests.push(TraceRequest { is_fua: number == 0, latency_ns: Some(1_000), ..write });
        }
        requests.push(request(round * 100 + 50, TraceKind::Flush, 0, 0));
        let read = request(round * 100 + 60, TraceKind::Read, 1 << 30, 8_192);
        requests.push(TraceRequest { device: 1, latency_ns: Some(30), ..read });
    }
    let found = profile(requests);
    assert_eq!((found.writes.flushes, found.writes.median_writes_between_flushes), (10, Some(6)));
    assert_eq!(found.fua_writes, Counted { requests: 10, bytes: 40_960 });
    assert_eq!(found.writes.overwritten_share, Some(54.0 / 55.0));
    let [sda, sdb] = found.devices.as_slice() else { panic!("two devices") };
    assert_eq!((sda.counted.write.requests, sda.counted.read.requests, sdb.counted.read.requests), (55, 0, 10));
    assert_eq!(sdb.footprint.map(|footprint| footprint.blocks), Some(2));
    let [all, one, other] = [&found.depth, &sda.depth, &sdb.depth].map(|depth| depth.clone().expect("known").mean);
    assert!((all - one - other).abs() < 0.05 * all, "{all} of {one} and {other}");
    assert_eq!(found.latency.flush, None);
}

#[test]
fn requests_out_of_order_count_as_issued_with_the_one_before() {
    let found = profile([5, 3, 9].map(|at| request(at, TraceKind::Read, 0, 512)));
    assert_eq!((found.out_of_order_requests, found.duration_ns), (1, 9));
}

fn any_request() -> impl Strategy<Value = TraceRequest> {
    let number = || prop_oneof![any::<u64>(), 0..100_000_u64, (0..64_u32).prop_map(|bits| u64::MAX >> bits)];
    let kind = (0..4_usize).prop_map(|kind| TraceKind::ALL[kind]);
    let device = prop_oneof![any::<u16>(), 0..3_u16];
    (number(), device, kind, any::<bool>(), number(), number(), proptest::option::of(number())).prop_map(
        |(at_ns, device, kind, is_fua, offset_bytes, bytes, latency_ns)| TraceRequest {
            at_ns,
            device,
            kind,
            is_fua,
            offset_bytes,
            bytes,
            latency_ns,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_trace_has_its_profile_is_bounded(
        requests in proptest::collection::vec(any_request(), 0..40),
        duration_ns in proptest::option::of(any::<u64>()),
        block_bytes in any::<u64>(),
    ) {
        let options =
            ProfileOptions { block_bytes, chunk_bytes: block_bytes, sampled_blocks: 0, counted_chunks: 0 };
        let mut profiler = Profiler::new(options);
        requests.iter().for_each(|request| profiler.add(request));
        let found = profiler.finish(&header(), &TraceEnd { duration_ns, ..TraceEnd::default() });
        prop_assert_eq!(found.requests, requests.len() as u64);
        prop_assert!(found.series.points.len() <= MAX_POINTS && found.devices.len() <= 256 && found.logs.len() <= 16);
        prop_assert!(found.curve.points.len() <= 64);
        for point in &found.curve.points {
            prop_assert!((0.0..=1.0).contains(&point.hit_ratio));
        }
        prop_assert!(found.over(Some(0.0), None).intervals <= found.series.points.len());
    }
}
