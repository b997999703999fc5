use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::{IoClass, IoShape, RequestSize};
use crate::workload::io::{Access, Distribution, IoKind, IoOperation};
use crate::workload::{Shape, Stream};

const HOT: Distribution = Distribution::Hot { space_pct: 10.0, access_pct: 90.0 };
const ZIPF: Distribution = Distribution::Zipf { theta: 1.1 };

fn random(distribution: Distribution, blocks: u64) -> IoClass {
    IoClass {
        size: RequestSize::Small,
        block_bytes: 8192,
        from_bytes: 0,
        region_bytes: blocks * 8192,
        access: Access::Random(distribution),
        read_pct: 100,
        streams: 1,
        slots: 1,
    }
}

fn sequential(blocks: u64, streams: u32) -> IoClass {
    IoClass { access: Access::Sequential, streams, slots: streams, ..random(Distribution::Uniform, blocks) }
}

fn draws(shape: &IoShape, seed: u64, stream: u32, count: usize) -> Vec<IoOperation> {
    let mut stream = shape.stream(seed, stream);
    (0..count).map(|_| stream.draw().operation).collect()
}

fn blocks_drawn(class: IoClass, seed: u64, stream: u32, count: usize) -> Vec<u64> {
    let requests = draws(&IoShape::of(class), seed, stream, count);
    requests.iter().map(|request| request.offset_bytes / u64::from(class.block_bytes)).collect()
}

fn frequencies(blocks: &[u64]) -> HashMap<u64, u32> {
    let mut counts = HashMap::new();
    blocks.iter().for_each(|block| *counts.entry(*block).or_default() += 1);
    counts
}

fn accesses() -> impl Strategy<Value = Access> {
    let share = || 0.0..=100.0_f64;
    prop_oneof![
        Just(Access::Sequential),
        Just(Access::Random(Distribution::Uniform)),
        (0.01..5.0_f64).prop_map(|theta| Access::Random(Distribution::Zipf { theta })),
        (share(), share())
            .prop_map(|(space_pct, access_pct)| Access::Random(Distribution::Hot { space_pct, access_pct })),
    ]
}

proptest! {
    #[test]
    fn requests_are_aligned_and_lie_inside_the_region(
        access in accesses(), block in 1..=131_072_u32, blocks in 1..1_u64 << 36, tail: u32, streams in 1..9_u32, seed: u64,
        from_bytes in 0..1_u64 << 60,
    ) {
        let region_bytes = blocks * u64::from(block * 512) + u64::from(tail) % u64::from(block * 512);
        let class = IoClass { block_bytes: block * 512, from_bytes, region_bytes, access, streams, ..random(ZIPF, 1) };
        for request in draws(&IoShape::of(class), seed, streams - 1, 50) {
            prop_assert_eq!(request.bytes, class.block_bytes);
            let offset_bytes = request.offset_bytes.checked_sub(from_bytes).unwrap();
            prop_assert_eq!(offset_bytes % u64::from(class.block_bytes), 0);
            prop_assert!(offset_bytes + u64::from(request.bytes) <= region_bytes);
        }
    }

    #[test]
    fn any_hundred_requests_hold_exactly_the_reads(read_pct in 0..=100_u8, access in accesses(), seed: u64) {
        let shape = IoShape::of(IoClass { read_pct, access, ..random(ZIPF, 1_000) });
        for window in draws(&shape, seed, 0, 250).windows(100) {
            prop_assert_eq!(window.iter().filter(|request| !request.kind.is_write()).count(), usize::from(read_pct));
        }
    }

    #[test]
    fn a_mix_leaves_the_places_as_they_were(read_pct in 0..=100_u8, access in accesses(), seed: u64) {
        let reading = IoClass { access, ..random(ZIPF, 1_000) };
        prop_assert_eq!(blocks_drawn(reading, seed, 0, 60), blocks_drawn(IoClass { read_pct, ..reading }, seed, 0, 60));
    }

    #[test]
    fn sessions_of_a_stream_stand_side_by_side(slots in prop::collection::vec((1..9_u32, 0..40_u32), 1..4)) {
        let class = |&(streams, slots): &(u32, u32)| IoClass { streams, slots, ..random(ZIPF, 10) };
        let shape = IoShape { classes: slots.iter().map(class).collect() };
        let owners: Vec<u32> = (0..shape.sessions()).map(|session| shape.stream_of(session)).collect();
        prop_assert!(owners.is_sorted());
        let mut first = 0;
        for class in &shape.classes {
            let of_stream = |stream| owners.iter().filter(|&&owner| owner == stream).count() as u32;
            let counts: Vec<u32> = (first..first + class.streams).map(of_stream).collect();
            prop_assert_eq!(counts.iter().sum::<u32>(), class.slots);
            prop_assert!(counts.iter().all(|&count| count.abs_diff(class.slots / class.streams) <= 1));
            first += class.streams;
        }
    }

    #[test]
    fn one_pass_of_a_sequential_stream_visits_every_block_once(blocks in 1..500_u64, streams in 1..9_u32) {
        for stream in 0..streams {
            let visited = blocks_drawn(sequential(blocks, streams), 1, stream, 2 * blocks as usize);
            let (pass, next_pass) = visited.split_at(blocks as usize);
            prop_assert_eq!(pass.iter().collect::<HashSet<_>>().len() as u64, blocks);
            prop_assert_eq!(pass, next_pass);
            prop_assert!(pass.windows(2).all(|pair| pair[1] == (pair[0] + 1) % blocks));
        }
    }
}

