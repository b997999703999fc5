//! Rows whose blanks were lost, so that columns lie nowhere.

use super::super::numbers::number;
use super::super::oracle::classes::WAIT_CLASSES;
use super::super::oracle_time;
use super::{Kind, MAX_COLUMNS};

/// The cells of a line whose blanks were lost: numbers are one word, and what cannot be a number or a time between them is
/// text. A number or time before the text may be missing, where `break on` prints it once.
pub(super) fn by_words(line: &str, kinds: &[Kind]) -> Option<Vec<String>> {
    let words: Vec<&str> = line.split_whitespace().take(4 * MAX_COLUMNS).collect();
    let mut rest = words.as_slice();
    let is_text = |kind: &Kind| matches!(kind, Kind::Text | Kind::WaitClass);
    let first = kinds.iter().position(is_text).unwrap_or(kinds.len());
    let after = kinds.iter().rposition(is_text).map_or(kinds.len(), |last| last + 1);
    let (before_text, texts, after_text) = (kinds.get(..first)?, kinds.get(first..after)?, kinds.get(after..)?);
    let take_first = |rest: &mut &[&str], count: usize| {
        let (taken, left) = rest.split_at_checked(count)?;
        *rest = left;
        Some(taken.join(" "))
    };
    let mut cells = Vec::with_capacity(kinds.len());
    for kind in before_text {
        let count = match kind {
            Kind::Number => usize::from(rest.first().is_some_and(|word| number(word).is_some())),
            Kind::Time => oracle_time::words_of(rest),
            _ => return None,
        };
        cells.push(take_first(&mut rest, count)?);
    }
    let mut last = Vec::new();
    for kind in after_text.iter().rev() {
        let count = match kind {
            Kind::Number if rest.last().is_some_and(|word| number(word).is_some()) => 1,
            // `1 minute 7 seconds`
            Kind::Duration if rest.iter().rev().nth(2).is_some_and(|word| word.starts_with("minute")) => 4,
            Kind::Duration => 2,
            Kind::Time => {
                let fits = |count: &usize| {
                    rest.len().checked_sub(*count).and_then(|at| rest.get(at..)).map(oracle_time::words_of)
                        == Some(*count)
                };
                (1..=4).rev().find(fits)?
            }
            _ => return None,
        };
        let (left, taken) = rest.split_at_checked(rest.len().checked_sub(count)?)?;
        rest = left;
        last.push(taken.join(" "));
    }
    let text = rest.join(" ");
    match texts {
        [] if rest.is_empty() => {}
        [_] => cells.push(text),
        [Kind::WaitClass, Kind::Text] => {
            let class = WAIT_CLASSES.iter().find(|class| text.strip_prefix(**class).is_some_and(begins_blank))?;
            cells.push((*class).to_owned());
            cells.push(text.strip_prefix(class)?.trim().to_owned());
        }
        [Kind::Text, Kind::WaitClass] => {
            let class =
                WAIT_CLASSES.iter().find(|class| text.strip_suffix(**class).is_some_and(|t| t.ends_with(' ')))?;
            cells.push(text.strip_suffix(class)?.trim().to_owned());
            cells.push((*class).to_owned());
        }
        _ => return None,
    }
    cells.extend(last.into_iter().rev());
    Some(cells)
}

fn begins_blank(text: &str) -> bool {
    text.is_empty() || text.starts_with(' ')
}
