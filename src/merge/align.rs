//! How the windows of the parts lie over each other.
//!
//! A part's window is a whole number of intervals, and its totals are their exact sum. So windows are cut between intervals and nowhere
//! else: the first interval of the merged window is in each part the one that begins nearest to the latest beginning of all windows, by
//! the clock of part 0, and there are as many of them as every part still has. Where that leaves every window whole, the totals of the
//! windows are the exact ones, histograms of each kind of operation included. Where it does not, what intervals carry is added up from
//! them, which is exact too, for a shorter time.

use super::MergeError;
use super::part::{Part, Second};
use model::record::{ClockOffset, MergedWindows, Step};

/// Intervals that lie farther apart than this make a rate of one second that is not worth showing: it errs by half of it.
const MAX_APART_NS: u64 = 500_000_000;
/// From here on it is said: a rate of one second errs by 1 %.
pub(super) const NOTED_APART_NS: u64 = 10_000_000;
/// Windows and intervals that differ by less are as long.
const SAME_LENGTH_NS: u64 = 10_000_000;
/// An interval is whole from this share of the usual length on.
const WHOLE: f64 = 0.99;

/// How the windows of one step lie.
#[derive(Debug)]
pub(super) struct Lying {
    pub(super) windows: MergedWindows,
    pub(super) apart_ns: Option<u64>,
    pub(super) uncertainty_ns: Option<u64>,
    pub(super) has_intervals: bool,
    /// Intervals before the window that all parts have.
    pub(super) lead: usize,
    /// Intervals of the window.
    pub(super) count: usize,
    /// Of each part, which of its intervals is the first of these, and what is cut from its window before and after.
    pub(super) parts: Vec<PartLying>,
}

/// How the window of one part lies.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PartLying {
    pub(super) first: usize,
    pub(super) cut_before_ns: u64,
    pub(super) cut_after_ns: u64,
}

/// One window, by the clock of part 0.
struct Measured<'a> {
    part: &'a Part,
    step: &'a Step,
    seconds: &'a [Second],
    /// Which of its intervals is the first of its window.
    at: usize,
    begins_ns: i128,
    ends_ns: i128,
    /// Length of its intervals; 0 without any.
    length_ns: u64,
    /// Whole intervals of its window.
    whole: usize,
}

/// The clock of a part beside that of part 0, as far as it is known: that of the host of part 0 is the same.
pub(super) fn clock(part: &Part, zero: Option<&Part>) -> Option<ClockOffset> {
    let is_zero = part.place.number == 0;
    let is_on_its_host = || {
        let name = part.run.environment.hostname.as_ref();
        name.is_some() && zero.is_some_and(|zero| zero.run.environment.hostname.as_ref() == name)
    };
    let none = ClockOffset { before_ns: 0, after_ns: None, bound_ns: 0 };
    if is_zero { Some(none) } else { part.place.clock.or_else(|| is_on_its_host().then_some(none)) }
}

/// The beginning of the load or window that is `offset_ns` after the start of the part's run, by the clock of part 0.
fn instant_ns(part: &Part, offset_ns: u64, zero: Option<&Part>) -> i128 {
    let began = part.run.started_at.0.as_nanosecond() + i128::from(offset_ns);
    began + clock(part, zero).map_or(0, |clock| i128::from(clock.offset_ns()))
}

impl<'a> Measured<'a> {
    fn of((part, step): (&'a Part, &'a Step), seconds: &'a [Second], zero: Option<&Part>) -> Self {
        let at = seconds.iter().position(|second| !second.warmup).unwrap_or(seconds.len());
        let window = seconds.get(at..).unwrap_or_default();
        let length_ns = window.first().map_or(0, |second| second.duration_ns);
        let is_whole = |second: &&Second| second.duration_ns as f64 >= length_ns as f64 * WHOLE;
        let begins_ns = instant_ns(part, step.window.offset_ns, zero);
        let ends_ns = begins_ns + i128::from(step.window.duration_ns);
        Self {
            part,
            step,
            seconds,
            at,
            begins_ns,
            ends_ns,
            length_ns,
            whole: window.iter().take_while(is_whole).count(),
        }
    }

    fn window(&self) -> &'a [Second] {
        self.seconds.get(self.at..).unwrap_or_default()
    }

    fn last_ns(&self) -> u64 {
        self.window().last().map_or(0, |second| second.duration_ns)
    }
}

