//! What an experiment found, for other programs.

use serde_json::{Value, json};

use analysis::{Case, CaseRate, CaseReading, ExperimentFound};
use report::NotMeasured;

/// Version of this document's form. A field that is added does not raise it.
const FORMAT: u32 = 1;

pub(super) fn document(found: &ExperimentFound, missing: &[NotMeasured]) -> Value {
    let missing =
        missing.iter().map(|NotMeasured { step, round, why }| json!({ "step": step, "round": round, "why": why }));
    let verdicts = found.compared.iter().flat_map(|compared| compared.pairs.iter().map(|pair| compared.verdict(pair)));
    json!({
        "format": FORMAT,
        "title": found.title,
        "runs_asked": found.asked,
        "runs": found.runs(),
        "summary": found.summary(),
        "varied": found.varied,
        "cases": found.cases.iter().map(case).collect::<Vec<_>>(),
        "comparisons": verdicts.collect::<Vec<_>>(),
        "not_compared": found.not_compared,
        "not_measured": missing.collect::<Vec<_>>(),
    })
}

fn case(case: &Case) -> Value {
    let rate = case.rate();
    let expected = case.against.as_ref().map(|against| {
        json!({
            "requests_per_s": against.per_s,
            "allowed_requests_per_s": against.allowed_per_s,
            "burst_requests_per_s": against.burst_per_s,
            "limit": against.whose,
            "share": against.share(),
            "has_host_cache": against.has_cache,
            "sentence": against.words,
        })
    });
    json!({
        "step": case.step,
        "load": case.load,
        "tags": case.tags,
        "carries_per_s": rate.and_then(CaseRate::carried_per_s),
        "carries": rate.map(CaseRate::words),
        "unit": rate.map(|rate| rate.unit.words()),
        "spread": case.spread(),
        "expected": expected,
        "runs": case.readings.iter().map(reading).collect::<Vec<_>>(),
    })
}

fn reading(reading: &CaseReading) -> Value {
    json!({
        "run": reading.id,
        "round": reading.round,
        "carries_per_s": reading.rate.and_then(CaseRate::carried_per_s),
        "carries": reading.rate.map(CaseRate::words),
        "stopped_by": reading.stopped_by,
        "sentence": reading.sentence,
        "is_doubtful": reading.is_doubtful,
    })
}
