//! Whether a platform carries what was asked of it: yes, no, or not measurable, with the room that is left and why.
//!
//! A check runs an open loop at exactly the rates that are asked, then at multiples of them. The answer is read from the run
//! alone, so that it can be given again from its file.

mod kinds;
#[cfg(test)]
mod tests;
mod words;

pub use kinds::{Kind, Reached};
pub use words::words;

use super::doubts::hung;
use super::generator::{is_held_back, own_lag_p99_ns};
use super::load_line::judge::crowd;
use super::opening::{before, says_why};
use super::{
    Ceiling, Crowd, Finding, Limit, ServerFinding, Severity, Stops, UsedBy, VerdictOutcome, Vocabulary, is_measured,
    is_on_server,
};
use crate::sending::behind;
use crate::{Figures, Search, SearchPlan, Verdict};
use model::record::{ASKED, CheckRequest, Demands, Run, Step, Unended};
use model::units::Nanos;

/// Work that falls due at less than this share of what a ceiling lets through is not stopped by it.
const NEAR_CEILING: f64 = 0.8;
/// A share of the reads that is asked for; if fewer reach storage, a cache has answered the others.
const READS_REACHED: f64 = 0.95;
/// The same of writes, which a database does later, and several of one block at once.
const WRITES_REACHED: f64 = 0.9;

/// The answer to whether demands are carried.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// What was asked.
    pub demands: Demands,
    /// Of what.
    pub place: String,
    /// What must be known before the answer, such as that commits may be lost.
    pub before: Option<String>,
    /// Yes, no, or neither.
    pub answer: Carries,
    /// What came of exactly what was asked, in the step that the answer rests on; empty if none was measured.
    pub kinds: Vec<Reached>,
    /// How long exactly what was asked was measured at a stretch.
    pub window: Nanos,
    /// Measurements at exactly what is asked that met it, and all of them.
    pub met: (usize, usize),
    /// Why the first measurement at exactly what is asked did not meet it; absent if all of them did.
    pub missed: Option<Stopped>,
    /// How much of it is carried; absent where that is not known.
    pub room: Option<Room>,
    /// What came of relieving what stopped it; absent where that was not tried.
    pub relief: Option<Relief>,
    /// For how long nothing was answered at another multiple than what was asked, and at which; absent where there was no such time.
    pub hung_beside: Option<(Nanos, f64)>,
    /// Share of what its device read that was not for the check, 0 to 1; absent where others were not seen.
    pub others: Option<f64>,
    /// Whether it is not known if the reads of a server reached storage.
    pub may_be_memory: bool,
}

/// Whether demands are carried.
#[derive(Debug, Clone, PartialEq)]
pub enum Carries {
    /// All of them, at the same time.
    Yes,
    /// Not all of them.
    No(Shortfall),
    /// The run does not report.
    Unknown(Unmeasured),
}

impl Carries {
    /// It in a word or two.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No(_) => "no",
            Self::Unknown(_) => "not measurable",
        }
    }
}

/// How a rate was missed.
#[derive(Debug, Clone, PartialEq)]
pub enum Shortfall {
    /// Work took too long: the kinds of it that did.
    Late(Vec<Reached>),
    /// Less was finished than fell due, or a queue grew.
    FellBehind {
        /// Share of the rate that was finished, 0 to 1.
        share: Option<f64>,
    },
    /// Some of it failed. A database that is given an I/O error does not go on.
    Errors {
        /// Operations that failed.
        count: u64,
    },
    /// Nothing was answered for so long.
    Hung(Nanos),
    /// It was not steady, twice.
    NotSteady,
}

