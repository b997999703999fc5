//! What reports open with.

use model::record::Load;
use proptest::prelude::*;

use super::*;
use crate::{
    BurstFound, BytesDisagree, CacheHeld, ClientSaturated, Figures, LatencyTarget, NotCompleted, NotEnded, NotSteady,
    OperationErrors, PageCacheUse, Severity, Stalled, SteadyState, Tiers, analyse, analyse_asked,
};
use crate::{Excursion, Mode, Reached, traffic::Counted};
use model::record::sample::{self, requests, servers};
use model::record::{Clock, Imported, JobsAtOnce, Outcome, Step};
use model::units::{Bytes, group_thousands};

/// More than this nobody repeats.
const LONGEST: usize = 200;
/// And this where yes or no, what is judged, its limit and a doubt are in it.
const LONGEST_JUDGED: usize = 280;

fn samples() -> Vec<(&'static str, Run)> {
    vec![
        ("a sweep of the engine", sample::sweep(60)),
        ("updates on the engine", sample::updates(30)),
        ("a sweep that was ended early", sample::interrupted()),
        ("an import", sample::imported()),
        ("a sweep of raw storage", requests::sweep()),
        ("rates on raw storage", requests::open_loop()),
        ("reads and writes on raw storage", requests::mixed()),
        ("a private cluster", servers::private_cluster()),
        ("a remote server", servers::remote()),
        ("two nodes", servers::two_nodes()),
        ("tables that changed their shape", servers::changed_shape()),
    ]
}

fn sentence_of(run: &Run) -> String {
    Opening::of(run, &analyse_asked(run, None)).sentence()
}

fn disturbed(step: usize, disturb: impl Fn(&mut Step)) -> String {
    let mut run = sample::sweep(60);
    disturb(&mut run.steps[step]);
    sentence_of(&run)
}

/// One step of a sweep of raw storage.
fn alone(at: usize) -> Run {
    let mut run = requests::sweep();
    run.steps = vec![run.steps.swap_remove(at)];
    run
}

fn mode(share: f64, us: u64) -> Mode {
    Mode { share, median_ns: us * 1_000, p10_ns: us * 900, p90_ns: us * 1_100 }
}

fn tiers(cause: Cause, modes: Vec<Mode>) -> Finding {
    Finding::Tiers(Tiers { series: String::new(), step: "s1_t1".into(), load: "1 session".into(), modes, cause })
}

fn burst(step: &str, written_bytes: Option<f64>) -> Finding {
    Finding::Burst(BurstFound {
        steps: vec![step.to_owned()],
        counted: Counted::Requests,
        burst_per_s: 3_000.0,
        base_per_s: 300.0,
        after: Nanos::seconds(1_200),
        base_seen: Nanos::seconds(2_400),
        credit: 3_240_000.0,
        written_bytes,
        like: None,
    })
}

fn steady(reached: Reached) -> Finding {
    Finding::Steady(SteadyState {
        on: vec!["d4".to_owned()],
        round: Nanos::seconds(60),
        reached,
        drift_per_hour: None,
        outliers: (0, 600),
        longest_pause: None,
        words: Vocabulary::Sessions,
    })
}

#[test]
fn every_sample_opens_with_a_sentence_that_can_be_repeated() {
    let lines = samples().into_iter().map(|(name, run)| format!("{name}: {}", sentence_of(&run)));
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
}

#[test]
fn no_opening_of_a_sample_is_long() {
    for (name, run) in samples() {
        for limit in [None, Some("p99=2ms"), Some("p99=1us"), Some("p99.9=1m")] {
            let target: Option<LatencyTarget> = limit.map(|text| text.parse().unwrap());
            let sentence = Opening::of(&run, &analyse_asked(&run, target.as_ref())).sentence();
            let longest = if limit.is_some() { LONGEST_JUDGED } else { LONGEST };
            assert!(sentence.len() <= longest, "{name}, {limit:?}, {}: {sentence}", sentence.len());
            assert!(sentence.ends_with('.') && !sentence.contains(".."), "{name}: {sentence}");
        }
    }
}

