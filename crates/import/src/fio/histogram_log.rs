//! fio's logs of histograms (`--write_hist_log` with `--log_hist_msec`): a line for each direction each time, with what was counted
//! since the line before.

use super::assemble::LAYER;
use super::latency;
use crate::draft::{reported_figure, step};
use crate::interval;
use crate::{Draft, ImportError, Notes, Source};
use model::record::Workload;
use model::record::{Histogram, OperationStats, ReportedBucket, Step};

/// What stands before the counts: time, direction, block size.
const BEFORE: usize = 3;
const MS: u64 = 1_000_000;
/// Intervals of one log: two days of one each second.
const MAX_INTERVALS: usize = 200_000;
const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];
/// How files of such logs end.
const ENDINGS: [&str; 2] = ["_clat_hist", "_hist"];

/// Whether its first line has a time, a direction, a size, and as many counts as fio writes.
pub fn recognises(head: &str) -> bool {
    let Some(line) = head.lines().find(|line| !line.trim().is_empty()) else { return false };
    let is_count = |cell: &str| !cell.trim().is_empty() && cell.trim().bytes().all(|byte| byte.is_ascii_digit());
    line.split(',').all(is_count) && latency::columns_of_log(line.split(',').count().saturating_sub(BEFORE)).is_some()
}

/// One line.
struct Row {
    at_ms: u64,
    direction: usize,
    block_bytes: u64,
    counts: Vec<u64>,
}

fn row(line: &str, columns: usize) -> Option<Row> {
    let mut cells = line.split(',').map(|cell| cell.trim().parse::<u64>().ok());
    let (at_ms, direction, block_bytes) = (cells.next()??, cells.next()??, cells.next()??);
    let direction = usize::try_from(direction).ok().filter(|direction| *direction < DIRECTIONS.len())?;
    let counts: Vec<u64> = cells.collect::<Option<_>>()?;
    (counts.len() == columns).then_some(Row { at_ms, direction, block_bytes, counts })
}

/// The run in it: a job's requests.
pub fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let first = source.lines().find(|(_, line)| !line.trim().is_empty()).map_or("", |(_, line)| line);
    let columns = first.split(',').count().saturating_sub(BEFORE);
    let Some(edges) = latency::columns_of_log(columns) else {
        return Err(ImportError::no_result(source, "it has not as many columns as a log of fio's histograms"));
    };
    let histogram_of = |counts: &[u64]| {
        let buckets = edges.iter().zip(counts).filter(|(_, count)| **count > 0);
        let buckets =
            buckets.map(|((from_ns, to_ns), count)| ReportedBucket { from_ns: *from_ns, to_ns: *to_ns, count: *count });
        Histogram::reported(buckets, None, None, None)
    };
    let mut step = step(0, "all", 0);
    let mut sums: [Vec<u64>; DIRECTIONS.len()] = Default::default();
    let mut block_bytes = Vec::new();
    let mut seen = [false; DIRECTIONS.len()];
    for (number, line) in source.lines().filter(|(_, line)| !line.trim().is_empty()) {
        let Some(row) = row(line, columns) else {
            notes.not_understood(number, format!("a time, a direction, a size and {columns} counts were expected"));
            continue;
        };
        let ended_ns = row.at_ms.saturating_mul(MS);
        let began_ns = step.window.duration_ns;
        // Lines of one time may be a millisecond apart.
        if step.intervals.is_empty() || seen.get(row.direction).copied().unwrap_or(false) {
            if ended_ns < began_ns {
                return Err(ImportError::damaged(source, number, "its time is before that of the line before"));
            }
            if step.intervals.len() == MAX_INTERVALS {
                let what = format!("it has more than {MAX_INTERVALS} intervals");
                return Err(ImportError::damaged(source, number, what));
            }
            step.intervals.push(interval::of(&step, began_ns, ended_ns - began_ns));
            step.window.duration_ns = ended_ns;
            seen = Default::default();
        }
        if let (Some(seen), Some(sum)) = (seen.get_mut(row.direction), sums.get_mut(row.direction)) {
            *seen = true;
            sum.resize(columns, 0);
            sum.iter_mut().zip(&row.counts).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
        }
        if !block_bytes.contains(&row.block_bytes) && block_bytes.len() < 2 {
            block_bytes.push(row.block_bytes);
        }
        if let Some(interval) = step.intervals.last_mut() {
            let histogram = histogram_of(&row.counts);
            let count = histogram.count();
            interval.response.merge(&histogram);
            interval.reported.insert(format!("{} requests", DIRECTIONS[row.direction]), count as f64);
            let counters = &mut interval.counters;
            counters.operations = Some(counters.operations.unwrap_or(0).saturating_add(count));
            match row.direction {
                0 => counters.physical_reads = Some(count),
                1 => counters.physical_writes = Some(count),
                _ => {}
            }
        }
    }
    for (kind, sum) in DIRECTIONS.iter().zip(&sums) {
        add(&mut step, kind, histogram_of(sum));
    }
    if step.operations.is_empty() {
        return Err(ImportError::no_result(source, "it is a log of fio's histograms that counted nothing"));
    }
    let (title, job) = named(source.path());
    let mut draft = Draft::new(Workload::Io, "fio", title);
    draft.parameters.extend(job.map(|job| ("job".to_owned(), job.to_owned())));
    if let [block_bytes] = block_bytes[..] {
        draft.target.block_bytes = Some(block_bytes);
    }
    draft.notes.push("These are completion latencies, without the time that submission takes.".to_owned());
    draft.notes.push(
        "fio logs no histogram of the time after its last line, so a run goes on for up to one interval more."
            .to_owned(),
    );
    draft.steps.push(step);
    Ok(vec![draft])
}

