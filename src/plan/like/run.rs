//! The plan of a run of the SLOB method that is like a production.

use super::marks::{self, LikeStep};
use super::observed::{Observed, Verdict, judge};
use super::slob::{SlobFacts, slob};
use crate::plan::check::{MAX_SERVER_SESSIONS, MAX_SESSIONS, open_sessions};
use crate::plan::slob::{RunPlan, SlobPlanRequest, plan as plan_slob};
use crate::plan::{PlanError, RunHead};
use load::{Pace, StepPlan};
use model::config::{Key, Origin, Role};
use model::record::{Like, Load, SlobLoad, Step, WorkFigure};
use model::units::{Bytes, Nanos};
use model::workload::{OperationKind, SlobBlend, SlobPart};
use targets::database::{Caching, DataFacts, PlannedLoad};

/// A cache has been filled anew when so many times its blocks were read.
const TURNS: f64 = 1.2;
/// Longest window of a trial on the engine, and on a server, whose background work comes more seldom; half a step's at most on either.
const TRIAL: Nanos = Nanos::seconds(15);
const SERVER_TRIAL: Nanos = Nanos::seconds(60);
/// Trials at most: what one of them shows changes the load, and so what the next one shows.
pub(super) const MAX_TRIALS: u32 = 3;
/// Nobody waits longer than this for a cache to fill without being asked.
const LONGEST_WARMUP: Nanos = Nanos::seconds(60);

/// Where the load lands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// An engine of our own, with a cache of this size.
    Engine,
    /// A server.
    Server,
    /// A simulation, which has no buffers.
    Simulation,
}

/// What will be done.
#[derive(Debug, Clone)]
pub struct SlobLikePlan {
    /// What the run is before its first step, notes, and how long a step is.
    pub base: RunPlan,
    /// Production, with what is asked for and what is not.
    pub like: Like,
    shapes: Vec<SlobBlend>,
    facts: SlobFacts,
    schemas: u32,
    sessions: u32,
    lanes: u32,
    warmup: Option<Nanos>,
    /// Blocks of the cache that have to be filled before blocks are written as fast as they are changed.
    cache_blocks: f64,
    /// Trials by which it was corrected.
    trials: u32,
}

/// Plans a load like `like` on the data that `data` describes. `times` are the multiples that will be asked for.
///
/// # Errors
/// If the parameters are not in order, or nothing that is reported can be asked for.
pub fn plan(
    request: &SlobPlanRequest,
    like: &Like,
    times: &[f64],
    data: &DataFacts,
    on: On,
) -> Result<SlobLikePlan, PlanError> {
    let mut base = plan_slob(&SlobPlanRequest { pace: Pace::Closed, ..request.clone() }, data)?;
    let first = base.steps.first().map(|step| (step.shape.scale_blocks, step.shape.schemas));
    let (scale_blocks, schemas) = first.unwrap_or((data.scale_blocks, data.schemas));
    let has_threads = request
        .settings
        .iter()
        .any(|setting| setting.key == Key::ThreadsPerSchema && setting.origin == Origin::CommandLine);
    let cache = match (&data.caching, on) {
        (_, On::Simulation) => None,
        (Caching::Asked, _) => Some(request.cache),
        (Caching::There(cache), _) => Some(cache.bytes),
        (Caching::Unknown, _) => None,
    };
    let own_cache = if on == On::Engine { request.cache } else { Bytes(0) };
    let most = if on == On::Server { MAX_SERVER_SESSIONS } else { MAX_SESSIONS };
    let sessions = match has_threads {
        true => base.max_sessions(),
        false => open_sessions(most, own_cache, data.block_bytes),
    };
    let facts = SlobFacts {
        schemas,
        scale_blocks,
        scan_blocks: data.scan_blocks,
        block_bytes: data.block_bytes,
        cache,
        has_buffers: on != On::Simulation,
        scans_past_cache: on != On::Server,
        redo: data.redo,
        max_sessions: sessions,
        observed: None,
    };
    let (like, shapes) = shapes(like, &facts);
    if shapes.is_empty() {
        return Err(PlanError::NothingAlike { database: like.database });
    }
    let is_of_data = |name: &str| {
        Key::from_name(name).is_some_and(|key| matches!(key.parameter().role, Role::DataSet | Role::Script))
    };
    let mut parameters = base.head.parameters;
    parameters.retain(|name, _| is_of_data(name) || name == Key::RunTime.name());
    let load = Load::Slob(SlobLoad::of(&parameters));
    base.head = RunHead::new(&request.tags, marks::name(&like, times), request.seed, load, [])?.like(times);
    Ok(SlobLikePlan {
        base,
        like,
        shapes,
        facts,
        schemas,
        sessions,
        lanes: request.lanes.unwrap_or(request.processors).clamp(1, sessions),
        warmup: request.warmup,
        cache_blocks: own_cache.0 as f64 / f64::from(data.block_bytes.max(1)),
        trials: 0,
    })
}