/// Why the run does not report.
#[derive(Debug, Clone, PartialEq)]
pub enum Unmeasured {
    /// It ended before there was an answer, in words.
    Ended(String),
    /// The load generator was the limit, or sent late: the 99th percentile of its lateness, if it is known.
    Generator {
        /// That lateness.
        late: Option<Nanos>,
        /// Who had its processors, where a server is on the same machine.
        processors: Option<Stops>,
        /// What kept it from them elsewhere, where that is known.
        kept_by: Option<KeptFrom>,
        /// Work that took longer than its limit even from when it was sent, though by no more than the lateness explains.
        once_sent: Option<Reached>,
    },
    /// Work waited for a slot, because all were busy, while what had one was done in time.
    Slots {
        /// How many there are.
        slots: u32,
    },
    /// Fewer reads reached storage than were asked for.
    Cached {
        /// Reads that did, per second.
        reads_per_s: f64,
        /// Reads that were asked for.
        asked_per_s: f64,
    },
    /// Fewer writes reached storage than were asked for.
    WrittenLater {
        /// Writes that did, per second.
        writes_per_s: f64,
        /// Writes that were asked for.
        asked_per_s: f64,
    },
    /// Too little of a kind of work for its percentile.
    TooFew {
        /// Which work.
        kind: Kind,
        /// How much there was.
        count: u64,
        /// How much the percentile needs.
        wanted: u64,
        /// Whether there were others, as parts of updates, which are timed with them.
        of_updates: bool,
        /// How long that takes at the rate at which they came, or that is asked where there were none.
        needs: Nanos,
    },
    /// It came out differently each time.
    Contradictory,
    /// Operations never ended and were given up before their limit had passed; the others kept it.
    GivenUp(Unended),
    /// Something else makes the figures void: a doubt, with its advice.
    Doubt {
        /// Its sentence.
        sentence: String,
        /// What to do about it.
        advice: Option<String>,
    },
}

/// Multiples of what is asked, between which the limit lies.
#[derive(Debug, Clone, PartialEq)]
pub struct Room {
    /// The largest multiple that was carried, below all that were not; absent if none was.
    pub carried: Option<f64>,
    /// What came of the largest that was carried.
    pub kinds: Vec<Reached>,
    /// The least multiple that was not carried, above that one; absent if all that were tried were.
    pub above: Option<f64>,
    /// What stopped it.
    pub stopped_by: Option<Stopped>,
}

/// What stopped a multiple.
#[derive(Debug, Clone, PartialEq)]
pub enum Stopped {
    /// A cap, the device or a server.
    Ceiling(Box<Ceiling>),
    /// What the time of a server's sessions went to.
    Server(Stops),
    /// It was missed.
    Missed(Shortfall),
    /// The load generator had no processor time left.
    Generator,
    /// The load generator sent late, though it had time.
    Schedule,
    /// All slots were busy, while work that had one was done in time.
    Slots(u32),
    /// Operations were given up too early to say.
    GivenUp(Unended),
}

impl Check {
    /// The answer of a run; absent if nothing of this kind was asked. `findings` are all that there are on the run.
    pub fn of(run: &Run, findings: &[Finding]) -> Option<Self> {
        let CheckRequest { demands, place, .. } = run.check.clone()?;
        let tried = Tried::of(run, &demands);
        let deciding = tried.deciding(1.0);
        let answer = match deciding {
            None => Carries::Unknown(Unmeasured::Ended(ended(findings))),
            Some(step) => answer(run, &demands, findings, &tried, step),
        };
        let knows_room = deciding.is_some() && (answer == Carries::Yes || matches!(answer, Carries::No(_)));
        Some(Self {
            place,
            before: before(findings),
            kinds: deciding.map(|step| kinds::reached(run, step, &demands, 1.0)).unwrap_or_default(),
            window: Nanos(tried.all_at(1.0).map(|(step, _)| step.window.duration_ns).max().unwrap_or(0)),
            met: tried.met(),
            missed: tried
                .all_at(1.0)
                .find(|(_, outcome)| *outcome != VerdictOutcome::Passed)
                .map(|(step, outcome)| why(run, step, &demands, outcome)),
            room: knows_room.then(|| room(run, &demands, findings, &tried)),
            others: others(findings, &tried),
            may_be_memory: findings
                .iter()
                .any(|finding| matches!(finding, Finding::Server(ServerFinding::PageCacheUnknown { .. }))),
            demands,
            relief: Relief::of(run),
            hung_beside: tried
                .steps
                .iter()
                .filter(|(_, times, _)| *times != 1.0)
                .filter_map(|(step, times, _)| Some((hung(step)?, *times)))
                .max_by_key(|(longest, _)| *longest),
            answer,
        })
    }
}

