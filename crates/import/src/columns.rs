//! Text in fixed columns, as SQL*Plus prints it: a line of dashes says where each column lies.

use std::ops::Range;

/// Where each column lies, in characters, by a line of dashes such as `------- ---- -----`; nothing if the line holds
/// anything but dashes (or `~`) and blanks, or has a single dash only.
pub(super) fn of_rule(rule: &str) -> Option<Vec<Range<usize>>> {
    let rule = rule.trim_end();
    if rule.len() < 2 || !rule.bytes().all(|byte| matches!(byte, b'-' | b' ' | b'~')) {
        return None;
    }
    let mut columns = Vec::new();
    let mut from = None;
    for (at, byte) in rule.bytes().enumerate() {
        match (byte != b' ', from) {
            (true, None) => from = Some(at),
            (false, Some(began)) => {
                columns.push(began..at);
                from = None;
            }
            _ => {}
        }
    }
    columns.extend(from.map(|began| began..rule.len()));
    (!columns.is_empty()).then_some(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_of_dashes_says_where_columns_lie() {
        assert_eq!(of_rule("----- --- -----  "), Some(vec![0..5, 6..9, 10..15]));
        assert_eq!((of_rule("- word -"), of_rule("-"), of_rule("")), (None, None, None));
    }
}
