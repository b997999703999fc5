//! Layouts of storage that a local file does not show: NFS servers, disk groups, a flash cache.

mod flash;
mod groups;
mod nfs;
mod space;

use plimsoll::record::Step;

use crate::{Bench, Failure, figure, median, verdict};

impl Bench {
    /// The one step of a run of this load, kept in the folder of the others.
    fn step_of(&self, words: &[&str]) -> Result<Step, Failure> {
        let runs = self.runs.display().to_string();
        let run = self.run_of(&[words, &["--json", "--quiet", "--runs", &runs]].concat())?;
        run.steps.into_iter().next().ok_or_else(|| "a run without a step".into())
    }
}

/// Processor time of the process for each block that came from storage, in microseconds.
fn cpu_us(step: &Step) -> Result<f64, Failure> {
    let cpu = step.process_cpu.ok_or("the processor time is not known")?;
    let reads = step.counters.physical_reads.filter(|reads| *reads > 0).ok_or("no reads were counted")?;
    Ok((cpu.user_ns + cpu.system_ns) as f64 / reads as f64 / 1e3)
}

/// Blocks that came from storage in each second.
fn reads_per_s(step: &Step) -> Result<f64, Failure> {
    let reads = step.counters.physical_reads.ok_or("no reads were counted")?;
    Ok(reads as f64 / step.window.duration_ns as f64 * 1e9)
}

/// Prints the medians of pairs of microseconds with a thing and without it, and the median of their differences.
fn extra_us(what: &str, pairs: &[(f64, f64)], most: f64) {
    let (with, without) = (median(pairs.iter().map(|pair| pair.0)), median(pairs.iter().map(|pair| pair.1)));
    let extra = median(pairs.iter().map(|(with, without)| with - without));
    let verdict = verdict(extra <= most);
    figure(&format!("| {what} | {with:.2} | {without:.2} | {extra:+.2} us | at most +{most} us | {verdict} |"));
}
