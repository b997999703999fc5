//! Disk groups of plain files under raw storage and under the engine.

use std::fs::{self, File};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::errors::refused;
use crate::manners::long_enough;
use crate::place::{Answer, Place, kinds};

const SPEC: &str = "data=normal,au=1M,size=16M:a,b|c,d";

/// A run of so many seconds.
fn lasting<'a>(seconds: &'a str, spec: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let words = ["io", "run", "--group", spec, "--duration", seconds, "--warmup=0s", "--depth=4", "--quiet"];
    words.into_iter().chain(more.iter().copied()).collect()
}

fn run<'a>(spec: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    lasting("1", spec, more)
}

fn document(place: &Place) -> Value {
    place.done(&["runs", "show", "last", "--json"]).json()
}

#[test]
fn a_group_is_made_loaded_and_goes_on_without_a_member() {
    let place = Place::on_disk();
    let missing = refused(&place, &run("data=normal:a|c", &["--pattern=randread"]));
    assert!(missing.contains("is not there") && missing.contains("size=16G"), "{missing}");
    let both = ["--pattern=randrw", "--size=8M", "--verify"];
    long_enough(|seconds| place.done(&lasting(seconds, SPEC, &both)), |_| kinds(&document(&place)).len() == 2);
    assert!(["a", "b", "c", "d"].iter().all(|name| place.path(name).metadata().unwrap().len() == 16 << 20));
    let run_of = document(&place);
    assert_eq!(run_of["target"]["facts"]["files"]["io_engine"], "disk group");
    let step = &run_of["steps"][0];
    assert_eq!(step["waits"][0]["layer"], "disk group");
    let members = step["channels"].as_array().unwrap();
    let sum = |field: &str| members.iter().map(|member| member[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!(members.len(), 4, "{members:?}");
    let (writes, done) = (sum("writes"), step["counters"]["physical_writes"].as_u64().unwrap());
    // A batch of completions at an edge may count to the second before.
    assert!(writes.abs_diff(2 * done) <= 16 + done / 5, "each write goes to two members: {writes} of {done}");
    let report = place.done(&["report", "last", "--full"]).stdout;
    assert!(report.contains("Members of disk groups"), "{report}");

    std::fs::remove_file(place.path("b")).unwrap();
    let answer = place.run(&run(SPEC, &["--pattern=randrw", "--verify"]));
    assert_eq!(answer.code, Some(2), "{answer}");
    assert!(answer.stderr.contains("lacks `b`") && answer.stderr.contains("`force`"), "{answer}");
    let forced = SPEC.replace("size=16M", "size=16M,force");
    let answer = place.done(&run(&forced, &["--pattern=randrw", "--verify"]));
    assert!(answer.stderr.contains("degraded: without `b`"), "{}", answer.stderr);
    assert!(!place.path("b").exists(), "a member that was lost is not made again by itself");
}

/// A load of two minutes that somebody harms, and that ends by itself before its time.
fn harmed(place: &Place, spec: &str, pattern: &str, harm: &[&dyn Fn()]) -> Answer {
    let pattern = format!("--pattern={pattern}");
    let words = ["io", "run", "--group", spec, "--warmup=0s", "--depth=4", "--quiet", "--size=8M", &pattern];
    place.done(&[&words[..], &["--duration=200ms"]].concat());
    let mut command = place.plimsoll(&[&words[..], &["--duration=120s"]].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program can be started");
    let (begun, tasks) = (Instant::now(), format!("/proc/{}/task", child.id()));
    let is_lane = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).unwrap_or_default() == "lane 0\n";
    while !fs::read_dir(&tasks).expect("its threads can be listed").flatten().any(is_lane) {
        assert!(begun.elapsed() < Duration::from_secs(60), "no load begins");
        thread::sleep(Duration::from_millis(20));
    }
    for harm in harm {
        // Longer than between two looks.
        thread::sleep(Duration::from_millis(1_200));
        harm();
    }
    let answer = Answer::from(child.wait_with_output().expect("it has ended by then"));
    assert!(begun.elapsed() < Duration::from_secs(100), "it ended with its time: {answer}");
    assert_eq!(answer.code, Some(1), "{answer}");
    answer
}

#[test]
fn a_run_ends_when_its_group_cannot_go_on() {
    let place = Place::on_disk();
    let cut = |name: &'static str| {
        let path = place.path(name);
        move || File::options().write(true).open(&path).unwrap().set_len(2 << 20).unwrap()
    };
    let removed = |name: &'static str| {
        let path = place.path(name);
        move || fs::remove_file(&path).unwrap()
    };
    let external = "data=external,au=1M,size=16M:a,b";
    let answer = harmed(&place, external, "randread", &[&cut("b")]);
    assert!(answer.stderr.contains("lost its member `b`: it was truncated"), "{answer}");
    assert!(answer.stderr.contains("does not go on without a member"), "{answer}");
    let answer = harmed(&place, "more=external,au=1M,size=16M:c,d", "randrw", &[&removed("c")]);
    assert!(answer.stderr.contains("lost its member `c`: it was deleted"), "{answer}");
    // The first loss is borne, the second is one too many.
    let answer = harmed(&place, "both=normal,au=1M,size=16M:e|f", "randrw", &[&removed("e"), &removed("f")]);
    assert!(answer.stderr.contains("`both` has lost data") && answer.stderr.contains("member `f`"), "{answer}");
}