#[test]
fn a_single_step_is_reported_as_it_was_seen_and_as_no_load_line() {
    let sentence = sentence_of(&alone(1));
    assert!(sentence.starts_with("Did 4,800 requests/s (39 MB/s) at p99 1.93 ms with 4 outstanding"), "{sentence}");
    assert!(!sentence.contains("Sustains") && !sentence.contains("limit"), "{sentence}");
}

#[test]
fn a_single_step_beyond_an_asked_limit_says_so() {
    let run = alone(3);
    let target: LatencyTarget = "p99=5ms".parse().unwrap();
    let sentence = Opening::of(&run, &analyse_asked(&run, Some(&target))).sentence();
    assert!(sentence.contains(", beyond 5.00 ms, at "), "{sentence}");
}

#[test]
fn where_all_steps_meet_the_target_and_the_rate_still_grows_no_limit_is_named() {
    let mut run = sample::sweep(60);
    run.steps.truncate(3);
    let sentence = sentence_of(&run);
    assert!(sentence.starts_with("Sustains at least 19,404 reads/s at p99 within 5.00 ms"), "{sentence}");
    assert!(sentence.contains("no limit was reached") && !sentence.contains("stopped"), "{sentence}");
}

#[test]
fn where_no_step_meets_the_target_less_than_the_least_is_claimed() {
    let run = sample::sweep(60);
    let sentence = Opening::of(&run, &analyse(&run, &"p99=1us".parse().unwrap())).sentence();
    assert!(sentence.starts_with("Sustains less than 5,040 reads/s at p99 within 1.00 us: it is"), "{sentence}");
    assert!(sentence.ends_with("with 1 session already."), "{sentence}");
}

#[test]
fn an_engine_whose_reads_wait_before_the_device_says_so() {
    let mut run = sample::sweep(60);
    let target: LatencyTarget = "p99=1us".parse().unwrap();
    let sentence = |run: &Run| Opening::of(run, &analyse(run, &target)).sentence();
    let held = "100.0 % of waiting time went to reads held before the device, by a limiter";
    assert!(!sentence(&run).contains("held before"), "nine tenths of them were in the device");
    let device = &mut run.steps[0].devices[0];
    (device.weighted_ns, device.read_time_ns) = (0, 0);
    assert!(sentence(&run).contains(held), "{}", sentence(&run));
    run.target.facts.files.direct_io = Some(false);
    assert!(!sentence(&run).contains("held before"), "a page cache is between them");
}

#[test]
fn without_a_ceiling_latency_is_what_stopped_the_load() {
    let run = requests::sweep();
    let mut findings = analyse(&run, &LatencyTarget::default());
    findings.retain(|finding| !matches!(finding, Finding::Ceiling(_)));
    let sentence = Opening::of(&run, &findings).sentence();
    let there = "there requests spent 94.9 % of their time in the device and its queue.";
    assert!(sentence.ends_with(&format!("; stopped by latency, 7.34 ms with 16 outstanding; {there}")), "{sentence}");
}

#[test]
fn what_ended_a_search_over_rates_is_named() {
    let run = requests::open_loop();
    let with = |why, passes: bool| {
        let mut findings = analyse(&run, &LatencyTarget::default());
        findings.retain(|finding| matches!(finding, Finding::OpenLoadLine(_)));
        let [Finding::OpenLoadLine(line)] = findings.as_mut_slice() else { panic!("{findings:?}") };
        line.failing.as_mut().unwrap().why = why;
        line.passing = line.passing.take().filter(|_| passes);
        Opening::of(&run, &findings).sentence()
    };
    let carries = "Sustains 4,000 but not 8,000 requests/s at p99 within 5.00 ms; ";
    for (why, words) in [
        (Why::FellBehind, "a queue grew there."),
        (Why::Errors, "too many failed there."),
        (Why::NotSteady, "that was not steady."),
        (Why::Latency, "stopped by latency, 5.27 s."),
    ] {
        assert_eq!(with(why, true), format!("{carries}{words}"));
    }
    assert_eq!(
        with(Why::GeneratorBound, true),
        "Sustains at least 4,000 requests/s at p99 within 5.00 ms; stopped by the load generator, not by the target."
    );
    assert_eq!(
        with(Why::Latency, false),
        "Sustains less than 8,000 requests/s at p99 within 5.00 ms: it is 5.27 s already."
    );
}

