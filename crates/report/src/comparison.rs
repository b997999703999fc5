//! Runs side by side: what differs in configuration, why they may not be comparable, what changed, and what to make of it.

use model::record::{Histogram, Run, Workload};
use std::io::{self, Write};

use super::buckets::Columns;
use super::grid::Grid;
use super::paper::{Paper, Terminal};
use super::sections;
use super::text::{Detail, NARROWEST};
use super::words::{NONE, UNKNOWN, duration, number};
use analysis::{
    Bearing, BusiestDevice, Compared, ComparedFigure, ComparedLoad, Difference, Evidence, FigureUnit, Figures, Measure,
    NfsClients, Pair, SINGLE_BLOCK_READ, SettingDifference, is_on_servers, is_timed_from_sent, operations_are_requests,
    signed_percent, wait,
};
use model::units::{awr_count, percent};

const LEGEND: &str = "`worse`, `better`: a real difference beyond the threshold. `small`: real, but within it. `same`: none \
                      beyond it. `?`: not shown, and one beyond it could be hidden. `unknown`: nothing says how much the \
                      figures scatter. `!`: a doubt is about this load. `-`: the run has not this load.";

/// Room for an answer and the mark of a doubt, so that changes stand below each other.
pub(super) const ANSWER: usize = 8;

/// Figures of one answer that a brief comparison puts into a sentence each, the largest changes first.
const MAX_SENTENCES: usize = 6;

/// Every answer, in the order in which they are counted.
const ANSWERS: [Difference; 6] = [
    Difference::Worse,
    Difference::Better,
    Difference::RealButSmall,
    Difference::NoneThatMatters,
    Difference::NotShown,
    Difference::Unknown,
];

/// Writes a comparison for a terminal of `width` columns. `runs` are those that were compared, in the same order.
///
/// # Errors
/// If `out` fails.
pub fn comparison(
    out: &mut impl Write,
    compared: &Compared,
    runs: &[&Run],
    detail: Detail,
    width: usize,
) -> io::Result<()> {
    let mut paper = Terminal { out, width: width.max(NARROWEST) };
    paper.remark(&headline(compared))?;
    compared.pairs.iter().try_for_each(|pair| paper.remark(&compared.verdict(pair)))?;
    if let Some(clients) = NfsClients::of(runs) {
        paper.aside(&clients.sentence())?;
    }
    write(&mut paper, compared, runs, detail)
}

/// Which runs, and against which.
pub(super) fn headline(compared: &Compared) -> String {
    let quoted = |run: usize| format!("`{}`", compared.names[run]);
    let others: Vec<String> = compared.pairs.iter().map(|pair| quoted(pair.run)).collect();
    let what_matters = format!("A change matters beyond {} %.", percent(compared.threshold));
    format!("{} against {}, the baseline. {what_matters}", others.join(", "), quoted(compared.baseline))
}

/// All parts in the order in which they are to be read.
pub(super) fn write(paper: &mut dyn Paper, compared: &Compared, runs: &[&Run], detail: Detail) -> io::Result<()> {
    write_grounds(paper, compared, detail)?;
    write_changes(paper, compared, runs, detail)
}

/// What differs in configuration, and why the runs may not be comparable.
pub(super) fn write_grounds(paper: &mut dyn Paper, compared: &Compared, detail: Detail) -> io::Result<()> {
    settings(paper, compared, detail)?;
    doubts(paper, compared)
}

/// What changed.
pub(super) fn write_changes(
    paper: &mut dyn Paper,
    compared: &Compared,
    runs: &[&Run],
    detail: Detail,
) -> io::Result<()> {
    figures(paper, compared, runs)?;
    operation_time(paper, compared, runs)?;
    answers(paper, compared, detail)?;
    histograms(paper, compared, runs)
}

