//! What the user should know about parameters that are in order.

use crate::units::{Bytes, Nanos};

use super::super::parameter::{PARAMETERS, Role};
use super::SlobParameters;

/// Block size with which SLOB counts where nobody says otherwise.
const SLOB_BLOCK: Bytes = Bytes::kib(8);
const SLOB_MIN_BLOCKS: u64 = 10_000;
const SLOB_MIN_RUN_TIME: Nanos = Nanos::seconds(30);
const SLOB_WORK_UNITS: std::ops::RangeInclusive<u32> = 3..=1_024;

impl SlobParameters {
    /// Sentences for the run's notes: where SLOB itself would refuse or mean something else, and what has no effect here.
    pub fn notes(&self) -> Vec<String> {
        let scale_blocks = self.scale.blocks(self.block_size.unwrap_or(SLOB_BLOCK).0);
        let Self { work_unit, update_pct, scan_pct, .. } = self;
        [
            (self.run_time < SLOB_MIN_RUN_TIME)
                .then(|| format!("RUN_TIME is {}; SLOB itself accepts 30 s or more", self.run_time)),
            (scale_blocks < SLOB_MIN_BLOCKS)
                .then(|| format!("SCALE is {scale_blocks} blocks; SLOB itself accepts 10,000 or more")),
            (!SLOB_WORK_UNITS.contains(work_unit))
                .then(|| format!("WORK_UNIT is {work_unit}; SLOB itself accepts 3 to 1024")),
            (*scan_pct > 0 && *update_pct > 0).then(|| {
                format!(
                    "SCAN_PCT counts in all operations: {scan_pct} in every hundred are scans; SLOB counts it in those \
                     that are not updates"
                )
            }),
            self.ignored_note(),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn ignored_note(&self) -> Option<String> {
        let ignored: Vec<&str> = PARAMETERS
            .iter()
            .filter(|parameter| parameter.role == Role::Connection && self.was_set(parameter.key))
            .map(|parameter| parameter.key.name())
            .collect();
        (!ignored.is_empty()).then(|| {
            let verb = if ignored.len() == 1 { "is" } else { "are" };
            format!("{} {verb} kept for SQL targets and ignored on this one", ignored.join(", "))
        })
    }
}
