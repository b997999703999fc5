use proptest::prelude::*;

use super::*;
use model::config::orion::{OrionCommand, parse};

fn options(line: &str) -> OrionOptions {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    match parse(&words).unwrap() {
        OrionCommand::Run(options) => options,
        OrionCommand::Help => panic!("`{line}` asks for no help"),
    }
}

fn luns(count: usize) -> Vec<Lun> {
    (0..count).map(|n| Lun { path: format!("/dev/sd{n}").into(), bytes: Bytes::gib(20) }).collect()
}

fn walked(line: &str, count: usize) -> OrionWalk {
    walk(&options(line), &luns(count)).unwrap()
}

/// Small and large load of each point, in order.
fn pairs(walk: &OrionWalk) -> Vec<(u32, u32)> {
    walk.points.iter().map(|point| (point.small, point.large)).collect()
}

fn minutes(line: &str, count: usize) -> u64 {
    walked(line, count).estimate(&options(line)).orion_minutes
}

#[test]
fn simple_on_one_disk_walks_what_orion_11_1_walked() {
    let walk = walked("-run simple", 1);
    assert_eq!(pairs(&walk), [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (0, 1), (0, 2)]);
    assert_eq!((walk.small_loads.as_slice(), walk.large_loads.as_slice()), (&[0, 1, 2, 3, 4, 5][..], &[0, 1, 2][..]));
    assert_eq!(walk.data_points, 8);
    assert_eq!(minutes("-run simple", 1), 9);
}

#[test]
fn simple_on_six_devices_takes_the_44_minutes_that_orion_19_3_announced() {
    let walk = walked("-run simple", 6);
    assert_eq!(minutes("-run simple", 6), 44);
    // Where its best points were.
    assert!(pairs(&walk).contains(&(10, 0)) && pairs(&walk).contains(&(0, 5)));
}

