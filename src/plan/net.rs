//! The plan of a run on a network.

use super::steps::seed_of_step;
use super::{PlanError, RunHead};
use load::{Pace, Share, StepPlan};
use model::config::Tag;
use model::config::io::{RateRange, rate_text};
use model::config::net::{FlowDirection, NetOptions, NetPattern, Outstanding};
use model::record::{Beside, Intensity, Level, LikeLevel, Load, NetLevel, NetSurvey};
use model::units::{Bytes, Nanos};
use model::workload::Arrival;
use model::workload::net::NetShape;

/// What was asked for.
#[derive(Debug, Clone)]
pub struct NetPlanRequest {
    /// The load; of a survey only what it says besides.
    pub asked: NetOptions,
    /// Length of each measured window.
    pub duration: Nanos,
    /// Load before each window.
    pub warmup: Nanos,
    /// How the operations of an open loop arrive.
    pub arrival: Arrival,
    /// How many times a production it is, where it is like one.
    pub times: Option<f64>,
    /// Seed of every random choice.
    pub seed: u64,
    /// What the user calls the things that vary between runs.
    pub tags: Vec<Tag>,
    /// Processors that this process may use.
    pub processors: u32,
}

/// How much load one step puts on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NetRate {
    /// Connections and what is under way on each; at a rate, at most.
    pub outstanding: Outstanding,
    /// Operations per second of an open loop.
    pub per_s: Option<f64>,
}

impl NetRate {
    fn label(self) -> String {
        match (self.per_s, self.outstanding) {
            (Some(per_s), _) => format!("r{}", rate_text(per_s)),
            (None, Outstanding { connections, each: 1 }) => format!("c{connections}"),
            (None, Outstanding { connections, each }) => format!("c{connections}_o{each}"),
        }
    }

    /// The same for the record.
    fn level(self) -> NetLevel {
        let Self { outstanding, per_s } = self;
        NetLevel { options: None, outstanding, rate_per_s: per_s, beside: None, server: None }
    }
}

/// What will be done.
#[derive(Debug, Clone)]
pub struct NetPlan {
    /// What the run is before its first step.
    pub head: RunHead,
    /// The load levels in the order in which they run; of a search, those it may choose from are its bounds.
    pub levels: Vec<NetRate>,
    request: NetPlanRequest,
}

impl NetPlan {
    /// Step number `index` at a level.
    pub fn step(&self, index: u32, level: NetRate) -> StepPlan<NetShape> {
        let NetPlanRequest { asked, times, .. } = &self.request;
        let step = step(&self.request, index, level.label(), asked.shape(level.outstanding), level.level());
        StepPlan { like: times.map(|times| LikeLevel { times, moment: None }), ..step }
    }

    /// The steps at all levels.
    pub fn steps(&self) -> Vec<StepPlan<NetShape>> {
        (0..).zip(&self.levels).map(|(index, level)| self.step(index, *level)).collect()
    }

    /// How long a step lasts, warm-up included.
    pub fn step_time(&self) -> Nanos {
        Nanos(self.request.warmup.0.saturating_add(self.request.duration.0))
    }
}

pub(super) fn step(
    request: &NetPlanRequest,
    index: u32,
    label: String,
    shape: NetShape,
    level: NetLevel,
) -> StepPlan<NetShape> {
    let pace = match level.rate_per_s {
        None => Pace::Closed,
        Some(rate_per_s) => Pace::Open { rate_per_s, arrival: request.arrival },
    };
    StepPlan {
        index,
        label,
        load: Intensity {
            sessions: Some(shape.sessions()),
            rate_operations_per_s: pace.rate_per_s(),
            arrival: pace.arrival(),
            ..Intensity::default()
        },
        level: Some(Level::Network(level)),
        like: None,
        lanes: shape.lanes(request.processors),
        shape,
        seed: seed_of_step(request.seed, index),
        work_loop: None,
        warmup: request.warmup,
        duration: request.duration,
        pace,
        share: Share::WHOLE,
    }
}

