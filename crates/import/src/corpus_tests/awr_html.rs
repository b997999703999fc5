//! AWR reports in HTML.

use super::read;
use crate::Draft;
use model::record::{Step, WaitStats};

fn only(file: &str) -> Option<Draft> {
    let mut drafts = read("awr-html", file)?;
    assert_eq!((drafts.len(), drafts[0].steps.len()), (1, 1), "{file}");
    drafts.pop()
}

fn figure(step: &Step, name: &str) -> f64 {
    let found: Vec<f64> =
        step.reported.iter().filter(|figure| figure.name == name).map(|figure| figure.value).collect();
    assert_eq!(found.len(), 1, "{name}");
    found[0]
}

fn wait<'a>(step: &'a Step, event: &str) -> &'a WaitStats {
    let found: Vec<&WaitStats> = step.waits.iter().filter(|wait| wait.event == event).collect();
    assert_eq!(found.len(), 1, "{event}");
    found[0]
}

/// Asserts the share in percent, to one decimal, of the buckets that end at so many microseconds; 0 is the open end.
fn assert_shares(wait: &WaitStats, shares: &[(u64, f64)]) {
    let waits = serde_json::to_value(&wait.waits).unwrap();
    let count = wait.waits.count() as f64;
    for (to_us, share) in shares {
        let to_ns = (*to_us > 0).then(|| to_us * 1_000);
        let bucket = waits["reported"].as_array().unwrap().iter().find(|bucket| bucket["to_ns"].as_u64() == to_ns);
        let found = bucket.map_or(0.0, |bucket| bucket["count"].as_f64().unwrap() / count * 100.0);
        // Of few waits, a share is a whole number of them.
        assert!((found - share).abs() <= 0.1 + 50.0 / count, "{} <{to_us}us: {found}, not {share}", wait.event);
    }
}

fn fact(draft: &Draft, name: &str) -> String {
    draft.target.facts.shown().remove(name).unwrap_or_default()
}

fn assert_io_profile(step: &Step, columns: [&str; 3], values: [f64; 3]) {
    let requests = columns.map(|column| figure(step, &format!("Total Requests: {column}")));
    assert_eq!(requests, values);
}

const COLUMNS: [&str; 3] = ["Read+Write Per Second", "Read per Second", "Write Per Second"];

fn minutes(draft: &Draft) -> f64 {
    (draft.steps[0].window.duration_ns as f64 / 6e8).round() / 100.0
}

#[test]
fn release_11_has_milliseconds_and_empty_ends() {
    let Some(draft) = only("awr/awr_11204_rac_inst1.html") else { return };
    let step = &draft.steps[0];
    assert_eq!((draft.title.as_str(), draft.version.as_str()), ("ORCL/orcl1 snapshots 2-3", "11.2.0.4.0"));
    assert_eq!(
        (fact(&draft, "db_id").as_str(), fact(&draft, "rac").as_str(), fact(&draft, "instance_number").as_str()),
        ("1380142923", "YES", "1")
    );
    assert_eq!((draft.environment.hostname.as_deref(), minutes(&draft)), (Some("node1"), 60.22));
    assert!((figure(step, "DB time") - 1.8).abs() < 0.31, "0.03 minutes");
    assert_eq!((figure(step, "Read IO requests"), figure(step, "Write IO requests")), (0.0, 0.1));
    assert_io_profile(step, COLUMNS, [3.5, 2.5, 1.0]);
    assert_eq!(figure(step, "physical read total IO requests"), 9_031.0);
    assert_eq!(figure(step, "physical write total IO requests"), 3_435.0);
    let read = wait(step, "db file sequential read");
    assert_eq!((read.sum().count, read.foreground, read.sum().mean_ns()), (73, false, Some(4e6)));
    assert_eq!(read.waits.count(), 70, "as the histogram counts them");
    let shares = [(1_000, 47.1), (2_000, 14.3), (4_000, 2.9), (8_000, 12.9), (16_000, 17.1), (32_000, 5.7), (0, 0.0)];
    assert_shares(read, &shares);
}

