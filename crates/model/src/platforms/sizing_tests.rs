//! Which platforms carry a load.

use super::recorded::{IntervalRates, Recorded};
use super::*;

/// 50,000 requests/s of 8 KiB of which 80 % read, with headroom.
fn need() -> Need {
    Need {
        asked: Asked { read_share: 0.8, block_bytes: 8192.0, hit_share: 0.0 },
        per_s: 50_000.0,
        gib: 0.0,
        redo_bytes: 0.0,
        processors: None,
        memory_gib: None,
        ephemeral: true,
    }
}

fn ranked(need: &Need, prices: Option<&Prices>) -> Ranking {
    rank(Catalogue::built_in(), need, (1, Redundancy::External), prices)
}

#[test]
fn what_carries_allows_what_is_asked_for_and_what_fails_does_not() {
    let ranking = ranked(&need(), None);
    assert!(ranking.carry.len() > 20 && ranking.fail.len() > 20, "{} {}", ranking.carry.len(), ranking.fail.len());
    for sized in &ranking.carry {
        let again = Expectation::of(&sized.platform, need().asked).sustained().unwrap();
        assert!(again.per_s >= 50_000.0 && again.per_s == sized.per_s, "{}", sized.platform.name());
    }
    assert!(ranking.fail.iter().all(|sized| sized.per_s < 50_000.0));
    // The fewest processors come first.
    let processors: Vec<u32> = ranking.carry.iter().map(|it| it.platform.machine.processors.unwrap()).collect();
    assert!(processors.is_sorted());
    // A D8s_v3 has 12,800 requests/s, whatever the volumes; an E32s_v3 51,200.
    let of = |machine: &str, among: &[Sized]| among.iter().any(|it| it.platform.machine.name == machine);
    assert!(of("Standard_E32s_v3", &ranking.carry) && !of("Standard_D8s_v3", &ranking.carry));
    let small = ranking.fail.iter().find(|it| it.platform.machine.name == "Standard_D8s_v3").unwrap();
    assert_eq!((small.whose, small.per_s), (Whose::MachineIops, 12_800.0));
}

#[test]
fn volumes_are_no_more_than_are_needed() {
    let ranking = ranked(&need(), None);
    let volumes = |kind: &str| {
        let mut all = ranking.carry.iter().filter_map(|it| it.platform.volumes.as_ref());
        all.find(|volumes| volumes.kind.name == kind).unwrap_or_else(|| panic!("{kind}")).clone()
    };
    // 10 P30 would do, and 12 are the next number that is tried; 4 P60 have 64,000; one gp3 is provisioned with all.
    assert_eq!(volumes("P30").count, 12);
    assert_eq!(volumes("P60").count, 4);
    let gp3 = volumes("gp3");
    assert_eq!((gp3.count, gp3.each.iops), (1, Some(50_000.0)));
    // 64 TiB of data need more of them.
    let large = ranked(&Need { gib: 65_536.0, ..need() }, None);
    let of_p30 = large.carry.iter().chain(&large.fail).filter_map(|it| it.platform.volumes.as_ref());
    assert!(of_p30.filter(|volumes| volumes.kind.name == "P30").all(|volumes| volumes.count == 64));
    assert!(large.carry.iter().all(|it| it.platform.volumes.is_some()), "what is built in has no published size");
}

/// The volumes of a kind in the ranking of a load of `per_s` reads of `block_kib`.
fn bought(kind: &str, per_s: f64, block_kib: f64) -> Volumes {
    let asked = Asked { read_share: 1.0, block_bytes: block_kib * 1024.0, ..need().asked };
    let ranking = ranked(&Need { asked, per_s, ..need() }, None);
    let mut all = ranking.carry.iter().filter_map(|it| it.platform.volumes.as_ref());
    all.find(|volumes| volumes.kind.name == kind)
        .unwrap_or_else(|| panic!("no machine sustains it with {kind}"))
        .clone()
}

