//! The catalogue, files of users, and the arithmetic of bursts.

use super::*;

fn volumes(written: &str) -> Volumes {
    Volumes::parse(written, Catalogue::built_in()).unwrap_or_else(|problem| panic!("{written}: {problem}"))
}

fn problem(written: &str) -> (String, String) {
    let problem = Volumes::parse(written, Catalogue::built_in()).unwrap_err();
    (problem.to_string(), problem.hint())
}

fn platform(machine: &str, nodes: u32, volumes: &str) -> Combination {
    let catalogue = Catalogue::built_in();
    Combination::parse(catalogue, (machine, nodes), volumes, Cache::None, Redundancy::External).unwrap()
}

fn reads(block_bytes: f64) -> Asked {
    Asked { read_share: 1.0, block_bytes, hit_share: 0.0 }
}

#[test]
fn what_is_built_in_is_whole() {
    let catalogue = Catalogue::built_in();
    assert!(catalogue.machines().len() > 640 && catalogue.volumes().len() > 70);
    for machine in catalogue.machines() {
        assert_eq!(catalogue.machine(&machine.name).unwrap().name, machine.name);
        assert!(machine.sources.iter().all(|source| catalogue.source(source).is_some()), "{}", machine.name);
        // Of C3 limits for one kind of volume alone were found.
        assert!(machine.uncached.is_some() || !machine.kinds.is_empty(), "{}", machine.name);
        assert!(machine.processors.is_some(), "{}", machine.name);
    }
    for kind in catalogue.volumes() {
        assert_eq!(catalogue.volume(&kind.name).unwrap().name, kind.name);
        let source = catalogue.source(&kind.source).unwrap();
        assert!(source.looked_up.starts_with("2026-") && !source.address.is_empty(), "{}", kind.name);
    }
}

/// On the day on which this was written; later there are more.
#[test]
fn each_entry_has_a_date_and_a_state_and_what_is_older_than_a_year_is_known() {
    let today = jiff::civil::Date::constant(2026, 11, 29);
    let catalogue = Catalogue::built_in();
    let machines = catalogue.machines().iter().map(|it| (it.name.as_str(), &it.standing));
    let kinds = catalogue.volumes().iter().map(|it| (it.name.as_str(), &it.standing));
    let all: Vec<(&str, &Standing)> = machines.chain(kinds).collect();
    let stateless: Vec<&str> =
        all.iter().filter(|(_, it)| it.state_words().is_none() || it.as_of.is_empty()).map(|(name, _)| *name).collect();
    assert_eq!(stateless, ["i3.metal"], "it is not in the dump that says so of the others");
    let is_old = |name: &str| all.iter().find(|(own, _)| *own == name).unwrap().1.is_old(today);
    for name in ["Standard_D2s_v6", "i3.metal", "VM.Standard.E5.Flex-1", "P30", "E30", "io2", "gp3", "gp2"] {
        assert!(is_old(name), "{name}");
    }
    for name in
        ["Standard_D2ds_v6", "Standard_M64s", "r7i.large", "c4d-*-8", "Premium SSD v2", "Ultra", "hyperdisk-balanced"]
    {
        assert!(!is_old(name), "{name}");
    }
    let cautions = platform("i3.metal", 1, "gp3").cautions(today).join(" ");
    assert!(cautions.contains("The limits of i3.metal are old (2023-05-31, older than a year)"), "{cautions}");
    let cautions = platform("m5.large", 1, "gp3").cautions(today).join(" ");
    // Its limits are of 2026, and a page of 2023 has the others.
    assert!(cautions.contains("Some limits of m5.large are from a secondary copy or old (2023-05-31): "), "{cautions}");
    assert!(cautions.contains("m5.large: previous generation."), "{cautions}");
}

