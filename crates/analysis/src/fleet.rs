//! The parts of a merged run beside each other: what is missing, who differs, and whose clock or start was off.

use crate::Rule;
use crate::levels::{median, median_of};
use std::collections::{BTreeMap, BTreeSet};

use super::message::list;
use super::{Finding, Message};
use model::record::{MergedPart, Outcome, PartStep, Run};
use model::units::{Nanos, group_thousands, percent};

/// A rate for each session that is closer to the median part's than this share is nobody's fault.
const RATE_DIFFERS: f64 = 0.05;
/// Percentiles scatter more: one in a hundred operations makes them.
const P99_DIFFERS: f64 = 0.25;
/// As many times the median distance from the median is far: three standard deviations, were they scattered normally.
const FAR: f64 = 3.0 * 1.4826;
/// Starts and clocks that are off by less make rates of single seconds wrong by less than 1 %.
const NOTED_NS: u64 = 10_000_000;

/// What is to be said of the parts of a merged run.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum FleetFinding {
    /// Some of the load was not there.
    Missing {
        /// Steps that it is about.
        steps: Vec<String>,
        /// Parts that were there, in the step with the fewest.
        there: u32,
        /// Parts that there should be.
        parts: u32,
    },
    /// A part did not come to its end.
    Died {
        /// Part and host.
        who: String,
        /// What became of it, as a predicate.
        how: String,
    },
    /// Runs were merged that do not belong together.
    Forced {
        /// Why they do not.
        why: Vec<String>,
    },
    /// A part, or all parts of a host, did something else than the median part.
    Differs {
        /// Part or host.
        who: String,
        /// What differs.
        figure: PartFigure,
        /// Its value in the step where it is farthest off, in operations per second or nanoseconds.
        value: f64,
        /// How much more than the median it is there, as a share; negative is less. Of rates it is of those for each session.
        more: f64,
        /// Steps in which it differs.
        steps: Vec<String>,
    },
    /// Parts did not begin when it was agreed.
    Late {
        /// How many.
        parts: usize,
        /// The one that was farthest off.
        who: String,
        /// By how much: positive is late.
        by_ns: i64,
    },
    /// Clocks were off by more than their bound; the merge has put that right.
    ClockOff {
        /// How many.
        clocks: usize,
        /// Part and host of the one that was farthest off.
        who: String,
        /// What had to be added to its times.
        by_ns: i64,
        /// How far the true offset may be from that.
        uncertainty_ns: u64,
    },
}

/// What parts are held against each other by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PartFigure {
    /// Operations per second, for each session or as a share of what was asked.
    Rate,
    /// 99th percentile of response times.
    P99,
}

impl FleetFinding {
    /// What stands before the answer of a run that is not the whole experiment; absent for others.
    pub fn before_answer(&self) -> Option<String> {
        let Self::Missing { there, parts, .. } = self else { return None };
        Some(format!("By {there} of {parts} parts, with {} of the load missing: ", self.missing_share()))
    }

    fn missing_share(&self) -> String {
        let Self::Missing { there, parts, .. } = self else { return String::new() };
        let share = 1.0 - f64::from(*there) / f64::from((*parts).max(1));
        let digits = percent(share);
        format!("{digits} %")
    }
}

