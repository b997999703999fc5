//! Made-up runs of which it is known where their sessions were.

use super::*;
use crate::OperationTime;
use model::record::sample::requests::{self, Requests};
use model::record::sample::{self, servers};
use model::record::{Activity, CpuTime, SessionState};

const SECOND: u64 = 1_000_000_000;

#[track_caller]
fn of(run: &Run, step: usize) -> TimeParts {
    TimeParts::of(run, &run.steps[step]).unwrap()
}

/// Bounds of a part.
#[track_caller]
fn bounds(parts: &TimeParts, place: Place) -> (f64, f64) {
    let part = parts.part(place).unwrap_or_else(|| panic!("no {place:?} in {parts:#?}"));
    (part.least_sessions, part.most_sessions)
}

#[track_caller]
fn likely(parts: &TimeParts, place: Place) -> f64 {
    parts.part(place).unwrap_or_else(|| panic!("no {place:?} in {parts:#?}")).likely_sessions
}

#[track_caller]
fn is_near(value: f64, wanted: f64) {
    assert!((value - wanted).abs() <= 0.01 * wanted.abs().max(0.1), "{value} is not {wanted}");
}

#[track_caller]
fn adds_up(parts: &TimeParts) {
    let in_slots = || parts.parts.iter().filter(|part| part.part != Place::Queue);
    let sum = |of: fn(&TimePart) -> f64| in_slots().map(of).sum::<f64>();
    let slack = 1e-9 * parts.sessions;
    assert!((sum(|part| part.likely_sessions) - parts.sessions).abs() <= slack, "{parts:#?}");
    assert!(sum(|part| part.least_sessions) <= parts.sessions + slack, "{parts:#?}");
    assert!(sum(|part| part.most_sessions) >= parts.sessions - slack, "{parts:#?}");
    for part in &parts.parts {
        let in_order = [0.0, part.least_sessions, part.likely_sessions, part.most_sessions];
        assert!(in_order.is_sorted_by(|a, b| *a <= *b + slack), "{part:?}");
    }
    assert!(parts.parts.is_sorted_by_key(|part| part.part), "{parts:#?}");
}

#[test]
fn parts_add_up_to_the_sessions_of_every_load_and_in_every_second() {
    let mut runs = vec![sample::sweep(20), sample::updates(20), sample::interrupted()];
    runs.extend([requests::sweep(), requests::open_loop(), requests::mixed()]);
    runs.extend([servers::private_cluster(), servers::remote(), servers::two_nodes(), servers::changed_shape()]);
    runs.push(servers::innodb());
    for run in &runs {
        for step in &run.steps {
            adds_up(&TimeParts::of(run, step).unwrap());
            step.intervals.iter().for_each(|second| adds_up(&TimeParts::of_second(run, step, second).unwrap()));
        }
    }
}

#[test]
fn what_this_program_did_not_measure_has_no_parts() {
    assert_eq!(TimeParts::of(&sample::imported(), &sample::imported().steps[0]), None);
    let absent = |change: fn(&mut Run)| {
        let mut run = requests::sweep();
        change(&mut run);
        TimeParts::of(&run, &run.steps[0]).is_none()
    };
    assert!(!absent(|_| ()));
    assert!(absent(|run| run.steps[0].load.sessions = None));
    assert!(absent(|run| run.steps[0].window.duration_ns = 0));
    assert!(absent(|run| run.target.kind = Some(TargetKind::Host)));
    assert!(absent(|run| run.target.kind = Some(TargetKind::Network)));
}

/// Sixteen requests outstanding, of which the load generator kept one, on a device that had so many on average.
fn raw(in_device: f64) -> Run {
    let level = Requests {
        slots: 16,
        asked_per_s: None,
        reads_per_s: 5_000,
        writes_per_s: 0,
        service_ns: 3_000_000,
        queued_ns: 0,
    };
    let mut run = requests::run(&[level]);
    let step = &mut run.steps[0];
    let generator = step.generator.as_mut().unwrap();
    (generator.idle_session_ns, generator.busy_ns) = (10 * SECOND, 3 * SECOND);
    let device = &mut step.devices[0];
    device.weighted_ns = (in_device * device.elapsed_ns as f64) as u64;
    (device.read_bytes, device.write_bytes) = (step.counters.physical_read_bytes.unwrap(), 0);
    run
}

