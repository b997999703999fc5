//! What `--dry-run` says.

use std::io::{self, Write};

use super::turns::Measurement;
use crate::cli::live::warmup_words;
use model::units::Nanos;

/// Writes which load runs when, and for how long.
pub(super) fn write(out: &mut impl Write, measurement: &Measurement) -> io::Result<()> {
    for load in &measurement.loads {
        writeln!(out, "load {}     {}", load.letter, load.typed)?;
    }
    writeln!(out, "rounds     {}", measurement.rounds)?;
    writeln!(out, "load for   {}, and what it takes to make each load ready", measurement.time())?;
    writeln!(out)?;
    let (warmup, duration) = (warmup_words(measurement.measured.warmup), measurement.measured.duration);
    for (number, turn) in (1..).zip(measurement.turns()) {
        writeln!(out, "turn {number:<3} {}: {warmup}, {duration} measured", measurement.words(turn))?;
    }
    Ok(())
}

impl Measurement {
    /// How long load is on in all turns.
    pub(super) fn time(&self) -> Nanos {
        let each = self.turn_time().0;
        Nanos(each.saturating_mul(self.turns().len() as u64))
    }
}
