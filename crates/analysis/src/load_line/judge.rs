//! The verdict on one open-loop step: whether its rate was carried within the latency target.

use crate::generator::{LATE, own_lag_p99_ns};
use crate::replay;
use crate::sending;
use crate::steadiness::{self, Excursion, ROUNDS};
use crate::{Figures, GeneratorVerdict, LatencyTarget, LimitedBy, Subject, VerdictOutcome, is_on_server};
use model::record::Workload;
use model::record::{Histogram, Interval, Step};

/// A queue grows if the mean response time of the middle second is longer in each round than in the one before, and in the
/// last one at least this many times as long as in the first.
const QUEUE_GROWTH: f64 = 2.0;
/// A rate of which this share fails is not carried: what failed has no latency to judge it by.
const FAILED: f64 = 0.01;

/// A machine that was idle for less than this share of the time had no processor free.
const IDLE: f64 = 0.05;

/// The verdict on a step of an open loop; absent for a closed loop and where nothing was measured. Without a subject the
/// target judges the response time of all operations.
///
/// A rate that was not reached, behind which a queue grew, or of which much failed, has failed however short its latency
/// still was. A rate that passes does so also when the generator was busy or late, for response times contain the lateness. One that
/// does not pass is then no verdict on the target, unless too many operations failed: a generator without time sends late, and
/// makes no errors.
pub fn judge(step: &Step, target: &LatencyTarget) -> Option<VerdictOutcome> {
    step.load.rate_operations_per_s?;
    if fails_beyond(step, target, FAILED) {
        return Some(VerdictOutcome::Failed);
    }
    let subject = target.subject.clone().unwrap_or(Subject::Response(None));
    let is_lost = sending::behind(step).is_some();
    let Some(times) = subject.times(step) else {
        // What never came back has no time, and was not carried all the same.
        return is_lost.then(|| {
            let is_excused = is_generator_busy(step) || crowd(step).is_some();
            if is_excused { VerdictOutcome::GeneratorBound } else { VerdictOutcome::Failed }
        });
    };
    let value = Some(quantile_of_ended(step, &subject, target)).filter(|quantile| *quantile <= 1.0);
    let value = value.and_then(|quantile| times.quantile_ns(quantile));
    let within = value.is_some_and(|ns| ns <= target.limit.0) && !is_left_open(&subject, target, &times, step);
    let outcome = if is_lost || queue_grows(step) {
        VerdictOutcome::Failed
    } else if is_unsteady(step, &subject, target) {
        VerdictOutcome::Unsteady
    } else if within {
        VerdictOutcome::Passed
    } else {
        VerdictOutcome::Failed
    };
    let excused = outcome != VerdictOutcome::Passed && is_generator_bound(step, &subject, target, within);
    Some(if excused { VerdictOutcome::GeneratorBound } else { outcome })
}

/// The quantile of the times that are known. What has none and is over the limit already takes its ranks too; of one kind it is taken to be
/// as large a share as of all.
fn quantile_of_ended(step: &Step, subject: &Subject, target: &LatencyTarget) -> f64 {
    if !matches!(subject, Subject::Response(_)) {
        return target.quantile;
    }
    let ended: u64 = Figures(step).response().map_or(0, |times| times.count());
    target.quantile * (1.0 + overdue(step, target) / ended.max(1) as f64)
}

/// Operations that had no answer when the window closed, though they fell due longer before than the limit, whether they were sent or
/// waited for a slot: a stall at the end shows in them alone. Those that failed were answered, and not with what was asked for. At least
/// so many: what was carried in from the warm-up is not distinguished.
fn overdue(step: &Step, target: &LatencyTarget) -> f64 {
    let Some(generator) = step.generator.as_ref() else { return 0.0 };
    if let Some(ages) = &generator.backlog_ages {
        // What was sent counts with its own time.
        return (ages.count() - ages.below_ns(target.limit.0).1) as f64;
    }
    let Some(due) = generator.due_operations else { return 0.0 };
    let unfinished = due.saturating_sub(step.counters.operations.unwrap_or(due)) as f64;
    let within_limit = due as f64 * target.limit.0 as f64 / step.window.duration_ns.max(1) as f64;
    // As many may have fallen due within the limit before the end, and by chance some more.
    (unfinished - within_limit - 3.0 * within_limit.sqrt()).max(0.0)
}

