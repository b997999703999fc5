//! What building and checking a block costs: set-up and `verify` must be bound by storage, not by the processor.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use plimsoll::targets::database::Filling;
use plimsoll::targets::embedded::block::check;
use plimsoll::targets::embedded::{BlockShape, Layout};
use plimsoll::workload::Rng;

const BLOCK_BYTES: usize = 8192;
/// As many as one write of a set-up has.
const BLOCKS: usize = 128;

/// A layout of 1 TiB, less some, so that placing rows is as dear as it gets.
fn layout() -> Layout {
    let shape = BlockShape::new(BLOCK_BYTES).expect("8 KiB is a block size");
    Layout::new(shape, 1, 42, 8, (1 << 24) - 12_345, 0)
}

fn build(buffer: &mut [u8], layout: &Layout, filling: Filling, rng: &mut Rng) {
    for (block, contents) in (1_000_000..).zip(buffer.chunks_exact_mut(BLOCK_BYTES)) {
        layout.shape().build(contents, layout.identity(block), filling, rng);
    }
}

fn blocks(criterion: &mut Criterion) {
    let layout = layout();
    let mut rng = Rng::new(42, 0);
    let mut buffer = vec![0; BLOCKS * BLOCK_BYTES];
    let mut group = criterion.benchmark_group("block");
    group.throughput(Throughput::Bytes(buffer.len() as u64));
    for (name, filling) in [("build", Filling::Incompressible), ("build, compressible", Filling::Compressible)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| build(black_box(&mut buffer), &layout, filling, &mut rng));
        });
    }
    group.bench_function("check", |bencher| {
        bencher.iter(|| {
            for (block, contents) in (1_000_000..).zip(black_box(&buffer).chunks_exact(BLOCK_BYTES)) {
                check(contents, layout.identity(block), Some(0)).expect("the block was just built");
            }
        });
    });
    group.finish();
}

criterion_group!(benches, blocks);
criterion_main!(benches);