/// Plans a run.
///
/// # Errors
/// The first thing that cannot be done.
pub fn plan(request: &NetPlanRequest) -> Result<NetPlan, PlanError> {
    let asked = &request.asked;
    asked.check()?;
    if request.duration == Nanos(0) {
        return Err(PlanError::NoDuration);
    }
    let levels: Vec<NetRate> = match &asked.rates {
        None => asked.levels().into_iter().map(|outstanding| NetRate { outstanding, per_s: None }).collect(),
        Some(rates) => {
            let outstanding = asked.levels().first().copied().unwrap_or(Outstanding { connections: 1, each: 1 });
            rates.named().into_iter().map(|per_s| NetRate { outstanding, per_s: Some(per_s) }).collect()
        }
    };
    let points: Vec<Level> = levels.iter().map(|level| Level::Network(level.level())).collect();
    let load = Load::Network(asked.clone());
    let head = RunHead::new(&request.tags, name(asked, &levels), request.seed, load, &points)?;
    let head = head.like(request.times.as_slice());
    Ok(NetPlan { head, levels, request: request.clone() })
}

/// What the name of a run says of its load, such as `redo-sync_c1-64`.
fn name(asked: &NetOptions, levels: &[NetRate]) -> Vec<String> {
    let mut parts = vec![asked.pattern.to_string()];
    match (asked.pattern, asked.direction) {
        (NetPattern::Bulk, direction) => parts.push(direction.unwrap_or_default().to_string()),
        (NetPattern::Gc, _) if asked.is_udp => parts.push("udp".to_owned()),
        _ => {}
    }
    if asked.is_durable {
        parts.push("durable".to_owned());
    }
    let range = |letter: &str, numbers: &mut dyn Iterator<Item = f64>| {
        // A rate that was taken from a report has more digits than a name needs.
        let thousandths = numbers.map(|number| (number * 1e3).round() / 1e3);
        let (least, most) = thousandths.fold((f64::MAX, f64::MIN), |(least, most), it| (least.min(it), most.max(it)));
        if least == most { format!("{letter}{least}") } else { format!("{letter}{least}-{most}") }
    };
    let of = |number: fn(Outstanding) -> u32| levels.iter().map(move |level| f64::from(number(level.outstanding)));
    match &asked.rates {
        Some(RateRange::Between { lowest, highest }) => parts.push(range("r", &mut [*lowest, *highest].into_iter())),
        Some(RateRange::Each(rates)) => parts.push(range("r", &mut rates.iter().copied())),
        None => {
            parts.push(range("c", &mut of(|it| it.connections)));
            if of(|it| it.each).any(|each| each > 1.0) {
                parts.push(range("o", &mut of(|it| it.each)));
            }
        }
    }
    parts
}

/// Flows of a survey where there is more than one.
const SURVEY_FLOWS: u32 = 8;

/// A look at a network without a load of the user's own: round trips, bulk flows, and both at once.
#[derive(Debug, Clone)]
pub struct Survey {
    /// What the run is before its first step.
    pub head: RunHead,
    /// Its steps.
    pub steps: Vec<StepPlan<NetShape>>,
}

/// Plans a survey. Of the request's load only its duration, warm-up, seed and tags count.
///
/// # Errors
/// The first thing that cannot be done.
pub fn survey(request: &NetPlanRequest, asked: NetSurvey) -> Result<Survey, PlanError> {
    if request.duration == Nanos(0) {
        return Err(PlanError::NoDuration);
    }
    let of = |pattern| NetOptions::new(pattern);
    let bulk = |direction| NetOptions { direction: Some(direction), ..of(NetPattern::Bulk) };
    let (one, several) = (1, SURVEY_FLOWS);
    let loads: [(&str, NetOptions, u32, Option<FlowDirection>); 8] = [
        ("idle", of(NetPattern::Ping), one, None),
        ("up_1", bulk(FlowDirection::Up), one, None),
        ("down_1", bulk(FlowDirection::Down), one, None),
        ("up_8", bulk(FlowDirection::Up), several, None),
        ("down_8", bulk(FlowDirection::Down), several, None),
        ("both_8", bulk(FlowDirection::Both), several, None),
        ("loaded_up", of(NetPattern::Ping), one, Some(FlowDirection::Up)),
        ("loaded_down", of(NetPattern::Ping), one, Some(FlowDirection::Down)),
    ];
    let steps = (0..).zip(loads).map(|(index, (label, asked, connections, beside))| {
        let outstanding = Outstanding { connections, each: 1 };
        let mut shape = asked.shape(outstanding);
        let beside = beside.map(|direction| Beside { flows: SURVEY_FLOWS, direction });
        if let Some(Beside { flows, direction }) = beside {
            shape.classes.extend(bulk(direction).shape(Outstanding { connections: flows, each: 1 }).classes);
        }
        let level = NetLevel { options: Some(asked), outstanding, rate_per_s: None, beside, server: None };
        step(request, index, label.to_owned(), shape, level)
    });
    let load = Load::NetworkSurvey(asked);
    let head = RunHead::new(&request.tags, ["network".to_owned()], request.seed, load, [])?;
    Ok(Survey { head, steps: steps.collect() })
}