/// What is done in each moment, and the production with what is asked of it.
fn shapes(like: &Like, facts: &SlobFacts) -> (Like, Vec<SlobBlend>) {
    let busiest = marks::busiest(like).map(|moment| moment.name.clone());
    let mut like = like.clone();
    let mut shapes = Vec::with_capacity(like.moments.len());
    for mut moment in std::mem::take(&mut like.moments) {
        let of_moment = slob(&moment.work, facts);
        if Some(&moment.name) == busiest.as_ref() {
            like.aspects = of_moment.aspects;
        }
        // An hour in which nothing happens has no load.
        if !of_moment.shape.parts.is_empty() {
            moment.asked = of_moment.asked;
            like.moments.push(moment);
            shapes.push(of_moment.shape);
        }
    }
    (like, shapes)
}

/// A plan after a trial.
#[derive(Debug, Clone)]
pub struct Tried {
    /// The plan to go on with.
    pub plan: SlobLikePlan,
    /// Whether another trial would show nothing more.
    pub is_last: bool,
    /// What to say of it.
    pub note: String,
}

impl SlobLikePlan {
    /// Whether what a target makes of the load is not known before: what a server's caches answer, and how often hot blocks are written.
    pub fn needs_trial(&self, on: On) -> bool {
        let changes_hot_blocks = |part: &SlobPart| part.kind == OperationKind::Update && part.from_block == 0;
        match on {
            On::Simulation => false,
            On::Server => true,
            On::Engine => self.all_parts().parts.iter().any(changes_hot_blocks),
        }
    }

    /// The load by which a target shows what it makes of this one: the first step, for no longer than that takes.
    pub fn trial(&self, times: f64, on: On) -> Option<StepPlan<SlobBlend>> {
        let step = self.step(0, 0, times)?;
        let longest = if on == On::Server { SERVER_TRIAL } else { TRIAL };
        let (label, seed) = ("trial".to_owned(), !step.seed.wrapping_add(u64::from(self.trials)));
        Some(StepPlan { label, duration: Nanos(step.duration.0.div_ceil(2)).min(longest), seed, ..step })
    }

    /// The same plan after `step`, which was the trial; absent where it showed nothing. What the trial shows corrects the plan, unless it did
    /// what is asked for.
    pub fn after_trial(&self, step: &Step) -> Option<Tried> {
        let (shape, moment) = self.shapes.first().zip(self.like.moments.first())?;
        let scans = moment.asked.get(&WorkFigure::LargeReads).copied().unwrap_or(0.0);
        // Servers count what scans read in blocks.
        let scan_requests = Some(scans).filter(|_| self.facts.scans_past_cache);
        let observed = Observed::of(step, shape, scan_requests, self.facts.observed.as_ref())?;
        let trials = self.trials + 1;
        let time = Nanos(step.window.warmup_ns.saturating_add(step.window.duration_ns));
        let ran = match trials {
            1 => format!("a trial of {time} ran before the first step"),
            _ => format!("{trials} trials of {time} each ran before the first step"),
        };
        let verdict = judge(step, shape, moment, scan_requests.is_some());
        if verdict == Verdict::Met {
            let last = if trials == 1 { "it" } else { "the last one" };
            let note = format!("{ran}, and {last} reached the target");
            return Some(Tried { plan: Self { trials, ..self.clone() }, is_last: true, note });
        }
        let facts = SlobFacts { observed: Some(observed), ..self.facts };
        let (like, shapes) = shapes(&self.like, &facts);
        let is_last = verdict == Verdict::NotCarried || trials == MAX_TRIALS;
        let how = match verdict {
            Verdict::NotCarried => {
                "; the target did not do all that fell due there, so the rates are corrected in proportion"
            }
            _ if is_last => "; the rates are corrected by that once more, which was not tried",
            _ => "; the rates are corrected by that",
        };
        let note = format!("{ran}: {}{how}", observed.words());
        Some(Tried { plan: Self { like, shapes, facts, trials, ..self.clone() }, is_last, note })
    }

