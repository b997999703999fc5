//! Times and lengths of time in words.

use crate::words::UNKNOWN;
use analysis::trend::TrendWindow;

/// `2026-11-07 02:00 to 03:00`; of windows of less than two minutes also their seconds.
pub(crate) fn when(window: &TrendWindow) -> String {
    let is_same_day = window.from.strftime("%F").to_string() == window.to.strftime("%F").to_string();
    let form = if window.seconds < 120.0 { "%H:%M:%S" } else { "%H:%M" };
    let to = if is_same_day { window.to.strftime(form) } else { window.to.strftime("%Y-%m-%d %H:%M") };
    format!("{} {} to {to}", window.from.strftime("%Y-%m-%d"), window.from.strftime(form))
}

/// `2026-11-07 02:00`.
pub(crate) fn minute(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M").to_string()
}

/// `2026-11-07`, from days since 1970-01-01.
pub fn date(day: i64) -> String {
    let time = day.checked_mul(86_400).and_then(|second| jiff::Timestamp::from_second(second).ok());
    time.map_or_else(|| UNKNOWN.to_owned(), |time| time.strftime("%Y-%m-%d").to_string())
}

/// `15 minutes`, `1 hour`, `3.3 hours`, `2 days`.
pub(crate) fn length(seconds: f64) -> String {
    let (amount, unit) = match seconds {
        s if s < 119.5 => (s, "second"),
        s if s < 3_599.5 => (s / 60.0, "minute"),
        s if s < 86_399.5 * 2.0 => (s / 3_600.0, "hour"),
        s => (s / 86_400.0, "day"),
    };
    let text = format!("{amount:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    format!("{text} {unit}{}", if text == "1" { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_read_as_people_say_them() {
        let lengths = [10.0, 900.0, 3_600.0, 3_597.0, 12_000.0, 86_400.0, 172_800.0].map(length);
        assert_eq!(lengths, ["10 seconds", "15 minutes", "1 hour", "60 minutes", "3.3 hours", "24 hours", "2 days"]);
    }
}
