//! What the tables of a report become.

use super::specimens::{cluster_19, single_12};
use super::*;
use model::record::Workload;

#[test]
fn the_header_says_what_was_measured_where_and_when() {
    let draft = read(&single_12());
    assert_eq!((draft.title.as_str(), draft.workload), ("SHOP/shop1 snapshots 41-42", Workload::Database));
    assert_eq!((draft.program, draft.version.as_str()), ("Oracle Database", "12.2.0.1.0"));
    assert_eq!((draft.target.kind_name(), draft.target.address.as_str()), ("oracle", "SHOP/shop1"));
    let facts = ["db_id", "snapshots", "role", "startup", "platform", "cores", "sessions_begin", "sessions_end"];
    let shown = draft.target.facts.shown();
    let found = facts.map(|name| shown[name].as_str());
    assert_eq!(found, ["77001", "41-42", "PRIMARY", "02-May-21 06:30", "Linux x86 64-bit", "8", "60", "61"]);
    assert_eq!((draft.target.block_bytes, draft.target.cache_bytes), (Some(8_192), Some(2 << 30)));
    assert_eq!((draft.environment.hostname.as_deref(), draft.environment.cpus), (Some("big.box"), Some(16)));
    assert_eq!(draft.environment.memory_bytes, Some(67_108_864_000), "not the rounded gigabytes");
    let at = |text: &str| Began::wall(text.parse().unwrap()).unwrap();
    assert_eq!(draft.began, Some(at("2021-05-03T09:00:10")));
    assert_eq!(draft.ended, Some(at("2021-05-03T09:20:30").timestamp()));
    let step = &draft.steps[0];
    assert_eq!((step.window.duration_ns, step.load.sessions), (1_220_000_000_000, None), "sessions are no load");
}

#[test]
fn statistics_become_counters_by_what_they_mean() {
    let draft = read(&single_12());
    let step = &draft.steps[0];
    let counters = &step.counters;
    let reads = (counters.physical_reads, counters.physical_read_bytes, counters.physical_read_blocks);
    assert_eq!(reads, (Some(9_500), Some(819_200_000), Some(100_000)));
    let writes = (counters.physical_writes, counters.physical_write_bytes, counters.physical_write_blocks);
    assert_eq!(writes, (Some(50), Some(819_200), Some(100)));
    assert_eq!((counters.logical_reads, counters.cache_hits), (Some(160_000), Some(60_000)), "60,000 were direct");
    assert_eq!((counters.commits, counters.redo_bytes, counters.redo_writes), (Some(33), Some(5_000), Some(12)));
    assert_eq!((counters.block_changes, counters.log_switches, counters.direct_reads), (Some(3_000), Some(2), None));
    assert_eq!(step.instances.len(), 1);
    assert_eq!((step.instances[0].node.as_str(), &step.instances[0].counters), ("shop1", counters));
    let own = &step.instances[0].own;
    assert_eq!((own["physical read total IO requests"], own["DB CPU_ns"]), (11_000, 1_030_250_000_000));
    assert_eq!((own["DB time_ns"], own["BUSY_TIME_ns"]), (6_030_120_000_000, 4_000_000_000_000));
    let cpu = step.host_cpu.unwrap();
    assert_eq!((cpu.user_ns, cpu.system_ns), (2_500_000_000_000, 1_500_000_000_000));
    let idle = (cpu.idle_ns, cpu.iowait_ns);
    assert_eq!(idle, (Some(15_000_000_000_000), Some(1_000_000_000_000)), "idle includes waiting for I/O there");
}

#[test]
fn figures_keep_the_names_of_the_report() {
    let draft = read(&single_12());
    let step = &draft.steps[0];
    assert_eq!(figure(step, "DB time"), value_and_unit(6_030.12, "s"), "more exact than the minutes of the header");
    assert_eq!(step.reported.iter().find_map(|figure| figure.value_of(model::record::Metric::DbTime)), Some(6_030.12));
    assert_eq!(figure(step, "Read IO requests"), value_and_unit(1_000.5, "/s"));
    assert_eq!(figure(step, "Total Requests: Write Per Second"), value_and_unit(100.3, "/s"));
    assert_eq!(figure(step, "Redo Requests: Read per Second"), None, "blank");
    assert_eq!(figure(step, "%WIO"), value_and_unit(3.5, "%"));
    assert_eq!(figure(step, "physical read total IO requests"), value_and_unit(11_000.0, ""));
    assert_eq!(figure(step, "function LGWR: Writes: Data"), value_and_unit(2_147_483_648.0, "B"));
    assert_eq!(figure(step, "function LGWR: Writes: Reqs per sec"), value_and_unit(4.25, "/s"));
    assert_eq!(figure(step, "function LGWR: Writes: Data per sec"), value_and_unit(1_572_864.0, "B/s"));
    assert_eq!(figure(step, "function LGWR: Waits: Count"), value_and_unit(1_200.0, ""));
    assert_eq!(figure(step, "function LGWR: Waits: Avg Time"), value_and_unit(0.6405, "ms"));
    assert_eq!(figure(step, "file type Data File: Small Read"), value_and_unit(0.25, "ms"));
}

