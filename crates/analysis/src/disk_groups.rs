//! What members of disk groups show: that they are not loaded alike, that one is slower, and what copies cost.

use super::message::list;
use super::traffic::operations_are_requests;
use super::{Finding, Message, wait};
use crate::Rule;
use model::record::{ChannelKind, ChannelStats, Histogram, Run, Step};
use model::units::{Nanos, percent};

/// Requests of a member on which a comparison can rest: what chance alone does to their number is then below 1 %.
const ENOUGH: u64 = 10_000;
/// A member that has so many times its equal part is not balanced with the others. Allocation units of a file that is a hundred times
/// larger than one lie on members within a few per cent of their part, and uniform load follows them.
const UNEVEN: f64 = 1.25;
/// A member whose requests take so many times as long as those of the others is another kind of device, or in trouble.
const SLOW: f64 = 1.5;
/// Copies cost time when a write takes so many times as long as one of a member.
const COSTS: f64 = 1.02;
const WRITE: &str = "direct path write";

/// Something about the members of a disk group.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum GroupFinding {
    /// A member has more than its part of the requests.
    Uneven(UnevenMember),
    /// A member answers later than the others.
    Slow(SlowMember),
    /// What copies cost.
    Copies(CostOfCopies),
    /// Members failed.
    Dropped(DroppedMembers),
    /// Blocks were repaired.
    Repaired(RepairedMembers),
}

/// A member, as sentences name it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct NamedMember {
    /// The disk group.
    pub group: String,
    /// The failure group, if there is more than one copy.
    pub failure_group: Option<String>,
    /// Its path.
    pub name: String,
}

impl NamedMember {
    fn of(member: &ChannelStats) -> Self {
        let (group, failure_group, name) = (member.of.clone(), member.within.clone(), member.name.clone());
        Self { group, failure_group, name }
    }

    fn words(&self) -> String {
        let within = self.failure_group.as_ref().map(|within| format!(" ({within})")).unwrap_or_default();
        format!("`{}`{within} of disk group {}", self.name, self.group)
    }
}

/// A member has more than its part of the requests.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct UnevenMember {
    /// The step where it shows most.
    pub step: String,
    /// The member.
    pub member: NamedMember,
    /// Reads or writes.
    pub work: Work,
    /// Its share of the requests, from 0 to 1.
    pub share: f64,
    /// The share of each if all had the same.
    pub equal: f64,
}

/// A member answers later than the others.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct SlowMember {
    /// The step where it shows most.
    pub step: String,
    /// The member.
    pub member: NamedMember,
    /// Reads or writes.
    pub work: Work,
    /// Mean time of its requests.
    #[serde(rename = "mean_ns")]
    pub mean: Nanos,
    /// That of all others together.
    #[serde(rename = "others_ns")]
    pub others: Nanos,
}

/// What copies cost.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct CostOfCopies {
    /// The step with the most writes.
    pub step: String,
    /// The disk group.
    pub group: String,
    /// Writes of members for each of the load.
    pub writes_of_each: f64,
    /// Mean time of a write, which ends with its slowest copy.
    #[serde(rename = "of_load_ns")]
    pub of_load: Nanos,
    /// Mean time of a write of a member.
    #[serde(rename = "of_member_ns")]
    pub of_member: Nanos,
}

/// Members failed.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct DroppedMembers {
    /// The steps in which they did.
    pub steps: Vec<String>,
    /// The members.
    pub members: Vec<NamedMember>,
}

/// Blocks were repaired.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct RepairedMembers {
    /// The members, and how many blocks of each.
    pub members: Vec<(NamedMember, u64)>,
}

/// What a member is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Reads.
    Reads,
    /// Writes.
    Writes,
}

impl Work {
    const ALL: [Self; 2] = [Self::Reads, Self::Writes];

    fn count(self, member: &ChannelStats) -> u64 {
        match self {
            Self::Reads => member.reads,
            Self::Writes => member.writes,
        }
    }

    fn times(self, member: &ChannelStats) -> &Histogram {
        match self {
            Self::Reads => &member.read,
            Self::Writes => &member.write,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Writes => "writes",
        }
    }
}