#[test]
fn a_single_rate_is_reported_with_what_was_asked_for() {
    let mut run = requests::open_loop();
    run.steps.truncate(1);
    let target: LatencyTarget = "p99=900us".parse().unwrap();
    let sentence = Opening::of(&run, &analyse_asked(&run, Some(&target))).sentence();
    let wanted = "No: p99 of response time is 1.21 ms, beyond 900 us, at 1,000 requests/s (8.2 MB/s) with 1,000 requests/s requested.";
    assert_eq!(sentence, wanted);
    let wanted = "Did 1,000 requests/s (8.2 MB/s) at p99 1.21 ms with 1,000 requests/s requested.";
    assert_eq!(sentence_of(&run), wanted);
}

#[test]
fn a_target_that_only_the_largest_load_meets_is_no_clear_answer() {
    let run = requests::sweep();
    let mut findings = analyse(&run, &LatencyTarget::default());
    let [Finding::StepLine(StepLine::Between { series, target, passing, .. }), ..] = findings.as_slice() else {
        panic!("{findings:?}")
    };
    let (series, target, passing) = (series.clone(), target.clone(), passing.clone());
    findings[0] = Finding::StepLine(StepLine::OnlyAbove { series, target, passing, below: vec!["d1".into()] });
    assert_eq!(
        Opening::of(&run, &findings).sentence(),
        "The sustained load is not clear: 4,800 requests/s (39 MB/s) with 4 outstanding ran at p99 within 5.00 ms, \
         smaller loads did not."
    );
}

#[test]
fn a_load_line_above_a_missed_step_says_so() {
    let run = requests::sweep();
    let mut findings = analyse(&run, &LatencyTarget::default());
    let [Finding::StepLine(StepLine::Between { failing, .. }), ..] = findings.as_mut_slice() else {
        panic!("{findings:?}")
    };
    failing.below = vec!["d1".into()];
    let sentence = Opening::of(&run, &findings).sentence();
    assert!(sentence.contains("with 4 outstanding, although d1 with less load did not; stopped by"), "{sentence}");
}

#[test]
fn caps_reported_over_request_sizes_are_both_named() {
    let run = requests::sweep();
    let mut findings = analyse(&run, &LatencyTarget::default());
    findings.retain(|finding| !matches!(finding, Finding::Ceiling(_)));
    let (requests_per_s, bytes_per_s) = (Some(5_000.0), Some(2e8));
    let steps = vec!["d4".to_owned()];
    findings.push(Finding::SizeLimits(SizeLimits { steps, sizes: vec![4_096, 8_192], requests_per_s, bytes_per_s }));
    let sentence = Opening::of(&run, &findings).sentence();
    let words = "; stopped by an IOPS limit at 5,000 requests/s and a throughput limit at 200 MB/s.";
    assert!(sentence.ends_with(words), "{sentence}");
}

