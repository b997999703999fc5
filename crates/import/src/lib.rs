//! Results of other programs become runs.
//!
//! A file is recognised by what it holds, not by its name ([`recognise`]), and read into [`Draft`]s ([`read`]). One importer a
//! file of this crate: it says what it recognises, and reads no more than that. What a file does not report stays unknown; what
//! belongs to a file of its kind and could not be understood is noted with its line ([`Notes`]); what is damaged is an
//! [`ImportError`]. Nothing here touches the disk except
//! [`Source::open`] and [`identity()`].

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod awr_miner;
mod block_latency;
mod calendar;
mod calibrate_io;
#[cfg(test)]
mod case_tests;
mod columns;
mod console;
#[cfg(test)]
mod corpus_tests;
mod decimals;
mod draft;
mod error;
mod evhist;
mod fio;
mod hammerdb;
mod identity;
mod interval;
mod iperf3;
mod join;
mod naming;
mod numbers;
mod oracle;
mod oracle_time;
mod oratcptest;
mod orion;
mod osstat;
mod percentiles;
mod pgbench;
mod pgio;
mod plausible;
mod pylatencymap;
mod remainder;
mod several;
mod slob_console;
mod slob_files;
mod source;
mod spool;
mod strangers;
mod stress_ng;
mod surroundings;
mod swingbench;
mod sysbench;
mod unix_date;

pub use draft::{Began, Draft};
pub use error::ImportError;
pub use identity::identity;
pub use join::{FileRead, runs};
use model::record::ImportedFile;
pub use naming::distinct_names;
pub use source::{MAX_BYTES, Notes, Source};

/// Reads one kind of file.
#[derive(Debug)]
pub struct Importer {
    /// How documents and `--json` call it, such as `fio-json`.
    pub kind: &'static str,
    /// How people call it, such as `fio JSON`.
    pub name: &'static str,
    /// Whether a file is of this kind, from its first 64 KiB: cheap, and strict enough that no two kinds claim one file.
    recognises: fn(head: &str) -> bool,
    /// The runs in it, at least one.
    read: fn(&Source, &mut Notes) -> Result<Vec<Draft>, ImportError>,
}

impl Importer {
    /// The runs in a file that is taken for one of this kind, whatever it begins with.
    ///
    /// # Errors
    /// If it is damaged, or of another kind, or holds no result.
    pub fn read(&self, source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
        notes.of_kind(self.kind, !DOCUMENTS.contains(&self.kind), source);
        let pointed = if decimals::KINDS.contains(&self.kind) { source.with_points(notes) } else { None };
        let mut drafts = (self.read)(pointed.as_ref().unwrap_or(source), notes)?;
        if drafts.is_empty() || drafts.iter().any(|draft| draft.steps.is_empty()) {
            return Err(ImportError::no_result(source, "it holds no figures"));
        }
        drafts.iter_mut().for_each(plausible::check);
        Ok(drafts)
    }
}

const fn importer(
    kind: &'static str,
    name: &'static str,
    recognises: fn(&str) -> bool,
    read: fn(&Source, &mut Notes) -> Result<Vec<Draft>, ImportError>,
) -> Importer {
    Importer { kind, name, recognises, read }
}