#[test]
fn a_pluggable_database_in_a_quoted_file_is_read() {
    let Some(draft) = only("awr/awr_19c_pdb_level_APEX.html") else { return };
    let step = &draft.steps[0];
    assert_eq!((fact(&draft, "snapshots").as_str(), minutes(&draft)), ("15178-15179", 60.07));
    assert_eq!(draft.began.unwrap().timestamp().0.to_string(), "2023-06-02T11:00:02Z");
    assert_eq!(draft.ended.unwrap().0.to_string(), "2023-06-02T12:00:06Z");
    assert!((figure(step, "DB time") / 60.0 - 3_081.56).abs() < 0.01);
    assert_eq!((figure(step, "Read IO requests"), figure(step, "Write IO requests")), (583.9, 0.3));
    assert_io_profile(step, COLUMNS, [584.8, 584.5, 0.3]);
    for (event, waits, total_s, mean_us) in [
        ("cell single block physical read", 773, 9.9, 12_830.0),
        ("cell single block physical read: RDMA", 55_641, 6.9, 124.71),
        ("cell single block physical read: flash cache", 5_061, 5.1, 1_020.0),
    ] {
        let read = wait(step, event);
        let sum = read.sum();
        assert_eq!((sum.count, sum.mean_ns().map(f64::round)), (waits, Some(mean_us * 1e3)), "{event}");
        assert!((sum.total_ns.unwrap() as f64 / 1e9 - total_s).abs() < 0.1, "{event}");
    }
}

#[test]
fn what_a_client_program_printed_before_the_report_is_passed_over() {
    let Some(draft) = only("awr/dvk_19c_with_sqlplus_prompts.html") else { return };
    let step = &draft.steps[0];
    assert_eq!((draft.title.as_str(), draft.version.as_str()), ("DVK/DVK snapshots 5-7", "19.0.0.0.0"));
    assert_eq!((fact(&draft, "db_id").as_str(), minutes(&draft)), ("2742271753", 117.66));
    assert_eq!(draft.began.unwrap().timestamp().0.to_string(), "2024-10-20T19:51:14Z");
    assert!((figure(step, "DB time") / 60.0 - 0.24).abs() < 0.005);
    assert_io_profile(step, COLUMNS, [1.9, 1.4, 0.5]);
    let sessions = wait(step, "db file sequential read").of_sessions().unwrap();
    assert_eq!((sessions.count, (sessions.mean_ns().unwrap() / 1e4).round()), (780, 143.0), "1.43 ms each");
    let shares = [(8, 0.1), (16, 2.2), (32, 16.4), (64, 19.2), (128, 6.5), (256, 15.0), (512, 2.1)];
    let read = wait(step, "db file sequential read");
    assert_shares(read, &shares);
    let (below, _) = read.waits.below_ns(512_000);
    assert!((below as f64 / read.waits.count() as f64 - 0.616).abs() < 0.002, "38.4 % take 512 us or more");
}

#[test]
fn release_23_tells_single_microseconds() {
    for (file, minutes_long, db_minutes, io, profile, reads, mean_us, syncs, sync_us) in [
        (
            "awr/oci_free_23ai_sprint15.html",
            13.74,
            22.12,
            [448.9, 427.9],
            [1_146.0, 449.4, 696.6],
            355_914.0,
            12.95,
            231_700.0,
            826.63,
        ),
        (
            "awr/oci_free_23ai_sprint17.html",
            3.93,
            9.35,
            [600.1, 942.2],
            [1_822.0, 601.4, 1_220.6],
            130_966.0,
            10.14,
            67_168.0,
            646.00,
        ),
    ] {
        let Some(draft) = only(file) else { return };
        let step = &draft.steps[0];
        assert_eq!(
            (draft.version.as_str(), fact(&draft, "cdb").as_str(), fact(&draft, "rac").as_str()),
            ("23.7.0.25.01", "YES", "NO")
        );
        assert_eq!(minutes(&draft), minutes_long);
        assert!(fact(&draft, "containers").contains("CDB$ROOT"));
        assert!((figure(step, "DB time") / 60.0 - db_minutes).abs() < 0.006, "{file}");
        assert_eq!([figure(step, "Read IO requests"), figure(step, "Write IO requests")], io);
        assert_io_profile(step, COLUMNS, profile);
        for (event, waits, mean_us) in [("db file sequential read", reads, mean_us), ("log file sync", syncs, sync_us)]
        {
            let sessions = wait(step, event).of_sessions().unwrap();
            let (count, total_s) = (sessions.count as f64, sessions.total_ns.unwrap() as f64 / 1e9);
            assert_eq!(count, waits, "{file} {event}");
            assert!((total_s * 1e6 / count - mean_us).abs() < 0.006, "{file} {event}");
        }
    }
    let Some(draft) = only("awr/oci_free_23ai_sprint15.html") else { return };
    let read = wait(&draft.steps[0], "db file sequential read");
    assert_shares(read, &[(4, 0.2), (8, 23.9), (16, 60.2), (32, 13.7), (64, 0.8), (128, 0.9), (256, 0.2)]);
    assert!((358_500..359_500).contains(&read.waits.count()));
}