#[test]
fn a_calibration_opens_with_both_of_its_answers() {
    let mut run = requests::sweep();
    run.load = Load::Calibrate(requests::calibration("mean=10ms"));
    for step in &mut run.steps {
        step.level = Some(requests::reading("8K", step.load.slots()));
    }
    let stopped = "; stopped by a limit at 5,000 requests/s (41 MB/s), as published for Azure P30.";
    assert_eq!(sentence_of(&run), format!("Sustains 5,000 reads/s of 8 KiB at mean latency within 10.0 ms{stopped}"));
    let mut large = run.steps.pop().unwrap();
    large.level = Some(requests::reading("1M", large.load.slots()));
    run.steps.push(large);
    let sentence = sentence_of(&run);
    let answer = " at mean latency within 10.0 ms, and at least 41 MB/s in reads of 1 MiB; stopped by a limit at 5,000";
    assert!(sentence.contains(answer), "{sentence}");
}

#[test]
fn a_cap_far_above_the_load_line_is_not_what_stopped_it() {
    let run = sample::sweep(60);
    let opening = Opening::of(&run, &analyse(&run, &"p99=1100us".parse().unwrap()));
    assert_eq!(
        opening.sentence(),
        "Sustains 9,954 reads/s at p99 within 1.10 ms with 2 sessions; stopped by latency, 1.11 ms with 4 sessions."
    );
}

#[test]
fn each_kind_of_limit_has_its_words() {
    let run = requests::sweep();
    let findings = analyse(&run, &LatencyTarget::default());
    let with = |limit| {
        let mut findings = findings.clone();
        for finding in &mut findings {
            if let Finding::Ceiling(ceiling) = finding {
                ceiling.limit = limit;
                ceiling.like = None;
            }
        }
        Opening::of(&run, &findings).sentence()
    };
    for (limit, words) in [
        (Limit::Requests, "; stopped by an IOPS limit at 5,000 requests/s."),
        (Limit::Throughput, "; stopped by a throughput limit at 41 MB/s."),
        (Limit::RequestsOrThroughput, "; stopped by a limit at 5,000 requests/s (41 MB/s)."),
        (Limit::Device, "; stopped by the device, at 5,000 requests/s (41 MB/s)."),
        (Limit::ServerStorage, "; stopped by the storage that the server reads from, at 5,000 requests/s."),
        (Limit::Server, "; stopped by the server, or what it reads from, at 5,000 requests/s."),
        (
            Limit::NotReached { growth: 0.5 },
            "; stopped by latency, 7.34 ms with 16 outstanding; there requests spent 94.9 % of their time in the device and its queue.",
        ),
    ] {
        let sentence = with(limit);
        assert!(sentence.ends_with(words), "{limit:?}: {sentence}");
    }
}

#[test]
fn what_outlasts_a_burst_is_the_answer() {
    let run = alone(1);
    let step = run.steps[0].label.clone();
    let mut findings = vec![burst(&step, None)];
    findings.extend(analyse_asked(&run, None));
    let sentence = Opening::of(&run, &findings).sentence();
    assert!(sentence.starts_with("Sustains 300 requests/s; 3,000 requests/s before that, for 20m"), "{sentence}");
    assert!(sentence.ends_with("look like a burst credit that ran out."), "{sentence}");
    findings[0] = burst(&step, Some(1e9));
    let sentence = Opening::of(&run, &findings).sentence();
    assert!(sentence.contains("burst credit or a write cache"), "{sentence}");
    let most = Excursion { range: 0.5, drift: 0.0 };
    findings.insert(1, Finding::NotSteady(NotSteady { steps: vec![step], most }));
    let sentence = Opening::of(&run, &findings).sentence();
    assert!(sentence.starts_with("May be invalid: throughput was not steady"), "{sentence}");
}

#[test]
fn a_long_load_that_settled_is_reported_by_its_settled_rate() {
    let run = alone(1);
    let open_with = |reached| Opening::of(&run, &[steady(reached)]).sentence();
    let last = Excursion { range: 0.5, drift: 0.1 };
    let (start, later) = (Nanos(0), Nanos::seconds(90));
    let from = |from| Reached::From { from, operations_per_s: 4_700.0 };
    assert_eq!(
        open_with(from(start)),
        "Holds 4,700 requests/s at p99 1.93 ms with 4 outstanding, steady from the start."
    );
    assert!(open_with(from(later)).ends_with("steady after 1m30s."), "{}", open_with(from(later)));
    for reached in [Reached::Never { last }, Reached::Lost { from: start, last }] {
        assert_eq!(open_with(reached), "May be invalid: throughput did not settle.");
    }
}

