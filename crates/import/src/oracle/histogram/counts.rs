//! Whole numbers of waits from their shares, which are printed with one decimal, and from numbers of waits within ranges.

use super::{Range, Total};
use model::record::ReportedBucket;

/// Percentages have one decimal.
const HALF_A_DIGIT: f64 = 0.05;

/// A range with what is known of its share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub range: Range,
    /// Percent of all waits, or 0 where the count is exact.
    pub percent: f64,
    /// How far the true percentage may be away.
    pub off: f64,
    /// The count, where it is reported.
    pub exactly: Option<u64>,
    /// How many cells it is of, each of which holds at least one wait.
    pub cells: u64,
}

impl Part {
    /// What a cell reports.
    pub(super) fn new(range: Range, percent: f64) -> Self {
        Self { range, percent, off: HALF_A_DIGIT, exactly: None, cells: 1 }
    }

    /// The fewest and the most waits that its percentage of `all` may stand for, to the next whole one.
    fn bounds(&self, all: f64) -> (f64, f64) {
        let off = self.off * self.cells as f64;
        let at = |percent: f64| (all * percent / 100.0).max(self.cells as f64);
        (at(self.percent - off).floor(), at(self.percent + off).ceil())
    }

    /// Whether it is a `.0` of so many waits that it may be one or more.
    fn says_nothing(&self, all: f64) -> bool {
        self.percent < HALF_A_DIGIT && all * self.off / 100.0 >= 2.0
    }
}

/// A number of waits that a table reports on a range.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    pub range: Range,
    pub total: Total,
}

/// Counts of parts in rising order that sum to `waits`, and those within counted ranges to the numbers reported on these. `printed` is
/// the number of all waits that the histogram itself reports, of which the counted ranges are parts. Nothing if the percentages are
/// not those of all waits.
pub(super) fn counts(
    parts: &[Part],
    waits: u64,
    printed: Option<Total>,
    counted: &[Counted],
) -> Option<Vec<ReportedBucket>> {
    let exact: u64 = parts.iter().filter_map(|part| part.exactly).fold(0, u64::saturating_add);
    let shared = waits.checked_sub(exact)?;
    let open: Vec<Part> = parts.iter().filter(|part| part.exactly.is_none()).copied().collect();
    let all = waits as f64;
    let percent_sum: f64 = percent(&open) + exact as f64 / all.max(1.0) * 100.0;
    // As far apart as this, percentages are not rounded but wrong.
    let allowed = 1.0 + HALF_A_DIGIT * parts.len() as f64;
    if open.is_empty() && shared > 0 && all * allowed / 100.0 < shared as f64 || (percent_sum - 100.0).abs() > allowed {
        return None;
    }
    // The histogram's own number of waits may differ from what tables of events report; then its parts do as well.
    let scale = printed.filter(|printed| printed.waits > 0).map_or(1.0, |printed| all / printed.waits as f64);
    let mut groups = groups(parts, counted);
    groups.sort_by(|one, other| other.total.total_cmp(&one.total));
    // Where the numbers leave no room for the rest, that of the most waits says least beside its shares.
    let mut buckets = (0..groups.len())
        .filter_map(|without| groups.get(without..))
        .find_map(|groups| within_ranges(&open, groups, all, shared, &[1.0, scale]))
        .unwrap_or_else(|| spread(&open, shared, all));
    let exactly = |part: &Part| part.exactly.map(|count| bucket(part.range, count));
    buckets.extend(parts.iter().filter_map(exactly));
    buckets.sort_by_key(|bucket| (bucket.from_ns, bucket.to_ns));
    Some(buckets)
}

fn bucket(range: Range, count: u64) -> ReportedBucket {
    ReportedBucket { from_ns: range.0, to_ns: range.1, count }
}

fn percent(parts: &[Part]) -> f64 {
    parts.iter().map(|part| part.percent).sum()
}

fn is_in(part: &Part, range: Range) -> bool {
    part.range.0 >= range.0 && part.range.1.is_some_and(|to| range.1.is_none_or(|end| to <= end))
}

