//! The plan of a run on a network.

use std::collections::BTreeMap;

use super::PlanError;
use super::io::rate_text;
use super::names::plain;
use super::slob::{in_common, tags_by_key};
use super::steps::seed_of_step;
use crate::load::{Pace, Share, StepPlan};
use model::config::Tag;
use model::config::io::RateRange;
use model::config::net::{FlowDirection, NetOptions, NetPattern, Outstanding};
use model::record::Load;
use model::record::facts::{
    NET_BESIDE_FLOWS, NET_CONNECTIONS, NET_DIRECTION, NET_OUTSTANDING, NET_PATTERN, NET_REDO_RATE, NET_REDO_WRITE,
    NET_SURVEY,
};
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
    /// Seed of every random choice.
    pub seed: u64,
    /// What the user calls the things that vary between runs.
    pub tags: Vec<Tag>,
    /// Processors that this process may use.
    pub processors: u32,
}

/// How much load one step puts on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Level {
    /// Closed loop: so much under way.
    Closed(Outstanding),
    /// Open loop: so many operations a second, of which so many may be under way.
    Rate {
        /// Operations per second.
        per_s: f64,
        /// Most that may be under way.
        most: Outstanding,
    },
}

impl Level {
    fn outstanding(self) -> Outstanding {
        match self {
            Self::Closed(outstanding) | Self::Rate { most: outstanding, .. } => outstanding,
        }
    }

    fn label(self) -> String {
        match self {
            Self::Closed(Outstanding { connections, each: 1 }) => format!("c{connections}"),
            Self::Closed(Outstanding { connections, each }) => format!("c{connections}_o{each}"),
            Self::Rate { per_s, .. } => format!("r{}", rate_text(per_s)),
        }
    }
}

/// What will be done.
#[derive(Debug, Clone)]
pub struct NetPlan {
    /// Name built from tags and load.
    pub name: String,
    /// Tags by key.
    pub tags: BTreeMap<String, String>,
    /// Seed of the run; each step draws from one of its own.
    pub seed: u64,
    /// Parameters that all steps have in common.
    pub parameters: BTreeMap<String, String>,
    /// The load levels in the order in which they run; of a search, those it may choose from are its bounds.
    pub levels: Vec<Level>,
    request: NetPlanRequest,
}

