//! Histories: how often one without a change is called changed, and how soon a change is found, on made-up noise and on that of real runs.

use analysis::history::level_changes;
use serde_json::Value;

use crate::{Bench, Failure, figure, verdict};

/// Runs of a history without a change.
const RUNS: usize = 100;
/// Histories that are made up for each figure.
const HISTORIES: u64 = 2_000;
/// Runs before a planted change, and from it on.
const BEFORE: usize = 40;
const AFTER: usize = 5;
/// Deviations of the changes that are planted into made-up histories.
const STEPS: [f64; 3] = [3.0, 4.0, 5.0];
/// What is taken away from real figures.
const PLANTED: f64 = 0.03;

/// A generator by Steele, Lea and Flood (2014), which gives the same numbers each time.
struct Chance(u64);

impl Chance {
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.share()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.share()).cos()
    }

    /// Figures with a deviation of 1 %, each of which has `correlation` in common with the next.
    fn figures(&mut self, runs: usize, correlation: f64) -> Vec<f64> {
        let mut value = self.normal();
        let mut next = || {
            let now = value;
            value = correlation * value + (1.0 - correlation * correlation).sqrt() * self.normal();
            (0.01 * now).exp()
        };
        (0..runs).map(|_| next()).collect()
    }
}

/// Whether a change at `at` is found in `figures`, which end with the last run that counts.
fn finds(figures: &[f64], at: usize) -> bool {
    level_changes(figures).iter().any(|(found, _)| found.abs_diff(at) <= 2)
}

impl Bench {
    /// Both rates on noise of known correlation.
    pub(crate) fn made_up_histories(&self) -> Result<(), Failure> {
        for correlation in [0.0, 0.3, 0.5, 0.7] {
            let mut chance = Chance(1);
            let alarms =
                (0..HISTORIES).filter(|_| !level_changes(&chance.figures(RUNS, correlation)).is_empty()).count();
            let share = 100.0 * alarms as f64 / HISTORIES as f64;
            figure(&format!(
                "| histories of {RUNS} runs without a change, neighbours correlated by {correlation}, called changed, % \
                 | {share:.2} | - | - | at most 1 | {} |",
                verdict(share <= 1.0)
            ));
        }
        for deviations in STEPS {
            let mut chance = Chance(2);
            let found = (0..HISTORIES).filter(|_| {
                let mut figures = chance.figures(BEFORE + AFTER, 0.0);
                figures.iter_mut().skip(BEFORE).for_each(|figure| *figure *= (-0.01 * deviations).exp());
                finds(&figures, BEFORE)
            });
            let share = 100.0 * found.count() as f64 / HISTORIES as f64;
            figure(&format!(
                "| steps of {deviations} deviations after {BEFORE} runs, found within {AFTER}, % | {share:.0} | - | - | - | |"
            ));
        }
        Ok(())
    }

    /// Both on the figures of real runs of two loads here, of the disk and of the processors, with a step planted into them.
    pub(crate) fn real_history(&self) -> Result<(), Failure> {
        let path = self.raw.display().to_string();
        let target = format!("dir:{}", self.runs.join("data-of-history").display());
        self.plimsoll_text(&["slob", "setup", "-s", "1", "SCALE=64M", "--target", &target])?;
        let disk = "io run --size 1G --pattern randread --depth 8 --duration 2 --warmup 1 --path";
        let memory = "slob run -s 1 -t 1 UPDATE_PCT=0 RUN_TIME=2 --warmup 1s --cache 256M --target";
        self.history_of("reads of the disk", disk, &path)?;
        self.history_of("blocks in memory", memory, &target)
    }

    fn history_of(&self, what: &str, words: &str, place: &str) -> Result<(), Failure> {
        let runs = self.runs.join(what.replace(' ', "-"));
        let folder = runs.display().to_string();
        for _ in 0..RUNS {
            let words = words.split(' ').chain([place, "--runs", &folder, "--quiet"]);
            self.plimsoll_text(&words.collect::<Vec<_>>())?;
        }
        let output = std::process::Command::new(&self.program)
            .args(["compare", "--history", "--json", "--runs", &folder])
            .output()?;
        let document: Value = serde_json::from_slice(&output.stdout)?;
        let series = document["histories"][0]["series"].as_array().ok_or("there is no history")?;
        for one in series {
            let name = one["figure"].as_str().unwrap_or("?");
            let points = one["points"].as_array().ok_or("a series has no points")?;
            let figures: Vec<f64> = points.iter().filter_map(|point| point["value"].as_f64()).collect();
            let logs: Vec<f64> = figures.iter().map(|figure| figure.ln()).collect();
            let mean = logs.iter().sum::<f64>() / logs.len() as f64;
            let squares = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>();
            let products = logs.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>();
            let deviation = (squares / (logs.len() as f64 - 1.0)).sqrt();
            figure(&format!(
                "| {what}, {name} of {RUNS} runs: deviation of {:.2} %, neighbours correlated by {:.2}, changes found | {} | - | - | 0 | {} |",
                100.0 * deviation,
                products / squares,
                one["changes"].as_array().map_or(0, Vec::len),
                verdict(one["changes"].as_array().is_some_and(Vec::is_empty))
            ));
            let worse = if one["better"] == "more" { 1.0 - PLANTED } else { 1.0 / (1.0 - PLANTED) };
            let places = BEFORE..=figures.len().saturating_sub(AFTER);
            let all = places.clone().count();
            let found = places.filter(|at| {
                let mut planted = figures[..at + AFTER].to_vec();
                planted.iter_mut().skip(*at).for_each(|figure| *figure *= worse);
                finds(&planted, *at)
            });
            let share = 100.0 * found.count() as f64 / all.max(1) as f64;
            figure(&format!(
                "| the same with steps of 3 % at each of {all} runs, found within {AFTER}, % | {share:.0} | - | - | at least 95 | {} |",
                verdict(share >= 95.0)
            ));
        }
        Ok(())
    }
}