/// The label of each step that measured something, with what came of each kind of work in it; empty for a run that was no check.
pub fn steps(run: &Run) -> Vec<(String, Vec<Reached>)> {
    let Some(CheckRequest { demands, .. }) = run.check else { return Vec::new() };
    let of = |(step, times, _): &(&Step, f64, VerdictOutcome)| {
        (step.label.clone(), kinds::reached(run, step, &demands, *times))
    };
    Tried::of(run, &demands).steps.iter().map(of).collect()
}

/// The first limit that a check was asked about; absent for a run that was none, and without a limit.
pub fn first_limit(run: &Run) -> Option<super::LatencyTarget> {
    let demands = run.check.as_ref()?.demands;
    kinds::first_limit(run, run.steps.iter().find(|step| is_measured(step))?, &demands)
}

/// The steps of a check with their multiples and verdicts, in the order in which they ran.
struct Tried<'a> {
    steps: Vec<(&'a Step, f64, VerdictOutcome)>,
}

impl<'a> Tried<'a> {
    fn of(run: &'a Run, demands: &Demands) -> Self {
        let rate = |step: &Step| step.load.rate_operations_per_s.filter(|rate| *rate > 0.0);
        let once = run.steps.iter().find(|step| step.label.starts_with(ASKED)).and_then(rate);
        let mut steps = Vec::new();
        for step in
            run.steps.iter().filter(|step| is_measured(step) && step.outcome == model::record::Outcome::Completed)
        {
            let Some(times) = once.zip(rate(step)).map(|(once, rate)| rate / once) else { continue };
            let times = if step.label.starts_with(ASKED) { 1.0 } else { times };
            // Where nothing fell due there is nothing to judge.
            if step.generator.as_ref().and_then(|generator| generator.due_operations) != Some(0) {
                steps.push((step, times, kinds::verdict(run, step, demands)));
            }
        }
        Self { steps }
    }

    fn all_at(&self, times: f64) -> impl Iterator<Item = (&'a Step, VerdictOutcome)> + '_ {
        let same = move |(step, known, outcome): &(&'a Step, f64, VerdictOutcome)| {
            ((known - times).abs() <= 1e-9 * times).then_some((*step, *outcome))
        };
        self.steps.iter().filter_map(same)
    }

    /// Each multiple once, from the least, with what all steps at it come to.
    fn outcomes(&self) -> Vec<(f64, VerdictOutcome)> {
        let mut multiples: Vec<f64> = self.steps.iter().map(|(_, times, _)| *times).collect();
        multiples.sort_by(f64::total_cmp);
        multiples.dedup_by(|next, known| (*next - *known).abs() <= 1e-9 * *known);
        multiples.into_iter().filter_map(|times| Some((times, self.outcome(times)?))).collect()
    }

    /// Measurements at exactly what is asked that met it, and all of them.
    fn met(&self) -> (usize, usize) {
        let passed = self.all_at(1.0).filter(|(_, outcome)| *outcome == VerdictOutcome::Passed).count();
        (passed, self.all_at(1.0).count())
    }

    /// What all steps at this multiple come to; absent if there is none. It is carried if most of them carried it and nothing
    /// failed in any.
    fn outcome(&self, times: f64) -> Option<VerdictOutcome> {
        let count = |wanted| self.all_at(times).filter(|(_, outcome)| *outcome == wanted).count();
        let [passed, failed, unsteady, bound] =
            [VerdictOutcome::Passed, VerdictOutcome::Failed, VerdictOutcome::Unsteady, VerdictOutcome::GeneratorBound]
                .map(count);
        Some(match () {
            () if passed + failed + unsteady + bound == 0 => return None,
            () if self.is_lost(times) => VerdictOutcome::Failed,
            () if passed > failed + unsteady + bound => VerdictOutcome::Passed,
            // One failure beside a spoilt repeat is not confirmed.
            () if bound > 0 && failed + unsteady <= bound => VerdictOutcome::GeneratorBound,
            () if failed > 0 => VerdictOutcome::Failed,
            () => VerdictOutcome::Unsteady,
        })
    }

    /// Whether as many steps at this multiple carried it as did not, for whatever reason.
    fn is_contradictory(&self, times: f64) -> bool {
        let passed = self.all_at(times).filter(|(_, outcome)| *outcome == VerdictOutcome::Passed).count();
        passed > 0 && 2 * passed == self.all_at(times).count() && !self.is_lost(times)
    }

    /// Whether something failed or hung, which no repeat makes good.
    fn is_lost(&self, times: f64) -> bool {
        self.is_failed_by_errors(times) || self.all_at(times).any(|(step, _)| hung(step).is_some())
    }

    /// Whether something failed, which no repeat makes good.
    fn is_failed_by_errors(&self, times: f64) -> bool {
        self.all_at(times).any(|(step, _)| kinds::errors(step) > 0)
    }

    /// The first step at this multiple that came out as the multiple did.
    fn deciding(&self, times: f64) -> Option<&'a Step> {
        let (outcome, is_failed) = (self.outcome(times)?, self.is_failed_by_errors(times));
        let is_lost = self.is_lost(times);
        let same = |(step, known): &(&Step, VerdictOutcome)| match (is_failed, is_lost) {
            (true, _) => kinds::errors(step) > 0,
            (false, true) => hung(step).is_some(),
            (false, false) => *known == outcome,
        };
        self.all_at(times).find(same).or_else(|| self.all_at(times).next()).map(|(step, _)| step)
    }
}

