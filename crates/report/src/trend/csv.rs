//! Trends as comma-separated files: numbers unrounded, unknown values empty, times as RFC 3339 without a zone.

use std::io::{self, Write};

use crate::csv::{field, line, optional};
use analysis::trend::{MEASURES, QUANTILES, Trend, Trends};

/// Writes one file.
pub type Writer = fn(&mut dyn Write, &Trends) -> io::Result<()>;

/// What every one of the files begins with.
pub const BEGINNING: &str = "database,";

/// Every file, by the name it should have.
pub const FILES: [(&str, Writer); 4] =
    [("windows.csv", windows), ("measures.csv", measures), ("hours.csv", hours), ("days.csv", days)];

fn time(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

fn header(out: &mut dyn Write, first: &[&str], rest: impl IntoIterator<Item = String>) -> io::Result<()> {
    let cells: Vec<String> = first.iter().map(|name| (*name).to_owned()).chain(rest).collect();
    line(out, &cells)
}

fn each(trends: &Trends) -> impl Iterator<Item = (String, &Trend)> {
    trends.trends.iter().map(|trend| (field(&trend.database.name), trend))
}

/// One row for each window that counts, with every measure.
///
/// # Errors
/// If `out` fails.
pub fn windows(out: &mut dyn Write, trends: &Trends) -> io::Result<()> {
    let keys = MEASURES.map(|measure| measure.key().to_owned());
    header(out, &["database", "from", "to", "seconds", "run", "step"], keys)?;
    for (name, trend) in each(trends) {
        for window in &trend.windows {
            let mut row = vec![name.clone(), time(window.from), time(window.to), window.seconds.to_string()];
            row.extend([field(&window.run), field(&window.step)]);
            row.extend(MEASURES.map(|measure| optional(window.reading(measure).map(|reading| reading.value))));
            line(out, &row)?;
        }
    }
    Ok(())
}

/// One row for each measure: mean, percentiles over time, peak and growth.
///
/// # Errors
/// If `out` fails.
pub fn measures(out: &mut dyn Write, trends: &Trends) -> io::Result<()> {
    let quantiles = QUANTILES.map(|quantile| format!("p{}", quantile * 100.0));
    let after = ["peak", "peak_from", "peak_to", "growth_per_day", "growth_low", "growth_high", "growth_days"];
    let rest = quantiles.into_iter().chain(after.map(str::to_owned));
    header(out, &["database", "measure", "windows", "covered_s", "mean"], rest)?;
    for (name, trend) in each(trends) {
        for reported in trend.measures().into_iter().filter_map(|measure| trend.summary(measure)) {
            let mut row = vec![name.clone(), reported.measure.key().to_owned(), reported.windows.to_string()];
            row.extend([reported.covered_s.to_string(), optional(reported.mean)]);
            row.extend(reported.quantiles.map(|value| value.to_string()));
            row.push(reported.peak.to_string());
            let peak = trend.windows.get(reported.peak_at);
            row.extend(
                [peak.map(|window| window.from), peak.map(|window| window.to)]
                    .map(|at| at.map(time).unwrap_or_default()),
            );
            let interval = reported.growth.and_then(|growth| growth.interval);
            row.push(optional(reported.growth.map(|growth| growth.per_day)));
            row.extend([optional(interval.map(|(low, _)| low)), optional(interval.map(|(_, high)| high))]);
            row.push(reported.growth.map(|growth| growth.days.to_string()).unwrap_or_default());
            line(out, &row)?;
        }
    }
    Ok(())
}

/// One row for each hour of the day and measure.
///
/// # Errors
/// If `out` fails.
pub fn hours(out: &mut dyn Write, trends: &Trends) -> io::Result<()> {
    header(out, &["database", "measure", "hour", "days", "mean", "p95", "peak", "peak_from"], [])?;
    for (name, trend) in each(trends) {
        for measure in trend.measures() {
            for row in trend.hours(measure) {
                let first = [name.clone(), measure.key().to_owned(), row.hour.to_string(), row.days.to_string()];
                let values = [row.mean, Some(row.p95), Some(row.peak)].map(optional);
                let cells: Vec<String> = first.into_iter().chain(values).chain([time(row.peak_from)]).collect();
                line(out, &cells)?;
            }
        }
    }
    Ok(())
}

/// One row for each day and measure.
///
/// # Errors
/// If `out` fails.
pub fn days(out: &mut dyn Write, trends: &Trends) -> io::Result<()> {
    header(out, &["database", "measure", "day", "covered_share", "mean", "p95", "peak", "peak_from"], [])?;
    for (name, trend) in each(trends) {
        for measure in trend.measures() {
            for row in trend.days(measure) {
                let first = [name.clone(), measure.key().to_owned(), super::date(row.day)];
                let values = [Some(row.covered_share), row.mean, Some(row.p95), Some(row.peak)].map(optional);
                let cells: Vec<String> = first.into_iter().chain(values).chain([time(row.peak_from)]).collect();
                line(out, &cells)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::sample::windows::history;

    #[test]
    fn every_file_has_as_many_fields_in_each_row_as_in_its_header() {
        let mut runs = history();
        runs.iter_mut().for_each(|run| run.target.address = "PROD, \"old\"/1".to_owned());
        let trends = Trends::of(&runs.iter().collect::<Vec<_>>());
        for (name, write) in FILES {
            let mut out = Vec::new();
            write(&mut out, &trends).unwrap();
            let text = String::from_utf8(out).unwrap();
            let rows: Vec<&str> = text.lines().collect();
            assert!(rows.len() > 9 && rows[0].starts_with("database,"), "{name}");
            let fields = |row: &str| row.replace("\"PROD, \"\"old\"\"/1\"", "PROD").split(',').count();
            assert!(rows.iter().all(|row| fields(row) == fields(rows[0])), "{name}");
        }
    }

    #[test]
    fn windows_are_written_in_the_order_of_time() {
        let runs = history();
        let mut out = Vec::new();
        windows(&mut out, &Trends::of(&runs.iter().collect::<Vec<_>>())).unwrap();
        let text = String::from_utf8(out).unwrap();
        let first = text.lines().nth(1).unwrap();
        assert!(first.starts_with("PROD/PROD1,2026-11-02T00:00:00,2026-11-02T01:00:00,3600,20261102-000000-awr,snapshots 100 to 101,250,200,50,"), "{first}");
        assert_eq!(text.lines().count(), 238);
    }
}
