//! What a report opens with: how much is carried, what stopped it, and what of it a cache answered, in a sentence that may
//! be repeated without the rest of the report.

mod answer;
mod first_screen;
#[cfg(test)]
mod first_screen_tests;
mod how_known;
#[cfg(test)]
mod reported_tests;
mod spent;
#[cfg(test)]
mod tests;
mod words;

pub(super) use answer::{at_load, of_lines};
pub use first_screen::{FirstScreen, LimitLine, Tile};
pub use how_known::HowKnown;
pub use spent::TimeSpent;
pub(super) use words::{at_ceiling, number};

use super::check::Check;
use super::network::is_one_host;
use super::{
    BulkAnswer, Calibration, Cause, Ceiling, ConnectionSweep, Figures, Finding, HostAnswer, Knee, LatencyTarget, Limit,
    LogCheckpoints, Multiple, NetworkFinding, NetworkMatrix, NetworkStop, NetworkSurvey, NfsFinding, QuantileValue,
    ReadSource, RunVerdict, Series, ServerFinding, SizeLimits, StepLine, Stops, Together, TogetherVerdict, Vocabulary,
    Why, at_once, fleet, is_on_server, likeness, measured,
};
use crate::message::list;
use crate::{Crowd, Failing, FleetFinding, GroupFinding, NotCompleted, PageCacheUse, Severity};
use model::record::{Level, Metric, Run, Step};
use model::units::Nanos;

/// The parts of the opening sentence, each only as far as findings or figures support it.
#[derive(Debug, Clone, PartialEq)]
pub struct Opening {
    /// Whether the limits that were asked for were kept; absent where none was.
    pub verdict: Option<RunVerdict>,
    /// Whether any step has figures.
    pub is_measured: bool,
    /// The answer of a run that asked whether demands are carried.
    pub check: Option<Check>,
    /// The load that was carried; absent where no rate is known, and for a calibration that answers.
    pub carries: Option<Carried>,
    /// The answers of a run that asked what CALIBRATE_IO asks.
    pub calibration: Option<Calibration>,
    /// The answers of a survey of a network.
    pub survey: Option<NetworkSurvey>,
    /// Answers of a look at several servers of a network.
    pub matrix: Option<NetworkMatrix>,
    /// What bulk flows over a network came to.
    pub bulk: Option<BulkAnswer>,
    /// Why it was not more; absent where nothing reports.
    pub stopped_by: Option<StoppedBy>,
    /// Where requests of the load that was too much spent most of their time; only where their latency or a queue ended it.
    pub spent: Option<TimeSpent>,
    /// How many times what was carried processors carry at most once nothing else stops it; absent where that is not known, or far off.
    pub processors_next: Option<f64>,
    /// Whether the volumes share a limit, of a run that loaded them alone and together.
    pub together: Option<Together>,
    /// What more connections to an NFS server bring, of a run that varied them.
    pub connections: Option<ConnectionSweep>,
    /// Checkpoints that the limit of a server's log requested too often, in the step that is reported or bounds it, in words.
    pub log_checkpoints: Option<String>,
    /// From where on latency rises faster than load, in words; reported where nothing stopped a load that has no limit asked for.
    pub rises_from: Option<String>,
    /// What stops larger multiples of a production than the one that bounds the answer.
    pub beyond: Option<Ceiling>,
    /// In which figures the load was like the production that it was made like, in words.
    pub likeness: Option<String>,
    /// What answered instead of storage.
    pub from_cache: Option<FromCache>,
    /// The answer of a load on processors.
    pub host: Option<HostAnswer>,
    /// What another program found, by its own name, where no rate of ours can be made of it; or what a map shows.
    pub reported: Option<String>,
    /// What stands before the answer: that commits may be lost, or that parts of a fleet are missing.
    pub before: Option<String>,
    /// Why none of this should be repeated as it stands.
    pub doubt: Option<OpeningDoubt>,
}

/// A load that was carried.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Carried {
    /// How much is claimed.
    pub claim: Claim,
    /// What is counted.
    pub unit: Unit,
    /// How many of it per second.
    pub per_s: f64,
    /// Megabytes (10^6) per second of raw requests.
    pub megabytes_per_s: Option<f64>,
    /// Buffer misses per second of a database server.
    pub misses_per_s: Option<f64>,
    /// How long it took.
    pub latency: Option<Latency>,
    /// As a multiple of the production that it is like; absent where it is like none.
    pub multiple: Option<Multiple>,
    /// The load in words, such as `16 sessions`; absent where the rate itself is the load.
    pub load: Option<String>,
    /// Name of the series; empty where the run has only one.
    pub series: String,
    /// Label of the step that it was seen in; absent if it is of several.
    pub step: Option<String>,
}