    /// The longest that trials take before the first step.
    pub fn trials_time(&self, times: f64, on: On) -> Nanos {
        let one = self.trial(times, on).map_or(0, |trial| trial.time().0);
        Nanos(one.saturating_mul(u64::from(MAX_TRIALS)))
    }

    /// Operations per second of a moment, once.
    pub fn per_s(&self, moment: usize) -> f64 {
        self.shapes.get(moment).map_or(0.0, SlobBlend::per_s)
    }

    /// All kinds of work of all moments.
    pub fn all_parts(&self) -> SlobBlend {
        SlobBlend { schemas: self.schemas, parts: self.shapes.iter().flat_map(|shape| shape.parts.clone()).collect() }
    }

    /// What it comes to, as far as it matters for room.
    pub fn load(&self) -> PlannedLoad {
        let has_updates = self.all_parts().parts.iter().any(|part| part.kind == OperationKind::Update);
        PlannedLoad { sessions: self.sessions, schemas: Some(self.schemas), has_updates }
    }

    /// Step number `index`: a moment at a multiple.
    pub fn step(&self, index: u32, moment: usize, times: f64) -> Option<StepPlan<SlobBlend>> {
        let (shape, of) = (self.shapes.get(moment)?, self.like.moments.get(moment)?);
        let base = self.base.steps.first()?;
        let usual = || base.warmup.max(self.to_fill(moment, times).min(LONGEST_WARMUP));
        let place = LikeStep {
            index,
            like: &self.like,
            moment: of,
            times,
            seed: self.base.head.seed,
            time: (self.warmup.unwrap_or_else(usual), base.duration),
            slots: (self.sessions, self.lanes),
        };
        Some(marks::step(place, shape.clone(), shape.per_s(), Some(self.schemas)))
    }

    /// Every moment at every multiple.
    pub fn steps(&self, times: &[f64]) -> Vec<StepPlan<SlobBlend>> {
        marks::all(self.shapes.len(), times, |index, moment, times| self.step(index, moment, times))
    }

    /// How long it takes until the cache is full of blocks of this load.
    fn to_fill(&self, moment: usize, times: f64) -> Nanos {
        let reads =
            self.like.moments.get(moment).and_then(|it| it.asked.get(&WorkFigure::Reads)).copied().unwrap_or(0.0);
        let seconds = TURNS * self.cache_blocks / (reads * times).max(f64::MIN_POSITIVE);
        Nanos((seconds.min(1e6) * 1e9).ceil() as u64)
    }

