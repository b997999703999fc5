//! Axes: what they count, how far they reach, and where their labels stand.

use serde::Serialize;

use model::units::{Bytes, group_thousands};

/// What the values of an axis are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::html) enum Quantity {
    /// Of whatever the axis names, in a second.
    PerSecond,
    /// A duration in microseconds.
    Microseconds,
    /// Seconds since the run began.
    Elapsed,
    /// Seconds since 1970, of whatever clock: a date and a time of day.
    Clock,
    /// 0 to 100.
    Percent,
    /// Memory in units of 1,048,576 bytes.
    Mebibytes,
    /// Anything that is counted.
    Count,
    /// A duration as the binary logarithm of its microseconds.
    LogMicroseconds,
    /// A percentile as the nines in it: 2 is p99, 3 is p99.9.
    Nines,
}

impl Quantity {
    /// A label on an axis.
    pub(in crate::html) fn tick(self, value: f64) -> String {
        match self {
            Self::Microseconds => duration(value),
            Self::LogMicroseconds => duration(value.exp2()),
            Self::Elapsed => elapsed(value),
            Self::Clock => clock(value),
            Self::Percent => format!("{} %", short(value)),
            Self::Mebibytes => Bytes((value * f64::from(1_u32 << 20)) as u64).to_string(),
            Self::PerSecond | Self::Count => short(value),
            Self::Nines => percentile(value),
        }
    }
}

/// Grouped where it is large, and with no more decimals than it has where it is small.
fn short(value: f64) -> String {
    match value.abs() {
        large if large >= 1e9 => format!("{} G", trimmed(value / 1e9)),
        large if large >= 1e6 => format!("{} M", trimmed(value / 1e6)),
        large if large >= 100.0 => group_thousands(value),
        _ => trimmed(value),
    }
}

