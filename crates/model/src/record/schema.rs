//! The JSON schema of what a run directory holds, made from the types that write it.

use serde_json::Value;

use super::{Interval, Run};

/// Schema of `run.json`.
pub fn schema() -> Value {
    schemars::schema_for!(Run).to_value()
}

/// Schema of each line of `intervals.jsonl`.
pub fn interval_schema() -> Value {
    schemars::schema_for!(Interval).to_value()
}
