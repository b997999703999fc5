//! Small outputs of every form and age.

use crate::{Draft, Importer, Notes, Source, recognise};
use model::record::Workload;
use model::record::{Ending, Outcome, Step, Timestamp};

pub(super) const JSON_3: &str = include_str!("specimens/json_3.json");
pub(super) const JSON_2: &str = include_str!("specimens/json_2.json");
pub(super) const TEXT_3: &str = include_str!("specimens/normal_3.txt");
pub(super) const TEXT_2: &str = include_str!("specimens/normal_2.txt");
pub(super) const TERSE: &str = include_str!("specimens/terse.txt");

fn source(text: &str) -> Source {
    Source::new("file", text.as_bytes().to_vec(), Timestamp(jiff::Timestamp::UNIX_EPOCH)).unwrap()
}

fn read(text: &str) -> Result<(&'static Importer, Vec<Draft>, Notes), String> {
    crate::read(&source(text)).map_err(|error| error.to_string())
}

/// The runs in a text of a kind that was understood.
pub(super) fn runs(kind: &str, text: &str) -> Vec<Draft> {
    let (importer, drafts, notes) = read(text).unwrap();
    assert_eq!((importer.kind, notes.into_list()), (kind, Vec::new()));
    drafts
}

pub(super) fn figure_value(step: &Step, name: &str) -> Option<f64> {
    step.reported.iter().find(|figure| figure.name == name).map(|figure| figure.value)
}

pub(super) fn count(step: &Step, kind: &str) -> Option<u64> {
    step.operations.iter().find(|operation| operation.kind == kind).map(|operation| operation.count)
}

#[test]
fn json_of_3_is_read_to_the_last_bin() {
    let drafts = runs("fio-json", JSON_3);
    let [draft] = drafts.as_slice() else { panic!("{}", drafts.len()) };
    assert_eq!((draft.workload, draft.program, draft.version.as_str()), (Workload::Io, "fio", "3.33"));
    assert_eq!(draft.ended.unwrap().0.to_string(), "2026-01-05T10:00:00.5Z");
    assert_eq!(draft.began.unwrap().timestamp().0.to_string(), "2026-01-05T09:59:45.5Z");
    assert_eq!(draft.environment.hostname, None);
    let [mixed, trims] = draft.steps.as_slice() else { panic!("{}", draft.steps.len()) };
    assert_eq!((mixed.label.as_str(), mixed.load.sessions), ("oltp", Some(16)));
    assert_eq!((mixed.counters.physical_reads, mixed.counters.physical_read_bytes), (Some(700), Some(700 * 8_192)));
    assert_eq!((mixed.counters.physical_writes, mixed.counters.operations), (Some(300), Some(1_000)));
    assert_eq!(mixed.window.duration_ns, 10_000_000_000);
    let [reads, writes] = mixed.operations.as_slice() else { panic!("{:?}", mixed.operations) };
    assert_eq!(
        reads.service.buckets_ns().map(|(from, .., count)| (from, count)).collect::<Vec<_>>(),
        [(99_328, 400), (198_656, 300)]
    );
    assert_eq!((reads.service.total_ns(), reads.service.max_ns()), (Some(700 * 150_000), Some(201_000)));
    assert_eq!(writes.service.quantiles_ns(&[0.5, 0.99]), [Some(60_160), Some(88_000)]);
    let [syncs] = mixed.waits.as_slice() else { panic!("{:?}", mixed.waits) };
    assert_eq!(
        (syncs.event.as_str(), syncs.waits.count(), syncs.waits.quantile_ns(0.5)),
        ("sync", 40, Some(2_007_040))
    );
    assert_eq!(
        (figure_value(mixed, "read iops"), figure_value(mixed, "write bw_bytes")),
        (Some(70.0), Some(245_760.0))
    );
    assert_eq!((figure_value(mixed, "read slat_ns mean"), figure_value(mixed, "sys_cpu")), (Some(4_000.5), Some(1.25)));
    assert_eq!(
        (figure_value(mixed, "sda write_sectors"), figure_value(mixed, "sda util")),
        (Some(4_800.0), Some(97.5))
    );
    assert_eq!(trims.label, "oltp #2");
    assert_eq!((count(trims, "trim"), figure_value(trims, "trim total_ios")), (Some(50), Some(50.0)));
    assert_eq!((trims.counters.physical_reads, trims.counters.operations), (Some(0), Some(50)));
    assert_eq!(trims.outcome, Outcome::Failed { error: "fio says error 5".to_owned() });
    assert_eq!(trims.window.offset_ns, 2_000_000_000);
    assert_eq!(draft.parameters["ioengine"], "libaio");
    let in_force = |name| mixed.parameters.get(name).or(draft.parameters.get(name)).unwrap().as_str();
    let own = ["PATTERN", "READ_PCT", "BLOCK_SIZE", "DEPTH", "JOBS"].map(in_force);
    assert_eq!(own, ["randrw", "70", "8K", "16", "1"]);
    assert_eq!((draft.target.address.as_str(), draft.target.facts.files.direct_io), ("/dev/x", Some(true)));
    assert!(draft.notes.iter().any(|note| note.contains("at the same time")), "{:?}", draft.notes);
    assert!(!format!("{draft:?}").contains("hunter2"), "a secret");
}