#[test]
fn a_throttle_keeps_requests_before_the_device() {
    let parts = of(&raw(2.0), 0);
    assert_eq!(parts.sessions, 16.0);
    assert_eq!(bounds(&parts, Place::Generator), (1.0, 1.0));
    let (least, most) = bounds(&parts, Place::Device);
    is_near(least, 2.0);
    is_near(most, 2.0);
    // Of the fifteen under way; the load generator was busy with 0.3 of them at most.
    let (least, most) = bounds(&parts, Place::BeforeDevice);
    is_near(least, 12.7);
    is_near(most, 13.0);
    assert_eq!(bounds(&parts, Place::Client).0, 0.0);
    is_near(bounds(&parts, Place::Client).1, 0.3);
    is_near(likely(&parts, Place::Unknown), 0.3);
    // The same load on a device that has all of them.
    let parts = of(&raw(14.9), 0);
    is_near(likely(&parts, Place::Device), 14.9);
    assert!(bounds(&parts, Place::BeforeDevice).1 < 0.11, "{parts:#?}");
}

#[test]
fn one_load_says_where_its_requests_spent_their_time() {
    let opening = |in_device: f64, busiest_share: f64| {
        let mut run = raw(in_device);
        run.steps[0].generator.as_mut().unwrap().busiest_share = busiest_share;
        crate::Opening::of(&run, &crate::analyse_asked(&run, None)).sentence()
    };
    let before = "requests spent 84.7 % of their time before the device, where a limiter such as the kernel's throttle";
    assert!(opening(2.0, 0.2).contains(before), "{}", opening(2.0, 0.2));
    let device = "requests spent 99.3 % of their time in the device and its queue";
    assert!(opening(14.9, 0.2).contains(device), "{}", opening(14.9, 0.2));
    assert!(!opening(2.0, 0.9).contains("of their time"), "a busy load generator took them late");
    assert!(!opening(8.0, 0.2).contains("of their time before"), "{}", opening(8.0, 0.2));
    let mut run = raw(2.0);
    run.target.facts.nfs.connections = vec![1];
    run.steps[0].devices.clear();
    let sentence = crate::Opening::of(&run, &crate::analyse_asked(&run, None)).sentence();
    assert!(sentence.contains(" % of their time on the way to the server, in it and back"), "{sentence}");
}

#[test]
fn a_device_has_no_more_of_our_requests_than_are_under_way_and_counts_others_too() {
    let parts = of(&raw(40.0), 0);
    assert_eq!(bounds(&parts, Place::Device).1, 15.0);
    let mut run = raw(8.0);
    run.steps[0].devices[0].write_bytes = run.steps[0].devices[0].read_bytes;
    let parts = of(&run, 0);
    is_near(bounds(&parts, Place::Device).0, 4.0);
    is_near(bounds(&parts, Place::Device).1, 8.0);
    is_near(bounds(&parts, Place::BeforeDevice).0, 6.7);
    is_near(bounds(&parts, Place::BeforeDevice).1, 11.0);
    run.target.facts.files.direct_io = Some(false);
    assert_eq!(bounds(&of(&run, 0), Place::Device).0, 0.0, "the page cache decides when a device works");
    // A partition and its disk see the same requests; what throttles between them is in the one and not in the other.
    let mut run = raw(8.0);
    let mut disk = run.steps[0].devices[0].clone();
    (disk.name, disk.weighted_ns) = ("nvme0".to_owned(), disk.weighted_ns / 4);
    run.environment.devices.push(run.environment.devices[0].clone());
    run.steps[0].devices.push(disk);
    let (least, most) = bounds(&of(&run, 0), Place::Device);
    is_near(least, 2.0);
    is_near(most, 8.0);
    // Two paths on disks of their own share the load.
    let mut run = raw(4.0);
    let second = DeviceStats { name: "sdb".to_owned(), ..run.steps[0].devices[0].clone() };
    run.steps[0].devices.push(second);
    run.target.facts.files.paths = ["/a", "/b"].map(str::to_owned).to_vec();
    run.steps[0].devices.iter_mut().for_each(|device| device.read_bytes /= 2);
    is_near(likely(&of(&run, 0), Place::Device), 8.0);
    run.target.facts.files.paths = vec!["/a".to_owned(); 3];
    assert_eq!(bounds(&of(&run, 0), Place::Device).0, 0.0, "which is below which is not known");
}

