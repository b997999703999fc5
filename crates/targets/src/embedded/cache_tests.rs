//! The buffer cache under one and under several threads.

use std::collections::HashMap;
use std::sync::Barrier;

use super::*;
use crate::embedded::frame::DIRTY;
use model::workload::Rng;

fn cache(frames: u64) -> Cache {
    let shape = BlockShape::new(2048).unwrap();
    Cache::new(frames, shape, Arc::new(Arena::new(frames as usize * 2048).unwrap()))
}

/// Finds or loads a block, as a session does, and leaves it unpinned. Returns whether it was there.
fn touch(cache: &Cache, hand: &mut Hand, block: u64) -> bool {
    loop {
        match cache.lookup(block) {
            Lookup::Hit { frame, seen } => {
                assert_eq!(cache.arena().load(cache.offset(frame)), block, "a hit is the block asked for");
                cache.frame(frame).unpin_used(seen);
                return true;
            }
            Lookup::Loading(_) => std::hint::spin_loop(),
            Lookup::Miss => match cache.allocate(block, hand) {
                Allocation::Frame(frame) => {
                    cache.arena().store(cache.offset(frame), block);
                    cache.finish_loading(frame);
                    cache.frame(frame).unpin();
                    return false;
                }
                Allocation::Present => {}
                Allocation::NoneFree => std::thread::yield_now(),
            },
        }
    }
}

#[test]
fn a_block_is_found_again_until_others_push_it_out() {
    let cache = cache(64);
    let mut hand = Hand::default();
    assert!(!touch(&cache, &mut hand, 7));
    assert!(touch(&cache, &mut hand, 7));
    for block in 100..400 {
        assert!(!touch(&cache, &mut hand, block));
    }
    assert!(!touch(&cache, &mut hand, 7));
}

#[test]
fn a_set_that_fits_is_read_once() {
    let cache = cache(256);
    let mut hand = Hand::default();
    let misses = (0..2560).filter(|n| !touch(&cache, &mut hand, n % 256)).count();
    assert_eq!(misses, 256);
}

#[test]
fn uniform_access_hits_as_often_as_the_cache_is_large() {
    let cache = cache(512);
    let (mut hand, mut rng) = (Hand::default(), Rng::new(1, 1));
    let blocks = 512 * 16;
    for _ in 0..blocks * 2 {
        touch(&cache, &mut hand, rng.below(blocks));
    }
    let tries = 100_000;
    let hits = (0..tries).filter(|_| touch(&cache, &mut hand, rng.below(blocks))).count();
    let share = hits as f64 / f64::from(tries);
    assert!((share - 1.0 / 16.0).abs() < 0.005, "hit ratio {share} where 0.0625 belongs");
}

#[test]
fn blocks_in_steady_use_stay_while_others_pass_through() {
    let cache = cache(512);
    let (mut hand, mut rng) = (Hand::default(), Rng::new(1, 1));
    let mut hot_hits = 0;
    for round in 0..200_000u32 {
        if round.is_multiple_of(2) {
            hot_hits += u32::from(touch(&cache, &mut hand, rng.below(128)));
        } else {
            touch(&cache, &mut hand, 1_000 + rng.below(1_000_000));
        }
    }
    assert!(hot_hits > 97_000, "only {hot_hits} of 100000 touches of 128 hot blocks were hits");
}

#[test]
fn dirty_and_pinned_frames_are_never_taken() {
    let cache = cache(64);
    let mut hand = Hand::default();
    for block in 0..64 {
        touch(&cache, &mut hand, block);
    }
    for frame in 0..64 {
        let bits = if frame % 2 == 0 { DIRTY } else { PIN };
        cache.frame(frame).state.fetch_add(bits, Ordering::Relaxed);
    }
    assert_eq!(cache.allocate(1000, &mut hand), Allocation::NoneFree);
    cache.frame(10).state.fetch_and(!DIRTY, Ordering::Relaxed);
    assert_eq!(cache.allocate(1000, &mut hand), Allocation::Frame(10));
}

#[test]
fn a_waiting_session_is_announced_to_the_loader() {
    let cache = cache(64);
    let mut hand = Hand::default();
    let Allocation::Frame(frame) = cache.allocate(5, &mut hand) else { panic!("no frame") };
    assert_eq!(cache.lookup(5), Lookup::Loading(frame));
    assert_eq!(cache.allocate(5, &mut hand), Allocation::Present);
    assert!(cache.wait_for_loading(frame, 5));
    assert!(cache.finish_loading(frame), "somebody waits");
    assert!(!cache.is_loading(frame, 5));
    assert!(!cache.wait_for_loading(frame, 5), "nothing to wait for any more");
}

#[test]
fn a_cache_counts_all_its_memory() {
    let shape = BlockShape::new(8192).unwrap();
    let frames = Cache::frames_in(Bytes::mib(64), shape, (524_288, Bytes(0)), 32).unwrap();
    assert!((8000..8192).contains(&frames), "{frames} frames in 64 MiB");
    let error = Cache::frames_in(Bytes::mib(1), shape, (524_288, Bytes(0)), 32).unwrap_err();
    assert!(matches!(error, TargetError::CacheTooSmall { .. }));
}

#[test]
fn threads_never_see_a_wrong_block_and_never_lose_one() {
    let cache = cache(96);
    let start = Barrier::new(4);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (cache, start) = (&cache, &start);
            scope.spawn(move || {
                let (mut hand, mut rng) = (Hand::default(), Rng::new(9, thread));
                start.wait();
                for _ in 0..50_000 {
                    touch(cache, &mut hand, rng.below(300));
                }
            });
        }
    });
    // Afterwards each block is in the table at most once, and every frame is at rest.
    let mut seen: HashMap<u64, u32> = HashMap::new();
    for id in 0..96 {
        let frame = cache.frame(id);
        let state = frame.state.load(Ordering::Relaxed);
        assert_eq!(state & (LOADING | CLAIMED | 0xffff), 0, "frame {id} is not at rest: {state:#x}");
        if state & VALID != 0 {
            assert_eq!(seen.insert(frame.block.load(Ordering::Relaxed), id), None);
        }
    }
    for (block, id) in seen {
        assert!(matches!(cache.lookup(block), Lookup::Hit { frame, .. } if frame == id), "block {block} is lost");
    }
}