/// How much is claimed of a load.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// It is the most that meets the latency target.
    Most {
        /// The rate of an open loop that was not carried.
        not_per_s: Option<f64>,
        /// Labels of steps with less load that missed the target all the same.
        missed_below: Vec<String>,
    },
    /// The largest load that was tried meets the target.
    AtLeast,
    /// The least load that was tried misses the target.
    LessThan {
        /// The value that misses it; unknown where operations did not finish.
        value: Option<QuantileValue>,
        /// What misses it where that is not the value, such as `6.4 % of requests failed`.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// It meets the target, and smaller loads do not.
    Unclear,
    /// What remained when a burst had ended.
    Sustained {
        /// The rate before, in words.
        burst: String,
        /// How long it lasted.
        #[serde(rename = "lasted_ns")]
        lasted: Nanos,
        /// Whether a write cache can be what ended.
        may_be_write_cache: bool,
    },
    /// One load that settled.
    Steady {
        /// When, from the start of the measured load.
        #[serde(rename = "from_ns")]
        from: Nanos,
    },
    /// It was seen, no more.
    Seen,
}

/// What a rate counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Requests of raw storage.
    Requests,
    /// Physical reads of an engine.
    Reads,
    /// Blocks that a server asked of its machine, which may have had them in its page cache.
    BufferMisses,
    /// Operations of sessions.
    Operations,
    /// Transactions of users.
    Transactions,
    /// Megabytes (10^6).
    Megabytes,
}

/// How long operations or reads took.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Latency {
    /// Within the limit of a target.
    Within {
        /// The quantile in words.
        what: String,
        /// Its limit.
        #[serde(rename = "limit_ns")]
        limit: Nanos,
    },
    /// Within the limits of several targets: each quantile in words, and its limit.
    WithinAll(Vec<(String, Nanos)>),
    /// Nothing of most reads, which this event waited for: those that were timed one by one are few beside them.
    OfFew {
        /// The event.
        event: String,
    },
    /// As it was seen.
    Seen {
        /// The quantile in words.
        what: String,
        /// Its value.
        value: QuantileValue,
        /// A limit that it misses.
        #[serde(rename = "missed_ns")]
        missed: Option<Nanos>,
    },
}

/// What stopped the load.
#[derive(Debug, Clone, PartialEq)]
pub enum StoppedBy {
    /// A cap, a device or a server, as the ceiling reports.
    Ceiling(Ceiling),
    /// Caps that steps of several request sizes distinguished.
    Caps(SizeLimits),
    /// The load generator.
    LoadGenerator,
    /// This machine, which sent so late (p99) though its load generator had time.
    SentLate(Nanos),
    /// What took this machine's processors.
    Crowded(Crowd),
    /// Work of users, or of sessions on a server, by what they spend their time on.
    Sessions(Stops, Vocabulary),
    /// Nothing that is known, since only one load was seen: where most of the time of its work went.
    MostOfTime(Stops, Vocabulary),
    /// Nothing that is known, since only one load of storage was seen, or none was small enough: where its requests spent most of their
    /// time.
    MostOfRequests(TimeSpent),
    /// Something of the network or of its two ends.
    Network(NetworkStop),
    /// There was no network: both of its ends were one host.
    OneHost,
    /// The next larger load missed the latency target.
    Latency {
        /// The quantile in words, where several are judged.
        what: Option<String>,
        /// Its value there, if it is known.
        value: Option<QuantileValue>,
        /// That load in words; absent where the rate itself was reported.
        load: Option<String>,
    },
    /// A queue grew at the next larger rate.
    Queue,
    /// Too many operations failed at the next larger rate.
    Errors,
    /// What else the next larger load missed the target by, with that load.
    Missed(String),
    /// Nothing was answered for so long at the next larger rate.
    Hung(Nanos),
    /// The next larger rate was not steady.
    Unsteady,
    /// Nothing: the rate still grew.
    Nothing,
}

/// What answered instead of storage.
#[derive(Debug, Clone, PartialEq)]
pub enum FromCache {
    /// A cache or a faster tier below the file system.
    FasterTier {
        /// Share of reads, 0 to 1.
        share: f64,
        /// The load at which it was seen, in words.
        load: String,
    },
    /// The page cache of a server's machine.
    PageCache {
        /// Share of buffer misses, 0 to 1.
        share: f64,
    },
    /// Whether that answered is not known.
    PageCacheUnknown,
    /// The buffer cache of the database.
    BufferCache {
        /// Share of logical reads, 0 to 1.
        hit_ratio: f64,
    },
}

