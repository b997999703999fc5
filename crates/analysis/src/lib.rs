//! Pure functions from a [`Run`] to findings: what the numbers mean, and whether they can be trusted.
//!
//! [`Figures`] derives rates and shares from one step, so that every table and every finding computes them alike.
//! [`analyse`] says what is to be said about a run. Thresholds stand beside the rule that uses them.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod at_once;
mod burst;
mod busiest;
mod cache_sizes;
mod cache_trap;
mod calibration;
mod cannot_be;
pub mod capacity;
mod ceiling;
pub mod check;
mod comparison;
mod disk_groups;
mod doubts;
mod expected;
mod experiment;
mod failure;
mod figures;
mod finding;
mod fingerprint;
mod flash;
mod fleet;
mod generator;
pub mod history;
mod host;
mod interference;
mod known_credits;
mod last_minute;
mod levels;
mod likeness;
mod limit_verdict;
mod load_line;
mod map;
mod measured;
mod message;
mod metric;
mod modes;
mod network;
mod nfs;
mod opening;
mod operation_time;
pub mod production;
mod proof;
mod repeat;
mod replay;
mod requested;
mod rounds;
mod rule;
mod search;
mod seconds;
mod sending;
mod series;
mod server;
mod sizes;
mod stack;
mod stalls;
mod steadiness;
mod tiers;
mod time_parts;
mod together;
mod traffic;
pub mod trend;
mod vocabulary;
mod waits;

use std::collections::BTreeSet;

use model::record::{ASKED, Run, Workload};

