//! What is asked of a database, against what a production did.

use super::observed::{Observed, Verdict, judge};
use super::run::MAX_TRIALS;
use super::slob::*;
use model::record::{LikeMoment, Step, Work, WorkFigure};
use model::units::Bytes;
use model::workload::{OperationKind, SlobPart};
use targets::database::RedoSizes;

const REDO: RedoSizes = RedoSizes { lite_bytes: 280, heavy_bytes: 2_456, commit_bytes: 16 };
const FACTS: SlobFacts = SlobFacts {
    schemas: 2,
    scale_blocks: 500_000,
    scan_blocks: 128,
    block_bytes: 8_192,
    cache: Some(Bytes(100_000 * 8_192)),
    has_buffers: true,
    scans_past_cache: true,
    redo: Some(REDO),
    max_sessions: 1_024,
    observed: None,
};

/// Reads of scans are counted in requests, and there are none.
const NO_SCANS: Option<f64> = Some(0.0);

fn work(figures: &[(WorkFigure, f64)]) -> Work {
    figures.iter().copied().collect()
}

/// What a production of one database reports.
fn production() -> Work {
    work(&[
        (WorkFigure::LogicalReads, 60_000.0),
        (WorkFigure::Reads, 4_000.0),
        (WorkFigure::ReadBytes, 4_000.0 * 8_192.0),
        (WorkFigure::Writes, 1_000.0),
        (WorkFigure::Commits, 100.0),
        (WorkFigure::RedoBytes, 1e6),
    ])
}

fn gap(like: &SlobLike, figure: WorkFigure) -> Option<&str> {
    like.aspects.iter().find(|aspect| aspect.figure == figure)?.gap.as_deref()
}

#[test]
fn what_a_production_did_is_asked_for_in_every_figure() {
    let like = slob(&production(), &FACTS);
    for (figure, value) in production() {
        assert!((like.asked[&figure] - value).abs() < 1e-6 * value, "{figure:?}: {} of {value}", like.asked[&figure]);
        assert_eq!(gap(&like, figure), None, "{figure:?}");
    }
    let [reads, updates, hot] = &like.shape.parts[..] else { panic!("{:?}", like.shape.parts) };
    assert_eq!((reads.kind, reads.blocks, reads.from_block), (OperationKind::Read, 1.0, HOT_SET));
    assert_eq!((hot.blocks, hot.from_block, hot.region_blocks), (128.0, 0, HOT_SET));
    // One cold block in ten is cached. Of the blocks that are changed a few are in the cache and changed already.
    let touches = reads.per_s + updates.per_s * updates.blocks;
    assert!((touches * 0.9 - 4_000.0).abs() < 2.0, "{touches}");
    assert!((updates.per_s * updates.blocks - 1_000.0 / (1.0 - 0.25 * 0.1)).abs() < 1.0, "{updates:?}");
    assert!((touches + hot.per_s * hot.blocks - 60_000.0).abs() < 1e-6);
    // 1,025 changes of 280 bytes are too little for 1 MB: some change whole rows.
    let change = (1e6 - 100.0 * 16.0) / (updates.per_s * updates.blocks);
    assert!((updates.heavy_share - (change - 280.0) / 2_176.0).abs() < 1e-9, "{updates:?}");
}

#[test]
fn redo_beyond_what_is_written_comes_from_hot_blocks() {
    let mut asked = production();
    asked.insert(WorkFigure::RedoBytes, 10e6);
    let like = slob(&asked, &FACTS);
    assert!((like.asked[&WorkFigure::RedoBytes] - 10e6).abs() < 1.0);
    let hot = like.shape.parts.iter().find(|part| part.kind == OperationKind::Update && part.from_block == 0).unwrap();
    assert_eq!((hot.per_s, hot.heavy_share), (50.0, 1.0));
    assert_eq!(like.asked[&WorkFigure::Commits], 100.0);
    asked.insert(WorkFigure::RedoBytes, 1e9);
    let like = slob(&asked, &FACTS);
    assert!(gap(&like, WorkFigure::RedoBytes).unwrap().contains("no more hot blocks than there are"));
    assert!(like.asked[&WorkFigure::RedoBytes] < 1e9);
}