/// Whether more operations failed than a limit allows; without `--errors`, more than may take longer than it by chance.
pub(crate) fn fails_too_often(step: &Step, target: &LatencyTarget) -> bool {
    fails_beyond(step, target, FAILED.min(1.0 - target.quantile + 1e-9))
}

fn fails_beyond(step: &Step, target: &LatencyTarget, usual: f64) -> bool {
    Figures(step).failed_share().is_some_and(|share| share > target.errors.unwrap_or(usual))
}

/// Whether so many operations never ended that the quantile lies among them. Of one kind they are taken to be as large a share as of all.
pub(crate) fn ends_too_seldom(step: &Step, target: &LatencyTarget) -> bool {
    let Some(late) = step.unended.filter(|_| !matches!(target.subject, Some(Subject::Event(_)))) else { return false };
    // Those that were timed are among the times that are judged.
    let timed: u64 = step.outstanding.iter().map(|kind| kind.unended.count()).sum();
    let untimed = late.operations.saturating_sub(timed);
    let all = Figures(step).response().map_or(0, |times| times.count()).saturating_add(untimed);
    untimed > 0 && untimed as f64 > (1.0 - target.quantile + 1e-9) * all as f64
}

/// Whether `times` keep the limit only if operations that never ended would have: those that were waited for no longer than it may have
/// taken any longer time.
fn is_left_open(subject: &Subject, target: &LatencyTarget, times: &Histogram, step: &Step) -> bool {
    let open: u64 = subject.unended(step).map(|ages| ages.below_ns(target.limit.0.saturating_add(1)).1).sum();
    let quantile = quantile_of_ended(step, subject, target) + open as f64 / times.count().max(1) as f64;
    open > 0 && (quantile > 1.0 + 1e-9 || times.quantile_ns(quantile).is_none_or(|ns| ns > target.limit.0))
}

/// The same of what a target judges in a step.
pub(crate) fn leaves_open(step: &Step, target: &LatencyTarget) -> bool {
    let subject = target.subject.clone().unwrap_or(Subject::Response(None));
    // What misses the limit without them is missed, whatever they would have taken.
    let keeps = |times: &Histogram| {
        let quantile = quantile_of_ended(step, &subject, target);
        quantile <= 1.0 && times.quantile_ns(quantile).is_some_and(|ns| ns <= target.limit.0)
    };
    subject.times(step).is_some_and(|times| keeps(&times) && is_left_open(&subject, target, &times, step))
}

/// The same for either loop, of what a step of `workload` is judged by; absent where nothing that the target judges happened,
/// or was reported too widely to say. A closed loop cannot fall behind: it keeps the limit or not, and a limit that it missed
/// while the load generator had no processor time left says nothing about the target.
pub(crate) fn outcome(workload: Workload, step: &Step, target: &LatencyTarget) -> Option<VerdictOutcome> {
    let target = target.of_step(workload, step);
    let is_reported =
        target.subject.as_ref().and_then(|subject| subject.times(step)).is_some_and(|times| times.is_reported());
    if step.load.rate_operations_per_s.is_some() && !is_reported {
        return judge(step, &target);
    }
    if fails_too_often(step, &target) {
        return Some(VerdictOutcome::Failed);
    }
    let is_lost = sending::behind(step).is_some() || ends_too_seldom(step, &target) || leaves_open(step, &target);
    // Of what failed alone nothing has a time.
    let is_met = if is_lost { false } else { target.is_met(workload, step)? };
    Some(match is_met {
        true => VerdictOutcome::Passed,
        false if is_generator_busy(step) || crowd(step).is_some() => VerdictOutcome::GeneratorBound,
        false => VerdictOutcome::Failed,
    })
}

/// What steps come to that have several limits to keep: the worst of what each limit says.
pub fn judge_all(workload: Workload, step: &Step, limits: &[LatencyTarget]) -> Option<VerdictOutcome> {
    const WORST_FIRST: [VerdictOutcome; 4] =
        [VerdictOutcome::Failed, VerdictOutcome::GeneratorBound, VerdictOutcome::Unsteady, VerdictOutcome::Passed];
    let outcomes: Vec<VerdictOutcome> = limits.iter().filter_map(|limit| outcome(workload, step, limit)).collect();
    WORST_FIRST.into_iter().find(|worst| outcomes.contains(worst))
}

