//! What fio prints with options that few people set.

use super::tests::{JSON_3, TERSE, TEXT_3, count, figure_value, runs};
use crate::Draft;
use model::record::Outcome;

/// A document of jobs of one group, each of `(options, runtimes of reads and writes, job_runtime)` in milliseconds.
fn document(jobs: &[(&str, [u32; 2], u32)]) -> String {
    let direction = |ms: u32| {
        let bytes = if ms > 0 { 4_096_000 } else { 0 };
        let count = bytes / 4_096;
        format!(
            r#"{{"io_bytes":{bytes},"io_kbytes":{},"bw":4,"iops":{count},"runtime":{ms},"total_ios":{count},
            "clat_ns":{{"min":5,"max":5000,"mean":900.5,"N":{count}}}}}"#,
            bytes / 1_024
        )
    };
    let job = |(options, [read_ms, write_ms], job_ms): &(&str, [u32; 2], u32)| {
        format!(
            r#"{{"jobname":"a","groupid":0,"error":0,"job options":{{{options}}},"read":{},"write":{},"job_runtime":{job_ms}}}"#,
            direction(*read_ms),
            direction(*write_ms)
        )
    };
    let jobs: Vec<String> = jobs.iter().map(job).collect();
    format!(r#"{{"fio version":"fio-3.33","global options":{{"ioengine":"libaio"}},"jobs":[{}]}}"#, jobs.join(","))
}

fn only(drafts: Vec<Draft>) -> Draft {
    let [draft] = <[Draft; 1]>::try_from(drafts).unwrap();
    draft
}

/// fio prints no options that were set without a value: `group_reporting` of a job file is missing in its JSON.
#[test]
fn clones_that_are_reported_as_one_count_though_nothing_says_that_they_are_one() {
    let options = r#""rw":"randread","bs":"4k","iodepth":"8","numjobs":"4""#;
    let summed = only(runs("fio-json", &document(&[(options, [2_000, 0], 8_000)])));
    assert_eq!((summed.steps[0].load.sessions, summed.parameters["JOBS"].as_str()), (Some(32), "4"));
    let each = only(runs("fio-json", &document(&[(options, [2_000, 0], 2_000); 4])));
    assert!(each.steps.iter().all(|step| step.load.sessions == Some(8)), "each clone has its own place");
    assert_eq!(each.parameters["JOBS"], "1");
}

#[test]
fn more_processes_than_the_options_have_are_those_of_other_jobs() {
    let options = r#""rw":"randread","bs":"4k","iodepth":"8""#;
    let draft = only(runs("fio-json", &document(&[(options, [2_000, 0], 4_010)])));
    assert_eq!((draft.steps[0].load.sessions, draft.parameters.get("DEPTH")), (None, None));
    assert!(draft.notes.iter().any(|note| note.contains("different kinds")), "{:?}", draft.notes);
    let short = only(runs("fio-json", &document(&[(options, [20, 0], 60)])));
    assert_eq!(short.steps[0].load.sessions, Some(8), "starting takes as long");
}

