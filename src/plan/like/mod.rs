//! From what a production did to a load that does the same: which parameters reproduce which figure, and which cannot be.
//!
//! Everything is computed once, for what production did; a step at a multiple asks for the same work at so many times its rate.
//! `slob` and `io` are the arithmetic, `run` makes steps of it.

mod aspects;
mod marks;
mod observed;
mod run;
mod slob;
#[cfg(test)]
mod slob_tests;

use crate::plan::check::{SCAN_REQUEST, blend};
use crate::plan::{PlanError, RunHead};
use load::StepPlan;
use marks::LikeStep;
use model::config::Tag;
use model::config::io::BlockSize;
use model::config::net::{MAX_MESSAGE_BYTES, MIN_MESSAGE_BYTES};
use model::record::{Aspect, IoMix, Like, Load, Work, WorkFigure};
use model::units::{Bytes, Nanos, group_thousands};
use model::workload::io::{Access, Distribution, IoBlend, IoKind, IoPart};

pub use run::{On, SlobLikePlan, Tried, plan};
pub use slob::{HOT_SET, SlobFacts, SlobLike, slob};

/// Reads of up to so many times a block are reads of one.
const ABOUT_A_BLOCK: f64 = 1.25;

/// Reads of one block per second, and bytes per second of large ones of [`SCAN_REQUEST`], that together are as many requests and as
/// many bytes as a database reads. Reads that are hardly larger than a block are all of one.
pub fn split(reads: Option<f64>, bytes: Option<f64>, block_bytes: u32) -> (Option<f64>, Option<f64>) {
    let (Some(all), Some(bytes)) = (reads, bytes) else { return (reads, None) };
    let (block, large) = (f64::from(block_bytes), SCAN_REQUEST.0 as f64);
    if bytes <= ABOUT_A_BLOCK * all * block || block >= large {
        return (reads, None);
    }
    let scans = ((bytes - all * block) / (large - block)).min(all);
    (Some(all - scans), Some((bytes - (all - scans) * block).round()))
}

/// A multiple as people write it.
pub fn times_text(times: f64) -> String {
    ((times * 100.0).round() / 100.0).to_string()
}

fn by(figure: WorkFigure, by: String) -> Aspect {
    Aspect { figure, by: Some(by), gap: None }
}

fn partly(figure: WorkFigure, by: String, gap: Option<String>) -> Aspect {
    Aspect { figure, by: Some(by), gap }
}

fn not(figure: WorkFigure, gap: impl Into<String>) -> Aspect {
    Aspect { figure, by: None, gap: Some(gap.into()) }
}

/// A rate in words.
fn rate(per_s: f64) -> String {
    if per_s < 9.95 && per_s.fract() != 0.0 { format!("{per_s:.2}") } else { group_thousands(per_s) }
}

/// Mean bytes of a request in words.
fn mean_size(bytes: f64, requests: f64) -> Bytes {
    Bytes((bytes / requests).round() as u64)
}

/// Redo writes that are like a production's, once.
#[derive(Debug, Clone, PartialEq)]
pub struct RedoLike {
    /// Writes per second.
    pub per_s: f64,
    /// Bytes of each.
    pub write_bytes: u32,
    /// The production, with what is asked for and what is not.
    pub like: Like,
}

/// The redo of a production's one moment.
///
/// # Errors
/// If it does not report its redo and the writes of its log.
pub fn redo(like: &Like) -> Result<RedoLike, PlanError> {
    let mut like = like.clone();
    let nothing = PlanError::NoRedoAlike { database: like.database.clone() };
    let Some(moment) = like.moments.first_mut() else { return Err(nothing) };
    let of = |figure: WorkFigure| moment.work.get(&figure).copied().filter(|value| *value > 0.0);
    let Some((bytes, per_s)) = of(WorkFigure::RedoBytes).zip(of(WorkFigure::RedoWrites)) else { return Err(nothing) };
    let write_bytes = message_bytes(bytes / per_s);
    let size = Bytes(u64::from(write_bytes));
    let known = || WorkFigure::ALL.into_iter().filter(|figure| moment.work.contains_key(figure));
    let aspects = known().map(|figure| match figure {
        WorkFigure::RedoWrites => by(figure, format!("{} redo writes/s, each sent and acknowledged", rate(per_s))),
        WorkFigure::RedoBytes => by(figure, format!("redo writes of {size} each, which is their mean")),
        WorkFigure::ClientBytes => not(
            figure,
            "answers to clients are another load: `--pattern sqlnet`, beside this one with `plimsoll beside`",
        ),
        WorkFigure::Commits => not(figure, "commits that share a redo write are one message"),
        _ => not(figure, "it is not a load of the network"),
    });
    like.aspects = aspects.collect();
    moment.asked = [(WorkFigure::RedoWrites, per_s), (WorkFigure::RedoBytes, per_s * f64::from(write_bytes))].into();
    Ok(RedoLike { per_s, write_bytes, like })
}

