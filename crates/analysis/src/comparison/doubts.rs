//! Why two runs may not be comparable. Nothing is refused: it is reported.

use super::settings;
use super::{ComparedLoad, Grounds};
use crate::message::list;
use crate::server;
use crate::{Figures, Finding, GeneratorVerdict, LimitedBy, Severity, operations_are_requests, proof};
use model::record::{Run, Step};
use model::units::{Bytes, Nanos, percent};

/// Operations that commit.
const UPDATE: &str = "update";
/// Hit ratios this far apart are another amount of reading for one operation.
const SAME_HIT_RATIO: f64 = 0.05;
/// Windows longer than others by this factor see what the others cannot.
const SAME_LENGTH: f64 = 2.0;

/// One reason to doubt the comparison of a run with the baseline. Values are the baseline's first.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each variant's fields are the figures of its sentence, named with their units")]
pub enum Doubt {
    /// Nothing was compared, as no load of one run was asked of the other.
    NoLoadInCommon,
    /// Loads of different workloads have nothing in common.
    DifferentWorkload { values: [String; 2] },
    /// One is a closed loop, the other an open one.
    DifferentLoops { open: usize },
    /// Engine, server, raw storage or simulation: it may be on purpose.
    DifferentTarget { values: [String; 2] },
    /// Another program made one of them, and may count otherwise.
    DifferentTool { values: [String; 2] },
    /// Requests of another size.
    DifferentBlockSize { values: [Bytes; 2] },
    /// A parameter that says what one operation does.
    DifferentWork { name: String, values: [Option<String>; 2] },
    /// Only one of them waits for the commits of its updates.
    UnwaitedCommits { without: usize },
    /// One of them checks what it reads.
    DifferentVerification { verifying: usize },
    /// Only one of them reads through the page cache.
    PageCacheOnOneSide { through: usize },
    /// The buffer cache answered more in one of them.
    DifferentHitRatio { load: String, shares: [f64; 2] },
    /// Windows of very different length.
    DifferentWindows { load: String, lengths: [Nanos; 2] },
    /// The figures of these steps show the limit of the load generator.
    GeneratorBound { side: usize, steps: Vec<String> },
    /// What was noticed in one run alone: failed, ended early, unsteady, stalled, a cache that held the data, and so on.
    OfRun { side: usize, finding: Box<Finding> },
}

impl Doubt {
    /// In one or two sentences; the names are those of the baseline and the other run.
    pub fn sentence(&self, names: [&str; 2]) -> String {
        let [baseline, other] = names;
        match self {
            Self::NoLoadInCommon => {
                format!("`{baseline}` and `{other}` have no load in common, so nothing of them was compared.")
            }
            Self::DifferentWorkload { values: [a, b] } => {
                format!("The workloads differ: `{a}` in `{baseline}`, `{b}` in `{other}`.")
            }
            Self::DifferentLoops { open } => format!(
                "`{}` is an open loop, where the rate is set, and `{}` a closed one, where it is found.",
                names[*open],
                names[1 - open]
            ),
            Self::DifferentTarget { values: [a, b] } => format!(
                "The targets differ in kind: `{a}` in `{baseline}`, `{b}` in `{other}`. An operation may not be the same \
                 work in both."
            ),
            Self::DifferentTool { values: [a, b] } => {
                format!("`{a}` made `{baseline}` and `{b}` made `{other}`: they may not count and time alike.")
            }
            Self::DifferentBlockSize { values: [a, b] } => format!(
                "The block sizes differ: {a} in `{baseline}`, {b} in `{other}`. A rate of requests of one size says little \
                 about the other."
            ),
            Self::DifferentWork { name, values } => {
                let [a, b] = values.each_ref().map(|value| value.as_deref().unwrap_or("not set"));
                format!(
                    "An operation is not the same work in both: {name} is {a} in `{baseline}` and {b} in `{other}`."
                )
            }
            Self::UnwaitedCommits { without } => format!(
                "The server does not make commits durable in `{}`, and does in `{}`. Commits are different work in \
                 both, and may be lost in the former.",
                names[*without],
                names[1 - without]
            ),
            Self::DifferentVerification { verifying } => format!(
                "`{}` checks every block that it reads and `{}` does not, which costs processor time.",
                names[*verifying],
                names[1 - verifying]
            ),
            Self::PageCacheOnOneSide { through } => format!(
                "`{}` reads through the page cache of the operating system and `{}` does not.",
                names[*through],
                names[1 - through]
            ),
            Self::DifferentHitRatio { load, shares: [a, b] } => format!(
                "At {load} the buffer cache answered {} % of logical reads in `{baseline}` and {} % in `{other}`: an \
                 operation reads another amount from storage.",
                percent(*a),
                percent(*b)
            ),
            Self::DifferentWindows { load, lengths: [a, b] } => format!(
                "The windows at {load} differ in length: {a} in `{baseline}`, {b} in `{other}`. The longer one sees what \
                 sets in later."
            ),
            Self::GeneratorBound { side, steps } => format!(
                "In `{}` the load generator was the limit in {}: a difference there is not one of the target.",
                names[*side],
                list(steps)
            ),
            Self::OfRun { side, finding } => format!("In `{}`: {}", names[*side], finding.sentence()),
        }
    }

