//! Lines of a report, with a look ahead.

use std::borrow::Cow;
use std::collections::VecDeque;

/// Lines longer than that are not a report's: the widest tables of a cluster have 300 characters.
const MOST_BYTES: usize = 8 << 10;
/// Where SQL*Plus puts its tab stops, where it writes tabs for blanks.
const TAB_STOP: usize = 8;

/// A line.
#[derive(Debug, Clone)]
pub(super) struct Line<'a> {
    /// Its number, from 1.
    pub(super) number: u64,
    /// Its text without blanks at its end; empty if it is too long to be a report's.
    pub(super) text: Cow<'a, str>,
}

/// The lines, in their order.
pub(super) struct Lines<'a> {
    rest: std::iter::Zip<std::str::Lines<'a>, std::ops::RangeFrom<u64>>,
    ahead: VecDeque<Line<'a>>,
}

impl<'a> Lines<'a> {
    /// Those of a text.
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text.lines().zip(1..), ahead: VecDeque::new() }
    }

    /// The next one.
    pub(super) fn next(&mut self) -> Option<Line<'a>> {
        self.ahead.pop_front().or_else(|| self.rest.next().map(clean))
    }

    /// The line `ahead` lines after the next one, which has 0.
    pub(super) fn peek(&mut self, ahead: usize) -> Option<&Line<'a>> {
        while self.ahead.len() <= ahead {
            self.ahead.push_back(clean(self.rest.next()?));
        }
        self.ahead.get(ahead)
    }
}

fn clean<'a>((text, number): (&'a str, u64)) -> Line<'a> {
    // A page begins with a form feed where the report was spooled for a printer.
    let text = text.trim_start_matches('\u{c}').trim_end();
    let text = match text {
        _ if text.len() > MOST_BYTES => Cow::Borrowed(""),
        _ if text.contains('\t') => Cow::Owned(without_tabs(text)),
        _ => Cow::Borrowed(text),
    };
    Line { number, text }
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