#[test]
fn many_commits_of_few_writes_change_hot_blocks() {
    let like =
        slob(&work(&[(WorkFigure::Reads, 500.0), (WorkFigure::Writes, 40.0), (WorkFigure::Commits, 300.0)]), &FACTS);
    let updates: Vec<_> = like.shape.parts.iter().filter(|part| part.kind == OperationKind::Update).collect();
    let [cold, hot] = updates[..] else { panic!("{updates:?}") };
    assert!((cold.per_s - 40.0).abs() < 0.5 && cold.blocks == 1.0 && hot.region_blocks == HOT_CHANGED, "{updates:?}");
    assert!((cold.per_s + hot.per_s - 300.0).abs() < 1e-9);
    assert!(!like.asked.contains_key(&WorkFigure::RedoBytes), "it is not reported");
}

#[test]
fn what_cannot_be_asked_for_is_said_and_not_asked_for() {
    let mut asked = production();
    asked.insert(WorkFigure::Writes, 9_000.0);
    let like = slob(&asked, &FACTS);
    assert!((like.asked[&WorkFigure::Writes] - 4_000.0).abs() < 1e-6, "{:?}", like.asked);
    assert!(gap(&like, WorkFigure::Writes).unwrap().starts_with("4,000 of 9,000"));
    asked.remove(&WorkFigure::Commits);
    let like = slob(&asked, &FACTS);
    assert!(gap(&like, WorkFigure::Writes).unwrap().contains("commits are not reported"));
    assert_eq!(like.asked[&WorkFigure::Writes], 0.0);
    let blind = SlobFacts { cache: None, has_buffers: false, redo: None, ..FACTS };
    let like = slob(&production(), &blind);
    assert!(!like.asked.contains_key(&WorkFigure::LogicalReads) && !like.asked.contains_key(&WorkFigure::RedoBytes));
    assert_eq!(like.shape.parts.len(), 2, "{:?}", like.shape.parts);
}

#[test]
fn what_was_seen_of_a_load_corrects_what_is_asked_for() {
    let like = slob(&production(), &FACTS);
    let mut step = Step::new(0, "x1");
    step.window.duration_ns = 10_000_000_000;
    step.counters.operations = Some((like.shape.per_s() * 10.0) as u64);
    // A quarter of the cold touches were no reads, and 200 writes/s came from elsewhere.
    let cold = 4_000.0 / 0.9;
    step.counters.physical_reads = Some((cold * 0.75 * 10.0) as u64);
    let changed = 1_000.0 / 0.975;
    step.counters.physical_writes = Some(((changed * (1.0 - 0.25 * changed / (cold * 0.75)) + 200.0) * 10.0) as u64);
    let observed = Observed::of(&step, &like.shape, NO_SCANS, None).unwrap();
    assert!((observed.hits.unwrap() - 0.25).abs() < 1e-3, "{observed:?}");
    // No hot blocks are changed, so what was written besides came of the cold ones too.
    let (changes, written) = (changed * (1.0 - 0.25 * changed / (cold * 0.75)), observed.writes.unwrap());
    assert!((written.per_expected - (changes + 200.0) / changes).abs() < 1e-3 && written.other == 0.0, "{observed:?}");
    let corrected = slob(&production(), &SlobFacts { observed: Some(observed), ..FACTS });
    let [reads, updates, _] = &corrected.shape.parts[..] else { panic!("{corrected:?}") };
    let touches = reads.per_s + updates.per_s * updates.blocks;
    let wanted = 1_000.0 / written.per_expected;
    let changes = updates.per_s * updates.blocks * (1.0 - 0.25 * wanted / 4_000.0);
    assert!((touches * 0.75 - 4_000.0).abs() < 5.0 && (changes - wanted).abs() < 2.0, "{touches} {changes}");
    for (figure, value) in production() {
        assert!((corrected.asked[&figure] - value).abs() < 1e-6 * value, "{figure:?}");
    }
    assert_eq!(observed.redo_bytes_per_change, None, "the step counts none");
    // A target that counts no reads has the estimate for them, and what it does count.
    step.counters.physical_reads = None;
    let observed = Observed::of(&step, &like.shape, NO_SCANS, None).unwrap();
    assert!(observed.hits.is_none() && observed.writes.is_some(), "{observed:?}");
    step.counters.physical_writes = None;
    assert_eq!(Observed::of(&step, &like.shape, NO_SCANS, None), None);
}

