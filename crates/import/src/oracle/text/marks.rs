//! What lines say of the table below them.

use std::ops::Range;

use super::layout::{Placed, Rule, underline};
use super::lines::Lines;
use super::open::HEADING_LINES;

/// Title of a section and name of the database, if a line is such as `Wait Events  DB/Inst: ORCL/orcl1  Snaps: 7-8` or, in old
/// versions of Statspack, `Wait Events for DB: ORCL  Instance: orcl1  Snaps: 7 -8`.
pub(super) fn section_title(text: &str) -> Option<(&str, &str)> {
    if let Some((title, rest)) = text.split_once("DB/Inst: ") {
        let name = rest.split('/').next().unwrap_or_default();
        return Some((title.trim(), name.trim()));
    }
    if !text.contains("  Snaps: ") {
        return None;
    }
    let (title, rest) = text.split_once(" for DB: ")?;
    let (name, _) = rest.split_once(" Instance: ")?;
    Some((title.trim(), name.trim()))
}

/// What a line with `->` remarks.
pub(super) fn remark(text: &str) -> Option<&str> {
    text.trim_start().strip_prefix("->").map(str::trim)
}

/// Remarks go on with a little indent; headings stand further to the right, or at the margin.
pub(super) fn is_remark_that_goes_on(text: &str) -> bool {
    let indent = text.len() - text.trim_start().len();
    (2..=4).contains(&indent)
}

/// The next rule, if no blank line stands before it.
pub(super) fn rule_below(lines: &mut Lines<'_>) -> Option<Rule> {
    for ahead in 0..HEADING_LINES {
        let text = &lines.peek(ahead).filter(|line| !line.text.is_empty())?.text;
        if let Some(rule) = Rule::of(text) {
            return Some(rule);
        }
    }
    None
}

/// Whether the next line is the underline of a title.
pub(super) fn is_underlined(lines: &mut Lines<'_>) -> bool {
    lines.peek(0).is_some_and(|next| underline(&next.text).is_some())
}

/// Whether a line begins with a name, whatever its case.
pub(super) fn begins_with(text: &str, name: &str) -> bool {
    text.trim_start().get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name))
}

/// Where a title ends that has an underline: titles may be longer than theirs, up to the next two blanks or a bracket.
pub(super) fn end_of_title(text: &Placed<'_>, run: &Range<usize>) -> usize {
    let rest = text.between(run.end..text.len());
    let open = rest.find(" (").filter(|_| text.between(0..run.end).find('(').is_none());
    let blanks = if text.between(run.end.saturating_sub(1)..run.end) == " " { Some(0) } else { rest.find("  ") };
    let ends = [open, blanks].into_iter().flatten().min();
    // Counted in characters, as places are.
    ends.map_or(text.len(), |at| run.end + rest.get(..at).map_or(0, |before| before.chars().count()))
}

/// Whether the next line is a rule of dashes too.
pub(super) fn goes_on(lines: &mut Lines<'_>) -> bool {
    let next = lines.peek(0).and_then(|next| Rule::of(&next.text));
    next.is_some_and(|rule| !rule.first_is_tilde && !rule.ends_a_section())
}
