use super::*;
use model::record::HostLoad;
use model::record::{Cache, NumaNode, Processor, Topology};

fn request(work: Option<&[HostKind]>) -> HostRequest {
    HostRequest {
        load: HostLoad { work: work.map(|kinds| WorkList(kinds.to_vec())), ..HostLoad::default() },
        duration: None,
        warmup: None,
        seed: 7,
        tags: Vec::new(),
    }
}

/// The same after a change of its load.
fn changed(work: Option<&[HostKind]>, change: impl FnOnce(&mut HostLoad)) -> HostRequest {
    let mut request = request(work);
    change(&mut request.load);
    request
}

/// Two sockets of two cores with two threads each, as Linux numbers them.
fn facts() -> HostFacts {
    let processor = |number: u32| Processor { number, core: Some(number % 2), socket: Some(number / 2 % 2) };
    let node = |number: u32, processors: Vec<u32>, distances: Vec<u32>| NumaNode {
        number,
        processors,
        memory_bytes: None,
        distances,
    };
    let topology = Topology {
        processors: (0..8).map(processor).collect(),
        nodes: vec![node(0, vec![0, 1, 4, 5], vec![10, 21]), node(1, vec![2, 3, 6, 7], vec![21, 10])],
        caches: vec![Cache { level: 3, bytes: 32 << 20, shared_by: Some(4) }],
    };
    HostFacts { allowed: (0..8).collect(), topology: Some(topology), available_memory: Some(Bytes::gib(64)) }
}

fn labels(plan: &HostPlan) -> Vec<&str> {
    plan.steps.iter().map(|step| step.plan.label.as_str()).collect()
}

#[test]
fn threads_are_put_on_cores_before_they_share_one() {
    let count = |count| changed(Some(&[HostKind::Sort]), |load| load.processors = ProcessorChoice::Count(count));
    let on = |count_| plan(&count(count_), &facts()).map(|plan| plan.processors);
    assert_eq!(on(4).unwrap(), [0, 1, 2, 3]);
    assert_eq!(on(5).unwrap(), [0, 1, 2, 3, 4]);
    assert!(matches!(on(9), Err(PlanError::TooFewProcessors { asked: 9, there: 8 })));
    let cores = changed(Some(&[HostKind::Sort]), |load| load.processors = ProcessorChoice::Cores);
    assert_eq!(plan(&cores, &facts()).unwrap().steps[0].options.processors, [0, 1, 2, 3]);
    let other = changed(Some(&[HostKind::Sort]), |load| load.processors = ProcessorChoice::List(vec![3, 9]));
    assert!(matches!(plan(&other, &facts()), Err(PlanError::NoSuchProcessor { number: 9, .. })));
}

#[test]
fn one_load_is_one_step_and_each_processor_is_one() {
    let kinds = [HostKind::Checksum, HostKind::Sort];
    let planned = plan(&request(Some(&kinds)), &facts()).unwrap();
    assert_eq!((labels(&planned), planned.head.name.as_str()), (vec!["mixed_p8"], "mixed_p8"));
    assert_eq!(planned.head.parameters["WORK"], "checksum,sort");
    assert_eq!(planned.head.parameters["PROCESSORS"], "0-7");
    assert_eq!((planned.steps[0].plan.lanes, planned.duration()), (8, Nanos::seconds(31)));
    let each = changed(Some(&kinds), |load| load.processors = ProcessorChoice::Each);
    let planned = plan(&each, &facts()).unwrap();
    assert_eq!(labels(&planned)[..2], ["mixed_cpu0", "mixed_cpu1"]);
    assert_eq!((planned.steps.len(), planned.steps[5].options.processors.as_slice()), (8, [5].as_slice()));
}