#[test]
fn reads_that_bypass_the_cache_are_no_single_block_reads() {
    let Some(draft) = only("awr/slob2_12.2_single.html") else { return };
    let step = &draft.steps[0];
    assert_eq!((draft.title.as_str(), draft.version.as_str()), ("SLOB2/SLOB2 snapshots 400-401", "12.2.0.1.0"));
    assert_eq!(
        (fact(&draft, "db_id").as_str(), minutes(&draft), draft.environment.cpus),
        ("3926536870", 21.82, Some(96))
    );
    assert!((figure(step, "DB time") / 60.0 - 1_368.27).abs() < 0.01);
    assert_eq!((figure(step, "Read IO requests"), figure(step, "Write IO requests")), (8_047.3, 1.0));
    assert_io_profile(step, COLUMNS, [8_053.2, 8_051.3, 1.9]);
    assert_eq!(figure(step, "physical read total IO requests"), 10_540_223.0);
    let sessions = wait(step, "db file sequential read").of_sessions().unwrap();
    assert_eq!((sessions.count, (sessions.mean_ns().unwrap() / 10.0).round()), (109, 74_907.0), "749.07 us each");
    let total_ns = |wait: &&WaitStats| wait.of_sessions().and_then(|waited| waited.total_ns);
    let top = step.waits.iter().filter(|wait| wait.class != "Idle").max_by_key(total_ns).unwrap();
    let share = total_ns(&top).unwrap() as f64 / 1e9 / figure(step, "DB time");
    assert_eq!((top.event.as_str(), (share * 1e3).round()), ("direct path read", 321.0), "as the report ranks it");
    let shares = [(256, 15.3), (512, 74.0), (1_024, 8.1), (2_048, 1.4), (4_096, 0.9), (8_192, 0.2), (16_384, 0.2)];
    assert_shares(wait(step, "db file sequential read"), &shares);
}

#[test]
fn a_global_report_of_one_instance_has_one() {
    let Some(draft) = only("awr/slob2_12.2_awrgrpt_1inst.html") else { return };
    let step = &draft.steps[0];
    assert_eq!(
        (draft.title.as_str(), fact(&draft, "rac").as_str(), minutes(&draft)),
        ("SLOB2 snapshots 400-401", "NO", 21.82)
    );
    assert_eq!(step.instances.iter().map(|instance| instance.node.as_str()).collect::<Vec<_>>(), ["SLOB2"]);
    assert_io_profile(step, ["Read+Write/s", "Reads/s", "Writes/s"], [8_053.17, 8_051.28, 1.89]);
    let shares = [(256, 15.3), (512, 74.0), (1_024, 8.1), (2_048, 1.4), (4_096, 0.9), (8_192, 0.2), (16_384, 0.2)];
    assert_shares(wait(step, "db file sequential read"), &shares);
}

/// What its author's tables say of a run: its folder; reads and writes per second of both nodes; single-block reads in
/// millions and their shares by upper edge in microseconds.
type ClusterRun = (&'static str, [[f64; 2]; 2], f64, &'static [(u64, f64)]);

