//! How the extents of a file are spread over the members of a group.
//!
//! Everything follows from how many allocation units a file has on each member. The choice of places is part of the format
//! on the members: a group that was made by one version is found by the next only if this stays as it is.

use model::workload::mix64;

/// A failure group's or member's part of a sequence.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    /// Units that it has in all.
    total: u64,
    /// Units that it has so far.
    done: u64,
}

impl Part {
    /// How far it is behind its share after `steps` of `of` steps, in parts of `of`.
    fn lag(self, steps: u64, of: u64) -> i128 {
        i128::from(self.total) * i128::from(steps) - i128::from(self.done) * i128::from(of)
    }
}

/// Most extents with `copies` copies, no two in one failure group, that fit into failure groups with `free` units each.
pub fn most_extents(free: &[u64], copies: u32) -> u64 {
    let copies = u64::from(copies);
    let fits = |extents: u64| free.iter().map(|free| (*free).min(extents)).sum::<u64>() >= copies * extents;
    let (mut fit, mut above) = (0, free.iter().sum::<u64>() / copies + 1);
    while fit + 1 < above {
        let middle = fit.midpoint(above);
        if fits(middle) {
            fit = middle;
        } else {
            above = middle;
        }
    }
    fit
}

/// Divides `units` by weight, at most `cap` to each, as evenly as whole numbers allow.
///
/// # Panics
/// When they do not fit: the caller has asked [`most_extents`].
pub fn divide(units: u64, weights: &[u64], cap: u64) -> Vec<u64> {
    let mut shares = vec![0; weights.len()];
    let mut open: Vec<usize> = (0..weights.len()).filter(|at| weights[*at] > 0).collect();
    let mut left = units;
    loop {
        let weight: u128 = open.iter().map(|at| u128::from(weights[*at])).sum();
        let is_full = |at: &usize| u128::from(left) * u128::from(weights[*at]) >= u128::from(cap) * weight;
        let full: Vec<usize> = open.iter().copied().filter(is_full).collect();
        if full.is_empty() || weight == 0 {
            assert!(left == 0 || weight > 0, "more units than fit");
            break;
        }
        for at in &full {
            shares[*at] = cap.min(left);
            left -= shares[*at];
        }
        open.retain(|at| !full.contains(at));
    }
    let weight: u128 = open.iter().map(|at| u128::from(weights[*at])).sum();
    let mut rests: Vec<(u128, usize)> = Vec::new();
    let mut given = 0;
    for at in open {
        let exact = u128::from(left) * u128::from(weights[at]);
        shares[at] = (exact / weight) as u64;
        given += shares[at];
        rests.push((exact % weight, at));
    }
    // The largest remainders first; the first of equals.
    rests.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
    for (_, at) in rests.into_iter().take((left - given) as usize) {
        shares[at] += 1;
    }
    shares
}

