//! The tables of the project's first seed: what its author expected of each combination that he measured, and why.

use super::*;

/// Machine, nodes, volumes, cache, share of reads that hit, what the author took the ceiling to be, whose, and what he measured.
type Row = (&'static str, &'static str, Cache, f64, f64, Whose, f64);

const READ: Cache = Cache::Read;
const NONE: Cache = Cache::None;

/// Every row of the tables, two nodes each, read only (the tests were of `db file sequential read`). `QTR` is disks of both nodes.
const ROWS: [Row; 11] = [
    // Deployment 1: "RAC_IOPS" is what the disks of the group allow, and binds throughout.
    ("D8s_v3", "p30x2", NONE, 0.0, 10_000.0, Whose::VolumesIops, 8_039.0),
    ("E32s_v3", "p30x2", READ, 0.0, 10_000.0, Whose::VolumesIops, 9_215.0),
    ("E32s_v3", "p30x16", NONE, 0.0, 80_000.0, Whose::VolumesIops, 61_000.0),
    ("E32s_v3", "p30x16", READ, 0.0, 80_000.0, Whose::VolumesIops, 44_000.0),
    ("E32s_v3", "p60x2", NONE, 0.0, 32_000.0, Whose::VolumesIops, 25_000.0),
    ("E32s_v3", "p80x2", NONE, 0.0, 40_000.0, Whose::VolumesIops, 33_000.0),
    // Test 1, 100 % cache hits: two nodes of 80K through the cache. With and without Write Accelerator for redo.
    ("M64", "p30x32", READ, 1.0, 160_000.0, Whose::CacheIops, 125_000.0),
    ("M64", "p30x32", READ, 1.0, 160_000.0, Whose::CacheIops, 107_000.0),
    // Test 2, few hits: "VM Max NONE CACHE IOPS limitation applied", two nodes of 40K, "disk IO near 2.5K on each disk".
    ("M64", "p30x32", READ, 0.0, 80_000.0, Whose::MachineIops, 67_000.0),
    // Test 3, resized to M128: "disk IO hit to 5000 when cache rate is low".
    ("M128s", "p30x32", READ, 0.0, 160_000.0, Whose::VolumesIops, 77_000.0),
    // Test 4: P60 have no host cache; 16K each.
    ("M128s", "p60x8", NONE, 0.0, 128_000.0, Whose::VolumesIops, 80_000.0),
];

fn expectation((machine, volumes, cache, hit_share, ..): Row) -> (Combination, Expectation) {
    let catalogue = Catalogue::built_in();
    let platform = Combination::parse(catalogue, (machine, 2), volumes, cache, Redundancy::Normal).unwrap();
    let asked = Asked { read_share: 1.0, block_bytes: 8192.0, hit_share };
    let expectation = Expectation::of(&platform, asked);
    (platform, expectation)
}

#[test]
fn every_row_of_the_seeds_tables_comes_out_as_its_author_reasoned() {
    for row in ROWS {
        let (_, expectation) = expectation(row);
        let (machine, volumes, cache, hits, per_s, whose, measured) = row;
        let sustained = expectation.sustained().unwrap();
        // Where two limits are the same, either binds: the two nodes' M128s and 32 P30 both allow 160K.
        let at = expectation.at(whose).unwrap();
        assert_eq!(at, per_s, "{machine} {volumes} {cache:?} {hits}");
        assert_eq!(sustained.per_s, per_s, "{machine} {volumes} {cache:?} {hits}");
        assert!(measured <= per_s, "nobody measured more than {machine} with {volumes} allows");
        assert_eq!(sustained.seconds, None);
    }
}

#[test]
fn the_headroom_is_chosen_from_these_rows() {
    assert_eq!(ROWS.map(|(.., published, _, measured)| (measured, published)), MEASURED_OF_PUBLISHED);
    // 80.4, 92.2, 76.3, 55.0, 78.1, 82.5, 78.1, 66.9, 83.8, 48.1 and 62.5 %. Of 1.3 times the demand 76.9 % are enough: six reached that. Of
    // 1.5 times 66.7 %: eight. Of 1.6 times 62.5 %: nine. All of them need 2.08 times.
    for (headroom, covered) in [(1.0, 0), (1.3, 6), (1.5, 8), (DEFAULT_HEADROOM, 9), (2.0, 10), (2.08, 11)] {
        assert_eq!(covered_by(headroom), covered, "{headroom}");
    }
}