#[test]
fn all_histogram_tables_of_an_event_are_one() {
    let draft = read(&single_12());
    let step = &draft.steps[0];
    let read = wait(step, "db file sequential read");
    assert_eq!((read.class.as_str(), read.layer.as_str(), read.foreground), ("User I/O", "engine", true));
    assert_eq!(
        buckets(read),
        [(256, 1_000), (512, 3_000), (1_024, 900), (2_048, 2_000), (4_096, 3_000), (131_072, 100)],
        "9,000 and 1,000 waits are the 10K of the histogram"
    );
    assert_eq!(read.waits.total_ns(), Some(19_090_000_000), "averages are more exact than whole seconds here");
    let sessions = read.of_sessions().unwrap();
    assert_eq!((sessions.count, sessions.total_ns), (9_000, Some(18_090_000_000)));
    assert_eq!(read.of_background().unwrap().count, 1_000);
    assert!(draft.notes.iter().any(|note| note.contains("foreground and background together")), "{:?}", draft.notes);
    let write = wait(step, "db file parallel write");
    assert_eq!((buckets(write), write.foreground), (vec![(256, 1), (512, 4)], false));
    assert_eq!(wait(step, "log file sync").waits.total_ns(), Some(48_200_000));
    let latch = wait(step, "latch free");
    assert_eq!((latch.waits.count(), latch.waits.total_ns()), (8, None), "no table of events has it");
    let idle = wait(step, "SQL*Net message from client");
    assert_eq!((idle.class.as_str(), idle.waits.is_distribution(), idle.waits.count()), ("Idle", false, 700));
}

#[test]
fn a_total_by_its_mean_rounds_to_the_total_that_is_printed() {
    let total = |seconds: &str| {
        let text = single_12().replacen("<td class='awrc'>18<", &format!("<td class='awrc'>{seconds}<"), 1);
        wait(&read(&text).steps[0], "db file sequential read").of_sessions().unwrap().total_ns
    };
    assert_eq!(total("18"), Some(18_090_000_000), "9,000 x 2.01 ms");
    // 18.045 to 18.135 s by the mean, and 18.05 s or more by a total of tenths.
    assert_eq!(total("18.1"), Some(18_090_000_000));
    assert_eq!(total("18.0"), Some(18_050_000_000));
}

#[test]
fn a_total_time_stands_beside_a_histogram_of_other_waits() {
    let draft = read(&single_12().replace(
        "<td class='awrc'>9,000</td><td class='awrc'>&#160;",
        "<td class='awrc'>4,000</td><td class='awrc'>&#160;",
    ));
    let step = &draft.steps[0];
    let read = wait(step, "db file sequential read");
    assert_eq!((read.waits.count(), read.waits.total_ns()), (10_000, None), "the histogram's own");
    let waits_at = |at: usize| (read.reported[at].by, read.reported[at].count, read.reported[at].source.as_str());
    assert_eq!(waits_at(0), (Waiters::Foreground, 4_000, "Foreground Wait Events"));
    assert_eq!(waits_at(1), (Waiters::Background, 1_000, "Background Wait Events"));
    assert_eq!(read.sum(), Waited { count: 5_000, total_ns: Some(9_040_000_000) });
    let expected = "Of 1 events the tables of events and the histograms have different numbers of waits.";
    let note =
        draft.notes.iter().find(|note| note.starts_with(expected)).unwrap_or_else(|| panic!("{:?}", draft.notes));
    assert!(note.ends_with("By more than a tenth: `db file sequential read` (5,000 there, 10,000 here)."), "{note}");
}

#[test]
fn waits_of_every_class_are_kept_where_histograms_count_otherwise() {
    // The heaviest event is none of I/O, and its histogram has a tenth of its waits.
    let text = single_12()
        .replacen(
            "<td class='awrc'>log file sync</td><td class='awrc'>400<",
            "<td class='awrc'>latch free</td><td class='awrc'>90<",
            1,
        )
        .replace("<td class='awrc'>120.50us<", "<td class='awrc'>100.00s<");
    let draft = read(&text);
    let step = &draft.steps[0];
    let latch = wait(step, "latch free");
    assert_eq!((latch.waits.count(), latch.sum()), (8, Waited { count: 90, total_ns: Some(9_000_000_000_000) }));
    let total_ns = |wait: &&WaitStats| wait.of_sessions().and_then(|waited| waited.total_ns);
    let top = step.waits.iter().filter(|wait| wait.class != "Idle").max_by_key(total_ns).unwrap();
    assert_eq!(top.event, "latch free");
    assert!(draft.notes.iter().any(|note| note.contains("`latch free` (90 there, 8 here)")), "{:?}", draft.notes);
}

