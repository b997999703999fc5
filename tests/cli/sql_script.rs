//! `plimsoll slob script`: what is printed, and what is refused. That each statement is understood is for `make check-plsql`.

use crate::errors::refused;
use crate::place::Place;

#[test]
#[cfg_attr(not(feature = "oracle"), ignore = "a build without Oracle's driver has no such command")]
fn the_choices_of_the_command_line_are_those_of_the_statements() {
    let place = Place::new();
    place.write("slob.conf", "UPDATE_PCT=25\nSCAN_PCT=5\nSCALE=10000\nSYSDBA_PASSWD=tiger\n");
    let script = |more: &[&str]| {
        let words = [&["slob", "script", "oracle", "-c", "slob.conf", "-s", "2"][..], more].concat();
        let answer = place.done(&words);
        assert_eq!(answer.stderr, "");
        assert!(!answer.stdout.contains("tiger"), "a password was shown");
        answer.stdout
    };
    let usual = script(&["--user", "bench"]);
    assert!(usual.contains("CREATE TABLE \"BENCH\".slob_2 ") && !usual.contains("slob_3"), "{usual}");
    assert!(usual.contains("COMMIT WRITE IMMEDIATE WAIT") && usual.contains("QUOTA UNLIMITED ON \"USERS\""));
    let other = script(&["--layout", "slob", "--commit", "slob", "--reads", "key-by-key", "UPDATE_PCT=10"]);
    assert!(other.contains("\"USER2\".cf1") && !other.contains("COMMIT WRITE") && other.contains("t.custid = at_key"));
    // All but when the data were begun.
    let steady = |text: String| text.lines().filter(|line| !line.contains("created_at")).collect::<Vec<_>>().join("\n");
    assert_eq!(steady(script(&[])), steady(script(&[])), "the same command gives the same script");
}

#[test]
#[cfg_attr(not(feature = "oracle"), ignore = "a build without Oracle's driver has no such command")]
fn what_cannot_be_a_load_is_refused() {
    let place = Place::new();
    let words = refused(&place, &["slob", "script", "oracle", "SCALE=10", "WORK_UNIT=64"]);
    assert!(words.contains("WORK_UNIT") || words.contains("work unit"), "{words}");
    refused(&place, &["slob", "script", "db2"]);
    refused(&place, &["slob", "script"]);
}