#[test]
fn volumes_allow_what_their_size_and_what_was_bought_give() {
    // Name, requests per second, MB (10^6) per second.
    for (written, iops, mb) in [
        ("p30x32", Some(5_000.0), Some(200.0)),
        ("P30 x 2", Some(5_000.0), Some(200.0)),
        ("gp2:33G", Some(100.0), Some(128.0 * 1.048_576)),
        ("gp2:100Gx4", Some(300.0), Some(128.0 * 1.048_576)),
        ("gp2:334G", Some(1_002.0), Some(250.0 * 1.048_576)),
        ("gp2:16T", Some(16_000.0), Some(250.0 * 1.048_576)),
        ("gp3", Some(3_000.0), Some(125.0 * 1.048_576)),
        ("gp3:1T,iops=16000,throughput=1000", Some(16_000.0), Some(1_000.0 * 1.048_576)),
        ("io1:1T,iops=32000", Some(32_000.0), Some(500.0 * 1.048_576)),
        ("io1:4T,iops=48000", Some(48_000.0), Some(750.0 * 1.048_576)),
        ("io2bx:1T,iops=16000", Some(16_000.0), Some(4_000.0 * 1.048_576)),
        ("st1:1T", Some(500.0), Some(40.0 * 1.048_576)),
        ("pv2:160G,iops=80000,throughput=2000", Some(80_000.0), Some(2_000.0)),
        ("ultra:400G,iops=400000,throughput=10000", Some(400_000.0), Some(10_000.0)),
        ("io2:256G,iops=256000", Some(256_000.0), Some(4_000.0 * 1.048_576)),
        ("sc1:16T", Some(250.0), Some(192.0 * 1.048_576)),
        ("p30-plus", Some(8_000.0), Some(300.0)),
        ("hyperdisk-balanced:320G,iops=160000", Some(160_000.0), Some(625.0 * 1.048_576)),
        ("vpu60:1111G", Some(149_985.0), Some(1_199.88)),
        ("ultra:1T,iops=50000,throughput=2000", Some(50_000.0), Some(2_000.0)),
        ("anf premium:2T", None, Some(128.0 * 1.048_576)),
        ("hyperdisk-extreme:1T,iops=10000", Some(10_000.0), Some(2_500.0 * 1.048_576)),
        ("oci higher:1T", Some(50_000.0), Some(614.4)),
        ("oci balanced:200G", Some(12_000.0), Some(96.0)),
    ] {
        let each = volumes(written).each;
        assert_eq!((each.iops, each.mb_per_s), (iops, mb), "{written}");
    }
}

#[test]
fn volumes_that_cannot_be_had_are_refused_with_what_to_do() {
    for (written, says, hints) in [
        ("p31", "no volume is called `p31`", "P30"),
        ("p30:500Gx2", "comes in one size", "1024 GiB"),
        ("gp2x4", "follows from its size", "`gp2:500G`"),
        ("ultra:1Tx2", "is what was bought", "iops=10000"),
        ("io1:100G,iops=6000", "`iops=6000` cannot be had", "at most 5,000"),
        ("gp3:100G,iops=4000,throughput=1001", "cannot be had", "at most 1,000"),
        ("gp2:100G,iops=500", "cannot be bought by itself", "leave `iops=` out"),
        ("gp2:20T", "none of its sizes", "1 to 16384 GiB"),
        ("gp3:1T,speed=4", "`speed` is none of size, iops and throughput", "write NAME"),
        ("gp3:1T,iops=fast", "`iops=fast` has no number", "write NAME"),
        ("p30x0", "1 to 10000", "write NAME"),
    ] {
        let (problem, hint) = problem(written);
        assert!(problem.contains(says) && hint.contains(hints), "{written}: {problem} / {hint}");
    }
}

#[test]
fn bursts_last_as_long_as_their_vendors_say() {
    // From the tables of gp2 and of Premium SSD: how long a full credit lasts at the whole burst rate, and how long it takes to refill.
    for (written, burst_s, refill_s) in [
        ("gp2:33G", 1_862.0, 54_000.0),
        ("gp2:100G", 2_000.0, 18_000.0),
        ("gp2:334G", 2_703.0, 5_389.0),
        ("gp2:750G", 7_200.0, 2_400.0),
        ("p10", 1_800.0, 10_800.0),
    ] {
        let each = volumes(written).each;
        let credit = each.iops_credit.unwrap();
        let lasts = credit.full / (credit.burst_per_s - each.iops.unwrap());
        assert!((lasts - burst_s).abs() < 1.0, "{written}: {lasts}");
        assert!((credit.refill_s.unwrap() - refill_s).abs() < 1.0, "{written}: {:?}", credit.refill_s);
    }
    assert_eq!(volumes("gp2:1000G").each.iops_credit, None, "its base is the burst rate");
    assert_eq!(volumes("p30").each.iops_credit, None);
}