impl Opening {
    /// From the findings on `run`, in the order in which [`super::analyse_asked`] reports them.
    pub fn of(run: &Run, findings: &[Finding]) -> Self {
        let check = Check::of(run, findings);
        let answered = |found: &Calibration| found.max_iops.is_some() || found.max_bytes.is_some();
        let calibration = Calibration::of(run).filter(answered);
        let together = findings.iter().find_map(|finding| match finding {
            Finding::Together(found) => Some(found.clone()),
            _ => None,
        });
        let connections = findings.iter().find_map(|finding| match finding {
            Finding::Nfs(NfsFinding::Connections(found)) => Some(found.clone()),
            _ => None,
        });
        let verdict = findings.iter().find_map(|finding| match finding {
            Finding::Verdict(verdict) => Some(verdict.clone()),
            _ => None,
        });
        let mut carries = match &verdict {
            Some(verdict) if verdict.load.is_some() => answer::seen(run, findings),
            Some(verdict) => verdict.carries.clone(),
            None if calibration.is_some() => None,
            None => answer::find(run, findings),
        };
        let survey = NetworkSurvey::of(run);
        let bulk = BulkAnswer::of(run).filter(|_| verdict.is_none());
        let matrix = NetworkMatrix::of(run);
        if (survey.is_some() || bulk.is_some() || matrix.is_some()) && verdict.is_none() {
            carries = None;
        }
        let stopped_by = carries.as_ref().and_then(|carried| {
            let found = stopped_by(findings, carried);
            of_sessions(run, findings, carried, found.as_ref())
                .or(found)
                .or_else(|| TimeSpent::of_answer(run, carried).map(StoppedBy::MostOfRequests))
        });
        if let Some(carried) = &mut carries
            && carried.claim == Claim::AtLeast
            && matches!(stopped_by, Some(StoppedBy::Ceiling(_) | StoppedBy::Caps(_)))
        {
            carried.claim = Claim::Most { not_per_s: None, missed_below: Vec::new() };
        }
        if let Some(carried) = &mut carries {
            let not_per_s = match carried.claim {
                Claim::Most { not_per_s, .. } => not_per_s,
                _ => None,
            };
            carried.multiple = carried.step.as_ref().and_then(|step| Multiple::of(run, step, not_per_s));
        }
        let stopped_by = if is_one_host(run) { Some(StoppedBy::OneHost) } else { stopped_by };
        let is_seen_only = carries.as_ref().is_some_and(|carried| carried.claim == Claim::Seen);
        let may_rise = is_seen_only && matches!(stopped_by, None | Some(StoppedBy::Nothing));
        let host = HostAnswer::of(run, findings);
        if at_once::is_of_jobs(run) || host.is_some() {
            carries = None;
        }
        let of_calibration = calibration.as_ref().and_then(|found| of_calibration(findings, found));
        let is_reported = run.imported.is_some() && carries.is_none() && calibration.is_none();
        Self {
            reported: answer::reported(run, is_reported),
            host,
            before: before(findings),
            is_measured: measured(run).next().is_some(),
            // A check has weighed the doubts by itself.
            doubt: find_doubt(run, findings, carries.as_ref(), calibration.as_ref(), verdict.as_ref())
                .filter(|_| check.is_none()),
            check,
            rises_from: carries.as_ref().filter(|_| may_rise).and_then(|carried| rises_from(findings, carried)),
            spent: carries
                .as_ref()
                .zip(stopped_by.as_ref())
                .and_then(|(carried, by)| spent(run, findings, carried, by)),
            log_checkpoints: carries.as_ref().and_then(|carried| log_checkpoints(run, findings, carried)),
            beyond: carries.as_ref().and_then(|carried| beyond(run, findings, carried, stopped_by.as_ref())),
            likeness: carries.as_ref().and_then(|carried| likeness::likeness(run, carried.step.as_ref()?)),
            from_cache: carries.as_ref().and_then(|carried| from_cache(findings, carried)),
            processors_next: carries
                .as_ref()
                .zip(stopped_by.as_ref())
                .and_then(|(carried, by)| answer::processors_next(run, carried, by)),
            carries,
            calibration,
            // The limit that volumes share is reported as that.
            stopped_by: stopped_by
                .filter(|by| !together.as_ref().is_some_and(|found| is_shared(by, found)))
                // One load over as many connections shows no end of anything else.
                .filter(|by| connections.is_none() || by.is_of_this_machine())
                .or(of_calibration)
                .or_else(|| survey.as_ref().and_then(|survey| of_survey(run, survey, findings)))
                .or_else(|| of_network(findings, &bulk.as_ref()?.step).map(StoppedBy::Network)),
            survey,
            matrix,
            bulk,
            together,
            connections,
            verdict,
        }
    }
}