impl Message for FleetFinding {
    fn rule(&self) -> Rule {
        match self {
            Self::Missing { .. } => Rule::FleetMissing,
            Self::Died { .. } => Rule::FleetDied,
            Self::Forced { .. } => Rule::FleetForced,
            Self::Differs { .. } => Rule::FleetDiffers,
            Self::Late { .. } => Rule::FleetLate,
            Self::ClockOff { .. } => Rule::FleetClock,
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::Missing { steps, there, parts } => format!(
                "{there} of {parts} parts are in {}: {} of the requested load is missing. This is what the others \
                 did without it.",
                list(steps),
                self.missing_share()
            ),
            Self::Died { who, how } => format!("{} {how}.", capital(who)),
            Self::Forced { why: what } => {
                let more = match what.len() {
                    0 | 1 => String::new(),
                    2 => ", and one thing more".to_owned(),
                    count => format!(", and {} things more", count - 1),
                };
                format!(
                    "Runs that do not belong together were merged: {}{more}.",
                    what.first().map_or("", String::as_str)
                )
            }
            Self::Differs { who, figure, value, more, steps } => {
                let than = if *more < 0.0 { "less" } else { "more" };
                let share = percent(more.abs());
                match figure {
                    PartFigure::Rate => format!(
                        "{} did {} operations/s in {}, for its share {share} % {than} than the median part.",
                        capital(who),
                        group_thousands(*value),
                        list(steps)
                    ),
                    PartFigure::P99 => format!(
                        "{} had a p99 of {} in {}, {share} % {than} than the median part.",
                        capital(who),
                        Nanos(*value as u64),
                        list(steps)
                    ),
                }
            }
            Self::Late { parts, who, by_ns } => {
                let than = if *by_ns < 0 { "before" } else { "after" };
                let others = if *parts > 1 { format!(", of {parts} that were off") } else { String::new() };
                format!("{} began {} {than} the agreed start{others}.", capital(who), Nanos(by_ns.unsigned_abs()))
            }
            Self::ClockOff { clocks, who, by_ns, uncertainty_ns } => {
                let than = if *by_ns < 0 { "ahead of" } else { "behind" };
                let others = if *clocks > 1 { format!(", of {clocks} that were off") } else { String::new() };
                format!(
                    "The clock of {who} was {} {than} that of part 0 (known within {}){others}; the merge has put that right.",
                    Nanos(by_ns.unsigned_abs()),
                    Nanos(*uncertainty_ns)
                )
            }
        }
    }

    fn advice(&self) -> Option<String> {
        Some(match self {
            Self::Missing { .. } => {
                "merge the other runs too where there are any, else repeat the experiment".to_owned()
            }
            Self::Died { .. } => "look why on its host, and repeat the experiment".to_owned(),
            Self::Forced { .. } => {
                "do not repeat these figures before you know that the difference does not matter".to_owned()
            }
            Self::Differs { figure: PartFigure::Rate, .. } => {
                "look at its processors and its way to the target; the table of parts has all of them".to_owned()
            }
            Self::Differs { .. } => "look at its way to the target; the table of parts has all of them".to_owned(),
            Self::Late { .. } => "agree on a later start, or start with a meeting point: `--meet`".to_owned(),
            Self::ClockOff { .. } => "have the hosts' clocks set from one source, by chrony for instance".to_owned(),
        })
    }

    fn steps(&self) -> Option<&[String]> {
        match self {
            Self::Missing { steps, .. } => Some(steps),
            _ => None,
        }
    }
}

pub(crate) fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// All that is to be said of the parts of a run; nothing of one that is not merged.
pub(super) fn find(run: &Run) -> Vec<Finding> {
    let Some(merged) = &run.merged else { return Vec::new() };
    let label = |step: u32| run.steps.iter().find(|known| known.index == step).map(|step| step.label.clone());
    let fewer: Vec<_> = merged.steps.iter().filter(|step| step.parts < merged.parts).collect();
    let missing = fewer.iter().map(|step| step.parts).min().map(|there| FleetFinding::Missing {
        steps: fewer.iter().filter_map(|step| label(step.step)).collect(),
        there,
        parts: merged.parts,
    });
    let died = run.parts.iter().filter_map(|part| {
        let how = match &part.outcome {
            Outcome::Completed | Outcome::Interrupted => return None,
            Outcome::Unfinished => "was killed, or has not finished".to_owned(),
            Outcome::Failed { error } => format!("failed ({error})"),
        };
        Some(FleetFinding::Died { who: who(part), how })
    });
    let forced = Some(FleetFinding::Forced { why: merged.forced.clone() }).filter(|_| !merged.forced.is_empty());
    let all = missing.into_iter().chain(died).chain(forced).chain(differing(run)).chain(late(run)).chain(clocks(run));
    all.map(Finding::Fleet).collect()
}