#[test]
fn a_share_from_a_cache_is_reported_only_where_places_differ() {
    let run = sample::sweep(60);
    let with = |cause, modes| {
        let mut findings = analyse_asked(&run, None);
        findings.push(tiers(cause, modes));
        Opening::of(&run, &findings)
    };
    let two = || vec![mode(0.3, 105), mode(0.7, 900)];
    let found = with(Cause::Places, two());
    let sentence = found.sentence();
    assert!(sentence.ends_with("; 30 % of reads came from a cache or a faster tier (at 1 session)."), "{sentence}");
    assert!(sentence.len() <= LONGEST, "{}", sentence.len());
    assert_eq!(with(Cause::PlacesOrQueue, two()).from_cache, None);
    assert_eq!(with(Cause::Places, vec![mode(0.3, 300), mode(0.7, 900)]).from_cache, None);
}

#[test]
fn the_buffer_cache_and_the_page_cache_are_distinguished() {
    let held = |hit_ratio| {
        let mut findings = analyse_asked(&sample::sweep(60), None);
        findings.push(Finding::CacheHeld(CacheHeld { steps: vec!["s16_t1".into()], hit_ratio, data_fits: false }));
        Opening::of(&sample::sweep(60), &findings).sentence()
    };
    assert!(held(0.6).ends_with("; the buffer cache answered 60 % of logical reads."), "{}", held(0.6));
    assert!(held(0.95).ends_with("the buffer cache answered most reads in s16_t1."), "{}", held(0.95));
    let served = |share| {
        let (run, steps) = (servers::remote(), vec!["s16_t1".to_owned()]);
        let found = ServerFinding::PageCacheServed { steps, share, is_private: false, limited_to: None };
        Opening::of(&run, &[Finding::Server(found)]).sentence()
    };
    assert!(served(0.3).ends_with("; 30 % of buffer misses came from the page cache."), "{}", served(0.3));
    assert!(served(0.6).contains("May be invalid: the page cache answered most buffer misses"), "{}", served(0.6));
}

#[test]
fn a_doubt_about_the_answer_is_said_instead_of_it() {
    let saturated = disturbed(5, |step| step.generator.as_mut().unwrap().busiest_share = 0.99);
    assert_eq!(saturated, "May be invalid: the load generator had no processor time left in s32_t1.");
    let errors = disturbed(4, |step| step.counters.errors = Some(7));
    assert_eq!(errors, "May be invalid: operations ended in errors in s16_t1.");
    let elsewhere = disturbed(0, |step| step.counters.errors = Some(7));
    assert!(elsewhere.starts_with("Sustains 40,068 reads/s"), "{elsewhere}");
}

#[test]
fn a_doubt_about_the_step_that_is_reported_counts_wherever_it_stands() {
    let run = servers::private_cluster();
    let mut findings = analyse_asked(&run, None);
    findings.push(Finding::Stalled(Stalled { steps: vec!["s16_t1".into()], longest: Nanos::seconds(3) }));
    let sentence = Opening::of(&run, &findings).sentence();
    assert!(sentence.contains("nothing finished for a while although load was on in s16_t1"), "{sentence}");
}

#[test]
fn how_a_run_ended_is_a_doubt_of_the_whole() {
    for (outcome, words) in [
        (Outcome::Interrupted, "the run was ended early."),
        (Outcome::Unfinished, "the run has not finished, or its process was killed."),
        (Outcome::Failed { error: "bad block".into() }, "the run failed."),
    ] {
        let mut run = sample::sweep(60);
        run.outcome = outcome;
        assert_eq!(sentence_of(&run), format!("May be invalid: {words}"));
        run.steps.clear();
        assert_eq!(sentence_of(&run), format!("Nothing was measured: {words}"));
    }
}