/// What stopped the work of users, or of sessions on a server: of the load that was too much, or else of the one that is reported, if nothing
/// of more weight is known. A single load shows what they spent their time on, and not what stops more of them; but processors and quotas
/// are used up or not.
fn of_sessions(run: &Run, findings: &[Finding], carried: &Carried, found: Option<&StoppedBy>) -> Option<StoppedBy> {
    let label = above_line(findings, carried).or(carried.step.as_deref())?;
    let step = measured(run).find(|step| step.label == label)?;
    let words = Vocabulary::of(run);
    match words {
        Vocabulary::Users => {}
        // A limit that reads show by themselves says more than that they were waited for.
        Vocabulary::Sessions if is_on_server(step) && !matches!(found, Some(StoppedBy::Ceiling(_))) => {}
        Vocabulary::Sessions | Vocabulary::Requests => return None,
    }
    let stopped = |stops| StoppedBy::Sessions(stops, words);
    let is_said = |stops: &Stops| says_why(stops, words, findings, carried.step.as_deref());
    let is_seen = matches!(carried.claim, Claim::Seen | Claim::Steady { .. });
    if is_seen
        && matches!(found, None | Some(StoppedBy::Nothing))
        && let Some(stops) = levelled_off(run, carried).and_then(|most| Stops::of(run, most)).filter(is_said)
    {
        return Some(stopped(stops));
    }
    let stops = match (&carried.claim, found) {
        (_, Some(by)) if by.is_of_this_machine() => None,
        (_, Some(StoppedBy::Caps(_) | StoppedBy::Errors | StoppedBy::Missed(_))) => None,
        (Claim::LessThan { .. }, _) => Stops::of(run, step),
        // What a server fetched from storage still grew, which says nothing of transactions.
        (Claim::Seen | Claim::Steady { .. }, None | Some(StoppedBy::Nothing)) => {
            let stops = Stops::of(run, step).filter(is_said)?;
            let is_limit = matches!(stops, Stops::Processors { .. } | Stops::Quota { .. });
            return Some(if is_limit { stopped(stops) } else { StoppedBy::MostOfTime(stops, words) });
        }
        (_, Some(StoppedBy::Nothing)) => Stops::processors(run, step),
        (_, Some(_)) => Stops::of(run, step),
        (_, None) => None,
    };
    stops.filter(is_said).map(stopped)
}

/// Reads of which a page cache answered this share are not waits for storage.
const MOSTLY_CACHED: f64 = 0.5;

/// Whether what sessions on a server wait for says why its rate is no higher. Who sends reads in batches is outside between them, and what a page
/// cache may have answered is no storage. Users do more than read, so that little of a page cache leaves their cause as it is.
pub(crate) fn says_why(stops: &Stops, words: Vocabulary, findings: &[Finding], step: Option<&str>) -> bool {
    let is_of_users = words == Vocabulary::Users;
    let concerns = |steps: &[String]| step.is_some_and(|step| steps.iter().any(|known| known == step));
    let is_cached = |finding: &Finding| match finding {
        Finding::Server(ServerFinding::PageCacheServed { steps, share, .. }) => {
            concerns(steps) && (!is_of_users || *share >= MOSTLY_CACHED)
        }
        Finding::Server(ServerFinding::PageCacheUnknown { steps, .. }) => concerns(steps) && !is_of_users,
        _ => false,
    };
    match stops {
        Stops::Outside { is_sure, .. } => is_of_users || *is_sure,
        Stops::Reads { .. } => !findings.iter().any(is_cached),
        Stops::Several(all) => all.iter().all(|one| says_why(one, words, findings, step)),
        _ => true,
    }
}

/// Load grows by this before a rate that stayed is a plateau, and its rate by no more than this power of it.
const MORE_USERS: f64 = 1.9;
const STAYED: f64 = 0.1;

