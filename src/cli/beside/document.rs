//! What loads cost each other, for other programs.

use serde_json::{Value, json};

use crate::cli::compare::document::figure;
use analysis::{ERROR_RATE, Interference, LoadBeside};

/// Version of this document's form. A field that is added does not raise it.
const FORMAT: u32 = 1;

pub(super) fn document(found: &Interference) -> Value {
    json!({
        "format": FORMAT,
        "group": found.group,
        "rounds": found.rounds,
        "rounds_left_out": found.left_out,
        "threshold": found.threshold,
        "confidence": 1.0 - ERROR_RATE,
        "loads": found.loads.iter().map(load).collect::<Vec<_>>(),
        "sentence": found.sentence(),
    })
}

fn load(load: &LoadBeside) -> Value {
    let names: [&str; 2] = [0, 1].map(|side: usize| load.compared.names[side].as_str());
    let figures = load.figures().map(|one| {
        // Beside the change, what it is as a ratio: that is how people say what one load costs another.
        let mut object = figure(one, &load.letter, names);
        if let Some(comparison) = &one.comparison {
            let ratio = |change: f64| 1.0 + change;
            object["ratio"] = json!(ratio(comparison.change));
            object["ratio_low"] = json!(comparison.interval.map(|(low, _)| ratio(low)));
            object["ratio_high"] = json!(comparison.interval.map(|(_, high)| ratio(high)));
        }
        object
    });
    let side = |side: usize| {
        json!({
            "runs": load.ids[side],
            "operations_per_s": load.rates_per_s(side).collect::<Vec<_>>(),
            "p99_ns": load.p99s_ns(side).collect::<Vec<_>>(),
        })
    };
    let doubts =
        load.doubts_in_words().into_iter().map(|(sentence, advice)| json!({ "sentence": sentence, "advice": advice }));
    json!({
        "load": load.letter,
        "command": load.command,
        "target": load.target,
        "asked_operations_per_s": load.asked_per_s(),
        "alone": side(0),
        "together": side(1),
        "figures": figures.collect::<Vec<_>>(),
        "notes": load.notes,
        "doubts": doubts.collect::<Vec<_>>(),
    })
}