/// Every importer; the first that recognises a file reads it.
static IMPORTERS: &[Importer] = &[
    importer("awr-html", "AWR report in HTML", oracle::html::recognises, oracle::read_html),
    importer("awr-text", "AWR report as text", oracle::text::recognises, oracle::read_text),
    importer("statspack", "Statspack report", oracle::text::recognises_statspack, oracle::read_text),
    importer("awr-miner", "files of AWR Miner", awr_miner::recognises, awr_miner::read),
    importer("pylatencymap", "records of PyLatencyMap", pylatencymap::recognises, pylatencymap::read),
    importer("calibrate-io", "results of Oracle's CALIBRATE_IO", calibrate_io::recognises, calibrate_io::read),
    importer("event-histogram", "event histograms of Oracle", evhist::recognises, evhist::read),
    importer("orion-summary", "summary of ORION", orion::recognises_summary, orion::text::read),
    importer("orion-console", "output of ORION", orion::recognises_console, orion::text::read),
    importer("orion-histogram", "histograms of ORION", orion::recognises_histograms, orion::text::read),
    importer("orion-csv", "matrix of ORION (iops, mbps, lat)", orion::recognises_matrix, orion::matrix::read),
    importer("fio-json", "fio JSON", fio::json::recognises, fio::json::read),
    importer("fio-terse", "fio terse rows", fio::terse::recognises, fio::terse::read),
    importer("fio-text", "fio normal output", fio::text::recognises, fio::text::read),
    importer("fio-hist-log", "fio log of histograms", fio::recognises_histogram_log, fio::read_histogram_log),
    importer("swingbench-xml", "Swingbench results (XML)", swingbench::recognises_xml, swingbench::read_xml),
    importer("swingbench-json", "Swingbench results (JSON)", swingbench::recognises_json, swingbench::read_json),
    importer("charbench", "charbench log", swingbench::charbench::recognises, swingbench::charbench::read),
    importer("pgbench", "pgbench output", pgbench::summary::recognises, pgbench::summary::read),
    importer("pgbench-aggregate", "pgbench log, aggregated", pgbench::aggregate::recognises, pgbench::aggregate::read),
    importer(
        "pgbench-log",
        "pgbench log of transactions",
        pgbench::recognises_transactions,
        pgbench::read_transactions,
    ),
    importer("hammerdb", "HammerDB log", hammerdb::log::recognises, hammerdb::log::read),
    importer(
        "hammerdb-tcount",
        "HammerDB transaction counter log",
        hammerdb::recognises_counter,
        hammerdb::read_counter,
    ),
    importer(
        "hammerdb-job-report",
        "HammerDB report of a job (JSON)",
        hammerdb::job_report::recognises,
        hammerdb::job_report::read,
    ),
    importer("hammerdb-profile", "HammerDB time profile report", hammerdb::recognises_report, hammerdb::read_report),
    importer("hammerdb-timing", "HammerDB time profile (JSON)", hammerdb::recognises_timing, hammerdb::read_timing),
    importer("pgio", "pgio output", pgio::recognises, pgio::read),
    importer("slob-console", "SLOB console output", slob_console::recognises, slob_console::read),
    importer("sysbench", "sysbench output", sysbench::recognises, sysbench::read),
    importer("iostat", "iostat text", osstat::iostat::recognises, osstat::iostat::read),
    importer("iostat-json", "iostat JSON", osstat::iostat_json::recognises, osstat::iostat_json::read),
    importer("vmstat", "vmstat text", osstat::vmstat::recognises, osstat::vmstat::read),
    importer("mpstat", "mpstat text", osstat::mpstat::recognises, osstat::mpstat::read),
    importer("sar-json", "sadf JSON", osstat::iostat_json::recognises_sar, osstat::iostat_json::read),
    importer("sar", "sar text", osstat::sar::recognises, osstat::sar::read),
    importer("nmon", "recordings of nmon", osstat::nmon::recognises, osstat::nmon::read),
    importer("biolatency", "biolatency of bcc", block_latency::recognises_bcc, block_latency::read_bcc),
    importer(
        "biolatency-json",
        "biolatency of bcc, dictionaries",
        block_latency::recognises_dictionary,
        block_latency::read_dictionary,
    ),
    importer(
        "biolatency-bt",
        "biolatency.bt of bpftrace",
        block_latency::recognises_bpftrace,
        block_latency::read_bpftrace,
    ),
    importer(
        "iolatency",
        "iolatency of perf-tools",
        block_latency::recognises_iolatency,
        block_latency::read_iolatency,
    ),
    importer("iperf3-json", "iperf3 JSON", iperf3::json::recognises, iperf3::json::read),
    importer("iperf3-text", "iperf3 text", iperf3::text::recognises, iperf3::text::read),
    importer("oratcptest", "oratcptest", oratcptest::recognises, oratcptest::read),
    importer("stress-ng-text", "stress-ng text", stress_ng::text::recognises, stress_ng::text::read),
    importer("stress-ng-yaml", "stress-ng YAML", stress_ng::recognises_yaml, stress_ng::read_yaml),
    importer("slob-conf", "slob.conf, beside results", slob_files::is_conf, slob_files::read_conf),
    importer("slob-tm", "SLOB's tm.out, beside results", slob_files::is_tm, slob_files::read_tm),
];

/// Kinds that are documents: they are not read by lines. All others are read line by line, and each line that their reader does
/// not know is counted.
const DOCUMENTS: [&str; 9] = [
    "awr-html",
    "fio-json",
    "swingbench-xml",
    "swingbench-json",
    "hammerdb-job-report",
    "hammerdb-timing",
    "iostat-json",
    "sar-json",
    "iperf3-json",
];

/// The importers, for documentation and for tests that must not forget one.
pub fn importers() -> &'static [Importer] {
    IMPORTERS
}

/// Which importer reads a file that begins so.
pub fn recognise(head: &str) -> Option<&'static Importer> {
    IMPORTERS.iter().find(|importer| (importer.recognises)(head))
}

/// The file at `path`, read.
///
/// # Errors
/// If it cannot be read, no importer knows it, or it is damaged.
pub fn read_file(path: &std::path::Path) -> Result<FileRead, ImportError> {
    let source = Source::open(path)?;
    let (importer, drafts, notes) = read(&source)?;
    let lines = notes.lines();
    Ok(FileRead {
        file: ImportedFile { lines, ..source.file(importer.kind) },
        changed: source.changed(),
        drafts,
        not_understood: notes.into_list(),
    })
}

