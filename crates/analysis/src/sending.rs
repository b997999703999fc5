//! Whether the load was sent as it was asked for, and what kept the load generator from it.

use super::generator::{held_back_share, is_held_back, own_wanted_share, throttled_share, wanted_share};
use super::message::list;
use super::{Figures, Message, Served, ThreadsFlag, Vocabulary, is_on_server, measured, worst};
use crate::Rule;
use model::record::{Run, Step};
use model::units::{group_thousands, percent};

/// A thread or a machine busier than this had no time left to send load when it was due.
pub(super) const SATURATED: f64 = 0.9;
/// A thread that missed this share of the time or more was kept from processors; a process that a quota held back in this share of its
/// periods or more used it up.
const MISSED: f64 = 0.2;
/// What took this part or more of what it missed kept it.
const MOSTLY: f64 = 0.5;
/// What helps a load generator that a quota holds back.
pub(super) const OUT_OF_QUOTA: &str =
    "Start the load outside of that control group, or raise its limit: `cpu.max`, or `cpu.cfs_quota_us` of version 1.";
/// Share of the asked rate that counts as reached; Poisson arrivals of a short window stray by less.
const RATE_REACHED: f64 = 0.97;
/// A backlog above this share of what was due is a queue that grows.
const BACKLOG: f64 = 0.01;
const IDLE: f64 = 0.05;

/// Share of the processors that the process may use which it kept busy, 0 to 1.
fn processor_share(run: &Run, step: &Step) -> Option<f64> {
    let cpus = run.environment.cpus.filter(|cpus| *cpus > 0)?;
    Some(Figures(step).processors_busy()? / f64::from(cpus))
}

/// The busier of the load generator's busiest thread and the process as a whole, if either is saturated, or a quota holds it back.
fn saturation(run: &Run, step: &Step) -> Option<f64> {
    let thread = own_wanted_share(step);
    let process = processor_share(run, step);
    let held_back = wanted_share(step).filter(|_| is_held_back(step));
    thread.into_iter().chain(process).filter(|share| *share > SATURATED).chain(held_back).reduce(f64::max)
}

pub(super) fn is_saturated(run: &Run, step: &Step) -> bool {
    saturation(run, step).is_some()
}

/// The load generator had no processor time left.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ClientSaturated {
    /// Labels of the steps.
    pub steps: Vec<String>,
    /// The largest share of the time that was used or wanted, 0 to 1.
    pub share: f64,
    /// Whether that is of all processors that the process may use, rather than of one by a single thread.
    pub whole_machine: bool,
    /// What kept it from processors in the step with that share; `null` where it used them.
    pub kept_by: Option<KeptBy>,
    /// Share of the time for which the thread had a processor there, 0 to 1.
    pub used: f64,
    /// Whether a database server on this machine shared its processors.
    pub is_beside_server: bool,
}

/// What keeps a load generator from a processor on a machine that has some free.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptBy {
    /// A limit on processor time of its control group.
    Quota,
    /// Others, such as a server on the same machine, with the share of all processors that they used, 0 to 1.
    Others(f64),
    /// The kernel did not say, what it said explains too little, or the run is older than that.
    Unknown,
}

impl KeptBy {
    /// Of a step whose busiest thread, or whole process, wanted processors nearly always; absent where it had them.
    fn of(step: &Step, is_whole: bool) -> Option<Self> {
        if is_whole {
            // The processors that it may use are those that a quota leaves to it.
            let throttled = step.generator.as_ref()?.throttled?;
            return (throttled_share(throttled) >= MISSED).then_some(Self::Quota);
        }
        if is_held_back(step) {
            return Some(Self::Quota);
        }
        let used = step.generator.as_ref()?.busiest_share;
        let missed = own_wanted_share(step).filter(|share| *share > SATURATED)? - used;
        if missed < MISSED {
            return None;
        }
        let Some(held_back) = held_back_share(step) else { return Some(Self::Unknown) };
        if held_back >= MOSTLY * missed {
            return Some(Self::Quota);
        }
        let window_ns = step.window.duration_ns as f64;
        let others = step.process_cpu.zip(step.host_cpu).and_then(|(process, host)| {
            let all_ns = host.busy_ns().saturating_add(host.steal_ns.unwrap_or(0)).saturating_add(host.free_ns()?);
            let others_ns = host.busy_ns().saturating_sub(process.busy_ns()) as f64;
            // Others that had less than it missed are not what kept it.
            (others_ns >= missed * window_ns).then(|| others_ns / all_ns.max(1) as f64)
        });
        Some(others.map_or(Self::Unknown, Self::Others))
    }
}

/// Whether a quota kept the load generator from processors.
pub(super) fn is_under_quota(run: &Run) -> bool {
    ClientSaturated::of(run).is_some_and(|found| found.kept_by == Some(KeptBy::Quota))
}

