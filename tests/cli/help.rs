//! The short help of every command. `docs/reference/commands` holds the long one, and a test of its own.

use crate::place::Place;

#[test]
#[cfg_attr(not(feature = "oracle"), ignore = "a build without Oracle's driver has fewer commands")]
fn short_help_of_every_command() {
    let place = Place::new();
    for words in [
        "",
        "slob",
        "slob setup",
        "slob run",
        "slob sweep",
        "slob verify",
        "slob info",
        "slob doctor",
        "slob drop",
        "slob script",
        "runs",
        "runs list",
        "runs show",
        "runs rm",
        "report",
        "table",
        "compare",
        "trend",
        "fit",
        "probe",
        "doctor",
        "completions",
        "manual",
    ] {
        let arguments: Vec<&str> = words.split_whitespace().chain(["-h"]).collect();
        let answer = place.done(&arguments);
        assert_eq!(answer.stderr, "");
        let name = format!("help{}{}", if words.is_empty() { "" } else { "_" }, words.replace(' ', "_"));
        insta::assert_snapshot!(name, answer.stdout);
    }
}

#[test]
fn without_a_command_the_help_is_an_error() {
    let answer = Place::new().run(&[]);
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(2), ""));
    assert!(answer.stderr.contains("Usage: plimsoll <COMMAND>"), "{answer}");
}

#[test]
fn the_version_is_reported() {
    let answer = Place::new().done(&["--version"]);
    assert_eq!(answer.stdout, format!("plimsoll {}\n", env!("CARGO_PKG_VERSION")));
}