/// What stands before the answer.
pub(super) fn before_answer(findings: &[Finding]) -> Option<String> {
    findings.iter().find_map(|finding| match finding {
        Finding::Fleet(found) => found.before_answer(),
        _ => None,
    })
}

/// A part in a sentence.
fn who(part: &MergedPart) -> String {
    let host = part.host.as_ref().map_or_else(String::new, |host| format!(" ({host})"));
    format!("part {}{host}", part.number)
}

fn late(run: &Run) -> Option<FleetFinding> {
    let off = run.parts.iter().filter_map(|part| Some((part, part.start_error_ns?)));
    let off: Vec<_> = off.filter(|(_, by_ns)| by_ns.unsigned_abs() > NOTED_NS).collect();
    let (part, by_ns) = off.iter().max_by_key(|(_, by_ns)| by_ns.unsigned_abs())?;
    Some(FleetFinding::Late { parts: off.len(), who: who(part), by_ns: *by_ns })
}

fn clocks(run: &Run) -> Option<FleetFinding> {
    let known = run.parts.iter().filter_map(|part| Some((part, part.clock?)));
    let off: Vec<_> =
        known.filter(|(_, clock)| clock.offset_ns().unsigned_abs() > clock.uncertainty_ns().max(NOTED_NS)).collect();
    let (part, clock) = off.iter().max_by_key(|(_, clock)| clock.offset_ns().unsigned_abs())?;
    let (by_ns, uncertainty_ns) = (clock.offset_ns(), clock.uncertainty_ns());
    Some(FleetFinding::ClockOff { clocks: off.len(), who: who(part), by_ns, uncertainty_ns })
}

/// One part in one step, by one figure.
struct Value<'a> {
    part: &'a MergedPart,
    /// As it is reported.
    shown: f64,
    /// As it is held against others: a rate for each session, or as a share of what was asked.
    held: f64,
    /// How much that scatters within the part.
    scatter: f64,
}

impl<'a> Value<'a> {
    fn of(figure: PartFigure, part: &'a MergedPart, step: &PartStep) -> Option<Self> {
        match figure {
            PartFigure::Rate => {
                let shown = step.operations_per_s?;
                let share = step.asked_operations_per_s.or(step.sessions.map(f64::from)).filter(|share| *share > 0.0);
                let share = share.unwrap_or(1.0);
                Some(Self { part, shown, held: shown / share, scatter: step.deviation_per_s.unwrap_or(0.0) / share })
            }
            PartFigure::P99 => {
                let shown = step.p99_ns? as f64;
                Some(Self { part, shown, held: shown, scatter: 0.0 })
            }
        }
    }
}

/// The parts of one step that differ from the median part by more than that scatters, each with how much more than the median it has.
fn outlying<'a>(figure: PartFigure, mut values: Vec<Value<'a>>) -> Vec<(Value<'a>, f64)> {
    values.sort_by(|one, other| one.held.total_cmp(&other.held));
    let held: Vec<f64> = values.iter().map(|value| value.held).collect();
    let Some(middle) = median_of(&held).filter(|middle| *middle > 0.0 && values.len() > 1) else { return Vec::new() };
    let away: Vec<f64> = held.iter().map(|held| (held - middle).abs()).collect();
    let spread = match figure {
        PartFigure::Rate => {
            let nearest =
                values.iter().min_by(|one, other| (one.held - middle).abs().total_cmp(&(other.held - middle).abs()));
            nearest.map_or(0.0, |nearest| nearest.scatter).max(RATE_DIFFERS * middle)
        }
        // Of two parts each is as far from the middle as the other.
        PartFigure::P99 if values.len() == 2 => P99_DIFFERS * middle,
        PartFigure::P99 => (FAR * median(&away)).max(P99_DIFFERS * middle),
    };
    let is_pair = values.len() == 2;
    let is_worse = |more: f64| if figure == PartFigure::Rate { more < 0.0 } else { more > 0.0 };
    values
        .into_iter()
        .map(|value| {
            let more = value.held / middle - 1.0;
            (value, more)
        })
        .filter(|(value, more)| (value.held - middle).abs() > spread && (!is_pair || is_worse(*more)))
        .collect()
}

