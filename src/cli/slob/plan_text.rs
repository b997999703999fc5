//! What `--dry-run` says about a run.

use std::io::{self, Write};

use crate::cli::live::warmup_words;
use crate::plan::slob::RunPlan;
use model::config::slob_conf;

/// Writes what a run would do, the parameters as a parameter file has them.
pub(super) fn write(out: &mut impl Write, plan: &RunPlan, target: &str) -> io::Result<()> {
    writeln!(out, "name       {}", plan.name)?;
    writeln!(out, "target     {target}")?;
    writeln!(out, "cache      {}", plan.cache)?;
    writeln!(out, "seed       {}", plan.seed)?;
    writeln!(out, "load for   {}", plan.duration())?;
    for (key, value) in &plan.tags {
        writeln!(out, "tag        {key}={value}")?;
    }
    writeln!(out)?;
    out.write_all(slob_conf::render(&plan.parameters).as_bytes())?;
    writeln!(out)?;
    for step in &plan.steps {
        let sessions = if step.load.slots() == 1 { "session" } else { "sessions" };
        let lanes = if step.lanes == 1 { "thread" } else { "threads" };
        write!(
            out,
            "step {:<3} {}: {} {sessions} on {} {lanes}, {}, {} measured",
            step.index + 1,
            step.label,
            step.load.slots(),
            step.lanes,
            warmup_words(step.warmup),
            step.duration
        )?;
        if let (Some(rate), Some(arrival)) = (step.load.rate_operations_per_s, &step.load.arrival) {
            write!(out, ", {rate} operations/s ({arrival})")?;
        }
        for (key, value) in &step.parameters {
            write!(out, ", {key}={value}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}
