//! The plan of a run with SLOB's load: every step decided and checked before the first one starts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::caches::{self, Data, cache_of_engine};
use super::{Numbers, PlanError, RunHead, run_name, step_label, steps};
use load::{Pace, StepPlan};
use model::config::{Axes, Key, Origin, Setting, SlobParameters, Tag};
use model::record::{Level, Load, SlobLoad};
use model::units::{Bytes, Nanos};
use model::workload::SlobShape;
use targets::database::{Caching, Commits, DataFacts, Filling, PlannedLoad};

/// What was asked for.
#[derive(Debug, Clone)]
pub struct SlobPlanRequest {
    /// Parameters in rising order of precedence.
    pub settings: Vec<Setting>,
    /// Schemas to load; default: all that are set up.
    pub schemas: Option<u32>,
    /// What varies from step to step.
    pub axes: Axes,
    /// Size of the buffer cache.
    pub cache: Bytes,
    /// Load before each measured window; see [`SlobPlanRequest::default_warmup`].
    pub warmup: Option<Nanos>,
    /// How operations follow each other.
    pub pace: Pace,
    /// How updates are committed where that is asked for.
    pub commits: Commits,
    /// Threads that drive sessions; by default one for each processor, and never more than sessions.
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
pub struct RunPlan {
    /// What the run is before its first step.
    pub head: RunHead,
    /// The steps in the order in which they run.
    pub steps: Vec<StepPlan<SlobShape>>,
    /// Size of the buffer cache.
    pub cache: Bytes,
    /// Program to call around the run, and where its name came from.
    pub script: Option<(PathBuf, Origin)>,
    /// Whether nobody said how long a window is.
    pub has_usual_time: bool,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// Facts about a target without data, where everything is as large as it is asked to be.
///
/// # Errors
/// If the parameters are not in order.
pub fn facts_as_asked(request: &SlobPlanRequest) -> Result<DataFacts, PlanError> {
    const BLOCK_BYTES: u32 = 8 << 10;
    let parameters = SlobParameters::from_settings(&request.settings)?;
    Ok(DataFacts {
        schemas: request.schemas.unwrap_or(1),
        scale_blocks: parameters.scale.blocks(u64::from(BLOCK_BYTES)).max(1),
        scan_blocks: parameters.scan_table.blocks(u64::from(BLOCK_BYTES)),
        block_bytes: BLOCK_BYTES,
        filling: Filling::Incompressible,
        available_memory: None,
        caching: Caching::Unknown,
        redo: None,
    })
}

impl SlobPlanRequest {
    /// A fifth of the measured window, 10 s at most.
    pub fn default_warmup(window: Nanos) -> Nanos {
        Nanos(window.0 / 5).min(Nanos::seconds(10))
    }
}

impl RunPlan {
    /// Sessions of the largest step.
    pub fn max_sessions(&self) -> u32 {
        self.steps.iter().map(|step| step.load.slots()).max().unwrap_or(0)
    }

    /// What it comes to, as far as it matters for room.
    pub fn load(&self) -> PlannedLoad {
        PlannedLoad {
            sessions: self.max_sessions(),
            schemas: self.steps.iter().filter_map(|step| step.load.schemas).max(),
            has_updates: self.steps.iter().any(|step| step.shape.update_pct > 0),
        }
    }

