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

/// A count or rate in up to five characters, with K, M, G or T of thousands: `4.2M`, `61K`, `862`.
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

/// A count of waits as AWR prints it, with K, M, G or T of thousands, rounded to at most one decimal: `5M` for 4,982,227, `61K`, `862`.
pub fn awr_count(value: f64) -> String {
    let value = value.round();
    let (unit, suffix) = match value.abs() {
        m if m < 1e3 => return format!("{value:.0}"),
        m if m < 999_950.0 => (1e3, "K"),
        m if m < 999_950_000.0 => (1e6, "M"),
        m if m < 999_950_000_000.0 => (1e9, "G"),
        _ => (1e12, "T"),
    };
    let tenths = (value / (unit / 10.0)).round();
    if tenths % 10.0 == 0.0 { format!("{:.0}{suffix}", tenths / 10.0) } else { format!("{:.1}{suffix}", tenths / 10.0) }
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
    fn shortens_counts_to_five_characters() {
        for (value, text) in
            [(862.0, "862"), (4_200_000.0, "4.2M"), (61_000.0, "61K"), (999_600.0, "1.0M"), (9_960.0, "10K")]
        {
            assert_eq!(short_count(value), text);
        }
    }

    #[test]
    fn shortens_counts_as_awr_does() {
        for (value, text) in [
            (862.0, "862"),
            (999.7, "1K"),
            (4_200_000.0, "4.2M"),
            (4_853_007.0, "4.9M"),
            (4_982_227.0, "5M"),
            (13_345_000.0, "13.3M"),
            (999_949.0, "999.9K"),
            (999_950.0, "1M"),
            (61_000.0, "61K"),
            (999_600.0, "999.6K"),
        ] {
            assert_eq!(awr_count(value), text);
        }
    }
}
