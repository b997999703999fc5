//! A report that stands alone in a terminal.

mod facts;
mod requests;
mod sections;
mod servers;

use std::io::{self, Write};

use super::trace::write_traces_within;
use super::words::wrap;
use crate::analysis::{Finding, Opening, Severity, Vocabulary, is_on_servers};
use crate::record::Run;

/// How much is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// What was asked, the load curve, the histogram of single-block reads (of raw storage every histogram, and the load
    /// generator's verdict on itself; of a server where blocks came from, its log and its sessions), and what was noticed.
    Brief,
    /// Also every wait event, operation type, device and setting.
    Full,
}

/// Narrower than this no sentence reads well, so nothing is broken further.
const NARROWEST: usize = 60;

const LEGEND: &str = "`?`: not known. `-`: none. MB: 1,000,000 bytes. ms in histogram columns: 1024 us; 0.0: less than \
                      0.05 %. Quantiles are at most 0.8 % too high.";

/// Writes the report for a terminal of `width` columns. It begins with the answer in a sentence, or with
/// what makes the answer doubtful.
///
/// # Errors
/// If `out` fails.
pub fn text(out: &mut impl Write, run: &Run, findings: &[Finding], detail: Detail, width: usize) -> io::Result<()> {
    let width = width.max(NARROWEST);
    super::calibration::write(out, run, width)?;
    paragraph(out, &headline(run, findings), "", width)?;
    writeln!(out)?;
    facts::write(out, run, detail, width)?;
    let on_servers = is_on_servers(run);
    match Vocabulary::of(run) {
        Vocabulary::Sessions if on_servers => {
            servers::operations(out, run, width)?;
            servers::blocks(out, run, width)?;
            servers::log(out, run, width)?;
            servers::commit_latency(out, run, width)?;
        }
        Vocabulary::Sessions => {
            sections::throughput(out, run, width)?;
            sections::reads_and_processors(out, run, width)?;
        }
        Vocabulary::Requests => {
            requests::throughput(out, run, width)?;
            requests::kinds(out, run, width)?;
            requests::generator(out, run, detail, width)?;
        }
    }
    super::rounds::write(out, run, detail, width)?;
    if detail == Detail::Full {
        sections::waits(out, run, width)?;
    }
    sections::histograms(out, run, detail, width)?;
    if Vocabulary::of(run) == Vocabulary::Requests {
        requests::response_histograms(out, run, detail, width)?;
    }
    for step in run.steps.iter().filter(|step| !step.traces.is_empty()) {
        writeln!(out)?;
        if run.steps.len() > 1 {
            writeln!(out, "{}:", step.label)?;
        }
        write_traces_within(out, &step.traces, width)?;
    }
    if detail == Detail::Full {
        sections::operations(out, run, width)?;
    }
    if on_servers {
        servers::shape(out, run, width)?;
        servers::sessions(out, run, width)?;
        servers::processors(out, run, width)?;
        servers::nodes(out, run, width)?;
    }
    if detail == Detail::Full || on_servers {
        sections::devices(out, run, width)?;
    }
    noticed(out, findings, width)?;
    writeln!(out)?;
    paragraph(out, LEGEND, "", width)
}

/// The sentence that may be repeated alone, or else the doubt that forbids it, with its figures.
fn headline(run: &Run, findings: &[Finding]) -> String {
    let opening = Opening::of(run, findings);
    match &opening.doubt {
        Some(doubt) => doubt.sentence.clone(),
        None => opening.sentence(),
    }
}

fn noticed(out: &mut dyn Write, findings: &[Finding], width: usize) -> io::Result<()> {
    if findings.is_empty() {
        return Ok(());
    }
    heading(out, "What was noticed")?;
    for finding in findings {
        let word = match finding.severity() {
            Severity::Doubt => "doubt:  ",
            Severity::Answer => "answer: ",
            Severity::Note => "note:   ",
        };
        paragraph(out, &finding.sentence(), word, width)?;
        if let Some(advice) = finding.advice() {
            paragraph(out, &advice, "     -> ", width)?;
        }
    }
    Ok(())
}

/// A title, set apart from what stands above it.
pub(super) fn heading(out: &mut dyn Write, title: &str) -> io::Result<()> {
    writeln!(out, "\n{title}\n{}", "-".repeat(title.chars().count()))
}

/// Text after `label`, wrapped, with later lines indented to where the first began.
fn paragraph(out: &mut dyn Write, text: &str, label: &str, width: usize) -> io::Result<()> {
    let indent = label.chars().count();
    for (index, line) in wrap(&super::words::plain(text), width - indent).iter().enumerate() {
        if index == 0 {
            writeln!(out, "{label}{line}")?;
        } else {
            writeln!(out, "{:indent$}{line}", "")?;
        }
    }
    Ok(())
}
