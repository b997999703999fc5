//! A report that stands alone in a terminal.

use std::io::{self, Write};

use super::calibration;
use super::facts::{COMMAND, facts};
use super::paper::{Paper, Terminal};
use super::screen;
use super::sections::list::About;
use analysis::{Finding, Opening, Severity};
use model::record::{Run, Step, TargetKind};
use model::units::shell_lines;

/// How much is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Of one load of ours one screen: what was asked, the figures that decide, and what was noticed. Else what was asked, the load curve, the histogram of single-block reads (of raw storage every histogram, and the load
    /// generator's verdict on itself; of a server where blocks came from, its log and its sessions), and what was noticed.
    Brief,
    /// Also every wait event, operation type, device and setting.
    Full,
}

/// Narrower than this no sentence reads well, so nothing is broken further.
pub(super) const NARROWEST: usize = 60;
/// Columns of the names on the left of a calibration's answers, and of a run's facts.
const ANSWERS: usize = 12;
const FACTS: usize = 9;

const LEGEND: &str =
    "`?`: not known. `-`: none. MB: 1,000,000 bytes. ms in histogram columns: 1024 us; 0.0: less than 0.05 %.";
const ORACLE_MEGABYTES: &str = " In figures by Oracle's own names and in its tables, MB are 1,048,576 bytes.";
const OWN_QUANTILES: &str = " Quantiles are at most 0.8 % too high.";
const REPORTED_QUANTILES: &str =
    " `<=`: the upper edge of the bucket that the other program reports, which may be wide.";

/// Writes the report for a terminal of `width` columns. It begins with the answer in a sentence, or with
/// what makes the answer doubtful.
///
/// # Errors
/// If `out` fails.
pub fn text(out: &mut impl Write, run: &Run, findings: &[Finding], detail: Detail, width: usize) -> io::Result<()> {
    let mut paper = Terminal { out, width: width.max(NARROWEST) };
    let answers = calibration::answers(run);
    answers.iter().try_for_each(|(name, text)| paper.paragraph(text, &format!("{name:<ANSWERS$}")))?;
    if !answers.is_empty() {
        paper.gap()?;
    }
    if screen::fits(run, detail) {
        let headline = headline(run, findings);
        paper.remark(&headline)?;
        return screen::write(out, run, findings, &headline, width.max(NARROWEST));
    }
    paper.remark(&headline(run, findings))?;
    paper.gap()?;
    for (name, text) in facts(run, detail) {
        let label = format!("{name:<FACTS$}");
        match name {
            // It can be pasted, lines and all.
            COMMAND => paper.lines(&shell_lines(&run.command, paper.width - FACTS), &label)?,
            _ => paper.paragraph(&text, &label)?,
        }
    }
    About::new(run).text(&mut paper, detail)?;
    noticed(&mut paper, findings)?;
    paper.gap()?;
    let is_reported = |step: &Step| {
        step.waits.iter().any(|wait| wait.waits.is_reported())
            || step.operations.iter().any(|operation| operation.response.is_reported())
    };
    let quantiles = match run.steps.iter().any(is_reported) {
        true => REPORTED_QUANTILES,
        // Another program without buckets has no quantiles of ours.
        false if run.imported.is_some() => "",
        false => OWN_QUANTILES,
    };
    let has_megabytes = run.steps.iter().flat_map(|step| &step.reported).any(|figure| figure.unit.starts_with("MB"));
    let megabytes = if run.target.kind == Some(TargetKind::Oracle) && has_megabytes { ORACLE_MEGABYTES } else { "" };
    paper.remark(&format!("{LEGEND}{megabytes}{quantiles}"))
}

/// The sentence that may be repeated alone, or else the doubt that forbids it, with its figures. Whoever asked for a limit reads
/// yes or no first.
fn headline(run: &Run, findings: &[Finding]) -> String {
    let opening = Opening::of(run, findings);
    match &opening.doubt {
        Some(doubt) if opening.verdict.is_none() => {
            let causes = opening.of_sessions().into_iter().chain(opening.log_checkpoints.clone());
            let causes: Vec<String> = causes.map(|words| words[..1].to_uppercase() + &words[1..] + ". ").collect();
            let before = opening.before.iter().chain(&causes).map(String::as_str).collect::<String>();
            format!("{before}{}", doubt.sentence)
        }
        _ => opening.sentence(),
    }
}

/// What stands before a finding.
pub(super) fn noticed_word(finding: &Finding) -> &'static str {
    match finding.severity() {
        Severity::Doubt => "doubt:  ",
        Severity::Answer => "answer: ",
        Severity::Note => "note:   ",
    }
}

fn noticed(paper: &mut Terminal<'_>, findings: &[Finding]) -> io::Result<()> {
    // A verdict is the headline; here it is only with what to do about it.
    let is_headline = |finding: &Finding| matches!(finding, Finding::Verdict(_)) && finding.advice().is_none();
    let mut findings = findings.iter().filter(|finding| !is_headline(finding)).peekable();
    if findings.peek().is_none() {
        return Ok(());
    }
    paper.title("What was noticed")?;
    for finding in findings {
        paper.paragraph(&finding.sentence(), noticed_word(finding))?;
        if let Some(advice) = finding.advice() {
            paper.paragraph(&advice, "     -> ")?;
        }
    }
    Ok(())
}