fn settings(paper: &mut dyn Paper, compared: &Compared, detail: Detail) -> io::Result<()> {
    paper.title("What differs in configuration")?;
    let mut is_first = true;
    for (bearing, caption) in [
        (Bearing::Work, "What was measured:"),
        (Bearing::Varied, "Load, target, machine and tags:"),
        (Bearing::Incidental, "Incidental:"),
    ] {
        if bearing == Bearing::Incidental && detail == Detail::Brief {
            continue;
        }
        let header = [""].into_iter().chain(compared.names.iter().map(String::as_str));
        let mut grid = Grid::new(1, header);
        let is_reported = |setting: &&SettingDifference| detail == Detail::Full || !is_reported_once(setting);
        for setting in compared.settings.iter().filter(|setting| setting.bearing == bearing).filter(is_reported) {
            let values = setting.values.iter().map(|value| value.clone().unwrap_or_else(|| UNKNOWN.to_owned()));
            grid.push([setting.name.clone()].into_iter().chain(values).collect());
        }
        if grid.is_empty() {
            continue;
        }
        if is_first {
            paper.remark(caption)?;
            paper.grid(&grid)?;
        } else {
            paper.next_grid(caption, &grid)?;
        }
        is_first = false;
    }
    let once = compared.settings.iter().filter(|setting| is_reported_once(setting));
    let once: Vec<&str> = once.map(|setting| setting.name.as_str()).collect();
    if detail == Detail::Brief && !once.is_empty() {
        let remark =
            format!("Reported of one run alone, so that nothing says whether they differ: {}.", once.join(", "));
        if is_first {
            paper.remark(&remark)?
        } else {
            paper.aside(&remark)?
        }
        is_first = false;
    }
    let incidental = compared.settings.iter().filter(|setting| setting.bearing == Bearing::Incidental);
    let incidental: Vec<&str> = incidental.map(|setting| setting.name.as_str()).collect();
    match (is_first, incidental.is_empty() || detail == Detail::Full) {
        (true, true) => paper.remark("Nothing that is recorded."),
        (true, false) => paper.remark(&format!("Nothing but what is incidental: {}.", incidental.join(", "))),
        (false, false) => paper.aside(&format!("Incidental: {}.", incidental.join(", "))),
        (false, true) => Ok(()),
    }
}

/// Whether one run reports a setting and the others do not, as a server its own: that is no difference. What the user set is one.
fn is_reported_once(setting: &SettingDifference) -> bool {
    let is_fact = setting.bearing == Bearing::Varied && !setting.name.starts_with("tag ");
    let is_parameter = setting.name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    is_fact && !is_parameter && setting.values.iter().flatten().count() == 1
}

fn doubts(paper: &mut dyn Paper, compared: &Compared) -> io::Result<()> {
    if compared.pairs.iter().all(|pair| pair.doubts.is_empty()) {
        return Ok(());
    }
    paper.title("Why they may not be comparable")?;
    let mut sentences = Vec::new();
    for pair in &compared.pairs {
        for doubt in &pair.doubts {
            let sentence = doubt.sentence(compared.names_of(pair));
            // A doubt about the baseline is one of every pair.
            if sentences.contains(&sentence) {
                continue;
            }
            paper.remark(&format!("warning: {sentence}"))?;
            if let Some(advice) = doubt.advice(pair.grounds) {
                paper.remark(&format!("-> {advice}"))?;
            }
            sentences.push(sentence);
        }
    }
    Ok(())
}

/// Loads of the baseline that any run shares, each with what every pair has of it.
fn shared(compared: &Compared) -> Vec<(&ComparedLoad, Vec<Option<&ComparedLoad>>)> {
    let mut found: Vec<&ComparedLoad> = Vec::new();
    let is_same = |a: &ComparedLoad, b: &ComparedLoad| a.steps[0] == b.steps[0];
    for load in compared.pairs.iter().flat_map(|pair| &pair.loads) {
        if !found.iter().any(|known| is_same(known, load)) {
            found.push(load);
        }
    }
    found.sort_by_key(|load| load.steps[0].clone());
    let of_pairs = |load: &ComparedLoad| {
        compared.pairs.iter().map(|pair| pair.loads.iter().find(|other| is_same(load, other))).collect()
    };
    found.into_iter().map(|load| (load, of_pairs(load))).collect()
}

