//! What plans decide, and what they refuse.

use proptest::prelude::*;

use super::PlanError;
use super::slob::{RunPlan, SlobPlanRequest, facts_as_asked, plan};
use load::Pace;
use model::config::{Assignment, Axes, Setting, slob_conf};
use model::units::{Bytes, Nanos};
use model::workload::Arrival;
use targets::database::{Cache, Caching, Commits, DataFacts, Filling};

const DATA: DataFacts = DataFacts {
    schemas: 8,
    scale_blocks: 131_072,
    scan_blocks: 0,
    block_bytes: 8_192,
    filling: Filling::Incompressible,
    available_memory: None,
    caching: Caching::Asked,
    redo: None,
};

fn settings(words: &str) -> Vec<Setting> {
    let settings = words.split_whitespace().map(|word| match word.parse().unwrap() {
        Assignment::Set(setting) => setting,
        Assignment::Schemas(_) => panic!("{word} is no setting"),
    });
    settings.collect()
}

fn request(words: &str) -> SlobPlanRequest {
    SlobPlanRequest {
        settings: settings(words),
        schemas: None,
        axes: Axes::default(),
        cache: Bytes::mib(64),
        warmup: None,
        pace: Pace::Closed,
        commits: Commits::Wait,
        lanes: None,
        seed: 42,
        tags: Vec::new(),
        processors: 4,
    }
}

fn sweep(words: &str, threads: &str, varied: &[&str]) -> RunPlan {
    let varied = varied.iter().map(|text| text.parse().unwrap()).collect();
    let axes = Axes::new(Some(threads.parse().unwrap()), varied).unwrap();
    plan(&SlobPlanRequest { axes, ..request(words) }, &DATA).unwrap()
}

fn refusal(request: &SlobPlanRequest) -> (String, Option<String>) {
    let error: PlanError = plan(request, &DATA).unwrap_err();
    (error.to_string(), error.hint())
}

#[test]
fn steps_whose_commits_are_not_waited_for_are_marked() {
    let axes = Axes::new(None, vec!["UPDATE_PCT=0,20".parse().unwrap()]).unwrap();
    let slob = SlobPlanRequest { commits: Commits::Slob, axes, ..request("THREADS_PER_SCHEMA=2") };
    let plan = plan(&slob, &DATA).unwrap();
    let labels: Vec<&str> = plan.steps.iter().map(|step| step.label.as_str()).collect();
    assert_eq!(labels, ["s8_t2_up0", "s8_t2_up20_nowait"], "who only reads commits nothing");
    assert_eq!(plan.head.name, "s8_t2_wu64_nowait");
}

#[test]
fn without_a_number_all_schemas_are_loaded_with_all_their_blocks() {
    let plan = plan(&request("RUN_TIME=60"), &DATA).unwrap();
    let step = &plan.steps[0];
    assert_eq!((step.load.sessions, step.shape.schemas, step.shape.scale_blocks), (Some(8), 8, 131_072));
    assert_eq!(plan.head.parameters["SCALE"], "1G");
    assert_eq!(plan.head.parameters["BLOCK_SZ"], "8K");
    assert_eq!(plan.head.parameters["SCAN_TABLE_SZ"], "0");
    assert_eq!(plan.head.name, "s8_t1_wu64");
}

#[test]
fn a_smaller_scale_uses_the_first_blocks_and_says_so() {
    let plan = plan(&request("SCALE=10000"), &DATA).unwrap();
    assert_eq!(plan.steps[0].shape.scale_blocks, 10_000);
    assert!(plan.notes.iter().any(|note| note.contains("first 10000 of its 131072 blocks")), "{:?}", plan.notes);
}

#[test]
fn what_the_data_set_does_not_have_is_refused() {
    let (message, hint) = refusal(&request("SCALE=2G"));
    assert_eq!(message, "`SCALE=2G` (command line) is 262144 blocks for each schema, but the data set has 131072");
    assert!(hint.unwrap().contains("leave SCALE out"));
    let (message, _) = refusal(&SlobPlanRequest { schemas: Some(9), ..request("") });
    assert_eq!(message, "9 schemas are requested, but the data set has 8");
    let (message, _) = refusal(&request("SCAN_PCT=10"));
    assert_eq!(message, "`SCAN_PCT=10` (command line) asks for scans, but the data set has no scan table");
    let (message, _) = refusal(&request("SCALE=4K"));
    assert_eq!(message, "`SCALE=4K` (command line) is less than one block of 8192 bytes");
}

