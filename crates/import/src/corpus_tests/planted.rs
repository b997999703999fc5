//! A line that no program wrote, in the middle of what is read: it is shown, or the text is refused. For every kind of text.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::plausible::files;
use super::wrappings::{record, source};
use crate::{Source, importers, read, recognise};

const PLANTED: &str = "my own latency p97 12.5ms";
/// Lines from the middle on of which one is looked for that is read.
const MAX_TRIES: usize = 60;

/// Kinds of which no file is at hand, each as short as it is recognised.
const SHORT: [(&str, &str); 18] = [
    (
        "event-histogram",
        "SQL> select event, wait_time_milli, wait_count from v$event_histogram;\n\nEVENT                                    WAIT_TIME_MILLI WAIT_COUNT\n---------------------------------------- --------------- ----------\ndb file sequential read                                1         30\ndb file sequential read                                2         20\ndb file sequential read                                4          9\n\n3 rows selected.\n",
    ),
    ("orion-csv", "Large/Small,   0,   1\n   1, 271.58\n   2, 374.26,  12.5\n   3, 380.5,  13.5\n"),
    (
        "pgbench-log",
        "0 1 4000 0 1700000000 500000\n1 1 60 0 1700000001 9\n0 2 70 0 1700000001 19\n1 2 70 0 1700000002 19\n",
    ),
    (
        "pgbench-aggregate",
        "1700000000 10 500 30000 20 90\n1700000005 4 400 50000 80 120\n1700000010 4 400 50000 80 120\n",
    ),
    (
        "hammerdb-tcount",
        "Hammerdb Transaction Counter Log @ Sat Feb 03 10:00:00 GMT 2024\n+-+-+\n0 Oracle tpm @ Sat Feb 03 10:00:00 GMT 2024\n600 Oracle tpm @ Sat Feb 03 10:00:10 GMT 2024\n900 Oracle tpm @ Sat Feb 03 10:00:20 GMT 2024\n",
    ),
    (
        "hammerdb-profile",
        "Oracle Hammerdb Time Profile Report @ Sat Feb 03 10:05:00 GMT 2024\n+-+-+\n>>>>> VIRTUAL USER 2 : ELAPSED TIME : 60000ms\n>>>>> PROC: NEWORD\nCALLS: 10 MIN: 1.000ms AVG: 2.000ms MAX: 9.000ms TOTAL: 20.000ms\nP99: 8.000ms P95: 7.000ms P50: 2.000ms SD: 1.000us RATIO: 90.000%\n+-+-+\n>>>>> SUMMARY OF 1 ACTIVE VIRTUAL USERS : MEDIAN ELAPSED TIME : 60000ms\n>>>>> PROC: NEWORD\nCALLS: 10 MIN: 1.000ms AVG: 2.000ms MAX: 9.000ms TOTAL: 20.000ms\nP99: 8.000ms P95: 7.000ms P50: 2.000ms SD: 1.000us RATIO: 90.000%\n+-+-+\n",
    ),
    (
        "hammerdb-timing",
        "{\n\"neword\": {\n\"elapsed_ms\": \"60000\",\n\"calls\": \"10\", \"avg_ms\": \"2.0\", \"min_ms\": \"1.0\", \"max_ms\": \"9.0\", \"total_ms\": \"20.0\",\n\"p99_ms\": \"8.0\", \"ratio_pct\": \"90.0\"\n}\n}\n",
    ),
    (
        "biolatency",
        "# ./biolatency\nTracing block device I/O... Hit Ctrl-C to end.\n^C\n     usecs           : count     distribution\n       0 -> 1        : 5        |**   |\n       2 -> 3        : 9        |***  |\n       4 -> 7        : 1        |*    |\n",
    ),
    (
        "biolatency-json",
        "{'ts': '2020-12-30 14:40:00', 'val_type': 'usecs', 'data': [{'interval-start': 0, 'interval-end': 1, 'count': 3}], 'Bucket ptr': b'sda'}\n{'ts': '2020-12-30 14:40:05', 'val_type': 'usecs', 'data': [{'interval-start': 4, 'interval-end': 7, 'count': 2}], 'Bucket ptr': b'sda'}\n",
    ),
    (
        "biolatency-bt",
        "Attaching 4 probes...\nTracing block device I/O... Hit Ctrl-C to end.\n^C\n\n@usecs:\n[256, 512)             2 |@@      |\n[512, 1K)             10 |@@@@@@@ |\n[1K, 2K)             426 |@@@@@@@@|\n",
    ),
    (
        "iolatency",
        "# ./iolatency 5\nTracing block I/O. Output every 5 seconds. Ctrl-C to end.\n\n  >=(ms) .. <(ms)   : I/O      |Distribution                          |\n       0 -> 1       : 2104     |######################################|\n       1 -> 2       : 280      |######                                |\n       2 -> 4       : 2        |#                                     |\n",
    ),
    ("slob-conf", "# SLOB\nUPDATE_PCT=25\nRUN_TIME=300\nWORK_UNIT=64\nSCALE=10000\n"),
    ("slob-tm", "Tm 605\n"),
    (
        "charbench",
        "Time     Users  TPM  TPS  Errors\n23:59:59 [0/8] 0 0 0\n00:00:00 [8/8] 40 40 0\n00:00:01 [8/8] 90 50 1\n00:00:02 [8/8] 90 50 1\n",
    ),
    (
        "orion-histogram",
        "Small Read / Write Latency Histogram @ Small=4 and Large=2\n        Latency:                # of IOs (read)     # of IOs (write)\n        0 - 1024       us:          3 (  0.01%)              0 (  0.00%)\n     1024 - 8192       us:      21597 (100.00%)           5000 ( 92.59%)\n     8192 - 268435456  us:          0 (100.00%)            400 (100.00%)\n",
    ),
    (
        "sar",
        "Linux 5.14.0 (db7)      11/30/2026      _x86_64_        (4 CPU)\n\n11:40:01 PM kbmemfree   kbavail kbmemused  %memused\n11:50:01 PM      1000      5000      3000     30.00\n12:00:01 AM      2000      6000      2000     20.00\n12:10:01 AM      2000      6000      2000     20.00\n",
    ),
    (
        "sar-json",
        "{\"sysstat\": {\"hosts\": [{\"nodename\": \"db7\", \"file-date\": \"2026-11-30\", \"statistics\": [\n{\"timestamp\": {\"date\": \"2026-11-30\", \"time\": \"00:10:01\", \"utc\": 1, \"interval\": 600},\n \"cpu-load\": [{\"cpu\": \"all\", \"user\": 10.0, \"idle\": 84.0}],\n \"memory\": {\"memfree\": 1000}}]}]}}\n",
    ),
    (
        "swingbench-json",
        "{\"Results\": {\"Overview\": {\"BenchmarkName\": \"One\", \"TotalCompletedTransactions\": \"20\",\n\"TotalRunTime\": \"0:00:10\",\n\"AverageTransactionsPerSecond\": \"2.0\"}}}\n",
    ),
];