#[test]
fn json_of_2_is_in_kib_and_microseconds_and_computes_counts() {
    let drafts = runs("fio-json", JSON_2);
    let [draft] = drafts.as_slice() else { panic!("{}", drafts.len()) };
    assert_eq!((draft.version.as_str(), draft.began, draft.ended), ("2.1.9", None, None));
    let step = &draft.steps[0];
    assert_eq!(step.counters.physical_write_bytes, Some(4_000 * 1_024));
    assert_eq!((count(step, "write"), step.load.sessions), (Some(1_000), None));
    let writes = &step.operations[0].service;
    assert_eq!(writes.quantiles_ns(&[0.5, 0.99]), [Some(700_000), Some(1_500_000)]);
    assert_eq!((writes.mean_ns(), writes.min_ns()), (Some(800_000.0), Some(90_000)));
    assert!(draft.notes.iter().any(|note| note.contains("no count of requests")), "{:?}", draft.notes);
    assert_eq!(figure_value(step, "write clat percentile 99"), Some(1_500.0));
}

#[test]
fn numbered_bins_of_json_plus_are_microseconds() {
    let bins = r#""bins" : { "FIO_IO_U_PLAT_BITS" : 6, "FIO_IO_U_PLAT_VAL" : 64, "FIO_IO_U_PLAT_NR" : 1216,
        "100" : 600, "128" : 400, "129" : 0 }, "percentile" "#;
    let drafts = runs("fio-json", &JSON_2.replace("\"percentile\"", bins));
    let buckets: Vec<(u64, u64)> =
        drafts[0].steps[0].operations[0].service.buckets_ns().map(|(from, .., count)| (from, count)).collect();
    assert_eq!(buckets, [(100_000, 600), (128_000, 400)]);
}

#[test]
fn wrapped_json_is_the_same_run() {
    let plain = format!("{:?}", runs("fio-json", JSON_3));
    let same = |text: String| assert_eq!(format!("{:?}", runs("fio-json", &text)), plain);
    same(JSON_3.replace('\n', "\r\n"));
    same(format!("\u{feff}\u{1b}[1mnote: {{ both }} iodepth\u{1b}[0m\n$ fio a.fio\n{JSON_3}\nDone {{0}}.\n"));
    same(JSON_3.lines().map(|line| format!("2026-01-05T10:00:00.1Z pod/1 {line}\n")).collect());
    same(JSON_3.replace('\n', " "));
    same(format!("{{\"host\": \"a\", \"fio\": {JSON_3}}}"));
    same(JSON_3.replace("\"usr_cpu\" : 0.5", "\"usr_cpu\" : 0.5, \"bw_agg\" : -nan, \"x\" : inf"));
    let sorted: serde_json::Value = serde_json::from_str(JSON_3).unwrap();
    same(sorted.to_string());
}