/// The step with the most users, if the rate did not grow with them: more of them only wait, each for longer, and where they do is
/// what stops more. One load alone shows no such thing.
fn levelled_off<'a>(run: &'a Run, carried: &Carried) -> Option<&'a Step> {
    let series = Series::of(run).into_iter().find(|series| series.name == carried.series)?;
    if !series.is_closed_loop() {
        return None;
    }
    let users = |step: &Step| step.load.sessions.map(f64::from).filter(|users| *users > 0.0);
    let most = *series.steps.last()?;
    let (all, rate) = (users(most)?, Figures(most).operations_per_s().filter(|rate| *rate > 0.0)?);
    let fewer = series.steps.iter().filter(|step| users(step).is_some_and(|fewer| all >= MORE_USERS * fewer));
    // The fastest of them: a rate that fell has not grown.
    let (before, before_users) = fewer
        .filter_map(|step| Some((Figures(step).operations_per_s()?, users(step)?)))
        .max_by(|one, other| one.0.total_cmp(&other.0))?;
    (rate <= before * (all / before_users).powf(STAYED)).then_some(most)
}

/// Where requests of the load that bounds the answer spent most of their time, where nothing but that it was too much is known of it.
fn spent(run: &Run, findings: &[Finding], carried: &Carried, by: &StoppedBy) -> Option<TimeSpent> {
    let is_open = matches!(by, StoppedBy::Latency { .. } | StoppedBy::Queue | StoppedBy::Hung(_));
    let bounding = above_line(findings, carried).filter(|_| is_open)?;
    TimeSpent::of(run, measured(run).find(|step| step.label == bounding)?)
}

/// Of the step that was too much, or else of the one that is reported, as for what stopped it.
fn log_checkpoints(run: &Run, findings: &[Finding], carried: &Carried) -> Option<String> {
    let labels = [above_line(findings, carried), carried.step.as_deref()];
    let of = |label: &str| LogCheckpoints::of(run, measured(run).find(|step| step.label == label)?);
    labels.into_iter().flatten().find_map(of).map(|found| found.words())
}

/// What whoever reads the answer must know first.
pub(crate) fn before(findings: &[Finding]) -> Option<String> {
    let lost = findings.iter().find_map(|finding| match finding {
        Finding::Server(ServerFinding::LosesCommits { settings }) => {
            Some(format!("Commits may be lost ({}). ", settings.join(", ")))
        }
        _ => None,
    });
    let parts: Vec<String> = lost.into_iter().chain(fleet::before_answer(findings)).collect();
    (!parts.is_empty()).then(|| parts.concat())
}

fn is_shared(by: &StoppedBy, found: &Together) -> bool {
    let StoppedBy::Ceiling(ceiling) = by else { return false };
    let is_loaded = |step: &String| found.points.iter().any(|point| point.together.steps.contains(step));
    found.verdict == TogetherVerdict::Shared && ceiling.steps.iter().all(is_loaded)
}

fn stopped_by(findings: &[Finding], carried: &Carried) -> Option<StoppedBy> {
    match carried.claim {
        Claim::Sustained { .. } | Claim::Unclear => return None,
        Claim::LessThan { why: None, .. } => return of_least(findings, carried),
        Claim::LessThan { .. } => return None,
        _ => {}
    }
    if let Some(stop) = carried.step.as_ref().and_then(|step| of_network(findings, step)) {
        return Some(StoppedBy::Network(stop));
    }
    // Below the ceiling something else stopped it, such as a latency limit that only a small load keeps.
    let bounding = above_line(findings, carried);
    let is_there = |step: &String| carried.step.as_ref() == Some(step) || bounding == Some(step.as_str());
    // A search ends between rates that lie closer to the limit than those that show it.
    let is_just_below = |found: &Ceiling| {
        let is_near = carried.unit == Unit::Requests && carried.per_s >= JUST_BELOW * found.per_s;
        is_near && bounding.is_some() && found.series == carried.series && found.is_cap()
    };
    let ceiling = findings.iter().find_map(|finding| match finding {
        Finding::Ceiling(found) if found.steps.iter().any(is_there) || is_just_below(found) => Some(found),
        _ => None,
    });
    let caps = findings.iter().find_map(|finding| match finding {
        Finding::SizeLimits(found) if carried.step.as_ref().is_some_and(|step| found.steps.contains(step)) => {
            Some(StoppedBy::Caps(found.clone()))
        }
        _ => None,
    });
    let at_ceiling = ceiling.and_then(StoppedBy::at);
    let still_grew = || ceiling.map(|_| StoppedBy::Nothing);
    caps.or(at_ceiling).or_else(|| line_ended(findings, carried)).or_else(still_grew)
}

/// What makes even the least load too slow: the rate that others come to as well.
fn of_least(findings: &[Finding], carried: &Carried) -> Option<StoppedBy> {
    let counted = match carried.unit {
        Unit::Requests => "requests",
        Unit::Reads => "physical reads",
        _ => return None,
    };
    let is_of_least = |found: &Ceiling| carried.step.as_ref().is_some_and(|step| found.steps.contains(step));
    findings.iter().find_map(|finding| match finding {
        Finding::Ceiling(found) if found.what == counted && found.series == carried.series && is_of_least(found) => {
            StoppedBy::at(found)
        }
        _ => None,
    })
}