/// The largest share of others in a step at what is asked. What a server read beyond its sessions' blocks may be its own.
fn others(findings: &[Finding], tried: &Tried<'_>) -> Option<f64> {
    let shares = findings.iter().filter_map(|finding| match finding {
        Finding::DeviceSharedWithOthers(shared) => {
            let is_there = |step: &Step| shared.steps.contains(&step.label) && !is_on_server(step);
            tried.all_at(1.0).any(|(step, _)| is_there(step)).then_some(shared.share)
        }
        _ => None,
    });
    shares.reduce(f64::max)
}

/// Why there is no step at what is asked, in words.
fn ended(findings: &[Finding]) -> String {
    let reason = |finding: &Finding| {
        matches!(finding, Finding::NotCompleted(_)).then(|| finding.sentence().trim_end_matches('.').to_owned())
    };
    findings.iter().find_map(reason).unwrap_or_else(|| "nothing was measured at these rates".to_owned())
}

fn answer(run: &Run, demands: &Demands, findings: &[Finding], tried: &Tried<'_>, step: &Step) -> Carries {
    let Some(outcome) = tried.outcome(1.0) else { return Carries::Unknown(Unmeasured::Contradictory) };
    match outcome {
        VerdictOutcome::GeneratorBound => {
            // Where one measurement was met, the other is the one that says why there is no answer.
            let spoilt = tried.all_at(1.0).find(|(_, outcome)| *outcome == VerdictOutcome::GeneratorBound);
            Carries::Unknown(unmeasured(run, spoilt.map_or(step, |(step, _)| step), demands))
        }
        _ if tried.is_contradictory(1.0) => Carries::Unknown(Unmeasured::Contradictory),
        VerdictOutcome::Failed | VerdictOutcome::Unsteady => Carries::No(shortfall(run, step, demands, outcome)),
        // That it is missed stands whatever else was wrong; that it is carried must have been seen on storage.
        VerdictOutcome::Passed => {
            let why = voided(findings, step)
                .or_else(|| kinds::not_on_storage(run, step, demands))
                .or_else(|| kinds::too_few(run, step, demands));
            why.map_or(Carries::Yes, Carries::Unknown)
        }
    }
}