#[test]
fn a_target_without_devices_is_one_place() {
    let mut run = raw(2.0);
    run.steps[0].devices.clear();
    let parts = of(&run, 0);
    is_near(bounds(&parts, Place::Target).0, 14.7);
    assert_eq!(bounds(&parts, Place::Target).1, 15.0);
    assert!(parts.part(Place::Device).is_none() && parts.part(Place::BeforeDevice).is_none());
    run.target.kind = Some(TargetKind::Simulated);
    assert_eq!(bounds(&of(&run, 0), Place::Target), (15.0, 15.0), "its time costs no processor time");
}

#[test]
fn without_the_generators_count_littles_law_says_how_many_are_under_way() {
    let mut run = raw(2.0);
    let step = &mut run.steps[0];
    let mean = Figures(step).busy_sessions().unwrap();
    step.generator = None;
    let parts = of(&run, 0);
    assert!((bounds(&parts, Place::Generator).1 - (16.0 - mean)).abs() < 0.02, "{parts:#?}");
    assert_eq!(bounds(&parts, Place::Generator).0, 0.0, "what nothing counts is unknown");
    assert!(likely(&parts, Place::Unknown) > 0.9 * (16.0 - mean), "{parts:#?}");
    // Operations as long as the window say hardly anything.
    let law = |mean_ns: f64| by_littles_law(mean_ns * 100.0, 100, 10e9, 1_000.0);
    for (value, wanted) in [(law(1e9).least, 9.0), (law(1e9).likely, 10.0), (law(1e9).most, 11.0)] {
        is_near(value, wanted);
    }
    assert_eq!((law(20e9).least, law(20e9).most), (0.0, 400.0));
    assert_eq!(by_littles_law(0.0, 0, 10e9, 8.0), Range::up_to(8.0), "nothing finished, and all may be under way");
}

#[test]
fn an_open_loop_has_idle_slots_and_a_queue_beside_them() {
    let mut run = requests::open_loop();
    // Service takes 500 us at 1,000/s, and a slot was always free.
    let step = &mut run.steps[0];
    let generator = step.generator.as_mut().unwrap();
    generator.schedule_lag = Some(Histogram::default());
    generator.own_lag = Some(Histogram::default());
    let lag = generator.schedule_lag.as_mut().unwrap();
    lag.record_n(30_000_000, 10_000);
    generator.own_lag.as_mut().unwrap().record_n(10_000_000, 10_000);
    let parts = of(&run, 0);
    is_near(likely(&parts, Place::Generator), 10.0);
    is_near(likely(&parts, Place::Queue), 20.0);
    let under_way = Figures(&run.steps[0]).busy_sessions().unwrap();
    is_near(likely(&parts, Place::Idle), 1_024.0 - 10.0 - under_way);
    adds_up(&parts);
    // Operations that failed are in no histogram, so that any number may be under way.
    run.steps[0].counters.errors = Some(1);
    assert_eq!(bounds(&of(&run, 0), Place::Idle).0, 0.0);
    run.steps[0].counters.errors = Some(0);
    // Runs from before the generator's own part was counted.
    run.steps[0].generator.as_mut().unwrap().own_lag = None;
    let parts = of(&run, 0);
    assert_eq!(bounds(&parts, Place::Generator).0, 0.0);
    is_near(bounds(&parts, Place::Generator).1, 30.0);
    assert_eq!(bounds(&parts, Place::Queue).0, 0.0);
    is_near(bounds(&parts, Place::Queue).1, 30.0);
}

