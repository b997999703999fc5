use super::read;

#[test]
fn a_run_of_two_schemas() {
    let Some(drafts) = read("slob-console", "slob/slob_2.5.4_runit_console_2users.txt") else { return };
    let (draft, step) = (&drafts[0], &drafts[0].steps[0]);
    let parameters = ["UPDATE_PCT", "SCALE", "WORK_UNIT", "RUN_TIME"].map(|name| draft.parameters[name].as_str());
    assert_eq!(parameters, ["20", "10000 (10000 blocks)", "64", "120"]);
    assert_eq!((step.load.sessions, step.window.duration_ns), (Some(2), 121_000_000_000));
    assert!(step.reported.iter().any(|figure| figure.name == "snapshot after" && figure.value == 27.0));
    let everything = format!("{draft:?}");
    assert!(!everything.contains("REDACTED") && !everything.contains("PASSWD"), "{everything}");
}