/// The first doubt by which the figures of a step are not those of the storage.
fn voided(findings: &[Finding], step: &Step) -> Option<Unmeasured> {
    let is_void = |finding: &&Finding| {
        let is_of_storage = matches!(
            finding,
            Finding::PageCacheUsed(_)
                | Finding::BytesDisagree(_)
                | Finding::DurableWrites(_)
                | Finding::CacheTrap(_)
                | Finding::Server(
                    ServerFinding::PageCacheServed { .. }
                        | ServerFinding::ProcessorsExhausted { .. }
                        | ServerFinding::Unread { .. }
                )
        );
        is_of_storage
            && finding.severity() == Severity::Doubt
            && finding.steps().is_none_or(|steps| steps.contains(&step.label))
    };
    let finding = findings.iter().find(is_void)?;
    let advice = match finding {
        Finding::Server(ServerFinding::PageCacheServed { is_private: true, .. }) => Some(
            "use a `--size` of several times this machine's memory. Or limit the server's memory as root: \
             `--host-memory 340M`, or more if a check refuses that"
                .to_owned(),
        ),
        Finding::Server(ServerFinding::PageCacheServed { .. }) => {
            Some("use a `--size` of several times the memory of the server's machine".to_owned())
        }
        _ => finding.advice(),
    };
    Some(Unmeasured::Doubt { sentence: finding.sentence(), advice })
}

/// Why a step at what is asked says nothing of what it loads.
fn unmeasured(run: &Run, step: &Step, demands: &Demands) -> Unmeasured {
    if let Some(late) = kinds::given_up(run, step, demands) {
        return Unmeasured::GivenUp(late);
    }
    if let Some(slots) = kinds::busy_slots(run, step, demands) {
        return Unmeasured::Slots { slots };
    }
    let is_late = |kind: &Reached| kind.within.zip(kind.service).is_some_and(|(within, once)| once.ns > within.limit);
    let once_sent = kinds::reached(run, step, demands, 1.0).into_iter().find(is_late);
    Unmeasured::Generator {
        late: own_lag_p99_ns(step).map(Nanos),
        processors: processors_of_server(run, step),
        kept_by: KeptFrom::of(step),
        once_sent,
    }
}

/// What keeps a load generator from processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptFrom {
    /// A quota of its control group.
    Quota,
    /// What took the machine's processors.
    Crowd(Crowd),
}

impl KeptFrom {
    fn of(step: &Step) -> Option<Self> {
        if is_held_back(step) { Some(Self::Quota) } else { crowd(step).map(Self::Crowd) }
    }
}

/// Why a step did not carry what it was asked for.
fn why(run: &Run, step: &Step, demands: &Demands, outcome: VerdictOutcome) -> Stopped {
    if let Some(late) = kinds::given_up(run, step, demands) {
        return Stopped::GivenUp(late);
    }
    match kinds::busy_slots(run, step, demands) {
        _ if outcome != VerdictOutcome::GeneratorBound => Stopped::Missed(shortfall(run, step, demands, outcome)),
        Some(slots) => Stopped::Slots(slots),
        None if let Some(processors) = processors_of_server(run, step) => Stopped::Server(processors),
        None if super::judge::is_generator_busy(step) => Stopped::Generator,
        None => Stopped::Schedule,
    }
}

/// Who used up the processors that load generator and server share, unless it was the load generator.
fn processors_of_server(run: &Run, step: &Step) -> Option<Stops> {
    let found = Stops::processors(run, step).filter(|_| is_on_server(step))?;
    let is_of_others = |by: &UsedBy| matches!(by, UsedBy::Server | UsedBy::Others | UsedBy::Hypervisor);
    matches!(&found, Stops::Processors { by, .. } if is_of_others(by)).then_some(found)
}

fn shortfall(run: &Run, step: &Step, demands: &Demands, outcome: VerdictOutcome) -> Shortfall {
    let times = |kinds: Vec<Reached>| kinds.into_iter().filter(Reached::is_late).collect::<Vec<_>>();
    let late = times(kinds::reached(run, step, demands, 1.0));
    match super::sending::behind(step) {
        _ if kinds::errors(step) > 0 => Shortfall::Errors { count: kinds::errors(step) },
        _ if let Some(longest) = hung(step) => Shortfall::Hung(longest),
        Some(_) => Shortfall::FellBehind { share: finished_share(step) },
        None if !late.is_empty() => Shortfall::Late(late),
        None if outcome == VerdictOutcome::Unsteady => Shortfall::NotSteady,
        // What hung at the end never came back: less was finished than fell due.
        None => Shortfall::FellBehind { share: finished_share(step).filter(|share| *share < 0.99) },
    }
}

