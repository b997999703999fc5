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
    let named = [
        ("WARNING", &screen.before),
        ("LIMITED", &screen.limited_by),
        ("EXPECTED", &screen.expected),
        ("PLAN FOR", &screen.plan_for),
        ("WAITS", &screen.waits),
        ("STALLS", &screen.stalls),
    ];
    for (name, text) in named {
        text.iter().try_for_each(|text| line(name, text))?;
    }
    for (place, text) in screen.also.iter().enumerate() {
        line(if place == 0 { "ALSO" } else { "" }, text)?;
    }
    screen.next.iter().try_for_each(|text| line("NEXT", text.trim_end_matches('.')))?;
    limits(paper, screen)
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