#[test]
fn the_limits_of_the_seeds_machines_are_those_of_its_table() {
    // Size, processors, memory, data disks, cached IOPS, MB/s and GiB, uncached IOPS and MB/s, network in Mbit/s.
    let rows: [(&str, [f64; 9]); 6] = [
        ("D8s_v3", [8.0, 32.0, 16.0, 16e3, 128.0, 200.0, 12_800.0, 192.0, 4_000.0]),
        ("E32s_v3", [32.0, 256.0, 32.0, 64e3, 512.0, 800.0, 51_200.0, 768.0, 16_000.0]),
        ("E64s_v3", [64.0, 432.0, 32.0, 128e3, 1024.0, 1600.0, 80_000.0, 1200.0, 30_000.0]),
        ("M64", [64.0, 1024.0, 64.0, 80e3, 800.0, 1228.0, 40_000.0, 1000.0, 16_000.0]),
        ("M64s", [64.0, 1024.0, 64.0, 80e3, 800.0, 6348.0, 40_000.0, 1000.0, 16_000.0]),
        ("M128", [128.0, 2048.0, 64.0, 250e3, 1600.0, 2456.0, 80_000.0, 2000.0, 32_000.0]),
    ];
    for (name, wanted) in rows {
        let machine = Catalogue::built_in().machine(name).unwrap();
        let (cached, uncached) = (machine.cached.unwrap(), machine.uncached.unwrap());
        let found = [
            f64::from(machine.processors.unwrap()),
            machine.memory_gib.unwrap(),
            f64::from(machine.data_disks.unwrap()),
            cached.iops,
            cached.mb_per_s,
            machine.cache_gib.unwrap(),
            uncached.iops,
            uncached.mb_per_s,
            machine.network_mbit.unwrap(),
        ];
        assert_eq!(found, wanted, "{name}");
    }
}

#[test]
fn a_measured_rate_stands_beside_what_is_allowed() {
    let (platform, expectation) = expectation(ROWS[2]);
    assert_eq!(
        measured_against(61_000.0, &platform, &expectation).unwrap(),
        "61,000 of 80,000 requests/s that the volumes allow; the machine allows 51,200 a node"
    );
    let (platform, expectation) = self::expectation(ROWS[8]);
    assert_eq!(
        measured_against(67_000.0, &platform, &expectation).unwrap(),
        "67,000 of 80,000 requests/s that the machines allow; the volumes allow 160,000"
    );
}

#[test]
fn disks_of_four_tebibytes_and_more_have_no_host_cache() {
    let of = |volumes| Combination::parse(Catalogue::built_in(), ("M128s", 2), volumes, READ, Redundancy::Normal);
    let problem = of("p60x8").unwrap_err();
    assert_eq!(problem.to_string(), "the host's cache cannot lie before P60");
    assert!(of("p30x32").is_ok());
}

#[test]
fn one_volume_of_azure_netapp_files_gives_what_the_seed_found_by_its_size() {
    // "128 MB/s * 32 = 4096 MB/s", and 1 GiB/s with 8 TiB; of 3,900 MB/s that were measured on a D32s_v3 or D64s_v3.
    let asked = Asked { read_share: 1.0, block_bytes: 1_048_576.0, hit_share: 0.0 };
    for (size, mib) in [("8T", 1024.0), ("16T", 2048.0), ("32T", 4096.0)] {
        let volumes = Volumes::parse(&format!("anf ultra:{size}"), Catalogue::built_in()).unwrap();
        assert_eq!(volumes.each.mb_per_s, Some(mib * 1.048_576), "{size}");
        let machine = Catalogue::built_in().machine("D64s_v3").unwrap().clone();
        let platform = Combination::of(machine, 1, Some(volumes), NONE, Redundancy::External).unwrap();
        let sustained = Expectation::of(&platform, asked).sustained().unwrap();
        // The machine's network is published as 30,000 Mbit/s, which is 3,750 MB/s.
        let binds = if mib * 1.048_576 > 3_750.0 { Whose::Network } else { Whose::VolumesBytes };
        assert_eq!(sustained.whose, binds, "{size}");
    }
}
