//! Time profiles: how long each procedure took.

use crate::draft::{reported_figure, whole};
use crate::numbers::{duration_ns, number, whole_number};
use crate::percentiles;
use model::record::{Histogram, ReportedFigure};

const US: f64 = 1e3;

/// Procedures that others call: their time is in that of the callers.
const INNER: [&str; 3] = ["gettimestamp", "prep_statement", "toplevel"];

/// Whether it is one of the transactions of the workload.
pub(super) fn is_transaction(procedure: &str) -> bool {
    let name = procedure.trim().to_ascii_lowercase();
    !name.is_empty() && !INNER.contains(&name.as_str())
}

/// A procedure in one interval.
pub(super) struct Percentiles {
    pub procedure: String,
    pub response: Histogram,
    /// Its figures as they stand there, in microseconds.
    pub figures: Vec<(String, f64)>,
}

/// `|neword|MIN-391|P50%-685|P95%-1286|P99%-3298|MAX-246555|SAMPLES-3603|`.
pub(super) fn percentiles_row(text: &str) -> Option<Percentiles> {
    let mut cells = text.trim().strip_prefix('|')?.split('|').take(16).map(str::trim).filter(|cell| !cell.is_empty());
    let procedure = cells.next()?.to_owned();
    let figures: Vec<(String, f64)> = cells
        .filter_map(|cell| {
            let (name, value) = cell.split_once('-')?;
            Some((name.to_owned(), number(value)?))
        })
        .collect();
    let of = |wanted: &str| figures.iter().find(|(name, _)| name == wanted).map(|(_, value)| *value);
    let ns = |wanted: &str| of(wanted).and_then(|us| whole(us * US));
    let count = of("SAMPLES").and_then(whole)?;
    let known: Vec<(f64, u64)> = shares(|name| ns(&format!("{name}%"))).collect();
    let response = percentiles::histogram(count, None, ns("MIN"), ns("MAX"), &known);
    Some(Percentiles { procedure, response, figures })
}

fn shares<'a>(of: impl Fn(&str) -> Option<u64> + 'a) -> impl Iterator<Item = (f64, u64)> + 'a {
    [("P25", 0.25), ("P50", 0.5), ("P75", 0.75), ("P90", 0.9), ("P95", 0.95), ("P99", 0.99), ("P99.9", 0.999)]
        .into_iter()
        .filter_map(move |(name, share)| Some((share, of(name)?)))
}

/// `|neword | 94996164|38.93%| 6877| 13813| 95569025|`: time without that of procedures inside, its share, calls, mean and
/// sum, in microseconds.
pub(super) fn totals_row(text: &str) -> Option<(String, u64, Histogram)> {
    let cells: Vec<&str> = text.trim().strip_prefix('|')?.split('|').take(12).map(str::trim).collect();
    let [name, exclusive, share, calls, mean, _, ..] = cells[..] else { return None };
    share.strip_suffix('%').and_then(number)?;
    let (exclusive, calls) = (number(exclusive)?, whole_number(calls)?);
    number(mean)?;
    Some((name.to_owned(), calls, Histogram::counted(calls, whole(exclusive * US))))
}

/// One procedure of the extended profile: two lines of names and values that follow each other with or without a blank.
#[derive(Debug, Default)]
pub(super) struct Extended {
    /// As the profile writes it.
    pub procedure: String,
    figures: Vec<(String, String)>,
}

/// Every name in it, the quartiles since version 6.
const NAMES: [&str; 12] =
    ["CALLS:", "MIN:", "AVG:", "MAX:", "TOTAL:", "P99:", "P95:", "P75:", "P50:", "P25:", "SD:", "RATIO:"];

impl Extended {
    /// One of which only the name is known.
    pub fn of(procedure: &str) -> Self {
        Self { procedure: procedure.trim().to_owned(), figures: Vec::new() }
    }

    /// Takes the figures of a line; false if it has none.
    pub fn line(&mut self, text: &str) -> bool {
        let mut found: Vec<(usize, &str)> =
            NAMES.iter().filter_map(|name| Some((find_name(text, name)?, *name))).collect();
        found.sort_unstable();
        for (at, name) in &found {
            let from = at + name.len();
            let to = found.iter().map(|(next, _)| *next).find(|next| next > at).unwrap_or(text.len());
            let value = text.get(from..to).unwrap_or_default().trim();
            self.figures.push((name.trim_end_matches(':').to_owned(), value.to_owned()));
        }
        !found.is_empty()
    }

    /// Takes one figure by its name in the report, with its unit.
    pub fn set(&mut self, name: &str, value: String) {
        self.figures.push((name.to_owned(), value));
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.figures.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Its durations; nothing if it does not report how many there were.
    pub fn histogram(&self) -> Option<Histogram> {
        let count = self.get("CALLS").and_then(whole_number)?;
        let ns = |name: &str| self.get(name).and_then(duration_ns).and_then(whole);
        let total_ns = ns("TOTAL").or_else(|| percentiles::sum_of_mean(self.get("AVG").and_then(duration_ns)?, count));
        let known: Vec<(f64, u64)> = shares(ns).collect();
        Some(percentiles::histogram(count, total_ns, ns("MIN"), ns("MAX"), &known))
    }

    /// All of its figures, as those of one virtual user; times in milliseconds.
    pub fn of_user(&self, user: u32) -> Vec<ReportedFigure> {
        let figure = |(name, text): &(String, String)| {
            let (unit, value) = match name.as_str() {
                "CALLS" => ("", number(text)),
                "SD" => ("us", number(text.trim_end_matches(['u', 's']))),
                "RATIO" => ("%", number(text.trim_end_matches('%'))),
                _ => ("ms", duration_ns(text).map(|ns| ns / 1e6)),
            };
            Some(reported_figure("client", format!("vu{user} {} {name}", self.procedure), unit, value?))
        };
        self.figures.iter().filter_map(figure).collect()
    }

    /// What a histogram does not hold: the deviation, in microseconds, and the share of the time.
    pub fn figures(&self) -> Vec<ReportedFigure> {
        let figure = |name: &str, unit: &str| {
            let value = number(self.get(name)?.trim_end_matches(['%', 'u', 's']))?;
            Some(reported_figure("client", format!("{} {name}", self.procedure), unit, value))
        };
        [figure("SD", "us"), figure("RATIO", "%")].into_iter().flatten().collect()
    }
}

/// Where a name begins that is not the end of another: `MIN:` does not lie in `XMIN:`.
fn find_name(text: &str, name: &str) -> Option<usize> {
    let at = text.find(name)?;
    let before = text.get(..at)?.chars().next_back();
    // `409msAVG:` runs on without a blank, so only capitals tell one name from another.
    before.is_none_or(|before| !before.is_ascii_uppercase()).then_some(at)
}
