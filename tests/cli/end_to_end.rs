//! Whole ways through the program on small real data.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

use crate::place::Place;

/// A run that ends when it has done enough.
const SHORT: [&str; 5] = ["slob", "run", "RUN_TIME=300", "WORK_LOOP=20", "--warmup=0s"];

#[test]
fn from_nothing_to_a_report_and_back_to_nothing() {
    let place = Place::new();
    let dry = place.done(&["slob", "setup", "-s", "2", "SCALE=2000", "--seed", "5", "--dry-run"]);
    assert!(dry.stdout.contains("data-0001.dbf") && !place.path("plimsoll-data").exists(), "{dry}");

    place.set_up();
    let again = place.done(&["slob", "setup", "-s", "2", "SCALE=2000", "--redo-size=8M", "--redo-files=3", "--json"]);
    assert_eq!(again.json()["created"], false, "the same command finds its own data");
    let info = place.done(&["slob", "info", "--json"]).json();
    assert_eq!((&info["descriptor"]["schemas"], &info["state"]["is"]), (&2.into(), &"closed_cleanly".into()));

    let run = place.done(&[&SHORT[..], &["-t", "2", "--json", "--seed", "9"]].concat()).run();
    assert_eq!((&run["seed"], &run["steps"][0]["load"]["sessions"]), (&9.into(), &4.into()));
    assert!(run["steps"][0]["counters"]["commits"].as_u64().unwrap() > 0);
    assert_eq!(run["parameters"]["SCALE"], "16000K");

    let sweep = place.done(&["slob", "sweep", "--threads", "1,2", "RUN_TIME=1", "--warmup=0s", "UPDATE_PCT=0"]);
    assert!(sweep.stdout.contains("s2_t1") && sweep.stdout.contains("s2_t2"), "{sweep}");
    assert!(sweep.stderr.contains("Kept in `./plimsoll-runs/"), "{sweep}");
    place.done(&["report", "last", "--full"]);
    place.done(&["table", "last", "--style", "matrix"]);

    let verified = place.done(&["slob", "verify"]);
    assert!(verified.stdout.contains("every block is what was written last"), "{verified}");
    let document = place.done(&["slob", "verify", "--json"]).json();
    assert_eq!((&document["sound"], &document["blocks"]), (&true.into(), &4_256.into()));

    let listed = place.done(&["slob", "drop", "--dry-run"]).stdout.lines().count();
    assert_eq!(std::fs::read_dir(place.path("plimsoll-data")).unwrap().count(), listed);
    let asked = place.run(&["slob", "drop"]);
    assert_eq!(asked.code, Some(2), "{asked}");
    assert!(asked.stderr.contains("must be confirmed") && asked.stderr.contains("--yes"), "{asked}");
    place.done(&["slob", "drop", "--yes"]);
    assert!(!place.path("plimsoll-data").exists());
}

