//! Operations in batches: a block that executes a list of them and times each, and the lists and times as bytes.
//!
//! The block is sent as it is, not kept as a procedure: so no right to make one is needed, nothing is left in a schema that is
//! SLOB's, and a standby that is open for reading can execute it. A session sends its text once; then it is a cursor.

use super::names::{MAX_TEXT_BYTES, Sql};
use super::{changed, indented};
use ::sql::{FILLING_PLACES, FILLING_STEP, ServerTimes, StatementKind, TimedOperation};
use model::workload::{OperationKind, SlobOperation};

/// Bytes of a number, most significant first. All are below 2³¹, since the server reads them as signed.
const WORD: usize = 4;
/// Numbers that describe an operation: twice its kind, and 1 more if it is on the first schema instead of the home; keys; the
/// first value of `custid` divided by [`KEY_PART`], and the rest.
const OPERATION_WORDS: usize = 4;
/// Numbers that describe what it took: whole seconds from the begin of the batch to its end, and the microseconds besides;
/// microseconds of its commit, or -1 without one; rows that were touched.
const TIME_WORDS: usize = 4;
/// Bytes of an operation, and of its times.
const ENTRY: usize = WORD * OPERATION_WORDS;
/// A value of `custid` has fewer than 16 digits, so both parts fit.
const KEY_PART: u64 = 1 << 30;
const US_PER_S: i64 = 1_000_000;

/// Most operations of one batch: their times are as many bytes as an OUT bind has room for by default. Longer lists are executed
/// by several blocks, of which [`unpack`] makes one list of times.
pub const MAX_BATCH: usize = MAX_TEXT_BYTES as usize / ENTRY;

/// What may be in a batch besides reads. Where there is nothing of a kind, its statements are not in the block either, because
/// the server looks at all of them: the right to update, or the scan table, may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Kinds {
    /// Whether there are updates.
    pub updates: bool,
    /// Whether there are scans.
    pub scans: bool,
}

impl Kinds {
    /// The kinds of these operations.
    pub fn of(operations: &[SlobOperation]) -> Self {
        let has = |kind| operations.iter().any(|operation| operation.kind == kind);
        Self { updates: has(OperationKind::Update), scans: has(OperationKind::Scan) }
    }
}

impl Sql {
    /// The block that executes operations on the table of one schema, or where they say so on that of the first, one after the
    /// other. Bound are `:operations`, a RAW made by [`pack`] of at most [`MAX_BATCH`] operations; only where there are updates
    /// `:filling`, a text of [`batch_filling_bytes`](sql::batch_filling_bytes) characters; and, OUT, `:times`, a
    /// RAW of at most 4,000 bytes for [`unpack`].
    ///
    /// Each update commits by itself. Each operation's time counts from the end of the one before, so that none of the time
    /// between is lost. What an update writes begins with the operation's number, as SLOB's begins with one: so it differs from
    /// what another update of the batch wrote, and the server cannot save itself a change that changes nothing. An operation that
    /// fails ends the block; what it had changed is rolled back.
    pub fn batch(&self, schema: u32, kinds: Kinds) -> String {
        let either = |of: &dyn Fn(u32) -> String| match schema {
            0 => of(0),
            _ => format!("IF is_hot THEN\n{}\nELSE\n{}\nEND IF;", indented(&of(0), 2), indented(&of(schema), 2)),
        };
        let scan_of = |schema| self.scanning(schema, " INTO touched") + ";";
        let mut branches = format!(
            "IF kind = {} THEN\n{}",
            StatementKind::Read as i16,
            indented(&either(&|schema| self.reads_into_touched(schema)), 2)
        );
        if kinds.scans {
            let scans = indented(&either(&scan_of), 2);
            branches += &format!("\nELSIF kind = {} THEN\n{scans}", StatementKind::Scan as i16);
        }
        if kinds.updates {
            for kind in [StatementKind::UpdateLite, StatementKind::UpdateHeavy] {
                let updates = either(&|schema| self.updates_into_touched(schema, kind));
                let body = format!("{}\n{updates}\ncommitting := elapsed_us;\n{}", self.parts(kind), self.commit());
                branches += &format!("\nELSIF kind = {} THEN\n{}", kind as i16, indented(&body, 2));
            }
        }
        branches += "\nELSE\n  RAISE PROGRAM_ERROR;\nEND IF;";
        let hot = |text: &'static str| if schema == 0 { "" } else { text };
        let updates = |text: String| if kinds.updates { text } else { String::new() };
        format!(
            "DECLARE
  operations RAW(32767) := :operations;
{filling}  began TIMESTAMP(6) WITH TIME ZONE := SYSTIMESTAMP;
  total PLS_INTEGER := NVL(UTL_RAW.LENGTH(operations), 0) / {ENTRY};
  done PLS_INTEGER := 0;
  which PLS_INTEGER;
  kind PLS_INTEGER;
{is_hot}  first_key NUMBER;
  beyond_key NUMBER;
  touched NUMBER;
{loop_variables}{parts}  committing NUMBER;
  ended NUMBER;
  seconds NUMBER;
  times RAW(32767);
  FUNCTION word(place PLS_INTEGER) RETURN PLS_INTEGER IS
  BEGIN
    RETURN UTL_RAW.CAST_TO_BINARY_INTEGER(UTL_RAW.SUBSTR(operations, 1 + {WORD} * ({OPERATION_WORDS} * done + place), {WORD}));
  END;
  FUNCTION elapsed_us RETURN NUMBER IS
    passed INTERVAL DAY(9) TO SECOND(6) := SYSTIMESTAMP - began;
  BEGIN
    RETURN ((EXTRACT(DAY FROM passed) * 24 + EXTRACT(HOUR FROM passed)) * 60 + EXTRACT(MINUTE FROM passed)) * 60000000
      + EXTRACT(SECOND FROM passed) * {US_PER_S};
  END;
BEGIN
  WHILE done < total LOOP
    which := word(0);
    kind := TRUNC(which / 2);
{set_hot}    first_key := word(2);
    first_key := first_key * {KEY_PART} + word(3);
    beyond_key := first_key + word(1);
    committing := NULL;
{branches}
    ended := elapsed_us;
    seconds := FLOOR(ended / {US_PER_S});
    times := UTL_RAW.CONCAT(
      times,
      UTL_RAW.CAST_FROM_BINARY_INTEGER(seconds),
      UTL_RAW.CAST_FROM_BINARY_INTEGER(ended - seconds * {US_PER_S}),
      UTL_RAW.CAST_FROM_BINARY_INTEGER(NVL(GREATEST(LEAST(ended - committing, {most}), 0), -1)),
      UTL_RAW.CAST_FROM_BINARY_INTEGER(LEAST(touched, {most})));
    done := done + 1;
  END LOOP;
  :times := times;
{undo}END;",
            filling = updates(format!("  filling VARCHAR2({MAX_TEXT_BYTES}) := :filling;\n")),
            is_hot = hot("  is_hot BOOLEAN;\n"),
            loop_variables = self.loop_variables(),
            parts = updates(self.parts_declaration() + "  at_char PLS_INTEGER;\n"),
            set_hot = hot("    is_hot := MOD(which, 2) = 1;\n"),
            branches = indented(&branches, 4),
            most = i32::MAX,
            undo = updates("EXCEPTION\n  WHEN OTHERS THEN\n    ROLLBACK;\n    RAISE;\n".to_owned()),
        )
    }

