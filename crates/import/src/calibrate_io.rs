//! Results of Oracle's `DBMS_RESOURCE_MANAGER.CALIBRATE_IO`: spools of `dba_rsrc_io_calibrate`, and what its callers print, such
//! as `max_iops = 900`, `latency = 9`, `max_mbps = 80`.
//!
//! One calibration is often reported twice, once with its latency rounded; it is one run then, with the more precise latency.

use model::record::Workload;
use std::collections::{BTreeMap, BTreeSet};

use super::draft::{reported_figure, step};
use super::numbers::{number, ungrouped};
use super::oracle_time;
use super::spool::{self, Found, Kind, clean};
use super::{Began, Draft, ImportError, Notes, Source};
use model::record::{Metric, Target, TargetKind};

const READS_ONLY: &str = "CALIBRATE_IO only reads, and its blocks go to no buffer cache";
const WHOLE_MS: &str = "the latency is in whole milliseconds, which is 0 on flash";
/// Calibrations of one file; no spool has so many.
const MAX: usize = 1_000;
/// A note is not longer.
const LONGEST_NOTE: usize = 1_000;
/// Notes of one calibration.
const MAX_NOTES: usize = 10;

/// One calibration, as far as it is reported.
#[derive(Debug, Clone, Default, PartialEq)]
struct Calibration {
    line: u64,
    max_iops: Option<f64>,
    max_mbps: Option<f64>,
    max_pmbps: Option<f64>,
    latency_ms: Option<f64>,
    parameters: BTreeMap<String, String>,
    began: Option<Began>,
    ended: Option<Began>,
    /// What Oracle says of it.
    notes: Vec<String>,
}

impl Calibration {
    fn is_reported(&self) -> bool {
        self.max_iops.is_some() && self.max_mbps.is_some() && self.latency_ms.is_some()
    }

    /// Takes a figure, unless there is one already; whether there was none.
    fn set(&mut self, name: &str, value: f64) -> bool {
        let place = match name {
            "max_iops" => &mut self.max_iops,
            "max_mbps" => &mut self.max_mbps,
            "max_pmbps" => &mut self.max_pmbps,
            _ => &mut self.latency_ms,
        };
        match place {
            Some(_) => false,
            None => {
                *place = Some(value);
                true
            }
        }
    }

    /// Whether both are the same, reported twice: the same rates, and latencies of which one is the other rounded.
    fn is_same(&self, other: &Self) -> bool {
        let near = |a: Option<f64>, b: Option<f64>| a.zip(b).is_none_or(|(a, b)| (a - b).abs() < 1.0);
        self.max_iops == other.max_iops && self.max_mbps == other.max_mbps && near(self.latency_ms, other.latency_ms)
    }