#[test]
fn no_more_requests_are_bought_than_the_throughput_needs() {
    // 4,000 of 64 KiB are 250 MiB/s, and any io1 or io2 has 500.
    assert_eq!(bought("io1", 4_000.0, 64.0).each.iops, Some(4_000.0));
    assert_eq!(bought("io2", 4_000.0, 64.0).each.iops, Some(4_000.0));
    // 12,000 of 64 KiB are 750 MiB/s, which are had for 48,000 requests/s alone.
    let io1 = bought("io1", 12_000.0, 64.0);
    assert_eq!((io1.count, io1.each.iops), (1, Some(48_000.0)));
}

#[test]
fn requests_are_bought_as_they_are_counted() {
    // 2,000 of 300 KiB count as 4,000 requests, and 586 MiB/s are had for 2,344.
    let gp3 = bought("gp3", 2_000.0, 300.0);
    assert_eq!((gp3.count, gp3.each.iops), (1, Some(4_000.0)));
}

#[test]
fn what_nobody_publishes_carries_nothing() {
    let ranking = ranked(&need(), None);
    let is_local = |it: &&Sized| it.platform.volumes.is_none() && it.platform.machine.name.ends_with("s_v3");
    assert!(!ranking.carry.iter().any(|it| is_local(&it)), "of L series v3 writes are not published");
    let left_out = ranking.left_out.iter().find(|(name, _)| name.starts_with("Standard_L8s_v3 with storage"));
    assert_eq!(left_out.unwrap().1, "no limit is published of writes of the storage in Standard_L8s_v3");
    let over_network = ranking.left_out.iter().find(|(name, _)| name.contains("ANF Ultra"));
    assert_eq!(over_network.unwrap().1, "no limit is published of requests of ANF Ultra");
    let no_most = ranking.left_out.iter().find(|(name, _)| name == "FSx ONTAP");
    assert_eq!(no_most.unwrap().1, "no limit is published of the most throughput that can be bought of FSx ONTAP");
}

#[test]
fn storage_whose_bytes_nobody_publishes_carries_small_requests_alone() {
    let of_i3 = |read_share, block_kib: f64| {
        let asked = Asked { read_share, block_bytes: block_kib * 1024.0, hit_share: 0.0 };
        let ranking = ranked(&Need { asked, ..need() }, None);
        let is_local = |it: &Sized| it.platform.volumes.is_none() && it.platform.machine.name == "i3.large";
        let why = ranking.left_out.iter().find(|(name, _)| name.starts_with("i3.large with storage"));
        (ranking.carry.iter().any(is_local), why.map(|(_, why)| why.clone()))
    };
    assert_eq!(of_i3(1.0, 4.0), (true, None), "its rates are published for requests of that size");
    for (read_share, block_kib, of) in [
        (1.0, 8.0, "bytes read from the storage in i3.large"),
        (1.0, 64.0, "bytes read from the storage in i3.large"),
        (0.5, 8.0, "bytes read from the storage in i3.large, bytes written to the storage in i3.large"),
    ] {
        assert_eq!(of_i3(read_share, block_kib), (false, Some(format!("no limit is published of {of}"))));
    }
}

