use proptest::prelude::*;

use super::super::slob_conf::{parse, render};
use super::*;

fn parameters(text: &str) -> Result<SlobParameters, ConfigError> {
    SlobParameters::from_settings(&parse(text, "slob.conf")?)
}

fn error(text: &str) -> (String, String) {
    let error = parameters(text).unwrap_err();
    (error.to_string(), error.hint().unwrap_or_default())
}

#[test]
fn defaults_are_those_of_the_table() {
    let defaults = SlobParameters::default();
    assert_eq!((defaults.update_pct, defaults.scan_pct, defaults.work_unit), (25, 0, 64));
    assert_eq!((defaults.run_time, defaults.scale.blocks(8192)), (Nanos::seconds(300), 10_240));
    assert_eq!((defaults.hot_spot, defaults.think, defaults.block_size), (None, None, None));
    assert_eq!(defaults.filler, Filler::Incompressible);
    assert!(defaults.notes().is_empty());
    let map = defaults.to_map();
    for parameter in super::super::PARAMETERS {
        if let Some(value) = map.get(parameter.name) {
            assert_eq!(value, parameter.default, "{}", parameter.name);
        }
    }
}

#[test]
fn later_settings_win_and_remember_where_they_came_from() {
    let mut settings = parse("UPDATE_PCT=10\nWORK_UNIT=8\n", "slob.conf").unwrap();
    settings.push(Setting::from_command_line(Key::UpdatePct, "50"));
    let parameters = SlobParameters::from_settings(&settings).unwrap();
    assert_eq!((parameters.update_pct, parameters.work_unit), (50, 8));
    assert_eq!(parameters.origin(Key::UpdatePct), Origin::CommandLine);
    assert_eq!(parameters.origin(Key::WorkUnit), Origin::File { file: "slob.conf".to_owned(), line: 2 });
    assert_eq!(parameters.origin(Key::Scale), Origin::Default);
    assert!(parameters.was_set(Key::WorkUnit) && !parameters.was_set(Key::Scale));
}

#[test]
fn an_empty_value_takes_a_parameter_back_to_its_default() {
    let parameters = parameters("UPDATE_PCT=5\nUPDATE_PCT=\nEXTERNAL_SCRIPT=''\nSQLNET_SERVICE_MAX=\"\"\n").unwrap();
    assert_eq!((parameters.update_pct, &parameters.external_script), (25, &None));
    assert!(!parameters.was_set(Key::UpdatePct));
    assert!(parameters.notes().is_empty());
}

#[test]
fn hot_spot_and_think_time_are_there_only_when_switched_on() {
    let off = parameters("DO_HOTSPOT=FALSE\nHOTSPOT_FREQUENCY=0\nTHINK_TM_FREQUENCY=0\nTHINK_TM_MIN=9\n").unwrap();
    assert_eq!((off.hot_spot, off.think), (None, None));
    let on = parameters("DO_HOTSPOT=TRUE\nHOTSPOT_MB=512K\nTHINK_TM_FREQUENCY=5\n").unwrap();
    let hot_spot = HotSpot { size: Bytes::kib(512), offset: Bytes::mib(16), frequency: 3 };
    let think = Think { frequency: 5, min: Nanos::millis(100), max: Nanos::millis(500) };
    assert_eq!((on.hot_spot, on.think), (Some(hot_spot), Some(think)));
}