pub use at_once::{is_of_jobs, joined};
pub use burst::{BurstFound, CreditNotSeen, Outlasted, RateRose};
pub use busiest::BusiestDevice;
pub use cache_sizes::CacheSizes;
pub use cache_trap::{CacheTrap, Trap};
pub use calibration::{
    Calibrated, Calibration, CalibrationConfidence, DepthMeasurement, DepthSearch, Estimate, LatencyCap, Question,
    REPEATS, SearchRule, Statistic, Stopped,
};
pub use cannot_be::CannotBe;
pub use ceiling::{
    Ceiling, Confidence, Grounds, Limit, PulseVerdict, PulseWanted, Pulsed, SizeWanted, other_size, pulse_wanted,
    size_wanted,
};
pub use comparison::{
    Bearing, Compared, ComparedFigure, ComparedLoad, Comparison, Difference, Doubt, ERROR_RATE, Evidence, FigureUnit,
    Grown, GrownStalls, Measure, NotRepeats, Overall, Pair, Repeats, SettingDifference, signed_percent,
};
pub use disk_groups::{
    CostOfCopies, DroppedMembers, GroupFinding, NamedMember, RepairedMembers, SlowMember, UnevenMember, Work,
};
pub use doubts::{CacheHeld, HeldUp, NotCompleted, NotEnded, NotSteady, OperationErrors, Stalled};
pub use expected::{Expected, Tagged, tagged_platform};
use expected::{volume_tag, volumes_by_tag};
pub use experiment::{Against, Bound as CaseBound, Case, CaseRate, CaseReading, ExperimentFound, FailureReading};
pub use failure::{FailureCost, FailureDemand, Pause, UsualSecond};
pub use figures::{Figures, foreground_waits, mean_us, single_block_reads, wait};
pub use finding::Finding;
pub use flash::{FLASH_READ, FlashCache, FlashLimit, Warming, left_out, shares_of_levels};
pub use fleet::{FleetFinding, PartFigure};
pub use generator::{GeneratorVerdict, LateAgainst, LimitedBy, SentLate};
pub use host::{
    Competition, FallCause, FarMemory, HostAnswer, HostFinding, LateTimers, MemorySaturated, QuotaHeld, SharedCores,
    SlowProcessor, Speed, SpeedFell, Stolen, WorkUnit, is_host_load,
};
pub use interference::{Interference, LoadBeside, NotBeside};
pub use last_minute::{LastMinute, highest_minute};
pub use levels::{TwoLevels, two_levels};
pub use likeness::{LikeRow, Multiple, NotLike, like_rows};
pub use limit_verdict::{Because, LimitAnswer, LimitVerdict, RunVerdict};
pub use load_line::{
    Crowd, Ended, Failing, FewWaits, Judgeable, Knee, LatencyTarget, LoadLine, MAX_VERDICTS, NotJudgeable,
    OpenLoadLine, Point, QuantileValue, Queue, RateKnee, RatePoint, Responds, ResponseShape, Scalability, Scales,
    StepLine, Subject, Verdict, VerdictOutcome, Why, is_hung, judge, judge_all,
};
pub use map::{MapAnswer, MapEnded, MapPlace, MappedMix, limit_of as limit_of_map, next_of_map};
use measured::{CELL_SINGLE_BLOCK_READ, is_measured, worst};
pub use measured::{SINGLE_BLOCK_READ, is_one_load, measured};
pub use message::{Message, Severity};
pub use model::record::{counted_per_s, rate};
pub use modes::{Mode, modes};
pub use network::{
    Bulk, BulkAnswer, CountedLoss, MatrixLink, NetworkBurst, NetworkCause, NetworkFinding, NetworkMatrix, NetworkSeen,
    NetworkStop, NetworkSurvey, NoProcessor, RoundTrip, SlowLink, stops_of,
};
pub use nfs::{
    ClientsAtLoad, ConnectionPoint, ConnectionSweep, NamedPath, NfsClients, NfsFinding, PathTrouble, Plateau,
    Published, SeenTrouble, SlotsFull, SlowPath, SweepVerdict,
};
pub use opening::{
    Carried, Claim, FirstScreen, FromCache, HowKnown, Latency, LimitLine, Opening, OpeningDoubt, StoppedBy, Tile, Unit,
};
pub use operation_time::{OperationTime, Part};
pub use proof::{
    BytesDisagree, DeviceSharedWithOthers, DurableWrites, PageCacheUse, SeenFlushes, is_through_page_cache,
};
pub use repeat::to_repeat;
pub use replay::{
    DifferingInterval, FAITHFUL_HIT_POINTS, FAITHFUL_LAG_NS, ReplayIncomplete, Replayed, ReplayedKind, replayed,
};
pub use requested::{ListedVerdict, analyse_as_requested, limits_of_command, requested_limits};
pub use rounds::{Round, round_of, rounds};
pub use rule::Rule;
pub use search::{Search, SearchPlan};
pub use seconds::LeftOut;
pub use sending::{ClientSaturated, FallbackEngine, KeptBy, RateNotReached, WaitedForProcessor};
pub use series::Series;
pub use server::{
    Beside, BesideLine, BesideUnit, BesideWhy, LogCheckpoints, MAX_AGREEING, Processors, Served, ServerFinding, Stops,
    UsedBy, imbalance, is_on_server, is_on_servers,
};
pub use sizes::SizeLimits;
pub use stack::{
    BusyArray, CompressedFiles, DegradedArray, FullPool, LostPaths, NvmeHealth, SnapshotKept, StackFinding,
};
pub use stalls::{
    Blame, CauseShare, Episode, SlowPoint, StallCause, Stalls, WatchedEpisode, WatchedStalls, WatchedSum,
};
pub use steadiness::{Excursion, Reached, SteadyState};
pub use tiers::{Cause, ReadSource, Tiers};
pub use time_parts::{Place, TimePart, TimeParts};
pub use together::{MIN_SECONDS, Measured, Together, TogetherPoint, TogetherVerdict};
pub use traffic::{Counted, operations_are_requests};
pub use vocabulary::{ThreadsFlag, Vocabulary, is_timed_from_sent, response_words};
pub use waits::{TopWait, WaitedForWriters, WriterWait};

/// Everything worth saying about `run`, most important first: what makes the answer doubtful, then the answer (how much
/// load is carried, and what limits it), then doubts that do not touch it, then the rest.
pub fn analyse(run: &Run, target: &LatencyTarget) -> Vec<Finding> {
    // Processors that are busy are what was asked for, and there is no storage to doubt.
    if is_host_load(run) {
        let mut findings: Vec<Finding> =
            doubts::ended(run).chain(host::find(run).into_iter().map(Finding::Host)).chain(fleet::find(run)).collect();
        sort_order(&mut findings);
        return findings;
    }
    let mut findings = doubts::find(run);
    findings.extend(generator::sent_late(run, target).into_iter().map(Finding::SentLate));
    findings.extend(cannot_be::find(run));
    findings.extend(proof::find(run));
    findings.extend(load_line::find_limits(run, target));
    findings.extend(Together::of(run).map(Finding::Together));
    findings.extend(waits::find(run));
    findings.extend(steadiness::find(run));
    findings.extend(stack::find(run));
    findings.extend(Stalls::worst(run, |_| true).map(Finding::Stalls));
    findings.extend(tiers::find(run));
    findings.extend(cache_trap::find(run));
    findings.extend(cache_sizes::find(run));
    findings.extend(flash::find(run));
    findings.extend(server::find(run));
    findings.extend(network::find(run));
    findings.extend(disk_groups::find(run));
    let of_nfs = nfs::find(run, &findings);
    findings.extend(of_nfs);
    findings.extend(fleet::find(run));
    findings.extend(likeness::find(run));
    findings.extend(replay::find(run));
    sort_order(&mut findings);
    findings
}

