use proptest::prelude::*;

use super::{Drawn, HotSpot, SlobSession, SlobShape, Think};
use crate::workload::{OperationKind, RedoStress, SlobOperation, Stream};

fn plain() -> SlobShape {
    SlobShape {
        schemas: 4,
        threads_per_schema: 3,
        scale_blocks: 10_000,
        work_unit: 16,
        update_pct: 0,
        update_share: None,
        scan_pct: 0,
        redo_stress: RedoStress::Lite,
        hot_spot: None,
        hot_schema_frequency: 0,
        think: None,
    }
}

fn draws(shape: &SlobShape, session: u32, count: usize) -> Vec<Drawn<SlobOperation>> {
    let mut session = SlobSession::new(shape, 42, session);
    (0..count).map(|_| session.draw()).collect()
}

fn assert_even(counts: &[u32]) {
    let expected = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
    let chi_square: f64 = counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
    let freedom = (counts.len() - 1) as f64;
    assert!(chi_square < freedom + 4.0 * (2.0 * freedom).sqrt(), "chi-square {chi_square} of {freedom}: {counts:?}");
}

#[test]
fn sessions_are_numbered_schema_by_schema() {
    let homes: Vec<u32> = (0..12).map(|session| SlobSession::new(&plain(), 1, session).home_schema()).collect();
    assert_eq!(homes, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
    assert!(draws(&plain(), 7, 500).iter().all(|drawn| drawn.operation.schema == 2));
}

#[test]
fn the_same_seed_gives_the_same_operations_and_another_session_others() {
    assert_eq!(draws(&plain(), 5, 300), draws(&plain(), 5, 300));
    let keys =
        |session| draws(&plain(), session, 300).iter().map(|drawn| drawn.operation.first_key).collect::<Vec<_>>();
    let equal = keys(4).iter().zip(keys(5)).filter(|(one, other)| *one == other).count();
    assert!(equal < 5, "{equal} of 300 keys are equal");
}

#[test]
fn first_keys_are_uniform_and_reach_both_ends() {
    let shape = SlobShape { scale_blocks: 65, work_unit: 16, ..plain() };
    let mut counts = [0; 50];
    for drawn in draws(&shape, 0, 100_000) {
        counts[drawn.operation.first_key as usize] += 1;
    }
    assert_even(&counts);
}

#[test]
fn reads_and_updates_touch_equally_distributed_keys() {
    let shape = SlobShape { update_pct: 50, ..plain() };
    for kind in [OperationKind::Read, OperationKind::Update] {
        let mut counts = [0; 40];
        for drawn in draws(&shape, 0, 80_000) {
            if drawn.operation.kind == kind {
                counts[(drawn.operation.first_key * 40 / 9_985) as usize] += 1;
            }
        }
        assert_even(&counts);
    }
}

#[test]
fn kinds_by_chance_have_their_share_and_nothing_else_differs() {
    let with = |update_share| draws(&SlobShape { update_share, ..plain() }, 3, 20_000);
    let all_reads = with(None);
    for share in [0.0, 0.0125, 0.25, 1.0] {
        let drawn = with(Some(share));
        let updates = drawn.iter().filter(|drawn| drawn.operation.kind == OperationKind::Update).count() as f64;
        let deviation = (20_000.0 * share * (1.0 - share)).sqrt();
        assert!((updates - 20_000.0 * share).abs() <= 4.0 * deviation, "{share}: {updates}");
        let keys = |drawn: &[Drawn<SlobOperation>]| drawn.iter().map(|it| it.operation.first_key).collect::<Vec<_>>();
        assert_eq!(keys(&drawn), keys(&all_reads), "{share}");
    }
    // By chance, not in a pattern: an update follows another as often as its share says.
    let kinds: Vec<bool> = with(Some(0.25)).iter().map(|drawn| drawn.operation.kind == OperationKind::Update).collect();
    let twice = kinds.windows(2).filter(|two| two[0] && two[1]).count();
    assert!((1_100..1_400).contains(&twice), "{twice} of 1,250");
}

#[test]
fn a_scan_touches_no_single_keys() {
    let shape = SlobShape { scan_pct: 100, ..plain() };
    for drawn in draws(&shape, 0, 200) {
        assert_eq!(drawn.operation.kind, OperationKind::Scan);
        assert_eq!((drawn.operation.first_key, drawn.operation.keys), (0, 0));
    }
}

#[test]
fn hot_spot_and_hot_schema_are_independent_of_each_other_and_of_the_mix() {
    let shape = SlobShape {
        scale_blocks: 1_000_000_000,
        update_pct: 25,
        hot_spot: Some(HotSpot { offset_blocks: 500, blocks: 100, frequency: 3 }),
        hot_schema_frequency: 5,
        ..plain()
    };
    let mut table = [0_u32; 8];
    let total = 240_000;
    for Drawn { operation, .. } in draws(&shape, 11, total) {
        let is_hot_key = (500..600).contains(&operation.first_key);
        let is_hot_schema = operation.schema == 0;
        let is_update = operation.kind == OperationKind::Update;
        table[usize::from(is_hot_key) | usize::from(is_hot_schema) << 1 | usize::from(is_update) << 2] += 1;
    }
    let mut chi_square = 0.0;
    for (cell, &count) in table.iter().enumerate() {
        let share = |bit: usize, one_in: f64| if cell >> bit & 1 == 1 { 1.0 / one_in } else { 1.0 - 1.0 / one_in };
        let expected = total as f64 * share(0, 3.0) * share(1, 5.0) * share(2, 4.0);
        chi_square += (f64::from(count) - expected).powi(2) / expected;
    }
    // 7 degrees of freedom: 1 in 1,000 above 24.3. Dependence of any two choices would give thousands.
    assert!(chi_square < 24.3, "chi-square {chi_square} of {table:?}");
}

#[test]
fn hot_keys_are_uniform_within_the_hot_spot() {
    let hot_spot = HotSpot { offset_blocks: 100, blocks: 55, frequency: 1 };
    let mut counts = [0; 40];
    for drawn in draws(&SlobShape { hot_spot: Some(hot_spot), ..plain() }, 0, 60_000) {
        counts[drawn.operation.first_key as usize - 100] += 1;
    }
    assert_even(&counts);
}

#[test]
fn switching_one_choice_on_leaves_the_others_as_they_were() {
    let before = draws(&plain(), 11, 5_000);
    let full = SlobShape {
        scan_pct: 10,
        hot_spot: Some(HotSpot { offset_blocks: 20, blocks: 64, frequency: 4 }),
        hot_schema_frequency: 3,
        think: Some(Think { frequency: 2, min_ns: 5, max_ns: 9 }),
        ..plain()
    };
    let mut unchanged = 0;
    for (one, other) in before.iter().zip(draws(&full, 11, 5_000)) {
        let is_hot = (20..=68).contains(&other.operation.first_key);
        if other.operation.kind == OperationKind::Read && !is_hot {
            assert_eq!(one.operation.first_key, other.operation.first_key);
            unchanged += 1;
        }
    }
    assert!(unchanged > 3_000, "{unchanged}");

    let paused = SlobShape { hot_spot: None, ..full.clone() };
    for (one, other) in draws(&full, 11, 5_000).iter().zip(draws(&paused, 11, 5_000)) {
        assert_eq!((one.operation.kind, one.think_ns), (other.operation.kind, other.think_ns));
        assert_eq!(one.operation.schema, other.operation.schema);
    }
}

#[test]
fn pauses_come_at_their_frequency_and_spread_evenly_between_their_ends() {
    let think = Think { frequency: 4, min_ns: 100, max_ns: 119 };
    let drawn = draws(&SlobShape { think: Some(think), ..plain() }, 0, 80_000);
    let mut counts = [0; 20];
    for drawn in drawn.iter().filter(|drawn| drawn.think_ns > 0) {
        counts[drawn.think_ns as usize - 100] += 1;
    }
    assert_even(&counts);
    let pauses: u32 = counts.iter().sum();
    assert!((19_400..20_600).contains(&pauses), "{pauses} pauses in 80000 operations");
}

#[test]
fn a_frequency_of_zero_is_never() {
    let shape = SlobShape {
        hot_spot: Some(HotSpot { offset_blocks: 0, blocks: 16, frequency: 0 }),
        think: Some(Think { frequency: 0, min_ns: 1, max_ns: 2 }),
        ..plain()
    };
    assert_eq!(draws(&shape, 11, 500), draws(&plain(), 11, 500));
}

proptest! {
    #[test]
    fn any_hundred_operations_of_a_session_hold_exactly_the_percentages(
        update_pct in 0..=60_u8, scan_pct in 0..=40_u8, session in 0..4096_u32,
    ) {
        let kinds: Vec<_> = draws(&SlobShape { update_pct, scan_pct, ..plain() }, session, 300)
            .iter().map(|drawn| drawn.operation.kind).collect();
        for window in kinds.windows(100) {
            let count = |kind| window.iter().filter(|&&drawn| drawn == kind).count();
            prop_assert_eq!(count(OperationKind::Update), usize::from(update_pct));
            prop_assert_eq!(count(OperationKind::Scan), usize::from(scan_pct));
        }
    }

    #[test]
    fn every_touched_block_lies_inside_the_table_and_a_hot_one_inside_the_hot_spot(
        scale_blocks in 1..200_u64, work_unit in 1..100_u32, offset_blocks in 0..250_u64, blocks in 0..250_u64,
    ) {
        let hot_spot = Some(HotSpot { offset_blocks, blocks, frequency: 1 });
        let fits = blocks >= u64::from(work_unit) && offset_blocks + blocks <= scale_blocks;
        for Drawn { operation, .. } in draws(&SlobShape { scale_blocks, work_unit, hot_spot, ..plain() }, 0, 50) {
            let end = operation.first_key + u64::from(operation.keys);
            prop_assert_eq!(u64::from(operation.keys), u64::from(work_unit).min(scale_blocks));
            prop_assert!(end <= scale_blocks);
            if fits {
                prop_assert!(operation.first_key >= offset_blocks && end <= offset_blocks + blocks);
            }
        }
    }

    #[test]
    fn no_shape_makes_a_generator_fail(
        schemas: u32, threads_per_schema: u32, scale_blocks: u64, work_unit: u32, update_pct: u8, scan_pct: u8,
        update_share: Option<f64>, offset_blocks: u64, blocks: u64, min_ns: u64, max_ns: u64, session: u32,
    ) {
        let shape = SlobShape {
            schemas, threads_per_schema, scale_blocks, work_unit, update_pct, update_share, scan_pct,
            redo_stress: RedoStress::Lite,
            hot_spot: Some(HotSpot { offset_blocks, blocks, frequency: 2 }),
            hot_schema_frequency: 2,
            think: Some(Think { frequency: 2, min_ns, max_ns }),
        };
        for Drawn { operation, think_ns } in draws(&shape, session, 20) {
            prop_assert!(operation.schema < schemas.max(1));
            prop_assert!(operation.first_key.saturating_add(u64::from(operation.keys)) <= scale_blocks.max(1));
            prop_assert!(think_ns == 0 || (min_ns..=max_ns.max(min_ns)).contains(&think_ns));
        }
    }
}