/// A size that a message can have.
pub fn message_bytes(bytes: f64) -> u32 {
    bytes.round().clamp(f64::from(MIN_MESSAGE_BYTES), f64::from(MAX_MESSAGE_BYTES)) as u32
}

/// What was asked for.
#[derive(Debug, Clone)]
pub struct IoRequest {
    /// The production.
    pub like: Like,
    /// Multiples of it.
    pub times: Vec<f64>,
    /// Length of a single-block request.
    pub block: BlockSize,
    /// Bytes of the volume that requests touch.
    pub region_bytes: u64,
    /// Length of each measured window.
    pub duration: Nanos,
    /// Load before each window.
    pub warmup: Nanos,
    /// Seed of every random choice.
    pub seed: u64,
    /// What the user calls the things that vary between runs.
    pub tags: Vec<Tag>,
    /// Processors that this process may use.
    pub processors: u32,
}

/// What will be done.
#[derive(Debug, Clone)]
pub struct IoLikePlan {
    /// What the run is before its first step.
    pub head: RunHead,
    /// Production, with what is asked for and what is not.
    pub like: Like,
    request: IoRequest,
    shapes: Vec<IoBlend>,
}

/// Plans requests like a production's.
///
/// # Errors
/// If nothing that is reported can be asked for, or the volume is too small.
pub fn plan_io(request: &IoRequest) -> Result<IoLikePlan, PlanError> {
    let mut like = request.like.clone();
    let busiest = marks::busiest(&like).map(|moment| moment.name.clone());
    let mut shapes = Vec::with_capacity(like.moments.len());
    let mut aspects = Vec::new();
    for mut moment in std::mem::take(&mut like.moments) {
        let of_moment = io(&moment.work, request.block.bytes(), request.region_bytes);
        if Some(&moment.name) == busiest.as_ref() {
            aspects = of_moment.aspects;
        }
        // An hour in which nothing happens has no load.
        if !of_moment.parts.is_empty() {
            shapes.push(blend(of_moment.parts, request.region_bytes, request.processors)?);
            moment.asked = of_moment.asked;
            like.moments.push(moment);
        }
    }
    like.aspects = aspects;
    if shapes.is_empty() {
        return Err(PlanError::NothingAlike { database: like.database });
    }
    let load = Load::IoMix(IoMix { block: request.block });
    let name = marks::name(&like, &request.times);
    Ok(IoLikePlan {
        head: RunHead::new(&request.tags, name, request.seed, load, [])?.like(&request.times),
        like,
        request: request.clone(),
        shapes,
    })
}

impl IoLikePlan {
    /// The longest request.
    pub fn largest_bytes(&self) -> u32 {
        self.shapes.iter().flat_map(|shape| &shape.parts).map(|part| part.block_bytes).max().unwrap_or(1)
    }

    /// Kinds of request of all steps.
    pub fn shapes(&self) -> &[IoBlend] {
        &self.shapes
    }

    /// Every moment at every multiple.
    pub fn steps(&self) -> Vec<StepPlan<IoBlend>> {
        marks::all(self.shapes.len(), &self.request.times, |index, moment, times| self.step(index, moment, times))
    }

    fn step(&self, index: u32, moment: usize, times: f64) -> Option<StepPlan<IoBlend>> {
        let (shape, of) = (self.shapes.get(moment)?, self.like.moments.get(moment)?);
        let per_s = shape.parts.iter().map(|part| part.per_s).sum();
        // What a multiple needs more threads for.
        let shape = blend(
            shape.parts.iter().map(|part| IoPart { per_s: part.per_s * times, ..*part }).collect(),
            self.request.region_bytes,
            self.request.processors,
        )
        .ok()?;
        let place = LikeStep {
            index,
            like: &self.like,
            moment: of,
            times,
            seed: self.request.seed,
            time: (self.request.warmup, self.request.duration),
            slots: (shape.slots, shape.streams),
        };
        Some(marks::step(place, shape, per_s, None))
    }
}

/// What is asked for counts as what production did if it is no further from it.
const SAME: f64 = 0.02;

/// Requests to raw storage that are like a moment of production, once.
#[derive(Debug, Clone, PartialEq)]
pub struct IoLike {
    /// The kinds of request; none where nothing that they need is reported.
    pub parts: Vec<IoPart>,
    /// What is asked for by that.
    pub asked: Work,
    /// What is reproduced, and what is not.
    pub aspects: Vec<Aspect>,
}