#[test]
fn groups_that_cannot_be_are_refused_and_nothing_is_written() {
    let place = Place::on_disk();
    std::fs::write(place.path("theirs"), vec![7; 16 << 20]).unwrap();
    let answer = refused(&place, &run("data=normal,au=1M,size=16M:new|theirs", &["--pattern=randwrite", "--size=4M"]));
    assert!(answer.contains("--destroy theirs"), "{answer}");
    assert!(!place.path("new").exists());
    assert_eq!(std::fs::read(place.path("theirs")).unwrap(), vec![7; 16 << 20]);
    let answer = refused(&place, &run("data=double:a|b", &["--pattern=randread"]));
    assert!(answer.contains("is not a redundancy"), "{answer}");
    let words = ["io", "run", "--group", SPEC, "--path", "theirs", "--pattern=randread"];
    assert!(refused(&place, &words).contains("cannot be used with"));
}

#[test]
fn a_mistyped_device_is_refused_in_a_group_and_alone_and_nothing_is_made() {
    let place = Place::on_disk();
    std::os::unix::fs::symlink("/dev", place.path("link")).unwrap();
    let device = "/dev/plimsoll-no-such-device";
    for (member, other) in [(device, "new"), ("link/plimsoll-no-such-device", "new"), ("/proc/new", "new")] {
        let spec = format!("data=normal,au=1M,size=16M:{other}|{member}");
        let answer = refused(&place, &run(&spec, &["--pattern=randrw", "--size=4M"]));
        assert!(answer.contains(member) && answer.contains("lsblk"), "{answer}");
        let alone = ["io", "run", "--path", other, "--path", member, "--size=8M", "--pattern=randwrite"];
        let answer = refused(&place, &alone);
        assert!(answer.contains(member) && answer.contains("lsblk"), "{answer}");
        assert!(!place.path(other).exists() && !std::path::Path::new(device).exists());
    }
}

#[test]
fn a_member_of_another_group_is_free_for_a_new_one_once_its_name_is_typed() {
    let place = Place::on_disk();
    let old = run("old=external,au=1M,size=16M:a,b", &["--pattern=randread", "--size=8M"]);
    place.done(&old);
    let new = run("data=normal,au=1M,size=16M:a|c", &["--pattern=randrw", "--size=8M", "--verify"]);
    let answer = place.run(&new);
    assert!(answer.code == Some(2) && answer.stderr.contains("--destroy a"), "{answer}");
    place.done(&old);
    place.done(&[&new[..], &["--destroy=a"]].concat());
    let answer = place.run(&old);
    assert!(answer.code == Some(2) && answer.stderr.contains("`a` belongs to disk group `data`"), "{answer}");
    place.done(&new);
}

#[test]
fn the_engine_lies_on_a_group_and_leaves_it() {
    let place = Place::on_disk();
    let group = "data=normal,au=1M,size=64M:a|b";
    let set_up = ["slob", "setup", "-s", "1", "SCALE=1000", "--redo-size=8M", "--redo-files=3", "--quiet"];
    let places = ["--target=dir:set", "--data-dest", group, "--redo-dest", group];
    place.done(&set_up.into_iter().chain(places).collect::<Vec<_>>());
    let load = ["slob", "run", "-s", "1", "--target=dir:set", "UPDATE_PCT=50", "--cache=4M", "--quiet"];
    place.done(&load.into_iter().chain(["--duration=1s", "--warmup=0s"]).collect::<Vec<_>>());
    assert_eq!(document(&place)["steps"][0]["channels"].as_array().unwrap().len(), 2);
    // The blocks of one member are spoilt, and the other has them.
    let member = place.path("a");
    let mut bytes = std::fs::read(&member).unwrap();
    for at in (2 << 20..30 << 20).step_by(8192) {
        bytes[at] ^= 1;
    }
    std::fs::write(&member, bytes).unwrap();
    let verify = ["slob", "verify", "--target=dir:set"];
    assert!(place.done(&verify).stdout.contains("every block is what was written last"));

    // That has repaired the primaries it met, and not the copies that are only read when a primary fails. Another bit is spoilt everywhere.
    let mut bytes = std::fs::read(&member).unwrap();
    for at in (2 << 20..30 << 20).step_by(8192) {
        bytes[at] ^= 2;
    }
    std::fs::write(&member, bytes).unwrap();
    let scrubbed = place.done(&[&verify[..], &["--scrub", "--json"]].concat()).json();
    let of = |document: &Value, field: &str| document["scrub"][field].as_u64().unwrap();
    assert!(of(&scrubbed, "faulty") > 0 && of(&scrubbed, "faulty") == of(&scrubbed, "repaired"), "{scrubbed}");
    assert_eq!(
        (of(&scrubbed, "lost"), of(&scrubbed, "left"), &scrubbed["sound"]),
        (0, 0, &Value::Bool(true)),
        "{scrubbed}"
    );
    let again = place.done(&[&verify[..], &["--scrub"]].concat()).stdout;
    assert!(again.contains("all are right and alike"), "{again}");
    place.done(&["slob", "drop", "--target=dir:set", "--yes"]);
    place.done(&["slob", "setup", "-s", "1", "SCALE=1000", "--redo-size=8M", "--target=dir:alone", "--quiet"]);
    let alone = place.run(&["slob", "verify", "--target=dir:alone", "--scrub"]);
    assert!(alone.code == Some(2) && alone.stderr.contains("one copy each"), "{alone}");
    let simulated = place.run(&["slob", "verify", "--target=sim:", "--scrub"]);
    assert!(simulated.code == Some(2) && simulated.stderr.contains("for the embedded engine"), "{simulated}");
    assert!(!place.path("set").exists() && place.path("a").exists());
}

