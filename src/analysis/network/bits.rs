//! Rates of bits in words.

/// A rate of bits as networks are sold: `9.41 Gbit/s`, `94.1 Mbit/s`.
pub(in crate::analysis) fn rate(bits_per_s: f64) -> String {
    match bits_per_s {
        bits if bits >= 999.5e6 => format!("{:.2} Gbit/s", bits / 1e9),
        bits if bits >= 99.95e6 => format!("{:.0} Mbit/s", bits / 1e6),
        bits if bits >= 0.95e6 => format!("{:.1} Mbit/s", bits / 1e6),
        bits => format!("{:.0} kbit/s", bits / 1e3),
    }
}