#[test]
fn redo_passes_the_machines_though_it_has_volumes_of_its_own() {
    // 50,000 requests/s of 8 KiB are 410 MB/s and bring 400 MB/s of redo; an E32s_v3 sends 768 to volumes, an E64s_v3 1,200.
    let with_redo = Need { redo_bytes: 8_000.0, ..need() };
    let carries = |ranking: &Ranking, machine: &str| ranking.carry.iter().any(|it| it.platform.machine.name == machine);
    let (without, with) = (ranked(&need(), None), ranked(&with_redo, None));
    assert!(carries(&without, "Standard_E32s_v3") && carries(&without, "Standard_E64s_v3"));
    assert!(!carries(&with, "Standard_E32s_v3") && carries(&with, "Standard_E64s_v3"));
    let held = with.fail.iter().find(|it| it.platform.machine.name == "Standard_E32s_v3").unwrap();
    assert_eq!((held.whose, held.per_s.floor()), (Whose::MachineBytes, (768e6f64 / (8_192.0 + 8_000.0)).floor()));
    // With two copies of each write there are two of redo: 492 and 800 MB/s are more than 1,200.
    let twice = rank(Catalogue::built_in(), &with_redo, (1, Redundancy::Normal), None);
    assert!(!carries(&twice, "Standard_E64s_v3"));
    // Volumes are sized as before.
    let p30 = with.carry.iter().filter_map(|it| it.platform.volumes.as_ref()).find(|it| it.kind.name == "P30");
    assert_eq!(p30.unwrap().count, 12);
    // Redo of what lies on built-in storage and that of volumes over the network take what is on their way.
    let asked = Asked { read_share: 1.0, block_bytes: 4_096.0, hit_share: 0.0 };
    let of = |volumes: &str| {
        let machine = ("i3.large", 1);
        let platform =
            Combination::parse(Catalogue::built_in(), machine, volumes, Cache::None, Redundancy::External).unwrap();
        let sustained = Expectation::with_redo(&platform, asked, 4_096.0).sustained().unwrap();
        (sustained.whose, sustained.per_s.round())
    };
    assert_eq!(of("local"), (Whose::MachineBytes, (53.125e6f64 / 4_096.0).round()));
    assert_eq!(of("fsx:10T,throughput=2000"), (Whose::Network, (93.75e6f64 / 8_192.0).round()));
}

#[test]
fn what_can_be_bought_is_bounded_or_in_no_ranking() {
    // One gp3 has 2,000 MiB/s at most, so 2,500 need two.
    assert_eq!(bought("gp3", 2_500.0, 1024.0).count, 2);
    for kind in Catalogue::built_in().volumes().iter().filter(|kind| kind.name != "FSx ONTAP") {
        assert_eq!(super::without_a_most(kind).count(), 0, "{}", kind.name);
    }
}

const LIST: &str = "unit = \"EUR a month\"\n[machines]\nE32s_v3 = 1000\n\"r5b.4xlarge\" = 900\n[volumes]\nP30 = { each = 100 }\n\
                    gp3 = { per_gib = 0.1, per_iops = 0.01 }\n";

#[test]
fn prices_come_first_where_they_are_known() {
    let prices = Prices::read("prices.toml", LIST, Catalogue::built_in()).unwrap();
    let ranking = ranked(&need(), Some(&prices));
    let first = &ranking.carry[0];
    assert_eq!(first.platform.machine.name, "Standard_E32s_v3");
    assert_eq!(first.price, Some(1000.0 + 12.0 * 100.0));
    assert!(ranking.carry[1..].iter().all(|it| it.price.is_none_or(|price| price >= 2200.0)));
    // An r5b.4xlarge has 43,333 and fails. With 50,000 on one gp3 it costs 900 + 470 + 12.80; with 16 of 3,125 requests/s and 64 GiB each, of which
    // 125 are paid for, 900 + 16 x (1.25 + 6.40). 12 have more to pay for, 24 more GiB: 1,116.81 and 1,053.60.
    let fails = ranking.fail.iter().find(|it| it.price.is_some()).unwrap();
    assert!((fails.price.unwrap() - 1_022.40).abs() < 1e-6, "{fails:?}");
}

#[test]
fn a_wrong_price_list_says_where() {
    for (from, to, line, says) in [
        ("E32s_v3 = 1000", "E33s_v3 = 1000", 3, "no machine is called `E33s_v3`"),
        ("E32s_v3 = 1000", "E32s_v3 = -1", 3, "`E32s_v3` is below 0"),
        ("P30 = { each = 100 }", "P30 = { eech = 100 }", 6, "unknown field `eech`"),
        ("unit = \"EUR a month\"", "", 1, "missing field `unit`"),
    ] {
        let problem = Prices::read("prices.toml", &LIST.replace(from, to), Catalogue::built_in()).unwrap_err();
        assert!(problem.line == line && problem.problem.contains(says), "{problem}");
    }
}