/// What differs, one finding a part or host and figure.
fn differing(run: &Run) -> Vec<FleetFinding> {
    let mut found: BTreeMap<(PartFigure, String), (f64, f64, Vec<String>)> = BTreeMap::new();
    let hosts: BTreeSet<&Option<String>> = run.parts.iter().map(|part| &part.host).collect();
    for step in &run.steps {
        let in_step = || {
            run.parts.iter().filter_map(|part| Some((part, part.steps.iter().find(|known| known.step == step.index)?)))
        };
        for figure in [PartFigure::Rate, PartFigure::P99] {
            let values: Vec<Value<'_>> = in_step().filter_map(|(part, step)| Value::of(figure, part, step)).collect();
            let outlying = outlying(figure, values);
            for (value, more) in &outlying {
                // A host is slow where all of its parts are off to the same side.
                let host = value.part.host.as_deref().filter(|_| hosts.len() > 1);
                let of_host = || in_step().filter(|(part, _)| part.host.as_deref() == host);
                let is_off = |(part, _): (&MergedPart, &PartStep)| {
                    outlying
                        .iter()
                        .any(|(other, as_much)| std::ptr::eq(other.part, part) && (*as_much < 0.0) == (*more < 0.0))
                };
                let name = match host {
                    Some(host) if of_host().count() > 1 && of_host().all(is_off) => format!("each part on host {host}"),
                    _ => who(value.part),
                };
                let known = found.entry((figure, name)).or_insert((value.shown, *more, Vec::new()));
                if more.abs() > known.1.abs() {
                    (known.0, known.1) = (value.shown, *more);
                }
                if !known.2.contains(&step.label) {
                    known.2.push(step.label.clone());
                }
            }
        }
    }
    let finding = |((figure, who), (value, more, steps))| FleetFinding::Differs { who, figure, value, more, steps };
    found.into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LatencyTarget, Opening, Severity, analyse};
    use model::record::{ClockOffset, sample};

    fn found(run: &Run) -> Vec<FleetFinding> {
        let findings = find(run).into_iter();
        findings.filter_map(|finding| if let Finding::Fleet(found) = finding { Some(found) } else { None }).collect()
    }

    fn sentences(run: &Run) -> String {
        found(run).iter().map(FleetFinding::sentence).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn parts_that_are_alike_bring_no_complaint_and_other_runs_none_at_all() {
        assert_eq!(found(&sample::fleet::merged()), []);
        assert_eq!(found(&sample::sweep(5)), []);
    }

    #[test]
    fn an_unbalanced_part_is_named_with_its_host_and_steps() {
        let mut run = sample::fleet::merged();
        run.parts[3].steps[0].operations_per_s = Some(60.0);
        run.parts[3].steps[1].operations_per_s = Some(100.0);
        assert_eq!(
            sentences(&run),
            "Part 3 (db3) did 100 operations/s in s8_t1 and s16_t1, for its share 49.6 % less than the median part."
        );
        run.parts[3].steps.iter_mut().for_each(|step| step.operations_per_s = Some(96.0 * f64::from(step.step + 1)));
        assert_eq!(found(&run), [], "4 % are nothing");
    }

    #[test]
    fn a_share_is_held_against_its_sessions_or_against_what_was_asked() {
        let mut run = sample::fleet::merged();
        run.parts[2].steps[0].sessions = Some(4);
        run.parts[2].steps[0].operations_per_s = Some(198.0);
        assert_eq!(found(&run), [], "twice the sessions, twice the rate");
        for part in &mut run.parts {
            part.steps[0].asked_operations_per_s = Some(100.0);
        }
        assert!(sentences(&run).starts_with("Part 2 (db2) did 198 operations/s in s8_t1"), "{}", sentences(&run));
    }

    #[test]
    fn a_rate_that_scatters_more_than_parts_differ_is_no_finding() {
        let mut run = sample::fleet::merged();
        run.parts[3].steps[0].operations_per_s = Some(85.0);
        assert_eq!(found(&run).len(), 1);
        run.parts.iter_mut().for_each(|part| part.steps[0].deviation_per_s = Some(20.0));
        assert_eq!(found(&run), []);
    }

    #[test]
    fn a_host_is_slow_where_all_of_its_parts_are() {
        let mut run = sample::fleet::merged();
        let mut more = run.parts[0].clone();
        more.number = 4;
        run.parts.push(more);
        run.parts[1].steps[0].p99_ns = Some(80_000_000);
        assert!(sentences(&run).starts_with("Part 1 (db2) had a p99 of 80.0 ms in s8_t1"), "{}", sentences(&run));
        run.parts[2].steps[0].p99_ns = Some(90_000_000);
        assert!(
            sentences(&run).starts_with("Each part on host db2 had a p99 of 90.0 ms in s8_t1"),
            "{}",
            sentences(&run)
        );
    }

    #[test]
    fn of_two_parts_the_worse_one_is_named() {
        let mut run = sample::fleet::merged();
        run.parts.truncate(2);
        run.parts[1].steps[1].p99_ns = Some(90_000_000);
        let [FleetFinding::Differs { who, figure: PartFigure::P99, .. }] = &found(&run)[..] else { panic!("{run:?}") };
        assert_eq!(who, "part 1 (db2)");
    }

    #[test]
    fn late_starts_and_clocks_that_were_off_are_told_from_10_ms_on() {
        let mut run = sample::fleet::merged();
        run.parts[1].start_error_ns = Some(9_000_000);
        run.parts[2].clock = Some(ClockOffset { before_ns: -9_000_000, after_ns: None, bound_ns: 40_000 });
        assert_eq!(found(&run), []);
        run.parts[1].start_error_ns = Some(1_200_000_000);
        run.parts[3].start_error_ns = Some(-20_000_000);
        run.parts[2].clock =
            Some(ClockOffset { before_ns: -990_000_000, after_ns: Some(-1_010_000_000), bound_ns: 40_000 });
        let words = sentences(&run);
        assert!(words.contains("Part 1 (db2) began 1.20 s after the agreed start, of 2 that were off."), "{words}");
        assert!(words.contains("The clock of part 2 (db2) was 1.00 s ahead of that of part 0"), "{words}");
        run.parts[2].clock = Some(ClockOffset { before_ns: -990_000_000, after_ns: None, bound_ns: 2_000_000_000 });
        assert!(!sentences(&run).contains("clock"), "it may as well be right");
    }

    #[test]
    fn what_is_missing_stands_before_the_answer_and_the_answer_is_given() {
        let mut run = sample::fleet::merged();
        run.merged.as_mut().unwrap().missing = vec![3];
        run.parts.truncate(3);
        run.merged.as_mut().unwrap().steps.iter_mut().for_each(|step| step.parts = 3);
        let findings = analyse(&run, &LatencyTarget::default());
        let opening = Opening::of(&run, &findings).sentence();
        assert!(opening.starts_with("By 3 of 4 parts, with 25.0 % of the load missing: "), "{opening}");
        assert!(opening.contains("reads/s"), "{opening}");
        assert!(findings.iter().any(|finding| finding.severity() == Severity::Doubt), "{findings:?}");
    }

    #[test]
    fn a_part_that_died_and_a_forced_merge_make_the_answer_doubtful() {
        let mut run = sample::fleet::merged();
        run.parts[2].outcome = Outcome::Unfinished;
        let opening = |run: &Run| Opening::of(run, &analyse(run, &LatencyTarget::default())).sentence();
        assert!(opening(&run).contains("a part of the fleet did not come to its end"), "{}", opening(&run));
        assert!(sentences(&run).starts_with("Part 2 (db2) was killed"), "{}", sentences(&run));
        let mut run = sample::fleet::merged();
        run.merged.as_mut().unwrap().forced = vec!["seed differs".to_owned(), "format differs".to_owned()];
        assert!(opening(&run).contains("runs were merged that do not belong together"), "{}", opening(&run));
    }
}