#[test]
fn a_set_goes_over_what_is_not_ours_only_when_its_name_is_typed() {
    let place = Place::on_disk();
    let set_up = ["slob", "setup", "-s", "1", "SCALE=1000", "--redo-size=8M", "--redo-files=3", "--quiet"];
    let set_up = [&set_up[..], &["--target=dir:set"]].concat();
    place.done(&set_up);
    std::fs::write(place.path("theirs"), vec![7; 64 << 20]).unwrap();
    let on_group = ["--replace", "--data-dest", "data=normal,au=1M,size=64M:new|theirs"];
    for dry in [&["--dry-run"][..], &[]] {
        let refused = refused(&place, &[&set_up[..], &on_group, dry].concat());
        assert!(refused.contains("--destroy theirs"), "{refused}");
    }
    assert!(!place.path("new").exists());
    assert_eq!(std::fs::read(place.path("theirs")).unwrap(), vec![7; 64 << 20]);
    place.done(&["slob", "verify", "--target=dir:set"]);

    // Nor for a group that could not hold it.
    let small = ["--replace", "--data-dest", "data=normal,au=1M,size=8M:new|newer", "SCALE=2000"];
    let refused_room = refused(&place, &[&set_up[..], &small].concat());
    assert!(refused_room.contains("free"), "{refused_room}");
    assert!(!place.path("new").exists());
    place.done(&["slob", "verify", "--target=dir:set"]);

    // Nor for one that cannot be made, or that is none.
    for (group, why) in [
        ("data=normal,au=1M,size=64M:nowhere/a|new", "nowhere"),
        ("data=normal,size=0:a|b", "size"),
        ("data=normal,size=64M:a|a", "`a`"),
    ] {
        let refused = refused(&place, &[&set_up[..], &["--replace", "--data-dest", group]].concat());
        assert!(refused.contains(why) && !refused.contains("name a directory that is there"), "{refused}");
        place.done(&["slob", "verify", "--target=dir:set"]);
    }

    let elsewhere = refused(&place, &[&set_up[..], &["--replace", "--destroy", "theirs"]].concat());
    assert!(elsewhere.contains("applies only to members of a disk group"), "{elsewhere}");
    place.done(&[&set_up[..], &on_group, &["--destroy", "theirs"]].concat());
    place.done(&["slob", "verify", "--target=dir:set"]);
    place.done(&["slob", "drop", "--target=dir:set", "--yes"]);
}

#[test]
fn orion_walks_a_group() {
    let place = Place::on_disk();
    let own = ["io", "orion", "--group", SPEC, "--size=8M", "--warmup=0s", "--quiet"];
    let words = "-run advanced -testname asm -matrix point -num_small 2 -num_large 0 -duration 1";
    place.done(&own.into_iter().chain(words.split_whitespace()).collect::<Vec<_>>());
    let run = document(&place);
    assert_eq!(
        (&run["load"]["kind"], &run["target"]["facts"]["files"]["io_engine"]),
        (&"orion".into(), &"disk group".into())
    );
    assert_eq!(run["steps"][0]["channels"].as_array().unwrap().len(), 4);
    let both = ["io", "orion", "--group", SPEC, "--path=theirs", "-run", "simple", "-testname", "asm"];
    assert!(place.run(&both).stderr.contains("cannot be used with"));
}
