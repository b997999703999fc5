//! What clouds publish, and what a platform should reach by that.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use serde_json::Value;

use crate::place::{Answer, Place};

fn expect(place: &Place, words: &str) -> Answer {
    let words: Vec<&str> = ["expect"].into_iter().chain(words.split_whitespace()).collect();
    place.run(&words)
}

fn sustained(document: &Value) -> (f64, String) {
    let sustained = &document["sustained"];
    (sustained["requests_per_s"].as_f64().unwrap(), sustained["binds"].as_str().unwrap().to_owned())
}

/// A refusal: exit code 2, nothing on standard output, an error and a hint that hold these words.
fn refused(answer: &Answer, error: &str, hint: &str) {
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(2), ""), "{answer}");
    let lines: Vec<&str> = answer.stderr.lines().collect();
    assert!(lines.len() == 2 && lines[0].starts_with("error: ") && lines[0].contains(error), "{answer}");
    assert!(lines[1].starts_with("hint: ") && lines[1].contains(hint), "{answer}");
}

#[test]
fn the_first_seeds_platforms_reach_what_its_author_reasoned() {
    let place = Place::new();
    // 16 P30 on two nodes allow 80,000; 32 P30 behind two M64 are held by the machines' 40,000 each, unless the cache serves all.
    for (words, per_s, binds) in [
        ("--machine D8s_v3 --volume p30x2", 10_000.0, "volumes_iops"),
        ("--machine E32s_v3 --volume p30x16", 80_000.0, "volumes_iops"),
        ("--machine M64 --volume p30x32 --cache read", 80_000.0, "machine_iops"),
        ("--machine M64 --volume p30x32 --cache read --cache-hit 100", 160_000.0, "cache_iops"),
        ("--machine M128s --volume p60x8", 128_000.0, "volumes_iops"),
    ] {
        let answer = expect(&place, &format!("{words} --nodes 2 --redundancy normal --json"));
        assert_eq!(answer.code, Some(0), "{answer}");
        assert_eq!(sustained(&answer.json()), (per_s, binds.to_owned()), "{words}");
    }
}

#[test]
fn an_expectation_reads_as_sentences_and_tables_with_their_sources() {
    let place = Place::new();
    let text =
        expect(&place, "--machine m64s --volume p30x32 --nodes 2 --cache read --redundancy normal --read-pct 90")
            .stdout;
    // Of 100 requests 90 read and 10 write twice: 110 go past the cache, of which two nodes take 80,000.
    for line in [
        "Standard_M64s x 2 with P30 x 32, read cache, normal redundancy should reach 72,727 requests/s (595 MB/s)",
        "the machines' requests to volumes bind.",
        "Next, at 145,454 requests/s, would be the volumes' requests.",
        "With full credits it gives 145,454 requests/s for",
        "By mix",
        "By size of requests",
        "By what the host's cache serves",
        "the machines' network (not to volumes)",
        "M-series (of 2020-03-31, read on 2026-11-25)",
    ] {
        assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(line), "{line}\n{text}");
    }
}

#[test]
fn a_burst_says_how_long_it_lasts_and_how_long_a_test_must_be() {
    let place = Place::new();
    let document = expect(&place, "--machine m5.24xlarge --volume gp2:100G --json").json();
    let phases = document["phases"].as_array().unwrap();
    assert_eq!(phases.len(), 2);
    assert_eq!((phases[0]["requests_per_s"].as_f64(), phases[0]["seconds"].as_f64()), (Some(3_000.0), Some(2_000.0)));
    assert_eq!(sustained(&document).0, 300.0);
    assert_eq!(document["seconds_to_sustained"].as_f64(), Some(2_000.0));
    assert_eq!(document["limits"][0]["credit"]["full"].as_f64(), Some(5.4e6));
}

#[test]
fn storage_of_which_no_bytes_are_published_promises_none() {
    let place = Place::new();
    let asks = "--machine i3.large --volume local --block-size 64K";
    let document = expect(&place, &format!("{asks} --json")).json();
    assert_eq!(document["no_limit_is_known_of"][0], "bytes read from the storage in i3.large");
    assert!(document["sustained"]["megabytes_per_s"].is_null(), "{}", document["sustained"]);
    let text = expect(&place, asks).stdout;
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("should reach at most 100,125 requests/s of 64 KiB"), "{text}");
    let row = |size: &str| text.lines().find(|line| line.trim_start().starts_with(size)).unwrap().to_owned();
    assert!(row("64 KiB").contains("<= 100,125") && row("64 KiB").contains('?'), "{text}");
    assert!(!row("4 KiB").contains("<=") && row("4 KiB").contains("410"), "{text}");
    let shown = place.done(&["platforms", "show", "i3.large"]).stdout;
    assert!(shown.contains("100,125 reads/s and 35,000 writes/s of 4 KiB, ? MB/s read"), "{shown}");
}

