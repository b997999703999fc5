//! Charts of figures by the names of the program that measured them.

use std::collections::BTreeMap;

use super::{Line, MAX_LINES, OverTime, Quantity, in_words};
use crate::html::chart::Drawn;

/// Charts, one for each layer and unit.
const MAX_CHARTS: usize = 8;

/// Layer and unit.
type Kind<'a> = (&'a str, &'a str);
/// Names with the sums of their figures.
type Names<'a> = Vec<(&'a str, f64)>;

impl OverTime<'_> {
    /// One chart for each layer and unit of an imported run's figures over time, those with the most figures first; of each the
    /// figures with the largest means.
    pub(in crate::html) fn reported(&self) -> Vec<Drawn> {
        let intervals = || self.run.steps.iter().flat_map(|step| &step.intervals);
        // Names with their sums: over all intervals, as the lines are drawn.
        let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
        for (name, value) in intervals().flat_map(|interval| &interval.reported) {
            *sums.entry(name).or_default() += value.abs();
        }
        let mut kinds: BTreeMap<Kind<'_>, Names<'_>> = BTreeMap::new();
        for figure in self.run.steps.iter().flat_map(|step| &step.reported) {
            if let Some(sum) = sums.remove(figure.name.as_str()) {
                kinds.entry((&figure.layer, &figure.unit)).or_default().push((&figure.name, sum));
            }
        }
        // What no step sums up has neither layer nor unit.
        kinds.entry(("", "")).or_default().extend(sums);
        let mut kinds: Vec<_> =
            kinds.into_iter().filter(|(_, names)| names.iter().any(|(_, sum)| *sum > 0.0)).collect();
        kinds.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
        let chart = |(number, (kind, mut names)): (usize, (Kind<'_>, Names<'_>))| {
            let (layer, unit) = kind;
            names.retain(|(_, sum)| *sum > 0.0);
            names.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
            let more = names.len().saturating_sub(MAX_LINES);
            let lines: Vec<Line> = names
                .iter()
                .take(MAX_LINES)
                .map(|(name, _)| self.timeline.line(name, |interval| interval.reported.get(*name).copied()))
                .collect();
            let quantity = if unit == "%" { Quantity::Percent } else { Quantity::Count };
            let words = in_words(&lines, |value| quantity.tick(value));
            let layer = if layer.is_empty() { "not reported" } else { layer };
            let left_out = if more > 0 { format!(" {more} smaller ones are not drawn.") } else { String::new() };
            let note = format!("Layer: {layer}. As {} reports, by its own names.{left_out}", self.run.tool.name);
            let unit = if unit.is_empty() { "value" } else { unit };
            let title = format!("As the source reports: {unit}, {layer}");
            self.lines(self.frame(&format!("reported-{number}"), &title, &note, (unit, quantity), words), lines)
        };
        kinds.into_iter().take(MAX_CHARTS).enumerate().filter_map(chart).collect()
    }
}