#[test]
fn bad_values_say_where_they_stand_and_what_is_accepted() {
    for (text, message, hint) in [
        (
            "\nUPDATE_PCT=120",
            "slob.conf:2: `UPDATE_PCT=120` is not a whole number from 0 to 100",
            "`UPDATE_PCT`: Updates in every hundred operations of a session.",
        ),
        (
            "REDO_STRESS=MEDIUM",
            "slob.conf:1: `REDO_STRESS=MEDIUM` is not `LITE` or `HEAVY`",
            "`REDO_STRESS`: Columns that an update changes in each row: 2 (LITE) or all 19 (HEAVY).",
        ),
        (
            "SCALE=0",
            "slob.conf:1: `SCALE=0` is not a number of blocks, or a size such as `80M` or `1.5G`, more than 0",
            "`SCALE`: Data that operations choose from, for each schema.",
        ),
        (
            "UPDATE_PCT=50\nSCAN_PCT=60",
            "`UPDATE_PCT=50` (slob.conf:1) and `SCAN_PCT=60` (slob.conf:2) are more than 100 together",
            "SLOB counts SCAN_PCT in the operations that are not updates, here it counts in all: for SLOB's load write \
             `SCAN_PCT=30`",
        ),
        (
            "SCAN_PCT=5\nSCAN_TABLE_SZ=0",
            "`SCAN_PCT=5` (slob.conf:1) asks for scans, but `SCAN_TABLE_SZ` is 0 (slob.conf:2)",
            "give `SCAN_TABLE_SZ` a size, or set `SCAN_PCT=0`",
        ),
        (
            "THINK_TM_FREQUENCY=1\nTHINK_TM_MIN=1",
            "`THINK_TM_MIN=1` (slob.conf:2) is more than `THINK_TM_MAX=500ms` (default)",
            "exchange the two",
        ),
        (
            "DO_HOTSPOT=TRUE\nHOTSPOT_FREQUENCY=0",
            "`HOTSPOT_FREQUENCY=0` (slob.conf:2) with `DO_HOTSPOT=TRUE` (slob.conf:1) makes no hot spot",
            "give it a value from 1 on, or set `DO_HOTSPOT=FALSE`",
        ),
    ] {
        assert_eq!(error(text), (message.to_owned(), hint.to_owned()));
    }
}

#[test]
fn values_outside_their_range_are_refused() {
    for text in [
        "UPDATE_PCT=-1",
        "UPDATE_PCT=25%",
        "RUN_TIME=0.5",
        "RUN_TIME=abc",
        "WORK_LOOP=1.5",
        "SCALE=1Q",
        "SCALE=0M",
        "WORK_UNIT=0",
        "WORK_UNIT=65537",
        "LOAD_PARALLEL_DEGREE=0",
        "THREADS_PER_SCHEMA=4097",
        "DO_HOTSPOT=YES",
        "HOTSPOT_MB=x",
        "DO_HOTSPOT=TRUE\nHOTSPOT_MB=0",
        "THINK_TM_MIN=-1",
        "OBFUSCATE_COLUMNS=1",
        "BLOCK_SZ=9K",
        "BLOCK_SZ=64K",
        "SQLNET_SERVICE_MAX=0",
        "DATABASE_STATISTICS_TYPE=none",
    ] {
        assert!(parameters(text).is_err(), "{text}");
    }
}

#[test]
fn limits_are_those_that_messages_name() {
    for (key, limit) in
        [(Key::WorkUnit, MAX_WORK_UNIT), (Key::ThreadsPerSchema, MAX_SESSIONS), (Key::LoadParallelDegree, 4_096)]
    {
        assert!(key.parameter().accepted.ends_with(&format!(" to {limit}")), "{key}");
        assert!(parameters(&format!("{key}={limit}")).is_ok(), "{key}");
        assert!(parameters(&format!("{key}={}", limit + 1)).is_err(), "{key}");
    }
}

#[test]
fn the_data_set_must_hold_the_hot_spot_and_one_operation() {
    let check = |text: &str, blocks| parameters(text).unwrap().check_against(blocks, 8192).map_err(|e| e.to_string());
    assert_eq!(check("WORK_UNIT=64", 64), Ok(()));
    assert_eq!(
        check("WORK_UNIT=64", 63).unwrap_err(),
        "one operation touches 64 blocks (`WORK_UNIT`), but `SCALE` has 63 for each schema"
    );
    assert_eq!(check("DO_HOTSPOT=TRUE", 3_072), Ok(()));
    assert_eq!(
        check("DO_HOTSPOT=TRUE", 3_071).unwrap_err(),
        "the hot spot ends at block 3072, but `SCALE` has 3071 blocks for each schema"
    );
    assert_eq!(
        check("DO_HOTSPOT=TRUE\nHOTSPOT_MB=504K\n", 10_000).unwrap_err(),
        "the hot spot has 63 blocks, but one operation touches 64 (`WORK_UNIT`)"
    );
}