    /// What the user can do about it. What was imported is not made again: another report of it is taken.
    pub fn advice(&self, grounds: Grounds) -> Option<String> {
        let advice = match self {
            Self::OfRun { finding, .. } => return finding.advice(),
            Self::NoLoadInCommon if grounds == Grounds::Reports => {
                "Take results of the same sessions, depths or rates."
            }
            Self::DifferentBlockSize { .. } | Self::DifferentWork { .. } | Self::DifferentHitRatio { .. }
                if grounds == Grounds::Reports =>
            {
                "Take results in which it is the same, unless this is what you vary."
            }
            Self::DifferentWindows { .. } if grounds == Grounds::Reports => {
                "Take results of windows of the same length."
            }
            Self::NoLoadInCommon => "Ask both for the same sessions, depths or rates.",
            Self::DifferentWorkload { .. } | Self::DifferentLoops { .. } => "Compare runs of the same command.",
            Self::DifferentTarget { .. } => {
                "Compare the shape of latencies rather than rates, unless this is what you vary."
            }
            Self::DifferentTool { .. } => "Look up how each defines its figures before trusting small differences.",
            Self::DifferentBlockSize { .. } => "Repeat one of them with the block size of the other.",
            Self::DifferentWork { .. } => "Repeat one of them with the same value, unless this is what you vary.",
            Self::UnwaitedCommits { .. } => "Repeat one of them with the commits of the other.",
            Self::DifferentVerification { .. } => "Verify in both or in neither.",
            Self::PageCacheOnOneSide { .. } => "Use direct I/O in both.",
            Self::DifferentHitRatio { .. } => "Give both the same ratio of cache to data.",
            Self::DifferentWindows { .. } => "Give both the same length.",
            Self::GeneratorBound { .. } => "Give the load generator more threads or processors and repeat it.",
        };
        Some(advice.to_owned())
    }

    /// Whether it is about the figures of steps with these labels on the baseline's and the other side.
    pub(super) fn is_about(&self, load: &str, labels: &[Vec<String>; 2]) -> bool {
        let any = |side: usize, steps: &[String]| steps.iter().any(|step| labels[side].contains(step));
        match self {
            Self::DifferentHitRatio { load: reported, .. } | Self::DifferentWindows { load: reported, .. } => {
                reported == load
            }
            Self::GeneratorBound { side, steps } => any(*side, steps),
            Self::OfRun { side, finding } => finding.steps().is_none_or(|steps| any(*side, steps)),
            _ => true,
        }
    }
}

/// Doubts about the comparison of `runs[1]` with `runs[0]`, of which the findings are given.
pub(super) fn find(runs: [&Run; 2], findings: [&[Finding]; 2], loads: &[ComparedLoad]) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    if loads.is_empty() {
        doubts.push(Doubt::NoLoadInCommon);
    }
    let differ = |value: &dyn Fn(&Run) -> String| Some(runs.map(value)).filter(|[a, b]| a != b);
    doubts.extend(differ(&|run| run.workload().to_string()).map(|values| Doubt::DifferentWorkload { values }));
    let is_open = |run: &Run| {
        let open = |step: &Step| step.load.rate_operations_per_s.is_some();
        (!run.steps.is_empty() && run.steps.iter().all(open), run.steps.iter().any(open))
    };
    match runs.map(is_open) {
        [(true, _), (_, false)] => doubts.push(Doubt::DifferentLoops { open: 0 }),
        [(_, false), (true, _)] => doubts.push(Doubt::DifferentLoops { open: 1 }),
        _ => {}
    }
    doubts.extend(differ(&|run| run.target.kind_name().to_owned()).map(|values| Doubt::DifferentTarget { values }));
    doubts.extend(differ(&|run| run.tool.name.clone()).map(|values| Doubt::DifferentTool { values }));
    if let [Some(a), Some(b)] = runs.map(|run| run.target.block_bytes)
        && a != b
    {
        doubts.push(Doubt::DifferentBlockSize { values: [Bytes(a), Bytes(b)] });
    }
    for difference in settings::differences(&runs).into_iter().filter(|difference| settings::is_work(&difference.name))
    {
        // The size of blocks is reported above, and other workloads have other parameters.
        let is_reported = difference.name == "BLOCK_SIZE" || runs[0].workload() != runs[1].workload();
        if let ([a, b], false) = (difference.values.as_slice(), is_reported) {
            doubts.push(Doubt::DifferentWork { name: difference.name.clone(), values: [a.clone(), b.clone()] });
        }
    }
    match runs.map(waits_for_commits) {
        [Some(true), Some(false)] => doubts.push(Doubt::UnwaitedCommits { without: 1 }),
        [Some(false), Some(true)] => doubts.push(Doubt::UnwaitedCommits { without: 0 }),
        _ => {}
    }
    match runs.map(settings::verifies) {
        [true, false] => doubts.push(Doubt::DifferentVerification { verifying: 0 }),
        [false, true] => doubts.push(Doubt::DifferentVerification { verifying: 1 }),
        _ => {}
    }
    match runs.map(proof::is_through_page_cache) {
        [true, false] => doubts.push(Doubt::PageCacheOnOneSide { through: 0 }),
        [false, true] => doubts.push(Doubt::PageCacheOnOneSide { through: 1 }),
        _ => {}
    }
    for load in loads {
        doubts.extend(hit_ratios(runs, load));
        doubts.extend(windows(runs, load));
    }
    for side in [0, 1] {
        doubts.extend(of_run(side, runs[side], findings[side], loads));
    }
    doubts
}

