//! What each reader was tried with: the list that the book has, held against the results that are at hand.

use std::collections::BTreeSet;

use super::plausible::said;
use crate::calendar::tests::LANGUAGES;
use crate::importers;

/// Kinds, versions of their programs, and what else was tried of them. `made` are texts that are none of a published result: they were
/// written after the program's source or manual.
const TRIED: [(&[&str], &[&str], &str); 26] = [
    (&["awr-html"], &["11.2.0.4", "12.2.0.1", "19", "23.7"], REPORTS),
    (&["awr-text"], &["11.2.0.4", "19"], REPORTS),
    (&["statspack"], &["11.2.0.4"], REPORTS),
    (&["awr-miner"], &["2.9", "4.0.11"], "decimal commas"),
    (&["event-histogram"], &[], "11g; made: microseconds, CSV, HTML"),
    (&["pylatencymap"], &[], "11g, 12c, DTrace"),
    (&["calibrate-io"], &[], "19c; decimal commas"),
    (
        &["orion-summary", "orion-console", "orion-histogram", "orion-csv"],
        &["11.1.0.7", "11.2", "19.3"],
        "orion-csv: made",
    ),
    (&["fio-json"], &["2.1.4", "2.1.9", "2.17", "3.12", "3.13", "3.19", "3.26", "3.28", "3.33", "3.35"], ""),
    (&["fio-text"], &["2.0.8", "2.2.10", "2.16", "3.28", "3.36", "3.41"], "decimal commas"),
    (&["fio-terse", "fio-hist-log"], &["2.1.2", "3.28", "3.33", "3.34", "3.35"], "fio-hist-log: made"),
    (&["swingbench-xml", "swingbench-json", "charbench"], &["2.7.0"], "swingbench-json: made"),
    (
        &["pgbench", "pgbench-aggregate", "pgbench-log"],
        &["18"],
        "older output has no version; pgbench-log: made; decimal commas",
    ),
    (
        &["hammerdb", "hammerdb-tcount", "hammerdb-profile", "hammerdb-timing", "hammerdb-job-report"],
        &["4.0", "4.1", "4.3", "4.12", "6.0"],
        "tcount, profile and timing: made",
    ),
    (&["pgio"], &["1.0"], ""),
    (&["slob-console", "slob-conf", "slob-tm"], &["2.5.4"], "slob-conf, slob-tm: made"),
    (&["sysbench"], &["0.5", "1.0.12", "1.0.19", "1.0.20", "1.1.0"], ""),
    (&["iostat", "iostat-json"], &[], "CentOS 6, 7; Ubuntu 18, 20; Oracle Linux 8; clocks of 25 locales"),
    (&["vmstat"], &[], "CentOS 7; Ubuntu 18"),
    (&["mpstat"], &[], "CentOS 6, 7; Fedora 20; decimal commas"),
    (&["sar", "sar-json"], &[], "made: English, French, Chinese"),
    (&["nmon"], &["16g", "TOPAS-NMON"], "Linux 13g to 16g, AIX 5.3 and 6.1: made after recordings"),
    (&["biolatency", "biolatency-json", "biolatency-bt", "iolatency"], &[], "made"),
    (&["iperf3-json", "iperf3-text"], &["3.0.11", "3.1", "3.7"], ""),
    (&["oratcptest"], &[], "MOS 2064368.1; decimal commas"),
    (&["stress-ng-text", "stress-ng-yaml"], &["0.09.25"], "older and newer text has no version"),
];

const REPORTS: &str = "months of 28 languages; decimal commas";

const BEGIN: &str = "### What was tried\n";
const END: &str = "\n## Which files\n";

/// The section of the book.
fn section() -> String {
    let mut made = format!(
        "{BEGIN}\nTests read results of these versions. `made` is a text written after the program's source, not a published result.\n\n\
         | kind | versions | also |\n| --- | --- | --- |\n"
    );
    for (kinds, versions, also) in TRIED {
        let kinds: Vec<String> = kinds.iter().map(|kind| format!("`{kind}`")).collect();
        made.push_str(&format!("| {} | {} | {also} |\n", kinds.join(", "), versions.join(", ")));
    }
    made
}

#[test]
fn docs_imports_says_what_was_tried() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/imports.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(BEGIN).or_else(|| page.split_once(&END[1..])).unwrap();
    let after = rest.split_once(END).map_or(rest, |(_, after)| after);
    let renewed = format!("{before}{}{END}{after}", section());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &renewed).unwrap();
    }
    let documented = std::fs::read_to_string(path).unwrap();
    assert!(documented == renewed, "docs/reference/imports.md is stale: UPDATE_DOCS=1 cargo test docs_imports");
}

#[test]
fn every_kind_was_tried_and_every_version_is_listed() {
    let listed: Vec<&str> = TRIED.iter().flat_map(|(kinds, ..)| kinds.iter().copied()).collect();
    let kinds: BTreeSet<&str> = importers().iter().map(|importer| importer.kind).collect();
    assert_eq!((listed.len(), listed.into_iter().collect::<BTreeSet<_>>()), (kinds.len(), kinds));
    assert!(REPORTS.contains(&LANGUAGES.len().to_string()));
    let mut wrong = BTreeSet::new();
    let mut met: BTreeSet<&str> = BTreeSet::new();
    for one in said() {
        let (_, versions, _) = TRIED.iter().find(|(kinds, ..)| kinds.contains(&one.kind)).unwrap();
        for version in one.versions.iter().filter(|version| !version.is_empty()) {
            match versions.iter().find(|listed| version.starts_with(**listed)) {
                Some(listed) => _ = met.insert(listed),
                None => _ = wrong.insert(format!("{} {version}", one.kind)),
            }
        }
    }
    assert!(wrong.is_empty(), "not listed: {wrong:#?}");
    let index =
        super::folder().map(|corpus| std::fs::read_to_string(corpus.join("INDEX.tsv")).unwrap()).unwrap_or_default();
    // Some programs do not print their version; the index of the corpus knows it.
    let reported: Vec<&str> = index.lines().filter_map(|line| line.split('\t').nth(2)).collect();
    let is_met = |one: &&str| met.contains(one) || reported.iter().any(|version| version.contains(one));
    let unmet: Vec<&str> =
        TRIED.iter().flat_map(|(_, versions, _)| *versions).copied().filter(|one| !is_met(one)).collect();
    assert!(unmet.is_empty() || said().is_empty(), "listed, and no result has it: {unmet:?}");
}