pub(super) fn find(run: &Run) -> Vec<Finding> {
    let dropped = dropped(run).map(GroupFinding::Dropped);
    let uneven = most(run, uneven).map(GroupFinding::Uneven);
    let slow = most(run, slow).map(GroupFinding::Slow);
    let copies = copies(run).map(GroupFinding::Copies);
    let repaired = repaired(run).map(GroupFinding::Repaired);
    [dropped, uneven, slow, copies, repaired].into_iter().flatten().map(Finding::Group).collect()
}

fn members(step: &Step) -> impl Iterator<Item = &ChannelStats> {
    step.channels.iter().filter(|channel| channel.kind == ChannelKind::Member)
}

/// The members of each disk group that do a kind of work: with a preferred failure group, those of the others are not read.
fn at_work(step: &Step, work: Work) -> Vec<Vec<&ChannelStats>> {
    let mut groups: Vec<Vec<&ChannelStats>> = Vec::new();
    for member in members(step) {
        match groups.iter_mut().find(|group| group[0].of == member.of) {
            Some(group) => group.push(member),
            None => groups.push(vec![member]),
        }
    }
    for group in &mut groups {
        let worked: Vec<Option<String>> =
            group.iter().filter(|member| work.count(member) > 0).map(|member| member.within.clone()).collect();
        group.retain(|member| worked.contains(&member.within));
    }
    groups.retain(|group| group.len() > 1);
    groups
}

/// The strongest of what `look` sees in the steps, by its second value.
fn most<T>(run: &Run, look: fn(&Step, Work) -> Option<(T, f64)>) -> Option<T> {
    let seen = run.steps.iter().flat_map(|step| Work::ALL.map(|work| look(step, work))).flatten();
    seen.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(found, _)| found)
}

fn uneven(step: &Step, work: Work) -> Option<(UnevenMember, f64)> {
    let in_group = |group: Vec<&ChannelStats>| {
        let all: u64 = group.iter().map(|member| work.count(member)).sum();
        let (member, equal) = (group.iter().max_by_key(|member| work.count(member))?, 1.0 / group.len() as f64);
        let share = work.count(member) as f64 / all as f64;
        let step = step.label.clone();
        let found = UnevenMember { step, member: NamedMember::of(member), work, share, equal };
        (work.count(member) >= ENOUGH && share > UNEVEN * equal).then_some((found, share / equal))
    };
    at_work(step, work).into_iter().filter_map(in_group).max_by(|one, other| one.1.total_cmp(&other.1))
}

fn slow(step: &Step, work: Work) -> Option<(SlowMember, f64)> {
    let in_group = |group: Vec<&ChannelStats>| {
        if group.iter().any(|member| work.count(member) < ENOUGH / 10) {
            return None;
        }
        let mean = |member: &ChannelStats| work.times(member).mean_ns();
        let slowest =
            *group.iter().max_by(|one, other| mean(one).unwrap_or(0.0).total_cmp(&mean(other).unwrap_or(0.0)))?;
        let mut others = Histogram::default();
        group.iter().filter(|member| !member.is_same_as(slowest)).for_each(|member| others.merge(work.times(member)));
        let (own, others) = (mean(slowest)?, others.mean_ns()?);
        let (mean, others_ns) = (Nanos(own as u64), Nanos(others as u64));
        let (step, member) = (step.label.clone(), NamedMember::of(slowest));
        (own > SLOW * others).then_some((SlowMember { step, member, work, mean, others: others_ns }, own / others))
    };
    at_work(step, work).into_iter().filter_map(in_group).max_by(|one, other| one.1.total_cmp(&other.1))
}

/// Of raw storage only, where a write of the load is a request: an engine's writers send batches, and its redo is not among its blocks.
fn copies(run: &Run) -> Option<CostOfCopies> {
    if !operations_are_requests(run) {
        return None;
    }
    let in_step = |step: &Step| {
        let with_copies = |member: &&ChannelStats| member.within.is_some() && member.writes > 0;
        let group = members(step).find(with_copies)?.of.clone();
        let of_group = || members(step).filter(|member| member.of == group);
        if members(step).any(|member| member.of != group) {
            return None;
        }
        let mut times = Histogram::default();
        of_group().for_each(|member| times.merge(&member.write));
        let of_load = wait(step, WRITE)?;
        let (writes, of_members) = (of_load.waits.count(), of_group().map(|member| member.writes).sum::<u64>());
        let found = CostOfCopies {
            step: step.label.clone(),
            group: group.clone(),
            writes_of_each: of_members as f64 / writes as f64,
            of_load: Nanos(of_load.waits.mean_ns()? as u64),
            of_member: Nanos(times.mean_ns()? as u64),
        };
        (writes >= ENOUGH / 10).then_some((writes, found))
    };
    run.steps.iter().filter_map(in_step).max_by_key(|(writes, _)| *writes).map(|(_, found)| found)
}