#[test]
fn a_second_of_an_open_loop_has_its_waits_for_what_is_under_way() {
    let run = requests::open_loop();
    let step = &run.steps[2];
    let second = TimeParts::of_second(&run, step, &step.intervals[5]).unwrap();
    let whole = TimeParts::of(&run, step).unwrap();
    // Nothing was read of devices in single seconds.
    let under_way = |parts: &TimeParts| 1_024.0 - likely(parts, Place::Idle) - bounds(parts, Place::Generator).0;
    assert!((under_way(&second) - under_way(&whole)).abs() < 0.1 * under_way(&whole), "{second:#?}");
    assert_eq!(bounds(&second, Place::Device).0, 0.0);
    assert!(bounds(&whole, Place::Device).0 > 900.0, "{whole:#?}");
    // 5,000 requests a second that take 2.19 s each, of which 0.19 s are service.
    let due = 5_000.0 * 2.19;
    let queue = likely(&second, Place::Queue);
    assert!((queue / due - 2.0 / 2.19).abs() < 0.15, "{queue} of {due}");
}

#[test]
fn think_time_is_what_neither_operations_nor_the_generator_have() {
    let mut run = servers::private_cluster();
    run.target.facts.server.sent_as = Some(SentAs::Statement);
    let step = &mut run.steps[2];
    step.load.sessions = Some(100);
    step.generator.as_mut().unwrap().idle_session_ns = 4 * 60 * SECOND;
    let under_way = Figures(step).busy_sessions().unwrap();
    assert!(of(&run, 2).part(Place::Idle).is_none(), "no load thinks that was not asked to");
    run.steps[2].parameters.insert("THINK_TM_FREQUENCY".to_owned(), "3".to_owned());
    let parts = of(&run, 2);
    assert_eq!(bounds(&parts, Place::Generator), (4.0, 4.0));
    is_near(likely(&parts, Place::Idle), 96.0 - under_way);
    adds_up(&parts);
}

#[test]
fn the_way_between_batches_may_be_the_generators_or_the_networks() {
    let mut run = server(&SEEN, 1_000, Some(1.2), Some(1.8));
    run.steps[0].generator.as_mut().unwrap().idle_session_ns = 60 * SECOND;
    run.target.facts.server.sent_as = Some(SentAs::Batch);
    let batch = of(&run, 0);
    assert_eq!(bounds(&batch, Place::Generator), (0.0, 1.0));
    run.target.facts.server.sent_as = Some(SentAs::Statement);
    let statement = of(&run, 0);
    assert_eq!(bounds(&statement, Place::Generator), (1.0, 1.0));
    is_near(bounds(&batch, Place::Outside).1 - bounds(&statement, Place::Outside).1, 1.0);
}

/// Ten sessions that are always under way, at a server of which is seen that.
fn server(samples: &[(&str, SessionState, u64)], looks: u64, cpu: Option<f64>, ready: Option<f64>) -> Run {
    let mut run = servers::private_cluster();
    run.target.facts.server.sent_as = Some(SentAs::Statement);
    run.steps.truncate(1);
    let step = &mut run.steps[0];
    step.load.sessions = Some(10);
    let generator = step.generator.as_mut().unwrap();
    (generator.idle_session_ns, generator.busy_ns) = (0, 60 * SECOND / 5);
    step.process_cpu = None;
    let server = &mut step.servers[0];
    server.sampled_times = looks;
    server.session_samples = samples.iter().map(|(name, _, samples)| ((*name).to_owned(), *samples)).collect();
    server.session_states = samples.iter().map(|(name, state, _)| ((*name).to_owned(), *state)).collect();
    let ns = |sessions: f64| (sessions * server.elapsed_ns as f64) as u64;
    let (cpu, ready) = (cpu.map(ns), ready.map(ns));
    server.cpu = cpu.map(|user_ns| CpuTime { user_ns, ..CpuTime::default() });
    server.run_delay_ns = ready;
    run
}

const SEEN: [(&str, SessionState, u64); 5] = [
    ("CPU", SessionState::Processor, 3_000),
    ("IO", SessionState::Read, 2_000),
    ("WAL", SessionState::LogWrite, 1_000),
    ("Lock", SessionState::Lock, 500),
    ("LWLock", SessionState::Other, 200),
];

