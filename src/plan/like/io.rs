//! Raw storage like a production: reads of one block, large reads and writes, each at its rate and in its own size.

use super::split::split;
use super::words::{by, mean_size, not, partly, rate};
use crate::plan::check::SCAN_REQUEST;
use model::record::{Aspect, Work, WorkFigure};
use model::units::Bytes;
use model::workload::io::{Access, Distribution, IoKind, IoPart};

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