/// The same where nobody may have asked for a latency target. The usual one fits reads of single blocks by a database; that
/// raw requests take longer than that, as large ones and deep queues do, is no verdict on storage. Nor does it fit
/// operations of many blocks on a server, which does not time its reads for its clients.
pub fn analyse_asked(run: &Run, target: Option<&LatencyTarget>) -> Vec<Finding> {
    analyse_limits(run, target.map_or(&[], std::slice::from_ref))
}

/// The same for any number of latency targets, all of which the load is to keep. If there is one, the verdict is among the
/// findings.
pub fn analyse_limits(run: &Run, limits: &[LatencyTarget]) -> Vec<Finding> {
    let of_map = || map::limit_of(run);
    let mut findings = analyse(run, &limits.first().cloned().or_else(of_map).unwrap_or_default());
    let is_asked = !limits.is_empty();
    if !is_asked && operations_are_requests(run) {
        findings.retain(|finding| !matches!(finding, Finding::StepLine(StepLine::NoneMeets { .. })));
    }
    // An answer of its own has limits of its own. Nobody who imports a result has asked for a limit by that.
    let is_of_flows =
        || NetworkSurvey::of(run).is_some() || BulkAnswer::of(run).is_some() || NetworkMatrix::of(run).is_some();
    let is_open = run.steps.iter().any(|step| step.load.rate_operations_per_s.is_some());
    let has_own_answer = run.workload() == Workload::Calibrate
        || run.load.map().is_some()
        || run.check.is_some()
        || ConnectionSweep::of(run).is_some()
        || (!is_open && is_of_flows());
    if !is_asked && (has_own_answer || is_on_servers(run) || run.imported.is_some()) {
        findings.retain(|finding| !finding.is_load_line());
    }
    // Points of a map lie on both sides of its line, and most have a mix of their own.
    if run.load.map().is_some() {
        use Finding::{Ceiling, FewWaits, RateKnee, RateNotReached, Stalls, Tiers};
        let is_of_points = |it: &Finding| {
            matches!(it, RateNotReached(_) | RateKnee(_) | Ceiling(_) | FewWaits(_) | Stalls(_) | Tiers(_))
        };
        // Beyond the line queues grow, and the load generator may have no time left.
        let met = map::met_steps(run);
        let is_beyond = |it: &Finding| {
            it.severity() == Severity::Doubt
                && it.steps().is_some_and(|steps| !steps.iter().any(|step| met.contains(step)))
        };
        findings.retain(|it| !is_of_points(it) && !is_beyond(it));
    }
    // Multiples of what a check asks for are meant to end somewhere.
    if run.check.is_some() {
        let is_multiple = |step: &String| !step.starts_with(ASKED);
        findings.retain(|finding| !matches!(finding, Finding::RateNotReached(missed) if is_multiple(&missed.step)));
    }
    for limit in limits.iter().skip(1) {
        let more = load_line::more_lines(run, limit).into_iter();
        let late = generator::sent_late(run, limit).into_iter().map(Finding::SentLate);
        let new: Vec<Finding> = more.chain(late).filter(|finding| !findings.contains(finding)).collect();
        let after = findings.iter().rposition(Finding::is_load_line).map_or(0, |last| last + 1);
        findings.splice(after..after, new);
    }
    if let Some(verdict) = RunVerdict::of(run, &findings, limits) {
        findings.retain(|finding| !matches!(finding, Finding::RateKnee(knee) if knee.is_passed_by(run, limits)));
        findings.insert(0, Finding::Verdict(verdict));
        sort_order(&mut findings);
    }
    if run.imported.is_some() {
        findings.retain(|finding| fits_imported(run, finding));
    }
    // What the cache answers is asked for, as production's did.
    if run.like.is_some() {
        findings.retain(|finding| !matches!(finding, Finding::CacheHeld(_)));
    }
    if Vocabulary::of(run) == Vocabulary::Users {
        findings.retain(|finding| !is_about_storage_alone(finding));
    }
    findings
}