#[test]
fn a_ceiling_falls_as_credits_are_spent() {
    // Four gp2 of 100 GiB burst to 12,000 for 2,000 seconds and have 1,200 then; an m5.large bursts to 18,750, more than they ask.
    let expectation = Expectation::of(&platform("m5.large", 1, "gp2:100Gx4"), reads(8192.0));
    let rates: Vec<_> = expectation.phases.iter().map(|phase| (phase.per_s, phase.whose)).collect();
    assert_eq!(rates[0], (12_000.0, Whose::VolumesIops));
    assert_eq!(rates.last().unwrap(), &(1_200.0, Whose::VolumesIops));
    // The machine's own credit of bytes goes first: 98 MB/s are asked of a base of 81.25, with 922,500 MB of credit; its credit of
    // requests is 27.27 million, of which 8,400 are used a second.
    assert!((expectation.seconds_to_sustained() - 2_000.0).abs() < 1.0, "{:?}", expectation.phases);
    // Eight gp3 of 3,000 ask 24,000 of a machine that bursts to 18,750 for half an hour and has 3,600 then.
    let expectation = Expectation::of(&platform("m5.large", 1, "gp3:1Tx8"), reads(8192.0));
    let burst = expectation.burst().unwrap();
    assert_eq!((burst.per_s, burst.whose), (18_750.0, Whose::MachineIops));
    assert!((burst.seconds.unwrap() - 1_800.0).abs() < 1e-6, "{burst:?}");
    assert_eq!(expectation.sustained().unwrap().per_s, 3_600.0);
}

#[test]
fn size_and_mix_decide_what_binds() {
    let of = |asked| {
        let sustained = Expectation::of(&platform("E32s_v3", 1, "p30x10"), asked).sustained().unwrap();
        (sustained.whose, sustained.per_s.round())
    };
    assert_eq!(of(reads(8192.0)), (Whose::VolumesIops, 50_000.0));
    // 768 MB/s of the machine are fewer than 2,000 of the disks.
    assert_eq!(of(reads(65_536.0)), (Whose::MachineBytes, (768e6f64 / 65_536.0).round()));
    // A request of 512 KiB counts as two.
    let of_disk = Expectation::of(&platform("E32s_v3", 1, "p30"), reads(524_288.0));
    assert_eq!(of_disk.at(Whose::VolumesIops), Some(2_500.0));
    // With two copies 100 % writes reach half, and with three a third.
    let writes = |redundancy| {
        let catalogue = Catalogue::built_in();
        let platform = Combination::parse(catalogue, ("E32s_v3", 2), "p30x10", Cache::None, redundancy).unwrap();
        let asked = Asked { read_share: 0.0, block_bytes: 8192.0, hit_share: 0.0 };
        Expectation::of(&platform, asked).sustained().unwrap().per_s
    };
    assert_eq!(writes(Redundancy::Normal), 25_000.0);
    assert!((writes(Redundancy::High) - 50_000.0 / 3.0).abs() < 1e-6);
}

#[test]
fn storage_that_is_built_in_has_limits_of_its_own() {
    let local = platform("i3.large", 1, "local");
    assert_eq!(Expectation::of(&local, reads(4096.0)).sustained().unwrap().per_s, 100_125.0);
    let mixed = Asked { read_share: 0.5, block_bytes: 4096.0, hit_share: 0.0 };
    let sustained = Expectation::of(&local, mixed).sustained().unwrap();
    assert_eq!((sustained.whose, sustained.per_s), (Whose::LocalWrites, 70_000.0));
    // Nothing is published of its writes: that is said, and nothing is made up.
    let azure = platform("L8s_v3", 1, "local");
    let only_writes = Asked { read_share: 0.0, ..mixed };
    assert_eq!(Expectation::of(&azure, only_writes).sustained(), None);
    let words = sentences(&azure, &Expectation::of(&azure, mixed)).join(" ");
    assert!(words.contains("No limit is known of writes of the storage in Standard_L8s_v3"), "{words}");
}

#[test]
fn storage_of_which_no_bytes_are_published_promises_none() {
    let local = platform("i3.large", 1, "local");
    let words = |asked| sentences(&local, &Expectation::of(&local, asked)).join(" ");
    // AWS publishes its rates for requests of 4 KiB: of those all is known.
    let small = words(reads(4096.0));
    assert!(
        small.contains("should reach 100,125 requests/s (410 MB/s) of 4 KiB") && !small.contains("No limit"),
        "{small}"
    );
    let large = words(reads(65_536.0));
    assert!(large.contains("should reach at most 100,125 requests/s of 64 KiB"), "no MB/s: {large}");
    assert!(
        large.contains("No limit is known of bytes read from the storage in i3.large: the ceiling may be lower."),
        "{large}"
    );
    assert!(large.contains("are requests per second of 4 KiB. Of 64 KiB it gives no more"), "{large}");
    let expectation = Expectation::of(&local, reads(65_536.0));
    let beside = measured_against(10_000.0, &local, &expectation).unwrap();
    assert!(
        beside.ends_with("no limit is known of bytes read from the storage in i3.large, so it may allow less"),
        "{beside}"
    );
}

