use std::fs;

use proptest::prelude::*;

use super::latency::Latency;
use super::*;
use model::config::orion::{ArrayCache, ArrayLayout, LargePattern, Matrix, OrionOptions, OrionVerbosity, RunType};
use model::record::{Histogram, Level, Load, LunFacts, OperationStats, OrionLevel, OrionLoad, Outcome, Step, sample};
use model::units::{Bytes, Nanos};

const SECONDS: u64 = 100;

/// Requests of one kind that took `us` microseconds each.
struct Requests {
    kind: &'static str,
    count: u64,
    us: u64,
}

fn requests(kind: &'static str, count: u64, us: u64) -> Requests {
    Requests { kind, count, us }
}

fn step(index: u32, small: u32, large: u32, requests: &[Requests]) -> Step {
    let level = sample::Level { sessions: 1, operations_per_s: 1, read_ns: 1, seconds: SECONDS, update_pct: 0 };
    let mut step = sample::step(index, level);
    step.level = Some(Level::Orion(OrionLevel { small, large }));
    step.operations = requests
        .iter()
        .map(|Requests { kind, count, us }| {
            let mut times = Histogram::default();
            times.record_n(us * 1_000, *count);
            OperationStats {
                kind: (*kind).to_owned(),
                count: *count,
                errors: 0,
                block_touches: *count,
                service: times.clone(),
                response: times,
                transactions: None,
                failed: Default::default(),
            }
        })
        .collect();
    step
}

fn run(change: impl FnOnce(&mut OrionLoad), steps: Vec<Step>) -> Run {
    let mut load = OrionLoad {
        options: OrionOptions {
            run: RunType::Simple,
            testname: "lists/san".to_owned(),
            num_disks: None,
            size_small: Bytes::kib(8),
            size_large: Bytes::mib(1),
            pattern: LargePattern::Random,
            write_pct: 0,
            layout: ArrayLayout::Concat,
            cache: ArrayCache::NotEntered,
            duration: Nanos::seconds(60),
            verbosity: OrionVerbosity::Usual,
            notes: Vec::new(),
        },
        num_disks: 1,
        small_loads: vec![0, 1, 2, 3, 4, 5],
        large_loads: vec![0, 1, 2],
        data_points: 8,
    };
    change(&mut load);
    let mut run = sample::run(&[]);
    run.load = Load::Orion(load);
    run.command = ["plimsoll", "io", "orion", "-run", "simple"].map(str::to_owned).to_vec();
    run.target.facts.files.luns = [("/dev/sdb", 479_559_942_144), ("/data/with blank", 1_048_576)]
        .map(|(path, bytes)| LunFacts { path: path.to_owned(), bytes })
        .into();
    run.steps = steps;
    run
}

/// The first 11.1 specimen of the three matrices, of which the latencies were in milliseconds.
fn eleven_one() -> Run {
    let small = [(2302, 430), (4398, 450), (5450, 550), (6006, 670), (6210, 800)];
    let mut steps: Vec<Step> = (1..)
        .zip(small)
        .map(|(load, (rate, us))| step(load, load, 0, &[requests("read", rate * SECONDS, us)]))
        .collect();
    steps.push(step(6, 0, 1, &[requests("large read", 27_158, 3_700)]));
    steps.push(step(7, 0, 2, &[requests("large read", 37_426, 5_300)]));
    run(|_| (), steps)
}

fn text_of(run: &Run, suffix: &str) -> String {
    texts(run).unwrap().into_iter().find(|(name, _)| *name == suffix).unwrap().1
}

#[test]
fn the_matrices_are_orions_to_the_byte() {
    let run = eleven_one();
    let iops = "Large/Small,      1,      2,      3,      4,      5\n          \
                0,   2302,   4398,   5450,   6006,   6210\n          1\n          2\n";
    let mbps = "Large/Small,      0,      1,      2,      3,      4,      5\n          \
                1, 271.58\n          2, 374.26\n";
    let lat = "Large/Small,      1,      2,      3,      4,      5\n          \
               0, 430.00, 450.00, 550.00, 670.00, 800.00\n          1\n          2\n";
    assert_eq!(text_of(&run, "_iops.csv"), iops);
    assert_eq!(text_of(&run, "_mbps.csv"), mbps);
    assert_eq!(text_of(&run, "_lat.csv"), lat);
    // The sizes that a listing of ORION's own directory shows.
    assert_eq!((iops.len(), mbps.len(), lat.len()), (128, 100, 128));
}

#[test]
fn a_cell_between_others_stays_in_its_column() {
    let run = run(
        |load| load.options.run = RunType::Normal,
        vec![
            step(0, 1, 1, &[requests("read", 12 * SECONDS, 9), requests("large read", SECONDS, 9)]),
            step(1, 3, 1, &[requests("read", 34 * SECONDS, 9), requests("large read", SECONDS, 9)]),
        ],
    );
    assert!(text_of(&run, "_iops.csv").contains("\n          1,     12,       ,     34\n"));
    assert!(text_of(&run, "_mbps.csv").contains("\n          1,       ,   1.00,       ,   1.00\n"));
}

#[test]
fn a_point_that_was_cut_short_has_an_empty_cell() {
    let mut run = eleven_one();
    run.steps[1].outcome = Outcome::Interrupted;
    let iops = text_of(&run, "_iops.csv");
    assert!(iops.contains("0,   2302,       ,   5450,   6006,   6210\n"), "{iops}");
}