fn trimmed(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let decimals = (2 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn duration(us: f64) -> String {
    match us {
        0.0 => "0".to_owned(),
        us if us < 1.0 => format!("{} ns", trimmed(us * 1e3)),
        us if us < 1e3 => format!("{} us", trimmed(us)),
        us if us < 1e6 => format!("{} ms", trimmed(us / 1e3)),
        us => format!("{} s", trimmed(us / 1e6)),
    }
}

fn elapsed(seconds: f64) -> String {
    let (hours, minutes) = ((seconds / 3_600.0) as u64, (seconds / 60.0) as u64 % 60);
    let rest = seconds - (hours * 3_600 + minutes * 60) as f64;
    let parts = [(hours as f64, "h"), (minutes as f64, "min"), (rest, "s")];
    let words: Vec<String> = parts
        .iter()
        .filter(|(part, _)| *part > 1e-9)
        .map(|(part, unit)| format!("{} {unit}", trimmed(*part)))
        .collect();
    if words.is_empty() { "0".to_owned() } else { words.join(" ") }
}

/// A day at midnight, else also the time of day.
fn clock(second: f64) -> String {
    let Ok(time) = jiff::Timestamp::from_second(second.round() as i64) else { return String::new() };
    let form = if (second.round() as i64).rem_euclid(86_400) == 0 { "%Y-%m-%d" } else { "%m-%d %H:%M" };
    time.strftime(form).to_string()
}

fn percentile(nines: f64) -> String {
    let decimals = (nines.floor() as i32 - 2).clamp(0, 6) as usize;
    format!("p{:.decimals$}", 100.0 - 100.0 * 10_f64.powf(-nines))
}

/// How values are laid along an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::html) enum Scale {
    /// In proportion, from `low` to `high`.
    Linear {
        /// Value at the beginning.
        low: f64,
        /// Value at the end.
        high: f64,
    },
    /// By the logarithm, from `low` to `high`, both above zero.
    Log {
        /// Value at the beginning.
        low: f64,
        /// Value at the end.
        high: f64,
    },
}

impl Scale {
    /// From zero to somewhat more than the largest value; absent if no value is above zero.
    pub(in crate::html) fn from_zero(values: impl Iterator<Item = f64>) -> Option<Self> {
        let most = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        (most > 0.0).then_some(Self::Linear { low: 0.0, high: most * 1.05 })
    }

    /// Around all values above zero; absent if there is none.
    pub(in crate::html) fn logarithmic(values: impl Iterator<Item = f64>) -> Option<Self> {
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for value in values.filter(|value| value.is_finite() && *value > 0.0) {
            (least, most) = (least.min(value), most.max(value));
        }
        // One value, or all alike, need some room to stand in.
        (most > 0.0).then(|| Self::Log { low: (least / 1.2).min(most / 2.0), high: most * 1.2 })
    }

    /// Where a value stands, 0 to 1; what lies beyond an end stands at that end.
    pub(in crate::html) fn share(&self, value: f64) -> f64 {
        let share = match *self {
            Self::Linear { low, high } => (value - low) / (high - low),
            Self::Log { low, .. } if value <= low => 0.0,
            Self::Log { low, high } => (value / low).ln() / (high / low).ln(),
        };
        share.clamp(0.0, 1.0)
    }

    /// Round values within the scale, about `wanted` of them.
    pub(in crate::html) fn ticks(&self, wanted: usize) -> Vec<f64> {
        match *self {
            Self::Linear { low, high } => {
                let step = round_up((high - low) / wanted as f64, &[1.0, 2.0, 5.0, 10.0]);
                multiples(low, high, step)
            }
            Self::Log { low, high } => {
                let decades = (high / low).log10();
                let digits: &[f64] = match decades {
                    d if d < 1.5 => &[1.0, 2.0, 3.0, 5.0, 7.0],
                    d if d < 3.0 => &[1.0, 2.0, 5.0],
                    _ => &[1.0],
                };
                let every = ((decades / wanted as f64).ceil() as i32).max(1);
                let powers = (low.log10().floor() as i32)..=(high.log10().ceil() as i32);
                let powers = powers.filter(|power| power.rem_euclid(every) == 0);
                let all = powers.flat_map(|power| digits.iter().map(move |digit| digit * 10_f64.powi(power)));
                all.filter(|tick| (low..=high).contains(tick)).collect()
            }
        }
    }
}

/// Labels along a time axis: steps that people count time in.
pub(in crate::html) fn time_ticks(low_s: f64, high_s: f64, wanted: usize) -> Vec<f64> {
    const STEPS_S: [f64; 17] = [
        0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 7_200.0,
        21_600.0,
    ];
    let least = (high_s - low_s) / wanted as f64;
    let step = STEPS_S.into_iter().find(|step| *step >= least);
    multiples(low_s, high_s, step.unwrap_or_else(|| round_up(least, &[1.0, 2.0, 5.0, 10.0])))
}

/// Labels along an axis of dates: whole hours of a day, or midnights.
pub(in crate::html) fn day_ticks(low_s: f64, high_s: f64, wanted: usize) -> Vec<f64> {
    const STEPS_H: [f64; 11] = [1.0, 3.0, 6.0, 12.0, 24.0, 48.0, 96.0, 168.0, 336.0, 720.0, 2_160.0];
    let least = (high_s - low_s) / wanted as f64 / 3_600.0;
    let step = STEPS_H.into_iter().find(|step| *step >= least).unwrap_or_else(|| (least / 24.0).ceil() * 24.0);
    // Steps of several days are counted from the first midnight, not from that of 1970.
    let midnight = (low_s / 86_400.0).floor() * 86_400.0;
    multiples(low_s - midnight, high_s - midnight, step * 3_600.0).into_iter().map(|tick| midnight + tick).collect()
}

fn multiples(low: f64, high: f64, step: f64) -> Vec<f64> {
    if !(step > 0.0 && step.is_finite()) {
        return Vec::new();
    }
    let first = (low / step).ceil() as i64;
    (first..first + 1_000).map(|multiple| multiple as f64 * step).take_while(|tick| *tick <= high * 1.000_001).collect()
}

/// The least of `digits` times a power of ten that is at least `value`.
fn round_up(value: f64, digits: &[f64]) -> f64 {
    let power = 10_f64.powf(value.abs().max(f64::MIN_POSITIVE).log10().floor());
    digits.iter().map(|digit| digit * power).find(|step| *step >= value * 0.999_999).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_read_as_people_say_them() {
        let ticks = [
            Quantity::Microseconds.tick(0.5),
            Quantity::Microseconds.tick(1_500.0),
            Quantity::Microseconds.tick(2e6),
            Quantity::LogMicroseconds.tick(7.0),
            Quantity::Elapsed.tick(90.0),
            Quantity::Elapsed.tick(5_400.0),
            Quantity::PerSecond.tick(41_000.0),
            Quantity::PerSecond.tick(2_500_000.0),
            Quantity::Percent.tick(0.01),
            Quantity::Nines.tick(2.0),
            Quantity::Nines.tick(4.0),
        ];
        let wanted = [
            "500 ns",
            "1.5 ms",
            "2 s",
            "128 us",
            "1 min 30 s",
            "1 h 30 min",
            "41,000",
            "2.5 M",
            "0.01 %",
            "p99",
            "p99.99",
        ];
        assert_eq!(ticks, wanted);
    }

    #[test]
    fn ticks_are_round_and_lie_within() {
        let linear = Scale::from_zero([3.0, 870.0].into_iter()).unwrap();
        assert_eq!(linear.ticks(5), [0.0, 200.0, 400.0, 600.0, 800.0]);
        let log = Scale::logarithmic([0.0, 90.0, 48_000.0].into_iter()).unwrap();
        assert_eq!(log.ticks(5), [100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4]);
        let wide = Scale::logarithmic([1.0, 1e9].into_iter()).unwrap();
        assert!(wide.ticks(5).len() <= 6, "{:?}", wide.ticks(5));
        assert_eq!(time_ticks(0.0, 3_600.0, 6), [0.0, 600.0, 1_200.0, 1_800.0, 2_400.0, 3_000.0, 3_600.0]);
    }

    #[test]
    fn dates_stand_at_midnights_and_hours() {
        let monday = 1_793_577_600.0;
        let days = day_ticks(monday, monday + 10.0 * 86_400.0, 8);
        assert_eq!(days.len(), 6);
        assert_eq!(Quantity::Clock.tick(days[0]), "2026-11-02");
        let hours: Vec<String> =
            day_ticks(monday, monday + 7_200.0, 8).into_iter().map(|at| Quantity::Clock.tick(at)).collect();
        assert_eq!(hours, ["2026-11-02", "11-02 01:00", "11-02 02:00"]);
    }

    #[test]
    fn scales_of_nothing_are_absent_and_one_value_has_room() {
        assert_eq!(Scale::from_zero([0.0, f64::NAN].into_iter()), None);
        assert_eq!(Scale::logarithmic([0.0].into_iter()), None);
        let one = Scale::logarithmic([5.0].into_iter()).unwrap();
        assert!((0.1..0.9).contains(&one.share(5.0)), "{one:?}");
        assert_eq!((one.share(0.0), one.share(-1.0), one.share(1e9)), (0.0, 0.0, 1.0));
    }
}