/// Whether the figures show the limit of the load generator rather than the target's.
pub(crate) fn is_generator_busy(step: &Step) -> bool {
    GeneratorVerdict::of(step).is_some_and(|verdict| verdict.limited_by == LimitedBy::Generator)
}

/// What left this machine no idle processor for its load generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Crowd {
    /// Other programs, or the kernel's own work.
    Others,
    /// The hypervisor, which gave them to other machines.
    Hypervisor,
    /// Both together.
    Both,
}

impl Crowd {
    /// Who did it, before `took`.
    pub(crate) fn who(self) -> &'static str {
        match self {
            Self::Others => "other programs or the kernel",
            Self::Hypervisor => "the hypervisor",
            Self::Both => "other programs and the hypervisor",
        }
    }

    /// What happened, in a clause.
    pub(crate) fn words(self) -> String {
        format!("{} took this machine's CPUs", self.who())
    }
}

/// What took half of this machine's used processors or more, and left none idle: then requests are sent late and answers are seen late, and
/// times of either kind are too long. A server on the machine is the target itself.
pub(crate) fn crowd(step: &Step) -> Option<Crowd> {
    let (host, own_ns) = (step.host_cpu?, step.process_cpu?.busy_ns());
    let (busy_ns, stolen_ns, free_ns) = (host.busy_ns(), host.steal_ns.unwrap_or(0), host.free_ns()?);
    let used_ns = busy_ns.saturating_add(stolen_ns);
    let all = used_ns as f64 + free_ns as f64;
    let is_full = all > 0.0 && (free_ns as f64) < IDLE * all;
    let half_ns = used_ns / 2;
    let is_taken = is_full && !is_on_server(step) && own_ns < half_ns;
    is_taken.then(|| match (stolen_ns >= half_ns, busy_ns.saturating_sub(own_ns) >= half_ns) {
        (true, _) => Crowd::Hypervisor,
        (false, true) => Crowd::Others,
        (false, false) => Crowd::Both,
    })
}

/// The lateness of the load generator (p99), if it can have decided over the limit: it is its own, it is not small against
/// the limit, and without it the limit might have been kept.
pub(crate) fn deciding_lateness_ns(step: &Step, target: &LatencyTarget) -> Option<u64> {
    let lag = own_lag_p99_ns(step).filter(|ns| *ns as f64 > LATE * target.limit.0 as f64)?;
    // Who has no time to send has none to look at answers either, so that service times may be as much too long.
    let service = Figures(step).service().and_then(|times| times.quantile_ns(target.quantile));
    let is_the_targets = service.is_some_and(|ns| ns > target.limit.0.saturating_add(lag));
    (!is_the_targets && !exceeds_in_spite(step, target)).then_some(lag)
}

/// Whether more response times exceed the limit than the lateness of the load generator explains, even if each answer was also looked at as
/// late as its request was sent. An operation that waited for a slot waited for the target.
fn exceeds_in_spite(step: &Step, target: &LatencyTarget) -> bool {
    let own = step.generator.as_ref().and_then(|generator| generator.own_lag.as_ref());
    let subject = target.subject.clone().unwrap_or(Subject::Response(None));
    let response = subject.times(step).filter(|_| matches!(subject, Subject::Response(_)));
    let Some((own, response)) = own.zip(response) else { return false };
    let above = |count: u64, all: u64| count as f64 / all.max(1) as f64;
    [0.99, 0.999, 1.0].into_iter().filter_map(|quantile| own.quantile_ns(quantile)).any(|late_ns| {
        let later = above(own.count() - own.below_ns(late_ns.saturating_add(1)).0, own.count());
        let beyond_ns = target.limit.0.saturating_add(late_ns.saturating_mul(2));
        let beyond = above(response.count() - response.below_ns(beyond_ns).1, response.count());
        beyond - 2.0 * later > 1.0 - target.quantile
    })
}

/// Whether the load generator had no time to send what was due, though it had slots to send it with. The lateness of what it
/// sent is in response times only: others that are not `within` the limit miss it by themselves.
fn is_generator_bound(step: &Step, subject: &Subject, target: &LatencyTarget, within: bool) -> bool {
    let has_lateness = within || matches!(subject, Subject::Response(_));
    is_generator_busy(step) || crowd(step).is_some() || (has_lateness && deciding_lateness_ns(step, target).is_some())
}