#[test]
fn a_run_without_steps_says_that_nothing_was_measured() {
    let mut run = sample::sweep(60);
    run.steps.clear();
    assert_eq!(sentence_of(&run), "Nothing was measured.");
}

/// Doubts that have few fields.
fn all_doubts() -> Vec<Finding> {
    let steps = || vec!["d4".to_owned()];
    let last = Excursion { range: 0.5, drift: 0.1 };
    let (ours, kernel) = (Bytes(1), Bytes(2));
    let bytes_disagree =
        |copies| Finding::BytesDisagree(BytesDisagree { steps: steps(), share: 0.1, ours, kernel, copies });
    vec![
        Finding::ClientSaturated(ClientSaturated {
            steps: steps(),
            share: 0.99,
            whole_machine: false,
            kept_by: None,
            used: 0.99,
            is_beside_server: false,
        }),
        Finding::NotCompleted(NotCompleted::Failed { error: "bad block".into(), steps: 1 }),
        Finding::OperationErrors(OperationErrors {
            steps: steps(),
            errors: 3,
            median_after_ns: None,
            last_after_ns: None,
            words: Vocabulary::Sessions,
        }),
        Finding::NotEnded(NotEnded {
            steps: steps(),
            operations: 3,
            share: 0.1,
            waited: Nanos(10_000_000_000),
            words: Vocabulary::Sessions,
        }),
        Finding::PageCacheUsed(PageCacheUse::Asked { from_storage: None }),
        Finding::PageCacheUsed(PageCacheUse::NotDirect),
        bytes_disagree(None),
        bytes_disagree(Some(1)),
        Finding::NotSteady(NotSteady { steps: steps(), most: last }),
        Finding::Stalled(Stalled { steps: steps(), longest: Nanos::seconds(2) }),
        Finding::CacheHeld(CacheHeld { steps: steps(), hit_ratio: 0.95, data_fits: true }),
        steady(Reached::Never { last }),
        Finding::Server(ServerFinding::ShapeChanged { steps: steps(), grown: None, hot_share: Some(0.2) }),
        Finding::Server(ServerFinding::RolledBack { steps: steps(), deadlocks: 2, rollbacks: 3 }),
    ]
}

#[test]
fn each_doubt_has_few_words_of_its_own() {
    let run = alone(1);
    let mut phrases = Vec::new();
    for doubt in all_doubts() {
        assert_eq!(doubt.severity(), Severity::Doubt, "{doubt:?}");
        let opening = Opening::of(&run, std::slice::from_ref(&doubt));
        let found = opening.doubt.clone().unwrap();
        assert!(found.phrase.len() < 60, "{}", found.phrase);
        assert_eq!(found.sentence, doubt.sentence());
        assert!(!opening.sentence().contains(|letter: char| letter.is_ascii_digit()), "{}", opening.sentence());
        phrases.push(found.phrase);
    }
    let count = phrases.len();
    phrases.sort_unstable();
    phrases.dedup();
    assert_eq!(phrases.len(), count);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_steps_of_any_sample_open_with_a_sentence(at in 0usize..11, kept in any::<u8>(), limit_us in 1u64..100_000) {
        let (_, mut run) = samples().swap_remove(at);
        let mut index = 0;
        run.steps.retain(|_| {
            index += 1;
            kept >> (index % 8) & 1 == 1
        });
        let target = LatencyTarget { limit: Nanos(limit_us * 1_000), ..LatencyTarget::default() };
        let judged = Opening::of(&run, &analyse_asked(&run, Some(&target)));
        let sentence = judged.sentence();
        prop_assert!(sentence.ends_with('.') && sentence.len() <= LONGEST_JUDGED, "{sentence}");
        prop_assert!(["Yes: ", "No: ", "No verdict: "].iter().any(|word| sentence.starts_with(word)), "{sentence}");
        prop_assert!(!run.steps.is_empty() || sentence.starts_with("No verdict: nothing was measured"), "{sentence}");
        for findings in [analyse_asked(&run, None), Vec::new()] {
            let opening = Opening::of(&run, &findings);
            let sentence = opening.sentence();
            prop_assert!(sentence.ends_with('.') && sentence.len() <= LONGEST, "{sentence}");
            prop_assert_eq!(run.steps.is_empty(), sentence.starts_with("Nothing was measured"));
            prop_assert!(opening.doubt.is_none() || !sentence.contains("/s"), "{sentence}");
        }
    }
}