/// Large reads that carry so many times the bytes per second of small ones are not held by the same limit on bytes.
const FAR_MORE_BYTES: f64 = 2.0;

/// What is carried at this share of a limit or more is carried up to it.
const JUST_BELOW: f64 = 0.97;
/// Work at less than this share of what a ceiling lets through is not stopped by it.
const NEAR_CEILING: f64 = 0.8;

/// A rate that stays flat at larger multiples of a production, where the one that bounds the answer was nearly as high.
fn beyond(run: &Run, findings: &[Finding], carried: &Carried, stopped: Option<&StoppedBy>) -> Option<Ceiling> {
    carried.multiple.as_ref()?;
    if !matches!(stopped, Some(StoppedBy::Latency { .. } | StoppedBy::Queue | StoppedBy::Unsteady)) {
        return None;
    }
    let bounding = above_line(findings, carried)?;
    let step = measured(run).find(|step| step.label == bounding)?;
    let reads = Figures(step).value(Metric::Reads)?;
    findings.iter().find_map(|finding| match finding {
        Finding::Ceiling(found) => match found.limit {
            Limit::Generator { .. } | Limit::NotReached { .. } | Limit::Unclear => None,
            _ => Some(found.clone()).filter(|found| reads >= NEAR_CEILING * found.per_s),
        },
        _ => None,
    })
}

/// What stopped bulk data of the step that is reported.
fn of_network(findings: &[Finding], step: &String) -> Option<NetworkStop> {
    findings.iter().find_map(|finding| match finding {
        Finding::Network(NetworkFinding::Stop(stop)) if stop.steps.contains(step) => Some(stop.clone()),
        _ => None,
    })
}

/// What stopped the small reads of a calibration. Where its large ones carried far more bytes, it is requests that are counted.
fn of_calibration(findings: &[Finding], calibration: &Calibration) -> Option<StoppedBy> {
    let small = calibration.max_iops.as_ref()?;
    let found = findings.iter().find_map(|finding| match finding {
        Finding::Ceiling(found) if found.steps.iter().any(|step| small.steps.contains(step)) => Some(found.clone()),
        _ => None,
    })?;
    let of_bytes = calibration.max_bytes.as_ref().map_or(0.0, |found| found.rate.value / 1e6);
    let is_of_requests = found.limit == Limit::RequestsOrThroughput
        && found.megabytes_per_s.is_some_and(|megabytes| of_bytes >= FAR_MORE_BYTES * megabytes);
    let limit = if is_of_requests { Limit::Requests } else { found.limit };
    let is_named = !matches!(limit, Limit::NotReached { .. } | Limit::Unclear | Limit::Generator { .. });
    is_named.then_some(StoppedBy::Ceiling(Ceiling { limit, ..found }))
}

/// What stopped the several flows of a survey.
fn of_survey(run: &Run, survey: &NetworkSurvey, findings: &[Finding]) -> Option<StoppedBy> {
    let of_flows = |step: &&String| {
        let found = measured(run).find(|known| known.label == **step);
        found.is_some_and(|found| {
            matches!(&found.level, Some(Level::Network(level))
                if level.outstanding.connections == survey.flows && level.beside.is_none())
        })
    };
    findings.iter().find_map(|finding| match finding {
        Finding::Network(NetworkFinding::Stop(stop)) if stop.steps.iter().any(|step| of_flows(&step)) => {
            Some(StoppedBy::Network(stop.clone()))
        }
        _ => None,
    })
}

/// The lines of the series that is reported: of several limits that one by which the reported step is the largest comes first.
fn lines<'a>(findings: &'a [Finding], carried: &Carried) -> Vec<&'a Finding> {
    let passing = |finding: &Finding| match finding {
        Finding::StepLine(StepLine::Between { passing, .. }) => Some(passing.step.clone()),
        Finding::OpenLoadLine(line) => line.passing.as_ref().map(|passing| passing.step.clone()),
        _ => None,
    };
    let is_of_series = |finding: &&Finding| match finding {
        Finding::StepLine(StepLine::Between { series, .. }) => *series == carried.series,
        Finding::OpenLoadLine(line) => line.series == carried.series,
        _ => false,
    };
    let mut lines: Vec<&Finding> = findings.iter().filter(is_of_series).collect();
    lines.sort_by_key(|finding| passing(finding) != carried.step);
    lines
}