    fn merge(&mut self, other: Self) {
        let is_whole = |value: f64| value.fract() == 0.0;
        self.latency_ms = match (self.latency_ms, other.latency_ms) {
            (Some(mine), Some(theirs)) if is_whole(mine) && !is_whole(theirs) => Some(theirs),
            (mine, theirs) => mine.or(theirs),
        };
        self.max_pmbps = self.max_pmbps.or(other.max_pmbps);
        self.began = self.began.or(other.began);
        self.ended = self.ended.or(other.ended);
        self.parameters.extend(other.parameters);
        other.notes.into_iter().for_each(|note| self.note(note));
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < MAX_NOTES && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn draft(self) -> Draft {
        let mut draft = Draft::new(Workload::Calibrate, "CALIBRATE_IO", "CALIBRATE_IO");
        draft.target = Target { kind: Some(TargetKind::Oracle), ..Target::default() };
        (draft.began, draft.ended) = (self.began, self.ended.map(Began::timestamp));
        draft.parameters = self.parameters;
        draft.notes.push(READS_ONLY.to_owned());
        if self.latency_ms.is_some_and(|ms| ms.fract() == 0.0) {
            draft.notes.push(WHOLE_MS.to_owned());
        }
        draft.notes.extend(self.notes);
        let mut step = step(0, "calibration", 0);
        let figures = [
            ("max_iops", "/s", self.max_iops, Some(Metric::Reads)),
            ("max_mbps", "MB/s", self.max_mbps, Some(Metric::ReadMegabytes)),
            ("max_pmbps", "MB/s", self.max_pmbps, None),
            ("latency", "ms", self.latency_ms, Some(Metric::RequestTime)),
        ];
        step.reported = figures
            .into_iter()
            .filter_map(|(name, unit, value, metric)| {
                Some(reported_figure("server", name, unit, value?).is(metric, 1.0))
            })
            .collect();
        draft.steps.push(step);
        draft
    }
}

fn kind(heading: &str) -> Kind {
    match heading {
        "START_TIME" | "END_TIME" | "CALIBRATION_TIME" => Kind::Time,
        "STATUS" | "ADDITIONAL_INFO" => Kind::Text,
        _ => Kind::Number,
    }
}

fn is_result(headings: &[String]) -> bool {
    let has = |name: &str| headings.iter().any(|heading| heading == name);
    has("MAX_IOPS") && (has("MAX_MBPS") || has("LATENCY"))
}

fn is_status(headings: &[String]) -> bool {
    headings.iter().any(|heading| heading == "CALIBRATION_TIME")
}

/// A figure by its name in the view. A latency has three decimals, and no calibration waits for seconds: a comma before them is the
/// point of a session with decimal commas.
fn figure(name: &str, text: &str) -> Option<f64> {
    if name == "latency" { ungrouped(text) } else { number(text) }
}

/// The figures of a line such as `max_iops = 900 latency = 9.3`, by their names in the view.
fn figures(line: &str) -> Vec<(&'static str, f64)> {
    // A line that is longer is none of a result.
    if line.len() > 4_096 {
        return Vec::new();
    }
    let lower = without_limit(&line.to_ascii_lowercase()).replace("->", "=").replace("=>", "=");
    let mut figures = Vec::new();
    let mut parts = lower.split(['=', ':']);
    let mut before = parts.next().unwrap_or_default();
    for part in parts {
        let name = before.trim_end().replace([' ', '_', '.'], "");
        let name = ["maxiops", "maxmbps", "maxmb/s", "maxpmbps", "latency"]
            .into_iter()
            .zip(["max_iops", "max_mbps", "max_mbps", "max_pmbps", "latency"])
            .find(|(ending, _)| name.ends_with(ending));
        let word = part.split_whitespace().next().map(|word| word.trim_end_matches([',', ';', '.']));
        figures.extend(name.zip(word).and_then(|((_, name), word)| Some((name, figure(name, word)?))));
        before = part;
    }
    figures
}

/// A line of the call without the latency that it asks for, as `max_latency => 10`: that is none which was measured.
fn without_limit(line: &str) -> String {
    let Some((before, after)) = line.split_once("max_latency") else { return line.to_owned() };
    match after.trim_start().strip_prefix("=>") {
        Some(rest) => format!("{before}{}", rest.trim_start().trim_start_matches(|c: char| c.is_ascii_digit())),
        None => line.to_owned(),
    }
}

/// Whether it reports all three answers of a calibration.
pub(super) fn recognises(head: &str) -> bool {
    let lower_or_upper = |word: &str| head.contains(word) || head.contains(&word.to_ascii_uppercase());
    if !(lower_or_upper("iops") || head.contains("IOps") || head.contains("Iops")) {
        return false;
    }
    let mut names: Vec<&str> = head.lines().flat_map(|line| figures(&clean(line))).map(|(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    if ["latency", "max_iops", "max_mbps"].iter().all(|name| names.contains(name)) {
        return true;
    }
    let mut rows = 0_u32;
    spool::scan(head, is_result, kind, |found| rows += u32::from(matches!(found, Found::Row(..))));
    rows > 0
}

/// A run for each calibration of the file.
pub(super) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let (mut found, others) = in_views(source, notes);
    found.extend(printed(source, &others, notes)?);
    found.sort_by_key(|calibration| calibration.line);
    let mut calibrations: Vec<Calibration> = Vec::new();
    for calibration in found {
        if calibrations.len() == MAX {
            return Err(ImportError::damaged(
                source,
                calibration.line,
                format!("it holds more than {MAX} calibrations"),
            ));
        }
        match calibrations.iter_mut().find(|one| one.is_same(&calibration)) {
            Some(same) => same.merge(calibration),
            None => calibrations.push(calibration),
        }
    }
    if calibrations.is_empty() {
        return Err(ImportError::damaged(source, None, "no calibration of it reports its rates"));
    }
    Ok(calibrations.into_iter().map(Calibration::draft).collect())
}

/// Rows of `dba_rsrc_io_calibrate`, and the time in `v$io_calibration_status`; and the lines that are none of a table.
fn in_views(source: &Source, notes: &mut Notes) -> (Vec<Calibration>, BTreeSet<u64>) {
    let mut others = BTreeSet::new();
    let mut headings: Vec<String> = Vec::new();
    let mut rows: Vec<Calibration> = Vec::new();
    let mut status: Option<Began> = None;
    let wanted = |headings: &[String]| is_result(headings) || is_status(headings);
    spool::scan(source.text(), wanted, kind, |found| match found {
        Found::Headings(names) => headings = names.to_vec(),
        Found::Row(line, cells) => {
            let cell = |name: &str| {
                let at = headings.iter().position(|heading| heading == name)?;
                cells.get(at).map(String::as_str).filter(|cell| !cell.is_empty())
            };
            if is_status(&headings) {
                status = cell("CALIBRATION_TIME").and_then(oracle_time::began);
                return;
            }
            let mut row = Calibration { line, ..Calibration::default() };
            for (name, heading) in
                [("max_iops", "MAX_IOPS"), ("max_mbps", "MAX_MBPS"), ("max_pmbps", "MAX_PMBPS"), ("latency", "LATENCY")]
            {
                if let Some(cell) = cell(heading) {
                    match figure(name, cell) {
                        Some(value) => {
                            row.set(name, value);
                        }
                        None => notes.not_understood(line, format!("`{cell}` is not a number of {heading}")),
                    }
                }
            }
            if let Some(disks) = cell("NUM_PHYSICAL_DISKS") {
                row.parameters.insert("NUM_PHYSICAL_DISKS".to_owned(), disks.to_owned());
            }
            row.began = cell("START_TIME").and_then(oracle_time::began);
            row.ended = cell("END_TIME").and_then(oracle_time::began);
            if row.max_iops.is_some() && rows.len() <= MAX {
                rows.push(row);
            }
        }
        Found::Blank => {}
        Found::Other(line, _) => _ = others.insert(line),
    });
    // The status is of the last calibration.
    if let ([only], Some(ended)) = (rows.as_mut_slice(), status) {
        only.ended = only.ended.or(Some(ended));
    }
    (rows, others)
}

/// What callers print, each with the notes of Oracle itself that follow it.
fn printed(source: &Source, others: &BTreeSet<u64>, notes: &mut Notes) -> Result<Vec<Calibration>, ImportError> {
    let mut calibrations = Vec::new();
    let mut current = Calibration::default();
    let mut note: Option<String> = None;
    let finish = |current: &mut Calibration, notes: &mut Notes, all: &mut Vec<Calibration>| {
        let one = std::mem::take(current);
        if one.is_reported() {
            all.push(one);
        } else if one.max_iops.is_some() || one.max_mbps.is_some() {
            notes.not_understood(one.line, "a calibration without all of max_iops, max_mbps and latency");
        }
    };
    for (line, text) in source.lines() {
        let text = clean(text);
        let text = text.trim();
        let found = figures(text);
        note = match note.take() {
            Some(so_far) if !text.is_empty() && found.is_empty() && so_far.len() < LONGEST_NOTE => {
                Some(format!("{so_far} {text}"))
            }
            Some(whole) => {
                keep(&mut current, &mut calibrations, &whole);
                None
            }
            None => text.strip_prefix("Note:").map(|begin| begin.trim().chars().take(LONGEST_NOTE).collect()),
        };
        if found.is_empty() && note.is_none() && others.contains(&line) {
            notes.unknown(line, text);
        }
        for (name, value) in found {
            if current.line == 0 {
                current.line = line;
            }
            if !current.set(name, value) {
                finish(&mut current, notes, &mut calibrations);
                current.line = line;
                current.set(name, value);
            }
            if calibrations.len() > MAX {
                return Err(ImportError::damaged(source, line, format!("it holds more than {MAX} calibrations")));
            }
        }
    }
    if let Some(whole) = note {
        keep(&mut current, &mut calibrations, &whole);
    }
    finish(&mut current, notes, &mut calibrations);
    Ok(calibrations)
}

/// Puts a note at the calibration that was printed last; one before all of them belongs to the first.
fn keep(current: &mut Calibration, before: &mut [Calibration], note: &str) {
    let of = match before.last_mut() {
        Some(last) if current.line == 0 => last,
        _ => current,
    };
    of.note(format!("Oracle: {note}"));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super as import;
    use super::*;
    use model::record::Timestamp;

    fn source(text: &str) -> Source {
        Source::new("out.lst", text.as_bytes().to_vec(), Timestamp(jiff::Timestamp::UNIX_EPOCH)).unwrap()
    }

    fn read_all(text: &str) -> Vec<Draft> {
        let source = source(text);
        let (importer, drafts, notes) = import::read(&source).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((importer.kind, notes.into_list()), ("calibrate-io", vec![]));
        drafts
    }

    fn figures_of(draft: &Draft) -> Vec<(&str, f64)> {
        draft.steps[0].reported.iter().map(|figure| (figure.name.as_str(), figure.value)).collect()
    }

    const PRINTED: &str = "SQL> @calibrate\nmax_iops = 1200\nlatency = 8.75\nmax_mbps = 310\n\nNote: the cache was\ncold.\n\n\
                           max_iops = 1200\nlatency = 9\nmax_mbps = 310\n\nPL/SQL procedure successfully completed.\n";

    #[test]
    fn a_latency_with_a_decimal_comma_is_no_thousand_times_as_long() {
        let printed = "max_iops = 24002\nlatency  = 10,868\nmax_mbps = 175\n";
        assert_eq!(figures_of(&read_all(printed)[0])[2], ("latency", 10.868));
        let view = "  MAX_IOPS   MAX_MBPS  MAX_PMBPS    LATENCY NUM_PHYSICAL_DISKS\n\
                    ---------- ---------- ---------- ---------- ------------------\n\
                    \x20    24002        175        186     10,868                  1\n";
        let drafts = read_all(view);
        assert!(figures_of(&drafts[0]).contains(&("latency", 10.868)), "{:?}", figures_of(&drafts[0]));
        assert_eq!((figure("latency", "1.234,5"), figure("max_iops", "24,002")), (None, Some(24_002.0)));
    }

    #[test]
    fn a_calibration_that_is_reported_twice_is_one_with_the_more_precise_latency() {
        let drafts = read_all(PRINTED);
        assert_eq!(drafts.len(), 1);
        assert_eq!(figures_of(&drafts[0]), [("max_iops", 1_200.0), ("max_mbps", 310.0), ("latency", 8.75)]);
        assert!(drafts[0].notes.contains(&"Oracle: the cache was cold.".to_owned()), "{:?}", drafts[0].notes);
        assert!(!drafts[0].notes.iter().any(|note| note == WHOLE_MS));
    }

    #[test]
    fn two_calibrations_are_two_runs() {
        let drafts = read_all("Max IOPS = 154, Max MBPS = 20, Latency = 19\nMax IOPS: 9,353 Max MBPS: 20 Latency: 0\n");
        let rates: Vec<f64> = drafts.iter().map(|draft| figures_of(draft)[0].1).collect();
        assert_eq!(rates, [154.0, 9_353.0]);
        assert!(drafts[1].notes.iter().any(|note| note == WHOLE_MS));
    }

    #[test]
    fn the_latency_that_a_call_asks_for_is_not_the_one_that_it_measured() {
        let call = "SQL> begin\n  2  dbms_resource_manager.calibrate_io(num_physical_disks => 1, max_latency => 15,\n  3  MAX_LATENCY\t=>  15,\n\
                    max_iops => i, max_mbps => m, actual_latency => l);\n  4  /\n";
        for printed in
            ["max_iops = 2412\nmax_mbps = 320\nactual_latency = 7\n", "max_iops = 2412\nlatency = 7\nMax_MB/s = 320\n"]
        {
            let drafts = read_all(&format!("{call}{printed}"));
            let figures = drafts.iter().flat_map(figures_of).collect::<Vec<_>>();
            assert_eq!(figures, [("max_iops", 2_412.0), ("max_mbps", 320.0), ("latency", 7.0)], "{printed}");
        }
    }

    #[test]
    fn a_note_ends_where_the_next_result_begins() {
        let drafts = read_all(&PRINTED.replace("cold.\n\n", "cold.\n"));
        assert!(drafts[0].notes.contains(&"Oracle: the cache was cold.".to_owned()), "{:?}", drafts[0].notes);
    }

    #[test]
    fn rows_of_the_view_are_read_with_their_times() {
        let text = "START_TIME                     END_TIME                         MAX_IOPS   MAX_MBPS  MAX_PMBPS    LATENCY NUM_PHYSICAL_DISKS\n\
                    ------------------------------ ------------------------------ ---------- ---------- ---------- ---------- ------------------\n\
                    05-MAY-21 10.00.00.000000 AM   05-MAY-21 10.09.30.000000 AM        1200        310         44          9                  4\n\n\
                    STATUS        CALIBRATION_TIME\n------------- ----------------------------\nREADY         05-MAY-21 10.09.31.000 AM\n\n";
        let drafts = read_all(&format!("{text}{PRINTED}"));
        assert_eq!(drafts.len(), 1, "both tell the same");
        let draft = &drafts[0];
        assert_eq!(
            figures_of(draft),
            [("max_iops", 1_200.0), ("max_mbps", 310.0), ("max_pmbps", 44.0), ("latency", 8.75)]
        );
        assert_eq!(draft.parameters["NUM_PHYSICAL_DISKS"], "4");
        assert_eq!(draft.began.map(|began| began.timestamp().0.to_string()), Some("2021-05-05T10:00:00Z".to_owned()));
        assert_eq!(draft.ended.map(|ended| ended.0.to_string()), Some("2021-05-05T10:09:30Z".to_owned()));
    }

    #[test]
    fn the_block_that_calls_it_is_no_result() {
        let block = "dbms_output.put_line('max_iops = ' || iops);\ndbms_output.put_line('latency = ' || lat);\n\
                     dbms_output.put_line('max_mbps = ' || mbps);\nmax_iops => l_iops, max_mbps => l_mbps, latency\n";
        assert!(import::recognise(block).is_none());
        assert!(import::recognise("max_iops = 500\nmax_mbps = 20\n").is_none(), "limits of a volume");
        assert_eq!(read_all(&format!("{block}{PRINTED}")).len(), 1);
    }

    proptest! {
        #[test]
        fn nothing_that_is_cut_or_changed_makes_it_fall(from in 0usize..400, length in 0usize..60, byte in 1u8..127, times in 0usize..9) {
            let mut text = PRINTED.replace("latency = 9\n", "MAX_IOPS LATENCY\n-------- -------\n  1200       9\n");
            let from = from % text.len();
            let to = (from + length).min(text.len());
            text.replace_range(from..to, &char::from(byte).to_string().repeat(times));
            let source = source(&text);
            let _ = recognises(source.head());
            let _ = read(&source, &mut Notes::new(&source));
        }
    }
}