/// What a step of so many seconds counts that does what `like` has: a share of the touches of cold blocks is read, each change is written
/// and makes so many bytes of redo.
fn counted(like: &SlobLike, seconds: f64, (reads, writes, redo): (f64, f64, f64)) -> Step {
    let touches = |wanted: &dyn Fn(&SlobPart) -> bool| -> f64 {
        like.shape.parts.iter().filter(|part| wanted(part)).map(|part| part.per_s * part.blocks).sum()
    };
    let is_update = |part: &SlobPart| part.kind == OperationKind::Update;
    let count = |per_s: f64| Some((per_s * seconds).round() as u64);
    let mut step = Step::new(0, "trial");
    step.window.duration_ns = (seconds * 1e9) as u64;
    step.load.rate_operations_per_s = Some(like.shape.per_s());
    step.counters.operations = count(like.shape.per_s());
    step.counters.physical_reads = count(touches(&|part| part.from_block > 0) * reads);
    step.counters.physical_writes = count(touches(&|part| is_update(part) && part.from_block > 0) * writes);
    step.counters.redo_bytes = count(touches(&is_update) * redo);
    step
}

fn judged(step: &Step, like: &SlobLike) -> Verdict {
    let (name, words) = ("peak".to_owned(), String::new());
    let moment = LikeMoment { name, words, work: production(), asked: like.asked.clone() };
    judge(step, &like.shape, &moment, true)
}

#[test]
fn redo_that_nobody_knew_before_is_asked_for_as_a_trial_shows_it() {
    let unknown = SlobFacts { redo: None, ..FACTS };
    let like = slob(&production(), &unknown);
    assert!(gap(&like, WorkFigure::RedoBytes).unwrap().contains("a trial shows it"), "{like:?}");
    for (bytes, why) in [(400.0, "no extra blocks are changed"), (2_000.0, "more redo than production")] {
        let seen = counted(&like, 100.0, (0.9, 0.975, bytes));
        assert_eq!(judged(&seen, &like), Verdict::NotMet, "nothing was requested yet");
        let observed = Observed::of(&seen, &like.shape, NO_SCANS, None).unwrap();
        let corrected = slob(&production(), &SlobFacts { observed: Some(observed), ..unknown });
        let (asked, expected) = (corrected.asked[&WorkFigure::RedoBytes], 1_000.0 / 0.975 * bytes);
        assert!((asked - expected).abs() < 0.01 * expected, "{bytes}: {asked} of {expected}");
        assert!(gap(&corrected, WorkFigure::RedoBytes).is_some_and(|gap| gap.contains(why)), "{corrected:?}");
        let again = |seen| judged(&counted(&corrected, 100.0, seen), &corrected);
        assert_eq!(again((0.9, 0.975, bytes)), Verdict::Met, "{corrected:?}");
        assert_eq!(again((0.9, 0.975, bytes * 1.2)), Verdict::NotMet);
        assert_eq!(again((0.8, 0.975, bytes)), Verdict::NotMet);
        assert_eq!(again((0.9, 0.7, bytes)), Verdict::NotMet);
    }
}

#[test]
fn a_trial_that_did_little_or_not_all_that_fell_due_has_not_met_what_is_asked_for() {
    let like = slob(&production(), &FACTS);
    let redo = 1e6 / (1_000.0 / 0.975);
    let seen = counted(&like, 20.0, (0.9, 0.975, redo));
    assert_eq!(judged(&seen, &like), Verdict::Met);
    for few in [0, 5] {
        let mut step = seen.clone();
        step.counters.physical_reads = Some(few);
        assert_eq!(judged(&step, &like), Verdict::NotMet, "{few} reads");
        let mut step = seen.clone();
        step.counters.physical_writes = Some(few);
        assert_eq!(judged(&step, &like), Verdict::NotMet, "{few} writes");
    }
    let mut step = seen.clone();
    step.counters.logical_reads = Some(4 * 60_000 * 20);
    assert_eq!(judged(&step, &like), Verdict::NotMet, "logical reads");
    // Half of what fell due, in the right proportions.
    let mut step = counted(&like, 10.0, (0.9, 0.975, redo));
    step.window.duration_ns *= 2;
    assert_eq!(judged(&step, &like), Verdict::NotCarried);
    assert!(Observed::of(&Step::new(0, "trial"), &like.shape, NO_SCANS, None).is_none());
}

