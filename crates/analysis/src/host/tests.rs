use super::*;
use crate::{Finding, Message, Opening, analyse_asked};
use model::record::Level;
use model::record::sample::{self, host};
use model::record::{Histogram, HostStats, Step, Throttled};
use model::units::Bytes;
use model::units::Nanos;

const SECOND: u64 = 1_000_000_000;

fn found(run: &Run) -> Vec<HostFinding> {
    let of_host = |finding| match finding {
        Finding::Host(found) => found,
        other => panic!("{other:?}"),
    };
    analyse_asked(run, None).into_iter().map(of_host).collect()
}

fn only(mut findings: Vec<HostFinding>) -> HostFinding {
    assert_eq!(findings.len(), 1, "{findings:?}");
    findings.remove(0)
}

fn sentences(run: &Run) -> Vec<String> {
    found(run).iter().map(Message::sentence).collect()
}

/// Of machines whose processors are cores, nothing is to be said but what was planted.
fn on_cores(mut run: Run) -> Run {
    for (core, processor) in
        run.environment.topology.iter_mut().flat_map(|topology| &mut topology.processors).enumerate()
    {
        processor.core = Some(core as u32);
    }
    run
}

/// Changes what the kernel said of a step and of its seconds from `from` on.
fn from_second(step: &mut Step, from: usize, change: impl Fn(&mut HostStats)) {
    step.host.iter_mut().for_each(&change);
    step.intervals[from..].iter_mut().filter_map(|second| second.host.as_mut()).for_each(change);
}

#[test]
fn nothing_is_found_where_nothing_is() {
    let run = on_cores(host::load(600));
    assert_eq!(found(&run), []);
    let opening = Opening::of(&run, &analyse_asked(&run, None)).sentence();
    assert_eq!(opening, "4 processors: 16.0 GB/s of checksums each, for 10m00s; steal at most 0.0 %.");
    assert_eq!(found(&on_cores(host::load(3))), [], "a short one says as little");
}

#[test]
fn a_limit_of_a_control_group_is_found_and_one_that_does_not_bind_is_not() {
    let with = |throttled_periods| {
        let mut run = on_cores(host::load(10));
        let stats = run.steps[0].host.as_mut().unwrap();
        stats.quota_processors = Some(1.5);
        stats.loaded.own_ns = 15 * SECOND;
        stats.loaded.busy_ns = Some(15 * SECOND);
        stats.throttled = Some(Throttled { periods: 100, throttled_periods, throttled_ns: 25 * SECOND });
        run
    };
    let HostFinding::Quota(quota) = only(found(&with(97))) else { panic!("a limit") };
    assert_eq!((quota.limit, quota.used, quota.periods), (Some(1.5), 1.5, 0.97));
    assert!(
        quota.sentence().contains("limits this process to 1.50 processors: 1.50 were used"),
        "{}",
        quota.sentence()
    );
    let run = with(97);
    let opening = Opening::of(&run, &analyse_asked(&run, None)).sentence();
    assert!(opening.ends_with("a limit of 1.50 processors held it back."), "{opening}");
    assert_eq!(found(&with(5)), []);
}

#[test]
fn what_the_hypervisor_and_what_other_processes_take_are_told_apart() {
    let mut stolen = on_cores(host::load(10));
    stolen.steps[0].host.as_mut().unwrap().loaded.steal_ns = Some(4 * SECOND);
    let HostFinding::Stolen(found_steal) = only(found(&stolen)) else { panic!("steal") };
    assert_eq!(found_steal.share, 0.1);
    let mut beside = on_cores(host::load(10));
    beside.steps[0].host.as_mut().unwrap().loaded.own_ns = 30 * SECOND;
    let HostFinding::Competition(others) = only(found(&beside)) else { panic!("others") };
    assert_eq!(others.share, 0.25);
    // Who sleeps leaves his processor to others: that is no competition.
    beside.steps[0].operations[0].kind = "timer".to_owned();
    beside.steps[0].operations[0].service = Histogram::default();
    assert_eq!(found(&beside), []);
    let mut little = on_cores(host::load(10));
    let loaded = &mut little.steps[0].host.as_mut().unwrap().loaded;
    (loaded.steal_ns, loaded.own_ns) = (Some(SECOND / 2), 39 * SECOND + SECOND / 2);
    assert_eq!(found(&little), [], "1.25 % is little");
}

