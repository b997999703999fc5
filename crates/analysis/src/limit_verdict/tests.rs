use super::super::load_line::judge::tests::open;
use super::super::{Opening, analyse_limits};
use super::*;
use model::record::JobsAtOnce;
use model::record::sample::{self, requests};

/// What a report opens with.
fn opens(run: &Run, limits: &[&str]) -> String {
    let limits: Vec<LatencyTarget> = limits.iter().map(|limit| limit.parse().unwrap()).collect();
    Opening::of(run, &analyse_limits(run, &limits)).sentence()
}

fn alone(step: Step) -> Run {
    let mut run = requests::sweep();
    run.steps = vec![step];
    run
}

#[test]
fn a_single_load_opens_with_yes_or_no_the_figure_and_the_limit() {
    let mut run = sample::sweep(60);
    run.steps = vec![run.steps.swap_remove(3)];
    assert_eq!(
        opens(&run, &["p99=5ms"]),
        "Yes: p99 of `db file sequential read` is 1.47 ms, within 5.00 ms, at 35,280 reads/s with 8 sessions."
    );
    assert_eq!(
        opens(&run, &["p99=1ms"]),
        "No: p99 of `db file sequential read` is 1.47 ms, beyond 1.00 ms, at 35,280 reads/s with 8 sessions."
    );
    assert_eq!(
        opens(&run, &["log file sync:p99=5ms"]),
        "No verdict: no session waited for `log file sync`, limit 5.00 ms, at 35,280 reads/s with 8 sessions."
    );
    let findings = analyse_limits(&run, &["p99=5ms".parse().unwrap()]);
    assert!(!findings.iter().any(|finding| finding.is_load_line() || finding.sentence().contains("Load line")));
}

/// Of every step, so many of a hundred operations failed.
fn failing(mut run: Run, percent: u64) -> Run {
    for step in &mut run.steps {
        step.counters.errors = step.counters.operations.map(|operations| operations * percent / (100 - percent));
    }
    run
}

#[test]
fn a_sweep_whose_requests_fail_gives_that_as_the_reason_everywhere() {
    let limit = "p99=1s";
    let target: LatencyTarget = limit.parse().unwrap();
    let run = failing(requests::sweep(), 6);
    let opening = opens(&run, &[limit]);
    assert!(opening.starts_with("No: sustains less than "), "{opening}");
    assert!(opening.contains(": 6.0 % of requests failed with 1 outstanding already"), "{opening}");
    let findings = analyse_limits(&run, std::slice::from_ref(&target));
    let line = findings.iter().find(|finding| finding.is_load_line()).unwrap().sentence();
    assert!(line.contains("No step meets p99 of response time within 1.00 s; at 1 outstanding"), "{line}");
    assert!(line.contains("6.0 % of requests failed") && !line.contains("it is"), "{line}");
    let command = ["plimsoll", "io", "sweep", "--limit", limit].map(str::to_owned).to_vec();
    let listed = crate::ListedVerdict::of(&Run { command, ..run.clone() }).unwrap().words;
    assert!(listed.starts_with("no: ") && listed.contains("6.0 % failed"), "{listed}");
    let screen = crate::FirstScreen::of(&run, &findings).result;
    assert!(screen.contains("6.0 % of requests failed") && !screen.contains("it is"), "{screen}");

    // Only the larger loads fail.
    let mut some = requests::sweep();
    let last = some.steps.len() - 1;
    some.steps[last] = failing(alone(some.steps[last].clone()), 6).steps.remove(0);
    let findings = analyse_limits(&some, std::slice::from_ref(&target));
    let line = findings.iter().find(|finding| finding.is_load_line()).unwrap().sentence();
    assert!(line.contains("against a limit of 1.00 s; at 64 outstanding 6.0 % of requests failed"), "{line}");
    let opening = opens(&some, &[limit]);
    assert!(!opening.contains("stopped by latency"), "{opening}");
}

#[test]
fn a_rate_is_judged_by_operations_and_says_so() {
    assert_eq!(
        opens(&alone(open(1_000, 500)), &["p99=5ms"]),
        "Yes: p99 of response time is 1.20 ms, within 5.00 ms, at 1,000 requests/s (516 MB/s) with 1,000 requests/s requested."
    );
    let mut behind = open(1_000, 500);
    behind.load.rate_operations_per_s = Some(1_200.0);
    behind.generator.as_mut().unwrap().due_operations = Some(72_000);
    let sentence = opens(&alone(behind), &["p99=5ms"]);
    assert!(
        sentence.starts_with("No: the rate was not reached: p99 of response time is 1.20 ms, within"),
        "{sentence}"
    );
    assert!(!sentence.contains("not to be relied on"), "the doubt is the answer itself: {sentence}");
}

