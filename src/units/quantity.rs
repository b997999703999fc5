//! Printing of plain counts, rates and shares.

/// Groups digits by thousands: `1234567` becomes `1,234,567`. Negative or fractional parts are rounded to whole numbers.
pub fn group_thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut out = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if value < 0.0 && digits != "0" {
        out.push('-');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count as AWR prints it: up to five characters, with K, M, G or T of thousands: `4.2M`, `61K`, `862`.
pub fn short_count(value: f64) -> String {
    let magnitude = value.abs();
    let (scaled, suffix) = match magnitude {
        m if m < 999.5 => return format!("{value:.0}"),
        m if m < 999_500.0 => (value / 1e3, "K"),
        m if m < 999_500_000.0 => (value / 1e6, "M"),
        m if m < 999_500_000_000.0 => (value / 1e9, "G"),
        _ => (value / 1e12, "T"),
    };
    if scaled.abs() < 9.95 { format!("{scaled:.1}{suffix}") } else { format!("{scaled:.0}{suffix}") }
}

/// A share of one as a percentage with one decimal: `0.123` becomes `12.3`.
pub fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_thousands() {
        for (value, text) in
            [(0.0, "0"), (999.0, "999"), (1_000.0, "1,000"), (1_234_567.4, "1,234,567"), (-1_234.0, "-1,234")]
        {
            assert_eq!(group_thousands(value), text);
        }
    }

    #[test]
    fn shortens_counts_as_awr_does() {
        for (value, text) in
            [(862.0, "862"), (4_200_000.0, "4.2M"), (61_000.0, "61K"), (999_600.0, "1.0M"), (9_960.0, "10K")]
        {
            assert_eq!(short_count(value), text);
        }
    }
}