fn dropped(run: &Run) -> Option<DroppedMembers> {
    let (mut steps, mut named) = (Vec::new(), Vec::new());
    for step in &run.steps {
        for member in members(step).filter(|member| member.drops.is_some_and(|drops| drops > 0)) {
            steps.push(step.label.clone());
            named.push(NamedMember::of(member));
        }
    }
    steps.dedup();
    (!named.is_empty()).then_some(DroppedMembers { steps, members: named })
}

fn repaired(run: &Run) -> Option<RepairedMembers> {
    let mut found: Vec<(NamedMember, u64)> = Vec::new();
    for member in run.steps.iter().flat_map(members) {
        let (named, repairs) = (NamedMember::of(member), member.repairs.unwrap_or(0));
        match found.iter_mut().find(|(known, _)| *known == named) {
            Some((_, sum)) => *sum += repairs,
            None => found.push((named, repairs)),
        }
    }
    found.retain(|(_, repairs)| *repairs > 0);
    (!found.is_empty()).then_some(RepairedMembers { members: found })
}

fn words(members: &[NamedMember]) -> String {
    list(&members.iter().map(NamedMember::words).collect::<Vec<_>>())
}

impl Message for GroupFinding {
    fn rule(&self) -> Rule {
        match self {
            Self::Uneven(_) => Rule::GroupUneven,
            Self::Slow(_) => Rule::GroupSlow,
            Self::Copies(_) => Rule::GroupCopies,
            Self::Dropped(_) => Rule::GroupDropped,
            Self::Repaired(_) => Rule::GroupRepaired,
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::Uneven(UnevenMember { step, member, work, share, equal }) => format!(
                "Members are not balanced: at {step}, {} had {} % of the {}, where an equal part is {} %.",
                member.words(),
                percent(*share),
                work.words(),
                percent(*equal)
            ),
            Self::Slow(SlowMember { step, member, work, mean, others }) => format!(
                "At {step}, {} of {} took {mean} on average, those of the other members {others}.",
                work.words(),
                member.words()
            ),
            Self::Copies(CostOfCopies { step, group, writes_of_each, of_load, of_member }) => {
                let time = if of_load.0 as f64 > COSTS * of_member.0 as f64 {
                    format!(
                        "it ended with the slowest of them, after {of_load} on average, where one of a member took {of_member}"
                    )
                } else {
                    format!("it took {of_load} on average, no longer than one of a member")
                };
                format!(
                    "At {step}, each write to disk group {group} was {writes_of_each:.2} writes of members, and {time}."
                )
            }
            Self::Dropped(DroppedMembers { steps, members }) => format!(
                "At {}, {} failed and {} dropped: from then on fewer members shared the load, and writes had a copy less.",
                list(steps),
                words(members),
                if members.len() == 1 { "was" } else { "were" }
            ),
            Self::Repaired(RepairedMembers { members }) => {
                let each = |(member, repairs): &(NamedMember, u64)| format!("{repairs} on {}", member.words());
                let all = members.iter().map(each).collect::<Vec<_>>();
                format!("Blocks that were unreadable or wrong were written again from another copy: {}.", list(&all))
            }
        }
    }

    fn advice(&self) -> Option<String> {
        let advice = match self {
            Self::Uneven(_) => {
                "Look for a hot part of the data. Larger members get more on purpose: use members of one size, and as many in each failure group."
            }
            Self::Slow(_) => {
                "The slowest copy decides when a write ends: look at this member's device, its path and its limit of requests."
            }
            Self::Copies(_) => "Compare with `external` redundancy over the same members.",
            Self::Dropped(_) => {
                "Look at the members' devices; what they missed is written to them when the group is opened the next time."
            }
            Self::Repaired(_) => {
                "Look at the devices: a disk that loses blocks loses more. `plimsoll slob verify` reads everything."
            }
        };
        Some(advice.to_owned())
    }

