//! Lines of a spool.

use std::borrow::Cow;

use super::super::console::plain;
use super::super::numbers::whole_number;

/// `set linesize` takes no more.
const WIDEST: usize = 32_767;

/// A line without colours, carriage returns and form feeds, and with blanks for tabs: SQL*Plus writes tabs for blanks where it
/// can, and `set newpage 0` begins each page with a form feed.
pub(crate) fn clean(line: &str) -> Cow<'_, str> {
    let line = match plain(line) {
        Cow::Borrowed(line) => Cow::Borrowed(line.trim_start_matches('\u{c}')),
        Cow::Owned(line) => Cow::Owned(line.trim_start_matches('\u{c}').to_owned()),
    };
    if !line.contains('\t') {
        return line;
    }
    let mut text = String::with_capacity(line.len() + 16);
    let mut column = 0_usize;
    for c in line.chars() {
        // Far to the right there are no columns, and a file of tabs would become eight times as large.
        let width = if c == '\t' && column < WIDEST { 8 - column % 8 } else { 1 };
        match c {
            '\t' => text.extend(std::iter::repeat_n(' ', width)),
            c => text.push(c),
        }
        column += width;
    }
    Cow::Owned(text)
}

/// How many rows SQL*Plus says there were: `19 rows selected.`
pub(crate) fn rows_selected(line: &str) -> Option<u64> {
    let (count, rest) = line.trim().split_once(' ')?;
    (rest.starts_with("rows selected") || rest.starts_with("row selected")).then(|| whole_number(count)).flatten()
}

/// The release in `Oracle Database 19c Enterprise Edition Release 19.0.0.0.0 - Production`.
pub(crate) fn release_of(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("Oracle Database")?;
    let (_, release) = rest.split_once(" Release ")?;
    let word = release.split_whitespace().next()?;
    (word.len() < 32 && word.starts_with(|c: char| c.is_ascii_digit())).then_some(word)
}