#[test]
fn what_others_write_and_a_few_things_more_or_less_ask_for_no_other_trial() {
    let figures = work(&[(WorkFigure::Reads, 500.0), (WorkFigure::Writes, 0.0), (WorkFigure::Commits, 0.0)]);
    let (name, words) = ("peak".to_owned(), String::new());
    let like = slob(&figures, &FACTS);
    let moment = LikeMoment { name, words, work: figures, asked: like.asked.clone() };
    let mut seen = counted(&like, 20.0, (0.9, 0.0, 0.0));
    let judged = |seen: &Step| judge(seen, &like.shape, &moment, true);
    seen.counters.physical_writes = Some(3_000);
    assert_eq!(judged(&seen), Verdict::Met, "a server's own writes");
    seen.counters.physical_reads = Some(500);
    assert_eq!(judged(&seen), Verdict::NotMet);
    let figures = work(&[(WorkFigure::Reads, 500.0), (WorkFigure::Writes, 0.1), (WorkFigure::Commits, 0.1)]);
    let like = slob(&figures, &FACTS);
    let moment = LikeMoment { work: figures, asked: like.asked.clone(), ..moment.clone() };
    let mut seen = counted(&like, 20.0, (0.9, 1.0, 0.0));
    for (writes, verdict) in [(0, Verdict::Met), (8, Verdict::Met), (80, Verdict::NotMet)] {
        seen.counters.physical_writes = Some(writes);
        assert_eq!(judge(&seen, &like.shape, &moment, true), verdict, "{writes} writes where 2 are asked for");
    }
}

#[test]
fn writes_that_come_later_do_not_multiply_the_changes() {
    let mut asked = production();
    for redo in [1e6, 10e6] {
        asked.insert(WorkFigure::RedoBytes, redo);
        let mut facts = FACTS;
        let planned = slob(&asked, &facts);
        for _ in 0..5 {
            let like = slob(&asked, &facts);
            let seen = counted(&like, 20.0, (0.9, 0.0, 500.0));
            facts.observed = Observed::of(&seen, &like.shape, NO_SCANS, facts.observed.as_ref());
        }
        let changed = |like: &SlobLike| -> f64 {
            let cold = |part: &&SlobPart| part.kind == OperationKind::Update && part.from_block > 0;
            like.shape.parts.iter().filter(cold).map(|part| part.per_s * part.blocks).sum()
        };
        let like = slob(&asked, &facts);
        assert!(changed(&like) <= 2.2 * changed(&planned), "{redo}: {} of {}", changed(&like), changed(&planned));
        assert!(like.asked[&WorkFigure::Writes] >= 0.0, "{like:?}");
    }
}

#[test]
fn what_scans_of_a_server_read_is_not_taken_for_reads_of_single_blocks() {
    let mut asked = production();
    asked.insert(WorkFigure::ReadBytes, 200e6);
    let server = SlobFacts { scans_past_cache: false, scan_blocks: 600_000, ..FACTS };
    let like = slob(&asked, &server);
    assert!(like.shape.parts.iter().any(|part| part.kind == OperationKind::Scan), "{like:?}");
    let mut seen = counted(&like, 20.0, (0.9, 0.975, 976.0));
    // Blocks, where requests of 1 MiB were asked for.
    seen.counters.physical_reads = Some(20 * 24_000);
    let observed = Observed::of(&seen, &like.shape, None, None).unwrap();
    assert_eq!((observed.hits, observed.logical_per_touch), (None, None));
    let corrected = slob(&asked, &SlobFacts { observed: Some(observed), ..server });
    let reads = |like: &SlobLike| like.shape.parts[0].per_s;
    assert!((reads(&corrected) - reads(&like)).abs() < 0.01 * reads(&like), "{corrected:?}");
}

#[test]
fn touches_that_make_more_than_one_read_and_logical_read_are_asked_for_as_seen() {
    let like = slob(&production(), &FACTS);
    let mut step = Step::new(0, "trial");
    step.window.duration_ns = 10_000_000_000;
    step.counters.operations = Some((like.shape.per_s() * 10.0) as u64);
    let touches: f64 = like.shape.parts.iter().map(|part| part.per_s * part.blocks).sum();
    let cold: f64 =
        like.shape.parts.iter().filter(|part| part.from_block > 0).map(|part| part.per_s * part.blocks).sum();
    step.counters.physical_reads = Some((cold * 1.5 * 10.0) as u64);
    step.counters.logical_reads = Some((touches * 4.0 * 10.0) as u64);
    let observed = Observed::of(&step, &like.shape, NO_SCANS, None).unwrap();
    assert!((observed.hits.unwrap() + 0.5).abs() < 1e-3 && observed.writes.is_none(), "{observed:?}");
    let corrected = slob(&production(), &SlobFacts { observed: Some(observed), ..FACTS });
    let touches_of = |wanted: fn(&SlobPart) -> bool| -> f64 {
        corrected.shape.parts.iter().filter(|part| wanted(part)).map(|part| part.per_s * part.blocks).sum()
    };
    assert!((touches_of(|part| part.from_block > 0) * 1.5 - 4_000.0).abs() < 5.0, "{corrected:?}");
    assert!((touches_of(|_| true) * 4.0 - 60_000.0).abs() < 60.0, "{corrected:?}");
    assert!((corrected.asked[&WorkFigure::LogicalReads] - 60_000.0).abs() < 1.0);
    let words = corrected.aspects[0].by.clone().unwrap_or_default() + &format!("{:?}", corrected.aspects);
    assert!(words.contains("make 1.50 reads"), "{words}");
}

