//! When the steps of all parts begin.

use model::config::fleet::StartTime;
use model::units::Nanos;

/// A part may be so late, and says how late it was; one that is later does not begin. Windows are cut to whole seconds that all
/// parts have, so this costs none of them more than one.
pub(super) const MAX_LATE: Nanos = Nanos::millis(250);

/// When the steps of all parts begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommonStart {
    /// The first.
    pub(super) at: StartTime,
    /// Between the end of one and the beginning of the next.
    pub(super) gap: Nanos,
}
