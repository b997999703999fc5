//! Days beside each other, each with its hours upwards, by shades.

use maud::html;
use serde_json::json;

use super::{Across, Drawn, Frame, HEIGHT, Plot, Scale, WIDTH, draw};
use model::units::group_thousands;

/// Shades: each is a fifth of the largest value.
const SHADES: usize = 5;
const DAY_S: f64 = 86_400.0;

/// Hours of days.
#[derive(Debug, Clone)]
pub(in crate::html) struct Calendar {
    /// Title, words and vertical axis, which counts hours.
    pub(in crate::html) frame: Frame,
    /// The horizontal axis, in seconds since 1970.
    pub(in crate::html) across: Across,
    /// Day since 1970-01-01, hour of it, and value.
    pub(in crate::html) cells: Vec<(i64, u8, f64)>,
    /// What the values are.
    pub(in crate::html) unit: String,
}

impl Calendar {
    /// Draws it; `None` if no value is above zero.
    pub(in crate::html) fn draw(self) -> Option<Drawn> {
        let most = self.cells.iter().map(|(_, _, value)| *value).fold(0.0, f64::max);
        if most <= 0.0 {
            return None;
        }
        let scale = Scale::Linear { low: 0.0, high: 24.0 };
        let mut paths = vec![String::new(); SHADES];
        let mut days: std::collections::BTreeMap<i64, (u8, f64)> = std::collections::BTreeMap::new();
        for (day, hour, value) in &self.cells {
            let begin = *day as f64 * DAY_S;
            let sides = [self.across.share(begin), self.across.share(begin + DAY_S)];
            let edges = [scale.share(f64::from(*hour)), scale.share(f64::from(*hour) + 1.0)];
            if let Some(path) = paths.get_mut(shade(value / most)) {
                draw::rectangle(path, sides, edges);
            }
            let busiest = days.entry(*day).or_insert((*hour, *value));
            if *value > busiest.1 {
                *busiest = (*hour, *value);
            }
        }
        let unit = &self.unit;
        let words = |(day, (hour, value)): (&i64, &(u8, f64))| {
            let begin = *day as f64 * DAY_S;
            json!([begin, begin + DAY_S, format!("busiest from {hour:02}:00, with {} {unit}", group_thousands(*value))])
        };
        let columns: Vec<_> = days.iter().map(words).collect();
        let content = html! {
            @for (shade, path) in paths.iter().enumerate() { path.heat.(format!("h{shade}")) d=(path) {} }
        };
        let ticks: Vec<_> =
            self.across.ticks.iter().map(|x| (self.across.share(*x), self.across.quantity.tick(*x))).collect();
        let data = json!({
            "id": self.frame.id,
            "x": { "quantity": self.across.quantity, "low": self.across.range.0, "high": self.across.range.1 },
            "columns": columns,
        });
        let plot = Plot { scale, content, over: html! {} };
        let figure = self.frame.figure(&[], vec![plot], &ticks, &self.across.title);
        let label = |shade: usize| group_thousands(most * shade as f64 / SHADES as f64);
        let key = html! {
            p.heat-key {
                (unit) ": "
                @for shade in 0..SHADES {
                    span.swatch {
                        svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" aria-hidden="true" {
                            rect.heat.(format!("h{shade}")) width=(WIDTH) height=(HEIGHT) {}
                        }
                        "from " (label(shade))
                    }
                }
            }
        };
        Some(Drawn { figure: html! { (figure) (key) }, data })
    }
}

/// The shade of a share of the largest value.
fn shade(share: f64) -> usize {
    ((share * SHADES as f64).floor().max(0.0) as usize).min(SHADES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_are_even_fifths() {
        assert_eq!([0.0, 0.19, 0.2, 0.59, 0.99, 1.0].map(shade), [0, 0, 1, 2, 4, 4]);
    }
}