#[test]
fn bytes_written_to_what_is_built_in_have_a_limit_of_their_own() {
    let mut catalogue = Catalogue::built_in().clone();
    let local = "local = { read_iops = 400000, write_iops = 200000, read_throughput = 2000, write_throughput = 1000 }";
    catalogue.add("own.toml", &OWN.replacen("processors = 32", local, 1)).unwrap();
    let own = Combination::parse(&catalogue, ("blade", 2), "local", Cache::None, Redundancy::Normal).unwrap();
    let of = |read_share| {
        let asked = Asked { read_share, block_bytes: 1e6, hit_share: 0.0 };
        assert!(Unpublished::of(&own, &asked).is_empty());
        let sustained = Expectation::of(&own, asked).sustained().unwrap();
        (sustained.whose, sustained.per_s)
    };
    assert_eq!(of(1.0), (Whose::LocalBytes, 4_000.0));
    // Of each write there are two copies.
    assert_eq!(of(0.0), (Whose::LocalWriteBytes, 1_000.0));
    assert_eq!(of(0.5), (Whose::LocalWriteBytes, 2_000.0));
}

#[test]
fn a_network_that_bursts_is_not_said_to_be_seen_from_the_first_minute() {
    let words = |machine, volumes| {
        let platform = platform(machine, 2, volumes);
        sentences(&platform, &Expectation::of(&platform, reads(65_536.0))).join(" ")
    };
    // An m5.large has 750 Mbit/s and bursts to 10,000; an m5.8xlarge has no burst, and to an io1 no network counts.
    let bursts = words("m5.large", "fsx:10T,throughput=2000");
    assert!(bursts.contains("network bursts from 187 to 2,500 MB/s for an unpublished time"), "{bursts}");
    assert!(!bursts.contains("on credit"), "{bursts}");
    let none = "None of these limits is on credit: a test sees them from its first minute.";
    assert!(words("m5.8xlarge", "fsx:10T,throughput=2000").contains(none));
    let machine = words("m5.large", "io1:1T,iops=30000");
    assert!(machine.contains("With full credits") && !machine.contains("network"), "{machine}");
}

#[test]
fn what_is_bought_without_a_published_most_is_said() {
    let fsx = platform("m5.8xlarge", 1, "fsx:10T,throughput=100000");
    let words = sentences(&fsx, &Expectation::of(&fsx, reads(8192.0))).join(" ");
    let says = "No limit is known of the most throughput that can be bought of FSx ONTAP: the ceiling may be lower.";
    assert!(words.contains(says) && words.contains("should reach at most"), "{words}");
    assert!(problem("gp3:1T,iops=16000,throughput=2001").1.contains("at most 2,000"));
}

#[test]
fn what_does_not_go_together_is_refused() {
    let of = |machine, nodes, volumes, cache| {
        let catalogue = Catalogue::built_in();
        let problem = Combination::parse(catalogue, (machine, nodes), volumes, cache, Redundancy::External);
        problem.unwrap_err().to_string()
    };
    assert!(of("m5.large", 1, "p30x2", Cache::None).contains("P30 is of Azure, m5.large of AWS"));
    assert!(of("D8s_v3", 1, "p30x17", Cache::None).contains("17 volumes on each Standard_D8s_v3, which takes 16"));
    let small = of("c4d-standard-2", 1, "hyperdisk-extreme:1T,iops=1000", Cache::None);
    assert!(small.contains("c4d-*-2 cannot have hyperdisk-extreme"), "{small}");
    assert!(of("m5.large", 2, "gp3", Cache::None).contains("2 nodes share gp3 x 1, which only one can have"));
    assert!(of("D8s_v3", 4, "p10x2", Cache::None).contains("4 nodes share P10 x 2, which 3 can"));
    assert!(of("i3.large", 2, "io2:1T,iops=1000", Cache::None).contains("which only one can have"), "without Nitro");
    assert!(of("m5.large", 1, "gp3", Cache::Read).contains("no host cache of m5.large"));
    assert!(of("D8s_v3", 1, "local", Cache::None).contains("no storage that is built into Standard_D8s_v3"));
    assert!(of("D8s_v3", 0, "p30", Cache::None).contains("0 nodes"));
}

