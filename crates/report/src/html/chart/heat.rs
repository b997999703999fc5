//! A heat map: how many of something in each cell of time and duration, by shades.

use maud::html;
use serde_json::json;

use super::{Across, Band, Drawn, Frame, HEIGHT, Plot, Quantity, Scale, WIDTH, draw};

/// Shades: each is a tenfold share of the one before, so that one wait in ten thousand is still seen.
const SHADES: usize = 5;

/// A heat map over time.
#[derive(Debug, Clone)]
pub(in crate::html) struct Heat {
    /// Title, words and vertical axis, which is logarithmic in microseconds.
    pub(in crate::html) frame: Frame,
    /// The horizontal axis.
    pub(in crate::html) across: Across,
    /// Columns: where each begins and ends, and the share of what happened in it by row, 0 to 1.
    pub(in crate::html) columns: Vec<((f64, f64), Vec<f64>)>,
    /// Binary logarithm of the microseconds at the lower edge of the first row, and of the height of each.
    pub(in crate::html) rows: (f64, f64),
    /// Named stretches.
    pub(in crate::html) bands: Vec<Band>,
}

impl Heat {
    /// Draws it; `None` if nothing happened.
    pub(in crate::html) fn draw(self) -> Option<Drawn> {
        let row_count = self.columns.iter().map(|(_, shares)| shares.len()).max().filter(|rows| *rows > 0)?;
        let (lowest, height) = self.rows;
        let highest = lowest + height * row_count as f64;
        let scale = Scale::Linear { low: lowest, high: highest };
        let mut paths = vec![String::new(); SHADES];
        let mut words = Vec::new();
        for ((from, to), shares) in &self.columns {
            let sides = [self.across.share(*from), self.across.share(*to)];
            // Cells of one shade that lie on each other are one rectangle.
            let mut row = 0;
            while row < shares.len() {
                let shade = shade(shares[row]);
                let end =
                    (row + 1..shares.len()).find(|next| self::shade(shares[*next]) != shade).unwrap_or(shares.len());
                if let Some(shade) = shade {
                    let edge = |row: usize| scale.share(lowest + height * row as f64);
                    draw::rectangle(&mut paths[shade], sides, [edge(row), edge(end)]);
                }
                row = end;
            }
            words.push(json!([draw::significant(*from, 5), draw::significant(*to, 5), in_words(shares, self.rows)]));
        }
        let log = Scale::Log { low: lowest.exp2(), high: highest.exp2() };
        let content = html! {
            @for (shade, path) in paths.iter().enumerate() {
                path.heat.(format!("h{shade}")) d=(path) {}
            }
            @for band in &self.bands { (draw::vertical("edge", self.across.share(band.range.0))) }
        };
        let over = html! {
            @for band in &self.bands {
                @let (left, right) = (self.across.share(band.range.0), self.across.share(band.range.1));
                span.band style=(format!("left:{:.2}%;width:{:.2}%", left * 100.0, (right - left) * 100.0)) { (band.name) }
            }
        };
        let ticks: Vec<_> =
            self.across.ticks.iter().map(|x| (self.across.share(*x), self.across.quantity.tick(*x))).collect();
        let data = json!({
            "id": self.frame.id,
            "x": { "quantity": self.across.quantity, "low": self.across.range.0, "high": self.across.range.1 },
            "columns": words,
        });
        let figure = self.frame.figure(&[], vec![Plot { scale: log, content, over }], &ticks, &self.across.title);
        let figure = html! { (figure) (key()) };
        Some(Drawn { figure, data })
    }
}

/// The shade of a share, darkest for the largest; none for nothing.
fn shade(share: f64) -> Option<usize> {
    (share > 0.0).then(|| (share.log10() + SHADES as f64).floor().clamp(0.0, SHADES as f64 - 1.0) as usize)
}

/// Where most of a column lies, and how far it reaches.
fn in_words(shares: &[f64], (lowest, height): (f64, f64)) -> String {
    let edge = |row: usize| Quantity::LogMicroseconds.tick(lowest + height * row as f64);
    let Some(most) =
        (0..shares.len()).max_by(|a, b| shares[*a].total_cmp(&shares[*b])).filter(|row| shares[*row] > 0.0)
    else {
        return "nothing".to_owned();
    };
    let longest = shares.iter().rposition(|share| *share > 0.0).unwrap_or(most);
    format!(
        "{:.0} % within {} to {}, longest below {}",
        shares[most] * 100.0,
        edge(most),
        edge(most + 1),
        edge(longest + 1)
    )
}

/// What the shades mean.
fn key() -> maud::Markup {
    let label = |shade: usize| match shade {
        0 => "less than 0.01 %".to_owned(),
        shade => format!("from {} %", 10_f64.powi(shade as i32 - SHADES as i32 + 2)),
    };
    html! {
        p.heat-key {
            "Share of each column: "
            @for shade in 0..SHADES {
                span.swatch {
                    svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" aria-hidden="true" {
                        rect.heat.(format!("h{shade}")) width=(WIDTH) height=(HEIGHT) {}
                    }
                    (label(shade))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shade_is_ten_times_the_one_before() {
        assert_eq!(shade(0.0), None);
        let shades: Vec<_> = [1e-9, 1e-5, 2e-4, 2e-3, 0.02, 0.2, 1.0].into_iter().filter_map(shade).collect();
        assert_eq!(shades, [0, 0, 1, 2, 3, 4, 4]);
        let markup = key().into_string();
        assert!(markup.contains("from 10 %") && markup.contains("from 0.01 %"), "{markup}");
    }

    #[test]
    fn a_column_is_reported_by_its_most_and_its_longest() {
        let words = in_words(&[0.0, 0.9, 0.0, 0.1], (7.0, 1.0));
        assert_eq!(words, "90 % within 256 us to 512 us, longest below 2.05 ms");
    }
}
