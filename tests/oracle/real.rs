//! The whole way on a real Oracle database, where somebody names one.

use crate::place::Place;
use crate::skip::skip;

#[test]
fn from_set_up_to_removal_on_a_real_server() {
    let Ok(address) = std::env::var("PLIMSOLL_ORACLE_URL") else {
        skip("no real Oracle database is named in PLIMSOLL_ORACLE_URL: only the responder was asked");
        return;
    };
    let place = Place::new();
    let done = |words: &[&str]| place.done(&[words, &["--target", &address]].concat());
    done(&["slob", "setup", "-s", "2", "SCALE=2000", "SCAN_TABLE_SZ=200", "--quiet"]);
    assert!(done(&["slob", "verify"]).stdout.contains("sound"));
    for send in ["statement", "batch"] {
        for reads in ["range", "key-by-key"] {
            let words = [
                "slob",
                "run",
                "--send",
                send,
                "--reads",
                reads,
                "RUN_TIME=5",
                "UPDATE_PCT=20",
                "SCAN_PCT=2",
                "--json",
            ];
            let run = done(&words).json()["run"].take();
            let counters = &run["steps"][0]["counters"];
            assert!(
                counters["operations"].as_u64().unwrap() > 0 && counters["errors"].as_u64() == Some(0),
                "{counters}"
            );
        }
    }
    assert!(done(&["slob", "verify"]).stdout.contains("sound"));
    done(&["slob", "drop", "--yes"]);
}
