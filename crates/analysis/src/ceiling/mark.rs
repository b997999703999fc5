//! A cap by its fingerprint: seconds that are the same to the request, at loads that differ.

use super::{
    Ceiling, Count, Grounds, IN_PROPORTION, Limit, RATE_REACHED, cap_of, ceiling_of_steps, is_in_slices, judged,
    latency, mean_rate,
};
use crate::fingerprint::{self, Edge};
use crate::seconds::Seconds;
use crate::{Figures, Series, is_on_servers, operations_are_requests};
use model::record::{Run, Step};

/// A cap is reported where fewer than this share of the most even devices show as much by chance; of others, which stray more, far
/// fewer do. What more of them show, though not many, is a hint.
const FALSE_ALARM: f64 = 0.01;
const HINT: f64 = 0.1;
const MIN_EXACT: usize = 3;
/// Loads that differ by this much have one and the same rate only if that is limited, when it is the same to the request.
const OTHER_LOAD: f64 = 1.2;
/// Without the limit, the load would have reached this many times the rate.
const HELD_BACK: f64 = 1.5;

/// An edge that the seconds of a series lie on, as a limiter leaves.
pub(super) struct Mark<'a> {
    /// The steps that can show one, least load first.
    steps: Vec<&'a Step>,
    edge: Edge,
    /// What has the edge, where that is a part of all requests.
    part: Option<&'static str>,
}

impl<'a> Mark<'a> {
    /// Steps of an open loop show an edge only where their rate is not reached, else it may be the rate that was asked for.
    /// Programs whose results were imported round.
    pub(super) fn of(run: &Run, series: &Series<'a>) -> Option<Self> {
        if is_on_servers(run) || run.imported.is_some() {
            return None;
        }
        let can_show = |step: &&Step| match step.load.rate_operations_per_s {
            Some(asked) => Figures(step).ended_per_s().is_some_and(|ended| ended < RATE_REACHED * asked),
            None => step.load.sessions.is_some(),
        };
        let steps: Vec<&Step> = series.steps.iter().copied().filter(can_show).collect();
        let is_mixed = operations_are_requests(run)
            && steps
                .iter()
                .any(|step| step.counters.physical_reads > Some(0) && step.counters.physical_writes > Some(0));
        let reads: (Option<&'static str>, Count) = (Some("reads"), |counters| counters.physical_reads);
        let writes: (Option<&'static str>, Count) = (Some("writes"), |counters| counters.physical_writes);
        let parts = if is_mixed { vec![reads, writes] } else { Vec::new() };
        let edge = |count: Count| {
            let seconds: Vec<Seconds> = steps.iter().map(|step| Seconds::of(run, step, count)).collect();
            fingerprint::find(&seconds)
        };
        let all = edge(judged(run)).map(|edge| (None, edge));
        // A part has the edge only if the whole has none as clear: then it follows the part.
        let of_part = parts.into_iter().filter_map(|(part, count)| Some((part, edge(count)?)));
        let clearest = |left: (_, Edge), right: (_, Edge)| if right.1.chance < left.1.chance { right } else { left };
        let (part, edge) = all.into_iter().chain(of_part).reduce(clearest)?;
        Some(Self { steps, edge, part })
    }

    /// The steps between the least load that shows it and the most.
    fn between(&self) -> &[&'a Step] {
        match (self.edge.steps.first(), self.edge.steps.last()) {
            (Some(first), Some(last)) => &self.steps[*first..=*last],
            _ => &[],
        }
    }

    /// Whether more load would have come through, so that it is no loop that latency holds at one rate: another load comes
    /// to the same rate, or less load to nearly as much, or requests wait for slices.
    fn is_held_back(&self, run: &Run, series: &Series<'_>) -> bool {
        let (Some(from), Some(to)) = (self.between().first(), self.between().last()) else { return false };
        let more = match (from.load.rate_operations_per_s, to.load.rate_operations_per_s) {
            (Some(least), Some(most)) => most / least,
            _ => f64::from(to.load.slots()) / f64::from(from.load.slots().max(1)),
        };
        let is_other_load = more >= OTHER_LOAD && (series.is_open_loop() || is_queueing(run, from, to));
        let less =
            || series.steps.iter().filter(|less| series.is_closed_loop() && less.load.sessions < to.load.sessions);
        is_other_load
            || less().any(|less| would_reach(less, to, run) && is_queueing(run, less, to))
            || is_in_slices(run, to)
    }

    fn ceiling(&self, run: &Run, series: &Series<'_>, limit: Limit) -> Option<Ceiling> {
        let steps = self.between();
        let Edge { per_s, exact: seconds, chance, left_out, .. } = self.edge;
        let within = fingerprint::half_width(per_s);
        let grounds = Some(Grounds::Exact { seconds, within, chance, left_out });
        let found = Ceiling {
            grounds,
            spread: within / per_s,
            ..ceiling_of_steps(run, series, steps, &vec![per_s; steps.len()], limit)?
        };
        Some(match self.part {
            // Of a part's bytes only its share of all requests would be known.
            Some(what) => Ceiling { what, megabytes_per_s: None, ..found },
            None => found,
        })
    }

    /// The cap that it shows.
    pub(super) fn cap(&self, run: &Run, series: &Series<'_>) -> Option<Ceiling> {
        let few = self.edge.chance > FALSE_ALARM || self.edge.exact < MIN_EXACT;
        if few || !self.is_held_back(run, series) {
            return None;
        }
        let found = self.ceiling(run, series, cap_of(self.between().last()))?;
        let slower = match self.between() {
            [from, .., to] if series.is_closed_loop() => latency(run, to).zip(latency(run, from)),
            _ => None,
        };
        Some(Ceiling { slower: slower.and_then(|(to, from)| Some(to.mean_ns()? / from.mean_ns()?)), ..found })
    }

    /// That there may be one.
    pub(super) fn hint(&self, run: &Run, series: &Series<'_>) -> Option<Ceiling> {
        let is_hint = self.edge.chance <= HINT && self.edge.exact >= MIN_EXACT && self.is_held_back(run, series);
        if is_hint { self.ceiling(run, series, Limit::Unclear) } else { None }
    }
}

/// Whether the load of `to` would have reached much more than it did at the latency of `less`.
fn would_reach(less: &Step, to: &Step, run: &Run) -> bool {
    let bound = || {
        let sessions = f64::from(to.load.sessions?) / f64::from(less.load.sessions.filter(|sessions| *sessions > 0)?);
        Some(mean_rate(run, less)? * sessions >= HELD_BACK * mean_rate(run, to)?)
    };
    bound().unwrap_or(false)
}

/// Whether requests take longer by as much as load grows more than its rate. Of raw I/O that is Little's law; an engine's
/// sessions may have waited for something else.
fn is_queueing(run: &Run, from: &Step, to: &Step) -> bool {
    let queues = || {
        let more = f64::from(to.load.sessions?) / f64::from(from.load.sessions?.max(1));
        let faster = mean_rate(run, to)? / mean_rate(run, from)?;
        Some(latency(run, to)?.mean_ns()? / latency(run, from)?.mean_ns()? > IN_PROPORTION * more / faster)
    };
    operations_are_requests(run) || queues().unwrap_or(false)
}