#[test]
fn names_that_say_nothing_are_refused_with_the_nearest() {
    let place = Place::new();
    refused(&expect(&place, "--machine M46s --volume p30"), "no machine is called `M46s`", "Standard_M64s");
    refused(&expect(&place, "--machine M64s --volume p33"), "no volume is called `p33`", "P30");
    refused(&expect(&place, "--machine M64s --volume gp3"), "gp3 is of AWS", "platforms list");
    refused(
        &expect(&place, "--machine M64s --volume p60 --cache read"),
        "cannot lie before P60",
        "leave out `--cache`",
    );
    refused(&expect(&place, "--machine M64s --volume p30 --cache-hit 10"), "without the host's cache", "--cache read");
    refused(&expect(&place, "--machine M64s --volume p30 --block-size 0"), "not a size", "8K");
    refused(&place.run(&["platforms", "show", "p31"]), "no machine or volume is called `p31`", "P30");
    refused(&place.run(&["platforms", "list", "abacus"]), "`abacus`", "platforms list");
}

#[test]
fn the_catalogue_is_listed_and_shown_with_where_it_is_from() {
    let place = Place::new();
    let list = place.done(&["platforms", "list"]).stdout;
    for name in ["Standard_D8s_v3", "m5.large", "P30", "gp2", "hyperdisk-extreme", "OCI Balanced"] {
        assert!(list.contains(name), "{name}\n{list}");
    }
    let one = place.done(&["platforms", "list", "m64s", "--json"]).json();
    assert_eq!(one["machines"].as_array().unwrap().len(), 2, "M64s and M64s_v2");
    let shown = place.done(&["platforms", "show", "d8s"]).stdout;
    assert!(shown.contains("Standard_D8s_v3 (Azure)") && shown.contains("12,800 requests/s, 192 MB/s"), "{shown}");
    assert!(shown.contains("https://learn.microsoft.com/azure/virtual-machines/dv3-dsv3-series"), "{shown}");
    let gp2 = place.done(&["platforms", "show", "gp2"]).stdout;
    assert!(gp2.contains("3 per GiB, at least 100, at most 16,000") && gp2.contains("5,400,000"), "{gp2}");
    let check = place.done(&["platforms", "check", "premium"]).stdout;
    assert!(
        check.contains("entries are older than a year") && check.contains("P30") && !check.contains("Premium SSD v2"),
        "{check}"
    );
    let copied = place.done(&["platforms", "show", "r7i.large"]).stdout;
    assert!(copied.contains("a secondary copy") && copied.contains("current"), "{copied}");
    let document = place.done(&["platforms", "show", "P30", "--json"]).json();
    assert_eq!(document["volume"]["iops"]["fixed"].as_f64(), Some(5_000.0));
    assert!(document["sources"].as_array().unwrap().len() > 1);
}

const OWN: &str = r#"
[sources.ours]
document = "Data sheet of the array"
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
"#;

#[test]
fn a_users_own_file_adds_and_a_wrong_one_is_refused_with_its_line() {
    let place = Place::new();
    place.write("own.toml", OWN);
    let asks = "--machine blade --volume lunx3 --json";
    assert_eq!(expect(&place, asks).code, Some(2), "not known without the file");
    let answer = expect(&place, &format!("{asks} --platforms-file own.toml"));
    assert_eq!(sustained(&answer.json()).0, 120_000.0, "{answer}");
    // The file of the user's settings is read without being named.
    std::fs::create_dir_all(place.path("config/plimsoll")).unwrap();
    place.write("config/plimsoll/platforms.toml", OWN);
    assert_eq!(sustained(&expect(&place, asks).json()).0, 120_000.0);
    place.write("config/plimsoll/platforms.toml", &OWN.replace("iops = 40000", "iops = 0"));
    refused(&expect(&place, asks), "platforms.toml, line 16: `iops` is 0", "more than 0");
    place.write("config/plimsoll/platforms.toml", "");
    place.write("own.toml", &OWN.replace("iops =", "iop ="));
    let wrong = expect(&place, &format!("{asks} --platforms-file own.toml"));
    refused(&wrong, "own.toml, line 22: unknown field `iop`", "docs/recipes/azure-rac.md");
    refused(
        &expect(&place, &format!("{asks} --platforms-file none.toml")),
        "cannot read `none.toml`",
        "docs/recipes/azure-rac.md",
    );
}