/// Parts of which a table says how many waits they have together.
struct Group {
    range: Range,
    parts: Vec<Part>,
    total: f64,
    off: f64,
}

/// One for each counted range that parts fill and no other range touches.
fn groups(parts: &[Part], counted: &[Counted]) -> Vec<Group> {
    let touch =
        |range: Range, other: Range| range.0 < other.1.unwrap_or(u64::MAX) && other.0 < range.1.unwrap_or(u64::MAX);
    let mut groups: Vec<Group> = Vec::new();
    for Counted { range, total } in counted {
        let (inside, outside): (Vec<Part>, Vec<Part>) = parts.iter().partition(|part| is_in(part, *range));
        let exact = inside.iter().filter_map(|part| part.exactly).fold(0, u64::saturating_add);
        let shared = total.waits.checked_sub(exact);
        let open: Vec<Part> = inside.into_iter().filter(|part| part.exactly.is_none()).collect();
        let is_apart =
            !outside.iter().any(|part| touch(part.range, *range)) && !groups.iter().any(|one| touch(one.range, *range));
        if let Some(shared) = shared.filter(|_| is_apart && !open.is_empty()) {
            groups.push(Group { range: *range, parts: open, total: shared as f64, off: total.off as f64 });
        }
    }
    groups
}

impl Group {
    /// The number of its waits, the fewest and the most, at the first scale at which its percentages allow it.
    fn at_scale(&self, scales: &[f64], all: f64) -> Option<(f64, f64, f64)> {
        let bounds = self.parts.iter().map(|part| part.bounds(all));
        let (fewest, most) = bounds.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        scales.iter().find_map(|scale| {
            let rounding = if *scale == 1.0 { 0.0 } else { 1.0 };
            let (total, off) = (self.total * scale, self.off * scale + rounding);
            let (from, to) = ((total - off).max(fewest), (total + off).min(most));
            // Shares say more than a number such as `4.8M` where they are of fewer waits.
            let shares = percent(&self.parts) * all / 100.0;
            let is_rounded_more = off > HALF_A_DIGIT * all / 100.0 * self.parts.len() as f64;
            (from <= to).then(|| (if is_rounded_more { shares } else { total }.clamp(from, to), from, to))
        })
    }
}

/// Counts where the numbers of ranges stand; nothing if there are none, or they leave to the other parts what these cannot have.
fn within_ranges(
    open: &[Part],
    groups: &[Group],
    all: f64,
    shared: u64,
    scales: &[f64],
) -> Option<Vec<ReportedBucket>> {
    let known: Vec<(&Group, (f64, f64, f64))> =
        groups.iter().filter_map(|group| Some((group, group.at_scale(scales, all)?))).collect();
    if known.is_empty() {
        return None;
    }
    let is_known = |part: &Part| known.iter().any(|(group, _)| is_in(part, group.range));
    let others: Vec<Part> = open.iter().filter(|part| !is_known(part)).copied().collect();
    let bounds = others.iter().map(|part| part.bounds(all));
    let (fewest, most) = bounds.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let total: f64 = known.iter().map(|(_, (total, ..))| total).sum();
    // What the other parts cannot have, or lack, is the ranges', as far as their numbers are rounded.
    let rest = shared as f64 - total;
    let more = rest - rest.clamp(fewest, most);
    let room = |(total, from, to): &(f64, f64, f64)| if more < 0.0 { total - from } else { to - total };
    let rooms: f64 = known.iter().map(|(_, numbers)| room(numbers)).sum();
    // Half a wait is what rounding to whole ones may take from each.
    if more.abs() > rooms + 0.5 {
        return None;
    }
    let wanted = |numbers: &(f64, f64, f64)| numbers.0 + if rooms > 0.0 { more * room(numbers) / rooms } else { 0.0 };
    let mut totals: Vec<u64> = known.iter().map(|(_, numbers)| wanted(numbers).max(0.0).round() as u64).collect();
    let given = totals.iter().copied().fold(0, u64::saturating_add);
    let left = match others.is_empty() {
        true => {
            let widest = |at: &usize| known.get(*at).map_or(0.0, |(_, (_, from, to))| to - from);
            let at = (0..known.len()).max_by(|one, other| widest(one).total_cmp(&widest(other)))?;
            let total = totals.get_mut(at)?;
            *total = total.checked_add(shared)?.checked_sub(given)?;
            0
        }
        false => shared.checked_sub(given)?,
    };
    let mut buckets = spread(&others, left, all);
    for ((group, _), total) in known.iter().zip(totals) {
        buckets.extend(divide(&group.parts, total, all));
    }
    Some(buckets)
}

