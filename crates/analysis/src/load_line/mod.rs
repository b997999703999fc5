//! Where the load line is decided: the highest load that keeps a limit on latency.
//!
//! - A [`LatencyTarget`] is the limit: which quantile of which times may be how long. [`judgeable`] says beforehand which limits a run
//!   can judge at all.
//! - [`judge`] gives the verdict on one step: carried, not carried, or no verdict, since the load generator or an error was in the way.
//! - [`limits`] puts the verdicts on the steps of each series together. In a closed loop, where sessions wait for their answers, the line
//!   lies between the largest load that passes and the next one that fails, a [`StepLine`]. [`open_line`] does the same for rates, where repeats of one
//!   rate are counted by [`verdicts`], as they are in a search for the line.
//! - [`knee`] needs no limit: it says where latency begins to rise faster than load.
//!
//! What is made of it stands above: `limit_verdict` answers yes or no to the limits that were asked for, `opening` chooses the
//! sentence that a report begins with, and `search` chooses the next rate to try.

pub(crate) mod judge;
pub(crate) mod judgeable;
pub(crate) mod knee;
pub(crate) mod latency_target;
pub(crate) mod limits;
pub(crate) mod open_line;
mod step_line;
pub(crate) mod verdicts;

pub use judge::{judge, judge_all};
pub use judgeable::{Judgeable, NotJudgeable};
pub use knee::{Knee, RateKnee, Responds, Scales};
pub use latency_target::{LatencyTarget, QuantileValue, Subject};
pub use limits::FewWaits;
pub use open_line::{OpenLoadLine, RatePoint, Why};
pub use step_line::{Failing, Point, StepLine};
pub use verdicts::{Ended, LoadLine, MAX_VERDICTS, Verdict, VerdictOutcome};