#[test]
fn a_rate_of_sessions_is_reported_in_operations_with_the_reads_beside_them() {
    let mut run = sample::sweep(60);
    run.steps = vec![run.steps.swap_remove(3)];
    run.steps[0].load.rate_operations_per_s = Some(560.0);
    assert_eq!(
        opens(&run, &["p99=5m"]).split_once(", at ").unwrap().1,
        "560 operations/s (35,280 reads/s) with 560 operations/s requested."
    );
}

#[test]
fn late_sending_is_no_verdict_and_the_service_time_stands_beside_it() {
    let mut late = open(1_000, 5_000);
    late.operations[0].service = sample::latencies(60_000, 500_000);
    late.generator.as_mut().unwrap().schedule_lag = Some(sample::latencies(60_000, 4_000_000));
    let sentence = opens(&alone(late.clone()), &["p99=5ms"]);
    assert!(sentence.starts_with("No verdict: this machine sent late (p99 9.6"), "{sentence}");
    assert!(
        sentence
            .contains("p99 of response time is 12.1 ms, beyond 5.00 ms; p99 of service time, without that, is 1.20 ms"),
        "{sentence}"
    );
    assert!(!sentence.contains("not to be relied on"), "{sentence}");
    let sentence = opens(&alone(late.clone()), &["service:p99=5ms"]);
    assert!(sentence.starts_with("Yes: p99 of service time is 1.20 ms, within 5.00 ms"), "{sentence}");
    // The storage itself takes far longer than the limit and all the lateness.
    late.operations[0].service = sample::latencies(60_000, 50_000_000);
    late.operations[0].response = sample::latencies(60_000, 54_000_000);
    let sentence = opens(&alone(late), &["p99=5ms"]);
    assert!(sentence.starts_with("No: p99 of response time is 1"), "{sentence}");
}

#[test]
fn a_generator_without_time_is_no_verdict_in_either_loop() {
    let busy = |mut step: Step| {
        step.generator.as_mut().unwrap().busiest_share = 0.97;
        alone(step)
    };
    let closed = || requests::sweep().steps.swap_remove(3);
    for run in [busy(open(1_000, 5_000)), busy(closed())] {
        let sentence = opens(&run, &["p99=5ms"]);
        assert!(sentence.starts_with("No verdict: the load generator was at its own limit: p99 of"), "{sentence}");
        assert!(opens(&run, &["p99=1m"]).starts_with("Yes: "), "what is kept is kept");
    }
    let mut rates = busy(open(1_000, 5_000));
    rates.steps.push(open(2_000, 9_000));
    let mut depths = requests::sweep();
    depths.steps.iter_mut().for_each(|step| step.generator.as_mut().unwrap().busiest_share = 0.97);
    for (run, limit) in [(rates, "p99=5ms"), (depths, "p99=1us")] {
        let sentence = opens(&run, &[limit]);
        assert!(
            sentence.starts_with("No verdict: at the least load already, the load generator was at its own"),
            "{sentence}"
        );
    }
    assert!(opens(&alone(closed()), &["p99=5ms"]).starts_with("No: "));
}

#[test]
fn a_machine_that_others_use_up_is_no_verdict_on_storage() {
    let crowded = |own_ns: u64| {
        let mut step = requests::sweep().steps.swap_remove(3);
        let cpu = |user_ns| Some(model::record::CpuTime { user_ns, idle_ns: Some(0), ..Default::default() });
        (step.host_cpu, step.process_cpu) = (cpu(20_000_000_000), cpu(own_ns));
        opens(&alone(step), &["service:p99=5ms"])
    };
    let sentence = crowded(1_000_000_000);
    assert!(
        sentence.starts_with("No verdict: other programs or the kernel took this machine's CPUs: p99 of"),
        "{sentence}"
    );
    assert!(crowded(15_000_000_000).starts_with("No: "), "we used it ourselves");
    let mut step = requests::sweep().steps.swap_remove(3);
    let cpu = |user_ns, stolen_ns: u64| {
        let (idle_ns, steal_ns) = (Some(0), Some(stolen_ns).filter(|ns| *ns > 0));
        Some(model::record::CpuTime { user_ns, idle_ns, steal_ns, ..Default::default() })
    };
    (step.host_cpu, step.process_cpu) = (cpu(9_000_000_000, 11_000_000_000), cpu(8_000_000_000, 0));
    let sentence = opens(&alone(step), &["service:p99=5ms"]);
    assert!(sentence.starts_with("No verdict: the hypervisor took this machine's CPUs: p99 of"), "{sentence}");
}

