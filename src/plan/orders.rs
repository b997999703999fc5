//! The plan of a run with order entry.

use super::slob::SlobPlanRequest;
use super::steps::seed_of_step;
use super::{PlanError, RunHead};
use load::{Pace, Share, StepPlan};
use model::config::Tag;
use model::record::{Intensity, Load, OrdersOptions};
use model::units::Nanos;
use model::workload::orders::OrdersShape;

/// What was asked for.
#[derive(Debug, Clone)]
pub struct OrdersLoad {
    /// Users of each step, at least one.
    pub users: Vec<u32>,
    /// What users do.
    pub options: OrdersOptions,
    /// How transactions follow each other: one rate for each step, or none.
    pub paces: Vec<Pace>,
    /// Load before each measured window; a fifth of it, 10 s at most, where `None`.
    pub warmup: Option<Nanos>,
    /// Threads that drive users; by default one for each processor, and never more than users.
    pub lanes: Option<u32>,
    /// Seed of every random choice.
    pub seed: u64,
    /// What the user calls the things that vary between runs.
    pub tags: Vec<Tag>,
    /// Processors that this process may use.
    pub processors: u32,
}

/// What will be done.
#[derive(Debug, Clone)]
pub struct OrdersPlan {
    /// What the run is before its first step.
    pub head: RunHead,
    /// The steps in the order in which they run.
    pub steps: Vec<StepPlan<OrdersShape>>,
}

impl OrdersPlan {
    /// Users of the largest step.
    pub fn max_users(&self) -> u32 {
        self.steps.iter().map(|step| step.load.slots()).max().unwrap_or(0)
    }

    /// How long load will run, warm-up included, if nothing ends it before.
    pub fn duration(&self) -> Nanos {
        Nanos(self.steps.iter().map(|step| step.time().0).fold(0, u64::saturating_add))
    }
}

/// Plans a run.
///
/// # Errors
/// If a tag is given twice.
pub fn plan(load: &OrdersLoad) -> Result<OrdersPlan, PlanError> {
    let paces = if load.paces.is_empty() { &[Pace::Closed] } else { load.paces.as_slice() };
    let points = load.users.iter().flat_map(|users| paces.iter().map(move |pace| (*users, *pace)));
    let steps: Vec<StepPlan<OrdersShape>> =
        (0..).zip(points).map(|(index, (users, pace))| step(load, index, users, pace)).collect();
    let head = RunHead::new(&load.tags, name(load, paces), load.seed, Load::Orders(load.options.clone()), [])?;
    Ok(OrdersPlan { head, steps })
}

fn step(load: &OrdersLoad, index: u32, users: u32, pace: Pace) -> StepPlan<OrdersShape> {
    StepPlan {
        index,
        label: label(users, pace),
        load: Intensity {
            sessions: Some(users),
            schemas: None,
            threads_per_schema: None,
            rate_operations_per_s: pace.rate_per_s(),
            arrival: pace.arrival(),
        },
        level: None,
        like: None,
        shape: OrdersShape { mix: load.options.mix, between: load.options.between },
        seed: seed_of_step(load.seed, index),
        work_loop: None,
        warmup: load.warmup.unwrap_or_else(|| SlobPlanRequest::default_warmup(load.options.duration_ns)),
        duration: load.options.duration_ns,
        pace,
        lanes: load.lanes.unwrap_or(load.processors).clamp(1, users.max(1)),
        share: Share::WHOLE,
    }
}

fn label(users: u32, pace: Pace) -> String {
    let rate = pace.rate_per_s().map(|rate| format!("_r{rate}")).unwrap_or_default();
    format!("u{users}{rate}")
}

fn name(load: &OrdersLoad, paces: &[Pace]) -> Vec<String> {
    let (least, most) = (load.users.iter().min().copied().unwrap_or(0), load.users.iter().max().copied().unwrap_or(0));
    let mut parts = vec![if least == most { format!("u{least}") } else { format!("u{least}-{most}") }];
    let rates: Vec<f64> = paces.iter().filter_map(|pace| pace.rate_per_s()).collect();
    let (least, most) = (rates.iter().copied().reduce(f64::min), rates.iter().copied().reduce(f64::max));
    parts.extend(least.zip(most).map(
        |(least, most)| {
            if least == most { format!("r{least}") } else { format!("r{least}-{most}") }
        },
    ));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::workload::Arrival;
    use model::workload::orders::{Pauses, Preset, Reconnect};

    fn load(users: &[u32]) -> OrdersLoad {
        OrdersLoad {
            users: users.to_vec(),
            options: OrdersOptions {
                mix: Preset::V26.mix(),
                between: Pauses::None,
                inside: Pauses::Uniform { min_ns: 1_000_000, max_ns: 5_000_000 },
                duration_ns: Nanos::seconds(60),
                max_retries: 10,
                reconnect: Reconnect::Never,
                isolation: None,
            },
            paces: Vec::new(),
            warmup: None,
            lanes: None,
            seed: 7,
            tags: Vec::new(),
            processors: 4,
        }
    }

    #[test]
    fn each_number_of_users_is_a_step_with_a_seed_of_its_own() {
        let planned = plan(&load(&[1, 4, 16])).unwrap();
        let labels: Vec<&str> = planned.steps.iter().map(|step| step.label.as_str()).collect();
        assert_eq!(labels, ["u1", "u4", "u16"]);
        assert_eq!((planned.head.name.as_str(), planned.max_users()), ("u1-16", 16));
        assert_eq!(planned.steps.iter().map(|step| step.lanes).collect::<Vec<_>>(), [1, 4, 4]);
        assert_eq!(planned.duration(), Nanos::seconds(3 * 70));
        assert_ne!(planned.steps[1].seed, planned.steps[2].seed);
        assert_eq!(planned.head.parameters["THINK_INSIDE"], "1ms..5ms");
        assert_eq!(
            (planned.head.parameters["THINK_BETWEEN"].as_str(), planned.head.parameters["RUN_TIME"].as_str()),
            ("0", "60")
        );
        assert_eq!(planned.head.parameters["MIX"], "NCR=15,UCD=10,BP=90,OP=40,PO=5,BO=15,SQ=2,WQ=1,WA=1");
    }

    #[test]
    fn rates_are_steps_too() {
        let open = |rate_per_s| Pace::Open { rate_per_s, arrival: Arrival::Poisson };
        let planned = plan(&OrdersLoad { paces: vec![open(100.0), open(200.0)], ..load(&[32]) }).unwrap();
        let labels: Vec<&str> = planned.steps.iter().map(|step| step.label.as_str()).collect();
        assert_eq!((labels, planned.head.name.as_str()), (vec!["u32_r100", "u32_r200"], "u32_r100-200"));
        assert_eq!(planned.steps[1].load.rate_operations_per_s, Some(200.0));
    }
}