/// The member of each copy of each extent, primary first, for a file that has `units[member]` units on each member.
/// `groups` is the failure group of each member.
///
/// Extent for extent those failure groups are chosen that are furthest behind their share, in them the members that are, and
/// of these the one is primary that has the fewest primaries for its copies. So any stretch of a file is spread as the whole
/// is. Equals are chosen between at random, so that the copies of a member's extents lie on all members of the other groups:
/// when it fails, its load does not fall on one.
///
/// # Panics
/// When the units are not those of whole extents with no more than one copy in a failure group: a bug in the caller, who checks
/// what was read.
pub fn spread(copies: u32, groups: &[u16], units: &[u64]) -> Vec<u16> {
    let copies = copies as usize;
    let extents = units.iter().sum::<u64>() / copies as u64;
    let mut of_group = vec![Part::default(); groups.iter().map(|group| usize::from(*group) + 1).max().unwrap_or(0)];
    let mut of_member: Vec<Part> = units.iter().map(|total| Part { total: *total, done: 0 }).collect();
    let mut primaries = vec![0u64; units.len()];
    for (group, total) in groups.iter().zip(units) {
        of_group[usize::from(*group)].total += total;
    }
    let mut places = Vec::with_capacity(extents as usize * copies);
    let mut order: Vec<(bool, i128, u64, usize)> = Vec::with_capacity(of_group.len());
    for extent in 0..extents {
        let left = extents - extent;
        let chance = |salt: usize| mix64(extent ^ (salt as u64) << 40);
        order.clear();
        order.extend(of_group.iter().enumerate().filter(|(_, part)| part.done < part.total).map(|(group, part)| {
            // A group that has a copy of every extent that is left must be chosen now.
            (part.total - part.done >= left, part.lag(extent + 1, extents), chance(group), group)
        }));
        order.sort_unstable_by(|one, other| other.cmp(one));
        assert!(order.len() >= copies, "a file's units do not make whole extents");
        let first = places.len();
        for (_, _, _, group) in order.drain(..copies) {
            let part = of_group[group];
            let members = (0..units.len()).filter(|member| usize::from(groups[*member]) == group);
            let behind = |member: &usize| {
                let of = of_member[*member];
                (of.done < of.total, of.lag(part.done + 1, part.total), chance(*member + 64))
            };
            let member = members.max_by_key(behind).expect("a failure group has members");
            of_group[group].done += 1;
            of_member[member].done += 1;
            places.push(member as u16);
        }
        let chosen = &mut places[first..];
        let fewest = |at: &usize| {
            let member = usize::from(chosen[*at]);
            let lag = of_member[member].done as i128 - (primaries[member] * copies as u64) as i128;
            (lag, chance(member + 128))
        };
        let primary = (0..copies).max_by_key(fewest).unwrap_or(0);
        primaries[usize::from(chosen[primary])] += 1;
        chosen.swap(0, primary);
    }
    places
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Failure groups with the free units of their members, and copies for which there are enough groups.
    fn shapes() -> impl Strategy<Value = (u32, Vec<Vec<u64>>)> {
        let groups = prop::collection::vec(prop::collection::vec(1..60u64, 1..5), 1..6);
        groups.prop_flat_map(|groups| (1..=(groups.len() as u32).min(3), Just(groups)))
    }

    fn units_of(copies: u32, groups: &[Vec<u64>], extents: u64) -> (Vec<u16>, Vec<u64>) {
        let free: Vec<u64> = groups.iter().map(|members| members.iter().sum()).collect();
        let shares = divide(extents * u64::from(copies), &free, extents);
        let numbers = (0u16..).zip(groups).flat_map(|(group, members)| members.iter().map(move |_| group));
        let units = groups.iter().zip(&shares).flat_map(|(members, share)| divide(*share, members, u64::MAX));
        (numbers.collect(), units.collect())
    }

    proptest! {
        #[test]
        fn copies_lie_in_different_failure_groups_and_are_balanced_within_a_unit((copies, groups) in shapes(), part in 1..=100u64) {
            let free: Vec<u64> = groups.iter().map(|members| members.iter().sum()).collect();
            let extents = most_extents(&free, copies) * part / 100;
            let (numbers, units) = units_of(copies, &groups, extents);
            let all: Vec<u64> = groups.iter().flatten().copied().collect();
            prop_assert_eq!(units.iter().sum::<u64>(), extents * u64::from(copies));
            prop_assert!(units.iter().zip(&all).all(|(used, free)| used <= free), "{:?} of {:?}", units, all);
            let places = spread(copies, &numbers, &units);
            prop_assert_eq!(places.len() as u64, extents * u64::from(copies));
            let (mut used, mut primaries) = (vec![0u64; units.len()], vec![0u64; units.len()]);
            for (extent, copies_of) in places.chunks(copies as usize).enumerate() {
                let mut of: Vec<u16> = copies_of.iter().map(|member| numbers[usize::from(*member)]).collect();
                of.sort_unstable();
                of.dedup();
                prop_assert_eq!(of.len(), copies as usize, "extent {} has two copies in a failure group", extent);
                copies_of.iter().for_each(|member| used[usize::from(*member)] += 1);
                primaries[usize::from(copies_of[0])] += 1;
                // Any beginning of a file is spread as the whole is.
                for (member, used) in used.iter().enumerate() {
                    let wanted = units[member] as f64 * (extent + 1) as f64 / extents as f64;
                    prop_assert!((*used as f64 - wanted).abs() <= 2.0, "member {} has {} of {}", member, used, wanted);
                }
            }
            prop_assert_eq!(&used, &units);
            for (member, primaries) in primaries.iter().enumerate() {
                let wanted = units[member] as f64 / f64::from(copies);
                prop_assert!((*primaries as f64 - wanted).abs() <= 2.0, "member {}: {} primaries of {}", member, primaries, wanted);
            }
        }

        #[test]
        fn shares_are_those_of_the_weights_within_a_unit(units in 0..10_000u64, weights in prop::collection::vec(1..1_000u64, 1..9)) {
            let shares = divide(units, &weights, u64::MAX);
            let all: u64 = weights.iter().sum();
            prop_assert_eq!(shares.iter().sum::<u64>(), units);
            for (share, weight) in shares.iter().zip(&weights) {
                let wanted = units as f64 * *weight as f64 / all as f64;
                prop_assert!((*share as f64 - wanted).abs() < 1.0, "{} for {}", share, wanted);
            }
        }
    }

    #[test]
    fn a_large_failure_group_takes_one_copy_of_each_extent_and_no_more() {
        assert_eq!(most_extents(&[100, 10, 10], 2), 20);
        assert_eq!(divide(40, &[100, 10, 10], 20), [20, 10, 10]);
        assert_eq!(most_extents(&[10, 10], 2), 10);
        assert_eq!(most_extents(&[5, 0], 2), 0);
        assert_eq!(most_extents(&[7], 1), 7);
    }

    #[test]
    fn partners_of_a_member_are_many() {
        let (groups, units) = ([0, 0, 0, 0, 1, 1, 1, 1], [100; 8]);
        let places = spread(2, &groups, &units);
        let mut partners = [0; 4];
        for pair in places.chunks(2).filter(|pair| pair.contains(&0)) {
            partners[usize::from(*pair.iter().find(|member| **member > 3).unwrap()) - 4] += 1;
        }
        assert!(partners.iter().all(|with| *with > 10), "{partners:?}");
    }
}
