//! What loads cost each other: each of them alone and together.

use std::io::{self, Write};

use super::comparison::{ANSWER, value};
use super::grid::Grid;
use super::paper::{Paper, Terminal};
use super::text::NARROWEST;
use super::words::{NONE, UNKNOWN, duration, number};
use analysis::{ComparedFigure, Comparison, ERROR_RATE, Evidence, Interference, LoadBeside};
use model::units::percent;

const LEGEND: &str = "`worse`, `better`: a real difference beyond the threshold. `small`: real, but within it. `same`: none \
                      beyond it. `?`: not shown, and one beyond it could be hidden. `unknown`: nothing says how much the \
                      figures scatter. `!`: there is a warning about this load.";

/// Ratios from here on bound nothing that anybody asks about.
const MAX_RATIO: f64 = 11.0;

/// Writes what loads cost each other for a terminal of `width` columns.
///
/// # Errors
/// If `out` fails.
pub fn interference(out: &mut impl Write, found: &Interference, width: usize) -> io::Result<()> {
    let mut paper = Terminal { out, width: width.max(NARROWEST) };
    paper.remark(&found.sentence())?;
    paper.remark(&headline(found))?;
    write(&mut paper, found)
}

/// How it was measured.
pub(super) fn headline(found: &Interference) -> String {
    let rounds = match found.rounds.len() {
        1 => "1 round".to_owned(),
        count => format!("{count} rounds"),
    };
    let left_out = match found.left_out {
        0 => String::new(),
        1 => " 1 round that is not whole was left out.".to_owned(),
        count => format!(" {count} rounds that are not whole were left out."),
    };
    format!(
        "`{}`: {} loads, each alone and all together, in {rounds}.{left_out} A change matters beyond {} %.",
        found.group,
        found.loads.len(),
        percent(found.threshold)
    )
}

/// All parts in the order in which they are to be read.
pub(super) fn write(paper: &mut dyn Paper, found: &Interference) -> io::Result<()> {
    let mut grid = Grid::new(3, ["load", "command", "target"]);
    found.loads.iter().for_each(|load| {
        grid.push(vec![load.letter.clone(), load.command.clone(), load.target.clone()]);
    });
    paper.table("The loads", &grid)?;
    costs(paper, found)?;
    doubts(paper, found)?;
    rounds(paper, found)?;
    notes(paper, found)
}

fn costs(paper: &mut dyn Paper, found: &Interference) -> io::Result<()> {
    let mut grid = Grid::new(2, ["load", "figure", "alone", "together", "ratio (interval) is"]);
    for load in &found.loads {
        let mark = if load.doubts().is_empty() { "" } else { " !" };
        if let Some(asked) = load.asked_per_s() {
            let rate = |side: usize| number(mean(load.rates_per_s(side)));
            let figure = format!("operations/s of {} requested", number(Some(asked)));
            grid.push(vec![load.letter.clone(), figure, rate(0), rate(1), NONE.to_owned()]);
        }
        for ComparedFigure { measure, values, comparison } in load.figures() {
            let [alone, together] = values.map(|known| value(measure, known));
            let ratio = comparison.as_ref().map_or_else(|| UNKNOWN.to_owned(), |comparison| ratio(comparison, mark));
            grid.push(vec![load.letter.clone(), measure.to_string(), alone, together, ratio]);
        }
    }
    paper.table("What each load pays for its company", &grid)?;
    if grid.is_empty() {
        return Ok(());
    }
    let sure = percent(1.0 - ERROR_RATE);
    let sure = sure.trim_end_matches(".0");
    let evidence = |wanted: fn(&Evidence) -> bool| {
        let mut all = found.loads.iter().flat_map(LoadBeside::figures).filter_map(|figure| figure.comparison.as_ref());
        all.any(|comparison| wanted(&comparison.evidence))
    };
    if evidence(|evidence| matches!(evidence, Evidence::Repeats(..))) {
        paper.aside(&format!(
            "Figures are geometric means of the rounds. The intervals hold all true ratios together with {sure} % \
             confidence, and contain how one round differs from the next."
        ))?;
    }
    if evidence(|evidence| matches!(evidence, Evidence::Seconds(..))) {
        paper.aside(&format!(
            "The intervals hold all true ratios together with {sure} % confidence. They come from the seconds of too few \
             rounds, and do not know how one round differs from the next: use `--rounds 3` or more."
        ))?;
    }
    paper.aside(LEGEND)
}