fn figures(paper: &mut dyn Paper, compared: &Compared, runs: &[&Run]) -> io::Result<()> {
    let mut header = vec!["load".to_owned(), "figure".to_owned(), compared.names[compared.baseline].clone()];
    for pair in &compared.pairs {
        header.extend([compared.names[pair.run].clone(), "change (interval) is".to_owned()]);
    }
    let mut grid = Grid::new(2, header);
    for (load, of_pairs) in shared(compared) {
        let mut measures: Vec<&Measure> = Vec::new();
        for figure in of_pairs.iter().flatten().flat_map(|load| &load.figures) {
            if !measures.contains(&&figure.measure) {
                measures.push(&figure.measure);
            }
        }
        for measure in measures {
            let of_pair = |load: &Option<&'_ ComparedLoad>| -> Option<ComparedFigure> {
                load.and_then(|load| load.figures.iter().find(|figure| figure.measure == *measure).cloned())
            };
            let figures: Vec<Option<ComparedFigure>> = of_pairs.iter().map(of_pair).collect();
            let baseline = figures.iter().flatten().find_map(|figure| figure.values[0]);
            let mut row = vec![load.name.clone(), measure.to_string(), value(measure, baseline)];
            for (figure, load) in figures.iter().zip(&of_pairs) {
                row.extend(cells(figure.as_ref(), load.is_some_and(|load| load.is_doubtful)));
            }
            grid.push(row);
        }
    }
    paper.table("Side by side", &grid)?;
    for pair in &compared.pairs {
        let sides = compared.names_of(pair).into_iter().zip(&pair.only).filter(|(_, loads)| !loads.is_empty());
        let words: Vec<String> = sides.map(|(name, loads)| format!("only `{name}` has {}", loads.join(", "))).collect();
        if !words.is_empty() {
            paper.aside(&format!("Not compared: {}.", words.join("; ")))?;
        }
    }
    if grid.is_empty() {
        return Ok(());
    }
    let busiest = |(run, name): (&&Run, &String)| {
        let device = BusiestDevice::of(&run.steps).filter(|_| run.workload() == Workload::Host)?;
        Some(format!("{} in `{name}`", device.name))
    };
    let busiest: Vec<String> = runs.iter().zip(&compared.names).filter_map(busiest).collect();
    if !busiest.is_empty() {
        paper.aside(&format!("The busiest device is {}.", busiest.join(", ")))?;
    }
    let is_of_repeats =
        |figure: &ComparedFigure| figure.comparison.is_some_and(|it| matches!(it.evidence, Evidence::Repeats(..)));
    if compared.pairs.iter().flat_map(|pair| &pair.loads).flat_map(|load| &load.figures).any(is_of_repeats) {
        paper.aside("Of a load that was measured several times a figure is the geometric mean of all.")?;
    }
    if let Some(confidence) = compared.confidence() {
        paper.aside(&confidence)?;
    }
    paper.aside(LEGEND)
}

/// Where an operation's time went on each side, where one of them is a server: why one is slower than the other.
fn operation_time(paper: &mut dyn Paper, compared: &Compared, runs: &[&Run]) -> io::Result<()> {
    if !runs.iter().any(|run| is_on_servers(run)) {
        return Ok(());
    }
    let mut rows = Vec::new();
    for (load, of_pairs) in shared(compared) {
        let others = compared.pairs.iter().zip(of_pairs).filter_map(|(pair, load)| Some((pair.run, 1, load?)));
        for (run, side, of_run) in [(compared.baseline, 0, load)].into_iter().chain(others) {
            let names = vec![load.name.clone(), compared.names[run].clone()];
            rows.extend(of_run.steps(runs[run], side).map(|step| (names.clone(), runs[run], step)));
        }
    }
    sections::write_operation_time(paper, &["load", "run"], rows.into_iter())
}

pub(super) fn value(measure: &Measure, value: Option<f64>) -> String {
    match value {
        None => UNKNOWN.to_owned(),
        Some(ns) if measure.unit() == FigureUnit::Nanoseconds => duration(Some(ns.round() as u64)),
        value => number(value),
    }
}

/// Value and change of one run. Change, interval and answer are one cell, so that no fold comes between them.
fn cells(figure: Option<&ComparedFigure>, is_doubtful: bool) -> [String; 2] {
    let Some(figure) = figure else { return [NONE.to_owned(), String::new()] };
    let shown = value(&figure.measure, figure.values[1]);
    let Some(comparison) = figure.comparison else { return [shown, UNKNOWN.to_owned()] };
    let interval = comparison.interval_words().map_or(String::new(), |words| format!(" ({words})"));
    let answer = format!("{}{}", comparison.difference().word(), if is_doubtful { " !" } else { "" });
    [shown, format!("{}{interval} {answer:<ANSWER$}", signed_percent(comparison.change))]
}