fn finished_share(step: &Step) -> Option<f64> {
    let asked = step.load.rate_operations_per_s.filter(|rate| *rate > 0.0)?;
    Some((super::Figures(step).operations_per_s()? / asked).min(1.0))
}

/// Whether it says what stopped the load, rather than that nothing did or that nobody knows.
fn is_answer(found: &Ceiling) -> bool {
    !matches!(found.limit, Limit::NotReached { .. } | Limit::Unclear | Limit::Generator { .. })
}

fn room(run: &Run, demands: &Demands, findings: &[Finding], tried: &Tried<'_>) -> Room {
    let outcomes = tried.outcomes();
    let above = outcomes.iter().find(|(_, outcome)| *outcome != VerdictOutcome::Passed).copied();
    let is_below = |times: f64| above.is_none_or(|(above, _)| times < above);
    let carried = outcomes.iter().map(|(times, _)| *times).take_while(|times| is_below(*times)).last();
    let kinds = carried.and_then(|times| Some(kinds::reached(run, tried.deciding(times)?, demands, times)));
    let stopped_by = above.and_then(|(times, outcome)| {
        let step = tried.deciding(times)?;
        if outcome == VerdictOutcome::GeneratorBound {
            return Some(why(run, step, demands, outcome));
        }
        // A rate that stays flat at larger multiples stopped the least of them too, if that reaches as far.
        let rate = step.load.rate_operations_per_s.unwrap_or(0.0);
        let is_beyond = |label: &String| {
            let beyond = |(step, known, _): &(&Step, f64, VerdictOutcome)| step.label == *label && *known >= times;
            tried.steps.iter().any(beyond)
        };
        let ceiling = findings.iter().find_map(|finding| match finding {
            Finding::Ceiling(found) if found.steps.iter().any(is_beyond) && is_answer(found) => Some(found.clone()),
            _ => None,
        });
        let reaches = |found: &Ceiling| rate >= NEAR_CEILING * found.per_s || found.steps.contains(&step.label);
        // Operations that failed or hung are why it was missed, whatever the others came to or waited for.
        let is_sound = kinds::errors(step) == 0 && hung(step).is_none();
        let ceiling = ceiling.filter(|found| is_sound && reaches(found));
        // Where its sessions spend their time says more of a server than a rate that grows no further.
        let says_why = |stops: &Stops| says_why(stops, Vocabulary::of(run), findings, Some(&step.label));
        let of_server = if is_sound && is_on_server(step) { Stops::of(run, step).filter(says_why) } else { None };
        Some(match (of_server, ceiling) {
            (Some(stops), _) => Stopped::Server(stops),
            (None, Some(found)) => Stopped::Ceiling(Box::new(found)),
            (None, None) => Stopped::Missed(shortfall(run, step, demands, outcome)),
        })
    });
    Room { carried, kinds: kinds.unwrap_or_default(), above: above.map(|(times, _)| times), stopped_by }
}

/// A check whose cause may be proven by relieving it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReliefWanted {
    /// Position of the step that the cause stopped.
    pub step: usize,
    /// Its multiple.
    pub times: f64,
}

/// The least multiple that was not carried, if it is commits that stopped it: whether they wait for the log is a setting.
pub fn relief_wanted(run: &Run, findings: &[Finding]) -> Option<ReliefWanted> {
    let room = Check::of(run, findings)?.room?;
    let is_of_commits = matches!(room.stopped_by, Some(Stopped::Server(Stops::Commits { .. })));
    let times = room.above.filter(|_| is_of_commits)?;
    let step = Tried::of(run, &run.check.as_ref()?.demands).deciding(times)?;
    Some(ReliefWanted { step: run.steps.iter().position(|known| std::ptr::eq(known, step))?, times })
}

/// A load that did so many times as much with its cause relieved was stopped by it.
const PROVEN: f64 = 1.2;

/// What came of relieving a cause. Rates are operations per second, reads and commits together.
#[derive(Debug, Clone, PartialEq)]
pub struct Relief {
    /// What was changed.
    pub setting: String,
    /// The rate with the cause.
    pub before_per_s: f64,
    /// The rate without it.
    pub after_per_s: f64,
    /// Whether all that was requested was done, so that more may be possible.
    pub is_at_least: bool,
}