#[test]
fn events_without_a_share_of_db_time_are_idle() {
    let text = single_12().replace(
        "<td class='awrc'>SQL*Net message from client</td>",
        "<td class='awrc'>some new way to do nothing</td>",
    );
    assert_eq!(wait(&read(&text).steps[0], "some new way to do nothing").class, "Idle");
    let shared = single_12().replace(
        "<td class='awrc'>12857.14ms</td><td class='awrc'>1.0</td><td class='awrc'>&#160;</td>",
        "<td class='awrc'>12857.14ms</td><td class='awrc'>1.0</td><td class='awrc'>9.9</td>",
    );
    assert_ne!(shared, single_12());
    assert_eq!(wait(&read(&shared).steps[0], "SQL*Net message from client").class, "", "the report counts it");
}

#[test]
fn rows_of_events_whose_names_were_cut_to_one_are_all_kept() {
    let row = |waits: &str| {
        format!(
            "<tr><td class='awrc'>latch: cut</td><td class='awrc'>{waits}</td><td class='awrc'>&#160;</td><td class='awrc'>7</td><td class='awrc'>1.00ms</td><td class='awrc'>1</td><td class='awrc'>1.0</td></tr>\n"
        )
    };
    let next = "<tr><td class='awrc'>log file sync</td>";
    let text = single_12().replacen(next, &format!("{}{}{next}", row("70"), row("60")), 1);
    assert_ne!(text, single_12());
    let draft = read(&text);
    let counts: Vec<u64> =
        draft.steps[0].waits.iter().filter(|wait| wait.event == "latch: cut").map(|wait| wait.sum().count).collect();
    assert_eq!(counts, [70, 60]);
    assert!(draft.notes.iter().any(|note| note.contains("to one: `latch: cut`")), "{:?}", draft.notes);
}

#[test]
fn statements_are_not_kept() {
    let draft = read(&single_12());
    assert!(!format!("{draft:?}").contains("card_number"));
}

#[test]
fn rates_stand_in_for_statistics_that_are_missing() {
    let text = single_12().replace("Instance Activity Stats", "Instance Gossip");
    let draft = read(&text);
    assert_eq!(draft.steps[0].counters.physical_reads, Some(1_220_610), "1,000.5 in each of 1,220 seconds");
    assert!(
        draft.notes.iter().any(|note| note.contains("rates of its load profile times its window")),
        "{:?}",
        draft.notes
    );
    let timeless = text.replace("03-May-21", "in May").replace("20.33 (mins)", "");
    let draft = read(&timeless);
    assert_eq!(
        (draft.steps[0].window.duration_ns, draft.steps[0].counters.physical_reads, draft.began),
        (0, None, None)
    );
}

#[test]
fn rates_tell_the_window_more_exactly_than_snapshots() {
    let rated = single_12().replace(
        "<td class='awrc'>819,200,000</td><td class='awrc'>1<",
        "<td class='awrc'>819,200,000</td><td class='awrc'>671,750.72<",
    );
    let draft = read(&rated);
    let step = &draft.steps[0];
    assert_eq!(step.window.duration_ns / 1_000_000, 1_219_499, "not 1,220 s");
    assert_eq!(step.instances[0].elapsed_ns, step.window.duration_ns);
    let cluster = cluster_19()
        .replace(
            "<td class='awrc'>4,000</td><td class='awrc'>300<",
            "<td class='awrc'>4,000,000,000</td><td class='awrc'>300<",
        )
        .replace("<td class='awrc'>6.67<", "<td class='awrc'>6,670,000.00<");
    let step = &read(&cluster).steps[0];
    assert_eq!(step.instances[0].elapsed_ns / 1_000_000, 599_700, "not 600 s");
    assert_eq!((step.instances[1].elapsed_ns, step.window.duration_ns), (598_800_000_000, 600_000_000_000));
}

#[test]
fn a_clock_that_was_changed_does_not_change_the_window() {
    let draft = read(&single_12().replace("09:20:30", "10:20:30"));
    assert_eq!(draft.steps[0].window.duration_ns, 1_219_800_000_000, "20.33 minutes, not 80");
}