/// Whether a run's updates waited for their commits; nothing where it had none.
fn waits_for_commits(run: &Run) -> Option<bool> {
    let mut operations = run.steps.iter().flat_map(|step| &step.operations);
    let has_updates = operations.any(|operation| operation.kind == UPDATE && operation.count > 0);
    (has_updates || server::has_commits(run)).then(|| run.target.facts.server.loses_commits().is_empty())
}

/// The mean over the steps of each side of a load.
fn means(runs: [&Run; 2], load: &ComparedLoad, value: impl Fn(&Step) -> Option<f64>) -> Option<[f64; 2]> {
    let side = |side: usize| {
        let values: Vec<f64> = load.steps(runs[side], side).map(&value).collect::<Option<_>>()?;
        Some(values.iter().sum::<f64>() / values.len().max(1) as f64)
    };
    Some([side(0)?, side(1)?])
}

fn hit_ratios(runs: [&Run; 2], load: &ComparedLoad) -> Option<Doubt> {
    let shares = means(runs, load, |step| Figures(step).hit_ratio())?;
    let apart = (shares[0] - shares[1]).abs() > SAME_HIT_RATIO;
    apart.then(|| Doubt::DifferentHitRatio { load: load.name.clone(), shares })
}

fn windows(runs: [&Run; 2], load: &ComparedLoad) -> Option<Doubt> {
    let [a, b] = means(runs, load, |step| Some(step.window.duration_ns as f64))?;
    let lengths = [Nanos(a as u64), Nanos(b as u64)];
    (a.max(b) > SAME_LENGTH * a.min(b)).then(|| Doubt::DifferentWindows { load: load.name.clone(), lengths })
}

/// What was noticed in one run and is about a load that both have. That sessions waited for the load generator is only a note
/// on one run, but a rate that is held against another is then not the target's alone.
fn of_run(side: usize, run: &Run, findings: &[Finding], loads: &[ComparedLoad]) -> Vec<Doubt> {
    let compared: Vec<&Step> = loads.iter().flat_map(|load| load.steps(run, side)).collect();
    let concerns = |finding: &&Finding| {
        let about = |steps: &[String]| compared.iter().any(|step| steps.contains(&step.label));
        let is_doubt = finding.severity() == Severity::Doubt || matches!(finding, Finding::WaitedForProcessor(_));
        is_doubt && finding.steps().is_none_or(about)
    };
    let of_concern: Vec<&Finding> = findings.iter().filter(concerns).collect();
    let is_generators = |step: &&&Step| {
        let known = of_concern.iter().any(|finding| {
            matches!(finding, Finding::ClientSaturated(_))
                && finding.steps().is_some_and(|steps| steps.contains(&step.label))
        });
        !known && GeneratorVerdict::of(step).is_some_and(|verdict| verdict.limited_by == LimitedBy::Generator)
    };
    let steps: Vec<String> = compared.iter().filter(is_generators).map(|step| step.label.clone()).collect();
    let bound = (operations_are_requests(run) && !steps.is_empty()).then_some(Doubt::GeneratorBound { side, steps });
    let found = of_concern.into_iter().map(|finding| Doubt::OfRun { side, finding: Box::new(finding.clone()) });
    bound.into_iter().chain(found).collect()
}