#[test]
fn normal_on_one_device_takes_the_19_minutes_that_orion_11_2_announced() {
    let walk = walked("-run normal", 1);
    assert_eq!(minutes("-run normal", 1), 19);
    assert_eq!(walk.points.len(), 17);
    assert_eq!(pairs(&walk)[7..], [(1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (1, 2), (2, 2), (3, 2), (4, 2), (5, 2)]);
}

#[test]
fn oltp_walks_as_orion_was_seen_to() {
    let one = walked("-run oltp", 1);
    assert_eq!((one.small_loads.clone(), one.large_loads.clone()), ((1..=20).collect(), vec![0]));
    assert_eq!(one.data_points, 21);
    assert_eq!(minutes("-run oltp", 3), 24);
    let four = walked("-run oltp -write 50 -num_disks 4", 1);
    assert!([4, 68, 80].iter().all(|small| four.small_loads.contains(small)));
    assert_eq!(four.small_loads.last(), Some(&80));
}

#[test]
fn dss_rises_to_fifteen_large_requests_a_disk() {
    let walk = walked("-run dss", 2);
    assert_eq!(walk.small_loads, [0]);
    assert_eq!(walk.large_loads, [1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30]);
    assert!(walk.points.iter().all(|point| point.role == PointRole::LargeAlone));
}

#[test]
fn an_advanced_run_walks_what_its_matrix_says() {
    for (line, expected) in [
        ("-matrix point -num_small 3 -num_large 2", vec![(3, 2)]),
        ("-matrix col -num_small 0", vec![(0, 1), (0, 2)]),
        ("-matrix col -num_small 4", vec![(4, 0), (4, 1), (4, 2)]),
        ("-matrix row -num_large 0", vec![(1, 0), (2, 0), (3, 0), (4, 0), (5, 0)]),
        ("-matrix row -num_large 1", vec![(0, 1), (1, 1), (2, 1), (3, 1), (4, 1), (5, 1)]),
        ("-matrix max -num_small 1 -num_large 2", vec![(1, 0), (0, 1), (0, 2), (1, 1), (1, 2)]),
        ("-matrix max -num_small 2 -num_large 0", vec![(1, 0), (2, 0)]),
    ] {
        assert_eq!(pairs(&walked(&format!("-run advanced {line}"), 1)), expected, "{line}");
    }
    assert_eq!(walked("-run advanced -matrix basic", 3), walked("-run simple", 3));
    assert_eq!(walked("-run advanced -matrix detailed", 3), walked("-run normal", 3));
    assert_eq!(walked("-run advanced -matrix point -num_small 3 -num_large 2", 1).data_points, 1);
}

#[test]
fn only_large_sequential_points_are_warmed() {
    let warming = |line: &str| {
        let mut found: Vec<Warming> = walked(line, 1).points.iter().map(|point| point.warming).collect();
        assert!(found[..5].iter().all(|warming| *warming == Warming::None), "small alone, {line}");
        found.split_off(5)
    };
    assert_eq!(warming("-run advanced"), [Warming::None; 2]);
    assert_eq!(warming("-run simple -cache_size 100"), [Warming::None; 2]);
    assert_eq!(warming("-run advanced -type seq"), [Warming::For(Nanos::seconds(120)); 2]);
    assert_eq!(warming("-run advanced -type seq -cache_size 0"), [Warming::None; 2]);
    assert_eq!(warming("-run advanced -type seq -cache_size 64"), [Warming::Bytes(Bytes::mib(64)); 2]);
}

#[test]
fn the_estimate_counts_points_and_warming() {
    let of = |line: &str| walked(line, 1).estimate(&options(line));
    assert_eq!(of("-run simple").time, Nanos::seconds(7 * 60));
    assert_eq!(of("-run simple -duration 5").time, Nanos::seconds(35));
    assert_eq!(of("-run advanced -type seq").time, Nanos::seconds(7 * 60 + 2 * 120));
    let sized = of("-run advanced -type seq -cache_size 64");
    assert_eq!((sized.time, sized.warming_bytes), (Nanos::seconds(7 * 60), Bytes::mib(128)));
}

#[test]
fn streams_count_with_all_their_requests() {
    let line = "-run advanced -matrix point -num_small 3 -num_large 2 -type seq -num_streamIO 8";
    let point = walked(line, 1).points[0];
    assert_eq!(point.large_requests(options(line).pattern), 16);
    assert_eq!(point.outstanding(options(line).pattern), 19);
}

#[test]
fn what_cannot_be_walked_is_refused() {
    let refused = |line: &str, luns: &[Lun]| {
        let error = walk(&options(line), luns).unwrap_err();
        (error.to_string(), error.hint().unwrap())
    };
    assert!(refused("-run simple", &[]).0.contains("no device or file"));
    let tiny = [Lun { path: "/dev/tiny".into(), bytes: Bytes::kib(512) }];
    assert!(refused("-run simple", &tiny).0.contains("`/dev/tiny` has 512 KiB, less than one request of 1 MiB"));
    assert!(walk(&options("-run oltp"), &tiny).is_ok(), "no large request is ever made");
    let (message, hint) = refused("-run oltp -num_disks 205", &luns(1));
    assert!(message.contains("4100 requests outstanding") && hint.contains("-num_disks"), "{message} {hint}");
}

#[test]
fn the_document_tells_the_options_in_force() {
    let line = "-run advanced -matrix row -num_large 1 -type seq -simulate raid0 -cache_size 0 -write 5";
    let parameters = model::record::Load::Orion(walked(line, 1).load(&options(line))).parameters();
    for (key, value) in [
        ("RUN", "advanced"),
        ("MATRIX", "row"),
        ("TESTNAME", "orion"),
        ("NUM_DISKS", "1"),
        ("SMALL_SIZE", "8K"),
        ("LARGE_SIZE", "1024K"),
        ("TYPE", "seq"),
        ("NUM_STREAMIO", "4"),
        ("WRITE_PCT", "5"),
        ("SIMULATE", "raid0"),
        ("STRIPE", "1024K"),
        ("CACHE_SIZE", "0M"),
        ("DURATION_S", "60"),
        ("SMALL_LOADS", "0,1,2,3,4,5"),
        ("LARGE_LOADS", "1"),
        ("DATA_POINTS", "6"),
    ] {
        assert_eq!(parameters.get(key).map(String::as_str), Some(value), "{key}");
    }
    assert_eq!(luns(2)[1].facts(), LunFacts { path: "/dev/sd1".to_owned(), bytes: 21_474_836_480 });
}

proptest! {
    #[test]
    fn every_walk_rises_and_passes_no_point_twice(disks in 1_u32..200, run in 0_usize..6) {
        let run = ["simple", "normal", "oltp", "dss", "advanced -type seq", "advanced -matrix row -num_large 3"][run];
        let walk = walked(&format!("-run {run} -num_disks {disks}"), 1);
        for loads in [&walk.small_loads, &walk.large_loads] {
            prop_assert!(loads.windows(2).all(|pair| pair[0] < pair[1]), "{loads:?}");
        }
        let mut seen = pairs(&walk);
        prop_assert!(!seen.contains(&(0, 0)));
        seen.sort_unstable();
        seen.dedup();
        prop_assert_eq!(seen.len(), walk.points.len());
        prop_assert!(walk.points.is_sorted_by_key(|point| (point.role, point.large, point.small)));
        if run == "simple" {
            prop_assert!(walk.points.len() <= 31 + 13);
            prop_assert_eq!(walk.small_loads.last(), Some(&(5 * disks)));
            prop_assert_eq!(walk.large_loads.last(), Some(&(2 * disks)));
        }
    }
}