/// A load in words, for what is printed before it is carried out.
pub fn words(shape: &NetShape) -> String {
    let class = |class: &model::workload::net::NetClass| {
        let (connections, each) = (class.connections, class.outstanding);
        let sizes = match class.sizes.smallest() == class.sizes.largest() {
            true => Bytes(u64::from(class.sizes.largest())).to_string(),
            false => format!("{:.0} bytes on average", class.sizes.mean()),
        };
        let plural = |count: u32, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        match class.kind.is_bulk() {
            true => format!("{} to {}, chunks of {sizes}", plural(connections, "flow"), class.kind.name()),
            false => {
                let answer = Bytes(u64::from(class.answer_bytes));
                format!(
                    "{} of {}, {each} under way on each, {sizes} answered by {answer}",
                    plural(connections, "connection"),
                    class.kind.name()
                )
            }
        }
    };
    shape.classes.iter().map(class).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(asked: NetOptions) -> NetPlanRequest {
        NetPlanRequest {
            asked,
            duration: Nanos::seconds(10),
            warmup: Nanos::seconds(1),
            arrival: Arrival::Poisson,
            times: None,
            seed: 7,
            tags: vec!["net=lan 10g".parse().unwrap()],
            processors: 2,
        }
    }

    #[test]
    fn each_number_of_connections_is_a_step() {
        let asked = NetOptions { connections: "1,2,4".parse().ok(), ..NetOptions::new(NetPattern::RedoSync) };
        let plan = plan(&request(asked)).unwrap();
        assert_eq!(plan.head.name, "lan-10g_redo-sync_c1-4");
        let steps = plan.steps();
        assert_eq!(steps.iter().map(|step| step.label.as_str()).collect::<Vec<_>>(), ["c1", "c2", "c4"]);
        assert_eq!(steps[2].parameters(&plan.head.parameters)["CONNECTIONS"], "4");
        assert_eq!((steps[2].load.sessions, steps[2].lanes), (Some(4), 2));
        assert_eq!(plan.head.parameters["SIZE"], "8K");
        assert!(!plan.head.parameters.contains_key("CONNECTIONS"), "it differs from step to step");
        assert_ne!(steps[0].seed, steps[1].seed);
    }

    #[test]
    fn a_rate_has_room_for_what_may_be_under_way() {
        let asked = NetOptions { rates: "20k".parse().ok(), ..NetOptions::new(NetPattern::Gc) };
        let plan = plan(&request(asked)).unwrap();
        let step = plan.step(0, plan.levels[0]);
        assert_eq!((step.label.as_str(), step.load.sessions, step.lanes), ("r20000", Some(64), 1));
        assert_eq!(step.load.rate_operations_per_s, Some(20_000.0));
    }

    #[test]
    fn a_survey_looks_at_round_trips_flows_and_both_at_once() {
        let redo = NetSurvey { redo_bytes_per_s: Some(20e6), redo_write_bytes: None };
        let survey = survey(&request(NetOptions::new(NetPattern::Ping)), redo).unwrap();
        assert_eq!(
            (survey.head.name.as_str(), survey.head.parameters["REDO_BYTES_PER_S"].as_str()),
            ("lan-10g_network", "20000000")
        );
        let sessions: Vec<u32> = survey.steps.iter().map(|step| step.load.slots()).collect();
        assert_eq!(sessions, [1, 1, 1, 8, 8, 16, 9, 9]);
        let loaded = &survey.steps[6];
        assert_eq!((loaded.lanes, loaded.parameters(&survey.head.parameters)["BESIDE_FLOWS"].as_str()), (9, "8"));
        assert!(words(&loaded.shape).contains("8 flows to send, chunks of 128 KiB"), "{}", words(&loaded.shape));
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let instant = NetPlanRequest { duration: Nanos(0), ..request(NetOptions::new(NetPattern::Ping)) };
        assert!(matches!(plan(&instant), Err(PlanError::NoDuration)));
        assert!(matches!(survey(&instant, NetSurvey::default()), Err(PlanError::NoDuration)));
        let wrong = NetOptions { is_udp: true, ..NetOptions::new(NetPattern::Bulk) };
        assert!(matches!(plan(&request(wrong)), Err(PlanError::Config(_))));
    }
}