/// Lays the windows of one step over each other. `zero` is part 0, if it is there.
pub(super) fn lay(parts: &[(&Part, &Step, &[Second])], zero: Option<&Part>) -> Result<Lying, MergeError> {
    let all: Vec<Measured<'_>> =
        parts.iter().map(|(part, step, seconds)| Measured::of((part, step), seconds, zero)).collect();
    let uncertainty_ns: Option<u64> = all
        .iter()
        .map(|one| clock(one.part, zero).map(|clock| clock.uncertainty_ns()))
        .collect::<Option<Vec<_>>>()
        .and_then(|all| all.into_iter().max());
    let latest_ns = all.iter().map(|one| one.begins_ns).max().unwrap_or(0);
    let lengths = || all.iter().map(|one| one.length_ns);
    let length_ns = lengths().max().unwrap_or(0);
    let is_regular = lengths().all(|length| length > 0 && length.abs_diff(length_ns) < SAME_LENGTH_NS);
    if !is_regular {
        return without_intervals(&all, latest_ns, uncertainty_ns);
    }
    let length = i128::from(length_ns);
    // Rounded to the nearest interval.
    let skipped: Vec<usize> = all
        .iter()
        .map(|one| usize::try_from((latest_ns - one.begins_ns + length / 2) / length).unwrap_or(usize::MAX))
        .collect();
    let begins: Vec<i128> =
        all.iter().zip(&skipped).map(|(one, skipped)| one.begins_ns + *skipped as i128 * length).collect();
    let apart_ns = span(&begins);
    let is_same_length = span(&all.iter().map(|one| i128::from(one.last_ns())).collect::<Vec<_>>()) < SAME_LENGTH_NS;
    let counts = || all.iter().map(|one| one.window().len());
    let is_whole = is_same_length && skipped.iter().all(|skipped| *skipped == 0) && counts().min() == counts().max();
    let count = if is_whole {
        counts().min().unwrap_or(0)
    } else {
        all.iter().zip(&skipped).map(|(one, skipped)| one.whole.saturating_sub(*skipped)).min().unwrap_or(0)
    };
    if count == 0 {
        return Err(no_common_time(&all));
    }
    let lead = all.iter().zip(&skipped).map(|(one, skipped)| one.at + skipped).min().unwrap_or(0);
    let lying = |(one, skipped): (&Measured<'_>, &usize)| {
        let sum = |seconds: &[Second]| seconds.iter().map(|second| second.duration_ns).sum();
        let window = one.window();
        PartLying {
            first: one.at + skipped - lead,
            cut_before_ns: sum(window.get(..*skipped).unwrap_or_default()),
            cut_after_ns: sum(window.get(skipped + count..).unwrap_or_default()),
        }
    };
    Ok(Lying {
        windows: if is_whole { MergedWindows::Whole } else { MergedWindows::Shared },
        apart_ns: Some(apart_ns),
        uncertainty_ns,
        has_intervals: apart_ns.saturating_add(uncertainty_ns.unwrap_or(0)) <= MAX_APART_NS,
        lead,
        count,
        parts: all.iter().zip(&skipped).map(lying).collect(),
    })
}

/// Windows that cannot be cut: whole if they lie over each other anyway.
fn without_intervals(all: &[Measured<'_>], latest_ns: i128, uncertainty_ns: Option<u64>) -> Result<Lying, MergeError> {
    if all.iter().any(|one| one.ends_ns <= latest_ns) {
        return Err(no_common_time(all));
    }
    let begins: Vec<i128> = all.iter().map(|one| one.begins_ns).collect();
    let lengths: Vec<i128> = all.iter().map(|one| i128::from(one.step.window.duration_ns)).collect();
    let is_whole = span(&begins) <= MAX_APART_NS && span(&lengths) < SAME_LENGTH_NS;
    Ok(Lying {
        windows: if is_whole { MergedWindows::Whole } else { MergedWindows::Apart },
        apart_ns: Some(span(&begins)),
        uncertainty_ns,
        has_intervals: false,
        lead: 0,
        count: 0,
        parts: vec![PartLying::default(); all.len()],
    })
}

fn no_common_time(all: &[Measured<'_>]) -> MergeError {
    let id = |one: Option<&Measured<'_>>| one.map(|one| one.part.run.id.clone()).unwrap_or_default();
    let (first, last) = (all.iter().min_by_key(|one| one.ends_ns), all.iter().max_by_key(|one| one.begins_ns));
    let gap_ns = first.zip(last).map_or(0, |(first, last)| last.begins_ns - first.ends_ns);
    MergeError::NoCommonTime {
        step: all.first().map(|one| one.step.label.clone()).unwrap_or_default(),
        left: id(first),
        right: id(last),
        gap_ns: u64::try_from(gap_ns).unwrap_or(0),
    }
}

/// From the least to the largest.
fn span(values: &[i128]) -> u64 {
    let (least, most) = (values.iter().min(), values.iter().max());
    least.zip(most).map_or(0, |(least, most)| u64::try_from(most - least).unwrap_or(u64::MAX))
}