    fn steps(&self) -> Option<&[String]> {
        match self {
            Self::Dropped(dropped) => Some(&dropped.steps),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Severity;
    use crate::{LatencyTarget, analyse};
    use model::record::sample;

    fn member(failure_group: u32, name: &str, reads: u64, mean_ns: u64) -> ChannelStats {
        let mut member = ChannelStats {
            kind: ChannelKind::Member,
            of: "data".to_owned(),
            within: Some(format!("failure group {failure_group}")),
            name: name.to_owned(),
            channels: 1,
            reads,
            repairs: Some(0),
            drops: Some(0),
            ..ChannelStats::default()
        };
        member.read.record_n(mean_ns, reads);
        member
    }

    fn with(members: [ChannelStats; 4]) -> Run {
        let mut run = sample::sweep(60);
        run.steps[1].channels = members.to_vec();
        run
    }

    fn balanced() -> [ChannelStats; 4] {
        [(1, "a"), (1, "b"), (2, "c"), (2, "d")].map(|(group, name)| member(group, name, 50_000, 400_000))
    }

    fn found(run: &Run) -> Vec<GroupFinding> {
        let of_groups = |finding| match finding {
            Finding::Group(found) => Some(found),
            _ => None,
        };
        analyse(run, &LatencyTarget::default()).into_iter().filter_map(of_groups).collect()
    }

    #[test]
    fn members_that_are_alike_bring_no_complaint() {
        assert_eq!(found(&with(balanced())), []);
        // A preferred failure group is read alone on purpose.
        let [a, b, ..] = balanced();
        assert_eq!(found(&with([a, b, member(2, "c", 0, 1), member(2, "d", 0, 1)])), []);
        // Nearly uneven, and uneven by chance.
        let [a, b, c, _] = balanced();
        assert_eq!(found(&with([a, b, c, member(2, "d", 65_000, 400_000)])), []);
        assert_eq!(
            found(&with(
                [(1, "a", 10), (1, "b", 10), (2, "c", 10), (2, "d", 90)]
                    .map(|(group, name, reads)| member(group, name, reads, 9))
            )),
            []
        );
    }

    #[test]
    fn the_member_that_is_not_balanced_is_named() {
        let [a, b, c, _] = balanced();
        let run = with([a, b, c, member(2, "/dev/sdd", 150_000, 400_000)]);
        let seen = found(&run);
        assert_eq!(seen.len(), 1);
        let sentence = seen[0].sentence();
        assert!(sentence.starts_with("Members are not balanced: at "), "{sentence}");
        assert!(
            sentence.ends_with(
                "`/dev/sdd` (failure group 2) of disk group data had 50.0 % of the reads, where an equal part is 25.0 %."
            ),
            "{sentence}"
        );
        assert_eq!(seen[0].severity(), Severity::Note);
    }

    #[test]
    fn the_member_that_is_slow_is_named() {
        let [a, b, c, _] = balanced();
        let seen = found(&with([a, b, c.clone(), member(2, "/dev/sdd", 50_000, 500_000)]));
        assert_eq!(seen, []);
        let [a, b, ..] = balanced();
        let seen = found(&with([a, b, c, member(2, "/dev/sdd", 50_000, 900_000)]));
        assert_eq!(seen.len(), 1);
        assert!(
            seen[0]
                .sentence()
                .contains("reads of `/dev/sdd` (failure group 2) of disk group data took 900 us on average"),
            "{}",
            seen[0].sentence()
        );
    }

    #[test]
    fn a_member_that_was_dropped_puts_its_step_in_doubt() {
        let [mut a, b, c, mut d] = balanced();
        (a.drops, d.repairs) = (Some(1), Some(3));
        let run = with([a, b, c, d]);
        let seen = found(&run);
        assert_eq!(seen.len(), 2);
        assert_eq!((seen[0].severity(), seen[0].steps()), (Severity::Doubt, Some(&[run.steps[1].label.clone()][..])));
        assert!(seen[1].sentence().contains("3 on `d` (failure group 2) of disk group data"), "{}", seen[1].sentence());
    }
}
