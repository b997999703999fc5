//! The model by itself, and how it is written in an address.

use proptest::prelude::*;

use super::*;
use crate::OperationResult;
use ::model::units::{Bytes, Nanos};

fn pairs(address: &str) -> Vec<(String, String)> {
    let options = address.split(',').filter_map(|option| option.split_once('='));
    options.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn read(address: &str) -> Result<SimulatedOptions, String> {
    SimulatedOptions::from_pairs(&pairs(address)).map_err(|error| error.to_string())
}

fn model(address: &str) -> Model {
    Model::new(read(address).unwrap())
}

fn read_of(bytes: u32) -> SimulatedRequest {
    SimulatedRequest { offset_bytes: 0, bytes, is_write: false }
}

/// Seconds until `count` requests of `bytes` are done that all came at once.
fn seconds(address: &str, count: u64, bytes: u32) -> f64 {
    let mut model = model(address);
    let done = (0..count).map(|_| model.serve(0, read_of(bytes)).done_at_ns).max();
    done.unwrap() as f64 / 1e9
}

/// Service times of requests that never meet.
fn service_times(address: &str, count: u64) -> Vec<f64> {
    let mut model = model(address);
    let apart_ns = 1_000_000_000;
    (0..count).map(|n| (model.serve(n * apart_ns, read_of(8_192)).done_at_ns - n * apart_ns) as f64).collect()
}

fn quantile(mut values: Vec<f64>, quantile: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(quantile * (values.len() - 1) as f64) as usize]
}

#[test]
fn servers_serve_as_many_at_the_same_time() {
    assert_eq!(seconds("service=1ms,servers=4", 4_000, 8_192), 1.0);
    assert_eq!(seconds("service=1ms,servers=4000", 4_000, 8_192), 0.001);
}

#[test]
fn a_transfer_takes_its_share_of_the_bandwidth() {
    assert_eq!(seconds("service=1ms,bandwidth=1G,servers=1", 1, 1 << 20), 0.001 + 1.0 / 1024.0 - 0.000_000_000_5);
}

#[test]
fn caps_hold_to_the_request_and_large_requests_count_as_several() {
    // A request begins once what came before it is paid for.
    let near = |seconds: f64, expected: f64| (seconds / expected - 1.0).abs() < 0.0015;
    for (address, count, bytes, expected) in [
        ("iops_cap=5000", 10_000, 8_192, 2.0),
        ("iops_cap=5000,io_unit=256K", 10_000, 256 << 10, 2.0),
        ("iops_cap=5000,io_unit=256K", 10_000, (256 << 10) + 1, 4.0),
        ("iops_cap=5000,io_unit=256K", 10_000, 1 << 20, 8.0),
        ("mbps_cap=200", 1_000, 1_000_000, 5.0),
        ("mbps_cap=200,iops_cap=5000", 10_000, 8_000, 2.0),
        ("mbps_cap=200,iops_cap=5000", 10_000, 80_000, 4.0),
        ("mbps_cap=100,burst_mbps=400:5s", 3_000, 1_000_000, 5.0 + 10.0),
        ("iops_cap=5000,burst=20000:1s", 25_000, 8_192, 2.0),
    ] {
        let address = format!("service=1us,servers=1000,{address}");
        let took = seconds(&address, count, bytes);
        assert!(near(took, expected), "{address}: {count} of {bytes} bytes took {took} s, not {expected}");
    }
}

#[test]
fn a_stall_holds_up_what_would_have_begun_in_it_and_caps_do_not_make_up_for_it() {
    let mut model = model("service=1ms,servers=1000,iops_cap=1000,stall=1s:500ms+3s:1s");
    let done: Vec<u64> = (0..3_000).map(|_| model.serve(0, read_of(8_192)).done_at_ns).collect();
    let begun_in =
        |from_ms: u64, to_ms: u64| done.iter().filter(|at| (from_ms..to_ms).contains(&(**at / 1_000_000 - 1))).count();
    assert_eq!([(0, 1_000), (1_000, 1_500), (1_500, 3_000)].map(|(from, to)| begun_in(from, to)), [1_000, 0, 1_500]);
    assert_eq!([(3_000, 4_000), (4_000, 4_500)].map(|(from, to)| begun_in(from, to)), [0, 500]);
}