#[test]
fn sequential_streams_start_at_evenly_spaced_places() {
    let starts = |blocks| (0..4).map(|stream| blocks_drawn(sequential(blocks, 4), 9, stream, 1)[0]).collect::<Vec<_>>();
    assert_eq!(starts(1_000), [0, 250, 500, 750]);
    assert_eq!(starts(10), [0, 2, 5, 7]);
    assert_eq!(starts(2), [0, 0, 1, 1]);
}

#[test]
fn mixed_sequential_requests_walk_one_cursor() {
    let class = IoClass { read_pct: 50, ..sequential(1_000, 1) };
    let requests = draws(&IoShape::of(class), 3, 0, 200);
    assert!(requests.iter().any(|request| request.kind == IoKind::Read));
    assert!(requests.iter().any(|request| request.kind == IoKind::Write));
    assert!(requests.windows(2).all(|pair| pair[1].offset_bytes == pair[0].offset_bytes + 8192));
}

#[test]
fn uniform_places_are_equally_likely() {
    let counts = frequencies(&blocks_drawn(random(Distribution::Uniform, 97), 11, 0, 200_000));
    let expected = 200_000.0 / 97.0;
    let chi_square: f64 = counts.values().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
    assert_eq!(counts.len(), 97);
    // 96 degrees of freedom: standard deviation 13.9.
    assert!(chi_square < 96.0 + 5.0 * 13.9, "chi-square {chi_square}");
}

#[test]
fn offsets_are_drawn_with_replacement() {
    let distinct = frequencies(&blocks_drawn(random(Distribution::Uniform, 10_000), 5, 0, 10_000)).len();
    // Of n draws from n with replacement a share of 1 − 1/e is distinct: 6,321, with a standard deviation of 31.
    assert!(distinct.abs_diff(6_321) < 160, "{distinct} of 10000 offsets are distinct");
}

#[test]
fn the_most_popular_blocks_of_a_zipf_load_have_their_exact_share_and_lie_apart() {
    let (blocks, requests) = (1_000, 200_000);
    let drawn = blocks_drawn(random(ZIPF, blocks), 17, 0, requests);
    let mut counts: Vec<(u64, u32)> = frequencies(&drawn).into_iter().collect();
    counts.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let sum: f64 = (1..=blocks).map(|rank| (rank as f64).powf(-1.1)).sum();
    for (rank, &(_, count)) in (1..=10).zip(&counts) {
        let expected = f64::from(rank).powf(-1.1) / sum * requests as f64;
        assert!((f64::from(count) - expected).abs() < 5.0 * expected.sqrt(), "rank {rank}: {count} for {expected}");
    }
    let neighbours = counts[..20].windows(2).filter(|pair| pair[0].0.abs_diff(pair[1].0) == 1).count();
    assert!(neighbours <= 1, "{neighbours} of the 20 most popular blocks lie beside the next");
}