/// Ratio, interval and answer are one cell, so that no fold comes between them.
fn ratio(comparison: &Comparison, mark: &str) -> String {
    let interval = match comparison.interval {
        None => String::new(),
        Some((_, high)) if 1.0 + high > MAX_RATIO => " (too scattered to bound)".to_owned(),
        Some((low, high)) => format!(" ({:.3} to {:.3})", 1.0 + low, 1.0 + high),
    };
    let answer = format!("{}{mark}", comparison.difference().word());
    format!("{:.3}{interval} {answer:<ANSWER$}", 1.0 + comparison.change)
}

/// Absent where any is.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values: Vec<f64> = values.collect::<Option<_>>()?;
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn doubts(paper: &mut dyn Paper, found: &Interference) -> io::Result<()> {
    if found.loads.iter().all(|load| load.doubts().is_empty()) {
        return Ok(());
    }
    paper.title("Why they may not be comparable")?;
    for load in &found.loads {
        load.doubts_in_words().into_iter().try_for_each(|(sentence, advice)| {
            paper.remark(&format!("warning: {sentence}"))?;
            advice.map_or(Ok(()), |advice| paper.remark(&format!("-> {advice}")))
        })?;
    }
    Ok(())
}

fn rounds(paper: &mut dyn Paper, found: &Interference) -> io::Result<()> {
    let header = ["load", "round", "operations/s alone", "together", "p99 alone", "together", "runs"];
    let mut grid = Grid::new(2, header);
    let time = |ns: Option<Option<u64>>| ns.flatten().map_or_else(|| UNKNOWN.to_owned(), |ns| duration(Some(ns)));
    for load in &found.loads {
        let [alone, together] = [0, 1].map(|side: usize| {
            (load.rates_per_s(side).collect::<Vec<_>>(), load.p99s_ns(side).collect::<Vec<_>>(), &load.ids[side])
        });
        for (place, round) in found.rounds.iter().enumerate() {
            let rate = |side: &(Vec<Option<f64>>, _, _)| number(side.0.get(place).copied().flatten());
            let id = |ids: &[String]| ids.get(place).cloned().unwrap_or_default();
            let row = [
                load.letter.clone(),
                round.to_string(),
                rate(&alone),
                rate(&together),
                time(alone.1.get(place).copied()),
                time(together.1.get(place).copied()),
                format!("{} {}", id(alone.2), id(together.2)),
            ];
            grid.push(row.to_vec());
        }
    }
    paper.table("Round by round", &grid)
}

fn notes(paper: &mut dyn Paper, found: &Interference) -> io::Result<()> {
    if found.loads.iter().all(|load| load.notes.is_empty()) {
        return Ok(());
    }
    paper.title("What the runs noted")?;
    for load in &found.loads {
        load.notes.iter().try_for_each(|note| paper.remark(&format!("{}: {note}", load.letter)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::sample;

    #[test]
    fn a_load_that_pays_stands_beside_one_that_does_not() {
        let mut runs = sample::beside::rounds(3, 0.5);
        runs.iter_mut().for_each(|run| run.notes = vec!["io_uring is not allowed: psync is used".to_owned()]);
        let found = Interference::of("20261120-103000", runs, 0.05).unwrap();
        let mut out = Vec::new();
        interference(&mut out, &found, 120).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap());
    }

    #[test]
    fn one_round_says_that_it_is_one_and_an_open_loop_what_was_asked() {
        let mut runs = sample::beside::rounds(1, 1.0);
        runs.iter_mut().for_each(|run| run.steps[0].load.rate_operations_per_s = Some(500.0));
        let found = Interference::of("20261120-103000", runs, 0.05).unwrap();
        let mut out = Vec::new();
        interference(&mut out, &found, 120).unwrap();
        let words = String::from_utf8(out).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("in 1 round.") && words.contains("use `--rounds 3` or more"), "{words}");
        assert!(words.contains("operations/s of 500 requested") && !words.contains("geometric"), "{words}");
    }
}
