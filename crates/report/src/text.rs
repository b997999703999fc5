//! A report that stands alone in a terminal.

use std::io::{self, Write};

use super::facts::{COMMAND, facts};
use super::paper::{Paper, Terminal};
use super::sections::list::About;
use super::{calibration, first_screen, screen};
use analysis::{Finding, FirstScreen, Opening, Severity};
use model::record::{Run, Step, TargetKind};
use model::units::shell_lines;

/// How much is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Of one load of ours one screen: the answer, the values that decide, and findings. Else the answer, the table of its steps,
    /// findings, the histogram of single-block reads (of raw storage every histogram, and the load generator's verdict on itself; of
    /// a server where blocks came from, its log and its sessions), and what was run.
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

/// Writes the report for a terminal of `width` columns: the answer, the limits, warnings, the table of steps, findings, details, and
/// in the end what was run where.
///
/// # Errors
/// If `out` fails.
pub fn text(out: &mut impl Write, run: &Run, findings: &[Finding], detail: Detail, width: usize) -> io::Result<()> {
    let opening = Opening::of(run, findings);
    let answer = FirstScreen::with(&opening, run, findings);
    let findings = Noticed { findings, opening: &opening };
    let mut paper = Terminal { out, width: width.max(NARROWEST) };
    let answers = calibration::answers(run);
    answers.iter().try_for_each(|(name, text)| paper.paragraph(text, &format!("{name:<ANSWERS$}")))?;
    if !answers.is_empty() {
        paper.gap()?;
    }
    if screen::fits(run, detail) {
        return screen::write(out, run, &findings, &answer, width.max(NARROWEST));
    }
    first_screen::write(&mut paper, &answer)?;
    findings.write(&mut paper, "Warnings", |finding| finding.severity() == Severity::Doubt)?;
    let about = About::new(run);
    let first = about.first(&mut paper, detail)?;
    findings.write(&mut paper, "Findings", |finding| finding.severity() != Severity::Doubt)?;
    about.others(&mut paper, detail, first)?;
    paper.title("Run")?;
    for (name, text) in facts(run, detail) {
        let label = format!("{name:<FACTS$}");
        match name {
            // It can be pasted, lines and all.
            COMMAND => paper.lines(&shell_lines(&run.command, paper.width - FACTS), &label)?,
            _ => paper.paragraph(&text, &label)?,
        }
    }
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

/// What stands before a finding.
pub(super) fn noticed_word(finding: &Finding) -> &'static str {
    match finding.severity() {
        Severity::Doubt => "warning: ",
        Severity::Answer => "answer:  ",
        Severity::Note => "note:    ",
    }
}

/// What stands before its advice.
pub(super) const ADVICE: &str = "      -> ";

/// Findings, and the answer that their advice is not to contradict.
pub(super) struct Noticed<'a> {
    pub(super) findings: &'a [Finding],
    pub(super) opening: &'a Opening,
}

impl Noticed<'_> {
    /// Those that the answer does not say by itself: a verdict is the answer, and here only with what to do about it.
    pub(super) fn shown(&self) -> impl Iterator<Item = &Finding> {
        let is_answer = |finding: &Finding| matches!(finding, Finding::Verdict(_)) && finding.advice().is_none();
        self.findings.iter().filter(move |finding| !is_answer(finding))
    }

    /// One of them with its advice.
    pub(super) fn paragraph(&self, paper: &mut Terminal<'_>, finding: &Finding) -> io::Result<()> {
        paper.paragraph(&finding.sentence(), noticed_word(finding))?;
        self.opening.advice(finding).map_or(Ok(()), |advice| paper.paragraph(&advice, ADVICE))
    }

    fn write(&self, paper: &mut Terminal<'_>, title: &str, is_shown: impl Fn(&Finding) -> bool) -> io::Result<()> {
        let mut findings = self.shown().filter(|finding| is_shown(finding)).peekable();
        if findings.peek().is_none() {
            return Ok(());
        }
        paper.title(title)?;
        findings.try_for_each(|finding| self.paragraph(paper, finding))
    }
}