#[test]
fn an_error_names_the_line_of_the_file_it_came_from() {
    let settings = slob_conf::parse("UPDATE_PCT=10\nSCALE=2G\n", "slob.conf").unwrap();
    let (message, _) = refusal(&SlobPlanRequest { settings, ..request("") });
    assert!(message.contains("(slob.conf:2)"), "{message}");
}

#[test]
fn there_are_no_more_than_4096_sessions() {
    let (message, hint) = refusal(&request("THREADS_PER_SCHEMA=513"));
    assert_eq!(message, "8 schemas with 513 threads each are more than 4096 sessions");
    assert!(hint.is_some());
    let most = plan(&request("THREADS_PER_SCHEMA=512"), &DATA).unwrap();
    assert_eq!(most.max_sessions(), 4_096);
}

#[test]
fn a_step_that_cannot_be_done_stops_the_sweep_before_it_starts() {
    let axes = Axes::new(None, vec!["WORK_UNIT=4,65536".parse().unwrap()]).unwrap();
    let (message, _) = refusal(&SlobPlanRequest { axes, ..request("SCALE=10000") });
    assert!(message.contains("65536"), "{message}");
}

#[test]
fn a_sweep_keeps_apart_what_its_steps_share_and_what_they_do_not() {
    let sweep = sweep("UPDATE_PCT=0 RUN_TIME=10", "1,4", &["WORK_UNIT=4,64"]);
    let labels: Vec<_> = sweep.steps.iter().map(|step| step.label.as_str()).collect();
    assert_eq!(labels, ["s8_t1_wu4", "s8_t4_wu4", "s8_t1_wu64", "s8_t4_wu64"]);
    assert_eq!(sweep.head.name, "s8_t1-4_wu4-64");
    assert_eq!(sweep.head.parameters["UPDATE_PCT"], "0");
    assert!(
        !sweep.head.parameters.contains_key("WORK_UNIT") && !sweep.head.parameters.contains_key("THREADS_PER_SCHEMA")
    );
    assert_eq!(sweep.steps[3].parameters(&sweep.head.parameters)["WORK_UNIT"], "64");
    assert_eq!((sweep.steps[3].shape.work_unit, sweep.steps[3].load.sessions), (64, Some(32)));
    assert_eq!(sweep.duration(), Nanos::seconds(4 * 12));
}

#[test]
fn no_step_repeats_the_operations_of_another() {
    let sweep = sweep("", "1,2,3,4,5,6,7,8", &[]);
    let seeds: std::collections::BTreeSet<_> = sweep.steps.iter().map(|step| step.seed).collect();
    assert_eq!(seeds.len(), 8);
    assert_eq!((sweep.head.seed, sweep.steps[0].seed), (42, 42), "a run and the first step of a sweep do the same");
}

#[test]
fn warmup_is_a_fifth_of_the_window_and_ten_seconds_at_most() {
    for (run_time, warmup) in [("5", Nanos::seconds(1)), ("60", Nanos::seconds(10)), ("300", Nanos::seconds(10))] {
        assert_eq!(plan(&request(&format!("RUN_TIME={run_time}")), &DATA).unwrap().steps[0].warmup, warmup);
    }
    let none = SlobPlanRequest { warmup: Some(Nanos(0)), ..request("") };
    assert_eq!(plan(&none, &DATA).unwrap().steps[0].warmup, Nanos(0));
}

#[test]
fn an_open_loop_is_recorded_with_its_rate_and_arrivals() {
    let pace = Pace::Open { rate_per_s: 500.0, arrival: Arrival::Fixed };
    let plan = plan(&SlobPlanRequest { pace, ..request("") }, &DATA).unwrap();
    let load = &plan.steps[0].load;
    assert_eq!((load.rate_operations_per_s, load.arrival), (Some(500.0), Some(Arrival::Fixed)));
    assert_eq!((plan.head.name.as_str(), plan.steps[0].label.as_str()), ("s8_t1_wu64_r500", "s8_t1_r500"));
}

#[test]
fn a_tag_given_twice_is_refused() {
    let tags = vec!["vm=a".parse().unwrap(), "vm=b".parse().unwrap()];
    assert_eq!(refusal(&SlobPlanRequest { tags, ..request("") }).0, "the tag `vm` is given twice");
}

