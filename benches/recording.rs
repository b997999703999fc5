//! What measuring one request costs, apart from the request itself: beside the fastest device it must vanish.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use plimsoll::config::io::Durable;
use plimsoll::measure::{Clock, Counter, EndedOperation, LaneRecorder, Outbox, Timeline, WaitEvent};
use plimsoll::record::TargetFacts;
use plimsoll::targets::block::{Block, BlockOptions, Checking, Preparation, PrepareOptions, VolumeLayout, base_at};
use plimsoll::targets::io::{Caching, Durability, IoEngine};
use plimsoll::targets::{Finished, SessionRange, TargetFor};
use plimsoll::units::Bytes;
use plimsoll::workload::io::{IoKind, IoOperation};

/// A batch of completions at depth 32 on a fast device, whose arrival one reading of the clock reports.
const BATCH: u64 = 8;

const BLOCK_BYTES: u32 = 8192;

fn recorder(clock: Clock) -> (LaneRecorder, Arc<Outbox>) {
    // So long that no interval ends meanwhile: handing one over, once a second, is no cost of a request.
    const HOUR_NS: u64 = 3_600_000_000_000;
    let timeline = Arc::new(Timeline::new(clock.now_ns(), 0, None, HOUR_NS));
    let outbox = Arc::new(Outbox::default());
    (LaneRecorder::new(timeline, Arc::clone(&outbox)), outbox)
}

/// What driver and lane do together with one request that has come back.
#[inline]
fn record(recorder: &mut LaneRecorder, sent_ns: u64, due_ns: u64, at_ns: u64) {
    let service_ns = at_ns.saturating_sub(sent_ns);
    recorder.wait(WaitEvent::DbFileSequentialRead, service_ns);
    recorder.count(Counter::PhysicalReads, 1);
    recorder.count(Counter::PhysicalReadBytes, 8192);
    recorder.advance(at_ns);
    let response_ns = at_ns.saturating_sub(due_ns);
    recorder.operation(&EndedOperation { kind: 0, session: 3, at_ns, block_touches: 1, service_ns, response_ns });
}

fn recording(criterion: &mut Criterion) {
    let clock = Clock::start();
    let mut group = criterion.benchmark_group("record one request");
    group.measurement_time(Duration::from_secs(3));
    // At depth 1 nothing is shared: one reading as it is sent, one as it has come back.
    group.bench_function("both clock readings included", |bencher| {
        let (mut recorder, _outbox) = recorder(clock);
        bencher.iter(|| {
            let sent_ns = black_box(clock.now_ns());
            let at_ns = clock.now_ns();
            record(&mut recorder, sent_ns, sent_ns, black_box(at_ns + 100_000));
        });
    });
    group.bench_function("open loop, both clock readings included", |bencher| {
        let (mut recorder, _outbox) = recorder(clock);
        bencher.iter(|| {
            let sent_ns = black_box(clock.now_ns());
            recorder.schedule_lag(700, 200);
            let at_ns = clock.now_ns();
            record(&mut recorder, sent_ns, sent_ns - 700, black_box(at_ns + 100_000));
        });
    });
    group.throughput(Throughput::Elements(BATCH));
    group.bench_function("eight that came back together", |bencher| {
        let (mut recorder, _outbox) = recorder(clock);
        bencher.iter(|| {
            let sent_ns: [u64; BATCH as usize] = std::array::from_fn(|_| clock.now_ns());
            let at_ns = clock.now_ns() + 100_000;
            for sent_ns in black_box(sent_ns) {
                record(&mut recorder, sent_ns, sent_ns, black_box(at_ns));
            }
        });
    });
    group.finish();
    let mut group = criterion.benchmark_group("clock");
    group.bench_function("one reading", |bencher| bencher.iter(|| clock.now_ns()));
    group.finish();
}

/// A small volume whose lanes are asked to move nothing.
fn volume(folder: &Path) -> Block {
    let wanted = PrepareOptions {
        paths: vec![folder.join("data")],
        elsewhere: Vec::new(),
        layout: VolumeLayout::Single,
        size: Some(Bytes::mib(4)),
        reads: true,
        permission: None,
        checked: false,
        prefill: false,
        caching: Caching::Direct,
        durability: Durability::OnSync,
        io_engine: IoEngine::best_available().0,
    };
    let io_engine = wanted.io_engine;
    let preparation = Preparation::look(wanted).expect("a new file can be laid out");
    let (volume, members) = preparation.run(&|_| (), &AtomicBool::new(false)).expect("4 MiB can be laid out");
    let options = BlockOptions {
        io_engine,
        block_bytes: BLOCK_BYTES,
        largest_bytes: BLOCK_BYTES,
        region_bytes: volume.capacity_bytes(),
        writes: false,
        durable: Durable::None,
        checking: Checking::Off,
        seed: 1,
        facts: TargetFacts::default(),
        generation_base: base_at(1),
    };
    Block::new(volume, members, options)
}

/// Everything that a lane does for a read but the reading, the kernel's calls included.
fn idle_lane(criterion: &mut Criterion) {
    const DEPTH: u32 = 32;
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary directory can be made");
    let block = volume(folder.path());
    let clock = Clock::start();
    let range = SessionRange { lane: 0, first_session: 0, sessions: DEPTH, clock };
    let mut lane = block.open_idle_lane(range).expect("a queue can be made").expect("a volume has idle lanes");
    let (mut recorder, _outbox) = recorder(clock);
    let mut finished: Vec<Finished> = Vec::new();
    let operation = IoOperation { kind: IoKind::Read, offset_bytes: 0, bytes: BLOCK_BYTES, is_durable: false };
    let mut group = criterion.benchmark_group("lane without a device");
    group.throughput(Throughput::Elements(u64::from(DEPTH)));
    group.bench_function("32 reads", |bencher| {
        bencher.iter(|| {
            for session in 0..DEPTH {
                lane.start(session, black_box(&operation), clock.now_ns(), &mut recorder).expect("requests are taken");
            }
            while finished.len() < DEPTH as usize {
                lane.poll(0, &mut recorder, &mut finished).expect("requests come back");
            }
            finished.clear();
        });
    });
    group.finish();
}

criterion_group!(benches, recording, idle_lane);
criterion_main!(benches);