/// Kinds in which such a line is not shown, and why.
const EXCEPT: [(&str, &str); 1] = [("swingbench-xml", "a document: text between its elements is that of none")];
/// Rows of reports that are long and mostly left out.
const READ: [(&str, &str); 3] = [
    ("awr-html", "physical read total IO requests"),
    ("awr-text", "physical read total IO requests"),
    ("statspack", "physical reads"),
];

/// A log of fio's histograms at its coarsest.
fn histogram_log() -> String {
    (1..5).map(|at| format!("{at}000, 0, 4096, {}7\n", "0, ".repeat(28))).collect()
}

/// The smallest specimen of each kind.
fn smallest() -> BTreeMap<&'static str, String> {
    let mut found = Vec::new();
    files(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/specimens"), &mut found);
    if let Some(corpus) = super::folder() {
        files(&corpus, &mut found);
    }
    let mut of_kinds: BTreeMap<&'static str, String> = BTreeMap::new();
    let short = SHORT.iter().map(|(_, text)| (*text).to_owned()).chain([histogram_log()]);
    let texts = found.iter().filter_map(|path| Source::open(path).ok()).map(|source| source.text().to_owned());
    for text in texts.chain(short) {
        let Some(kind) = recognise(crate::source::head_of(&text)).map(|importer| importer.kind) else { continue };
        // What is planted must not be hidden by what is unknown in it anyway.
        let is_known =
            || source(&text).and_then(|source| read(&source)).is_ok_and(|(.., notes)| notes.into_list().is_empty());
        if of_kinds.get(kind).is_none_or(|known| text.len() < known.len()) && is_known() {
            of_kinds.insert(kind, text);
        }
    }
    of_kinds
}