/// Label of the step that bounds the load line from above.
fn above_line<'a>(findings: &'a [Finding], carried: &Carried) -> Option<&'a str> {
    lines(findings, carried).into_iter().find_map(|finding| match finding {
        Finding::StepLine(StepLine::Between { failing, .. }) => Some(failing.above.step.as_str()),
        Finding::OpenLoadLine(line) => Some(line.ceiling()?.step.as_str()),
        _ => None,
    })
}

/// What the load line itself says of the next larger load.
fn line_ended(findings: &[Finding], carried: &Carried) -> Option<StoppedBy> {
    if !matches!(carried.claim, Claim::Most { .. } | Claim::AtLeast) {
        return None;
    }
    let is_one_of_several = matches!(carried.latency, Some(Latency::WithinAll(_)));
    let what = |target: &LatencyTarget| is_one_of_several.then(|| target.what());
    lines(findings, carried).into_iter().find_map(|finding| match finding {
        Finding::StepLine(StepLine::Between { failing: Failing { above, .. }, .. }) if above.missed.is_some() => {
            Some(StoppedBy::Missed(format!("{} with {}", above.missed.as_deref()?, above.load)))
        }
        Finding::StepLine(StepLine::Between { target, failing, .. }) => {
            let (value, load) = (Some(failing.above.value), Some(failing.above.load.clone()));
            Some(StoppedBy::Latency { what: what(target), value, load })
        }
        Finding::OpenLoadLine(line) => {
            let ceiling = line.ceiling()?;
            Some(match ceiling.why {
                Why::Latency => StoppedBy::Latency { what: what(&line.target), value: ceiling.value, load: None },
                Why::FellBehind => StoppedBy::Queue,
                Why::Errors => StoppedBy::Errors,
                Why::Hung(longest) => StoppedBy::Hung(longest),
                Why::NotSteady => StoppedBy::Unsteady,
                Why::GeneratorBound => StoppedBy::LoadGenerator,
                Why::SentLate(lag_p99) => StoppedBy::SentLate(lag_p99),
                Why::Crowded(by) => StoppedBy::Crowded(by),
            })
        }
        _ => None,
    })
}

fn rises_from(findings: &[Finding], carried: &Carried) -> Option<String> {
    findings.iter().find_map(|finding| match finding {
        Finding::Knee(Knee { series, bound, words, .. }) if *series == carried.series => {
            Some(format!("{bound:.0} {}", words.slots()))
        }
        Finding::RateKnee(knee) if knee.series == carried.series => Some(knee.words.rate(knee.per_s)),
        _ => None,
    })
}

fn from_cache(findings: &[Finding], carried: &Carried) -> Option<FromCache> {
    let concerns = |steps: &[String]| carried.step.as_ref().is_some_and(|step| steps.contains(step));
    findings.iter().find_map(|finding| match finding {
        Finding::Tiers(tiers) if tiers.series == carried.series && tiers.cause == Cause::Places => {
            let place = |at: usize| tiers.modes.get(at).map(|mode| ReadSource::of(Nanos(mode.median_ns)));
            // Groups of one place are no cache.
            let differ = (1..tiers.modes.len()).any(|at| place(at - 1) != place(at));
            let share = tiers.modes.first().filter(|_| differ)?.share;
            Some(FromCache::FasterTier { share, load: tiers.load.clone() })
        }
        Finding::Server(ServerFinding::PageCacheServed { steps, share, .. }) if concerns(steps) => {
            Some(FromCache::PageCache { share: *share })
        }
        Finding::Server(ServerFinding::PageCacheUnknown { steps, .. }) if concerns(steps) => {
            Some(FromCache::PageCacheUnknown)
        }
        Finding::CacheHeld(held) if concerns(&held.steps) => Some(FromCache::BufferCache { hit_ratio: held.hit_ratio }),
        _ => None,
    })
}

/// Something that makes the answer void, or less than it seems.
#[derive(Debug, Clone, PartialEq)]
pub struct OpeningDoubt {
    /// In few words, as they stand after a colon.
    pub phrase: String,
    /// The same with its figures, as the finding has it.
    pub sentence: String,
}

/// Doubts that the analysis puts before the answer.
fn leading(findings: &[Finding]) -> impl Iterator<Item = &Finding> {
    findings.iter().take_while(|finding| finding.severity() == Severity::Doubt)
}