#[test]
fn service_times_are_spread_as_reported() {
    assert!(service_times("service=200us", 100).iter().all(|ns| *ns == 200_000.0));
    let exponential = service_times("service=200us,spread=exponential", 50_000);
    let mean = exponential.iter().sum::<f64>() / exponential.len() as f64;
    assert!((mean / 200_000.0 - 1.0).abs() < 0.02, "mean {mean}");
    assert!((quantile(exponential, 0.5) / 200_000.0 - 2f64.ln()).abs() < 0.02);
    let lognormal = || service_times("service=200us,spread=lognormal:0.5", 50_000);
    assert!((quantile(lognormal(), 0.5) / 200_000.0 - 1.0).abs() < 0.02);
    // One standard deviation above the median.
    assert!((quantile(lognormal(), 0.841_345) / 200_000.0 - 0.5f64.exp()).abs() < 0.04);
}

#[test]
fn tiers_errors_and_drift_come_in_their_measure() {
    let tiers = service_times("tiers=0.3:90us+0.7:600us", 20_000);
    let fast = tiers.iter().filter(|ns| **ns == 90_000.0).count();
    assert!((5_800..6_200).contains(&fast), "{fast} of 20000 were fast");
    assert!(tiers.iter().all(|ns| [90_000.0, 600_000.0].contains(ns)));

    let mut failing = model("errors=0.01");
    let failed = (0..100_000).filter(|_| failing.serve(0, read_of(8_192)).result == OperationResult::Failed).count();
    assert!((900..1_100).contains(&failed), "{failed} of 100000 failed");

    let drifting = service_times("service=100us,drift=10%/h", 7_201);
    assert_eq!([drifting[0], drifting[3_600], drifting[7_200]].map(f64::round), [100_000.0, 110_000.0, 120_000.0]);
}

#[test]
fn what_was_touched_lately_is_read_from_the_cache_and_writes_go_through_it() {
    let mut model = model("service=1ms,cache=1M,cache_service=10us,servers=100");
    let mut took = |offset_bytes, is_write| {
        model.serve(0, SimulatedRequest { offset_bytes, bytes: 8_192, is_write }).done_at_ns / 1_000
    };
    assert_eq!([took(0, false), took(0, false), took(8_192, true), took(8_192, false)], [1_000, 10, 1_000, 10]);
    assert_eq!(took(0, true), 1_000);
}

#[test]
fn planting_one_thing_more_leaves_the_others_as_they_were() {
    let plain = service_times("service=200us,spread=lognormal:1", 1_000);
    assert_eq!(service_times("service=200us,spread=lognormal:1,errors=0.5", 1_000), plain);
    assert_eq!(service_times("tiers=1:200us,spread=lognormal:1,iops_cap=100", 1_000), plain);
    assert_ne!(service_times("service=200us,spread=lognormal:1,seed=2", 1_000), plain);
}

#[test]
fn an_address_plants_what_it_says() {
    let options = read("burst=20000:20s,iops_cap=5000,stall=3s:1s+1s:500ms,clock=simulated,io_unit=256K").unwrap();
    let burst = Some(Burst { per_s: 20_000.0, length: Nanos::seconds(20) });
    let stall = |at, length| Stall { at: Nanos::millis(at), length: Nanos::millis(length) };
    let planted = SimulatedOptions {
        iops: Some(Cap { per_s: 5_000.0, burst }),
        io_unit: Some(Bytes::kib(256)),
        stalls: vec![stall(1_000, 500), stall(3_000, 1_000)],
        time: Time::Simulated,
        ..SimulatedOptions::default()
    };
    assert_eq!(options, planted);
    assert!(options.clock().is_simulated());
    assert!(!SimulatedOptions::default().clock().is_simulated());
    let description = Simulated::open(options.clone(), options.clock()).describe();
    assert_eq!(description.facts["burst"], "20000:20s");
    assert_eq!(description.facts["stall"], "1s:500ms+3s:1s");
    assert_eq!(read(description.address.strip_prefix("sim:").unwrap()), Ok(planted));
}