#[test]
fn an_existing_slob_conf_is_used_unchanged_and_its_password_is_never_kept() {
    let place = Place::new();
    place.set_up();
    place.write(
        "slob.conf",
        "#### SLOB 2.5.0 slob.conf\n\nUPDATE_PCT=25\nSCAN_PCT=0\nRUN_TIME=1\nWORK_LOOP=0\nSCALE=1000\nSCAN_TABLE_SZ=1M\n\
         WORK_UNIT=64\nREDO_STRESS=LITE\nLOAD_PARALLEL_DEGREE=2\n\nTHREADS_PER_SCHEMA=1\n\n\
         DATABASE_STATISTICS_TYPE=awr   # Permitted values: [statspack|awr]\n\nDBA_PRIV_USER=\"system\"\n\
         SYSDBA_PASSWD=\"tigerish\"\n\nDO_HOTSPOT=FALSE\nHOTSPOT_MB=8\nHOTSPOT_OFFSET_MB=16\nHOTSPOT_FREQUENCY=3\n\n\
         HOT_SCHEMA_FREQUENCY=0\n\nTHINK_TM_FREQUENCY=0\nTHINK_TM_MIN=.1\nTHINK_TM_MAX=.5\n\nEXTERNAL_SCRIPT=''\n\n\
         export UPDATE_PCT RUN_TIME WORK_LOOP SCALE WORK_UNIT\n",
    );
    let answer =
        place.done(&["slob", "run", "-c", "slob.conf", "2", "WORK_UNIT=16", "--json", "SYSDBA_PASSWD=lionish"]);
    let run = answer.run();
    assert_eq!((&run["parameters"]["WORK_UNIT"], &run["parameters"]["SCALE"]), (&"16".into(), &"8000K".into()));
    let notes: Vec<&str> = run["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect();
    assert_eq!(notes.iter().filter(|note| note.contains("ignored on this one")).count(), 1, "{notes:?}");
    for note in notes {
        assert_eq!(answer.stderr.matches(&format!("note: {note}\n")).count(), 1, "{answer}");
    }
    let kept = std::fs::read_to_string(place.path("plimsoll-runs").join(&place.runs()[0]).join("run.json")).unwrap();
    for secret in ["tigerish", "lionish"] {
        assert!(!kept.contains(secret) && !answer.stdout.contains(secret) && !answer.stderr.contains(secret));
    }
}

#[test]
fn a_directory_in_use_is_locked_and_ctrl_c_leaves_it_clean() {
    let place = Place::new();
    place.set_up();
    let mut child = place
        .plimsoll(&["slob", "run", "RUN_TIME=60", "--warmup=0s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(stderr.by_ref().any(|line| line.unwrap().contains(" ops/s ")), "no interval was reported");

    let pid = format!("process {}", child.id());
    for words in
        [&SHORT[..], &["slob", "verify"], &["slob", "drop", "--yes"], &["slob", "setup", "-s", "1", "--replace"]]
    {
        let locked = place.run(words);
        assert_eq!(locked.code, Some(2), "{words:?}\n{locked}");
        assert!(locked.stderr.contains("is in use by another process") && locked.stderr.contains(&pid), "{locked}");
    }
    let info = place.done(&["slob", "info"]);
    assert!(info.stdout.contains(&format!("in use by {pid}")), "{info}");

    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(place.runs().len(), 1, "only the run that was begun is kept");
    let run = place.done(&["runs", "show", "last", "--json"]).json();
    assert_eq!(run["outcome"], "interrupted");
    assert_eq!(place.done(&["slob", "info", "--json"]).json()["state"]["is"], "closed_cleanly");
}

#[test]
fn a_bad_block_ends_the_run_and_is_named() {
    let place = Place::new();
    place.set_up();
    let path = place.path("plimsoll-data/data-0001.dbf");
    let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
    // The same bit in every row: whichever block is read first is bad.
    for block in 0..4_000 {
        let mut byte = [0];
        file.read_exact_at(&mut byte, block * 8_192 + 5_000).unwrap();
        file.write_all_at(&[byte[0] ^ 4], block * 8_192 + 5_000).unwrap();
    }
    file.sync_all().unwrap();
    let answer = place.run(&SHORT);
    assert_eq!(answer.code, Some(1), "{answer}");
    assert!(answer.stderr.contains("error: bad block ") && answer.stderr.contains("data-0001.dbf"), "{answer}");
    let run = place.done(&["runs", "show", "last", "--json"]).json();
    assert!(run["outcome"]["failed"]["error"].as_str().unwrap().starts_with("bad block"));
    let verified = place.run(&["slob", "verify"]);
    assert_eq!(verified.code, Some(1), "{verified}");
    assert!(verified.stdout.contains("and 3,980 more bad blocks"), "{verified}");
}

#[test]
fn data_without_their_lock_file_are_still_ours() {
    let place = Place::new();
    place.set_up();
    std::fs::remove_file(place.path("plimsoll-data/plimsoll.lock")).unwrap();
    assert_eq!(place.done(&["slob", "info", "--json"]).json()["state"]["is"], "closed_cleanly");
    place.done(&SHORT);
    std::fs::remove_file(place.path("plimsoll-data/plimsoll.lock")).unwrap();
    place.done(&["slob", "drop", "--yes"]);
    assert!(!place.path("plimsoll-data").exists());
}

#[test]
fn a_descriptor_with_impossible_values_is_damaged() {
    let place = Place::new();
    place.set_up();
    let path = place.path("plimsoll-data/database.json");
    let sound = std::fs::read_to_string(&path).unwrap();
    for (value, why) in [("\"block_bytes\": 0", "block size is impossible"), ("\"schemas\": 0", "describes no data")] {
        let field = value.split(':').next().unwrap();
        let line = sound.lines().find(|line| line.contains(field)).unwrap();
        std::fs::write(&path, sound.replace(line.trim().trim_end_matches(','), value)).unwrap();
        let answer = place.run(&SHORT);
        assert_eq!(answer.code, Some(2), "{answer}");
        assert!(answer.stderr.contains("database.json` is damaged") && answer.stderr.contains(why), "{answer}");
    }
}