    /// What must be known of steps whose warm-up is too short for the cache.
    pub fn note_on_warmup(&self, steps: &[StepPlan<SlobBlend>], times: &[f64]) -> Option<String> {
        let has_writes = self.all_parts().parts.iter().any(|part| part.kind == OperationKind::Update);
        let lowest = times.iter().copied().fold(f64::INFINITY, f64::min);
        let longest = (0..self.shapes.len()).map(|moment| self.to_fill(moment, lowest)).max()?;
        let warmup = steps.iter().map(|step| step.warmup).min()?;
        (has_writes && warmup < longest).then(|| {
            format!(
                "the cache is full of this load's blocks after {longest}. Before that, fewer blocks are written and \
                 more are read than requested. The warm-up is {warmup}: use `--warmup {}` or a smaller `--cache`",
                longest.0.div_ceil(1_000_000_000)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::config::{Axes, Setting};
    use model::record::{LikeMoment, Work};
    use targets::database::{Commits, Filling};

    const DATA: DataFacts = DataFacts {
        schemas: 2,
        scale_blocks: 131_072,
        scan_blocks: 128,
        block_bytes: 8_192,
        filling: Filling::Incompressible,
        available_memory: None,
        caching: Caching::Asked,
        redo: None,
    };

    fn request(settings: &[(Key, &str)]) -> SlobPlanRequest {
        SlobPlanRequest {
            settings: settings.iter().map(|(key, value)| Setting::from_command_line(*key, *value)).collect(),
            schemas: None,
            axes: Axes::default(),
            cache: Bytes::mib(64),
            warmup: None,
            pace: Pace::Closed,
            commits: Commits::Wait,
            lanes: None,
            seed: 7,
            tags: vec!["disk=p30".parse().unwrap()],
            processors: 2,
        }
    }

    fn like(hours: &[(&str, f64)]) -> Like {
        let moment = |(name, reads): &(&str, f64)| LikeMoment {
            name: (*name).to_owned(),
            words: String::new(),
            work: [(WorkFigure::Reads, *reads), (WorkFigure::Writes, reads / 4.0), (WorkFigure::Commits, 10.0)].into(),
            asked: Work::new(),
        };
        Like {
            database: "PROD".to_owned(),
            runs: Vec::new(),
            at: if hours.len() > 1 { "day" } else { "peak" }.to_owned(),
            moments: hours.iter().map(moment).collect(),
            aspects: Vec::new(),
        }
    }

    #[test]
    fn a_step_is_called_by_its_multiple_and_warms_the_cache_up() {
        let request = request(&[(Key::RunTime, "20")]);
        let plan = plan(&request, &like(&[("peak", 1_000.0)]), &[1.0, 2.5], &DATA, On::Engine).unwrap();
        assert_eq!(plan.base.head.name, "p30_like-PROD_peak_x1-2.5");
        let steps = plan.steps(&[1.0, 2.5]);
        assert_eq!((steps[1].label.as_str(), steps[1].like.as_ref().map(|like| like.times)), ("x2.5", Some(2.5)));
        let once = plan.per_s(0);
        assert!((steps[1].load.rate_operations_per_s.unwrap() - 2.5 * once).abs() < 1e-9);
        // 8,192 blocks of cache are read anew in about ten seconds, at twice and a half the rate in four.
        assert_eq!(steps[0].warmup, Nanos(9_830_400_000));
        assert_eq!(steps[1].warmup, Nanos::seconds(4), "a fifth of the window");
        assert_eq!(plan.note_on_warmup(&steps[..1], &[1.0]), None);
        let short = SlobLikePlan { warmup: Some(Nanos::seconds(2)), ..plan.clone() };
        let note = short.note_on_warmup(&short.steps(&[1.0]), &[1.0]).unwrap();
        assert!(note.contains("`--warmup 10`"), "{note}");
        assert_eq!((plan.load().sessions, plan.load().has_updates), (1_024, true));
        assert!(!plan.base.head.parameters.contains_key("WORK_UNIT") && plan.base.head.parameters["RUN_TIME"] == "20");
    }

    #[test]
    fn a_day_is_a_step_an_hour_without_those_in_which_nothing_happens() {
        let mut day = like(&[("09", 500.0), ("10", 2_000.0), ("11", 0.0)]);
        day.moments[2].work = [(WorkFigure::Reads, 0.0)].into();
        let request = request(&[(Key::ThreadsPerSchema, "16")]);
        let plan = plan(&request, &day, &[1.0], &DATA, On::Server).unwrap();
        let steps = plan.steps(&[1.0]);
        assert_eq!(steps.iter().map(|step| step.label.as_str()).collect::<Vec<_>>(), ["h09_x1", "h10_x1"]);
        assert_eq!(
            (steps[1].like.as_ref().and_then(|like| like.moment.as_deref()), steps[1].load.sessions),
            (Some("10"), Some(32))
        );
        assert!(
            plan.base.head.parameters.contains_key("TIMES")
                && !steps[0].parameters(&plan.base.head.parameters).contains_key("TIMES")
        );
        assert!(plan.like.aspects[0].by.as_ref().unwrap().contains("reads/s of one block"), "{:?}", plan.like.aspects);
    }

    #[test]
    fn nothing_that_can_be_asked_for_is_an_error() {
        let mut like = like(&[("peak", 0.0)]);
        like.moments[0].work = [(WorkFigure::ActiveSessions, 3.0)].into();
        let error = plan(&request(&[]), &like, &[1.0], &DATA, On::Engine).unwrap_err();
        assert!(matches!(error, PlanError::NothingAlike { .. }) && error.hint().unwrap().contains("--at"));
    }
}
