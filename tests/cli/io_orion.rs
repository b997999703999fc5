//! `plimsoll io orion`: ORION's words in, ORION's files out.

use std::process::Stdio;

use crate::manners::{long_enough, signal, wait_for};
use crate::place::{Answer, Place, kinds};

/// A volume of four servers of 5 ms each, on which minutes pass in a moment.
const SIMULATED: &str = "sim:service=5ms,servers=4,clock=simulated";

fn orion(place: &Place, own: &[&str], words: &str) -> Answer {
    let path = ["--path", SIMULATED];
    let all: Vec<&str> =
        ["io", "orion"].into_iter().chain(path).chain(own.iter().copied()).chain(words.split_whitespace()).collect();
    place.run(&all)
}

/// The text of the one file of a test that ends so.
fn file(place: &Place, testname: &str, ending: &str) -> String {
    let entries = std::fs::read_dir(place.path("")).expect("the place can be listed");
    let names = entries.map(|entry| entry.expect("it can be listed").file_name().to_string_lossy().into_owned());
    let found: Vec<String> =
        names.filter(|name| name.starts_with(&format!("{testname}_2")) && name.ends_with(ending)).collect();
    assert_eq!(found.len(), 1, "{testname}{ending}: {found:?}");
    std::fs::read_to_string(place.path(&found[0])).expect("what is there can be read")
}

#[test]
fn a_simple_walk_leaves_orions_five_files_with_what_was_planted() {
    let place = Place::new();
    let answer = orion(&place, &["--quiet"], "-run simple -testname san");
    assert_eq!(answer.code, Some(0), "{answer}");
    let iops = "Large/Small,      1,      2,      3,      4,      5\n          \
                0,    200,    400,    600,    800,    800\n          1\n          2\n";
    let mbps = "Large/Small,      0,      1,      2,      3,      4,      5\n          \
                1, 200.00\n          2, 400.00\n";
    assert_eq!(file(&place, "san", "_iops.csv"), iops);
    assert_eq!(file(&place, "san", "_mbps.csv"), mbps);
    assert!(file(&place, "san", "_lat.csv").contains("          0,5000.00,5000.00,5000.00,5000.00,6250.00\n"));
    assert!(file(&place, "san", "_summary.txt").contains("Total Data Points: 8\n"));
    assert!(file(&place, "san", "_hist.csv").contains("us:"));
    let run = place.done(&["runs", "show", "last", "--json"]).json();
    assert_eq!((&run["load"]["kind"], &run["parameters"]["TESTNAME"]), (&"orion".into(), &"san".into()));
    assert_eq!(run["steps"][6]["parameters"]["LARGE"], "2");
}

#[test]
fn streams_keep_their_requests_outstanding_and_are_warmed_before() {
    let place = Place::new();
    let words = "-run advanced -testname dw -type seq -num_streamIO 2 -matrix point -num_small 0 -num_large 3 -verbose \
                 -duration 10 -cache_size 200 -hugenotneeded";
    let answer = orion(&place, &[], words);
    assert_eq!(answer.code, Some(0), "{answer}");
    let reported = &answer.stderr;
    assert!(reported.contains("1 data point of 10.0 s: about 2 minutes"), "{answer}");
    assert!(reported.contains("warming before small0_large3: load that is not measured"), "{answer}");
    assert!(reported.contains("small0_large3: 800 large requests/s, 839 MB/s in all"), "{answer}");
    assert!(reported.contains("note: `-hugenotneeded` changes nothing"), "{answer}");
    let run = place.done(&["runs", "show", "last", "--json"]).json();
    assert_eq!(run["steps"].as_array().unwrap().len(), 1, "warming is no step");
    assert_eq!(run["steps"][0]["load"]["sessions"], 6);
}

#[test]
fn a_dry_run_lists_the_points_and_writes_nothing() {
    let place = Place::new();
    let answer = orion(&place, &["--dry-run", "--seed", "7", "--tag", "disk=p30"], "-run normal -testname san");
    assert_eq!(answer.code, Some(0), "{answer}");
    insta::assert_snapshot!(answer.reported());
    assert_eq!(std::fs::read_dir(place.path("")).unwrap().count(), 0);
}