/// Whether a finding doubts that storage was measured. Transactions of an application are what they are with the cache that they have.
fn is_about_storage_alone(finding: &Finding) -> bool {
    use ServerFinding::{PageCacheServed, PageCacheUnknown};
    matches!(finding, Finding::CacheHeld(_) | Finding::Server(PageCacheServed { .. } | PageCacheUnknown { .. }))
}

/// Whether a finding says anything of a run that another program made. A production database is to find its blocks in its cache,
/// and no credit of a volume runs out in a test of a network.
fn fits_imported(run: &Run, finding: &Finding) -> bool {
    let touches_storage = matches!(
        run.workload(),
        Workload::Io | Workload::Orion | Workload::Calibrate | Workload::Slob | Workload::Database
    );
    match finding {
        Finding::CreditNotSeen(_) => touches_storage,
        // What another program used of its machine is no limit of a load generator of ours.
        Finding::FallbackEngine(_) | Finding::ClientSaturated(_) => false,
        Finding::CacheHeld(_) => run.workload() == Workload::Slob || run.parameters.contains_key("WORK_UNIT"),
        _ => true,
    }
}

// The order in which findings are reported: the answer first, unless something makes that very answer doubtful.

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum FindingRank {
    /// Whoever repeats the answer must hear this first.
    BeforeAnswer,
    Answer,
    /// Doubts about steps that the answer does not rest on.
    AfterAnswer,
    Rest,
}

/// Puts findings in the order in which they are reported.
fn sort_order(findings: &mut [Finding]) {
    let basis = Basis::of(findings);
    findings.sort_by_key(|finding| (basis.place(finding), finding.rank()));
}

/// Steps that the answers of a run rest on.
struct Basis {
    /// Steps whose figures are reported as the load that is carried.
    reported: BTreeSet<String>,
    /// These, and the steps that bound the answer from above: if the load generator was the limit there, it is the
    /// generator's load line.
    bounding: BTreeSet<String>,
}

impl Basis {
    fn of(findings: &[Finding]) -> Self {
        let (mut reported, mut bounding) = (BTreeSet::new(), BTreeSet::new());
        for finding in findings {
            match finding {
                Finding::StepLine(StepLine::Between { passing, failing, .. }) => {
                    reported.insert(passing.step.clone());
                    bounding.insert(failing.above.step.clone());
                }
                Finding::StepLine(StepLine::OnlyAbove { passing: point, .. })
                | Finding::StepLine(StepLine::AllMeet { most: point, .. })
                | Finding::StepLine(StepLine::NoneMeets { least: point, .. }) => {
                    reported.insert(point.step.clone());
                }
                Finding::OpenLoadLine(line) => {
                    reported.extend(line.passing.iter().map(|point| point.step.clone()));
                    bounding.extend(line.ceiling().map(|point| point.step.clone()));
                }
                _ => {}
            }
        }
        bounding.extend(reported.iter().cloned());
        Self { reported, bounding }
    }

    fn place(&self, finding: &Finding) -> FindingRank {
        // Without a step to rest on, any doubt may be the reason why there is none.
        let concerns = |basis: &BTreeSet<String>, steps: &[String]| {
            basis.is_empty() || steps.iter().any(|step| basis.contains(step))
        };
        let leads = match (finding.severity(), finding) {
            (Severity::Answer, _) => return FindingRank::Answer,
            (Severity::Note, _) => return FindingRank::Rest,
            (
                Severity::Doubt,
                Finding::ClientSaturated(ClientSaturated { steps, .. })
                | Finding::Server(ServerFinding::ProcessorsExhausted { steps, .. }),
            ) => concerns(&self.bounding, steps),
            (Severity::Doubt, Finding::Ceiling(ceiling)) => concerns(&self.bounding, &ceiling.steps),
            (Severity::Doubt, finding) => finding.steps().is_none_or(|steps| concerns(&self.reported, steps)),
        };
        if leads { FindingRank::BeforeAnswer } else { FindingRank::AfterAnswer }
    }
}

#[cfg(test)]
mod sampling_tests;
#[cfg(test)]
mod tests;

#[cfg(test)]
mod order_tests {
    use crate::{Finding, LatencyTarget, StepLine, analyse};
    use model::record::{Outcome, Run, sample};