impl Relief {
    fn of(run: &Run) -> Option<Self> {
        let tested = |step: &Step| Some((step.relief_test.clone()?, Figures(step).operations_per_s()?));
        let (test, before_per_s) = run.steps.iter().find_map(tested)?;
        let after_per_s = test.operations_per_s();
        let is_at_least = after_per_s >= BELOW * test.asked_per_s;
        Some(Self { setting: test.setting, before_per_s, after_per_s, is_at_least })
    }

    /// Whether the cause was the right one.
    pub fn is_proven(&self) -> bool {
        self.after_per_s >= PROVEN * self.before_per_s
    }
}

/// More room than this is more than anybody asks about.
const MAX_TIMES: f64 = 64.0;
/// Less of what is asked than this is nothing.
const MIN_TIMES: f64 = 1.0 / 64.0;
/// How finely the multiple is wanted.
const RESOLUTION: f64 = 0.1;
/// What is carried is sought from this share on of what was finished at too high a rate.
const BELOW: f64 = 0.9;
/// So much more than what was finished at too high a rate is not carried.
const ABOVE: f64 = 1.02;
/// A failure at what is asked is measured once more before it counts: one hiccup does not decide.
const CONFIRMED: usize = 2;
/// Noise that three measurements do not settle is not settled by more.
const MAX_VERDICTS: usize = 3;

/// The multiple to measure next, 1 for exactly what is asked; absent when nothing is left to find out.
pub fn next_multiple(run: &Run) -> Option<f64> {
    let demands = run.check.as_ref()?.demands;
    let tried = Tried::of(run, &demands);
    let Some(outcome) = tried.outcome(1.0) else {
        // A step that was cut short or failed is not tried again.
        let is_first = !run.steps.iter().any(|step| step.label.starts_with(ASKED));
        return is_first.then_some(1.0);
    };
    let measured = tried.all_at(1.0).count();
    let is_decided = outcome == VerdictOutcome::Passed
        || tried.is_lost(1.0)
        || measured >= CONFIRMED && !tried.is_contradictory(1.0);
    if !is_decided && measured < MAX_VERDICTS {
        return Some(1.0);
    }
    let (low, high) = match outcome {
        VerdictOutcome::Passed => (1.0, MAX_TIMES),
        VerdictOutcome::GeneratorBound => return None,
        VerdictOutcome::Failed | VerdictOutcome::Unsteady => (MIN_TIMES, 1.0),
    };
    let has_passed = tried.steps.iter().any(|(_, _, outcome)| *outcome == VerdictOutcome::Passed);
    if outcome != VerdictOutcome::Passed && !has_passed {
        return lower(&tried);
    }
    let plan = SearchPlan { low, high, resolution: RESOLUTION, repeats: 1, max_points: usize::MAX };
    let mut search = Search::new(plan);
    tried.outcomes().into_iter().for_each(|(rate, outcome)| search.record(Verdict { rate, outcome }));
    if let Some(finished) = search_finished_share(&tried) {
        search.record(Verdict { rate: finished * ABOVE, outcome: VerdictOutcome::Failed });
    }
    search.next()
}

/// The next multiple where none was carried yet: first just below what was finished of what is asked, if it fell behind, then half
/// of the least that was tried.
fn lower(tried: &Tried<'_>) -> Option<f64> {
    let least = tried.steps.iter().map(|(_, times, _)| *times).fold(1.0, f64::min);
    let next = match search_finished_share(tried) {
        Some(share) if least == 1.0 => share * BELOW,
        _ => least / 2.0,
    };
    // Two digits, for people will read it.
    let next = if next >= 0.1 { (next * 100.0).round() / 100.0 } else { next };
    (next >= MIN_TIMES).then_some(next)
}

/// Share of what is asked that was finished, of a load that fell behind: more than that was not to be had.
fn search_finished_share(tried: &Tried<'_>) -> Option<f64> {
    let step = tried.deciding(1.0).filter(|step| behind(step).is_some())?;
    let share = Figures(step).operations_per_s()? / step.load.rate_operations_per_s?;
    (share * ABOVE < 1.0).then_some(share)
}