#[test]
fn a_local_server_shows_who_ran_and_who_could_not() {
    let parts = of(&server(&SEEN, 1_000, Some(1.2), Some(1.8)), 0);
    is_near(likely(&parts, Place::Running), 1.2);
    is_near(likely(&parts, Place::Ready), 1.8);
    for (place, sessions) in [(Place::Reads, 2.0), (Place::Log, 1.0), (Place::Locks, 0.5), (Place::OtherWaits, 0.2)] {
        is_near(likely(&parts, place), sessions);
    }
    // Two standard errors of 2,000 of 10,000 looks at sessions.
    let (least, most) = bounds(&parts, Place::Reads);
    is_near(most - least, 4.0 * (2_000.0_f64 * 0.8).sqrt() / 1_000.0);
    // 10 - 3.7 that waited - 3 at processors, of which the generator's 0.2 processors may have some.
    is_near(bounds(&parts, Place::Client).1, 0.2);
    is_near(likely(&parts, Place::Outside), 3.1);
    let (least, most) = bounds(&parts, Place::Outside);
    assert!(least > 2.6 && most < 3.9, "{parts:#?}");
    adds_up(&parts);
    let quick =
        of(&server(&SEEN.map(|(name, state, samples)| (name, state, samples / 100)), 10, Some(1.2), Some(1.8)), 0);
    let width = |parts: &TimeParts| bounds(parts, Place::Reads).1 - bounds(parts, Place::Reads).0;
    is_near(width(&quick) / width(&parts), 10.0);
}

#[test]
fn processor_time_of_work_for_no_session_makes_nothing_certain() {
    // Three sessions wanted a processor, and the server used six: checkpoints, say.
    let parts = of(&server(&SEEN, 1_000, Some(6.0), Some(0.5)), 0);
    let (least, most) = bounds(&parts, Place::Running);
    assert!(least > 2.2 && least < 2.5, "{parts:#?}");
    is_near(most, 6.0);
    adds_up(&parts);
    // Processes that were woken wait for a processor while their sessions still count as waiting.
    let parts = of(&server(&SEEN, 1_000, Some(1.2), Some(9.0)), 0);
    is_near(likely(&parts, Place::Ready), 10.0 - 3.7 - 1.2);
    is_near(likely(&parts, Place::Reads), 2.0);
    assert_eq!(likely(&parts, Place::Outside), 0.0);
}

#[test]
fn a_remote_server_shows_no_processors_and_they_stay_unknown() {
    let parts = of(&server(&SEEN, 1_000, None, None), 0);
    for place in [Place::Running, Place::Ready] {
        let (least, most) = bounds(&parts, place);
        assert!(least == 0.0 && most > 3.0 && most < 3.2, "{place:?}: {parts:#?}");
        assert_eq!(likely(&parts, place), 0.0);
    }
    // Those three, and the generator's own work.
    is_near(likely(&parts, Place::Unknown), 3.2);
    is_near(likely(&parts, Place::Outside), 3.1);
    // Nothing looked at its sessions: all of it may be anywhere.
    let unseen = of(&server(&[], 0, None, None), 0);
    for place in
        [Place::Outside, Place::Running, Place::Ready, Place::Reads, Place::Log, Place::Locks, Place::OtherWaits]
    {
        assert_eq!(bounds(&unseen, place), (0.0, 10.0), "{place:?}");
    }
    assert_eq!(likely(&unseen, Place::Unknown), 10.0);
    let mut silent = server(&SEEN, 1_000, None, None);
    silent.steps[0].servers.clear();
    silent.steps[0].waits.clear();
    assert_eq!(likely(&of(&silent, 0), Place::Unknown), 10.0, "a server that nothing was heard of");
    let two = of(&servers::two_nodes(), 0);
    assert!(bounds(&two, Place::Running).0 == 0.0 && bounds(&two, Place::Running).1 > 0.0, "{two:#?}");
}