impl ClientSaturated {
    pub(super) fn of(run: &Run) -> Option<Self> {
        let (steps, most) = worst(run, |step| saturation(run, step))?;
        let step = measured(run).find(|step| saturation(run, step) == Some(most))?;
        let whole = processor_share(run, step).filter(|share| *share > SATURATED);
        let generator = step.generator.as_ref();
        Some(Self {
            steps,
            share: whole.unwrap_or(most).min(1.0),
            whole_machine: whole.is_some(),
            kept_by: KeptBy::of(step, whole.is_some()),
            used: generator.map_or(0.0, |generator| generator.busiest_share).min(1.0),
            is_beside_server: Served::of(run, step).processors().is_some(),
        })
    }
}

impl Message for ClientSaturated {
    fn rule(&self) -> Rule {
        Rule::GeneratorSaturated
    }

    fn sentence(&self) -> String {
        let (share, used, steps) = (percent(self.share), percent(self.used), list(&self.steps));
        let wanted =
            format!("The busiest thread wanted a processor for {share} % of the time and had one for {used} %");
        let of_generator = "these figures show the limit of the load generator, not of the target";
        match (self.whole_machine, self.kept_by) {
            (true, Some(KeptBy::Quota)) => format!(
                "This process used {share} % of the processors that a quota of its control group leaves to it, in {steps}: {of_generator}."
            ),
            (true, _) => {
                format!("This process used {share} % of the processors that it may use in {steps}: {of_generator}.")
            }
            (false, None) => format!("The busiest thread used {used} % of its processor in {steps}: {of_generator}."),
            (false, Some(KeptBy::Quota)) => {
                format!("{wanted}, as a quota of its control group held it back, in {steps}: {of_generator}.")
            }
            (false, Some(KeptBy::Others(share))) => {
                let share = percent(share);
                let (who, limit) = match self.is_beside_server {
                    true => (
                        "the server and other programs",
                        "these figures show the limit of this machine, which all share",
                    ),
                    false => ("other programs", of_generator),
                };
                format!("{wanted}, in {steps}, while {who} used {share} % of this machine's processors: {limit}.")
            }
            (false, Some(KeptBy::Unknown)) => {
                format!("{wanted}, and the kernel does not say what kept it, in {steps}: {of_generator}.")
            }
        }
    }

    fn advice(&self) -> Option<String> {
        let advice = match self.kept_by {
            Some(KeptBy::Quota) => OUT_OF_QUOTA,
            Some(KeptBy::Others(_)) => "Generate the load on another machine, or give this one more processors.",
            Some(KeptBy::Unknown) => "See what else uses this machine and which quota holds (`plimsoll doctor`).",
            None => {
                "Judge storage by steps with less load, use fewer, larger operations, or give the machine more processors."
            }
        };
        Some(advice.to_owned())
    }

    fn steps(&self) -> Option<&[String]> {
        Some(&self.steps)
    }
}

/// Asked rate, achieved rate and backlog of an open loop that fell behind its schedule.
pub(super) fn behind(step: &Step) -> Option<(f64, f64, Option<u64>)> {
    let asked = step.load.rate_operations_per_s?;
    // What failed was sent and answered all the same: it is reported as failed, not as a queue.
    let achieved = Figures(step).ended_per_s()?;
    let generator = step.generator.as_ref();
    let due = generator.and_then(|generator| generator.due_operations);
    let backlog = generator.and_then(|generator| generator.backlog_operations);
    // Arrivals drawn at random may be fewer than asked; that is no fault of the target.
    let wanted = super::rate(due, step.window.duration_ns).map_or(asked, |due| due.min(asked));
    let queue_grows = match (due, backlog) {
        (Some(due), Some(backlog)) => {
            backlog as f64 > (BACKLOG * due as f64).max(step.load.sessions.map_or(0.0, f64::from))
        }
        _ => false,
    };
    (achieved < RATE_REACHED * wanted || queue_grows).then_some((asked, achieved, backlog))
}

/// An open loop fell behind its schedule.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct RateNotReached {
    /// Label of the step.
    pub step: String,
    /// Operations per second that were asked for.
    pub asked_per_s: f64,
    /// Operations per second that ended.
    pub achieved_per_s: f64,
    /// Operations that were due and not sent when the window ended.
    pub backlog: Option<u64>,
    /// What rates are called.
    #[serde(skip)]
    pub words: Vocabulary,
}

impl RateNotReached {
    pub(super) fn of(run: &Run, step: &Step) -> Option<Self> {
        let (asked_per_s, achieved_per_s, backlog) = behind(step)?;
        Some(Self { step: step.label.clone(), asked_per_s, achieved_per_s, backlog, words: Vocabulary::of(run) })
    }
}