#[test]
fn of_status_reports_the_last_counts_and_other_invocations_are_their_own() {
    let early = JSON_3
        .replace("\"timestamp_ms\" : 1767607200500", "\"timestamp_ms\" : 1767607195500")
        .replace("\"elapsed\" : 15", "\"elapsed\" : 10")
        .replace("\"io_bytes\" : 5734400", "\"io_bytes\" : 3000000");
    let drafts = runs("fio-json", &format!("{early}{JSON_3}"));
    assert_eq!(drafts.len(), 1);
    assert_eq!(drafts[0].steps[0].counters.physical_read_bytes, Some(5_734_400));
    let later = JSON_3.replace("\"timestamp_ms\" : 1767607200500", "\"timestamp_ms\" : 1767607300500");
    assert_eq!(runs("fio-json", &format!("{JSON_3}\n---\n{later}")).len(), 2);
    assert_eq!(
        runs("fio-json", &format!("{JSON_2}{JSON_2}")).len(),
        2,
        "without a time nothing says that they are one"
    );
}

#[test]
fn clients_are_steps_and_their_sum_is_reported() {
    let job = |host: &str, name: &str, iops: u32| {
        format!(
            r#"{{"jobname":"{name}","groupid":0,"error":0,{host}"read":{{"io_bytes":4096,"io_kbytes":4,"iops":{iops},"bw":4,"runtime":1000,
            "total_ios":1,"clat_ns":{{"min":5,"max":5,"mean":5,"N":1}}}}}}"#
        )
    };
    let clients = [
        job(r#""hostname":"db1","port":8765,"#, "j", 1),
        job(r#""hostname":"db2","port":8765,"#, "j", 2),
        job("", "All clients", 3),
    ];
    let text = format!("hostname=db1, be=0\n{{\"fio version\":\"fio-3.40\",\"client_stats\":[{}]}}", clients.join(","));
    let drafts = runs("fio-json", &text);
    let labels: Vec<&str> = drafts[0].steps.iter().map(|step| step.label.as_str()).collect();
    assert_eq!(labels, ["db1 j", "db2 j"]);
    assert_eq!(figure_value(&drafts[0].steps[0], "All clients read iops"), Some(3.0));
    assert!(!drafts[0].steps[0].operations[0].service.is_distribution());
}

#[test]
fn unified_reports_are_not_counted_twice() {
    let alone = JSON_3.replace("\"read\" : {", "\"mixed\" : {").replace("\"write\" : {", "\"was\" : {");
    let drafts = runs("fio-json", &alone);
    let step = &drafts[0].steps[0];
    assert_eq!((count(step, "mixed"), step.counters.operations), (Some(700), Some(700)));
    assert_eq!(step.counters.physical_reads, None, "how many of them were reads is not reported");
    let both =
        JSON_3.replacen("\"trim\" : {", "\"mixed\" : { \"io_bytes\" : 9, \"total_ios\" : 1000 }, \"trim\" : {", 1);
    assert_eq!(runs("fio-json", &both)[0].steps[0].counters.operations, Some(1_000));
}

#[test]
fn json_that_is_cut_short_is_refused_with_its_line() {
    let half = JSON_3.get(..JSON_3.len() / 2).unwrap();
    let error = read(half).unwrap_err();
    assert!(error.contains("ends in the middle"), "{error}");
    assert!(read(&format!("{JSON_3}{half}")).is_err(), "a whole one before it does not help");
    assert!(read("{\"fio version\" : \"fio-3.1\", \"jobs\" : []}").unwrap_err().contains("no job"));
}

#[test]
fn normal_output_of_3_is_read() {
    let drafts = runs("fio-text", TEXT_3);
    let [draft] = drafts.as_slice() else { panic!("{}", drafts.len()) };
    assert_eq!((draft.version.as_str(), draft.steps.len()), ("3.28", 2));
    assert_eq!(draft.ended.unwrap().0.to_string(), "2026-02-03T04:05:06Z");
    assert_eq!(draft.began.unwrap().timestamp().0.to_string(), "2026-02-03T04:04:05Z");
    let [both, syncs] = draft.steps.as_slice() else { panic!() };
    assert_eq!((both.label.as_str(), both.load.sessions), ("my job", Some(64)));
    assert_eq!((count(both, "read"), count(both, "write")), (Some(60_000), Some(20_000)));
    assert_eq!(both.counters.physical_read_bytes, Some(60_000 * 16_384), "not the rounded 938 MiB");
    let reads = &both.operations[0].service;
    assert_eq!((reads.min_ns(), reads.max_ns()), (Some(120_000), Some(13_335_000_000)));
    assert_eq!(reads.quantiles_ns(&[0.5, 0.99]), [Some(2_000_000), Some(9_000_000)]);
    let writes = &both.operations[1].service;
    assert_eq!(
        (writes.quantile_ns(0.99), writes.mean_ns()),
        (Some(900_500), Some(400_250.5)),
        "each has a unit of its own"
    );
    assert_eq!((figure_value(both, "read iops"), figure_value(both, "read bw")), (Some(1_000.0), Some(15.6)));
    assert_eq!(
        (figure_value(both, "write slat mean"), figure_value(both, "read lat mean")),
        (Some(1_766.25), Some(2.51))
    );
    assert_eq!((figure_value(both, "usr_cpu"), figure_value(both, "iodepth_level 32")), (Some(2.75), Some(99.9)));
    assert_eq!(
        (figure_value(both, "nvme0n1 read_merges"), figure_value(both, "nvme0n1 util")),
        (Some(3.0), Some(95.47))
    );
    assert_eq!(both.counters.errors, Some(7));
    assert_eq!(syncs.load.sessions, Some(1), "psync does one at a time whatever its iodepth");
    assert_eq!((syncs.waits[0].waits.count(), syncs.waits[0].waits.max_ns()), (500, Some(44_131_000)));
    assert_eq!(
        syncs.outcome,
        Outcome::Failed {
            error: "fio says error 28: file:io_u.c:1, func=io_u error, error=No space left on device".to_owned()
        }
    );
    assert_eq!(draft.steps[0].parameters["BLOCK_SIZE"], "16K");
}

#[test]
fn normal_output_of_2_is_in_kib_whatever_it_says() {
    let drafts = runs("fio-text", TEXT_2);
    let [first, second] = drafts.as_slice() else { panic!("{}", drafts.len()) };
    assert_eq!((first.version.as_str(), second.version.as_str()), ("2.0.8", "2.16"));
    let step = &first.steps[0];
    assert_eq!((count(step, "read"), step.counters.physical_read_bytes), (Some(2_560), Some(2_560 * 4_096)));
    assert_eq!(step.operations[0].service.max_ns(), Some(1_474_200_000));
    assert_eq!(step.load.sessions, Some(8));
    assert_eq!((first.ended, figure_value(step, "Run status group 0 READ aggrb")), (None, None), "one job has no sum");
    assert_eq!(second.command.len(), 7, "{:?}", second.command);
    assert_eq!(second.target.facts.files.direct_io, Some(true));
    let [one, other] = second.steps.as_slice() else { panic!("{}", second.steps.len()) };
    assert_eq!((one.label.as_str(), other.label.as_str()), ("w", "w #2"));
    assert_eq!(figure_value(one, "Run status group 0 WRITE aggrb"), Some(2_048.0));
    assert_eq!((one.outcome.clone(), one.window.ending), (Outcome::Interrupted, Ending::Interrupt));
    assert!(second.notes.iter().any(|note| note.contains("terminating on signal 2")), "{:?}", second.notes);
    assert_eq!(one.operations[0].service.quantile_ns(0.25), Some(250_000), "of the table of latency");
}

#[test]
fn normal_output_of_clients_is_read_without_its_sum() {
    let (head, body) = TEXT_2.split_once("\n\n").unwrap();
    let body = body.split("\n\nRun status").next().unwrap();
    let head = head
        .replace("r: (g=0)", "<db1> r: (g=0)")
        .replace("2.0.8", "hostname=db1, be=0, 64-bit, fio=fio-3.13, flags=1");
    let all = body.replace("r: (groupid=0, jobs=1)", "All clients: (groupid=0, jobs=1)");
    let prio = "    high prio (20.00%) clat (usec): min=1, max=2, avg= 1.50, stdev= 1.00\n  cpu ";
    let drafts = runs("fio-text", &format!("{head}\n{}\n{all}\n", body.replacen("  cpu ", prio, 1)));
    let [draft] = drafts.as_slice() else { panic!("{}", drafts.len()) };
    assert_eq!((draft.version.as_str(), draft.steps.len(), draft.steps[0].load.sessions), ("3.13", 1, Some(8)));
    assert_eq!(figure_value(&draft.steps[0], "All clients read iops"), Some(256.0));
    assert_eq!(draft.steps[0].operations[0].service.min_ns(), Some(500_000));
}

#[test]
fn wrapped_normal_output_is_the_same_run() {
    let plain = format!("{:?}", runs("fio-text", TEXT_3));
    let same = |text: String| assert_eq!(format!("{:?}", runs("fio-text", &text)), plain);
    same(TEXT_3.replace('\n', "  \r\n"));
    same(format!("# A report\n\nWith fio: it went well.\n{TEXT_3}\nread: nothing (usec)\n"));
    same(TEXT_3.lines().map(|line| format!("\u{1b}[32mFeb  3 04:05:06 db1 bench[77]:\u{1b}[0m {line}\n")).collect());
    same(TEXT_3.replace("my job: (groupid", "Jobs: 1 (f=1): [m(1)][50.0%][eta 00m:01s]\rmy job: (groupid"));
}

#[test]
fn of_status_reports_in_normal_output_the_last_counts() {
    let (head, report) = TEXT_3.split_once("my job: (groupid").unwrap();
    let report = format!("my job: (groupid{report}");
    let early = report.replace("total=60000,20000", "total=30000,10000");
    let drafts = runs("fio-text", &format!("{head}{early}\n{report}"));
    assert_eq!((drafts.len(), count(&drafts[0].steps[0], "read")), (1, Some(60_000)));
    assert_eq!(drafts[0].steps.len(), 2);
    assert!(drafts[0].notes.iter().any(|note| note.contains("reported 1 times before")), "{:?}", drafts[0].notes);
}

#[test]
fn normal_output_that_is_cut_short_is_refused() {
    let at = TEXT_3.find("99.00th").unwrap();
    assert!(read(&TEXT_3[..at]).unwrap_err().contains("amid the results of `my job`"));
    let at = TEXT_3.find("  lat (usec)   :").unwrap();
    let (_, copied, notes) = read(&format!("{}And so on.\n", &TEXT_3[..at])).unwrap();
    assert_eq!(count(&copied[0].steps[0], "read"), Some(60_000), "computed");
    assert_eq!(copied[0].steps[0].counters.physical_writes, count(&copied[0].steps[0], "write"));
    let at = TEXT_3.find("  write: IOPS").unwrap();
    let (_, copied, _) = read(&format!("{}And so on.\n", &TEXT_3[..at])).unwrap();
    assert_eq!(copied[0].steps[0].counters.physical_writes, None, "whether it wrote is not reported");
    assert!(notes.into_list()[0].what.contains("number of requests is not reported"), "somebody copied a part");
    let at = TEXT_3.find("logs: (groupid").unwrap();
    assert!(read(&TEXT_3[..at]).unwrap_err().contains("fio started 3 processes, and results of 2"));
    let at = TEXT_3.find("my job: (groupid").unwrap();
    assert!(read(&TEXT_3[..at]).unwrap_err().contains("no result follows"));
}

#[test]
fn a_line_that_is_not_understood_is_noted() {
    let (_, drafts, notes) = read(&TEXT_3.replace("slat (nsec)", "slat (apples)")).unwrap();
    assert_eq!(drafts.len(), 1);
    let list = notes.into_list();
    assert!(list[0].what.contains("apples") && list[0].line.is_some(), "{list:?}");
}

#[test]
fn terse_rows_of_every_order_are_read() {
    let drafts = runs("fio-terse", TERSE);
    let versions: Vec<(&str, usize)> = drafts.iter().map(|draft| (draft.version.as_str(), draft.steps.len())).collect();
    assert_eq!(versions, [("", 1), ("3.33", 2), ("3.34", 1), ("3.35", 1)]);
    for draft in &drafts {
        let step = &draft.steps[0];
        assert_eq!((step.label.as_str(), step.window.duration_ns), ("a", 2_000_000_000));
        assert_eq!((count(step, "read"), count(step, "write")), (Some(264), Some(248)), "{}", draft.version);
        assert_eq!(step.counters.physical_read_bytes, Some(528 * 1_024));
        assert_eq!(step.operations[0].service.quantile_ns(0.99), Some(9_000));
        assert_eq!(figure_value(step, "write clat mean"), Some(4.25));
        assert_eq!(figure_value(step, "usr_cpu"), Some(1.5));
    }
    assert_eq!(figure_value(&drafts[3].steps[0], "read iops_max"), Some(140.0), "only version 5 has it");
    assert_eq!(figure_value(&drafts[1].steps[0], "sda write_ticks"), Some(60.0));
    let last = &drafts[1].steps[1];
    assert_eq!(last.outcome, Outcome::Failed { error: "fio says error 28".to_owned() });
    assert!(read(&TERSE[..TERSE.len() - 400]).unwrap_err().contains("not whole"));
}

#[test]
fn terse_rows_that_grow_are_reports_of_one_invocation() {
    let row = TERSE.lines().find(|line| line.starts_with("3;") && line.contains(";a;")).unwrap();
    let later =
        row.replace(";2000;", ";4000;").replace(";528;", ";1056;").replace(";496;", ";992;").replace("sda;1", "sda;2");
    let last = later.replace(";4000;", ";4100;").replace(";1056;", ";1082;").replace(";992;", ";1017;");
    let drafts = runs("fio-terse", &format!("{row}\n{later}\n{last}\n"));
    assert_eq!((drafts.len(), drafts[0].steps.len(), drafts[0].steps[0].window.duration_ns), (1, 1, 4_100_000_000));
    assert!(drafts[0].notes.iter().any(|note| note.contains("reported 2 times before")), "{:?}", drafts[0].notes);
    let clone = row.replace(";2000;", ";2003;").replace(";528;", ";532;");
    assert_eq!(runs("fio-terse", &format!("{row}\n{clone}\n"))[0].steps.len(), 2, "jobs beside each other");
    let again = row.replace("sda;1", "sda;2").replace(";528;", ";524;");
    assert_eq!(runs("fio-terse", &format!("{row}\n{again}\n")).len(), 2);
}

#[test]
fn a_file_of_several_forms_is_read_in_one() {
    let normal = TEXT_2.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
    let (importer, drafts, notes) = read(&format!("{JSON_3}\n{normal}\n{TERSE}")).unwrap();
    assert_eq!((importer.kind, drafts.len(), notes.is_empty()), ("fio-json", 1, true));
    let (importer, _, notes) = read(&format!("{TEXT_3}\n{JSON_3}")).unwrap();
    assert_eq!(importer.kind, "fio-json");
    assert!(notes.into_list()[0].what.contains("my job"), "results that are in no document are not lost in silence");
}

#[test]
fn text_about_fio_is_none_of_its_output() {
    for text in [
        "We measured with fio-3.36. read: IOPS=1000, clat (usec): min=3\n",
        "[global]\nrw=randread\nioengine=libaio\n[job]\niodepth=4\n",
        "{\"tool\": \"fio\", \"version\": \"fio-3.1\"}",
        "sysbench 1.0\nread: IOPS=3\n",
        "3;fio-3.1;name\n",
    ] {
        assert!(recognise(text).is_none_or(|importer| !importer.kind.starts_with("fio")), "{text}");
    }
    for (text, kind) in
        [(JSON_2, "fio-json"), (JSON_3, "fio-json"), (TEXT_2, "fio-text"), (TEXT_3, "fio-text"), (TERSE, "fio-terse")]
    {
        let claims = crate::importers().iter().filter(|importer| (importer.recognises)(text));
        assert_eq!(claims.map(|importer| importer.kind).collect::<Vec<_>>(), [kind]);
    }
}

#[test]
fn long_lines_and_many_braces_take_little_time() {
    let began = std::time::Instant::now();
    let job = JSON_3.split_once("\"jobs\" : [").unwrap().1.rsplit_once("],").unwrap().0.replace('\n', " ");
    let jobs = vec![job.as_str(); 500].join(",");
    let drafts = runs("fio-json", &format!("{{\"fio version\":\"fio-3.33\",\"jobs\":[{jobs}]}}"));
    assert_eq!(drafts[0].steps.len(), 1_000);
    let _ = read(&format!("{}{JSON_2}", "{\"jobs\":[".repeat(50_000)));
    let _ = read(&format!("{JSON_2}{}", "{\"time\":1}".repeat(50_000)));
    let _ = read(&format!("{TEXT_2}{}", "th=[".repeat(100_000)));
    let _ = read(&format!("{TEXT_2}{}", "\nread: IOPS=1 (".repeat(20_000)));
    let _ = read(&format!("{TERSE}\n3;fio-3.1;{}", ";".repeat(500_000)));
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
}
