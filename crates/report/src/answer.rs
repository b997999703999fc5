//! The first screen of a report, for programs.

use serde::Serialize;

use analysis::{FirstScreen, HowKnown, LimitAnswer, LimitLine};

/// The answer in short lines, as a report begins with.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Answer"))]
pub(super) struct AnswerText {
    /// How much, within which latency; where limits were requested, after yes, no or no verdict.
    result: String,
    /// Whether a model of storage was measured.
    simulated: bool,
    /// What must be known before the result is used.
    warnings: Vec<String>,
    /// What limited the load; `null` where nothing was seen to.
    limited_by: Option<String>,
    /// What that rests on; `null` where no cause is named.
    how_known: Option<HowKnown>,
    /// What published limits let expect; `null` where the tags of the run name no platform.
    expected: Option<String>,
    /// Up to which load to plan; `null` where no knee was found.
    plan_for: Option<String>,
    /// What sessions of a database waited for most.
    waits: Option<String>,
    /// Why operations were slow for a while, where the limits were not met and causes are known.
    stalls: Option<String>,
    /// What else belongs to the answer.
    also: Vec<String>,
    /// What to do next.
    next: Option<String>,
    /// The limits that were requested, each with what was measured.
    limits: Vec<AnswerLimit>,
}

/// A requested limit.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct AnswerLimit {
    /// What is limited, such as `p99 of response time`.
    what: String,
    /// The limit, in words.
    limit: String,
    /// What was measured, in words; `null` where it is not known.
    measured: Option<String>,
    /// Whether the limit was met.
    answer: LimitAnswer,
    /// What decided, where it was not the measured value.
    because: Option<String>,
}

impl From<FirstScreen> for AnswerText {
    fn from(screen: FirstScreen) -> Self {
        let FirstScreen {
            result,
            is_simulated,
            warnings,
            limited_by,
            how_known,
            expected,
            plan_for,
            waits,
            stalls,
            also,
            next,
            ..
        } = screen;
        let limit = |LimitLine { what, limit, measured, answer, because }: LimitLine| AnswerLimit {
            what,
            limit,
            measured,
            answer,
            because,
        };
        let limits = screen.limits.into_iter().map(limit).collect();
        Self {
            result,
            simulated: is_simulated,
            warnings,
            limited_by,
            how_known,
            expected,
            plan_for,
            waits,
            stalls,
            also,
            next,
            limits,
        }
    }
}
