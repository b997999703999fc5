//! Runs in which operations were held up for a while.

use super::super::{Interval, Moment, Moments, Run, SlowOperation};
use super::{Level, SECOND, run};

const MOMENT: u64 = 50_000_000;

/// A moment in which nothing happened but the load.
pub const USUAL: Moment = Moment {
    length_us: MOMENT / 1_000,
    overslept_us: 100,
    completed: Some(1_000),
    flushes: Some(1),
    device_us: Some(300_000),
    in_flight: Some(16),
    written_bytes: Some(80_000),
    others_bytes: Some(10_000),
    waited_us: Some(500),
    throttled_us: Some(0),
    stolen_us: Some(0),
    idle_us: Some(50_000),
    memory_stall_us: Some(0),
    retransmitted: Some(0),
};

/// A load of 32 sessions for 20 s, of which every moment was usual.
pub fn quiet() -> Run {
    let mut run = run(&[Level { sessions: 32, operations_per_s: 8_000, read_ns: 500_000, seconds: 20, update_pct: 0 }]);
    for interval in &mut run.steps[0].intervals {
        let count = (interval.duration_ns / MOMENT) as usize;
        interval.moments = Some(Moments::of(interval.offset_ns, &vec![USUAL; count]));
    }
    run
}

/// The interval in which an instant lies, from the start of the load.
fn interval(run: &mut Run, at_ns: u64) -> &mut Interval {
    let holds = |interval: &&mut Interval| at_ns < interval.offset_ns + interval.duration_ns;
    run.steps[0].intervals.iter_mut().find(holds).unwrap()
}

/// Holds up all sessions for so long, from an instant of the window on, with what the system did meanwhile.
pub fn stall(run: &mut Run, (from_ns, length_ns): (u64, u64), during: impl Fn(&mut Moment)) {
    let from_ns = from_ns + run.steps[0].window.warmup_ns;
    let until_ns = from_ns + length_ns;
    let sessions = run.steps[0].load.sessions.unwrap();
    for session in 0..sessions {
        let slow = SlowOperation {
            kind: "read".to_owned(),
            session,
            ended_ns: until_ns + u64::from(session) * 10_000,
            service_ns: length_ns,
            response_ns: length_ns,
            stands_for: 1.0,
        };
        let interval = interval(run, slow.ended_ns);
        let list = interval.slow.get_or_insert_default();
        list.count += 1;
        list.kept.push(slow);
        interval.response.record(length_ns);
        let operations = &mut run.steps[0].operations[0];
        operations.count += 1;
        operations.response.record(length_ns);
        operations.service.record(length_ns);
    }
    for interval in &mut run.steps[0].intervals {
        let Some(moments) = &mut interval.moments else { continue };
        let mut all: Vec<Moment> = moments.iter().collect();
        let mut at_ns = moments.begin_ns;
        for moment in &mut all {
            let end_ns = at_ns + moment.length_us * 1_000;
            if at_ns < until_ns && end_ns > from_ns {
                during(moment);
            }
            at_ns = end_ns;
        }
        *moments = Moments::of(moments.begin_ns, &all);
    }
}

/// A load whose device was silent for half a second once, and was held up for 300 ms in which nothing was seen another time.
pub fn stalled() -> Run {
    let mut run = quiet();
    stall(&mut run, (4 * SECOND, 500_000_000), |moment| (moment.completed, moment.device_us) = (Some(0), Some(0)));
    stall(&mut run, (9 * SECOND, 300_000_000), |_| ());
    run
}
