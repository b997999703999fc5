//! Cells of histogram tables: shares, and numbers of waits as they are printed.

use crate::draft::whole;
use crate::numbers::{number, scaled, whole_number};

/// What a cell of such a table says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in super::super) enum Cell {
    /// Blank: truly none.
    None,
    /// A percentage of all waits of the event, to one decimal; 0 is more than none.
    Percent(f64),
    /// `0.0(122)`: exactly so many.
    Exactly(u64),
}

/// A number of waits as it is printed: `2464` is exact, `4.8M` is not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in super::super) struct Total {
    /// The number.
    pub waits: u64,
    /// How far the true number may be away.
    pub off: u64,
}

/// What a cell says; nothing if it is not understood.
pub(in super::super) fn cell(text: &str) -> Option<Cell> {
    let text = text.trim();
    if text.is_empty() {
        return Some(Cell::None);
    }
    if let Some((_, exactly)) = text.split_once('(') {
        return whole_number(exactly.trim_end_matches(')')).map(Cell::Exactly);
    }
    let percent = number(text)?;
    (0.0..=100.05).contains(&percent).then_some(Cell::Percent(percent))
}

/// A number of waits, as it is printed.
pub(in super::super) fn total(text: &str) -> Option<Total> {
    let text = text.trim();
    let waits = whole(scaled(text)?)?;
    let unit = match text.chars().last()? {
        'K' | 'k' => 1e3,
        'M' | 'm' => 1e6,
        'G' | 'g' => 1e9,
        'T' | 't' => 1e12,
        // A point without a unit: the unit was cut off.
        _ => return (!text.contains('.')).then_some(Total { waits, off: 0 }),
    };
    // One decimal is printed unless it is zero: `19K` is 19.0 thousand.
    let decimals = text.split_once('.').map_or(1, |(_, rest)| rest.len().saturating_sub(1).clamp(1, 12));
    Some(Total { waits, off: (unit / 2.0 / 10_f64.powi(decimals as i32)).ceil() as u64 })
}