#[test]
fn errors_and_loads_that_are_not_steady_are_named() {
    let mut failing = open(1_000, 500);
    failing.counters.operations = Some(57_000);
    failing.counters.errors = Some(3_000);
    let sentence = opens(&alone(failing), &["p99=5ms"]);
    assert!(sentence.starts_with("No: 5.0 % failed: p99 of response time is"), "{sentence}");
    let mut stalls = open(1_000, 500);
    for (interval, second) in stalls.intervals.iter_mut().filter(|interval| !interval.warmup).zip(0..) {
        interval.counters.operations = Some(match second {
            24..30 => 0,
            30..36 => 1_400,
            _ => 1_000,
        });
    }
    let sentence = opens(&alone(stalls), &["p99=5ms"]);
    assert!(
        sentence.starts_with("No verdict: it was not steady: p99 of response time is 1.20 ms, within"),
        "{sentence}"
    );
}

#[test]
fn repeats_of_one_load_are_decided_by_majority() {
    let mut run = alone(open(1_000, 400));
    run.steps.extend([open(1_000, 9_000), open(1_000, 500)]);
    assert!(
        opens(&run, &["p99=5ms"]).starts_with("Yes: p99 of response time is 963 us"),
        "{}",
        opens(&run, &["p99=5ms"])
    );
    run.steps.push(open(1_000, 9_000));
    run.steps.push(open(1_000, 9_000));
    assert!(opens(&run, &["p99=5ms"]).starts_with("No: "));
}

#[test]
fn jobs_at_the_same_time_do_not_vote() {
    let mut run = alone(open(1_000, 400));
    run.steps.extend([open(1_000, 500), open(1_000, 30_000)]);
    for step in &mut run.steps {
        (step.load.rate_operations_per_s, step.window.offset_ns) = (None, 0);
    }
    assert!(opens(&run, &["p99=5ms"]).starts_with("Yes: "), "as repeats");
    let imported =
        model::record::Imported { files: Vec::new(), clock: model::record::Clock::Utc, not_understood: Vec::new() };
    run.imported = Some(imported);
    run.target.facts.jobs_at_once = Some(JobsAtOnce::All(3));
    assert!(opens(&run, &["p99=5ms"]).starts_with("No: "), "{}", opens(&run, &["p99=5ms"]));
    run.steps[2].window.offset_ns = 40_000_000_000;
    let part = opens(&run, &["p99=5ms"]);
    assert!(
        part.starts_with("No verdict: jobs ran at the same time, and what they did together is not known: p99"),
        "{part}"
    );
}

#[test]
fn a_limit_for_one_in_a_thousand_is_not_kept_where_more_fail() {
    let mut run = alone(open(1_000, 400));
    run.steps[0].load.rate_operations_per_s = None;
    run.steps[0].counters.errors = Some(240);
    let sentence = opens(&run, &["p99.9=5ms"]);
    assert!(sentence.starts_with("No: 0.4 % failed: p99.9 of response time is "), "{sentence}");
    assert!(opens(&run, &["p99=5ms"]).starts_with("Yes: "));
}

#[test]
fn errors_that_may_be_are_no_doubt_and_stand_in_the_answer() {
    let mut run = alone(open(1_000, 400));
    run.steps[0].load.rate_operations_per_s = None;
    run.steps[0].counters.errors = Some(240);
    let opens = |errors: f64| {
        let limit = LatencyTarget { errors: Some(errors), ..LatencyTarget::default() };
        let found = analyse_limits(&run, &[limit]);
        Opening::of(&run, &found).sentence()
    };
    let sentence = opens(0.01);
    assert!(sentence.starts_with("Yes: ") && sentence.ends_with("; 0.4 % failed."), "{sentence}");
    let sentence = opens(0.001);
    assert!(sentence.starts_with("No: 0.4 % failed, 0.1 % may: "), "{sentence}");
}

