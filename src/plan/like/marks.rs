//! How steps and runs of a load that is like a production are called, and what a step of it is.

use super::times_text;
use crate::plan::plain;
use crate::plan::steps::seed_of_step;
use load::{Pace, Share, StepPlan};
use model::record::{Intensity, Like, LikeLevel, LikeMoment, WorkFigure};
use model::units::Nanos;
use model::workload::Arrival;

/// What a step is apart from its shape.
pub(super) struct LikeStep<'a> {
    /// Position in the run.
    pub(super) index: u32,
    /// The production.
    pub(super) like: &'a Like,
    /// Which of its moments.
    pub(super) moment: &'a LikeMoment,
    /// How many times it.
    pub(super) times: f64,
    /// Seed of the run.
    pub(super) seed: u64,
    /// Load before the window, and the window.
    pub(super) time: (Nanos, Nanos),
    /// Most operations under way, and threads.
    pub(super) slots: (u32, u32),
}

/// A step of an open loop that does `per_s` operations once.
pub(super) fn step<S>(place: LikeStep<'_>, shape: S, per_s: f64, schemas: Option<u32>) -> StepPlan<S> {
    let LikeStep { index, like, moment, times, seed, time: (warmup, duration), slots: (sessions, lanes) } = place;
    let pace = Pace::Open { rate_per_s: per_s * times, arrival: Arrival::Poisson };
    let is_day = like.at == "day";
    let hour = if is_day { format!("h{}_", moment.name) } else { String::new() };
    let label = format!("{hour}x{}", times_text(times));
    StepPlan {
        index,
        label,
        load: Intensity {
            sessions: Some(sessions),
            schemas,
            rate_operations_per_s: pace.rate_per_s(),
            arrival: pace.arrival(),
            ..Intensity::default()
        },
        level: None,
        like: Some(LikeLevel { times, moment: is_day.then(|| moment.name.clone()) }),
        shape,
        seed: seed_of_step(seed, index),
        work_loop: None,
        warmup,
        duration,
        pace,
        lanes,
        share: Share::WHOLE,
    }
}

/// Every moment at every multiple, in the order in which they run.
pub(super) fn all<S>(
    moments: usize,
    times: &[f64],
    step: impl Fn(u32, usize, f64) -> Option<StepPlan<S>>,
) -> Vec<StepPlan<S>> {
    let all = (0..moments).flat_map(|moment| times.iter().map(move |times| (moment, *times)));
    (0..).zip(all).filter_map(|(index, (moment, times))| step(index, moment, times)).collect()
}

/// What the name of a run says of its load, such as `like-PROD_peak_x2`.
pub(super) fn name(like: &Like, times: &[f64]) -> [String; 3] {
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    let most = times.iter().copied().fold(0.0, f64::max);
    let times = if least == most {
        format!("x{}", times_text(most))
    } else {
        format!("x{}-{}", times_text(least), times_text(most))
    };
    [format!("like-{}", plain(&like.database)), plain(&like.at), times]
}

/// The moment with the most requests, by which what is reproduced is described.
pub(super) fn busiest(like: &Like) -> Option<&LikeMoment> {
    let requests = |moment: &LikeMoment| {
        [WorkFigure::Reads, WorkFigure::Writes].iter().filter_map(|figure| moment.work.get(figure)).sum::<f64>()
    };
    like.moments.iter().max_by(|a, b| requests(a).total_cmp(&requests(b)))
}