#[test]
fn hot_blocks_take_their_share_and_lie_apart() {
    let drawn = blocks_drawn(random(HOT, 1_000), 23, 0, 200_000);
    let mut counts: Vec<(u64, u32)> = frequencies(&drawn).into_iter().collect();
    counts.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let (hot, cold) = counts.split_at(100);
    let of_hot = f64::from(hot.iter().map(|&(_, count)| count).sum::<u32>()) / 200_000.0;
    // The standard deviation of the share is 0.0007.
    assert!((of_hot - 0.9).abs() < 0.0035, "{of_hot} of the accesses go to hot blocks");
    assert!(hot[99].1 > 1_500 && cold[0].1 < 100, "hot blocks are not distinguished from cold ones");
    let mut places: Vec<u64> = hot.iter().map(|&(block, _)| block).collect();
    places.sort_unstable();
    // A block after a hot one is hot with a chance of a tenth.
    let neighbours = places.windows(2).filter(|pair| pair[1] - pair[0] == 1).count();
    assert!(neighbours < 25, "{neighbours} of 100 hot blocks lie beside another");
}

#[test]
fn the_extremes_of_a_hot_load_have_a_meaning() {
    let distinct = |space_pct, access_pct| {
        let class = random(Distribution::Hot { space_pct, access_pct }, 100);
        frequencies(&blocks_drawn(class, 2, 0, 5_000)).len()
    };
    assert_eq!(distinct(10.0, 100.0), 10);
    assert_eq!(distinct(10.0, 0.0), 90);
    assert_eq!(distinct(100.0, 0.0), 100);
    assert_eq!(distinct(0.0001, 100.0), 1);
}

#[test]
fn streams_of_a_class_agree_about_hot_blocks_and_draw_their_own() {
    for distribution in [HOT, ZIPF] {
        let class = IoClass { streams: 2, slots: 2, ..random(distribution, 100_000) };
        let popular = |stream| {
            let drawn = blocks_drawn(class, 31, stream, 20_000);
            let most = frequencies(&drawn).into_iter().max_by_key(|&(_, count)| count).unwrap();
            (drawn, most)
        };
        let ((one, (top, _)), (other, _)) = (popular(0), popular(1));
        assert_ne!(one, other);
        assert!(other.contains(&top), "the streams have popular blocks of their own");
        if distribution == ZIPF {
            assert_eq!(top, popular(1).1.0);
        }
        let of_one: HashSet<u64> = one.into_iter().collect();
        let shared = other.iter().filter(|block| of_one.contains(block)).count();
        assert!(shared > 10_000, "{shared} of 20000 requests go to blocks of the other stream");
    }
}

#[test]
fn the_same_seed_gives_the_same_requests_and_another_seed_or_stream_others() {
    for distribution in [Distribution::Uniform, ZIPF, HOT] {
        let class = IoClass { streams: 4, slots: 4, ..random(distribution, 1 << 30) };
        let drawn = |seed, stream| blocks_drawn(class, seed, stream, 300);
        assert_eq!(drawn(1, 2), drawn(1, 2));
        let equal = |one: Vec<u64>, other: Vec<u64>| one.iter().zip(&other).filter(|(a, b)| a == b).count();
        assert!(equal(drawn(1, 2), drawn(2, 2)) < 30);
        assert!(equal(drawn(1, 2), drawn(1, 3)) < 30);
    }
}

#[test]
fn classes_have_streams_and_kinds_of_their_own() {
    let small = IoClass { slots: 3, read_pct: 50, ..random(Distribution::Uniform, 1_000) };
    let large = IoClass {
        size: RequestSize::Large,
        block_bytes: 1 << 20,
        from_bytes: 0,
        region_bytes: 1 << 30,
        slots: 8,
        read_pct: 50,
        ..sequential(1, 2)
    };
    let shape = IoShape { classes: vec![small, large] };
    assert_eq!((shape.sessions(), shape.streams()), (11, 3));
    let owners: Vec<u32> = (0..11).map(|session| shape.stream_of(session)).collect();
    assert_eq!(owners, [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
    for request in draws(&shape, 1, 0, 100) {
        assert!(matches!(request.kind, IoKind::Read | IoKind::Write) && request.bytes == 8192);
    }
    for request in draws(&shape, 1, 2, 100) {
        assert!(matches!(request.kind, IoKind::LargeRead | IoKind::LargeWrite) && request.bytes == 1 << 20);
    }
    assert_eq!(draws(&shape, 1, 2, 1)[0].offset_bytes, 1 << 29);
}

#[test]
fn a_region_shorter_than_a_block_has_one_place() {
    let class = IoClass { region_bytes: 100, ..random(Distribution::Uniform, 1) };
    assert!(blocks_drawn(class, 1, 0, 10).iter().all(|&block| block == 0));
}

#[test]
#[should_panic(expected = "session 1 of a load with 1 sessions")]
fn a_session_beyond_the_last_is_a_bug() {
    IoShape::of(random(Distribution::Uniform, 1)).stream_of(1);
}