#[test]
fn a_point_without_a_request_is_reported_as_zero_and_has_no_latency() {
    let run = run(|_| (), vec![step(0, 1, 0, &[])]);
    assert!(text_of(&run, "_iops.csv").contains("\n          0,      0\n"));
    assert!(text_of(&run, "_lat.csv").contains("\n          0\n"));
    assert!(!text_of(&run, "_summary.txt").contains("Latency"));
    assert!(text_of(&run, "_hist.csv").contains("        0 - 268435456  us:               0 (  0.00%)"));
}

#[test]
fn requests_that_failed_count_in_no_rate() {
    let mut run = eleven_one();
    run.steps[0].operations[0].errors = 302 * SECONDS;
    assert!(text_of(&run, "_iops.csv").contains("0,   2000,   4398"));
}

#[test]
fn a_summary_of_random_reads() {
    insta::assert_snapshot!(text_of(&eleven_one(), "_summary.txt"));
}

#[test]
fn a_summary_and_histograms_of_mixed_streams_with_writes() {
    let mixed = [
        requests("read", 900, 97),
        requests("write", 100, 1_300),
        requests("large read", 450, 9_000),
        requests("large write", 50, 70_000_000),
    ];
    let run = run(
        |load| {
            load.options.run = RunType::Advanced(Matrix::Point { small: 3, large: 2 });
            load.options.pattern = LargePattern::Sequential { requests_per_stream: 4 };
            load.options.layout = ArrayLayout::Raid0 { stripe: Bytes::kib(256) };
            load.options.cache = ArrayCache::Size(Bytes::mib(512));
            load.options.write_pct = 10;
            (load.small_loads, load.large_loads, load.data_points) = (vec![3], vec![2], 1);
        },
        vec![step(0, 3, 2, &mixed)],
    );
    insta::assert_snapshot!(format!("{}\n{}", text_of(&run, "_summary.txt"), text_of(&run, "_hist.csv")));
}

#[test]
fn the_latency_line_is_that_of_19_3() {
    let latency = Latency { mean: 169.594, min: 128.415, max: 1924.721, standard_deviation: 13.566 };
    assert_eq!(
        latency.line("Small Read", "Small=10 and Large=0"),
        "Small Read Latency: avg=169.594 us, min=128.415 us, max=1924.721 us, std dev=13.566 us @ Small=10 and \
         Large=0\n"
    );
}

#[test]
fn files_are_written_whole_and_replace_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let run = eleven_one();
    let paths = write(&run, folder.path()).unwrap();
    let names = |folder: &Path| {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(
        names(folder.path()),
        ["hist.csv", "iops.csv", "lat.csv", "mbps.csv", "summary.txt"].map(|end| format!("san_20261120_1030_{end}"))
    );
    for (path, (_, text)) in paths.iter().zip(texts(&run).unwrap()) {
        assert_eq!(fs::read_to_string(path).unwrap(), text);
    }
    fs::remove_file(&paths[0]).unwrap();
    fs::write(&paths[3], "mine").unwrap();
    let error = write(&run, folder.path()).unwrap_err();
    assert!(error.to_string().contains("_mbps.csv` is there already"), "{error}");
    assert!(model::hint(&error).unwrap().contains("-testname"));
    assert_eq!(fs::read_to_string(&paths[3]).unwrap(), "mine");
    assert_eq!(names(folder.path()).len(), 4, "nothing is written once something is in the way");
}

#[test]
fn a_file_that_appears_meanwhile_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("san.csv");
    fs::write(&path, "mine").unwrap();
    assert!(matches!(write_new(&path, "ours"), Err(OrionFilesError::Exists { .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn a_directory_that_is_not_there_is_an_error_of_its_file() {
    let error = write(&eleven_one(), Path::new("/nowhere/at/all")).unwrap_err();
    assert!(matches!(error, OrionFilesError::Write { .. }), "{error}");
}

#[test]
fn other_runs_are_refused() {
    let error = texts(&sample::run(&[])).unwrap_err();
    assert!(error.to_string().contains("workload `slob`"), "{error}");
}

proptest! {
    #[test]
    fn a_histogram_loses_no_request_and_ends_at_a_hundred(us in prop::collection::vec(0_u64..1 << 30, 1..40)) {
        let each: Vec<Requests> = us.iter().map(|us| requests("read", 3, *us)).collect();
        let mut all = step(0, 1, 0, &each[..1]);
        all.operations[0].service = Histogram::default();
        us.iter().for_each(|us| all.operations[0].service.record_n(us * 1_000, 3));
        let text = text_of(&run(|_| (), vec![all]), "_hist.csv");
        let rows: Vec<&str> = text.lines().skip(2).collect();
        let reads = rows.iter().map(|row| row.split_whitespace().nth(4).unwrap().parse::<u64>().unwrap());
        prop_assert_eq!(reads.sum::<u64>(), 3 * us.len() as u64);
        prop_assert!(rows.last().unwrap().contains("(100.00%)"));
        let bound = |row: &str, place: usize| row.split_whitespace().nth(place).unwrap().to_owned();
        prop_assert!(rows.windows(2).all(|pair| bound(pair[0], 2) == bound(pair[1], 0)), "{text}");
    }
}
