//! What drawing a load costs: it must vanish beside the cheapest cached block touch.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use plimsoll::workload::io::{Access, Distribution, IoClass, IoShape, RequestSize};
use plimsoll::workload::{
    Arrival, Arrivals, HotSpot, Permutation, RedoStress, Rng, Shape, SlobSession, SlobShape, Stream, Think,
};

/// 1 TiB of 8 KiB blocks, less some, so that cycle walking is part of the figure.
const BLOCKS: u64 = (1 << 27) - 12_345;

fn permutation(criterion: &mut Criterion) {
    let permutation = Permutation::new(BLOCKS, 42);
    let mut group = criterion.benchmark_group("permutation");
    // Each index waits for the position before: the time of one lookup from start to end.
    group.bench_function("map, one after another", |bencher| {
        let mut index = 1;
        bencher.iter(|| index = permutation.map(black_box(index)));
    });
    group.bench_function("invert, one after another", |bencher| {
        let mut position = 1;
        bencher.iter(|| position = permutation.invert(black_box(position)));
    });
    // The lookups of one operation are independent and overlap in the processor.
    group.throughput(Throughput::Elements(64));
    group.bench_function("map, a work unit of 64", |bencher| {
        bencher.iter(|| (0..64).map(|key| permutation.map(black_box(1_000) + key)).fold(0, |sum, place| sum ^ place));
    });
    group.finish();
}

fn filler(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("rng");
    let mut rng = Rng::new(42, 0);
    let mut block = vec![0; 8192];
    group.throughput(Throughput::Bytes(block.len() as u64));
    group.bench_function("fill a block", |bencher| bencher.iter(|| rng.fill(black_box(&mut block))));
    group.finish();
}

fn operations(criterion: &mut Criterion) {
    let plain = SlobShape {
        schemas: 8,
        threads_per_schema: 4,
        scale_blocks: BLOCKS,
        work_unit: 64,
        update_pct: 20,
        update_share: None,
        scan_pct: 0,
        redo_stress: RedoStress::Lite,
        hot_spot: None,
        hot_schema_frequency: 0,
        think: None,
    };
    let full = SlobShape {
        scan_pct: 1,
        hot_spot: Some(HotSpot { offset_blocks: 2048, blocks: 1024, frequency: 3 }),
        hot_schema_frequency: 5,
        think: Some(Think { frequency: 4, min_ns: 100_000, max_ns: 500_000 }),
        ..plain.clone()
    };
    let mut group = criterion.benchmark_group("draw");
    for (name, shape) in [("reads and updates", &plain), ("every choice switched on", &full)] {
        let mut session = SlobSession::new(shape, 42, 17);
        group.bench_function(name, |bencher| bencher.iter(|| session.draw()));
    }
    group.bench_function("a new session", |bencher| {
        bencher.iter_batched(|| 17, |session| SlobSession::new(&full, 42, session), BatchSize::SmallInput);
    });
    for arrival in [Arrival::Poisson, Arrival::Fixed] {
        let mut arrivals = Arrivals::new(1e6, arrival, 0, 4, 42);
        group.bench_function(format!("{arrival:?} arrival"), |bencher| bencher.iter(|| arrivals.next_ns()));
    }
    group.finish();
}

fn requests(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("draw a request");
    for (name, access) in [
        ("uniform", Access::Random(Distribution::Uniform)),
        ("zipf 0.99", Access::Random(Distribution::Zipf { theta: 0.99 })),
        ("zipf 1.1", Access::Random(Distribution::Zipf { theta: 1.1 })),
        ("hot", Access::Random(Distribution::Hot { space_pct: 10.0, access_pct: 90.0 })),
        ("sequential", Access::Sequential),
    ] {
        let class = IoClass {
            size: RequestSize::Small,
            block_bytes: 8192,
            from_bytes: 0,
            region_bytes: BLOCKS * 8192,
            access,
            read_pct: 70,
            streams: 1,
            slots: 32,
        };
        let mut stream = IoShape::of(class).stream(42, 0);
        group.bench_function(name, |bencher| bencher.iter(|| stream.draw()));
    }
    group.finish();
}

criterion_group!(benches, permutation, filler, operations, requests);
criterion_main!(benches);