fn answers(paper: &mut dyn Paper, compared: &Compared, detail: Detail) -> io::Result<()> {
    paper.title("Is it real, and does it matter?")?;
    for (index, pair) in compared.pairs.iter().enumerate() {
        if index > 0 {
            let [baseline, other] = compared.names_of(pair);
            paper.aside(&format!("`{other}` against `{baseline}`:"))?;
        }
        let mut advice: Vec<String> = Vec::new();
        for answer in ANSWERS {
            let is_reported = match (detail, answer) {
                (Detail::Full, _) => usize::MAX,
                (Detail::Brief, Difference::Worse | Difference::Better) => MAX_SENTENCES,
                (Detail::Brief, _) => 0,
            };
            for (place, (load, measure, comparison)) in pair.with_answer(answer).into_iter().enumerate() {
                let what = format!("{measure} at {}", load.name);
                if place < is_reported {
                    paper.remark(&format!("- {}", comparison.sentence(&what, compared.names_of(pair))))?;
                }
                advice.extend(
                    comparison
                        .advice(compared.names_of(pair), pair.grounds)
                        .filter(|reported| !advice.contains(reported)),
                );
            }
        }
        if detail == Detail::Brief {
            let more = [Difference::Worse, Difference::Better].iter().any(|answer| pair.count(*answer) > MAX_SENTENCES);
            let where_all = if more { " All of them in sentences: `--full`." } else { "" };
            paper.remark(&format!("{}{where_all}", counts(pair)))?;
        }
        advice.iter().try_for_each(|advice| paper.remark(&format!("-> {advice}")))?;
    }
    Ok(())
}

/// How many figures have each answer, of those that have any.
fn counts(pair: &Pair) -> String {
    let counted = |answer: &Difference| (pair.count(*answer), answer.word());
    let words: Vec<String> = ANSWERS
        .iter()
        .map(counted)
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    if words.is_empty() { "No figure was compared.".to_owned() } else { format!("Figures: {}.", words.join(", ")) }
}

/// What a load took in each run that has it.
pub(super) struct Distribution<'a> {
    /// The load in words.
    pub(super) load: &'a str,
    /// Index of each run, and its times.
    pub(super) runs: Vec<(usize, Histogram)>,
}

/// What the times of [`distributions`] are.
pub(super) fn compared_times(runs: &[&Run]) -> &'static str {
    if is_by_response(runs) && runs.iter().all(|run| is_timed_from_sent(run)) {
        "Times from sent to finished"
    } else if is_by_response(runs) {
        "Response times"
    } else {
        "Single-block reads (db file sequential read)"
    }
}

/// What is counted in them.
pub(super) fn compared_things(runs: &[&Run]) -> &'static str {
    if is_by_response(runs) { "operations" } else { "reads" }
}

fn is_by_response(runs: &[&Run]) -> bool {
    runs.iter().any(|run| operations_are_requests(run) || is_on_servers(run))
}

/// The times by which the runs are best laid over each other, for each load that any two of them share.
pub(super) fn distributions<'a>(compared: &'a Compared, runs: &[&Run]) -> Vec<Distribution<'a>> {
    let by_response = is_by_response(runs);
    let times = |load: &ComparedLoad, run: usize, side: usize| {
        let mut all = Histogram::default();
        for step in load.steps(runs[run], side) {
            if by_response {
                Figures(step).response().iter().for_each(|times| all.merge(times));
            } else {
                wait(step, SINGLE_BLOCK_READ).iter().for_each(|wait| all.merge(&wait.waits));
            }
        }
        (all.count() > 0).then_some((run, all))
    };
    let of_load = |(load, of_pairs): (&'a ComparedLoad, Vec<Option<&'a ComparedLoad>>)| {
        let others = compared.pairs.iter().zip(of_pairs);
        let others = others.filter_map(|(pair, load)| times(load?, pair.run, 1));
        Distribution { load: &load.name, runs: times(load, compared.baseline, 0).into_iter().chain(others).collect() }
    };
    shared(compared).into_iter().map(of_load).collect()
}