#[test]
fn the_hot_spot_is_counted_in_the_blocks_of_the_data_set() {
    let data = DataFacts { block_bytes: 32 << 10, ..DATA };
    let plan = plan(&request("DO_HOTSPOT=TRUE HOTSPOT_MB=8 HOTSPOT_OFFSET_MB=16"), &data).unwrap();
    let hot_spot = plan.steps[0].shape.hot_spot.unwrap();
    assert_eq!((hot_spot.offset_blocks, hot_spot.blocks), (512, 256));
}

#[test]
fn a_cache_that_does_not_fit_into_memory_is_refused() {
    let small = DataFacts { available_memory: Some(Bytes::gib(2)), ..DATA };
    let with_cache = |cache| SlobPlanRequest { cache, ..request("THREADS_PER_SCHEMA=4") };
    assert!(plan(&with_cache(Bytes::gib(1)), &small).is_ok());
    let error = plan(&with_cache(Bytes::gib(2)), &small).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a cache of 2 GiB and what 32 sessions need are 2.1 GiB, but only 2 GiB of memory are available"
    );
    assert!(error.hint().unwrap().contains("--cache"));
    assert!(plan(&with_cache(Bytes(u64::MAX)), &small).is_err());
    assert!(plan(&with_cache(Bytes(u64::MAX)), &DATA).is_ok(), "what is not known is not judged");
}

#[test]
fn a_target_without_data_is_as_large_as_asked() {
    let asked = SlobPlanRequest { schemas: Some(300), ..request("SCALE=4G SCAN_PCT=10") };
    let facts = facts_as_asked(&asked).unwrap();
    let step = plan(&asked, &facts).unwrap().steps.remove(0);
    assert_eq!((step.load.sessions, step.shape.scale_blocks), (Some(300), 524_288));
}

proptest! {
    #[test]
    fn lanes_are_at_least_one_and_never_more_than_sessions(
        lanes in proptest::option::of(1u32..10_000), processors in 0u32..300, threads in 1u32..64,
    ) {
        let request = SlobPlanRequest { lanes, processors, ..request(&format!("THREADS_PER_SCHEMA={threads}")) };
        let plan = plan(&request, &DATA).unwrap();
        let step = &plan.steps[0];
        prop_assert!(step.lanes >= 1 && step.lanes <= step.load.slots());
        prop_assert!(step.lanes <= lanes.unwrap_or(processors).max(1));
    }

    #[test]
    fn the_recorded_scale_reads_back_to_the_same_blocks(blocks in 64u64..200_000, block_kib in 1u32..6) {
        let data = DataFacts { scale_blocks: blocks, block_bytes: 1_024 << block_kib, ..DATA };
        let plan = plan(&request(""), &data).unwrap();
        let recorded = settings(&format!("SCALE={}", plan.head.parameters["SCALE"]));
        let parameters = model::config::SlobParameters::from_settings(&recorded).unwrap();
        prop_assert_eq!(parameters.scale.blocks(u64::from(data.block_bytes)), blocks);
    }
}

#[test]
fn what_a_cache_will_answer_is_said_before_the_load() {
    let cache_note = |request: &SlobPlanRequest, caching: Caching| {
        let notes = plan(request, &DataFacts { caching, ..DATA }).unwrap().notes;
        notes.into_iter().find(|note| note.starts_with("the data ("))
    };
    let small = |words: &str| SlobPlanRequest { schemas: Some(1), ..request(words) };
    assert_eq!(cache_note(&request("SCALE=32M"), Caching::Asked), None, "8 schemas of 32M are four caches of 64M");
    let fits = cache_note(&small("SCALE=64M"), Caching::Asked).unwrap();
    assert!(fits.contains("fit into the buffer cache (64 MiB)") && fits.contains("5m00s"), "{fits}");
    let asked = cache_note(&small("SCALE=64M RUN_TIME=10"), Caching::Asked).unwrap();
    assert!(!asked.contains("by default"), "{asked}");
    let server = Cache { bytes: Bytes::gib(4), what: "the server's memory".to_owned(), cure: None };
    let part = cache_note(&request(""), Caching::There(server)).unwrap();
    assert!(part.contains("less than four times the server's memory (4 GiB)") && part.contains("SCALE=2G"), "{part}");
    assert_eq!(cache_note(&small("SCALE=64M"), Caching::Unknown), None);
}