#[test]
fn a_fall_is_found_with_its_time_and_its_cause() {
    let fallen = |change: &dyn Fn(&mut HostStats)| {
        let mut run = on_cores(host::load(600));
        let step = &mut run.steps[0];
        for second in &mut step.intervals[240..] {
            second.counters.operations = Some(3_000);
        }
        from_second(step, 0, |host| host.thermal_throttles = Some(0));
        from_second(step, 240, change);
        // Of the whole load nothing else is to be found than the fall.
        step.host.as_mut().unwrap().loaded = host::load(600).steps[0].host.as_ref().unwrap().loaded;
        let fell = found(&run).into_iter().find_map(|finding| match finding {
            HostFinding::Fell(fell) => Some(fell),
            _ => None,
        });
        let fell = fell.expect("a fall");
        assert_eq!((fell.after, fell.before_per_s, fell.after_per_s), (Nanos::seconds(240), 4_000.0, 3_000.0));
        fell
    };
    let hot = fallen(&|host| (host.thermal_throttles, host.temperature_celsius) = (Some(7), Some(97.0)));
    assert_eq!(hot.cause, FallCause::Heat { celsius: Some(97.0) });
    assert!(hot.sentence().contains("fell by 25.0 % after 4m00s"), "{}", hot.sentence());
    let clock = |celsius: f64| {
        fallen(&move |host: &mut HostStats| {
            (host.frequency_hz, host.temperature_celsius) = (Some(2_250_000_000), Some(celsius));
        })
    };
    assert_eq!(clock(95.0).cause, FallCause::Heat { celsius: Some(95.0) });
    assert_eq!(clock(60.0).cause, FallCause::Clock { from_hz: 3_000_000_000, to_hz: 2_250_000_000 });
    let credits = fallen(&|host| host.loaded.steal_ns = Some(SECOND));
    assert_eq!(credits.cause, FallCause::Steal { share: 0.25 });
    let others = fallen(&|host| host.loaded.own_ns -= host.loaded.own_ns / 4);
    assert_eq!(others.cause, FallCause::Others { share: 0.25 });
    assert_eq!(fallen(&|_| ()).cause, FallCause::Unknown);
}

#[test]
fn a_fall_has_the_cause_that_explains_most_of_it_or_none() {
    let fallen = |change: &dyn Fn(&mut HostStats)| {
        let mut run = on_cores(host::load(600));
        let step = &mut run.steps[0];
        from_second(step, 0, |host| host.throttled = Some(Throttled { periods: 10, ..Throttled::default() }));
        step.intervals[240..].iter_mut().for_each(|second| second.counters.operations = Some(3_000));
        from_second(step, 240, change);
        let fell = SpeedFell::of(&run.steps[0]).unwrap();
        (fell.cause, fell.sentence())
    };
    let others = |host: &mut HostStats, share: f64| {
        let loaded = &mut host.loaded;
        loaded.own_ns -= (share * 4e9) as u64;
    };
    let stolen = |host: &mut HostStats, share: f64| host.loaded.steal_ns = Some((share * 4e9) as u64);
    let (cause, _) = fallen(&|host| {
        others(host, 0.25);
        stolen(host, 0.03);
    });
    assert_eq!(cause, FallCause::Others { share: 0.25 }, "3 % of steal do not explain 25 %");
    let (cause, words) = fallen(&|host| stolen(host, 0.03));
    assert!(
        cause == FallCause::Unknown && words.contains("no single thing that the kernel shows explains it"),
        "{words}"
    );
    let (cause, words) = fallen(&|host| {
        others(host, 0.25);
        host.throttled = Some(Throttled { periods: 10, throttled_periods: 10, throttled_ns: 3 * SECOND });
    });
    assert_eq!(cause, FallCause::Quota { share: 0.25 }, "what it held back of siblings is not ours: {words}");
    assert!(words.contains("a limit on processor time held it back for 25.0 % of the time"), "{words}");
    let (cause, _) = fallen(&|host| {
        others(host, 0.25);
        host.throttled = Some(Throttled { periods: 10, throttled_periods: 1, throttled_ns: SECOND / 10 });
    });
    assert_eq!(cause, FallCause::Others { share: 0.25 }, "a quota of 2.5 % explains a tenth of it");
    let (cause, _) = fallen(&|host| {
        (host.frequency_hz, host.throttled) =
            (Some(2_250_000_000), Some(Throttled { throttled_ns: 9 * SECOND, ..Throttled::default() }));
    });
    assert!(matches!(cause, FallCause::Clock { .. }), "siblings were held back, the load was not: {cause:?}");
}

#[test]
fn a_fall_bit_by_bit_is_found_and_noise_is_none() {
    let with = |operations: &dyn Fn(u64) -> u64| {
        let mut run = on_cores(host::load(300));
        for (second, interval) in (0..).zip(&mut run.steps[0].intervals) {
            interval.counters.operations = Some(operations(second));
        }
        run
    };
    let HostFinding::Fell(fell) = only(found(&with(&|second| 4_000 - second))) else { panic!("a fall") };
    assert!(fell.is_slow && fell.cause == FallCause::Unknown, "{fell:?}");
    assert_eq!(found(&with(&|second| 4_000 - second % 7 * 100)), []);
    assert_eq!(found(&with(&|second| 4_000 - second / 4)), [], "less than a twentieth");
}