#[test]
fn a_state_that_was_never_seen_may_still_exist() {
    let parts = of(&server(&[("CPU", SessionState::Processor, 100)], 10, Some(9.0), Some(1.0)), 0);
    let (least, most) = bounds(&parts, Place::Locks);
    assert!(least == 0.0 && (most - 0.2).abs() < 1e-9, "{parts:#?}");
    adds_up(&parts);
}

#[test]
fn where_a_server_does_not_distinguish_reads_its_times_of_them_do() {
    let executing = [("executing", SessionState::ProcessorOrRead, 7_000)];
    let mut run = server(&executing, 1_000, Some(1.5), Some(0.5));
    let elapsed_ns = run.steps[0].servers[0].elapsed_ns;
    run.steps[0].servers[0].activity.insert(Activity::BlockReadNs, 5 * elapsed_ns);
    let parts = of(&run, 0);
    is_near(likely(&parts, Place::Reads), 5.0);
    is_near(likely(&parts, Place::Running), 1.5);
    is_near(likely(&parts, Place::Ready), 0.5);
    is_near(likely(&parts, Place::Outside), 2.8);
    adds_up(&parts);
    run.steps[0].servers[0].activity.remove(&Activity::BlockReadNs);
    let parts = of(&run, 0);
    assert_eq!(bounds(&parts, Place::Reads).0, 0.0);
    assert!(bounds(&parts, Place::Reads).1 > 7.0, "{parts:#?}");
    adds_up(&parts);
}

#[test]
fn parts_of_an_engine_are_those_of_its_operations() {
    let run = sample::updates(20);
    let step = &run.steps[0];
    let (parts, time) = (of(&run, 0), OperationTime::of(&run, step).unwrap());
    let rate = Figures(step).operations_per_s().unwrap();
    let sessions = |ns: Option<f64>| ns.unwrap() * rate / 1e9;
    is_near(likely(&parts, Place::Log), sessions(time.log.ns));
    assert_eq!(bounds(&parts, Place::Log).0, bounds(&parts, Place::Log).1);
    // 64 blocks of an operation may be waited for at once.
    let reads = step.waits[0].waits.total_ns().unwrap() as f64 / step.window.duration_ns as f64;
    is_near(bounds(&parts, Place::Reads).0, reads / 64.0);
    is_near(bounds(&parts, Place::Reads).1, reads.min(parts.sessions - likely(&parts, Place::Log)));
    let mut alone = run.clone();
    alone.parameters.insert("WORK_UNIT".to_owned(), "1".to_owned());
    alone.steps[0].waits[0].waits = sample::latencies(1_000, 3_000_000);
    let parts = of(&alone, 0);
    let reads = alone.steps[0].waits[0].waits.total_ns().unwrap() as f64 / step.window.duration_ns as f64;
    is_near(bounds(&parts, Place::Reads).0, reads);
    is_near(bounds(&parts, Place::Reads).1, reads);
    assert!(bounds(&parts, Place::Ready).0 == 0.0 && bounds(&parts, Place::Ready).1 > 20.0, "{parts:#?}");
    // The lanes were busy for half a processor; its process used more.
    is_near(likely(&parts, Place::Running), 0.5);
    let mut untimed = alone.clone();
    untimed.steps[0].waits.clear();
    let parts = of(&untimed, 0);
    assert_eq!(bounds(&parts, Place::Reads), (0.0, 32.0));
}

#[test]
fn a_second_in_which_nothing_finishes_still_has_its_sessions() {
    let mut run = raw(2.0);
    let step = &mut run.steps[0];
    // All sessions were ready for 40 ms in the ten seconds.
    step.generator.as_mut().unwrap().idle_session_ns = 16 * SECOND / 25;
    step.intervals[5].response = Histogram::default();
    step.intervals[5].counters.operations = Some(0);
    let step = &run.steps[0];
    let parts = TimeParts::of_second(&run, step, &step.intervals[5]).unwrap();
    let under_way = parts.sessions - bounds(&parts, Place::Generator).1;
    is_near(under_way, 16.0 - 0.64);
    is_near(likely(&parts, Place::Generator), 0.064);
    adds_up(&parts);
}
