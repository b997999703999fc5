//! Numbers as reports print them.

/// A number with or without thousands commas, also `1.69E+05`, `.5` and `-3`; nothing for blanks, `N/A`, `#####` and the like.
pub(super) fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let plain: String = text.chars().filter(|c| *c != ',').collect();
    let is_number = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    // `inf` and `NaN` are words to us.
    if plain.is_empty() || !plain.chars().all(is_number) {
        return None;
    }
    plain.parse().ok().filter(|value: &f64| value.is_finite())
}

/// A number that may end in `K`, `M`, `G` or `T` for thousands, millions and so on; `16.4K` is 16400.
pub(super) fn scaled(text: &str) -> Option<f64> {
    let text = text.trim();
    let factor = match text.chars().last()? {
        'K' | 'k' => 1e3,
        'M' | 'm' => 1e6,
        'G' | 'g' => 1e9,
        'T' | 't' => 1e12,
        _ => return number(text),
    };
    Some(number(&text[..text.len() - 1])? * factor)
}

/// A whole number with or without thousands commas.
pub(super) fn whole_number(text: &str) -> Option<u64> {
    super::draft::whole(number(text)?)
}

/// A duration with its unit, such as `4.66ms`, `757.40us`, `.96ms`, `124.71us`, `1.2s`, `3.5 min`, in nanoseconds; nothing
/// without a unit.
pub(super) fn duration_ns(text: &str) -> Option<f64> {
    let text = text.trim();
    let at = text.find(|c: char| c.is_alphabetic() && c != 'E' && c != 'e')?;
    let factor = match text[at..].trim() {
        "ns" | "nsec" | "nsecs" => 1.0,
        "us" | "usec" | "usecs" | "µs" | "μs" => 1e3,
        "ms" | "msec" | "msecs" => 1e6,
        "s" | "sec" | "secs" => 1e9,
        "m" | "min" | "mins" => 60e9,
        "h" | "hr" | "hrs" => 3_600e9,
        _ => return None,
    };
    Some(number(&text[..at])? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_reports_are_read() {
        let read: Vec<Option<f64>> =
            ["1,234.5", ".9", "1.69E+05", " 7 ", "-3", "", "N/A", "#####", "inf", "1 2"].map(number).into();
        let expected = [Some(1_234.5), Some(0.9), Some(169_000.0), Some(7.0), Some(-3.0), None, None, None, None, None];
        assert_eq!(read, expected);
        assert_eq!(
            ["16.4K", "4.2M", "359K", "12", "K", "x"].map(scaled),
            [Some(16_400.0), Some(4_200_000.0), Some(359_000.0), Some(12.0), None, None]
        );
    }

    #[test]
    fn durations_have_units() {
        let read = ["4.66ms", "757.40us", ".96ms", "1.2s", "3 min", "12", "5 apples"].map(duration_ns);
        assert_eq!(read, [Some(4.66e6), Some(757_400.0), Some(0.96e6), Some(1.2e9), Some(180e9), None, None]);
    }
}