#[test]
fn sessions_are_limited_as_in_slob() {
    let parameters = parameters("THREADS_PER_SCHEMA=64").unwrap();
    assert_eq!(parameters.sessions(64).unwrap(), 4_096);
    let error = parameters.sessions(65).unwrap_err();
    assert_eq!(error.to_string(), "65 schemas with 64 threads each are more than 4096 sessions");
    assert_eq!(error.hint().as_deref(), Some("use at most 64 schemas, or fewer threads"));
    assert!(parameters.sessions(u32::MAX).is_err());
}

#[test]
fn notes_tell_where_slob_would_refuse_and_what_is_ignored() {
    let notes =
        parameters("RUN_TIME=10\nSCALE=1000\nWORK_UNIT=1\nSCAN_PCT=10\nDBA_PRIV_USER=system\nSYSDBA_PASSWD=tiger\n")
            .unwrap()
            .notes();
    assert_eq!(
        notes,
        [
            "RUN_TIME is 10.0 s; SLOB itself accepts 30 s or more",
            "SCALE is 1000 blocks; SLOB itself accepts 10,000 or more",
            "WORK_UNIT is 1; SLOB itself accepts 3 to 1024",
            "SCAN_PCT counts in all operations: 10 in every hundred are scans; SLOB counts it in those that are not updates",
            "DBA_PRIV_USER, SYSDBA_PASSWD are kept for SQL targets and ignored on this one",
        ]
    );
}

#[test]
fn the_password_is_kept_but_never_shown() {
    let parameters = parameters("SYSDBA_PASSWD='ti ger'\nDBA_PRIV_USER=system\n").unwrap();
    assert_eq!(parameters.connection.sysdba_password.as_ref().map(|secret| secret.expose()), Some("ti ger"));
    assert_eq!(parameters.to_map().get("DBA_PRIV_USER").map(String::as_str), Some("system"));
    let shown = format!(
        "{parameters:?} {:?} {:?} {}",
        parameters.to_map(),
        parameters.notes(),
        serde_json::to_string(&parameters.connection).unwrap()
    );
    assert!(!shown.contains("ti ger"), "{shown}");
}

/// Text that each parameter accepts, whatever the others are.
fn valid_settings() -> impl Strategy<Value = Vec<Setting>> {
    let pick = |key: Key, pattern: &'static str| {
        proptest::option::of(pattern).prop_map(move |value| value.map(|value| Setting::from_command_line(key, value)))
    };
    let load = (
        pick(Key::UpdatePct, "[0-4]?[0-9]"),
        pick(Key::ScanPct, "[0-4]?[0-9]"),
        pick(Key::RunTime, "[1-9][0-9]{0,4}(s|m|\\.[0-9]{1,9})?"),
        pick(Key::WorkLoop, "[0-9]{1,18}"),
        pick(Key::Scale, "[1-9][0-9]{0,3}([KMGT]|\\.5[KMGT]|B)?"),
        pick(Key::ScanTableSz, "[1-9][0-9]{0,3} ?[KMG]?"),
        pick(Key::WorkUnit, "[1-9][0-9]{0,3}"),
        pick(Key::RedoStress, "LITE|HEAVY|heavy"),
    );
    let hot = (
        pick(Key::DoHotspot, "TRUE|FALSE|true"),
        pick(Key::HotspotMb, "[1-9][0-9]{0,3}[KMG]?"),
        pick(Key::HotspotOffsetMb, "[0-9]{1,4}[KMG]?"),
        pick(Key::HotspotFrequency, "[1-9][0-9]{0,8}"),
        pick(Key::HotSchemaFrequency, "[0-9]{1,9}"),
        pick(Key::ThinkTmFrequency, "[0-9]{1,9}"),
        pick(Key::ThinkTmMin, "(\\.0[0-9]{0,8}|[0-9]{1,2}ms|0)"),
        pick(Key::ThinkTmMax, "([0-9]{0,2}\\.[1-9]|[1-9][0-9]{0,2})"),
    );
    let rest = (
        pick(Key::ObfuscateColumns, "TRUE|FALSE"),
        pick(Key::BlockSz, "2K|4096|8K|16k|32KiB"),
        pick(Key::ExternalScript, "[ -~]{1,20}"),
        pick(Key::DbaPrivUser, "\\PC{1,10}"),
        pick(Key::SqlnetServiceBase, "[ -~]{1,10}"),
        pick(Key::SqlnetServiceMax, "[1-9]"),
        pick(Key::DatabaseStatisticsType, "awr|STATSPACK"),
        pick(Key::NoOsPerfData, "TRUE|1"),
    );
    (load, hot, rest).prop_map(|(a, b, c)| {
        [
            a.0, a.1, a.2, a.3, a.4, a.5, a.6, a.7, b.0, b.1, b.2, b.3, b.4, b.5, b.6, b.7, c.0, c.1, c.2, c.3, c.4,
            c.5, c.6, c.7,
        ]
        .into_iter()
        .flatten()
        .collect()
    })
}