impl Message for RateNotReached {
    fn rule(&self) -> Rule {
        Rule::RunRateNotReached
    }

    fn sentence(&self) -> String {
        let Self { step, asked_per_s, achieved_per_s, backlog, words } = self;
        let queue = backlog.map_or(String::new(), |operations| {
            format!(", with {} {} due but not sent at the end", group_thousands(operations as f64), words.work())
        });
        format!(
            "The requested rate was not reached in {step}: {} of {}{queue}.",
            group_thousands(*achieved_per_s),
            words.rate(*asked_per_s)
        )
    }

    fn advice(&self) -> Option<String> {
        let more = match self.words {
            Vocabulary::Sessions => "more sessions if latency was low",
            Vocabulary::Users => "more users if latency was low",
            Vocabulary::Requests => "a larger --depth if service times were short",
        };
        Some(format!("Ask for a lower rate, or {more}; response times include the queue."))
    }

    fn steps(&self) -> Option<&[String]> {
        Some(std::slice::from_ref(&self.step))
    }
}

/// Reads are sent by plain system calls.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct FallbackEngine {
    /// What sends them, in lower case.
    pub engine: String,
}

impl FallbackEngine {
    pub(super) fn of(run: &Run) -> Option<Self> {
        let engine = run.target.facts.files.io_engine.as_ref()?.to_ascii_lowercase();
        (engine.contains("psync") || engine.contains("pread")).then_some(Self { engine })
    }
}

impl Message for FallbackEngine {
    fn rule(&self) -> Rule {
        Rule::GeneratorFallback
    }

    fn sentence(&self) -> String {
        let Self { engine } = self;
        format!(
            "Requests were sent by `{engine}`, not io_uring: they cost more processor time and fewer can be outstanding."
        )
    }

    fn advice(&self) -> Option<String> {
        Some(
            "Unless you chose that, allow io_uring (kernel.io_uring_disabled, or the container's seccomp profile)."
                .to_owned(),
        )
    }
}

/// Share of the window in which sessions stood ready, if it is worth reporting.
pub(super) fn idle(step: &Step) -> Option<f64> {
    let available = step.window.duration_ns as f64 * f64::from(step.load.sessions?);
    let share = step.generator.as_ref()?.idle_session_ns as f64 / available;
    (share > IDLE).then_some(share)
}

/// Sessions had nothing to do inside the window.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct WaitedForProcessor {
    /// Labels of the steps.
    pub steps: Vec<String>,
    /// The largest share of the window of a step, 0 to 1.
    pub share: f64,
    /// What those that waited are called.
    #[serde(skip)]
    pub words: Vocabulary,
    /// By which flag the generator is given more threads.
    #[serde(skip)]
    pub threads: ThreadsFlag,
    /// Threads of the generator and processors, where it had more of the former.
    #[serde(skip)]
    pub crowd: Option<(u32, u32)>,
}

impl WaitedForProcessor {
    pub(super) fn of(run: &Run) -> Option<Self> {
        // Of a server it is reported with what its sessions were doing.
        let (steps, share) = worst(run, |step| idle(step).filter(|_| !is_on_server(step)))?;
        let lanes = measured(run).filter_map(|step| Some(step.generator.as_ref()?.lanes)).max();
        let crowd = lanes.zip(run.environment.cpus).filter(|(lanes, cpus)| lanes > cpus);
        Some(Self { steps, share, words: Vocabulary::of(run), threads: ThreadsFlag::of(run), crowd })
    }
}

impl Message for WaitedForProcessor {
    fn rule(&self) -> Rule {
        Rule::GeneratorWaited
    }

    fn sentence(&self) -> String {
        let who = match self.words {
            Vocabulary::Sessions => "Sessions stood ready",
            Vocabulary::Users => "Users stood ready",
            Vocabulary::Requests => "Request slots stood empty in the load generator",
        };
        let (share, steps) = (percent(self.share), list(&self.steps));
        format!("{who} for {share} % of the window in {steps} before a thread came to them.")
    }

    fn advice(&self) -> Option<String> {
        let what = match self.words {
            Vocabulary::Requests => "Storage saw fewer simultaneous requests than you set.",
            Vocabulary::Sessions | Vocabulary::Users => {
                "They waited for a thread of the load generator, as sessions of a busy database wait for processors."
            }
        };
        let way_out = match self.crowd {
            Some((lanes, cpus)) => {
                let fewer = self.threads.fewer_threads();
                format!("{} threads share {cpus} processors: {fewer} send more.", group_thousands(f64::from(lanes)))
            }
            None => self.threads.where_idle(),
        };
        Some(format!("{what} {way_out}"))
    }

    fn steps(&self) -> Option<&[String]> {
        Some(&self.steps)
    }
}