#[test]
fn one_processor_that_does_less_is_named_unless_others_took_its_time() {
    let slow = |others_ns: u64| {
        let mut run = on_cores(host::load(10));
        let stats = run.steps[0].host.as_mut().unwrap();
        stats.processors[2].times.operations = 8_000;
        stats.processors[2].times.own_ns -= others_ns;
        stats.loaded.own_ns -= others_ns;
        run
    };
    let HostFinding::Slow(found_slow) = only(found(&slow(0))) else { panic!("slow") };
    assert_eq!((found_slow.number, found_slow.share), (2, 0.8));
    let disturbed = found(&slow(2 * SECOND));
    assert!(matches!(disturbed.as_slice(), [HostFinding::Competition(_)]), "{disturbed:?}");
    let mut each = on_cores(host::load(10));
    each.steps = (0..3).map(|number| host::step(number, "checksum", 1, 5)).collect();
    for (number, step) in (0..).zip(&mut each.steps) {
        step.label = format!("checksum_cpu{number}");
        step.host.as_mut().unwrap().processors[0].number = number;
    }
    assert_eq!(found(&each), []);
    each.steps[1].counters.operations = Some(4_000);
    let HostFinding::Slow(found_slow) = only(found(&each)) else { panic!("slow") };
    assert_eq!((found_slow.number, found_slow.share), (1, 0.8));
}

#[test]
fn processors_that_are_threads_of_fewer_cores_are_told_with_what_the_second_ones_add() {
    let mut run = host::load(10);
    run.steps = vec![host::step(0, "checksum", 2, 2), host::step(1, "checksum", 4, 2)];
    run.steps[1].operations[0].block_touches = run.steps[0].operations[0].block_touches * 5 / 4;
    let said = sentences(&run);
    assert_eq!(
        said,
        [
            "4 processors are 2 cores: some share one as hardware threads. All of them did what one on each core does, 1.25 \
          times in checksum."
        ]
    );
    run.environment.topology = Some(host::topology(32));
    assert!(sentences(&run)[0].starts_with("32 processors are 16 cores"));
}

/// Triads on so many processors, at so many gigabytes a second.
fn triads(points: &[(u32, u64)]) -> Run {
    let mut run = on_cores(host::load(10));
    let step = |(index, (threads, gigabytes)): (usize, &(u32, u64))| {
        let mut step = host::step(index as u32, "memory-triad", *threads, 2);
        step.operations[0].block_touches = gigabytes * 2_000_000_000;
        step.level = Some(host::level(Bytes::mib(256)));
        step
    };
    run.steps = points.iter().enumerate().map(step).collect();
    run
}

#[test]
fn memory_that_more_processors_do_not_move_faster_is_saturated() {
    let HostFinding::Memory(memory) = only(found(&triads(&[(1, 12), (2, 20), (4, 20)]))) else { panic!("saturated") };
    assert_eq!((memory.threads, memory.per_s, memory.most_threads), (2, 20e9, 4));
    assert_eq!(found(&triads(&[(1, 12), (2, 20), (4, 36)])), []);
    assert_eq!(found(&triads(&[(4, 36)])), []);
    let mut in_cache = triads(&[(1, 12), (2, 20), (4, 20)]);
    in_cache.steps[2].level = Some(host::level(Bytes::mib(1)));
    assert_eq!(found(&in_cache), [], "what a cache holds is not memory");
}

#[test]
fn far_memory_is_told_against_near_memory_of_the_same_size() {
    let mut run = on_cores(host::load(10));
    let step = |index: u32, loads: u64| {
        let mut step = host::step(index, "memory-latency", 1, 2);
        step.operations[0].block_touches = loads;
        step.operations[0].service = Histogram::counted(2_000, Some(2 * SECOND));
        step.level = Some(host::level(Bytes::mib(256)));
        step
    };
    run.steps = vec![step(0, 20_000_000), step(1, 12_500_000)];
    assert_eq!(found(&run), []);
    let Some(Level::Host(far)) = &mut run.steps[1].level else { panic!("work") };
    far.memory_of = Some(2);
    let HostFinding::Far(far) = only(found(&run)) else { panic!("far") };
    assert_eq!((far.near_ns, far.far_ns), (100.0, 160.0));
}

#[test]
fn sleeps_that_end_late_are_told_if_they_are_not_a_single_one() {
    let mut run = on_cores(host::load(10));
    let with = |run: &mut Run, late: u64| {
        let mut times = sample::latencies(10_000 - late, 60_000);
        times.record_n(5_000_000, late);
        run.steps = vec![host::step(0, "timer", 1, 10)];
        run.steps[0].operations[0].service = times;
        found(run)
    };
    assert_eq!(with(&mut run, 1), []);
    let HostFinding::Late(late) = only(with(&mut run, 200)) else { panic!("late") };
    assert_eq!((late.share, late.longest), (0.02, Nanos::millis(5)));
}

#[test]
fn results_of_other_programs_are_none_of_ours() {
    let mut run = host::load(10);
    run.imported = Some(model::record::Imported {
        files: Vec::new(),
        clock: model::record::Clock::Utc,
        not_understood: Vec::new(),
    });
    assert!(!is_host_load(&run));
    assert!(!analyse_asked(&run, None).iter().any(|finding| matches!(finding, Finding::Host(_))));
}
