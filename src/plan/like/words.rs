//! Words of what is reproduced.

use model::record::{Aspect, WorkFigure};
use model::units::{Bytes, group_thousands};

/// A multiple as people write it.
pub fn times_text(times: f64) -> String {
    ((times * 100.0).round() / 100.0).to_string()
}

pub(super) fn by(figure: WorkFigure, by: String) -> Aspect {
    Aspect { figure, by: Some(by), gap: None }
}

pub(super) fn partly(figure: WorkFigure, by: String, gap: Option<String>) -> Aspect {
    Aspect { figure, by: Some(by), gap }
}

pub(super) fn not(figure: WorkFigure, gap: impl Into<String>) -> Aspect {
    Aspect { figure, by: None, gap: Some(gap.into()) }
}

/// A rate in words.
pub(super) fn rate(per_s: f64) -> String {
    if per_s < 9.95 && per_s.fract() != 0.0 { format!("{per_s:.2}") } else { group_thousands(per_s) }
}

/// Mean bytes of a request in words.
pub(super) fn mean_size(bytes: f64, requests: f64) -> Bytes {
    Bytes((bytes / requests).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_multiple_has_no_digits_that_nobody_needs() {
        assert_eq!([2.0, 2.6, 1.0 / 3.0].map(times_text), ["2", "2.6", "0.33"]);
    }
}