/// Reads of 8 KiB at these rates, a second each.
fn seconds(rates: &[f64]) -> Recorded {
    let reads =
        |reads_per_s: &f64| IntervalRates { reads_per_s: *reads_per_s, read_bytes: 8_192.0, ..Default::default() };
    Recorded::new(1.0, rates.iter().map(reads).collect())
}

fn ranked_seconds(recorded: &Recorded, hits: f64, cache: Option<Cache>) -> Ranking {
    let busiest = recorded.busiest().unwrap();
    let need = Need { asked: busiest.asked(0.0), per_s: busiest.per_s() * 1.5, ephemeral: false, ..need() };
    let hit_share = move |_: f64| Some(hits);
    let seconds = Seconds { recorded, headroom: 1.5, hit_share: &hit_share, cache };
    rank_recorded(Catalogue::built_in(), &need, (1, Redundancy::External), None, seconds)
}

fn of<'a>(machine: &str, kind: &str, among: &'a [Sized]) -> Option<&'a Sized> {
    let is_kind = |it: &&Sized| it.platform.volumes.as_ref().is_some_and(|volumes| volumes.kind.name == kind);
    among.iter().filter(is_kind).find(|it| it.platform.machine.name == machine)
}

#[test]
fn each_second_of_a_recorded_load_is_met_and_credits_count() {
    let calm = seconds(&[4_000.0; 100]);
    let ranking = ranked_seconds(&calm, 0.0, Some(Cache::None));
    for sized in ranking.carry.iter().chain(&ranking.fail) {
        let (times, whose) = calm.times(&sized.platform, 0.0).unwrap();
        assert!((sized.per_s / 4_000.0 - times).abs() < 1e-6 && sized.whose == whose, "{}", sized.platform.name());
    }
    // 6,000 requests/s: two P30, or those that burst to 3,500 for half an hour: two P20.
    assert_eq!(of("Standard_E32s_v3", "P30", &ranking.carry).unwrap().platform.volumes.as_ref().unwrap().count, 2);
    assert_eq!(of("Standard_E32s_v3", "P20", &ranking.carry).unwrap().platform.volumes.as_ref().unwrap().count, 2);
    let long = ranked_seconds(&seconds(&[4_000.0; 7_200]), 0.0, Some(Cache::None));
    assert_eq!(of("Standard_E32s_v3", "P20", &long.carry).unwrap().platform.volumes.as_ref().unwrap().count, 3);
}

#[test]
fn the_host_cache_counts_where_it_is_enough_or_less_is_bought_with_it() {
    let recorded = seconds(&[40_000.0, 10.0]);
    let with = ranked_seconds(&recorded, 0.9, None);
    let cached = of("Standard_E32s_v3", "P30", &with.carry).unwrap();
    // Of 60,000 with headroom, 6,000 miss.
    assert_eq!((cached.platform.cache, cached.platform.volumes.as_ref().unwrap().count), (Cache::Read, 2));
    let without = ranked_seconds(&recorded, 0.9, Some(Cache::None));
    assert!(of("Standard_E32s_v3", "P30", &without.carry).is_none(), "51,200 requests/s past the cache");
    assert!(without.carry.iter().all(|it| it.platform.cache == Cache::None));
    let only = ranked_seconds(&recorded, 0.0, Some(Cache::Read));
    assert!(only.carry.iter().chain(&only.fail).all(|it| it.platform.cache == Cache::Read));
    // A cache that answers nothing is not chosen.
    let useless = ranked_seconds(&recorded, 0.0, None);
    assert!(useless.carry.iter().all(|it| it.platform.cache == Cache::None));
}

#[test]
fn volumes_are_written_as_they_are_read() {
    let ranking = ranked(&need(), None);
    for volumes in ranking.carry.iter().chain(&ranking.fail).filter_map(|it| it.platform.volumes.as_ref()) {
        let again = Volumes::parse(&volumes.typed(), Catalogue::built_in()).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!((again.name(), again.each), (volumes.name(), volumes.each), "{}", volumes.typed());
    }
}