#[test]
fn what_orion_would_refuse_is_refused_with_advice() {
    let place = Place::new();
    place.write("bad.lun", "/nowhere/at/all\n");
    place.write("dir.lun", ".\n");
    let mut reported = String::new();
    for words in [
        "",
        "-run simple",
        "-run simple -testname bad",
        "-run simple -testname dir",
        "-run simple -testname no/where",
        "-run fast -testname bad",
        "-run simple -colour",
        "-run normal -write 20",
        "-run advanced -matrix point -num_small 3",
        "-run simple --json",
        "--path sim: -run simple -testname no/where",
        "--path sim: --path /dev/sdb -run simple",
        "--path sim: -run advanced -matrix max -num_small 4000 -num_large 4000",
    ] {
        let all: Vec<&str> = ["io", "orion"].into_iter().chain(words.split_whitespace()).collect();
        let answer = place.run(&all);
        assert_eq!(answer.code, Some(2), "{words}: {answer}");
        reported += &format!("> {words}\n{}\n", answer.stderr);
    }
    insta::assert_snapshot!(reported);
    assert!(!place.path("plimsoll-runs").exists());
}

#[test]
fn orions_own_help_and_ours_are_both_there() {
    let place = Place::new();
    let theirs = place.done(&["io", "orion", "-help"]);
    assert!(theirs.stdout.starts_with("-run simple|normal|advanced|oltp|dss"), "{theirs}");
    let ours = place.done(&["io", "orion", "--help"]);
    assert!(ours.stdout.contains("--destroy-signature"), "{ours}");
}

#[test]
fn a_second_walk_of_the_same_name_replaces_no_file() {
    let place = Place::new();
    let words = "-run advanced -matrix point -num_small 1 -num_large 0 -duration 1";
    let mut refused = None;
    // Names change with the minute; of three walks two begin in the same one.
    for _ in 0..3 {
        let answer = orion(&place, &["--quiet"], words);
        refused = refused.or((answer.code == Some(2)).then_some(answer));
    }
    let refused = refused.expect("a walk is refused");
    assert!(refused.stderr.contains("is there already"), "{refused}");
    assert!(place.runs().len() < 3, "nothing is kept of a walk that did not begin");
}

#[test]
fn writes_need_the_word_that_io_run_needs() {
    let place = Place::new();
    place.write("mine.dat", &"x".repeat(4 << 20));
    place.write("san.lun", "mine.dat\n");
    let words = "io orion -run advanced -testname san -write 50 -matrix point -num_small 1 -num_large 0 -duration 1";
    let answer = place.run(&words.split_whitespace().collect::<Vec<_>>());
    assert_eq!(answer.code, Some(2), "{answer}");
    assert!(answer.stderr.contains("--destroy"), "{answer}");
    assert!(std::fs::read(place.path("mine.dat")).unwrap().iter().all(|byte| *byte == b'x'));
}

#[test]
fn ctrl_c_keeps_the_points_that_ran_and_leaves_the_others_empty() {
    let place = Place::new();
    let path = "sim:service=5ms,servers=4";
    let words =
        ["io", "orion", "--path", path, "--warmup", "0", "-run", "simple", "-duration", "10", "-testname", "cut"];
    let mut child = place.plimsoll(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let _rest = wait_for(&mut child, "step 2 of 7");
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let iops = file(&place, "cut", "_iops.csv");
    let row = iops.lines().nth(1).unwrap();
    assert!(row.starts_with("          0,    ") && row.matches(',').count() == 1, "{iops}");
    assert_eq!(file(&place, "cut", "_mbps.csv").lines().nth(1), Some("          1"));
    let run = place.done(&["runs", "show", "last", "--json"]).json();
    assert_eq!(run["outcome"], "interrupted");
}

#[test]
fn a_list_of_real_files_is_one_striped_volume() {
    let place = Place::on_disk();
    for name in ["a.dat", "b.dat"] {
        std::fs::write(place.path(name), vec![7; 4 << 20]).unwrap();
        std::fs::File::open(place.path(name)).unwrap().sync_all().unwrap();
    }
    let words =
        "io orion --warmup 0 --quiet -run advanced -simulate raid0 -stripe 64 -matrix point -num_small 2 -num_large 1";
    // No walk has the name of another.
    let walk = |seconds: &str| {
        let name = format!("san{seconds}");
        place.write(&format!("{name}.lun"), "a.dat\nb.dat\n");
        let own = ["-testname", &name, "-duration", seconds];
        place.done(&words.split_whitespace().chain(own).collect::<Vec<_>>());
        (name, place.done(&["runs", "show", "last", "--json"]).json())
    };
    let (name, run) = long_enough(walk, |(_, run)| kinds(run).len() == 2);
    let summary = file(&place, &name, "_summary.txt");
    assert!(summary.contains("Simulated Array Type: RAID 0\nStripe Depth: 64 KB\n"), "{summary}");
    assert!(summary.contains("Name: b.dat  Size: 4194304\n2 FILEs found.\n"), "{summary}");
    assert_eq!(run["target"]["facts"]["files"]["layout"]["stripe"]["unit_bytes"], 64 << 10);
    assert_eq!(kinds(&run), ["read", "large read"]);
}