/// The same run, as if another program had made it.
fn imported(mut run: Run) -> Run {
    run.imported = Some(Imported { files: Vec::new(), clock: Clock::Utc, not_understood: Vec::new() });
    run
}

#[test]
fn jobs_that_ran_at_the_same_time_are_reported_together() {
    let mut run = imported(sample::sweep(60));
    run.steps.truncate(4);
    run.steps.iter_mut().for_each(|step| step.window.offset_ns = 0);
    let sum: f64 = run.steps.iter().filter_map(|step| Figures(step).operations_per_s()).sum();
    run.target.facts.jobs_at_once = Some(JobsAtOnce::All(4));
    let sentence = Opening::of(&run, &[]).sentence();
    let begin = format!("4 jobs at the same time did {} requests/s (", group_thousands(sum));
    assert!(sentence.starts_with(&begin) && sentence.ends_with(" MB/s) together."), "{sentence}");
    let rate = |at: usize| Figures(&run.steps[at]).operations_per_s().unwrap();
    let most = (rate(0) + rate(1)).max(rate(2) + rate(3));
    run.target.facts.jobs_at_once = Some(JobsAtOnce::Each(vec![Some(1), Some(1), Some(2), Some(2)]));
    let sentence = Opening::of(&run, &[]).sentence();
    let begin = format!("2 jobs at the same time did {} requests/s (", group_thousands(most));
    assert!(sentence.starts_with(&begin), "{sentence}");
}

#[test]
fn a_sweep_whose_answer_rests_on_a_step_that_swings_is_in_doubt() {
    let target = LatencyTarget::default();
    let mut run = sample::sweep(60);
    let opening = |run: &Run| Opening::of(run, &analyse_asked(run, Some(&target)));
    let steady = opening(&run);
    let answered = steady.carries.as_ref().and_then(|carried| carried.step.clone()).unwrap();
    assert_eq!(steady.doubt, None);
    let step = run.steps.iter_mut().find(|step| step.label == answered).unwrap();
    for (second, interval) in step.intervals.iter_mut().enumerate() {
        let factor = if second / 10 % 2 == 0 { 1 } else { 3 };
        interval.counters.operations = interval.counters.operations.map(|operations| operations * factor);
    }
    let doubt = opening(&run).doubt.map(|doubt| doubt.phrase).unwrap_or_default();
    assert!(doubt.starts_with("throughput was not steady"), "{doubt}");
}

#[test]
fn what_stops_even_the_least_load_is_named_where_it_runs_at_the_rate_of_all() {
    let mut run = requests::sweep();
    let target: LatencyTarget = "p99=10us".parse().unwrap();
    let opening = |run: &Run| Opening::of(run, &analyse(run, &target));
    let whole = opening(&run);
    assert!(matches!(whole.stopped_by, Some(StoppedBy::MostOfRequests(_))), "2,000 of 5,000: {}", whole.sentence());
    // 16 and 64 outstanding, at 5,000 requests/s both.
    run.steps.drain(..2);
    let flat = opening(&run);
    assert!(matches!(flat.stopped_by, Some(StoppedBy::Ceiling(_))), "{}", flat.sentence());
    assert!(matches!(flat.carries.unwrap().claim, Claim::LessThan { .. }));
}
