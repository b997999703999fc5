//! Results of other programs become runs.
//!
//! A file is recognised by what it holds, not by its name ([`recognise`]), and read into [`Draft`]s ([`read`]). One importer a
//! file of this crate: it says what it recognises, and reads no more than that. What a file does not report stays unknown; what
//! belongs to a file of its kind and could not be understood is noted with its line ([`Notes`]); what is damaged is an
//! [`ImportError`]. Nothing here touches the disk except [`Source::open`].

mod awr_miner;
mod block_latency;
mod calibrate_io;
mod columns;
mod console;
#[cfg(test)]
mod corpus_tests;
mod draft;
mod error;
mod evhist;
mod fio;
mod hammerdb;
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
mod run;
mod slob_console;
mod slob_files;
mod source;
#[cfg(test)]
mod specimens;
mod spool;
mod stress_ng;
mod swingbench;
mod sysbench;
mod unix_date;

pub use draft::{Began, Draft};
pub use error::ImportError;
pub use naming::distinct_names;
pub use run::{FileRead, runs};
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
        let mut drafts = (self.read)(source, notes)?;
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
    importer("awr-html", "AWR report in HTML", oracle::recognises_awr_html, oracle::read_awr_html),
    importer("awr-text", "AWR report as text", oracle::recognises_awr_text, oracle::read_awr_text),
    importer("statspack", "Statspack report", oracle::recognises_statspack, oracle::read_statspack),
    importer("awr-miner", "files of AWR Miner", awr_miner::recognises, awr_miner::read),
    importer("pylatencymap", "records of PyLatencyMap", pylatencymap::recognises, pylatencymap::read),
    importer("calibrate-io", "results of Oracle's CALIBRATE_IO", calibrate_io::recognises, calibrate_io::read),
    importer("event-histogram", "event histograms of Oracle", evhist::recognises, evhist::read),
    importer("orion-summary", "summary of ORION", orion::recognises_summary, orion::read_text),
    importer("orion-console", "output of ORION", orion::recognises_console, orion::read_text),
    importer("orion-histogram", "histograms of ORION", orion::recognises_histograms, orion::read_text),
    importer("orion-csv", "matrix of ORION (iops, mbps, lat)", orion::recognises_matrix, orion::read_matrix),
    importer("fio-json", "fio JSON", fio::json::recognises, fio::json::read),
    importer("fio-terse", "fio terse rows", fio::terse::recognises, fio::terse::read),
    importer("fio-text", "fio normal output", fio::text::recognises, fio::text::read),
    importer("fio-hist-log", "fio log of histograms", fio::histogram_log::recognises, fio::histogram_log::read),
    importer("swingbench-xml", "Swingbench results (XML)", swingbench::xml::recognises, swingbench::xml::read),
    importer("swingbench-json", "Swingbench results (JSON)", swingbench::json::recognises, swingbench::json::read),
    importer("charbench", "charbench log", swingbench::charbench::recognises, swingbench::charbench::read),
    importer("pgbench", "pgbench output", pgbench::summary::recognises, pgbench::summary::read),
    importer("pgbench-aggregate", "pgbench log, aggregated", pgbench::aggregate::recognises, pgbench::aggregate::read),
    importer(
        "pgbench-log",
        "pgbench log of transactions",
        pgbench::transactions::recognises,
        pgbench::transactions::read,
    ),
    importer("hammerdb", "HammerDB log", hammerdb::log::recognises, hammerdb::log::read),
    importer(
        "hammerdb-tcount",
        "HammerDB transaction counter log",
        hammerdb::counter::recognises,
        hammerdb::counter::read,
    ),
    importer("hammerdb-profile", "HammerDB time profile report", hammerdb::report::recognises, hammerdb::report::read),
    importer("hammerdb-timing", "HammerDB time profile (JSON)", hammerdb::timing::recognises, hammerdb::timing::read),
    importer("pgio", "pgio output", pgio::recognises, pgio::read),
    importer("slob-console", "SLOB console output", slob_console::recognises, slob_console::read),
    importer("sysbench", "sysbench output", sysbench::recognises, sysbench::read),
    importer("iostat", "iostat text", osstat::iostat::recognises, osstat::iostat::read),
    importer("iostat-json", "iostat JSON", osstat::iostat_json::recognises, osstat::iostat_json::read),
    importer("vmstat", "vmstat text", osstat::vmstat::recognises, osstat::vmstat::read),
    importer("mpstat", "mpstat text", osstat::mpstat::recognises, osstat::mpstat::read),
    importer("biolatency", "biolatency of bcc", block_latency::bcc::recognises, block_latency::bcc::read),
    importer(
        "biolatency-json",
        "biolatency of bcc, dictionaries",
        block_latency::dictionary::recognises,
        block_latency::dictionary::read,
    ),
    importer(
        "biolatency-bt",
        "biolatency.bt of bpftrace",
        block_latency::bpftrace::recognises,
        block_latency::bpftrace::read,
    ),
    importer(
        "iolatency",
        "iolatency of perf-tools",
        block_latency::iolatency::recognises,
        block_latency::iolatency::read,
    ),
    importer("iperf3-json", "iperf3 JSON", iperf3::json::recognises, iperf3::json::read),
    importer("iperf3-text", "iperf3 text", iperf3::text::recognises, iperf3::text::read),
    importer("oratcptest", "oratcptest", oratcptest::recognises, oratcptest::read),
    importer("stress-ng-text", "stress-ng text", stress_ng::text::recognises, stress_ng::text::read),
    importer("stress-ng-yaml", "stress-ng YAML", stress_ng::yaml::recognises, stress_ng::yaml::read),
    importer("slob-conf", "slob.conf, beside results", slob_files::is_conf, slob_files::read_conf),
    importer("slob-tm", "SLOB's tm.out, beside results", slob_files::is_tm, slob_files::read_tm),
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
    Ok(FileRead {
        file: source.file(importer.kind),
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
    let importer = recognise(source.head()).ok_or_else(|| ImportError::not_recognised(source))?;
    let mut notes = Notes::new(source);
    let drafts = importer.read(source, &mut notes)?;
    Ok((importer, drafts, notes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::Timestamp;
    use model::record::Workload;

    #[test]
    fn no_two_importers_have_one_name_and_every_one_says_what_it_reads() {
        let mut kinds: Vec<&str> = importers().iter().map(|importer| importer.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), importers().len());
        assert!(importers().iter().all(|importer| !importer.name.is_empty()));
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
