//! Lines of a report, with a look ahead.

use std::borrow::Cow;
use std::collections::VecDeque;

/// Lines longer than that are not a report's: the widest tables of a cluster have 300 characters.
const MAX_BYTES: usize = 8 << 10;
/// Where SQL*Plus puts its tab stops, where it writes tabs for blanks.
const TAB_STOP: usize = 8;

/// A line.
#[derive(Debug, Clone)]
pub(super) struct Line<'a> {
    /// Its number, from 1.
    pub(super) number: u64,
    /// Its text without blanks at its end; empty if it is too long to be a report's.
    pub(super) text: Cow<'a, str>,
    /// All of it, as it stands in the file.
    whole: &'a str,
}

/// The lines, in their order.
pub(super) struct Lines<'a> {
    rest: std::iter::Zip<std::str::Lines<'a>, std::ops::RangeFrom<u64>>,
    ahead: VecDeque<Line<'a>>,
    /// What stands before each line and is none of it.
    margin: String,
}

impl<'a> Lines<'a> {
    /// Those of a text.
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text.lines().zip(1..), ahead: VecDeque::new(), margin: String::new() }
    }

    /// The next one.
    pub(super) fn next(&mut self) -> Option<Line<'a>> {
        self.ahead.pop_front().or_else(|| self.rest.next().map(|(text, number)| line(text, number, &self.margin)))
    }

    /// The line `ahead` lines after the next one, which has 0.
    pub(super) fn peek(&mut self, ahead: usize) -> Option<&Line<'a>> {
        while self.ahead.len() <= ahead {
            let (text, number) = self.rest.next()?;
            self.ahead.push_back(line(text, number, &self.margin));
        }
        self.ahead.get(ahead)
    }

    /// Takes what stands before a line for a margin that all lines after it have: blanks of a listing in a document, or the `> `
    /// of a reply. What stood before it so far, to be given back.
    pub(super) fn set_margin(&mut self, margin: String) -> String {
        for ahead in &mut self.ahead {
            *ahead = line(ahead.whole, ahead.number, &margin);
        }
        std::mem::replace(&mut self.margin, margin)
    }

    /// Whether a line has the margin.
    pub(super) fn has_margin(&self, line: &Line<'a>) -> bool {
        clean(line.whole).starts_with(&self.margin)
    }
}

impl Line<'_> {
    /// Blanks and marks of a reply that it begins with.
    pub(super) fn margin(&self) -> String {
        let whole = clean(self.whole);
        let length = whole.len() - without_margin(&whole).len();
        whole.get(..length).unwrap_or_default().to_owned()
    }
}

/// What remains of a line without blanks and marks of a reply at its beginning.
pub(super) fn without_margin(text: &str) -> &str {
    text.trim_start_matches([' ', '>'])
}

fn line<'a>(whole: &'a str, number: u64, margin: &str) -> Line<'a> {
    let text = match clean(whole) {
        text if margin.is_empty() => text,
        text if text == margin.trim_end() => Cow::Borrowed(""),
        Cow::Borrowed(text) => Cow::Borrowed(text.strip_prefix(margin).unwrap_or(text)),
        Cow::Owned(text) => Cow::Owned(text.strip_prefix(margin).map(str::to_owned).unwrap_or(text)),
    };
    Line { number, text, whole }
}

fn clean(text: &str) -> Cow<'_, str> {
    // A page begins with a form feed where the report was spooled for a printer.
    let text = text.trim_start_matches('\u{c}').trim_end();
    match text {
        _ if text.len() > MAX_BYTES => Cow::Borrowed(""),
        _ if text.contains('\t') => Cow::Owned(without_tabs(text)),
        _ => Cow::Borrowed(text),
    }
}

fn without_tabs(text: &str) -> String {
    let mut plain = String::with_capacity(text.len() * 2);
    let mut at = 0;
    for c in text.chars() {
        let blanks = if c == '\t' { TAB_STOP - at % TAB_STOP } else { 0 };
        plain.extend(std::iter::repeat_n(' ', blanks));
        if blanks == 0 {
            plain.push(c);
        }
        at += blanks.max(1);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tabs_stand_for_blanks_and_pages_for_nothing() {
        let mut lines = Lines::new("\u{c}a\tb\r\n12345678\tc  \n");
        assert_eq!(lines.peek(1).unwrap().text, "12345678        c");
        assert_eq!(lines.next().unwrap().text, "a       b");
        assert_eq!((lines.next().unwrap().number, lines.next().is_none()), (2, true));
    }

    #[test]
    fn endless_lines_are_none_of_a_report() {
        let endless = "x".repeat(1 << 20);
        assert_eq!(Lines::new(&endless).next().unwrap().text, "");
    }
}
