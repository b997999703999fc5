//! A comparison for other programs.

use serde_json::{Value, json};

use analysis::{
    Bearing, Compared, ComparedFigure, ComparedLoad, Doubt, ERROR_RATE, Evidence, FigureUnit, Measure, Pair, Repeats,
    SettingDifference,
};
use model::record::Better;

/// Version of this document's form. A field that is added does not raise it.
const FORMAT: u32 = 1;

pub(super) fn document(compared: &Compared, sides: &[Repeats]) -> Value {
    let run = |(side, name): (&Repeats, &String)| json!({ "ids": side.ids, "name": side.run.name, "called": name });
    json!({
        "format": FORMAT,
        "runs": sides.iter().zip(&compared.names).map(run).collect::<Vec<_>>(),
        "baseline": compared.baseline,
        "threshold": compared.threshold,
        "confidence": 1.0 - ERROR_RATE,
        "intervals": compared.intervals,
        "settings": compared.settings.iter().map(setting).collect::<Vec<_>>(),
        "pairs": compared.pairs.iter().map(|one| pair(compared, one)).collect::<Vec<_>>(),
        "regression": compared.has_regression(),
    })
}

pub(super) fn setting(setting: &SettingDifference) -> Value {
    let bearing = match setting.bearing {
        Bearing::Work => "work",
        Bearing::Varied => "varied",
        Bearing::Incidental => "incidental",
    };
    json!({ "name": setting.name, "bearing": bearing, "values": setting.values })
}

fn pair(compared: &Compared, pair: &Pair) -> Value {
    let names = compared.names_of(pair);
    let doubt = |doubt: &Doubt| json!({ "sentence": doubt.sentence(names), "advice": doubt.advice(pair.grounds) });
    let hidden = pair
        .largest_hidden()
        .map(|(load, measure, share)| json!({ "load": load.name, "figure": measure.to_string(), "share": share }));
    json!({
        "run": pair.run,
        "overall": pair.overall().word(),
        "verdict": compared.verdict(pair),
        "doubts": pair.doubts.iter().map(doubt).collect::<Vec<_>>(),
        "loads": pair.loads.iter().map(|one| load(one, names)).collect::<Vec<_>>(),
        "only_baseline": pair.only[0],
        "only_run": pair.only[1],
        "largest_hidden": hidden,
    })
}

fn load(load: &ComparedLoad, names: [&str; 2]) -> Value {
    json!({
        "load": load.name,
        "steps": { "baseline": load.steps[0], "run": load.steps[1] },
        "doubtful": load.is_doubtful,
        "figures": load.figures.iter().map(|one| figure(one, &load.name, names)).collect::<Vec<_>>(),
    })
}

/// Which figure it is, in what, and which way it gets better.
pub(super) fn measure(measure: &Measure) -> Value {
    json!({
        "figure": measure.to_string(),
        "metric": measure.metric(),
        "unit": match measure.unit() {
            FigureUnit::PerSecond => "per_s",
            FigureUnit::Nanoseconds => "ns",
            FigureUnit::Percent => "percent",
        },
        "better": match measure.better() {
            Better::More => "more",
            Better::Less => "less",
        },
    })
}

/// One figure on both sides.
pub(in crate::cli) fn figure(figure: &ComparedFigure, load: &str, names: [&str; 2]) -> Value {
    let mut object = measure(&figure.measure);
    object["baseline"] = json!(figure.values[0]);
    object["run"] = json!(figure.values[1]);
    if let Some(comparison) = &figure.comparison {
        let (evidence, counts) = match comparison.evidence {
            Evidence::Repeats(a, b) => ("repeats", Some([a, b])),
            Evidence::Seconds(a, b) => ("seconds", Some([a, b])),
            Evidence::Nothing => ("nothing", None),
        };
        object["change"] = json!(comparison.change);
        object["low"] = json!(comparison.interval.map(|(low, _)| low));
        object["high"] = json!(comparison.interval.map(|(_, high)| high));
        object["evidence"] = json!(evidence);
        object["counts"] = json!(counts);
        object["real"] = json!(comparison.interval.map(|_| comparison.is_real()));
        object["matters"] = json!(comparison.matters());
        object["answer"] = json!(comparison.difference().word());
        object["regression"] = json!(comparison.is_regression());
        object["sentence"] = json!(comparison.sentence(&format!("{} at {load}", figure.measure), names));
    }
    object
}
