//! The page of loads beside each other: what each pays first, then its times alone and together, then every figure.

use std::borrow::Cow;
use std::io::{self, Write};

use maud::{Markup, html};
use serde_json::Value;

use super::chart::Drawn;
use super::distribution::{Heights, Named, bars, percentiles};
use super::sheets::{Sheets, marked};
use super::{Head, Kept, for_script, page};
use crate::interference::{headline, write};
use analysis::{Figures, Interference, LoadBeside};
use model::record::Histogram;

/// Writes what loads cost each other as one page.
///
/// # Errors
/// If `out` fails.
pub fn interference(out: &mut dyn Write, found: &Interference, kept: &Kept<'_>) -> io::Result<()> {
    let (figures, data): (Vec<Markup>, Vec<Value>) =
        found.loads.iter().flat_map(charts).map(|drawn| (drawn.figure, drawn.data)).unzip();
    let sheets = Sheets::of(|sheets| write(sheets, found));
    let is_worse = found.loads.iter().any(|load| load.compared.has_regression());
    let body = html! {
        article.run aria-labelledby="beside" {
            h1 #beside { "Loads beside each other" }
            p.under-title { (marked(&headline(found))) }
            p.opening.doubtful[is_worse] { (marked(&found.sentence())) }
            section.sheets { h2 { "In figures" } (sheets) }
            @if !figures.is_empty() {
                section { h2 { "Alone and together" } @for figure in &figures { (figure) } }
            }
        }
        (for_script(&data))
    };
    let title = format!("Loads beside each other, {}", found.group);
    out.write_all(page(&Head { title: &title, kept }, &body).as_bytes())
}

/// The response times of a load alone and together, over each other.
fn charts(load: &LoadBeside) -> Vec<Drawn> {
    let series: Vec<Named<'_>> = [("alone", 0), ("together", 1)]
        .map(|(name, side): (&str, usize)| {
            let mut all = Histogram::default();
            load.runs[side]
                .steps
                .iter()
                .filter_map(|step| Figures(step).response())
                .for_each(|times| all.merge(&times));
            Named { name: name.to_owned(), times: Cow::Owned(all) }
        })
        .into();
    if series.iter().any(|named| named.times.count() == 0) {
        return Vec::new();
    }
    let LoadBeside { letter, command, .. } = load;
    let (number, note) =
        (letter.to_lowercase(), format!("Response times of `{command}`, in the measured windows of all rounds."));
    let title = format!("Percentiles of {letter}");
    let curves = percentiles(format!("percentiles-{number}"), &title, &note, &series);
    let title = format!("Histogram of {letter}");
    let histogram = bars(format!("histogram-{number}"), &title, &note, "operations", Heights::Shares, &series);
    curves.into_iter().chain(histogram.draw()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::sample;

    #[test]
    fn what_each_pays_comes_first_and_every_load_has_its_charts() {
        let mut runs = sample::beside::rounds(3, 0.5);
        runs.iter_mut().for_each(|run| run.command = vec!["plimsoll".to_owned(), "</script><b>".to_owned()]);
        let found = Interference::of("20261120-103000", runs, 0.05).unwrap();
        let mut out = Vec::new();
        interference(&mut out, &found, &Kept::File).unwrap();
        let page = String::from_utf8(out).unwrap();
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
        assert!(
            at("class=\"opening") < at("What each load pays") && at("What each load pays") < at("id=\"histogram-a\"")
        );
        assert!(at("id=\"percentiles-a\"") < at("id=\"percentiles-b\""));
        assert!(!page.contains("</script><b>"), "a command became markup");
    }
}
