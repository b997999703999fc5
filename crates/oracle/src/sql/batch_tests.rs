use proptest::prelude::*;

use super::super::names::{Layout, Reads, printable};
use super::super::operations::placeholders;
use super::*;
use ::sql::{COLUMNS, batch_filling_bytes};
use model::workload::RedoStress;

const ALL: Kinds = Kinds { updates: true, scans: true };

fn own() -> Sql {
    Sql::new("PLIMSOLL", 8192)
}

/// What the block makes of the bytes, by its own rules: kind, whether on the first schema, first and last value of `custid`.
fn understood(packed: &[u8]) -> Vec<(u32, bool, u64, u64)> {
    let word = |entry: &[u8], place: usize| {
        let bytes = entry[WORD * place..WORD * (place + 1)].try_into().unwrap();
        u32::try_from(i32::from_be_bytes(bytes)).expect("the server reads numbers as signed")
    };
    packed
        .chunks(ENTRY)
        .map(|entry| {
            let which = word(entry, 0);
            let first = u64::from(word(entry, 2)) * KEY_PART + u64::from(word(entry, 3));
            (which / 2, which % 2 == 1, first, first + u64::from(word(entry, 1)))
        })
        .collect()
}

/// What the block gives for an operation that ended so long after the begin.
fn timed(ended_us: i64, commit_us: Option<i64>, touched: u64) -> Vec<u8> {
    let seconds = ended_us.div_euclid(US_PER_S);
    let words = [seconds, ended_us.rem_euclid(US_PER_S), commit_us.unwrap_or(-1), touched as i64];
    words.iter().flat_map(|word| i32::try_from(*word).unwrap().to_be_bytes()).collect()
}

fn none() -> ServerTimes {
    ServerTimes { began_us: 0, operations: Vec::new() }
}

#[test]
fn a_batch_of_the_most_operations_and_its_times_fit_into_their_binds() {
    assert_eq!(MAX_BATCH, 250);
    assert_eq!(ENTRY, WORD * TIME_WORDS);
    assert!(batch_filling_bytes(own().column_bytes()) <= MAX_TEXT_BYTES);
    let mut filling = String::new();
    printable(&vec![200; batch_filling_bytes(own().column_bytes()) as usize], &mut filling);
    assert!(filling.len() >= ((FILLING_PLACES - 1) * FILLING_STEP + COLUMNS * own().column_bytes()) as usize);
}

#[test]
fn an_operation_is_four_numbers() {
    let update = |schema, first_key| SlobOperation {
        kind: OperationKind::Update,
        schema,
        first_key,
        keys: 64,
        redo_stress: RedoStress::Heavy,
    };
    let mut packed = vec![1, 2, 3];
    pack(&own(), &[update(3, 4711), update(0, (1 << 40) + 5)], 3, &mut packed);
    assert_eq!(understood(&packed), [(2, false, 4711, 4775), (2, true, (1 << 40) + 5, (1 << 40) + 69)]);
    pack(&own().with_layout(Layout::Slob), &[update(0, 0)], 0, &mut packed);
    assert_eq!(understood(&packed), [(2, false, 1, 65)], "SLOB's keys begin with 1");
}

#[test]
fn blocks_that_continue_each_other_give_one_list_of_times() {
    let mut times = none();
    assert!(unpack(&[timed(300, None, 64), timed(1_000_900, Some(200), 8)].concat(), &mut times));
    assert!(unpack(&timed(50, None, 64), &mut times));
    assert!(unpack(&[], &mut times), "an empty batch has no times");
    let timed = |committing_us, ended_us, touched| TimedOperation { committing_us, ended_us, touched };
    let expected = [timed(None, 300, 64), timed(Some(1_000_700), 1_000_900, 8), timed(None, 1_000_950, 64)];
    assert_eq!(times.operations, expected);
}

#[test]
fn what_is_not_of_the_blocks_making_adds_nothing() {
    let good = timed(300, None, 64);
    let bad = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    // One byte too few; more microseconds than a second has; a commit that never was; fewer rows than none.
    for bytes in [good[1..].to_vec(), bad(4, 0x7f), bad(8, 0x80), bad(12, 0x80)] {
        let mut times = none();
        assert!(!unpack(&[good.clone(), bytes].concat(), &mut times) && times == none());
    }
}

