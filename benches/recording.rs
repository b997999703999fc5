//! What measuring one request costs, apart from the request itself: beside the fastest device it must vanish.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use plimsoll::measure::{Clock, Counter, LaneRecorder, Outbox, Timeline, WaitEvent};

/// A batch of completions at depth 32 on a fast device, whose arrival one reading of the clock tells.
const BATCH: u64 = 8;

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
    recorder.operation(0, 1, service_ns, at_ns.saturating_sub(due_ns));
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
            recorder.schedule_lag(700);
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

criterion_group!(benches, recording);
criterion_main!(benches);