/// The first doubt that stands before the answer, or that is about the very step that is reported. A burst that the answer
/// has taken into account is none.
fn find_doubt(
    run: &Run,
    findings: &[Finding],
    carried: Option<&Carried>,
    calibration: Option<&Calibration>,
    verdict: Option<&RunVerdict>,
) -> Option<OpeningDoubt> {
    let leads = leading(findings).count();
    let steps_of_answer: Vec<&String> = match (carried, calibration) {
        (Some(carried), _) => carried.step.iter().collect(),
        (_, Some(found)) => {
            [&found.max_iops, &found.max_bytes].into_iter().flatten().flat_map(|it| &it.steps).collect()
        }
        _ => Vec::new(),
    };
    let is_reported_so = |finding: &Finding| {
        matches!(finding, Finding::Burst(_))
            && carried.is_some_and(|carried| matches!(carried.claim, Claim::Sustained { .. }))
    };
    let concerns = |at: usize, finding: &Finding| match finding.steps() {
        // A calibration has an answer of its own, which findings are not sorted by.
        Some(steps) if calibration.is_some() => steps.iter().any(|step| steps_of_answer.contains(&step)),
        Some(steps) => at < leads || steps.iter().any(|step| steps_of_answer.contains(&step)),
        None => at < leads || calibration.is_some(),
    };
    let is_doubt = |at: usize, finding: &Finding| {
        let is_missing = matches!(finding, Finding::Fleet(FleetFinding::Missing { .. }));
        let is_said = is_missing || is_reported_so(finding) || verdict.is_some_and(|verdict| verdict.says(finding));
        finding.severity() == Severity::Doubt && !is_said && concerns(at, finding)
    };
    let (_, finding) = findings.iter().enumerate().find(|(at, finding)| is_doubt(*at, finding))?;
    let place = match finding.steps() {
        Some(steps) if run.steps.len() > 1 => format!(" in {}", list(steps)),
        _ => String::new(),
    };
    Some(OpeningDoubt { phrase: format!("{}{place}", phrase(finding)), sentence: finding.sentence() })
}

fn phrase(finding: &Finding) -> String {
    let words = match finding {
        Finding::ClientSaturated(_) => "the load generator had no processor time left",
        Finding::RateNotReached(_) => "the requested rate was not reached",
        Finding::NotCompleted(NotCompleted::Failed { .. }) => "the run failed",
        Finding::NotCompleted(NotCompleted::Interrupted { .. }) => "the run was ended early",
        Finding::NotCompleted(NotCompleted::Unfinished { .. }) => "the run has not finished, or its process was killed",
        Finding::OperationErrors(errors) => return format!("{} ended in errors", errors.words.work()),
        Finding::CannotBe(_) => "values of the run contradict each other",
        Finding::NotEnded(late) => return format!("{} did not end", late.words.work()),
        Finding::PageCacheUsed(PageCacheUse::Asked { .. }) => "requests went through the page cache",
        Finding::PageCacheUsed(_) => "the operating system's page cache may have served reads",
        Finding::SentLate(_) => "the load generator sent requests late",
        Finding::BytesDisagree(bytes) if bytes.copies.is_some() => "the kernel counted other writes than this program",
        Finding::BytesDisagree(_) => "the kernel counted other reads than this program",
        Finding::NotSteady(_) => "throughput was not steady",
        Finding::HeldUp(_) => "the load generator was stopped for a while",
        Finding::Stalled(_) => "nothing finished for a while although load was on",
        Finding::Burst(_) => "a burst credit may have run out",
        Finding::Rose(_) => "the rate rose while it was measured",
        Finding::CacheHeld(_) => "the buffer cache answered most reads",
        Finding::DurableWrites(_) => "durable writes did not reach the device",
        Finding::Ceiling(_) => "the load generator was the limit",
        Finding::Steady(_) => "throughput did not settle",
        Finding::CacheTrap(_) => "the data set fits into a cache",
        Finding::Server(ServerFinding::ProcessorsExhausted { .. }) => "the server had no processor time left",
        Finding::Server(ServerFinding::ShapeChanged { .. }) => "the tables changed their shape",
        Finding::Server(ServerFinding::PageCacheServed { .. }) => "the page cache answered most buffer misses",
        Finding::Server(ServerFinding::Unread { .. }) => "a server's counters are incomplete",
        Finding::Server(ServerFinding::RolledBack { .. }) => "transactions were rolled back",
        Finding::Fleet(FleetFinding::Died { .. }) => "a part of the fleet did not come to its end",
        Finding::Fleet(FleetFinding::Forced { .. }) => "runs were merged that do not belong together",
        Finding::Group(GroupFinding::Dropped(_)) => "a member of a disk group failed",
        // Findings of other kinds are never doubts.
        other => return other.sentence().trim_end_matches('.').to_owned(),
    };
    words.to_owned()
}
