//! The page of a comparison: the verdict first, then curves and histograms laid over each other, then every figure.

use std::borrow::Cow;
use std::io::{self, Write};

use maud::{Markup, html};
use serde_json::Value;

use super::chart::{Bars, Drawn, Lines};
use super::distribution::{Heights, Named, bars, percentiles};
use super::{Head, Kept, Sheets, for_script, load_line, marked, page};
use crate::comparison::{
    Distribution, compared_things, compared_times, distributions, headline, write_changes, write_grounds,
};
use crate::text::Detail;
use analysis::{Compared, NfsClients, Overall};
use model::record::Run;

/// Loads with charts of their own; the tables have all.
const MAX_LOADS: usize = 12;

/// Writes a comparison as one page. `runs` are those that were compared, in the same order, and `links` lead to their own
/// pages; there are none in a file.
///
/// # Errors
/// If `out` fails.
pub fn comparison(
    out: &mut dyn Write,
    compared: &Compared,
    runs: &[&Run],
    links: &[String],
    kept: &Kept<'_>,
) -> io::Result<()> {
    let (figures, data): (Vec<Markup>, Vec<Value>) =
        charts(compared, runs).into_iter().map(|drawn| (drawn.figure, drawn.data)).unzip();
    let clients = NfsClients::of(runs);
    let grounds = Sheets::of(|sheets| write_grounds(sheets, compared, Detail::Full));
    let changes = Sheets::of(|sheets| write_changes(sheets, compared, runs, Detail::Brief));
    let body = html! {
        article.run aria-labelledby="comparison" {
            h1 #comparison { "Comparison" }
            p.under-title { (marked(&headline(compared))) }
            @if let Some(clients) = &clients {
                p.opening.doubtful[clients.instead.is_some()] { (marked(&clients.sentence())) }
            }
            @for pair in &compared.pairs {
                @let is_worse = matches!(pair.overall(), Overall::Worse | Overall::Mixed);
                p.opening.doubtful[is_worse] { (marked(&compared.verdict(pair))) }
            }
            @if !links.is_empty() {
                p { "The runs: " @for (name, link) in compared.names.iter().zip(links) { a href=(link) { (name) } " " } }
            }
            section.grounds { (grounds) }
            @if !figures.is_empty() {
                section { h2 { "Laid over each other" } @for figure in &figures { (figure) } }
            }
            section.sheets { h2 { "In figures" } (changes) }
        }
        (for_script(&data))
    };
    out.write_all(page(&Head { title: &compared.names.join(" and "), kept }, &body).as_bytes())
}

/// The runs with their names.
pub(super) fn named<'a>(compared: &'a Compared, runs: &[&'a Run]) -> Vec<(&'a Run, &'a str)> {
    runs.iter().copied().zip(compared.names.iter().map(String::as_str)).collect()
}

fn charts(compared: &Compared, runs: &[&Run]) -> Vec<Drawn> {
    let named = named(compared, runs);
    let curves = [super::over_load(&named), load_line::overlay(&named)];
    let mut charts: Vec<Drawn> = curves.into_iter().flatten().filter_map(Lines::draw).collect();
    for (number, load) in distributions(compared, runs).iter().enumerate().take(MAX_LOADS) {
        let series = series(compared, load);
        charts.extend(histogram(number, load, runs, &series).draw());
        let title = format!("Percentiles at {}", load.load);
        charts.extend(percentiles(format!("percentiles-{number}"), &title, &note(load, runs), &series));
    }
    charts
}

/// Each run keeps its colour in every chart, also where it has nothing of a load.
fn series<'a>(compared: &Compared, load: &'a Distribution<'_>) -> Vec<Named<'a>> {
    let of_run = |(run, name): (usize, &String)| {
        let times = load.runs.iter().find(|(index, _)| *index == run).map(|(_, times)| Cow::Borrowed(times));
        Named { name: name.clone(), times: times.unwrap_or_default() }
    };
    compared.names.iter().enumerate().map(of_run).collect()
}

fn note(load: &Distribution<'_>, runs: &[&Run]) -> String {
    format!("{} at {}, in the measured windows.", compared_times(runs), load.load)
}

fn histogram(number: usize, load: &Distribution<'_>, runs: &[&Run], series: &[Named<'_>]) -> Bars {
    let (id, title) = (format!("histogram-{number}"), format!("Histogram at {}", load.load));
    bars(id, &title, &note(load, runs), compared_things(runs), Heights::Shares, series)
}

/// The histogram of the first load that the runs have in common.
pub(super) fn first_histogram(compared: &Compared, runs: &[&Run]) -> Option<Bars> {
    let loads = distributions(compared, runs);
    let load = loads.first()?;
    Some(histogram(0, load, runs, &series(compared, load)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::sample;

    fn page_of(runs: &[&Run]) -> String {
        let compared = Compared::of(runs, 0, 0.05).unwrap();
        let mut page = Vec::new();
        comparison(&mut page, &compared, runs, &[], &Kept::File).unwrap();
        String::from_utf8(page).unwrap()
    }

    #[test]
    fn both_runs_are_laid_over_each_other_and_the_verdict_comes_first() {
        let old = sample::sweep(20);
        let mut new = sample::sweep(30);
        new.id = "20261121-103000-slob".to_owned();
        new.name = "new </script><b>".to_owned();
        let page = page_of(&[&old, &new]);
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
        assert!(at("class=\"opening") < at("id=\"load-line\"") && at("id=\"load-line\"") < at("id=\"histogram-0\""));
        assert!(at("What differs in configuration") < at("id=\"load-line\""));
        assert!(!page.contains("</script><b>"), "a name became markup");
        assert_eq!(page.matches("</script>").count(), 2);
    }

    #[test]
    fn runs_without_a_load_in_common_have_no_charts_of_it() {
        let old = sample::sweep(20);
        let mut new = sample::sweep(20);
        new.id = "20261121-103000-slob".to_owned();
        new.steps.truncate(1);
        new.steps[0].load.sessions = Some(77);
        let page = page_of(&[&old, &new]);
        assert!(page.contains("Not compared: ") && !page.contains("id=\"histogram-0\""));
    }
}