    /// The findings of a sweep of 1 to 32 sessions, of which 16 are the load line, with one step disturbed.
    fn findings_with(step: usize, disturb: impl Fn(&mut model::record::Step)) -> Vec<Finding> {
        let mut run = sample::sweep(60);
        disturb(&mut run.steps[step]);
        analyse(&run, &LatencyTarget::default())
    }

    fn stall(step: &mut model::record::Step) {
        for interval in step.intervals.iter_mut().filter(|interval| !interval.warmup).take(3) {
            interval.counters.operations = Some(0);
        }
    }

    fn saturate(step: &mut model::record::Step) {
        step.generator.as_mut().unwrap().busiest_share = 0.99;
    }

    fn position(found: &[Finding], is: impl Fn(&Finding) -> bool) -> usize {
        found.iter().position(is).unwrap_or_else(|| panic!("not in {found:#?}"))
    }

    #[test]
    fn a_doubt_about_another_step_comes_after_the_answer() {
        for step in [0, 2, 5] {
            let found = findings_with(step, stall);
            assert!(matches!(found[0], Finding::StepLine(StepLine::Between { .. })), "step {step}: {found:#?}");
            let doubt = position(&found, |finding| matches!(finding, Finding::Stalled(_)));
            let knee = position(&found, |finding| matches!(finding, Finding::Knee(_)));
            assert!(doubt > knee, "answers stand together: {found:#?}");
        }
    }

    #[test]
    fn a_doubt_about_the_step_that_the_answer_rests_on_comes_first() {
        let found = findings_with(4, stall);
        let doubt = position(&found, |finding| matches!(finding, Finding::Stalled(_)));
        let line = position(&found, |finding| matches!(finding, Finding::StepLine(StepLine::Between { .. })));
        assert!(doubt < line, "{found:#?}");
    }

    #[test]
    fn the_load_generator_comes_first_where_it_can_have_drawn_the_line() {
        for (step, leads) in [(0, false), (3, false), (4, true), (5, true)] {
            let found = findings_with(step, saturate);
            assert_eq!(matches!(found[0], Finding::ClientSaturated(_)), leads, "step {step}: {found:#?}");
        }
    }

    #[test]
    fn how_a_run_ended_and_what_is_true_of_all_steps_comes_first() {
        let first = |change: fn(&mut Run)| {
            let mut run = sample::sweep(60);
            change(&mut run);
            analyse(&run, &LatencyTarget::default()).swap_remove(0)
        };
        assert!(matches!(first(|run| run.outcome = Outcome::Interrupted), Finding::NotCompleted(_)));
        let page_cache = |run: &mut Run| {
            run.target.facts.files.direct_io = Some(false);
        };
        assert!(matches!(first(page_cache), Finding::PageCacheUsed(_)));
    }

    #[test]
    fn without_an_answer_every_doubt_comes_first() {
        let mut run = sample::sweep(60);
        stall(&mut run.steps[1]);
        let target = LatencyTarget { subject: Some("nothing".into()), ..LatencyTarget::default() };
        let found = analyse(&run, &target);
        let doubt = position(&found, |finding| matches!(finding, Finding::Stalled(_)));
        assert!(doubt < position(&found, |finding| matches!(finding, Finding::StepLine(StepLine::NotJudged { .. }))));
    }
}

#[cfg(test)]
mod chance {
    //! Random numbers from a seed, for resampling.

    /// SplitMix64 (Steele, Lea and Flood, 2014): small, and good enough to draw from a few thousand values.
    #[derive(Debug, Clone)]
    pub(super) struct Chance(u64);

    impl Chance {
        pub(super) fn new(seed: u64) -> Self {
            Self(seed)
        }

        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ (z >> 31)
        }

        /// From 0 to 1, 1 excluded.
        pub(super) fn share(&mut self) -> f64 {
            (self.next() >> 11) as f64 / (1_u64 << 53) as f64
        }

        /// From 0 to `count`, `count` excluded; 0 if `count` is 0.
        pub(super) fn below(&mut self, count: usize) -> usize {
            ((self.share() * count as f64) as usize).min(count.saturating_sub(1))
        }
    }

    #[cfg(test)]
    impl Chance {
        /// From the standard normal distribution.
        pub(super) fn normal(&mut self) -> f64 {
            let radius = (-2.0 * (1.0 - self.share()).ln()).sqrt();
            radius * (std::f64::consts::TAU * self.share()).cos()
        }
    }
}