/// Adds what was counted of one direction.
fn add(step: &mut Step, kind: &str, response: Histogram) {
    let count = response.count();
    if count == 0 {
        return;
    }
    step.reported.push(reported_figure(LAYER, format!("{kind} requests"), "", count as f64));
    let counters = &mut step.counters;
    counters.operations = Some(counters.operations.unwrap_or(0).saturating_add(count));
    match kind {
        "read" => counters.physical_reads = Some(count),
        "write" => counters.physical_writes = Some(count),
        _ => {}
    }
    let (kind, service) = (kind.to_owned(), response.clone());
    step.operations.push(OperationStats {
        kind,
        count,
        errors: 0,
        block_touches: 0,
        service,
        response,
        transactions: None,
    });
}

/// What fio was asked to call the log, and the number of the job: `randread_clat_hist.2.log` is `randread` and `2`.
fn named(path: &str) -> (&str, Option<&str>) {
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = ["gz", "log"]
        .iter()
        .fold(name, |name, ending| name.strip_suffix(ending).and_then(|name| name.strip_suffix('.')).unwrap_or(name));
    let (name, job) = match name.rsplit_once('.') {
        Some((rest, job)) if !job.is_empty() && job.bytes().all(|byte| byte.is_ascii_digit()) => (rest, Some(job)),
        _ => (name, None),
    };
    (ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name), job)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::specimens::{damaged, only, source, survives};
    use crate::{read as read_any, recognise};

    /// A line with these counts by column.
    fn line(at_ms: u64, direction: u64, counts: &[(usize, u64)], columns: usize) -> String {
        let mut cells = vec![0; columns];
        counts.iter().for_each(|(at, count)| cells[*at] = *count);
        let cells: Vec<String> = cells.iter().map(u64::to_string).collect();
        format!("{at_ms}, {direction}, 4096, {}\n", cells.join(", "))
    }

    #[test]
    fn lines_are_intervals_and_directions_operations() {
        let text = line(1_003, 0, &[(130, 7)], 1_856)
            + &line(1_004, 1, &[(127, 1)], 1_856)
            + &line(2_003, 0, &[(130, 2), (1_855, 1)], 1_856);
        let draft = only("fio-hist-log", &text);
        let step = &draft.steps[0];
        assert_eq!(
            (step.window.duration_ns, step.intervals.len(), draft.target.block_bytes),
            (2_003 * MS, 2, Some(4_096))
        );
        assert_eq!(
            (step.counters.operations, step.counters.physical_reads, step.counters.physical_writes),
            (Some(11), Some(10), Some(1))
        );
        let reads = &step.operations[0];
        assert_eq!((reads.kind.as_str(), reads.response.quantiles_ns(&[0.9, 1.0])), ("read", vec![Some(134), None]));
        assert_eq!(step.intervals[0].response.below_ns(128), (1, 1));
        assert_eq!((step.intervals[1].offset_ns, step.intervals[1].duration_ns), (1_003 * MS, 1_000 * MS));
        assert_eq!(step.intervals[1].counters.physical_reads, Some(3));
    }

    #[test]
    fn other_logs_of_fio_and_other_tables_are_not_taken_for_one() {
        assert!(recognise("1003, 4096, 0, 4096\n").is_none());
        assert!(recognise(&line(1, 0, &[(1, 1)], 1_855)).is_none());
        assert!(recognise(&line(1, 0, &[(1, 1)], 232).replace("4096", "4.1")).is_none());
    }

    #[test]
    fn cut_lines_are_noted_and_times_that_go_back_are_damage() {
        let (first, second) = (line(500, 0, &[(3, 1)], 29), line(1_000, 0, &[(3, 1)], 29));
        let (_, drafts, notes) = read_any(&source(&format!("{first}{}", &second[..40]))).unwrap();
        assert_eq!((drafts[0].steps[0].counters.operations, notes.into_list().len()), (Some(1), 1));
        assert!(
            read_any(&source(&(second + &first))).unwrap_err().to_string().contains("before that of the line before")
        );
        assert!(read_any(&source(&line(500, 0, &[], 29))).unwrap_err().to_string().contains("counted nothing"));
    }

    #[test]
    fn names_of_logs_are_those_of_runs() {
        let names = ["/a/randread_clat_hist.2.log", "x_clat_hist.1.log.gz", "my.log", "hist"].map(named);
        assert_eq!(names, [("randread", Some("2")), ("x", Some("1")), ("my", None), ("hist", None)]);
    }

    static SPECIMEN: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        line(500, 0, &[(3, 1), (20, 9)], 29) + &line(500, 1, &[(28, 4)], 29) + &line(1_000, 0, &[(7, 2)], 29)
    });

    proptest! {
        #[test]
        fn damaged_files_give_runs_or_errors(file in damaged(&[SPECIMEN.as_str()])) {
            survives(file);
        }
    }
}