#[test]
fn a_sweep_has_a_step_for_each_number_of_threads_of_each_kind() {
    let sweep = changed(Some(&[HostKind::Sort, HostKind::Checksum]), |load| load.threads = "1,4,8".parse().ok());
    let planned = plan(&sweep, &facts()).unwrap();
    assert_eq!(labels(&planned)[..4], ["sort_p1", "sort_p4", "sort_p8", "checksum_p1"]);
    assert_eq!(planned.steps[1].options.processors, [0, 1, 2, 3]);
    assert_eq!(planned.head.name, "mixed_p1-8");
    let seeds: std::collections::BTreeSet<u64> = planned.steps.iter().map(|step| step.plan.seed).collect();
    assert_eq!(seeds.len(), planned.steps.len());
}

#[test]
fn a_survey_takes_about_a_minute_and_looks_at_everything() {
    let planned = plan(&request(None), &facts()).unwrap();
    let takes = planned.duration().0 / 1_000_000_000;
    assert!((40..=75).contains(&takes), "{takes} s");
    let labels = labels(&planned);
    let distinct: std::collections::BTreeSet<&&str> = labels.iter().collect();
    assert_eq!(distinct.len(), labels.len(), "{labels:?}");
    for label in [
        "checksum_p1",
        "checksum_p4",
        "checksum_p8",
        "memory-latency_16KiB_p1",
        "memory-latency_256MiB_p1",
        "memory-triad_64MiB_p4",
        "memory-latency_node0-1_p1",
        "wake-across_p1",
        "timer_p8",
    ] {
        assert!(labels.contains(&label), "{label} is not in {labels:?}");
    }
    let far = planned.steps.iter().find(|step| step.options.memory_of.is_some()).unwrap();
    assert_eq!(far.options.memory_of, Some(2));
}

#[test]
fn a_survey_of_one_processor_of_which_nothing_is_known_is_one_too() {
    let bare = HostFacts { allowed: vec![5], ..HostFacts::default() };
    let planned = plan(&request(None), &bare).unwrap();
    assert!(planned.steps.iter().all(|step| step.options.processors == [5]));
    assert!(labels(&planned).contains(&"timer_p1"));
}

#[test]
fn more_memory_than_there_is_is_refused() {
    let little = HostFacts { available_memory: Some(Bytes::mib(512)), ..facts() };
    let asked = changed(Some(&[HostKind::MemoryTriad]), |load| load.size_bytes = Some(Bytes::mib(64)));
    assert!(matches!(plan(&asked, &little), Err(PlanError::WorkTooLarge { threads: 8, .. })));
    assert!(plan(&request(None), &little).is_ok(), "a survey takes what there is");
}

#[test]
fn sizes_that_would_not_be_measured_are_refused() {
    let refused = |kinds: &[HostKind], size: Option<Bytes>, cache: Option<Bytes>| {
        let asked = changed(Some(kinds), |load| (load.size_bytes, load.cache_bytes) = (size, cache));
        plan(&asked, &facts()).map(drop).map_err(|error| error.to_string())
    };
    let sort = [HostKind::Sort, HostKind::Checksum];
    assert_eq!(refused(&sort, Some(Bytes::mib(1)), None).unwrap_err(), "`--size` has no meaning for sort,checksum");
    assert_eq!(refused(&sort, None, Some(Bytes::mib(1))).unwrap_err(), "`--cache` has no meaning for sort,checksum");
    let small = refused(&[HostKind::MemoryCopy], Some(Bytes(1)), None).unwrap_err();
    assert!(small.starts_with("`--size 1 B` is too small"), "{small}");
    assert!(refused(&[HostKind::LogicalRead], None, Some(Bytes(1))).is_err());
    assert_eq!(
        refused(&[HostKind::MemoryCopy, HostKind::LogicalRead], Some(Bytes(4 << 10)), Some(Bytes::mib(1))),
        Ok(())
    );
    let survey =
        changed(None, |load| (load.size_bytes, load.cache_bytes) = (Some(Bytes::mib(64)), Some(Bytes::mib(64))));
    assert!(plan(&survey, &facts()).is_ok());
}