/// Divides what a range has. Cells that are `.0` are so many waits that nothing says how they are divided, unless each must be
/// one: those that lie side by side become one bucket, and so do all of a range that has no other ones.
fn divide(parts: &[Part], total: u64, all: f64) -> Vec<ReportedBucket> {
    let fewest: f64 = parts.iter().map(|part| part.bounds(all).0).sum();
    if total as f64 <= fewest {
        return spread(parts, total, all);
    }
    let is_all = parts.iter().all(|part| part.says_nothing(all));
    let mut merged: Vec<Part> = Vec::new();
    for part in parts {
        match merged.last_mut() {
            Some(last)
                if last.says_nothing(all)
                    && part.says_nothing(all)
                    && (is_all || last.range.1 == Some(part.range.0)) =>
            {
                last.range.1 = part.range.1;
                last.cells += 1;
            }
            _ => merged.push(*part),
        }
    }
    spread(&merged, total, all)
}

/// Whole numbers that sum to `shared`: what rounding left over goes to each share as far as its own rounding allows.
fn spread(parts: &[Part], shared: u64, all: f64) -> Vec<ReportedBucket> {
    let at = |percent: f64| all * percent / 100.0;
    let left = shared as f64 - at(percent(parts));
    let room = |part: &Part| {
        let down = at(part.percent.min(HALF_A_DIGIT));
        if left < 0.0 { down } else { at(HALF_A_DIGIT) * part.cells as f64 }
    };
    let rooms: f64 = parts.iter().map(room).sum();
    let wanted = |part: &Part| {
        let step = if rooms > 0.0 { left * room(part) / rooms } else { 0.0 };
        (at(part.percent) + step).max(0.0)
    };
    let mut rounded: Vec<(u64, f64)> =
        parts.iter().map(wanted).map(|value| (value.floor() as u64, value.fract())).collect();
    let given: u64 = rounded.iter().map(|(count, _)| *count).fold(0, u64::saturating_add);
    let mut order: Vec<usize> = (0..rounded.len()).collect();
    order.sort_by(|a, b| {
        let fraction = |at: &usize| rounded.get(*at).map_or(0.0, |(_, fraction)| *fraction);
        fraction(b).total_cmp(&fraction(a))
    });
    let mut missing = shared.saturating_sub(given);
    for index in order {
        let more = u64::from(missing > 0);
        if let Some((count, _)) = rounded.get_mut(index) {
            *count += more;
        }
        missing -= more;
    }
    if let Some((count, _)) = rounded.iter_mut().max_by_key(|(count, _)| *count) {
        // What float arithmetic could not distinguish; nothing with fewer than 2^53 waits.
        *count = count.saturating_add(missing).saturating_sub(given.saturating_sub(shared));
    }
    fill_empty(&mut rounded, parts);
    parts.iter().zip(rounded).map(|(part, (count, _))| bucket(part.range, count)).collect()
}

/// A cell that is not blank holds something, if only one wait, which the largest count can spare.
fn fill_empty(rounded: &mut [(u64, f64)], parts: &[Part]) {
    for (index, part) in parts.iter().enumerate() {
        let missing = rounded.get(index).map_or(0, |(count, _)| part.cells.saturating_sub(*count));
        if missing > 0
            && let Some((most, _)) = rounded.iter_mut().max_by_key(|(count, _)| *count)
            && *most > missing
        {
            *most -= missing;
            if let Some((count, _)) = rounded.get_mut(index) {
                *count += missing;
            }
        }
    }
}