fn histograms(paper: &mut dyn Paper, compared: &Compared, runs: &[&Run]) -> io::Result<()> {
    let loads = distributions(compared, runs);
    let rows = || loads.iter().flat_map(|load| load.runs.iter().map(move |(run, times)| (load.load, *run, times)));
    let columns = Columns::covering(rows().map(|(.., times)| times));
    let fixed = ["load", "run", "count"].map(str::to_owned);
    let mut grid = Grid::new(2, fixed.into_iter().chain(columns.headings()));
    for (load, run, times) in rows() {
        let fixed = [load.to_owned(), compared.names[run].clone(), awr_count(times.count() as f64)];
        grid.push(fixed.into_iter().chain(columns.cells(times)).collect());
    }
    paper.table(&format!("{}, in % of the count", compared_times(runs)), &grid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::sample;

    fn rendered(runs: &[&Run], detail: Detail, width: usize) -> String {
        let compared = Compared::of(runs, 0, 0.05).unwrap();
        let mut out = Vec::new();
        comparison(&mut out, &compared, runs, detail, width).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Two sweeps, the second on a slower disk.
    fn sweeps() -> [Run; 2] {
        let old = sample::sweep(20);
        let levels = [(1, 80, 420), (2, 150, 450), (4, 250, 560), (64, 640, 4_900)];
        let mut new = sample::run(&levels.map(|(sessions, operations_per_s, us)| sample::Level {
            sessions,
            operations_per_s,
            read_ns: us * 1_000,
            seconds: 20,
            update_pct: 0,
        }));
        new.id = "20261121-103000-slob".to_owned();
        new.name = "p20_d8s".to_owned();
        new.seed = Some(43);
        new.tags.insert("disk".to_owned(), "p20".to_owned());
        [old, new]
    }

    #[test]
    fn two_sweeps_in_brief() {
        let [old, new] = sweeps();
        insta::assert_snapshot!(rendered(&[&old, &new], Detail::Brief, 120));
    }

    #[test]
    fn three_runs_in_full_on_a_narrow_terminal() {
        let [old, new] = sweeps();
        let mut third = sample::updates(20);
        third.name = "updates".to_owned();
        insta::assert_snapshot!(rendered(&[&old, &new, &third], Detail::Full, 80));
    }

    #[test]
    fn imported_runs_are_reported_without_intervals() {
        let old = sample::imported();
        let mut new = old.clone();
        new.name = "after the move".to_owned();
        let text = rendered(&[&old, &new], Detail::Brief, 100);
        assert!(text.contains("Nothing that is recorded."), "{text}");
        assert!(text.contains("unknown") && !text.contains("confidence"), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("-> Import three results or more of each"), "{text}");
        assert!(
            !words.contains("three runs or more") && !words.contains("ten seconds"),
            "nobody makes them again: {text}"
        );
    }

    #[test]
    fn a_server_beside_the_engine_shows_where_an_operations_time_went() {
        let server = sample::servers::private_cluster();
        let levels = [(4, 300, 700), (8, 520, 800), (16, 800, 900)];
        let engine = sample::run(&levels.map(|(sessions, operations_per_s, us)| sample::Level {
            sessions,
            operations_per_s,
            read_ns: us * 1_000,
            seconds: 60,
            update_pct: 20,
        }));
        let brief = rendered(&[&engine, &server], Detail::Brief, 140);
        let table = brief.split("Where the time of one operation went").nth(1).unwrap();
        let rows: Vec<&str> = table.lines().skip(2).take(7).collect();
        assert!(rows[0].contains("reads") && rows[0].contains("CPU") && rows[0].ends_with("rest"), "{brief}");
        let both = |load: &str| rows.iter().filter(|row| row.starts_with(load)).count();
        assert_eq!(["4 sessions", "8 sessions", "16 sessions"].map(both), [2; 3], "{brief}");
        // What only the server has is no difference, and what differs is.
        assert!(brief.contains("Reported of one run alone") && brief.contains("setting.shared_buffers"), "{brief}");
        assert!(!brief.contains("\nsetting.shared_buffers ") && brief.contains("\ntarget "), "{brief}");
        let full = rendered(&[&engine, &server], Detail::Full, 140);
        assert!(full.contains("\nsetting.shared_buffers "), "{full}");
        let [old, new] = sweeps();
        assert!(!rendered(&[&old, &new], Detail::Brief, 140).contains("Where the time of one operation went"));
    }
}