const OWN: &str = r#"
[sources.ours]
document = "Data sheet"
address = "rack 7"
as_of = "2026"
looked_up = "2026-11-25"

[[series]]
cloud = "ours"
name = "blades"
source = "ours"
machines = [
  { name = "blade", processors = 32, uncached = [200000, 3000] },
]

[[volumes]]
cloud = "ours"
name = "lun"
kind = "array"
source = "ours"
unit = "MB/s"
iops = 40000
throughput = 800

[[volumes]]
cloud = "Azure"
name = "P30"
kind = "Premium SSD"
source = "azure-premium"
size_gib = 1024
unit = "MB/s"
iops = 8000
throughput = 300
"#;

#[test]
fn a_users_file_adds_and_corrects() {
    let mut catalogue = Catalogue::built_in().clone();
    let known = catalogue.volumes().len();
    catalogue.add("own.toml", OWN).unwrap();
    assert_eq!(catalogue.volumes().len(), known + 1, "one is new and one is corrected");
    assert_eq!(Volumes::parse("p30", &catalogue).unwrap().each.iops, Some(8_000.0));
    let own = Combination::parse(&catalogue, ("Blade", 1), "lun x 2", Cache::None, Redundancy::External).unwrap();
    assert_eq!(Expectation::of(&own, reads(8192.0)).sustained().unwrap().per_s, 80_000.0);
}

#[test]
fn a_users_entry_has_its_names_whatever_is_built_in() {
    let of = |from: &str, to: &str| {
        let mut catalogue = Catalogue::built_in().clone();
        catalogue.add("own.toml", &OWN.replacen(from, to, 1)).unwrap();
        catalogue
    };
    let iops = |catalogue: &Catalogue, name: &str| Volumes::parse(name, catalogue).unwrap().each.iops;
    // Its name is an alias of one that is built in, which keeps its own name.
    let named = of("name = \"lun\"", "name = \"pv2\"");
    assert_eq!(iops(&named, "pv2"), Some(40_000.0));
    assert_eq!(iops(&named, "premium-ssd-v2:1T"), Some(3_000.0));
    // Its alias is one of another, or the name of another, which it then takes the place of.
    assert_eq!(iops(&of("name = \"lun\"", "name = \"lun\"\naliases = [\"pv2\"]"), "PV2"), Some(40_000.0));
    let known = of("name = \"lun\"", "name = \"lun\"").volumes().len();
    let renamed = of("name = \"lun\"", "name = \"lun\"\naliases = [\"p40\", \"p50\"]");
    assert_eq!((iops(&renamed, "p40"), iops(&renamed, "P50")), (Some(40_000.0), Some(40_000.0)));
    assert_eq!(renamed.volumes().len(), known - 2, "two are replaced by one");
    // So it is with machines.
    let machines = of("name = \"blade\"", "name = \"blade\", aliases = [\"m5.large\"]");
    assert_eq!(machines.machine("M5.Large").unwrap().processors, Some(32));
}

const ROWS: &str = r#"
[sources.ours]
document = "Data sheet"
address = "rack 7"
as_of = "2026"
looked_up = "2026-11-25"

[[series]]
cloud = "ours"
name = "blades"
source = "ours"
columns = "name processors uncached local.read_iops kinds.lun retires"
rows = """
blade-1 32 200000/3000 ? 5000/100 2027-03-31
blade-2 ? ? 400000.5 ? ?
"""

[[volume_rows]]
same = { cloud = "ours", kind = "array", source = "ours", unit = "MB/s", limits = "lun" }
columns = "name aliases iops throughput.per_gib burst.iops burst.minutes"
rows = """
lun~one l1,first 40000 0.5 60000 10
"""
"#;

#[test]
fn a_line_is_an_entry_whose_question_marks_are_not_known() {
    let mut catalogue = Catalogue::built_in().clone();
    catalogue.add("own.toml", ROWS).unwrap();
    let first = catalogue.machine("blade-1").unwrap();
    assert_eq!((first.processors, first.uncached), (Some(32), Some(Rates { iops: 200_000.0, mb_per_s: 3_000.0 })));
    assert_eq!(first.standing.state_words().as_deref(), Some("retires on 2027-03-31"));
    let second = catalogue.machine("blade-2").unwrap();
    assert_eq!((second.processors, second.uncached, second.standing.state_words()), (None, None, None));
    assert_eq!(second.local.unwrap().read_iops, 400_000.5);
    let lun = Volumes::parse("first:1000G", &catalogue).unwrap();
    assert_eq!((lun.kind.name.as_str(), lun.each.iops, lun.each.mb_per_s), ("lun one", Some(40_000.0), Some(500.0)));
    assert_eq!(lun.each.iops_credit.unwrap().full, 20_000.0 * 600.0);
    // The limits for that kind of volume are the machine's own, and what has none is not known.
    let of = |machine| {
        let volumes = "l1:1000G";
        Combination::parse(&catalogue, (machine, 1), volumes, Cache::None, Redundancy::External).unwrap()
    };
    assert_eq!(Expectation::of(&of("blade-1"), reads(4096.0)).sustained().unwrap().per_s, 5_000.0);
    let unknown = Unpublished::of(&of("blade-2"), &reads(4096.0));
    assert_eq!(unknown.words(), "what blade-2 sends to array");
}