#[test]
fn what_cannot_be_planted_is_refused_with_what_is_wanted() {
    for (address, wanted) in [
        ("service=0s", "a duration above 0 is needed"),
        ("service=fast", "`fast` is not a duration such as `30s`, `250ms` or `10m`: it does not start with a number"),
        ("servers=0", "a whole number from 1 to 1000000 is needed"),
        ("spread=wide", "it is `fixed`, `exponential` or `lognormal:SIGMA`"),
        ("spread=lognormal:9", "a number from 0 to 5 is needed"),
        ("iops_cap=0", "a number from 0.000001 to 1000000000 is needed"),
        ("mbps_cap=NaN", "a number from 0.000001 to 1000000000 is needed"),
        ("burst=20000:20s", "it needs `iops_cap=RATE`, to which it falls back"),
        ("burst_mbps=2:20s", "it needs `mbps_cap=RATE`, to which it falls back"),
        ("burst=20:20s,iops_cap=20", "its rate must be above `iops_cap=20`"),
        ("tiers=0.3:90us", "its shares add up to 0.3, not to 1"),
        ("tiers=1:90us,service=1ms", "it takes the place of `service`, so give one of them"),
        ("volumes=27", "a whole number from 1 to 26 is needed"),
        ("cache_service=10us", "it needs `cache=SIZE`"),
        ("stall=10s", "`10s` has no `:` between its two parts"),
        ("drift=10", "write `drift=10%/h`"),
        ("errors=2", "a number from 0 to 1 is needed"),
        ("clock=sun", "it is `real` or `simulated`"),
        (
            "colour=blue",
            "its keys are service, tiers, spread, servers, bandwidth, iops_cap, io_unit, burst, mbps_cap, burst_mbps, \
             volumes, machine_iops_cap, machine_mbps_cap, cache, cache_service, stall, drift, errors, seed and clock",
        ),
    ] {
        let pair = address.split(',').next().unwrap();
        assert_eq!(read(address), Err(format!("`sim:` does not understand `{pair}`: {wanted}")));
    }
}

#[test]
fn the_book_tells_of_every_key() {
    let book = include_str!("../../../../docs/simulated.md");
    for Key { name, value, meaning, .. } in KEYS {
        let row = format!("| `{name}` | `{}` | {meaning} |", value.replace('|', "\\|"));
        assert!(book.contains(&row), "docs/simulated.md lacks the row\n{row}");
    }
}

proptest! {
    #[test]
    fn no_value_makes_it_fail_and_what_is_read_is_written_as_the_same(
        key in 0..KEYS.len(), value in "[0-9a-z.:+%/]{0,20}|[0-9]{1,4}(us|ms|s|M)?(:[0-9]{1,3}ms)?|[01]\\.[0-9]{1,3}",
    ) {
        let given = [(KEYS[key].name.to_owned(), value), ("iops_cap".to_owned(), "10".to_owned())];
        if let Ok(options) = SimulatedOptions::from_pairs(&given) {
            let written: Vec<_> = keys::written(&options).map(|(key, value)| (key.to_owned(), value)).collect();
            prop_assert_eq!(SimulatedOptions::from_pairs(&written).unwrap(), options);
        }
    }

    #[test]
    fn time_never_stands_still(address in "(service=1ns|spread=exponential|cache=8K),spread=lognormal:5", seed: u64) {
        let mut model = model(&format!("{address},seed={seed}"));
        let mut now = 0;
        for _ in 0..100 {
            let done = model.serve(now, read_of(1)).done_at_ns;
            prop_assert!(done > now);
            now = done;
        }
    }
}