    /// PL/SQL that cuts what an update writes out of the filling.
    fn parts(&self, kind: StatementKind) -> String {
        let bytes = self.column_bytes();
        let count = changed(kind).count();
        format!(
            "at_char := 1 + MOD(done, {FILLING_PLACES}) * {FILLING_STEP};
parts(1) := LPAD(TO_CHAR(done), 8, '0') || SUBSTR(filling, at_char, {});
FOR place IN 2 .. {count} LOOP
  parts(place) := SUBSTR(filling, at_char + (place - 1) * {bytes}, {bytes});
END LOOP;",
            bytes - 8
        )
    }
}

/// Puts operations into `packed`, in place of what it held. Those that are not on the schema `home` must be on the first.
pub fn pack(sql: &Sql, operations: &[SlobOperation], home: u32, packed: &mut Vec<u8>) {
    packed.clear();
    for operation in operations {
        let is_hot = operation.schema != home;
        let which = 2 * StatementKind::of(operation) as u32 + u32::from(is_hot);
        let first = sql.custid(operation.first_key);
        for word in [which, operation.keys, (first / KEY_PART) as u32, (first % KEY_PART) as u32] {
            packed.extend_from_slice(&word.to_be_bytes());
        }
    }
}

/// Adds what a block reported to the times of the blocks before it, of which it is the continuation: what passed between two
/// blocks is no operation's. `false` if the bytes are not of the block's making; then nothing was added.
pub fn unpack(packed: &[u8], times: &mut ServerTimes) -> bool {
    let before_us = times.operations.last().map_or(times.began_us, |last| last.ended_us);
    let known = times.operations.len();
    let (entries, rest) = packed.as_chunks::<{ WORD * TIME_WORDS }>();
    let mut is_whole = rest.is_empty();
    for entry in entries {
        let (words, _) = entry.as_chunks::<WORD>();
        let [seconds, us, commit_us, touched] = [0, 1, 2, 3].map(|place| i64::from(i32::from_be_bytes(words[place])));
        is_whole &= (0..US_PER_S).contains(&us) && commit_us >= -1 && touched >= 0;
        let ended_us = before_us + seconds * US_PER_S + us;
        let committing_us = (commit_us >= 0).then_some(ended_us - commit_us);
        times.operations.push(TimedOperation { committing_us, ended_us, touched: touched.unsigned_abs() });
    }
    if !is_whole {
        times.operations.truncate(known);
    }
    is_whole
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::names::{Layout, Reads, printable};
    use super::super::placeholders;
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
        assert_eq!(
            Kinds::of(&[of(OperationKind::Read), of(OperationKind::Scan)]),
            Kinds { updates: false, scans: true }
        );
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
}