#[test]
fn a_run_that_names_its_platform_is_reported_beside_what_that_should_reach() {
    let place = Place::with_kept_runs();
    place.done(&["runs", "tag", "format-1-sweep", "vm=E32s_v3", "disk=p30x16", "nodes=2"]);
    let says = "of 80,000 requests/s that the volumes allow; the machine allows 51,200 a node";
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let report = place.done(&["report", "format-1-sweep", "--full"]).stdout;
    assert!(flat(&report).contains(says) && report.contains("\nExpected "), "{report}");
    place.done(&["report", "format-1-sweep", "-o", "page.html"]);
    assert!(flat(&std::fs::read_to_string(place.path("page.html")).unwrap()).contains(says));
    let rows = place.done(&["table", "format-1-sweep", "--style", "matrix", "--format", "json"]).json();
    assert_eq!((&rows[0]["MAX_IOPS"], rows[0]["RAC_IOPS"].as_f64()), (&"51.2K/64K".into(), Some(80_000.0)), "{rows}");
    // A name that is nearly one brings a note; one that is none brings nothing.
    place.done(&["runs", "tag", "format-1-sweep", "vm=E33s_v3"]);
    let nearly = flat(&place.done(&["report", "format-1-sweep", "--full"]).stdout);
    assert!(nearly.contains("no machine is called `E33s_v3`") && nearly.contains("Standard_E32s_v3"), "{nearly}");
    place.done(&["runs", "tag", "format-1-sweep", "vm=rack seven"]);
    let nothing = place.done(&["report", "format-1-sweep", "--full"]).stdout;
    assert!(!nothing.contains("Expected") && !nothing.contains("nothing can be expected"), "{nothing}");
}

#[test]
fn a_database_is_held_against_the_catalogue() {
    let place = Place::with_kept_runs();
    let demand = ["fit", "--demand", "format-1-updates", "--platforms", "--json"];
    let ranked = place.done(&demand).json();
    let need = ranked["need"]["requests_per_s"].as_f64().unwrap();
    // Redo is counted with the same headroom.
    let redo = |times: &str| {
        let words = [&demand[..], &["--headroom", times]].concat();
        place.done(&words).json()["need"]["redo_megabytes_per_s"].as_f64().unwrap()
    };
    assert!(redo("2") > 0.0 && (redo("2") / redo("1") - 2.0).abs() < 1e-9);
    let rates = |list: &str| {
        let all = ranked[list].as_array().unwrap();
        all.iter().map(|it| it["requests_per_s"].as_f64().unwrap()).collect::<Vec<_>>()
    };
    assert!(!rates("carry").is_empty() && rates("carry").iter().all(|rate| *rate >= need));
    assert!(!rates("fail").is_empty() && rates("fail").iter().all(|rate| *rate < need));
    assert!(ranked["fail"][0]["binds"].is_string() && ranked["carry"][0]["price"].is_null());
    // Nine of eleven measured platforms reached what 1.6 times leave, which is the default.
    assert_eq!((ranked["headroom"].as_f64(), ranked["headroom_covers"]["of_these"].as_u64()), (Some(1.6), Some(9)));
    // Prices order them, and a quarter more headroom is a quarter more need.
    place.write("prices.toml", "unit = \"EUR\"\n[machines]\nM128s = 1\n[volumes]\nP30 = { each = 1 }\n");
    let priced = place.done(&[&demand[..], &["--prices", "prices.toml", "--headroom", "2"]].concat()).json();
    assert_eq!(priced["carry"][0]["machine"], "Standard_M128s", "{}", priced["carry"][0]);
    assert!((priced["need"]["requests_per_s"].as_f64().unwrap() / need - 1.25).abs() < 1e-9);
    let none = place.run(&[&demand[..], &["--cpus", "100000"]].concat());
    assert_eq!(none.code, Some(1), "no machine has so many: {none}");
    assert!(
        ranked["carry"].as_array().unwrap().iter().all(|it| !it["volumes"].is_null()),
        "what is built in is ephemeral"
    );
    let text = place.done(&["fit", "--demand", "format-1-updates", "--platforms"]).stdout;
    assert!(text.contains("Not in the catalogue: "), "{text}");
    assert!(text.contains("They sustain it, the fewest processors first") && text.contains("what binds"), "{text}");
    refused(&place.run(&[&demand[..], &["--headroom", "0.5"]].concat()), "`--headroom 0.5`", "1 to 100");
    place.write("prices.toml", "unit = \"EUR\"\n[machines]\nM129s = 1\n");
    let wrong = place.run(&[&demand[..], &["--prices", "prices.toml"]].concat());
    refused(&wrong, "prices.toml, line 3: no machine is called `M129s`", "Standard_M128s");
    assert_eq!(place.run(&["fit", "--demand", "format-1-updates"]).code, Some(2), "neither a run nor the catalogue");
}