#[test]
fn trials_on_hot_blocks_show_too_much_and_too_little_in_turn() {
    let mut asked = production();
    asked.insert(WorkFigure::RedoBytes, 10e6);
    // What a server writes: 0.8 of what cold changes make once more, and 50/s of hot blocks.
    let mut facts = FACTS;
    let mut written = 0.0;
    for _ in 0..=MAX_TRIALS {
        let like = slob(&asked, &facts);
        let cold = like.shape.parts.iter().filter(|part| part.from_block > 0);
        let (mut changed, mut read) = (0.0, 0.0);
        for part in cold {
            *if part.kind == OperationKind::Update { &mut changed } else { &mut read } += part.per_s * part.blocks;
        }
        written = changed * 1.8 + 50.0;
        let mut step = Step::new(0, "trial");
        step.window.duration_ns = 10_000_000_000;
        step.counters.operations = Some((like.shape.per_s() * 10.0) as u64);
        step.counters.physical_reads = Some(((read + changed) * 10.0) as u64);
        step.counters.physical_writes = Some((written * 10.0) as u64);
        facts.observed = Observed::of(&step, &like.shape, NO_SCANS, facts.observed.as_ref());
    }
    assert!((written - 1_000.0).abs() < 50.0, "the step after the trials writes what is asked for: {written}");
}

#[test]
fn scans_that_a_cache_would_answer_are_not_asked_for() {
    let asked = work(&[(WorkFigure::Reads, 8_047.0), (WorkFigure::LargeReads, 400.0), (WorkFigure::ReadBytes, 525e6)]);
    let server = SlobFacts { scans_past_cache: false, ..FACTS };
    let like = slob(&asked, &server);
    assert!(like.shape.parts.iter().all(|part| part.kind != OperationKind::Scan), "{like:?}");
    assert!(gap(&like, WorkFigure::LargeReads).unwrap().contains("larger SCAN_TABLE_SZ"), "{like:?}");
    let like = slob(&asked, &SlobFacts { scan_blocks: 60_000, ..server });
    assert!(like.shape.parts.iter().any(|part| part.kind == OperationKind::Scan), "{like:?}");
}

#[test]
fn large_reads_are_scans_and_without_a_table_they_are_missed() {
    let asked = work(&[
        (WorkFigure::Reads, 2_000.0),
        (WorkFigure::LargeReads, 400.0),
        (WorkFigure::ReadBytes, 1_600.0 * 8_192.0 + 400.0 * 262_144.0),
    ]);
    let like = slob(&asked, &FACTS);
    assert!((like.asked[&WorkFigure::Reads] - 2_000.0).abs() < 1.0, "{:?}", like.asked);
    assert!((like.asked[&WorkFigure::ReadBytes] / asked[&WorkFigure::ReadBytes] - 1.0).abs() < 1e-3);
    assert!(gap(&like, WorkFigure::LargeReads).unwrap().contains("large instead of 20.0 %"), "{like:?}");
    let like = slob(&asked, &SlobFacts { scan_blocks: 0, ..FACTS });
    assert!(gap(&like, WorkFigure::LargeReads).unwrap().contains("no scan table"));
    assert!(like.asked[&WorkFigure::Reads] < 1_950.0);
}

#[test]
fn no_figures_make_a_plan_fail() {
    let zero = |figure| (figure, 0.0);
    let huge = |figure| (figure, 1e12);
    let tiny = SlobFacts { schemas: 0, scale_blocks: 0, block_bytes: 0, cache: Some(Bytes(u64::MAX)), ..FACTS };
    for asked in [Work::new(), WorkFigure::ALL.map(zero).into(), WorkFigure::ALL.map(huge).into()] {
        for facts in [FACTS, tiny] {
            let like = slob(&asked, &facts);
            assert!(like.shape.parts.iter().all(|part| part.per_s.is_finite() && part.per_s > 0.0), "{like:?}");
            assert!(like.asked.values().all(|value| value.is_finite()), "{like:?}");
        }
    }
}