impl NetPlan {
    /// Step number `index` at a level.
    pub fn step(&self, index: u32, level: Level) -> StepPlan<NetShape> {
        let NetPlanRequest { asked, arrival, .. } = &self.request;
        let pace = match level {
            Level::Closed(_) => Pace::Closed,
            Level::Rate { per_s, .. } => Pace::Open { rate_per_s: per_s, arrival: *arrival },
        };
        let mut parameters = level_parameters(level);
        parameters.retain(|name, _| !self.parameters.contains_key(name));
        step(&self.request, index, level.label(), asked.shape(level.outstanding()), pace, parameters)
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
    pace: Pace,
    parameters: BTreeMap<String, String>,
) -> StepPlan<NetShape> {
    StepPlan {
        index,
        label,
        load: Load {
            sessions: Some(shape.sessions()),
            rate_operations_per_s: pace.rate_per_s(),
            arrival: pace.arrival(),
            ..Load::default()
        },
        parameters,
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
    let levels: Vec<Level> = match &asked.rates {
        None => asked.levels().into_iter().map(Level::Closed).collect(),
        Some(rates) => {
            let most = asked.levels().first().copied().unwrap_or(Outstanding { connections: 1, each: 1 });
            rates.named().into_iter().map(|per_s| Level::Rate { per_s, most }).collect()
        }
    };
    let mut parameters = shape_parameters(asked);
    parameters.extend(in_common(levels.iter().map(|level| level_parameters(*level)).collect::<Vec<_>>().iter()));
    let tags = tags_by_key(&request.tags)?;
    let (name, seed) = (name(request, &levels), request.seed);
    Ok(NetPlan { name, tags, seed, parameters, levels, request: request.clone() })
}

pub(super) fn shape_parameters(asked: &NetOptions) -> BTreeMap<String, String> {
    let mut parameters = BTreeMap::from([
        (NET_PATTERN.to_owned(), asked.pattern.to_string()),
        ("SIZE".to_owned(), asked.sizes_in_force().to_string()),
    ]);
    let mut say = |name: &str, value: String| parameters.insert(name.to_owned(), value);
    match asked.pattern {
        NetPattern::Bulk => {
            say(NET_DIRECTION, asked.direction.unwrap_or_default().to_string());
        }
        _ => {
            say("ANSWER_SIZE", asked.answer_bytes().to_string());
            say("TRANSPORT", if asked.is_udp { "udp" } else { "tcp" }.to_owned());
        }
    }
    if asked.pattern.is_redo() {
        say("DURABLE", if asked.is_durable { "yes" } else { "no" }.to_owned());
    }
    parameters
}

pub(super) fn level_parameters(level: Level) -> BTreeMap<String, String> {
    let Outstanding { connections, each } = level.outstanding();
    let mut parameters = BTreeMap::from([
        (NET_CONNECTIONS.to_owned(), connections.to_string()),
        (NET_OUTSTANDING.to_owned(), each.to_string()),
    ]);
    if let Level::Rate { per_s, .. } = level {
        parameters.insert("RATE".to_owned(), rate_text(per_s));
    }
    parameters
}

/// The name of a run, such as `lan10g_redo-sync_8K_c1-64`.
fn name(request: &NetPlanRequest, levels: &[Level]) -> String {
    let asked = &request.asked;
    let mut parts: Vec<String> = request.tags.iter().map(|tag| plain(&tag.value)).collect();
    parts.push(asked.pattern.to_string());
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
    let of = |number: fn(Outstanding) -> u32| levels.iter().map(move |level| f64::from(number(level.outstanding())));
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
    parts.join("_")
}

/// Flows of a survey where there is more than one.
const SURVEY_FLOWS: u32 = 8;

/// A look at a network without a load of the user's own: round trips, bulk flows, and both at once.
#[derive(Debug, Clone)]
pub struct Survey {
    /// Name built from tags.
    pub name: String,
    /// Tags by key.
    pub tags: BTreeMap<String, String>,
    /// Seed of the run.
    pub seed: u64,
    /// Parameters of the run.
    pub parameters: BTreeMap<String, String>,
    /// Its steps.
    pub steps: Vec<StepPlan<NetShape>>,
}

/// The redo of a database that a survey is asked about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Redo {
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Bytes of each redo write, where they are known.
    pub write_bytes: Option<f64>,
}

/// Plans a survey. Of the request's load only its duration, warm-up, seed and tags count.
///
/// # Errors
/// The first thing that cannot be done.
pub fn survey(request: &NetPlanRequest, redo: Option<Redo>) -> Result<Survey, PlanError> {
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
        let mut parameters = shape_parameters(&asked);
        parameters.extend(level_parameters(Level::Closed(outstanding)));
        if let Some(direction) = beside {
            let flows = bulk(direction).shape(Outstanding { connections: SURVEY_FLOWS, each: 1 });
            shape.classes.extend(flows.classes);
            parameters.insert(NET_BESIDE_FLOWS.to_owned(), SURVEY_FLOWS.to_string());
            parameters.insert(NET_DIRECTION.to_owned(), direction.to_string());
        }
        step(request, index, label.to_owned(), shape, Pace::Closed, parameters)
    });
    let mut parameters = BTreeMap::from([(NET_SURVEY.to_owned(), "yes".to_owned())]);
    if let Some(Redo { bytes_per_s, write_bytes }) = redo {
        parameters.insert(NET_REDO_RATE.to_owned(), bytes_per_s.round().to_string());
        parameters.extend(write_bytes.map(|bytes| (NET_REDO_WRITE.to_owned(), bytes.round().to_string())));
    }
    let mut parts: Vec<String> = request.tags.iter().map(|tag| plain(&tag.value)).collect();
    parts.push("network".to_owned());
    Ok(Survey {
        name: parts.join("_"),
        tags: tags_by_key(&request.tags)?,
        seed: request.seed,
        parameters,
        steps: steps.collect(),
    })
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
            seed: 7,
            tags: vec!["net=lan 10g".parse().unwrap()],
            processors: 2,
        }
    }

    #[test]
    fn each_number_of_connections_is_a_step() {
        let asked = NetOptions { connections: "1,2,4".parse().ok(), ..NetOptions::new(NetPattern::RedoSync) };
        let plan = plan(&request(asked)).unwrap();
        assert_eq!(plan.name, "lan-10g_redo-sync_c1-4");
        let steps = plan.steps();
        assert_eq!(steps.iter().map(|step| step.label.as_str()).collect::<Vec<_>>(), ["c1", "c2", "c4"]);
        assert_eq!(steps[2].parameters[NET_CONNECTIONS], "4");
        assert_eq!((steps[2].load.sessions, steps[2].lanes), (Some(4), 2));
        assert_eq!(plan.parameters["SIZE"], "8K");
        assert!(!plan.parameters.contains_key(NET_CONNECTIONS), "it differs from step to step");
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
        let redo = Redo { bytes_per_s: 20e6, write_bytes: None };
        let survey = survey(&request(NetOptions::new(NetPattern::Ping)), Some(redo)).unwrap();
        assert_eq!((survey.name.as_str(), survey.parameters[NET_REDO_RATE].as_str()), ("lan-10g_network", "20000000"));
        let sessions: Vec<u32> = survey.steps.iter().map(|step| step.load.slots()).collect();
        assert_eq!(sessions, [1, 1, 1, 8, 8, 16, 9, 9]);
        let loaded = &survey.steps[6];
        assert_eq!((loaded.lanes, loaded.parameters[NET_BESIDE_FLOWS].as_str()), (9, "8"));
        assert!(words(&loaded.shape).contains("8 flows to send, chunks of 128 KiB"), "{}", words(&loaded.shape));
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let instant = NetPlanRequest { duration: Nanos(0), ..request(NetOptions::new(NetPattern::Ping)) };
        assert!(matches!(plan(&instant), Err(PlanError::NoDuration)));
        assert!(matches!(survey(&instant, None), Err(PlanError::NoDuration)));
        let wrong = NetOptions { is_udp: true, ..NetOptions::new(NetPattern::Bulk) };
        assert!(matches!(plan(&request(wrong)), Err(PlanError::Config(_))));
    }
}