#[test]
fn a_wrong_line_says_which_and_what_is_wrong() {
    for (from, to, line, says) in [
        ("blade-2 ? ? 400000.5 ? ?", "blade-2 ? ? 400000.5 ?", 15, "5 cells below 6 columns"),
        ("blade-1 32 200000/3000", "blade-1 32 200000", 14, "invalid type"),
        ("blade-1 32 200000/3000", "blade-1 32 200000/fast", 14, "invalid type"),
        ("blade-2 ? ?", "blade-2 many ?", 15, "invalid type"),
        ("blade-2 ? ? 400000.5", "blade-2 ? ? -1", 15, "`read_iops` is -1"),
        ("blade-2", "Blade_1", 15, "stands here a second time"),
        ("name processors uncached", "name cores uncached", 14, "unknown field `cores`"),
        ("throughput.per_gib", "iops.per_gib", 22, "is not inside a table"),
        ("0.5 60000 10", "0.5 60000 ?", 22, "does not say how long it lasts"),
        ("source = \"ours\", unit", "source = \"theirs\", unit", 22, "no source is called `theirs`"),
    ] {
        assert!(ROWS.contains(from), "{from}");
        let problem = Catalogue::built_in().clone().add("own.toml", &ROWS.replacen(from, to, 1)).unwrap_err();
        assert!(problem.line == line && problem.problem.contains(says), "{to}: {problem}");
    }
}

/// What documents of 2024 to 2026 say otherwise than those of 2020 to 2023, as far as no other test has it.
#[test]
fn what_was_out_of_date_is_as_it_is_published_now() {
    let of = |name: &str| Catalogue::built_in().machine(name).unwrap();
    let pair = |rates: Option<Rates>| rates.map(|rates| (rates.iops, rates.mb_per_s));
    let e8 = of("E8bds_v5");
    assert_eq!(pair(e8.uncached), Some((24_200.0, 680.0)));
    assert_eq!(pair(e8.ultra), Some((32_400.0, 680.0)));
    // Over NVMe all sizes have other limits.
    assert_eq!(pair(of("E8bds_v5_NVMe").uncached), Some((33_000.0, 930.0)));
    assert_eq!(pair(of("E64bds_v5_NVMe").ultra_burst), Some((310_000.0, 8_500.0)));
    assert_eq!(pair(of("M32ms").uncached_burst), Some((40_000.0, 1_000.0)));
    assert_eq!(pair(of("M128s").cached_burst), Some((250_000.0, 4_000.0)));
    assert_eq!(pair(of("D8s_v3").uncached_burst), Some((16_000.0, 400.0)));
    assert_eq!(pair(of("r6in.large").uncached), Some((6_250.0, 195.3125)));
    assert_eq!(of("i3.8xlarge").network_mbit, Some(12_000.0));
    // A volume on Xen gives 32,000, whatever was bought for it.
    let xen = Expectation::of(&platform("x1.32xlarge", 1, "io2:1T,iops=64000"), reads(8192.0));
    assert_eq!(xen.sustained().unwrap().per_s, 32_000.0);
    // 8 KiB come at 1,350 MB/s from one volume with 120 VPUs: 1,350,000,000 / 8,192 = 164,794; larger ones no more often.
    let of_ultra =
        |bytes| Expectation::of(&platform("BM.Standard.E5.192", 1, "vpu120:2000G"), reads(bytes)).sustained();
    assert_eq!(of_ultra(8_192.0).unwrap().per_s.floor(), 164_794.0);
    assert_eq!(of_ultra(4_096.0).unwrap().per_s, 300_000.0);
    assert_eq!(of_ultra(12_288.0).unwrap().per_s.floor(), 164_794.0);
    assert_eq!(of_ultra(262_144.0).unwrap().per_s.floor(), (2_680e6f64 / 262_144.0).floor());
    // A random request of 8 KiB takes 1 MiB of st1: 12.5 TiB have 500 MiB/s, and so 500 of them.
    let st1 = Expectation::of(&platform("m7i.16xlarge", 1, "st1:1T"), reads(8_192.0));
    assert_eq!((st1.sustained().unwrap().whose, st1.sustained().unwrap().per_s), (Whose::VolumesBytes, 40.0));
}

