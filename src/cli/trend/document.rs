//! Trends for other programs.

use serde_json::{Map, Value, json};

use analysis::trend::{Gap, LikeDays, QUANTILES, SetAside, Summary, Trend, Trends, Why};
use model::record::Metric;

/// Version of this document's form. A field that is added does not raise it.
const FORMAT: u32 = 1;

pub(super) fn document(trends: &Trends) -> Value {
    json!({
        "format": FORMAT,
        "databases": trends.trends.iter().map(trend).collect::<Vec<_>>(),
        "left_out": trends.left_out.iter().map(set_aside).collect::<Vec<_>>(),
    })
}

fn trend(trend: &Trend) -> Value {
    let measures = trend.measures();
    let gap = |gap: &Gap| json!({ "from": gap.from.to_string(), "to": gap.to.to_string(), "seconds": gap.seconds() });
    let (from, to) = trend.span().unzip();
    json!({
        "name": trend.database.name,
        "kind": trend.database.scope.kind,
        "identity": trend.database.scope.identity,
        "instance": trend.database.scope.instance,
        "clock": if trend.is_wall_clock { "wall" } else { "utc" },
        "from": from.map(|at| at.to_string()),
        "to": to.map(|at| at.to_string()),
        "covered_share": trend.covered_share(),
        "gaps": trend.gaps.iter().map(gap).collect::<Vec<_>>(),
        "not_counted": trend.set_aside.iter().map(set_aside).collect::<Vec<_>>(),
        "measures": measures.iter().filter_map(|it| trend.summary(*it)).map(|it| summary(trend, &it)).collect::<Vec<_>>(),
        "windows": windows(trend, &measures),
    })
}

fn summary(trend: &Trend, reported: &Summary) -> Value {
    let name = |quantile: &f64| format!("p{}", quantile * 100.0);
    let quantiles: Map<String, Value> =
        QUANTILES.iter().map(name).zip(reported.quantiles).map(|(name, value)| (name, json!(value))).collect();
    let peak = trend.windows.get(reported.peak_at);
    let growth = reported.growth.map(|growth| {
        json!({
            "per_day": growth.per_day,
            "low": growth.interval.map(|(low, _)| low),
            "high": growth.interval.map(|(_, high)| high),
            "days": growth.days,
            "compared": match growth.like {
                LikeDays::All => "all_days",
                LikeDays::OfWeek => "days_of_week",
            },
        })
    });
    let hours = trend.hours(reported.measure);
    let days = trend.days(reported.measure);
    let hour = |row: &analysis::trend::HourRow| {
        json!({
            "hour": row.hour, "days": row.days, "mean": row.mean, "p95": row.p95, "peak": row.peak,
            "peak_from": row.peak_from.to_string(),
        })
    };
    let day = |row: &analysis::trend::DayRow| {
        json!({
            "day": report::trend::date(row.day), "covered_share": row.covered_share, "mean": row.mean,
            "p95": row.p95, "peak": row.peak, "peak_from": row.peak_from.to_string(),
        })
    };
    json!({
        "measure": reported.measure.key(),
        "windows": reported.windows,
        "covered_s": reported.covered_s,
        "mean": reported.mean,
        "quantiles": quantiles,
        "peak": reported.peak,
        "peak_from": peak.map(|window| window.from.to_string()),
        "peak_to": peak.map(|window| window.to.to_string()),
        "peak_run": peak.map(|window| window.run.clone()),
        "growth": growth,
        "hours": hours.iter().map(hour).collect::<Vec<_>>(),
        "days": days.iter().map(day).collect::<Vec<_>>(),
    })
}

fn windows(trend: &Trend, measures: &[Metric]) -> Vec<Value> {
    let of_window = |window: &analysis::trend::TrendWindow| {
        let values = measures
            .iter()
            .map(|measure| (measure.key().to_owned(), json!(window.reading(*measure).map(|reading| reading.value))));
        let mut object: Map<String, Value> = values.collect();
        object.extend([
            ("from".to_owned(), json!(window.from.to_string())),
            ("to".to_owned(), json!(window.to.to_string())),
            ("seconds".to_owned(), json!(window.seconds)),
            ("run".to_owned(), json!(window.run)),
            ("step".to_owned(), json!(window.step)),
        ]);
        Value::Object(object)
    };
    trend.windows.iter().map(of_window).collect()
}

fn set_aside(aside: &SetAside) -> Value {
    let (why, of) = match &aside.why {
        Why::Again { of } => ("same_time", Some(of)),
        Why::Overlaps { of } => ("overlaps", Some(of)),
        Why::InWhole { of } => ("instance_of_whole", Some(of)),
        Why::NoLength => ("no_length", None),
        Why::NoTime => ("no_time", None),
        Why::Part => ("part", None),
        Why::NotFinished => ("not_finished", None),
    };
    json!({ "run": aside.run, "step": aside.step, "why": why, "of": of })
}