#[test]
fn of_several_limits_each_is_reported_and_one_that_is_missed_decides() {
    let mut run = sample::sweep(60);
    run.steps = vec![run.steps.swap_remove(3)];
    assert_eq!(
        opens(&run, &["p99=5ms", "p50=1us"]),
        "No: p50 of `db file sequential read` is 610 us, beyond 1.00 us; p99 of `db file sequential read` is 1.47 ms, \
         within 5.00 ms, at 35,280 reads/s with 8 sessions."
    );
    assert!(opens(&run, &["p99=5ms", "p50=5ms"]).starts_with("Yes: "));
    assert!(opens(&run, &["p99=5ms", "foo:p50=5ms"]).starts_with("No verdict: no session waited for `foo`"));
}

#[test]
fn several_loads_open_with_the_same_words_and_the_line() {
    let run = requests::sweep();
    let yes = opens(&run, &["p99=5ms"]);
    assert!(
        yes.starts_with("Yes: sustains 4,800 requests/s (39 MB/s) at p99 of response time within 5.00 ms with 4"),
        "{yes}"
    );
    let no = opens(&run, &["p99=1us"]);
    assert!(no.starts_with("No: sustains less than 2,000 requests/s"), "{no}");
    assert_eq!(opens(&run, &["foo:p99=5ms"]), "No verdict: no session waited for `foo`, limit 5.00 ms.");
}

#[test]
fn the_line_of_several_limits_keeps_them_all() {
    let run = requests::sweep();
    // 1.93 ms at 4 outstanding and 7.34 ms at 16.
    let both = opens(&run, &["p99=10ms", "p50=1ms"]);
    assert!(
        both.starts_with(
            "Yes: sustains 4,800 requests/s (39 MB/s) at p99 of response time within 10.0 ms and p50 of response time \
             within 1.00 ms with 4 outstanding"
        ),
        "{both}"
    );
    assert!(opens(&run, &["p99=10ms", "p50=1us"]).starts_with("No: sustains less than"), "none keeps the second");
    assert!(opens(&run, &["p99=10ms", "foo:p50=1ms"]).starts_with("No verdict: "), "nobody knows of the second");
}

#[test]
fn a_doubt_follows_the_answer() {
    let mut run = sample::sweep(60);
    run.steps = vec![run.steps.swap_remove(3)];
    run.target.facts.files.direct_io = Some(false);
    let sentence = opens(&run, &["p99=5ms"]);
    assert!(
        sentence.starts_with("Yes: p99 of")
            && sentence.ends_with(
                "; not to be relied on as it stands: the operating system's page cache may have served reads."
            ),
        "{sentence}"
    );
}

#[test]
fn what_was_given_up_before_the_limit_had_passed_leaves_the_answer_open() {
    let with = |late: u64, timed: u64, waited_s: u64, limit: &str| {
        let mut step = requests::sweep().steps.swap_remove(0);
        step.operations[0].response.clear();
        step.operations[0].response.record_n(1_000_000, 1_000 - timed);
        let mut outstanding =
            model::record::Outstanding { kind: step.operations[0].kind.clone(), ..Default::default() };
        outstanding.unended.record_n(waited_s * 1_000_000_000, timed);
        step.outstanding = vec![outstanding];
        let waited_ns = waited_s * 1_000_000_000;
        step.unended = Some(model::record::Unended { operations: late, sessions: late, waited_ns });
        let run = alone(step);
        let findings = analyse_limits(&run, &[limit.parse().unwrap()]);
        let verdict = findings.into_iter().find_map(|finding| match finding {
            Finding::Verdict(verdict) => Some(verdict),
            _ => None,
        });
        let verdict = verdict.unwrap();
        (verdict.answer, verdict.advice().is_some())
    };
    use LimitAnswer::{No, NoVerdict, Yes};
    assert_eq!(with(20, 20, 1, "response:p99=5s"), (NoVerdict, true), "they may have taken any time above a second");
    assert_eq!(with(20, 20, 1, "response:p97=5s"), (Yes, false), "whatever they took");
    assert_eq!(with(20, 20, 6, "response:p99=5s").0, No);
    assert_eq!(with(20, 20, 6, "read response:p99=7s").0, NoVerdict);
    // Some of them were timed, and the others are not forgotten.
    assert_eq!(with(20, 5, 6, "response:p99=5s").0, No);
    assert_eq!(with(20, 5, 1, "response:p99=5s").0, NoVerdict);
    assert_eq!(with(20, 5, 6, "response:p90=5s").0, Yes);
}