#[test]
fn a_wrong_file_says_where_and_what_to_do() {
    for (from, to, line, says) in [
        ("iops = 40000", "iops = -1", 16, "`iops` is -1"),
        ("iops = 40000", "iops = { per_gib = 3, provisioned = true }", 16, "in 2 ways"),
        ("iops = 40000", "iops = { up_to = [[200, 8], [100, 9]] }", 16, "`iops` has `up_to` 100 after 200"),
        ("iops = 40000", "iops = { up_to = [[200, 8], [200, 9]] }", 16, "sizes do not rise"),
        (
            "iops = 40000",
            "iops = { per_gib = 3, min = 900, max = 100 }",
            16,
            "at least 900 (`min`) and at most 100 (`max`)",
        ),
        ("iops = 40000", "iops = { per_gib = 3, included = 100 }", 16, "nothing is provisioned"),
        ("iops = 40000", "iops = { provisioned = true, min = 5, max = 9 }", 16, "is provisioned and has a `min`"),
        ("iops = 40000", "iops = { provisioned = true, included = 9, max = 5 }", 16, "has 9 `included` and at most 5"),
        ("iops = 40000", "iops = { per_iops = 2 }", 16, "`iops` follows from itself"),
        ("iops = 40000", "burst = { iops = { provisioned = true }, minutes = 3 }", 16, "`burst` is provisioned"),
        ("iops = 40000", "on_demand_burst = { iops = -1, throughput = 5 }", 16, "`on_demand_burst.iops` is -1"),
        ("iops = 40000", "on_demand_burst = { iops = 1, throughput = 0 }", 16, "`on_demand_burst.throughput` is 0"),
        ("iops = 40000", "iops = { per_gb = 3 }", 22, "unknown field `per_gb`"),
        ("iops = 40000", "iops = \"many\"", 22, "a rate, such as"),
        ("source = \"ours\"\nunit", "source = \"theirs\"\nunit", 16, "no source is called `theirs`"),
        ("name = \"lun\"", "name = \"P-30\"", 25, "`P30` stands here a second time"),
        ("processors = 32", "processor = 32", 13, "unknown field `processor`"),
        ("uncached = [200000, 3000]", "uncached = [200000]", 13, "invalid length 1"),
        ("unit = \"MB/s\"\niops = 40000", "unit = \"MB\"\niops = 40000", 21, "unknown variant `MB`"),
        ("processors = 32,", "uncached_burst = [300000, 2000],", 13, "`uncached_burst` is less than `uncached`"),
        ("processors = 32,", "uncached_burst = [300000, 4000],", 13, "does not say how long it lasts"),
        ("[[volumes]]\ncloud = \"ours\"", "[[volumes]\ncloud = \"ours\"", 16, ""),
    ] {
        assert!(OWN.contains(from), "{from}");
        let text = OWN.replacen(from, to, 1);
        let mut catalogue = Catalogue::built_in().clone();
        let problem = catalogue.add("own.toml", &text).unwrap_err();
        assert_eq!(problem.line, line, "{to}: {problem}");
        assert!(
            problem.to_string().starts_with("own.toml, line ") && problem.problem.contains(says),
            "{to}: {problem}"
        );
        assert!(!problem.hint.is_empty());
        assert!(catalogue.machine("blade").is_err(), "nothing was added");
    }
}

#[test]
fn words_say_how_long_bursts_last_and_how_long_a_test_must_be() {
    let platform = platform("m5.24xlarge", 1, "gp2:100G");
    let words = sentences(&platform, &Expectation::of(&platform, reads(8192.0)));
    assert_eq!(
        words,
        [
            "m5.24xlarge with gp2 of 100 GiB x 1 should reach 300 requests/s (2 MB/s) of 8 KiB with 100 % reads: the volumes' \
             requests bind.",
            "Next, at 80,000 requests/s, would be the machines' requests to volumes.",
            "With full credits it gives 3,000 requests/s for 33 min 20 s (until the credit of the volumes' requests is spent), \
             then 300 requests/s.",
            "To see what lasts, a test must apply full load for more than 33 min 20 s, with full credits at its start.",
            "The credit of the volumes' requests: 5,400,000 requests beyond the base, which are there again after 5 h without load.",
        ]
    );
}