#[test]
fn placeholders_stand_once_and_in_the_order_in_which_they_are_bound() {
    for schema in [0, 2] {
        assert_eq!(placeholders(&own().batch(schema, ALL)), ["operations", "filling", "times"]);
        assert_eq!(placeholders(&own().batch(schema, Kinds::default())), ["operations", "times"]);
    }
}

#[test]
fn only_what_is_asked_for_is_in_the_block() {
    let reads = own().batch(2, Kinds::default());
    assert!(!reads.contains("UPDATE") && !reads.contains("scan_") && !reads.contains("COMMIT"), "{reads}");
    let all = own().batch(2, ALL);
    for table in ["slob_1", "slob_3", "scan_1", "scan_3"] {
        assert!(all.contains(&format!("\"PLIMSOLL\".{table} t")), "{table}: {all}");
    }
    assert_eq!(all.matches("COMMIT WRITE IMMEDIATE WAIT;").count(), 2, "one for each kind of update");
    let home = own().batch(0, ALL);
    assert!(!home.contains("is_hot"), "the first schema is no other's: {home}");
}

#[test]
fn key_by_key_the_block_loops_over_each_range() {
    let block = own().with_reads(Reads::KeyByKey).batch(0, ALL);
    assert!(!block.contains("t.custid >=") && block.contains("WHILE at_key < beyond_key LOOP"), "{block}");
    assert_eq!(block.matches("END LOOP;").count(), 1 + 3 + 2, "of operations, of keys, of columns");
}

#[test]
fn kinds_are_those_of_the_operations() {
    let of = |kind| SlobOperation { kind, schema: 0, first_key: 0, keys: 1, redo_stress: RedoStress::Lite };
    assert_eq!(Kinds::of(&[of(OperationKind::Read)]), Kinds::default());
    assert_eq!(Kinds::of(&[of(OperationKind::Read), of(OperationKind::Scan)]), Kinds { updates: false, scans: true });
    assert_eq!(Kinds::of(&[of(OperationKind::Update), of(OperationKind::Scan)]), ALL);
}

proptest! {
    #[test]
    fn every_operation_arrives_as_it_was_sent(
        drawn in prop::collection::vec((0..3_usize, any::<bool>(), 0..1_u64 << 49, 0..=65_536_u32, any::<bool>()), 0..60),
    ) {
        let home = 5;
        let operations: Vec<SlobOperation> = drawn
            .iter()
            .map(|&(kind, is_hot, first_key, keys, is_heavy)| SlobOperation {
                kind: OperationKind::ALL[kind],
                schema: if is_hot { 0 } else { home },
                first_key,
                keys,
                redo_stress: if is_heavy { RedoStress::Heavy } else { RedoStress::Lite },
            })
            .collect();
        let mut packed = Vec::new();
        pack(&own(), &operations, home, &mut packed);
        let expected: Vec<_> = operations
            .iter()
            .map(|operation| (
                StatementKind::of(operation) as u32,
                operation.schema == 0,
                operation.first_key,
                operation.first_key + u64::from(operation.keys),
            ))
            .collect();
        prop_assert_eq!(understood(&packed), expected);
    }

    #[test]
    fn times_come_back_as_the_server_took_them_also_from_a_clock_that_was_set_back(
        taken in prop::collection::vec(
            (-(1_i64 << 50)..1_i64 << 50, prop::option::of(0..i64::from(i32::MAX)), 0..1_u64 << 31), 0..60),
    ) {
        let bytes: Vec<u8> = taken.iter().flat_map(|&(ended, commit, touched)| timed(ended, commit, touched)).collect();
        let mut times = none();
        prop_assert!(unpack(&bytes, &mut times));
        let expected: Vec<_> = taken
            .iter()
            .map(|&(ended_us, commit, touched)| TimedOperation {
                committing_us: commit.map(|commit_us| ended_us - commit_us),
                ended_us,
                touched,
            })
            .collect();
        prop_assert_eq!(times.operations, expected);
    }

    #[test]
    fn no_bytes_break_anything(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut times = none();
        let is_whole = unpack(&bytes, &mut times);
        prop_assert_eq!(times.operations.len(), if is_whole { bytes.len() / ENTRY } else { 0 });
    }
}
