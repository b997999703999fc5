//! How many standard errors an interval has to reach.

use std::f64::consts::FRAC_PI_2;

/// Cells of the angle from nothing to a right angle.
const CELLS: u32 = 4_096;
/// From so many degrees of freedom on, more of them change nothing that matters.
const NEARLY_NORMAL: f64 = 2_000.0;

/// The distance in standard errors that Student's t with `freedom` degrees of freedom (at least 1) exceeds, on either side
/// together, with probability `beyond` (0 to 1, both excluded).
///
/// With t = sqrt(freedom) tan(angle) the density of the angle is proportional to cos(angle)^(freedom - 1), so that the
/// answer is the angle beyond which this share of the area lies.
pub(super) fn reach(beyond: f64, freedom: f64) -> f64 {
    let freedom = freedom.clamp(1.0, NEARLY_NORMAL);
    let width = FRAC_PI_2 / f64::from(CELLS);
    let density = |angle: f64| angle.cos().max(0.0).powf(freedom - 1.0);
    // From the right angle downwards: the tail comes first, so that small shares of it are not lost in large sums.
    let area = |cell: u32| {
        let upper = FRAC_PI_2 - f64::from(cell) * width;
        (density(upper) + 4.0 * density(upper - width / 2.0) + density(upper - width)) * width / 6.0
    };
    let wanted = beyond * (0..CELLS).map(area).sum::<f64>();
    let mut below = 0.0;
    for cell in 0..CELLS {
        let more = area(cell);
        if below + more >= wanted {
            let part = if more > 0.0 { (wanted - below) / more } else { 0.0 };
            return freedom.sqrt() * (FRAC_PI_2 - (f64::from(cell) + part) * width).tan();
        }
        below += more;
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_as_in_the_tables() {
        for (beyond, freedom, expected) in [
            (0.05, 1.0, 12.706),
            (0.05, 2.0, 4.303),
            (0.05, 4.0, 2.776),
            (0.01, 4.0, 4.604),
            (0.001, 4.0, 8.610),
            (0.001, 10.0, 4.587),
            (0.002, 3.0, 10.215),
            (0.05, 30.0, 2.042),
            (0.001, 120.0, 3.373),
            (0.05, 1e9, 1.960),
            (0.0001, 1e9, 3.891),
        ] {
            let quantile = reach(beyond, freedom);
            assert!((quantile / expected - 1.0).abs() < 0.002, "{beyond} with {freedom}: {quantile}, not {expected}");
        }
    }
}