#[test]
fn a_flow_is_at_a_limit_of_its_own_vendor_alone() {
    let like = |machine, gbit| flow_like(machine, gbit * 1e9).map(|(limit, _)| limit);
    assert_eq!(like(Some("Amazon EC2 m7i.large"), 4.96), Some(5.0));
    assert_eq!(like(Some("Amazon EC2 m7i.large"), 9.41), Some(10.0));
    assert_eq!(like(Some("Amazon EC2 m7i.large"), 7.0), None);
    assert_eq!(like(Some("Amazon EC2 m7i.large"), 5.2), None);
    assert_eq!(like(Some("Dell Inc. PowerEdge"), 9.41), None);
    assert_eq!(like(None, 4.96), None);
}

#[test]
fn a_rate_is_like_the_nearest_published_cap_or_like_none() {
    let requests = |per_s| like(false, per_s, 0.01);
    let bytes = |per_s| like(true, per_s, 0.01);
    assert_eq!(requests(5_020.0), Some("Azure P30"));
    assert_eq!(requests(5_100.0), None);
    assert_eq!(requests(7_500.0), Some("Azure P40 and P50"));
    assert_eq!(
        requests(3_000.0),
        Some(
            "Azure Premium SSD v2, AWS gp3, GCP hyperdisk-balanced, hyperdisk-balanced-ha, the burst of AWS gp2 and the largest OCI Lower Cost"
        )
    );
    assert_eq!(requests(3_500.0), Some("the burst of Azure Premium SSD"));
    assert_eq!(requests(30_000.0), Some("the on-demand burst of Azure Premium SSD"));
    assert_eq!(bytes(131.5e6), Some("AWS gp3"));
    assert_eq!(bytes(134.0e6), Some("AWS gp2 up to 170 GiB"));
}

fn named(name: &str) -> Result<&'static str, NameError> {
    const NAMES: [&str; 6] =
        ["Standard_D8s_v3", "Standard_M64s", "Standard_M64s_v2", "Standard_E2x_v4", "Standard_E2x_v5", "m5.large"];
    static NONE: [String; 0] = [];
    find(Named::Machine, name, NAMES.iter().map(|name| (name, *name, &NONE[..]))).copied()
}

#[test]
fn a_name_is_found_in_any_way_of_writing_it() {
    for name in ["Standard_D8s_v3", "D8s_v3", "d8s", "d8sv3", " D8S-v3 ", "standard_d8s"] {
        assert_eq!(named(name).unwrap(), "Standard_D8s_v3", "{name}");
    }
    assert_eq!(named("M64s").unwrap(), "Standard_M64s", "the whole name counts first");
    assert_eq!(named("m5.large").unwrap(), named("M5 Large").unwrap());
}

#[test]
fn of_a_volume_the_version_cannot_be_left_out() {
    let aliases = ["pv2".to_owned()];
    let volume = |name| find(Named::Volume, name, [(&2, "Premium SSD v2", &aliases[..])].into_iter()).copied();
    for name in ["Premium SSD v2", "premium-ssd-v2", "PV2"] {
        assert_eq!(volume(name), Ok(2), "{name}");
    }
    for name in ["premium-ssd", "Premium SSD", "p"] {
        assert!(matches!(volume(name), Err(NameError::Unknown { what: "volume", .. })), "{name}");
    }
    assert_eq!(volume("premium-ssd").unwrap_err().hint().split(';').next(), Some("the nearest are Premium SSD v2"));
}

#[test]
fn a_name_that_says_nothing_brings_the_nearest() {
    let ambiguous = named("e2x").unwrap_err();
    assert!(matches!(&ambiguous, NameError::Ambiguous { among, .. } if among.len() == 2), "{ambiguous:?}");
    assert_eq!(ambiguous.hint(), "write one of Standard_E2x_v4, Standard_E2x_v5");
    let unknown = named("m46sv2").unwrap_err();
    assert!(matches!(&unknown, NameError::Unknown { near, .. } if near[0] == "Standard_M64s_v2"), "{unknown:?}");
    assert!(unknown.is_near() && ambiguous.is_near());
    for far in ["", "abacus", "db1", "ibm-z16-max"] {
        assert!(!named(far).unwrap_err().is_near(), "{far}");
    }
}