proptest! {
    #[test]
    fn rendered_parameters_are_read_back_the_same(settings in valid_settings()) {
        prop_assume!(settings.iter().all(|setting| !setting.value.contains('\u{fffd}')));
        let mut first = SlobParameters::from_settings(&settings).unwrap();
        let mut again = parameters(&render(&first.to_map())).unwrap();
        prop_assert_eq!(first.to_map(), again.to_map());
        first.origins.clear();
        again.origins.clear();
        prop_assert_eq!(first, again);
    }

    #[test]
    fn any_value_of_any_parameter_is_accepted_or_refused_without_panic(index in 0..28usize, value in ".*") {
        let setting = Setting::from_command_line(super::super::PARAMETERS[index].key, value);
        if let Ok(parameters) = SlobParameters::from_settings(&[setting]) {
            let _ = (parameters.notes(), parameters.to_map(), parameters.check_against(100, 8192));
        }
    }
}

#[test]
fn a_plain_number_is_blocks_and_a_suffix_makes_it_bytes() {
    assert_eq!(Scale::read("10000"), Some(Scale::Blocks(10_000)));
    assert_eq!(Scale::read("80M"), Some(Scale::Bytes(Bytes::mib(80))));
    assert_eq!(Scale::read("80 m"), Some(Scale::Bytes(Bytes::mib(80))));
    assert_eq!(Scale::read("1.5"), None);
    assert_eq!(Scale::Bytes(Bytes::mib(80)).blocks(8192), 10_240);
    assert_eq!(Scale::Bytes(Bytes(8191)).blocks(8192), 0);
}

#[test]
fn a_plain_number_is_mebibytes_where_slob_says_so() {
    assert_eq!(read_mebibytes("8"), Some(Bytes::mib(8)));
    assert_eq!(read_mebibytes("512K"), Some(Bytes::kib(512)));
    assert_eq!(read_mebibytes("18446744073709551615"), None);
    assert_eq!(read_mebibytes("0.5"), None);
}

#[test]
fn the_hot_spot_covers_whole_blocks_of_any_size() {
    let hot_spot = HotSpot { size: Bytes::mib(8), offset: Bytes::mib(16), frequency: 3 };
    assert_eq!(hot_spot.blocks(8192), 2_048..3_072);
    assert_eq!(hot_spot.blocks(32_768), 512..768);
}

proptest! {
    #[test]
    fn sizes_are_read_back_exactly(bytes in any::<u64>(), shift in 0u32..50) {
        let bytes = Bytes(bytes >> shift << shift);
        prop_assert_eq!(Scale::read(&bytes_text(bytes)), Some(Scale::Bytes(bytes)));
        prop_assert_eq!(read_mebibytes(&bytes_text(bytes)), Some(bytes));
    }

    #[test]
    fn durations_are_read_back_exactly(nanos in any::<u64>(), thousands in 0u32..4) {
        let scale = 1000u64.pow(thousands);
        let nanos = Nanos(nanos / scale * scale);
        prop_assert_eq!(nanos_text(nanos).parse(), Ok(nanos));
    }
}
