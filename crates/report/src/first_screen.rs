//! The answer first: a line for each of its parts, then the limits that were requested.

use std::io;

use super::paper::Terminal;
use analysis::{FirstScreen, LimitAnswer};

/// Columns of the names on the left.
const NAMES: usize = 10;
/// Behind the result of a model of storage.
const SIMULATED: &str = " (SIMULATED)";

/// Writes the answer.
pub(super) fn write(paper: &mut Terminal<'_>, screen: &FirstScreen) -> io::Result<()> {
    let simulated = if screen.is_simulated { SIMULATED } else { "" };
    let result = format!("{}{simulated}", screen.result);
    let mut line = |name: &str, text: &str| paper.paragraph(text, &format!("{name:<NAMES$}"));
    line("RESULT", &result)?;
    named_lines(screen).into_iter().try_for_each(|(name, text)| line(name, text))?;
    limits(paper, screen)
}

/// All parts of the answer but the result, each with its name, which further lines of a part have not; what to do next comes last.
pub(super) fn named_lines(screen: &FirstScreen) -> Vec<(&'static str, &str)> {
    let named = [
        ("WARNING", &screen.before),
        ("LIMITED", &screen.limited_by),
        ("EXPECTED", &screen.expected),
        ("PLAN FOR", &screen.plan_for),
        ("WAITS", &screen.waits),
        ("STALLS", &screen.stalls),
    ];
    let mut lines: Vec<(&str, &str)> =
        named.into_iter().filter_map(|(name, text)| Some((name, text.as_deref()?))).collect();
    let also = screen.also.iter().enumerate();
    lines.extend(also.map(|(place, text)| (if place == 0 { "ALSO" } else { "" }, text.as_str())));
    lines.extend(screen.next.as_deref().map(|text| ("NEXT", text.trim_end_matches('.'))));
    lines
}

/// A line for each limit: whether it was met, what was measured, and the limit.
fn limits(paper: &mut Terminal<'_>, screen: &FirstScreen) -> io::Result<()> {
    let widest = screen.limits.iter().map(|limit| limit.what.chars().count()).max().unwrap_or(0);
    if !screen.limits.is_empty() {
        paper.gap()?;
    }
    for limit in &screen.limits {
        let measured = limit.measured.as_deref().unwrap_or("not known");
        let because = limit.because.as_ref().map_or_else(String::new, |because| format!(": {because}"));
        let text = format!("{measured}, limit {}{because}", limit.limit);
        paper.paragraph(&text, &format!("{} {:<widest$}  ", mark(limit.answer), limit.what))?;
    }
    Ok(())
}

/// How a limit came out, in one sign.
pub(super) fn mark(answer: LimitAnswer) -> &'static str {
    match answer {
        LimitAnswer::Yes => "✓",
        LimitAnswer::No => "✗",
        LimitAnswer::NoVerdict => "?",
    }
}
