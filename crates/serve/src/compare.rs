//! Runs laid side by side.

use super::problem::Problem;
use super::query::{Query, segment};
use analysis::{Compared, joined};
use model::record::Run;
use report::html::{self, Kept};

/// Most runs that one comparison takes.
pub(super) const MAX_RUNS: usize = 16;
const DEFAULT_THRESHOLD_PCT: f64 = 5.0;
const KEYS: &[&str] = &["run", "baseline", "threshold"];

/// What shall be compared with what.
#[derive(Debug, PartialEq)]
pub(super) struct Comparison {
    /// The runs, by the names of their directories.
    pub(super) runs: Vec<String>,
    /// The one of them that the others are measured by, if it was named; else it is the oldest.
    pub(super) baseline: Option<String>,
    /// Smallest difference that matters, in percent.
    pub(super) threshold_pct: f64,
}

impl Comparison {
    pub(super) fn from_query(text: &str) -> Result<Self, Problem> {
        let query = Query::parse(text, KEYS)?;
        let mut runs: Vec<String> = Vec::new();
        let baseline = query.one("baseline")?;
        for run in baseline.into_iter().chain(query.all("run")) {
            if !run.is_empty() && !runs.iter().any(|known| known == run) {
                runs.push(run.to_owned());
            }
        }
        match runs.len() {
            0 => return Err(Problem::TooFewRuns { given: "none is ticked" }),
            1 => return Err(Problem::TooFewRuns { given: "only one is ticked" }),
            given if given > MAX_RUNS => return Err(Problem::TooManyRuns { given, most: MAX_RUNS }),
            _ => {}
        }
        let threshold_pct = match query.one("threshold")? {
            None => DEFAULT_THRESHOLD_PCT,
            Some(text) => {
                let number = text.parse().ok().filter(|number| (0.0..=1_000.0).contains(number));
                number.ok_or_else(|| {
                    Problem::query("threshold", text, format_args!("a threshold is a number of percent, 0 to 1000"))
                })?
            }
        };
        Ok(Self { runs, baseline: baseline.map(str::to_owned), threshold_pct })
    }

    /// Puts the baseline first and the others after it, each as old as they are.
    pub(super) fn in_order(&self, runs: &mut [(String, Run)]) {
        runs.sort_by_key(|(key, run)| (self.baseline.as_ref() != Some(key), run.started_at));
    }
}

/// The page of a comparison. `runs` has the baseline first, each run with the name of its directory.
pub(super) fn comparison(runs: &[(String, Run)], threshold_pct: f64) -> String {
    let links: Vec<String> = runs.iter().map(|(key, _)| format!("/runs/{}", segment(key))).collect();
    let runs: Vec<Run> = runs.iter().map(|(_, run)| joined(run.clone())).collect();
    let runs: Vec<&Run> = runs.iter().collect();
    let compared = Compared::of(&runs, 0, threshold_pct / 100.0).expect("a query with fewer than two runs was refused");
    let mut page = Vec::new();
    html::comparison(&mut page, &compared, &runs, &links, &Kept::Served { follow: None })
        .expect("memory takes every page");
    String::from_utf8(page).expect("a page is text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::{Timestamp, sample};

    #[test]
    fn the_baseline_comes_first_and_no_run_twice() {
        let comparison = Comparison::from_query("run=a&run=b&run=c&run=b&baseline=b&threshold=2.5").unwrap();
        assert_eq!((comparison.runs.join(" "), comparison.threshold_pct), ("b a c".to_owned(), 2.5));
        let at = |minute: u32| Timestamp(format!("2026-11-20T10:{minute:02}:00Z").parse().unwrap());
        let run = |key: &str, minute| (key.to_owned(), Run { started_at: at(minute), ..sample::imported() });
        let mut runs = [run("a", 9), run("b", 5), run("c", 1)];
        let keys = |runs: &[(String, Run)]| runs.iter().map(|(key, _)| key.clone()).collect::<String>();
        comparison.in_order(&mut runs);
        assert_eq!(keys(&runs), "bca");
        Comparison::from_query("run=a&run=b&run=c").unwrap().in_order(&mut runs);
        assert_eq!(keys(&runs), "cba");
        assert_eq!(Comparison::from_query("run=a&run=b").unwrap().threshold_pct, DEFAULT_THRESHOLD_PCT);
    }

    #[test]
    fn one_run_and_too_many_runs_are_refused() {
        assert!(matches!(Comparison::from_query(""), Err(Problem::TooFewRuns { .. })));
        assert!(matches!(Comparison::from_query("run=a&run=a"), Err(Problem::TooFewRuns { .. })));
        let many = (0..=MAX_RUNS).map(|number| format!("run={number}")).collect::<Vec<_>>().join("&");
        assert!(matches!(Comparison::from_query(&many), Err(Problem::TooManyRuns { given: 17, most: 16 })));
    }

    #[test]
    fn a_threshold_is_a_percentage() {
        for threshold in ["-1", "x", "NaN", "inf", "1001"] {
            let query = format!("run=a&run=b&threshold={threshold}");
            assert!(matches!(Comparison::from_query(&query), Err(Problem::Query { .. })), "{threshold}");
        }
    }
}