/// The requests that are like `work`, in blocks of `block_bytes`, on so many bytes of a volume.
pub fn io(work: &Work, block_bytes: u32, region_bytes: u64) -> IoLike {
    let of = |figure: WorkFigure| work.get(&figure).copied();
    let block = f64::from(block_bytes.max(1));
    // A whole number of blocks, one at least and no more than databases send.
    let size = |bytes: f64| (bytes / block).round().clamp(1.0, (SCAN_REQUEST.0 as f64 / block).max(1.0)) * block;
    let (reads, read_bytes) = (of(WorkFigure::Reads), of(WorkFigure::ReadBytes));
    let (single, large, large_size) = match (reads, of(WorkFigure::LargeReads), read_bytes) {
        (Some(reads), Some(large), Some(bytes)) if large > 0.0 => {
            (reads - large, large, size((bytes - (reads - large) * block) / large))
        }
        (reads, _, bytes) => {
            let (single, scan) = split(reads, bytes, block_bytes);
            let scan_size = size(SCAN_REQUEST.0 as f64);
            (single.unwrap_or(0.0), scan.map_or(0.0, |bytes| bytes / scan_size), scan_size)
        }
    };
    let writes = of(WorkFigure::Writes).unwrap_or(0.0);
    let write_size = match of(WorkFigure::WriteBytes) {
        Some(bytes) if writes > 0.0 => size(bytes / writes),
        _ => block,
    };
    let random = Access::Random(Distribution::Uniform);
    let part =
        |kind, per_s, bytes: f64, access| IoPart { kind, per_s, block_bytes: bytes as u32, region_bytes, access };
    let parts = [
        part(IoKind::Read, single, block, random),
        part(IoKind::LargeRead, large, large_size, Access::Sequential),
        part(IoKind::Write, writes, write_size, random),
    ];
    let parts = parts.into_iter().filter(|part| part.per_s > 0.0 && part.per_s.is_finite()).collect();
    let asked_of = |figure: WorkFigure| match figure {
        WorkFigure::Reads => Some(single + large),
        WorkFigure::LargeReads => Some(large),
        WorkFigure::ReadBytes => Some(single * block + large * large_size),
        WorkFigure::Writes => Some(writes),
        WorkFigure::WriteBytes => Some(writes * write_size),
        _ => None,
    };
    let known = || WorkFigure::ALL.into_iter().filter(|figure| work.contains_key(figure));
    let asked: Work = known().filter_map(|figure| Some((figure, asked_of(figure)?))).collect();
    let sizes = |bytes: f64| Bytes(bytes as u64);
    let far = |figure: WorkFigure| {
        let (asked, production) = (asked.get(&figure)?, of(figure)?);
        ((asked - production).abs() > SAME * production).then_some(production)
    };
    let aspect = |figure: WorkFigure| match figure {
        WorkFigure::Reads => {
            by(figure, format!("{} reads/s of {} at random, and the large ones", rate(single), sizes(block)))
        }
        WorkFigure::LargeReads if large > 0.0 => by(
            figure,
            format!(
                "{} reads/s of {}, one after the other: where they lie is not reported",
                rate(large),
                sizes(large_size)
            ),
        ),
        WorkFigure::LargeReads => by(figure, "none".to_owned()),
        WorkFigure::ReadBytes => {
            let gap = far(figure).zip(reads.filter(|reads| *reads > 0.0)).map(|(bytes, reads)| {
                format!(
                    "requests are whole blocks of {}, and production's are of {} on average",
                    sizes(block),
                    mean_size(bytes, reads)
                )
            });
            partly(figure, "the sizes of reads".to_owned(), gap)
        }
        WorkFigure::Writes => by(figure, format!("{} writes/s at random", rate(writes))),
        WorkFigure::WriteBytes => {
            let gap = far(figure).filter(|_| writes > 0.0).map(|bytes| {
                format!(
                    "requests are whole blocks of {}, and production's are of {} on average",
                    sizes(block),
                    mean_size(bytes, writes)
                )
            });
            partly(figure, format!("writes of {} each", sizes(write_size)), gap)
        }
        WorkFigure::Commits | WorkFigure::RedoBytes | WorkFigure::RedoWrites => {
            not(figure, "raw storage has no log; `plimsoll slob run --like` asks a database for it")
        }
        WorkFigure::LogicalReads => not(figure, "raw storage has no cache before it"),
        WorkFigure::ActiveSessions => {
            not(figure, "requests are due at their rate; how many are under way follows from latency")
        }
        WorkFigure::ClientBytes => not(figure, "`plimsoll net run --like` asks a network for it"),
    };
    let aspects = known().map(aspect).collect();
    IoLike { parts, asked, aspects }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::{LikeMoment, Work};

    #[test]
    fn reads_and_their_bytes_are_split_into_single_blocks_and_a_scan() {
        assert_eq!(split(Some(8_000.0), None, 8_192), (Some(8_000.0), None), "sizes are not known");
        assert_eq!(split(Some(1_000.0), Some(8.3e6), 8_192), (Some(1_000.0), None), "single blocks");
        let (reads, scan) = split(Some(8_047.0), Some(525e6), 8_192);
        let (reads, scan) = (reads.unwrap(), scan.unwrap());
        assert!((reads * 8_192.0 + scan - 525e6).abs() < 1.0, "{reads} reads/s, {scan} B/s");
        assert!((reads + scan / 1_048_576.0 - 8_047.0).abs() < 0.01);
        let (reads, scan) = split(Some(100.0), Some(400e6), 8_192);
        assert_eq!((reads, scan), (Some(0.0), Some(400e6)), "larger requests than those of a scan");
    }

    #[test]
    fn a_multiple_has_no_digits_that_nobody_needs() {
        assert_eq!([2.0, 2.6, 1.0 / 3.0].map(times_text), ["2", "2.6", "0.33"]);
    }

    fn like(work: Work) -> Like {
        let moment = LikeMoment { name: "peak".to_owned(), words: String::new(), work, asked: Work::new() };
        Like {
            database: "PROD".to_owned(),
            runs: Vec::new(),
            at: "peak".to_owned(),
            moments: vec![moment],
            aspects: Vec::new(),
        }
    }

    #[test]
    fn redo_goes_out_in_writes_of_its_mean_size() {
        let work = [(WorkFigure::RedoBytes, 2e6), (WorkFigure::RedoWrites, 400.0), (WorkFigure::Reads, 9.0)].into();
        let redo = redo(&like(work)).unwrap();
        assert_eq!((redo.per_s, redo.write_bytes), (400.0, 5_000));
        assert_eq!(redo.like.moments[0].asked[&WorkFigure::RedoBytes], 2e6);
        assert!(redo.like.aspects[0].by.is_none() && redo.like.aspects[2].by.is_some(), "{:?}", redo.like.aspects);
    }

    #[test]
    fn without_redo_there_is_nothing_to_send() {
        let error = redo(&like([(WorkFigure::RedoBytes, 2e6)].into())).unwrap_err();
        assert!(error.to_string().contains("PROD"), "{error}");
    }
}

