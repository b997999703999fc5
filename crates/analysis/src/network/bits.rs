//! Rates of bits and directions in words.

use model::record::NetworkSide;

/// A rate of bits as networks are sold: `9.41 Gbit/s`, `94.1 Mbit/s`.
pub(crate) fn rate(bits_per_s: f64) -> String {
    match bits_per_s {
        bits if bits >= 999.5e6 => format!("{:.2} Gbit/s", bits / 1e9),
        bits if bits >= 99.95e6 => format!("{:.0} Mbit/s", bits / 1e6),
        bits if bits >= 0.95e6 => format!("{:.1} Mbit/s", bits / 1e6),
        bits => format!("{:.0} kbit/s", bits / 1e3),
    }
}

/// `to the server`, or of several `from db2:7018`.
pub(super) fn direction(from: NetworkSide, server: Option<&str>) -> String {
    let server = server.unwrap_or("the server");
    match from {
        NetworkSide::Client => format!("to {server}"),
        NetworkSide::Server => format!("from {server}"),
    }
}