#[test]
fn writes_that_are_verified_take_the_time_of_both() {
    let options = r#""rw":"write","bs":"4k","verify":"crc32c""#;
    let draft = only(runs("fio-json", &document(&[(options, [1_000, 2_000], 3_050)])));
    assert_eq!((draft.steps[0].window.duration_ns, draft.steps[0].load.sessions), (3_050_000_000, Some(1)));
    let about = |what: &str| draft.notes.iter().filter(|note| note.contains(what)).count();
    assert_eq!((about("to verify it"), about("equally long")), (1, 0));
    let both = only(runs("fio-json", &document(&[(r#""rw":"rw","bs":"4k""#, [1_000, 2_000], 2_000)])));
    assert_eq!(both.steps[0].window.duration_ns, 2_000_000_000);
    let reads = "  read: IOPS=500, BW=2000KiB/s (2048kB/s)(2000KiB/250msec)\n    clat (usec): min=2, max=4, avg= 3.00, stdev= 1.00\n  lat (usec)   : 50=90.00%";
    let text = TEXT_3.replace("  lat (usec)   : 50=90.00%", reads).replace("total=0,500,0,500", "total=500,500,0,500");
    let normal = only(runs("fio-text", &text));
    assert_eq!(normal.steps[1].window.duration_ns, 1_250_000_000);
}

#[test]
fn short_invocations_after_each_other_are_not_reports_of_one() {
    let again = JSON_3
        .replace("\"timestamp_ms\" : 1767607200500", "\"timestamp_ms\" : 1767607201500")
        .replace("\"max\" : 201000", "\"max\" : 199000");
    assert_ne!(again.matches("199000").count(), 0);
    assert_eq!(runs("fio-json", &format!("{JSON_3}{again}")).len(), 2, "a longest request does not grow shorter");
}

/// What was counted in a ramp is forgotten at its end, and the beginning of the job is the end of the ramp.
#[test]
fn a_report_of_a_ramp_is_no_run() {
    let report = |seconds: u32, start: u32, count: u32| {
        document(&[(r#""rw":"randread","ramp_time":"3""#, [1_000, 0], 1_000)])
            .replace("\"error\":0", &format!("\"error\":0,\"elapsed\":{seconds},\"job_start\":1767607{start}000"))
            .replace("\"total_ios\":1000", &format!("\"total_ios\":{count}"))
            .replacen('{', &format!("{{\"timestamp_ms\":17676072{seconds:02}000,"), 1)
    };
    let draft = only(runs("fio-json", &format!("{}{}", report(3, 200, 900), report(5, 203, 500))));
    assert_eq!((count(&draft.steps[0], "read"), draft.steps.len()), (Some(500), 1));
    let plain = |report: String| report.replace(",\"ramp_time\":\"3\"", "");
    let two = format!("{}{}", plain(report(3, 200, 900)), plain(report(5, 203, 500)));
    assert_eq!(runs("fio-json", &two).len(), 2);
}

#[test]
fn the_sum_of_all_clients_is_a_result_where_nothing_else_is() {
    let text = document(&[("", [1_000, 0], 1_000)])
        .replace("\"a\"", "\"All clients\"")
        .replace("\"jobs\"", "\"client_stats\"");
    assert_eq!(only(runs("fio-json", &text)).steps[0].label, "All clients");
}

/// A terse row of version 3 with the directions `ways`: the reads of a job of the specimens stand for each.
fn row(version: u32, ways: usize) -> String {
    let row = TERSE.lines().find(|line| line.starts_with("3;fio-3.33;a;")).unwrap();
    let fields: Vec<&str> = row.split(';').collect();
    let (head, reads, tail) = (&fields[1..5], &fields[5..46], &fields[87..]);
    let directions = vec![reads.join(";"); ways].join(";");
    format!("{version};{};{directions};{}\n", head.join(";"), tail.join(";"))
}

#[test]
fn terse_rows_of_unified_reports_have_one_direction_or_one_more() {
    let mixed = only(runs("fio-terse", &row(3, 1)));
    let step = &mixed.steps[0];
    assert_eq!((count(step, "mixed"), step.counters.operations), (Some(264), Some(264)));
    assert_eq!((step.counters.physical_reads, figure_value(step, "usr_cpu")), (None, Some(1.5)));
    for (version, ways) in [(3, 3), (4, 4)] {
        let both = only(runs("fio-terse", &row(version, ways)));
        let step = &both.steps[0];
        assert_eq!(
            (figure_value(step, "usr_cpu"), figure_value(step, "sda write_ticks")),
            (Some(1.5), Some(60.0)),
            "{version}"
        );
        assert_eq!((count(step, "read"), count(step, "mixed")), (Some(264), None), "they are counted already");
        assert_eq!(figure_value(step, "mixed iops"), Some(132.0));
    }
}

#[test]
fn terse_figures_that_cannot_be_are_doubted_and_left_out() {
    let whole = TERSE.lines().find(|line| line.starts_with("3;fio-3.33;a;")).unwrap();
    let falling = whole.replacen("99.000000%=9", "99.000000%=3", 1);
    assert_ne!(falling, whole);
    let draft = only(runs("fio-terse", &falling));
    assert!(draft.notes.iter().any(|note| note.contains("percentiles-ascend")), "{:?}", draft.notes);
    // What is left are the shares of its buckets.
    assert_ne!(draft.steps[0].operations[0].service.quantiles_ns(&[0.99]), [Some(3_000)]);
}

#[test]
fn terse_percentiles_that_no_completion_reached_are_of_the_total() {
    let total = TERSE.lines().find(|line| line.starts_with("3;fio-3.33;a;")).unwrap().replace("%=9;", "%=16;");
    let step = &only(runs("fio-terse", &total)).steps[0];
    let reads = &step.operations[0].service;
    assert_eq!((reads.max_ns(), reads.mean_ns()), (Some(17_000), Some(6_000.0)));
    assert_eq!(
        (figure_value(step, "read lat percentile 99"), figure_value(step, "read clat percentile 99")),
        (Some(16.0), None)
    );
}

#[test]
fn latency_of_a_priority_is_not_that_of_all() {
    let prio = "    high prio_clat (usec): min=7, max=8, avg= 7.50, stdev= 1.00\n    low prio_clat (msec): min=1, max=2, avg= 1.50, stdev= 1.00\n    clat percentiles (usec):\n     |  1.00th=[  130]";
    let plain = format!("{:?}", runs("fio-text", TEXT_3));
    let text = TEXT_3.replacen("    clat percentiles (usec):\n     |  1.00th=[  130]", prio, 1);
    assert_ne!(text, TEXT_3);
    assert_eq!(format!("{:?}", runs("fio-text", &text)), plain, "3.16 to 3.30");
    let newer = prio.replace("high prio_clat", "clat prio 1/0").replace("low prio_clat", "clat prio 0/0");
    let text = TEXT_3.replacen("    clat percentiles (usec):\n     |  1.00th=[  130]", &newer, 1);
    assert_eq!(format!("{:?}", runs("fio-text", &text)), plain, "from 3.31 on");
}

#[test]
fn rates_in_bits_are_reported_in_bits() {
    let text = TEXT_3.replace("BW=15.6MiB/s (16.4MB/s)(938MiB", "BW=125Mibit/s (131Mbit/s)(938MiB");
    let drafts = runs("fio-text", &text);
    let bw = drafts[0].steps[0].reported.iter().find(|figure| figure.name == "read bw").unwrap();
    assert_eq!((bw.value, bw.unit.as_str()), (125.0, "Mibit/s"));
}

/// `unified_rw_reporting=both` prints this of the sum, up to 3.33 at least, above latencies that are right.
#[test]
fn a_rate_of_zero_beside_latencies_is_not_reported() {
    let mixed = "  mixed: IOPS=0, BW=0 (0)(0B/60000msec)\n    clat (usec): min=1, max=9, avg= 3.00, stdev= 1.00\n  lat (usec)   : 250=5.27%";
    let drafts = runs("fio-text", &TEXT_3.replace("  lat (usec)   : 250=5.27%", mixed));
    let step = &drafts[0].steps[0];
    assert_eq!((figure_value(step, "mixed iops"), figure_value(step, "mixed clat mean")), (None, Some(3.0)));
    assert_eq!((step.counters.operations, step.operations.len()), (Some(80_000), 2));
}

#[test]
fn a_job_that_went_on_after_errors_did_not_fail() {
    let options = r#""rw":"randread","bs":"4k","continue_on_error":"all""#;
    let text = document(&[(options, [2_000, 0], 2_000)]);
    let failed = text.replace("\"error\":0", "\"error\":84,\"total_err\":3,\"first_error\":5");
    assert!(matches!(only(runs("fio-json", &failed)).steps[0].outcome, Outcome::Failed { .. }), "another one ended it");
    let went_on = only(runs("fio-json", &failed.replace("\"error\":84", "\"error\":5")));
    assert_eq!((&went_on.steps[0].outcome, went_on.steps[0].counters.errors), (&Outcome::Completed, Some(3)));
    let text = TEXT_3
        .replace("my job: (groupid=0, jobs=2): err= 0:", "my job: (groupid=0, jobs=2): err= 5 (file:x.c:1, func=f):");
    assert_ne!(text, TEXT_3);
    assert_eq!(only(runs("fio-text", &text)).steps[0].outcome, Outcome::Completed);
    assert!(matches!(only(runs("fio-text", &text)).steps[1].outcome, Outcome::Failed { .. }));
}

/// fio's JSON reports every option that has a value, so that one it does not report has its default.
#[test]
fn blocks_that_nobody_set_are_of_4096_bytes() {
    let draft = only(runs("fio-json", &document(&[(r#""rw":"randread","iodepth":"8""#, [2_000, 0], 2_000)])));
    assert_eq!((draft.parameters["BLOCK_SIZE"].as_str(), draft.target.block_bytes), ("4K", Some(4_096)));
}

#[test]
fn servers_of_one_client_are_steps_of_one_run() {
    let server = |host: &str| format!("hostname={host}, be=0, 64-bit, os=Linux, arch=x86-64, fio=fio-3.33, flags=1\n");
    let asked = |host: &str| {
        format!(
            "<{host}> a: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=libaio, iodepth=4\n<{host}> Starting 1 process\n"
        )
    };
    let job = |name: &str, pid: u32, count: u32| {
        format!(
            "{name}: (groupid=0, jobs=1): err= 0: pid={pid}: Tue Feb  3 04:05:06 2026\n  read: IOPS={count}, BW=4000KiB/s (4096kB/s)(4000KiB/1000msec)\n\
             \x20   clat (usec): min=2, max=400, avg=44.87, stdev= 2.22\n     issued rwts: total={count},0,0,0 short=0,0,0,0 dropped=0,0,0,0\n\n"
        )
    };
    let end = "Run status group 0 (all jobs):\n   READ: bw=4000KiB/s (4096kB/s), io=4000KiB (4096kB), run=1000-1000msec\n\nDisk stats (read/write):\n  vda: ios=287/442, merge=0/634, ticks=7686/126899, in_queue=137281, util=99.68%\n";
    let report = |count: u32| {
        let first = format!("Jobs: 2 (f=2)<db1> \n{}{end}", job("a", 7, count));
        format!("{first}<db2> \n{}{end}{}", job("a", 7, count + 1), job("All clients", 0, 2 * count + 1))
    };
    let head = [server("db1"), asked("db1"), server("db2"), asked("db2")].concat();
    let draft = only(runs("fio-text", &format!("{head}{}{}", report(500), report(1_000))));
    let steps: Vec<(&str, Option<u64>, Option<u32>)> =
        draft.steps.iter().map(|step| (step.label.as_str(), count(step, "read"), step.load.sessions)).collect();
    assert_eq!(steps, [("db1 a", Some(1_000), Some(4)), ("db2 a", Some(1_001), Some(4))], "of two processes 7");
    let figure = |name| figure_value(&draft.steps[0], name);
    assert_eq!((figure("All clients read iops"), figure("db2 vda util")), (Some(2_001.0), Some(99.68)));
    let two = runs("fio-text", &format!("{head}{}{head}{}", report(500), report(1_000)));
    assert_eq!(two.iter().map(|draft| draft.version.as_str()).collect::<Vec<_>>(), ["3.33", "3.33"]);
}