#[cfg(test)]
mod io_tests {
    use super::*;

    #[test]
    fn each_kind_of_request_has_its_rate_and_its_size() {
        let work: Work = [
            (WorkFigure::Reads, 2_000.0),
            (WorkFigure::LargeReads, 400.0),
            (WorkFigure::ReadBytes, 1_600.0 * 8_192.0 + 400.0 * 262_144.0),
            (WorkFigure::Writes, 500.0),
            (WorkFigure::WriteBytes, 500.0 * 12_000.0),
            (WorkFigure::Commits, 10.0),
        ]
        .into();
        let like = io(&work, 8_192, 1 << 30);
        let sizes: Vec<_> = like.parts.iter().map(|part| (part.kind, part.per_s, part.block_bytes)).collect();
        assert_eq!(
            sizes,
            [(IoKind::Read, 1_600.0, 8_192), (IoKind::LargeRead, 400.0, 262_144), (IoKind::Write, 500.0, 8_192)]
        );
        assert_eq!(
            (like.asked[&WorkFigure::Reads], like.asked[&WorkFigure::ReadBytes]),
            (2_000.0, work[&WorkFigure::ReadBytes])
        );
        let gap = |figure| like.aspects.iter().find(|aspect| aspect.figure == figure).unwrap().gap.clone();
        assert!(
            gap(WorkFigure::WriteBytes).unwrap().contains("of 11.7 KiB on average"),
            "{:?}",
            gap(WorkFigure::WriteBytes)
        );
        assert!(gap(WorkFigure::Commits).unwrap().contains("no log") && gap(WorkFigure::ReadBytes).is_none());
        assert!(!like.asked.contains_key(&WorkFigure::Commits));
    }

    #[test]
    fn without_their_number_large_reads_follow_from_the_bytes() {
        let work: Work = [(WorkFigure::Reads, 8_047.0), (WorkFigure::ReadBytes, 525e6)].into();
        let like = io(&work, 8_192, 1 << 30);
        assert_eq!(like.parts[1].block_bytes, 1 << 20);
        assert!(
            (like.asked[&WorkFigure::Reads] - 8_047.0).abs() < 0.01
                && (like.asked[&WorkFigure::ReadBytes] - 525e6).abs() < 1.0
        );
        assert_eq!(io(&Work::new(), 8_192, 1 << 30).parts, []);
        let odd =
            io(&[(WorkFigure::Reads, 1.0), (WorkFigure::LargeReads, 1.0), (WorkFigure::ReadBytes, 1.0)].into(), 0, 0);
        assert!(odd.parts.iter().all(|part| part.block_bytes >= 1), "{odd:?}");
    }
}
