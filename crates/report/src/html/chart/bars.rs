//! Bars side by side over named places, such as the buckets of a wait histogram.

use maud::html;
use serde_json::json;

use super::{Drawn, Frame, Plot, Scale, draw};

/// Share of a place that its bars take; the rest keeps it apart from the next.
const FILLED: f64 = 0.84;
/// Of labels below the chart, so many fit where the page is not very narrow.
const MAX_LABELS: usize = 18;

/// The bars of one series: one value a place, absent where nothing is known or there is none.
#[derive(Debug, Clone)]
pub(in crate::html) struct Group {
    /// What it is, in the legend and the readout.
    pub(in crate::html) name: String,
    /// One value a place.
    pub(in crate::html) values: Vec<Option<f64>>,
    /// The same in words, for the readout.
    pub(in crate::html) words: Vec<String>,
}

/// A chart of bars.
#[derive(Debug, Clone)]
pub(in crate::html) struct Bars {
    /// Title, words and vertical axis.
    pub(in crate::html) frame: Frame,
    /// What the places are.
    pub(in crate::html) x_title: String,
    /// Their names.
    pub(in crate::html) places: Vec<String>,
    /// One group of bars for each series.
    pub(in crate::html) groups: Vec<Group>,
}

impl Bars {
    /// Draws it; `None` if no bar has a height.
    pub(in crate::html) fn draw(self) -> Option<Drawn> {
        let values = || self.groups.iter().flat_map(|group| group.values.iter().flatten().copied());
        let linear = Scale::from_zero(values())?;
        let plots = [Some(linear), logarithmic(values())].into_iter().flatten().map(|scale| self.plot(scale)).collect();
        let names: Vec<&str> = self.groups.iter().map(|group| group.name.as_str()).collect();
        let count = self.places.len() as f64;
        let every = self.places.len().div_ceil(MAX_LABELS).max(1);
        let labelled = self.places.iter().enumerate().filter(|(place, _)| place % every == 0);
        let ticks = labelled.map(|(place, name)| ((place as f64 + 0.5) / count, name.clone()));
        let series: Vec<_> =
            self.groups.iter().map(|group| json!({ "name": group.name, "words": group.words })).collect();
        let data = json!({ "id": self.frame.id, "places": self.places, "series": series });
        let figure = self.frame.figure(&names, plots, &ticks.collect::<Vec<_>>(), &self.x_title);
        Some(Drawn { figure, data })
    }

    fn plot(&self, scale: Scale) -> Plot {
        let (places, groups) = (self.places.len() as f64, self.groups.len() as f64);
        let width = FILLED / places / groups;
        let path = |series: usize, group: &Group| {
            let mut path = String::new();
            for (place, value) in group.values.iter().enumerate() {
                let Some(value) = value.filter(|value| *value > 0.0) else { continue };
                let left = (place as f64 + (1.0 - FILLED) / 2.0) / places + series as f64 * width;
                draw::rectangle(&mut path, [left, left + width], [0.0, scale.share(value)]);
            }
            path
        };
        let content = html! {
            (draw::grid(&scale))
            @for (series, group) in self.groups.iter().enumerate() {
                g.series.(draw::colour(series)) data-series=(series) { path.bars d=(path(series, group)) {} }
            }
        };
        Plot { scale, content, over: html! {} }
    }
}

/// From below the least to above the largest, so that a single wait is still seen beside a million.
fn logarithmic(values: impl Iterator<Item = f64>) -> Option<Scale> {
    match Scale::logarithmic(values)? {
        Scale::Log { low, high } => Some(Scale::Log { low: low / 2.0, high }),
        linear => Some(linear),
    }
}