/// The place behind a line that is read: without it the record is another one.
fn place(kind: &str, text: &str) -> Option<usize> {
    if let Some((_, row)) = READ.iter().find(|(of, _)| *of == kind) {
        return text.lines().position(|line| line.contains(row)).map(|at| at + 1);
    }
    let bare = record(text);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let step = (lines.len() / 2 / MAX_TRIES).max(1);
    let middle = lines.len() / 2;
    let candidates = (middle..lines.len()).step_by(step).chain((0..middle).rev().step_by(step));
    let is_read = |at: &usize| {
        let without: String = lines.iter().enumerate().filter(|(line, _)| line != at).map(|(_, line)| *line).collect();
        record(&without) != bare
    };
    candidates.into_iter().filter(|at| !lines[*at].trim().is_empty()).take(MAX_TRIES).find(is_read).map(|at| at + 1)
}

/// Whether what stands in a text at this line is shown, or the text refused.
fn is_shown(text: &str, line: usize, planted: &str) -> bool {
    let Ok((_, drafts, notes)) = source(text).and_then(|source| read(&source)) else { return true };
    let is_of_line =
        |note: &model::record::NotUnderstood| note.line == u64::try_from(line).ok() || note.what.contains(planted);
    notes.into_list().iter().any(is_of_line)
        || drafts.iter().flat_map(|draft| &draft.notes).any(|note| note.contains(planted))
}

#[test]
fn a_line_between_the_title_and_the_rows_of_a_section_hides_none_of_it() {
    let Some(folder) = super::folder() else { return };
    let text = Source::open(&folder.join("awr/awr_11204_rac_inst1.txt")).unwrap().text().to_owned();
    let lines: Vec<&str> = text.lines().collect();
    let title = lines.iter().position(|line| line.contains("Background Wait Events  ")).unwrap();
    let rule = title + lines[title..].iter().position(|line| line.starts_with("-----")).unwrap();
    let waits = |text: &str| {
        let (_, drafts, _) = source(text).and_then(|source| read(&source)).unwrap();
        drafts[0].steps[0].waits.iter().filter(|waits| !waits.foreground).cloned().collect::<Vec<_>>()
    };
    let bare = waits(&text);
    assert!(!bare.is_empty());
    for at in [title + 1, title + 2, rule] {
        let mut planted = lines.clone();
        planted.insert(at, PLANTED);
        let planted = planted.join("\n") + "\n";
        assert!(is_shown(&planted, at + 1, PLANTED), "line {at}");
        assert_eq!(waits(&planted), bare, "line {at}");
    }
}

#[test]
fn a_line_that_no_reader_knows_is_shown_in_texts_of_every_kind() {
    let specimens = smallest();
    let missing: Vec<&str> =
        importers().iter().map(|importer| importer.kind).filter(|kind| !specimens.contains_key(kind)).collect();
    assert!(missing.is_empty() || super::folder().is_none(), "no specimen: {missing:?}");
    let mut dropped = Vec::new();
    for (kind, text) in specimens.iter().filter(|(kind, _)| EXCEPT.iter().all(|(except, _)| except != *kind)) {
        let Some(place) = place(kind, text) else {
            dropped.push(format!("{kind}: no line of it is read"));
            continue;
        };
        let rows = if *kind == "nmon" { vec![PLANTED, "ZZZZ9,latency,12.5"] } else { vec![PLANTED] };
        for row in rows {
            let mut lines: Vec<&str> = text.lines().collect();
            lines.insert(place, row);
            if !is_shown(&(lines.join("\n") + "\n"), place + 1, row) {
                dropped.push(format!("{kind}, line {}: {row}", place + 1));
            }
        }
    }
    assert!(dropped.is_empty(), "{dropped:#?}");
}