const CLUSTER: [ClusterRun; 6] = [
    (
        "asm-p30x2/cache-off/awr_p30x2_d8s_s40_t1_wu4",
        [[3_484.51, 513.58], [3_521.79, 521.59]],
        4.2,
        &[(4_096, 73.1), (8_192, 20.9), (16_384, 2.8), (32_768, 2.4), (65_536, 0.8)],
    ),
    (
        "asm-p30x2/cache-on/awr_p30x2_d8s_s40_t1_wu4",
        [[3_888.62, 559.12], [4_156.90, 610.77]],
        4.8,
        &[
            (256, 0.3),
            (512, 13.2),
            (1_024, 3.7),
            (2_048, 0.6),
            (4_096, 64.5),
            (8_192, 12.9),
            (16_384, 1.9),
            (32_768, 2.1),
            (65_536, 0.9),
        ],
    ),
    (
        "asm-p60x2/awr_p60x2_e32s_s128_t1_wu4",
        [[10_470.65, 1_625.94], [11_226.43, 1_782.84]],
        13.3,
        &[(4_096, 90.1), (8_192, 4.9), (16_384, 2.5), (32_768, 2.2), (65_536, 0.3)],
    ),
    (
        "asm-p60x2/awr_p60x2_e32s_s128_t1_wu6",
        [[11_191.02, 1_771.33], [11_587.29, 1_831.37]],
        6.8,
        &[(4_096, 82.4), (8_192, 6.4), (16_384, 4.3), (32_768, 5.7), (65_536, 1.3)],
    ),
    (
        "asm-p80x2/awr_p80x2_e32s_s128_t1_wu12",
        [[14_258.71, 2_219.58], [14_158.99, 2_213.26]],
        5.5,
        &[(4_096, 60.5), (8_192, 23.4), (16_384, 4.5), (32_768, 9.4), (65_536, 2.2)],
    ),
    (
        "asm-p80x2/awr_p80x2_e32s_s128_t1_wu16",
        [[14_350.42, 2_243.95], [14_442.18, 2_263.66]],
        5.0,
        &[(4_096, 60.2), (8_192, 21.9), (16_384, 4.3), (32_768, 10.9), (65_536, 2.6)],
    ),
];

#[test]
fn clusters_tell_what_their_authors_tables_say() {
    for (folder, rates, millions, shares) in CLUSTER {
        let Some(draft) = only(&format!("flashgrid/{folder}/awr_rac.html.gz")) else { return };
        let step = &draft.steps[0];
        assert_eq!((draft.version.as_str(), step.instances.len()), ("19.0.0.0.0", 2), "{folder}");
        for (instance, rates) in step.instances.iter().zip(rates) {
            let figures = ["Physical Reads/s", "Physical Writes/s"]
                .map(|name| figure(step, &format!("{}: {name}", instance.node)));
            assert_eq!(figures, rates, "{folder} {}", instance.node);
            let per_s = |blocks: Option<u64>| blocks.unwrap() as f64 / instance.elapsed_ns as f64 * 1e9;
            let counted = per_s(instance.counters.physical_read_blocks);
            assert!((counted - rates[0]).abs() < 0.01, "{folder}: {counted} reads per second");
        }
        let seconds = step.window.duration_ns as f64 / 1e9;
        let (reads, writes) = (step.counters.physical_read_blocks, step.counters.physical_write_blocks);
        let both = (reads.unwrap() + writes.unwrap()) as f64 / seconds;
        let sum: f64 = rates.iter().flatten().sum();
        assert!((both - sum).abs() < 1.0, "{folder}: {both} and not {sum} per second");
        let reads = wait(step, "db file sequential read");
        assert!((reads.waits.count() as f64 / 1e6 - millions).abs() < 0.1, "{folder}: {}", reads.waits.count());
        assert_shares(reads, shares);
        let sum: u64 = step.instances.iter().map(|instance| instance.counters.physical_read_blocks.unwrap()).sum();
        assert_eq!(step.counters.physical_read_blocks, Some(sum), "{folder}");
    }
}

#[test]
fn one_instance_of_a_cluster_tells_its_own_share() {
    let Some(draft) = only("flashgrid/asm-p30x2/cache-on/awr_p30x2_d8s_s40_t1_wu4/awr.html.gz") else { return };
    let step = &draft.steps[0];
    assert_eq!(draft.title, "P30DB/p30db1 snapshots 171-172");
    assert_eq!((draft.target.address.as_str(), step.window.duration_ns), ("P30DB/p30db1", 604_425_999_974));
    assert_eq!(draft.began.unwrap().timestamp().0.to_string(), "2020-02-10T20:33:02Z");
    let per_s = |blocks: Option<u64>| blocks.unwrap() as f64 / step.window.duration_ns as f64 * 1e9;
    let (reads, writes) = (per_s(step.counters.physical_read_blocks), per_s(step.counters.physical_write_blocks));
    assert!((reads - 3_888.62).abs() < 0.006 && (writes - 559.12).abs() < 0.006, "{reads} {writes}");
    let read = wait(step, "db file sequential read");
    assert_shares(
        read,
        &[(512, 12.9), (1_024, 4.0), (2_048, 0.6), (4_096, 63.6), (8_192, 14.5), (16_384, 1.7), (32_768, 1.9)],
    );
    assert!(read.sum().total_ns.is_some() && read.sum().count > 2_345_128);
}