    /// How long load will run, warm-up included, if nothing ends it before.
    pub fn duration(&self) -> Nanos {
        Nanos(self.steps.iter().map(|step| step.time().0).fold(0, u64::saturating_add))
    }
}

/// Plans a run on the data that `data` describes.
///
/// # Errors
/// The first thing that cannot be done, in whichever step it is.
pub fn plan(request: &SlobPlanRequest, data: &DataFacts) -> Result<RunPlan, PlanError> {
    let schemas = request.schemas.unwrap_or(data.schemas);
    if schemas > data.schemas {
        return Err(PlanError::TooManySchemas { asked: schemas, set_up: data.schemas });
    }
    let points: Vec<Point> = request
        .axes
        .points()
        .into_iter()
        .map(|varied| {
            let parameters = in_force(request, &varied, data)?;
            let level = Level::Slob(SlobLoad::of(&parameters.to_map()));
            Ok(Point { level, parameters, varied })
        })
        .collect::<Result<_, PlanError>>()?;
    check_memory(request, &points, schemas, data)?;
    let mut head = RunHead::new(
        &request.tags,
        [],
        request.seed,
        Load::Slob(SlobLoad::default()),
        points.iter().map(|point| &point.level),
    )?;
    head.load = Load::Slob(SlobLoad::of(&head.parameters));
    let mut numbers = Vec::with_capacity(points.len());
    let mut plans = Vec::with_capacity(points.len());
    let mut notes = Vec::new();
    for (index, point) in (0..).zip(&points) {
        let step = Numbers {
            schemas,
            threads: point.parameters.threads_per_schema,
            work_unit: point.parameters.work_unit,
            rate_per_s: request.pace.rate_per_s(),
            is_unwaited: request.commits == Commits::Slob && point.parameters.update_pct > 0,
        };
        let mut own = point.level.parameters();
        own.retain(|name, _| !head.parameters.contains_key(name));
        plans.push(StepPlan {
            label: step_label(&step, &point.varied_in_label()),
            level: (!own.is_empty()).then(|| Level::Slob(SlobLoad::of(&own))),
            ..steps::step(request, &point.parameters, schemas, index)?
        });
        numbers.push(step);
        for note in point.parameters.notes() {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    notes.extend(notes_on_data(&points, data));
    notes.extend(note_on_cache(request, &points, schemas, data));
    let script = points.first().and_then(|point| {
        let path = point.parameters.external_script.clone()?;
        Some((path, point.parameters.origin(Key::ExternalScript)))
    });
    Ok(RunPlan {
        head: RunHead { name: run_name(&request.tags, &numbers), ..head },
        steps: plans,
        cache: request.cache,
        script,
        has_usual_time: points.iter().all(|point| !point.parameters.was_set(Key::RunTime)),
        notes,
    })
}

/// Memory of the program besides its cache, and for each session: the most that the engine may take.
const OWN_MEMORY: Bytes = Bytes::mib(64);
const SESSION_MEMORY: Bytes = Bytes::kib(32);

/// Refuses a cache that the kernel would have to kill somebody for.
fn check_memory(request: &SlobPlanRequest, points: &[Point], schemas: u32, data: &DataFacts) -> Result<(), PlanError> {
    let Some(available) = data.available_memory else { return Ok(()) };
    let mut sessions = 0;
    for point in points {
        sessions = sessions.max(point.parameters.sessions(schemas)?);
    }
    let own = OWN_MEMORY.0 + SESSION_MEMORY.0 * u64::from(sessions);
    let needed = Bytes(request.cache.0.saturating_add(own));
    if needed > available {
        return Err(PlanError::CacheTooLarge { cache: request.cache, sessions, needed, available });
    }
    Ok(())
}

/// One step's parameters.
struct Point {
    varied: Vec<Setting>,
    parameters: SlobParameters,
    level: Level,
}

impl Point {
    /// Threads have a place of their own in every label.
    fn varied_in_label(&self) -> Vec<(Key, &str)> {
        let shown = self.varied.iter().filter(|setting| setting.key != Key::ThreadsPerSchema);
        shown.map(|setting| (setting.key, setting.value.as_str())).collect()
    }
}

/// The parameters of one step, with those of the data set as it was set up.
fn in_force(request: &SlobPlanRequest, varied: &[Setting], data: &DataFacts) -> Result<SlobParameters, PlanError> {
    let mut settings = [request.settings.as_slice(), varied].concat();
    let asked = SlobParameters::from_settings(&settings)?;
    let block_bytes = u64::from(data.block_bytes);
    if asked.scan_pct > 0 && data.scan_blocks == 0 {
        return Err(PlanError::NoScanTable { scan_pct: asked.scan_pct, origin: asked.origin(Key::ScanPct) });
    }
    let scale_blocks = if asked.was_set(Key::Scale) {
        let (blocks, origin) = (asked.scale.blocks(block_bytes), asked.origin(Key::Scale));
        let value = || asked.to_map().remove(Key::Scale.name()).unwrap_or_default();
        if blocks == 0 {
            return Err(PlanError::EmptyScale { value: value(), origin, block_bytes });
        }
        if blocks > data.scale_blocks {
            return Err(PlanError::ScaleTooLarge { value: value(), origin, asked: blocks, set_up: data.scale_blocks });
        }
        blocks
    } else {
        data.scale_blocks
    };
    let as_set_up = |key, value: String| Setting { key, value, origin: asked.origin(key) };
    settings.extend([
        as_set_up(Key::Scale, size_text(scale_blocks, block_bytes)),
        as_set_up(Key::ScanTableSz, size_text(data.scan_blocks, block_bytes)),
        as_set_up(Key::BlockSz, size_text(1, block_bytes)),
        as_set_up(Key::ObfuscateColumns, filling_text(data.filling).to_owned()),
    ]);
    let parameters = SlobParameters::from_settings(&settings)?;
    parameters.check_against(scale_blocks, block_bytes)?;
    Ok(parameters)
}

/// A number of blocks as a parameter that reads back to it: `1G` rather than 131072 blocks.
pub(super) fn size_text(blocks: u64, block_bytes: u64) -> String {
    let kib = (blocks * block_bytes) >> 10;
    let unit = [("G", 20), ("M", 10), ("K", 0)].into_iter().find(|(_, shift)| kib.trailing_zeros() >= *shift);
    match unit {
        Some((suffix, shift)) if blocks > 0 => format!("{}{suffix}", kib >> shift),
        _ => "0".to_owned(),
    }
}

/// The value of `OBFUSCATE_COLUMNS` that gives this filling.
fn filling_text(filling: Filling) -> &'static str {
    match filling {
        Filling::Incompressible => "TRUE",
        Filling::Compressible => "FALSE",
    }
}

/// What the user may have meant to change, but the data set has decided.
fn notes_on_data(points: &[Point], data: &DataFacts) -> Option<String> {
    let scale_blocks = points.first()?.parameters.scale.blocks(u64::from(data.block_bytes));
    (scale_blocks < data.scale_blocks).then(|| {
        format!(
            "SCALE is smaller than the data set: operations use the first {scale_blocks} of its {} blocks in each \
             schema",
            data.scale_blocks
        )
    })
}

/// Whether a cache will answer what is meant for storage.
fn note_on_cache(request: &SlobPlanRequest, points: &[Point], schemas: u32, facts: &DataFacts) -> Option<String> {
    let cache = match &facts.caching {
        Caching::Asked => cache_of_engine(request.cache),
        Caching::There(cache) => cache.clone(),
        Caching::Unknown => return None,
    };
    let parameters = &points.first()?.parameters;
    let block_bytes = facts.block_bytes;
    let data = Data { schemas, scale_blocks: parameters.scale.blocks(u64::from(block_bytes)), block_bytes };
    caches::note(data, &cache, (!parameters.was_set(Key::RunTime)).then_some(parameters.run_time))
}

/// Tags by their keys.
///
/// # Errors
/// If a key is given twice.
pub fn tags_by_key(tags: &[Tag]) -> Result<BTreeMap<String, String>, PlanError> {
    let mut by_key = BTreeMap::new();
    for tag in tags {
        if by_key.insert(tag.key.clone(), tag.value.clone()).is_some() {
            return Err(PlanError::TagTwice { key: tag.key.clone() });
        }
    }
    Ok(by_key)
}