/// One figure for each of five rounds of the window; absent where a round has none.
fn rounds(step: &Step, figure: impl Fn(&[&Interval]) -> Option<f64>) -> Option<[f64; ROUNDS]> {
    let seconds = steadiness::seconds_inside(step);
    let mut figures = [0.0; ROUNDS];
    for (value, round) in figures.iter_mut().zip(steadiness::in_rounds(&seconds)?) {
        *value = figure(round)?;
    }
    Some(figures)
}

fn queue_grows(step: &Step) -> bool {
    if replay::is_of_trace(step) {
        // A load that grows has queues that grow with it; a queue that is left at the end is seen in what was not sent.
        return false;
    }
    // Of each round the middle second: a queue that grows is longer in all of them, a stall is in few.
    let means = rounds(step, |round| {
        let mut seconds: Vec<f64> = round.iter().filter_map(|second| second.response.mean_ns()).collect();
        seconds.sort_by(f64::total_cmp);
        seconds.get(seconds.len() / 2).copied()
    });
    means.is_some_and(|means| {
        means.windows(2).all(|pair| pair[1] > pair[0]) && means[ROUNDS - 1] >= QUEUE_GROWTH * means[0]
    })
}

/// Whether the rate was not steady, or the latency in a way that decides: some rounds keep the limit and others do not.
fn is_unsteady(step: &Step, subject: &Subject, target: &LatencyTarget) -> bool {
    if steadiness::unsteady(step).is_some() {
        return true;
    }
    if replay::is_of_trace(step) {
        return false;
    }
    let latencies = rounds(step, |round| {
        let mut all = Histogram::default();
        round.iter().filter_map(|second| subject.times_of_interval(second)).for_each(|times| all.merge(times));
        let enough = all.count() >= target.durations_wanted();
        enough.then(|| all.quantile_ns(target.quantile)).flatten().map(|ns| ns as f64)
    });
    let Some(latencies) = latencies else { return false };
    let kept = latencies.iter().filter(|ns| **ns <= target.limit.0 as f64).count();
    (1..ROUNDS).contains(&kept) && Excursion::of(&latencies).is_some_and(|excursion| !excursion.is_steady())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use model::record::sample::{self, Level};

    /// A minute of an open loop that carries `rate` with a median response of `us` microseconds (p99 is 2.4 times that).
    pub(crate) fn open(rate: u64, us: u64) -> Step {
        let level = Level { sessions: 64, operations_per_s: rate, read_ns: us * 1_000, seconds: 60, update_pct: 0 };
        let mut step = sample::run(&[level]).steps.swap_remove(0);
        step.label = format!("r{rate}");
        step.load.rate_operations_per_s = Some(rate as f64);
        step.operations[0].response = sample::latencies(rate * 60, us * 1_000);
        step.operations[0].service = step.operations[0].response.clone();
        for interval in &mut step.intervals {
            interval.response = sample::latencies(rate, us * 1_000);
        }
        let generator = step.generator.as_mut().unwrap();
        generator.due_operations = Some(rate * 60);
        generator.backlog_operations = Some(0);
        step
    }

    fn verdict(step: &Step) -> Option<VerdictOutcome> {
        judge(step, &LatencyTarget::default())
    }

    #[test]
    fn a_stall_at_the_end_is_no_queue_that_grows() {
        let mut step = open(1_000, 300);
        for (round, us) in [300, 310, 320, 330, 340].into_iter().enumerate() {
            set_round(&mut step, round, us);
        }
        // Twice the mean of the first round, by 0.8 % of the last.
        step.intervals.last_mut().unwrap().response.record_n(60_000_000, 100);
        assert_eq!(verdict(&step), Some(VerdictOutcome::Passed));
    }

    fn set_round(step: &mut Step, round: usize, us: u64) {
        let inside = step.intervals.iter_mut().filter(|interval| !interval.warmup);
        for interval in inside.skip(round * 12).take(12) {
            interval.response = sample::latencies(1_000, us * 1_000);
        }
    }

    #[test]
    fn a_rate_passes_or_fails_by_its_response_time() {
        assert_eq!(verdict(&open(1_000, 500)), Some(VerdictOutcome::Passed));
        assert_eq!(verdict(&open(1_000, 5_000)), Some(VerdictOutcome::Failed));
        let service: LatencyTarget = "service:p99=5ms".parse().unwrap();
        let mut queued = open(1_000, 5_000);
        queued.operations[0].service = sample::latencies(60_000, 200_000);
        assert_eq!(judge(&queued, &service), Some(VerdictOutcome::Passed));
    }

    #[test]
    fn a_rate_of_which_much_fails_is_not_carried_and_one_with_a_stray_error_is() {
        let with_errors = |errors: u64| {
            let mut step = open(1_000, 500);
            step.counters.operations = Some(60_000 - errors);
            step.counters.errors = Some(errors);
            step
        };
        assert_eq!(verdict(&with_errors(3_000)), Some(VerdictOutcome::Failed));
        assert_eq!(verdict(&with_errors(3)), Some(VerdictOutcome::Passed));
        assert!(sending::behind(&with_errors(3_000)).is_none(), "all that was due was sent and answered");
        // One in a thousand may take longer than the limit, and twice as many have no answer at all.
        let of_a_thousand = LatencyTarget { quantile: 0.999, ..LatencyTarget::default() };
        assert_eq!(judge(&with_errors(600), &of_a_thousand), Some(VerdictOutcome::Failed));
        assert_eq!(judge(&with_errors(3), &of_a_thousand), Some(VerdictOutcome::Passed));
        // A limit from the command line allows none without `--errors`.
        let mut asked = LatencyTarget { errors: Some(0.0), ..LatencyTarget::default() };
        assert_eq!(judge(&with_errors(3), &asked), Some(VerdictOutcome::Failed));
        asked.errors = Some(0.001);
        assert_eq!(judge(&with_errors(3), &asked), Some(VerdictOutcome::Passed));
        assert_eq!(judge(&with_errors(61), &asked), Some(VerdictOutcome::Failed));
        let mut closed = with_errors(120);
        closed.load.rate_operations_per_s = None;
        assert_eq!(outcome(Workload::Io, &closed, &of_a_thousand), Some(VerdictOutcome::Failed));
        assert_eq!(outcome(Workload::Io, &closed, &LatencyTarget::default()), Some(VerdictOutcome::Passed));
    }

    #[test]
    fn a_rate_of_which_nothing_comes_back_is_not_carried() {
        let mut dead = open(1_000, 500);
        dead.operations.clear();
        (dead.counters.operations, dead.counters.errors) = (Some(0), Some(6_000));
        assert_eq!(verdict(&dead), Some(VerdictOutcome::Failed));
        assert_eq!(outcome(Workload::Io, &dead, &LatencyTarget::default()), Some(VerdictOutcome::Failed));
        dead.load.rate_operations_per_s = None;
        assert_eq!(outcome(Workload::Io, &dead, &LatencyTarget::default()), Some(VerdictOutcome::Failed));
    }

    #[test]
    fn what_had_not_ended_when_the_window_closed_counts_as_late_once_it_is() {
        let unfinished = |count: u64| {
            let mut step = open(1_000, 500);
            step.counters.operations = Some(60_000 - count);
            step.operations[0].response = sample::latencies(60_000 - count, 500_000);
            step
        };
        assert_eq!(verdict(&unfinished(1_000)), Some(VerdictOutcome::Failed), "1.7 % came back too late or never");
        assert_eq!(verdict(&unfinished(10)), Some(VerdictOutcome::Passed), "5 are always under way");
        // Of one kind of operation, too: a check judges each by itself.
        let step = unfinished(1_000);
        let of_kind = LatencyTarget {
            subject: Some(Subject::Response(Some(step.operations[0].kind.clone()))),
            ..LatencyTarget::default()
        };
        assert_eq!(judge(&step, &of_kind), Some(VerdictOutcome::Failed));
        assert_eq!(judge(&unfinished(10), &of_kind), Some(VerdictOutcome::Passed));
        // Nor does it matter whether they were sent: what waited for a slot was late as well.
        let mut waited = unfinished(1_000);
        waited.generator.as_mut().unwrap().backlog_operations = Some(500);
        assert!(sending::behind(&waited).is_none());
        assert_eq!(verdict(&waited), Some(VerdictOutcome::Failed));
        // Of those that ended 0.3 % are over the limit, so their p99 keeps it; with 0.9 % more it does not.
        let mut close = unfinished(540);
        close.operations[0].response = sample::latencies(59_281, 500_000);
        close.operations[0].response.record_n(9_000_000, 179);
        assert_eq!(verdict(&close), Some(VerdictOutcome::Failed));
    }

    #[test]
    fn a_closed_loop_and_an_empty_step_are_not_judged() {
        let mut step = open(1_000, 500);
        step.operations.clear();
        assert_eq!(verdict(&step), None);
        let mut closed = open(1_000, 500);
        closed.load.rate_operations_per_s = None;
        assert_eq!(verdict(&closed), None);
    }

    #[test]
    fn a_rate_that_is_not_reached_fails_however_short_its_latency() {
        let mut step = open(1_000, 500);
        step.load.rate_operations_per_s = Some(1_200.0);
        step.generator.as_mut().unwrap().due_operations = Some(72_000);
        assert_eq!(verdict(&step), Some(VerdictOutcome::Failed));
    }

    #[test]
    fn a_queue_that_grows_fails_and_is_not_called_unsteady() {
        let mut step = open(1_000, 500);
        for round in 0..5 {
            set_round(&mut step, round, 300 + 200 * round as u64);
        }
        assert_eq!(verdict(&step), Some(VerdictOutcome::Failed));
    }

    #[test]
    fn rounds_on_both_sides_of_the_limit_are_unsteady_unless_they_are_alike() {
        let mut step = open(1_000, 500);
        for (round, us) in [(1, 9_000), (3, 6_000)] {
            set_round(&mut step, round, us);
        }
        assert_eq!(verdict(&step), Some(VerdictOutcome::Unsteady));
        let mut alike = open(1_000, 2_000);
        for (round, us) in [(0, 2_050), (1, 2_100), (3, 2_120)] {
            set_round(&mut alike, round, us);
        }
        assert_eq!(verdict(&alike), Some(VerdictOutcome::Passed));
    }

    #[test]
    fn latency_that_moves_on_one_side_of_the_limit_decides_nothing() {
        let mut step = open(1_000, 500);
        set_round(&mut step, 2, 1_500);
        assert_eq!(verdict(&step), Some(VerdictOutcome::Passed));
    }

    #[test]
    fn a_rate_that_stalls_and_catches_up_is_unsteady() {
        let mut step = open(1_000, 500);
        let inside = step.intervals.iter_mut().filter(|interval| !interval.warmup);
        for (interval, second) in inside.zip(0..) {
            match second {
                24..30 => interval.counters.operations = Some(0),
                30..36 => interval.counters.operations = Some(1_400),
                _ => {}
            }
        }
        assert_eq!(verdict(&step), Some(VerdictOutcome::Unsteady));
    }

    #[test]
    fn the_generators_own_limit_is_no_failure_of_the_target() {
        let mut busy = open(1_000, 5_000);
        busy.generator.as_mut().unwrap().busiest_share = 0.97;
        assert_eq!(verdict(&busy), Some(VerdictOutcome::GeneratorBound));
        busy.counters.errors = busy.counters.operations.map(|operations| operations / 20);
        assert_eq!(verdict(&busy), Some(VerdictOutcome::Failed), "no lack of time makes errors");
        let mut busy_but_in_time = open(1_000, 500);
        busy_but_in_time.generator.as_mut().unwrap().busiest_share = 0.97;
        assert_eq!(verdict(&busy_but_in_time), Some(VerdictOutcome::Passed));
    }

    #[test]
    fn lateness_is_the_generators_fault_only_while_it_is_own_lateness() {
        let mut late = open(1_000, 5_000);
        late.generator.as_mut().unwrap().schedule_lag = Some(sample::latencies(60_000, 4_000_000));
        assert_eq!(verdict(&late), Some(VerdictOutcome::GeneratorBound));
        late.load.sessions = Some(6);
        assert_eq!(verdict(&late), Some(VerdictOutcome::Failed), "5 of its 6 slots were waiting for the target");
        late.load.sessions = Some(64);
        late.generator.as_mut().unwrap().schedule_lag = Some(sample::latencies(60_000, 100_000));
        assert_eq!(verdict(&late), Some(VerdictOutcome::Failed), "0.24 of 5 ms does not matter");
    }
}
