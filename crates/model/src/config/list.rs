//! Lists of numbers as people write them: `1,2,4,8`, or with the doublings between left out as `1,2,…,64` or `1..64`.

use std::ops::Add;

/// What is wrong with a list whose numbers can all be read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Gap<T> {
    /// A number stands there twice.
    Twice(T),
    /// A range goes down.
    Down { first: T, last: T },
    /// What stands before `…` does not say how it goes on.
    NoDoubling { before: T, first: T },
}

/// The text without spaces, and with each way to leave something out written as `…`.
pub(super) fn one_ellipsis(text: &str) -> String {
    text.replace(char::is_whitespace, "").replace("...", "…").replace("..", "…")
}

/// Reads a list: each number by `number`, which accepts none at or below zero. A range ends with its last number even if that
/// is no doubling, and no number is there twice.
///
/// # Errors
/// What `number` says of a text, and what `wrong` says of the list.
pub(super) fn numbers<T: Copy + PartialOrd + Add<Output = T>, E>(
    text: &str,
    number: impl Fn(&str) -> Result<T, E>,
    wrong: impl Fn(Gap<T>) -> E,
) -> Result<Vec<T>, E> {
    let mut found: Vec<T> = Vec::new();
    for item in one_ellipsis(text).replace(",…,", "…").split(',') {
        let Some((first, last)) = item.split_once('…') else {
            found.push(number(item)?);
            continue;
        };
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(wrong(Gap::Down { first, last }));
        }
        // `1,3,…,9` does not mean doubling, whatever else it means.
        if let Some(&before) = found.last().filter(|&&before| before + before != first) {
            return Err(wrong(Gap::NoDoubling { before, first }));
        }
        found.extend(std::iter::successors(Some(first), |number| Some(*number + *number)).take_while(|it| *it < last));
        found.push(last);
    }
    match found.iter().enumerate().find(|(place, number)| found[..*place].contains(number)) {
        Some((_, &number)) => Err(wrong(Gap::Twice(number))),
        None => Ok(found),
    }
}