/// The runs in a file, and what was not understood in it.
///
/// # Errors
/// If no importer knows it, or it is damaged.
pub fn read(source: &Source) -> Result<(&'static Importer, Vec<Draft>, Notes), ImportError> {
    let mut notes = Notes::new(source);
    let mut kinds: Vec<&'static Importer> = Vec::new();
    let mut drafts = Vec::new();
    for several::Part { program, text, before, own } in several::parts(source.text()) {
        let part = source.part(text, before, own);
        // Lines of what cannot be read are neither known nor unknown.
        let so_far = notes.clone();
        notes.in_part(&part);
        match read_one(&part, program, &mut notes) {
            Ok((importer, found)) => {
                kinds.push(importer);
                drafts.extend(found);
            }
            Err(error) => {
                notes = so_far;
                notes.in_part(&part);
                notes.not_understood(1, format!("the output of {program} that begins here: {error}"));
            }
        }
    }
    if let Some(first) = kinds.first() {
        return Ok((*first, drafts, notes));
    }
    let mut notes = Notes::new(source);
    let (importer, drafts) = read_one(source, "", &mut notes)?;
    Ok((importer, drafts, notes))
}

/// The runs in a text, by an importer of this program before others.
fn read_one(source: &Source, program: &str, notes: &mut Notes) -> Result<(&'static Importer, Vec<Draft>), ImportError> {
    let head = source.head();
    let mut own = IMPORTERS.iter().filter(|importer| !program.is_empty() && importer.kind.starts_with(program));
    let importer = own
        .find(|importer| (importer.recognises)(head))
        .or_else(|| recognise(head))
        .ok_or_else(|| ImportError::not_recognised(source))?;
    let drafts = importer.read(source, notes)?;
    Ok((importer, drafts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::{Timestamp, Workload};

    #[test]
    fn no_two_importers_have_one_name_and_every_one_says_what_it_reads() {
        let mut kinds: Vec<&str> = importers().iter().map(|importer| importer.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), importers().len());
        assert!(importers().iter().all(|importer| !importer.name.is_empty()));
    }

    #[test]
    fn lines_of_text_are_understood_ignored_or_unknown() {
        assert!(DOCUMENTS.iter().all(|kind| importers().iter().any(|importer| importer.kind == *kind)));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("vmstat.txt");
        let text = "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n                     r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n                     1  0      0 911544  33408 567708    0    0    55    11  111  222  3  1 95  1  0\n                    a colleague's remark\nlatency p97 12.5ms\n";
        std::fs::write(&path, text).unwrap();
        let file = read_file(&path).unwrap();
        let lines = file.file.lines.unwrap();
        assert_eq!((lines.all, lines.ignored, lines.unknown), (5, 1, 1), "{:?}", file.not_understood);
        assert_eq!(file.not_understood.len(), 1);
    }

    #[test]
    fn lines_of_several_programs_are_counted_each_by_its_own_kind() {
        let document = include_str!("specimens/iperf3_bidir_double_keys.json").trim_end();
        let rows = "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n \
                    r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n \
                    1  0      0 911544  33408 567708    0    0    55    11  111  222  3  1 95  1  0\n\
                    latency p97 12.5ms\n";
        let directory = tempfile::tempdir().unwrap();
        let lines_of = |text: String| {
            let path = directory.path().join("both.txt");
            std::fs::write(&path, text).unwrap();
            read_file(&path).unwrap().file.lines.map(|lines| (lines.all, lines.ignored, lines.unknown))
        };
        assert_eq!(lines_of(format!("{document}\n{rows}")), Some((4, 0, 1)), "a document has no lines");
        assert_eq!(lines_of(format!("{document}\n")), None);
    }

    #[test]
    fn a_run_has_figures_or_there_is_none() {
        let source = Source::new("file", "x".into(), Timestamp(jiff::Timestamp::UNIX_EPOCH)).unwrap();
        let nothing = importer("nothing", "nothing", |_| true, |_, _| Ok(Vec::new()));
        let empty = importer(
            "empty",
            "empty",
            |_| true,
            |_, _| Ok(vec![Draft::new(Workload::Io, "fio", "a job without a step")]),
        );
        for importer in [nothing, empty] {
            let refused = importer.read(&source, &mut Notes::new(&source)).unwrap_err();
            assert_eq!(refused.to_string(), "file: it holds no figures");
        }
    }
}

#[cfg(test)]
mod specimens {
    //! Specimens for the tests of all importers: read as files are, and as they arrive when something went wrong on the way.

    use proptest::prelude::*;

    use super::{Draft, Importer, Notes, Source, read, recognise};
    use model::record::Timestamp;

    /// A file with this text.
    pub(super) fn source(text: &str) -> Source {
        Source::new("file", text.as_bytes().to_vec(), Timestamp(jiff::Timestamp::UNIX_EPOCH)).unwrap()
    }

    /// The runs in `text`, which must be of `kind` and be understood.
    pub(super) fn drafts(kind: &str, text: &str) -> Vec<Draft> {
        let (importer, drafts, notes) = read(&source(text)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((importer.kind, notes.into_list()), (kind, vec![]));
        drafts
    }

    /// The only run in it.
    pub(super) fn only(kind: &str, text: &str) -> Draft {
        let mut found = drafts(kind, text);
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    /// A specimen that was damaged.
    #[derive(Debug)]
    pub(super) struct Damaged {
        /// Who reads it when it is whole.
        importer: &'static Importer,
        bytes: Vec<u8>,
    }

    /// One change to a text, at places that are reported as shares of its length.
    #[derive(Debug, Clone)]
    enum Change {
        Cut(f64),
        Byte(f64, u8),
        DeleteLine(f64),
        RepeatLine(f64, usize),
        /// The line at the first place stands at the second one too.
        CopyLine(f64, f64),
        Insert(f64, &'static str, usize),
    }

    fn changes() -> impl Strategy<Value = Vec<Change>> {
        let at = 0.0..1.0_f64;
        let words = prop::sample::select(vec![
            "9",
            "-",
            "99999999999999999999999999",
            "\u{fffd}",
            " ",
            "\n",
            "|",
            ":",
            ",",
            "(",
            "ms",
            "é",
            "\t",
            "\u{1b}[",
            "[ -: ",
            "nan",
        ]);
        let change = prop_oneof![
            at.clone().prop_map(Change::Cut),
            (at.clone(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
            at.clone().prop_map(Change::DeleteLine),
            (at.clone(), 1..5_usize).prop_map(|(at, times)| Change::RepeatLine(at, times)),
            (at.clone(), at.clone()).prop_map(|(at, to)| Change::CopyLine(at, to)),
            (at, words, 1..1_000_usize).prop_map(|(at, word, times)| Change::Insert(at, word, times)),
        ];
        prop::collection::vec(change, 1..6)
    }

    fn change(bytes: &mut Vec<u8>, change: &Change) {
        let place = |at: f64| (at * bytes.len() as f64) as usize;
        match change {
            Change::Cut(at) => bytes.truncate(place(*at)),
            Change::Byte(at, byte) => {
                let at = place(*at);
                if let Some(old) = bytes.get_mut(at) {
                    *old = *byte;
                }
            }
            Change::Insert(at, word, times) => {
                let at = place(*at);
                bytes.splice(at..at, word.repeat(*times).into_bytes());
            }
            Change::DeleteLine(at) | Change::RepeatLine(at, _) | Change::CopyLine(at, _) => {
                let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
                let line_at = |at: &f64| (at * lines.len() as f64) as usize;
                let line = line_at(at);
                match change {
                    Change::RepeatLine(_, times) => {
                        let again = vec![lines[line]; *times];
                        lines.splice(line..line, again);
                    }
                    Change::CopyLine(_, to) => lines.insert(line_at(to), lines[line]),
                    _ => _ = lines.remove(line),
                }
                *bytes = lines.join(&b'\n');
            }
        }
    }

    /// One of these texts, cut, with bytes changed, lines doubled, moved or lost, and long runs put in.
    pub(super) fn damaged(texts: &[&'static str]) -> impl Strategy<Value = Damaged> + use<> {
        let importer_of = |text: &str| recognise(source(text).head()).unwrap_or_else(|| panic!("of no kind: {text}"));
        let texts: Vec<(&'static str, &'static Importer)> =
            texts.iter().map(|text| (*text, importer_of(text))).collect();
        (prop::sample::select(texts), changes()).prop_map(|((text, importer), changes)| {
            let mut bytes = text.as_bytes().to_vec();
            changes.iter().for_each(|one| change(&mut bytes, one));
            Damaged { importer, bytes }
        })
    }

    /// Reading gives runs of finite figures or an error, whatever stands there: by whoever knows the damaged text, and by whoever knew
    /// the whole one.
    pub(super) fn survives(Damaged { importer, bytes }: Damaged) {
        let Ok(source) = Source::new("file", bytes, Timestamp(jiff::Timestamp::UNIX_EPOCH)) else { return };
        let by_both = [recognise(source.head()), Some(importer)];
        for drafts in
            by_both.into_iter().flatten().filter_map(|importer| importer.read(&source, &mut Notes::new(&source)).ok())
        {
            for step in drafts.iter().flat_map(|draft| &draft.steps) {
                assert!(step.reported.iter().all(|figure| figure.value.is_finite()), "{:?}", step.reported);
                serde_json::to_string(step).unwrap();
            }
        }
    }
}
